"""Functions of points, and sums of drifts, from the engines of the parts."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from ..core.dual import Dual, changes_of, value_of
from ..models.changes import derivative_by
from ..models.pointwise import Pointwise
from .contract import Engine


class PointValues(Engine):
    """f(x_i) of a drift that is a function of points, for tokens (R, n, d).

    Parameters
    ----------
    drift : Pointwise
        Its parameters are numbers, or one for each replica.

    Notes
    -----
    f is called once with all tokens, or once for each member, in one thread.
    """

    name = "points"
    tangential = False

    def __init__(self, drift: Pointwise) -> None:
        self.drift = drift
        self._members = [drift.member(r) for r in range(*drift.shape)] if drift.shape else []

    def of_members(self, members: np.ndarray) -> Self:
        part = copy(self)
        part._members = [self._members[r] for r in members] if self._members else []
        return part

    def attention(self, t: float, x: np.ndarray, _masses: np.ndarray) -> np.ndarray:
        """f of the tokens, (R, n, d), at the time t, checked."""
        if not self._members:
            return self.drift.at(t).values(x)
        return np.stack([f.at(t).values(one) for f, one in zip(self._members, x, strict=True)])

    def with_tangents(self, names: Sequence[str | None]) -> "PointTangents":
        return PointTangents(self, names)


class CombinedSums(Engine):
    """Sums of the parts of a sum of drifts, added up with their factors.

    Parameters
    ----------
    factors : sequence of ndarray, each () or (R,)
    engines : sequence
        One for each part.
    whole : bool
        Whether `attention` is wanted as a whole, rather than up to what is along the tokens.

    Attributes
    ----------
    tangential : bool
        Whether all parts are engines of zonal drifts: see `Engine`.
    """

    def __init__(self, factors: Sequence[Any], engines: Sequence[Any], *, whole: bool) -> None:
        self._engines, self._whole = engines, whole
        self._factors = [np.reshape(factor, (-1, 1, 1)) for factor in factors]
        self.name = " + ".join(dict.fromkeys(engine.name for engine in engines))
        self.tangential = all(engine.tangential for engine in engines)

    def of_members(self, members: np.ndarray) -> Self:
        part = copy(self)
        part._engines = [engine.of_members(members) for engine in self._engines]
        part._factors = [c[members] if len(c) > 1 else c for c in self._factors]
        return part

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities (R, n, d), where all parts are tangential."""
        return self._total(lambda engine: engine.velocity(x, masses))

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The output of attention (R, n, d) at time t."""

        def of_one(engine: Any) -> np.ndarray:
            if engine.tangential and not self._whole:
                return engine.velocity(x, masses)
            return engine.attention(t, x, masses)

        return self._total(of_one)

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        """The potentials (R, n), where all parts have one."""
        return self._total(lambda engine: engine.potential(x, masses, t)[..., None])[..., 0]

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The interaction energies (R,); nan where a part has none."""
        return self._total(lambda engine: engine.energy(x, masses)[..., None, None])[..., 0, 0]

    def with_tangents(self, names: Sequence[str | None]) -> "CombinedTangents":
        """The sums and their derivatives, by parameters and factors of the parts."""
        found = []
        for k, engine in enumerate(self._engines):
            own = f"drifts[{k}]."
            inner = [n.removeprefix(own) if n and n.startswith(own) else None for n in names]
            found.append(engine.with_tangents(inner))
        factors = [np.array([name == f"factors[{k}]" for name in names]) for k in range(len(found))]
        return CombinedTangents(self._factors, factors, found, whole=self._whole)

    def _total(self, of: Callable[[Any], np.ndarray]) -> np.ndarray:
        pairs = zip(self._factors, self._engines, strict=True)
        return np.asarray(sum(factor * of(engine) for factor, engine in pairs))


