"""Sums over tokens by the harmonics of their measure: degrees, faint tokens, energies."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from ..core.dual import Dual, contiguous
from ..lowlevel.compilation import njit
from ..models import ZonalDrift
from ..models.changes import multiplier_changes
from ..models.zonal import kernel_degree
from ..spaces.chart import Multipliers
from ..spaces.contract import dimension_of_harmonics
from .contract import ThreadPool, ZonalEngine
from .direct import DirectSums

HARMONIC_ROUNDING = 4e-15  # error of sums over harmonics, relative to the maximum of the kernel
FINEST_ACCURACY = 1e-14  # highest accuracy that is asked of transforms
PART_SIZE = 131072  # tokens of a part, a multiple of the block sizes of all engines


@njit(cache=True, nogil=True)
def parts_of(x: np.ndarray) -> int:
    """The number of parts of a system x (R, n, d); sums over parts are added in a fixed order."""
    return -(-x.shape[1] // PART_SIZE)


class PointTransforms(ABC):
    """Coefficients up to a degree of measures on scattered points, and values of series there.

    Parameters
    ----------
    degree : int
    accuracy : float
        Accuracy of the transforms of ducc0, relative to the norm of their input.
    threads : ThreadPool
        Threads that share parts of 131072 tokens of all systems; results do not depend on them.
    """

    def __init__(self, degree: int, accuracy: float, threads: ThreadPool) -> None:
        self.degree, self.accuracy, self.threads = degree, accuracy, threads

    def each_part(self, x: np.ndarray, work: Callable[[int, int, slice], None]) -> None:
        """Call work(system, part, tokens) for every part of every system of x (R, n, ...)."""
        parts = parts_of(x)

        def work_on_tasks(first: int, last: int) -> None:
            for task in range(first, last):
                r, part = divmod(task, parts)
                work(r, part, slice(part * PART_SIZE, (part + 1) * PART_SIZE))

        self.threads.share(work_on_tasks, len(x) * parts)

    @abstractmethod
    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Coordinates of points (R, n, d) for the transforms.

        The next call may overwrite the array that is returned.
        """

    @abstractmethod
    def moments(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Coefficients of the measures, (R, modes), in the normalisation of densities."""

    @abstractmethod
    def values(self, coordinates: np.ndarray, series: np.ndarray) -> np.ndarray:
        """Values (R, r, n) at the points of series (R, r, modes).

        The series have the normalisation of densities.
        """


class HarmonicEngine(ZonalEngine):
    """Velocities by the harmonics of the tokens' measure, in O(n) operations.

    Parameters
    ----------
    drift : ZonalDrift
        Its harmonics have to decay.
    tolerance : float
        Accuracy of each velocity, relative to the largest that a unit mass exerts on any token.
    threads : int
        Results are the same, bit for bit, for every number of threads. They share out parts of
        131072 tokens, and systems.

    Raises
    ------
    MeanfieldError
        If the harmonics of the drift do not decay.

    Notes
    -----
    Where Z is not 1, velocities are divided by the denominator sum_j m_j Z(t_ij); its rounding
    error is relative to its maximum over all measures. Velocities with a denominator too small for
    the tolerance are computed again, from all pairs with the token. Under SA little mass has a
    small denominator, so such tokens are few unless tokens repel (beta < 0) or have very different
    masses. If all tokens are such, the cost is twice that of `DirectSums`.
    """

    takes_velocities = True
    _along: DirectSums  # engine of tangents where a denominator is too low for the accuracy
    _changes: list[list[Multipliers]]  # changes of multipliers for each member and tangent

    dimension: ClassVar[int]
    transforms_of: ClassVar[type[PointTransforms]]
    transform: ClassVar[tuple[float, float, float]]  # microseconds: fixed, a token, degree^2

    def __init__(self, drift: ZonalDrift, tolerance: float = 1e-10, threads: int = 1) -> None:
        """Choose the degree of W and Z, and the least denominator that meets `tolerance`."""
        super().__init__(drift, threads)
        self.tolerance = tolerance
        d = self.dimension
        kernel_degree(drift, 2)  # refuses rough potentials seconds earlier than for d = 3
        self.degree = kernel_degree(drift, d)
        self.normaliser = drift.normaliser(self.degree, d)
        if self.normaliser is None:
            self.degree = kernel_degree(drift, d, tolerance / 30)
        else:
            harmonics = [dimension_of_harmonics(l, d) for l in range(self.degree + 1)]
            self._pairs = DirectSums(drift, threads)
            self._lowest = HARMONIC_ROUNDING / tolerance * (np.abs(self.normaliser) @ harmonics)
        self.attraction = drift.attraction(self.degree, d)
        self.accuracy = FINEST_ACCURACY if self.normalised else max(tolerance / 30, FINEST_ACCURACY)
        self.scattered = self.transforms_of(self.degree, self.accuracy, self.threads)

    def of_members(self, members: np.ndarray) -> Self:
        if not self.drift.shape:
            return self
        return type(self)(self.drift.member(members), self.tolerance, self.threads.threads)

    def undivided(self) -> Self:
        """The engine of the numerators alone, as if Z were 1, in the same harmonics."""
        numerators = copy(self)
        numerators.normaliser = None
        return numerators

    def denominators(self, coordinates: np.ndarray, modes: np.ndarray) -> np.ndarray:
        """The denominators Z * mu at the tokens, (R, n)."""
        series: Any = self.normaliser[..., self.degrees] * modes
        return self.scattered.values(coordinates, series[:, None])[:, 0]

    @property
    @abstractmethod
    def degrees(self) -> np.ndarray:
        """The degree of each mode, (modes,)."""

    @property
    def normalised(self) -> bool:
        """True unless Z = 1."""
        return self.normaliser is not None

    def multipliers_of(self, r: int) -> Multipliers:
        """Multipliers of W and of Z of system r."""
        pair = self.attraction, self.normaliser
        attraction, normaliser = (m[r] if m is not None and m.ndim > 1 else m for m in pair)
        return attraction, normaliser

    def lowest_of(self, r: int) -> float:
        """The least denominator of system r for which velocities are accurate to the tolerance."""
        return float(np.ravel(self._lowest)[r % np.size(self._lowest)]) if self.normalised else 0.0

    @property
    def transforms(self) -> int:
        """The number of transforms that velocities take."""
        return 2 if self.normaliser is None else 3

    def cost(self, n: int) -> float:
        """About the microseconds that velocities of n tokens take, see `contract`."""
        fixed_cost, token_cost, degree_cost = self.transform
        return self.transforms * (fixed_cost + token_cost * n + degree_cost * self.degree**2)

    @abstractmethod
    def fields(
        self, x: np.ndarray, coordinates: np.ndarray, modes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Velocities (R, n, d) that the modes exert, and denominators (R, n) unless Z = 1."""

    @abstractmethod
    def fields_along(
        self, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray,
        multipliers: Multipliers, changes: list[Multipliers],
        computed: np.ndarray | None, modes: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        """Velocities (n, d) of one system, their changes (p, n, d), and the least denominator.

        Parameters
        ----------
        x, masses : ndarray, (n, d) and (n,)
        dx, dm : ndarray, (p, n, d) and (p, n)
            Changes of tokens and masses.
        multipliers, changes
            Multipliers of W and Z, and their changes along each tangent.
        computed, modes : ndarray or None
            Velocities (n, d), and modes of the measure, if they were computed before.
        """

    def with_tangents(self, names: Sequence[str | None]) -> Self:
        """Copy with changes of the multipliers (W_l, Z_l) of each member by the parameters."""
        copied, zeros = copy(self), np.zeros(self.degree + 1)
        copied._along = DirectSums(self.drift, self.threads.threads).with_tangents(names)
        copied._changes = []
        for member in copied._along.members:
            rows = [
                (zeros, zeros)
                if name is None
                else multiplier_changes(member, name, self.degree, self.dimension)
                for name in names
            ]
            copied._changes.append([(row[0], row[-1] if self.normalised else None) for row in rows])
        return copied

    def _velocity_along(self, x: Dual, masses: Any, *computed: Any) -> Any:
        """Velocities with changes, (R, n, d); by pairs in systems with Z * mu below `lowest_of`."""
        x, masses = contiguous(x), contiguous(masses)
        v, dv = np.empty(x.shape), np.empty(x.changes.shape)
        for r in range(len(x)):
            system = x.value[r], masses.value[r], x.changes[:, r], masses.changes[:, r]
            changes = self._changes[r % len(self._changes)]
            computed_rows = (None if rows is None else rows[r] for rows in computed or (None, None))
            v[r], dv[:, r], denominator = self.fields_along(
                *system, self.multipliers_of(r), changes, *computed_rows
            )
            if denominator < self.lowest_of(r):
                member = self._along.of_members(np.array([r]) % len(self._changes))
                by_pairs: Any = member.velocity(x[r : r + 1], masses[r : r + 1])
                v[r], dv[:, r] = by_pairs.value[0], by_pairs.changes[:, 0]
        return Dual(v, dv)

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        if isinstance(x, Dual):
            return self._along.attention(t, x, masses)
        return super().attention(t, x, masses)

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        if isinstance(x, Dual):
            return self._along.potential(x, masses, t)
        return super().potential(x, masses, t)

    @abstractmethod
    def powers(self, modes: np.ndarray) -> np.ndarray:
        """sum_m |a_lm|^2 of the measures' coefficients, (R, degree + 1)."""

    def velocity(self, x: np.ndarray, masses: np.ndarray, *computed: Any) -> np.ndarray:
        """Velocities (R, n, d); of `Dual` tokens with their changes along tangents.

        `computed` are values of the velocities of an earlier call, and its array `intermediate`. A
        field is a quotient of series: tokens move in it, modes of the measure change by
        sum_j dm_j conj Y(x_j) + m_j <dx_j, grad conj Y(x_j)>, and multipliers with parameters.
        """
        if isinstance(x, Dual):
            return self._velocity_along(x, masses, *computed)
        coordinates = self.scattered.coordinates(x)
        self.intermediate = modes = self.scattered.moments(coordinates, masses)
        velocity, denominators = self.fields(x, coordinates, modes)
        if denominators is not None:
            lowest = np.broadcast_to(self._lowest, len(x))
            for r in np.flatnonzero(denominators.min(axis=1) < lowest):
                tokens = np.flatnonzero(denominators[r] < lowest[r])
                velocity[r, tokens] = self._pairs.single_velocities(x[r], masses[r], int(r), tokens)
        return velocity

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Energies (1/2) sum_l W_l sum_m |a_lm|^2, (R,); infinite where W_0 is."""
        weights = self.drift.interaction(self.degree, self.dimension)
        weights = np.broadcast_to(weights, (len(x), self.degree + 1))
        finite = np.isfinite(weights[:, 0])
        modes = self.scattered.moments(self.scattered.coordinates(x), masses)
        powers = np.where(finite[:, None], self.powers(modes), 0.0)
        energies = 0.5 * np.einsum("rl,rl->r", np.where(finite[:, None], weights, 0.0), powers)
        return np.where(finite, energies, weights[:, 0])
