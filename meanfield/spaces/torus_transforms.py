"""Transforms of Fourier series on a torus for compiled code.

Coefficients come in rows: all wave numbers but the last are fixed in a row, and the last one runs
from 0, or from 1 where (k, 0) is the conjugate of another coefficient: see `Torus`. In the half
spectrum of FFTW such an entry is written too.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, call, complex_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.fourier import good_length
from ..lowlevel.records import Layout, floats, integers
from ..lowlevel.simd import address_of
from ..lowlevel.torus_fourier import TORUS_TRANSFORM, TorusTransform
from .transport import GridTransforms

if TYPE_CHECKING:
    from .contract import Space
    from .torus import Torus

NO_ENTRY = -1

TORUS_GRID = Layout(
    "TorusGridTransforms",
    {
        **dict.fromkeys(("modes", "size", "highest"), int),
        "fft": TORUS_TRANSFORM,
        # Of each row: the first of its wave numbers, its highest degree, and where (k, 0) is in
        # the half spectrum, in the coefficients, and in the half spectrum for -k or NO_ENTRY.
        **dict.fromkeys(("first", "degree", "entry", "place", "mirrored"), integers("rows")),
        "waves": floats("components", "rows"),  # the fixed wave numbers; 0 for the last one
    },
)
_torus_at = TORUS_GRID.at


@njit(**INNER)
def _torus_values(record: Any, number: int, source: int, target: int, along: int) -> None:
    """Write at `target` the values of a series, or of its derivative `along` a direction >= 0."""
    fft, series = record.fft, complex_array(source, (record.modes,))
    spectrum, last = fft.spectrum, record.components - 1
    for k in range(fft.width):
        spectrum[k] = 0.0
    for row in range(record.rows):
        if record.degree[row] > number:
            continue
        entry, place, mirrored = record.entry[row], record.place[row], record.mirrored[row]
        for k in range(record.first[row], number + 1):
            c = series[place + k]
            if along >= 0:
                wave = k if along == last else record.waves[along, row]
                c = complex(-wave * c.imag, wave * c.real)
            spectrum[entry + k] = c
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
    fft, modes, size = record.fft, record.modes, record.size
    spectrum, result = fft.spectrum, complex_array(target, (number, modes))
    for i in range(number):
        call(fft.forward, fft.forward_plan, source + 8 * size * i, address_of(spectrum))
        for row in range(record.rows):
            entry, place = record.entry[row], record.place[row]
            for k in range(record.first[row], record.highest + 1):
                result[i, place + k] = spectrum[entry + k] / size


@CompiledFunction
def _divergence_on_torus(context: int, number: int, source: int, target: int) -> None:
    """Write coefficients (modes,) of -div of a vector field (components, size) on the grid."""
    record = _torus_at(context)
    fft, modes, size, last = record.fft, record.modes, record.size, record.components - 1
    spectrum, result = fft.spectrum, complex_array(target, (modes,))
    for k in range(modes):
        result[k] = 0.0
    for along in range(record.components):
        call(fft.forward, fft.forward_plan, source + 8 * size * along, address_of(spectrum))
        for row in range(record.rows):
            entry, place = record.entry[row], record.place[row]
            for k in range(record.first[row], record.highest + 1):
                factor = (k if along == last else record.waves[along, row]) / size
                c = spectrum[entry + k]
                result[place + k] += complex(factor * c.imag, -factor * c.real)


class TorusGridTransforms(GridTransforms):
    """GridTransforms of Fourier series on a torus, by FFTW."""

    compiled = _values_on_torus, _gradient_on_torus, _analysis_on_torus, _divergence_on_torus

    def __init__(self, space: "Space", points: int) -> None:
        torus: Torus = space  # type: ignore[assignment]
        length = good_length(points)
        self.components = torus.circles
        self._fft = TorusTransform(length, torus.circles)
        self.size = self._fft.size
        rows = torus.rows
        entries, mirrored = rows.entries(length), rows.entries(length, -1)
        record = TORUS_GRID.filled(
            modes=torus.degrees.size,
            size=self.size,
            highest=torus.degree,
            fft=self._fft.record,
            first=rows.first,
            degree=np.abs(rows.waves).max(axis=1, initial=0),
            entry=entries,
            place=rows.place,
            mirrored=np.where(rows.mirrored, mirrored, NO_ENTRY),
            waves=np.ascontiguousarray(np.pad(rows.waves, ((0, 0), (0, 1))).T, dtype=float),
        )
        self._enter(record)
