"""Curves: densities over the angle, or by degree, at several times; paths of points over time."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.ticker import LogLocator, MaxNLocator
from scipy.ndimage import maximum
from scipy.optimize import isotonic_regression

from ..core.checks import whole_number
from ..results.solution import Solution
from ..spaces import Circle, Sphere, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Gram, Tokens, TorusTokens
from . import fields, layouts, theme
from .appearance import DrawnCluster, DrawnSample, appearance_of, space_of
from .labels import Member, distinct, label_of_member, percent
from .layouts import DrawnMembers, Panels
from .registry import expect, figure
from .spaces import AROUND, QUARTERS, UNIT_CIRCLE, Line, in_words

CENTRED = {"ha": "center", "va": "center"}
PATCH = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.6}}
UNIFORM_LINE = {"color": theme.FAINT, "linewidth": 1.0, "linestyle": (0, (5, 3)), "zorder": 1}
HISTOGRAM_BINS = 60
OTHER_TIME = 0.02  # of a run, by which a density drawn beside points may be saved at another time
NEGLIGIBLE_SHARE = 1e-9  # smaller shares are drawn as this
LINE = 9.5  # height of a label in points
MOST_MARKED = 12
MOST_HEIGHTS = 100  # of the panel, that the vertical paths of curves add up to
FEWEST_CURVES = 20
DIGIT_HEIGHT = 0.13  # of a digit, where the radius of the circle is 1
LEAST_COEFFICIENT = 1e-18  # smaller ones, such as 0 by symmetry, are drawn as this
SPECTRUM_FLOOR = 1e-17  # end of the axis, below the rounding of the mass
SPECTRUM_MARGIN = 3.0  # above and below the curves, a factor


def draw_curves(panels: Panels, curves: Iterable[Sequence[Any]]) -> None:
    """Draw in each panel one curve for each saved time, dark to light; unresolved ones dotted.

    `curves` has for each panel a sequence of curves (x, y), one for each of its times. A movie has
    no colour bar of times, and one colour for each panel.
    """
    is_resolved, count = layouts.resolved_states(panels.solution), len(panels.axes)
    of_panels = theme.ordered_colours(count) if count > 1 else theme.PALETTE[:1]
    of_times = theme.ordered_colours(len(panels.times))
    shapes = list(zip(panels.axes, curves, of_panels, strict=True))
    order, is_movie = {time: k for k, time in enumerate(panels.times)}, panels.film is not None

    def draw(i: int) -> list[Artist]:
        lines: list[Artist] = []
        for ax, of_panel, colour in shapes:
            k, style = order[i], "-" if is_resolved[i] else ":"
            colour = colour if is_movie else of_times[k]
            lines += ax.plot(*of_panel[k], color=colour, linestyle=style)
        return lines

    panels.show(draw, panels.times)
    if panels.bar and not is_movie and len(panels.solution) > 1:
        time_bar(panels)


def time_bar(panels: Panels) -> None:
    """Add a colour bar with one colour for each of the saved times that are drawn."""
    solution, count = panels.solution, len(panels.times)
    colours = ListedColormap(theme.ordered_colours(count))
    image = ScalarMappable(BoundaryNorm(np.arange(count + 1) - 0.5, count), colours)
    style = {"label": "time $t$", "aspect": 26 * panels.rows, "pad": 0.02}
    bar = panels.figure.colorbar(image, ax=panels.axes, ticks=np.arange(count), **style)
    names = bar.ax.set_yticklabels([f"${text}$" for text in distinct(solution.t[panels.times])])
    for name, good in zip(names, layouts.resolved_states(solution)[panels.times], strict=True):
        name.set_color(theme.INK if good else theme.WARNING)
    bar.ax.tick_params(length=0, which="both")
    bar.outline.set_linewidth(matplotlib.rcParams["axes.linewidth"])


# Over the angle ------------------------------------------------------------------------------


@figure("snapshots", Density, Circle, Zonal, panels=(6.0, 3.4, 7))
def snapshots(panels: Panels, *, scale: str = "auto") -> None:
    """Density over the angle at several times, coloured by time.

    The dashed line is the uniform state, 1. Dotted curves are not resolved, and their times red.

    Parameters
    ----------
    times : sequence of float, optional
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the density moves equally far between them.
    count : int, optional
        How many, where `times` is not given; by default 7.
    bar : bool
        Whether a colour bar shows the times.
    solution, scale
        As for `spacetime`; "power" is a power scale of the vertical axis.

    Raises
    ------
    ValueError
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are neither densities on the circle nor axisymmetric.
    """
    theta, values = fields.profiles(panels, panels.times)
    chart = fields.visible_chart(panels)
    density_scale = fields.choose_scale(chart.values_within(theta, values), scale)
    draw_curves(panels, [[(theta, density) for density in densities] for densities in values])
    for ax, bottom, left in panels.outer:
        density_axis(ax, density_scale)
        chart.draw_below(ax, named=bottom)
        ax.set_ylabel(fields.law_in_words(panels) + density_scale.note if left else "")


def density_axis(ax: Axes, scale: fields.Scale) -> None:
    """Densities on `scale` at the side, and the line of the uniform state."""
    ax.axhline(1.0, **UNIFORM_LINE)
    if scale.name == "log":
        ax.set_yscale("log")
        ax.set_ylim(scale.low, 1.4 * scale.high)
        return
    if scale.name == "power":
        powers = (partial(_power, p) for p in (fields.EXPONENT, 1 / fields.EXPONENT))
        ax.set_yscale("function", functions=tuple(powers))
    low = min(0.0, scale.low)
    ax.set_ylim(low, max(scale.high, 1.0) + 0.06 * (max(scale.high, 1.0) - low))


def _power(exponent: float, values: np.ndarray) -> np.ndarray:
    """sign(values) |values|^exponent, for a power scale."""
    return np.sign(values) * np.abs(values) ** exponent


# Around the circle ---------------------------------------------------------------------------


@figure("polar", Density, Circle, panels=(5.2, 4.4, 5))
def polar(panels: Panels, *, scale: str = "auto") -> None:
    """Density around the unit circle at several times, coloured by time.

    A density u is drawn at the radius 1 + h(u), where h grows from 0 to 1 at the largest value
    shown: linearly, or as a power if a peak exceeds 30 times the mean. The thick circle is u <= 0,
    the dashed one the uniform state u = 1. Dotted curves are not resolved.

    Parameters
    ----------
    solution, times, count, bar, scale
        As for `snapshots`, with 5 times by default; `ax` is an ordinary (not a polar) axes, and
        "log" takes h(u) proportional to log(1 + u).

    Raises
    ------
    ValueError
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are not densities on the circle.
    """
    theta, values = fields.profiles(panels, panels.times)
    radial = fields.choose_scale(values, scale, heavy="power")
    for (ax, bottom, _), curves in zip(panels.outer, values, strict=True):
        free_angle = theta[np.max(curves, axis=0).argmin()]  # free for the names of the circles
        polar_axes(ax, radial, free_angle)
        if bottom:
            note = radial.note if len(panels.axes) == 1 else radial.note.replace(" (", "\n(")
            ax.set_xlabel(f"radius: {fields.law_in_words(panels)}{note}")
    draw_curves(panels, [[ring(theta, curve, radial) for curve in curves] for curves in values])


def ring(theta: np.ndarray, density: np.ndarray, scale: fields.Scale) -> np.ndarray:
    """Closed curve of shape (2, n) at the radius 1 + height of the density."""
    # The grid overhangs by one point on either side; from the second to the last it closes.
    return (1.0 + scale.height(density[1:])) * np.array([np.cos(theta[1:]), np.sin(theta[1:])])


def polar_axes(ax: Axes, scale: fields.Scale, angle: float) -> None:
    """Unit circle, circles of equal density named at `angle`, names of the angles; no frame."""
    ax.plot(*UNIT_CIRCLE, color=theme.INK, linewidth=1.6, zorder=1)
    for level in _levels(scale):
        radius = 1.0 + scale.height(np.array(level))
        ax.plot(*(radius * UNIT_CIRCLE), color=theme.FAINT, linewidth=0.5, alpha=0.6, zorder=0)
        if radius > 1.0 + DIGIT_HEIGHT:
            x, y = _cartesian(radius, angle)
            ax.text(x, y, f"{level:g}", color="#666666", fontsize=8, **CENTRED, **PATCH)
    uniform = 1.0 + scale.height(np.array(1.0))
    ax.plot(*(uniform * UNIT_CIRCLE), **UNIFORM_LINE)
    name_angles(ax, QUARTERS, 0.82)
    ax.set(xlim=(-2.1, 2.1), ylim=(-2.1, 2.1))


def name_angles(ax: Axes, names: Sequence[tuple[float, str]], radius: float) -> None:
    """Names of angles, in units of pi, inside a circle; equal scales and no frame."""
    for quarter, name in names:
        x, y = _cartesian(radius, quarter * np.pi)
        ax.text(x, y, name, fontsize=9, **CENTRED)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _cartesian(radius: float, angle: float) -> tuple[float, float]:
    """Cartesian coordinates of a point given by radius and angle."""
    return radius * np.cos(angle), radius * np.sin(angle)


def _levels(scale: fields.Scale) -> list[float]:
    """Densities to draw a circle for: a few round numbers up to the largest, with 1."""
    if scale.name == "linear":
        levels = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(0.0, scale.high)
    else:
        levels = LogLocator(base=10).tick_values(1.0, scale.high)
    # Closer to the uniform circle a name could not be read.
    room = scale.height(np.array(1.0)) + DIGIT_HEIGHT
    places = {float(x): scale.height(np.array(x)) for x in levels if x <= scale.high * (1 + 1e-9)}
    return [1.0, *(level for level, place in places.items() if place > room)]


# Histograms of tokens ------------------------------------------------------------------------


@figure("histogram", (Tokens, TorusTokens), Circle, sheet=(6, 1.35, 3))
def histogram(
    panels: Panels, *, bins: int = HISTOGRAM_BINS, density: Solution | None = None
) -> None:
    """Histograms of the angles at several times, with respect to the uniform state, which is 1.

    Parameters
    ----------
    bins : int
        How many, of equal width.
    density : Solution, optional
        Densities on the circle, of a single run: the one saved nearest to each time is drawn over
        the histogram; it must be saved within 2 % of its run.
    solution, times, count
        As for `rings`.

    Raises
    ------
    ValueError
        If a time lies outside the solution, `bins` is not positive, `density` is an ensemble, the
        member does not exist, or there are too many.
    TypeError
        If the states are not tokens on the circle, or those of `density` are not densities there.
    """
    bins, solution = whole_number("bins", bins), panels.solution
    if density is not None:
        check_overlay(density, solution)
    for member, row in panels.views:
        for ax, i in row:
            heights, edges = fields.angle_histogram(panels.state(i, member), bins)
            fields.draw_histogram(ax, heights, edges, label="tokens")
            ax.set_ylim(top=1.1 * max(heights.max(), 1.0))
            ax.axhline(1.0, **UNIFORM_LINE)
            if density is not None:
                theta, curve = profile_at(density, float(solution.t[i]))
                ax.plot(theta, curve, color=theme.INK, linewidth=1.1, label="density")
                ax.set_ylim(top=max(ax.get_ylim()[1], 1.1 * curve.max()))
    panels.label(AROUND, r"density $\mu_t(\theta)$")
    if density is not None:
        panels.axes[0].legend(loc="best", handlelength=1.0, fontsize=8)


def check_overlay(density: Solution, solution: Solution, space: type = Circle) -> None:
    """Raise TypeError or ValueError unless densities can be drawn beside points of a space."""
    expect(density, [(Density, space)])
    if density.shape:
        shape = density.shape
        raise ValueError(f"density must be a single run; got an ensemble of shape {shape}.")
    if not issubclass(other := space_of(solution), space):
        raise ValueError(
            f"density is drawn beside points {in_words(space, plain=True)}, and these are on "
            f"another space, {other.__name__}. Leave density out."
        )
    angles, points = density.final.dimension or 0, solution.final.dimension or 0
    if angles != points:
        raise ValueError(
            f"density must have as many angles as the points, {points // 2}; got {angles // 2}."
        )


def saved_at(density: Solution, t: float) -> int:
    """Index of the density saved nearest to a time; ValueError if it is not near enough."""
    nearest = int(np.abs(density.t - t).argmin())
    there, far = density.t[nearest], OTHER_TIME * np.ptp(density.t)
    if abs(there - t) > far:
        raise ValueError(
            f"density must be saved at the times of the points, within {far:.2g}; at t = {t:g} its "
            f"nearest state is that of t = {there:g}. Solve it with their t_eval."
        )
    return nearest


def profile_at(density: Solution, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles, and values of a density: of its kept steps, or saved near enough, see `saved_at`."""
    try:
        place = saved_at(density, t)
    except ValueError:
        if "dense" not in density.stored:
            raise
        density, place = density([t]), 0
    theta, values = fields.profiles(DrawnMembers(density, [()]), [place])
    return theta, values[0, 0]


