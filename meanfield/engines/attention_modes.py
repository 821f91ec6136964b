"""Attention on tokens of the circle and of S^2, by the harmonics of their measure.

With the weights k of a head, A = beta K^T Q and a quadratic form <x, scale x> that bounds the
logits, the integrals

    N(x) = int k(x, y) y dmu(y) e^-<x, scale x>,    D(x) = int k(x, y) dmu(y) e^-<x, scale x>

are functions of x with few harmonics, since k has few in x and in y. Their coefficients are the
coefficients of y mu and of mu times tables, see `engines.kernels.Expansion`. At each token the
output of the head is V N / D, or V N e^<x, scale x> where Z = 1.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import count
from typing import Any, Self

import numpy as np

from ..core.errors import MeanfieldError
from ..models import Attention
from ..spaces.circle import Circle
from ..spaces.sphere import Sphere
from .attention import AttentionSums, Head
from .circle import CircleModes
from .contract import ThreadPool
from .harmonics import FINEST_ACCURACY, HARMONIC_ROUNDING, PointTransforms
from .kernels import (
    FINEST_DEGREE,
    MOST_UNEVEN,
    Expansion,
    Kernels,
    kernels_of,
    of_points,
    potential_of_points,
    quadratic,
)
from .sphere import SphereModes

# By dimension: spaces on which kernels are expanded, and transforms of scattered points.
KERNEL_SPACES: dict[int, Any] = {2: Circle(64), 3: Sphere(FINEST_DEGREE)}
TRANSFORMS_BY_DIMENSION = {2: CircleModes.transforms_of, 3: SphereModes.transforms_of}
LOST_ROUNDINGS = 10.0  # error in units of HARMONIC_ROUNDING: products, rotations, transforms add up
HEAD_PAIR_COST = 2.5e-3  # microseconds of a pair of one head, see `contract`
HEAD_COST = {2: (150.0, 0.1), 3: (2800.0, 0.4)}  # microseconds of a head by modes: fixed, per token
TABLE_COST = {2: 8e3, 3: 3e5}  # microseconds to compute the tables of a head
TABLE_USES = 300  # velocities, at least, that are computed with the tables of constant parameters


class NoModes(MeanfieldError):
    """Raised for attention weights whose sums cannot be taken by harmonics."""


class AttentionModes(AttentionSums):
    """The attention A_i of `Attention` in O(n) operations, on the circle and on S^2.

    Parameters
    ----------
    drift : Attention
        Not causal.
    tolerance : float
        Accuracy of each output, relative to the largest that a unit mass exerts on any token.
    threads : int
        Results are the same, bit for bit, for every number of threads.
    strict : bool
        Whether weights that have too many harmonics are refused, rather than summed over pairs.

    Notes
    -----
    Tables resolve the weights to 1e-14 of the largest, whatever the tolerance. For normalised
    weights outputs are divided by D(x); where D is too low for the tolerance they are computed
    again from all pairs with the token, as by `HarmonicEngine`. Sinkhorn weights, weights that are
    not smooth, and weights that need more than 64 degrees on S^2 or lose digits are summed over all
    pairs.

    Tables are computed for each head and each member of an ensemble of betas or matrices: once if
    parameters are constant, else whenever they change.
    """

    name = "attention modes"

    def __init__(
        self, drift: Attention, tolerance: float = 1e-10, threads: int = 1, *, strict: bool = False
    ) -> None:
        """Engine of `drift`, without tables; if `strict`, raise NoModes where harmonics fail."""
        super().__init__(drift, threads)
        self.tolerance, self.strict = tolerance, strict
        self._kernels: dict[tuple[int, int], Kernels] = {}
        self._numbers: Any = None  # of the members, where they are some of an ensemble

    def of_members(self, members: np.ndarray) -> Self:
        chosen = copy(super().of_members(members))
        chosen._numbers = members if self._numbers is None else self._numbers[members]
        return chosen

    @staticmethod
    def pays(drift: Attention, n: int, d: int) -> bool:
        """True if modes are expected to be faster than all pairs of n tokens in R^d."""
        if d not in KERNEL_SPACES or drift.causal or drift.why_no_law:
            return False
        fixed_cost, token_cost = HEAD_COST[d]
        build = TABLE_COST[d] / (TABLE_USES if drift.constant else 1)
        return fixed_cost + token_cost * n + build < HEAD_PAIR_COST * n**2

    def kernels(self, head: int, member: int, d: int) -> Kernels:
        """Maker of the kernels of one head for one member; member = -1 if all members share it."""
        unnumbered = member < 0 or self._numbers is None
        number = member if unnumbered else int(self._numbers[member])
        if (head, number) not in self._kernels:
            space = KERNEL_SPACES[d]
            self._kernels[head, number] = kernels_of(space)
        return self._kernels[head, number]

    def _prepared(
        self, head: Head, number: int, matrix: Any, x: np.ndarray, at: np.ndarray
    ) -> Head:
        """`ModesHead` of a head, or the head itself if its logits have biases or positions."""
        if self.drift.why_no_law:
            obstacle = "biases" if self.drift.biased else "positions"
            self.refuse(f"heads with {obstacle} have none")
            return head
        identity = np.eye(x.shape[2])
        full = [matrix[name] if matrix[name].ndim else matrix[name] * identity for name in "QKV"]
        points = Scattered(x, at, self.threads)
        added: Any = {"matrices": tuple(full), "number": number, "points": points, "engine": self}
        return ModesHead(**_fields(head), **added)

    def refuse(self, reason: str) -> None:
        """Raise NoModes where sums over pairs are not allowed."""
        if self.strict:
            raise NoModes(
                f"Modes expect attention weights with few harmonics; {reason}. Use "
                "engines.Automatic() or engines.Direct()."
            )

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        """The potentials (R, n) whose gradients are the velocities; MeanfieldError without."""
        return _filled(
            self._potentials(x, masses, t),
            lambda: super(AttentionModes, self).potential(x, masses, t),
        )

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Interaction energies (R,), by harmonics where the potential has them, else by pairs."""
        rows = self._potentials(x, masses, 0.0) if self.drift.constant else [None] * len(x)
        energies = [
            None if row is None else 0.5 * (mass * row).sum()
            for mass, row in zip(masses, rows, strict=True)
        ]
        return _filled(energies, partial(super().energy, x, masses))

    def _potentials(self, x: np.ndarray, masses: np.ndarray, t: float) -> list[Any]:
        """Potentials (n,) of each system; None for systems that have to be summed by pairs."""
        d, replicas = x.shape[2], range(len(x))
        if self.drift.shape:
            expansions = [self._expanded(self.drift.member(r), r, d, t) for r in replicas]
        else:
            expansions = [self._expanded(self.drift, -1, d, t)] * len(x)
        points = Scattered(x, x, self.threads)
        return [
            expansion and expansion[0] * points.integrals(r, expansion[1], masses[r])[0, -1]
            for r, expansion in zip(replicas, expansions, strict=True)
        ]

    def _expanded(self, drift: Attention, number: int, d: int, t: float) -> Any:
        """Factor and expansion of the potential of a drift; None where it is summed over pairs."""
        gradient = drift.gradient_at(t, d) if drift.is_gradient(d, t) else None
        if gradient is None:
            return None
        c, A, beta = gradient
        kernels = self.kernels(-1, number, d)
        energy = potential_of_points(drift.weights, A, beta)
        key = "potential", A, beta
        expansion = kernels.remembered(key, kernels.expanded_function, A, energy)
        return None if expansion is None else (c, expansion)


