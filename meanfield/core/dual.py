"""Dual arrays: values with their derivatives along several tangents, propagated by NumPy functions.

Code written for arrays is differentiated (forward mode) when it is called with a `Dual` instead.
The directional derivatives are called changes. A function of NumPy without a rule in this module
raises `NoDerivative` rather than drop the changes.
"""

# mypy: disable-error-code="override"

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from .annotations import AnyObject, ArrayIndex, Function, PassedOn, Values
from .differences import derivative_at_zero
from .errors import MeanfieldError

Array = NDArray[np.float64]
BASIC_INDICES = (int, slice, type(None), type(Ellipsis))  # types of indices of views
if TYPE_CHECKING:  # a Dual is accepted wherever an array is
    Operators = np.ndarray[tuple[Values, ...], np.dtype[np.float64]]
else:
    Operators = NDArrayOperatorsMixin


class NoDerivative(TypeError):
    """A function was called with a `Dual` and has no rule for its derivative."""


class Dual(Operators):
    """An array and its changes along p tangents.

    Parameters
    ----------
    value : ndarray, (...)
    changes : ndarray, (p, ...)

    Notes
    -----
    Indexing with integers and slices gives views, and entries can be assigned. Comparisons compare
    values. ``np.maximum(x, 0)`` has the slope 0 at 0; ``np.abs`` raises MeanfieldError at 0 if the
    changes there are not 0.
    """

    __slots__ = ("changes", "value")

    def __init__(self, value: Values, changes: Array) -> None:
        self.value: Array = np.asarray(value)
        self.changes = changes

    @classmethod
    def of_stack(cls, stack: Array) -> "Dual":
        """The value and changes of a stack (1 + p, ...), as views."""
        return cls(stack[0], stack[1:])

    @property
    def stack(self) -> Array:
        """The value and its changes in one array (1 + p, ...)."""
        return np.concatenate([self.value[None], self.changes])

    # Protocols of NumPy --------------------------------------------------------------------

    def __array__(self, *_arguments: PassedOn, **_keywords: PassedOn) -> Values:
        raise NoDerivative(
            "A value with tangents was to become a plain array, which would drop them: write "
            "np.exp, np.where and the like, and neither np.asarray nor compiled functions."
        )

    def _refuse_conversion(self) -> Values:
        self.__array__()

    __float__ = __int__ = __complex__ = __index__ = _refuse_conversion

    def __bool__(self) -> bool:
        if not self.value.any() and self.changes.any():
            raise NoDerivative("A test for 0 of a value with tangents that is 0 hides its changes.")
        return bool(self.value)

    def __array_ufunc__(
        self, ufunc: Function, method: str, *inputs: Values, **options: PassedOn
    ) -> Values:
        """Apply a ufunc of one or two arrays with its derivative; others raise."""
        into = options.pop("out", (None,))[0]
        if method != "__call__" or set(options) - {"dtype"} or len(inputs) > 2:
            _refuse(f"np.{ufunc.__name__}, called as {method} with {sorted(options)},")
        result = _of_ufunc(ufunc, inputs)
        if into is None:
            return result
        if not isinstance(into, Dual):
            _refuse(f"np.{ufunc.__name__} into an array without tangents")
        into[...] = result
        return into

    def __array_function__(
        self, function: Function, _types: PassedOn, args: PassedOn, kwargs: PassedOn
    ) -> Values:
        """Apply a numpy function to values, by its rule, or by the product rule; others raise."""
        if function in VALUE_FUNCTIONS:
            values = [value_of(a) for a in args]
            return function(*values, **{key: value_of(a) for key, a in kwargs.items()})
        if function in ARRAY_FUNCTIONS:
            return ARRAY_FUNCTIONS[function](*args, **kwargs)
        if function in BILINEAR_FUNCTIONS:
            return _bilinear(function, *args, **kwargs)
        _refuse(f"np.{function.__name__}")

    # Interface of arrays -------------------------------------------------------------------

    def __getitem__(self, key: ArrayIndex) -> "Dual":
        return Dual(self.value[key], _entries(self.changes, key))

    def __setitem__(self, key: ArrayIndex, entries: Values) -> None:
        rows: Values = np.zeros(len(self.changes))
        if isinstance(entries, Dual):
            rows = _aligned(entries.changes, self.value[key].ndim)
        for change, row in zip(self.changes, rows, strict=True):
            change[key] = row
        self.value[key] = value_of(entries)

    def __iter__(self) -> Iterator["Dual"]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {len(self.changes)} tangents)"

    def __getattr__(self, name: str) -> AnyObject:
        if name in {"shape", "ndim", "size", "dtype"}:
            return getattr(self.value, name)
        if name in ARRAY_METHODS:
            return lambda *positional, **named: getattr(np, name)(self, *positional, **named)
        raise AttributeError(f"A value with tangents has no {name}.")

    @property
    def T(self) -> Values:
        return np.transpose(self)

    @property
    def mT(self) -> Values:
        return np.swapaxes(self, -1, -2)

    def astype(self, dtype: PassedOn, **_options: PassedOn) -> Values:
        """A copy of the numbers, which must be floats; raises NoDerivative for other types."""
        return self.copy() if np.dtype(dtype) == float else _refuse(f"astype({dtype})")

    def reshape(self, *shape: PassedOn, order: str = "C") -> "Dual":
        """Value and changes reshaped, in C order."""
        sizes = shape[0] if len(shape) == 1 else shape
        value = self.value.reshape(sizes)
        return Dual(value, self.changes.reshape(len(self.changes), *value.shape))

    def item(self) -> "Dual":
        """The only entry, as a Dual of shape ()."""
        return self.reshape(())


