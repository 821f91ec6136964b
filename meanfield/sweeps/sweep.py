"""Sweeps: a function or configuration at all points of a grid, collected in a dataset."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from ..core.calls import checked_call
from ..core.checks import path_of, require
from ..core.errors import ConfigError
from ..core.forms import Index, Natural
from ..core.provided import CONFIGURED_RUNS
from ..results.provenance import versions
from .execution import run_points
from .outcomes import ERROR, REPLICA, dataset_of
from .points import RNG, Function, Grid, Work


@checked_call("f", "parameters", "store", "executor")
def sweep(
    f: Callable[..., Any] | Mapping[str, Any] | Work,
    parameters: Mapping[str, Any],
    *,
    replicas: Natural | None = None,
    rng: Index | None = None,
    store: str | Path | None = None,
    executor: Any = None,
    errors: Literal["raise", "keep"] = "raise",
    batch: Natural | None = None,
    progress: bool | None = None,
) -> Any:
    """Call a function, or run a configuration, at all points of a grid of parameters.

    The results do not depend on the executor, the number of workers, the order in which points
    end, or on interruptions and resumes.

    Parameters
    ----------
    f : callable, or dict
        A function of the parameters by name, and of ``rng`` if it has that argument. It returns a
        number, an array, a dictionary of these, an `xarray.Dataset`, or a `Solution`, of which the
        observables and the status are kept. Other processes must be able to import the function. Or
        a configuration of `meanfield solve`, as a dictionary of its tables.
    parameters : dict of str to sequence
        The values of every parameter: different numbers, texts or other objects. Parameters of a
        configuration are named by dotted keys such as "model.kappa".
    replicas : int, optional
        Number of independent runs of every point; they need `rng`.
    rng : int, optional
        The seed. Each point and replica has a separate generator, seeded by this seed and by a
        checksum of its parameters and the replica; so a sweep over other values, or in another
        order, gives the same numbers at common points. Runs of a configuration draw the seed of
        their noise and the seeds in [initial] from it.
    store : path, optional
        File to which the outcome of each point is written as soon as it is computed. If the file
        exists, only missing points are run, and failed ones unless errors are kept. The file may
        come from a sweep over other values or numbers of replicas, of the same function with the
        same `rng`.
    executor : optional
        Where to run points: by default in this process, one after the other; "processes" for one
        process per core; the address of a dask scheduler, ``"tcp://127.0.0.1:8786"``; a
        `dask.distributed.Client`; or any executor of `concurrent.futures`.
    errors : "raise" or "keep"
        "raise" ends the sweep at the first failed point, after those already running. "keep" sets
        failed points to nan and adds a variable "error" with the messages, "" at other points.
    batch : int, optional
        For a configuration: the largest number of points to solve at once as an ensemble. Such
        points may differ in parameters of the model that may be arrays, in numbers or seeds of the
        initial state, or in seeds. Results are bit-for-bit the same. By default up to 64, fewer
        for large systems, and at least four batches per worker. A point that fails or ends early
        is run again alone.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    xarray.Dataset
        Variables on the axes of the parameters and "replica"; results without a name are called
        "value". The attribute "status" is "finished" or, after Ctrl-C, "interrupted", with nan at
        points that were not run. `mf.Sweep(dataset).plot()` draws it.

    Raises
    ------
    TypeError, ValueError
        For invalid arguments.
    MeanfieldError
        If a point fails, with its parameters; if workers were lost, or no scheduler answers.
    CheckpointError
        If the store is damaged, of another sweep, or in use.
    """
    reserved = [ERROR] if errors == "keep" else []
    grid = Grid.of(parameters, replicas, reserved)
    expected = "a function of the parameters, or a configuration as a dictionary"
    require("f", f, expected, callable(f) or isinstance(f, Mapping | Work), TypeError)
    if isinstance(f, Mapping):
        work = CONFIGURED_RUNS["Runs"](dict(f))
    else:
        work = f if isinstance(f, Work) else Function(f)
    points = grid.points(work.contents)
    try:
        work.check(points[0])
    except ConfigError as error:
        raise ConfigError(f"f: {error}" if isinstance(f, Mapping) else f"{error}") from error
    expected = "a seed, as f draws random numbers"
    require("rng", rng, expected, rng is not None or RNG in grid.axes or not work.needs_rng)
    if replicas is not None:
        draws = rng is not None and work.takes_rng and RNG not in grid.axes
        require("replicas", replicas, "left out, as f takes no rng, or none is given", draws)
    outcomes, finished = run_points(
        work,
        points,
        seed=rng,
        store=None if store is None else path_of("store", store).absolute(),
        executor=executor,
        keep_errors=errors == "keep",
        batch=batch,
        progress=progress,
    )
    copies = {} if replicas is None else {REPLICA: range(replicas)}
    axes: dict[str, Any] = {**grid.axes, **copies}
    data = dataset_of(axes, outcomes, errors == "keep")
    status = "finished" if finished else "interrupted"
    data.attrs = {
        "status": status,
        "axes": [*axes],
        "f": getattr(f, "__qualname__", type(f).__qualname__),
    }
    data.attrs["versions"] = json.dumps(versions())
    if rng is not None:
        data.attrs["rng"] = rng if rng < 2**63 else str(rng)
    return data
