"""Transport on the circle by tables of the velocity, its derivative, and the transpose: compiled.

The velocity is a sum of quotients of linear functions and of a fixed velocity v_0,

    v = v_0 + sum_h q_h,    q_h = A_h u / B_h u,

tabulated at 3 degree + 1 points and more, so that with the weak divergence

    N(u) = -(u v)',    DN(u) k = -(k v + u sum_h (A_h k - q_h B_h k) / B_h u)',
    DN(u)* l = v l' + sum_h A_h* (u l' / B_h u) - B_h* (u l' q_h / B_h u)

are exact for the discrete map. Where B_h u is replaced by a lower bound, its derivative is 0. With
`pairs` the velocities are those of other measures: see `spaces.linearised`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, complex_array, float_array
from ..lowlevel.compilation import IN_ANY_ORDER, INNER, SUBROUTINE, WITHIN, njit
from ..lowlevel.fourier import TRANSFORM, RealTransform, fill_spectrum, fill_values
from ..lowlevel.records import Field, InCode, Layout, floats, integers, numbers_at
from ..lowlevel.simd import address_of, aligned
from .circle_transport import largest, minus_derivative
from .transport import Transport

NEGLIGIBLE_COLUMN = 3e-16  # columns of a table below this, relative to its largest, are rounding
NEGLIGIBLE_CHANGE = 1e-13  # the same for derivatives by parameters
POINTS_AT_ONCE = 1024  # points of a block, whose table entries stay in the cache


@dataclass(frozen=True)
class VelocityTable:
    """Velocity at N points of the circle as a quotient of linear functions of a density.

    Attributes
    ----------
    numerator, denominator : ndarray, (columns, N)
        Contributions of the real and imaginary parts of the coefficients of the density, one
        column for each. The denominator may be None, for a linear velocity.
    least : float
        Lower bound of the denominator, below which it is rounding: see `transport.NO_MASS`.
    steady : bool
        Whether the velocity is the same for all densities: the first column, times the mass 1.
    """

    numerator: np.ndarray
    denominator: np.ndarray | None = None
    least: float = 0.0
    steady: bool = False

    @classmethod
    def constant(cls, velocity: np.ndarray) -> Self:
        """Table of a velocity (N,) that is the same for all densities of mass 1."""
        return cls(np.stack([velocity, np.zeros_like(velocity)]), steady=True)

    @property
    def size(self) -> int:
        """Number of entries of both tables."""
        return self.numerator.size * (1 if self.denominator is None else 2)

    def negligible_to(self, other: Self, share: float = NEGLIGIBLE_COLUMN) -> bool:
        """True if no entry exceeds `share` times the largest entry of another table."""
        pairs = (self.numerator, other.numerator), (self.denominator, other.denominator)
        return all(
            np.abs(part).max() <= share * np.abs(total).max()
            for part, total in pairs
            if part is not None and total is not None
        )

    @classmethod
    def joined(cls, tables: Sequence[Self]) -> Self:
        """One table of the columns of several."""
        denominators = [table.denominator for table in tables if table.denominator is not None]
        rows = np.concatenate([table.numerator for table in tables])
        return cls(rows, np.concatenate(denominators) if denominators else None, tables[0].least)

    def trimmed(self, share: float) -> Self:
        """Table without the last columns whose entries are at most `share` times the largest."""
        columns = 2
        for part in (self.numerator, self.denominator):
            sizes = np.zeros(1) if part is None else np.abs(part).max(axis=1, initial=0.0)
            significant = np.flatnonzero(sizes > share * sizes.max(initial=0.0))
            columns = max(columns, int(significant[-1]) + 1 if significant.size else 0)
        denominator = None if self.denominator is None else self.denominator[:columns]
        return replace(self, numerator=self.numerator[:columns], denominator=denominator)

    @property
    def unchanged(self) -> Self:
        """Zero derivative of this table, by a parameter on which it does not depend."""
        return replace(self.by_factor, numerator=np.zeros_like(self.numerator[:1]))

    @property
    def by_factor(self) -> Self:
        """Derivative of c times this velocity by the number c."""
        constant = None if self.denominator is None else np.zeros_like(self.denominator[:1])
        return replace(self, denominator=constant)

    def scaled(self, factor: float) -> Self:
        """The table of the velocity times a factor."""
        return replace(self, numerator=factor * self.numerator)


class TabulatedVelocity(NamedTuple):
    """Velocity on the circle, or its derivative by a parameter, as a sum of tables.

    Attributes
    ----------
    steady : ndarray, (N,)
        Part v_0 that does not depend on the density.
    tables : list of VelocityTable
        First the linear part, without a denominator, then the quotients.
    """

    steady: np.ndarray
    tables: list[VelocityTable]

    @classmethod
    def of(
        cls, tables: Sequence[VelocityTable], points: int, share: float = NEGLIGIBLE_COLUMN
    ) -> Self:
        """Sum of tables at N = `points` points; last columns are dropped as in `trimmed`."""
        linear = [t.numerator for t in tables if t.denominator is None and not t.steady]
        total = np.zeros((max(map(len, linear), default=0), points))
        for numerator in linear:
            total[: len(numerator)] += numerator
        steady = sum((t.numerator[0] for t in tables if t.steady), np.zeros(points))
        quotients = [table for table in tables if table.denominator is not None]
        return cls(steady, [table.trimmed(share) for table in [VelocityTable(total), *quotients]])


class TableTransport(Transport):
    """(u, k_1, ..., k_p) -> (N(u), DN(u) k_1 + dN/dp_1, ...), N(u) = -(u v)' with v by tables.

    Parameters
    ----------
    velocities : sequence of TabulatedVelocity
        One velocity for each member, or one for all. All velocities and their derivatives have the
        same number of tables.
    changes : sequence of TabulatedVelocity
        Derivatives of the velocity by parameters; then there is a single velocity.
    degree : int
        Highest degree of the densities.
    members : int
        Number of densities.
    parameters : sequence of int
        For each k the index of the parameter that changes with it, or -1.
    pairs : bool
        Whether u and each k are followed by the measures that move them.
    """

    def __init__(
        self, velocities: Sequence[TabulatedVelocity], changes: Sequence[TabulatedVelocity],
        degree: int, members: int = 1, parameters: Sequence[int] = (), pairs: bool = False,
    ) -> None:  # fmt: skip
        self.degree, self._modes = degree, degree + 1
        self.points = self.length = velocities[0].steady.size
        self.time, self.speed = np.zeros(1), np.zeros(1)
        self._shape = members, (1 + len(parameters)) * self._modes
        self.pairs, self._fft = pairs, RealTransform(self.points, rows=1)
        variants = [*velocities, *changes]
        parts, size = [np.stack([velocity.steady for velocity in variants])], len(variants)
        entries = np.zeros((size, len(variants[0].tables), 4), dtype=np.int64)
        for number, velocity in enumerate(variants):
            for h, table in enumerate(velocity.tables):
                for kind, part in ((0, table.numerator), (2, table.denominator)):
                    if part is not None:
                        parts.append(part[: 2 * self._modes])
                        entries[number, h, kind : kind + 2] = len(parts[-1]), size
                        size += len(parts[-1])
        aligned_parts = aligned(size, self.points)
        np.concatenate(parts, out=aligned_parts)
        self._shared: dict[str, Any] = {
            "modes": self._modes,
            "pairs": int(pairs),
            "fft": self._fft.record,
            "entries": entries,
            "least": np.array([[t.least for t in velocity.tables] for velocity in velocities]),
            "tables": aligned_parts,
            "speed": self.speed,
        }
        self._fill(np.array([-1, *parameters], dtype=np.int64))

    def _fill(self, parameters: np.ndarray) -> None:
        shape = len(parameters), self.points
        rows = {name: aligned(*shape) for name in ("v", "numerators", "denominators")}
        record = TABLE_TANGENTS.filled(**self._shared, **rows, parameters=parameters)
        self._enter(_tangents, record)


class TableAdjoint(TableTransport):
    """(u, l) -> (DN(u)* l, <l, dN/dp_1>, ...), for compiled code: see `Transport`.

    In the output the inner products <l, dN/dp_i> are floats after the coefficients of DN(u)* l.
    """

    def _fill(self, parameters: np.ndarray) -> None:
        work, gradient = aligned(7, self.points), np.zeros(2 * self._modes)
        record = TABLE_ADJOINT.filled(**self._shared, work=work, gradient=gradient)
        self._enter(_adjoint, record)


TABLE_FIELDS: dict[str, Field] = {
    **dict.fromkeys(("modes", "pairs"), int),
    "fft": TRANSFORM,
    # Number of columns, and the first of them in `tables`, of numerators and denominators.
    "entries": integers("velocities", "count", 4),
    "least": floats("bounds", "count"),  # of the velocities that are no derivatives
    "tables": floats("size", "length"),
    "speed": floats(1),
}
TABLE_TANGENTS = Layout(
    "TableTangents",
    {
        **TABLE_FIELDS,
        "parameters": integers("rows"),
        **dict.fromkeys(("v", "numerators", "denominators"), floats("rows", "length")),
    },
)
TABLE_ADJOINT = Layout(
    "TableAdjoint", {**TABLE_FIELDS, "work": floats(7, "length"), "gradient": floats("floats")}
)
_tangents_at, _adjoint_at = TABLE_TANGENTS.at, TABLE_ADJOINT.at


@CompiledFunction
def _tangents(context: int, member: int, source: int, target: int) -> None:
    """Write N(u) = -(u v)' and DN(u) k_i + dN/dp_i, (rows, modes), with v by tables."""
    record = _tangents_at(context)
    modes, pairs, length, rows = record.modes, record.pairs, record.length, record.rows
    parts = float_array(source, (rows, 1 + pairs, 2 * modes))[:, pairs]
    densities = complex_array(source, (rows, 1 + pairs, modes))[:, 0]
    result, fft = complex_array(target, (rows, modes)), record.fft
    spectrum, values = fft.spectrum[0], fft.values[0]
    tables, entries, parameters = record.tables, record.entries, record.parameters
    v, numerators, denominators = record.v, record.numerators, record.denominators
    first = member if record.bounds > 1 else 0
    for row in range(rows):
        table = parameters[row] + 1 if row > 0 else first
        for j in range(length):
            v[row, j] = tables[table, j] if table > 0 or row == 0 else 0.0
    # Not literals: numba would compile `_add_sums` once for each.
    table_0, numerator, denominator = np.int64(0), np.int64(0), np.int64(2)
    _add_sums(v, tables, entries, first, table_0, numerator, parameters, parts)
    for h in range(1, record.count):
        for row in range(rows):
            for j in range(length):
                numerators[row, j] = denominators[row, j] = 0.0
        _add_sums(numerators, tables, entries, first, h, numerator, parameters, parts)
        _add_sums(denominators, tables, entries, first, h, denominator, parameters, parts)
        _quotient(v, numerators, denominators, record.least[first, h])
    record.speed[0] = max(record.speed[0], largest(v[0], length))
    for row in range(rows):
        _write_padded(densities[row], spectrum)
        fill_values(fft)
        if row == 0:
            for j in range(length):
                u = values[j]
                values[j] *= v[0, j]
                for other in range(1, rows):
                    v[other, j] *= u
        else:
            for j in range(length):
                values[j] = values[j] * v[0, j] + v[row, j]
        fill_spectrum(fft)
        minus_derivative(spectrum, length, result[row])


