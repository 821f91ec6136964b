"""Motions of states under models: the contract, and the register by state."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from ..core.calls import refuse_abstract
from ..core.checks import as_given, common_shape, finite_array, fitting
from ..core.dual import Array, Dual
from ..core.errors import MeanfieldError
from ..models import Drift
from ..models.normalisation import PostLN, PreLN
from ..models.transformer import Transformer
from ..states import Equiangular, State, Tokens
from ..steppers import DormandPrince, Scheme, Splitting
from .linearised import LinearisedMotion, state_along

NOISE_STEP_SHARE = 0.05  # default steps with noise, times the rate of the drift and of the noise
SAME_JUMP = 8 * np.finfo(float).eps  # times that differ by it, relative, are the same
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


class Failure(NamedTuple):
    """The point at which a run could not go on.

    Attributes
    ----------
    t, elapsed : float
        The time, and that since the start.
    y : ndarray
        Coordinates there.
    step : float
        The length of the last step.
    stalled : bool
        Whether steps had become too short for the clock to show.
    dt, rtol : float or None, float
        The options of the run; dt is None where steps adapt.
    stats : dict
        The counts of the run.
    merging : bool
        Whether tokens were merged.
    member : str
        Which member of an ensemble it is, " of replica 3", say; empty for the whole.
    """

    t: float
    elapsed: float
    y: np.ndarray
    step: float
    stalled: bool
    dt: float | None
    rtol: float
    stats: dict[str, Any]
    merging: bool = False
    member: str = ""


class Motion(ABC):
    """The motion of one kind of state under a model, and its observables.

    A class that is defined as ``class AngleMotion(Motion, moves=Angles)`` moves `Angles` and states
    of classes derived from it. It needs `coordinates`, `state_of` and `velocity`; all else has a
    default: errors of coordinates are absolute, nothing is projected, models are single ones
    without noise, normalisation, reaction or feed-forward map, steps are those of `DormandPrince`.

    Parameters
    ----------
    model : Transformer
    state : object
        Of the class it moves; what all states of a run have in common is taken from it.
    engine : optional
        How sums over tokens are done, where `options` names it.
    scheme : Scheme or Splitting, optional
        What steps will be taken with.
    rtol : float
        The accuracy that steps will be controlled to.

    Attributes
    ----------
    moves : type
        The class of the states.
    example : str
        How a state is made, for error messages.
    schemes : tuple
        What steps can be taken with, the default first. A `Scheme` that is explicit always can.
    options : frozenset of str
        Which of the options engine, merge, rng, min_degree and max_degree of `solve` apply.
    refusals : mapping
        Words in which an option that does not apply is refused, where the usual ones do not do.
    smallest_change : float
        Error control gives up after a step that it rejects although nothing moves by more, as
        `relative_error` measures it: such an error is rounding.
    semilinear : bool
        Whether states are expansions in modes that follow L c + N(c), see `DensityMotion`, rather
        than coordinates that have a velocity.
    random : bool
        Whether steps draw random numbers.
    draws_by_member : bool
        Whether each member of an ensemble of states draws from a generator of its own. Steps then
        draw by ``rng.standard_normal(shape)`` alone, the members along the first axis.
    members_as_alone : bool
        Whether each member of an ensemble of models has the numbers that it has alone, to the last
        bit, observables included: where it draws, with steps of a given length.
    implicit : bool
        Whether implicit steps are taken where explicit ones are short for the sake of stability
        alone. It is for few coordinates, and asks for velocities of stacks of them.
    detects_blow_up : bool
        Whether `growth` tells of a blow-up in finite time.
    not_finite : str
        What happened where steps of a given length led to numbers that are not finite.
    by_place : frozenset of str
        The parts of models that depend on places, of `Transformer.by_place`, which it can follow.
    changes_coordinates : bool
        Whether `projected` takes other coordinates of the same state, which may be far off.
    breaks : tuple of float
        Times, as a user gave them, that are breakpoints beside those of the model.
    """

    moves: ClassVar[type[State]]
    example: ClassVar[str] = ""
    schemes: ClassVar[tuple[Scheme | Splitting, ...]] = (DormandPrince,)
    options: ClassVar[frozenset[str]] = frozenset()
    refusals: ClassVar[Mapping[str, str]] = MappingProxyType({})
    smallest_change: ClassVar[float] = 0.0
    semilinear: ClassVar[bool] = False
    draws_by_member: ClassVar[bool] = False
    members_as_alone: ClassVar[bool] = False
    implicit: ClassVar[bool] = False
    detects_blow_up: ClassVar[bool] = False
    not_finite: ClassVar[str] = "the state was not finite"
    changes_coordinates: ClassVar[bool] = False
    by_place: ClassVar[frozenset[str]] = frozenset()
    breaks: tuple[float, ...] = ()

    def __new__(cls, *_given: Any, **_named: Any) -> Self:
        refuse_abstract(cls)
        return super().__new__(cls)

    def __init_subclass__(cls, moves: type[State] | None = None, **options: Any):
        super().__init_subclass__(**options)
        if moves is None:
            return
        known = MOTIONS.get(moves, cls)
        if (known.__module__, known.__name__) != (cls.__module__, cls.__name__):
            raise TypeError(
                f"{moves.__name__} is moved by {known.__module__}.{known.__name__} already; let "
                f"{cls.__name__} move a class derived from it."
            )
        cls.moves = moves
        MOTIONS[moves] = cls

    def __init__(
        self,
        model: Transformer,
        state: Any,
        engine: Any = None,
        *,
        scheme: Scheme | Splitting | None = None,
        rtol: float = 1e-8,
    ):
        self.model, self.like, self.rtol = model, state, rtol
        self._engine, self._scheme = engine, scheme
        self._ends = -np.inf, np.inf
        self._check_places()
        self.check()
        self.setup()

    # Before a run --------------------------------------------------------------------------

    @classmethod
    def prepared(cls, model: Transformer, state: Any) -> Any:
        """The initial state, in the ensemble shape of the model too; ValueError if it has none."""
        if model.shape:
            raise ValueError(
                f"{cls.moves.__name__} expects a single model; got an ensemble {model.shape}. "
                "Solve its members one by one."
            )
        return state

    def check(self) -> None:
        """Raise MeanfieldError or ValueError, with the reason, for a model that does not fit."""
        if self.model.noisy or self.model.extras:
            raise MeanfieldError(
                f"{self.moves.__name__} moves without noise, normalisation, reaction and "
                f"feed-forward map; got {self.model!r}. Solve for Tokens."
            )

    def _check_places(self) -> None:
        for name in self.model.by_place:
            if name not in self.by_place:
                takers = sorted(m.moves.__name__ for m in MOTIONS.values() if name in m.by_place)
                raise MeanfieldError(
                    f"{self.moves.__name__} does not follow {name} = "
                    f"{getattr(self.model, name)!r}; known for {' and '.join(takers)}. Solve for "
                    "one of these, or leave it out."
                )

    def check_dimensions(self) -> None:
        """Raise ValueError for a part of the model that is for points of another dimension."""
        d, model = self.like.dimension, self.model
        for part in (model.drift, model.noise, model.feedforward, *model.normalisation.norms):
            if (wanted := getattr(part, "dimension", None)) not in (None, d):
                raise ValueError(
                    f"{part!r} is for dimension {wanted}; got points of dimension {d}."
                )

    def takes(self, option: str) -> bool:
        """Whether an option of `solve` applies."""
        return option in self.options

    @classmethod
    def refusal(cls, option: str, value: Any) -> str:
        """The reason why an option of `solve` does not apply."""
        if option in cls.refusals:
            return cls.refusals[option].format(value=value)
        takers: list[Any] = [kind.moves for kind in MOTIONS.values() if option in kind.options]
        owners = sorted(s.__name__ for s in takers if option != "rng" or s.takes_noise)
        name = cls.moves.__name__
        return f"{option} is for {' and '.join(owners)}; {name} has none: leave it out."

    def chosen_scheme(
        self, scheme: Scheme | Splitting | None, dt: float | None, start: float
    ) -> tuple[Scheme | Splitting | None, float | None]:
        """The scheme, and the length of its steps, None if they adapt.

        Raises
        ------
        ValueError
            If the scheme does not fit, or needs a length of steps.
        """
        scheme = self.schemes[0] if scheme is None else scheme
        if scheme not in self.schemes and not getattr(scheme, "explicit", False):
            names = " or ".join(f"steppers.{known.name}" for known in self.schemes)
            raise ValueError(
                f"{self.moves.__name__} needs an explicit scheme, {names}; got {scheme.name}."
            )
        if dt is None and not scheme.estimate_order:
            raise ValueError(f"steppers.{scheme.name} needs dt, the length of its steps.")
        return scheme, dt

    def setup(self) -> None:  # noqa: B027
        """Compute once what velocities need."""

    def with_state(self, state: Any) -> Self:
        """This motion for another state."""
        other = type(self)(self.model, state, self._engine, scheme=self._scheme, rtol=self.rtol)
        other._ends, other.breaks = self._ends, self.breaks
        return other

    def begin(self, y: np.ndarray, t: float) -> None:  # noqa: B027
        """Look at the first coordinates of a run; ValueError if nothing good can come of them."""

    # Coordinates ---------------------------------------------------------------------------

    @abstractmethod
    def coordinates(self, state: Any) -> np.ndarray:
        """The array of floats that moves."""

    @abstractmethod
    def state_of(self, y: np.ndarray) -> Any:
        """The state with these coordinates."""

    def packed(self, state: Any) -> np.ndarray:
        """The numbers in which states of a run differ, exactly, as checkpoints keep them."""
        return self.coordinates(state)

    def unpacked(self, array: np.ndarray) -> Any:
        """The state with these numbers."""
        return self.state_of(array)

    def recorded(self) -> dict[str, Any]:
        """Plain data on the initial state for the options of a result."""
        return {}

    # Motion --------------------------------------------------------------------------------

    @abstractmethod
    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates, of the shape of y."""

    # Derivatives ---------------------------------------------------------------------------

    @property
    def tangent_arrays(self) -> tuple[str, ...]:
        """The names of the arrays of a state whose changes are known along tangents."""
        return tuple(self.like.parts) or tuple(self.like.arrays())

    def state_along(self, state: Any, changes: Sequence[Mapping[str, Array] | None]) -> Any:
        """The state with `Dual` arrays: changes of each tangent by name, None for none."""
        return state_along(state, changes, self.tangent_arrays)

    def linearised(
        self, names: Sequence[str | None], directions: Sequence[Mapping[str, Array] | None]
    ) -> LinearisedMotion:
        """The motion with tangents: by parameters, by their names, and in directions.

        Raises
        ------
        MeanfieldError
            For a motion, or a model, whose runs are not differentiated.
        """
        return LinearisedMotion(self, names, directions)

    def along(self, names: Sequence[str | None], state: Any) -> Self:
        """This motion with `Dual` parameters of these names, for a state of `Dual` arrays."""
        part = copy(self)
        part.model, part.like = self.model.along(names), state
        part.setup()
        return part

    def velocity_from(self, y: Dual, t: float, known: Array, beside: Array | None) -> Any:
        """`velocity` of y with tangents, where its value is known, and its intermediate results."""
        return self.velocity(y, t)

    def merged(self, y: Dual, labels: np.ndarray) -> tuple[Any, Dual]:
        """The state of fewer rows, and their coordinates, where rows of equal labels become one."""
        name = self.moves.__name__
        raise MeanfieldError(f"Derivatives of runs of {name} in which some merged are not known.")

    def direction(self, given: Any, state: Any) -> Mapping[str, Array]:
        """A change of the initial state, by the names of its arrays, as `linearised` takes it."""
        known = self.tangent_arrays
        if not isinstance(given, Mapping) or not set(given) <= set(known):
            raise TypeError(
                f"tangents must have names of parameters, or changes by the names {list(known)}; "
                f"got {as_given(given)}."
            )
        changes = {name: finite_array(f"The change of {name}", a) for name, a in given.items()}
        for name, array in changes.items():
            shape = getattr(state, name).shape
            fitting(f"The change of {name}", array.shape, f"of shape {shape}", array.shape == shape)
        return changes

    def tangent_space(
        self, state: Any
    ) -> tuple[int, Callable[[np.random.Generator], Mapping[str, Array]]]:
        """The dimension of the tangent space, of each replica, and a draw of a random direction.

        Raises MeanfieldError where it is not known, or coordinates have directions that change no
        state.
        """
        raise MeanfieldError(
            f"Lyapunov exponents of runs of {self.moves.__name__} are not known. Solve for Tokens."
        )

    def tangent_vectors(self, y: Dual) -> Array:
        """The tangents as vectors with a norm, (members, p, N)."""
        return y.changes.reshape(1, len(y.changes), -1)

    def smooth_observables(self, state: Any, t: float) -> dict[str, Any]:
        """Observables that have derivatives, of a state that may have tangents."""
        return {}

    def step(self, scheme: Splitting, y: np.ndarray, t: float, dt: float, rng: Any) -> np.ndarray:
        """The coordinates after one step of a splitting among `schemes`."""
        raise MeanfieldError(
            f"{type(self).__name__} needs a method step(scheme, y, t, dt, rng) for steps of "
            f"{scheme.name}, and has none. Define it, or choose another scheme."
        )

    def projected(self, y: np.ndarray) -> np.ndarray:
        """Coordinates of a state next to y, which is off the space by the error of a step."""
        return y

    def relative_error(self, error: np.ndarray, y: np.ndarray) -> float:
        """The size of an error of the coordinates that is compared with rtol."""
        return float(np.abs(error).max(initial=0.0))

    def rate(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """The rate of change that is compared with the tolerance of a steady state."""
        return float(np.abs(velocity).max(initial=0.0))

    def growth(self, y: np.ndarray, velocity: np.ndarray, t: float) -> float:
        """The rate of growth that may be that of a blow-up; <= 0 where none is to be expected."""
        return 0.0

    @property
    def random(self) -> bool:
        return False

    # Replicas ------------------------------------------------------------------------------

    @property
    def members(self) -> int:
        """The number of independent systems on the first axis of coordinates; 0 for a single one.

        They can take steps of their own, by `of_members`, `relative_errors` and `rates`.
        """
        return 0

    @property
    def alike(self) -> bool:
        """Whether the members of an ensemble differ in numbers alone, at all times."""
        return False

    @property
    def autonomous(self) -> bool:
        """Whether velocities do not depend on time between two breakpoints."""
        return False

    def of_members(self, members: Any) -> Self:
        """The motion of some of the systems, given by their numbers (R',): it has velocities."""
        raise MeanfieldError(f"{type(self).__name__} moves a single system.")

    def relative_errors(self, error: np.ndarray, y: np.ndarray) -> np.ndarray:
        """`relative_error` of each system, (R,)."""
        return np.array([self.relative_error(error, y)])

    def rates(self, y: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """`rate` of each system, (R,)."""
        return np.array([self.rate(y, velocity)])

    # Parameters that jump ------------------------------------------------------------------

    def breakpoints(self, start: float, end: float) -> list[float]:
        """Times between start and end that no step passes; one for those that are one time.

        There the model changes at once, as far as it knows and as a user has told.
        """
        told = [t for t in self.breaks if start < t < end]
        return distinct([*self.model.breakpoints(start, end), *told])

    def enter(self, start: float, end: float) -> None:
        """Restrict times to a span between two breakpoints: others count as the nearer end."""
        self._ends = start, end

    @property
    def ends(self) -> tuple[float, float]:
        """The times between which it was told to be."""
        return self._ends

    def inside(self, t: float) -> float:
        """The time t, or one next to it that is certainly between two breakpoints."""
        start, end = self._ends
        return min(max(t, start), end)

    # Along a run ---------------------------------------------------------------------------

    def after_step(self, y: np.ndarray, t: float) -> None:  # noqa: B027
        """Look at the coordinates after a step, and remember what `warning` will say."""

    def snapshot(self) -> dict[str, Any]:
        """The memory of a motion along a run, as plain data that JSON can write."""
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:  # noqa: B027
        """Go back to a snapshot."""

    def size(self, y: np.ndarray) -> str:
        """The resolution of the coordinates, for the progress bar."""
        return self.like.size_in_words

    def stats(self, state: Any, t: float) -> dict[str, Any]:
        """Statistics of a run besides counts, from its last state, at t."""
        return {}

    def warning(self, state: Any, t: float, failure: Failure) -> str | None:
        """A warning about a run that ends with this state, at t; None if all is well."""
        return None

    def warning_of_start(self, state: Any, rtol: float) -> str | None:
        """A warning about a run from this state that is not resolved at the start; else None."""
        return None

    def is_wrong(
        self, state: Any, t: float, rtol: float, *, thoroughly: bool = False
    ) -> np.ndarray:
        """A mask of the members, in C order, seen not to be resolved in this state, at t."""
        return np.zeros(math.prod(state.shape), dtype=bool)

    def why_wrong(self, state: Any, t: float, failure: Failure) -> str:
        """The reason why a state `is_wrong`, as a verb phrase that follows its noun."""
        return "is not resolved."

    def without_warning(self, state: Any, t: float, rtol: float) -> np.ndarray:
        """A mask over members, in C order: True where `warning` would return None for this state.

        Their `stats` are empty, and there is no `remark`.
        """
        return np.zeros(math.prod(state.shape), dtype=bool)

    def remark(self, state: Any) -> str | None:
        """A sentence added to the message of a run that ends with this state, without a warning."""
        return None

    def failure(self, status: str, at: Failure) -> str:
        """The reason why a run could not go on, and what to do, in words."""
        if status == "not_finite":
            return f"After t = {at.t:g}{at.member} {self.not_finite}: use a smaller dt."
        why = self.why_stalled(at) if at.stalled else self.why_rejected(at)
        return f"No step size{at.member} meets rtol at t = {at.t:g}: {why}"

    def why_rejected(self, at: Failure) -> str:
        """The reason why no step was short enough."""
        return (
            "the velocity is not smooth there, or not finite. Use a larger rtol, or dt= for fixed "
            "steps."
        )

    def why_stalled(self, at: Failure) -> str:
        """The reason why steps became shorter than the clock can show, and what helps."""
        return f"{self.stall(at)}. {RESTART_ADVICE}"

    @staticmethod
    def stall(at: Failure) -> str:
        """The state of a run whose steps are too short for the clock, in words."""
        return (
            f"the clock stands still there, where numbers are {np.spacing(at.elapsed):.1g} apart, "
            f"while the state goes on changing in steps of {at.step:.1g}"
        )

    def why_not_finite(self, y: np.ndarray, t: float) -> str:
        """The reason why velocities at these coordinates are not finite, and what helps."""
        if not np.isfinite(y).all():
            return f"nor are the coordinates of the {self.moves.__name__} that the run begins with."
        return f"look at what {type(self).__name__}.velocity returns, where coordinates are finite."

    # Measured ------------------------------------------------------------------------------

    def attended(self, state: Any) -> Any:
        """The output of one layer of attention, for states that `attend` takes."""
        raise MeanfieldError(
            f"{type(self).__name__} needs a method attended(state) for the answer of attention "
            "alone, and has none. Define it."
        )

    def measure(self, state: Any, t: float = 0.0) -> dict[str, Any]:
        """Observables of a state at the time t: names, and numbers or arrays.

        Figures show them in this order, and as `declare` of the module `observables` has told.
        """
        return {}

    @classmethod
    def resolution(cls, state: Any) -> dict[str, Any]:
        """Numbers, one for all members, that results keep at every time besides observables."""
        return {}


def motion_for(state: Any) -> type[Motion]:
    """The class of motions that moves a state: that of its class, or of the nearest base of it.

    Raises
    ------
    TypeError
        If there is none.
    """
    for kind in type(state).__mro__:
        if kind in MOTIONS:
            return MOTIONS[kind]
    known = ", ".join(motion.example or name.__name__ for name, motion in MOTIONS.items())
    advice = "A class of your own is moved by a class derived from mf.Motion."
    if isinstance(state, np.ndarray):
        advice = "Of an array of hidden states (n, d) Tokens.from_hidden(h) makes one."
    raise TypeError(f"Expected a state, one of {known}; got {type(state).__name__}. {advice}")


def in_shape_of(model: Transformer, state: Any, *, least: int = 0) -> Any:
    """The state in the ensemble shape of the model too.

    Raises ValueError if they do not broadcast, or for fewer than `least` tokens.
    """
    if least and len(state) < least:
        raise ValueError("A single token has none to attend to; solve needs n >= 2 tokens.")
    shape = common_shape(
        "The ensembles of model and state",
        {"model": model.shape, "state": state.shape},
        "For a table of both give one of them a trailing axis.",
    )
    return state if shape == state.shape else state.broadcast(shape)


def careful_step(model: Transformer, dimension: int, on_sphere: bool, start: float) -> float:
    """A step that is small against the times in which drift and noise move tokens.

    Raises
    ------
    ValueError
        Where these are not known beforehand.
    """
    known = model.noise.known_rate and model.drift.known_rate(on_sphere)
    known = known and model.normalisation.is_identity and model.steady_noise
    known = known and (model.causal is None or model.causal.plain)
    with np.errstate(over="ignore"):  # no step is short enough then
        noises = 1 / model.kappa_at(start)
        if model.common is not None:
            known, noises = known and model.common.known_rate, noises + 1 / model.common.kappa
    if not known or model.reaction or model.feedforward:
        raise ValueError(
            "This model needs dt, the length of its steps with noise: it has no default where "
            "a normalisation, reaction, feed-forward map, changing parameters, a noise of its own "
            "or causal weights by place decide how fast tokens move. Try one and half of it."
        )
    with np.errstate(over="ignore"):
        fastest = np.max(model.drift.rate(start) + (dimension - 1) * noises)
    if not 0 < NOISE_STEP_SHARE / fastest < np.inf:
        raise ValueError(
            f"This model needs dt, the length of its steps with noise: its rates are {fastest}."
        )
    return float(NOISE_STEP_SHARE / fastest)


def distinct(times: Iterable[float]) -> list[float]:
    """Times in order, one for those that are equal but for rounding."""
    apart: list[float] = []
    for t in sorted(times):
        if not apart or t - apart[-1] > SAME_JUMP * abs(t):
            apart.append(t)
    return apart


def attend(drift: Drift, state: S) -> S:
    """Output of one layer of attention, without the residual: x_i <- A_i/|A_i|, r_i <- |A_i|.

        A_i = sum_j m_j k(<x_i, x_j>) x_j / Z(x_i)

    In R^d x_i <- A_i. With k(x, y) = e^(-beta |x - y|^2 / 2) normalised, in R^d or on the sphere,
    where that is SA, it is a step of Gaussian blurring mean-shift.

    Of equiangular tokens the logit grows by 2 log(1 + n k(rho)/(k(1) - k(rho))); where k is
    constant all outputs are the same, and it is infinite.

    Parameters
    ----------
    drift : Drift
        Any, for tokens; `USA`, `SA`, `Kuramoto` or `Interaction` for equiangular ones. Parameters
        that depend on time are those at t = 0.
    state : Tokens or Equiangular
        The radii of tokens on a sphere do not matter: attention sees directions.

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
    fitting("drift", drift, "a Drift", isinstance(drift, Drift), TypeError)
    tokens = isinstance(state, Tokens | Equiangular)
    fitting("state", state, "Tokens or Equiangular", tokens, TypeError)
    sphere = getattr(state, "on_sphere", True)
    model = Transformer(drift, normalisation=PreLN() if sphere else PostLN())
    state = in_shape_of(model, state)
    return motion_for(state)(model, state).attended(state)