class PointTangents:
    """f(x_i) of a drift that is a function of points, and its changes along those of the points."""

    tangential = False

    def __init__(self, values: PointValues, names: Sequence[str | None]) -> None:
        self._values, self._names, self._drift = values, names, values.drift

    def attention(
        self, t: float, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """f of the tokens, (R, n, d), and its changes, (p, R, n, d)."""
        found = self._values.attention(t, Dual(x, dx), masses)
        change, replicas = changes_of(found, len(dx)), range(len(x))
        members = [self._drift.member(r) for r in replicas] if self._drift.shape else [self._drift]
        for a, name in enumerate(self._names):
            if name is not None:
                change[a] += np.stack(
                    [self._by(name, members[r % len(members)], x[r]) for r in replicas]
                )
        return value_of(found), change

    @staticmethod
    def _by(name: str, drift: Any, x: np.ndarray) -> np.ndarray:
        """The derivative of f at points x (n, d) by a parameter."""

        def values(many: Any) -> np.ndarray:
            return np.stack([many.member(i).values(x) for i in range(*many.shape)])

        return derivative_by(drift, name, values)


class CombinedTangents:
    """Sums and changes of the parts of a sum of drifts, added up with their factors.

    Parameters
    ----------
    factors : sequence of ndarray, each (1, 1) or (R, 1, 1)
    by_factors : sequence of ndarray of bool, (p,)
        Which tangents change each of them, at the rate 1.
    parts : sequence
        One for each part, with its tangents.
    whole : bool
        As for `CombinedSums`.
    """

    def __init__(self, factors: Any, by_factors: Any, parts: Any, *, whole: bool) -> None:
        self._factors, self._by_factors, self._parts = factors, by_factors, parts
        self._whole = whole
        self.tangential = all(part.tangential for part in parts)

    def velocity(self, *given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocities and their changes, where all parts are tangential."""
        return self._total(lambda part: part.velocity(*given))

    def attention(self, t: float, *given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The output of attention at time t, and its changes."""

        def of_one(part: Any) -> tuple[np.ndarray, np.ndarray]:
            if part.tangential and not self._whole:
                return part.velocity(*given)
            return part.attention(t, *given)

        return self._total(of_one)

    def potential(self, *given: Any) -> tuple[np.ndarray, np.ndarray]:
        """The potentials (R, n) and their changes (p, R, n)."""

        def of_one(part: Any) -> tuple[np.ndarray, np.ndarray]:
            found, change = part.potential(*given)
            return found[..., None], change[..., None]

        found, change = self._total(of_one)
        return found[..., 0], change[..., 0]

    def _total(self, of: Callable[[Any], Any]) -> tuple[np.ndarray, np.ndarray]:
        total, changed = 0.0, 0.0
        for factor, by, part in zip(self._factors, self._by_factors, self._parts, strict=True):
            found, change = of(part)
            total = total + factor * found
            changed = changed + factor * change + by[:, None, None, None] * found
        return np.asarray(total), np.asarray(changed)


class MemberSums(Engine):
    """Engines for groups of the members of an ensemble, each group with its own.

    Parameters
    ----------
    groups : sequence of (ndarray, engine)
        The numbers of the members (R',), and the engine of these.

    Attributes
    ----------
    tangential : bool
        Whether all are engines of zonal drifts: see `Engine`.
    """

    def __init__(self, groups: Sequence[tuple[np.ndarray, Any]]) -> None:
        self._groups = groups
        self.name = " + ".join(dict.fromkeys(engine.name for _, engine in groups))
        self.tangential = all(engine.tangential for _, engine in groups)

    def of_members(self, members: np.ndarray) -> Self:
        groups = []
        for numbers, engine in self._groups:
            positions = np.flatnonzero(np.isin(members, numbers))
            if positions.size:
                inside = np.searchsorted(numbers, members[positions])
                groups.append((positions, engine.of_members(inside)))
        return type(self)(groups)

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities (R, n, d), where all groups are tangential."""
        return self._each(x, lambda engine, of: engine.velocity(x[of], masses[of]))

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The output of attention (R, n, d) at time t."""
        return self._each(x, lambda engine, of: engine.attention(t, x[of], masses[of]))

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        return self._each(masses, lambda engine, of: engine.potential(x[of], masses[of], t))

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The interaction energies (R,)."""
        return self._each(masses[:, 0], lambda engine, of: engine.energy(x[of], masses[of]))

    def _each(self, like: np.ndarray, of: Callable[[Any, np.ndarray], np.ndarray]) -> np.ndarray:
        result = np.empty(like.shape)
        for members, engine in self._groups:
            result[members] = of(engine, members)
        return result