@figure("histogram", Gram, sheet=(6, 1.35, 3))
def product_histogram(panels: Panels, *, bins: int = fields.PRODUCT_BINS) -> None:
    """Histograms of the inner products of all pairs of tokens at several times.

    The shares of pairs have a logarithmic axis. Of more than 500 tokens, 500 are paired.

    Parameters
    ----------
    bins : int
        How many, of equal width on [-1, 1].
    solution, times, count
        As for `rings`.

    Raises
    ------
    ValueError
        If a time lies outside the solution, `bins` is not positive, the member does not exist, or
        there are too many.
    TypeError
        If the states are not inner products.
    """
    bins = whole_number("bins", bins)
    edges = np.linspace(*fields.PRODUCT_AXIS.limits, bins + 1)
    style = {"baseline": NEGLIGIBLE_SHARE, "fill": True, "color": theme.PALETTE[5], "alpha": 0.75}

    def draw(ax: Axes, member: Member, i: int) -> list[Artist]:
        shares = fields.shares_at(panels.solution[i], member, bins)
        return [ax.stairs(np.maximum(shares, NEGLIGIBLE_SHARE), edges, **style)]

    panels.each(draw)
    panels.label(fields.PRODUCT_AXIS, fields.SHARE)
    for ax in panels.axes:
        ax.set(ylim=(fields.LEAST_PAIR_SHARE, 1.5), yscale="log")


