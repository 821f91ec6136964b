"""Decoders of the GPT-2 family: learned positions, normalised before each sublayer."""

from typing import ClassVar

import numpy as np

from .architecture import Config, Keys, Options, Shapes
from .layer import Affine, Gain
from .network import Network


class GPT2(Network):
    """GPT-2: x + attention(LN x), x + mlp(LN x), and a last LN; matrices are (in, out)."""

    prefix = "transformer."
    unused: ClassVar[Keys] = ("lm_head.", ".attn.bias", ".attn.masked_bias")
    layers, width, head_count, longest, inner = (
        "n_layer",
        "n_embd",
        "n_head",
        "n_positions",
        "n_inner",
    )
    activation, usual_activation = "activation_function", "gelu_new"
    norm_epsilon, usual_epsilon = "layer_norm_epsilon", 1e-5
    read: ClassVar[Keys] = ("n_inner",)
    refused: ClassVar[Options] = {
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False, None),
    }
    maps: ClassVar[dict[str, str]] = {
        "query": "attn.c_attn",  # keys and values are in this tensor, too
        "output": "attn.c_proj",
        "inner": "mlp.c_fc",
        "outer": "mlp.c_proj",
    }
    norms = "ln_1", "ln_2"
    transposed = True

    @classmethod
    def sizes(cls) -> Keys:
        return tuple(key for key in super().sizes() if key != "n_inner")

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        if config.get("n_inner") is not None:
            cls.check_size("n_inner", config["n_inner"])

    @classmethod
    def embeddings(cls, config: Config) -> Shapes:
        d = config["n_embd"]
        return {"wte.weight": (config["vocab_size"], d), "wpe.weight": (config["n_positions"], d)}

    @classmethod
    def start(cls, config: Config, layer: int) -> str:
        return f"h.{layer}."

    @classmethod
    def map_shapes(cls, config: Config) -> Shapes:
        d, inner = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
        return {"query": (d, 3 * d), "output": (d, d), "inner": (d, inner), "outer": (inner, d)}

    @classmethod
    def shapes(cls, config: Config) -> Shapes:
        return super().shapes(config) | dict.fromkeys(
            ("ln_f.weight", "ln_f.bias"), (config["n_embd"],)
        )

    def maps_at(self, start: str) -> dict[str, Affine]:
        maps = super().maps_at(start)
        thirds = zip(
            *(np.split(part, 3) for part in maps["query"] if part is not None), strict=True
        )
        return maps | dict(zip(("query", "key", "value"), map(Affine._make, thirds), strict=True))

    def embedded(self, ids: np.ndarray) -> np.ndarray:
        return self["wte.weight"][ids] + self["wpe.weight"][: len(ids)]

    @property
    def last(self) -> Gain:
        return self.norm_at("ln_f")
