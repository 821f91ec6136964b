"""One velocity of tokens that see what comes before: a table in Markdown.

    python benchmarks/causal_tokens.py [--small]

Milliseconds by modes beside all pairs j <= i, which are compiled too and visit each pair once, and
beside modes without a mask; the exponent of n is fitted to the times by modes. Pairs are measured
up to n = 10^5. A second table has windows that hold 1000 tokens, which have blocks of rows of
inner products: milliseconds and their exponent, 1 where the cost is that of the window. Processor
time on one thread, best of several; about four minutes.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time

import numpy as np
from _small import parser, sized
from _timing import fastest

import meanfield as mf
from meanfield.engines import Direct, Modes

SIZES, PAIRS = sized(((10**4, 10**5, 10**6), 10**5), ((500, 1000), 500))
REPEATS, BUDGET = 7, 4.0
DRIFTS = (mf.USA(4.0), mf.SA(4.0), mf.SA(50.0))
MEAN = mf.Causal("mean")
# Tokens in a window, and in all:
WINDOW, WINDOWED = sized((1000, (10**4, 3 * 10**4, 10**5)), (100, (500, 1000)))


def main() -> None:
    parser(__doc__).parse_args()
    print("| space | drift | n | modes | pairs | pairs / modes | without a mask | exponent |")
    print("|---|---|---|---|---|---|---|---|")
    for d, space in ((2, "circle"), (3, "$S^2$")):
        for drift in DRIFTS:
            of_modes: list[float] = []
            for n in SIZES:
                row(d, space, drift, n, of_modes)
    windows()


def windows() -> None:
    print(f"\n| drift | {' | '.join(f'{n:.0e}' for n in WINDOWED)} | exponent |")
    print("|---|" + "---|" * (len(WINDOWED) + 1))
    for drift in DRIFTS[:2]:
        times = []
        for n in WINDOWED:
            tokens = mf.Tokens.uniform(n, 2, rng=0, shape=(1,))
            engine = Direct().build(drift, n, 2, mf.Causal("mean", window=WINDOW / n))
            x, masses = tokens.x.copy(), tokens.masses.copy()
            run = lambda e=engine, x=x, masses=masses: e.velocity(x, masses)  # noqa: E731
            times += fastest([run], REPEATS, BUDGET, time.process_time)
        power = np.polyfit(np.log(WINDOWED), np.log(times), 1)[0]
        cells = [repr(drift), *(f"{1e3 * t:.4g}" for t in times), f"{power:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def row(d: int, space: str, drift: mf.ZonalDrift, n: int, of_modes: list[float]) -> None:
    tokens = mf.Tokens.uniform(n, d, rng=0, shape=(1,))
    x, masses = tokens.x.copy(), tokens.masses.copy()
    engines = [Modes().build(drift, n, d, MEAN), Modes().build(drift, n, d)]
    if n <= PAIRS:
        engines.append(Direct().build(drift, n, d, MEAN))
    for engine in engines:
        engine.velocity(x[:, :500], masses[:, :500])
    runs = [lambda e=engine: e.velocity(x, masses) for engine in engines]
    modes, unmasked, *pairs = fastest(runs, REPEATS, BUDGET, time.process_time)
    of_modes.append(modes)
    power = ""
    if n == SIZES[-1]:
        power = f"{np.polyfit(np.log(SIZES), np.log(of_modes), 1)[0]:.2f}"
    shown = [f"{1e3 * pairs[0]:.4g}", f"{pairs[0] / modes:.0f}"] if pairs else ["", ""]
    cells = [space, repr(drift), f"{n:.0e}", f"{1e3 * modes:.3g}", *shown]
    print(f"| {' | '.join([*cells, f'{1e3 * unmasked:.3g}', power])} |", flush=True)


if __name__ == "__main__":
    main()
