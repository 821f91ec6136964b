"""The function `solve`: it checks the arguments, runs an integration and returns a `Solution`."""

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..core.annotations import JsonTable, Snapshot
from ..core.calls import checked_call
from ..core.descriptions import describe
from ..core.errors import CheckpointError, UnresolvedWarning
from ..core.forms import Index, Natural, NonNegative, Positive, TimeSpan
from ..derivatives.adjoint import known_steps, recorded
from ..derivatives.journal import EnsembleJournal, Journal
from ..derivatives.tangents import checked_tangents, tangents_of
from ..dynamics.motion import Failure, Motion
from ..engines import Summation
from ..lowlevel.progress import Interruption, Progress
from ..models.parameters import end_of_layers
from ..models.transformer import Transformer
from ..results.kept_steps import KeptSteps
from ..results.solution import Solution, State
from ..steppers import Scheme, Splitting
from ..steppers.advance import STEADY
from .arguments import RELATIVE_TOLERANCE, STEADY_TOLERANCE, Arguments, Requested, Times
from .checkpoint import Keeper
from .conditions import holding, in_words
from .ensemble import ALL_ENDED, EnsembleIntegration, nested, padded
from .integration import FAILURES, RESUMABLE, STALLED, FlowIntegration, Integration
from .replica_integration import ReplicaIntegration, has_own_steps, separate_steps
from .spectral_integration import CommonNoiseIntegration, SpectralIntegration
from .watching import EventWatch, asks_to_stop, checked_observables, observed

STEPS_BETWEEN = 32  # largest number of steps between snapshots of a run with dense=True
PAUSES = 64  # snapshots of an ensemble whose members have separate steps
CHECKED_WHERE_USED = "state scheme observe rng checkpoint provenance tangents".split()


