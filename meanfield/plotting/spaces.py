"""What can be drawn depends on the kind of state, and on the space that it lives on."""

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from ..spaces import Circle, Geometry, Sphere, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Equiangular, Gaussian, Gram, Tokens

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = [
    "ByState",
    "Space",
    "Where",
    "describe_states",
    "entry_of",
    "expect",
    "expect_densities_on",
    "expect_tokens",
    "space_of",
]

Entry = TypeVar("Entry")


class Space(Enum):
    """Where tokens can live beside the circle and the sphere of R^3, in words for messages."""

    HYPERSPHERE = "on a sphere of R^d, d > 3"
    LINE = "on the line"
    PLANE = "in the plane"
    EUCLIDEAN = "in R^d, d > 2"
    PAIRS = "of tokens"
    ANYWHERE = ""  # equiangular tokens, whatever the dimension


Where = type[Geometry] | Space
ByState = Mapping[type, Mapping[Where, Entry]]

NAMES = {
    Density: "densities",
    Characteristics: "characteristics",
    Tokens: "tokens",
    Gram: "inner products",
    Equiangular: "equiangular tokens",
    Gaussian: "Gaussians",
}
FLAT = {1: Space.LINE, 2: Space.PLANE}
ROUND: dict[int, Where] = {2: Circle, 3: Sphere}


def space_of(solution: "Solution") -> Where:
    """The space of the states: the kind of their geometry, or what tells how to draw tokens."""
    final = solution.final
    if isinstance(final, Gram):
        return Space.PAIRS
    if isinstance(final, Equiangular):
        return Space.ANYWHERE
    if isinstance(final, Gaussian):
        return FLAT.get(final.dimension, Space.EUCLIDEAN)
    if isinstance(final, Tokens):
        if final.on_sphere:
            return ROUND.get(final.dimension, Space.HYPERSPHERE)
        return FLAT.get(final.dimension, Space.EUCLIDEAN)
    kinds = (Circle, Sphere, Zonal)
    return next(kind for kind in kinds if isinstance(final.geometry, kind))


def entry_of(solution: "Solution", table: ByState[Entry]) -> Entry:
    """The entry of `table` for the states of a solution and their space."""
    for state, spaces in table.items():
        if isinstance(solution.final, state):
            expect(solution, state, *spaces)
            return spaces[space_of(solution)]
    raise TypeError(
        f"Expected {' or '.join(NAMES[state] for state in table)}; got states of type "
        f"{type(solution.final).__name__}."
    )


def expect(solution: "Solution", states: type | tuple[type, ...], *spaces: Where) -> None:
    """Raise TypeError for states of other types than `states`, or on another space."""
    if not isinstance(solution.final, states) or space_of(solution) not in spaces:
        kinds = states if isinstance(states, tuple) else (states,)
        wanted = f"{' or '.join(NAMES[kind] for kind in kinds)} {_either(spaces)}".rstrip()
        raise TypeError(
            f"This plot needs {wanted}; got {describe_states(solution)}. kind='observables' "
            "draws any solution."
        )


def expect_densities_on(solution: "Solution", *spaces: type[Geometry]) -> None:
    """Raise TypeError for other states than densities on these spaces."""
    expect(solution, Density, *spaces)


def expect_tokens(solution: "Solution", *spaces: Where) -> None:
    """Raise TypeError for other states than tokens on these spaces."""
    expect(solution, Tokens, *spaces)


def describe_states(solution: "Solution") -> str:
    """For messages: "densities on the Circle"."""
    final = solution.final
    name = next(name for kind, name in NAMES.items() if isinstance(final, kind))
    space = space_of(solution)
    where = space.value if isinstance(space, Space) else f"on the {space.__name__}"
    return f"{name} {where}".rstrip()


def _either(spaces: tuple[Where, ...]) -> str:
    """Spaces in words: "on the circle or the zonal"."""
    words = [s.value if isinstance(s, Space) else f"on the {s.__name__.lower()}" for s in spaces]
    first, *others = words
    return " or ".join([first, *(word.removeprefix("on ") for word in others)])
