"""Transport of densities on the circle: -(mu v)' in Fourier coefficients, compiled.

Per member one pair (USA) or triple (SA) of inverse transforms, one pointwise product, one
forward transform; nothing else touches memory. Aliasing is removed exactly for USA, whose
velocity has few modes: with modes up to `degree` in mu and up to `band` in v, the product
is free of aliases in the modes kept once 2 degree + band + 1 points are used. SA divides
by Z * mu on the grid; with 3 degree + 1 points the aliases are those of the quotient's tail.
"""

import numpy as np
from numba import njit

from ..lowlevel.callbacks import CompiledFunction, call, complex_array, float_array, integer_array
from ..lowlevel.compilation import INNER
from ..lowlevel.floating_point import as_bits, from_bits
from ..lowlevel.fourier import RealTransform, good_length

__all__ = ["CircleTransport"]

NEGLIGIBLE = 2.0**-60

# Where Z * mu is below this, it is rounding, and so is what mass there is: less than NO_MASS in
# all. Dividing by it there moves that mass too slowly instead of at a random speed.
NO_MASS = 2.0**-40


class CircleTransport:
    """mu -> -(mu v[mu])' with v = (W * mu)' / (Z * mu); see `Geometry.transport`.

    Attributes
    ----------
    length : int
        Number of grid points.
    speed : ndarray, (1,)
        Largest |v| met since it was last set to 0.
    transforms : int
        Real transforms of this length per member and evaluation: 3 (Z = 1) or 4.
    """

    def __init__(self, attraction: np.ndarray, normaliser: np.ndarray | None, members: int):
        tables, degree = len(attraction), attraction.shape[1] - 1
        k = np.arange(degree + 1)
        self._velocity = np.ascontiguousarray(1j * k * attraction)
        self._normaliser = np.ascontiguousarray(
            np.empty((0, 0)) if normaliser is None else normaliser, dtype=float
        )
        size = np.abs(self._velocity).max(axis=0)
        significant = np.flatnonzero(size > NEGLIGIBLE * size.max())
        band = int(significant[-1]) if significant.size else 0
        reach = band if normaliser is None else degree
        self.length = good_length(2 * degree + reach + 1)
        self._fft = RealTransform(self.length, rows=2 if normaliser is None else 3)
        self.transforms = self._fft.rows + 1
        shape = (degree + 1, band + 1, self.length, tables, self._fft.rows)
        addresses = (self._fft.stride, *self._fft.inverse, *self._fft.forward)
        self.speed = np.zeros(1)
        buffers = (
            *(self._fft.spectrum, self._fft.values),
            *(self._velocity, self._normaliser, self.speed),
        )
        self._context = np.array([*shape, *addresses, *(b.ctypes.data for b in buffers)], np.int64)
        self.address, self.context = _transport.address, self._context.ctypes.data
        self.error: BaseException | None = None
        self._shape = (members, degree + 1)

    def __call__(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients of -(mu v)', (members, degree + 1), for densities of that shape."""
        source = np.ascontiguousarray(coefficients, dtype=complex).reshape(self._shape)
        target = np.empty_like(source)
        for member in range(len(source)):
            addresses = source[member].ctypes.data, target[member].ctypes.data
            _transport(self.context, member, *addresses)
        return target


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
