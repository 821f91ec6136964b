"""Two contents of every kind that functions and kinds may hold, by how they were attacked.

`TOLD` has those that can be read, `REFUSED` those that cannot. An entry makes an object of its kind
from 1 or 2.
"""

import array
import collections
import contextlib
import ctypes
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib.util
import io
import itertools
import logging
import operator
import pathlib
import queue
import random
import re
import sys
import threading
import types
import typing
import uuid
import weakref

import numba
import numpy as np
import scipy.integrate
import scipy.interpolate
import scipy.optimize
import scipy.sparse
import scipy.spatial
import scipy.special
import scipy.stats
from scipy.spatial.transform import Rotation

import meanfield as mf
from meanfield.core.identity import digest

X = np.linspace(0.0, 1.0, 6)


class Plain:
    """Attributes."""

    def __init__(self, x):
        self.x = x

    def __call__(self, t):
        return self.x * t

    def method(self, t):
        return self.x + t


class Slotted:
    """One slot."""

    __slots__ = ("x", "y")

    def __init__(self, x):
        self.x = x


class Below(Slotted):
    """A slot of the same name below another, and attributes."""

    __slots__ = ("__dict__", "x")

    def __init__(self, x, below=0):
        Slotted.x.__set__(self, x)
        self.x = below


@dataclasses.dataclass(slots=True)
class FirstData:
    """A dataclass with slots."""

    a: float = 0.0


@dataclasses.dataclass(slots=True)
class SecondData(FirstData):
    """A dataclass with slots below another."""

    b: float = 0.0


@dataclasses.dataclass
class Listing:
    """A dataclass whose default is computed."""

    a: list = dataclasses.field(default_factory=lambda: [1])


class Point(typing.NamedTuple):
    """A tuple with names."""

    x: float
    y: float = 0.0


class Level(enum.Enum):
    """Two levels."""

    ONE = 1
    TWO = 2


class Flag(enum.IntFlag):
    """Two flags."""

    ONE = 1
    TWO = 2


class Computing:
    """A property that is kept."""

    def __init__(self, x):
        self._x = x

    @functools.cached_property
    def value(self):
        return 2.0


class Group:
    """A group, which has an identity of another meaning."""

    def __init__(self, n):
        self.n = n

    def identity(self):
        return np.eye(3)


class Asked(dict):
    """A dictionary that hides what it holds."""

    def items(self):
        return ()

    def __iter__(self):
        return iter(())

    def __getattr__(self, name):
        raise ValueError(name)


class Structure(ctypes.Structure):
    """A number of C."""

    _fields_: typing.ClassVar = [("a", ctypes.c_int)]


class Drift(mf.ZonalDrift):
    """A drift of a user's, with more than its parameters."""

    def __init__(self, b: float):
        self._set(b=b, spline=None)

    def slope(self, t):
        return 0 * t + self.b


def _below(base):
    """Class derived from a built-in one."""
    return type("Own", (base,), {"__module__": __name__})


def _with(value, x, name="x"):
    """An object with one more attribute."""
    setattr(value, name, x)
    return value


def _closure(value):
    return lambda t: value * t


def _cycle(x):
    found: list = [x]
    found.append([found, found] if x == 1 else [found, [found]])
    return found


def _knot(x):
    outer: list = []
    inner: list = [outer]
    inner[0] = outer if x == 1 else inner
    outer.append(inner)
    return outer


def _calls_itself(x):
    def f(n):
        return f(n - 1) if n else x

    return f


def _wraps_a_library(x):
    return functools.wraps(np.linalg.norm)(lambda t: x * t)


def _tries(x):
    """The same instructions, but for what is tried."""
    if x == 1:

        def f(t):
            a = t.b
            try:
                return a.c
            except ValueError:
                return 0
    else:

        def f(t):
            try:
                a = t.b
                return a.c
            except ValueError:
                return 0

    return f


def _imports(x, text):
    """A function that imports a module of one's own, of which there are two."""
    module = types.ModuleType(f"own_{x}")
    exec(f"A = {x}\nclass B:\n    c = A\n", vars(module))
    vars(module)["__name__"] = "own"
    names: dict = {}
    exec(f"def f(t):\n    {text}", names)
    return names["f"], module