def _filled(values: list[Any], by_pairs: Callable[[], np.ndarray]) -> np.ndarray:
    """Values of all systems, stacked: `values` by modes, and by_pairs() where these are None."""
    if all(value is not None for value in values):
        return np.stack(values)
    return np.stack([b if a is None else a for a, b in zip(values, by_pairs(), strict=True)])


def _fields(head: Head) -> dict[str, Any]:
    """Fields of a `Head` by name."""
    return {name: getattr(head, name) for name in Head.__dataclass_fields__}


@lru_cache(maxsize=32)
def space_of(d: int, degree: int) -> Any:
    """The circle (d = 2) or S^2 (d = 3) up to a degree, cached: the quadrature takes long."""
    return KERNEL_SPACES[d].with_degree(degree)


class Scattered:
    """Tokens x (R, n, d), and the points `at` (R', m, d) where integrals over them are wanted.

    Each system of tokens has as many systems of points, R' / R.
    """

    def __init__(self, x: np.ndarray, at: np.ndarray, threads: ThreadPool) -> None:
        self.x, self.at, self._threads = x, at, threads

    def systems(self, r: int) -> slice:
        """The systems of points that belong to a system of tokens."""
        count = len(self.at) // len(self.x)
        return slice(r * count, (r + 1) * count)

    def integrals(self, r: int, kernel: Expansion, masses: np.ndarray) -> np.ndarray:
        """Integrals int k(x, y) (y, 1) dmu(y) e^-<x, scale x>, (R' / R, d + 1, m), of system r.

        mu has the given masses (n,) at the tokens; x are the points `at` of the system.
        """
        outer, inner = kernel.degrees
        scattered, evaluated = self._transforms(inner + 1), self._transforms(outer)
        x, at = self.x[r : r + 1], self.at[self.systems(r)]
        coefficients = scattered.moments(scattered.coordinates(x), masses[None])
        space = space_of(x.shape[2], inner + 1)  # mu to inner + 1 gives y mu to degree `inner`
        values = space.to_values(coefficients)
        moments = np.concatenate([values * space.points.T, values])
        series = kernel.series(space.resample(space.to_coefficients(moments), inner))
        rows = np.broadcast_to(series, (len(at), *series.shape))
        return evaluated.values(evaluated.coordinates(at), rows)

    def _transforms(self, degree: int) -> PointTransforms:
        return TRANSFORMS_BY_DIMENSION[self.x.shape[2]](degree, FINEST_ACCURACY, self._threads)


