"""One layer of a network: replayed as it is, head by head, and as models of this package.

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


class Heads(NamedTuple):
    """Queries and keys of a layer's heads for one text, and their increments of the stream.

    Attributes
    ----------
    queries, keys : ndarray, (heads, n, k)
        With biases, and with rotary positions applied; k is the dimension of a head.
    added : ndarray, (heads, n, d)
        Increment of the stream by each head, without biases of values.
    bias : ndarray, (d,)
        Increment common to all tokens: output (bias of values) + bias of the output. As weights sum
        to 1, attention adds added.sum(axis=0) + bias to the stream.
    """

    queries: np.ndarray
    keys: np.ndarray
    added: np.ndarray
    bias: np.ndarray

    @property
    def logits(self) -> np.ndarray:
        """<q_i, k_j>/sqrt(k), (heads, n, n), without mask."""
        return self.queries @ self.keys.swapaxes(1, 2) / np.sqrt(self.queries.shape[-1])

    @property
    def beta(self) -> np.ndarray:
        """r.m.s. of |q_i| times r.m.s. of |k_j| over sqrt(k), (heads,)."""
        squares = [(a**2).sum(axis=-1).mean(axis=-1) for a in (self.queries, self.keys)]
        return np.sqrt(squares[0] * squares[1] / self.queries.shape[-1])


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
        q, k, v = self._queries_keys_values(x if self.norms_after else first(x), self.maps)
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

    def _queries_keys_values(
        self, x: np.ndarray, maps: dict[str, Affine]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Queries, keys and values (heads, n, k) of the input x (n, d) of attention by these maps.

        Keys and values are those of their `shared` heads; rotary positions are applied.
        """
        counts = {"query": self.heads, "key": self.shared, "value": self.shared}
        q, k, v = (
            maps[role](x).reshape(len(x), count, -1).swapaxes(0, 1)
            for role, count in counts.items()
        )
        if self.positions is not None:
            q, k = self.positions.turned(q), self.positions.turned(k)
        return q, k, v

    def _fed(self, x: np.ndarray) -> np.ndarray:
        """Output of the feed-forward map for rows x (n, d)."""
        inner, activation = self.maps["inner"](x), CONFIGURED_ACTIVATIONS[self.activation]
        if "gate" not in self.maps:
            return self.maps["outer"](activation(inner))
        return self.maps["outer"](activation(self.maps["gate"](x)) * inner)

    # By heads ------------------------------------------------------------------------------

    @property
    def head_size(self) -> int:
        """The dimension k of a head."""
        return len(self.maps["query"].matrix) // self.heads

    def heads_of(self, stream: np.ndarray) -> Heads:
        """The heads for the stream (n, d) that enters the layer, in double precision."""
        maps = {role: self.maps[role].after(None) for role in ("query", "key", "value", "output")}
        inputs = np.asarray(stream, dtype=float)
        inputs = inputs if self.norms_after else self.norms[0](inputs)
        output, value_bias = maps["output"], maps["value"].bias
        maps["value"] = maps["value"]._replace(bias=None)
        queries, keys, values = self._queries_keys_values(inputs, maps)
        outputs, _ = attend(queries, keys, values, causal=self.causal, keep=False)
        outputs = outputs.reshape(len(outputs), self.heads, self.head_size)
        parts = output.matrix.reshape(-1, self.heads, self.head_size)
        added = np.einsum("nhk,dhk->hnd", outputs, parts, optimize=True)
        bias = np.zeros(len(output.matrix)) if output.bias is None else output.bias
        if value_bias is not None:
            bias = bias + output.matrix @ self._by_heads(value_bias).ravel()
        return Heads(queries, np.repeat(keys, self.heads // self.shared, axis=0), added, bias)

    def spectra(self) -> dict[str, np.ndarray]:
        """Singular values and eigenvalues of the matrices of the heads, in decreasing order.

        `value_singular` and `key_singular` (heads, k) are the singular values of output_h V_h and
        of Q_h^T K_h/sqrt(k); `value_symmetric` and `key_symmetric` (heads, min(2 k, d)) the
        eigenvalues of (M + M^T)/2 for these matrices M, but for zeros beyond their rank.

        The matrices are those of `attention`: they act on hidden states if normalisations follow
        the sublayers, and on unit vectors if they precede them. Rotary positions are left out, so
        that Q^T K is that of two tokens at the same position.
        """
        norm = None if self.norms_after else self.norms[0]
        query, key, value = (
            self._by_heads(self.maps[role].after(norm).matrix) for role in ("query", "key", "value")
        )
        of_values = [of_product(o, v) for o, v in zip(self._outputs, value, strict=True)]
        size = np.sqrt(self.head_size)
        of_keys = [of_product(q.T / size, k) for q, k in zip(query, key, strict=True)]
        columns = [*zip(*of_values, strict=True), *zip(*of_keys, strict=True)]
        names = "value_singular", "value_symmetric", "key_singular", "key_symmetric"
        return dict(zip(names, map(np.array, columns), strict=True))

    def _by_heads(self, array: np.ndarray) -> np.ndarray:
        """(heads * k, ...) as (heads, k, ...), with shared heads repeated."""
        parts = array.reshape(-1, self.head_size, *array.shape[1:])
        return np.repeat(parts, self.heads // len(parts), axis=0)

    @property
    def _outputs(self) -> np.ndarray:
        """The output matrix of each head, (heads, d, k), in double precision."""
        matrix = self.maps["output"].after(None).matrix
        return matrix.reshape(-1, self.heads, self.head_size).swapaxes(0, 1)

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
            options[name] = self._by_heads(part.matrix)
            if part.bias is not None:
                options[f"{name}_bias"] = self._by_heads(part.bias)
        if (bias := self.maps["output"].after(None).bias) is not None:
            options["output_bias"] = bias
        return mf.Attention(**options, output=self._outputs, beta=1 / math.sqrt(self.head_size),
                            causal=self.causal, positions=self.positions)  # fmt: skip

    def _feed_forward(self, norm: Gain | None) -> mf.FeedForward:
        """The feed-forward map; its matrices contain `norm`, if given, as in `Affine.after`."""
        inner, outer = self.maps["inner"].after(norm), self.maps["outer"].after(None)
        gate = self.maps["gate"].after(norm) if "gate" in self.maps else (None, None)
        return mf.FeedForward(inner.matrix, outer.matrix, inner.bias,
                              CONFIGURED_ACTIVATIONS[self.activation], outer_bias=outer.bias,
                              gate=gate[0], gate_bias=gate[1])  # fmt: skip


# Sublayers in blocks, so that a long text needs little memory ---------------------------------


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


def of_product(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Singular values of M = left (d, k) right (k, d), and eigenvalues of (M + M^T)/2.

    With F = [left, right^T] = Q R the symmetric part is Q R J R^T Q^T/2, where J exchanges the two
    halves of the columns of F.
    """
    first, second, R = (
        np.asarray(np.linalg.qr(a, mode="r"))
        for a in (left, right.T, np.concatenate([left, right.T], axis=1))
    )
    exchanged = np.roll(R, left.shape[1], axis=1)
    symmetric = (exchanged @ R.T + R @ exchanged.T) / 4
    return np.linalg.svd(first @ second.T, compute_uv=False), np.linalg.eigvalsh(symmetric)[::-1]
