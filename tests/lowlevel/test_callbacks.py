"""Functions called by address, and arrays found by address."""

import ctypes

import numpy as np
import pytest
from numba import njit

from meanfield.lowlevel.callbacks import (
    PythonFunction,
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


def values_of(function, u):
    """N(u) as the compiled time loop obtains it."""
    target = np.empty_like(u)
    _evaluate(function.address, function.context, 0, u.ctypes.data, target.ctypes.data)
    return target


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


@pytest.mark.parametrize("dtype", [np.complex128, np.float64], ids=["complex", "float"])
def test_a_python_function_is_called_by_compiled_code(dtype):
    function = PythonFunction(lambda u: 3 * u + np.arange(4), 4, dtype)
    u = np.arange(1, 5).astype(dtype)
    np.testing.assert_array_equal(values_of(function, u), 3 * u + np.arange(4))
    assert function.error is None


def test_a_python_function_sees_one_member_as_a_row():
    shapes = []
    function = PythonFunction(lambda u: shapes.append(u.shape) or u, 4)
    values_of(function, np.ones(4, complex))
    assert shapes == [(1, 4)]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt], ids=lambda e: e.__name__)
def test_an_exception_is_kept_and_the_values_are_nan(error):
    def fail(_u):
        raise error("inside")

    function = PythonFunction(fail, 3)
    assert np.isnan(values_of(function, np.ones(3, complex))).all()
    assert isinstance(function.error, error)


def test_an_answer_of_the_wrong_shape_is_an_error_too():
    function = PythonFunction(lambda u: np.ones((5, 7)), 3)
    assert np.isnan(values_of(function, np.ones(3, complex))).all()
    assert isinstance(function.error, ValueError)
