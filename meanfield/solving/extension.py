"""Extensions: a run that has ended goes on to a later time.

A finished run keeps the snapshot of its integration that a checkpoint would hold. An extension is
a resumed run with a later end.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.annotations import JsonTable
from ..core.calls import checked_call
from ..core.checks import check_increasing, check_memory, real_array, require
from ..core.descriptions import build
from ..core.errors import MeanfieldError
from ..core.forms import Natural, Reading
from ..core.provided import EXTENSIONS
from ..engines import Summation
from ..results.solution import Solution, State
from ..steppers import SCHEMES, SPLITTINGS
from .arguments import PROVENANCE_KEYS, STEADY_TOLERANCE, Arguments, Requested
from .checkpoint import Keeper
from .conditions import Condition
from .integration import RESUMABLE
from .replica_integration import separate_steps
from .solve import solved
from .streams import Seeds, generator_of

UNBOUNDED = 2**62  # attempts of steps
WHOLE = 1e-9  # relative rounding up to which a span is a whole number of intervals


@EXTENSIONS.register
@checked_call("run", "t_eval", "observe")
def extend(
    run: Solution,
    t_end: float,
    *,
    t_eval: np.ndarray | None = None,
    breaks: Sequence[float] = (),
    events: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None,
    callback: Callable[[float, State], Any] | None = None,
    observe: Mapping[str, Callable[[State], Any]] | None = None,
    until: Callable[[float, State], Any] | None = None,
    max_steps: Natural = 10_000_000,
    progress: bool | None = None,
    threads: Natural = 1,
) -> Solution:
    """Continue a finished run to a later time.

    The extension continues with the scheme, step, degree, statistics, random numbers and
    observables at the end of the run. Its states include those of the run.

    Parameters
    ----------
    run : Solution
        Run of `solve`, in memory or from a file.
    t_end : float
        New last time, later than the last output of the run. For a run that was interrupted, or
        ended early by `max_steps` or the callback, also its original last time.
    t_eval : array, optional
        Further output times, increasing, later than the last one of the run, up to `t_end`. By
        default they have the mean spacing of the outputs of the run, and end at `t_end`. The run
        ends at the last output, also before `t_end`.
    breaks : sequence of float, optional
        Additional times that no step passes, as for `solve`, after the end of the run, up to
        `t_end`.
    events, callback, observe, until : optional
        Functions as for `solve`; by default the functions of the run. Files do not contain
        functions: pass events and observables again for a run from a file.
    max_steps : int
        Largest number of attempted steps, including the steps of the run.
    progress, threads : optional
        As for `solve`.

    Returns
    -------
    Solution
        The whole run, from its first time to `t_end`. A run that ended before its last output as
        steady, at an event or by a failure is returned as it is, since the longer run ends there
        too. A run that was interrupted, or ended by `max_steps` or the callback, is continued.

    Raises
    ------
    ValueError, TypeError
        If `t_end` is not later than the end of the run, or another argument is invalid.
    MeanfieldError
        If the end of the run was not stored, or functions of a run from a file are missing.

    Notes
    -----
    The result equals the longer run with the same outputs, `t_eval` = `t` of the result, bit for
    bit if steps do not depend on the end: with a splitting, whose steps end at outputs; under
    common noise; and with a fixed step `dt`, such as 1/64, of which both ends are exact multiples.
    Without `t_eval` the times of the longer run differ from these by rounding, about 1e-16, and so
    do its states. With error control the last two steps are shortened to land on the end. The
    extension then differs from the longer run by the error of these steps; a run that was
    interrupted before them is extended bit for bit. The extension has no tangents, which need all
    steps from the beginning.

    Examples
    --------
    >>> run = mf.solve(mf.Transformer(mf.SA(4.0)), mf.Equiangular(8, 0.5), (0, 1))
    >>> run.extend(2).t[-1].item()
    2.0
    """
    require("run", run, "a run of solve", isinstance(run, Solution), TypeError)
    if not run.stored.get("last"):
        raise MeanfieldError(
            "This run keeps no end to go on from: only runs of solve, and files of them, do. Solve "
            "again with a later end."
        )
    old = run.options["t_eval"]
    shortened = ", as a run is never shortened" if t_end < old[-1] else ""
    later = f"after the end of the run, t = {old[-1]:g}{shortened}"
    goes_on = t_end == old[-1] and run.status in RESUMABLE
    require("t_end", t_end, later, t_end > old[-1] or goes_on)
    given = {"events": events, "callback": callback, "observe": observe}
    events, callback, observe = _functions(run, given, until).values()
    stops = [] if until is None else [Condition(until)]
    if separate_steps(run.stored["last"]) and (events or stops or callback):
        raise MeanfieldError(
            "The replicas of the run take separate steps, and so have no state after every step "
            "for events, until or a callback: solve again with them."
        )
    wanted = f"increasing times after the end of the run, t = {old[-1]:g}, up to t_end = {t_end:g}"
    check_increasing("breaks", breaks)
    require("breaks", breaks, wanted, all(old[-1] < t <= t_end for t in breaks))
    all_breaks = sorted({*run.options.get("breaks", ()), *breaks})
    longer = arguments_of(
        run,
        [*old, *_later_times(old, run.options["t_start"], t_end, t_eval)],
        all_breaks,
        events=(*([events] if callable(events) else events or ()), *stops),
        callback=callback,
        max_steps=max_steps,
        progress=progress,
        threads=threads,
    )
    extended = solved(longer, observe, earlier=run)
    extended.options.update({name: run.options[name] for name in run.options if name != "t_eval"})
    if all_breaks:
        extended.options["breaks"] = all_breaks
    return extended


def _functions(run: Solution, given: dict[str, Any], until: Any) -> dict[str, Any]:
    """Functions given to `extend`, and those of the run where None is given.

    Raises MeanfieldError for events and observables of a run from a file that are not given again.
    """
    if functions := run.stored.get("functions"):
        return {n: functions[n] if value is None else value for n, value in given.items()}
    needed = {"events": run.options["events"], "observe": list(run.stored["observed"])}
    for name, names in needed.items():
        if names and given[name] is None and (name != "events" or until is None):
            raise MeanfieldError(
                f"The run was solved with {name} = {names}, and a file holds no functions: "
                f"give them again, extend(run, t_end, {name}=...)."
            )
    return given


def arguments_of(
    run: Solution, outputs: Sequence[float], breaks: Sequence[float] | None = None, **changes: Any
) -> Arguments:
    """Arguments with which a run was solved, but for its outputs, functions and `changes`."""
    breaks = run.options.get("breaks", ()) if breaks is None else breaks
    defaults: dict[str, Any] = {"events": (), "callback": None, "progress": False}
    defaults |= {"max_steps": UNBOUNDED, "threads": 1}
    return Arguments.of(
        run.model,
        run.stored.get("initial", run.states[0]),
        (run.options["t_start"], outputs[-1]),
        np.array(outputs),
        [t for t in breaks if t <= outputs[-1]],
        _requested(run, run.stored.get("functions")),
        rtol=run.rtol,
        until="steady" if run.options["steady_tolerance"] else None,
        steady_tolerance=run.options["steady_tolerance"] or STEADY_TOLERANCE,
        tangents=(),
        dense=run.options.get("dense", False),
        engine=_engine_of(run.stored["engine"]),
        merge=run.options.get("merge"),
        rng=_random_numbers(run.options.get("seed")),
        keeper=Keeper(None, 0.0, False),
        provenance=_provenance(run),
        **defaults | changes,
    )


def _later_times(old: list[float], start: float, end: float, t_eval: Any) -> np.ndarray:
    """Outputs after those of a run, up to a new end: those asked for, or at the mean distance."""
    if t_eval is not None:
        times = np.atleast_1d(real_array("t_eval", t_eval))
        if times.ndim == 1:
            check_increasing("t_eval", times)
        is_later = times.ndim == 1 and times.size and old[-1] < times[0] and times[-1] <= end
        wanted = (
            f"increasing times after the last output of the run, {old[-1]:g}, up to t_end = {end:g}"
        )
        return require("t_eval", times, wanted, bool(is_later))
    first, intervals = (old[0], len(old) - 1) if len(old) > 1 else (start, 1)
    distance = (old[-1] - first) / intervals
    if not (distance > 0 and end > old[-1]):
        return np.array([end] if end > old[-1] else [])
    count = math.ceil((end - old[-1]) / distance * (1 - WHOLE))
    check_memory(f"t_end: {count} further outputs", (4, count), "t_end, or give t_eval")
    times = old[-1] + distance * np.arange(1, count + 1)
    times[-1] = end
    return times


def _requested(run: Solution, functions: dict[str, Any] | None) -> Requested:
    """Scheme, step and bounds of the degree of a run, as a user would ask for them."""
    schemes = {scheme.name: scheme for scheme in (*SCHEMES, *SPLITTINGS)}
    options = run.options
    scheme = functions["scheme"] if functions else schemes.get(options["scheme"])
    if scheme is None and options["scheme"]:
        raise MeanfieldError(
            f"The run was solved with the scheme {options['scheme']!r}, which is not of the "
            "package, and a file does not hold it: extend the run in memory, or solve again."
        )
    degrees = (options["min_degree"] or None, options["max_degree"] or None)
    return Requested(scheme, options["dt"], *degrees)


def _engine_of(described: Any) -> Summation | None:
    """Engine of a run from its description; None if there is none."""
    return None if described is None else build(Summation, described, Reading(result=True))


def _provenance(run: Solution) -> JsonTable:
    """Entries of the provenance of a run that the user gave, such as a configuration."""
    extra = run.stored.get("extra", run.stored.get("provenance", {}))
    return {n: value for n, value in extra.items() if n not in {*PROVENANCE_KEYS, "command_line"}}


def _random_numbers(seed: Any) -> Any:
    """Source of random numbers from the option "seed" of a run; `restore` sets their states."""
    if isinstance(seed, dict):
        return generator_of(seed)
    return Seeds(tuple(seed)) if isinstance(seed, list) else seed