@dataclass(frozen=True)
class ModesHead(Head):
    """A head whose sums over pairs are taken by harmonics where the weights have few of them.

    Attributes
    ----------
    matrices : three ndarrays
        Q, K and V, (k, d), or (R, k, d) where they differ between systems.
    number : int
        The number of the head.
    points : Scattered
    engine : AttentionModes
    form : ndarray, (d, d) or (R, d, d), or None
        The bias is beta <y, form y> up to a constant, where it is a quadratic form.
    steep : float
        The logits are steep * beta <Qx, Ky>, plus the bias.
    """

    matrices: tuple[np.ndarray, ...] = ()
    number: int = 0
    points: Any = None
    engine: Any = None
    form: np.ndarray | None = None
    steep: float = 1.0

    def by_distance(self) -> Head:
        K, head = self.matrices[1], super().by_distance()
        return replace(self, **_fields(head), form=-K.swapaxes(-1, -2) @ K, steep=2.0)

    def _of_system(self, r: int, matrix: np.ndarray) -> np.ndarray:
        """The matrix of one system."""
        return matrix[min(r, len(matrix) - 1)] if matrix.ndim == 3 else matrix

    def doubly_stochastic(self, tolerance: float, most_iterations: int) -> Head:
        self.engine.refuse("Sinkhorn's depend on the tokens")
        return super().doubly_stochastic(tolerance, most_iterations)

    def largest(self, ties: float) -> np.ndarray:
        self.engine.refuse("these jump")
        return super().largest(ties)

    def exponential(self, *, normalised: bool) -> np.ndarray:
        """Sums (R, m, k) with weights exp(logits), by harmonics, or over pairs."""

        def build(
            r: int, kernels: Kernels, beta: float
        ) -> tuple[Expansion | None, np.ndarray | None]:
            """Expansion for system r, or None; quadratic form left to the masses, or None."""
            Q, K, _ = (self._of_system(r, matrix) for matrix in self.matrices)
            A, form = self.steep * beta * K.T @ Q, None
            if self.form is not None:
                form = beta * self._of_system(r, self.form)
                expansion = kernels.remembered(("gaussian", A, form), kernels.expanded, A, form)
                if expansion is not None:
                    return expansion, expansion.rest
                if np.ptp(np.linalg.eigvalsh(form)) > MOST_UNEVEN:
                    return None, None
            return kernels.remembered(("exponential", A), kernels.expanded, A), form

        if self.bias is not None and self.form is None:
            return super().exponential(normalised=normalised)
        direct_sums = partial(Head.exponential, normalised=normalised)
        return self._by_modes(build, direct_sums, normalised=normalised)

    def weighted(self, kernel: Callable[..., Any], *, normalised: bool) -> np.ndarray:
        """Sums (R, m, k) with weights `kernel`, by harmonics, or over direct_sums."""

        def build(r: int, kernels: Kernels, beta: float) -> tuple[Expansion | None, None]:
            """Expansion of the kernel in harmonics for system r, without a form."""
            Q, K, _ = (self._of_system(r, matrix) for matrix in self.matrices)
            function = of_points(kernel, Q, K, beta)
            arguments = beta * K.T @ Q, function
            key = "weights", Q, K, beta
            return kernels.remembered(key, kernels.expanded_function, *arguments), None

        direct_sums = partial(Head.weighted, kernel=kernel, normalised=normalised)
        return self._by_modes(build, direct_sums, normalised=normalised)

    def _by_modes(
        self, build: Callable[..., Any], direct_sums: Callable[..., Any], *, normalised: bool
    ) -> np.ndarray:
        """Sums (R, m, k) by the expansion that `build` returns, or by `direct_sums`.

        build(r, kernels, beta) returns the expansion for system r, or None, and the quadratic form
        of a factor e^<y, form y> of mu, or None. direct_sums(head) returns sums over pairs.
        """
        betas = np.broadcast_to(self.beta.ravel(), len(self.masses))
        differ = self.beta.size > 1 or any(matrix.ndim > 2 for matrix in self.matrices)
        output = np.empty((*self.queries.shape[:2], self.values.shape[2]))
        for r, beta in enumerate(betas):
            member = r if differ else -1
            kernels = self.engine.kernels(self.number, member, self.points.x.shape[2])
            expansion, form = build(r, kernels, beta)
            if expansion is None:
                self.engine.refuse("these have too many, or would lose digits")
                output[r] = direct_sums(self._part(r))[0]
                continue
            masses = self.masses[r]
            if form is not None:
                bias = quadratic(form, self.points.x[r])
                masses = masses * np.exp(bias - bias.max())
            integrals = self.points.integrals(r, expansion, masses)
            lowest = LOST_ROUNDINGS * HARMONIC_ROUNDING / self.engine.tolerance * expansion.largest
            for number, at, sums in zip(
                count(), self.points.at[self.points.systems(r)], integrals, strict=False
            ):
                rows = slice(number * len(at), (number + 1) * len(at))
                pulls, denominator = sums[:-1].T @ self._of_system(r, self.matrices[2]).T, sums[-1]
                if not normalised:
                    output[r, rows] = np.exp(quadratic(expansion.scale, at))[:, None] * pulls
                    continue
                small = np.flatnonzero(~(np.abs(denominator) >= lowest))
                output[r, rows] = pulls / np.where(denominator == 0, 1.0, denominator)[:, None]
                if small.size:
                    tokens = rows.start + small
                    output[r, tokens] = direct_sums(self._part(r, tokens))[0]
        return output

    def _part(self, r: int, tokens: Any = slice(None)) -> Head:
        """The head of system r alone, with the queries of some of its points."""
        replica = slice(r, r + 1)
        return Head(
            queries=self.queries[replica, tokens],
            keys=self.keys[replica],
            values=self.values[replica],
            masses=self.masses[replica],
            beta=self.beta if self.beta.size == 1 else self.beta[replica],
            threads=self.threads,
            bias=None if self.bias is None else self.bias[replica],
        )
