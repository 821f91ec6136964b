"""The transport of densities, linearised, and the transpose of that: compiled, on every space.

About a density u with the velocity v = A/B, A = grad W * u, B = Z * u, on the grids of the
transports and with their truncations, so that both are exact for the discrete map:

    N(u) = -div(u v),     DN(u) h = -div(h v + u (A_h - v B_h)/B),
    A_h = grad W * h,     B_h = Z * h,
    DN(u)* l = <v, grad l> + W * -div(u grad l/B) - Z * (u <v, grad l>/B)

Where a parameter of W and Z changes with h, its derivatives of A and of B at u are added to A_h
and to B_h. Of `pairs` A, B, A_h and B_h are those of other measures, which follow u and each h: see
`Transport`. The transpose is then a pair too: <v, grad l>, and the other two terms.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, evaluate, float_array, integer_array
from ..lowlevel.simd import address_of, aligned
from .circle_transport import NO_MASS
from .contract import Space, Transport


class Tables(NamedTuple):
    """The multipliers of W and of Z of one member, (degree + 1,) each, or their derivatives.

    `normaliser` is None where Z = 1.
    """

    attraction: np.ndarray
    normaliser: np.ndarray | None


class _Linearised(Transport):
    """What both directions share: the grid, the multipliers and their derivatives."""

    def __init__(
        self, space: Space, tables: Tables, changes: Sequence[Tables], pairs: bool = False
    ):
        normaliser, all_ = tables.normaliser, (tables, *changes)
        above, none = np.array([t.attraction for t in all_]), np.zeros(space.degree + 1)
        bands = space.bands(above)
        above[np.arange(above.shape[1]) > bands[:, None]] = 0
        # A parameter may bring degrees that the drift has not got: the widest band is that of all,
        # each by itself, since a derivative may be small beside the drift.
        shared, modes = None if normaliser is None else normaliser[None], space.degrees.size
        super().__init__(above, shared, 1, modes, pairs, band=int(bands.max()))
        self.dtype, parts = space.dtype, space.dtype.itemsize // 8
        self.transforms = transforms = space.transforms(self.points)
        self.normalised = normaliser is not None
        below = np.array([none if t.normaliser is None else t.normaliser for t in all_])
        of = np.repeat(space.degrees, parts)
        self.multipliers = [np.array(rows[:, of], order="C") for rows in (above, below)]
        self._parseval = np.repeat(space.parseval, parts)
        self._sizes = (
            *(of.size, space.degree, self.band, transforms.size, transforms.components),
            *(int(self.normalised), len(all_), int(pairs)),
        )

    def _rows(self, rows: int) -> np.ndarray:
        """Scratch memory for values of functions, one after the other."""
        return aligned(rows, self.transforms.size)


class Tangents(_Linearised):
    """(u, h_1, ..., h_p) -> (N(u), DN(u) h_1 + dN/dp_1, ...), for compiled code: see `Transport`.

    Parameters
    ----------
    space : Space
    tables : Tables
    changes : sequence of Tables
        Derivatives of the tables by parameters.
    parameters : sequence of int
        For each h the number of the parameter that changes with it, or -1.
    pairs : bool
        Whether u and each h are followed by measures whose velocities they have.
    """

    def __init__(
        self,
        space: Space,
        tables: Tables,
        changes: Sequence[Tables],
        parameters: Sequence[int],
        pairs: bool = False,
    ):
        super().__init__(space, tables, changes, pairs)
        self._shape = 1, (1 + len(parameters)) * space.degrees.size
        which, components = np.array([*parameters, -1], dtype=np.int64), self.transforms.components
        numbers = (*self._sizes, len(parameters), *self.transforms.addresses)
        buffers = (
            *(*self.multipliers, which, np.zeros(self._sizes[0])),
            *(self._rows(3 + components), self._rows(2 + components)),
        )
        self._enter(_tangents, numbers, buffers)


class Adjoint(_Linearised):
    """(u, l) -> (DN(u)* l, <l, dN/dp_1>, ...), for compiled code: see `Transport`.

    The numbers are floats after the coefficients. With `pairs` it is (u, nu, l) -> (l1, l2, ...):
    see the top of this file.
    """

    def __init__(
        self, space: Space, tables: Tables, changes: Sequence[Tables], pairs: bool = False
    ):
        super().__init__(space, tables, changes, pairs)
        components = self.transforms.components
        numbers = (*self._sizes, *self.transforms.addresses)
        buffers = (
            *(*self.multipliers, self._parseval, np.zeros((3, self._sizes[0]))),
            self._rows(2 + 2 * components),
        )
        self._enter(_adjoint, numbers, buffers)


@CompiledFunction
def _tangents(context, member, source, target):
    c = integer_array(context, (20,))
    modes, degree, band, size, components, tables = c[0], c[1], c[2], c[3], c[4], c[6]
    normalised, pairs, count, inner = c[5] == 1, c[7], c[8], c[13]
    given = float_array(source, (1 + count, 1 + pairs, modes))
    found = float_array(target, (1 + count, modes))
    above, below = float_array(c[14], (tables, modes)), float_array(c[15], (tables, modes))
    which, moved = integer_array(c[16], (count + 1,)), float_array(c[17], (modes,))
    held, values = float_array(c[18], (3 + components, size)), c[19]
    density, field = float_array(values, (size,)), float_array(values + 8 * size, (3, size))
    u, over, share = held[0], held[1], held[2]
    for row in range(1 + count):
        h, p = given[row, pairs], which[row - 1] + 1 if row > 0 else 0
        evaluate(c[9], inner, degree, address_of(given[row, 0]), values)
        for k in range(modes):
            moved[k] = above[0, k] * h[k]
            if p > 0:
                moved[k] += above[p, k] * given[0, pairs, k]
        evaluate(c[10], inner, band, address_of(moved), values + 8 * size)
        if normalised:
            for k in range(modes):
                moved[k] = below[0, k] * h[k]
                if p > 0:
                    moved[k] += below[p, k] * given[0, pairs, k]
            evaluate(c[9], inner, degree, address_of(moved), values + 8 * size * (1 + components))
        under = field[components]
        if row == 0:
            for j in range(size):
                u[j] = density[j]
            if normalised:
                for j in range(size):
                    over[j] = 1 / (under[j] if under[j] > NO_MASS else NO_MASS)
                    share[j] = over[j] if under[j] > NO_MASS else 0.0
        for i in range(components):
            v, flux = held[3 + i], field[i]
            if row == 0:
                for j in range(size):
                    v[j] = flux[j] * over[j] if normalised else flux[j]
                    flux[j] = u[j] * v[j]
            elif normalised:
                for j in range(size):
                    change = over[j] * flux[j] - share[j] * v[j] * under[j]
                    flux[j] = density[j] * v[j] + u[j] * change
            else:
                for j in range(size):
                    flux[j] = density[j] * v[j] + u[j] * flux[j]
        evaluate(c[12], inner, 0, values + 8 * size, address_of(found[row]))


@CompiledFunction
def _adjoint(context, member, source, target):
    c = integer_array(context, (18,))
    modes, degree, band, size, components, tables = c[0], c[1], c[2], c[3], c[4], c[6]
    normalised, pairs, inner = c[5] == 1, c[7], c[12]
    u = float_array(source, (2 + pairs, modes))[pairs]
    found = float_array(target, (1 + pairs, modes))
    numbers = float_array(target, ((1 + pairs) * modes + tables - 1,))[(1 + pairs) * modes :]
    above, below = float_array(c[13], (tables, modes)), float_array(c[14], (tables, modes))
    parseval, work = float_array(c[15], (modes,)), float_array(c[16], (3, modes))
    values, begin = float_array(c[17], (2 + 2 * components, size)), c[17]
    moved = work[2]
    density, under = values[0], values[1]
    evaluate(c[8], inner, degree, source, begin)
    for k in range(modes):
        moved[k] = above[0, k] * u[k]
    evaluate(c[9], inner, band, address_of(moved), begin + 16 * size)
    slope = source + 8 * modes * (1 + pairs)
    evaluate(c[9], inner, degree, slope, begin + 8 * size * (2 + components))
    if normalised:
        for k in range(modes):
            moved[k] = below[0, k] * u[k]
        evaluate(c[8], inner, degree, address_of(moved), begin + 8 * size)
    for j in range(size):
        over = 1.0
        if normalised:
            over = 1 / (under[j] if under[j] > NO_MASS else NO_MASS)
        along = 0.0
        for i in range(components):
            along += values[2 + i, j] * values[2 + components + i, j]
            values[2 + components + i, j] *= density[j] * over
        along *= over
        if normalised:
            under[j] = density[j] * over * along if under[j] > NO_MASS else 0.0
        density[j] = along
    evaluate(c[10], inner, 2 if normalised else 1, begin, address_of(work))
    evaluate(c[11], inner, 0, begin + 8 * size * (2 + components), address_of(moved))
    for k in range(modes):
        found[pairs, k] = 0.0
        found[0, k] = work[0, k]
        found[pairs, k] += above[0, k] * moved[k]
        if normalised:
            found[pairs, k] -= below[0, k] * work[1, k]
    for p in range(1, tables):
        total = 0.0
        for k in range(modes):
            change = above[p, k] * moved[k]
            if normalised:
                change -= below[p, k] * work[1, k]
            total += parseval[k] * u[k] * change
        numbers[p - 1] = total
