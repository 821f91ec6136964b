"""Appearances: the space, the drawn points and the chief observables of each kind of state.

`Appearance` is the default for all states. A class derived from it, registered for a class of
states by `Appearance.register`, is used for that class and all classes derived from it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import norm  # whose squares do not overflow

from ..results.solution import Solution
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..spaces.indexed import Indexed
from ..states import Equiangular, Gaussian, Gram, Tokens
from ..states.clusters import LINKED_ANGLE
from . import theme
from .clusters import (
    GATHERED,
    clusters_of_density,
    clusters_of_tokens,
    equal_masses,
    evenly,
    quantiles,
    separate,
)
from .labels import Member, all_members, choose_members, member_of, percent
from .spaces import CoordinateAxis, Flat, chart_of, in_words, space_of_tokens

COARSE_DEGREE = 16


@dataclass(frozen=True)
class DrawnSample:
    """Tokens or nodes that are drawn to represent a member, in the order in which they are drawn.

    Attributes
    ----------
    indices : ndarray of int
        Indices of the tokens or nodes. Tokens that end in no cluster are drawn first, beneath
        others.
    masses : ndarray
        Masses of the tokens at the start, or of the parts of the mass that the nodes represent.
    colours : ndarray of object
        Colour of the cluster in which each ends; grey if in none; the first colour if there are no
        clusters.
    ends : list of DrawnCluster
        The clusters of the last state, the heaviest first.
    note : str
        Text for the figure: "300 of 100000 tokens", or the mass that each node represents.
    """

    indices: np.ndarray
    masses: np.ndarray
    colours: np.ndarray
    ends: list[Any]
    note: str

    @property
    def sizes(self) -> np.ndarray:
        """Masses over their mean."""
        return self.masses / self.masses.mean()


class Appearance:
    """Appearance of a kind of state in figures; this class is the default for all states.

    Appearances of densities also have a method `law(state)`: the density that is drawn.
    Appearances of states with points also have `points(state)`: the points (n, d) of a single
    state; `mean(state)`: its mean, or any direction if that is 0;
    `sample(solution, member, most)`: a `DrawnSample` of at most `most` points; and
    `coordinates(solution, member)`: the coordinates (t, n) of all points on the axis of the space,
    continuous in time.

    Attributes
    ----------
    states : str
        Name of the states in messages.
    carried : bool
        Whether the mass is constant by construction; it is then not shown.
    most_dots, most_curves : int
        Largest numbers of points, and of curves, that are drawn for a member.
    most_around : int
        Largest number of dots around the circle that are drawn for a member.
    overlap : float
        The opacity of n curves is this over the square root of n, within limits.
    gathers : bool
        Whether movies show an observable of concentration, see `gathering`.
    symbols : dict
        Axis labels of observables, where they differ from the default.
    """

    registered: ClassVar[dict[type, "Appearance"]] = {}
    states = ""
    carried = False
    gathers = False
    symbols: ClassVar[dict[str, str]] = {}
    most_dots, most_curves, most_around = 5000, 300, 5000
    overlap = 3.0

    @classmethod
    def register(cls, *states: type) -> Callable[[type["Appearance"]], type["Appearance"]]:
        """Decorate the appearance of these classes of states, and of those derived from them."""

        def keep(appearance: type[Appearance]) -> type[Appearance]:
            cls.registered.update(dict.fromkeys(states, appearance()))
            return appearance

        return keep

    def space(self, state: Any) -> type:
        """The class of the space that a state lives on; NoneType if it has none."""
        return type(getattr(state, "space", None))

    def flat(self, state: Any) -> bool:
        """True for states in R^d, where points can go to infinity."""
        return issubclass(self.space(state), Flat)

    def gathering(self, state: Any) -> str:
        """The observable of concentration in movies: "spread" or "order_parameter"; "" for none."""
        return "" if not self.gathers else "spread" if self.flat(state) else "order_parameter"

    def chart(self, state: Any) -> CoordinateAxis | None:
        """The axis of its one coordinate, or None."""
        return chart_of(self.space(state))

    def members(self, solution: Solution, member: int | Member | None) -> list[Member]:
        """The members of an ensemble that an overview or a movie shows."""
        return choose_members(solution, member)

    def vectors(self, states: Sequence[Any], members: Sequence[Member]) -> Iterator[np.ndarray]:
        """A vector for each state, whose Euclidean distances measure how far apart states are."""
        return (np.zeros(1) for _ in states)

    def resolved(self, solution: Solution) -> np.ndarray:
        """A mask (m,) over saved states of an unresolved run: True while it was resolved."""
        return solution.t < solution.unresolved_since

    def telling(self, solution: Solution, single: bool) -> Sequence[str]:
        """Names of observables that such states may have, the most informative first.

        `single` is True if one member is drawn.
        """
        return list(solution.observables)

    def constant(self, solution: Solution) -> set[str]:
        """Names of observables that are always the same for such states."""
        return {"mass"} if self.carried else set()

    def clusters(self, state: Any) -> Sequence[Any]:
        """Clusters of a single state, with `point` and `mass`, the heaviest first."""
        return []

    def best_seen_from(self, state: Any) -> np.ndarray:
        """Direction in which a single state on the sphere is seen best: its heaviest cluster."""
        clusters = self.clusters(state)
        return clusters[0].point if clusters else self.mean(state)


def appearance_of(state: Any) -> Appearance:
    """The appearance registered for the class of a state, or the nearest class it derives from."""
    registered = (Appearance.registered.get(kind) for kind in type(state).__mro__)
    return next(filter(None, registered), Appearance())


def space_of(solution: Solution) -> type:
    """The class of the space that the states of a solution live on."""
    return appearance_of(solution.final).space(solution.final)


def describe_states(solution: Solution) -> str:
    """For messages: "densities on the Circle"."""
    final = solution.final
    name = appearance_of(final).states or f"states of type {type(final).__name__}"
    return f"{name} {in_words(space_of(solution))}".rstrip()


def sample_of(solution: Solution, member: Member, most: int) -> DrawnSample:
    """At most `most` points that represent a member, in the colours of their final clusters."""
    return appearance_of(solution.final).sample(solution, member, most)


def coloured(count: int, clusters: Sequence[Any]) -> np.ndarray:
    """Colours (count,) of points: one for each cluster, given by indices or a mask, or else grey.

    Without clusters all points have the first colour.
    """
    colours = np.full(count, theme.FAINT if clusters else theme.PALETTE[0], dtype=object)
    for i, cluster in enumerate(clusters):
        colours[cluster] = theme.colour(i)
    return colours


@Appearance.register(Density)
class DensityAppearance(Appearance):
    """Densities: fields over the space."""

    states = "densities"
    gathers = True
    law_in_words = "density"

    def law(self, state: Any) -> Density:
        """The density that is drawn of a state."""
        return state

    def vectors(self, states, members):
        for state in states:
            head = state.resample(COARSE_DEGREE).coefficients
            yield np.concatenate([head[index] for index in members])

    def resolved(self, solution):
        """The spectral tail is at most rtol, and values are those of a density."""
        worst = np.array([state.spectral_tail.max() for state in solution])
        return np.logical_and.accumulate(worst <= solution.rtol) & super().resolved(solution)

    def telling(self, solution, single):
        energies = ("free_energy", "entropy", "interaction_energy")
        data = solution.observables
        energy = next(n for n in energies if n in data and np.isfinite(data[n]).any())
        return ["moments" if single else "order_parameter", energy]

    def clusters(self, state):
        return clusters_of_density(self.law(state))

    def best_seen_from(self, state):
        """The direction of the mean, or of the maximum if the mean is near 0.

        Of several maxima of equal height the northernmost is taken; the uniform density is seen
        from the first axis.
        """
        law = self.law(state)
        points, values = law.space.points, law.values
        mean = (law.space.weights * values) @ points
        if np.linalg.norm(mean) > 0.1:
            return mean
        if values.max() < 1 + 1e-6:
            return np.array([1.0, 0.0, 0.0])
        return points[np.argmax(values > values.max() * (1 - 1e-6))]


@Appearance.register(Indexed)
class IndexedAppearance(DensityAppearance):
    """Indexed densities: figures of a density show the marginal law of all points."""

    states = "indexed densities"
    law_in_words = "marginal density"

    def space(self, state):
        return type(state.slice_space)

    def law(self, state):
        return state.marginal()

    def vectors(self, states, members):
        for state in states:
            slices = state.resample(COARSE_DEGREE).each * np.sqrt(state.weights)[:, None]
            yield np.concatenate([slices[index].ravel() for index in members])

    def resolved(self, solution):
        """A mask (m,): the densities are resolved, and in the index by its nodes."""
        in_index = [state.resolved for state in solution]
        return super().resolved(solution) & np.logical_and.accumulate(in_index)

    def telling(self, solution, single):
        tail = "index_tail" not in self.constant(solution)
        return "order_parameter", "index_tail" if tail else "minimum"

    def constant(self, solution):
        """The tail in the index, if it is 0 at all times because nothing is interpolated."""
        tail = solution.observables.get("index_tail")
        return {"index_tail"} if tail is not None and not tail.any() else set()


@Appearance.register(Characteristics)
class CharacteristicsAppearance(Appearance):
    """Characteristics: a few nodes that represent equal masses, followed through the flow."""

    states = "characteristics"
    carried = True
    gathers = True
    most_dots, most_curves, most_around = 512, 50, 50
    overlap = 6.0  # curves between which lies the same mass hardly overlap

    def vectors(self, states, members):
        return ((np.sqrt(state.masses)[:, None] * state.points).ravel() for state in states)

    def telling(self, solution, single):
        # The speed takes the place of clusters as long as there are none.
        second = "cluster_mass" if solution.observables["cluster_count"].any() else "speed"
        return ["w2_to_dirac", second, "moments", "interaction_energy"]

    def points(self, state):
        return state.points

    def clusters(self, state):
        return state.clusters()

    def mean(self, state):
        return state.mean_direction

    def sample(self, solution, member, most):
        start, chart = solution[0], self.chart(solution.final)
        if chart is None:
            nodes, masses = equal_masses(start, int(np.log2(most)))
            note = f"1/{len(nodes)} of the mass"
        else:
            nodes = quantiles(start, chart.of_nodes(start), most)
            masses = np.full(most, 1 / most)
            note = f"{percent(1 / most)} of the mass each"
        ends = self.clusters(solution.final)
        return DrawnSample(nodes, masses, self.colours(solution, nodes), ends, note)

    def colours(self, solution, nodes):
        """Colours of nodes: that of the cluster within 0.1 radians of which a node ends."""
        ends, points = self.clusters(solution.final), solution.final.points[nodes]
        gaps = [np.linalg.norm(points - end.point, axis=1) for end in ends]
        return coloured(len(nodes), [gap < 2 * np.sin(GATHERED / 2) for gap in gaps])

    def coordinates(self, solution, member):
        chart = self.chart(solution.final)
        return np.array([chart.of_nodes(state) for state in solution])


class Finite(Appearance):
    """Finitely many tokens, whose replicas form an ensemble.

    Subclasses define `weighted(state, root)`, the positions times the roots of masses (..., n, 1);
    `measured(state)`, names of observables, the most informative first; and
    `subset(state, kept, masses)`, the tokens of the indices `kept` with these masses.
    """

    symbols: ClassVar = {
        "cluster_count": rf"clusters, gaps ${np.degrees(LINKED_ANGLE):.1f}\degree$"
    }

    carried = True
    gathers = True

    def members(self, solution, member):
        if member is None:
            return [(0,) * len(solution.shape)]
        return choose_members(solution, member)

    def vectors(self, states, members):
        for state in states:
            places = self.weighted(state, np.sqrt(state.masses)[..., None])
            yield np.concatenate([places[index].ravel() for index in members])

    def telling(self, solution, single):
        names = self.measured(solution.final)
        if solution.model.noisy:  # clusters come and go
            names = ["order_parameter", "mean_cosine", *(n for n in names if n != "cluster_count")]
        return list(dict.fromkeys(names))

    def thinned(self, state, most):
        """At most `most` tokens of a single set, evenly spread over their order, of mass 1."""
        if len(state) <= most:
            return state
        kept = evenly(len(state), most)
        return self.subset(state, kept, state.masses[kept] / state.masses[kept].sum())


ROUND = ["order_parameter", "cluster_count", "interaction_energy", "effective_rank", "speed"]
HIGH = ["order_parameter", "cluster_count", "effective_rank", "interaction_energy", "speed"]
FLAT = ["spread", "cluster_count", "order_parameter", "speed", "effective_rank"]
GROWING = ["order_parameter", "cluster_count", "mean_radius"]  # where radii are part of the state


@Appearance.register(Gram)
class GramAppearance(Finite):
    """Inner products of tokens, whatever their dimension."""

    states = "inner products of tokens"

    def weighted(self, state, root):
        return root * state.G * np.swapaxes(root, -1, -2)

    def measured(self, state):
        return HIGH

    def subset(self, state, kept, masses):
        return Gram(state.G[np.ix_(kept, kept)], masses)


@Appearance.register(Tokens)
class TokensAppearance(Finite):
    """Tokens as points; a part of them if there are many."""

    states = "tokens"

    def space(self, state):
        return space_of_tokens(state.dimension, state.on_sphere)

    def weighted(self, state, root):
        return root * state.x

    def measured(self, state):
        names = FLAT if not state.on_sphere else HIGH if state.dimension > 3 else ROUND
        return names if state.radii is None else [*GROWING, *names]

    def subset(self, state, kept, masses):
        return Tokens(state.x[kept], masses, on_sphere=state.on_sphere)

    def points(self, state):
        return state.x

    def clusters(self, state):
        return separate(state)

    def mean(self, state):
        mean = state.masses @ state.x
        return mean if np.linalg.norm(mean) > 1e-9 else np.array([1.0, 0.0, 0.0])

    def sample(self, solution, member, most):
        """A sample evenly spread over the order of tokens, or along their axis if there is one."""
        first, last = (member_of(state, member) for state in (solution[0], solution.final))
        order, chart = np.arange(len(first)), self.chart(last)
        if chart is not None:
            order = np.argsort(chart.over_time(first.x[None])[0], kind="stable")
        tokens = order[evenly(len(first), most)]
        ends = clusters_of_tokens(last)
        colours = coloured(len(first), [end.tokens for end in ends])
        tokens = tokens[np.argsort(colours[tokens] != theme.FAINT, kind="stable")]
        of = f" of {len(first)}" if len(tokens) < len(first) else ""
        note = f"{len(tokens)}{of} token{'s' if len(first) > 1 else ''}"
        return DrawnSample(tokens, first.masses[tokens], colours[tokens], ends, note)

    def coordinates(self, solution, member):
        x = np.stack([member_of(state, member).x for state in solution])
        return self.chart(solution.final).over_time(x)


@Appearance.register(Equiangular)
class EquiangularAppearance(Appearance):
    """Equiangular tokens: one number for each member."""

    states = "equiangular tokens"
    carried = True

    def members(self, solution, member):
        return all_members(solution, member)

    def telling(self, solution, single):
        return "rho", "radius", "effective_rank", "interaction_energy", "speed"


@Appearance.register(Gaussian)
class GaussianAppearance(Appearance):
    """Normal laws: ellipses in the plane, variances in any dimension."""

    states = "Gaussians"
    carried = True
    gathers = True

    def space(self, state):
        return space_of_tokens(state.dimension, on_sphere=False)

    def vectors(self, states, members):
        """Laws divided by their norm plus the initial one: norm 1/2 at the start, 1 at infinity."""
        laws = [self.law(state) for state in states]
        unit = norm(laws[0])
        return (law / ((norm(law) + unit) or 1.0) for law in laws)

    def law(self, state):
        """The symmetric root and the mean, whose norm is (int |x|^2 dmu)^(1/2)."""
        u, s, _ = np.linalg.svd(state.root)
        return np.column_stack([(u * s) @ u.T, state.mean]).ravel()

    def telling(self, solution, single):
        return "spread", "covariance_rank", "order_parameter", "speed", "effective_rank"

    def constant(self, solution):
        """The mean of a Gaussian that begins with mean 0 stays there."""
        mean = solution.observables.get("order_parameter")
        return {"mass"} | ({"order_parameter"} if mean is not None and not mean.any() else set())
