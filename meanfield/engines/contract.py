"""The abstract type of engines, and the division of their work among threads.

The constants by which engines are chosen, in microseconds, were measured on one core with AVX-512
(AMD EPYC of 2025).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from ..core.annotations import Function, Values
from ..core.differences import derivative_at_zero
from ..core.dual import Dual, changes_of, value_of
from ..core.errors import MeanfieldError
from ..models import ZonalDrift

FEW_PAIRS = 10**6  # for at most this many pairs, other threads cost more than they save


class Engine(ABC):
    """Sums over the tokens of R independent systems of n tokens each, under one drift.

    A `tangential` engine has `velocity`, on the sphere; others have `attention` only.
    Arrays are C-contiguous, of float64.

    Attributes
    ----------
    name : str
        How the sums are computed: "direct", "circle", "sphere", "mean", ....
    tangential : bool
        True for the engines of zonal drifts.
    takes_any_members : bool
        True if one engine sums members of an ensemble with different parameters together.
    takes_velocities : bool
        True if velocities of an earlier call, and its array `intermediate`, make changes of
        velocities cheaper: they are further arguments of `velocity` then.
    """

    name: str
    tangential: bool = True
    takes_any_members: ClassVar[bool] = False
    takes_velocities: ClassVar[bool] = False
    drift: Any

    def __init__(self, drift: Any) -> None:
        self.drift = drift

    def of_members(self, members: np.ndarray) -> Self:
        """The engine of some of the systems, by their indices (R',); itself under one drift."""
        if not self.drift.shape:
            return self
        chosen = copy(self)
        chosen.drift = self.drift.member(members)
        return chosen

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities (R, n, d) of tokens x (R, n, d) with masses (R, n), >= 0, of sum 1."""
        raise NotImplementedError(f"{self.name} sums are no velocities; use attention.")

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The whole output of attention (R, n, d) at time t."""
        raise NotImplementedError(f"{self.name} sums are velocities, not all of the output.")

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The interaction energies (R,); nan for drifts that increase no energy."""
        return self.drift.interaction_energy(x, masses)

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        """The potentials (R, n) whose gradients are the velocities; MeanfieldError without."""
        return self.drift.interaction_potential(x, masses, t)

    def with_tangents(self, names: Sequence[str | None]) -> Any:
        """The engine whose methods take `Dual` tokens and masses, and return `Dual` sums.

        `names` has for each tangent the parameter of the drift that changes along it, or None.
        MeanfieldError where derivatives are not known.
        """
        raise MeanfieldError(f"Derivatives of {self.name} sums are not known. Leave tangents out.")


class ZonalEngine(Engine):
    """Velocities of interacting tokens under a zonal drift,

        v_i = P_i sum_j m_j W'(t_ij) x_j / sum_j m_j Z(t_ij),    t_ij = <x_i, x_j>

    Only the directions x_i / |x_i| count: between the stages of a Runge-Kutta step tokens may leave
    the sphere a little. Velocities are tangent at the directions.

    Parameters
    ----------
    drift : ZonalDrift
        Its parameters are numbers, or have shape (R,).
    threads : int
        The results are the same, bit for bit, for every number of threads.

    Attributes
    ----------
    intermediate : ndarray or None
        Intermediate results of the last velocities, for the computation of their tangents.
    """

    intermediate: np.ndarray | None = None

    def __init__(self, drift: ZonalDrift, threads: int = 1) -> None:
        super().__init__(drift)
        self.threads = ThreadPool(threads)

    @abstractmethod
    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """(1/2) sum_ij m_i m_j W(t_ij), (R,); W = exp(beta t) / beta for USA and SA.

        At beta = 0, as for Kuramoto, W = t. Infinite where exp(|beta|) overflows.
        """

    def with_tangents(self, names: Sequence[str | None]) -> Any:
        """Sums over all pairs: see `DirectSums`."""
        from .direct import DirectSums

        return DirectSums(self.drift, self.threads.threads).with_tangents(names)


def along_tangents(sums: Function, x: Values, masses: Values, name: str) -> Dual:
    """sums(x, masses) with changes: differences of order 10 along each tangent of the arguments.

    The arguments, of which one is a `Dual`, change together. Messages name the function `name`.
    """
    at, m = value_of(x), value_of(masses)
    count = len(x.changes if isinstance(x, Dual) else masses.changes)
    changes = []
    for dx, dm in zip(changes_of(x, count), changes_of(masses, count), strict=True):
        size = max(np.abs(dx).max(), np.abs(dm).max()) or 1.0

        def moved(h: float, dx: np.ndarray = dx / size, dm: np.ndarray = dm / size) -> np.ndarray:
            return sums(at + h * dx, m + h * dm)

        changes.append(size * derivative_at_zero(moved, name))
    return Dual(sums(at, m), np.array(changes))


class ThreadPool:
    """A pool of threads, each of which does a consecutive share of the tasks.

    Results do not depend on the number of threads, provided that tasks write to different memory.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def for_pairs(self, count: int) -> "ThreadPool":
        """This pool, or a single thread for so few pairs that others cost more than they save."""
        return self if count > FEW_PAIRS else SINGLE_THREAD

    def share(self, work: Callable[[int, int], object], count: int) -> None:
        """Call work(first, last) on consecutive shares of range(count), all at once.

        `work` has to release Python's lock to gain from it, as compiled code and BLAS do.
        """
        if self._pool is None or count < 2:
            work(0, count)
            return
        ends = [count * thread // self.threads for thread in range(self.threads + 1)]
        shares = [pair for pair in pairwise(ends) if pair[0] < pair[1]]
        for future in [self._pool.submit(work, *pair) for pair in shares]:
            future.result()


SINGLE_THREAD = ThreadPool(1)