@CompiledFunction
def _adjoint(context: int, member: int, source: int, target: int) -> None:
    """Write DN(u)* l and <l, dN/dp_i> for N(u) = -(u v)', with v and its changes by tables."""
    record = _adjoint_at(context)
    modes, pairs, length = record.modes, record.pairs, record.length
    velocities, tables, entries = record.velocities, record.tables, record.entries
    series = complex_array(source, (2 + pairs, modes))
    parts = float_array(source, (2 + pairs, 2 * modes))[pairs : pairs + 1]
    fft, gradient, work = record.fft, record.gradient, record.work
    spectrum, values = fft.spectrum[0], fft.values[0]
    result, size = complex_array(target, (1 + pairs, modes)), 2 * modes * (1 + pairs)
    numbers = float_array(target, (size + velocities - 1,))[size:]
    v, slope, flux, numerator, denominator = work[0], work[1], work[2], work[3], work[4]
    _write_padded(series[0], spectrum)
    fill_values(fft)
    for j in range(length):
        flux[j] = values[j]
    _write_padded(series[1 + pairs], spectrum)
    for k in range(modes):
        spectrum[k] = complex(-k * spectrum[k].imag, k * spectrum[k].real)
    fill_values(fft)
    for j in range(length):
        slope[j] = values[j]
        flux[j] *= slope[j]  # u l'
        v[j] = tables[0, j]
    for p in range(1, velocities):
        numbers[p - 1] = _dot(tables[p], flux)
    for i in range(2 * modes):
        gradient[i] = 0.0
    for h in range(record.count):
        for j in range(length):
            numerator[j] = denominator[j] = 0.0
        _accumulate(work[3:4], tables, entries[0, h, 1], entries[0, h, 0], parts)
        if h > 0:
            _accumulate(work[4:5], tables, entries[0, h, 3], entries[0, h, 2], parts)
        _add_covectors(work, h, record.least[0, h])
        _pull_back(record, h, work[5:7], parts[0], numbers)
    for p in range(velocities - 1):
        numbers[p] /= length
    for j in range(length):
        values[j] = v[j] * slope[j]
    fill_spectrum(fft)
    for k in range(modes):
        weight = 1 / (length if k == 0 else 2 * length)  # that of L^2
        result[pairs, k] = 0.0
        result[0, k] = spectrum[k] / length
        result[pairs, k] += complex(weight * gradient[2 * k], weight * gradient[2 * k + 1])


