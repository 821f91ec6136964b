"""Drifts that are functions of points: v(x) = P_x f(x) on the sphere, f(x) in R^d."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np

from ..core.checks import fitting, real_array
from ..core.differences import derivative_at_zero
from ..core.forms import ARRAY, Array, Either, Leaf
from ..core.kinds import KindOf
from .drift import Drift
from .parameters import GivenMatrix


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0)."""
    return np.maximum(x, 0)


def gelu(x: np.ndarray) -> np.ndarray:
    """x Phi(x), Phi the distribution function of N(0, 1)."""
    from scipy.special import ndtr

    return x * ndtr(x)


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + e^x)."""
    return np.logaddexp(0, x)


def _gelu_slope(x: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(x) + x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def _softplus_slope(x: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return expit(x)


ACTIVATIONS: dict[str, Callable] = {
    "relu": relu,
    "gelu": gelu,
    "softplus": softplus,
    "tanh": np.tanh,
}
SLOPES: dict[Callable, Callable] = {
    relu: lambda x: (x > 0).astype(float),
    gelu: _gelu_slope,
    softplus: _softplus_slope,
    np.tanh: lambda x: 1 - np.tanh(x) ** 2,
}
NAMED = '"relu", "gelu", "softplus" or "tanh", or in Python a function'
ACTIVATION = Leaf(
    NAMED, lambda name, f: fitting(name, f, NAMED, callable(f), TypeError), {}, ACTIVATIONS
)
Weight = Annotated[Any, Either((ARRAY, KindOf(GivenMatrix)))]


def values_at(name: str, function: Callable, x: np.ndarray) -> np.ndarray:
    """What a function of points (..., d) returns at x, a new array of as many vectors.

    Parameters
    ----------
    name : str
        Of the function, for messages.
    function : callable
        It gets x as an array that it cannot write into.
    x : ndarray, shape (..., d)

    Raises
    ------
    TypeError, ValueError
        Unless it returns real numbers, of the shape of x.
    """
    shown = x.view()
    shown.setflags(write=False)  # it may be the state itself
    values = real_array(f"What {name} returns", function(shown))
    if values.shape != x.shape:
        raise ValueError(
            f"{name} takes points (..., d) and returns as many vectors; got shape "
            f"{values.shape} for {x.shape}."
        )
    return values


def change_of(name: str, function: Callable, x: np.ndarray, dx: np.ndarray) -> np.ndarray:
    """The derivative of a function of points (..., d) in directions dx (p, ..., d) at x.

    What `function` has as a method `along(x, dx)`; else by differences of order 10, from ten values
    or more for each direction, to about 1e-12 where it is smooth at the scale of 1.

    Raises
    ------
    MeanfieldError
        If it is not smooth near these points.
    """
    if hasattr(function, "along"):
        return function.along(x, dx)
    length = np.linalg.norm(dx, axis=-1, keepdims=True)
    unit = dx / np.where(length > 0, length, 1.0)

    def moved(h: float) -> np.ndarray:
        return values_at(name, function, x + h * unit)

    return derivative_at_zero(moved, name, axis=-1) * length


class Pointwise(Drift):
    """A drift that does not depend on the measure: v(x) = P_x f(x) on the sphere, f(x) in R^d.

    A class of one's own needs `__call__`, which is f.
    """

    normalised, interacts = True, False

    @abstractmethod
    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f at points x (..., d), of the same shape."""

    def values(self, x: np.ndarray) -> np.ndarray:
        """f at points x (..., d), checked: TypeError or ValueError unless it is as x is."""
        return values_at(type(self).__name__, self, x)

    def along(self, x: np.ndarray, dx: np.ndarray) -> np.ndarray:
        """The derivative of f at x (..., d) in directions dx (p, ..., d): see `change_of`."""
        return change_of(type(self).__name__, self.__call__, x, dx)

    def rate(self, t: float = 0.0) -> np.ndarray:
        """0: it does not attract tokens to each other."""
        return np.zeros(())

    def known_rate(self, on_sphere: bool) -> bool:
        return False

    def why_not_finite(self, largest: float) -> str:
        return (
            f"{self!r} returned vectors that are not finite, at points with components up to "
            f"{largest:.3g}. Look at what it does to them."
        )


