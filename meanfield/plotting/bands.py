"""Curves of the members of an ensemble; replicas as their median and a band."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..states import Gram, Tokens
from . import ensemble, theme
from .quantities import Quantity

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["BAND", "Group", "groups_of", "key_of_groups", "series_of"]

BAND = (5.0, 50.0, 95.0)
MOST_IN_LEGEND = 9


@dataclass(frozen=True)
class Group:
    """Members of an ensemble that are drawn as one: a single member, or replicas.

    Attributes
    ----------
    members : list of tuple of int
    colour : colour
    """

    members: list[tuple[int, ...]]
    colour: Any

    def percentiles(self, data: xr.DataArray) -> np.ndarray:
        """The curve of a single member, (1, t); else the percentiles of BAND, (3, t)."""
        series = series_of(data, self.members)
        if len(series) == 1:
            return series
        known = np.isfinite(series).any(axis=0)
        curves = np.full((len(BAND), series.shape[1]), np.nan)
        curves[:, known] = np.nanpercentile(series[:, known], BAND, axis=0)
        return curves

    def draw(self, ax: Axes, t: np.ndarray, data: xr.DataArray, quantity: Quantity) -> None:
        """The curve, or the median and the band."""
        curves = self.percentiles(data) - quantity.offset
        style: dict[str, Any] = {"drawstyle": "steps-post"} if quantity.steps else {}
        style |= {"marker": "."} if len(t) == 1 else {}
        ax.plot(t, curves[len(curves) // 2], color=self.colour, **style)
        if len(curves) > 1:
            step: dict[str, Any] = {"step": "post"} if quantity.steps else {}
            low, _, high = curves
            ax.fill_between(t, low, high, color=self.colour, alpha=0.25, linewidth=0, **step)


def series_of(data: xr.DataArray, members: list[tuple[int, ...]]) -> np.ndarray:
    """Values of shape (members, t); (1, t) of what is the same for all members."""
    values = data.transpose(..., "t").to_numpy()
    if values.ndim == 1:
        return values[None]
    return np.stack([values[index] for index in members])


def groups_of(solution: "Solution", members: list[tuple[int, ...]]) -> list[Group]:
    """Each member by itself; of tokens, those together whose parameters are the same."""
    found: dict[Any, list[tuple[int, ...]]] = {}
    replicas = isinstance(solution.final, Tokens | Gram)
    varying = ensemble.varying(solution).values()
    for index in members:
        same = tuple(float(values[index]) for values in varying) if replicas else index
        found.setdefault(same, []).append(index)
    colours = theme.ordered_colours(len(found)) if len(found) > 1 else [theme.PALETTE[0]]
    return [Group(group, colour) for group, colour in zip(found.values(), colours, strict=True)]


def key_of_groups(
    figure: FigureBase, axes: Sequence[Axes], solution: "Solution", groups: Sequence[Group]
) -> None:
    """A legend for a few groups, a colour bar for many; none for a single member."""
    sizes = sorted({len(group.members) for group in groups})
    labels = [ensemble.label(solution, group.members[0]) for group in groups]
    if len(groups) > MOST_IN_LEGEND:
        _bar(figure, axes, labels)
        return
    handles: list[Any] = [Line2D([], [], color=group.colour) for group in groups]
    if sizes[-1] > 1:
        if len(groups) == 1:
            labels = ["median"]
        handles.append(Patch(color=groups[0].colour, alpha=0.25, linewidth=0))
        count = " to ".join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))
        labels.append(f"5 to 95% of {count} replicas")
    if len(handles) == 1:
        return
    if len(axes) == 1:
        axes[0].legend(handles, labels)
    elif sizes[-1] > 1:
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
    else:
        figure.legend(handles, labels, loc="outside right upper")


def _bar(figure: FigureBase, axes: Sequence[Axes], labels: Sequence[str]) -> None:
    last = len(labels) - 1
    scale = ScalarMappable(Normalize(0, last), ListedColormap(theme.ordered_colours(256)))
    bar = figure.colorbar(scale, ax=list(axes), aspect=40, pad=0.02, label="member")
    ticks = np.unique(np.linspace(0, last, 7).round().astype(int))
    bar.set_ticks(ticks, labels=[labels[i] for i in ticks])
