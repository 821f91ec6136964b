"""How fast `meanfield` moves tokens: tables in Markdown.

    python benchmarks/tokens.py [--parts direct modes small run noise] [--repeats 7] [--small]

direct  one velocity by all pairs under SA, against the same by PyTorch (fused attention), NumPy
        (the n x n array) and KeOps, those that are installed; one thread, and two
modes   one velocity by harmonics on the circle and on S^2, n = 1e4, ..., 1e7, against its floor,
        and its error against sums over all pairs for a few tokens
small   one velocity of many small systems, microseconds per system
run     `solve` for a million tokens: time against that of its velocities, peak memory
noise   where the time of one step with noise goes, a million tokens

Times on one thread are processor time, so that other load does not count, those on two threads wall
time; best of several repeats. All takes about four minutes.
"""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _small import parser, sized
from _timing import fastest
from _token_baselines import missing, velocities
from _token_floor import circle_floor, sphere_floor

import meanfield as mf
from meanfield.dynamics import TokenMotion
from meanfield.engines import CircleModes, DirectSums, SphereModes
from meanfield.steppers import DormandPrince
from meanfield.steppers.flow import ExplicitFlow

PARTS = ("direct", "modes", "small", "run", "noise")
BETA, KAPPA = 5.0, 10.0
WHOLE = ((256, 64), (1024, 3), (1024, 64), (10_000, 3), (10_000, 64), (4096, 512))
SIZES = sized(WHOLE, ((32, 3), (32, 16)))
SYSTEMS = sized(((2000, 32, 8), (100_000, 5, 2)), ((4, 8, 2),))
MANY = sized((10**4, 10**5, 10**6, 10**7), (10**3, 2 * 10**3))
RUNS, NOISY = sized(((10**5, 10**6), 10**6), ((10**3,), 10**3))
HARMONICS = ((mf.USA, 2, 1e-10), (mf.SA, 2, 1e-10), (mf.USA, 3, 1e-8), (mf.SA, 3, 1e-8))
LIBRARIES = ("PyTorch", "NumPy", "KeOps")
ROWS = 8  # tokens whose velocities are compared with direct sums


