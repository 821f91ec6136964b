"""Multipliers on the torus of drifts that are functions of inner products, sum_i cos(x_i - y_i).

For a drift v = grad (W * mu) / (Z * mu) with functions W, Z of t = <x, y> in [-m, m] the
multiplier of the wave k is the mean of W e^{-i<k, z>} over z = x - y. For exp(beta t) it is

    prod_i I_{k_i}(beta),

for other functions it is computed by the trapezoidal rule, on a grid that is doubled until it
agrees with the one before, and with one of one point less. Two grids alone may take a wave of high
degree for the same lower one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..core.checks import require, returned
from ..core.errors import MeanfieldError
from .potentials import CosineSeries, Interaction
from .zonal import ROUNDED_COEFFICIENT, ZonalDrift

if TYPE_CHECKING:
    from ..spaces.torus import Torus

LARGEST_EXPONENT = 700.0  # m |beta|: beyond it exp overflows
SMALLEST_BETA = 1e-300  # multipliers over a smaller beta have lost their digits
AGREE = 1e-14  # tolerance of multipliers by quadrature, relative to the largest value of a kernel
MOST_POINTS = 2**22  # of the grid of the trapezoidal rule


def multipliers(drift: ZonalDrift, name: str, space: "Torus") -> np.ndarray:
    """Multipliers (*shape, modes) of W, Z or the energy: `attraction`, `normaliser`, `interaction`.

    Raises
    ------
    MeanfieldError
        For drifts that are functions of the angle between points, exp(beta t) that overflows, and
        functions that are not smooth.
    """
    if drift.terms[0][1] is not drift:
        parts = drift.terms[:1] if name == "normaliser" else drift.terms
        of_parts = [part.as_zonal().on_torus(name, space) for _, part in parts]
        if name == "normaliser":
            return np.broadcast_to(of_parts[0], (*drift.shape, space.degrees.size)).copy()
        factors = [np.asarray(factor)[..., None] for factor, _ in parts]
        return np.asarray(sum(c * table for c, table in zip(factors, of_parts, strict=True)))
    if drift.exponent is not None:
        return _of_exponential(drift, name, space)
    tables = np.empty((*drift.shape, space.degrees.size))
    for index in np.ndindex(*drift.shape):
        tables[index] = _of_functions(drift.member(index), name, space)
    return tables


def _of_exponential(drift: ZonalDrift, name: str, space: "Torus") -> np.ndarray:
    """Multipliers for W' = exp(beta t) and Z = 1 or exp(beta t), by Bessel functions.

    If Z is not 1, those of W and Z are divided by the first one of Z; the velocity is the same.
    """
    from scipy.special import ive

    beta, m = np.asarray(drift.exponent), space.circles
    orders = np.abs(space.waves)
    of_one = ive(np.arange(space.degree + 1), np.abs(beta)[..., None])
    scaled = of_one[..., orders].prod(axis=-1)
    odd = np.where(orders.sum(axis=-1) % 2 == 1, np.sign(beta)[..., None], 1.0)
    scaled *= np.where(beta[..., None] < 0, odd, 1.0)
    if drift.normalised and name != "interaction":
        table = scaled / scaled[..., :1]
    else:
        exponent = m * np.abs(beta)
        if (exponent > LARGEST_EXPONENT).any():
            raise MeanfieldError(
                f"On {space!r} {drift!r} needs {m} |beta| <= {LARGEST_EXPONENT:g}, or "
                f"exp(beta <x, y>) overflows; got {m} |beta| up to {exponent.max():g}."
            )
        table = scaled * np.exp(exponent)[..., None]
    if name == "normaliser":
        return table
    is_small = np.abs(beta)[..., None] < SMALLEST_BETA
    linear = np.where(-space.laplacian == 1, 0.5, 0.0)
    table = np.where(is_small, linear, table / np.where(is_small, 1.0, beta[..., None]))
    if name == "attraction":
        table[..., 0] = 0
    return table


def _of_functions(drift: ZonalDrift, name: str, space: "Torus") -> np.ndarray:
    """Multipliers (modes,) of a single drift by quadrature."""
    if isinstance(drift, CosineSeries):
        raise MeanfieldError(
            f"{drift!r} is a series in the angle between two points of a sphere, and inner "
            f"products on {space!r} are sums of cosines. Take Interaction(W) with W a function of "
            f"inner products from -{space.circles} to {space.circles}, or PeriodicKernel(W)."
        )
    if isinstance(drift, Interaction):
        return _coefficients(drift.potential, space)
    if name == "normaliser":
        return _coefficients(drift.weight, space)
    if name == "interaction" and type(drift).potential is not ZonalDrift.potential:
        return _coefficients(drift.potential, space)
    finer = space.with_degree(space.degree + 1)
    slopes = _coefficients(drift.slope, finer)
    # dW/dz_i = -W' sin(z_i): 2 k_i W_k = S_(k - e_i) - S_(k + e_i), for the largest |k_i|
    largest = np.abs(space.waves).argmax(axis=1)
    unit = np.eye(space.circles, dtype=int)[largest]
    lower, upper = (slopes[_stored(finer, space.waves + s * unit)] for s in (-1, 1))
    k = (space.waves * unit).sum(axis=1)
    table = np.divide(lower - upper, 2 * k, out=np.zeros(k.size), where=k != 0)
    if name == "interaction":
        table[0] = np.nan  # the constant of W is not known
    return table


def _stored(space: "Torus", waves: np.ndarray) -> np.ndarray:
    """Indices of the coefficients of waves, or of their opposites, of an even function."""
    last, first = waves[:, -1], np.zeros(len(waves), dtype=int)
    for k in waves.T[::-1]:
        first = np.where(k != 0, np.sign(k), first)
    sign = np.where(last != 0, np.sign(last), np.where(first != 0, first, 1))
    return space.places(waves * sign[:, None])


def _coefficients(function: Callable[..., np.ndarray], space: "Torus") -> np.ndarray:
    """Fourier coefficients (modes,) of a function of inner products t = sum_i cos(z_i)."""

    def of_angles(*angles: np.ndarray) -> np.ndarray:
        t = np.asarray(sum(np.cos(z) for z in angles))
        return function(t.ravel()).reshape(t.shape)

    return by_quadrature(of_angles, space).real


def by_quadrature(kernel: Callable[..., np.ndarray], space: "Torus") -> np.ndarray:
    """Fourier coefficients (modes,) of a function of m arrays of angles, complex.

    Raises
    ------
    ValueError
        If values are not finite, or of another shape.
    MeanfieldError
        If the rules do not agree up to 2^22 points: the function is not smooth.
    """
    m, coarser, change = space.circles, None, np.inf
    size = 64
    while size < 2 * space.degree + 2:
        size *= 2

    def on_grid(size: int) -> tuple[np.ndarray, float]:
        """Coefficients by the rule of `size` points in each direction, and the largest value."""
        values = values_on_grid(kernel, size, m)
        spectrum = np.fft.fftn(values, norm="forward")
        return spectrum[tuple(space.waves.T % size)], max(float(np.abs(values).max()), 1e-300)

    while size**m <= MOST_POINTS or coarser is None:
        table, scale = on_grid(size)
        if coarser is not None:
            change = np.abs(table - coarser).max() / scale
            if change <= AGREE:
                change = np.abs(table - on_grid(size - 1)[0]).max() / scale
            if change <= AGREE:
                return np.where(np.abs(table) > ROUNDED_COEFFICIENT * scale, table, 0.0)
        coarser, size = table, 2 * size
    raise MeanfieldError(
        f"The multipliers of the kernel did not converge: with {size // 2} points in each "
        f"direction they change by {change:.1e} of its largest value, expected {AGREE:g}. Give a "
        "kernel that is smooth and has the period 2 pi in each angle, or that varies less."
    )


def values_on_grid(kernel: Callable[..., np.ndarray], size: int, circles: int) -> np.ndarray:
    """Values of a function of m arrays of angles on the grid of `size` points in each direction."""
    axis = 2 * np.pi * np.arange(size) / size
    angles = np.meshgrid(*[axis] * circles, indexing="ij")
    values = returned("kernel", kernel(*angles), angles[0].shape)
    count = np.count_nonzero(~np.isfinite(values))
    return require("values of the kernel", values, f"finite, but {count} are not", count == 0)
