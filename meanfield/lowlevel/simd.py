"""Vectors of eight floats, bits of floats and e^x, for loops that compilers do not vectorise.

A vector of eight floats is one value: `load` and `store` move it from and to memory; + - and * act
on all eight floats, also between a float and a vector. It is in one register of AVX-512, two of
AVX2, or four of NEON. Addresses that are multiples of 64 are fastest.

`as_bits` is there because maxima of integers are vectorised, those of floats are not;
`exponential`, because loops with the exponential function of the C library are not.
"""

import math
import operator
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

from .compilation import WITHIN, njit

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_INDICES = ir.VectorType(ir.IntType(32), LANES)

LOWEST_EXPONENT = -708.0  # e^-708 is the last whole exponent before denormal numbers
PER_LOG_2 = 1.4426950408889634
LOG_2, REST_OF_LOG_2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUNDING_SHIFT = 6755399441055744.0  # 1.5 * 2^52: a sum has the nearest integer in its last bits


def aligned(*shape: int) -> np.ndarray:
    """Array of zeros that begins at a cache line: loops over it are faster by a third."""
    size = math.prod(shape)
    memory = np.zeros(size + LANES)
    begin = -memory.ctypes.data % (8 * LANES) // 8
    return memory[begin : begin + size].reshape(shape)


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


@intrinsic
def address_of(_typing: Any, array: Any) -> Any:
    """The address of an array, the integer that `load` and `store` take."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(struct.data, ir.IntType(64))

    return types.int64(array), codegen


@intrinsic
def load(_typing: Any, address: Any) -> Any:
    """The eight floats at an address."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], _VECTOR.as_pointer()), align=8)

    return _LANES(types.int64), codegen


@intrinsic
def store(_typing: Any, address: Any, value: Any) -> Any:
    """Write eight floats to an address."""

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], _VECTOR.as_pointer())
        builder.store(arguments[1], pointer, align=8)
        return context.get_dummy_value()

    return types.void(types.int64, _LANES), codegen


def _store_two_from(first: int) -> Any:
    """Intrinsic that stores lanes `first` and `first` + 1 of a vector at an address."""

    @intrinsic
    def operation(_typing: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pair, two_indices = ir.VectorType(ir.DoubleType(), 2), ir.VectorType(ir.IntType(32), 2)
            index = ir.Constant(two_indices, [first, first + 1])
            lanes = builder.shuffle_vector(arguments[1], arguments[1], index)
            builder.store(lanes, builder.inttoptr(arguments[0], pair.as_pointer()), align=8)
            return context.get_dummy_value()

        return types.void(types.int64, _LANES), codegen

    return operation


store_first_two = _store_two_from(0)
store_middle_two = _store_two_from(LANES // 2)


@intrinsic
def turned(_typing: Any, value: Any) -> Any:
    """Vector (h, -g, ..., b, -a) of (a, b, ..., g, h): reversed complex numbers times -i."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        order = ir.Constant(_INDICES, list(reversed(range(LANES))))
        signs = ir.Constant(_VECTOR, [1.0, -1.0] * (LANES // 2))
        return builder.fmul(builder.shuffle_vector(arguments[0], arguments[0], order), signs)

    return _LANES(_LANES), codegen


def _spread(builder: Any, number: Any) -> Any:
    undefined, first = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(undefined, number, first)
    return builder.shuffle_vector(one, undefined, ir.Constant(_INDICES, [0] * LANES))


@intrinsic
def spread(_typing: Any, number: Any) -> Any:
    """Vector with a float in all eight lanes."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _spread(builder, arguments[0])

    return _LANES(types.float64), codegen


@intrinsic
def sums_of(_typing: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    """Vector of the sums of the eight floats of a, of b, ..., of h."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        for step in (1, 2, 4):  # the distance between the numbers that are added
            arguments = [
                _add_neighbours(builder, *pair, step)
                for pair in zip(arguments[::2], arguments[1::2], strict=True)
            ]
        return arguments[0]

    return _LANES(*[_LANES] * LANES), codegen


@intrinsic
def sum_of(_typing: Any, value: Any) -> Any:
    """The sum of eight floats, always in the same order."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        value = arguments[0]
        for distance in (4, 2, 1):
            order = [(i + distance) % LANES for i in range(LANES)]
            rotated = builder.shuffle_vector(value, value, ir.Constant(_INDICES, order))
            value = builder.fadd(value, rotated)
        return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    return types.float64(_LANES), codegen


def _add_neighbours(builder: Any, a: Any, b: Any, step: int) -> Any:
    """Sums of neighbouring blocks of `step` floats: alternately a sum from a and one from b."""
    left = [i for i in range(2 * LANES) if i // step % 2 == 0]
    order = sorted(left, key=lambda i: (i % LANES // (2 * step), i // LANES, i))
    parts = [
        builder.shuffle_vector(a, b, ir.Constant(_INDICES, [i + shift for i in order]))
        for shift in (0, step)
    ]
    return builder.fadd(*parts)


def _define(sign: Any, instruction: Any) -> None:
    """Define an operator between two vectors, or a float and a vector, by an LLVM instruction.

    It is defined within numba, as functions would have to be compiled and inlined one by one.
    """

    @infer_global(sign)
    class _Sign(ConcreteTemplate):
        cases: ClassVar = [_LANES(_LANES, _LANES), _LANES(types.float64, _LANES)]

    def lowered(_context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = arguments
        a = _spread(builder, a) if signature.args[0] == types.float64 else a
        return getattr(builder, instruction)(a, b, flags=("contract",))

    for first in (_LANES, types.float64):
        lower_builtin(sign, first, _LANES)(lowered)


for sign, instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _define(sign, instruction)


# Single floats -----------------------------------------------------------------------------------


@intrinsic
def as_bits(_typing: Any, x: Any) -> Any:
    """The bits of a float as an int64.

    Floats >= 0 are ordered like their bits, with inf and nan at the end and the bits of 0 first.
    Negative ones have negative bits: an integer maximum that starts from 0 passes them over.
    """

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def from_bits(_typing: Any, bits: Any) -> Any:
    """The float with these bits."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@njit(**WITHIN, fastmath={"contract"})
def exponential(y: float) -> float:
    """e^y for y <= 709, to 2 units in the last place; 0 for y < -708; nan for nan.

    e^y = 2^k e^r with |r| <= log(2) / 2, e^r by its Taylor polynomial of degree 13. About
    0.5 ns in a loop over contiguous floats on AVX-512.

    It is a separate function with its own `fastmath` options: in a caller that allows sums to be
    reordered, the shift by ROUNDING_SHIFT would cancel. LLVM inlines it.
    """
    bounded = LOWEST_EXPONENT if y < LOWEST_EXPONENT else y
    shifted = bounded * PER_LOG_2 + ROUNDING_SHIFT
    k = shifted - ROUNDING_SHIFT
    r = (bounded - k * LOG_2) - k * REST_OF_LOG_2
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = from_bits(as_bits(p) + (as_bits(shifted) << 52))
    return 0.0 if y < LOWEST_EXPONENT else power
