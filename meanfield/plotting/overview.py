"""One page for every run: where the state goes, above the observables that tell most of it.

What the upper part shows is registered by `upper_part` for kinds of states and spaces, as bands of
panels. States without one have a page of observables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
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
from .labels import Member, all_members
from .layouts import Panels, grid, panels_in, sheet_in, title_page
from .observables import draw_observables, gaps, telling
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
from .sphere import mollweide, orthographic, orthographic_dots
from .times import is_logarithmic, pick_times

__all__ = ["Band", "overview", "upper_part"]

TIMES, COLUMNS = 6, 5  # so many times of a law, and of points, are shown
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
        return PARTS.register("", states, spaces)(bands)

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
    part = PARTS.of(solution).get("")
    known = options_of(part) if part else ["log_time"]
    check_options(solution, "kind='overview'", options, ["member", "title", *known])
    look = appearance_of(solution.final)
    members = look.members(solution, member)
    if part is None or (len(solution) == 1 and part.single):
        draw = find_figure(solution, part.single if part else "observables")
        chosen = (members[0] or None) if solution.final.replicated else member
        given = {"member": chosen, "title": title, **options}
        return draw(solution, **{name: given[name] for name in options_of(draw) if name in given})
    log_time = options.pop("log_time", None)
    if "log_time" in known:
        log_time = options["log_time"] = is_logarithmic(solution, log_time)
    alone = len(members) == 1 and not solution.final.replicated
    with theme.style():
        bands = part(solution, members, **options)
        if len(solution) > 1:
            names = telling(solution, 4, single=alone)
            shown = members if alone else all_members(solution, member)

            def measured(bottom: SubFigure) -> None:
                target = Panels(bottom, panels_in(bottom, len(names), 2), shown, 2)
                draw_observables(target, solution, names, log_time=log_time)

            bands.append(Band(0.1 + 2.0 * -(-len(names) // 2), measured))
        heights = [band.height for band in bands]
        page = theme.figure(width=7.5 if alone else 8.0, height=sum(heights) + 0.4)
        parts = np.ravel(page.subfigures(len(bands), 1, height_ratios=heights))
        for band, place in zip(bands, parts, strict=True):
            band.draw(place)
        return title_page(page, solution, title)


# What each kind of state shows -----------------------------------------------------------------


def band(
    height: float, kind: FigureKind, solution: Solution, members: list[Member], **options: Any
) -> Band:
    """A band with one panel for each member, in which a kind of figure is drawn."""
    return Band(height, lambda top: kind.draw(grid(top, members, solution), solution, **options))


def row(
    height: float,
    kind: FigureKind,
    solution: Solution,
    members: list[Member],
    shown: np.ndarray,
    *,
    columns: int | None = None,
    upright: bool = False,
    **options: Any,
) -> Band:
    """A band with a panel for each member at each of the saved times of index `shown`."""

    def draw(top: SubFigure) -> None:
        page = sheet_in(top, members, solution, shown, columns or len(shown), upright=upright)
        kind.draw(page, solution, **options)

    return Band(height, draw)


@upper_part(Density, Circle, Zonal, single="snapshots")
def _densities(solution, members, *, scale="auto"):
    """A space-time map; of one member also curves over the angle, and around the circle."""
    if len(members) > 1:
        height = 0.4 + 1.7 * -(-len(members) // 3)
        return [band(height, spacetime, solution, members, scale=scale)]

    def curves(middle: SubFigure) -> None:
        kinds = [snapshots, polar] if "polar" in kinds_of(solution) else [snapshots]
        ratios = [1.2, 1.0][: len(kinds)]
        places = middle.subplots(1, len(kinds), squeeze=False, width_ratios=ratios)[0]
        for ax, kind in zip(places, kinds, strict=True):
            target = Panels(middle, [ax], members, 1)
            kind.draw(target, solution, count=TIMES, scale=scale, bar=False)
        shown = pick_times(solution, members, None, TIMES)
        time_bar(Panels(middle, list(places), members, 1), solution, shown)

    return [band(2.5, spacetime, solution, members, scale=scale), Band(3.0, curves)]


@upper_part(Density, Sphere)
def _maps(solution, members, *, seen_from=None, clusters=True, scale="auto"):
    """Maps at several times, and the last state from two sides; of several members one map each."""
    if len(members) > 1:
        last, columns = pick_times(solution, members, None, 1)[-1:], min(len(members), 3)
        height = 0.5 + 1.3 * -(-len(members) // columns)
        return [row(height, mollweide, solution, members, last, columns=columns, scale=scale)]
    shown = pick_times(solution, members, None, TIMES)
    columns = min(len(shown), 3)
    height = (3.2, 1.8, 1.4)[columns - 1] * -(-len(shown) // columns)
    style = {"seen_from": seen_from, "clusters": clusters, "scale": scale}
    return [
        row(height, mollweide, solution, members, shown, columns=columns, scale=scale),
        row(3.5, orthographic, solution, members, shown[-1:], **style),
    ]


@upper_part((Characteristics, Tokens), Sphere, single="orthographic")
def _dots(solution, members, *, seen_from=None, clusters=True, log_time=None):
    shown = pick_times(solution, members, None, COLUMNS)
    style = {"upright": True, "seen_from": seen_from, "clusters": clusters}
    return [row(3.1, orthographic_dots, solution, members, shown, **style)]


@upper_part(Tokens, Euclidean, single="projection")
def _projections(solution, members, *, log_time=None):
    shown = pick_times(solution, members, None, COLUMNS)
    return [row(2.2, projection, solution, members, shown)]


@upper_part(Tokens, Circle, single="polar")
def _on_the_circle(solution, members, *, log_time=None):
    """Trajectories; with noise, where tokens never come to rest, a space-time map."""
    kind = token_spacetime if solution.model.noisy else trajectories
    return [band(3.4, kind, solution, members, log_time=log_time)]


@upper_part(Equiangular, single="observables")
def _gaps(solution, members, *, log_time=None):
    return [Band(3.0, lambda top: gaps(top, solution, members, log_time))]


@upper_part(Gaussian, Plane, single="ellipses")
def _ellipses(solution, members, *, log_time=None):
    """Ellipses, and the path of the covariance divided by its trace."""

    def plane(top: SubFigure) -> None:
        left, right = top.subplots(1, 2, width_ratios=[1.25, 1])
        ellipses.draw(Panels(top, [left], members, 1), solution, count=TIMES)
        draw_disc(right, solution)

    return [Band(3.4, plane)]


def one_band(height: float, kind: FigureKind) -> Callable:
    """The upper part that is one kind of figure."""

    def bands(solution: Solution, members: list[Member], *, log_time: bool | None = None):
        options = {"log_time": log_time} if "log_time" in options_of(kind) else {}
        return [band(height, kind, solution, members, **options)]

    return bands


upper_part(Characteristics, Circle, Zonal, single="distribution")(one_band(3.4, trajectories))
upper_part(Tokens, Line, single="observables")(one_band(3.4, trajectories))
upper_part(Tokens, Plane, single="paths")(one_band(4.2, paths))
upper_part(Tokens, Hypersphere, single="inner_products")(one_band(3.2, inner_products))
upper_part(Gram, single="inner_products")(one_band(3.2, inner_products))
upper_part(Gaussian, Flat, single="variances")(one_band(3.4, variances))
