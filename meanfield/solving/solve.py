"""The driver: arguments in, a run to the requested times, a solution out."""

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..core.calls import checked_call
from ..core.errors import UnresolvedWarning
from ..core.forms import Index, Natural, NonNegative, Positive, TimeSpan
from ..derivatives.adjoint import known_steps, recorded
from ..derivatives.journal import DensityJournal, EnsembleJournal, FlowJournal
from ..derivatives.tangents import checked_tangents, tangents_of
from ..dynamics.motion import Failure, Motion
from ..engines import Summation
from ..lowlevel.progress import Interruption, Progress
from ..models.transformer import Transformer
from ..results.solution import Solution, State
from ..steppers import Scheme, Splitting
from ..steppers.advance import STEADY
from .arguments import STEADY_TOLERANCE, Arguments, Requested, Times
from .checkpoint import Keeper
from .ensemble import ALL_ENDED, EnsembleIntegration, nested, padded
from .integration import FAILURES, RESUMABLE, STALLED, FlowIntegration, Integration
from .replica_integration import ReplicaIntegration, has_own_steps
from .spectral_integration import CommonNoiseIntegration, SpectralIntegration
from .watching import EventWatch, asks_to_stop, checked_observables, observed

CHECKED_WHERE_USED = "state scheme observe rng checkpoint provenance tangents".split()


