"""The driver: arguments in, a run to the requested times, a solution out."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..core.forms import Index, Natural, Positive
from ..engines import Summation
from ..models.transformer import Transformer
from ..results.solution import Solution, State
from ..steppers import Scheme, Splitting
from ..steppers.advance import STEADY
from .arguments import AT_REST, Arguments, Times
from .degree_adaptation import SpectralIntegration
from .integration import STALLED, FlowIntegration, Integration
from .outcome import ENDS, GOES_ON, Record, ending, solution
from .progress import Interruption, Progress
from .watching import EventWatch, asks_to_stop, checked_observables, observed

__all__ = ["solve"]


def solve(
    model: Transformer,
    state: State,
    t_span: Sequence[float],
    *,
    t_eval: np.ndarray | Times | None = None,
    rtol: float = 1e-8,
    dt: Positive | None = None,
    scheme: Scheme | Splitting | None = None,
    until: Literal["steady"] | None = None,
    steady_tolerance: Positive = AT_REST,
    events: Callable | Sequence[Callable] = (),
    callback: Callable[[float, State], Any] | None = None,
    observe: Mapping[str, Callable[[State], Any]] | None = None,
    min_degree: Natural | None = None,
    max_degree: Natural | None = None,
    max_steps: Natural = 10_000_000,
    progress: bool | None = None,
    engine: Summation | None = None,
    merge: Positive | None = None,
    rng: Index | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
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
        ensemble by broadcasting: all members are solved at once, with common steps and modes.
        Characteristics and a Gaussian take a single model without noise. Replicas of tokens
        broadcast likewise.
    state : Density, Characteristics, Tokens, Gram, Equiangular or Gaussian
        The initial state; or one of a class of your own that a `Motion` moves.
    t_span : (float, float)
        First and last time.
    t_eval : array, optional
        Times at which to keep the state, increasing, within `t_span`; they are hit exactly.
        By default 101 equally spaced times, or every layer for `Layers`. The run ends at the last
        of them.
    rtol : float
        1e-13 to 1e-3. For a density: bound on the error of a step relative to the state, both
        in H^-1 (the linearisation of W2), for the worst member; coefficients are kept down to
        rtol / 10. For characteristics: on the error of a step relative to W2 to a Dirac. For
        tokens: on that of the worst token, in radians; for a Gram matrix of an inner product; for
        equiangular tokens on that of 1 - rho and of 1 + (n - 1) rho, relative; for a Gaussian of
        the mean and of the root of the covariance, relative; else as `Motion.relative_error`.
    dt : float, optional
        Fixed steps of at most this size, equal between outputs, instead of error control. Tokens
        with noise always have fixed steps, by default 0.05 over the rates of drift and noise.
    scheme : Scheme or Splitting, optional
        One of `steppers.SCHEMES`. By default, for a density, the exponential `Krogstad`, of order
        4, or the explicit `DormandPrince`, of order 8, whichever advances further per evaluation
        of the right-hand side; `stats["schemes"]` has the steps of each. `Krogstad` where `dt` is
        given. For other states `DormandPrince`, or any explicit scheme; for tokens with noise
        `Strang`, without noise also `Layers` or `LieTrotter`, with `dt`.
    until : "steady", optional
        Stop when the rate of change is <= `steady_tolerance`: for a density |d mu/dt| in L2, of
        all members; for characteristics, tokens and equiangular ones the speed
        (int |v|^2 dmu)^(1/2); for a Gaussian that of the law in W2, which is 0 where points move
        and the law does not; for a Gram matrix the fastest change of an inner product.
    events : function or list of functions
        g(t, state) -> float, whose zeros are located to rounding and returned in `t_events`;
        g.terminal = True ends the run there, g.direction = 1 or -1 selects rising or falling.
        In fixed steps of tokens an event is at the end of the step in which it falls.
    callback : function, optional
        Called as callback(t, state) after every step, and at outputs within a step; returning
        True ends the run.
    observe : mapping of str to function, optional
        Functions f(state) -> real number or array, whose values at the outputs are among the
        `observables` of the result, and in its file.
    min_degree, max_degree : int, optional
        Bounds of the degree of a density, by default 16 and 4096, or 512 on S^2, where the
        number of modes is its square. A density that needs more than `max_degree` ends the run
        with status "unresolved" and a warning. Equal bounds fix the number of modes.
    max_steps : int
        Largest number of attempted steps.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.
    engine : engines.Automatic, engines.Direct or engines.Modes, optional
        How velocities of tokens are summed; by default Automatic().
    merge : float, optional
        Tokens closer than this, and whose radii are as close, relative, become one; single sets
        without noise. Never by default.
    rng : numpy.random.Generator or seed, optional
        Of the noise of tokens; without noise it is checked and not read. By default a new seed,
        which `options["seed"]` records.
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

    Notes
    -----
    A step of Krogstad costs four evaluations, each one pair of inverse transforms (triple for
    SA) and one forward transform of about 2 to 3 times the degree; a step of DormandPrince
    twelve. For characteristics an evaluation is two sums over nodes and harmonics, for tokens
    one or two sums over pairs, or over tokens and harmonics. Outputs cost no steps, but for a
    density: states within a step of DormandPrince are interpolated, to order 7, for which a step
    with outputs costs three more evaluations. Counts do not include them.

    References
    ----------
    Krogstad, J. Comput. Phys. 203 (2005); Rigollet, arXiv:2512.01868, equation (9).
    """
    arguments = Arguments(locals())
    observables = checked_observables(observe, arguments.model, arguments.state)
    with Progress(float(arguments.times[-1] - arguments.start), arguments.progress) as progress_bar:
        record = _Run(arguments, progress_bar).to_the_end()
    run = solution(arguments, record)
    run.stored["observed"] = observed(observables, run.states)
    return run


