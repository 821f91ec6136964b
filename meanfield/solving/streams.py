"""Random numbers of the members of an ensemble: a generator for each, a child of that of the run.

Child 0 of the generator of a run draws common noise, child r + 1 the independent noise of replica
r, counted in C order, with its own common noise from child r of child 0. So the path of a replica
depends neither on the others nor on how many there are. A single run draws independent noise
from the generator itself, and common noise from child 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.checks import fitting
from ..core.errors import CheckpointError

RANDOM_WORD = 2**64  # states of generators are kept in words of 64 bits, two for each number


class Streams:
    """Normal numbers for R members of an ensemble, each from a generator of its own.

    Parameters
    ----------
    generators : sequence of numpy Generators

    Notes
    -----
    Costs about a microsecond for each member beside the numbers, which are drawn into one array.
    """

    def __init__(self, generators: Sequence[np.random.Generator]):
        self.generators = tuple(generators)

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Independent N(0, 1) numbers (R, ...): those of a member are drawn in C order.

        Raises
        ------
        ValueError
            If the first axis is not that of the members.
        """
        numbers = np.empty(shape)
        for generator, row in zip(self.generators, numbers, strict=True):
            generator.standard_normal(out=row)
        return numbers


@dataclass(frozen=True)
class Seeds:
    """The seeds of the members of an ensemble, in C order: each draws as it does alone with its.

    `solve` takes them as `rng`.
    """

    numbers: tuple[int, ...]

    def streams(self, shape: tuple[int, ...], *, common: bool) -> tuple[Any, Any]:
        """Streams of independent and of common noise, as `streams_of` returns them.

        Raises
        ------
        ValueError
            If there is not one for each member.
        """
        members = int(np.prod(shape))
        wanted = f"{members} seeds, one for each member"
        fitting("rng", self, wanted, shape and len(self.numbers) == members)
        each = [np.random.default_rng(seed) for seed in self.numbers]
        shared = Streams([_children(rng, 1)[0] for rng in each]) if common else None
        return Streams(each), shared


def streams_of(
    rng: np.random.Generator | Seeds | None, shape: tuple[int, ...], *, each: bool, common: bool
) -> tuple[Any, Any]:
    """The generators of the independent and of the common noise of a run.

    Parameters
    ----------
    rng : Generator, Seeds or None
        None where nothing is random.
    shape : tuple of int
        Of the ensemble; () for a single run.
    each : bool
        Whether members have independent noise of their own.
    common : bool
        Whether there is common noise.

    Returns
    -------
    Generator, Streams or None, twice
        The second is None without common noise.

    Raises
    ------
    ValueError
        If the generator has no seed, from which children can be spawned.
    """
    if isinstance(rng, Seeds):
        return rng.streams(shape, common=common)
    if rng is None or not (common or (shape and each)):
        return rng, None
    members = int(np.prod(shape))
    first, *others = _children(rng, 1 + members * bool(shape and each))
    shared: Any = Streams(_children(first, members)) if shape else first
    return (Streams(others) if others else rng), (shared if common else None)


def _children(rng: np.random.Generator, count: int) -> list[np.random.Generator]:
    try:
        return rng.spawn(count)
    except TypeError as error:
        raise ValueError(
            "Replicas and common noise draw from rng.spawn(...), and this rng has no seed to spawn "
            f"from: {error} Give rng as a seed, or as numpy.random.default_rng(seed)."
        ) from error


# Kept in a checkpoint ----------------------------------------------------------------------------


def random_state(rng: Any) -> np.ndarray:
    """The states of a Generator, of `Streams`, or of None, in 64-bit words (R, words)."""
    states = [list(_words(g.bit_generator.state)) for g in _generators(rng)]
    words = len(states[0]) if states else 0
    return np.array(states, dtype=np.uint64).reshape(len(states), words)


def restore_random(rng: Any, words: np.ndarray) -> None:
    """Give a Generator, or each of `Streams`, the state that `random_state` returned.

    Raises
    ------
    CheckpointError
        If it is that of other generators.
    """
    generators = _generators(rng)
    if len(words) != len(generators):
        raise CheckpointError(
            f"This checkpoint has {len(words)} states of generators, and the run needs "
            f"{len(generators)}. Remove the file, or choose another name."
        )
    for generator, row in zip(generators, words, strict=True):
        numbers = iter(row.tolist())
        generator.bit_generator.state = _with_words(generator.bit_generator.state, numbers)


def _generators(rng: Any) -> tuple[np.random.Generator, ...]:
    if rng is None:
        return ()
    return rng.generators if isinstance(rng, Streams) else (rng,)


def _words(state: Any) -> Iterator[int]:
    """The numbers of a state, nested dicts of numbers, arrays and names, in words."""
    if isinstance(state, dict):
        for part in state.values():
            yield from _words(part)
    elif isinstance(state, np.ndarray):
        yield from state.tolist()
    elif not isinstance(state, str):
        yield from divmod(int(state), RANDOM_WORD)


def _with_words(state: Any, words: Iterator[int]) -> Any:
    """A state of the same kind with these numbers."""
    if isinstance(state, dict):
        return {name: _with_words(part, words) for name, part in state.items()}
    if isinstance(state, np.ndarray):
        numbers = [next(words) for _ in range(state.size)]
        return np.array(numbers, dtype=state.dtype).reshape(state.shape)
    return state if isinstance(state, str) else next(words) * RANDOM_WORD + next(words)
