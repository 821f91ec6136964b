"""Linear stability of stationary states: spectra of the linearised Fokker-Planck operator.

    L h = (1/kappa) Laplacian h - div(h grad g[mu]) - div(mu grad(gain W * h))

maps functions of one order to such functions. With test functions p_i it is

    L_ij = -l_i (l_i + d - 2)/kappa delta_ij + int p_j <grad p_i, grad g>
           + w_j int mu <grad p_i, grad(gain p_j)>.
"""

from typing import NamedTuple

import numpy as np

from ..core.checks import whole_number
from ..lowlevel.blas import one_blas_thread
from .bases import Basis
from .equation import Equation

REAL = 1e-9  # imaginary parts of rounding, relative to the largest rate of diffusion
UNIFORM = 1e-8  # moments of a state that no rotation changes


class Stability(NamedTuple):
    """The leading eigenvalues of the linearised Fokker-Planck equation.

    Attributes
    ----------
    eigenvalues : ndarray, (count,)
        In decreasing order of their real parts; real for gradient flows.
    orders : ndarray of int, (count,)
        The order of each: 0 keeps the symmetry of the state. About an axis, the order about it; on
        the circle, 0 is even and 1 odd; for polyhedra, 1 keeps the half turns about the axes, and 2
        stands for three equal eigenvalues.
    neutral : ndarray of bool, (count,)
        Which of them are rotations of the state, with eigenvalue 0.
    modes : list of ndarray
        Coefficients of each eigenfunction in the basis of its order.
    gap : float
        Minus the largest real part but for rotations: the rate at which perturbations decay.
    """

    eigenvalues: np.ndarray
    orders: np.ndarray
    neutral: np.ndarray
    modes: list[np.ndarray]
    gap: float

    @property
    def stable(self) -> bool:
        """Whether every perturbation decays, but for rotations."""
        return self.gap > 0

    def __repr__(self) -> str:
        word = "stable" if self.stable else "unstable"
        return f"Stability({word}, gap {self.gap:.8g}, eigenvalues {self.eigenvalues})"


def stability_of(equation: Equation, m: np.ndarray, kappa: float, count: int) -> Stability:
    """The `count` eigenvalues of largest real part, of all orders."""
    count = whole_number("count", count)
    found: list[tuple[complex, int, bool, np.ndarray]] = []
    kept = count + 1  # one may be a rotation, and the gap is that of another
    for order in range(equation.basis.orders):
        with one_blas_thread():
            here = _of_order(equation, m, kappa, order, kept)
        found = sorted([*found, *here], key=lambda entry: -entry[0].real)[:kept]
        silent = here and all(entry[1] != order for entry in found)
        if silent and order >= max(2, equation.most_attracted):
            break  # diffusion damps higher orders even more
    gap = -max(value.real for value, _, neutral, _ in found if not neutral)
    values, orders, neutral, modes = (list(column) for column in zip(*found[:count], strict=True))
    eigenvalues = np.array(values)
    if np.all(np.abs(eigenvalues.imag) <= REAL * equation.basis.eigenvalues[-1] / kappa):
        eigenvalues = eigenvalues.real
    return Stability(eigenvalues, np.array(orders), np.array(neutral), modes, float(gap))


def _of_order(equation: Equation, m: np.ndarray, kappa: float, order: int, count: int):
    basis = equation.basis.of_order(order)
    values, vectors = np.linalg.eig(linearised(equation, m, kappa, basis))
    rotation = rotation_among(values, basis, m)
    chosen = np.argsort(-values.real)[:count]
    return [(complex(values[i]), order, bool(i == rotation), vectors[:, i]) for i in chosen]


def linearised(equation: Equation, m: np.ndarray, kappa: float, basis: Basis) -> np.ndarray:
    """L in a basis of any order, on the nodes of the equation, about its state m: (N, N)."""
    mean, p = equation.mean(m, kappa), basis.values
    weights = equation.multipliers(basis)
    inner = equation.basis
    slopes = np.tensordot(equation.strengths * m / inner.sizes, inner.gradients, (0, 1))  # of s
    operator = np.diag(-basis.eigenvalues / kappa)
    for c, gradient in enumerate(basis.gradients):
        moved = mean.gain * gradient
        if c < len(slopes):
            operator += (gradient * (basis.weights * mean.gain * slopes[c])) @ p.T
            if equation.ratio:
                moved -= (equation.ratio * mean.gain**2 * slopes[c]) * p
        operator += (gradient * mean.weights) @ moved.T * weights
    return operator


def rotation_among(values: np.ndarray, basis: Basis, m: np.ndarray) -> int | None:
    """Which eigenvalue is that of the rotations: 0; None for other orders and the uniform state."""
    if basis.order != basis.turning or np.abs(m).max() < UNIFORM:
        return None
    return int(np.abs(values).argmin())


def growth_rates(equation: Equation, m: np.ndarray, kappa: float, basis: Basis) -> np.ndarray:
    """Real parts of the eigenvalues of one order but for rotations, in decreasing order."""
    values = np.linalg.eigvals(linearised(equation, m, kappa, basis))
    rotation = rotation_among(values, basis, m)
    kept = values if rotation is None else np.delete(values, rotation)
    return np.sort(kept.real)[::-1]
