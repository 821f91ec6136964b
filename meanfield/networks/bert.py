"""Encoders of the BERT family: BERT, RoBERTa, ALBERT, DistilBERT; normalised after sublayers."""

from typing import ClassVar

import numpy as np

from .architecture import Config, Keys, Options, Shapes
from .network import Network


class Bert(Network):
    """BERT: LN(x + attention(x)), LN(x + mlp(x))."""

    prefix = "bert."
    unused: ClassVar[Keys] = (
        *("pooler.", "cls.", "classifier.", "qa_outputs."),
        *("embeddings.position_ids", "embeddings.token_type_ids"),
    )
    norm_epsilon, usual_epsilon = "layer_norm_eps", 1e-12
    usual_activation = "gelu"
    other_sizes: ClassVar[Keys] = ("type_vocab_size",)
    read: ClassVar[Keys] = ("pad_token_id",)
    refused: ClassVar[Options] = {"position_embedding_type": ("absolute", None)}
    embedding_width = "hidden_size"  # key of config.json
    maps: ClassVar[dict[str, str]] = {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "output": "attention.output.dense",
        "inner": "intermediate.dense",
        "outer": "output.dense",
    }
    norms = "attention.output.LayerNorm", "output.LayerNorm"
    norms_after, causal = True, False
    types = "embeddings.token_type_embeddings.weight"

    @classmethod
    def embeddings(cls, config: Config) -> Shapes:
        width = config[cls.embedding_width]
        shapes: Shapes = {
            "embeddings.word_embeddings.weight": (config["vocab_size"], width),
            "embeddings.position_embeddings.weight": (config[cls.longest], width),
        }
        if "type_vocab_size" in cls.other_sizes:
            shapes[cls.types] = (config["type_vocab_size"], width)
        return shapes | {f"embeddings.LayerNorm.{name}": (width,) for name in ("weight", "bias")}

    @classmethod
    def start(cls, config: Config, layer: int) -> str:
        return f"encoder.layer.{layer}."

    def position_rows(self, ids: np.ndarray) -> np.ndarray:
        """Row (n,) of each token in the table of positional embeddings."""
        return np.arange(len(ids))

    def embedded(self, ids: np.ndarray) -> np.ndarray:
        x = self["embeddings.word_embeddings.weight"][ids]
        if self.types in self.weights:
            x = x + self[self.types][0]
        x = x + self["embeddings.position_embeddings.weight"][self.position_rows(ids)]
        return self.norm_at("embeddings.LayerNorm")(x)


class Roberta(Bert):
    """RoBERTa: BERT whose positions start after the index of padding."""

    prefix = "roberta."
    unused: ClassVar[Keys] = (*Bert.unused, "lm_head.")

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        most = config["max_position_embeddings"] - 1
        cls.check_size("pad_token_id", config.get("pad_token_id", 1), most, least=0)

    @property
    def positions(self) -> int:
        return super().positions - self.config.get("pad_token_id", 1) - 1

    def position_rows(self, ids: np.ndarray) -> np.ndarray:
        """Row (n,) of each token as in `Bert`; padding has its own row and is not counted."""
        padding = self.config.get("pad_token_id", 1)
        words = ids != padding
        return np.cumsum(words) * words + padding


class Albert(Bert):
    """ALBERT: BERT with weights shared within groups of layers, and factorised embeddings."""

    prefix = "albert."
    unused: ClassVar[Keys] = (*Bert.unused, "predictions.", "sop_classifier.")
    usual_activation, embedding_width = "gelu_new", "embedding_size"
    other_sizes: ClassVar[Keys] = (*Bert.other_sizes, "embedding_size", "num_hidden_groups")
    refused = Bert.refused | {
        "inner_group_num": (1,),
        "net_structure_type": (0,),
        "gap_size": (0,),
        "num_memory_blocks": (0,),
        "down_scale_factor": (1,),
    }
    maps: ClassVar[dict[str, str]] = {
        "query": "attention.query",
        "key": "attention.key",
        "value": "attention.value",
        "output": "attention.dense",
        "inner": "ffn",
        "outer": "ffn_output",
    }
    norms = "attention.LayerNorm", "full_layer_layer_norm"
    mapping = "encoder.embedding_hidden_mapping_in"

    @classmethod
    def start(cls, config: Config, layer: int) -> str:
        group = layer * config["num_hidden_groups"] // config["num_hidden_layers"]
        return f"encoder.albert_layer_groups.{group}.albert_layers.0."

    @classmethod
    def shapes(cls, config: Config) -> Shapes:
        d, mapping = config["hidden_size"], (config["hidden_size"], config["embedding_size"])
        return super().shapes(config) | {
            f"{cls.mapping}.weight": mapping,
            f"{cls.mapping}.bias": (d,),
        }

    def embedded(self, ids: np.ndarray) -> np.ndarray:
        return self.map_at(self.mapping)(super().embedded(ids))


class DistilBert(Bert):
    """DistilBERT: BERT without token types, with other names in its files."""

    prefix = "distilbert."
    unused: ClassVar[Keys] = (
        *("vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
        *("pre_classifier.", "classifier.", "qa_outputs.", "embeddings.position_ids"),
    )
    width, layers, head_count, inner = "dim", "n_layers", "n_heads", "hidden_dim"
    activation, embedding_width = "activation", "dim"
    other_sizes: ClassVar[Keys] = ()
    norm_epsilon = ""
    read: ClassVar[Keys] = (
        "pad_token_id",
        *("sinusoidal_pos_embds", "dropout", "qa_dropout", "seq_classif_dropout"),  # of training
    )
    refused: ClassVar[Options] = {}
    maps: ClassVar[dict[str, str]] = {
        "query": "attention.q_lin",
        "key": "attention.k_lin",
        "value": "attention.v_lin",
        "output": "attention.out_lin",
        "inner": "ffn.lin1",
        "outer": "ffn.lin2",
    }
    norms = "sa_layer_norm", "output_layer_norm"

    @classmethod
    def start(cls, config: Config, layer: int) -> str:
        return f"transformer.layer.{layer}."
