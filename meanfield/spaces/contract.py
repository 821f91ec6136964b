"""What a geometry offers to the rest of the package."""

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from ..core.checks import real_array
from ..core.kinds import Kind
from .density import Density

if TYPE_CHECKING:
    from .characteristics.chart import Chart

__all__ = ["Geometry", "Transport", "read_only"]

UNIT, ROUNDING = 1e-9, 1e-12  # of a length that should be 1, and of one that should be 0


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, which many share, so that none of them can change it."""
    array.setflags(write=False)
    return array


class Transport(Protocol):
    """The coefficients of -div(mu v[mu]), as the compiled time loop calls them.

    `address` is a C function ``void f(context, member, source, target)`` that reads the
    coefficients of one density, that of the given member, at `source`, writes those of
    -div(mu v[mu]) at `target`, and raises `speed[0]` to the largest |v| that it met. Members
    are independent, and each stays in the cache for all stages of a step.
    """

    address: int
    context: int
    error: BaseException | None
    speed: np.ndarray

    def __call__(self, coefficients: np.ndarray) -> np.ndarray:
        """The same in Python: coefficients (members, modes) to coefficients."""


def dimension_of_harmonics(degree: int, dimension: int) -> float:
    """dim H_l on S^(d-1): (2l + d - 2)/(l + d - 2) binomial(l + d - 2, l), and 1 for l = 0."""
    if degree == 0:
        return 1.0
    l, d = degree, dimension
    ways = np.prod([(d - 2 + i) / i for i in range(1, l)])  # binomial(l + d - 3, l - 1)
    return float((2 * l + d - 2) / l * ways)


class Geometry(Kind, family=True):
    """The unit sphere of R^d with a harmonic basis in which the Laplacian is diagonal.

    Densities are taken with respect to the *uniform probability measure*: the uniform state
    is the constant 1, the constant coefficient of a density is its mass, and no 2 pi or 4 pi
    appears outside the geometry. A real function is given by one coefficient per mode, the
    constant first; coefficients may carry leading ensemble axes.

    Attributes
    ----------
    dimension : int
        Ambient dimension d; the space itself is S^(d-1).
    degree : int
        Highest harmonic degree kept.
    degrees : ndarray of int, (modes,)
        Harmonic degree of every coefficient.
    dtype : numpy dtype
        Of the coefficients: complex, or float.
    axisymmetric : bool
        Whether it holds functions that are symmetric about the last axis only.
    largest_degree : int
        Up to which `solve` refines by default.
    halfway : bool
        Whether twice the degree is so dear that `solve` takes 3/2 and 4/3 of it.
    parseval : ndarray, (modes,)
        int f^2 dsigma = sum parseval |coefficients|^2.
    points : ndarray, (N, d)
        Quadrature points, unit vectors.
    weights : ndarray, (N,)
        Quadrature weights, of sum 1; exact to harmonic degree 3 * `degree`.
    """

    by_hand = True

    dimension: int
    degree: int
    degrees: np.ndarray
    parseval: np.ndarray
    dtype: np.dtype = np.dtype(complex)
    axisymmetric: bool = False
    largest_degree: int = 4096
    halfway: bool = False

    @property
    @abstractmethod
    def points(self) -> np.ndarray:
        """Quadrature points, unit vectors (N, d)."""

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """Quadrature weights (N,), of sum 1."""

    @property
    @abstractmethod
    def axes(self) -> dict[str, np.ndarray]:
        """Names and values of the coordinates whose product is the grid of `points`."""

    @property
    def judged(self) -> np.ndarray | slice:
        """The points at which values are free of rounding errors, so that their sign counts."""
        return slice(None)

    def checked_point(self, point) -> np.ndarray:
        """A point of the space that has its symmetry, as a unit vector (d,); else ValueError."""
        point = real_array("A point", point)
        d = self.dimension
        if point.shape != (d,) or not abs(np.linalg.norm(point) - 1) <= UNIT:
            raise ValueError(f"Expected a point as a unit vector of shape ({d},); got {point}.")
        return point / np.linalg.norm(point)

    def mean_direction(self, density: Density) -> np.ndarray:
        """The direction of int x dmu, (d,); the last axis if that is 0 to rounding."""
        mean = self.weights * density.values @ self.points
        length = np.linalg.norm(mean)
        return mean / length if length > ROUNDING else np.eye(self.dimension)[-1]

    def chart(self, limit: np.ndarray) -> "Chart":
        """Coordinates about a point of the space, for the nodes of `Characteristics`."""
        raise TypeError(f"{self!r} has no chart: Characteristics cannot follow densities on it.")

    def check_symmetry(self, f, points: np.ndarray, values: np.ndarray) -> None:
        """Raise ValueError if f, of these values at these points, lacks the space's symmetry."""
        return

    def dirac(self, degree: int) -> float:
        """What coefficients of this degree are measured by: the largest of a Dirac, d <= 3.

        Beyond, where it grows like a power d - 2 of the degree, the square root of
        (2 l + d - 2)/(d - 2), by which Legendre's expansion of a Dirac grows.
        """
        return 1.0

    @cached_property
    def laplacian(self) -> np.ndarray:
        """Eigenvalue -l (l + d - 2) of every coefficient."""
        return read_only(-self.degrees * (self.degrees + self.dimension - 2.0))

    def density_of_values(self, values, what: str) -> Density:
        """The density proportional to values at `points`, checked; `what` is their name."""
        values = real_array(f"The values {what}", values)
        if values.shape != self.weights.shape:
            raise ValueError(
                f"{what} must have the shape of its arguments, {self.weights.shape}; got "
                f"{values.shape}. Write it with numpy functions of arrays."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            mass = values @ self.weights
        if not (values >= 0).all() or not 0 < mass < np.inf:
            raise ValueError(
                f"A density needs finite values >= 0, not all zero; {what} has minimum "
                f"{np.min(values)} and {np.count_nonzero(~np.isfinite(values))} values that are "
                "not finite."
            )
        coefficients = self.to_coefficients(values / mass)
        coefficients[0] = 1
        return Density(self, coefficients)

    def chosen_degrees(self, degrees) -> np.ndarray:
        """Degrees to perturb, 1 to 8 by default; raises ValueError for what is none."""
        chosen = np.arange(1, min(8, self.degree) + 1) if degrees is None else np.array(degrees)
        within = chosen.dtype.kind in "iuf" and np.isin(chosen, self.degrees[1:]).all()
        if chosen.ndim != 1 or not within or not 0 < chosen.size == np.unique(chosen).size:
            raise ValueError(
                f"perturbed expects different whole degrees between 1 and {self.degree}; got "
                f"{degrees!r}."
            )
        return chosen.astype(int)

    @abstractmethod
    def uniform(self) -> Density:
        """The uniform density: the constant 1."""

    @abstractmethod
    def perturbed(self, amplitude: float, *, rng, degrees=None) -> Density:
        """The uniform density plus random harmonics of size `amplitude`."""

    @abstractmethod
    def with_degree(self, degree: int) -> Self:
        """The same space with another number of harmonics."""

    @abstractmethod
    def with_modes(self, modes: int) -> Self:
        """The same space with this number of coefficients."""

    @abstractmethod
    def resample(self, coefficients: np.ndarray, degree: int) -> np.ndarray:
        """Coefficients up to `degree`: cut off, or filled up with zeros."""

    @abstractmethod
    def to_values(self, coefficients: np.ndarray) -> np.ndarray:
        """Values at `points`, (..., N), of expansions (..., modes)."""

    @abstractmethod
    def to_coefficients(self, values: np.ndarray) -> np.ndarray:
        """Projection of values at `points`, (..., N), on the harmonics kept, (..., modes)."""

    @abstractmethod
    def at(self, coefficients: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Values (*ensemble, *shape) of expansions at any unit vectors (*shape, d)."""

    @abstractmethod
    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """The moment of degree k of a density."""

    def amplitude(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """sqrt(sum |c|^2 / dim H_k) over the modes of degree k: the same in every frame.

        It is 1 for a Dirac, and |int P_k(<x, e>) dmu| for a density symmetric about e.
        """
        chosen = self.degrees == k
        power = (self.parseval[chosen] * np.abs(coefficients[..., chosen]) ** 2).sum(axis=-1)
        return np.sqrt(power / dimension_of_harmonics(k, self.dimension))

    def scalar_moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """One number for degree k, shape (*ensemble,): `amplitude`, or what says more."""
        return self.amplitude(coefficients, k)

    def identity(self) -> Any:
        """What `digest` reads of it: its parameters."""
        return self.described

    @property
    def mode_axes(self) -> dict[str, np.ndarray]:
        """Labels of the modes, (modes,) each; the first is the coordinate "mode" itself."""
        return {"mode": self.degrees}

    @abstractmethod
    def rotate(self, coefficients: np.ndarray, rotation) -> np.ndarray:
        """Coefficients of the pushforward of a density by a rotation."""

    @abstractmethod
    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """n independent points, (n, d), with this density."""

    @abstractmethod
    def transport(
        self, attraction: np.ndarray, normaliser: np.ndarray | None, members: int
    ) -> Transport:
        """The map mu -> -div(mu v), v = grad (W * mu) / (Z * mu), for `members` densities.

        `attraction` and `normaliser` are the multipliers of W and Z by degree, (1, degree + 1)
        if shared or (members, degree + 1); `normaliser` None means Z = 1.
        """
