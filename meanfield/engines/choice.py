"""Which engine computes the velocities: by the drift, the caller, or an estimate of the cost."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from ..core.checks import as_given
from ..core.errors import MeanfieldError
from ..core.forms import Natural, Positive
from ..core.kinds import Kind, ancestor
from ..models import Attention, Causal, Drift, Hardmax, MeanField, Pointwise, ZonalDrift
from .attention import AttentionSums
from .attention_modes import AttentionModes, NoModes
from .causal import CausalAttention, CausalMean, CausalSums
from .causal_modes import CausalModes
from .circle import CircleModes
from .combined import CombinedSums, MemberSums, PointValues
from .contract import Engine
from .direct import DirectSums, MeanDirection
from .harmonics import FINEST, ROUNDING, HarmonicEngine
from .kernels import FINEST as FINEST_KERNEL
from .sphere import SphereModes

MODES: dict[int, type[HarmonicEngine]] = {
    kind.dimension: kind for kind in (CircleModes, SphereModes)
}

FEWEST = 256  # below, all pairs take 60 us at most, and no error at all
NODES = 65  # of inner products at which Z is looked at
OF_FIELDS = 1e-12  # accuracy of velocities in a field that was solved
MODES_OF_ATTENTION = 1e-11  # the highest accuracy for which they are chosen


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
    def build(self, drift: ZonalDrift, n: int, d: int, causal: Causal | None = None) -> Engine:
        """The engine for systems of n tokens in R^d; where `causal`, that see what comes before."""

    @abstractmethod
    def of_attention(self, drift: Attention, n: int, d: int, *, on_sphere: bool) -> AttentionSums:
        """The engine of attention with matrices."""


class Direct(Summation):
    """Velocities by sums over all pairs of tokens, O(n^2 d): exact, in every dimension.

    Parameters
    ----------
    threads : int
        Results are the same, bit for bit, for every number of threads.
    """

    whole = True

    threads: Natural = 1

    def build(self, drift: ZonalDrift, n: int, d: int, causal: Causal | None = None) -> Engine:
        if causal is not None:
            return CausalSums(drift, causal, self.threads)
        return DirectSums(drift, self.threads)

    def of_attention(self, drift: Attention, n: int, d: int, *, on_sphere: bool) -> AttentionSums:
        return AttentionSums(drift, self.threads)


class Modes(Summation):
    """Velocities by the harmonics of the tokens' measure, O(n): on the circle and on S^2.

    Drifts are zonal, or `Attention` that is not causal. Under `Transformer(causal=...)` tokens see
    the blocks before theirs by harmonics, and their own by pairs.

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

    def build(self, drift: ZonalDrift, n: int, d: int, causal: Causal | None = None) -> Engine:
        """The engine for systems of n tokens in R^d; where `causal`, that see what comes before.

        Raises
        ------
        ValueError
            If d is not 2 or 3, or `causal` has a window, a decay or a beta by place.
        MeanfieldError
            If the harmonics of the drift do not decay.
        """
        if d not in MODES:
            raise ValueError(
                f"Modes are those of the circle and of S^2, d = 2 or 3; got d = {d}. Use Direct()."
            )
        engine = MODES[d](drift, self.tolerance, self.threads)
        if causal is None:
            return engine
        if not causal.plain:
            raise ValueError(
                "Modes are summed up to each token, which sees all before it alike; with window, "
                f"decay or beta by place use Direct(); got {causal!r}."
            )
        return CausalModes(engine, causal)

    def of_attention(self, drift: Attention, n: int, d: int, *, on_sphere: bool) -> AttentionSums:
        """Raises ValueError for causal attention, or points that are not on the circle or S^2."""
        if d not in MODES or not on_sphere or drift.causal:
            what = (
                "causal attention" if drift.causal else "on the sphere" if on_sphere else "in R^d"
            )
            raise ValueError(
                "Modes of attention are those of tokens on the circle and on S^2, d = 2 or 3, that "
                f"attend to all tokens; got {what}, d = {d}. Use Direct()."
            )
        return AttentionModes(drift, self.tolerance, self.threads, strict=True)