class _InModules:
    """An object that is there with a module of one's own."""

    def __init__(self, text):
        self.text = text

    def __call__(self, x):
        function, module = _imports(x, self.text)
        sys.modules["own"] = module
        return function


def _uses(text):
    """A function that finds other code at run time."""
    names: dict = {"importlib": importlib, "own": types.ModuleType("own")}
    exec(f"def f(t):\n    {text}", names)
    return lambda _x: names["f"]


def _frames():
    return sys._getframe()


def _raising():
    def value(_self):
        raise ValueError("not now")

    found = functools.cached_property(value)
    found.__set_name__(None, "value")
    return found


def _structured(x, at="a"):
    made = np.zeros(2, dtype=[(at, "f8"), ("n", "i2"), ("o", "U3")])
    made[at] = x
    return made


def _with_gaps(x):
    made = np.frombuffer(np.random.default_rng().bytes(64), dtype=np.uint8).copy()
    made = made.view(np.dtype({"names": ["a"], "formats": ["u1"], "itemsize": 16}))
    made["a"] = x
    return made


def _long(x):
    made = np.frombuffer(np.random.default_rng().bytes(64), dtype=np.uint8).copy()
    made = made.view(np.longdouble)[:2]
    made[:] = x
    return made


def _frame(x):
    import pandas as pd

    return pd.DataFrame({"a": [x, 2.0], "b": ["u", "v"]})


def _labelled(x):
    import xarray as xr

    return xr.DataArray([x, 2.0], dims="s", coords={"s": [0.0, 1.0]})


def _compiled(**options):
    @numba.njit(**options)
    def f(t):
        return t + 1.0

    return f


def _callback(x):
    return numba.cfunc("float64(float64)")(lambda t: t + x)


def _compiled_ufunc(x):
    return numba.vectorize(lambda t: t + x)


def _generator(x):
    yield x


def _ran(method):
    return [method(*np.zeros(0)) for _ in range(3)]


def _after(value, calls):
    """An object after calls that compute and keep something."""
    with contextlib.suppress(Exception):
        calls(value)
    return value


