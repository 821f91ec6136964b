"""N of densities under any drift: -div(mu v) and the reaction, by values on the grid."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..engines.fields import DensityField, Grid, fields_of
from ..lowlevel.callbacks import PythonFunction
from ..models.transformer import Transformer
from ..spaces import Geometry
from ..spaces.circle_transport import Table, TableTransport, merged
from ..spaces.contract import Transport


def in_members(model: Transformer, shape: tuple[int, ...]) -> Transformer:
    """The model with one drift for each member of an ensemble of this shape."""
    return model.replace(drift=model.drift.broadcast(shape))


def transport_of(
    model: Transformer, geometry: Geometry, members: int, inside: Callable = float
) -> Transport:
    """N under any drift: compiled where tables say it all, which are made for good."""
    general = FieldTransport(model, geometry, members, inside)
    tables = general.tabulated()
    return general if tables is None else TableTransport(tables, geometry.degree, members)


def members_fields(
    model: Transformer, geometry: Geometry, shape: tuple[int, ...]
) -> list[list[tuple[float, DensityField]]]:
    """The fields of every member of an ensemble, or of all where they are the same."""
    drift, members = model.drift.broadcast(shape), int(np.prod(shape))
    singles = [drift.member(i) for i in range(members)] if drift.shape else [drift]
    return [fields_of(single, geometry) for single in singles]


def attention_of(fields: Any, geometry: Geometry, c: np.ndarray, t: float) -> np.ndarray:
    """The whole output of attention (members, N, d) of densities (members, modes)."""
    found = []
    for member, series in enumerate(c):
        density = Grid(geometry, series, geometry.to_values(series))
        parts = fields[member % len(fields)]
        found.append(sum(factor * field.attention(t, density) for factor, field in parts))
    return np.array(found)


def potentials_of(
    model: Transformer,
    geometry: Geometry,
    shape: tuple[int, ...],
    coefficients: np.ndarray,
    t: float,
) -> np.ndarray | None:
    """Values of the potentials (*shape, N) whose gradients are the velocities; None if none are."""
    fields = members_fields(model, geometry, shape)
    found: list[Any] = []
    for i, series in enumerate(coefficients.reshape(-1, coefficients.shape[-1])):
        density = Grid(geometry, series, geometry.to_values(series))
        parts = fields[i % len(fields)]
        if not all(field.is_gradient(t) for _, field in parts):
            return None
        found.append(sum(factor * field.potential(t, density) for factor, field in parts))
    return np.array(found).reshape(*shape, -1)


class FieldTransport(Transport):
    """mu -> -div(mu P u) + alpha mu (Phi - int Phi dmu), u by attention and feed-forward map.

    Parameters
    ----------
    model : Transformer
        Its parameters are numbers, or one for each member.
    geometry : Geometry
    members : int
    inside : callable
        t -> the time, or one next to it that is between two jumps of the model.

    Raises
    ------
    MeanfieldError
        For a part of the model that no density can follow, with the reason.
    """

    def __init__(
        self, model: Transformer, geometry: Geometry, members: int, inside: Callable = float
    ):
        if model.normalisation.has_radii:
            raise MeanfieldError(
                f"{model.normalisation!r} gives tokens radii, which a density on the sphere has "
                "not: solve for Tokens, or leave the normalisation out."
            )
        if model.reaction:
            model.drift.check_potential(geometry.dimension)
        self._model, self._geometry, self._inside = model, geometry, inside
        self._frame = geometry.frame
        self._fields = members_fields(model, geometry, model.drift.shape)
        self._forward = None if model.feedforward is None else self._feedforward()
        self._function = PythonFunction(self._evaluate, geometry.degrees.size)
        self.address, self.context = self._function.address, 0
        self.degree = geometry.degree
        self.points = geometry.weights.size
        self.speed, self.time = np.zeros(1), np.zeros(1)
        self._shape, self.compiled = (members, geometry.degrees.size), self._function

    def check(self) -> None:
        self._function.check()

    def _feedforward(self) -> np.ndarray:
        return self._model.feedforward_at(self._geometry.points)

    def tabulated(self) -> list[list[Table]] | None:
        """Tables of the velocities of each member; None where something else is needed."""
        model, found = self._model, []
        if model.reaction or not model.normalisation.is_identity:
            return None
        for fields in self._fields:
            parts = [(factor, field.tables()) for factor, field in fields]
            if any(tables is None for _, tables in parts):
                return None
            mine = [table.scaled(factor) for factor, tables in parts for table in tables or ()]
            if self._forward is not None:
                along = self._tangential(self._forward)[0]
                mine.append(Table(np.stack([along, np.zeros_like(along)])))
            found.append(merged(mine))
        return found

    def _evaluate(self, member: int, source: np.ndarray, target: np.ndarray) -> None:
        geometry, t = self._geometry, self._inside(float(self.time[0]))
        density = Grid(geometry, source, geometry.to_values(source))
        fields = self._fields[member % len(self._fields)]
        velocity = self.velocity(t, density, fields)
        speed = np.sqrt((velocity**2).sum(axis=0).max())
        self.speed[0] = max(self.speed[0], speed)
        target[:] = geometry.minus_divergence(velocity * density.values)
        alpha = self._model.reaction
        if alpha:
            potential: Any = sum(c * field.potential(t, density) for c, field in fields)
            mean = density.mean(potential) / density.mean(np.ones_like(potential))
            target += geometry.to_coefficients(alpha * density.values * (potential - mean))

    def velocity(self, t: float, density: Grid, fields: Any) -> np.ndarray:
        """Components (d - 1, N) of the velocity of the points."""
        model = self._model
        if model.normalisation.is_identity:
            velocity = sum(factor * field.velocity(t, density) for factor, field in fields)
        else:
            A = sum(factor * field.attention(t, density) for factor, field in fields)
            size = model.drift.output_size(t) if model.normalisation.needs_direction else 0.0
            velocity = self._tangential(model.normalisation.updated(t, A, size))
        if self._forward is not None:
            velocity = velocity + self._tangential(model.normalisation.updated(t, self._forward))
        return velocity

    def _tangential(self, vectors: np.ndarray) -> np.ndarray:
        return np.einsum("fnd,nd->fn", self._frame, vectors)


class ChangingNoise(Transport):
    """N of another transport, and the part of the noise that is not in L.

    Parameters
    ----------
    transport : Transport
    missed : callable
        (t, coefficients) -> coefficients (modes,).
    """

    def __init__(self, transport: Transport, missed: Callable):
        self._transport, self._missed = transport, missed
        self.speed, self.time = transport.speed, transport.time
        self.degree, self.points, self.dtype = transport.degree, transport.points, transport.dtype
        self._shape, self.context = transport._shape, 0
        self.compiled = PythonFunction(self._evaluate, self._shape[1], self.dtype)
        self.address = self.compiled.address

    def check(self) -> None:
        self.compiled.check()

    def _evaluate(self, member: int, source: np.ndarray, target: np.ndarray) -> None:
        addresses = source.ctypes.data, target.ctypes.data
        self._transport.compiled(self._transport.context, member, *addresses)
        self._transport.check()
        target += self._missed(float(self.time[0]), source)
