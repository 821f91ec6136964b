"""The transport of densities on the circle, linearised, and the transpose of that: compiled.

About a density u with the velocity v = A/B, A = (W * u)', B = Z * u, on the grid of
`circle_transport` and with its truncations, so that both are exact for the discrete map:

    N(u) = -(u v)',     DN(u) h = -(h v + u (A_h - v B_h)/B)',     A_h = (W * h)', B_h = Z * h,
    DN(u)* l = v l' + A* (u l'/B) - B* (v u l'/B)

Where a parameter of W and Z changes with h, its derivatives of A and of B at u are added to A_h
and to B_h.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, call, complex_array, float_array, integer_array
from ..lowlevel.fourier import RealTransform, good_length
from ..lowlevel.simd import aligned
from .circle_transport import NO_MASS
from .contract import Transport


class Tables(NamedTuple):
    """The multipliers of W and of Z of one member, (modes,) each, or their derivatives.

    `normaliser` is None where Z = 1.
    """

    attraction: np.ndarray
    normaliser: np.ndarray | None


class _Linearised(Transport):
    """What both directions share: the grid, the multipliers and their derivatives."""

    def __init__(self, tables: Tables, changes: Sequence[Tables]):
        attraction, normaliser = tables
        modes = attraction.size
        shared = None if normaliser is None else normaliser[None]
        super().__init__(attraction[None], shared, 1, modes)
        self.modes, self.length = modes, good_length(self.points)
        slopes = 1j * np.arange(modes) * np.array([attraction, *(c.attraction for c in changes)])
        below = [
            np.zeros(modes) if t.normaliser is None else t.normaliser for t in (tables, *changes)
        ]
        self.fields = 2 if normaliser is None else 3
        self.multipliers = np.ascontiguousarray(slopes), np.array(below, order="C")


class CircleTangents(_Linearised):
    """(u, h_1, ..., h_p) -> (N(u), DN(u) h_1 + dN/dp_1, ...), for compiled code: see `Transport`.

    Parameters
    ----------
    tables : Tables
    changes : sequence of Tables
        Derivatives of the tables by parameters.
    parameters : sequence of int
        For each h the number of the parameter that changes with it, or -1.
    """

    def __init__(self, tables: Tables, changes: Sequence[Tables], parameters: Sequence[int]):
        super().__init__(tables, changes)
        count = len(parameters)
        self._shape = 1, (1 + count) * self.modes
        self._fft = fft = RealTransform(self.length, rows=self.fields)
        which = np.array([*parameters, -1], dtype=np.int64)
        sizes = (self.modes, self.band + 1, self.length, self.fields, fft.stride, count)
        numbers = (*sizes, len(changes) + 1, *fft.inverse, *fft.forward)
        held = aligned(3, self.length)
        buffers = (fft.spectrum, fft.values, *self.multipliers, which, held)
        self._enter(_tangents, numbers, buffers)


class CircleAdjoint(_Linearised):
    """(u, l) -> (DN(u)* l, <l, dN/dp_1>, ...), for compiled code: see `Transport`.

    Numbers are the real parts of a second row.
    """

    def __init__(self, tables: Tables, changes: Sequence[Tables]):
        super().__init__(tables, changes)
        self._shape = 1, 2 * self.modes
        self._fft = fft = RealTransform(self.length, rows=self.fields + 1)
        sizes = (self.modes, self.band + 1, self.length, self.fields, fft.stride)
        numbers = (*sizes, len(changes) + 1, *fft.inverse, *fft.forward)
        self._enter(_adjoint, numbers, (fft.spectrum, fft.values, *self.multipliers))


@CompiledFunction
def _tangents(context, member, source, target):
    c = integer_array(context, (17,))
    modes, band, length, fields, stride, count = c[0], c[1], c[2], c[3], c[4], c[5]
    given = complex_array(source, (1 + count, modes))
    found = complex_array(target, (1 + count, modes))
    spectrum = complex_array(c[11], (fields, stride))
    values = float_array(c[12], (fields, 2 * stride))
    above, below = complex_array(c[13], (c[6], modes)), float_array(c[14], (c[6], modes))
    which, held = integer_array(c[15], (count + 1,)), float_array(c[16], (3, length))
    u, v, under = held[0], held[1], held[2]
    for row in range(1 + count):
        h, p = given[row], which[row - 1] + 1 if row > 0 else 0
        for field in range(fields):
            for k in range(stride):
                spectrum[field, k] = 0.0
        for k in range(modes):
            spectrum[0, k] = h[k]
        for k in range(band):
            spectrum[1, k] = above[0, k] * h[k]
            if p > 0:
                spectrum[1, k] += above[p, k] * given[0, k]
        if fields == 3:
            for k in range(modes):
                spectrum[2, k] = below[0, k] * h[k]
                if p > 0:
                    spectrum[2, k] += below[p, k] * given[0, k]
        call(c[7], c[8], c[11], c[12])
        if row == 0:
            for j in range(length):
                u[j], v[j] = values[0, j], values[1, j]
                if fields == 3:
                    under[j] = values[2, j]
                    v[j] /= under[j] if under[j] > NO_MASS else NO_MASS
                values[0, j] *= v[j]
        elif fields == 2:
            for j in range(length):
                values[0, j] = values[0, j] * v[j] + u[j] * values[1, j]
        else:
            for j in range(length):
                if under[j] > NO_MASS:
                    change = (values[1, j] - v[j] * values[2, j]) / under[j]
                else:
                    change = values[1, j] / NO_MASS
                values[0, j] = values[0, j] * v[j] + u[j] * change
        call(c[9], c[10], c[12], c[11])
        for k in range(modes):
            factor = k / length
            found[row, k] = complex(factor * spectrum[0, k].imag, -factor * spectrum[0, k].real)


@CompiledFunction
def _adjoint(context, member, source, target):
    c = integer_array(context, (14,))
    modes, band, length, fields, stride, tables = c[0], c[1], c[2], c[3], c[4], c[5]
    given, found = complex_array(source, (2, modes)), complex_array(target, (2, modes))
    spectrum = complex_array(c[10], (fields + 1, stride))
    values = float_array(c[11], (fields + 1, 2 * stride))
    above, below = complex_array(c[12], (tables, modes)), float_array(c[13], (tables, modes))
    u, last = given[0], fields
    for row in range(fields + 1):
        for k in range(stride):
            spectrum[row, k] = 0.0
    for k in range(modes):
        spectrum[0, k] = u[k]
        spectrum[last, k] = 1j * k * given[1, k]
        if fields == 3:
            spectrum[2, k] = below[0, k] * u[k]
    for k in range(band):
        spectrum[1, k] = above[0, k] * u[k]
    call(c[6], c[7], c[10], c[11])
    for j in range(length):
        inverse = 1.0
        if fields == 3:
            inverse = 1 / (values[2, j] if values[2, j] > NO_MASS else NO_MASS)
        v, slope = values[1, j] * inverse, values[last, j]
        pulled = values[0, j] * slope * inverse
        if fields == 3:
            values[2, j] = v * pulled if values[2, j] > NO_MASS else 0.0
        values[0, j] = v * slope
        values[1, j] = pulled
    for k in range(modes):
        found[1, k] = 0.0
    for row in range(fields):  # the forward transform is that of the first row
        if row > 0:
            for j in range(length):
                values[0, j] = values[row, j]
        call(c[8], c[9], c[11], c[10])
        for k in range(modes):
            moved = spectrum[0, k] / length
            weight = 1.0 if k == 0 else 2.0
            if row == 0:
                found[0, k] = moved
            elif row == 1 and k < band:
                found[0, k] += above[0, k].conjugate() * moved
                for p in range(1, tables):
                    found[1, p - 1] += weight * (moved.conjugate() * above[p, k] * u[k]).real
            elif row == 2:
                found[0, k] -= below[0, k] * moved
                for p in range(1, tables):
                    found[1, p - 1] -= weight * (moved.conjugate() * u[k]).real * below[p, k]
