"""Velocities, outputs of attention and potentials of a density at the points of its grid.

A field belongs to one drift on one space; FIELDS has its class for each kind of drift. The field of
a sum of drifts is the sum of their fields.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.differences import derivative_at_zero
from ..core.errors import MeanfieldError
from ..core.kinds import ancestor
from ..models import Attention, Drift, Pointwise, Potential, ZonalDrift
from ..models.changes import table_changes
from ..models.zonal import kernel_degree
from ..spaces.contract import Space
from ..spaces.transport import NO_MASS
from ..spaces.velocity_tables import NEGLIGIBLE_CHANGE, NEGLIGIBLE_COLUMN, VelocityTable
from .attention import AttentionSums
from .density_heads import (
    DensityHead,
    GridDensity,
    NotSmooth,
    Quotient,
    QuotientHead,
    Slope,
)
from .kernels import LARGEST_TABLE, Kernels, kernels_of, potential_of_points

TABLE_COLUMNS = 32  # modes whose table columns are computed together


class DensityField(ABC):
    """Velocity field of a density at the points of its grid, under one drift without ensembles."""

    def __init__(self, drift: Any, space: Space) -> None:
        self.drift, self.space, self._bounded = drift, space, 0.0
        self._derivatives: dict[str, Any] = {}  # by parameters of the drift

    @property
    def bounded(self) -> float:
        """The largest mass met so far at points where a lower bound replaced Z * mu."""
        return self._bounded

    @abstractmethod
    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        """The whole output of attention, (N, d)."""

    def velocity(self, t: float, density: GridDensity) -> np.ndarray:
        """The tangential part of the output of attention, in components (d - 1, N)."""
        return np.einsum("fnd,nd->fn", self.space.frame, self.attention(t, density))

    @abstractmethod
    def quotients(
        self, functions: GridDensity, names: Sequence[str] = (), rows: int = 1
    ) -> list[Quotient]:
        """Velocities that r functions (r, N) exert, as a sum of quotients.

        Parameters
        ----------
        functions : GridDensity
            The density, and changes of it.
        names : sequence of str
            Parameters of the drift by which derivatives are taken.
        rows : int
            Derivatives are computed for the first `rows` functions.

        Raises
        ------
        NotSmooth
            Where the velocities are no sum of quotients.
        """

    def tables(self, names: Sequence[str] = ()) -> "list[list[VelocityTable]] | None":
        """Tables of the velocity on the circle, then of its derivative by each parameter.

        Each is a list of tables whose velocities are added. None where there are no tables.
        """
        return None

    def potential(self, t: float, density: GridDensity) -> np.ndarray:
        """Potential Phi, (N,), whose gradient is the velocity; reactions use it."""
        raise NotImplementedError  # `check_potential` of the drift has refused it

    @property
    def energy_share(self) -> float:
        """E / int Phi dmu: 1/2 of an interaction, in which each pair counts once, else 1."""
        return 0.5 if self.drift.interacts else 1.0


class ZonalField(DensityField):
    """Field v = grad (W * mu) / (Z * mu) of a zonal drift and its potential W * mu, by harmonics.

    Z * mu below NO_MASS is rounding error, and is replaced by NO_MASS: see `spaces.transport`.
    """

    drift: ZonalDrift

    @cached_property
    def _multipliers(self) -> tuple[np.ndarray, np.ndarray | None]:
        attraction = self.space.attraction(self.drift)[self.space.levels]
        normaliser = self.space.normaliser(self.drift)
        return attraction, None if normaliser is None else normaliser[self.space.levels]

    @cached_property
    def _interaction(self) -> np.ndarray:
        """Multipliers of W. Those of `_multipliers` may differ by a factor that Z has too."""
        return self.space.interaction(self.drift)[self.space.levels]

    def velocity(self, t: float, density: GridDensity) -> np.ndarray:
        """Components (d - 1, N) of grad (W * mu) / (Z * mu) on the grid."""
        attraction, normaliser = self._multipliers
        gradient = self.space.gradient(attraction * density.coefficients)
        if normaliser is None:
            return gradient
        return gradient / self._denominator(density)

    def quotients(
        self, functions: GridDensity, names: Sequence[str] = (), rows: int = 1
    ) -> list[Quotient]:
        """Quotient grad (W * mu) / (Z * mu), with its derivatives by the parameters."""
        numerator, denominator = self._parts(*self._multipliers, functions.coefficients)
        first = functions.coefficients[:rows]
        by = {name: Slope(*self._parts(*self._changes(name), first)) for name in names}
        floor = -np.inf if denominator is None else NO_MASS
        return [Quotient(numerator, denominator, floor, by, self._transposed)]

    def _parts(
        self, attraction: np.ndarray, normaliser: Any, series: np.ndarray
    ) -> tuple[Any, ...]:
        """Gradients of W * f, (d - 1, r, N), and Z * f, (r, N) or None, from coefficients of f."""
        space = self.space
        numerator = np.stack([space.gradient(attraction * row) for row in series], axis=1)
        return numerator, None if normaliser is None else space.to_values(normaliser * series)

    def _transposed(self, F: np.ndarray, s: np.ndarray | None) -> np.ndarray:
        attraction, normaliser = self._multipliers
        series = np.conj(attraction) * self.space.minus_divergence(F)
        return series if s is None else series + normaliser * self.space.to_coefficients(s)

    def _changes(self, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Derivatives of the multipliers of W and of Z by a parameter, cached; None where Z = 1."""
        if name not in self._derivatives:
            rows = table_changes(self.drift, name, self.space)
            changes = [row[self.space.levels] for row in rows]
            self._derivatives[name] = changes[0], changes[1] if len(changes) > 1 else None
        return self._derivatives[name]

    def tables(self, names: Sequence[str] = ()) -> "list[list[VelocityTable]] | None":
        """Tables of the velocity and its derivatives on the circle; None if they are too large."""
        if self.space.dimension != 2:
            return None
        tables = [self._table(*self._multipliers, NEGLIGIBLE_COLUMN)]
        tables += [self._table(*self._changes(name), NEGLIGIBLE_CHANGE) for name in names]
        return None if any(table is None for table in tables) else [[table] for table in tables]

    def _table(self, attraction: np.ndarray, normaliser: np.ndarray | None, share: float) -> Any:
        """Velocities of unit coefficients with shares above `share`; None if too many."""
        sizes = np.abs(attraction) * self.space.degrees
        sizes = sizes if normaliser is None else np.maximum(sizes, np.abs(normaliser))
        significant = np.flatnonzero(sizes > share * sizes.max())
        count = int(significant[-1]) + 1 if significant.size else 1
        if count * self.space.weights.size > LARGEST_TABLE:
            return None
        parts = unit_coefficients(self.space, 0, count)
        numerator = self.space.to_values(1j * self.space.degrees * attraction * parts)
        if normaliser is None:
            return VelocityTable(numerator)
        return VelocityTable(numerator, self.space.to_values(normaliser * parts), NO_MASS)

    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        """Output int W'(<x, y>) y dmu(y) / (Z * mu)(x), (N, d), by convolutions of W' with y_k mu.

        The multipliers of W' are sums of those of W, W_l = (W'_(l-1) - W'_(l+1)) / (2l + d - 2).
        """
        space = self.space
        moments = space.to_coefficients(density.moments[:-1])
        output = space.to_values(self._slopes * moments).T
        normaliser = self._multipliers[1]
        if normaliser is None:
            return output
        return output / self._denominator(density)[:, None]

    def _denominator(self, density: GridDensity) -> np.ndarray:
        """Values of Z * mu, bounded from below by NO_MASS, (N,)."""
        denominator = self.space.to_values(self._multipliers[1] * density.coefficients)
        self._bounded = max(self._bounded, density.mass_below(denominator, NO_MASS))
        return np.maximum(denominator, NO_MASS)

    @cached_property
    def _slopes(self) -> np.ndarray:
        """Multipliers of W' by degree, from those of W by the recurrence of Gegenbauer series."""
        degree, dimension = self.space.degree, self.space.dimension
        last = 2 + 2 * max(degree, kernel_degree(self.drift, dimension))
        weights = self.drift.attraction(last, dimension)
        pairs = ((2 * np.arange(last + 1) + dimension - 2) * weights)[1:].reshape(-1, 2)
        return pairs[::-1].cumsum(axis=0)[::-1].ravel()[self.space.degrees]

    def potential(self, t: float, density: GridDensity) -> np.ndarray:
        return self.space.to_values(self._interaction * density.coefficients)


