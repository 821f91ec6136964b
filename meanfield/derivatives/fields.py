"""Tangents of N under drifts that are not zonal: -div(mu v), v a sum of quotients linear in mu.

At the points of the grid v = sum_h A_h mu/B_h mu with linear A_h and B_h, so that

    DN(mu) k = -div(k v + mu sum_h (A_h k - v_h B_h k)/B_h mu),    v_h = A_h mu/B_h mu

Where a bound has taken the place of B_h mu, its derivative is 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..core.kinds import ancestor
from ..engines.fields import (
    AttentionField,
    DensityHead,
    GridDensity,
    NotSmooth,
    PointField,
    ZonalField,
    fields_of,
)
from ..lowlevel.callbacks import PythonFunction
from ..models import Drift
from ..models.transformer import Transformer
from ..spaces import Geometry
from ..spaces.circle_transport import NO_MASS
from .parameters import NODES, WEIGHTS

STEP = 0.02  # of differences of order 10 in a parameter, in units of it, or of 1


@dataclass(frozen=True)
class Quotient:
    """A velocity at the points for each of many functions: numerators, denominators.

    Attributes
    ----------
    above : ndarray, (d - 1, r, N)
    below : ndarray, (r, N), or None for 1
    least : ndarray or float
        What takes the place of a smaller denominator.
    """

    above: np.ndarray
    below: np.ndarray | None = None
    least: Any = -np.inf

    @property
    def velocity(self) -> np.ndarray:
        """That of the first function, (d - 1, N)."""
        return self.above[:, 0] if self.below is None else self.above[:, 0] / self._level

    @property
    def changes(self) -> np.ndarray:
        """How the velocity of the first function changes along the others, (d - 1, r - 1, N)."""
        if self.below is None:
            return self.above[:, 1:]
        moves = np.where(self.below[0] > self.least, self.below[1:], 0.0)
        return (self.above[:, 1:] - self.velocity[:, None] * moves) / self._level

    @property
    def _level(self) -> np.ndarray:
        assert self.below is not None
        return np.maximum(self.below[0], self.least)


class QuotientHead(DensityHead):
    """A head on many functions at once, which answers with a `Quotient`."""

    def answer(self, pulls: np.ndarray, level: Any = None, least: Any = None) -> Any:
        along = self.density.geometry.frame @ self.V  # (d - 1, N, d)
        above = np.einsum("fna,arn->frn", along, pulls)
        return Quotient(above, level, -np.inf if least is None else least)

    def doubly_stochastic(self, tolerance: float, most_iterations: int) -> DensityHead:
        raise NotSmooth  # u and w depend on the density


def quotients(field: Any, functions: GridDensity) -> list[Quotient]:
    """The velocities that functions (r, N) exert, which a field is the sum of.

    Raises
    ------
    MeanfieldError
        For fields that are no such quotients.
    """
    kind = ancestor(type(field), {kind: kind for kind in (ZonalField, PointField, AttentionField)})
    space, reason = functions.geometry, f"its part {field.drift!r} is no quotient of linear sums"
    if kind is PointField:
        above = np.zeros((space.dimension - 1, *functions.values.shape))
        above[:, 0] = field.velocity(0.0, functions)
        return [Quotient(above)]
    if kind is ZonalField:
        attraction, normaliser = field._multipliers
        rows = [space.gradient(attraction * row) for row in functions.coefficients]
        below = None if normaliser is None else space.to_values(normaliser * functions.coefficients)
        return [Quotient(np.stack(rows, axis=1), below, -np.inf if below is None else NO_MASS)]
    if kind is AttentionField:
        try:
            heads = field.heads(0.0, functions, QuotientHead)
            found = [field.drift.attend(head) for head in heads]
        except NotSmooth:
            reason = (
                f"{field.drift!r} has a kernel that harmonics do not resolve, or weights that "
                "depend on the density otherwise"
            )
        except TypeError:  # weights that calculate with answers
            pass
        else:
            if all(isinstance(one, Quotient) for one in found):
                return found
    raise MeanfieldError(
        f"Tangents are known for velocities that are quotients of linear functions of the density; "
        f"{reason}. Take differences of runs with dt= and max_degree= = min_degree=."
    )


class FieldTangents:
    """(u, h_1, ..., h_p) -> (N(u), DN(u) h_1 + dN/dp_1, ...): as `linearised.Tangents`.

    Parameters
    ----------
    model : Transformer
    drift : Drift
        A single one: that of the member.
    geometry : Geometry
    names : sequence
        For each h the name of the parameter of the drift that changes with it, or None.
    """

    def __init__(self, model: Transformer, drift: Drift, geometry: Geometry, names: Any):
        self._geometry, self._rows, self.time = geometry, 1 + len(names), np.zeros(1)
        self._fields = fields_of(drift, geometry)
        forward = model.feedforward
        self._forward: Any = 0.0
        if forward is not None:
            values = model.feedforward_at(geometry.points)
            self._forward = np.einsum("fnd,nd->fn", geometry.frame, values)
        self._others = {
            row: self._near(drift, name) for row, name in enumerate(names, 1) if name is not None
        }
        size = self._rows * geometry.degrees.size
        self._function = PythonFunction(self._evaluate, size, geometry.dtype)
        self.address, self.context = self._function.address, 0

    def check(self) -> None:
        self._function.check()

    def _near(self, drift: Drift, name: str) -> list[tuple[float, Any]]:
        """Weights of a difference, and the fields of the drifts whose velocities it takes."""
        value = float(drift.parameters[name])
        step = STEP * (min(1.0, abs(value)) if value else 1.0)
        return [
            (w / step, fields_of(drift.replace(**{name: value + step * j}), self._geometry))
            for j, w in zip(NODES, WEIGHTS, strict=True)
        ]

    def _evaluate(self, _member: int, source: np.ndarray, target: np.ndarray) -> None:
        space, rows = self._geometry, source.reshape(self._rows, -1)
        functions = GridDensity(space, rows, space.to_values(rows))
        velocity, changes = self._velocities(functions)
        first = GridDensity(space, rows[0], functions.values[0])
        alone = GridDensity(space, rows[:1], functions.values[:1])
        u, found = first.values, target.reshape(self._rows, -1)
        found[0] = space.minus_divergence(velocity * u)
        for row in range(1, self._rows):
            change = changes[:, row - 1]
            for weight, fields in self._others.get(row, ()):
                change = change + weight * self._total(fields, alone)[0]
            flux = functions.values[row] * velocity + u * change
            found[row] = space.minus_divergence(flux)

    def _velocities(self, functions: GridDensity) -> tuple[np.ndarray, np.ndarray]:
        velocity, changes = self._total(self._fields, functions)
        return velocity + self._forward, changes

    @staticmethod
    def _total(fields: Any, functions: GridDensity) -> tuple[Any, Any]:
        """Velocity of the first function, and its changes along the others, of a sum of fields."""
        velocity: Any = 0.0
        changes: Any = 0.0
        for factor, field in fields:
            for one in quotients(field, functions):
                velocity = velocity + factor * one.velocity
                changes = changes + factor * one.changes
        return velocity, changes


def check_fields_differentiable(model: Transformer, geometry: Geometry) -> None:
    """Raise MeanfieldError, with the reason, where `FieldTangents` are not known."""
    drift = model.drift.member((0,) * len(model.drift.shape))
    space = geometry.with_degree(min(geometry.degree, 4))
    row = space.uniform().coefficients[None]
    for _, field in fields_of(drift, space):
        quotients(field, GridDensity(space, row, space.to_values(row)))
