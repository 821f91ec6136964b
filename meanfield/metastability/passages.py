"""Trajectories of noisy tokens until a level is reached: many ensembles move in one array.

Both adaptive multilevel splitting and plain ensembles of first passages are made of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..core.checks import path_of, plain_array, positive, require, takes
from ..core.errors import MeanfieldError
from ..core.identity import digest
from ..dynamics.motion import motion_for
from ..engines import Summation
from ..lowlevel.progress import Interruption
from ..models.transformer import Transformer
from ..states import Tokens
from ..steppers import Strang
from ..sweeps.execution import run_points
from ..sweeps.outcomes import Outcome
from ..sweeps.points import SweepPoint, Work, key_of

Level = Callable[[Tokens], Any]
NUMBERS_OF_A_POINT = 128  # memory of an ensemble among the points of a study, in numbers of 8 bytes
LEAST_STEP = 2.0**-104  # its noise, some 2^-52, is lost beside coordinates of 1
LONGEST = 10_000_000  # steps of one trajectory
CACHED = "_motions", "all_starts"  # properties, computed again in another process


class Trajectories(ABC):
    """Trajectories that draw from one generator, some of which still move.

    Attributes
    ----------
    rng : numpy Generator
    y : ndarray, (moving, n, d)
        Coordinates of the trajectories that still move.
    """

    rng: np.random.Generator
    y: np.ndarray

    @abstractmethod
    def take(self, y: np.ndarray, levels: np.ndarray) -> None:
        """Continue with the coordinates and the levels (moving,) after one more step."""


class Shared:
    """Normal numbers for ensembles of trajectories, each ensemble from its generator.

    The numbers of an ensemble depend neither on the other ensembles nor on their number.
    """

    def __init__(self, ensembles: Sequence[Trajectories]):
        self._ensembles = ensembles

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Independent N(0, 1) numbers, with the trajectories along the first axis."""
        numbers, begin = np.empty(shape), 0
        for ensemble in self._ensembles:
            end = begin + len(ensemble.y)
            ensemble.rng.standard_normal(out=numbers[begin:end])
            begin = end
        return numbers


