"""Contents of objects of Python, numpy and numba: the list of those that can be read completely.

A part of an object is a pair (path, value): the path is written as in Python, ".name" or "[0]".
"""

import array
import collections
import datetime
import decimal
import functools
import hashlib
import inspect
import operator
import re
import struct
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from .annotations import AnyObject

Part = tuple[str, AnyObject]
Contents = Callable[[AnyObject], Iterable[Part]]
POINTER = struct.calcsize("P")
MANAGED_WEAKREF, MANAGED_DICT = 1 << 3, 1 << 4  # Py_TPFLAGS: not part of __basicsize__
BITS = "biufcSUmM"  # kinds of dtypes whose arrays are read as bytes


class Unordered(list[Any]):
    """Parts whose order does not matter."""


class Pair(tuple[Any, Any]):
    """A key and its value in a mapping."""


class Bits(bytes):
    """Bytes that are their own digest."""


class Unreadable(Exception):
    """An object has contents that cannot be read."""


def words(*texts: str) -> list[Part]:
    """Texts as parts without a path."""
    return [("", text) for text in texts]


def unordered(values: Mapping[AnyObject, AnyObject]) -> Unordered:
    """The entries of a mapping in any order."""
    return Unordered(Pair(pair) for pair in values.items())


def each(values: Iterable[AnyObject]) -> Iterator[Part]:
    """The entries of a sequence as parts, with their indices as paths."""
    return ((f"[{i}]", value) for i, value in enumerate(values))


def contents_of(value: AnyObject) -> Iterable[Part]:
    """The parts of an object besides its attributes; raises Unreadable if they are not known.

    An object of a class derived from a built-in class has the parts of that class, and its slots.
    It is Unreadable if it has more memory than these need.
    """
    cls = type(value)
    if reader := EXACT.get(cls) or EXACT_BY_NAME.get(full_name(cls)):
        return reader(value)
    if issubclass(cls, np.dtype):
        return _reduced(value)
    base = next(c for c in cls.__mro__ if c in BASES or _is_scalar(c))
    derived = [c for c in cls.__mro__ if c not in base.__mro__]
    entries = [entry for c in derived for entry in vars(c).values()]
    slots = [entry for entry in entries if isinstance(entry, types.MemberDescriptorType)]
    if cls.__basicsize__ != _expected_size(cls, base, len(slots)):
        raise Unreadable
    reader = _array if _is_scalar(base) else BASES[base]
    return *reader(value), *_set_slots(value, slots)


def full_name(value: AnyObject) -> str:
    """Module and qualified name of a class or a function."""
    return f"{value.__module__}.{value.__qualname__}" if value.__module__ else value.__qualname__


def is_listed(cls: type) -> bool:
    """Whether `contents_of` gives all parts of the objects of a class, without attributes."""
    return cls in EXACT or full_name(cls) in EXACT_BY_NAME or issubclass(cls, np.dtype)


def _set_slots(value: AnyObject, slots: list[AnyObject]) -> Iterator[Part]:
    """The slots of an object that are set, as parts."""
    for slot in slots:
        try:
            slot_value = slot.__get__(value)
        except AttributeError:  # not set
            continue
        yield from words(slot.__qualname__)
        yield f".{slot.__name__}", slot_value


def _expected_size(cls: AnyObject, base: AnyObject, slots: int) -> int:
    """The expected ``__basicsize__``: the built-in class, slots, attributes and weak references."""
    has_dict = cls.__dictoffset__ != 0 and base.__dictoffset__ == 0
    has_weakref = cls.__weakrefoffset__ != 0 and base.__weakrefoffset__ == 0
    pointers = slots + (has_dict and not cls.__flags__ & MANAGED_DICT)
    pointers += has_weakref and not cls.__flags__ & MANAGED_WEAKREF
    return base.__basicsize__ + POINTER * pointers


# Arrays ----------------------------------------------------------------------------------------


def _is_scalar(cls: type) -> bool:
    return issubclass(cls, np.generic) and cls.__module__ == "numpy"


def _array(value: AnyObject) -> Iterator[Part]:
    """Shape, dtype and bytes of an array; structured arrays by field, as they may have padding."""
    array = np.asarray(value)
    array = array.view(np.ndarray)
    dtype = array.dtype
    yield "", array.shape
    if dtype.kind in BITS:
        yield "", dtype.str
        bits = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if dtype.kind in "fc" and np.finfo(dtype).nmant == 63:  # 10 bytes and padding
            length = np.dtype(np.longdouble).itemsize
            bits = np.ascontiguousarray(bits.reshape(-1, length)[:, :10])
        yield "", Bits(hashlib.sha256(bits.data).digest())
        return
    yield "", dtype
    if dtype.kind in "OT":
        yield from each(array.ravel().tolist())
    elif dtype.names:
        yield from ((f"[{name!r}]", array[name]) for name in dtype.names)
    elif dtype.kind == "V" and not dtype.hasobject:
        yield "", array.tobytes()
    else:
        raise Unreadable


# Others ----------------------------------------------------------------------------------------


def _attributes(*names: str) -> Contents:
    """A reader of objects that consist of these attributes."""
    return lambda value: ((f".{name}", getattr(value, name)) for name in names)


def _reduced(value: AnyObject) -> Iterator[Part]:
    """The entries of ``value.__reduce__()`` as parts."""
    return each(value.__reduce__())


