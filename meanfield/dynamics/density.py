"""Motion of densities in harmonics, d mu/dt = (1/kappa) L* mu - div(mu v[mu]) + reaction."""

import math
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from ..core.annotations import ArrayIndex, JsonTable, Observations, PassedOn, Values
from ..core.cached import cached_property
from ..core.errors import MeanfieldError
from ..models import Drift, HigherOrder, ZonalDrift
from ..models.influence import Lorentzian
from ..models.transformer import Transformer
from ..spaces import Space
from ..spaces.density import Density
from ..spaces.transport import Transport
from ..spaces.validity import (
    DENSITY_TAIL,
    NEGATIVE_SHARE,
    HarmonicSizes,
    degree_above,
    log_modulus,
)
from ..steppers import SCHEMES, Krogstad, Splitting
from ..steppers.eigenbasis import Eigenbasis
from .field_transport import (
    ChangingNoise,
    EnsembleFields,
    check_fields,
    transport_of,
)
from .model_harmonics import ModelHarmonics
from .motion import AnyScheme, ChosenScheme, Failure, Motion, check_on_torus, in_shape_of
from .observables import declare, moments_of

TAIL_TOLERANCE = 0.1  # largest size of the last coefficients, in units of rtol
SMALLEST_TAIL = 1e-13
PROBED_DEGREES = {2: 256, 3: 32}  # degrees on which velocities are probed, by dimension
PROBED_TIMES = 9  # number of times at which changing velocities are probed
MULTIPLIER_ROUNDING = 1e-14  # relative rounding error of multipliers
# Negative mass, in units of rtol, to which a tail within its tolerance may add up.
NEGATIVE_MASS_TOLERANCE = 10.0
# Mass, in units of rtol, at points where Z * mu is rounding error, which more modes do not help.
LOST_MASS_TOLERANCE = 1e-3
# Rounding errors of coefficients under normalised drifts, relative to the L2 norm.
COEFFICIENT_ROUNDING = 1e-14
# Rounding errors of values, relative to the L2 norm; those of a mass are a few times smaller.
DENSITY_ROUNDING = 1e-14
SMALL_FLUX = 0.1  # coefficients of a flux that count, relative to rtol and the largest one
FAST_RATE = 30.0  # rates from which a message states the time scale of the drift

declare("moments", r"moments $|m_k|$")
declare("free_energy", r"free energy $F(\mu_t)$")
declare("dissipation", r"dissipation $-\mathrm{d}F/\mathrm{d}t$", log_from=100.0)
declare("entropy", r"$\int \mu_t \log \mu_t \,\mathrm{d}\sigma$")
declare("minimum", r"minimum $\min\,\mu_t$", log_from=100.0)
declare("spectral_tail", "spectral tail", log_from=100.0)
declare("degree", "degree", steps=True)


