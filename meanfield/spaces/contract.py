"""The contract of a space: harmonics, quadrature, transport."""

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakValueDictionary

import numpy as np

from ..core.annotations import FromAbove, RandomSource
from ..core.cached import cached_property
from ..core.checks import (
    check_memory,
    generator,
    positive,
    real_array,
    require,
    whole_number,
)
from ..core.errors import MeanfieldError
from ..core.kinds import Kind
from ..core.read_only import read_only
from ..states.points import UNIT, check_unit, function_values
from ..states.tokens import Tokens
from .clusters import mean_direction
from .density import Density
from .kernels import exponential_multipliers
from .linearised import GridTransport
from .transport import GridTransforms, Transport
from .validity import expanded

if TYPE_CHECKING:
    from ..states import State
    from .chart import NodeChart
    from .index import Index
    from .indexed import Indexed

NEGLIGIBLE_IN_BAND = 2.0**-60  # multipliers below this, relative to the largest, count as 0
KEPT_SPACES: WeakValueDictionary[Any, Any] = WeakValueDictionary()  # cache of `Space.with_degree`


def one_number(name: str, value: Any, expected: str, smallest: float = -np.inf) -> float:
    """Value as a float; raises ValueError unless it is one finite number >= `smallest`.

    `name` and `expected`, a description of the number, are for the message.
    """
    number = real_array(name, value)
    fits = number.shape == () and np.isfinite(number) and number >= smallest
    require(name, value, f"one finite {expected}", fits, advice="For an ensemble: Density.stack.")
    return float(number)


def orthogonal(rotation: Any, d: int, expected: str, reflections: bool) -> np.ndarray:
    """A matrix (d, d) of a rotation, or of a reflection if these are allowed; else ValueError."""
    matrix = real_array("rotation", rotation)
    fits = matrix.shape == (d, d) and np.abs(matrix @ matrix.T - np.eye(d)).max() <= 1e-12
    fits = fits and (reflections or np.linalg.det(matrix) > 0)
    return require("rotation", matrix, expected, fits)


def bands_of(attraction: np.ndarray) -> np.ndarray:
    """Highest degree whose multiplier is not negligible, (n,), of multipliers (n, degree + 1).

    The multiplier of degree 0 does not count.
    """
    size = np.abs(attraction)
    size[:, 0] = 0
    counts = size > NEGLIGIBLE_IN_BAND * size.max(axis=1, keepdims=True)
    return np.where(counts, np.arange(size.shape[1]), 0).max(axis=1)


@lru_cache(maxsize=4096)
def dimension_of_harmonics(degree: int, dimension: int) -> float:
    """dim H_l on S^(d-1): (2l + d - 2)/(l + d - 2) binomial(l + d - 2, l), and 1 for l = 0."""
    if degree == 0:
        return 1.0
    l, d = degree, dimension
    ways = np.prod([(d - 2 + i) / i for i in range(1, l)])  # binomial(l + d - 3, l - 1)
    return float((2 * l + d - 2) / l * ways)


