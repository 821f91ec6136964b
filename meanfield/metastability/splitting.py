"""Adaptive multilevel splitting: probabilities and mean times of rare passages of tokens.

Replicas that climbed least are stopped and continue copies of others from a higher level, until
almost all reach the target.
"""

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.calls import checked_call
from ..core.checks import check_memory, real, require, whole_number
from ..core.errors import MeanfieldError
from ..core.forms import Natural
from ..engines import Summation
from ..models.transformer import Transformer
from ..states import Tokens
from .passages import LONGEST, NUMBERS_OF_A_POINT, Level, Passages, Trajectories, checked_step
from .rare_events import SplittingStudy

TO_SOURCE, TO_ENTRANCE = 0, 1  # what a trajectory between source and entrance goes to
TRIALS = 16  # trajectories whose first step tells how far apart records are


@dataclass(frozen=True)
class MultilevelSplitting(Passages):
    """Repetitions of adaptive multilevel splitting.

    Attributes
    ----------
    entrance : float or None
        Replicas start where they pass this level, coming from the source; None: from the tokens.
    replicas : int
        N
    killed : int
        k, the least number of replicas that are stopped in an iteration.
    loops : int
        Number of passages of the entrance, of which the last is the start of a replica.
    """

    together = 10

    entrance: float | None
    replicas: int
    killed: int
    loops: int

    def ensemble(self, rng: np.random.Generator) -> "Repetition":
        return Repetition(self, rng)


class Loops:
    """Trajectories that go from the source to the entrance and back, until they have enough starts.

    A trajectory that reaches the target begins again from the tokens.

    Attributes
    ----------
    y : ndarray, (moving, n, d)
    starts, levels : ndarray
        Coordinates and levels at the last passage of the entrance.
    first : ndarray, (replicas,)
        Steps until the first passage of the entrance, or of the target before the source.
    direct : ndarray of bool, (replicas,)
        Whether it was the target.
    lengths : list of int
        Steps from one passage to the next without a visit of the target.
    """

    def __init__(self, work: MultilevelSplitting, rng: np.random.Generator):
        """Start one trajectory for each replica at the tokens."""
        count = work.replicas
        self._work, self._rng, self._moving = work, rng, np.arange(count)
        self.y = work.starts(count, rng)
        self.starts, self.levels = self.y.copy(), np.zeros(count)
        self.first, self.lengths = np.zeros(count, int), list[int]()
        self.direct = np.zeros(count, bool)
        self._passed, self._age = np.zeros(count, int), np.zeros(count, int)
        self._restarted = np.zeros(count, bool)
        self._goes = np.where(work.levels(self.y) <= work.source, TO_ENTRANCE, TO_SOURCE)

    def take(self, y: np.ndarray, levels: np.ndarray) -> None:
        """Continue after one more step."""
        work, moving = self._work, self._moving
        self._age[moving] += 1
        outwards = self._goes[moving] == TO_ENTRANCE
        escaped = ~outwards & (levels >= work.target)
        if escaped.any():
            y, at = y.copy(), moving[escaped]
            new = at[self.first[at] == 0]
            self.first[new], self.direct[new] = self._age[new], True
            y[escaped] = work.starts(int(escaped.sum()), self._rng)
            self._restarted[at] = True
        back = ~outwards & ~escaped & (levels <= work.source)
        self._goes[moving[back]] = TO_ENTRANCE
        entered = outwards & (levels >= work.entrance)
        for i, k in zip(np.flatnonzero(entered), moving[entered], strict=True):
            self._enter(k, y[i], levels[i])
        stays = self._passed[moving] < work.loops
        self.y, self._moving = y[stays], moving[stays]

    def _enter(self, k: int, y: np.ndarray, level: float) -> None:
        """Note the passage of the entrance by trajectory k."""
        if not self.first[k]:
            self.first[k] = self._age[k]
        elif self._passed[k] and not self._restarted[k]:
            self.lengths.append(int(self._age[k]))
        self._passed[k] += 1
        self._age[k], self._restarted[k], self._goes[k] = 0, False, TO_SOURCE
        self.starts[k], self.levels[k] = y, level


