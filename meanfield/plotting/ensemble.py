"""Which members of an ensemble to draw, and what to call them."""

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .digits import distinct, mathematical

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["MOST_PANELS", "choose", "describe", "label", "varying"]

MOST_PANELS = 9
SYMBOLS = {
    "beta": r"\beta",
    "kappa": r"\kappa",
    "n": "n",
    "initial_rho": r"\rho(0)",
    "initial_gap": r"1 - \rho(0)",
    "initial_radius": "r(0)",
}


def choose(solution: "Solution", member: int | tuple[int, ...] | None) -> list[tuple[int, ...]]:
    """Indices of the members to draw, one panel each.

    Parameters
    ----------
    member : int or tuple of int, optional
        One member. By default all of them; () is the only member of a single solution.

    Raises
    ------
    ValueError
        If the member does not exist, or there are more members than panels in a figure.
    """
    shape = tuple(solution.shape)
    if member is not None:
        return [_checked(member, shape)]
    if prod(shape) > MOST_PANELS:
        first = 0 if len(shape) == 1 else (0,) * len(shape)
        raise ValueError(
            f"An ensemble of shape {shape} has {prod(shape)} members and a figure holds "
            f"{MOST_PANELS} panels. Choose one member, for instance member={first}; "
            "kind='observables' draws all of them."
        )
    return list(np.ndindex(shape))


def _checked(member: int | tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    index = member if isinstance(member, tuple) else (member,)
    if not shape:
        raise ValueError(
            f"member = {member} was asked for, but this solution is a single run, not an "
            "ensemble. Leave `member` out."
        )
    inside = len(index) == len(shape) and all(
        isinstance(i, int | np.integer) and -n <= i < n for i, n in zip(index, shape, strict=True)
    )
    if not inside:
        last = shape[0] - 1 if len(shape) == 1 else tuple(n - 1 for n in shape)
        raise ValueError(
            f"member = {member} is not in an ensemble of shape {shape}; "
            f"the last member is member={last}."
        )
    return tuple(int(i) % n for i, n in zip(index, shape, strict=True))


def varying(solution: "Solution") -> dict[str, np.ndarray]:
    """Parameters that differ between members, each as an array of the ensemble shape."""
    arrays = {
        name: np.broadcast_to(value, solution.shape)
        for name, value in solution.parameters.items()
        if np.ndim(value)
    }
    return {name: array for name, array in arrays.items() if (array != array.flat[0]).any()}


def label(solution: "Solution", index: tuple[int, ...]) -> str:
    """Title of one member: the parameters in which it differs, or else its number."""
    parts = []
    for name, array in varying(solution).items():
        texts = dict(zip(array.flat, distinct(array.flat, least=5), strict=True))
        parts.append(_equation(name, texts[array[index]]))
    if parts:
        return ", ".join(parts)
    return f"member {index[0] if len(index) == 1 else index}" if index else ""


def describe(solution: "Solution") -> str:
    """The drift and the parameters that all members share, for the head of a figure."""
    differing = varying(solution)
    shared = [
        _equation(name, mathematical(np.ravel(value)[0], 7))
        for name, value in solution.parameters.items()
        if name not in differing
    ]
    return ", ".join([type(solution.model.drift).__name__, *shared])


def _equation(name: str, number: str) -> str:
    return f"${SYMBOLS[name]} = {number}$"
