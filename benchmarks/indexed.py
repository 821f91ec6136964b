"""What a step of indexed densities costs, beside that of one density: a table in Markdown.

    python benchmarks/indexed.py [--small]

Causal runs of P positions at a fixed degree K and fixed steps of Krogstad's scheme, and the run of
a single density without mask on the same steps. A step is four evaluations of N for each slice,
and four products with the influence C (P, P): P (a K log K + b P K) on the circle,
P (a K^3 + b P K^2) on S^2. C is full here; with many pieces those after a node are left out.

A step is a difference of runs of n and 3 n steps, n falling with P, over 2 n: what `solve` does
once is left out. One thread, processor time, medians over rounds in which all take a turn; one
minute.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time
from collections.abc import Callable

import numpy as np
from _small import parser, sized
from _timing import median, rounds

import meanfield as mf

ROUNDS, BUDGET, DT = 5, 1.5, 1e-5
STEPS, LEAST = sized((2000, 12), (20, 2))  # n of one density, and of many positions
CASES = {
    "circle, K = 32": (mf.Circle(32), lambda s, x: 1 + 0.5 * np.cos(x - s), (16, 64, 256)),
    "circle, K = 128": (mf.Circle(128), lambda s, x: 1 + 0.5 * np.cos(x - s), (16, 64, 256)),
    "$S^2$, K = 16": (mf.Sphere(16), lambda s, x, y, z: 1 + 0.5 * z + s * x * y / 4, (16, 64)),
}


def main() -> None:
    parser(__doc__).parse_args()
    print("| space | drift | P | µs a step | of one density | over P times that |")
    print("|---|---|---|---|---|---|")
    for name, (space, f, counts) in CASES.items():
        counts = counts[: sized(None, 1)]
        for drift in (mf.USA(2.0), mf.SA(2.0)):
            single = space.density(lambda *x, f=f: f(0.5, *x))
            many = [space.indexed(f, mf.Positions(order=count)) for count in counts]
            numbers = [max(STEPS // count, LEAST) for count in (1, *counts)]
            pairs = list(zip((single, *many), numbers, strict=True))
            runs = [run(drift, mu, k * n) for mu, n in pairs for k in (1, 3)]
            for one in runs:
                one()  # compiled, or read
            found = rounds(runs, ROUNDS, BUDGET, time.process_time).T
            one, *all_ = (found[1::2] - found[::2]) / (2 * np.array(numbers)[:, None])
            for count, seconds in zip(counts, all_, strict=True):
                ratio, error = median(seconds / (count * one))
                times = f"{1e6 * np.median(seconds):.0f} | {1e6 * np.median(one):.1f}"
                print(f"| {name} | {drift!r} | {count} | {times} | {ratio:.2f} ± {error:.2f} |")


def run(drift: mf.Drift, state: mf.Density, steps: int) -> Callable[[], mf.Solution]:
    """A run of so many steps."""
    causal = "mean" if isinstance(state, mf.Indexed) else None
    model, degree = mf.Transformer(drift, kappa=2.0, causal=causal), state.space.degree
    fixed = {"dt": DT, "min_degree": degree, "max_degree": degree, "progress": False}
    return lambda: mf.solve(model, state, (0, steps * DT), t_eval=[steps * DT], **fixed)


if __name__ == "__main__":
    main()
