"""Velocities of tokens by the harmonics of their measure, and their derivatives, in O(n).

The field of the tokens is a quotient of series in harmonics. Along a tangent a token moves in the
field, whose second derivatives are those of the series, and the coefficients of the measure change
by sum_j dm_j conj Y(x_j) + m_j <dx_j, grad conj Y(x_j)>, and the multipliers with a parameter.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..models.changes import multiplier_changes
from .direct_tangents import DirectTangents


class ModeTangents(ABC):
    """Velocities and derivatives of them by modes, on the circle and on S^2.

    Parameters
    ----------
    engine : HarmonicEngine
    names : sequence of (str or None)
        The parameter of each tangent, by which the drift changes with it at the rate 1.

    Notes
    -----
    Systems in which the level of a token is too low for the accuracy of the engine are summed over
    all pairs. Series are evaluated to 1e-12 of their norm, or to the accuracy of the engine.
    """

    tangential = True

    def __init__(self, engine: Any, names: Sequence[str | None]):
        self._engine, self._names = engine, tuple(names)
        self._direct = DirectTangents(engine.drift, names, engine._threads.threads)
        drift, of = engine.drift, (engine.degree, engine.dimension)
        count = int(np.prod(drift.shape))
        self._changes = []
        for r in range(count):
            member, own = drift.member(r), []
            nothing = [np.zeros(engine.degree + 1)] * (1 if engine.normaliser is None else 2)
            for name in self._names:
                own.append(nothing if name is None else multiplier_changes(member, name, *of))
            self._changes.append(own)

    def velocity(
        self, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Velocities (R, n, d) and their changes (p, R, n, d) with those of points and masses."""
        engine, shape = self._engine, dx.shape
        length = np.linalg.norm(x, axis=-1, keepdims=True)
        u = x / length
        du = (dx - (u * dx).sum(axis=-1, keepdims=True) * u) / length
        v, dv = np.empty(x.shape), np.empty(shape)
        lowest = None if engine.normaliser is None else np.broadcast_to(engine._lowest, len(x))
        for r in range(len(x)):
            given = u[r], masses[r], du[:, r], dm[:, r]
            v[r], dv[:, r], level = self.of_system(r, *given)
            if lowest is not None and level < lowest[r]:
                own = x[r][None], masses[r][None], dx[:, r][:, None], dm[:, r][:, None]
                member = DirectTangents(engine.drift.member(r % len(self._changes)), self._names)
                found, change = member.velocity(*own)
                v[r], dv[:, r] = found[0], change[:, 0]
        return v, dv

    def multipliers(self, r: int) -> tuple[np.ndarray, np.ndarray | None, list]:
        """Those of W and of Z of a system, and how they change along each tangent."""
        engine = self._engine
        attraction, normaliser = (
            m if m is None or m.ndim == 1 else m[r] for m in (engine.attraction, engine.normaliser)
        )
        return attraction, normaliser, self._changes[r % len(self._changes)]

    @abstractmethod
    def of_system(self, r: int, u, masses, du, dm) -> tuple[np.ndarray, np.ndarray, float]:
        """Velocities (n, d) of one system, their changes (p, n, d), and the least level."""

    def attention(self, *given: Any) -> tuple[np.ndarray, np.ndarray]:
        """The whole output of attention, by sums over all pairs."""
        return self._direct.attention(*given)

    def potential(self, *given: Any) -> tuple[np.ndarray, np.ndarray]:
        """Potentials, by sums over all pairs."""
        return self._direct.potential(*given)


class CircleTangents(ModeTangents):
    """On the circle, with the transforms of the engine."""

    def of_system(self, r, u, masses, du, dm):
        transforms = self._engine.scattered
        attraction, normaliser, changes = self.multipliers(r)
        turn = 1j * np.arange(attraction.size)
        east = np.stack([-u[:, 1], u[:, 0]], axis=1)
        angles = np.einsum("nd,pnd->pn", east, du)
        places = transforms.places(np.ascontiguousarray(u[None]))

        def moments(weights: np.ndarray) -> np.ndarray:
            return transforms.moments(places, np.ascontiguousarray(weights[None]))[0]

        own, rows, levels = moments(masses), [], []
        moved = []
        for by, weights in zip(angles, dm, strict=True):
            change = -turn * moments(masses * by)
            moved.append(change + moments(weights) if weights.any() else change)
        rows += [turn * attraction * own, turn**2 * attraction * own]
        rows += [
            turn * (attraction * h + by[0] * own) for h, by in zip(moved, changes, strict=True)
        ]
        if normaliser is not None:
            levels += [normaliser * own, turn * normaliser * own]
            levels += [normaliser * h + by[1] * own for h, by in zip(moved, changes, strict=True)]
        found = transforms.values(places, np.array([rows + levels]))[0]
        speed, bend, *rest = found[: len(rows)]
        change = np.reshape(rest, angles.shape) + bend * angles
        least = np.inf
        if levels:
            level, tilt, *rest = found[len(rows) :]
            speed, least = speed / level, float(level.min())
            change = (change - speed * (np.reshape(rest, angles.shape) + tilt * angles)) / level
        v = speed[:, None] * east
        return v, change[..., None] * east - (speed * angles)[..., None] * u, least


class SphereTangents(ModeTangents):
    """On S^2, as characteristics have them."""

    def __init__(self, engine: Any, names: Sequence[str | None]):
        from ..spaces.sphere import Sphere

        super().__init__(engine, names)
        self._chart: Any = Sphere(1).chart(np.array([0.0, 0.0, 1.0]))

    def of_system(self, r, u, masses, du, dm):
        attraction, normaliser, changes = self.multipliers(r)
        pairs = [(by[0], by[1] if len(by) > 1 else None) for by in changes]
        return self._chart.field_tangents(u, masses, du, dm, (attraction, normaliser), pairs)