class PointField(DensityField):
    """Field of a drift that is a function of points, whatever the density is."""

    @cached_property
    def _values(self) -> np.ndarray:
        """Values (N, d) of the field at grid points; MeanfieldError if not finite."""
        values = self.drift.values(self.space.points)
        if not np.isfinite(values).all():
            raise MeanfieldError(self.drift.why_not_finite(self.space.points))
        return values

    def quotients(
        self, functions: GridDensity, names: Sequence[str] = (), rows: int = 1
    ) -> list[Quotient]:
        """Constant numerator of the field, with its derivatives by the parameters."""
        first = np.arange(len(functions.values)) == 0  # changes of the density have no effect
        numerator = self._tangential(self._values)[:, None] * first[:, None]
        by = {n: Slope(self._tangential(self._slope(n))[:, None], None) for n in names}
        return [Quotient(numerator, by=by)]

    def tables(self, names: Sequence[str] = ()) -> "list[list[VelocityTable]] | None":
        """Tables of the constant velocity and its derivatives on the circle; None elsewhere."""
        if self.space.dimension != 2:
            return None
        fields = [self._values, *(self._slope(name) for name in names)]
        return [[VelocityTable.constant(self._tangential(values)[0])] for values in fields]

    def _tangential(self, vectors: np.ndarray) -> np.ndarray:
        return (self.space.frame * vectors).sum(axis=2)

    def _slope(self, name: str) -> np.ndarray:
        """Derivative by a parameter of the function at the points, by differences, cached."""
        if name not in self._derivatives:
            value = float(self.drift.parameters[name])
            unit = min(1.0, abs(value)) or 1.0

            def values(h: float) -> np.ndarray:
                return self.drift.replace(**{name: value + unit * h}).values(self.space.points)

            of = f"{type(self.drift).__name__} by {name}"
            self._derivatives[name] = derivative_at_zero(values, of) / unit
        return self._derivatives[name]

    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        return self._values


