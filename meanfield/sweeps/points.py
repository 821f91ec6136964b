"""The points of a sweep, their random numbers, and the work to do at each of them."""

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

from ..core.checks import as_given, check_memory, is_variable_name, require
from ..core.identity import digest
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.progress import Interruption
from .outcomes import REPLICA, Outcome, to_bytes

NUMBERS_PER_POINT = 256  # memory of the record of a point, in numbers
VALUES_PER_CHECK = 4096  # of an iterator, whose length is unknown
RNG = "rng"  # the argument of a function that takes a generator

UNREADABLE = "must be values with a digest"


class SweepPoint(NamedTuple):
    """One run of a sweep.

    Attributes
    ----------
    key : str
        SHA-256, in hexadecimal, of its parameters and its replica. It identifies the point in a
        store and determines its random numbers.
    parameters : dict
        Its values, by name.
    replica : int or None
        None without replicas; the random numbers are then those of replica 0.
    """

    key: str
    parameters: dict[str, Any]
    replica: int | None = None

    def label(self) -> str:
        """The parameters as text, for messages."""
        words = [f"{name} = {as_given(value, 60)}" for name, value in self.parameters.items()]
        return ", ".join([*words, *([] if self.replica is None else [f"replica {self.replica}"])])


def key_of(digests: Mapping[str, str], replica: int | None = None) -> str:
    """The key of a point, from the digests of its values in any order."""
    words = [f"{len(name)}:{name}{digests[name]}" for name in sorted(digests)]
    return hashlib.sha256("".join([*words, f"{replica or 0}"]).encode()).hexdigest()