class Field(Pointwise):
    """A vector field that is a function of points: v(x) = P_x f(x) on the sphere, f(x) in R^d.

    Parameters
    ----------
    function : callable
        f of points (..., d), any number of them at once; it returns an array of the same shape.

    Raises
    ------
    TypeError, ValueError
        If it is not a function; where it is evaluated, if it returns no real numbers, or another
        shape.

    Examples
    --------
    Attraction to the first axis: ``Field(lambda x: x * np.array([1.0, 0.0, 0.0]))``.
    """

    function: Callable

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.function(x)

    def values(self, x: np.ndarray) -> np.ndarray:
        return values_at("Field.function", self.function, x)

    def along(self, x: np.ndarray, dx: np.ndarray) -> np.ndarray:
        return change_of("Field.function", self.function, x, dx)


class FeedForward(Pointwise):
    """f(x) = outer activation(inner x + bias), token by token.

    As a drift, or a part of a sum of drifts, it acts beside attention; as
    ``Transformer(..., feedforward=FeedForward(...))`` it is a sublayer after it.

    Parameters
    ----------
    inner : array, (k, d), or number
        First matrix; a number is that multiple of the identity.
    outer : array, (d, k), or number
        Second matrix.
    bias : array, (k,), optional
        0 by default.
    activation : callable
        Of arrays; `relu` by default. In files "relu", "gelu", "softplus" or "tanh".

    Raises
    ------
    TypeError, ValueError
        If the shapes do not fit together, or entries are not finite.
    """

    default_kind: ClassVar[str | None] = "FeedForward"

    inner: Weight
    outer: Weight
    bias: Array | None = None
    activation: Annotated[Callable, ACTIVATION] = relu

    def validate(self) -> None:
        if self.inner.shape is None or self.outer.shape is None:  # not known yet
            return
        inner, outer = self.inner.shape, self.outer.shape[::-1]
        fit = {len(inner), len(outer)} <= {0, 2} and (inner == outer or not (inner and outer))
        shape = inner or outer
        fit = fit and (bool(inner and outer) or len(set(shape)) <= 1)  # a number is square
        width = shape[:1]
        bias: Any = np.zeros(width) if self.bias is None else self.bias
        if not fit or (bias.shape != width and (shape or bias.ndim > 1)):
            raise ValueError(
                "FeedForward expects inner (k, d), outer (d, k) and bias (k,), where a number "
                "stands for a square matrix; got "
                f"{self.inner.shape}, {self.outer.shape} and {bias.shape}."
            )
        self._set(bias=bias)

    @property
    def dimension(self) -> int | None:
        """d; None where numbers fit any, or matrices are not known yet."""
        shapes = self.inner.shape, self.outer.shape
        if None in shapes:
            return None
        of_rows = (*shapes[0][1:], *shapes[1][:1], *(() if self.bias is None else self.bias.shape))
        return of_rows[0] if of_rows else None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return _times(self.outer, self.activation(_times(self.inner, x) + self.bias))

    def along(self, x: np.ndarray, dx: np.ndarray) -> np.ndarray:
        """outer (activation'(inner x + bias) inner dx); 0 is the slope of relu at 0."""
        hidden = _times(self.inner, x) + self.bias
        return _times(self.outer, self._slope(hidden) * _times(self.inner, dx))

    def _slope(self, hidden: np.ndarray) -> np.ndarray:
        if self.activation in SLOPES:
            return SLOPES[self.activation](hidden)
        return derivative_at_zero(lambda h: self.activation(hidden + h), "FeedForward.activation")


def _times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Each row of x times a matrix, or a number."""
    return x @ matrix.T if matrix.ndim else matrix * x
