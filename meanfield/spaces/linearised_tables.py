"""Transport by tables on the circle, linearised, and the transpose of that: compiled.

The velocity is a sum of quotients of linear functions, and of what no density changes,

    v = v_0 + sum_h q_h,    q_h = A_h u / B_h u,

by the tables of `TableTransport` and at its points, so that with the weak divergence

    N(u) = -(u v)',    DN(u) k = -(k v + u sum_h (A_h k - q_h B_h k) / B_h u)',
    DN(u)* l = v l' + sum_h A_h* (u l' / B_h u) - B_h* (u l' q_h / B_h u)

are exact for the discrete map. Where a bound has taken the place of B_h u its derivative is 0. Of
`pairs` the velocities are those of other measures: see `spaces.linearised`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, call, complex_array, float_array, integer_array
from ..lowlevel.compilation import IN_ANY_ORDER, INNER, WITHIN, njit
from ..lowlevel.fourier import RealTransform
from ..lowlevel.simd import aligned
from .circle_transport import NEGLIGIBLE, Table, _accumulate
from .contract import Transport

BLOCK = 512  # points at which four rows of a table are combined for all functions at a time


class Tabulated(NamedTuple):
    """A velocity on the circle, or the derivative of one by a parameter.

    Attributes
    ----------
    steady : ndarray, (N,)
        v_0.
    tables : list of Table
        At first one without a denominator, then the quotients.
    """

    steady: np.ndarray
    tables: list[Table]

    @classmethod
    def of(cls, tables: Sequence[Table], points: int, share: float = NEGLIGIBLE) -> Self:
        """The sum of these tables, which may be steady; columns below a share are left out."""
        linear = [t.numerator for t in tables if t.denominator is None and not t.steady]
        total = np.zeros((max(map(len, linear), default=0), points))
        for numerator in linear:
            total[: len(numerator)] += numerator
        steady = sum((t.numerator[0] for t in tables if t.steady), np.zeros(points))
        quotients = [table for table in tables if table.denominator is not None]
        return cls(steady, [table.trimmed(share) for table in [Table(total), *quotients]])


class _Linearised(Transport):
    """What both directions share: the tables, and their derivatives by parameters."""

    def __init__(
        self, velocity: Tabulated, changes: Sequence[Tabulated], degree: int, pairs: bool = False
    ):
        every = [velocity, *changes]
        self.pairs, self.degree, self.points = pairs, degree, velocity.steady.size
        self.time, self.speed = np.zeros(1), np.zeros(1)
        self._fft, modes = RealTransform(self.points, rows=1), degree + 1
        parts, entries = [np.stack([one.steady for one in every])], []
        size = len(every)
        for one in every:
            for number, table in enumerate(one.tables):
                row = []
                for part in (table.numerator, table.denominator if number else None):
                    columns = 0 if part is None else min(len(part), 2 * modes)
                    row += [columns, size]
                    size += columns
                    if columns:
                        parts.append(part[:columns])  # type: ignore[index]
                entries.append(row)
        stored = aligned(size, self.points)
        np.concatenate(parts, out=stored)
        least = np.array([table.least for table in velocity.tables])
        self._numbers = modes, self.points, len(every), len(least), self._fft.stride, size
        self._arrays = np.array(entries, dtype=np.int64), least, stored

    def _prepare(self, compiled: Any, size: int, numbers: Any, buffers: Any) -> None:
        fft, self._shape = self._fft, (1, size)
        numbers = *self._numbers, *fft.inverse, *fft.forward, *numbers
        numbers = *numbers, int(self.pairs)
        self._enter(compiled, numbers, (fft.spectrum, fft.values, *self._arrays, *buffers))


class TableTangents(_Linearised):
    """(u, k_1, ..., k_p) -> (N(u), DN(u) k_1 + dN/dp_1, ...), for compiled code: see `Transport`.

    Parameters
    ----------
    velocity : Tabulated
    changes : sequence of Tabulated
        Its derivatives by parameters.
    degree : int
        Of the densities.
    parameters : sequence of int
        For each k the number of the parameter that changes with it, or -1.
    """

    def __init__(
        self,
        velocity: Tabulated,
        changes: Sequence[Tabulated],
        degree: int,
        parameters: Sequence[int],
        pairs: bool = False,
    ):
        super().__init__(velocity, changes, degree, pairs)
        which, rows = np.array([-1, *parameters], dtype=np.int64), 1 + len(parameters)
        buffers = which, *(aligned(rows, self.points) for _ in range(3))
        self._prepare(_tangents, rows * (degree + 1), (rows,), buffers)


class TableAdjoint(_Linearised):
    """(u, l) -> (DN(u)* l, <l, dN/dp_1>, ...), for compiled code: see `Transport`.

    The numbers are floats after the coefficients.
    """

    def __init__(
        self, velocity: Tabulated, changes: Sequence[Tabulated], degree: int, pairs: bool = False
    ):
        super().__init__(velocity, changes, degree, pairs)
        buffers = aligned(7, self.points), np.zeros(2 * (degree + 1))
        self._prepare(_adjoint, degree + 1, (), buffers)


@CompiledFunction
def _tangents(context, member, source, target):
    c = integer_array(context, (21,))
    modes, length, every, count, stride, size, many = c[0], c[1], c[2], c[3], c[4], c[5], c[10]
    pairs, found = c[11], complex_array(target, (many, modes))
    given = float_array(source, (many, 1 + pairs, 2 * modes))[:, pairs]
    series = complex_array(source, (many, 1 + pairs, modes))[:, 0]
    spectrum, values = complex_array(c[12], (stride,)), float_array(c[13], (2 * stride,))
    entries, least = integer_array(c[14], (every * count, 4)), float_array(c[15], (count,))
    tables, which = float_array(c[16], (size, length)), integer_array(c[17], (many,))
    v, above = float_array(c[18], (many, length)), float_array(c[19], (many, length))
    below = float_array(c[20], (many, length))
    for row in range(many):
        of = which[row] + 1
        for j in range(length):
            v[row, j] = tables[of, j] if of > 0 or row == 0 else 0.0
    for entry in range(count):
        _sums(above, tables, entries, entry, count, 0, which, given)
        if entry == 0:
            for row in range(many):
                for j in range(length):
                    v[row, j] += above[row, j]
            continue
        _sums(below, tables, entries, entry, count, 2, which, given)
        _quotient(v, above, below, least[entry])
    for row in range(many):
        _synthesised(series[row], spectrum, stride)
        call(c[6], c[7], c[12], c[13])
        if row == 0:
            for j in range(length):
                u = values[j]
                values[j] *= v[0, j]
                for other in range(1, many):
                    v[other, j] *= u
        else:
            for j in range(length):
                values[j] = values[j] * v[0, j] + v[row, j]
        call(c[8], c[9], c[13], c[12])
        for k in range(modes):
            factor = k / length
            found[row, k] = complex(factor * spectrum[k].imag, -factor * spectrum[k].real)


@CompiledFunction
def _adjoint(context, member, source, target):
    c = integer_array(context, (18,))
    modes, length, every, count, stride, size = c[0], c[1], c[2], c[3], c[4], c[5]
    pairs = c[10]
    series = complex_array(source, (2 + pairs, modes))
    given = float_array(source, (2 + pairs, 2 * modes))[pairs]
    spectrum, values = complex_array(c[11], (stride,)), float_array(c[12], (2 * stride,))
    entries, least = integer_array(c[13], (every * count, 4)), float_array(c[14], (count,))
    tables, work = float_array(c[15], (size, length)), float_array(c[16], (7, length))
    back = float_array(c[17], (2 * modes,))
    result, floats = complex_array(target, (1 + pairs, modes)), 2 * modes * (1 + pairs)
    numbers = float_array(target, (floats + every - 1,))[floats:]
    v, slope, flux, above, below = work[0], work[1], work[2], work[3], work[4]
    F, s = work[5], work[6]
    _synthesised(series[0], spectrum, stride)
    call(c[6], c[7], c[11], c[12])
    for j in range(length):
        flux[j] = values[j]
    for k in range(stride):
        spectrum[k] = 0.0
    for k in range(modes):
        spectrum[k] = complex(-k * series[1 + pairs, k].imag, k * series[1 + pairs, k].real)
    call(c[6], c[7], c[11], c[12])
    for j in range(length):
        slope[j] = values[j]
        flux[j] *= slope[j]  # u l'
        v[j] = tables[0, j]
    for p in range(1, every):
        numbers[p - 1] = _dot(tables[p], flux)
    for i in range(2 * modes):
        back[i] = 0.0
    for entry in range(count):
        for j in range(length):
            above[j] = 0.0
            F[j] = flux[j]
        _accumulate(above, tables, entries[entry, 1], entries[entry, 0], given)
        if entry == 0:
            for j in range(length):
                v[j] += above[j]
        else:
            for j in range(length):
                below[j] = 0.0
            _accumulate(below, tables, entries[entry, 3], entries[entry, 2], given)
            bound = least[entry]
            for j in range(length):
                level = max(below[j], bound)
                quotient = above[j] / level
                v[j] += quotient
                F[j] /= level
                s[j] = -quotient * F[j] if below[j] > bound else 0.0
        for of in range(every):
            row, total = of * count + entry, 0.0
            for kind in range(0, 2 if entry == 0 else 4, 2):
                covector = F if kind == 0 else s
                columns, at = entries[row, kind], entries[row, kind + 1]
                for i in range(columns):
                    part = _dot(tables[at + i], covector)
                    if of == 0:
                        back[i] += part
                    else:
                        total += part * given[i]
            if of > 0:
                numbers[of - 1] += total
    for p in range(every - 1):
        numbers[p] /= length
    for j in range(length):
        values[j] = v[j] * slope[j]
    call(c[8], c[9], c[12], c[11])
    for k in range(modes):
        weight = 1 / (length if k == 0 else 2 * length)  # that of L^2
        result[pairs, k] = 0.0
        result[0, k] = spectrum[k] / length
        result[pairs, k] += complex(weight * back[2 * k], weight * back[2 * k + 1])


@njit(**INNER)
def _synthesised(series, spectrum, stride):
    """The spectrum of a series, where its transform takes it from."""
    for k in range(stride):
        spectrum[k] = series[k] if k < series.size else 0.0


@njit(**INNER)
def _sums(total, tables, entries, entry, count, kind, which, given):
    """Numerators, kind 0, or denominators, 2, of all rows, with their parameters' part."""
    for row in range(len(total)):
        for j in range(total.shape[1]):
            total[row, j] = 0.0
    _accumulate_rows(total, tables, entries[entry, kind + 1], entries[entry, kind], given)
    for row in range(1, len(total)):
        if which[row] >= 0:
            of = (which[row] + 1) * count + entry
            _accumulate(total[row], tables, entries[of, kind + 1], entries[of, kind], given[0])