def value_of(array: Values) -> Values:
    """The value of a `Dual`; anything else as it is."""
    return array.value if isinstance(array, Dual) else array


def changes_of(array: Values, count: int) -> Array:
    """The changes (count, ...) of an array; 0 unless it is a `Dual`."""
    return array.changes if isinstance(array, Dual) else np.zeros((count, *np.shape(array)))


def contiguous(array: Values) -> Values:
    """An array, or value and changes, C-contiguous as compiled functions need them."""
    if isinstance(array, Dual):
        return Dual(np.ascontiguousarray(array.value), np.ascontiguousarray(array.changes))
    return np.ascontiguousarray(array)


def differentiable(
    rule: Callable[..., Array],
) -> Callable[[Function], Function]:
    """Decorator by which a compiled function of one array also accepts a `Dual`.

    rule(x, dx, result) returns the changes of the result, from the changes dx (p, ...) of x.
    """

    def decorated(function: Function) -> Function:
        """Function of arrays and of `Dual` values, with the derivative `rule`."""

        def evaluate(x: Values) -> Values:
            """Value of the function; of a `Dual`, with its changes by the rule."""
            if not isinstance(x, Dual):
                return function(x)
            value = function(np.ascontiguousarray(x.value))
            return Dual(value, rule(x.value, x.changes, value))

        evaluate.__name__, evaluate.__doc__ = function.__name__, function.__doc__
        return evaluate

    return decorated


def applied(
    function: Callable[[Values], Values], x: Values, name: str, *, relative: bool = False
) -> Values:
    """function(x) of an array or a `Dual`, for a function that acts along the last axis of x.

    A function that only calls NumPy functions with rules here is evaluated with the `Dual`.
    Otherwise the changes are differences of order 10 along each tangent, accurate to about 1e-12
    where the function is smooth at the scale 1, or with `relative` at the scale |x|. Messages name
    the function `name`.

    Raises
    ------
    MeanfieldError
        If the function is not smooth near these values.
    """
    if not isinstance(x, Dual):
        return function(x)
    try:
        result = function(x)
        return result if isinstance(result, Dual) else constant(result, len(x.changes))
    except (TypeError, AttributeError):  # it calculates with functions that have no rule here
        value = function(x.value)
    scale = np.linalg.norm(x.value, axis=-1, keepdims=True) if relative else np.ones(1)
    size = np.linalg.norm(x.changes, axis=-1, keepdims=True)
    unit = scale * x.changes / np.where(size > 0, size, 1.0)

    def values_at(h: float) -> Array:
        return np.array([function(x.value + h * direction) for direction in unit])

    rates = derivative_at_zero(values_at, name, axis=-1).reshape(x.changes.shape)
    return Dual(value, rates * size / np.where(scale > 0, scale, 1.0))


