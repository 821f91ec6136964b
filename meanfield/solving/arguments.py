"""The arguments of `solve`, checked before anything is computed."""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cache, partial
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.annotations import JsonTable, MovedState
from ..core.cached import cached_property
from ..core.checks import as_given, check_increasing, check_memory, generator, real_array, require
from ..core.forms import Natural, Positive, TimeSpan, nearest
from ..core.kinds import Kind
from ..dynamics.motion import Motion, motion_for
from ..engines import Summation
from ..models.parameters import StateSizes
from ..models.transformer import Transformer
from ..spaces.density import Density
from ..states import State
from ..steppers import SCHEMES, SPLITTINGS, Layers, Scheme, Splitting
from .checkpoint import Keeper
from .conditions import Condition
from .merging import checked_distance
from .streams import Seeds, state_as_json, streams_of

DEFAULT_OUTPUTS = 101
RELATIVE_TOLERANCE = 1e-8  # default of rtol
STEADY_TOLERANCE = 1e-10  # default of steady_tolerance, a rate of change
FEWEST_MODES = 16
LAYER_ROUNDING = 1e-9
LONGEST_SPAN = 1e300  # longest t_span: steps times the weights of a scheme do not overflow
MOST_LAYERS = 10**6
SAME_TIME = 8 * np.finfo(float).eps  # relative difference up to which two times are the same
PROVENANCE_KEYS = {"model", "options", "versions", "machine", "written"}


class Requested(NamedTuple):
    """Scheme, step and bounds of the degree as the user gave them; None means automatic."""

    scheme: Any
    dt: float | None
    min_degree: int | None
    max_degree: int | None

    def chosen(self, motion: Motion, start: float, end: float) -> dict[str, Any]:
        """Scheme, step and bounds of the degree of a run from `start` to `end`, as a dict.

        The keys are "scheme", "dt" and "degrees". Raises ValueError if they do not fit the motion.
        """
        scheme, dt = motion.chosen_scheme(self.scheme, self.dt, start)
        shortest = np.spacing(max(abs(start), abs(end)))  # shorter steps do not change the time
        expected = f"at least {shortest:.3g}, by which numbers of the size of the times differ"
        require("dt", dt, expected, dt is None or dt >= shortest)
        degrees = _degrees(motion, (start, end), self.min_degree, self.max_degree)
        return {"scheme": scheme, "dt": dt, "degrees": degrees}


