"""The kinds of figure by name, for each space that densities live on."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from ..geometry import Circle, Geometry, Sphere, Zonal
from .circle import snapshots, spacetime
from .circle_overview import circle_overview
from .geometries import entry_of
from .observables import observables
from .polar import polar
from .sphere import mollweide, orthographic
from .sphere_overview import sphere_overview
from .zonal_overview import zonal_overview

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["KINDS", "overview", "plot"]

Draw = Callable[..., Figure]

KINDS: dict[type[Geometry], dict[str, Draw]] = {
    Circle: {
        "overview": circle_overview,
        "spacetime": spacetime,
        "snapshots": snapshots,
        "polar": polar,
        "observables": observables,
    },
    Sphere: {
        "overview": sphere_overview,
        "orthographic": orthographic,
        "map": mollweide,
        "observables": observables,
    },
    Zonal: {
        "overview": zonal_overview,
        "spacetime": spacetime,
        "snapshots": snapshots,
        "observables": observables,
    },
}


def plot(solution: "Solution", kind: str = "overview", **options: Any) -> Figure:
    """A figure of a solution.

    Parameters
    ----------
    solution : Solution
    kind : str
        For densities on the circle "overview", "spacetime", "snapshots", "polar" or
        "observables"; on the sphere "overview", "orthographic", "map" or "observables"; for
        axisymmetric densities "overview", "spacetime", "snapshots" or "observables".
    **options
        Of the function of that name in this room, `mollweide` for "map": `member`, `scale`,
        `times`, `ax`, ...

    Returns
    -------
    Figure
        Write it with `figure.savefig(path)`: 300 dpi, maps as images inside vector formats.

    Raises
    ------
    ValueError
        If there is no such kind for densities on this space; and as the function of that name.
    TypeError
        For characteristics, of which only "observables" are drawn.
    """
    if kind == "observables":
        return observables(solution, **options)
    kinds = entry_of(solution, KINDS)
    if kind not in kinds:
        raise ValueError(
            f"kind must be one of {', '.join(map(repr, kinds))} for densities on the "
            f"{type(solution.final.geometry).__name__}; got {kind!r}."
        )
    return kinds[kind](solution, **options)


def overview(solution: "Solution", **options: Any) -> Figure:
    """One page with the density at several times and its observables.

    Parameters
    ----------
    solution : Solution
    **options
        `member`, `scale` and `title`, as for `spacetime`; on the sphere also `seen_from` and
        `clusters`, as for `orthographic`.
    """
    return plot(solution, "overview", **options)