# Spectra -------------------------------------------------------------------------------------


@figure("spectrum", Density, Circle, Sphere, Zonal, panels=(6.0, 3.4, 7))
def spectrum(panels: Panels) -> None:
    """The largest coefficient of each degree at several times, on a logarithmic axis.

        max_m |c_lm|,   l = 0, 1, ..., degree

    of the density with respect to the uniform probability measure. Of a density that is resolved
    it falls below the dashed line, the accuracy `rtol` that was asked for, before it ends; dotted
    curves are not resolved. Of indexed densities it is that of the marginal law.

    Parameters
    ----------
    solution : Solution
        Densities.
    times : sequence of float, optional
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the density moves equally far between them.
    count : int, optional
        How many, where `times` is not given; by default 7.
    bar : bool
        Whether a colour bar shows the times.

    Raises
    ------
    ValueError
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are not densities.
    """
    laws, rtol = [panels.law(i) for i in panels.times], panels.solution.rtol
    curves = [[by_degree(law, member) for law in laws] for member in panels.members]
    lowest = min(sizes[sizes > LEAST_COEFFICIENT].min() for each in curves for _, sizes in each)
    highest = max(degrees[-1] for each in curves for degrees, _ in each)
    for ax, bottom, left in panels.outer:
        ax.axhline(rtol, color=theme.FAINT, linewidth=1.0, linestyle="--", zorder=1)
        ax.set(xlim=(0, max(highest, 1)), yscale="log")
        ax.set_ylim(max(SPECTRUM_FLOOR, min(lowest, rtol)) / SPECTRUM_MARGIN, SPECTRUM_MARGIN)
        ax.set_xlabel("degree" if bottom else "")
        ax.set_ylabel("largest |coefficient|" if left else "")
    draw_curves(panels, curves)


