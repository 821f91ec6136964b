"""Compiled steps of noise on the sphere, and the law of the angle of a Brownian motion.

Imported when the first step is taken: it needs numba and scipy.
"""

from functools import cache, lru_cache

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.special import gammainc

from ..core.errors import MeanfieldError
from ..lowlevel.compilation import njit

CHI_SQUARE_NODES = 128  # of the chi-square law; exact to rounding for every D >= 2 and s


@njit(cache=True, nogil=True)
def turn(x: np.ndarray, deviation: np.ndarray, normals: np.ndarray, result: np.ndarray) -> None:
    """Turn every token on the circle by deviation (R,) times a normal number; into `result`."""
    replicas, n, _ = x.shape
    for r in range(replicas):
        for i in range(n):
            angle = deviation[r] * normals[r, i, 0]
            cosine, sine = np.cos(angle), np.sin(angle)
            first = cosine * x[r, i, 0] - sine * x[r, i, 1]
            second = sine * x[r, i, 0] + cosine * x[r, i, 1]
            length = np.sqrt(first**2 + second**2)  # 1, up to the rounding of earlier steps
            result[r, i, 0], result[r, i, 1] = first / length, second / length


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def step(
    x: np.ndarray, a: np.ndarray, b: np.ndarray, normals: np.ndarray, result: np.ndarray
) -> None:
    """The step of isotropic noise for d >= 3, see `Isotropic`; a and b (R,); into `result`."""
    replicas, n, d = x.shape
    for r in range(replicas):
        for i in range(n):
            token, normal, moved = x[r, i], normals[r, i], result[r, i]
            along = q = length = 0.0
            for k in range(d):
                along += token[k] * normal[k]
            for k in range(d):
                moved[k] = normal[k] - along * token[k]
                q += moved[k] * moved[k]
            stretch = a[r] * (1 + b[r] * q)
            forward, sideways = 1 - stretch * q, 2 * np.sqrt(stretch)
            for k in range(d):
                moved[k] = forward * token[k] + sideways * moved[k]
                length += moved[k] * moved[k]
            length = np.sqrt(length)  # 1 + w, up to the rounding of earlier steps
            for k in range(d):
                moved[k] /= length


@njit(cache=True)
def boost(x: np.ndarray, scale: np.ndarray, deviations: np.ndarray, normals: np.ndarray) -> None:
    """Boosts along the axes, in place; scale (R,)."""
    replicas, n, d = x.shape
    for r in range(replicas):
        for i in range(n):
            space, time = x[r, i], 1.0
            for step in range(d):
                k = step if normals[r, i, d] < 0 else d - 1 - step
                up = np.exp(scale[r] * deviations[k] * normals[r, i, k])
                cosh, sinh = (up + 1 / up) / 2, (up - 1 / up) / 2
                space[k], time = space[k] * cosh + time * sinh, time * cosh + space[k] * sinh
            length = 0.0  # time, up to rounding
            for k in range(d):
                length += space[k] ** 2
            length = np.sqrt(length)
            for k in range(d):
                space[k] /= length


# The law of the distance that Brownian motion goes, exact in degrees 1 and 2 -------------------


