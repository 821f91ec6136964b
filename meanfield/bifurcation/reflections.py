"""Basis of all harmonics for models without full rotational invariance, sorted by reflections.

Models with non-isotropic noise, fields or matrices are not invariant under all rotations, but may
be invariant under changes of sign of the coordinates, x -> (s_1 x_1, ..., s_d x_d), which are
called reflections: all 2^d for a diagonal Sigma, x -> -x for every even scale. Real harmonics are
even or odd under each of them. A state is invariant under some of the reflections of its model.
Functions invariant under all of these have order 0; the others are sorted by the reflections under
which they are odd. Perturbations of different orders do not couple.

An order is a number with one bit for each generator of the reflections of the state, set for odd
functions. Generators change one sign if possible: for a diagonal Sigma, bit k of an order says
whether a perturbation is odd in x_k.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ..core.cached import cached_property
from ..core.checks import check_memory
from ..core.kinds import ancestor
from ..lowlevel.blas import one_blas_thread
from ..models.generators import orthonormal
from ..models.noise import Noise
from ..spaces import Space
from ..spaces.density import Density
from .bases import NO_MOMENT, Basis, Truncation, directional

REFLECTION_ROUNDING = 1e-11  # entries of L* below this, relative to the largest, are rounding
FINITE_TURN = 1e-6  # angle from which a rotation in a step of Newton's method is finite
ROTATION_ROUNDING = 1e-8  # smaller infinitesimal rotations of a state are rounding
FORWARD = np.array([1.0, 0.618, 0.287, 0.137, 0.071, 0.039])  # no two images are equally far


class Symmetries(NamedTuple):
    """Reflections and rotations under which a model is invariant.

    Attributes
    ----------
    reflections : tuple of int
        Numbers with bit k set if the sign of x_k changes; of indexed densities with bit d set if
        the index is reflected too.
    planes : tuple of int
        Indices of the coordinate planes of the rotations, in the order (0, 1), (0, 2), (1, 2).
    """

    reflections: tuple[int, ...]
    planes: tuple[int, ...] = ()


class AllHarmonics:
    """The real orthonormal harmonics of a space, without the constant.

    Attributes
    ----------
    degrees : ndarray of int, (N,)
        Degrees, nondecreasing; a finer space begins with the same harmonics.
    parities : ndarray of bool, (N, d)
        Whether each harmonic is odd in each coordinate.
    """

    def __init__(self, space: Space):
        self.space = space
        live, self._factors = orthonormal(space)
        degrees = np.repeat(self._numbers(), 2)[live]
        self._parts = live[np.argsort(degrees, kind="stable")][1:]
        self.degrees = np.sort(degrees)[1:]

    def _numbers(self) -> np.ndarray:
        """The number of each coefficient by which harmonics are sorted: its degree."""
        return self.space.degrees

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalue of minus the Laplacian of each harmonic, (N,)."""
        return self.degrees * (self.degrees + self.space.dimension - 2.0)

    def moments(self, coefficients: np.ndarray) -> np.ndarray:
        """int p_i dmu, (..., N), from coefficients (..., modes)."""
        parts = np.ascontiguousarray(coefficients, dtype=complex).view(float)
        return (parts * self._factors)[..., self._parts]

    def series(self, moments: np.ndarray, mass: float = 1.0) -> np.ndarray:
        """Coefficients (..., modes) of mass + sum_i moments_i p_i."""
        parts = np.zeros((*np.shape(moments)[:-1], self._factors.size))
        parts[..., self._parts] = moments / self._factors[self._parts]
        parts[..., 0] = mass
        return parts.view(complex)

    def table(self, members: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (n, M) and gradients (d - 1, n, M) of harmonics `members` at points `nodes`."""
        space = self.space
        shape = 1 + space.directions, members.size, nodes.size
        check_memory(f"tables of harmonics on {space!r}", (2, *shape), "degree")
        table = np.empty(shape)
        for i, member in enumerate(members):
            unit = np.zeros(self.degrees.size)
            unit[member] = 1.0
            series = self.series(unit, 0.0)
            table[0, i] = space.to_values(series)[nodes]
            table[1:, i] = space.gradient(series)[:, nodes]
        return table[0], table[1:]

    def advected(self, part: Any, nodes: np.ndarray, flow: np.ndarray) -> np.ndarray:
        """Sums over nodes of <grad p_i, F> p_j for F (C, M) and the functions in `part`."""
        return directional(flow, part) @ part.values.T

    def nodes(self, kept: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Indices of grid points, one of each set of mirror images, and their summed weights.

        The reflections are those in `kept`.
        """
        x = np.round(self.space.points, 12)
        flips = np.array([self.signs(r) for r in kept])
        images = flips[:, None] * x + 0.0  # (reflections, N, d); no -0
        farthest = (images @ FORWARD[: x.shape[1]]).argmax(axis=0)
        first = images[farthest, np.arange(len(x))]
        _, nodes, which = np.unique(first, axis=0, return_index=True, return_inverse=True)
        return nodes, np.bincount(which.ravel(), self.space.weights)

    def signs(self, reflection: int) -> np.ndarray:
        """Signs (d,) by which a reflection multiplies the coordinates of a point."""
        return np.array([-1 if reflection >> k & 1 else 1 for k in range(self.space.dimension)])

    @property
    def planes(self) -> list[tuple[int, int]]:
        """Coordinate planes of the rotations that keep the space."""
        return list(zip(*np.triu_indices(self.space.dimension, 1), strict=True))

    @cached_property
    def parities(self) -> np.ndarray:
        """Parities (N, d) of the cosines and sines of m phi, on S^2 times a function of z."""
        space: Any = self.space
        sine = self._parts % 2
        order = (space.degrees if space.dimension == 2 else space.orders)[self._parts // 2]
        in_each = [order + sine, sine, self.degrees + order][: space.dimension]
        return np.column_stack(in_each) % 2 == 1

    def operator(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Operator on the harmonics, (N, N), and on the constant, (N,).

        `matrix` acts on real and imaginary parts of the coefficients of the space.
        """
        parts, factors = self._parts, self._factors
        scaled = matrix[parts] * factors[parts, None]
        return scaled[:, parts] / factors[parts], scaled[:, 0] / factors[0]

    def odd(self, reflection: int) -> np.ndarray:
        """Mask (N,) of the functions that are odd under a reflection."""
        signs = [k for k in range(self.parities.shape[1]) if reflection >> k & 1]
        return self.parities[:, signs].sum(axis=1) % 2 == 1

    @cached_property
    def rotations(self) -> list[Any]:
        """Sparse matrices (N, N) of the infinitesimal rotations in each coordinate plane."""
        from scipy.sparse import block_diag, csr_array

        frame, x, weights = self.space.frame, self.space.points, self.space.weights
        fields = [x[:, i] * frame[:, :, j] - x[:, j] * frame[:, :, i] for i, j in self.planes]
        blocks: list[list[np.ndarray]] = [[] for _ in fields]
        for degree in np.unique(self.degrees):  # rotations preserve the degree
            members = np.flatnonzero(self.degrees == degree)
            values, gradients = self.table(members, np.arange(weights.size))
            for of_plane, field in zip(blocks, fields, strict=True):
                along = np.einsum("cnm,cm->nm", gradients, field)
                with one_blas_thread():
                    of_plane.append((values * weights) @ along.T)
        return [block_diag([*map(csr_array, of_plane)], format="csr") for of_plane in blocks]


@lru_cache(maxsize=16)
def all_harmonics(space: Space) -> AllHarmonics:
    """The harmonics of a space; the last 16 are cached."""
    return reflected_on(space).harmonics(space)


@lru_cache(maxsize=8)
def _table_of(
    harmonics: AllHarmonics, members: tuple[int, ...], nodes: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """`AllHarmonics.table`; the last 8 are cached, and shared by states."""
    return harmonics.table(np.array(members, dtype=int), np.array(nodes))


class _NoiseKey:
    """Key of a cache for a noise, which compares noises by identity of objects."""

    def __init__(self, noise: Noise):
        self.noise = noise

    def __hash__(self) -> int:
        return id(self.noise)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NoiseKey) and other.noise is self.noise


def generator_of(noise: Noise, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """L* on the harmonics, (N, N), and on the uniform density, (N,); the last 8 are cached."""
    return _generator(_NoiseKey(noise), space)


@lru_cache(maxsize=8)
def _generator(key: _NoiseKey, space: Space) -> tuple[np.ndarray, np.ndarray]:
    harmonics = all_harmonics(space)
    matrix = key.noise.generator(space)
    if matrix is None:
        return np.diag(-harmonics.eigenvalues), np.zeros(harmonics.degrees.size)
    return harmonics.operator(matrix)


def symmetries_of_noise(noise: Noise, space: Space) -> Symmetries:
    """Reflections and rotations under which the generator of a noise is invariant."""
    harmonics = all_harmonics(space)
    number = 2 ** harmonics.parities.shape[1]
    if noise.laplacian:
        return Symmetries(tuple(range(number)), tuple(range(len(harmonics.rotations))))
    if noise.is_absent:  # a placeholder: its functions were not saved with the file
        return Symmetries(tuple(range(number)))
    matrix, uniform = generator_of(noise, space)
    rounding = REFLECTION_ROUNDING * np.abs(matrix).max()
    coupled, drawn = np.abs(matrix) > rounding, np.abs(uniform) > rounding
    kept = []
    for reflection in range(number):
        odd = harmonics.odd(reflection)
        if not (coupled & (odd[:, None] != odd)).any() and not (drawn & odd).any():
            kept.append(reflection)
    planes = []
    for plane, turning in enumerate(harmonics.rotations):
        mixed = np.abs(matrix @ turning - turning @ matrix).max()
        if max(mixed, np.abs(turning @ uniform).max()) <= rounding:
            planes.append(plane)
    return Symmetries(tuple(kept), tuple(planes))


class HarmonicsOfOrder:
    """The harmonics of one order, at the nodes.

    Attributes
    ----------
    members : ndarray of int, (n,)
        Indices among all harmonics.
    values : ndarray, (n, M)
    gradients : ndarray, (d - 1, n, M)
        Components in an orthonormal frame of the tangent space.
    """

    def __init__(self, basis: "Reflected", order: int):
        self.order, self._rotations = order, basis.rotations
        self.members = np.flatnonzero(basis.orders_of_functions == order)
        self.degrees, self.sizes = basis.degrees[self.members], basis.sizes[self.members]
        self.eigenvalues, self._basis = basis.eigenvalues[self.members], basis

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        members, nodes = (tuple(each.tolist()) for each in (self.members, self._basis.nodes))
        return _table_of(self._basis.all, members, nodes)

    @property
    def values(self) -> np.ndarray:
        return self._table[0]

    @property
    def gradients(self) -> np.ndarray:
        return self._table[1]

    def advected(self, flow: np.ndarray) -> np.ndarray:
        """Matrix (n, n) of the integrals of <grad p_i, F> p_j for F (C, M) at the nodes."""
        return self._basis.all.advected(self, self._basis.nodes, flow)

    def rotation_tangents(self, m: np.ndarray) -> np.ndarray:
        """Moments (k, n) of the infinitesimal rotations of a state m in this order.

        Only rotations under which the model is invariant count.
        """
        turned = [(matrix @ m)[self.members] for matrix in self._rotations]
        return np.reshape(turned, (len(turned), self.members.size))

    def rotation_count(self, m: np.ndarray) -> int:
        """Dimension of the infinitesimal rotations of a state m in this order."""
        turned = self.rotation_tangents(m)
        return int(np.linalg.matrix_rank(turned, tol=ROTATION_ROUNDING)) if turned.size else 0


class Reflected(Basis):
    """All harmonics of a space up to a degree, sorted by the reflections of a state.

    Moments are m_i = int p_i dmu/sqrt(dim H_l) of all harmonics: those of degree 1 are the
    components of the mean. Moments of functions that are odd under a reflection in `kept` are 0.

    Parameters
    ----------
    space : Space
    noise : Noise
    symmetries : Symmetries, optional
        Symmetries of the model, by default those of the noise.
    kept : tuple of int, optional
        Reflections under which states are invariant, by default all of the model.
    """

    spaces: ClassVar[dict[type[Space], type["Reflected"]]] = {}
    harmonics: ClassVar[type[AllHarmonics]] = AllHarmonics
    symmetric, refinement = False, 1.5
    order, rotation_order = 0, -1
    bounds: ClassVar = {
        2: Truncation(32, 256, 512, 1e-12),
        3: Truncation(12, 40, 80, 1e-10),
    }  # by dimension

    def __init_subclass__(cls, space: type[Space], **options: Any) -> None:
        super().__init_subclass__(**options)
        Reflected.spaces[space] = cls

    def __init__(
        self,
        space: Space,
        noise: Noise,
        symmetries: Symmetries | None = None,
        kept: tuple[int, ...] | None = None,
    ):
        self.space, self.noise = space, noise
        self.dimension, self.degree = space.dimension, space.degree
        self.least, self.most, self.finest, self.unresolved = self.bounds[space.dimension]
        self.all = all_harmonics(space)
        self.degrees = self.all.degrees
        self.symmetries = symmetries_of_noise(noise, space) if symmetries is None else symmetries
        self.kept = self.symmetries.reflections if kept is None else kept
        self.nodes, self.weights = self.all.nodes(self.kept)
        self.orders = len(self.kept)

    @classmethod
    def resolving(cls, space: Space) -> Space:
        """The space with the degree at which the search for states begins."""
        return space.with_degree(max(cls.bounds[space.dimension].least, space.degree))

    @cached_property
    def rotations(self) -> list[Any]:
        """Sparse matrices (N, N) of the infinitesimal rotations that preserve the model."""
        planes = self.symmetries.planes
        return [self.all.rotations[plane] for plane in planes] if planes else []

    @cached_property
    def diffusion(self) -> tuple[np.ndarray, np.ndarray]:
        """L* of the noise on the harmonics, (N, N), and on the uniform density, (N,)."""
        return generator_of(self.noise, self.space)

    def finer(self, degree: int) -> Self:
        return type(self)(self.space.with_degree(degree), self.noise, self.symmetries, self.kept)

    def keeping(self, reflections: tuple[int, ...]) -> Self:
        """The basis for states invariant under other reflections."""
        return type(self)(self.space, self.noise, self.symmetries, reflections)

    def fitted(self, m: np.ndarray) -> tuple[Self, np.ndarray]:
        """The basis with the reflections of m, to rounding, and m with zeros for odd functions."""
        basis = self.keeping(self._reflections_of(m))
        return basis, np.where(basis.orders_of_functions == 0, m, 0.0)

    def _reflections_of(self, m: np.ndarray) -> tuple[int, ...]:
        """Reflections of the model under which a state is invariant, to rounding."""
        seen = np.abs(m) > NO_MOMENT
        return tuple(r for r in self.symmetries.reflections if not seen[self.all.odd(r)].any())

    @cached_property
    def _generators(self) -> list[int]:
        """Generators of the reflections in `kept`; changes of one sign first."""
        generators, reached = [], {0}
        for reflection in sorted(self.kept, key=lambda r: (r.bit_count(), r)):
            if reflection not in reached:
                generators.append(reflection)
                reached |= {reflection ^ r for r in reached}
        return generators

    @cached_property
    def steady(self) -> list[tuple[int, ...]]:
        """Least groups of reflections in `kept` whose invariant states the model cannot rotate.

        No rotation of the model maps a function that is invariant under the group to another one.
        """
        groups: set[tuple[int, ...]] = {(0,)}
        for _ in self._generators:
            groups |= {tuple(sorted({*g, *(r ^ k for k in g)})) for g in groups for r in self.kept}
        fixed = [group for group in groups if not self._turns(group)]
        return [g for g in sorted(fixed) if not any(set(h) < set(g) for h in fixed)]

    def _turns(self, group: tuple[int, ...]) -> bool:
        """Whether a rotation of the model maps an invariant function of a group to another one."""
        odd = np.any([self.all.odd(reflection) for reflection in group], axis=0)
        inside = [matrix[~odd][:, ~odd] for matrix in self.rotations]
        return any(np.abs(matrix).max() > REFLECTION_ROUNDING for matrix in inside)

    @cached_property
    def orders_of_functions(self) -> np.ndarray:
        """The order of each harmonic, (N,)."""
        odd = [self.all.odd(r) for r in self._generators]
        return sum((part.astype(int) << i for i, part in enumerate(odd)), 0 * self.degrees)

    def without(self, order: int) -> Self:
        """The basis without the reflections that a perturbation of an order breaks."""
        one = np.flatnonzero(self.orders_of_functions == order)[0]
        return self.keeping(tuple(r for r in self.kept if not self.all.odd(r)[one]))

    @cached_property
    def even(self) -> HarmonicsOfOrder:
        """The functions of order 0."""
        return HarmonicsOfOrder(self, 0)

    def of_order(self, order: int) -> HarmonicsOfOrder:  # type: ignore[override]
        return HarmonicsOfOrder(self, order) if order else self.even

    def moved(self, m: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Moments after a step whose part along rotations of the state is a finite rotation.

        Weak fields alone determine the direction of a state, and Newton's steps are then long.
        """
        from scipy.sparse.linalg import expm_multiply

        c, change, rotations = self.sizes * m, self.sizes * step, self.all.rotations
        tangents = np.array([A @ c for A in rotations]).T
        angles = np.linalg.lstsq(tangents, change, rcond=ROTATION_ROUNDING)[0]
        largest = np.abs(angles).max()
        across = change - tangents @ angles
        turns = np.linalg.norm(across) < np.linalg.norm(change) / 2  # false for nan
        if not (turns and FINITE_TURN < largest < np.pi):
            return super().moved(m, step)
        turning = sum(a * A for a, A in zip(angles / max(1.0, largest), rotations, strict=True))
        return np.asarray(expm_multiply(turning, c + across) / self.sizes)

    def rotated(self, m: np.ndarray, angle: float) -> Iterator[np.ndarray]:
        """Moments of a state turned by an angle in each plane in which the model has no rotation.

        Planes in which it is invariant, or loses a reflection, are left out.
        """
        from scipy.sparse.linalg import expm_multiply

        c, kept = self.sizes * m, self.orders_of_functions == 0
        for plane, turning in enumerate(self.all.rotations):
            tangent = turning @ c
            seen = np.abs(tangent) > ROTATION_ROUNDING
            if plane not in self.symmetries.planes and seen.any() and kept[seen].all():
                yield expm_multiply(angle * turning, c) / self.sizes

    def padded(self, m: np.ndarray) -> np.ndarray:
        """Moments of another degree of truncation, padded with zeros or cut to (N,)."""
        kept = m[: len(self.degrees)]
        return np.pad(kept, (0, len(self.degrees) - len(kept)))

    def moments(self, density: Density) -> tuple[np.ndarray, Any]:
        series = density.space.resample(density.coefficients, self.degree)
        return self.all.moments(series) / self.sizes, None

    def density(self, m: np.ndarray, axis: Any = None) -> Density:
        return Density(self.space, self.all.series(self.sizes * m))

    def fingerprint(self, m: np.ndarray) -> np.ndarray:
        """Invariants under rotations of the model: the L^2 norm for every degree, (degree,).

        The coefficients (N,) if the model has no rotations.
        """
        if not self.symmetries.planes:
            return self.norms * m
        return np.sqrt(np.bincount(self.degrees, (self.norms * m) ** 2))[1:]

    # Images of states ---------------------------------------------------------------------------

    def images(self, m: np.ndarray) -> list[np.ndarray]:
        """Signs (N,) of each distinct image of a state under the reflections of the model."""
        kept, images = self._reflections_of(m), {}
        others = (r for r in self.symmetries.reflections if r not in kept)
        for reflection in others:  # r and r ^ k have the same image, k in kept
            image = min(reflection ^ r for r in kept)
            images[image] = np.where(self.all.odd(image), -1.0, 1.0)
        return list(images.values())

    def placements(self, m: np.ndarray) -> list[np.ndarray] | None:
        turning = sum(self.of_order(order).rotation_count(m) for order in range(self.orders))
        if turning == 2 and self.dimension == 3:  # a sphere of states about an axis
            return None
        return [] if turning else super().placements(m)

    def symmetrised(self, m: np.ndarray) -> np.ndarray:
        """The mean of a state and its images; zeros if it has no images."""
        images = [signs * m for signs in self.images(m)]
        return np.mean([m, *images], axis=0) if images else np.zeros_like(m)

    def joined(self, signs: np.ndarray) -> Self:
        reflection = next(
            r for r in self.symmetries.reflections if np.array_equal(self.all.odd(r), signs < 0)
        )
        return self.keeping(tuple(sorted({*self.kept, *(reflection ^ r for r in self.kept)})))

    @cached_property
    def without_drift(self) -> np.ndarray:
        """Moments of the stationary density of the noise without drift, (N,)."""
        matrix, uniform = self.diffusion
        return np.linalg.solve(matrix, -uniform) / self.sizes

    def tilted(self, c: np.ndarray) -> np.ndarray:
        density = self.space.to_values(self.all.series(self.sizes * self.without_drift))
        padded = np.pad(c, (0, len(self.degrees) - len(c)))
        exponent = self.space.to_values(self.all.series(padded, 0.0))
        law = density * np.exp(exponent - exponent.max())
        series = self.space.to_coefficients(law / (self.space.weights @ law))
        return self.all.moments(series) / self.sizes

    def symmetric_part(self, like: np.ndarray, m: np.ndarray) -> np.ndarray:
        """m unchanged: moments that the reflections in `kept` exclude are 0 already."""
        return m


Reflected.spaces[Space] = Reflected  # type: ignore[type-abstract]


def reflected_on(space: Space) -> type[Reflected]:
    """The class of bases of all harmonics on a space."""
    return Reflected.spaces[ancestor(type(space), Reflected.spaces)]
