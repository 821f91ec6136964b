"""Derivatives of N under drifts that are not zonal: -div(mu v), v a sum of quotients linear in mu.

At the points of the grid v = sum_h c_h A_h mu/B_h mu with linear A_h and B_h, so that

    DN(mu) k = -div(k v + mu sum_h c_h (A_h k - v_h B_h k)/B_h mu),    v_h = A_h mu/B_h mu,
    DN(mu)* l = <v, grad l> + sum_h c_h (A_h* F_h - B_h* <F_h, v_h>),  F_h = mu grad l/B_h mu

Where B_h mu is replaced by a lower bound, its derivative is 0. If the run is compiled, by tables on
the circle, these derivatives are compiled too: `spaces.linearised_tables`. Otherwise the kernels of
the run are applied to the state and its tangents together. With `pairs` the velocity is generated
by another measure: see `spaces.linearised`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from ..core.annotations import TangentNames, Values
from ..core.errors import MeanfieldError
from ..engines.density_heads import GridDensity, NotSmooth, Quotient
from ..engines.fields import DensityField
from ..lowlevel.callbacks import PythonFunction
from ..models import Drift
from ..models.transformer import Transformer
from ..spaces import Space
from ..spaces.velocity_tables import (
    NEGLIGIBLE_CHANGE,
    NEGLIGIBLE_COLUMN,
    TableAdjoint,
    TableTransport,
    TabulatedVelocity,
    VelocityTable,
)

Parts = list[tuple[float, DensityField]]


class DifferentiableFields:
    """The velocity of one member of an ensemble on one space, with its derivatives.

    Parameters
    ----------
    model : Transformer
    drift : Drift
        The drift of the member.
    fields : list of (float, DensityField)
        Factors and fields of the parts of the drift.
    space : Space
    """

    def __init__(self, model: Transformer, drift: Drift, fields: Parts, space: Space):
        """Fields of a drift on `space`, with the feed-forward map in its frame."""
        self.drift, self.fields, self.space = drift, fields, space
        self.feedforward = None
        if model.feedforward is not None:
            values = model.feedforward_at(space.points)
            self.feedforward = np.einsum("fnd,nd->fn", space.frame, values)

    def tangents(self, names: TangentNames, pairs: bool = False) -> Values:
        """N with one tangent for each name: by a parameter, or in a direction (None)."""
        parameters = list(dict.fromkeys(name for name in names if name is not None))
        tables = self._tables(parameters)
        if tables is None:
            return FieldTangents(self, names, pairs)
        rows = [-1 if name is None else parameters.index(name) for name in names]
        return TableTransport(*tables, self.space.degree, 1, rows, pairs)

    def adjoint(self, names: TangentNames, pairs: bool = False) -> Values:
        """The transpose of N, with derivatives by parameters of these names; 0 for None."""
        tables = self._tables(names)
        if tables is None:
            return FieldAdjoint(self, names, pairs)
        return TableAdjoint(*tables, self.space.degree, pairs=pairs)

    def quotients(self, functions: GridDensity, names: Sequence[str]) -> list[list[Quotient]]:
        """The velocities of the parts as quotients, with derivatives by these parameters.

        Raises
        ------
        MeanfieldError
            For velocities that are not quotients of linear functions of the density.
        """
        of_parts = []
        for (_, field), inner in zip(self.fields, self._names_by_part(names), strict=True):
            try:
                of_parts.append(field.quotients(functions, inner))
            except NotSmooth:
                raise MeanfieldError(
                    "Derivatives are known for velocities that are quotients of linear functions "
                    f"of the density; its part {field.drift!r} is no quotient of linear sums: a "
                    "kernel that harmonics do not resolve, or weights that depend on the density "
                    "otherwise. Take differences of runs with dt= and max_degree= = min_degree=."
                ) from None
        return of_parts

    def _names_by_part(self, names: TangentNames) -> list[list[str]]:
        """For each part of the drift its parameters among `names`, by their names in the part."""
        by_part: list[list[str]] = [[] for _ in self.fields]
        for k, name in (self.drift.place_of(name) for name in names if name is not None):
            if name is not None:
                by_part[k].append(name)
        return by_part

    def _tables(
        self, names: TangentNames
    ) -> tuple[list[TabulatedVelocity], list[TabulatedVelocity]] | None:
        """Tables of the velocity and of its derivatives by each name; None without tables."""
        points, parts = self.space.weights.size, []
        for (_, field), inner in zip(self.fields, self._names_by_part(names), strict=True):
            tabulated = field.tables(inner)
            if tabulated is None:
                return None
            parts.append(dict(zip(["", *inner], tabulated, strict=True)))

        def collected(of: int | None, name: str | None) -> TabulatedVelocity:
            """Tables of the velocity, or of its derivative by a parameter of part `of`.

            A parameter `name` None is the factor of the part.
            """
            tables: list[VelocityTable] = []
            for k, (part, (factor, _)) in enumerate(zip(parts, self.fields, strict=True)):
                if of is None:
                    tables += [table.scaled(factor) for table in part[""]]
                elif k != of:
                    tables += [table.unchanged for table in part[""]]
                elif name is None:
                    tables += [table.by_factor for table in part[""]]
                else:
                    tables += [table.scaled(factor) for table in part[name]]
            return TabulatedVelocity.of(
                tables, points, NEGLIGIBLE_COLUMN if of is None else NEGLIGIBLE_CHANGE
            )

        velocity = collected(None, None)
        if self.feedforward is not None:
            velocity = velocity._replace(steady=velocity.steady + self.feedforward[0])
        zero = TabulatedVelocity.of([t.unchanged for part in parts for t in part[""]], points)
        places = [None if name is None else self.drift.place_of(name) for name in names]
        return [velocity], [zero if place is None else collected(*place) for place in places]


class _InPython(ABC):
    """Evaluation in Python of N with tangents, or of its transpose, for one member.

    Parameters
    ----------
    fields : DifferentiableFields
    names : sequence
        The parameter of each tangent, or of each derivative of the adjoint; None for a direction.
    arguments, results : int
        Numbers of floats of the argument and of the result.
    """

    def __init__(
        self,
        fields: DifferentiableFields,
        names: TangentNames,
        arguments: int,
        results: int,
    ):
        """Callback of a linear map of fields in Python, from `arguments` to `results` numbers."""
        self.fields, self.names, space = fields, list(names), fields.space
        self.degree, self.points, self.dtype = space.degree, space.weights.size, space.dtype
        self.speed, self.time = np.zeros(1), np.zeros(1)
        self.parameters = list(dict.fromkeys(name for name in names if name is not None))
        self.part_of = {name: fields.drift.place_of(name) for name in self.parameters}
        self._function = PythonFunction(self._evaluate, arguments, float, results)
        self.address, self.context = self._function.address, 0

    def check(self) -> None:
        self._function.check()

    @abstractmethod
    def _evaluate(self, _member: int, source: np.ndarray, target: np.ndarray) -> None:
        """Write the result to `target`, from the argument `source`, both flat arrays of floats."""

    def functions(self, rows: np.ndarray) -> GridDensity:
        """Functions with coefficients `rows` (..., modes), and their values on the grid."""
        space = self.fields.space
        return GridDensity(space, rows, space.to_values(rows))

    def velocity(self, parts: list[list[Quotient]]) -> np.ndarray:
        """Components (d - 1, N) of the velocity of the first function."""
        feedforward = self.fields.feedforward
        total: Values = 0.0 if feedforward is None else feedforward
        for (factor, _), quotients in zip(self.fields.fields, parts, strict=True):
            for quotient in quotients:
                total = total + factor * quotient.velocity
        return total


class FieldTangents(_InPython):
    """The map (u, h_1, ..., h_p) -> (N(u), DN(u) h_1 + dN/dp_1, ...): see `linearised`."""

    def __init__(self, fields: DifferentiableFields, names: TangentNames, pairs: bool = False):
        """Callback of N with tangents by the parameters; with `pairs`, on pairs (mu, nu)."""
        space, self._per_row = fields.space, 1 + pairs
        self._shape = 1 + len(names), space.degrees.size
        size = space.dtype.itemsize // 8 * self._shape[0] * self._shape[1]
        super().__init__(fields, names, self._per_row * size, size)

    def _evaluate(self, _member: int, source: np.ndarray, target: np.ndarray) -> None:
        """Write N(u) and its tangents, one a row, by quotients of the heads and changes."""
        space, (count, modes) = self.fields.space, self._shape
        rows = source.view(space.dtype).reshape(count, self._per_row, modes)
        result = target.view(space.dtype).reshape(self._shape)
        functions = self.functions(rows[:, -1])
        parts = self.fields.quotients(functions, self.parameters)
        velocity = self.velocity(parts)
        values = functions.values if self._per_row == 1 else space.to_values(rows[:, 0])
        result[0] = space.minus_divergence(velocity * values[0])
        changes: Values = 0.0
        for (factor, _), quotients in zip(self.fields.fields, parts, strict=True):
            for quotient in quotients:
                changes = changes + factor * quotient.changes
        for row, name in enumerate(self.names, 1):
            change = changes[:, row - 1]
            if name is not None:
                change = change + self._by(name, parts)
            result[row] = space.minus_divergence(values[row] * velocity + values[0] * change)

    def _by(self, name: str, parts: list[list[Quotient]]) -> np.ndarray:
        """The derivative of the velocity by a parameter, (d - 1, N)."""
        k, inner = self.part_of[name]
        factor = self.fields.fields[k][0]
        change: Values = sum(
            part.velocity if inner is None else factor * part.change_by(inner) for part in parts[k]
        )
        return change


class FieldAdjoint(_InPython):
    """The map (u, l) -> (DN(u)* l, <l, dN/dp_1>, ...): see `spaces.linearised`."""

    def __init__(self, fields: DifferentiableFields, names: TangentNames, pairs: bool = False):
        """Callback of the transpose of `FieldTangents`."""
        space, self._per_row = fields.space, 1 + pairs
        self._floats = self._per_row * space.dtype.itemsize // 8 * space.degrees.size
        arguments = self._floats + self._floats // self._per_row
        super().__init__(fields, names, arguments, self._floats + len(names))

    def _evaluate(self, _member: int, source: np.ndarray, target: np.ndarray) -> None:
        """Write DN(u)* l and <l, dN/dp_i>, by transposed quotients of the heads."""
        space, floats = self.fields.space, self._floats
        rows = source.view(space.dtype).reshape(self._per_row + 1, -1)
        functions, last = self.functions(rows[self._per_row - 1 : self._per_row]), rows[-1]
        parts, slope = self.fields.quotients(functions, self.parameters), space.gradient(last)
        flux = (functions.values[0] if self._per_row == 1 else space.to_values(rows[0])) * slope
        result = np.zeros((self._per_row, last.size), space.dtype)
        result[0] = space.to_coefficients((self.velocity(parts) * slope).sum(axis=0))
        pulled = []
        for (factor, _), quotients in zip(self.fields.fields, parts, strict=True):
            pulled.append([quotient.pulled_back(factor * flux) for quotient in quotients])
            for quotient, covectors in zip(quotients, pulled[-1], strict=True):
                result[-1] += quotient.transposed(*covectors)
        target[:floats] = result.view(float).ravel()
        for p, name in enumerate(self.names):
            target[floats + p] = 0.0 if name is None else self._by(name, parts, pulled, flux)

    def _by(self, name: str, parts: Values, pulled: Values, flux: np.ndarray) -> float:
        """The derivative <l, dN/dp> by a parameter."""
        k, inner = self.part_of[name]
        total: Values = 0.0
        for quotient, (F, s) in zip(parts[k], pulled[k], strict=True):
            if inner is None:
                total = total + (flux * quotient.velocity).sum(axis=0)
                continue
            numerator, denominator = quotient.by[inner]
            total = total + (F * numerator[:, 0]).sum(axis=0)
            if s is not None:
                total = total + s * denominator[0]
        return float(total @ self.fields.space.weights)


def check_fields_differentiable(fields: DifferentiableFields) -> None:
    """Raise MeanfieldError, with the reason, if a velocity has no derivatives."""
    space = fields.space
    row = space.uniform().coefficients[None]
    fields.quotients(GridDensity(space, row, space.to_values(row)), [])
