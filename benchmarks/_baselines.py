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
from _equation import KAPPA, T_END, RealForm, initial, velocity_multiplier
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
    """A py-pde class on 2 degree points with spectral derivatives.

    Its own adaptive Runge-Kutta solver, and its access to scipy's LSODA with the analytic
    Jacobian; without it, that solver needs minutes.
    """
    import pde

    points = 2 * degree
    grid = pde.CartesianGrid([[0, 2 * np.pi]], points, periodic=True)
    theta = grid.axes_coords[0]
    k = np.arange(degree + 1)
    phase = np.exp(-1j * k * theta[0]) / points  # its grid starts half a cell from 0

    class Attention(pde.PDEBase):
        def __init__(self):
            super().__init__()
            self.velocity = 1j * velocity_multiplier(degree)
            self.derivative = 1j * k
            self.velocity[-1] = self.derivative[-1] = 0  # the Nyquist mode has none
            self.laplacian = -(k**2) / KAPPA
            modes = np.fft.rfft(np.eye(points), axis=0)
            tables = self.velocity, self.derivative, self.laplacian
            self.matrices = [np.fft.irfft(a[:, None] * modes, axis=0) for a in tables]

        def evolution_rate(self, state, t=0):
            u_hat = np.fft.rfft(state.data)
            v = np.fft.irfft(self.velocity * u_hat)
            rate = state.copy()
            rate_hat = self.laplacian * u_hat - self.derivative * np.fft.rfft(state.data * v)
            rate.data = np.fft.irfft(rate_hat)
            return rate

        def jacobian(self, _t, u):
            velocity, derivative, laplacian = self.matrices
            return laplacian - derivative * (velocity @ u) - (derivative * u) @ velocity

    equation = Attention()
    start = pde.ScalarField(grid, initial(theta))

    def prepare(options):
        def solve() -> np.ndarray:
            final = equation.solve(
                start, t_range=T_END, dt=1e-4, tracker=None, backend="numpy", **options
            )
            return np.fft.rfft(final.data) * phase

        return solve

    def own(tolerance):
        return prepare({"solver": "runge-kutta", "adaptive": True, "tolerance": tolerance})

    def lsoda(rtol):
        tolerances = {"rtol": rtol, "atol": rtol / 10, "jac": equation.jacobian}
        return prepare({"solver": "scipy", "method": "LSODA", **tolerances})

    yield Solver("py-pde Runge-Kutta", "rtol", (1e-5, 1e-6, 1e-7, 1e-8), own)
    yield Solver(
        "py-pde with scipy LSODA, analytic Jacobian", "rtol", (1e-6, 1e-7, 1e-8, 1e-9), lsoda
    )


def dedalus_solvers(degree: int) -> Iterator[Solver]:
    """Dedalus 3 on a RealFourier basis of 2 degree modes, dealias 3/2, RK443.

    Of its schemes this one is the fastest to 1e-8: the multistep ones need steps near 1e-3 to
    be stable.
    """
    import logging

    import dedalus.public as d3
    from dedalus.core.operators import GeneralFunction

    logging.disable(logging.INFO)  # its solvers announce every run
    x = d3.Coordinate("x")
    distributor = d3.Distributor(x, dtype=np.float64)
    basis = d3.RealFourier(x, size=2 * degree, bounds=(0, 2 * np.pi), dealias=3 / 2)
    multiplier = velocity_multiplier(degree - 1)

    def attend(density):
        """Coefficients of v; those of mu are pairs of cos and -sin, that is 2 Re c, 2 Im c."""
        v = np.empty_like(density.data)
        v[0::2] = -multiplier * density.data[1::2]
        v[1::2] = multiplier * density.data[0::2]
        return v

    def prepare(steps: int):
        mu = distributor.Field(name="mu", bases=basis)
        v = GeneralFunction(distributor, mu.domain, (), np.float64, "c", attend, args=[mu])

        def derivative(field):
            return d3.Differentiate(field, x)

        problem = d3.IVP([mu])
        diffusion = derivative(derivative(mu)) / KAPPA
        problem.add_equation((d3.TimeDerivative(mu) - diffusion, -derivative(mu * v)))
        solver = problem.build_solver(d3.RK443)
        theta = distributor.local_grid(basis)

        def solve() -> np.ndarray:
            mu.change_scales(1)
            mu["g"] = initial(theta)
            for _ in range(int(steps)):
                solver.step(T_END / steps)
            pairs = mu["c"]
            coefficients = (pairs[0::2] + 1j * pairs[1::2]) / 2
            coefficients[0] = pairs[0]
            return coefficients

        return solve

    yield Solver("Dedalus RK443", "steps", (1000, 2000, 4000, 8000), prepare)


BASELINES = (
    ("scipy", scipy_solvers),
    ("exponax", exponax_solvers),
    ("py-pde", py_pde_solvers),
    ("Dedalus", dedalus_solvers),
)
