"""Interpolants for the state within a step, of explicit and of exponential schemes."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..lowlevel.compilation import WITHIN, njit
from ..lowlevel.records import numbers_at
from ..lowlevel.simd import address_of
from .attempt import HIGHEST_PHI, Numbers, phi_functions
from .schemes import DenseOutput, ParabolicOutput, row_of

SUM_BLOCK = 2048  # floats of a block of sums, which stays in the first cache
ONE_ROW = np.zeros(1, dtype=np.int64)

Velocity = Callable[[np.ndarray, Any], np.ndarray]


class ParabolicInterpolant:
    """Interpolant of one step of an exponential scheme: see `ParabolicOutput`.

    Parameters
    ----------
    table : ParabolicOutput
    linear : ndarray, (1, modes) or (members, modes)
        The diagonal of L.
    u, new : ndarray, (members, modes)
        At the beginning and at the end of the step.
    slopes : ndarray, (members, stages, modes)
        N at the stages; the first is N(u), the last N(new).
    dt : float

    Attributes
    ----------
    derivatives : ndarray, (3, members, modes)
        N and its two derivatives by the fraction of the step, at the beginning.
    """

    def __init__(
        self,
        table: ParabolicOutput,
        linear: np.ndarray,
        u: np.ndarray,
        new: np.ndarray,
        slopes: np.ndarray,
        dt: float,
    ):
        """Fit N along the step by a parabola through its begin, middle and end, (modes,) each."""
        self._linear, self._u, self._dt = linear, u, dt
        self.derivatives = np.empty((HIGHEST_PHI, *u.shape), dtype=u.dtype)
        first, last = slopes[:, 0], slopes[:, -1]
        middle = sum(weight * slopes[:, stage] for stage, weight in sorted(table.middle.items()))
        self.derivatives[0] = first
        self.derivatives[1] = 4 * middle - 3 * first - last
        self.derivatives[2] = 4 * (first + last - 2 * middle)
        self._gap = new - self._by_parabola(1.0)

    def __call__(self, s: float) -> np.ndarray:
        """The state (members, modes) after the fraction s of the step."""
        return self._by_parabola(s) + s * s * (3 - 2 * s) * self._gap

    def _by_parabola(self, s: float) -> np.ndarray:
        state, phi = np.empty_like(self._u), np.empty(HIGHEST_PHI + 1, self._linear.dtype)
        _by_parabola(self._linear, self._u, self.derivatives, self._dt, float(s), state, phi)
        return state


@njit(cache=True, nogil=True)
def _by_parabola(
    linear: np.ndarray,
    u: np.ndarray,
    derivatives: np.ndarray,
    dt: float,
    s: float,
    state: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Fill `state` with e(s) of `ParabolicOutput`, from `derivatives` (3, members, modes).

    These are P, P' and P'' with respect to s, at s = 0. `scratch` (HIGHEST_PHI + 1,) is for the
    phi functions, of the type of L.
    """
    phi, members, rows = numbers_at(address_of(scratch), 0, scratch[0]), u.shape[0], linear.shape[0]
    for row in range(rows):
        for k in range(u.shape[1]):
            phi_functions(s * dt * linear[row, k], phi)
            for member in range(row, members if rows == 1 else row + 1):
                total = phi[0] * u[member, k]
                factor = dt
                for j in range(HIGHEST_PHI):
                    factor *= s
                    total += factor * phi[j + 1] * derivatives[j, member, k]
                state[member, k] = total


class Interpolant:
    """Interpolant of one step of an explicit scheme: see `DenseOutput`.

    Parameters
    ----------
    x : ndarray
        The state at the beginning of the step.
    terms : list of ndarray
        See `interpolation_terms`.

    Notes
    -----
    For `DormandPrince` a polynomial of degree 7 in time, which takes three more velocities.

    References
    ----------
    Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.6, DOP853.
    """

    def __init__(self, x: np.ndarray, terms: list[np.ndarray]):
        self._x, self._terms = x, terms

    def __call__(self, s: float) -> np.ndarray:
        """The state after the fraction s of the step."""
        return self._x + polynomial(self._terms, s).reshape(self._x.shape)

    def of(self, observable: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], np.ndarray]:
        """A linear function `observable` of the state, as a function of the fraction s of the step.

        It is applied to the coefficients, so that differences of close values keep their digits.
        """
        first, *terms = (
            observable(values.reshape(self._x.shape)) for values in (self._x, *self._terms)
        )
        return lambda s: first + polynomial(terms, s)


