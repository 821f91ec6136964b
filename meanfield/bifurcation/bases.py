"""Bases of harmonics on S^(d-1), sorted by their behaviour under the symmetries of a state.

`AxialHarmonics` are the harmonics of one order about an axis. A function of order m is f(x) Y(xi),
x = <point, axis>, with Y a harmonic of degree m of the directions xi in S^(d-2). The f of order m
have the orthonormal basis p_l, l = m, m + 1, ..., which is (1 - x^2)^(m/2) times a polynomial, and

    x p_l = e_{l+1} p_{l+1} + e_l p_{l-1},
    (1 - x^2) p_l' = (l + d - 2) e_l p_{l-1} - l e_{l+1} p_{l+1}.

Axisymmetric functions have order 0. On the circle, d = 2, functions of order 0 are sqrt(2)
cos(k theta), and functions of order 1 are sqrt(2) sin(k theta).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from math import exp, lgamma
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.checks import as_given, require, whole_number
from ..core.read_only import ReadOnlyArrays, read_only
from ..lowlevel.legendre import gauss, recurrence
from ..models.noise import Isotropic, Noise
from ..models.zonal import ZonalDrift
from ..spaces import Circle, Space, Sphere, Zonal
from ..spaces.contract import dimension_of_harmonics
from ..spaces.density import Density
from ..spaces.sphere_points import harmonics_at
from ..spaces.validity import HarmonicSizes

Array = NDArray[np.float64]
AXISYMMETRIC = "axisymmetric"
ISOTROPIC = Isotropic()
SYMMETRY_ROUNDING = 1e-8  # smaller moments count as zero when the symmetry of a state is determined
NO_MOMENT = 1e-12  # a smaller first moment of a density defines no axis
UNIFORM_MOMENT = 1e-8  # largest moment of a state that counts as uniform
VISIBLE_MOMENT = 1e-6  # relative to the largest moment: smaller ones may be noise of a simulation


class Truncation(NamedTuple):
    """Degrees of truncation of a kind of basis.

    Attributes
    ----------
    least, most, finest : int
        The degree at which Newton's method begins, the highest one on branches, and by default the
        highest one of a single state.
    unresolved : float
        Size of the last moments above which a point of a branch needs a higher degree.
    """

    least: int
    most: int
    finest: int
    unresolved: float


ON_CIRCLE = Truncation(32, 512, 1024, 1e-12)  # and about an axis


class Basis(ReadOnlyArrays, ABC):
    """Orthonormal harmonics p_i of one order: one behaviour under the symmetries of a state.

    Stationary states are expanded in functions of order 0; perturbations of different orders do not
    couple. A subclass is registered by the names of its symmetries and by its class of spaces.

    Attributes
    ----------
    symmetric : bool
        Whether the basis is for rotation-invariant models, whose uniform density is stationary.
    noise : Noise
    kept, symmetries
        Reflections under which states are invariant, and `Symmetries` of the model, for other
        models: see `reflections`.
    axis
        Default axis of a state.
    space : Space or None
        Space whose grid has the nodes of the quadrature; None for the nodes about an axis.
    dimension, order, degree : int
    orders : int
        Number of orders.
    rotation_order : int
        Order of the infinitesimal rotations of a state; -1 if these are determined otherwise.
    least, most, finest, unresolved
        See `Truncation`.
    dense : bool
        Whether Jacobians are dense matrices; else linear systems are solved by GMRES.
    iterates : bool
        Whether leading eigenvalues alone are computed where all are real.
    refinement : float
        Factor by which the degree is raised for a state that is not resolved.
    degrees : ndarray of int, (N,)
        Degree of each p_i, in nondecreasing order, without the constant; on the torus the number of
        its orbit of waves. It is the index of its multiplier. A basis of a higher degree begins
        with the same functions.
    weights : ndarray, (M,)
        Weights of the quadrature, of sum 1; exact at least for products of two of the p_i.
    values : ndarray, (N, M)
        p_i at the nodes.
    gradients : ndarray, (C, N, M)
        Components of grad p_i in an orthonormal frame of the tangent space. C may be smaller for
        order 0, where other components vanish.
    """

    kinds: ClassVar[dict[tuple[str, type[Space]], type["Basis"]]] = {}
    groups: ClassVar[str] = ""
    open_kinds: ClassVar[dict[type[Space], Any]] = {}
    symmetric: ClassVar[bool] = True
    unresolved: float = 1e-12
    dense: bool = True
    iterates: ClassVar[bool] = False
    refinement: ClassVar[float] = 2.0
    noise: Noise = ISOTROPIC
    kept: tuple[int, ...] = ()
    symmetries: Any = None
    axis: Any = None
    space: Any = None
    dimension: int
    order: int
    degree: int
    orders: int
    rotation_order: int
    least: int
    most: int
    finest: int
    degrees: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    gradients: np.ndarray

    def __init_subclass__(
        cls,
        names: tuple[str, ...] = (),
        space: type[Space] = Space,
        groups_on: type[Space] | None = None,
        **options: Any,
    ) -> None:
        super().__init_subclass__(**options)
        Basis.kinds.update({(name, space): cls for name in names})
        if groups_on is not None:
            Basis.open_kinds[groups_on] = cls

    @property
    def eigenvalues(self) -> np.ndarray:
        """l (l + d - 2) of each p_i, (N,): eigenvalues of minus the Laplacian."""
        return self.degrees * (self.degrees + self.dimension - 2.0)

    @property
    def multiplier_eigenvalues(self) -> np.ndarray:
        """Eigenvalue of minus the Laplacian for each multiplier, that of the constant first."""
        l = np.arange(self.degree + 1)
        return l * (l + self.dimension - 2.0)

    def attraction(self, drift: ZonalDrift) -> np.ndarray:
        """Multipliers of W by `degrees`, (*ensemble, levels), that of the constant first."""
        return drift.attraction(self.degree, self.dimension)

    def normaliser(self, drift: ZonalDrift) -> np.ndarray | None:
        """Multipliers of Z by `degrees`, (*ensemble, levels), or None where Z = 1."""
        return drift.normaliser(self.degree, self.dimension)

    def interaction(self, drift: ZonalDrift) -> np.ndarray:
        """Multipliers of W in the energy by `degrees`, (*ensemble, levels)."""
        return drift.interaction(self.degree, self.dimension)

    @property
    def highest(self) -> np.ndarray:
        """Least degree of truncation that keeps each p_i, (N,)."""
        return self.degrees

    def truncation_of(self, degree: int) -> int:
        """Least degree of truncation that keeps the functions with a value of `degrees`."""
        return degree

    @cached_property
    def sizes(self) -> np.ndarray:
        """sqrt(dim H_l) of each, (N,): p_i is `sizes` times a Legendre function P_i, |P_i| <= 1."""
        return np.sqrt([dimension_of_harmonics(int(l), self.dimension) for l in self.degrees])

    @property
    def shares(self) -> np.ndarray:
        """Weight of each function in norms, (N,)."""
        return np.ones(len(self.degrees))

    @cached_property
    def norms(self) -> np.ndarray:
        """Factors (N,) of moments whose Euclidean norm is that in L^2."""
        return self.sizes * np.sqrt(self.shares)

    @cached_property
    def legendre(self) -> np.ndarray:
        """The Legendre functions P_i on the nodes, (N, M)."""
        return self.values / self.sizes[:, None]

    def synthesised(self, m: np.ndarray) -> np.ndarray:
        """sum_i m_i P_i on the nodes, (M,)."""
        return m @ self.legendre

    def analysed(self, masses: np.ndarray) -> np.ndarray:
        """sum_n P_i(x_n) masses_n, (N,), over the nodes x_n; `masses` (M,)."""
        return self.legendre @ masses

    def pairings(self, masses: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """sum_n P_i(x_n) P_j(x_n) masses_n, (N, k), for j in `columns`, all by default."""
        p = self.legendre
        return (p * masses) @ (p if columns is None else p[columns]).T

    def advected(self, flow: np.ndarray) -> np.ndarray:
        """Matrix (N, N) of sums over nodes of <grad p_i, F> p_j for F (C, M)."""
        return directional(flow, self) @ self.values.T

    def transport(
        self, flow: np.ndarray, bent: np.ndarray, masses: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Matrix (N, N) of int p_j <grad p_i, F - w_j B> + w_j int M <grad p_i, grad p_j>.

        F, B (C, M) and M (M,) are `flow`, `bent` and `masses` at the nodes, w (N,) `weights`.
        """
        matrix = np.zeros((len(self.degrees), len(self.degrees)))
        for c, gradient in enumerate(self.gradients):
            drawn = masses * gradient
            if c < len(flow):
                matrix += gradient @ (flow[c] * self.values).T
                if bent[c].any():
                    drawn -= bent[c] * self.values
            matrix += gradient @ drawn.T * weights
        return matrix

    def gradient_of(self, c: np.ndarray) -> np.ndarray:
        """Components (C, M) of the gradient of sum_i c_i p_i on the nodes."""
        return np.tensordot(c, self.gradients, (0, 1))

    @property
    def rotations(self) -> list[Any]:
        """Sparse matrices (N, N) of infinitesimal rotations that leave the symmetry of states."""
        return []

    @property
    def even(self) -> Any:
        """The functions of order 0: this basis."""
        return self

    @property
    def orders_of_functions(self) -> np.ndarray:
        """The order of each function in the moments of a state, (N,)."""
        return np.zeros(len(self.degrees), dtype=int)

    @property
    def members(self) -> np.ndarray:
        """Indices of the functions in the moments of a state, (N,)."""
        return np.arange(len(self.degrees))

    @property
    def single(self) -> list[int]:
        """Degrees with one function, up to half the degree of truncation, as normal forms need."""
        degrees, counts = np.unique(self.degrees, return_counts=True)
        alone = degrees[counts == 1]
        return [int(l) for l in alone if 2 * self.highest[self.index(l)] <= self.degree]

    def tangents(self, m: np.ndarray) -> np.ndarray:
        """Orthonormal tangents (r, N) of the rotations of a state that preserve its symmetry."""
        return np.zeros((0, len(m)))

    def moved(self, m: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Moments (N,) after a step of Newton's method (N,)."""
        return np.asarray(m + step)

    def rotated(self, m: np.ndarray, angle: float) -> Iterator[np.ndarray]:
        """Moments of a state turned by an angle, by rotations that may change the model."""
        yield from ()

    def first_moments(self, m: np.ndarray) -> np.ndarray:
        """Coordinates (..., k), linear in moments m (..., N), of int x dmu over the length |x|."""
        return np.asarray(m[..., self.degrees == 1])

    def order_parameter(self, m: np.ndarray) -> Any:
        """|int x dmu|/|x| of moments (..., N)."""
        return np.linalg.norm(self.first_moments(m), axis=-1)

    def fingerprint(self, m: np.ndarray) -> np.ndarray:
        """Invariants under rotations that preserve the symmetry: here the L^2 coefficients."""
        return self.sizes * m

    def tail(self, m: np.ndarray, limit: float, moving: np.ndarray | float = 0.0) -> float:
        """Largest of the last moments, see `HarmonicSizes.tail`: a measure of truncation.

        Moments that fields carry above the truncation count by their shares `moving`.
        """
        sizes = HarmonicSizes(self.highest, m)
        return max(sizes.tail(self.degree, limit), float((moving * sizes.sizes).max()))

    @property
    def next_degree(self) -> int:
        """Next degree of truncation, for a state that this one does not resolve."""
        return int(self.refinement * self.degree)

    def most_for(self, max_degree: int | None, default: int) -> int:
        """Highest degree of truncation of a search that begins with this one."""
        expected = f"at least {self.degree}, the degree with which the search begins"
        most = default if max_degree is None else whole_number("max_degree", max_degree)
        require("max_degree", most, expected, max_degree is None or most >= self.degree)
        return most

    def damped_from(self, degree: int) -> int:
        """Order from which diffusion damps perturbations more and more as the order grows.

        `degree` is the degree that the drift attracts most.
        """
        return degree

    def index(self, degree: int) -> int:
        """The position of the first function of a degree."""
        return int(np.flatnonzero(self.degrees == degree)[0])

    def padded(self, m: np.ndarray) -> np.ndarray:
        """Moments (n,) of a coarser basis as moments (N,) of this one, padded with zeros."""
        return np.pad(m, (0, len(self.degrees) - len(m)))

    def coarsened(self, m: np.ndarray, limit: float) -> "Basis":
        """The basis of the first degree, `least`, ..., with last moments below a limit."""
        degree = self.least
        while degree < self.degree:
            coarse = self.finer(degree)
            if coarse.tail(m[: len(coarse.degrees)], limit) <= limit:
                return coarse
            degree = coarse.next_degree
        return self

    def coarser(self, part: Any, m: np.ndarray, felt: np.ndarray) -> Iterator[Any]:
        """More and more functions of a part, on these nodes, with those that the drift feels.

        A state with moments m (N,) couples functions whose waves differ by its harmonics, or by
        those of `felt` (N,): each truncation adds to every function at least one that it is
        coupled to. The part itself comes last, and by default alone.
        """
        yield part

    def fitted(self, m: np.ndarray) -> tuple["Basis", np.ndarray]:
        """The basis with the symmetries of a state, and the moments of the state in it."""
        return self, m

    def rotation_count(self, m: np.ndarray) -> int:
        """Number of infinitesimal rotations of a state with moments m that have this order."""
        return int(self.order == self.rotation_order and np.abs(m).max() >= UNIFORM_MOMENT)

    def images(self, m: np.ndarray) -> list[np.ndarray]:
        """Signs (N,) that turn the moments of a state into those of each mirror image.

        The mirror image is by x -> -x on S^(d-1), and by a rotation by pi/k of a k-fold state on
        the circle.
        """
        return [np.where(self.degrees // fold_of(self, m) % 2, -1.0, 1.0)]

    def equivalents(self, m: np.ndarray) -> list[np.ndarray]:
        """Moments of the other states equal to one up to symmetries of the model."""
        return [signs * m for signs in self.images(m)]

    def placements(self, m: np.ndarray) -> list[np.ndarray] | None:
        """Moments of all states in the basis to which symmetries of the model may map a state.

        Empty if these are circles or tori of states, None if they are not known.
        """
        return distinct([m, *self.equivalents(m)])

    def mirrored(self, direction: np.ndarray) -> bool:
        """Whether small perturbations of the uniform state with opposite signs are equivalent."""
        degrees = self.degrees[direction != 0]
        turned = int(np.gcd.reduce(degrees)) if self.dimension == 2 else 1
        return bool((degrees // turned % 2 == 1).all())

    def symmetric_part(self, like: np.ndarray, m: np.ndarray) -> np.ndarray:
        """Moments m with zeros where the symmetries of the state `like` require them.

        Near a crossing of branches Newton's method is ill-conditioned for these moments.
        """
        kept = self.degrees % fold_of(self, like) == 0
        if np.abs(like[self.degrees % 2 == 1]).max(initial=0.0) < SYMMETRY_ROUNDING:
            kept &= self.degrees % 2 == 0
        return np.where(kept, m, 0.0)

    def joined(self, signs: np.ndarray) -> "Basis":
        """The basis of states that equal their mirror image with these signs, of `images`."""
        return self

    def symmetrised(self, m: np.ndarray) -> np.ndarray:
        """Estimate of the state from which a branch at m bifurcates: here the uniform one."""
        return np.zeros_like(m)

    def guesses(self, count: int) -> Iterator[np.ndarray]:
        """Moments of exp(p_i)/const and exp(-p_i)/const for the first `count` functions."""
        for unit in np.eye(min(count, len(self.degrees))):
            yield from (self.tilted(unit), self.tilted(-unit))

    def tilted(self, c: np.ndarray) -> np.ndarray:
        """Moments of exp(sum_i c_i p_i)/const, times the density of the noise without drift."""
        exponent = c @ self.values[: len(c)]
        law = self.weights * np.exp(exponent - exponent.max())
        return self.legendre @ law / law.sum()

    @classmethod
    def on(cls, space: Any, name: Any) -> "Basis":
        """The basis of order 0 with the degree at which the search for states on a space begins."""
        raise NotImplementedError("see `basis_of`")

    @abstractmethod
    def of_order(self, order: int) -> "Basis":
        """The basis of another order, at the same nodes."""

    @abstractmethod
    def finer(self, degree: int) -> "Basis":
        """The basis of the same order up to another degree."""

    @abstractmethod
    def moments(self, density: Density) -> tuple[np.ndarray, Any]:
        """Legendre moments (N,) of a density, and its axis or None; for order 0."""

    @abstractmethod
    def density(self, m: np.ndarray, axis: Any) -> Density:
        """The density with these moments and axis, of the degree of the basis; for order 0."""


def basis_on(space: Any, name: Any = AXISYMMETRIC) -> Basis:
    """The basis with a symmetry in which the search for states on a space begins.

    `name` is a registered symmetry, or a group, by name or generators, on spaces whose basis takes
    groups.

    Raises
    ------
    TypeError
        For spaces without a basis for stationary states.
    ValueError
        For symmetries that are not available on the space.
    """
    kinds_here: dict[str, type[Basis]] = {}
    others: Any = None
    for kind in reversed(type(space).__mro__):
        kinds_here |= {
            symmetry: basis for (symmetry, on), basis in Basis.kinds.items() if on is kind
        }
        others = Basis.open_kinds.get(kind, others)
    if not kinds_here:
        *names, last = sorted({space.__name__ for _, space in Basis.kinds})
        raise TypeError(f"space must be {', '.join(names)} or {last}; got {as_given(space)}.")
    if isinstance(name, str) and name in kinds_here:
        return kinds_here[name].on(space, name)
    if others is not None and others.takes(name):
        return others.on(space, name)
    wanted = f"{' or '.join(map(repr, kinds_here))} on {space!r}"
    more = f", or {others.groups}" if others is not None else ""
    require("symmetry", name, f"{wanted}{more}", False)
    raise AssertionError


def directional(velocity: np.ndarray, part: Any) -> np.ndarray:
    """<grad p_i, velocity> at the nodes, (n, M), for a velocity (C, M)."""
    return np.asarray(np.einsum("cnm,cm->nm", part.gradients[: len(velocity)], velocity))


def latitudinal(
    x: np.ndarray, dimension: int, order: int, degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """p_l and sqrt(1 - x^2) p_l' at x, l = order, ..., degree: (degree + 1 - order, M) each."""
    m, d = order, dimension
    e = recurrence(degree + 2, m, d)
    mean = lgamma(d / 2) + lgamma(m + (d - 1) / 2) - lgamma((d - 1) / 2) - lgamma(m + d / 2)
    sines = (1 - x) * (1 + x)
    p = np.zeros((degree + 3 - m, x.size))  # the first is p_{m-1} = 0
    p[1] = sines ** (m / 2) * exp(-mean / 2)
    for l in range(m, degree + 1):
        p[l - m + 2] = (x * p[l - m + 1] - e[l] * p[l - m]) / e[l + 1]
    ls = np.arange(m, degree + 1)
    slopes = ((ls + d - 2) * e[ls])[:, None] * p[:-2] - (ls * e[ls + 1])[:, None] * p[2:]
    return p[1:-1], slopes / np.sqrt(sines)


@lru_cache(maxsize=16)
def _at_gauss_nodes(
    nodes: int, dimension: int, order: int, degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """`latitudinal` at Gauss nodes, as read-only arrays; the last 16 results are cached."""
    values, slopes = latitudinal(gauss(nodes, dimension)[0], dimension, order, degree)
    return read_only(values), read_only(slopes)


class AxialHarmonics(Basis, names=(AXISYMMETRIC,), space=Zonal):
    """Harmonics of one order about an axis up to a degree, at Gauss nodes.

    The axis of a density is that of its first nonzero moment; on `Zonal` it is fixed.

    Parameters
    ----------
    dimension, order, degree : int
    nodes : int, optional
        Number of nodes, 2 degree + 8 by default.

    Attributes
    ----------
    x : ndarray, (M,)
        Nodes: the component of a point along the axis.
    """

    rotation_order = 1
    least, most, finest, unresolved = ON_CIRCLE

    def __init__(self, dimension: int, order: int, degree: int, nodes: int | None = None):
        self.dimension, self.order, self.degree = dimension, order, degree
        self.orders = 2 if dimension == 2 else degree + 1
        nodes = nodes or 2 * degree + 8
        self.x, self.weights = gauss(nodes, dimension)
        values, slopes = _at_gauss_nodes(nodes, dimension, order, degree)
        first = 0 if order else 1  # without the constant
        self.degrees = np.arange(max(order, 1), degree + 1)
        self.values = values[first:]
        self.gradients = slopes[None, first:]
        if order:
            turning = order * (order + dimension - 3) / ((1 - self.x) * (1 + self.x))
            self.gradients = np.stack([slopes, np.sqrt(turning) * values])

    @classmethod
    def on(cls, space: Any, name: str) -> Self:
        return cls(space.dimension, 0, max(cls.least, space.degree))

    def of_order(self, order: int) -> Self:
        return type(self)(self.dimension, order, self.degree, self.x.size)

    def finer(self, degree: int) -> Self:
        return type(self)(self.dimension, self.order, degree)

    def moments(self, density: Density) -> tuple[np.ndarray, Any]:
        m, axis = self._about_axis(density)
        return self.padded(m[: len(self.degrees)]), axis

    def _about_axis(self, density: Density) -> tuple[np.ndarray, Any]:
        """Legendre moments of degrees 1, 2, ... about the axis of a density, and the axis."""
        l, d = range(1, density.space.degree + 1), density.space.dimension
        return density.coefficients[1:] / np.sqrt([dimension_of_harmonics(k, d) for k in l]), None

    def density(self, m: np.ndarray, axis: Any) -> Density:
        space = Zonal(self.dimension, self.degree)
        return Density(space, np.concatenate([[1.0], m * self.sizes]))


class OnCircle(AxialHarmonics, names=(AXISYMMETRIC,), space=Circle):
    """Even states on the circle, moments int cos(k (theta - axis)) dmu; the axis is an angle.

    It is one at which the first moment k that does not vanish is positive, or another multiple of
    pi/k from there if only that makes the density even.
    """

    axis = 0.0

    def _about_axis(self, density: Density) -> tuple[np.ndarray, Any]:
        c = density.coefficients[1:]
        k, sizes = np.arange(1, len(c) + 1), np.abs(c)
        seen = np.flatnonzero((sizes > VISIBLE_MOMENT * sizes.max()) & (sizes > NO_MOMENT))
        first = int(seen[0]) if seen.size else 0
        angles = (np.arange(2 * first + 2) * np.pi - np.angle(c[first]) * bool(seen.size)) / (
            first + 1
        )
        odd = np.linalg.norm((c * np.exp(1j * np.outer(angles, k))).imag, axis=1)
        best = 0 if odd[0] <= VISIBLE_MOMENT * np.linalg.norm(c) else int(odd.argmin())
        return (c * np.exp(1j * k * angles[best])).real, float(angles[best])

    def density(self, m: np.ndarray, axis: Any) -> Density:
        series = np.concatenate([[1.0], m])
        return Density(Circle(self.degree), series * np.exp(-1j * np.arange(len(series)) * axis))


class OnSphere(AxialHarmonics, names=(AXISYMMETRIC,), space=Sphere):
    """Axisymmetric states on S^2; the axis is a unit vector.

    It is the direction of the first moment or, if that vanishes, a principal axis of the second.
    """

    axis = np.array([0.0, 0.0, 1.0])

    def _about_axis(self, density: Density) -> tuple[np.ndarray, Any]:
        space, c, coarse = density.space, density.coefficients, density.space.with_degree(2)
        values = coarse.to_values(space.resample(c, 2))  # of harmonics up to the second
        axis = self._axis(coarse.weights * values, coarse.points)
        products = space.parseval * (c * harmonics_at(axis, space.degree)).real
        sums = np.bincount(space.degrees, products)
        return sums[1:] / (2 * np.arange(1, len(sums)) + 1), axis

    @staticmethod
    def _axis(masses: np.ndarray, x: np.ndarray) -> np.ndarray:
        first = masses @ x
        values, vectors = np.linalg.eigh((x * masses[:, None]).T @ x - np.eye(3) / 3)
        size = np.linalg.norm(first)
        if size > NO_MOMENT and size > VISIBLE_MOMENT * np.abs(values).max():
            return first / size
        return vectors[:, np.abs(values).argmax()]

    def density(self, m: np.ndarray, axis: Any) -> Density:
        space = Sphere(self.degree)
        moments = np.concatenate([[1.0], m])[space.degrees]
        return Density(space, moments * np.conj(harmonics_at(axis, self.degree)))


def distinct(moments: list[np.ndarray]) -> list[np.ndarray]:
    """Moments of states without those that differ from others by rounding only."""
    found: list[np.ndarray] = []
    for m in moments:
        if all(np.abs(m - one).max() > SYMMETRY_ROUNDING for one in found):
            found.append(m)
    return found


def fold_of(basis: Basis, m: np.ndarray) -> int:
    """The k of a state on the circle with period 2 pi/k; 1 on other spaces, and if m = 0."""
    present = basis.degrees[: len(m)][np.abs(m) > SYMMETRY_ROUNDING]
    return int(np.gcd.reduce(present)) if basis.dimension == 2 and present.size else 1
