"""Observables over time as small multiples, on the scales that each of them needs.

Members of an ensemble are curves in one panel; replicas, members with the same parameters, are
their median and a band.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType, LineStyleType

from ..core.checks import as_given, require
from ..core.forms import TEXT, Many
from ..dynamics.observables import OBSERVABLE_STYLES, ObservableStyle, style_of_observable
from ..results.solution import Solution
from ..states.contract import member_dims
from . import layouts, theme
from .appearance import appearance_of, evenly
from .indexed import nodes_to_tell
from .labels import (
    Member,
    all_members,
    distinct,
    label_of_member,
    varying_parameters,
)
from .registry import figure

SHOWN_MOMENTS = 4
LOG_MARGIN = 0.05  # beneath curves on a logarithmic axis
BAND = (5.0, 50.0, 95.0)  # percentiles
RUNS_DRAWN: WeakKeyDictionary[Axes, int] = WeakKeyDictionary()  # in axes of the caller
OF_A_MODEL = {"speed", "interaction_energy", "free_energy", "dissipation"}  # not of a state alone
MOST_GROUPS_IN_LEGEND = 9
TICK_STEPS = [1, 2, 2.5, 5, 10]
KEY_ABOVE: dict[str, Any] = {
    **{"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": SHOWN_MOMENTS},
    **{"columnspacing": 0.9, "handlelength": 1.7, "handletextpad": 0.4, "borderaxespad": 0.0},
}  # a legend in one line above the panel, where no curve runs


def is_present(solution: Solution, name: str) -> bool:
    """True if a solution has this observable, with a finite value at some time.

    A state that is drawn without a run has no observable that depends on a model.
    """
    data = solution.observables
    if name in OF_A_MODEL and layouts.is_timeless(solution):
        return False
    if name == "moments":
        return "moment_re" in data
    return name in data and data[name].dtype.kind in "bif" and bool(np.isfinite(data[name]).any())


def names_of(solution: Solution) -> list[str]:
    """All observables that can be drawn, in the order in which they are measured.

    Observables without a declared style must be one number for each time, or for each time and
    member.
    """
    dims = {"t", *member_dims(solution.shape)}
    numbers = [
        str(name)
        for name, values in solution.observables.items()
        if (name, False) in OBSERVABLE_STYLES or {"t"} <= {*values.dims} <= dims
    ]
    return [name for name in ["moments", *numbers] if is_present(solution, name)]


def of_one_member(solution: Solution, names: Sequence[str]) -> list[str]:
    """The names of observables with several curves for each member, drawn of one member alone."""
    data = solution.observables
    return [name for name in names if name == "moments" or "index" in data[name].dims]


def main_observables(solution: Solution, limit: int, *, single: bool = True) -> list[str]:
    """Names of at most `limit` observables, the most informative for these states."""
    look, left_out = appearance_of(solution.final), appearance_of(solution.final).constant(solution)
    present = {*names_of(solution)} - left_out
    return [name for name in look.observable_names(solution, single) if name in present][:limit]


# Members of an ensemble as curves and bands --------------------------------------------------

Group = tuple[list[Member], ColorType]  # members that are drawn as one, and their colour


def groups_of(view: layouts.DrawnMembers) -> list[Group]:
    """Groups of members, with a colour each: single members, or replicas of equal parameters."""
    groups: dict[Any, list[Member]] = {}
    varying = varying_parameters(view.solution).values()
    for index in view.members:
        replicated = view.solution.final.replicated
        key = tuple(float(v[index]) for v in varying) if replicated else index
        groups.setdefault(key, []).append(index)
    colours = theme.ordered_colours(len(groups)) if len(groups) > 1 else [theme.PALETTE[0]]
    return list(zip(groups.values(), colours, strict=True))


def percentiles(values: xr.DataArray, members: list[Member]) -> np.ndarray:
    """The curve of a single member, (1, t); else the percentiles of BAND, (3, t)."""
    table = values.transpose(..., "t").to_numpy()
    series = np.stack([table[index] for index in members])
    if len(series) == 1:
        return series
    present = np.isfinite(series).any(axis=0)
    curves = np.full((len(BAND), series.shape[1]), np.nan)
    curves[:, present] = np.nanpercentile(series[:, present], BAND, axis=0)
    return curves


def key_of_groups(
    panels: layouts.Panels, groups: Sequence[Group], label: str | None = None,
    line: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """A legend for a few groups, a colour bar for many; none for a single member without a label.

    A legend that the caller's axes already have is extended.
    """
    sizes = sorted({len(members) for members, _ in groups})
    labels = [label_of_member(panels.solution, members[0]) for members, _ in groups]
    if label is not None:
        labels = [label] if len(groups) == 1 else [f"{label}, {text}" for text in labels]
    if len(groups) > MOST_GROUPS_IN_LEGEND:
        last = len(groups) - 1
        scale = ScalarMappable(Normalize(0, last), ListedColormap(theme.ordered_colours(256)))
        style = {"aspect": 40, "pad": 0.02, "label": "member"}
        bar = panels.figure.colorbar(scale, ax=panels.axes, **style)
        ticks = evenly(len(groups), 7)
        bar.set_ticks(ticks, labels=[labels[i] for i in ticks])
        return
    handles: list[Artist] = [Line2D([], [], color=colour, **(line or {})) for _, colour in groups]
    place: dict[str, Any] = {"loc": "outside right upper"}
    if sizes[-1] > 1:
        place = {"loc": "outside lower center", "ncols": 5}
        labels = ["median"] if len(groups) == 1 and label is None else labels
        handles.append(Patch(color=groups[0][1], alpha=0.25, linewidth=0))
        labels.append(
            f"5 to 95% of {' to '.join(map(str, sizes[:: len(sizes) - 1 or 1]))} replicas"
        )
    legend = panels.axes[0].get_legend() if panels.inside else None
    if legend is not None:
        handles = [*filter(None, legend.legend_handles), *handles]
        labels = [*(text.get_text() for text in legend.get_texts()), *labels]
    if len(handles) == 1 and label is None:
        return
    if len(panels.axes) == 1:
        panels.axes[0].legend(handles, labels)
    else:
        panels.figure.legend(handles, labels, **place)


# The figure ----------------------------------------------------------------------------------


@figure("observables")
def observables(
    solution: Solution,
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
    member: int | Member | None = None,
    log_time: bool | None = None,
    title: str | None = None,
    label: str | None = None,
    color: ColorType | None = None,
    linestyle: LineStyleType | None = None,
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
        Draw here rather than in a new figure; `names` must then hold one name. A second run that
        is drawn into the same axes has the next colour and dashes, and joins the legend.
    member : int or tuple of int, optional
        Member of an ensemble; by default all.
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.
    title : str, optional
        Heading; by default the model, and none if it is ""; with `ax` that of the axes.
    label : str, optional
        Name of the run in the legend.
    color, linestyle : optional
        Of all curves, as matplotlib has them.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a name is unknown or this solution does not have it, the member does not exist,
        or `log_time` is asked for and there are fewer than two times above 0.
    """
    names = _names_to_draw(solution, names, single=not solution.shape or member is not None)
    members, count = all_members(solution, member), len(names)
    layouts.check_axes(ax)
    columns = layouts.columns_for(count) if ax is None else 1
    with theme.style():
        if ax is not None:
            require("names", names, "of one observable, as `ax` holds no more", count == 1)
            figure, axes = ax.figure, [ax]
        else:
            height = 0.7 + 1.75 * -(-count // columns)
            figure = theme.figure(width=min(8.2, 3.6 * columns), height=height)
            axes = layouts.panels_in(figure, count, columns)
        panels = layouts.Panels(solution, members, figure, axes, columns, inside=ax is not None)
        line = {"color": color, "linestyle": linestyle}
        line = {name: value for name, value in line.items() if value is not None}
        draw_observables(panels, names, log_time=log_time, label=label, line=line)
        return layouts.finish(panels, title)


def _names_to_draw(solution: Solution, names: Sequence[str] | None, *, single: bool) -> list[str]:
    """The given names, if they can be drawn; by default all that can, without constant ones."""
    if names is None:
        names = names_of(solution)
        left_out = appearance_of(solution.final).constant(solution)
        left_out |= {*(() if single else of_one_member(solution, names))}
        left_out |= {"order_parameter"} if single and "moments" in names else set()
        shown = [name for name in names if name not in left_out]
        if not shown:
            raise ValueError(
                "This solution has no observable that is a number at each time; draw another kind "
                "of figure, or give some to solve with observe={name: function}."
            )
        return shown
    chosen = [names] if isinstance(names, str) else Many(TEXT).check("names", names)
    unknown = [name for name in chosen if not is_present(solution, name)]
    if unknown or not chosen:
        raise ValueError(
            f"names must be observables of this solution, some of {', '.join(names_of(solution))}; "
            f"got {as_given(unknown)}. The free energy and its dissipation "
            "exist only for gradient flows (USA, Kuramoto, Interaction)."
        )
    several = of_one_member(solution, chosen)
    if several and not single:
        raise ValueError(
            f"{several[0]!r} are drawn for one member of an ensemble: choose it with member=..., "
            "or take 'order_parameter', which is drawn for all."
        )
    return chosen


def draw_observables(
    panels: layouts.Panels, names: Sequence[str], *, key: bool = True, log_time: bool | None = None,
    label: str | None = None, line: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Draw one observable in each panel, for all members of `panels` in different colours.

    Runs that are drawn into the same axes one after another differ in colour, and in dashes.
    """
    solution, look = panels.solution, panels.look
    data = solution.observables.isel(t=slice(layouts.drawn_count(solution)))
    groups, style = groups_of(panels), dict(line or {})
    if panels.inside and (count := RUNS_DRAWN.get(panels.axes[0], 0)):
        style = {"linestyle": theme.DASHES[count % len(theme.DASHES)]} | style
        groups = [(groups[0][0], theme.colour(count))] if len(groups) == 1 else groups
    if panels.inside:
        RUNS_DRAWN[panels.axes[0]] = RUNS_DRAWN.get(panels.axes[0], 0) + 1
    if "color" in style:
        colour = style.pop("color")
        groups = [(members, colour) for members, _ in groups]
    log_time = layouts.is_logarithmic(solution, log_time)
    flat = look.flat(solution.final)
    for name, (ax, bottom, _) in zip(names, panels.outer, strict=True):
        quantity = style_of_observable(name, flat=flat)
        if name == "moments":
            _moments(ax, data, panels.members[0], style)
        elif name == "cluster_mass":
            _cluster_masses(ax, solution)
        elif "index" in data[name].dims:
            _by_index(ax, solution, data[name], panels.members[0])
        else:
            _curves(ax, data[name], quantity, groups, style)
        ax.set_ylabel(look.symbols(solution.final).get(name, quantity.symbol))
        ax.margins(x=0)
        layouts.time_axis(ax, solution, log_time=log_time, named=bottom)
    if key:
        key_of_groups(panels, groups, label, style)


def _curves(
    ax: Axes, values: xr.DataArray, scale: ObservableStyle, groups: Sequence[Group],
    line: Mapping[str, Any],
) -> None:  # fmt: skip
    """Draw a curve for each group, or its median and a band, on a linear or logarithmic axis."""
    if values.ndim == 1:  # the same for all members, as the degree is
        groups = [([()], theme.INK if len(groups) > 1 else groups[0][1])]
    bands, t = [percentiles(values, members) for members, _ in groups], values["t"]
    style: dict[str, Any] = {"drawstyle": "steps-post"} if scale.steps else {}
    style |= {**line, **({"marker": "."} if len(t) == 1 else {})}
    step: dict[str, Any] = {"step": "post"} if scale.steps else {}
    for curves, (_, colour) in zip(bands, groups, strict=True):
        shown = curves - scale.offset
        ax.plot(t, shown[len(shown) // 2], color=colour, **style)
        if len(shown) > 1:
            ax.fill_between(t, *shown[::2], color=colour, alpha=0.25, linewidth=0, **step)
    series = np.concatenate(bands)
    positive = series[series > 0]
    negative = (series < 0).any()  # a logarithmic axis would hide it
    if not negative and positive.size and positive.max() >= scale.log_from * positive.min():
        ax.set_yscale("log", nonpositive="mask")
        lowest = _least_known(series, scale.noise)
        ax.set_ylim(bottom=lowest * min(0.5, (lowest / positive.max()) ** LOG_MARGIN))
    elif scale.steps:  # they count something
        ax.set_ylim(0, 1.08 * np.nanmax(series, initial=1))
        ax.yaxis.set_major_locator(MaxNLocator("auto", steps=TICK_STEPS, integer=True))


def _least_known(series: np.ndarray, noise: float) -> float:
    """The least value > 0 of curves (n, t), without values below `noise` times an earlier one."""
    peaks = np.fmax.accumulate(series, axis=1)
    return float(series[(series > 0) & (series >= noise * peaks)].min())


def _moments(ax: Axes, data: xr.Dataset, member: Member, line: Mapping[str, Any]) -> None:
    """Draw the moduli of the first moments of a member."""
    modulus = xr.apply_ufunc(np.hypot, data["moment_re"], data["moment_im"])
    modulus = modulus.transpose("t", "k", ...)
    marker = {"marker": "."} if data.sizes["t"] == 1 else {}
    for k, values in enumerate(modulus.to_numpy()[(..., *member)].T[:SHOWN_MOMENTS], 1):
        style = {**theme.stroke(k - 1), **line, **marker}
        ax.plot(data["t"], values, label=f"$k = {k}$", **style)
    ax.set_ylim(bottom=0)
    ax.legend(**KEY_ABOVE)


def _by_index(ax: Axes, solution: Solution, values: xr.DataArray, member: Member) -> None:
    """Draw curves for a few nodes of the index, with about equal weights between them."""
    index = solution.final.index
    curves, nodes = values.transpose("index", "t", ...), nodes_to_tell(index, SHOWN_MOMENTS)
    colours, texts = theme.ordered_colours(len(nodes)), distinct(index.nodes[nodes], fewest=2)
    shown = curves.to_numpy()[(..., *member)][nodes]
    for curve, colour, text in zip(shown, colours, texts, strict=True):
        ax.plot(values["t"], curve, color=colour, label=f"${text}$")
    ax.margins(y=0.08)
    ax.legend(title=index.label, title_fontsize=9, **KEY_ABOVE)


def _cluster_masses(ax: Axes, solution: Solution) -> None:
    """Draw a mark for each cluster and time, in the colour of the cluster in which it ends."""
    data, look = solution.observables, appearance_of(solution.final)
    masses = data["cluster_mass"].transpose("t", "cluster").to_numpy()
    points = data["cluster_point"].transpose("t", "cluster", "component").to_numpy()
    present = np.isfinite(masses)
    nodes = [
        (places[row] @ state.points.T).argmax(axis=1)
        for state, places, row in zip(solution, points, present, strict=True)
    ]
    colours, shares = look.colours(solution, np.concatenate(nodes)), masses[present]
    times = np.broadcast_to(solution.t[:, None], masses.shape)[present]
    for colour in sorted(set(colours), key=lambda c: -shares[colours == c].max()):
        mask = colours == colour
        ax.plot(times[mask], shares[mask], ".", color=colour, markersize=2.5)
    ax.set(xlim=(solution.t[0], solution.t[-1]), ylim=(0, 1.08 * np.nanmax(masses, initial=0.1)))


def gaps(figure: FigureBase, view: layouts.DrawnMembers, log_time: bool | None) -> None:
    """Draw log10(1 - rho) of all members of equiangular tokens, also where 1 - rho underflows."""
    ax, solution = figure.subplots(), view.solution
    logs = np.array([np.broadcast_to(s.log_gap, solution.shape) for s in solution]) / np.log(10)
    for (index,), colour in groups_of(view):
        ax.plot(solution.t, logs[(..., *index)], color=colour)
    ax.set_ylabel(r"$\log_{10}(1 - \rho)$")
    layouts.time_axis(ax, solution, log_time=layouts.is_logarithmic(solution, log_time))