class Automatic(Summation):
    """The engine of the lowest estimated cost.

    The mean where the kernel is constant (Kuramoto, beta = 0); on the circle and on S^2 the modes,
    if they are faster than all pairs and can be as accurate as `tolerance`; else all pairs. So for
    `Attention`, whose weights are summed over pairs where they have too many harmonics.

    Parameters
    ----------
    tolerance, threads
        As for `Modes`.
    """

    leaves_open = whole = True

    tolerance: Positive = 1e-10
    threads: Natural = 1

    def build(self, drift: ZonalDrift, n: int, d: int, causal: Causal | None = None) -> Engine:
        pairs = Direct(self.threads)
        if causal is not None and not causal.plain:
            return pairs.build(drift, n, d, causal)
        if drift.exponent is not None and not np.any(drift.exponent):
            return MeanDirection(drift) if causal is None else CausalMean(drift, causal)
        if d in MODES and n >= FEWEST and _accurate(drift, self.tolerance):
            try:
                engine: Any = Modes(self.tolerance, self.threads).build(drift, n, d, causal)
            except MeanfieldError:  # its harmonics do not decay
                return pairs.build(drift, n, d, causal)
            if engine.cost(n) < (DirectSums if causal is None else CausalSums).cost_of(drift, n):
                return engine
        return pairs.build(drift, n, d, causal)

    def of_attention(self, drift: Attention, n: int, d: int, *, on_sphere: bool) -> AttentionSums:
        possible = on_sphere and self.tolerance >= MODES_OF_ATTENTION
        if possible and AttentionModes.pays(drift, n, d):
            return AttentionModes(drift, self.tolerance, self.threads)
        return AttentionSums(drift, self.threads)


def _accurate(drift, tolerance):
    """Whether modes are as accurate as that, also where tokens repel and gather.

    The level at a point mass is Z(1), known to rounding of the largest Z.
    """
    t = np.broadcast_to(np.linspace(1, -1, NODES), (*drift.shape, NODES))
    weights = np.abs(drift.weight(t))
    lowest = (weights[..., 0] / weights.max(axis=-1)).min()
    return tolerance >= 10 * FINEST and tolerance * lowest >= ROUNDING


class FieldSums:
    """v[mu_t](x_i) for tokens (R, n, d) in the field of densities, in O(n) for each degree.

    Sums over the points of the grid, which has the masses, where `Attention` has no modes, and for
    the whole output of zonal drifts.

    Parameters
    ----------
    drift : MeanField
    threads : int
    whole : bool
        Whether `attention` is wanted as a whole, rather than up to what is along the tokens.
    """

    name = "field"
    tangential = False

    def __init__(self, drift: MeanField, threads: int = 1, *, whole: bool = False):
        self.drift = drift
        source = drift.source.as_zonal() if drift.source.is_zonal else drift.source
        parts: dict[Any, Any] = {
            ZonalDrift: ZonalPoints if whole else zonal_field,
            Attention: AttentionPoints,
            Pointwise: FieldValues,
        }
        self._parts: list[Any] = [
            (factor, parts[_kind_of(part)](part, drift.space, threads))
            for factor, part in source.terms
        ]

    def attention(self, t: float, x: np.ndarray, _masses: np.ndarray) -> np.ndarray:
        """The output of attention (R, n, d) at time t; tangential under zonal drifts."""
        coefficients = self.drift.coefficients(t)
        found = [factor * part(t, x, coefficients) for factor, part in self._parts]
        return sum(found[1:], found[0])

    def with_tangents(self, names: Any) -> Any:
        """Not known: MeanfieldError."""
        raise MeanfieldError(
            "Derivatives of tokens that move in the field of densities, MeanField, are not known. "
            "Leave tangents out, or solve for interacting tokens."
        )

    def of_members(self, _members: np.ndarray) -> Self:
        """The engine of some of the systems: all are in one field."""
        return self

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """nan (R,): tokens in a field do not interact."""
        return self.drift.interaction_energy(x, masses)


