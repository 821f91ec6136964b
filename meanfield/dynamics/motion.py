"""The base class `Motion` of motions of states under models, and their table by class of state."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Self, TypeVar
from warnings import warn

import numpy as np
from numpy.random import Generator

from ..core.annotations import (
    ArrayIndex,
    JsonTable,
    MovedState,
    Narrowed,
    Observations,
    PassedOn,
    TangentNames,
    UserValue,
    Values,
)
from ..core.calls import refuse_abstract
from ..core.checks import common_shape, require
from ..core.dual import Array, Dual
from ..core.errors import MeanfieldError, UnresolvedWarning
from ..models import Drift, MeanField
from ..models.normalisation import PostLN, PreLN
from ..models.transformer import Transformer
from ..states import Equiangular, State, Tokens
from ..states.tokens import OF_ANGLES
from ..steppers import DormandPrince, Scheme, Splitting
from .linearised import Changes, LinearisedMotion, TangentSpace, checked_changes, state_along

NOISE_STEP_SHARE = 0.05  # default length of steps with noise, times the rates of drift and noise
SAME_JUMP = 8 * np.finfo(float).eps  # relative difference up to which two times are equal
AnyScheme = Scheme | Splitting | None
ChosenScheme = tuple[AnyScheme, float | None]  # and the length of its steps, None if they adapt
S = TypeVar("S", Tokens, Equiangular)
UNUSED_RADII = (
    "These tokens have radii, which {!r} does not use: leave them out, or choose PreLN(), "
    "MixLN(tau) or PeriLN()."
)
RESTART_ADVICE = (
    "A run from the last state that starts at t = 0 has a clock that shows such steps: try one, "
    "not much longer than they are."
)
MOTIONS: dict[type, type["Motion"]] = {}
NOISY_MOTIONS: dict[type, type["Motion"]] = {}  # where noise needs coordinates of its own


class Failure(NamedTuple):
    """The point at which a run could not go on.

    Attributes
    ----------
    t, elapsed : float
        The time, and the time since the start of the run.
    y : ndarray
        Coordinates at t.
    step : float
        The length of the last step.
    stalled : bool
        Whether steps had become so short that t + step is rounded to t.
    dt, rtol : float or None, float
        The options of the run; dt is None where steps adapt.
    stats : dict
        The counts of the run.
    merging : bool
        Whether tokens were merged.
    member : str
        The member of an ensemble that failed, such as " of replica 3"; empty for the whole.
    instability : str
        The reason why a fixed dt is unstable, as a sentence; empty where it is stable or unknown.
    """

    t: float
    elapsed: float
    y: np.ndarray
    step: float
    stalled: bool
    dt: float | None
    rtol: float
    stats: JsonTable
    merging: bool = False
    member: str = ""
    instability: str = ""


class Motion(ABC):
    """The motion of one kind of state under a model, and its observables.

    A class that is defined as ``class AngleMotion(Motion, moves=Angles)`` moves states of the class
    `Angles` and of derived classes; with ``noisy=True`` it does so where models have noise, and
    another class elsewhere. It must define `coordinates`, `state_of` and `velocity`. The
    defaults of all other methods are for absolute errors of coordinates, no projection, steps of
    `DormandPrince`, and single models without noise, normalisation, reaction or feed-forward map.

    Parameters
    ----------
    model : Transformer
    state : object
        A state of the class `moves`. Properties that all states of a run share are taken from it.
    engine : optional
        The engine for sums over tokens, if `options` contains "engine".
    scheme : Scheme or Splitting, optional
        The scheme of the run.
    rtol : float
        The relative tolerance of error control.

    Attributes
    ----------
    moves : type
        The class of the states.
    example : str
        An expression that makes a state, for error messages.
    schemes : tuple
        The schemes that can be used, the default first. Every explicit `Scheme` can be used too.
    options : frozenset of str
        The options among engine, merge, rng, min_degree and max_degree of `solve` that apply;
        "rtol" if it has an effect on fixed steps, too.
    refusals : mapping
        Messages for options that do not apply, by option, in place of the default message.
    smallest_change : float
        Error control gives up after it has rejected a step that changes the state by this or less,
        as `relative_error` measures it: such an error is rounding.
    semilinear : bool
        Whether states are expansions in modes with c' = L c + N(c), see `DensityMotion`, rather
        than coordinates with a velocity.
    random : bool
        Whether steps draw random numbers.
    circles : int
        Number of angles of a torus; 1 elsewhere.
    members : int
        The number of independent members on the first axis of coordinates; 0 for a single state.
        With `of_members`, `relative_errors` and `rates` each member can take its own steps.
    alike : bool
        Whether all members follow one equation, with different numbers, at all times.
    autonomous : bool
        Whether velocities are independent of time between two breakpoints.
    why_no_tangents : str
        The reason why runs have no derivatives, and a remedy; empty if they have.
    draws_by_member : bool
        Whether each member of an ensemble of states draws from its own generator. Steps then draw
        only by ``rng.standard_normal(shape)``, with the members along the first axis.
    members_as_alone : bool
        Whether each member of an ensemble of models has the same bits, observables included, as in
        a run of its own. For random motions this holds with steps of a given length.
    implicit : bool
        Whether implicit steps are taken where only stability limits the length of explicit ones.
        It suits states of few coordinates; `velocity` must accept stacks of them.
    detects_blow_up : bool
        Whether `growth` can indicate a blow-up in finite time.
    not_finite : str
        The clause of the error message for steps of a given length that led to nan or inf.
    follows : frozenset of str
        The parts of models that are supported besides the drift, among noise, common,
        normalisation, reaction, feedforward, causal, coupling and frequency.
    changes_coordinates : bool
        Whether `projected` may return other, distant coordinates of the same state.
    breaks : tuple of float
        Breakpoints in time given by the user, in addition to those of the model.
    """

    moves: ClassVar[type[State]]
    example: ClassVar[str] = ""
    schemes: ClassVar[tuple[Scheme | Splitting, ...]] = (DormandPrince,)
    options: ClassVar[frozenset[str]] = frozenset()
    refusals: ClassVar[Mapping[str, str]] = MappingProxyType({})
    smallest_change: ClassVar[float] = 0.0
    semilinear: ClassVar[bool] = False
    random: ClassVar[bool] = False
    circles: ClassVar[int] = 1
    members: ClassVar[int] = 0
    alike: ClassVar[bool] = False
    autonomous: ClassVar[bool] = False
    why_no_tangents: ClassVar[str] = ""
    draws_by_member: ClassVar[bool] = False
    members_as_alone: ClassVar[bool] = False
    implicit: ClassVar[bool] = False
    detects_blow_up: ClassVar[bool] = False
    not_finite: ClassVar[str] = "the state was not finite"
    changes_coordinates: ClassVar[bool] = False
    follows: ClassVar[frozenset[str]] = frozenset()
    breaks: tuple[float, ...] = ()

    def __new__(cls, *_arguments: PassedOn, **_keywords: PassedOn) -> Self:
        refuse_abstract(cls)
        return super().__new__(cls)

    def __init_subclass__(
        cls, moves: type[State] | None = None, *, noisy: bool = False, **options: PassedOn
    ):
        """Register the class as the motion of states of class `moves`, with noise if `noisy`."""
        super().__init_subclass__(**options)
        if moves is None:
            return
        table = NOISY_MOTIONS if noisy else MOTIONS
        mover = table.get(moves, cls)
        if (mover.__module__, mover.__name__) != (cls.__module__, cls.__name__):
            raise TypeError(
                f"{moves.__name__} is moved by {mover.__module__}.{mover.__name__} already; let "
                f"{cls.__name__} move a class derived from it."
            )
        cls.moves = moves
        table[moves] = cls

    def __init__(
        self,
        model: Transformer,
        state: MovedState,
        engine: Narrowed = None,
        *,
        scheme: AnyScheme = None,
        rtol: float = 1e-8,
    ):
        """Check the parts of the model and the state, then set up what steps need."""
        self.model, self.like, self.rtol = model, state, rtol
        self._engine, self._scheme = engine, scheme
        self._ends = -np.inf, np.inf
        self._check_parts()
        self.check()
        self.setup()

    # Before a run --------------------------------------------------------------------------

    @classmethod
    def prepared(cls, model: Transformer, state: MovedState) -> MovedState:
        """The initial state, broadcast to the ensemble shape of the model.

        Raises ValueError for an ensemble of models, if states of this class have no ensembles.
        """
        if model.shape:
            raise ValueError(
                f"{cls.moves.__name__} expects a single model; got an ensemble {model.shape}. "
                "Solve its members one by one."
            )
        return state

    def check(self) -> None:  # noqa: B027
        """Raise MeanfieldError or ValueError, with the reason, for a model that does not fit."""

    def _check_parts(self) -> None:
        """Raise MeanfieldError for parts of the model that are not supported."""
        if unsupported := set(self.model.parts) - self.follows:
            kinds = (*MOTIONS.values(), *NOISY_MOTIONS.values())
            names = {kind.moves.__name__ for kind in kinds if unsupported <= kind.follows}
            takers = sorted(names, key=lambda name: (name != "Tokens", name))
            advice = f"Solve for {', '.join(takers)}, or leave" if takers else "Leave"
            raise MeanfieldError(
                f"{self.moves.__name__} moves without {', '.join(sorted(unsupported))}; got "
                f"{self.model!r}. {advice} it out."
            )

    def check_dimensions(self) -> None:
        """Raise ValueError if a part of the model is for points of another dimension."""
        d, model = self.like.dimension, self.model
        for part in (model.drift, model.noise, model.feedforward, *model.normalisation.norms):
            if (part_dimension := getattr(part, "dimension", None)) not in (None, d):
                raise ValueError(
                    f"{part!r} is for dimension {part_dimension}; got points of dimension {d}."
                )

    @property
    def directions(self) -> int:
        """Number of directions in which noise moves a point.

        They are d - 1 on a sphere, d in R^d, and one a circle on the torus.
        """
        return int(self.like.dimension) - 1

    def takes(self, option: str) -> bool:
        """Whether an option of `solve` applies."""
        return option in self.options

    @classmethod
    def refusal(cls, option: str, value: UserValue) -> str:
        """The reason why an option of `solve` does not apply."""
        if option in cls.refusals:
            return cls.refusals[option].format(value=value)
        takers: list[MovedState] = [
            kind.moves for kind in MOTIONS.values() if option in kind.options
        ]
        owners = sorted(s.__name__ for s in takers if option != "rng" or s.takes_noise)
        name = cls.moves.__name__
        return f"{option} is for {' and '.join(owners)}; {name} has none: leave it out."

    def chosen_scheme(self, scheme: AnyScheme, dt: float | None, start: float) -> ChosenScheme:
        """The scheme, and the length of its steps, None if they adapt.

        Raises
        ------
        ValueError
            If the scheme does not fit, or needs a length of steps.
        """
        scheme = self.schemes[0] if scheme is None else scheme
        if scheme not in self.schemes and not getattr(scheme, "explicit", False):
            names = " or ".join(f"steppers.{allowed.name}" for allowed in self.schemes)
            raise ValueError(
                f"{self.moves.__name__} needs an explicit scheme, {names}; got {scheme.name}."
            )
        if dt is None and not scheme.estimate_order:
            raise ValueError(f"steppers.{scheme.name} needs dt, the length of its steps.")
        return scheme, dt

    def largest_rate(self, t: float) -> np.ndarray:
        """The largest rate of attraction between points at the time t.

        On a torus of m angles unnormalised exponential kernels are up to e^(m |beta|).
        """
        drift: Values = self.model.drift
        source, pull = drift.source if isinstance(drift, MeanField) else drift, 1.0
        for part in (part.as_zonal() for _, part in source.terms if part.is_zonal):
            if part.exponent is not None and not part.normalised:
                pull = max(pull, float(np.exp((self.circles - 1) * np.abs(part.exponent)).max()))
        return np.asarray(pull * drift.rate(t))

    def noisy_step(self, start: float) -> float:
        """Default length of steps with noise: 0.05 over the rates of drift and noise at `start`.

        Raises
        ------
        ValueError
            If the rates are not known in advance.
        """
        model, on_sphere = self.model, getattr(self.like, "on_sphere", True)
        has_rate = model.noise.known_rate and model.drift.known_rate(on_sphere)
        has_rate = has_rate and model.normalisation.is_identity and model.steady_noise
        has_rate = has_rate and (model.causal is None or model.causal.plain)
        with np.errstate(over="ignore"):  # no step is short enough then
            noises = 1 / model.kappa_at(start)
            if model.common is not None:
                has_rate = has_rate and model.common.known_rate
                noises = noises + 1 / model.common.kappa
        if not has_rate or model.reaction or model.feedforward:
            raise ValueError(
                "This model needs dt, the length of its steps with noise: it has no default where "
                "a normalisation, reaction, feed-forward map, changing parameters, a noise of its "
                "own or causal weights by place decide how fast tokens move. Try one and half of "
                "it."
            )
        with np.errstate(over="ignore"):
            fastest = np.max(self.largest_rate(start) + self.directions * noises)
        if not 0 < NOISE_STEP_SHARE / fastest < np.inf:
            raise ValueError(
                f"This model needs dt, the length of its steps with noise: its rates are {fastest}."
            )
        return float(NOISE_STEP_SHARE / fastest)

    def setup(self) -> None:  # noqa: B027
        """Precompute the data that velocities need; called once, after `check`."""

    def with_state(self, state: MovedState) -> Self:
        """This motion for another state."""
        motion = type(self)(self.model, state, self._engine, scheme=self._scheme, rtol=self.rtol)
        motion._ends, motion.breaks = self._ends, self.breaks
        return motion

    def begin(self, y: np.ndarray, t: float) -> None:  # noqa: B027
        """Check the first coordinates of a run; ValueError if they are not resolved."""

    # Coordinates ---------------------------------------------------------------------------

    @abstractmethod
    def coordinates(self, state: MovedState) -> np.ndarray:
        """The coordinates of a state, an array of floats."""

    @abstractmethod
    def state_of(self, y: np.ndarray) -> MovedState:
        """The state with these coordinates."""

    def packed(self, state: MovedState) -> np.ndarray:
        """The numbers that distinguish the states of a run, without rounding, for checkpoints."""
        return self.coordinates(state)

    def unpacked(self, array: np.ndarray) -> MovedState:
        """The state of an array made by `packed`."""
        return self.state_of(array)

    def recorded(self) -> JsonTable:
        """Data on the initial state, as JSON can write them, for the options of a result."""
        return {}

    # Motion --------------------------------------------------------------------------------

    @abstractmethod
    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates, of the shape of y."""

    # Derivatives ---------------------------------------------------------------------------

    @property
    def tangent_arrays(self) -> tuple[str, ...]:
        """The names of the arrays of a state that can have tangents."""
        return tuple(self.like.parts) or tuple(self.like.arrays())

    def state_along(self, state: MovedState, changes: Changes) -> MovedState:
        """The state with `Dual` arrays.

        `changes` has, for each tangent, the changes of arrays by name, or None for no change.
        """
        return state_along(state, changes, self.tangent_arrays)

    def linearised(self, names: TangentNames, directions: Changes) -> LinearisedMotion:
        """The motion with tangents, each by a parameter (its name) or in a direction of the state.

        Raises
        ------
        MeanfieldError
            For a motion or a model whose runs have no derivatives.
        """
        if self.why_no_tangents:
            raise MeanfieldError(f"Derivatives of runs are known {self.why_no_tangents}")
        return LinearisedMotion(self, names, directions)

    def along(self, names: TangentNames, state: MovedState) -> Self:
        """This motion with `Dual` parameters of these names and a state of `Dual` arrays."""
        copied = copy(self)
        copied.model, copied.like = self.model.along(names), state
        copied.setup()
        return copied

    def velocity_from(self, y: Dual, t: float, value: Array, intermediate: Array | None) -> Values:
        """`velocity` of y with tangents.

        Neither `value`, the velocity without tangents, nor its intermediate results need be
        computed again.
        """
        return self.velocity(y, t)

    def merged(self, y: Dual, labels: np.ndarray) -> tuple[MovedState, Dual]:
        """The state, and its coordinates, after merging the rows of y with equal labels."""
        name = self.moves.__name__
        raise MeanfieldError(f"Derivatives of runs of {name} in which some merged are not known.")

    def direction(self, direction: UserValue, state: MovedState) -> Mapping[str, Array]:
        """A checked change of the initial state, arrays by name, as `linearised` takes it."""
        return checked_changes(direction, {n: getattr(state, n).shape for n in self.tangent_arrays})

    def tangent_space(self, state: MovedState) -> TangentSpace:
        """The dimension of each replica's tangent space, and a function rng -> random direction.

        Raises MeanfieldError if it is not known, or if some directions of the coordinates do not
        change the state.
        """
        raise MeanfieldError(
            f"Lyapunov exponents of runs of {self.moves.__name__} are not known. Solve for Tokens."
        )

    def tangent_vectors(self, y: Dual) -> Array:
        """The tangents as vectors with a norm, (members, p, N)."""
        return y.changes.reshape(1, len(y.changes), -1)

    def smooth_observables(self, state: MovedState, t: float) -> Observations:
        """Differentiable observables of a state, which may have tangents."""
        return {}

    def step(
        self, scheme: Splitting, y: np.ndarray, t: float, dt: float, rng: Generator
    ) -> np.ndarray:
        """The coordinates after one step of a splitting among `schemes`."""
        raise MeanfieldError(
            f"{type(self).__name__} needs a method step(scheme, y, t, dt, rng) for steps of "
            f"{scheme.name}, and has none. Define it, or choose another scheme."
        )

    def projected(self, y: np.ndarray) -> np.ndarray:
        """Coordinates of a state close to y, where y is off the space by the error of a step."""
        return y

    def relative_error(self, error: np.ndarray, y: np.ndarray) -> float:
        """The size of an error of the coordinates that is compared with rtol."""
        return float(self.relative_errors(error, y).max(initial=0.0))

    def rate(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """The rate of change that is compared with the tolerance of a steady state."""
        return float(self.rates(y, velocity).max(initial=0.0))

    def growth(self, y: np.ndarray, velocity: np.ndarray, t: float) -> float:
        """The rate of growth of a possible blow-up; <= 0 if none is to be expected."""
        return 0.0

    # Replicas ------------------------------------------------------------------------------

    def of_members(self, members: ArrayIndex) -> Self:
        """The motion of the members with these indices (R',)."""
        raise MeanfieldError(f"{type(self).__name__} moves a single system.")

    def relative_errors(self, error: np.ndarray, y: np.ndarray) -> np.ndarray:
        """`relative_error` of each member, (R,); a single state is one member."""
        return np.abs(error).reshape(self.members or 1, -1).max(axis=1, initial=0.0)

    def rates(self, y: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """`rate` of each member, (R,); a single state is one member."""
        return np.abs(velocity).reshape(self.members or 1, -1).max(axis=1, initial=0.0)

    # Parameters that jump ------------------------------------------------------------------

    def breakpoints(self, start: float, end: float) -> list[float]:
        """Sorted times strictly between start and end at which a step must end.

        These are the jumps of the model and the `breaks` given by the user; times that are equal up
        to rounding count once.
        """
        added = [t for t in self.breaks if start < t < end]
        return distinct([*self.model.breakpoints(start, end), *added])

    def enter(self, start: float, end: float) -> None:
        """Restrict times to a span between two breakpoints; `inside` clips other times to it."""
        self._ends = start, end

    @property
    def ends(self) -> tuple[float, float]:
        """The span of times given to `enter`; (-inf, inf) before the first call."""
        return self._ends

    def inside(self, t: float) -> float:
        """The time t, clipped to the span given to `enter`."""
        start, end = self._ends
        return min(max(t, start), end)

    # Along a run ---------------------------------------------------------------------------

    def after_step(self, y: np.ndarray, t: float) -> None:  # noqa: B027
        """Check the coordinates after a step, and store the reason for a later `warning`."""

    def snapshot(self) -> JsonTable:
        """Data that the motion has collected along a run, as JSON can write them."""
        return {}

    def restore(self, snapshot: JsonTable) -> None:  # noqa: B027
        """Restore the data of a `snapshot`."""

    def size(self, y: np.ndarray) -> str:
        """The resolution of the coordinates, for the progress bar."""
        return self.like.size_in_words

    def stats(self, state: MovedState, t: float) -> JsonTable:
        """Statistics of a run other than counts, from its last state, at t."""
        return {}

    def warning(self, state: MovedState, t: float, failure: Failure) -> str | None:
        """A warning about a run that ends with this state, at t; None if there is none."""
        return None

    def warning_of_start(self, state: MovedState, rtol: float) -> str | None:
        """A warning if the initial state is not resolved; else None."""
        return None

    def is_wrong(
        self, state: MovedState, t: float, rtol: float, *, thoroughly: bool = False
    ) -> np.ndarray:
        """A mask over members, in C order: True where this state, at t, is not resolved.

        `thoroughly` asks for more expensive checks too.
        """
        return np.zeros(math.prod(state.shape), dtype=bool)

    def why_wrong(self, state: MovedState, t: float, failure: Failure) -> str:
        """The reason why a state `is_wrong`, as a verb phrase whose subject is the state."""
        return "is not resolved."

    def without_warning(self, state: MovedState, t: float, rtol: float) -> np.ndarray:
        """A mask over members, in C order: True where `warning` would return None for this state.

        `stats` of these members are empty, and their `remark` is None.
        """
        return np.zeros(math.prod(state.shape), dtype=bool)

    def remark(self, state: MovedState) -> str | None:
        """A sentence, or None, for the message of a run that ends here without a warning."""
        return None

    def failure(self, status: str, end: Failure) -> str:
        """The reason why a run could not go on, and what to do, in words."""
        if status == "not_finite":
            until = f"After t = {end.t:g}{end.member} {self.not_finite}"
            if not end.instability:
                return f"{until}: use a smaller dt."
            return f"{until}. {end.instability} Use a smaller dt or another scheme."
        reason = self.why_stalled(end) if end.stalled else self.why_rejected(end)
        return f"No step size{end.member} meets rtol at t = {end.t:g}: {reason}"

    def why_rejected(self, end: Failure) -> str:
        """The reason why no step was short enough."""
        return (
            "the velocity is not smooth there, or not finite. Use a larger rtol, or dt= for fixed "
            "steps."
        )

    def why_stalled(self, end: Failure) -> str:
        """The reason why steps became too short to change the time, and a remedy."""
        return f"{self.stall(end)}. {RESTART_ADVICE}"

    @staticmethod
    def stall(end: Failure) -> str:
        """A clause saying that steps are shorter than the spacing of floats at this time."""
        return (
            f"the clock stands still there, where numbers are {np.spacing(end.elapsed):.1g} apart, "
            f"while the state goes on changing in steps of {end.step:.1g}"
        )

    def why_not_finite(self, y: np.ndarray, t: float) -> str:
        """The reason why velocities at these coordinates are not finite, and a remedy."""
        if not np.isfinite(y).all():
            return f"nor are the coordinates of the {self.moves.__name__} that the run begins with."
        return f"look at what {type(self).__name__}.velocity returns, where coordinates are finite."

    # Measured ------------------------------------------------------------------------------

    def attended(self, state: MovedState) -> MovedState:
        """The output of one layer of attention, for `attend`."""
        raise MeanfieldError(
            f"{type(self).__name__} needs a method attended(state) for the answer of attention "
            "alone, and has none. Define it."
        )

    def measure(self, state: MovedState, t: float = 0.0) -> Observations:
        """Observables of a state at the time t, numbers or arrays by name.

        Figures show them in this order, with the labels and scales set by `observables.declare`.
        """
        return {}

    @classmethod
    def resolution(cls, state: MovedState) -> JsonTable:
        """Further numbers that results store at every time, shared by all members."""
        return {}


def motion_for(state: MovedState, model: Transformer | None = None) -> type[Motion]:
    """The class of motions for a state: the one registered for its class or nearest base class.

    Under a `model` with noise it is the one registered as noisy, where there is one.

    Raises
    ------
    TypeError
        If none is registered.
    """
    noisy = model is not None and model.has_independent_noise
    for kind in type(state).__mro__:
        if noisy and kind in NOISY_MOTIONS:
            return NOISY_MOTIONS[kind]
        if kind in MOTIONS:
            return MOTIONS[kind]
    examples = ", ".join(motion.example or name.__name__ for name, motion in MOTIONS.items())
    advice = "A class of your own is moved by a class derived from mf.Motion."
    try:
        array = np.asarray(state)
    except (TypeError, ValueError, RuntimeError):  # rows of unequal length, tensors on a GPU
        array = np.zeros(())
    if array.ndim and array.dtype.kind in "fiub":
        advice = OF_ANGLES if array.ndim == 1 else (
            "Of unit vectors (n, d) mf.Tokens(x) makes one, of hidden states of any length "
            "mf.Tokens.from_hidden(h)."
        )  # fmt: skip
    raise TypeError(f"Expected a state, one of {examples}; got {type(state).__name__}. {advice}")


def in_shape_of(model: Transformer, state: MovedState, *, smallest_count: int = 0) -> MovedState:
    """The state, broadcast to the ensemble shape of the model.

    Raises ValueError if the shapes do not broadcast, or for fewer than `smallest_count` tokens.
    """
    if smallest_count and len(state) < smallest_count:
        raise ValueError("A single token has none to attend to; solve needs n >= 2 tokens.")
    shape = common_shape(
        "The ensembles of model and state",
        {"model": model.shape, "state": state.shape},
        "For a table of both give one of them a trailing axis.",
    )
    return state if shape == state.shape else state.broadcast(shape)


def check_on_torus(model: Transformer) -> None:
    """Raise MeanfieldError for parts of a model that have no meaning on the torus."""
    if not model.normalisation.is_identity:
        raise MeanfieldError(
            f"{model.normalisation!r} uses lengths of hidden states, and a point of a torus is a "
            "unit vector for each angle, which has none: leave the normalisation out. Without "
            "noise SqrtScaling() is a change of time, t -> 2 sqrt(1 + t) - 2."
        )
    if model.common is not None and model.common.needs_attention:
        raise MeanfieldError(
            f"{model.common!r} multiplies the output of attention by a matrix that mixes the "
            "angles: it is defined on spheres. On the torus take CommonRotations(kappa), the same "
            "translation of all points, or CommonTranslations(kappa)."
        )


def warn_of_long_steps(dt: float, default: float) -> None:
    """Warn of steps with noise beyond 2/(rates of drift and noise), where they are unstable."""
    if dt * NOISE_STEP_SHARE > 2 * default:
        warn(
            f"Steps of dt = {dt:g} are more than twice the shortest time scale of drift and noise, "
            f"{default / NOISE_STEP_SHARE:.2g}: clusters may not hold together, and times be wrong "
            f"by a factor. Halve dt until results agree; the default is {default:.2g}.",
            UnresolvedWarning,
            stacklevel=3,
        )


def distinct(times: Iterable[float]) -> list[float]:
    """Sorted times, without repetitions up to rounding."""
    distinct_times: list[float] = []
    for t in sorted(times):
        if not distinct_times or t - distinct_times[-1] > SAME_JUMP * abs(t):
            distinct_times.append(t)
    return distinct_times


def attend(drift: Drift, state: S) -> S:
    """Output of one layer of attention, without the residual: x_i <- A_i/|A_i|, r_i <- |A_i|.

        A_i = sum_j m_j k(<x_i, x_j>) x_j / Z(x_i)

    In R^d x_i <- A_i. With normalised weights k(x, y) = e^(-beta |x - y|^2 / 2) this is a step of
    Gaussian blurring mean-shift, in R^d and on the sphere, where these weights are those of SA.

    The logit of `Equiangular` tokens grows by 2 log(1 + n k(rho)/(k(1) - k(rho))). If k is constant
    all outputs coincide, and the logit is infinite.

    Parameters
    ----------
    drift : Drift
        Any, for tokens; `USA`, `SA`, `Kuramoto` or `Interaction` for equiangular ones. Parameters
        that depend on time are those at t = 0.
    state : Tokens or Equiangular
        The radii of tokens on a sphere do not matter: attention depends on directions only.

    Returns
    -------
    Tokens or Equiangular
        On a sphere with the lengths of the outputs as radii.

    Raises
    ------
    TypeError
        For other states.
    ValueError
        For shapes of ensembles that do not broadcast.
    MeanfieldError
        Where the drift does not keep tokens equiangular, for a drift of the sphere and tokens in
        R^d, and on a sphere where an output is 0, which has no direction.

    References
    ----------
    Cheng, "Mean shift, mode seeking, and clustering", IEEE Trans. Pattern Anal. Mach. Intell. 17
    (1995), for blurring mean-shift.
    """
    require("drift", drift, "a Drift", isinstance(drift, Drift), TypeError)
    tokens = isinstance(state, Tokens | Equiangular)
    require("state", state, "Tokens or Equiangular", tokens, TypeError)
    sphere = getattr(state, "on_sphere", True)
    model = Transformer(drift, normalisation=PreLN() if sphere else PostLN())
    state = in_shape_of(model, state)
    return motion_for(state)(model, state).attended(state)
