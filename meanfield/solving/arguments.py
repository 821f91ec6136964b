"""The arguments of `solve`, checked before anything is computed."""

import copy
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Sized
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..core.cached import cached_property
from ..core.checks import as_given, check_memory, fitting, generator, real_array
from ..core.forms import Natural, Positive, nearest
from ..core.kinds import Kind
from ..dynamics.motion import Motion, motion_for
from ..models.parameters import StateSizes
from ..models.transformer import Transformer
from ..spaces.density import Density
from ..states import State
from ..steppers import SCHEMES, SPLITTINGS, Layers, Scheme, Splitting
from .checkpoint import Keeper
from .merging import checked_distance
from .streams import Seeds, streams_of

DEFAULT_OUTPUTS = 101
STEADY_TOLERANCE = 1e-10  # a rate of change, the default of steady_tolerance
FEWEST_MODES = 16
LAYER_ROUNDING = 1e-9
LONGEST_SPAN = 1e300  # a span, so that steps times weights of a scheme are numbers
MOST_LAYERS = 10**6
SAME_TIME = 8 * np.finfo(float).eps  # times that differ by it, relative, are the same
PROVENANCE_KEYS = {"model", "options", "versions", "machine", "written"}
STATE_OPTIONS = ("min_degree", "max_degree", "engine", "merge", "rng")  # see `Motion.options`


