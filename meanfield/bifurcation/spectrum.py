"""The linearised Fokker-Planck operator about a stationary state.

    L h = (1/kappa) Laplacian h - div(h grad g[mu]) - div(mu grad(gain W * h))

maps functions of one order to such functions. With test functions p_i it is

    L_ij = -l_i (l_i + d - 2)/kappa delta_ij + int p_j <grad p_i, grad g>
           + w_j int mu <grad p_i, grad(gain p_j)>.
"""

import numpy as np

from .basis import Basis
from .equation import Equation

__all__ = ["linearised", "rotation_among"]

UNIFORM = 1e-8  # moments of a state that no rotation changes


def linearised(equation: Equation, a: np.ndarray, kappa: float, basis: Basis) -> np.ndarray:
    """L in a basis of any order, on the nodes of the equation, about its state a: (N, N)."""
    mean, p = equation.mean(a, kappa), basis.values
    weights = equation.multipliers(basis)
    slopes = np.tensordot(equation.weights * a, equation.basis.gradients, (0, 1))  # of s
    operator = np.diag(-basis.eigenvalues / kappa)
    for c, gradient in enumerate(basis.gradients):
        moved = mean.gain * gradient
        if c < len(slopes):
            operator += (gradient * (basis.weights * mean.gain * slopes[c])) @ p.T
            if equation.beta:
                moved -= (equation.beta * mean.gain**2 * slopes[c]) * p
        operator += (gradient * mean.weights) @ moved.T * weights
    return operator


def rotation_among(values: np.ndarray, basis: Basis, a: np.ndarray) -> int | None:
    """Which eigenvalue is that of the rotations: 0; None for other orders and the uniform state."""
    if basis.order != basis.turning or np.abs(a).max() < UNIFORM:
        return None
    return int(np.abs(values).argmin())
