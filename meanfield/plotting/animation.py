"""Movies of a solution: one frame for each saved state."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from ..spaces import Circle, Sphere, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Gaussian, Gram, Tokens
from . import ensemble, resolution, theme
from .characteristics_movie import dots_scene, meridian_scene
from .circle_movie import circle_scene, curves_scene
from .crowds import first_member
from .digits import distinct
from .gaussian_movie import ellipse_scene
from .movies import Update, check_movie_path, write_movie
from .observables import draw_observables
from .panels import title_page
from .quantities import quantity_of
from .spaces import ByState, Space, describe_states, entry_of
from .sphere_movie import sphere_scene
from .token_movie import cursor, line_scene, plane_scene, products_scene, ring_scene

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["animate"]

# The moving panels of each kind of state and space:
# (figure, solution, members, scale, **options) -> updates.
SCENES: ByState[Callable[..., list[Update]]] = {
    Density: {Circle: circle_scene, Sphere: sphere_scene, Zonal: curves_scene},
    Characteristics: {Circle: meridian_scene, Sphere: dots_scene, Zonal: meridian_scene},
    Tokens: {
        Circle: ring_scene,
        Sphere: dots_scene,
        Space.HYPERSPHERE: plane_scene,
        Space.LINE: line_scene,
        Space.PLANE: plane_scene,
        Space.EUCLIDEAN: plane_scene,
    },
    Gram: {Space.PAIRS: products_scene},
    Gaussian: {Space.PLANE: ellipse_scene},
}


def animate(
    solution: "Solution",
    path: str | os.PathLike,
    *,
    fps: float = 20.0,
    member: int | tuple[int, ...] | None = None,
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
    principal axes of the run; of inner products their law; of a Gaussian in the plane its ellipse.
    Of tokens one member is shown, by default the first. Beneath runs the order parameter, or in
    R^d the spread.
    States that are not resolved are dotted, or outlined, in red.

    Parameters
    ----------
    solution : Solution
        Of any states but equiangular tokens. Frames are equally long, so that equally spaced
        `t_eval` give a movie in which time runs evenly. The last state of a blow-up, which is next
        to infinity, is left out.
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
        If there is no movie of such states on this space.
    """
    path = check_movie_path(path)
    if not isinstance(solution.final, tuple(SCENES)):
        raise TypeError(
            "Expected densities, characteristics, tokens, their inner products or Gaussians for a "
            f"movie; there is none of {describe_states(solution)}: draw a figure with plot()."
        )
    for name, value in (("fps", fps), ("dpi", dpi)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be positive and finite; got {name} = {value!r}.")
    with theme.style():
        if isinstance(solution.final, Tokens | Gram):
            members = [first_member(solution, member)]
        else:
            members = ensemble.choose(solution, member)
        figure, show = _stage(solution, members, scale, title, options)
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once: nothing moves but the curves
        write_movie(figure, show, len(resolution.before_blow_up(solution)), path, fps)
    return path


def _stage(
    solution: "Solution",
    members: list[tuple[int, ...]],
    scale: str,
    title: str | None,
    options: dict[str, Any],
) -> tuple[Figure, Update]:
    """The figure of the movie, and the function that sets it to a saved state."""
    single = len(members) == 1
    tall = 3.3 if single else 0.3 + 1.7 * -(-len(members) // 3)
    figure = theme.figure(width=8.0, height=tall + 1.9)
    top, bottom = figure.subfigures(2, 1, height_ratios=[tall, 1.4])
    moving = entry_of(solution, SCENES)(top, solution, members, scale, **options)
    strip = bottom.subplots()
    member = members[0] if single and solution.shape else None
    _draw_strip(bottom, strip, solution, member)
    heading = ensemble.describe(solution) if title is None else title
    title_page(figure, solution, heading or " ", x=0.02, ha="left")
    moving += [cursor(strip, solution), _clock(figure, solution, heading)]
    return figure, lambda i: [update(i) for update in moving]


def _draw_strip(
    figure: SubFigure, ax: Axes, solution: "Solution", member: tuple[int, ...] | None
) -> None:
    """One number over time that tells how far tokens have gathered."""
    flat = isinstance(solution.final, Gaussian) or not getattr(solution.final, "on_sphere", True)
    name = "spread" if flat else "order_parameter"
    draw_observables(figure, [ax], solution, [name], member, key=False, log_time=False)
    if flat:
        ax.set_ylabel(quantity_of(solution, name).symbol)
    else:
        ax.set(ylim=(-0.03, 1.05), ylabel="$|m_1|$")


def _clock(figure: Figure, solution: "Solution", heading: str) -> Update:
    """The time beside the heading, which is aligned left so that it does not tremble."""
    (text,) = (child for child in figure.texts if child.get_text() == (heading or " "))
    begin = f"{heading},  " if heading else ""
    labels = distinct(np.asarray(solution.t))
    return lambda i: text.set_text(f"{begin}$t = {labels[i]}$")