@lru_cache(maxsize=65536)
def stretch_of(d: int, s: float) -> tuple[float, float]:
    """The numbers (a, b) for which tan^2(rho/2) = a q (1 + b q), q = chi^2_D, D = d - 1.

    Brownian motion of generator Lap, started from x, is after the time s at an angle rho from x
    with E P_l(cos rho) = e^(-l (l + d - 2) s), P_l the zonal harmonic of degree l with
    P_l(1) = 1. With u = sin^2(rho/2), degrees 1 and 2 say

        E u   = (1 - e^(-D s))/2
        E u^2 = (1 - e^(-D s))/2 - (D/4d) (1 - e^(-2 d s))

    and (a, b) is the solution of these two equations. As s -> 0, a = s/2 - (d - 2) s^2/6 and
    b = s/3, to higher order. Zonal harmonics are polynomials in u of degree l. The heat kernel
    has u = (s/2) q (1 + s (alpha + gamma q) + O(s^2)) in law for some alpha and gamma, which two
    moments determine: E u^l, of size s^l, is exact to a relative O(s^2), and the degrees >= 3
    have an error of O(s^5) in one step.

    Parameters
    ----------
    d : int
        Ambient dimension, >= 3: on the circle the angle is normal, and this is not needed.
    s : float
        Time, > 0, as long as one likes: as s -> inf the law becomes that of uniform points, with
        an error in degrees >= 3.

    Returns
    -------
    a, b : float
        Both > 0, so that tan^2(rho/2) >= 0 and rho lies in [0, pi).

    Raises
    ------
    MeanfieldError
        If no positive solution is found; 3 <= d <= 8192 and 1e-9 <= d s <= 1e7 were searched,
        and all have one, with b > min(s, 1/d)/4.

    Notes
    -----
    Newton's method from the solution for d -> inf at fixed D s = t, where q/D -> 1:
    a D (1 + b D) = tanh(t/2) gives the mean, and the variance of the angle, of order 1/D, gives
    (1 + f)^2 = 2 (1 - (1 + 2t) e^(-2t))/(1 - e^(-2t))^2 with f = b D/(1 + b D). It takes at most
    six steps, a millisecond in all; results are remembered.
    """
    D = d - 1
    if D * s < 1e-8:  # the next terms are (D s)^2: less than rounding
        return s / 2, s / 3
    f = np.sqrt(2 * gammainc(2, 2 * D * s)) / -np.expm1(-2 * D * s) - 1
    B = f / (1 - f)
    A, B = _newton(d, s, np.tanh(D * s / 2) / (1 + B), B)
    return float(A / D), float(B / D)


def _newton(d: int, s: float, A: float, B: float) -> tuple[float, float]:
    """The solution (A, B) = (a D, b D), from a start nearby."""
    D = d - 1
    q, weights = chi_square_rule(D)
    y = q / D
    first, second = _moments(d, s)
    for _ in range(12):
        w = A * y * (1 + B * y)
        u, slope = w / (1 + w), 1 / (1 + w) ** 2
        moments = np.array([weights @ u / first, weights @ u**2 / second])
        by_log_A = [weights @ (slope * w) / first, weights @ (2 * u * slope * w) / second]
        rise = A * y**2
        by_B = [weights @ (slope * rise) / first, weights @ (2 * u * slope * rise) / second]
        log_A, increase = np.linalg.solve(np.array([by_log_A, by_B]).T, 1 - moments)
        A, B = A * np.exp(log_A), B + increase
        if B > 0 and abs(log_A) + abs(increase) < 1e-10:  # the next error is D times its square
            return A, B
    raise MeanfieldError(
        f"No law of the angle was found for d = {d} and s = dt/kappa = {s}; use a shorter dt."
    )


def _moments(d: int, s: float) -> tuple[float, float]:
    """E u and E u^2, without cancellation for small s (where E u^2 = D (D + 2) s^2/4) or large."""
    D = d - 1
    second = D * s / 2 * np.exp(-D * s) * -np.expm1(-(d + 1) * s)  # P(2, y) = 1 - (1 + y) e^(-y)
    second += gammainc(2, D * s) / 2 - D / (4 * d) * gammainc(2, 2 * d * s)
    return -np.expm1(-D * s) / 2, second


@cache
def chi_square_rule(D: int, nodes: int = CHI_SQUARE_NODES) -> tuple[np.ndarray, np.ndarray]:
    """Gauss quadrature of the law of q = chi^2_D: nodes and weights, which sum to 1.

    Exact for polynomials in q of degree < 2 `nodes`. By the eigenvectors of the Jacobi matrix of
    generalised Laguerre polynomials (Golub and Welsch), because the usual weights overflow for
    D > 340.
    """
    k, order = np.arange(nodes), D / 2 - 1
    points, vectors = eigh_tridiagonal(2 * k + order + 1, np.sqrt(k[1:] * (k[1:] + order)))
    return 2 * points, vectors[0] ** 2
