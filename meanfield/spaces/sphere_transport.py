"""Transport of densities on S^2: -div(mu v) in spherical harmonics, compiled.

In the weak form, with functions that are smooth up to the poles,

    -int Y* div(mu grad g) = int mu (G sin(theta) d_theta Y* + H d_phi Y*) / sin(theta)^2,
    G = sin(theta) d_theta g,   H = d_phi g,

all functions are scalar: one synthesis of mu, two from the potential g of the velocity, which has
few degrees, and two analyses, which share Legendre functions. With modes up to `degree` in mu and
`band` in g the product is integrated exactly by (2 degree + band + 1)/2 latitudes and
2 degree + band + 1 longitudes. SA divides by Z * mu on the grid, with 3 degree + 1 longitudes.
"""

from typing import Any

import numpy as np

from ..lowlevel.batched_fft import (
    ROW,
    good_length,
    radices,
    read_row,
    transform,
    twiddles,
    write_row,
)
from ..lowlevel.callbacks import CompiledFunction, float_array
from ..lowlevel.compilation import INNER, SUBROUTINE, njit
from ..lowlevel.legendre import RULES, analyse, fold, recurrence, steps_of, synthesise
from ..lowlevel.records import Field, InCode, Layout, floats, integers, numbers_at
from ..lowlevel.simd import (
    LANES,
    address_of,
    aligned,
    as_bits,
    from_bits,
    load,
    spread,
    store,
    store_first_two,
    store_middle_two,
    turned,
)
from .latitudes import LATITUDE_FIELDS, Latitudes, aligned_copy
from .transport import NO_MASS, Transport

PAIRS = LANES  # pairs of latitudes that are processed together: a cache line of each sum


