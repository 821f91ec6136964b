"""Values of spherical harmonic series on a Gauss grid of S^2, and back."""

import numpy as np
from numba import njit

from ..fourier import good_length
from ..legendre import analyse, synthesise
from .latitudes import Latitudes

__all__ = ["SphereGrid"]


class SphereGrid:
    """Gauss latitudes from north to south times equally spaced longitudes from 0.

    Parameters
    ----------
    degree : int
        Of the series; integrals are exact to degree 3 * `degree`.

    Attributes
    ----------
    z : ndarray, (latitudes,)
        Heights, from north to south.
    longitudes : ndarray, (N,)
    weights : ndarray, (latitudes,)
        Of a latitude; of sum 1.
    """

    def __init__(self, degree: int):
        points = 3 * degree + 1
        self._latitudes, length = Latitudes(-(-points // 4), degree, degree), good_length(points)
        self.degree, self.longitudes = degree, 2 * np.pi * np.arange(length) / length
        half, weights = self._latitudes.x, self._latitudes.weights
        self.z = np.concatenate([half, -half[::-1]])
        self.weights = np.concatenate([weights, weights[::-1]])
        rules = self._latitudes
        self._rules = rules.x, rules.start, rules.a, rules.b, rules.first, rules.offsets

    def values(self, coefficients: np.ndarray) -> np.ndarray:
        """(members, modes) -> (members, latitudes, longitudes)."""
        shape = (len(coefficients), self.z.size, self.longitudes.size // 2 + 1)
        spectra = np.zeros(shape, dtype=complex)
        for member, series in enumerate(np.ascontiguousarray(coefficients)):
            _synthesise_all(self._rules, self.degree, series, spectra[member])
        return np.fft.irfft(spectra, n=self.longitudes.size, norm="forward")

    def coefficients(self, values: np.ndarray) -> np.ndarray:
        """The projection of values (members, latitudes, longitudes) on the harmonics kept."""
        spectra = np.fft.rfft(values, norm="forward")[..., : self.degree + 1]
        spectra = spectra * self.weights[:, None]
        modes = (self.degree + 1) * (self.degree + 2) // 2
        result = np.empty((len(values), modes), dtype=complex)
        for member, spectrum in enumerate(spectra):
            _analyse_all(self._rules, self.degree, spectrum, result[member])
        return result


@njit(cache=True)
def _synthesise_all(rules, degree, coefficients, spectrum):
    x, start, a, b, first, offsets = rules
    sums, work = np.zeros((4, x.size)), np.empty((2, x.size))
    series = np.zeros((2, degree + 5))
    last, begin = len(spectrum) - 1, 0
    for m in range(degree + 1):
        count, j0, o = degree + 1 - m, first[m], offsets[m]
        n = (count + 3) // 4 * 4
        series[:, count:n] = 0
        for i in range(count):
            z = coefficients[begin + i]
            series[0, i], series[1, i] = z.real, z.imag
        begin += count
        synthesise(j0, x, start[m], a[o:], b[o:], series, n, sums, work)
        for j in range(j0, x.size):
            even, odd = complex(sums[0, j], sums[1, j]), complex(sums[2, j], sums[3, j])
            spectrum[j, m], spectrum[last - j, m] = even + odd, even - odd


@njit(cache=True)
def _analyse_all(rules, degree, spectrum, coefficients):
    x, start, a, b, first, offsets = rules
    values = np.zeros((8, x.size))
    series, work = np.zeros((4, degree + 5)), np.empty((2, x.size))
    last, begin = len(spectrum) - 1, 0
    for m in range(degree + 1):
        count, j0, o = degree + 1 - m, first[m], offsets[m]
        n = (count + 3) // 4 * 4
        for j in range(x.size):
            plus = spectrum[j, m] + spectrum[last - j, m]
            minus = spectrum[j, m] - spectrum[last - j, m]
            values[0, j], values[1, j] = plus.real, plus.imag
            values[4, j], values[5, j] = minus.real, minus.imag
        analyse(j0, x, start[m], a[o:], b[o:], values, series, n, work)
        for i in range(count):
            coefficients[begin + i] = complex(series[0, i], series[1, i])
        begin += count
