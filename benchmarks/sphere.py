"""How fast `meanfield` is on the 2-sphere: tables in Markdown.

    python benchmarks/sphere.py [--parts steps precision] [--repeats 7]

steps      microseconds per step against the raw transforms of a step (the sums over degrees and the
           FFTs, as many and as large, and nothing else), degrees 31, 63, 127, 255
precision  error at t = 2 against run time on USA, beta = 4, kappa = 8, from
           1 + 0.3 z + 0.2 xy + 0.1 (x^2 - z^2), for meanfield's schemes and for scipy's DOP853 over
           a right-hand side by ducc0; all with the same degree, 31 and 63, against the exact
           solution of that Galerkin system; imports, compilation and planning excluded

Everything runs on one core. Times are the best of several repeats.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["DUCC0_NUM_THREADS"] = "1"

import numpy as np
from _ducc import DuccTransport
from _timing import fastest
from numba import njit
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.columns import ROW, radices, transform, twiddles
from meanfield.evolution import DensityEvolution
from meanfield.geometry import sphere_transport as transport
from meanfield.geometry.latitudes import aligned
from meanfield.lanes import LANES
from meanfield.legendre import BLOCK, analyse, synthesise
from meanfield.steppers import SCHEMES, Krogstad, Rules, Scheme, Stepper
from meanfield.steppers.advance import Clock

BETA, KAPPA, T_END = 4.0, 8.0, 2.0
MODEL = mf.Transformer(mf.USA(BETA), KAPPA)
PARTS = ("steps", "precision")


def initial(degree: int) -> mf.Density:
    """The density that all runs start from."""
    return mf.Sphere(degree).density(
        lambda x, y, z: 1 + 0.3 * z + 0.2 * x * y + 0.1 * (x**2 - z**2)
    )


# A step against its transforms -------------------------------------------------------------


def print_steps(repeats: int) -> None:
    print("\n## Microseconds per step\n")
    print("| degree | latitudes | longitudes | step | transforms | ratio |\n|" + " --- |" * 6)
    for degree in (31, 63, 127, 255):
        evolution = DensityEvolution(MODEL, mf.Sphere(degree))
        steps = max(4, 40_000 // degree**2)
        run = _steps(evolution, initial(degree), steps)
        floor = _floor(evolution.nonlinear, Krogstad.evaluations * steps)
        for function in (run, floor):
            function()
        step, raw = (1e6 * seconds / steps for seconds in fastest([run, floor], repeats))
        size = 2 * evolution.nonlinear.latitudes.x.size, evolution.nonlinear.length
        print(f"| {degree} | {size[0]} | {size[1]} | {step:.0f} | {raw:.0f} | {step / raw:.2f} |")


def _steps(evolution: DensityEvolution, density: mf.Density, steps: int) -> Callable[[], None]:
    stepper, dt = _stepper(Krogstad, evolution, density), 1e-6
    rules = Rules(0.0, 4.0, 0.0, 0.0, np.inf, 0.0, np.inf, 0.0)

    def run() -> None:
        clock = Clock(0.0, 0.0, 0.0, 0, 0, dt, 1.0)
        stepper.advance(clock, rules, steps * dt, steps)

    return run


def _stepper(scheme: Scheme, evolution: DensityEvolution, density: mf.Density) -> Stepper:
    return Stepper(
        scheme,
        evolution.linear,
        evolution.nonlinear,
        density.coefficients[None],
        metric=evolution.metric,
        parseval=density.geometry.parseval,
        degrees=density.geometry.degrees,
    )


def _floor(nonlinear: transport.SphereTransport, evaluations: int) -> Callable[[], None]:
    """The transforms of one evaluation, in a compiled loop: one full synthesis, two short ones,
    the FFTs, two analyses at once."""
    latitudes, n = nonlinear.latitudes, nonlinear.length
    degree, band, fields = (int(nonlinear._context[i]) for i in (0, 1, 4))
    pairs, rows = latitudes.pairs(0), aligned(8, latitudes.x.size)
    folded, found = aligned(4, pairs), aligned(pairs, 8)
    arrays = aligned(fields, n, ROW // 8), aligned(fields, n, ROW // 8), aligned(n, ROW // 8)
    factors = radices(n)
    plan = (*arrays, np.array(factors), twiddles(factors))

    def run() -> None:
        _repeat(latitudes.rules(), folded, found, rows, plan, degree, band, evaluations)

    return run


@njit(cache=True)
def _repeat(rules, folded, found, rows, plan, degree, band, evaluations):
    spectra, values, scratch, factors, table = plan
    for _ in range(evaluations):
        for m in range(degree + 1):
            synthesise(m, rules, folded, _steps_of(degree + 1 - m, BLOCK), rows[:4])
            if m <= band:
                synthesise(m, rules, folded, _steps_of(band + 2 - m, BLOCK), rows[:4])
                synthesise(m, rules, folded, _steps_of(band + 1 - m, BLOCK), rows[:4])
        for _ in range(0, rows.shape[1], LANES):
            for f in range(len(spectra)):
                source, target = spectra[f].ctypes.data, values[f].ctypes.data
                transform(source, target, scratch.ctypes.data, factors, table)
            for f in range(2):
                source, target = values[f + 1].ctypes.data, values[f].ctypes.data
                transform(source, target, scratch.ctypes.data, factors, table)
        for m in range(degree + 1):
            analyse(m, rules, rows, found, _steps_of(degree + 2 - m, 2))


@njit(cache=True)
def _steps_of(degrees, block):
    """Pairs of degrees, in whole blocks."""
    return (degrees + 2 * block - 1) // (2 * block) * block


# Work and precision ------------------------------------------------------------------------


def print_precision(repeats: int) -> None:
    for degree in (31, 63):
        density = initial(degree)
        evolution = DensityEvolution(MODEL, density.geometry)
        exact = _exact(evolution, density)
        print(f"\n## Work and precision, degree {degree}\n")
        print("| solver | rtol | error | ms |\n|" + " --- |" * 4)
        runs = {}
        for scheme in SCHEMES:
            for rtol in (1e-6, 1e-7, 1e-8):
                runs[f"meanfield, {scheme.name}", rtol] = _run(scheme, evolution, density, rtol)
        ducc = DuccTransport(degree, MODEL)
        for rtol in (1e-6, 1e-7, 1e-8):
            runs["scipy DOP853 over ducc0", rtol] = _scipy(ducc, density, rtol)
        errors = [np.linalg.norm(run() - exact) / np.linalg.norm(exact) for run in runs.values()]
        times = fastest(list(runs.values()), repeats, budget=20.0)
        for (name, rtol), error, seconds in zip(runs, errors, times, strict=True):
            print(f"| {name} | {rtol:.0e} | {error:.1e} | {1e3 * seconds:.0f} |")


def _run(scheme: Scheme, evolution, density, rtol: float) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        stepper = _stepper(scheme, evolution, density)
        rules = Rules(rtol, scheme.estimate_order + 1.0, 0.0, 0.0, np.inf, 0.0, np.inf, 0.0)
        stepper.advance(Clock(0.0, 0.0, 0.0, 0, 0, 1e-3, 1.0), rules, T_END, 10**7)
        return stepper.state[0]

    return run


def _scipy(ducc: DuccTransport, density, rtol: float) -> Callable[[], np.ndarray]:
    start = density.coefficients.copy().view(float)

    def run() -> np.ndarray:
        options = {"method": "DOP853", "rtol": rtol, "atol": rtol}
        return solve_ivp(ducc.slope, (0, T_END), start, **options).y[:, -1].view(complex)

    return run


def _exact(evolution: DensityEvolution, density: mf.Density) -> np.ndarray:
    """By DOP853 at 1e-12, over our right-hand side, which the tests check by another."""

    def slope(_t, y):
        c = y.view(complex)[None]
        return (evolution.linear * c + evolution.nonlinear(c)).ravel().view(float)

    start = density.coefficients.copy().view(float)
    run = solve_ivp(slope, (0, T_END), start, method="DOP853", rtol=1e-12, atol=1e-14)
    return run.y[:, -1].view(complex)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    print(f"machine {platform.processor() or platform.machine()}, numpy {np.__version__}")
    began = time.perf_counter()
    if "steps" in arguments.parts:
        print_steps(arguments.repeats)
    if "precision" in arguments.parts:
        print_precision(arguments.repeats)
    print(f"\n{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
