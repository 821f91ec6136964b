"""How states leave the uniform one: the first terms of kappa and of the moments in the amplitude.

At kappa_c = 1/w_k the moment a_k = amplitude of a harmonic of degree k becomes possible,

    kappa = kappa_c (1 + c_1 amplitude + c_2 amplitude^2 + ...),

found by putting power series into R(a, kappa) = 0, order by order (Lyapunov and Schmidt). c_1 != 0
is transcritical; else c_2 > 0 is a supercritical pitchfork, c_2 < 0 a subcritical one.
"""

from typing import NamedTuple

import numpy as np

from .equation import Equation

__all__ = ["NormalForm", "normal_form"]

ORDER = 4  # coefficients of a series: amplitude^0 to amplitude^3
VANISHES = 1e-10


class NormalForm(NamedTuple):
    """The branch that leaves the uniform state with a harmonic of degree k.

    Attributes
    ----------
    degree : int
    kappa : float
        kappa_c.
    linear, quadratic : float
        c_1 and c_2.
    second : ndarray
        Moments of order amplitude^2.
    """

    degree: int
    kappa: float
    linear: float
    quadratic: float
    second: np.ndarray

    @property
    def kind(self) -> str:
        """ "transcritical", "supercritical", "subcritical" or "degenerate"."""
        if abs(self.linear) > VANISHES:
            return "transcritical"
        if abs(self.quadratic) <= VANISHES:
            return "degenerate"
        return "supercritical" if self.quadratic > 0 else "subcritical"


def normal_form(equation: Equation, degree: int) -> NormalForm:
    """That of one degree; its multiplier w must be positive."""
    index = int(np.flatnonzero(equation.degrees == degree)[0])
    w = equation.weights
    critical = 1 / w[index]
    a, kappa = np.zeros((ORDER, len(w))), np.zeros(ORDER)
    a[1, index], kappa[0] = 1.0, critical
    linear = 1 - critical * w
    residual = _residual(equation, a, kappa)
    kappa[1] = residual[2, index] / w[index]
    with np.errstate(divide="ignore", invalid="ignore"):
        a[2] = np.where(np.arange(len(w)) == index, 0.0, -residual[2] / linear)
    kappa[2] = _residual(equation, a, kappa)[3, index] / w[index]
    return NormalForm(degree, critical, kappa[1] / critical, kappa[2] / critical, a[2])


def _residual(equation: Equation, a: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    """Coefficients (ORDER, N) of R(a(t), kappa(t)) as a series in t."""
    s = (equation.weights * a) @ equation.values
    potential = s
    if equation.beta:
        potential = _log1p(equation.beta * s) / equation.beta
    density = _exp(_times(kappa[:, None] * np.ones_like(s), potential))
    weighted = density * equation.basis.weights
    mass = weighted.sum(axis=1)
    inverse = np.zeros(ORDER)
    inverse[0] = 1 / mass[0]
    for k in range(1, ORDER):
        inverse[k] = -(mass[1 : k + 1] @ inverse[k - 1 :: -1][:k]) / mass[0]
    moments = weighted @ equation.values.T
    return a - _times(np.broadcast_to(inverse[:, None], moments.shape), moments)


def _times(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The product of two series."""
    return np.stack([sum(f[i] * g[k - i] for i in range(k + 1)) for k in range(ORDER)])


def _exp(f: np.ndarray) -> np.ndarray:
    """exp(f): h' = f' h."""
    h = np.zeros_like(f)
    h[0] = np.exp(f[0])
    for k in range(1, ORDER):
        h[k] = sum(i * f[i] * h[k - i] for i in range(1, k + 1)) / k
    return h


def _log1p(f: np.ndarray) -> np.ndarray:
    """log(1 + f): (1 + f) h' = f'."""
    h = np.zeros_like(f)
    h[0] = np.log1p(f[0])
    for k in range(1, ORDER):
        inner = sum(i * h[i] * f[k - i] for i in range(1, k)) / k
        h[k] = (f[k] - inner) / (1 + f[0])
    return h
