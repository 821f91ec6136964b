"""Propagation of chaos: how far n tokens are from the mean field, and how fast that vanishes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.checks import boolean, whole_number
from ..models.transformer import Transformer
from ..solving.arguments import Keeping
from ..spaces.density import Density
from .bar import Bar
from .checking import (
    check_names,
    check_problem,
    checked_dt,
    checked_replicas,
    checked_seed,
    checked_sizes,
    checked_times,
)
from .experiment import Experiment
from .law import law_of
from .ledger import Ledger
from .measures import Measured, distances_of, functionals_of
from .result import Study
from .running import run_batches

__all__ = ["propagation_of_chaos"]


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
    same start and noise (`MeanField`), and the distances of independent samples of the density:
    the floor, below which only tokens that repel each other are.

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
        dt^2; it has to be small beside 1/n. Refused without noise.
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
        Do only what the checkpoint, if any, does not have. Own callables are known by their names.
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
    check_problem(model, mu0)
    chosen, at, replicas = checked_sizes(sizes), checked_times(times), checked_replicas(replicas)
    threads = whole_number("propagation_of_chaos needs threads", "threads", threads)
    keeping = Keeping.checked(checkpoint, checkpoint_every, resume)
    progress = None if progress is None else boolean("progress", progress)
    seed, dt = checked_seed(rng), checked_dt(dt, model)
    coupling, floor = boolean("coupling", coupling), boolean("floor", floor)
    measured = distances_of(distances, mu0.geometry), functionals_of(functionals, mu0.geometry)
    check_names(*measured)
    law = law_of(model, mu0, at, coupling, rtol)
    experiment = Experiment(model, mu0, law, at, *measured, coupling, floor, dt, seed)
    experiment.tried()
    own = [isinstance(given, Mapping) for given in (distances, functionals)]
    identity = experiment.describe() | {"sizes": chosen, "replicas": replicas, "own": own}
    ledger = Ledger(chosen, len(at), replicas)
    return _done(experiment, ledger, identity, keeping, threads, progress)


def _done(
    experiment: Experiment, ledger: Ledger, identity: dict, keeping, threads: int, progress
) -> Study:
    """All batches, those of the checkpoint among them."""
    keeper = None
    if keeping.path is not None:
        from ..solving.checkpoint import Keeper

        keeper = Keeper(keeping.path, identity, keeping.every, keeping.resume)
        if keeping.resume and keeping.path.exists():
            ledger.restore(keeper.load())
    with Bar(ledger.batches, progress) as bar:
        bar.advance(*(ledger.batches[number] for number in np.nonzero(ledger.done)[0]))
        status = run_batches(experiment, ledger, keeper, threads, bar)
    return Study.of(experiment, identity["sizes"], ledger.tables, status)
