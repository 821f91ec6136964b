"""Claim: under common noise a density is the law of the tokens given the common path, and the steps
of both are as accurate as they are said to be.

Order, weak: one step under common translations, Kuramoto on the circle, from a Poisson kernel. The
mean of cosh rho, rho = 2 artanh r, is known: d E cosh(rho) = ((1 + 2/kappa_0) E cosh(rho) - 1) dt.
Its error, by quadrature over the random numbers, is of order 3 in dt: weak order 2.

Order, strong: densities in steps of 1/8 to 1/64 against 1/1024, on the same Brownian path with its
Levy areas, by Chen's relation: 1 for the root mean square of moments 1 to 4. Under a common matrix
1/2. To 4.5 standard errors, by the jackknife over paths: 0.04 with 120 of them.

Path by path: replicas of n tokens against an ensemble of densities with the same rng and dt. The
root mean square distance of moments 1 to 4 over the paths falls like n^(-1/2), n = 10^2 to 10^5 on
the circle, to 10^4 on S^2, to 3000 under a common matrix.

Common rotations: the law is that without common noise, rotated.

Common translations, Kuramoto on the circle, no independent noise: the law stays a Poisson kernel,
m_k = m_1^k; d rho = (tanh(rho/2) + coth(rho)/kappa_0) dt + sqrt(2/kappa_0) dB, by the mean and the
variance of rho_T - rho_0 - int drift dt, and by E cosh(rho_T).

Two close tokens under common translations: the mean exponent is -(1 or e^beta) - (d - 1)/kappa_0
under SA or USA, its variance 2/(kappa_0 T). Means over paths to 4.5 standard errors.

Two tokens under SA and a common matrix, by Ito's formula: z = artanh <x, y> is a diffusion,

    dz = (2 (1 - w) + (2/kappa) ((d - 2) c + s <x, y>)) dt + 2 sqrt(s/kappa) dB,

w = 1/(1 + e^{beta (<x, y> - 1)}) the weight of the token itself, c = 2 w (1 - w), s = 1 - c. As
kappa -> 0 it goes to -infinity with positive probability if d - 1 < 2 cosh(beta)^2, else never. The
share of pairs that begin at a right angle and end antipodal, kappa = 0.1, t = 0.5, in steps of
kappa/100, is that of the scale function: d = 2, 3, 8 and, beyond the transition, beta = 1, d = 8.
To 4.5 standard errors and, for the steps of order 1 and what is between the ends, 0.01.

    python validation/common_noise.py [--quick]    # 180 s, 10 s quick

--quick has fewer tokens and paths, exponents to 0.06, no weak order, the strong one of translations
only, and no pairs. Exit code 1 on failure.
"""

import itertools
import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import cumulative_simpson

import meanfield as mf

ERRORS = 4.5  # standard errors
CIRCLE = mf.Circle(32).density(lambda t: 1 + 0.5 * np.cos(t) + 0.2 * np.sin(2 * t))
SPHERE = mf.Sphere(15).von_mises_fisher((0.0, 0.6, 0.8), 1.0)
REPLAYED = []  # what a generator would have drawn


class Replayed(mf.CommonTranslations):
    """Common translations by given numbers, one array for each half of a step.

    Parameters
    ----------
    kappa : float or array
        Strength, > 0 and finite.
    """

    def increments(self, replicas, d, rng, circles=0):
        return REPLAYED.pop(0)


class ReplayedMatrix(mf.CommonMatrix):
    """A common matrix by given numbers.

    Parameters
    ----------
    kappa : float or array
        Strength, > 0 and finite.
    """

    def increments(self, replicas, d, rng, circles=0):
        return REPLAYED.pop(0)


def poisson(r, degree):
    """The density with c_k = r^k."""
    return mf.Density(mf.Circle(degree), r ** np.arange(degree + 1.0))


def fixed(degree, rtol=1e-6):
    """A fixed number of modes, and how large the last may be."""
    return {"min_degree": degree, "max_degree": degree, "rtol": rtol}


# Orders ------------------------------------------------------------------------------------------


