"""The points of a sweep, their random numbers, and the work that is done at each of them."""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import as_given, check_memory, fitting
from ..lowlevel.blas import one_blas_thread
from ..solving.progress import Interruption
from .outcomes import Outcome, to_bytes

NUMBERS = 256  # that take as much memory as what is known of a point
RNG = "rng"  # the argument of a function that takes a generator


class Point(NamedTuple):
    """One run of a sweep.

    Attributes
    ----------
    place : tuple of int
        Which of the values of every parameter it has, and which replica it is.
    parameters : dict
        Its values, by name.
    """

    place: tuple[int, ...]
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """All points: the product of the values of the parameters, and replicas.

    Attributes
    ----------
    axes : dict of str to list
        The values of every parameter.
    replicas : int or None
        None for one run of each point, and no axis of replicas.
    """

    axes: dict[str, list[Any]]
    replicas: int | None

    @classmethod
    def of(cls, parameters: Any, replicas: int | None) -> "Grid":
        """From the arguments of `sweep`.

        Raises
        ------
        TypeError, ValueError
            If the parameters are no dictionary of sequences, or one of them is empty.
        """
        wanted = "a dictionary of the values of every parameter by its name"
        fits = isinstance(parameters, Mapping) and all(isinstance(name, str) for name in parameters)
        fitting("parameters", parameters, wanted, fits, TypeError)
        fitting("parameters", parameters, f"{wanted}, at least one", parameters)
        return cls({name: _listed(name, values) for name, values in parameters.items()}, replicas)

    def points(self) -> list[Point]:
        """In order: the last parameter, and then the replica, changes fastest."""
        copies = range(self.replicas or 1)
        count = math.prod(map(len, self.axes.values())) * len(copies)
        check_memory(f"parameters and replicas: {count} points", (NUMBERS, count), "replicas")
        values = product(*map(enumerate, self.axes.values()))
        found = []
        for chosen in values:
            where, given = zip(*chosen, strict=True)
            named = dict(zip(self.axes, given, strict=True))
            found += [Point((*where, replica), named) for replica in copies]
        return found

    def in_words(self, point: Point) -> str:
        """The parameters of a point, for messages."""
        words = [f"{name} = {as_given(value, 60)}" for name, value in point.parameters.items()]
        return ", ".join([*words, *([f"replica {point.place[-1]}"] if self.replicas else [])])


def _listed(name: str, values: Any) -> list[Any]:
    """The values of a parameter: numbers as those of Python."""
    whole = hasattr(values, "__iter__") and not isinstance(values, str | bytes | Mapping)
    whole = whole and getattr(values, "ndim", 1) == 1
    fitting(f"parameters of {name}", values, "a sequence of values", whole, TypeError)
    found = [v.item() if isinstance(v, np.generic) else v for v in values]
    return fitting(f"parameters of {name}", values, "at least one value", found)


def generator_of(seed: int, point: Point) -> np.random.Generator:
    """The random numbers of a point: they depend on the seed and its place only.

    Sweeps over fewer values, if the first ones are kept, or of fewer replicas have the same.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=point.place))


class Work(ABC):
    """What is done at points, in this process or another: it can be pickled."""

    @property
    @abstractmethod
    def takes_rng(self) -> bool:
        """Whether it draws random numbers, if it is given a generator."""

    @property
    def needs_rng(self) -> bool:
        """Whether it cannot do without."""
        return False

    @abstractmethod
    def check(self, point: Point) -> None:
        """Raise TypeError or ValueError if there is no such parameter."""

    @abstractmethod
    def values(self, points: Sequence[Point], seed: int | None) -> list[Any]:
        """What it gives at some points, that `batches` put together."""

    def batches(self, points: list[Point], size: int, seed: int | None) -> list[list[Point]]:
        """All points, in groups that are run at once; by default each alone."""
        fitting("batch", size, "1: only runs of a configuration are done in batches", size == 1)
        return [[point] for point in points]


@dataclass(frozen=True)
class Function(Work):
    """A function of the parameters, and of a generator `rng` if it has that argument."""

    f: Callable

    @cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.f)
        except ValueError:  # a function of C, which does not say
            return None

    @property
    def takes_rng(self) -> bool:
        return self._signature is not None and RNG in self._signature.parameters

    @property
    def needs_rng(self) -> bool:
        known = {} if self._signature is None else self._signature.parameters
        return RNG in known and known[RNG].default is inspect.Parameter.empty

    def check(self, point: Point) -> None:
        if self._signature is None:
            return
        given = dict.fromkeys([*point.parameters, *([RNG] if self.takes_rng else [])])
        try:
            self._signature.bind(**given)
        except TypeError as error:
            raise TypeError(
                f"f must be a function of {', '.join(given)}; got f{self._signature}: {error}."
            ) from None

    def values(self, points: Sequence[Point], seed: int | None) -> list[Any]:
        if seed is None or not self.takes_rng:
            return [self.f(**point.parameters) for point in points]
        return [self.f(**{RNG: generator_of(seed, point)} | point.parameters) for point in points]

    def __getstate__(self) -> dict[str, Any]:
        return {"f": self.f}


@dataclass(frozen=True)
class Job:
    """The work at the points of a batch, called with the number of the batch."""

    work: Work
    points: list[Point]
    seed: int | None

    def __call__(self, number: int) -> bytes:
        """What came of it, as `outcomes.to_bytes` has it.

        BLAS has one thread, as its last bits depend on their number.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C, since a run may have ended early, and its function not have noticed.
        """
        with Interruption() as interruption, one_blas_thread():
            try:
                outcomes = list(map(Outcome.of, self.work.values(self.points, self.seed)))
            except Exception as error:  # whatever the function does
                outcomes = [Outcome.failed(error)] * len(self.points)
        if interruption.requested:
            raise KeyboardInterrupt
        return to_bytes(number, outcomes)
