"""Two states whose distance is asked for: whether it exists, and which members are paired."""

from typing import Any

import numpy as np

from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Dirac, Tokens

__all__ = ["checked_states", "dimension_of", "on_sphere"]

STATES = (Density, Tokens, Characteristics, Dirac)


def checked_states(name: str, a: Any, b: Any) -> tuple[tuple[int, ...], np.ndarray]:
    """The shape of the ensemble of pairs, and the members (pairs, 2) of each, counted flat."""
    for state in (a, b):
        if not isinstance(state, STATES):
            raise TypeError(
                f"{name} is between states: Density, Tokens, Characteristics or Dirac; got "
                f"{type(state).__name__}."
            )
        if isinstance(state, Density):
            state.checked_positive()
    if dimension_of(a) != dimension_of(b) or on_sphere(a) != on_sphere(b):
        raise ValueError(f"{name} needs two states of one space; got {place_of(a)}, {place_of(b)}.")
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ValueError(
            f"{name} needs ensembles whose shapes broadcast; got {a.shape} and {b.shape}."
        ) from None
    members = [
        np.broadcast_to(np.arange(int(np.prod(s.shape))).reshape(s.shape), shape).ravel()
        for s in (a, b)
    ]
    return shape, np.stack(members, axis=1)


def dimension_of(state: Any) -> int:
    """The ambient dimension d."""
    return state.dimension if isinstance(state, Tokens | Dirac) else state.geometry.dimension


def on_sphere(state: Any) -> bool:
    """Whether it lives on the sphere rather than in R^d."""
    return not isinstance(state, Tokens) or state.on_sphere


def place_of(state: Any) -> str:
    """Its space, in words."""
    d = dimension_of(state)
    return f"{type(state).__name__} {f'on S^{d - 1}' if on_sphere(state) else f'in R^{d}'}"
