"""Frames of a run, one for each output time, shown as soon as they are computed."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import meanfield as mf

# Lowest and highest degree that is drawn, by dimension
DRAWN_DEGREES = {2: (64, 512), 3: (32, 32), 4: (32, 32)}
NODE_BANDWIDTH = 0.05  # radians by which characteristics are smoothed to be drawn as a density
NODE_DEGREE = 128  # degree of this density
MEASURED_EVERY = {2: 1, 3: 5, 4: 5}  # frames per measured energy, by dimension: beyond 2 costly
LONGEST_COMPUTING = 120.0  # seconds after which a run or a figure is stopped


@dataclass(frozen=True)
class Frame:
    """The data that are drawn at one output time.

    Attributes
    ----------
    index : int
        Index of t among the output times of the run.
    t : float
    order : float
        The order parameter, the length of the mean.
    energy : float
        The free energy; nan if there is none, as for tokens, or if it was not measured.
    values : ndarray of float32
        Values of a density on equally spaced angles of the circle, (n,), or on latitudes and
        longitudes of S^2, (n, m), or on both angles of the torus, (n^2,); or positions (n, d) of
        tokens.
    """

    index: int
    t: float
    order: float
    energy: float
    values: np.ndarray


def frame_values(state: Any) -> np.ndarray:
    """The `values` of a frame that shows a state; points with masses as a smoothed density."""
    if isinstance(state, mf.Tokens | mf.TorusTokens):
        return state.x.astype(np.float32)
    low, high = DRAWN_DEGREES[state.dimension]
    if isinstance(state, mf.Characteristics):
        state = _smoothed(state)
    degree = min(max(state.space.degree, low), high)
    return state.resample(degree).values.astype(np.float32)


def _smoothed(state: mf.Characteristics) -> mf.Density:
    """Characteristics smoothed by the heat flow: a_l exp(-l (l + d - 2) h^2 / 2), bandwidth h."""
    space = state.space.with_degree(NODE_DEGREE)
    heat = np.exp(-0.5 * NODE_BANDWIDTH**2 * space.degrees * (space.degrees + state.dimension - 2))
    return mf.Density.computed(state.coefficients(NODE_DEGREE) * heat, space)


def quantities(model: mf.Transformer, state: Any, t: float, fully: bool) -> tuple[float, float]:
    """The order parameter, and for a density with `fully` the free energy; otherwise nan."""
    if fully and isinstance(state, mf.Density | mf.Characteristics):
        values = mf.measure(model, state, t)
        return float(values["order_parameter"]), float(values["free_energy"])
    circles = 2 if state.dimension == 4 else 1
    return float(np.linalg.norm(state.expect(lambda x: x)) / math.sqrt(circles)), math.nan


def play(
    config: mf.Configuration, show: Callable[[Frame], None], stopped: Callable[[], bool]
) -> dict[str, Any]:
    """Run a configuration, and show each frame as soon as it is computed.

    Parameters
    ----------
    config : Configuration
        Configuration of a run.
    show : callable
        Called with each frame.
    stopped : callable
        Called after every step; if it returns True, the run ends.

    Returns
    -------
    dict
        Whether the run is "complete", its "status" and "message", as of a `Solution`, and the
        "seconds" of computing.

    Raises
    ------
    MeanfieldError
        For runs that the package refuses.
    """
    state, model = config.begin(), config.tables["model"]
    table = config.tables["solve"]
    times = table["t_eval"].between(*table["t_span"])
    interval, began = MEASURED_EVERY[state.dimension], time.perf_counter()
    timed_out = False

    def present(index: int, t: float, state: Any) -> None:
        order, energy = quantities(model, state, t, index % interval == 0)
        show(Frame(index, t, order, energy, frame_values(state)))

    def look(t: float, state: Any) -> bool:
        nonlocal timed_out
        index = int(np.searchsorted(times, t))
        if index < len(times) and times[index] == t:
            present(index, t, state)
        timed_out = time.perf_counter() - began > LONGEST_COMPUTING
        return timed_out or stopped()

    present(0, float(times[0]), state)
    run = config.run(out=None, progress=False, callback=look)
    message = run.message
    if timed_out:
        message = f"Stopped at t = {run.t[-1]:g} after {LONGEST_COMPUTING:g} seconds of computing."
    seconds, complete = time.perf_counter() - began, run.success and not timed_out
    return {"complete": complete, "status": run.status, "message": message, "seconds": seconds}
