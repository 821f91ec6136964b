"""Claim: mean-shift with a frozen estimate stops at its modes; blurring mean-shift merges them.

The frozen flow is x' = grad log(K * mu_0)(x)/beta, on the circle K * mu_0 = f_0 with
f_0(theta) = sum_j m_j e^(beta cos(theta - theta_j)); blurring mean-shift, which has mu_t, is SA.

1. 300 tokens, beta = 8, 20 and 50: each ends at a mode of `kernel_modes` (1e-8), and the number
   that ends at each is that between the two minima of f_0 beside it, found by bisection: exactly.
   Near its mode a token approaches at the rate -f_0''/(beta f_0) (1e-6). SA leaves at the same
   velocities (1e-13).
2. Consistency, for a density mu whose f has three modes (beta = 20): those of n independent tokens
   are n^(-1/2) away, by the delta method with variance Var K'(theta - X)/(n f''(theta)^2), n = 500,
   2000, 8000 (4.5 standard errors and 3/n; exponent of the root mean square -0.5 to 0.03 and 4.5
   se).
3. A quadrature of mu, beta = 4: the frozen flow takes to each of three modes the mass between its
   minima, to that of a node. Under SA the three modes are two at t = 200 and one at t = 2000.

    python validation/frozen_mean_shift.py [--quick]     # 33 s, 9 s quick

References: Fukunaga and Hostetler (1975); Arias-Castro, Mason and Pelletier (2016) for consistency.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.optimize import brentq
from scipy.special import ive

import meanfield as mf

SEED, SIGMAS = 7, 4.5
BETA, WAVES = 20.0, np.array([1, 0.08, 0.1j, -0.25])  # the density, int e^(-ik theta) dmu


def estimate(waves: np.ndarray, beta: float):
    """f and its derivatives, e^(beta cos) * mu over e^beta, from int e^(-ik theta) dmu, k >= 0."""
    k = np.arange(len(waves))
    terms = np.where(k > 0, 2, 1) * waves * ive(k, beta)

    def value(theta, order):
        return (np.exp(1j * np.multiply.outer(theta, k)) @ (terms * (1j * k) ** order)).real

    return value


def critical(f) -> tuple[np.ndarray, np.ndarray]:
    """Maxima and minima of f on the circle."""
    grid = np.linspace(-np.pi, np.pi, 4001)[:-1] + 1e-4
    slopes = f(grid, 1)
    turns = np.flatnonzero(np.sign(slopes) != np.sign(np.roll(slopes, -1)))
    step = grid[1] - grid[0]
    found = np.array([brentq(f, grid[i], grid[i] + step, (1,), xtol=1e-14) for i in turns])
    peaks = f(found, 2) < 0
    return found[peaks], found[~peaks]


def frozen(f, beta: float) -> mf.Transformer:
    """x' = grad log f / beta, as a field on the circle."""

    def field(x):
        theta = np.arctan2(x[..., 1], x[..., 0])
        slope = f(theta, 1) / f(theta, 0) / beta
        return slope[..., None] * np.stack([-np.sin(theta), np.cos(theta)], axis=-1)

    return mf.Transformer(mf.Field(field))


