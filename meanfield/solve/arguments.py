"""The arguments of `solve`, checked before anything is computed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..model import Transformer
from ..states import Density
from ..steppers import Scheme

__all__ = ["Arguments", "check"]

OUTPUTS = 101


class Arguments(NamedTuple):
    """What `solve` was asked for, in its final form."""

    model: Transformer
    density: Density
    times: np.ndarray
    rtol: float
    dt: float | None
    scheme: Scheme
    steady: float
    events: tuple[Callable, ...]
    callback: Callable | None
    degrees: tuple[int, int]
    max_steps: int
    progress: bool | None
    checkpoint: Path | None
    checkpoint_every: float
    resume: bool
    provenance: dict[str, Any]

    def options(self) -> dict[str, Any]:
        """What determines the result, as plain data."""
        return {
            "t_eval": self.times.tolist(),
            "rtol": self.rtol,
            "dt": self.dt,
            "scheme": self.scheme.name,
            "steady_tolerance": self.steady,
            "min_degree": self.degrees[0],
            "max_degree": self.degrees[1],
            "events": [getattr(event, "__qualname__", repr(event)) for event in self.events],
        }


def check(model, density, t_span, t_eval, until, steady_tolerance, events, **rest) -> Arguments:
    """All arguments of `solve`, validated; raises ValueError or TypeError."""
    if not isinstance(model, Transformer):
        raise TypeError(f"solve expects a Transformer as its model; got {model!r}.")
    events = (events,) if callable(events) else tuple(events)
    if not all(callable(event) for event in events):
        raise TypeError(f"Events are functions g(t, density) -> float; got {events!r}.")
    if rest["callback"] is not None and not callable(rest["callback"]):
        raise TypeError(f"callback is a function of (t, density); got {rest['callback']!r}.")
    if until not in (None, "steady"):
        raise ValueError(f'until must be None or "steady"; got {until!r}.')
    positive(steady_tolerance=steady_tolerance, rtol=rest["rtol"], max_steps=rest["max_steps"])
    if rest["dt"] is not None:
        positive(dt=rest["dt"])
    if not 1e-13 <= rest["rtol"] <= 0.1:
        raise ValueError(f"rtol must be between 1e-13 and 0.1; got rtol = {rest['rtol']!r}.")
    if not isinstance(rest["scheme"], Scheme):
        raise TypeError(
            f"scheme must be one of meanfield.steppers.SCHEMES; got {rest['scheme']!r}."
        )
    if rest["resume"] and rest["checkpoint"] is None:
        raise ValueError("resume=True needs checkpoint=PATH, the file to resume from.")
    checkpoint = rest.pop("checkpoint")
    return Arguments(
        model=model,
        density=_ensemble(model, density, rest),
        times=_times(t_span, t_eval),
        steady=float(steady_tolerance) if until == "steady" else 0.0,
        events=events,
        degrees=_degrees(density, rest.pop("min_degree"), rest.pop("max_degree")),
        checkpoint=None if checkpoint is None else Path(checkpoint),
        **rest,
    )


def positive(**numbers: float) -> None:
    """Raise ValueError for the first number that is not finite and > 0."""
    for name, value in numbers.items():
        if not (np.isreal(value) and np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a finite number > 0; got {name} = {value!r}.")


def _ensemble(model: Transformer, density, _rest) -> Density:
    if not isinstance(density, Density):
        raise TypeError(
            "solve moves a Density, such as circle.density(f) or circle.von_mises(0, 1); "
            f"got {type(density).__name__}."
        )
    density.checked_positive()
    try:
        shape = np.broadcast_shapes(model.shape, density.shape)
    except ValueError:
        raise ValueError(
            f"The model has ensemble shape {model.shape} and the initial densities "
            f"{density.shape}: these do not broadcast."
        ) from None
    modes = density.coefficients.shape[-1]
    return Density(density.geometry, np.broadcast_to(density.coefficients, (*shape, modes)))


def _times(t_span: Sequence[float], t_eval) -> np.ndarray:
    span = np.asarray(t_span, dtype=float)
    if span.shape != (2,) or not np.isfinite(span).all() or not span[0] < span[1]:
        raise ValueError(
            f"t_span must be two finite times (start, end), start < end; got {t_span!r}."
        )
    if t_eval is None:
        return np.linspace(*span, OUTPUTS)
    times = np.atleast_1d(np.asarray(t_eval, dtype=float))
    if times.ndim != 1 or times.size == 0 or not np.isfinite(times).all():
        raise ValueError(f"t_eval must be a list of finite times; got {t_eval!r}.")
    if not (np.diff(times) > 0).all():
        raise ValueError("t_eval must increase strictly.")
    if times[0] < span[0] or times[-1] > span[1]:
        raise ValueError(
            f"t_eval must lie within t_span = [{span[0]:g}, {span[1]:g}]; got times from "
            f"{times[0]:g} to {times[-1]:g}."
        )
    return times


def _degrees(density: Density, min_degree: int, max_degree: int) -> tuple[int, int]:
    for name, value in (("min_degree", min_degree), ("max_degree", max_degree)):
        if int(value) != value or value < 1:
            raise ValueError(f"{name} must be a whole number >= 1; got {value!r}.")
    if min_degree > max_degree or density.geometry.degree > max_degree:
        raise ValueError(
            "solve needs min_degree <= max_degree and an initial density of degree <= "
            f"max_degree; got min_degree = {min_degree}, max_degree = {max_degree} and "
            f"degree {density.geometry.degree}."
        )
    return int(min_degree), int(max_degree)
