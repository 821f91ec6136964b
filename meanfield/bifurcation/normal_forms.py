"""How branches leave the uniform state: bifurcations, and their normal forms.

At kappa_c = 1/w_k a harmonic of degree k with the amplitude t in L^2, m_k = t/sqrt(dim H_k) becomes
possible,

    kappa = kappa_c (1 + c_1 t + c_2 t^2 + ...),

found by putting power series into R(m, kappa) = 0, order by order (Lyapunov and Schmidt). c_1 != 0
is transcritical; else c_2 > 0 is a supercritical pitchfork, c_2 < 0 a subcritical one.

Near a resonance, where degrees k and l have almost the same onset, the expansion holds at small
amplitudes only. On the branch of degree k the multiplier of a perturbation of degree l is, to first
order,

    1 - kappa_c w_l - g t,    g = int p_l^2 p_k dsigma,

so that a secondary branch leaves it at an amplitude t of the size of the distance of the onsets, or
of its root where g = 0. It excites degree l at second order by int p_k^2 p_l dsigma over that.
Where the onsets coincide, the quadratic terms Q of both amplitudes v = (v_k, v_l) decide: branches
leave the uniform state along the rays v with c_1 v = Q(v), or of the cubic terms if Q = 0.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .equation import StationaryEquation

VANISHES = 1e-10
ZERO_PRECISION = 1e-14  # of a zero, relative
TERMS, MORE_TERMS = 2, 4  # c_1, c_2, and c_3, c_4 too where
WEAK = 0.05  # c_1 = 0 and |c_2| is smaller: a fold may be near
WEAKEST = 0.01  # amplitude of a transition that the normal form describes
SLOPES = np.linspace(-2, 2, 5)  # v_l/v_k at which forms of two amplitudes are evaluated
CLOSEST = 7e-4  # amplitude of secondary branches at which two onsets count as one
TINY_NUMBER = 1e-300
REAL_ROOT = 1e-6  # imaginary parts of a real root


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
    quartic : float
        c_4, if c_1 = 0 and c_2 is small; else nan.
    second : ndarray
        Legendre moments of order t^2.
    scale : float
        About the least amplitude t at which the branch folds or another one leaves it; inf where
        the normal form knows of none. Degrees `close` are left out.
    close : dict of int to float
        Other degrees whose onsets are so close that they count as one, and their relative distance.
    pure : bool
        Whether none of these is excited at orders t^2 and t^3.
    """

    degree: int
    kappa: float
    linear: float
    quadratic: float
    quartic: float
    second: np.ndarray
    scale: float
    close: dict[int, float]
    pure: bool

    @property
    def kind(self) -> str:
        """ "transcritical", "supercritical", "subcritical" or "degenerate"."""
        if abs(self.linear) > VANISHES:
            return "transcritical"
        if not abs(self.quadratic) > VANISHES:
            return "degenerate"
        return "supercritical" if self.quadratic > 0 else "subcritical"


def normal_form(equation: StationaryEquation, degree: int) -> NormalForm:
    """The normal form of one degree, whose multiplier w must be positive."""
    basis, index = equation.basis, equation.basis.index(degree)
    critical = 1 / equation.multipliers(basis)[index]
    c, m, residuals = _expanded(equation, index, TERMS)
    if abs(c[1]) <= VANISHES and abs(c[2]) <= WEAK:
        c, m, residuals = _expanded(equation, index, MORE_TERMS)
    c = np.append(c, np.full(MORE_TERMS + 1 - len(c), np.nan))
    apart = np.abs(1 - critical * equation.multipliers(basis))
    own = basis.values[index]
    coupling = np.maximum(
        np.abs(basis.values**2 @ (own * basis.weights)),
        np.abs(basis.values @ (own**2 * basis.weights)),
    )
    amplitudes = apart / np.maximum(np.maximum(coupling, np.sqrt(apart)), TINY_NUMBER)
    others = basis.degrees != degree
    close = others & (amplitudes <= CLOSEST)
    scale = min(float(amplitudes[others & ~close].min(initial=np.inf)), _to_fold(c))
    known = {int(basis.degrees[i]): float(apart[i]) for i in np.flatnonzero(close)}
    pure = bool((np.abs(residuals[:4, close]) <= VANISHES).all())
    return NormalForm(degree, critical, c[1], c[2], c[4], m[2], scale, known, pure)


