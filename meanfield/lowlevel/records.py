"""Records that Python fills in and compiled code reads by name, and pointers to numbers.

For the compiler a tuple of thirty arrays is two hundred arguments of every function to which it is
passed, and most of the time of compilation. A record is a single pointer. NumPy's structured dtype
and the attributes in compiled code both derive from one `Layout`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Union

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import populate_array

_INT64 = ir.IntType(64)
_NUMBERS: dict[type, types.Type] = {int: types.int64, float: types.float64}
_ITEMS = {np.float64: types.float64, np.complex128: types.complex128, np.int64: types.int64}


class ArrayField(NamedTuple):
    """Field with the address of an array: the type of its numbers, and its shape.

    A length may be the name of another field of the record, an int.
    """

    dtype: type
    shape: tuple[int | str, ...]


def floats(*shape: int | str) -> ArrayField:
    """The field of a float64 array of this shape, see `ArrayField`."""
    return ArrayField(np.float64, shape)


def complexes(*shape: int | str) -> ArrayField:
    """The field of a complex128 array of this shape, see `ArrayField`."""
    return ArrayField(np.complex128, shape)


def integers(*shape: int | str) -> ArrayField:
    """The field of an int64 array of this shape, see `ArrayField`."""
    return ArrayField(np.int64, shape)


# A record in compiled code; its attributes are the fields, see `Layout.at`.
InCode = Any

Field = Union[type, ArrayField, "Layout"]


class _RecordType(types.Type):
    def __init__(self, name: str, fields: Mapping[str, Field]) -> None:
        """Type of a record, with types, indices and shapes of its fields."""
        super().__init__(name=f"Record({name})")
        self.shapes = {n: f.shape for n, f in fields.items() if isinstance(f, ArrayField)}
        self.fields = {field: _compiled_type(kind) for field, kind in fields.items()}
        self.indices = {field: index for index, field in enumerate(fields)}


def _compiled_type(kind: Field) -> types.Type:
    """The numba type of a field in compiled code."""
    if isinstance(kind, Layout):
        return kind.type
    if isinstance(kind, ArrayField):
        return types.Array(_ITEMS[kind.dtype], len(kind.shape), "C")
    return _NUMBERS[kind]


@register_model(_RecordType)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _INT64)


@infer_getattr
class _Fields(AttributeTemplate):
    key = _RecordType

    def generic_resolve(self, record: _RecordType, name: str) -> types.Type | None:
        return record.fields.get(name)


def _pointer(builder: Any, record: _RecordType, address: Any, name: str) -> Any:
    kind = ir.DoubleType() if record.fields[name] == types.float64 else _INT64
    field = builder.add(address, ir.Constant(_INT64, 8 * record.indices[name]))
    return builder.inttoptr(field, kind.as_pointer())


@lower_getattr_generic(_RecordType)
def _read(context: Any, builder: Any, record: _RecordType, address: Any, name: str) -> Any:
    """Generate code that loads a field, as an array if it has a shape."""
    value = builder.load(_pointer(builder, record, address, name))
    if name not in record.shapes:
        return value
    lengths = [
        ir.Constant(_INT64, length)
        if isinstance(length, int)
        else builder.load(_pointer(builder, record, address, length))
        for length in record.shapes[name]
    ]
    return array_value(context, builder, record.fields[name], value, lengths)


@lower_setattr_generic(_RecordType)
def _write(_context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    record = signature.args[0]
    builder.store(arguments[1], _pointer(builder, record, arguments[0], name))


def array_value(context: Any, builder: Any, kind: Any, address: Any, lengths: Any) -> Any:
    """Generate code for the array of type `kind` at an address, with these lengths of its axes."""
    item = ir.Constant(_INT64, kind.dtype.bitwidth // 8)
    strides = [item]
    for length in reversed(lengths[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = context.make_array(kind)(context, builder)
    data = builder.inttoptr(address, array.data.type)
    populate_array(array, data, lengths, strides, item, meminfo=None)
    return array._getvalue()


class Layout:
    """The fields of a record, 8 bytes each.

    Parameters
    ----------
    name : str
        A unique name.
    fields : {str: field}
        The fields in their order in memory: int, float, `floats(...)`, `complexes(...)`,
        `integers(...)` for arrays, and a Layout for another record. An int may be an address. Names
        of lengths in shapes that are no fields are appended as fields.

    Attributes
    ----------
    dtype : numpy.dtype
        The dtype for arrays of such records, filled in by `records[i]["name"] = value`.
    at : callable
        In compiled code at(address) is the record at an address: ``record.name`` reads a field, as
        a number, an array or a record, and ``record.name = value`` writes a number.
    """

    def __init__(self, name: str, fields: Mapping[str, Field]) -> None:
        """Lay fields out in 8 bytes each; lengths named in shapes become fields of integers."""
        self.fields = dict(fields)
        for kind in fields.values():
            if isinstance(kind, ArrayField):
                lengths = (length for length in kind.shape if isinstance(length, str))
                self.fields = {**self.fields, **{n: int for n in lengths if n not in self.fields}}
        numbers = {n: np.float64 if k is float else np.int64 for n, k in self.fields.items()}
        self.dtype = np.dtype(list(numbers.items()))
        self.type = record = _RecordType(name, self.fields)

        @intrinsic
        def at(_typing: Any, address: Any) -> Any:
            return record(types.int64), lambda _context, _builder, _signature, values: values[0]

        self.at = at

    def filled(self, **values: Any) -> "Record":
        """A record with these numbers, and with the addresses of these arrays and records.

        Lengths of arrays need not be given. Raises ValueError for missing or unknown fields, and
        for arrays whose type or shape is not that of the layout.
        """
        for name, kind in self.fields.items():
            if isinstance(kind, ArrayField) and name in values:
                array = values[name]
                lengths = zip(kind.shape, array.shape, strict=False)
                shape = [values.setdefault(n, k) if isinstance(n, str) else n for n, k in lengths]
                fits = list(array.shape) == shape and len(shape) == len(kind.shape)
                if not (fits and array.dtype == kind.dtype and array.flags.c_contiguous):
                    raise ValueError(f"{name}: {array.dtype} {array.shape} is not {kind}.")
        if set(values) != set(self.fields):
            raise ValueError(f"A record has fields {tuple(self.fields)}, not {tuple(values)}.")
        record = np.zeros(1, self.dtype)
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value = value.ctypes.data
            record[name] = value.address if isinstance(value, Record) else value
        return Record(record, values)

    def block(self, first: str, last: str) -> slice:
        """Slice of the fields from `first` to `last` among the 8-byte words of a record."""
        names = self.dtype.names or ()
        return slice(names.index(first), names.index(last) + 1)


class Record:
    """A record for compiled code; it keeps references to the arrays whose addresses it has.

    Attributes
    ----------
    address : int
        The address of the record.
    """

    def __init__(self, record: np.ndarray, values: dict[str, Any]) -> None:
        self._record, self._values = record, values
        self.address: int = record.ctypes.data

    def __getattr__(self, name: str) -> Any:
        """The number or the array of a field."""
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None


@intrinsic
def numbers_at(_typing: Any, address: Any, first: Any, example: Any) -> Any:
    """Pointer p to the number with index `first` at an address, of the type of `example`.

    p[k] reads and writes numbers. There are no checks, and it compiles faster than an array.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: np.ndarray) -> Any:
        begin = builder.inttoptr(values[0], context.get_value_type(signature.return_type))
        return builder.gep(begin, [values[1]])

    return types.CPointer(example)(types.int64, types.int64, example), codegen