class Space(Kind, family=True):
    """The unit sphere of R^d with a harmonic basis in which the Laplacian is diagonal.

    Densities are with respect to the *uniform probability measure*: the uniform density is the
    constant 1, the first coefficient of a density is its mass, and no 2 pi or 4 pi appears outside
    the space. A real function has one coefficient per mode, that of the constant first;
    coefficients may have leading ensemble axes.

    Attributes
    ----------
    dimension : int
        Ambient dimension d; the space is S^(d-1).
    degree : int
        Highest harmonic degree.
    degrees : ndarray of int, (modes,)
        Harmonic degree of every coefficient.
    dtype : numpy dtype
        Type of the coefficients: complex or float.
    axisymmetric : bool
        Whether the space has only functions that are symmetric about the last axis.
    levels : ndarray of int, (modes,)
        Index of the multiplier of every coefficient in the tables of `attraction`, `normaliser` and
        `interaction`: its degree, unless each coefficient has a multiplier of its own.
    spherical : bool
        Whether the space is a sphere; what is known on spheres alone is refused on others.
    radius : float
        Length of the points as vectors.
    points_advice : str
        Description of `points`, or of how to make them, for messages.
    largest_degree : int
        Highest degree to which `solve` refines by default.
    halfway : bool
        Whether `solve` raises the degree by factors 3/2 and 4/3 instead of 2, to save cost.
    parseval : ndarray, (modes,)
        int f^2 dsigma = sum parseval |coefficients|^2.
    points : ndarray, (N, d)
        Quadrature points, unit vectors.
    weights : ndarray, (N,)
        Quadrature weights, of sum 1; exact to harmonic degree 3 * `degree`.
    grids : type
        Class of the transforms for compiled code.
    transports : (type, type)
        Classes of the transport of densities, for Z = 1 and for other normalisers Z; by default
        `GridTransport`, which uses the transforms.
    """

    plain_class = True
    _internal: ClassVar[str] = (
        "bands chart checked_point frame function_values judged minus_divergence mode_axes "
        "real_modes scalar_moment scalar_moment_change to_coefficients to_values transforms "
        "transport with_modes rings laplacian judged_values empirical dirac mean_direction "
        "point_masses next_degree negative_mass synthesis analysis synthesis_at perturbation grids "
        "transports mode_dims split attraction normaliser interaction levels check_points "
        "harmonics tokens level_degrees points_advice radius shortened spherical directions"
    )

    dimension: int
    degree: int
    degrees: np.ndarray
    parseval: np.ndarray
    dtype: np.dtype = np.dtype(complex)
    axisymmetric: bool = False
    spherical: bool = True
    radius: float = 1.0
    largest_degree: int = 4096
    halfway: bool = False
    points_advice: str = "unit vectors"
    grids: ClassVar[Callable[..., GridTransforms]]
    transports: ClassVar[tuple[type[Transport], type[Transport]]] = GridTransport, GridTransport

    @property
    def directions(self) -> int:
        """Number of directions in which a point moves: d - 1 on a sphere, one a circle."""
        return self.dimension - 1

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
        """Coordinates of the grid by name; `points` are those of their product."""

    @property
    def arguments(self) -> dict[str, np.ndarray]:
        """Arguments, by name, with which `density` calls a function, (N,) each."""
        return self.axes

    @property
    def judged(self) -> np.ndarray | slice:
        """Mask (N,), or slice, of the points at which the sign of a value is meaningful."""
        return slice(None)

    @property
    def next_degree(self) -> int:
        """Degree with a slightly finer grid, on which quadrature errors are different."""
        return self.degree + 1 + self.degree // 8

    def judged_values(self, coefficients: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values at the points `judged`, of values (..., N); 0 if they are rounding errors."""
        return values[..., self.judged]

    def negative_mass(self, values: np.ndarray) -> np.ndarray:
        """int max(-f, 0) dsigma, (...,), of functions with values (..., N)."""
        return np.maximum(-values, 0.0) @ self.weights

    @property
    def real_modes(self) -> np.ndarray:
        """Mask (modes,) of the coefficients that are real if the function is real."""
        return self.parseval == 1

    def checked_point(self, point: Any, name: str = "point") -> np.ndarray:
        """Check a point: a unit vector (d,), normalised again; ValueError for others.

        In axisymmetric spaces it must be on the axis. `name` is for the message.
        """
        point = real_array(name, point)
        d = self.dimension
        unit = point.shape == (d,) and abs(np.linalg.norm(point) - 1) <= UNIT
        expected = f"a unit vector of shape ({d},)"
        require(name, point, expected, unit, advice="Divide it by its norm.")
        return point / np.linalg.norm(point)

    def check_points(self, caller: str, points: np.ndarray) -> None:
        """Raise ValueError unless rows of an array are points of the space, as `caller` wants."""
        check_unit(caller, points)

    def tokens(self, points: np.ndarray, masses: np.ndarray | None = None) -> "State":
        """Tokens at points (*replicas, n, d) of the space, by default of equal masses."""
        return Tokens(points, masses)

    def mean_direction(self, density: Density) -> np.ndarray:
        """Direction of int x dmu, (d,); the last axis if the integral is 0 to rounding."""
        masses = self.weights * density.values
        return mean_direction(self.points, masses, np.eye(self.dimension)[-1])

    @abstractmethod
    def chart(self, limit: np.ndarray) -> "NodeChart":
        """Coordinates about the point `limit`, (d,), for the nodes of `Characteristics`."""

    def function_values(self, f: Callable[..., Any], points: np.ndarray) -> np.ndarray:
        """Values of f at points (n, d); ValueError if f has not the symmetry of the space."""
        return function_values(f, points)

    def dirac(self, degree: int) -> float:
        """Scale of the coefficients of a degree, relative to which their size is judged.

        For d <= 3 it is the largest coefficient of a Dirac. For d > 3 that would grow like the
        power d - 2 of the degree; there it is the square root of (2 l + d - 2)/(d - 2), the growth
        of the Legendre expansion of a Dirac.
        """
        return 1.0

    @cached_property
    def levels(self) -> np.ndarray:
        return self.degrees

    @cached_property
    def level_degrees(self) -> np.ndarray:
        """Degree of every multiplier in a table."""
        degrees = np.zeros(self.levels.max() + 1, dtype=int)
        degrees[self.levels] = self.degrees
        return read_only(degrees)

    def attraction(self, drift: FromAbove) -> np.ndarray:
        """Multipliers of W, (*ensemble, levels)."""
        return drift.attraction(self.degree, self.dimension)

    def normaliser(self, drift: FromAbove) -> np.ndarray | None:
        """Multipliers of Z, (*ensemble, levels), or None where Z = 1."""
        return drift.normaliser(self.degree, self.dimension)

    def interaction(self, drift: FromAbove) -> np.ndarray:
        """Multipliers of W in the energy, its additive constant included, (*ensemble, levels)."""
        return drift.interaction(self.degree, self.dimension)

    def shortened(self, table: np.ndarray) -> np.ndarray:
        """Multipliers (..., levels) from those on this space with a higher degree."""
        return table[..., : self.degree + 1]

    @cached_property
    def laplacian(self) -> np.ndarray:
        """Eigenvalue -l (l + d - 2) of every coefficient."""
        return read_only(-self.degrees * (self.degrees + self.dimension - 2.0))

    def uniform(self) -> Density:
        """The uniform density: the constant 1."""
        return Density(self, self.degrees == 0)

    def density(self, f: Callable[..., np.ndarray]) -> Density:
        """The density proportional to f, normalised to mass 1.

        Parameters
        ----------
        f : callable
            f(theta) on the circle, of angles in radians; f(theta_1, ..., theta_m) on the torus;
            f(x, y, z) on S^2, of Cartesian coordinates; f(x) for axisymmetric densities, x =
            <token, e_d> in [-1, 1]. Maps arrays to values >= 0 of the same shape.

        Raises
        ------
        ValueError
            If f returns another shape, values that are not finite or negative, or mass 0.

        Warns
        -----
        UnresolvedWarning
            If the highest modes are not small, or f differs from its series between the points of
            the grid: f needs a higher degree. The latter is not checked for a table of values on
            the grid.
        """
        signature = f"f({', '.join(self.arguments)})"
        coefficients, missed = expanded(self, f, signature)
        return Density(self, coefficients).warn_if_unresolved(missed=missed)

    def indexed(self, f: Callable[..., np.ndarray], index: "Index | None" = None) -> "Indexed":
        """Densities proportional to f(s, ...), each of mass 1, for the values s of an index.

        Parameters
        ----------
        f : callable
            f(s, theta) on the circle, f(s, x, y, z) on S^2, f(s, x) for axisymmetric densities. The
            index s is an array (P, 1), the other arguments are those of `density`, (N,). It returns
            values >= 0 of shape (P, N).
        index : Index, optional
            By default `Positions()`: 16 Gauss-Legendre nodes in [0, 1].

        Raises
        ------
        ValueError
            If f returns another shape, values that are not finite or negative, or mass 0.

        Warns
        -----
        UnresolvedWarning
            If the highest modes are not small: f needs a higher degree.
        """
        from .index import Positions
        from .indexed import Indexed

        return Indexed.of_function(self, f, Positions() if index is None else index)

    def perturbed(self, amplitude: float, *, rng: RandomSource, degrees: Any = None) -> Density:
        """Uniform density plus a random perturbation, whose coefficients are normal numbers.

        The coefficients are those of cos(k theta) and sin(k theta) on the circle; of the real
        orthonormal harmonics on S^2, such as sqrt(2) Re Y_lm and sqrt(2) Im Y_lm; and the c_l of
        an axisymmetric density.

        Parameters
        ----------
        amplitude : float
            Standard deviation of the coefficients.
        rng : numpy.random.Generator or seed
            The same seed gives the same density for every degree of the space.
        degrees : sequence of int, optional
            The degrees to perturb; by default 1, ..., min(8, degree).

        Raises
        ------
        ValueError
            If a degree is outside 1, ..., degree, or the density is negative somewhere.
        """
        amplitude, rng = one_number("amplitude", amplitude, "amplitude"), generator(rng)
        default = range(1, min(8, self.degree) + 1)
        numbers = real_array("degrees", default if degrees is None else degrees)
        known = np.isin(numbers, self.degrees[1:]).all()
        fits = numbers.ndim == 1 and known and 0 < numbers.size == np.unique(numbers).size
        require("degrees", degrees, f"different whole numbers between 1 and {self.degree}", fits)
        coefficients = self.uniform().coefficients.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            for l in numbers.astype(int):
                coefficients[self.degrees == l] = self.perturbation(l, amplitude, rng)
        try:
            return Density(self, coefficients).checked_positive()
        except ValueError as error:
            raise ValueError(f"amplitude = {amplitude:g} is too large. {error}") from None

    @abstractmethod
    def perturbation(self, l: int, amplitude: float, rng: np.random.Generator) -> np.ndarray:
        """Coefficients of degree l, in their order, of a random perturbation."""

    def _padded(self, letter: str, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients by degree, padded with zeros to (..., degree + 1).

        `letter` names them in the message.
        """
        coefficients = np.atleast_1d(coefficients)
        count, shape = coefficients.shape[-1], coefficients.shape
        expected = f"that of {letter}_0, ..., {letter}_{self.degree} at most, on {self!r}"
        advice = f"Use a degree of {count - 1} or more."
        fits = count <= self.degree + 1
        require("The shape of the coefficients", shape, expected, fits, advice=advice)
        result = np.zeros((*coefficients.shape[:-1], self.degree + 1), dtype=coefficients.dtype)
        result[..., : coefficients.shape[-1]] = coefficients
        return result

    def _exponential(self, concentration: Any, smallest: float) -> np.ndarray:
        """Multipliers of exp(concentration t) divided by the first one, (degree + 1,)."""
        expected = f"concentration{' >= 0' if smallest == 0 else ''}"
        number = one_number("concentration", concentration, expected, smallest)
        multipliers = exponential_multipliers(number, self.degree, self.dimension)
        fits = np.isfinite(multipliers / multipliers[0]).all()
        require("concentration", number, "smaller: its law is one point", fits)
        return multipliers / multipliers[0]

    def _smoothed(self, modes: np.ndarray, bandwidth: float) -> Density:
        """The density with these coefficients after a heat flow of time bandwidth^2 / 2."""
        bandwidth = positive("bandwidth", bandwidth)
        return Density(self, modes * np.exp(self.laplacian * min(bandwidth, 1e9) ** 2 / 2))

    def with_degree(self, degree: int) -> Self:
        """This space with another degree; equal spaces are one cached object while in use."""
        degree = degree if type(degree) is int else whole_number("degree", degree)
        key = type(self), self.dimension, degree
        return KEPT_SPACES.get(key) or KEPT_SPACES.setdefault(key, self.replace(degree=degree))

    def with_modes(self, modes: int) -> Self:
        """This space with another number of coefficients."""
        return self.with_degree(modes - 1)

    def resample(self, coefficients: np.ndarray, degree: int) -> np.ndarray:
        """Coefficients up to another degree: truncated, or padded with zeros."""
        common_count = min(self.degree, degree) + 1
        result = np.zeros((*coefficients.shape[:-1], degree + 1), dtype=self.dtype)
        result[..., :common_count] = coefficients[..., :common_count]
        return result

    def to_values(self, coefficients: np.ndarray) -> np.ndarray:
        """Values at `points`, (..., N), of expansions (..., modes)."""
        members, size = coefficients.shape[:-1], self.weights.size
        about = f"values of a density of degree {self.degree} at {size} points"
        check_memory(about, (*members, 2, size), "degree or the ensemble" if members else "degree")
        values = self.synthesis(coefficients.reshape(-1, self.degrees.size))
        return values.reshape(*members, -1)

    def to_coefficients(self, values: np.ndarray) -> np.ndarray:
        """Projection of values at `points`, (..., N), on the harmonics kept, (..., modes)."""
        series = self.analysis(values.reshape(-1, self.weights.size))
        return series.reshape(*values.shape[:-1], -1)

    def at(self, coefficients: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Values (*ensemble, *shape) of expansions at any unit vectors (*shape, d)."""
        series = coefficients.reshape(-1, self.degrees.size)
        values = self.synthesis_at(series, points.reshape(-1, points.shape[-1]))
        return values.reshape((*coefficients.shape[:-1], *points.shape[:-1]))  # () for one point

    @abstractmethod
    def synthesis(self, series: np.ndarray) -> np.ndarray:
        """Values at `points`, (members, N), of series (members, modes)."""

    @abstractmethod
    def analysis(self, values: np.ndarray) -> np.ndarray:
        """Coefficients (members, modes) of functions with values (members, N) at `points`."""

    @abstractmethod
    def synthesis_at(self, series: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Values (members, n) of series (members, modes) at unit vectors (n, d)."""

    @abstractmethod
    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """The moment of degree k of a density."""

    def amplitude(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """sqrt(sum |c|^2 / dim H_k) over the modes of degree k, invariant under rotations.

        It is 1 for a Dirac, and |int P_k(<x, e>) dmu| for a density symmetric about e.
        """
        modes, count = self.harmonics(k)
        power = (self.parseval[modes] * np.abs(coefficients[..., modes]) ** 2).sum(axis=-1)
        return np.sqrt(power / count)

    def harmonics(self, k: int) -> tuple[np.ndarray, float]:
        """Mask or indices of the coefficients in the moment of degree k, and dim H_k."""
        return self.degrees == k, dimension_of_harmonics(k, self.dimension)

    def scalar_moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """The moment of degree k where it is one number, (*ensemble,), else its `amplitude`."""
        moment = self.moment(coefficients, k)
        scalar = moment.ndim < coefficients.ndim
        return moment if scalar else self.amplitude(coefficients, k)

    def scalar_moment_change(
        self, coefficients: np.ndarray, change: np.ndarray, k: int
    ) -> np.ndarray:
        """Derivative of `scalar_moment` along a change of the coefficients; nan at amplitude 0."""
        moment = self.moment(change, k)
        if moment.ndim < change.ndim:
            return moment
        modes, count = self.harmonics(k)
        pairs = self.parseval[modes] * (np.conj(coefficients) * change)[..., modes].real
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = pairs.sum(axis=-1) / count
            return mean / self.amplitude(coefficients, k)

    def identity(self) -> Any:
        """The parameters of the space, which `digest` reads."""
        return self.described

    def __eq__(self, other: object) -> bool:
        key = self.dimension, self.degree
        return type(other) is type(self) and (other.dimension, other.degree) == key

    def __hash__(self) -> int:
        return hash((type(self), self.dimension, self.degree))

    mode_dims: ClassVar[tuple[str, ...]] = ("mode",)  # axes of the coefficients in files

    def split(self, flat: np.ndarray) -> np.ndarray:
        """Coefficients (..., modes), with an axis for each of `mode_dims`."""
        return flat

    @property
    def mode_axes(self) -> dict[str, np.ndarray]:
        """Labels of the modes by name, (modes,) each; the first is the coordinate "mode"."""
        return {"mode": self.degrees}

    @abstractmethod
    def rotate(self, coefficients: np.ndarray, rotation: Any) -> np.ndarray:
        """Coefficients of the pushforward of a density by a rotation."""

    def empirical(self, points: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Coefficients (members, modes) of point masses (members, N) at unit vectors (.., N, d).

        The first coefficient is the sum of the masses, to rounding.
        """
        pairs = zip(points, masses, strict=True)
        return np.stack([self.point_masses(*pair) for pair in pairs])

    def point_masses(self, points: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Coefficients (modes,) of one measure, see `empirical`; MeanfieldError in other spaces."""
        raise MeanfieldError(f"{self!r} does not hold measures without a symmetry; use Sphere.")

    @abstractmethod
    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """n independent points, (n, d), with this density."""

    @property
    def frame(self) -> np.ndarray:
        """Orthonormal tangent vectors at `points`, (d - 1, N, d).

        Raises
        ------
        MeanfieldError
            If the densities of the space are symmetric about an axis.
        """
        raise MeanfieldError(
            f"{self!r} holds densities that are symmetric about an axis, and moves them by zonal "
            "drifts, reactions and isotropic noise alone. Solve on Circle(degree) or "
            "Sphere(degree), or for Tokens."
        )

    @abstractmethod
    def gradient(self, coefficients: np.ndarray) -> np.ndarray:
        """Components (d - 1, N) of the gradient of a function, along `frame`.

        For axisymmetric functions there is one component (1, N), along the meridians from -e_d to
        e_d.
        """

    @abstractmethod
    def minus_divergence(self, field: np.ndarray) -> np.ndarray:
        """Coefficients (modes,) of -div F of a tangent field F with components as in `gradient`.

        They are computed in the weak form int <F, grad conj(Y)> dsigma, which is not singular at
        the poles.
        """

    def transport(
        self, attraction: np.ndarray, normaliser: np.ndarray | None, members: int,
        pairs: bool = False,
    ) -> Transport:  # fmt: skip
        """Map mu -> -div(mu v), v = grad (W * mu) / (Z * mu), for `members` densities.

        `attraction` and `normaliser` are the multipliers of W and Z by degree, (members,
        degree + 1), or (1, degree + 1) if shared; `normaliser` None means Z = 1. With `pairs` the
        map is (mu, nu) -> -div(mu v[nu]), see `Transport`.
        """
        kind = self.transports[normaliser is not None]
        return kind(self, attraction, normaliser, members, pairs)

    def bands(self, attraction: np.ndarray) -> np.ndarray:
        """Highest degree (n,) that counts in the velocity of each potential.

        `attraction` are the multipliers of the potentials, (n, degree + 1).
        """
        return bands_of(attraction)

    def transforms(self, points: int) -> GridTransforms:
        """Transforms between harmonics and values, on a grid with `points` on a great circle."""
        return self.grids(self, points)
