"""Spectra: how fast the coefficients of densities fall with the degree, which shows resolution."""

import numpy as np

from ..results.solution import Solution
from ..spaces import Circle, Sphere, Zonal
from ..spaces.density import Density
from . import theme
from .appearance import appearance_of
from .curves import draw_curves
from .labels import Member, label_logarithmic
from .layouts import Panels
from .registry import figure

LEAST_COEFFICIENT = 1e-18  # smaller ones, such as 0 by symmetry, are drawn as this
SPECTRUM_FLOOR = 1e-17  # end of the axis, below the rounding of the mass
ROOM = 3.0  # above and below the curves, a factor


@figure("spectrum", Density, Circle, Sphere, Zonal, panels=(6.0, 3.4, 7))
def spectrum(target: Panels, solution: Solution) -> None:
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
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the density.
    count : int, optional
        How many, where `times` is not given; by default 7.
    bar : bool
        Whether a colour bar shows the times.

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are not densities.
    """
    laws = [appearance_of(solution.final).law(solution[int(i)]) for i in target.times]
    curves = [[by_degree(law, member) for law in laws] for member in target.members]
    least = min(sizes[sizes > LEAST_COEFFICIENT].min() for each in curves for _, sizes in each)
    highest = max(degrees[-1] for each in curves for degrees, _ in each)
    for ax, bottom, left in target.outer:
        ax.axhline(solution.rtol, color=theme.FAINT, linewidth=1.0, linestyle="--", zorder=1)
        ax.set(xlim=(0, max(highest, 1)), yscale="log")
        ax.set_ylim(max(SPECTRUM_FLOOR, min(least, solution.rtol)) / ROOM, ROOM)
        label_logarithmic(ax.yaxis)
        ax.set_xlabel("degree $l$" if bottom else "")
        ax.set_ylabel(r"largest $|c_{lm}|$" if left else "")
    draw_curves(target, solution, curves)


def by_degree(density: Density, member: Member = ()) -> tuple[np.ndarray, np.ndarray]:
    """The degrees of a density (n,), and the largest absolute coefficient of each."""
    of_modes = density.space.degrees
    degrees = np.unique(of_modes)
    sizes = np.full(degrees.size, LEAST_COEFFICIENT)
    places = np.searchsorted(degrees, of_modes)
    np.maximum.at(sizes, places, np.abs(density.coefficients[member]))
    return degrees, sizes
