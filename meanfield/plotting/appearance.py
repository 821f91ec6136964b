"""Appearances: the space, the drawn points and the chief observables of each kind of state.

`Appearance` is the default for all states. A class derived from it, registered for a class of
states by `Appearance.register`, is used for that class and all classes derived from it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import norm  # whose squares do not overflow

from ..dynamics.observables import cluster_labels
from ..results.solution import Solution
from ..spaces import Sphere, Torus
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..spaces.indexed import Indexed
from ..states import Equiangular, Gaussian, Gram, Tokens, TorusTokens
from ..states.clusters import LINKED_ANGLE, MOST_PAIRED_TOKENS
from ..states.points import unit
from . import theme
from .labels import Member, all_members, choose_members, member_of, percent
from .spaces import Flat, chart_of, in_words, space_of_angles, space_of_tokens

GATHERED = 0.1  # radians: tokens and nodes nearer to a cluster belong to it
CLUSTERED = 0.75  # least share of the mass in all clusters, or
HEAVY_SHARE = 0.25  # in one of them, for clusters to be drawn
LEAST_WRITTEN_SHARE = 0.03  # of the mass: shares of lighter clusters are not written
CLUSTER_GAP = 0.3  # least distance between two such clusters
LEAST_PEAK = 2.0  # times the mean
PROMINENT = 0.1  # least dip between two separate peaks, relative to the lower one
GRID = Sphere(48)
SPACING = np.radians(2.4)  # of the points of GRID
POLE_POINTS = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
CUBE_NEIGHBOURS = np.array(list(product((-1.0, 0.0, 1.0), repeat=3)))


@dataclass(frozen=True)
class DrawnCluster:
    """Mass in one place: its mean or maximum `point`, (d,), its share of the mass, its tokens."""

    point: np.ndarray
    mass: float
    tokens: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))


def evenly(count: int, limit: int) -> np.ndarray:
    """At most `limit` of the indices below `count`, evenly spread, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).round().astype(int))


# Tokens --------------------------------------------------------------------------------------


