"""Records that Python fills in and compiled code reads by name, and pointers to numbers.

A compiled function that takes a tuple of thirty arrays has two hundred arguments to the compiler,
at every level at which it is handed on: most of the time that compilation takes. A record is one
pointer. Its layout is written down once; NumPy's structured dtype and the attributes that compiled
code sees derive from it.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, register_model

_WORD = ir.IntType(64)
_KINDS: dict[type, tuple[Any, types.Type]] = {
    int: (np.int64, types.int64),
    float: (np.float64, types.float64),
}


class _RecordType(types.Type):
    def __init__(self, name: str, fields: dict[str, type]):
        super().__init__(name=f"Record({name})")
        self.fields = {field: _KINDS[kind][1] for field, kind in fields.items()}
        self.places = {field: place for place, field in enumerate(fields)}


@register_model(_RecordType)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _WORD)


@infer_getattr
class _Fields(AttributeTemplate):
    key = _RecordType

    def generic_resolve(self, record, name):
        return record.fields.get(name)


def _pointer(builder, record, address, name):
    kind = ir.DoubleType() if record.fields[name] == types.float64 else _WORD
    place = builder.add(address, ir.Constant(_WORD, 8 * record.places[name]))
    return builder.inttoptr(place, kind.as_pointer())


@lower_getattr_generic(_RecordType)
def _read(_context, builder, record, address, name):
    return builder.load(_pointer(builder, record, address, name))


@lower_setattr_generic(_RecordType)
def _write(_context, builder, signature, arguments, name):
    record = signature.args[0]
    builder.store(arguments[1], _pointer(builder, record, arguments[0], name))


class Layout:
    """The fields of a record, 8 bytes each.

    Parameters
    ----------
    name : str
        Told apart by it: no two layouts have the same.
    fields : {str: int or float}
        In their order in memory. Addresses of arrays are integers.

    Attributes
    ----------
    dtype : numpy.dtype
        For arrays of such records, which Python fills in by `records[i]["name"] = value`.
    at : callable
        at(address) is the record at an address, in compiled code: ``record.name`` reads a field
        and ``record.name = value`` writes one.
    """

    def __init__(self, name: str, fields: dict[str, type]):
        self.dtype = np.dtype([(field, _KINDS[kind][0]) for field, kind in fields.items()])
        record = _RecordType(name, fields)

        @intrinsic
        def at(_typing, address):
            return record(types.int64), lambda _context, _builder, _signature, values: values[0]

        self.at = at

    def filled(self, **values: Any) -> "Record":
        """A record with these numbers; of arrays and records it has the addresses."""
        record = np.zeros(1, self.dtype)
        if set(values) != set(self.dtype.names or ()):
            raise ValueError(f"A record has fields {self.dtype.names}, not {tuple(values)}.")
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value = value.ctypes.data
            record[name] = value.address if isinstance(value, Record) else value
        return Record(record, values)

    def block(self, first: str, last: str) -> slice:
        """The places of neighbouring fields among the 8-byte words of a record."""
        names = self.dtype.names or ()
        return slice(names.index(first), names.index(last) + 1)


class Record:
    """A record for compiled code, with the arrays whose addresses are in it.

    Attributes
    ----------
    address : int
        Where it lies.
    """

    def __init__(self, record: np.ndarray, values: dict[str, Any]):
        self._record, self._values = record, values
        self.address: int = record.ctypes.data

    def __getattr__(self, name: str) -> Any:
        """The number or the array of a field."""
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None


@intrinsic
def numbers_at(_typing, address, first, like):
    """The numbers from an address on, from the one with index `first`, of the type of `like`.

    p[k] reads and writes one of them. Nothing is checked, and the compiler has less to do than
    for an array.
    """

    def codegen(context, builder, signature, values):
        begin = builder.inttoptr(values[0], context.get_value_type(signature.return_type))
        return builder.gep(begin, [values[1]])

    return types.CPointer(like)(types.int64, types.int64, like), codegen
