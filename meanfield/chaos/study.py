"""Propagation of chaos: how far n tokens are from the mean field, and how fast that vanishes."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import boolean, real_array, whole_number
from ..errors import MeanfieldError
from ..geometry import Circle, Sphere
from ..model import Transformer
from ..solution import Solution
from ..solving import solve
from ..solving.arguments import Keeping
from ..states import Density
from .bar import Bar
from .experiment import Experiment
from .ledger import Ledger
from .measures import Measured, distances_of, functionals_of
from .result import Study
from .running import run_batches

__all__ = ["propagation_of_chaos"]

FINE = 200  # outputs of the densities, at least, for the field that coupled tokens follow


def propagation_of_chaos(
    model: Transformer,
    mu0: Density,
    sizes: Sequence[int],
    times: Sequence[float],
    replicas: int = 64,
    *,
    rng: int,
    dt: float | None = None,
    distances: Mapping[str, Measured] | Sequence[str] | None = None,
    functionals: Mapping[str, Callable[[Any], Any]] | None = None,
    coupling: bool = True,
    floor: bool = True,
    rtol: float = 1e-8,
    threads: int = 1,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    progress: bool | None = None,
) -> Study:
    """Compare n tokens with the density that they tend to, for several n.

    The density is solved once; n tokens, independent at the start with the law mu0, are solved for
    every n and every replica. At each time: distances of the tokens from the density, what
    functionals of the two differ by, the distance of each token from the nonlinear process with the
    same start and noise (`MeanField`), and the distances of independent samples of the density,
    which no tokens can be expected to beat.

    Parameters
    ----------
    model : Transformer
        With a zonal drift and isotropic noise or none.
    mu0 : Density
        A single one on the circle or S^2.
    sizes : sequence of int
        The numbers of tokens n, >= 2.
    times : sequence of float
        Increasing, >= 0, the last > 0; the run starts at 0.
    replicas : int
        Independent runs of every size, >= 2.
    rng : int
        The seed, >= 0. A part of a study, of some sizes and the first replicas, has the same
        numbers.
    dt : float, optional
        Length of the steps of tokens with noise, by default that of `solve`. Its bias is of order
        dt^2; it has to be small beside 1/n.
    distances : sequence of str, or mapping of str to callable, optional
        Known names, or (tokens, density) -> numbers of the shape of the replicas. On the circle
        "W1", "W2", "H^-1" (the default), "W2 up to rotation", "H^-1 up to rotation"; on S^2 "mmd",
        "H^-2" up to degree 64 (the default), "W1", "W2" (by 4 n cells, at least 1000).
    functionals : mapping of str to callable, optional
        state -> numbers, of tokens and of the density. By default the first coordinate of the mean
        and the squares of the moments m_1 and m_2 (of degree 1 on S^2).
    coupling, floor : bool
        Whether the nonlinear process and the independent samples are wanted.
    rtol : float
        Accuracy of the density.
    threads : int
        Batches of replicas that are run at the same time; the numbers do not depend on it.
    checkpoint : path, optional
        Where finished batches are kept, rewritten every `checkpoint_every` seconds.
    resume : bool
        Do only what the checkpoint, if any, does not have. Callables are known by their names.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Study
        With status "interrupted", and nan for what is missing, after Ctrl-C.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    MeanfieldError
        For models that densities cannot follow; for a run of densities or of tokens that fails.
    CheckpointError
        If the checkpoint is damaged or belongs to another study.

    References
    ----------
    Sznitman, Topics in propagation of chaos (1991); Delarue and Tse, arXiv:2104.14973, uniformly in
    time; Fournier and Guillin, Probab. Theory Relat. Fields 162 (2015), for independent samples.
    """
    chosen, at = _checked(model, mu0, sizes, times)
    replicas = _several(replicas)
    threads = whole_number("propagation_of_chaos needs threads", "threads", threads)
    keeping = Keeping.checked(checkpoint, checkpoint_every, resume)
    progress = None if progress is None else boolean("progress", progress)
    coupling = boolean("coupling", coupling)
    measured = distances_of(distances, mu0.geometry), functionals_of(functionals, mu0.geometry)
    experiment = Experiment(
        model,
        mu0,
        _law(model, mu0, at, coupling, rtol),
        at,
        *measured,
        coupling,
        boolean("floor", floor),
        dt,
        _seed(rng),
    )
    return _done(experiment, chosen, replicas, keeping, threads, progress)


def _done(experiment: Experiment, sizes, replicas: int, keeping, threads: int, progress) -> Study:
    """All batches, those of the checkpoint among them."""
    ledger = Ledger(sizes, len(experiment.times), replicas)
    keeper = _keeper(keeping, experiment, ledger, sizes, replicas)
    with Bar(ledger.batches, progress) as bar:
        bar.advance(*(ledger.batches[number] for number in np.nonzero(ledger.done)[0]))
        status = run_batches(experiment, ledger, keeper, threads, bar)
    return Study.of(experiment, sizes, ledger.tables, status)


def _keeper(keeping: Keeping, experiment: Experiment, ledger: Ledger, sizes, replicas: int):
    """That of the checkpoint, whose content the ledger takes up; None without one."""
    if keeping.path is None:
        return None
    from ..storage.checkpoint import Keeper

    identity = experiment.describe() | {"sizes": sizes, "replicas": replicas}
    keeper = Keeper(keeping.path, identity, keeping.every, keeping.resume)
    if keeping.resume and keeping.path.exists():
        ledger.restore(keeper.load())
    return keeper


def _checked(model, mu0, sizes, times) -> tuple[list[int], np.ndarray]:
    if not isinstance(model, Transformer) or not isinstance(mu0, Density):
        raise TypeError(
            "propagation_of_chaos expects a Transformer and a Density; got "
            f"{type(model).__name__} and {type(mu0).__name__}."
        )
    if not isinstance(mu0.geometry, Circle | Sphere) or mu0.shape or model.shape:
        raise ValueError(
            "propagation_of_chaos expects a single density on the circle or S^2 and a single "
            f"model; got {mu0!r} and {model!r}."
        )
    whole = [whole_number("sizes are whole numbers n", "n", n) for n in sizes]
    if not whole or min(whole) < 2 or sorted(set(whole)) != whole:
        raise ValueError(f"sizes are increasing numbers of tokens >= 2; got {list(sizes)}.")
    array = real_array("times", times)
    if (
        array.ndim != 1
        or not array.size
        or not (np.diff(array) > 0).all()
        or array[0] < 0
        or array[-1] <= 0
    ):
        raise ValueError(f"times are increasing and >= 0, the last > 0; got {times!r}.")
    return whole, array


def _several(replicas: Any) -> int:
    number = whole_number("propagation_of_chaos needs replicas", "replicas", replicas)
    if number < 2:
        raise ValueError("propagation_of_chaos needs replicas >= 2, for errors of means; got 1.")
    return number


def _seed(rng: Any) -> int:
    if isinstance(rng, bool) or not isinstance(rng, Integral) or rng < 0:
        raise ValueError(
            "propagation_of_chaos needs a seed, a whole number rng >= 0, from which batches have "
            f"theirs; got rng = {rng!r}."
        )
    return int(rng)


def _law(model: Transformer, mu0: Density, times: np.ndarray, fine: bool, rtol: float) -> Solution:
    """The densities at `times`, and in between as closely as coupled tokens need."""
    end = float(times[-1])
    outputs = np.union1d(times, np.linspace(0, end, FINE + 1) if fine else [0.0, end])
    law = solve(model, mu0, (0, end), t_eval=outputs, rtol=rtol, progress=False)
    if not law.success:
        raise MeanfieldError(f"The run of densities ended early: {law.message}")
    return law
