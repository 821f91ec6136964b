"""Which saved states to show."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import norm  # whose squares do not overflow

from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Gaussian, Gram
from . import resolution

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["pick_times", "spread", "story"]

COARSE_DEGREE = 16


def pick_times(
    solution: "Solution",
    members: Sequence[tuple[int, ...]],
    times: Sequence[float] | None,
    count: int,
) -> np.ndarray:
    """Indices of the saved states to show, increasing: the nearest to `times`, or a story.

    The last state of a blow-up is never among them.

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
    shown = np.asarray(resolution.before_blow_up(solution).t)
    return np.unique(np.abs(shown[:, None] - wanted).argmin(axis=0))


def story(solution: "Solution", members: Sequence[tuple[int, ...]], count: int) -> np.ndarray:
    """Indices of at most `count` saved states, evenly spread along the path of the measure.

    Distance along the path is measured in the harmonics of degree 16 at most, or by how far the
    nodes of characteristics or the tokens move, or inner products change, in the mean square: fast
    and slow phases are shown alike. A normal law is seen in perspective, where infinity is near.
    The first and the last state are always among them, but for the last of a blow-up.
    """
    return spread(list(resolution.before_blow_up(solution)), members, count)


def spread(states: Sequence[Any], members: Sequence[tuple[int, ...]], count: int) -> np.ndarray:
    """Indices of at most `count` of these states, as for `story`."""
    if len(states) == 1:
        return np.array([0])
    unit = norm(_law(states[0])) if isinstance(states[0], Gaussian) else 1.0
    places = (_place(state, members, unit) for state in states)
    steps = np.array([np.linalg.norm(after - before) for before, after in pairwise(places)])
    # A little of the plain index keeps the path increasing where the measure rests.
    path = np.concatenate([[0.0], np.cumsum(steps + 1e-3 * steps.mean() + 1e-300)])
    wanted = np.linspace(0.0, path[-1], min(count, len(path)))
    return np.unique(np.abs(path[:, None] - wanted).argmin(axis=0))


def _place(state: Any, members: Sequence[tuple[int, ...]], unit: float) -> np.ndarray:
    """A state as a vector: the distance between two of them is how far apart they are.

    That of a normal law is less than 1, and at 1/2 where it is of the size `unit`.
    """
    if isinstance(state, Density):
        head = state.resample(COARSE_DEGREE).coefficients
        return np.concatenate([head[index] for index in members])
    if isinstance(state, Characteristics):
        return (np.sqrt(state.masses)[:, None] * state.points).ravel()
    if isinstance(state, Gaussian):
        law = _law(state)
        return law / ((norm(law) + unit) or 1.0)
    root = np.sqrt(state.masses)[..., None]
    if isinstance(state, Gram):
        places = root * state.G * np.swapaxes(root, -1, -2)
    else:
        places = root * state.x
    return np.concatenate([places[index].ravel() for index in members])


def _law(state: Gaussian) -> np.ndarray:
    """The symmetric root and the mean, whose norm is (int |x|^2 dmu)^(1/2)."""
    u, s, _ = np.linalg.svd(state.root)
    return np.column_stack([(u * s) @ u.T, state.mean]).ravel()
