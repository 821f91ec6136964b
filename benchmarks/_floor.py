"""Seconds per time step against the raw transforms: as many FFTs, as long, and nothing else."""

import time
from collections.abc import Callable

import numpy as np
import pyfftw
from _equation import BETA, KAPPA, initial
from _small import sized
from _timing import fastest
from numba import njit

import meanfield as mf
from meanfield.dynamics import DensityEvolution
from meanfield.lowlevel.callbacks import call
from meanfield.lowlevel.fourier import RealTransform
from meanfield.steppers import Krogstad

__all__ = ["CASES", "step_table"]

WHOLE = ((64, 1), (128, 1), (512, 1), (4096, 1), (128, 64))
CASES = sized(WHOLE, ((16, 1), (16, 3)))  # (degree, members)
DT = 1e-6  # small, to stay near the initial density; the cost of a step does not depend on it


def step_table(repeats: int) -> list[dict[str, float]]:
    """One row per case: microseconds per step and of its transforms, under both kinds of plan.

    The transforms run in a compiled loop on plans and buffers like those of the package. Plans
    by FFTW_ESTIMATE are what it uses; FFTW_MEASURE takes longer to plan and depends on timings,
    so that the last bits of a result may differ from process to process.
    """
    return [_row(degree, members, repeats) for degree, members in CASES]


def _row(degree: int, members: int, repeats: int) -> dict[str, float]:
    model = mf.Transformer(mf.USA(beta=BETA), kappa=KAPPA)
    density = mf.Circle(degree).density(initial)
    density = density if members == 1 else mf.Density.stack([density] * members)
    transport = DensityEvolution(model, density.space, density.shape).nonlinear
    steps = max(20, int(sized(2e6, 0) / (degree * members)))
    pairs = steps * Krogstad.evaluations * members
    row = {"degree": degree, "members": members, "points": transport.length}
    runs = {"step": lambda: _steps(model, density, steps)}
    for plan in ("estimate", "measure"):  # in this order: what is measured, FFTW remembers
        began = time.perf_counter()
        transform = RealTransform(
            transport.length, transport.transforms - 1, measure=plan == "measure"
        )
        row[f"{plan}_planning_ms"] = 1e3 * (time.perf_counter() - began)
        runs[plan] = _transforms(transform, pairs)
    pyfftw.forget_wisdom()
    for run in runs.values():
        run()
    for name, seconds in zip(runs, fastest(list(runs.values()), repeats), strict=True):
        row[f"{name}_us"] = 1e6 * seconds / steps
    return row


def _steps(model: mf.Transformer, density: mf.Density, steps: int) -> None:
    degree, end = density.space.degree, steps * DT
    fixed = {"dt": DT, "min_degree": degree, "max_degree": degree}
    run = mf.solve(model, density, (0, end), t_eval=[end], progress=False, **fixed)
    taken = np.asarray(run.stats["steps"])  # by member
    if np.abs(taken - steps).max() > 1:  # rounding of the time may ask for one more
        raise RuntimeError(f"expected {steps} steps; {taken} taken. {run.message}")


def _transforms(transform: RealTransform, count: int) -> Callable[[], None]:
    """A run of `count` inverse and forward transforms, of zeros, so that nothing overflows."""
    transform.spectrum[:], transform.values[:] = 0, 0
    buffers = transform.spectrum.ctypes.data, transform.values.ctypes.data

    def run() -> None:
        _repeat(*transform.inverse, *transform.forward, *buffers, count)
        assert not transform.values.any()  # also keeps the buffers alive

    return run


@njit(cache=True)
def _repeat(inverse, inverse_plan, forward, forward_plan, spectrum, values, count):
    for _ in range(count):
        call(inverse, inverse_plan, spectrum, values)
        call(forward, forward_plan, values, spectrum)
