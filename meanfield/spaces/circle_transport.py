"""Transport of densities on the circle: -(mu v)' in Fourier coefficients, compiled.

Per member one pair (USA) or triple (SA) of inverse transforms, one pointwise product, one
forward transform; nothing else touches memory. Aliasing is removed exactly for USA, whose
velocity has few modes: with modes up to `degree` in mu and up to `band` in v, the product
is free of aliases in the modes kept once 2 degree + band + 1 points are used. SA divides
by Z * mu on the grid; with 3 degree + 1 points the aliases are those of the quotient's tail.
"""

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, complex_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.fourier import TRANSFORM, RealTransform, fill_spectrum, fill_values, good_length
from ..lowlevel.records import Layout, complexes, floats
from ..lowlevel.simd import as_bits, from_bits
from .transport import NO_MASS, Transport


class CircleTransport(Transport):
    """Transport mu -> -(mu v[mu])', v = (W * mu)' / (Z * mu); see `Space.transport`.

    Attributes
    ----------
    length : int
        Number of grid points.
    transforms : int
        Real transforms of this length per member and evaluation: 3 (Z = 1) or 4.
    """

    def _prepare(self) -> None:
        rows = 3 if self.normalised else 2
        self.length = good_length(self.points)
        self._fft, self.transforms = RealTransform(self.length, rows=rows), rows + 1
        self._enter(
            _transport,
            CIRCLE.filled(
                measure_offset=self._measure_offset,
                band=self.band,
                length=self.length,
                fft=self._fft.record,
                velocity=1j * np.arange(self.degree + 1) * self.tables[0],
                normaliser=self.tables[1],
                speed=self.speed,
            ),
        )


CIRCLE = Layout(
    "CircleTransport",
    {
        **dict.fromkeys(("measure_offset", "band", "length"), int),
        "fft": TRANSFORM,
        "velocity": complexes("tables", "modes"),  # multipliers of v = W'
        "normaliser": floats("tables", "modes"),
        "speed": floats(1),
    },
)
_circle_at = CIRCLE.at


@CompiledFunction
def _transport(context: int, member: int, source: int, target: int) -> None:
    """Write -(mu v)' of a member to `target`, with v = W' * nu / (Z * nu) on a grid."""
    record = _circle_at(context)
    modes, length, fft = record.modes, record.length, record.fft
    spectrum, values, quotient = fft.spectrum, fft.values, fft.rows == 3
    density, result = complex_array(source, (modes,)), complex_array(target, (modes,))
    moving = complex_array(source + record.measure_offset, (modes,))
    table = member if record.tables > 1 else 0
    velocity, normaliser = record.velocity[table], record.normaliser[table]
    for row in range(fft.rows):
        for k in range(fft.stride):
            spectrum[row, k] = 0.0
    for k in range(modes):
        spectrum[0, k] = density[k]
    for k in range(record.band + 1):
        spectrum[1, k] = velocity[k] * moving[k]
    if quotient:
        for k in range(modes):
            spectrum[2, k] = normaliser[k] * moving[k]
    fill_values(fft)
    u, v = values[0], values[1]
    if quotient:
        for j in range(length):
            v[j] /= values[2, j] if values[2, j] > NO_MASS else NO_MASS
    speed = largest(v, length)
    if quotient:
        speed = min(speed, 1.0)  # a mean of unit vectors; more is rounding where Z * mu is 0
    record.speed[0] = max(record.speed[0], speed)
    for j in range(length):
        u[j] *= v[j]
    fill_spectrum(fft)
    minus_derivative(spectrum[0], length, result)


@njit(**INNER)
def minus_derivative(spectrum: np.ndarray, length: int, result: np.ndarray) -> None:
    """Fill `result` with the coefficients of -f' from the spectrum of f without normalisation."""
    for k in range(result.size):
        factor = k / length
        result[k] = complex(factor * spectrum[k].imag, -factor * spectrum[k].real)


@njit(**INNER)
def largest(v: np.ndarray, length: int) -> float:
    """Largest |v| among the first `length` values."""
    bits = 0
    for j in range(length):
        bits = max(bits, as_bits(abs(v[j])))
    return from_bits(bits)
