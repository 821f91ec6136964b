"""All points of a work: through an executor, into a store, with progress, until Ctrl-C."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ..core.errors import MeanfieldError
from ..lowlevel.progress import Interruption, Progress
from .executors import LOST, completed, error_of, opened, was_killed, was_lost, workers_of
from .outcomes import Outcome, in_words, of_bytes
from .points import Job, Point, Work
from .store import Store


def run_points(
    work: Work,
    points: Sequence[Point],
    *,
    seed: int | None = None,
    store: Path | None = None,
    executor: Any = None,
    keep_errors: bool = False,
    batch: int | None = None,
    progress: bool | None = None,
    name: str = "sweep",
) -> tuple[list[Outcome | None], bool]:
    """Run those points that the store lacks.

    Parameters
    ----------
    work : Work
    points : sequence of Point
    seed : int, optional
    store, executor, batch, progress
        As for `sweep`.
    keep_errors : bool
        Whether points that fail are outcomes too; else the first one ends it.
    name : str
        What the progress bar calls it.

    Returns
    -------
    outcomes : list of Outcome or None
        Of every point; None for those that were not run.
    finished : bool
        Whether all were run: not after Ctrl-C.

    Raises
    ------
    MeanfieldError
        If a point fails, with its parameters; if workers were lost, or no scheduler answers.
    CheckpointError
        If the store is damaged, of another sweep, or in use.
    """
    identity = {"work": work, "rng": seed}
    with Store(store, identity) as kept:
        run = _Run(work, points, seed, kept, keep_errors)
        run.through(executor, batch, progress, name)
    found = [run.outcomes.get(point.key) for point in points]
    return found, None not in found


class _Run:
    """One call of `run_points`: what is known so far, by the keys of points."""

    def __init__(
        self, work: Work, points: Sequence[Point], seed: int | None, store: Store, keep_errors: bool
    ):
        self._work, self._points, self._seed = work, points, seed
        self._store, self._keep_errors = store, keep_errors
        self._costs = {point.key: work.cost(point) for point in points}
        self._whole, self._done, self._count = sum(self._costs.values()), 0.0, 0
        self.outcomes: dict[str, Outcome] = {}
        for payload in store.payloads:
            self.outcomes |= of_bytes(payload)
        if not keep_errors:
            self.outcomes = {key: one for key, one in self.outcomes.items() if not one.error}
        self._counted(key for key in self._costs if key in self.outcomes)

    def through(self, executor: Any, batch: int | None, progress: bool | None, name: str) -> None:
        """Run what is left."""
        left = [point for point in self._points if point.key not in self.outcomes]
        failures: list[MeanfieldError] = []
        if not left:
            return
        with opened(executor) as workers, Progress(name, progress, self._part()) as bar:
            batches = self._work.batches(left, batch, self._seed, workers_of(workers))
            jobs = [Job(self._work, points, self._seed) for points in batches]
            with Interruption() as interruption:

                def stop() -> bool:
                    return interruption.requested or bool(failures)

                # First no points, alone: what jobs import is not imported by many at the same time.
                for _, future in completed(workers, [(Job(self._work, [], self._seed), 0)], stop):
                    if not stop() and (error := error_of(future)):
                        failures.append(self._lost(jobs[0].points[0], error))
                while jobs and not stop():
                    numbered, jobs = jobs, []
                    for number, future in completed(
                        workers, zip(numbered, range(len(numbered)), strict=True), stop
                    ):
                        if not (interruption.requested and was_lost(future)):
                            jobs += self._enter(numbered[number], future, failures)
                        bar.show(self._part(), f"{name} {self._count}/{len(self._points)}")
        if failures:
            raise failures[0]

    def _part(self) -> float:
        return self._done / self._whole

    def _counted(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._done += self._costs[key]
            self._count += 1

    def _enter(self, job: Job, future: Future, failures: list[MeanfieldError]) -> list[Job]:
        """Keep what came of a batch; what is to be run instead."""
        try:
            payload = future.result()
        except KeyboardInterrupt:
            return []
        except BaseException as error:  # of the executor: what points raise is an outcome
            if not (was_killed(error) or isinstance(error, LOST) or job.second):
                return [job.again()]  # as dask may fail to hand on what came while a worker dies
            if not was_killed(error):
                failures.append(self._lost(job.points[0], error))
                return []
            if len(job.points) > 1:
                return job.parts()
            payload = job.failed(error)  # a point that kills whichever worker runs it
        self._store.add(payload)
        outcomes = of_bytes(payload)
        self.outcomes |= outcomes
        self._counted(outcomes)
        for point in job.points:
            if outcomes[point.key].error and not self._keep_errors:
                failures.append(_refused(point, outcomes[point.key]))
        return []

    def _lost(self, point: Point, error: BaseException) -> MeanfieldError:
        text, given = in_words(error).rstrip("."), self._work.given
        if isinstance(error, LOST):
            there = self._store.path
            advice = (
                "A worker or the scheduler was lost: for want of memory perhaps, or as it could "
                f"not import {given}, to be written in a module, or in a script that does its work "
                "under if __name__ == '__main__'. The same call goes on"
            )
            advice += f" with what {there} has." if there else "; with store=, from where it was."
        elif isinstance(error, RuntimeError):
            advice = "executor has to be one that still runs something."
        else:
            advice = (
                f"{given}, parameters and what comes back have to be such that pickle takes them."
            )
        lost = MeanfieldError(f"The point {point.in_words()} was not run: {text}. {advice}")
        lost.__cause__ = error if isinstance(error, Exception) else None
        return lost


def _refused(point: Point, outcome: Outcome) -> MeanfieldError:
    error = MeanfieldError(f"The point {point.in_words()} failed: {outcome.error}")
    error.add_note(outcome.where)
    return error
