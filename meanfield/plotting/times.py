"""Which saved states to show."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["pick_times", "story"]

COARSE_DEGREE = 16


def pick_times(
    solution: "Solution",
    members: Sequence[tuple[int, ...]],
    times: Sequence[float] | None,
    count: int,
) -> np.ndarray:
    """Indices of the saved states to show, increasing: the nearest to `times`, or a story.

    Raises
    ------
    ValueError
        If a time lies outside the solution, or `count` is not positive.
    """
    if times is None:
        if count < 1:
            raise ValueError(f"count must be at least 1; got {count}.")
        return story(solution, members, count)
    wanted = np.atleast_1d(np.asarray(times, dtype=float))
    begin, end = solution.t[0], solution.t[-1]
    slack = 1e-9 * max(abs(begin), abs(end))
    if not wanted.size or not ((wanted >= begin - slack) & (wanted <= end + slack)).all():
        raise ValueError(
            f"times must lie between {begin:g} and {end:g}, where this solution was saved; "
            f"got {times!r}."
        )
    return np.unique(np.abs(np.asarray(solution.t)[:, None] - wanted).argmin(axis=0))


def story(solution: "Solution", members: Sequence[tuple[int, ...]], count: int) -> np.ndarray:
    """Indices of at most `count` saved states, evenly spread along the path of the density.

    Distance along the path is measured in the harmonics of degree 16 at most, so that fast and
    slow phases are shown alike. The first and the last state are always among them.
    """
    rows = []
    for state in solution:
        head = state.resample(COARSE_DEGREE).coefficients
        rows.append(np.concatenate([head[index] for index in members]))
    if len(rows) == 1:
        return np.array([0])
    steps = np.linalg.norm(np.diff(np.array(rows), axis=0), axis=1)
    # A little of the plain index keeps the path increasing where the density rests.
    path = np.concatenate([[0.0], np.cumsum(steps + 1e-3 * steps.mean() + 1e-300)])
    wanted = np.linspace(0.0, path[-1], min(count, len(path)))
    return np.unique(np.abs(path[:, None] - wanted).argmin(axis=0))
