"""One page for every run: where the state goes, above the observables that tell most of it.

What the upper part shows is registered by `upper_part` for kinds of states and spaces, as bands of
panels. States without one have a page of observables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from ..results.solution import Solution
from ..spaces import Circle, Sphere, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Equiangular, Gaussian, Gram, Tokens
from . import theme
from .appearance import appearance_of
from .curves import polar, snapshots, time_bar, trajectories
from .fields import inner_products, spacetime, token_spacetime
from .gaussians import draw_disc, ellipses, variances
from .labels import Member
from .layouts import Panels, Sheet, grid, panels_in, row_of_views, title_page, views
from .observables import draw_observables, groups_of, key_of_groups, telling
from .points import paths, projection
from .registry import (
    FigureKind,
    Registry,
    check_options,
    figure,
    find_figure,
    kinds_of,
    options_of,
)
from .spaces import Euclidean, Flat, Hypersphere, Line, Plane
from .sphere import FieldLayer, draw_maps, draw_pairs, orthographic_dots
from .times import is_logarithmic, pick_times, time_axis

__all__ = ["Band", "draw_gaps", "overview", "upper_part"]

COLUMNS = 5  # times at which points are shown
SNAPSHOTS = 6
PARTS = Registry()


@dataclass(frozen=True)
class Band:
    """A band across the page, `height` inches high, and what draws in it."""

    height: float
    draw: Callable[[SubFigure], object]


def upper_part(
    states: type | tuple[type, ...], *spaces: type, single: str | None = None, keyed: bool = False
) -> Callable:
    """Decorate what an overview shows above the observables of these states on these spaces.

    The function takes a solution and the members to show, then options by keyword, and returns
    bands. With an option `log_time` it is told whether times are logarithmic.

    Parameters
    ----------
    single : str, optional
        The kind of figure that is the overview of a single saved time; by default the upper part.
    keyed : bool
        Whether it has a key to the members of an ensemble, which the observables then need not.
    """

    def register(bands: Callable) -> Callable:
        bands.single, bands.keyed = single, keyed  # type: ignore[attr-defined]
        return PARTS.decorator("", states, spaces)(bands)

    return register


@figure("overview")
def overview(
    solution: Solution,
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
                style = {"columns": 2, "log_time": log_time, "key": not part.keyed}
                draw_observables(bottom, panels, solution, names, shown, **style)

            bands.append(Band(0.1 + 2.0 * -(-len(names) // 2), measured))
        heights = [band.height for band in bands]
        page = theme.figure(width=7.5 if alone else 8.0, height=sum(heights) + 0.4)
        parts = np.ravel(page.subfigures(len(bands), 1, height_ratios=heights))
        for band, place in zip(bands, parts, strict=True):
            band.draw(place)
        return title_page(page, solution, title)


def _one_figure(
    solution: Solution,
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


# What each kind of state shows -----------------------------------------------------------------


def band(
    height: float, kind: FigureKind, solution: Solution, members: list[Member], **options: Any
) -> Band:
    """A band with one panel for each member, in which a kind of figure is drawn."""
    return Band(height, lambda top: kind.draw(grid(top, members, solution), solution, **options))


@upper_part(Density, Circle, Zonal, single="snapshots")
def _densities(solution, members, *, scale="auto"):
    """Maps over time and, of a single member, snapshots; on the circle also around it."""
    if len(members) > 1:
        return [band(0.4 + 1.7 * -(-len(members) // 3), spacetime, solution, members, scale=scale)]

    def curves(middle: SubFigure) -> None:
        around = "polar" in kinds_of(solution)
        axes = middle.subplots(1, 1 + around, squeeze=False, width_ratios=[1.2, 1.0][: 1 + around])[
            0
        ]
        for ax, kind in zip(axes, (snapshots, polar), strict=False):
            target = Panels(middle, [ax], members, 1)
            kind.draw(target, solution, count=SNAPSHOTS, scale=scale, bar=False)
        shown = pick_times(solution, members, None, SNAPSHOTS)
        time_bar(Panels(middle, list(axes), members, 1), solution, shown)

    return [band(2.5, spacetime, solution, members, scale=scale), Band(3.0, curves)]


@upper_part(Density, Sphere)
def _maps(solution, members, *, seen_from=None, clusters=True, scale="auto"):
    """Maps at several times, and the last state from two sides; of several members one map each."""
    shown = pick_times(solution, members, None, SNAPSHOTS if len(members) == 1 else 1)
    count = len(shown) if len(members) == 1 else len(members)
    columns = min(count, 3)
    rows = -(-count // columns)

    def maps(top: SubFigure) -> None:
        axes = panels_in(top, count, columns)
        table = [axes] if len(members) == 1 else [[ax] for ax in axes]
        page = Sheet(top, views(solution, table, members, shown), shown, rows)
        draw_maps(page, FieldLayer(solution, scale))

    def sides(middle: SubFigure) -> None:
        page = row_of_views(middle, solution, members[0], shown[-1:])
        draw_pairs(page, FieldLayer(solution, scale), seen_from, clusters=clusters)

    if len(members) > 1:
        return [Band(0.5 + 1.3 * rows, maps)]
    return [Band((3.2, 1.8, 1.4)[columns - 1] * rows, maps), Band(3.5, sides)]


@upper_part((Characteristics, Tokens), Sphere, single="orthographic")
def _dots(solution, members, *, seen_from=None, clusters=True, log_time=None):
    style = {"seen_from": seen_from, "clusters": clusters}
    return [_row(3.1, orthographic_dots, solution, members, upright=True, **style)]


@upper_part(Tokens, Euclidean, single="projection")
def _projections(solution, members, *, log_time=None):
    return [_row(2.0, projection, solution, members)]


def _row(
    height: float, kind: FigureKind, solution: Solution, members: list[Member],
    *, upright: bool = False, **options: Any,
) -> Band:  # fmt: skip
    """A band with one member at several times."""

    def draw(top: SubFigure) -> None:
        shown = pick_times(solution, members, None, COLUMNS)
        page = row_of_views(top, solution, members[0], shown, upright=upright)
        kind.draw(page, solution, **options)

    return Band(height, draw)


@upper_part(Characteristics, Circle, Zonal, single="distribution")
def _trajectories(solution, members, *, log_time=None):
    return [band(3.4, trajectories, solution, members, log_time=log_time)]


@upper_part(Tokens, Line, single="observables")
def _on_the_line(solution, members, *, log_time=None):
    return _trajectories(solution, members, log_time=log_time)


@upper_part(Tokens, Circle, single="polar")
def _on_the_circle(solution, members, *, log_time=None):
    """Trajectories; with noise, where tokens never come to rest, a space-time map."""
    kind = token_spacetime if solution.model.noisy else trajectories
    return [band(3.4, kind, solution, members, log_time=log_time)]


@upper_part(Gram, single="inner_products")
@upper_part(Tokens, Hypersphere, single="inner_products")
def _inner_products(solution, members, *, log_time=None):
    return [band(3.2, inner_products, solution, members, log_time=log_time)]


@upper_part(Tokens, Plane, single="paths")
def _paths(solution, members, *, log_time=None):
    return [band(4.2, paths, solution, members)]


@upper_part(Equiangular, single="observables", keyed=True)
def _gaps(solution, members, *, log_time=None):
    return [Band(3.0, lambda top: draw_gaps(top.subplots(), solution, members, log_time))]


def draw_gaps(ax: Axes, solution: Solution, members: list[Member], log_time: bool | None) -> None:
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
    return [band(3.4, variances, solution, members, log_time=log_time)]


@upper_part(Gaussian, Plane, single="ellipses")
def _ellipses(solution, members, *, log_time=None):
    """Ellipses, and the path of the covariance divided by its trace."""

    def plane(top: SubFigure) -> None:
        left, right = top.subplots(1, 2, width_ratios=[1.25, 1])
        ellipses.draw(Panels(top, [left], members, 1), solution, count=SNAPSHOTS)
        draw_disc(right, solution)

    return [Band(3.4, plane)]
