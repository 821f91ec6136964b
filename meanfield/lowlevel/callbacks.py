"""Functions that compiled code calls by address: FFTW's transforms, right-hand sides.

numba cannot keep a compiled function in its cache when the function refers to a fixed
address. Here addresses are ordinary integer arguments, so everything stays cacheable, and
one time loop, compiled once, serves every right-hand side.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .compilation import COMPILING, njit
from .records import array_value

ADDRESS_TYPE = ir.IntType(64)


def _codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    """Call the function at the first argument, an address, with the others, all int64."""
    kind = ir.FunctionType(ir.VoidType(), [ADDRESS_TYPE] * (len(arguments) - 1)).as_pointer()
    builder.call(builder.inttoptr(arguments[0], kind), list(arguments[1:]))
    return context.get_dummy_value()


@intrinsic
def call(_typing: Any, address: Any, first: Any, second: Any, third: Any) -> Any:
    """Call ``void f(int64, int64, int64)`` that lives at `address`: an FFTW transform."""
    return types.void(*[types.int64] * 4), _codegen


@intrinsic
def evaluate(
    _typing: Any, address: Any, context: Any, member: Any, source: Any, target: Any
) -> Any:
    """Call ``void f(int64 context, int64 member, int64 source, int64 target)``: N of a member."""
    return types.void(*[types.int64] * 5), _codegen


def _array_of(dtype: types.Type) -> Any:
    """An intrinsic that makes arrays of numbers of this type from an address and a shape."""

    @intrinsic
    def array(_typing: Any, address: Any, shape: Any) -> Any:
        kind = types.Array(dtype, len(shape), "C")

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lengths = [
                context.cast(builder, length, kind, types.intp)
                for length, kind in zip(
                    cgutils.unpack_tuple(builder, arguments[1], len(shape)), shape, strict=True
                )
            ]
            return array_value(context, builder, kind, arguments[0], lengths)

        return kind(types.int64, shape), codegen

    return array


complex_array = _array_of(types.complex128)
"""The complex128 array at an address, of a shape, in compiled code."""

float_array = _array_of(types.float64)
"""The float64 array at an address, of a shape, in compiled code."""

integer_array = _array_of(types.int64)
"""The int64 array at an address, of a shape, in compiled code."""


class CompiledFunction:
    """A function of four int64, compiled on first use, that compiled code calls by address.

    A decorator, where numba's own `cfunc` would compile as soon as the module is imported.

    Parameters
    ----------
    function : callable
        ``f(context, member, source, target)``, in the part of Python that numba compiles.
    announced : str, optional
        See `compilation.njit`.
    """

    def __init__(self, function: Callable[..., Any], announced: str | None = None) -> None:
        compiled = njit(cache=True, announced=announced, error_model="numpy")
        self._compiled = compiled(function)

    @classmethod
    def announced(cls, what: str) -> Callable[..., Any]:
        """The decorator for a function that takes more than a second to compile."""
        return lambda function: cls(function, what)

    @property
    def address(self) -> int:
        """The address of the compiled function, for `evaluate`."""
        with COMPILING:
            result = self._compiled.get_compile_result(types.void(*[types.int64] * 4))
            return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)

    def __call__(self, context: int, member: int, source: int, target: int) -> None:
        self._compiled(context, member, source, target)


class PythonFunction:
    """A function of Python that compiled code calls by address, as it calls a `CompiledFunction`.

    An exception of it is kept: compiled code goes on, with nan for its values.

    Parameters
    ----------
    function : callable
        function(member, source, target) of two arrays: it reads the first and fills the second.
    size : int
        Their length.
    dtype : numpy dtype
        complex128 or float64.
    target_size : int, optional
        The length of the second one, where it is another.
    """

    _prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)

    def __init__(
        self,
        function: Callable[..., Any],
        size: int,
        dtype: Any = np.complex128,
        target_size: int | None = None,
    ) -> None:
        self._function, self._dtype = function, np.dtype(dtype)
        self._size, self._target_size = size, size if target_size is None else target_size
        self._error: BaseException | None = None
        self._callback = self._prototype(self._called)
        self.address: int = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def __call__(self, context: int, member: int, source: int, target: int) -> None:
        self._called(context, member, source, target)
        self.check()

    def check(self) -> None:
        """Raise the first error since the last check."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _called(self, _context: int, member: int, source: int, target: int) -> None:
        values = self._array(target, self._target_size)
        if self._error is not None:
            values[:] = np.nan
            return
        try:
            self._function(member, self._array(source, self._size), values)
        except BaseException as error:  # also an interruption: it must not be lost in compiled code
            self._error = error
            values[:] = np.nan

    def _array(self, address: int, size: int) -> np.ndarray:
        memory = (ctypes.c_char * (size * self._dtype.itemsize)).from_address(address)
        return np.frombuffer(memory, self._dtype)
