"""Motion of tokens on the torus: each angle follows the component of the velocity along it.

    d x_ik / dt = sum_j m_j W'(t_ij) sin(x_jk - x_ik) / sum_j m_j Z(t_ij),   t_ij = sum_k cos(...)

Sums are over waves; those of exponential weights are over pairs, O(n^2), for few tokens and for
m |beta| > 4.
"""

from typing import Self

import numpy as np
from numpy.random import Generator

from ..core.annotations import Observations, Values
from ..core.cached import cached_property
from ..core.dual import Dual
from ..core.errors import MeanfieldError
from ..models.zonal import ZonalDrift
from ..spaces.torus import MOST_CIRCLES, Torus, on_circles
from ..states.torus_tokens import TorusTokens
from ..steppers import DormandPrince, Splitting
from ..steppers.splitting import kutta_step
from .replicas import ReplicaMotion

SMOOTH_EXPONENT = 4.0  # m |beta| up to which sums over waves are as accurate as those over pairs
FEW_TOKENS = 512  # number up to which sums over pairs cost less than those over waves
PAIRS_AT_ONCE = 2**21
SUMMED_DEGREES = {1: (16, 64, 256, 1024), 2: (6, 12, 24, 48, 96), 3: (4, 8, 16)}
NEGLIGIBLE_WAVES = 1e-16  # velocities of the last waves, relative to the largest


