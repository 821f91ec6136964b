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
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.records import Field, InCode, Layout, floats, integers
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

    _parameters = np.array([-1])  # index of the parameter that changes with each row, or -1
    _measured = 1  # number of speeds that are recorded

    def _prepare(self) -> None:
        members, modes = self._shape
        self._shape = members, len(self._parameters) * modes
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
            "attraction": np.ascontiguousarray(self.tables[0].real[:, columns]),
            "odd_attraction": self._odd_attraction(columns),
            "normaliser": self.tables[1][:, columns].copy(),
        }
        self._fill(columns.size, transforms.components, transforms.size)

    def _odd_attraction(self, columns: np.ndarray) -> np.ndarray:
        """Imaginary multipliers, of the odd part of W, for the floats of coefficients; or empty."""
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
            parameters=self._parameters,
            product=np.zeros(size),
            at_density=aligned(3 + components, points),
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
        attraction = np.array([t.attraction for t in variants])
        normaliser = np.array([zeros if t.normaliser is None else t.normaliser for t in variants])
        # Bands are judged separately, as a derivative may be small compared with the drift.
        attraction[space.level_degrees > space.bands(attraction)[:, None]] = 0
        self._parameters = np.array([-1, *parameters])
        divisor = None if tables.normaliser is None else normaliser
        super().__init__(space, attraction, divisor, 1, pairs)


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
    **dict.fromkeys(("attraction", "normaliser"), floats("tables", "floats")),
    "odd_attraction": floats("tables", "odd"),  # imaginary parts of W's multipliers; empty if real
}
LINEARISED_TANGENTS = Layout(
    "LinearisedTangents",
    {
        **LINEARISED_FIELDS,
        "members": int,  # each with its own tables, if there are no parameters
        "parameters": integers("rows"),
        "product": floats("floats"),
        "at_density": floats("density_rows", "size"),  # values of u, 1/B, dB/d(Z * u) / B, then v
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
    pairs, rows, transforms = record.pairs, record.rows, record.transforms
    states = float_array(source, (rows, 1 + pairs, modes))
    result = float_array(target, (rows, modes))
    product, at_density, values = record.product, record.at_density, record.values
    inner, fluxes_at = transforms.context, address_of(values) + 8 * size
    denominator, base, odd = values[1 + components], states[0, pairs], record.odd_attraction
    table = member if record.members > 1 and record.tables > 1 else 0
    for row in range(rows):
        h, p = states[row, pairs], record.parameters[row] + 1
        values_at = address_of(values) if row > 0 else address_of(at_density)
        evaluate(transforms.values, inner, degree, address_of(states[row, 0]), values_at)
        _fill_product(product, record.attraction, odd, table, h, p, base)
        evaluate(transforms.gradient, inner, record.band, address_of(product), fluxes_at)
        if record.normalised:
            _fill_product(product, record.normaliser, odd[:, :0], table, h, p, base)
            evaluate(transforms.values, inner, degree, address_of(product), address_of(denominator))
        if row == 0:
            _fill_velocity(record, at_density, values, denominator)
        else:
            _fill_flux_changes(record, at_density, values, denominator)
        evaluate(transforms.divergence, inner, 0, fluxes_at, address_of(result[row]))
    if record.measured > 0:
        squares = values[0]
        for i in range(components):
            v = at_density[3 + i]
            for j in range(size):
                squares[j] = v[j] * v[j] + (squares[j] if i > 0 else 0.0)
        speed = np.sqrt(largest(squares, size))
        if record.normalised:
            speed = min(speed, record.fastest)  # more is rounding where Z * mu is 0
        record.speed[0] = max(record.speed[0], speed)


@njit(**INNER)
def _fill_product(
    product: np.ndarray, multipliers: np.ndarray, odd: np.ndarray, table: int, h: np.ndarray,
    p: int, base: np.ndarray,
) -> None:  # fmt: skip
    """Fill `product` with multipliers times h plus, for p > 0, their derivatives times `base`.

    The imaginary multipliers `odd`, (tables, floats) or (tables, 0), exchange real and imaginary
    parts.
    """
    for k in range(product.size):
        product[k] = multipliers[table, k] * h[k]
        if p > 0:
            product[k] += multipliers[p, k] * base[k]
    for k in range(odd.shape[1]):
        product[k] += odd[table, k] * h[k ^ 1]
        if p > 0:
            product[k] += odd[p, k] * base[k ^ 1]


@njit(**INNER)
def _fill_velocity(
    record: InCode, at_density: np.ndarray, values: np.ndarray, denominator: np.ndarray
) -> None:
    """Fill 1/B, its change and the velocity from the numerators in `values`, and these by u v."""
    u, reciprocal, moving_reciprocal = at_density[0], at_density[1], at_density[2]
    if record.normalised:
        for j in range(u.size):
            moves = denominator[j] > NO_MASS
            reciprocal[j] = 1 / (denominator[j] if moves else NO_MASS)
            moving_reciprocal[j] = reciprocal[j] if moves else 0.0
    for i in range(record.components):
        v, flux = at_density[3 + i], values[1 + i]
        for j in range(u.size):
            v[j] = flux[j] * reciprocal[j] if record.normalised else flux[j]
            flux[j] = u[j] * v[j]


@njit(**INNER)
def _fill_flux_changes(
    record: InCode, at_density: np.ndarray, values: np.ndarray, denominator: np.ndarray
) -> None:
    """Replace the numerators A_h in `values` by the fluxes h v + u (A_h - v B_h)/B."""
    u, reciprocal, moving_reciprocal, h = at_density[0], at_density[1], at_density[2], values[0]
    for i in range(record.components):
        v, flux = at_density[3 + i], values[1 + i]
        if record.normalised:
            for j in range(u.size):
                change = reciprocal[j] * flux[j] - moving_reciprocal[j] * v[j] * denominator[j]
                flux[j] = h[j] * v[j] + u[j] * change
        else:
            for j in range(u.size):
                flux[j] = h[j] * v[j] + u[j] * flux[j]


@CompiledFunction
def _adjoint(context: int, member: int, source: int, target: int) -> None:
    """Write DN(u)* l and <l, dN/dp_i>, or the two parts of `pairs`, by products on a grid."""
    record = _adjoint_at(context)
    modes, degree, size, components = record.floats, record.degree, record.size, record.components
    normalised, pairs, tables = record.normalised, record.pairs, record.tables
    transforms, inner = record.transforms, record.transforms.context
    u = float_array(source, (2 + pairs, modes))[pairs]
    result = float_array(target, (1 + pairs, modes))
    numbers = float_array(target, ((1 + pairs) * modes + tables - 1,))[(1 + pairs) * modes :]
    attraction, normaliser, odd = record.attraction, record.normaliser, record.odd_attraction
    parseval, work, values = record.parseval, record.work, record.values
    begin, product, slope_at = address_of(values), work[2], address_of(values[2 + components])
    evaluate(transforms.values, inner, degree, source, begin)
    _fill_product(product, attraction, odd, 0, u, 0, u)
    evaluate(transforms.gradient, inner, record.band, address_of(product), begin + 16 * size)
    evaluate(transforms.gradient, inner, degree, source + 8 * modes * (1 + pairs), slope_at)
    if normalised:
        _fill_product(product, normaliser, odd[:, :0], 0, u, 0, u)
        evaluate(transforms.values, inner, degree, address_of(product), address_of(values[1]))
    _fill_covectors(record, values)
    evaluate(transforms.analysis, inner, 2 if normalised else 1, begin, address_of(work))
    evaluate(transforms.divergence, inner, 0, slope_at, address_of(product))
    for k in range(modes):
        result[pairs, k] = 0.0
        result[0, k] = work[0, k]
        result[pairs, k] += attraction[0, k] * product[k]
        if normalised:
            result[pairs, k] -= normaliser[0, k] * work[1, k]
    for k in range(record.odd):  # the transpose is the conjugate
        result[pairs, k] -= odd[0, k] * product[k ^ 1]
    for p in range(1, tables):
        total = 0.0
        for k in range(modes):
            change = attraction[p, k] * product[k]
            if record.odd > 0:
                change -= odd[p, k] * product[k ^ 1]
            if normalised:
                change -= normaliser[p, k] * work[1, k]
            total += parseval[k] * u[k] * change
        numbers[p - 1] = total


@njit(**INNER)
def _fill_covectors(record: InCode, values: np.ndarray) -> None:
    """Replace u, Z * u and grad l in `values` by <v, grad l>, u <v, grad l>/B and u grad l/B."""
    components, density, denominator = record.components, values[0], values[1]
    for j in range(record.size):
        reciprocal = 1.0
        if record.normalised:
            reciprocal = 1 / (denominator[j] if denominator[j] > NO_MASS else NO_MASS)
        along = 0.0
        for i in range(components):
            along += values[2 + i, j] * values[2 + components + i, j]
            values[2 + components + i, j] *= density[j] * reciprocal
        along *= reciprocal
        if record.normalised:
            weight = density[j] * reciprocal * along
            denominator[j] = weight if denominator[j] > NO_MASS else 0.0
        density[j] = along
