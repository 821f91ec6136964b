"""Bases of waves on the torus for states that are even about a point.

A symmetry is a group of matrices that change signs of the angles, and may exchange them. It maps a
wave k to those of its orbit O, and the invariant functions are

    P_O(x) = (1/|O|) sum_{k in O} cos <k, x>,    p_O = sqrt(|O|) P_O,

one for each orbit, numbered 1, 2, ... in `degrees`. Perturbations are sorted by the angles in which
they are odd, or, if the group only changes all signs at once, into even and odd ones. Order 0 is
invariant under the group. If it exchanges angles, order 1 is even in every angle and orthogonal to
order 0, and order 1 + j is odd in the first j angles, for as many equal eigenvalues.

Translations by half a period of a state, and exchanges of the angles, give equivalent states.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import permutations, product
from typing import Any, ClassVar, Self

import numpy as np

from ..core.cached import cached_property
from ..core.errors import MeanfieldError
from ..lowlevel.compilation import njit
from ..models.zonal import ZonalDrift
from ..spaces import Torus
from ..spaces.density import Density
from ..spaces.validity import HarmonicSizes
from .bases import (
    AXISYMMETRIC,
    NO_MOMENT,
    ON_CIRCLE,
    SYMMETRY_ROUNDING,
    UNIFORM_MOMENT,
    VISIBLE_MOMENT,
    Basis,
    Truncation,
    distinct,
)  # fmt: skip

SQUARE, EVEN = "square", "even"
INVARIANT_KERNEL = 1e-12  # relative difference of multipliers in an orbit that is rounding
COARSE_TAIL = 0.05  # last moments of a state at the first of these truncations
COUPLED_MOMENT = 1e-12  # moments that couple perturbations
TRUNCATION_RATIO = 1.25  # ratio of the degrees of truncations whose spectra are compared
IN_LATTICE = 1e-6  # distance from whole numbers of the coordinates of a wave in a lattice


class Orbits:
    """Orbits of the waves of a torus under a symmetry.

    Attributes
    ----------
    representatives : ndarray of int, (N, m)
        One wave of each, in the order of max |k_i|.
    of_waves : ndarray of int, (modes,)
        Number of the orbit of each stored wave of the space; 0 of the constant.
    sizes : ndarray of int, (N,)
        Numbers of waves.
    """

    def __init__(self, space: Torus, name: str) -> None:
        self.name, self.circles = name, space.circles
        waves = space.waves[1:]
        rows, inverse, counts = np.unique(
            self._standard(waves), axis=0, return_inverse=True, return_counts=True
        )
        squares = (rows**2).sum(axis=1)
        order = np.lexsort([*rows.T[::-1], squares, np.abs(rows).max(axis=1)])
        self.representatives, self.sizes = rows[order], 2 * counts[order]
        self.of_waves = np.append(0, 1 + np.argsort(order)[inverse.ravel()])
        self.highest = np.abs(self.representatives).max(axis=1)

    def _standard(self, waves: np.ndarray) -> np.ndarray:
        """The wave that stands for the orbit of each, (n, m)."""
        if self.name == EVEN:
            first = np.take_along_axis(waves, (waves != 0).argmax(axis=1)[:, None], axis=1)
            return waves * np.sign(first)
        positive = np.abs(waves)
        return positive if self.name == AXISYMMETRIC else -np.sort(-positive, axis=1)

    def numbers(self, waves: np.ndarray) -> np.ndarray:
        """Index of the orbit of each wave, (n,)."""
        places = {tuple(row): i for i, row in enumerate(self.representatives.tolist())}
        return np.array([places[tuple(row)] for row in self._standard(waves).tolist()])

    def of(self, drift: ZonalDrift, table: np.ndarray) -> np.ndarray:
        """Multipliers (..., 1 + N) of the orbits, from those of waves; raises if they differ."""
        numbers = self.of_waves
        first = np.unique(numbers, return_index=True)[1]
        result = table[..., first]
        most = INVARIANT_KERNEL * np.abs(table).max(initial=0.0)
        if np.abs(table - result[..., numbers]).max(initial=0.0) > most:
            raise MeanfieldError(
                f"{drift!r} differs between waves that symmetry={self.name!r} exchanges: take "
                f'symmetry="{EVEN}".'
            )
        if np.abs(table.imag).max(initial=0.0) > most:
            raise MeanfieldError(
                f"{drift!r} is not even: its states may move, and have no stationary equation here."
            )
        return np.asarray(result.real)

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """|k|^2 of each orbit, that of the constant first, (1 + N,)."""
        return np.append(0.0, (self.representatives**2.0).sum(axis=1))

    @cached_property
    def turns(self) -> list[np.ndarray]:
        """Indices (N,) of the orbits to which exchanges and changes of sign map each of them."""
        signs = product((1, -1), repeat=self.circles) if self.name == EVEN else [(1,)]
        kept: dict[bytes, np.ndarray] = {}
        for sign, axes in product(signs, permutations(range(self.circles))):
            turn = self.numbers(np.array(sign) * self.representatives[:, axes])
            kept[turn.tobytes()] = turn
        return list(kept.values())


@lru_cache(maxsize=16)
def orbits_on(space: Torus, name: str) -> Orbits:
    """The orbits of a symmetry; the last 16 are cached."""
    return Orbits(space, name)


class OnTorus(Basis):
    """Basis of functions of the orbits of waves, each with a multiplier of its own.

    Attributes
    ----------
    orbits_of_waves : Orbits
    waves : ndarray of int, (N, m)
        A wave of each function.
    """

    space: Torus
    orbits_of_waves: Orbits
    waves: np.ndarray

    @property
    def highest(self) -> np.ndarray:
        return np.abs(self.waves).max(axis=1)

    @property
    def eigenvalues(self) -> np.ndarray:
        return (self.waves**2.0).sum(axis=1)

    @property
    def multiplier_eigenvalues(self) -> np.ndarray:
        return self.orbits_of_waves.eigenvalues

    def attraction(self, drift: ZonalDrift) -> np.ndarray:
        return self.orbits_of_waves.of(drift, self.space.attraction(drift))

    def normaliser(self, drift: ZonalDrift) -> np.ndarray | None:
        table = self.space.normaliser(drift)
        return None if table is None else self.orbits_of_waves.of(drift, table)

    def interaction(self, drift: ZonalDrift) -> np.ndarray:
        return self.orbits_of_waves.of(drift, self.space.interaction(drift))


class TorusWaves(OnTorus, names=(AXISYMMETRIC, SQUARE, EVEN), space=Torus):
    """Functions of one order on the torus, on a grid with a point of each set of mirror images.

    Parameters
    ----------
    space : Torus
    name : str
        "axisymmetric": even in each angle. "square": invariant also under exchanges of angles.
        "even": invariant under x -> -x.
    order : int
    nodes : int, optional
        Degree for which the grid is fine enough; that of the functions by default.
    """

    rotation_order, refinement = -1, 1.5
    truncations: ClassVar = {
        AXISYMMETRIC: (Truncation(8, 27, 64, 1e-10), Truncation(4, 9, 12, 1e-10)),
        SQUARE: (Truncation(8, 40, 80, 1e-10), Truncation(4, 12, 16, 1e-10)),
        EVEN: (Truncation(8, 18, 40, 1e-10), Truncation(4, 6, 7, 1e-10)),
    }  # with two and three angles

    def __init__(self, space: Torus, name: str, order: int = 0, nodes: int = 0) -> None:
        self.space, self.name, self.order, self.nodes = space, name, order, nodes or space.degree
        self.degree, self.dimension, self.circles = space.degree, space.dimension, space.circles
        limits = (ON_CIRCLE, *self.truncations[name])[self.circles - 1]
        self.least, self.most, self.finest, self.unresolved = limits
        self.axis = np.zeros(self.circles)
        self.orbits_of_waves = orbits_on(space, name)
        self.odd = self._classes[order]
        self._signed = self.odd[:1] if name == EVEN else self.odd  # angles whose signs count
        self.orders = len(self._classes)
        self.waves, self._mixing = self._functions()
        self.degrees = self.orbits_of_waves.numbers(self.waves) + 1
        self._parts: dict[int, TorusWaves] = {0: self} if order == 0 else {}

    @cached_property
    def _classes(self) -> list[tuple[int, ...]]:
        """Angles in which the functions of each order are odd; all of them for odd ones if even."""
        m = self.circles
        if self.name == EVEN:
            return [(), tuple(range(m))]
        if self.name == SQUARE and m > 1:
            return [(), (), *(tuple(range(j)) for j in range(1, m + 1))]
        sets = [tuple(i for i in range(m) if bits >> i & 1) for bits in range(2**m)]
        return sorted(sets, key=len)

    def _functions(self) -> tuple[np.ndarray, Any]:
        """A wave of each function, and a matrix from products of sines and cosines, or None."""
        from scipy.sparse import block_diag, csr_array

        waves = self.orbits_of_waves.representatives
        if self.order == 0 or self.name == EVEN:
            return waves, None
        if self.odd:
            waves = orbits_on(self.space, AXISYMMETRIC).representatives
            return waves[waves[:, self.odd].all(axis=1)], None
        rows = [_contrasts(len(set(permutations(row)))) for row in waves.tolist()]
        repeated = np.repeat(waves, [len(row) for row in rows], axis=0)
        return repeated, block_diag([*map(csr_array, rows)], format="csr")

    @classmethod
    def on(cls, space: Any, name: Any) -> Self:
        coarsest = cls(space.with_degree(1), name)
        return coarsest.finer(max(coarsest.least, min(space.degree, coarsest.most)))

    def of_order(self, order: int) -> "TorusWaves":
        if order not in self._parts:
            self._parts[order] = TorusWaves(self.space, self.name, order)
        return self._parts[order]

    def finer(self, degree: int) -> Self:
        return type(self)(self.space.with_degree(degree), self.name, self.order)

    def coarser(self, part: Any, m: np.ndarray, felt: np.ndarray) -> Iterator[Any]:
        state, drift = HarmonicSizes(self.highest, m), HarmonicSizes(part.highest, 1.0 * felt)
        gap = max(state.gap(COUPLED_MOMENT), drift.gap(0.0))
        degree = max(self.coarsened(m, COARSE_TAIL).degree, drift.sufficient(0.0), gap)
        while max(TRUNCATION_RATIO * degree, degree + gap) < self.degree:
            yield type(self)(self.space.with_degree(degree), self.name, part.order, self.nodes)
            degree = max(int(TRUNCATION_RATIO * degree), degree + gap)
        yield part

    def truncation_of(self, degree: int) -> int:
        return next(
            d for d in range(1, self.finest + 1)
            if len(orbits_on(self.space.with_degree(d), self.name).sizes) >= degree
        )  # fmt: skip

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.sqrt(self.orbits_of_waves.sizes[self.degrees - 1])

    # Tables -----------------------------------------------------------------------------------

    @cached_property
    def _angles(self) -> list[np.ndarray]:
        """Nodes of each angle: between 0 and pi where there are mirror images."""
        half = 3 * self.nodes // 2 + 4
        whole = (2 * half if self.name == EVEN and i else half for i in range(self.circles))
        return [(np.arange(n) + 0.5) * np.pi / half for n in whole]

    @cached_property
    def weights(self) -> np.ndarray:  # type: ignore[override]
        size = np.prod([len(x) for x in self._angles])
        return np.full(size, 1 / size)

    def _table(self, along: int | None = None) -> np.ndarray:
        """Values (n, M) of the functions, or of their derivatives in one angle."""
        table: Any = 0.0
        for weight, images, _ in self._images(self._products):
            change = np.ones(len(images)) if along is None else 1j * images[:, along]
            series = (weight * (-1j) ** len(self._signed) * change)[:, None]
            for k, powers in zip(images.T, self._exponentials, strict=True):
                waves = powers.T[k + self.degree]
                series = (series[:, :, None] * waves[:, None]).reshape(len(k), -1)
            table = table + self._norms[:, None] * series.real
        return table if self._mixing is None else np.asarray(self._mixing @ table)

    @cached_property
    def values(self) -> np.ndarray:  # type: ignore[override]
        return self._table()

    @cached_property
    def gradients(self) -> np.ndarray:  # type: ignore[override]
        return np.array([self._table(i) for i in range(self.circles)])

    # Sums over waves: P_i is a mean of exponentials of its waves

    @cached_property
    def _exponentials(self) -> list[np.ndarray]:
        """exp(iqx) (n, 2L + 1) at the nodes of each angle, |q| <= L."""
        q = np.arange(-self.degree, self.degree + 1)
        return [np.exp(1j * np.outer(x, q)) for x in self._angles]

    @cached_property
    def _places(self) -> list[tuple[float, np.ndarray]]:
        """Weight of each image of the waves, and its flat places among all waves, (n,)."""
        shape = self.circles * (2 * self.degree + 1,)
        images = ((weight, one + self.degree) for weight, one, _ in self._images(self.waves))
        return [(weight, np.ravel_multi_index(tuple(one.T), shape)) for weight, one in images]

    def _on_waves(self, c: np.ndarray) -> np.ndarray:
        """Coefficients of all waves, (2L + 1, ..., 2L + 1), of sum_i c_i P_i."""
        series = np.zeros(self.circles * (2 * self.degree + 1,))
        for weight, places in self._places:
            series.flat[places] += weight * c
        return series

    def _summed(self, series: np.ndarray) -> np.ndarray:
        """Real part (M,), at the nodes, of the sum of exponentials with these coefficients."""
        for table in self._exponentials:
            series = np.tensordot(series, table, (0, 1))
        return np.ravel(series.real)

    def synthesised(self, m: np.ndarray) -> np.ndarray:
        return super().synthesised(m) if self.order else self._summed(self._on_waves(m))

    def gradient_of(self, c: np.ndarray) -> np.ndarray:
        if self.order:
            return super().gradient_of(c)
        series, q = self._on_waves(c * self.sizes), np.arange(-self.degree, self.degree + 1)
        waves = np.meshgrid(*self.circles * (q,), indexing="ij", sparse=True)
        return np.array([self._summed(1j * one * series) for one in waves])

    def analysed(self, masses: np.ndarray) -> np.ndarray:
        if self.order:
            return super().analysed(masses)
        series = masses.reshape([len(x) for x in self._angles])
        for table in self._exponentials:
            series = np.tensordot(series, table, (0, 0))
        return np.sum([weight * series.real.flat[places] for weight, places in self._places], 0)

    # p_i p_j is a mean of cosines of k - k', for a wave k of p_i and all k' of p_j

    @cached_property
    def _products(self) -> np.ndarray:
        """A wave (n, m) of each product of sines and cosines in the functions."""
        if self._mixing is None:
            return self.waves
        every = self.orbits_of_waves.representatives.tolist()
        return np.array([one for row in every for one in sorted(set(permutations(row)))])

    @cached_property
    def _norms(self) -> np.ndarray:
        """Factors (n,) of products, or of sums over an orbit, that have the norm 1."""
        if self.name == EVEN or self.order == 0:
            return self.sizes
        return np.asarray(2 ** (np.count_nonzero(self._products, axis=1) / 2))

    @cached_property
    def _circular(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """cos qx and sin qx (n, 4L + 1) at the nodes of each angle, |q| <= 2L."""
        q = np.arange(-2 * self.degree, 2 * self.degree + 1)
        return [(np.cos(np.outer(x, q)), np.sin(np.outer(x, q))) for x in self._angles]

    def _series(self, masses: np.ndarray, odd: int | None = None) -> np.ndarray:
        """sum_n masses_n cos <q, x_n> over nodes and images, flat; of sines, if odd in an angle."""
        series = masses.reshape([len(x) for x in self._angles])
        for i, (cosine, sine) in enumerate(self._circular):
            table = cosine + 1j * sine if self.name == EVEN else sine if i == odd else cosine
            series = np.tensordot(series, table, (0, 0))
        return np.ravel(series.imag if self.name == EVEN and odd is not None else series.real)

    def _images(self, waves: np.ndarray) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Weight of each image of waves (n, m) in the p_j, the images, and their flat places."""
        signs = list(product((1, -1), repeat=self.circles))
        signs = [signs[0], signs[-1]] if self.name == EVEN else signs
        exchanged = self.name == SQUARE and self.order == 0
        axes = permutations(range(self.circles)) if exchanged else [tuple(range(self.circles))]
        changes = list(product(signs, axes))
        steps = (4 * self.degree + 1) ** np.arange(self.circles)[::-1]
        for sign, axis in changes:
            parity = np.prod([sign[i] for i in self._signed])
            images = np.array(sign) * waves[:, axis]
            yield float(parity) / len(changes), images, images @ steps

    def pairings(self, masses: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """Means of products as in `Basis`, for masses with the symmetry of the functions."""
        chosen = slice(None) if columns is None else columns
        waves, series = self._products, self._series(masses)
        (_, _, rows), *_ = self._images(waves)
        rows = rows[:, None] + len(series) // 2
        others = waves if self._mixing is not None else waves[chosen]
        result = np.zeros((len(rows), len(others)))  # sums of masses P_i P_j
        for weight, _, places in self._images(others):
            result += weight * series[rows - places]
        if self._mixing is not None:
            result *= np.outer(self._norms, self._norms)
            result = (self._mixing @ (self._mixing @ result.T).T)[:, chosen]
            return np.asarray(result / np.outer(self.sizes, self.sizes[chosen]))
        ratios = self._norms / self.sizes
        return result if self.order == 0 else result * np.outer(ratios, ratios[chosen])

    def _of_products(self, weights: np.ndarray) -> np.ndarray:
        """Values (n,) for the products from those (N,) for the functions, equal in an orbit."""
        if self._mixing is None:
            return weights
        table = np.zeros(len(self.orbits_of_waves.sizes))
        table[self.degrees - 1] = weights
        return table[self.orbits_of_waves.numbers(self._products)]

    def transport(
        self, flow: np.ndarray, bent: np.ndarray, masses: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        signs, images, places = (
            np.array(one) for one in zip(*self._images(self._products), strict=True)
        )
        felt = np.outer(signs, self._of_products(weights))
        gains, bent = self._series(masses), bent if bent.any() else bent[:0]
        flows, bends = (
            np.array([self._series(one, i) for i, one in enumerate(field)]).reshape(-1, len(gains))
            for field in (flow, bent)
        )
        matrix = _transported(images, places, signs, felt, flows, bends, gains)
        matrix *= np.outer(self._norms, self._norms)
        return matrix if self._mixing is None else self._mixing @ (self._mixing @ matrix.T).T

    # Densities --------------------------------------------------------------------------------

    def _centre(self, series: np.ndarray) -> np.ndarray:
        """Angles (m,) about which a density is even, by its lowest independent waves."""
        waves, sizes = self.space.waves, np.abs(series)
        sizes[0] = 0
        seen = np.flatnonzero((sizes > VISIBLE_MOMENT * sizes.max()) & (sizes > NO_MOMENT))
        order = np.lexsort([(waves[seen] ** 2).sum(axis=1), self.space.degrees[seen]])
        chosen: list[int] = []
        for i in seen[order]:
            if np.linalg.matrix_rank(waves[[*chosen, i]]) > len(chosen):
                chosen.append(int(i))
            if len(chosen) == self.circles:
                break
        return np.linalg.lstsq(waves[chosen].astype(float), -np.angle(series[chosen]))[0]

    def moments(self, density: Density) -> tuple[np.ndarray, Any]:
        series = density.space.resample(density.coefficients, self.degree)
        centre = self._centre(series)
        even = (series * np.exp(1j * self.space.waves @ centre)).real
        numbers = self.orbits_of_waves.of_waves
        return (np.bincount(numbers, even) / np.bincount(numbers))[1:], centre

    def density(self, m: np.ndarray, axis: Any) -> Density:
        series = np.append(1.0, m)[self.orbits_of_waves.of_waves]
        return Density(self.space, series * np.exp(-1j * self.space.waves @ np.asarray(axis)))

    def first_moments(self, m: np.ndarray) -> np.ndarray:
        first = self.orbits_of_waves.numbers(np.eye(self.circles, dtype=int))
        return np.asarray(m[..., first]) / self.circles**0.5

    # Symmetries -------------------------------------------------------------------------------

    def rotation_count(self, m: np.ndarray) -> int:
        """Number of infinitesimal translations of a state with moments m in this order."""
        present = np.abs(m[self.orbits_of_waves.of_waves[1:] - 1]) > UNIFORM_MOMENT
        waves = self.space.waves[1:][present]
        if self.name == EVEN:
            return int(np.linalg.matrix_rank(waves)) if self.odd and len(waves) else 0
        return int(len(self.odd) == 1 and waves[:, self.odd].any())

    def damped_from(self, degree: int) -> int:
        return self.orders

    def _lattice(self, m: np.ndarray) -> np.ndarray:
        """Basis (r, m) of the lattice of the waves of a state."""
        present = np.abs(m[self.orbits_of_waves.of_waves[1:] - 1]) > SYMMETRY_ROUNDING
        return lattice_of(self.space.waves[1:][present])

    def images(self, m: np.ndarray) -> list[np.ndarray]:
        """Signs (N,) by each translation by half periods that keeps the symmetry of a state."""
        lattice = self._lattice(m)
        numbers, waves = self.orbits_of_waves.of_waves[1:] - 1, self.space.waves[1:]
        inside, places = _within(waves, lattice)
        images: dict[bytes, np.ndarray] = {}
        for bits in product((0, 1), repeat=len(lattice)):
            odd = places @ np.array(bits, dtype=int) % 2 == 1
            share = np.bincount(numbers[inside], odd[inside], len(m)) / np.bincount(numbers)
            signs = np.where(share > 0, -1.0, 1.0)
            if any(bits) and set(np.unique(share)) <= {0.0, 1.0}:
                images[signs.tobytes()] = signs
        return list(images.values())

    def equivalents(self, m: np.ndarray) -> list[np.ndarray]:
        signs = np.ones_like(m), *self.images(m)
        turned = [(one * m)[turn] for one in signs for turn in self.orbits_of_waves.turns]
        return distinct([m, *turned])[1:]

    def mirrored(self, direction: np.ndarray) -> bool:
        others = self.equivalents(direction)
        return any(np.abs(other + direction).max() < SYMMETRY_ROUNDING for other in others)

    def symmetric_part(self, like: np.ndarray, m: np.ndarray) -> np.ndarray:
        inside, _ = _within(self.orbits_of_waves.representatives, self._lattice(like))
        return np.where(inside, m, 0.0)


@njit(cache=True, nogil=True)
def _transported(
    images: np.ndarray, places: np.ndarray, signs: np.ndarray, felt: np.ndarray,
    flows: np.ndarray, bends: np.ndarray, gains: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Matrix (n, n) of `TorusWaves.transport` between products, from series (..., modes).

    `images` (S, n, m) are those of the waves, themselves first, and `places` (S, n) those in the
    series; `signs` (S,) are their weights, and `felt` (S, n) the multipliers times these.
    """
    waves, middle = images[0], len(gains) // 2
    count, circles = waves.shape
    matrix = np.zeros((count, count))
    for i in range(count):
        for s in range(len(signs)):
            for j in range(count):
                at, total = places[0, i] + middle - places[s, j], matrix[i, j]
                for k in range(circles):
                    total -= signs[s] * waves[i, k] * flows[k, at]
                if felt[s, j] != 0:
                    product = 0
                    for k in range(circles):
                        product += waves[i, k] * images[s, j, k]
                    drawn = gains[at] * product
                    for k in range(len(bends)):
                        drawn += waves[i, k] * bends[k, at]
                    total += felt[s, j] * drawn
                matrix[i, j] = total
    return matrix


def _contrasts(count: int) -> np.ndarray:
    """Orthonormal rows (count - 1, count), each orthogonal to the constant one."""
    rows = np.tril(np.ones((count, count)))[:-1] - np.diag(np.arange(1.0, count), 1)[:-1]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def lattice_of(waves: np.ndarray) -> np.ndarray:
    """Basis (r, m) of the lattice spanned by waves (n, m), in echelon form."""
    rows, basis = np.unique(waves, axis=0), []
    for column in range(waves.shape[1]):
        while (live := np.flatnonzero(rows[:, column])).size > 1:
            least = live[np.abs(rows[live, column]).argmin()]
            others = np.delete(live, np.flatnonzero(live == least))
            rows[others] -= (rows[others, column] // rows[least, column])[:, None] * rows[least]
            rows = np.unique(rows, axis=0)
        basis += [rows[i] for i in live]
        rows = np.delete(rows, live, axis=0)
    return np.array(basis, dtype=int).reshape(-1, waves.shape[1])


def _within(waves: np.ndarray, lattice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether waves (n, m) lie in a lattice, and their whole coordinates in it, (n, r)."""
    if not len(lattice):
        return np.logical_not(waves.any(axis=1)), np.zeros((len(waves), 0), dtype=int)
    places = np.linalg.lstsq(lattice.T.astype(float), waves.T.astype(float))[0].T
    whole = np.round(places).astype(int)
    inside: np.ndarray = np.abs(whole @ lattice - waves).max(axis=1) < IN_LATTICE
    return inside, whole