class Arguments:
    """The arguments of `solve`, which fit together, and the motion that they make.

    Parameters
    ----------
    given : mapping
        The arguments by the names of the parameters, each as its annotation says.

    Attributes
    ----------
    times : ndarray
        Of the outputs.
    scheme : Scheme or Splitting or None
        None is a choice as the run goes.
    breaks : tuple of float
        Times that no step passes, beside those at which the model is known to jump.
    tangents : bool
        Whether derivatives of the run are asked for.
    apart : bool
        Whether it is an ensemble whose members move apart: see `members`. Under common noise they
        have steps of a given length, and share the degree.
    steady : float
        The rate of change at which to end; 0 never.
    rng, common_rng : Generator, Streams or None
        What draws independent and common noise.
    seed : object
        What tells the generator `rng` from others, as plain data; both are None if none is read.
    degrees : (int, int)
        The least and the highest degree of a density; else zeros.

    Raises
    ------
    TypeError, ValueError, MeanfieldError
        For what makes no sense, or does not fit together.
    """

    _ensemble: "Arguments"  # of a member
    _number: int

    def __init__(self, given: Mapping[str, Any]):
        model, state, scheme, dt = (given[name] for name in ("model", "state", "scheme", "dt"))
        self.rtol, self.max_steps = given["rtol"], given["max_steps"]
        if not 1e-13 <= self.rtol <= 1e-3:
            raise ValueError(f"rtol must be between 1e-13 and 1e-3; got rtol = {self.rtol!r}.")
        if not isinstance(scheme, Scheme | Splitting | None):
            names, where = [one.name for one in (*SCHEMES, *SPLITTINGS)], "mf.steppers.{}"
            raise TypeError(
                f"scheme must be one of the objects {', '.join(map(where.format, names))}; got "
                f"scheme = {as_given(scheme)}{nearest(str(scheme), names, where) or '.'}"
            )
        layer = dt if scheme is Layers else None
        self.start, self.times = times_of(given["t_span"], given["t_eval"], layer)
        self.breaks = breaks_of(given["breaks"], given["t_span"])
        if isinstance(state, State):
            if not state.parts:
                state.check_arrays()
            model = model.resolve(StateSizes(state.dimension, state.tokens, state.shape))
        kind = motion_for(state)
        state = kind.prepared(model, state)
        _check_outputs(len(self.times), state)
        until, tolerance = given["until"], given["steady_tolerance"]
        if until is None and tolerance != STEADY_TOLERANCE:
            raise ValueError(
                'steady_tolerance has an effect only with until="steady"; got steady_tolerance = '
                f"{tolerance!r} and until = None."
            )
        self.steady = 0.0 if until is None else tolerance
        events, self.callback = given["events"], given["callback"]
        self.events = (events,) if callable(events) else events
        self.tangents = isinstance(given["tangents"], Sized) and len(given["tangents"]) > 0
        self.keeper = Keeper(given["checkpoint"], given["checkpoint_every"], given["resume"])
        options = {name: given[name] for name in STATE_OPTIONS if given[name] is not None}
        if self.steady and not (model.drift.constant and model.normalisation.constant):
            raise ValueError(
                f'until="steady" is for models that do not change with time: under {model!r} '
                "tokens may rest and move again. Look at observables over time instead."
            )
        self.engine = options.get("engine")
        self._given, self._options = given, options
        motion = self._fit(kind, model, state)
        for name, value in options.items():
            if not motion.takes(name):
                raise ValueError(kind.refusal(name, value))
        if self.steady and motion.random:
            raise ValueError(
                'until="steady" is for states that come to rest; what is moved by random numbers '
                "does not. Look at observables over time instead."
            )
        self._choose()
        self.merge = checked_distance(options.get("merge"), motion)
        rng, self.seed = _random(options.get("rng"), motion.random, self.keeper.path)
        self.rng, self.common_rng = streams_of(
            rng,
            getattr(state, "shape", ()),
            each=motion.draws_by_member,
            common=model.common is not None,
        )
        self.apart = motion.semilinear and state.shape != () and not motion.random
        self.threads, alone = given["threads"], 1 if self.apart else given["threads"]
        fitting("threads", self.threads, "1, as there is no ensemble of densities", alone == 1)
        self.progress = given["progress"]
        self.provenance = _plain_data(given["provenance"])

    def _fit(self, kind: type[Motion], model: Transformer, state: Any) -> Motion:
        """Take a model and a state, and make the motion; MeanfieldError if there is none."""
        scheme = self._given["scheme"]
        self.model, self.state = model, state
        self.motion = kind(model, state, self.engine, scheme=scheme, rtol=self.rtol)
        self.motion.breaks = self.breaks
        return self.motion

    def _choose(self) -> None:
        """Choose the scheme, the step and the degrees; ValueError for those that do not fit."""
        given, motion, last = self._given, self.motion, float(self.times[-1])
        self.scheme: Any
        self.scheme, self.dt = motion.chosen_scheme(given["scheme"], given["dt"], self.start)
        _check_step(self.dt, self.start, last)
        bounds = (self._options.get(name) for name in ("min_degree", "max_degree"))
        self.degrees = _degrees(motion, (self.start, self.start + last), *bounds)

    @cached_property
    def jumps(self) -> list[float]:
        """Times since the start that no step passes; one next to an output is that output."""
        start, outputs = self.start, self.times - self.start
        end, jumps = start + float(outputs[-1]), []
        for t in self.motion.breakpoints(start, float(np.nextafter(end, np.inf))):
            elapsed = min(t, end) - start
            nearest = float(outputs[np.abs(outputs - elapsed).argmin()])
            same = abs(nearest - elapsed) <= SAME_TIME * max(abs(start), abs(start + elapsed))
            jumps.append(nearest if same else elapsed)
        return jumps

    @property
    def alike(self) -> bool:
        """Whether the members of an ensemble differ in numbers alone, so that they share much."""
        return self.motion.alike

    def members(self) -> Iterator["Arguments"]:
        """Those of the members of an ensemble, each as if it were alone, in C order.

        Where members are alike, they make a motion of their own only if it is asked for.
        """
        degrees: dict[int, tuple[int, int]] = {}
        self.jumps  # noqa: B018  (those of all members)
        for number, state in enumerate(self.state.members()):
            one = copy.copy(self)
            one.apart, one.state, one._ensemble, one._number = False, state, self, number
            del one.motion
            if not self.alike:
                one.model = one.motion.model
                one._choose()
                yield one
                continue
            if state.space.degree not in degrees:
                one._choose()
                degrees[state.space.degree] = one.degrees
            one.degrees = degrees[state.space.degree]
            yield one

    @cached_property
    def motion(self) -> Any:
        """That of a member, made when it is asked for."""
        return self._ensemble.motion.of_members(self._number)

    @property
    def autonomous(self) -> bool:
        """Whether nothing depends on time; for a member, which may have no motion yet, for all."""
        return (self if "motion" in vars(self) else self._ensemble).motion.autonomous

    def described(self) -> dict[str, Any]:
        """What determines the result besides model and state, as plain data."""
        kept = {}
        if self.motion.random or self.motion.options & {"engine", "merge"}:
            kept = {"engine": repr(self.engine), "merge": self.merge, "seed": self.seed}
        if self.breaks:
            kept["breaks"] = list(self.breaks)
        return {
            "t_start": self.start,
            "t_eval": self.times.tolist(),
            "rtol": self.rtol,
            "dt": self.dt,
            "scheme": self.scheme and self.scheme.name,
            "steady_tolerance": self.steady,
            "min_degree": self.degrees[0],
            "max_degree": self.degrees[1],
            "events": [
                getattr(event, "__qualname__", type(event).__qualname__) for event in self.events
            ],
            **kept,
            **self.motion.recorded(),
        }


