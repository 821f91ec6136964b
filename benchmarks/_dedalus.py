"""The benchmark's problem in Dedalus 3: a RealFourier basis of 2 degree modes, dealias 3/2."""

import logging
from collections.abc import Callable

import dedalus.public as d3
import numpy as np
from _equation import KAPPA, T_END, initial, velocity_multiplier
from dedalus.core.operators import GeneralFunction

__all__ = ["prepare"]

logging.disable(logging.INFO)  # its solvers announce every run


def prepare(degree: int, steps: float) -> Callable[[], np.ndarray]:
    """A function that runs the problem with fixed steps of RK443 and returns the coefficients."""
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

    mu = distributor.Field(name="mu", bases=basis)
    v = GeneralFunction(distributor, mu.domain, (), np.float64, "c", attend, args=[mu])
    diffusion = d3.Differentiate(d3.Differentiate(mu, x), x) / KAPPA
    problem = d3.IVP([mu])
    problem.add_equation((d3.TimeDerivative(mu) - diffusion, -d3.Differentiate(mu * v, x)))
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
