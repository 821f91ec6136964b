"""The maximum mean discrepancy of the attention kernel."""

from typing import Any

import numpy as np

from ..core.checks import positive
from ..spaces.kernels import exponential_multipliers
from ..states import Dirac, Tokens
from .clouds import Cloud, cloud_of
from .coefficients import coefficients_of, common_space
from .distance import Distance
from .ground import pairwise
from .pairing import checked_states, dimension_of, on_sphere
from .sobolev import CANCELLED, ROUNDED, rooted, weighted_squares

__all__ = ["mmd"]

NEGLIGIBLE = 1e-17
LARGEST = 4096
ROWS = 512


def mmd(a: Any, b: Any, beta: float = 1.0) -> Distance:
    """The maximum mean discrepancy of K(x, y) = exp(-beta |x - y|^2 / 2).

    (int int K d(a - b) d(a - b))^(1/2). On the sphere K is the attention kernel exp(beta <x, y>)
    over its maximum e^beta.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac
        In one space.
    beta : float
        > 0.

    Returns
    -------
    Distance
        Its error is that of rounding.

    Notes
    -----
    On the circle and S^2 by harmonics, of which K has about 6 sqrt(beta) + 20, in O(n); else by all
    pairs, O(n^2 d) for n atoms.

    References
    ----------
    Gretton, Borgwardt, Rasch, Scholkopf and Smola, J. Mach. Learn. Res. 13 (2012).
    """
    positive(beta=beta)
    shape, pairs = checked_states("mmd", a, b)
    d = dimension_of(a)
    pointwise = all(isinstance(x, Tokens | Dirac) for x in (a, b))
    multipliers = _multipliers(beta, d) if on_sphere(a) else np.empty(0)
    resolved = on_sphere(a) and multipliers[-1] <= NEGLIGIBLE * multipliers[0]
    if not on_sphere(a) or (pointwise and (d > 3 or not resolved)):
        energies = [_pairwise(cloud_of(a, i), cloud_of(b, j), beta) for i, j in pairs]
        return rooted(np.array(energies), shape, "all pairs", CANCELLED)
    if not resolved:
        raise ValueError(
            f"mmd of densities is summed over at most {LARGEST} harmonics, too few for beta = "
            f"{beta:g}: expected beta <= about 1e5."
        )
    space = common_space(a, b, d, len(multipliers) - 1, "mmd")
    first, second = coefficients_of(a, space), coefficients_of(b, space)
    weights = multipliers[space.degrees] * (space.degrees > 0) * space.parseval
    squares = weighted_squares(first, second, weights, pairs)
    return rooted(squares, shape, "harmonics", ROUNDED)


def _multipliers(beta: float, dimension: int) -> np.ndarray:
    """Those of K that are not negligible."""
    degree = 16
    while True:
        multipliers = exponential_multipliers(beta, degree, dimension)
        if multipliers[-1] <= NEGLIGIBLE * multipliers[0] or degree == LARGEST:
            return multipliers
        degree *= 2


def _pairwise(a: Cloud, b: Cloud, beta: float) -> float:
    """int int K d(a - b) d(a - b) of atoms."""
    x = np.concatenate([a.x, b.x])
    masses = np.concatenate([a.masses, -b.masses])
    total = 0.0
    for begin in range(0, len(x), ROWS):
        rows = slice(begin, begin + ROWS)
        squares = pairwise(x[rows], x, 2, False)
        total += masses[rows] @ np.exp(-beta / 2 * squares) @ masses
    return float(total)
