"""Outcomes of points, labelled arrays or failures: as bytes, and collected in one dataset.

The bytes of a batch of points are plain data, not code:

    length of the header (8 bytes) | header (JSON) | the arrays that it lists, one after the other
"""

import json
import math
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.checks import as_given, check_memory, is_variable_name
from ..core.errors import MeanfieldError, StorageWarning
from ..results.solution import Solution

if TYPE_CHECKING:
    import xarray as xr

ERROR, REPLICA, VALUE, STATUS = "error", "replica", "value", "status"
DTYPE_KINDS = "biufcU"  # numbers, booleans and text
NOT_RUN = "not run"
WANTED_RESULT = (
    "f must return a number, an array, a dictionary of them, an xarray.Dataset or a Solution"
)


class Variable(NamedTuple):
    """An array with the names of its axes.

    Attributes
    ----------
    dims : tuple of str
    values : ndarray
    is_coordinate : bool
    attributes : dict
        Plain data that describes it.
    """

    dims: tuple[str, ...]
    values: np.ndarray
    is_coordinate: bool = False
    attributes: Mapping[str, Any] = {}


@dataclass
class Outcome:
    """The result of one point: variables by name, or an error message and its traceback."""

    variables: dict[str, Variable] = field(default_factory=dict)
    error: str = ""
    where: str = ""

    @classmethod
    def of(cls, value: Any) -> "Outcome":
        """The outcome of a function that returned `value`; an `Outcome` is returned unchanged.

        Raises
        ------
        TypeError, ValueError
            If it is not a number, an array, a dictionary of them, a dataset or a solution.
        """
        if isinstance(value, Outcome):
            return value
        if isinstance(value, Solution):
            status = Variable((), np.array(value.status))
            return cls({**dict(_labelled(value.observables)), STATUS: status})
        variables = dict(_labelled(value))
        for name, variable in variables.items():
            if not isinstance(name, str) or not is_variable_name(name) or name == ERROR:
                raise ValueError(
                    f"f must return variables whose names are printable, have no '/', and are not "
                    f"'{ERROR}'; got {name!r}."
                )
            if variable.values.dtype.kind not in DTYPE_KINDS:
                raise TypeError(f"{WANTED_RESULT}; got {name} = {as_given(variable.values)}.")
        return cls(variables)

    @classmethod
    def failed(cls, error: BaseException) -> "Outcome":
        """The outcome of a function that raised an error."""
        return cls(error=message_of(error), where="".join(traceback.format_exception(error)))


def message_of(error: BaseException) -> str:
    """The type of an error, and its message if that can be printed."""
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception:
        return type(error).__name__


def _labelled(value: Any) -> Iterator[tuple[str, Variable]]:
    """Yield variables by name, together with the coordinates of arrays."""
    if hasattr(value, "data_vars"):  # a dataset
        for name, entry in value.variables.items():
            yield str(name), _variable(entry, name in value.coords)
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            yield from _entry(name, entry)
    else:
        yield from _entry(getattr(value, "name", None) or VALUE, value)


def _entry(name: Any, value: Any) -> Iterator[tuple[str, Variable]]:
    """Yield names and variables of a result; a labelled array brings its coordinates."""
    if hasattr(value, "coords"):  # a labelled array
        for coordinate, entry in value.coords.items():
            yield str(coordinate), _variable(entry.variable, True)
        yield name, _variable(value.variable, False)
        return
    try:
        array = np.asarray(value)
    except Exception as error:  # conversions of objects may raise anything
        advice = "Rows of an array must have equal lengths: pad the shorter ones with nan."
        raise TypeError(f"{WANTED_RESULT}; got {name} = {as_given(value)}. {advice}") from error
    if np.ma.is_masked(value):
        raise TypeError(f"{WANTED_RESULT}, with nan for missing values; {name} is masked.")
    yield name, Variable(tuple(f"{name}_{axis}" for axis in range(array.ndim)), array)