def by_degree(density: Density, member: Member = ()) -> tuple[np.ndarray, np.ndarray]:
    """The degrees of a density (n,), and the largest absolute coefficient of each."""
    of_modes = density.space.degrees
    degrees = np.unique(of_modes)
    sizes = maximum(np.abs(density.coefficients[member]), of_modes, degrees)
    return degrees, np.maximum(sizes, LEAST_COEFFICIENT)


# The mass below each angle -------------------------------------------------------------------


@figure("distribution", Characteristics, Circle, Zonal, panels=(6.0, 3.4, 7))
def distribution(panels: Panels) -> None:
    """The mass below each angle at several times, coloured by time: a cluster is a jump.

    On the circle the mass is counted from -pi on; on a sphere from the pole at which the polar
    angle is 0. The dashed line is the uniform state. Dotted curves are not resolved.

    Parameters
    ----------
    solution : Solution
        Characteristics on the circle, or axisymmetric.
    times : sequence of float, optional
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the measure moves equally far between them.
    count : int, optional
        How many, where `times` is not given; by default 7.
    bar : bool
        Whether a colour bar shows the times.

    Raises
    ------
    ValueError
        If a time lies outside the solution.
    TypeError
        If the states are not characteristics on the circle or axisymmetric.
    """
    (ax,), chart, solution = panels.axes, panels.chart, panels.solution
    low, high = chart.limits
    angles = np.linspace(low, high, 361)
    ax.plot(angles, chart.uniform_below(angles, solution.final.dimension), **UNIFORM_LINE)
    chart.draw_below(ax)
    ax.set(ylim=(-0.02, 1.02), ylabel="mass below the angle")
    draw_curves(panels, [[cumulated(solution[i]) for i in panels.times]])


