"""Functions that compiled code calls by address: FFTW's transforms, right-hand sides.

A compiled function that contains a fixed address cannot be cached. Here addresses are integer
arguments, so that all code can be cached, and one compiled time loop serves every right-hand side.
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
    """Generate a call of the function at the address `arguments[0]` with the others, all int64."""
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
    """Call ``void f(int64 context, int64 member, int64 source, int64 target)`` at `address`."""
    return types.void(*[types.int64] * 5), _codegen


def _array_of(dtype: types.Type) -> Any:
    """Intrinsic function (address, shape) -> array of this dtype, for compiled code."""

    @intrinsic
    def array(_typing: Any, address: Any, shape: Any) -> Any:
        """Array of this dtype and shape at an address, as an intrinsic of numba."""
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
    """A function of four int64 that compiled code calls by address; a decorator.

    It is compiled on first use, while numba's `cfunc` compiles when the module is imported.

    Parameters
    ----------
    function : callable
        ``f(context, member, source, target)``, in the part of Python that numba compiles.
    announced : str, optional
        See `compilation.njit`.
    """

    def __init__(self, function: Callable[..., Any], announced: str | None = None) -> None:
        compiled = njit(cache=True, announced=announced)
        self._compiled = compiled(function)

    @classmethod
    def announced(cls, title: str) -> Callable[..., Any]:
        """The decorator for a function that takes more than a second to compile."""
        return lambda function: cls(function, title)

    @property
    def address(self) -> int:
        """The address of the compiled function, for `evaluate`."""
        with COMPILING:
            result = self._compiled.get_compile_result(types.void(*[types.int64] * 4))
            return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)

    def __call__(self, context: int, member: int, source: int, target: int) -> None:
        self._compiled(context, member, source, target)


class PythonFunction:
    """A Python function that compiled code calls by address, like a `CompiledFunction`.

    If it raises an exception, compiled code continues with nan as its values; `check` raises it.

    Parameters
    ----------
    function : callable
        function(member, source, target) reads the array `source` and fills the array `target`.
    size : int
        The length of both arrays.
    dtype : numpy dtype
        complex128 or float64.
    target_size : int, optional
        The length of `target`, if it differs.
    """

    _prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)

    def __init__(
        self,
        function: Callable[..., Any],
        size: int,
        dtype: Any = np.complex128,
        target_size: int | None = None,
    ) -> None:
        """Callback of a Python function on `size` numbers, which writes `target_size` numbers."""
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
        """Call the function; keep its first error for the caller, and write nan then and later."""
        values = self._array(target, self._target_size)
        if self._error is not None:
            values[:] = np.nan
            return
        try:
            self._function(member, self._array(source, self._size), values)
        except BaseException as error:  # KeyboardInterrupt too: compiled code would lose it
            self._error = error
            values[:] = np.nan

    def _array(self, address: int, size: int) -> np.ndarray:
        memory = (ctypes.c_char * (size * self._dtype.itemsize)).from_address(address)
        return np.frombuffer(memory, self._dtype)
