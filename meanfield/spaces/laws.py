"""Laws of initial states, as configuration files name them.

A law of densities calls a method of the space: `VonMises(concentration, mean)` calls
``circle.von_mises(mean, concentration)``.
"""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from ..core.annotations import Narrowed
from ..core.arrays import read_numbers
from ..core.checks import check_memory, require
from ..core.forms import NATURAL, REFUSED, DataFile, Index, Many, Natural, NonNegative, Positive
from ..core.kinds import Kind
from ..states import Start, State, Tokens
from .characteristics import Characteristics
from .contract import Space
from .density import Density
from .index import Index as SequenceIndex
from .index import Positions
from .indexed import Indexed, IndexedSpace
from .samples import principal_circle, principal_sphere
from .validity import NEGATIVE_SHARE

Degrees = Annotated[Any, Many(NATURAL)]


class Law(Start):
    """A law of points on a space: of a density, or of tokens."""


class DensityLaw(Law):
    """A law that makes a density on a space.

    Attributes
    ----------
    method : str
        Name of a method that a space must have for this law.
    """

    method: ClassVar[str]

    @abstractmethod
    def density(self, space: Space) -> Density:
        """Density with this law on a space."""

    def begin(self, space: Space | None) -> Density:
        """Density of the law; ValueError without a space, or if that lacks `method`."""
        name = type(self).__name__
        if space is None:
            raise ValueError(f"{name} needs [space], the space on which the density is.")
        if not hasattr(space, self.method):
            laws = [(n, k) for n, k in Start.kinds.items() if issubclass(k, DensityLaw)]
            names = ", ".join(sorted(n for n, k in laws if hasattr(space, k.method)))
            raise ValueError(f"{name} is not for {space!r}; expected one of {names}.")
        try:
            density = self.density(space)
        except TypeError as error:  # for instance an axis, on an axisymmetric space
            raise ValueError(f"{name} on {space!r}: {error}") from error
        return density.checked_positive(NEGATIVE_SHARE)


class _OfMethod(DensityLaw):
    """A law whose parameters are the arguments of its method; None is not passed on."""

    def density(self, space: Space) -> Density:
        arguments = {name: value for name, value in self.described.items() if value is not None}
        return getattr(space, self.method)(**arguments)


class Uniform(_OfMethod):
    """The uniform density 1."""

    method = "uniform"


class Fourier(DensityLaw):
    """The density 1 + sum_k a_k cos(k theta) + b_k sin(k theta), k = 1, 2, ..., on the circle.

    On the torus its mean over the angles.

    Parameters
    ----------
    cos : array
        a_1, a_2, ...
    sin : array
        b_1, b_2, ...
    """

    method = "fourier"

    cos: np.ndarray = ()  # type: ignore[assignment]
    sin: np.ndarray = ()  # type: ignore[assignment]

    def validate(self) -> None:
        _check_series("cos", self.cos)
        _check_series("sin", self.sin)

    def density(self, space: Narrowed) -> Density:
        coefficients = np.zeros(max(len(self.cos), len(self.sin)) + 1, dtype=complex)
        coefficients[0] = 1
        coefficients[1 : len(self.cos) + 1] += self.cos / 2
        coefficients[1 : len(self.sin) + 1] -= 0.5j * self.sin
        return space.fourier(coefficients)


class VonMises(_OfMethod):
    """The von Mises density, proportional to exp(concentration cos(theta - mean)), on the circle.

    Parameters
    ----------
    concentration : float
        >= 0: 0 is uniform, large is narrow.
    mean : float
        Angle of the peak, in radians.
    """

    method = "von_mises"

    concentration: NonNegative
    mean: float = 0.0


class VonMisesFisher(_OfMethod):
    """The von Mises-Fisher density, proportional to exp(concentration <x, mean>).

    Parameters
    ----------
    concentration : float
        >= 0: 0 is uniform, large is narrow.
    mean : array, (d,), optional
        Unit vector; by default the last axis, the only one of axisymmetric densities.
    """

    method = "von_mises_fisher"

    concentration: NonNegative
    mean: np.ndarray | None = None


