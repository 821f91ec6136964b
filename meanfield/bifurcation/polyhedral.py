"""Functions on S^2 with the symmetries of a tetrahedron, an octahedron or an icosahedron.

All three groups contain the half turns about the axes, under which harmonics of even order m with
cos(m phi) (degree l even) or sin(m phi) (l odd) are invariant: the class A. Among them, a function
is invariant under the whole group if and only if it is under the generators, that is if

    <f, mean over the generators g of f(g x)> = <f, f>,

an eigenvalue problem in every degree. By Molien, sum_l (number of degree l) t^l is 1/((1 - t^a)
(1 - t^b)) with (a, b) = (3, 4), (4, 6), (6, 10). Perturbations are of order

    0   invariant,
    1   in A, but with no invariant part,
    2   even in a half turn about z, odd in those about x and y: rotations about z are among them.
        There are two more copies, about x and y, with the same eigenvalues.

Generators come with their images under the half turns, so that the mean is in A, and integrals are
sums over a quarter of the sphere. Perturbations take half the degree of their state: the error of
an eigenvalue is the product of those of its eigenfunction and of the adjoint one.
"""

from functools import lru_cache

import numpy as np

from ..lowlevel.legendre import gauss
from ..spaces import Sphere
from .bases import Basis, latitudinal

__all__ = ["GROUPS", "Polyhedral", "polyhedral", "spectrum"]

GOLDEN = (1 + np.sqrt(5)) / 2
INVARIANT = 1e-8
TIE = 1e-6
FEWEST = 12  # degrees of perturbations


def _fifth() -> np.ndarray:
    """The fifth of a turn about a vertex of the icosahedron."""
    from scipy.spatial.transform import Rotation

    axis = np.array([0, 1, GOLDEN])
    return Rotation.from_rotvec(2 * np.pi / 5 * axis / np.linalg.norm(axis)).as_matrix()


CYCLE = np.eye(3)[[1, 2, 0]]  # the third of a turn about (1, 1, 1)
MIRROR = np.eye(3)[[1, 0, 2]]
INVERSION = -np.eye(3)
HALF_TURNS = [np.diag(signs) for signs in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))]
GROUPS = {  # generators, beside the half turns h about the axes, and h^-1 g h
    "tetrahedral": lambda: [CYCLE, MIRROR],
    "octahedral": lambda: [CYCLE, MIRROR, INVERSION],
    "icosahedral": lambda: [CYCLE, INVERSION, *(h @ _fifth() @ h for h in HALF_TURNS)],
}


