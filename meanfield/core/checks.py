"""What callers give, checked: one message for each way to be wrong."""

import math
import numbers
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np


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
    except ValueError:
        raise ValueError(
            f"{what} must have rows of equal length; got {repr(values)[:200]}."
        ) from None
    if array.dtype.kind in "fiub":
        return array.astype(float)
    if array.dtype.kind == "O":  # long integers, fractions; None has no float
        with suppress(TypeError, ValueError):
            return np.array([float(value) for value in array.flat]).reshape(array.shape)
    raise TypeError(f"{what} must be real numbers; got {_not_real(values, array)}.")


def _not_real(values: Any, array: np.ndarray) -> str:
    """What is no array of real numbers, in words."""
    found = repr(values) if array.dtype.kind in "SUO" else f"an array of {array.dtype}"
    return found[:200]


def finite_array(what: str, values: Any) -> np.ndarray:
    """`real_array`, with a ValueError for numbers that are not finite."""
    array = real_array(what, values)
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite; got {np.sum(~np.isfinite(array))} nan or inf.")
    return array


def returned(what: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """What a method of the caller's returned, real numbers of this shape, without a copy.

    Raises TypeError or ValueError, "`what` must return an array of real numbers", for others.
    """
    array = np.asarray(values)
    real = array.dtype.kind in "fiub"
    if not real or array.shape != shape:
        found = f"shape {array.shape}" if real else _not_real(values, array)
        raise (ValueError if real else TypeError)(
            f"{what} must return an array of real numbers of shape {shape}; got {found}."
        )
    return array


def fitting(
    name: str, value: Any, wanted: str, fits: bool, error: type[Exception] = ValueError
) -> Any:
    """`value`; raises an error, "`name` must be `wanted`; got `name` = ...", unless it fits."""
    if not fits:
        raise error(f"{name} must be {wanted}; got {name} = {_plain(value)!r}.")
    return value


def real(name: str, value: Any, wanted: str, fits: Callable[[Any], bool]) -> float:
    """`value` as a float; raises ValueError, "`name` must be `wanted`", unless it fits."""
    return float(fitting(name, value, wanted, _is_real(value) and fits(value)))


def finite(**values: Any) -> None:
    """Raise ValueError for the first that is not a finite number."""
    for name, value in values.items():
        real(name, value, "a finite number", math.isfinite)


def positive(**values: Any) -> None:
    """Raise ValueError for the first number that is not finite and > 0."""
    for name, value in values.items():
        real(name, value, "a finite number > 0", lambda number: 0 < number < math.inf)


def whole_number(wanted: str, name: str, value: Any, *, least: int = 1) -> int:
    """`value` as an int; raises ValueError, "`wanted` >= `least`; got `name` = ...", unless so."""
    finite = _is_real(value) and math.isfinite(value)
    if not finite or value != int(value) or value < least:
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


def common_shape(
    what: str, shapes: Mapping[str, tuple[int, ...]], advice: str = ""
) -> tuple[int, ...]:
    """The shape to which these broadcast; raises ValueError, "`what` do not broadcast", if none."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        found = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise ValueError(f"{what} do not broadcast: {found}. {advice}".rstrip()) from None


def boolean(name: str, value: Any) -> bool:
    """`value` as a bool; raises TypeError unless it is one, of Python or numpy."""
    a_bool = isinstance(value, bool | np.bool_)
    return bool(fitting(name, value, "True or False", a_bool, TypeError))


def path_of(name: str, value: Any) -> Path:
    """`value` as a path; raises TypeError unless it is a string or a path."""
    a_path = isinstance(value, str | os.PathLike)
    return Path(fitting(name, value, "a string or a pathlib.Path", a_path, TypeError))


def generator(rng: Any) -> np.random.Generator:
    """The Generator, or one for this seed (SPEC 7); raises TypeError or ValueError for others."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"rng is a numpy Generator, or a seed: a whole number >= 0; got rng = {rng!r}."
        ) from None


def range_of(name: str, value: Any, above: float = 0.0) -> tuple[float, float]:
    """`value` as (first, last); raises TypeError or ValueError unless `above` < first < last < inf.

    With `above` -inf, any finite numbers.
    """
    array = real_array(name, value)
    fits = array.shape == (2,) and bool(above < array[0] < array[1] < math.inf)
    bound = "" if above == -math.inf else f"{above:g} < "
    fitting(name, value, f"a range (first, last), {bound}first < last", fits)
    return float(array[0]), float(array[1])


def values_of(f: Any, points: np.ndarray) -> np.ndarray:
    """The values of a function of points, whose copy it gets; raises TypeError for others."""
    if not callable(f):
        raise TypeError(f"expect takes a function of points (..., d); got {f!r}.")
    return np.asarray(f(points.copy()))


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python, which is how users write it."""
    return value.item() if isinstance(value, np.generic) else value