def constant(value: Values, count: int) -> Dual:
    """A Dual with `count` tangents, whose changes are 0."""
    return Dual(value, np.zeros((count, *np.shape(value))))


def _refuse(name: str) -> Values:
    """Raise NoDerivative for a function that has no rule."""
    raise NoDerivative(
        f"{name} has no derivative here: functions that are differentiated calculate with those "
        "of NumPy that core.dual lists, such as np.exp, np.where, np.einsum and np.linalg.norm."
    )


# Axes of tangents --------------------------------------------------------------------------------


def _aligned(changes: Array, ndim: int) -> Array:
    """Changes (p, ...) with axes of length 1 after the first, to broadcast with `ndim` axes."""
    axes_to_add = ndim + 1 - changes.ndim
    if axes_to_add <= 0:
        return changes
    return changes.reshape(len(changes), *(1,) * axes_to_add, *changes.shape[1:])


def _with_tangents(key: ArrayIndex) -> tuple[ArrayIndex, ...]:
    """An index of a value, extended to its changes, whose first axis is that of the tangents."""
    return (slice(None), *key) if isinstance(key, tuple) else (slice(None), key)


def _entries(changes: Array, key: ArrayIndex) -> Array:
    """The changes of the entries `key` of an array.

    Arrays of indices are applied to each change alone, since NumPy may move their axes in front of
    that of the tangents.
    """
    full_key = _with_tangents(key)
    if all(isinstance(k, BASIC_INDICES) for k in full_key):
        return changes[full_key]
    return np.stack([change[key] for change in changes]) if len(changes) else changes[full_key]


def _change_axes(axis: ArrayIndex, ndim: int) -> ArrayIndex:
    """Axes of a value with `ndim` axes, as axes of its changes; None means all."""
    if axis is None:
        return tuple(range(1, ndim + 1))
    return tuple(a + (a >= 0) for a in axis) if isinstance(axis, tuple) else axis + (axis >= 0)


def _count(arrays: Sequence[Values]) -> int:
    """The number of tangents of the first `Dual` among these arrays."""
    return next(len(each.changes) for each in arrays if isinstance(each, Dual))


# Functions of entries ----------------------------------------------------------------------------


def _of_ufunc(ufunc: Function, inputs: tuple[Values, ...]) -> Values:
    """ufunc(*inputs) with its changes; a plain array for piecewise constant functions."""
    if ufunc is np.matmul:
        return _matmul(*inputs)
    values = [each.value if isinstance(each, Dual) else each for each in inputs]
    value = ufunc(*values)
    if ufunc in STEPPED_UFUNCS:
        return value
    slopes = UFUNC_RULES.get(ufunc) or SCIPY_RULES.get(ufunc.__name__)
    if slopes is None:
        return _refuse(f"np.{ufunc.__name__}")
    total: Values = None
    for slope, each in zip(slopes, inputs, strict=False):
        if isinstance(each, Dual):
            part = slope(_aligned(each.changes, value.ndim), value, *values)
            total = part if total is None else total + part
    if total is None:  # of np.copysign, or of arrays without tangents into a Dual
        return value
    if total.shape[1:] != value.shape:
        total = np.broadcast_to(total, (len(total), *value.shape)).copy()
    return Dual(value, total)


def _of_absolute(d: Array, y: Array, x: Array) -> Array:
    """The changes of np.abs; MeanfieldError where x is 0 and its change d is not."""
    if ((x == 0) & (d != 0)).any():
        raise MeanfieldError(
            "The derivative of np.abs is needed at 0, where it has none: functions must be smooth "
            "near the states of a run. Leave tangents out."
        )
    return d * np.sign(x)


