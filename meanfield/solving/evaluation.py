"""Evaluation of a run that has ended, at any time of its span.

The steps after the last snapshot before this time are repeated, with an output at the time.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from ..core.checks import check_increasing, real_array, require
from ..core.errors import MeanfieldError
from ..core.provided import EXTENSIONS
from ..results.kept_steps import AT, END, KeptSteps
from ..results.solution import Solution, State
from ..steppers.advance import STEADY
from .ensemble import ALL_ENDED
from .extension import arguments_of
from .integration import FAILURES, Integration, SteppedIntegration
from .replica_integration import separate_steps
from .solve import integration_of, start_of
from .watching import checked_observables, observed

ENDED = {*FAILURES, ALL_ENDED, STEADY}  # codes of the reasons why no member goes on
OF_ALL_TIMES = ("dense", "functions", "initial", "engine", "extra", "provenance")


@EXTENSIONS.register
def evaluated(run: Solution, t: Any) -> Any:
    """State of a run at the time `t`, or the run at several times; see `Solution.__call__`."""
    times = real_array("t", t)
    several = times.ndim == 1 and times.size > 0
    require("t", t, "a time, or increasing times", times.ndim == 0 or several)
    if several:
        check_increasing("t", times)
    start, end = float(run.options.get("t_start", run.t[0])), float(run.t[-1])
    is_within = start <= times.min() and times.max() <= end
    ends = f"The run ends with its last output, t_eval[-1] = {_digits(end)}."
    advice = ends if times.max() > end and end == run.options["t_eval"][-1] else ""
    wanted = f"within the span of the run, from {_digits(start)} to {_digits(end)}"
    require("t", t, wanted, is_within, advice=advice)
    states_by_time = dict(zip(run.t.tolist(), run.states, strict=True))
    integrations: dict[float, Integration] = {}
    states = tuple(
        states_by_time[time] if time in states_by_time else _state_at(run, time, integrations)
        for time in times.ravel().tolist()
    )
    if times.ndim == 0:
        return states[0]
    stored = {name: run.stored[name] for name in OF_ALL_TIMES if name in run.stored}
    result = replace(run, t=times, states=states, stored={**stored, "observed": {}})
    if observe := run.stored.get("functions", {}).get("observe"):
        arguments = arguments_of(run, run.options["t_eval"])
        observables = checked_observables(observe, start_of(arguments))
        result.stored["observed"] = observed(observables, result)
    return result


def _state_at(run: Solution, t: float, integrations: dict[float, Integration]) -> State:
    """State at a time that is not among those of the run.

    `integrations` has one integration for each end of the run, to be used again.
    """
    steps: KeptSteps | None = run.stored.get("dense")
    start = run.options.get("t_start", 0.0)
    elapsed = t - start
    snapshot = None if steps is None else steps.before(elapsed)
    if snapshot is None:
        since = ""
        if steps is not None:
            since = f", and kept steps from t = {start + float(steps.snapshots[0][AT]):g} on"
        nearest = float(run.t[np.abs(run.t - t).argmin()])
        advice = "Give dense=True to solve, and to run.save if it is saved, or this time in t_eval."
        if run.options.get("seed") is not None:
            advice = (
                "Runs with noise cannot be evaluated afterwards: solve again with this time in "
                "t_eval; the path will differ."
            )
        raise MeanfieldError(
            f"The run has no state at t = {_digits(t)}{since}. {advice} "
            f"The nearest saved time is {_digits(nearest)}."
        )
    end = float(snapshot[END])
    if end not in integrations:
        integrations[end] = _integration(run, end, separate_steps(snapshot))
    integration = integrations[end]
    integration.restore(snapshot)
    if isinstance(integration, SteppedIntegration):
        integration.stop_at(elapsed)
    while integration.elapsed < elapsed:
        if integration.advance(elapsed, integration.pause) in ENDED:
            break
    return integration.state


def _digits(t: float) -> str:
    """The shortest decimal number that is `t`: 0.3, 1."""
    return repr(t).removesuffix(".0")


def _integration(run: Solution, end: float, apart: bool) -> Integration:
    """Integration that can repeat the steps of a run to `end`; `apart` is about replicas."""
    arguments = arguments_of(run, [end])
    if arguments.apart and run.options["events"]:
        functions = run.stored.get("functions")
        if not functions:
            raise MeanfieldError(
                "Events end the members of this ensemble, and a file holds no functions: evaluate "
                "the run in memory, or solve again."
            )
        arguments = replace(arguments, events=functions["events"])
    return integration_of(arguments, apart=apart)
