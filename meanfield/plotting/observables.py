"""Observables over time as small multiples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D

from ..characteristics import Characteristics
from . import ensemble, resolution, theme
from .panels import title_page
from .portions import colours_of

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["QUANTITIES", "Quantity", "draw_observables", "energy_name", "observables"]

MOST_IN_LEGEND = 9
SHOWN_MOMENTS = 4


@dataclass(frozen=True)
class Quantity:
    """How one observable is shown.

    Attributes
    ----------
    symbol : str
        Label of its axis.
    log_from : float
        The factor that positive values span from which on the axis is logarithmic.
    offset : float
        Subtracted before drawing.
    steps : bool
        Whether it is a whole number, constant between saved times.
    """

    symbol: str
    log_from: float = np.inf
    offset: float = 0.0
    steps: bool = False


QUANTITIES = {
    "moments": Quantity(r"moments $|m_k|$"),
    "order_parameter": Quantity(r"order parameter $|m_1|$"),
    "free_energy": Quantity(r"free energy $F(\mu_t)$"),
    "dissipation": Quantity(r"dissipation $-\mathrm{d}F/\mathrm{d}t$", log_from=100.0),
    "w2_to_dirac": Quantity(r"$W_2$ to a Dirac (rad)", log_from=100.0),
    "speed": Quantity(r"speed in $W_2$", log_from=100.0),
    "cluster_count": Quantity("clusters", steps=True),
    "cluster_mass": Quantity("masses of clusters"),
    "interaction_energy": Quantity(r"interaction energy $E(\mu_t)$"),
    "entropy": Quantity(r"$\int \mu_t \log \mu_t \,\mathrm{d}\sigma$"),
    "minimum": Quantity(r"minimum $\min\,\mu_t$", log_from=100.0),
    "mass": Quantity(r"mass drift $\int \mathrm{d}\mu_t - 1$", offset=1.0),
    "spectral_tail": Quantity("spectral tail", log_from=100.0),
    "degree": Quantity("degree", steps=True),
    "quadrature_error": Quantity("quadrature error", log_from=1.0),
}


def observables(
    solution: "Solution",
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    title: str | None = None,
) -> Figure:
    """Observables over time, one panel for each.

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
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a name is unknown or this solution does not have it, or the member does not exist.
    """
    chosen = _chosen(solution, names, single=not solution.shape or member is not None)
    with theme.style():
        if ax is not None:
            if len(chosen) != 1:
                raise ValueError(
                    f"One `ax` holds one observable; got names = {chosen}. Give one name."
                )
            draw_observables(ax.figure, [ax], solution, chosen, member)
            resolution.mark(ax, solution)
            return ax.figure
        columns = {1: 1, 2: 2, 4: 2}.get(len(chosen), 3)
        rows = -(-len(chosen) // columns)
        figure = theme.figure(width=min(8.2, 3.6 * columns), height=0.7 + 1.75 * rows)
        axes = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
        for spare in axes[len(chosen) :]:
            spare.remove()
        draw_observables(figure, axes[: len(chosen)], solution, chosen, member, columns=columns)
        return title_page(figure, solution, title)


def _present(solution: "Solution", name: str) -> bool:
    """Whether a solution has this observable, with a finite value at some time."""
    data = solution.observables
    if name == "moments":
        return "moment_re" in data
    return name in data and bool(np.isfinite(data[name]).any())


def energy_name(solution: "Solution") -> str:
    """The free energy where it exists; else the entropy, or what has none, its interaction."""
    names = ("free_energy", "entropy", "interaction_energy")
    return next(name for name in names if _present(solution, name))


def _chosen(solution: "Solution", names: Sequence[str] | None, *, single: bool) -> list[str]:
    if names is None:
        other = "order_parameter" if single else "moments"
        # Characteristics have the mass that they had at first, to the last bit.
        left_out = (other, "mass") if isinstance(solution.final, Characteristics) else (other,)
        return [name for name in QUANTITIES if name not in left_out and _present(solution, name)]
    wanted = [names] if isinstance(names, str) else list(names)
    missing = [name for name in wanted if not _present(solution, name)]
    if missing or not wanted:
        available = [name for name in QUANTITIES if _present(solution, name)]
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
) -> None:
    """One observable in each panel; the members of an ensemble told apart by colour."""
    members = _members(solution, member)
    colours = _member_colours(len(members))
    for i, (ax, name) in enumerate(zip(axes, names, strict=True)):
        quantity = QUANTITIES.get(name, Quantity(name.replace("_", " ")))
        if name == "moments":
            _moments(ax, solution, members[0])
        elif name == "cluster_mass":
            _cluster_masses(ax, solution)
        else:
            _curves(ax, solution.t, _series(solution.observables[name], members), quantity, colours)
        ax.set_ylabel(quantity.symbol)
        ax.set_xlabel("time $t$" if i + columns >= len(names) else "")
        ax.margins(x=0)
        resolution.hatch(ax, solution)
    if key and len(members) > 1:
        _member_key(figure, axes, solution, members, colours)


def _members(solution: "Solution", member: int | tuple[int, ...] | None) -> list[tuple[int, ...]]:
    if member is None:
        return list(np.ndindex(tuple(solution.shape)))
    return ensemble.choose(solution, member)


def _series(data: xr.DataArray, members: list[tuple[int, ...]]) -> np.ndarray:
    """Values of shape (members, t)."""
    values = data.transpose(..., "t").to_numpy()
    if values.ndim == 1:  # the same for all members, as the degree is
        return values[None]
    return np.stack([values[index] for index in members])


def _curves(ax: Axes, t: np.ndarray, series: np.ndarray, quantity: Quantity, colours: list) -> None:
    style = {"drawstyle": "steps-post"} if quantity.steps else {}
    if len(series) == 1 and len(colours) > 1:
        colours = [theme.INK]
    for values, colour in zip(series, colours, strict=True):
        ax.plot(t, values - quantity.offset, color=colour, **style)
    positive = series[series > 0]
    negative = (series < 0).any()  # a logarithmic axis would hide it
    if not negative and positive.size and positive.max() >= quantity.log_from * positive.min():
        ax.set_yscale("log", nonpositive="mask")
        ax.set_ylim(bottom=max(0.5 * positive.min(), 1e-20 * positive.max()))
    elif quantity.steps:
        ax.set_ylim(0, 1.08 * np.nanmax(series, initial=1))
        ax.yaxis.get_major_locator().set_params(integer=True)  # they count something


def _moments(ax: Axes, solution: "Solution", index: tuple[int, ...]) -> None:
    data = solution.observables
    modulus = np.hypot(data["moment_re"], data["moment_im"])
    for k in modulus["k"].to_numpy()[:SHOWN_MOMENTS]:
        values = _series(modulus.sel(k=k), [index])[0]
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


def _member_colours(count: int) -> list:
    return [theme.PALETTE[0]] if count == 1 else theme.ordered_colours(count)


def _member_key(
    figure: FigureBase,
    axes: Sequence[Axes],
    solution: "Solution",
    members: list[tuple[int, ...]],
    colours: list,
) -> None:
    """A legend for a few members, a colour bar for many."""
    if len(members) <= MOST_IN_LEGEND:
        handles = [Line2D([], [], color=colour) for colour in colours]
        labels = [ensemble.label(solution, index) for index in members]
        if len(axes) == 1:
            axes[0].legend(handles, labels)
        else:
            figure.legend(handles, labels, loc="outside right upper")
        return
    last = len(members) - 1
    scale = ScalarMappable(Normalize(0, last), ListedColormap(theme.ordered_colours(256)))
    bar = figure.colorbar(scale, ax=list(axes), aspect=40, pad=0.02, label="member")
    ticks = np.unique(np.linspace(0, last, 7).round().astype(int))
    bar.set_ticks(ticks, labels=[ensemble.label(solution, members[i]) for i in ticks])