# a rule for each argument: (its change d, the result y, all arguments) -> change of the result
UFUNC_RULES: dict[Function, tuple[Callable[..., Array], ...]] = {
    np.add: (lambda d, y, a, b: d, lambda d, y, a, b: d),
    np.subtract: (lambda d, y, a, b: d, lambda d, y, a, b: -d),
    np.multiply: (lambda d, y, a, b: d * b, lambda d, y, a, b: a * d),
    np.divide: (lambda d, y, a, b: d / b, lambda d, y, a, b: -(y / b) * d),
    np.power: (
        lambda d, y, a, b: d * (2 * a if np.ndim(b) == 0 and b == 2 else b * np.power(a, b - 1)),
        lambda d, y, a, b: d * y * np.log(a),
    ),
    np.float_power: (
        lambda d, y, a, b: d * (b * np.float_power(a, b - 1)),
        lambda d, y, a, b: d * y * np.log(a),
    ),
    np.remainder: (lambda d, y, a, b: d, lambda d, y, a, b: -d * np.floor_divide(a, b)),
    np.hypot: (lambda d, y, a, b: d * a / y, lambda d, y, a, b: d * b / y),
    np.arctan2: (
        lambda d, y, a, b: d * b / (a * a + b * b),
        lambda d, y, a, b: -d * a / (a * a + b * b),
    ),
    np.logaddexp: (lambda d, y, a, b: d * np.exp(a - y), lambda d, y, a, b: d * np.exp(b - y)),
    np.ldexp: (lambda d, y, a, b: np.ldexp(d, b),),
    np.copysign: (lambda d, y, a, b: d * np.where(np.signbit(a) == np.signbit(b), 1.0, -1.0),),
    np.maximum: (lambda d, y, a, b: np.where(a > b, d, 0.0),
                 lambda d, y, a, b: np.where(a > b, 0.0, d)),
    np.minimum: (lambda d, y, a, b: np.where(a < b, d, 0.0),
                 lambda d, y, a, b: np.where(a < b, 0.0, d)),
    np.negative: (lambda d, y, x: -d,),
    np.positive: (lambda d, y, x: d,),
    np.conjugate: (lambda d, y, x: d,),
    np.absolute: (_of_absolute,),
    np.fabs: (_of_absolute,),
    np.square: (lambda d, y, x: d * (2 * x),),
    np.sqrt: (lambda d, y, x: np.where(d == 0, 0.0, d / (2 * y)),),
    np.cbrt: (lambda d, y, x: d / (3 * y * y),),
    np.reciprocal: (lambda d, y, x: -d * (y * y),),
    np.exp: (lambda d, y, x: d * y,),
    np.exp2: (lambda d, y, x: d * (y * np.log(2)),),
    np.expm1: (lambda d, y, x: d * np.exp(x),),
    np.log: (lambda d, y, x: d / x,),
    np.log2: (lambda d, y, x: d / (x * np.log(2)),),
    np.log10: (lambda d, y, x: d / (x * np.log(10)),),
    np.log1p: (lambda d, y, x: d / (1 + x),),
    np.sin: (lambda d, y, x: d * np.cos(x),),
    np.cos: (lambda d, y, x: -d * np.sin(x),),
    np.tan: (lambda d, y, x: d * (1 + y * y),),
    np.arcsin: (lambda d, y, x: d / np.sqrt(1 - x * x),),
    np.arccos: (lambda d, y, x: -d / np.sqrt(1 - x * x),),
    np.arctan: (lambda d, y, x: d / (1 + x * x),),
    np.sinh: (lambda d, y, x: d * np.cosh(x),),
    np.cosh: (lambda d, y, x: d * np.sinh(x),),
    np.tanh: (lambda d, y, x: d * (1 - y * y),),
    np.arcsinh: (lambda d, y, x: d / np.sqrt(x * x + 1),),
    np.arccosh: (lambda d, y, x: d / np.sqrt(x * x - 1),),
    np.arctanh: (lambda d, y, x: d / (1 - x * x),),
    np.deg2rad: (lambda d, y, x: np.deg2rad(d),),
    np.rad2deg: (lambda d, y, x: np.rad2deg(d),),
}  # fmt: skip
SCIPY_RULES: dict[str, tuple[Callable[..., Array], ...]] = {  # by name: no import of scipy.special
    "expit": (lambda d, y, x: d * (y * (1 - y)),),
    "ndtr": (lambda d, y, x: d * (np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)),),
    "erf": (lambda d, y, x: d * (np.exp(-(x**2)) * 2 / np.sqrt(np.pi)),),
}
STEPPED_UFUNCS = frozenset(
    {
        *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
        *(np.isfinite, np.isinf, np.isnan, np.signbit, np.sign, np.heaviside, np.spacing),
        *(np.floor, np.ceil, np.trunc, np.rint, np.floor_divide),
        *(np.logical_and, np.logical_or, np.logical_xor, np.logical_not),
    }
)  # piecewise constant


