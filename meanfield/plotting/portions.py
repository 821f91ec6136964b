"""Characteristics as a few portions of equal mass: which nodes to draw, and where they are.

The masses of the nodes differ by many orders of magnitude, so that a drawing of all of them would
show the quadrature and not the measure.
"""

from typing import TYPE_CHECKING

import numpy as np

from ..spaces import Circle
from ..spaces.characteristics import Characteristics, Cluster
from . import theme

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["angles_along", "colours_of", "final_clusters", "percent", "pieces", "quantiles"]

GATHERED = 0.1  # radians: a node nearer to a cluster belongs to it


def angles_along(state: Characteristics) -> np.ndarray:
    """Angles of the nodes on the circle, continuous in time; or polar angles in [0, pi]."""
    if isinstance(state.geometry, Circle):
        return state.coordinates + np.arctan2(-state.limit[1], -state.limit[0])
    return 2 * np.arctan(np.exp(state.coordinates * state.limit[-1]))


def quantiles(state: Characteristics, count: int) -> np.ndarray:
    """Nodes, in order of their angles, with the mass 1 / `count` between each two, (count,).

    The first and the last leave half as much outside. All of this to the mass of one node.
    """
    order = np.argsort(angles_along(state), kind="stable")
    below = np.cumsum(state.masses[order]) - state.masses[order] / 2
    wanted = (np.arange(count) + 0.5) / count * state.mass
    after = np.clip(np.searchsorted(below, wanted), 1, below.size - 1)
    nearer = np.abs(below[after - 1] - wanted) < np.abs(below[after] - wanted)
    return order[after - nearer]


def pieces(state: Characteristics, halvings: int) -> tuple[np.ndarray, np.ndarray]:
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
        heavy = part[state.masses[part] > 0.1 * state.masses[part].max()]
        middles[i] = heavy[np.linalg.norm(state.points[heavy] - mean, axis=1).argmin()]
    return middles, np.array([state.masses[part].sum() for part in parts])


def _halved(state: Characteristics, part: np.ndarray) -> list[np.ndarray]:
    """The nodes `part` cut in two; each half keeps at least one node."""
    masses, points = state.masses[part], state.points[part]
    if len(part) < 2 or not masses.sum() > 0:
        return [part]
    centred = points - masses @ points / masses.sum()
    _, directions = np.linalg.eigh((centred * masses[:, None]).T @ centred)
    order = np.argsort(centred @ directions[:, -1], kind="stable")
    below = np.cumsum(masses[order])
    cut = np.clip(np.searchsorted(below, below[-1] / 2) + 1, 1, len(part) - 1)
    if cut > 1 and below[cut - 1] - below[-1] / 2 > below[-1] / 2 - below[cut - 2]:
        cut -= 1
    return [part[order[:cut]], part[order[cut:]]]


def final_clusters(solution: "Solution") -> list[Cluster]:
    """The clusters of the last state, the heaviest first."""
    return solution.final.clusters()


def colours_of(solution: "Solution", nodes: np.ndarray) -> list[str]:
    """A colour for each node: that of the cluster it ends in, grey if it ends in none.

    Where there are no clusters at the end, all have the first colour.
    """
    clusters, points = final_clusters(solution), solution.final.points[nodes]
    colours = np.full(len(nodes), theme.FAINT if clusters else theme.PALETTE[0], dtype=object)
    for i, cluster in enumerate(clusters):
        near = np.linalg.norm(points - cluster.point, axis=1) < 2 * np.sin(GATHERED / 2)
        colours[near] = theme.PALETTE[i % len(theme.PALETTE)]
    return list(colours)


def percent(mass: float) -> str:
    """A share of the mass as a label."""
    return f"{100 * mass:.0f}%"