class Repetition(Trajectories):
    """One run of the algorithm: N replicas, with the records of their levels.

    A record of a replica is a state whose level is above all earlier ones. Copies need no other
    states: a copy begins with the first state above the level of the iteration.
    """

    def __init__(self, work: MultilevelSplitting, rng: np.random.Generator):
        """Start at the tokens, or at the loops before the entrance."""
        self._work, self.rng = work, rng
        self.weight, self.steps, self.branches = 1.0, 0, work.replicas
        self.extinct, self._squares, self._climbing = False, 0.0, 0
        self._since = 0  # steps since trajectories were last started
        self.passed: list[tuple[float, int]] = []  # levels of iterations, numbers of the killed
        self._loops: Any = None
        self._looping = work.entrance is not None
        if self._looping:
            self._loops = Loops(work, rng)
            self.y = self._loops.y
        else:
            y = work.starts(work.replicas, rng)
            self._begin(y, work.levels(y))

    def take(self, y: np.ndarray, levels: np.ndarray) -> None:
        """Continue after one more step, and keep the records of the levels."""
        self.steps += len(y)
        self._since += 1
        if self._since > LONGEST:
            raise MeanfieldError(
                f"A trajectory was neither at the source, {self._work.source:g}, nor at the target "
                f"after {LONGEST} steps: choose thresholds that levels of the tokens pass."
            )
        if not self._looping:
            self._climb(y, levels)
            return
        self._loops.take(y, levels)
        self.y = self._loops.y
        if not len(self.y):
            self._begin(self._loops.starts, self._loops.levels)

    def _begin(self, y: np.ndarray, levels: np.ndarray) -> None:
        """Begin the splitting with replicas at these coordinates."""
        self._looping = False
        self._top, self._age = levels.copy(), np.zeros(len(y), int)
        self._levels = [[float(level)] for level in levels]
        self._records = [[(each.copy(), 0)] for each in y]
        self._start(np.arange(len(y)), y)
        self._iterate()

    def _start(self, replicas: np.ndarray, y: np.ndarray) -> None:
        """Move these replicas from these coordinates, those below the target."""
        below = self._top[replicas] < self._work.target
        self._moving, self.y = replicas[below], y[below]
        self._last, self._since = self._top[self._moving], 0

    def _climb(self, y: np.ndarray, levels: np.ndarray) -> None:
        """Note records of level on each moving path, and end paths at source or target."""
        moving, work = self._moving, self._work
        self._age[moving] += 1
        self._climbing += len(y)
        self._squares += float(((levels - self._last) ** 2).sum())
        for i in np.flatnonzero(levels > self._top[moving]):
            k = moving[i]
            self._levels[k].append(float(levels[i]))
            self._records[k].append((y[i].copy(), int(self._age[k])))
            self._top[k] = levels[i]
        stays = (levels > work.source) & (levels < work.target)
        self.y, self._moving, self._last = y[stays], moving[stays], levels[stays]
        self._iterate()

    def _iterate(self) -> None:
        """Stop and copy replicas until one of them moves, or the splitting is at its end."""
        while not len(self.y) and self._copies():
            pass

    def _copies(self) -> bool:
        """Stop the replicas that climbed least, and continue copies of others in their places.

        All replicas up to the k-th smallest greatest level are stopped, those with ties included.
        Returns False at the end.
        """
        work, top = self._work, self._top
        level = float(np.partition(top, work.killed - 1)[work.killed - 1])
        if level >= work.target:
            return False
        killed, kept = np.flatnonzero(top <= level), np.flatnonzero(top > level)
        self.weight *= len(kept) / len(top)
        self.passed.append((level, len(killed)))
        if not len(kept):
            self.extinct = True
            return False
        for k in kept:
            old = bisect_right(self._levels[k], level)
            del self._levels[k][:old], self._records[k][:old]
        starts = []
        for k, parent in zip(killed, self.rng.choice(kept, len(killed)), strict=True):
            at, (y, age) = self._levels[parent][0], self._records[parent][0]
            self._levels[k], self._records[k] = [at], [(y, age)]
            self._top[k], self._age[k] = at, age
            starts.append(y)
        self.branches += len(killed)
        self._start(killed, np.array(starts))
        return True

    def result(self) -> dict[str, Any]:
        """The outcome, by the names of `SplittingStudy.data`."""
        work, loops = self._work, self._loops
        reached = self._top >= work.target
        share = 0.0 if self.extinct else float(reached.mean())
        lengths = loops.lengths if loops else []
        levels, killed = np.array(self.passed).reshape(-1, 2).T
        return {
            "probability": self.weight * share,
            "reactive_time": work.dt * self._age[reached].mean() if share else np.nan,
            "loop_time": work.dt * np.mean(lengths) if lengths else np.nan,
            "first_time": work.dt * loops.first.mean() if loops else np.nan,
            "direct": loops.direct.mean() if loops else np.nan,
            "iterations": len(self.passed),
            "branches": self.branches,
            "steps": self.steps,
            "change": np.sqrt(self._squares / max(self._climbing, 1)),
            "level": levels,
            "killed": killed,
        }


