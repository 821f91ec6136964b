"""Densities: d mu/dt = (1/kappa) Lap mu - div(mu v[mu]) by harmonics, and what is measured."""

from typing import Any, ClassVar

import numpy as np

from ..core.errors import MeanfieldError
from ..models.transformer import Transformer
from ..models.zonal import ZonalDrift, kernel_degree
from ..spaces import Geometry
from ..spaces.density import COMPUTED, Density
from ..steppers import SCHEMES, Krogstad, Scheme, Splitting
from .motion import Failure, Motion, careful_step, in_shape_of
from .observables import MOMENTS, declare

declare("moments", r"moments $|m_k|$")
declare("free_energy", r"free energy $F(\mu_t)$")
declare("dissipation", r"dissipation $-\mathrm{d}F/\mathrm{d}t$", log_from=100.0)
declare("entropy", r"$\int \mu_t \log \mu_t \,\mathrm{d}\sigma$")
declare("minimum", r"minimum $\min\,\mu_t$", log_from=100.0)
declare("spectral_tail", "spectral tail", log_from=100.0)
declare("degree", "degree", steps=True)


class DensityEvolution:
    """The equation of an ensemble of densities as L c + N(c), L diagonal.

    Parameters
    ----------
    model : Transformer
    geometry : Geometry
    shape : tuple of int
        Ensemble shape, to which the model's own shape broadcasts.

    Attributes
    ----------
    linear : ndarray, (1 or members, modes)
        Eigenvalues of (1/kappa) Lap.
    nonlinear : Transport
        Coefficients of -div(mu v[mu]).
    metric : ndarray, (modes,)
        Weights of the H^-1 norm, with the mass added: sum |c_k|^2 metric_k. It is W2 to
        leading order at the uniform state, and errors are measured in it.
    """

    def __init__(self, model: Transformer, geometry: Geometry, shape: tuple[int, ...] = ()):
        members = int(np.prod(shape))
        degree, dimension = geometry.degree, geometry.dimension

        def rows(table: np.ndarray) -> np.ndarray:
            """Parameters (*own shape, size) as (1, size) or (members, size)."""
            if table.ndim == 1:
                return table[None]
            return np.broadcast_to(table, (*shape, table.shape[-1])).reshape(members, -1)

        normaliser = model.zonal.normaliser(degree, dimension)

        self.geometry, self.shape, self.members = geometry, shape, members
        with np.errstate(over="ignore"):  # no step is finite then
            self.linear = rows(geometry.laplacian / model.kappa[..., None])
        self.nonlinear = geometry.transport(
            rows(model.zonal.attraction(degree, dimension)),
            None if normaliser is None else rows(normaliser),
            members,
        )
        self.metric = geometry.parseval / np.maximum(1.0, -geometry.laplacian)