@dataclass(frozen=True)
class Arguments:
    """Checked arguments of a run, and the motion that belongs to them.

    Attributes
    ----------
    start : float
        First time of the run.
    times : ndarray
        Output times.
    default_times : bool
        Whether the output times are those that a run has by default.
    breaks : tuple of float
        The argument `breaks` of `solve`: times that no step passes.
    jumps : list of float
        Times, relative to `start`, that no step passes: `breaks`, and jumps of the model.
    requested : Requested
        Scheme, step and bounds of the degree as the user gave them.
    scheme : Scheme or Splitting or None
        None: the run chooses the scheme and may change it.
    degrees : (int, int)
        Lowest and highest degree of a density; (0, 0) for states without a degree.
    steady : float
        Rate of change at or below which the run ends; 0 switches this off.
    tangents : bool
        Whether derivatives of the run are wanted.
    rng, common_rng : Generator, Streams or None
        Random numbers of the independent noise and of the common noise.
    seed : object
        Plain data that identify the generator `rng`; both are None if no random numbers are read.
    apart : bool
        Whether the state is an ensemble of densities whose members have separate steps: see
        `members`. Under common noise it is False: steps and degree are shared.
    autonomous : bool
        Whether the motion does not depend on time.
    make_motion : callable
        Function without arguments that returns `motion`.
    """

    model: Transformer
    state: MovedState
    start: float
    times: np.ndarray
    default_times: bool
    breaks: tuple[float, ...]
    jumps: list[float]
    rtol: float
    requested: Requested
    scheme: Any
    dt: float | None
    degrees: tuple[int, int]
    steady: float
    max_steps: int
    events: tuple[Callable[[float, Any], float], ...]
    callback: Callable[[float, Any], Any] | None
    tangents: bool
    engine: Summation | None
    merge: float | None
    rng: Any
    common_rng: Any
    seed: object
    apart: bool
    autonomous: bool
    dense: bool
    threads: int
    progress: bool | None
    keeper: Keeper
    provenance: JsonTable
    make_motion: Callable[[], Any]

    @classmethod
    def of(
        cls,
        model: Transformer,
        state: MovedState,
        t_span: TimeSpan,
        t_eval: Any,
        breaks: Sequence[float],
        requested: Requested,
        *,
        rtol: float,
        until: Any,
        steady_tolerance: float,
        events: Any,
        tangents: Any,
        dense: bool,
        engine: Summation | None,
        merge: float | None,
        rng: Any,
        threads: int,
        keeper: Keeper,
        provenance: Any,
        **others: Any,
    ) -> "Arguments":
        """Check the arguments of `solve`, whose types are checked already, and complete them.

        `others` are fields that are stored without a check.

        Raises
        ------
        TypeError, ValueError, MeanfieldError
            If an argument is invalid, or arguments do not fit together.
        """
        if not 1e-13 <= rtol <= 1e-3:
            raise ValueError(f"rtol must be between 1e-13 and 1e-3; got rtol = {rtol!r}.")
        scheme = _checked_scheme(requested.scheme)
        start, times = times_of(t_span, t_eval, requested.dt if scheme is Layers else None)
        user_breaks = breaks_of(breaks, t_span)
        if isinstance(state, State):
            if not state.parts:
                state.check_arrays()
            model = model.resolve(StateSizes(state.dimension, state.tokens, state.shape))
        kind = motion_for(state, model)
        state = kind.prepared(model, state)
        _check_outputs(len(times), state)
        events = (events,) if callable(events) else tuple(events)
        if callable(until):
            events, until = (*events, Condition(until)), None
        motion = kind(model, state, engine, scheme=scheme, rtol=rtol)
        motion.breaks = user_breaks
        _check_options(motion, requested, engine=engine, merge=merge, rng=rng, dense=dense)
        _check_until(until, steady_tolerance, motion)
        choice = requested.chosen(motion, start, float(times[-1]))
        merge = checked_distance(merge, motion)
        generator, seed = _random(rng, motion.random, keeper.path)
        streams = streams_of(
            generator,
            getattr(state, "shape", ()),
            each=motion.draws_by_member,
            common=model.common is not None,
        )
        own_times = motion.semilinear and state.shape != () and not motion.random
        expected = "1, as there is no ensemble of densities"
        require("threads", threads, expected, own_times or threads == 1)
        return cls(
            model=model,
            state=state,
            start=start,
            times=times,
            default_times=t_eval is None,
            breaks=user_breaks,
            jumps=_jumps(motion, start, times - start),
            rtol=rtol,
            requested=requested,
            **choice,
            steady=steady_tolerance if until else 0.0,
            events=events,
            tangents=isinstance(tangents, Sized) and len(tangents) > 0,
            dense=dense,
            engine=engine,
            merge=merge,
            rng=streams[0],
            common_rng=streams[1],
            seed=seed,
            apart=own_times,
            autonomous=motion.autonomous,
            threads=threads,
            keeper=keeper,
            provenance=_plain_data(provenance),
            make_motion=lambda: motion,
            **others,
        )

    @cached_property
    def motion(self) -> Any:
        """The motion of the state."""
        return self.make_motion()

    def members(self) -> Iterator["Arguments"]:
        """Arguments of each member of an ensemble, in C order, as those of a single run.

        If the members differ in numbers only (`Motion.alike`), members of the same degree share
        the choice of scheme, step and degrees, and their motions are made on first use.
        """
        end, choices = float(self.times[-1]), dict[int, dict[str, Any]]()
        for number, state in enumerate(self.state.members()):
            make = cache(partial(self.motion.of_members, number))
            key = state.space.degree if self.motion.alike else number
            if key not in choices:
                choices[key] = self.requested.chosen(make(), self.start, end)
            if not self.motion.alike:
                choices[key] |= {"model": make().model, "autonomous": make().autonomous}
            yield replace(self, apart=False, state=state, make_motion=make, **choices[key])

    def check_tolerance(self) -> None:
        """Raise ValueError if `rtol` was given but steps have a fixed length, without tolerance."""
        if self.dt and self.rtol != RELATIVE_TOLERANCE and not self.motion.takes("rtol"):
            adaptive = "" if self.motion.random else "dt for steps with a tolerance, or "
            raise ValueError(
                f"rtol = {self.rtol!r} has no effect: {type(self.state).__name__} moves in steps "
                f"of fixed length here, dt = {self.dt:.3g}, which have no tolerance. Leave out "
                f"{adaptive}rtol; the error shows in a second run with half of dt."
            )

    def described(self) -> JsonTable:
        """Options that determine the result, besides model and state, as plain data."""
        described = {}
        if self.motion.random or self.motion.options & {"engine", "merge"}:
            described = {"engine": repr(self.engine), "merge": self.merge, "seed": self.seed}
        if self.breaks:
            described["breaks"] = list(self.breaks)
        if self.dense:
            described["dense"] = True
        return {
            "t_start": self.start,
            "t_eval": self.times.tolist(),
            "rtol": self.rtol,
            "dt": self.dt,
            "scheme": self.scheme and self.scheme.name,
            "steady_tolerance": self.steady,
            "min_degree": self.degrees[0],
            "max_degree": self.degrees[1],
            "events": list(map(_name_of, self.events)),
            **described,
            **self.motion.recorded(),
        }


