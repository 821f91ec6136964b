"""The problem that the benchmark of the 2-sphere solves, and its exact solution."""

import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.dynamics import DensityEvolution

__all__ = ["MODEL", "T_END", "exact", "initial", "relative_error", "start"]

BETA, KAPPA, T_END = 4.0, 8.0, 2.0
MODEL = mf.Transformer(mf.USA(BETA), KAPPA)


def initial(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Values of the density that all runs start from."""
    return 1 + 0.3 * z + 0.2 * x * y + 0.1 * (x**2 - z**2)


def start(degree: int) -> mf.Density:
    """The density itself."""
    return mf.Sphere(degree).density(initial)


def exact(degree: int) -> np.ndarray:
    """Coefficients at T_END of the Galerkin system of this degree.

    By DOP853 at 1e-12, over our right-hand side, which the tests check by another.
    """
    density = start(degree)
    evolution = DensityEvolution(MODEL, density.space)

    def slope(_t, y):
        c = y.view(complex)[None]
        return (evolution.linear * c + evolution.nonlinear(c)).ravel().view(float)

    y0 = density.coefficients.copy().view(float)
    run = solve_ivp(slope, (0, T_END), y0, method="DOP853", rtol=1e-12, atol=1e-14)
    return run.y[:, -1].view(complex)


def relative_error(coefficients: np.ndarray, reference: np.ndarray) -> float:
    """In the norm of the coefficients."""
    return float(np.linalg.norm(coefficients - reference) / np.linalg.norm(reference))
