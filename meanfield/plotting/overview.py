"""One page for every run: where the state goes, above the observables that tell most of it.

What the upper part shows is registered by `upper_part` for kinds of states and spaces, as bands of
panels. States without one have a page of observables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from ..spaces import Circle, Sphere, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Equiangular, Gaussian, Gram, Tokens
from . import resolution, theme
from .appearance import appearance_of
from .curves import draw_polar, draw_snapshots, draw_trajectories, time_bar
from .fields import draw_inner_products, draw_spacetime, draw_token_spacetime
from .gaussians import draw_disc, draw_ellipses, draw_variances
from .labels import Member, label_of_member, mathematical
from .layouts import Panels, View, grid, panels_in, title_page, views
from .observables import draw_observables, groups_of, key_of_groups, telling
from .points import draw_paths, draw_projection
from .projections import Mollweide
from .registry import Registry, check_options, figure, find_figure, options_of
from .spaces import Euclidean, Flat, Hypersphere, Line, Plane
from .sphere import DotLayer, FieldLayer, Layer, name_sides, pair_for
from .times import is_logarithmic, pick_times, time_axis

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["Band", "draw_gaps", "overview", "upper_part"]

PAIRS = 5  # times at which the sphere, or a projection, is shown
SNAPSHOTS = 6
OWN = ["member", "title", "log_time"]
PARTS = Registry()


@dataclass(frozen=True)
class Band:
    """A band across the page, `height` inches high, and what draws in it."""

    height: float
    draw: Callable[[SubFigure], object]


def upper_part(
    states: type | tuple[type, ...], *spaces: type, single: str | None = None
) -> Callable:
    """Decorate what an overview shows above the observables of these states on these spaces.

    The function takes a solution and the members to show, then options by keyword, and returns
    bands. With an option `log_time` it is told whether times are logarithmic.

    Parameters
    ----------
    single : str, optional
        The kind of figure that is the overview of a single saved time; by default the upper part.
    """

    def register(bands: Callable) -> Callable:
        bands.single = single  # type: ignore[attr-defined]
        for state in states if isinstance(states, tuple) else (states,):
            for space in spaces or (object,):
                PARTS.add("", state, space, bands)
        return bands

    return register


@figure("overview")
def overview(
    solution: "Solution",
    *,
    member: int | Member | None = None,
    title: str | None = None,
    **options: Any,
) -> Figure:
    """One page: the states over time, or at several times, above their observables.

    Of an ensemble of densities all members are shown, at most nine; of replicas of tokens the
    first one, above the observables of all. A single saved time is shown without observables.

    Parameters
    ----------
    solution : Solution
        Of any states.
    member : int or tuple of int, optional
        Member of an ensemble: then the observables are also those of this member alone.
    title : str, optional
        Heading; by default the model, and none if it is "".
    **options
        `log_time`, where something runs over logarithmic times, as for `observables`; of densities
        `scale`, as for `spacetime`; on the sphere `seen_from` and `clusters`, as for
        `orthographic`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If the member does not exist, there are too many, or there are fewer than two times above
        0 with `log_time`.
    TypeError
        For an option that the upper part of the page does not have.
    """
    part = PARTS.find(solution)
    known = options_of(part) if part else ["log_time"]
    check_options(solution, "kind='overview'", options, ["member", "title", *known])
    members = appearance_of(solution.final).members(solution, member)
    if part is None or (len(solution) == 1 and part.single):
        return _one_figure(solution, part, members, member, title, options)
    log_time = options.pop("log_time", None)
    if "log_time" in known:
        log_time = options["log_time"] = is_logarithmic(solution, log_time)
    alone = len(members) == 1 and not appearance_of(solution.final).replicas
    with theme.style():
        bands = part(solution, members, **options)
        if len(solution) > 1:
            names = telling(solution, 4, single=alone)
            shown = (members[0] or None) if alone else member

            def measured(bottom: SubFigure) -> None:
                panels = panels_in(bottom, len(names), 2)
                style = {"columns": 2, "log_time": log_time}
                draw_observables(bottom, panels, solution, names, shown, **style)

            bands.append(Band(0.1 + 2.0 * -(-len(names) // 2), measured))
        heights = [band.height for band in bands]
        page = theme.figure(width=7.5 if alone else 8.0, height=sum(heights) + 0.4)
        parts = np.ravel(page.subfigures(len(bands), 1, height_ratios=heights))
        for band, place in zip(bands, parts, strict=True):
            band.draw(place)
        return title_page(page, solution, title)


def _one_figure(
    solution: "Solution",
    part: Callable | None,
    members: list[Member],
    member: int | Member | None,
    title: str | None,
    options: dict[str, Any],
) -> Figure:
    """The figure that takes the place of the page: of a single time, or of unknown states."""
    draw = find_figure(solution, part.single if part else "observables")
    if appearance_of(solution.final).replicas:
        member = members[0] or None
    given = {"member": member, "title": title, **options}
    return draw(solution, **{name: given[name] for name in options_of(draw) if name in given})


# Densities -----------------------------------------------------------------------------------


@upper_part(Density, Circle, Zonal, single="snapshots")
def _over_the_angle(solution, members, *, scale="auto"):
    if len(members) > 1:
        height = 0.4 + 1.7 * -(-len(members) // 3)
        return [
            Band(height, lambda top: draw_spacetime(grid(top, members, solution), solution, scale))
        ]

    def curves(middle: SubFigure) -> None:
        times = pick_times(solution, members, None, SNAPSHOTS)
        draw_snapshots(grid(middle, members, solution), solution, times, scale)

    return [
        Band(2.5, lambda top: draw_spacetime(grid(top, members, solution), solution, scale)),
        Band(3.0, curves),
    ]


@upper_part(Density, Circle, single="snapshots")
def _over_and_around(solution, members, *, scale="auto"):
    """Snapshots also around the circle, with one bar of times."""
    bands = _over_the_angle(solution, members, scale=scale)
    if len(members) > 1:
        return bands

    def curves(middle: SubFigure) -> None:
        over, around = middle.subplots(1, 2, width_ratios=[1.2, 1.0])
        times = pick_times(solution, members, None, SNAPSHOTS)
        left, right = (Panels(middle, [ax], members, 1) for ax in (over, around))
        draw_snapshots(left, solution, times, scale, bar=False)
        draw_polar(right, solution, times, scale, bar=False)
        time_bar(Panels(middle, [over, around], members, 1), solution, times)

    return [bands[0], Band(3.0, curves)]


@upper_part(Density, Sphere)
def _maps(solution, members, *, seen_from=None, clusters=True, scale="auto"):
    """Maps at several times, and the last state from two sides; of several members one map each."""
    if len(members) > 1:
        return [
            Band(
                0.5 + 1.3 * -(-len(members) // 3),
                lambda top: _last_maps(top, solution, members, scale),
            )
        ]
    shown = pick_times(solution, members, None, SNAPSHOTS)
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)

    def maps(top: SubFigure) -> None:
        axes = panels_in(top, len(shown), columns)
        (row,) = views(solution, [axes], members, shown)
        FieldLayer(solution, scale).draw(top, [(view, Mollweide()) for view in row], rows=rows)

    def sides(middle: SubFigure) -> None:
        _pairs(
            middle,
            solution,
            members[0],
            shown[-1:],
            FieldLayer(solution, scale),
            seen_from,
            clusters,
        )

    return [Band((3.2, 1.8, 1.4)[columns - 1] * rows, maps), Band(3.5, sides)]


def _last_maps(top: SubFigure, solution: "Solution", members: list[Member], scale: str) -> None:
    target = grid(top, members, solution)
    known = bool(resolution.resolved_states(solution)[-1])
    time = f"$t = {mathematical(float(solution.t[-1]), 4)}$"
    placed = []
    for ax, member in zip(target.axes, members, strict=True):
        state = solution.final[member]
        placed.append((View(ax, state, member, f"{ax.get_title()}, {time}", known), Mollweide()))
    FieldLayer(solution, scale).draw(top, placed, rows=target.rows)


def _pairs(
    figure: SubFigure,
    solution: "Solution",
    member: Member,
    shown: np.ndarray,
    layer: Layer,
    seen_from: Any,
    clusters: bool,
) -> None:
    """One member from two sides at several times in a row; the discs of a single one are beside."""
    axes = panels_in(figure, len(shown), len(shown))
    (row,) = views(solution, [axes], [member], shown)
    pair = pair_for(row[-1].state, seen_from, beside=len(shown) == 1)
    layer.draw(figure, [(view, pair) for view in row], clusters=clusters)
    axes[0].set_ylabel(label_of_member(solution, member), labelpad=24)
    name_sides(axes[0], pair)


# Points --------------------------------------------------------------------------------------


@upper_part((Characteristics, Tokens), Sphere, single="orthographic")
def _dots(solution, members, *, seen_from=None, clusters=True, log_time=None):
    shown = pick_times(solution, members, None, PAIRS)

    def pairs(top: SubFigure) -> None:
        _pairs(top, solution, members[0], shown, DotLayer(solution), seen_from, clusters)

    return [Band(3.1, pairs)]


@upper_part(Characteristics, Circle, Zonal, single="distribution")
@upper_part(Tokens, Line, single="observables")
def _trajectories(solution, members, *, log_time=None):
    def curves(top: SubFigure) -> None:
        draw_trajectories(top.subplots(), solution, members[0], log_time=log_time)

    return [Band(3.4, curves)]


@upper_part(Tokens, Circle, single="polar")
def _around_the_circle(solution, members, *, log_time=None):
    """Trajectories; with noise, where tokens never come to rest, a space-time map."""
    if not solution.model.noisy:
        return _trajectories(solution, members, log_time=log_time)
    return [_map(solution, members[0], draw_token_spacetime, 3.4, log_time)]


@upper_part(Gram, single="inner_products")
@upper_part(Tokens, Hypersphere, single="inner_products")
def _inner_products(solution, members, *, log_time=None):
    return [_map(solution, members[0], draw_inner_products, 3.2, log_time)]


def _map(
    solution: "Solution", member: Member, draw: Callable, height: float, log_time: bool | None
) -> Band:
    def panel(top: SubFigure) -> None:
        ax = top.subplots()
        ax.set_title(label_of_member(solution, member))
        draw(Panels(top, [ax], [member], 1), solution, log_time=log_time)

    return Band(height, panel)


@upper_part(Tokens, Euclidean, single="projection")
def _principal_axes(solution, members, *, log_time=None):
    shown = pick_times(solution, members, None, PAIRS)

    def projections(top: SubFigure) -> None:
        axes = panels_in(top, len(shown), len(shown))
        draw_projection(solution, views(solution, [axes], members, shown))

    return [Band(2.0, projections)]


@upper_part(Tokens, Plane, single="paths")
def _paths(solution, members, *, log_time=None):
    return [Band(4.2, lambda top: draw_paths(top.subplots(), solution, members[0]))]


# Equiangular tokens and normal laws ----------------------------------------------------------


@upper_part(Equiangular, single="observables")
def _gaps(solution, members, *, log_time=None):
    return [Band(3.0, lambda top: draw_gaps(top.subplots(), solution, members, log_time))]


def draw_gaps(ax: Axes, solution: "Solution", members: list[Member], log_time: bool | None) -> None:
    """log10(1 - rho) of every member, which has no least number."""
    groups = groups_of(solution, members)
    for group in groups:
        for index in group.members:
            gaps = [np.broadcast_to(s.log_gap, solution.shape)[index] for s in solution]
            ax.plot(solution.t, np.array(gaps) / np.log(10), color=group.colour)
    ax.set_ylabel(r"$\log_{10}(1 - \rho)$")
    time_axis(ax, solution, log_time=is_logarithmic(solution, log_time))
    key_of_groups(ax.figure, [ax], solution, groups)


@upper_part(Gaussian, Flat, single="variances")
def _variances(solution, members, *, log_time=None):
    return [Band(3.4, lambda top: draw_variances(top.subplots(), solution, log_time=log_time))]


@upper_part(Gaussian, Plane, single="ellipses")
def _ellipses(solution, members, *, log_time=None):
    """Ellipses, and the path of the covariance divided by its trace."""

    def plane(top: SubFigure) -> None:
        left, right = top.subplots(1, 2, width_ratios=[1.25, 1])
        draw_ellipses(left, solution, None, SNAPSHOTS)
        draw_disc(right, solution)

    return [Band(3.4, plane)]
