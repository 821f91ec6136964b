"""Choice of the engine that computes velocities: by the drift, the caller, or the cost."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..core.checks import as_given
from ..core.errors import MeanfieldError
from ..core.forms import Natural, Positive
from ..core.kinds import Kind, ancestor
from ..models import (
    Attention,
    Causal,
    Drift,
    Hardmax,
    HigherOrder,
    MeanField,
    PairKernel,
    Pointwise,
    ZonalDrift,
)
from ..models.zonal import kernel_degree
from ..spaces.torus import Torus
from .attention import AttentionSums
from .attention_modes import AttentionModes
from .causal import CausalAttention, CausalMean, CausalSums
from .causal_modes import LEVEL_NODES, CausalModes
from .combined import CombinedSums, MemberSums, PointValues
from .contract import Engine
from .direct import DirectSums, MeanDirection
from .field_sums import MODES_BY_DIMENSION, FieldSums
from .harmonics import FINEST_ACCURACY, HARMONIC_ROUNDING
from .many_body import MomentSums
from .pair_kernels import PairSums
from .torus import TorusSums

FEWEST_FOR_MODES = 256  # fewer tokens keep the digits of faint forces, which last for e^(c beta)
FAINT_NODES = 6  # nodes at which W' may be small because it has a root
FEW_DEGREES = (64,)  # searched for few tokens: on rough kernels a longer search takes seconds
FINEST_MODES_OF_ATTENTION = 1e-11  # smallest tolerance for which modes of attention are chosen


class Summation(Kind, family=True):
    """A way to sum the velocities of tokens: it builds an engine.

    Attributes
    ----------
    leaves_open : bool
        Whether it accepts any engine, also for drifts that have only one.
    whole : bool
        Whether its engines can return the whole output of attention, and potentials.
    """

    leaves_open: ClassVar[bool] = False
    whole: ClassVar[bool] = False

    @abstractmethod
    def build(self, drift: ZonalDrift, n: int, d: int, causal: Causal | None = None) -> Engine:
        """The engine for systems of n tokens in R^d; it sums over earlier tokens if `causal`."""

    @abstractmethod
    def of_attention(self, drift: Attention, n: int, d: int, *, on_sphere: bool) -> AttentionSums:
        """The engine of attention with matrices, for n tokens in R^d or on the sphere."""


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
        """The engine for systems of n tokens in R^d; it sums over earlier tokens if `causal`.

        Raises
        ------
        ValueError
            If d is not 2 or 3, or `causal` has a window, a decay or a beta by place.
        MeanfieldError
            If the harmonics of the drift do not decay.
        """
        if d not in MODES_BY_DIMENSION:
            raise ValueError(
                f"Modes are those of the circle and of S^2, d = 2 or 3; got d = {d}. Use Direct()."
            )
        engine = MODES_BY_DIMENSION[d](drift, self.tolerance, self.threads)
        if causal is None:
            return engine
        if not causal.plain:
            raise ValueError(
                "Modes are summed up to each token, which sees all before it alike; with window, "
                f"decay or beta by place use Direct(); got {causal!r}."
            )
        return CausalModes(engine, causal)

    def of_attention(self, drift: Attention, n: int, d: int, *, on_sphere: bool) -> AttentionSums:
        """The engine of attention with matrices.

        Raises
        ------
        ValueError
            For causal attention, or tokens that are not on the circle or S^2.
        """
        if d not in MODES_BY_DIMENSION or not on_sphere or drift.causal:
            obstacle = (
                "causal attention" if drift.causal else "on the sphere" if on_sphere else "in R^d"
            )
            raise ValueError(
                "Modes of attention are those of tokens on the circle and on S^2, d = 2 or 3, that "
                f"attend to all tokens; got {obstacle}, d = {d}. Use Direct()."
            )
        return AttentionModes(drift, self.tolerance, self.threads, strict=True)


class Automatic(Summation):
    """The engine of the lowest estimated cost.

    The mean where the kernel is constant (Kuramoto, beta = 0); on the circle and on S^2 the modes,
    if they are faster than all pairs and can be as accurate as `tolerance`; else all pairs. So for
    `Attention`, whose weights are summed over pairs where they have too many harmonics.

    Clusters of fewer than 256 tokens can be followed for times of order e^(c beta). Their forces
    keep all digits by sums over pairs, which are taken for USA and SA, and for other kernels whose
    slope is below `tolerance`, relative to its maximum, at a tenth of all inner products.

    Parameters
    ----------
    tolerance, threads
        As for `Modes`.
    """

    leaves_open = whole = True

    tolerance: Positive = 1e-10
    threads: Natural = 1

    def build(self, drift: ZonalDrift, n: int, d: int, causal: Causal | None = None) -> Engine:
        """Mean directions for constant weights, harmonics where they cost less, or pairs."""
        pairs = Direct(self.threads)
        if causal is not None and not causal.plain:
            return pairs.build(drift, n, d, causal)
        if drift.exponent is not None and not np.any(drift.exponent):
            return MeanDirection(drift) if causal is None else CausalMean(drift, causal)
        if d in MODES_BY_DIMENSION and _accurate(drift, n, self.tolerance):
            try:
                engine: Any = Modes(self.tolerance, self.threads).build(drift, n, d, causal)
            except MeanfieldError:  # its harmonics do not decay
                return pairs.build(drift, n, d, causal)
            if engine.cost(n) < (DirectSums if causal is None else CausalSums).cost_of(drift, n):
                return engine
        return pairs.build(drift, n, d, causal)

    def of_attention(self, drift: Attention, n: int, d: int, *, on_sphere: bool) -> AttentionSums:
        """Sums by harmonics where they pay and meet the tolerance, else over pairs."""
        possible = on_sphere and self.tolerance >= FINEST_MODES_OF_ATTENTION
        if possible and AttentionModes.pays(drift, n, d):
            return AttentionModes(drift, self.tolerance, self.threads)
        return AttentionSums(drift, self.threads)


def _accurate(drift: ZonalDrift, n: int, tolerance: float) -> bool:
    """True if modes are accurate to the tolerance, also where tokens repel and cluster.

    In a cluster the normaliser Z * mu is Z(1), with a rounding error relative to the largest Z.
    """
    if n < FEWEST_FOR_MODES and drift.exponent is not None:
        return False
    t = np.broadcast_to(LEVEL_NODES, (*drift.shape, LEVEL_NODES.size))
    weights = np.abs(drift.weight(t))
    lowest = (weights[..., -1] / weights.max(axis=-1)).min()
    if not (tolerance >= 10 * FINEST_ACCURACY and tolerance * lowest >= HARMONIC_ROUNDING):
        return False
    return n >= FEWEST_FOR_MODES or not _faint(drift, t, tolerance)


def _faint(drift: ZonalDrift, t: np.ndarray, tolerance: float) -> bool:
    """True if the kernel has forces below the tolerance, relative to the largest, or is rough."""
    with np.errstate(all="ignore"):
        slopes = np.sort(np.abs(drift.slope(t)), axis=-1)
    if not (slopes[..., FAINT_NODES] >= tolerance * slopes[..., -1]).all():  # also if one is nan
        return True
    try:
        kernel_degree(drift, 2, searched=FEW_DEGREES)
    except MeanfieldError:
        return True
    return False


@dataclass(frozen=True)
class Request:
    """Tokens for which an engine is chosen, and the sums asked for: see `engine_for`."""

    asked: Any  # a Summation, all of which have `threads`
    n: int
    d: int
    whole_for: str = ""
    on_sphere: bool = True
    causal: Causal | None = None


def zonal_engine(drift: ZonalDrift, request: Request) -> Engine:
    """The engine of a zonal drift, or of an ensemble of them."""
    summation = request.asked
    if not request.on_sphere:
        return _by_members(drift, summation, partial(torus_engine, request=request))
    if request.whole_for:
        if not summation.whole:
            raise ValueError(
                f"{request.whole_for}, which engines.Direct gives; got engine = "
                f"{as_given(summation)}."
            )
        summation = Direct(threads=summation.threads)
    build = partial(summation.build, n=request.n, d=request.d, causal=request.causal)
    return _by_members(drift, summation, build)


def torus_engine(drift: ZonalDrift, request: Request) -> TorusSums:
    """The engine of a single zonal drift for tokens on the torus; MeanfieldError on overflow."""
    if drift.exponent is not None:
        Torus(1, request.d // 2).attraction(drift)  # refuses exp(m beta) that overflows
    build = partial(request.asked.build, n=request.n, d=request.d)
    return TorusSums(drift, request.d // 2, request.n, build)


def attention_engine(drift: Attention, request: Request) -> Engine:
    """The engine of attention with matrices."""
    summation = request.asked
    if request.causal is None:
        return summation.of_attention(drift, request.n, request.d, on_sphere=request.on_sphere)
    if not summation.whole:
        raise ValueError(
            f"Causal attention is summed over pairs, by engines.Direct; got {as_given(summation)}."
        )
    return CausalAttention(drift, request.causal, summation.threads)


def field_engine(drift: MeanField, request: Request) -> FieldSums:
    """The engine of tokens in the field of densities; MeanfieldError for points of another space.

    Unit vectors of R^2m are points of a sphere, or m pairs are points of a torus.
    """
    if request.on_sphere and request.d > 2 and not drift.space.spherical:
        raise MeanfieldError(
            f"{drift!r} is the velocity of densities on {drift.space!r}; got unit vectors of "
            f"R^{request.d}, points of a sphere. Give angles, Tokens.on_torus(angles)."
        )
    return FieldSums(drift, request.asked.threads, whole=bool(request.whole_for))


ENGINES: dict[Any, Callable[..., Engine]] = {
    ZonalDrift: zonal_engine,
    Attention: attention_engine,
    Hardmax: lambda drift, request: AttentionSums(drift, request.asked.threads),
    HigherOrder: lambda drift, request: MomentSums(drift),
    MeanField: field_engine,
    PairKernel: lambda drift, request: PairSums(drift),
    Pointwise: lambda drift, request: PointValues(drift),
}

KINDS_WITH_A_CHOICE = ZonalDrift, Attention  # of engines; other kinds of drifts have one


def _kind_of(drift: Drift) -> type[Drift]:
    """The class of ENGINES from which the drift is derived."""
    kind: type[Drift] | None = ancestor(type(drift), ENGINES)
    if kind is None:
        names = ", ".join(drift_class.__name__ for drift_class in ENGINES)
        raise MeanfieldError(
            f"Tokens know no sums for {type(drift).__name__}; they know those of {names} and of "
            "classes derived from them."
        )
    return kind


def engine_for(
    drift: Any,
    summation: Any,
    n: int,
    d: int,
    *,
    whole_for: str = "",
    on_sphere: bool = True,
    causal: Causal | None = None,
) -> Any:
    """The engine of sums over n tokens in R^d, or replicas of them, under a drift.

    Parameters
    ----------
    drift : Drift
        Its parameters are numbers, or one for each replica.
    summation : Summation or None
        The choice of the caller.
    whole_for : str
        The feature that needs more than tangential velocities, for an error message, or "".
    on_sphere : bool
        Whether tokens are unit vectors. Zonal drifts of others are those on a torus.
    causal : Causal, optional
        How tokens attend to earlier ones; None where they attend to all tokens.

    Raises
    ------
    TypeError
        If `summation` is no Summation.
    ValueError
        If the engine asked for does not apply to the drift or the tokens.
    MeanfieldError
        For a drift without an engine.
    """
    if summation is not None and not isinstance(summation, Summation):
        names = ", ".join(f"engines.{name}(...)" for name in Summation.kinds)
        raise TypeError(f"engine must be one of {names}; got {as_given(summation)}.")
    summation = Automatic() if summation is None else summation
    request = Request(summation, n, d, whole_for, on_sphere, causal)
    if drift.is_zonal and not on_sphere:
        return zonal_engine(drift.as_zonal(), request)
    factors, parts = zip(*drift.terms, strict=True)
    if parts == (drift,):
        return _engine_of(drift, request)
    choose = [_kind_of(term) in KINDS_WITH_A_CHOICE for term in parts]
    other = Automatic(threads=summation.threads) if any(choose) else summation
    engines = [
        _engine_of(term, request if chooses else replace(request, asked=other))
        for term, chooses in zip(parts, choose, strict=True)
    ]
    return CombinedSums(factors, engines, whole=bool(whole_for))


def _engine_of(drift: Drift, request: Request) -> Engine:
    """The engine of a single drift, not of a sum of drifts."""
    kind = _kind_of(drift)
    if not (kind in KINDS_WITH_A_CHOICE or request.asked.leaves_open):
        raise ValueError(
            f"{type(drift).__name__} has one way to sum over tokens; leave out engine = "
            f"{request.asked!r}, or give engines.Automatic(threads=...)."
        )
    return ENGINES[kind](drift, request)


def _by_members(drift: ZonalDrift, summation: Any, build: Callable[[ZonalDrift], Engine]) -> Engine:
    """The engine of a drift, or of an ensemble (R,), whose members have the bits of their own runs.

    An engine of sums over pairs takes any members together, one of harmonics only members with
    equal parameters. build(drift) returns the engine of a single drift.
    """
    if not drift.shape:
        return build(drift)
    parameters = np.stack(
        [np.broadcast_to(v, drift.shape) for v in drift.parameters.values()], axis=1
    )
    kinds, kind_of = np.unique(parameters, axis=0, return_inverse=True)
    groups: dict[Any, Any] = {}
    for kind in range(len(kinds)):
        members = np.flatnonzero(kind_of == kind)
        engine = build(drift.member(members[0]))
        key = type(engine) if engine.takes_any_members else kind
        groups.setdefault(key, []).append((members, engine))
    engines = []
    for group in groups.values():
        members = np.sort(np.concatenate([numbers for numbers, _ in group]))
        engine = group[0][1]
        if len(group) > 1:
            engine = type(engine)(drift.member(members), summation.threads)
        engines.append((members, engine))
    return engines[0][1] if len(engines) == 1 else MemberSums(engines)
