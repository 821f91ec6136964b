"""How fast `meanfield` is on the circle: tables in Markdown.

    python benchmarks/circle.py [--json FILE] [--parts steps precision cold] [--repeats 7] [--small]

steps      seconds per step against the raw FFTs of a step, for several degrees and a batch,
           with FFTW's plans by ESTIMATE, which the package uses, and by MEASURE
precision  error in L2 at t = 5 against run time, for meanfield and for scipy, exponax, py-pde
           and Dedalus, on the problem of `_equation.py`; imports and compilation excluded
cold       seconds of a whole process `meanfield solve benchmarks/circle.toml`

Everything runs on one core. Times are the best of several repeats; other load on the machine
shows all the same. All baselines keep the modes up to --degree throughout; meanfield chooses.
"""

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

# One core, for every library that is imported below.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = os.environ["NUMEXPR_MAX_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
from _baselines import Solver, available
from _equation import BETA, KAPPA, T_END, initial, relative_error
from _floor import step_table
from _small import parser, sized
from _timing import fastest

import meanfield as mf

TARGET = 1e-8
PACKAGES = ("numpy", "scipy", "numba", "pyfftw", "exponax", "jax", "py-pde", "dedalus")
PARTS = ("steps", "precision", "cold")


def meanfield_solvers() -> Iterator[Solver]:
    """`solve` with error control, and with the fixed steps that other packages take."""
    model = mf.Transformer(mf.USA(beta=BETA), kappa=KAPPA)
    density = mf.Circle(degree=16).density(initial)

    def prepare(**options):
        def run() -> np.ndarray:
            solution = mf.solve(
                model, density, (0, T_END), t_eval=[T_END], progress=False, **options
            )
            return solution.final.coefficients

        return run

    yield Solver(
        "meanfield",
        "rtol",
        (1e-6, 1e-7, 1e-8, 1e-9, 1e-10),
        lambda rtol: prepare(rtol=rtol),
    )
    yield Solver(
        "meanfield, fixed step",
        "steps",
        (800, 1000, 1200, 1600, 2400),
        lambda steps: prepare(dt=T_END / steps, rtol=TARGET),
    )


def seconds_to_reach(target: float, points: list[dict[str, float]]) -> float | None:
    """The time for this error: of a run that has it, or between two neighbours, log-log."""
    finite = [p for p in points if np.isfinite(p["error"])]
    times = [p["seconds"] for p in finite if p["error"] <= target]
    for coarse, fine in pairwise(finite):
        if fine["error"] <= target < coarse["error"]:
            errors, seconds = np.log([[p["error"], p["seconds"]] for p in (coarse, fine)]).T
            share = (np.log(target) - errors[0]) / (errors[1] - errors[0])
            times.append(float(np.exp(seconds[0] + share * (seconds[1] - seconds[0]))))
    return min(times, default=None)


def precision(degree: int, repeats: int) -> dict[str, list]:
    """Work-precision points of every solver, and lines about the missing ones.

    The first run at each setting, not timed, compiles and gives the error; that of a run which
    overflows is nan.
    """
    found = [*meanfield_solvers(), *available(degree)]
    solvers = [solver for solver in found if isinstance(solver, Solver)]
    runs, measured = [], []
    for solver in solvers:
        print(f"preparing {solver.name} ...", file=sys.stderr)
        points = []
        for setting in solver.settings[: sized(None, 2)]:
            runs.append(solver.prepare(setting))
            points.append({"setting": setting, "error": relative_error(runs[-1]())})
        measured.append({"solver": solver.name, "kind": solver.kind, "points": points})
    print("timing ...", file=sys.stderr)
    seconds = iter(fastest(runs, repeats))
    for entry in measured:
        for point in entry["points"]:
            point["seconds"] = next(seconds)
        entry["seconds_to_target"] = seconds_to_reach(TARGET, entry["points"])
    return {"measured": measured, "missing": [line for line in found if isinstance(line, str)]}


def cold_start(repeats: int) -> list[float]:
    """Seconds of whole processes; one run beforehand fills the cache of compiled code."""
    config = Path(__file__).with_name("circle.toml")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run.nc")
        command = [sys.executable, "-m", "meanfield", "solve", str(config), "--out", str(out)]
        times = []
        for _ in range(repeats + 1):
            out.unlink(missing_ok=True)
            began = time.perf_counter()
            subprocess.run([*command, "--quiet"], check=True)
            times.append(time.perf_counter() - began)
    return times[1:]


def environment() -> dict[str, str]:
    """The machine and the versions."""
    found = {"machine": _processor(), "python": platform.python_version()}
    found["meanfield"] = mf.__version__
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def markdown(header: list[str], rows: Iterable[Iterable]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def print_steps(rows: list[dict[str, float]]) -> None:
    header = ["degree", "members", "points", "step, µs", "FFTs, µs", "ratio"]
    header += ["FFTs by MEASURE, µs", "ratio", "planning, ms", "by MEASURE, ms"]
    cells = []
    for row in rows:
        line = [row["degree"], row["members"], row["points"], f"{row['step_us']:.2f}"]
        for plan in ("estimate", "measure"):
            floor = row[f"{plan}_us"]
            line += [f"{floor:.2f}", f"{row['step_us'] / floor:.2f}"]
        line += [f"{row[f'{plan}_planning_ms']:.1f}" for plan in ("estimate", "measure")]
        cells.append(line)
    print("## Seconds per step\n", markdown(header, cells), sep="\n")


def print_precision(result: dict[str, list]) -> None:
    ours = result["measured"][0]["seconds_to_target"]
    summary, details = [], []
    for entry in result["measured"]:
        seconds = entry["seconds_to_target"]
        known = seconds is not None and ours is not None
        ratio = f"{seconds / ours:.1f}" if known else "-"
        summary.append(
            [entry["solver"], "not reached" if seconds is None else f"{1e3 * seconds:.1f}", ratio]
        )
        for point in entry["points"]:
            numbers = f"{point['error']:.1e}", f"{1e3 * point['seconds']:.1f}"
            details.append([entry["solver"], f"{entry['kind']} {point['setting']:g}", *numbers])
    print(f"## Time to a relative error of {TARGET:g}\n")
    print(markdown(["solver", "ms", "times meanfield"], summary))
    print(*result["missing"], sep="\n")
    print("\n## Work and precision\n")
    print(markdown(["solver", "setting", "error", "ms"], details))


def print_cold(times: list[float]) -> None:
    print("## A cold `meanfield solve`, whole process\n")
    cells = [len(times), f"{min(times):.2f}", f"{statistics.median(times):.2f}"]
    print(markdown(["runs", "best, s", "median, s"], [cells]))


def main() -> None:
    known = parser(__doc__)
    known.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there too")
    known.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="by default all")
    known.add_argument("--repeats", type=int, default=7, help="runs a time is the best of")
    degree = sized(128, 24)
    known.add_argument("--degree", type=int, default=degree, help="modes of the baselines")
    options = known.parse_args()

    results: dict = {"environment": environment()}
    print(", ".join(f"{name} {version}" for name, version in results["environment"].items()), "\n")
    if "steps" in options.parts:
        results["steps"] = step_table(options.repeats)
        print_steps(results["steps"])
    if "precision" in options.parts:
        results["precision"] = precision(options.degree, options.repeats)
        print_precision(results["precision"])
    if "cold" in options.parts:
        results["cold"] = cold_start(sized(5, 1))
        print_cold(results["cold"])
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
