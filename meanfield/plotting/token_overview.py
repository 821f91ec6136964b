"""The overviews of tokens and of inner products: where tokens go, and observables."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from ..spaces import Circle, Sphere
from . import ensemble, theme
from .crowds import first_member
from .dots import chosen_pair, draw_dots, orthographic_dots, portions_on
from .inner_products import draw_inner_products, inner_products
from .observables import draw_observables, observables
from .panels import Panels, title_page
from .planes import draw_paths, draw_projection, paths, projection
from .quantities import telling
from .rings import rings
from .spaces import Space, space_of
from .sphere_sheet import member_of, time_views
from .sphere_views import name_sides
from .time_axis import is_logarithmic
from .times import pick_times
from .token_spacetime import draw_token_spacetime
from .token_trajectories import draw_token_trajectories

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["token_overview"]

PAIRS = 5
Member = tuple[int, ...]


def token_overview(
    solution: "Solution",
    *,
    member: int | Member | None = None,
    log_time: bool | None = None,
    title: str | None = None,
    **options: Any,
) -> Figure:
    """One page: where tokens go, above four observables.

    On the circle and on the line trajectories, with noise on the circle a space-time map, on the
    sphere views from two sides, in the plane paths, in R^d the principal axes at several times;
    for tokens in higher dimension on a sphere, and for inner products, the law of these. Of an
    ensemble the first member is shown above the
    observables of all. A single saved time is shown without observables.

    Parameters
    ----------
    solution : Solution
        Tokens or inner products.
    member : int or tuple of int, optional
        Member of an ensemble: then the observables are also those of this member alone.
    log_time : bool, optional
        Whether the axes of times are logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.
    title : str, optional
        Heading; by default the model, and none if it is "".
    **options
        On the sphere `seen_from` and `clusters`, as for `orthographic_dots`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If the member does not exist, or there are fewer than two times above 0 with `log_time`.
    """
    index = first_member(solution, member)
    if len(solution) == 1:
        alone = SINGLE[space_of(solution)]
        return alone(solution, member=index or None, title=title, **options)
    log_time = is_logarithmic(solution, log_time)
    height, draw = TOPS[space_of(solution)]
    with theme.style():
        figure = theme.figure(width=7.5, height=height + 4.3)
        top, bottom = figure.subfigures(2, 1, height_ratios=[height, 4.0])
        draw(top, solution, index, log_time, **options)
        names = telling(solution)
        panels = list(np.ravel(bottom.subplots(-(-len(names) // 2), 2)))
        for spare in panels[len(names) :]:
            spare.remove()
        shape = {"columns": 2, "log_time": log_time}
        draw_observables(bottom, panels[: len(names)], solution, names, member, **shape)
        return title_page(figure, solution, title)


def _curves(top: SubFigure, solution: "Solution", member: Member, log_time: bool) -> None:
    draw_token_trajectories(top.subplots(), solution, member, log_time=log_time)


def _around(top: SubFigure, solution: "Solution", member: Member, log_time: bool) -> None:
    if not solution.model.noisy:
        _curves(top, solution, member, log_time)
        return
    ax = top.subplots()
    ax.set_title(ensemble.label(solution, member))
    draw_token_spacetime(top, Panels(top, [ax], [member], 1), solution, log_time=log_time)


def _globes(
    top: SubFigure,
    solution: "Solution",
    member: Member,
    log_time: bool,
    *,
    seen_from: Sequence[float] | None = None,
    clusters: bool = True,
) -> None:
    axes, shown = _row(top, solution, member)
    pair = chosen_pair(member_of(solution[shown[-1]], member), seen_from, beside=False)
    views = time_views(solution, [axes], [pair], [member], shown)
    draw_dots(top, views, [portions_on(solution, member)], clusters=clusters)
    axes[0].set_ylabel(ensemble.label(solution, member), labelpad=24)
    name_sides(axes[0], pair)


def _plane(top: SubFigure, solution: "Solution", member: Member, log_time: bool) -> None:
    draw_paths(top.subplots(), solution, member)


def _axes(top: SubFigure, solution: "Solution", member: Member, log_time: bool) -> None:
    axes, shown = _row(top, solution, member)
    draw_projection(solution, [axes], [member], shown)


def _products(top: SubFigure, solution: "Solution", member: Member, log_time: bool) -> None:
    ax = top.subplots()
    ax.set_title(ensemble.label(solution, member))
    draw_inner_products(top, Panels(top, [ax], [member], 1), solution, log_time=log_time)


def _row(top: SubFigure, solution: "Solution", member: Member) -> tuple[list[Axes], np.ndarray]:
    shown = pick_times(solution, [member], None, PAIRS)
    return list(top.subplots(1, len(shown), squeeze=False)[0]), shown


TOPS: dict[Any, tuple[float, Callable[..., None]]] = {
    Circle: (3.4, _around),
    Sphere: (3.1, _globes),
    Space.HYPERSPHERE: (3.2, _products),
    Space.PAIRS: (3.2, _products),
    Space.LINE: (3.4, _curves),
    Space.PLANE: (4.2, _plane),
    Space.EUCLIDEAN: (2.0, _axes),
}
SINGLE: dict[Any, Callable[..., Figure]] = {
    Circle: rings,
    Sphere: orthographic_dots,
    Space.HYPERSPHERE: inner_products,
    Space.PAIRS: inner_products,
    Space.LINE: observables,
    Space.PLANE: paths,
    Space.EUCLIDEAN: projection,
}
