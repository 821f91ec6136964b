"""Functions called by address, and arrays found by address."""

import ctypes

import numpy as np
import pytest
from numba import njit

from meanfield.lowlevel.callbacks import (
    call,
    complex_array,
    evaluate,
    float_array,
    integer_array,
)

WORD = ctypes.c_int64


@njit
def _call(address, first, second, third):
    call(address, first, second, third)


@njit
def _evaluate(address, context, member, source, target):
    evaluate(address, context, member, source, target)


@pytest.mark.parametrize(
    ("caller", "count"), [(_call, 3), (_evaluate, 4)], ids=["call", "evaluate"]
)
def test_the_arguments_arrive_as_whole_words_in_order(caller, count):
    received = []
    callback = ctypes.CFUNCTYPE(None, *[WORD] * count)(lambda *words: received.append(words))
    words = (-1, 2**62 + 1, -(2**63), 5)[:count]
    caller(ctypes.cast(callback, ctypes.c_void_p).value, *words)
    assert received == [words]


@pytest.mark.parametrize(
    ("view", "dtype"),
    [(complex_array, np.complex128), (float_array, np.float64), (integer_array, np.int64)],
    ids=["complex", "float", "integer"],
)
def test_an_array_at_an_address_is_the_memory_itself(view, dtype):
    @njit
    def double(address, rows, columns):
        array = view(address, (rows, columns))
        for i in range(rows):
            for j in range(columns):
                array[i, j] = 2 * array[i, j]

    memory = np.arange(6).reshape(2, 3).astype(dtype)
    double(memory.ctypes.data, 2, 3)
    np.testing.assert_array_equal(memory, 2 * np.arange(6).reshape(2, 3))
