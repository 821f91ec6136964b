"""Plain ensembles of trajectories of tokens until their first passage of a level."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from ..core.calls import checked_call
from ..core.checks import check_memory, positive, require, whole_number
from ..core.errors import UnresolvedWarning
from ..core.forms import Natural
from ..engines import Summation
from ..models.transformer import Transformer
from ..solving.arguments import SAME_TIME
from ..states import Tokens
from ..sweeps.outcomes import VALUE
from .passages import LONGEST, Level, Passages, Trajectories, checked_step
from .rare_events import AT_SOURCE, AT_TARGET, CENSORED, FirstPassages

TRAJECTORIES = 32  # of one ensemble


@dataclass(frozen=True)
class PlainEnsembles(Passages):
    """Ensembles of 32 trajectories, without splitting.

    Attributes
    ----------
    most : int
        Largest number of steps.
    """

    together = 64

    most: int

    def ensemble(self, rng: np.random.Generator) -> "PlainEnsemble":
        return PlainEnsemble(self, rng)


class PlainEnsemble(Trajectories):
    """Trajectories until the target, the source or the largest time."""

    def __init__(self, work: PlainEnsembles, rng: np.random.Generator):
        self._work, self.rng, self._age = work, rng, 0
        self.y = work.starts(TRAJECTORIES, rng)
        self._moving = np.arange(TRAJECTORIES)
        self._ages, self._ends = np.zeros(TRAJECTORIES, int), np.full(TRAJECTORIES, CENSORED)

    def take(self, y: np.ndarray, levels: np.ndarray) -> None:
        work, moving = self._work, self._moving
        self._age += 1
        self._ages[moving] = self._age
        self._ends[moving[levels <= work.source]] = AT_SOURCE
        self._ends[moving[levels >= work.target]] = AT_TARGET
        stays = (self._ends[moving] == CENSORED) & (self._age < work.most)
        self.y, self._moving = y[stays], moving[stays]

    def result(self) -> np.ndarray:
        """Times and ends of the trajectories, (2, trajectories)."""
        return np.array([self._ages * self._work.dt, self._ends])


@checked_call("model", "tokens", "level", "rng", "store", "executor")
def first_passages(
    model: Transformer,
    tokens: Tokens,
    level: Level,
    *,
    target: float,
    t_max: float,
    source: float | None = None,
    replicas: Natural = 320,
    rng: int,
    dt: float | None = None,
    engine: Summation | None = None,
    batch: Natural | None = None,
    store: str | Path | None = None,
    executor: Any = None,
    progress: bool | None = None,
) -> FirstPassages:
    """Times at which the level of tokens first reaches a target, from a plain ensemble.

        T = inf {t : level(tokens at t) >= target}

    Each trajectory costs one mean time: for long times use `splitting`.

    Parameters
    ----------
    model, tokens, level
        As for `splitting`.
    target : float
        Trajectories end at levels >= target.
    t_max : float
        Largest time, >= dt; trajectories that need longer, or 10^7 steps, are censored at the end
        of their last step.
    source : float, optional
        Trajectories also end at levels <= source; the initial levels must be above it.
    replicas : int
        Number of trajectories, rounded up to a multiple of 32.
    rng : int
        The seed, >= 0. Trajectories are the same for any number of replicas.
    dt : float, optional
        Length of steps, by default as in `solve`. Levels are observed only at the ends of steps:
        times are those of a target higher by 0.58 times the change of the level in a step, an
        error of order dt^(1/2).
    engine : engines.Automatic, engines.Direct or engines.Modes, optional
        Method to sum over tokens, as in `solve`. For many steps of 20 to 256 tokens on the circle
        `Modes` is two to twelve times as fast as the default.
    batch, store, executor, progress
        As for `splitting`, with sets of 32 trajectories as points.

    Returns
    -------
    FirstPassages
        After Ctrl-C its status is "interrupted", and unfinished batches are missing.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    MeanfieldError
        For models without noise or with parameters that change in time; if no set of trajectories
        was finished.
    CheckpointError
        If the store is damaged, belongs to another study, or is in use.

    Warns
    -----
    UnresolvedWarning
        If trajectories are censored after 10^7 steps, before t_max.

    References
    ----------
    Gobet, Stoch. Proc. Appl. 87 (2000), 167, for the order of the error; Siegmund and Yuh, Z.
    Wahrscheinlichkeitstheorie 59 (1982), 239, for the number 0.5826.
    """
    seed, step = whole_number("rng", rng, least=0), checked_step(model, tokens, level, dt, engine)
    lowest = -np.inf if source is None else source
    require("target", target, f"a level above source = {lowest:g}", target > lowest)
    steps = int(min(positive("t_max", t_max) / step * (1 + SAME_TIME), LONGEST))
    require("t_max", t_max, f"at least one step of dt = {step:g}", steps > 0)
    check_memory(f"replicas = {replicas}", (replicas, 4), "replicas")
    work = PlainEnsembles(model, tokens, level, target, step, seed, lowest, engine, steps)
    work.check_starts()
    done, about = work.outcomes(
        -(-replicas // TRAJECTORIES), store, executor=executor, batch=batch, progress=progress,
        name="first passages",
    )  # fmt: skip
    import xarray as xr

    time, end = np.concatenate([outcome.variables[VALUE].values for outcome in done], axis=1)
    cut = int((time[end == CENSORED] >= LONGEST * step).sum())
    if cut and LONGEST * step < t_max:
        warn(
            f"{cut} of {len(time)} trajectories had not ended after {LONGEST} steps of dt = "
            f"{step:g}, and are censored at t = {LONGEST * step:g}, before t_max = {t_max:g}: see "
            "splitting, or give a longer dt.",
            UnresolvedWarning, stacklevel=3,
        )  # fmt: skip
    tables = {"time": ("trajectory", time), "end": ("trajectory", end.astype(int))}
    return FirstPassages(xr.Dataset(tables, {}, about | {"t_max": t_max}))
