"""Claim: distances are exact on the circle, lie within their bounds on S^2, and agree with theory.

1. Circle, p = 1, 1.5, 2, 3: atoms with masses, against a linear program over all pairs: 1e-12.
2. Densities on the circle: 1 + cos theta from the uniform one is sin theta in quantiles, where
   theta - 2 pi s = -sin theta, integrated by quadrature, p = 1, 2, 3: 1e-11.
3. n independent tokens have E W_2^2 = pi^2/(3n) from the uniform law, for every n: the
   squared deviation (n - 1)/(12 n^2) of the order statistics of n points on a circle from equal
   spacing, and 1/(12 n^2) within the cells, times 4 pi^2. Asked: 4.5 standard errors.
4. The metric speed W_2(mu_t, mu_(t+h))/h of the gradient flow USA tends to (int |v|^2 dmu)^(1/2):
   asked 1e-5 after extrapolation from two h.
5. S^2: W_2 of 1 + 0.3 x from two atoms at the poles, of masses 0.6 and 0.4, is that along
   meridians; two bounds enclose it. Axisymmetric densities by meridians: Zonal(3) and quadrature.
6. n E |mu^n - mu|^2 = pi^2/3 in H^-1 of the circle for uniform tokens, 4.5 standard errors;
   W_2 <= 2 |mu - sigma| in H^-1(sigma), sigma uniform: always.

    python validation/distances.py [--quick]    # 10 s, 3 s quick

--quick has a tenth of the samples. Exit code 1 on failure.

References: Delon, Salomon and Sobolevski, SIAM J. Appl. Math. 70 (2010); Watson, Biometrika 48
(1961), for the law of deviations on the circle.
"""

import sys

import numpy as np
import ot
from _report import Report, command_line
from scipy.integrate import quad

import meanfield as mf

CIRCLE = mf.Circle(32)
POLE = np.array([0.0, 0.0, 1.0])


def main() -> int:
    quick = command_line(__doc__, "fewer samples").quick
    report = Report(["claim", "case"], digits=12)
    linear_programs(report)
    cosine(report)
    order_statistics(report, 2000 if quick else 20_000)
    metric_speed(report)
    poles(report)
    sobolev(report, 1000 if quick else 10_000)
    return report.verdict()


def linear_programs(report: Report) -> None:
    rng = np.random.default_rng(0)
    for p in (1, 1.5, 2, 3):
        x, y = 2 * np.pi * rng.random(150), 2 * np.pi * rng.random(120)
        a, b = rng.dirichlet(np.ones(150)), rng.dirichlet(np.ones(120))
        gaps = np.abs(x[:, None] - y)
        cost = np.minimum(gaps, 2 * np.pi - gaps) ** p
        exact = ot.emd2(a, b, cost, numItermax=10**7) ** (1 / p)
        tokens = (mf.Tokens(mf.Tokens.on_circle(angles).x, m) for angles, m in ((x, a), (y, b)))
        found = mf.wasserstein(*tokens, p)
        report.compare(
            "linear program", f"p = {p}", predicted=exact, measured=found, tolerance=1e-12
        )


def cosine(report: Report) -> None:
    """X(s) = 2 pi s - sin X: X - 2 pi s = -sin X, odd about 0, so that no shift is best."""
    law, uniform = CIRCLE.density(lambda t: 1 + np.cos(t)), CIRCLE.uniform()
    for p in (1, 2, 3):
        power = lambda t, p=p: abs(np.sin(t)) ** p * (1 + np.cos(t))  # noqa: E731
        cost = quad(power, -np.pi, np.pi, points=[0])[0]
        exact = (cost / (2 * np.pi)) ** (1 / p)
        found = mf.wasserstein(law, uniform, p)
        report.compare("1 + cos", f"p = {p}", predicted=exact, measured=found, tolerance=1e-11)


def order_statistics(report: Report, sets: int) -> None:
    for n in (1, 2, 5, 50):
        tokens = mf.Tokens.uniform(n, 2, rng=n, shape=(sets,))
        squares = mf.wasserstein(tokens, CIRCLE.uniform()) ** 2
        predicted, error = np.pi**2 / (3 * n), 4.5 * squares.std() / sets**0.5
        report.compare(
            "E W_2^2 = pi^2/(3n)",
            f"n = {n}",
            predicted=predicted,
            measured=squares.mean(),
            tolerance=max(error, 1e-12),
        )


def metric_speed(report: Report) -> None:
    model = mf.Transformer(mf.USA(3.0))
    start = CIRCLE.density(lambda t: 1 + 0.5 * np.cos(t) + 0.3 * np.sin(2 * t))
    h = 1e-3
    run = mf.solve(model, start, (0, 0.2), t_eval=[0.1, 0.1 + h / 2, 0.1 + h], rtol=1e-12)
    speeds = [2 * mf.wasserstein(run[0], run[1]) / h, mf.wasserstein(run[0], run[2]) / h]
    speed = float(run.observables["dissipation"][0]) ** 0.5
    report.compare(
        "metric speed",
        "USA",
        predicted=speed,
        measured=2 * speeds[0] - speeds[1],
        tolerance=1e-5,
        relative=True,
    )


def poles(report: Report) -> None:
    law, atoms = mf.Zonal(3, 15).zonal([1, 0.3]), mf.Tokens([POLE, -POLE], [0.6, 0.4])
    weight = lambda t: np.sin(t) / 2 * (1 + 0.3 * np.cos(t))  # noqa: E731
    cut = np.arccos(_height(0.6))
    cost = quad(lambda t: t**2 * weight(t), 0, cut)[0]
    cost += quad(lambda t: (np.pi - t) ** 2 * weight(t), cut, np.pi)[0]
    found = mf.wasserstein(law, atoms, cells=4000)
    report.compare(
        "S^2, two poles",
        f"error {found.error:.1e}",
        predicted=cost**0.5,
        measured=found,
        tolerance=found.error,
    )
    uniform = mf.Zonal(3, 15).uniform()
    exact = quad(lambda x: (np.arccos(_height((1 - x) / 2)) - np.arccos(x)) ** 2 / 2, -1, 1)[0]
    found = mf.wasserstein(law, uniform)
    report.compare("meridians", "d = 3", predicted=exact**0.5, measured=found, tolerance=1e-9)


def _height(mass: float) -> float:
    """The x above which 1 + 0.3 x has this mass: (1 - x)/2 + 0.075 (1 - x^2) = mass."""
    a, b, c = 0.075, 0.5, mass - 0.575
    return float((-b + np.sqrt(b * b - 4 * a * c)) / (2 * a))


def sobolev(report: Report, sets: int) -> None:
    n = 100
    tokens = mf.Tokens.uniform(n, 2, rng=7, shape=(sets,))
    squares = n * mf.sobolev_distance(tokens, CIRCLE.uniform()) ** 2
    report.compare(
        "n E |mu^n - mu|^2 in H^-1",
        f"n = {n}",
        predicted=np.pi**2 / 3,
        measured=squares.mean(),
        tolerance=4.5 * squares.std() / sets**0.5,
    )
    tokens = mf.Tokens.uniform(10, 2, rng=8, shape=(200,))
    ratio = mf.wasserstein(tokens, CIRCLE.uniform()) / mf.sobolev_distance(tokens, CIRCLE.uniform())
    broken = int((np.asarray(ratio) > 2).sum())
    report.compare("W_2 <= 2 H^-1", "of 200", predicted=0, measured=broken, tolerance=0)


if __name__ == "__main__":
    sys.exit(main())