class PotentialField(PointField):
    """Field of a `Potential`, grad V, and its potential V."""

    drift: Potential

    @cached_property
    def _potential(self) -> np.ndarray:
        return self.drift.level(self.space.points)

    def potential(self, t: float, density: GridDensity) -> np.ndarray:
        """V int dmu: V for measures of mass 1, and linear in the measure."""
        return self._potential * density.mean(np.ones_like(self._potential))


# Attention -------------------------------------------------------------------------------------


class AttentionField(DensityField):
    """Field of attention with heads, by kernels with few harmonics; else by sums over the grid."""

    drift: Attention

    def __init__(self, drift: Attention, space: Space) -> None:
        super().__init__(drift, space)
        self._kernels: list[Kernels] = []
        self._sums = AttentionSums(drift)

    @property
    def bounded(self) -> float:
        return max((kernels.bounded for kernels in self._kernels), default=0.0)

    def heads(
        self, t: float, density: GridDensity, kind: Any = DensityHead, **options: Any
    ) -> "list[Any]":
        """Heads of class `kind`, with their matrices at the time t."""
        matrices = self.drift.on(t, self.space.dimension)
        while len(self._kernels) < len(matrices):
            self._kernels.append(kernels_of(self.space))
        return [
            kind(density, *head, kernels, **options)
            for head, kernels in zip(matrices, self._kernels, strict=False)
        ]

    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        """Output (N, d) on the grid: the sum over heads, or sums over pairs if not smooth."""
        try:
            pulls: list[Any] = [self.drift.attend(head) for head in self.heads(t, density)]
            return sum(pulls[1:], pulls[0])
        except NotSmooth:
            points = self.space.points[None]
            return self._sums.attention(t, points, density.masses[None])[0]

    def quotients(
        self, functions: GridDensity, names: Sequence[str] = (), rows: int = 1
    ) -> list[Quotient]:
        """`Quotient` of each head; NotSmooth if the drift answers otherwise."""
        rows = rows if "beta" in names else 0
        heads = self.heads(0.0, functions, QuotientHead, rows=rows)
        try:
            answers: Any = [self.drift.attend(head) for head in heads]
        except TypeError:  # weights that do arithmetic with outputs: a `Quotient` has none
            raise NotSmooth from None
        if not all(isinstance(answer, Quotient) for answer in answers):
            raise NotSmooth
        return answers

    def tables(self, names: Sequence[str] = ()) -> "list[list[VelocityTable]] | None":
        """Tables of velocities of each head, then of their changes by `names`."""
        space = self.space
        if not (self.drift.constant and space.dimension == 2):
            return None
        blocks: list[list[list[VelocityTable]]] = []
        for first in range(0, space.degrees.size, TABLE_COLUMNS):
            parts = unit_coefficients(space, first, TABLE_COLUMNS)
            functions = GridDensity(space, parts, space.to_values(parts))
            try:
                quotients = self.quotients(functions, names, len(parts))
            except NotSmooth:  # `attention` then sums over the grid
                return None
            answers = [[_table(q.numerators, q.denominators, q.least) for q in quotients]]
            answers += [[_table(*q.by[name]) for q in quotients] for name in names]
            blocks.append(answers)
            shares = [NEGLIGIBLE_COLUMN, *[NEGLIGIBLE_CHANGE] * len(names)]
            if all(
                table.negligible_to(first_one, share)
                for tables, block_tables, share in zip(answers, blocks[0], shares, strict=True)
                for table, first_one in zip(tables, block_tables, strict=True)
            ):
                break
            sizes = (table.size for rows in blocks for tables in rows for table in tables)
            if sum(sizes) > LARGEST_TABLE:
                return None
        return [
            [VelocityTable.joined(columns) for columns in zip(*rows, strict=True)]
            for rows in zip(*blocks, strict=True)
        ]

    def potential(self, t: float, density: GridDensity) -> np.ndarray:
        """Sum c int energy(x, y) dmu(y), if the velocity is its gradient."""
        slope = self.drift.gradient_at(t, self.space.dimension)
        if slope is None:
            return super().potential(t, density)
        c, A, beta = slope
        energy, key = potential_of_points(self.drift.weights, A, beta), ("potential", A, beta)
        kernels = self.heads(t, density)[0].kernels
        kernel = kernels.remembered(key, kernels.smooth, A, energy)
        if kernel is not None:
            return c * kernel(density.values[None])[0]
        points = self.space.points
        return c * (energy(points, points) @ density.masses)


