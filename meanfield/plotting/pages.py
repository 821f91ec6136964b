"""Overview pages and movies of runs: the states over time, and their most informative observables.

`upper_part` registers the upper part of a page for kinds of states and spaces, as bands of panels,
and `scene` the moving part of a movie. For other states, observables are shown.
"""

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib
import numpy as np
from matplotlib.animation import FFMpegWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from PIL import Image

from ..core.checks import check_memory, path_of, real
from ..core.errors import MeanfieldError
from ..core.files import check_writable, write_whole
from ..core.provided import FIGURES
from ..core.version import program_of_ffmpeg
from ..results.solution import Solution
from ..spaces import Circle, Sphere, Torus, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..spaces.indexed import Indexed
from ..states import Equiangular, Gaussian, Gram, Tokens, TorusTokens
from . import curves, fields, gaussians, indexed, layouts, points, registry, sphere, theme, torus
from .appearance import appearance_of
from .labels import Member, all_members, describe_model, distinct
from .layouts import DrawnMembers, Panels
from .observables import draw_observables, gaps, main_observables
from .registry import FigureKind, check_options, options_for, options_of
from .spaces import Euclidean, Flat, Hypersphere, Line, Plane

# The page ------------------------------------------------------------------------------------

VIEWING = ("seen_from", "scale", "density")  # options of movies
TIMES, COLUMNS, MAPS = 6, 5, 4  # numbers of times shown: of densities, of points, by index
PARTS_OF_PAGES, SCENES = registry.FigureRegistry(), registry.FigureRegistry()


@dataclass(frozen=True)
class Band:
    """A band across the page: its height in inches, and the function that draws into it."""

    height: float
    draw: Callable[[SubFigure], object]


def upper_part(
    states: type | tuple[type, ...], *spaces: type, single: str | None = None
) -> Callable[[Any], Any]:
    """Decorate the function that draws the upper part of an overview, above the observables.

    The function takes `DrawnMembers`, the solution and the members to show, then options by
    keyword, and returns bands. An option `log_time` gets whether the time axis is logarithmic.

    Parameters
    ----------
    single : str, optional
        The kind of figure that is the overview of a single saved time; by default the upper part.
    """

    def register(bands: Any) -> Any:
        bands.single = single
        return PARTS_OF_PAGES.register("", states, spaces)(bands)

    return register