class SphereTransport(Transport):
    """Transport mu -> -div(mu v[mu]), v = grad (W * mu) / (Z * mu); see `Space.transport`.

    Coefficients are in the order of `Sphere`: orders 0, 1, ..., each from its lowest degree up.

    Attributes
    ----------
    latitudes : Latitudes
        Latitudes of the grid.
    length : int
        Number of longitudes.
    """

    def _prepare(self) -> None:
        fields = 4 if self.normalised else 3
        self.latitudes, self.length, values = sphere_values(self.degree, self.points)
        weights = self.latitudes.weights / (2 * self.length)
        record = SPHERE.filled(
            **values,
            measure_offset=self._measure_offset,
            band=self.band,
            attraction=self.tables[0],
            normaliser=self.tables[1],
            weights=with_heights(weights / np.sqrt(self.latitudes.sines_squared), self.latitudes),
            spectra=aligned(fields, self.length * ROW // 8),
            values=aligned(fields, self.length * ROW // 8),
            sums_of_v=aligned(self.band + 1, 8, self.latitudes.x.size),
            speed=self.speed,
        )
        self._enter(_transport, record)


SPHERE_FIELDS: dict[str, Field] = {
    "length": int,
    "slopes": floats(2, "slopes_size"),  # see `_slopes`
    **LATITUDE_FIELDS,
    "divided": RULES,  # of p_m / sin(theta)
    "sums": floats("orders", 8, "half"),
    **{"factors": integers("passes"), "turns": int, "scratch": int},  # see `batched_fft.transform`
}


def sphere_values(degree: int, points: int) -> tuple[Latitudes, int, dict[str, Any]]:
    """Latitudes, number of longitudes, and values of SPHERE_FIELDS, for modes up to a degree.

    `points` is the least number of points on a great circle.
    """
    half, length = -(-points // (4 * PAIRS)) * PAIRS, good_length(points)
    latitudes, factors = Latitudes(half, degree + 1, degree), radices(length)
    values = {
        **latitudes.values(),
        "x": aligned_copy(latitudes.x),
        "length": length,
        "slopes": _slopes(degree),
        "divided": latitudes.rules(latitudes.start / np.sqrt(latitudes.sines_squared)),
        "sums": aligned(degree + 1, 8, half),
        "factors": np.array(factors),
        "turns": twiddles(factors),
        "scratch": aligned(length * ROW // 8),
    }
    return latitudes, length, values


def with_heights(weights: np.ndarray, latitudes: Latitudes) -> np.ndarray:
    """Weights, and weights times x, for sums of even and of odd functions of x, (2, half)."""
    return aligned_copy(np.stack([weights, weights * latitudes.x]))


SPHERE = Layout(
    "SphereTransport",
    {
        **SPHERE_FIELDS,
        **dict.fromkeys(("measure_offset", "band"), int),
        **dict.fromkeys(("attraction", "normaliser"), floats("tables", "orders")),
        "weights": floats(2, "half"),
        **dict.fromkeys(("spectra", "values"), floats("fields", "plane")),
        "sums_of_v": floats("orders_of_v", 8, "half"),  # of both components of v
        "speed": floats(1),
    },
)
_sphere_at = SPHERE.at


def _slopes(degree: int) -> np.ndarray:
    """Factors l e_{l+1} and (l + 1) e_l of each mode, (2, modes + 3), with a 0 before the first.

    sin(theta) d_theta p_l = l e_{l+1} p_{l+1} - (l + 1) e_l p_{l-1}
    """
    rows = []
    for m in range(degree + 1):
        l, e = np.arange(m, degree + 1), recurrence(degree + 1, m, 3)
        rows.append([l * e[l + 1], (l + 1) * e[l]])
    return np.pad(np.hstack(rows), ((0, 0), (1, 2)))


@CompiledFunction.announced("transport on S^2, about 5 s")
def _transport(context: int, member: int, source: int, target: int) -> None:
    """Write -div(mu v) of a member, with v = grad W * nu / (Z * nu) on a grid of S^2."""
    record = _sphere_at(context)
    orders, band, fields = record.orders, record.band, record.fields
    modes = orders * (orders + 1) // 2
    density, moving = source, source + record.measure_offset
    table = member if record.tables > 1 else 0
    attraction, normaliser = record.attraction[table], record.normaliser[table]
    sums, slopes, series = record.sums, record.sums_of_v, record.series
    begin = np.int64(0)  # with a literal functions would be compiled twice
    for m in range(orders):
        count = orders - m
        sum_order(m, float_array(density + 16 * begin, (2 * count,)), count, record, sums[m, :4])
        others = float_array(moving + 16 * begin, (2 * count,))
        if m <= band:
            take(others, attraction[m:], band + 1 - m, series[0, 2:])
            sum_potential(m, band + 1 - m, begin, record, slopes[m])
        if fields == 4:
            take(others, normaliser[m:], count, series[0])
            sum_order(m, series[0], count, record, sums[m, 4:])
        begin += count
    speed = _multiply(record)
    record.speed[0] = max(record.speed[0], speed)
    divergence(record, float_array(target, (2 * modes,)))


@njit(**INNER)
def take(density: np.ndarray, factors: np.ndarray, count: int, series: np.ndarray) -> None:
    """Fill `series` with the first `count` coefficients of an order times factors.

    Real and imaginary parts alternate.
    """
    for i in range(count):
        series[2 * i] = factors[i] * density[2 * i]
        series[2 * i + 1] = factors[i] * density[2 * i + 1]


@njit(**SUBROUTINE)
def sum_order(
    m: int, coefficients: np.ndarray, count: int, record: InCode, sums: np.ndarray
) -> None:
    """Fill `sums` with the sums over the degrees of order m; the record has SPHERE_FIELDS."""
    rules, folded = record.rules, record.folded
    synthesise(m, rules, folded, fold(m, rules, coefficients, count, folded), sums)


@njit(**INNER)
def sum_potential(m: int, count: int, begin: int, record: InCode, sums: np.ndarray) -> None:
    """Fill `sums` with G = sin(theta) d_theta g and H = d_phi g of one order of a potential g.

    The coefficients of g = W * mu are in series[0] from entry 2 on; `begin` is the index of the
    first mode of the order.
    """
    rules, folded = record.divided, record.folded
    g, sought = record.series[0], record.series[1]
    up, down = record.slopes[0, begin:], record.slopes[1, begin:]
    g[0] = g[1] = 0.0
    for i in range(2 * count + 2, 2 * count + 6):
        g[i] = 0.0
    for i in range(count + 1):
        sought[2 * i] = up[i] * g[2 * i] - down[i + 2] * g[2 * i + 4]
        sought[2 * i + 1] = up[i] * g[2 * i + 1] - down[i + 2] * g[2 * i + 5]
    synthesise(m, rules, folded, fold(m, rules, sought, count + 1, folded), sums[:4])
    for i in range(count):
        sought[2 * i], sought[2 * i + 1] = -m * g[2 * i + 3], m * g[2 * i + 2]
    synthesise(m, rules, folded, fold(m, rules, sought, count, folded), sums[4:])


@njit(**SUBROUTINE)
def divergence(record: InCode, result: np.ndarray) -> None:
    """Fill `result` with coefficients of -div of a field, from sums over longitudes in the record.

    With the coefficients g_l and h_l of the products, see `unfold`, they are
    l e_{l+1} g_{l+1} - (l + 1) e_l g_{l-1} - i m h_l.
    """
    rules, unfolded, begin = record.rules, record.unfolded, 0
    row, target = address_of(unfolded), address_of(result)
    for m in range(record.orders):
        last = record.orders - 1 - m
        pairs, at = (last + 3) // 2, target + 16 * begin
        analyse(m, rules, record.sums[m], unfolded, (pairs + 1) // 2 * 2)
        c, u, v = steps_of(rules, 2, m), steps_of(rules, 3, m), steps_of(rules, 4, m)
        up, down = record.slopes[0, begin + 1 :], record.slopes[1, begin + 1 :]
        factor, order = 0.0, float(m)
        even = odd = chain = spread(0.0)  # (g, h) of an even and (., ., g, h) of an odd degree
        for k in range(pairs):
            sums = load(row + 8 * LANES * k)
            before, even, i = even, c[k] * sums, 2 * k - 1
            if k > 0:
                part = up[i] * even - down[i] * before + order * turned(odd)
                store_first_two(at + 16 * i, part)
            before, chain, i = odd, sums - factor * chain, 2 * k
            odd, factor = u[k] * chain, v[k]
            if i <= last:
                part = up[i] * odd - down[i] * before + order * turned(even)
                store_middle_two(at + 16 * i, part)
        begin += last + 1


# The product mu v on the grid ---------------------------------------------------------


@njit(**INNER)
def _multiply(record: InCode) -> float:
    """Fill the sums with mu v on all latitudes, with quadrature weights; return the largest |v|.

    The values at x and -x are the real and the imaginary part of one complex function.
    """
    orders, fields, values = record.orders, record.fields, record.values
    spectra_at, values_at = address_of(record.spectra), address_of(values)
    sums, slopes = address_of(record.sums), address_of(record.sums_of_v)
    second = 32 * record.half  # of two fields whose sums each order has
    first = numbers_at(record.rules.first, 0, 0)
    size, largest, count = record.length * ROW, 0.0, 0
    for j in range(0, record.half, PAIRS):
        while count < orders and first[count] <= j:
            count += 1  # number of orders that are not negligible at these latitudes
        few = count if count <= record.band else record.band + 1
        join(record, sums, orders, count, j, spectra_at)
        join(record, slopes, record.orders_of_v, few, j, spectra_at + size)
        join(record, slopes + second, record.orders_of_v, few, j, spectra_at + 2 * size)
        if fields == 4:
            join(record, sums + second, orders, count, j, spectra_at + 3 * size)
        for f in range(fields):
            fourier(record, spectra_at + f * size, values_at + f * size)
        if fields == 4:
            _divide(values[1], values[2], values[3])
        largest = max(largest, _flux(values[0], values[1], values[2]))
        for f in range(2):  # the spectra of the components of mu v overwrite values of fields
            target = values_at + f * size
            fourier(record, target + size, target)
            part(record, target, f, count, j, record.weights)
    return 1.0 if fields == 4 and largest > 1.0 else np.sqrt(largest)


@njit(**INNER)
def fourier(record: InCode, source: int, target: int) -> None:
    """Fourier transforms of eight columns at `source`, written at `target`; see `transform`."""
    transform(source, target, record.scratch, record.factors, record.turns)


@njit(**SUBROUTINE)
def join(record: InCode, sums: int, orders: int, count: int, j: int, spectrum: int) -> None:
    """Write the spectra of f(x) + i f(-x) at PAIRS pairs of latitudes, from the sums E and O.

    Orders from `count` on are 0. `sums` and `spectrum` are addresses: rows of sums are 8 * half
    bytes apart, orders 8 rows.
    """
    half, length = record.half, record.length
    step, z = 8 * half, load(address_of(record.x) + 8 * j)
    nothing = spread(0.0)
    for m in range(count, orders):
        write_row(spectrum + m * ROW, nothing, nothing)
        write_row(spectrum + (length - m) * ROW, nothing, nothing)
    for m in range(count - 1, -1, -1):
        at, back = sums + (8 * m * half + j) * 8, length - m if m > 0 else 0
        even_re, even_im = load(at), load(at + step)
        odd_re, odd_im = z * load(at + 2 * step), z * load(at + 3 * step)
        p, q, r, s = even_re + odd_re, even_im - odd_im, even_im + odd_im, even_re - odd_re
        write_row(spectrum + back * ROW, p + q, s - r)
        write_row(spectrum + m * ROW, p - q, s + r)


@njit(**INNER)
def part(
    record: InCode, spectrum: int, field: int, count: int, j: int, weights: np.ndarray
) -> None:
    """Fill the sums of f(x) + f(-x) and x (f(x) - f(-x)), with weights, at PAIRS latitudes.

    They come from the spectrum of f(x) + i f(-x) at the address `spectrum`. `field`, 0 or 1, is the
    index of the function f among the two that the sums have for each order. The transform was the
    one from spectra to values: order m is at n - m.
    """
    half, length = record.half, record.length
    w, products = address_of(weights) + 8 * j, address_of(record.sums) + 16 * half * field
    step, even, odd = 8 * half, load(w), load(w + 8 * half)
    for m in range(count):
        at, back = products + (8 * m * half + j) * 8, length - m if m > 0 else 0
        re, im = read_row(spectrum + back * ROW)
        back_re, back_im = read_row(spectrum + m * ROW)
        p, q, r, s = re + back_re, im - back_im, im + back_im, back_re - re
        store(at, even * (p + r))
        store(at + step, even * (q + s))
        store(at + 4 * step, odd * (p - r))
        store(at + 5 * step, odd * (q - s))


@njit(**INNER)
def _divide(slope: np.ndarray, turn: np.ndarray, normaliser: np.ndarray) -> None:
    """Divide both components by Z * mu, or by NO_MASS where Z * mu is less."""
    for i in range(slope.size):
        z = normaliser[i] if normaliser[i] > NO_MASS else NO_MASS
        slope[i] /= z
        turn[i] /= z


@njit(**INNER)
def _flux(density: np.ndarray, slope: np.ndarray, turn: np.ndarray) -> float:
    """Overwrite the components of v by those of mu v; return the largest |v|^2."""
    largest = 0
    for i in range(density.size):
        largest = max(largest, as_bits(slope[i] * slope[i] + turn[i] * turn[i]))
        slope[i] *= density[i]
        turn[i] *= density[i]
    return from_bits(largest)