def _dictionary(value: AnyObject) -> Unordered:
    return unordered(dict(dict.items(value)))


def _atom(cls: type) -> Contents:
    """A reader of objects of a class derived from `cls`, one of `ATOMS`."""
    return lambda value: [("", Bits(ATOMS[cls](value)))]


def _compiled(value: AnyObject) -> Iterator[Part]:
    """The parts of a function compiled by numba: function, options, and declared signatures."""
    yield ".py_func", value.py_func
    yield "", value.targetoptions
    yield "", [] if value._can_compile else [str(types) for types in value.nopython_signatures]


ATOMS: dict[type, Callable[[AnyObject], bytes]] = {  # bytes that determine the value
    type(None): lambda _value: b"",
    type(...): lambda _value: b"",
    type(NotImplemented): lambda _value: b"",
    bool: lambda value: b"%d" % value,
    int: lambda value: hex(int.__index__(value)).encode(),
    float: lambda value: struct.pack("<d", float.__float__(value)),
    complex: lambda value: struct.pack("<2d", *(p.__get__(value) for p in COMPLEX)),
    str: lambda value: str.encode(value, "utf-8", "surrogatepass"),
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
}
COMPLEX: AnyObject = (complex.real, complex.imag)

BASES: dict[type, Contents] = {  # also for derived classes
    object: lambda _value: (),
    **{cls: _atom(cls) for cls in (int, float, complex, str, bytes)},
    bytearray: lambda value: [("", bytes(memoryview(value)))],
    list: lambda value: each(list.__iter__(value)),
    tuple: lambda value: each(tuple.__iter__(value)),
    set: lambda value: [("", Unordered(set.__iter__(value)))],
    frozenset: lambda value: [("", Unordered(frozenset.__iter__(value)))],
    dict: lambda value: [("", _dictionary(value))],
    collections.OrderedDict: lambda value: each(collections.OrderedDict.items(value)),
    collections.defaultdict: lambda value: [
        (".default_factory", value.default_factory),
        ("", _dictionary(value)),
    ],
    collections.deque: lambda value: [
        ("", value.maxlen),
        *each(collections.deque.__iter__(value)),
    ],
    array.array: lambda value: [("", value.typecode), ("", array.array.tobytes(value))],
    functools.partial: _attributes("func", "args", "keywords"),
    property: _attributes("fget", "fset", "fdel"),
    staticmethod: _attributes("__func__"),
    classmethod: _attributes("__func__"),
    types.SimpleNamespace: lambda _value: (),
    PurePath: lambda value: words(str(value)),
    np.ndarray: _array,
}

EXACT: dict[type, Contents] = {
    types.MethodType: _attributes("__func__", "__self__"),
    types.MethodWrapperType: _attributes("__name__", "__self__"),
    **dict.fromkeys(
        (
            *(types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType),
            *(types.ClassMethodDescriptorType, types.MemberDescriptorType),
        ),
        _attributes("__name__", "__objclass__"),
    ),
    types.MappingProxyType: lambda value: [("", unordered(value))],
    types.GenericAlias: _attributes("__origin__", "__args__"),
    types.UnionType: _attributes("__args__"),
    range: _attributes("start", "stop", "step"),
    slice: _attributes("start", "stop", "step"),
    re.Pattern: _attributes("pattern", "flags"),
    functools.cached_property: _attributes("func"),
    functools._lru_cache_wrapper: _attributes("__wrapped__"),
    **dict.fromkeys(
        (
            type(inspect.FrameInfo.filename),  # of a named tuple
            *(operator.itemgetter, operator.attrgetter, operator.methodcaller, decimal.Decimal),
            *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta),
            datetime.timezone,
        ),
        _reduced,
    ),
    np.memmap: _array,
    np.ma.MaskedArray: lambda value: [
        *_array(value),
        (".mask", np.ma.getmaskarray(value)),
        ("", (value.fill_value, value.hardmask)),
    ],
    np.vectorize: _attributes("pyfunc", "otypes", "excluded", "cache", "signature"),
    np.random.Generator: _attributes("bit_generator"),
    **dict.fromkeys(
        (
            *(np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM),
            *(np.random.Philox, np.random.SFC64),
        ),
        _attributes("state", "seed_seq"),
    ),
    np.random.SeedSequence: _attributes("entropy", "spawn_key", "pool_size", "n_children_spawned"),
    np.random.RandomState: lambda value: (
        words("of numpy.random")
        if value is np.random.mtrand._rand
        else [("", value.get_state(legacy=False))]
    ),
}

EXACT_BY_NAME: dict[str, Contents] = {  # classes of modules that may not be loaded
    "numba.core.registry.CPUDispatcher": _compiled,
    "numba.core.ccallback.CFunc": lambda value: [
        (".py_func", value._pyfunc),
        ("", (str(value._sig), value._compiler.targetoptions)),
    ],
    "numba.np.ufunc.dufunc.DUFunc": lambda value: [
        ("", value._dispatcher.py_func),
        ("", (value._dispatcher.targetoptions, value.identity)),
    ],
    **{
        f"scipy.interpolate._fitpack2.{name}UnivariateSpline": lambda value: each(
            (value._data[:8], value._eval_args, value.ext)  # not the workspace of FITPACK
        )
        for name in ("", "Interpolated", "LSQ")
    },
}
