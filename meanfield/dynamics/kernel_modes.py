"""All modes of a kernel density estimate of tokens on the circle or the line.

For a token at the gap g from x, define on the circle and on the line

    q = m exp(-2 beta sin^2(g/2)), s = sin g, c = cos g;    q = m exp(-beta g^2/2), s = g, c = 1

Their derivatives by x are q' = beta q s and s' = -c. So f = sum q, F = f'/beta = sum q s,
F' = sum q (beta s^2 - c) and |F''| <= sum q |s| (beta^2 s^2 + 3 beta + |c'/s|). If x moves by h,
|s| grows by at most h, and q by at most the factor exp(beta h (|s| + h/2)).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core.annotations import Values
from ..core.checks import positive, require
from ..lowlevel.compilation import njit
from ..states import Tokens

FIRST_CELL = 0.25  # largest width of the first cells, in units of the bandwidth
COARSEST_CELL = np.pi / 8
ROUNDING_MARGIN = 1 + 1e-9  # factor that allows for rounding
TRIED_DIRECTIONS, GOLDEN = 16, 0.6180339887498949
NEGLIGIBLE_TERM = 1e-20  # relative to the sum so far
ROUNDING_UNIT = float(np.finfo(float).eps)
EXPONENT_ERROR = 50.0  # the error of an exponent, in units of rounding
ROOT_STEPS = 200
FLATTEST_CELL = 1e-3  # width, in bandwidths, to which cells with F = F' = 0 to rounding are halved
NO_ZERO, ONE_ZERO, HALVE, ZEROS_UNKNOWN = 0, 1, 2, 3


class KernelEstimate(NamedTuple):
    """A kernel density estimate on the line or the circle, for compiled code.

    `x` are points or angles in increasing order, on the circle with copies a turn before and after.
    """

    x: np.ndarray
    masses: np.ndarray
    beta: float
    circle: bool


@dataclass(frozen=True)
class KernelModes:
    """Local maxima of a kernel density estimate; `len` counts them.

    Attributes
    ----------
    places : ndarray, (k,)
        The modes in increasing order: angles in (-pi, pi] on the circle, points on the line.
    heights : ndarray, (k,)
        The estimate at the modes, with a kernel of height 1: at most 1.
    undecided : int
        The number of regions in which rounding errors hide whether there is a mode. If it is 0, the
        modes are proved to be all. In an undecided region a mode counts if F changes its sign.
    """

    places: np.ndarray
    heights: np.ndarray
    undecided: int

    def __len__(self) -> int:
        return len(self.places)


def kernel_modes(tokens: Tokens, beta: float) -> KernelModes:
    """Modes of the kernel density estimate of tokens whose bandwidth is beta^(-1/2).

        circle   f(theta) = sum_i m_i exp(beta (cos(theta - theta_i) - 1))
        line     f(x) = sum_i m_i exp(-beta (x - x_i)^2 / 2)

    Softmax attention moves tokens uphill on this estimate, v = (1/beta) grad log f.

    Parameters
    ----------
    tokens : Tokens
        A single set on the circle, or in R^1.
    beta : float
        > 0.

    Raises
    ------
    TypeError, ValueError
        For other states, dimensions or replicas; if beta is not a finite number > 0, or so large
        that the spacing of floats at the tokens exceeds a thousandth of the bandwidth: beyond 3e23
        on the circle.

    Notes
    -----
    At a mode f'' <= 0, so that a token is within the bandwidth beta^(-1/2). These neighbourhoods
    are covered by cells of at most a quarter of the bandwidth. In the middle of each cell
    f'/beta = sum_i q_i s_i and its derivative are evaluated, with a bound of the second derivative
    on the whole cell. Taylor's formula then shows that f' has no zero in the cell; or that f'' has
    none, so that f' has at most one zero, which its signs at both ends decide. Otherwise the cell
    is halved.

    Sums omit tokens with weights below 1e-20 of the others, and bounds include rounding errors. The
    cost is n times the number of cells within ten bandwidths: 1e5 tokens take a second.
    """
    if not isinstance(tokens, Tokens):
        raise TypeError(f"kernel_modes takes Tokens; got {type(tokens).__name__}.")
    dimension = 2 if tokens.on_sphere else 1
    expected = "a single set of tokens on the circle (d = 2) or the line (R^1)"
    fits = not tokens.shape and tokens.dimension == dimension
    require("tokens", tokens, expected, fits, advice="Replicas: one by one.")
    beta = positive("beta", beta)
    has_mass, circle = tokens.masses > 0, tokens.on_sphere
    x, masses, beta = tokens.x[has_mass], tokens.masses[has_mass], float(beta)
    x = np.arctan2(x[:, 1], x[:, 0]) if circle else x[:, 0]
    _check_resolution(4 * np.pi if circle else float(np.abs(x).max()), beta)
    order, cut = np.argsort(x), 0.0
    estimate = KernelEstimate(x[order], masses[order], beta, circle)
    if circle:
        cells, estimate, cut = _on_circle(estimate)
    else:
        cells = _cells(estimate.x, 1 / np.sqrt(beta), FIRST_CELL / np.sqrt(beta))
    regions, undecided = _regions(cells, estimate)
    modes = np.array([zero_within(low, high, estimate) for low, high in regions])
    modes = modes[~np.isnan(modes)]
    heights = np.array([sums_at(point, 0.0, estimate)[0] for point in modes])
    places = np.pi - (np.pi - cut - modes) % (2 * np.pi) if circle else modes  # in (-pi, pi]
    order = np.argsort(places)
    return KernelModes(places[order], heights[order], undecided)


def _on_circle(estimate: KernelEstimate) -> tuple[np.ndarray, KernelEstimate, float]:
    """Cells, the estimate on the circle cut open, and the angle at which the circle is cut.

    The cut is in the widest gap between tokens; if all angles are within reach of tokens, at one
    of TRIED_DIRECTIONS angles with the largest |F|.
    """
    theta, beta = estimate.x, estimate.beta
    reach = np.arcsin(min(1.0, 1 / np.sqrt(beta)))
    width = min(FIRST_CELL / np.sqrt(beta), COARSEST_CELL)
    spacings = np.diff(theta, append=theta[0] + 2 * np.pi)
    widest = spacings.argmax()
    if spacings[widest] > 2 * ROUNDING_MARGIN * reach:
        cut = theta[widest] + spacings[widest] / 2
        unrolled = _unrolled(estimate, cut)
        return _cells(unrolled.x[len(theta) : 2 * len(theta)], reach, width), unrolled, cut
    unrolled = _unrolled(estimate, theta[0])
    trial_angles = 2 * np.pi * (np.arange(TRIED_DIRECTIONS) * GOLDEN % 1)
    cut = theta[0] + max(trial_angles, key=lambda point: abs(sums_at(point, 0.0, unrolled)[1]))
    cells = _divided(np.zeros(1), np.full(1, 2 * np.pi), width)
    return cells, _unrolled(estimate, cut), cut


def _check_resolution(largest: float, beta: float) -> None:
    """Raise ValueError if floats of the size `largest` do not resolve the bandwidth."""
    spacing = np.spacing(largest)
    if FLATTEST_CELL / np.sqrt(beta) < spacing:
        raise ValueError(
            f"kernel_modes expects a bandwidth beta^(-1/2) of {spacing / FLATTEST_CELL:.2g} and "
            f"more, a thousand times the distance of floating-point numbers at {largest:.2g}; got "
            f"{1 / np.sqrt(beta):.2g} for beta = {beta:g}. Rounding decides what is a mode there: "
            "take a smaller beta, or shift tokens of the line towards 0."
        )


def _unrolled(estimate: KernelEstimate, cut: float) -> KernelEstimate:
    """The estimate by angles from `cut` on, with copies a turn before and after."""
    x = (estimate.x - cut) % (2 * np.pi)
    order = np.argsort(x)
    x = np.concatenate([x[order] + turn for turn in (-2 * np.pi, 0, 2 * np.pi)])
    return estimate._replace(x=x, masses=np.tile(estimate.masses[order], 3))


def _cells(x: np.ndarray, reach: float, width: float) -> np.ndarray:
    """Ends (cells, 2) of cells of at most `width` that cover all points near tokens."""
    reach *= ROUNDING_MARGIN
    gap_indices = np.flatnonzero(np.diff(x) > 2 * reach)
    begins = np.concatenate([x[:1], x[gap_indices + 1]]) - reach
    ends = np.concatenate([x[gap_indices], x[-1:]]) + reach
    return _divided(begins, ends, width)


def _divided(begins: np.ndarray, ends: np.ndarray, width: float) -> np.ndarray:
    """Ends (cells, 2) of equal cells of at most `width` into which intervals are divided."""
    counts = np.ceil((ends - begins) / width).astype(np.int64)
    step = np.repeat((ends - begins) / counts, counts)
    index = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    left = np.repeat(begins, counts)
    low, high = left + index * step, left + (index + 1) * step
    last = np.cumsum(counts) - 1
    high[:-1], high[last] = low[1:], ends  # neighbours share their ends to the last bit
    return np.stack([low, high], axis=1)


def _regions(cells: np.ndarray, estimate: KernelEstimate) -> tuple[np.ndarray, int]:
    """Cells with one zero and undecided regions, (k, 2), and the number of the latter.

    Adjacent undecided cells form one region.
    """
    single_zero_cells, undecided = [cells[:0]], [cells[:0]]
    while len(cells):
        verdicts = examined(cells, estimate)
        single_zero_cells.append(cells[verdicts == ONE_ZERO])
        undecided.append(cells[verdicts == ZEROS_UNKNOWN])
        low, high = cells[verdicts == HALVE].T
        middle = 0.5 * (low + high)
        cells = np.concatenate([np.stack([low, middle], axis=1), np.stack([middle, high], axis=1)])
    cells_left = np.concatenate(undecided)
    cells_left = cells_left[np.argsort(cells_left[:, 0])]
    gap_indices = np.flatnonzero(cells_left[1:, 0] != cells_left[:-1, 1])
    begins = np.concatenate([cells_left[:1, 0], cells_left[gap_indices + 1, 0]])
    ends = np.concatenate([cells_left[gap_indices, 1], cells_left[-1:, 1]])
    return np.concatenate([*single_zero_cells, np.stack([begins, ends], axis=1)]), len(begins)


# Compiled: zeros of the derivative at which it decreases ------------------------------------


@njit(cache=True, nogil=True)
def examined(cells: np.ndarray, estimate: KernelEstimate) -> np.ndarray:
    """Verdicts on zeros of F in cells (k, 2), by Taylor's formula at their middles."""
    verdicts = np.empty(len(cells), dtype=np.int64)
    for k in range(len(cells)):
        verdicts[k] = _examined(cells[k, 0], cells[k, 1], estimate)
    return verdicts


