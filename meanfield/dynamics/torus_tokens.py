"""Motion of tokens on the torus: each angle follows the part of attention along its circle.

With the pairs (cos, sin) of the angles as points of R^2m,

    d x_ik / dt = <e_k(x_i), u_i>,   e_k = (-sin x_k, cos x_k) in the k-th pair,

where u are the outputs of attention of `engines`.
"""

from collections.abc import Mapping
from copy import copy
from typing import Self

import numpy as np
from numpy.random import Generator

from ..core.annotations import MovedState, Observations, TangentNames, UserValue
from ..core.dual import Array, Dual, contiguous
from ..core.errors import MeanfieldError
from ..engines import engine_for
from ..spaces.torus import MOST_CIRCLES
from ..states.points import along_circles, on_circles, turns
from ..states.torus_tokens import TorusTokens
from ..steppers import DormandPrince, Splitting
from ..steppers.splitting import kutta_step
from .linearised import TangentSpace, check_masses
from .motion import check_on_torus
from .replicas import ReplicaMotion


class TorusTokenMotion(ReplicaMotion, moves=TorusTokens):
    """Velocities of tokens on the torus under any drift of points of R^2m.

    Coordinates are the angles (replicas, n, m). Isotropic noise is exact: independent normal
    increments of the angles. Noise with a scale is of weak order 2.
    """

    example = "Tokens.on_torus(angles)"
    schemes = (DormandPrince,)
    options = frozenset({"rng"})
    follows = frozenset({"noise", "common", "normalisation"})
    draws_by_member = True
    not_finite = "an angle was not finite"

    def check(self) -> None:
        """Raise MeanfieldError, with the reason, for a model that does not fit."""
        model, circles = self.model, self.like.dimension // 2
        self.check_dimensions()
        if circles > MOST_CIRCLES:
            raise MeanfieldError(f"Tokens move on tori of at most {MOST_CIRCLES} angles.")
        check_on_torus(model)
        if not model.noise.turns_angles:
            raise MeanfieldError(
                f"{model.noise!r} is defined by projections onto a sphere, of which a torus has "
                "none: take Isotropic(), the default, or a scale, MultiplicativeStratonovich(scale)"
                " or MultiplicativeIto(scale)."
            )
        if any(part.is_zonal and not part.constant for _, part in model.drift.terms):
            raise MeanfieldError(
                f"{model.drift!r} changes with time, which tokens on the torus do not support."
            )

    def setup(self) -> None:
        """Choose the engine, and flatten the parameters and masses to one row for each replica."""
        self._drift = self.model.drift.broadcast(self.like.shape)
        self._masses = np.ascontiguousarray(self.like.masses.reshape(-1, len(self.like)))
        self._sums = engine_for(
            self._drift, None, len(self.like), self.like.dimension, on_sphere=False
        )

    @property
    def directions(self) -> int:
        return int(self.like.dimension) // 2

    @property
    def circles(self) -> int:  # type: ignore[override]
        return self.directions

    def coordinates(self, state: TorusTokens) -> np.ndarray:
        """The angles (replicas, n, m)."""
        return state.angles.reshape(-1, *state.angles.shape[-2:])

    def why_not_finite(self, y: np.ndarray, t: float) -> str:
        return self.model.drift.why_not_finite(on_circles(y))

    def state_of(self, y: np.ndarray) -> TorusTokens:
        """The tokens with these angles."""
        angles = y.reshape(*self.like.shape, *y.shape[1:])
        if isinstance(y, Dual):
            return TorusTokens.computed(angles=angles, masses=self.like.masses)
        return TorusTokens(angles, self.like.masses)

    # Velocities ----------------------------------------------------------------------------

    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the angles, (replicas, n, m)."""
        x = on_circles(y)
        return along_circles(x, self.attention_update(x, self._masses, t))

    def attention_update(self, x: np.ndarray, masses: np.ndarray, t: float) -> np.ndarray:
        """Outputs of attention at points (replicas, n, 2m)."""
        return self._sums.attention(self.inside(t), x, masses)

    def energy(self, y: np.ndarray) -> np.ndarray:
        """The interaction energy of every replica; nan for drifts without one."""
        return self._sums.energy(on_circles(y), self._masses).reshape(self.like.shape)

    def step(
        self, scheme: Splitting, y: np.ndarray, t: float, dt: float, rng: Generator,
        common: Generator | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Noise for dt/2, the drift for dt, noise for dt/2; weak order 2.

        Common noise, drawn from `common`, comes first and last.
        """
        y = self._after_common_noise(y, dt / 2, common)
        y = self._after_noise(y, t + dt / 4, dt / 2, rng)
        y = kutta_step(self.velocity, y, t, dt)
        y = self._after_noise(y, t + 3 * dt / 4, dt / 2, rng)
        return self._after_common_noise(y, dt / 2, common)

    def _after_common_noise(self, y: np.ndarray, dt: float, rng: Generator | None) -> np.ndarray:
        noise = self.model.common
        if noise is None or rng is None:
            return y
        x, circles = on_circles(y), self.directions
        increments = noise.increments(len(y), self.like.dimension, rng, circles)
        strength = np.full(self.like.shape, dt / noise.kappa).ravel()
        return y + turns(x, noise.moved_on_torus(x, strength, increments))

    def _after_noise(self, y: np.ndarray, t: float, dt: float, rng: Generator) -> np.ndarray:
        if not self.model.has_independent_noise:
            return y
        kappa = np.broadcast_to(self.model.kappa_at(self.inside(t)), self.like.shape).ravel()
        return self.model.noise.turned(y, dt / kappa, rng)

    # Derivatives ---------------------------------------------------------------------------

    def along(self, names: TangentNames, state: MovedState) -> Self:
        """Copy with changes of the drift by the parameters, at `state`."""
        copied = copy(self)
        copied.like = state
        copied._masses = contiguous(state.masses.reshape(self._masses.shape))
        copied._sums = self._sums.with_tangents(names)
        return copied

    def direction(self, direction: UserValue, state: TorusTokens) -> Mapping[str, Array]:
        """A checked change of the initial tokens: an array, of the angles, or arrays by name."""
        named = direction if isinstance(direction, Mapping) else {"angles": direction}
        changes = super().direction(named, state)
        check_masses(changes)
        return changes

    def tangent_space(self, state: TorusTokens) -> TangentSpace:
        """Dimension of the tangent space, and a function that draws Gaussian changes of angles."""
        n, m = state.angles.shape[-2:]
        return n * m, lambda rng: {"angles": rng.standard_normal(state.angles.shape)}

    def smooth_observables(self, state: TorusTokens, t: float) -> Observations:
        means = np.einsum("...i,...id->...d", state.masses, state.x)
        return {
            "order_parameter": np.linalg.norm(means, axis=-1) / self.directions**0.5,
            "mass": state.masses.sum(axis=-1),
        }

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
            interaction_energy : E = (1/2) sum_ij m_i m_j W(x_i - x_j), with sum_i m_i V(x_i) of a
                `Potential`; nan for drifts that increase none
            speed : (sum_i m_i |v_i|^2)^(1/2), without noise
        """
        y, smooth = self.coordinates(state), self.smooth_observables(state, t)
        return {
            "order_parameter": smooth["order_parameter"],
            "speed": self.rates(y, self.velocity(y, t)).reshape(state.shape),
            "interaction_energy": self.energy(y),
            "mass": state.masses.sum(axis=-1),
        }
