"""Run the points of a sweep through an executor into a store, with progress, until Ctrl-C."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.errors import MeanfieldError
from ..lowlevel.progress import Interruption, Progress
from .executors import WORKERS_LOST, completed, error_of, opened, was_killed, workers_of
from .outcomes import Outcome, message_of, of_bytes, to_bytes
from .points import Job, SweepPoint, Work
from .store import Store


def run_points(
    work: Work,
    points: Sequence[SweepPoint],
    *,
    seed: int | None = None,
    store: Path | None = None,
    executor: Any = None,
    keep_errors: bool = False,
    batch: int | None = None,
    progress: bool | None = None,
    name: str = "sweep",
) -> tuple[list[Outcome | None], bool]:
    """Run the points that the store lacks.

    Parameters
    ----------
    work : Work
    points : sequence of SweepPoint
    seed : int, optional
    store, executor, batch, progress
        As for `sweep`.
    keep_errors : bool
        Whether a failed point counts as an outcome; otherwise the first failure ends the sweep.
    name : str
        Title of the progress bar.

    Returns
    -------
    outcomes : list of Outcome or None
        The outcome of every point; None if it was not run.
    finished : bool
        Whether all points were run; False after Ctrl-C.

    Raises
    ------
    MeanfieldError
        If a point fails, with its parameters; if workers were lost, or no scheduler answers.
    CheckpointError
        If the store is damaged, belongs to another sweep, or is in use.
    """
    with Store(store, {"f": work, "rng": seed}) as open_store:
        run = _SweepRun(work, points, seed, open_store, keep_errors)
        run.run_missing(executor, batch, progress, name)
    outcomes = [run.outcomes.get(point.key) for point in points]
    return outcomes, None not in outcomes


class _SweepRun:
    """The state of one call of `run_points`: outcomes so far, by the keys of points."""

    def __init__(
        self, work: Work, points: Sequence[SweepPoint], seed: int | None, store: Store,
        keep_errors: bool,
    ):  # fmt: skip
        """Collect the stored outcomes, and the costs of the points that they cover."""
        self._work, self._points, self._seed = work, points, seed
        self._store, self._keep_errors = store, keep_errors
        self._costs = {point.key: work.cost(point) for point in points}
        self.outcomes: dict[str, Outcome] = {}
        for payload in store.payloads:
            self.outcomes |= of_bytes(payload)
        if not keep_errors:
            self.outcomes = {key: o for key, o in self.outcomes.items() if not o.error}
        costs = [cost for key, cost in self._costs.items() if key in self.outcomes]
        self._done, self._count = sum(costs), len(costs)

    def run_missing(
        self, executor: Any, batch: int | None, progress: bool | None, name: str
    ) -> None:
        """Run the points without outcomes."""
        left = [point for point in self._points if point.key not in self.outcomes]
        failures: list[MeanfieldError] = []
        origin = f" ({self._count} from the store)" if self._count else ""

        def show() -> None:
            bar.show(self._part(), f"{name} {self._count}/{len(self._points)}{origin}")

        with Progress(name, progress, self._part()) as bar:
            show()
            if not left:
                return
            workers = bar.enter_context(opened(executor))
            batches = self._work.batches(left, batch, self._seed, workers_of(workers))
            jobs = [Job(self._work, points, self._seed) for points in batches]
            with Interruption() as interruption:

                def stop() -> bool:
                    return interruption.requested or bool(failures)

                # An empty job first: many workers importing the same modules at once is slow.
                for _, future in completed(workers, [(Job(self._work, [], self._seed), 0)], stop):
                    if not stop() and (error := error_of(future)):
                        failures.append(self._lost(jobs[0].points[0], error))
                while jobs and not stop():
                    numbered, jobs = jobs, []
                    pairs = zip(numbered, range(len(numbered)), strict=True)
                    for number, future in completed(workers, pairs, stop):
                        lost = isinstance(error_of(future), WORKERS_LOST)
                        if not (interruption.requested and lost):
                            jobs += self._record(numbered[number], future, failures)
                        show()
        if failures:
            raise failures[0]

    def _part(self) -> float:
        return self._done / sum(self._costs.values())

    def _record(self, job: Job, future: Future[Any], failures: list[MeanfieldError]) -> list[Job]:
        """Store the outcomes of a batch; return the jobs to run in its place."""
        try:
            payload = future.result()
        except KeyboardInterrupt:
            return []
        except BaseException as error:  # of the executor; an error of a point is an outcome
            if not (was_killed(error) or isinstance(error, WORKERS_LOST) or job.second):
                return [replace(job, second=True)]  # dask may lose a result while a worker dies
            if not was_killed(error):
                failures.append(self._lost(job.points[0], error))
                return []
            if len(job.points) > 1:
                return [Job(self._work, [point], self._seed) for point in job.points]
            # the point kills every worker that runs it
            payload = to_bytes([job.points[0].key], [Outcome.failed(error)])
        self._store.add(payload)
        outcomes = of_bytes(payload)
        self.outcomes |= outcomes
        self._done += sum(self._costs[key] for key in outcomes)
        self._count += len(outcomes)
        for point in job.points:
            outcome = outcomes[point.key]
            if outcome.error and not self._keep_errors:
                failures.append(
                    MeanfieldError(f"The point {point.label()} failed: {outcome.error}")
                )
                failures[-1].add_note(outcome.where)
        return []

    def _lost(self, point: SweepPoint, error: BaseException) -> MeanfieldError:
        """MeanfieldError for a point that was not run, with advice by the kind of error."""
        text, supplied = message_of(error).rstrip("."), self._work.supplied
        if isinstance(error, WORKERS_LOST):
            path = self._store.path
            advice = (
                "A worker or the scheduler was lost, perhaps for lack of memory, or because it "
                f"could not import {supplied}: write them in a module, or in a script with "
                "if __name__ == '__main__'. The same call resumes"
            )
            advice += f" from {path}." if path else " only with store=."
        elif isinstance(error, RuntimeError):
            advice = "executor must still accept jobs."
        else:
            advice = f"{supplied}, parameters and results must be picklable."
        lost = MeanfieldError(f"The point {point.label()} was not run: {text}. {advice}")
        lost.__cause__ = error if isinstance(error, Exception) else None
        return lost
