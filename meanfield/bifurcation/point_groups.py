"""Bases on S^2 for any finite group of rotations and reflections, the trivial one included.

A group G is given by its name or by generators. In every degree l the invariant functions are the
eigenvectors, with eigenvalue 1, of the mean over the generators of their action on the harmonics.
Perturbations are of order

    0       invariant under G,
    1, ...  orthogonal to the invariants: they break the symmetry. They are sorted by their parities
            under the changes of sign (x, y, z) -> (+-x, +-y, +-z) in G; order 1 is even under all.
            The trivial group has order 0 only.

The groups of polyhedra, which contain the rotation (x, y, z) -> (y, z, x), permute the parities in
x, y and z: of three equivalent combinations one is kept, which stands for three equal eigenvalues.
Order 2 is even under the half turn about z and odd under those about x and y, and contains the
infinitesimal rotation about z. If the inversion is in G, it is even in orders 1 and 2, and odd in 3
and 4. By Molien, the number of invariants of degree l is the coefficient of t^l in
1/((1 - t^a) (1 - t^b)), with (a, b) = (3, 4), (4, 6), (6, 10) for Td, Oh and Ih.

A product of two functions of one order is even under all changes of sign in G. So integrals are
sums over one point of the grid of each set of mirror images. Perturbations are truncated at a lower
degree than the state, because the error of an eigenvalue is the product of the errors of its
eigenfunction and of the adjoint one.

Rotations about an axis fixed by every element of G (about every axis if G is trivial or consists of
1 and the inversion) map invariant states to invariant states. With their generator A, R(m) of the
`equation` satisfies, as A commutes with the interaction,

    sum_i W_i (A m)_i R_i(m) = 0   for every m,

so that the Jacobian J of a state has the null vector A m, and the left null vector W A m. Newton's
method uses J + sum_k b_k a_k^T with a_k an orthonormal basis of the A m and b_k = W a_k: its steps
are those of the bordered system with the phase conditions <a_k, step> = 0. There are as many
conditions as independent A m: three for a state without an axis, two for one about an axis.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.cached import cached_property
from ..core.checks import real_array, require
from ..spaces import Sphere
from ..spaces.density import Density
from ..spaces.sphere_points import rotation
from .bases import Basis, Truncation
from .longitudes import ByLongitude
from .reflections import AllHarmonics, all_harmonics

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NO_SYMMETRY = "none"
LARGEST_GROUP = 240  # largest number of elements of a group
ORTHOGONAL = 1e-10  # tolerance on the entries of matrices
INVARIANT = 1e-8  # tolerance on the eigenvalue 1 of invariant functions
TIE = 1e-6  # sizes that differ by less count as equal
MOST_DENSE_UNKNOWNS = 640  # for dense Jacobians: degree 24 without symmetry
FEWEST_DEGREES = 12  # least degree of perturbations
CHEAP_PERTURBATIONS = 300  # of one order; with fewer, the degree of a basis is not halved
TABULATED_ENTRIES = 1e5  # of a table of harmonics; sums with more go by longitude
RECENT_BASES = 8  # number of cached ones
TURNED = 1e-8  # relative to the largest change by a rotation: smaller ones are rounding
GROUP_NAMES = (
    "'none' (all harmonics), Cn, Cnv, Cnh, Cs, Ci, S2n, Dn, Dnh, Dnd with a number n >= 1 (D2h), "
    "T, Td, Th, O, Oh, I or Ih, or matrices (k, 3, 3) that generate a finite group"
)


def turn_about_z(angle: float) -> np.ndarray:
    """Matrix (3, 3) of the rotation by an angle about the third axis."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])


def fifth_of_a_turn() -> np.ndarray:
    """Matrix (3, 3) of the rotation by 2 pi/5 about a vertex of the icosahedron."""
    from scipy.spatial.transform import Rotation

    axis = np.array([0, 1, (1 + np.sqrt(5)) / 2])
    return Rotation.from_rotvec(2 * np.pi / 5 * axis / np.linalg.norm(axis)).as_matrix()


