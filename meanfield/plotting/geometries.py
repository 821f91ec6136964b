"""What can be drawn depends on the space that the states live on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from ..characteristics import Characteristics
from ..geometry import Geometry

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["entry_of", "expect_densities_on"]

Entry = TypeVar("Entry")


def entry_of(solution: "Solution", table: Mapping[type[Geometry], Entry]) -> Entry:
    """The entry of `table` for the space that the states live on; TypeError if it has none."""
    expect_densities_on(solution, *table)
    return next(e for space, e in table.items() if isinstance(solution.final.geometry, space))


def expect_densities_on(solution: "Solution", *spaces: type[Geometry]) -> None:
    """Raise TypeError for densities on another space, and for states that are no densities."""
    if isinstance(solution.final, Characteristics):
        raise TypeError(
            "This plot needs densities; got Characteristics, which has nodes and no values. "
            "kind='observables' draws any solution."
        )
    geometry = solution.final.geometry
    if not isinstance(geometry, spaces):
        names = " or the ".join(space.__name__.lower() for space in spaces)
        raise TypeError(
            f"This plot needs densities on the {names}; got a state on "
            f"{type(geometry).__name__}. kind='observables' draws any solution."
        )
