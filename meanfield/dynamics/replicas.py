"""`ReplicaMotion`, the base of motions of independent replicas, each of finitely many tokens."""

from contextlib import suppress
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from ..core.annotations import MovedState
from ..core.dual import Array, Dual
from ..models.transformer import Transformer
from ..steppers import Strang
from .motion import AnyScheme, ChosenScheme, Motion, in_shape_of, warn_of_long_steps


class ReplicaMotion(Motion):
    """A motion of replicas, under one drift for all of them, or one for each.

    `setup` of a derived class stores `_drift`, of the shape () or that of the replicas, and the
    arrays named in `replica_arrays`, with one row for each replica.

    Attributes
    ----------
    replica_arrays : tuple of str
    smallest_count : int
        The smallest number of tokens that move.
    """

    replica_arrays: ClassVar[tuple[str, ...]] = ("_masses",)
    smallest_count: ClassVar[int] = 2
    members_as_alone = True
    _drift: Any
    _sums: Any = None  # the engine, where there is one

    @classmethod
    def prepared(cls, model: Transformer, state: MovedState) -> MovedState:
        """The state, broadcast to the ensemble shape of the model; ValueError for one token."""
        return in_shape_of(model, state, smallest_count=cls.smallest_count)

    @property
    def random(self) -> bool:  # type: ignore[override]
        return self.model.noisy

    @property
    def members(self) -> int:  # type: ignore[override]
        return len(getattr(self, self.replica_arrays[0])) if self.like.shape else 0

    @property
    def autonomous(self) -> bool:  # type: ignore[override]
        return self.model.drift.autonomous and self.model.normalisation.autonomous

    @property
    def why_no_tangents(self) -> str:  # type: ignore[override]
        advice = "without noise, kappa = inf and common=None. Differentiate a run of their Density."
        return f"of tokens {advice}" if self.random else ""

    def tangent_vectors(self, y: Dual) -> Array:
        rows = y.changes.swapaxes(0, 1)
        return rows.reshape(*rows.shape[:2], -1)

    def why_not_finite(self, y: np.ndarray, t: float) -> str:
        """The reason why velocities at these coordinates are not finite, and what helps."""
        return self.model.drift.why_not_finite(np.ones((1, 1)))

    def of_members(self, members: np.ndarray) -> Self:
        """Motion of the replicas with these indices."""
        chosen = copy(self)
        for name in self.replica_arrays:
            setattr(chosen, name, getattr(self, name)[members])
        if self._drift.shape:
            chosen._drift = self._drift.member(members)
            if self._sums is not None:
                chosen._sums = self._sums.of_members(members)
        return chosen

    def chosen_scheme(self, scheme: AnyScheme, dt: float | None, start: float) -> ChosenScheme:
        """The scheme and the length of its steps, with noise those of `steppers.Strang`.

        Warns
        -----
        UnresolvedWarning
            If dt exceeds twice the shortest time scale of drift and noise, where that is known.
        """
        if not self.random:
            return super().chosen_scheme(scheme, dt, start)
        if scheme not in (None, Strang):
            raise ValueError(f"With noise tokens need steppers.Strang; got {scheme.name}.")
        if dt is None:
            return Strang, self.noisy_step(start)
        with suppress(ValueError):  # rates are not known in advance
            warn_of_long_steps(dt, self.noisy_step(start))
        return Strang, dt
