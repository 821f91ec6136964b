"""Which perturbations of a stationary state grow, and how fast."""

from typing import NamedTuple

import numpy as np

from .equation import Equation
from .harmonics import Harmonics
from .spectrum import linearised

__all__ = ["Stability", "is_along", "rotation_of", "stability_of"]

REAL = 1e-9  # imaginary parts of rounding, relative to the largest rate of diffusion
NEUTRAL = 1e-6  # distance of an eigenvector from the rotations, relative
STEADY = 1e-9  # rates that count as 0, relative to the decay of degree 1


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

    @property
    def gap(self) -> float:
        return float(-self.eigenvalues.real[~self.neutral].max())

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
    for order in range(last + 1):
        here = _of_order(equation, a, kappa, order, count)
        found = sorted([*found, *here], key=lambda entry: -entry[0].real)[:count]
        if order >= 2 and here and all(entry[1] != order for entry in found):
            break  # diffusion damps higher orders even more
    values = np.array([entry[0] for entry in found])
    scale = equation.harmonics.eigenvalues[-1] / kappa
    if np.all(np.abs(values.imag) <= REAL * scale):
        values = values.real
    return Stability(
        values,
        np.array([entry[1] for entry in found]),
        np.array([entry[2] for entry in found]),
        [entry[3] for entry in found],
    )


def _of_order(equation: Equation, a: np.ndarray, kappa: float, order: int, count: int):
    harmonics = equation.harmonics
    if order:
        harmonics = Harmonics(equation.dimension, order, equation.degree)
    values, vectors = np.linalg.eig(linearised(equation, a, kappa, harmonics))
    rotation = rotation_of(equation, a, harmonics) if order == 1 else None
    chosen = np.argsort(-values.real)[:count]
    return [
        (complex(values[i]), order, is_along(vectors[:, i], rotation), vectors[:, i])
        for i in chosen
    ]


def rotation_of(equation: Equation, a: np.ndarray, harmonics: Harmonics) -> np.ndarray | None:
    """Coefficients of the derivative of the state along a rotation; None if it is uniform."""
    density_slope = a @ equation.slopes  # (1 - x^2) mu'
    coefficients = harmonics.values @ (harmonics.weights * density_slope / np.sqrt(harmonics.sines))
    size = np.linalg.norm(coefficients)
    return coefficients / size if size > NEUTRAL else None


def is_along(vector: np.ndarray, direction: np.ndarray | None) -> bool:
    """Whether an eigenvector is that of the rotations."""
    if direction is None:
        return False
    along = np.vdot(vector, direction)
    return bool(np.linalg.norm(direction - vector * along / np.vdot(vector, vector)) < NEUTRAL)
