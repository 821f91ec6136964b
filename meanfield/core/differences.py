"""Numerical derivatives of functions, by central differences of order 10."""

from collections.abc import Callable

import numpy as np

from .errors import MeanfieldError

AHEAD = np.array([5 / 6, -5 / 21, 5 / 84, -5 / 504, 1 / 1260])
NODES, WEIGHTS = np.delete(np.arange(-5, 6), 5), np.array([*-AHEAD[::-1], *AHEAD])
REACHES = (0.1, 0.05, 0.02, 0.005, 0.001, 2e-4)
AGREEMENT, ROUNDING = 1e-8, 1e-12


def derivative_at_zero(
    f: Callable[[float], np.ndarray], who: str, axis: int | tuple[int, ...] | None = None
) -> np.ndarray:
    """The derivative df/dh at h = 0 of an array-valued function of a number.

    Central differences of order 10 are computed with the steps 0.1, 0.05, ..., 2e-4, until two
    successive ones agree, in each entry separately. The accuracy is about 1e-12 where f is smooth
    at the scale 1; a kink affects only the entries next to it.

    Parameters
    ----------
    f : callable
        h -> ndarray, for |h| <= 1/2.
    who : str
        Name of f, for the message.
    axis : int or tuple of int, optional
        Axes whose entries all take their derivatives from the same step.

    Raises
    ------
    MeanfieldError
        If in some entry no two steps agree to 1e-8, relative to the derivative where that is > 1.
    """
    last = best = error = np.zeros(0)
    for number, step in enumerate(REACHES):
        values = np.array([f(step * node) for node in NODES])
        derivative = np.tensordot(WEIGHTS / step, values, 1)
        if number == 0:
            last, best, error = derivative, derivative, np.full(derivative.shape, np.inf)
            continue
        apart = np.abs(derivative - last) / np.maximum(1.0, np.abs(derivative))
        if axis is not None:
            apart = np.broadcast_to(apart.max(axis=axis, keepdims=True), derivative.shape)
        better = apart < error
        best, error = np.where(better, last, best), np.where(better, apart, error)
        if (error < ROUNDING).all():
            return best
        last = derivative
    if not (error <= AGREEMENT).all():
        raise MeanfieldError(
            f"The derivative of {who} is needed, and differences of its values do not agree to "
            f"{AGREEMENT:g}, they differ by {np.nanmax(error):.1e}: it must be smooth near these "
            "points. Give its derivative, or leave tangents out."
        )
    return best
