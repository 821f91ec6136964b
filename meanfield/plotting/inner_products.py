"""The law of the inner products of tokens over time."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure, FigureBase

from ..dynamics.observables import inner_product_histogram
from ..spaces import Circle, Sphere
from ..states import Gram, Tokens
from . import theme
from .crowds import thinned
from .panels import Panels, drawing
from .spaces import Space, expect
from .sphere_sheet import member_of
from .time_axis import is_logarithmic, time_axis, time_edges

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["draw_inner_products", "inner_products", "shares_at"]

BINS = 80
MOST_PAIRED = 500  # tokens of which all pairs are counted
MOST_COLUMNS = 300
DEEPEST = 1e-4  # the least share that is told from none
NAME = r"inner product $\langle x_i, x_j \rangle$"
SHARE = "share of pairs"


def inner_products(
    solution: "Solution",
    *,
    bins: int = BINS,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
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
    spaces = (Circle, Sphere, Space.HYPERSPHERE, Space.PLANE, Space.EUCLIDEAN, Space.PAIRS)
    expect(solution, (Tokens, Gram), *spaces)
    with drawing(ax, solution, member, title, width=7, height=3.6) as target:
        draw_inner_products(target.figure, target, solution, bins=bins, log_time=log_time)
    return target.figure


def draw_inner_products(
    figure: FigureBase,
    target: Panels,
    solution: "Solution",
    *,
    bins: int = BINS,
    log_time: bool | None = None,
) -> None:
    """A heat map in each panel with one bar for all; or histograms of a single time."""
    log_time = is_logarithmic(solution, log_time)
    if len(solution.final) < 2:
        raise ValueError("Inner products are those of pairs; there is only one token.")
    first = int(np.flatnonzero(solution.t > 0)[0]) if log_time else 0
    count = len(solution) - first
    kept = first + np.linspace(0, count - 1, min(count, MOST_COLUMNS)).round().astype(int)
    shares = [np.array([shares_at(solution[i], m, bins) for i in kept]) for m in target.members]
    for (ax, bottom, left), found in zip(target.outer, shares, strict=True):
        if len(kept) == 1:
            _stairs(ax, found[0])
            continue
        image = _map(ax, np.asarray(solution.t)[kept], found, log_time)
        time_axis(ax, solution, log_time=log_time, named=bottom)
        ax.set_ylabel(NAME if left else "")
    if len(kept) > 1:
        figure.colorbar(image, ax=target.axes, label=SHARE, extend="min", pad=0.02)
    if len(solution.final) > MOST_PAIRED:
        note = f"{MOST_PAIRED} of {len(solution.final)} tokens"
        target.axes[0].set_title(note, loc="left", fontsize=9)


def shares_at(state: Any, member: tuple[int, ...], bins: int = BINS) -> np.ndarray:
    """The share of pairs in each bin."""
    return inner_product_histogram(thinned(member_of(state, member), MOST_PAIRED), bins)[0]


def _map(ax: Axes, t: np.ndarray, shares: np.ndarray, log_time: bool) -> Any:
    edges = np.linspace(-1, 1, shares.shape[1] + 1)
    ax.set_yticks([-1, -0.5, 0, 0.5, 1])
    return ax.pcolormesh(
        time_edges(t, log_time=log_time),
        edges,
        np.maximum(shares, DEEPEST).T,
        norm=LogNorm(DEEPEST, 1.0),
        cmap=theme.DENSITY_MAP,
        rasterized=True,
    )


def _stairs(ax: Axes, shares: np.ndarray) -> None:
    edges = np.linspace(-1, 1, len(shares) + 1)
    ax.stairs(shares, edges, fill=True, color=theme.PALETTE[5], alpha=0.75)
    ax.set(xlim=(-1, 1), xlabel=NAME, ylabel=SHARE, ylim=(0, 1.08 * shares.max()))
