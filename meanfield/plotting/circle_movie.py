"""The moving panels of a movie of densities on the circle."""

from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import SubFigure

from . import ensemble, resolution, theme
from .circle import DENSITY, angle_axis, uniform_line
from .movies import Update
from .panels import grid
from .polar import RADIUS, dress, quiet_angle, ring
from .profiles import angles_of, profiles
from .scales import choose_scale

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["circle_scene", "curves_scene", "moving_line"]


def circle_scene(
    top: SubFigure, solution: "Solution", members: list[tuple[int, ...]], scale: str
) -> list[Update]:
    """One density over the angle and around the circle; several over the angle, a panel each."""
    draw = _curve_and_ring if len(members) == 1 else curves_scene
    return draw(top, solution, members, scale)


def _curve_and_ring(
    top: SubFigure, solution: "Solution", members: list[tuple[int, ...]], scale: str
) -> list[Update]:
    theta, values = profiles(solution, members)
    over, around = top.subplots(1, 2, width_ratios=[1.35, 1.0])
    if solution.shape:
        over.set_title(ensemble.label(solution, members[0]))
    chosen = choose_scale(values, scale)
    uniform_line(over)
    angles = angles_of(solution)
    angle_axis(over, chosen, angles)
    over.set(xlabel=angles.name, ylabel=DENSITY + chosen.note)
    radial = choose_scale(values, scale, heavy="power")
    dress(around, radial, quiet_angle(theta, values[0]))
    around.set_xlabel(RADIUS + radial.note)
    curves = [(theta, curve) for curve in values[0]]
    rings = [tuple(ring(theta, curve, radial)) for curve in values[0]]
    return [
        moving_line(over, solution, curves, theme.PALETTE[0]),
        moving_line(around, solution, rings, theme.PALETTE[0]),
    ]


def curves_scene(
    top: SubFigure, solution: "Solution", members: list[tuple[int, ...]], scale: str
) -> list[Update]:
    """Each density over the angle, in a panel of its own."""
    theta, values = profiles(solution, members)
    angles = angles_of(solution)
    inside = (theta >= angles.limits[0]) & (theta <= angles.limits[1])
    chosen = choose_scale(values[..., inside], scale)
    target = grid(top, members, solution)
    colours = theme.ordered_colours(len(members))
    updates = []
    for (ax, bottom, _), curves, colour in zip(target.outer, values, colours, strict=True):
        uniform_line(ax)
        angle_axis(ax, chosen, angles)
        ax.set_xlabel(angles.name if bottom else "")
        updates.append(moving_line(ax, solution, [(theta, c) for c in curves], colour))
    top.supylabel(DENSITY + chosen.note, fontsize=10)
    return updates


def moving_line(ax: Axes, solution: "Solution", frames: list, colour) -> Update:
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