# Functions of arrays -----------------------------------------------------------------------------


def _matmul(a: Values, b: Values) -> Dual:
    """a @ b, with changes by the product rule."""
    x, y = value_of(a), value_of(b)
    if x.ndim < 2 or y.ndim < 2:
        return _bilinear(np.matmul, a, b)
    ndim, total = max(x.ndim, y.ndim), np.zeros(())
    if isinstance(a, Dual):
        total = _aligned(a.changes, ndim) @ y
    if isinstance(b, Dual):
        total = total + x @ _aligned(b.changes, ndim)
    return Dual(x @ y, total)


def _bilinear(function: Function, a: Values, b: Values, **options: PassedOn) -> Dual:
    """A bilinear function f(a, b), with the changes f(da, b) + f(a, db)."""
    x, y = value_of(a), value_of(b)
    value, count = function(x, y, **options), _count((a, b))
    parts = [[function(d, y, **options) for d in a.changes]] if isinstance(a, Dual) else []
    parts += [[function(x, d, **options) for d in b.changes]] if isinstance(b, Dual) else []
    term_changes = [np.reshape(part, (count, *np.shape(value))) for part in parts]
    return Dual(value, sum(term_changes[1:], term_changes[0]))


def _linear(function: Function) -> Callable[..., Dual]:
    """Rule for a linear function of one array: it is applied to the value and to each change."""

    def rule(x: Dual, *arguments: PassedOn, **keywords: PassedOn) -> Dual:
        """Linear function of a value, applied to its changes too."""
        if any(isinstance(argument, Dual) for argument in (*arguments, *keywords.values())):
            _refuse(f"np.{function.__name__} of two values with tangents")
        value = function(x.value, *arguments, **keywords)
        changes = [function(change, *arguments, **keywords) for change in x.changes]
        return Dual(value, np.reshape(changes, (len(x.changes), *np.shape(value))))

    return rule


def _along_axes(function: Function) -> Callable[..., Dual]:
    """Rule for sums and means along axes."""

    def rule(x: Dual, axis: ArrayIndex = None, *, keepdims: bool = False, **more: PassedOn) -> Dual:
        """Sum or mean along axes, of a value and of its changes."""
        if any(entry is not None for entry in more.values()):
            _refuse(f"np.{function.__name__} with {sorted(more)}")
        value = function(x.value, axis=axis, keepdims=keepdims)
        return Dual(value, function(x.changes, axis=_change_axes(axis, x.ndim), keepdims=keepdims))

    return rule


def _extreme(largest: Function, argument_of: Function) -> Callable[..., Dual]:
    """Rule for np.max or np.min: the changes of the first extreme entry, at its `argument_of`."""

    def rule(
        x: Dual, axis: ArrayIndex = None, *, keepdims: bool = False, **more: PassedOn
    ) -> Values:
        """Extreme of a value, with the changes of the entry that attains it."""
        initial = more.pop("initial", None)
        if isinstance(axis, tuple) or any(entry is not None for entry in more.values()):
            _refuse(f"np.{largest.__name__} along several axes, or with {sorted(more)}")
        rows, line = (x.reshape(-1), 0) if axis is None else (x, axis)
        index = np.expand_dims(argument_of(rows.value, axis=line), line)
        value = np.take_along_axis(rows.value, index, axis=line)
        changes = np.take_along_axis(rows.changes, index[None], axis=line + (line >= 0))
        extreme: Values = Dual(value, changes)
        if initial is not None:
            extreme = (np.maximum if largest is np.max else np.minimum)(extreme, initial)
        shape = largest(x.value, axis=axis, keepdims=keepdims).shape
        return extreme.reshape(shape)

    return rule


