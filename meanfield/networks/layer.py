"""One layer of a network: replayed as it is, and as models of this package.

Replays are in the precision of the weights, models in double precision.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import meanfield as mf
from meanfield.extending import PassedOn

from .families import CONFIGURED_ACTIVATIONS

LOGITS_AT_ONCE = 1 << 20  # logits in memory at a time
ROWS_AT_ONCE = 1024  # tokens whose inner states are in memory at a time


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
        """The norm as one of the package, in double precision."""
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
        q, k, v = self.heads_of(x if self.norms_after else first(x), self.maps)
        outputs, weights = attend(q, k, v, causal=self.causal, keep=attention)
        x = x + self.maps["output"](outputs)
        yield "attention", x, weights
        if self.norms_after:
            x = first(x)
            yield "normalisation", x, None
        x = x + in_rows(self._fed, x if self.norms_after else second(x))
        yield "mlp", x, None
        if self.norms_after:
            yield "normalisation", second(x), None

    def heads_of(
        self, x: np.ndarray, maps: "dict[str, Affine]"
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Queries, keys and values (heads, n, k) of the input x (n, d) of attention by these maps.

        Keys and values are those of their `shared` heads; rotary positions are applied.
        """
        counts = {"query": self.heads, "key": self.shared, "value": self.shared}
        q, k, v = (by_heads(maps[role](x), count) for role, count in counts.items())
        if self.positions is not None:
            q, k = self.positions.turned(q), self.positions.turned(k)
        return q, k, v

    def _fed(self, x: np.ndarray) -> np.ndarray:
        """Output of the feed-forward map for rows x (n, d)."""
        inner, activation = self.maps["inner"](x), CONFIGURED_ACTIVATIONS[self.activation]
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
        options: dict[str, PassedOn] = {}
        for role, name in (("query", "Q"), ("key", "K"), ("value", "V")):
            part = self.maps[role].after(norm)
            options[name] = self.by_heads(part.matrix)
            if part.bias is not None:
                options[f"{name}_bias"] = self.by_heads(part.bias)
        output, size = self.maps["output"].after(None), options["V"].shape[1]
        if output.bias is not None:
            options["output_bias"] = output.bias
        matrices = output.matrix.reshape(-1, self.heads, size).swapaxes(0, 1)
        return mf.Attention(**options, output=matrices, beta=1 / math.sqrt(options["Q"].shape[1]),
                            causal=self.causal, positions=self.positions)  # fmt: skip

    def by_heads(self, array: np.ndarray) -> np.ndarray:
        """(heads * k, ...) as (heads, k, ...), with shared heads repeated."""
        size = self.maps["query"].matrix.shape[0] // self.heads
        parts = array.reshape(-1, size, *array.shape[1:])
        return np.repeat(parts, self.heads // len(parts), axis=0)

    def _feed_forward(self, norm: Gain | None) -> mf.FeedForward:
        """The feed-forward map; its matrices contain `norm`, if given, as in `Affine.after`."""
        inner, outer = self.maps["inner"].after(norm), self.maps["outer"].after(None)
        gate = self.maps["gate"].after(norm) if "gate" in self.maps else (None, None)
        return mf.FeedForward(inner.matrix, outer.matrix, inner.bias,
                              CONFIGURED_ACTIVATIONS[self.activation], outer_bias=outer.bias,
                              gate=gate[0], gate_bias=gate[1])  # fmt: skip


# Sublayers in blocks, so that a long text needs little memory ---------------------------------


def by_heads(x: np.ndarray, heads: int) -> np.ndarray:
    """Reshape (n, heads * d) to (heads, n, d)."""
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def in_rows(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Apply a function of rows to x (n, d) in blocks of `ROWS_AT_ONCE` rows."""
    if len(x) <= ROWS_AT_ONCE:
        return function(x)
    return np.concatenate(
        [function(x[start : start + ROWS_AT_ONCE]) for start in range(0, len(x), ROWS_AT_ONCE)]
    )


def attend(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, *, causal: bool, keep: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Softmax attention by heads (heads, n, d), with logits <q, k>/sqrt(d).

    If there are fewer heads of keys and values than of queries, each is shared by consecutive heads
    of queries. At most 2^20 logits are in memory at a time, or one row of one head if it is longer.

    Returns
    -------
    ndarray, (n, heads * d), and ndarray, (heads, n, n), or None
        The output of attention, and its weights if `keep`.
    """
    heads, n, d = queries.shape
    group = heads // len(keys)
    queries = queries * (1 / math.sqrt(d))
    outputs = np.empty((n, heads, values.shape[-1]), queries.dtype)
    all_weights = np.zeros((heads, n, n), queries.dtype) if keep else None
    rows = max(1, min(n, LOGITS_AT_ONCE // n))
    batch = max(1, LOGITS_AT_ONCE // (rows * n)) if rows == n else 1
    for first in range(0, heads, batch):
        indices = np.arange(first, min(first + batch, heads))
        k, v = keys[indices // group], values[indices // group]
        for start in range(0, n, rows):
            block = slice(start, min(start + rows, n))
            end = block.stop if causal else n
            weights = queries[indices, block] @ k[:, :end].swapaxes(1, 2)
            if causal:
                later = np.arange(end) > np.arange(block.start, block.stop)[:, None]
                np.copyto(weights, -np.inf, where=later)
            weights -= weights.max(axis=-1, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(axis=-1, keepdims=True)
            outputs[block, indices[0] : indices[-1] + 1] = (weights @ v[:, :end]).swapaxes(0, 1)
            if all_weights is not None:
                all_weights[indices, block, :end] = weights
    return outputs.reshape(n, -1), all_weights
