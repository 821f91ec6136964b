"""Reduced models of symmetric tokens: scalar equations, quadratures and tables.

All inner products of n tokens equal rho(t), the equiangular model:

    SA   rho' = 2 e^{beta rho} (1 - rho) ((n - 1) rho + 1) / (e^beta + (n - 1) e^{beta rho})
    USA  rho' = (2/n) e^{beta rho} (1 - rho) ((n - 1) rho + 1)

Two tokens, a regular k-gon: see the functions.

Reference: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, theorem 6.8.
"""

import numpy as np
from scipy.integrate import quad, solve_ivp

__all__ = ["BETAS", "TIMES", "fastest_growth", "normalised", "passage_time", "two_tokens"]

BETAS = (0, 0.1, 1, 2, 3, 4, 5, 6, 7, 8, 9)
TIMES = {  # at which rho = 0.999 from rho = 0, to ten decimals
    ("SA", 32): [
        *(5.1862609811, 5.1920631182, 5.2702839076, 5.4583936829, 5.8976093457, 6.9535018488),
        *(9.5443292035, 15.9953135492, 32.2331047274, 73.4456759110, 178.7309295190),
    ],
    ("USA", 32): [
        *(5.1862609811, 4.8607226982, 2.8970486230, 1.8804170996, 1.3915191192, 1.1307703413),
        *(0.9746065980, 0.8702302583, 0.7939621871, 0.7344912435, 0.6859876689),
    ],
    ("SA", 128): [
        *(5.8793964314, 5.8813851649, 5.9090203968, 5.9786728682, 6.1480872992, 6.5695498928),
        *(7.6342457206, 10.3530182408, 17.3504240087, 35.4674725696, 82.5933575020),
    ],
}


def passage_time(drift: str, beta: float, n: float = 32, rho: float = 0.999) -> float:
    """The time from orthogonal tokens to the inner product rho: the integral of 1/rho'.

    In s = log(1 + (n - 1) rho), which is smooth for large n too.
    """

    def slowness(s: float) -> float:
        r = np.expm1(s) / (n - 1)
        weights = np.exp(beta * (1 - r)) + n - 1 if drift == "SA" else n * np.exp(-beta * r)
        return weights / (2 * (1 - r) * (n - 1))

    end = np.log1p((n - 1) * rho)
    return quad(slowness, 0, end, epsabs=0, epsrel=1e-12, limit=400)[0]


def normalised(scheme: str, times, beta: float = 1.0, n: int = 32, tau: float = 2.0):
    """1 - rho and r at these times, from orthogonal tokens with r = 1, by scheme of normalisation.

    SA: rho' = (2/s) e^{beta rho} (1 - rho) (1 + (n - 1) rho) / Z and r' = g, with

        PostLN s = 1, g = 0;    SqrtScaling s = sqrt(t + 1), g = 0;    NGPT s = |A|, g = 0
        PreLN s = r, g = <x, A>;    PeriLN s = r |A|, g = <x, A>/|A|;    MixLN Post, then Pre

    solved for log(1 - rho) and log r, in which late times lose no digits.
    """

    def slope(t, y):
        gap, r = np.exp(y)
        rho, q = 1 - gap, np.exp(-beta * gap)
        Z = 1 + (n - 1) * q
        along = (1 + (n - 1) * rho * q) / Z
        square = 1 + 2 * (n - 1) * rho * q + q**2 * (n - 1) * (1 + (n - 2) * rho)
        length = np.sqrt(square) / Z
        s, g = {
            "PostLN": (1, 0),
            "SqrtScaling": (np.sqrt(t + 1), 0),
            "NGPT": (length, 0),
            "PreLN": (r, along),
            "PeriLN": (r * length, along / length),
            "MixLN": (1, 0) if t < tau else (r, along),
        }[scheme]
        return [-2 / s * q * (1 + (n - 1) * rho) / Z, g / r]

    y, found, start = np.zeros(2), {}, 0.0
    for t in sorted({*times, tau}):  # tau is a time at which a step ends
        piece = (start, np.nextafter(t, 0))
        y = solve_ivp(slope, piece, y, rtol=1e-13, atol=1e-14, method="DOP853").y[:, -1]
        start, found[t] = t, np.exp(y)
    return np.array([found[t] for t in times]).T


def two_tokens(drift: str, beta: float, angle: float, times) -> np.ndarray:
    """The angle between two tokens of equal masses, at these times.

    phi' = -2 sin(phi)/(1 + e^{beta(1 - cos phi)}) for SA, -e^{beta cos phi} sin(phi) for USA.
    """

    def slope(_t, phi):
        if drift == "SA":
            return -2 * np.sin(phi) / (1 + np.exp(beta * (1 - np.cos(phi))))
        return -np.exp(beta * np.cos(phi)) * np.sin(phi)

    options = {"rtol": 1e-13, "atol": 1e-15, "method": "DOP853", "t_eval": times}
    return solve_ivp(slope, (0, times[-1]), [angle], **options).y[0]


def fastest_growth(drift: str, beta: float, k: int) -> tuple[float, int]:
    """The rate of the fastest mode of a regular k-gon of equal masses, and that mode m.

    -(1/k) sum_l g(2 pi l/k) (1 - cos(2 pi l m/k)) for USA, g = (cos - beta sin^2) e^{beta cos};
    for SA divided by (1/k) sum_l e^{beta cos(2 pi l/k)}.
    """
    angle = 2 * np.pi * np.arange(k) / k
    kernel = (np.cos(angle) - beta * np.sin(angle) ** 2) * np.exp(beta * np.cos(angle))
    rates = [-(kernel * (1 - np.cos(m * angle))).mean() for m in range(1, k)]
    weight = np.exp(beta * np.cos(angle)).mean() if drift == "SA" else 1.0
    return max(rates) / weight, 1 + int(np.argmax(rates))
