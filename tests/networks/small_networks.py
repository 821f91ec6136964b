"""Small networks of each architecture, for tests."""

import numpy as np

import meanfield as mf

BERT = {
    "model_type": "bert", "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 9,
    "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
}  # fmt: skip
ALBERT = BERT | {"model_type": "albert", "num_hidden_layers": 4, "num_hidden_groups": 2,
                 "embedding_size": 5, "hidden_act": "gelu_new"}  # fmt: skip
ROBERTA = BERT | {"model_type": "roberta", "pad_token_id": 1}
GPT2 = {
    "model_type": "gpt2", "vocab_size": 11, "n_positions": 9, "n_embd": 8, "n_layer": 2,
    "n_head": 2, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
}  # fmt: skip
LLAMA = {
    "model_type": "llama", "vocab_size": 11, "hidden_size": 16, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 12,
    "max_position_embeddings": 9, "rms_norm_eps": 1e-6, "rope_theta": 50.0,
}  # fmt: skip
MISTRAL = LLAMA | {"model_type": "mistral", "sliding_window": 6}
QWEN2 = LLAMA | {
    "model_type": "qwen2", "use_sliding_window": False, "sliding_window": 4,
    "layer_types": ["full_attention"] * 2,
}  # fmt: skip
DISTILBERT = {
    "model_type": "distilbert", "vocab_size": 11, "dim": 8, "n_layers": 2, "n_heads": 2,
    "hidden_dim": 12, "max_position_embeddings": 9, "activation": "gelu", "dropout": 0.1,
    "sinusoidal_pos_embds": False,
}  # fmt: skip
IDS = [3, 7, 1, 10, 3]


def spread(config):
    """A network whose weights are large enough that every sublayer matters."""
    net = mf.networks.untrained(config, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    return net.replaced(lambda w: rng.normal(0, 0.7, w.shape))
