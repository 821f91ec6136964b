"""What callers give, checked: one message for each way to be wrong."""

import math
import numbers
import os
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "boolean",
    "check_memory",
    "finite",
    "generator",
    "path_of",
    "positive",
    "range_of",
    "real_array",
    "shape_of",
    "values_of",
    "whole_number",
]


def real_array(what: str, values: Any) -> np.ndarray:
    """`values` as a new array of floats.

    Raises
    ------
    TypeError
        "`what` must be real numbers", for others.
    ValueError
        "`what` must have rows of equal length", where they differ.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind in "fiub":
            return array.astype(float)
        if array.dtype.kind == "O":  # long integers, fractions; None has no float
            return np.array([float(value) for value in array.flat]).reshape(array.shape)
        found = repr(values) if array.dtype.kind in "SU" else f"an array of {array.dtype}"
    except (TypeError, ValueError):
        found = repr(values)
        if _is_ragged(values):
            raise ValueError(f"{what} must have rows of equal length; got {found[:200]}.") from None
    raise TypeError(f"{what} must be real numbers; got {found[:200]}.")


def shape_of(numbers: Any) -> tuple[int, ...]:
    """Shape of nested lists, () of a number; raises ValueError where rows differ in length."""
    if not isinstance(numbers, list | tuple):
        return getattr(numbers, "shape", ())
    shapes = {shape_of(entry) for entry in numbers}
    if len(shapes) > 1:
        raise ValueError("expected rows of equal length")
    return (len(numbers), *(shapes.pop() if shapes else ()))


def _is_ragged(numbers: Any) -> bool:
    try:
        shape_of(numbers)
    except ValueError:
        return True
    return False


def whole_number(wanted: str, name: str, value: Any, *, least: int = 1) -> int:
    """`value` as an int; raises ValueError, "`wanted` >= `least`; got `name` = ...", unless so."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not -math.inf < value < math.inf or value != int(value) or value < least:
        bound = f" >= {least}" if least > -(2**63) else ""
        raise ValueError(f"{wanted}{bound}; got {name} = {_plain(value)!r}.")
    return int(value)


def check_memory(what: str, shape: tuple[int, ...]) -> None:
    """Raise ValueError for an array of floats of this shape that memory cannot hold."""
    needed = 8 * math.prod(shape)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise ValueError(
            f"{what} take {needed / 1e9:.3g} GB, for {' x '.join(map(str, shape))} numbers, and "
            f"this machine has {there // 10**9} GB; expected a smaller n"
        )


def boolean(name: str, value: Any) -> bool:
    """`value` as a bool; raises TypeError unless it is one, of Python or numpy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {name} = {_plain(value)!r}.")
    return bool(value)


def path_of(name: str, value: Any) -> Path:
    """`value` as a path; raises TypeError unless it is a string or a path."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a string or a pathlib.Path; got {name} = {value!r}.")
    return Path(value)


def finite(**values: Any) -> None:
    """Raise ValueError for the first that is not a finite number."""
    for name, value in values.items():
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number; got {name} = {_plain(value)!r}.")


def generator(rng: Any) -> np.random.Generator:
    """The Generator, or one for this seed (SPEC 7); raises TypeError or ValueError for others."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"rng is a numpy Generator, or a seed: a whole number >= 0; got rng = {rng!r}."
        ) from None


def range_of(name: str, value: Any) -> tuple[float, float]:
    """`value` as (first, last); raises TypeError or ValueError unless 0 < first < last < inf."""
    array = real_array(name, value)
    if array.shape != (2,) or not np.isfinite(array).all() or not 0 < array[0] < array[1]:
        raise ValueError(f"{name} is a range (first, last), 0 < first < last; got {value!r}.")
    return float(array[0]), float(array[1])


def values_of(f: Any, points: np.ndarray) -> np.ndarray:
    """The values of a function of points, whose copy it gets; raises TypeError for others."""
    if not callable(f):
        raise TypeError(f"expect takes a function of points (..., d); got {f!r}.")
    return np.asarray(f(points.copy()))


def positive(**values: Any) -> None:
    """Raise ValueError for the first number that is not finite and > 0."""
    for name, value in values.items():
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise ValueError(f"{name} must be a finite number > 0; got {name} = {_plain(value)!r}.")


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python, which is how users write it."""
    return value.item() if isinstance(value, np.generic) else value
