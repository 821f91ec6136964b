"""Decoders of the Llama family, Mistral and Qwen2: rotary positions, RMSNorm, grouped heads."""

from typing import ClassVar

from meanfield import ConfigError, Rotary
from meanfield.extending import as_given

from .layer import Layer
from .network import OTHER_MODELS, Network

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
    numbers = ("rms_norm_eps", "rope_theta")
    read: ClassVar[tuple[str, ...]] = (
        *("hidden_act", "num_key_value_heads", "head_dim"),
        *("attention_bias", "mlp_bias", "rope_parameters"),
    )
    shared: ClassVar[int | None] = None  # heads of keys where the file does not say; None: all
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
    def heads(cls, config):
        """Numbers of heads of queries and of keys, and their dimension."""
        heads = config["num_attention_heads"]
        shared = config.get("num_key_value_heads", cls.shared)
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
            for name, shape in (attention | mlp).items():
                shapes[f"{start}{name}.weight"] = shape
                if cls.has_bias(config, name):
                    shapes[f"{start}{name}.bias"] = shape[:1]
            for name in ("input_layernorm", "post_attention_layernorm"):
                shapes[f"{start}{name}.weight"] = (d,)
        return shapes

    @classmethod
    def has_bias(cls, config, name: str) -> bool:
        """Return True if a map of a layer has a bias."""
        return bool(config.get("mlp_bias" if name.startswith("mlp.") else "attention_bias"))

    @classmethod
    def window(cls, config) -> int | None:
        """The number of tokens that a token attends to, itself included; None for all before it."""
        return None

    @property
    def positions(self):
        most, window = self.config["max_position_embeddings"], self.window(self.config)
        return most if window is None else min(most, window)

    @property
    def sees(self):
        if self.positions == self.config["max_position_embeddings"]:
            return super().sees
        return f"a token sees {self.positions}, itself included, and no longer text is replayed"

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


class Mistral(Llama):
    """Mistral: Llama with a sliding window; texts up to the length of the window are replayed."""

    read: ClassVar[tuple[str, ...]] = (
        *("hidden_act", "num_key_value_heads", "head_dim", "rope_parameters", "sliding_window"),
    )
    refused: ClassVar = {"rope_scaling": (None,), "attention_bias": (False, None)}
    shared = 8

    @classmethod
    def check(cls, config):
        super().check(config)
        if cls.window(config) is not None:
            cls.check_size("sliding_window", cls.window(config))

    @classmethod
    def has_bias(cls, config, name):
        return False

    @classmethod
    def window(cls, config):
        return config.get("sliding_window", 4096)


class Qwen2(Mistral):
    """Qwen2: Llama with biases of queries, keys and values, and a window in some layers.

    Texts up to that length are replayed.
    """

    read = (
        *("hidden_act", "num_key_value_heads", "head_dim", "rope_parameters"),
        *("sliding_window", "use_sliding_window", "max_window_layers", "layer_types"),
    )
    refused: ClassVar = Mistral.refused | {"use_mrope": (False, None)}
    shared = 32

    @classmethod
    def check(cls, config):
        cls.check_size("max_window_layers", config.get("max_window_layers", 28), least=0)
        types = config.get("layer_types")
        known = "full_attention", "sliding_attention"
        if types is not None and not (
            isinstance(types, list)
            and len(types) == config.get("num_hidden_layers")
            and all(kind in known for kind in types)
        ):
            raise ConfigError(
                f"config.json: layer_types must be a list of {' and '.join(known)}, one for "
                f"each layer, found {as_given(types)}."
            )
        super().check(config)

    @classmethod
    def has_bias(cls, config, name):
        return name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")

    @classmethod
    def window(cls, config):
        types = config.get("layer_types")
        later = config.get("max_window_layers", 28) < config["num_hidden_layers"]
        has = later if types is None else "sliding_attention" in types
        return super().window(config) if config.get("use_sliding_window") and has else None
