"""Checks of arguments, with one message for each kind of error."""

import inspect
import math
import numbers
import os
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path

import numpy as np

from .annotations import Function, PassedOn, UserValue, Values
from .dual import Dual
from .system import available_memory

SOURCES = (
    *(np.random.Generator, np.random.BitGenerator, np.random.SeedSequence),
    np.random.RandomState,
)
NAME_BYTES, PATH_BYTES = 255, 4095  # the longest names of files, of nearly all systems
SHOWN_COMPONENTS = 6  # of a point in a message
SEED_DIGITS = 4300  # Python writes no longer integers
UNCHECKED_SIZE = 2**26  # bytes; smaller arrays are not checked


def real_array(what: str, values: UserValue) -> np.ndarray:
    """`values` as a new array of floats in C order.

    Arrays from files have this order. Sums over arrays in another order would round differently.

    Raises
    ------
    TypeError
        "`what` must be real numbers", for other values and for masked entries.
    ValueError
        "`what` must have rows of equal length", if they differ; and for numbers beyond the range
        of floats.
    """
    if isinstance(values, Dual):
        return values.copy()
    array = plain_array(what, values)
    if array.dtype.kind in "fiub":
        return array.astype(float, order="C")
    if array.dtype.kind != "O" or not all(_is_real(number) for number in array.flat):
        raise TypeError(f"{what} must be real numbers; got {_not_real(values, array)}.")
    try:  # long integers, fractions
        return np.array([float(number) for number in array.flat]).reshape(array.shape)
    except OverflowError:
        raise ValueError(f"{what} must be below 1.8e308; got {as_given(values)}.") from None


def plain_array(what: str, values: UserValue) -> np.ndarray:
    """`values` as an array of any dtype; errors as in `real_array` for masks and unequal rows."""
    rows = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise TypeError(
            f"{what} must be real numbers; got a masked array, some entries of which are masked. "
            "Leave them out, or fill them, first."
        )
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RecursionError, OverflowError):
        if hasattr(values, "__array__") and hasattr(values, "dtype"):
            raise TypeError(
                f"{what} has numbers of {values.dtype}, which numpy does not know; give it as "
                "float32, with .float(), or .detach().cpu().float() of a tensor that a GPU or a "
                "gradient holds."
            ) from None
        raise ValueError(
            f"{what} must have rows of equal length; got {as_given(values)}."
        ) from None


def complex_array(what: str, values: UserValue) -> np.ndarray:
    """`values` as a new array of complex numbers in C order; errors as in `real_array`."""
    array = plain_array(what, values)
    array = array if array.dtype.kind == "c" else real_array(what, array)
    return array.astype(complex, order="C")


def shape_of(name: str, value: UserValue) -> tuple[int, ...]:
    """The shape of an array, given as a whole number >= 1 or a sequence of them."""
    sizes = value if isinstance(value, list | tuple | range | np.ndarray) else (value,)
    flat = not isinstance(sizes, np.ndarray) or sizes.ndim == 1
    require(name, value, "a whole number or a sequence of them", flat, TypeError)
    return tuple(whole_number(name, size) for size in sizes)


def _not_real(values: UserValue, array: np.ndarray) -> str:
    """A description of a value that is not an array of real numbers."""
    return as_given(values) if array.dtype.kind in "SUO" else f"an array of {array.dtype}"


def as_given(value: UserValue, length: int = 200) -> str:
    """A value for a message: its `repr` in one line, cut after `length` characters, or its type."""
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        value = value.item()  # shown as a Python number
    try:
        text = re.sub(r"\n\s*", " ", repr(value))
    except Exception:  # of a user's __repr__; integers of over 4300 digits
        text = f"a value of type {type(value).__name__}"
    if len(text) <= length:
        return text
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
    return f"{text[:length]}...{shape}"


