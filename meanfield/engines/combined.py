"""Engines of drifts that are functions of points, of sums of drifts, and of ensembles."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from ..core.annotations import Values
from ..core.dual import Dual, changes_of, value_of
from ..models.changes import derivative_by
from ..models.pointwise import Pointwise
from .contract import Engine


class PointValues(Engine):
    """Values f(x_i) of a drift that is a function of points, for tokens (R, n, d).

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
    _names: tuple[str | None, ...] = ()  # parameters that change along the tangents

    def __init__(self, drift: Pointwise) -> None:
        self.drift = drift
        self._members = [drift.member(r) for r in range(*drift.shape)] if drift.shape else []

    def of_members(self, members: np.ndarray) -> Self:
        chosen = copy(self)
        chosen._members = [self._members[r] for r in members] if self._members else []
        return chosen

    def attention(self, t: float, x: np.ndarray, _masses: np.ndarray) -> np.ndarray:
        """Values of f at the tokens, (R, n, d), at the time t, checked."""
        fs = self._members or [self.drift]
        if self._members:
            values = np.stack([f.at(t).values(points) for f, points in zip(fs, x, strict=True)])
        else:
            values = self.drift.at(t).values(x)
        if not isinstance(x, Dual):
            return values
        changes, rows = changes_of(values, len(self._names)), range(len(x))
        for a, name in enumerate(self._names):
            if name is not None:
                changes[a] += np.stack(
                    [derivative_by(fs[r % len(fs)], name, _values_at(x.value[r])) for r in rows]
                )
        return Dual(value_of(values), changes)

    def potential(self, x: Values, _masses: Values, _t: float = 0.0) -> Values:
        """V at the tokens, (R, n), of a `Potential`."""
        drift: Any = self.drift
        if isinstance(x, Dual):
            slopes = drift.values(x.value)
            return Dual(drift.level(x.value), (slopes * x.changes).sum(axis=-1))
        return drift.level(x)

    def with_tangents(self, names: Sequence[str | None]) -> Self:
        copied = copy(self)
        copied._names = tuple(names)
        return copied


def _values_at(x: np.ndarray) -> Callable[[Any], np.ndarray]:
    """Function of an ensemble of drifts: their values at points x (n, d), (members, n, d)."""
    return lambda drifts: np.stack([drifts.member(i).values(x) for i in range(*drifts.shape)])


class CombinedSums(Engine):
    """Engine of a sum of drifts: the sums of its parts, times their factors.

    Parameters
    ----------
    factors : sequence of ndarray, each () or (R,)
    engines : sequence
        One for each part.
    whole : bool
        Whether `attention` includes radial components; else they may be missing.

    Attributes
    ----------
    tangential : bool
        Whether all parts are engines of zonal drifts: see `Engine`.
    """

    def __init__(self, factors: Sequence[Any], engines: Sequence[Any], *, whole: bool) -> None:
        """Sum of engines times factors, numbers or one for each replica."""
        self._engines, self._whole = list(engines), whole
        self._factors: list[Any] = [np.reshape(factor, (-1, 1, 1)) for factor in factors]
        self.name = " + ".join(dict.fromkeys(engine.name for engine in engines))
        self.tangential = all(engine.tangential for engine in engines)

    def of_members(self, members: np.ndarray) -> Self:
        """Engine of the members of an ensemble with these indices."""
        chosen = copy(self)
        chosen._engines = [engine.of_members(members) for engine in self._engines]
        chosen._factors = [c[members] if len(c) > 1 else c for c in self._factors]
        return chosen

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

    def with_tangents(self, names: Sequence[str | None]) -> Self:
        """The engine of `Dual` tokens, whose sums also change with parameters and factors of parts.

        Names are those of the sum, "drifts[k].name" and "factors[k]".
        """
        copied = copy(self)
        copied._engines, copied._factors = [], []
        for k, (engine, factor) in enumerate(zip(self._engines, self._factors, strict=True)):
            prefix = f"drifts[{k}]."
            inner = [n.removeprefix(prefix) if n and n.startswith(prefix) else None for n in names]
            copied._engines.append(engine.with_tangents(inner))
            rates = np.array([float(name == f"factors[{k}]") for name in names])
            changes = np.multiply.outer(rates, np.ones_like(factor))
            copied._factors.append(Dual(factor, changes) if rates.any() else factor)
        return copied

    def _total(self, of: Callable[[Any], np.ndarray]) -> Any:
        pairs = zip(self._factors, self._engines, strict=True)
        return sum(factor * of(engine) for factor, engine in pairs)


class MemberSums(Engine):
    """Engines for groups of the members of an ensemble, each group with its own.

    Parameters
    ----------
    groups : sequence of (ndarray, engine)
        The indices (R',) of the members of a group, in increasing order, and its engine.

    Attributes
    ----------
    tangential : bool
        Whether all engines are those of zonal drifts: see `Engine`.
    """

    def __init__(self, groups: Sequence[tuple[np.ndarray, Any]]) -> None:
        self._groups = groups
        self.name = " + ".join(dict.fromkeys(engine.name for _, engine in groups))
        self.tangential = all(engine.tangential for _, engine in groups)

    def of_members(self, members: np.ndarray) -> Self:
        """Engine of the members of an ensemble with these indices."""
        groups = []
        for numbers, engine in self._groups:
            positions = np.flatnonzero(np.isin(members, numbers))
            if positions.size:
                places = np.searchsorted(numbers, members[positions])
                groups.append((positions, engine.of_members(places)))
        return type(self)(groups)

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities (R, n, d), where all groups are tangential."""
        return self._each(x, lambda engine, rows: engine.velocity(x[rows], masses[rows]))

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The output of attention (R, n, d) at time t."""
        return self._each(x, lambda engine, rows: engine.attention(t, x[rows], masses[rows]))

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        return self._each(masses, lambda engine, rows: engine.potential(x[rows], masses[rows], t))

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The interaction energies (R,)."""
        return self._each(masses[:, 0], lambda engine, rows: engine.energy(x[rows], masses[rows]))

    def _each(self, like: np.ndarray, apply: Callable[[Any, np.ndarray], np.ndarray]) -> np.ndarray:
        """Array like `like` with apply(engine, members) in the rows of each group of members."""
        result = np.empty(like.shape)
        for members, engine in self._groups:
            result[members] = apply(engine, members)
        return result
