"""The equation of stationary states with a given symmetry, and its form in moments.

`StationaryEquation` is the interface that Newton's method, stability, branches and phase diagrams
use. It has two implementations: `TransportEquation` for every model that moves densities, and
here the faster `MomentEquation`, for a drift with a potential under isotropic noise alone.

mu is stationary under the drift v = grad(W * mu)/(Z * mu) with noise kappa if v = grad g[mu] and

    mu = exp(kappa g[mu]) / int exp(kappa g[mu]).

Such a g exists if Z is constant, or if Z' = c W':

    g = W * mu / Z           (USA, Kuramoto, Interaction: c = 0),
    g = log(Z * mu) / c      (SA: c = beta).

In the Legendre moments m_l = int P_l dmu, |m_l| <= 1, l >= 1, this is R(m) = 0 with

    R_l(m) = m_l - E P_l,    dR_l/dm_j = delta_lj - kappa W_j Cov(P_l, g' P_j),

where E is the mean with respect to exp(kappa g)/const, s = sum_l W_l m_l P_l with W_l = w_l dim H_l
and w_l the multipliers of W over the constant term of Z, g = log(1 + c s)/c and g' = 1/(1 + c s).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from ..core.cached import cached_property
from ..models import Drift, Transformer, ZonalDrift
from .bases import Array, Basis
from .newton import Coupled
from .stability import COUNTED_ATTRACTION

POTENTIAL_ROUNDING = 2e-15  # rounding error of the exponent kappa g, and of P_l for each degree
CONSTANT, PROPORTIONAL = 1e-13, 1e-10  # tolerances for constant Z and Z' = c W', relative to Z_0
SERIES_BELOW = 1e-4  # |c s| below which dg/dc is computed by its series


class Mean(NamedTuple):
    """The density exp(kappa g[m]) / int exp(kappa g) for the moments m, at the nodes.

    Attributes
    ----------
    kappa : float
    sum : ndarray, (M,)
        s = sum_l W_l m_l P_l.
    potential, gain : ndarray, (M,)
        g, and g' = dg/ds.
    weights : ndarray, (M,)
        Density with respect to the uniform measure, times the weights of the quadrature.
    log_mass : float
        log int exp(kappa g) dsigma.
    moments : ndarray, (N,)
        E P_l.
    """

    kappa: float
    sum: Array
    potential: Array
    gain: Array
    weights: Array
    log_mass: float
    moments: Array


class Interactions(NamedTuple):
    """Multipliers w_l of a drift, l = 0, 1, ..., for Z of mean 1, and c with Z_l = c w_l, l > 0."""

    weights: Array
    ratio: float


def interactions(drift: ZonalDrift, basis: Basis) -> Interactions | None:
    """Multipliers of a single drift; None if it is not the gradient of a potential."""
    weights, normaliser = basis.attraction(drift), basis.normaliser(drift)
    if normaliser is None:  # Z = 1
        return Interactions(weights, 0.0)
    weights, z = weights / normaliser[0], normaliser[1:] / normaliser[0]
    if np.abs(z).max() <= CONSTANT:
        return Interactions(weights, 0.0)
    w = weights[1:]
    ratio = float(w @ z / (w @ w)) if np.any(w) else 0.0
    return None if np.abs(z - ratio * w).max() > PROPORTIONAL else Interactions(weights, ratio)


class StationaryEquation(ABC):
    """The equation R(m) = 0 of stationary densities of one model, in one basis.

    Parameters
    ----------
    model : Transformer
        A single model; its kappa is not used, but passed to the methods.
    basis : Basis
        Basis of order 0.

    Attributes
    ----------
    gradient_flow : bool
        Whether derivatives and the second variation of a free energy are known.
    real_spectrum : bool
        Whether all eigenvalues of the linearised operator are known to be real.
    settles : bool
        Whether steps m <- `mean(m).moments` are those of `settled`, which may converge.
    """

    gradient_flow: bool = False
    real_spectrum: bool = False
    settles: bool = False

    def __init__(self, model: Transformer, basis: Basis):
        self.model, self.basis = model, basis
        self.degree, self.degrees = basis.degree, basis.degrees

    @property
    def drift(self) -> Drift:
        return self.model.drift

    @property
    def source(self) -> Any:
        """The drift or the model whose parameters can vary."""
        return self.model

    @property
    def moving(self) -> Array | float:
        """Shares of moments in those above the truncation, see `ModelHarmonics.moving`."""
        return 0.0

    @property
    def absent(self) -> bool:
        """Whether drift or noise is a placeholder, as its functions were not saved."""
        return self.drift.is_absent or self.model.noise.is_absent

    def model_at(self, kappa: float) -> Transformer:
        """The model with this kappa."""
        if self.absent:
            return Transformer(self.drift, kappa, noise=self.model.noise)
        return self.model.replace(kappa=kappa)

    @property
    @abstractmethod
    def weights(self) -> Array:
        """Multipliers w_l, (degree + 1,), for Z of mean 1; the onset of degree l is at 1/w_l."""

    def multipliers(self, basis: Basis) -> Array:
        """w_l for every function of a basis of at most the same degree, (N,)."""
        return self.weights[basis.degrees]

    @property
    def most_attracted(self) -> int:
        """Degree of the largest multiplier; the number of orders if the basis is not symmetric."""
        if not self.basis.symmetric:
            return self.basis.orders
        return int(np.argmax(self.weights[1:])) + 1

    @abstractmethod
    def among(self, basis: Any) -> Self:
        """The equation in another basis, without derivatives by a parameter."""

    def finer(self, degree: int) -> Self:
        """The equation truncated at another degree."""
        return self.among(self.basis.finer(degree))

    @abstractmethod
    def mean(self, m: Array, kappa: float) -> Any:
        """Quantities evaluated at the moments m; the attribute `moments` is m - R(m)."""

    def system(
        self, m: Array, kappa: float, whole: bool = False
    ) -> tuple[Array, Callable[[], Any]]:
        """R, and a function that computes dR/dm for Newton's method, by `jacobian` if `whole`."""
        mean = self.mean(m, kappa)
        return m - mean.moments, lambda: (self.jacobian if whole else self.coupled)(mean)

    def residual(self, m: Array, kappa: float) -> float:
        """max_l |R_l|."""
        return float(np.abs(m - self.mean(m, kappa).moments).max())

    @abstractmethod
    def resolves(self, m: Array, kappa: float, tail: float) -> bool:
        """Whether the last moments are at most `tail` plus a bound of rounding errors."""

    @abstractmethod
    def jacobian(self, mean: Any) -> Any:
        """dR/dm, (N, N), or a `LinearOperator` if the basis is not dense."""

    def coupled(self, mean: Any) -> Any:
        """dR/dm for a step of Newton's method; equals `jacobian` to rounding."""
        return self.jacobian(mean)

    @abstractmethod
    def block(self, mean: Any, part: Any) -> Array:
        """Block (n, n) of the Jacobian for the functions of one order; order 0 is dR/dm."""

    @abstractmethod
    def block_change(self, mean: Any, m: Array, part: Any, left: Array, right: Array) -> Array:
        """Gradient (N + 2,) of left . block right by the moments, log kappa and the parameter."""

    @abstractmethod
    def linearised(self, m: Array, kappa: float, basis: Any) -> Array:
        """Linearised operator L of `stability` at m, in a basis of one order, (n, n)."""

    @abstractmethod
    def by_log_kappa(self, mean: Any) -> Array:
        """dR/dlog kappa, (N,)."""

    @abstractmethod
    def by_parameter(self, m: Array, mean: Any) -> Array:
        """dR/dp, (N,), by the parameter p of an `EquationFamily`."""

    @abstractmethod
    def series(self, m: Array, kappa: Array) -> Array:
        """Coefficients (orders, N) of R(m(t), kappa(t)) as a series in t; for a symmetric basis."""

    def speed(self, m: Array, kappa: float) -> float:
        """Angular velocity of a rotating state; 0 at rest."""
        return 0.0

    def free_energy(self, mean: Any) -> float:
        """F(mu) - F(uniform) of an evaluated density; nan if there is no free energy."""
        return float("nan")

    def negativity(self, mean: Any) -> float:
        """Minus the least value of a density, relative to the largest; 0 if none is negative."""
        return 0.0


