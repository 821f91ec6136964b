"""Maps of densities on the torus over two angles."""

from dataclasses import replace

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from ..core.annotations import PassedOn
from ..core.errors import MeanfieldError
from ..spaces import Density, Torus
from . import layouts, theme
from .fields import choose_scale, density_bar
from .layouts import DrawnMembers, Panels
from .pages import Band, band, upper_part
from .registry import figure
from .spaces import AROUND

MOST_SHOWN_POINTS = 256  # in each direction of a map
SHOWN_TIMES = 6


def plane_values(density: Density) -> np.ndarray:
    """Density of the first two angles from -pi on, with both ends, (n + 1, n + 1)."""
    space = density.space
    if space.circles == 1:
        raise MeanfieldError("A map shows two angles; Torus(degree, 1) has one: use Circle.")
    n, m = space.angles.size, space.circles
    values = density.values.reshape((n,) * m)
    values = values.mean(axis=tuple(range(2, m))) if m > 2 else values
    step = max(1, n // MOST_SHOWN_POINTS)
    shown = np.roll(values, (n // 2, n // 2), axis=(0, 1))[::step, ::step]
    return np.pad(shown, ((0, 1), (0, 1)), mode="wrap")


@figure("map", Density, Torus, sheet=(6, 1.0, 3))
def torus_map(panels: Panels, *, scale: str = "auto") -> None:
    """Maps of the density over two angles at several times.

    Of three angles the law of the first two is shown. The mark on the colour bar is the uniform
    state, 1. Times in red are not resolved.

    Parameters
    ----------
    solution : Solution
        Densities on a torus of two or three angles.
    times : sequence of float, optional
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the density; in an `ax` the last.
    count : int, optional
        How many, where `times` is not given; by default 6, or 3 for several members.
    scale : {"auto", "linear", "log", "power"}
        Colour scale, common to all panels; "auto" is logarithmic if a peak exceeds 30 times the
        mean.

    Raises
    ------
    ValueError
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are not densities on a torus.
    MeanfieldError
        For a single angle.
    """
    values = [plane_values(panels.state(i, m)) for i in panels.times for m in panels.members]
    chosen = choose_scale(np.array([[v.min(), v.max()] for v in values]), scale)
    colours: PassedOn = {"norm": chosen.norm, "cmap": theme.DENSITY_MAP}

    def prepare(member: PassedOn, _row: PassedOn) -> PassedOn:
        def draw(ax: Axes, i: int) -> list[Artist]:
            shown = plane_values(panels.state(i, member))
            edges = np.linspace(-np.pi, np.pi, len(shown))
            return [
                ax.pcolormesh(edges, edges, shown.T, shading="gouraud", rasterized=True, **colours)
            ]

        return draw

    panels.each(prepare)
    for ax in panels.axes:
        ax.set_aspect("equal")
    few = replace(AROUND, ticks=np.array([-np.pi, 0.0, np.pi]), labels=AROUND.labels[::2])
    for ax, bottom, left in panels.outer:
        name = ax.get_ylabel()
        replace(few, name=r"angle $\theta_1$").draw_below(ax, named=bottom)
        replace(few, name=r"angle $\theta_2$").draw_left(ax, named=left)
        if name:  # label of a member
            ax.set_ylabel(f"{name}\n" + r"angle $\theta_2$")
        ax.spines[:].set_visible(True)
    density_bar(panels, ScalarMappable(**colours), chosen, r"density $\mu_t(\theta_1, \theta_2)$")


@upper_part(Density, Torus)
def _maps_of_the_torus(drawn: DrawnMembers, *, scale: str = "auto") -> list[Band]:
    """Maps at several times; of several members one each, at the last time. None of one angle."""
    final: PassedOn = drawn.solution.final
    if final.space.circles == 1:
        return []
    if len(drawn.members) > 1:
        last = np.array([layouts.drawn_count(drawn.solution) - 1])
        columns = min(len(drawn.members), 3)
        height = 0.4 + 2.4 * -(-len(drawn.members) // columns)
        return [band(height, torus_map, drawn, last, columns=columns, scale=scale)]
    shown = drawn.spread_times(SHOWN_TIMES)
    columns = min(len(shown), 3)
    return [
        band(2.3 * -(-len(shown) // columns), torus_map, drawn, shown, columns=columns, scale=scale)
    ]
