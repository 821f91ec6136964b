"""Sums over tokens on the torus, and velocities in the field of a density there.

Under a zonal drift each angle follows the component of the velocity along it,

    d x_ik / dt = sum_j m_j W'(t_ij) sin(x_jk - x_ik) / sum_j m_j Z(t_ij),   t_ij = sum_k cos(...)
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np

from ..core.annotations import Values
from ..core.cached import cached_property
from ..core.dual import Dual, contiguous, value_of
from ..core.errors import MeanfieldError
from ..models import SA, USA, ZonalDrift
from ..models.changes import derivative_by
from ..spaces.torus import Torus, WavesAt
from .contract import Engine, along_tangents
from .direct import DirectSums

SMOOTH_EXPONENT = 4.0  # m |beta| up to which sums over waves are as accurate as those over pairs
FEWEST_FOR_WAVES = 513  # tokens; for fewer, sums over pairs cost less than those over waves
WAVE_COST = 1.2e-3  # microseconds per token and wave
SUMMED_DEGREES = {1: (16, 64, 256, 1024), 2: (6, 12, 24, 48, 96), 3: (4, 8, 16)}
NEGLIGIBLE_WAVES = 1e-16  # velocities of the last waves, relative to the largest


class WaveSums:
    """Velocities of points of a torus under a zonal drift, by the waves of a density.

    Parameters
    ----------
    drift : ZonalDrift
    space : Torus
        Its waves are summed.
    """

    def __init__(self, drift: ZonalDrift, space: Torus) -> None:
        self.drift, self.space = drift, space
        self._attraction, self._normaliser = space.attraction(drift), space.normaliser(drift)

    @classmethod
    def needed(cls, drift: ZonalDrift, space: Torus) -> "WaveSums":
        """The waves of a space by which velocities are not rounding errors."""
        every = cls(drift, space)
        sizes = [np.abs(every._attraction) * np.sqrt(-space.laplacian)]
        sizes += [] if every._normaliser is None else [np.abs(every._normaliser)]
        counts = np.any([size > NEGLIGIBLE_WAVES * size.max() for size in sizes], axis=0)
        return cls(drift, space.with_degree(max(1, int(space.degrees[counts].max(initial=0)))))

    def velocity(
        self, points: np.ndarray, coefficients: np.ndarray, waves: WavesAt | None = None
    ) -> np.ndarray:
        """Velocities (n, 2m) at points (n, 2m), tangent to each circle; `waves` are those there."""
        space, velocities = self.space, np.empty_like(points)
        waves_at = WavesAt(space.rows, points) if waves is None else waves
        along = space.synthesis_at(1j * space.waves.T * (self._attraction * coefficients), waves_at)
        if self._normaliser is not None:
            along /= space.synthesis_at((self._normaliser * coefficients)[None], waves_at)
        velocities[:, ::2] = -points[:, 1::2] * along.T
        velocities[:, 1::2] = points[:, ::2] * along.T
        return velocities

    def cost(self, n: int) -> float:
        """About the microseconds that velocities of n tokens take, see `contract`."""
        return WAVE_COST * n * self.space.degrees.size


class TorusField:
    """Velocities of points in the field of a density with given coefficients on a torus."""

    def __init__(self, drift: ZonalDrift, space: Torus, _threads: int = 1) -> None:
        self._space, self._waves = space, WaveSums.needed(drift, space)

    def attention(self, _t: float, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """The velocities (R, n, 2m)."""
        c = self._space.resample(coefficients, self._waves.space.degree)
        return np.stack([self._waves.velocity(points, c) for points in x])


class TorusSums(Engine):
    """Sums over tokens on the torus under a single zonal drift: over pairs, or over waves, O(n).

    Pairs have exponential weights: exp(beta <x, y>) = exp(m beta <u, w>) for the unit vectors
    u = x / sqrt(m) and w, whose sums are those of tokens on a sphere. They are chosen unless waves
    cost less and are as accurate, m |beta| <= 4.

    Parameters
    ----------
    drift : ZonalDrift
    circles : int
        Number m of angles.
    n : int
        Number of tokens.
    build : callable
        Drift -> engine of sums over unit vectors of R^2m, for the exponent m beta.

    Notes
    -----
    Changes along tangents are those of sums over pairs, or differences of order 10 of sums over
    waves; by parameters they are differences.
    """

    name = "torus"
    tangential = False
    _names: tuple[str | None, ...] = ()  # parameters that change along the tangents

    def __init__(
        self, drift: ZonalDrift, circles: int, n: int, build: Callable[[ZonalDrift], Any]
    ) -> None:
        self.drift, self._circles, self._count, self._build = drift, circles, n, build
        self._pairs: Any = None
        if drift.exponent is not None:
            self._pairs = build((SA if drift.normalised else USA)(circles * drift.exponent))

    @cached_property
    def _summed(self) -> Any:
        """The sums over pairs; None where those over waves are chosen."""
        beta, m = self.drift.exponent, self._circles
        if self._pairs is None or m == 1 or not np.any(beta) or self._count < FEWEST_FOR_WAVES:
            return self._pairs
        if m * np.abs(beta) > SMOOTH_EXPONENT:
            return self._pairs
        try:
            cost = self._waves.cost(self._count)
        except MeanfieldError:  # they do not decay
            return self._pairs
        return self._pairs if DirectSums.cost_of(self.drift, self._count) < cost else None

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Vectors (R, n, 2m) whose parts along the circles are the velocities."""
        if isinstance(x, Dual):
            return self._with_changes(t, x, masses)
        if self._summed is not None:
            radius = self._circles**0.5
            return radius * self._summed.velocity(x / radius, masses)
        waves, sums = self._waves, np.empty_like(x)
        for target, points, m in zip(sums, x, masses, strict=True):
            waves_at = WavesAt(waves.space.rows, points)
            target[:] = waves.velocity(points, waves.space.point_masses(waves_at, m), waves_at)
        return sums

    def with_tangents(self, names: Sequence[str | None]) -> Self:
        copied = copy(self)
        copied._names = tuple(names)
        return copied

    def _with_changes(self, t: float, x: Dual, masses: Values) -> Dual:
        """Outputs with changes by tokens, masses and parameters."""
        if self._pairs is not None:
            pairs = self._pairs.with_tangents([None] * len(self._names))
            radius = self._circles**0.5
            sums = radius * pairs.velocity(contiguous(x / radius), masses)
        else:
            sums = along_tangents(partial(self.attention, t), x, masses, "attention")
        points, weights = value_of(x), value_of(masses)

        def of_drifts(drifts: Any) -> np.ndarray:
            each = [drifts.member(i) for i in range(*drifts.shape)]
            engines = [type(self)(e, self._circles, self._count, self._build) for e in each]
            return np.stack([engine.attention(t, points, weights) for engine in engines])

        for a, name in enumerate(self._names):
            if name is not None:
                sums.changes[a] += derivative_by(self.drift, name, of_drifts)
        return sums

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """(1/2) sum_ij m_i m_j W(x_i - x_j), (R,)."""
        if self._summed is not None:
            return self._circles * self._summed.energy(x / self._circles**0.5, masses)
        space = self._waves.space
        table = space.interaction(self.drift) * space.parseval
        return 0.5 * np.array([table @ np.abs(c) ** 2 for c in space.empirical(x, masses)])

    @cached_property
    def _waves(self) -> WaveSums:
        """The waves that matter; MeanfieldError if there are too many."""
        for degree in SUMMED_DEGREES[self._circles]:
            waves = WaveSums.needed(self.drift, Torus(degree, self._circles))
            if waves.space.degree <= 0.9 * degree - 1:
                return waves
        raise MeanfieldError(
            f"The waves of {self.drift!r} do not decay to rounding up to |k_i| = {degree}: tokens "
            "on the torus move by sums over waves, which need a kernel that varies less."
        )
