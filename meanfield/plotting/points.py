"""Points: tokens as dots around the circle, in the plane, or on the principal axes of a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.lines import Line2D

from ..core.checks import whole_number
from ..results.solution import Solution
from ..spaces import Circle, Sphere, Zonal
from ..spaces.characteristics import Characteristics
from ..states import State, Tokens, TorusTokens
from . import curves, theme
from .appearance import DrawnSample, TokensAppearance, appearance_of, evenly
from .fields import choose_scale, profiles
from .labels import Member, member_of, percent
from .layouts import DrawnMembers, Panels, square
from .registry import figure
from .spaces import UNIT_CIRCLE, Euclidean, Hypersphere

LARGEST_DOT = 20.0  # times the mean mass: heavier tokens have dots of this size
LARGE = 500  # more dots than these are an image inside vector formats
TIMES_OF_AXES = 32  # saved times from which the principal axes are found
PLANE_MARGIN = 0.06
KEY_SIZE = 4.0


def dots(ax: Axes, sample: DrawnSample, places: np.ndarray) -> PathCollection:
    """Draw the sample as dots with areas proportional to masses; `places` (n, 2) of all points."""
    count = len(sample.indices)
    area, (x, y) = float(np.clip(1500 / count, 2.0, 22.0)), places[sample.indices].T
    return ax.scatter(
        x,
        y,
        s=area * np.minimum(sample.sizes, LARGEST_DOT),
        c=list(sample.colours),
        alpha=curves.opacity(count),
        linewidths=0,
        zorder=3,
        rasterized=count > LARGE,
    )


# Around the circle ---------------------------------------------------------------------------


@figure("polar", (Tokens, TorusTokens), Circle, sheet=(6, 1.0, 3))
@figure("polar", Characteristics, Circle, Zonal, sheet=(6, 1.0, 3))
def rings(panels: Panels, *, clusters: bool = True, density: Solution | None = None) -> None:
    """Tokens, or nodes that stand for equal masses, on the unit circle at several times, as dots.

    Axisymmetric measures are shown on a meridian and on the one opposite, the axis upright.
    A dot has the colour of the cluster in which it ends, grey in none, and an area proportional to
    its mass. Clusters are named by their share of the mass.

    Parameters
    ----------
    solution : Solution
        Tokens or characteristics on the circle, or axisymmetric characteristics.
    times : sequence of float, optional
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the measure moves equally far between them; in an `ax` the last.
    count : int, optional
        How many, where `times` is not given; by default 6, or 3 for several members.
    clusters : bool
        Whether to write the shares of clusters.
    density : Solution, optional
        Densities on the circle, of a single run: the one saved nearest to each time is drawn
        around the circle, as by `polar`.

    Raises
    ------
    ValueError
        If a time lies outside the solution, `density` is an ensemble, the member does not exist,
        or there are too many.
    TypeError
        If the states are neither tokens on the circle nor characteristics there or axisymmetric,
        or those of `density` are not densities on the circle.
    """
    look, chart, solution = panels.look, panels.chart, panels.solution
    around = None if density is None else draw_around(density, solution)
    samples = panels.samples(look.most_around)

    room = 1.45 if around is None else 2.1
    for ax in panels.axes:
        circle(ax)
        curves.name_angles(ax, chart.around, 0.8)
        ax.set(xlim=(-room, room), ylim=(-room + 0.15, room - 0.15))

    def draw(ax: Axes, member: Member, i: int) -> list[Artist]:
        state = panels.state(i, member)
        places, sample = look.points(state)[:, [0, -1]], samples[member]
        artists: list[Artist] = [dots(ax, sample, places * [side, 1]) for side in chart.sides]
        if around is not None:
            return artists + around(ax, float(solution.t[i]))
        return artists + (name_clusters(ax, state) if clusters else [])

    panels.each(draw)
    explain_dots(panels, samples, pairs=len(chart.sides) > 1)


def draw_around(density: Solution, solution: Solution) -> Callable[[Axes, float], list[Artist]]:
    """A function that draws around the circle the density saved nearest to a time, on one scale."""
    curves.check_overlay(density, solution)
    densities = profiles(DrawnMembers(density, [()]), range(len(density.t)))[1]
    scale = choose_scale(densities, heavy="power")

    def draw(ax: Axes, t: float) -> list[Artist]:
        curve = curves.ring(*curves.profile_at(density, t), scale)
        return [*ax.plot(*curve, color=theme.INK, linewidth=1.1)]

    return draw


def circle(ax: Axes) -> None:
    """The unit circle."""
    ax.plot(*UNIT_CIRCLE, color=theme.FAINT, linewidth=0.7, zorder=1)


def explain_dots(
    panels: Panels, samples: dict[Member, DrawnSample], *, pairs: bool = False
) -> None:
    """Write the meaning of a dot beneath the figure."""
    if panels.inside:
        return
    dot = Line2D([], [], color=theme.PALETTE[0], marker="o", linestyle="", markersize=KEY_SIZE)
    text = samples[panels.members[0]].note + " pair" * pairs
    if any(len(set(sample.colours)) > 1 for sample in samples.values()):
        text += ", coloured by the cluster in which it ends"
        text = text.replace("tokens, coloured", "tokens, each coloured")
    panels.figure.legend([dot], [text], loc="outside lower center", handletextpad=0.2)


def name_clusters(ax: Axes, state: State) -> list[Artist]:
    """Shares of the mass beside the circle in the plane of the first and the last axis."""
    texts: list[Artist] = []
    for end in appearance_of(state).clusters(state):
        x, y = 1.23 * end.point[[0, -1]] / np.linalg.norm(end.point)
        texts.append(ax.text(x, y, percent(end.mass), fontsize=8, **curves.CENTRED))
    return texts


# In the plane, and on principal axes ---------------------------------------------------------


@dataclass(frozen=True)
class PrincipalPlane:
    """The plane through `centre` (d,) with the orthonormal `axes` (2, d).

    Attributes
    ----------
    shares : ndarray, (2,), or None
        Shares of the second moment of the run along the axes; None if the tokens lie in the plane.
    round : bool
        Whether the tokens lie on the unit sphere.
    """

    centre: np.ndarray
    axes: np.ndarray
    shares: np.ndarray | None
    round: bool = False

    def place(self, x: np.ndarray) -> np.ndarray:
        """Projections (..., 2) of points (..., d)."""
        return (x - self.centre) @ self.axes.T

    @property
    def names(self) -> tuple[str, str]:
        """Names of the axes."""
        if self.shares is None:
            return "$x_1$", "$x_2$"
        first, second = (f"{100 * share:.0f}%" for share in self.shares)
        return f"axis 1 ({first})", f"axis 2 ({second})"


def plane_of(solution: Solution, member: Member) -> PrincipalPlane:
    """The plane of tokens in R^2, or else that of the two principal axes of the run.

    The axes are eigenvectors of sum_i m_i x_i x_i^T on a sphere, and of the covariance in R^d,
    averaged over at most 32 saved times. The mean of the last state lies to the right and above.
    """
    last = member_of(solution.final, member)
    d = last.dimension
    if d == 2 and not last.on_sphere:
        return PrincipalPlane(np.zeros(2), np.eye(2), None)
    indices = evenly(len(solution), TIMES_OF_AXES)
    states = [member_of(solution[i], member) for i in indices]
    centre = np.zeros(d)
    if not last.on_sphere:
        centre = np.mean([state.masses @ state.x for state in states], axis=0)
    second = np.zeros((d, d))
    for state in states:
        weighted = np.sqrt(state.masses)[:, None] * (state.x - centre)
        second += weighted.T @ weighted / len(states)
    values, vectors = np.linalg.eigh(second)
    axes = vectors[:, [-1, -2]].T
    signs = np.where(axes @ (last.masses @ last.x - centre) < 0, -1.0, 1.0)
    shares = values[[-1, -2]] / (values.sum() or 1.0)
    return PrincipalPlane(centre, signs[:, None] * axes, shares, last.on_sphere)


@figure("projection", Tokens, Circle, Sphere, Hypersphere, Euclidean, sheet=(6, 1.0, 3))
def projection(panels: Panels, *, trails: bool = False) -> None:
    """Tokens on the two principal axes of the run at several times, each a dot.

    The axes are those of the second moment, averaged over all times, so that they stay the same;
    their names tell the share of it that each holds. A dot has the colour of the cluster in which
    its token ends, grey in none, and an area proportional to its mass. The projection of a sphere
    lies inside the circle.

    Parameters
    ----------
    solution : Solution
        Tokens in any dimension above 1; in R^2 they are drawn in their own plane.
    times, count
        As for `rings`.
    trails : bool
        Whether to draw the paths so far, of at most 300 tokens.

    Raises
    ------
    ValueError
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are not tokens in more than one dimension.
    """
    look, times = panels.look, range(len(panels.solution))
    samples, traces = panels.samples(look.most_dots), panels.samples(look.most_curves)

    planes = {member: plane_of(panels.solution, member) for member in panels.members}
    shown = times if trails else panels.times
    places = {(m, i): planes[m].place(panels.state(i, m).x) for m in planes for i in shown}
    for member, row in panels.views:
        frames = [places[member, i] for i in panels.times]
        for ax, _ in row:
            has_names = ax is row[0][0] and (panels.film is not None or not member)
            plane_axes(ax, planes[member], samples[member], frames, named=has_names)

    def draw(ax: Axes, member: Member, i: int) -> list[Artist]:
        artists: list[Artist] = [dots(ax, samples[member], places[member, i])]
        if trails:
            paths = traces[member]
            so_far = np.stack([places[member, j][paths.indices] for j in range(i + 1)], axis=1)
            style = {"colors": list(paths.colours), "linewidths": 0.6, "alpha": 0.35, "zorder": 2}
            artists.append(ax.add_collection(LineCollection(so_far, **style), autolim=False))
        return artists

    panels.each(draw)
    explain_dots(panels, samples)


def plane_axes(
    ax: Axes, plane: PrincipalPlane, sample: DrawnSample, frames: Sequence[np.ndarray], *,
    named: bool = True,
) -> None:  # fmt: skip
    """Set equal scales that show the sample in all `frames`; draw the circle of a sphere."""
    if plane.round:
        circle(ax)
        low, high = np.full(2, -1.0), np.ones(2)
    else:
        places = np.concatenate([place[sample.indices] for place in frames])
        low, high = places.min(axis=0), places.max(axis=0)
    square(ax, low, high, PLANE_MARGIN)
    if named:
        ax.set(xlabel=plane.names[0], ylabel=plane.names[1])


@figure("paths", Tokens, Circle, Sphere, Hypersphere, Euclidean, panels=(5.0, 4.6))
def paths(panels: Panels, *, count: int = TokensAppearance.most_curves) -> None:
    """The paths of tokens in the plane, or on the two principal axes of the run.

    Paths begin in a small ring and end in a dot; they have the colour of the cluster in which
    they end, grey in none. The axes are those of `projection`.

    Parameters
    ----------
    solution : Solution
        Tokens in any dimension above 1.
    count : int
        At most how many paths.

    Raises
    ------
    ValueError
        If `count` is not positive, a member does not exist, or too many are chosen.
    TypeError
        If the states are not tokens in more than one dimension.
    """
    solution, samples = panels.solution, panels.samples(whole_number("count", count))
    for panel, (index, sample) in zip(panels.axes, samples.items(), strict=True):
        plane = plane_of(solution, index)
        frames = [plane.place(member_of(state, index).x) for state in solution]
        plane_axes(panel, plane, sample, frames)
        colours = list(sample.colours)
        places = np.stack(frames, axis=1)[sample.indices]
        style = {"linewidths": 0.8, "alpha": curves.opacity(len(colours))}
        panel.add_collection(LineCollection(places, colors=colours, zorder=2, **style))
        (first_x, first_y), (last_x, last_y) = places[:, 0].T, places[:, -1].T
        starts = {"facecolors": "none", "edgecolors": colours, "linewidths": 0.6}
        panel.scatter(first_x, first_y, s=9, alpha=0.7, zorder=2.5, **starts)
        sizes = 14 * np.minimum(sample.sizes, LARGEST_DOT)
        panel.scatter(last_x, last_y, s=sizes, c=colours, linewidths=0, alpha=0.9, zorder=3)
        curves.name_sample(panel, solution, index, sample)
