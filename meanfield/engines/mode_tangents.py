"""Velocities of tokens by the harmonics of their measure, and their derivatives, in O(n).

The velocity field is a quotient of series in harmonics. Along a tangent it changes in three ways:
the token moves in the field, whose derivatives are those of the series; the coefficients of the
measure change by sum_j dm_j conj Y(x_j) + m_j <dx_j, grad conj Y(x_j)>; and the multipliers change
with a parameter.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dual import Dual, contiguous
from ..models.changes import multiplier_changes
from ..spaces.sphere_points import TRANSFORM_ACCURACY, factors
from .contract import DualEngine
from .direct_tangents import DirectTangents


class ModeTangents(DualEngine):
    """Velocities and their derivatives by modes, on the circle and on S^2.

    Parameters
    ----------
    engine : HarmonicEngine
    names : sequence of (str or None)
        For each tangent the parameter of the drift that changes along it at the rate 1, or None.

    Notes
    -----
    A system is summed over all pairs if the level of some token is too low for the accuracy of the
    engine. Series are evaluated to 1e-12 of their norm, or to the accuracy of the engine.
    """

    takes_velocities = True

    def __init__(self, engine: Any, names: Sequence[str | None]) -> None:
        self._engine, self._names = engine, tuple(names)
        self._direct = DirectTangents(engine.drift, names, engine.threads.threads)
        drift, of = engine.drift, (engine.degree, engine.dimension)
        count = int(np.prod(drift.shape))
        self._changes = []
        for r in range(count):
            member, rows = drift.member(r), []
            nothing = [np.zeros(engine.degree + 1)] * (1 if engine.normaliser is None else 2)
            for name in self._names:
                rows.append(nothing if name is None else multiplier_changes(member, name, *of))
            self._changes.append(rows)

    def velocity(self, x: Dual, masses: Dual, *known: Any) -> Dual:
        engine, x, masses = self._engine, contiguous(x), contiguous(masses)
        v, dv = np.empty(x.shape), np.empty(x.changes.shape)
        lowest = None if engine.normaliser is None else np.broadcast_to(engine._lowest, len(x))
        before = known or (None, None)
        for r in range(len(x)):
            system = x.value[r], masses.value[r], x.changes[:, r], masses.changes[:, r]
            of_system = (None if each is None else each[r] for each in before)
            v[r], dv[:, r], level = self.of_system(r, *system, *of_system)
            if lowest is not None and level < lowest[r]:
                member = DirectTangents(engine.drift.member(r % len(self._changes)), self._names)
                by_pairs = member.velocity(x[r : r + 1], masses[r : r + 1])
                v[r], dv[:, r] = by_pairs.value[0], by_pairs.changes[:, 0]
        return Dual(v, dv)

    def multipliers(self, r: int) -> tuple[np.ndarray, np.ndarray | None, list[Any]]:
        """Multipliers of W and of Z of a system, and their changes along each tangent."""
        engine = self._engine
        attraction, normaliser = (
            m if m is None or m.ndim == 1 else m[r] for m in (engine.attraction, engine.normaliser)
        )
        return attraction, normaliser, self._changes[r % len(self._changes)]

    @abstractmethod
    def of_system(
        self, r: int, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray,
        known: np.ndarray | None, modes: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        """Velocities (n, d) of system r, their changes (p, n, d), and the least level.

        The system has tokens x (n, d) and masses (n,), with changes dx (p, n, d) and dm (p, n).
        `known` are its velocities (n, d), `modes` those of its measure; None where not known.
        """

    def attention(self, t: float, x: Dual, masses: Dual) -> Dual:
        return self._direct.attention(t, x, masses)

    def potential(self, x: Dual, masses: Dual, t: float = 0.0) -> Dual:
        return self._direct.potential(x, masses, t)


class SphereTangents(ModeTangents):
    """Tangents on S^2, by the same sums as the characteristics of densities."""

    def __init__(self, engine: Any, names: Sequence[str | None]) -> None:
        from ..spaces.sphere import Sphere

        super().__init__(engine, names)
        self._chart: Any = Sphere(1).chart(np.array([0.0, 0.0, 1.0]))

    def of_system(
        self, r: int, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray,
        known: np.ndarray | None, modes: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        attraction, normaliser, changes = self.multipliers(r)
        pairs = [(by[0], by[1] if len(by) > 1 else None) for by in changes]
        accuracy = max(TRANSFORM_ACCURACY, self._engine.accuracy)
        moments = None if modes is None else modes * factors(self._engine.degree)
        system = x, masses, dx, dm, (attraction, normaliser), pairs
        return self._chart.field_tangents(*system, accuracy, known, moments)
