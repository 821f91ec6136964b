"""The benchmark's problem on the 2-sphere in Dedalus 3: one SphereBasis, dealias 3/2.

Its Galerkin system is ours: real densities with harmonics up to the same degree, products of
two without aliases. W * mu is exact too, by multipliers on its coefficients; the noise is
implicit, the transport explicit. Of its schemes SBDF3 is the fastest to 1e-8: with uniform
steps, its start by lower orders limits it to second order, but a step costs one evaluation. At
degree 31 SBDF4 takes as long and RK443 twice as long, while SBDF2 and CNAB2 are at 8e-7 and 5e-7
after 4800 steps.
"""

import logging
from collections.abc import Callable

import dedalus.public as d3
import numpy as np
from _ducc import DuccTransport
from _sphere_equation import MODEL, T_END, initial
from dedalus.core.operators import GeneralFunction

__all__ = ["SCHEME", "prepare", "steps_to_reach_1e_8"]

SCHEME = "SBDF3"

logging.disable(logging.INFO)  # its solvers announce every run


def steps_to_reach_1e_8(degree: int) -> int:
    """About the fewest, found by trying."""
    return 5000 if degree < 63 else 4200


def prepare(degree: int, steps: int) -> Callable[[], np.ndarray]:
    """A function that runs the problem with fixed steps and returns our coefficients."""
    coordinates = d3.S2Coordinates("phi", "theta")
    distributor = d3.Distributor(coordinates, dtype=np.float64)
    shape = 2 * degree + 2, degree + 2  # of its degrees the highest is shape[1] - 2
    basis = d3.SphereBasis(coordinates, shape, radius=1, dealias=3 / 2, dtype=np.float64)
    mu = distributor.Field(name="mu", bases=basis)
    l = distributor.coeff_layout.local_group_arrays(mu.domain, scales=1)[1]
    multipliers = MODEL.drift.attraction(degree, 3)[l]
    potential = GeneralFunction(
        *(distributor, mu.domain, (), np.float64, "c"),
        lambda density: multipliers * density.data,
        args=[mu],
    )
    problem = d3.IVP([mu])
    noise = d3.Laplacian(mu) / MODEL.kappa
    problem.add_equation((d3.TimeDerivative(mu) - noise, -d3.div(mu * d3.grad(potential))))
    solver = problem.build_solver(getattr(d3, SCHEME))
    phi, theta = distributor.local_grids(basis)
    density = initial(np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta))

    def solve() -> np.ndarray:
        mu.change_scales(1)
        mu["g"] = density
        for _ in range(steps):
            solver.step(T_END / steps)
        mu.change_scales(1)
        return _coefficients(mu["g"], theta, degree)

    return solve


def _coefficients(values: np.ndarray, theta: np.ndarray, degree: int) -> np.ndarray:
    """Ours, from values (phi, theta) on Dedalus' Gauss grid, where ducc0's transform is exact."""
    ducc = DuccTransport(degree, MODEL)
    rows = np.ascontiguousarray(values.T[np.argsort(theta.ravel())])
    return ducc.coefficients(rows)