def counted(count: int, noun: str) -> str:
    """A number of things in words: 1 token, 5 tokens."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def finite_array(what: str, values: UserValue) -> np.ndarray:
    """`real_array`, with a ValueError for numbers that are not finite."""
    array = real_array(what, values)
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite; got {np.sum(~np.isfinite(array))} nan or inf.")
    return array


def first_not_finite(values: np.ndarray, **points: np.ndarray) -> str:
    """The first place at which values, or vectors of them, are not finite, in words; "" if none.

    The words are "nan at x = (0, 1), the first of 5 points", for points x (..., d) by name, whose
    leading axes broadcast to those of the values.
    """
    shape = np.broadcast_shapes(*(x.shape[:-1] for x in points.values()))
    lost = ~np.isfinite(values).reshape(*shape, -1).all(axis=-1)
    if not lost.any():
        return ""
    first = tuple(np.argwhere(lost)[0])
    found = "nan" if np.isnan(values[first]).any() else "inf"
    places = []
    for name, x in points.items():
        numbers = [f"{number:.6g}" for number in np.broadcast_to(x, (*shape, x.shape[-1]))[first]]
        more = ["..."] * (len(numbers) > SHOWN_COMPONENTS)
        places.append(f"{name} = ({', '.join(numbers[:SHOWN_COMPONENTS] + more)})")
    count = int(lost.sum())
    noun = "points" if len(points) == 1 else "pairs"
    rest = f", the first of {count} {noun}" if count > 1 else ""
    return f"{found} at {' and '.join(places)}{rest}"


def returned(
    what: str, values: UserValue, shape: tuple[int, ...], least: float | None = None
) -> np.ndarray:
    """Real numbers of this shape that a function of the caller returned, without a copy.

    Raises TypeError or ValueError, "`what` must return an array of real numbers", for others, and
    with `least` for numbers below it or not finite.
    """
    array = values if isinstance(values, Dual) else plain_array(f"What {what} returns", values)
    real = array.dtype.kind in "fiub"
    if not real or array.shape != shape:
        got = f"shape {array.shape}" if real else _not_real(values, array)
        raise (ValueError if real else TypeError)(
            f"{what} must return an array of real numbers of shape {shape}; got {got}."
        )
    if least is not None and not (np.isfinite(array).all() and (array >= least).all()):
        bound_text = "" if least == -math.inf else f" >= {least:g}"
        raise ValueError(f"{what} must return finite numbers{bound_text}; got {np.min(array)}.")
    return array


def require(
    name: str, value: UserValue, expected: str, fits: object, error: type[Exception] = ValueError,
    advice: str = "",
) -> UserValue:  # fmt: skip
    """Return `value` if it `fits`; raise "`name` must be `expected`; got `name` = ..." if not."""
    if not fits:
        value_text = as_given(value) if " " in name else f"{name} = {as_given(value)}"
        raise error(f"{name} must be {expected}; got {value_text}. {advice}".rstrip())
    return value


def check_increasing(name: str, values: UserValue) -> None:
    """Raise ValueError unless numbers increase strictly, with the first two that do not."""
    numbers = real_array(name, values)
    for i in np.flatnonzero(~(np.diff(numbers) > 0))[:1].tolist():
        pair = [f"{name}[{j}] = {numbers[j].item()!r}" for j in (i, i + 1)]
        raise ValueError(f"{name} must increase strictly; got {' and '.join(pair)}.")


def real(name: str, value: UserValue, expected: str, fits: Callable[[Values], bool]) -> float:
    """`value` as a float; raises ValueError, "`name` must be `expected`", unless it fits."""
    number = _float_of(_scalar(value))
    require(name, value, expected, number is not None and fits(number))
    return number  # type: ignore[return-value]


def finite(name: str, value: UserValue) -> float:
    """A finite number as a float; raises ValueError for others."""
    return real(name, value, "a finite number", math.isfinite)


def positive(name: str, value: UserValue) -> float:
    """A finite number > 0 as a float; raises ValueError for others."""
    return real(name, value, "a finite number > 0", lambda number: 0 < number < math.inf)


def whole_number(name: str, value: UserValue, *, least: int = 1, most: int = 2**63 - 1) -> int:
    """`value` as an int; raises ValueError unless it is one from `least` to `most`."""
    value = _scalar(value)
    number = value if is_whole(value) else _float_of(value)
    integral = number is not None and (number == number // 1)  # False for nan and inf
    expected = f"a whole number >= {least}" if least > -(2**63) else "a whole number"
    if integral and value > most:
        expected += f" and at most {most}" if most < 2**53 else f" and below 2^{most.bit_length()}"
    return int(require(name, value, expected, integral and least <= value <= most))


# Sizes -------------------------------------------------------------------------------------------


def check_memory(what: str, shape: Sequence[int], reduce: str) -> None:
    """Raise ValueError if an array of floats of this shape exceeds the available memory.

    Parameters
    ----------
    what : str
        The object that needs the memory: "1000 tokens", beginning with the argument that sets its
        size.
    shape : sequence of int
        Shape of all numbers that are needed at one time.
    reduce : str
        The argument to reduce, for the message: "n".
    """
    needed_bytes = 8 * math.prod(shape)
    if needed_bytes < UNCHECKED_SIZE:
        return
    available = available_memory()
    if needed_bytes > available:
        raise ValueError(
            f"{what}: {needed_bytes} bytes ({needed_bytes / 1e9:.3g} GB) are needed and "
            f"{available / 1e9:.3g} GB are available; reduce {reduce}."
        )


# Others ------------------------------------------------------------------------------------------


def common_shape(
    what: str, shapes: Mapping[str, tuple[int, ...]], advice: str = ""
) -> tuple[int, ...]:
    """The shape to which `shapes` broadcast; else ValueError, "`what` do not broadcast"."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        shape_list = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise ValueError(f"{what} do not broadcast: {shape_list}. {advice}".rstrip()) from None


