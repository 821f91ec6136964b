"""A probability density on a space, by its harmonic coefficients."""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from ..core.annotations import RandomSource
from ..core.cached import cached_property
from ..core.checks import (
    check_memory,
    complex_array,
    generator,
    is_whole,
    real,
    real_array,
    require,
    whole_number,
)
from ..core.errors import UnresolvedWarning
from ..core.forms import Instance, Many
from ..core.read_only import read_only
from ..states.contract import Arrays, State, StatePart, member_dims
from ..states.tokens import Tokens
from .validity import (
    DENSITY_TAIL,
    NEGATIVE_SHARE,
    REAL_ENOUGH,
    UNIT_MASS,
    degree_above,
    tail_start,
)

if TYPE_CHECKING:
    from . import Space

GRID_ERROR = 1e-8  # tolerance of the change of int f dmu on a finer grid, relative to int |f| |dmu|


class Density(State):
    """A density with respect to the uniform probability measure, or an ensemble of them.

    Parameters
    ----------
    space : Space
        Space of the density, with the degree of its expansion.
    coefficients : array, shape (*ensemble, modes)
        Harmonic coefficients; the first is the mass and must be 1 (to 1e-12).

    Raises
    ------
    ValueError
        For another number of modes, values that are not finite, a mass other than 1, or
        coefficients that are not those of a real function.

    Notes
    -----
    Build one through its space: ``circle.density(f)``, ``circle.von_mises(...)`` and so on.
    A mixture is written ``0.3 * a + 0.7 * b``; the result must have mass 1.

    Members of an ensemble may have different degrees, at most that of the space, for instance
    after `stack` or in a run. A member taken from the ensemble has its own degree.
    """

    has_table = False  # configurations give the law of a density instead
    _degrees: ClassVar[Any] = None  # degrees of the members, if they differ from the space's
    _internal: ClassVar[str] = (
        "checked_positive member_degrees of_rows warn_if_unresolved with_member_degrees"
    )
    space: Any
    coefficients: Annotated[np.ndarray, StatePart("harmonic coefficients", ("mode",))]
    words: ClassVar[dict[str, str]] = {
        "density": "density with respect to the uniform probability measure",
        "mode": "number of the coefficient; its degree where there is one of each",
    }

    def __init__(self, space: Any, coefficients: Any) -> None:
        from .contract import Space

        a_space = isinstance(space, Space)
        require("space", space, "a space, such as Circle(64)", a_space, TypeError)
        checked_array = real_array if space.dtype.kind == "f" else complex_array
        coefficients = checked_array(f"The coefficients of a density on {space!r}", coefficients)
        modes = space.degrees.size
        shape, expected = coefficients.shape, f"(..., {modes}) on {space!r}"
        require("coefficients.shape", shape, expected, shape[-1:] == (modes,) and coefficients.size)
        count = np.count_nonzero(~np.isfinite(coefficients))
        require("coefficients", coefficients, f"finite, but {count} are not", count == 0)
        error = np.abs(coefficients[..., space.degrees == 0] - 1).max(initial=0)
        if error > UNIT_MASS:
            raise ValueError(
                f"A density has mass 1, its first coefficient; got a mass off by {error:.3g}. "
                "Divide by the mass, or let the weights of a mixture sum to 1."
            )
        imaginary = np.abs(coefficients[..., space.real_modes].imag).max(initial=0)
        expected = "real in the coefficients of order 0"
        require("The imaginary part", imaginary, expected, imaginary <= REAL_ENOUGH)
        self._set(space=space, coefficients=coefficients)

    @classmethod
    def computed(cls, coefficients: Any, space: "Space") -> Self:
        density = object.__new__(cls)
        density._set(space=space, coefficients=np.array(coefficients, space.dtype, order="C"))
        return density

    def __repr__(self) -> str:
        ensemble = f", ensemble {self.shape}" if self.shape else ""
        return f"Density({self.space!r}{ensemble}, spectral tail {self.spectral_tail.max():.1e})"

    # What it holds ---------------------------------------------------------------------------

    @property
    def member_degrees(self) -> np.ndarray:
        """Degree of every member, (*ensemble,)."""
        degrees = self.space.degree if self._degrees is None else self._degrees
        return np.broadcast_to(degrees, self.shape)

    def with_member_degrees(self, degrees: np.ndarray) -> "Density":
        """Ensemble with these degrees of its members (*ensemble,), on the space of the highest.

        The coefficients of a member beyond its degree must be 0.
        """
        degree = int(np.max(degrees))
        space = self.space.with_degree(degree)
        ensemble = self.computed(self.space.resample(self.coefficients, degree), space)
        ensemble._set(_degrees=np.array(degrees))
        return ensemble

    def members(self) -> "list[Density]":
        """Members in C order, each on its own degree; equal members are one object."""
        distinct: dict[tuple[int, bytes], Density] = {}
        rows = self.coefficients.reshape(-1, self.coefficients.shape[-1])
        members = []
        for row, degree in zip(rows, self.member_degrees.ravel().tolist(), strict=True):
            key = degree, row.tobytes()
            if key not in distinct:
                distinct[key] = self.computed(row, self.space).resample(degree)
            members.append(distinct[key])
        return members

    def _mapped(self, change: Callable[[np.ndarray, tuple[int, ...]], np.ndarray]) -> "Density":
        mapped = super()._mapped(change)
        degrees = change(self.member_degrees, ())
        if mapped.shape:
            return mapped.with_member_degrees(degrees)
        return mapped.resample(int(degrees))

    @property
    def dimension(self) -> int:
        return self.space.dimension

    def facts(self) -> dict[str, str]:
        """Space, shape of the ensemble, and the least and the largest value, in words."""
        ensemble = {"ensemble": str(self.shape)} if self.shape else {}
        ends = f"{self.values.min():.6g}, {self.values.max():.6g}"
        return {"space": repr(self.space), **ensemble, "least and largest value": ends}

    @property
    def size_in_words(self) -> str:
        return f"degree {self.space.degree}"

    def header(self) -> dict[str, Any]:
        return {"space": self.space}

    def arrays(self) -> Arrays:
        """Values on the grid and coefficients, by name, with the coordinates of both."""
        space, dims = self.space, member_dims(self.shape)
        grid: Arrays = {name: ((name,), axis) for name, axis in space.axes.items()}
        sizes = [axis.size for axis in space.axes.values()]
        series = space.split(self.coefficients)
        modes = (*dims, *space.mode_dims)
        return {
            **grid,
            **{name: (("mode",), labels) for name, labels in space.mode_axes.items()},
            "density": ((*dims, *grid), self.values.reshape(*self.shape, *sizes)),
            "coefficient_re": (modes, series.real),
            "coefficient_im": (modes, series.imag),
        }

    def identity(self) -> Any:
        return [self.space, self.coefficients]

    @classmethod
    def stacked(cls, states: "Sequence[Density]") -> Arrays:
        """Arrays of several states on the grid and the modes of the highest degree.

        The array "degree" (t, *ensemble) has the degree of each state and member.
        """
        degrees = np.array([state.member_degrees for state in states])
        fine = [state.resample(int(degrees.max())) for state in states]
        arrays = super().stacked(fine)
        for name in (*fine[0].space.axes, *fine[0].space.mode_axes):
            arrays[name] = fine[0].arrays()[name]
        return {**arrays, "degree": (("t", *member_dims(states[0].shape)), degrees)}

    @classmethod
    def unstacked(cls, arrays: Arrays, header: dict[str, Any]) -> "list[Density]":
        degrees = arrays["degree"][1].astype(int)
        space = header["space"].with_degree(int(degrees.max()))
        coefficients = np.empty(arrays["coefficient_re"][1].shape, dtype=space.dtype)
        coefficients.real = arrays["coefficient_re"][1]
        if space.dtype.kind == "c":
            coefficients.imag = arrays["coefficient_im"][1]
        return [
            cls(space, row).with_member_degrees(member_degrees)
            for member_degrees, row in zip(degrees, coefficients, strict=True)
        ]

    # Reading -------------------------------------------------------------------------------

    @cached_property
    def values(self) -> np.ndarray:
        """Values at `space.points`, shape (*ensemble, N)."""
        return read_only(self.space.to_values(self.coefficients))

    def at(self, points: Any) -> np.ndarray:
        """Values at any unit vectors (..., d); shape (*ensemble, ...)."""
        points, d = real_array("points", points), self.space.dimension
        advice = f"Take {self.space.points_advice}."
        expected, fits = f"(..., {d}), of points of the space", points.shape[-1:] == (d,)
        require("points.shape", points.shape, expected, fits, advice=advice)
        self.space.check_points("at(points)", points)
        return self.space.at(self.coefficients, points)

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """int f dmu, (*ensemble, ...); f maps unit vectors (N, d) to (N, ...), real or complex.

        Exact for f of harmonic degree up to twice the space's degree. For an axisymmetric
        density f must have that symmetry too.

        Warns
        -----
        UnresolvedWarning
            If the integral changes on a slightly finer grid, because f jumps, has kinks or varies
            over small angles. The change is an estimate of the error.
        """
        integral, size = self._integral(f)
        other, _ = self.resample(self.space.next_degree)._integral(f)
        error, bound = np.abs(other - integral), GRID_ERROR * size
        if (error > bound).any():
            at = np.unravel_index(np.argmax(error - bound), error.shape)
            warnings.warn(
                "f varies faster than the grid of the density shows: int f dmu = "
                f"{integral[at]:.6g} changes by {error[at]:.1e} on a slightly finer grid. "
                "Use density.resample(degree).expect(f), of the same density on a finer grid.",
                UnresolvedWarning,
                stacklevel=2,
            )
        return integral

    def _integral(self, f: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Integrals int f dmu and int |f| |dmu| on the grid, (*ensemble, ...) each."""
        space = self.space
        values = space.function_values(f, space.points)
        masses = self.values * space.weights
        integral = np.tensordot(masses, values, axes=1)
        return integral, np.tensordot(np.abs(masses), np.abs(values), axes=1)

    def moment(self, k: int) -> Any:
        """The moment of degree k, shape (*ensemble,): int e^{ik theta} dmu on the circle.

        It is 0 beyond the degree of the space: the expansion has no such harmonics. On S^2 it has
        the shape (*ensemble, k + 1).
        """
        return self.space.moment(self.coefficients, checked_degree(k))

    @property
    def mass(self) -> np.ndarray:
        """int dmu, shape (*ensemble,)."""
        return self.coefficients[..., 0].real

    @property
    def minimum(self) -> np.ndarray:
        """Smallest value on the grid; slightly negative values are truncation error.

        Values of axisymmetric densities that are rounding errors count as 0, see `Zonal`.
        """
        return self.space.judged_values(self.coefficients, self.values).min(axis=-1)

    @property
    def negative_mass(self) -> np.ndarray:
        """int max(-mu, 0) dsigma, shape (*ensemble,), 0 up to errors; the largest over slices."""
        return self.space.negative_mass(self.values)

    @cached_property
    def spectral_tail(self) -> np.ndarray:
        """Largest |coefficient| in the last eighth of the degrees, shape (*ensemble,).

        The truncation error is of this size: 1e-10 means ten digits are resolved.
        """
        tail = self.space.degrees > tail_start(self.space.degree)
        return np.abs(self.coefficients[..., tail]).max(axis=-1)

    # Making others -------------------------------------------------------------------------

    def sample(self, n: int, *, rng: RandomSource) -> Tokens:
        """n independent tokens with this density.

        Parameters
        ----------
        n : int
            >= 1.
        rng : numpy.random.Generator or seed

        Raises
        ------
        ValueError
            If n < 1, for an ensemble, or if the density is negative somewhere.
        """
        if self.shape:
            raise ValueError("Sample the members of an ensemble one by one: density[i].sample(n).")
        n = whole_number("n", n)
        self.checked_positive(NEGATIVE_SHARE)
        rng = generator(rng)
        check_memory(f"n = {n} tokens", (6, n, self.dimension), "n")
        return self.space.tokens(self.space.sample(self.coefficients, n, rng))

    def rotate(self, rotation: Any) -> "Density":
        """The pushforward by a rotation: an angle in radians on the circle."""
        return type(self)(self.space, self.space.rotate(self.coefficients, rotation))

    def resample(self, degree: int) -> "Density":
        """Density with harmonics up to another degree: truncated, or padded with zeros."""
        space = self.space.with_degree(degree)
        coefficients = self.space.resample(self.coefficients, space.degree)
        return self.computed(coefficients, space)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("This is a single density, not an ensemble: it has no length.")
        return self.shape[0]

    @classmethod
    def stack(cls, densities: Sequence["Density"]) -> "Density":
        """An ensemble of densities, on the space of the highest degree among them."""
        densities = DENSITIES.check("densities", densities)
        shapes = {density.shape for density in densities}
        expected = "at least one density, all of one ensemble shape"
        require("densities", sorted(shapes), expected, len(shapes) == 1)
        fine = _on_one_space(densities)
        kind = type(fine[0])
        ensemble = kind(fine[0].space, np.stack([density.coefficients for density in fine]))
        return ensemble.with_member_degrees(np.stack([one.member_degrees for one in densities]))

    @classmethod
    def of_rows(cls, space: "Space", rows: Sequence[np.ndarray]) -> "Density":
        """Ensemble (n,) from rows of coefficients, which may have different numbers of modes."""
        sizes = np.array([len(row) for row in rows])
        spaces = {size: space.with_modes(size) for size in np.unique(sizes).tolist()}
        finest = spaces[int(sizes.max())]
        coefficients = np.empty((len(rows), len(finest.degrees)), dtype=space.dtype)
        for size, coarse in spaces.items():
            of_size = sizes == size
            chosen_rows = np.array([row for row in rows if len(row) == size])
            coefficients[of_size] = coarse.resample(chosen_rows, finest.degree)
        density = cls.computed(coefficients, finest)
        density._set(_degrees=np.array([spaces[size].degree for size in sizes.tolist()]))
        return density

    def reshape(self, shape: tuple[int, ...]) -> "Density":
        """The members in an ensemble of another shape."""
        return self._mapped(lambda array, sizes: array.reshape(*shape, *sizes))

    @classmethod
    def mixture(cls, weights: Sequence[float], densities: Sequence["Density"]) -> "Density":
        """sum_i weights_i densities_i, weights >= 0 of sum 1; also ``0.3 * a + 0.7 * b``."""
        densities = DENSITIES.check("densities", densities)
        require("densities", densities, "one density at least", len(densities) > 0)
        weights = real_array("weights", weights).ravel().tolist()
        valid = len(weights) == len(densities) > 0 and all(weight >= 0 for weight in weights)
        valid = valid and abs(sum(weights) - 1) <= UNIT_MASS
        expected = f"{len(densities)} numbers >= 0 of sum 1, one for each density"
        require("weights", weights, expected, valid)
        fine = _on_one_space(densities)
        total = sum(w * density.coefficients for w, density in zip(weights, fine, strict=True))
        return type(fine[0])(fine[0].space, total)

    def __mul__(self, weight: float) -> "Density | _Term":
        return self if weight == 1 else _Term([float(weight)], [self])

    __rmul__ = __mul__
    __array_ufunc__ = None  # numpy's numbers leave 0.3 * density to __rmul__

    def __add__(self, other: "Density | _Term") -> "Density | _Term":
        return _Term([1.0], [self]) + other

    # Judging -------------------------------------------------------------------------------

    def checked_positive(self, tolerance: float = 1e-10) -> Self:
        """Return this density; raise ValueError if it is negative.

        Values down to -`tolerance` times the maximum are accepted as rounding or solver errors.
        """
        real("tolerance", tolerance, "a number >= 0", lambda number: 0 <= number < np.inf)
        tolerated = tolerance * float(self.values[..., self.space.judged].max())
        minimum = float(self.minimum.min())
        if minimum < -tolerated:
            raise ValueError(
                f"A density must not be negative; its minimum is {minimum:.3g}, of which errors of "
                f"computation explain {tolerated:.1g}. Use smaller coefficients or, where the "
                "series is cut off, a higher degree."
            )
        return self

    def warn_if_unresolved(self, tolerance: float = DENSITY_TAIL, *, missed: float = 0.0) -> Self:
        """Return this density; warn if the spectral tail exceeds `tolerance`.

        `missed` is the root mean square difference between a function and its series; above ten
        times the tolerance there is a warning too.
        """
        real("tolerance", tolerance, "a number >= 0", lambda number: number >= 0)
        tail, reason = float(self.spectral_tail.max()), ""
        if tail > tolerance:
            reason = f"its highest coefficients are {tail:.1e}, expected <= {tolerance:.0e}"
        elif missed > 10 * tolerance:
            reason = f"between points of the grid its root mean square error is {missed:.1e}"
        if reason:
            space = self.space
            largest, coefficients = space.largest_degree, self.coefficients
            advice = degree_above(space.degree, space.degrees, coefficients, tolerance, largest)
            reason = f"The density is not resolved: {reason}. Use {advice}."
            warnings.warn(reason, UnresolvedWarning, stacklevel=3)
        return self


DENSITIES = Many(Instance(Density))


class _Term:
    """Incomplete mixture, a sum of weighted densities; a Density once the weights sum to 1."""

    def __init__(self, weights: list[float], densities: list[Density]) -> None:
        self.weights, self.densities = weights, densities

    def __repr__(self) -> str:
        return f"unfinished mixture of total weight {sum(self.weights):g}: add up to weight 1"

    def __add__(self, other: "Density | _Term") -> "Density | _Term":
        other = _Term([1.0], [other]) if isinstance(other, Density) else other
        if not isinstance(other, _Term):
            return NotImplemented
        weights, densities = self.weights + other.weights, self.densities + other.densities
        if sum(weights) < 1 - UNIT_MASS:
            return _Term(weights, densities)
        return Density.mixture(weights, densities)


def _on_one_space(densities: Sequence[Density]) -> list[Density]:
    """Densities resampled to the highest degree among them; ValueError if their spaces differ."""
    degree = max(density.space.degree for density in densities)
    spaces = [density.space.with_degree(degree) for density in densities]
    if any(space != spaces[0] for space in spaces):
        space_names = sorted({repr(density.space) for density in densities})
        raise ValueError(f"These densities live on different spaces: {', '.join(space_names)}.")
    return [density.resample(degree) for density in densities]


def checked_degree(k: Any) -> int:
    """Degree of a moment as an int; raises TypeError if it is not a whole number."""
    require("k", k, "a whole number", is_whole(k), TypeError)
    return whole_number("k", k, least=-(2**63))