def _check_options(motion: Motion, requested: Requested, *, dense: bool, **options: Any) -> None:
    """Raise ValueError for options that have no effect on this motion."""
    degrees = {name: getattr(requested, name) for name in ("min_degree", "max_degree")}
    for name, value in {**degrees, **options}.items():
        if value is not None and not motion.takes(name):
            raise ValueError(motion.refusal(name, value))
    if dense and motion.random:
        raise ValueError(
            "dense=True is for runs without random numbers, whose steps can be repeated up to any "
            f"time; for {motion.model!r} give the times in t_eval."
        )


def _checked_scheme(scheme: Any) -> Any:
    """`scheme`; raises TypeError if it is neither None nor one of `mf.steppers`."""
    if not isinstance(scheme, Scheme | Splitting | None):
        names, template = [choice.name for choice in (*SCHEMES, *SPLITTINGS)], "mf.steppers.{}"
        raise TypeError(
            f"scheme must be one of the objects {', '.join(map(template.format, names))}; got "
            f"scheme = {as_given(scheme)}{nearest(scheme, names, template) or '.'}"
        )
    return scheme


def _check_until(until: Any, steady_tolerance: float, motion: Motion) -> None:
    """Raise ValueError unless states can come to rest, or if only the tolerance is given."""
    model = motion.model
    if until is None and steady_tolerance != STEADY_TOLERANCE:
        raise ValueError(
            'steady_tolerance has an effect only with until="steady"; got steady_tolerance = '
            f"{steady_tolerance!r} and until = None."
        )
    if until and not (model.drift.constant and model.normalisation.constant):
        raise ValueError(
            f'until="steady" is for models that do not change with time: under {model!r} '
            "tokens may rest and move again. Look at observables over time instead."
        )
    if until and motion.random:
        raise ValueError(
            'until="steady" is for states that come to rest, which no state under random numbers '
            "does. Look at observables over time instead."
        )


def _name_of(event: Any) -> str:
    """Name of the function of an event or a condition."""
    function = getattr(event, "function", event)
    return getattr(function, "__qualname__", type(function).__qualname__)


def _jumps(motion: Motion, start: float, outputs: np.ndarray) -> list[float]:
    """Times, relative to the start, that no step passes: breakpoints of the motion.

    A breakpoint that differs from an output by rounding (SAME_TIME) is replaced by the output.
    """
    end, jumps = start + float(outputs[-1]), []
    for t in motion.breakpoints(start, float(np.nextafter(end, np.inf))):
        elapsed = min(t, end) - start
        nearest_output = float(outputs[np.abs(outputs - elapsed).argmin()])
        same = abs(nearest_output - elapsed) <= SAME_TIME * max(abs(start), abs(start + elapsed))
        jumps.append(nearest_output if same else elapsed)
    return jumps