def clusters_of_tokens(tokens: Tokens | TorusTokens) -> list[DrawnCluster]:
    """The clusters of a single set, the heaviest first; none if most tokens are by themselves.

    A cluster is two tokens or more, linked by single linkage, that stay within 0.1 of their mean
    in the root mean square. With no more tokens than colours, a single token may be a cluster.
    """
    rows = np.arange(len(tokens))
    if len(tokens) > MOST_PAIRED_TOKENS and tokens.dimension > 3:
        rows = evenly(len(tokens), MOST_PAIRED_TOKENS // 4)
    x, masses = tokens.x[rows], tokens.masses[rows]
    on_sphere = isinstance(tokens, Tokens) and tokens.on_sphere
    labels = cluster_labels(Tokens(x, on_sphere=on_sphere))
    smallest = 1 if len(tokens) <= len(theme.PALETTE) else 2
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    groups = (_cluster(x, masses, rows, part) for part in parts if len(part) >= smallest)
    clusters = [cluster for cluster in groups if cluster is not None]
    shares = [cluster.mass for cluster in clusters]
    if sum(shares) < CLUSTERED and max(shares, default=0.0) < HEAVY_SHARE:
        return []
    return sorted(clusters, key=lambda c: (-round(c.mass, 12), int(c.tokens[0])))


def clusters_with_room(tokens: Tokens | TorusTokens) -> list[DrawnCluster]:
    """Clusters whose shares can be written without one hiding another."""
    clusters: list[DrawnCluster] = []
    for cluster in clusters_of_tokens(tokens):
        overlaps = any(np.linalg.norm(cluster.point - c.point) < CLUSTER_GAP for c in clusters)
        if cluster.mass >= LEAST_WRITTEN_SHARE and not overlaps:
            clusters.append(cluster)
    return clusters


def _cluster(
    x: np.ndarray, masses: np.ndarray, rows: np.ndarray, part: np.ndarray
) -> DrawnCluster | None:
    """The cluster of x[part], tokens rows[part]; None if without mass or wider than GATHERED."""
    mass = masses[part].sum()
    if not mass > 0:
        return None
    shares = masses[part] / mass
    mean = shares @ x[part]
    is_wide = shares @ ((x[part] - mean) ** 2).sum(axis=1) > GATHERED**2
    return None if is_wide else DrawnCluster(mean, float(mass / masses.sum()), rows[part])


# Densities on the sphere ---------------------------------------------------------------------


def clusters_of_density(density: Density) -> list[DrawnCluster]:
    """Maxima above twice the mean, the heaviest first; two within 2.4 degrees may count as one.

    The basin of a maximum is what steepest ascent leads to it. Peaks that are parted by a dip of
    less than a tenth of the lower one count as one.
    """
    points = np.concatenate([GRID.points, POLE_POINTS])
    values = density.at(points)
    peak_of = _basins(values, _neighbours(GRID.z.size, GRID.longitudes.size))
    masses = np.append(GRID.weights, [0.0, 0.0]) * values
    shares = np.bincount(peak_of, masses, minlength=values.size) / masses.sum()
    peaks = np.unique(peak_of)
    peaks = peaks[values[peaks] > LEAST_PEAK]
    if not peaks.size:
        return []
    clusters = map(DrawnCluster, _climbed(density, points[peaks]), shares[peaks].tolist())
    return sorted(clusters, key=lambda cluster: -cluster.mass)


def _climbed(density: Density, places: np.ndarray) -> np.ndarray:
    """Points (n, 3) moved to nearby maxima, by a search with decreasing steps."""
    for step in SPACING * 0.6 ** np.arange(12):
        trials = unit(places[:, None] + step * CUBE_NEIGHBOURS)
        places = trials[np.arange(len(trials)), density.at(trials).argmax(axis=1)]
    return places


def _neighbours(rows: int, columns: int) -> list[np.ndarray]:
    """The eight neighbours of every grid point, and the first or last row for a pole."""
    index = np.arange(rows * columns).reshape(rows, columns)
    north, south = rows * columns, rows * columns + 1
    padded = np.vstack([np.full(columns, north), index, np.full(columns, south)])
    shifted = [np.roll(padded, turn, axis=1) for turn in (-1, 0, 1)]
    around = [s[1 + step : 1 + step + rows] for s in shifted for step in (-1, 0, 1)]
    table = np.stack(around, axis=-1).reshape(-1, 9)
    return [*table, index[0], index[-1]]


def _basins(values: np.ndarray, neighbours: list[np.ndarray]) -> np.ndarray:
    """Index of the peak of every point; points are visited in order of decreasing value."""
    peak = np.full(values.size, -1)  # of visited points
    parent = np.arange(values.size)  # of a peak that was merged into another

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return int(i)

    for i in np.argsort(-values, kind="stable"):
        visited = [j for j in neighbours[i] if peak[j] >= 0]
        if not visited:
            peak[i] = i
            continue
        peak[i] = root(peak[max(visited, key=lambda j: values[j])])
        high, *lower_peaks = sorted({root(peak[j]) for j in visited}, key=lambda j: -values[j])
        for lower in lower_peaks:
            if values[lower] - values[i] < PROMINENT * values[lower]:
                parent[lower] = high
    return np.array([root(i) for i in peak])


# Nodes of characteristics that stand for equal masses ------------------------------------------


def quantiles(state: Characteristics, angles: np.ndarray, count: int) -> np.ndarray:
    """Indices (count,) of the nodes at the quantiles (k + 1/2)/count, in order of their `angles`.

    The quantiles are met up to the mass of one node.
    """
    order = np.argsort(angles, kind="stable")
    levels = np.cumsum(state.masses[order]) - state.masses[order] / 2
    targets = (np.arange(count) + 0.5) / count * state.mass
    upper = np.clip(np.searchsorted(levels, targets), 1, levels.size - 1)
    nearer = np.abs(levels[upper - 1] - targets) < np.abs(levels[upper] - targets)
    return order[upper - nearer]


def equal_masses(state: Characteristics, halvings: int) -> tuple[np.ndarray, np.ndarray]:
    """A node in the middle of each of 2^halvings pieces of about equal mass, and their masses.

    All nodes are halved by mass across the direction in which they spread most, then each half,
    and so on: points evenly distributed over the mass, whatever the order of the nodes.
    """
    parts = [np.arange(len(state))]
    for _ in range(halvings):
        parts = [half for part in parts for half in _halved(state, part)]
    middles = np.empty(len(parts), dtype=int)
    for i, part in enumerate(parts):
        mean = state.masses[part] @ state.points[part] / state.masses[part].sum()
        # A node of no mass next to the middle would be a poor representative of its piece.
        candidates = part[state.masses[part] > 0.1 * state.masses[part].max()]
        middles[i] = candidates[np.linalg.norm(state.points[candidates] - mean, axis=1).argmin()]
    return middles, np.array([state.masses[part].sum() for part in parts])


def _halved(state: Characteristics, part: np.ndarray) -> list[np.ndarray]:
    """The nodes `part` cut in two; each half keeps at least one node."""
    masses, points = state.masses[part], state.points[part]
    if len(part) < 2 or not masses.sum() > 0:
        return [part]
    centred = points - masses @ points / masses.sum()
    _, directions = np.linalg.eigh((centred * masses[:, None]).T @ centred)
    order = np.argsort(centred @ directions[:, -1], kind="stable")
    levels = np.cumsum(masses[order])
    split = np.clip(np.searchsorted(levels, levels[-1] / 2) + 1, 1, len(part) - 1)
    if split > 1 and levels[split - 1] - levels[-1] / 2 > levels[-1] / 2 - levels[split - 2]:
        split -= 1
    return [part[order[:split]], part[order[split:]]]


# Appearances --------------------------------------------------------------------------------------

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
    ends: Sequence[Any]
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
    has_concentration : bool
        Whether movies show an observable of concentration, see `concentration`.
    """

    mean: Callable[[Any], np.ndarray]
    registered: ClassVar[dict[type, "Appearance"]] = {}
    states = ""
    carried = False
    has_concentration = False
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
        space = getattr(state, "space", None)
        return space_of_angles(space.circles) if isinstance(space, Torus) else type(space)

    def flat(self, state: Any) -> bool:
        """True for states in R^d, where points can go to infinity."""
        return issubclass(self.space(state), Flat)

    def symbols(self, _state: Any) -> dict[str, str]:
        """Axis labels of observables, where they differ from the default."""
        return {}

    def concentration(self, state: Any) -> str:
        """The observable of concentration in movies: "spread" or "order_parameter"; "" for none."""
        if not self.has_concentration:
            return ""
        return "spread" if self.flat(state) else "order_parameter"

    def chart(self, state: Any) -> Any:
        """The axis of the one coordinate of the space of a state, or None."""
        return chart_of(self.space(state))

    def members(self, solution: Solution, member: int | Member | None) -> list[Member]:
        """The members of an ensemble that an overview or a movie shows."""
        return choose_members(solution, member)

    def vectors(self, states: Sequence[Any], members: Sequence[Member]) -> Iterator[np.ndarray]:
        """A vector for each state, whose Euclidean distances measure how far apart states are."""
        return (np.zeros(1) for _ in states)

    def resolved_mask(self, solution: Solution) -> np.ndarray:
        """A mask (m,) over saved states of an unresolved run: True while it was resolved."""
        return solution.t < solution.unresolved_since

    def observable_names(self, solution: Solution, single: bool) -> Sequence[str]:
        """Names of observables that such states may have, the most informative first.

        `single` is True if one member is drawn.
        """
        return [str(name) for name in solution.observables]

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


def appearance_of(state: Any) -> Any:
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
    has_concentration = True
    law_in_words = "density"

    def law(self, state: Any) -> Density:
        """The density that is drawn of a state."""
        return state

    def vectors(self, states: Sequence[Any], members: Sequence[Member]) -> Iterator[np.ndarray]:
        for state in states:
            head = state.resample(COARSE_DEGREE).coefficients
            yield np.concatenate([head[index] for index in members])

    def resolved_mask(self, solution: Solution) -> np.ndarray:
        """A mask (m,): True while the spectral tail is at most rtol and values are right."""
        tails = np.array([state.spectral_tail.max() for state in solution])
        return np.logical_and.accumulate(tails <= solution.rtol) & super().resolved_mask(solution)

    def observable_names(self, solution: Solution, single: bool) -> Sequence[str]:
        energies = ("free_energy", "entropy", "interaction_energy")
        data = solution.observables
        energy = next(n for n in energies if n in data and np.isfinite(data[n]).any())
        return ["moments" if single else "order_parameter", energy]

    def clusters(self, state: Any) -> Sequence[Any]:
        return clusters_of_density(self.law(state))

    def best_seen_from(self, state: Any) -> np.ndarray:
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

    def space(self, state: Indexed) -> type:
        return type(state.slice_space)

    def law(self, state: Indexed) -> Density:
        return state.marginal()

    def vectors(self, states: Sequence[Any], members: Sequence[Member]) -> Iterator[np.ndarray]:
        for state in states:
            slices = state.resample(COARSE_DEGREE).each * np.sqrt(state.weights)[:, None]
            yield np.concatenate([slices[index].ravel() for index in members])

    def resolved_mask(self, solution: Solution) -> np.ndarray:
        """A mask (m,): True while the densities are resolved, and the index by its nodes."""
        in_index = [state.resolved for state in solution]
        return super().resolved_mask(solution) & np.logical_and.accumulate(in_index)

    def observable_names(self, solution: Solution, single: bool) -> Sequence[str]:
        tail = "index_tail" not in self.constant(solution)
        return "order_parameter", "index_tail" if tail else "minimum"

    def constant(self, solution: Solution) -> set[str]:
        """The tail in the index, if it is 0 at all times because nothing is interpolated."""
        tail = solution.observables.get("index_tail")
        return {"index_tail"} if tail is not None and not tail.any() else set()


@Appearance.register(Characteristics)
class CharacteristicsAppearance(Appearance):
    """Characteristics: a few nodes that represent equal masses, followed through the flow."""

    states = "characteristics"
    carried = True
    has_concentration = True
    most_dots, most_curves, most_around = 512, 50, 50
    overlap = 6.0  # curves between which lies the same mass hardly overlap

    def vectors(
        self, states: Sequence[Characteristics], members: Sequence[Member]
    ) -> Iterator[np.ndarray]:
        return ((np.sqrt(state.masses)[:, None] * state.points).ravel() for state in states)

    def observable_names(self, solution: Solution, single: bool) -> Sequence[str]:
        # The speed takes the place of clusters as long as there are none.
        second = "cluster_mass" if solution.observables["cluster_count"].any() else "speed"
        return ["w2_to_dirac", second, "moments", "interaction_energy"]

    def points(self, state: Characteristics) -> np.ndarray:
        return state.points

    def clusters(self, state: Characteristics) -> Sequence[Any]:
        return state.clusters()

    def mean(self, state: Characteristics) -> np.ndarray:
        return state.mean_direction

    def sample(self, solution: Solution, member: Member, limit: int) -> DrawnSample:
        """Nodes of about equal mass: in pieces on the sphere, else at quantiles of a coordinate."""
        start, chart = solution[0], self.chart(solution.final)
        if chart is None:
            nodes, masses = equal_masses(start, int(np.log2(limit)))
            note = f"1/{len(nodes)} of the mass"
        else:
            nodes = quantiles(start, chart.of_nodes(start), limit)
            masses = np.full(limit, 1 / limit)
            note = f"{percent(1 / limit)} of the mass each"
        ends = self.clusters(solution.final)
        return DrawnSample(nodes, masses, self.colours(solution, nodes), ends, note)

    def colours(self, solution: Solution, nodes: np.ndarray) -> np.ndarray:
        """Colours of nodes, by the cluster within 0.1 radians of their ends."""
        ends, points = self.clusters(solution.final), solution.final.points[nodes]
        gaps = [np.linalg.norm(points - end.point, axis=1) for end in ends]
        return coloured(len(nodes), [gap < 2 * np.sin(GATHERED / 2) for gap in gaps])

    def coordinates(self, solution: Solution, member: Member) -> np.ndarray:
        chart = self.chart(solution.final)
        return np.array([chart.of_nodes(state) for state in solution])


class Finite(Appearance):
    """Finitely many tokens, whose replicas form an ensemble.

    Subclasses define `weighted(state, root)`, the positions times the roots of masses (..., n, 1),
    and `measured_names(state)`, names of observables, the most informative first.
    """

    weighted: Callable[[Any, np.ndarray], np.ndarray]
    measured_names: Callable[[Any], list[str]]

    carried = True
    has_concentration = True

    def symbols(self, state: Any) -> dict[str, str]:
        angle = rf"{np.degrees(LINKED_ANGLE):.1f}\degree"
        gap = f"{LINKED_ANGLE:.3f}" if self.flat(state) else angle  # in R^d a distance
        return {"cluster_count": f"clusters, gaps ${gap}$"}

    def members(self, solution: Solution, member: int | Member | None) -> list[Member]:
        if member is None:
            return [(0,) * len(solution.shape)]
        return choose_members(solution, member)

    def vectors(self, states: Sequence[Any], members: Sequence[Member]) -> Iterator[np.ndarray]:
        for state in states:
            places = self.weighted(state, np.sqrt(state.masses)[..., None])
            yield np.concatenate([places[index].ravel() for index in members])

    def observable_names(self, solution: Solution, single: bool) -> Sequence[str]:
        names: list[str] = self.measured_names(solution.final)
        if solution.model.noisy:  # clusters come and go
            names = ["order_parameter", "mean_cosine", *(n for n in names if n != "cluster_count")]
        return list(dict.fromkeys(names))


ROUND = ["order_parameter", "cluster_count", "interaction_energy", "effective_rank", "speed"]
HIGH = ["order_parameter", "cluster_count", "effective_rank", "interaction_energy", "speed"]
FLAT = ["spread", "cluster_count", "order_parameter", "speed", "effective_rank"]
GROWING = ["order_parameter", "cluster_count", "mean_radius"]  # where radii are part of the state


@Appearance.register(Gram)
class GramAppearance(Finite):
    """Inner products of tokens, whatever their dimension."""

    states = "inner products of tokens"

    def weighted(self, state: Gram, root: np.ndarray) -> np.ndarray:
        return root * state.G * np.swapaxes(root, -1, -2)

    def measured_names(self, state: Gram) -> list[str]:
        return HIGH


class Dots(Finite):
    """Tokens as points; a part of them if there are many."""

    states = "tokens"

    def weighted(self, state: Any, root: np.ndarray) -> np.ndarray:
        return root * state.x

    def points(self, state: Any) -> np.ndarray:
        return state.x

    def clusters(self, state: Any) -> Sequence[Any]:
        return clusters_with_room(state)

    def mean(self, state: Any) -> np.ndarray:
        mean = state.masses @ state.x
        return mean if np.linalg.norm(mean) > 1e-9 else np.array([1.0, 0.0, 0.0])

    def sample(self, solution: Solution, member: Member, limit: int) -> DrawnSample:
        """A sample evenly spread over the order of tokens, or along their axis if there is one."""
        first, last = (member_of(state, member) for state in (solution[0], solution.final))
        order, chart = np.arange(len(first)), self.chart(last)
        if chart is not None:
            order = np.argsort(chart.over_time(first.x[None])[0], kind="stable")
        tokens = order[evenly(len(first), limit)]
        ends = clusters_of_tokens(last)
        colours = coloured(len(first), [end.tokens for end in ends])
        tokens = tokens[np.argsort(colours[tokens] != theme.FAINT, kind="stable")]
        total = f" of {len(first)}" if len(tokens) < len(first) else ""
        note = f"{len(tokens)}{total} token{'s' if len(first) > 1 else ''}"
        return DrawnSample(tokens, first.masses[tokens], colours[tokens], ends, note)

    def coordinates(self, solution: Solution, member: Member) -> np.ndarray:
        x = np.stack([member_of(state, member).x for state in solution])
        return self.chart(solution.final).over_time(x)


@Appearance.register(Tokens)
class TokensAppearance(Dots):
    """Tokens on a sphere or in R^d."""

    def space(self, state: Tokens) -> type:
        return space_of_tokens(state.dimension, state.on_sphere)

    def measured_names(self, state: Tokens) -> list[str]:
        names = FLAT if not state.on_sphere else HIGH if state.dimension > 3 else ROUND
        return names if state.radii is None else [*GROWING, *names]


@Appearance.register(TorusTokens)
class TorusTokensAppearance(Dots):
    """Tokens with angles: of one angle they are drawn on the circle."""

    def space(self, state: TorusTokens) -> type:
        return space_of_angles(state.angles.shape[-1])

    def measured_names(self, state: TorusTokens) -> list[str]:
        return ["order_parameter", "interaction_energy", "speed"]


@Appearance.register(Equiangular)
class EquiangularAppearance(Appearance):
    """Equiangular tokens: one number for each member."""

    states = "equiangular tokens"
    carried = True

    def members(self, solution: Solution, member: int | Member | None) -> list[Member]:
        return all_members(solution, member)

    def observable_names(self, solution: Solution, single: bool) -> Sequence[str]:
        return "rho", "radius", "effective_rank", "interaction_energy", "speed"


@Appearance.register(Gaussian)
class GaussianAppearance(Appearance):
    """Normal laws: ellipses in the plane, variances in any dimension."""

    states = "Gaussians"
    carried = True
    has_concentration = True

    def space(self, state: Gaussian) -> type:
        return space_of_tokens(state.dimension, on_sphere=False)

    def vectors(
        self, states: Sequence[Gaussian], members: Sequence[Member]
    ) -> Iterator[np.ndarray]:
        """Laws divided by their norm plus the initial one: norm 1/2 at the start, 1 at infinity."""
        laws = [self.root_and_mean(state) for state in states]
        initial = norm(laws[0])
        return (law / ((norm(law) + initial) or 1.0) for law in laws)

    def root_and_mean(self, state: Gaussian) -> np.ndarray:
        """The symmetric root and the mean, whose norm is (int |x|^2 dmu)^(1/2)."""
        u, s, _ = np.linalg.svd(state.root)
        return np.column_stack([(u * s) @ u.T, state.mean]).ravel()

    def observable_names(self, solution: Solution, single: bool) -> Sequence[str]:
        return "spread", "covariance_rank", "order_parameter", "speed", "effective_rank"

    def constant(self, solution: Solution) -> set[str]:
        """The mean of a Gaussian that begins with mean 0 stays there."""
        mean = solution.observables.get("order_parameter")
        return {"mass"} | ({"order_parameter"} if mean is not None and not mean.any() else set())