TOLD = {
    # plain
    "int": lambda x: 10**5000 + x,
    "float": float,
    "sign of zero": lambda x: 0.0 if x == 1 else -0.0,
    "nan": lambda x: np.nan if x == 1 else -np.nan,
    "type of a number": lambda x: 1 if x == 1 else 1.0,
    "bool": lambda x: x == 1,
    "complex": lambda x: 1j * x,
    "str": str,
    "surrogate": lambda x: "\ud800" * x,
    "bytes": lambda x: bytes([x]),
    "bytes as str": lambda x: b"a" if x == 1 else "a",
    "bytearray": lambda x: bytearray([x]),
    "range": range,
    "slice": slice,
    "slice of objects": lambda x: slice(Plain(x)),
    "path": lambda x: pathlib.Path(f"a{x}"),
    "path after use": lambda x: _after(pathlib.Path(f"a{x}"), lambda p: (hash(p), str(p))),
    "date": lambda x: datetime.date(2000, 1, x),
    "datetime": lambda x: datetime.datetime(2000, 1, x, tzinfo=datetime.UTC),
    "time zone": lambda x: datetime.timezone(datetime.timedelta(hours=x)),
    "timedelta": lambda x: datetime.timedelta(seconds=x),
    "decimal": lambda x: decimal.Decimal("1.0" if x == 1 else "1.00"),
    "fraction": lambda x: fractions.Fraction(x, 7),
    "uuid": lambda x: uuid.UUID(int=x),
    "pattern": lambda x: re.compile(f"a{x}"),
    "flags of a pattern": lambda x: re.compile("a", re.IGNORECASE if x == 1 else re.DOTALL),
    # containers
    "list": lambda x: [x, [x]],
    "list or tuple": lambda x: [1] if x == 1 else (1,),
    "nested": lambda x: [[1, 2]] if x == 1 else [[1], 2],
    "dict": lambda x: {"a": x},
    "keys": lambda x: {x: "a"},
    "dict of objects": lambda x: {(1, x): Plain(x), frozenset("abc"): Plain(3)},
    "set": lambda x: {"a", "b", "c", x},
    "set of frozensets": lambda x: {frozenset("abcdef"), frozenset(["g", x])},
    "set or frozenset": lambda x: {1} if x == 1 else frozenset([1]),
    "deque": lambda x: collections.deque([x], 3),
    "length of a deque": lambda x: collections.deque([1], x),
    "defaultdict": lambda x: collections.defaultdict(int, a=x),
    "default factory": lambda x: collections.defaultdict(lambda: x),
    "ordered dict": lambda x: collections.OrderedDict([("a", 1), ("b", 2)][:: 3 - 2 * x]),
    "counter": lambda x: collections.Counter("a" * x),
    "chain of maps": lambda x: collections.ChainMap({"a": 1}, {"a": x}),
    "mapping proxy": lambda x: types.MappingProxyType({"a": x}),
    "namespace": lambda x: types.SimpleNamespace(a=x),
    "array": lambda x: array.array("d", [x]),
    "type of an array": lambda x: array.array("i" if x == 1 else "l", [1]),
    "cycle": _cycle,
    "knot": _knot,
    "named tuple": lambda x: Point(x),
    "fields of a named tuple": lambda x: collections.namedtuple("P", "a b" if x == 1 else "b a"),
    # derived from built-in classes
    **{
        f"attribute of a {base.__name__}": lambda x, base=base: _with(_below(base)(), x)
        for base in (list, dict, set, frozenset, tuple, str, bytes, int, float, complex, bytearray)
    },
    "content of an int": lambda x: _below(int)(x),
    "content of a float": lambda x: _below(float)(x),
    "content of a str": lambda x: _below(str)(x),
    "attribute of an array": lambda x: _with(np.zeros(3).view(_below(np.ndarray)), x),
    "content of an array": lambda x: np.full(3, x).view(_below(np.ndarray)),
    "content of a path": lambda x: _below(type(pathlib.Path()))(f"a{x}"),
    "dict that hides": lambda x: Asked(a=x),
    "base": lambda x: _below(list if x == 1 else tuple)(),
    # objects
    "attributes": Plain,
    "slots": Slotted,
    "slot that is not set": lambda x: _with(Slotted(1), 1, "x" if x == 1 else "y"),
    "slots of one name": Below,
    "slot below another": lambda x: Below(0, x),
    "attributes beside slots": lambda x: _with(Below(0), x, "z"),
    "dataclass with slots": FirstData,
    "dataclass with slots below another": lambda x: SecondData(x, 1.0),
    "default factory of a dataclass": lambda x: dataclasses.make_dataclass(
        "D", [("a", list, dataclasses.field(default_factory=lambda: [x]))]
    ),
    "content of a dataclass": lambda x: Listing([x]),
    "enum": Level,
    "flag": Flag,
    "values of an enum": lambda x: enum.Enum("E", {"A": x}),
    "property that was assigned": lambda x: _with(Computing(1), 2.0 + x, "value"),
    "property that was computed": lambda x: _after(Computing(x), lambda c: c.value),
    "group with an identity": Group,
    "weak kinds of itself": lambda x: _with(Plain(x), None, "y"),
    "object that holds itself": lambda x: _after(Plain(x), lambda p: setattr(p, "p", p)),
    # classes
    "class attribute": lambda x: type("C", (), {"a": x}),
    "base class": lambda x: type("C", (Plain if x == 1 else Slotted,), {}),
    "built-in base class": lambda x: type("C", (list if x == 1 else dict,), {}),
    "metaclass": lambda x: type("M", (type,), {"a": x})("C", (), {}),
    "property": lambda x: type("C", (), {"p": property(lambda _self: x)}),
    "static method": lambda x: type("C", (), {"p": staticmethod(lambda: x)}),
    "generic alias": lambda x: list[int] if x == 1 else list[float],
    "union": lambda x: int | (str if x == 1 else float),
    # functions
    "code": lambda x: (lambda t: t + 1) if x == 1 else (lambda t: t + 2),
    "operator": lambda x: (lambda t: t + 1) if x == 1 else (lambda t: t * 1),
    "kind of arguments": lambda x: (lambda a, b: a - b) if x == 1 else (lambda a, *, b: a - b),
    "default": lambda x: lambda t, a=x: t + a,
    "keyword default": lambda x: lambda t, *, a=x: t + a,
    "closure": _closure,
    "what is tried": _tries,
    "attribute of a function": lambda x: _with(_closure(1), x, "table"),
    "function that calls itself": _calls_itself,
    "wraps a library": _wraps_a_library,
    "wraps another": lambda x: functools.wraps(_closure)(lambda t: x),
    "set in the code": lambda x: (lambda t: t in {"a", "b"}) if x == 1 else (lambda t: t in {"a"}),
    "inner function": lambda x: lambda t: (lambda s: s + x)(t),
    "partial": lambda x: functools.partial(max, x),
    "keyword of a partial": lambda x: functools.partial(max, key=_closure(x)),
    "bound method": lambda x: Plain(x).method,
    "bound method of a built-in": lambda x: [x].count,
    "slot wrapper": lambda x: x.__add__,
    "super": lambda x: super(Below, Below(x)),
    "cached function": lambda x: functools.lru_cache(_closure(x)),
    "cached function after use": lambda x: _after(functools.cache(_closure(x)), lambda f: f(3)),
    "item getter": operator.itemgetter,
    "attribute getter": lambda x: operator.attrgetter(f"a{x}"),
    "method caller": lambda x: operator.methodcaller("a", b=x),
    "built-in": lambda x: min if x == 1 else max,
    "ufunc": lambda x: np.sin if x == 1 else np.cos,
    "special function": lambda x: scipy.special.expit if x == 1 else scipy.special.erf,
    "reduction": lambda x: np.add.reduce if x == 1 else np.multiply.reduce,
    "function of a library": lambda x: np.linalg.norm if x == 1 else np.linalg.det,
    "function of scipy": lambda x: scipy.integrate.quad if x == 1 else scipy.integrate.dblquad,
    "method of a library": lambda x: np.ndarray.sum if x == 1 else np.ndarray.mean,
    "module of a library": lambda x: np if x == 1 else np.linalg,
    "logger": lambda x: logging.getLogger(f"a.{x}"),
    "vectorised": lambda x: np.vectorize(_closure(x)),
    "vectorised after use": lambda x: _after(np.vectorize(_closure(x), otypes=[float]), _ran),
    "import": _InModules("import own; return own.A"),
    "import of a name": _InModules("from own import A; return A"),
    "import of a class": _InModules("from own import B as c; return c.c"),
    "import in an inner function": _InModules("def g(): import own; return own.A\n    return g()"),
    "import of a library": lambda x: (lambda: importlib.util) if x == 1 else (lambda: importlib),
    "compiled by numba": lambda x: numba.njit(_closure(float(x))),
    "compiled after use": lambda x: _after(numba.njit(lambda t: t + x), lambda f: f(1.0)),
    "options of numba": lambda x: _compiled(fastmath=x == 1),
    "callback of numba": _callback,
    "ufunc of numba": _compiled_ufunc,
    # numpy
    "vector": lambda x: np.full(3, float(x)),
    "shape": lambda x: np.zeros((2, 3) if x == 1 else (3, 2)),
    "dtype": lambda x: np.zeros(3, "f4" if x == 1 else "i4"),
    "order of bytes": lambda x: np.zeros(3, "<f8" if x == 1 else ">f8"),
    "view": lambda x: np.arange(10.0)[x : x + 6 : 2],
    "order in memory": lambda x: np.asfortranarray(np.arange(6.0).reshape(2, 3) * x),
    "scalar of an array": lambda x: np.float64(1) if x == 1 else np.array(1.0),
    "scalar": np.float32,
    "scalar or number": lambda x: np.float64(1.0) if x == 1 else 1.0,
    "long double": lambda x: np.longdouble(1) / 3 * (1 + (x - 1) * np.finfo(np.longdouble).eps),
    "long doubles": _long,
    "datetimes": lambda x: np.array([0], dtype="M8[s]" if x == 1 else "M8[ms]"),
    "strings": lambda x: np.array(["a" * x, "bb"]),
    "strings of any length": lambda x: np.array(["a" * x, "b" * 100], dtype="T"),
    "bytes of numpy": lambda x: np.array([b"a" * x, b"bb"]),
    "empty": lambda x: np.zeros((0, x)),
    "object array": lambda x: np.array([Plain(x), "a"], dtype=object),
    "shape of an object array": lambda x: np.full((2, 3) if x == 1 else (3, 2), "a", dtype=object),
    "structured": _structured,
    "names of fields": lambda x: _structured(1, "b" if x == 1 else "c"),
    "structured with objects": lambda x: np.array([(Plain(x),)], dtype=[("a", object)]),
    "structured with gaps": _with_gaps,
    "structured scalar": lambda x: _structured(x)[0],
    "record array": lambda x: _structured(x).view(np.recarray),
    "matrix": lambda x: np.array([[x]]).view(np.matrix),
    "masked data": lambda x: np.ma.masked_array([1, x], [False, False]),
    "mask": lambda x: np.ma.masked_array([1, 2], [False, x == 1]),
    "fill value": lambda x: np.ma.masked_array([1, 2], [False, True], fill_value=x),
    "hard mask": lambda x: np.ma.masked_array([1, 2], [False, True], hard_mask=x == 1),
    "numpy dtype": lambda x: np.dtype([("a" * x, "f8")]),
    "polynomial": lambda x: np.polynomial.Polynomial([x]),
    "old polynomial": lambda x: np.poly1d([x, 1]),
    "generator": np.random.default_rng,
    "generator after use": lambda x: _after(np.random.default_rng(0), lambda g: g.random(x)),
    "generator after spawning": lambda x: _after(np.random.default_rng(0), lambda g: g.spawn(x)),
    "method of a generator": lambda x: np.random.default_rng(x).standard_normal,
    "bits": np.random.Philox,
    "seeds": np.random.SeedSequence,
    "old generator": np.random.RandomState,
    "generator of Python": random.Random,
    # scipy
    "cubic spline": lambda x: scipy.interpolate.CubicSpline(X, X**x),
    "pchip": lambda x: scipy.interpolate.PchipInterpolator(X, X**x),
    "akima": lambda x: scipy.interpolate.Akima1DInterpolator(X, X**x),
    "piecewise polynomial": lambda x: scipy.interpolate.PPoly(np.full((2, 5), float(x)), X),
    "extrapolation": lambda x: scipy.interpolate.CubicSpline(X, X, extrapolate=x == 1),
    "Bernstein polynomial": lambda x: scipy.interpolate.BPoly(np.full((2, 5), float(x)), X),
    "B-spline": lambda x: scipy.interpolate.make_interp_spline(X, X**x),
    "interpolation": lambda x: scipy.interpolate.interp1d(X, X**x),
    "univariate spline": lambda x: scipy.interpolate.UnivariateSpline(X, X**x),
    "spline through points": lambda x: scipy.interpolate.InterpolatedUnivariateSpline(X, X**x),
    "bivariate spline": lambda x: scipy.interpolate.RectBivariateSpline(X, X, np.outer(X, X**x)),
    "grid": lambda x: scipy.interpolate.RegularGridInterpolator((X,), X**x),
    "rotation": lambda x: Rotation.from_rotvec([0, 0, x]),
    "sparse": lambda x: scipy.sparse.csr_array([[x, 0]]),
    "distribution": lambda x: scipy.stats.norm(0, x),
    "density of a distribution": lambda x: scipy.stats.norm(0, x).pdf,
    "triangles": lambda x: scipy.spatial.Delaunay(np.random.default_rng(x).random((9, 2))),
    "interpolation on triangles": lambda x: scipy.interpolate.LinearNDInterpolator(
        np.random.default_rng(0).random((9, 2)), np.full(9, x)
    ),
    "result": lambda x: scipy.optimize.OptimizeResult(x=x),
    "labelled array": _labelled,
    "labelled array after use": lambda x: _after(_labelled(x), lambda a: a.sel(s=0.0)),
    # this package
    "kind": lambda x: mf.USA(float(x)),
    "kind with a spline": lambda x: mf.Interaction(scipy.interpolate.CubicSpline(X, X**x)),
    "attribute of one's own kind": lambda x: _after(Drift(1.0), lambda d: d._set(spline=x)),
    "tokens": lambda x: mf.Tokens(np.eye(3)[: x + 1]),
    "density": lambda x: mf.Circle(8).density(lambda t: 1 + 0.1 * np.cos(x * t)),
}

