"""Characteristics: nodes of a quadrature that the flow carries, x' = v[mu](x).

For zonal drifts v = grad (W * mu) / (Z * mu) is computed by harmonics; for other drifts by the sums
over pairs used for tokens, with the nodes and their masses as tokens. Under a reaction masses
follow m' = alpha m (Phi(x) - int Phi dmu).
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import NamedTuple, Self

import numpy as np
from numpy.random import Generator

from ..core.annotations import JsonTable, MovedState, Observations, TangentNames, UserValue, Values
from ..core.checks import finite_array, first_not_finite, require, values_of
from ..core.dual import Array, Dual, value_of
from ..core.errors import MeanfieldError
from ..models import Sum, ZonalDrift
from ..models.changes import multiplier_changes
from ..models.drift import rising
from ..models.zonal import kernel_degree
from ..spaces.characteristics import Characteristics
from ..spaces.contract import dimension_of_harmonics
from ..states import Tokens, TorusTokens
from .density import interaction_energy
from .field_transport import check_not_of_tokens
from .linearised import Changes, TangentSpace, check_masses, checked_changes, state_along
from .motion import Failure, Motion
from .observables import MOMENT_COUNT, declare, moments_of
from .tokens import LOG_OF_NO_MASS, TokenMotion
from .torus_tokens import TorusTokenMotion

declare("w2_to_dirac", r"$W_2$ to a Dirac (rad)", log_from=100.0)
declare("cluster_mass", "masses of clusters")
declare("quadrature_error", "quadrature error", log_from=1.0)

MACHINE_EPSILON = 2.0**-52
FINEST_DISTANCE = 1e-5  # least distance resolved by W2 to relative accuracy; larger for small rtol
# Largest change of the first velocities if half of the nodes are left out.
INTERACTION_TOLERANCE = 1e-6
W2_TOLERANCE = 0.05  # relative error of W2 to a Dirac
VELOCITY_ROUNDING = 0.01  # relative rounding error of velocities
ANTIPODE_TOLERANCE = 1e-12


Place = tuple[int, str | None]  # of a parameter, see `Drift.place_of`; None: the factor of a part


class ZonalTerm(NamedTuple):
    """A zonal term of a drift, by its harmonics up to the degree where they have decayed.

    Attributes
    ----------
    factor : float
    drift : ZonalDrift
    degree : int
    attraction, normaliser : ndarray, and ndarray or None
        Multipliers of W and Z, (degree + 1,), up to a common factor; None where Z = 1.
    interaction : ndarray
        Multipliers of W, (degree + 1,), in Phi = W * mu.
    drift_dimension : int
        The dimension d of R^d, which contains the points.
    size : float
        W'(1) / Z(1), the rate at which points move towards a Dirac next to them.
    """

    factor: float
    drift: ZonalDrift
    degree: int
    attraction: np.ndarray
    normaliser: np.ndarray | None
    interaction: np.ndarray
    drift_dimension: int
    size: float

    @classmethod
    def of(cls, factor: float, drift: ZonalDrift, d: int) -> "ZonalTerm":
        """The term `factor` times `drift` for unit vectors of R^d."""
        degree = kernel_degree(drift, d)
        attraction, normaliser = drift.attraction(degree, d), drift.normaliser(degree, d)
        l = np.arange(degree + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            dimensions = np.array([dimension_of_harmonics(int(k), d) for k in l])
            size = (np.abs(attraction) * dimensions * l * (l + d - 2) / (d - 1)).sum()
            if normaliser is not None:
                size /= np.abs(normaliser * dimensions).sum()
        interaction = drift.interaction(degree, d)
        multipliers = attraction, normaliser, interaction
        return cls(float(factor), drift, degree, *multipliers, d, float(size))

    def along(self, k: int, places: Sequence[Place | None]) -> "ZonalTerm":
        """Term k of a drift with `Dual` multipliers and factor, a tangent for each of `places`."""
        d, size = self.drift_dimension, self.degree + 1
        changes = np.zeros((len(places), 1 if self.normaliser is None else 2, size))
        for row, place in zip(changes, places, strict=True):
            if place is not None and place[0] == k and place[1] is not None:
                row[:] = multiplier_changes(self.drift, place[1], self.degree, d)
        normaliser: Values = self.normaliser
        if normaliser is not None:
            normaliser = Dual(normaliser, changes[:, 1])
        factor: Values = self.factor
        if (k, None) in places:
            by_factor = np.array([float(place == (k, None)) for place in places])
            factor = rising(np.asarray(factor), by_factor)
        return self._replace(
            factor=factor,
            attraction=Dual(self.attraction, changes[:, 0]),
            normaliser=normaliser,
        )


class CharacteristicsMotion(Motion, moves=Characteristics):
    """Velocities of the nodes of a quadrature under a deterministic model.

    After every step it is checked whether the nodes still resolve the density. Coordinates are
    those of `NodeChart`; a reaction adds a column, log m(t) - log m(0) up to a constant.

    Parameters
    ----------
    model : Transformer
        A single model without noise.
    state : Characteristics
    rtol : float
        The relative tolerance of error control.

    Attributes
    ----------
    harmonics : list of ZonalTerm
        The zonal terms of the drift, which are summed by harmonics.
    pairs : TokenMotion or None
        The motion for the other terms, which are sums over pairs of nodes.
    unresolved_since : float or None
        The first time at which the nodes did not resolve the density.
    last_to_arrive : list of float or None
        The initial position of the node that is farthest from the mean direction when W2 to a
        Dirac is first unresolved.

    Raises
    ------
    TypeError, ValueError
        For a model with noise, or an ensemble.
    MeanfieldError
        If the kernel's harmonics do not decay; for a drift that moves tokens only, a normalisation
        with radii, or a reaction without potential; if the model does not keep an axisymmetric
        density axisymmetric.
    """

    example = "Characteristics(density)"
    tangent_arrays = "coordinates", "points", "masses"
    smallest_change = 1e-15
    options = frozenset({"rtol"})
    follows = frozenset({"normalisation", "reaction", "feedforward"})
    unresolved_since: float | None
    last_to_arrive: list[float] | None
    _reason: str | None
    refusals = dict.fromkeys(
        ("min_degree", "max_degree"),
        "min_degree and max_degree bound the modes of a Density; Characteristics has none. Its "
        "accuracy is that of its nodes: Characteristics(density, nodes=...).",
    )

    def setup(self) -> None:
        """Split the drift into zonal terms, with their multipliers, and terms summed over pairs."""
        model, state, drift = self.model, self.like, self.model.drift
        self.chart, self.pairs = state.chart, None
        terms = [(1.0, drift.as_zonal())] if drift.is_zonal else drift.terms
        raw = model.normalisation.is_identity and state.space.spherical
        self._zonal_indices = [k for k, (_, part) in enumerate(terms) if raw and part.is_zonal]
        others = [term for k, term in enumerate(terms) if k not in self._zonal_indices]
        zonal = [terms[k] for k in self._zonal_indices]
        self.harmonics = [ZonalTerm.of(c, part, state.dimension) for c, part in zonal]
        if others or model.feedforward is not None:
            self.chart.rates(state.coordinates, np.zeros_like(state.points))  # refused on an axis
        if others:
            factors, parts = zip(*others, strict=True)
            pair_model = model.replace(drift=Sum(parts, factors) if self._zonal_indices else drift)
            motion = TokenMotion if state.space.spherical else TorusTokenMotion
            self.pairs = motion(pair_model, self._tokens(state))
        self._finest = max(FINEST_DISTANCE, 1e-15 / self.rtol)
        self.restore(dict.fromkeys(("unresolved_since", "reason", "last_to_arrive")))

    def check(self) -> None:
        """Raise ValueError or MeanfieldError, with the reason, for a model that does not fit."""
        model = self.model
        self.prepared(model, self.like)  # refuses ensembles
        self.check_dimensions()
        check_not_of_tokens(model, "Characteristics", self.like.dimension)
        extras = sorted({"normalisation", "reaction", "feedforward"} & set(model.parts))
        if extras and not self.like.space.spherical:
            raise MeanfieldError(
                f"Characteristics on {self.like.space!r} move without {', '.join(extras)}: leave "
                "it out, or solve for the Density, which may have a reaction."
            )

    @staticmethod
    def _tokens(state: Characteristics) -> MovedState:
        """The nodes as tokens; masses may be negative by rounding."""
        if not state.space.spherical:
            return TorusTokens.computed(angles=state.coordinates, masses=state.masses)
        return Tokens.computed(x=state.points, masses=state.masses, on_sphere=True)

    def begin(self, y: np.ndarray, t: float) -> None:
        """Raise ValueError if the nodes do not resolve the interaction at the start."""
        error = self.halved_error(y, self.like.halves, t)
        if not error <= INTERACTION_TOLERANCE:
            raise ValueError(
                f"{len(self.like)} nodes do not resolve this interaction: half of them change the "
                f"velocities by {error:.1e}, expected <= {INTERACTION_TOLERANCE:.0e}. "
                f"Use more nodes: Characteristics(density, nodes={4 * len(self.like)})."
            )

    def enter(self, start: float, end: float) -> None:
        """Restrict times to a span that is between two breakpoints."""
        super().enter(start, end)
        if self.pairs is not None:
            self.pairs.enter(start, end)

    # Coordinates ---------------------------------------------------------------------------

    def coordinates(self, state: Characteristics) -> np.ndarray:
        """Coordinates of the nodes, see `NodeChart`; under a reaction also the growth of masses."""
        if not self.model.reaction:
            return state.coordinates
        start, positive = self.like.masses, (self.like.masses != 0) & (state.masses != 0)
        growth = np.log(np.divide(state.masses, start, out=np.ones(start.shape), where=positive))
        growth[(start != 0) & (state.masses == 0)] = LOG_OF_NO_MASS
        return np.column_stack([state.coordinates, growth])

    def state_of(self, y: np.ndarray) -> Characteristics:
        """The state with these coordinates."""
        return self.like.moved(self.node_coordinates(y), self.masses(y))

    def packed(self, state: Characteristics) -> np.ndarray:
        """The coordinates with the masses instead of their growth, which would round them."""
        if not self.model.reaction:
            return state.coordinates
        return np.column_stack([state.coordinates, state.masses])

    def unpacked(self, array: np.ndarray) -> Characteristics:
        """The state of an array made by `packed`."""
        return self.like.moved(
            self.node_coordinates(array), np.array(array[:, -1]) if self.model.reaction else None
        )

    def node_coordinates(self, y: np.ndarray) -> np.ndarray:
        """The coordinates of the nodes alone."""
        if not self.model.reaction:
            return y
        return np.ascontiguousarray(y[:, :-1]).reshape(self.like.coordinates.shape)

    def masses(self, y: np.ndarray) -> np.ndarray:
        """The masses (n,), normalised to the sum at the start."""
        masses = self.like.masses
        if not self.model.reaction:
            return masses
        grown = masses * np.exp(y[:, -1] - y[:, -1].max())
        return grown * (masses.sum() / grown.sum())

    # Motion --------------------------------------------------------------------------------

    def velocity(self, y: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Rates of change of the coordinates."""
        model, x, masses = self.model, self.node_coordinates(y), self.masses(y)
        rates, _ = self._attention_rates(x, masses, t)
        if model.feedforward is not None:
            vectors = model.feedforward_at(self.chart.points(x))
            rates = rates + self.chart.rates(
                x, model.normalisation.updated(self.inside(t), vectors)
            )
        return np.column_stack([rates, self._growth(x, masses, t)]) if model.reaction else rates

    def _attention_rates(
        self, x: np.ndarray, masses: np.ndarray, t: float
    ) -> tuple[np.ndarray, float]:
        """Rates of change of the node coordinates by attention, and a scale for their errors."""
        rates, size = np.zeros_like(x), 0.0
        for term in self.harmonics:
            of_term = self.chart.velocity(x, masses, term.attraction, term.normaliser)
            rates = rates + term.factor * of_term
            size += abs(value_of(term.factor)) * term.size
        if self.pairs is not None:
            u = self.pairs.attention_update(self.chart.points(x)[None], masses[None], t)[0]
            rates = rates + self.chart.rates(x, u)
            size += float(np.linalg.norm(value_of(u), axis=1).max())
        return rates, size

    def _growth(self, x: np.ndarray, masses: np.ndarray, t: float) -> np.ndarray:
        """Growth rates alpha (Phi - int Phi dmu / int dmu) of the logarithms of masses, (n,)."""
        points, growth = self.chart.points(x), np.zeros(masses.shape)
        for term in self.harmonics:
            fine = self.like.space.with_degree(term.degree)
            series = term.interaction[fine.degrees] * self.chart.moments(x, masses, term.degree)
            growth = growth + self.model.reaction * term.factor * fine.at(series, points)
        if isinstance(self.pairs, TokenMotion):  # a torus has no reaction
            growth = growth + self.pairs.reaction_rates(points[None], masses[None], t)[0]
        return growth - masses @ growth / masses.sum()

    def halved_error(self, y: np.ndarray, halves: Sequence[np.ndarray], t: float = 0.0) -> float:
        """Largest change of the velocities if only a half of the nodes is used, over all `halves`.

        `halves` are masks of nodes. The change is relative to the size of velocities near a Dirac
        for zonal drifts, and to the largest output of attention for others.
        """
        x, masses = self.node_coordinates(y), self.masses(y)
        (rates, size), change = self._attention_rates(x, masses, t), 0.0
        for half in halves:
            half_rates, _ = self._attention_rates(x, np.where(half, 2 * masses, 0.0), t)
            change = max(change, float(self.chart.lengths(x, half_rates - rates).max()))
        return change / size if size != 0 else 0.0

    def rounding(self, state: Characteristics) -> float:
        """Largest relative rounding error of velocities, at the node where Z * mu is least.

        By harmonics, W * mu and Z * mu have rounding errors relative to their largest values.
        """
        error = MACHINE_EPSILON
        for term in self.harmonics:
            if term.normaliser is not None:
                fine = state.space.with_degree(term.degree)
                series = term.normaliser[fine.degrees] * state.coefficients(term.degree)
                values = fine.at(series, state.points)
                smallest = max(values.min(), np.finfo(float).tiny)
                error = max(error, float(MACHINE_EPSILON * values.max() / smallest))
        return error

    def relative_error(self, error: np.ndarray, y: np.ndarray) -> float:
        """`NodeChart.relative_error`, or the largest relative error of a mass."""
        nodes = self.node_coordinates(error), self.node_coordinates(y)
        size = self.chart.relative_error(*nodes, self.masses(y), self._finest)
        if not self.model.reaction:
            return size
        return max(size, float(np.abs(error[:, -1]).max()))

    def projected(self, y: np.ndarray) -> np.ndarray:
        """`NodeChart.projected` of the nodes, with unchanged masses."""
        x = self.chart.projected(self.node_coordinates(y))
        return np.column_stack([x, y[:, -1]]) if self.model.reaction else x

    # Derivatives ---------------------------------------------------------------------------

    @property
    def why_no_tangents(self) -> str:  # type: ignore[override]
        """The reason why runs have no derivatives, and a remedy; empty if they have."""
        if not self.like.space.spherical:
            return f"of densities on {self.like.space!r}, not of Characteristics. Take the Density."
        advice = "Use reaction=0, or Tokens of the same points and masses."
        return f"of Characteristics without a reaction. {advice}" if self.model.reaction else ""

    def state_along(self, state: Characteristics, changes: Changes) -> MovedState:
        return state_along(state, changes, ("coordinates", "masses"))

    def along(self, names: TangentNames, state: MovedState) -> Self:
        """Copy with the derivatives of its terms by the parameters `names` of the whole drift."""
        copied, drift = copy(self), self.model.drift
        copied.like = state
        place_of = (lambda name: (0, name)) if drift.is_zonal else drift.place_of
        places = [None if name is None else place_of(name) for name in names]
        terms = zip(self._zonal_indices, self.harmonics, strict=True)
        copied.harmonics = [term.along(k, places) for k, term in terms]
        if self.pairs is not None:
            of_pairs = (
                [self._name_in_pairs(place) for place in places] if self._zonal_indices else names
            )
            copied.pairs = self.pairs.along(of_pairs, self._tokens(state))
        return copied

    def _name_in_pairs(self, place: Place | None) -> str | None:
        """The name of a parameter in the sum of the parts that are not zonal; None if in none."""
        if place is None or place[0] in self._zonal_indices:
            return None
        number = place[0] - sum(k < place[0] for k in self._zonal_indices)
        return f"factors[{number}]" if place[1] is None else f"drifts[{number}].{place[1]}"

    def tangent_space(self, state: Characteristics) -> TangentSpace:
        """The number of degrees of freedom of the nodes, and a function rng -> random direction."""
        x = state.coordinates

        def draw(rng: Generator) -> dict[str, Array]:
            noise = Dual(x, rng.standard_normal((1, *x.shape)))
            tangent: Values = self.chart.projected(noise)
            return {"coordinates": tangent.changes[0]}

        return len(x) * (x.ndim if x.ndim == 1 else x.shape[1] - 1), draw

    def smooth_observables(self, state: MovedState, t: float) -> Observations:
        """Order parameter |int x dmu| and mass, differentiable."""
        mean = state.masses @ state.points
        if state.coordinates.ndim == 1 and len(mean) > 2:  # components off the axis average to 0
            mean = mean * np.abs(state.limit)
        return {"order_parameter": np.linalg.norm(mean), "mass": state.masses.sum()}

    def direction(self, direction: UserValue, state: Characteristics) -> dict[str, Array]:
        """A checked change of the initial density or nodes, as arrays by name.

        `direction` is a function f of unit vectors (n, d), the change of the logarithm of the
        density up to a constant, d mu = (f - int f dmu) mu; or a mapping with changes of "masses"
        (n,), of sum 0, "coordinates", or both.
        """
        masses = state.masses
        if callable(direction) and not isinstance(direction, Mapping):
            values = finite_array("Values of the function", values_of(direction, state.points))
            require("Their shape", values.shape, f"{masses.shape}", values.shape == masses.shape)
            return {"masses": masses * (values - masses @ values / masses.sum())}
        shapes = {"coordinates": state.coordinates.shape, "masses": masses.shape}
        changes = checked_changes(direction, shapes, ", functions of unit vectors")
        check_masses(changes)
        return changes

    def rate(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """(int |v|^2 dmu)^(1/2), the speed in W2.

        Under a reaction with (d log m/dt)^2 added to |v|^2.
        """
        speeds = self.chart.lengths(self.node_coordinates(y), self.node_coordinates(velocity))
        if self.model.reaction:
            speeds = np.hypot(speeds, velocity[:, -1])
        return float(np.sqrt(self.masses(y) @ speeds**2))

    # Along a run ---------------------------------------------------------------------------

    def after_step(self, y: np.ndarray, t: float) -> None:
        """Check whether the nodes resolve the density; the first reason why not is stored."""
        if self._reason is None and (reason := self._unresolved(self.state_of(y))):
            self._reason, self.unresolved_since = f"After t = {t:g} {reason}", t

    def _unresolved(self, state: Characteristics) -> str | None:
        """The reason why the nodes do not resolve the density, and a remedy; else None."""
        if not state.resolved:
            return (
                f"the {len(state)} nodes no longer resolve the density: half of them give moments "
                f"that differ by {state.quadrature_error:.1e}. Between two clusters the nodes lie "
                "ever further apart; masses of clusters are uncertain by about as much. Use more "
                "nodes, Characteristics(density, nodes=...)."
            )
        if state.w2_to_dirac() < state.chart.smallest_w2:
            return (
                f"W2 to a Dirac is below {state.chart.smallest_w2:g}, where the mass that is too "
                "close to the antipode for any node, or for rounding, counts: take it for 0. "
                "Moments and clusters are as accurate as before."
            )
        if state.w2_error > W2_TOLERANCE:
            farthest = state.chart.distances(state.coordinates, state.mean_direction).argmax()
            start = self.like.points[farthest]
            self.last_to_arrive = start.tolist()
            graded = state.space.spherical
            if not graded or np.linalg.norm(start + self.like.limit) < ANTIPODE_TOLERANCE:
                remedy = (
                    "half of the nodes change it. Use more: Characteristics(density, nodes=...)"
                )
            else:
                remedy = (
                    f"the last mass to arrive starts near [{', '.join(f'{x:.4f}' for x in start)}],"
                    " and the nodes are graded towards the antipode of limit. Use limit = -p with "
                    'p that point; stats["last_to_arrive"] has its last digit'
                )
            return f"W2 to a Dirac is not resolved: {remedy}."
        if (rounding := self.rounding(state)) > VELOCITY_ROUNDING:
            return (
                "velocities far from all mass are lost in rounding: their relative error is "
                f"{rounding:.1e}, about 1e-16 exp(2 beta). What is still there moves at random; a "
                "smaller beta, or USA, has no such bound."
            )
        return None

    def warning(self, state: Characteristics, t: float, failure: Failure) -> str | None:
        """A warning if the nodes had ceased to resolve the density by the time t; else None."""
        return self._reason if self._unresolved_at(t) else None

    def _unresolved_at(self, t: float) -> bool:
        """Whether the density was unresolved at t or before.

        `unresolved_since` may be later than t, as the last step may end after the last output.
        """
        return self.unresolved_since is not None and self.unresolved_since <= t

    def snapshot(self) -> JsonTable:
        """The time and reason of the first failure of the nodes, as JSON can write them."""
        return {
            "unresolved_since": self.unresolved_since,
            "reason": self._reason,
            "last_to_arrive": self.last_to_arrive,
        }

    def restore(self, snapshot: JsonTable) -> None:
        """Restore the data of a `snapshot`."""
        self.unresolved_since, self._reason = snapshot["unresolved_since"], snapshot["reason"]
        self.last_to_arrive = snapshot["last_to_arrive"]

    def stats(self, state: Characteristics, t: float) -> JsonTable:
        """Statistics of the nodes and of their resolution of the density."""
        is_unresolved = self._unresolved_at(t)
        return {
            "nodes": len(self.like),
            **self._sums(),
            "quadrature_error": state.quadrature_error,
            "unresolved_since": self.unresolved_since if is_unresolved else None,
            "last_to_arrive": self.last_to_arrive if is_unresolved else None,
        }

    def _sums(self) -> JsonTable:
        """The highest degree of the zonal terms, and the engine of the sums over pairs, if any."""
        degrees = [term.degree for term in self.harmonics]
        numbers: JsonTable = {"kernel_degree": max(degrees)} if degrees else {}
        return numbers if self.pairs is None else numbers | self.pairs.stats(self.pairs.like, 0.0)

    def why_rejected(self, end: Failure) -> str:
        """The reason why no step was short enough."""
        if self.pairs is None and self.model.feedforward is None:
            return "rounding errors are larger. Use a larger rtol."
        return super().why_rejected(end)

    def why_not_finite(self, y: np.ndarray, t: float) -> str:
        """The reason why velocities at these coordinates are not finite, and what helps."""
        if self.pairs is None:
            if self.model.feedforward is None:
                return super().why_not_finite(y, t)
            x = self.state_of(y).points
            where = first_not_finite(self.model.feedforward_at(x, t), x=x)
            return f"feedforward returned vectors that are not finite{': ' * bool(where)}{where}."
        return self.pairs.why_not_finite(self.pairs.coordinates(self._tokens(self.state_of(y))), t)

    # Measured ------------------------------------------------------------------------------

    def measure(self, state: Characteristics, t: float = 0.0) -> Observations:
        """Observables of characteristics.

        Returns
        -------
        dict of ndarray
            mass, moment, order_parameter : as of a density
            interaction_energy : as of a density, or of tokens; E
            free_energy : -E where the model is its gradient flow; else nan
            dissipation : dE/dt = int |v|^2 dmu, with a reaction int |v|^2 + (d log m/dt)^2/alpha
                dmu; or nan
            speed : (int |v|^2 dmu)^(1/2), that of mu_t in W2
            w2_to_dirac : W2 to the Dirac at `limit_point`, in radians
            limit_point : (d,), the direction of int x dmu
            cluster_count : number of `Characteristics.clusters`
            cluster_mass, cluster_point : (count,) and (count, d), the heaviest first
            quadrature_error : change of the moments if half of the nodes are left out
        """
        space = state.space.with_degree(MOMENT_COUNT)
        moments = moments_of(space, state.coefficients(MOMENT_COUNT))
        speed, growth = self._speeds(state, t)
        energy, clusters = self._energy(state), state.clusters()
        gradient_flow = self._is_gradient(t)
        return {
            "moment": moments,
            "order_parameter": np.abs(moments[0]),
            "free_energy": -energy if gradient_flow else np.nan,
            "dissipation": speed**2 + growth if gradient_flow else np.nan,
            "w2_to_dirac": state.w2_to_dirac(),
            "speed": speed,
            "limit_point": state.mean_direction,
            "cluster_count": len(clusters),
            "cluster_mass": np.array([cluster.mass for cluster in clusters], dtype=float),
            "cluster_point": np.reshape(
                [cluster.point for cluster in clusters], (-1, space.dimension)
            ),
            "interaction_energy": energy,
            "mass": state.mass,
            "quadrature_error": state.quadrature_error,
        }

    def _speeds(self, state: Characteristics, t: float) -> tuple[float, float]:
        """(int |v|^2 dmu)^(1/2) and int (d log m/dt)^2 dmu / alpha, 0 without a reaction."""
        y = self.coordinates(state)
        rates, alpha = self.velocity(y, t), self.model.reaction
        squares = self.chart.lengths(state.coordinates, self.node_coordinates(rates)) ** 2
        growth = state.masses @ rates[:, -1] ** 2 / alpha if alpha else 0.0
        return float(np.sqrt(state.masses @ squares)), float(growth)

    def _is_gradient(self, t: float) -> bool:
        """Whether the flow is a gradient flow of the energy, in W2, or with a reaction."""
        model = self.model
        attention_only = model.normalisation.is_identity and model.feedforward is None
        return attention_only and model.drift.is_gradient(self.like.dimension, t)

    def _energy(self, state: Characteristics) -> float:
        """The interaction energy; nan for drifts without one."""
        energy = 0.0
        for term in self.harmonics:
            fine = state.space.with_degree(term.degree)
            of_term = interaction_energy(term.drift, fine, state.coefficients(term.degree))
            energy += term.factor * float(of_term)
        if self.pairs is not None:
            energy += float(self.pairs.energy(self.pairs.coordinates(self._tokens(state))))
        return energy
