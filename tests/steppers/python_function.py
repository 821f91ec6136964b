"""Right-hand sides in Python for the compiled time loop."""

import ctypes

import numpy as np


class PythonFunction:
    """A Python function u -> N(u) in the form that the compiled time loop calls.

    Parameters
    ----------
    function : callable
        Takes the coefficients of one member as an array (1, modes), which it must not keep,
        and returns those of N, (1, modes).
    modes : int
    dtype : numpy dtype
        complex128 or float64.
    """

    _prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)

    def __init__(self, function, modes, dtype=np.complex128):
        self._modes, self._dtype = modes, np.dtype(dtype)
        self._function = function
        self._callback = self._prototype(self._evaluate)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value
        self.context = 0
        self.speed = np.zeros(1)

    def _evaluate(self, _context, _member, source, target):
        self._array(target)[...] = self._function(self._array(source))

    def _array(self, address):
        memory = (ctypes.c_char * (self._modes * self._dtype.itemsize)).from_address(address)
        return np.frombuffer(memory, self._dtype).reshape(1, self._modes)
