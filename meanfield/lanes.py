"""Eight floats as one value of compiled code, for loops that compilers do not vectorise.

`load` and `store` move them from and to memory, + - and * act on all eight, and so does a float
times them. A processor has them in one register of AVX-512, in two of AVX2, in four of NEON.
"""

import operator

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

__all__ = ["LANES", "load", "store"]

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_BYTES = 8 * LANES


class _Lanes(types.Type):
    def __init__(self):
        super().__init__(name="Lanes")


_LANES = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _VECTOR)


@intrinsic
def load(_typing, address):
    """The eight floats at an address, a multiple of 64."""

    def codegen(_context, builder, _signature, arguments):
        return builder.load(builder.inttoptr(arguments[0], _VECTOR.as_pointer()), align=_BYTES)

    return _LANES(types.int64), codegen


@intrinsic
def store(_typing, address, value):
    """Write eight floats to an address, a multiple of 64."""

    def codegen(context, builder, _signature, arguments):
        pointer = builder.inttoptr(arguments[0], _VECTOR.as_pointer())
        builder.store(arguments[1], pointer, align=_BYTES)
        return context.get_dummy_value()

    return types.void(types.int64, _LANES), codegen


@intrinsic
def _repeated(_typing, number):
    """A float in all eight places."""

    def codegen(_context, builder, _signature, arguments):
        nothing, index = ir.Constant(_VECTOR, ir.Undefined), ir.IntType(32)
        one = builder.insert_element(nothing, arguments[0], ir.Constant(index, 0))
        places = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
        return builder.shuffle_vector(one, nothing, places)

    return _LANES(types.float64), codegen


def _operation(instruction):
    @intrinsic
    def operation(_typing, a, b):
        def codegen(_context, builder, _signature, arguments):
            return getattr(builder, instruction)(*arguments, flags=("contract",))

        return _LANES(_LANES, _LANES), codegen

    return operation


_sum, _difference, _product = _operation("fadd"), _operation("fsub"), _operation("fmul")


@overload(operator.add)
def _add(a, b):
    return (lambda a, b: _sum(a, b)) if a == b == _LANES else None


@overload(operator.sub)
def _subtract(a, b):
    return (lambda a, b: _difference(a, b)) if a == b == _LANES else None


@overload(operator.mul)
def _multiply(a, b):
    if b != _LANES:
        return None
    if a == types.float64:
        return lambda a, b: _product(_repeated(a), b)
    return (lambda a, b: _product(a, b)) if a == _LANES else None
