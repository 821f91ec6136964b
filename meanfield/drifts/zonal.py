"""Zonal drifts: v[mu] = grad (W * mu) / (Z * mu) with W and Z functions of the inner product.

    USA        W = exp(beta t) / beta                Z = 1
    SA         W = exp(beta t) / beta                Z = exp(beta t)
    Kuramoto   W = t                                 Z = 1

with t = <x, y>. SA is grad (1/beta) log(exp(beta t) * mu).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from ..checks import positive, real_array
from ..kernels import (
    exponential_multipliers,
    polynomial_multipliers,
    quadrature_multipliers,
    values_at,
)
from .contract import ZonalDrift
from .slopes import slope_of

__all__ = ["SA", "USA", "Interaction", "Kuramoto"]

DESCRIBED = 4096


def _inverse_temperature(name: str, beta) -> np.ndarray:
    array = real_array(f"The beta of {name}", beta)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError(
            f"{name} needs a finite beta (a number, or an array of them); got beta = {beta!r}."
        )
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class _Exponential(ZonalDrift):
    beta: np.ndarray

    def __init__(self, beta):
        object.__setattr__(self, "beta", _inverse_temperature(type(self).__name__, beta))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.beta.shape

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return {"beta": self.beta}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(beta={self.beta.tolist()})"

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        return self if not self.shape else type(self)(np.broadcast_to(self.beta, shape).ravel())

    def _exponent(self, t: np.ndarray) -> np.ndarray:
        return self.beta.reshape(self.shape + (1,) * (t.ndim - len(self.shape))) * t

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        """exp(beta t) / beta, infinite where it overflows; t at beta = 0."""
        beta = self._exponent(np.ones_like(t))
        with np.errstate(over="ignore"):
            return np.where(beta == 0, t, np.exp(beta * t) / np.where(beta == 0, 1.0, beta))

    def _over_beta(self, multipliers: np.ndarray, dimension: int) -> np.ndarray:
        """multipliers / beta in degrees >= 1, and at beta = 0 the limit 1/d in degree 1."""
        beta = np.broadcast_to(self.beta[..., None], multipliers.shape)
        quotient = np.zeros_like(multipliers)
        np.divide(multipliers, beta, out=quotient, where=beta != 0)
        quotient[..., 0] = 0
        quotient[..., 1:2] = np.where(beta[..., 1:2] == 0, 1 / dimension, quotient[..., 1:2])
        return quotient

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of exp(beta t)/beta; at beta = 0 of t, its limit without the constant.

        Infinite where exp(|beta|) overflows.
        """
        beta = self.beta
        with np.errstate(over="ignore"):
            scale = np.exp(np.abs(beta))[..., None]
            multipliers = exponential_multipliers(beta, degree, dimension) * scale
        weights = self._over_beta(multipliers, dimension)
        weights[..., 0] = np.where(beta == 0, 0.0, multipliers[..., 0] / np.where(beta, beta, 1.0))
        return weights


class USA(_Exponential):
    """Unnormalised self-attention: v(x) = P_x int e^(beta <x, y>) y dmu(y).

    Parameters
    ----------
    beta : float or array
        Inverse temperature. beta = 0 is Kuramoto; an array makes an ensemble.

    Raises
    ------
    ValueError
        If beta is not finite, or exp(|beta|) overflows (|beta| > 700).

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, equation (USA).
    """

    def __init__(self, beta):
        super().__init__(beta)
        if (np.abs(self.beta) > 700).any():
            raise ValueError(
                f"USA(beta) needs |beta| <= 700, or exp(beta) overflows; got beta = {beta!r}. "
                "SA takes any beta."
            )

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.exp(np.abs(self.beta))

    def slope(self, t: np.ndarray) -> np.ndarray:
        return np.exp(self._exponent(t))

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        scale = np.exp(np.abs(self.beta))[..., None]
        multipliers = exponential_multipliers(self.beta, degree, dimension) * scale
        return self._over_beta(multipliers, dimension)


class SA(_Exponential):
    """Softmax self-attention: the attention weights seen from each token sum to one.

        v(x) = P_x int e^(beta <x, y>) y dmu(y) / int e^(beta <x, y>) dmu(y)

    Parameters
    ----------
    beta : float or array
        Inverse temperature, any finite number. beta = 0 is Kuramoto; an array makes an ensemble.

    Notes
    -----
    With noise SA is not a Wasserstein gradient flow, so it has no free energy.

    Z * mu, by which the velocity is divided, is computed with an absolute error of rounding. For
    beta > 0 it is large where the density is, and nothing is lost. For beta < 0 it is smallest
    there, e^(2 beta) relative to its maximum for a narrow density: below beta = -10 narrow
    densities lose their digits, and a run is then reported as unresolved.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, equation (SA).
    """

    gradient_flow = False

    def rate(self, t: float = 0.0) -> np.ndarray:
        return 1 + np.abs(self.beta) / 2

    def slope(self, t: np.ndarray) -> np.ndarray:
        exponent = self._exponent(t)
        return np.exp(exponent - exponent.max(axis=-1, keepdims=True))

    weight = slope

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        return self._over_beta(self.normaliser(degree, dimension), dimension)

    def normaliser(self, degree: int, dimension: int) -> np.ndarray:
        multipliers = exponential_multipliers(self.beta, degree, dimension)
        return multipliers / multipliers[..., :1]


@dataclass(frozen=True)
class Kuramoto(ZonalDrift):
    """Kuramoto's drift v(x) = P_x int y dmu(y): attention at beta = 0."""

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.ones(())

    def slope(self, t: np.ndarray) -> np.ndarray:
        return np.ones_like(t)

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        return t

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        weights = np.zeros(degree + 1)
        weights[1:2] = 1 / dimension
        return weights


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

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.abs(self._slope(np.linspace(-1, 1, 513))).max()

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
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
