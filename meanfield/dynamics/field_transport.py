"""The nonlinear part N of densities under any drift, -div(mu v) plus reaction, on a grid."""

from collections.abc import Callable

import numpy as np

from ..core.annotations import Function, Values
from ..core.errors import MeanfieldError
from ..engines.density_heads import GridDensity
from ..engines.fields import DensityField, fields_of
from ..lowlevel.callbacks import PythonFunction
from ..models import Drift
from ..models.attention import CAUSAL_REFUSED
from ..models.transformer import Transformer
from ..spaces import Space
from ..spaces.transport import Transport
from ..spaces.velocity_tables import TableTransport, TabulatedVelocity, VelocityTable


class EnsembleFields:
    """The fields of all members of an ensemble of densities on one space.

    Parameters
    ----------
    drift : Drift
    space : Space
    shape : tuple of int
        Ensemble shape, to which that of the drift broadcasts.
    """

    def __init__(self, drift: Drift, space: Space, shape: tuple[int, ...]):
        self.space, drift = space, drift.broadcast(shape)
        singles = [drift.member(i) for i in range(int(np.prod(shape)))] if drift.shape else [drift]
        self.members = [fields_of(single, space) for single in singles]

    def of(self, member: int) -> list[tuple[float, DensityField]]:
        """Factors and fields of the parts of the drift of one member."""
        return self.members[member % len(self.members)]  # a single entry serves all members

    def attention(self, t: float, c: np.ndarray) -> np.ndarray:
        """The whole output of attention (members, N, d) of densities (members, modes)."""
        return self._total(c, lambda field, density: field.attention(t, density))

    def potentials(self, t: float, c: np.ndarray) -> np.ndarray:
        """The potentials (members, N) of densities (members, modes), where the parts have one."""
        return self._total(c, lambda field, density: field.potential(t, density))

    def energies(self, t: float, c: np.ndarray) -> np.ndarray:
        """The energies (members,) of densities (members, modes), where the parts have one."""
        return self._total(
            c,
            lambda field, density: field.energy_share * density.mean(field.potential(t, density)),
        )

    def bounded(self, t: float, c: np.ndarray) -> float:
        """The largest `DensityField.bounded`, including densities c (members, modes)."""
        for member, series in enumerate(c):
            values = self.space.to_values(series)
            density = GridDensity(self.space, series, values, is_kept=True)
            for _, field in self.of(member):
                field.velocity(t, density)
        return max(field.bounded for member in self.members for _, field in member)

    def _total(
        self, c: np.ndarray, f: Callable[[DensityField, GridDensity], np.ndarray]
    ) -> np.ndarray:
        """Sums of factor * f(field, density) over the parts, for each density of c."""
        totals = []
        for member, series in enumerate(c):
            density = GridDensity(self.space, series, self.space.to_values(series))
            totals.append(sum(factor * f(field, density) for factor, field in self.of(member)))
        return np.array(totals)


def transport_of(
    model: Transformer,
    fields: EnsembleFields,
    members: int,
    inside: Function = float,
    pairs: bool = False,
) -> Transport:
    """N under any drift: compiled if its velocity can be tabulated, else a `FieldTransport`."""
    uncompiled = FieldTransport(model, fields, members, inside, pairs)
    tables = uncompiled.tabulated()
    if tables is None:
        return uncompiled
    return TableTransport(tables, [], uncompiled.degree, members, pairs=pairs)


def check_not_of_tokens(model: Transformer, state: str, dimension: int) -> None:
    """Raise MeanfieldError if only tokens can follow a model; `state` names what cannot.

    With a reaction, the drift must have a potential in this dimension.
    """
    drift, norm = model.drift, model.normalisation
    if drift.why_no_density:
        instead = ", or use indexed densities (docs/theory/causal.md)" * (
            drift.why_no_density == CAUSAL_REFUSED and state == "densities"
        )
        raise MeanfieldError(
            f"{drift!r} moves no {state}: {drift.why_no_density} Solve for Tokens{instead}."
        )
    if model.why_on_tokens_only:
        raise MeanfieldError(f"This model moves no {state}: {model.why_on_tokens_only}")
    if norm.has_radii:
        raise MeanfieldError(
            f"The normalisation {norm!r} gives tokens radii, which {state} on the sphere have not. "
            "Use PostLN(), NGPT(alpha) or SqrtScaling(), or solve for Tokens."
        )
    if model.reaction:
        drift.check_potential(dimension)


def check_fields(model: Transformer, space: Space) -> None:
    """Raise MeanfieldError, with the reason, for a model that no density on a space can follow."""
    check_not_of_tokens(model, "densities", space.dimension)
    if not model.keeps_axes:
        space.frame  # noqa: B018  (raises for spaces of axisymmetric densities)


