"""Transport of densities on S^2: -div(mu v) in spherical harmonics, compiled.

In the weak form, with functions that are smooth up to the poles,

    -int Y* div(mu grad g) = int mu (G sin(theta) d_theta Y* + H d_phi Y*) / sin(theta)^2,
    G = sin(theta) d_theta g,   H = d_phi g,

all is scalar: one synthesis of mu, two of the velocity's potential, which has few degrees, and
two analyses that share their Legendre functions. With modes up to `degree` in mu and `band` in
g the product is integrated exactly by (2 degree + band + 1)/2 latitudes and 2 degree + band + 1
longitudes. SA divides by Z * mu on the grid, with 3 degree + 1 longitudes.
"""

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
from ..lowlevel.callbacks import CompiledFunction, float_array, integer_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.legendre import analyse, fold, recurrence, rules_at, rung, synthesise
from ..lowlevel.records import Layout, numbers_at
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
from .circle_transport import NO_MASS
from .contract import Transport
from .latitudes import Latitudes, aligned_copy

PAIRS = LANES  # pairs of latitudes taken at a time: a cache line of each sum


class SphereTransport(Transport):
    """mu -> -div(mu v[mu]) with v = grad (W * mu) / (Z * mu); see `Space.transport`.

    Coefficients are those of `Sphere`: orders 0, 1, ..., each from its lowest degree up.

    Attributes
    ----------
    latitudes : Latitudes
    length : int
        Number of longitudes.
    """

    def __init__(
        self,
        attraction: np.ndarray,
        normaliser: np.ndarray | None,
        members: int,
        pairs: bool = False,
    ):
        degree, fields = attraction.shape[1] - 1, 3 if normaliser is None else 4
        super().__init__(attraction, normaliser, members, (degree + 1) * (degree + 2) // 2, pairs)
        half = -(-self.points // (4 * PAIRS)) * PAIRS
        self.latitudes = Latitudes(half, degree + 1, degree)
        self.length = good_length(self.points)
        latitudes, length, steps = self.latitudes, self.length, self.latitudes.pairs(0)
        weights = latitudes.weights / (2 * length * np.sqrt(latitudes.sines_squared))
        factors = radices(length)
        record = TRANSPORT.filled(
            apart=self._apart,
            degree=degree,
            band=self.band,
            half=half,
            tables=len(attraction),
            fields=fields,
            length=length,
            pairs=steps,
            attraction=self.tables[0],
            normaliser=self.tables[1],
            slopes=_slopes(degree),
            x=aligned_copy(latitudes.x),
            weights=aligned_copy(np.stack([weights, weights * latitudes.x])),
            rules=latitudes.rules(),
            divided=latitudes.rules(latitudes.start / np.sqrt(latitudes.sines_squared)),
            spectra=aligned(fields, length, 2, PAIRS),
            values=aligned(fields, length, 2, PAIRS),
            scratch=aligned(length, 2, PAIRS),
            sums=aligned(degree + 1, 8, half),
            sums_of_v=aligned(self.band + 1, 8, half),
            folded=aligned(8, steps),
            series=aligned(2, 4 * steps + 8),
            passes=len(factors),
            factors=np.array(factors),
            turns=twiddles(factors),
            speed=self.speed,
        )
        self._enter(_transport, record)


TRANSPORT = Layout(
    "SphereTransport",
    dict.fromkeys(
        (
            *("apart", "degree", "band", "half", "tables", "fields", "length", "pairs"),
            *("attraction", "normaliser"),  # (tables, degree + 1)
            "slopes",  # see `_slopes`
            *("x", "weights"),  # (half,), and (2, half): with x as well
            *("rules", "divided"),  # records of RULES: of p_m, and of p_m / sin(theta)
            *("spectra", "values"),  # (fields, length, 2, PAIRS)
            "scratch",  # (length, 2, PAIRS)
            "sums",  # (degree + 1, 8, half) of mu and Z * mu, where the products come later
            "sums_of_v",  # (band + 1, 8, half) of both components of v
            "folded",  # (8, pairs)
            "series",  # (2, 4 pairs + 8)
            *("passes", "factors", "turns"),  # of the transforms, see `batched_fft`
            "speed",
        ),
        int,
    ),
)
_transport_at = TRANSPORT.at


def _slopes(degree: int) -> np.ndarray:
    """l e_{l+1} and (l + 1) e_l in the order of modes, (2, modes + 3), a 0 before the first one.

    sin(theta) d_theta p_l = l e_{l+1} p_{l+1} - (l + 1) e_l p_{l-1}
    """
    rows = []
    for m in range(degree + 1):
        l, e = np.arange(m, degree + 1), recurrence(degree + 1, m, 3)
        rows.append([l * e[l + 1], (l + 1) * e[l]])
    return np.pad(np.hstack(rows), ((0, 0), (1, 2)))


@CompiledFunction.announced("transport on S^2, about 5 s")
def _transport(context, member, source, target):
    own = _transport_at(context)
    degree, band, half, pairs = own.degree, own.band, own.half, own.pairs
    tables, fields, modes = own.tables, own.fields, (degree + 1) * (degree + 2) // 2
    density, result = float_array(source, (2 * modes,)), float_array(target, (2 * modes,))
    moving = float_array(source + own.apart, (2 * modes,))
    table = member if tables > 1 else 0
    attraction = float_array(own.attraction, (tables, degree + 1))[table]
    steps = float_array(own.slopes, (2, modes + 3))
    rules, divided = rules_at(own.rules), rules_at(own.divided)
    sums = float_array(own.sums, (degree + 1, 8, half))
    slopes = float_array(own.sums_of_v, (band + 1, 8, half))
    folded, found = float_array(own.folded, (4, pairs)), float_array(own.folded, (pairs, 8))
    series = float_array(own.series, (2, 4 * pairs + 8))

    begin = 0
    for m in range(degree + 1):
        count, mine = degree + 1 - m, density[2 * begin :]
        synthesise(m, rules, folded, fold(m, rules, mine, count, folded), sums[m, :4])
        others = moving[2 * begin :]
        if m <= band:
            up, down = steps[0, begin:], steps[1, begin:]
            _take(others, attraction[m:], band + 1 - m, series[0, 2:])
            _sum_potential(m, band + 1 - m, up, down, divided, series, folded, slopes[m])
        if fields == 4:
            normaliser = float_array(own.normaliser, (tables, degree + 1))[table]
            _take(others, normaliser[m:], count, series[0])
            synthesise(m, rules, folded, fold(m, rules, series[0], count, folded), sums[m, 4:])
        begin += count
    speed = _multiply(own)
    highest = float_array(own.speed, (1,))
    highest[0] = max(highest[0], speed)
    begin = 0
    for m in range(degree + 1):
        up, down = steps[0, begin + 1 :], steps[1, begin + 1 :]
        _project(m, degree, sums[m], up, down, rules, found, result[2 * begin :])
        begin += degree + 1 - m


@njit(**INNER)
def _take(density, factors, count, series):
    """The coefficients of an order times factors; real and imaginary parts in turn."""
    for i in range(count):
        series[2 * i] = factors[i] * density[2 * i]
        series[2 * i + 1] = factors[i] * density[2 * i + 1]


@njit(**INNER)
def _sum_potential(m, count, up, down, rules, series, folded, sums):
    """G = sin(theta) d_theta g and H = d_phi g for the potential g = W * mu, of one order.

    g is in series[0] from entry 2 on; `up` and `down` begin one before.
    """
    g, sought = series[0], series[1]
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


@njit(**INNER)
def _project(m, degree, products, up, down, rules, found, result):
    """Coefficients of -div(mu v) of one order.

    With the coefficients g_l and h_l of the products, see `unfold`, they are
    l e_{l+1} g_{l+1} - (l + 1) e_l g_{l-1} - i m h_l.
    """
    pairs = (degree + 3 - m) // 2
    analyse(m, rules, products, found, (pairs + 1) // 2 * 2)
    c, u, v = rung(rules, 2, m), rung(rules, 3, m), rung(rules, 4, m)
    row, at, last, factor, m = address_of(found), address_of(result), degree - m, 0.0, float(m)
    even = odd = chain = spread(0.0)  # (g, h) of an even and (., ., g, h) of an odd degree
    for k in range(pairs):
        sums = load(row + 8 * LANES * k)
        before, even, i = even, c[k] * sums, 2 * k - 1
        if k > 0:
            store_first_two(at + 16 * i, up[i] * even - down[i] * before + m * turned(odd))
        before, chain, i = odd, sums - factor * chain, 2 * k
        odd, factor = u[k] * chain, v[k]
        if i <= last:
            store_middle_two(at + 16 * i, up[i] * odd - down[i] * before + m * turned(even))


# The product mu v on the grid ---------------------------------------------------------


@njit(**INNER, error_model="numpy")
def _multiply(own):
    """mu v on every pair of latitudes, with quadrature weights; returns the largest |v|.

    The values at x and -x are the real and the imaginary part of one complex function.
    """
    degree, band, half, fields, length = own.degree, own.band, own.half, own.fields, own.length
    spectra, values_at, scratch, x, weights = (
        own.spectra,
        own.values,
        own.scratch,
        own.x,
        own.weights,
    )
    sums, slopes, first = own.sums, own.sums_of_v, numbers_at(rules_at(own.rules).first, 0, 0)
    factors, table = integer_array(own.factors, (own.passes,)), own.turns
    size, largest = length * ROW, 0.0
    values = float_array(values_at, (fields, size // 8))
    count = 0
    for j in range(0, half, PAIRS):
        while count <= degree and first[count] <= j:
            count += 1  # orders that do not pass over these latitudes
        _join(sums, count, degree, j, half, x, length, spectra)
        few = min(count, band + 1)
        _join(slopes, few, band, j, half, x, length, spectra + size)
        _join(slopes + 32 * half, few, band, j, half, x, length, spectra + 2 * size)
        if fields == 4:
            _join(sums + 32 * half, count, degree, j, half, x, length, spectra + 3 * size)
        for f in range(fields):
            transform(spectra + f * size, values_at + f * size, scratch, factors, table)
        if fields == 4:
            _divide(values[1], values[2], values[3])
        largest = max(largest, _flux(values[0], values[1], values[2]))
        for f in range(2):  # of mu v, the spectrum of each component to where a field was
            target = values_at + f * size
            transform(target + size, target, scratch, factors, table)
            _part(target, length, count, j, half, weights, sums + 16 * half * f)
    return min(np.sqrt(largest), 1.0) if fields == 4 else np.sqrt(largest)


@njit(**INNER)
def _join(sums, count, last, j, half, x, length, spectrum):
    """The spectra of f(x) + i f(-x) at PAIRS pairs of latitudes, from the sums E and O.

    Orders from `count` to the last one are 0. All arrays by their addresses: rows of sums lie
    8 * half bytes apart, orders 8 rows.
    """
    step, z = 8 * half, load(x + 8 * j)
    nothing = spread(0.0)
    for m in range(count, last + 1):
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
def _part(spectrum, length, count, j, half, weights, products):
    """f(x) + f(-x) and x (f(x) - f(-x)) with weights, from the spectra of f(x) + i f(-x).

    The transform was that to values: order m is at n - m.
    """
    step, even, odd = 8 * half, load(weights + 8 * j), load(weights + 8 * half + 8 * j)
    for m in range(count):
        at, back = products + (8 * m * half + j) * 8, length - m if m > 0 else 0
        re, im = read_row(spectrum + back * ROW)
        back_re, back_im = read_row(spectrum + m * ROW)
        p, q, r, s = re + back_re, im - back_im, im + back_im, back_re - re
        store(at, even * (p + r))
        store(at + step, even * (q + s))
        store(at + 4 * step, odd * (p - r))
        store(at + 5 * step, odd * (q - s))


@njit(**INNER, error_model="numpy")
def _divide(slope, turn, normaliser):
    for i in range(slope.size):
        z = max(normaliser[i], NO_MASS)
        slope[i] /= z
        turn[i] /= z


@njit(**INNER)
def _flux(density, slope, turn):
    """mu v in the place of the components of v; returns the largest |v|^2."""
    largest = 0
    for i in range(density.size):
        largest = max(largest, as_bits(slope[i] * slope[i] + turn[i] * turn[i]))
        slope[i] *= density[i]
        turn[i] *= density[i]
    return from_bits(largest)
