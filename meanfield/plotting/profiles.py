"""Values of the saved densities on one common grid of angles, and the axis it needs.

On the circle the grid closes on itself; for axisymmetric densities it runs over polar angles.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..spaces import Circle, Zonal
from .spaces import expect_densities_on

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["AngleAxis", "angles_of", "axis_on", "profiles"]


class AngleAxis(NamedTuple):
    """Limits, ticks and name of the axis of angles."""

    limits: tuple[float, float]
    ticks: np.ndarray
    labels: tuple[str, ...]
    name: str


AROUND = AngleAxis(
    (-np.pi, np.pi),
    np.pi * np.array([-1.0, -0.5, 0.0, 0.5, 1.0]),
    (r"$-\pi$", r"$-\pi/2$", "$0$", r"$\pi/2$", r"$\pi$"),
    r"angle $\theta$",
)
FROM_POLE_TO_POLE = AngleAxis(
    (0.0, np.pi),
    np.pi * np.array([0.0, 0.25, 0.5, 0.75, 1.0]),
    ("$0$", r"$\pi/4$", r"$\pi/2$", r"$3\pi/4$", r"$\pi$"),
    r"polar angle $\theta$",
)
POLAR_ANGLES = 1025
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
        If the states are neither densities on the circle nor axisymmetric.
    """
    expect_densities_on(solution, Circle, Zonal)
    states = [solution[int(i)] for i in (range(len(solution.t)) if times is None else times)]
    if isinstance(solution.final.geometry, Zonal):
        return _polar_profiles(states, members)
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


def angles_of(solution: "Solution") -> AngleAxis:
    """The axis for `profiles`. In high dimension only angles where there is mass are shown."""
    geometry = solution.final.geometry
    axis = axis_on(geometry)
    if isinstance(geometry, Circle):
        return axis
    low = max(0.0, np.arccos(geometry.x[geometry.judged].max()) - 0.02)
    if low < 0.1:
        return axis
    middle = np.pi / 2
    ticks = np.linspace(low, np.pi - low, 5)
    return AngleAxis(
        (low, np.pi - low),
        ticks,
        tuple(f"${tick / middle / 2:.2f}\\pi$" for tick in ticks),
        axis.name,
    )


def axis_on(geometry: Circle | Zonal) -> AngleAxis:
    """The axis of all angles of a space."""
    return AROUND if isinstance(geometry, Circle) else FROM_POLE_TO_POLE


def _polar_profiles(states, members) -> tuple[np.ndarray, np.ndarray]:
    theta = np.linspace(0, np.pi, POLAR_ANGLES)
    points = np.zeros((theta.size, states[0].geometry.dimension))
    points[:, 0], points[:, -1] = np.sin(theta), np.cos(theta)
    values = [np.stack([state.at(points)[index] for index in members]) for state in states]
    return theta, np.stack(values, axis=1)


def _averaged(values: np.ndarray, most: int | None) -> np.ndarray:
    """Means of equally many neighbours along the last axis (the last block may be shorter)."""
    count = values.shape[-1]
    if most is None or count <= most:
        return values
    starts = np.arange(0, count, -(-count // most))
    return np.add.reduceat(values, starts, axis=-1) / np.diff(starts, append=count)
