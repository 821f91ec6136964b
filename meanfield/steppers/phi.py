"""The phi functions of exponential integrators."""

import numpy as np
from numba import njit

__all__ = ["HIGHEST", "phi_functions"]

HIGHEST = 3
_RADIUS = 4.0
_TERMS = 32
_RECIPROCAL = 1.0 / np.arange(1, _TERMS + HIGHEST + 1)


@njit(cache=True, error_model="numpy")
def phi_functions(z, values):
    """Write phi_0(z), ..., phi_3(z) into `values`.

        phi_0(z) = e^z,    phi_{j+1}(z) = (phi_j(z) - 1/j!) / z,    phi_j(0) = 1/j!

    For |z| >= 4 by this recurrence; below, where it cancels, phi_3 by its Taylor series and
    the others by the recurrence backwards, which does not. Relative error below 1e-14 for z
    real or complex with Re z <= 0.

    References
    ----------
    Hochbruck and Ostermann, Acta Numerica 19 (2010), equations (2.5)-(2.8).
    """
    values[0] = np.exp(z)
    if abs(z) >= _RADIUS:
        values[1] = (values[0] - 1) / z
        values[2] = (values[1] - 1) / z
        values[3] = (values[2] - 0.5) / z
        return
    series = 1 + 0 * z
    for m in range(_TERMS + HIGHEST - 1, HIGHEST - 1, -1):
        series = 1 + z * _RECIPROCAL[m] * series
    values[3] = series / 6
    values[2] = z * values[3] + 0.5
    values[1] = z * values[2] + 1