def _where(condition: Values, a: Values, b: Values) -> Values:
    """np.where; the condition may be a Dual, whose changes are ignored."""
    mask = value_of(condition)
    value: Values = np.where(mask, value_of(a), value_of(b))
    if not isinstance(a, Dual) and not isinstance(b, Dual):
        return value
    count = _count((a, b))
    da, db = (_aligned(changes_of(operand, count), value.ndim) for operand in (a, b))
    return Dual(value, np.where(mask, da, db))


def _einsum(subscripts: str, *operands: Values, **options: PassedOn) -> Dual:
    """np.einsum, with the sum over operands of the products with one operand's changes."""
    if "->" not in subscripts:
        _refuse("np.einsum without ->")
    operand_labels, result = subscripts.split("->")
    names, values = operand_labels.split(","), [value_of(operand) for operand in operands]
    value, total = np.einsum(subscripts, *values, **options), 0.0
    for k, operand in enumerate(operands):
        if isinstance(operand, Dual):
            labels = ",".join(f"Z{name}" if k == j else name for j, name in enumerate(names))
            factors = [*values[:k], operand.changes, *values[k + 1 :]]
            total = total + np.einsum(f"{labels}->Z{result}", *factors, **options)
    return Dual(value, total)  # type: ignore[arg-type]


def _joining(function: Function) -> Callable[..., Dual]:
    """Rule for np.concatenate and np.stack; arrays without tangents have changes 0."""

    def rule(arrays: Sequence[Values], *arguments: PassedOn, **keywords: PassedOn) -> Dual:
        """Joined arrays, and their joined changes."""
        count = _count(arrays)
        value = function([value_of(array) for array in arrays], *arguments, **keywords)
        parts = [changes_of(array, count) for array in arrays]
        rows = [function([part[a] for part in parts], *arguments, **keywords) for a in range(count)]
        return Dual(value, np.reshape(rows, (count, *value.shape)))

    return rule


def _norm(x: Dual, ord: ArrayIndex = None, axis: ArrayIndex = None, keepdims: bool = False) -> Dual:
    """The Euclidean norm along one axis, or of all entries."""
    if ord is not None or isinstance(axis, tuple):
        _refuse("np.linalg.norm of matrices, or with ord")
    value = np.linalg.norm(x.value, axis=axis, keepdims=keepdims)
    inner_products = (x.value * x.changes).sum(axis=_change_axes(axis, x.ndim), keepdims=keepdims)
    return Dual(value, inner_products / value)


def _eigvalsh(x: Dual) -> Dual:
    """Eigenvalues; changes of equal ones are valid only in symmetric functions of them."""
    values, (_, vectors) = np.linalg.eigvalsh(x.value), np.linalg.eigh(x.value)
    return Dual(values, np.einsum("...ak,p...ab,...bk->p...k", vectors, x.changes, vectors))


def _svd(x: Dual, full_matrices: bool = True, compute_uv: bool = True) -> Dual:
    """Singular values; NoDerivative if singular vectors are requested."""
    if compute_uv:
        _refuse("np.linalg.svd with vectors")
    values = np.linalg.svd(x.value, compute_uv=False)
    U, _, Wt = np.linalg.svd(x.value, full_matrices=False)
    return Dual(values, np.einsum("...ak,p...ab,...kb->p...k", U, x.changes, Wt))


def _put_along_axis(x: Dual, index: ArrayIndex, values: Values, axis: int) -> None:
    """np.put_along_axis, applied to the value and to each change."""
    rows = changes_of(values, len(x.changes))
    for each, row in zip((x.value, *x.changes), (value_of(values), *rows), strict=True):
        np.put_along_axis(each, index, row, axis)


