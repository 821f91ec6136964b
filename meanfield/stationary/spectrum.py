"""The linearised Fokker-Planck operator about a stationary state.

    L h = (1/kappa) Laplacian h - div(h grad g[mu]) - div(mu grad(gain W * h))

maps functions of one order about the axis to such functions. With test functions p_i it is

    L_ij = -l_i (l_i + d - 2)/kappa delta_ij + int p_j <grad p_i, grad g>
           + w_j int mu <grad p_i, grad(gain p_j)>.
"""

import numpy as np

from .equation import Equation
from .harmonics import Harmonics

__all__ = ["linearised", "rotation_among"]

UNIFORM = 1e-8  # moments of a state that no rotation changes


def linearised(equation: Equation, a: np.ndarray, kappa: float, harmonics: Harmonics) -> np.ndarray:
    """L in the basis `harmonics`, on the nodes of the equation, about its state a: (N, N)."""
    mean = equation.mean(a, kappa)
    slope = (equation.weights * a) @ equation.slopes  # (1 - x^2) s'
    p, dp, sines = harmonics.values, harmonics.slopes, harmonics.sines
    weights = equation.drift.attraction(harmonics.degree, equation.dimension)[harmonics.degrees]
    drifting = (dp * (harmonics.weights * mean.gain * slope / sines)) @ p.T
    moved = mean.gain * p
    moved_slopes = mean.gain * dp - (equation.beta * mean.gain**2 * slope) * p
    pulling = harmonics.stiffness(mean.density, moved, moved_slopes) * weights
    return drifting + pulling - np.diag(harmonics.eigenvalues / kappa)


def rotation_among(values: np.ndarray, order: int, a: np.ndarray) -> int | None:
    """Which eigenvalue is that of the rotations: of order 1, and 0; None for the uniform state."""
    if order != 1 or np.abs(a).max() < UNIFORM:
        return None
    return int(np.abs(values).argmin())