def boolean(name: str, value: UserValue) -> bool:
    """`value` as a bool; raises TypeError unless it is one, of Python or numpy."""
    a_bool = isinstance(value, bool | np.bool_)
    return bool(require(name, value, "True or False", a_bool, TypeError))


def path_of(name: str, value: UserValue) -> Path:
    """`value` as a path; raises TypeError unless it is a string or a path."""
    a_path = isinstance(value, str | os.PathLike) and isinstance(os.fspath(value), str)
    require(name, value, "a string or a pathlib.Path", a_path, TypeError)
    path = Path(value)
    try:
        longest = max(len(os.fsencode(part)) for part in ("", *path.parts))
        fits = longest <= NAME_BYTES and len(os.fsencode(path)) <= PATH_BYTES
    except UnicodeEncodeError:  # an unpaired surrogate cannot be in a file name
        fits = False
    expected = f"a path of at most {PATH_BYTES} bytes whose names have at most {NAME_BYTES}, none 0"
    return require(name, path, expected, fits and "\0" not in str(path))


def is_variable_name(name: str) -> bool:
    """Whether a variable of a file can have this name."""
    return name.isprintable() and "/" not in name and name not in ("", ".", "..")


def generator(rng: UserValue) -> np.random.Generator:
    """The Generator of a Generator, seed or None (SPEC 7); else TypeError or ValueError."""
    expected = "a numpy Generator, or a seed: a whole number >= 0"
    if rng is None or isinstance(rng, SOURCES):
        return np.random.default_rng(rng)
    require("rng", rng, expected, not isinstance(rng, bytes | bytearray | memoryview), TypeError)
    seeds = plain_array("rng", rng)
    integers = all(is_whole(seed) for seed in seeds.flat) and seeds.size > 0
    require("rng", rng, expected, integers and seeds.dtype.kind != "b", TypeError)
    require("rng", rng, expected, all(seed >= 0 for seed in seeds.flat))
    short = seeds.ndim > 0 or seeds.item() < 10**SEED_DIGITS
    require("rng", rng, f"a seed of at most {SEED_DIGITS} digits, so that files can keep it", short)
    require("rng", rng, "a seed, or a list of seeds without lists inside", seeds.ndim < 2)
    return np.random.default_rng(rng if seeds.ndim else seeds.item())