def arrays(n: int, d: int, replicas: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Uniform tokens and their masses, as engines take them."""
    tokens = mf.Tokens.uniform(n, d, rng=n + d, shape=(replicas,))
    return tokens.x.copy(), tokens.masses.copy()


def header(*names: str) -> str:
    return "| " + " | ".join(names) + " |\n|" + " --- |" * len(names)


# All pairs ---------------------------------------------------------------------------------


def timed(x, masses, repeats: int, threads: int) -> tuple[dict[str, float], float]:
    """Seconds of one velocity by each library, and by how much the velocities differ."""
    engine = DirectSums(mf.SA(BETA), threads)
    runs = {"meanfield": lambda: engine.velocity(x, masses), **velocities(x, BETA, threads)}
    found = [run() for run in runs.values()]
    difference = max(np.abs(other - found[0]).max() for other in found)
    clock = time.process_time if threads == 1 else time.perf_counter
    rounds = 40 * repeats if found[0].size < 10**5 else repeats
    return dict(
        zip(runs, fastest(list(runs.values()), rounds, 3.0, clock), strict=True)
    ), difference


def cells(one: dict[str, float], two: dict[str, float], unit: float) -> str:
    """One row: meanfield and each library on one thread, then meanfield and PyTorch on two."""
    numbers = [one.get(name) for name in ("meanfield", *LIBRARIES)]
    numbers += [two.get(name) for name in ("meanfield", "PyTorch")]
    texts = ["" if number is None else f"{number / unit:.3g}" for number in numbers]
    ratios = [times["PyTorch"] / times["meanfield"] for times in (one, two) if "PyTorch" in times]
    return " | ".join([*texts, *(f"{ratio:.2f}" for ratio in ratios)])


COLUMNS = ("meanfield", *LIBRARIES, "meanfield, 2 threads", "PyTorch, 2 threads")
COLUMNS += ("PyTorch / meanfield", "2 threads")


def print_direct(repeats: int) -> None:
    print(f"\n## All pairs: ms per velocity, SA, beta = {BETA:g}\n")
    print(header("n", "d", *COLUMNS, "difference"))
    for n, d in SIZES:
        x, masses = arrays(n, d)
        one, difference = timed(x, masses, repeats, 1)
        two, _ = timed(x, masses, repeats, 2)
        print(f"| {n} | {d} | {cells(one, two, 1e-3)} | {difference:.1e} |", flush=True)
    for package in ("torch", "pykeops.numpy"):
        print(missing(package))


def print_small(repeats: int) -> None:
    print(f"\n## Many small systems: microseconds per velocity of a system, SA, beta = {BETA:g}\n")
    print(header("systems", "n", "d", *COLUMNS, "in a step"))
    for replicas, n, d in SYSTEMS:
        x, masses = arrays(n, d, replicas)
        one, two = (timed(x, masses, repeats, threads)[0] for threads in (1, 2))
        step = step_seconds(mf.Tokens(x), repeats) / DormandPrince.evaluations
        row = cells(one, two, 1e-6 * replicas)
        print(f"| {replicas} | {n} | {d} | {row} | {1e6 * step / replicas:.3g} |", flush=True)


def step_seconds(tokens: mf.Tokens, repeats: int) -> float:
    """Of one step of DormandPrince."""
    motion = TokenMotion(mf.Transformer(mf.SA(BETA)), tokens)
    flow = ExplicitFlow(DormandPrince, motion, motion.coordinates(tokens), rtol=1e-6)
    run = lambda: flow.step(flow.x, flow.velocity, 0.0, 1e-3)  # noqa: E731
    run()
    return fastest([run], repeats, clock=time.process_time)[0]


# Harmonics ---------------------------------------------------------------------------------


def print_modes(repeats: int, largest: int) -> None:
    print(f"\n## Harmonics: ms per velocity, beta = {BETA:g}\n")
    print(header("", "degree", "n", "ms", "floor", "ratio", "2 threads", "exponent", "error"))
    for kind, d, tolerance in HARMONICS:
        last = None
        for n in [n for n in MANY if n <= largest]:
            drift, (x, masses) = kind(BETA), arrays(n, d)
            seconds, floor, both, error, degree = modes_row(drift, x, masses, tolerance, repeats)
            exponent = "" if last is None else f"{np.log10(seconds / last):.2f}"
            last = seconds
            print(
                f"| {kind.__name__}, d = {d} | {degree} | {n:.0e} | {1e3 * seconds:.3g} | "
                f"{1e3 * floor:.3g} | {seconds / floor:.2f} | {1e3 * both:.3g} | {exponent} | "
                f"{error:.1e} |",
                flush=True,
            )


def modes_row(drift, x, masses, tolerance: float, repeats: int) -> tuple:
    d = x.shape[2]
    build, floor_of = (CircleModes, circle_floor) if d == 2 else (SphereModes, sphere_floor)
    engine, pair = build(drift, tolerance), build(drift, tolerance, threads=2)
    runs = [lambda: engine.velocity(x, masses), floor_of(engine, x[0])]
    velocity = runs[0]()
    runs[1]()
    rounds = (40 if x.size < 10**6 else 4) * repeats
    seconds, floor = fastest(runs, rounds, 25.0, time.process_time)
    both = fastest([lambda: pair.velocity(x, masses)], rounds)[0]
    return seconds, floor, both, error_of(drift, x[0], velocity[0]), engine.degree


def error_of(drift, x: np.ndarray, velocity: np.ndarray) -> float:
    """Of a few velocities, relative to the largest that a unit mass exerts on any token."""
    rows = np.linspace(0, len(x) - 1, ROWS).astype(int)
    t = x @ x[rows].T
    weights = np.exp(drift.beta * t)
    pulls = weights.T @ x / len(x)
    angles = np.linspace(0, np.pi, 2001)
    unit = (np.exp(drift.beta * np.cos(angles)) * np.sin(angles)).max()
    if isinstance(drift, mf.SA):
        pulls, unit = pulls / weights.mean(axis=0)[:, None], 1.0
    exact = pulls - (pulls * x[rows]).sum(axis=1, keepdims=True) * x[rows]
    return float(np.linalg.norm(velocity[rows] - exact, axis=1).max() / unit)


# Whole runs --------------------------------------------------------------------------------


def print_run() -> None:
    print("\n## A whole run: SA on the circle, t in (0, 2), rtol = 1e-6\n")
    names = ("n", "s", "steps", "rejected", "velocities", "ms each", "run / velocities", "memory")
    print(header(*names))
    for n in RUNS:
        script = Path(__file__).with_name("_token_run.py")
        command = [sys.executable, str(script), str(n)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = json.loads(output.splitlines()[-1])
        overhead = found["seconds"] / (found["evaluations"] * found["velocity"])
        print(
            f"| {n:.0e} | {found['seconds']:.3g} | {found['steps']} | {found['rejected']} | "
            f"{found['evaluations']} | {1e3 * found['velocity']:.3g} | {overhead:.2f} | "
            f"{found['memory']:.1f} n d |",
            flush=True,
        )


def print_noise(repeats: int) -> None:
    print(f"\n## One step with noise, ms: SA, kappa = {KAPPA:g}, {NOISY:.0e} tokens\n")
    print(header("d", "step", "four velocities", "random numbers", "their moves", "rest"))
    for d in (2, 3):
        step, *parts = noise_seconds(d, repeats)
        times = step, *parts, step - sum(parts)
        print(f"| {d} | " + " | ".join(f"{1e3 * part:.0f}" for part in times) + " |", flush=True)


def noise_seconds(d: int, repeats: int) -> list[float]:
    """Of a step, of its velocities, of drawing its random numbers, of moving tokens by them."""
    tokens, rng = mf.Tokens.uniform(NOISY, d, rng=0), np.random.default_rng(1)
    motion = TokenMotion(mf.Transformer(mf.SA(BETA), KAPPA), tokens)
    y, noise = motion.coordinates(tokens), motion.model.noise
    strength, normals = np.full(1, 1e-3 / 2 / KAPPA), noise.increments(y.shape, rng)
    runs = [
        lambda: motion.strang_step(y, 0.0, 1e-3, rng),
        lambda: motion.velocity(y, 0.0),
        lambda: noise.increments(y.shape, rng),
        lambda: noise.moved(y, strength, normals),
    ]
    for run in runs:
        run()
    step, velocity, drawn, moved = fastest(runs, repeats, 20.0, time.process_time)
    return [step, 4 * velocity, 2 * drawn, 2 * moved]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--largest", type=int, default=MANY[-1], help="tokens in `modes`")
    arguments = options.parse_args()
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    print(f"machine {platform.processor() or platform.machine()}, numpy {np.__version__}")
    print(f"load {load} on {os.cpu_count()} cores")
    began = time.perf_counter()
    if "direct" in arguments.parts:
        print_direct(arguments.repeats)
    if "modes" in arguments.parts:
        print_modes(arguments.repeats, arguments.largest)
    if "small" in arguments.parts:
        print_small(arguments.repeats)
    if "run" in arguments.parts:
        print_run()
    if "noise" in arguments.parts:
        print_noise(arguments.repeats)
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    print(f"\n{time.perf_counter() - began:.0f} s, load {load}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
