"""Drifts by any interaction potential W of the inner product."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from ..core.checks import positive, real_array
from ..core.forms import Array, Positive
from ..spaces.kernels import polynomial_multipliers, quadrature_multipliers, values_at
from .drift import DENSE, ZonalDrift
from .slopes import slope_of

__all__ = ["CosineSeries", "Interaction"]

DESCRIBED = 4096  # degree of the series that files hold


class Interaction(ZonalDrift):
    """Drift v(x) = grad_x int W(<x, y>) dmu(y) for any interaction potential W.

    Parameters
    ----------
    potential : callable
        W(t) for an array of inner products t in [-1, 1]. W increasing attracts.
    name : str
        What result files call it; the function's own name by default.
    tolerance : float
        Relative accuracy asked of the multipliers, by Gauss-Gegenbauer quadrature.
    derivative : callable, optional
        W'(t), for tokens. By default that of the Chebyshev interpolant of W, which a potential
        that is not smooth does not have.

    Raises
    ------
    TypeError, ValueError
        If one of the two is not a function, or the tolerance not a number > 0; where they are
        evaluated, if they do not return as many real numbers as they got.

    Notes
    -----
    Files hold the `CosineSeries` of the potential, up to degree 4096.

    Examples
    --------
    Doi-Onsager: ``Interaction(lambda t: -np.sqrt(1 - t**2))``.
    """

    name: str
    tolerance: float
    derivative: Callable | None

    def __init__(
        self,
        potential: Callable,
        name: str = "",
        tolerance: Positive = 1e-14,
        *,
        derivative: Callable | None = None,
    ):
        for what, function in {"potential": potential, "derivative": derivative}.items():
            if not callable(function) and (function is not None or what == "potential"):
                raise TypeError(
                    f"Interaction expects {what} to be a function of an array of inner products; "
                    f"got {what} = {function!r}."
                )
        positive(tolerance=tolerance)
        name = str(name) or getattr(potential, "__qualname__", type(potential).__qualname__)
        self._set(potential=potential, name=name, tolerance=float(tolerance), derivative=derivative)

    @staticmethod
    def chebyshev(coefficients: Sequence[float], name: str = "") -> "CosineSeries":
        """W(cos theta) = sum_k coefficients_k cos(k theta): see `CosineSeries`."""
        return CosineSeries(coefficients, name)

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        """W; inner products beyond +-1 by rounding are taken for +-1."""
        return values_at("potential", self.potential, np.minimum(np.maximum(t, -1.0), 1.0))

    @cached_property
    def _slope(self) -> Callable[[np.ndarray], np.ndarray]:
        if self.derivative is None:
            return slope_of(self.potential)
        return partial(values_at, "derivative", self.derivative)

    def slope(self, t: np.ndarray) -> np.ndarray:
        """W' at inner products; those beyond +-1 by rounding are taken for +-1."""
        return self._slope(np.minimum(np.maximum(t, -1.0), 1.0))

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.array(np.abs(self._slope(DENSE)).max())

    def why_not_finite(self, largest: float) -> str:
        if self.derivative is None:
            return super().why_not_finite(largest)
        return (
            "the derivative of the Interaction is not finite at inner products of these tokens. "
            "Expected W'(t), finite for -1 < t < 1."
        )

    def _attraction(self, degree: int, dimension: int) -> np.ndarray:
        return quadrature_multipliers(self.potential, degree, dimension, tolerance=self.tolerance)

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        return self.attraction(degree, dimension)

    def in_file(self) -> ZonalDrift:
        """The series of cosines that stands for it; a derivative of its own is lost."""
        multipliers = quadrature_multipliers(self.potential, DESCRIBED, 2, tolerance=self.tolerance)
        series = np.where(np.arange(DESCRIBED + 1) == 0, 1.0, 2.0) * multipliers
        significant = np.flatnonzero(np.abs(series) > 1e-17 * np.abs(series).max())
        kept = series[: significant[-1] + 1] if significant.size else series[:1]
        return CosineSeries(kept, self.name, self.derivative)

    def identity(self):
        return self.described  # the functions say it themselves

    def __repr__(self) -> str:
        return f"Interaction({self.name})"


class CosineSeries(ZonalDrift):
    """Drift by the potential W(cos theta) = sum_k coefficients_k cos(k theta).

    theta is the angle between two points; cos(k theta) is the Chebyshev polynomial T_k of their
    inner product.

    Parameters
    ----------
    coefficients : array
        w_0, w_1, ...; a positive w_1 attracts.
    name : str
        What it is called in figures and files.
    derivative : callable, optional
        W'(t), for tokens, where the series does not give it; by default that of the series.

    Raises
    ------
    TypeError, ValueError
        Unless the coefficients are finite real numbers in a sequence, at least one.
    """

    coefficients: Array
    name: str = ""
    derivative: Callable | None = None

    def validate(self) -> None:
        series = real_array("The coefficients of a Chebyshev series", self.coefficients)
        if series.ndim != 1 or series.size == 0:
            raise ValueError(
                "A series expects a sequence of finite coefficients, [w_0, w_1, ...]; got shape "
                f"{series.shape}."
            )

    @cached_property
    def _series(self) -> np.polynomial.Chebyshev:
        return np.polynomial.Chebyshev(self.coefficients)

    def potential(self, t: np.ndarray) -> np.ndarray:
        return self._series(t)

    def slope(self, t: np.ndarray) -> np.ndarray:
        inside = np.minimum(np.maximum(t, -1.0), 1.0)
        if self.derivative is not None:
            return values_at("derivative", self.derivative, inside)
        return self._series.deriv()(inside)

    def _attraction(self, degree: int, dimension: int) -> np.ndarray:
        series = self._series
        return polynomial_multipliers(series, series.degree(), degree, dimension)

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        return self.attraction(degree, dimension)

    @property
    def polynomial_degree(self) -> int:
        return int(self._series.trim().degree())