@njit(**INNER, error_model="numpy")
def _quotient(v, above, below, least):
    """v += q in the first row, and the change of q in the others."""
    for j in range(v.shape[1]):
        moving = below[0, j] > least
        over = 1 / (below[0, j] if moving else least)
        quotient = above[0, j] * over
        above[0, j], below[0, j] = quotient if moving else 0.0, over
        v[0, j] += quotient
    for row in range(1, len(v)):
        for j in range(v.shape[1]):
            v[row, j] += (above[row, j] - above[0, j] * below[row, j]) * below[0, j]


@njit(**INNER)
def _accumulate_rows(totals, tables, at, columns, parts):
    """totals_r += sum_i parts_ri tables_(at + i), by BLOCK points, which all rows find in cache."""
    for begin in range(0, totals.shape[1], BLOCK):
        end, i = min(begin + BLOCK, totals.shape[1]), 0
        while i + 4 <= columns:
            p, q = tables[at + i, begin:end], tables[at + i + 1, begin:end]
            r, s = tables[at + i + 2, begin:end], tables[at + i + 3, begin:end]
            for row in range(len(totals)):
                total = totals[row, begin:end]
                a, b, c, d = parts[row, i], parts[row, i + 1], parts[row, i + 2], parts[row, i + 3]
                for j in range(total.size):
                    total[j] += a * p[j] + b * q[j] + c * r[j] + d * s[j]
            i += 4
        while i < columns:
            p = tables[at + i, begin:end]
            for row in range(len(totals)):
                total, a = totals[row, begin:end], parts[row, i]
                for j in range(total.size):
                    total[j] += a * p[j]
            i += 1


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _dot(a, b):
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total