CYCLE = np.eye(3)[[1, 2, 0]]  # rotation by 2 pi/3 about (1, 1, 1)
MIRROR, INVERSION = np.eye(3)[[1, 0, 2]], -np.eye(3)
LEVEL_MIRROR, UPRIGHT_MIRROR = np.diag([1.0, 1, -1]), np.diag([1.0, -1, 1])  # z -> -z, y -> -y
HALF_TURN = np.diag([1.0, -1, -1])  # about x
CUBIC = {
    "T": lambda: [],
    "Td": lambda: [MIRROR],
    "Th": lambda: [INVERSION],
    "O": lambda: [turn_about_z(np.pi / 2)],
    "Oh": lambda: [MIRROR, INVERSION],
    "I": lambda: [fifth_of_a_turn()],
    "Ih": lambda: [fifth_of_a_turn(), INVERSION],
}
POLYHEDRA = {"tetrahedral": "Td", "octahedral": "Oh", "icosahedral": "Ih"}
POLYHEDRAL_PARITIES = (0, 0, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1)  # in x, y, z, of orders 1, 2, ...


USUAL, OF_POLYHEDRA = Truncation(FEWEST_DEGREES, 60, 80, 1e-10), Truncation(24, 81, 162, 1e-12)


def generators_of(symmetry: Any) -> list[np.ndarray] | None:
    """Generators (3, 3) of a group from its name; None for other names.

    Names are "tetrahedral" (vertices (1, 1, 1), (1, -1, -1), ...), "octahedral" (on the axes),
    "icosahedral" ((0, 1, (1 + sqrt 5)/2), ...), for Td, Oh and Ih, and those of Schoenflies'
    notation. The main axis is z. Cnv contains the mirror y -> -y, Dn the half turn about x.
    """
    symmetry = POLYHEDRA.get(symmetry, symmetry)
    if symmetry in CUBIC:
        return [CYCLE, HALF_TURN, *CUBIC[symmetry]()]
    if symmetry in (NO_SYMMETRY, "Cs", "Ci"):
        return {NO_SYMMETRY: [], "Cs": [LEVEL_MIRROR], "Ci": [INVERSION]}[symmetry]
    match = re.fullmatch(r"([CDS])([1-9]\d{0,2})([vhd]?)", str(symmetry))
    if not match or match[1] + match[3] in ("Cd", "Dv", "Sv", "Sh", "Sd"):
        return None
    kind, n, mirrors = match[1], int(match[2]), match[3]
    if kind == "S":
        return [turn_about_z(2 * np.pi / n) @ LEVEL_MIRROR] if n % 2 == 0 else None
    more = [HALF_TURN] if kind == "D" else []
    more += {"": [], "v": [UPRIGHT_MIRROR], "h": [LEVEL_MIRROR]}.get(
        mirrors, [turn_about_z(np.pi / n) @ LEVEL_MIRROR]
    )  # fmt: skip
    return [turn_about_z(2 * np.pi / n), *more]


