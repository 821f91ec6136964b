"""Real Fourier transforms in several directions, by FFTW, for compiled code."""

import weakref

from .fourier import ESTIMATE, _address, _destroy, _library, _plan
from .records import Layout, complexes
from .simd import aligned


class TorusTransform:
    """Transforms between half spectra and values on the grid of a torus, of n points a direction.

        values[j] = sum_k spectrum[k] e^{2 pi i <j, k> / n},   spectrum[-k] = conj

    The last direction has the wave numbers 0, ..., n/2; the others 0, ..., n - 1, where n - k is
    -k. The inverse transform destroys `spectrum`; the forward one is not normalised.

    Parameters
    ----------
    length : int
        Number of points n in each direction, even.
    circles : int
        Number of directions.

    Attributes
    ----------
    size : int
        Number of points of the grid, n^circles.
    spectrum : ndarray of complex, (n^(circles - 1) (n/2 + 1),)
        Buffer of half spectra. Values are read and written wherever their caller has them, at
        addresses that are multiples of 16.
    record : Record
        Buffer and plans for compiled code. It is valid as long as this object exists.
    """

    def __init__(self, length: int, circles: int) -> None:
        """Plan both real transforms of functions on a grid of `length` points on each circle."""
        library, lengths = _library(), (length,) * circles
        self.size, width = length**circles, length ** (circles - 1) * (length // 2 + 1)
        self.spectrum = aligned(2 * width).view(complex)
        spectrum, values = (self.spectrum, width), (aligned(self.size), self.size)
        inverse = _plan(library.fftw_plan_many_dft_c2r, lengths, 1, spectrum, values, ESTIMATE)
        forward = _plan(library.fftw_plan_many_dft_r2c, lengths, 1, values, spectrum, ESTIMATE)
        for plan in (inverse, forward):
            weakref.finalize(self, _destroy, plan).atexit = False
        self.record = TORUS_TRANSFORM.filled(
            inverse=_address(library.fftw_execute_dft_c2r),
            inverse_plan=inverse,
            forward=_address(library.fftw_execute_dft_r2c),
            forward_plan=forward,
            spectrum=self.spectrum,
        )


TORUS_TRANSFORM = Layout(
    "TorusTransform",
    {
        **dict.fromkeys(("inverse", "inverse_plan", "forward", "forward_plan"), int),
        "spectrum": complexes("width"),
    },
)
