"""One layer of a network: replayed as it is, and as models of this package.

Replays are in the precision of the weights, models in double precision.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import meanfield as mf

from .sublayers import attend, by_heads, in_rows

ACTIVATIONS: dict[str, Callable[..., Any]] = {  # by their names in config.json
    "gelu": mf.activations.gelu,
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), mf.activations.gelu_tanh),
    "quick_gelu": mf.activations.quick_gelu,
    "relu": mf.activations.relu,
    **dict.fromkeys(("silu", "swish"), mf.activations.silu),
    "tanh": np.tanh,
}


class Affine(NamedTuple):
    """The affine map x -> matrix x + bias, applied to rows x (n, in)."""

    matrix: np.ndarray  # (out, in)
    bias: np.ndarray | None = None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        y = x @ self.matrix.T
        return y if self.bias is None else y + self.bias

    def after(self, norm: "Gain | None") -> "Affine":
        """The composition of `norm` and this map as a map of unit vectors, in double precision.

        The norm of h is sqrt(d) gain x + bias, with x the unit vector of h and epsilon neglected.
        Without a norm the map is only converted.
        """
        matrix = self.matrix.astype(float)
        bias = None if self.bias is None else self.bias.astype(float)
        if norm is None:
            return Affine(matrix, bias)
        if norm.bias is not None:
            bias = matrix @ norm.bias + (0.0 if bias is None else bias)
        return Affine(np.sqrt(matrix.shape[1]) * norm.gain * matrix, bias)


class Gain(NamedTuple):
    """A norm and its parameters: LayerNorm if it has a bias, otherwise RMSNorm."""

    gain: np.ndarray
    bias: np.ndarray | None
    epsilon: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        if self.bias is not None:
            x = x - x.mean(axis=-1, keepdims=True)
        y = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.epsilon) * self.gain
        return y if self.bias is None else y + self.bias

    @property
    def model(self) -> mf.Norm:
        """This norm as one of the package, in double precision."""
        if self.bias is None:
            return mf.RMSNorm(self.gain, self.epsilon)
        return mf.LayerNorm(self.gain, self.bias, self.epsilon)


@dataclass(frozen=True)
class Layer:
    """Layer l of a network: attention, then a feed-forward map, each with its norm.

    Attributes
    ----------
    index : int
        l, from 0.
    maps : dict of Affine
        "query", "key", "value", "output", "inner", "outer", and perhaps "gate".
    norms : pair of Gain
        Norms of attention and of the feed-forward map.
    norms_after : bool
        Whether norms follow the sublayers, as in BERT, or precede them, as in GPT-2 and Llama.
    heads, shared : int
        Number of heads of queries, and of keys and values.
    causal : bool
        Whether a token attends only to itself and earlier tokens.
    activation : str
        Name of the activation in config.json.
    positions : PositionalEncoding, optional
        Positional encoding of queries and keys.
    """

    index: int
    maps: dict[str, Affine]
    norms: tuple[Gain, Gain]
    norms_after: bool
    heads: int
    shared: int
    causal: bool
    activation: str
    positions: mf.PositionalEncoding | None = None

    # Replayed ------------------------------------------------------------------------------

    def steps(
        self, x: np.ndarray, attention: bool
    ) -> Iterator[tuple[str, np.ndarray, np.ndarray | None]]:
        """The residual stream after each sublayer, from x (n, d), in the precision of x.

        Yields (kind, stream (n, d), weights). Weights (heads, n, n) follow the attention sublayer
        if `attention`; otherwise None.
        """
        first, second = self.norms
        mixed, weights = self._attended(x if self.norms_after else first(x), attention)
        x = x + mixed
        yield "attention", x, weights
        if self.norms_after:
            x = first(x)
            yield "normalisation", x, None
        x = x + in_rows(self._fed, x if self.norms_after else second(x))
        yield "mlp", x, None
        if self.norms_after:
            yield "normalisation", second(x), None

    def _attended(self, x: np.ndarray, keep: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Output (n, d) of attention for its input x (n, d), and its weights if `keep`."""
        counts = {"query": self.heads, "key": self.shared, "value": self.shared}
        q, k, v = (by_heads(self.maps[role](x), count) for role, count in counts.items())
        if self.positions is not None:
            q, k = self.positions.turned(q), self.positions.turned(k)
        mixed, weights = attend(q, k, v, causal=self.causal, keep=keep)
        return self.maps["output"](mixed), weights

    def _fed(self, x: np.ndarray) -> np.ndarray:
        """Output of the feed-forward map for rows x (n, d)."""
        inner, activation = self.maps["inner"](x), ACTIVATIONS[self.activation]
        if "gate" not in self.maps:
            return self.maps["outer"](activation(inner))
        return self.maps["outer"](activation(self.maps["gate"](x)) * inner)

    # As models -----------------------------------------------------------------------------

    def model(self) -> mf.Transformer:
        """The whole layer as a model, exact for hidden states ``Tokens(h, on_sphere=False)``.

        ``solve(layer.model(), tokens, (0, 1), scheme=steppers.Layers, dt=1.0)`` moves them as the
        network does.
        """
        placement = mf.PostLN if self.norms_after else mf.PreLN
        return mf.Transformer(
            self._attention(None),
            normalisation=placement(*(norm.model for norm in self.norms)),
            feedforward=self._feed_forward(None),
        )

    def attention(self) -> mf.Attention:
        """The attention of the layer as a drift on the input of its sublayer.

        If norms follow the sublayers, the inputs are hidden states, ``Tokens(h, on_sphere=False)``.
        If they precede them, the input is the unit vector of h (for LayerNorm, of h minus the mean
        of its coordinates). The matrices then contain gain, bias and the factor sqrt(d). Epsilon
        is neglected, a relative change of epsilon d/(2 |h|^2).
        """
        return self._attention(None if self.norms_after else self.norms[0])

    def feed_forward(self) -> mf.FeedForward:
        """The feed-forward map of the layer on the input of its sublayer: see `attention`."""
        return self._feed_forward(None if self.norms_after else self.norms[1])

    def _attention(self, norm: Gain | None) -> mf.Attention:
        """Attention as a drift; its matrices contain `norm`, if given, as in `Affine.after`."""
        options: dict[str, Any] = {}
        for role, name in (("query", "Q"), ("key", "K"), ("value", "V")):
            part = self.maps[role].after(norm)
            options[name] = self._by_heads(part.matrix)
            if part.bias is not None:
                options[f"{name}_bias"] = self._by_heads(part.bias)
        output = self.maps["output"].after(None)
        size = options["V"].shape[1]
        if output.bias is not None:
            options["output_bias"] = output.bias
        return mf.Attention(
            **options,
            output=output.matrix.reshape(-1, self.heads, size).swapaxes(0, 1),
            beta=1 / math.sqrt(options["Q"].shape[1]),
            causal=self.causal,
            positions=self.positions,
        )

    def _by_heads(self, array: np.ndarray) -> np.ndarray:
        """(heads * k, ...) as (heads, k, ...), with shared heads repeated."""
        size = self.maps["query"].matrix.shape[0] // self.heads
        split = array.reshape(-1, size, *array.shape[1:])
        return np.repeat(split, self.heads // len(split), axis=0)

    def _feed_forward(self, norm: Gain | None) -> mf.FeedForward:
        """The feed-forward map; its matrices contain `norm`, if given, as in `Affine.after`."""
        inner, outer = self.maps["inner"].after(norm), self.maps["outer"].after(None)
        gate = self.maps["gate"].after(norm) if "gate" in self.maps else Affine(np.empty(0))
        return mf.FeedForward(
            inner.matrix,
            outer.matrix,
            inner.bias,
            ACTIVATIONS[self.activation],
            outer_bias=outer.bias,
            gate=gate.matrix if gate.matrix.size else None,
            gate_bias=gate.bias,
        )
