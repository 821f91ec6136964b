"""All mass at one point."""

from collections.abc import Callable
from typing import Annotated

import numpy as np

from ..core.annotations import Values
from ..core.checks import real_array, require
from .contract import State, StatePart
from .points import check_unit, function_values


class Dirac(State):
    """The measure delta_x: all mass at one point of the unit sphere of R^d.

    Distances to it can be computed. Models move `Tokens`, but not a Dirac.

    Parameters
    ----------
    point : array, shape (d,)
        A unit vector, d >= 2. On the circle `Dirac([cos(theta), sin(theta)])`.

    Raises
    ------
    TypeError, ValueError
        For values other than a vector of unit length (to 1e-9).
    """

    has_table = False  # it does not move
    point: Annotated[np.ndarray, StatePart("point of all mass", ("component",))]

    def __init__(self, point: np.ndarray):
        """Check that `point` is a unit vector (d,), d >= 2."""
        point = real_array("The point of a Dirac", point)
        advice = "On the circle: Dirac([cos(theta), sin(theta)]). For several points: Tokens."
        expected, fits = "that of a unit vector (d,), d >= 2", point.ndim == 1 and point.size >= 2
        require("point.shape", point.shape, expected, fits, advice=advice)
        check_unit("Dirac(point)", point)
        self._set(point=point)

    def __repr__(self) -> str:
        return f"Dirac({self.point.tolist()})"

    @property
    def dimension(self) -> int:
        """The ambient dimension d."""
        return len(self.point)

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> Values:
        """int f dmu = f(x); f takes points (1, d)."""
        return function_values(f, self.point[None])[0]
