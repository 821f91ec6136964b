"""Where the uniform state loses its stability, and where that turns from continuous to not."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .family import Family
from .normal_form import normal_form

__all__ = ["GRID", "Tricritical", "critical", "tricritical_points"]

GRID = 81  # values of beta between which changes of character are looked for
EXACT = 1e-13


class Tricritical(NamedTuple):
    """Where the onset of degree l turns from continuous to discontinuous.

    Attributes
    ----------
    degree : int
    beta, kappa : float
    """

    degree: int
    beta: float
    kappa: float


def critical(family: Family, beta: float, degree: int) -> float:
    """kappa_l = 1/w_l; inf where harmonics of this degree are not attracted."""
    weight = family.at(beta).weights[degree - 1]
    return float(1 / weight) if weight > 0 else float("inf")


def tricritical_points(
    family: Family, span: tuple[float, float], degree: int
) -> Iterator[Tricritical]:
    """Zeros of the quadratic term of the normal form, where there is no linear one."""
    from scipy.optimize import brentq

    def quadratic(beta: float) -> float:
        return float(normal_form(family.at(beta), degree).quadratic)

    grid = np.linspace(*span, GRID)
    if normal_form(family.at(grid[0]), degree).kind == "transcritical":
        return
    values = [quadratic(b) for b in grid]
    for (low, first), (high, last) in pairwise(zip(grid, values, strict=True)):
        if first * last < 0:
            beta = float(brentq(quadratic, low, high, xtol=EXACT))
            yield Tricritical(degree, beta, critical(family, beta, degree))
