"""How branches leave the uniform state: bifurcations, and their normal forms.

At kappa_c = 1/w_k a branch begins with a harmonic of degree k of the amplitude t in L^2,
m_k = t/sqrt(dim H_k),

    kappa = kappa_c (1 + c_1 t + c_2 t^2 + ...),

by inserting power series into R(m, kappa) = 0, order by order (Lyapunov and Schmidt). c_1 != 0
is transcritical; else c_2 > 0 is a supercritical pitchfork, c_2 < 0 a subcritical one.

Near a resonance, where degrees k and l have almost the same onset, the expansion holds at small
amplitudes only. On the branch of degree k the multiplier of a perturbation of degree l is, to first
order,

    1 - kappa_c w_l - g t,    g = int p_l^2 p_k dsigma,

so that a secondary branch bifurcates at an amplitude t of about the distance of the onsets, or its
square root if g = 0. Degree l has an amplitude of second order, proportional to int p_k^2 p_l
dsigma divided by this distance. Where the onsets coincide, the quadratic terms Q of both amplitudes
v = (v_k, v_l) decide: branches leave the uniform state along the rays v with c_1 v = Q(v), or of
the cubic terms if Q = 0.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .equation import StationaryEquation

VANISHES = 1e-10  # smaller coefficients count as zero
ZERO_PRECISION = 1e-14  # tolerance of zeros
TERMS, MORE_TERMS = 2, 4  # c_1 and c_2; up to c_4 for a weak bifurcation
WEAK = 0.05  # weak: c_1 = 0 and |c_2| is at most this, so that a fold may be near
WEAKEST = 0.01  # largest amplitude of a transition described by the normal form
SLOPES = np.linspace(-2, 2, 5)  # v_l/v_k at which forms of two amplitudes are evaluated
CLOSEST = 7e-4  # least amplitude of secondary branches for two onsets to count as distinct
TINY_NUMBER = 1e-300  # avoids divisions by zero
REAL_ROOT = 1e-6  # relative imaginary part below which a root is real


class NormalForm(NamedTuple):
    """Normal form of the branch that leaves the uniform state with a harmonic of degree k.

    Attributes
    ----------
    degree : int
    kappa : float
        kappa_c.
    linear, quadratic : float
        c_1 and c_2; c_2 is nan if another degree has the same multiplier and is excited by the
        square of this one.
    quartic : float
        c_4, if c_1 = 0 and c_2 is small; else nan.
    second : ndarray, (N,)
        Coefficients of t^2 of the Legendre moments.
    scale : float
        Estimate of the least amplitude t at which the branch folds or another one bifurcates; inf
        if the normal form has none. Degrees in `close` are left out.
    close : dict of int to float
        Relative distances of the onsets of other degrees that are too close to be distinguished.
    pure : bool
        Whether no degree in `close` is excited at orders t^2 and t^3.
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
    """The normal form at the onset of one degree, whose multiplier w must be positive."""
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
    """Coefficients in t of kappa/kappa_c, (terms + 1,), of the moments and of their residuals.

    The last two have the shape (terms + 2, N). c_i is nan from the order at which a resonance has
    no solution.
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
    """kappa and amplitude of a weak first-order transition, from c_2 and c_4.

    The free energy on the branch is that of the uniform state at t^2 = -3 c_2/(4 c_4), where kappa
    = kappa_c (1 - 3 c_2^2/(16 c_4)). Both are nan if t > 0.01 or there is no transition.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        amplitude = float(np.sqrt(-3 * form.quadratic / (4 * form.quartic)))
    if not (form.quadratic < 0 and amplitude <= WEAKEST):
        return float("nan"), float("nan")
    kappa = form.kappa * (1 - 3 * form.quadratic**2 / (16 * form.quartic))
    return float(kappa), amplitude


class Ray(NamedTuple):
    """A direction in which a branch leaves the uniform state, for two coinciding onsets.

    Attributes
    ----------
    direction : ndarray, (N,)
        Unit vector of amplitudes in L^2, nonzero for one or two degrees.
    linear, quadratic : float
        c_1 and c_2 along the ray; for two degrees one of them is 0.
    second : ndarray, (N,)
        Coefficients of t^2 of the Legendre moments.
    """

    direction: np.ndarray
    linear: float
    quadratic: float
    second: np.ndarray


def all_rays(equation: StationaryEquation, form: NormalForm) -> list[Ray]:
    """Directions in which branches leave an onset.

    The direction of its own degree, if the form is pure, and rays with each degree in `close`.
    """
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
    """Rays with nonzero amplitudes of both degrees, for equal onsets, at that of `degree`.

    Real zeros v of the form Q_k(v) v_l - Q_l(v) v_k, where Q are the quadratic terms of both
    amplitudes, or the cubic terms if the quadratic ones vanish.
    """
    basis, w = equation.basis, equation.multipliers(equation.basis)
    pair = [basis.index(degree), basis.index(other)]
    critical = 1 / w[pair[0]]
    linear = 1 - critical * w
    linear[pair] = linear[np.abs(linear) <= VANISHES] = np.inf

    def terms(slope: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """v (N,), quadratic and cubic terms (2,), and moments of second order, (N,), at v_l/v_k."""
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
    """A bifurcation of the uniform state on a curve with the parameter p: see `continuation`.

    Attributes
    ----------
    value : float
        Value of kappa or the parameter.
    form : NormalForm
    coordinate : float
        p at the onset.
    rate : float
        Change of p equivalent to a unit change of log kappa, near the onset.
    """

    value: float
    form: NormalForm
    coordinate: float
    rate: float

    def ahead(self, linear: float, quadratic: float, amplitude: float) -> float:
        """Estimate of p at a small amplitude on a branch with c_1 and c_2; nan if kappa <= 0."""
        change = linear * amplitude + quadratic * amplitude**2
        return self.coordinate + self.rate * float(np.log1p(change)) if change > -1 else np.nan


def zeros(f: Callable[[float], float], grid: np.ndarray, values: np.ndarray) -> Iterator[float]:
    """Zeros of f between neighbouring grid points where its `values` differ in sign.

    The sign changes at poles too: these yield a value next to the pole, or nothing.
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
