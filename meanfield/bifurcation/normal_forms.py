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
dsigma divided by this distance. Where two or more onsets coincide, the quadratic terms Q of all
amplitudes a decide: branches leave the uniform state along the rays a with c_1 a = Q(a), or of the
cubic terms if Q = 0 (`Neutral`). So do branches that leave any other state.
"""

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

import numpy as np

from .equation import StationaryEquation

VANISHES = 1e-10  # smaller coefficients count as zero
ZERO_PRECISION = 1e-14  # tolerance of zeros
TERMS, MORE_TERMS = 2, 4  # c_1 and c_2; up to c_4 for a weak bifurcation
WEAK = 0.05  # weak: c_1 = 0 and |c_2| is at most this, so that a fold may be near
WEAKEST = 0.01  # largest amplitude of a transition described by the normal form
MOST_MODES, CUBIC_ORDER = 5, 3  # largest number of amplitudes, and order of the last terms
FINEST_START, COARSEST_START, FINE_STARTS = 3, 1, 3  # integers of starts; finest up to 3 amplitudes
UNIT_DIGITS = 14  # of starts: more are rounding
RAY_ITERATIONS = 60  # of Newton's method for rays
ZERO_RAY, SAME_RAY, SINGULAR_RAY = 1e-12, 1e-9, 1e-6  # residual, 1 - |cosine|, singular value
LARGE_SHARE = 0.3  # of the squared amplitude of a perturbation: least one of its degree
CLOSEST = 7e-4  # least amplitude of secondary branches for two onsets to count as distinct
SLOW = 0.01  # least derivative of an onset by a parameter, relative to another, to count as moving
TINY_NUMBER = 1e-300  # avoids divisions by zero


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
    """

    degree: int
    kappa: float
    linear: float
    quadratic: float
    quartic: float
    second: np.ndarray
    scale: float
    close: dict[int, float]

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
    c, m = _expanded(equation, index, TERMS)
    if abs(c[1]) <= VANISHES and abs(c[2]) <= WEAK:
        c, m = _expanded(equation, index, MORE_TERMS)
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
    return NormalForm(degree, critical, c[1], c[2], c[4], m[2], scale, known)


def _to_fold(c: np.ndarray) -> float:
    """The amplitude at which kappa = kappa_c (1 + c_1 t + ...) turns back to leading order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        square = -c[2] / (2 * c[4])
        amplitude = abs(c[1] / (2 * c[2])) if abs(c[1]) > VANISHES else np.sqrt(square)
    return float(amplitude) if amplitude > 0 else np.inf


def _expanded(
    equation: StationaryEquation, index: int, terms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients in t of kappa/kappa_c, (terms + 1,), and of the moments, (terms + 2, N).

    c_i is nan from the order at which a resonance has no solution.
    """
    w, size = equation.multipliers(equation.basis), equation.basis.sizes[index]
    m, c = np.zeros((terms + 2, len(w))), np.zeros(terms + 1)
    critical = 1 / w[index]
    m[1, index], c[0] = 1 / size, 1.0
    linear = 1 - critical * w
    neutral = np.abs(linear) <= VANISHES
    others = neutral & (np.arange(len(w)) != index)
    for order in range(2, terms + 2):
        residual = equation.series(m, critical * np.append(c, 0.0))[order]
        c[order - 1] = residual[index] * size
        m[order] = -residual / np.where(neutral, np.inf, linear)
        if (np.abs(residual[others]) > VANISHES).any():
            c[order:] = np.nan
            break
    return c, m


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
    """A direction in which a branch leaves a state at which k perturbations are neutral.

    Attributes
    ----------
    direction : ndarray, (N,)
        Unit vector of amplitudes in L^2.
    linear, quadratic : float
        c_1 and c_2 along the ray; c_2 is 0 if c_1 is not.
    second : ndarray, (N,)
        Coefficients of t^2 of the moments.
    """

    direction: np.ndarray
    linear: float
    quadratic: float
    second: np.ndarray