class DensityMotion(Motion, moves=Density):
    """Ensembles of densities, by expansions in harmonics of as many degrees as they need.

    Coordinates are the coefficients; L is diagonal in them, see `evolution`.
    """

    example = "a Density such as circle.density(f) or circle.von_mises(0, 1)"
    schemes = SCHEMES
    options = frozenset({"min_degree", "max_degree", "rng"})
    refusals: ClassVar = {
        "rng": "rng is for Tokens, and for a Density under common noise, which this model does not "
        "have; leave it out, or give the model common=, see Transformer."
    }
    semilinear = True

    @classmethod
    def prepared(cls, model: Transformer, state: Density) -> Density:
        """The density in the ensemble shape of the model too; ValueError if it is negative."""
        state.checked_positive(COMPUTED)
        return in_shape_of(model, state)

    def check(self) -> None:
        """Raise MeanfieldError for a drift without harmonics, and where common noise is refused."""
        if self.random and self.like.geometry.axisymmetric:
            raise MeanfieldError(
                f"{self.model.common!r} moves a density off its axis of symmetry: densities on "
                "Circle and Sphere, and Tokens, can have common noise. Use one of these."
            )
        self.model.zonal  # noqa: B018  (raises)

    def chosen_scheme(
        self, scheme: Scheme | Splitting | None, dt: float | None, start: float
    ) -> tuple[Scheme | Splitting | None, float | None]:
        """The scheme; None, a choice as the run goes, where neither it nor dt is given."""
        if isinstance(scheme, Splitting):
            raise ValueError(f"steppers.{scheme.name} moves tokens; got a Density.")
        if self.random and dt is None:
            dt = careful_step(self.model, self.like.dimension, True, start)
        return (Krogstad if scheme is None and dt is not None else scheme), dt

    @property
    def random(self) -> bool:
        return self.model.common is not None

    def takes(self, option: str) -> bool:
        """Whether an option of `solve` applies: `rng` under common noise."""
        return super().takes(option) and (option != "rng" or self.random)

    def carried(
        self, geometry: Geometry, c: np.ndarray, t: float, dt: float, rng: Any
    ) -> np.ndarray:
        """Coefficients (members, modes) after common noise for a time dt."""
        common: Any = self.model.common
        increments = common.increments(len(c), geometry.dimension, rng)
        strength = dt / np.broadcast_to(common.kappa, self.like.shape).ravel()
        attention = self.attention(geometry, c, t) if common.needs_attention else None
        return common.carried(geometry, c, strength, increments, attention)

    def attention(self, geometry: Geometry, c: np.ndarray, t: float) -> np.ndarray:
        """The output of attention (members, N, d) at the grid of a geometry."""
        return zonal_attention(self.model.zonal.broadcast(self.like.shape), geometry, c)

    def evolution(self, geometry: Geometry) -> DensityEvolution:
        """The equation on the modes of a geometry."""
        return DensityEvolution(self.model, geometry, self.like.shape)

    def coordinates(self, state: Density) -> np.ndarray:
        """The coefficients."""
        return state.coefficients

    def state_of(self, y: np.ndarray) -> Density:
        """The density with these coefficients."""
        return Density(self.like.geometry.with_modes(y.shape[-1]), y)

    def velocity(self, y: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Rates of change of the coefficients."""
        evolution = self.evolution(self.like.geometry.with_modes(y.shape[-1]))
        coefficients = y.reshape(evolution.members, -1)
        change = evolution.linear * coefficients + evolution.nonlinear(coefficients)
        return change.reshape(y.shape)

    def doubt(self, state: Density, t: float, failure: Failure) -> str | None:
        """Whether a density came out clearly negative somewhere."""
        lowest, highest = float(state.minimum.min()), float(state.values.max())
        if lowest >= -COMPUTED * highest:
            return None
        dt, rtol = failure.dt, failure.rtol
        remedy = f"a dt below {dt:g}" if dt else f"an rtol below {rtol:g}"
        return (
            f"The final density is negative: minimum {lowest:.2g} at a maximum of {highest:.3g}. "
            f"Its moments may be accurate to the tolerance, its values are not: use {remedy}."
        )

    def failure(self, status: str, at: Failure) -> str:
        """Why a run could not go on, and what to do."""
        if status != "unresolved":
            return super().failure(status, at)
        raised = "Use a smaller dt, if the steps were too long; else raise" if at.dt else "Raise"
        return (
            "The density is not resolved by max_degree = "
            f"{at.stats['highest_degree']} modes after t = {at.t:g}. {raised} max_degree or, where "
            "a density without noise concentrates to Diracs, follow mf.Characteristics(density), "
            "which needs no modes."
        )

    def why_rejected(self, at: Failure) -> str:
        """Why no step was short enough."""
        return (
            "without noise the density may be collapsing; else the drift is too strong for this "
            "time scale: try a larger rtol."
        )

    def measure(self, state: Density, t: float = 0.0) -> dict[str, Any]:
        """Observables of a density, or of an ensemble of densities.

        Returns
        -------
        dict of ndarray, each of the ensemble shape
            mass : int dmu
            minimum : smallest value on the grid
            moment : (*ensemble, 8), for the degrees k = 1, ..., 8. On the circle
                int e^{ik theta} dmu, complex; for axisymmetric densities int P_k(<x, e>) dmu; on
                S^2 its modulus for a density with an axis, and in general
                sqrt(sum_m |c_km|^2 / (2k + 1)).
            order_parameter : |moment 1|, the length of the mean of the tokens
            entropy : int mu log |mu| dsigma
            interaction_energy : E = (1/2) int int W dmu dmu, W = e^(beta t)/beta for USA and SA
            free_energy : F = entropy/kappa - E (USA, Kuramoto and Interaction; nan for SA)
            dissipation : -dF/dt = int mu |grad (log mu / kappa - W * mu)|^2 dsigma >= 0; or nan
            spectral_tail : largest coefficient in the last eighth of the degrees

        Notes
        -----
        A truncated series may be slightly negative where the density is almost 0, see `minimum`;
        the logarithm of the modulus then keeps the entropy's error at the size of the truncation.
        The dissipation is computed as -int (log mu / kappa - W * mu) d_t mu dsigma, its value by
        parts, which does not divide by the density.
        """
        model, geometry = self.model, state.geometry
        energy = interaction_energy(model, geometry, state.coefficients)
        entropy = _mean(state, state.values * _log(state.values))
        moments = [geometry.scalar_moment(state.coefficients, k) for k in range(1, MOMENTS + 1)]
        unknown = np.full(state.shape, np.nan)
        gradient_flow = model.drift.gradient_flow
        return {
            "moment": np.stack(moments, axis=-1).astype(complex),
            "order_parameter": np.abs(moments[0]),
            "free_energy": entropy / model.kappa - energy if gradient_flow else unknown,
            "dissipation": self._dissipation(state) if gradient_flow else unknown,
            "interaction_energy": energy,
            "entropy": entropy,
            "minimum": state.minimum,
            "mass": state.mass,
            "spectral_tail": state.spectral_tail,
        }

    @classmethod
    def resolution(cls, state: Density) -> dict[str, Any]:
        """The degree of the expansion."""
        return {"degree": state.geometry.degree}

    def _dissipation(self, state: Density) -> np.ndarray:
        geometry, coefficients = state.geometry, state.coefficients
        change = self.velocity(coefficients)
        weights = self.model.zonal.attraction(geometry.degree, geometry.dimension)
        pairing = change * np.conj(weights[..., geometry.degrees] * coefficients)
        gain = (geometry.parseval * pairing.real).sum(axis=-1)
        loss = _mean(state, geometry.to_values(change) * _log(state.values))
        return gain - loss / self.model.kappa


def zonal_attention(drift: ZonalDrift, geometry: Geometry, c: np.ndarray) -> np.ndarray:
    """int W'(<x, y>) y dmu(y) / (Z * mu)(x) at the grid, (members, N, d), from (members, modes).

    Convolutions: the component k is that of W' with the measure y_k mu. The multipliers of W' are
    sums of those of W, from W_l = (W'_(l-1) - W'_(l+1)) / (2l + d - 2).
    """
    degree, dimension = geometry.degree, geometry.dimension
    values = geometry.to_values(c)
    moments = geometry.to_coefficients(values[:, None] * geometry.points.T)  # of y_k mu
    last = 2 + 2 * max(degree, kernel_degree(drift, dimension))
    differences = (2 * np.arange(last + 1) + dimension - 2) * drift.attraction(last, dimension)
    pairs = differences[..., 1:].reshape(*drift.shape, -1, 2)
    slopes = pairs[..., ::-1, :].cumsum(axis=-2)[..., ::-1, :].reshape(*drift.shape, -1)
    slopes = slopes[..., None, geometry.degrees]
    output = np.moveaxis(geometry.to_values(slopes * moments), 1, -1)
    normaliser = drift.normaliser(degree, dimension)
    if normaliser is None:
        return output
    return output / geometry.to_values(normaliser[..., geometry.degrees] * c)[..., None]


def _mean(density: Density, values: np.ndarray) -> np.ndarray:
    return values @ density.geometry.weights


def _log(values: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(np.abs(values), np.finfo(float).tiny))


def interaction_energy(
    model: Transformer, geometry: Geometry, coefficients: np.ndarray
) -> np.ndarray:
    """(1/2) int int W dmu dmu of measures with these coefficients."""
    weights = model.zonal.interaction(geometry.degree, geometry.dimension)
    power = geometry.parseval * np.abs(coefficients) ** 2
    return 0.5 * (weights[..., geometry.degrees] * power).sum(axis=-1)
