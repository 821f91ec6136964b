"""One layer of a network as models of this package, where they carry it exactly."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import MeanfieldError
from ..models.attention import Attention
from ..models.pointwise import FeedForward, gelu, gelu_tanh, relu, silu

ACTIVATIONS: dict[str, Callable] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": relu,
    "silu": silu,
    "swish": silu,
}


class Affine(NamedTuple):
    """x -> matrix x + bias."""

    matrix: np.ndarray  # (out, in)
    bias: np.ndarray | None = None

    def after(self, norm: "Affine | None") -> "Affine":
        """The same for unit vectors, where a normalisation stands before; in double precision.

        That is sqrt(d) gain x + bias of unit vectors x.
        """
        matrix = self.matrix.astype(float)
        bias = None if self.bias is None else self.bias.astype(float)
        if norm is None:
            return Affine(matrix, bias)
        if norm.bias is not None:
            bias = matrix @ norm.bias + (0.0 if bias is None else bias)
        return Affine(np.sqrt(matrix.shape[1]) * norm.matrix * matrix, bias)


@dataclass(frozen=True)
class Layer:
    """Layer l of a network, of which `attention` and `feed_forward` make models of this package.

    They act on what the sublayer sees. Where normalisations stand after sublayers (BERT), that are
    hidden states, ``Tokens(h, on_sphere=False)``. Where they stand before, it is the unit vector of
    h, or for LayerNorm of h less the mean of its coordinates: gain, bias and the factor sqrt(d) are
    in the matrices, and epsilon is left out, a relative change of epsilon d/(2 |h|^2).

    Attributes
    ----------
    index : int
        l, from 0.
    maps : dict of Affine
        "query", "key", "value", "output", "inner", "outer", and perhaps "gate".
    heads, shared : int
        Heads of queries, and of keys and values.
    causal, rotary : bool
        Whether tokens see those before only; whether queries and keys turn with the position.
    activation : str
        As config.json names it.
    norms : pair of Affine, or None
        Gains and biases of normalisations before attention and before the feed-forward map.
    """

    index: int
    maps: dict[str, Affine]
    heads: int
    shared: int
    causal: bool
    rotary: bool
    activation: str
    norms: tuple[Affine, Affine] | None

    def attention(self) -> Attention:
        """Its attention as a drift; MeanfieldError for rotary positions, which it does not have."""
        if self.rotary:
            raise MeanfieldError(
                f"The attention of layer {self.index} has rotary positions, which Attention cannot "
                "carry."
            )
        norm = self.norms[0] if self.norms else None
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
        return Attention(
            **options,
            output=output.matrix.reshape(-1, self.heads, size).swapaxes(0, 1),
            beta=options["Q"].shape[1] ** -0.5,
            causal=self.causal,
        )

    def _by_heads(self, array: np.ndarray) -> np.ndarray:
        """(heads * k, ...) as (heads, k, ...), those that are shared repeated."""
        size = self.maps["query"].matrix.shape[0] // self.heads
        split = array.reshape(-1, size, *array.shape[1:])
        return np.repeat(split, self.heads // len(split), axis=0)

    def feed_forward(self) -> FeedForward:
        """Its feed-forward map; MeanfieldError for a gate with a bias, which it does not have."""
        norm = self.norms[1] if self.norms else None
        inner, outer = self.maps["inner"].after(norm), self.maps["outer"].after(None)
        gate = self.maps["gate"].after(norm) if "gate" in self.maps else None
        if gate is not None and gate.bias is not None:
            raise MeanfieldError(
                f"The gate of layer {self.index} has a bias, which FeedForward cannot carry."
            )
        return FeedForward(
            inner.matrix,
            outer.matrix,
            inner.bias,
            ACTIVATIONS[self.activation],
            outer_bias=outer.bias,
            gate=None if gate is None else gate.matrix,
        )
