"""Indices of families of densities: positions in a sequence, classes, natural frequencies.

An index is a probability measure on the line with quadrature nodes. Densities are stored at the
nodes, and interpolated between positions by a polynomial on each piece.
"""

import itertools
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.checks import (
    as_given,
    check_memory,
    plain_array,
    real,
    real_array,
    require,
    returned,
    whole_number,
)
from ..core.errors import MeanfieldError
from ..core.forms import Array, Natural, Positive
from ..core.kinds import Kind
from ..core.read_only import read_only

FEW_NODES = 5  # nodes on a piece from which the tail is that of two coefficients
MOST_HERMITE_NODES = 300  # nodes of a Gauss-Hermite rule, whose weights underflow beyond
DYADIC_EDGES = 4.0 ** -np.arange(18)  # of subintervals on which a decay is integrated
DECAY_TOLERANCE = 1e-10  # relative, of integrals with a decay by two rules
DECAY_NODES = 24  # nodes of the quadrature of a decay, beyond those of the densities
SINK_ROUNDING = 1e-12  # tolerance of the mass of a sink
EDGE_ROUNDING = 64 * np.finfo(float).eps  # shorter intervals, relative, are rounding errors

gauss_rule = lru_cache(maxsize=64)(np.polynomial.legendre.leggauss)


class Index(Kind, family=True):
    """A probability measure on the line, by quadrature nodes.

    Attributes
    ----------
    nodes : ndarray, (P,)
        Values of the index, increasing.
    weights : ndarray, (P,)
        Quadrature weights of the nodes, > 0, of sum 1.
    label : str
        Name of the index in figures and files.
    """

    label = "index"

    @property
    @abstractmethod
    def nodes(self) -> np.ndarray: ...

    @property
    @abstractmethod
    def weights(self) -> np.ndarray: ...

    def __len__(self) -> int:
        return self.nodes.size

    def interpolation(self, s: Any) -> np.ndarray:
        """Interpolation weights (*s.shape, P): the density at s is their sum over the nodes.

        By default s must be a node, and there is no interpolation. Raises TypeError or ValueError
        for another s.
        """
        expected = f"values of the index, {as_given(self.nodes.tolist())}"
        s = _values_in(s, expected, lambda s: np.isin(s, self.nodes))
        return (s[..., None] == self.nodes).astype(float)

    def drawn(self, n: int, rng: np.random.Generator | None) -> np.ndarray:
        """Values (n,) of the index, increasing: random, or quantiles if `rng` is None."""
        raise MeanfieldError(f"{self!r} is not an order of tokens: give positions.")

    def blocks(self, count: int) -> np.ndarray:
        """Weights (count, P) of the nodes in the mean density of each of `count` equal blocks."""
        raise MeanfieldError(f"{self!r} has no blocks of neighbours: give positions.")

    def tail(self, values: np.ndarray) -> np.ndarray:
        """Size (...,) of the last coefficients in the index, of values (..., P, K) at the nodes.

        It is 0 by default, as there is no interpolation.
        """
        return np.zeros(values.shape[:-2])

    # Influence of one index on another ---------------------------------------------------------

    def influence(self, model: Any) -> np.ndarray:
        """Matrix C (P, P) such that the measure that acts at node i is sum_j C_ij mu_j.

        Parameters
        ----------
        model : Transformer
            Model with `causal`, `coupling`, or neither; then C_ij is the weight of node j.
        """
        if model.causal is not None:
            return self.causal(model.causal, model.causal.is_mean(model.drift))
        if model.coupling is None:
            return np.broadcast_to(self.weights, (len(self),) * 2).copy()
        J = self._coupling(model.coupling)
        divided = any(part.normalised and part.interacts for _, part in model.drift.terms)
        fits = not divided or ((J >= 0).all() and (J.sum(axis=1) > 0).all())
        needed = f">= 0, and not all 0 for any index, under {model.drift!r}, which divides by sums"
        return require("coupling", J, needed, fits) * self.weights

    def _coupling(self, coupling: Any) -> np.ndarray:
        """Matrix (P, P) of a coupling, which is a matrix or a function of two arrays (P, P)."""
        shape = (len(self),) * 2
        if not callable(coupling):
            expected = f"a matrix of shape {shape}, one number for each pair of nodes"
            return require("coupling", coupling, expected, coupling.shape == shape)
        s, tau = np.broadcast_arrays(self.nodes[:, None], self.nodes[None])
        values = coupling(s.copy(), tau.copy())
        values = np.broadcast_to(values, shape) if np.ndim(values) == 0 else values
        J = returned("coupling", values, shape)
        return require("The values of coupling", J, "finite", np.isfinite(J).all())

    def causal(self, causal: Any, mean: bool) -> np.ndarray:
        """Matrix `influence` (P, P) if only positions at or before a node act on it.

        `causal` is the `Causal` of the model. With `mean` the rows are divided by their sums.
        """
        raise MeanfieldError(
            f"causal is for densities that are indexed by positions, Positions(...); got {self!r}."
        )


