"""Values of the saved densities on one common grid of angles that closes on itself."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..geometry import Circle
from .geometries import expect_densities_on

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["ANGLE_LABELS", "ANGLE_TICKS", "profiles"]

ANGLE_TICKS = np.pi * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
ANGLE_LABELS = (r"$-\pi$", r"$-\pi/2$", "$0$", r"$\pi/2$", r"$\pi$")
SMOOTH_DEGREE = 256  # at least this degree, or a curve shows its corners


def profiles(
    solution: "Solution",
    members: Iterable[tuple[int, ...]],
    *,
    times: Sequence[int] | np.ndarray | None = None,
    most_angles: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Densities at saved times on a grid that overhangs [-pi, pi] by one point on both sides.

    The first point is the last but one minus 2 pi, and the last the second plus 2 pi, so that a
    curve clipped at -pi and pi has no seam.

    Parameters
    ----------
    members : iterable of tuple of int
        Indices into the ensemble.
    times : sequence of int, optional
        Which saved states; by default all.
    most_angles : int, optional
        Average over neighbouring angles until there are at most this many. Averages keep the
        mass of a peak that is narrower than a pixel; leaving points out could lose it.

    Returns
    -------
    theta : ndarray, shape (n,)
        Increasing angles.
    values : ndarray, shape (members, times, n)
        Densities with respect to the uniform probability measure.

    Raises
    ------
    TypeError
        If the states are not densities on the circle.
    """
    expect_densities_on(solution, Circle)
    states = [solution[int(i)] for i in (range(len(solution.t)) if times is None else times)]
    degree = max(SMOOTH_DEGREE, *(state.geometry.degree for state in states))
    frames = []
    for state in states:
        fine = state.resample(degree)
        # Angles in [-pi, pi); the rounding keeps the point pi from landing on either side.
        angles = np.mod(np.round(fine.geometry.angles, 14) + np.pi, 2 * np.pi) - np.pi
        order = np.argsort(angles)
        chosen = np.stack([fine.values[index] for index in members])
        frames.append(_averaged(chosen[:, order], most_angles))
    theta = _averaged(angles[order], most_angles)
    theta = np.concatenate([[theta[-1] - 2 * np.pi], theta, [theta[0] + 2 * np.pi]])
    values = np.stack(frames, axis=1)
    return theta, np.concatenate([values[..., -1:], values, values[..., :1]], axis=-1)


def _averaged(values: np.ndarray, most: int | None) -> np.ndarray:
    """Means of equally many neighbours along the last axis (the last block may be shorter)."""
    count = values.shape[-1]
    if most is None or count <= most:
        return values
    starts = np.arange(0, count, -(-count // most))
    return np.add.reduceat(values, starts, axis=-1) / np.diff(starts, append=count)
