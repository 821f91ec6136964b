"""The frames of a run: what is drawn at each of its times, in the order in which it is computed."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..app.tasks import Configuration
from ..dynamics.observables import measure
from ..models.transformer import Transformer
from ..results.solution import SUCCESSFUL
from ..spaces import Density
from ..spaces.characteristics import Characteristics
from ..states import Tokens

DRAWN = {2: (64, 512), 3: (32, 32)}  # lowest and highest degree that is drawn, by dimension
BANDWIDTH = 0.05  # in radians, with which nodes are drawn as a density
OF_NODES = 128  # the degree of that density
MEASURED_EVERY = {2: 1, 3: 5}  # how many frames: the energies of a density on S^2 are dear
LONGEST = 120.0  # seconds of computing


@dataclass(frozen=True)
class Frame:
    """What is drawn at one time.

    Attributes
    ----------
    index : int
        Among the output times of the run.
    t : float
    order : float
        The order parameter, the length of the mean.
    energy : float
        The free energy; nan where there is none, or where it was not measured.
    values : ndarray of float32
        Of a density on equally spaced angles of the circle, (n,), or on latitudes and longitudes of
        S^2, (n, m). Of tokens their positions (n, d).
    """

    index: int
    t: float
    order: float
    energy: float
    values: np.ndarray


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Attributes
    ----------
    complete : bool
    status, message : str
        As of `Solution`.
    seconds : float
    """

    complete: bool
    status: str
    message: str
    seconds: float


def drawn(state: Any) -> np.ndarray:
    """The `values` of a frame that shows a state; points with masses as a smoothed density."""
    if isinstance(state, Tokens):
        return state.x.astype(np.float32)
    low, high = DRAWN[state.dimension]
    if isinstance(state, Characteristics):
        state = _smoothed(state)
    degree = min(max(state.space.degree, low), high)
    return state.resample(degree).values.astype(np.float32)


def _smoothed(state: Characteristics) -> Density:
    """The nodes, spread out by the heat flow: a_l exp(-l (l + d - 2) h^2 / 2), bandwidth h."""
    space = state.space.with_degree(OF_NODES)
    heat = np.exp(-0.5 * BANDWIDTH**2 * space.degrees * (space.degrees + state.dimension - 2))
    return Density.computed(state.coefficients(OF_NODES) * heat, space)


def measured(model: Transformer, state: Any, t: float, fully: bool) -> tuple[float, float]:
    """The order parameter, and the free energy of a density if it is measured `fully`."""
    if isinstance(state, Tokens) or not fully:
        return float(np.linalg.norm(state.expect(lambda x: x))), math.nan
    found = measure(model, state, t)
    return float(found["order_parameter"]), float(found["free_energy"])


def play(
    config: Configuration, show: Callable[[Frame], None], stopped: Callable[[], bool]
) -> Ending:
    """Run a configuration, and show each of its frames as soon as it is there.

    Parameters
    ----------
    config : Configuration
        Of a run.
    show : callable
    stopped : callable
        Asked after every step: whether nobody wants the rest.

    Raises
    ------
    MeanfieldError
        What the package refuses.
    """
    state, model = config.begin(), config.tables["model"]
    table = config.tables["solve"]
    times = table["t_eval"].between(*table["t_span"])
    every, began = MEASURED_EVERY[state.dimension], time.perf_counter()
    late = False

    def present(index: int, t: float, state: Any) -> None:
        order, energy = measured(model, state, t, index % every == 0)
        show(Frame(index, t, order, energy, drawn(state)))

    def look(t: float, state: Any) -> bool:
        nonlocal late
        index = int(np.searchsorted(times, t))
        if index < len(times) and times[index] == t:
            present(index, t, state)
        late = time.perf_counter() - began > LONGEST
        return late or stopped()

    present(0, float(times[0]), state)
    run = config.run(out=None, progress=False, callback=look)
    message = run.message
    if late:
        message = f"Stopped at t = {run.t[-1]:g} after {LONGEST:g} seconds of computing."
    complete = run.status in SUCCESSFUL and not late
    return Ending(complete, run.status, message, time.perf_counter() - began)
