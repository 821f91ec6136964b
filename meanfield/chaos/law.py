"""The densities of a study, at outputs between which splines in time are accurate."""

import numpy as np

from ..core.errors import MeanfieldError
from ..models.transformer import Transformer
from ..results.solution import Solution
from ..solving import solve
from ..spaces.density import Density

__all__ = ["law_of"]

FIRST, ROUNDS = 64, 16
ACCURATE = 1e-7  # of coefficients half way between outputs, in H^-1
NEAR = 1e-9  # outputs closer than this, in parts of the last time, are one


def law_of(
    model: Transformer, start: Density, times: np.ndarray, field: bool, rtol: float
) -> Solution:
    """A run with outputs at `times`; for the `field` that coupled tokens follow, at more.

    Outputs are halved where the spline through them misses the density half way between two.

    Raises
    ------
    MeanfieldError
        If the run fails, or its outputs would be too many.
    KeyboardInterrupt
        After Ctrl-C.
    """
    end = float(times[-1])
    if not field:
        return _run(model, start, np.union1d([0.0], times), rtol)
    knots = _joined(times, np.linspace(0, end, FIRST + 1))
    for _ in range(ROUNDS):
        middles = (knots[1:] + knots[:-1]) / 2
        law = _run(model, start, np.union1d(knots, middles), rtol)
        bad = _misses(law, len(knots))
        if not bad.any():
            return law
        bad[:-1] |= bad[1:]  # a spline is not local
        bad[1:] |= bad[:-1]
        knots = np.union1d(knots, middles[bad])
    raise MeanfieldError(
        f"The density changes too fast for a field in time: {len(knots)} outputs up to t = "
        f"{end:g} do not resolve it. Ask for coupling=False, or for a shorter time."
    )


def _run(model: Transformer, start: Density, outputs: np.ndarray, rtol: float) -> Solution:
    law = solve(model, start, (0, float(outputs[-1])), t_eval=outputs, rtol=rtol, progress=False)
    if law.status == "interrupted":
        raise KeyboardInterrupt
    if not law.success:
        raise MeanfieldError(
            f"The densities of a study have to be followed to its last time, t = {outputs[-1]:g}; "
            f"their run ended early. {law.message}"
        )
    return law


def _joined(times: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Both, without the others that nearly are one of the times."""
    gaps = np.abs(others[:, None] - times).min(axis=1)
    return np.union1d(times, others[gaps > NEAR * times[-1]])


def _misses(law: Solution, knots: int) -> np.ndarray:
    """Whether the spline through every other output misses the one between, (knots - 1,)."""
    from scipy.interpolate import CubicSpline

    states = [state for state in law if isinstance(state, Density)]
    geometry = states[0].geometry
    degree = max(state.geometry.degree for state in states)
    values = np.stack([s.geometry.resample(s.coefficients, degree) for s in states])
    space = geometry.with_degree(degree)
    weights = space.parseval / np.maximum(-space.laplacian, 1.0)
    missed = CubicSpline(law.t[::2], values[::2])(law.t[1::2]) - values[1::2]
    return np.sqrt(np.abs(missed) ** 2 @ weights) > ACCURATE