def weak_order(report: Report) -> None:
    kappa, r, degree, nodes = 4.0, 0.3, 24, 3
    rho = 2 * np.arctanh(r)
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    numbers = np.array(list(itertools.product(points, repeat=10)))
    shares = np.prod(list(itertools.product(weights, repeat=10)), axis=1)
    model = mf.Transformer(mf.Kuramoto(), common=Replayed(np.full(len(shares), kappa)))
    steps, errors, rate = np.array([0.1, 0.05, 0.025]), [], 1 + 2 / kappa
    for dt in steps:
        REPLAYED[:] = [numbers[:, :5], numbers[:, 5:]]
        options = {"t_eval": [dt], "dt": dt, "rng": 0, **fixed(degree, 1e-3)}
        run = successful(mf.solve(model, poisson(r, degree), (0, dt), **options))
        square = np.abs(run.final.coefficients[:, 1]) ** 2
        exact = (np.cosh(rho) - 1 / rate) * np.exp(rate * dt) + 1 / rate
        errors.append(shares @ ((1 + square) / (1 - square)) - exact)
    found = np.diff(np.log(np.abs(errors))) / np.diff(np.log(steps))
    report.compare("weak order", "one step", predicted=3.0, measured=found[-1], tolerance=0.15)


def with_areas(numbers):
    """The increment and the Levy area of Brownian motion of the plane, from a step's numbers."""
    xi, eta, zeta = numbers[:, :2], numbers[:, 2:4], numbers[:, 4:]
    area = eta[:, :1] * xi[:, 1:] - xi[:, :1] * eta[:, 1:] + zeta
    return np.column_stack([xi, 0 * xi, area])


def by_chen(first, second):
    """Numbers of one step of translations from those of two halves."""
    x, y = first[:, :2], second[:, :2]
    cross = (x[:, :1] * y[:, 1:] - y[:, :1] * x[:, 1:]) / 2
    area = (first[:, 4:] + second[:, 4:] + np.sqrt(12) * cross) / 2
    return np.column_stack([(x + y) / np.sqrt(2), 0 * x, area])


def by_sum(first, second):
    """Numbers of one step of a matrix from those of two halves."""
    return (first + second) / np.sqrt(2)


def strong_order(report: Report, quick: bool) -> None:
    paths, finest, degree = 16 if quick else 120, 1024, 64
    kappa, start = np.full(paths, 8.0), poisson(0.3, degree)
    cases = (
        ("translations", Replayed, 5, with_areas, by_chen, 1.0),
        ("matrix", ReplayedMatrix, 4, np.asarray, by_sum, 0.5),
    )
    for name, kind, size, first, together, order in cases[: 1 if quick else 2]:
        model, ends = mf.Transformer(mf.SA(2.0), 8.0, common=kind(kappa)), {}
        path = np.random.default_rng(5).standard_normal((2 * finest, paths, size))
        path = [first(numbers) for numbers in path]
        while len(path) >= 16:
            steps = len(path) // 2
            if steps in (8, 16, 32, 64, finest):
                REPLAYED[:] = path
                options = {"t_eval": [1.0], "dt": 1 / steps, "rng": 0, **fixed(degree, 1e-3)}
                run = successful(mf.solve(model, start, (0, 1), **options))
                ends[steps] = run.final.coefficients[:, 1:5]
            path = [together(*pair) for pair in zip(path[::2], path[1::2], strict=True)]
        exact, steps = ends.pop(finest), np.array(sorted(ends))
        squares = np.array([(np.abs(ends[count] - exact) ** 2).mean(axis=1) for count in steps])

        def slope(squares, steps=steps):
            return -np.polyfit(np.log(steps), np.log(squares.mean(axis=1)) / 2, 1)[0]

        rest = [slope(np.delete(squares, i, axis=1)) for i in range(paths)]  # jackknife
        error = np.sqrt(paths - 1) * np.std(rest)
        labels, tolerance = ("strong order", name), 4.5 * error
        report.compare(*labels, predicted=order, measured=slope(squares), tolerance=tolerance)


# Tokens and their law ----------------------------------------------------------------------------