class PointGroup:
    """A finite group of orthogonal matrices.

    Parameters
    ----------
    symmetry : str or array, (k, 3, 3)
        Name or generators.

    Attributes
    ----------
    generators : ndarray, (k, 3, 3)
    elements : ndarray, (n, 3, 3)
    rotation_axes : ndarray, (r, 3)
        Axes of the rotations that commute with the group: three, one or none.
    """

    def __init__(self, symmetry: Any):
        if isinstance(symmetry, str):
            generators = generators_of(symmetry)
            assert generators is not None
            self.generators = np.array(generators).reshape(-1, 3, 3)
        else:
            self.generators = real_array("symmetry", symmetry)
        shape = self.generators.shape
        require("symmetry.shape", shape, "(k, 3, 3)", len(shape) == 3 and shape[1:] == (3, 3))
        products = self.generators @ np.swapaxes(self.generators, 1, 2)
        orthogonal = np.abs(products - np.eye(3)).max(initial=0.0) <= ORTHOGONAL
        require("symmetry", symmetry, "orthogonal matrices", bool(orthogonal))
        self.elements = self._closed()
        about = np.mean(np.linalg.det(self.elements)[:, None, None] * self.elements, axis=0)
        values, vectors = np.linalg.eigh((about + about.T) / 2)
        self.rotation_axes = vectors.T[values > 0.5]
        self._sorted: dict[int, list[Any]] = {}

    def _closed(self) -> np.ndarray:
        """All products of the generators, (n, 3, 3)."""
        elements, known = [np.eye(3)], {_rounded(np.eye(3))}
        wanted = f"generators of a finite group of at most {LARGEST_GROUP} elements"
        for element in elements:  # the list grows
            for product in (g @ element for g in self.generators):
                if _rounded(product) not in known:
                    known.add(_rounded(product))
                    elements.append(product)
            require("symmetry", "more", wanted, len(elements) <= LARGEST_GROUP)
        return np.array(elements)

    @cached_property
    def numbers_up_to(self) -> np.ndarray:
        """Numbers of invariants of degree 1, ..., L, for L = 0, 1, ..., 81, by characters.

        The number of degree l is the mean of det(g)^l sin((l + 1/2) a)/sin(a/2), where det(g) g is
        a rotation by the angle a.
        """
        signs, l = np.linalg.det(self.elements)[:, None], np.arange(1, OF_POLYHEDRA.most + 1)
        traces = signs[:, 0] * np.trace(self.elements, axis1=1, axis2=2)
        angles = np.arccos(np.clip((traces - 1) / 2, -1, 1))[:, None]
        characters = np.round(signs) ** l * (1 + 2 * np.cumsum(np.cos(angles * l), axis=1))
        return np.append(0, np.rint(characters.mean(axis=0)).cumsum())

    @cached_property
    def about_z(self) -> int:
        """The largest n for which the group contains the rotation by 2 pi/n about z."""
        fixes = np.abs(self.elements[:, 2, 2] - 1) < ORTHOGONAL
        return int((fixes & (np.linalg.det(self.elements) > 0)).sum())

    @cached_property
    def _signs(self) -> list[np.ndarray]:
        """Generators of the changes of sign of the coordinates in the group, as signs (3,)."""
        generators: list[np.ndarray] = []
        reached = {(1.0, 1.0, 1.0)}
        for element in self.elements:
            signs = np.diag(element)
            if np.abs(element - np.diag(np.round(signs))).max() < ORTHOGONAL:
                if tuple(np.round(signs)) not in reached:
                    generators.append(np.round(signs))
                    reached |= {tuple(np.array(other) * generators[-1]) for other in reached}
        return generators

    @cached_property
    def reflections(self) -> tuple[int, ...]:
        """Changes of sign in the group, as numbers with bit k set if the sign of x_k changes."""
        flips = [0]
        for signs in self._signs:
            flips += [flip ^ int((signs < 0) @ [1, 2, 4]) for flip in flips]
        return tuple(flips)

    @cached_property
    def polyhedral(self) -> bool:
        """Whether the group contains the rotation (x, y, z) -> (y, z, x)."""
        return bool((np.abs(self.elements - CYCLE).max(axis=(1, 2)) < ORTHOGONAL).any())

    def _classes(self, parities: Any) -> np.ndarray:
        """Numbers (N,) with one bit for each of `_signs`, set for odd functions.

        `parities` (N, 3) are those of functions in x, y and z.
        """
        odd = np.array([np.asarray(parities) @ (signs < 0) % 2 for signs in self._signs])
        return 2 ** np.arange(len(odd)) @ odd.reshape(len(odd), len(parities))

    @cached_property
    def classes(self) -> list[int]:
        """Combinations of parities of orders 1, 2, ..., as numbers: see `_classes`."""
        if self.polyhedral:
            return list(dict.fromkeys(self._classes(POLYHEDRAL_PARITIES).tolist()))
        return list(range(2 ** len(self._signs)))

    @property
    def orders(self) -> int:
        """Number of orders of perturbations."""
        return 1 if len(self.elements) == 1 else 1 + len(self.classes)

    def sorted_harmonics(self, degree: int) -> list[tuple["csr_array", np.ndarray]]:
        """Functions of each order up to a degree, as matrices (n, N), and their degrees (n,).

        Rows are coefficients in all real harmonics. Cached by degree.
        """
        if degree not in self._sorted:
            self._sorted[degree] = self._sorted_harmonics(degree)
        return self._sorted[degree]

    def _sorted_harmonics(self, degree: int) -> list[tuple["csr_array", np.ndarray]]:
        """Bases, rows of harmonics with degrees, of invariants and of the other classes."""
        from scipy.sparse import block_diag, csr_array

        trivial = 0.0 if len(self.generators) else 1.0
        blocks = [trivial * np.eye(2 * l + 1) for l in range(1, degree + 1)]
        for g in self.generators:
            for block, action in zip(blocks, actions(g, degree), strict=True):
                block += (action + action.T) / (2 * len(self.generators))
        parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for block in blocks:
            values, vectors = np.linalg.eigh(block)
            for part, chosen in zip(
                parts, (values > 1 - INVARIANT, values <= 1 - INVARIANT), strict=True
            ):
                rows = canonical(vectors[:, chosen])
                part.append(np.where(np.abs(rows) > ORTHOGONAL, rows, 0.0))
        orders = []
        for part in parts:
            degrees = np.repeat(np.arange(1, degree + 1), [len(rows) for rows in part])
            orders.append((block_diag([*map(csr_array, part)], format="csr"), degrees))
            orders[-1][0].eliminate_zeros()
        rest, degrees = orders.pop()
        classes = self._classes(_all_harmonics(degree).parities.astype(int))
        of_rows = classes[rest.indices[rest.indptr[:-1]]] if rest.shape[0] else degrees
        for number in self.classes[: self.orders - 1]:
            here = np.flatnonzero(of_rows == number)
            orders.append((rest[here], degrees[here]))
        return orders

    def signs_of_images(self, mixing: "csr_array", degree: int) -> list[np.ndarray]:
        """Signs (n,) by which elements of O(3) multiply the invariants, one array per element.

        An element counts if it maps each invariant to itself or to its negative. Candidates are the
        inversion, half the smallest rotation about z, the mirror y -> -y, the half turn about x,
        and products of those that count. `mixing` (n, N) has the invariants up to `degree` in rows.
        """
        candidates = [INVERSION, turn_about_z(np.pi / self.about_z), UPRIGHT_MIRROR, HALF_TURN]
        signs_of_elements = [np.ones(mixing.shape[0])]
        for element in candidates:
            diagonal, start = np.zeros(mixing.shape[0]), 0
            for action in actions(element, degree):
                rows = mixing[:, start : start + len(action)].tocsr()
                row_numbers = np.flatnonzero(np.diff(rows.indptr))
                block = rows[row_numbers].toarray()
                image = block @ action @ block.T
                diagonal[row_numbers] = np.diag(image)
                if np.abs(np.abs(image) - np.eye(row_numbers.size)).max(initial=0.0) > INVARIANT:
                    break
                start += len(action)
            else:
                signs = np.sign(diagonal)
                signs_of_elements += [signs * other for other in signs_of_elements]
        return signs_of_elements[1:]