def cumulated(state: Characteristics) -> tuple[np.ndarray, np.ndarray]:
    """Angles from one end of the axis to the other, and the mass below each.

    Half of the mass of a node lies below it.
    """
    chart: Any = appearance_of(state).chart(state)
    (low, high), angles = chart.limits, chart.wrapped(chart.of_nodes(state))
    order = np.argsort(angles, kind="stable")
    masses = state.masses[order]
    levels = np.cumsum(masses) - masses / 2
    total = float(state.mass)
    return np.r_[low, angles[order], high], np.r_[0.0, levels, total]


# Coordinates over time -----------------------------------------------------------------------


@figure("trajectories", Characteristics, Circle, Zonal, panels=(7.0, 3.6))
@figure("trajectories", Tokens, Circle, Line, panels=(7.0, 3.6))
@figure("trajectories", TorusTokens, Circle, panels=(7.0, 3.6))
def trajectories(
    panels: Panels, *, count: int | None = None, log_time: bool | None = None,
    density: Solution | None = None,
) -> None:  # fmt: skip
    """The angle, or on the line the place, of tokens or nodes over time.

    Between two neighbouring curves of characteristics lies the same mass. A curve has the colour
    of the cluster in which it ends, grey in none; heavier tokens have thicker curves. The clusters
    at the end are marked with their share of the mass.

    Parameters
    ----------
    solution : Solution
        Tokens on the circle or on the line, or characteristics on the circle or axisymmetric, at
        two saved times or more.
    count : int, optional
        How many curves, evenly spread at the start. By default at most 300 of tokens and 50 of
        characteristics, and fewer where they wander, as under noise: their vertical paths add up
        to 100 heights of the panel, but at least 20 are drawn. The panel says how many are.
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.
    density : Solution, optional
        Densities on the circle, of a single run: a map of them in grey is drawn beneath.

    Raises
    ------
    ValueError
        If there are fewer than two saved times, or of those above 0 with `log_time`; if `count`
        is not positive, `density` is an ensemble, a member does not exist, or too many are chosen.
    TypeError
        If the states are of another kind, or on another space, or those of `density` are.
    """
    solution, look = panels.solution, panels.look
    layouts.need_two_times(solution, "A figure of trajectories", "observables")
    log_time = layouts.is_logarithmic(solution, log_time)
    if density is not None:
        check_overlay(density, solution)
    most = whole_number("count", look.most_curves if count is None else count)
    for member, (ax, bottom, left) in zip(panels.members, panels.outer, strict=True):
        sample = look.sample(solution, member, most)
        coordinates = look.coordinates(solution, member)
        places = coordinates[:, sample.indices]
        chart = panels.chart.around_places(places)
        if count is None and (fewer := legible_count(places, chart.limits)) < len(places.T):
            sample = look.sample(solution, member, fewer)
            places = coordinates[:, sample.indices]
            chart = panels.chart.around_places(places)
        copies = [chart.copies(curve) for curve in places.T]
        turns = [len(each) for each in copies]
        segments = [np.column_stack([solution.t, curve]) for each in copies for curve in each]
        widths = np.repeat(np.clip(0.9 * np.sqrt(sample.sizes), 0.3, 4.0), turns)
        colours = list(np.repeat(sample.colours, turns))
        lines = LineCollection(segments, colors=colours, linewidths=widths)
        lines.set_alpha(opacity(len(places.T), look.overlap))
        lines.set_rasterized(len(segments) > look.most_curves)
        ax.add_collection(lines)
        if density is not None:
            fields.grey_map(ax, density, log_time=log_time)
        chart.draw_left(ax, named=left)
        name_sample(ax, solution, member, sample)
        layouts.time_axis(ax, solution, log_time=log_time, named=bottom)
        ends = sample.ends[:MOST_MARKED]
        mark_ends(ax, solution.t[-1], [float(chart.of_points(end.point)) for end in ends], ends)