@njit(cache=True, nogil=True)
def _examined(low: float, high: float, estimate: KernelEstimate) -> int:
    """The verdict on zeros of F in one cell: NO_ZERO, ONE_ZERO, HALVE or ZEROS_UNKNOWN."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    _, F, slope, bend, error, slope_error = sums_at(middle, half, estimate)
    change = half * (abs(slope) + 0.5 * half * bend)
    if abs(F) > change + 2 * error:
        return NO_ZERO
    if abs(slope) > half * bend + 2 * slope_error:
        return ONE_ZERO
    is_narrow = half * np.sqrt(estimate.beta) < FLATTEST_CELL
    flat = abs(F) <= error and abs(slope) <= slope_error and is_narrow
    if flat or change <= error or not low < middle < high:
        return ZEROS_UNKNOWN
    return HALVE


@njit(cache=True, nogil=True)
def zero_within(low: float, high: float, estimate: KernelEstimate) -> float:
    """The zero of F in [low, high], by Newton's method and bisection; nan unless F decreases."""
    if not sums_at(low, 0.0, estimate)[1] >= 0:
        return np.nan
    if not sums_at(high, 0.0, estimate)[1] < 0:
        return np.nan
    point = 0.5 * (low + high)
    for _ in range(ROOT_STEPS):
        _, F, slope, _, error, _ = sums_at(point, 0.0, estimate)
        if F >= 0:
            low = point
        else:
            high = point
        step = -F / slope if slope < 0 else np.inf
        next_point = point + step if low < point + step < high else 0.5 * (low + high)
        if abs(F) <= error or next_point in (low, high) or next_point == point:
            break
        point = next_point
    return point