@dataclass(frozen=True)
class Grid:
    """The grid of points: the product of the values of all parameters and the replicas.

    Attributes
    ----------
    axes : dict of str to list
        The values of every parameter.
    replicas : int or None
        None for one run per point and no axis of replicas.
    """

    axes: dict[str, list[Any]]
    replicas: int | None

    @classmethod
    def of(cls, parameters: Any, replicas: int | None, taken: Sequence[str] = ()) -> "Grid":
        """The grid of the arguments of `sweep`; parameters must not have names in `taken`.

        Raises
        ------
        TypeError, ValueError
            If the parameters are not a dictionary of sequences, or a sequence is empty or has
            repeated values.
        """
        expected = "a dictionary of the values of every parameter by its name"
        fits = isinstance(parameters, Mapping) and all(isinstance(name, str) for name in parameters)
        require("parameters", parameters, expected, fits, TypeError)
        require("parameters", parameters, f"{expected}, at least one", parameters)
        for name in parameters:
            free = is_variable_name(name) and name not in (*taken, *([REPLICA] if replicas else []))
            expected = "printable, without '/', and not that of another axis or variable"
            require("names of parameters", name, expected, free)
        return cls({name: _values(name, values) for name, values in parameters.items()}, replicas)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of values and, if there are any, of replicas."""
        copies = () if self.replicas is None else (self.replicas,)
        return (*map(len, self.axes.values()), *copies)

    def points(self, contents: Callable[[Any], Any]) -> list[SweepPoint]:
        """All points in order; the replica changes fastest, then the last parameter.

        Parameters
        ----------
        contents : callable
            The part of a value that identifies it: see `Work.contents`.
        """
        count = math.prod(self.shape)
        purpose = f"parameters and replicas: {count} points"
        check_memory(purpose, (NUMBERS_PER_POINT, count), "replicas")
        copies = [None] if self.replicas is None else range(self.replicas)
        digests = {n: _digests(n, map(contents, values)) for n, values in self.axes.items()}
        points = []
        for index in np.ndindex(*map(len, self.axes.values())):
            indices = dict(zip(self.axes, index, strict=True))
            point_digests = {name: digests[name][i] for name, i in indices.items()}
            values = {name: self.axes[name][i] for name, i in indices.items()}
            points += [SweepPoint(key_of(point_digests, copy), values, copy) for copy in copies]
        return points


def _values(name: str, values: Any) -> list[Any]:
    """The values of a parameter, NumPy scalars as Python numbers."""
    if hasattr(values, "__array__"):  # of numpy, xarray, pandas
        values = np.asarray(values)
    fits = hasattr(values, "__iter__") and not isinstance(values, str | bytes | Mapping | Set)
    fits = fits and getattr(values, "ndim", 1) == 1
    require(f"parameters of {name}", values, "a sequence of values", fits, TypeError)
    try:
        count = len(values) if hasattr(values, "__len__") else 0
    except OverflowError:  # of a range
        count = sys.maxsize
    _check_count(name, count)
    entries: list[Any] = []
    for value in values:
        entries.append(value.item() if isinstance(value, np.generic) else value)
        if len(entries) % VALUES_PER_CHECK == 0:  # an iterator may have no end
            _check_count(name, len(entries))
    require(f"parameters of {name}", values, "at least one value", entries)
    numbers = [value for value in entries if isinstance(value, Number)]
    try:
        [(repr(number), hash(number)) for number in numbers]
    except (TypeError, ValueError) as error:  # signalling nan; an integer too long to print
        raise TypeError(f"parameters of {name} {UNREADABLE}: {error}.") from None
    expected = "values that differ: replicas= repeats points, with other random numbers"
    require(f"parameters of {name}", values, expected, len(set(numbers)) == len(numbers))
    return entries


def _check_count(name: str, count: int) -> None:
    """Raise ValueError for more values of a parameter than memory can hold points."""
    purpose = f"parameters of {name}: {count} values"
    check_memory(purpose, (NUMBERS_PER_POINT, count), "their number")


def _digests(name: str, values: Iterable[Any]) -> list[str]:
    """The digests of the values of a parameter, which must differ from each other.

    Raises
    ------
    TypeError, ValueError
        If a value has no digest, or occurs twice.
    """
    try:
        digests = list(map(digest, values))
    except (TypeError, ValueError) as error:
        raise TypeError(f"parameters of {name} {UNREADABLE}: {error}.") from None
    expected = "values that differ; replicas= repeats points, with other random numbers"
    require(f"parameters of {name}", "one that occurs twice", expected,
            len(set(digests)) == len(digests))  # fmt: skip
    return digests


def seed_of(seed: int, point: SweepPoint) -> np.random.SeedSequence:
    """The seed of a point."""
    return np.random.SeedSequence(seed, spawn_key=(int(point.key, 16),))


class Work(ABC):
    """The computation to do at points, in this or another process; it can be pickled.

    Attributes
    ----------
    supplied : str
        Name of the objects of the user that must be picklable, for messages.
    takes_rng : bool
        Whether it draws random numbers when passed a seed.
    needs_rng : bool
        Whether it requires a seed.
    """

    supplied: ClassVar[str] = "f"
    takes_rng: Any = False
    needs_rng: Any = False

    def check(self, point: SweepPoint) -> None:
        """Raise TypeError or ValueError for unknown parameters; by default never."""
        return

    @abstractmethod
    def values(self, points: Sequence[SweepPoint], seed: int | None) -> list[Any]:
        """The results at the points of one batch."""

    def contents(self, value: Any) -> Any:
        """The part of a parameter value that identifies a point."""
        return value

    def cost(self, point: SweepPoint) -> float:
        """The relative duration of a point, for the progress bar."""
        return 1.0

    def batches(
        self, points: list[SweepPoint], size: int | None, seed: int | None, workers: int
    ) -> list[list[SweepPoint]]:
        """The points in batches that are run at once; by default one point each.

        Parameters
        ----------
        size : int or None
            The greatest size of a batch; None leaves the choice to this method.
        seed : int or None
            The seed of the sweep.
        workers : int
            Number of batches that can run at the same time.
        """
        expected = "1: only runs of a configuration are done in batches"
        require("batch", size, expected, size in (None, 1))
        return [[point] for point in points]


@dataclass(frozen=True)
class Function(Work):
    """A function of the parameters, and of a generator if it has an argument `rng`."""

    f: Callable[..., Any]

    @cached_property
    def _signature(self) -> inspect.Signature | None:
        """Signature of f; None for functions of C that have none."""
        try:
            return inspect.signature(self.f)
        except ValueError:  # a function of C, which does not say
            return None

    @property
    def takes_rng(self) -> bool:
        return self._signature is not None and RNG in self._signature.parameters

    @property
    def needs_rng(self) -> bool:
        digests = {} if self._signature is None else self._signature.parameters
        return RNG in digests and digests[RNG].default is inspect.Parameter.empty

    def check(self, point: SweepPoint) -> None:
        """Raise TypeError unless f takes the parameters of the point, and rng if it takes one."""
        if self._signature is None:
            return
        supplied = dict.fromkeys([*point.parameters, *([RNG] if self.takes_rng else [])])
        try:
            self._signature.bind(**supplied)
        except TypeError as error:
            raise TypeError(
                f"f must be a function of {', '.join(supplied)}; got f{self._signature}: {error}."
            ) from None

    def values(self, points: Sequence[SweepPoint], seed: int | None) -> list[Any]:
        """Results of f at the points, one by one, each with a copy of its parameters."""
        results = []
        for point in points:
            supplied = {}
            for name, value in point.parameters.items():
                try:
                    supplied[name] = copy.deepcopy(value)  # f may modify it, as in another process
                except Exception:  # what cannot be copied cannot be sent to processes either
                    supplied[name] = value
            if seed is not None and self.takes_rng:
                supplied = {RNG: np.random.default_rng(seed_of(seed, point))} | supplied
            results.append(self.f(**supplied))
        return results

    def __getstate__(self) -> dict[str, Any]:
        return {"f": self.f}


@dataclass(frozen=True, repr=False)
class Job:
    """The work at the points of a batch, called with the number of the batch."""

    __name__ = "points"  # shown by dask, instead of a repr that may be long
    work: Work
    points: list[SweepPoint]
    seed: int | None
    second: bool = False  # whether this is a second attempt

    def __call__(self, _number: int) -> bytes:
        """The outcomes as bytes, see `outcomes.to_bytes`.

        BLAS uses one thread, since its last bits depend on their number. If one of several points
        fails, each is run alone.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C, since a run may have ended early without the function noticing.
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

    def _outcomes(self, points: Sequence[SweepPoint]) -> list[Outcome]:
        """Outcomes at the points; any error of f is that of all."""
        try:
            return list(map(Outcome.of, self.work.values(points, self.seed)))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the function may raise anything
            return [Outcome.failed(error)] * len(points)