def legible_count(places: np.ndarray, limits: tuple[float, float]) -> int:
    """The number of curves of coordinates (times, n) whose vertical paths fill a panel legibly."""
    heights = np.abs(np.diff(places, axis=0)).sum(axis=0).mean() / (limits[1] - limits[0])
    return max(FEWEST_CURVES, int(MOST_HEIGHTS / max(heights, 1e-300)))


def name_sample(ax: Axes, solution: Solution, member: Member, sample: DrawnSample) -> None:
    """Title a panel with the label of its member and the note of the sample that is drawn."""
    label = label_of_member(solution, member)
    if ax.get_title() == label:
        ax.set_title("")
    ax.set_title(", ".join(filter(None, [label, sample.note])), loc="left", fontsize=9)


def opacity(count: int, overlap: float = 3.0) -> float:
    """The opacity of each of `count` points or curves: overlap/sqrt(count), from 0.25 to 0.85."""
    return float(np.clip(overlap / np.sqrt(max(count, 1)), 0.25, 0.85))


def mark_ends(
    ax: Axes, end: float, places: Sequence[float], clusters: Sequence[DrawnCluster]
) -> None:
    """Draw a disc for each cluster at the time `end`, and write its share beside the panel."""
    if not places:
        return
    low, high = ax.get_ylim()
    height = 72 * ax.figure.bbox.height / ax.figure.dpi * ax.get_position().height
    room = LINE / height * (high - low)
    labels = _spaced(np.array(places), room, (low, high))
    for i, (place, cluster, label) in enumerate(zip(places, clusters, labels, strict=True)):
        style: dict[str, Any] = {"color": theme.colour(i)}
        size = 2.5 + 4.0 * np.sqrt(cluster.mass)
        ax.plot(end, place, "o", ms=size, clip_on=False, zorder=6, **style)
        style |= {"xytext": (6, 0), "textcoords": "offset points", "path_effects": theme.HALO}
        style |= {"xycoords": ax.get_yaxis_transform(), "va": "center", "fontsize": 9}
        ax.annotate(percent(cluster.mass), (1.0, label), **style)


def _spaced(places: np.ndarray, room: float, limits: tuple[float, float]) -> np.ndarray:
    """Positions moved as little as possible to lie `room` apart, within `limits` if they fit."""
    order = np.argsort(places, kind="stable")
    steps = room * np.arange(len(places))
    # Positions minus steps must increase: isotonic regression gives the nearest such sequence.
    starts = isotonic_regression(places[order] - steps).x
    low, high = limits[0], limits[1] - steps[-1]
    result = np.empty_like(places)
    result[order] = np.clip(starts, low, max(low, high)) + steps
    return result