class Legendre(DensityLaw):
    """The density 1 + sum_l a_l P_l(<x, axis>) with Legendre polynomials, P_l(1) = 1.

    Parameters
    ----------
    coefficients : array
        a_1, a_2, ...
    axis : array, (d,), optional
        Unit vector; by default the last axis, the only one of axisymmetric densities.
    """

    method = "zonal"

    coefficients: np.ndarray
    axis: np.ndarray | None = None

    def validate(self) -> None:
        _check_series("coefficients", self.coefficients)

    def density(self, space: Narrowed) -> Density:
        series = np.append(1, self.coefficients)
        return space.zonal(series) if self.axis is None else space.zonal(series, axis=self.axis)


class Perturbed(_OfMethod):
    """The uniform density with a random perturbation.

    Parameters
    ----------
    amplitude : float
        Standard deviation of the coefficients, such as that of cos(k theta).
    rng : int
        Seed of the random numbers.
    degrees : array of int, optional
        The degrees that are perturbed; by default 1 to 8.
    """

    method = "perturbed"

    amplitude: Positive
    rng: Index
    degrees: Degrees | None = None


class Sample(DensityLaw):
    """The spectral kernel estimate of a sample that is read from a file.

    On the circle an array (n,) holds angles in radians and one of shape (n, 2) unit vectors; on S^2
    unit vectors have shape (n, 3). Hidden states (n, d), or one layer of (layers, n, d), of larger
    d are projected on their leading principal directions and normalised.

    Parameters
    ----------
    file : str
        *.npy, *.npz or *.csv; relative names start from the folder of the configuration file.
    key : str, optional
        Name of the array in an .npz file.
    layer : int, optional
        Layer of hidden states (layers, n, d), counted from 0.
    bandwidth : float, optional
        Width of the kernel in radians; by default from the sample.
    """

    method = "estimate"

    file: DataFile
    key: str | None = None
    layer: Index | None = None
    bandwidth: Positive | None = None

    def density(self, space: Narrowed) -> Density:
        return space.estimate(self._points(space.dimension), bandwidth=self.bandwidth)

    def _points(self, dimension: int) -> np.ndarray:
        tokens = _one_layer(read_numbers(Path(self.file), self.key), self.layer)
        if tokens.ndim == 1 or tokens.shape[1] <= dimension:
            return tokens
        return principal_circle(tokens) if dimension == 2 else principal_sphere(tokens)


class Weighted(Kind, family=True):
    """A part of a mixture.

    Parameters
    ----------
    weight : float
        Share of this part, > 0; shares are divided by their sum.
    law : table
        Law of this part.
    """

    default_kind = "Weighted"

    weight: Positive
    law: DensityLaw


class Mixture(DensityLaw):
    """The weighted mean of several densities.

    Parameters
    ----------
    components : array of tables
        Each with a weight and a law.
    """

    method = "uniform"

    components: tuple[Weighted, ...]

    def validate(self) -> None:
        _check_entries("components", self.components)

    def density(self, space: Space) -> Density:
        weights, laws = zip(*((part.weight, part.law) for part in self.components), strict=True)
        shares = [weight / sum(weights) for weight in weights]
        return Density.mixture(shares, _densities("components", laws, space))


class Ensemble(DensityLaw):
    """Several initial densities, solved in one call.

    Parameters
    ----------
    members : array of tables
        Laws, one a member.
    """

    method = "uniform"

    members: tuple[DensityLaw, ...]

    def validate(self) -> None:
        _check_entries("members", self.members)

    def density(self, space: Space) -> Density:
        return Density.stack(_densities("members", self.members, space))


class AlongIndex(Law):
    """Densities that change from law to law along an index, linearly in between.

    Parameters
    ----------
    laws : array of tables
        Laws of the densities at some values of the index; a single law is that of all densities.
    at : array, optional
        Values of the index that belong to `laws`, increasing; by default equally spaced, from 0 to
        1 for positions, else from the least to the largest node. Outside them the first or the
        last law holds.
    index : table, optional
        Index of the densities; by default positions in [0, 1] with breaks at all `at`.
    """

    laws: tuple[DensityLaw, ...]
    at: np.ndarray | None = None
    index: SequenceIndex | None = None

    def validate(self) -> None:
        _check_entries("laws", self.laws)
        if self.at is not None:
            fits = self.at.shape == (len(self.laws),) and (np.diff(self.at) > 0).all()
            require("at", self.at, f"{len(self.laws)} increasing numbers, one for each law", fits)

    def begin(self, space: Space | None) -> Indexed:
        """Densities at the nodes of the index: the laws, interpolated linearly."""
        index = self._index()
        begin, end = (0.0, 1.0) if isinstance(index, Positions) else index.nodes[[0, -1]]
        at = np.linspace(begin, end, len(self.laws)) if self.at is None else self.at
        coefficients_of_laws = Density.stack(_densities("laws", self.laws, space)).coefficients
        hats = [np.interp(index.nodes, at, row) for row in np.eye(len(at))]
        coefficients = np.einsum("lp,lk->pk", hats, coefficients_of_laws)
        product = IndexedSpace(self.laws[0].begin(space).space, index)
        densities = Indexed(product, product.joined(coefficients))
        densities.checked_positive(NEGATIVE_SHARE)
        return densities

    def _index(self) -> SequenceIndex:
        if self.index is not None:
            return self.index
        at = np.linspace(0, 1, len(self.laws)) if self.at is None else self.at
        return Positions(np.array([0.0, *at[(at > 0) & (at < 1)], 1.0]))


