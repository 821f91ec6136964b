"""The benchmark's problem in py-pde: a class with spectral derivatives on 2 degree points."""

from collections.abc import Callable

import numpy as np
import pde
from _equation import KAPPA, T_END, initial, velocity_multiplier

__all__ = ["prepare"]


class Attention(pde.PDEBase):
    """USA with noise, and its Jacobian for implicit solvers."""

    def __init__(self, degree: int):
        super().__init__()
        k = np.arange(degree + 1)
        self.velocity = 1j * velocity_multiplier(degree)
        self.derivative = 1j * k
        self.velocity[-1] = self.derivative[-1] = 0  # the Nyquist mode has none
        self.laplacian = -(k**2) / KAPPA
        modes = np.fft.rfft(np.eye(2 * degree), axis=0)
        tables = self.velocity, self.derivative, self.laplacian
        self.matrices = [np.fft.irfft(a[:, None] * modes, axis=0) for a in tables]

    def evolution_rate(self, state, t=0):
        u_hat = np.fft.rfft(state.data)
        v = np.fft.irfft(self.velocity * u_hat)
        rate = state.copy()
        rate_hat = self.laplacian * u_hat - self.derivative * np.fft.rfft(state.data * v)
        rate.data = np.fft.irfft(rate_hat)
        return rate

    def jacobian(self, _t, u):
        velocity, derivative, laplacian = self.matrices
        return laplacian - derivative * (velocity @ u) - (derivative * u) @ velocity


def prepare(degree: int, **options) -> Callable[[], np.ndarray]:
    """A function that runs the problem and returns the coefficients."""
    grid = pde.CartesianGrid([[0, 2 * np.pi]], 2 * degree, periodic=True)
    theta = grid.axes_coords[0]
    phase = np.exp(-1j * np.arange(degree + 1) * theta[0]) / (2 * degree)  # starts half a cell in
    equation, start = Attention(degree), pde.ScalarField(grid, initial(theta))
    if options["solver"] == "scipy":
        options["jac"] = equation.jacobian
    fixed = {"t_range": T_END, "dt": 1e-4, "tracker": None, "backend": "numpy"}

    def solve() -> np.ndarray:
        return np.fft.rfft(equation.solve(start, **fixed, **options).data) * phase

    return solve