def points(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def angles_of(tokens: mf.Tokens) -> np.ndarray:
    return np.arctan2(tokens.x[:, 1], tokens.x[:, 0])


def ends(f, beta, start, modes, time) -> tuple[np.ndarray, float]:
    """The mode at which the frozen flow leaves each token, and their largest distance."""
    run = successful(mf.solve(frozen(f, beta), start, (0, time), t_eval=[time], rtol=1e-6))
    off = np.abs(apart(angles_of(run[-1]), modes))
    return off.argmin(axis=1), off.min(axis=1).max()


def apart(a, b):
    """Signed angles from b to a, of an array of each."""
    return np.angle(np.exp(1j * (np.asarray(a)[..., None] - b)))


def between(angles: np.ndarray, minima: np.ndarray, modes: np.ndarray) -> np.ndarray:
    """The mode on the same side of all minima, as its index, for each angle."""
    order = np.sort(minima)
    basin = np.searchsorted(order, angles) % len(order)
    of_modes = np.searchsorted(order, modes) % len(order)
    return np.argmax(basin[:, None] == of_modes, axis=1)


def check_tokens(report: Report) -> None:
    for beta in (8.0, 20.0, 50.0):
        start = mf.Tokens.uniform(300, 2, rng=[SEED, int(beta)])
        angles = angles_of(start)
        f = estimate(np.exp(-1j * np.outer(range(100), angles)) @ start.masses, beta)
        modes = np.asarray(mf.kernel_modes(start, beta).places)
        _, minima = critical(f)
        rates = -f(modes, 2) / f(modes, 0) / beta
        nearest, away = ends(f, beta, start, modes, 30 / rates.min())
        label = f"beta = {beta:g}, {len(modes)} modes"
        report.compare("ends at modes", label, predicted=0, measured=away, tolerance=1e-8)
        wrong = int((nearest != between(angles, minima, modes)).sum())
        report.compare("between minima", label, predicted=0, measured=wrong, tolerance=0.5)
        at = int(rates.argmax())
        pair = modes[at] + np.array([1e-4, -1e-4])
        near = mf.Tokens(points(pair))
        short = mf.solve(frozen(f, beta), near, (0, 3 / rates[at]), rtol=1e-12)
        left = apart(angles_of(successful(short)[-1]), modes[at])[:, 0]
        rate = -np.log(abs(left[0] - left[1]) / 2e-4) / (3 / rates[at])
        numbers = {"predicted": rates[at], "measured": rate, "relative": True}
        report.compare("rate", label, **numbers, tolerance=1e-6)
        mean = mf.attend(mf.SA(beta), start)
        tangent = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
        v = (mean.x * mean.radii[:, None] * tangent).sum(axis=1)
        error = np.abs(f(angles, 1) / f(angles, 0) / beta - v).max()
        report.compare("SA, t = 0", label, predicted=0, measured=error, tolerance=1e-13)


def check_consistency(report: Report, replicas: int) -> None:
    f, mu = estimate(WAVES, BETA), mf.Circle(64).density(values)
    modes, _ = critical(f)
    report.compare("modes of f", "density", predicted=3, measured=len(modes), tolerance=0.5)
    grid = np.linspace(-np.pi, np.pi, 4096, endpoint=False)
    law = values(grid) / values(grid).sum()
    off = modes[:, None] - grid
    slopes = -BETA * np.sin(off) * np.exp(BETA * (np.cos(off) - 1))
    variances = (slopes**2 @ law - (slopes @ law) ** 2) / f(modes, 2) ** 2
    sizes, roots = (500, 2000, 8000), []
    for n in sizes:
        squares = np.empty((replicas, len(modes)))
        for i in range(replicas):
            tokens = mu.sample(n, rng=[SEED, n, i])
            places = np.asarray(mf.kernel_modes(tokens, BETA).places)
            squares[i] = np.abs(apart(modes, places)).min(axis=1) ** 2
        for mode, mean, error, variance in zip(
            modes, squares.mean(0), squares.std(0, ddof=1) / replicas**0.5, variances, strict=True
        ):
            label = f"n = {n}, mode at {mode:.3f}"
            numbers = {"predicted": variance, "measured": n * mean}
            bound = n * SIGMAS * error + 3 * variance / n**0.5
            report.compare("n E|error|^2", label, **numbers, tolerance=bound, random=True)
        roots.append((squares.sum(1).mean(), squares.sum(1).std(ddof=1) / replicas**0.5))
    means, errors = np.array(roots).T
    x = np.log(sizes) - np.log(sizes).mean()
    slope = x @ np.log(means) / (x @ x) / 2
    error = np.sqrt((x**2) @ (errors / means) ** 2) / (x @ x) / 2
    numbers = {"predicted": -0.5, "measured": slope, "tolerance": 0.03 + SIGMAS * error}
    report.compare("exponent", "root mean square", **numbers, random=True)


def check_masses(report: Report, beta: float = 4.0, n: int = 256) -> None:
    f = estimate(WAVES, beta)
    modes, minima = critical(f)
    angles = (np.arange(n) + 0.5) * (2 * np.pi / n) - np.pi
    start = mf.Tokens(points(angles), values(angles) / n)
    nearest, _ = ends(f, beta, start, modes, 1000.0)
    order = np.sort(minima)
    for i, mode in enumerate(modes):
        right = np.searchsorted(order, mode) % len(order)
        low, high = order[right - 1], order[right]
        share = share_below(high) - share_below(low) + (high < low)
        numbers = {"predicted": share, "measured": start.masses[nearest == i].sum()}
        report.compare("share", f"{mode:.3f}", **numbers, tolerance=start.masses.max())
    times, counts = [0.0, 200.0, 2000.0], [3, 2, 1]
    run = successful(
        mf.solve(mf.Transformer(mf.SA(beta)), start, (0, times[-1]), t_eval=times, rtol=1e-8)
    )
    for t, count, tokens in zip(times, counts, run, strict=True):
        found = len(mf.kernel_modes(tokens, beta))
        report.compare("modes, SA", f"t = {t:g}", predicted=count, measured=found, tolerance=0.5)


def share_below(theta: float) -> float:
    """The mass of the density from -pi to an angle."""
    k = np.arange(1, len(WAVES))
    waves = WAVES[1:] / (1j * k) * (np.exp(1j * k * theta) - np.exp(-1j * k * np.pi))
    return (theta + np.pi + 2 * waves.sum().real) / (2 * np.pi)


def values(theta: np.ndarray) -> np.ndarray:
    """The density itself, whose mean is 1."""
    waves = np.exp(1j * np.multiply.outer(theta, range(len(WAVES))))
    return 2 * (waves @ WAVES).real - 1


def main() -> int:
    quick = command_line(__doc__, "fewer samples").quick
    report = Report(["what", "case"], digits=8)
    check_tokens(report)
    check_consistency(report, 20 if quick else 200)
    check_masses(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