def path_by_path(report: Report, quick: bool) -> None:
    sizes, last = [100, 1000, 10_000, 100_000], 2 if quick else 4
    cases = {
        "circle": (CIRCLE, mf.SA(2.0), mf.CommonTranslations, sizes[:last]),
        "sphere": (SPHERE, mf.SA(2.0), mf.CommonTranslations, sizes[: min(last, 3)]),
        "circle, matrix": (
            CIRCLE,
            mf.SA(2.0),
            mf.CommonMatrix,
            [100, 1000] if quick else [100, 300, 1000, 3000],
        ),
    }
    for name, (mu, drift, kind, sizes) in cases.items():
        many, few = (40, 40) if quick else (150, 60)
        allowed = 0.03 * np.sqrt(150 / many)  # the error of distances falls with the root of paths
        distances = [distance(mu, drift, kind, n, many if n < 3000 else few) for n in sizes]
        slope = np.polyfit(np.log(sizes), np.log(distances), 1)[0]
        report.compare(
            f"path by path, {name}",
            f"exponent up to n = {sizes[-1]}",
            predicted=-0.5,
            measured=slope,
            tolerance=allowed,
        )


def distance(mu, drift, kind, n, paths):
    """The root mean square over paths of moments of n tokens without those of their law."""
    model = mf.Transformer(drift, 4.0, common=kind(np.full(paths, 4.0)))
    options = {"t_eval": [0.3], "dt": 0.05}
    law = successful(mf.solve(model, mu, (0, 0.3), rng=n, rtol=1e-6, **options)).final
    x = mu.sample(n * paths, rng=n + 1).x.reshape(paths, n, -1)
    end = successful(mf.solve(model, mf.Tokens(x), (0, 0.3), rng=n, **options)).final
    few = mu.space.with_degree(4)
    masses = np.full((paths, n), 1 / n)
    moments = few.empirical(end.x, masses) - law.resample(4).coefficients
    return float(np.sqrt((few.parseval * np.abs(moments) ** 2).sum(axis=1).mean()))


def rotations(report: Report) -> None:
    dt, kappa = 0.05, 2.0
    common = mf.CommonRotations(kappa)
    for name, mu in (("circle", CIRCLE), ("sphere", SPHERE.resample(31))):
        options = {"t_eval": [1.0], "dt": dt, **fixed(mu.space.degree)}
        model = mf.Transformer(mf.USA(1.0), 4.0, common=common)
        end = successful(mf.solve(model, mu, (0, 1), rng=1, **options)).final
        still = successful(mf.solve(mf.Transformer(mf.USA(1.0), 4.0), mu, (0, 1), **options)).final
        stream, turn = np.random.default_rng(1).spawn(1)[0], np.eye(mu.dimension)
        for _ in range(40):
            numbers = common.increments(1, mu.dimension, stream)
            half = common.moved(np.eye(mu.dimension)[None], np.array([dt / 2 / kappa]), numbers)
            turn = half[0].T @ turn
        gap = np.abs(end.coefficients - still.rotate(turn).coefficients).max()
        report.compare(f"rotations, {name}", "law", predicted=0.0, measured=gap, tolerance=1e-12)


# Common translations -----------------------------------------------------------------------------


