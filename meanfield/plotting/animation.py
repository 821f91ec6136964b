"""Movies of a density: one frame for each saved state."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from . import ensemble, resolution, theme
from .circle import DENSITY, angle_axis, uniform_line
from .digits import distinct
from .movies import check_movie_path, write_movie
from .observables import draw_observables
from .panels import grid, title_page
from .polar import RADIUS, dress, quiet_angle, ring
from .profiles import profiles
from .scales import choose_scale

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["animate"]

Update = Callable[[int], object]


def animate(
    solution: "Solution",
    path: str | os.PathLike,
    *,
    fps: float = 20.0,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    dpi: float = 120.0,
    title: str | None = None,
) -> Path:
    """Write a movie with one frame for each saved state.

    A single density is shown over the angle and around the circle, several members of an
    ensemble over the angle in one panel each; beneath runs the order parameter. States that are
    not resolved are dotted and red.

    Parameters
    ----------
    solution : Solution
        Densities on the circle. Frames are equally long, so that equally spaced `t_eval` give a
        movie in which time runs evenly.
    path : path
        Ends in ".mp4" (needs ffmpeg) or ".gif".
    fps : float
        Frames a second, > 0. In a .gif a frame lasts whole hundredths of a second, 2 at least.
    member, scale, title
        As for `spacetime`.
    dpi : float
        Dots per inch, > 0; the frame is 8 inches wide.

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
    """
    path = check_movie_path(path)
    for name, value in (("fps", fps), ("dpi", dpi)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be positive and finite; got {name} = {value!r}.")
    with theme.style():
        members = ensemble.choose(solution, member)
        figure, show = _scene(solution, members, scale, title)
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once: nothing moves but the curves
        write_movie(figure, show, len(solution.t), path, fps)
    return path


def _scene(
    solution: "Solution", members: list[tuple[int, ...]], scale: str, title: str | None
) -> tuple[Figure, Update]:
    """The figure of the movie, and the function that sets it to a saved state."""
    single = len(members) == 1
    tall = 3.3 if single else 0.3 + 1.7 * -(-len(members) // 3)
    figure = theme.figure(width=8.0, height=tall + 1.9)
    top, bottom = figure.subfigures(2, 1, height_ratios=[tall, 1.4])
    moving = (_curve_and_ring if single else _curves)(top, solution, members, scale)
    strip = bottom.subplots()
    member = members[0] if single and solution.shape else None
    draw_observables(bottom, [strip], solution, ["order_parameter"], member, key=False)
    strip.set(ylim=(-0.03, 1.05), ylabel="$|m_1|$")
    heading = ensemble.describe(solution) if title is None else title
    title_page(figure, solution, heading or " ", x=0.02, ha="left")
    moving += [_cursor(strip, solution), _clock(figure, solution, heading)]
    return figure, lambda i: [update(i) for update in moving]


def _curve_and_ring(
    top: SubFigure, solution: "Solution", members: list[tuple[int, ...]], scale: str
) -> list[Update]:
    theta, values = profiles(solution, members)
    over, around = top.subplots(1, 2, width_ratios=[1.35, 1.0])
    if solution.shape:
        over.set_title(ensemble.label(solution, members[0]))
    chosen = choose_scale(values, scale)
    uniform_line(over)
    angle_axis(over, chosen)
    over.set(xlabel=r"angle $\theta$", ylabel=DENSITY + chosen.note)
    radial = choose_scale(values, scale, heavy="power")
    dress(around, radial, quiet_angle(theta, values[0]))
    around.set_xlabel(RADIUS + radial.note)
    curves = [(theta, curve) for curve in values[0]]
    rings = [tuple(ring(theta, curve, radial)) for curve in values[0]]
    return [
        _moving_line(over, solution, curves, theme.PALETTE[0]),
        _moving_line(around, solution, rings, theme.PALETTE[0]),
    ]


def _curves(
    top: SubFigure, solution: "Solution", members: list[tuple[int, ...]], scale: str
) -> list[Update]:
    theta, values = profiles(solution, members)
    chosen = choose_scale(values, scale)
    target = grid(top, members, solution)
    colours = theme.ordered_colours(len(members))
    updates = []
    for (ax, bottom, _), curves, colour in zip(target.outer, values, colours, strict=True):
        uniform_line(ax)
        angle_axis(ax, chosen)
        ax.set_xlabel(r"angle $\theta$" if bottom else "")
        updates.append(_moving_line(ax, solution, [(theta, c) for c in curves], colour))
    top.supylabel(DENSITY + chosen.note, fontsize=10)
    return updates


def _moving_line(ax: Axes, solution: "Solution", frames: list, colour) -> Update:
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


def _cursor(ax: Axes, solution: "Solution") -> Update:
    line = ax.axvline(solution.t[0], color=theme.INK, linewidth=1.0, zorder=6)
    return lambda i: line.set_xdata([solution.t[i]] * 2)


def _clock(figure: Figure, solution: "Solution", heading: str) -> Update:
    """The time beside the heading, which is aligned left so that it does not tremble."""
    (text,) = (child for child in figure.texts if child.get_text() == (heading or " "))
    begin = f"{heading},  " if heading else ""
    labels = distinct(np.asarray(solution.t))
    return lambda i: text.set_text(f"{begin}$t = {labels[i]}$")
