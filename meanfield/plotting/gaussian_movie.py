"""The moving panel of a movie of a normal law in the plane."""

from typing import TYPE_CHECKING

from matplotlib.figure import SubFigure

from . import theme
from .ellipses import ellipse, frame_ellipses
from .movies import Update
from .resolution import before_blow_up

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["ellipse_scene"]


def ellipse_scene(
    top: SubFigure, solution: "Solution", members: list[tuple[int, ...]], scale: str
) -> list[Update]:
    """The ellipse of one standard deviation about the mean, and the first one in grey."""
    ax = top.subplots()
    curves = [ellipse(state) for state in before_blow_up(solution)]
    frame_ellipses(ax, curves)
    ax.plot(*curves[0], color=theme.FAINT, linewidth=0.8)
    (line,) = ax.plot(*curves[0], color=theme.PALETTE[0])
    (dot,) = ax.plot(*solution[0].mean[:, None], ".", color=theme.PALETTE[0])
    return [
        lambda i: line.set_data(*curves[i]),
        lambda i: dot.set_data(*solution[i].mean[:, None]),
    ]