@njit(**INNER)
def _add_covectors(work: np.ndarray, h: int, bound: float) -> None:
    """Add the velocity of table h to v; fill its covectors of numerator and denominator.

    Table 0 has no denominator. A denominator below `bound` is replaced by it.
    """
    v, flux, numerator, denominator = work[0], work[2], work[3], work[4]
    of_numerator, of_denominator = work[5], work[6]
    for j in range(v.size):
        of_numerator[j], quotient = flux[j], numerator[j]
        if h > 0:
            bounded = max(denominator[j], bound)
            quotient = numerator[j] / bounded
            of_numerator[j] /= bounded
            moves = denominator[j] > bound
            of_denominator[j] = -quotient * of_numerator[j] if moves else 0.0
        v[j] += quotient


@njit(**INNER)
def _pull_back(
    record: InCode, h: int, covectors: np.ndarray, parts: np.ndarray, numbers: np.ndarray
) -> None:
    """Add the transpose of table h times its covectors to the gradient by the density.

    Derivatives of the table by parameters add their values at the density to `numbers`.
    """
    for velocity in range(record.velocities):
        total = 0.0
        for kind in range(1 if h == 0 else 2):
            columns = record.entries[velocity, h, 2 * kind]
            first = record.entries[velocity, h, 2 * kind + 1]
            for i in range(columns):
                part = _dot(record.tables[first + i], covectors[kind])
                if velocity == 0:
                    record.gradient[i] += part
                else:
                    total += part * parts[i]
        if velocity > 0:
            numbers[velocity - 1] += total