def times_of(t_span: Sequence[float], t_eval: Any, layer: float | None) -> tuple[float, np.ndarray]:
    """First time, and output times (n,), from the arguments `t_span` and `t_eval` of `solve`.

    Without `t_eval` there are 101 equally spaced times, or with `layer`, the depth of a layer, the
    times of all layers.
    """
    increase = len(t_span) == 2 and t_span[0] < t_span[1]
    require("t_span", t_span, "two times (start, end), start < end", increase)
    start, end = t_span
    shorter = f"of a length of at most {LONGEST_SPAN:g}"
    require("t_span", t_span, shorter, end - start <= LONGEST_SPAN)
    if isinstance(t_eval, Times):
        times = t_eval.between(start, end)
    elif t_eval is not None:
        times = np.atleast_1d(real_array("t_eval", t_eval))
    elif layer is not None:
        times = _layer_times(start, end, layer)
    else:
        times = np.linspace(start, end, DEFAULT_OUTPUTS)
        if not (np.diff(times) > 0).all():
            raise ValueError(
                f"t_span = {t_span!r} has no room for {DEFAULT_OUTPUTS} different times: let it "
                "start at 0, or give t_eval."
            )
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"t_eval must be a list of times; got {as_given(t_eval)}.")
    check_increasing("t_eval", times)
    is_within = start <= times[0] and times[-1] <= end
    require("t_eval", t_eval, f"within t_span = [{start}, {end}]", is_within)
    return start, times


def breaks_of(breaks: Sequence[float], t_span: Sequence[float]) -> tuple[float, ...]:
    """Checked argument `breaks` of `solve`: increasing times within `t_span`, ends included."""
    start, end = t_span
    check_increasing("breaks", breaks)
    is_within = all(start <= t <= end for t in breaks)
    advice = "Leave out those of another part of the run."
    require("breaks", breaks, f"times within t_span = [{start}, {end}]", is_within, advice=advice)
    return tuple(breaks)


def _check_outputs(outputs: int, state: MovedState) -> None:
    """Raise ValueError if memory cannot hold the states at all outputs."""
    if isinstance(state, Density):
        numbers = 2 * state.coefficients.size
    else:
        numbers = sum(np.size(array) for _, array in state.arrays().values())
    subject = f"t_eval: {outputs} outputs of {numbers} numbers"
    check_memory(subject, (outputs, numbers), "the number of outputs, or the size of the state")


