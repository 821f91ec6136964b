"""Modes of kernel density estimates, and their expected numbers by the formula of Kac and Rice."""

import sys

import numpy as np
from scipy.special import ive
from scipy.stats import norm

import meanfield as mf

__all__ = ["MANY", "fastest_degree", "mean_of", "modes_on_circle", "modes_on_line", "places_of"]

MANY = float(np.sqrt(1.5) / (2 * np.pi))  # modes in a bandwidth, of very many uniform tokens


def places_of(tokens: mf.Tokens, beta: float) -> np.ndarray:
    """The modes; the script ends if one is undecided."""
    modes = mf.kernel_modes(tokens, beta)
    if modes.undecided:
        sys.exit(f"{modes.undecided} critical points of {tokens!r} are undecided.")
    return modes.places


def mean_of(samples) -> tuple[float, float]:
    """Mean and standard error."""
    samples = np.asarray(samples, dtype=float)
    return samples.mean(), samples.std(ddof=1) / np.sqrt(len(samples))


def _degrees(beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Degrees k, and I_k(beta) e^-beta."""
    k = np.arange(1, 40 + int(8 * np.sqrt(beta)))
    return k, ive(k, beta)


def fastest_degree(beta: float) -> int:
    """k*, which grows fastest from the uniform state."""
    k, kernel = _degrees(beta)
    return 1 + int((k**2 * kernel).argmax())


def modes_on_circle(beta: float, t: float = 0.0) -> float:
    """Of many independent uniform tokens, which SA has moved for the time t.

    Deviations from the uniform density are a stationary Gaussian process, white at t = 0. Its
    degree k grows like e^(s_k t), s_k = k^2 I_k/(beta I_0), while they are small, and the
    estimate has I_k times it: with P_k = (I_k e^(s_k t))^2 there are
    (sum k^4 P_k/sum k^2 P_k)^(1/2) maxima.
    """
    k, kernel = _degrees(beta)
    power = k**2 * kernel**2 * np.exp(2 * t * k**2 * kernel / (beta * ive(0, beta)))
    return float(np.sqrt((k**2 * power).sum() / power.sum()))


def modes_on_line(beta: float, n: int, reach: float) -> float:
    """Of n standard Gaussian tokens, within `reach` of 0, f' and f'' taken for Gaussian.

    The density of falling zeros of F = sum q s/n at x is p_F(0) E[max(-G, 0) | F = 0], G = F' =
    sum q (beta s^2 - 1)/n, whose means and covariances are Gaussian integrals.
    """
    nodes, weights = np.polynomial.legendre.leggauss(400)
    x = reach * nodes

    def moments(b: float) -> list[np.ndarray]:
        """int s^k e^(-b s^2/2) of a standard Gaussian, s = y - x, k = 0 to 4."""
        m, v = -x / (1 + b), 1 / (1 + b)
        height = np.sqrt(v) * np.exp(-b * v * x**2 / 2)
        powers = (1, m, m**2 + v, m**3 + 3 * m * v, m**4 + 6 * m**2 * v + 3 * v**2)
        return [height * power for power in powers]

    a, squares = moments(beta), moments(2 * beta)
    F, G = a[1], beta * a[2] - a[0]
    FF = (squares[2] - F**2) / n
    FG = (beta * squares[3] - squares[1] - F * G) / n
    GG = (beta**2 * squares[4] - 2 * beta * squares[2] + squares[0] - G**2) / n
    mean, deviation = G - FG / FF * F, np.sqrt(GG - FG**2 / FF)
    falls = deviation * norm.pdf(mean / deviation) - mean * norm.cdf(-mean / deviation)
    return float(reach * weights @ (norm.pdf(F / np.sqrt(FF)) / np.sqrt(FF) * falls))
