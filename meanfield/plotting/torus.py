"""Maps of densities, tokens and nodes on the torus over two angles."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from ..core.annotations import PassedOn
from ..results.solution import Solution
from ..spaces import Torus
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import TorusTokens
from . import curves, theme
from .fields import choose_scale, density_bar
from .labels import Member
from .layouts import DrawnMembers, Panels
from .registry import figure
from .spaces import AROUND
from .sphere import DotLayer, mark_clusters

MOST_SHOWN_POINTS = 256  # in each direction of a map


class FundamentalSquare:
    """The first two angles in (-pi, pi]."""

    @property
    def outlines(self) -> list[np.ndarray]:
        return [np.pi * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]])]

    def place(self, points: np.ndarray) -> np.ndarray:
        return np.arctan2(points[..., 1:4:2], points[..., 0:4:2])


class SquareDots(DotLayer):
    """Dots on the square, whole across its edges: parts beyond one appear at the opposite one."""

    radius = float(np.sqrt(2 * np.pi))

    def visible(self, places: np.ndarray, widths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        turns = 2 * np.pi * np.array([p for p in product((-1, 0, 1), repeat=2) if any(p)])
        images = places + turns[:, None]
        inside = (np.abs(images) < np.pi + widths[:, None] / 2).all(axis=-1)
        repeated = np.nonzero(inside)[1]
        index = np.append(np.arange(len(places)), repeated)
        return index, np.concatenate([places, images[inside]])


def plane_values(density: Density) -> np.ndarray:
    """Density of the first two angles from -pi on, with both ends, (n + 1, n + 1)."""
    space = density.space
    n, m = space.angles.size, space.circles
    values = density.values.reshape((n,) * m)
    values = values.mean(axis=tuple(range(2, m))) if m > 2 else values
    step = max(1, n // MOST_SHOWN_POINTS)
    shown = np.roll(values, (n // 2, n // 2), axis=(0, 1))[::step, ::step]
    return np.pad(shown, ((0, 1), (0, 1)), mode="wrap")


@figure("map", Density, Torus, sheet=(6, 1.0, 3))
def torus_map(panels: Panels, *, scale: str = "auto") -> None:
    """Maps of the density over two angles at several times.

    Of three angles the law of the first two is shown, and the axes say so. The mark on the colour
    bar is the uniform state, 1. Times in red are not resolved.

    Parameters
    ----------
    solution : Solution
        Densities on a torus of two or three angles.
    times : sequence of float, optional
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the density moves equally far between them; in an `ax` the last.
    count : int, optional
        How many, where `times` is not given; by default 6, or 3 for several members.
    scale : {"auto", "linear", "log", "power"}
        Colour scale, common to all panels; "auto" is logarithmic if a peak exceeds 30 times the
        mean.

    Raises
    ------
    ValueError
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are not densities on a torus of two or three angles.
    """
    values = [plane_values(panels.state(i, m)) for i in panels.times for m in panels.members]
    density_scale = choose_scale(np.array([[v.min(), v.max()] for v in values]), scale)
    colours = density_scale.colours

    panels.each(lambda ax, member, i: [draw_plane(ax, panels.state(i, member), **colours)])
    frame_squares(panels)
    density_bar(panels, density_scale, r"density $\mu_t(\theta_1, \theta_2)$")


def draw_plane(ax: Axes, density: Density, **style: PassedOn) -> Artist:
    """Draw a single density over the first two angles."""
    shown = plane_values(density)
    edges = np.linspace(-np.pi, np.pi, len(shown))
    return ax.pcolormesh(edges, edges, shown.T, shading="gouraud", rasterized=True, **style)


def frame_squares(panels: Panels) -> None:
    """Set equal scales of both angles from -pi to pi, named where there is room."""
    angles = panels.state(-1, panels.members[0]).dimension // 2
    of_all = "" if angles == 2 else f" of {angles}"
    few = replace(AROUND, ticks=np.array([-np.pi, 0.0, np.pi]), labels=AROUND.labels[::2])
    first, second = (replace(few, name=rf"angle $\theta_{k}${of_all}") for k in (1, 2))
    panels.frame(first, second)
    for ax in panels.axes:
        ax.set_aspect("equal")


@figure("map", (Characteristics, TorusTokens), Torus, sheet=(6, 1.0, 3))
def torus_dots(panels: Panels, *, clusters: bool = True, density: Solution | None = None) -> None:
    """Tokens, or nodes that stand for equal masses, over two angles at several times, as dots.

    Of three angles the first two are shown, and the axes say so. A dot has the colour of the
    cluster in which it ends, grey in none, and an area proportional to its mass; at most 5000
    tokens are drawn, or 512 nodes. Opposite sides of the square are the same.

    Parameters
    ----------
    solution : Solution
        Tokens or characteristics on a torus of two or three angles.
    times, count
        As for `rings`.
    clusters : bool
        Whether to mark the clusters with their share of the mass.
    density : Solution, optional
        Densities on the torus, of a single run: a map of the one saved nearest to each time is
        drawn in grey beneath.

    Raises
    ------
    ValueError
        If a time lies outside the solution, `density` is an ensemble or has another number of
        angles, the member does not exist, or there are too many.
    TypeError
        If the states are neither tokens nor characteristics on a torus of two or three angles, or
        those of `density` are not densities there.
    """
    layer, square = SquareDots(panels), FundamentalSquare()
    beneath = None if density is None else draw_beneath(density, panels.solution)

    def draw(ax: Axes, member: Member, i: int) -> list[Artist]:
        state = panels.state(i, member)
        artists = [layer.paint(ax, None, square, member, state)]
        artists += mark_clusters(ax, square, state) if clusters else []
        if beneath is not None:
            artists.append(beneath(ax, float(panels.solution.t[i])))
        return artists

    frame_squares(panels)
    panels.each(draw)
    layer.explain()


def draw_beneath(density: Solution, solution: Solution) -> Callable[[Axes, float], Artist]:
    """A function that draws in grey the density saved nearest to a time, on one scale."""
    curves.check_overlay(density, solution, Torus)
    view = DrawnMembers(density, [()])
    values = [plane_values(view.law(i)) for i in range(len(density))]
    ends = np.array([[v.min(), v.max()] for v in values])
    norm = choose_scale(ends, "power").norm

    def draw(ax: Axes, t: float) -> Artist:
        nearest = view.law(curves.saved_at(density, t))
        return draw_plane(ax, nearest, norm=norm, cmap=theme.GREY_MAP, zorder=0)

    return draw