@njit(cache=True, nogil=True)
def sums_at(point: float, half: float, estimate: KernelEstimate) -> tuple[float, ...]:
    """The sums f, F, F' at `point`, bounds of |F''| within `half`, and of errors of F and F'."""
    x = estimate.x
    first: Values = 0
    last: Values = len(x)
    if estimate.circle:
        last = np.searchsorted(x, point + np.pi)
        first = last - len(x) // 3
    start: Values = min(max(np.searchsorted(x, point), first), last)
    sums = np.zeros(6)  # f, F, F', bound, sum of |terms| of F and of F'
    steps, sides = (1, -1), (start, start - 1)
    stops, count = (last, first - 1), 0
    nearer = int(start == last or (start > first and point - x[start - 1] < x[start] - point))
    for side in (nearer, 1 - nearer):  # nearest first, so that distant tokens become negligible
        count += _sweep(sides[side], stops[side], steps[side], sums, point, half, estimate)
    rounding = ROUNDING_UNIT * (count + EXPONENT_ERROR)
    return sums[0], sums[1], sums[2], sums[3], rounding * sums[4], rounding * sums[5]


@njit(cache=True, nogil=True)
def _sweep(
    start: int,
    stop: int,
    step: int,
    sums: np.ndarray,
    point: float,
    half: float,
    estimate: KernelEstimate,
) -> int:
    """Add tokens from `start` outwards until they are negligible; returns their number."""
    x, masses, beta, circle = estimate
    count, circle_term = 0, 1 / beta if circle else 0.0
    for i in range(start, stop, step):
        gap = x[i] - point
        s, c = (np.sin(gap), np.cos(gap)) if circle else (gap, 1.0)
        exponent = 2 * np.sin(0.5 * gap) ** 2 if circle else 0.5 * gap * gap
        weight = np.exp(-beta * exponent)
        if weight < NEGLIGIBLE_TERM * sums[0] and abs(s) > half:
            break
        q, size = masses[i] * weight, abs(s) + half
        square = beta * s * s
        sums[0] += q
        sums[1] += q * s
        sums[2] += q * (square - c)
        bounded_weight = masses[i] * np.exp(-beta * (exponent - half * (abs(s) + 0.5 * half)))
        sums[3] += bounded_weight * size * beta * (beta * size * size + 3 + circle_term)
        sums[4] += q * abs(s)
        sums[5] += q * (square + 1)
        count += 1
    return count
