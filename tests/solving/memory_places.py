"""Arrays at places in memory that `malloc` does not choose: 0, 8, ..., 56 bytes beyond one of 64.

Sums may begin at the next place that a register can be loaded from at once, and so depend on where
an array lies. Numpy is given another allocator, and what the package keeps is forgotten.
"""

import ctypes
import functools
import sys
from contextlib import contextmanager

import numpy as np
from numba import cfunc, njit, types

from meanfield.lowlevel.callbacks import integer_array

HEADER = 16  # bytes before an array: where its block begins, and how long the array is
BLOCK = 64 + 56 + HEADER  # what a block has beyond its array
SET_HANDLER = 304  # place in the table of numpy's C functions
WORD = types.uint64

STATE = np.array([1], dtype=np.int64)  # of a linear congruential generator
ROOMS = "spaces", "engines", "models", "steppers", "dynamics", "lowlevel.legendre"
TABLES = tuple(f"meanfield.{room}" for room in ROOMS)
KEPT = []  # as long as the process lives: arrays may be freed late


def _of_libc(name, *arguments):
    function = ctypes.CDLL(None)[name]
    function.argtypes, function.restype = arguments, ctypes.c_size_t
    return function


c_malloc = _of_libc("malloc", ctypes.c_size_t)
c_free = _of_libc("free", ctypes.c_size_t)
c_memset = _of_libc("memset", ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t)
c_memcpy = _of_libc("memcpy", ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t)


@njit
def _placed(state, size):
    block = c_malloc(size + WORD(BLOCK))
    if block == 0:
        return block
    number = integer_array(np.int64(state), (1,))
    number[0] = number[0] * 6364136223846793005 + 1442695040888963407
    begin = (block + WORD(HEADER + 63)) & ~WORD(63)
    begin += WORD(8) * WORD((number[0] >> 40) & 7)
    header = integer_array(np.int64(begin - WORD(HEADER)), (2,))
    header[0], header[1] = np.int64(block), np.int64(size)
    return begin


def _malloc(state, size):
    return _placed(state, size)


def _calloc(state, count, size):
    begin = _placed(state, count * size)
    if begin != 0:
        c_memset(begin, 0, count * size)
    return begin


def _realloc(state, old, size):
    begin = _placed(state, size)
    if begin != 0 and old != 0:
        header = integer_array(np.int64(old - WORD(HEADER)), (2,))
        c_memcpy(begin, old, min(size, WORD(header[1])))
        c_free(WORD(header[0]))
    return begin


def _free(state, old, size):
    if old != 0:
        c_free(WORD(integer_array(np.int64(old - WORD(HEADER)), (2,))[0]))


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of numpy's headers."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("state", ctypes.c_void_p),
        ("functions", ctypes.c_void_p * 4),
    )


@functools.cache
def _handler():
    """The capsule that numpy takes."""
    functions = [
        cfunc(WORD(WORD, WORD))(_malloc),
        cfunc(WORD(WORD, WORD, WORD))(_calloc),
        cfunc(WORD(WORD, WORD, WORD))(_realloc),
        cfunc(types.void(WORD, WORD, WORD))(_free),
    ]
    addresses = (ctypes.c_void_p * 4)(*(function.address for function in functions))
    handler = _Handler(b"places", 1, STATE.ctypes.data, addresses)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    name = ctypes.create_string_buffer(b"mem_handler")
    capsule = new(ctypes.addressof(handler), ctypes.addressof(name), None)
    KEPT.extend([functions, handler, name, capsule])
    return capsule


def _set_handler(capsule):
    """Let numpy have an allocator; the one that it had."""
    table = ctypes.pythonapi.PyCapsule_GetPointer
    table.restype, table.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    functions = table(np._core._multiarray_umath._ARRAY_API, None)
    address = ctypes.c_void_p.from_address(functions + 8 * SET_HANDLER).value
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)(capsule)


def forget():
    """Clear the tables that functions of the package keep."""
    for name, module in list(sys.modules.items()):
        if name.startswith(TABLES):
            for kept in vars(module).values():
                if isinstance(kept, functools._lru_cache_wrapper):
                    kept.cache_clear()


@contextmanager
def random_places(seed):
    """New arrays of numpy lie at random places, in a context that begins with nothing kept."""
    capsule, STATE[0] = _handler(), seed
    forget()
    before = _set_handler(capsule)
    try:
        yield
    finally:
        _set_handler(before)
        forget()
