"""Encoders of the BERT family: BERT (MiniLM) and RoBERTa; normalised after each sublayer."""

from typing import ClassVar

from .network import Network
from .sublayers import ACTIVATIONS, attend, by_heads, layer_norm


class Bert(Network):
    """BERT: LN(x + attention(x)), LN(x + mlp(x))."""

    prefix = "bert."
    unused: ClassVar[tuple[str, ...]] = (
        "pooler.",
        "cls.",
        "embeddings.position_ids",
        "embeddings.token_type_ids",
    )
    sizes = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
    )
    refused: ClassVar = {
        "position_embedding_type": ("absolute", None),
        "is_decoder": (False, None),
        "add_cross_attention": (False, None),
    }

    @classmethod
    def check(cls, config):
        super().check(config)
        cls.check_activation("hidden_act", config, "gelu")
        cls.check_heads("hidden_size", "num_attention_heads", config)

    @classmethod
    def shapes(cls, config):
        d, inner = config["hidden_size"], config["intermediate_size"]
        shapes: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (config["vocab_size"], d),
            "embeddings.position_embeddings.weight": (config["max_position_embeddings"], d),
            "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], d),
        }
        maps = {
            "attention.self.query": (d, d),
            "attention.self.key": (d, d),
            "attention.self.value": (d, d),
            "attention.output.dense": (d, d),
            "intermediate.dense": (inner, d),
            "output.dense": (d, inner),
        }
        norms = ["embeddings.LayerNorm"]
        for layer in range(config["num_hidden_layers"]):
            start = f"encoder.layer.{layer}."
            for name, shape in maps.items():
                shapes[f"{start}{name}.weight"] = shape
                shapes[f"{start}{name}.bias"] = shape[:1]
            norms += [f"{start}attention.output.LayerNorm", f"{start}output.LayerNorm"]
        for name in norms:
            shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (d,)
        return shapes

    @property
    def offset(self) -> int:
        """Position of the first token."""
        return 0

    @property
    def positions(self):
        return self.config["max_position_embeddings"] - self.offset

    @property
    def vocabulary(self):
        return self.config["vocab_size"]

    def normalised(self, x, name):
        """LayerNorm of this name."""
        epsilon = self.config.get("layer_norm_eps", 1e-12)
        return layer_norm(x, self[f"{name}.weight"], self[f"{name}.bias"], epsilon)

    def steps(self, ids):
        heads = self.config["num_attention_heads"]
        activation = ACTIVATIONS[self.config.get("hidden_act", "gelu")]
        places = slice(self.offset, self.offset + len(ids))
        x = self["embeddings.word_embeddings.weight"][ids]
        x = x + self["embeddings.token_type_embeddings.weight"][0]
        x = x + self["embeddings.position_embeddings.weight"][places]
        x = self.normalised(x, "embeddings.LayerNorm")
        yield "embedding", 0, x, None
        for layer in range(self.config["num_hidden_layers"]):
            name = f"encoder.layer.{layer}"
            q, k, v = (
                by_heads(self.affine(x, f"{name}.attention.self.{role}"), heads)
                for role in ("query", "key", "value")
            )
            mixed, weights = attend(q, k, v, causal=False)
            x = x + self.affine(mixed, f"{name}.attention.output.dense")
            yield "attention", layer + 1, x, weights
            x = self.normalised(x, f"{name}.attention.output.LayerNorm")
            yield "normalisation", layer + 1, x, None
            inner = activation(self.affine(x, f"{name}.intermediate.dense"))
            x = x + self.affine(inner, f"{name}.output.dense")
            yield "mlp", layer + 1, x, None
            x = self.normalised(x, f"{name}.output.LayerNorm")
            yield "normalisation", layer + 1, x, None


class Roberta(Bert):
    """BERT whose positions begin after that of padding."""

    prefix = "roberta."
    unused = (*Bert.unused, "lm_head.", "classifier.")

    @classmethod
    def check(cls, config):
        super().check(config)
        pad = config.get("pad_token_id", 1)
        if type(pad) is not int or not 0 <= pad < config["max_position_embeddings"] - 1:
            raise ValueError(
                "config.json: pad_token_id must be a whole number from 0 to "
                f"max_position_embeddings - 2, found {pad!r}."
            )

    @property
    def offset(self):
        return self.config.get("pad_token_id", 1) + 1