class AlongCharacteristics(Law):
    """`Characteristics` of a density: nodes that the flow carries, instead of modes.

    Parameters
    ----------
    law : table
        Law of the density.
    nodes : int, optional
        Number of nodes; by default 4096 on the circle, 16384 on S^2, 1024 for axisymmetric
        densities. If the drift is not zonal, its sums over pairs of nodes are expensive: 512 nodes
        on the circle and 4096 on S^2 suffice for smooth densities.
    limit : array, (d,), optional
        Unit vector at which the density is expected to gather.
    """

    law: DensityLaw
    nodes: Natural | None = None
    limit: np.ndarray | None = None

    def begin(self, space: Space | None) -> Characteristics:
        return Characteristics(self.law.begin(space), nodes=self.nodes, limit=self.limit)


class SampledTokens(Law):
    """Independent tokens of a density.

    Parameters
    ----------
    law : table
        Law of the density.
    n : int
        Number of tokens.
    rng : int
        Seed of the positions.
    replicas : int, optional
        Independent sets of tokens; by default one, without an axis.
    masses : array, (n,), optional
        Numbers of sum 1; 1/n by default.
    radii : array, (n,), optional
        Lengths of the hidden states; 1 by default.
    """

    law: DensityLaw
    n: Natural
    rng: Index
    replicas: Natural | None = None
    masses: np.ndarray | None = None
    radii: np.ndarray | None = None

    def begin(self, space: Space | None) -> State:
        density = self.law.begin(space)
        shape = () if self.replicas is None else (self.replicas,)
        dimension = density.space.dimension
        check_memory(f"n = {self.n} tokens", (*shape, 3 * self.n, dimension), "n or replicas")
        tokens = density.sample(self.n * (self.replicas or 1), rng=self.rng)
        if self.replicas is None and self.masses is None and self.radii is None:
            return tokens
        points = tokens.x.reshape(*shape, self.n, dimension)
        if self.radii is not None:
            with_radii = isinstance(tokens, Tokens)
            require("radii", self.radii, f"None: tokens of {space!r} have none", with_radii)
            return Tokens(points, self.masses, self.radii)
        return density.space.tokens(points, self.masses)


def _check_series(name: str, coefficients: np.ndarray) -> None:
    require(name, coefficients, "an array of numbers [a_1, a_2, ...]", coefficients.ndim == 1)


def _check_entries(name: str, entries: Sequence[Any]) -> None:
    require(name, entries, "an array with at least one entry", len(entries) > 0)


def _densities(name: str, laws: Sequence[DensityLaw], space: Space | None) -> list[Density]:
    """Densities of several laws; errors name the entry of the parameter `name`."""
    densities = []
    for i, law in enumerate(laws):
        try:
            densities.append(law.begin(space))
        except REFUSED as error:
            raise ValueError(f"{name}[{i}]: {error}") from error
    return densities


def _one_layer(array: np.ndarray, layer: int | None) -> np.ndarray:
    """Array (n,) or (n, d) as it is, or one layer of an array (layers, n, d)."""
    expected = "that of angles (n,), unit vectors (n, 2), or hidden states (n, d) or (layers, n, d)"
    fits = array.ndim in (1, 2, 3) and 0 not in array.shape
    require("The shape of the file", array.shape, expected, fits)
    if array.ndim < 3:
        require("layer", layer, f"left out for an array {array.shape}", layer is None)
        return array
    last = len(array) - 1
    fits = layer is not None and layer <= last
    return array[require("layer", layer, f"0 to {last}, a layer of the array", fits)]
