"""Heads of a layer: logits, the increments of the stream by head, and spectra of matrices."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .layer import attend

if TYPE_CHECKING:
    from .layer import Layer
    from .network import Network


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


def heads_of(net: "Network", stream: np.ndarray, index: int) -> Heads:
    """The heads of layer `index` for the stream (n, d) that enters it, in double precision."""
    layer = net.layer(index)
    maps = {role: layer.maps[role].after(None) for role in ("query", "key", "value", "output")}
    inputs = np.asarray(stream, dtype=float)
    inputs = inputs if layer.norms_after else layer.norms[0](inputs)
    output, value_bias = maps["output"], maps["value"].bias
    maps["value"] = maps["value"]._replace(bias=None)
    queries, keys, values = layer.heads_of(inputs, maps)
    outputs, _ = attend(queries, keys, values, causal=layer.causal, keep=False)
    size = queries.shape[-1]
    parts = output.matrix.reshape(-1, layer.heads, size)
    added = np.einsum("nhk,dhk->hnd", outputs.reshape(len(outputs), layer.heads, size), parts,
                      optimize=True)  # fmt: skip
    bias = np.zeros(len(output.matrix)) if output.bias is None else output.bias
    if value_bias is not None:
        bias = bias + output.matrix @ layer.by_heads(value_bias).ravel()
    return Heads(queries, np.repeat(keys, layer.heads // layer.shared, axis=0), added, bias)


def spectra_of(layer: "Layer") -> dict[str, np.ndarray]:
    """Singular values and eigenvalues of the matrices of a layer's heads, in decreasing order.

    `value_singular` and `key_singular` (heads, k) are the singular values of output_h V_h and of
    Q_h^T K_h/sqrt(k); `value_symmetric` and `key_symmetric` (heads, min(2 k, d)) the eigenvalues of
    (M + M^T)/2 for these matrices M, but for zeros beyond their rank.

    The matrices are those of `Layer.attention`: they act on hidden states if normalisations follow
    the sublayers, and on unit vectors if they precede them. Rotary positions are left out, so that
    Q^T K is that of two tokens at the same position.
    """
    norm = None if layer.norms_after else layer.norms[0]
    query, key, value = (
        layer.by_heads(layer.maps[role].after(norm).matrix) for role in ("query", "key", "value")
    )
    size = query.shape[1]
    output = layer.maps["output"].after(None).matrix.reshape(-1, layer.heads, size).swapaxes(0, 1)
    of_values = [of_product(o, v) for o, v in zip(output, value, strict=True)]
    of_keys = [of_product(q.T / np.sqrt(size), k) for q, k in zip(query, key, strict=True)]
    columns = [*zip(*of_values, strict=True), *zip(*of_keys, strict=True)]
    names = "value_singular", "value_symmetric", "key_singular", "key_symmetric"
    return dict(zip(names, map(np.array, columns), strict=True))


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
