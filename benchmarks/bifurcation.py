"""How fast branches and phase diagrams are, beside their linear algebra alone: tables in Markdown.

    python benchmarks/bifurcation.py [--small] [--large]

branch   200 points of a branch on the circle, with growth rates and special points located
field    100 points of 0.8 USA + Field without symmetries, with growth rates, on the circle (degree
         32) and S^2 (degree 12: 168 moments; with --large degree 24 too: 624)
plane    the phase diagram of USA on the circle, beta in (0, 10], and how many digits it holds

The floor of a branch is what NumPy takes for the same number of the same matrices: solutions of the
bordered systems of Newton's method, and eigenvalues of two orders a point.

One thread; best of several; a minute, and five minutes more with --large. The rows of `field` are
seconds of the processor in one run.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable

import numpy as np
from _small import parser, sized
from _timing import fastest
from scipy.special import iv

import meanfield as mf

REPEATS, BUDGET = 5, 20.0
POINTS, LARGEST, BETAS = sized((200, 10.0, (3.0, 5.0, 7.0, 9.0)), (10, 4.0, (3.0,)))
CASES = [  # drift, range of kappa
    (mf.Kuramoto(), (1.5, 40.0)),
    (mf.USA(2.0), (1.0, 5.0)),
    (mf.USA(4.0), (0.3, 0.6)),
    (mf.SA(3.0), (1.0, 6.0)),
][: sized(4, 1)]

FIELDS = [  # space, range of kappa that its degree resolves, and longest step
    (mf.Circle(32), (0.4, 1.4), sized(0.015, 0.3)),
    (mf.Sphere(12), (0.05, 0.15), 0.0111),
    (mf.Sphere(24), (0.3, 0.8), 0.0106),
]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--large", action="store_true", help="degree 24 of S^2 too")
    large = options.parse_args().large
    print("\n## A branch of 200 points on the circle, ms\n")
    print("| drift | points | special points | moments | meanfield | linear algebra | ratio |")
    print("|---|---|---|---|---|---|---|")
    for drift, span in CASES:
        branch(drift, span)
    print("\n## A branch of 0.8 USA + Field, s of the processor\n")
    print("| space | points | largest degree | seconds | a point, ms |")
    print("|---|---|---|---|---|")
    for space, span, step in FIELDS[: 3 if large else sized(2, 1)]:
        in_a_field(space, span, step)
    print("\n## The phase diagram of USA on the circle, 0 < beta <= 10, s\n")
    print("| points of curves | meanfield | linear algebra | ratio | largest error of kappa |")
    print("|---|---|---|---|---|")
    plane()


def branch(drift: mf.Kuramoto | mf.USA | mf.SA, span: tuple[float, float]) -> None:
    step = step_of_a_branch(drift, span)

    def run() -> mf.Diagram:
        return mf.branches(drift, mf.Circle(16), span, degrees=[1], max_step=step, progress=False)

    with Counted() as counted:
        found = run()
    here = found.data.branch.values > 0
    floor = counted.floor()
    ours, least = (1e3 * seconds for seconds in fastest([run, floor], REPEATS, BUDGET))
    size = found.data.resolution.values[here].max()
    cells = f"{here.sum()} | {len(found.special_points)} | {size} | {ours:.0f} | {least:.0f}"
    print(f"| {drift!r} | {cells} | {ours / least:.1f} |", flush=True)


def in_a_field(space: mf.Circle | mf.Sphere, span: tuple[float, float], step: float) -> None:
    """One branch of a model without symmetries."""
    d = space.dimension
    matrix, constant = 0.4 * np.arange(d * d).reshape(d, d) / d**2, np.array([0.5, 0.3, 0.2])[:d]
    model = mf.Transformer(0.8 * mf.USA(2.0) + mf.Field(lambda x: x @ matrix.T + constant))
    begun = time.process_time()
    found = mf.branches(model, space, span, max_step=step, progress=False)
    seconds, count = time.process_time() - begun, found.data.sizes["point"]
    degree, each = int(found.data.resolution.max()), 1e3 * seconds / count
    print(f"| {space!r} | {count} | {degree} | {seconds:.1f} | {each:.0f} |", flush=True)


def step_of_a_branch(drift, span: tuple[float, float]) -> float:
    """The longest step with which the branch has at least `POINTS` points."""
    step = 0.1
    while True:
        found = mf.branches(drift, mf.Circle(16), span, degrees=[1], max_step=step,
                            stability=False, progress=False)  # fmt: skip
        if (found.data.branch > 0).sum() >= POINTS:
            return step
        step *= 0.9


def plane() -> None:
    def run() -> mf.PhaseDiagram:
        return mf.phase_diagram(mf.USA, mf.Circle(16), (0.01, LARGEST), progress=False)

    with Counted() as counted:
        found = run()
    floor = counted.floor()
    ours, least = fastest([run, floor], 2, BUDGET)
    count = int((found.data.curve != "critical").sum())
    print(f"| {count} | {ours:.2f} | {least:.2f} | {ours / least:.1f} | {error_of(found):.0e} |")


def error_of(plane: mf.PhaseDiagram) -> float:
    """Against b/I_1(b), and against folds and transitions on branches at single beta, relative."""
    worst = 0.0
    for beta in BETAS:
        critical = beta / iv(1, beta)
        found = mf.branches(mf.USA(beta), mf.Circle(16), (0.7 * critical, 1.05 * critical),
                            degrees=[1], stability=False, progress=False)  # fmt: skip
        pairs = [(plane.kappa("critical", beta), critical)]
        for name in ("fold", "transition"):
            pairs.append((plane.kappa(name, beta), found.special(name)[0].kappa))
        worst = max(worst, *(abs(one / other - 1) for one, other in pairs))
    return worst


class Counted:
    """The sizes of all systems that are solved in a block, and of all spectra."""

    def __enter__(self) -> "Counted":
        self.systems: list[int] = []
        self.spectra: list[int] = []
        self._solve, self._eigvals = np.linalg.solve, np.linalg.eigvals

        def solve(matrix, right):
            self.systems.append(len(matrix))
            return self._solve(matrix, right)

        def eigvals(matrix):
            self.spectra.append(len(matrix))
            return self._eigvals(matrix)

        np.linalg.solve, np.linalg.eigvals = solve, eigvals
        return self

    def __exit__(self, *exception) -> None:
        np.linalg.solve, np.linalg.eigvals = self._solve, self._eigvals

    def floor(self) -> Callable[[], None]:
        """The same work on random matrices of these sizes."""
        rng = np.random.default_rng(0)
        sizes = {*self.systems, *self.spectra}
        matrices = {n: np.eye(n) + 0.01 * rng.standard_normal((n, n)) for n in sizes}

        def run() -> None:
            for n in self.systems:
                np.linalg.solve(matrices[n], matrices[n][0])
            for n in self.spectra:
                np.linalg.eigvals(matrices[n])

        return run


if __name__ == "__main__":
    sys.exit(main())
