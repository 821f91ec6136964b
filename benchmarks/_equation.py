"""The problem that all solvers of `circle.py` get, written without the package.

    d_t mu = (1/kappa) mu'' - (mu v)'
    v(theta) = -int e^(beta cos(theta - phi)) sin(theta - phi) dmu(phi)
    mu_0 = 1 + 0.3 cos t + 0.1 cos 2t + 0.05 sin 3t,   beta = 4,  kappa = 6,  0 <= t <= 5

Densities are with respect to the uniform probability measure. In Fourier coefficients
c_k = int e^(-ik theta) dmu the velocity is v_k = i k I_k(beta)/beta c_k.
"""

import functools

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import as_strided
from scipy.integrate import solve_ivp
from scipy.special import iv

__all__ = ["BETA", "KAPPA", "T_END", "RealForm", "initial", "reference", "relative_error"]

BETA, KAPPA, T_END = 4.0, 6.0, 5.0


def initial(theta: np.ndarray) -> np.ndarray:
    """mu_0 at the angles theta."""
    return 1 + 0.3 * np.cos(theta) + 0.1 * np.cos(2 * theta) + 0.05 * np.sin(3 * theta)


def velocity_multiplier(degree: int) -> np.ndarray:
    """m_k = k I_k(beta) / beta for k = 0, ..., degree; the velocity is v_k = i m_k c_k."""
    k = np.arange(degree + 1)
    return k * iv(k, BETA) / BETA


class RealForm:
    """The Galerkin system as dy/dt = f(y), y = (Re c_1, ..., Re c_K, Im c_1, ..., Im c_K).

    Written for speed: fast lengths, buffers allocated once, no loop. The product mu v is
    computed on 3 K + 1 points or more, hence without aliasing.
    """

    def __init__(self, degree: int):
        self.degree = K = degree
        self._length = scipy.fft.next_fast_len(3 * K + 1, real=True)
        self._k = np.arange(1.0, K + 1)
        self._m = velocity_multiplier(K)[1:]
        self._linear = np.tile(-(self._k**2) / KAPPA, 2)
        self._spectra = np.zeros((2, self._length // 2 + 1), dtype=complex)
        self._spectra[0, 0] = 1.0
        self._jacobian = np.empty((2 * K, 2 * K))
        self._series = np.zeros((4, 4 * K + 1))  # Re c, Im c, Re v, Im v for |k| <= 2 K
        self._series[0, 2 * K] = 1.0
        step = self._series.strides[1]
        self._toeplitz = [as_strided(a[2 * K :], (K, K), (step, -step)) for a in self._series]
        self._hankel = [as_strided(a[2 * K + 2 :], (K, K), (step, step)) for a in self._series]

    def start(self) -> np.ndarray:
        """y of mu_0."""
        y = np.zeros(2 * self.degree)
        y[0], y[1], y[self.degree + 2] = 0.15, 0.05, -0.025
        return y

    def coefficients(self, y: np.ndarray) -> np.ndarray:
        """c_0, ..., c_K."""
        return np.concatenate([[1.0], y[: self.degree] + 1j * y[self.degree :]])

    def slope(self, _t: float, y: np.ndarray) -> np.ndarray:
        """dy/dt."""
        K = self.degree
        c, v = self._spectra[:, 1 : K + 1]
        c.real, c.imag = y[:K], y[K:]
        v.real, v.imag = -self._m * y[K:], self._m * y[:K]
        density, velocity = scipy.fft.irfft(self._spectra, self._length, norm="forward")
        flux = scipy.fft.rfft(density * velocity, norm="forward")[1 : K + 1]
        slope = self._linear * y
        slope[:K] += self._k * flux.imag
        slope[K:] -= self._k * flux.real
        return slope

    def jacobian(self, _t: float, y: np.ndarray) -> np.ndarray:
        """d(dy/dt)/dy, dense (2 K, 2 K), in a buffer that the next call overwrites.

        With T_kj = a_(k-j) and H_kj = a_(k+j), and c_(-j) = conj(c_j), it is
        -ik [(T v + i m_j T c) dc_j + (H v - i m_j H c) conj(dc_j)], in real and imaginary parts.
        """
        K, m, k = self.degree, self._m, self._k[:, None]
        parts = y[:K], y[K:], -m * y[K:], m * y[:K]
        for row, part, parity in zip(self._series, parts, (1, -1, 1, -1), strict=True):
            row[2 * K + 1 : 3 * K + 1] = part
            row[K : 2 * K] = parity * part[::-1]
        pairs = zip(self._toeplitz, self._hankel, strict=True)
        c_re, c_im, v_re, v_im = ((t + h, t - h) for t, h in pairs)
        jacobian, (plus, minus) = self._jacobian, (0, 1)
        jacobian[:K, :K] = k * (v_im[plus] + m * c_re[minus])
        jacobian[:K, K:] = k * (v_re[minus] - m * c_im[plus])
        jacobian[K:, :K] = k * (m * c_im[minus] - v_re[plus])
        jacobian[K:, K:] = k * (v_im[minus] + m * c_re[plus])
        jacobian.ravel()[:: 2 * K + 1] += self._linear
        return jacobian


@functools.cache
def reference(degree: int = 192) -> np.ndarray:
    """Coefficients at T_END by DOP853, rtol 1e-12; Radau agrees to 1e-14. Takes seconds."""
    form = RealForm(degree)
    span, start = (0, T_END), form.start()
    run = solve_ivp(form.slope, span, start, method="DOP853", rtol=1e-12, atol=1e-15)
    return form.coefficients(run.y[:, -1])


def relative_error(coefficients: np.ndarray) -> float:
    """Distance to the reference in L2, relative to it; modes that are missing count as 0."""
    exact = reference()
    modes = max(exact.size, coefficients.size)
    difference, weights = np.zeros(modes, dtype=complex), np.full(modes, 2.0)
    weights[0] = 1.0
    difference[: coefficients.size] = coefficients
    difference[: exact.size] -= exact
    size = weights[: exact.size] @ np.abs(exact) ** 2
    return float(np.sqrt(weights @ np.abs(difference) ** 2 / size))