def times_of(t_span: Sequence[float], t_eval, layer: float | None) -> tuple[float, np.ndarray]:
    """The start, and the times of outputs; of every layer of this depth where none are given."""
    increase = len(t_span) == 2 and t_span[0] < t_span[1]
    fitting("t_span", t_span, "two times (start, end), start < end", increase)
    start, end = t_span
    shorter = f"of a length of at most {LONGEST_SPAN:g}"
    fitting("t_span", t_span, shorter, end - start <= LONGEST_SPAN)
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
    if not (np.diff(times) > 0).all():
        raise ValueError("t_eval must increase strictly.")
    within = start <= times[0] and times[-1] <= end
    fitting("t_eval", t_eval, f"within t_span = [{start}, {end}]", within)
    return start, times


def breaks_of(breaks: Sequence[float], t_span: Sequence[float]) -> tuple[float, ...]:
    """The times that a user knows, checked; those of the ends are ends of steps anyway."""
    start, end = t_span
    increase = all(one < other for one, other in pairwise(breaks))
    fitting("breaks", breaks, "times that increase strictly", increase)
    within = all(start <= t <= end for t in breaks)
    advice = "Leave out those of another part of the run."
    fitting("breaks", breaks, f"times within t_span = [{start}, {end}]", within, advice=advice)
    return tuple(breaks)


def _check_step(dt: float | None, start: float, end: float) -> None:
    """Raise ValueError for steps that no time from `start` to `end` is moved by."""
    least = np.spacing(max(abs(start), abs(end)))
    wanted = f"at least {least:.3g}, by which numbers of the size of the times differ"
    fitting("dt", dt, wanted, dt is None or dt >= least)


def _check_outputs(outputs: int, state: Any) -> None:
    """Raise ValueError where memory cannot hold the states at all outputs."""
    if isinstance(state, Density):
        numbers = 2 * state.coefficients.size
    else:
        numbers = sum(np.size(array) for _, array in state.arrays().values())
    what = f"t_eval: {outputs} outputs of {numbers} numbers"
    check_memory(what, (outputs, numbers), "the number of outputs, or the size of the state")


def _plain_data(provenance) -> dict[str, Any]:
    """`provenance`, or nothing for None; it must be a dict JSON can write, without our keys."""
    try:
        json.dumps(provenance, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise TypeError(f"provenance must be plain data that JSON can write: {error}.") from None
    if not isinstance(provenance, dict | None):
        raise TypeError(f"provenance must be a dict of plain data; got {as_given(provenance)}.")
    if reserved := sorted(PROVENANCE_KEYS & set(provenance or {})):
        raise ValueError(f"provenance has {reserved} already, of the run itself; rename yours.")
    return provenance or {}


def _degrees(motion: Any, span: tuple[float, float], min_degree, max_degree) -> tuple[int, int]:
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


def _random(rng, read: bool, checkpoint: Path | None) -> tuple:
    """The generator, if it is read, and what tells it from others as plain data."""
    if not read:
        generator(rng)  # a valid one is not read
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
    state = json.dumps(numbers.bit_generator.state, default=lambda array: array.tolist())
    children = getattr(numbers.bit_generator.seed_seq, "n_children_spawned", 0)
    return numbers, json.loads(state) | ({"children": children} if children else {})


def _layer_times(start: float, end: float, dt: float) -> np.ndarray:
    """The times of all layers of depth dt, a million at most."""
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


def check_layers(elapsed, dt: float | None, what: str) -> None:
    """Raise ValueError unless times since the start are whole numbers of layers."""
    with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond 1e308 are not whole
        layers = np.asarray(elapsed) / (dt or np.nan)
        off = np.abs(layers - np.round(layers)) / np.clip(layers, 1.0, MOST_LAYERS)
    if layers.size and not off.max() <= LAYER_ROUNDING:
        worst = float(layers[off.argmax()])
        raise ValueError(
            f"steppers.Layers takes steps of exactly dt = {dt:g}, and {what} is {worst:g} layers "
            "after the start: expected a whole number. Leave t_eval out to see every layer."
        )


# Times of outputs, as configuration files give them ------------------------------------------


class Times(Kind, family=True):
    """Times of outputs between the ends of a run, in place of a list of them."""

    leaves: ClassVar[dict[Any, Any]] = {}
    count: Natural

    def validate(self) -> None:
        if self.count < 2:
            raise ValueError(f"count must be >= 2, as both ends are among them; got {self.count}.")

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
        check_memory(f"count = {self.count} times", (4, self.count), "count")
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
        check_memory(f"count = {self.count} times", (4, self.count), "count")
        if not self.first < end - start:
            raise ValueError(
                f"t_eval must lie within t_span, of length {end - start:g}; the first time after "
                f"the start is {self.first:g} later."
            )
        later = np.geomspace(self.first, end - start, self.count - 1)
        return start + np.concatenate([[0.0], later])
