"""What can be drawn depends on the kind of state, and on the space that it lives on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from ..characteristics import Characteristics
from ..geometry import Geometry
from ..states import Density

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["ByState", "describe_states", "entry_of", "expect", "expect_densities_on"]

Entry = TypeVar("Entry")
ByState = Mapping[type, Mapping[type[Geometry], Entry]]

NAMES = {Density: "densities", Characteristics: "characteristics"}


def entry_of(solution: "Solution", table: ByState[Entry]) -> Entry:
    """The entry of `table` for the states of a solution and their space."""
    for state, spaces in table.items():
        if isinstance(solution.final, state):
            expect(solution, state, *spaces)
            return next(
                e for space, e in spaces.items() if isinstance(solution.final.geometry, space)
            )
    raise TypeError(
        f"Expected {' or '.join(NAMES[state] for state in table)}; got states of type "
        f"{type(solution.final).__name__}."
    )


def expect(solution: "Solution", state: type, *spaces: type[Geometry]) -> None:
    """Raise TypeError for states of another type than `state`, or on another space."""
    final = solution.final
    if not isinstance(final, state) or not isinstance(final.geometry, spaces):
        names = " or the ".join(space.__name__.lower() for space in spaces)
        raise TypeError(
            f"This plot needs {NAMES[state]} on the {names}; got {describe_states(solution)}. "
            "kind='observables' draws any solution."
        )


def expect_densities_on(solution: "Solution", *spaces: type[Geometry]) -> None:
    """Raise TypeError for other states than densities on these spaces."""
    expect(solution, Density, *spaces)


def describe_states(solution: "Solution") -> str:
    """For messages: "densities on the Circle"."""
    final = solution.final
    name = next((name for kind, name in NAMES.items() if isinstance(final, kind)), "states")
    return f"{name} on the {type(final.geometry).__name__}"
