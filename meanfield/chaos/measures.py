"""What a study measures: distances by name, functionals by default."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from ..distances import mmd, sobolev_distance, wasserstein
from ..spaces import Circle, Geometry
from ..spaces.density import Density
from ..states import Tokens

__all__ = ["CIRCLE", "SPHERE", "Measured", "distances_of", "functionals_of"]

Measured = Callable[[Tokens, Density], Any]
SOBOLEV = 64  # degree on S^2
CELLS, FEWEST, MOST = 4, 1000, 20_000  # of a density on S^2: for each token, at least, at most


def _on_sphere(tokens: Tokens, law: Density, p: float) -> Any:
    cells = min(max(CELLS * len(tokens), FEWEST), MOST)
    return wasserstein(tokens, law, p, cells=cells)


CIRCLE: dict[str, Measured] = {
    "W1": partial(wasserstein, p=1),
    "W2": partial(wasserstein, p=2),
    "H^-1": sobolev_distance,
    "W2 up to rotation": partial(wasserstein, p=2, up_to_rotation=True),
    "H^-1 up to rotation": partial(sobolev_distance, up_to_rotation=True),
}
SPHERE: dict[str, Measured] = {
    "mmd": mmd,
    "H^-2": partial(sobolev_distance, s=2, degree=SOBOLEV),
    "W1": partial(_on_sphere, p=1),
    "W2": partial(_on_sphere, p=2),
}


def distances_of(chosen: Any, space: Geometry) -> dict[str, Measured]:
    """Distances by name: those of a mapping, known ones of a sequence of names, or the default.

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """
    if isinstance(chosen, Mapping):
        _check_callables("distances", chosen)
        return dict(chosen)
    known = CIRCLE if isinstance(space, Circle) else SPHERE
    if chosen is None:
        chosen = ("W1", "W2", "H^-1") if isinstance(space, Circle) else ("mmd", "H^-2")
    if isinstance(chosen, str) or not isinstance(chosen, Iterable):
        raise TypeError(f"distances is a mapping, or a sequence of names; got {chosen!r}.")
    names = list(chosen)
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"Known distances here are {', '.join(known)}; got {name!r}.")
    if len(set(names)) < len(names):
        raise ValueError(f"Every distance is named once; got {names}.")
    return {name: known[name] for name in names}


def functionals_of(chosen: Any, space: Geometry) -> dict[str, Callable[[Any], Any]]:
    """Functionals by name: those of a mapping, or the first moments and their squares.

    Raises
    ------
    TypeError
        For anything else.
    """
    if chosen is not None:
        if not isinstance(chosen, Mapping):
            raise TypeError(f"functionals is a mapping of names to callables; got {chosen!r}.")
        _check_callables("functionals", chosen)
        return dict(chosen)
    coordinates = [partial(_coordinate, c) for c in range(space.dimension)]
    found = {
        "x_1": lambda state: state.expect(coordinates[0]),
        "|m_1|^2": lambda state: sum(state.expect(c) ** 2 for c in coordinates),
    }
    if isinstance(space, Circle):
        found["|m_2|^2"] = lambda state: (
            state.expect(lambda x: x[..., 0] ** 2 - x[..., 1] ** 2) ** 2
            + state.expect(lambda x: 2 * x[..., 0] * x[..., 1]) ** 2
        )
    return found


def _check_callables(what: str, chosen: Mapping) -> None:
    for name, value in chosen.items():
        if not isinstance(name, str) or not callable(value):
            raise TypeError(f"{what} maps names to callables; got {name!r}: {value!r}.")


def _coordinate(c: int, x: Any) -> Any:
    return x[..., c]
