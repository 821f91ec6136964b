"""The equation of stationary states with a given symmetry.

mu is stationary under the drift v = grad(W * mu)/(Z * mu) with noise kappa if v = grad g[mu] and

    mu = exp(kappa g[mu]) / int exp(kappa g[mu]).

There is such a g where Z is constant, and where Z' = c W':

    g = W * mu / Z           (USA, Kuramoto, Interaction: c = 0),
    g = log(Z * mu) / c      (SA: c = beta).

In the Legendre moments m_l = int P_l dmu, |m_l| <= 1, l >= 1, this is R(m) = 0 with

    R_l(m) = m_l - E P_l,    dR_l/dm_j = delta_lj - kappa W_j Cov(P_l, g' P_j),

where E is the mean with respect to exp(kappa g), s = sum_l W_l m_l P_l with W_l = w_l dim H_l and
w_l the multipliers of W over the constant term of Z, g = log(1 + c s)/c and g' = 1/(1 + c s).
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..core.cached import cached_property
from ..core.errors import MeanfieldError
from ..core.forms import Reading
from ..core.kinds import absent, build
from ..models import Drift, ZonalDrift
from .bases import Basis
from .fokker_planck import FokkerPlanck, Product, multipliers, summed
from .newton import Coupled
from .stability import COUNTED_ATTRACTION

EXPONENT_ROUNDING = 2e-15  # of the exponent kappa g, and of P_l by its recurrence for each degree
CONSTANT, PROPORTIONAL = 1e-13, 1e-10  # of Z_0: how far Z may be from constant, and from c W
SERIES_BELOW = 1e-4  # |c s| below which dg/dc is computed by its series
RECENT_EQUATIONS = 4  # equations that are kept
PARAMETER_STEP, STEPS_EACH_WAY = (
    0.01,
    3,
)  # step in a parameter, or in its range if this is < 1; steps each way


class OutsideDomain(ValueError):
    """A value of a parameter for which there is no equation."""


class Mean(NamedTuple):
    """The law exp(kappa g[m]) / int exp(kappa g) that the moments m give rise to, on the nodes.

    Attributes
    ----------
    kappa : float
    sum : ndarray, (M,)
        s.
    potential, gain : ndarray, (M,)
        g, and g' = dg/ds.
    weights : ndarray, (M,)
        The density with respect to the uniform law, times the weights of the nodes.
    log_mass : float
        log int exp(kappa g) dsigma.
    moments : ndarray, (N,)
        E P_l.
    """

    kappa: float
    sum: np.ndarray
    potential: np.ndarray
    gain: np.ndarray
    weights: np.ndarray
    log_mass: float
    moments: np.ndarray


class Interactions(NamedTuple):
    """Multipliers of a drift: w_l of every degree, for Z of mean 1, and c with Z_l = c w_l."""

    weights: np.ndarray
    ratio: float


def interactions(drift: ZonalDrift, basis: Basis) -> list[Interactions]:
    """The multipliers of every member of a drift, up to the degree of a basis.

    Raises
    ------
    MeanfieldError
        For drifts that are no gradients of a potential of the measure.
    """
    of = basis.degree, basis.dimension
    weights, normalisers = np.atleast_2d(drift.attraction(*of)), drift.normaliser(*of)
    if normalisers is None:  # Z = 1
        return [Interactions(row, 0.0) for row in weights]
    pairs = zip(weights, np.atleast_2d(normalisers), strict=True)
    return [_related(drift, *pair) for pair in pairs]


def _related(drift: ZonalDrift, weights: np.ndarray, normaliser: np.ndarray) -> Interactions:
    """The interactions that have these multipliers of W and of Z, l = 0, 1, ..."""
    weights, z = weights / normaliser[0], normaliser[1:] / normaliser[0]
    if np.abs(z).max() <= CONSTANT:
        return Interactions(weights, 0.0)
    w = weights[1:]
    ratio = float(w @ z / (w @ w)) if np.any(w) else 0.0
    if np.abs(z - ratio * w).max() > PROPORTIONAL:
        raise MeanfieldError(
            "Stationary states are known where Z is constant (log mu = kappa W * mu + const) or "
            "Z' = c W' (log mu = (kappa/c) log(Z * mu) + const), since the drift is then the "
            f"gradient of a potential of the measure; Z of {drift!r} is neither."
        )
    return Interactions(weights, ratio)


class MomentEquation:
    """R(m) = 0 for one drift, in the functions P_l of one symmetry.

    Parameters
    ----------
    drift : ZonalDrift
        A single one.
    basis : Basis
        Of order 0.
    changes : callable, optional
        () -> Interactions: the derivatives by a parameter p of the drift.

    Attributes
    ----------
    strengths : ndarray, (N,)
        W_l = w_l dim H_l.
    ratio : float
        c.

    Raises
    ------
    MeanfieldError
        For drifts that are no gradients of a potential of the measure.
    """

    def __init__(
        self, drift: ZonalDrift, basis: Basis, changes: Callable[[], Interactions] | None = None
    ):
        self.drift, self.basis, self._differentiated = drift, basis, changes
        self.degree, self.degrees = basis.degree, basis.degrees
        if not drift.is_absent:  # of which a file has states, and no equation
            self._interactions  # noqa: B018  (raises if there is none)

    @cached_property
    def _interactions(self) -> Interactions:
        (single,) = interactions(self.drift, self.basis)
        return single

    @property
    def functions(self) -> np.ndarray:
        """The P_l on the nodes, (N, M)."""
        return self.basis.legendre

    @cached_property
    def ratio(self) -> float:
        return self._interactions.ratio

    @cached_property
    def strengths(self) -> np.ndarray:
        return self.multipliers(self.basis) * self.basis.sizes**2

    def multipliers(self, basis: Basis) -> np.ndarray:
        """w_l of every function of a basis of at most the same degree."""
        return self._interactions.weights[basis.degrees]

    @property
    def most_attracted(self) -> int:
        """The degree of the largest multiplier: perturbations of orders up to it may grow most."""
        return int(np.argmax(self._interactions.weights[1:])) + 1

    @property
    def gradient_flow(self) -> bool:
        """Whether there is a free energy: where Z is constant."""
        return self.ratio == 0

    def finer(self, degree: int) -> "MomentEquation":
        """This equation in more functions, of which the first are those of this one."""
        return MomentEquation(self.drift, self.basis.finer(degree))

    def mean(self, m: np.ndarray, kappa: float) -> Mean:
        """The law that the moments m give rise to."""
        s = self.basis.synthesised(self.strengths * m)
        potential, gain = s, np.ones_like(s)
        if self.ratio:
            with np.errstate(invalid="ignore", divide="ignore"):
                potential, gain = np.log1p(self.ratio * s) / self.ratio, 1 / (1 + self.ratio * s)
        top = potential.max()
        density = np.exp(kappa * (potential - top))
        mass = self.basis.weights @ density
        weights = self.basis.weights * (density / mass)
        log_mass = kappa * top + np.log(mass)
        return Mean(kappa, s, potential, gain, weights, log_mass, self.basis.analysed(weights))

    def residual(self, m: np.ndarray, kappa: float) -> float:
        """max_l |R_l|."""
        return float(np.abs(m - self.mean(m, kappa).moments).max())

    def resolves(self, m: np.ndarray, kappa: float, tail: float) -> bool:
        """Whether the last moments are below `tail` and rounding."""
        potential = np.abs(self.mean(m, kappa).potential).max()
        return self.basis.tail(m) <= tail + EXPONENT_ROUNDING * (kappa * potential + self.degree)

    def jacobian(self, mean: Mean) -> Any:
        """dR/dm, (N, N), a `LinearOperator` where the basis makes no matrices.

        Where rotations keep the symmetry, plus b_k a_k^T: see `point_groups`.
        """
        turned = self.basis.tangents(mean.moments)
        scale = np.abs(self.strengths).max(initial=0.0) or 1.0
        left = (self.strengths / scale * turned).T
        gained = mean.weights * mean.gain
        if not self.basis.dense:
            return self._jacobian_operator(mean, gained, left, turned)
        covariance = (self.functions * gained) @ self.functions.T
        covariance -= np.outer(mean.moments, self.functions @ gained)
        matrix = np.eye(len(self.degrees)) - mean.kappa * covariance * self.strengths
        return matrix + left @ turned if len(turned) else matrix

    def coupled(self, mean: Mean) -> Any:
        """dR/dm for a step of Newton's method: `jacobian` to rounding, where few degrees attract.

        Moments whose kappa W_l is rounding change no others.
        """
        felt = np.flatnonzero(mean.kappa * np.abs(self.strengths) > COUNTED_ATTRACTION)
        phases = len(self.basis.tangents(mean.moments))
        if not self.basis.dense or 2 * felt.size > self.strengths.size or phases:
            return self.jacobian(mean)
        gained = (self.functions[felt] * (mean.weights * mean.gain)).T
        covariance = self.functions @ gained
        covariance -= np.outer(mean.moments, gained.sum(axis=0))
        return Coupled(mean.kappa * covariance * self.strengths[felt], felt)

    def _jacobian_operator(
        self, mean: Mean, gained: np.ndarray, left: np.ndarray, turned: np.ndarray
    ) -> Any:
        from scipy.sparse.linalg import LinearOperator

        def apply(v: np.ndarray) -> np.ndarray:
            v = np.ravel(v)
            s = self.basis.synthesised(self.strengths * v)
            change = self.basis.analysed(gained * s) - mean.moments * (gained @ s)
            return v - mean.kappa * change + left @ (turned @ v)

        size = len(self.degrees)
        return LinearOperator((size, size), apply, dtype=float)

    def linearised(
        self, m: np.ndarray, kappa: float, basis: Basis, directions: np.ndarray | None = None
    ) -> np.ndarray:
        """L of `stability` in a basis of any order, on the same nodes, about m: (N, N).

        Or L times directions (N, k), at a cost of O(N M k) for M nodes instead of O(N^2 M).
        """
        return summed(-basis.eigenvalues / kappa, self._products(m, kappa, basis), directions)

    def _products(self, m: np.ndarray, kappa: float, basis: Basis) -> Iterator[Product]:
        mean, p = self.mean(m, kappa), basis.values
        weights, inner = self.multipliers(basis), self.basis
        slopes = inner.gradient_of(self.strengths * m / inner.sizes)  # of s
        for c, gradient in enumerate(basis.gradients):
            moved = [(mean.weights * mean.gain, gradient)]
            if c < len(slopes):
                yield Product(gradient, [(basis.weights * mean.gain * slopes[c], p)])
                if self.ratio:
                    moved.append((-self.ratio * mean.weights * mean.gain**2 * slopes[c], p))
            yield Product(gradient, moved, weights)

    def by_log_kappa(self, mean: Mean) -> np.ndarray:
        """dR/dlog kappa, (N,)."""
        return self.along(mean, mean.potential)

    def by_parameter(self, m: np.ndarray, mean: Mean) -> np.ndarray:
        """dR/dp, (N,), p the parameter of a family."""
        return self.along(mean, self.potential_change(m, mean))

    def along(self, mean: Mean, change: np.ndarray) -> np.ndarray:
        """dR = -kappa Cov(P_l, dg), (N,), for a change dg of g on the nodes: g for log kappa."""
        covariance = self.basis.analysed(mean.weights * change)
        return -mean.kappa * (covariance - mean.moments * (mean.weights @ change))

    def free_energy(self, mean: Mean) -> float:
        """F(mu) - F(uniform) of a law; nan where there is none, as for SA.

        F = (1/kappa) int mu log mu - (1/2) int int W dmu dmu.
        """
        if not self.gradient_flow:
            return float("nan")
        entropy = mean.weights @ (mean.kappa * mean.potential) - mean.log_mass
        return float(entropy / mean.kappa - 0.5 * self.strengths @ mean.moments**2)

    # Derivatives by the parameter of a family ------------------------------------------------

    @cached_property
    def _changes(self) -> Interactions:
        assert self._differentiated is not None
        return self._differentiated()

    @cached_property
    def strength_changes(self) -> np.ndarray:
        """dW_l/dp, (N,)."""
        return self._changes.weights[self.degrees] * self.basis.sizes**2

    def potential_change(self, m: np.ndarray, mean: Mean) -> np.ndarray:
        """dg/dp on the nodes, at the same moments: g' ds/dp + dg/dc dc/dp.

        dg/dc = (s g' - g)/c = -s^2 (1/2 - 2 c s/3 + 3 (c s)^2/4 - ...).
        """
        s, bent = mean.sum, self.ratio * mean.sum
        series = -(s**2) * (1 / 2 - 2 * bent / 3 + 3 * bent**2 / 4)
        exact = (s * mean.gain - mean.potential) / (self.ratio or 1.0)
        by_ratio = np.where(np.abs(bent) < SERIES_BELOW, series, exact)
        return mean.gain * self._sum_change(m) + self._changes.ratio * by_ratio

    def gain_change(self, m: np.ndarray, mean: Mean) -> np.ndarray:
        """dg'/dp on the nodes, at the same moments."""
        change = self._changes.ratio * mean.sum + self.ratio * self._sum_change(m)
        return -(mean.gain**2) * change

    def _sum_change(self, m: np.ndarray) -> np.ndarray:
        """ds/dp on the nodes."""
        return self.basis.synthesised(self.strength_changes * m)


def equation_of(drift: ZonalDrift, basis: Any, changes: Callable | None = None) -> Any:
    """The equation of a drift in the functions of a basis: see `fokker_planck` for other noises."""
    return (MomentEquation if basis.symmetric else FokkerPlanck)(drift, basis, changes)


class EquationFamily:
    """The equations of one drift for all values of one of its parameters.

    Parameters
    ----------
    drift : ZonalDrift, or type
        A single one, at any value of the parameter; or a kind that is made from it alone.
    name : str
        Of the parameter, one of `drift.parameters`.
    span : (float, float)
        The range of the parameter. Derivatives do not look beyond it.
    basis : Basis
        Of order 0.
    """

    def __init__(self, drift: Any, name: str, span: tuple[float, float], basis: Basis):
        self.drift, self.name, self.span, self.basis = drift, name, span, basis
        self._equation = lru_cache(RECENT_EQUATIONS)(self._made)

    def __getstate__(self) -> dict[str, Any]:
        """All but the equations that it remembers."""
        return {name: held for name, held in vars(self).items() if name != "_equation"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._equation = lru_cache(RECENT_EQUATIONS)(self._made)

    def at(self, value: float) -> Any:
        """The equation at this value; the same one for the last few that were asked for.

        Raises
        ------
        OutsideDomain
            If there is no such drift; beyond the range also if its multipliers cannot be computed.
        """
        return self._equation(float(value))

    def _made(self, value: float) -> Any:
        if not np.isfinite(value):
            raise OutsideDomain(f"{self.name} = {value}")
        try:
            drift = with_parameter(self.drift, self.name, value)
        except ValueError as error:
            raise OutsideDomain(str(error)) from error
        try:
            return equation_of(drift, self.basis, partial(self.changes, value))
        except MeanfieldError as error:  # as beyond a pole, where a step was too long
            if self.span[0] <= value <= self.span[1]:
                raise
            raise OutsideDomain(str(error)) from error

    def finer(self, degree: int) -> "EquationFamily":
        """This family in more functions."""
        return EquationFamily(self.drift, self.name, self.span, self.basis.finer(degree))

    def weights(self, values: np.ndarray) -> np.ndarray:
        """w_l of all degrees at many values, (len(values), degree + 1)."""
        return np.stack([member.weights for member in self._at_all(values)])

    def changes(self, value: float) -> Any:
        """d/dp of the multipliers and of c, or of those of Z, by differences of sixth order.

        The nodes stay within the range of the parameter: beyond it there may be no such drift.
        """
        low, high = min(self.span[0], value), max(self.span[1], value)
        step = PARAMETER_STEP * min(1.0, self.span[1] - self.span[0])
        nodes = np.arange(-STEPS_EACH_WAY, STEPS_EACH_WAY + 1)
        nodes += max(0, int(np.ceil((low - value) / step)) + STEPS_EACH_WAY)
        nodes -= max(0, nodes[-1] - int(np.floor((high - value) / step)))
        slopes = np.array([_slope_at_zero(int(j), nodes) / step if j else 0.0 for j in nodes])
        slopes[nodes == 0] = -sum(slopes)
        samples = self._at_all(np.clip(value + step * nodes, low, high))
        return type(samples[0])(*(slopes @ np.stack(row) for row in zip(*samples, strict=True)))

    def _at_all(self, values: np.ndarray) -> list[Any]:
        """The multipliers at many values: at once where the drift makes ensembles."""
        try:
            many = with_parameter(self.drift, self.name, values)
        except (TypeError, ValueError):
            many = None
        known = interactions if self.basis.symmetric else multipliers
        if many is not None and many.shape == values.shape:
            return known(many, self.basis)
        alone = (with_parameter(self.drift, self.name, float(value)) for value in values)
        return [member for drift in alone for member in known(drift, self.basis)]


def with_parameter(drift: Any, name: str, value: Any) -> ZonalDrift:
    """A drift with another value of one parameter; of a class, the drift with this value."""
    return drift(**{name: value}) if isinstance(drift, type) else drift.replace(**{name: value})


def _slope_at_zero(j: int, nodes: np.ndarray) -> float:
    """The derivative at 0 of Lagrange's polynomial of node j, for nodes with 0 among them."""
    others = nodes[(nodes != j) & (nodes != 0)]
    return float(np.prod(others / (others - j)) / j)


def drift_of(described: Any) -> Any:
    """The drift, or the kind of drift, that `describe` described."""
    if name := described.get("function"):
        return Drift.kinds.get(name) or absent(Drift, name, described)
    drift = build(Drift, described, Reading(result=True))
    return drift if drift.is_absent else drift.as_zonal()
