"""Which perturbations of a stationary state grow, and how fast."""

from typing import NamedTuple

import numpy as np

from ..lowlevel.blas import one_blas_thread
from .equation import Equation
from .spectrum import linearised, rotation_among

__all__ = ["Stability", "most_attracted", "stability_of"]

REAL = 1e-9  # imaginary parts of rounding, relative to the largest rate of diffusion


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


def stability_of(equation: Equation, a: np.ndarray, kappa: float, count: int) -> Stability:
    """The `count` eigenvalues of largest real part, of all orders."""
    found: list[tuple[complex, int, bool, np.ndarray]] = []
    kept = count + 1  # one may be a rotation, and the gap is that of another
    for order in range(equation.basis.orders):
        with one_blas_thread():
            here = _of_order(equation, a, kappa, order, kept)
        found = sorted([*found, *here], key=lambda entry: -entry[0].real)[:kept]
        silent = here and all(entry[1] != order for entry in found)
        if silent and order >= max(2, most_attracted(equation)):
            break  # diffusion damps higher orders even more
    gap = -max(value.real for value, _, neutral, _ in found if not neutral)
    values, orders, neutral, modes = (list(column) for column in zip(*found[:count], strict=True))
    eigenvalues = np.array(values)
    if np.all(np.abs(eigenvalues.imag) <= REAL * equation.basis.eigenvalues[-1] / kappa):
        eigenvalues = eigenvalues.real
    return Stability(eigenvalues, np.array(orders), np.array(neutral), modes, float(gap))


def most_attracted(equation: Equation) -> int:
    """The degree of the largest multiplier: perturbations of orders up to it may grow fastest."""
    weights = equation.drift.attraction(equation.degree, equation.dimension)[1:]
    return int(np.argmax(weights)) + 1


def _of_order(equation: Equation, a: np.ndarray, kappa: float, order: int, count: int):
    basis = equation.basis.of_order(order)
    values, vectors = np.linalg.eig(linearised(equation, a, kappa, basis))
    rotation = rotation_among(values, basis, a)
    chosen = np.argsort(-values.real)[:count]
    return [(complex(values[i]), order, bool(i == rotation), vectors[:, i]) for i in chosen]
