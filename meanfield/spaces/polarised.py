"""Transports that are quadratic, linearised by polarisation: exact, on every space, compiled.

Where Z = 1, N(u) = -div(u grad W * u) is a quadratic form of u, and for every size of h

    DN(u) h = (N(u + h) - N(u - h)) / 2,

with no error but rounding. Its derivative by a parameter of W is that form with dW for W.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, evaluate, float_array, integer_array
from ..lowlevel.simd import address_of
from .contract import Geometry, Transport


class PolarisedTangents(Transport):
    """(u, h_1, ..., h_p) -> (N(u), DN(u) h_1 + dN/dp_1, ...), for compiled code: see `Transport`.

    Parameters
    ----------
    geometry : Geometry
    attraction : ndarray, (degree + 1,)
        Multipliers of W.
    changes : sequence of ndarray
        Their derivatives by parameters.
    parameters : sequence of int
        For each h the number of the parameter that changes with it, or -1.
    """

    def __init__(
        self,
        geometry: Geometry,
        attraction: np.ndarray,
        changes: Sequence[np.ndarray],
        parameters: Sequence[int],
    ):
        self._forms: list[Any] = [
            geometry.transport(table[None], None, 1) for table in (attraction, *changes)
        ]
        self.dtype = geometry.dtype
        modes, parts = geometry.degrees.size, geometry.dtype.itemsize // 8
        self.speed, self.time = np.zeros(1), np.zeros(1)
        self._shape = 1, (1 + len(parameters)) * modes
        forms = np.array([(form.address, form.context) for form in self._forms], dtype=np.int64)
        which = np.array([*parameters, -1], dtype=np.int64)
        numbers = (parts * modes, len(parameters), len(forms))
        self._enter(_polarised, numbers, (forms, which, np.zeros((3, parts * modes))))


@CompiledFunction
def _polarised(context, member, source, target):
    c = integer_array(context, (6,))
    size, count = c[0], c[1]
    given, found = float_array(source, (1 + count, size)), float_array(target, (1 + count, size))
    forms, which = integer_array(c[3], (c[2], 2)), integer_array(c[4], (count + 1,))
    work = float_array(c[5], (3, size))
    place, ahead, behind = work[0], work[1], work[2]
    u = given[0]
    evaluate(forms[0, 0], forms[0, 1], 0, address_of(u), address_of(found[0]))
    square = 0.0
    for k in range(size):
        square += u[k] * u[k]
    for row in range(1, 1 + count):
        h, change = given[row], found[row]
        length = 0.0
        for k in range(size):
            length += h[k] * h[k]
        scale = np.sqrt(square / length) if length > 0 else 1.0
        for k in range(size):
            place[k] = u[k] + scale * h[k]
        evaluate(forms[0, 0], forms[0, 1], 0, address_of(place), address_of(ahead))
        for k in range(size):
            place[k] = u[k] - scale * h[k]
        evaluate(forms[0, 0], forms[0, 1], 0, address_of(place), address_of(behind))
        for k in range(size):
            change[k] = (ahead[k] - behind[k]) / (2 * scale)
        p = which[row - 1] + 1
        if p > 0:
            evaluate(forms[p, 0], forms[p, 1], 0, address_of(u), address_of(ahead))
            for k in range(size):
                change[k] += ahead[k]
