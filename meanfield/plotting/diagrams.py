"""Bifurcation diagrams, phase diagrams in the plane of beta and kappa, and studies of chaos."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType

from ..core.checks import as_given, boolean, real, require
from ..core.errors import MeanfieldError
from ..core.forms import TEXT, Many
from ..dynamics.observables import style_of_observable
from ..spaces import Torus
from . import theme
from .labels import describe_drift, label_of_order, symbol_of
from .layouts import Canvas, cell_edges, of_result
from .theme import Style

if TYPE_CHECKING:
    import xarray as xr

    from ..bifurcation import (
        Cusp,
        Diagram,
        NoisePhaseDiagram,
        PhaseDiagram,
        SpecialPoint,
        StationaryState,
        Tricritical,
    )
    from ..chaos import Study
    from ..sweeps import Sweep

STYLES: dict[str, Style] = {
    "stable": {"ls": "-"},
    "unstable": {"ls": "--", "lw": 0.9},
    "stability unknown": {"ls": ":"},
}
MARKS = {
    "bifurcation": ("o", "bifurcation"),
    "fold": ("s", "fold"),
    "transition": ("D", "equal free energy"),
    "symmetry breaking": ("^", "symmetry breaking"),
    "Hopf": ("v", "Hopf bifurcation"),
}
BOTH_STABLE: Style = {"color": theme.FAINT, "alpha": 0.3, "lw": 0, "label": "both stable"}
SEVERAL_STABLE = BOTH_STABLE | {"label": "several stable states"}
NONE_STABLE: Style = {
    "facecolor": "none",
    "edgecolor": theme.WARNING,
    "hatch": "/////",
    "lw": 0,
    "label": "no stable state",
}
LABELS = {
    "free_energy": r"$F(\mu) - F(\mathrm{uniform})$",
    "growth": "largest growth rate",
}
VISIBLE = 1e-9  # smaller moments count as 0
POINTS_IN_INCH, NAME_ROOM = 72, 17  # points of an inch, and of a name beneath a line
CLOSE_NAMES = 0.05  # of the range: names of special points would touch
PLACES = 241  # values of beta at which stable states are counted
LINES = {
    "onset": (theme.INK, "-"),
    "fold": (theme.PALETTE[0], "--"),
    "symmetry breaking": (theme.PALETTE[2], "-."),
    "Hopf": (theme.PALETTE[1], ":"),
}
PLANE_MARKS = {  # by the name of their list in a phase diagram
    "tricritical": ("o", "tricritical"),
    "cusps": ("*", "cusp"),
    "bogdanov_takens": ("D", "Bogdanov-Takens"),
    "generalised_hopf": ("^", "generalised Hopf"),
    "hopf_folds": ("P", "Hopf-fold"),
}
LOCI = {
    "fold": ("fold", theme.PALETTE[0], "--"),
    "transition": ("first-order transition", theme.PALETTE[1], "-."),
}


@of_result
def bifurcation(
    page: Canvas,
    diagram: "Diagram",
    *,
    y: str | Sequence[str] | None = None,
    log: bool = False,
    title: str | None = None,
) -> None:
    """A quantity of all stationary states against kappa or beta, with the special points.

    Parameters
    ----------
    diagram : Diagram
        Without growth rates all lines but the uniform one are dotted.
    y : str or sequence of str
        A variable on the points of `diagram.data`, "moment l", or the name of an observable; of
        several each has its panel. By default the order parameter, and for branches on which it is
        0 the first moment that is not.
    log : bool
        Whether the parameter has a logarithmic axis.
    title : str, optional
        Heading; by default the drift, and none if it is "". With `ax` that of the axes.
    ax : Axes, optional
        Where to draw a single quantity, with its legend.
    width, height : float, optional
        Of a new figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there is no such variable, and for several on one Axes.
    """
    y = _default_quantities(diagram) if y is None else y
    names = [y] if isinstance(y, str) else list(Many(TEXT).check("y, the kind of a diagram,", y))
    require("y, the kind of a diagram,", y, "one name or more", bool(names))
    log = boolean("log", log)
    table = [(name, _values(diagram, name)) for name in names]
    require("y, of an ax,", names, "one name", page.ax is None or len(names) == 1)
    handles = _handles_of_lines(diagram, table)
    labels = LABELS | {"order_parameter": label_of_order(diagram.space)}
    key = len(handles) + len({point.kind for point in diagram.special_points})
    panels = page.divide(len(names), 4.4 if len(names) == 1 else 3.3, 3.2, key=key)
    for panel, (name, values) in zip(panels, table, strict=True):
        shown = _panel(panel, diagram, name, values)
        label = labels.get(name) or _moment_in_words(diagram, name) or name
        panel.set(xlabel=f"${symbol_of(diagram.parameter)}$", ylabel=label)
        panel.set(xscale="log" if log else "linear", xlim=diagram.span)
    page.legend(handles + shown)
    if page.ax is not None:
        page.ax.set_title(title or "")
    else:
        drift = describe_drift(diagram.drift, diagram.parameter)
        if diagram.kappa is not None:
            drift += rf", $\kappa = {diagram.kappa:.7g}$"
        heading = page.figure.suptitle(drift if title is None else title)
        theme.break_heading(page.figure, heading)


def _handles_of_lines(diagram: "Diagram", table: Sequence[tuple[str, np.ndarray]]) -> list[Line2D]:
    """Legend entries of the kinds of stability and, if there are several, of the branches."""
    kinds = set(_stability(diagram.data.growth.values))
    handles = [
        Line2D([], [], color=theme.INK, label=kind, **style)
        for kind, style in STYLES.items()
        if kind in kinds
    ]
    branches = _shown_branches(diagram, table)
    if len(branches) > 1:  # colours as squares, which no line of a stability is taken for
        square: Style = {"ls": "", "marker": "s", "ms": 6}
        handles += [
            Line2D([], [], color=colour, label=f"branch {n}" if n else "uniform", **square)
            for n, colour in branches.items()
        ]
    return handles


def _degree_of(name: str) -> int | None:
    """The degree l of the name "moment l"; None for other names."""
    prefix, _, degree = name.partition(" ")
    return int(degree) if prefix == "moment" and degree.isdigit() else None


def _moment_in_words(diagram: "Diagram", name: str) -> str:
    """The label of an axis for the name "moment l", with a formula; empty for other names."""
    if (degree := _degree_of(name)) is None:
        return ""
    harmonic = rf"\cos {degree}\theta" if diagram.space.dimension == 2 else f"P_{{{degree}}}"
    if isinstance(diagram.space, Torus):  # moments are numbered by waves
        basis = diagram.curve().basis
        waves = getattr(basis, "waves", np.zeros((0, 1)))[basis.degrees == degree]
        if not len(waves):
            return ""
        harmonic = rf"\cos \langle ({', '.join(map(str, waves[0]))}), x\rangle"
    return rf"{name}, $\int\, {harmonic}\, d\mu$"


def _shown_branches(diagram: "Diagram", table: Sequence[tuple[str, np.ndarray]]) -> dict[int, str]:
    """The colours of the branches by number, without those that lie on the uniform state."""
    branches, shown = diagram.data.branch.values, {}
    for number in np.unique(branches):
        mask = branches == number
        if number == 0 or any(np.nanmax(np.abs(v[mask])) >= VISIBLE for _, v in table):
            shown[int(number)] = theme.INK if number == 0 else theme.PALETTE[(number - 1) % 6]
    return shown


def _default_quantities(diagram: "Diagram") -> list[str]:
    """The order parameter, and for each branch on which it is 0 the first moment that is not."""
    data = diagram.data
    degrees, branches = data.degree.values, data.branch.values
    names = ["order_parameter"] if degrees[0] == 1 else []
    for number in np.unique(branches[branches > 0]):
        largest = np.abs(data.moments.values[branches == number]).max(axis=0)
        first = int(degrees[np.argmax(largest > VISIBLE)])
        names += [f"moment {first}"] if first > 1 else []
    return list(dict.fromkeys(names)) or [f"moment {degrees[0]}"]


def _panel(ax: Axes, diagram: "Diagram", y: str, values: np.ndarray) -> list[Line2D]:
    """Draw branches and special points of a quantity; returns legend entries of the points."""
    data, shown = diagram.data, _shown_branches(diagram, [(y, values)])
    for number, colour in shown.items():
        mask = data.branch.values == number
        places = data[diagram.parameter].values[mask]
        _line(ax, places, values[mask], data.growth.values[mask], colour)
    height = ax.bbox.height * POINTS_IN_INCH / ax.figure.dpi
    room = NAME_ROOM / max(height - 2 * NAME_ROOM, NAME_ROOM)  # for names beneath the lowest line
    ax.margins(y=max(0.14, room))
    is_negative = np.nanmin(values) < -np.nanmax(values)
    offset: Style = {"xytext": (0, 5 if is_negative else -13), "textcoords": "offset points"}
    for onsets in _close_groups(diagram.special("bifurcation", 0), diagram.span):
        if (value := _value_at(onsets[0].state, y)) is not None:
            name = ", ".join(dict.fromkeys(_name_of(diagram.parameter, onset) for onset in onsets))
            middle = float(np.mean([onset.value for onset in onsets]))
            ax.annotate(name, (middle, value), ha="center", **offset)
    return _specials(ax, diagram, y, {*shown})


def _close_groups(
    specials: list["SpecialPoint"], span: tuple[float, float]
) -> list[list["SpecialPoint"]]:
    """Groups of special points that lie too close to each other for a name each."""
    groups: list[list[SpecialPoint]] = []
    for point in sorted(specials, key=lambda s: s.value):
        is_close = groups and point.value - groups[-1][-1].value < CLOSE_NAMES * (span[1] - span[0])
        groups[-1].append(point) if is_close else groups.append([point])
    return groups


def _name_of(parameter: str, onset: "SpecialPoint") -> str:
    """The symbol of an onset: the parameter with the degree that becomes unstable as index."""
    symbol = symbol_of(parameter)
    symbol = f"({symbol})" if "_" in symbol else symbol  # which has an index already
    return rf"${symbol}_{{{onset.degree}}}$"


def _values(diagram: "Diagram", y: str) -> np.ndarray:
    """The values of the quantity `y` at all points of a diagram; ValueError if it is unknown."""
    data = diagram.data
    degree = _degree_of(y)
    if degree is not None and degree in data.degree:
        return data.moments.values[:, np.flatnonzero(data.degree.values == degree)[0]]
    if y not in data or data[y].dims != ("point",):
        names = [str(name) for name, table in data.items() if table.dims == ("point",)]
        expected = f"{', '.join(names)} or 'moment l'"
        raise ValueError(f"y, the kind of a diagram, must be {expected}; got {as_given(y)}.")
    return data[y].values


def _stability(growth: np.ndarray) -> np.ndarray:
    """A key of STYLES for every point."""
    kinds = np.where(growth > 1e-9, "unstable", "stable")
    return np.where(np.isnan(growth), "stability unknown", kinds)


def _line(
    ax: Axes, places: np.ndarray, values: np.ndarray, growth: np.ndarray, colour: str
) -> None:
    """Draw a branch in pieces of constant stability, cut where the growth rate vanishes.

    The cut is interpolated linearly between two points. If the growth rate is unknown at one of
    them, the piece ends at the first point of the next piece.
    """
    kinds, curve = _stability(growth), np.stack([places, values])
    cuts = np.flatnonzero(kinds[1:] != kinds[:-1]) + 1
    parts = np.nan_to_num(growth[cuts - 1] / (growth[cuts - 1] - growth[cuts]), nan=1.0)
    changes = curve[:, cuts - 1] + parts.clip(0, 1) * (curve[:, cuts] - curve[:, cuts - 1])
    ends = np.concatenate([curve[:, :1], changes, curve[:, -1:]], axis=1)
    for k, (begin, end) in enumerate(pairwise([0, *cuts, len(places)])):
        piece = np.column_stack([ends[:, k], curve[:, begin:end], ends[:, k + 1]])
        ax.plot(*piece, color=colour, **STYLES[str(kinds[begin])])


def _specials(ax: Axes, diagram: "Diagram", y: str, branches: set[int]) -> list[Line2D]:
    """Draw the special points of these branches that are in the range and have a value of `y`.

    Returns a legend entry for each kind.
    """
    shown, (low, high) = {}, diagram.span
    for point in diagram.special_points:
        value = _value_at(point.state, y)
        is_shown = low <= point.value <= high and point.branch in branches
        if value is None or not is_shown:
            continue
        marker, label = MARKS[point.kind]
        edge = theme.WARNING if point.status == "not located" else theme.INK
        style: Style = {"marker": marker, "ms": 4.5, "mfc": "white", "mec": edge, "ls": ""}
        ax.plot([point.value], [value], zorder=3, **style)
        shown[label] = Line2D([], [], label=label, **style)
    return list(shown.values())


def _value_at(state: "StationaryState", y: str) -> float | None:
    """The quantity `y` of a stationary state; None if it is not known there."""
    if y in ("order_parameter", "free_energy"):
        return getattr(state, y)
    degrees, degree = state.equation.degrees, _degree_of(y)
    if degree is None or degree not in degrees:
        return None
    return float(state.legendre_moments[np.flatnonzero(degrees == degree)[0]])


# Phase diagrams ------------------------------------------------------------------------------


@of_result
def phases(
    page: Canvas, *diagrams: "PhaseDiagram", relative: bool = False, close_up: bool = False
) -> None:
    """The plane of beta and kappa, kappa logarithmic: one panel for each diagram.

    Below all curves the uniform state is the only one that attracts; between the fold and the
    critical curve ordered states do too (shaded); above, the uniform state is unstable. Under
    anisotropic and multiplicative noise, lines are thin where they bound unstable states only;
    shaded are regions with several stable states, and hatched those with none.

    Parameters
    ----------
    *diagrams : PhaseDiagram
        Of USA and of SA, for instance.
    relative : bool
        Whether kappa is divided by kappa_1 of the same beta, under isotropic noise, which opens up
        the region between the curves.
    close_up : bool
        Whether those with a fold have a second, relative panel, at the end.
    ax : Axes, optional
        Where to draw a single one.
    width, height : float, optional
        Of a new figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        Without a diagram, and for several on one Axes.
    """
    ax = page.ax
    if not diagrams or (ax is not None and len(diagrams) > 1):
        raise ValueError(f"phases draws one diagram on an Axes; got {len(diagrams)}.")
    table = [(diagram, relative) for diagram in diagrams]
    if ax is None and close_up and not relative:
        table += [(diagram, True) for diagram in diagrams if "fold" in diagram.loci]
    width = 3.6 if len(table) == 1 else 3.0
    panels = page.divide(len(table), width, 3.4, key=6)
    planes = []
    for panel, (diagram, divided) in zip(panels, table, strict=True):
        draw: Any = _curves if "critical" in diagram.general_names else _lines
        draw(panel, diagram, divided)
        planes += [] if divided else [panel]
    for panel in planes[1:]:
        panel.sharey(planes[0])
        panel.autoscale(axis="y")
    page.legend()


def _lines(ax: Axes, diagram: "NoisePhaseDiagram", relative: bool) -> None:
    """Draw lines of special points, and regions in which several states are stable, or none."""

    def unit(beta: float) -> float:
        return diagram.reference(beta) if relative else 1.0

    data = diagram.data
    for name in diagram.loci:
        mask = data.curve.values == name
        betas, kind = data[diagram.parameter].values[mask], str(data.kind.values[mask][0])
        kappas = data[diagram.second].values[mask] / [unit(b) for b in betas]
        colour, dashes = LINES[kind]
        ax.plot(betas, kappas, lw=0.8, label=kind, color=colour, ls=dashes)
        bounds_stable = data.change.values[mask] != 0
        ax.plot(betas, np.where(bounds_stable, kappas, np.nan), lw=1.9, color=colour, ls=dashes)
    first, last = data.attrs[diagram.parameter]
    betas = np.linspace(first, last, PLACES)
    half = (betas[1] - betas[0]) / 2
    for beta in betas:
        for count, *ends in diagram.drawn_counts(beta):
            if count != 1:
                low, high = np.array(ends) / unit(beta)
                style = SEVERAL_STABLE if count else NONE_STABLE
                ax.fill_between([beta - half, beta + half], low, high, **style)
    for points, marker in PLANE_MARKS.items():
        for point in getattr(diagram, points):
            _mark(ax, point, unit(point.beta), *marker)
    second = rf"${symbol_of(diagram.second)}$"
    log = not relative and diagram.second == "kappa"
    _name_axes(ax, diagram, r"$\kappa/\kappa_1$" if relative else second, log=log)


def _mark(ax: Axes, point: "Tricritical | Cusp", unit: float, marker: str, label: str) -> None:
    """Mark a point of the plane of beta and kappa, which is divided by `unit`."""
    style: Style = {"ms": 8 if marker == "*" else 4.5, "mfc": "white", "mec": theme.INK, "ls": ""}
    ax.plot([point.beta], [point.kappa / unit], marker, zorder=3, label=label, **style)


def _name_axes(ax: Axes, diagram: "PhaseDiagram", kappa: str, *, log: bool) -> None:
    """Names of the axes and of the drift, and the range of the parameter."""
    title = describe_drift(diagram.family.drift, diagram.parameter)
    ax.set(xlabel=f"${symbol_of(diagram.parameter)}$", ylabel=kappa, title=title)
    ax.set(xlim=diagram.data.attrs[diagram.parameter], yscale="log" if log else "linear")


def _curves(ax: Axes, diagram: "PhaseDiagram", relative: bool) -> None:
    """Draw critical curves, folds, transitions, and tricritical and end points."""
    data, lead = diagram.data, diagram.degree
    curve, degree, beta = data.curve.values, data.degree.values, data[diagram.parameter].values

    def unit(value: float) -> float:
        return diagram.kappa("critical", value) if relative else 1.0

    units = np.array([unit(b) for b in beta])
    kappa = data.kappa.values / units
    degrees = np.unique(degree[curve == "critical"])
    close_up = relative and bool((curve != "critical").any())
    for i, l in enumerate(degrees[degrees == lead] if close_up else degrees):
        mask = (curve == "critical") & (degree == l)
        style: Style = (
            {"lw": 1.6, "color": theme.INK} if l == lead else {"lw": 1.0, **theme.stroke(2 * i)}
        )
        ax.plot(beta[mask], kappa[mask], label=rf"$\kappa_{{{l}}}$", **style)
    for line, locus in diagram.loci.items():
        mask, (label, colour, dashes) = curve == line, LOCI[locus.kind]
        top = np.array([diagram.first_onset(b) for b in beta[mask]]) / units[mask]
        has_end = locus.kind == "transition" and bool(diagram.end_points)  # no line beyond
        shown = np.where((kappa[mask] > top) & has_end, np.nan, kappa[mask])
        ax.plot(beta[mask], shown, dashes, color=colour, label=label)
        if locus.kind == "fold":  # where both states attract
            ax.fill_between(beta[mask], kappa[mask], top, where=kappa[mask] < top, **BOTH_STABLE)
    for point in diagram.tricritical:
        if point.degree == lead or not close_up:
            _mark(ax, point, unit(point.beta), *PLANE_MARKS["tricritical"])
    for end in diagram.end_points:
        _mark(ax, end, unit(end.beta), "s", "end point")
    divided = rf"$\kappa/\kappa_{{{lead}}}$" if relative else r"$\kappa$"
    _name_axes(ax, diagram, divided, log=not close_up)
    if close_up:  # from below the lowest curve to a little above kappa_1
        depth = max(1 - float(kappa.min()), 0.1)
        ax.set_ylim(1 - 1.2 * depth, 1 + 0.3 * depth)


# Studies of propagation of chaos ----------------------------------------------------------------

DISTANCE_SYMBOLS = {
    "W1": "$W_1$",
    "W2": "$W_2$",
    "H^-1": "$H^{-1}$",
    "H^-2": "$H^{-2}$",
    "mmd": "MMD",
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SPREAD = 1.96
DISTANCES_IN_RADIANS = ("W1", "W2")  # distances in radians
# Legends of panels wider than so many inches: on the right, beneath, inside.
LEGEND_POSITIONS = (
    (4.4, {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}),
    (2.6, {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2}),
    (0.0, {"loc": "best", "fontsize": 6}),
)


@of_result
def rates(page: Canvas, study: "Study", *, t: float | None = None, name: str | None = None) -> None:
    """Left: every distance against n at one time; right: one of them against time for every n.

    Dots are means over replicas with 95 % intervals, lines are fitted powers of n, and dashed lines
    the floor: independent samples of the density. A study of one time has the left panel alone.

    Parameters
    ----------
    study : Study
    t : float, optional
        The time on the left, of which the nearest is taken; by default the last.
    name : str, optional
        The distance on the right; by default "W2", or the first. With `ax` the only one.
    ax : Axes, optional
        Where to draw the left panel alone, with its legend.
    width, height : float, optional
        Of a new figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there is no such distance.
    """
    t = None if t is None else real("t", t, "a finite number", np.isfinite)
    coupled = "coupling" in study.data
    names = [*study.data.attrs["distances"], *["coupling"] * coupled]
    drawable = [*names, *["coupling up to rotation"] * coupled]
    if not names:
        raise ValueError("rates shows distances or the coupling, and this study has neither.")
    is_known = name is None or (isinstance(name, str) and name in drawable)
    require("name", name, f"one of {', '.join(drawable)}", is_known)
    main = name or ("W2" if "W2" in names else names[0])
    ax = page.ax
    count = 2 if ax is None and study.data.sizes["t"] > 1 else 1
    panels = page.divide(count, 4.6, 3.3)
    _against_size(panels[0], study, names if ax is None or name is None else [main], t)
    if count == 2:
        _against_time(panels[1], study, main)
    if ax is not None:
        page.legend()
        return
    specs = filter(None, (panel.get_subplotspec() for panel in panels))
    width = page.figure.get_figwidth() / len({spec.colspan for spec in specs})
    position = next(position for bound, position in LEGEND_POSITIONS if width > bound)
    for panel in panels:
        panel.legend(**position)


def _against_size(ax: Axes, study: "Study", names: list[str], t: float | None) -> None:
    """Draw distances against n at the time nearest to t, by default the last, with fits."""
    table = study.data.isel(t=-1) if t is None else study.data.sel(t=t, method="nearest")
    sizes = table.n.values
    for i, name in enumerate(names):
        colour = theme.colour(i)
        mean, error = _mean(table[name])
        if not mean.all() or np.isnan(mean).all():  # coupled tokens at the start; no value yet
            continue
        mark = MARKERS[i % len(MARKERS)]
        dots: Style = {"fmt": mark, "ms": 4, "color": colour, "lw": 1}
        ax.errorbar(sizes, mean, SPREAD * error, **dots)
        rate = study.rate(name, t)
        ends = np.array([sizes[0], sizes[-1]])
        symbol = DISTANCE_SYMBOLS.get(name, name)
        no_rate = np.isnan(rate.exponent)
        label = symbol if no_rate else f"{symbol}: $n^{{{rate.exponent:.2f}}}$"
        ax.plot(ends, rate.constant * ends**rate.exponent, color=colour)
        ax.plot([], [], color=colour, marker=mark, ms=4, label=label)
        _floor(ax, sizes, table, name, colour)
    if any(name.startswith("floor") for name in map(str, table)):
        ax.plot([], [], "--", color=theme.INK, lw=0.9, label="independent samples")
    ax.set(xscale="log", yscale="log", xlabel="$n$ tokens", title=f"$t = {float(table.t):g}$")
    angles = [name in DISTANCES_IN_RADIANS for name in names]
    unit = ", radians" if all(angles) else " ($W$ in radians)" if any(angles) else ""
    ax.set_ylabel(f"distance{unit}")


def _against_time(ax: Axes, study: "Study", name: str) -> None:
    """Draw one distance against time for every n, with 95 % bands."""
    times = study.data.t.values
    sizes = study.data.n.values
    for colour, n in zip(theme.ordered_colours(len(sizes)), sizes, strict=True):
        mean, error = _mean(study.data[name].sel(n=n))
        if np.isnan(mean).all():
            continue
        ax.plot(times, mean, color=colour, marker=".", label=f"$n = {n}$")
        band = mean - SPREAD * error, mean + SPREAD * error
        ax.fill_between(times, *band, color=colour, alpha=0.2)
        _floor(ax, times, study.data.sel(n=n), name, colour)
    ax.set(
        yscale="log",
        xlabel="time $t$",
        ylabel=DISTANCE_SYMBOLS.get(name, name) + ", radians" * (name in DISTANCES_IN_RADIANS),
    )


def _floor(ax: Axes, places: np.ndarray, table: "xr.Dataset", name: str, colour: ColorType) -> None:
    """Draw the distance between independent samples, if the table contains it."""
    if f"floor of {name}" in table:
        ax.plot(places, _mean(table[f"floor of {name}"])[0], "--", color=colour, lw=0.9)


def _mean(table: "xr.DataArray") -> tuple[np.ndarray, np.ndarray]:
    """Mean over replicas, the last axis, and its standard error; nan entries are left out."""
    with np.errstate(divide="ignore", invalid="ignore"):  # sizes without values
        error = table.std(REPLICA_AXIS, ddof=1) / np.sqrt(table.count(REPLICA_AXIS))
        return table.mean(REPLICA_AXIS).values, error.values


# Sweeps -------------------------------------------------------------------------------------------

REPLICA_AXIS = "replica"
EVEN_LOG_STEPS, LONG_LOG_RANGE = 0.01, 5.0  # log axis: steps differ by less, a longer range


@of_result
def sweep(page: Canvas, result: "Sweep", name: str = "order_parameter") -> None:
    """A variable over the parameters that have several values, at most two; means of replicas.

    Parameters
    ----------
    result : Sweep
    name : str
        A variable with one number for each run, or for each of its times.
    ax : Axes, optional
        Where to draw.
    width, height : float, optional
        Of a new figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

    Raises
    ------
    ValueError
        For other variables.
    MeanfieldError
        For a sweep over more parameters, or over none that are numbers.
    """
    names = [str(n) for n, v in result.data.items() if v.dtype.kind in "fi" and result.is_scalar(n)]
    require("kind", name, f"a variable: one of {', '.join(names)}", name in names)
    values = result.at_the_end(name)
    heading = _time_and_replicas(result, name)
    values = values.mean(REPLICA_AXIS) if REPLICA_AXIS in values.dims else values
    values = values.squeeze(drop=True)
    if values.ndim not in (1, 2) or any(values[dim].dtype.kind not in "fi" for dim in values.dims):
        raise MeanfieldError(
            "Sweeps over one or two parameters that are numbers have a figure; this one is over "
            f"{', '.join(map(str, values.dims)) or 'none'}. Select some of its data, and draw that."
        )
    names = [str(dim) for dim in values.dims]
    values = values.sortby(names)
    if not all(np.isfinite(values[dim].values).all() for dim in names):
        raise MeanfieldError(
            "Infinite values of a parameter have no place on an axis: leave them out of the sweep, "
            "or draw its data yourself."
        )
    labels = [f"${symbol_of(dim.rpartition('.')[2])}$" for dim in names]
    labels = names if len(set(labels)) < len(labels) else labels
    (panel,) = page.divide(1, 4.2, 3.1)
    grid = [_edges(values[dim].values) for dim in names]
    if len(names) > 1:
        mesh = panel.pcolormesh(*grid, np.transpose(values.values))
        page.figure.colorbar(mesh, ax=panel, label=style_of_observable(name).symbol)
    else:
        panel.plot(values[names[0]], values.values, "o-")
        panel.set_ylabel(style_of_observable(name).symbol)
    for axis, dim, label in zip((panel.xaxis, panel.yaxis), names, labels, strict=False):
        axis.set_label_text(label)
        if is_geometric(values[dim].values):
            (panel.set_xscale if axis is panel.xaxis else panel.set_yscale)("log")
        elif (
            page.ax is None and values[dim].values[0] > 0
        ):  # no place for numbers that the parameter cannot have
            set_limits = panel.set_xlim if axis is panel.xaxis else panel.set_ylim
            low, high = axis.get_view_interval()
            set_limits(max(low, 0.0), high)
    if page.ax is None:
        panel.set_title(heading)


def _time_and_replicas(result: "Sweep", name: str) -> str:
    """The time of the values of a variable, and how many replicas they are means of, in words."""
    variable, parts = result.data[name], []
    if "t" in variable.dims:
        times = variable["t"].values
        values = variable.transpose("t", ...).values.reshape(len(times), -1)
        last = {int(np.flatnonzero(run).max(initial=-1)) for run in np.isfinite(values).T} - {-1}
        at_one = len(last) == 1
        parts.append(f"at $t = {times[last.pop()]:g}$" if at_one else "at the end of each run")
    if (count := variable.sizes.get(REPLICA_AXIS, 1)) > 1:
        parts.append(f"mean of {count} replicas")
    return ", ".join(parts)


def is_geometric(places: np.ndarray) -> bool:
    """Whether increasing numbers are spaced like numpy.geomspace over a long range."""
    if not (places[0] > 0 and places[-1] > LONG_LOG_RANGE * places[0]):
        return False
    steps = np.diff(np.log(places))
    return bool(np.ptp(steps) < EVEN_LOG_STEPS * np.abs(steps).max())


def _edges(places: np.ndarray) -> np.ndarray:
    """Edges (n + 1,) of the cells about increasing numbers, halfway on the axis that shows them."""
    return np.exp(cell_edges(np.log(places))) if is_geometric(places) else cell_edges(places)
