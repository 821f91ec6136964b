"""Transport of densities on any space, its derivative and its transpose, by transforms: compiled.

For a density u with the velocity v = A/B, A = grad W * u, B = Z * u. The transforms are the
`GridTransforms` of the space. Grids and truncations are those of the transports of each space, so
that derivative and transpose are exact for the discrete map:

    N(u) = -div(u v),     DN(u) h = -div(h v + u (A_h - v B_h)/B),
    A_h = grad W * h,     B_h = Z * h,
    DN(u)* l = <v, grad l> + W * -div(u grad l/B) - Z * (u <v, grad l>/B)

If a parameter of W and Z changes with h, the derivatives of A and B by it are added to A_h and
B_h. With `pairs`, A, B, A_h and B_h are computed from other measures, which follow u and each h in
memory: see `Transport`. The transpose is then a pair too: <v, grad l>, and the other two terms.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, evaluate, float_array
from ..lowlevel.records import Field, Layout, floats, integers
from ..lowlevel.simd import address_of, aligned
from .circle_transport import largest
from .transport import FUNCTIONS, NO_MASS, Transport

if TYPE_CHECKING:
    from .contract import Space


class Tables(NamedTuple):
    """Multipliers of W and of Z of one member, (degree + 1,) each, or their derivatives.

    `normaliser` is None if Z = 1.
    """

    attraction: np.ndarray
    normaliser: np.ndarray | None


class GridTransport(Transport):
    """Transport mu -> -div(mu v[mu]), v = grad (W * mu) / (Z * mu), by the transforms of a space.

    The default of `Space.transports`. Transports written for the circle and for S^2, which keep
    intermediate sums, take 7 to 16 % less time.
    """

    _which = np.array([-1])  # index of the parameter that changes with each row, or -1
    _measured = 1  # number of speeds that are recorded

    def _prepare(self) -> None:
        members, modes = self._shape
        self._shape = members, len(self._which) * modes
        self.transforms = transforms = self.space.transforms(self.points)
        columns = np.repeat(self.space.levels, self.dtype.itemsize // 8)
        self._shared: dict[str, Any] = {
            "degree": self.degree,
            "band": self.band,
            "components": transforms.components,
            "normalised": int(self.normalised),
            "pairs": int(self.pairs),
            "transforms": transforms.functions,
            "fastest": self.space.radius,
            "above": np.ascontiguousarray(self.tables[0].real[:, columns]),
            "across": self._across(columns),
            "below": self.tables[1][:, columns].copy(),
        }
        self._fill(columns.size, transforms.components, transforms.size)

    def _across(self, columns: np.ndarray) -> np.ndarray:
        """Imaginary parts of multipliers, for the other float of a coefficient; empty if real."""
        attraction = self.tables[0]
        if attraction.dtype.kind != "c":
            return np.zeros((len(attraction), 0))
        signs = np.where(np.arange(columns.size) % 2, 1.0, -1.0)
        return np.ascontiguousarray(attraction.imag[:, columns] * signs)

    def _fill(self, size: int, components: int, points: int) -> None:
        """Enter the record, for `size` floats of a function and its values at `points`."""
        record = LINEARISED_TANGENTS.filled(
            **self._shared,
            members=self._shape[0],
            which=self._which,
            moved=np.zeros(size),
            kept=aligned(3 + components, points),
            values=aligned(2 + components, points),
            speed=self.speed[: self._measured],
        )
        self._enter(_tangents, record)


class LinearisedTangents(GridTransport):
    """(u, h_1, ..., h_p) -> (N(u), DN(u) h_1 + dN/dp_1, ...), for compiled code: see `Transport`.

    Parameters
    ----------
    space : Space
    tables : Tables
        Multipliers of W and Z.
    changes : sequence of Tables
        Derivatives of the multipliers by parameters.
    parameters : sequence of int
        For each h the index of the parameter that changes with it, or -1.
    pairs : bool
        Whether u and each h are followed by the measures that move them.
    """

    _measured = 0

    def __init__(
        self, space: "Space", tables: Tables, changes: Sequence[Tables],
        parameters: Sequence[int] = (), pairs: bool = False,
    ) -> None:  # fmt: skip
        zeros, variants = np.zeros(space.level_degrees.size), (tables, *changes)
        above = np.array([t.attraction for t in variants])
        below = np.array([zeros if t.normaliser is None else t.normaliser for t in variants])
        # Bands are judged separately, as a derivative may be small compared with the drift.
        above[space.level_degrees > space.bands(above)[:, None]] = 0
        self._which = np.array([-1, *parameters])
        super().__init__(space, above, None if tables.normaliser is None else below, 1, pairs)


class LinearisedAdjoint(LinearisedTangents):
    """(u, l) -> (DN(u)* l, <l, dN/dp_1>, ...), for compiled code: see `Transport`.

    In the output the inner products <l, dN/dp_i> are floats after the coefficients. With `pairs`
    the map is (u, nu, l) -> (l1, l2, ...), where l1 = <v, grad l> and l2 is the other two terms.
    """

    def _fill(self, size: int, components: int, points: int) -> None:
        record = LINEARISED_ADJOINT.filled(
            **self._shared,
            parseval=np.repeat(self.space.parseval, size // self.space.degrees.size),
            work=np.zeros((3, size)),
            values=aligned(2 + 2 * components, points),
        )
        self._enter(_adjoint, record)


LINEARISED_FIELDS: dict[str, Field] = {
    **dict.fromkeys(("degree", "band", "components", "normalised", "pairs"), int),
    "fastest": float,  # length of points, which bounds means of points
    "transforms": FUNCTIONS,
    # Of W and of Z, for the floats of the coefficients, and their derivatives by parameters.
    **dict.fromkeys(("above", "below"), floats("tables", "floats")),
    "across": floats("tables", "crossed"),  # imaginary parts of W's multipliers; empty if real
}
LINEARISED_TANGENTS = Layout(
    "LinearisedTangents",
    {
        **LINEARISED_FIELDS,
        "members": int,  # each with its own tables, if there are no parameters
        "which": integers("rows"),
        "moved": floats("floats"),
        "kept": floats("kept_rows", "size"),  # of u: its values, 1/B, dB/d(Z * u) / B, then v
        "values": floats("value_rows", "size"),  # of h: its values, A_h or the flux, B_h
        "speed": floats("measured"),
    },
)
LINEARISED_ADJOINT = Layout(
    "LinearisedAdjoint",
    {
        **LINEARISED_FIELDS,
        "parseval": floats("floats"),
        "work": floats(3, "floats"),
        "values": floats("value_rows", "size"),  # u, Z * u, the components of v and of grad l
    },
)
_tangents_at, _adjoint_at = LINEARISED_TANGENTS.at, LINEARISED_ADJOINT.at


@CompiledFunction
def _tangents(context: int, member: int, source: int, target: int) -> None:
    """Write N(u) and DN(u) h_i + dN/dp_i, (rows, modes), by products on a grid."""
    record = _tangents_at(context)
    modes, degree, size, components = record.floats, record.degree, record.size, record.components
    normalised, pairs, rows = record.normalised, record.pairs, record.rows
    functions = record.transforms
    states = float_array(source, (rows, 1 + pairs, modes))
    result = float_array(target, (rows, modes))
    above, below, which, moved = record.above, record.below, record.which, record.moved
    across = record.across
    kept, values = record.kept, record.values
    density, flux_at = values[0], address_of(values) + 8 * size
    u, over, share = kept[0], kept[1], kept[2]
    table = member if record.members > 1 and record.tables > 1 else 0
    for row in range(rows):
        h, p = states[row, pairs], which[row] + 1
        inner, values_at = functions.context, address_of(values) if row > 0 else address_of(kept)
        evaluate(functions.values, inner, degree, address_of(states[row, 0]), values_at)
        for k in range(modes):
            moved[k] = above[table, k] * h[k]
            if p > 0:
                moved[k] += above[p, k] * states[0, pairs, k]
        for k in range(record.crossed):
            moved[k] += across[table, k] * h[k ^ 1]
            if p > 0:
                moved[k] += across[p, k] * states[0, pairs, k ^ 1]
        evaluate(functions.gradient, inner, record.band, address_of(moved), flux_at)
        under = values[1 + components]
        if normalised:
            for k in range(modes):
                moved[k] = below[table, k] * h[k]
                if p > 0:
                    moved[k] += below[p, k] * states[0, pairs, k]
            evaluate(functions.values, inner, degree, address_of(moved), address_of(under))
        if row == 0 and normalised:
            for j in range(size):
                over[j] = 1 / (under[j] if under[j] > NO_MASS else NO_MASS)
                share[j] = over[j] if under[j] > NO_MASS else 0.0
        for i in range(components):
            v, flux = kept[3 + i], values[1 + i]
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
        evaluate(functions.divergence, inner, 0, flux_at, address_of(result[row]))
    if record.measured > 0:
        for i in range(components):
            v = kept[3 + i]
            for j in range(size):
                density[j] = v[j] * v[j] + (density[j] if i > 0 else 0.0)
        speed = np.sqrt(largest(density, size))
        if normalised:
            speed = min(speed, record.fastest)  # more is rounding where Z * mu is 0
        record.speed[0] = max(record.speed[0], speed)


@CompiledFunction
def _adjoint(context: int, member: int, source: int, target: int) -> None:
    """Write DN(u)* l and <l, dN/dp_i>, or the two parts of `pairs`, by products on a grid."""
    record = _adjoint_at(context)
    modes, degree, size, components = record.floats, record.degree, record.size, record.components
    normalised, pairs, tables = record.normalised, record.pairs, record.tables
    functions = record.transforms
    inner = functions.context
    u = float_array(source, (2 + pairs, modes))[pairs]
    result = float_array(target, (1 + pairs, modes))
    numbers = float_array(target, ((1 + pairs) * modes + tables - 1,))[(1 + pairs) * modes :]
    above, below, parseval, across = record.above, record.below, record.parseval, record.across
    work, values = record.work, record.values
    begin, moved, slope_at = address_of(values), work[2], address_of(values[2 + components])
    density, under = values[0], values[1]
    evaluate(functions.values, inner, degree, source, begin)
    for k in range(modes):
        moved[k] = above[0, k] * u[k]
    for k in range(record.crossed):
        moved[k] += across[0, k] * u[k ^ 1]
    evaluate(functions.gradient, inner, record.band, address_of(moved), begin + 16 * size)
    evaluate(functions.gradient, inner, degree, source + 8 * modes * (1 + pairs), slope_at)
    if normalised:
        for k in range(modes):
            moved[k] = below[0, k] * u[k]
        evaluate(functions.values, inner, degree, address_of(moved), address_of(under))
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
    evaluate(functions.analysis, inner, 2 if normalised else 1, begin, address_of(work))
    evaluate(functions.divergence, inner, 0, slope_at, address_of(moved))
    for k in range(modes):
        result[pairs, k] = 0.0
        result[0, k] = work[0, k]
        result[pairs, k] += above[0, k] * moved[k]
        if normalised:
            result[pairs, k] -= below[0, k] * work[1, k]
    for k in range(record.crossed):  # the transpose is the conjugate
        result[pairs, k] -= across[0, k] * moved[k ^ 1]
    for p in range(1, tables):
        total = 0.0
        for k in range(modes):
            change = above[p, k] * moved[k]
            if record.crossed > 0:
                change -= across[p, k] * moved[k ^ 1]
            if normalised:
                change -= below[p, k] * work[1, k]
            total += parseval[k] * u[k] * change
        numbers[p - 1] = total
