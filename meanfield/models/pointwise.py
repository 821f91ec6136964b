"""Drifts that are functions of points: v(x) = P_x f(x) on the sphere, f(x) in R^d."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY
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


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """x (1 + tanh(u))/2 with u = sqrt(2/pi) (x + 0.044715 x^3), which approximates `gelu`."""
    return x * _sigmoid(_twice_u(x))


def silu(x: np.ndarray) -> np.ndarray:
    """x/(1 + e^-x)."""
    return x * _sigmoid(x)


def quick_gelu(x: np.ndarray) -> np.ndarray:
    """x/(1 + e^(-1.702 x))."""
    return x * _sigmoid(1.702 * x)


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + e^x)."""
    return np.logaddexp(0, x)


def _gelu_slope(x: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(x) + x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return expit(x)


def _twice_u(x: np.ndarray) -> np.ndarray:
    return np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)


def _gelu_tanh_slope(x: np.ndarray) -> np.ndarray:
    return _gated_slope(x, _twice_u(x), np.sqrt(8 / np.pi) * (1 + 3 * 0.044715 * x**2))


def _gated_slope(x: np.ndarray, y: np.ndarray, rate: np.ndarray | float) -> np.ndarray:
    """The slope of x sigmoid(y), where y changes at this rate."""
    s = _sigmoid(y)
    return s + x * rate * s * (1 - s)


ACTIVATIONS: dict[str, Callable] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "quick_gelu": quick_gelu,
    "softplus": softplus,
    "tanh": np.tanh,
}
SLOPES: dict[Callable, Callable] = {
    relu: lambda x: (x > 0).astype(float),
    gelu: _gelu_slope,
    gelu_tanh: _gelu_tanh_slope,
    silu: lambda x: _gated_slope(x, x, 1.0),
    quick_gelu: lambda x: _gated_slope(x, 1.702 * x, 1.702),
    softplus: _sigmoid,
    np.tanh: lambda x: 1 - np.tanh(x) ** 2,
}
NAMED = ", ".join(f'"{name}"' for name in ACTIVATIONS) + ", or in Python a function"
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
    """f(x) = outer activation(inner x + bias) + outer_bias, token by token.

    With a `gate`, as in SwiGLU, it is outer (activation(gate x) * (inner x + bias)) + outer_bias.
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
        Of arrays; `relu` by default. In files "relu", "gelu", "gelu_tanh", "silu", "quick_gelu",
        "softplus" or "tanh".
    outer_bias : array, (d,), optional
        Added to the result; none by default.
    gate : array, (k, d), or number, optional
        Where it is given, the activation is that of gate x, and multiplies inner x + bias
        coordinate by coordinate.

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
    _: KW_ONLY
    outer_bias: Array | None = None
    gate: Weight | None = None

    def validate(self) -> None:
        if any(matrix.shape is None for matrix in self._matrices.values()):  # not known yet
            return
        shapes = {name: matrix.shape for name, matrix in self._matrices.items()}
        shapes["outer"] = shapes["outer"][::-1]
        given = {shape for shape in shapes.values() if shape}
        shape = next(iter(given), ())
        fit = len(given) <= 1 and len(shape) in (0, 2)
        fit = fit and (() not in shapes.values() or len(set(shape)) <= 1)  # a number is square
        width, d = shape[:1], shape[1:]
        bias: Any = np.zeros(width) if self.bias is None else self.bias
        if not fit or (bias.shape != width and (shape or bias.ndim > 1)):
            gate = {name: shape for name, shape in shapes.items() if name == "gate"}
            raise ValueError(
                "FeedForward expects inner (k, d), outer (d, k) and bias (k,), where a number "
                "stands for a square matrix, and a gate (k, d) if any; got "
                f"{self.inner.shape}, {self.outer.shape} and {bias.shape}"
                + (f", gate {gate['gate']}." if gate else ".")
            )
        if self.outer_bias is not None:
            d, found = d or bias.shape, self.outer_bias.shape
            if len(found) > 1 or (d and found != d):
                raise ValueError(
                    "FeedForward expects outer_bias of shape (d,), a number for each coordinate of "
                    f"the tokens; got {found}" + (f" for d = {d[0]}." if d else ".")
                )
        self._set(bias=bias)

    @property
    def _matrices(self) -> dict[str, Any]:
        gate = {} if self.gate is None else {"gate": self.gate}
        return {"inner": self.inner, "outer": self.outer, **gate}

    @property
    def dimension(self) -> int | None:
        """d; None where numbers fit any, or matrices are not known yet."""
        shapes = {name: matrix.shape for name, matrix in self._matrices.items()}
        if None in shapes.values():
            return None
        shapes["outer"] = shapes["outer"][::-1]
        biases = [bias.shape for bias in (self.outer_bias, self.bias) if bias is not None]
        told = [d for shape in shapes.values() for d in shape[1:]]
        told += [d for shape in biases for d in shape]
        return told[0] if told else None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        hidden = _times(self.inner, x) + self.bias
        if self.gate is None:
            found = _times(self.outer, self.activation(hidden))
        else:
            found = _times(self.outer, self.activation(_times(self.gate, x)) * hidden)
        return found if self.outer_bias is None else found + self.outer_bias

    def along(self, x: np.ndarray, dx: np.ndarray) -> np.ndarray:
        """The derivative in directions dx; 0 is the slope of relu at 0."""
        hidden, change = _times(self.inner, x) + self.bias, _times(self.inner, dx)
        if self.gate is None:
            return _times(self.outer, self._slope(hidden) * change)
        opened, opening = _times(self.gate, x), _times(self.gate, dx)
        by_gate = self._slope(opened) * opening * hidden
        return _times(self.outer, by_gate + self.activation(opened) * change)

    def _slope(self, hidden: np.ndarray) -> np.ndarray:
        if self.activation in SLOPES:
            return SLOPES[self.activation](hidden)
        return derivative_at_zero(lambda h: self.activation(hidden + h), "FeedForward.activation")


def _times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Each row of x times a matrix, or a number."""
    return x @ matrix.T if matrix.ndim else matrix * x