class DensityEvolution:
    """The equation c' = L c + N(c, t) of an ensemble of densities, with a diagonal L.

    Parameters
    ----------
    model : Transformer
    space : Space
    shape : tuple of int
        Ensemble shape, to which the model's own shape broadcasts.
    inside : callable
        t -> t, clipped to a span between two jumps of the model.
    fields : EnsembleFields, optional
        Fields of the drift on this space, if it is not zonal; computed by default.
    separate_members : bool
        Whether each member, under a zonal drift, has the N that it has without the others: with
        the bandwidth of its own potential, which determines the length of transforms. By default
        all have the largest bandwidth. If True, there is no common `nonlinear`: see `of_member`.
    turning : ndarray, (modes,), optional
        Term added to L for natural frequencies.

    Attributes
    ----------
    linear : ndarray, (1 or members, modes)
        Eigenvalues of L*/kappa, in the `basis` where there is one, plus `turning`. If kappa
        depends on time, it is kappa at the last call of `freeze`, and inf before the first.
    basis : Eigenbasis or None
        Eigenbasis of L* for noise other than isotropic noise: see `Noise.on_densities`.
    nonlinear : Transport
        N: coefficients of -div(mu v[mu]) and of the reaction, plus the part of the noise that is
        not in L because kappa has changed since `freeze`.
    metric : ndarray, (modes,)
        Weights of the norm (sum |c_k|^2 metric_k)^(1/2) in which errors are measured: the H^-1
        norm, plus the mass. At the uniform state it is W2 to leading order.
    """

    def __init__(
        self,
        model: Transformer,
        space: Space,
        shape: tuple[int, ...] = (),
        inside: Callable[[float], float] = float,
        fields: EnsembleFields | None = None,
        *,
        separate_members: bool = False,
        turning: np.ndarray | None = None,
    ):
        """Set up u' = L u + N(u), jointly or, if `separate_members`, for each member."""
        members = int(np.prod(shape))

        def rows(table: np.ndarray) -> np.ndarray:
            """Parameters (*own shape, size) as (1, size) or (members, size)."""
            if table.ndim == 1:
                return table[None]
            return np.broadcast_to(table, (*shape, table.shape[-1])).reshape(members, -1)

        self.space, self.shape, self.members = space, shape, members
        noise = model.noise.on_densities(space)
        self.basis: Eigenbasis | None
        self._rates, self.basis = (space.laplacian, None) if noise is None else noise.eigenbasis
        self._rows, self._model, self._inside, self._turning = rows, model, inside, turning
        self._freeze(model.kappa if model.steady_noise else np.array(np.inf))
        self.metric = space.parseval / np.maximum(1.0, -space.laplacian)
        self.nonlinear: Transport
        self._separate: list[tuple[Transport, int]] = []
        if separate_members and model.is_zonal:
            attraction, normaliser = self._tables(model)
            self._separate = _transports(space, attraction, normaliser, members)
            return
        self.nonlinear = self._transport(model, fields)
        if model.smooth_noise:
            self.nonlinear = ChangingNoise(self.nonlinear, self._missed)

    def _tables(self, model: Transformer) -> tuple[np.ndarray, np.ndarray | None]:
        """The multipliers of W, and of Z where it is not 1, (1 or members, degree + 1)."""
        rows, normaliser = self._rows, self.space.normaliser(model.zonal)
        attraction = self.space.attraction(model.zonal)
        return rows(attraction), None if normaliser is None else rows(normaliser)

    def _transport(self, model: Transformer, fields: EnsembleFields | None) -> Transport:
        """N without the part of the noise that is not in L."""
        if model.is_zonal:
            return self.space.transport(*self._tables(model), self.members)
        check_fields(model, self.space)
        ModelHarmonics(model, self.space).check(self.space.degree)
        fields = fields or EnsembleFields(model.drift, self.space, self.shape)
        return transport_of(model, fields, self.members, self._inside)

    def of_member(self, i: int) -> tuple[np.ndarray, Transport, int]:
        """L and N for member i, and its index in N.

        Without `separate_members`, L is that of all members and the index is i.
        """
        if not self._separate:
            return self.linear, self.nonlinear, i
        return self.linear[i if len(self.linear) > 1 else 0][None], *self._separate[i]

    def freeze(self, t: float) -> None:
        """Set L to its value at time t, if kappa depends on time."""
        if not self._model.steady_noise:
            self._freeze(self._model.kappa_at(self._inside(t)))

    def _freeze(self, kappa: np.ndarray) -> None:
        """Set L = rates / kappa + turning for a kappa, held until the next call."""
        self._frozen = kappa
        with np.errstate(over="ignore"):  # no step is finite then
            linear = self._rates / kappa[..., None]
        self.linear = self._rows(linear if self._turning is None else linear + self._turning)

    @np.errstate(over="ignore", invalid="ignore")  # of 1/kappa: the state is not finite then
    def _missed(self, t: float, coefficients: np.ndarray) -> np.ndarray:
        """L(t) - L applied to the coefficients (modes,) of one density; L is that of `freeze`."""
        excess = 1 / self._model.kappa_at(self._inside(t)) - 1 / self._frozen
        if self.basis is None:
            return excess * self._rates * coefficients
        modal = self.basis.into(coefficients.view(float)[None])
        return excess * self.basis.out_of(self._rates * modal)[0].view(coefficients.dtype)

    def diffused(self, coefficients: np.ndarray) -> np.ndarray:
        """L c, for coefficients (members, modes)."""
        if self.basis is None:
            return self.linear * coefficients
        modal = self.basis.into(np.ascontiguousarray(coefficients).view(float))
        return self.basis.out_of(self.linear * modal).view(coefficients.dtype)