def range_of(name: str, value: UserValue, above: float = 0.0) -> tuple[float, float]:
    """`value` as (first, last); raises TypeError or ValueError unless `above` < first < last < inf.

    With `above` -inf, any finite numbers.
    """
    bound_text = "" if above == -math.inf else f"{above:g} < "
    wanted = f"a range (first, last), {bound_text}first < last"
    require(name, value, wanted, value is not None, TypeError)
    array = real_array(name, value)
    fits = array.shape == (2,) and bool(above < array[0] < array[1] < math.inf)
    require(name, value, wanted, fits)
    return float(array[0]), float(array[1])


def values_of(f: UserValue, points: np.ndarray) -> np.ndarray:
    """f(points) as an array; f gets a copy of the points. TypeError if f is no such function."""
    values = called(f, "a function of points (..., d)", points.copy())
    return plain_array("What f returns", values)


def called(f: UserValue, expected: str, *arguments: PassedOn) -> UserValue:
    """f(*arguments); TypeError, "f must be `expected`", if f does not take so many arguments.

    Errors of arrays that do not fit together are those of `answer`.
    """
    require("f", f, expected, callable(f), TypeError)
    try:
        return answer("f", f, f"be {expected}", *arguments)
    except TypeError:
        if takes(f, len(arguments)):
            raise
        raise TypeError(f"f must be {expected}; got f = {as_called(f)}.") from None


def answer(name: str, f: Function, expected: str, *arguments: PassedOn) -> UserValue:
    """f(*arguments), of arrays; ValueError, with what f is `expected` to do, if they do not fit.

    Numpy raises ValueError or IndexError then, and TypeError where a function of `math` gets an
    array. Others, and those with a cause, pass unchanged.
    """
    try:
        return f(*arguments)
    except (TypeError, ValueError, IndexError) as error:
        of_math = "arrays can be converted to Python scalars" in str(error)
        is_plain = type(error) in (ValueError, IndexError) and error.__cause__ is None
        if not (is_plain or (of_math and isinstance(error, TypeError))):
            raise
        advice = ": use functions of numpy, such as np.cos in place of math.cos" * of_math
        shapes = dict.fromkeys(str(np.shape(argument)) for argument in arguments)
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            f"{name} raised {type(error).__name__}: {error}. It must {expected}, for arrays of "
            f"shape {' and '.join(shapes)}{advice}."
        ) from error


def takes(f: UserValue, count: int) -> bool:
    """Whether a function accepts `count` positional arguments; True if it has no signature."""
    if not callable(f):
        return False
    try:
        inspect.signature(f).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def as_called(f: Function) -> str:
    """A function in a message, with the arguments that it takes."""
    return f"{as_given(f)} of {inspect.signature(f)}"


def _scalar(value: UserValue) -> UserValue:
    """The entry of an array of shape (); other values unchanged."""
    is_duration = getattr(getattr(value, "dtype", None), "kind", "") == "m"
    kept = is_duration or isinstance(value, np.ma.MaskedArray)
    scalar = getattr(value, "shape", None) == () and hasattr(value, "item")  # a State has a shape
    return value.item() if scalar and not kept else value


def is_whole(value: UserValue) -> bool:
    """True for an integer of Python or numpy; a bool or a duration is none."""
    return isinstance(value, Integral) and _is_real(value)


def _is_real(value: UserValue) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.timedelta64)


def _float_of(value: UserValue) -> float | None:
    """A real number as a float; None for other values, and for numbers beyond floats."""
    try:
        return float(value) if _is_real(value) else None
    except OverflowError:
        return None
