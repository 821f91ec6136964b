"""Gauss latitudes of S^(d-1), and the recurrences for sums over degrees and latitudes.

On S^2 a function is sum_m f_m(x) e^{im phi}, x = cos(polar angle); axisymmetric functions on
S^(d-1) have the order m = 0 only.
"""

from contextlib import suppress
from math import lgamma
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.checks import check_memory
from ..core.read_only import read_only
from ..lowlevel import legendre
from ..lowlevel.compilation import njit
from ..lowlevel.legendre import BLOCK, RULES, analyse, fold, synthesise, unfold
from ..lowlevel.records import Field, Layout, Record, floats, numbers_at
from ..lowlevel.simd import LANES, aligned

NEGLIGIBLE_LEGENDRE = 2.0**-60


class Latitudes:
    """2 * `half` Gauss latitudes, exact to degree 4 * half - 1, and recurrences to a degree.

    Parameters
    ----------
    half : int
        Number of latitudes with x > 0.
    degree : int
        Highest degree of the sums, over l = m, ..., `degree`.
    orders : int
        Highest order m; 0 for axisymmetric functions.
    dimension : int
        d, which is 3 where orders > 0.

    Attributes
    ----------
    x, weights : ndarray, (half,)
        Nodes in (0, 1), from the pole to the equator; their weights, of sum 1/2.
    start : ndarray, (orders + 1, half)
        p_m of every order m.
    first : ndarray of int, (orders + 1,)
        Latitudes before this one, near the pole, are passed over: all p_l of the order are
        below 2^-60 there. It is a multiple of 8 and does not fall with the order.
    """

    def __init__(self, half: int, degree: int, orders: int = 0, dimension: int = 3) -> None:
        sizes = (5, orders + 1, half)
        check_memory(f"{half} latitudes for functions of degree {degree}", sizes, "degree")
        nodes, weights = legendre.gauss(2 * half, dimension)
        self.degree, self.orders, self.dimension = degree, orders, dimension
        self.x, self.weights = read_only(nodes[:half].copy()), read_only(weights[:half].copy())
        sine = np.sqrt((1 - self.x) * (1 + self.x))
        order = np.arange(1, orders + 1)[:, None]
        steps = np.vstack([np.ones_like(sine), np.sqrt((2 * order + 1) / (2 * order)) * sine])
        self.start = aligned_copy(np.cumprod(steps, axis=0))
        self.first = self._first_seen()

    def pairs(self, order: int) -> int:
        """Number of pairs of degrees of an order, rounded up to a multiple of BLOCK."""
        return -(-(self.degree - order + 1) // (2 * BLOCK)) * BLOCK

    @cached_property
    def first_steps(self) -> np.ndarray:
        """Index of the first column of each order in `two_steps`, (orders + 2,)."""
        sizes = [self.pairs(m) for m in range(self.orders + 1)]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def two_steps(self) -> np.ndarray:
        """The recurrence in steps of two degrees, (5, n): see `legendre.two_steps`."""
        table = aligned(5, self.first_steps[-1])
        for m in range(self.orders + 1):
            pairs = self.pairs(m)
            e = legendre.recurrence(m + 2 * pairs + 4, m, self.dimension)[m:]
            table[:, self.first_steps[m] : self.first_steps[m + 1]] = legendre.two_steps(e, pairs)
        return table

    @cached_property
    def _padded(self) -> tuple[np.ndarray, np.ndarray]:
        """Arrays x^2 and p_m, padded to a multiple of LANES latitudes, on which p_m is 0."""
        half = self.x.size
        width = -(-half // LANES) * LANES
        squares, start = aligned(width), aligned(self.orders + 1, width)
        squares[:half], start[:, :half] = self.x**2, self.start
        return squares, start

    def rules(self, start: np.ndarray | None = None) -> Record:
        """Record for `synthesise` and `analyse`, with a separate workspace.

        `start` (orders + 1, latitudes) are the first functions of the recurrence of each order, by
        default p_m.
        """
        squares, start_values = self._padded
        if start is not None:
            start_values = aligned(*start_values.shape)
            start_values[: len(start), : start.shape[1]] = start
        return RULES.filled(
            width=squares.size,
            squares=squares,
            start=start_values,
            two_steps=self.two_steps,
            steps=self.two_steps.shape[1],
            first=self.first,
            first_steps=self.first_steps,
            work=aligned(2, squares.size),
        )

    @cached_property
    def sines_squared(self) -> np.ndarray:
        """1 - x^2, (half,)."""
        return (1 - self.x) * (1 + self.x)

    @cached_property
    def nodes(self) -> np.ndarray:
        """All latitudes, (2 half,), from x near 1 to -1."""
        return read_only(np.concatenate([self.x, -self.x[::-1]]))

    @cached_property
    def node_weights(self) -> np.ndarray:
        """Weights of `nodes`, of sum 1."""
        return read_only(np.concatenate([self.weights, self.weights[::-1]]))

    def values(self) -> dict[str, Any]:
        """Values of LATITUDE_FIELDS, with a separate workspace."""
        pairs, rules = self.pairs(0), self.rules()
        folded = aligned(8, pairs)
        return {
            "x": self.x,
            "rules": rules,
            "products": aligned(8, rules.width),
            "folded": folded[:4],
            "unfolded": folded.reshape(pairs, 8),
            "series": aligned(2, 4 * pairs + 8),
        }

    @cached_property
    def _free_records(self) -> list[Record]:
        """Records that no thread uses at present; taking and returning one is atomic."""
        return []

    def _record(self) -> Record:
        with suppress(IndexError):
            return self._free_records.pop()
        values = self.values()
        sums, sizes = aligned(4, values["rules"].width), (self.degree, self.orders + 1)
        return SUMS.filled(**values, sums=sums, degree=sizes[0], orders=sizes[1])

    def synthesis(self, series: np.ndarray, columns: int) -> np.ndarray:
        """Sums over degrees, (members, modes) to (members, 2 half, columns >= orders + 1)."""
        sums = np.zeros((len(series), self.nodes.size, columns), dtype=complex)
        record = self._record()
        for coefficients, target in zip(series, sums, strict=True):
            parts = np.array(coefficients, dtype=complex).view(float)  # one type: not read-only
            _synthesise_all(record.address, parts, target)
        self._free_records.append(record)
        return sums

    def analysis(self, functions: np.ndarray) -> np.ndarray:
        """Projections of f_m at `nodes`, (members, 2 half, orders + 1), to (members, modes)."""
        modes = sum(self.degree + 1 - m for m in range(self.orders + 1))
        series = np.empty((len(functions), modes), dtype=complex)
        record, weights = self._record(), self.node_weights[:, None]
        for function, target in zip(functions, series, strict=True):
            _analyse_all(record.address, function * weights, target)
        self._free_records.append(record)
        return series

    def _first_seen(self) -> np.ndarray:
        """Attribute `first`: the first latitude of each order that is not negligible.

        |p_l| grows from the pole to the latitudes where it oscillates, and falls with the order.
        So the search goes from the highest order down, and from the last result towards the pole.
        """
        first = np.zeros(self.orders + 1, dtype=np.int64)
        at = self.x.size
        for order in range(self.orders, 0, -1):
            e = legendre.recurrence(self.degree + 1, order, self.dimension)[order:]
            at = _back_to(at, self.x, self.start[order], e)
            first[order] = (at // LANES if at < self.x.size else -(-at // LANES)) * LANES
        return first


def aligned_copy(array: np.ndarray) -> np.ndarray:
    """A copy of an array of floats, with memory as in `aligned`."""
    copy = aligned(*array.shape)
    copy[...] = array
    return copy


@njit(cache=True)
def _back_to(at: int, x: np.ndarray, start: np.ndarray, e: np.ndarray) -> int:
    """Index of the first latitude, at most `at`, from which on some |p_l| is not negligible."""
    for j in range(at - 1, -1, -1):
        before, p, i = 0.0, start[j], 0
        while abs(p) <= NEGLIGIBLE_LEGENDRE and i < e.size - 2:
            before, p = p, (x[j] * p - e[i] * before) / e[i + 1]
            i += 1
        if abs(p) <= NEGLIGIBLE_LEGENDRE:
            return j + 1
    return 0


LATITUDE_FIELDS: dict[str, Field] = {
    "x": floats("half"),
    "rules": RULES,
    "products": floats(8, "width"),  # what `analyse` takes
    **{"folded": floats(4, "pairs"), "unfolded": floats("pairs", 8)},  # in the same memory
    "series": floats(2, "series_size"),
}
SUMS = Layout(
    "LatitudeSums", {**LATITUDE_FIELDS, "sums": floats(4, "width"), "degree": int, "orders": int}
)
_sums_at = SUMS.at


@njit(cache=True)
def _synthesise_all(address: int, coefficients: np.ndarray, spectrum: np.ndarray) -> None:
    """Write Fourier coefficients (latitudes, orders) of a spherical harmonic series."""
    record = _sums_at(address)
    x, rules, sums, folded = record.x, record.rules, record.sums, record.folded
    last, begin = len(spectrum) - 1, 0
    first = numbers_at(rules.first, 0, 0)
    for m in range(record.orders):
        count = record.degree + 1 - m
        n = fold(m, rules, coefficients[2 * begin :], count, folded)
        begin += count
        synthesise(m, rules, folded, n, sums)
        for j in range(first[m], x.size):
            even = complex(sums[0, j], sums[1, j])
            odd = complex(x[j] * sums[2, j], x[j] * sums[3, j])
            spectrum[j, m], spectrum[last - j, m] = even + odd, even - odd


@njit(cache=True)
def _analyse_all(address: int, spectrum: np.ndarray, coefficients: np.ndarray) -> None:
    """Write sums over latitudes of p_l^m times a spectrum (latitudes, orders), for all m and l."""
    record = _sums_at(address)
    x, rules, values, unfolded = record.x, record.rules, record.products, record.unfolded
    series, last, begin = record.series[0], len(spectrum) - 1, 0
    for m in range(record.orders):
        count = record.degree + 1 - m
        pairs = (count + 1) // 2
        for j in range(x.size):
            plus = spectrum[j, m] + spectrum[last - j, m]
            minus = spectrum[j, m] - spectrum[last - j, m]
            values[0, j], values[1, j] = plus.real, plus.imag
            values[4, j], values[5, j] = x[j] * minus.real, x[j] * minus.imag
        analyse(m, rules, values, unfolded, (pairs + 1) // 2 * 2)
        unfold(m, rules, unfolded, pairs, series)
        for i in range(count):
            coefficients[begin + i] = complex(series[2 * i], series[2 * i + 1])
        begin += count


def sample_heights(coefficients: np.ndarray, dimension: int, level: np.ndarray) -> np.ndarray:
    """Quantiles of x = <point, e_d> at levels in (0, 1), by bisection.

    `coefficients` (degree + 1,) are those of order 0 of the density; the cumulative law is known
    in closed form.
    """
    from scipy.special import betainc

    half = (dimension - 1) / 2
    low, high = np.full(level.size, -1.0), np.ones(level.size)
    scale = np.exp(lgamma(half + 0.5) - lgamma(half)) / np.sqrt(np.pi)
    e = legendre.recurrence(coefficients.size + 1, 0, dimension)
    for _ in range(54):
        x = (low + high) / 2
        below = (1 + x) / 2 if dimension == 3 else betainc(half, half, (1 + x) / 2)
        rho = scale * ((1 - x) * (1 + x)) ** (half - 1)
        _add_below(x, rho, e, dimension, coefficients, below)
        low, high = np.where(below < level, x, low), np.where(below < level, high, x)
    return x


@njit(cache=True)
def _add_below(
    x: np.ndarray, rho: np.ndarray, e: np.ndarray, dimension: int, coefficients: np.ndarray,
    below: np.ndarray,
) -> None:  # fmt: skip
    """Add int_{-1}^x sum_{l > 0} c_l p_l rho dx = -sum c_l (1 - x^2) p_l' rho / (l (l + d - 2)).

    rho is the density of <token, e_d> when the token is uniform.
    """
    for j in range(x.size):
        before, p, total = 1.0, x[j] / e[1], 0.0
        for l in range(1, coefficients.size):
            after = (x[j] * p - e[l] * before) / e[l + 1]
            slope = (l + dimension - 2) * e[l] * before - l * e[l + 1] * after
            total += coefficients[l] * slope / (l * (l + dimension - 2))
            before, p = p, after
        below[j] -= total * rho[j]
