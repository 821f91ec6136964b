"""Fields: maps of a quantity over time and one coordinate, in colours, and scales of densities.

`field_maps` draws them all: the density over the angle, the histogram of the angles of tokens, and
that of their inner products.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize, PowerNorm
from matplotlib.image import PcolorImage
from matplotlib.patches import StepPatch
from scipy.interpolate import make_interp_spline

from ..core.checks import require, whole_number
from ..dynamics.observables import inner_product_histogram
from ..results.solution import Solution
from ..spaces import Circle, Sphere, Zonal
from ..spaces.density import Density
from ..states import Gram, Tokens, TorusTokens
from . import layouts, theme
from .appearance import evenly
from .labels import Member, member_of
from .layouts import DrawnMembers, Panels
from .registry import figure
from .spaces import AROUND, CoordinateAxis, Euclidean, Hypersphere

MOST_COLUMNS, MOST_ROWS = 2000, 1536  # beyond, a map has more cells than a page has dots
FEWEST_COLUMNS = 600  # with fewer, single cells are visible
ANGLE_BINS, MOST_TOKEN_COLUMNS = 72, 600
PRODUCT_BINS, MOST_PRODUCT_COLUMNS = 80, 300
MOST_PAIRED = 500  # tokens of which all pairs are counted
LEAST_PAIR_SHARE = 1e-4  # smaller shares are drawn as this
PRODUCT_AXIS = CoordinateAxis(
    r"inner product $\langle x_i, x_j \rangle$",
    (-1.0, 1.0),
    np.array([-1, -0.5, 0, 0.5, 1]),
    ("$-1.0$", "$-0.5$", "$0.0$", "$0.5$", "$1.0$"),
)
SHARE = "share of pairs"
HEAVY_PEAK = 30.0  # largest value over the mean (which is 1) beyond which the scale adapts
LEAST_LOG_DENSITY = 1e-3  # a logarithmic scale ends a thousand times below the uniform state
EXPONENT = 0.4
LOW = 2.4  # inches; in lower figures the colour bar is shorter than its label
SCALE_NAMES = ("auto", "linear", "log", "power")


def field_maps(
    panels: Panels, times: np.ndarray, places: np.ndarray, fields: Iterable[np.ndarray],
    norm: Normalize, axis: CoordinateAxis, *, log_time: bool = False,
) -> ScalarMappable:  # fmt: skip
    """Draw in each panel a map of values (times, places), one array of `fields`.

    `times` and `places` are the edges of the cells, or their midpoints.

    Returns
    -------
    ScalarMappable
        The last map, for the colour bar.
    """
    for (ax, bottom, left), values in zip(panels.outer, fields, strict=True):
        style = {"norm": norm, "cmap": theme.DENSITY_MAP}
        image = _heat_map(ax, times, places, values, log_time=log_time, **style)
        axis.draw_left(ax, named=left)
        ax.spines[:].set_visible(True)
        layouts.time_axis(ax, panels.solution, log_time=log_time, named=bottom)
    return image


def _heat_map(
    ax: Axes,
    times: np.ndarray,
    places: np.ndarray,
    values: np.ndarray,
    *,
    log_time: bool = False,
    **style: Any,
) -> ScalarMappable:
    """Draw values (times, places) as coloured cells, given by their edges or midpoints.

    On a linear time axis the map is an image, which is drawn ten times as fast as a mesh.
    """
    times, places = (
        ends if len(ends) > cells else layouts.cell_edges(ends)
        for ends, cells in zip((times, places), values.shape, strict=True)
    )
    if log_time:
        return ax.pcolormesh(times, places, values.T, rasterized=True, **style)
    image = PcolorImage(ax, times, places, values.T, **style)
    image.set_clip_path(ax.patch)
    ax.add_image(image)
    image.set_extent((times[0], times[-1], places[0], places[-1]))
    return image


# Scales of densities -------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """A scale of densities from `low` to `high`.

    Attributes
    ----------
    name : str
        "linear", "log" or "power".
    low, high : float
        Ends of the scale.
    cut : bool
        Whether values below `low` exist, which a map of colours draws as if they were `low`.
    """

    name: str
    low: float
    high: float
    cut: bool

    @property
    def note(self) -> str:
        """The words that a label adds; none for a linear scale."""
        power = f" (power scale, exponent {EXPONENT:g})"
        return {"linear": "", "log": " (log scale)", "power": power}[self.name]

    @property
    def norm(self) -> Normalize:
        """Colour scale for matplotlib; values beyond its ends are drawn as if they were there."""
        norms: Any = {"linear": Normalize, "log": LogNorm, "power": partial(PowerNorm, EXPONENT)}
        return norms[self.name](self.low, self.high, clip=True)

    @property
    def colours(self) -> dict[str, Any]:
        """Options of an artist that shows densities in colours."""
        return {"norm": self.norm, "cmap": theme.DENSITY_MAP}

    def height(self, values: np.ndarray) -> np.ndarray:
        """Height from 0 to 1 of densities above 0, for a radius."""
        positive = np.maximum(values, 0.0)
        if self.name == "log":
            return np.log1p(positive) / np.log1p(self.high)
        return (positive / self.high) ** (EXPONENT if self.name == "power" else 1.0)


def choose_scale(values: np.ndarray, scale: str | Scale = "auto", *, heavy: str = "log") -> Scale:
    """The scale for `values`, densities of mean 1.

    Parameters
    ----------
    scale : str or Scale
        A colour scale shared with other panels; or "linear", "log", "power", or "auto": `heavy` if
        the largest value exceeds 30 times the mean, and else linear.
    heavy : str
        Scale that "auto" chooses for such peaks.

    Raises
    ------
    ValueError
        If the name is unknown, or no value is finite.
    """
    if isinstance(scale, Scale):
        return scale
    is_known = isinstance(scale, str) and scale in SCALE_NAMES
    require("scale", scale, f"one of {', '.join(map(repr, SCALE_NAMES))}", is_known)
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise ValueError(
            "No value of the density is finite, so there is nothing to draw. Read the "
            "solution's message."
        )
    low, high = float(finite.min()), float(finite.max())
    if scale == "auto":
        scale = heavy if high > HEAVY_PEAK else "linear"
    if scale == "log":
        # max(..., LEAST_LOG_DENSITY) also keeps the scale positive for densities that touch zero.
        floor = min(max(low, LEAST_LOG_DENSITY), 0.5 * high)
        return Scale("log", floor, high, low < floor)
    if scale == "power":
        return Scale("power", 0.0, high, low < -1e-9 * high)
    if high - low < 1e-9 * abs(high):  # rounding must not be painted as structure
        low, high = 0.0, 2.0 * high
    return Scale("linear", low, high, False)


def density_bar(panels: Panels, scale: Scale, label: str) -> None:
    """Add one colour bar for all panels, with a mark at the uniform state, 1.

    A label that would be longer than the bar is broken into lines.
    """
    rows, note = panels.rows * (1 + panels.upright), scale.note
    low = rows == 1 and panels.figure.bbox.height < LOW * panels.figure.dpi
    if low:
        note = note.replace(" (", "\n(")
    if rows == 1:
        note = note.replace(" (power", "\n(power").replace(" exponent", "\nexponent")
    style = {"extend": "min" if scale.cut else "neither", "aspect": (13 if low else 26) * rows}
    image = ScalarMappable(**scale.colours)
    bar = panels.figure.colorbar(image, ax=panels.axes, label=label + note, pad=0.02, **style)
    if scale.low < 1.0 < scale.high:
        bar.ax.axhline(1.0, color="white", linewidth=2.4)
        bar.ax.axhline(1.0, color=theme.INK, linewidth=1.0)


# The density over the angle ------------------------------------------------------------------


def profiles(
    view: DrawnMembers, times: Iterable[int], *, most_angles: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Densities at saved times over the coordinate of their space.

    On the circle the grid overhangs [-pi, pi] by one point on both sides.

    Parameters
    ----------
    view : DrawnMembers
    times : iterable of int
        Indices of saved states.
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
    states = [view.law(i) for i in times]
    return view.chart.profiles(states, view.members, most_angles)


def visible_chart(view: DrawnMembers) -> Any:
    """The chart for `profiles`; in high dimension only the angles where there is mass."""
    return view.chart.with_mass(view.law(-1).space)


def law_in_words(view: DrawnMembers, symbol: str = r"\theta") -> str:
    """The name of a density on the axis of its values."""
    return rf"{view.look.law_in_words} $\mu_t({symbol})$"


@figure("spacetime", Density, Circle, Zonal, panels=(7.0, 3.2))
def spacetime(panels: Panels, *, scale: str = "auto") -> None:
    """Heat map of the density over time and angle.

    Between saved times the density is interpolated linearly. The mark on the colour bar is the
    uniform state, 1.

    Parameters
    ----------
    solution : Solution
        Densities on the circle, or axisymmetric, at two saved times or more.
    scale : {"auto", "linear", "log", "power"}
        Colour scale; "auto" is logarithmic if a peak exceeds 30 times the mean.

    Raises
    ------
    ValueError
        If there are fewer than two saved times, a member does not exist, or too many are chosen.
    TypeError
        If the states are neither densities on the circle nor axisymmetric.
    """
    times, theta, fields = _over_time(panels)
    chart = visible_chart(panels)
    density_scale = choose_scale(chart.values_within(theta, fields), scale)
    field_maps(panels, times, theta, fields, density_scale.norm, chart)
    density_bar(panels, density_scale, law_in_words(panels))


def grey_map(ax: Axes, solution: Solution, *, log_time: bool = False) -> None:
    """Draw a single density over time and angle in grey, beneath all other artists."""
    times, theta, fields = _over_time(DrawnMembers(solution, [()]))
    norm = choose_scale(fields, heavy="power").norm
    style = {"norm": norm, "cmap": theme.GREY_MAP, "zorder": 0}
    _heat_map(ax, times, theta, fields[0], log_time=log_time, **style)


def _over_time(view: DrawnMembers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, angles, and the densities there, (members, times, angles)."""
    solution = view.solution
    layouts.need_two_times(solution, "A space-time map", "snapshots")
    columns = evenly(len(solution.t), MOST_COLUMNS)
    theta, values = profiles(view, columns, most_angles=MOST_ROWS)
    times, fields = between(np.asarray(solution.t)[columns], values)
    return times, theta, fields


