"""The arguments of `solve`, checked before anything is computed."""

import json
from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import boolean, path_of, positive, whole_number
from ..models.parameters import Place
from ..models.transformer import Transformer
from ..spaces.characteristics import Characteristics
from ..spaces.density import COMPUTED, Density
from ..states import Equiangular, Gaussian, SomeTokens, State
from ..steppers import Krogstad, Scheme, Splitting
from .moving import Moving, broadcast_tokens, token_scheme
from .times import Times

__all__ = ["AT_REST", "Accuracy", "Arguments", "Keeping", "Problem", "Stopping", "plain_data"]

OUTPUTS = 101
AT_REST = 1e-10  # a rate of change, the default of steady_tolerance
FEWEST_MODES = 16
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
        if isinstance(state, State):
            model = model.resolved(Place(state.dimension, state.tokens))
        if isinstance(t_eval, Times):
            t_eval = t_eval.between(*t_span)
        start, times = _times(t_span, t_eval)
        if isinstance(state, SomeTokens):
            state = broadcast_tokens(model, state)
        elif not isinstance(state, Characteristics | Gaussian):
            state = _ensemble(model, state)
        return cls(model, state, start, times)


class Accuracy(NamedTuple):
    """How well to solve it."""

    rtol: float
    dt: float | None
    scheme: Any  # a Scheme; for tokens also a Splitting; None is a choice
    degrees: tuple[int, int]
    max_steps: int

    @classmethod
    def checked(cls, problem, rtol, dt, scheme, min_degree, max_degree, max_steps) -> "Accuracy":
        state = problem.state
        positive(rtol=rtol, max_steps=max_steps, dt=1.0 if dt is None else dt)
        max_steps = whole_number("max_steps must be a whole number", "max_steps", max_steps)
        if not 1e-13 <= rtol <= 1e-3:
            raise ValueError(f"rtol must be between 1e-13 and 1e-3; got rtol = {rtol!r}.")
        if scheme is not None and not isinstance(scheme, Scheme | Splitting):
            raise TypeError(f"scheme must be one of meanfield.steppers.SCHEMES; got {scheme!r}.")
        if not isinstance(state, Density):
            _refuse_degrees(state, min_degree, max_degree)
        if isinstance(state, SomeTokens):
            (scheme, dt), degrees = (
                token_scheme(problem.model, state, problem.start, scheme, dt),
                (0, 0),
            )
        elif isinstance(state, Characteristics | Gaussian):
            scheme, degrees = _explicit(state, scheme), (0, 0)
        else:
            if isinstance(scheme, Splitting):
                raise ValueError(f"steppers.{scheme.name} moves tokens; got a Density.")
            if scheme is None and dt is not None:
                scheme = Krogstad
            degrees = _degrees(state, min_degree, max_degree)
        return cls(float(rtol), None if dt is None else float(dt), scheme, degrees, max_steps)


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


class Arguments(NamedTuple):
    """The arguments of `solve`, all valid."""

    problem: Problem
    accuracy: Accuracy
    stopping: Stopping
    keeping: Keeping
    moving: Moving
    progress: bool | None
    provenance: dict[str, Any]

    def options(self) -> dict[str, Any]:
        """What determines the result besides model and density, as plain data."""
        events, state = self.stopping.events, self.problem.state
        tokens = self.moving.options() if isinstance(state, SomeTokens) else {}
        return {
            "t_start": self.problem.start,
            "t_eval": self.problem.times.tolist(),
            "rtol": self.accuracy.rtol,
            "dt": self.accuracy.dt,
            "scheme": self.accuracy.scheme and self.accuracy.scheme.name,
            "steady_tolerance": self.stopping.steady,
            "min_degree": self.accuracy.degrees[0],
            "max_degree": self.accuracy.degrees[1],
            "events": [getattr(event, "__qualname__", repr(event)) for event in events],
            **tokens,
            **({"start": state.start()} if isinstance(state, Equiangular) else {}),
        }


def _ensemble(model: Transformer, density) -> Density:
    if not isinstance(density, Density):
        raise TypeError(
            "solve moves a Density, such as circle.density(f) or circle.von_mises(0, 1), "
            "Characteristics(density), Tokens(x), Gram(G), Equiangular(n, rho) or "
            f"Gaussian(mean, cov); got "
            f"{type(density).__name__}."
        )
    density.checked_positive(COMPUTED)
    try:
        shape = np.broadcast_shapes(model.shape, density.shape)
    except ValueError:
        raise ValueError(
            f"The model has ensemble shape {model.shape} and the initial densities "
            f"{density.shape}: these do not broadcast."
        ) from None
    modes = density.coefficients.shape[-1]
    return Density(density.geometry, np.broadcast_to(density.coefficients, (*shape, modes)))


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


def plain_data(provenance) -> dict[str, Any]:
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


def _refuse_degrees(state, min_degree, max_degree) -> None:
    """States other than densities have no modes."""
    if min_degree is not None or max_degree is not None:
        advice = ""
        if isinstance(state, Characteristics):
            advice = " Its accuracy is that of its nodes: Characteristics(density, nodes=...)."
        raise ValueError(
            "min_degree and max_degree bound the modes of a Density; "
            f"{type(state).__name__} has none.{advice}"
        )


def _explicit(state, scheme: Scheme | Splitting | None) -> Scheme | None:
    """The scheme for characteristics and Gaussians."""
    if scheme is None or (isinstance(scheme, Scheme) and scheme.explicit):
        return scheme
    raise ValueError(
        f"{type(state).__name__} needs an explicit scheme, steppers.DormandPrince; got "
        f"{scheme.name}."
    )


def _degrees(density: Density, min_degree, max_degree) -> tuple[int, int]:
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