def _solve(a: Values, b: Values) -> Dual:
    """x = a^-1 b, with the changes a^-1 (db - da x)."""
    A, value = value_of(a), np.linalg.solve(value_of(a), value_of(b))
    count = _count((a, b))
    change_pairs = zip(changes_of(a, count), changes_of(b, count), strict=True)
    return Dual(value, np.array([np.linalg.solve(A, db - dA @ value) for dA, db in change_pairs]))


def _constant_like(function: Function) -> Callable[..., Dual]:
    """Rule for np.zeros_like and its relatives, whose results have changes 0."""

    def rule(x: Dual, *arguments: PassedOn, **keywords: PassedOn) -> Dual:
        if any(isinstance(argument, Dual) for argument in arguments):
            _refuse(f"np.{function.__name__} of another value with tangents")
        return constant(function(x.value, *arguments, **keywords), len(x.changes))

    return rule


def _sorted(x: Dual, axis: int = -1) -> Values:
    return np.take_along_axis(x, np.argsort(x.value, axis=axis), axis=axis)


def _variance(x: Dual, axis: ArrayIndex = None, *, keepdims: bool = False) -> Values:
    return np.mean((x - np.mean(x, axis=axis, keepdims=True)) ** 2, axis=axis, keepdims=keepdims)


ARRAY_FUNCTIONS: dict[Function, Function] = {
    np.sum: _along_axes(np.sum),
    np.mean: _along_axes(np.mean),
    np.max: _extreme(np.max, np.argmax),
    np.min: _extreme(np.min, np.argmin),
    np.where: _where,
    np.einsum: _einsum,
    np.concatenate: _joining(np.concatenate),
    np.stack: _joining(np.stack),
    np.column_stack: _joining(np.column_stack),
    np.linalg.norm: _norm,
    np.linalg.eigvalsh: _eigvalsh,
    np.linalg.svd: _svd,
    np.linalg.solve: _solve,
    np.sort: _sorted,
    np.var: _variance,
    np.std: lambda x, **named: np.sqrt(np.var(x, **named)),
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.copy: lambda x, **_named: Dual(x.value.copy(), x.changes.copy()),
    np.ravel: lambda x: x.reshape(-1),
    np.reshape: lambda x, shape, **_named: x.reshape(shape),
    np.transpose: lambda x, axes=None: Dual(
        np.transpose(x.value, axes),
        np.transpose(x.changes, (0, *(a % x.ndim + 1 for a in axes or range(x.ndim)[::-1]))),
    ),
    np.swapaxes: lambda x, a, b: Dual(
        x.value.swapaxes(a, b), x.changes.swapaxes(_change_axes(a, x.ndim), _change_axes(b, x.ndim))
    ),
    np.broadcast_to: lambda x, shape: Dual(
        np.broadcast_to(x.value, shape),
        np.broadcast_to(_aligned(x.changes, len(shape)), (len(x.changes), *shape)),
    ),
    np.put_along_axis: _put_along_axis,
    **{f: _constant_like(f) for f in (np.zeros_like, np.ones_like, np.empty_like, np.full_like)},
    **{
        f: _linear(f)
        for f in (
            *(np.cumsum, np.diff, np.trace, np.diagonal, np.take, np.take_along_axis, np.repeat),
            *(np.squeeze, np.expand_dims, np.moveaxis, np.roll, np.flip, np.tile, np.triu, np.tril),
        )
    },
}  # fmt: skip
BILINEAR_FUNCTIONS = frozenset(
    {np.dot, np.tensordot, np.outer, np.inner, np.cross, np.vdot, np.kron}
)
VALUE_FUNCTIONS = frozenset(
    {
        *(np.shape, np.ndim, np.size, np.any, np.all, np.argmax, np.argmin, np.argsort),
        *(np.array_equal, np.allclose, np.isclose, np.iscomplexobj, np.isrealobj),
        *(np.count_nonzero, np.nonzero, np.flatnonzero, np.argwhere),
    }
)
ARRAY_METHODS = frozenset(
    "sum mean max min var std any all argmax argmin argsort copy ravel swapaxes transpose cumsum "
    "diagonal trace take repeat squeeze clip dot nonzero".split()
)