class FieldTransport(Transport):
    """mu -> -div(mu P u) + alpha mu (Phi - int Phi dmu), u by attention and feed-forward map.

    Parameters
    ----------
    model : Transformer
        A model accepted by `check_fields`.
    fields : EnsembleFields
        Fields of the drift of the model.
    members : int
    inside : callable
        t -> t, clipped to a span between two jumps of the model.
    pairs : bool
        Whether the velocity is generated by another measure, see `Transport`; without reaction.
    """

    def __init__(
        self,
        model: Transformer,
        fields: EnsembleFields,
        members: int,
        inside: Function = float,
        pairs: bool = False,
    ):
        """Callback of -div(mu v), with v from Python; with `pairs`, on pairs (mu, nu)."""
        space = fields.space
        self._model, self._space, self._fields, self._inside = model, space, fields, inside
        self._feedforward = None if model.feedforward is None else model.feedforward_on(space)
        modes = space.degrees.size
        source_size = 2 * modes if pairs else modes
        self._function = PythonFunction(self._evaluate, source_size, space.dtype, modes)
        self.address, self.context = self._function.address, 0
        self.degree, self.dtype = space.degree, space.dtype
        self.points = space.weights.size
        self.speed, self.time = np.zeros(1), np.zeros(1)
        self._shape, self.compiled = (members, modes), self._function
        self._of_pairs(pairs)

    def check(self) -> None:
        self._function.check()

    def tabulated(self) -> list[TabulatedVelocity] | None:
        """Tables of the velocity of each member; None if one cannot be tabulated."""
        model, velocities = self._model, []
        if model.reaction or not model.normalisation.is_identity:
            return None
        for fields in self._fields.members:
            parts = [(factor, field.tables()) for factor, field in fields]
            if any(tables is None for _, tables in parts):
                return None
            scaled = [
                table.scaled(factor) for factor, tables in parts for table in (tables or [[]])[0]
            ]
            if self._feedforward is not None:
                scaled.append(VelocityTable.constant(self._tangential(self._feedforward)[0]))
            velocities.append(TabulatedVelocity.of(scaled, self.points))
        return velocities

    def _evaluate(self, member: int, source: np.ndarray, target: np.ndarray) -> None:
        """Write -div(mu v) plus the reaction alpha mu (psi - <psi>) of a member to `target`."""
        space, t = self._space, self._inside(float(self.time[0]))
        u, v = (source[: target.size], source[source.size - target.size :])
        density = sources = GridDensity(space, u, space.to_values(u))
        if self.pairs:
            sources = GridDensity(space, v, space.to_values(v))
        fields = self._fields.of(member)
        velocity = self.velocity(t, sources, fields)
        speed = np.sqrt((velocity**2).sum(axis=0).max())
        self.speed[0] = max(self.speed[0], speed)
        target[:] = space.minus_divergence(velocity * density.values)
        alpha = self._model.reaction
        if alpha:
            potential: Values = sum(c * field.potential(t, density) for c, field in fields)
            mean = density.mean(potential) / density.mean(np.ones_like(potential))
            target += space.to_coefficients(alpha * density.values * (potential - mean))

    def velocity(self, t: float, density: GridDensity, fields: Values) -> np.ndarray:
        """Tangential components (d - 1, N) of the velocity at the points of the grid."""
        model = self._model
        if model.normalisation.is_identity:
            velocity = sum(factor * field.velocity(t, density) for factor, field in fields)
        else:
            A = sum(factor * field.attention(t, density) for factor, field in fields)
            needs_size = model.normalisation.needs_direction
            size = float(np.max(model.drift.output_size(t))) if needs_size else 0.0
            velocity = self._tangential(model.normalisation.updated(t, A, size))
        if self._feedforward is not None:
            u = model.normalisation.updated(t, self._feedforward)
            velocity = velocity + self._tangential(u)
        return velocity

    def _tangential(self, vectors: np.ndarray) -> np.ndarray:
        return np.einsum("fnd,nd->fn", self._space.frame, vectors)


class ChangingNoise(Transport):
    """N of another transport, plus the part of the noise that is not in L.

    Parameters
    ----------
    transport : Transport
    missed : callable
        (t, coefficients (modes,)) -> that part, coefficients (modes,).
    """

    compiled: PythonFunction

    def __init__(self, transport: Transport, missed: Function):
        """Callback of a transport and of `missed`, the part of the noise outside L."""
        self._transport, self._missed = transport, missed
        self.speed, self.time = transport.speed, transport.time
        self.degree, self.points, self.dtype = transport.degree, transport.points, transport.dtype
        self._shape, self.context = transport._shape, 0
        self.compiled = PythonFunction(self._evaluate, self._shape[1], self.dtype)
        self.address = self.compiled.address

    def check(self) -> None:
        self.compiled.check()

    def _evaluate(self, member: int, source: np.ndarray, target: np.ndarray) -> None:
        """Write N of a member plus the missing part of the noise to `target`."""
        addresses = source.ctypes.data, target.ctypes.data
        self._transport.compiled(self._transport.context, member, *addresses)
        self._transport.check()
        target += self._missed(float(self.time[0]), source)
