"""Observables over time as small multiples."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from ..spaces.density import Density
from . import ensemble, resolution, theme
from .bands import Group, groups_of, key_of_groups, series_of
from .panels import title_page
from .portions import colours_of
from .quantities import QUANTITIES, Quantity, is_present, is_shown, quantity_of
from .time_axis import is_logarithmic, time_axis

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["draw_observables", "observables"]

SHOWN_MOMENTS = 4
MARGIN = 0.05  # beneath curves on a logarithmic axis


def observables(
    solution: "Solution",
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    log_time: bool | None = None,
    title: str | None = None,
) -> Figure:
    """Observables over time, one panel for each.

    Replicas of tokens, that is members with the same parameters, are drawn as their median and a
    band from the 5th to the 95th percentile.

    Parameters
    ----------
    solution : Solution
        Of any size: the members of an ensemble are drawn together.
    names : sequence of str, optional
        Variables of `solution.observables`, or "moments" for |m_1| to |m_4|. By default all that
        this solution has; the free energy and its dissipation exist for gradient flows only.
    ax : Axes, optional
        Draw here rather than in a new figure; `names` must then hold one name.
    member : int or tuple of int, optional
        Member of an ensemble; by default all.
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
        If a name is unknown or this solution does not have it, the member does not exist,
        or `log_time` is asked for and there are fewer than two times above 0.
    """
    chosen = _chosen(solution, names, single=not solution.shape or member is not None)
    with theme.style():
        if ax is not None:
            if len(chosen) != 1:
                raise ValueError(
                    f"One `ax` holds one observable; got names = {chosen}. Give one name."
                )
            draw_observables(ax.figure, [ax], solution, chosen, member, log_time=log_time)
            resolution.mark(ax, solution)
            return ax.figure
        columns = {1: 1, 2: 2, 4: 2}.get(len(chosen), 3)
        rows = -(-len(chosen) // columns)
        figure = theme.figure(width=min(8.2, 3.6 * columns), height=0.7 + 1.75 * rows)
        axes = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
        for spare in axes[len(chosen) :]:
            spare.remove()
        options = {"columns": columns, "log_time": log_time}
        draw_observables(figure, axes[: len(chosen)], solution, chosen, member, **options)
        return title_page(figure, solution, title)


def _chosen(solution: "Solution", names: Sequence[str] | None, *, single: bool) -> list[str]:
    if names is None:
        moments = single and is_present(solution, "moments")
        left_out = ["order_parameter" if moments else "moments"]
        if not isinstance(solution.final, Density):
            left_out.append("mass")  # nodes and tokens keep it to the last bit
        return [name for name in QUANTITIES if name not in left_out and is_shown(solution, name)]
    wanted = [names] if isinstance(names, str) else list(names)
    missing = [name for name in wanted if not is_present(solution, name)]
    if missing or not wanted:
        available = [name for name in QUANTITIES if is_present(solution, name)]
        raise ValueError(
            f"names must be observables of this solution, some of {', '.join(available)}; got "
            f"{', '.join(map(repr, missing)) or 'none'}. The free energy and its dissipation "
            "exist only for gradient flows (USA, Kuramoto, Interaction)."
        )
    if "moments" in wanted and not single:
        raise ValueError(
            "'moments' are drawn for one member of an ensemble: choose it with member=..., or take "
            "'order_parameter', which is drawn for all."
        )
    return wanted


def draw_observables(
    figure: FigureBase,
    axes: Sequence[Axes],
    solution: "Solution",
    names: Sequence[str],
    member: int | tuple[int, ...] | None,
    *,
    columns: int = 1,
    key: bool = True,
    log_time: bool | None = None,
) -> None:
    """One observable in each panel; the members of an ensemble told apart by colour."""
    solution = resolution.before_blow_up(solution)
    groups = groups_of(solution, _members(solution, member))
    log_time = is_logarithmic(solution, log_time)
    for i, (ax, name) in enumerate(zip(axes, names, strict=True)):
        quantity = quantity_of(solution, name)
        if name == "moments":
            _moments(ax, solution, groups[0].members[0])
        elif name == "cluster_mass":
            _cluster_masses(ax, solution)
        else:
            _curves(ax, solution.t, solution.observables[name], quantity, groups)
        ax.set_ylabel(quantity.symbol)
        ax.margins(x=0)
        time_axis(ax, solution, log_time=log_time, named=i + columns >= len(names))
    if key:
        key_of_groups(figure, axes, solution, groups)


def _members(solution: "Solution", member: int | tuple[int, ...] | None) -> list[tuple[int, ...]]:
    if member is None:
        return list(np.ndindex(tuple(solution.shape)))
    return ensemble.choose(solution, member)


def _curves(
    ax: Axes, t: np.ndarray, data: xr.DataArray, quantity: Quantity, groups: Sequence[Group]
) -> None:
    if data.ndim == 1 and len(groups) > 1:  # the same for all members, as the degree is
        groups = [Group(groups[0].members, theme.INK)]
    series = np.stack([values for group in groups for values in group.percentiles(data)])
    for group in groups:
        group.draw(ax, t, data, quantity)
    positive = series[series > 0]
    negative = (series < 0).any()  # a logarithmic axis would hide it
    if not negative and positive.size and positive.max() >= quantity.log_from * positive.min():
        ax.set_yscale("log", nonpositive="mask")
        least = _least_known(series, quantity.noise)
        ax.set_ylim(bottom=least * min(0.5, (least / positive.max()) ** MARGIN))
    elif quantity.steps:
        ax.set_ylim(0, 1.08 * np.nanmax(series, initial=1))
        ax.yaxis.get_major_locator().set_params(integer=True)  # they count something


def _least_known(series: np.ndarray, noise: float) -> float:
    """The least value > 0 of curves (n, t), but for those below `noise` times one before them."""
    before = np.fmax.accumulate(series, axis=1)
    return float(series[(series > 0) & (series >= noise * before)].min())


def _moments(ax: Axes, solution: "Solution", index: tuple[int, ...]) -> None:
    data = solution.observables
    modulus = np.hypot(data["moment_re"], data["moment_im"])
    for k in modulus["k"].to_numpy()[:SHOWN_MOMENTS]:
        values = series_of(modulus.sel(k=k), [index])[0]
        ax.plot(solution.t, values, label=f"$k = {k}$")
    ax.set_ylim(bottom=0)
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),  # above the panel, where no curve runs
        ncols=SHOWN_MOMENTS,
        columnspacing=0.9,
        handlelength=1.0,
        handletextpad=0.4,
        borderaxespad=0.0,
    )


def _cluster_masses(ax: Axes, solution: "Solution") -> None:
    """A mark for each cluster at each time, in the colour of the cluster in which it ends."""
    data = solution.observables
    masses = data["cluster_mass"].transpose("t", "cluster").to_numpy()
    points = data["cluster_point"].transpose("t", "cluster", "component").to_numpy()
    known = np.isfinite(masses)
    nodes = [
        (places[there] @ state.points.T).argmax(axis=1)
        for state, places, there in zip(solution, points, known, strict=True)
    ]
    colours = np.array(colours_of(solution, np.concatenate(nodes)))
    times = np.broadcast_to(solution.t[:, None], masses.shape)[known]
    for colour in sorted(set(colours), key=lambda c: -masses[known][colours == c].max()):
        here = colours == colour
        ax.plot(times[here], masses[known][here], ".", color=colour, markersize=2.5)
    ax.set(xlim=(solution.t[0], solution.t[-1]), ylim=(0, 1.08 * np.nanmax(masses, initial=0.1)))