@checked_call(*CHECKED_WHERE_USED)
def solve(
    model: Transformer,
    state: State,
    t_span: TimeSpan,
    *,
    t_eval: np.ndarray | Times | None = None,
    breaks: Sequence[float] = (),
    rtol: Positive = 1e-8,
    dt: Positive | None = None,
    scheme: Scheme | Splitting | None = None,
    until: Literal["steady"] | None = None,
    steady_tolerance: Positive = STEADY_TOLERANCE,
    events: Callable[..., Any] | Sequence[Callable[..., Any]] = (),
    callback: Callable[[float, State], Any] | None = None,
    observe: Mapping[str, Callable[[State], Any]] | None = None,
    tangents: Sequence[Any] = (),
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
    provenance: dict[str, Any] | None = None,
) -> Solution:
    """Move a state under a model: d mu/dt = (1/kappa) Lap mu - div(mu v[mu]).

    A `Density` is solved for spectrally, with as many modes as it needs at each time, by an
    exponential Runge-Kutta scheme of order 4 or an explicit one of order 8; all other states are
    moved by the latter. Both have an embedded error estimate and adapt their steps. Tokens with
    noise move in fixed steps of weak order 2.

    Parameters
    ----------
    model : Transformer
        Drift and noise. Arrays of beta and kappa, and stacked initial densities, make an
        ensemble by broadcasting. Each of its members has its own steps, scheme, degree and end,
        and the same bits as alone; see `stats` of `Solution`. So have replicas of tokens under
        error control, which broadcast likewise; matrices of `Attention` may differ too. Densities
        under common noise share their steps and their degree.
        Characteristics and a Gaussian take a single model without noise.
    state : State
        The initial state, of any kind that a `Motion` moves: those of the package, in
        ``State.kinds``, or one of your own.
    t_span : (float, float)
        First and last time.
    t_eval : array, optional
        Times at which to keep the state, increasing, within `t_span`. By default 101 equally
        spaced times, or every layer for `Layers`. The run ends at the last of them.
    breaks : sequence of float, optional
        Times at which parameters that are functions of t jump, have a kink, or begin and end a
        pulse, increasing, within `t_span`: steps end exactly there, and before each of them the
        functions are asked for times before it alone. `PerLayer` tells its jumps by itself.
    rtol : float
        1e-13 to 1e-3. For a density: bound on the error of a step relative to the state, both
        in H^-1 (the linearisation of W2); coefficients are kept down to
        rtol / 10. For characteristics: on the error of a step relative to W2 to a Dirac. For
        tokens: on that of the worst token, in radians; for a Gram matrix of an inner product; for
        equiangular tokens on that of 1 - rho and of 1 + (n - 1) rho, relative; for a Gaussian of
        the mean and of the root of the covariance, relative; else as `Motion.relative_error`.
    dt : float, optional
        Fixed steps of at most this size, all equal, instead of error control. Tokens with noise
        always have fixed steps, equal between outputs, by default 0.05 over the rates of drift and
        noise.
    scheme : Scheme or Splitting, optional
        One of `steppers.SCHEMES`. By default, for a density, the exponential `Krogstad`, of order
        4, or the explicit `DormandPrince`, of order 8, whichever advances further per evaluation
        of the right-hand side; `stats["schemes"]` has the steps of each. `Krogstad` where `dt` is
        given. For other states `DormandPrince`, or any explicit scheme; for tokens with noise
        `Strang`, without noise also `Layers` or `LieTrotter`, with `dt`.
    until : "steady", optional
        Stop when the rate of change is <= `steady_tolerance`: for a density |d mu/dt| in L2, for
        each member of an ensemble by itself; for characteristics, tokens and equiangular ones the
        speed (int |v|^2 dmu)^(1/2); for a Gaussian that of the law in W2, which is 0 where points
        move and the law does not; for a Gram matrix the fastest change of an inner product.
    events : function or list of functions
        g(t, state) -> float, whose zeros are located to rounding and returned in `t_events`;
        g.terminal = True ends the run there, g.direction = 1 or -1 selects rising or falling.
        In fixed steps of tokens, and under common noise, an event is at the end of the step in
        which it falls. Of an ensemble of densities, except under common noise, they see one member
        at a time, which a terminal event ends; of other ensembles, such as replicas of tokens, all
        members at one time. With events or a callback replicas of tokens have common steps.
    callback : function, optional
        Called as callback(t, state) after every step, and at outputs within a step; returning
        True ends the run. Of an ensemble of densities it sees all members, at outputs alone.
    observe : mapping of str to function, optional
        Functions f(state) -> real number or array of one shape, whose values at the outputs are
        among the `observables` of the result, and in its file; nan where a function fails.
    tangents : list, optional
        Derivatives that the result has as `tangents`, at every output: names of parameters of the
        model, such as "beta" and "kappa", and directions in which the initial density changes. A
        direction is another Density, towards which it moves; a function of unit vectors (N, d); a
        `Variation`; or coefficients. For a Density under a constant drift and independent noise,
        or none; "kappa[0]" and so on are layers of a `PerLayer` kappa, "frequency.width",
        "frequency.centre" and "frequency.factor" parameters of frequencies. Of `Indexed` densities
        likewise: towards other `Indexed` densities, by a function that is the same at all nodes, or
        by coefficients of all nodes; where each has its own beta, "beta" is added to all, and
        "beta[0]" is that of a node. Of Tokens, Characteristics and Gaussian, without noise, a
        direction is a change of their arrays: see the page Derivatives.
    min_degree, max_degree : int, optional
        Bounds of the degree of a density, by default 16 and 4096, or 512 on S^2, where the
        number of modes is its square. A density that needs more than `max_degree` ends the run
        with status "unresolved" and a warning. Equal bounds fix the number of modes.
    max_steps : int
        Largest number of attempted steps. An ensemble is cut short, at the last output that all
        members have reached, as soon as one of them has tried as many.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.
    engine : engines.Automatic, engines.Direct or engines.Modes, optional
        How velocities of tokens are summed; by default Automatic().
    merge : float, optional
        Tokens closer than this, and whose radii are as close, relative, become one; single sets
        without noise. Never by default.
    threads : int
        How many groups of members of an ensemble of densities are moved at the same time. The
        result has the same bits.
    rng : numpy.random.Generator or seed, optional
        Of the noise of tokens, and of common noise; without noise it is checked and not read. By
        default a new seed, which `options["seed"]` records. Common noise has a stream of its own,
        that of `rng.spawn(1)`: tokens and a density with the same seed and steps see the same.
        Each replica has a stream of its own: those of `rng.spawn(R + 1)` after the first.
    checkpoint : path, optional
        Where to keep a checkpoint, rewritten every `checkpoint_every` seconds of wall time.
    resume : bool
        Continue from the checkpoint if it exists: the result is the same to the last bit. That of
        a run that is over is given back; the callback of one that it ended is asked again.
    provenance : dict, optional
        Plain data to be kept with the result, for instance a configuration.

    Returns
    -------
    Solution
        With `success` False and the reason in `message` where the run did not reach its end.

    Raises
    ------
    ValueError, TypeError
        For arguments that make no sense; see the message.
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
    twelve. Under parameters that are functions of t Krogstad has a fifth, by which its estimate of
    errors sees how they change. For characteristics an evaluation is two sums over nodes and
    harmonics, for tokens one or two sums over pairs, or over tokens and harmonics.

    Outputs cost no steps, and steps do not depend on them. The state within a step is interpolated,
    to order 4 for exponential schemes, without an evaluation; to order 7 for DormandPrince, for
    which a step with outputs costs three more evaluations. Counts do not include them. Steps end at
    every output where a scheme has no dense output, as for tokens with noise.

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
        max_steps=max_steps,
        progress=progress,
        engine=engine,
        merge=merge,
        threads=threads,
        rng=rng,
        keeper=Keeper(checkpoint, checkpoint_every, resume),
        provenance=provenance,
    )
    observables = checked_observables(observe, _start(arguments))
    wanted = checked_tangents(tangents, arguments.model, arguments.state, arguments.motion)
    with arguments.keeper, Progress("solve", arguments.progress) as progress_bar:
        one = _SolvedRun(arguments, progress_bar)
        if wanted:
            known_steps(one.journal)  # before a run that is resumed goes on without them
        record = one.to_the_end()
    run = _solution(arguments, record)
    run.stored["observed"] = observed(observables, run)
    run.stored.update(journal=one.journal, initial=arguments.state)
    if wanted:
        run.stored["tangents"] = tangents_of(run, *recorded(run), wanted, arguments.motion)
    return run


class _SolvedRun:
    """A call of `solve`: the integration, the record, events, callback and checkpoint."""

    def __init__(self, arguments: Arguments, progress: Progress):
        self._progress = progress
        self._arguments, self._began = arguments, time.perf_counter()
        self._integration = _integration_of(arguments)
        self._record = _Record([[] for _ in arguments.events])
        self._keeper, kept = arguments.keeper, arguments.keeper.opened(self._identity())
        self._resumed = bool(kept)
        if kept:
            self._integration.restore(kept)
            self._record = _Record.of_arrays(kept, arguments.motion)
        self._watch = None
        if arguments.events and not arguments.apart:
            self._watch = EventWatch(arguments.events, self._integration)

    @property
    def journal(self) -> DensityJournal | EnsembleJournal | FlowJournal | None:
        """The accepted steps of the run, where they are all known."""
        return self._integration.journal

    def _identity(self) -> dict[str, Any]:
        """The arguments that a checkpoint must agree with."""
        arguments = self._arguments
        return {
            "model": arguments.model,
            "options": arguments.described(),
            "engine": repr(arguments.engine),
            "scheme": arguments.scheme,
            "events": arguments.events,
            "initial": arguments.state,
            "motion": type(arguments.motion),
            "integration": type(self._integration),
        }

    def to_the_end(self) -> "_Record":
        """Integrate through the output times, whatever happens on the way."""
        if self._record.end is None:
            with Interruption() as interruption:
                status = self._at_once() or self._through_the_outputs(interruption)
            self._end(status or "finished")
        return self._record

    def _at_once(self) -> str | None:
        """The status of a run that ends where it begins, or where it is resumed; else None."""
        run, steady = self._integration, self._arguments.steady
        if self._resumed:
            return self._asked_to_stop()
        return "steady" if steady and run.rate <= steady else None

    def _through_the_outputs(self, interruption: Interruption) -> str | None:
        """Go on to the last output; return the status of a run that ends before it, or None."""
        run = self._integration
        for time_of_output, elapsed in zip(self._arguments.times, run.outputs, strict=True):
            if elapsed < run.elapsed:
                continue
            if status := self._to(float(elapsed), interruption):
                return status
            self._record.save(float(time_of_output), run.state)
        return None

    def _to(self, elapsed: float, interruption: Interruption) -> str | None:
        """Go on until this time since the start; return the status of a run that ends before it."""
        run, arguments = self._integration, self._arguments
        looked_at = bool(arguments.callback or arguments.events)
        limit = 1 if looked_at else run.pause
        while run.elapsed < elapsed:
            before, left = run.elapsed, arguments.max_steps - run.attempts
            if left <= 0 and not run.within:
                return "max_steps"
            code = run.advance(elapsed, min(limit, left))
            if code in FAILURES:
                return FAILURES[code]
            moved = run.elapsed > before or code == STALLED
            if looked_at and moved and (status := self._look()):
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

    def _look(self) -> str | None:
        """Events and callback after a step."""
        if self._watch:
            for index, t, state, terminal in self._watch.crossed(self._integration):
                self._record.t_events[index].append(t)
                if terminal:
                    self._record.save(t, state)
                    return "event"
        return self._asked_to_stop()

    def _asked_to_stop(self) -> str | None:
        callback, run = self._arguments.callback, self._integration
        return "stopped" if callback and asks_to_stop(callback(run.t, run.state)) else None

    def _arrays(self) -> dict[str, Any]:
        """Everything that a run needs to go on, or to be given back if it is over."""
        return self._integration.snapshot() | self._record.arrays(
            self._arguments.motion, self._seconds()
        )

    def _seconds(self) -> float:
        return self._record.seconds + time.perf_counter() - self._began

    def _end(self, status: str) -> None:
        """Keep how the run ends; the checkpoint of one that is over has it too."""
        run, record = self._integration, self._record
        over = status not in RESUMABLE
        if not over:  # before the state where the run happened to end is added
            self._keeper.save(self._arrays)
        if status not in ("event", "finished"):  # whose last state is kept already
            record.save(run.t, run.state)
        if self._arguments.apart:
            record.t_events = run.t_events
        record.end = run.ending(status, record.states[-1], record.times[-1])
        arguments = self._arguments
        warning = arguments.motion.warning_of_start(arguments.state, arguments.rtol)
        if warning and record.end["status"] != "unresolved":  # which says more
            record.end["message"] = f"{warning} {record.end['message']}"
            record.end["stats"]["resolved_at_start"] = False
        self._look_back()
        record.end["stats"]["seconds"] = self._seconds()
        if over:
            self._keeper.save(self._arrays)

    def _look_back(self) -> None:
        """Remember from when on saved states are wrong, and say so where the end does not."""
        record, motion, rtol = self._record, self._arguments.motion, self._arguments.rtol
        last, shape = len(record.times) - 1, self._arguments.state.shape
        since: Any = None
        for i, (t, state) in enumerate(zip(record.times, record.states, strict=True)):
            wrong = motion.is_wrong(state, t, rtol, thoroughly=i == last)
            if wrong.any():
                since = np.full(wrong.size, np.inf) if since is None else since
                since[wrong & np.isinf(since)] = t
        if since is None:
            return
        known = [None if np.isinf(t) else t for t in since.tolist()]
        end: Any = record.end
        end["stats"]["unresolved_since"] = nested(known, shape)
        if end["warning"] is None:
            warning = self._reason(int(since.argmin()), float(since.min()))
            end |= {"warning": warning, "message": f"{end['message']} {warning}"}

    def _reason(self, member: int, t: float) -> str:
        """A sentence that says why the state of a member is wrong at a time."""
        record, arguments = self._record, self._arguments
        motion, state = arguments.motion, record.states[record.times.index(t)]
        at = Failure(
            t, t - record.times[0], np.zeros(0), 0.0, False, arguments.dt, arguments.rtol, {}
        )
        if not state.shape:
            return f"The density at t = {t:g} {motion.why_wrong(state, t, at)}"
        index = tuple(map(int, np.unravel_index(member, state.shape)))
        why = motion.of_members(member).why_wrong(state[index], t, at)
        return f"The density of member {index} at t = {t:g} {why}"


def _integration_of(arguments: Arguments) -> Integration:
    """The integration of a run, or of an ensemble of runs."""
    if not arguments.motion.semilinear:
        kind = ReplicaIntegration if has_own_steps(arguments) else FlowIntegration
        return kind(arguments)
    if arguments.motion.random:
        return CommonNoiseIntegration(arguments)
    return EnsembleIntegration(arguments) if arguments.apart else SpectralIntegration(arguments)


@dataclass
class _Record:
    """Saved states, events, wall time spent in earlier sessions; once the run is over, its end."""

    t_events: list[list[Any]]
    times: list[float] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    seconds: float = 0.0
    end: dict[str, Any] | None = None

    def save(self, t: float, state: State) -> None:
        """Keep a state; a second one at the same time is not kept."""
        if not self.times or self.times[-1] != t:
            self.times.append(float(t))
            self.states.append(state)

    def arrays(self, motion: Motion, seconds: float) -> dict[str, np.ndarray]:
        """Everything as named arrays, which a checkpoint keeps."""
        about = {"t_events": self.t_events, "times": self.times}
        about |= {"seconds": seconds, "end": self.end}
        states = enumerate(map(motion.packed, self.states))
        return {"record": np.array(json.dumps(about))} | {f"record.{i:09d}": y for i, y in states}

    @classmethod
    def of_arrays(cls, content: dict[str, np.ndarray], motion: Motion) -> "_Record":
        """The record that `arrays` described, of a run of the same motion."""
        kept = sorted(key for key in content if key.startswith("record."))
        states = [motion.unpacked(content[key]) for key in kept]
        return cls(states=states, **json.loads(str(content["record"])))


def _start(arguments: Arguments) -> Solution:
    """The initial state as a result."""
    return Solution(
        t=np.array([arguments.start]),
        states=(arguments.state,),
        model=arguments.model,
        status="finished",
        message="",
        stats={},
        options=arguments.described(),
    )


def _solution(arguments: Arguments, record: _Record) -> Solution:
    """The solution of a run that has ended, with a warning if its end has one."""
    end: Any = record.end
    if end["warning"]:
        warnings.warn(end["warning"], UnresolvedWarning, stacklevel=4)
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
