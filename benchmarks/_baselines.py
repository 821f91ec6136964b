"""What a user would write today to solve the problem of `_equation.py`, each done well.

Every solver is a `Solver`: `prepare(setting)` does what may be done once (building matrices,
choosing steps) and returns a function that solves from 0 to T_END and returns the Fourier
coefficients. Its first call may compile; that call is not timed.

exponax and py-pde come with the [bench] extra. Dedalus needs MPI and an FFTW built with MPI,
which pip does not bring; with conda: `conda install -c conda-forge dedalus`, elsewhere
`MPI_PATH=... FFTW_PATH=... pip install --no-build-isolation dedalus` after installing numpy,
cython and mpi4py. What cannot be imported is left out, and said so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from _equation import T_END, RealForm
from scipy.integrate import solve_ivp

__all__ = ["BASELINES", "Solver", "available"]


@dataclass(frozen=True)
class Solver:
    """A way to solve the problem, over a range of settings from coarse to fine."""

    name: str
    kind: str  # of the settings: "rtol" or "steps"
    settings: tuple[float, ...]
    prepare: Callable[[float], Callable[[], np.ndarray]]


def available(degree: int) -> Iterator[Solver | str]:
    """The baselines with modes up to `degree`; for a missing package a line that says so."""
    for package, baseline in BASELINES:
        try:
            yield from baseline(degree)
        except ImportError as error:
            yield f"{package} is left out: {error}."


def scipy_solvers(degree: int) -> Iterator[Solver]:
    """The implicit methods of solve_ivp with the analytic Jacobian; atol = rtol / 100."""
    ranges = {
        "LSODA": (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10),
        "BDF": (1e-6, 1e-7, 1e-8, 1e-9, 1e-10),
        "Radau": (1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
    }
    form = RealForm(degree)
    start = form.start()

    def prepare(method: str, rtol: float):
        options = {"method": method, "jac": form.jacobian, "rtol": rtol, "atol": rtol / 100}

        def solve() -> np.ndarray:
            run = solve_ivp(form.slope, (0, T_END), start, t_eval=[T_END], **options)
            return form.coefficients(run.y[:, -1])

        return solve

    for method, settings in ranges.items():
        yield Solver(
            f"scipy {method}, analytic Jacobian",
            "rtol",
            settings,
            lambda rtol, method=method: prepare(method, rtol),
        )


def exponax_solvers(degree: int) -> Iterator[Solver]:
    """exponax's ETDRK4, float64, fixed steps, with and without dealiasing."""
    from _exponax import VARIANTS, prepare

    settings = (600, 800, 1000, 1200, 1600, 2400)
    for name, (points_per_degree, dealiasing) in VARIANTS.items():
        yield Solver(
            f"exponax ETDRK4, {name}",
            "steps",
            settings,
            lambda steps, points=points_per_degree * degree, dealiasing=dealiasing: prepare(
                points, dealiasing, steps
            ),
        )


def py_pde_solvers(degree: int) -> Iterator[Solver]:
    """py-pde's own adaptive Runge-Kutta, and its access to scipy's LSODA with the Jacobian.

    Without the Jacobian, that solver needs minutes.
    """
    from _py_pde import prepare

    def own(tolerance):
        return prepare(degree, solver="runge-kutta", adaptive=True, tolerance=tolerance)

    def lsoda(rtol):
        return prepare(degree, solver="scipy", method="LSODA", rtol=rtol, atol=rtol / 10)

    yield Solver("py-pde Runge-Kutta", "rtol", (1e-5, 1e-6, 1e-7, 1e-8), own)
    name = "py-pde with scipy LSODA, analytic Jacobian"
    yield Solver(name, "rtol", (1e-6, 1e-7, 1e-8, 1e-9), lsoda)


def dedalus_solvers(degree: int) -> Iterator[Solver]:
    """Dedalus 3, RK443: of its schemes the fastest to 1e-8.

    The multistep ones need steps near 1e-3 to be stable.
    """
    from _dedalus import prepare

    settings = (1000, 2000, 4000, 8000)
    yield Solver("Dedalus RK443", "steps", settings, lambda steps: prepare(degree, steps))


BASELINES = (
    ("scipy", scipy_solvers),
    ("exponax", exponax_solvers),
    ("py-pde", py_pde_solvers),
    ("Dedalus", dedalus_solvers),
)
