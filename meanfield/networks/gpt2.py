"""Decoders of the GPT-2 family: learned positions, normalised before each sublayer."""

from typing import ClassVar

import numpy as np

from .layer import Affine, Layer
from .network import Network
from .sublayers import ACTIVATIONS, attend, by_heads, layer_norm


class GPT2(Network):
    """GPT-2: x + attention(LN x), x + mlp(LN x), and a last LN; matrices are (in, out)."""

    prefix = "transformer."
    unused = ("lm_head.", ".attn.bias", ".attn.masked_bias")
    sizes = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
    refused: ClassVar = {
        "add_cross_attention": (False, None),
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False, None),
    }

    @classmethod
    def check(cls, config):
        super().check(config)
        cls.check_activation("activation_function", config, "gelu_new")
        cls.check_heads("n_embd", "n_head", config)
        inner = config.get("n_inner")
        if inner is not None and (type(inner) is not int or inner < 1):
            raise ValueError(f"config.json: n_inner must be a number >= 1, found {inner!r}.")

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
    def vocabulary(self):
        return self.config["vocab_size"]

    @property
    def depth(self):
        return self.config["n_layer"]

    def seen(self, x, index):
        return self.normalised(x, f"h.{index}.ln_1")

    def map_at(self, name):
        return Affine(self[f"{name}.weight"].T, self[f"{name}.bias"])

    def layer_at(self, index):
        name, heads = f"h.{index}", self.config["n_head"]
        joint = self.map_at(f"{name}.attn.c_attn")
        thirds = (np.split(part, 3) for part in joint)
        maps = {
            role: Affine(matrix, bias)
            for role, matrix, bias in zip(("query", "key", "value"), *thirds, strict=True)
        }
        for role, own in (
            ("output", "attn.c_proj"),
            ("inner", "mlp.c_fc"),
            ("outer", "mlp.c_proj"),
        ):
            maps[role] = self.map_at(f"{name}.{own}")
        first, second = (
            Affine(self[f"{name}.{own}.weight"], self[f"{name}.{own}.bias"])
            for own in ("ln_1", "ln_2")
        )
        activation = self.config.get("activation_function", "gelu_new")
        return Layer(index, maps, heads, heads, True, False, activation, (first, second))

    def affine(self, x, name):
        return x @ self[f"{name}.weight"] + self[f"{name}.bias"]

    def normalised(self, x, name):
        """LayerNorm of this name."""
        epsilon = self.config.get("layer_norm_epsilon", 1e-5)
        return layer_norm(x, self[f"{name}.weight"], self[f"{name}.bias"], epsilon)

    def steps(self, ids):
        heads = self.config["n_head"]
        activation = ACTIVATIONS[self.config.get("activation_function", "gelu_new")]
        x = self["wte.weight"][ids] + self["wpe.weight"][: len(ids)]
        yield "embedding", 0, x, None
        for layer in range(self.config["n_layer"]):
            name = f"h.{layer}"
            joint = self.affine(self.normalised(x, f"{name}.ln_1"), f"{name}.attn.c_attn")
            q, k, v = (by_heads(part, heads) for part in np.split(joint, 3, axis=-1))
            mixed, weights = attend(q, k, v, causal=True)
            x = x + self.affine(mixed, f"{name}.attn.c_proj")
            yield "attention", layer + 1, x, weights
            inner = self.affine(self.normalised(x, f"{name}.ln_2"), f"{name}.mlp.c_fc")
            x = x + self.affine(activation(inner), f"{name}.mlp.c_proj")
            yield "mlp", layer + 1, x, None
        yield "normalisation", self.config["n_layer"], self.normalised(x, "ln_f"), None
