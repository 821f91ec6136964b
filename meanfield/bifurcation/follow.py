"""The branch of one stationary state, lazily."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.checks import boolean, positive, range_of, whole_number
from ..lowlevel.blas import one_blas_thread
from ..models import SA, USA
from .curve import Curve
from .growing import Growth
from .path import path_of
from .state import StationaryState, state_at
from .tracing import Branch

__all__ = ["follow"]


def follow(
    state: StationaryState,
    *,
    kappa: tuple[float, float] | None = None,
    beta: tuple[float, float] | None = None,
    decreasing: bool = False,
    max_step: float = 0.1,
    max_points: int = 500,
) -> Iterator[StationaryState]:
    """Follow the branch of one state, lazily, through its folds.

    Parameters
    ----------
    state : StationaryState
        A converged one.
    kappa, beta : (float, float)
        The range of one of them, which changes; the other one stays. beta needs USA or SA.
    decreasing : bool
        Whether the parameter falls at first.
    max_step : float
        Longest step in sqrt(2) times the Legendre moments, and log kappa or beta.
    max_points : int

    Returns
    -------
    iterator of StationaryState
        One after the other, `state` first; the last one may lie just outside the range. The end
        of the branch, its return to the uniform state or to its start ends the iteration. From an
        exact bifurcation the uniform state itself is followed; `branches` takes the others.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    """
    if not isinstance(state, StationaryState) or not state.converged:
        raise TypeError(f"follow needs a converged StationaryState; got {state!r}.")
    if (kappa is None) == (beta is None):
        raise TypeError("follow needs the range of either kappa or beta.")
    positive(max_step=max_step)
    most = whole_number("follow needs max_points", "max_points", max_points)
    boolean("decreasing", decreasing)
    drift: Any = state.model.drift
    if beta is not None and not isinstance(drift, USA | SA):
        raise ValueError(f"Only USA and SA have a beta to follow; got {drift!r}.")
    span = range_of("kappa", kappa) if kappa is not None else range_of("beta", beta)
    changing = drift if kappa is not None else type(drift)
    path = path_of(changing, state.equation.basis, state.kappa)
    start = state.kappa if kappa is not None else float(drift.beta)
    if not span[0] <= start <= span[1]:
        raise ValueError(f"The state is at {start:g}, outside the range {span}.")
    row = np.append(np.zeros(len(state.moments)), -1.0 if decreasing else 1.0)
    growth = Growth(path, span, most, 0, max_step)
    curve, z = Curve(path, max_step), np.append(state.moments, path.coordinate(start))
    return _states(state, growth.onward(curve, z, row))


def _states(state: StationaryState, branches: Iterator[Branch]) -> Iterator[StationaryState]:
    """Each point as a state; BLAS has its threads back while the caller has the turn."""
    while True:
        with one_blas_thread():
            branch = next(branches, None)
        if branch is None:
            return
        point = branch.points[-1]
        yield state_at(branch.curve.path, point.z, state.density.geometry, state.axis)
