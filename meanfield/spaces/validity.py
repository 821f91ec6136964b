"""Truncated series: whether they are resolved, and expansions of functions with their error."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..core.checks import called, real_array, require
from ..core.errors import MeanfieldError

if TYPE_CHECKING:
    from .contract import Space

DENSITY_TAIL = 1e-8  # tolerance of the last coefficients, above which there is a warning
UNIT_MASS = 1e-12  # tolerance of a mass of 1
REAL_ENOUGH = 1e-12  # tolerance of imaginary parts of coefficients of order 0
LEAST_DECAY = 0.9  # of coefficients from degree to degree, from which a degree is estimated
TAIL_PART = 8 / 7  # all degrees to those below the tail
DECAY_MISSED = 0.08  # largest error of a fit to the decay of coefficients, relative to the decay
LARGEST_DEGREE = 4096  # of the spaces that have the most degrees
DEGREE_MARGIN = 10  # factor by which extended coefficients are to be below a tolerance
# Degrees at which functions of points are sampled in turn until they are resolved, by number of
# directions
SAMPLED_DEGREES = {1: (4096,), 2: (96, 384), 3: (16, 40)}
NEGATIVE_SHARE = 1e-4  # tolerance of negative values after a run, relative to the maximum


def log_modulus(values: np.ndarray) -> np.ndarray:
    """log |values| of a density, finite also at 0.

    Where a density is smaller than its rounding errors, they have either sign; int mu log |mu| then
    has an error of their size.
    """
    return np.asarray(np.log(np.maximum(np.abs(values), np.finfo(float).tiny)))


def tail_start(degree: int) -> float:
    """Degree above which the tail begins: the last eighth, but two degrees or more from 4 on."""
    return min(0.875 * degree, degree - 2) if degree >= 3 else 0.875 * degree


class HarmonicSizes:
    """The largest coefficient of each degree of a series, from which its truncation is judged.

    Between the harmonics of a sparse series, such as multiples of n, coefficients are small whether
    it is resolved or not. So a tail is as long as the largest gap before it.

    Parameters
    ----------
    degrees : ndarray of int, (N,)
        Degree of each coefficient, or the least degree of truncation that keeps it.
    coefficients : ndarray, (..., N)
        Their moduli are compared over the leading axes.

    Attributes
    ----------
    sizes : ndarray, (L + 1,)
        Largest modulus for each degree up to the highest one.
    """

    def __init__(self, degrees: np.ndarray, coefficients: np.ndarray) -> None:
        largest = np.abs(coefficients).reshape(-1, degrees.size).max(axis=0)
        self.sizes = np.zeros(int(degrees.max(initial=0)) + 1)
        np.maximum.at(self.sizes, degrees, largest)

    def beyond(self, degree: float) -> float:
        """Largest size of the degrees above `degree`."""
        return float(self.sizes[max(0, math.floor(degree) + 1) :].max(initial=0.0))

    def gap(self, limit: float) -> int:
        """Largest distance of neighbouring degrees with sizes above a limit, from 0 on."""
        return int(np.diff(np.flatnonzero(self.sizes > limit), prepend=0).max(initial=0))

    def tail(self, degree: int, limit: float) -> float:
        """Largest size in the tail of a truncation at `degree`, and above it.

        The tail is the last eighth of the degrees, or as many as the `gap` above the limit.
        """
        return self.beyond(min(tail_start(degree), degree - self.gap(limit)))

    def sufficient(self, limit: float) -> int:
        """Highest degree with a size above a limit, plus the gap to the next term."""
        return int(np.flatnonzero(self.sizes > limit).max(initial=0)) + self.gap(limit)

    def seen_from(self, degree: int, limit: float) -> int:
        """Least degree, from `degree` on, from which no truncation hides larger harmonics.

        A truncation hides those above it that exceed both the limit and its own tail: nothing in
        the series up to there tells of them.
        """
        large = np.flatnonzero(self.sizes > limit)
        gaps = np.maximum.accumulate(np.diff(large, prepend=0))
        above = np.maximum.accumulate(self.sizes[::-1])[::-1]
        for i in range(large.size - 1, np.searchsorted(large, degree, side="right") - 1, -1):
            k = int(large[i]) - 1  # the degree before a harmonic has the emptiest tail
            start = min(tail_start(k), k - (int(gaps[i - 1]) if i else 0))
            last = float(self.sizes[max(0, math.floor(start) + 1) : k + 1].max(initial=0.0))
            if above[large[i]] > max(limit, last):
                return int(large[i])
        return degree


def degree_above(
    degree: int, degrees: np.ndarray, coefficients: np.ndarray, tolerance: float,
    largest: int = LARGEST_DEGREE,
) -> str:  # fmt: skip
    """Advice on a degree of truncation, with an estimate from the decay of coefficients.

    Of `coefficients` (..., N) with `degrees` (N,), at most `degree`, the largest sizes from three
    degrees on are extended to `tolerance` as C exp(-a l^2), C exp(-a l) or C l^(-a), whichever fits
    best. No estimate without decay, or if no fit agrees with all three; a smoother density where
    it is above `largest`, the highest degree of the space.
    """
    ends = np.array([degree / 4, degree / 2, tail_start(degree)])
    levels = np.array([HarmonicSizes(degrees, coefficients).beyond(end) for end in ends])
    if levels[-1] > tolerance > 0 and levels[0] * LEAST_DECAY > levels[1] > levels[2] / LEAST_DECAY:
        logs, target = np.log(levels), np.log(tolerance / DEGREE_MARGIN)
        fits = []
        for x, inverse in ((ends**2, np.sqrt), (ends, float), (np.log(ends), np.exp)):
            slope = (logs[2] - logs[1]) / (x[2] - x[1])
            missed = abs(logs[1] + slope * (x[0] - x[1]) - logs[0])
            with np.errstate(over="ignore"):
                fits.append((missed, inverse(x[2] + (target - logs[2]) / slope)))
        missed, reached = min(fits)
        if missed <= DECAY_MISSED * (logs[0] - logs[2]):
            advised = TAIL_PART * reached
            highest = max(degree, largest)
            if advised > highest:
                return f"a smoother density: its coefficients decay too slowly for degree {highest}"
            return (
                f"a degree above {degree}: about {math.ceil(advised)}, if its coefficients go on "
                "to decay"
            )
    return f"a degree above {degree}"


def expanded(
    space: "Space", f: Callable[..., np.ndarray], signature: str, *leading: np.ndarray
) -> tuple[np.ndarray, float]:
    """Coefficients (..., modes) of densities proportional to f, and the error of their series.

    The error is a root mean square, see `_missed_by_grid`; 0 if f is a table of values. Raises
    TypeError or ValueError if f is no function of these arguments, and if its values on the grid
    are negative or not finite, or all 0.

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
        lost = np.argwhere(~np.isfinite(values))
        first = ""
        if len(lost):
            places = [np.broadcast_to(a, shape)[tuple(lost[0])] for a in arguments]
            names = signature.removeprefix("f(").removesuffix(")")
            first = f", the first at ({names}) = ({', '.join(f'{a:.6g}' for a in places)})"
        raise ValueError(
            f"A density needs finite values >= 0, not all zero; {signature} has minimum "
            f"{np.min(values)} and {len(lost)} values that are not finite{first}."
        )
    coefficients = space.to_coefficients(values / mass)
    coefficients[..., 0] = 1

    def on(finer: "Space") -> np.ndarray:
        copies = [argument.copy() for argument in (*leading, *finer.arguments.values())]
        return np.asarray(f(*copies), dtype=float) / mass

    try:
        return coefficients, _missed_by_grid(space, coefficients, on)
    except (TypeError, ValueError):  # f is a table of values on one grid
        return coefficients, 0.0


