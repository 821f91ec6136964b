"""Which perturbations of a stationary state grow, and how fast."""

from typing import NamedTuple

import numpy as np

from .equation import Equation
from .harmonics import Harmonics
from .spectrum import linearised, rotation_among

__all__ = ["Stability", "stability_of"]

REAL = 1e-9  # imaginary parts of rounding, relative to the largest rate of diffusion


class Stability(NamedTuple):
    """The leading eigenvalues of the linearised Fokker-Planck equation.

    Attributes
    ----------
    eigenvalues : ndarray, (count,)
        In decreasing order of their real parts; real for gradient flows.
    orders : ndarray of int, (count,)
        The order of each about the axis of the state: 0 axisymmetric, on the circle 0 even, 1 odd.
    neutral : ndarray of bool, (count,)
        Which of them are rotations of the state, with eigenvalue 0.
    modes : list of ndarray
        Coefficients of each eigenfunction in the harmonics of its order.
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
    """The `count` eigenvalues of largest real part, of all orders about the axis."""
    found: list[tuple[complex, int, bool, np.ndarray]] = []
    last = 1 if equation.dimension == 2 else equation.degree
    kept = count + 1  # one may be a rotation, and the gap is that of another
    for order in range(last + 1):
        here = _of_order(equation, a, kappa, order, kept)
        found = sorted([*found, *here], key=lambda entry: -entry[0].real)[:kept]
        if order >= 2 and here and all(entry[1] != order for entry in found):
            break  # diffusion damps higher orders even more
    gap = -max(value.real for value, _, neutral, _ in found if not neutral)
    values, orders, neutral, modes = (list(column) for column in zip(*found[:count], strict=True))
    eigenvalues = np.array(values)
    if np.all(np.abs(eigenvalues.imag) <= REAL * equation.harmonics.eigenvalues[-1] / kappa):
        eigenvalues = eigenvalues.real
    return Stability(eigenvalues, np.array(orders), np.array(neutral), modes, float(gap))


def _of_order(equation: Equation, a: np.ndarray, kappa: float, order: int, count: int):
    harmonics = equation.harmonics
    if order:
        harmonics = Harmonics(equation.dimension, order, equation.degree)
    values, vectors = np.linalg.eig(linearised(equation, a, kappa, harmonics))
    rotation = rotation_among(values, order, a)
    chosen = np.argsort(-values.real)[:count]
    return [(complex(values[i]), order, bool(i == rotation), vectors[:, i]) for i in chosen]
