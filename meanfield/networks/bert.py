"""Encoders of the BERT family: BERT, RoBERTa, ALBERT, DistilBERT; normalised after sublayers."""

from typing import ClassVar

import numpy as np

from .layer import Layer
from .network import Network

MAPS = ("query", "key", "value", "output", "inner", "outer")
NORMS = ("attention norm", "mlp norm")


class Bert(Network):
    """BERT: LN(x + attention(x)), LN(x + mlp(x))."""

    prefix = "bert."
    unused: ClassVar[tuple[str, ...]] = (
        "pooler.",
        "cls.",
        "classifier.",
        "qa_outputs.",
        "embeddings.position_ids",
        "embeddings.token_type_ids",
    )
    sizes: tuple[str, ...] = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
    )
    numbers: ClassVar[tuple[str, ...]] = ("layer_norm_eps",)
    read: ClassVar[tuple[str, ...]] = ("hidden_act", "pad_token_id")
    refused: ClassVar = {"position_embedding_type": ("absolute", None)}

    width, heads, inner, act = (
        *("hidden_size", "num_attention_heads"),
        *("intermediate_size", "hidden_act"),
    )  # keys
    embedding, activation = "hidden_size", "gelu"  # key of the width of embeddings; by default
    types = "embeddings.token_type_embeddings.weight"
    names: ClassVar[dict[str, str]] = {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "output": "attention.output.dense",
        "attention norm": "attention.output.LayerNorm",
        "inner": "intermediate.dense",
        "outer": "output.dense",
        "mlp norm": "output.LayerNorm",
    }

    @classmethod
    def check(cls, config):
        super().check(config)
        cls.check_activation(cls.act, config, cls.activation)
        cls.check_heads(cls.width, cls.heads, config)

    @classmethod
    def shapes(cls, config):
        d, inner, width = config[cls.width], config[cls.inner], config[cls.embedding]
        shapes: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (config["vocab_size"], width),
            "embeddings.position_embeddings.weight": (config["max_position_embeddings"], width),
        }
        if "type_vocab_size" in cls.sizes:
            shapes[cls.types] = (config["type_vocab_size"], width)
        for name in ("weight", "bias"):
            shapes[f"embeddings.LayerNorm.{name}"] = (width,)
        maps = dict(zip(MAPS, [(d, d)] * 4 + [(inner, d), (d, inner)], strict=True))
        for layer in range(config[cls.layers]):
            start = cls.place(config, layer)
            for role, shape in maps.items():
                shapes[f"{start}{cls.names[role]}.weight"] = shape
                shapes[f"{start}{cls.names[role]}.bias"] = shape[:1]
            for role in NORMS:
                for name in ("weight", "bias"):
                    shapes[f"{start}{cls.names[role]}.{name}"] = (d,)
        return shapes

    @classmethod
    def place(cls, config, layer: int) -> str:
        """The prefix of the names of a layer's tensors."""
        return f"encoder.layer.{layer}."

    @property
    def offset(self) -> int:
        """Position of the first token."""
        return 0

    @property
    def positions(self):
        return self.config["max_position_embeddings"] - self.offset

    @property
    def epsilon(self):
        return self.config.get("layer_norm_eps", 1e-12)

    def layer_at(self, index):
        start, heads = self.place(self.config, index), self.config[self.heads]
        maps = {role: self.map_at(f"{start}{self.names[role]}") for role in MAPS}
        first, second = (self.norm_at(f"{start}{self.names[role]}") for role in NORMS)
        activation = self.config.get(self.act, self.activation)
        return Layer(index, maps, (first, second), True, heads, heads, False, activation)

    def places(self, ids):
        """Positions of the tokens."""
        return np.arange(len(ids))

    def embedded(self, ids):
        x = self["embeddings.word_embeddings.weight"][ids]
        if self.types in self.weights:
            x = x + self[self.types][0]
        x = x + self["embeddings.position_embeddings.weight"][self.places(ids)]
        return self.norm_at("embeddings.LayerNorm")(x)


class Roberta(Bert):
    """RoBERTa: BERT whose positions start after the index of padding."""

    prefix = "roberta."
    unused = (*Bert.unused, "lm_head.")

    @classmethod
    def check(cls, config):
        super().check(config)
        most = config["max_position_embeddings"] - 1
        cls.check_size("pad_token_id", config.get("pad_token_id", 1), most, least=0)

    @property
    def offset(self):
        return self.config.get("pad_token_id", 1) + 1

    def places(self, ids):  # padding stays at its own, and is not counted
        words = ids != self.offset - 1
        return np.cumsum(words) * words + self.offset - 1


class Albert(Bert):
    """ALBERT: BERT with weights shared within groups of layers, and factorised embeddings."""

    prefix = "albert."
    unused = (*Bert.unused, "predictions.", "sop_classifier.")
    sizes = (*Bert.sizes, "embedding_size", "num_hidden_groups")
    refused: ClassVar = Bert.refused | {
        "inner_group_num": (1,),
        "net_structure_type": (0,),
        "gap_size": (0,),
        "num_memory_blocks": (0,),
        "down_scale_factor": (1,),
    }
    activation, embedding = "gelu_new", "embedding_size"
    names: ClassVar[dict[str, str]] = {
        "query": "attention.query",
        "key": "attention.key",
        "value": "attention.value",
        "output": "attention.dense",
        "attention norm": "attention.LayerNorm",
        "inner": "ffn",
        "outer": "ffn_output",
        "mlp norm": "full_layer_layer_norm",
    }

    @classmethod
    def place(cls, config, layer):
        group = layer * config["num_hidden_groups"] // config["num_hidden_layers"]
        return f"encoder.albert_layer_groups.{group}.albert_layers.0."

    @classmethod
    def shapes(cls, config):
        d = config["hidden_size"]
        mapped = "encoder.embedding_hidden_mapping_in"
        embedding = {f"{mapped}.weight": (d, config["embedding_size"]), f"{mapped}.bias": (d,)}
        return super().shapes(config) | embedding

    def embedded(self, ids):
        return self.map_at("encoder.embedding_hidden_mapping_in")(super().embedded(ids))


class DistilBert(Bert):
    """DistilBERT: BERT without token types, with other names in its files."""

    prefix = "distilbert."
    unused = (
        *("vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
        *("pre_classifier.", "classifier.", "qa_outputs.", "embeddings.position_ids"),
    )
    layers = "n_layers"
    sizes = ("vocab_size", "dim", "n_layers", "n_heads", "hidden_dim", "max_position_embeddings")
    numbers = ()
    read = (
        *("activation", "pad_token_id"),
        *("sinusoidal_pos_embds", "dropout", "qa_dropout", "seq_classif_dropout"),  # of training
    )
    refused: ClassVar = {}
    width, heads, inner, act, embedding = "dim", "n_heads", "hidden_dim", "activation", "dim"
    names: ClassVar[dict[str, str]] = {
        "query": "attention.q_lin",
        "key": "attention.k_lin",
        "value": "attention.v_lin",
        "output": "attention.out_lin",
        "attention norm": "sa_layer_norm",
        "inner": "ffn.lin1",
        "outer": "ffn.lin2",
        "mlp norm": "output_layer_norm",
    }

    @classmethod
    def place(cls, config, layer):
        return f"transformer.layer.{layer}."