def interpolation_terms(
    table: DenseOutput,
    velocity: Velocity,
    x: np.ndarray,
    new: np.ndarray,
    slopes: np.ndarray,
    t: Any,
    dt: Any,
) -> list[np.ndarray]:
    """Coefficients of `polynomial`, a list of (N,), for a step from x to `new`.

    velocity(x, t) is dx/dt, slopes (s, N) are the velocities at the stages, the last one is that at
    the end; the step is from t to t + dt. For R steps at once x is (R, ...), slopes
    (R, s, N), t and dt (R,), and coefficients are (R, N).
    """
    rows = np.arange(len(slopes)) if slopes.ndim == 3 else None
    extra = np.empty((*slopes.shape[:-2], len(table.stages), slopes.shape[-1]))
    all_slopes, shape = np.concatenate([slopes, extra], axis=-2), slopes[..., 0, :].shape
    stages = zip(table.nodes, table.stages, strict=True)
    for i, (node, stage) in enumerate(stages, start=slopes.shape[-2]):
        y = combined(row_of(stage), all_slopes, dt, x, rows)
        all_slopes[..., i, :] = velocity(y, t + node * dt).reshape(shape)
    change, step = (new - x).reshape(shape), dt if rows is None else dt[:, None]
    first, last = step * slopes[..., 0, :], step * slopes[..., -1, :]
    weighted = (combined(row_of(weights), all_slopes, dt, None, rows) for weights in table.weights)
    return [change, first - change, 2 * change - last - first, *weighted]


def polynomial(terms: Sequence[np.ndarray], s: Any) -> np.ndarray:
    """Change of the state since the beginning of the step, at its fraction s; s may be an array."""
    total = np.zeros_like(terms[0])
    for i, term in enumerate(reversed(terms)):
        total += term
        total *= s if i % 2 == 0 else 1 - s
    return total


def combined(
    weights: np.ndarray,
    slopes: np.ndarray,
    dt: Any,
    x: np.ndarray | None = None,
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """Sum x + dt sum_j weights_j slopes_j, of the shape of x; without x the sum alone, (N,).

    Slopes (s, N) of weight 0, and those beyond the weights, are not read. For many steps at once,
    `rows` (R',) are indices into slopes (R, s, N), x is (R', ...) and dt (R',); each result has the
    bits that it has alone.
    """
    shape = slopes.shape[1:] if rows is None else (len(rows), slopes.shape[2])
    result = np.empty(shape if x is None else x.shape)
    start, slopes, rows, steps = rows_of(x, slopes, rows, dt)
    combine(start, weights, slopes, rows, steps, result.reshape(len(rows), -1))
    return result


def rows_of(
    x: np.ndarray | None, slopes: np.ndarray, rows: np.ndarray | None, dt: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Arguments x, slopes, rows and dt of `combine`, for one step or many; x may be None."""
    if rows is None:
        slopes, rows, dt = slopes[None], ONE_ROW, np.array([dt])
    start = np.empty((len(rows), 0)) if x is None else x.reshape(len(rows), -1)
    if not (start.flags.writeable and start.flags.c_contiguous):  # one compiled signature only
        start = start.copy()
    return start, slopes, rows, dt


@njit(cache=True, nogil=True)
def combine(
    x: np.ndarray,
    weights: np.ndarray,
    slopes: np.ndarray,
    rows: np.ndarray,
    dt: np.ndarray,
    result: np.ndarray,
) -> None:
    """Fill `result` (R', N) with the sums of `combined`; `rows_of` returns the other arguments.

    All arrays are contiguous. Sums are taken in blocks; an empty x stands for 0.
    """
    stages, size = slopes.shape[1], result.shape[1]
    for r in range(rows.size):
        start = numbers_at(address_of(x), r * size, 0.0)
        slope = numbers_at(address_of(slopes), rows[r] * stages * size, 0.0)
        total = numbers_at(address_of(result), r * size, 0.0)
        for begin in range(0, size, SUM_BLOCK):
            end = begin + SUM_BLOCK if begin + SUM_BLOCK < size else size
            for i in range(begin, end):
                total[i] = 0.0
            for j in range(weights.size):
                _add_slope(total, weights[j], dt[r], slope, j * size, begin, end)
            if x.size > 0:
                for i in range(begin, end):
                    total[i] += start[i]


@njit(**WITHIN, fastmath={"contract"})
def _add_slope(
    total: Numbers, factor: float, dt: float, slope: Numbers, first: int, begin: int, end: int
) -> None:
    """Add dt factor slope_(first + i) to total_i for i = begin, ..., end - 1."""
    weight = dt * factor
    if not math.isfinite(weight):  # dt is huge, and the slope so small that dt * slope is not
        for i in range(begin, end):
            total[i] += factor * (dt * slope[first + i])
    elif weight != 0.0:
        for i in range(begin, end):
            total[i] += weight * slope[first + i]
