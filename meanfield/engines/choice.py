"""Which engine computes the velocities: by the drift, the caller, or an estimate of the cost."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..core.checks import as_given
from ..core.errors import MeanfieldError
from ..core.forms import Natural, Positive
from ..core.kinds import Kind, ancestor
from ..models import Attention, Drift, Hardmax, MeanField, Pointwise, ZonalDrift
from .attention import AttentionSums
from .circle import CircleModes
from .combined import CombinedSums, PointValues
from .contract import Engine
from .direct import DirectSums, MeanDirection
from .harmonics import FINEST, ROUNDING, HarmonicEngine
from .sphere import SphereModes

MODES: dict[int, type[HarmonicEngine]] = {
    kind.dimension: kind for kind in (CircleModes, SphereModes)
}

FEWEST = 256  # below, all pairs take 60 us at most, and no error at all
NODES = 65  # of inner products at which Z is looked at
WHOLE = "The field of densities under a drift that is not zonal"
OF_FIELDS = 1e-12  # accuracy of velocities in a field that was solved


class Summation(Kind, family=True):
    """How velocities of tokens are summed: it builds an engine.

    Attributes
    ----------
    leaves_open : bool
        Whether any engine will do, also that of a drift that has one alone.
    whole : bool
        Whether its engine can give the whole output of attention, and potentials.
    """

    leaves_open: ClassVar[bool] = False
    whole: ClassVar[bool] = False

    @abstractmethod
    def build(self, drift: ZonalDrift, n: int, d: int) -> Engine:
        """The engine for systems of n tokens in R^d."""


class Direct(Summation):
    """Velocities by sums over all pairs of tokens, O(n^2 d): exact, in every dimension.

    Parameters
    ----------
    threads : int
        Results are the same, bit for bit, for every number of threads.
    """

    whole = True

    threads: Natural = 1

    def build(self, drift: ZonalDrift, n: int, d: int) -> Engine:
        return DirectSums(drift, self.threads)


class Modes(Summation):
    """Velocities by the harmonics of the tokens' measure, O(n): on the circle and on S^2.

    Parameters
    ----------
    tolerance : float
        Accuracy of each velocity relative to the largest that a unit mass exerts on any token.
        Tokens that have all but met move by less than that.
    threads : int
        Results are the same, bit for bit, for every number of threads.
    """

    tolerance: Positive = 1e-10
    threads: Natural = 1

    def build(self, drift: ZonalDrift, n: int, d: int) -> Engine:
        """The engine for systems of n tokens in R^d.

        Raises
        ------
        ValueError
            If d is not 2 or 3.
        MeanfieldError
            If the harmonics of the drift do not decay.
        """
        if d not in MODES:
            raise ValueError(
                f"Modes are those of the circle and of S^2, d = 2 or 3; got d = {d}. Use Direct()."
            )
        return MODES[d](drift, self.tolerance, self.threads)


class Automatic(Summation):
    """The engine of the lowest estimated cost.

    The mean where the kernel is constant (Kuramoto, beta = 0); on the circle and on S^2 the modes,
    if they are faster than all pairs and can be as accurate as `tolerance`; else all pairs.

    Parameters
    ----------
    tolerance, threads
        As for `Modes`.
    """

    leaves_open = whole = True

    tolerance: Positive = 1e-10
    threads: Natural = 1

    def build(self, drift: ZonalDrift, n: int, d: int) -> Engine:
        if drift.exponent is not None and not np.any(drift.exponent):
            return MeanDirection(drift)
        if d in MODES and n >= FEWEST and _accurate(drift, self.tolerance):
            try:
                engine = MODES[d](drift, self.tolerance, self.threads)
            except MeanfieldError:  # its harmonics do not decay
                return DirectSums(drift, self.threads)
            if engine.cost(n) < DirectSums.cost_of(drift, n):
                return engine
        return DirectSums(drift, self.threads)


def _accurate(drift, tolerance):
    """Whether modes are as accurate as that, also where tokens repel and gather.

    The level at a point mass is Z(1), known to rounding of the largest Z.
    """
    t = np.broadcast_to(np.linspace(1, -1, NODES), (*drift.shape, NODES))
    weights = np.abs(drift.weight(t))
    lowest = (weights[..., 0] / weights.max(axis=-1)).min()
    return tolerance >= 10 * FINEST and tolerance * lowest >= ROUNDING


class FieldSums:
    """v[mu_t](x_i) for tokens (R, n, d) in the field of densities.

    In O(n) for each degree under zonal drifts; under others by sums over tokens and the points of
    the grid, which has the masses.

    Parameters
    ----------
    drift : MeanField
    threads : int
    """

    name = "field"
    tangential = False

    def __init__(self, drift: MeanField, threads: int = 1):
        self.drift, self._zonal = drift, drift.source.is_zonal
        if self._zonal:
            source, dimension = drift.source.as_zonal(), drift.geometry.dimension
            self._sums: Any = MODES[dimension](source, OF_FIELDS, threads)
        else:
            size = drift.geometry.points.shape
            self._sums = engine_for(
                drift.source, Automatic(threads=threads), *size, whole_for=WHOLE
            )

    def attention(self, t: float, x: np.ndarray, _masses: np.ndarray) -> np.ndarray:
        """The velocities (R, n, d) at time t, tangential under zonal drifts."""
        if not self._zonal:
            return self._among_points(t, x)
        kept = self.drift.geometry.resample(self.drift.coefficients(t), self._sums.degree)
        modes = self._sums.of_density(kept)
        modes = np.broadcast_to(modes, (len(x), modes.size))
        return self._sums.fields(x, self._sums.places(x), modes)[0]

    def _among_points(self, t: float, x: np.ndarray) -> np.ndarray:
        """The whole output of attention: the tokens have no mass, the points of the grid have."""
        geometry, replicas, n = self.drift.geometry, len(x), x.shape[1]
        masses = geometry.weights * geometry.to_values(self.drift.coefficients(t))
        points = np.broadcast_to(geometry.points, (replicas, *geometry.points.shape))
        all_masses = np.broadcast_to(np.append(np.zeros(n), masses), (replicas, n + masses.size))
        found = self._sums.attention(t, np.concatenate([x, points], axis=1), all_masses)
        return found[:, :n]

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """nan (R,): tokens in a field do not interact."""
        return self.drift.interaction_energy(x, masses)


SUMS: dict[Any, Callable[..., Any]] = {
    Attention: AttentionSums,
    Hardmax: AttentionSums,
    MeanField: FieldSums,
    Pointwise: PointValues,
}  # of drifts that have one way to sum over tokens


def _kind_of(drift: Drift) -> type[Drift]:
    """The class by which it is known how a drift is summed."""
    known: list[Any] = [ZonalDrift, *SUMS]
    kind: type[Drift] | None = ancestor(type(drift), known)
    if kind is not None:
        return kind
    names = ", ".join(each.__name__ for each in known)
    raise MeanfieldError(
        f"Tokens know no sums for {type(drift).__name__}; they know those of {names} and of "
        "classes derived from them."
    )


def engine_for(drift: Any, asked: Any, n: int, d: int, *, whole_for: str = "") -> Any:
    """What sums over n tokens in R^d, or replicas of them, under a drift.

    Parameters
    ----------
    drift : Drift
        Its parameters are numbers, or one for each replica.
    asked : Summation or None
        What the caller asks for.
    whole_for : str
        What needs more than tangential velocities, for an error message; empty if nothing does.

    Raises
    ------
    TypeError
        For what is no Summation.
    ValueError
        For one that does not fit.
    MeanfieldError
        For a drift that nothing is known to sum.
    """
    if asked is not None and not isinstance(asked, Summation):
        names = ", ".join(f"engines.{name}(...)" for name in Summation.kinds)
        raise TypeError(f"engine must be one of {names}; got {as_given(asked)}.")
    asked = Automatic() if asked is None else asked
    factors, parts = zip(*drift.terms, strict=True)
    if parts != (drift,):
        some_choose = not all(_kind_of(part) in SUMS for part in parts)
        others = Automatic(threads=asked.threads) if some_choose else asked
        engines = [
            engine_for(part, others if _kind_of(part) in SUMS else asked, n, d, whole_for=whole_for)
            for part in parts
        ]
        return CombinedSums(factors, engines, whole=bool(whole_for))
    kind, name = _kind_of(drift), type(drift).__name__
    if kind in SUMS:
        if not asked.leaves_open:
            raise ValueError(
                f"{name} has one way to sum over tokens; leave out engine = {asked!r}, or give "
                "engines.Automatic(threads=...)."
            )
        return SUMS[kind](drift, threads=asked.threads)
    if whole_for:
        if not asked.whole:
            raise ValueError(
                f"{whole_for}, which engines.Direct gives; got engine = {as_given(asked)}."
            )
        asked = Direct(threads=asked.threads)
    return asked.build(drift, n, d)
