"""Transport of densities on the circle: -(mu v)' in Fourier coefficients, compiled.

Per member one pair (USA) or triple (SA) of inverse transforms, one pointwise product, one
forward transform; nothing else touches memory. Aliasing is removed exactly for USA, whose
velocity has few modes: with modes up to `degree` in mu and up to `band` in v, the product
is free of aliases in the modes kept once 2 degree + band + 1 points are used. SA divides
by Z * mu on the grid; with 3 degree + 1 points the aliases are those of the quotient's tail.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, call, complex_array, float_array, integer_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.fourier import RealTransform, good_length
from ..lowlevel.simd import aligned, as_bits, from_bits
from .contract import Transport

# Where Z * mu is below this, it is rounding, and so is what mass there is: less than NO_MASS in
# all. Dividing by it there moves that mass too slowly instead of at a random speed.
NO_MASS = 2.0**-40
NEGLIGIBLE = 3e-16  # columns of a table, relative to its largest: less is rounding
OF_SLOPES = 1e-13  # the same, of its derivatives by parameters


class CircleTransport(Transport):
    """mu -> -(mu v[mu])' with v = (W * mu)' / (Z * mu); see `Space.transport`.

    Attributes
    ----------
    length : int
        Number of grid points.
    transforms : int
        Real transforms of this length per member and evaluation: 3 (Z = 1) or 4.
    """

    def __init__(
        self,
        attraction: np.ndarray,
        normaliser: np.ndarray | None,
        members: int,
        pairs: bool = False,
    ):
        modes = attraction.shape[1]
        super().__init__(1j * np.arange(modes) * attraction, normaliser, members, modes, pairs)
        self.length, rows = good_length(self.points), 2 if normaliser is None else 3
        self._fft, self.transforms = RealTransform(self.length, rows=rows), rows + 1
        numbers = (modes, self.band + 1, self.length, len(attraction), rows, self._fft.stride)
        buffers = self._fft.spectrum, self._fft.values, *self.tables, self.speed
        plans = *self._fft.inverse, *self._fft.forward
        self._enter(_transport, (self._apart, *numbers, *plans), buffers)


@CompiledFunction
def _transport(context, member, source, target):
    entries, apart = integer_array(context + 8, (15,)), integer_array(context, (1,))[0]
    modes, band, length, tables, rows = entries[0], entries[1], entries[2], entries[3], entries[4]
    spectrum_at, values_at = entries[10], entries[11]
    moving = complex_array(source + apart, (modes,))
    density, result = complex_array(source, (modes,)), complex_array(target, (modes,))
    spectrum = complex_array(spectrum_at, (rows, entries[5]))
    values = float_array(values_at, (rows, 2 * entries[5]))
    table = member if tables > 1 else 0
    velocity = complex_array(entries[12], (tables, modes))[table]
    normaliser = float_array(entries[13], (tables, modes))[table]
    for row in range(rows):
        for k in range(entries[5]):
            spectrum[row, k] = 0.0
    for k in range(modes):
        spectrum[0, k] = density[k]
    for k in range(band):
        spectrum[1, k] = velocity[k] * moving[k]
    if rows == 3:
        for k in range(modes):
            spectrum[2, k] = normaliser[k] * moving[k]
    call(entries[6], entries[7], spectrum_at, values_at)
    u, v = values[0], values[1]
    if rows == 3:
        for j in range(length):
            v[j] /= values[2, j] if values[2, j] > NO_MASS else NO_MASS
    speed = _largest(v, length)
    if rows == 3:
        speed = min(speed, 1.0)  # a mean of unit vectors; more is rounding where Z * mu is 0
    highest = float_array(entries[14], (1,))
    highest[0] = max(highest[0], speed)
    for j in range(length):
        u[j] *= v[j]
    call(entries[8], entries[9], values_at, spectrum_at)
    for k in range(modes):
        factor = k / length
        result[k] = complex(factor * spectrum[0, k].imag, -factor * spectrum[0, k].real)


# Any velocity that is a sum of quotients of linear functions -------------------------------


@dataclass(frozen=True)
class Table:
    """A velocity at the points of the circle, a quotient of linear functions of a density.

    Attributes
    ----------
    numerator, denominator : ndarray, (columns, N)
        For each real and imaginary part of the coefficients; no denominator is None.
    least : float
        Where the denominator is below it, it is rounding: see NO_MASS.
    steady : bool
        Whether it is the velocity of all densities: the first row, times their mass 1.
    """

    numerator: np.ndarray
    denominator: np.ndarray | None = None
    least: float = 0.0
    steady: bool = False

    @classmethod
    def constant(cls, velocity: np.ndarray) -> "Table":
        """That of a velocity (N,) which no density of mass 1 changes."""
        return cls(np.stack([velocity, np.zeros_like(velocity)]), steady=True)

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.numerator.size * (1 if self.denominator is None else 2)

    def negligible_to(self, other: "Table", share: float = NEGLIGIBLE) -> bool:
        """Whether all that it adds to another one of these columns is a share of it, rounding."""
        pairs = (self.numerator, other.numerator), (self.denominator, other.denominator)
        return all(
            np.abs(mine).max() <= share * np.abs(yours).max()
            for mine, yours in pairs
            if mine is not None and yours is not None
        )

    @classmethod
    def joined(cls, tables: "Sequence[Table]") -> "Table":
        """One table of the columns of several."""
        below = [table.denominator for table in tables if table.denominator is not None]
        above = np.concatenate([table.numerator for table in tables])
        return cls(above, np.concatenate(below) if below else None, tables[0].least)

    def trimmed(self, share: float = NEGLIGIBLE) -> "Table":
        """Without the last columns, as far as they are at most a share of the largest."""
        columns = 2
        for part in (self.numerator, self.denominator):
            sizes = np.zeros(1) if part is None else np.abs(part).max(axis=1, initial=0.0)
            counted = np.flatnonzero(sizes > share * sizes.max(initial=0.0))
            columns = max(columns, int(counted[-1]) + 1 if counted.size else 0)
        below = self.denominator
        cut = None if below is None else below[:columns]
        return replace(self, numerator=self.numerator[:columns], denominator=cut)

    @property
    def nothing(self) -> "Table":
        """The derivative of this table by what it does not depend on."""
        return replace(self.by_factor, numerator=np.zeros_like(self.numerator[:1]))

    @property
    def by_factor(self) -> "Table":
        """The derivative of c times this velocity by c."""
        below = self.denominator
        return replace(self, denominator=None if below is None else np.zeros_like(below[:1]))

    def scaled(self, factor: float) -> "Table":
        """That of the velocity times a factor."""
        return replace(self, numerator=factor * self.numerator)


def merged(tables: list[Table]) -> list[Table]:
    """Tables of the same sum, the linear ones in one, without columns that do not count."""
    linear = [table.numerator for table in tables if table.denominator is None]
    one = []
    if linear:
        total = np.zeros((max(map(len, linear)), linear[0].shape[1]))
        for numerator in linear:
            total[: len(numerator)] += numerator
        one = [Table(total)]
    quotients = [table for table in tables if table.denominator is not None]
    return [table.trimmed() for table in [*one, *quotients]]


class TableTransport(Transport):
    """mu -> -(mu v)' with v the sum of tables at 3 degree + 1 points and more, compiled.

    Parameters
    ----------
    members : list of list of Table
        Those of each member, or of all if there is one list; of equal lengths.
    degree, count : int
        Of the densities, and their number.
    """

    def __init__(self, members: list[list[Table]], degree: int, count: int, pairs: bool = False):
        self.degree, modes = degree, degree + 1
        self.points = self.length = members[0][0].numerator.shape[1]
        self.time, self.speed, self._shape = np.zeros(1), np.zeros(1), (count, modes)
        self._of_pairs(pairs)
        self._fft = RealTransform(self.length, rows=1)
        parts, rows, least = [], [], []
        size = 0
        for tables in members:
            for table in tables:
                columns = len(table.numerator)
                below = -1
                parts.append(table.numerator)
                if table.denominator is not None:
                    parts.append(table.denominator)
                    below = size + columns
                rows.append((columns, size, below))
                least.append(table.least)
                size += columns * (1 + (below >= 0))
        entries = np.array(rows, dtype=np.int64)
        numbers = (modes, self.length, len(members), len(members[0]), self._fft.stride, size)
        stored = aligned(size, self.length)
        np.concatenate(parts, out=stored)
        buffers = (
            *(self._fft.spectrum, self._fft.values, entries, np.array(least)),
            *(stored, aligned(3, self.length), self.speed),
        )
        plans = *self._fft.inverse, *self._fft.forward
        self._enter(_by_tables, (self._apart, *numbers, *plans), buffers)


@CompiledFunction
def _by_tables(context, member, source, target):
    c, apart = integer_array(context + 8, (17,)), integer_array(context, (1,))[0]
    modes, length, members, count, stride, size = c[0], c[1], c[2], c[3], c[4], c[5]
    density, result = complex_array(source, (modes,)), complex_array(target, (modes,))
    parts = float_array(source + apart, (2 * modes,))
    spectrum = complex_array(c[10], (stride,))
    values = float_array(c[11], (2 * stride,))
    rows = integer_array(c[12], (members * count, 3))
    least = float_array(c[13], (members * count,))
    tables, work = float_array(c[14], (size, length)), float_array(c[15], (3, length))
    first = (member if members > 1 else 0) * count
    v, above, below = work[0], work[1], work[2]
    for j in range(length):
        v[j] = 0.0
    for entry in range(first, first + count):
        columns, at, under = rows[entry, 0], rows[entry, 1], rows[entry, 2]
        if under < 0:
            _accumulate(v, tables, at, columns, parts)
            continue
        for j in range(length):
            above[j] = below[j] = 0.0
        _accumulate(above, tables, at, columns, parts)
        _accumulate(below, tables, under, columns, parts)
        for j in range(length):
            v[j] += above[j] / max(below[j], least[entry])
    highest = float_array(c[16], (1,))
    highest[0] = max(highest[0], _largest(v, length))
    for k in range(stride):
        spectrum[k] = density[k] if k < modes else 0.0
    call(c[6], c[7], c[10], c[11])
    for j in range(length):
        values[j] *= v[j]
    call(c[8], c[9], c[11], c[10])
    for k in range(modes):
        factor = k / length
        result[k] = complex(factor * spectrum[k].imag, -factor * spectrum[k].real)


@njit(**INNER)
def _accumulate(total, tables, at, columns, parts):
    """total += sum_i parts_i tables_(at + i), four rows at a time."""
    i = 0
    while i + 4 <= columns:
        a, b, c, d = parts[i], parts[i + 1], parts[i + 2], parts[i + 3]
        p, q, r, s = tables[at + i], tables[at + i + 1], tables[at + i + 2], tables[at + i + 3]
        for j in range(total.size):
            total[j] += a * p[j] + b * q[j] + c * r[j] + d * s[j]
        i += 4
    while i < columns:
        a, p = parts[i], tables[at + i]
        for j in range(total.size):
            total[j] += a * p[j]
        i += 1


@njit(**INNER)
def _largest(v, length):
    largest = 0
    for j in range(length):
        largest = max(largest, as_bits(abs(v[j])))
    return from_bits(largest)
