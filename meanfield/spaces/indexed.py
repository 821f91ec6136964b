"""Densities indexed by a position, a class or a frequency: a law on the product space."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..core.annotations import FromAbove, RandomSource
from ..core.cached import cached_property
from ..core.checks import (
    boolean,
    check_memory,
    generator,
    require,
    whole_number,
)
from ..core.errors import MeanfieldError
from ..core.read_only import read_only
from ..states.contract import Arrays
from ..states.tokens import Tokens
from .contract import Space
from .density import Density
from .index import Index
from .validity import NEGATIVE_SHARE, expanded

PROPOSAL_ROUNDS = 1000  # largest number of rounds of proposals for a sample
RESOLVED_INDEX_TAIL = 1e-3  # a larger tail in the index is visible in figures, whatever rtol is

# Attributes that are those of the slice space, and those that are repeated for each node.
OF_SLICES = "dimension degree spherical radius dtype axisymmetric largest_degree halfway".split()
OF_MODES = "degrees", "levels", "laplacian"


def _slicewise(name: str) -> Any:
    """Method that applies the method `name` of the slice space to the slices of its first argument.

    A slice is the density at one node.
    """

    def method(self: "IndexedSpace", flat: np.ndarray, *arguments: Any) -> np.ndarray:
        return self.joined(getattr(self.slice_space, name)(self.split(flat), *arguments))

    return method


class IndexedSpace(Space):
    """Product of an index and a sphere: functions f(s, x) by their harmonics in x at each node.

    The coefficients of all P nodes are one after the other in one axis, (..., P K), where K is the
    number of modes of a slice, the function at one node.

    Parameters
    ----------
    slice_space : Space
        Space of the slices.
    index : Index
        Index s with its P nodes.
    """

    has_table = False  # files hold the space and the index
    mode_dims = "index", "mode"
    slice_space: Any = None
    index: Any = None

    def __init__(self, slice_space: Space, index: Index) -> None:
        space = slice_space
        product = isinstance(space, IndexedSpace)
        a_space = isinstance(space, Space) and not product
        require("slice_space", space, "a space, such as Circle(64)", a_space, TypeError)
        an_index = isinstance(index, Index)
        require("index", index, "an Index, such as Positions()", an_index, TypeError)
        count = len(index)
        check_memory("densities at all nodes", (count, 16, space.degrees.size), "degree or nodes")
        self._set(
            **{name: getattr(space, name) for name in OF_SLICES},
            **{name: np.tile(getattr(space, name), count) for name in OF_MODES},
            slice_space=space,
            index=index,
            parseval=np.outer(index.weights, space.parseval).ravel(),
        )

    def split(self, flat: np.ndarray) -> np.ndarray:
        """Array (..., P, K), with an axis for the nodes, from (..., P K)."""
        count = len(self.index)
        return flat.reshape(*flat.shape[:-1], count, flat.shape[-1] // count)

    @staticmethod
    def joined(slices: np.ndarray) -> np.ndarray:
        """Array (..., P K) from one with an axis for the nodes, (..., P, K)."""
        return slices.reshape(*slices.shape[:-2], -1)

    def slice_at(self, coefficients: np.ndarray, s: Any) -> np.ndarray:
        """Coefficients (*ensemble, *s.shape, K) at index s, interpolated from (*ensemble, P K).

        The interpolation is `Index.interpolation`: the polynomial of the piece that contains s, at
        a break of the piece on its left.
        """
        node_slices, weights = self.split(coefficients), self.index.interpolation(s)
        slices = np.tensordot(node_slices, weights, axes=(-2, -1))  # (*ensemble, K, *s.shape)
        return np.moveaxis(slices, node_slices.ndim - 2, -1)

    def mean_slice(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients (*ensemble, K) of int mu_s dm(s), from (*ensemble, P K); m is the index."""
        return np.einsum("p,...pk->...k", self.index.weights, self.split(coefficients))

    # The contract --------------------------------------------------------------------------

    @property
    def real_modes(self) -> np.ndarray:
        return np.tile(self.slice_space.real_modes, len(self.index))

    @property
    def points(self) -> np.ndarray:
        """Points of the sphere, repeated for each node, (P N, d)."""
        return np.tile(self.slice_space.points, (len(self.index), 1))

    @cached_property
    def weights(self) -> np.ndarray:
        return read_only(np.outer(self.index.weights, self.slice_space.weights).ravel())

    @property
    def axes(self) -> dict[str, np.ndarray]:
        return {"index": self.index.nodes, **self.slice_space.axes}

    @property
    def mode_axes(self) -> dict[str, np.ndarray]:
        return self.slice_space.mode_axes

    @property
    def judged(self) -> np.ndarray:
        mask = np.zeros(self.slice_space.weights.size, dtype=bool)
        mask[self.slice_space.judged] = True
        return np.tile(mask, len(self.index))

    def judged_values(self, coefficients: np.ndarray, values: np.ndarray) -> np.ndarray:
        slices = self.split(coefficients), self.split(values)
        return self.joined(self.slice_space.judged_values(*slices))

    def negative_mass(self, values: np.ndarray) -> np.ndarray:
        """Largest negative mass of a slice, (...,)."""
        return self.slice_space.negative_mass(self.split(values)).max(axis=-1)

    def dirac(self, degree: int) -> float:
        return self.slice_space.dirac(degree)

    def with_degree(self, degree: int) -> "IndexedSpace":
        if degree == self.degree:
            return self
        return IndexedSpace(self.slice_space.with_degree(degree), self.index)

    def with_modes(self, modes: int) -> "IndexedSpace":
        return IndexedSpace(self.slice_space.with_modes(modes // len(self.index)), self.index)

    def attraction(self, drift: FromAbove) -> np.ndarray:
        return self.slice_space.attraction(drift)

    def normaliser(self, drift: FromAbove) -> np.ndarray | None:
        return self.slice_space.normaliser(drift)

    def interaction(self, drift: FromAbove) -> np.ndarray:
        return self.slice_space.interaction(drift)

    resample = _slicewise("resample")
    to_values = _slicewise("to_values")
    to_coefficients = _slicewise("to_coefficients")
    rotate = _slicewise("rotate")

    def uniform(self) -> "Indexed":
        """The uniform density at every node."""
        return Indexed(self, self.degrees == 0)

    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """Moment of degree k of the marginal law of the points."""
        return self.slice_space.moment(self.split(coefficients), k) @ self.index.weights

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and other.slice_space == self.slice_space
            and (other.index is self.index or other.index == self.index)
        )

    def __hash__(self) -> int:
        return hash((type(self), self.slice_space, self.index))

    def __repr__(self) -> str:
        return f"{self.slice_space!r} × {self.index!r}"

    def _refuse(self, *_given: Any, **_named: Any) -> Any:
        raise MeanfieldError(
            f"{self!r} is a product: ask for a slice, indexed.at_position(s), or the law of all "
            "points, indexed.marginal(), which are densities on the sphere."
        )

    chart = synthesis = analysis = synthesis_at = perturbation = density = indexed = _refuse
    sample = gradient = minus_divergence = transport = transforms = point_masses = _refuse
    frame = property(_refuse)


class Indexed(Density):
    """Densities mu_s on the circle or a sphere, one for each value of an index; or an ensemble.

    A law on the product of index and sphere, whose marginal in the index is constant in time. The
    index is the position of a token in a sequence, on which tokens before it act (`Transformer`
    with `causal`); a class of tokens, with couplings between classes (`coupling`); or the natural
    frequency of an oscillator (`frequency`).

    Parameters
    ----------
    space : IndexedSpace
    coefficients : array, shape (*ensemble, P * modes)
        Harmonic coefficients of the density at each node; each has mass 1.

    Notes
    -----
    Build one through a space: ``circle.indexed(lambda s, theta: 1 + 0.3 * np.cos(theta - s))``.
    """

    families: ClassVar[dict[str, Any]] = {"index": Index}
    words: ClassVar[dict[str, str]] = {
        **Density.words,
        "index": "position in the sequence, class, or natural frequency",
        "weight": "share of the index",
    }

    def __init__(self, space: Any, coefficients: Any) -> None:
        product = isinstance(space, IndexedSpace)
        expected = "a product of a space and an index: use circle.indexed(f, index)"
        require("space", space, expected, product, TypeError)
        super().__init__(space, coefficients)

    @classmethod
    def computed(cls, coefficients: Any, space: Space, index: Index | None = None) -> "Indexed":
        product = space if index is None else IndexedSpace(space, index)
        return super().computed(coefficients, product)

    @classmethod
    def of_function(cls, space: Space, f: Callable[..., Any], index: Index) -> "Indexed":
        """Densities proportional to f(s, ...) at each node s, normalised to mass 1."""
        product = IndexedSpace(space, index)
        signature = f"f({', '.join([index.label, *space.arguments])})"
        coefficients, missed = expanded(space, f, signature, index.nodes.reshape(-1, 1))
        return cls(product, product.joined(coefficients)).warn_if_unresolved(missed=missed)

    @classmethod
    def of_slices(cls, index: Index, densities: Any) -> "Indexed":
        """Indexed densities from P single densities, one for each node of an index."""
        stacked = Density.stack(densities)
        expected = f"{len(index)} single densities, one for each node"
        require("densities", stacked.shape, expected, stacked.shape == (len(index),))
        space = IndexedSpace(stacked.space, index)
        return cls(space, space.joined(stacked.coefficients))

    # What it holds -------------------------------------------------------------------------

    @property
    def slice_space(self) -> Space:
        """The space of the density at each node."""
        return self.space.slice_space

    @property
    def index(self) -> Index:
        return self.space.index

    @property
    def positions(self) -> np.ndarray:
        """The nodes of the index, (P,)."""
        return self.index.nodes

    @property
    def weights(self) -> np.ndarray:
        """The weights of the nodes, (P,), of sum 1."""
        return self.index.weights

    @property
    def each(self) -> np.ndarray:
        """Coefficients at each node, (*ensemble, P, modes)."""
        return self.space.split(self.coefficients)

    @property
    def slices(self) -> Density:
        """The densities at the nodes, an ensemble (*ensemble, P)."""
        return Density.computed(self.each, self.slice_space)

    @property
    def mass(self) -> np.ndarray:
        """The masses of all slices, (*ensemble, P)."""
        return self.each[..., 0].real

    @property
    def index_tail(self) -> np.ndarray:
        """Largest of the last coefficients in the index, (*ensemble,); 0 without interpolation.

        It estimates the error that comes from the finite number of nodes.
        """
        slices = self.each
        return self.index.tail(np.concatenate([slices.real, slices.imag], axis=-1))

    @property
    def resolved(self) -> bool:
        """True if `index_tail` is at most 1e-3 for all members.

        The bound does not depend on rtol, which controls steps and degrees, but not the nodes.
        """
        return bool((self.index_tail <= RESOLVED_INDEX_TAIL).all())

    def at_position(self, s: Any) -> Density:
        """Density at index s, or an ensemble (*ensemble, *s.shape) of densities.

        It is interpolated by the polynomial of the piece that contains s, at a break by that of
        the piece on its left. Raises TypeError or ValueError for an s at which there is no density.
        """
        return Density.computed(self.space.slice_at(self.coefficients, s), self.slice_space)

    def marginal(self) -> Density:
        """Marginal law of the points: int mu_s dm(s), where m is the law of the index."""
        return Density.computed(self.space.mean_slice(self.coefficients), self.slice_space)

    def moment(self, k: int) -> np.ndarray:
        """The moment of degree k of each slice, (*ensemble, P)."""
        return self.slices.moment(k)

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """int int f dmu_s dm(s) of a function of the points only: see `Density.expect`."""
        return self.marginal().expect(f)

    def at(self, points: Any) -> np.ndarray:
        """Values (*ensemble, P, ...) of all slices at unit vectors (..., d)."""
        return self.slices.at(points)

    def as_measure(self) -> Density:
        """The marginal law of the points, which distances compare."""
        return self.marginal()

    def blocks(self, count: int) -> Density:
        """Laws of `count` blocks of equal mass in the index, an ensemble (*ensemble, count).

        The law of a block is the mean of the densities over it: the law of the tokens in a block
        of a sequence.
        """
        count = whole_number("count", count)
        check_memory(f"count = {count} blocks", (count, self.coefficients.size), "count")
        weights = self.index.blocks(count)
        return Density.computed(np.einsum("bp,...pk->...bk", weights, self.each), self.slice_space)

    # Tokens --------------------------------------------------------------------------------

    def sample(self, n: int, *, rng: RandomSource, ordered: bool = True) -> Tokens:
        """Independent tokens (n,), ordered by their positions; each has the law at its position.

        Parameters
        ----------
        n : int
            Number of tokens.
        rng : numpy.random.Generator or seed
            Source of random numbers.
        ordered : bool
            If True, positions are the quantiles (i - 1/2)/n, i = 1, ..., n, of the index, so that
            the sample is stratified; else n random positions in increasing order.

        Raises
        ------
        ValueError
            If n < 1, for an ensemble, or if a density is negative, at a node or between nodes.
        """
        if self.shape:
            raise ValueError("Sample the members of an ensemble one by one: state[i].sample(n).")
        n, ordered, rng = whole_number("n", n), boolean("ordered", ordered), generator(rng)
        self.checked_positive(NEGATIVE_SHARE)
        check_memory(f"n = {n} tokens", (8, n, self.dimension), "n")
        return Tokens(self.drawn_at(self.index.drawn(n, None if ordered else rng), rng))

    def drawn_at(self, s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Random points (n, d), one from the density at each index s (n,), by rejection sampling.

        With mu_s = sum_j l_j mu_j, where some l_j < 0, a point is drawn from sum |l_j| mu_j and
        accepted with the probability mu_s / sum |l_j| mu_j at the point.
        """
        weights = self.index.interpolation(s)
        result, undrawn = np.empty((s.size, self.dimension)), np.arange(s.size)
        for _ in range(PROPOSAL_ROUNDS):
            if not undrawn.size:
                return result
            size = np.abs(weights[undrawn])
            level = rng.random(undrawn.size) * size.sum(axis=1)
            node = (size.cumsum(axis=1) < level[:, None]).sum(axis=1)
            node = np.minimum(node, len(self.index) - 1)
            points = np.empty((undrawn.size, self.dimension))
            for j in np.unique(node):
                from_node = node == j
                points[from_node] = self.slice_space.sample(self.each[j], int(from_node.sum()), rng)
            values = self._values_at(points, weights[undrawn])
            lowest = float((values[:, 0] / values[:, 1]).min())
            if lowest < -NEGATIVE_SHARE:
                raise ValueError(
                    f"A density between nodes is negative, {lowest:.2g} of those at the nodes: it "
                    "varies too fast in the index. Use more nodes."
                )
            accepted = rng.random(undrawn.size) * values[:, 1] <= values[:, 0]
            result[undrawn[accepted]] = points[accepted]
            undrawn = undrawn[~accepted]
        raise MeanfieldError(
            f"{undrawn.size} tokens were not drawn in {PROPOSAL_ROUNDS} rounds: the densities "
            "differ too much between neighbouring nodes. Use more nodes."
        )

    def _values_at(self, points: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Values (n, 2) of sum_j l_j mu_j and sum_j |l_j| mu_j at points (n, d).

        `weights` (n, P) are the l_j of each point.
        """
        sums = np.zeros((len(points), 2))
        has_weight = weights != 0
        for j in np.flatnonzero(has_weight.any(axis=0)):
            rows = has_weight[:, j]
            values = np.maximum(self.slice_space.at(self.each[j], points[rows]), 0.0)
            factors = weights[rows, j]
            sums[rows] += np.stack([factors * values, np.abs(factors) * values], axis=1)
        return sums

    # Files ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        ensemble = f", ensemble {self.shape}" if self.shape else ""
        tails = f"{self.spectral_tail.max():.1e}, in the index {self.index_tail.max():.1e}"
        return f"Indexed({self.space!r}{ensemble}, spectral tail {tails})"

    def facts(self) -> dict[str, str]:
        rows = super().facts()
        return {**rows, self.index.label: f"{len(self.index)} nodes, {self.index!r}"}

    @property
    def size_in_words(self) -> str:
        return f"{len(self.index)} × degree {self.space.degree}"

    def header(self) -> dict[str, Any]:
        return {"space": self.slice_space, "index": self.index}

    def arrays(self) -> Arrays:
        return {**super().arrays(), "weight": (("index",), self.weights)}

    @classmethod
    def stacked(cls, states: Any) -> Arrays:
        arrays = super().stacked(states)
        return {**arrays, "weight": states[0].arrays()["weight"]}

    @classmethod
    def unstacked(cls, arrays: Arrays, header: dict[str, Any]) -> list[Any]:
        flat = dict(arrays)
        for name in ("coefficient_re", "coefficient_im"):
            dims, values = arrays[name]
            flat[name] = (*dims[:-2], "mode"), IndexedSpace.joined(values)
        product = IndexedSpace(header["space"], header["index"])
        return super().unstacked(flat, {"space": product})