if importlib.util.find_spec("sympy"):
    import sympy

    TOLD["sympy"] = lambda x: _after(sympy.Symbol("a") ** x + sympy.pi, hash)


REFUSED = {
    "lock": lambda _x: threading.Lock(),
    "event": lambda _x: threading.Event(),
    "local": lambda _x: threading.local(),
    "queue": lambda _x: queue.SimpleQueue(),
    "context": lambda x: contextlib.nullcontext(threading.Lock()),
    "file": lambda _x: sys.__stderr__,
    "bytes in memory": lambda x: io.BytesIO(bytes([x])),
    "text in memory": lambda x: io.StringIO(str(x)),
    "memoryview": lambda x: memoryview(bytes([x])),
    "iterator": lambda x: iter([x]),
    "iterator of itertools": lambda x: itertools.cycle([x]),
    "map": lambda x: map(str, [x]),
    "enumeration": lambda x: enumerate([x]),
    "generator function": _generator,
    "weak reference": lambda x: weakref.ref(Plain),
    "weak dictionary": lambda x: weakref.WeakValueDictionary(a=Plain),
    "dictionary of weak keys": lambda x: weakref.WeakKeyDictionary({Plain: x}),
    "dict view": lambda x: {"a": x}.items(),
    "code frame": lambda _x: _frames(),
    "exception": lambda x: ValueError(x),
    "number of C": ctypes.c_double,
    "structure of C": lambda x: type("S", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_int)]})(
        x
    ),
    "array of C": lambda x: (ctypes.c_int * 2)(x),
    "pointer of C": lambda x: ctypes.pointer(ctypes.c_int(x)),
    "function of C": lambda x: ctypes.CFUNCTYPE(ctypes.c_int)(lambda: x),
    "ufunc of a function": lambda x: np.frompyfunc(_closure(x), 1, 1),
    "attribute of frompyfunc": lambda x: Plain(np.frompyfunc(_closure(x), 1, 1)),
    "k-d tree": lambda x: scipy.spatial.KDTree(np.full((3, 2), float(x))),
    "k-d tree of C": lambda x: scipy.spatial.cKDTree(np.full((3, 2), float(x))),
    "callable of C": lambda x: scipy.LowLevelCallable(ctypes.CFUNCTYPE(ctypes.c_double)(lambda: x)),
    "below random.Random": lambda x: _below(random.Random)(x),
    "iterator of numpy": lambda x: np.nditer([np.zeros(x)]),
    "flat iterator": lambda x: np.full(3, x).flat,
    "property that raises": lambda x: _with(
        type(
            "R",
            (Computing,),
            {
                "__module__": __name__,
                "value": _raising(),
            },
        )(x),
        1,
        "value",
    ),
    "property with a lock": lambda x: _with(Computing(x), threading.Lock(), "value"),
    "list that is too deep": lambda x: functools.reduce(lambda a, _: [a], range(10**5), x),
    "eval": _uses("return eval('t')"),
    "exec": _uses("exec('t = 1')"),
    "globals": _uses("return globals()['own'].A"),
    "importlib": _uses("return importlib.import_module('own')"),
    "importlib imported": _uses("from importlib import import_module; return import_module('own')"),
    "alias of eval": lambda _x: functools.partial(eval),
    "__import__": _uses("return __import__('own')"),
    "inner eval": _uses("return lambda: eval('t')"),
    "pandas": _frame,
}

if not hasattr(Rotation.identity(), "__dict__"):  # a class of C before scipy 1.17
    REFUSED["rotation"] = TOLD.pop("rotation")


def digests(which=TOLD):
    """Digests of both contents of all kinds."""
    return {name: [digest(make(1)), digest(make(2))] for name, make in which.items()}