@njit(**INNER)
def _write_padded(series: np.ndarray, spectrum: np.ndarray) -> None:
    """Write a series into `spectrum`, and zeros after it."""
    for k in range(spectrum.size):
        spectrum[k] = series[k] if k < series.size else 0.0


@njit(**SUBROUTINE)
def _add_sums(
    total: np.ndarray, tables: np.ndarray, entries: np.ndarray, first: int, h: int, kind: int,
    which: np.ndarray, parts: np.ndarray,
) -> None:  # fmt: skip
    """Add the numerators (`kind` 0) or denominators (`kind` 2) of table h for all rows.

    They are those of the velocity with the index `first`. A row r with a parameter, which[r] >= 0,
    also gets the derivative of the table by it.
    """
    columns, at = entries[first, h, kind], entries[first, h, kind + 1]
    _accumulate(total, tables, at, columns, parts)
    for row in range(1, len(total)):
        if which[row] >= 0:
            of = which[row] + 1
            columns, at = entries[of, h, kind], entries[of, h, kind + 1]
            _accumulate(total[row : row + 1], tables, at, columns, parts[:1])


@njit(**INNER)
def _quotient(
    v: np.ndarray, numerators: np.ndarray, denominators: np.ndarray, least: float
) -> None:
    """Add the quotient q to the first row of v, and its changes to the others.

    Overwrites the first rows of `numerators`, by q where it changes, and of `denominators`, by
    reciprocals. A denominator below `least` is replaced by it.
    """
    for j in range(v.shape[1]):
        moving = denominators[0, j] > least
        reciprocal = 1 / (denominators[0, j] if moving else least)
        quotient = numerators[0, j] * reciprocal
        numerators[0, j], denominators[0, j] = quotient if moving else 0.0, reciprocal
        v[0, j] += quotient
    for row in range(1, len(v)):
        for j in range(v.shape[1]):
            change = numerators[row, j] - numerators[0, j] * denominators[row, j]
            v[row, j] += change * denominators[0, j]


@njit(**SUBROUTINE)
def _accumulate(
    totals: np.ndarray, tables: np.ndarray, at: int, columns: int, parts: np.ndarray
) -> None:
    """totals_r += sum_i parts_ri tables_(at + i), four columns at a time.

    The points are taken in blocks, whose table entries stay in the cache for all rows. Totals
    (rows, length) and tables (size, length) are contiguous.
    """
    length, sums, table = totals.shape[1], address_of(totals), address_of(tables)
    for begin in range(0, length, POINTS_AT_ONCE):
        end, i = min(begin + POINTS_AT_ONCE, length), 0
        while i + 4 <= columns:
            first = (at + i) * length
            p, q = numbers_at(table, first, 0.0), numbers_at(table, first + length, 0.0)
            r = numbers_at(table, first + 2 * length, 0.0)
            s = numbers_at(table, first + 3 * length, 0.0)
            for row in range(len(totals)):
                total = numbers_at(sums, row * length, 0.0)
                a, b, c, d = parts[row, i], parts[row, i + 1], parts[row, i + 2], parts[row, i + 3]
                for j in range(begin, end):
                    total[j] += a * p[j] + b * q[j] + c * r[j] + d * s[j]
            i += 4
        while i < columns:
            p = numbers_at(table, (at + i) * length, 0.0)
            for row in range(len(totals)):
                total, a = numbers_at(sums, row * length, 0.0), parts[row, i]
                for j in range(begin, end):
                    total[j] += a * p[j]
            i += 1


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total
