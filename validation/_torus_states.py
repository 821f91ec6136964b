"""Independent code for stationary states on the torus of two angles: fixed points by scipy's FFT.

It has nothing in common with the package: multipliers are transforms of the kernel on the grid, and
states are fixed points of mu = exp(kappa g[mu]) / const with all complex waves.
"""

from collections.abc import Callable

import numpy as np
from scipy.fft import fft2, ifft2
from scipy.optimize import newton_krylov

Function = Callable[..., np.ndarray]


class TorusReference:
    """Kernels W and Z (None for 1) on a grid of n points a direction.

    g = W * mu if Z = 1, and g = log(Z * mu) / ratio if Z' = ratio W'.
    """

    def __init__(self, W: Function, n: int, ratio: float = 0.0) -> None:
        angles = 2 * np.pi * np.arange(n) / n
        self.grid = np.meshgrid(angles, angles, indexing="ij")
        self.kernel, self.ratio, self.n = W(*self.grid), ratio, n
        self.above = fft2(self.kernel) / n**2

    def potential(self, mu: np.ndarray) -> np.ndarray:
        mean = ifft2(self.above * fft2(mu)).real
        return np.log(mean * self.ratio) / self.ratio if self.ratio else mean

    def image(self, mu: np.ndarray, kappa: float) -> np.ndarray:
        """exp(kappa g[mu]) / const, of mean 1."""
        g = self.potential(mu)
        law = np.exp(kappa * (g - g.max()))
        return law / law.mean()

    def state(self, start: np.ndarray, kappa: float) -> np.ndarray:
        """The even fixed point near values (n, n) on the grid, by Newton-Krylov steps."""
        flipped = -np.arange(self.n)

        def residual(u: np.ndarray) -> np.ndarray:
            return u - self.image((u + u[np.ix_(flipped, flipped)]) / 2, kappa)

        return np.asarray(newton_krylov(residual, start / start.mean(), f_tol=1e-13))

    def growth_rates(self, mu: np.ndarray, kappa: float) -> np.ndarray:
        """Real parts of all eigenvalues of the linearised equation, decreasing; n odd.

        L h = Lap h/kappa - div(h grad g) - div(mu grad dg), dg = W * h / (1 or ratio W * mu).
        """
        n, eye = self.n, np.eye(self.n)
        wave = np.fft.fftfreq(n, 1 / n)
        line = np.fft.ifft(1j * wave[:, None] * np.fft.fft(eye, axis=0), axis=0).real
        slopes = [np.kron(line, eye), np.kron(eye, line)]
        rolled = (np.arange(n)[:, None] - np.arange(n)) % n
        i, j = (index.ravel() for index in np.indices((n, n)))
        below = self.kernel[rolled[np.ix_(i, i)], rolled[np.ix_(j, j)]] / n**2
        if self.ratio:
            below = below / (self.ratio * (below @ mu.ravel()))[:, None]
        g, density = self.potential(mu).ravel(), mu.ravel()
        total = np.zeros((n * n, n * n))
        for D in slopes:
            total += D @ (D / kappa - np.diag(D @ g) - density[:, None] * (D @ below))
        values = np.linalg.eigvals(total)
        return np.sort(values.real)[::-1]
