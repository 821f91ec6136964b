"""Movies: one frame for each saved state, written through ffmpeg or Pillow.

What moves is registered by `scene` for kinds of states and spaces; of states without one the
observables are shown, with a line at the present.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.animation import FFMpegWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure, SubFigure
from PIL import Image

from ..core.checks import path_of
from ..core.errors import MeanfieldError
from ..results.solution import Solution
from ..spaces import Circle, Sphere, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Gaussian, Gram, Tokens
from . import resolution, theme
from .appearance import appearance_of, sample_of
from .curves import (
    QUARTERS,
    RADIUS,
    cumulated,
    density_axis,
    distribution_axes,
    draw_trajectories,
    polar_axes,
    quiet_angle,
    ring,
)
from .fields import DENSITY, PRODUCT_BINS, PRODUCTS, SHARE, profiles, shares_at, visible_chart
from .gaussians import ellipse, frame_ellipses
from .labels import Member, describe_model, distinct, label_of_member, member_of, percent
from .layouts import Update, grid, panels_in, title_page
from .observables import draw_observables, quantity_of, telling
from .overview import PARTS
from .points import circle_axes, dots, name_clusters, plane_axes, plane_of, redrawn
from .registry import Registry, check_options, options_of
from .scales import choose_scale
from .spaces import Euclidean, Hypersphere, Plane
from .sphere import DotLayer, FieldLayer, Layer, name_sides, pair_for, reddened

__all__ = ["animate", "check_movie_path", "ffmpeg_program", "scene", "write_movie"]

POLES = ((0.5, "$0$"), (0.0, r"$\pi/2$"), (1.5, r"$\pi$"))
SCENES = Registry()


def scene(states: type | tuple[type, ...], *spaces: type) -> Callable:
    """Decorate a function that draws the moving panels of these states on these spaces.

    It takes a subfigure, the solution and the members to show, then options by keyword, and returns
    a list of functions: each sets what it has drawn to the saved state of a given index.
    """

    return SCENES.decorator("", states, spaces)


def animate(
    solution: Solution,
    path: str | os.PathLike,
    *,
    fps: float = 20.0,
    member: int | Member | None = None,
    scale: str = "auto",
    dpi: float = 120.0,
    title: str | None = None,
    **options: Any,
) -> Path:
    """Write a movie with one frame for each saved state.

    A single density on the circle is shown over the angle and around the circle, several members
    of an ensemble over the angle in one panel each; on the sphere, each is shown from two opposite
    sides. Characteristics are shown as dots of equal mass, with the shares of clusters; on the
    circle, or axisymmetric, also the mass below each angle. Tokens are shown as dots: on the
    circle beside their angles over time, in R^2 with their paths, in higher dimension on the
    principal axes of the run; of inner products the histogram; of a Gaussian in the plane the
    ellipse. Of other states a line runs through what is drawn over time. Of tokens one member is
    shown, by default the first. Beneath runs the order parameter, or in R^d the spread.
    States that are not resolved are dotted, or outlined, in red.

    Parameters
    ----------
    solution : Solution
        Of any states. Frames are equally long, so that equally spaced `t_eval` give a movie in
        which time runs evenly. The last state of a blow-up, which is next to infinity, is left out.
    path : path
        Ends in ".mp4" (needs ffmpeg) or ".gif".
    fps : float
        Frames a second, > 0. In a .gif a frame lasts whole hundredths of a second, 2 at least.
    member, scale, title
        As for `spacetime`; only densities have a scale.
    dpi : float
        Dots per inch, > 0; the frame is 8 inches wide.
    **options
        On the sphere `seen_from`, as for `orthographic`.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    ValueError
        If the name ends otherwise, fps or dpi is not positive, or the member does not exist.
    MeanfieldError
        If there is no ffmpeg for an .mp4, or it fails.
    TypeError
        For an option that there is not.
    """
    path = check_movie_path(path)
    for name, value in (("fps", fps), ("dpi", dpi)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be positive and finite; got {name} = {value!r}.")
    draw = SCENES.find(solution) or _over_time
    known = options_of(draw)
    check_options(solution, "a movie", options, known)
    if "scale" in known:
        options["scale"] = scale
    members = appearance_of(solution.final).members(solution, member)
    with theme.style():
        figure, show = _stage(solution, members, draw, title, options)
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once: nothing moves but the curves
        write_movie(figure, show, len(resolution.before_blow_up(solution)), path, fps)
    return path


def _stage(
    solution: Solution,
    members: list[Member],
    draw: Callable[..., list[Update]],
    title: str | None,
    options: dict[str, Any],
) -> tuple[Figure, Update]:
    """The figure of the movie, and the function that sets it to a saved state."""
    single = len(members) == 1
    name = appearance_of(solution.final).gathering(solution.final)
    tall = 3.3 if single or not name else 0.3 + 1.7 * -(-len(members) // 3)
    figure = theme.figure(width=8.0, height=tall + (1.9 if name else 0.5))
    if name:
        top, bottom = figure.subfigures(2, 1, height_ratios=[tall, 1.4])
        moving = draw(top, solution, members, **options)
        member = members[0] if single and solution.shape else None
        moving.append(_strip(bottom, solution, name, member))
    else:
        moving = draw(figure.subfigures(), solution, members, **options)
    heading = describe_model(solution) if title is None else title
    title_page(figure, solution, heading or " ", x=0.02, ha="left")
    moving.append(_clock(figure, solution, heading))
    return figure, lambda i: [update(i) for update in moving]


def _strip(figure: SubFigure, solution: Solution, name: str, member: Member | None) -> Update:
    """The observable that tells how far the measure has gathered, with a line at the present."""
    ax = figure.subplots()
    draw_observables(figure, [ax], solution, [name], member, key=False, log_time=False)
    if appearance_of(solution.final).flat(solution.final):
        ax.set_ylabel(quantity_of(solution, name).symbol)
    else:
        ax.set(ylim=(-0.03, 1.05), ylabel="$|m_1|$")
    return cursor(ax, solution)


def _clock(figure: Figure, solution: Solution, heading: str) -> Update:
    """The time beside the heading, which is aligned left so that it does not tremble."""
    (text,) = (child for child in figure.texts if child.get_text() == (heading or " "))
    begin = f"{heading},  " if heading else ""
    labels = distinct(np.asarray(solution.t))
    return lambda i: text.set_text(f"{begin}$t = {labels[i]}$")


def cursor(ax: Axes, solution: Solution) -> Update:
    """A line at the present in a panel over time."""
    line = ax.axvline(solution.t[0], color=theme.INK, linewidth=1.0, zorder=6)
    return lambda i: line.set_xdata([solution.t[i]] * 2)


def moving_line(ax: Axes, solution: Solution, frames: list, colour) -> Update:
    """A curve that goes through `frames`, each (x, y)."""
    (line,) = ax.plot(*frames[0])
    resolved = resolution.resolved_states(solution)

    def update(i: int) -> None:
        line.set_data(*frames[i])
        line.set(
            color=colour if resolved[i] else theme.WARNING,
            linestyle="-" if resolved[i] else ":",
        )

    return update


# What moves: densities -----------------------------------------------------------------------


@scene(Density, Circle)
def _curve_and_ring(top, solution, members, *, scale="auto"):
    """One density over the angle and around the circle; several over the angle, a panel each."""
    if len(members) > 1:
        return _curves(top, solution, members, scale=scale)
    theta, values = profiles(solution, members)
    over, around = top.subplots(1, 2, width_ratios=[1.35, 1.0])
    if solution.shape:
        over.set_title(label_of_member(solution, members[0]))
    chosen, chart = choose_scale(values, scale), visible_chart(solution)
    density_axis(over, chosen)
    chart.beneath(over)
    over.set_ylabel(DENSITY + chosen.note)
    radial = choose_scale(values, scale, heavy="power")
    polar_axes(around, radial, quiet_angle(theta, values[0]))
    around.set_xlabel(RADIUS + radial.note)
    curves = [(theta, curve) for curve in values[0]]
    rings = [tuple(ring(theta, curve, radial)) for curve in values[0]]
    return [
        moving_line(over, solution, curves, theme.PALETTE[0]),
        moving_line(around, solution, rings, theme.PALETTE[0]),
    ]


@scene(Density, Zonal)
def _curves(top, solution, members, *, scale="auto"):
    """Each density over the angle, in a panel of its own."""
    theta, values = profiles(solution, members)
    chart = visible_chart(solution)
    chosen = choose_scale(chart.inside(theta, values), scale)
    target = grid(top, members, solution)
    colours = theme.ordered_colours(len(members))
    updates = []
    for (ax, bottom, _), curves, colour in zip(target.outer, values, colours, strict=True):
        density_axis(ax, chosen)
        chart.beneath(ax, named=bottom)
        updates.append(moving_line(ax, solution, [(theta, c) for c in curves], colour))
    top.supylabel(DENSITY + chosen.note, fontsize=10)
    return updates


@scene(Density, Sphere)
def _fields_from_two_sides(top, solution, members, *, seen_from=None, scale="auto"):
    return _from_two_sides(top, solution, members, FieldLayer(solution, scale), seen_from)


@scene((Characteristics, Tokens), Sphere)
def _dots_from_two_sides(top, solution, members, *, seen_from=None):
    return _from_two_sides(top, solution, members, DotLayer(solution), seen_from)


def _from_two_sides(
    top: SubFigure, solution: Solution, members: list[Member], layer: Layer, seen_from: Any
) -> list[Update]:
    """Each member from two opposite sides, which stay the same throughout the movie."""
    target = grid(top, members, solution)
    updates = []
    for ax, member in zip(target.axes, members, strict=True):
        pair = pair_for(member_of(solution.final, member), seen_from, beside=True)
        outline, moving = layer.moving(ax, pair, member)
        updates += [*moving, reddened(outline, solution)]
        if len(members) == 1:
            name_sides(ax, pair)
    layer.explain(top, target.axes, target.rows)
    return updates


# What moves: points --------------------------------------------------------------------------


@scene(Characteristics, Circle)
def _distribution_and_circle(top, solution, members):
    """How the mass adds up over the angle, and dots of equal mass on the circle."""
    return _distribution(top, solution, QUARTERS, (1,))


@scene(Characteristics, Zonal)
def _distribution_and_meridians(top, solution, members):
    """Axisymmetric measures on a meridian and on the one opposite, the axis upright."""
    return _distribution(top, solution, POLES, (1, -1))


def _distribution(top, solution, names, sides) -> list[Update]:
    left, right = top.subplots(1, 2, width_ratios=[1.35, 1.0])
    distribution_axes(left, solution)
    curves = [cumulated(state) for state in solution]
    circle_axes(right, names)
    sample = sample_of(solution, (), appearance_of(solution.final).most_curves)
    right.set_xlabel(f"dots: {percent(sample.masses[0] / len(sides))} of the mass each")

    def places(i: int) -> np.ndarray:
        points = solution[i].points[sample.indices][:, [0, -1]]
        return np.concatenate([points * [side, 1] for side in sides])

    style = {"s": 16, "c": list(sample.colours) * len(sides), "alpha": 0.7}
    points = right.scatter(*places(0).T, **style)
    return [
        moving_line(left, solution, curves, theme.PALETTE[0]),
        lambda i: points.set_offsets(places(i)),
        redrawn(lambda i: name_clusters(right, solution[i], (0, -1), 9)),
    ]


@scene(Tokens, Circle)
def _trajectories_and_circle(top, solution, members):
    """Angles over time with a line at the present, and the tokens on the circle."""
    left, right = top.subplots(1, 2, width_ratios=[1.35, 1.0])
    draw_trajectories(left, solution, members[0])
    circle_axes(right)
    states = [member_of(state, members[0]) for state in solution]
    return [
        cursor(left, solution),
        _moving_dots(right, solution, members[0], [state.x for state in states]),
        redrawn(lambda i: name_clusters(right, states[i])),
    ]


@scene(Tokens, Hypersphere, Euclidean)
def _plane(top, solution, members):
    """Tokens in the plane, or on the principal axes of the run, with their paths so far."""
    ax, (member,) = top.subplots(), members
    plane, look = plane_of(solution, member), appearance_of(solution.final)
    sample = sample_of(solution, member, look.most_dots)
    traced = sample_of(solution, member, look.most_curves)
    states = [member_of(state, member) for state in solution]
    plane_axes(ax, plane, sample, states)
    title = ", ".join(filter(None, [label_of_member(solution, member), sample.note]))
    ax.set_title(title, loc="left", fontsize=9)
    places = [plane.place(state.x) for state in states]
    trails = np.stack([place[traced.indices] for place in places], axis=1)
    style = {"colors": list(traced.colours), "linewidths": 0.6, "alpha": 0.35, "zorder": 2}
    lines = ax.add_collection(LineCollection(list(trails[:, :1]), **style), autolim=False)
    return [
        lambda i: lines.set_segments(list(trails[:, : i + 1])),
        _moving_dots(ax, solution, member, places),
    ]


def _moving_dots(ax: Axes, solution: Solution, member: Member, places: list[np.ndarray]) -> Update:
    """Dots that go through the places (n, 2) of all tokens."""
    sample = sample_of(solution, member, appearance_of(solution.final).most_dots)
    drawn = dots(ax, sample, places[0])
    return lambda i: drawn.set_offsets(places[i][sample.indices])


@scene(Gram)
def _inner_products(top, solution, members):
    """The histogram of inner products, on a logarithmic scale."""
    ax = top.subplots()
    ax.set_title(label_of_member(solution, members[0]))
    edges = np.linspace(*PRODUCTS.limits, PRODUCT_BINS + 1)
    heights = np.ones(PRODUCT_BINS)
    stairs = ax.stairs(heights, edges, fill=True, color=theme.PALETTE[5], alpha=0.75)
    ax.set(xlim=(-1, 1), ylim=(1e-4, 1.5), yscale="log", xlabel=PRODUCTS.name, ylabel=SHARE)
    shares = [shares_at(state, members[0]) for state in solution]
    return [lambda i: stairs.set_data(np.maximum(shares[i], 1e-9), edges, baseline=1e-9)]


# What moves: normal laws, and others ------------------------------------------------------------


@scene(Gaussian, Plane)
def _ellipse(top, solution, members):
    """The ellipse of one standard deviation about the mean, and the first one in grey."""
    ax = top.subplots()
    states = list(resolution.before_blow_up(solution))
    curves = [ellipse(state) for state in states]
    frame_ellipses(ax, curves)
    ax.plot(*curves[0], color=theme.FAINT, linewidth=0.8)
    (line,) = ax.plot(*curves[0], color=theme.PALETTE[0])
    (dot,) = ax.plot(*states[0].mean[:, None], ".", color=theme.PALETTE[0])
    return [
        lambda i: line.set_data(*curves[i]),
        lambda i: dot.set_data(*states[i].mean[:, None]),
    ]


def _over_time(top: SubFigure, solution: Solution, members: list[Member]) -> list[Update]:
    """What overviews show over time, or observables, with lines at the present."""
    part = PARTS.find(solution)
    if part is not None:
        part(solution, members, log_time=False)[0].draw(top)
    else:
        names = telling(solution, 4, single=len(members) == 1)
        axes = panels_in(top, len(names), 2)
        member = (members[0] or None) if len(members) == 1 else None
        draw_observables(top, axes, solution, names, member, columns=2, log_time=False)
    return [cursor(ax, solution) for ax in top.axes]


# Files ---------------------------------------------------------------------------------------


def check_movie_path(path: str | os.PathLike) -> Path:
    """The path, if a movie can be written there; else ValueError or MeanfieldError."""
    path = path_of("path", path)
    if path.suffix.lower() not in (".mp4", ".gif"):
        raise ValueError(f"A movie is written to a name in .mp4 or .gif; got {str(path)!r}.")
    if not path.parent.is_dir():
        raise ValueError(f"The folder {str(path.parent)!r} does not exist; make it first.")
    if path.suffix.lower() == ".mp4":
        ffmpeg_program()  # refuse before the frames are drawn
    return path


def ffmpeg_program() -> str:
    """Path of an ffmpeg program: the system's, or else the one that imageio-ffmpeg brings.

    Raises
    ------
    MeanfieldError
        If there is neither.
    """
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        raise MeanfieldError(
            "Writing .mp4 needs the program ffmpeg, and none was found. Install it with "
            "`pip install 'meanfield[movie]'`, or write to a name in .gif."
        ) from error


def write_movie(figure: Figure, show: Update, count: int, path: Path, fps: float) -> None:
    """Write `count` frames at `figure.dpi`; `show(i)` sets the figure to frame i."""
    write = _write_mp4 if path.suffix.lower() == ".mp4" else _write_gif
    write(figure, show, count, path, fps)


def _write_mp4(figure, show, count: int, path: Path, fps: float) -> None:
    writer = FFMpegWriter(fps=fps, codec="h264", extra_args=["-pix_fmt", "yuv420p", "-crf", "18"])
    program = ffmpeg_program()
    try:
        with (
            matplotlib.rc_context({"animation.ffmpeg_path": program}),
            writer.saving(figure, str(path), figure.dpi),
        ):
            for i in range(count):
                show(i)
                writer.grab_frame()
    except (OSError, subprocess.CalledProcessError) as error:
        raise MeanfieldError(
            f"{program} failed to write {str(path)!r}: {error}. Write to a name in .gif, or "
            "install another ffmpeg with `pip install 'meanfield[movie]'`."
        ) from error


def _write_gif(figure, show, count: int, path: Path, fps: float) -> None:
    frames = _frames(figure, show, count)
    next(frames).save(
        path,
        format="GIF",
        save_all=True,
        append_images=frames,
        duration=10 * max(2, round(100 / fps)),
        loop=0,
    )


def _frames(figure: Figure, show: Update, count: int) -> Iterator[Image.Image]:
    canvas = FigureCanvasAgg(figure)
    # Without k-means the few pixels of a peak, or of dots, get the colour of something else; it
    # takes a while.
    refine = int(any(ax.images or ax.collections for ax in figure.axes))
    for i in range(count):
        show(i)
        canvas.draw()
        pixels = np.array(canvas.buffer_rgba())[..., :3]
        yield Image.fromarray(pixels).quantize(256, kmeans=refine, dither=Image.Dither.NONE)
