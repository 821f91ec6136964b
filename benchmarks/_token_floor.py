"""What velocities by harmonics cannot do without, and nothing else.

On the circle the powers of z of every token, up to the degree: one complex multiplication per
token and degree for the moments and for every series. On S^2 the transforms of ducc0, each one call
for all tokens.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from meanfield.engines import CircleModes, SphereModes

__all__ = ["circle_floor", "sphere_floor"]

BLOCK = 256


def circle_floor(engine: CircleModes, x: np.ndarray) -> Callable[[], None]:
    """A run of the complex multiplications of one velocity; x (n, 2)."""
    series = 1 if engine.normaliser is None else 2
    turns = (1 + series) * engine.degree
    return lambda: _powers(x, turns)


@njit(cache=True, fastmath={"contract"})
def _powers(x, turns):
    real, imaginary = np.empty(BLOCK), np.empty(BLOCK)
    re, im, checksum = np.empty(BLOCK), np.empty(BLOCK), 0.0
    for begin in range(0, len(x) - BLOCK + 1, BLOCK):
        for i in range(BLOCK):
            real[i], imaginary[i] = x[begin + i, 0], x[begin + i, 1]
            re[i], im[i] = real[i], imaginary[i]
        for _ in range(turns):
            for i in range(BLOCK):
                re[i], im[i] = (
                    re[i] * real[i] - im[i] * imaginary[i],
                    re[i] * imaginary[i] + im[i] * real[i],
                )
        checksum += re[0]
    return checksum


def sphere_floor(engine: SphereModes, x: np.ndarray) -> Callable[[], None]:
    """A run of the transforms of one velocity; x (n, 3)."""
    from ducc0.sht import adjoint_synthesis_general, synthesis_general

    angles = np.empty((len(x), 2))
    angles[:, 0] = np.arctan2(np.hypot(x[:, 0], x[:, 1]), x[:, 2])
    angles[:, 1] = np.arctan2(x[:, 1], x[:, 0]) % (2 * np.pi)
    values = np.full((1, len(x)), 1 / len(x))
    options = {"lmax": engine.degree, "epsilon": engine.accuracy, "nthreads": 1, "loc": angles}

    def run() -> None:
        modes = adjoint_synthesis_general(map=values, spin=0, **options)
        synthesis_general(alm=modes, spin=1, mode="DERIV1", **options)
        if engine.normaliser is not None:
            synthesis_general(alm=modes, spin=0, **options)

    return run
