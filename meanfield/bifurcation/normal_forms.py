"""How branches leave the uniform state: bifurcations, and their normal forms.

At kappa_c = 1/w_k a harmonic of degree k with the amplitude t in L^2, m_k = t/sqrt(dim H_k) becomes
possible,

    kappa = kappa_c (1 + c_1 t + c_2 t^2 + ...),

found by putting power series into R(m, kappa) = 0, order by order (Lyapunov and Schmidt). c_1 != 0
is transcritical; else c_2 > 0 is a supercritical pitchfork, c_2 < 0 a subcritical one.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .equation import Equation

ORDER = 4  # coefficients of a series: t^0 to t^3
VANISHES = 1e-10
EXACT = 1e-14  # of a zero, relative


class NormalForm(NamedTuple):
    """The branch that leaves the uniform state with a harmonic of degree k.

    Attributes
    ----------
    degree : int
    kappa : float
        kappa_c.
    linear, quadratic : float
        c_1 and c_2; c_2 is nan where another degree, which the square of this one contains, has the
        same multiplier.
    second : ndarray
        Legendre moments of order t^2.
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
        if not abs(self.quadratic) > VANISHES:
            return "degenerate"
        return "supercritical" if self.quadratic > 0 else "subcritical"


def normal_form(equation: Equation, degree: int) -> NormalForm:
    """That of one degree; its multiplier w must be positive."""
    index, w = equation.basis.index(degree), equation.multipliers(equation.basis)
    critical, size = 1 / w[index], equation.basis.sizes[index]
    m, kappa = np.zeros((ORDER, len(w))), np.zeros(ORDER)
    m[1, index], kappa[0] = 1 / size, critical
    linear = 1 - critical * w
    residual = _residual(equation, m, kappa)
    kappa[1] = residual[2, index] * size / w[index]
    critical_too = np.abs(linear) <= VANISHES
    m[2] = -residual[2] / np.where(critical_too, np.inf, linear)
    kappa[2] = _residual(equation, m, kappa)[3, index] * size / w[index]
    others = critical_too & (np.arange(len(w)) != index)
    if (np.abs(residual[2, others]) > VANISHES).any():
        kappa[2] = np.nan
    return NormalForm(degree, critical, kappa[1] / critical, kappa[2] / critical, m[2])


class Onset(NamedTuple):
    """A bifurcation of the uniform state, in a coordinate of a path: see `continuation`.

    Attributes
    ----------
    value : float
        Of the parameter.
    form : NormalForm
    coordinate : float
    rate : float
        d(coordinate)/dlog kappa_c, the shift of the coordinate that does what log kappa does.
    """

    value: float
    form: NormalForm
    coordinate: float
    rate: float

    def ahead(self, amplitude: float) -> float:
        """The coordinate of the state with a small amplitude."""
        if amplitude == 0:
            return self.coordinate
        change = self.form.linear * amplitude + self.form.quadratic * amplitude**2
        return self.coordinate + self.rate * float(np.log1p(change)) if change > -1 else np.nan


def zeros(f: Callable[[float], float], grid: np.ndarray, values: np.ndarray) -> Iterator[float]:
    """Zeros of a function that has these values on a grid, where neighbours differ in sign.

    The sign changes at poles too: there it gives a value next to the pole, or nothing.
    """
    from scipy.optimize import brentq

    def known(x: float) -> float:
        if not np.isfinite(value := f(x)):
            raise FloatingPointError
        return value

    for i in np.flatnonzero(values[:-1] * values[1:] < 0):
        try:
            yield float(brentq(known, grid[i], grid[i + 1], xtol=EXACT, rtol=4 * EXACT))
        except FloatingPointError:
            continue


def _residual(equation: Equation, m: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    """Coefficients (ORDER, N) of R(m(t), kappa(t)) as a series in t."""
    s = (equation.strengths * m) @ equation.functions
    potential = s
    if equation.ratio:
        potential = _log1p(equation.ratio * s) / equation.ratio
    density = _exp(_times(kappa[:, None] * np.ones_like(s), potential))
    weighted = density * equation.basis.weights
    mass = weighted.sum(axis=1)
    inverse = np.zeros(ORDER)
    inverse[0] = 1 / mass[0]
    for k in range(1, ORDER):
        inverse[k] = -(mass[1 : k + 1] @ inverse[k - 1 :: -1][:k]) / mass[0]
    moments = weighted @ equation.functions.T
    return m - _times(np.broadcast_to(inverse[:, None], moments.shape), moments)


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