class ZonalModes:
    """Velocities at tokens under a zonal drift, from the coefficients of a density."""

    def __init__(self, drift: ZonalDrift, space: Any, threads: int):
        self._space, self._sums = space, MODES[space.dimension](drift, OF_FIELDS, threads)

    def __call__(self, t: float, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        kept = self._space.resample(coefficients, self._sums.degree)
        modes = self._sums.of_density(kept)
        modes = np.broadcast_to(modes, (len(x), modes.size))
        return self._sums.fields(x, self._sums.places(x), modes)[0]


class ZonalPoints:
    """Attention at tokens under a zonal drift: they have no mass, the points of the grid have."""

    def __init__(self, drift: ZonalDrift, space: Any, threads: int):
        self._space, self._sums = space, DirectSums(drift, threads)

    def __call__(self, t: float, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        points, masses = masses_of(self._space, coefficients, len(x))
        masses = np.concatenate([np.zeros(x.shape[:2]), masses], axis=1)
        found = self._sums.attention(t, np.concatenate([x, points], axis=1), masses)
        return found[:, : x.shape[1]]


def zonal_field(drift: ZonalDrift, space: Any, threads: int) -> ZonalModes | ZonalPoints:
    """Velocities by modes; over the points of the grid for kernels that are not smooth."""
    try:
        return ZonalModes(drift, space, threads)
    except MeanfieldError:
        return ZonalPoints(drift, space, threads)


class AttentionPoints:
    """Attention at tokens in the field of a density, which the points of a grid stand for.

    By the harmonics of a grid that integrates them, or by sums over the grid of the density.
    """

    def __init__(self, drift: Attention, space: Any, threads: int):
        self._coarse, self._pairs = space, AttentionSums(drift, threads)
        self._fine = space.with_degree(max(space.degree, FINEST_KERNEL))
        self._sums = AttentionModes(drift, threads=threads, strict=True)

    def __call__(self, t: float, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        fine = self._coarse.resample(coefficients, self._fine.degree)
        try:
            return self._sums.attention(t, *masses_of(self._fine, fine, 1), at=x)
        except NoModes:
            return self._pairs.attention(t, *masses_of(self._coarse, coefficients, len(x)), at=x)


class FieldValues:
    """A function of points, which no density changes."""

    def __init__(self, drift: Pointwise, _space: Any, threads: int):
        self._values = PointValues(drift, threads)

    def __call__(self, t: float, x: np.ndarray, _coefficients: np.ndarray) -> np.ndarray:
        return self._values.attention(t, x, np.empty(0))


def masses_of(space: Any, coefficients: np.ndarray, replicas: int) -> tuple[Any, Any]:
    """The points of a grid and their masses under a density, so many times."""
    masses = space.weights * space.to_values(coefficients)
    points = np.broadcast_to(space.points, (replicas, *space.points.shape))
    return points, np.broadcast_to(masses, (replicas, masses.size))


SUMS: dict[Any, Callable[..., Any]] = {
    Hardmax: AttentionSums,
    MeanField: FieldSums,
    Pointwise: PointValues,
}  # of drifts that have one way to sum over tokens


def _kind_of(drift: Drift) -> type[Drift]:
    """The class by which it is known how a drift is summed."""
    known: list[Any] = [ZonalDrift, Attention, *SUMS]
    kind: type[Drift] | None = ancestor(type(drift), known)
    if kind is not None:
        return kind
    names = ", ".join(each.__name__ for each in known)
    raise MeanfieldError(
        f"Tokens know no sums for {type(drift).__name__}; they know those of {names} and of "
        "classes derived from them."
    )


def engine_for(
    drift: Any,
    asked: Any,
    n: int,
    d: int,
    *,
    whole_for: str = "",
    on_sphere: bool = True,
    causal: Causal | None = None,
) -> Any:
    """What sums over n tokens in R^d, or replicas of them, under a drift.

    Parameters
    ----------
    drift : Drift
        Its parameters are numbers, or one for each replica.
    asked : Summation or None
        What the caller asks for.
    whole_for : str
        What needs more than tangential velocities, for an error message; empty if nothing does.
    on_sphere : bool
        Whether tokens are unit vectors.
    causal : Causal, optional
        Whether tokens see only what comes before, and how much of it.

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
        options: Any = {"whole_for": whole_for, "on_sphere": on_sphere, "causal": causal}
        engines = [
            engine_for(part, others if _kind_of(part) in SUMS else asked, n, d, **options)
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
        if kind is MeanField:
            return FieldSums(drift, asked.threads, whole=bool(whole_for))
        return SUMS[kind](drift, threads=asked.threads)
    if kind is Attention and causal is not None:
        if not asked.whole:
            raise ValueError(
                f"Causal attention is summed over pairs, by engines.Direct; got {as_given(asked)}."
            )
        return CausalAttention(drift, causal, asked.threads)
    if kind is Attention:
        return asked.of_attention(drift, n, d, on_sphere=on_sphere)
    if whole_for:
        if not asked.whole:
            raise ValueError(
                f"{whole_for}, which engines.Direct gives; got engine = {as_given(asked)}."
            )
        asked = Direct(threads=asked.threads)
    build = partial(asked.build, n=n, d=d, causal=causal)
    return _by_members(drift, asked, build) if drift.shape else build(drift)


def _by_members(drift: ZonalDrift, asked: Any, build: Callable[[ZonalDrift], Engine]) -> Any:
    """The engine of an ensemble (R,), each member summed as it is alone, to the last bit.

    Sums over pairs take any members together; harmonics those whose parameters are the same.
    """
    found = np.stack([np.broadcast_to(v, drift.shape) for v in drift.parameters.values()], axis=1)
    kinds, kind_of = np.unique(found, axis=0, return_inverse=True)
    groups: dict[Any, Any] = {}
    for kind in range(len(kinds)):
        members = np.flatnonzero(kind_of == kind)
        engine = build(drift.member(members[0]))
        together = isinstance(engine, DirectSums | MeanDirection)
        groups.setdefault(type(engine) if together else kind, []).append((members, engine))
    engines = []
    for alike in groups.values():
        members = np.sort(np.concatenate([numbers for numbers, _ in alike]))
        engine = alike[0][1]
        if len(alike) > 1:
            part = drift.member(members)
            engine = type(engine)(*((part, asked.threads) if engine.name == "direct" else (part,)))
        engines.append((members, engine))
    return engines[0][1] if len(engines) == 1 else MemberSums(engines)
