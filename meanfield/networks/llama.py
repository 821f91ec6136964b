"""Decoders of the Llama family, Mistral and Qwen2: rotary positions, RMSNorm, grouped heads."""

from typing import Any, ClassVar

import numpy as np

from meanfield import ConfigError, Rotary
from meanfield.extending import as_given

from .architecture import OTHER_MODELS, Config, Keys, Options, Shapes
from .layer import Gain
from .network import Network

LAYER_TYPES = "full_attention", "sliding_attention"


class Llama(Network):
    """Llama: x + attention(RMSNorm x), x + down(act(gate) * up), and a last RMSNorm."""

    prefix = "model."
    unused: ClassVar[Keys] = ("lm_head.", ".rotary_emb.inv_freq")
    usual_activation = "silu"
    norm_epsilon, usual_epsilon = "rms_norm_eps", 1e-6
    other_numbers = ("rope_theta",)
    read: ClassVar[Keys] = (
        "num_key_value_heads",
        "head_dim",
        "attention_bias",
        "mlp_bias",
        "rope_parameters",
    )
    usual_shared: ClassVar[int | None] = None  # default number of heads of keys; None: as queries
    refused: ClassVar[Options] = {
        "rope_interleaved": (False, None),
        "rope_scaling": (None,),
        "sliding_window": (None,),
        "partial_rotary_factor": (1.0,),
    }
    maps: ClassVar[dict[str, str]] = {
        "query": "self_attn.q_proj",
        "key": "self_attn.k_proj",
        "value": "self_attn.v_proj",
        "output": "self_attn.o_proj",
        "gate": "mlp.gate_proj",
        "inner": "mlp.up_proj",
        "outer": "mlp.down_proj",
    }
    norms = "input_layernorm", "post_attention_layernorm"
    norm_bias = False

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        heads, shared, size = cls.heads(config)
        if type(shared) is not int or shared < 1 or heads % shared:
            raise ConfigError(
                "config.json: num_key_value_heads must divide num_attention_heads, "
                f"found {as_given(shared)} and {heads}."
            )
        cls.check_size("head_dim", size, least=2)
        if size % 2:
            raise ConfigError(f"config.json: head_dim must be even, found {size}.")
        rope = config.get("rope_parameters") or {}
        if not isinstance(rope, dict) or set(rope) - {"rope_theta", "rope_type"}:
            raise ConfigError(
                f"config.json: rope_parameters = {as_given(rope)} is not supported. {OTHER_MODELS}"
            )
        cls.check_number("rope_theta in rope_parameters", rope.get("rope_theta", 1.0))
        if rope.get("rope_type", "default") != "default":
            raise ConfigError(
                f"config.json: rope_type = {as_given(rope['rope_type'])} changes the mathematics "
                f"and is not supported; supported: 'default'. {OTHER_MODELS}"
            )

    @classmethod
    def heads(cls, config: Config) -> tuple[int, int, int]:
        heads, size = config["num_attention_heads"], config.get("head_dim")
        shared = config.get("num_key_value_heads", cls.usual_shared)
        size = super().heads(config)[2] if size is None else size
        return heads, heads if shared is None else shared, size

    @classmethod
    def embeddings(cls, config: Config) -> Shapes:
        d = config["hidden_size"]
        return {"embed_tokens.weight": (config["vocab_size"], d), "norm.weight": (d,)}

    @classmethod
    def start(cls, config: Config, layer: int) -> str:
        return f"layers.{layer}."

    @classmethod
    def has_bias(cls, config: Config, role: str) -> bool:
        of_mlp = role in ("inner", "outer", "gate")
        return bool(config.get("mlp_bias" if of_mlp else "attention_bias"))

    @classmethod
    def window(cls, config: Config) -> int | None:
        """The number of tokens that a token attends to, itself included; None for all before it."""
        return None

    @property
    def positions(self) -> int:
        window = self.window(self.config)
        return super().positions if window is None else min(super().positions, window)

    @property
    def longest_in_words(self) -> str:
        if self.positions == super().positions:
            return super().longest_in_words
        return f"a token sees {self.positions}, itself included, and no longer text is replayed"

    @property
    def turned(self) -> Rotary:
        rope = self.config.get("rope_parameters") or {}
        base: Any = rope.get("rope_theta", self.config.get("rope_theta", 10000.0))
        return Rotary(base)

    def embedded(self, ids: np.ndarray) -> np.ndarray:
        return self["embed_tokens.weight"][ids]

    @property
    def last(self) -> Gain:
        return self.norm_at("norm")


class Mistral(Llama):
    """Mistral: Llama with a sliding window; texts up to the length of the window are replayed."""

    read: ClassVar[Keys] = ("num_key_value_heads", "head_dim", "rope_parameters", "sliding_window")
    refused: ClassVar[Options] = {
        "rope_scaling": (None,),
        "attention_bias": (False, None),
    }
    usual_shared = 8

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        window = cls.window(config)
        if window is not None:
            cls.check_size("sliding_window", window)

    @classmethod
    def has_bias(cls, config: Config, role: str) -> bool:
        return False

    @classmethod
    def window(cls, config: Config) -> int | None:
        return config.get("sliding_window", 4096)


class Qwen2(Mistral):
    """Qwen2: Llama with biases of queries, keys and values, and a window in some layers.

    Texts up to the length of the window are replayed.
    """

    read: ClassVar[Keys] = (*Mistral.read, "use_sliding_window", "max_window_layers", "layer_types")
    refused = Mistral.refused | {"use_mrope": (False, None)}
    usual_shared = 32

    @classmethod
    def check(cls, config: Config) -> None:
        cls.check_size("max_window_layers", config.get("max_window_layers", 28), least=0)
        types, depth = config.get("layer_types"), config.get("num_hidden_layers")
        a_list = isinstance(types, list) and len(types) == depth
        if types is not None and not (a_list and all(kind in LAYER_TYPES for kind in types)):
            raise ConfigError(
                f"config.json: layer_types must be a list of {' and '.join(LAYER_TYPES)}, one for "
                f"each layer, found {as_given(types)}."
            )
        super().check(config)

    @classmethod
    def has_bias(cls, config: Config, role: str) -> bool:
        return role in ("query", "key", "value")

    @classmethod
    def window(cls, config: Config) -> int | None:
        types = config.get("layer_types")
        later = config.get("max_window_layers", 28) < config["num_hidden_layers"]
        has = later if types is None else "sliding_attention" in types
        return super().window(config) if config.get("use_sliding_window") and has else None
