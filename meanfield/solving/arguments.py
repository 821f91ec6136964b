"""The arguments of `solve`, checked before anything is computed."""

import json
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import boolean, generator, path_of, positive, whole_number
from ..dynamics.motion import Motion, motion_for
from ..models.parameters import Place
from ..models.transformer import Transformer
from ..states import State
from ..steppers import Scheme, Splitting
from .merging import checked_distance
from .times import Times

__all__ = [
    "AT_REST",
    "Accuracy",
    "Arguments",
    "Keeping",
    "Options",
    "Problem",
    "Stopping",
    "check_layers",
    "layer_times",
]

OUTPUTS = 101
AT_REST = 1e-10  # a rate of change, the default of steady_tolerance
FEWEST_MODES = 16
WHOLE = 1e-9
MOST_LAYERS = 10**6
RECORDED = {"model", "options", "versions", "machine", "written"}


class Problem(NamedTuple):
    """What to solve, and where to look at it."""

    model: Transformer
    state: Any
    start: float
    times: np.ndarray

    @classmethod
    def checked(cls, model, state, t_span, t_eval) -> "Problem":
        if not isinstance(model, Transformer):
            raise TypeError(f"solve expects a Transformer as its model; got {model!r}.")
        if isinstance(t_eval, Times):
            t_eval = t_eval.between(*t_span)
        start, times = _times(t_span, t_eval)
        if isinstance(state, State):
            model = model.resolve(Place(state.dimension, state.tokens))
        return cls(model, motion_for(state).prepared(model, state), start, times)


class Accuracy(NamedTuple):
    """How well to solve it."""

    rtol: float
    dt: float | None
    scheme: Scheme | Splitting | None  # None is a choice
    max_steps: int

    @classmethod
    def checked(cls, rtol, dt, scheme, max_steps) -> "Accuracy":
        positive(rtol=rtol, max_steps=max_steps, dt=1.0 if dt is None else dt)
        max_steps = whole_number("max_steps must be a whole number", "max_steps", max_steps)
        if not 1e-13 <= rtol <= 1e-3:
            raise ValueError(f"rtol must be between 1e-13 and 1e-3; got rtol = {rtol!r}.")
        if scheme is not None and not isinstance(scheme, Scheme | Splitting):
            raise TypeError(f"scheme must be one of meanfield.steppers.SCHEMES; got {scheme!r}.")
        return cls(float(rtol), None if dt is None else float(dt), scheme, max_steps)


class Stopping(NamedTuple):
    """When to end, and who looks on."""

    steady: float
    events: tuple[Callable, ...]
    callback: Callable | None

    @classmethod
    def checked(cls, until, steady_tolerance, events, callback) -> "Stopping":
        events = (events,) if callable(events) else events
        if not isinstance(events, Sequence) or not all(callable(event) for event in events):
            raise TypeError(f"Events are functions g(t, state) -> float; got {events!r}.")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is a function of (t, state); got {callback!r}.")
        if until not in (None, "steady"):
            raise ValueError(f'until must be None or "steady"; got {until!r}.')
        positive(steady_tolerance=steady_tolerance)
        if until is None and steady_tolerance != AT_REST:
            raise ValueError(
                'steady_tolerance has an effect only with until="steady"; got steady_tolerance = '
                f"{steady_tolerance!r} and until = None."
            )
        return cls(float(steady_tolerance) if until == "steady" else 0.0, tuple(events), callback)


class Keeping(NamedTuple):
    """The checkpoint, if any."""

    path: Path | None
    every: float
    resume: bool

    @classmethod
    def checked(cls, checkpoint, checkpoint_every, resume) -> "Keeping":
        every = float(checkpoint_every) if isinstance(checkpoint_every, Real) else np.nan
        if not every >= 0:
            raise ValueError(f"checkpoint_every must be >= 0 seconds; got {checkpoint_every!r}.")
        resume = boolean("resume", resume)
        if resume and checkpoint is None:
            raise ValueError("resume=True needs checkpoint=PATH, the file to resume from.")
        return cls(None if checkpoint is None else path_of("checkpoint", checkpoint), every, resume)


