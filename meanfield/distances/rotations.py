"""Transport around the circle from the orbit of a measure: the rotation of least distance."""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from ..spaces.density import Density
from .curves import around, atoms_on_circle, curves_on_circle
from .quantiles import of_atoms

__all__ = ["around_circle_up_to_rotation", "best_rotations"]

FIRST, MOST = 16, 1000  # rotations that are tried
CLOSE = {True: 1e-6, False: 1e-3}  # relative gap to the bound, p = 2 and others
MARGIN = 0.05  # of an interval, at least, on either side of a new rotation

Measure = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def around_circle_up_to_rotation(a: Any, b: Any, p: float, pairs: np.ndarray):
    """The least W_p(R a, b) over rotations R, and its error, (pairs,) each."""
    if isinstance(a, Density) and not isinstance(b, Density):  # atoms are turned with less work
        a, b, pairs = b, a, pairs[:, ::-1]
    Y = curves_on_circle(b)
    if _is_uniform(b) or _is_uniform(a):  # no rotation changes it
        return around(curves_on_circle(a), Y, p, pairs)

    def measure(angles: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = _turned(a, pairs[members, 0], angles)
        rows = np.stack([np.arange(len(members)), pairs[members, 1]], axis=1)
        return around(X, Y, p, rows)

    return best_rotations(measure, len(pairs), p)


def _is_uniform(state: Any) -> bool:
    return isinstance(state, Density) and not np.any(state.coefficients[..., 1:])


def best_rotations(measure: Measure, members: int, p: float):
    """Least values of measure(angles, members) -> (W_p, error), and errors, (members,) each.

    Branch and bound: an interval is divided where its least possible value is the least of all.
    W_p changes by the angle at most; and W_2^2 - angle^2 is concave, as the least of

        int (X(s) + angle - Y(s - shift))^2 ds - angle^2,

    which are linear in the angle: on an interval W_2^2 is above its chord less a parabola.
    """
    rows, close = np.arange(members), CLOSE[p == 2]
    angles = np.tile(np.linspace(-pi, pi, FIRST + 1), (members, 1))
    columns = [measure(angles[:, k], rows) for k in range(FIRST)]
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
        found[open_], error = measure(new[open_], open_)
        errors[open_] = np.maximum(errors[open_], error)
        angles, values = np.column_stack([angles, new]), np.column_stack([values, found])
        order = angles.argsort(axis=1, kind="stable")
        angles, values = (np.take_along_axis(x, order, axis=1) for x in (angles, values))


def _lowest(angles: np.ndarray, values: np.ndarray, square: bool):
    """In each interval where the least value may be, and a bound from below for it."""
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


def _turned(state: Any, members: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Curves (members, ...) of the members of a state, each turned by an angle."""
    atoms = atoms_on_circle(state)
    if atoms is not None:
        places, masses = atoms
        return of_atoms((places[members] + angles[:, None]) % (2 * pi), masses[members])
    space = state.geometry
    series = state.coefficients.reshape(-1, state.coefficients.shape[-1])[members]
    return curves_on_circle(Density(space, series * np.exp(-1j * space.degrees * angles[:, None])))