def _plain_data(provenance: Any) -> JsonTable:
    """Argument `provenance`, or {} for None.

    Raises TypeError unless it is a dict that JSON can write, ValueError if it has a key that the
    package writes itself.
    """
    try:
        json.dumps(provenance, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise TypeError(f"provenance must be plain data that JSON can write: {error}.") from None
    if not isinstance(provenance, dict | None):
        raise TypeError(f"provenance must be a dict of plain data; got {as_given(provenance)}.")
    if reserved := sorted(PROVENANCE_KEYS & set(provenance or {})):
        raise ValueError(f"provenance has {reserved} already, of the run itself; rename yours.")
    return provenance or {}


def _degrees(
    motion: Any, span: tuple[float, float], min_degree: int | None, max_degree: int | None
) -> tuple[int, int]:
    """Lowest and highest degree of a run; (0, 0) for a state without a degree.

    Raises ValueError if the bounds exclude each other or the degree of the initial density.
    """
    if "min_degree" not in motion.options:
        return 0, 0
    density: Any = motion.like
    default = " (which is the default)" if min_degree is None else ""
    min_degree = FEWEST_MODES if min_degree is None else min_degree
    if max_degree is None:
        max_degree = max(density.space.largest_degree, density.space.degree)
    if min_degree > max_degree or density.space.degree > max_degree:
        raise ValueError(
            "solve needs min_degree <= max_degree and an initial density of degree <= "
            f"max_degree; got min_degree = {min_degree}{default}, max_degree = {max_degree} and "
            f"degree {density.space.degree}."
        )
    return max(min_degree, motion.least_degree(span, max_degree)), max_degree


def _random(rng: Any, draws: bool, checkpoint: Path | None) -> tuple[Any, object]:
    """Generator or `Seeds` of a run, and plain data that identify it; both None unless `draws`.

    Parameters
    ----------
    rng : Generator, seed, Seeds or None
        None draws a new seed, except with a checkpoint, which raises ValueError.
    draws : bool
        Whether the run needs random numbers.
    checkpoint : Path or None
        File of the checkpoint.
    """
    if not draws:
        generator(rng)  # checks it only
        return None, None
    if rng is None and checkpoint is not None:
        raise ValueError(
            "A run with noise and a checkpoint needs rng, a seed or a Generator in the same state: "
            "only then can it be resumed with the same random numbers."
        )
    if rng is None:
        rng = np.random.SeedSequence().entropy
    if isinstance(rng, Seeds):
        return rng, list(rng.numbers)
    numbers = generator(rng)
    if isinstance(rng, Integral):
        return numbers, int(rng)
    children = getattr(numbers.bit_generator.seed_seq, "n_children_spawned", 0)
    return numbers, json.loads(state_as_json(numbers)) | (
        {"children": children} if children else {}
    )


def _layer_times(start: float, end: float, dt: float) -> np.ndarray:
    """Times of all layers of depth dt, both ends included.

    Raises ValueError for more than a million layers, or a span that is no multiple of dt.
    """
    layers = (end - start) / dt
    if layers > MOST_LAYERS:
        raise ValueError(
            f"t_span has {layers:.3g} layers of dt = {dt:g}, too many to save each: say which by "
            "t_eval."
        )
    if round(layers) < 1 or abs(layers - round(layers)) > LAYER_ROUNDING * layers:
        raise ValueError(
            f"steppers.Layers takes steps of exactly dt = {dt:g}, and t_span is {layers:g} of "
            "them: expected a whole number >= 1."
        )
    return start + dt * np.arange(round(layers) + 1)


def check_layers(elapsed: Any, dt: float | None, subject: str) -> None:
    """Raise ValueError unless times relative to the start are multiples of dt, to rounding.

    `subject` names the times in the message.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond 1e308 are not whole
        layers = np.asarray(elapsed) / (dt or np.nan)
        deviations = np.abs(layers - np.round(layers)) / np.clip(layers, 1.0, MOST_LAYERS)
    if layers.size and not deviations.max() <= LAYER_ROUNDING:
        worst = float(layers[deviations.argmax()])
        raise ValueError(
            f"steppers.Layers takes steps of exactly dt = {dt:g}, and {subject} is {worst:g} "
            "layers after the start: expected a whole number. Leave t_eval out to see every layer."
        )


# Output times, as configuration files give them ----------------------------------------------


class Times(Kind, family=True):
    """Times of outputs between the ends of a run, in place of a list of them."""

    count: Natural

    def validate(self) -> None:
        if self.count < 2:
            raise ValueError(f"count must be >= 2, as both ends are among them; got {self.count}.")
        check_memory(f"count = {self.count} times", (4, self.count), "count")

    @abstractmethod
    def between(self, start: float, end: float) -> np.ndarray:
        """The times, increasing, from `start` to `end`."""


class Linspace(Times):
    """Equally spaced times.

    Parameters
    ----------
    count : int
        How many, both ends among them.
    """

    def between(self, start: float, end: float) -> np.ndarray:
        return np.linspace(start, end, self.count)


class Geomspace(Times):
    """The start, and times whose distances from it grow by a common factor.

    Parameters
    ----------
    count : int
        How many, both ends among them.
    first : float
        The first of them after the start, as a time since the start.
    """

    first: Positive

    def between(self, start: float, end: float) -> np.ndarray:
        """The start, and times whose distances from it are geometric from `first` on."""
        if not self.first < end - start:
            raise ValueError(
                f"t_eval must lie within t_span, of length {end - start:g}; the first time after "
                f"the start is {self.first:g} later."
            )
        later = np.geomspace(self.first, end - start, self.count - 1)
        return start + np.concatenate([[0.0], later])
