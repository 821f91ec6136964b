"""Fields: maps of a quantity over time and one coordinate, in colours.

`field_map` draws them all: the density over the angle, the histogram of the angles of tokens, and
that of their inner products.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from ..dynamics.observables import inner_product_histogram
from ..spaces import Circle, Sphere, Zonal
from ..spaces.density import Density
from ..states import Gram, Tokens
from . import theme
from .appearance import appearance_of, space_of
from .clusters import evenly
from .labels import Member, member_of
from .layouts import Panels, drawing
from .registry import figure
from .scales import choose_scale, density_bar
from .spaces import AROUND, Chart, Euclidean, Hypersphere, chart_of
from .times import columns_of_times, is_logarithmic, need_two_times, time_axis

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = [
    "DENSITY",
    "angle_histogram",
    "draw_histogram",
    "draw_inner_products",
    "draw_spacetime",
    "draw_token_spacetime",
    "field_maps",
    "inner_products",
    "profiles",
    "shares_at",
    "spacetime",
    "token_spacetime",
    "visible_chart",
]

DENSITY = r"density $\mu_t(\theta)$"
MOST_COLUMNS, MOST_ROWS = 2000, 1536  # beyond, a map has more cells than a page has dots
FEWEST_COLUMNS = 600  # below, its cells show
ANGLE_BINS, MOST_TOKEN_COLUMNS = 72, 600
PRODUCT_BINS, MOST_PRODUCT_COLUMNS = 80, 300
MOST_PAIRED = 500  # tokens of which all pairs are counted
DEEPEST = 1e-4  # the least share that is told from none
PRODUCTS = Chart(
    r"inner product $\langle x_i, x_j \rangle$",
    (-1.0, 1.0),
    np.array([-1, -0.5, 0, 0.5, 1]),
    ("$-1.0$", "$-0.5$", "$0.0$", "$0.5$", "$1.0$"),
)
SHARE = "share of pairs"


def field_maps(
    target: Panels,
    solution: "Solution",
    times: np.ndarray,
    places: np.ndarray,
    fields: Iterable[np.ndarray],
    norm: Normalize,
    chart: Chart,
    *,
    log_time: bool = False,
) -> Any:
    """A map in each panel, of values (times, places) on cells between edges, or at their middles.

    Returns
    -------
    QuadMesh
        The last of them, for the colour bar.
    """
    for (ax, bottom, left), values in zip(target.outer, fields, strict=True):
        mesh = ax.pcolormesh(
            times,
            places,
            values.T,
            norm=norm,
            cmap=theme.DENSITY_MAP,
            shading="nearest" if len(times) == len(values) else "flat",
            rasterized=True,
        )
        chart.beside(ax, named=left)
        for spine in ax.spines.values():
            spine.set_visible(True)
        time_axis(ax, solution, log_time=log_time, named=bottom)
    return mesh


# The density over the angle ------------------------------------------------------------------


def profiles(
    solution: "Solution",
    members: list[Member],
    *,
    times: Any = None,
    most_angles: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Densities at saved times over the coordinate of their space.

    On the circle the grid overhangs [-pi, pi] by one point on both sides.

    Parameters
    ----------
    members : list of tuple of int
        Indices into the ensemble.
    times : sequence of int, optional
        Which saved states; by default all.
    most_angles : int, optional
        Average over neighbouring angles of the circle until there are at most this many. Averages
        keep the mass of a peak that is narrower than a pixel; leaving points out could lose it.

    Returns
    -------
    theta : ndarray, shape (n,)
        Increasing angles.
    values : ndarray, shape (members, times, n)
        Densities with respect to the uniform probability measure.
    """
    states = [solution[int(i)] for i in (range(len(solution.t)) if times is None else times)]
    return chart_of(space_of(solution)).profiles(states, members, most_angles)


def visible_chart(solution: "Solution") -> Chart:
    """The chart for `profiles`; in high dimension only the angles where there is mass."""
    return chart_of(space_of(solution)).with_mass(solution.final.geometry)


