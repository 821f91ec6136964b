"""Engines of drifts that are functions of points, of sums of drifts, and of ensembles."""

from abc import abstractmethod
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


class CompositeSums(Engine):
    """Engine made of other engines, whose results are joined by `_joined`.

    Attributes
    ----------
    tangential : bool
        Whether all engines are those of zonal drifts: see `Engine`.
    """

    _whole = True  # whether `attention` includes radial components; else they may be missing

    def __init__(self, engines: Sequence[Any]) -> None:
        self.name = " + ".join(dict.fromkeys(engine.name for engine in engines))
        self.tangential = all(engine.tangential for engine in engines)

    @abstractmethod
    def _joined(self, compute: Callable[..., Any], x: Values, masses: Values) -> Any:
        """Join the results of compute(engine, tokens, masses), whose first axis has the systems."""

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities (R, n, d), where all engines are tangential."""
        return self._joined(lambda engine, x, m: engine.velocity(x, m), x, masses)

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The output of attention (R, n, d) at time t."""

        def compute(engine: Any, x: Values, m: Values) -> Values:
            tangential = engine.tangential and not self._whole
            return engine.velocity(x, m) if tangential else engine.attention(t, x, m)

        return self._joined(compute, x, masses)

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        """The potentials (R, n), where all engines have one."""
        return self._joined(lambda engine, x, m: engine.potential(x, m, t), x, masses)

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The interaction energies (R,); nan where an engine has none."""
        return self._joined(lambda engine, x, m: engine.energy(x, m), x, masses)


class CombinedSums(CompositeSums):
    """Engine of a sum of drifts: the sums of its parts, times their factors.

    Parameters
    ----------
    factors : sequence of ndarray, each () or (R,)
    engines : sequence
        One for each part.
    whole : bool
        Whether `attention` includes radial components; else they may be missing.
    """

    def __init__(self, factors: Sequence[Any], engines: Sequence[Any], *, whole: bool) -> None:
        """Sum of engines times factors, numbers or one for each replica."""
        super().__init__(engines)
        self._engines, self._whole = list(engines), whole
        self._factors: list[Any] = [np.reshape(factor, -1) for factor in factors]

    def of_members(self, members: np.ndarray) -> Self:
        """Engine of the members of an ensemble with these indices."""
        chosen = copy(self)
        chosen._engines = [engine.of_members(members) for engine in self._engines]
        chosen._factors = [c[members] if len(c) > 1 else c for c in self._factors]
        return chosen

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

    def _joined(self, compute: Callable[..., Any], x: Values, masses: Values) -> Any:
        """The sum of the results, times the factors."""
        results = [compute(engine, x, masses) for engine in self._engines]
        return sum(
            factor.reshape(-1, *(1,) * (result.ndim - 1)) * result
            for factor, result in zip(self._factors, results, strict=True)
        )


class MemberSums(CompositeSums):
    """Engines for groups of the members of an ensemble, each group with its own.

    Parameters
    ----------
    groups : sequence of (ndarray, engine)
        The indices (R',) of the members of a group, in increasing order, and its engine.
    """

    def __init__(self, groups: Sequence[tuple[np.ndarray, Any]]) -> None:
        super().__init__([engine for _, engine in groups])
        self._groups = groups

    def of_members(self, members: np.ndarray) -> Self:
        """Engine of the members of an ensemble with these indices."""
        groups = []
        for numbers, engine in self._groups:
            positions = np.flatnonzero(np.isin(members, numbers))
            if positions.size:
                places = np.searchsorted(numbers, members[positions])
                groups.append((positions, engine.of_members(places)))
        return type(self)(groups)

    def _joined(self, compute: Callable[..., Any], x: Values, masses: Values) -> Any:
        """The results of each group in the rows of its members."""
        results = [compute(engine, x[rows], masses[rows]) for rows, engine in self._groups]
        joined = np.empty((len(x), *results[0].shape[1:]))
        for (rows, _), result in zip(self._groups, results, strict=True):
            joined[rows] = result
        return joined
