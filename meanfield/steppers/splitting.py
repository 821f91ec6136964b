"""Schemes of fixed steps for tokens, by name; what their parts are is not known here."""

from dataclasses import dataclass
from typing import ClassVar

__all__ = ["Layers", "LieTrotter", "Splitting", "Strang"]


@dataclass(frozen=True)
class Splitting:
    """A scheme of fixed steps.

    Attributes
    ----------
    name : str
    order : int
        Order of the state at a fixed time, in the weak sense where there is noise.
    evaluations : int
        Evaluations of attention per step.
    """

    known: ClassVar[dict[str, "Splitting"]] = {}  # all of them by their names

    name: str
    order: int
    evaluations: int

    def __post_init__(self):
        self.known.setdefault(self.name, self)


Strang = Splitting("Strang", order=2, evaluations=4)
"""Noise for dt/2, the drift for dt by Kutta's scheme of order 4, noise for dt/2."""

LieTrotter = Splitting("LieTrotter", order=1, evaluations=4)
"""Attention for dt, then the feed-forward map for dt, each by Kutta's scheme of order 4."""

Layers = Splitting("Layers", order=1, evaluations=1)
"""Layers of a Transformer: Euler's step of attention and of the feed-forward map, normalised."""