@checked_call("model", "tokens", "level", "killed", "rng", "store", "executor")
def splitting(
    model: Transformer,
    tokens: Tokens,
    level: Level,
    *,
    source: float,
    target: float,
    entrance: float | None = None,
    replicas: Natural = 100,
    killed: int | float = 0.1,
    repetitions: Natural = 10,
    loops: Natural = 4,
    rng: int,
    dt: float | None = None,
    engine: Summation | None = None,
    batch: Natural | None = None,
    store: str | Path | None = None,
    executor: Any = None,
    progress: bool | None = None,
) -> SplittingStudy:
    """Probability and mean time of a rare passage of tokens, by adaptive multilevel splitting.

        p = P(level >= target before level <= source)
        T = E(first time) + (1 - q) ((1/p - 1) E(loop) + E(reactive time))

    q is the share of trajectories that reach the target before the source.

    N replicas move until they reach the source or the target. Let z be the k-th smallest of their
    greatest levels. An iteration stops all K >= k replicas whose greatest level is at most z. It
    replaces them by copies of other replicas, drawn at random, which continue from their first
    state above z. Iterations end when fewer than k replicas are below the target. The estimator

        p = prod (1 - K_i/N) * (share of replicas at the target)

    is unbiased for the chain of steps dt, for any N, k and level, ties included. A repetition whose
    replicas are all stopped at once has the estimate 0.

    Parameters
    ----------
    model : Transformer
        A single model with noise, constant in time.
    tokens : Tokens
        The start. Given replicas (M,), each trajectory starts from a random one of them.
    level : callable
        Function of tokens with replicas, (R, n, d), that returns R finite numbers: an order
        parameter, a distance, a projection. It affects only the variance of the estimate; the best
        level increases with the probability to reach the target.
    source, target : float
        source < target. Without `entrance` the level of the tokens must be above the source.
    entrance : float, optional
        A level between source and target, for mean times. Trajectories first go from the tokens to
        the source, and then between source and entrance. A replica starts where its trajectory
        passes the entrance for the last time. A loop is the time between two of these passages.
    replicas : int
        N, >= 2.
    killed : int or float
        k, from 1 (last particle) to N - 1; or a share of N, 0 < k/N < 1.
    repetitions : int
        Number of independent runs, from which errors are estimated, >= 2.
    loops : int
        Passages of the entrance by each trajectory, >= 2. Replicas start with the law of the last
        of these passages, instead of the stationary law of late passages. T has a bias if the
        memory of tokens is longer.
    rng : int
        The seed, >= 0. Repetition i has the same numbers for any number of repetitions.
    dt : float, optional
        Length of steps, by default as in `solve`.
    engine : engines.Automatic, engines.Direct or engines.Modes, optional
        Method to sum over tokens, as for `first_passages`.
    batch : int, optional
        Largest number of repetitions in one array, which are stored together; 10 by default.
    store, executor : optional
        As for `sweep`, with repetitions as points: a call with the same store continues an
        interrupted run, or adds repetitions. The numbers depend on neither.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    SplittingStudy
        After Ctrl-C its status is "interrupted", and unfinished batches are missing.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    MeanfieldError
        For models without noise or with parameters that change in time; if a trajectory reaches
        neither the source nor the target in 10^7 steps; if no repetition was finished.
    CheckpointError
        If the store is damaged, belongs to another study, or is in use.

    Notes
    -----
    The relative variance of one repetition is about -log(p)/N for the best level, and larger for
    others; its cost is about 1 - log(p) times that of N trajectories. Estimates of repetitions are
    skew: Student's interval of p at the level 0.95 holds in 92 to 94 % of studies where the
    relative deviation of one repetition is 0.5 or less, in 86 % where it is 0.8 and there are five
    (by simulation for the best level). Levels are observed at the
    ends of steps: p and T are those of thresholds that are farther apart, on each side by 0.58
    times the change of the level in a step, an error of order dt^(1/2). The `change` of the study
    is its root mean square. Records of levels are stored: levels rounded to multiples of a step
    need less memory, and leave p without bias.

    References
    ----------
    Cerou and Guyader, Stoch. Anal. Appl. 25 (2007); Brehier, Gazeau, Goudenege, Lelievre and
    Rousset, Ann. Appl. Probab. 26 (2016), 3559, algorithm 3.1 and theorem 4.1; Cerou, Guyader,
    Lelievre and Pommier, J. Chem. Phys. 134 (2011), for mean times.
    """
    seed, step = whole_number("rng", rng, least=0), checked_step(model, tokens, level, dt, engine)
    require("target", target, f"a level above source = {source:g}", target > source)
    require("replicas", replicas, "a whole number >= 2", replicas >= 2)
    require("repetitions", repetitions, "a whole number >= 2", repetitions >= 2)
    require("loops", loops, "a whole number >= 2", loops >= 2)
    least = _number_killed(killed, replicas)
    if entrance is not None:
        inside = source < entrance < target
        require("entrance", entrance, "a level between source and target", inside)
    work = MultilevelSplitting(
        model,
        tokens,
        level,
        target,
        step,
        seed,
        source,
        engine,
        entrance,
        replicas,
        least,
        loops,
    )
    work.check_starts(entrance is None, ", or entrance= for mean times")
    together = min(batch or work.together, repetitions)
    shape = (*tokens.x.shape[-2:], _records(work), replicas, together)
    check_memory(f"replicas = {replicas} and their records", shape, "replicas or batch")
    check_memory(f"repetitions = {repetitions}", (repetitions, NUMBERS_OF_A_POINT), "repetitions")
    done, about = work.outcomes(
        repetitions, store, executor=executor, batch=batch, progress=progress, name="splitting"
    )
    about |= {
        "entrance": np.nan if entrance is None else entrance, "replicas": replicas, "killed": least,
    }  # fmt: skip
    rows = [{name: one.values for name, one in outcome.variables.items()} for outcome in done]
    return SplittingStudy.of(rows, about)


def _number_killed(killed: Any, replicas: int) -> int:
    """The number k of replicas that are stopped, from a number or a share."""
    wanted = f"a whole number from 1 to {replicas - 1}, or a share of replicas between 0 and 1"
    number = real("killed", killed, wanted, lambda number: 0 < number < replicas)
    whole = np.asarray(killed).dtype.kind in "iu"  # 1.0 is neither
    require("killed", killed, wanted, whole or number < 1)
    return int(killed) if whole else min(max(round(number * replicas), 1), replicas - 1)


def _records(work: MultilevelSplitting) -> int:
    """Number of records of a trajectory from the start to the target, as of a random walk.

    Records of a Gaussian walk are 2^(-1/2) times the change in a step apart, on average. The change
    is that of one step of 16 trajectories.
    """
    rng = np.random.default_rng(work.seed)
    y = work.starts(TRIALS, rng)
    before = work.levels(y)
    change = np.sqrt(np.mean((work.levels(work.step(y, rng)) - before) ** 2))
    lowest = min(work.source, before.min()) if work.entrance is None else work.entrance
    return 1 + int(min(2**0.5 * (work.target - lowest) / max(change, 1e-300), LONGEST))