def _to_fold(c: np.ndarray) -> float:
    """The amplitude at which kappa = kappa_c (1 + c_1 t + ...) turns back to leading order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        square = -c[2] / (2 * c[4])
        amplitude = abs(c[1] / (2 * c[2])) if abs(c[1]) > VANISHES else np.sqrt(square)
    return float(amplitude) if amplitude > 0 else np.inf


def _expanded(
    equation: StationaryEquation, index: int, terms: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """1, c_1, ..., and the moments of order t^0, t^1, ..., with the residuals that they cancel.

    c_i is nan from where a resonance forbids it.
    """
    w, size = equation.multipliers(equation.basis), equation.basis.sizes[index]
    m, c = np.zeros((terms + 2, len(w))), np.zeros(terms + 1)
    critical = 1 / w[index]
    residuals = np.zeros_like(m)
    m[1, index], c[0] = 1 / size, 1.0
    linear = 1 - critical * w
    neutral = np.abs(linear) <= VANISHES
    others = neutral & (np.arange(len(w)) != index)
    for order in range(2, terms + 2):
        residuals[order] = residual = equation.series(m, critical * np.append(c, 0.0))[order]
        c[order - 1] = residual[index] * size
        m[order] = -residual / np.where(neutral, np.inf, linear)
        if (np.abs(residual[others]) > VANISHES).any():
            c[order:] = np.nan
            break
    return c, m, residuals


def weak_transition(form: NormalForm) -> tuple[float, float]:
    """kappa and amplitude of a first-order transition so weak that c_2 and c_4 determine it.

    The free energy on the branch is that of the uniform state at t^2 = -3 c_2/(4 c_4), where kappa
    = kappa_c (1 - 3 c_2^2/(16 c_4)). Nan where t > 0.01 or there is none.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        amplitude = float(np.sqrt(-3 * form.quadratic / (4 * form.quartic)))
    if not (form.quadratic < 0 and amplitude <= WEAKEST):
        return float("nan"), float("nan")
    kappa = form.kappa * (1 - 3 * form.quadratic**2 / (16 * form.quartic))
    return float(kappa), amplitude


class Ray(NamedTuple):
    """A direction in which a branch leaves the uniform state where two onsets coincide.

    Attributes
    ----------
    direction : ndarray, (N,)
        Amplitudes in L^2, of length 1: those of two degrees.
    linear, quadratic : float
        c_1 and c_2; c_2 is 0 where c_1 is not.
    second : ndarray
        Legendre moments of order t^2.
    """

    direction: np.ndarray
    linear: float
    quadratic: float
    second: np.ndarray


def all_rays(equation: StationaryEquation, form: NormalForm) -> list[Ray]:
    """The directions in which branches leave an onset: that of its own degree alone, if it is one,
    and those of its degree and one `close` to it."""
    basis, directions = equation.basis, []
    alone = np.zeros(len(basis.degrees))
    alone[basis.index(form.degree)] = 1.0
    if form.pure:
        directions.append(Ray(alone, form.linear, form.quadratic, form.second))
    for other in form.close:
        if other in basis.single:
            directions += rays(equation, form.degree, other)
    return directions


def rays(equation: StationaryEquation, degree: int, other: int) -> list[Ray]:
    """Rays along which both degrees take part, with the onset of the first one for both.

    Real zeros of the form Q_k(v) v_l - Q_l(v) v_k, with Q the quadratic terms of both amplitudes,
    or the cubic ones if there are none.
    """
    basis, w = equation.basis, equation.multipliers(equation.basis)
    pair = [basis.index(degree), basis.index(other)]
    critical = 1 / w[pair[0]]
    linear = 1 - critical * w
    linear[pair] = linear[np.abs(linear) <= VANISHES] = np.inf

    def terms(slope: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """v, Q(v), the cubic terms, and the moments of second order."""
        v, m, kappa = np.zeros(len(w)), np.zeros((4, len(w))), np.array([critical, 0, 0, 0])
        v[pair] = np.array([1.0, slope]) / np.hypot(1.0, slope)
        m[1] = v / basis.sizes
        square = equation.series(m, kappa)[2]
        m[2] = -square / linear
        cube = equation.series(m, kappa)[3]
        return v, (basis.sizes * square)[pair], (basis.sizes * cube)[pair], m[2]

    samples = [terms(slope) for slope in SLOPES]
    cubic = max(np.abs(square).max() for _, square, *_ in samples) <= VANISHES
    power, which = (4, 2) if cubic else (3, 1)
    forms = [
        (
            directions[which][0] * directions[0][pair[1]]
            - directions[which][1] * directions[0][pair[0]]
        )
        * np.hypot(1.0, slope) ** power
        for slope, directions in zip(SLOPES, samples, strict=True)
    ]
    polynomial = np.polynomial.Polynomial.fit(SLOPES, forms, power).convert().coef
    scale = float(np.abs(polynomial).max())
    if scale <= VANISHES:
        return []
    directions = []
    coefficients = np.where(np.abs(polynomial) > VANISHES * scale, polynomial, 0.0)
    for root in np.roots(np.trim_zeros(coefficients, "b")[::-1]).astype(complex):
        if abs(root.imag) > REAL_ROOT * abs(root) or abs(root) < REAL_ROOT:
            continue
        v, square, cube, second = terms(float(root.real))
        along = v[pair]
        if max(abs(along @ square), abs(along @ cube)) > VANISHES:
            directions.append(
                Ray(v, 0.0 if cubic else along @ square, along @ cube * cubic, second)
            )
    return directions


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

    def ahead(self, linear: float, quadratic: float, amplitude: float) -> float:
        """The coordinate of the state with a small amplitude on a branch with c_1 and c_2."""
        change = linear * amplitude + quadratic * amplitude**2
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
            yield float(
                brentq(known, grid[i], grid[i + 1], xtol=ZERO_PRECISION, rtol=4 * ZERO_PRECISION)
            )
        except FloatingPointError:
            continue
