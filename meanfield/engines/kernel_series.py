"""Interpolants of zonal kernels in the inner product, for derivatives of sums over pairs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..models import ZonalDrift
from ..models.changes import derivative_by
from ..models.zonal import INTERPOLANT_SIZES, ROUNDED_COEFFICIENT, SLOPE_ACCURACY


class KernelSeries:
    """Chebyshev series, in the inner product t, of W' and Z of a zonal drift and derivatives.

    Parameters
    ----------
    drift : ZonalDrift
        A single one.
    names : sequence of (str or None)
        The parameter of each tangent.

    Raises
    ------
    MeanfieldError
        If the series do not converge to 1e-12, or the drift is not smooth in a parameter.
    """

    def __init__(self, drift: ZonalDrift, names: Sequence[str | None]) -> None:
        """Fit Chebyshev series to W', Z, their derivatives by the parameters, and by t."""
        self.normalised, self._names = drift.normalised, names
        used = sorted({name for name in names if name is not None})
        count = 2 if self.normalised else 1

        def table(drifts: Any, nodes: np.ndarray) -> np.ndarray:
            t = np.broadcast_to(nodes, (*drifts.shape, nodes.size))
            parts = [drifts.slope(t), drifts.weight(t)][:count]
            return np.stack(np.broadcast_arrays(*parts), axis=-2)

        def values(nodes: np.ndarray) -> np.ndarray:
            by = [derivative_by(drift, name, lambda drifts: table(drifts, nodes)) for name in used]
            return np.concatenate([table(drift, nodes), *by])

        series = converged(values, count, drift)
        self._series = np.concatenate([series, derivatives_of(series[:, :count])], axis=1)
        rows = {name: count * (1 + i) for i, name in enumerate(used)}
        self._rows = [rows.get(name) if name is not None else None for name in names]

    def at(self, t: np.ndarray) -> tuple[Any, ...]:
        """Values at t of W', W'', Z, Z', and derivatives of W' and Z: see `direct.row_sums`."""
        values = np.polynomial.chebyshev.chebval(t, self._series)
        by: list[Any] = [None if row is None else values[row] for row in self._rows]
        if not self.normalised:
            return values[0], values[-1], None, None, by, by
        by_weight: list[Any] = [None if row is None else values[row + 1] for row in self._rows]
        return values[0], values[-2], values[1], values[-1], by, by_weight


def converged(values: Callable[..., Any], differentiated: int, drift: ZonalDrift) -> np.ndarray:
    """Chebyshev coefficients (terms, k) of k functions, to SLOPE_ACCURACY.

    values(nodes) are their values (k, nodes). The error of the first `differentiated` functions is
    that of their derivatives. The drift is for the error message.

    Raises
    ------
    MeanfieldError
        If the largest of INTERPOLANT_SIZES does not resolve them.
    """
    from scipy.fft import dct

    points = np.cos(np.linspace(0, np.pi, INTERPOLANT_SIZES[-1]))
    coarser = None
    for size in INTERPOLANT_SIZES:
        nodes = np.cos((np.arange(size) + 0.5) * np.pi / size)
        series = dct(values(nodes), axis=-1).T / size
        series[0] /= 2
        significant = np.abs(series) > ROUNDED_COEFFICIENT * np.abs(series).max(axis=0)
        series = series[: max(2, int(np.nonzero(significant.any(axis=1))[0].max(initial=0)) + 1)]
        slopes = derivatives_of(series[:, :differentiated])
        finer = np.polynomial.chebyshev.chebval(
            points, np.concatenate([series[:, differentiated:], slopes], axis=1)
        )
        if coarser is not None:
            scale = np.abs(finer).max(axis=1, keepdims=True)
            if (np.abs(finer - coarser) <= SLOPE_ACCURACY * scale).all():
                return series
        coarser = finer
    raise MeanfieldError(
        f"Tangents need the derivatives of the slope of {drift!r}, and interpolants in the inner "
        f"product do not give them to {SLOPE_ACCURACY:g} with up to {INTERPOLANT_SIZES[-1]} terms: "
        "it must be smooth."
    )


def derivatives_of(series: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients (terms, k) of the derivatives of series (terms, k); the last are 0."""
    slopes = np.zeros_like(series)
    slopes[:-1] = np.polynomial.chebyshev.chebder(series)
    return slopes
