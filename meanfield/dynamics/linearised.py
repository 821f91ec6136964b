"""Linearised motions: coordinates that move, together with tangents of them.

Coordinates of a state and its tangents are one stack Y (1 + p, ...): y, and p changes of it. Its
velocity is (v, Dv(y) dy + dv/dparameter), so that steps of the stack by an explicit scheme are
those of the state and, exactly, their derivatives.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ..core.errors import MeanfieldError
from ..steppers import Splitting

OFF_TANGENT = 1e-9  # relative: so far a direction may leave the tangent space, by rounding


class LinearisedMotion(ABC):
    """A motion and its derivatives along tangents.

    Parameters
    ----------
    motion : Motion
    names : sequence of (str or None)
        The parameter of each tangent, which changes at the rate 1 along it; None for directions.
    directions : sequence of (mapping or None)
        Changes of the initial state as `direction` returned them; None for parameters.

    Attributes
    ----------
    arrays : tuple of str
        Names of the arrays in which changes of a state are told, that of a plain array first.
    """

    arrays: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        motion: Any,
        names: Sequence[str | None],
        directions: Sequence[Mapping[str, np.ndarray] | None],
    ):
        self.motion, self.names, self.directions = motion, tuple(names), tuple(directions)
        self.setup()

    def setup(self) -> None:  # noqa: B027
        """Compute once what velocities need."""

    @property
    def changes_coordinates(self) -> bool:
        return self.motion.changes_coordinates

    @abstractmethod
    def first(self, state: Any) -> np.ndarray:
        """The stack (1 + p, ...) at the initial state."""

    @abstractmethod
    def velocity(self, Y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the stack."""

    def velocity_beside(
        self, Y: np.ndarray, t: float, known: np.ndarray, beside: np.ndarray | None
    ) -> np.ndarray:
        """As `velocity`, where the velocity of the state is known: in any shape, (N,).

        So is what the motion had `beside` it, where it has that.
        """
        return self.velocity(Y, t)

    @abstractmethod
    def changes(self, Y: np.ndarray) -> list[dict[str, np.ndarray]]:
        """The changes of the state, by the names of its arrays, one for each tangent."""

    def merged(self, Y: np.ndarray, labels: np.ndarray) -> tuple["LinearisedMotion", np.ndarray]:
        """What moves fewer rows, and their stack, where rows of equal labels become one."""
        name = self.motion.moves.__name__
        raise MeanfieldError(f"Derivatives of runs of {name} in which some merged are not known.")

    # For Lyapunov exponents ----------------------------------------------------------------

    @property
    def members(self) -> tuple[int, ...]:
        """Shape of the replicas."""
        return ()

    def tangent_space(self, state: Any) -> tuple[int, Callable[[np.random.Generator], Any]]:
        """Its dimension, of each replica, and what draws a direction at random.

        Raises MeanfieldError where it is not known, or coordinates have directions that change no
        state.
        """
        raise MeanfieldError(
            f"Lyapunov exponents of runs of {self.motion.moves.__name__} are not known. Solve for "
            "Tokens."
        )

    def vectors(self, Y: np.ndarray) -> np.ndarray:
        """The tangents as vectors with a norm, (members, p, N)."""
        return Y[1:].reshape(1, len(Y) - 1, -1)

    def measured(
        self, state: Any, change: Mapping[str, np.ndarray], name: str | None, t: float
    ) -> dict[str, Any]:
        """Derivatives of observables of a state that changes, as a parameter does where named."""
        return {}

    def projected(self, Y: np.ndarray) -> np.ndarray:
        """What `projected` of the motion makes of the coordinates, and its derivative."""
        return Y

    def step(self, scheme: Splitting, Y: np.ndarray, t: float, dt: float) -> np.ndarray:
        """The stack after one step of a splitting; MeanfieldError where it has no derivative."""
        name = self.motion.moves.__name__
        raise MeanfieldError(f"Derivatives of steps of {scheme.name} of {name} are not known.")

    def relative_error(self, error: np.ndarray, Y: np.ndarray) -> float:
        """0: steps are those of the run, and nothing is controlled."""
        return 0.0