def between(t: np.ndarray, density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear interpolation in time of values (..., m, n), to at least 600 intervals.

    Each interval of the m times is divided into equally many. Returns times and values.
    """
    pieces = -(-FEWEST_COLUMNS // (len(t) - 1))
    places, knots = np.arange(pieces * (len(t) - 1) + 1) / pieces, np.arange(len(t))
    lines = make_interp_spline(knots, density, k=1, axis=-2, check_finite=False)
    return np.interp(places, knots, t), lines(places)


# Histograms of the angles of tokens ----------------------------------------------------------


@figure("spacetime", (Tokens, TorusTokens), Circle, panels=(7.0, 3.2))
def token_spacetime(
    panels: Panels, *, bins: int = ANGLE_BINS, log_time: bool | None = None
) -> None:
    """Heat map of the angles of tokens over time, relative to the uniform state.

    Parameters
    ----------
    solution : Solution
        Tokens on the circle, at two saved times or more.
    bins : int
        How many, of equal width around the circle.
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.

    Raises
    ------
    ValueError
        If there are fewer than two saved times (above 0 with `log_time`), `bins` is not positive,
        or the member does not exist.
    TypeError
        If the states are not tokens on the circle.
    """
    solution = panels.solution
    log_time = layouts.is_logarithmic(solution, log_time)
    layouts.need_two_times(solution, "A space-time map", "histogram")
    bins = whole_number("bins", bins)
    columns, times = layouts.columns_of_times(solution, MOST_TOKEN_COLUMNS, log_time=log_time)
    fields = [
        np.array([angle_histogram(panels.state(i, member), bins)[0] for i in columns])
        for member in panels.members
    ]
    norm = Normalize(0, max(field.max() for field in fields))
    edges = np.linspace(*AROUND.limits, bins + 1)
    image = field_maps(panels, times, edges, fields, norm, AROUND, log_time=log_time)
    panels.figure.colorbar(image, ax=panels.axes, label="tokens, 1 if uniform", pad=0.02)


def angle_histogram(
    tokens: Tokens | TorusTokens, bins: int = ANGLE_BINS
) -> tuple[np.ndarray, np.ndarray]:
    """Heights (bins,), which are 1 for the uniform state, and edges (bins + 1,)."""
    edges = np.linspace(*AROUND.limits, bins + 1)
    angles = np.arctan2(tokens.x[:, 1], tokens.x[:, 0])
    shares, _ = np.histogram(angles, edges, weights=tokens.masses)
    return shares * bins, edges


# Inner products ------------------------------------------------------------------------------


@figure("inner_products", Gram, panels=(7.0, 3.6))
@figure("inner_products", Tokens, Circle, Sphere, Hypersphere, Euclidean, panels=(7.0, 3.6))
def inner_products(
    panels: Panels, *, bins: int = PRODUCT_BINS, log_time: bool | None = None
) -> None:
    """Heat map of the inner products of all pairs of tokens over time, on a logarithmic scale.

    A single saved time gives a histogram. Of more than 500 tokens, 500 are paired. In R^d the
    products are those of directions.

    Parameters
    ----------
    solution : Solution
        Two tokens or more, on a sphere or in R^d with d > 1, or their inner products.
    bins : int
        How many, of equal width on [-1, 1].
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.

    Raises
    ------
    ValueError
        If there is only one token, `bins` is not positive, the member does not exist, there are
        too many, or there are fewer than two times above 0 with `log_time`.
    TypeError
        If the states are neither tokens in more than one dimension nor inner products.
    """
    solution = panels.solution
    bins, log_time = whole_number("bins", bins), layouts.is_logarithmic(solution, log_time)
    if len(solution.final) < 2:
        raise ValueError("Inner products are those of pairs; there is only one token.")
    columns, times = layouts.columns_of_times(solution, MOST_PRODUCT_COLUMNS, log_time=log_time)
    fields = [np.array([shares_at(solution[i], m, bins) for i in columns]) for m in panels.members]
    edges = np.linspace(*PRODUCT_AXIS.limits, bins + 1)
    if len(columns) > 1:
        visible, norm = np.maximum(fields, LEAST_PAIR_SHARE), LogNorm(LEAST_PAIR_SHARE, 1)
        image = field_maps(panels, times, edges, visible, norm, PRODUCT_AXIS, log_time=log_time)
        panels.figure.colorbar(image, ax=panels.axes, label=SHARE, extend="min", pad=0.02)
    else:
        for ax, (shares,) in zip(panels.axes, fields, strict=True):
            draw_histogram(ax, shares, edges)
            ax.set(xlim=PRODUCT_AXIS.limits, xlabel=PRODUCT_AXIS.name, ylabel=SHARE)
    if len(solution.final) > MOST_PAIRED:
        note = f"{MOST_PAIRED} of {len(solution.final)} tokens"
        panels.axes[0].set_title(note, loc="left", fontsize=9)


def draw_histogram(ax: Axes, heights: np.ndarray, edges: np.ndarray, **options: Any) -> StepPatch:
    """A histogram from 0 on, as filled steps."""
    ax.set_ylim(0, 1.08 * heights.max())
    return ax.stairs(heights, edges, fill=True, color=theme.PALETTE[5], alpha=0.75, **options)


def shares_at(state: Gram | Tokens, member: Member, bins: int = PRODUCT_BINS) -> np.ndarray:
    """The share of pairs in each bin, of tokens evenly spread over their order."""
    state = member_of(state, member)
    if len(state) > MOST_PAIRED:
        rows = evenly(len(state), MOST_PAIRED)
        masses = state.masses[rows] / state.masses[rows].sum()
        if isinstance(state, Gram):
            state = Gram(state.G[np.ix_(rows, rows)], masses)
        else:
            state = Tokens(state.x[rows], masses, on_sphere=state.on_sphere)
    return inner_product_histogram(state, bins)[0]