class Polyhedral(Basis):
    """The basis of one order of perturbations of states with a polyhedral symmetry.

    Parameters
    ----------
    group : str
        "tetrahedral" (vertices (1, 1, 1), (1, -1, -1), ...), "octahedral" (on the axes) or
        "icosahedral" ((0, 1, (1 + sqrt 5)/2), ...), with reflections.
    order, degree : int
    exact : int, optional
        Degree up to which the nodes are exact; by default 2.5 times that of the functions.
    """

    dimension, orders, turning = 3, 3, 2
    least, most = 24, 81

    def __init__(self, group: str, order: int, degree: int, exact: int | None = None):
        self.group, self.order, self.degree = group, order, degree
        self._exact = exact or 5 * degree // 2
        z, phi, self.weights = _quarter(self._exact)
        degrees, functions = _of_class(order < 2, degree, z, phi)
        if order < 2:
            mixing, degrees = _sorted(group, degree)[order]
            functions = mixing @ functions
        self.degrees, self.values, self.gradients = degrees, functions[0], functions[1:]

    def at(self, points: np.ndarray) -> np.ndarray:
        """Values (N, n) at unit vectors (n, 3)."""
        z, phi = points[:, 2], np.arctan2(points[:, 1], points[:, 0])
        values = _of_class(self.order < 2, self.degree, z, phi, 1)[1][0]
        return (
            _sorted(self.group, self.degree)[self.order][0] @ values if self.order < 2 else values
        )

    def of_order(self, order: int) -> "Polyhedral":
        degree = self.degree if order == 0 else min(max(self.degree // 2, FEWEST), self.degree)
        return polyhedral(self.group, order, degree, self._exact)

    def finer(self, degree: int) -> "Polyhedral":
        return polyhedral(self.group, self.order, degree)


@lru_cache(maxsize=4)
def polyhedral(group: str, order: int, degree: int, exact: int | None = None) -> Polyhedral:
    """The basis; the last few are kept."""
    return Polyhedral(group, order, degree, exact)


def _quarter(exact: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z, phi and weights of a rule for means over the sphere of functions in A up to a degree."""
    x, rule = gauss(2 * (exact // 4 + 2), 3)  # an even number, so that none is 0
    count = exact // 2 + 2
    phi = np.pi * (np.arange(count) + 0.5) / count
    half = x > 0
    weights = np.repeat(2 * rule[half] / count, count)
    return np.repeat(x[half], count), np.tile(phi, half.sum()), weights


def _of_class(even: bool, degree: int, z: np.ndarray, phi: np.ndarray, parts: int = 3):
    """Degrees (N,), and values and two components of gradients (parts, N, M), of A or its sibling.

    By degree, then by order about z.
    """
    rows = [
        (l, m)
        for l in range(1, degree + 1)
        for m in range(0, l + 1, 2)
        if m > 0 or (l % 2 == 0) == even
    ]
    places = {row: i for i, row in enumerate(rows)}
    functions = np.empty((parts, len(rows), z.size))
    sines = np.sqrt((1 - z) * (1 + z))
    heights, row = np.unique(z, return_inverse=True)
    for m in range(0, degree + 1, 2):
        p, slopes = latitudinal(heights, 3, m, degree)
        size = np.sqrt(2) if m else 1.0
        cosine, sine = size * np.cos(m * phi), size * np.sin(m * phi)
        for l in range(max(m, 1), degree + 1):
            if (l, m) not in places:
                continue
            out = functions[:, places[l, m]]
            upright = (l % 2 == 0) == even  # cosines
            wave, change = (cosine, -m * sine) if upright else (sine, m * cosine)
            latitude = p[l - m, row]
            np.multiply(latitude, wave, out=out[0])
            if parts == 3:
                np.multiply(slopes[l - m, row], wave, out=out[1])
                np.multiply(latitude / sines, change, out=out[2])
    return np.array([l for l, _ in rows]), functions


@lru_cache(maxsize=16)
def _sorted(group: str, degree: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Matrices (N, class A) that sort it into invariants and the rest, with degrees (N,)."""
    z, phi, weights = _quarter(2 * degree)
    sines = np.sqrt((1 - z) * (1 + z))
    points = np.stack([sines * np.cos(phi), sines * np.sin(phi), z], axis=1)
    degrees, (here,) = _of_class(True, degree, z, phi, 1)
    moved = np.zeros_like(here)
    generators = GROUPS[group]()
    for g in generators:
        turned = points @ g.T
        angle = np.arctan2(turned[:, 1], turned[:, 0])
        moved += _of_class(True, degree, turned[:, 2], angle, 1)[1][0] / len(generators)
    parts: tuple[list, list] = ([], [])
    for l in range(1, degree + 1):
        rows = np.flatnonzero(degrees == l)
        action = (here[rows] * weights) @ moved[rows].T
        values, vectors = np.linalg.eigh((action + action.T) / 2)
        for part, chosen in zip(
            parts, (values > 1 - INVARIANT, values <= 1 - INVARIANT), strict=True
        ):
            mixing = np.zeros((chosen.sum(), degrees.size))
            mixing[:, rows] = _canonical(vectors[:, chosen])
            part.append((mixing, np.full(chosen.sum(), l)))
    return [
        (np.concatenate([m for m, _ in part]), np.concatenate([l for _, l in part]))
        for part in parts
    ]


def _canonical(vectors: np.ndarray) -> np.ndarray:
    """An orthonormal basis (count, n) of their span that does not depend on rounding.

    From the projections of unit vectors, the largest first, the first of equals.
    """
    rest, found = vectors @ vectors.T, []
    for _ in range(vectors.shape[1]):
        sizes = np.diag(rest)
        i = int(np.flatnonzero(sizes >= sizes.max() - TIE)[0])
        found.append(rest[i] / np.sqrt(rest[i, i]))
        rest = rest - np.outer(found[-1], found[-1])
    return np.array(found).reshape(vectors.shape[::-1])


@lru_cache(maxsize=16)
def spectrum(group: str, degree: int) -> np.ndarray:
    """Coefficients of the invariants as `Sphere` has them, (N, modes)."""
    space = Sphere(degree)
    values = Polyhedral(group, 0, degree).at(space.points)
    return space.to_coefficients(values)
