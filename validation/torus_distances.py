"""Claim: distances on the torus are those of its metric, by independent code and on products.

W_1 and W_2 of equal numbers of tokens, on tori of two and three angles, are compared with an
assignment by scipy whose costs are computed from angles. On `Torus(degree, 1)` distances are those
of the circle. Squares of W_2 add for products: of tokens on grids, and of densities, where the
distances of the factors are exact; there the difference must be within the error of the distance.
Sliced distances of a density are compared with those of 200 000 samples; the sampling floor of one
projection is (pi^2 / 3 n)^(1/2).

Asked: 1e-10, relative, for tokens; 1e-9 on the circle; 1 error; 4.5 sampling floors.

    python validation/torus_distances.py [--quick]    # 35 s, 8 s quick; exit code 1 on failure

References: Peyre and Cuturi, Computational Optimal Transport (2019), for products.
"""

import sys

import numpy as np
from _report import Report, command_line
from scipy.optimize import linear_sum_assignment

import meanfield as mf

CIRCLE, TORUS = mf.Circle(16), mf.Torus(16)
F = CIRCLE.density(lambda x: 1 + 0.6 * np.cos(x) + 0.2 * np.sin(2 * x))
G = CIRCLE.density(lambda x: 1 + 0.5 * np.sin(x - 1))
H = CIRCLE.density(lambda x: 1 + 0.7 * np.cos(2 * x - 0.4))


def main() -> int:
    quick = command_line(__doc__, "fewer tokens and cells").quick
    report = Report(["distance"])
    assignments(report, 80 if quick else 300)
    circles(report)
    products(report, [200] if quick else [500, 2000])
    slices(report, 20_000 if quick else 200_000)
    return report.verdict()


def assignments(report: Report, n: int) -> None:
    for m in (2, 3):
        for p in (1, 2):
            rng = np.random.default_rng(m)
            a, b = rng.uniform(0, 2 * np.pi, (n, m)), rng.normal(1.0, 0.8, (n, m))
            gaps = (a[:, None] - b + np.pi) % (2 * np.pi) - np.pi
            costs = (gaps**2).sum(axis=-1) ** (p / 2)
            expected = costs[linear_sum_assignment(costs)].mean() ** (1 / p)
            w = mf.wasserstein(mf.Tokens.on_torus(a), mf.Tokens.on_torus(b), p)
            name = f"W_{p}, {m} angles"
            report.compare(name, predicted=expected, measured=w, tolerance=1e-10, relative=True)


def circles(report: Report) -> None:
    torus, rng = mf.Torus(16, 1), np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, (500, 1))
    on_torus = [torus.product([F]), torus.product([G]), mf.Tokens.on_torus(angles)]
    on_circle = [F, G, mf.Tokens.on_circle(angles[:, 0])]
    for p in (1, 2):
        for i in range(3):
            for j in range(i):
                expected, found = (
                    mf.wasserstein(states[i], states[j], p) for states in (on_circle, on_torus)
                )
                name = f"W_{p}, one angle, {i} and {j}"
                report.compare(name, predicted=expected, measured=found, tolerance=1e-9)


def products(report: Report, cells: list[int]) -> None:
    rng, on_circle = np.random.default_rng(1), mf.Tokens.on_circle
    x, y, u, v = rng.uniform(0, 2 * np.pi, (4, 24))
    grids = [np.stack(np.meshgrid(*each), -1).reshape(-1, 2) for each in ((x, y), (u, v))]
    w = mf.wasserstein(*(mf.Tokens.on_torus(grid) for grid in grids))
    factors = [mf.wasserstein(on_circle(s), on_circle(t)) for s, t in ((x, u), (y, v))]
    expected = np.hypot(*factors)
    report.compare(
        "products of tokens", predicted=expected, measured=w, tolerance=1e-10, relative=True
    )
    for name, (a, b), (c, d) in (("F G, H H", (F, G), (H, H)), ("F H, G G", (F, H), (G, G))):
        expected = np.hypot(mf.wasserstein(a, c), mf.wasserstein(b, d))
        w = mf.wasserstein(TORUS.product([a, b]), TORUS.product([c, d]), cells=cells[0])
        within_error(report, f"densities {name}", expected, w)
    for count in cells:
        at = on_circle([0.3])
        expected = np.hypot(mf.wasserstein(F, at), mf.wasserstein(G, at))
        point = mf.Tokens.on_torus([[0.3, 0.3]])
        w = mf.wasserstein(TORUS.product([F, G]), point, cells=count)
        within_error(report, f"a density and a point, {count} cells", expected, w)


def within_error(report: Report, name: str, expected: float, w: mf.Distance) -> None:
    report.compare(name, predicted=expected, measured=w, tolerance=w.error, random=True)


def slices(report: Report, n: int) -> None:
    law, other = TORUS.product([F, G]), TORUS.product([H, G])
    exact = mf.sliced_wasserstein(law, other, projections=128)
    sample = law.sample(n, rng=2)
    floor = (np.pi**2 / 3 / len(sample)) ** 0.5
    found = mf.sliced_wasserstein(sample, other, projections=128)
    bound = 4.5 * floor
    report.compare("slices", predicted=exact, measured=found, tolerance=bound, random=True)


if __name__ == "__main__":
    sys.exit(main())
