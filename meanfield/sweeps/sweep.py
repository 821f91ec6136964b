"""The sweep: all points of a grid through an executor, into a store, out as a dataset."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Future
from pathlib import Path
from typing import Any, Literal

from ..core.checks import fitting, path_of
from ..core.errors import ConfigError, MeanfieldError
from ..core.forms import Index, Natural
from ..core.kinds import checked_call
from ..results.provenance import versions
from ..solving.progress import Interruption, Progress
from .executors import completed, opened
from .outcomes import REPLICA, Outcome, dataset_of, of_bytes
from .points import RNG, Function, Grid, Job, Point, Work
from .store import Store


@checked_call("f", "parameters", "store", "executor")
def sweep(
    f: Callable | Mapping[str, Any] | Work,
    parameters: Mapping[str, Any],
    *,
    replicas: Natural | None = None,
    rng: Index | None = None,
    store: str | Path | None = None,
    executor: Any = None,
    errors: Literal["raise", "keep"] = "raise",
    batch: Natural = 1,
    progress: bool | None = None,
) -> Any:
    """Call a function, or run a configuration, at all points of a grid of parameters.

    The numbers do not depend on the executor, on how many workers it has, on the order in which
    points end, or on whether the sweep was interrupted and resumed.

    Parameters
    ----------
    f : callable, or dict
        A function of the parameters by their names, and of ``rng`` if it has that argument, that
        returns a number, an array, a dictionary of them, an `xarray.Dataset`, or a `Solution`,
        which stands for its observables and its status. Other processes have to be able to import
        it. Or a configuration of `meanfield solve`, as a dictionary of its tables.
    parameters : dict of str to sequence
        The values of every parameter: numbers, text, or any objects. Those of a configuration are
        named by dotted keys, as "model.kappa".
    replicas : int, optional
        Independent runs of every point; they need `rng`.
    rng : int, optional
        The seed. Each point and replica has a generator of its own,
        ``default_rng(SeedSequence(rng, spawn_key=(indices of its values, replica)))``. Runs of a
        configuration draw from it the seed of their noise, and those that stand in [initial].
    store : path, optional
        File that takes what came of a point as soon as it is known. If the file exists, only points
        that it lacks are run, and those that failed, unless errors are kept.
    executor : optional
        Where points are run: by default in this process, one after the other; "processes": in one
        process for each core; the address of a dask scheduler, "tcp://127.0.0.1:8786"; a
        `dask.distributed.Client`; or any executor of `concurrent.futures`.
    errors : "raise" or "keep"
        Whether a point that fails ends the sweep, after those that are running. Else it is nan, and
        the variable "error" has the message, "" at other points.
    batch : int
        Of a configuration without `rng`: how many points that differ in numbers which the model
        takes as arrays are solved at once, as an ensemble.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    xarray.Dataset
        On the parameters, and "replica". Of what is not named the name is "value". Its attribute
        "status" is "finished", or, after Ctrl-C, "interrupted", with nan for what was not run.

    Raises
    ------
    TypeError, ValueError
        For arguments that make no sense.
    MeanfieldError
        If a point fails, with its parameters; if workers were lost, or no scheduler answers.
    CheckpointError
        If the store is damaged, of another sweep, or in use.
    """
    grid, work = Grid.of(parameters, replicas), _work_of(f)
    points = grid.points()
    try:
        work.check(points[0])
    except ConfigError as error:
        raise ConfigError(f"f: {error}" if isinstance(f, Mapping) else f"{error}") from error
    wanted = "a seed, as f draws random numbers"
    fitting("rng", rng, wanted, rng is not None or RNG in grid.axes or not work.needs_rng)
    if replicas is not None:
        draws = rng is not None and work.takes_rng and RNG not in grid.axes
        fitting("replicas", replicas, "left out, as f takes no rng, or none is given", draws)
    batches = work.batches(points, batch, rng)
    axes = [*grid.axes.items()]
    identity = {"work": work, "axes": axes, "replicas": replicas, "rng": rng, "batch": batch}
    path = None if store is None else path_of("store", store).absolute()
    with Store(path, identity) as kept:
        run = _Sweep(grid, work, batches, rng, kept, errors)
        status = run.through(executor, progress)
    data = dataset_of(named := _axes(grid), run.found(), errors == "keep")
    data.attrs = {"status": status, "axes": [*named], "f": _named(f)}
    data.attrs["versions"] = json.dumps(versions())
    if rng is not None:
        data.attrs["rng"] = rng if rng < 2**63 else str(rng)
    return data


def _work_of(f: Any) -> Work:
    if isinstance(f, Work):
        return f
    if isinstance(f, Mapping):
        from ..app.configured_runs import Runs

        return Runs(dict(f))
    wanted = "a function of the parameters, or a configuration as a dictionary"
    return Function(fitting("f", f, wanted, callable(f), TypeError))


def _named(f: Any) -> str:
    return getattr(f, "__qualname__", type(f).__qualname__)


def _axes(grid: Grid) -> dict[str, Any]:
    copies = {} if grid.replicas is None else {REPLICA: range(grid.replicas)}
    return {**grid.axes, **copies}


class _Sweep:
    """One call of `sweep`: what is known so far, by the numbers of batches."""

    def __init__(
        self,
        grid: Grid,
        work: Work,
        batches: list[list[Point]],
        seed: int | None,
        store: Store,
        errors: str,
    ):
        self._grid, self._work, self._batches, self._seed = grid, work, batches, seed
        self._store, self._errors = store, errors
        self._outcomes = dict(map(of_bytes, store.payloads))
        if errors == "raise":
            self._outcomes = {n: all_ for n, all_ in self._outcomes.items() if not _failed(all_)}

    def through(self, executor: Any, progress: bool | None) -> str:
        """Run what is left; "finished", or "interrupted"."""
        left = [n for n in range(len(self._batches)) if n not in self._outcomes]
        jobs = ((Job(self._work, self._batches[n], self._seed), n) for n in left)
        failures: list[MeanfieldError] = []
        with opened(executor) as workers, Progress("sweep", progress, self._part()) as bar:
            with Interruption() as interruption:

                def stop() -> bool:
                    return interruption.requested or bool(failures)

                # First no points, alone: what jobs import is not imported by many at the same time.
                first = [(Job(self._work, [], self._seed), n) for n in left[:1]]
                for number, future in completed(workers, first, stop):
                    if error := future.exception():
                        failures.append(self._lost(number, error))
                for number, future in completed(workers, jobs, stop):
                    self._enter(number, future, failures)
                    bar.show(self._part(), f"sweep {len(self._outcomes)}/{len(self._batches)}")
        if failures:
            raise failures[0]
        return "finished" if len(self._outcomes) == len(self._batches) else "interrupted"

    def found(self) -> list[tuple[tuple[int, ...], Outcome]]:
        """What came of every point that was run, by its place."""
        axes = len(self._grid.axes) + (self._grid.replicas is not None)
        return [
            (point.place[:axes], outcome)
            for number, outcomes in sorted(self._outcomes.items())
            for point, outcome in zip(self._batches[number], outcomes, strict=True)
        ]

    def _part(self) -> float:
        return len(self._outcomes) / len(self._batches)

    def _enter(self, number: int, future: Future, failures: list[MeanfieldError]) -> None:
        """Keep what came of a batch."""
        try:
            payload = future.result()
        except KeyboardInterrupt:
            return
        except BaseException as error:  # of the executor: what points raise is an outcome
            failures.append(self._lost(number, error))
            return
        self._store.add(payload)
        _, outcomes = of_bytes(payload)
        self._outcomes[number] = outcomes
        if self._errors == "raise" and (outcome := _failed(outcomes)):
            failures.append(self._refused(number, outcome))

    def _lost(self, number: int, error: BaseException) -> MeanfieldError:
        where = self._grid.in_words(self._batches[number][0])
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        if isinstance(error, CancelledError | BrokenExecutor):
            advice = "A worker or the scheduler was lost: start the sweep again"
            advice += "." if self._store.path is None else f", with what {self._store.path} has."
        else:
            advice = "f, its parameters and what it returns have to be such that pickle takes them."
        lost = MeanfieldError(f"The point {where} was not run: {text}. {advice}")
        lost.__cause__ = error if isinstance(error, Exception) else None
        return lost

    def _refused(self, number: int, outcome: Outcome) -> MeanfieldError:
        where = self._grid.in_words(self._batches[number][0])
        error = MeanfieldError(
            f'The point {where} failed: {outcome.error} (errors="keep" goes on without it.)'
        )
        error.add_note(outcome.where)
        return error


def _failed(outcomes: list[Outcome]) -> Outcome | None:
    return next((outcome for outcome in outcomes if outcome.error), None)
