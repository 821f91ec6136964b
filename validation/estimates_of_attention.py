"""Claim: how sharp the estimates behind the well-posedness of softmax attention in R^d are.

Gamma_mu(x) = int e^{<Ax, y>} V y dmu(y) / int e^{<Ax, y>} dmu(y), A = K^T Q, measures mu, nu on the
ball of radius R; `attend` evaluates Gamma at a token without mass.

1. |Gamma| <= ||V|| R: equality for a Dirac; 300 random measures stay below.
2. ||D Gamma|| <= ||V|| ||A|| R^2: equality for two points +-R u at x = 0; random ones stay below.
3. |Gamma_mu(x) - Gamma_nu(x)| <= c W_1(mu, nu), with c exponential in R^2. The best constant for
   A = a, V = 1 is

       c = (1 + 2 a R^2) e^{2 a R^2}:

   d Gamma/d mass at y is e^{a<x, y>} (y - Gamma)/Z, whose slope in y is at most that, and the
   measures (1 - eps) delta_{-R} + eps delta_y, y near R = x, tend to it as eps tends to 0. So the
   exponential growth is real: for a R^2 = 1, 2, 3, eps = 1e-7, to 2e-4, relative.
   Of n points of mass 1/n, one of which moves, the quotient is n p (1 + 2 a R^2 (1 - p)),
   p = 1/(1 + (n - 1) e^{-2 a R^2}), 1e-4: 175 for n = 100, a R^2 = 3, so that c <= ||A|| R^2, as
   the slides print it for n Diracs, is not true of W_1. Divided by n, as for the largest
   displacement of one of the points, it is at most 1 + a R^2/2: below ||A|| R^2 once that is >= 2.
4. Without normalisation R(t) <= e^{||V|| t} R(0): equality for one token along an eigenvector of a
   symmetric V, 1e-9; 50 random tokens stay below, and under V = 1 their radius does grow like e^t:
   the rate from t = 6 to 8 is 1 to 1e-3. With PostLN radii stay 1, to 1e-13.

    python validation/estimates_of_attention.py    # 5 s

Exit code 1 on failure. Reference: Castin, slides, compactly supported case, estimates 1 to 3.
"""

import sys

import numpy as np
from _report import Report, successful

import meanfield as mf


def gamma(drift: mf.Attention, x: np.ndarray, y: np.ndarray, masses=None) -> np.ndarray:
    """Gamma at x (d,) of points y (n, d), all of the same mass by default."""
    masses = np.full(len(y), 1 / len(y)) if masses is None else np.asarray(masses)
    tokens = mf.Tokens(np.vstack([x, y]), np.append(0.0, masses), on_sphere=False)
    return mf.attend(drift, tokens).x[0]


def slope(drift: mf.Attention, x: np.ndarray, y: np.ndarray, h: float = 1e-3) -> np.ndarray:
    """D Gamma(x), by differences of order 4."""
    columns = []
    for e in np.eye(len(x)):
        near, far = (
            gamma(drift, x + s * h * e, y) - gamma(drift, x - s * h * e, y) for s in (1, 2)
        )
        columns.append((8 * near - far) / (12 * h))
    return np.stack(columns, axis=1)