@checked_call(*CHECKED_WHERE_USED)
def solve(
    model: Transformer,
    state: State,
    t_span: TimeSpan,
    *,
    t_eval: np.ndarray | Times | None = None,
    breaks: Sequence[float] = (),
    rtol: Positive = RELATIVE_TOLERANCE,
    dt: Positive | None = None,
    scheme: Scheme | Splitting | None = None,
    until: Callable[[float, State], Any] | Literal["steady"] | None = None,
    steady_tolerance: Positive = STEADY_TOLERANCE,
    events: Callable[..., Any] | Sequence[Callable[..., Any]] = (),
    callback: Callable[[float, State], Any] | None = None,
    observe: Mapping[str, Callable[[State], Any]] | None = None,
    tangents: Sequence[Any] = (),
    dense: bool = False,
    min_degree: Natural | None = None,
    max_degree: Natural | None = None,
    max_steps: Natural = 10_000_000,
    progress: bool | None = None,
    engine: Summation | None = None,
    merge: Positive | None = None,
    threads: Natural = 1,
    rng: Index | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: NonNegative = 60.0,
    resume: bool = False,
    provenance: JsonTable | None = None,
) -> Solution:
    """Move a state under a model: d mu/dt = (1/kappa) Lap mu - div(mu v[mu]).

    A `Density` is expanded in harmonics, as many as it needs at each time, and advanced by an
    exponential Runge-Kutta scheme of order 4 or an explicit Runge-Kutta scheme of order 8. All
    other states are advanced by the explicit scheme. Both schemes adapt their steps by an embedded
    error estimate. Tokens with noise move in fixed steps of weak order 2.

    Parameters
    ----------
    model : Transformer
        Drift and noise. Arrays of beta and kappa, and stacked initial densities, are broadcast to
        an ensemble. Each member has separate steps, scheme, degree and end, and its result agrees
        bit for bit with a run of this member alone; see `stats` of `Solution`. The same holds for
        replicas of tokens under error control, which may also differ in the matrices of
        `Attention`. Densities under common noise share their steps and their degree.
        Characteristics need a single model without noise, a Gaussian a single model.
    state : State
        Initial state: one of the package, see ``State.kinds``, or of a class of your own that has
        a `Motion`.
    t_span : (float, float)
        First and last time.
    t_eval : array, optional
        Output times, increasing, within `t_span`. By default 101 equally spaced times, or every
        layer for `Layers`. The run ends at the last output, also where `t_span` is longer.
    breaks : sequence of float, optional
        Times at which parameters that are functions of t jump, have a kink, or begin or end a
        pulse; increasing, within `t_span`. Steps end exactly there, and a step before a break
        evaluates the functions before it only. The jumps of `PerLayer` are known without `breaks`.
    rtol : float
        Bound on the error of a step, 1e-13 to 1e-3. For a density: the error relative to the
        state, both in H^-1 (the linearisation of W2); the number of modes is raised until the last
        coefficients are below rtol / 10. For characteristics: the error relative to W2 to a Dirac.
        For tokens: the error of the worst token, in radians. For a Gram matrix: the error of an
        inner product. For equiangular tokens: the relative error of 1 - rho and of
        1 + (n - 1) rho. For a Gaussian: the relative error of the mean and of the root of the
        covariance. For other states see `Motion.relative_error`.
    dt : float, optional
        Largest length of fixed steps, all equal, instead of error control. Tokens with noise
        always have fixed steps, equal between two outputs, by default 0.05 over the rates of drift
        and noise. Fixed steps have no tolerance: `rtol` then sets the number of modes of a density
        and the resolution of characteristics, and is refused for other states.
    scheme : Scheme or Splitting, optional
        One of `steppers.SCHEMES`. A density by default has the exponential `Krogstad`, of order 4,
        or the explicit `DormandPrince`, of order 8, whichever advances further per evaluation of
        the right-hand side, and `Krogstad` if `dt` is given; `stats["schemes"]` counts the steps
        of each. Other states have `DormandPrince`, or any explicit scheme; tokens with noise have
        `Strang`; tokens without noise may have `Layers` or `LieTrotter` too, with `dt`.
    until : "steady" or function, optional
        A function (t, state) -> bool ends the run where it becomes True, located to rounding, or
        at the start. It is a terminal event, the last one in `t_events`. In an ensemble of
        densities without common noise it ends each member separately. In other ensembles, such as
        replicas of tokens, it is called with all members at once and ends all of them. With
        "steady" a run ends when the rate of change is <= `steady_tolerance`: for a density
        |d mu/dt| in L2, for each member of an ensemble separately; for characteristics, tokens and
        equiangular tokens the speed (int |v|^2 dmu)^(1/2); for a Gaussian the speed of the law in
        W2, which is 0 if points move and the law does not; for a Gram matrix the fastest change of
        an inner product.
    events : function or list of functions
        Functions g(t, state) -> float, whose zeros are located to rounding and returned in
        `t_events`; g.terminal = True ends the run there, g.direction = 1 or -1 selects rising or
        falling zeros. In the steps of a splitting, and under common noise, the time of an event is
        the end of the step in which g changes its sign. In an ensemble of densities without common
        noise g is called with one member at a time, and a terminal event ends this member only. In
        other ensembles, such as replicas of tokens, g is called with all members at once. With
        events or a callback, replicas of tokens share their steps.
    callback : function, optional
        Called as callback(t, state) after every step, and at outputs within a step; returning
        True ends the run. For an ensemble of densities without common noise it is called with all
        members, at outputs only.
    observe : mapping of str to function, optional
        Functions f(state) -> real number, or array of a fixed shape. Their values at the outputs
        are added to the `observables` of the result, and to its file; nan where a function fails.
        A name consists of letters, digits and underscores, does not begin with a digit, and differs
        from all observables, arrays, parameters and axes of the run.
    tangents : list, optional
        Parameters and directions by which the result is differentiated; its `tangents` are the
        derivatives at every output. An entry is the name of a parameter of the model, such as
        "beta" or "kappa", or a direction in which the initial density changes: another Density,
        towards which it moves; a function of unit vectors (N, d); a `Variation`; or coefficients.
        For a Density the drift must be constant, and the noise independent, if there is any;
        "kappa[0]" and so on are layers of a `PerLayer` kappa, "frequency.width",
        "frequency.centre" and "frequency.factor" are parameters of frequencies. For `Indexed`
        densities a direction is another `Indexed` density, a function that is the same at all
        nodes, or coefficients of all nodes; if each node has its own beta, "beta" changes all by
        the same number, and "beta[0]" that of one node. For Tokens, Characteristics and Gaussian,
        without noise, a direction is a change of their arrays: see the page Derivatives.
    dense : bool
        Keep snapshots of steps, at most 0.5 GB, so that the result can be evaluated at any time,
        ``run(t)``, as if with an output there. Not for runs with random numbers.
    min_degree, max_degree : int, optional
        Bounds of the degree of a density, by default 16 and `space.largest_degree`: 4096, or
        512 on S^2 and the torus of two angles, where the number of modes is its square, and 64
        on that of three. A density that needs more than `max_degree` ends the run with status
        "unresolved" and a warning. Equal bounds fix the number of modes.
    max_steps : int
        Largest number of attempted steps. An ensemble ends, at the last output that all members
        have reached, as soon as one member has tried this number.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.
    engine : engines.Automatic, engines.Direct or engines.Modes, optional
        Method to sum velocities of tokens; by default Automatic().
    merge : float, optional
        Distance below which tokens merge, if the logarithms of their radii are as close. For a
        single set of tokens without noise. By default tokens do not merge.
    threads : int
        Number of threads, each for a group of members of an ensemble of densities. The result is
        bit for bit the same for any number.
    rng : numpy.random.Generator or seed, optional
        Source of the noise of tokens, and of common noise; without noise it is checked, but not
        used. By default a new seed, which `options["seed"]` records. Common noise is drawn from
        the first child, `rng.spawn(1)`: tokens and a density with the same seed and steps have
        the same common noise. R replicas draw from the other children of `rng.spawn(R + 1)`.
    checkpoint : path, optional
        File of a checkpoint, rewritten every `checkpoint_every` seconds of wall time.
    resume : bool
        Continue from the checkpoint if it exists: the result is bit for bit that of an
        uninterrupted run. The result of a finished run is returned, or extended if the end is
        later, see `extend`. If the callback had ended the run, the callback is called again.
    provenance : dict, optional
        Plain data to store with the result, for instance a configuration.

    Returns
    -------
    Solution
        Its `success` is False if the run did not reach its end; `message` has the reason.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; the message says which values are expected.
    MeanfieldError
        For characteristics under an interaction that is not smooth; for a model that the state
        cannot follow; for velocities of tokens that are not finite at the start.
    CheckpointError
        If the checkpoint is damaged or belongs to another run.

    Warns
    -----
    UnresolvedWarning
        If the run stopped because `max_degree` was reached, the final density is clearly
        negative somewhere because `rtol` is large, or nodes of characteristics are too few.
    RuntimeWarning
        If a function of `observe` fails on states after the first.

    Notes
    -----
    A step of Krogstad costs four evaluations, each one pair of inverse transforms (triple for
    SA) and one forward transform of about 2 to 3 times the degree; a step of DormandPrince
    twelve. If parameters are functions of t, Krogstad has a fifth evaluation, so that its error
    estimate includes their change. For characteristics an evaluation is two sums over nodes and
    harmonics, for tokens one or two sums over pairs, or over tokens and harmonics.

    Outputs cost no steps, and steps do not depend on them. The state within a step is interpolated,
    to order 4 for exponential schemes, without an evaluation; to order 7 for DormandPrince, for
    which a step with outputs costs three more evaluations, not included in the counts. If a scheme
    has no dense output, as for tokens with noise, steps end at every output.

    Examples
    --------
    >>> model = mf.Transformer(mf.SA(4.0), kappa=3.0)
    >>> run = mf.solve(model, mf.Circle(32).von_mises(0, 1), (0, 1))
    >>> run.status, run.t[-1].item()
    ('finished', 1.0)

    References
    ----------
    Krogstad, J. Comput. Phys. 203 (2005); Rigollet, arXiv:2512.01868, equation (9).
    """
    arguments = Arguments.of(
        model,
        state,
        t_span,
        t_eval,
        breaks,
        Requested(scheme, dt, min_degree, max_degree),
        rtol=rtol,
        until=until,
        steady_tolerance=steady_tolerance,
        events=events,
        callback=callback,
        tangents=tangents,
        dense=dense,
        max_steps=max_steps,
        progress=progress,
        engine=engine,
        merge=merge,
        threads=threads,
        rng=rng,
        keeper=Keeper(checkpoint, checkpoint_every, resume),
        provenance=provenance,
    )
    arguments.check_tolerance()
    return solved(arguments, observe, tangents)