class SampledHarmonics:
    """Harmonics of a function of points, whatever the degree of the densities that it moves.

    They are computed on a fine grid, of degree 4096 on the circle, 96 on other surfaces and 16 in
    three dimensions, or that of a space if it is higher. The last ones are cached.

    Parameters
    ----------
    values : callable
        Values (..., N) of the function on the grid of a space.
    why_wrong : callable, optional
        Gets the harmonics and the root mean square of what their series misses; it returns the
        reason why these harmonics are not enough, or "". Then degree 384, or 40 in three
        dimensions, is tried before MeanfieldError.
    """

    def __init__(
        self,
        values: Callable[["Space"], np.ndarray],
        why_wrong: Callable[[HarmonicSizes, float], str] | None = None,
    ) -> None:
        self._values, self._why_wrong = values, why_wrong
        self._last: tuple[tuple[object, ...], HarmonicSizes] | None = None

    def on(self, space: "Space") -> HarmonicSizes:
        """The harmonics on the points of a space."""
        first = max(space.degree, SAMPLED_DEGREES[space.directions][0])
        key = type(space), space.dimension, space.directions, first
        last = self._last  # other threads may replace it
        if last is None or last[0] != key:
            last = self._last = key, self._sampled(space)
        return last[1]

    def _sampled(self, space: "Space") -> HarmonicSizes:
        reason = ""
        for degree in SAMPLED_DEGREES[space.directions]:
            fine = space.with_degree(max(space.degree, degree))
            coefficients = fine.to_coefficients(self._values(fine))
            sizes = HarmonicSizes(fine.degrees, coefficients)
            if self._why_wrong is not None:
                missed = _missed_by_grid(fine, coefficients, self._values)
                reason = self._why_wrong(sizes, missed)
            if not reason:
                return sizes
        raise MeanfieldError(reason)


def _missed_by_grid(
    space: "Space", coefficients: np.ndarray, values: Callable[["Space"], np.ndarray]
) -> float:
    """Root mean square of a function minus its series, on finer grids.

    Harmonics above the degree do not change the coefficients, or appear as lower degrees
    (aliasing). In both cases the function and its series differ between the points of the grid. Two
    finer grids are used, since on one of them a harmonic may be aliased to the same lower degree.
    """
    missed, finer = 0.0, space
    for _ in range(2):
        size = finer.weights.size
        while finer.weights.size == size:
            finer = finer.with_degree(finer.next_degree)
        series = finer.to_values(space.resample(coefficients, finer.degree))
        squares = (values(finer) - series) ** 2 @ finer.weights
        missed = max(missed, float(np.sqrt(np.max(squares))))
    return missed
