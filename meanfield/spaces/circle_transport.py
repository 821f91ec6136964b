"""Transport of densities on the circle: -(mu v)' in Fourier coefficients, compiled.

Per member one pair (USA) or triple (SA) of inverse transforms, one pointwise product, one
forward transform; nothing else touches memory. Aliasing is removed exactly for USA, whose
velocity has few modes: with modes up to `degree` in mu and up to `band` in v, the product
is free of aliases in the modes kept once 2 degree + band + 1 points are used. SA divides
by Z * mu on the grid; with 3 degree + 1 points the aliases are those of the quotient's tail.
"""

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, call, complex_array, float_array, integer_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.fourier import RealTransform, good_length
from ..lowlevel.simd import as_bits, from_bits
from .contract import Transport

# Where Z * mu is below this, it is rounding, and so is what mass there is: less than NO_MASS in
# all. Dividing by it there moves that mass too slowly instead of at a random speed.
NO_MASS = 2.0**-40


class CircleTransport(Transport):
    """mu -> -(mu v[mu])' with v = (W * mu)' / (Z * mu); see `Geometry.transport`.

    Attributes
    ----------
    length : int
        Number of grid points.
    transforms : int
        Real transforms of this length per member and evaluation: 3 (Z = 1) or 4.
    """

    def __init__(self, attraction: np.ndarray, normaliser: np.ndarray | None, members: int):
        modes = attraction.shape[1]
        super().__init__(1j * np.arange(modes) * attraction, normaliser, members, modes)
        self.length, rows = good_length(self.points), 2 if normaliser is None else 3
        self._fft, self.transforms = RealTransform(self.length, rows=rows), rows + 1
        numbers = (modes, self.band + 1, self.length, len(attraction), rows, self._fft.stride)
        buffers = self._fft.spectrum, self._fft.values, *self.tables, self.speed
        self._enter(_transport, (*numbers, *self._fft.inverse, *self._fft.forward), buffers)


@CompiledFunction
def _transport(context, member, source, target):
    entries = integer_array(context, (15,))
    modes, band, length, tables, rows = entries[0], entries[1], entries[2], entries[3], entries[4]
    spectrum_at, values_at = entries[10], entries[11]
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
        spectrum[1, k] = velocity[k] * density[k]
    if rows == 3:
        for k in range(modes):
            spectrum[2, k] = normaliser[k] * density[k]
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


@njit(**INNER)
def _largest(v, length):
    largest = 0
    for j in range(length):
        largest = max(largest, as_bits(abs(v[j])))
    return from_bits(largest)
