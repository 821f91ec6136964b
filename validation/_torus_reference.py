"""Independent code for densities on the torus of two angles: full spectra, scipy's DOP853.

It has nothing in common with the package: multipliers are transforms of the kernel on the grid,
spectra are complex and have all waves, products are computed on 4 degree points a direction.
"""

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

Function = Callable[..., np.ndarray]


def coefficients_at(
    density: Function,
    W: Function,
    Z: Function | None,
    kappa: float,
    t: float,
    degree: int,
    rtol: float = 1e-12,
    counts: list[int] | None = None,
    scale: Function | None = None,
    power: int = 0,
) -> np.ndarray:
    """Fourier coefficients (n, n) at time t of d mu/dt = Lap mu/kappa - div(mu grad W*mu / Z*mu).

    `density`, W and Z are functions of two arrays of angles; Z None means 1. The coefficient of the
    wave k is entry k, also for negative numbers. `counts` gets the number of evaluations. With a
    scale s of two angles the noise is div(s^(2 - p) grad(s^p mu))/kappa, p = `power`.
    """
    n = 4 * degree
    angles = 2 * np.pi * np.arange(n) / n
    grid = np.meshgrid(angles, angles, indexing="ij")
    wave = np.fft.fftfreq(n, 1 / n)
    k = np.meshgrid(wave, wave, indexing="ij")
    kept = (np.abs(k[0]) <= degree) & (np.abs(k[1]) <= degree)
    above = np.fft.fft2(W(*grid), norm="forward")
    below = None if Z is None else np.fft.fft2(Z(*grid), norm="forward")
    start = density(*grid)
    start = np.fft.fft2(start / start.mean(), norm="forward") * kept
    decay = (k[0] ** 2 + k[1] ** 2) / kappa
    s = None if scale is None else scale(*grid)

    def values(series: np.ndarray) -> np.ndarray:
        return np.fft.ifft2(series, norm="forward").real

    def rate(_t: float, y: np.ndarray) -> np.ndarray:
        c = y.view(complex).reshape(n, n)
        u = values(c)
        change = -decay * c if s is None else np.zeros_like(c)
        if s is not None:
            raised = np.fft.fft2(s**power * u, norm="forward")
            for direction in k:
                flux = s ** (2 - power) * values(1j * direction * raised)
                change += 1j * direction * np.fft.fft2(flux, norm="forward") / kappa
        level = 1.0 if below is None else values(below * c)
        for direction in k:
            flux = u * values(1j * direction * above * c) / level
            change -= 1j * direction * np.fft.fft2(flux, norm="forward")
        return (change * kept).ravel().view(float)

    solution = solve_ivp(
        rate, (0, t), start.ravel().view(float), method="DOP853", rtol=rtol, atol=rtol / 100
    )
    if counts is not None:
        counts.append(solution.nfev)
    return np.ascontiguousarray(solution.y[:, -1]).view(complex).reshape(n, n)
