"""Functions that compiled code calls by address: FFTW's transforms, right-hand sides.

numba cannot keep a compiled function in its cache when the function refers to a fixed
address. Here addresses are ordinary integer arguments, so everything stays cacheable, and
one time loop, compiled once, serves every right-hand side: a compiled one or, through
`PythonFunction`, any Python callable.
"""

import ctypes
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

__all__ = ["PythonFunction", "call", "complex_array", "float_array", "integer_array"]


@intrinsic
def call(_typing, address, first, second, third):
    """Call the C function ``void f(int64, int64, int64)`` that lives at `address`."""

    def codegen(context, builder, _signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word] * 3).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kind), list(arguments[1:]))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), codegen


@intrinsic
def _pointer(_typing, address):
    def codegen(_context, builder, _signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), codegen


@njit(inline="always")
def complex_array(address, shape):
    """The complex128 array of this shape that starts at `address`."""
    return carray(_pointer(address), shape, np.complex128)


@njit(inline="always")
def float_array(address, shape):
    """The float64 array of this shape that starts at `address`."""
    return carray(_pointer(address), shape, np.float64)


@njit(inline="always")
def integer_array(address, shape):
    """The int64 array of this shape that starts at `address`."""
    return carray(_pointer(address), shape, np.int64)


class PythonFunction:
    """A Python function u -> N(u) in the form that the compiled time loop calls.

    Parameters
    ----------
    function : callable
        Takes an array (members, modes), which it must not keep, and returns another.
    shape : (int, int)
        Shape of both arrays.
    dtype : numpy dtype
        complex128 or float64.

    Notes
    -----
    An exception cannot travel through compiled code: it is kept in `error`, the values are
    set to nan, and whoever runs the loop raises it on return.
    """

    _prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

    def __init__(self, function: Callable, shape: tuple[int, int], dtype=np.complex128):
        self._shape, self._dtype = shape, np.dtype(dtype)
        self._function = function
        self._callback = self._prototype(self._evaluate)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value
        self.context = 0
        self.error: BaseException | None = None

    def _evaluate(self, _context, source, target):
        u, result = self._array(source), self._array(target)
        try:
            result[...] = self._function(u)
        except BaseException as error:  # kept, and raised by the caller of the loop
            self.error = error
            result[...] = np.nan

    def _array(self, address):
        size = int(np.prod(self._shape)) * self._dtype.itemsize
        memory = (ctypes.c_char * size).from_address(address)
        return np.frombuffer(memory, self._dtype).reshape(self._shape)
