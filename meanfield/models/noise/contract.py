"""What a noise is: a diffusion of tokens on the sphere, and how one step of it is drawn."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

__all__ = ["Noise"]


class Noise(ABC):
    """A diffusion on the unit sphere of R^d that moves tokens in the absence of a drift.

    Its generator is L/kappa, where L is the Laplacian for isotropic noise. A step of length dt
    depends on s = dt/kappa alone, and one step differs from e^(s L) by O(s^3), tested with any
    smooth function of the tokens: noise for dt/2, the flow of a drift for dt and noise for dt/2
    make a scheme of weak order 2.

    A step is drawn in two parts. `increments` holds all that is random: standard normal numbers
    that depend neither on the tokens, nor on s, nor on the drift. `moved` is a function of the
    tokens and of them. Two systems that are moved by the same increments are therefore coupled
    synchronously, and the same generator gives the same Brownian paths to any drift and kappa.

    Attributes
    ----------
    known_rate : bool
        Whether inner products change at most at the rate (d - 1)/kappa: steps are chosen by it.
    on_sphere_only : bool
        Whether it is defined on the sphere alone, not in R^d.
    """

    known_rate = False
    on_sphere_only = True

    @abstractmethod
    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        """Shape of the increments of one step; its first axis is that of the replicas."""

    @abstractmethod
    def _moved(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        """`moved` where every s > 0; a new array."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The noise as plain data: its name and parameters."""

    def increments(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw the random numbers of one step for tokens of `shape` (R, n, d).

        Independent standard normal numbers in one array of shape `increments_shape`, drawn in
        its order, also for replicas without noise: a replica's paths do not depend on the kappa
        of the others.
        """
        self._check_shape(shape)
        return rng.standard_normal(self.increments_shape(*shape))

    def moved(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        """The tokens after noise of strength s = dt/kappa.

        Parameters
        ----------
        x : array, shape (R, n, d)
            Unit vectors: n tokens in each of R independent replicas. They are not changed.
        s : array, shape (R,)
            Strength for each replica, finite and >= 0. A replica with s = 0 (kappa = inf) is
            returned as it came, bit by bit.
        increments : array
            What `increments` drew for this shape.

        Returns
        -------
        array, shape (R, n, d)
            New; unit vectors to rounding.

        Raises
        ------
        ValueError
            If the shapes do not fit, or s is negative or not finite.
        """
        x, s = np.asarray(x, dtype=float), np.asarray(s, dtype=float)
        self._check(x, s, increments)
        noisy = s > 0
        if noisy.all():
            return self._moved(x, s, increments)
        result = x.copy()
        if noisy.any():
            result[noisy] = self._moved(x[noisy], s[noisy], increments[noisy])
        return result

    def _check_shape(self, shape):
        if len(shape) != 3 or shape[2] < 2:
            raise ValueError(
                f"{type(self).__name__} moves tokens of shape (R, n, d) with d >= 2; got {shape}. "
                "One replica is x[None]."
            )

    def _check(self, x, s, increments):
        name = type(self).__name__
        self._check_shape(x.shape)
        if s.shape != x.shape[:1] or not (np.isfinite(s) & (s >= 0)).all():
            raise ValueError(
                f"{name} expects one finite s = dt/kappa >= 0 for each of {len(x)} replicas; "
                f"got shape {s.shape}, smallest {s.min(initial=np.inf)}, largest "
                f"{s.max(initial=-np.inf)}. No noise is s = 0."
            )
        expected = self.increments_shape(*x.shape)
        if np.shape(increments) != expected:
            raise ValueError(
                f"{name} expects increments of shape {expected} for tokens of shape {x.shape}; "
                f"got {np.shape(increments)}. Draw them with increments(x.shape, rng)."
            )