def ball(n: int, d: int, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Uniform points of a ball."""
    x = rng.standard_normal((n, d))
    return radius * x / np.linalg.norm(x, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / d)


def matrices(d: int, rng: np.random.Generator) -> tuple[mf.Attention, float, float]:
    """A random head, ||A|| and ||V||."""
    Q, K, V = rng.standard_normal((3, d, d))
    return mf.Attention(Q, K, V, 1.0), np.linalg.norm(K.T @ Q, 2), np.linalg.norm(V, 2)


def check_bounds(report: Report) -> None:
    rng, d, radius = np.random.default_rng(1), 3, 1.5
    drift, _, largest = matrices(d, rng)
    _, _, rows = np.linalg.svd(drift.V.reshape(d, d))
    size = np.linalg.norm(gamma(drift, ball(1, d, radius, rng)[0], radius * rows[:1]))
    report.compare("|Gamma|", "a Dirac", predicted=largest * radius, measured=size,
                   tolerance=1e-12, relative=True)  # fmt: skip
    a, v, u = 0.7, 1.3, np.array([0.6, 0.0, 0.8])
    head = mf.Attention(a * np.eye(d), np.eye(d), v * np.eye(d), 1.0)
    steepest = np.linalg.norm(slope(head, np.zeros(d), radius * np.stack([u, -u])), 2)
    report.compare("||D Gamma||", "two points", predicted=a * v * radius**2, measured=steepest,
                   tolerance=1e-9, relative=True)  # fmt: skip
    sizes, slopes = [], []
    for _ in range(300):
        drift, A, V = matrices(d, rng)
        radius = rng.uniform(0.2, 2)
        y, x = ball(rng.integers(2, 20), d, radius, rng), ball(1, d, radius, rng)[0]
        sizes.append(np.linalg.norm(gamma(drift, x, y)) / (V * radius))
        slopes.append(np.linalg.norm(slope(drift, x, y), 2) / (A * V * radius**2))
    for name, found in (("|Gamma|", sizes), ("||D Gamma||", slopes)):
        report.compare(name, "300 random measures, below the bound", predicted=1,
                       measured=int(max(found) <= 1), tolerance=0)  # fmt: skip
        print(f"{name}: at most {max(found):.3f} of the bound, of random measures")


def quotient(strength: float, masses, step: float = 1e-6) -> float:
    """|Gamma_mu - Gamma_nu|/W_1 at x = R = 1: points at -1, and one near 1 that moves."""
    head = mf.Attention(np.array([[strength]]), np.eye(1), np.eye(1), 1.0)
    y = np.full((len(masses), 1), -1.0)
    found = []
    for place in (1.0 - step, 1.0):
        y[-1] = place
        found.append(gamma(head, np.ones(1), y, masses)[0])
    return (found[1] - found[0]) / (masses[-1] * step)


def check_lipschitz(report: Report) -> None:
    for strength in (1.0, 2.0, 3.0):
        best = (1 + 2 * strength) * np.exp(2 * strength)
        few = 1e-7
        report.compare("Lipschitz constant in W_1", f"a R^2 = {strength:g}", predicted=best,
                       measured=quotient(strength, np.array([1 - few, few]), 1e-5),
                       tolerance=2e-4, relative=True)  # fmt: skip
        for n in (2, 10, 100):
            p = 1 / (1 + (n - 1) * np.exp(-2 * strength))
            exact = n * p * (1 + 2 * strength * (1 - p))
            found = quotient(strength, np.full(n, 1 / n))
            report.compare("n points, one moves", f"{n=}, a R^2 = {strength:g}", predicted=exact,
                           measured=found, tolerance=1e-4, relative=True)  # fmt: skip
            report.compare("divided by n: <= 1 + a R^2/2", f"{n=}, a R^2 = {strength:g}",
                           predicted=1, measured=int(found / n <= 1 + strength / 2),
                           tolerance=0)  # fmt: skip
    report.compare("n Diracs, above ||A|| R^2", "n=100, a R^2 = 3", predicted=1,
                   measured=int(quotient(3.0, np.full(100, 0.01)) > 3), tolerance=0)  # fmt: skip
    check_random_pairs(report)


def check_random_pairs(report: Report) -> None:
    """Pairs of random measures, of one random head each: below (1 + 2 s) e^{2 s} ||V||."""
    rng, shares = np.random.default_rng(2), []
    for _ in range(100):
        drift, A, V = matrices(3, rng)
        radius = rng.uniform(0.2, 1)
        y, z, x = (ball(12, 3, radius, rng) for _ in range(3))
        apart = mf.wasserstein(mf.Tokens(y, on_sphere=False), mf.Tokens(z, on_sphere=False), p=1)
        change = np.linalg.norm(gamma(drift, x[0], y) - gamma(drift, x[0], z))
        strength = A * radius**2
        shares.append(change / apart / (V * (1 + 2 * strength) * np.exp(2 * strength)))
    report.compare("100 random pairs, below the constant", "d = 3", predicted=1,
                   measured=int(max(shares) <= 1), tolerance=0)  # fmt: skip


def radius(state: mf.Tokens) -> float:
    return float(np.linalg.norm(state.x, axis=1).max())


def check_growth(report: Report) -> None:
    rng, times = np.random.default_rng(3), np.linspace(0, 2, 21)
    symmetric = np.array([[1.0, 0.5], [0.5, -0.2]])
    rates, vectors = np.linalg.eigh(symmetric)
    head = mf.Attention(np.eye(2), np.eye(2), symmetric, 1.0)
    one = mf.Tokens(vectors[:, [-1, -1]].T, on_sphere=False)  # two at one place
    run = successful(mf.solve(mf.Transformer(head), one, (0, 2), t_eval=[2], rtol=1e-12))
    report.compare("radius of one token", "along an eigenvector", predicted=np.exp(2 * rates[-1]),
                   measured=radius(run.final), tolerance=1e-9, relative=True)  # fmt: skip
    below = []
    for _ in range(5):
        drift, _, V = matrices(2, rng)
        start = mf.Tokens(ball(50, 2, 0.5, rng), on_sphere=False)
        run = successful(mf.solve(mf.Transformer(drift), start, (0, 0.5), t_eval=times / 4))
        below += [radius(run[i]) <= np.exp(V * t) * radius(start) * (1 + 1e-7)
                  for i, t in enumerate(run.t)]  # fmt: skip
    report.compare("radius below e^{||V|| t}", "50 random tokens, 5 heads", predicted=1,
                   measured=int(all(below)), tolerance=0)  # fmt: skip
    head = mf.Attention(np.eye(2), np.eye(2), np.eye(2), 1.0)
    start = mf.Tokens(ball(50, 2, 1.0, rng), on_sphere=False)
    run = successful(mf.solve(mf.Transformer(head), start, (0, 8), t_eval=[6, 8]))
    rate = np.log(radius(run[1]) / radius(run[0])) / 2
    report.compare("rate of growth", "V = 1, 50 tokens", predicted=1, measured=rate, tolerance=1e-3)
    start = mf.Tokens.uniform(50, 3, rng=rng)
    run = successful(mf.solve(mf.Transformer(mf.SA(1.0)), start, (0, 8), t_eval=[8]))
    report.compare("radius", "PostLN", predicted=1, measured=radius(run.final), tolerance=1e-13)


def main() -> int:
    report = Report(["claim", "case"])
    check_bounds(report)
    check_lipschitz(report)
    check_growth(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