def solved(
    arguments: Arguments, observe: Any, tangents: Any = (), earlier: Solution | None = None
) -> Solution:
    """Result of a run with checked arguments, which may go on from the end of an earlier one."""
    observables = checked_observables(observe, start_of(arguments))
    directions = checked_tangents(tangents, arguments.model, arguments.state, arguments.motion)
    with arguments.keeper, Progress("solve", arguments.progress) as progress_bar:
        solved_run = _SolvedRun(arguments, progress_bar, earlier)
        if directions:
            known_steps(solved_run.journal)  # before a run that is resumed goes on without them
        record = solved_run.to_the_end()
    run = _solution(solved_run.arguments, record)
    run.stored["observed"] = observed(observables, run)
    run.stored.update(journal=solved_run.journal, initial=arguments.state)
    engine, functions = describe(arguments.engine), OwnFunctions(observe=observe)
    functions.update({name: getattr(arguments, name) for name in ("scheme", "events", "callback")})
    run.stored.update(last=solved_run.last, engine=engine, functions=functions)
    if solved_run.kept is not None:
        run.stored["dense"] = solved_run.kept
    if directions:
        run.stored["tangents"] = tangents_of(run, *recorded(run), directions, arguments.motion)
    return run


class OwnFunctions(dict[str, Any]):
    """Functions and scheme of a call of `solve`; a pickle or a deep copy of them is empty."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return dict, ()


class _SolvedRun:
    """Single call of `solve`: integration, saved states, events, callback and checkpoint.

    Attributes
    ----------
    arguments : Arguments
        Arguments, with the outputs of the run that is extended, if any.
    last : dict
        Snapshot of the integration at the end of the run.
    kept : KeptSteps or None
        Snapshots at the beginnings of steps, with ``dense=True``.
    """

    def __init__(self, arguments: Arguments, progress: Progress, earlier: Solution | None):
        """Set up the integration; go on from a checkpoint or from the end of `earlier`."""
        self._progress = progress
        self.arguments, self._began = arguments, time.perf_counter()
        separate = None if earlier is None else separate_steps(earlier.stored["last"])
        self._integration = integration_of(arguments, apart=separate)
        self._record = _Record([[] for _ in arguments.events], arguments.times.tolist())
        self._keeper, content = arguments.keeper, arguments.keeper.opened(self._identity())
        self.last: dict[str, Any] = {}
        self.kept = KeptSteps() if arguments.dense else None
        self._pauses = _pause_times(arguments, self._integration)
        self._resumed = bool(content or earlier)
        if content:
            self._go_on(content, _Record.of_arrays(content, arguments.motion))
            self.kept = KeptSteps.of_arrays(content) if arguments.dense else None
        elif earlier is not None:
            self._go_on(earlier.stored["last"], _Record.of_solution(earlier))
            if self.kept is not None and "dense" in earlier.stored:
                self.kept = earlier.stored["dense"].copied()
        self._watch = None
        if arguments.events and not arguments.apart:
            self._watch = EventWatch(arguments.events, self._integration)

    def _go_on(self, snapshot: Snapshot, record: "_Record") -> None:
        """Continue a run with this snapshot and record, to a later end if this run has one.

        Raises CheckpointError if the outputs are neither those of the run nor begin with them.
        """
        arguments, path, outputs = self.arguments, self._keeper.path, self._record.outputs
        old, end = record.outputs, record.outputs[-1]
        if outputs[-1] < end:
            raise CheckpointError(
                f"{path} has a run to t = {end:g}, and this one ends at t = {outputs[-1]:g}: a run "
                "can be extended, not shortened. Choose a later end, or another file."
            )
        if outputs[-1] > end and arguments.default_times:
            outputs = [*old, *(t for t in outputs if t > end)]
            self.arguments = replace(arguments, times=np.array(outputs))
            self._integration.outputs = self.arguments.times - arguments.start
        if outputs[: len(old)] != old or (outputs[-1] == end and outputs != old):
            raise CheckpointError(
                f"{path} belongs to another run, whose arguments differ: t_eval. Resume with the "
                "same ones, or use another file; a run to a later end has the old outputs first."
            )
        self._integration.extend(snapshot, end - arguments.start)
        if outputs != old and record.end and record.end["status"] == "finished":
            record.end = None
        self._record, self.last = replace(record, outputs=outputs), snapshot

    @property
    def journal(self) -> Journal | EnsembleJournal | None:
        """Record of the accepted steps; None if not all are known, as after a run was resumed."""
        return self._integration.journal

    def _identity(self) -> JsonTable:
        """Arguments that must be the same when a checkpoint is resumed."""
        arguments = self.arguments
        return {
            **{n: value for n, value in arguments.described().items() if n != "t_eval"},
            "model": arguments.model,
            "engine": repr(arguments.engine),
            "scheme": (arguments.scheme, type(arguments.motion), type(self._integration)),
            "events": arguments.events,
            "state": arguments.state,
        }

    def to_the_end(self) -> "_Record":
        """Integrate to the last output, or until the run ends earlier; return the record.

        A record that was over when its checkpoint was written is returned unchanged.
        """
        run, record = self._integration, self._record
        if record.end is not None:
            return record
        with Interruption() as interruption:
            status = self._asked_to_stop() if self._resumed else self._status_at_start()
            self._keep_snapshot()
            for t, elapsed in zip(self.arguments.times, run.outputs, strict=True):
                if status is None and elapsed >= run.elapsed:
                    status = self._advance_to(float(elapsed), interruption)
                    if status is None:
                        record.save(float(t), run.state)
        self._end(status or "finished")
        return record

    def _status_at_start(self) -> str | None:
        """The status of a run that ends where it begins; a condition that holds is recorded."""
        run, arguments = self._integration, self.arguments
        if not arguments.apart:
            for index in holding(arguments.events, run.t, run.state):
                self._end_at(index, run.t, run.state)
                return "event"
        is_at_rest = arguments.steady and run.rate <= arguments.steady
        return "steady" if is_at_rest else None

    def _end_at(self, index: int, t: float, state: State) -> None:
        """Record the event with this index, which ends the run, and its state."""
        events, run = self.arguments.events, self._integration
        run.event = in_words(events, index, t, run.start)
        self._record.t_events[index].append(t)
        self._record.save(t, state)

    def _advance_to(self, elapsed: float, interruption: Interruption) -> str | None:
        """Integrate to a time relative to the start; return the status if the run ends earlier."""
        run, arguments = self._integration, self.arguments
        checks_each_step = bool(arguments.callback or arguments.events)
        limit = 1 if checks_each_step else run.pause
        if self.kept is not None:
            limit = min(limit, STEPS_BETWEEN)
        while run.elapsed < elapsed:
            start_time, steps_left = run.elapsed, arguments.max_steps - run.attempts
            if steps_left <= 0 and not run.within:
                return "max_steps"
            pause = min((t for t in self._pauses if t > run.elapsed), default=elapsed)
            code = run.advance(min(pause, elapsed), min(limit, steps_left))
            if code in FAILURES:
                return FAILURES[code]
            has_moved = run.elapsed > start_time or code == STALLED
            if has_moved:
                self._keep_snapshot()
            if checks_each_step and has_moved and (status := self._status_after_step()):
                return status
            if code == STEADY:
                return "steady"
            if code == ALL_ENDED:
                self._record.save(run.t, run.state)
                return run.cause
            if interruption.requested:
                return "interrupted"
            self._progress.show(run.progress, f"solve t = {run.t:.4g}, {run.size}")
            self._keeper.save_now_and_then(self._arrays)
        return None

    def _keep_snapshot(self) -> None:
        """Keep a snapshot at the beginning of a step, with ``dense=True``."""
        run = self._integration
        if self.kept is not None and (self._pauses.size or not run.within):
            self.kept.keep(run.elapsed, float(self.arguments.times[-1]), run.snapshot)

    def _status_after_step(self) -> str | None:
        """Evaluate events and callback after a step; return the status if they end the run."""
        if self._watch:
            for index, t, state, terminal in self._watch.crossed(self._integration):
                if terminal:
                    self._end_at(index, t, state)
                    return "event"
                self._record.t_events[index].append(t)
        return self._asked_to_stop()

    def _asked_to_stop(self) -> str | None:
        callback, run = self.arguments.callback, self._integration
        return "stopped" if callback and asks_to_stop(callback(run.t, run.state)) else None

    def _arrays(self) -> Snapshot:
        """Content of a checkpoint: the snapshot of the integration, and the record."""
        record = self._record.arrays(self.arguments.motion, self._seconds())
        kept_arrays = {} if self.kept is None else self.kept.arrays()
        return self._integration.snapshot() | record | kept_arrays

    def _seconds(self) -> float:
        return self._record.seconds + time.perf_counter() - self._began

    def _end(self, status: str) -> None:
        """Complete the record with the last state and the end of the run, and save a checkpoint.

        The checkpoint of a run that can be resumed is written without the end.
        """
        run, record = self._integration, self._record
        is_over = status not in RESUMABLE
        self.last = {name: np.array(values) for name, values in run.snapshot().items()}
        if not is_over:  # the last state is no output: the checkpoint must not contain it
            self._keeper.save(self._arrays)
        if status not in ("event", "finished"):  # otherwise the last state is saved already
            record.save(run.t, run.state)
        if self.arguments.apart:
            record.t_events = run.t_events
        record.end = run.ending(status, record.states[-1], record.times[-1])
        arguments = self.arguments
        warning = arguments.motion.warning_of_start(arguments.state, arguments.rtol)
        if warning and record.end["status"] != "unresolved":  # its own message says more
            record.end["message"] = f"{warning} {record.end['message']}"
            record.end["stats"]["resolved_at_start"] = False
        depth = end_of_layers(arguments.model)
        if record.times[-1] > depth + np.spacing(1e3 * abs(depth)):
            record.end["message"] += (
                f" Layers of PerLayer end at t = {depth:g}, before the run: until t = "
                f"{record.times[-1]:g} the last layer acts."
            )
        self._record_unresolved()
        record.end["stats"]["seconds"] = self._seconds()
        if is_over:
            self._keeper.save(self._arrays)

    def _record_unresolved(self) -> None:
        """Store the first time at which a saved state is wrong as `stats["unresolved_since"]`.

        For an ensemble there is one time for each member, None where all states are right. If the
        end of the run has no warning yet, it gets one about the earliest such state.
        """
        record, motion, rtol = self._record, self.arguments.motion, self.arguments.rtol
        last, shape = len(record.times) - 1, self.arguments.state.shape
        since: Any = None
        for i, (t, state) in enumerate(zip(record.times, record.states, strict=True)):
            unresolved = motion.is_wrong(state, t, rtol, thoroughly=i == last)
            if unresolved.any():
                since = np.full(unresolved.size, np.inf) if since is None else since
                since[unresolved & np.isinf(since)] = t
        if since is None:
            return
        times = [None if np.isinf(t) else t for t in since.tolist()]
        end: Any = record.end
        end["stats"]["unresolved_since"] = nested(times, shape)
        if end["warning"] is None:
            warning = self._why_unresolved(int(since.argmin()), float(since.min()))
            end |= {"warning": warning, "message": f"{end['message']} {warning}"}

    def _why_unresolved(self, member: int, t: float) -> str:
        """Sentence that says why the saved state of a member at the time `t` is wrong."""
        record, arguments = self._record, self.arguments
        motion, state = arguments.motion, record.states[record.times.index(t)]
        situation = Failure(
            t, t - record.times[0], np.zeros(0), 0.0, False, arguments.dt, arguments.rtol, {}
        )
        if not state.shape:
            return f"The density at t = {t:g} {motion.why_wrong(state, t, situation)}"
        index = tuple(map(int, np.unravel_index(member, state.shape)))
        verb_phrase = motion.of_members(member).why_wrong(state[index], t, situation)
        return f"The density of member {index} at t = {t:g} {verb_phrase}"


def integration_of(arguments: Arguments, *, apart: bool | None = None) -> Integration:
    """Integration of the kind that suits the state, the noise and the events.

    `apart` tells whether replicas of tokens have separate steps; by default it is decided here.
    """
    if not arguments.motion.semilinear:
        apart = has_own_steps(arguments) if apart is None else apart
        kind = ReplicaIntegration if apart else FlowIntegration
        return kind(arguments)
    if arguments.motion.random:
        return CommonNoiseIntegration(arguments)
    return EnsembleIntegration(arguments) if arguments.apart else SpectralIntegration(arguments)


def _pause_times(arguments: Arguments, integration: Integration) -> np.ndarray:
    """Times at which a run with ``dense=True`` pauses, as if for an output.

    They are for ensembles whose members have separate steps: between outputs these are at different
    times. Without dense output there are none, as steps would end at them.
    """
    by_member = isinstance(integration, EnsembleIntegration | ReplicaIntegration)
    continuous = getattr(arguments.scheme, "dense", True) is not None
    if not (arguments.dense and by_member and continuous):
        return np.zeros(0)
    return np.linspace(0.0, integration.duration, PAUSES + 1)[1:]


@dataclass
class _Record:
    """Saved states and events of a run, and how it ended.

    Attributes
    ----------
    t_events : list of list
        Times of the events of each event function.
    outputs : list of float
        Times at which states are to be saved.
    times, states : list
        Times and states saved so far.
    seconds : float
        Wall time spent before the run was resumed.
    end : dict or None
        Result of `Integration.ending`, once the run is over.
    """

    t_events: list[list[Any]]
    outputs: list[float]
    times: list[float] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    seconds: float = 0.0
    end: JsonTable | None = None

    def save(self, t: float, state: State) -> None:
        """Append a state, unless the last saved state has the same time."""
        if not self.times or self.times[-1] != t:
            self.times.append(float(t))
            self.states.append(state)

    def arrays(self, motion: Motion, seconds: float) -> dict[str, np.ndarray]:
        """The record as arrays by name, for a checkpoint."""
        records: JsonTable = {"t_events": self.t_events, "outputs": self.outputs}
        records["times"] = self.times
        records |= {"seconds": seconds, "end": self.end}
        states = enumerate(map(motion.packed, self.states))
        return {"record": np.array(json.dumps(records))} | {f"record.{i:09d}": y for i, y in states}

    @classmethod
    def of_arrays(cls, content: dict[str, np.ndarray], motion: Motion) -> "_Record":
        """Record from the arrays that `arrays` returned for a run with the same motion."""
        state_keys = sorted(key for key in content if key.startswith("record."))
        states = [motion.unpacked(content[key]) for key in state_keys]
        return cls(states=states, **json.loads(str(content["record"])))

    @classmethod
    def of_solution(cls, run: Solution) -> "_Record":
        """Record of a run; a last state that is no output is left out if the run can go on."""
        outputs, times, states = run.options["t_eval"], run.t.tolist(), list(run.states)
        end: Any = {name: getattr(run, name) for name in ("status", "message", "stats")}
        end["warning"] = None
        if run.status in RESUMABLE:
            end, output_count = None, len(times) - (times[-1] not in outputs)
            times, states = times[:output_count], states[:output_count]
        events = [_listed(t) for t in run.t_events]
        return cls(events, outputs, times, states, run.stats["seconds"], end)


def _listed(times: np.ndarray) -> list[Any]:
    """Times of events as a list; of an ensemble the lists of all members, without nan."""
    if times.ndim == 1:
        return times.tolist()
    rows = times.reshape(-1, times.shape[-1])
    return [row[~np.isnan(row)].tolist() for row in rows]


def start_of(arguments: Arguments) -> Solution:
    """Solution that consists of the initial state alone."""
    end: JsonTable = {"status": "finished", "message": "", "stats": {}, "warning": None}
    return _solution(arguments, _Record([], [], [arguments.start], [arguments.state], end=end))


def _solution(arguments: Arguments, record: _Record) -> Solution:
    """Solution of a run that has ended; issues the warning of its end, if there is one."""
    end: Any = record.end
    if end["warning"]:
        warnings.warn(end["warning"], UnresolvedWarning, stacklevel=5)
    return Solution(
        t=np.array(record.times),
        states=tuple(record.states),
        model=arguments.model,
        status=end["status"],
        message=end["message"],
        stats=end["stats"],
        t_events=[
            padded(times, arguments.state.shape) if arguments.apart else np.array(times)
            for times in record.t_events
        ],
        options=arguments.described(),
        rtol=arguments.rtol,
        stored={"extra": arguments.provenance},
    )
