"""The slope W' of an interaction potential, by which tokens attract each other."""

from collections.abc import Callable

import numpy as np

from ..core.errors import MeanfieldError
from ..spaces.kernels import values_at

__all__ = ["slope_of"]

SIZES = (16, 32, 64, 128, 256, 512, 1024)
ACCURACY = 1e-12
ROUNDED = 1e-15  # times the largest are coefficients that may be rounding


def slope_of(potential: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """W' as a function of an array of inner products, for a potential W.

    The derivative of a Chebyshev series. Other potentials are interpolated by such series, of up
    to 1024 terms.

    Raises
    ------
    TypeError, ValueError
        If values of the potential are not finite real numbers, one for each inner product.
    MeanfieldError
        If the derivatives of the interpolants do not converge to 1e-12 of their maximum.
    """
    if isinstance(potential, np.polynomial.Chebyshev):
        return potential.deriv()
    places = np.cos(np.linspace(0, np.pi, SIZES[-1]))
    coarser = np.full(places.size, np.nan)
    for size in SIZES:
        slope = _interpolant(potential, size).deriv()
        values = slope(places)
        if np.abs(values - coarser).max() <= ACCURACY * np.abs(values).max():
            return slope
        coarser = values
    raise MeanfieldError(
        "Tokens need the slope W' of an Interaction, and the Chebyshev interpolants of its "
        f"potential do not give it to {ACCURACY:g} with up to {SIZES[-1]} terms. Give it: "
        "Interaction(W, derivative=...)."
    )


def _interpolant(potential, size):
    from scipy.fft import dct  # numpy's interpolation loses digits in high degrees

    nodes = np.cos((np.arange(size) + 0.5) * np.pi / size)
    coefficients = dct(values_at("potential", potential, nodes, finite=True)) / size
    coefficients[0] /= 2
    return np.polynomial.Chebyshev(coefficients).trim(ROUNDED * np.abs(coefficients).max())
