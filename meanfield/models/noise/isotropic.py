"""Isotropic noise: an independent Brownian motion for each token."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from .contract import Noise
from .heat_law import stretch_of

__all__ = ["Isotropic"]


@dataclass(frozen=True)
class Isotropic(Noise):
    """dX_i = sqrt(2/kappa) dW_i, W_i independent Brownian motions on the sphere: L = Lap.

    A token moves along a great circle by an angle rho in a uniform direction. On the circle the
    angle is normal of variance 2 s, exactly. For d >= 3, with a standard normal G in R^d,

        xi = P_x G,  q = |xi|^2,  w = a q (1 + b q) = tan^2(rho/2),
        x' = ((1 - w) x + 2 sqrt(a (1 + b q)) xi)/(1 + w) = cos(rho) x + sin(rho) xi/|xi|

    where (a, b) is such that harmonics of degree 1 and 2 decay by exactly e^(-l (l + d - 2) s),
    for every s > 0: without a drift, the mean and the covariance of a token have no error of the
    time step. The other degrees have a local error of O(s^5).

    Notes
    -----
    Increments: (R, n, d) normals, or (R, n, 1) on the circle, the increments of the angles,
    where a synchronous coupling turns two systems by the same angles.

    Cost O(R n d), less than that of drawing the increments; one millisecond for each new s.

    References
    ----------
    Mijatovic, Mramor and Uribe Bravo, Statist. Probab. Lett. 165 (2020): the law of rho.
    """

    known_rate = True
    on_sphere_only = False

    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        return (replicas, n, d if d > 2 else 1)

    def _moved(self, x, s, increments):
        result = np.empty_like(x)
        if x.shape[2] == 2:
            _turn(x, np.sqrt(2 * s), increments, result)
            return result
        a, b = np.array([stretch_of(x.shape[2], float(strength)) for strength in s]).T
        _step(x, a, b, increments, result)
        return result

    def describe(self) -> dict[str, Any]:
        return {"noise": "Isotropic"}


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(x, deviation, normals, result):
    """The step of every token on the circle, counterclockwise; deviation (R,)."""
    replicas, n, _ = x.shape
    for r in range(replicas):
        for i in range(n):
            angle = deviation[r] * normals[r, i, 0]
            cosine, sine = np.cos(angle), np.sin(angle)
            first = cosine * x[r, i, 0] - sine * x[r, i, 1]
            second = sine * x[r, i, 0] + cosine * x[r, i, 1]
            length = np.sqrt(first**2 + second**2)  # 1, up to the rounding of earlier steps
            result[r, i, 0], result[r, i, 1] = first / length, second / length


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _step(x, a, b, normals, result):
    """The step of every token for d >= 3; a and b (R,)."""
    replicas, n, d = x.shape
    for r in range(replicas):
        for i in range(n):
            token, normal, moved = x[r, i], normals[r, i], result[r, i]
            along = q = length = 0.0
            for k in range(d):
                along += token[k] * normal[k]
            for k in range(d):
                moved[k] = normal[k] - along * token[k]
                q += moved[k] ** 2
            stretch = a[r] * (1 + b[r] * q)
            forward, sideways = 1 - stretch * q, 2 * np.sqrt(stretch)
            for k in range(d):
                moved[k] = forward * token[k] + sideways * moved[k]
                length += moved[k] ** 2
            length = np.sqrt(length)  # 1 + w, up to the rounding of earlier steps
            for k in range(d):
                moved[k] /= length