def _transports(
    space: Space, attraction: np.ndarray, normaliser: np.ndarray | None, members: int
) -> list[tuple[Transport, int]]:
    """For each member the transport with the bandwidth of its own potential, and its index in it.

    Members whose potentials have the same bandwidth share one Transport.
    """
    bands, members_of = space.bands(attraction), {}
    for band in np.unique(bands).tolist():
        band_members = np.flatnonzero(bands == band)
        band_normaliser = normaliser if normaliser is None else normaliser[band_members]
        transport = space.transport(attraction[band_members], band_normaliser, len(band_members))
        members_of.update({int(member): (transport, i) for i, member in enumerate(band_members)})
    return [members_of[member if len(bands) > 1 else 0] for member in range(members)]


class DensityMotion(Motion, moves=Density):
    """Ensembles of densities, by expansions in harmonics of as many degrees as they need.

    Coordinates are the coefficients (*ensemble, modes), c' = L c + N(c): see `DensityEvolution`.
    """

    example = "a Density such as circle.density(f) or circle.von_mises(0, 1)"
    schemes = SCHEMES
    options = frozenset({"min_degree", "max_degree", "rng", "rtol"})
    refusals: ClassVar = {
        "rng": "rng is for Tokens, and for a Density under common noise, which this model does not "
        "have; leave it out, or give the model common=, see Transformer."
    }
    semilinear = members_as_alone = True
    equation: ClassVar[type[DensityEvolution]] = DensityEvolution
    follows = frozenset("noise common normalisation reaction feedforward frequency".split())

    @classmethod
    def prepared(cls, model: Transformer, state: Density) -> Density:
        """The density, broadcast to the model's ensemble shape; ValueError if it is negative."""
        state.checked_positive(NEGATIVE_SHARE)
        return in_shape_of(model, state)

    def check(self) -> None:
        """Raise MeanfieldError, with the reason, for a model that no density can follow."""
        model, space = self.model, self.like.space
        if self.random and space.axisymmetric:
            raise MeanfieldError(
                f"{model.common!r} moves a density off its axis of symmetry: densities on "
                "Circle and Sphere, and Tokens, can have common noise. Use one of these."
            )
        if not space.spherical:
            check_on_torus(model)
        self.check_dimensions()
        model.noise.check_densities(space)
        self.check_frequency()
        if not self.plain.is_zonal:
            check_fields(self.plain, space)

    @cached_property
    def plain(self) -> Transformer:
        """The model without its position-dependent parts, such as frequencies."""
        return self.model.at_each_place

    def check_frequency(self) -> None:
        """Raise MeanfieldError unless frequencies are absent or Lorentzian with an exact reduction.

        The reduction is exact for drifts of degree 1 with isotropic noise on the circle.
        """
        frequency, space = self.model.frequency, self.like.space
        if frequency is None:
            return
        drift, isotropic = self.plain.drift, self.model.noise.laplacian
        if not isinstance(frequency, Lorentzian) or space.dimension != 2:
            raise MeanfieldError(
                f"frequency = {frequency!r} is for densities on the circle that are indexed by it, "
                "circle.indexed(f, NormalIndex(...)); a Density has frequency=Lorentzian(width)."
            )
        degree = max(space.degree, 8)
        exact = isotropic and not self.plain.extras
        if not (exact and all(_of_degree_one(part, degree) for _, part in drift.terms)):
            raise MeanfieldError(
                "Lorentzian frequencies are exact for a drift of degree 1, such as c * Kuramoto(), "
                f"with isotropic noise: {drift!r} couples moments that have their poles in both "
                "half-planes. Use densities indexed by frequencies, circle.indexed(f, index)."
            )

    def turning(self, space: Space) -> np.ndarray | None:
        """Term (modes,) that natural frequencies add to L; None without frequencies."""
        frequency: Any = self.model.frequency
        if frequency is None:
            return None
        damping = frequency.width + (1j * frequency.centre if frequency.centre else 0.0)
        return -space.degrees * damping

    def turning_slopes(self, space: Space) -> dict[str, np.ndarray]:
        """Derivatives of `turning`, (modes,), by each parameter of the frequencies."""
        if self.model.frequency is None:
            return {}
        degrees = space.degrees
        return {"frequency.width": -1.0 * degrees, "frequency.centre": -1j * degrees}

    def chosen_scheme(self, scheme: AnyScheme, dt: float | None, start: float) -> ChosenScheme:
        """The scheme and dt; without both the scheme is None, and chosen during the run."""
        if isinstance(scheme, Splitting):
            raise ValueError(f"steppers.{scheme.name} moves tokens; got a Density.")
        if self.random and dt is None:
            dt = self.noisy_step(start)
        return (Krogstad if scheme is None and dt is not None else scheme), dt

    def setup(self) -> None:
        """Create the caches of fields by space and of equations by number of modes."""
        self._fields: dict[Space, EnsembleFields] = {}
        self._evolutions: dict[int, DensityEvolution] = {}
        if not self.plain.is_zonal:
            self.fields(self.like.space)  # refuses drifts of unknown kinds

    @property
    def directions(self) -> int:
        return self.like.space.directions

    @property
    def circles(self) -> int:  # type: ignore[override]
        return 1 if self.like.space.spherical else self.directions

    @property
    def random(self) -> bool:  # type: ignore[override]
        return self.model.common is not None

    def takes(self, option: str) -> bool:
        """Whether an option of `solve` applies: `rng` under common noise."""
        return super().takes(option) and (option != "rng" or self.random)

    def carried(
        self, space: Space, c: np.ndarray, t: float, dt: float, rng: Generator
    ) -> np.ndarray:
        """Coefficients (members, modes) after common noise for a time dt."""
        common_noise: Any = self.model.common
        circles = 0 if space.spherical else space.directions
        increments = common_noise.increments(len(c), space.dimension, rng, circles)
        strength = dt / np.broadcast_to(common_noise.kappa, self.like.shape).ravel()
        attention = None
        if common_noise.needs_attention:
            attention = self.fields(space).attention(self.inside(t), c)
        return common_noise.carried(space, c, strength, increments, attention)

    def fields(self, space: Space) -> EnsembleFields:
        """The fields of the drift on a space, cached with their kernels."""
        if space not in self._fields:
            self._fields[space] = EnsembleFields(self.model.drift, space, self.like.shape)
        return self._fields[space]

    def evolution(self, space: Space, **options: PassedOn) -> DensityEvolution:
        """The equation on the modes of a space; `options` are those of `DensityEvolution`."""
        fields = None if self.plain.is_zonal else self.fields(space)
        arguments = self.plain, space, self.like.shape, self.inside, fields
        return self.equation(*arguments, turning=self.turning(space), **options)

    @property
    def autonomous(self) -> bool:  # type: ignore[override]
        model = self.model
        steady = model.drift.autonomous and model.normalisation.autonomous
        return steady and not model.smooth_noise

    @property
    def alike(self) -> bool:  # type: ignore[override]
        return self.plain.is_zonal and self.model.steady_noise

    def of_members(self, members: ArrayIndex) -> Self:
        """The motion of some members, or of a single one, given by their indices in C order."""
        model, state = self.model.members(self.like.shape, members), self.like.reshape((-1,))
        like, engine, scheme = state[members], self._engine, self._scheme
        chosen = type(self)(model, like, engine, scheme=scheme, rtol=self.rtol)
        chosen.breaks = self.breaks
        return chosen

    def least_degree(self, span: tuple[float, float], most: int) -> int:
        """The least degree, at most `most`, that resolves noise and velocities in a time span."""
        tail_tolerance = max(TAIL_TOLERANCE * self.rtol, SMALLEST_TAIL)
        noise_degree = self.model.noise.least_degree(self.like.space, tail_tolerance, most)
        return max(noise_degree, self._degree_of_velocity(span, most))

    def _degree_of_velocity(self, span: tuple[float, float], highest: int) -> int:
        """The least degree, at most `highest`, that resolves the initial rate of change.

        A velocity may have higher degrees than the density; a grid that does not resolve it gives
        aliasing errors. The rate of change is computed on PROBED_DEGREES degrees. The result is the
        highest degree whose flux coefficients count, plus the widest gap between such degrees, to
        reach the next term of a sparse series. If parameters change with time, it is the maximum
        over PROBED_TIMES times of `span` and the middle of each interval between two jumps.
        """
        model, base = self.model, self.like.space
        if self.plain.keeps_axes:  # its velocities have no more degrees than the density
            return 0
        probed = min(highest, max(base.degree, PROBED_DEGREES.get(base.dimension, 32)))
        seen, _ = ModelHarmonics(self.plain, base).needed(1)
        space = base.with_degree(min(highest, max(probed, seen)))
        evolution, times = self.evolution(space), [span[0]]
        if not (model.drift.constant and model.normalisation.constant):
            ends = np.array([span[0], *self.breakpoints(*span), span[1]])
            middles = (ends[1:] + ends[:-1]) / 2
            times = sorted({*np.linspace(*span, PROBED_TIMES).tolist(), *middles.tolist()})
        coefficients = self.like.resample(space.degree).coefficients.reshape(evolution.members, -1)
        needed = seen
        for t in times:
            evolution.freeze(t)
            evolution.nonlinear.time[0] = t
            change = evolution.nonlinear(coefficients)
            evolution.nonlinear.check()
            flux = HarmonicSizes(space.degrees, change / np.maximum(1, space.degrees))
            needed = max(needed, flux.sufficient(SMALL_FLUX * self.rtol * flux.sizes.max()))
        return min(needed, highest)

    def coordinates(self, state: Density) -> np.ndarray:
        """The coefficients."""
        return state.coefficients

    def state_of(self, y: np.ndarray) -> Density:
        """The density with these coefficients."""
        return type(self.like)(self.like.space.with_modes(y.shape[-1]), y)

    def packed(self, state: Density) -> np.ndarray:
        """The coefficients; for an ensemble with the degree of each member as the last column."""
        if not state.shape:
            return state.coefficients
        return np.concatenate([state.coefficients, state.member_degrees[..., None]], axis=-1)

    def unpacked(self, array: np.ndarray) -> Density:
        if array.ndim == 1:
            return self.state_of(array)
        return self.state_of(array[..., :-1]).with_member_degrees(array[..., -1].real.astype(int))

    def velocity(self, y: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Rates of change of the coefficients."""
        modes = y.shape[-1]
        if modes not in self._evolutions:
            self._evolutions[modes] = self.evolution(self.like.space.with_modes(modes))
        evolution = self._evolutions[modes]
        coefficients = y.reshape(evolution.members, -1)
        evolution.freeze(t)
        evolution.nonlinear.time[0] = t
        change = evolution.diffused(coefficients) + evolution.nonlinear(coefficients)
        return change.reshape(y.shape)

    def warning(self, state: Density, t: float, failure: Failure) -> str | None:
        """A warning if values of a density are wrong, or Z * mu is too small to divide by.

        Z * mu is checked for the final density and, if N is not compiled, for all evaluations.
        """
        if self.is_wrong(state, t, failure.rtol, thoroughly=True).any():
            return f"The final density {self.why_wrong(state, t, failure)}"
        return self._warning_of_quotients(state, t, max(failure.rtol, SMALLEST_TAIL))

    @np.errstate(over="ignore", invalid="ignore")  # of rates and 1/kappa
    def is_wrong(
        self, state: Density, t: float, rtol: float, *, thoroughly: bool = False
    ) -> np.ndarray:
        """A mask over members, in C order: True where values of the density are clearly wrong.

        They are wrong if the minimum is below -NEGATIVE_SHARE of the maximum, or the negative mass
        above NEGATIVE_SHARE and 10 rtol. If `thoroughly`, and always for d > 3, they are also wrong
        if the free energy increases. Each member is evaluated on its own grid.
        """
        degrees = state.member_degrees.ravel()
        tolerance = max(NEGATIVE_SHARE, NEGATIVE_MASS_TOLERANCE * rtol)
        series = state.coefficients.reshape(degrees.size, -1)
        wrong_members = np.zeros(degrees.size, dtype=bool)
        for degree in np.unique(degrees).tolist():
            members, space = np.flatnonzero(degrees == degree), state.space.with_degree(degree)
            rows = state.space.resample(series[members], degree) if state.shape else series[0]
            states = type(state).computed(rows, space)  # whose values are not kept
            lowest, highest = states.minimum, states.values.max(axis=-1)
            negative = (lowest < -NEGATIVE_SHARE * highest) | (states.negative_mass > tolerance)
            if thoroughly or self.like.dimension > 3:
                motion = self.of_members(members) if state.shape else self
                negative |= motion._dissipation_of(states, t) < -tolerance * motion._fastest(t) ** 2
            wrong_members[members] = negative
        return wrong_members

    def why_wrong(self, state: Density, t: float, failure: Failure) -> str:
        """The reason why values of a density are wrong, and a remedy, as a verb phrase."""
        dt, rtol = failure.dt, failure.rtol
        state = type(state).computed(state.coefficients, state.space)
        lowest, highest = float(state.minimum.min()), float(state.values.max())
        size = float(_l2_norms(state).max())
        reason = f"is negative: minimum {lowest:.2g} at a maximum of {highest:.3g}"
        if lowest >= -NEGATIVE_SHARE * highest:
            reason = f"holds a negative mass of {float(state.negative_mass.max()):.2g}"
            if not state.shape and (rate := float(self._dissipation_of(state, t))) < 0:
                reason += f", and its dissipation is {rate:.2g}"
        if DENSITY_ROUNDING * size > max(NEGATIVE_SHARE, NEGATIVE_MASS_TOLERANCE * rtol):
            return (
                f"{reason}. Its values are rounding errors where it is small, as its L2 norm is "
                f"{size:.1g}: entropy, free energy and dissipation are wrong, moments are not as "
                "far. Use a smaller kappa, Tokens or, for the limit, mf.stationary(model, density)."
            )
        remedy = f"a dt below {dt:g}" if dt else f"an rtol below {rtol:g}"
        return (
            f"{reason}. Its moments may be accurate to the tolerance, its values are not: use "
            f"{remedy}."
        )

    def _dissipation_of(self, state: Density, t: float) -> np.ndarray:
        """-dF/dt, (*ensemble,); nan where there is no free energy."""
        unknown = np.full(state.shape, np.nan)
        if self.model.extras or not self.model.noise.laplacian:
            return unknown
        potential = self._energy(state, t)[1]
        return unknown if potential is None else self._dissipation(state, potential, t)

    def _fastest(self, t: float) -> np.ndarray:
        """The largest speed of the drift at a time, plus 1/kappa for potentials of points."""
        t, drift = self.inside(t), self.model.drift
        external = any(not part.interacts for _, part in drift.terms)
        return np.asarray(drift.rate(t) + (1 / self.model.kappa_at(t) if external else 0.0))

    def warning_of_start(self, state: Density, rtol: float) -> str | None:
        """A warning if the last coefficients are so large that harmonics are missing; else None.

        The tolerance is rtol, or DENSITY_TAIL, the one of the constructor, if that is larger.
        """
        tail, tolerance = float(state.spectral_tail.max()), max(rtol, DENSITY_TAIL)
        if tail <= tolerance:
            return None
        space = state.space
        largest, coefficients = space.largest_degree, state.coefficients
        wanted = degree_above(space.degree, space.degrees, coefficients, tolerance, largest)
        return (
            f"The initial density is not resolved: its highest coefficients are {tail:.1e}, "
            f"expected <= {tolerance:.0e}. Use {wanted}."
        )

    def without_warning(self, state: Density, t: float, rtol: float) -> np.ndarray:
        if self._is_linear_in_measure:
            return ~self.is_wrong(state, t, rtol, thoroughly=True)
        return np.zeros(state.member_degrees.size, dtype=bool)

    @property
    def _is_linear_in_measure(self) -> bool:
        """Whether v = grad (W * mu), with Z = 1, so that N needs no grid."""
        return self.plain.is_zonal and not self.plain.zonal.normalised

    def _warning_of_quotients(self, state: Density, t: float, bound: float) -> str | None:
        """A warning if Z * mu is only rounding error at points of a mass > `bound`; else None."""
        if self._is_linear_in_measure:
            return None
        mass = self.fields(state.space).bounded(self.inside(t), self._acting(state))
        if mass <= bound:
            return None
        return (
            "Velocities are divided by Z * mu, which has to be larger than its rounding errors; it "
            f"is not at points that hold a mass of {mass:.2g}, which moves too slowly. Use weights "
            "that are less uneven, as with a smaller |beta|, or follow Tokens or, of a single "
            "density, mf.Characteristics(density), whose sums have no such errors."
        )

    def _acting(self, state: Density) -> np.ndarray:
        """Coefficients (members, modes) of the measures mu that generate the velocities."""
        return state.coefficients.reshape(-1, state.coefficients.shape[-1])

    def failure(self, status: str, end: Failure) -> str:
        """The reason why a run could not go on, and what to do."""
        if status != "unresolved":
            haste = self._haste(end.t) if status == "not_finite" else ""
            return super().failure(status, end) + haste
        raised = "Use a smaller dt, if the steps were too long; else raise" if end.dt else "Raise"
        if end.instability:
            raised = f"{end.instability} Use a smaller dt or another scheme; else raise"
        is_resolved = self.like.spectral_tail.max() <= max(TAIL_TOLERANCE * end.rtol, SMALLEST_TAIL)
        if end.elapsed == 0 and is_resolved and not end.dt:
            return (
                "The velocity of the initial density is not resolved by max_degree = "
                f"{end.stats['highest_degree']} modes, as of attention weights that jump or have "
                "kinks, or vary over small angles. Use smoother weights, a larger rtol, or Tokens; "
                f"or raise max_degree.{self._haste(end.t)}"
            )
        modes = f"{end.stats['highest_degree']} modes after t = {end.t:g}"
        state = self.state_of(end.y)
        size, degree = float(_l2_norms(state).max()), state.space.degree
        allowed_tail = max(TAIL_TOLERANCE * end.rtol, SMALLEST_TAIL) * state.space.dirac(degree)
        if COEFFICIENT_ROUNDING * size > allowed_tail and not self._is_linear_in_measure:
            rtol = end.rtol * COEFFICIENT_ROUNDING * size / allowed_tail
            return (
                f"The density is not resolved by {modes}: its last coefficients are rounding "
                f"errors, relative to its L2 norm of {size:.1g}. More modes do not help: use an "
                f"rtol of {10 ** math.ceil(math.log10(rtol)):.0e} or more, a "
                f"smaller kappa, or Tokens.{self._haste(end.t)}"
            )
        if quotients := self._warning_of_quotients(state, end.t, LOST_MASS_TOLERANCE * end.rtol):
            return f"The density is not resolved by {modes}. {quotients}"
        return (
            f"The density is not resolved by max_degree = {modes}. {raised} max_degree or, where a "
            "density without noise concentrates to Diracs, follow mf.Characteristics(density), "
            f"which needs no modes.{self._haste(end.t)}"
        )

    def _haste(self, t: float) -> str:
        """A sentence on the time scale of a drift with rates of FAST_RATE or more; else empty."""
        rate = float(np.max(self.largest_rate(t)))
        if rate < FAST_RATE:
            return ""
        return (
            f" Under {self.model.drift!r} rates are up to {rate:.2g}: tokens move within times of "
            f"about {1 / rate:.1g}, for which t_span and kappa have to be chosen (USA moves at a "
            "speed of about e^beta, on a torus of m angles e^(m beta); SA of about 1)."
        )

    def why_rejected(self, end: Failure) -> str:
        """The reason why no step was short enough."""
        return (
            "without noise the density may be collapsing; else the drift is too strong for this "
            "time scale: try a larger rtol."
        )

    def with_state(self, state: Density) -> Self:
        """This motion, with its caches, for a state of the same ensemble shape; else a new one."""
        return self if state.shape == self.like.shape else super().with_state(state)

    @cached_property
    def _members(self) -> list[Self]:
        """The motions of the members of an ensemble, in C order."""
        return [self.of_members(i) for i in range(math.prod(self.like.shape))]

    @np.errstate(over="ignore")  # of 1/kappa: free energies are infinite then
    def measure(self, state: Density, t: float = 0.0) -> Observations:
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
            interaction_energy : E = (1/2) int int W dmu dmu, W = e^(beta t)/beta for USA and SA;
                plus int V dmu of a `Potential`
            free_energy : F = entropy/kappa - E where v is the gradient of W * mu, as under USA,
                Kuramoto, Interaction and `Attention` that increases E, with isotropic noise, common
                noise and nothing else; nan elsewhere, as for SA
            dissipation : int mu |grad (log mu / kappa - W * mu)|^2 dsigma >= 0, which is -dF/dt
                without common noise and while parameters are constant; or nan
            spectral_tail : largest coefficient in the last eighth of the degrees

        Notes
        -----
        A truncated series may be slightly negative where the density is almost 0, see `minimum`;
        the logarithm of the modulus then keeps the entropy's error at the size of the truncation.
        The dissipation is computed as -int (log mu / kappa - W * mu) d_t mu dsigma, its value by
        parts, which does not divide by the density.

        Members of an ensemble are measured one by one, each on its own grid: the values have the
        bits that they have alone.
        """
        if state.shape:
            measured = [
                motion.measure(state[index], t)
                for motion, index in zip(self._members, np.ndindex(state.shape), strict=True)
            ]
            tables = {name: np.array([row[name] for row in measured]) for name in measured[0]}
            return {n: v.reshape(*state.shape, *v.shape[1:]) for n, v in tables.items()}
        model, space = self.model, state.space
        energy, potential = self._energy(state, t)
        entropy = _mean(state, state.values * log_modulus(state.values))
        moments = moments_of(space, state.coefficients)
        kappa = model.kappa_at(self.inside(t))
        gradient_flow = potential is not None and not model.extras and model.noise.laplacian
        return {
            "moment": moments,
            "order_parameter": np.abs(moments[..., 0]),
            "free_energy": entropy / kappa - energy if gradient_flow else np.nan,
            "dissipation": self._dissipation(state, potential, t) if gradient_flow else np.nan,
            "interaction_energy": energy,
            "entropy": entropy,
            "minimum": state.minimum,
            "mass": state.mass,
            "spectral_tail": state.spectral_tail,
        }

    @classmethod
    def resolution(cls, state: Density) -> JsonTable:
        """The degree of the expansion, of each member."""
        return {"degree": state.member_degrees}

    def _energy(self, state: Density, t: float) -> tuple[np.ndarray, np.ndarray | None]:
        """The energy E, and coefficients of the potential of the velocity.

        E is nan if there is none; the potential is None if the velocity is not a gradient.
        """
        model, space, coefficients = self.model, state.space, state.coefficients
        if model.drift.is_zonal:
            drift = model.drift.as_zonal()
            weights = space.attraction(drift)[..., space.levels]
            energy = interaction_energy(drift, space, coefficients)
            return energy, weights * coefficients if drift.gradient_flow else None
        if not model.drift.is_gradient(space.dimension, self.inside(t)):
            return np.full(state.shape, np.nan), None
        c = coefficients.reshape(-1, coefficients.shape[-1])
        fields, now = self.fields(space), self.inside(t)
        potentials = fields.potentials(now, c).reshape(*state.shape, -1)
        return fields.energies(now, c).reshape(state.shape), space.to_coefficients(potentials)

    def _dissipation(self, state: Density, potential: Values, t: float) -> np.ndarray:
        """-dF/dt for a velocity with this potential (coefficients), see `measure`."""
        space, coefficients = state.space, state.coefficients
        change = self.velocity(coefficients, t)
        pairing = change * np.conj(potential)
        gain = (space.parseval * pairing.real).sum(axis=-1)
        loss = _mean(state, space.to_values(change) * log_modulus(state.values))
        return gain - loss / self.model.kappa_at(self.inside(t))


def _of_degree_one(drift: Drift, degree: int) -> bool:
    """Whether velocities on the circle have harmonics of degree 1 alone, up to `degree`."""
    if isinstance(drift, HigherOrder):
        return abs(drift.harmonic) == 1
    if not drift.is_zonal or drift.normalised:
        return False
    W = np.abs(drift.as_zonal().attraction(degree, 2))
    return bool((W[..., 2:] <= MULTIPLIER_ROUNDING * W[..., 1:2]).all())


def _l2_norms(density: Density) -> np.ndarray:
    """The L2 norms of densities, (*ensemble,)."""
    power = density.space.parseval * np.abs(density.coefficients) ** 2
    return np.sqrt(power.sum(axis=-1))


def _mean(density: Density, values: np.ndarray) -> np.ndarray:
    """The integral of values (..., N) on the grid over the sphere, (...,)."""
    return values @ density.space.weights


def interaction_energy(drift: ZonalDrift, space: Space, coefficients: np.ndarray) -> np.ndarray:
    """(1/2) int int W dmu dmu of measures with these coefficients."""
    weights = space.interaction(drift)[..., space.levels]
    power = space.parseval * np.abs(coefficients) ** 2
    return 0.5 * (weights * power).sum(axis=-1)