def unit_coefficients(space: Space, first: int, count: int) -> np.ndarray:
    """Coefficients (columns, modes) of unit functions: the real and imaginary parts of modes.

    Two rows for each of `count` modes from `first` on: 1 as its real and as its imaginary part.
    """
    last = min(first + count, space.degrees.size)
    parts = np.zeros((2 * (last - first), 2 * space.degrees.size))
    parts[np.arange(len(parts)), 2 * first + np.arange(len(parts))] = 1.0
    return parts.view(complex)


def _table(
    numerators: np.ndarray, denominators: np.ndarray | None, floor: Any = -np.inf
) -> VelocityTable:
    """Table of a velocity on the circle, from numerators and denominators of unit functions."""
    return VelocityTable(numerators[0], denominators, max(0.0, float(np.max(floor))))


# Fields of drifts ------------------------------------------------------------------------------

FIELDS: dict[Any, type[DensityField]] = {
    ZonalDrift: ZonalField,
    Attention: AttentionField,
    Pointwise: PointField,
    Potential: PotentialField,
}


def fields_of(drift: Drift, space: Space) -> list[tuple[float, DensityField]]:
    """Pairs (factor, field) for the parts of a drift without ensembles.

    Raises
    ------
    MeanfieldError
        For a part whose kind is not in FIELDS.
    """
    fields = []
    for factor, term in drift.terms:
        kind = ancestor(type(term), FIELDS)
        if kind is None:
            names = ", ".join(field_class.__name__ for field_class in FIELDS)
            raise MeanfieldError(
                f"Densities know no field of {type(term).__name__}; they know those of {names} and "
                "of classes derived from them. Solve for Tokens."
            )
        fields.append((factor, FIELDS[kind](term, space)))
    return fields
