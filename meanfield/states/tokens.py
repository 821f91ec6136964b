"""Tokens: weighted points, the empirical measure sum_i masses_i delta_{x_i}."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..core.annotations import Parameters, Values
from ..core.arrays import read_numbers
from ..core.calls import with_hints
from ..core.checks import (
    boolean,
    check_memory,
    finite_array,
    generator,
    positive,
    real_array,
    require,
    shape_of,
    whole_number,
)
from ..core.errors import StorageError
from ..core.forms import TEXT
from ..lowlevel.legendre import racah
from .clusters import LINKED_ANGLE
from .contract import State, StatePart
from .points import UNIT, Orthonormal, Points, Seed, function_values, unit_vectors, vectors_of

if TYPE_CHECKING:
    from .gram import Gram
    from .torus_tokens import TorusTokens


D = TypeVar("D", covariant=True)


class Estimator(Protocol[D]):
    """A space on which densities are estimated from tokens."""

    def estimate(self, tokens: "Tokens", bandwidth: float | None = None) -> D:
        """The density of kind D estimated from a single set of tokens."""


GAPS = f"gaps up to {np.degrees(LINKED_ANGLE):.2f} degrees, in R^d up to {LINKED_ANGLE:.4f}"


class WeightedTokens(State):
    """A state of n tokens with masses, or of many independent sets of them."""

    masses: Annotated[np.ndarray, StatePart("masses of the tokens", ("token",), fixed=True)]
    """Masses >= 0 of sum 1, (*replicas, n)."""
    replicated = True

    def __len__(self) -> int:
        return self.masses.shape[-1]

    @property
    def tokens(self) -> int:
        return len(self)

    @property
    def size_in_words(self) -> str:
        return f"{len(self)} tokens"


class TokenSet(WeightedTokens):
    """Weighted tokens with directions and their inner products."""

    words: ClassVar = {"cluster_count": f"clusters of tokens linked by {GAPS}"}

    @property
    def directed_masses(self) -> np.ndarray:
        """The masses of tokens that have a direction, 0 for the others."""
        return self.masses

    @abstractmethod
    def inner_products(self, rows: slice) -> np.ndarray:
        """<x_i, x_j> of directions, i in some rows and all j, (*replicas, rows, n)."""

    @property
    @abstractmethod
    def sum_of_inner_products(self) -> np.ndarray:
        """sum_(i != j) m_i m_j <x_i, x_j> of directions, (*replicas,)."""

    @abstractmethod
    def cluster_labels(self, angle: float) -> np.ndarray:
        """The cluster of every token of a single set, see `dynamics.observables.cluster_labels`."""


OF_ANGLES = "Of angles on the circle mf.Tokens.on_circle(angles) makes tokens."
ADVICE = (
    "Tokens.from_hidden(h) divides hidden states by their lengths, and keeps these as radii, which "
    "Pre-LN and its relatives need. Without them: x / np.linalg.norm(x, axis=-1, keepdims=True)."
)


class Tokens(TokenSet):
    """n weighted tokens: unit vectors, or points of R^d; or many independent sets of them.

    Parameters
    ----------
    x : array, shape (*replicas, n, d)
        Unit vectors, d >= 2; any vectors, d >= 1, if not `on_sphere`. Unit vectors of float32 or
        float16 have length 1 to the rounding of these, and are divided by their lengths once more
        in double precision. `from_hidden` takes hidden states of any length.
    masses : array, shape (*replicas, n) or (n,), optional
        Masses >= 0 of sum 1; by default 1/n each.
    radii : array, shape (*replicas, n) or (n,), optional
        Lengths > 0 of the hidden states radii * x, for models whose normalisation moves them
        (Pre-LN and its relatives); 1 where they are needed and not given.
    on_sphere : bool
        Whether tokens live on the sphere, as after layer normalisation.

    Attributes
    ----------
    x, masses, radii : ndarray
        The parameters, in double precision and of the shapes (*replicas, n, d) and (*replicas, n);
        radii may be None.
    on_sphere : bool

    Raises
    ------
    TypeError, ValueError
        For another shape, values that are not finite, vectors that are not of unit length
        (to 1e-9, or 16 roundings of float32), masses that are negative or do not sum to 1 (to
        1e-9), radii <= 0.
    """

    x: Annotated[np.ndarray, StatePart("position of a token", ("token", "component"))]
    """Positions of the tokens, (*replicas, n, d): unit vectors where `on_sphere`."""
    radii: Annotated[np.ndarray | None, StatePart("lengths of the hidden states", ("token",))]
    """Lengths of the hidden states radii * x, (*replicas, n), or None."""
    on_sphere: bool
    """Whether the tokens live on the sphere, rather than in R^d."""
    takes_noise = True

    def __init__(
        self,
        x: np.ndarray | Points,
        masses: np.ndarray | None = None,
        radii: np.ndarray | None = None,
        *,
        on_sphere: bool = True,
    ):
        """Check the arguments; x is normalised if `on_sphere`."""
        on_sphere = boolean("on_sphere", on_sphere)
        x = x.draw() if isinstance(x, Points) else x
        points, x = x, real_array("x", x) if on_sphere else finite_array("x", x)
        smallest_dimension = 2 if on_sphere else 1
        expected = f"(n, d) with d >= {smallest_dimension}, or (*replicas, n, d)"
        fits = x.ndim >= 2 and min(x.shape) >= 1 and x.shape[-1] >= smallest_dimension
        advice = OF_ANGLES if x.ndim == 1 and on_sphere else ""
        require("x.shape", x.shape, expected, fits, advice=advice)
        if on_sphere:
            x = unit_vectors("Tokens (x, unless on_sphere=False)", points, ADVICE)
        if radii is not None and not on_sphere:
            raise ValueError("Only tokens on the sphere have radii; in R^d x has its lengths.")
        if radii is not None:
            radii = _of_each_token("radii", radii, x.shape[:-1])
        masses = checked_masses(masses, x.shape[:-1])
        self._set(x=x, masses=masses, on_sphere=on_sphere, radii=radii)

    # What it is ----------------------------------------------------------------------------

    @property
    def dimension(self) -> int:
        """The ambient dimension d."""
        return self.x.shape[-1]

    def __repr__(self) -> str:
        space_text = "" if self.on_sphere else ", in R^d"
        replicas = f", replicas={self.shape}" if self.shape else ""
        return f"Tokens(n={len(self)}, d={self.dimension}{replicas}{space_text})"

    def header(self) -> Parameters:
        return {"on_sphere": self.on_sphere}

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> Values:
        """sum_i masses_i f(x_i); f takes the points (*replicas, n, d), returns (*replicas, n, ...).

        A float, or an array of shape (*replicas, ...).
        """
        values = function_values(f, self.x)
        if not self.shape:
            return np.tensordot(self.masses, values, axes=1)
        weights = self.masses.reshape(self.masses.shape + (1,) * (values.ndim - self.masses.ndim))
        return (weights * values).sum(axis=len(self.shape))

    def moment(self, k: int) -> np.ndarray:
        """The moment of degree k, with the conventions of `Density.moment`.

        int e^{ik theta} dmu on the circle, (*replicas,); on S^2 int conj(C_km) dmu for
        m = 0, ..., k with Racah's harmonics, (*replicas, k + 1).

        Raises
        ------
        ValueError, TypeError
            In other dimensions, which have no such basis, and in R^d; for a k < 0 on S^2.
        """
        expected = "on the circle or on S^2, where moments are known"
        advice = "Take expect(lambda x: ...) of the function that you need."
        has_moments = self.on_sphere and self.dimension <= 3
        require("Tokens with moments", self, expected, has_moments, advice=advice)
        k = whole_number("k", k, least=-(2**63) if self.dimension == 2 else 0)
        if self.dimension == 2:
            angles = np.arctan2(self.x[..., 1], self.x[..., 0])
            return (self.masses * np.exp(1j * k * angles)).sum(axis=-1)
        return np.asarray(self.expect(lambda x: np.conj(racah(k, x))))

    @property
    def directed_masses(self) -> np.ndarray:
        has_direction = self.on_sphere or np.linalg.norm(self.x, axis=-1) > 0
        return np.where(has_direction, self.masses, 0.0)

    @property
    def _directions(self) -> np.ndarray:
        """Unit vectors; 0 where a token of R^d is 0."""
        if self.on_sphere:
            return self.x
        lengths = np.linalg.norm(self.x, axis=-1, keepdims=True)
        return self.x / np.where(lengths > 0, lengths, 1.0)

    def inner_products(self, rows: slice) -> np.ndarray:
        directions = self._directions
        return directions[..., rows, :] @ directions.swapaxes(-1, -2)

    @property
    def sum_of_inner_products(self) -> np.ndarray:
        return sum_over_pairs(self._directions, self.directed_masses)

    def cluster_labels(self, angle: float) -> np.ndarray:
        """Labels (*replicas, n) of clusters linked by angles, or distances in R^d."""
        angle = positive("angle", angle)
        from .clusters import labels_of_points

        return labels_of_points(self.x, angle, self.on_sphere)

    # Making them ---------------------------------------------------------------------------

    @classmethod
    @with_hints
    def uniform(cls, n: int, d: int, *, rng: Seed, shape: int | Sequence[int] = ()) -> "Tokens":
        """n independent uniform tokens of S^(d-1), in each of `shape` replicas.

        Parameters
        ----------
        n, d : int
        rng : numpy.random.Generator or seed
        shape : int or tuple of int

        Raises
        ------
        ValueError, TypeError
            For numbers that are not whole and >= 1, d = 1, or an rng that is none.
        """
        n = whole_number("n", n)
        d = whole_number("d", d)
        replicas = shape_of("shape", shape)
        check_memory(f"n = {n} tokens of R^{d}", (*replicas, 5 * n, d), "n, d or shape")
        x = generator(rng).standard_normal((*replicas, n, d))
        return cls(x / np.linalg.norm(x, axis=-1, keepdims=True))

    @classmethod
    @with_hints
    def from_hidden(cls, h: ArrayLike, masses: np.ndarray | None = None) -> "Tokens":
        """Tokens in the directions of hidden states, whose lengths are the radii.

            x = h / |h|,  radii = |h|

        Models with Pre-LN, Mix-LN or Peri-LN divide by the radii; others need Tokens(x), without.
        RMSNorm gives vectors of length sqrt(d) in place of x: the factor belongs into matrices.

        Parameters
        ----------
        h : array, (*replicas, n, d)
            Of any precision; lengths and directions are computed in double precision.
        masses : array, optional
            As of `Tokens`.

        Raises
        ------
        ValueError, TypeError
            As `Tokens`; and for hidden states that are 0, which have no direction.
        """
        h = finite_array("h", h)
        require("h.shape", h.shape, "(n, d) or (*replicas, n, d), d >= 2", h.ndim >= 2)
        scale = np.abs(h).max(axis=-1, keepdims=True)  # its squares may overflow or underflow
        if not scale.all():
            index = ", ".join(map(str, np.argwhere(scale[..., 0] == 0)[0]))
            raise ValueError(f"h has no direction at index {index}, where it is 0: leave it out.")
        lengths = np.linalg.norm(h / scale, axis=-1, keepdims=True)
        return cls(h / scale / lengths, masses, (scale * lengths)[..., 0])

    @classmethod
    @with_hints
    def on_circle(cls, angles: ArrayLike, masses: np.ndarray | None = None) -> "Tokens":
        """Tokens on the circle at these angles in radians, (*replicas, n)."""
        array = finite_array("angles", angles)
        require("angles", angles, "an array (*replicas, n) of at least one", array.size > 0)
        return cls(vectors_of(array[..., None]), masses)

    @classmethod
    @with_hints
    def on_torus(cls, angles: ArrayLike, masses: np.ndarray | None = None) -> "TorusTokens":
        """Tokens on the torus at these angles in radians, (*replicas, n, m)."""
        from .torus_tokens import TorusTokens

        return TorusTokens(np.asarray(angles), masses)

    @classmethod
    @with_hints
    def orthonormal(cls, n: int, d: int | None = None) -> "Tokens":
        """The first n basis vectors of R^d; d = n by default. ValueError unless 2 <= n <= d."""
        return cls(Orthonormal(n, d))

    @classmethod
    @with_hints
    def from_file(
        cls,
        path: str | Path,
        *,
        key: str | None = None,
        on_sphere: bool = True,
        normalise: bool = False,
    ) -> "Tokens":
        """Tokens of equal masses from an array (*replicas, n, d) in a .npy, .npz or .csv file.

        On the sphere an array (n,) or (n, 1) holds angles in radians.

        Parameters
        ----------
        path : path
        key : str, optional
            Name of the array in a .npz file that holds several.
        on_sphere : bool
            Whether the rows are unit vectors.
        normalise : bool
            Whether rows are hidden states of any length, whose directions are the tokens and whose
            lengths are the radii, see `from_hidden`.

        Raises
        ------
        StorageError
            If the file cannot be read, or what it holds are no tokens.
        ValueError
            For `normalise` of tokens that are not `on_sphere`.
        TypeError
            If `path` is not a path, or `on_sphere` or `normalise` not a bool.
        """
        key = None if key is None else TEXT.check("key", key)
        on_sphere, normalise = boolean("on_sphere", on_sphere), boolean("normalise", normalise)
        require("normalise", normalise, "False for tokens of R^d", on_sphere or not normalise)
        array = read_numbers(path, key)
        try:
            if normalise:
                return cls.from_hidden(array)
            return cls(vectors_of(array) if on_sphere else array, on_sphere=on_sphere)
        except (ValueError, TypeError) as error:
            raise StorageError(f"{path}: {error}") from error

    # Other representations -----------------------------------------------------------------

    def to_density(self, space: Estimator[D], bandwidth: float | None = None) -> D:
        """The kernel estimate `space.estimate` of the density of these tokens."""
        require("space", space, "a space itself", not isinstance(space, type), TypeError)
        estimates = hasattr(space, "estimate")
        require("space", space, "a Circle or a Sphere, where densities are estimated", estimates)
        expected, is_single_set = "a single set on the sphere", not self.shape and self.on_sphere
        advice = "Estimate the replicas one by one: tokens[i].to_density(space)."
        require("Tokens with a density", self, expected, is_single_set, advice=advice)
        return space.estimate(self, bandwidth=bandwidth)

    def gram(self) -> "Gram":
        """Their inner products."""
        from .gram import Gram

        check_memory("the inner products", (*self.shape, len(self), len(self)), "the tokens")
        require("Tokens of a Gram", self, "unit vectors; these are in R^d", self.on_sphere)
        return Gram(self.x @ np.swapaxes(self.x, -1, -2), self.masses)


def sum_over_pairs(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """sum_(i != j) masses_i masses_j <points_i, points_j>.

    The heaviest token is summed separately, as the others may contribute little beside its square.
    """
    heaviest = masses.argmax(axis=-1)[..., None]
    other_masses = masses.copy()
    np.put_along_axis(other_masses, heaviest, 0.0, axis=-1)
    light = np.einsum("...i,...id->...d", other_masses, points)
    heavy = np.take_along_axis(points, heaviest[..., None], axis=-2)[..., 0, :]
    squares = (points**2).sum(axis=-1)
    mass = np.take_along_axis(masses, heaviest, axis=-1)[..., 0]
    squares_of_others = (other_masses**2 * squares).sum(axis=-1)
    return 2 * mass * (heavy * light).sum(axis=-1) + (light**2).sum(axis=-1) - squares_of_others


def checked_masses(masses: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
    """Masses of this shape, (*replicas, n); equal ones for None.

    Raises
    ------
    ValueError
        If they do not broadcast to the shape, are negative or do not sum to 1.
    """
    if masses is None:
        return np.full(shape, 1 / shape[-1])
    return _of_each_token("masses", masses, shape)


def _of_each_token(name: str, numbers: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Masses or radii (*replicas, n), (n,) or () as a new array of this shape; else ValueError."""
    values = real_array(name, numbers)
    fits = values.shape in (shape, shape[-1:], ())
    array = np.broadcast_to(values, shape).copy() if fits else values
    if name == "masses":
        rule = f"{shape[-1]} masses >= 0 of sum 1"
        valid = (array >= 0).all() and (np.abs(array.sum(axis=-1) - 1) <= UNIT).all()
    else:
        rule, valid = f"finite radii > 0 of shape {shape}", ((array > 0) & (array < np.inf)).all()
    if not fits or not valid:
        raise ValueError(
            f"Tokens expects {rule}; got {name} of shape {values.shape}, minimum "
            f"{values.min(initial=np.inf)}, sums {values.sum(axis=-1) if values.ndim else values}."
        )
    return array
