"""How fast distances are, beside POT: tables in Markdown.

    python benchmarks/transport.py [--small]

circle    W_2 of n and n random atoms on the circle, against `ot.wasserstein_circle` at its default
          accuracy and at 1e-12, and the floor, which is to sort both sets
density   W_2 of n atoms from a density
sphere    W_2 of 2000 and 2000 atoms on S^2, costs included, against `ot.emd2` as one would call it

One thread; best of several; about a minute.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import ot
from _small import parser, sized
from _timing import fastest

import meanfield as mf

SIZES, ON_SPHERE = sized(((10**3, 10**4, 10**5, 10**6), (500, 1000, 2000)), ((100,), (50,)))
REPEATS, BUDGET = 7, 8.0


def main() -> None:
    parser(__doc__).parse_args()
    print("\n## The circle: W_2 of n and n atoms, ms\n")
    print("| n | meanfield | sorting | POT | POT, eps = 1e-12 | ratio | error of POT |")
    print("|---|---|---|---|---|---|---|")
    for n in SIZES:
        circle(n)
    print("\n## A density and n atoms, ms\n")
    print("| n | p = 1 | p = 2 | p = 3 |")
    print("|---|---|---|---|")
    for n in SIZES[:3]:
        density(n)
    print("\n## S^2: W_2 of n and n atoms, costs included, ms\n")
    print("| n | meanfield | POT | ratio | difference |")
    print("|---|---|---|---|---|")
    for n in ON_SPHERE:
        sphere(n)


def circle(n: int) -> None:
    a, b = (mf.Tokens.uniform(n, 2, rng=seed) for seed in (1, 2))
    u, v = (np.arctan2(s.x[:, 1], s.x[:, 0]) / (2 * np.pi) % 1 for s in (a, b))
    runs = [
        lambda: mf.wasserstein(a, b),
        lambda: (np.sort(u), np.sort(v)),
        lambda: ot.wasserstein_circle(u, v, p=2),
        lambda: ot.wasserstein_circle(u, v, p=2, eps=1e-12),
    ]
    ours, _, theirs, _ = (run() for run in runs)
    times = [1e3 * seconds for seconds in fastest(runs, REPEATS, BUDGET)]
    error = abs(2 * np.pi * theirs[0] ** 0.5 - ours.value)
    cells = " | ".join(f"{ms:.3g}" for ms in times)
    print(f"| {n:.0e} | {cells} | {times[2] / times[0]:.1f} | {error:.0e} |", flush=True)


def density(n: int) -> None:
    law = mf.Circle(64).von_mises(0.0, 2.0)
    tokens = law.sample(n, rng=0)
    runs = [lambda p=p: mf.wasserstein(law, tokens, p) for p in (1, 2, 3)]
    for run in runs:
        run()
    cells = " | ".join(f"{1e3 * seconds:.3g}" for seconds in fastest(runs, REPEATS, BUDGET))
    print(f"| {n:.0e} | {cells} |", flush=True)


def sphere(n: int) -> None:
    a, b = (mf.Tokens.uniform(n, 3, rng=seed) for seed in (1, 2))

    def plain() -> float:
        costs = np.arccos(np.clip(a.x @ b.x.T, -1, 1)) ** 2
        return ot.emd2([], [], costs, numItermax=10**7) ** 0.5

    runs = [lambda: mf.wasserstein(a, b), plain]
    ours, theirs = (run() for run in runs)
    times = [1e3 * seconds for seconds in fastest(runs, REPEATS, BUDGET)]
    cells = " | ".join(f"{ms:.3g}" for ms in times)
    difference = abs(theirs - ours.value)
    print(f"| {n} | {cells} | {times[1] / times[0]:.2f} | {difference:.0e} |", flush=True)


if __name__ == "__main__":
    main()