class _Run:
    """One call of `solve`: the integration, the record, events, callback and checkpoint."""

    def __init__(self, arguments: Arguments, progress: Progress):
        self._progress = progress
        self._arguments, self._began = arguments, time.perf_counter()
        kind = SpectralIntegration if arguments.motion.semilinear else FlowIntegration
        self._integration: Integration = kind(arguments)
        self._record = Record([[] for _ in arguments.events])
        self._keeper, kept = arguments.keeper, arguments.keeper.opened(self._identity())
        self._resumed = bool(kept)
        if kept:
            self._integration.restore(kept)
            self._record = Record.of_arrays(kept, arguments.motion)
        self._watch = None
        if arguments.events:
            self._watch = EventWatch(arguments.events, self._integration)

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        arguments = self._arguments
        return {
            "model": arguments.model,
            "options": arguments.described(),
            "engine": repr(arguments.engine),
            "scheme": arguments.scheme,
            "events": arguments.events,
            "initial": arguments.state,
        }

    def to_the_end(self) -> Record:
        """Integrate through the output times, whatever happens on the way."""
        if self._record.end is None:
            with Interruption() as interruption:
                status = self._at_once() or self._through_the_outputs(interruption)
            self._end(status or "finished")
        return self._record

    def _at_once(self) -> str | None:
        """Why the run ends where it begins, or where it is taken up; None if it does not."""
        run, steady = self._integration, self._arguments.steady
        if self._resumed:
            return self._asked_to_stop()
        return "steady" if steady and run.rate <= steady else None

    def _through_the_outputs(self, interruption: Interruption) -> str | None:
        """Go on to the last output; returns why the run ends before it, or None."""
        run = self._integration
        for time_of_output, elapsed in zip(self._arguments.times, run.outputs, strict=True):
            if elapsed < run.elapsed:
                continue
            if status := self._to(float(elapsed), interruption):
                return status
            self._record.save(float(time_of_output), run.state)
        return None

    def _to(self, elapsed: float, interruption: Interruption) -> str | None:
        """Go on until this time since the start; returns why the run ends there, or None."""
        run, arguments = self._integration, self._arguments
        looked_at = bool(arguments.callback or arguments.events)
        limit = 1 if looked_at else run.pause
        while run.elapsed < elapsed:
            before, left = run.elapsed, arguments.max_steps - run.attempts
            if left <= 0:
                return "max_steps"
            code = run.advance(elapsed, min(limit, left))
            if code in ENDS:
                return ENDS[code]
            moved = run.elapsed > before or code == STALLED
            if looked_at and moved and (status := self._look()):
                return status
            if code == STEADY:
                return "steady"
            if interruption.requested:
                return "interrupted"
            self._progress.update(run.t, run.elapsed, run.size)
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
        over, steady = status not in GOES_ON, self._arguments.steady
        if not over:  # before the state where the run happened to end is added
            self._keeper.save(self._arrays)
        if status not in ("event", "finished"):  # whose last state is kept already
            record.save(run.t, run.state)
        record.end = ending(status, run, record, steady)
        record.end["stats"]["seconds"] = self._seconds()
        if over:
            self._keeper.save(self._arrays)
