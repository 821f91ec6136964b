"""The points of a sweep, their random numbers, and the work that is done at each of them."""

import copy
import hashlib
import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.checks import as_given, check_memory, fitting, is_variable_name
from ..core.identity import digest
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.progress import Interruption
from .outcomes import REPLICA, Outcome, to_bytes

NUMBERS = 256  # that take as much memory as what is known of a point
LOOK = 4096  # values between two looks at how many there are
RNG = "rng"  # the argument of a function that takes a generator

TOLD = "must be values that can be told from others"


class Point(NamedTuple):
    """One run of a sweep.

    Attributes
    ----------
    key : str
        SHA-256, in hexadecimal, of its parameters and its replica: what a store knows it by, and
        what its random numbers depend on.
    parameters : dict
        Its values, by name.
    replica : int or None
        None where there are no replicas; its numbers are then those of replica 0.
    """

    key: str
    parameters: dict[str, Any]
    replica: int | None = None

    def in_words(self) -> str:
        """Its parameters, for messages."""
        words = [f"{name} = {as_given(value, 60)}" for name, value in self.parameters.items()]
        return ", ".join([*words, *([] if self.replica is None else [f"replica {self.replica}"])])


def key_of(digests: Mapping[str, str], replica: int | None = None) -> str:
    """The key of a point from the digests of its values, in whichever order they come."""
    words = [f"{len(name)}:{name}{digests[name]}" for name in sorted(digests)]
    return hashlib.sha256("".join([*words, f"{replica or 0}"]).encode()).hexdigest()


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
    def of(cls, parameters: Any, replicas: int | None, taken: Sequence[str] = ()) -> "Grid":
        """From the arguments of `sweep`; names that are taken are refused for parameters.

        Raises
        ------
        TypeError, ValueError
            If the parameters are no dictionary of sequences, or one of them is empty, or has the
            same value twice.
        """
        wanted = "a dictionary of the values of every parameter by its name"
        fits = isinstance(parameters, Mapping) and all(isinstance(name, str) for name in parameters)
        fitting("parameters", parameters, wanted, fits, TypeError)
        fitting("parameters", parameters, f"{wanted}, at least one", parameters)
        for name in parameters:
            free = is_variable_name(name) and name not in (*taken, *([REPLICA] if replicas else []))
            wanted = "printable, without '/', and not that of another axis or variable"
            fitting("names of parameters", name, wanted, free)
        return cls({name: _listed(name, values) for name, values in parameters.items()}, replicas)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of values, and of replicas if there are any."""
        copies = () if self.replicas is None else (self.replicas,)
        return (*map(len, self.axes.values()), *copies)

    def points(self, contents: Callable[[Any], Any]) -> list[Point]:
        """In order: the last parameter, and then the replica, changes fastest.

        Parameters
        ----------
        contents : callable
            What counts of a value: see `Work.contents`.
        """
        count = math.prod(self.shape)
        check_memory(f"parameters and replicas: {count} points", (NUMBERS, count), "replicas")
        copies = [None] if self.replicas is None else range(self.replicas)
        known = {n: _digests(n, map(contents, values)) for n, values in self.axes.items()}
        found = []
        for places in np.ndindex(*map(len, self.axes.values())):
            said = {n: known[n][i] for n, i in zip(self.axes, places, strict=True)}
            named = {n: self.axes[n][i] for n, i in zip(self.axes, places, strict=True)}
            found += [Point(key_of(said, replica), named, replica) for replica in copies]
        return found


def _listed(name: str, values: Any) -> list[Any]:
    """The values of a parameter: numbers as those of Python."""
    if hasattr(values, "__array__"):  # of numpy, xarray, pandas
        values = np.asarray(values)
    whole = hasattr(values, "__iter__") and not isinstance(values, str | bytes | Mapping | Set)
    whole = whole and getattr(values, "ndim", 1) == 1
    fitting(f"parameters of {name}", values, "a sequence of values", whole, TypeError)
    try:
        count = len(values) if hasattr(values, "__len__") else 0
    except OverflowError:  # of a range
        count = sys.maxsize
    _check_count(name, count)
    found: list[Any] = []
    for value in values:
        found.append(value.item() if isinstance(value, np.generic) else value)
        if len(found) % LOOK == 0:  # an iterator may have no end
            _check_count(name, len(found))
    fitting(f"parameters of {name}", values, "at least one value", found)
    numbers = [value for value in found if isinstance(value, Number)]
    for number in numbers:
        try:
            repr(number), hash(number)
        except (TypeError, ValueError) as error:  # a signalling nan; an integer too long to print
            raise TypeError(f"parameters of {name} {TOLD}: {error}.") from None
    wanted = "values that differ: replicas= repeats points, with other random numbers"
    fitting(f"parameters of {name}", values, wanted, len(set(numbers)) == len(numbers))
    return found


def _check_count(name: str, count: int) -> None:
    """Raise ValueError for more values of a parameter than memory can hold points."""
    check_memory(f"parameters of {name}: {count} values", (NUMBERS, count), "their number")


def _digests(name: str, values: Iterable[Any]) -> list[str]:
    """Those of the values of a parameter, which have to differ from each other.

    Raises
    ------
    TypeError, ValueError
        If a value cannot be told from others, or is there twice.
    """
    try:
        found = list(map(digest, values))
    except (TypeError, ValueError) as error:
        raise TypeError(f"parameters of {name} {TOLD}: {error}.") from None
    if len(set(found)) < len(found):
        raise ValueError(
            f"parameters of {name} must be values that differ; one is there twice. replicas= "
            "repeats points, with other random numbers."
        )
    return found


def generator_of(seed: int, point: Point) -> np.random.Generator:
    """The random numbers of a point: they depend on the seed, its parameters and its replica."""
    return np.random.default_rng(seed_of(seed, point))


def seed_of(seed: int, point: Point) -> np.random.SeedSequence:
    """The seed of a point."""
    return np.random.SeedSequence(seed, spawn_key=(int(point.key, 16),))


class Work(ABC):
    """What is done at points, in this process or another: it can be pickled.

    Attributes
    ----------
    given : str
        What a user gives that may be no such thing.
    """

    given: ClassVar[str] = "f"

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

    def contents(self, value: Any) -> Any:
        """What counts of a value of a parameter: points whose values have the same are the same."""
        return value

    def cost(self, point: Point) -> float:
        """How long a point takes, relative to others, for the progress bar."""
        return 1.0

    def batches(
        self, points: list[Point], size: int | None, seed: int | None, workers: int
    ) -> list[list[Point]]:
        """All points, in groups that are run at once; by default each alone.

        Parameters
        ----------
        size : int or None
            The largest of a group; None leaves it open.
        seed : int or None
            Of the sweep.
        workers : int
            How many groups can be run at the same time.
        """
        alone = "1: only runs of a configuration are done in batches"
        fitting("batch", size, alone, size in (None, 1))
        return [[point] for point in points]


def _own(value: Any) -> Any:
    """A copy, so that f may change it: other processes have copies too."""
    try:
        return copy.deepcopy(value)
    except Exception:  # of what cannot be copied: other processes cannot have it
        return value


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
        found = []
        for point in points:
            given = {name: _own(value) for name, value in point.parameters.items()}
            if seed is not None and self.takes_rng:
                given = {RNG: generator_of(seed, point)} | given
            found.append(self.f(**given))
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"f": self.f}


@dataclass(frozen=True, repr=False)
class Job:
    """The work at the points of a batch, called with the number of the batch."""

    __name__ = "points"  # what dask calls it: the default is its repr, which may be long
    work: Work
    points: list[Point]
    seed: int | None
    second: bool = False  # whether it was tried before

    def __call__(self, _number: int) -> bytes:
        """What came of it, as `outcomes.to_bytes` has it.

        BLAS has one thread, as its last bits depend on their number. Where one of several points
        fails, each is run alone.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C, since a run may have ended early, and its function not have noticed.
        """
        with Interruption() as interruption, one_blas_thread():
            outcomes = self._outcomes(self.points)
            if len(self.points) > 1 and any(outcome.error for outcome in outcomes):
                outcomes = []
                for point in self.points:
                    if not interruption.requested:
                        outcomes += self._outcomes([point])
        if interruption.requested:
            raise KeyboardInterrupt
        return to_bytes([point.key for point in self.points], outcomes)

    def again(self) -> "Job":
        """The same for a second time."""
        return Job(self.work, self.points, self.seed, second=True)

    def parts(self) -> list["Job"]:
        """The same, each point alone."""
        return [Job(self.work, [point], self.seed) for point in self.points]

    def failed(self, error: BaseException) -> bytes:
        """The same, where an error came of it."""
        outcomes = [Outcome.failed(error)] * len(self.points)
        return to_bytes([point.key for point in self.points], outcomes)

    def _outcomes(self, points: Sequence[Point]) -> list[Outcome]:
        try:
            return list(map(Outcome.of, self.work.values(points, self.seed)))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever the function does
            return [Outcome.failed(error)] * len(points)
