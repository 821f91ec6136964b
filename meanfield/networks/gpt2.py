"""Decoders of the GPT-2 family: learned positions, normalised before each sublayer."""

from typing import ClassVar

import numpy as np

from .layer import Affine, Layer
from .network import Network

MAPS = "query", "key", "value", "output", "inner", "outer"


class GPT2(Network):
    """GPT-2: x + attention(LN x), x + mlp(LN x), and a last LN; matrices are (in, out)."""

    prefix = "transformer."
    unused = ("lm_head.", ".attn.bias", ".attn.masked_bias")
    layers = "n_layer"
    sizes = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
    numbers = ("layer_norm_epsilon",)
    read = ("activation_function", "n_inner")
    refused: ClassVar = {
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False, None),
    }

    @classmethod
    def check(cls, config):
        super().check(config)
        cls.check_activation("activation_function", config, "gelu_new")
        cls.check_heads("n_embd", "n_head", config)
        if config.get("n_inner") is not None:
            cls.check_size("n_inner", config["n_inner"])

    @classmethod
    def shapes(cls, config):
        d = config["n_embd"]
        inner = config.get("n_inner") or 4 * d
        shapes: dict[str, tuple[int, ...]] = {
            "wte.weight": (config["vocab_size"], d),
            "wpe.weight": (config["n_positions"], d),
        }
        maps = {
            "attn.c_attn": (d, 3 * d),
            "attn.c_proj": (d, d),
            "mlp.c_fc": (d, inner),
            "mlp.c_proj": (inner, d),
        }
        for layer in range(config["n_layer"]):
            for name, shape in maps.items():
                shapes[f"h.{layer}.{name}.weight"] = shape
                shapes[f"h.{layer}.{name}.bias"] = shape[1:]
            for name in ("ln_1", "ln_2"):
                shapes[f"h.{layer}.{name}.weight"] = shapes[f"h.{layer}.{name}.bias"] = (d,)
        return shapes | {"ln_f.weight": (d,), "ln_f.bias": (d,)}

    @property
    def positions(self):
        return self.config["n_positions"]

    @property
    def epsilon(self):
        return self.config.get("layer_norm_epsilon", 1e-5)

    def map_at(self, name):
        return Affine(self[f"{name}.weight"].T, self[f"{name}.bias"])

    def layer_at(self, index):
        name, heads = f"h.{index}", self.config["n_head"]
        matrix, bias = self.map_at(f"{name}.attn.c_attn")
        thirds = zip(np.split(matrix, 3), np.split(bias, 3), strict=True)
        maps = {role: Affine(*third) for role, third in zip(MAPS[:3], thirds, strict=True)}
        others = "attn.c_proj", "mlp.c_fc", "mlp.c_proj"
        maps |= {role: self.map_at(f"{name}.{n}") for role, n in zip(MAPS[3:], others, strict=True)}
        norms = self.norm_at(f"{name}.ln_1"), self.norm_at(f"{name}.ln_2")
        activation = self.config.get("activation_function", "gelu_new")
        return Layer(index, maps, norms, False, heads, heads, True, activation)

    def embedded(self, ids):
        return self["wte.weight"][ids] + self["wpe.weight"][: len(ids)]

    @property
    def last(self):
        return self.norm_at("ln_f")
