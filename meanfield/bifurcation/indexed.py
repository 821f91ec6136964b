"""The stationary equation of indexed densities: one equation for each node, coupled by velocities.

mu_i, the density at node i of the index, is moved by a_i = sum_j C_ij mu_j, C the influence:

    L* mu_i/kappa - div(mu_i v[a_i]) - omega_i dmu_i/dtheta = 0.

With D_1 and D_2 the derivatives of the drift term by mu_i and by a_i, the linearised drift is
delta_ij D_1 + C_ij D_2. If the nodes are symmetric about their centre, functions of the index are
expanded in the even and odd ones, (e_i + e_i')/2^(1/2) and (e_i - e_i')/2^(1/2) for a node i and
its mirror image i'. Symmetries may then reflect the index together with the circle, as with
frequencies of a symmetric law: (theta, omega) -> (-theta, -omega).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..core.cached import cached_property
from ..core.system import available_memory
from ..dynamics.indexed import IndexedMotion
from ..models import Transformer
from ..spaces.density import Density
from ..spaces.indexed import Indexed, IndexedSpace
from .bases import Array, Truncation
from .reflections import AllHarmonics, Reflected, Symmetries, all_harmonics
from .transport import Flow, TransportEquation, TransportState

TABLES_AT_ONCE, MATRICES_AT_ONCE = 2, 3  # arrays of each size that are needed at one time
MIRROR_ROUNDING = 1e-12  # relative tolerance for nodes and weights that are symmetric


class IndexedHarmonics(AllHarmonics):
    """Products of the real harmonics of a slice and functions of the index, harmonics first.

    Attributes
    ----------
    slices : AllHarmonics
        Harmonics of a slice.
    functions : ndarray, (P, P)
        Orthogonal; its columns are the functions of the index.
    """

    space: Any

    def __init__(self, space: Any):
        if 8 * _numbers(space) > available_memory():
            _refuse(space)
        self.space, self.slices = space, all_harmonics(space.slice_space)
        self.functions, odd = _index_functions(space.index)
        self.degrees = np.repeat(self.slices.degrees, len(odd))
        columns = [np.repeat(column, len(odd)) for column in self.slices.parities.T]
        if odd.any():
            columns.append(np.tile(odd, len(self.slices.degrees)))
        self.parities = np.array(columns).T
        self.rotations = [_kron(matrix, np.eye(len(odd))) for matrix in self.slices.rotations]

    def moments(self, coefficients: np.ndarray) -> np.ndarray:
        each = np.swapaxes(self.slices.moments(self.space.split(coefficients)), -1, -2)
        return (each @ self.functions).reshape(*each.shape[:-2], -1)

    def series(self, moments: np.ndarray, mass: float = 1.0) -> np.ndarray:
        return self.space.joined(
            self.slices.series(np.swapaxes(self.by_node(moments), -1, -2), mass)
        )

    def nodes(self, kept: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        return self.slices.nodes((0,))

    def by_node(self, c: np.ndarray) -> np.ndarray:
        """Coefficients (..., N) by harmonic and node, (..., n, P)."""
        return c.reshape(*c.shape[:-1], -1, len(self.functions)) @ self.functions.T

    def by_function(self, each: np.ndarray) -> np.ndarray:
        """The transpose of `by_node`, (..., N) from (..., n, P)."""
        return (each @ self.functions).reshape(*each.shape[:-2], -1)


def _kron(matrix: Any, other: np.ndarray) -> Any:
    from scipy.sparse import csr_array, kron

    return csr_array(kron(matrix, other, format="csr"))


def _index_functions(index: Any) -> tuple[np.ndarray, np.ndarray]:
    """Even and odd functions of an index, as columns (P, P), and which are odd, (P,)."""
    nodes, weights = index.nodes - index.weights @ index.nodes, index.weights
    apart = np.abs(nodes + nodes[::-1]).max() / max(np.abs(nodes).max(), 1e-300)
    unequal = (np.abs(weights - weights[::-1]) / weights).max()
    count = len(index)
    if count == 1 or max(apart, unequal) > MIRROR_ROUNDING:
        return np.eye(count), np.zeros(count, dtype=bool)
    unit, half = np.eye(count), count // 2
    pairs = unit[:, :half], unit[:, ::-1][:, :half]
    middle = unit[:, half : count - half]
    columns = [(pairs[0] + pairs[1]) / np.sqrt(2), middle, (pairs[0] - pairs[1]) / np.sqrt(2)]
    return np.hstack(columns), np.arange(count) >= count - half


class IndexedBasis(Reflected, space=IndexedSpace):
    """All products of harmonics and functions of the index: see `Reflected`."""

    space: Any
    all: Any
    harmonics: ClassVar[type[AllHarmonics]] = IndexedHarmonics
    bounds: ClassVar = {2: Truncation(16, 128, 256, 1e-12), 3: Truncation(6, 32, 64, 1e-10)}

    @cached_property
    def shares(self) -> np.ndarray:
        functions = self.all.functions
        return np.tile(self.space.index.weights @ functions**2, len(self.all.slices.degrees))

    @cached_property
    def without_drift(self) -> np.ndarray:
        return np.zeros(len(self.degrees))

    def guesses(self, count: int) -> Iterator[np.ndarray]:
        """Moments of the guesses for a density, in all slices."""
        alike = self.all.functions.sum(axis=0)
        for unit in np.eye(count):
            yield from (self.tilted(np.outer(sign * unit, alike).ravel()) for sign in (1, -1))

    def tilted(self, c: np.ndarray) -> np.ndarray:
        space = self.space.slice_space
        padded = np.pad(c, (0, len(self.degrees) - len(c)))
        exponent = self.space.split(self.space.to_values(self.all.series(padded, 0.0)))
        law = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        law /= (law @ space.weights)[:, None]
        return self.all.moments(self.space.joined(space.to_coefficients(law))) / self.sizes

    def density(self, m: np.ndarray, axis: Any = None) -> Density:
        return Indexed(self.space, self.all.series(self.sizes * m))

    def first_moments(self, m: np.ndarray) -> np.ndarray:
        marginal = self.all.by_node(m) @ self.space.index.weights
        return np.asarray(marginal[..., self.all.slices.degrees == 1])


def _numbers(space: Any) -> int:
    """Numbers in the tables of all harmonics of a slice and in the Jacobian of all slices."""
    inner, degree = space.slice_space, space.slice_space.degree
    size = 2 * degree if inner.dimension == 2 else degree * (degree + 2)
    return (
        TABLES_AT_ONCE * inner.dimension * size * inner.weights.size
        + MATRICES_AT_ONCE * (size * len(space.index)) ** 2
    )


def _refuse(space: Any) -> NoReturn:
    """Raise ValueError with the memory that a space needs and the largest degree that fits."""
    there, count = available_memory(), len(space.index)
    finest = range(1, space.degree)
    fits = bisect_right(finest, there, key=lambda l: 8 * _numbers(space.with_degree(l)))
    raise ValueError(
        f"Stationary states of all {count} densities of {space!r} need "
        f"{8 * _numbers(space) / 1e9:.3g} GB for dense tables, and {there / 1e9:.3g} GB are "
        f"available. Densities up to degree {fits} fit: give density.resample({fits})."
    )


class IndexedEquation(TransportEquation):
    """R(m) = 0 for the densities of all nodes under one model.

    Parameters
    ----------
    model : Transformer
    basis : IndexedBasis
    neighbours : callable, optional
        As for `TransportEquation`.
    """

    def __init__(
        self, model: Transformer, basis: Any, neighbours: Callable[..., Any] | None = None
    ):
        super().__init__(model, basis, neighbours)
        space = basis.space
        motion = IndexedMotion(model, space.uniform())
        self.influence, count = motion.influence, len(space.index)
        alone = Reflected(space.slice_space, basis.noise, Symmetries((0,)))
        drifts: Any = motion.drift_at_nodes
        plain = motion.plain.replace(kappa=1.0)
        each = [
            plain.replace(drift=d)
            for d in ([drifts] if not drifts.shape else map(drifts.member, range(count)))
        ]
        slices = [TransportEquation(one, alone) for one in each]
        self._slices = slices * count if len(slices) == 1 else slices
        self._frequencies = motion.frequencies

    @cached_property
    def _frequency_operator(self) -> Any:
        if not self._frequencies.any():
            return 0.0
        slices, functions = self.basis.all.slices, self.basis.all.functions
        every = slices.series(np.eye(len(slices.degrees)), 0.0)
        turned = slices.moments(-1j * slices.space.degrees * every).T
        return np.kron(turned, functions.T @ (self._frequencies[:, None] * functions))

    def _nodal(self, c: Array, part: Any) -> Array:
        """Coefficients of one order, (n,), by harmonic and node, (n', P)."""
        every = np.zeros(len(self.degrees), dtype=c.dtype)
        every[part.members] = c
        return self.basis.all.by_node(every)

    def _flows(self, c: Array) -> tuple[list[Flow], Array]:
        each = self._nodal(c, self.basis.even)
        acting, masses = each @ self.influence.T, self.influence.sum(axis=1)
        moved = [
            one.moved(each[:, i], acting[:, i], masses[i]) for i, one in enumerate(self._slices)
        ]
        force = self.basis.all.by_function(np.array([force for _, force in moved]).T)
        return [flow for flow, _ in moved], force[self.basis.even.members]

    def _drifted(self, state: TransportState, part: Any) -> Array:
        functions, size = self.basis.all.functions, len(self.degrees)
        acting, count = self.influence @ functions, len(functions)
        total: Any = 0.0
        slices = zip(self._slices, state.flows, strict=True)
        sides = zip(*(one.divergences(flow, one.basis.even) for one, flow in slices), strict=True)
        for right, blocks in zip((functions, acting), sides, strict=True):
            pairs = (functions[:, :, None] * right[:, None]).reshape(count, -1)
            total = total + pairs.T @ np.reshape(blocks, (count, -1))
        n = size // count
        matrix = total.reshape(count, count, n, n).transpose(2, 0, 3, 1).reshape(size, size)
        return matrix[np.ix_(part.members, part.members)]

    def _drifted_change(
        self, state: TransportState, part: Any, left: Array, right: Array
    ) -> tuple[Array, Any]:
        l, r = self._nodal(left, part), self._nodal(right, part)
        acting, change, total = r @ self.influence.T, np.zeros(l.shape, np.result_type(l, r)), 0.0
        for i, (one, flow) in enumerate(zip(self._slices, state.flows, strict=True)):
            by_density, by_measure, value = one.flux_change(
                flow, one.basis.even, l[:, i], r[:, i], acting[:, i]
            )
            change[:, i] += by_density
            change += np.outer(by_measure, self.influence[i])
            total += value
        return self.basis.all.by_function(change)[self.basis.even.members], total
