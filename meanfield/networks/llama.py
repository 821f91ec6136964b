"""Decoders of the Llama family: rotary positions, RMSNorm, grouped heads, SwiGLU."""

from typing import ClassVar

from ..models.positional import Rotary
from .layer import Layer
from .network import Network

MAPS = {
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "output": "self_attn.o_proj",
    "inner": "mlp.up_proj",
    "outer": "mlp.down_proj",
    "gate": "mlp.gate_proj",
}


class Llama(Network):
    """Llama: x + attention(RMSNorm x), x + down(act(gate) * up), and a last RMSNorm."""

    prefix = "model."
    unused = ("lm_head.", ".rotary_emb.inv_freq")
    sizes = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
    )
    read = (
        "hidden_act",
        "rms_norm_eps",
        "num_key_value_heads",
        "head_dim",
        "attention_bias",
        "mlp_bias",
        "rope_theta",
        "rope_parameters",
    )
    refused: ClassVar = {
        "rope_interleaved": (False, None),
        "rope_scaling": (None,),
        "sliding_window": (None,),
        "partial_rotary_factor": (1.0,),
    }

    @classmethod
    def check(cls, config):
        super().check(config)
        cls.check_activation("hidden_act", config, "silu")
        heads, shared, size = cls.heads(config)
        if type(shared) is not int or shared < 1 or heads % shared:
            raise ValueError(
                "config.json: num_key_value_heads must divide num_attention_heads, "
                f"found {shared!r} and {heads}."
            )
        if type(size) is not int or size < 2 or size % 2:
            raise ValueError(f"config.json: head_dim must be even and >= 2, found {size!r}.")
        rope = config.get("rope_parameters") or {}
        if not isinstance(rope, dict) or set(rope) - {"rope_theta", "rope_type"}:
            raise ValueError(f"config.json: rope_parameters = {rope!r} is not supported.")
        if rope.get("rope_type", "default") != "default":
            raise ValueError(
                f"config.json: rope_type = {rope['rope_type']!r} changes the mathematics and is "
                "not supported; supported: 'default'."
            )

    @classmethod
    def heads(cls, config):
        """Numbers of heads of queries and of keys, and their dimension."""
        heads = config["num_attention_heads"]
        shared = config.get("num_key_value_heads")
        size = config.get("head_dim")
        if size is None:
            cls.check_heads("hidden_size", "num_attention_heads", config)
            size = config["hidden_size"] // heads
        return heads, heads if shared is None else shared, size

    @classmethod
    def shapes(cls, config):
        d, inner = config["hidden_size"], config["intermediate_size"]
        heads, shared, size = cls.heads(config)
        attention = {
            "self_attn.q_proj": (heads * size, d),
            "self_attn.k_proj": (shared * size, d),
            "self_attn.v_proj": (shared * size, d),
            "self_attn.o_proj": (d, heads * size),
        }
        mlp = {"mlp.gate_proj": (inner, d), "mlp.up_proj": (inner, d), "mlp.down_proj": (d, inner)}
        shapes = {"embed_tokens.weight": (config["vocab_size"], d), "norm.weight": (d,)}
        for layer in range(config["num_hidden_layers"]):
            start = f"layers.{layer}."
            for maps, key in ((attention, "attention_bias"), (mlp, "mlp_bias")):
                for name, shape in maps.items():
                    shapes[f"{start}{name}.weight"] = shape
                    if config.get(key):
                        shapes[f"{start}{name}.bias"] = shape[:1]
            for name in ("input_layernorm", "post_attention_layernorm"):
                shapes[f"{start}{name}.weight"] = (d,)
        return shapes

    @property
    def positions(self):
        return self.config["max_position_embeddings"]

    @property
    def vocabulary(self):
        return self.config["vocab_size"]

    @property
    def depth(self):
        return self.config["num_hidden_layers"]

    @property
    def epsilon(self):
        return self.config.get("rms_norm_eps", 1e-6)

    @property
    def base(self) -> float:
        """The base of the angles by which queries and keys turn."""
        rope = self.config.get("rope_parameters") or {}
        return rope.get("rope_theta", self.config.get("rope_theta", 10000.0))

    def layer_at(self, index):
        name, (heads, shared, _) = f"layers.{index}", self.heads(self.config)
        maps = {role: self.map_at(f"{name}.{own}") for role, own in MAPS.items()}
        before = "input_layernorm", "post_attention_layernorm"
        first, second = (self.norm_at(f"{name}.{own}") for own in before)
        activation, turned = self.config.get("hidden_act", "silu"), Rotary(self.base)
        return Layer(index, maps, (first, second), False, heads, shared, True, activation, turned)

    def embedded(self, ids):
        return self["embed_tokens.weight"][ids]

    @property
    def last(self):
        return self.norm_at("norm")
