"""The sublayers that architectures share: normalisations, activations, attention, rotations."""

import numpy as np
from scipy.special import erf, expit

ERF = np.array(
    [
        *(1.12837971, 0.102765482, -1.84384127e-4, -6.25719015e-4),
        *(8.97122806e-5, -5.98561851e-6, 1.58954308e-7),
    ],
    np.float32,
)


def layer_norm(x, gain, bias, epsilon):
    """(x - mean) / sqrt(variance + epsilon) * gain + bias."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + epsilon) * gain + bias


def rms_norm(x, gain, epsilon):
    """x / sqrt(mean of squares + epsilon) * gain."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon) * gain


def gelu(x):
    """x times the distribution function of a normal variable."""
    z = x / x.dtype.type(np.sqrt(2))
    return x * (1 + (single_erf(z) if x.dtype == np.float32 else erf(z))) / 2


def single_erf(x):
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


def gelu_tanh(x):
    """The approximation of `gelu` by tanh."""
    return x * (1 + np.tanh(x.dtype.type(np.sqrt(2 / np.pi)) * (x + 0.044715 * x**3))) / 2


def relu(x):
    """The positive part."""
    return np.maximum(x, 0)


def silu(x):
    """x times the logistic function."""
    return x * expit(x)


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": relu,
    "silu": silu,
    "swish": silu,
}


def by_heads(x, heads):
    """(n, heads * d) to (heads, n, d)."""
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def attend(queries, keys, values, *, causal):
    """Softmax attention by heads (heads, n, d): what it gives, (n, heads * d), and its weights.

    Fewer heads of keys and values than of queries are shared by as many neighbours.
    """
    heads, n, d = queries.shape
    keys, values = (np.repeat(a, heads // len(a), axis=0) for a in (keys, values))
    weights = queries @ keys.swapaxes(1, 2) / queries.dtype.type(np.sqrt(d))
    if causal:
        weights[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ values).swapaxes(0, 1).reshape(n, -1), weights


def rotated(x, base):
    """Queries or keys (heads, n, d), halves turned by position * base^(-2 k/d)."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] * base ** (-np.arange(half) / half)
    cosine, sine = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)
