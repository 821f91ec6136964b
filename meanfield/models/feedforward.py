"""The feed-forward sub-layer: the same perceptron for every token."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.checks import real_array
from .plain import packed, unpacked

__all__ = ["FeedForward", "relu"]


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0)."""
    return np.maximum(x, 0)


ACTIVATIONS: dict[str, Callable] = {"relu": relu, "tanh": np.tanh}


class FeedForward:
    """f(x) = outer activation(inner x + bias), token by token.

    Parameters
    ----------
    inner : array, (k, d)
    outer : array, (d, k)
    bias : array, (k,), optional
        0 by default.
    activation : callable
        Of arrays; `relu` by default.

    Raises
    ------
    TypeError, ValueError
        If the shapes do not fit together, or entries are not finite.
    """

    def __init__(self, inner, outer, bias=None, activation: Callable = relu):
        self.inner, self.outer = real_array("inner", inner), real_array("outer", outer)
        width = self.inner.shape[0] if self.inner.ndim == 2 else -1
        self.bias = real_array("bias", np.zeros(max(width, 0)) if bias is None else bias)
        fit = self.inner.ndim == 2 and self.outer.shape == self.inner.shape[::-1]
        if not fit or self.bias.shape != (width,):
            raise ValueError(
                "FeedForward expects inner (k, d), outer (d, k) and bias (k,); got "
                f"{self.inner.shape}, {self.outer.shape} and {self.bias.shape}."
            )
        if not all(np.isfinite(a).all() for a in (self.inner, self.outer, self.bias)):
            raise ValueError("FeedForward expects finite weights; some are nan or infinite.")
        if not callable(activation):
            raise TypeError(f"activation is a function of arrays; got {activation!r}.")
        self.activation = activation

    @property
    def dimension(self) -> int:
        """d."""
        return self.inner.shape[1]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.activation(x @ self.inner.T + self.bias) @ self.outer.T

    def describe(self) -> dict[str, Any]:
        """The perceptron as plain data; an activation of another make by its name."""
        names = {f: name for name, f in ACTIVATIONS.items()}
        own = {"callable": getattr(self.activation, "__qualname__", repr(self.activation))}
        return {
            "inner": packed(self.inner),
            "outer": packed(self.outer),
            "bias": packed(self.bias),
            "activation": names.get(self.activation, own),
        }

    @classmethod
    def from_description(
        cls, described: dict[str, Any], activation: Callable | None = None
    ) -> "FeedForward":
        """The perceptron that `describe` described, with this activation if it is not ours."""
        arrays = {name: unpacked(described[name]) for name in ("inner", "outer", "bias")}
        return cls(**arrays, activation=activation or ACTIVATIONS[described["activation"]])

    def __repr__(self) -> str:
        return f"FeedForward(d={self.dimension}, width={self.inner.shape[0]})"