def _variable(variable: "xr.Variable", is_coordinate: bool) -> Variable:
    """Variable with strings as a numpy array, and attributes that are texts."""
    values = np.asarray(variable.values)
    if values.dtype.kind == "O" and all(isinstance(entry, str) for entry in values.flat):
        values = values.astype("U")
    attributes = {name: text for name, text in variable.attrs.items() if isinstance(text, str)}
    return Variable(tuple(map(str, variable.dims)), values, is_coordinate, attributes)


# Bytes -------------------------------------------------------------------------------------------


def to_bytes(keys: Sequence[str], outcomes: Sequence[Outcome]) -> bytes:
    """Serialise the outcomes of a batch of points with these keys."""
    points, pieces = [], []
    for outcome in outcomes:
        entries = {
            name: (v.dims, v.values.dtype.str, v.values.shape, v.is_coordinate, dict(v.attributes))
            for name, v in outcome.variables.items()
        }
        points.append({"variables": entries, "error": outcome.error, "where": outcome.where})
        pieces += [variable.values.tobytes() for variable in outcome.variables.values()]
    header = json.dumps({"keys": list(keys), "points": points}).encode()
    return b"".join([len(header).to_bytes(8, "little"), header, *pieces])


def of_bytes(payload: bytes) -> dict[str, Outcome]:
    """The outcomes of a batch, by the keys of its points."""
    begin = 8 + int.from_bytes(payload[:8], "little")
    header, outcomes = json.loads(payload[8:begin]), []
    for point in header["points"]:
        variables = {}
        for name, (dims, form, shape, is_coordinate, attributes) in point["variables"].items():
            dtype, count = np.dtype(form), int(np.prod(shape, dtype=int))
            values = np.frombuffer(payload, dtype, count, begin).reshape(shape)
            variables[name] = Variable(tuple(dims), values, is_coordinate, attributes)
            begin += count * dtype.itemsize
        outcomes.append(Outcome(variables, point["error"], point["where"]))
    return dict(zip(header["keys"], outcomes, strict=True))


# One dataset -------------------------------------------------------------------------------------


def dataset_of(
    axes: Mapping[str, Sequence[Any]], outcomes: Sequence[Outcome | None], with_errors: bool
) -> "xr.Dataset":
    """All outcomes on the axes of the sweep; missing ones are nan or empty text.

    An axis of a variable has its greatest length over all points; shorter ones are padded with nan.
    A coordinate that differs between points becomes a variable.

    Parameters
    ----------
    axes : dict of str to sequence
        The values of the parameters, and the replicas.
    outcomes : sequence of Outcome, or None
        The outcome of every point, last axis fastest; None for points that were not run.
    with_errors : bool
        Whether to add a variable "error" with the messages of failed points.

    Warns
    -----
    StorageWarning
        If integers are rounded.

    Raises
    ------
    MeanfieldError
        If the axes of a variable differ between points, if it is text at one point and a number at
        another, or if it has the name of a parameter.
    """
    import xarray as xr

    shape = tuple(map(len, axes.values()))
    columns: dict[str, dict[tuple[int, ...], Variable]] = {}
    for index, outcome in zip(np.ndindex(shape), outcomes, strict=True):
        for name, variable in (outcome.variables if outcome else {}).items():
            columns.setdefault(name, {})[index] = variable
    for name, column in list(columns.items()):
        if name in axes and all(variable.is_coordinate for variable in column.values()):
            del columns[name]
        elif clash := next((n for v in column.values() for n in (name, *v.dims) if n in axes), ""):
            raise MeanfieldError(f"f returns {clash}, which is a parameter: give it another name.")
    sizes = _sizes(columns)
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {name: _as_coordinate(values) for name, values in axes.items()}
    for name, column in columns.items():
        first = next(iter(column.values()))
        if first.is_coordinate and _is_constant(column.values(), sizes):
            coordinates[name] = first.dims, first.values, dict(first.attributes)
            continue
        table = _table(name, column, shape, tuple(sizes[dim] for dim in first.dims))
        _warn_of_rounding(name, table.dtype, column.values())
        name = f"{name}_of_point" if name in first.dims else name
        variables[name] = (*axes, *first.dims), table, dict(first.attributes)
    if with_errors:
        texts = [NOT_RUN if outcome is None else outcome.error for outcome in outcomes]
        variables[ERROR] = tuple(axes), np.array(texts, "U").reshape(shape)
    return xr.Dataset(variables, coordinates)