@dataclass(frozen=True)
class Passages(Work):
    """Independent ensembles of tokens that move until their level reaches a threshold.

    Attributes
    ----------
    model : Transformer
    tokens : Tokens
        A single set, or replicas (M,) from which starts are drawn.
    level : callable
        Tokens with replicas (R,) -> numbers (R,).
    target : float
        Trajectories end at levels >= target.
    dt : float
        Length of the steps.
    seed : int
        Ensemble i has the generator of SeedSequence(seed, spawn_key=(i,)).
    source : float
        Trajectories end at levels <= source; -inf for none.
    engine : Summation or None
        How sums over tokens are done, as in `solve`.
    """

    model: Transformer
    tokens: Tokens
    level: Level
    target: float
    dt: float
    seed: int
    source: float
    engine: Summation | None

    supplied: ClassVar[str] = "The level"
    together: ClassVar[int]  # ensembles that move in one array by default

    def __post_init__(self) -> None:
        require("level", self.level, "a function of Tokens", takes(self.level, 1), TypeError)

    @abstractmethod
    def ensemble(self, rng: np.random.Generator) -> Any:
        """An ensemble at its start, with a method `result` for its end."""

    def outcomes(
        self, count: int, store: str | Path | None, *, name: str, **options: Any
    ) -> tuple[list[Outcome], dict[str, Any]]:
        """Move the ensembles 0, ..., count - 1.

        Parameters
        ----------
        count : int
        store : path or None
        name : str
            Title of the progress bar.
        **options
            Of `run_points`: executor, batch, progress.

        Returns
        -------
        list of Outcome, dict
            The outcomes of ensembles that were finished, and the attributes of their result.

        Raises
        ------
        MeanfieldError
            If none was finished before an interruption.
        """
        path = None if store is None else path_of("store", store).absolute()
        points = [
            SweepPoint(key_of({"ensemble": digest(i)}), {"ensemble": i}) for i in range(count)
        ]
        outcomes, finished = run_points(self, points, store=path, name=name, **options)
        done = [outcome for outcome in outcomes if outcome is not None]
        if not done:
            raise MeanfieldError("Nothing was finished before the interruption.")
        return done, {
            "model": repr(self.model), "tokens": repr(self.tokens), "seed": self.seed,
            "dt": self.dt, "source": self.source if np.isfinite(self.source) else np.nan,
            "target": self.target, "status": "finished" if finished else "interrupted",
        }  # fmt: skip

    # The interface of a sweep over ensembles -------------------------------------------------

    def batches(
        self, points: list[SweepPoint], size: int | None, seed: int | None, workers: int
    ) -> list[list[SweepPoint]]:
        """The points in batches that move in one array, at least one for each worker."""
        size = max(1, min(size or self.together, -(-len(points) // workers)))
        return [points[i : i + size] for i in range(0, len(points), size)]

    def values(self, points: Sequence[SweepPoint], seed: int | None) -> list[Any]:
        numbers = [point.parameters["ensemble"] for point in points]
        seeds = [np.random.SeedSequence(self.seed, spawn_key=(i,)) for i in numbers]
        ensembles = [self.ensemble(np.random.default_rng(seed)) for seed in seeds]
        self._move(ensembles)
        return [ensemble.result() for ensemble in ensembles]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in CACHED}

    # Steps -----------------------------------------------------------------------------------

    @cached_property
    def _motions(self) -> dict[int, Any]:
        return {}

    def motion(self, count: int) -> Any:
        """The motion of so many trajectories."""
        if count not in self._motions:
            first = self.tokens[0] if self.tokens.shape else self.tokens
            x = np.broadcast_to(first.x, (count, *first.x.shape))
            radii = None if first.radii is None else np.broadcast_to(first.radii, x.shape[:-1])
            state = Tokens(x, first.masses, radii, on_sphere=first.on_sphere)
            self._motions[count] = motion_for(state)(self.model, state, self.engine, scheme=Strang)
        return self._motions[count]

    @cached_property
    def all_starts(self) -> np.ndarray:
        """Coordinates of the tokens, (M, n, d), M = 1 of a single set."""
        motion: Any = motion_for(self.tokens)(self.model, self.tokens, scheme=Strang)
        return motion.coordinates(self.tokens)

    def starts(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Coordinates of so many trajectories at the start, drawn from the replicas."""
        return self.all_starts[rng.integers(len(self.all_starts), size=count)]

    def levels(self, y: np.ndarray) -> np.ndarray:
        """The levels (R,) of coordinates.

        Raises
        ------
        ValueError
            If they are not a real number for each replica.
        MeanfieldError
            If one is not finite.
        """
        values = plain_array("What level returns", self.level(self.motion(len(y)).state_of(y)))
        if values.shape != (len(y),) or values.dtype.kind not in "fiu":
            raise ValueError(
                f"level must return a real number for each replica, ({len(y)},); got shape "
                f"{values.shape} of {values.dtype}. Write it over the last axes: "
                "lambda tokens: np.linalg.norm(tokens.x.mean(axis=-2), axis=-1)."
            )
        values = values.astype(float)
        if (wrong := ~np.isfinite(values)).any():
            raise MeanfieldError(
                f"level must return finite numbers; of {wrong.sum()} of {len(y)} trajectories it "
                f"is {values[wrong][0]}. Define it there, or bound it, as by "
                "np.maximum(level, -50)."
            )
        return values

    def check_starts(self, above: bool = True, advice: str = "") -> None:
        """Raise ValueError unless tokens begin below the target and, if `above`, above the source.

        `advice` ends the message about those that are not above it.
        """
        levels = self.levels(self.all_starts)
        low, high = levels.min(), levels.max()
        wanted = f"below target = {self.target:g} at the start"
        require("level(tokens)", high, wanted, high < self.target)
        wanted = f"above source = {self.source:g} at the start{advice}"
        require("level(tokens)", low, wanted, low > self.source or not above)

    def _move(self, ensembles: Iterable[Trajectories]) -> None:
        """Move all ensembles until no trajectory of them moves.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C.
        """
        with Interruption() as interruption:
            while moving := [ensemble for ensemble in ensembles if len(ensemble.y)]:
                if interruption.requested:
                    raise KeyboardInterrupt
                y = np.concatenate([ensemble.y for ensemble in moving])
                y = self.step(y, Shared(moving))
                levels, begin = self.levels(y), 0
                for ensemble in moving:
                    end = begin + len(ensemble.y)
                    ensemble.take(y[begin:end], levels[begin:end])
                    begin = end

    def step(self, y: np.ndarray, rng: Any) -> np.ndarray:
        """Coordinates (R, n, d) after one more step; rng has a method `standard_normal`.

        Raises
        ------
        MeanfieldError
            If they are not finite.
        """
        common = rng if self.model.common else None
        with np.errstate(over="ignore", invalid="ignore"):
            y = self.motion(len(y)).step(Strang, y, 0.0, self.dt, rng, common)
        if not np.isfinite(y).all():
            raise MeanfieldError(
                f"Steps of dt = {self.dt:g} are too long: the tokens are not finite after one of "
                "them. Give a smaller dt."
            )
        return y


def checked_step(
    model: Transformer,
    tokens: Tokens,
    level: Level,
    dt: float | None,
    engine: Summation | None,
) -> float:
    """The length of steps, by default that of `solve`, after checks of what moves.

    Raises
    ------
    ValueError, MeanfieldError
        For a model without noise, an ensemble of models, or one that changes in time; for tokens
        that it does not move, or an engine that does not fit; if dt is not > 0, or needed.

    Warns
    -----
    UnresolvedWarning
        If dt exceeds twice the shortest time scale of drift and noise, where that is known.
    """
    dt = None if dt is None else positive("dt", dt)
    wanted = "a function of tokens (R, n, d) that returns R finite numbers"
    require("level", level, wanted, callable(level), TypeError)
    require("tokens", tokens, "Tokens on spheres", isinstance(tokens, Tokens), TypeError)
    replicas = tokens.shape
    require("tokens", tokens, "a single set, or replicas (M,)", len(replicas) <= 1)
    require("model", model, "a Transformer", isinstance(model, Transformer), TypeError)
    require("model", model, "a single model", not model.shape)
    advice = "Without it a trajectory is certain: solve with events finds its passage."
    require("model", model, "one with noise", model.noisy, MeanfieldError, advice=advice)
    motion = motion_for(tokens)(model, tokens, engine)
    constant = motion.autonomous and model.steady_noise
    require("model", model, "one whose parameters do not depend on t", constant, MeanfieldError)
    _, chosen = motion.chosen_scheme(None, dt, 0.0)
    assert chosen is not None  # with noise
    expected = f"above {LEAST_STEP:.1g}, as shorter steps leave tokens where they are"
    require("dt", chosen, expected, chosen > LEAST_STEP)
    return float(chosen)
