"""Distances up to a rotation of the circle: the least over all rotations of one measure.

For Wasserstein distances branch and bound finds it, for sums over harmonics the maximum of a
Fourier series.
"""

from collections.abc import Callable
from math import pi

import numpy as np

from .measures import Measure
from .optimal_shift import transport_around_circle

__all__ = ["aligning_angles", "best_rotations", "transport_up_to_rotation"]

FIRST, MOST = 16, 1000  # rotations that are tried
CLOSE = {True: 1e-6, False: 1e-3}  # relative gap to the bound, p = 2 and others
MARGIN = 0.05  # least distance of a new rotation from the ends of its interval, relative
FINE = 64  # grid points in the shortest wave of a series
TRIED = 4  # maxima that are refined
NEWTON = 5
ROUNDING = 1e-14  # of a product of series, relative

Evaluation = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def transport_up_to_rotation(a: Measure, b: Measure, p: float, pairs: np.ndarray):
    """The least W_p(R a, b) over rotations R, and its error, (pairs,) each."""
    if a.smooth and not b.smooth:  # points are turned with less work
        a, b, pairs = b, a, pairs[:, ::-1]
    Y = b.curves_on_circle()
    if a.uniform or b.uniform:  # no rotation changes it
        return transport_around_circle(a.curves_on_circle(), Y, p, pairs)

    def evaluate(angles: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = a.turned_curves(pairs[members, 0], angles)
        rows = np.stack([np.arange(len(members)), pairs[members, 1]], axis=1)
        return transport_around_circle(X, Y, p, rows)

    return best_rotations(evaluate, len(pairs), p)


def best_rotations(evaluate: Evaluation, members: int, p: float):
    """The least values of evaluate(angles, members) -> (W_p, error), and errors, (members,) each.

    Branch and bound: the interval with the smallest lower bound is divided. There are two bounds.
    W_p changes by the angle at most. And W_2^2 - angle^2 is concave, as the infimum over shifts of

        int (X(s) + angle - Y(s - shift))^2 ds - angle^2,

    which is linear in the angle: on an interval W_2^2 is above its chord less a parabola.
    """
    rows, close = np.arange(members), CLOSE[p == 2]
    angles = np.tile(np.linspace(-pi, pi, FIRST + 1), (members, 1))
    columns = [evaluate(angles[:, k], rows) for k in range(FIRST)]
    values = np.stack([value for value, _ in columns] + [columns[0][0]], axis=1)
    errors = np.max([error for _, error in columns], axis=0)
    while True:
        where, below = _lowest(angles, values, p == 2)
        worst = below.argmin(axis=1)
        least = values.min(axis=1)
        gaps = np.maximum(least - below[rows, worst], 0.0)
        (open_,) = np.nonzero(gaps > close * least + errors)
        if not open_.size or angles.shape[1] > MOST:
            return least, gaps + errors
        new, found = angles[:, 0].copy(), values[:, 0].copy()  # a copy where nothing is asked
        new[open_] = where[open_, worst[open_]]
        found[open_], error = evaluate(new[open_], open_)
        errors[open_] = np.maximum(errors[open_], error)
        angles, values = np.column_stack([angles, new]), np.column_stack([values, found])
        order = angles.argsort(axis=1, kind="stable")
        angles, values = (np.take_along_axis(x, order, axis=1) for x in (angles, values))


def _lowest(angles: np.ndarray, values: np.ndarray, square: bool):
    """For each interval where its least value may be, and a lower bound for that value."""
    width = np.diff(angles, axis=1)
    left, right = values[:, :-1], values[:, 1:]
    below = np.where(width > 0, (left + right - width) / 2, np.minimum(left, right))
    part = (left - right + width) / 2
    if square:
        rise = right**2 - left**2
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(width > 0, np.clip((width - rise / width) / 2, 0, width), 0.0)
            chord = left**2 + np.where(width > 0, rise * part / width, 0.0)
        below = np.maximum(below, np.maximum(chord - part * (width - part), 0.0) ** 0.5)
    return angles[:, :-1] + np.clip(part, MARGIN * width, (1 - MARGIN) * width), below


def aligning_angles(series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The angle at which f = Re sum_k g_k e^{-ik angle} is largest, and an error bound of that f.

    g is (members, K + 1), the results are (members,).

    On a grid of spacing h a maximum is lower than the true one by (K h)^2/8 sum |g_k| at most, as
    |f''| <= K^2 sum |g_k|. The 4 largest local maxima are refined by Newton steps. The fifth, plus
    that bound, is an upper bound of all others.
    """
    series, period = _over_a_period(series)
    degree = series.shape[1] - 1
    if degree == 0:
        return np.zeros(len(series)), np.zeros(len(series))
    points = FINE * degree
    values = np.fft.fft(series, points, axis=1).real
    peaks = (values >= np.roll(values, 1, axis=1)) & (values >= np.roll(values, -1, axis=1))
    ranked = np.where(peaks, values, -np.inf)
    best = np.argpartition(-ranked, TRIED, axis=1)[:, : TRIED + 1]
    best = np.take_along_axis(best, np.argsort(-np.take_along_axis(ranked, best, 1), axis=1), 1)
    heights = np.take_along_axis(ranked, best, axis=1)
    angles = _refined(series, 2 * np.pi / points * best[:, :TRIED])
    refined = _value(series, angles)
    rows, top = np.arange(len(series)), refined.argmax(axis=1)
    slack = (2 * np.pi / FINE) ** 2 / 8 * np.abs(series).sum(axis=1)
    return angles[rows, top] / period, np.maximum(
        heights[:, TRIED] + slack - refined[rows, top], 0.0
    )


def _over_a_period(series: np.ndarray) -> tuple[np.ndarray, int]:
    """The degrees that are multiples of a common divisor, and the divisor: f repeats as often."""
    sizes = np.abs(series)
    present = np.flatnonzero(np.any(sizes[:, 1:] > ROUNDING * sizes.max(), axis=0)) + 1
    period = int(np.gcd.reduce(present)) if present.size else 0
    return (series[:, ::period], period) if period else (series[:, :1], 1)


def _value(series: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """f at angles (members, tried)."""
    k = np.arange(series.shape[1])
    return (series[:, None] * np.exp(-1j * k * angles[..., None])).sum(axis=2).real


def _refined(series: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """The angles after Newton steps for f' = 0."""
    k = np.arange(series.shape[1])
    for _ in range(NEWTON):
        waves = series[:, None] * np.exp(-1j * k * angles[..., None])
        first, second = (waves * -1j * k).sum(axis=2).real, -(waves * k**2).sum(axis=2).real
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(second < 0, -first / second, 0.0)
        angles = angles + np.clip(step, -np.pi / k[-1] / FINE, np.pi / k[-1] / FINE)
    return angles
