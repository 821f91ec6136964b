"""All mass at one point."""

from collections.abc import Callable

import numpy as np

from ..core.checks import real_array, values_of
from .contract import Arrays, State

__all__ = ["Dirac"]

UNIT = 1e-9


class Dirac(State):
    """The measure delta_x: all mass at one point of the unit sphere of R^d.

    Distances are taken to it; `Tokens` is what moves.

    Parameters
    ----------
    point : array, shape (d,)
        A unit vector, d >= 2. On the circle `Dirac([cos(theta), sin(theta)])`.

    Raises
    ------
    TypeError, ValueError
        For what is no vector of unit length (to 1e-9).
    """

    kept = False  # it does not move

    def __init__(self, point: np.ndarray):
        point = real_array("The point of a Dirac", point)
        length = float(np.linalg.norm(point)) if point.ndim == 1 else np.nan
        if point.shape[:1] < (2,) or not abs(length - 1) <= UNIT:
            raise ValueError(
                f"Dirac expects a unit vector (d,), d >= 2; got shape {point.shape}, length "
                f"{length:.10g}. Divide it by np.linalg.norm(point)."
            )
        point.setflags(write=False)
        self.point = point

    def __repr__(self) -> str:
        return f"Dirac({self.point.tolist()})"

    def arrays(self) -> Arrays:
        return {"point": (("component",), self.point)}

    @property
    def dimension(self) -> int:
        """The ambient dimension d."""
        return len(self.point)

    def expect(self, f: Callable[[np.ndarray], np.ndarray]):
        """int f dmu = f(x); f takes points (1, d)."""
        values = values_of(f, self.point[None])
        if values.shape[:1] != (1,) or values.dtype.kind not in "fiubc":
            raise ValueError(
                f"f must map points (1, {self.dimension}) to values (1, ...); got {values.shape} "
                f"of {values.dtype}."
            )
        return values[0]