@figure("spacetime", Density, Circle, Zonal)
def spacetime(
    solution: "Solution",
    *,
    ax: Axes | None = None,
    member: int | Member | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """Heat map of the density over time and angle.

    Between saved times the density is interpolated linearly. The mark on the colour bar is the
    uniform state, 1.

    Parameters
    ----------
    solution : Solution
        Densities on the circle, or axisymmetric, at two saved times or more.
    ax : Axes, optional
        Draw here rather than in a new figure.
    member : int or tuple of int, optional
        Member of an ensemble; by default one panel for each, at most nine.
    scale : {"auto", "linear", "log", "power"}
        Colour scale; "auto" is logarithmic if a peak exceeds 30 times the mean.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there are fewer than two saved times, the member does not exist, or there are too many.
    TypeError
        If the states are neither densities on the circle nor axisymmetric.
    """
    with drawing(ax, solution, member, title, width=7, height=3.2) as target:
        draw_spacetime(target, solution, scale)
    return target.figure


def draw_spacetime(target: Panels, solution: "Solution", scale: str) -> None:
    """Maps in all panels, with one colour bar for all."""
    need_two_times(solution, "A space-time map", "snapshots")
    kept = evenly(len(solution.t), MOST_COLUMNS)
    theta, values = profiles(solution, target.members, times=kept, most_angles=MOST_ROWS)
    chart = visible_chart(solution)
    chosen = choose_scale(chart.inside(theta, values), scale)
    t = np.asarray(solution.t)[kept]
    smooth = [_between(t, density) for density in chosen.shown(values)]
    fields = [field for _, field in smooth]
    mesh = field_maps(target, solution, smooth[0][0], theta, fields, chosen.norm, chart)
    density_bar(target.figure, target.axes, mesh, chosen, DENSITY, rows=target.rows)


def _between(t: np.ndarray, density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear interpolation in time, at equally many times between each two; density (m, n)."""
    pieces = -(-FEWEST_COLUMNS // (len(t) - 1))
    place = np.arange(pieces * (len(t) - 1) + 1) / pieces
    before = np.minimum(place.astype(int), len(t) - 2)
    part = place - before
    rows = density[before] + part[:, None] * (density[before + 1] - density[before])
    return t[before] + part * (t[before + 1] - t[before]), rows


# Histograms of the angles of tokens ----------------------------------------------------------


@figure("spacetime", Tokens, Circle)
def token_spacetime(
    solution: "Solution",
    *,
    bins: int = ANGLE_BINS,
    ax: Axes | None = None,
    member: int | Member | None = None,
    log_time: bool | None = None,
    title: str | None = None,
) -> Figure:
    """Heat map of the angles of tokens over time, relative to the uniform state.

    Parameters
    ----------
    solution : Solution
        Tokens on the circle, at two saved times or more.
    bins : int
        How many, of equal width around the circle.
    ax : Axes, optional
        Draw here rather than in a new figure.
    member : int or tuple of int, optional
        Member of an ensemble; by default all of them, at most nine.
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there are fewer than two saved times (above 0 with `log_time`), `bins` is not positive,
        or the member does not exist.
    TypeError
        If the states are not tokens on the circle.
    """
    with drawing(ax, solution, member, title, width=7, height=3.2) as target:
        draw_token_spacetime(target, solution, bins=bins, log_time=log_time)
    return target.figure


def draw_token_spacetime(
    target: Panels,
    solution: "Solution",
    *,
    bins: int = ANGLE_BINS,
    log_time: bool | None = None,
) -> None:
    """A map in each panel with one colour bar for all."""
    log_time = is_logarithmic(solution, log_time)
    need_two_times(solution, "A space-time map", "histogram")
    if bins < 1:
        raise ValueError(f"bins must be at least 1; got bins = {bins!r}.")
    kept, times = columns_of_times(solution, MOST_TOKEN_COLUMNS, log_time=log_time)
    fields = [
        np.array([angle_histogram(member_of(solution[i], member), bins)[0] for i in kept])
        for member in target.members
    ]
    norm = Normalize(0, max(field.max() for field in fields))
    edges = np.linspace(*AROUND.limits, bins + 1)
    mesh = field_maps(target, solution, times, edges, fields, norm, AROUND, log_time=log_time)
    target.figure.colorbar(mesh, ax=target.axes, label="tokens, 1 if uniform", pad=0.02)


def angle_histogram(tokens: Tokens, bins: int = ANGLE_BINS) -> tuple[np.ndarray, np.ndarray]:
    """Heights (bins,), which are 1 for the uniform state, and edges (bins + 1,)."""
    edges = np.linspace(*AROUND.limits, bins + 1)
    angles = np.arctan2(tokens.x[:, 1], tokens.x[:, 0])
    shares, _ = np.histogram(angles, edges, weights=tokens.masses)
    return shares * bins, edges


# Inner products ------------------------------------------------------------------------------


@figure("inner_products", Gram)
@figure("inner_products", Tokens, Circle, Sphere, Hypersphere, Euclidean)
def inner_products(
    solution: "Solution",
    *,
    bins: int = PRODUCT_BINS,
    ax: Axes | None = None,
    member: int | Member | None = None,
    log_time: bool | None = None,
    title: str | None = None,
) -> Figure:
    """Heat map of the inner products of all pairs of tokens over time, on a logarithmic scale.

    A single saved time gives a histogram. Of more than 500 tokens, 500 are paired. In R^d the
    products are those of directions.

    Parameters
    ----------
    solution : Solution
        Two tokens or more, on a sphere or in R^d with d > 1, or their inner products.
    bins : int
        How many, of equal width on [-1, 1].
    ax : Axes, optional
        Draw here rather than in a new figure.
    member : int or tuple of int, optional
        Member of an ensemble; by default all of them, at most nine.
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there is only one token, `bins` is not positive, the member does not exist, there are
        too many, or there are fewer than two times above 0 with `log_time`.
    TypeError
        If the states are neither tokens in more than one dimension nor inner products.
    """
    with drawing(ax, solution, member, title, width=7, height=3.6) as target:
        draw_inner_products(target, solution, bins=bins, log_time=log_time)
    return target.figure


def draw_inner_products(
    target: Panels,
    solution: "Solution",
    *,
    bins: int = PRODUCT_BINS,
    log_time: bool | None = None,
) -> None:
    """A map in each panel with one colour bar for all; or histograms of a single time."""
    log_time = is_logarithmic(solution, log_time)
    if len(solution.final) < 2:
        raise ValueError("Inner products are those of pairs; there is only one token.")
    kept, times = columns_of_times(solution, MOST_PRODUCT_COLUMNS, log_time=log_time)
    fields = [np.array([shares_at(solution[i], m, bins) for i in kept]) for m in target.members]
    edges = np.linspace(*PRODUCTS.limits, bins + 1)
    if len(kept) > 1:
        shown, norm = [np.maximum(field, DEEPEST) for field in fields], LogNorm(DEEPEST, 1.0)
        mesh = field_maps(target, solution, times, edges, shown, norm, PRODUCTS, log_time=log_time)
        target.figure.colorbar(mesh, ax=target.axes, label=SHARE, extend="min", pad=0.02)
    else:
        for ax, (shares,) in zip(target.axes, fields, strict=True):
            draw_histogram(ax, shares, edges)
            ax.set(xlim=PRODUCTS.limits, xlabel=PRODUCTS.name, ylabel=SHARE)
    if len(solution.final) > MOST_PAIRED:
        note = f"{MOST_PAIRED} of {len(solution.final)} tokens"
        target.axes[0].set_title(note, loc="left", fontsize=9)


def draw_histogram(ax: Axes, heights: np.ndarray, edges: np.ndarray, **options: Any) -> Any:
    """A histogram from 0 on, as filled steps."""
    ax.set_ylim(0, 1.08 * heights.max())
    return ax.stairs(heights, edges, fill=True, color=theme.PALETTE[5], alpha=0.75, **options)


def shares_at(state: Any, member: Member, bins: int = PRODUCT_BINS) -> np.ndarray:
    """The share of pairs in each bin."""
    few = appearance_of(state).thinned(member_of(state, member), MOST_PAIRED)
    return inner_product_histogram(few, bins)[0]