def poisson_kernels(report: Report, quick: bool) -> None:
    paths, kappa, T, r = 100 if quick else 2000, 8.0, 0.5, 0.3
    rho0, times = 2 * np.arctanh(r), np.linspace(0, T, 51)
    model = mf.Transformer(mf.Kuramoto(), common=mf.CommonTranslations(np.full(paths, kappa)))
    options = {"t_eval": times, "dt": 0.01, "rng": 1, **fixed(96)}
    run = successful(mf.solve(model, poisson(r, 96), (0, T), **options))
    c = run.final.coefficients
    gap = np.abs(c - c[:, 1:2] ** np.arange(97)).max()
    report.compare("Poisson kernels", "m_k", predicted=0.0, measured=gap, tolerance=1e-9)
    rho = 2 * np.arctanh(np.array([np.abs(state.coefficients[:, 1]) for state in run]))
    drift = np.tanh(rho / 2) + 1 / np.tanh(rho) / kappa
    martingale = rho[-1] - rho0 - np.trapezoid(drift, times, axis=0)
    variance, u, rate = 2 * T / kappa, np.cosh(rho[-1]), 1 + 2 / kappa
    known = (np.cosh(rho0) - 1 / rate) * np.exp(rate * T) + 1 / rate
    for what, predicted, measured, error in (
        ("mean of the noise in rho", 0.0, martingale.mean(), np.sqrt(variance / paths)),
        ("its variance", variance, martingale.var(), variance * np.sqrt(2 / paths)),
        ("E cosh rho", known, u.mean(), u.std() / np.sqrt(paths)),
    ):
        report.compare(
            "Poisson kernels",
            what,
            predicted=predicted,
            measured=measured,
            tolerance=ERRORS * error,
        )


def exponents(report: Report, quick: bool) -> None:
    paths, kappa, T = 500 if quick else 10_000, 2.0, 1.0
    for d, (drift, rate) in itertools.product((2, 3), ((mf.SA(1.0), 1.0), (mf.USA(1.0), np.e))):
        x = np.zeros((paths, 2, d))
        x[:, :, 0], x[:, 1, 1] = 1.0, 1e-5
        model = mf.Transformer(drift, common=mf.CommonTranslations(kappa))
        options = {"t_eval": [T], "dt": 0.02, "rng": d}
        end = successful(mf.solve(model, mf.Tokens(x), (0, T), **options)).final.x
        growth = np.log(np.linalg.norm(end[:, 1] - end[:, 0], axis=1) / 1e-5) / T
        error = np.sqrt(2 / (kappa * T * paths))
        report.compare(
            f"exponent, d = {d}",
            type(drift).__name__,
            predicted=-rate - (d - 1) / kappa,
            measured=growth.mean(),
            tolerance=ERRORS * error,
        )


# Two tokens --------------------------------------------------------------------------------------


def antipodal(beta: float, d: int, kappa: float) -> float:
    """The probability that a right angle becomes pi: the scale function of z at 0."""
    z = np.linspace(-12, 12, 24_001)
    w = 1 / (1 + np.exp(beta * (np.tanh(z) - 1)))
    c = 2 * w * (1 - w)
    drift = 2 * (1 - w) + 2 / kappa * ((d - 2) * c + (1 - c) * np.tanh(z))
    exponent = cumulative_simpson(2 * drift * kappa / (4 * (1 - c)), x=z, initial=0)
    scale = cumulative_simpson(np.exp(exponent.min() - exponent), x=z, initial=0)
    return float(1 - scale[len(z) // 2] / scale[-1])


def two_tokens(report: Report) -> None:
    kappa, pairs = 0.1, 1000
    for beta, d in ((2.0, 2), (1.0, 3), (2.0, 8), (1.0, 8)):
        model = mf.Transformer(mf.SA(beta), common=mf.CommonMatrix(np.full(pairs, kappa)))
        x = np.broadcast_to(np.eye(d)[:2], (pairs, 2, d))
        options = {"t_eval": [5 * kappa], "dt": kappa / 100, "rng": d}
        end = successful(mf.solve(model, mf.Tokens(x), (0, 5 * kappa), **options)).final.x
        share = ((end[:, 0] * end[:, 1]).sum(axis=-1) < 0).mean()
        law = antipodal(beta, d, kappa)
        report.compare(
            "two tokens become antipodal",
            f"beta = {beta:g}, d = {d}",
            predicted=law,
            measured=share,
            tolerance=ERRORS * np.sqrt(law * (1 - law) / pairs) + 0.01,
        )


def main() -> int:
    quick = command_line(__doc__, "fewer tokens and paths").quick
    report = Report(["what", "which"])
    if not quick:
        weak_order(report)
    strong_order(report, quick)
    rotations(report)
    poisson_kernels(report, quick)
    exponents(report, quick)
    if not quick:
        two_tokens(report)
    path_by_path(report, quick)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