def actions(matrix: np.ndarray, degree: int) -> list[np.ndarray]:
    """Action of an orthogonal matrix on the real harmonics: (2 l + 1, 2 l + 1) for l = 1, 2, ..."""
    every, turn = _all_harmonics(degree), rotation(degree, matrix)
    starts = np.arange(1, degree + 1) ** 2 - 1
    blocks = [np.zeros((2 * l + 1, 2 * l + 1)) for l in range(1, degree + 1)]
    for j in range(2 * degree + 1):
        unit, here = np.zeros(every.degrees.size), [l for l in range(1, degree + 1) if j <= 2 * l]
        unit[[starts[l - 1] + j for l in here]] = 1.0
        moved = every.moments(turn(every.series(unit, 0.0)))
        for l in here:
            blocks[l - 1][:, j] = moved[starts[l - 1] : starts[l - 1] + 2 * l + 1]
    return blocks


class Invariants(Basis, names=tuple(POLYHEDRA), space=Sphere, groups_on=Sphere):
    """Basis of one order for a finite group on S^2, on the grid of a `Sphere`.

    Up to 640 unknowns, Jacobians are dense matrices; beyond, linear systems are solved by GMRES.
    Sums are computed `by_longitude` where each function is one harmonic, as for groups about z,
    else from tables or, beyond 640 unknowns, by spherical harmonic transforms.

    Parameters
    ----------
    symmetry : PointGroup, str or ndarray
        The group, or its name or generators.
    degree : int
    order : int
    like : Invariants, optional
        Basis of another order whose nodes are used; by default those of the degree.

    Attributes
    ----------
    nodes : ndarray of int, (M,)
        Indices of the nodes among the points of the grid.
    """

    dimension, rotation_order, refinement = 3, -1, 1.5
    groups = GROUP_NAMES
    space: Sphere

    def __init__(
        self, symmetry: Any, degree: int, order: int = 0, like: "Invariants | None" = None
    ):
        self.degree, self.order = degree, order
        group = symmetry if isinstance(symmetry, PointGroup) else point_group(symmetry)
        self.group = group
        limits = OF_POLYHEDRA if group.polyhedral else USUAL
        self.least, most, self.finest, self.unresolved = limits
        dense = int(np.searchsorted(group.numbers_up_to, MOST_DENSE_UNKNOWNS, "right")) - 1
        self.most, self.orders = min(dense, most), group.orders
        self.mixing, self.degrees = group.sorted_harmonics(degree)[order]
        self.dense = self.degrees.size <= MOST_DENSE_UNKNOWNS
        self.space = Sphere(degree) if like is None else like.space
        if like is None:
            self.nodes, self.weights = all_harmonics(self.space).nodes(group.reflections)
        else:
            self.nodes, self.weights = like.nodes, like.weights
        self._parts: dict[int, Invariants] = {}

    @classmethod
    def takes(cls, symmetry: Any) -> bool:
        """Whether `symmetry` is the name or the generators of a group."""
        return not isinstance(symmetry, str) or generators_of(symmetry) is not None

    @classmethod
    def on(cls, space: Any, name: Any) -> "Invariants":
        coarsest = invariants(point_group(name), FEWEST_DEGREES)
        return coarsest.finer(max(coarsest.least, min(space.degree, coarsest.most)))

    def of_order(self, order: int) -> "Invariants":
        if order not in self._parts:
            cheap = FEWEST_DEGREES
            if not self.group.polyhedral:
                cheap = int(np.sqrt(CHEAP_PERTURBATIONS * len(self.group.classes))) - 1
            degree = min(max(self.degree // 2, cheap), self.degree)
            self._parts[order] = Invariants(self.group, degree, order, self)
        return self._parts[order]

    def finer(self, degree: int) -> "Invariants":
        return invariants(self.group, degree)

    def _series(self, c: np.ndarray) -> np.ndarray:
        """Coefficients (..., modes) on `space` of sum_i c_i p_i; `c` (..., N)."""
        every = _all_harmonics(self.space.degree)
        mixed = (self.mixing.T @ np.transpose(c)).T
        lacking = every.degrees.size - mixed.shape[-1]
        return every.series(np.pad(mixed, [*[(0, 0)] * (c.ndim - 1), (0, lacking)]), 0.0)

    def at(self, points: np.ndarray) -> np.ndarray:
        """Values (N, n) of the p_i at unit vectors (n, 3)."""
        return self.space.at(self._series(np.eye(self.degrees.size)), points)

    @cached_property
    def values(self) -> np.ndarray:  # type: ignore[override]
        if not self.degrees.size:
            return np.zeros((0, self.weights.size))
        return self.space.to_values(self._series(np.eye(self.degrees.size)))[:, self.nodes]

    @cached_property
    def gradients(self) -> np.ndarray:  # type: ignore[override]
        table = np.empty((2, *np.shape(self.values)))
        for i, unit in enumerate(np.eye(self.degrees.size)):
            table[:, i] = self.gradient_of(unit)
        return table

    @cached_property
    def by_longitude(self) -> ByLongitude | None:
        """The functions in their factors, if each is one harmonic and a table would be large."""
        alone = (np.diff(self.mixing.indptr) == 1).all()
        if not alone or self.degrees.size * self.weights.size <= TABULATED_ENTRIES:
            return None
        return ByLongitude(self.space, self.mixing.indices, self.mixing.data)

    def _on_grid(self, masses: np.ndarray) -> np.ndarray:
        """Masses (M,) of the nodes on the whole grid, (rows, columns)."""
        grid = np.zeros(self.space.weights.size)
        grid[self.nodes] = masses
        return grid.reshape(self.space.z.size, -1)

    def pairings(self, masses: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        if self.by_longitude is None:
            return super().pairings(masses, columns)
        chosen, p = slice(None) if columns is None else columns, self.by_longitude.values
        matrix = p.pairings(p, self._on_grid(masses), chosen)
        return matrix / np.outer(self.sizes, self.sizes[chosen])

    def transport(
        self, flow: np.ndarray, bent: np.ndarray, masses: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        if self.by_longitude is None:
            return super().transport(flow, bent, masses, weights)
        p, matrix = self.by_longitude.values, np.zeros((2, self.degrees.size, self.degrees.size))
        for gradient, *along in zip(self.by_longitude.gradients, flow, bent, strict=True):
            for here, one in enumerate(along):
                if one.any():
                    matrix[here] += gradient.pairings(p, self._on_grid(one))
            matrix[1] -= gradient.pairings(gradient, self._on_grid(masses))
        return matrix[0] - matrix[1] * weights

    def synthesised(self, m: np.ndarray) -> np.ndarray:
        if self.by_longitude is not None:
            return self.by_longitude.synthesised(m / self.sizes).ravel()[self.nodes]
        if self.dense:
            return super().synthesised(m)
        return self.space.to_values(self._series(m / self.sizes))[self.nodes]

    def analysed(self, masses: np.ndarray) -> np.ndarray:
        if self.by_longitude is not None:
            return self.by_longitude.analysed(self._on_grid(masses)) / self.sizes
        if self.dense:
            return super().analysed(masses)
        values = np.zeros(self.space.weights.size)
        values[self.nodes] = masses / self.space.weights[self.nodes]
        return self._analysed(values) / self.sizes

    def _analysed(self, values: np.ndarray) -> np.ndarray:
        """int p_i f dsigma, (..., N), from the values of f on the grid, (..., M)."""
        moments = _all_harmonics(self.space.degree).moments(self.space.to_coefficients(values))
        return (self.mixing @ moments[..., : self.mixing.shape[1]].T).T

    def gradient_of(self, c: np.ndarray) -> np.ndarray:
        return self.space.gradient(self._series(c))[:, self.nodes]

    # Symmetries -------------------------------------------------------------------------------

    def _turned(self, m: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """Infinitesimal rotations of a state about axes (r, 3): values (r, M) on the grid."""
        field = np.einsum(
            "cm,cmi->mi", self.space.gradient(self._series(m * self.sizes)), self.space.frame
        )
        return axes @ np.cross(self.space.points, field).T

    def tangents(self, m: np.ndarray) -> np.ndarray:
        axes = self.group.rotation_axes
        if not axes.size:
            return np.zeros((0, len(m)))
        turned = self._analysed(self._turned(m, axes)) / self.sizes
        _, sizes, rows = np.linalg.svd(turned, full_matrices=False)
        return rows[sizes > max(TURNED * sizes[0], TURNED**2)]

    def rotation_count(self, m: np.ndarray) -> int:
        if not self.degrees.size:
            return 0
        turned = Invariants(self.group, self.space.degree, 0, self)._turned(m, np.eye(3))
        sizes = np.linalg.svd(self._analysed(turned), compute_uv=False)
        return int((sizes > TURNED).sum())

    def damped_from(self, degree: int) -> int:
        return self.orders

    @cached_property
    def single(self) -> list[int]:
        """Degrees with one function, or whose first function is the harmonic symmetric about z."""
        degrees = super().single
        for l in range(1, self.degree // 2 + 1):
            if l not in degrees and (self.degrees == l).any():
                row = self.mixing[[self.index(l)]]
                if np.array_equal(row.indices[np.abs(row.data) > TURNED], [l * l - 1]):
                    degrees.append(l)
        return sorted(degrees)

    def placements(self, m: np.ndarray) -> list[np.ndarray] | None:
        return None  # a state has as many as there are ways to place the group in its own

    def images(self, m: np.ndarray) -> list[np.ndarray]:
        images: list[np.ndarray] = []
        for signs in self._signs:
            if all(np.any(signs * m != other * m) for other in [np.ones_like(m), *images]):
                images.append(signs)
        return images

    @cached_property
    def _signs(self) -> list[np.ndarray]:
        return self.group.signs_of_images(self.mixing, self.degree)

    def fingerprint(self, m: np.ndarray) -> np.ndarray:
        """Rotation invariants of a state: the L^2 norm of its part of every degree, (degree,)."""
        return np.sqrt(np.bincount(self.degrees, (self.sizes * m) ** 2))[1:]

    def guesses(self, count: int) -> Iterator[np.ndarray]:
        """Yield moments of laws exp(+-f), for invariants f of degrees 1, ..., count."""
        for degree in range(1, count + 1):
            here = np.flatnonzero(self.degrees == degree)
            for chosen in (here[:1], here[1:2], here)[: here.size]:
                c = np.zeros(self.degrees.size)
                c[chosen] = 1 / np.sqrt(chosen.size)
                function = self.synthesised(c * self.sizes)
                for exponent in (function, -function):
                    law = self.weights * np.exp(exponent - exponent.max())
                    yield self.analysed(law) / law.sum()

    def moments(self, density: Density) -> tuple[np.ndarray, Any]:
        series = density.space.resample(density.coefficients, self.degree)
        return (self.mixing @ _all_harmonics(self.degree).moments(series)) / self.sizes, None

    def density(self, m: np.ndarray, axis: Any = None) -> Density:
        every = _all_harmonics(self.degree)
        return Density(every.space, every.series(self.mixing.T @ (self.sizes * m)))


def _rounded(matrix: np.ndarray) -> tuple[Any, ...]:
    """Entries of a matrix without rounding errors, equal for equal matrices."""
    return tuple(np.round(matrix, 6).ravel() + 0.0)


def canonical(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal basis (count, n) of the span of columns (n, count), insensitive to rounding.

    Gram-Schmidt of the projections of unit vectors: the largest first, among equals the first.
    """
    rest, rows = vectors @ vectors.T, []
    for _ in range(vectors.shape[1]):
        sizes = np.diag(rest)
        i = int(np.flatnonzero(sizes >= sizes.max() - TIE)[0])
        rows.append(rest[i] / np.sqrt(rest[i, i]))
        rest = rest - np.outer(rows[-1], rows[-1])
    return np.array(rows).reshape(vectors.shape[::-1])


def _all_harmonics(degree: int) -> AllHarmonics:
    return all_harmonics(Sphere(degree))


def point_group(symmetry: Any) -> PointGroup:
    """The group of a name or of generators; the last 16 are cached."""
    if isinstance(symmetry, str):
        return _cached_group(symmetry)
    matrices = real_array("symmetry", symmetry)
    return _cached_group(tuple(matrices.ravel().tolist()), matrices.shape)


@lru_cache(maxsize=16)
def _cached_group(symmetry: Any, shape: tuple[int, ...] | None = None) -> PointGroup:
    """The group of a name, or of generators from all their entries and their shape."""
    return PointGroup(symmetry if shape is None else np.reshape(symmetry, shape))


@lru_cache(maxsize=RECENT_BASES)
def invariants(group: PointGroup, degree: int) -> Invariants:
    """The basis of order 0 of a group up to a degree; the last 8 are cached with their tables."""
    return Invariants(group, degree)
