"""Activations of feed-forward maps: functions of arrays, each with its slope and its name in files.

They keep single precision: of float32 arrays they are float32 arrays.
"""

import math

import numpy as np

from ..core.annotations import Function
from ..core.dual import differentiable

ERF = np.array(
    [
        *(1.12837971, 0.102765482, -1.84384127e-4, -6.25719015e-4),
        *(8.97122806e-5, -5.98561851e-6, 1.58954308e-7),
    ],
    np.float32,
)


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0)."""
    return np.maximum(x, 0)


def gelu(x: np.ndarray) -> np.ndarray:
    """x Phi(x), Phi the distribution function of N(0, 1)."""
    from scipy.special import ndtr

    if getattr(x, "dtype", None) == np.float32:
        return x * (1 + single_erf(x * math.sqrt(0.5))) / 2
    return x * ndtr(x)


def single_erf(x: np.ndarray) -> np.ndarray:
    """erf to 2e-7 in single precision, several times as fast as scipy's: tanh(x P(x^2)).

    P is the polynomial of least error of tanh for |x| <= 4, beyond which erf is 1 to rounding.
    """
    x = np.clip(x, np.float32(-4), np.float32(4))
    square, power = x * x, np.full_like(x, ERF[-1])
    for coefficient in ERF[-2::-1]:
        power *= square
        power += coefficient
    power *= x
    return np.tanh(power, out=power)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """x (1 + tanh(u))/2 with u = sqrt(2/pi) (x + 0.044715 x^3), which approximates `gelu`."""
    return x * sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * (x * x * x)))  # of 2 u


def silu(x: np.ndarray) -> np.ndarray:
    """x/(1 + e^-x)."""
    return x * sigmoid(x)


def quick_gelu(x: np.ndarray) -> np.ndarray:
    """x/(1 + e^(-1.702 x))."""
    return x * sigmoid(1.702 * x)


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + e^x)."""
    return np.logaddexp(0, x)


@differentiable(lambda x, dx, y: dx * (y * (1 - y)))
def sigmoid(x: np.ndarray) -> np.ndarray:
    """1/(1 + e^-x)."""
    with np.errstate(over="ignore"):  # 1/inf is 0
        return 1 / (1 + np.exp(-x))


ACTIVATIONS: dict[str, Function] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "quick_gelu": quick_gelu,
    "softplus": softplus,
    "tanh": np.tanh,
}