class TorusSums:
    """Sums over tokens on the torus for a single drift: over pairs, or over waves.

    Parameters
    ----------
    drift : ZonalDrift
    circles : int
        Number of angles.
    """

    def __init__(self, drift: ZonalDrift, circles: int):
        self.drift, self._circles = drift, circles
        self._steep = circles * np.abs(np.inf if drift.exponent is None else drift.exponent)

    def velocity(self, angles: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities (n, m) of tokens with these angles."""
        smooth = self._steep <= SMOOTH_EXPONENT and len(angles) > FEW_TOKENS
        if self.drift.exponent is None or smooth:
            return self._over_waves(angles, masses)
        return self._over_pairs(angles, masses)

    def _over_pairs(self, angles: np.ndarray, masses: np.ndarray) -> np.ndarray:
        x, drift, found = on_circles(angles), self.drift, np.empty_like(angles)
        beta, size = float(np.asarray(drift.exponent)), max(1, PAIRS_AT_ONCE // len(angles))
        for begin in range(0, len(x), size):
            rows = slice(begin, begin + size)
            weights = beta * (x[rows] @ x.T)
            if drift.normalised:
                weights -= weights.max(axis=1, keepdims=True)
            np.exp(weights, out=weights)
            weights *= masses
            output = weights @ x
            if drift.normalised:
                output /= weights.sum(axis=1, keepdims=True)
            found[rows] = x[rows, ::2] * output[:, 1::2] - x[rows, 1::2] * output[:, ::2]
        return found

    def _over_waves(self, angles: np.ndarray, masses: np.ndarray) -> np.ndarray:
        space, points = self._space, on_circles(angles)
        c = space.empirical(points[None], masses[None])[0]
        found = space.synthesis_at(1j * space.waves.T * (self._tables[0] * c), points)
        if self._tables[1] is not None:
            found /= space.synthesis_at((self._tables[1] * c)[None], points)
        return np.ascontiguousarray(found.T)

    def energy(self, angles: np.ndarray, masses: np.ndarray) -> Values:
        """(1/2) sum_ij m_i m_j W(x_i - x_j), over waves."""
        space = self._space
        c = space.empirical(on_circles(angles)[None], masses[None])[0]
        return 0.5 * (space.interaction(self.drift) * space.parseval * np.abs(c) ** 2).sum()

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray | None]:
        return self._space.attraction(self.drift), self._space.normaliser(self.drift)

    @cached_property
    def _space(self) -> Torus:
        """The torus with the waves that matter; MeanfieldError if there are too many."""
        for degree in SUMMED_DEGREES[self._circles]:
            space = Torus(degree, self._circles)
            attraction, normaliser = space.attraction(self.drift), space.normaliser(self.drift)
            sizes = [np.abs(attraction) * np.sqrt(-space.laplacian)]
            sizes += [] if normaliser is None else [np.abs(normaliser)]
            last = space.degrees > 0.9 * degree - 1
            if all(size[last].max() <= NEGLIGIBLE_WAVES * size.max() for size in sizes):
                return space
        raise MeanfieldError(
            f"The waves of {self.drift!r} do not decay to rounding up to |k_i| = {degree}: tokens "
            "on the torus move by sums over waves, which need a kernel that varies less."
        )


class TorusTokenMotion(ReplicaMotion, moves=TorusTokens):
    """Velocities of tokens on the torus under a zonal drift or a PeriodicKernel.

    Coordinates are the angles (replicas, n, m). Isotropic noise is exact: independent normal
    increments of the angles.
    """

    example = "Tokens.on_torus(angles)"
    schemes = (DormandPrince,)
    options = frozenset({"rng"})
    follows = frozenset({"noise"})
    draws_by_member = True
    not_finite = "an angle was not finite"

    def check(self) -> None:
        """Raise MeanfieldError, with the reason, for a model that does not fit."""
        model, circles = self.model, self.like.dimension // 2
        self.check_dimensions()
        if circles > MOST_CIRCLES:
            raise MeanfieldError(f"Tokens move on tori of at most {MOST_CIRCLES} angles.")
        if not model.drift.is_zonal:
            raise MeanfieldError(
                f"{model.drift!r} does not move tokens on the torus: take a function of inner "
                "products, as USA, SA, Kuramoto and Interaction are, or PeriodicKernel(W)."
            )
        if not model.noise.laplacian:
            raise MeanfieldError(
                f"{model.noise!r} is not known on the torus: take Isotropic(), the default."
            )
        if not model.drift.constant:
            raise MeanfieldError(
                f"{model.drift!r} changes with time, which tokens on the torus do not support."
            )

    def setup(self) -> None:
        """Flatten the parameters and masses to one row for each replica."""
        self._drift = self.model.drift.as_zonal().broadcast(self.like.shape)
        self._masses = np.ascontiguousarray(self.like.masses.reshape(-1, len(self.like)))

    def of_members(self, members: np.ndarray) -> Self:
        part = super().of_members(members)
        part.__dict__["_each"] = [self._each[i] for i in members]
        return part

    def noisy_step(self, start: float) -> float:
        dt, drift = super().noisy_step(start), self.model.drift.as_zonal()
        if drift.exponent is not None and not drift.normalised:  # up to exp(m beta)
            dt /= float(np.exp((self.like.dimension // 2 - 1) * np.abs(drift.exponent)).max())
        return dt

    def coordinates(self, state: TorusTokens) -> np.ndarray:
        """The angles (replicas, n, m)."""
        return state.angles.reshape(-1, *state.angles.shape[-2:])

    def state_of(self, y: np.ndarray) -> TorusTokens:
        """The tokens with these angles."""
        angles = y.reshape(*self.like.shape, *y.shape[1:])
        if isinstance(y, Dual):
            return TorusTokens.computed(angles=angles, masses=self.like.masses)
        return TorusTokens(angles, self.like.masses)

    # Velocities ----------------------------------------------------------------------------

    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the angles, (replicas, n, m)."""
        if isinstance(y, Dual):
            raise MeanfieldError(
                "Derivatives of runs of tokens on the torus are not known. Differentiate a run of "
                "their density."
            )
        pairs = zip(self._each, y, self._masses, strict=True)
        return np.stack([sums.velocity(angles, masses) for sums, angles, masses in pairs])

    @property
    def why_no_tangents(self) -> str:
        return "of densities on a torus, not of tokens there. Solve for the Density."

    @cached_property
    def _each(self) -> list[TorusSums]:
        """The sums of every replica; one object if all have the same drift."""
        drift, circles = self._drift, self.like.dimension // 2
        if not drift.shape:
            return [TorusSums(drift, circles)] * len(self._masses)
        return [TorusSums(drift.member(i), circles) for i in range(len(self._masses))]

    def step(
        self, scheme: Splitting, y: np.ndarray, t: float, dt: float, rng: Generator,
        common: Generator | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Noise for dt/2, the drift for dt, noise for dt/2; weak order 2."""
        y = self._after_noise(y, t + dt / 4, dt / 2, rng)
        y = kutta_step(self.velocity, y, t, dt)
        return self._after_noise(y, t + 3 * dt / 4, dt / 2, rng)

    def _after_noise(self, y: np.ndarray, t: float, dt: float, rng: Generator) -> np.ndarray:
        kappa = np.broadcast_to(self.model.kappa_at(self.inside(t)), self.like.shape).ravel()
        return y + np.sqrt(2 * dt / kappa)[:, None, None] * rng.standard_normal(y.shape)

    # Measured ------------------------------------------------------------------------------

    def rates(self, y: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """The root mean square speed of each replica."""
        return np.sqrt((self._masses * (velocity**2).sum(axis=-1)).sum(axis=-1))

    def measure(self, state: TorusTokens, t: float = 0.0) -> Observations:
        """Observables of tokens, or of replicas of them.

        Returns
        -------
        dict of ndarray, each of the shape of the replicas
            mass : sum of the masses
            order_parameter : |sum_i m_i x_i| / sqrt(m), m the number of angles
            interaction_energy : E = (1/2) sum_ij m_i m_j W(x_i - x_j)
            speed : (sum_i m_i |v_i|^2)^(1/2), without noise
        """
        y = self.coordinates(state)
        moments, pairs = state.moment(1), zip(self._each, y, self._masses, strict=True)
        energy = [sums.energy(angles, masses) for sums, angles, masses in pairs]
        return {
            "order_parameter": np.sqrt((np.abs(moments) ** 2).mean(axis=-1)),
            "speed": self.rates(y, self.velocity(y, t)).reshape(state.shape),
            "interaction_energy": np.reshape(energy, state.shape),
            "mass": state.masses.sum(axis=-1),
        }
