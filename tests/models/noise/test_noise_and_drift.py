"""Noise for dt/2, drift for dt, noise for dt/2 has weak order 2: no Monte Carlo.

dX = P_X e dt + sqrt(2/kappa) dW, tokens that follow a fixed direction e. Functions of
t = <x, e> stay functions of t: the backward equation is the linear system

    d f/d time = (1/kappa) Lap f + (1 - t^2) f'

for coefficients of zonal harmonics. One step multiplies those by E P_l(cos rho), measured on
`Isotropic.moved` itself, and composes f with the flow of the drift, explicit in t.
"""

import numpy as np
import pytest
from diffusions import normal_rule, orders
from scipy.linalg import expm
from scipy.special import eval_jacobi, roots_jacobi

from meanfield.models.noise import Isotropic
from meanfield.models.noise_steps import chi_square_rule

DEGREE, KAPPA, END = 40, 2.0, 1.0
l = np.arange(DEGREE + 1)


def harmonics(d, t):
    """P_l(t), shape (points, DEGREE + 1), with P_l(1) = 1."""
    exponent = (d - 3) / 2
    at_one = eval_jacobi(l, exponent, exponent, 1.0)
    return eval_jacobi(l, exponent, exponent, np.asarray(t)[:, None]) / at_one


def basis(d):
    """Quadrature points t, and the matrix that takes values there to coefficients."""
    t, weights = roots_jacobi(2 * DEGREE, (d - 3) / 2, (d - 3) / 2)
    weighted = weights[:, None] * harmonics(d, t)
    return t, (weighted / (weighted * harmonics(d, t)).sum(axis=0)).T


def noise_step(d, s):
    """E P_l(cos rho) for every degree, from tokens that the code moved."""
    if d == 2:
        normals, weights = normal_rule(1, 100)
        increments = normals[None]
    else:
        q, weights = chi_square_rule(d - 1, nodes=100)
        increments = np.zeros((1, len(q), d))
        increments[0, :, 1] = np.sqrt(q)
    x = np.zeros((1, len(weights), d))
    x[..., 0] = 1
    moved = Isotropic().moved(x, np.array([s]), increments)
    return np.diag(weights @ harmonics(d, moved[0, :, 0]))


def drift_step(d, dt):
    """f -> f(flow of x' = P_x e for dt) on coefficients."""
    t, to_coefficients = basis(d)
    return to_coefficients @ harmonics(d, (t + np.tanh(dt)) / (1 + t * np.tanh(dt)))


def exact(d):
    """e^(END L) for the generator L, on coefficients."""
    t, to_coefficients = basis(d)
    exponent = (d - 3) / 2
    slopes = (l + 2 * exponent + 1) / 2 * eval_jacobi(l - 1, exponent + 1, exponent + 1, t[:, None])
    slopes = np.where(l > 0, slopes, 0) / eval_jacobi(l, exponent, exponent, 1.0)
    transport = to_coefficients @ ((1 - t**2)[:, None] * slopes)
    return expm(END * (np.diag(-l * (l + d - 2) / KAPPA) + transport))


@pytest.mark.parametrize("d", [2, 3, 5])
def test_strang_splitting_has_order_two(d):
    f = np.zeros(DEGREE + 1)
    f[1], f[2] = 1.0, 0.5  # E <x, e> and the second moment, from a start at e and across
    start = harmonics(d, [1.0, 0.0, -0.6])
    reference = start @ (exact(d) @ f)
    steps = END / np.array([8, 16, 32])
    errors = []
    for dt in steps:
        half = noise_step(d, dt / 2 / KAPPA)
        step = half @ drift_step(d, dt) @ half
        measured = start @ (np.linalg.matrix_power(step, round(END / dt)) @ f)
        errors.append(np.linalg.norm(measured - reference))
    assert errors[-1] < 1e-3
    np.testing.assert_allclose(orders(errors, steps), 2, atol=0.1)
