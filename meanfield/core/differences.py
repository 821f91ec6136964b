"""Numerical derivatives of functions, by central differences of order 10."""

from collections.abc import Callable

import numpy as np

from .errors import MeanfieldError

AHEAD = np.array([5 / 6, -5 / 21, 5 / 84, -5 / 504, 1 / 1260])
NODES, WEIGHTS = np.delete(np.arange(-5, 6), 5), np.array([*-AHEAD[::-1], *AHEAD])
REACHES = (0.1, 0.05, 0.02, 0.005, 0.001, 2e-4)
AGREEMENT, ROUNDING = 1e-8, 1e-12


def derivative_at_zero(
    f: Callable[[float], np.ndarray], name: str, axis: int | tuple[int, ...] | None = None
) -> np.ndarray:
    """The derivative df/dh at h = 0 of an array-valued function of a number.

    Central differences of order 10 are computed with the steps 0.1, 0.05, ..., 2e-4, until two
    successive ones agree, in each entry separately. The accuracy is about 1e-12 where f is smooth
    at the scale 1; a kink affects only the entries next to it.

    Parameters
    ----------
    f : callable
        h -> ndarray, for |h| <= 1/2.
    name : str
        Name of f, for the message.
    axis : int or tuple of int, optional
        Axes whose entries all take their derivatives from the same step.

    Raises
    ------
    MeanfieldError
        If in some entry no two steps agree to 1e-8, relative to the derivative where that is > 1.
    """
    derivative, error = best_difference(lambda steps: np.array([f(h) for h in steps]), axis=axis)
    if not (error <= AGREEMENT).all():
        raise MeanfieldError(
            f"The derivative of {name} is needed, and differences of its values do not agree to "
            f"{AGREEMENT:g}, they differ by {np.nanmax(error):.1e}: it must be smooth near these "
            "points. Give its derivative, or leave tangents out."
        )
    return derivative


def best_difference(
    values: Callable[[np.ndarray], np.ndarray],
    *,
    unit: float = 1.0,
    axis: int | tuple[int, ...] | None = None,
    one_step: bool = False,
    rounding: float = ROUNDING,
    undefined: type[Exception] | tuple[()] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """The derivative at 0 by the step with the least error, and its error, by entry.

    Parameters
    ----------
    values : callable
        Numbers h (10,) -> an array of the values of the function, (10, ...).
    unit : float
        The steps are `REACHES` times this number.
    axis : int or tuple of int, optional
        Axes whose entries all take their derivatives from the same step.
    one_step : bool
        Whether all entries share one step, with an error relative to the largest.
    rounding : float
        No shorter steps are tried once all errors are below it.
    undefined : type of Exception, optional
        The error of `values` where the function is not defined at a distance.
    """
    previous: np.ndarray | None = None
    best: np.ndarray = np.zeros(())
    error: np.ndarray = np.full((), np.inf)
    for step in unit * np.array(REACHES):
        try:
            derivative = np.tensordot(WEIGHTS / step, values(step * NODES), 1)
        except undefined:
            previous = None
            continue
        if previous is not None:
            gap, size = np.abs(derivative - previous), np.maximum(1.0, np.abs(derivative))
            gap = gap / (size.max(initial=1.0) if one_step else size)
            axes = tuple(range(gap.ndim)) if one_step else axis
            if axes is not None:
                largest = gap.max(axis=axes, keepdims=True, initial=0.0)
                gap = np.broadcast_to(largest, derivative.shape)
            smaller = gap < error
            best, error = (np.where(smaller, previous, best), np.where(smaller, gap, error))
            if (error < rounding).all():
                break
        elif best.shape != derivative.shape:
            best, error = derivative, np.full(derivative.shape, np.inf)
        previous = derivative
    return best, error
