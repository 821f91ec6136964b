"""The measurements of a study: distances between tokens and densities, and functionals of both."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ..core.checks import require
from ..distances import mmd, sobolev_distance, wasserstein
from ..spaces import Circle, Density, Space, Sphere, Torus
from ..states import Tokens, TorusTokens

PointSet = Tokens | TorusTokens
Measured = Callable[[Any, Density], Any]
Functional = Callable[[Any], Any]
Named = TypeVar("Named", bound=Callable[..., Any])
SOBOLEV_DEGREE = 64  # degree on S^2
TORUS_DEGREE = 16  # degree on a torus
CELLS_PER_TOKEN, LEAST_CELLS, MOST_CELLS = 4, 1000, 20_000  # of a density on S^2 or a torus


class Measurements(NamedTuple):
    """Distances on a space by name, the names of the default ones, and functionals by name."""

    distances: dict[str, Measured]
    default: tuple[str, ...]
    functionals: dict[str, Functional]


def _with_cells(tokens: PointSet, law: Density, p: float) -> Any:
    cells = min(max(CELLS_PER_TOKEN * len(tokens), LEAST_CELLS), MOST_CELLS)
    return wasserstein(tokens, law, p, cells=cells)


def _first_coordinate(state: Any) -> Any:
    return state.expect(lambda x: x[..., 0])


def _square_of_mean(state: Any) -> Any:
    return sum(state.expect(lambda x, c=c: x[..., c]) ** 2 for c in range(state.dimension))


def _square_of_second_moment(state: Any) -> Any:
    return (
        state.expect(lambda x: x[..., 0] ** 2 - x[..., 1] ** 2) ** 2
        + state.expect(lambda x: 2 * x[..., 0] * x[..., 1]) ** 2
    )


MEAN: dict[str, Functional] = {"x_1": _first_coordinate, "|m_1|^2": _square_of_mean}


def _in_more_dimensions(degree: int) -> Measurements:
    """Measurements on S^2 and on a torus, with harmonics up to a degree."""
    distances: dict[str, Measured] = {
        **{"mmd": mmd, "H^-2": partial(sobolev_distance, s=2, degree=degree)},
        **{"W1": partial(_with_cells, p=1), "W2": partial(_with_cells, p=2)},
    }
    return Measurements(distances, ("mmd", "H^-2"), MEAN)


MEASUREMENTS: dict[type[Space], Measurements] = {
    Circle: Measurements(
        {
            "W1": partial(wasserstein, p=1),
            "W2": partial(wasserstein, p=2),
            "H^-1": sobolev_distance,
            "W2 up to rotation": partial(wasserstein, p=2, up_to_rotation=True),
            "H^-1 up to rotation": partial(sobolev_distance, up_to_rotation=True),
        },
        ("W1", "W2", "H^-1"),
        MEAN | {"|m_2|^2": _square_of_second_moment},
    ),
    Sphere: _in_more_dimensions(SOBOLEV_DEGREE),
    Torus: _in_more_dimensions(TORUS_DEGREE),
}


def measurements_on(space: Space) -> Measurements | None:
    """The named distances and functionals on a space, looked up along the bases of its class."""
    inherited = (MEASUREMENTS[cls] for cls in type(space).__mro__ if cls in MEASUREMENTS)
    return next(inherited, None)


def chosen_of(
    argument: str, chosen: Any, functions: dict[str, Named], default: Iterable[str]
) -> dict[str, Named]:
    """Distances or functionals by name: of a mapping, of a list of names, or by default.

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """
    if isinstance(chosen, Mapping):
        fits = all(isinstance(name, str) and callable(f) for name, f in chosen.items())
        return dict(require(argument, chosen, "names with callables", fits, TypeError))
    a_sequence = isinstance(chosen, Sequence | set | None) and not isinstance(chosen, str | bytes)
    require(argument, chosen, "a mapping, or a sequence of names", a_sequence, TypeError)
    names = list(default if chosen is None else chosen)
    for name in names:
        is_known = isinstance(name, str) and name in functions
        require(argument, name, f"some of {', '.join(functions)}", is_known)
    require(argument, names, "names that differ from each other", len(set(names)) == len(names))
    return {name: functions[name] for name in names}
