"""The state within a step: interpolants of explicit and of exponential schemes."""

from collections.abc import Callable

import numpy as np

from ..lowlevel.compilation import WITHIN, njit
from .attempt import HIGHEST_PHI, phi_functions
from .schemes import DenseOutput, ParabolicOutput

SUM_BLOCK = 2048  # floats of a sum: they stay in the cache next to the processor
NO_START = np.empty(0)


class ParabolicInterpolant:
    """The state between the ends of one step of an exponential scheme: see `ParabolicOutput`.

    Parameters
    ----------
    table : ParabolicOutput
    linear : ndarray, (1, modes) or (members, modes)
        The diagonal of L.
    u, new : ndarray, (members, modes)
        At the beginning and at the end of the step.
    slopes : ndarray, (members, stages, modes)
        N of the stages, the last of them N(new).
    dt : float
    """

    def __init__(self, table: ParabolicOutput, linear, u, new, slopes, dt: float):
        self._linear, self._u, self._dt = linear, u, dt
        self._derivatives = np.empty((HIGHEST_PHI, *u.shape), dtype=u.dtype)
        first, last = slopes[:, 0], slopes[:, -1]
        middle = sum(weight * slopes[:, stage] for stage, weight in sorted(table.middle.items()))
        self._derivatives[0] = first
        self._derivatives[1] = 4 * middle - 3 * first - last
        self._derivatives[2] = 4 * (first + last - 2 * middle)
        self._gap = new - self._by_parabola(1.0)

    def __call__(self, s: float) -> np.ndarray:
        """The state (members, modes) after the part s of the step."""
        return self._by_parabola(s) + s * s * (3 - 2 * s) * self._gap

    def _by_parabola(self, s: float) -> np.ndarray:
        state = np.empty_like(self._u)
        _by_parabola(self._linear, self._u, self._derivatives, self._dt, float(s), state)
        return state


@njit(cache=True, nogil=True, error_model="numpy")
def _by_parabola(linear, u, derivatives, dt, s, state):
    """e(s) of `ParabolicOutput`, by the derivatives (3, members, modes) of P in s at s = 0."""
    phi, members, rows = np.empty(HIGHEST_PHI + 1, dtype=linear.dtype), u.shape[0], linear.shape[0]
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
    """The state between the ends of one step of an explicit scheme: see `DenseOutput`.

    Parameters
    ----------
    table : DenseOutput
    velocity : callable
        (x, t) -> dx/dt.
    x, new : ndarray
        At the beginning and at the end of the step.
    slopes : ndarray, (stages, x.size)
        The velocities of the stages, and that at the end.
    t, dt : float

    Notes
    -----
    For `DormandPrince` a polynomial of degree 7 in time, by three more velocities.

    References
    ----------
    Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.6, DOP853.
    """

    def __init__(self, table: DenseOutput, velocity: Callable, x, new, slopes, t: float, dt: float):
        self._x = x
        known = np.concatenate([slopes, np.empty((len(table.stages), x.size))])
        for i, (node, stage) in enumerate(
            zip(table.nodes, table.stages, strict=True), start=len(slopes)
        ):
            place = combined(row_of(stage), known, dt, x)
            known[i] = velocity(place, t + node * dt).ravel()
        change = (new - x).ravel()
        first, last = dt * slopes[0], dt * slopes[-1]
        self._terms = [change, first - change, 2 * change - last - first]
        self._terms += [combined(row_of(weights), known, dt) for weights in table.weights]

    def __call__(self, s: float) -> np.ndarray:
        """The state after the part s of the step."""
        return self._x + polynomial(self._terms, s).reshape(self._x.shape)

    def of(self, picked: Callable) -> Callable:
        """A linear function of the state, `picked`, as a function of the part s of the step.

        Differences of values that are close keep their digits.
        """
        first, *terms = (
            picked(values.reshape(self._x.shape)) for values in (self._x, *self._terms)
        )
        return lambda s: first + polynomial(terms, s)


def polynomial(terms, s) -> np.ndarray:
    """The change since the beginning, at the part s of the step, or at parts that broadcast."""
    total = np.zeros_like(terms[0])
    for i, term in enumerate(reversed(terms)):
        total += term
        total *= s if i % 2 == 0 else 1 - s
    return total


def row_of(weights: dict[int, float]) -> np.ndarray:
    """Weights of the stages up to the last that has one."""
    return np.array([weights.get(stage, 0.0) for stage in range(max(weights) + 1)])


def combined(
    weights: np.ndarray, slopes: np.ndarray, dt: float, x: np.ndarray | None = None
) -> np.ndarray:
    """x + dt sum_j weights_j slopes_j, of the shape of x; without x the sum alone, (N,).

    Slopes (s, N) of weight 0 are not read, nor those beyond the weights.
    """
    result = np.empty(slopes.shape[1] if x is None else x.shape)
    start = NO_START if x is None else np.require(x.ravel(), requirements="W")  # one type only
    _combine(start, weights, slopes, dt, result.ravel())
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def _combine(x, weights, slopes, dt, result):
    _add_up(x, weights, slopes, dt, result)


@njit(**WITHIN, error_model="numpy", fastmath={"contract"})
def _add_up(x, weights, slopes, dt, result):
    for begin in range(0, result.size, SUM_BLOCK):
        part = result[begin : begin + SUM_BLOCK]
        for i in range(part.size):
            part[i] = 0.0
        for j in range(weights.size):
            weight, slope = dt * weights[j], slopes[j, begin : begin + SUM_BLOCK]
            if not np.isfinite(weight):  # where dt is, and the slope is as small
                for i in range(part.size):
                    part[i] += weights[j] * (dt * slope[i])
            elif weight != 0.0:
                for i in range(part.size):
                    part[i] += weight * slope[i]
        if x.size > 0:
            for i in range(part.size):
                part[i] += x[begin + i]


def combined_of_members(
    weights: np.ndarray,
    slopes: np.ndarray,
    members: np.ndarray,
    dt: np.ndarray,
    x: np.ndarray | None = None,
) -> np.ndarray:
    """`combined` of some systems, with slopes (R, s, N) of all, and x (R', ...), dt (R',) of these.

    The same bits as `combined` gives for each of them.
    """
    shape = (len(members), slopes.shape[2])
    start = np.empty((len(members), 0)) if x is None else np.ascontiguousarray(x).reshape(shape)
    result = np.empty(shape)
    _combine_each(np.require(start, requirements="W"), weights, slopes, members, dt, result)
    return result if x is None else result.reshape(x.shape)


@njit(cache=True, nogil=True, error_model="numpy")
def _combine_each(x, weights, slopes, members, dt, result):
    for r in range(members.size):
        _add_up(x[r], weights, slopes[members[r]], dt[r], result[r])
