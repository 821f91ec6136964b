"""Tokens as they are drawn: some of them where there are many, coloured by where they end."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.clusters import MANY, cluster_labels
from ..states import Tokens
from . import ensemble, theme
from .portions import GATHERED
from .sphere_sheet import member_of

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = [
    "Crowd",
    "Gathering",
    "crowd_of",
    "first_member",
    "gatherings",
    "grey_first",
    "named",
    "thinned",
]

CLUSTERED = 0.75  # of the mass, at least, is in clusters, or
HEAVY = 0.25  # in one of them; else there is none to speak of
NAMED = 0.03  # of the mass, at least, is in a cluster whose share is written
APART = 0.3  # radians between two such clusters


@dataclass(frozen=True)
class Gathering:
    """Tokens in one place: its mean `point`, (d,), their `mass`, and which they are."""

    point: np.ndarray
    mass: float
    tokens: np.ndarray


@dataclass(frozen=True)
class Crowd:
    """The tokens of one member that are drawn.

    Attributes
    ----------
    tokens : ndarray of int
        Which they are.
    masses : ndarray
        Their masses at first.
    colours : ndarray of object
        Of the cluster that each ends in; grey in none; the first colour if there are no clusters.
    ends : list of Gathering
        The clusters of the last state, the heaviest first.
    count : int
        How many tokens there are.
    """

    tokens: np.ndarray
    masses: np.ndarray
    colours: np.ndarray
    ends: list[Gathering]
    count: int

    @property
    def note(self) -> str:
        """ "300 of 100000 tokens", or "300 tokens" if that is all."""
        drawn = len(self.tokens)
        of = f" of {self.count}" if drawn < self.count else ""
        return f"{drawn}{of} token{'s' if self.count > 1 else ''}"

    @property
    def sizes(self) -> np.ndarray:
        """Masses over their mean."""
        return self.masses / self.masses.mean()


def first_member(solution: "Solution", member: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """A member, by default the first; () for a single run."""
    if member is None:
        return (0,) * len(solution.shape)
    return ensemble.choose(solution, member)[0]


def crowd_of(
    solution: "Solution", member: tuple[int, ...], most: int, along: np.ndarray | None = None
) -> Crowd:
    """At most `most` tokens of a member, evenly spread over their order, or that of `along`."""
    first, last = (member_of(state, member) for state in (solution[0], solution.final))
    order = np.arange(len(first)) if along is None else np.argsort(along, kind="stable")
    tokens = order[_evenly(len(first), most)]
    ends = gatherings(last)
    colours = np.full(len(first), theme.FAINT if ends else theme.PALETTE[0], dtype=object)
    for i, end in enumerate(ends):
        colours[end.tokens] = theme.PALETTE[i % len(theme.PALETTE)]
    return Crowd(tokens, first.masses[tokens], colours[tokens], ends, len(first))


def gatherings(tokens: Tokens) -> list[Gathering]:
    """The clusters of a single set, the heaviest first; none if most tokens are by themselves.

    A cluster is two tokens or more, linked by single linkage, that stay within 0.1 of their mean
    in the root mean square. Of so few tokens that each can have a colour, it may be one.
    """
    kept = np.arange(len(tokens))
    if len(tokens) > MANY and tokens.dimension > 3:
        kept = _evenly(len(tokens), MANY // 4)
    x, masses = tokens.x[kept], tokens.masses[kept]
    labels = cluster_labels(Tokens(x, on_sphere=tokens.on_sphere))
    least = 1 if len(tokens) <= len(theme.PALETTE) else 2
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    found = [_gathering(x, masses, part) for part in parts if len(part) >= least]
    found = [g for g in found if g is not None]
    whole = [Gathering(g.point, g.mass / masses.sum(), kept[g.tokens]) for g in found]
    shares = [g.mass for g in whole]
    if sum(shares) < CLUSTERED and max(shares, default=0.0) < HEAVY:
        return []
    return sorted(whole, key=lambda g: (-round(g.mass, 12), int(g.tokens[0])))


def named(tokens: Tokens) -> list[Gathering]:
    """Clusters on the sphere whose shares can be written without one hiding another."""
    chosen: list[Gathering] = []
    for one in gatherings(tokens):
        near = any(np.linalg.norm(one.point - other.point) < APART for other in chosen)
        if one.mass >= NAMED and not near:
            chosen.append(one)
    return chosen


def _gathering(x: np.ndarray, masses: np.ndarray, part: np.ndarray) -> Gathering | None:
    mass = masses[part].sum()
    if not mass > 0:
        return None
    shares = masses[part] / mass
    mean = shares @ x[part]
    wide = shares @ ((x[part] - mean) ** 2).sum(axis=1) > GATHERED**2
    return None if wide else Gathering(mean, float(mass), part)


def grey_first(crowd: Crowd) -> np.ndarray:
    """An order in which to draw the tokens: those that end in no cluster beneath the others."""
    return np.argsort(crowd.colours != theme.FAINT, kind="stable")


def thinned(state: Any, most: int) -> Any:
    """At most `most` tokens of a single set, evenly spread over their order, of total mass 1."""
    if len(state) <= most:
        return state
    kept = _evenly(len(state), most)
    masses = state.masses[kept] / state.masses[kept].sum()
    if isinstance(state, Tokens):
        return Tokens(state.x[kept], masses, on_sphere=state.on_sphere)
    return type(state)(state.G[np.ix_(kept, kept)], masses)


def _evenly(count: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))