class Options(NamedTuple):
    """Options of `solve` that some states have, see `Motion.options`."""

    engine: Any
    merge: float | None
    rng: np.random.Generator | None
    seed: Any
    degrees: tuple[int, int]

    @classmethod
    def checked(cls, motion: Motion, given: dict[str, Any], has_checkpoint: bool) -> "Options":
        """Options that apply, of which `given` has those that the caller gave."""
        degrees = (0, 0)
        if "min_degree" in motion.options:
            degrees = _degrees(motion.like, given.get("min_degree"), given.get("max_degree"))
        distance = checked_distance(given.get("merge"), motion)
        rng, seed = _random(given.get("rng"), motion.random, has_checkpoint)
        return cls(given.get("engine"), distance, rng, seed, degrees)


class Arguments(NamedTuple):
    """The arguments of `solve`, all valid, and the motion that they make."""

    problem: Problem
    accuracy: Accuracy
    stopping: Stopping
    keeping: Keeping
    options: Options
    motion: Motion
    progress: bool | None
    provenance: dict[str, Any]

    @classmethod
    def checked(
        cls,
        problem: Problem,
        accuracy: Accuracy,
        stopping: Stopping,
        keeping: Keeping,
        given: dict[str, Any],
        progress: bool | None,
        provenance: dict[str, Any] | None,
    ) -> "Arguments":
        """What depends on several of them; ValueError or MeanfieldError for what does not fit."""
        kind, model = motion_for(problem.state), problem.model
        given = {name: value for name, value in given.items() if value is not None}
        for name, value in given.items():
            if name not in kind.options:
                raise ValueError(kind.refusal(name, value))
        if stopping.steady and not (model.drift.constant and model.normalisation.constant):
            raise ValueError(
                f'until="steady" is for models that do not change with time: under {model!r} '
                "tokens may rest and move again. Look at observables over time instead."
            )
        motion = kind(
            model,
            problem.state,
            given.get("engine"),
            scheme=accuracy.scheme,
            rtol=accuracy.rtol,
        )
        if stopping.steady and motion.random:
            raise ValueError(
                'until="steady" is for states that come to rest; tokens with noise do not. Look at '
                "observables over time instead."
            )
        scheme, dt = motion.chosen_scheme(accuracy.scheme, accuracy.dt, problem.start)
        accuracy = accuracy._replace(scheme=scheme, dt=dt)
        options = Options.checked(motion, given, keeping.path is not None)
        shown = None if progress is None else boolean("progress", progress)
        extra = _plain_data(provenance)
        return cls(problem, accuracy, stopping, keeping, options, motion, shown, extra)

    def described(self) -> dict[str, Any]:
        """What determines the result besides model and state, as plain data."""
        events, kept = self.stopping.events, {}
        if self.motion.options & {"engine", "merge", "rng"}:
            engine, merge, _, seed, _ = self.options
            kept = {"engine": repr(engine), "merge": merge, "seed": seed}
        return {
            "t_start": self.problem.start,
            "t_eval": self.problem.times.tolist(),
            "rtol": self.accuracy.rtol,
            "dt": self.accuracy.dt,
            "scheme": self.accuracy.scheme and self.accuracy.scheme.name,
            "steady_tolerance": self.stopping.steady,
            "min_degree": self.options.degrees[0],
            "max_degree": self.options.degrees[1],
            "events": [getattr(event, "__qualname__", repr(event)) for event in events],
            **kept,
            **self.motion.recorded(),
        }


def _times(t_span: Sequence[float], t_eval) -> tuple[float, np.ndarray]:
    span = _floats(t_span)
    if span.shape != (2,) or not np.isfinite(span).all() or not span[0] < span[1]:
        raise ValueError(
            f"t_span must be two finite times (start, end), start < end; got {t_span!r}."
        )
    times = (
        np.linspace(span[0], span[1], OUTPUTS) if t_eval is None else np.atleast_1d(_floats(t_eval))
    )
    if t_eval is None and not (np.diff(times) > 0).all():
        raise ValueError(
            f"t_span = {t_span!r} has no room for {OUTPUTS} different times; let it start at 0."
        )
    if times.ndim != 1 or times.size == 0 or not np.isfinite(times).all():
        raise ValueError(f"t_eval must be a list of finite times; got {t_eval!r}.")
    if not (np.diff(times) > 0).all():
        raise ValueError("t_eval must increase strictly.")
    if times[0] < span[0] or times[-1] > span[1]:
        raise ValueError(
            f"t_eval must lie within t_span = [{span[0]}, {span[1]}]; got times from "
            f"{times[0]} to {times[-1]}."
        )
    return float(span[0]), times


