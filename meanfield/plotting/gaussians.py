"""Normal laws: ellipses and the cone of covariances in the plane, variances in any dimension."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from ..core.checks import boolean, whole_number
from ..results.solution import Solution
from ..states import Gaussian
from . import layouts, theme
from .points import circle
from .registry import figure
from .spaces import UNIT_CIRCLE, Flat, Plane

LARGEST_ELLIPSE = 8.0  # times the extent at the start: larger ones may leave the panel
ELLIPSE_MARGIN = 0.04
CONE_LINES = 12  # straight lines on the cone
CONE_AXES = ("$a - b$", "$2c$", "$a + b$")
COVARIANCE_ROUNDING = 1e-15  # of the largest: initial eigenvalues up to this are rounding
NEGLIGIBLE_EIGENVALUE = 1e-12  # of the largest: they stay unknown until they exceed this
MOST_VARIANCES_IN_LEGEND = 8


@figure("variances", Gaussian, Flat, panels=(7.0, 3.4))
def variances(panels: layouts.Panels, *, log_time: bool | None = None) -> None:
    """The eigenvalues of the covariance over time, on a logarithmic axis.

    Those that are rounding of a singular covariance at the start are left out. Before a blow-up,
    which is dotted, the last state is: choose `t_eval` up to its time to see the approach.

    Parameters
    ----------
    solution : Solution
        A Gaussian in any dimension.
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.

    Raises
    ------
    TypeError
        If the states are not Gaussians.
    ValueError
        If `log_time` is asked for and there are fewer than two times above 0.
    """
    (ax,), solution = panels.axes, panels.solution
    log_time = layouts.is_logarithmic(solution, log_time)
    t = solution.t[: layouts.drawn_count(solution)]
    values = np.array([state.variances for state in solution.states[: len(t)]])
    count = values.shape[1]
    significant = _significant(solution, values)
    marker = {"marker": "."} if len(t) == 1 else {}
    for i, colour in enumerate(theme.ordered_colours(count)):
        curve = np.where(significant[:, i], values[:, i], np.nan)
        has_label = significant[:, i].any() and (
            count <= MOST_VARIANCES_IN_LEGEND or i in (0, count - 1)
        )
        label = rf"$\lambda_{{{i + 1}}}$" if has_label else None
        ax.plot(t, curve, color=colour, label=label, **marker)
    ax.set_yscale("log")
    ax.set_ylabel(r"eigenvalues of $\Sigma$")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    layouts.time_axis(ax, solution, log_time=log_time)


def _significant(solution: Solution, values: np.ndarray) -> np.ndarray:
    """A mask (t, d) over eigenvalues: False for rounding errors of the initial covariance."""
    from_start = solution.t[0] == solution.options.get("t_start")
    noise = (values[0] <= COVARIANCE_ROUNDING * values[0, 0]) & from_start
    return (values > 0) & ~(noise & (values <= NEGLIGIBLE_EIGENVALUE * values[:, :1]))


@figure("ellipses", Gaussian, Plane, panels=(5.4, 4.4))
def ellipses(
    panels: layouts.Panels, *, times: Sequence[float] | None = None, count: int = 7
) -> None:
    """Ellipses of one standard deviation at several times, and the path of the mean.

    Ellipses more than eight times as large as the first, as before a blow-up, leave the panel: they
    are drawn at given `times`, and else it is said when they leave it. The last state of a blow-up,
    which is next to infinity, is left out.

    Parameters
    ----------
    solution : Solution
        A Gaussian in the plane.
    times : sequence of float, optional
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the law moves equally far between them, as far as it is in the panel.
    count : int
        At most how many times.

    Raises
    ------
    ValueError
        If a time lies outside the solution, or `count` is not positive.
    TypeError
        If the states are not Gaussians in the plane.
    """
    (ax,), moving = panels.axes, panels.film is not None
    solution = layouts.evaluated_at(panels.solution, times)
    states = solution.states[: layouts.drawn_count(solution)]
    count = whole_number("count", count)
    shown, last = panels.times, len(states) - 1
    if not moving:
        shown = layouts.pick_times(solution, [()], times, count)
    outlines = [ellipse(state) for state in states]
    if times is None and not moving:
        inside = _visible(outlines)
        shown, last = (inside[layouts.subset([states[i] for i in inside], [()], count)], inside[-1])
    *texts, beyond = layouts.titles_of(solution, np.array([*shown, min(last + 1, len(states) - 1)]))
    colours = theme.PALETTE[:1] if moving else theme.ordered_colours(len(shown))
    styles = {i: colours[k % len(colours)] for k, i in enumerate(shown)}

    def draw(i: int) -> list[Artist]:
        curve = ax.plot(*outlines[i], color=styles[i], linewidth=1.2)
        return [*curve, *ax.plot(*states[i].mean, ".", color=styles[i], markersize=4)]

    framed = [outlines[i] for i in shown]
    points = np.concatenate([framed[k] for k in _visible(framed)], axis=1)
    layouts.square(ax, points.min(axis=1), points.max(axis=1), ELLIPSE_MARGIN)
    ax.set(xlabel="$x_1$", ylabel="$x_2$")
    if moving:
        ax.plot(*outlines[0], color=theme.FAINT, linewidth=0.8)
        panels.show(draw, shown)
        return
    ax.plot(*np.array([state.mean for state in states]).T, color=theme.FAINT, lw=0.8, zorder=1)
    for i, text in zip(shown, texts, strict=True):
        draw(i)[0].set_label(text)
    if last + 1 < len(states):
        ax.plot([], [], " ", label=f"outside from\n{beyond} on")
    if any(texts):
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)


def _visible(curves: Sequence[np.ndarray]) -> np.ndarray:
    """Indices of the curves (2, points) that are not much larger than the first."""
    sizes = np.array([np.abs(curve).max() for curve in curves])
    return np.flatnonzero(sizes <= LARGEST_ELLIPSE * (sizes[0] if sizes[0] > 0 else sizes.max()))


def ellipse(state: Gaussian) -> np.ndarray:
    """The curve a + L e(theta), L L^T = S, (2, points)."""
    return state.mean[:, None] + state.root @ UNIT_CIRCLE


@figure("cone", Gaussian, Plane)
def cone(
    solution: Solution, *, trace_one: bool = False, ax: Axes | None = None, title: str | None = None
) -> Figure:
    """The path of the covariance [[a, c], [c, b]] in coordinates (a - b, 2c, a + b).

    Covariances are the cone a + b >= |(a - b, 2c)|: its tip is 0, its surface has rank 1, its axis
    the multiples of the identity. A path begins in a ring and ends in a dot. After a blow-up the
    last state, which is next to infinity, is left out.

    Parameters
    ----------
    solution : Solution
        A Gaussian in the plane.
    trace_one : bool
        Divide by the trace, which leaves the disc |(a - b, 2c)| <= a + b = 1: directions alone.
    ax : Axes, optional
        Draw here rather than in a new figure, which may show other paths too; with
        projection="3d" unless `trace_one`.
    title : str, optional
        Heading; by default the model, and none if it is ""; with `ax` that of the axes.

    Returns
    -------
    Figure

    Raises
    ------
    TypeError
        If the states are not Gaussians in the plane, or `trace_one` is not True or False.
    ValueError
        If `ax` is not of the kind it should be.
    """
    trace_one = boolean("trace_one", trace_one)
    shape = "rectilinear" if trace_one else "3d"
    layouts.check_axes(ax)
    if ax is not None and ax.name != shape:
        raise ValueError(f'cone needs an ax with projection="{shape}" here; got "{ax.name}".')
    with theme.style():
        figure: Any = theme.figure(width=4.8, height=4.6) if ax is None else ax.figure
        panel = figure.add_subplot(projection=shape) if ax is None else ax
        (draw_disc if trace_one else draw_cone)(panel, solution)
        if ax is None:
            return layouts.title_page(figure, solution, title)
        if title is not None:
            ax.set_title(title)
    return figure


def cone_points(solution: Solution, *, trace_one: bool = False) -> np.ndarray:
    """The points (a - b, 2c, a + b) of all saved states, (m, 3)."""
    covs = np.array([state.trace_one if trace_one else state.cov for state in solution])
    a, b, c = covs[:, 0, 0], covs[:, 1, 1], covs[:, 0, 1]
    return np.stack([a - b, 2 * c, a + b], axis=1)


def draw_cone(ax: Axes3D, solution: Solution) -> None:
    """The path in the cone, whose surface is drawn up to the highest point of the first path."""
    points = cone_points(solution)[: layouts.drawn_count(solution)]
    if not ax.lines:
        _surface(ax, 1.05 * points[:, 2].max() or 1.0)
    _path(ax, points, 3.0)


def _path(ax: Axes, points: np.ndarray, size: float) -> None:
    """Draw the path of points (m, dimensions) from a ring to a dot of this size."""
    colour = theme.PALETTE[0]
    ax.plot(*points.T, color=colour, linewidth=1.0)
    ax.plot(*points[:1].T, "o", color=colour, markersize=size, markerfacecolor="none")
    ax.plot(*points[-1:].T, "o", color=colour, markersize=size)


def _surface(ax: Axes3D, height: float) -> None:
    """Draw lines, rim and axis of the cone up to a height."""
    faint: dict[str, Any] = {"color": theme.FAINT, "linewidth": 0.5}
    for angle in 2 * np.pi * np.arange(CONE_LINES) / CONE_LINES:
        ends = height * np.array([[0, np.cos(angle)], [0, np.sin(angle)], [0, 1]])
        ax.plot(*ends, **faint)
    ax.plot(*(height * UNIT_CIRCLE), height, **faint)
    ax.plot([0, 0], [0, 0], [0, height], linestyle=":", **faint)
    ax.set(xlabel=CONE_AXES[0], ylabel=CONE_AXES[1], zlabel=CONE_AXES[2])
    ax.set_box_aspect((1, 1, 0.8), zoom=0.92)
    ax.view_init(elev=18, azim=-60)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=8, pad=-1)


def draw_disc(ax: Axes, solution: Solution) -> None:
    """The path in the disc of covariances of trace one, whose edge has rank 1."""
    if not ax.lines:
        circle(ax)
        ax.set(xlabel="$(a - b)/(a + b)$", ylabel="$2c/(a + b)$", aspect="equal")
        ax.locator_params(nbins=5)
    points = cone_points(solution, trace_one=True)[: layouts.drawn_count(solution)]
    _path(ax, points[:, :2], 3.5)
