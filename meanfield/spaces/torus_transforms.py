"""Transforms of Fourier series on a torus, of one circle or several, for compiled code.

Coefficients come in rows: all wave numbers but the last are fixed in a row, and the last one runs
from 0, or from 1 where (k, 0) is the conjugate of another coefficient: see `Torus`. In the half
spectrum of FFTW such an entry is written too.
"""

from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.cached import cached_property
from ..lowlevel.callbacks import CompiledFunction, call, complex_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.fourier import TRANSFORM, RealTransform, good_length
from ..lowlevel.records import Layout, floats, integers
from ..lowlevel.simd import address_of
from .transport import GridTransforms

if TYPE_CHECKING:
    from .contract import Space

NO_ENTRY = -1


class WaveRows:
    """Waves k of a torus up to a degree, half of them, in rows along the last wave number.

    A real function has c_{-k} = conj(c_k). Of k and -k the one is kept whose last wave number is
    positive, or, if it is 0, whose first nonzero wave number is positive.

    Attributes
    ----------
    waves : ndarray of int, (rows, m - 1)
        Wave numbers but the last: 0 first, then those whose first nonzero number is positive.
    first : ndarray of int, (rows,)
        First of the last wave numbers, 0 or 1.
    place : ndarray of int, (rows,)
        Index of the coefficient of the last wave number 0, which is not there if `first` is 1.
    mirrored : ndarray of bool, (rows,)
        Whether a row has the wave (k, 0) of which -(k, 0) is left out.
    """

    def __init__(self, degree: int, circles: int) -> None:
        numbers = product([*range(degree + 1), *range(-1, -degree - 1, -1)], repeat=circles - 1)
        signs = {row: next((np.sign(k) for k in row if k), 0) for row in numbers}
        order = sorted(signs, key=lambda row: {0: 0, 1: 1, -1: 2}[signs[row]])
        self.waves = np.array(order, dtype=int).reshape(len(order), circles - 1)
        sign = np.array([signs[row] for row in order], dtype=int)
        self.first, self.mirrored = np.where(sign < 0, 1, 0), sign > 0
        counts = degree + 1 - self.first
        self.place = np.cumsum(counts) - counts - self.first
        self.degree = degree

    def entries(self, length: int, sign: int = 1) -> np.ndarray:
        """Index of (sign * k, 0) in half spectra for `length` points a direction, (rows,)."""
        index = np.zeros(len(self.waves), dtype=int)
        for k in self.waves.T:
            index = index * length + sign * k % length
        return index * (length // 2 + 1)

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and last wave number of every coefficient, (modes,) each."""
        row = np.repeat(np.arange(len(self.waves)), self.degree + 1 - self.first)
        return row, np.arange(row.size) - self.place[row]

    @cached_property
    def all(self) -> np.ndarray:
        """All waves, (modes, m)."""
        parts = []
        for row, first in zip(self.waves, self.first, strict=True):
            last = np.arange(first, self.degree + 1)[:, None]
            parts.append(np.concatenate([np.broadcast_to(row, (len(last), row.size)), last], 1))
        return np.concatenate(parts)


wave_rows = lru_cache(maxsize=16)(WaveRows)

TORUS_GRID = Layout(
    "TorusGridTransforms",
    {
        **dict.fromkeys(("modes", "size", "highest"), int),
        "fft": TRANSFORM,
        # Of each row: the first of its wave numbers, its highest degree, and where (k, 0) is in
        # the half spectrum, in the coefficients, and in the half spectrum for -k or NO_ENTRY.
        **dict.fromkeys(("first", "degree", "entry", "place", "mirrored"), integers("rows")),
        "waves": floats("components", "rows"),  # the fixed wave numbers; 0 for the last one
    },
)
_torus_at = TORUS_GRID.at


@njit(**INNER)
def _row_of(record: Any, row: int, highest: int, series: np.ndarray) -> tuple[np.ndarray, ...]:
    """Parts of the half spectrum and of a series up to a degree, for the waves of a row."""
    first, end, entry = record.first[row], highest + 1, record.entry[row]
    place = record.place[row]
    return record.fft.spectrum[0, entry + first : entry + end], series[place + first : place + end]


@njit(**INNER)
def _torus_values(record: Any, number: int, source: int, target: int, along: int) -> None:
    """Write at `target` the values of a series, or of its derivative `along` a direction >= 0."""
    fft, series = record.fft, complex_array(source, (record.modes,))
    spectrum, last = fft.spectrum[0], record.components - 1
    for k in range(number + 1, fft.stride):  # the first row, of waves (0, k), is written whole
        spectrum[k] = 0.0
    for row in range(record.rows):
        if record.degree[row] > number:
            continue
        modes, coefficients = _row_of(record, row, number, series)
        wave, step = 0.0, 0.0
        if along == last:
            wave, step = float(record.first[row]), 1.0
        elif along >= 0:
            wave = record.waves[along, row]
        for i in range(modes.size):
            c, factor = coefficients[i], wave + step * i
            modes[i] = complex(-factor * c.imag, factor * c.real) if along >= 0 else c
        entry, mirrored = record.entry[row], record.mirrored[row]
        if mirrored >= 0:
            spectrum[mirrored] = spectrum[entry].conjugate()
    call(fft.inverse, fft.inverse_plan, address_of(spectrum), target)


@CompiledFunction
def _values_on_torus(context: int, number: int, source: int, target: int) -> None:
    _torus_values(_torus_at(context), number, source, target, -1)


@CompiledFunction
def _gradient_on_torus(context: int, number: int, source: int, target: int) -> None:
    record = _torus_at(context)
    for along in range(record.components):
        _torus_values(record, number, source, target + 8 * record.size * along, along)


@CompiledFunction
def _analysis_on_torus(context: int, number: int, source: int, target: int) -> None:
    """Write coefficients (number, modes) of functions (number, size) on the grid of a torus."""
    record = _torus_at(context)
    fft, size = record.fft, record.size
    result = complex_array(target, (number, record.modes))
    for i in range(number):
        call(fft.forward, fft.forward_plan, source + 8 * size * i, address_of(fft.spectrum))
        for row in range(record.rows):
            modes, coefficients = _row_of(record, row, record.highest, result[i])
            for k in range(modes.size):
                coefficients[k] = modes[k] / size


@CompiledFunction
def _divergence_on_torus(context: int, number: int, source: int, target: int) -> None:
    """Write coefficients (modes,) of -div of a vector field (components, size) on the grid."""
    record = _torus_at(context)
    fft, size, last = record.fft, record.size, record.components - 1
    result = complex_array(target, (record.modes,))
    for k in range(record.modes):
        result[k] = 0.0
    for along in range(record.components):
        call(fft.forward, fft.forward_plan, source + 8 * size * along, address_of(fft.spectrum))
        for row in range(record.rows):
            modes, coefficients = _row_of(record, row, record.highest, result)
            first, wave = record.first[row], record.waves[along, row]
            for i in range(modes.size):
                factor = (first + i if along == last else wave) / size
                coefficients[i] += complex(factor * modes[i].imag, -factor * modes[i].real)


class TorusGridTransforms(GridTransforms):
    """GridTransforms of Fourier series on a torus, by FFTW."""

    compiled = _values_on_torus, _gradient_on_torus, _analysis_on_torus, _divergence_on_torus

    def __init__(self, space: "Space", points: int) -> None:
        length, self.components = good_length(points), space.directions
        self.size = length**self.components
        self._fft = RealTransform((length,) * self.components, rows=1)
        rows = wave_rows(space.degree, self.components)
        entries, mirrored = rows.entries(length), rows.entries(length, -1)
        record = TORUS_GRID.filled(
            modes=space.degrees.size,
            size=self.size,
            highest=space.degree,
            fft=self._fft.record,
            first=rows.first,
            degree=np.abs(rows.waves).max(axis=1, initial=0),
            entry=entries,
            place=rows.place,
            mirrored=np.where(rows.mirrored, mirrored, NO_ENTRY),
            waves=np.ascontiguousarray(np.pad(rows.waves, ((0, 0), (0, 1))).T, dtype=float),
        )
        self._enter(record)