def _table(
    name: str, column: Mapping[tuple[int, ...], Variable], shape: tuple[int, ...],
    lengths: tuple[int, ...],
) -> np.ndarray:  # fmt: skip
    """The values of a variable at all points, (*shape, *lengths), from those at some, by index."""
    kinds = {variable.values.dtype for variable in column.values()}
    if len({kind.kind == "U" for kind in kinds}) > 1:
        raise MeanfieldError(
            f"f returns {name} as text at one point and as a number at another; use one type at "
            "all points."
        )
    points, kind = math.prod(shape), np.result_type(*kinds)
    complete = len(column) == points and all(v.values.shape == lengths for v in column.values())
    check_memory(f"{name} at {points} points", (*shape, *lengths), "the number of points")
    has_gaps = not complete and kind.kind != "U"  # filled with nan; missing texts are empty
    kind = np.result_type(kind, float) if has_gaps else kind
    table = np.full((*shape, *lengths), np.nan if has_gaps else np.zeros((), kind), kind)
    for index, variable in column.items():
        region: Any = (*index, *map(slice, variable.values.shape))
        table[region] = variable.values
    return table


def _as_coordinate(values: Sequence[Any]) -> np.ndarray:
    """The values of a parameter as a coordinate.

    Numbers or texts remain if an array represents them exactly. Other objects and mixtures are
    represented by their repr, so 1 and "1" become "1" and "'1'".
    """
    scalars = all(np.ndim(value) == 0 for value in values)
    if scalars and len({isinstance(value, str) for value in values}) == 1:
        array = np.asarray(values)
        pairs = zip(array.tolist() if array.dtype.kind in DTYPE_KINDS else (), values, strict=False)
        equal = [a == b or (a != a and b != b) for a, b in pairs]
        if len(equal) == len(values) and all(equal):  # to the last digit; nan equals nan
            return array
    return np.array([as_given(value, sys.maxsize) for value in values])


def _sizes(columns: Mapping[str, Mapping[Any, Variable]]) -> dict[str, int]:
    """The greatest length of every axis of the variables."""
    sizes: dict[str, int] = {}
    for name, column in columns.items():
        axes = {variable.dims for variable in column.values()}
        if len(axes) > 1:
            raise MeanfieldError(
                f"f returns {name} with the axes {' at one point, and '.join(map(str, axes))} at "
                "another; use the same axes at all points."
            )
        for variable in column.values():
            for dim, size in zip(variable.dims, variable.values.shape, strict=True):
                sizes[dim] = max(size, sizes.get(dim, 0))
    return sizes


def _is_constant(column: Iterable[Variable], sizes: Mapping[str, int]) -> bool:
    """Whether a coordinate is equal at all points and as long as its axis."""
    first, *rest = column
    fits = first.values.shape == tuple(sizes[dim] for dim in first.dims)
    contents = {(v.values.shape, v.values.tobytes()) for v in (first, *rest)}
    return fits and len(contents) == 1


def _warn_of_rounding(name: str, kind: np.dtype, column: Iterable[Variable]) -> None:
    """Warn of integers that lose digits when stored with floats, nan or other integer types."""
    if kind.kind not in "fc":
        return
    most = 2 ** (np.finfo(kind).nmant + 1)
    for values in (v.values for v in column if v.values.dtype.kind in "iu" and v.values.size):
        if int(values.max()) > most or int(values.min()) < -most:
            warnings.warn(
                f"{name} has integers beyond {most:.3g}, which are rounded, as other values of it "
                "are floats, or nan where nothing is known. Return them as text to keep all "
                "digits.",
                StorageWarning,
                stacklevel=4,
            )
            return
