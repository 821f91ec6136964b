"""Values of spherical harmonic series on a Gauss grid of S^2, and back."""

import numpy as np
from numba import njit

from ..lowlevel.fourier import good_length
from ..lowlevel.legendre import BLOCK, analyse, fold, synthesise, unfold
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
        for array in (self.longitudes, self.z, self.weights):  # many densities share them
            array.setflags(write=False)
        self._rules = self._latitudes.rules()

    def values(self, coefficients: np.ndarray) -> np.ndarray:
        """(members, modes) -> (members, latitudes, longitudes)."""
        shape = (len(coefficients), self.z.size, self.longitudes.size // 2 + 1)
        spectra = np.zeros(shape, dtype=complex)
        for member, series in enumerate(np.ascontiguousarray(coefficients)):
            _synthesise_all(
                self._latitudes.x, self._rules, self.degree, series.view(float), spectra[member]
            )
        return np.fft.irfft(spectra, n=self.longitudes.size, norm="forward")

    def coefficients(self, values: np.ndarray) -> np.ndarray:
        """The projection of values (members, latitudes, longitudes) on the harmonics kept."""
        spectra = np.fft.rfft(values, norm="forward")[..., : self.degree + 1]
        spectra = spectra * self.weights[:, None]
        modes = (self.degree + 1) * (self.degree + 2) // 2
        result = np.empty((len(values), modes), dtype=complex)
        for member, spectrum in enumerate(spectra):
            _analyse_all(self._latitudes.x, self._rules, self.degree, spectrum, result[member])
        return result


@njit(cache=True)
def _synthesise_all(x, rules, degree, coefficients, spectrum):
    sums, folded = np.zeros((4, rules[0].size)), np.zeros((4, degree // 2 + 1 + BLOCK))
    last, begin, first = len(spectrum) - 1, 0, rules[3]
    for m in range(degree + 1):
        count = degree + 1 - m
        n = fold(m, rules, coefficients[2 * begin :], count, folded)
        begin += count
        synthesise(m, rules, folded, n, sums)
        for j in range(first[m], x.size):
            even, odd = complex(sums[0, j], sums[1, j]), x[j] * complex(sums[2, j], sums[3, j])
            spectrum[j, m], spectrum[last - j, m] = even + odd, even - odd


@njit(cache=True)
def _analyse_all(x, rules, degree, spectrum, coefficients):
    values, folded = np.zeros((8, rules[0].size)), np.zeros((degree // 2 + 1 + BLOCK, 8))
    series = np.empty(2 * degree + 4)
    last, begin = len(spectrum) - 1, 0
    for m in range(degree + 1):
        count = degree + 1 - m
        pairs = (count + 1) // 2
        for j in range(x.size):
            plus = spectrum[j, m] + spectrum[last - j, m]
            minus = x[j] * (spectrum[j, m] - spectrum[last - j, m])
            values[0, j], values[1, j] = plus.real, plus.imag
            values[4, j], values[5, j] = minus.real, minus.imag
        analyse(m, rules, values, folded, (pairs + 1) // 2 * 2)
        unfold(m, rules, folded, pairs, series)
        for i in range(count):
            coefficients[begin + i] = complex(series[2 * i], series[2 * i + 1])
        begin += count