def _plain_data(provenance) -> dict[str, Any]:
    """`provenance`, or nothing for None; it must be a dict JSON can write, without our keys."""
    try:
        json.dumps(provenance, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise TypeError(f"provenance must be plain data that JSON can write: {error}.") from None
    if not isinstance(provenance, dict | None):
        raise TypeError(f"provenance must be a dict of plain data; got {provenance!r}.")
    if reserved := sorted(RECORDED & set(provenance or {})):
        raise ValueError(f"provenance has {reserved} already, of the run itself; rename yours.")
    return provenance or {}


def _floats(values) -> np.ndarray:
    """The values as floats; one nan, refused later, where they are none."""
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _degrees(density, min_degree, max_degree) -> tuple[int, int]:
    min_degree = FEWEST_MODES if min_degree is None else min_degree
    if max_degree is None:
        max_degree = max(density.geometry.largest_degree, density.geometry.degree)
    min_degree = whole_number("min_degree must be a whole number", "min_degree", min_degree)
    max_degree = whole_number("max_degree must be a whole number", "max_degree", max_degree)
    if min_degree > max_degree or density.geometry.degree > max_degree:
        raise ValueError(
            "solve needs min_degree <= max_degree and an initial density of degree <= "
            f"max_degree; got min_degree = {min_degree}, max_degree = {max_degree} and "
            f"degree {density.geometry.degree}."
        )
    return min_degree, max_degree


def _random(rng, read: bool, has_checkpoint: bool) -> tuple:
    """The generator, if it is read, and what tells it from others as plain data."""
    if not read:
        generator(rng)  # a valid one is not read
        return None, None
    if rng is None and has_checkpoint:
        raise ValueError(
            "A run with noise and a checkpoint needs rng, a seed or a Generator in the same state: "
            "only then can it be resumed with the same random numbers."
        )
    if rng is None:
        rng = np.random.SeedSequence().entropy
    numbers = generator(rng)
    seed = int(rng) if isinstance(rng, Integral) else numbers.bit_generator.state
    return numbers, _plain(seed)


def _plain(seed: Any) -> Any:
    if isinstance(seed, dict):
        return {key: _plain(value) for key, value in seed.items()}
    return seed.tolist() if isinstance(seed, np.ndarray | np.generic) else seed


def layer_times(t_span, dt) -> np.ndarray | None:
    """The times of all layers of depth dt; None where the numbers make no sense.

    Raises
    ------
    ValueError
        Unless the time span is a whole number of layers, at most a million of which are listed.
    """
    span, steps = np.asarray(t_span), np.asarray(0.0 if dt is None else dt)
    numbers = span.dtype.kind in "fiu" and steps.dtype.kind in "fiu"
    if not numbers or span.shape != (2,) or steps.shape != () or not 0 < steps < np.inf:
        return None
    layers = float((span[1] - span[0]) / steps)
    if not 0 < layers < np.inf:
        return None
    if round(layers) < 1 or abs(layers - round(layers)) > WHOLE * layers:
        raise ValueError(
            f"steppers.Layers takes steps of exactly dt = {float(steps):g}, and t_span is "
            f"{layers:g} of them: expected a whole number >= 1."
        )
    if layers > MOST_LAYERS:
        raise ValueError(
            f"t_span has {layers:.3g} layers of dt = {float(steps):g}, too many to save each: say "
            "which by t_eval."
        )
    return span[0] + steps * np.arange(round(layers) + 1)


def check_layers(elapsed, dt: float | None, what: str) -> None:
    """Raise ValueError unless times since the start are whole numbers of layers."""
    layers = np.asarray(elapsed) / (dt or np.nan)
    off = np.abs(layers - np.round(layers))
    if layers.size and off.max() > WHOLE * max(1.0, layers.max()):
        worst = float(layers[off.argmax()])
        raise ValueError(
            f"steppers.Layers takes steps of exactly dt = {dt:g}, and {what} is {worst:g} layers "
            "after the start: expected a whole number. Leave t_eval out to see every layer."
        )
