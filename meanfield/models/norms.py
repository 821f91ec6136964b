"""Layer normalisations of networks: maps of hidden states in R^d, with gain, bias and epsilon."""

from abc import abstractmethod

import numpy as np

from ..core.annotations import Parameters
from ..core.checks import require
from ..core.forms import NonNegative
from ..core.kinds import Kind
from .parameters import Bias, at, changing, jumps_of, sizes_of


class Norm(Kind, family=True):
    """A map of hidden states, token by token; `PreLN` and `PostLN` take one for each sublayer."""

    @abstractmethod
    def __call__(self, x: np.ndarray, t: float = 0.0) -> np.ndarray:
        """The normalised states, of states x (..., d) at the time t."""

    @property
    def _array_parameters(self) -> Parameters:
        """The gain and the bias of the norm that are given, by name."""
        arrays = {name: getattr(self, name, None) for name in ("gain", "bias")}
        return {name: value for name, value in arrays.items() if value is not None}

    def validate(self) -> None:
        for name, value in self._array_parameters.items():
            if value.shape is not None:
                require(f"{name}.shape", value.shape, "(d,)", len(value.shape) == 1)
        self.dimension  # noqa: B018  (raises if gain and bias differ)

    @property
    def dimension(self) -> int | None:
        """The dimension d of hidden states; None where neither gain nor bias tells it."""
        shapes = {name: value.shape for name, value in self._array_parameters.items()}
        return sizes_of(dict.fromkeys(shapes, "d"), shapes).get("d")

    @property
    def constant(self) -> bool:
        """Whether no parameter depends on time."""
        return not changing(self._array_parameters)

    @property
    def autonomous(self) -> bool:
        """Whether the norm is independent of time between two breakpoints."""
        return all(value.piecewise_constant for value in changing(self._array_parameters).values())

    def breakpoints(self) -> tuple[float, ...]:
        """Times at which a parameter jumps."""
        return tuple(jumps_of(self._array_parameters, -np.inf, np.inf).tolist())


class LayerNorm(Norm):
    """(x - mean x) / sqrt(variance of x + eps) * gain + bias, over the d coordinates of x.

    Parameters
    ----------
    gain, bias : array, (d,), PerLayer, or callable, optional
        1 and 0 by default.
    eps : float
        >= 0; 0 by default. Networks have 1e-12 (BERT) or 1e-5 (GPT-2).

    Raises
    ------
    ValueError, TypeError
        For arrays that are no finite vectors of one dimension, or a negative eps.

    References
    ----------
    Ba, Kiros and Hinton, arXiv:1607.06450, equations (3) and (4).
    """

    gain: Bias | None = None
    bias: Bias | None = None
    eps: NonNegative = 0.0

    def __call__(self, x: np.ndarray, t: float = 0.0) -> np.ndarray:
        y = standardised(x, self.eps, centred=True)
        y = y if self.gain is None else y * at(self.gain, t)
        return y if self.bias is None else y + at(self.bias, t)


class RMSNorm(Norm):
    """x / sqrt(mean of x^2 + eps) * gain, over the d coordinates of x.

    Parameters
    ----------
    gain : array, (d,), PerLayer, or callable, optional
        1 by default.
    eps : float
        >= 0; 0 by default. Networks have 1e-6 or 1e-5 (Llama).

    Raises
    ------
    ValueError, TypeError
        For a gain that is no finite vector, or a negative eps.

    References
    ----------
    Zhang and Sennrich, arXiv:1910.07467, equation (4).
    """

    gain: Bias | None = None
    eps: NonNegative = 0.0

    def __call__(self, x: np.ndarray, t: float = 0.0) -> np.ndarray:
        y = standardised(x, self.eps, centred=False)
        return y if self.gain is None else y * at(self.gain, t)


def standardised(x: np.ndarray, eps: float, *, centred: bool) -> np.ndarray:
    """c / sqrt(mean of c^2 + eps), c = x, less its mean where `centred`; of x's precision."""
    if centred:
        x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
