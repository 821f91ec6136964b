"""Random numbers of the members of an ensemble, each from a child of the generator of the run.

In an ensemble, replica r, counted in C order, draws independent noise from child r + 1, and common
noise from child r of child 0. So the path of a replica depends neither on the others nor on their
number. A single run draws independent noise from the generator itself, and common noise from
child 0.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.annotations import JsonTable
from ..core.checks import require
from ..core.errors import CheckpointError


class Streams:
    """Normal numbers for R members of an ensemble, each from a separate generator.

    Parameters
    ----------
    generators : sequence of numpy Generators
        One generator for each member.

    Notes
    -----
    The overhead is about a microsecond for each member.
    """

    def __init__(self, generators: Sequence[np.random.Generator]):
        self.generators = tuple(generators)

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Independent N(0, 1) numbers (R, ...); the numbers of a member are drawn in C order.

        Raises
        ------
        ValueError
            If the first axis has not length R.
        """
        numbers = np.empty(shape)
        for generator, row in zip(self.generators, numbers, strict=True):
            generator.standard_normal(out=row)
        return numbers


@dataclass(frozen=True)
class Seeds:
    """Seeds of the members of an ensemble, in C order, for the argument `rng` of `solve`.

    A member draws the same numbers as a single run with its seed.
    """

    numbers: tuple[int, ...]


def streams_of(
    rng: np.random.Generator | Seeds | None, shape: tuple[int, ...], *, each: bool, common: bool
) -> tuple[Any, Any]:
    """Generators of the independent noise and of the common noise of a run.

    Parameters
    ----------
    rng : Generator, Seeds or None
        Generator of the run; None if no random numbers are needed.
    shape : tuple of int
        Shape of the ensemble; () for a single run.
    each : bool
        Whether each member draws independent noise from a separate generator.
    common : bool
        Whether there is common noise.

    Returns
    -------
    independent, common : Generator, Streams or None
        `common` is None without common noise.

    Raises
    ------
    ValueError
        If children are needed and the generator has no seed to spawn them from, or if the number of
        seeds is not that of the members.
    """
    members = int(np.prod(shape))
    if isinstance(rng, Seeds):
        expected = f"{members} seeds, one for each member"
        require("rng", rng, expected, shape and len(rng.numbers) == members)
        generators = [np.random.default_rng(seed) for seed in rng.numbers]
        firsts = [_children(generator, 1)[0] for generator in generators] if common else []
        return Streams(generators), Streams(firsts) if common else None
    if rng is None or not (common or (shape and each)):
        return rng, None
    first, *children = _children(rng, 1 + members * bool(shape and each))
    common_stream: Any = Streams(_children(first, members)) if shape else first
    return (Streams(children) if children else rng), (common_stream if common else None)


def _children(rng: np.random.Generator, count: int) -> list[np.random.Generator]:
    """Children of a generator by `spawn`; ValueError if it has no seed."""
    try:
        return rng.spawn(count)
    except TypeError as error:
        raise ValueError(
            "Replicas and common noise draw from rng.spawn(...), and this rng has no seed to spawn "
            f"from: {error} Give rng as a seed, or as numpy.random.default_rng(seed)."
        ) from error


# Kept in a checkpoint ----------------------------------------------------------------------------


def random_state(rng: Any) -> np.ndarray:
    """States of R generators as text (R,); R = 1 for a Generator, 0 for None."""
    return np.array([state_as_json(g) for g in _generators(rng)], dtype=str)


def state_as_json(rng: np.random.Generator) -> str:
    """The state of a generator as text."""
    return json.dumps(rng.bit_generator.state, default=lambda array: array.tolist())


def generator_of(state: JsonTable) -> np.random.Generator:
    """Generator with the state that `state_as_json` described, and so many spawned children."""
    kind = getattr(np.random, state["bit_generator"])
    rng = np.random.Generator(kind())
    rng.bit_generator.state = {name: value for name, value in state.items() if name != "children"}
    if state.get("children"):
        rng.spawn(state["children"])
    return rng


def restore_random(rng: Any, states: np.ndarray) -> None:
    """Set the states of a Generator, or of `Streams`, to those that `random_state` returned.

    Raises
    ------
    CheckpointError
        If the number of states is not that of the generators.
    """
    generators = _generators(rng)
    if len(states) != len(generators):
        raise CheckpointError(
            f"This checkpoint has {len(states)} states of generators, and the run needs "
            f"{len(generators)}. Remove the file, or choose another name."
        )
    for generator, state in zip(generators, states.tolist(), strict=True):
        generator.bit_generator.state = json.loads(state)


def _generators(rng: Any) -> tuple[np.random.Generator, ...]:
    if rng is None:
        return ()
    return rng.generators if isinstance(rng, Streams) else (rng,)
