"""Propagation of chaos: how far n tokens are from the mean field, and how fast that vanishes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from ..checks import boolean, real_array, whole_number
from ..distances import mmd, sobolev_distance, wasserstein
from ..geometry import Circle, Sphere
from ..model import Transformer
from ..solution import Solution
from ..solving import solve
from ..states import Density
from .bar import Bar
from .batches import batches_of
from .experiment import Experiment
from .result import Study

__all__ = ["propagation_of_chaos"]

FINE = 200  # outputs of the densities, at least, for the field that coupled tokens follow
SOBOLEV = 64  # degree on S^2


def propagation_of_chaos(
    model: Transformer,
    mu0: Density,
    sizes: Sequence[int],
    times: Sequence[float],
    replicas: int = 64,
    *,
    rng: int,
    dt: float | None = None,
    distances: Mapping[str, Callable[[Any, Density], Any]] | None = None,
    functionals: Mapping[str, Callable[[Any], Any]] | None = None,
    coupling: bool = True,
    floor: bool = True,
    rtol: float = 1e-8,
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
    distances : mapping of str to callable, optional
        (tokens, density) -> numbers of the shape of the replicas. By default W1, W2 and H^-1 on the
        circle, mmd and H^-2 up to degree 64 on S^2.
    functionals : mapping of str to callable, optional
        state -> numbers, of tokens and of the density. By default the first coordinate of the mean
        and the squares of the moments m_1 and m_2 (of degree 1 on S^2).
    coupling, floor : bool
        Whether the nonlinear process and the independent samples are wanted.
    rtol : float
        Accuracy of the density.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Study

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    MeanfieldError
        For models that densities cannot follow.

    References
    ----------
    Sznitman, Topics in propagation of chaos (1991); Delarue and Tse, arXiv:2104.14973, uniformly in
    time; Fournier and Guillin, Probab. Theory Relat. Fields 162 (2015), for independent samples.
    """
    chosen, at = _checked(model, mu0, sizes, times)
    replicas = whole_number("propagation_of_chaos needs replicas", "replicas", replicas)
    if replicas < 2:
        raise ValueError("propagation_of_chaos needs replicas >= 2, for errors of means; got 1.")
    coupling, floor = boolean("coupling", coupling), boolean("floor", floor)
    law = _law(model, mu0, at, coupling, rtol)
    experiment = Experiment(
        model,
        mu0,
        law,
        at,
        _distances(mu0) if distances is None else dict(distances),
        _functionals(mu0) if functionals is None else dict(functionals),
        coupling,
        floor,
        dt,
        _seed(rng),
    )
    return _run(experiment, chosen, replicas, progress)


def _run(experiment: Experiment, sizes: list[int], replicas: int, progress) -> Study:
    """Every batch, put in its place."""
    shape = (len(sizes), len(experiment.times), replicas)
    found: dict[str, np.ndarray] = {}
    with Bar(sizes, replicas, progress) as bar:
        for batch in batches_of(sizes, replicas):
            for name, values in experiment.run(batch).items():
                table = found.setdefault(name, np.full(shape, np.nan))
                table[sizes.index(batch.n), :, batch.replicas] = values
            bar.advance(batch)
    return Study.of(experiment, sizes, found)


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
    return solve(model, mu0, (0, end), t_eval=outputs, rtol=rtol, progress=False)


def _distances(mu0: Density) -> dict[str, Callable]:
    if isinstance(mu0.geometry, Circle):
        return {
            "W1": partial(wasserstein, p=1),
            "W2": partial(wasserstein, p=2),
            "H^-1": sobolev_distance,
        }
    return {"mmd": mmd, "H^-2": partial(sobolev_distance, s=2, degree=SOBOLEV)}


def _functionals(mu0: Density) -> dict[str, Callable]:
    def square(state: Any) -> Any:
        return sum(
            state.expect(partial(_coordinate, c)) ** 2 for c in range(mu0.geometry.dimension)
        )

    found = {"x_1": lambda state: state.expect(partial(_coordinate, 0)), "|m_1|^2": square}
    if isinstance(mu0.geometry, Circle):
        found["|m_2|^2"] = lambda state: (
            state.expect(lambda x: x[..., 0] ** 2 - x[..., 1] ** 2) ** 2
            + state.expect(lambda x: 2 * x[..., 0] * x[..., 1]) ** 2
        )
    return found


def _coordinate(c: int, x: np.ndarray) -> np.ndarray:
    return x[..., c]
