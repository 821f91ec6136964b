"""A drift by any interaction potential W of the inner product."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..core.checks import positive, real_array
from ..core.errors import MeanfieldError
from ..spaces.kernels import polynomial_multipliers, quadrature_multipliers, values_at
from .contract import ZonalDrift
from .slopes import slope_of

__all__ = ["Interaction"]

DESCRIBED = 4096  # degree of the series that files hold
CLOSE = 1e-3  # gaps below which differences of slopes cancel
PLACES, SHARES = (np.polynomial.legendre.leggauss(40) + np.array([[1.0], [0.0]])) / 2


@dataclass(frozen=True)
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

    Examples
    --------
    Doi-Onsager: ``Interaction(lambda t: -np.sqrt(1 - t**2))``.
    """

    potential: Callable[[np.ndarray], np.ndarray]
    name: str = ""
    tolerance: float = 1e-14
    derivative: Callable[[np.ndarray], np.ndarray] | None = field(default=None, kw_only=True)

    def __post_init__(self):
        for name in ("potential", "derivative"):
            function = getattr(self, name)
            if not callable(function) and (function is not None or name == "potential"):
                raise TypeError(
                    f"Interaction expects {name} to be a function of an array of inner products; "
                    f"got {name} = {function!r}."
                )
        positive(tolerance=self.tolerance)

    @classmethod
    def chebyshev(cls, coefficients: Sequence[float], name: str = "") -> "Interaction":
        """W(cos theta) = sum_k coefficients_k cos(k theta), a Chebyshev series in t.

        Raises
        ------
        TypeError, ValueError
            Unless the coefficients are finite real numbers in a sequence, at least one.
        """
        series = real_array("The coefficients of a Chebyshev series", coefficients)
        if series.ndim != 1 or series.size == 0 or not np.isfinite(series).all():
            raise ValueError(
                "A Chebyshev series expects a sequence of finite coefficients, [w_0, w_1, ...]; "
                f"got shape {series.shape}, {np.count_nonzero(~np.isfinite(series))} not finite."
            )
        return cls(np.polynomial.Chebyshev(series), name)

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

    def contrast(self, log_gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By the mean of W'' between the two where the gap is small."""
        gap = np.exp(log_gap)
        there = self.slope(1 - gap)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (self.slope(np.ones_like(gap)) - there) / there
            sign, log_size = np.sign(ratio), np.log(np.abs(ratio))
            if (near := gap < CLOSE).any():
                mean = self._curvature(1 - gap[near, None] * PLACES) @ SHARES / there[near]
                sign[near], log_size[near] = np.sign(mean), np.log(np.abs(mean)) + log_gap[near]
        return sign, log_size

    @cached_property
    def _curvature(self) -> Callable[[np.ndarray], np.ndarray]:
        """W''."""
        try:
            return slope_of(self._slope)
        except MeanfieldError as error:
            raise MeanfieldError(
                "Attention on equiangular tokens with 1 - rho < 0.001 needs W'' of an Interaction, "
                "and the Chebyshev interpolants of its slope do not give it: W' is not smooth."
            ) from error

    def why_not_finite(self, largest: float) -> str:
        if self.derivative is None:
            return super().why_not_finite(largest)
        return (
            "the derivative of the Interaction is not finite at inner products of these tokens. "
            "Expected W'(t), finite for -1 < t < 1."
        )

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.abs(self._slope(np.linspace(-1, 1, 515)[1:-1])).max()  # it may be inf at +-1

    @cached_property
    def _known(self) -> dict[tuple[int, int], np.ndarray]:
        return {}  # multipliers that were asked for: a kernel with a kink takes seconds

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        if (degree, dimension) not in self._known:
            self._known[degree, dimension] = self._multipliers(degree, dimension)
        return self._known[degree, dimension].copy()

    def _multipliers(self, degree: int, dimension: int) -> np.ndarray:
        potential = self.potential
        if isinstance(potential, np.polynomial.Chebyshev):
            return polynomial_multipliers(potential, potential.degree(), degree, dimension)
        return quadrature_multipliers(potential, degree, dimension, tolerance=self.tolerance)

    def describe(self) -> dict[str, Any]:
        """Its name, and the Chebyshev series of W up to degree 4096 without negligible terms."""
        name = self.name or getattr(self.potential, "__qualname__", "chebyshev series")
        if isinstance(self.potential, np.polynomial.Chebyshev):
            series = self.potential.coef
        else:
            multipliers = quadrature_multipliers(
                self.potential, DESCRIBED, 2, tolerance=self.tolerance
            )
            series = np.where(np.arange(DESCRIBED + 1) == 0, 1.0, 2.0) * multipliers
        significant = np.flatnonzero(np.abs(series) > 1e-17 * np.abs(series).max())
        kept = series[: significant[-1] + 1] if significant.size else series[:1]
        described = {"drift": "Interaction", "potential": name, "chebyshev": kept.tolist()}
        if self.derivative is not None:
            named = getattr(self.derivative, "__qualname__", type(self.derivative).__qualname__)
            described["derivative"] = {"callable": named}
        return described
