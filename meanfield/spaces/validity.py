"""Tolerances of densities, and expansions of functions with the error of their series."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..core.checks import called, real_array, require

if TYPE_CHECKING:
    from .contract import Space

DENSITY_TAIL = 1e-8  # tolerance of the last coefficients, above which there is a warning
UNIT_MASS = 1e-12  # tolerance of a mass of 1
REAL_ENOUGH = 1e-12  # tolerance of imaginary parts of coefficients of order 0
LEAST_DECAY = 0.9  # of coefficients from degree to degree, from which a degree is estimated
TAIL_PART, HIGHEST_ADVISED = 8 / 7, 100  # all degrees to those below the tail; largest factor
DEGREE_MARGIN = 10  # factor by which extended coefficients are to be below a tolerance
NEGATIVE_SHARE = 1e-4  # tolerance of negative values after a run, relative to the maximum


def log_modulus(values: np.ndarray) -> np.ndarray:
    """log |values| of a density, finite also at 0.

    Where a density is smaller than its rounding errors, they have either sign; int mu log |mu| then
    has an error of their size.
    """
    return np.asarray(np.log(np.maximum(np.abs(values), np.finfo(float).tiny)))


def tail_start(degree: int) -> float:
    """Degree above which the tail begins: the last eighth, but two degrees or more from 4 on."""
    return min(0.875 * degree, degree - 2) if degree >= 4 else 0.875 * degree


def largest_gap(degrees: np.ndarray, sizes: np.ndarray, limit: float) -> int:
    """Largest distance of neighbouring degrees, of `degrees` (N,), with sizes (N,) above a limit.

    No tail is shorter: a density whose harmonics are multiples of n has small coefficients between
    them, resolved or not.
    """
    large = np.unique(degrees[sizes > limit])
    return int(np.diff(large, prepend=0).max(initial=0))


def degree_above(
    degree: int, degrees: np.ndarray, coefficients: np.ndarray, tolerance: float
) -> str:
    """Advice on a degree of truncation, with an estimate from the decay of coefficients.

    Of `coefficients` (..., N) with `degrees` (N,), at most `degree`, the largest sizes from each
    degree on are extended to `tolerance` as C exp(-a l^2), C exp(-a l) or C l^(-a), whichever fits
    best. No estimate without decay.
    """
    sizes = np.abs(coefficients).reshape(-1, degrees.size).max(axis=0)
    ends = np.array([degree / 4, degree / 2, tail_start(degree)])
    levels = np.array([sizes[degrees > end].max(initial=0.0) for end in ends])
    if levels[-1] > tolerance > 0 and levels[0] * LEAST_DECAY > levels[1] > levels[2] / LEAST_DECAY:
        logs, target = np.log(levels), np.log(tolerance / DEGREE_MARGIN)
        fits = []
        for x, inverse in ((ends**2, np.sqrt), (ends, float), (np.log(ends), np.exp)):
            slope = (logs[2] - logs[1]) / (x[2] - x[1])
            missed = abs(logs[1] + slope * (x[0] - x[1]) - logs[0])
            with np.errstate(over="ignore"):
                fits.append((missed, inverse(x[2] + (target - logs[2]) / slope)))
        advised = TAIL_PART * min(fits)[1]
        if advised < HIGHEST_ADVISED * degree:
            return f"a degree above {degree}: about {math.ceil(advised)}, as its coefficients decay"
    return f"a degree above {degree}"


def expanded(
    space: "Space", f: Callable[..., np.ndarray], signature: str, *leading: np.ndarray
) -> tuple[np.ndarray, float]:
    """Coefficients (..., modes) of densities proportional to f, and the error of their series.

    The error is a root mean square, see `_missed_by_grid`. Raises TypeError or ValueError if f is
    no function of these arguments, and if its values on the grid are negative or not finite, or
    all 0.

    Parameters
    ----------
    space : Space
        Space of the densities.
    f : callable
        Function of the leading arguments, followed by the arguments of `Space.density`.
    signature : str
        Name of f in messages.
    *leading : ndarray
        Leading arguments (n, 1), such as the index; values of f are then broadcast.
    """
    arguments = [argument.copy() for argument in (*leading, *space.arguments.values())]
    values = real_array(f"The values {signature}", called(f, f"a function {signature}", *arguments))
    shape = (*(len(argument) for argument in leading), space.weights.size)
    sides = zip(values.shape[::-1], shape[::-1], strict=False)
    broadcast = leading and values.ndim <= len(shape) and all(n in (1, m) for n, m in sides)
    fits, advice = broadcast or values.shape == shape, "Write it with numpy functions of arrays."
    require(f"The shape of {signature}", values.shape, f"{shape}", fits, advice=advice)
    values = np.broadcast_to(values, shape)
    with np.errstate(over="ignore", invalid="ignore"):
        mass = (values @ space.weights)[..., None]
    if not (values >= 0).all() or not ((mass > 0) & (mass < np.inf)).all():
        count = np.count_nonzero(~np.isfinite(values))
        raise ValueError(
            f"A density needs finite values >= 0, not all zero; {signature} has minimum "
            f"{np.min(values)} and {count} values that are not finite."
        )
    coefficients = space.to_coefficients(values / mass)
    coefficients[..., 0] = 1
    return coefficients, _missed_by_grid(space, f, coefficients, mass, *leading)


def _missed_by_grid(
    space: "Space", f: Callable[..., np.ndarray], coefficients: np.ndarray, mass: np.ndarray,
    *leading: np.ndarray,
) -> float:  # fmt: skip
    """Root mean square of f/mass minus its series, on finer grids; 0 if f is a table of values.

    Harmonics of f above the degree do not change the coefficients, or appear as lower degrees
    (aliasing). In both cases f and its series differ between the points of the grid. Two finer
    grids are used, since on one of them a harmonic may be aliased to the same lower degree.
    """
    missed, finer = 0.0, space
    for _ in range(2):
        size = finer.weights.size
        while finer.weights.size == size:
            finer = finer.with_degree(finer.next_degree)
        copies = [argument.copy() for argument in (*leading, *finer.arguments.values())]
        series = finer.to_values(space.resample(coefficients, finer.degree))
        try:
            values = np.broadcast_to(np.asarray(f(*copies), dtype=float), series.shape)
        except (TypeError, ValueError):  # f is a table of values on one grid
            return 0.0
        squares = (values / mass - series) ** 2 @ finer.weights
        missed = max(missed, float(np.sqrt(np.max(squares))))
    return missed