@registry.figure("overview")
def overview(
    solution: Solution,
    *,
    member: int | Member | None = None,
    title: str | None = None,
    **options: Any,
) -> Figure:
    """One page: the states over time, or at several times, above their observables.

    Of an ensemble of densities all members are shown, at most nine; of replicas of tokens the
    first one, above the observables of all. A single saved time is shown without observables.

    Parameters
    ----------
    solution : Solution
        Of any states.
    member : int or tuple of int, optional
        Member of an ensemble: then the observables are also those of this member alone.
    title : str, optional
        Heading; by default the model, and none if it is "".
    **options
        `log_time`, where something runs over logarithmic times, as for `observables`; of densities
        `scale`, as for `spacetime`; on the sphere `seen_from` and `clusters`, as for
        `orthographic`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If the member does not exist, there are too many, or there are fewer than two times above
        0 with `log_time`.
    TypeError
        For an option that the upper part of the page does not have.
    """
    part: Any = PARTS_OF_PAGES.of(solution).get("")
    valid = options_of(part) if part else ["log_time"]
    check_options(solution, "kind='overview'", options, ["member", "title", *valid])
    members = appearance_of(solution.final).members(solution, member)
    if part is None or (len(solution) == 1 and part.single):
        draw = registry.find_figure(solution, part.single if part else "observables")
        shown_member = (members[0] or None) if solution.final.replicated else member
        all_options = {"member": shown_member, "title": title, **options}
        return draw(solution, **options_for(draw, all_options))
    log_time = options.pop("log_time", None)
    if "log_time" in valid:
        log_time = options["log_time"] = layouts.is_logarithmic(solution, log_time)
    single = len(members) == 1 and not solution.final.replicated
    with theme.style():
        bands = part(DrawnMembers(solution, members), **options)
        if len(solution) > 1:
            names = main_observables(solution, 4, single=single)
            shown = DrawnMembers(solution, members if single else all_members(solution, member))
            tall = 0.1 + 2.0 * -(-len(names) // 2)
            bands.append(
                Band(tall, lambda bottom: _draw_observables_in(bottom, shown, names, log_time))
            )
        heights = [band.height for band in bands]
        page = theme.figure(width=7.5 if single else 8.0, height=sum(heights) + 0.4)
        parts = np.ravel(page.subfigures(len(bands), 1, height_ratios=heights))
        for band, place in zip(bands, parts, strict=True):
            band.draw(place)
        return layouts.title_page(page, solution, title)


def _draw_observables_in(
    place: SubFigure, view: DrawnMembers, names: list[str], log_time: bool | None
) -> None:
    """Draw observables of these members together, one in each panel, two panels in a row."""
    axes = layouts.panels_in(place, len(names), 2)
    panels = Panels(view.solution, view.members, place, axes, 2)
    draw_observables(panels, names, log_time=log_time)


# The movie -----------------------------------------------------------------------------------


def scene(states: type | tuple[type, ...], *spaces: type) -> Callable[[Any], Any]:
    """Decorate a function that draws the moving panels of these states on these spaces.

    It takes a subfigure and `DrawnMembers`, the solution and the members to show, then options by
    keyword, and returns a list of functions: each sets what it has drawn to the saved state of a
    given index.
    """

    return SCENES.register("", states, spaces)


@FIGURES.register
def animate(
    solution: Solution,
    path: str | os.PathLike[str],
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
    sides. Indexed densities are shown as a map of index against angle beside the marginal density;
    on the sphere, as the map of the marginal law beside the order parameter by index.
    Characteristics are shown as dots of equal mass, with the shares of clusters; on the
    circle, or axisymmetric, also the mass below each angle. Tokens are shown as dots: on the
    circle beside their angles over time, on the torus over two angles, in R^2 with their paths, in
    higher dimension on the principal axes of the run; of inner products the histogram; of a
    Gaussian in the plane the ellipse. Of other states a line runs through what is drawn over
    time. Of tokens one member is shown, by default the first. Beneath runs the order parameter,
    or in R^d the spread. Curves that are not resolved are dotted, and their time is red.

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
        On the sphere `seen_from`, as for `orthographic`; of tokens on the circle or the torus
        `density`, a run of a density that is drawn beside them.

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
    StorageError
        If the movie cannot be written.
    TypeError
        For an option that there is not.
    """
    path = check_movie_path(path)
    fps = real("fps", fps, "from 0.01 to 1000", lambda number: 0.01 <= number <= 1000)
    dpi = real("dpi", dpi, "from 10 to 10000", lambda number: 10 <= number <= 10_000)
    check_memory(f"frames of dpi = {dpi:g}", (round(8 * dpi), round(8 * dpi)), "dpi")
    draw = SCENES.of(solution)[""]
    valid = options_of(draw)
    check_options(solution, "a movie", options, valid)
    if "scale" in valid:
        options["scale"] = scale
    view = DrawnMembers(solution, appearance_of(solution.final).members(solution, member))
    with theme.style():
        figure, show = _stage(view, partial(draw, **options), title)
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once: nothing moves but the states
        write = _write_mp4 if path.suffix.lower() == ".mp4" else _write_gif
        with TemporaryDirectory() as folder:
            scratch = Path(folder, f"movie{path.suffix}")
            write(figure, show, layouts.drawn_count(solution), scratch, fps)
            return write_whole(path, scratch.read_bytes())


def _stage(
    view: DrawnMembers, draw: Callable[..., list[layouts.Update]], title: str | None
) -> tuple[Figure, layouts.Update]:
    """The figure of a movie, and a function that sets it to the saved state of a given index."""
    solution, members = view.solution, view.members
    single, name = len(members) == 1, view.look.concentration(solution.final)
    tall = 3.3 if single or not name else 0.3 + 1.7 * -(-len(members) // 3)
    heights = [tall, 1.4] if name else [tall]
    figure = theme.figure(width=8.0, height=sum(heights) + 0.5)
    top, *bottom = np.ravel(figure.subfigures(len(heights), 1, height_ratios=heights))
    updates = draw(top, view)
    if name:
        ax, shown = bottom[0].subplots(), members if single else all_members(solution, None)
        panels = Panels(solution, shown, bottom[0], [ax], 1)
        draw_observables(panels, [name], key=False, log_time=False)
        if name == "order_parameter":
            ax.set(ylim=(-0.03, 1.05), ylabel="$|m_1|$")
        updates.append(cursor(ax, solution))
    heading = describe_model(solution) if title is None else title
    layouts.title_page(figure, solution, heading or " ", x=0.02, ha="left")
    updates.append(_clock(figure, solution, heading))
    return figure, lambda i: [update(i) for update in updates]


def _clock(figure: Figure, solution: Solution, heading: str) -> layouts.Update:
    """A function that writes the time of a saved state after the heading, red if not resolved.

    The heading is aligned left, so that it does not move between frames.
    """
    (text,) = (child for child in figure.texts if child.get_text() == figure.get_suptitle())
    begin = f"{text.get_text()},  " if heading else ""
    labels, mask = distinct(solution.t), layouts.resolved_states(solution)

    def update(i: int) -> None:
        colour = theme.INK if mask[i] else theme.WARNING
        text.set(text=f"{begin}$t = {labels[i]}$", color=colour)

    return update


def cursor(ax: Axes, solution: Solution) -> layouts.Update:
    """Draw a vertical line in a panel over time; returns the function that moves it to a state."""
    line = ax.axvline(solution.t[0], color=theme.INK, linewidth=1.0, zorder=6)
    return lambda i: line.set_xdata([solution.t[i]] * 2)


# What pages show of each kind of state -------------------------------------------------------


def band(
    height: float, kind: FigureKind, view: DrawnMembers, shown: np.ndarray | None = None, *,
    columns: int | None = None, upright: bool = False, **options: Any,
) -> Band:  # fmt: skip
    """A band in which a kind of figure is drawn: a panel for each member, in a sheet at each time.

    `shown` are indices of the saved times, by default the last.
    """
    times = np.array([-1]) if shown is None else shown

    def draw(top: SubFigure) -> None:
        if kind.is_sheet:
            panels = layouts.sheet_in(top, view, times, columns or len(times), upright=upright)
        else:
            panels = layouts.grid(top, view, times=times)
        kind.draw(panels, **options)

    return Band(height, draw)


class OneBand:
    """Upper part with one kind of figure; if this shows single times, at `times` of them.

    `height` is that of a row of `columns` panels, by default of all.
    """

    def __init__(
        self, height: float, kind: FigureKind, times: int = 1, columns: int = COLUMNS,
        **options: Any,
    ):  # fmt: skip
        self._height, self._kind, self._fixed = height, kind, options
        self._times, self._columns = times, columns
        viewing = ("seen_from", "clusters", "density") if kind.is_sheet else ()
        self.options = [*(name for name in viewing if name in options_of(kind)), "log_time"]

    def __call__(self, view: DrawnMembers, **options: Any) -> list[Band]:
        shown = view.spread_times(self._times) if self._kind.is_sheet else np.array([-1])
        columns = min(len(shown), self._columns)
        settings = self._fixed | options_for(self._kind, options)
        height = self._height * -(-len(shown) // columns)
        return [band(height, self._kind, view, shown, columns=columns, **settings)]


def at_the_end(tall: float, kind: FigureKind, view: DrawnMembers, scale: str) -> list[Band]:
    """One band for several members, at most three in a row; of sheets at the last time."""
    count, last = len(view.members), np.array([layouts.drawn_count(view.solution) - 1])
    columns = min(count, 3)
    return [band(0.4 + tall * -(-count // columns), kind, view, last, columns=columns, scale=scale)]


@upper_part(Density, Circle, Zonal, single="snapshots")
def _densities(view: DrawnMembers, *, scale: str = "auto") -> list[Band]:
    """A space-time map; of one member also curves over the angle, and around the circle."""
    if len(view.members) > 1:
        return at_the_end(1.7, fields.spacetime, view, scale)

    def middle_band(middle: SubFigure) -> None:
        """Draw the curves over the angle and around the circle, with one colour bar of times."""
        available: dict[str, Any] = registry.kinds_of(view.solution)
        kinds = [available[name] for name in ("snapshots", "polar") if name in available]
        ratios = [1.2, 1.0][: len(kinds)]
        places = middle.subplots(1, len(kinds), squeeze=False, width_ratios=ratios)[0]
        panels = Panels(view.solution, view.members, middle, list(places), 1)
        panels.times = view.spread_times(TIMES)
        for ax, kind in zip(places, kinds, strict=True):
            kind.draw(replace(panels, axes=[ax], bar=False), scale=scale)
        curves.time_bar(panels)

    return [band(2.5, fields.spacetime, view, scale=scale), Band(3.0, middle_band)]


@upper_part(Density, Sphere)
def _maps(
    view: DrawnMembers, *, seen_from: Sequence[float] | None = None, clusters: bool = True,
    scale: str = "auto",
) -> list[Band]:  # fmt: skip
    """Maps at several times, and the last state from two sides; of several members one map each."""
    if len(view.members) > 1:
        return at_the_end(1.35, sphere.mollweide, view, scale)
    shown = view.spread_times(TIMES)
    columns = min(len(shown), 3)
    height = (3.2, 1.8, 1.4)[columns - 1] * -(-len(shown) // columns)
    colours: Any = sphere.common_scale(view, shown, scale)
    maps = {"columns": columns, "scale": colours}
    sides = {"seen_from": seen_from, "clusters": clusters, "scale": colours}
    return [
        band(height, sphere.mollweide, view, shown, **maps),
        band(3.5, sphere.orthographic, view, shown[-1:], **sides),
    ]


@upper_part(Density, Torus, single="map")
def _maps_of_the_torus(view: DrawnMembers, *, scale: str = "auto") -> list[Band]:
    """Maps at several times; of several members one each, at the last time."""
    if len(view.members) > 1:
        return at_the_end(2.4, torus.torus_map, view, scale)
    return OneBand(2.3, torus.torus_map, TIMES, 3)(view, scale=scale)


@upper_part(Indexed, Circle, Zonal, single="map")
def _by_index(
    view: DrawnMembers, *, scale: str = "auto", log_time: bool | None = None
) -> list[Band]:
    """Maps of index against angle, and the order parameter by index; several members at the end."""
    if len(view.members) > 1:
        return at_the_end(1.9, indexed.index_map, view, scale)
    maps = band(2.4, indexed.index_map, view, view.spread_times(MAPS), scale=scale)
    return [maps, _orders(view, log_time)]


@upper_part(Indexed, Sphere)
def _marginals(
    view: DrawnMembers, *, scale: str = "auto", log_time: bool | None = None
) -> list[Band]:
    """Maps of the marginal law, and the order parameter by index."""
    bands, count = _maps(view, scale=scale)[:1], len(view.members)
    if count == 1:
        return [*bands, _orders(view, log_time)]
    height = 0.4 + 1.8 * -(-count // 3)
    return [*bands, band(height, indexed.order, view, view.spread_times(TIMES))]


def _orders(view: DrawnMembers, log_time: bool | None) -> Band:
    """The order parameter by index at several times and, of several times, over time."""

    def draw(place: SubFigure) -> None:
        kinds = [indexed.order, indexed.order_map][: 1 + (len(view.solution) > 1)]
        shown = view.spread_times(TIMES)
        for part, kind in zip(np.ravel(place.subfigures(1, len(kinds))), kinds, strict=True):
            panels = layouts.grid(part, view, times=shown)
            kind.draw(panels, **options_for(kind, {"log_time": log_time}))

    return Band(2.7, draw)


@upper_part((Tokens, TorusTokens), Circle, single="polar")
def _on_the_circle(view: DrawnMembers, *, log_time: bool | None = None) -> list[Band]:
    """Trajectories of tokens on the circle; with noise a space-time map, as they never rest."""
    kind = fields.token_spacetime if view.solution.model.noisy else curves.trajectories
    return [band(3.4, kind, view, log_time=log_time)]


@upper_part(Equiangular, single="observables")
def _gaps(view: DrawnMembers, *, log_time: bool | None = None) -> list[Band]:
    """log10(1 - rho) of all members over time."""
    return [Band(3.0, lambda top: gaps(top, view, log_time))]


@upper_part(Gaussian, Plane, single="ellipses")
def _ellipses(view: DrawnMembers, *, log_time: bool | None = None) -> list[Band]:
    """Ellipses, and the path of the covariance divided by its trace."""

    def plane(top: SubFigure) -> None:
        left, right = top.subplots(1, 2, width_ratios=[1.25, 1])
        panels = Panels(view.solution, view.members, top, [left], 1)
        gaussians.ellipses.draw(panels, count=TIMES)
        gaussians.draw_disc(right, view.solution)

    return [Band(3.4, plane)]


PATHS = OneBand(3.4, curves.trajectories)
PRODUCT_BANDS = OneBand(3.2, fields.inner_products)
DOTS = OneBand(3.1, sphere.orthographic_dots, COLUMNS, upright=True)
SQUARES = OneBand(2.3, torus.torus_dots, TIMES, 3)
upper_part((Characteristics, Tokens), Sphere, single="orthographic")(DOTS)
upper_part((Characteristics, TorusTokens), Torus, single="map")(SQUARES)
upper_part(Characteristics, Circle, Zonal, single="distribution")(PATHS)
upper_part(Tokens, Line, single="observables")(OneBand(3.4, curves.trajectories))
upper_part(Tokens, Plane, single="paths")(OneBand(4.2, points.paths))
upper_part(Tokens, Euclidean, single="projection")(OneBand(2.2, points.projection, COLUMNS))
upper_part(Tokens, Hypersphere, single="inner_products")(PRODUCT_BANDS)
upper_part(Gram, single="inner_products")(PRODUCT_BANDS)
upper_part(Gaussian, Flat, single="variances")(OneBand(3.4, gaussians.variances))


# What movies show of each kind of state ------------------------------------------------------


class Film:
    """Scene with kinds of figures side by side; for several members, with the first kind only.

    In figures over time, which do not change, a line marks the current time. Options are passed to
    the kinds that have them.
    """

    def __init__(self, *kinds: FigureKind, **fixed: Any):
        self._kinds, self._fixed = kinds, fixed
        options = {name for kind in kinds for name in options_of(kind)}
        self.options = [name for name in VIEWING if name in options]

    def __call__(self, top: SubFigure, view: DrawnMembers, **options: Any) -> list[layouts.Update]:
        """Draw the kinds side by side; returns the functions that set them to a saved state."""
        kinds, updates = self._kinds[: 1 if len(view.members) > 1 else None], []
        places = np.ravel(top.subfigures(1, len(kinds), width_ratios=[1.35, 1.0][: len(kinds)]))
        for kind, place in zip(kinds, places, strict=True):
            times = np.arange(layouts.drawn_count(view.solution))
            panels = layouts.grid(place, view, film=[], times=times)
            if kind is not kinds[0]:
                panels.axes[0].set_title("")
            kind.draw(panels, **options_for(kind, options), **self._fixed)
            updates += panels.film or [cursor(ax, view.solution) for ax in panels.axes]
        return updates


scene(Density, Circle)(Film(curves.snapshots, curves.polar))
scene(Density, Zonal)(Film(curves.snapshots))
scene(Density, Sphere)(Film(sphere.orthographic))
scene(Density, Torus)(Film(torus.torus_map))
scene((Characteristics, TorusTokens), Torus)(Film(torus.torus_dots))
scene(Indexed, Circle, Zonal)(Film(indexed.index_map, curves.snapshots))
scene(Indexed, Sphere)(Film(sphere.mollweide, indexed.order))
scene((Characteristics, Tokens), Sphere)(Film(sphere.orthographic_dots))
scene(Characteristics, Circle, Zonal)(Film(curves.distribution, points.rings))
scene((Tokens, TorusTokens), Circle)(Film(curves.trajectories, points.rings))
scene(Tokens, Hypersphere, Euclidean)(Film(points.projection, trails=True))
scene(Gram)(Film(curves.product_histogram))
scene(Gaussian, Plane)(Film(gaussians.ellipses))


@scene(object)
def _over_time(top: SubFigure, view: DrawnMembers) -> list[layouts.Update]:
    """The first band of the overview, or else observables, with lines at the current time."""
    solution, single = view.solution, len(view.members) == 1
    part = PARTS_OF_PAGES.of(solution).get("")
    if part is not None and "log_time" in options_of(part):  # it runs over time
        part(view, log_time=False)[0].draw(top)
        return [cursor(ax, solution) for ax in top.axes]
    names = main_observables(solution, 4, single=single)
    if not names:
        raise ValueError(
            "A movie shows observables, of which this solution has none; give some to solve "
            "with observe={name: function}."
        )
    shown = view if single else DrawnMembers(solution, all_members(solution, None))
    _draw_observables_in(top, shown, names, False)
    return [cursor(ax, solution) for ax in top.axes]


# Files ---------------------------------------------------------------------------------------


def check_movie_path(path: str | os.PathLike[str]) -> Path:
    """The path, if a movie can be written there; else ValueError or MeanfieldError."""
    path = path_of("path", path)
    if path.suffix.lower() not in (".mp4", ".gif"):
        raise ValueError(f"path: a movie is written to a name in .mp4 or .gif; got {str(path)!r}.")
    check_writable(path)
    if path.suffix.lower() == ".mp4":
        ffmpeg_program()  # refuse before the frames are drawn
    return path


def ffmpeg_program() -> str:
    """Path of an ffmpeg program; MeanfieldError if there is none."""
    if program := program_of_ffmpeg():
        return program
    raise MeanfieldError(
        "Writing .mp4 needs the program ffmpeg, and none was found. Install it with "
        "`pip install imageio-ffmpeg`, or write to a name in .gif."
    )


def _write_mp4(figure: Figure, show: layouts.Update, count: int, path: Path, fps: float) -> None:
    """Write frames 0, ..., count - 1 to a film by ffmpeg; MeanfieldError if it fails."""
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
            "install another ffmpeg with `pip install imageio-ffmpeg`."
        ) from error


def _write_gif(figure: Figure, show: layouts.Update, count: int, path: Path, fps: float) -> None:
    """Write frames 0, ..., count - 1 to a looping GIF, of 256 colours each."""
    canvas = FigureCanvasAgg(figure)
    # k-means is slow, but without it the few pixels of a peak, or of dots, get a wrong colour.
    refine = int(any(ax.images or ax.collections for ax in figure.axes))

    def frame(i: int) -> Image.Image:
        show(i)
        canvas.draw()
        pixels = np.array(canvas.buffer_rgba())[..., :3]
        return Image.fromarray(pixels).quantize(256, kmeans=refine, dither=Image.Dither.NONE)

    frames, duration = map(frame, range(count)), 10 * max(2, round(100 / fps))
    style = {"format": "GIF", "save_all": True, "append_images": frames, "loop": 0}
    next(frames).save(path, duration=duration, **style)
