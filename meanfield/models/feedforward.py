"""The feed-forward sub-layer: the same perceptron for every token."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np

from ..core.forms import ARRAY, FUNCTION, Array, Either, Leaf
from ..core.kinds import Kind, KindOf
from .parameters import GivenMatrix, known

__all__ = ["FeedForward", "relu"]


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0)."""
    return np.maximum(x, 0)


ACTIVATIONS: dict[str, Callable] = {"relu": relu, "tanh": np.tanh}


ACTIVATION = Leaf('"relu" or "tanh", or in Python a function', FUNCTION.accept, {}, ACTIVATIONS)
Weight = Annotated[Any, Either((ARRAY, KindOf(GivenMatrix)))]


class FeedForward(Kind, family=True):
    """f(x) = outer activation(inner x + bias), token by token.

    Parameters
    ----------
    inner : array, (k, d)
        First matrix.
    outer : array, (d, k)
        Second matrix.
    bias : array, (k,), optional
        0 by default.
    activation : callable
        Of arrays; `relu` by default. In files "relu" or "tanh".

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
        if not (known(self.inner) and known(self.outer)):
            return
        width = self.inner.shape[0] if self.inner.ndim == 2 else -1
        if self.bias is None:
            self._set(bias=np.zeros(max(width, 0)))
        fit = self.inner.ndim == 2 and self.outer.shape == self.inner.shape[::-1]
        if not fit or self.bias.shape != (width,):
            raise ValueError(
                "FeedForward expects inner (k, d), outer (d, k) and bias (k,); got "
                f"{self.inner.shape}, {self.outer.shape} and {self.bias.shape}."
            )

    @property
    def dimension(self) -> int:
        """d."""
        return self.inner.shape[1]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.activation(x @ self.inner.T + self.bias) @ self.outer.T