class Positions(Index):
    """Positions s in [0, 1] of a sequence: sink delta_0 + (1 - sink) ds.

    On each piece between two `breaks` there are Gauss-Legendre nodes, so that integrals of smooth
    functions of s converge faster than any power of the number of nodes. Put breaks at jumps and
    kinks in s, which come from the initial law, and at multiples of a window.

    Parameters
    ----------
    breaks : array, optional
        0 = b_0 < b_1 < ... < b_m = 1.
    order : int
        Nodes on each piece.
    sink : float
        Mass in [0, 1) of an atom at s = 0, the attention sink, with a separate node. The window,
        decay and beta of `Causal` are functions of s, in which the sink has no extent, whereas
        positions of tokens are measured by mass: with a sink the two models differ.

    Raises
    ------
    ValueError
        If breaks do not increase from 0 to 1, or the sink is not in [0, 1).
    """

    label = "position"

    breaks: Array = (0.0, 1.0)
    order: Natural = 16
    sink: float = 0.0

    def validate(self) -> None:
        b = self.breaks
        fits = b.ndim == 1 and b.size >= 2 and b[0] == 0 and b[-1] == 1 and (np.diff(b) > 0).all()
        require("breaks", b, "numbers that increase from 0 to 1", fits)
        require("sink", self.sink, "a mass, 0 <= sink < 1", 0 <= self.sink < 1)
        check_memory("the positions", (4, b.size * self.order), "order or breaks")

    @classmethod
    def graded(cls, pieces: int = 6, ratio: float = 4.0, order: int = 12, **options: Any) -> Any:
        """Positions with pieces that become shorter towards s = 0, for laws that vary fast there.

        `ratio` is the quotient of neighbouring breaks; `order` nodes are on each piece.
        """
        pieces = whole_number("pieces", pieces)
        real("ratio", ratio, "a number > 1", lambda number: 1 < number < np.inf)
        smallest = float(ratio) ** (1 - pieces)
        require("pieces", pieces, "fewer, or a smaller ratio", smallest > np.finfo(float).tiny)
        breaks = np.concatenate([[0.0], float(ratio) ** np.arange(1 - pieces, 1)])
        return cls(breaks, order, **options)

    @cached_property
    def _rule(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights (pieces, order)."""
        x, w = gauss_rule(self.order)
        lengths = np.diff(self.breaks)[:, None]
        return self.breaks[:-1, None] + lengths * (1 + x) / 2, lengths * w / 2

    @cached_property
    def nodes(self) -> np.ndarray:
        nodes = self._rule[0].ravel()
        return read_only(np.concatenate([[0.0], nodes]) if self.sink else nodes)

    @cached_property
    def weights(self) -> np.ndarray:
        weights = (1 - self.sink) * self._rule[1].ravel()
        return read_only(np.concatenate([[self.sink], weights]) if self.sink else weights)

    def _columns(self, piece: int) -> slice:
        """Indices of the nodes of a piece, as a slice; node 0 is the sink, if there is one."""
        first = bool(self.sink) + piece * self.order
        return slice(first, first + self.order)

    def _lagrange(self, piece: int, s: np.ndarray) -> np.ndarray:
        """Values (n, order) of the Lagrange polynomials of a piece at s (n,)."""
        x, w = gauss_rule(self.order)
        barycentric = (-1.0) ** np.arange(self.order) * np.sqrt((1 - x**2) * w)
        offsets = s[:, None] - self._rule[0][piece]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = barycentric / offsets
            values = terms / terms.sum(axis=1, keepdims=True)
        at_node = (offsets == 0).any(axis=1)
        values[at_node] = offsets[at_node] == 0
        return values

    def _integrals(
        self, begin: float, end: float, order: int, smallest: float,
        weight: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Integrals (P,) of the Lagrange polynomials, times a weight, from `begin` to `end`.

        Gauss rules have `order` nodes. A weight may be steep near `end`: a piece is then divided
        into shorter and shorter intervals towards its end. Intervals up to `smallest` are omitted.
        """
        integrals, (x, gauss) = np.zeros(len(self)), gauss_rule(order)
        for piece in range(self.breaks.size - 1):
            a, b = max(self.breaks[piece], begin), min(self.breaks[piece + 1], end)
            if b - a <= smallest:
                continue
            graded = [a] if weight is None else b - (b - a) * DYADIC_EDGES
            edges = np.unique(np.append(graded, b))
            lengths = np.diff(edges)[:, None]
            s, w = (edges[:-1, None] + lengths * (1 + x) / 2).ravel(), (lengths * gauss / 2).ravel()
            w = w if weight is None else w * weight(s)
            integrals[self._columns(piece)] += (1 - self.sink) * w @ self._lagrange(piece, s)
        return integrals

    def interpolation(self, s: np.ndarray) -> np.ndarray:
        """Interpolation weights (*s.shape, P), by the polynomial of the piece that contains s.

        At a break it is the piece on the left.
        """
        s = _values_in(s, "positions between 0 and 1", lambda s: (s >= 0) & (s <= 1))
        flat = s.ravel()
        weights = np.zeros((flat.size, len(self)))
        pieces = np.maximum(np.searchsorted(self.breaks, flat, side="left") - 1, 0)
        for piece in np.unique(pieces):
            in_piece = pieces == piece
            weights[in_piece, self._columns(piece)] = self._lagrange(piece, flat[in_piece])
        if self.sink:
            weights[flat == 0] = np.eye(len(self))[0]
        return weights.reshape(*s.shape, -1)

    def drawn(self, n: int, rng: np.random.Generator | None) -> np.ndarray:
        """Positions (n,), increasing: the quantiles (i - 1/2)/n if `rng` is None, else random."""
        level = (np.arange(n) + 0.5) / n if rng is None else np.sort(rng.random(n))
        return self._at_level(level)

    def _at_level(self, level: np.ndarray) -> np.ndarray:
        """Quantile of the index: the position up to which its mass is `level`."""
        return np.where(level <= self.sink, 0.0, (level - self.sink) / (1 - self.sink))

    def blocks(self, count: int) -> np.ndarray:
        weights = np.zeros((count, len(self)))
        ends = np.linspace(0.0, 1.0, count + 1)
        if self.sink:
            weights[:, 0] = np.diff(np.minimum(ends, self.sink))
        for block, (begin, end) in enumerate(itertools.pairwise(self._at_level(ends))):
            weights[block] += self._integrals(begin, end, self.order, EDGE_ROUNDING)
        return weights / weights.sum(axis=1, keepdims=True)

    def tail(self, values: np.ndarray) -> np.ndarray:
        """Largest of the last Legendre coefficients in s on any piece, (...,), of (..., P, K).

        On pieces with five nodes or more these are the last two, as one may vanish by symmetry.
        """
        x, w = gauss_rule(self.order)
        l = np.arange(self.order - (2 if self.order >= FEW_NODES else 1), self.order)
        p = np.polynomial.legendre.legvander(x, self.order - 1)[:, l]
        project = (l + 0.5)[:, None] * (p * w[:, None]).T
        count = self.breaks.size - 1
        shape = *values.shape[:-2], count, self.order, values.shape[-1]
        pieces = values[..., -count * self.order :, :].reshape(shape)
        return np.abs(project @ pieces).max(axis=(-3, -2, -1))

    def causal(self, causal: Any, mean: bool) -> np.ndarray:
        """C_ij = int_0^(s_i) w(s_i - tau) l_j(tau) dtau for each node, with l_j of its piece."""
        influence = self._causal_integrals(causal, self.order)
        if causal.decay is not None:  # compare two quadrature rules
            influence = self._causal_integrals(causal, self.order + 2 * DECAY_NODES)
            coarse = self._causal_integrals(causal, self.order + DECAY_NODES)
            error = np.abs(influence - coarse).max() / (np.abs(influence).max() or 1.0)
            expected = f"smooth, but two rules for its integrals differ by {error:.1g}"
            is_smooth, advice = error <= DECAY_TOLERANCE, "A jump is a window."
            require("decay", causal.decay, expected, is_smooth, advice=advice)
        if mean:
            sums = influence.sum(axis=1, keepdims=True)
            s, fits = self.nodes[np.argmin(sums)], (sums > 0).all()
            advice = f"position {s:g} sees nothing: decay is 0, or the window too short"
            require("causal", causal, "seen from every position", fits, advice=advice)
            influence /= sums
        return influence

    def _causal_integrals(self, causal: Any, order: int) -> np.ndarray:
        """Integrals (P, P) of `causal`, by a Gauss rule with `order` nodes on each piece."""
        influence = np.zeros((len(self),) * 2)
        window = np.inf if causal.window is None else causal.window
        end_of_sink = self._end_of_sink(causal)
        for i, s in enumerate(self.nodes):
            begin = max(0.0, s - window)
            disjoint = begin > end_of_sink
            stretches = [(0.0, end_of_sink), (begin, s)] if disjoint else [(0.0, s)]
            weight = None if causal.decay is None else (lambda tau, s=s: causal.weights(s - tau))
            for first, last in stretches:
                influence[i] += self._integrals(first, last, order, EDGE_ROUNDING * s, weight)
            if self.sink and (s <= window or causal.sink is not None):
                influence[i, 0] = self.sink * causal.weights(np.array([s]))[0]
        return influence

    def _end_of_sink(self, causal: Any) -> float:
        """Position up to which tokens are visible from everywhere, whatever the window is."""
        if causal.sink is None:
            return 0.0
        expected = f">= {self.sink:g}, the mass of the atom at s = 0, which is seen as a whole"
        require("causal.sink", causal.sink, expected, causal.sink >= self.sink - SINK_ROUNDING)
        return float(self._at_level(np.array(causal.sink)))


class Classes(Index):
    """Finitely many kinds of tokens, with couplings between them.

    Parameters
    ----------
    values : array, (P,)
        The index of each class, different numbers, increasing.
    shares : array, (P,), optional
        How many of all tokens are in each, > 0, of sum 1; equal ones by default.
    """

    label = "class"

    values: Array
    shares: Array | None = None

    def validate(self) -> None:
        v = self.values
        fits = v.ndim == 1 and v.size >= 1 and (np.diff(v) > 0).all()
        require("values", v, "different numbers (P,), increasing", fits)
        shares = np.full(v.shape, 1 / v.size) if self.shares is None else self.shares
        valid = shares.shape == v.shape and (shares > 0).all() and abs(shares.sum() - 1) <= 1e-12
        expected = f"numbers > 0 of sum 1, one for each of {v.size} values"
        require("shares", self.shares, expected, valid)
        self._set(shares=shares)

    @property
    def nodes(self) -> np.ndarray:
        return self.values

    @property
    def weights(self) -> np.ndarray:
        assert self.shares is not None
        return self.shares


class NormalIndex(Index):
    """A normal law N(centre, width^2) of the index, as of natural frequencies, by Gauss-Hermite.

    Integrals of polynomials in the index of degree below 2 count are exact. Oscillators without
    noise lock at angles that depend on the frequency. Their densities then become Diracs, which
    cannot be resolved: add noise.

    Parameters
    ----------
    width : float
        Standard deviation, > 0.
    count : int
        Nodes, at most 300.
    centre : float
        Mean of the index.
    """

    label = "frequency"

    width: Positive
    count: Natural = 32
    centre: float = 0.0

    def validate(self) -> None:
        largest_count = MOST_HERMITE_NODES
        require("count", self.count, f"at most {largest_count} nodes", self.count <= largest_count)

    @cached_property
    def _rule(self) -> tuple[np.ndarray, np.ndarray]:
        x, w = np.polynomial.hermite_e.hermegauss(self.count)
        return read_only(self.centre + self.width * x), read_only(w / w.sum())

    @property
    def nodes(self) -> np.ndarray:
        return self._rule[0]

    @property
    def weights(self) -> np.ndarray:
        return self._rule[1]


def _values_in(s: Any, expected: str, fits: Callable[[np.ndarray], Any]) -> np.ndarray:
    """Values of an index as an array; TypeError or ValueError unless they are numbers and allowed.

    `expected` describes the allowed values in the message.
    """
    values, expected = real_array("s", s), f"{expected}, or an array of them"
    require("s", s, expected, plain_array("s", s).dtype != bool, TypeError)
    require("s", s, expected, values.size > 0 and fits(values).all())
    return values
