"""What the driver asks of a state on its way through time, whatever represents it."""

from typing import Any, Protocol

import numpy as np

from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Gaussian
from .arguments import Arguments
from .characteristics_march import CharacteristicsMarch
from .density_march import DensityMarch
from .gaussian_march import GaussianMarch
from .token_march import TokenMarch

__all__ = ["March", "march_of"]


class March(Protocol):
    """Time, state, step size: all of it, so that a run can be resumed.

    Attributes
    ----------
    t, elapsed : float
        The time, and that since the start.
    state : State
    attempts : int
        Steps tried so far, accepted or rejected.
    rate : float
        The rate of change that a steady state is known by.
    pause : int
        Steps after which the driver may look around without loss of speed.
    size : str
        How fine the representation is, for the progress bar.
    continuous : bool
        Whether a step can be taken again, shorter.
    """

    @property
    def t(self) -> float: ...

    @property
    def elapsed(self) -> float: ...

    @property
    def state(self) -> Any: ...

    @property
    def attempts(self) -> int: ...

    @property
    def rate(self) -> float: ...

    @property
    def pause(self) -> int: ...

    @property
    def size(self) -> str: ...

    @property
    def continuous(self) -> bool: ...

    def advance(self, target: float, limit: int) -> int:
        """Towards `target` after the start, at most `limit` attempts; why it came back."""

    def step_from(self, state: Any, elapsed: float, dt: float) -> Any:
        """The state one single step after another one, that at `elapsed` after the start."""

    def stats(self) -> dict[str, Any]:
        """Counts for the result."""

    def failure(self, status: str) -> str:
        """Why the run could not go on, and what to do."""

    def doubt(self, state: Any, t: float) -> str | None:
        """What to warn of if the run ends with this state, at t; None if all is well."""

    def array(self, state: Any) -> np.ndarray:
        """The numbers that differ between states of a run."""

    def fixed(self) -> dict[str, np.ndarray]:
        """What all states of a run share, beside their space."""

    def state_of(self, array: np.ndarray) -> Any:
        """The state with these numbers."""

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts."""

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""


def march_of(arguments: Arguments) -> March:
    """The march for the representation of the state that is to be moved."""
    problem, accuracy = arguments.problem, arguments.accuracy
    steady = arguments.stopping.steady
    match problem.state:
        case Density():
            return DensityMarch(problem, accuracy, steady)
        case Characteristics():
            return CharacteristicsMarch(problem, accuracy, steady)
        case Gaussian():
            return GaussianMarch(problem, accuracy, steady)
    return TokenMarch(problem, accuracy, steady, arguments.moving)
