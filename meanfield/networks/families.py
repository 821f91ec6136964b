"""Families of Transformers as tables: keys of config.json, and names and shapes of tensors.

Options of config.json that a table does not name are refused, as they may change the mathematics,
unless they are among `HARMLESS_OPTIONS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

import meanfield as mf
from meanfield import ConfigError
from meanfield.extending import Function, Json, JsonTable, as_given, require, shown

Shapes = dict[str, tuple[int, ...]]
Weights = dict[str, np.ndarray]
Keys = tuple[str, ...]

MOST_CONFIGURED_LAYERS, LARGEST_SIZE = 10_000, 2**31  # sizes are below LARGEST_SIZE
OTHER_MODELS = (
    "Hidden states of any model are read from a file: call it in transformers with "
    "output_hidden_states=True and write np.save('states.npy', np.stack([h[0].float().numpy() for "
    "h in outputs.hidden_states])); or record layers of torch by meanfield.networks.record. See "
    "the page docs/howto/networks.md."
)
CONFIGURED_ACTIVATIONS: dict[str, Function] = {  # by their names in config.json
    "gelu": mf.activations.gelu,
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), mf.activations.gelu_tanh),
    "quick_gelu": mf.activations.quick_gelu,
    "relu": mf.activations.relu,
    **dict.fromkeys(("silu", "swish"), mf.activations.silu),
    "tanh": np.tanh,
}
USUAL_KEYS = {  # of config.json
    **{"width": "hidden_size", "depth": "num_hidden_layers", "heads": "num_attention_heads"},
    **{"longest": "max_position_embeddings", "inner": "intermediate_size", "epsilon": ""},
    **{"activation": "hidden_act", "embedding_width": "hidden_size"},
}
LAYER_TYPES = "full_attention", "sliding_attention"

# Options that do not change what layers do to hidden states -------------------------------------

HARMLESS_OPTIONS = {
    # of the origin of a model
    *("_name_or_path", "name_or_path", "_commit_hash", "architectures", "model_type"),
    *("transformers_version", "transformers.js_config", "is_llama_config", "language"),
    *("id2label", "label2id", "num_labels", "problem_type", "finetuning_task"),
    *("task_specific_params", "tokenizer_class", "prefix"),
    # of training
    *("attention_probs_dropout_prob", "hidden_dropout_prob", "classifier_dropout"),
    *("classifier_dropout_prob", "attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop"),
    *("initializer_range", "gradient_checkpointing", "tf_legacy_loss"),
    # of computing: they change results by rounding only
    *("torch_dtype", "dtype", "use_bfloat16", "torchscript", "_attn_implementation"),
    *("_attn_implementation_autoset", "chunk_size_feed_forward", "use_cache", "output_past"),
    *("return_dict", "output_hidden_states", "output_attentions", "pretraining_tp"),
    "reorder_and_upcast_attn",
    # of tasks, poolers, and the generation of text
    *("tie_word_embeddings", "tie_weights_", "pooler_fc_size", "pooler_num_attention_heads"),
    *("pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "directionality"),
    *("summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type"),
    *("summary_use_proj", "predict_special_tokens"),
    *("bos_token_id", "eos_token_id", "sep_token_id", "pad_token_id", "decoder_start_token_id"),
    *("max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups"),
    *("diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty"),
    *("length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids"),
    *("num_return_sequences", "output_scores", "return_dict_in_generate", "forced_bos_token_id"),
    *("forced_eos_token_id", "remove_invalid_values", "exponential_decay_length_penalty"),
    *("suppress_tokens", "begin_suppress_tokens", "n_ctx", "max_sequence_length"),
}
# Options that no family reads, with the values that change nothing
FIXED_OPTIONS: dict[str, tuple[Json, ...]] = {
    "pruned_heads": ({}, None),
    **dict.fromkeys(("is_encoder_decoder", "tie_encoder_decoder", "is_decoder"), (False, None)),
    "add_cross_attention": (False, None),
    **dict.fromkeys(("cross_attention_hidden_size", "quantization_config"), (None,)),
}


@dataclass(frozen=True)
class Family:
    """Names in the files of a family of Transformers, and the defaults of its options.

    Attributes
    ----------
    name, prefix : str
        Name of the family, and prefix of its tensors in files.
    unused : tuple of str
        Prefixes or suffixes of the names of tensors that are not read.
    words, positions, types, embedding_norm, mapping, last : str
        Names of tensors outside the layers: embeddings of words, positions and token types, their
        norm, their map to the width of the layers, and the norm after the last layer. "" if there
        is none.
    layer : str
        Prefix of the tensors of a layer, with the fields {layer} and {group}.
    maps : dict of str
        Names of the maps of a layer by role, in the order of the tensors.
    norms : (str, str)
        Names of the norms of attention and of the feed-forward map.
    keys : dict of str
        Keys of config.json by their names in `USUAL_KEYS`; "" if there is none.
    sizes : tuple of str
        Keys of other whole numbers >= 1 that a configuration must have.
    optional : dict
        Keys of optional whole numbers, with their defaults and least values. If the least value is
        not 0, null stands for no number.
    numbers, read : tuple of str
        Keys of optional numbers > 0, and of options without a size.
    fixed : dict
        Options by name, with their supported values.
    usual_activation, usual_epsilon
        Defaults.
    biased : tuple of str
        Roles of the maps that have biases.
    bias_options : dict
        Roles of the maps that have biases if an option is true, by the key of this option.
    norm_bias, norms_after, transposed, causal, rotary, padded : bool
        Whether norms have biases, norms follow the sublayers, matrices are (in, out), attention is
        causal, positions are rotary, and positions start after the index of padding.
    """

    name: str
    prefix: str
    unused: Keys
    words: str
    layer: str
    maps: Mapping[str, str]
    norms: tuple[str, str]
    positions: str = ""
    types: str = ""
    embedding_norm: str = ""
    mapping: str = ""
    last: str = ""
    keys: dict[str, str] = field(default_factory=lambda: USUAL_KEYS)
    sizes: Keys = ()
    optional: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    numbers: Keys = ()
    read: Keys = ()
    fixed: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    usual_activation: str = "gelu"
    usual_epsilon: float = 1e-12
    biased: Keys = ("query", "key", "value", "output", "inner", "outer")
    bias_options: Mapping[str, Keys] = field(default_factory=dict)
    norm_bias: bool = True
    norms_after: bool = False
    transposed: bool = False
    causal: bool = True
    rotary: bool = False
    padded: bool = False

    def option(self, config: JsonTable, key: str) -> Json:
        """An optional size of a configuration, or its default."""
        return config.get(key, self.optional[key][0])

    def check(self, config: JsonTable) -> None:
        """Raise ConfigError, with the option's name, unless the configuration is supported."""
        self._check_options(config)
        self._check_heads(config)
        expected = f"a list of {' and '.join(LAYER_TYPES)}, one for each layer"
        types, depth = config.get("layer_types"), config[self.keys["depth"]]
        a_list = isinstance(types, list) and len(types) == depth
        fits = types is None or (a_list and all(kind in LAYER_TYPES for kind in types))
        _check("layer_types", types, expected, fits)

    def _check_options(self, config: JsonTable) -> None:
        """Raise ConfigError for unknown options, and for values out of their range."""
        keys = (self.keys[name] for name in ("width", "depth", "heads", "longest", "inner"))
        sizes = [k for k in ("vocab_size", *keys, *self.sizes) if k not in self.optional]
        numbers = {self.keys["epsilon"], *self.numbers} - {""}
        for key in sizes:
            limit = MOST_CONFIGURED_LAYERS + 1 if key == self.keys["depth"] else LARGEST_SIZE
            _check_size(key, config.get(key), limit)
        for key in numbers:
            _check_number(key, config.get(key, 1.0))
        supported = {**FIXED_OPTIONS, **self.fixed}
        for key, values in supported.items():
            if key in config and config[key] not in values:
                _refuse(key, config[key], f"supported: {', '.join(map(repr, values))}")
        allowed_keys = {*HARMLESS_OPTIONS, *sizes, *numbers, *self.optional, *self.read, *supported}
        for key in config:
            if key not in allowed_keys | {self.keys["activation"]}:
                raise ConfigError(
                    f"config.json: {shown(key)} = {as_given(config[key], 60)} is not known for "
                    f"{config.get('model_type')}, and may change the mathematics. If it does not, "
                    f"remove it from the file. {OTHER_MODELS}"
                )
        key, names = self.keys["activation"], ", ".join(CONFIGURED_ACTIVATIONS)
        activation = config.get(key, self.usual_activation)
        _check(key, activation, f"one of {names}", str(activation) in CONFIGURED_ACTIVATIONS)
        for key, (_, minimum) in self.optional.items():
            limit = config[self.keys["longest"]] - 1 if key == "pad_token_id" else LARGEST_SIZE
            if (value := self.option(config, key)) is not None or minimum == 0:
                _check_size(key, value, limit, minimum)

    def _check_heads(self, config: JsonTable) -> None:
        """Raise ConfigError unless the sizes of heads fit, and their positions are supported."""
        width, (count, key_heads, size) = config[self.keys["width"]], self.heads_of(config)
        heads = f"{self.keys['heads']} = {count}"
        divisible = config.get("head_dim") is not None or width % count == 0
        _check(self.keys["width"], width, f"a multiple of {heads}", divisible)
        _check("num_key_value_heads", key_heads, f"a divisor of {heads}", count % key_heads == 0)
        _check("head_dim", size, "even", not self.rotary or size % 2 == 0)
        if not self.rotary:
            return
        rope = config.get("rope_parameters") or {}
        if not isinstance(rope, dict) or set(rope) - {"rope_theta", "rope_type"}:
            _refuse("rope_parameters", rope)
        _check_number("rope_theta in rope_parameters", rope.get("rope_theta", 1.0))
        if rope.get("rope_type", "default") != "default":
            _refuse("rope_type", rope["rope_type"], "supported: 'default'")

    def heads_of(self, config: JsonTable) -> tuple[int, int, int]:
        """Number of heads of queries, number of heads of keys and values, and their dimension."""
        count, sizes = config[self.keys["heads"]], self.optional
        key_heads, size = (
            self.option(config, key) if key in sizes else None
            for key in ("num_key_value_heads", "head_dim")
        )
        return count, key_heads or count, size or config[self.keys["width"]] // count

    def window(self, config: JsonTable) -> int | None:
        """The number of tokens that a token attends to, itself included; None for all before it."""
        if "sliding_window" not in self.optional:
            return None
        if "use_sliding_window" in self.read:
            types = config.get("layer_types")
            later = self.option(config, "max_window_layers") < config[self.keys["depth"]]
            has = later if types is None else "sliding_attention" in types
            if not (config.get("use_sliding_window") and has):
                return None
        return self.option(config, "sliding_window")

    def prefix_of(self, config: JsonTable, layer: int) -> str:
        """The prefix of the names of a layer's tensors."""
        depth: int = config[self.keys["depth"]]
        groups: Json = config.get("num_hidden_groups", depth)
        return self.layer.format(layer=layer, group=layer * groups // depth)

    def shapes(self, config: JsonTable) -> Shapes:
        """Names and shapes of all tensors of a configuration."""
        d, e = config[self.keys["width"]], config[self.keys["embedding_width"]]
        heads, shared, size = self.heads_of(config)
        inner = config.get(self.keys["inner"]) or 4 * d
        rows = {self.words: "vocab_size", self.positions: self.keys["longest"]}
        rows |= {self.types: "type_vocab_size"} if self.types else {}
        shapes: Shapes = {f"{name}.weight": (config[key], e) for name, key in rows.items() if name}

        def add(name: str, out: int, of: int | None = None, bias: bool = self.norm_bias) -> None:
            """Add a map from `of` to `out` numbers, or a norm, with its bias."""
            matrix = (of, out) if self.transposed else (out, of)
            shapes[f"{name}.weight"] = (out,) if of is None else matrix  # type: ignore[assignment]
            if bias:
                shapes[f"{name}.bias"] = (out,)

        if self.embedding_norm:
            add(self.embedding_norm, e)
        outs = {"query": heads * size, "key": shared * size, "value": shared * size, "output": d}
        outs |= {"inner": inner, "gate": inner, "outer": d}
        if "key" not in self.maps:  # queries, keys and values are in one tensor
            outs["query"] *= 3
        for layer in range(config[self.keys["depth"]]):
            start = self.prefix_of(config, layer)
            for role, name in self.maps.items():
                of = {"output": heads * size, "outer": inner}.get(role, d)
                biased = (roles for key, roles in self.bias_options.items() if config.get(key))
                add(start + name, outs[role], of, role in (*self.biased, *sum(biased, ())))
            for name in self.norms:
                add(start + name, d)
        if self.mapping:
            add(self.mapping, d, e, True)
        if self.last:
            add(self.last, d)
        return shapes


def _refuse(key: str, value: Json, supported: str = "") -> None:
    """Raise ConfigError for an option that changes the mathematics."""
    raise ConfigError(
        f"config.json: {key} = {as_given(value)} changes the mathematics and is not supported"
        f"{supported and f'; {supported}'}. {OTHER_MODELS}"
    )


def _check(key: str, value: Json, expected: str, fits: bool, advice: str = "") -> None:
    """Raise ConfigError, with the option's name, unless a value fits."""
    require(f"config.json: {key}", value, expected, fits, ConfigError, advice)


def _check_size(key: str, value: Json, limit: int = LARGEST_SIZE, minimum: int = 1) -> None:
    """Raise ConfigError unless a value is a whole number from `minimum` and below `limit`."""
    expected = f"a whole number >= {minimum} and below {limit}"
    if value is None:
        raise ConfigError(f"config.json: {key} is missing; expected {expected}.")
    _check(key, value, expected, type(value) is int and minimum <= value < limit)


def _check_number(key: str, value: Json) -> None:
    """Raise ConfigError unless a value is a finite number > 0."""
    _check(key, value, "a number > 0", type(value) in (int, float) and 0 < value < 1e300)


# The families -----------------------------------------------------------------------------------

BERT = Family(
    "Bert",
    "bert.",
    (
        *("pooler.", "cls.", "classifier.", "qa_outputs."),
        *("embeddings.position_ids", "embeddings.token_type_ids"),
    ),
    words="embeddings.word_embeddings",
    positions="embeddings.position_embeddings",
    types="embeddings.token_type_embeddings",
    embedding_norm="embeddings.LayerNorm",
    layer="encoder.layer.{layer}.",
    maps={
        **{role: f"attention.self.{role}" for role in ("query", "key", "value")},
        **{"output": "attention.output.dense", "inner": "intermediate.dense"},
        "outer": "output.dense",
    },
    norms=("attention.output.LayerNorm", "output.LayerNorm"),
    keys=USUAL_KEYS | {"epsilon": "layer_norm_eps"},
    sizes=("type_vocab_size",),
    fixed={"position_embedding_type": ("absolute", None)},
    norms_after=True,
    causal=False,
)
ROBERTA = replace(
    BERT,
    name="Roberta",
    prefix="roberta.",
    unused=(*BERT.unused, "lm_head."),
    optional={"pad_token_id": (1, 0)},
    padded=True,
)
ALBERT = replace(
    BERT,
    name="Albert",
    prefix="albert.",
    unused=(*BERT.unused, "predictions.", "sop_classifier."),
    mapping="encoder.embedding_hidden_mapping_in",
    layer="encoder.albert_layer_groups.{group}.albert_layers.0.",
    maps={
        **{role: f"attention.{role}" for role in ("query", "key", "value")},
        **{"output": "attention.dense", "inner": "ffn", "outer": "ffn_output"},
    },
    norms=("attention.LayerNorm", "full_layer_layer_norm"),
    usual_activation="gelu_new",
    keys=BERT.keys | {"embedding_width": "embedding_size"},
    sizes=(*BERT.sizes, "embedding_size", "num_hidden_groups"),
    fixed={
        **BERT.fixed,
        **{"inner_group_num": (1,), "down_scale_factor": (1,)},
        **dict.fromkeys(("net_structure_type", "gap_size", "num_memory_blocks"), (0,)),
    },
)
DISTILBERT = replace(
    BERT,
    name="DistilBert",
    prefix="distilbert.",
    unused=(
        *("vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
        *("pre_classifier.", "classifier.", "qa_outputs.", "embeddings.position_ids"),
    ),
    types="",
    layer="transformer.layer.{layer}.",
    maps={
        **{"query": "attention.q_lin", "key": "attention.k_lin", "value": "attention.v_lin"},
        **{"output": "attention.out_lin", "inner": "ffn.lin1", "outer": "ffn.lin2"},
    },
    norms=("sa_layer_norm", "output_layer_norm"),
    keys=USUAL_KEYS
    | {"width": "dim", "embedding_width": "dim", "depth": "n_layers", "heads": "n_heads"}
    | {"inner": "hidden_dim", "activation": "activation"},
    sizes=(),
    read=("sinusoidal_pos_embds", "dropout", "qa_dropout", "seq_classif_dropout"),  # of training
    fixed={},
)
GPT2 = Family(
    "GPT2",
    "transformer.",
    ("lm_head.", ".attn.bias", ".attn.masked_bias"),
    words="wte",
    positions="wpe",
    last="ln_f",
    layer="h.{layer}.",
    maps={
        **{"query": "attn.c_attn", "output": "attn.c_proj"},  # keys and values are in c_attn, too
        **{"inner": "mlp.c_fc", "outer": "mlp.c_proj"},
    },
    norms=("ln_1", "ln_2"),
    keys={
        **{"width": "n_embd", "embedding_width": "n_embd", "depth": "n_layer", "heads": "n_head"},
        **{"longest": "n_positions", "inner": "n_inner", "activation": "activation_function"},
        "epsilon": "layer_norm_epsilon",
    },
    optional={"n_inner": (None, 1)},
    fixed={"scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False, None)},
    usual_activation="gelu_new",
    usual_epsilon=1e-5,
    transposed=True,
)
LLAMA = Family(
    "Llama",
    "model.",
    ("lm_head.", ".rotary_emb.inv_freq"),
    words="embed_tokens",
    last="norm",
    layer="layers.{layer}.",
    maps={
        **{role: f"self_attn.{role[0]}_proj" for role in ("query", "key", "value", "output")},
        **{"gate": "mlp.gate_proj", "inner": "mlp.up_proj", "outer": "mlp.down_proj"},
    },
    norms=("input_layernorm", "post_attention_layernorm"),
    keys=USUAL_KEYS | {"epsilon": "rms_norm_eps"},
    optional={"num_key_value_heads": (None, 1), "head_dim": (None, 2)},
    numbers=("rope_theta",),
    read=("attention_bias", "mlp_bias", "rope_parameters"),
    fixed={
        "rope_interleaved": (False, None),
        **dict.fromkeys(("rope_scaling", "sliding_window"), (None,)),
        "partial_rotary_factor": (1.0,),
    },
    usual_activation="silu",
    usual_epsilon=1e-6,
    biased=(),
    bias_options={
        "attention_bias": ("query", "key", "value", "output"),
        "mlp_bias": ("inner", "outer", "gate"),
    },
    norm_bias=False,
    rotary=True,
)
MISTRAL = replace(
    LLAMA,
    name="Mistral",
    optional=LLAMA.optional | {"num_key_value_heads": (8, 1), "sliding_window": (4096, 1)},
    read=("rope_parameters",),
    fixed={"rope_scaling": (None,), "attention_bias": (False, None)},
    bias_options={},
)
QWEN2 = replace(
    MISTRAL,
    name="Qwen2",
    optional=MISTRAL.optional | {"num_key_value_heads": (32, 1), "max_window_layers": (28, 0)},
    read=(*MISTRAL.read, "use_sliding_window", "layer_types"),
    fixed={**MISTRAL.fixed, "use_mrope": (False, None)},
    biased=("query", "key", "value"),
)
FAMILIES = {
    family.name.lower(): family
    for family in (BERT, ROBERTA, ALBERT, DISTILBERT, GPT2, LLAMA, MISTRAL, QWEN2)
}  # by the model_type in config.json


def family_of(config: JsonTable) -> Family:
    """The family of a configuration; raise ConfigError unless it is supported."""
    require("config", config, "a dict", isinstance(config, dict), TypeError)
    kind: Json = config.get("model_type")
    supported = isinstance(kind, str) and kind in FAMILIES
    _check("model_type", kind, f"one of {', '.join(FAMILIES)}", supported, OTHER_MODELS)
    FAMILIES[kind].check(config)
    return FAMILIES[kind]