class Rays(NamedTuple):
    """Isolated rays of k neutral perturbations.

    Attributes
    ----------
    rays : list of Ray
    complete : bool
        Whether the terms up to third order determine all of them.
    """

    rays: list[Ray]
    complete: bool

    @property
    def order(self) -> str:
        """Order of the transition: "continuous", "discontinuous" or "degenerate"."""
        if any(abs(ray.linear) > VANISHES or ray.quadratic < -VANISHES for ray in self.rays):
            return "discontinuous"
        decided = self.complete and all(ray.quadratic > VANISHES for ray in self.rays)
        return "continuous" if decided and self.rays else "degenerate"


class Neutral(NamedTuple):
    """A stationary state and its k neutral perturbations.

    Attributes
    ----------
    equation : StationaryEquation
    kappa : float
    base : ndarray, (N,)
        Moments of the state.
    right : ndarray, (N, k)
        Moments of the perturbations, of norm 1 in L^2.
    left : ndarray, (k, N)
        Left null vectors of dR/dm, such that left . R = -c_1 a t^2 for kappa = kappa_c (1 + c_1 t)
        and the perturbation t right a; for a parameter p of the drift, at p + c_1 t.
    solve : callable
        The solution m, (N,), of dR/dm m = r up to neutral perturbations, for r (N,).
    distance : float
        Largest singular value of dR/dm that counts as 0.
    slow : bool
        Whether the parameter hardly changes one of them: then no rays are computed.
    """

    equation: StationaryEquation
    kappa: float
    base: np.ndarray
    right: np.ndarray
    left: np.ndarray
    solve: Callable[[np.ndarray], np.ndarray]
    distance: float = 0.0
    slow: bool = False

    @classmethod
    def of(
        cls, equation: StationaryEquation, kappa: float, base: np.ndarray, change: np.ndarray,
        most: float,
    ) -> "Neutral | None":  # fmt: skip
        """The perturbations of a state for which singular values of dR/dm are at most `most`.

        None for fewer than two. `change` (N, N) is the derivative of dR/dm along the branch of the
        state, by log kappa or by the parameter.
        """
        even, mine = equation.basis.even, equation.basis.even.members
        scale = np.outer(even.sizes, 1 / even.sizes)
        block = equation.block(equation.mean(base, kappa), even) * scale
        left, values, right = np.linalg.svd(block)
        kept = int((values > most).sum())
        if len(values) - kept < 2:
            return None
        ends, starts = left[:, kept:].T, right[kept:]
        moving = ends @ (change[np.ix_(mine, mine)] * scale) @ starts.T
        slow = bool(np.linalg.cond(moving) > 1 / SLOW)
        moving = -np.eye(len(ends)) if slow else moving
        lefts, rights = np.zeros((len(ends), len(base))), np.zeros((len(base), len(ends)))
        lefts[:, mine] = -np.linalg.solve(moving, ends) * even.sizes
        rights[mine] = starts.T / even.sizes[:, None]

        def solve(residual: np.ndarray) -> np.ndarray:
            within = left[:, :kept].T @ (even.sizes * residual[mine]) / values[:kept]
            result = np.zeros_like(residual)
            result[mine] = right[:kept].T @ within / even.sizes
            return result

        return cls(equation, kappa, base, rights, lefts, solve, float(values[kept]), slow)

    @property
    def degrees(self) -> list[int]:
        """Degrees of the perturbations: those with most of their squared amplitudes."""
        basis = self.equation.basis
        squares = ((basis.sizes[:, None] * self.right) ** 2).sum(axis=1)
        return [int(l) for l in np.flatnonzero(np.bincount(basis.degrees, squares) > LARGE_SHARE)]

    def terms(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Quadratic and cubic terms, (k,) each, and moments of second order, (N,), along a (k,)."""
        m, kappa = np.zeros((4, len(self.base))), np.array([self.kappa, 0.0, 0.0, 0.0])
        m[0], m[1] = self.base, self.right @ a
        square = self.equation.series(m, kappa)[2]
        m[2] = -self.solve(square)
        return self.left @ square, self.left @ self.equation.series(m, kappa)[3], m[2]

    @property
    def starts(self) -> np.ndarray:
        """Unit vectors (n, k) from which rays are sought; none for more than five amplitudes."""
        size = self.right.shape[1]
        return _directions(size) if size <= MOST_MODES else np.zeros((0, size))

    def rays(self) -> Rays:
        """Rays a of the amplitudes, c_1 a = Q(a), or c_2 a = C(a) if the quadratic terms Q vanish.

        From many starts, by Newton's method. Along a ray with Q(a) = 0, c_2 and the change a' of
        its direction solve Q'(a) a' + C(a) = c_2 a, a . a' = 0.
        """
        starts = self.starts
        if self.slow or not len(starts):
            return Rays([], False)
        samples = [self.terms(a) for a in starts]
        for power, values in enumerate(zip(*samples, strict=True), start=2):
            form = _Form.fitted(starts, np.array(values), power)
            if np.abs(values).max() > VANISHES or power == CUBIC_ORDER:
                break
        found, complete = form.rays(starts)
        return Rays([self._ray(a, form) for a in found], complete)

    def _ray(self, a: np.ndarray, form: "_Form") -> Ray:
        square, cube, second = self.terms(a)
        c, d = float(a @ square), float(a @ cube)
        if form.power < CUBIC_ORDER and abs(c) <= VANISHES:
            *turn, d = np.linalg.solve(form.jacobian(a, 0.0), np.append(-cube, 0.0))
            second = second + self.right @ turn
        bent = form.power < CUBIC_ORDER and abs(c) > VANISHES
        direction = self.equation.basis.sizes * (self.right @ a)
        return Ray(direction, c, 0.0, second) if bent else Ray(direction, 0.0, float(d), second)


class _Form(NamedTuple):
    """A homogeneous polynomial map f of R^k, of degree `power`.

    Attributes
    ----------
    power : int
    factors : ndarray of int, (M, power)
        Indices of the variables whose product is each monomial.
    coefficients : ndarray, (M, k)
    """

    power: int
    factors: np.ndarray
    coefficients: np.ndarray

    @classmethod
    def fitted(cls, points: np.ndarray, values: np.ndarray, power: int) -> "_Form":
        """The map with given values (n, k) at points (n, k), n >= M."""
        factors = np.array([*combinations_with_replacement(range(points.shape[1]), power)])
        monomials = points[:, factors].prod(axis=2)
        return cls(power, factors, np.linalg.lstsq(monomials, values, rcond=None)[0])

    def at(self, a: np.ndarray) -> np.ndarray:
        """f at points a, (..., k)."""
        return a[..., self.factors].prod(axis=-1) @ self.coefficients

    def jacobian(self, a: np.ndarray, c: Any) -> np.ndarray:
        """Derivatives (..., k + 1, k + 1) of (f(a) - c a, (|a|^2 - 1)/2) by a (..., k) and c."""
        size = a.shape[-1]
        turned = a[..., None, :] + 1j * TINY_NUMBER * np.eye(size)
        matrix = np.zeros((*a.shape[:-1], size + 1, size + 1))
        matrix[..., :size, :size] = np.swapaxes(self.at(turned).imag / TINY_NUMBER, -1, -2)
        matrix[..., :size, :size] -= np.asarray(c)[..., None, None] * np.eye(size)
        matrix[..., :size, size], matrix[..., size, :size] = -a, a
        return matrix

    def rays(self, starts: np.ndarray) -> tuple[list[np.ndarray], bool]:
        """Isolated unit vectors a with f(a) = c a, up to sign, and whether all are isolated."""
        scale = float(np.abs(self.at(starts)).max())
        if scale <= VANISHES:
            return [], False
        form = self._replace(coefficients=self.coefficients / scale)
        a = starts.copy()
        for _ in range(RAY_ITERATIONS):
            f = form.at(a)
            c = (a * f).sum(axis=1)
            residual = np.column_stack([f - c[:, None] * a, np.zeros(len(a))])
            step = (np.linalg.pinv(form.jacobian(a, c)) @ residual[:, :, None])[:, :-1, 0]
            a = a - step
            a /= np.linalg.norm(a, axis=1)[:, None]
        found: list[np.ndarray] = []
        isolated = True
        for one, size in zip(a, np.abs(residual).max(axis=1), strict=True):
            if size > ZERO_RAY or any(abs(one @ other) > 1 - SAME_RAY for other in found):
                continue
            matrix = form.jacobian(one, one @ form.at(one))
            if np.linalg.svd(matrix, compute_uv=False)[-1] < SINGULAR_RAY:
                isolated = False
            else:
                one = np.where(np.abs(one) < SAME_RAY, 0.0, one)
                found.append(one / np.linalg.norm(one))
        return found, isolated


def _directions(size: int) -> np.ndarray:
    """Unit vectors (n, size) along vectors of small integers, one of every two opposite ones."""
    most = COARSEST_START if size > FINE_STARTS else FINEST_START
    grid = np.array([*product(range(-most, most + 1), repeat=size)], dtype=float)
    half = grid[len(grid) // 2 + 1 :]
    lengths = np.linalg.norm(half, axis=1)
    return np.unique(np.round(half / lengths[:, None], UNIT_DIGITS), axis=0)


def rays(equation: StationaryEquation, form: NormalForm, paces: np.ndarray | float = 1.0) -> Rays:
    """Rays of the uniform state at an onset, of its own degree and those in `close`.

    Onsets that are close are taken to be equal. Along a parameter other than kappa, `paces` are
    those of the `Onset`: R_l = -c_1 paces_l a_l t^2 to second order.
    """
    basis = equation.basis
    modes = np.flatnonzero(np.isin(basis.degrees, [form.degree, *form.close]))
    right = np.eye(len(basis.degrees))[:, modes]
    linear = 1 - form.kappa * equation.multipliers(basis)
    linear[modes] = linear[np.abs(linear) <= VANISHES] = np.inf
    sizes, moved = basis.sizes[modes], np.broadcast_to(paces, linear.shape)[modes]
    return Neutral(
        equation, form.kappa, np.zeros(len(linear)), right / sizes, (right * sizes / moved).T,
        lambda residual: residual / linear,
    ).rays()  # fmt: skip


def neutral_at(
    equation: StationaryEquation, kappa: float, base: np.ndarray, change: np.ndarray
) -> Neutral | None:
    """Perturbations of a state that become neutral together; None for fewer than two.

    Branches that begin apart meet at amplitudes as small as their distance by quadratic terms, as
    its square root by cubic ones: these count as one below 0.0007. Arguments as for `Neutral.of`.
    """
    found = Neutral.of(equation, kappa, base, change, CLOSEST)
    if found is None or any(np.abs(found.terms(a)[0]).max() > VANISHES for a in found.starts):
        return found
    return Neutral.of(equation, kappa, base, change, CLOSEST**2)


def order_of(equation: StationaryEquation, form: NormalForm) -> str:
    """Order of the transition at an onset, by its normal form.

    "continuous", "discontinuous" or, if the computed terms do not decide, "degenerate".
    """
    if form.close:
        return rays(equation, form).order
    if form.kind in ("subcritical", "transcritical"):
        return "discontinuous"
    if form.kind == "supercritical":
        return "continuous"
    if not abs(form.quartic) > VANISHES:
        return "degenerate"
    return "continuous" if form.quartic > 0 else "discontinuous"


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
    paces : ndarray, (N,)
        Derivatives by p of kappa w_l, for the degree l of each moment, relative to that of its own.
    """

    value: float
    form: NormalForm
    coordinate: float
    rate: float
    paces: np.ndarray

    def slow(self, degrees: np.ndarray) -> list[int]:
        """Degrees in `close`, of those of the moments (N,), with onsets that hardly move with p."""
        close = np.isin(degrees, [*self.form.close])
        return [int(l) for l in degrees[close & (np.abs(self.paces) < SLOW)]]

    def ahead(self, linear: float, quadratic: float, amplitude: float) -> float:
        """Estimate of p at a small amplitude on a branch with c_1 and c_2; nan if kappa <= 0."""
        change = linear * amplitude + quadratic * amplitude**2
        return self.coordinate + self.rate * float(np.log1p(change)) if change > -1 else np.nan


def zeros(
    f: Callable[[float], float], grid: np.ndarray, values: np.ndarray,
    precision: float = ZERO_PRECISION,
) -> Iterator[float]:  # fmt: skip
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
            ends = grid[i], grid[i + 1]
            yield float(brentq(known, *ends, xtol=precision, rtol=4 * precision))
        except FloatingPointError:
            continue
