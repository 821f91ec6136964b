"""Propagation of chaos: how far n tokens are from the mean field, and how fast that vanishes."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.calls import checked_call
from ..core.checks import (
    check_memory,
    is_variable_name,
    is_whole,
    path_of,
    real_array,
    require,
    whole_number,
)
from ..core.errors import MeanfieldError
from ..core.forms import NATURAL, Many, Positive
from ..models.transformer import Transformer
from ..results.files import GROUP
from ..results.solution import Solution
from ..solving import solve
from ..solving.arguments import breaks_of
from ..spaces import Density
from ..sweeps.execution import run_points
from ..sweeps.outcomes import VALUE
from .experiment import Experiment, batches_of
from .measurements import (
    MEASUREMENTS,
    Functional,
    Measured,
    Measurements,
    chosen_of,
    measurements_on,
)
from .result import LAW_GROUP, Study

FIRST_INTERVALS, MAX_REFINEMENTS = 64, 16  # of the outputs between which a spline interpolates
FIELD_TOLERANCE = 1e-7  # of coefficients half way between outputs, in H^-1
TIME_RESOLUTION = 1e-9  # least distance between times, relative to the last one
MAX_SEED = 2**63  # the largest integer of a file
RESERVED_NAMES = (GROUP, LAW_GROUP, "n", "t", "replica", "coupling", "coupling up to rotation")


@checked_call("sizes", "times", "rng", "distances", "functionals", "store", "executor")
def propagation_of_chaos(
    model: Transformer,
    mu0: Density,
    sizes: Sequence[int],
    times: Sequence[float],
    replicas: int = 64,
    *,
    rng: int,
    dt: Positive | None = None,
    distances: Mapping[str, Measured] | Sequence[str] | None = None,
    functionals: Mapping[str, Functional] | None = None,
    coupling: bool = True,
    floor: bool = True,
    rtol: float = 1e-8,
    breaks: Sequence[float] = (),
    store: str | Path | None = None,
    executor: Any = None,
    progress: bool | None = None,
) -> Study:
    """Compare n tokens with their mean-field density, for several n.

    The density is solved once. For every n and every replica, n tokens start as independent samples
    of mu0. At each time a study measures the distances between tokens and density, functionals of
    both, and the distance of each token from the nonlinear process with the same start and noise
    (`MeanField`). The distances of independent samples of the density are the sampling floor; only
    tokens that repel each other can be closer.

    Parameters
    ----------
    model : Transformer
        A model that moves densities, without reaction (tokens keep their masses) and without common
        noise.
    mu0 : Density
        A single density on the circle, S^2 or a torus.
    sizes : sequence of int
        The numbers of tokens n, increasing, >= 2.
    times : sequence of float
        Increasing, >= 0, the last > 0; the run starts at 0.
    replicas : int
        Number of independent runs of every size, >= 2.
    rng : int
        The seed, >= 0. A study of fewer sizes or replicas gives the same numbers for these.
    dt : float, optional
        Time step of tokens with noise, by default as in `solve`. The bias is of order dt^2, which
        must be small compared with 1/n. Not allowed without noise.
    distances : sequence of str, or mapping of str to callable, optional
        Names, or functions (tokens, density) -> numbers of the shape of the replicas. On the
        circle "W1", "W2" and "H^-1" by default, also "W2 up to rotation" and "H^-1 up to
        rotation"; on S^2 "mmd" and "H^-2" up to degree 64 by default, on a torus up to |k_i| = 16,
        also "W1" and "W2" (by 4 n cells, at least 1000), which take about a second for each
        replica of 1024 tokens.
    functionals : mapping of str to callable, optional
        Functions state -> numbers, of tokens and of the density. By default the first coordinate of
        the mean and the squares of the moments m_1 and m_2 (on S^2 and a torus, of degree 1).
    coupling, floor : bool
        Whether to run the nonlinear process, and whether to draw the independent samples.
    rtol : float
        Accuracy of the density.
    breaks : sequence of float, optional
        Times that no step passes, of density and tokens, as in `solve`: jumps and kinks of
        functions of t in the model.
    store, executor : optional
        As for `sweep`, with batches of replicas as points: a file to which each batch is written as
        soon as it is finished, usable for studies of more sizes or replicas too; and where batches
        are run. The numbers depend on neither.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    Study
        After Ctrl-C its status is "interrupted", and missing values are nan.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    MeanfieldError
        For models that do not move densities; if a run of the density or of tokens fails; if
        workers were lost.
    CheckpointError
        If the store is damaged, belongs to another study, or is in use.

    References
    ----------
    Sznitman, Topics in propagation of chaos (1991); Delarue and Tse, arXiv:2104.14973, uniformly in
    time; Fournier and Guillin, Probab. Theory Relat. Fields 162 (2015), for independent samples.
    """
    measurements = _checked_problem(model, mu0)
    counts, t = list(Many(NATURAL).check("sizes", sizes)), _checked_times(times)
    fits = bool(counts) and counts[0] >= 2 and sorted(set(counts)) == counts
    require("sizes", counts, "increasing numbers of tokens >= 2", fits)
    replicas = whole_number("replicas", replicas, least=2)
    path = None if store is None else path_of("store", store).absolute()
    expected = "a whole number 0 <= rng < 2^63, the seed from which those of batches are derived"
    seed: Any = rng
    seed = int(require("rng", seed, expected, is_whole(seed) and 0 <= seed < MAX_SEED))
    expected = "left out, as steps are of noise and this model has none"
    require("dt", dt, expected, dt is None or model.noisy)
    functions = (
        chosen_of("distances", distances, measurements.distances, measurements.default),
        chosen_of("functionals", functionals, measurements.functionals, measurements.functionals),
    )
    _check_names(*functions)
    breaks = breaks_of(breaks, (0.0, t[-1]))
    law = _mean_field(model, mu0, t, coupling, rtol, breaks)
    experiment = Experiment(model, mu0, law, t, *functions, coupling, floor, dt, seed, breaks)
    experiment.try_measurements()
    count = len(experiment.names)
    purpose = f"replicas = {replicas} of {len(counts)} sizes at {len(t)} times"
    numbers = (2 * count, len(counts), len(t), replicas)
    check_memory(purpose, numbers, "replicas, sizes or times")
    batches = batches_of(counts, replicas)
    outcomes, finished = run_points(
        experiment,
        [batch.point for batch in batches],
        store=path,
        executor=executor,
        progress=progress,
        name=f"chaos: {', '.join(functions[0])}" if functions[0] else "chaos",
    )
    tables = np.full((count, len(counts), len(t), replicas), np.nan)
    for batch, outcome in zip(batches, outcomes, strict=True):
        if outcome is not None:
            measures = outcome.variables[VALUE].values
            tables[:, counts.index(batch.n), :, batch.replicas] = measures
    results = dict(zip(experiment.names, tables, strict=True))
    return Study.of(experiment, counts, results, "finished" if finished else "interrupted")


# The mean field -----------------------------------------------------------------------------


def _mean_field(
    model: Transformer,
    start: Density,
    times: np.ndarray,
    field: bool,
    rtol: float,
    breaks: tuple[float, ...],
) -> Solution:
    """The densities at `times`, and at more outputs if coupled tokens follow their `field`.

    Coupled tokens interpolate the field in time by a spline. Intervals between outputs are halved
    where the spline differs from the density at the midpoint.

    Raises
    ------
    MeanfieldError
        If the run fails, or would need too many outputs.
    KeyboardInterrupt
        After Ctrl-C.
    """
    end = float(times[-1])
    if not field:
        return _run_densities(model, start, np.union1d([0.0], times), rtol, breaks)
    evenly = np.linspace(0, end, FIRST_INTERVALS + 1)
    is_new = np.abs(evenly[:, None] - times).min(axis=1) > TIME_RESOLUTION * end
    knots = np.union1d(times, evenly[is_new])
    for _ in range(MAX_REFINEMENTS):
        middles = (knots[1:] + knots[:-1]) / 2
        law = _run_densities(model, start, np.union1d(knots, middles), rtol, breaks)
        coarse = _missed_by_spline(law)
        if not coarse.any():
            return law
        coarse[:-1] |= coarse[1:]  # neighbours too, as a spline is not local
        coarse[1:] |= coarse[:-1]
        knots = np.union1d(knots, middles[coarse])
    raise MeanfieldError(
        f"The density changes too fast for a field in time: {len(knots)} outputs up to t = "
        f"{end:g} do not resolve it. Ask for coupling=False, or for a shorter time."
    )


def _run_densities(
    model: Transformer, start: Density, t: np.ndarray, rtol: float, breaks: tuple[float, ...]
) -> Solution:
    """The densities at times t; MeanfieldError if the run ends early."""
    options: dict[str, Any] = {"rtol": rtol, "breaks": breaks, "progress": False}
    law = solve(model, start, (0, float(t[-1])), t_eval=t, **options)
    if law.status == "interrupted":
        raise KeyboardInterrupt
    if not law.success:
        raise MeanfieldError(
            f"A study needs the density up to its last time, t = {t[-1]:g}; its run ended "
            f"early. {law.message}"
        )
    return law


def _missed_by_spline(law: Solution) -> np.ndarray:
    """Mask of the outputs between, which the spline through every second output misses."""
    from scipy.interpolate import CubicSpline

    states: list[Any] = list(law)
    degree = max(state.space.degree for state in states)
    space = states[0].space.with_degree(degree)
    values = np.stack([state.resample(degree).coefficients for state in states])
    weights = space.parseval / np.maximum(-space.laplacian, 1.0)
    missed = CubicSpline(law.t[::2], values[::2])(law.t[1::2]) - values[1::2]
    return np.sqrt(np.abs(missed) ** 2 @ weights) > FIELD_TOLERANCE


# Arguments ----------------------------------------------------------------------------------


def _checked_problem(model: Any, mu0: Any) -> Measurements:
    """The measurements on the space of mu0; raises for models and densities of no study."""
    advice = "Or solve for Tokens and a Density with the same rng and dt."
    alone = model.common is None
    require("common", model.common, "left out, as the law is random under it", alone, advice=advice)
    expected, constant = "left out, as it changes masses of tokens", not model.reaction
    require("reaction", model.reaction, expected, constant, MeanfieldError)
    measurements, spaces = measurements_on(mu0.space), " or ".join(s.__name__ for s in MEASUREMENTS)
    single = measurements is not None and not mu0.shape and not model.shape
    require("mu0, model", (mu0, model), f"a single density on {spaces}, and a single model", single)
    return measurements  # type: ignore[return-value]


def _checked_times(times: Any) -> np.ndarray:
    """The times, which increase and are >= 0."""
    array = real_array("times", times)
    valid = array.ndim == 1 and array.size and np.isfinite(array).all() and array[0] >= 0
    fits = valid and array[-1] > 0 and (np.diff(array) > TIME_RESOLUTION * array[-1]).all()
    expected = "a list of increasing times >= 0, the last > 0, no two closer than 1e-9 of the last"
    require("times", times, expected, fits)
    return array


def _check_names(distances: Iterable[str], functionals: Iterable[str]) -> None:
    """Raise ValueError for names that are reserved or taken, or that a file cannot hold."""
    names = [*distances, *functionals]
    reserved = f"{', '.join(RESERVED_NAMES)}, 'floor of ...' and 'limit of ...'"
    expected = f"printable, different from each other and from {reserved}, without '/'"
    for i, name in enumerate(names):
        taken = name in RESERVED_NAMES or name.startswith(("floor of ", "limit of "))
        fits = not taken and name not in names[:i] and is_variable_name(name)
        require("Names of distances and functionals", name, expected, fits)
