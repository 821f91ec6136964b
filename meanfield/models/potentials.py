"""Zonal drifts given by a potential W: of attention, and any other.

    USA            W = exp(beta t) / beta               Z = 1
    SA             W = exp(beta t) / beta               Z = exp(beta t)
    Kuramoto       W = t                                Z = 1
    Interaction    W a function of t                    Z = 1
    CosineSeries   W a series of cosines of the angle   Z = 1

with t = <x, y>. SA is grad (1/beta) log(exp(beta t) * mu).
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, field
from functools import partial
from typing import ClassVar

import numpy as np

from ..core.annotations import Function, UserValue
from ..core.cached import cached_property
from ..core.checks import require
from ..core.forms import Array, Positive
from ..spaces.kernels import (
    exponential_multipliers,
    polynomial_multipliers,
    quadrature_multipliers,
    values_at,
)
from .drift import Ensemble
from .zonal import ROUNDED_COEFFICIENT, ZonalDrift, remembered, slope_of

FILE_DEGREE = 4096  # degree of the series that files hold
SMALL_LOGARITHM = -40.0  # log x below which 1 - e^-x is x to rounding


class _Exponential(ZonalDrift):
    multiplier_error = 0.0

    beta: Ensemble

    @property
    def exponent(self) -> np.ndarray:  # type: ignore[override]
        return self.beta

    def contrast(self, log_gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sign, and logarithm of the modulus, of e^(beta gap) - 1."""
        beta = self.beta
        with np.errstate(divide="ignore"):
            log_size = log_gap + np.log(np.abs(beta))
            size = np.exp(log_size)
            logs = np.where(log_size < SMALL_LOGARITHM, log_size, np.log(-np.expm1(-size)))
        sign = np.sign(beta * np.ones_like(log_gap))
        return sign, logs + np.where(sign > 0, size, 0.0)

    def potential(self, t: np.ndarray) -> np.ndarray:
        """exp(beta t) / beta, infinite where it overflows; t at beta = 0."""
        beta = self.beta
        with np.errstate(over="ignore"):
            return np.where(beta == 0, t, np.exp(beta * t) / np.where(beta == 0, 1.0, beta))

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        return self.potential(t)

    @remembered
    def _of_exponential(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of exp(beta t), infinite where exp(|beta|) overflows."""
        with np.errstate(over="ignore"):
            scale = np.exp(np.abs(self.beta))[..., None]
            return exponential_multipliers(self.beta, degree, dimension) * scale

    def _over_beta(self, multipliers: np.ndarray, dimension: int) -> np.ndarray:
        """The multipliers divided by beta in degrees >= 1, with 0 in degree 0.

        For |beta| < 1e-300, where multipliers have lost their digits, the limit at beta = 0 is
        used: 1/d in degree 1.
        """
        beta = np.where(np.abs(self.beta) < 1e-300, 0.0, self.beta)[..., None]
        beta = np.broadcast_to(beta, multipliers.shape)
        quotient = np.zeros_like(multipliers)
        np.divide(multipliers, beta, out=quotient, where=beta != 0)
        quotient[..., 0] = 0
        quotient[..., 1:2] = np.where(beta[..., 1:2] == 0, 1 / dimension, quotient[..., 1:2])
        return quotient

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of exp(beta t)/beta; at beta = 0 of t, its limit without the constant.

        Infinite where exp(|beta|) overflows.
        """
        beta, multipliers = self.beta, self._of_exponential(degree, dimension)
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

    Notes
    -----
    The interaction energy has the constant 1/(2 beta), since W = exp(beta t)/beta. It is part of
    the free energy, whose rounding errors are 1e-16 of it: at |beta| = 1e-10 differences of free
    energies are known to 1e-6 only. Kuramoto, the limit, has W = t and no constant. Velocities,
    dissipation and stationary states lose nothing.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, equation (USA).
    """

    def validate(self) -> None:
        super().validate()
        if any((np.abs(beta) > 700).any() for beta in self.parameters.values()):
            raise ValueError(
                "USA(beta) needs |beta| <= 700, or exp(beta) overflows; got beta = "
                f"{self.beta.tolist()}. SA takes any beta."
            )

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.exp(np.abs(self.beta))

    def slope(self, t: np.ndarray) -> np.ndarray:
        return np.exp(self.beta * t)

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        return self._over_beta(self._of_exponential(degree, dimension), dimension)


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

    def rate(self, t: float = 0.0) -> np.ndarray:
        return 1 + np.abs(self.beta) / 2

    def slope(self, t: np.ndarray) -> np.ndarray:
        exponent = self.beta * t
        with np.errstate(over="ignore"):  # to e^-inf, which is 0
            return np.exp(exponent - exponent.max(axis=-1, keepdims=True))

    weight = slope

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        return self._over_beta(self.normaliser(degree, dimension), dimension)

    @remembered
    def normaliser(self, degree: int, dimension: int) -> np.ndarray:
        multipliers = exponential_multipliers(self.beta, degree, dimension)
        first = multipliers[..., :1]  # which underflows in high dimension where beta is huge
        ratio = np.copysign(1.0, multipliers)
        return np.divide(multipliers, first, out=ratio, where=first > 0)


class Kuramoto(ZonalDrift):
    """Kuramoto's drift v(x) = P_x int y dmu(y): attention at beta = 0."""

    exponent = np.zeros(())
    polynomial_degree = 1
    multiplier_error = 0.0

    def slope(self, t: np.ndarray) -> np.ndarray:
        return np.ones_like(t)

    def contrast(self, log_gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros_like(log_gap), np.full_like(log_gap, -np.inf)

    def potential(self, t: np.ndarray) -> np.ndarray:
        return t

    potential_at = potential

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        weights = np.zeros(degree + 1)
        weights[1:2] = 1 / dimension
        return weights

    interaction = attraction


class _OfPotential(ZonalDrift):
    """The drift v = grad (W * mu) for a given W; `derivative`, if given, is W'."""

    derivative: ClassVar[Function | None] = None

    @cached_property
    def _potential(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.potential

    @cached_property
    def _slope(self) -> Callable[[np.ndarray], np.ndarray]:
        if self.derivative is None:
            return slope_of(self._potential)
        return partial(values_at, "derivative", self.derivative)

    def slope(self, t: np.ndarray) -> np.ndarray:
        """W' at inner products, clipped to [-1, 1] against rounding."""
        return self._slope(np.minimum(np.maximum(t, -1.0), 1.0))

    def why_not_finite(self, x: np.ndarray) -> str:
        if self.derivative is None:
            return super().why_not_finite(x)
        return (
            f"the derivative of the {type(self).__name__} is not finite at inner products of these "
            "tokens. Expected W'(t), finite for -1 < t < 1."
        )

    def identity(self) -> object:
        return self.described  # the functions identify the drift


def _check_argument(name: str, function: UserValue) -> None:
    """Raise TypeError for a function that cannot be called with t alone."""
    try:
        signature = None if function is None else inspect.signature(function)
    except ValueError:  # a function in C without a signature
        return
    try:
        if signature is not None:
            signature.bind(0.0)
    except TypeError as error:
        raise TypeError(
            f"{name} must be a function of t alone, an array of inner products <x, y>; got one of "
            f"{signature}: {error}. A kernel of two points is no Interaction."
        ) from None


class Interaction(_OfPotential, hides=("potential", "derivative")):
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
    Files hold the `CosineSeries` of the potential, up to degree 4096, without the last coefficients
    if they are below 1e-15 of the largest: those are rounding errors.

    Examples
    --------
    Doi-Onsager: ``Interaction(lambda t: -np.sqrt(1 - t**2))``.
    """

    potential: Function = field()
    name: str = ""
    tolerance: Positive = 1e-14
    _: KW_ONLY
    derivative: Function | None = None  # type: ignore[misc]

    def validate(self) -> None:
        W: UserValue = self.potential
        _check_argument("potential", W)
        _check_argument("derivative", self.derivative)
        self._set(name=self.name or getattr(W, "__qualname__", type(W).__qualname__))

    @staticmethod
    def chebyshev(coefficients: Sequence[float], name: str = "") -> "CosineSeries":
        """W(cos theta) = sum_k coefficients_k cos(k theta): see `CosineSeries`."""
        return CosineSeries(coefficients, name)

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        """W at inner products, clipped to [-1, 1] against rounding."""
        return values_at("potential", self.potential, np.minimum(np.maximum(t, -1.0), 1.0))

    @remembered
    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        return quadrature_multipliers(self.potential, degree, dimension, tolerance=self.tolerance)

    interaction = attraction

    def stored_kind(self) -> ZonalDrift:
        """The cosine series that files store in place of the potential.

        It carries `derivative` in memory; a file does not store that function.
        """
        multipliers = quadrature_multipliers(
            self.potential, FILE_DEGREE, 2, tolerance=self.tolerance
        )
        series = np.where(np.arange(FILE_DEGREE + 1) == 0, 1.0, 2.0) * multipliers
        significant = np.flatnonzero(np.abs(series) > ROUNDED_COEFFICIENT * np.abs(series).max())
        significant_series = series[: significant[-1] + 1] if significant.size else series[:1]
        return CosineSeries(significant_series, self.name, self.derivative)

    def __repr__(self) -> str:
        return f"Interaction({self.name})"


class CosineSeries(_OfPotential, hides=("derivative",)):
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
    derivative: Function | None = None  # type: ignore[misc]

    def validate(self) -> None:
        _check_argument("derivative", self.derivative)
        shape = self.coefficients.shape
        require("coefficients.shape", shape, "(n,), n >= 1", len(shape) == 1 and shape[0])

    @cached_property
    def _potential(self) -> np.polynomial.Chebyshev:
        return np.polynomial.Chebyshev(self.coefficients)

    def potential(self, t: np.ndarray) -> np.ndarray:
        return self._potential(t)

    @remembered
    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        series = self._potential
        return polynomial_multipliers(series, series.degree(), degree, dimension)

    interaction = attraction

    @property
    def polynomial_degree(self) -> int:  # type: ignore[override]
        return int(self._potential.trim().degree())
