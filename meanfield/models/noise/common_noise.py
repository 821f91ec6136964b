"""Common noise: one Brownian rotation that carries all tokens along."""

import numpy as np
from scipy.linalg import expm

from .contract import Noise

__all__ = ["CommonNoise"]


class CommonNoise(Noise):
    """dX_i = sqrt(2/kappa) sum_(j<k) L_jk X_i o dB_jk, the same B for all tokens of a replica.

    L_jk = e_j e_k^T - e_k e_j^T, Stratonovich. One token alone is a Brownian motion, as under
    isotropic noise; together they are turned like a rigid body, and inner products are kept to
    rounding. One step, for s = dt/kappa:

        X_i' = exp(Omega) X_i,   Omega = sum_(j<k) w_jk L_jk,
        w_jk independent normal of variance v = 2 s/(1 + (d - 2) s/6)

    In any representation of SO(d), with C = sum_(j<k) L_jk^2 there (Casimir),

        E exp(Omega) = 1 + (v/2) C + (v^2/24) (3 C^2 + (d - 2) C) + O(v^3) = e^(s C) + O(s^3)

    so that the local error is O(s^3) for functions of any number of tokens: weak order 2. On the
    circle it is 0: the angle is normal of variance 2 s.

    Notes
    -----
    Increments: (R, d (d - 1)/2) normals. Cost O(R (d^3 + n d^2)).
    """

    known_rate = True

    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        return (replicas, d * (d - 1) // 2)

    def _moved(self, x, s, increments):
        d = x.shape[2]
        variance = 2 * s / (1 + (d - 2) * s / 6)
        above = np.triu_indices(d, 1)
        omega = np.zeros((len(x), d, d))
        omega[:, *above] = np.sqrt(variance)[:, None] * increments
        omega -= omega.transpose(0, 2, 1)
        result = x @ _exponential(omega).transpose(0, 2, 1)
        result /= np.linalg.norm(result, axis=2, keepdims=True)  # rounding of many steps
        return result


def _exponential(omega):
    """exp of antisymmetric matrices (R, d, d); for d <= 3, where Omega^3 = -angle^2 Omega,

    1 + sin(angle)/angle Omega + (1 - cos(angle))/angle^2 Omega^2  (Rodrigues)
    """
    d = omega.shape[-1]
    if d > 3:
        return expm(omega)
    angle = np.sqrt((omega**2).sum(axis=(1, 2), keepdims=True) / 2)
    once, twice = np.sinc(angle / np.pi), np.sinc(angle / (2 * np.pi)) ** 2 / 2
    return np.eye(d) + once * omega + twice * (omega @ omega)
