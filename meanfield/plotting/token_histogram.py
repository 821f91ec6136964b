"""Tokens on the circle: histograms of their angles at several times."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..spaces import Circle
from ..states import Tokens
from . import theme
from .circle import uniform_line
from .profiles import AROUND, profiles
from .spaces import expect_tokens
from .sphere_sheet import choose, finished, sheet, time_views

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["angle_histogram", "histogram"]

BINS = 60


def histogram(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    bins: int = BINS,
    density: "Solution | None" = None,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    title: str | None = None,
) -> Figure:
    """Histograms of the angles at several times, with respect to the uniform state, which is 1.

    Parameters
    ----------
    bins : int
        How many, of equal width.
    density : Solution, optional
        Densities on the circle, of a single run: the one saved nearest to each time is drawn over
        the histogram.
    solution, times, count, ax, member, title
        As for `rings`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution, `bins` is not positive, `density` is an ensemble, the
        member does not exist, or there are too many.
    TypeError
        If the states are not tokens on the circle, or those of `density` are not densities there.
    """
    expect_tokens(solution, Circle)
    if bins < 1:
        raise ValueError(f"bins must be at least 1; got bins = {bins!r}.")
    if density is not None and density.shape:
        raise ValueError(f"density must be a single run; got an ensemble of shape {density.shape}.")
    members, shown = choose(solution, ax, member, times, count, 6)
    with theme.style():
        axes, _ = sheet(ax, members, shown, ratio=1.35, most=3)
        views = time_views(solution, axes, [None] * len(members), members, shown)
        for i, view in enumerate(views):
            _draw(view.ax, view.state, bins)
            if density is not None:
                _overlay(view.ax, density, float(solution.t[shown[i % len(shown)]]))
            view.head()
        _name_outer(axes, members)
        if density is not None:
            views[0].ax.legend(loc="best", handlelength=1.0, fontsize=8)
        return finished(axes[0][0].figure.figure, solution, ax, title)


def angle_histogram(tokens: Tokens, bins: int = BINS) -> tuple[np.ndarray, np.ndarray]:
    """Heights (bins,), which are 1 for the uniform state, and edges (bins + 1,)."""
    edges = np.linspace(-np.pi, np.pi, bins + 1)
    angles = np.arctan2(tokens.x[:, 1], tokens.x[:, 0])
    shares, _ = np.histogram(angles, edges, weights=tokens.masses)
    return shares * bins, edges


def _draw(ax: Axes, tokens: Tokens, bins: int) -> None:
    heights, edges = angle_histogram(tokens, bins)
    colour = theme.PALETTE[5]
    ax.stairs(heights, edges, fill=True, color=colour, alpha=0.75, label="tokens")
    uniform_line(ax)
    ax.set(xlim=AROUND.limits, ylim=(0, 1.1 * max(heights.max(), 1.0)))
    ax.set_xticks(AROUND.ticks, AROUND.labels)


def _overlay(ax: Axes, density: "Solution", t: float) -> None:
    nearest = int(np.abs(np.asarray(density.t) - t).argmin())
    theta, values = profiles(density, [()], times=[nearest])
    curve = values[0, 0]
    ax.plot(theta, curve, color=theme.INK, linewidth=1.1, label="density")
    ax.set_ylim(top=max(ax.get_ylim()[1], 1.1 * curve.max()))


def _name_outer(axes: Sequence[Sequence[Axes]], members: Sequence[tuple[int, ...]]) -> None:
    for row in axes:
        for ax in row:
            spec = ax.get_subplotspec()
            columns = spec.get_gridspec().ncols if spec else 1
            beneath = spec is None or spec.num1 + columns >= sum(map(len, axes))
            ax.set_xlabel(AROUND.name if beneath else "")
            if (spec is None or spec.is_first_col()) and not ax.get_ylabel():
                ax.set_ylabel(r"density $\mu_t(\theta)$")
