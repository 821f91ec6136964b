"""Multiplicative noise: how strongly a token is shaken depends on where it is."""

from collections.abc import Callable

import numpy as np

from ...core.checks import real_array
from ...core.errors import MeanfieldError
from .contract import Noise

__all__ = ["MultiplicativeIto", "MultiplicativeStratonovich"]

LONGEST = 100.0  # radians: far beyond any accuracy, and e^710 overflows
SHIFT = 6e-6  # of central differences: (rounding)^(1/3), where their two errors balance


class MultiplicativeStratonovich(Noise):
    """dX_i = sqrt(2/kappa) scale(X_i) P_X o dB_i, B_i independent Brownian motions of R^d.

    The generator is L/kappa with the fields V_k(x) = scale(x) P_x e_k,

        L f = sum_k V_k^2 f = scale^2 Lap f + scale <grad scale, grad f>

    and without a drift the stationary density is proportional to 1/scale. One step is the
    composition of the flows of V_1, ..., V_d for random times sqrt(2 s) xi_k, xi_k standard
    normal, in this order or the reverse one with probability 1/2 for each token (Ninomiya and
    Victoir). A flow follows the great circle from x to e_k: only the time tau that P_x e_k needs
    for the way is unknown, and tau' = scale(x(tau)) is solved by the classical Runge-Kutta
    method. Its error, odd in xi_k to leading order, has the mean O(s^3): weak order 2.

    Parameters
    ----------
    scale : callable
        Takes unit vectors (..., d), returns finite numbers (...) >= 0. Four times differentiable,
        or the order is lower. It must not write into its argument.

    Raises
    ------
    TypeError
        If scale is not callable, or its values are not real.
    ValueError
        On a step, if the values have another shape, are negative or not finite.
    MeanfieldError
        On a step that moves tokens by more than 100 radians.

    Notes
    -----
    Increments: (R, n, d + 1) normals, xi_1, ..., xi_d and one whose sign is the order. A step
    takes 4 d evaluations of scale for all tokens.

    References
    ----------
    Ninomiya and Victoir, Appl. Math. Finance 15 (2008), 107-121.
    """

    scale: Callable

    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        return (replicas, n, d + 1)

    def _moved(self, x, s, increments):
        d = x.shape[2]
        times = np.sqrt(2 * s)[:, None, None] * increments
        reverse = increments[..., d:] > 0
        for step in range(d):
            axis = np.where(reverse, d - 1 - step, step)
            time = np.take_along_axis(times, axis, axis=2)[..., 0]
            x = _towards(x, axis, self._travel(x, axis, time))
        return x

    def _travel(self, x, axis, time):
        """tau at `time` of tau' = scale(x(tau)), tau = 0 at 0, by one step of Runge-Kutta."""
        first = self.values(x)
        second = self.values(_towards(x, axis, time / 2 * first))
        third = self.values(_towards(x, axis, time / 2 * second))
        fourth = self.values(_towards(x, axis, time * third))
        return time / 6 * (first + 2 * second + 2 * third + fourth)

    def values(self, x: np.ndarray) -> np.ndarray:
        """scale(x) for unit vectors (..., d), checked."""
        values = _checked("scale", self.scale(x), x.shape[:-1])
        if (values < 0).any():
            raise ValueError(
                f"scale must be >= 0, a standard deviation; got {values.min():.6g} at "
                f"{x[values < 0][0].tolist()}."
            )
        return values


class MultiplicativeIto(Noise):
    """dX_i = sqrt(2/kappa) scale(X_i) dW_i in the sense of Ito: L f = scale^2 Lap f.

    Without a drift the stationary density is proportional to 1/scale^2. It is Stratonovich's
    equation with the drift -(1/kappa) scale grad scale, whose flow, by the midpoint rule, takes
    half of the time before a step of `MultiplicativeStratonovich` and half after: weak order 2.

    Parameters
    ----------
    scale : callable
        Takes unit vectors (..., d), returns finite numbers (...) >= 0. It must not write into
        its argument.
    gradient : callable, optional
        The gradient of any extension of scale to R^d: takes unit vectors (..., d), returns
        (..., d), of which the tangential part is used. By default central differences of
        scale((x + h e_k)/|x + h e_k|), 2 d evaluations, h = 6e-6: their error is
        h^2 |third derivative|/6 plus 2e-11 |scale|, of rounding.

    Raises
    ------
    TypeError
        If scale or gradient is not callable, or values are not real.
    ValueError
        On a step, if values have another shape or are not finite, or the scale is negative.
    MeanfieldError
        On a step that moves tokens by more than 100 radians.

    Notes
    -----
    Increments as for `MultiplicativeStratonovich`. A step takes 4 d + 4 evaluations of scale and
    4 of the gradient, for all tokens.
    """

    scale: Callable
    gradient: Callable | None = None

    @property
    def stratonovich(self) -> MultiplicativeStratonovich:
        """The noise with the same scale in the sense of Stratonovich."""
        return MultiplicativeStratonovich(self.scale)

    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        return self.stratonovich.increments_shape(replicas, n, d)

    def _moved(self, x, s, increments):
        half = s[:, None, None] / 2
        x = self._descended(x, half)
        x = self.stratonovich._moved(x, s, increments)
        return self._descended(x, half)

    def _descended(self, x, time):
        """The flow of -scale grad scale for a time, by the midpoint rule."""
        middle = _unit(x + _bounded(time / 2 * self._descent(x)))
        return _unit(x + _bounded(time * self._descent(middle)))

    def _descent(self, x):
        gradient = self._gradient(x)
        tangential = gradient - (gradient * x).sum(axis=-1, keepdims=True) * x
        return -self.stratonovich.values(x)[..., None] * tangential

    def _gradient(self, x):
        if self.gradient is not None:
            return _checked("gradient", self.gradient(x), x.shape)
        values, shifts = self.stratonovich.values, SHIFT * np.eye(x.shape[-1])
        return np.stack(
            [(values(_unit(x + h)) - values(_unit(x - h))) / (2 * SHIFT) for h in shifts], axis=-1
        )


def _towards(x, axis, tau):
    """The flow of P_x e_k for times tau (...); x (..., d), k = axis (..., 1)."""
    component = np.take_along_axis(x, axis, axis=-1)
    cosh, sinh = np.cosh(_bounded(tau))[..., None], np.sinh(tau)[..., None]
    result = x.copy()
    np.put_along_axis(result, axis, component * cosh + sinh, axis=-1)
    return _unit(result)


def _bounded(moves):
    """The moves of tokens, if they are short enough to mean anything."""
    longest = np.abs(moves).max(initial=0.0)
    if not longest <= LONGEST:
        raise MeanfieldError(
            f"A step of noise that moves tokens by {longest:.3g}, in radians, is too long to mean "
            f"anything; expected at most {LONGEST:g}, and much less than 1 to be accurate. "
            "Shorten dt."
        )
    return moves


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _checked(what, values, shape):
    """A user's values, as floats of this shape."""
    values = real_array(f"Values of {what}", values)
    if values.shape != shape:
        raise ValueError(
            f"{what} must return an array of shape {shape} here; got {values.shape}. It is called "
            "with unit vectors (..., d): write x[..., k] for a component."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{what} must be finite on the whole sphere; got infinite values or nan.")
    return values
