"""The slope W' of an interaction potential, by which tokens attract each other."""

from collections.abc import Callable

import numpy as np

from ..drifts import Interaction
from ..errors import MeanfieldError

__all__ = ["slope_of"]

DEGREES = (16, 32, 64, 128, 256)
ACCURACY = 1e-12


def slope_of(drift: Interaction) -> Callable[[np.ndarray], np.ndarray]:
    """W' as a function of an array of inner products.

    The slope that was given, or the derivative of the Chebyshev series of W. The series of other
    potentials is interpolated, in degrees up to 256.

    Raises
    ------
    MeanfieldError
        If the derivatives of the interpolants do not converge to 1e-12 of their maximum.
    """
    if drift.slope is not None:
        return drift.slope
    if isinstance(drift.potential, np.polynomial.Chebyshev):
        return drift.potential.deriv()
    places = np.cos(np.linspace(0, np.pi, 4 * DEGREES[-1]))
    coarser = np.full(places.size, np.nan)
    for degree in DEGREES:
        series = np.polynomial.Chebyshev.interpolate(drift.potential, degree)
        slope = series.trim(4e-16 * np.abs(series.coef).max()).deriv()
        values = slope(places)
        if np.abs(values - coarser).max() <= ACCURACY * np.abs(values).max():
            return slope
        coarser = values
    raise MeanfieldError(
        f"Tokens need the slope W' of {drift!r}, and the Chebyshev interpolants of W do not give "
        f"it to {ACCURACY:g} up to degree {DEGREES[-1]}. Give it: Interaction(W, slope=...)."
    )