class MomentEquation(StationaryEquation):
    """The equation R(m) = 0 for a drift with a potential, in the functions P_l of one symmetry.

    Parameters
    ----------
    drift : ZonalDrift
        A single drift.
    basis : Basis
        Basis of order 0.
    changes : callable, optional
        () -> Interactions: derivatives of the multipliers and of c by a parameter p of the drift.

    Attributes
    ----------
    strengths : ndarray, (N,)
        W_l = w_l dim H_l.
    ratio : float
        c of Z' = c W'; 0 if Z is constant.
    """

    def __init__(
        self, drift: ZonalDrift, basis: Basis, changes: Callable[[], Interactions] | None = None
    ):
        super().__init__(Transformer(drift), basis)
        self.zonal, self._differentiated = drift, changes

    real_spectrum = settles = True

    @property
    def source(self) -> Any:
        return self.model.drift

    @cached_property
    def _interactions(self) -> Any:
        """Multipliers and c; None without a potential."""
        return interactions(self.zonal, self.basis)

    @property
    def exists(self) -> bool:
        """Whether the drift has a potential; True for a placeholder."""
        return self.drift.is_absent or self._interactions is not None

    @property
    def weights(self) -> Array:
        return self._interactions.weights

    @cached_property
    def ratio(self) -> float:
        return self._interactions.ratio

    @cached_property
    def strengths(self) -> Array:
        return self.multipliers(self.basis) * self.basis.sizes**2

    @property
    def gradient_flow(self) -> bool:  # type: ignore[override]
        """Whether there is a free energy, which is so if Z is constant."""
        return self.ratio == 0

    def among(self, basis: Any) -> Self:
        return type(self)(self.zonal, basis)

    def mean(self, m: Array, kappa: float) -> Mean:
        """The density exp(kappa g[m])/const and its moments E P_l; nan where g is infinite."""
        s = self.basis.synthesised(self.strengths * m)
        potential, gain = s, np.ones_like(s)
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.ratio:
                potential, gain = np.log1p(self.ratio * s) / self.ratio, 1 / (1 + self.ratio * s)
            top = potential.max()
            density = np.exp(kappa * (potential - top))
        mass = self.basis.weights @ density
        weights = self.basis.weights * (density / mass)
        log_mass = kappa * top + np.log(mass)
        return Mean(kappa, s, potential, gain, weights, log_mass, self.basis.analysed(weights))

    def resolves(self, m: Array, kappa: float, tail: float) -> bool:
        potential = np.abs(self.mean(m, kappa).potential).max()
        limit = float(tail + POTENTIAL_ROUNDING * (kappa * potential + self.degree))
        return self.basis.tail(m, limit) <= limit

    def jacobian(self, mean: Mean) -> Any:
        """dR/dm, (N, N), or a `LinearOperator` if the basis is not dense.

        If rotations preserve the symmetry, sum_k b_k a_k^T is added: see `point_groups`.
        """
        turned = self.basis.tangents(mean.moments)
        scale = np.abs(self.strengths).max(initial=0.0) or 1.0
        left = (self.strengths / scale * turned).T
        gained = mean.weights * mean.gain
        if not self.basis.dense:
            return self._jacobian_operator(mean, gained, left, turned)
        covariance = self.basis.pairings(gained)
        covariance -= np.outer(mean.moments, self.basis.analysed(gained))
        matrix = np.eye(len(self.degrees)) - mean.kappa * covariance * self.strengths
        return matrix + left @ turned if len(turned) else matrix

    def coupled(self, mean: Mean) -> Any:
        """dR/dm for a step of Newton's method; equals `jacobian` to rounding.

        If few W_l are nonzero, only their columns of 1 - dR/dm are computed: columns in which
        kappa |W_l| is below rounding vanish.
        """
        felt = np.flatnonzero(mean.kappa * np.abs(self.strengths) > COUNTED_ATTRACTION)
        phases = len(self.basis.tangents(mean.moments))
        if not self.basis.dense or 2 * felt.size > self.strengths.size or phases:
            return self.jacobian(mean)
        gained = mean.weights * mean.gain
        covariance = self.basis.pairings(gained, felt)
        covariance -= np.outer(mean.moments, self.basis.analysed(gained)[felt])
        return Coupled(mean.kappa * covariance * self.strengths[felt], felt)

    def _jacobian_operator(self, mean: Mean, gained: Array, left: Array, turned: Array) -> Any:
        from scipy.sparse.linalg import LinearOperator

        def apply(v: Array) -> Array:
            v = np.ravel(v)
            s = self.basis.synthesised(self.strengths * v)
            change = self.basis.analysed(gained * s) - mean.moments * (gained @ s)
            return v - mean.kappa * change + left @ (turned @ v)

        size = len(self.degrees)
        return LinearOperator((size, size), apply, dtype=float)

    def linearised(self, m: Array, kappa: float, basis: Basis) -> Array:
        mean, inner = self.mean(m, kappa), self.basis
        flow = mean.gain * inner.gradient_of(self.strengths * m / inner.sizes)  # grad g
        gained, weights = mean.weights * mean.gain, self.multipliers(basis)
        carried = basis.transport(basis.weights * flow, self.ratio * gained * flow, gained, weights)
        return np.diag(-basis.eigenvalues / kappa) + carried

    def by_log_kappa(self, mean: Mean) -> Array:
        return self.along(mean, mean.potential)

    def by_parameter(self, m: Array, mean: Mean) -> Array:
        return self.along(mean, self.potential_change(m, mean))

    def along(self, mean: Mean, change: Array) -> Array:
        """dR = -kappa Cov(P_l, dg), (N,), for a change dg of g; dg = g for d/dlog kappa."""
        covariance = self.basis.analysed(mean.weights * change)
        return -mean.kappa * (covariance - mean.moments * (mean.weights @ change))

    def free_energy(self, mean: Mean) -> float:
        """F(mu) - F(uniform) of an evaluated density; nan if there is no free energy, as for SA.

        F = (1/kappa) int mu log mu - (1/2) int int W dmu dmu.
        """
        if not self.gradient_flow:
            return float("nan")
        entropy = mean.weights @ (mean.kappa * mean.potential) - mean.log_mass
        return float(entropy / mean.kappa - 0.5 * self.strengths @ mean.moments**2)

    def free_energy_by_log_kappa(self, mean: Mean) -> float:
        """dF/dlog kappa of a stationary state."""
        return -float(mean.weights @ (mean.kappa * mean.potential) - mean.log_mass) / mean.kappa

    def free_energy_by_parameter(self, mean: Mean) -> float:
        """dF/dp of a stationary state."""
        return float(-0.5 * self.strength_changes @ mean.moments**2)

    def block(self, mean: Mean, part: Any) -> Array:
        return self.jacobian(mean)

    def block_change(self, mean: Mean, m: Array, part: Any, left: Array, right: Array) -> Array:
        """Gradient (N + 2,) of left . (dR/dm) right = left . right - kappa Cov(f, h).

        f = sum left_l P_l and h = g' sum W_l right_l P_l. The density is proportional to
        exp(kappa g), so that dE X = kappa Cov(X, dg) + E dX.
        """
        kappa, p, w, mass = mean.kappa, self.basis.legendre, self.strengths, mean.weights
        f, s = left @ p, (w * right) @ p
        h = mean.gain * s
        f = f - mass @ f
        pairs = mass * f * (h - mass @ h)
        covariance = pairs.sum()
        bent = -self.ratio * mean.gain**2 * s  # derivative of h by the sum on which g' depends
        by_moments = kappa * (p @ (pairs * mean.gain) - covariance * (p @ (mass * mean.gain)))
        by_moments = w * (by_moments + p @ (mass * f * bent))
        potential, change = mean.potential, self.potential_change(m, mean)
        by_kappa = covariance + kappa * (pairs @ potential - covariance * (mass @ potential))
        moved = mean.gain * ((self.strength_changes * right) @ p) + s * self.gain_change(m, mean)
        by_parameter = kappa * (pairs @ change - covariance * (mass @ change)) + (mass * f) @ moved
        return -kappa * np.concatenate([by_moments, [by_kappa, by_parameter]])

    def series(self, m: Array, kappa: Array) -> Array:
        orders = len(m)
        s = (self.strengths * m) @ self.basis.legendre
        potential = _logarithm(self.ratio * s) / self.ratio if self.ratio else s
        density = _exponential(_product(kappa[:, None] * np.ones_like(s), potential))
        weighted = density * self.basis.weights
        mass = weighted.sum(axis=1)
        inverse = np.zeros(orders)
        inverse[0] = 1 / mass[0]
        for k in range(1, orders):
            inverse[k] = -(mass[1 : k + 1] @ inverse[k - 1 :: -1][:k]) / mass[0]
        moments = weighted @ self.basis.legendre.T
        return m - _product(np.broadcast_to(inverse[:, None], moments.shape), moments)

    # Derivatives by the parameter of a family ------------------------------------------------

    @cached_property
    def _changes(self) -> Interactions:
        """Derivatives of the multipliers and of c by the parameter of a family."""
        assert self._differentiated is not None
        return self._differentiated()

    @cached_property
    def strength_changes(self) -> Array:
        """dW_l/dp, (N,)."""
        return self._changes.weights[self.degrees] * self.basis.sizes**2

    def potential_change(self, m: Array, mean: Mean) -> Array:
        """dg/dp at the nodes, (M,), for fixed moments: g' ds/dp + dg/dc dc/dp.

        dg/dc = (s g' - g)/c = -s^2 (1/2 - 2 c s/3 + 3 (c s)^2/4 - ...).
        """
        s, bent = mean.sum, self.ratio * mean.sum
        series = -(s**2) * (1 / 2 - 2 * bent / 3 + 3 * bent**2 / 4)
        exact = (s * mean.gain - mean.potential) / (self.ratio or 1.0)
        by_ratio = np.where(np.abs(bent) < SERIES_BELOW, series, exact)
        return mean.gain * self._sum_change(m) + self._changes.ratio * by_ratio

    def gain_change(self, m: Array, mean: Mean) -> Array:
        """dg'/dp at the nodes, (M,), for fixed moments: -g'^2 (s dc/dp + c ds/dp)."""
        change = self._changes.ratio * mean.sum + self.ratio * self._sum_change(m)
        return -(mean.gain**2) * change

    def _sum_change(self, m: Array) -> Array:
        """ds/dp at the nodes, (M,)."""
        return self.basis.synthesised(self.strength_changes * m)


def _product(f: Array, g: Array) -> Array:
    """Coefficients of the product f g of power series, which have them in rows."""
    return np.stack([sum(f[i] * g[k - i] for i in range(k + 1)) for k in range(len(f))])


def _exponential(f: Array) -> Array:
    """Coefficients of the power series h = exp(f), from h' = f' h."""
    h = np.zeros_like(f)
    h[0] = np.exp(f[0])
    for k in range(1, len(f)):
        h[k] = sum(i * f[i] * h[k - i] for i in range(1, k + 1)) / k
    return h


def _logarithm(f: Array) -> Array:
    """Coefficients of the power series h = log(1 + f), from (1 + f) h' = f'."""
    h = np.zeros_like(f)
    h[0] = np.log1p(f[0])
    for k in range(1, len(f)):
        inner = sum(i * h[i] * f[k - i] for i in range(1, k)) / k
        h[k] = (f[k] - inner) / (1 + f[0])
    return h
