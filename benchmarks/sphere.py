"""How fast `meanfield` is on the 2-sphere: tables in Markdown.

    python benchmarks/sphere.py [--parts steps precision] [--degrees 31 63 127] [--repeats 7]
                                [--small]

steps      microseconds per step against the raw transforms of a step (the sums over degrees and the
           FFTs, as many and as large, and nothing else), degrees 31, 63, 127, 255
precision  error at t = 2 against run time on USA, beta = 4, kappa = 8, from
           1 + 0.3 z + 0.2 xy + 0.1 (x^2 - z^2), for meanfield's schemes, for scipy's DOP853 over
           a right-hand side by ducc0, and for Dedalus; all with the same degree, against the exact
           solution of that Galerkin system; imports, compilation and planning excluded

Everything runs on one core. Times are the best of several repeats; a run of more than 5 seconds
is not repeated. With Dedalus, all takes about six minutes.
"""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["DUCC0_NUM_THREADS"] = "1"

import numpy as np
from _ducc import DuccTransport
from _small import parser, sized
from _sphere_equation import MODEL, T_END, exact, relative_error, start
from _sphere_floor import transforms
from _timing import fastest
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.dynamics import DensityEvolution
from meanfield.steppers import SCHEMES, Krogstad, Rules, Scheme, Stepper
from meanfield.steppers.clock import Clock

PARTS = ("steps", "precision")
TOLERANCES = sized((1e-6, 1e-7, 1e-8), (1e-6,))
LONG = 5.0  # seconds; runs that take longer are not repeated
Run = Callable[[], np.ndarray]


# A step against its transforms -------------------------------------------------------------


def print_steps(repeats: int) -> None:
    print("\n## Microseconds per step\n")
    print("| degree | latitudes | longitudes | step | transforms | ratio |\n|" + " --- |" * 6)
    for degree in sized((31, 63, 127, 255), (31,)):
        evolution = DensityEvolution(MODEL, mf.Sphere(degree))
        steps = max(1, 8000 // degree**2)
        run = _steps(evolution, start(degree), steps)
        floor = transforms(evolution.nonlinear, Krogstad.evaluations * steps)
        for function in (run, floor):
            function()
        step, raw = (1e6 * seconds / steps for seconds in fastest([run, floor], 20 * repeats))
        size = 2 * evolution.nonlinear.latitudes.x.size, evolution.nonlinear.length
        print(f"| {degree} | {size[0]} | {size[1]} | {step:.0f} | {raw:.0f} | {step / raw:.2f} |")


def _steps(evolution: DensityEvolution, density: mf.Density, steps: int) -> Callable[[], None]:
    stepper, dt = _stepper(Krogstad, evolution, density), 1e-6
    rules = Rules(0.0, 4.0, 0.0, np.inf, 0.0, np.inf, 0.0)

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
        parseval=density.space.parseval,
        degrees=density.space.degrees,
    )


# Work and precision ------------------------------------------------------------------------


def print_precision(degrees: list[int], repeats: int) -> None:
    missing = _missing()
    for degree in degrees:
        reference = exact(degree)
        print(f"\n## Work and precision, degree {degree}\n")
        print("| solver | setting | error | ms |\n|" + " --- |" * 4)
        runs = [*_meanfield(degree), *_scipy(degree), *([] if missing else _dedalus(degree))]
        errors, seconds = _measure([run for _, _, run in runs], reference, repeats)
        for (name, setting, _), error, time_taken in zip(runs, errors, seconds, strict=True):
            print(f"| {name} | {setting} | {error:.1e} | {1e3 * time_taken:.0f} |")
    if missing:
        print(f"\n{missing}")


def _measure(runs: list[Run], reference: np.ndarray, repeats: int) -> tuple[list, list]:
    """Errors and seconds. The first run gives the error; where it is long, the time as well."""
    errors, seconds = [], []
    for run in runs:
        began = time.perf_counter()
        errors.append(relative_error(run(), reference))
        seconds.append(time.perf_counter() - began)
    short = [i for i, took in enumerate(seconds) if took <= LONG]
    for i, took in zip(short, fastest([runs[i] for i in short], repeats, 20.0), strict=True):
        seconds[i] = took
    return errors, seconds


def _meanfield(degree: int) -> Iterator[tuple[str, str, Run]]:
    density = start(degree)
    evolution = DensityEvolution(MODEL, density.space)
    for scheme in SCHEMES:
        for rtol in TOLERANCES:

            def run(scheme=scheme, rtol=rtol) -> np.ndarray:
                stepper = _stepper(scheme, evolution, density)
                order = scheme.estimate_order + 1.0
                rules = Rules(rtol, order, 0.0, np.inf, 0.0, np.inf, 0.0)
                stepper.advance(Clock(0.0, 0.0, 0.0, 0, 0, 1e-3, 1.0), rules, T_END, 10**7)
                return stepper.state[0]

            yield f"meanfield, {scheme.name}", f"rtol = {rtol:.0e}", run


def _scipy(degree: int) -> Iterator[tuple[str, str, Run]]:
    ducc, y0 = DuccTransport(degree, MODEL), start(degree).coefficients.copy().view(float)
    for rtol in TOLERANCES:

        def run(rtol=rtol) -> np.ndarray:
            options = {"method": "DOP853", "rtol": rtol, "atol": rtol}
            return solve_ivp(ducc.slope, (0, T_END), y0, **options).y[:, -1].view(complex)

        yield "scipy DOP853 over ducc0", f"rtol = {rtol:.0e}", run


def _dedalus(degree: int) -> Iterator[tuple[str, str, Run]]:
    from _dedalus_sphere import SCHEME, prepare, steps_to_reach_1e_8

    steps = sized(steps_to_reach_1e_8(degree), 50)
    yield f"Dedalus, {SCHEME}", f"{steps} steps", prepare(degree, steps)


def _missing() -> str:
    """What to say if Dedalus cannot be imported, else nothing."""
    try:
        import _dedalus_sphere  # noqa: F401
    except ImportError as error:
        return (
            f"Dedalus is not installed: {error}. It needs MPI and an FFTW built with it: on Debian "
            "apt install libopenmpi-dev libfftw3-dev libfftw3-mpi-dev; pip install numpy cython "
            "mpi4py; MPI_PATH=... FFTW_PATH=... pip install --no-build-isolation dedalus"
        )
    return ""


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options.add_argument("--degrees", nargs="+", type=int, default=sized([31, 63, 127], [31]))
    options.add_argument("--repeats", type=int, default=7)
    arguments = options.parse_args()
    print(f"machine {platform.processor() or platform.machine()}, numpy {np.__version__}")
    began = time.perf_counter()
    if "steps" in arguments.parts:
        print_steps(arguments.repeats)
    if "precision" in arguments.parts:
        print_precision(arguments.degrees, arguments.repeats)
    print(f"\n{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
