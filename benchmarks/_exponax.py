"""The benchmark's problem in exponax: its ETDRK4, steps compiled into one loop in Fourier space."""

from collections.abc import Callable

import equinox as eqx
import exponax as ex
import jax
import jax.numpy as jnp
import numpy as np
from _equation import KAPPA, T_END, initial, velocity_multiplier

__all__ = ["VARIANTS", "prepare"]

jax.config.update("jax_enable_x64", True)

# Points per degree and share of the modes kept in products. Without dealiasing it is as
# accurate on this smooth problem.
VARIANTS = {"2/3 rule": (3, 2 / 3), "no dealiasing": (2, None)}


class Transport(ex.nonlin_fun.BaseNonlinearFun):
    """-(mu v)' in the unnormalised coefficients of exponax."""

    velocity: jax.Array
    derivative: jax.Array

    def __init__(self, points, derivative, dealiasing):
        super().__init__(1, points, dealiasing_fraction=dealiasing)
        self.derivative = derivative
        self.velocity = 1j * jnp.asarray(velocity_multiplier(points // 2)).at[-1].set(0)

    def __call__(self, u_hat):
        u, v = self.ifft(jnp.concatenate([u_hat, self.velocity * u_hat]))
        return -self.derivative * self.fft((u * v)[None])


class Attention(ex.BaseStepper):
    """One step of USA with noise."""

    dealiasing: float | None = eqx.field(static=True)

    def __init__(self, points, dt, dealiasing):
        self.dealiasing = dealiasing
        super().__init__(1, 2 * np.pi, points, dt, num_channels=1, order=4)

    def _build_linear_operator(self, derivative_operator):
        return derivative_operator**2 / KAPPA

    def _build_nonlinear_fun(self, derivative_operator):
        derivative = derivative_operator.at[..., -1].set(0)  # the Nyquist mode has none
        return Transport(self.num_points, derivative, self.dealiasing)


@eqx.filter_jit
def advance(stepper, u_hat, steps):
    return jax.lax.fori_loop(0, steps, lambda _, u: stepper.step_fourier(u), u_hat)


def prepare(points: int, dealiasing: float | None, steps: int) -> Callable[[], np.ndarray]:
    """A function that runs the problem with `steps` fixed steps and returns the coefficients."""
    stepper = Attention(points, T_END / steps, dealiasing)
    theta = 2 * np.pi * np.arange(points) / points
    start = jnp.fft.rfft(jnp.asarray(initial(theta)[None]))

    def solve() -> np.ndarray:
        return np.asarray(advance(stepper, start, steps).block_until_ready()[0]) / points

    return solve
