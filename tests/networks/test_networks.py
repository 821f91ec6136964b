"""Networks of files against forward passes written here, token by token, and bad files."""

import json
import math

import numpy as np
import pytest
from small_networks import (
    ALBERT,
    BERT,
    DISTILBERT,
    GPT2,
    IDS,
    LLAMA,
    MISTRAL,
    QWEN2,
    ROBERTA,
    spread,
)

import meanfield as mf
from meanfield.models.activations import single_erf


def norm(x, gain, bias=None, eps=0.0):
    """Of one token: LayerNorm with a bias, RMSNorm without."""
    if bias is None:
        return gain * x / math.sqrt(x @ x / len(x) + eps)
    return gain * (x - x.mean()) / math.sqrt(x.var() + eps) + bias


def attention(q, k, v, heads, groups, causal):
    """Token by token and head by head."""
    out = np.zeros_like(q)
    size = q.shape[1] // heads
    for i in range(len(q)):
        for h in range(heads):
            mine = slice(h * size, (h + 1) * size)
            g = h * groups // heads
            theirs = slice(g * size, (g + 1) * size)
            seen = range(i + 1 if causal else len(q))
            logits = [math.exp(q[i, mine] @ k[j, theirs] / math.sqrt(size)) for j in seen]
            out[i, mine] = sum(e * v[j, theirs] for e, j in zip(logits, seen, strict=True)) / sum(
                logits
            )
    return out


def rows(function, x):
    return np.array([function(row) for row in x])


def bert(c, w, ids):
    place, places = c.get("pad_token_id", -1), []
    for i in ids:  # the padding of RoBERTa is not counted
        counted = c["model_type"] != "roberta" or i != c["pad_token_id"]
        place += counted
        places.append(place if counted else c["pad_token_id"])
    e = "embeddings."
    x = np.array([
        w[e + "word_embeddings.weight"][i] + w[e + "position_embeddings.weight"][p]
        + w[e + "token_type_embeddings.weight"][0] for p, i in zip(places, ids, strict=True)
    ])  # fmt: skip

    def ln(x, name):
        return rows(lambda r: norm(r, w[name + ".weight"], w[name + ".bias"], 1e-12), x)

    def dense(x, name):
        return np.einsum("ij,nj->ni", w[name + ".weight"], x) + w[name + ".bias"]

    layers = [ln(x, e + "LayerNorm")]
    if c["model_type"] == "albert":
        return albert(c, layers[0], ln, dense)
    for k in range(c["num_hidden_layers"]):
        n, x = f"encoder.layer.{k}.", layers[-1]
        q, key, v = (dense(x, f"{n}attention.self.{r}") for r in ("query", "key", "value"))
        y = x + dense(attention(q, key, v, 2, 2, False), n + "attention.output.dense")
        y = ln(y, n + "attention.output.LayerNorm")
        z = dense(y, n + "intermediate.dense")
        z = np.vectorize(lambda t: t * math.erfc(-t / math.sqrt(2)) / 2)(z)
        layers.append(ln(y + dense(z, n + "output.dense"), n + "output.LayerNorm"))
    return np.array(layers)


def distilbert(c, w, ids):
    def ln(x, name):
        return rows(lambda r: norm(r, w[name + ".weight"], w[name + ".bias"], 1e-12), x)

    def dense(x, name):
        return np.einsum("ij,nj->ni", w[name + ".weight"], x) + w[name + ".bias"]

    tables = (w[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position"))
    words, places = tables
    layers = [
        ln(np.array([words[i] + places[p] for p, i in enumerate(ids)]), "embeddings.LayerNorm")
    ]
    for k in range(c["n_layers"]):
        n, x = f"transformer.layer.{k}.", layers[-1]
        q, key, v = (dense(x, f"{n}attention.{r}_lin") for r in "qkv")
        mixed = dense(attention(q, key, v, 2, 2, False), n + "attention.out_lin")
        y = ln(x + mixed, n + "sa_layer_norm")
        z = np.vectorize(lambda t: t * math.erfc(-t / math.sqrt(2)) / 2)(dense(y, n + "ffn.lin1"))
        layers.append(ln(y + dense(z, n + "ffn.lin2"), n + "output_layer_norm"))
    return np.array(layers)


def tanh_gelu(t):
    return 0.5 * t * (1 + math.tanh(math.sqrt(2 / math.pi) * (t + 0.044715 * t * t * t)))


def albert(c, x, ln, dense):
    """Layers 0 and 1 are of the first group, 2 and 3 of the second."""
    layers = [dense(x, "encoder.embedding_hidden_mapping_in")]
    for k in range(c["num_hidden_layers"]):
        n, x = f"encoder.albert_layer_groups.{k // 2}.albert_layers.0.", layers[-1]
        q, key, v = (dense(x, f"{n}attention.{r}") for r in ("query", "key", "value"))
        y = x + dense(attention(q, key, v, 2, 2, False), n + "attention.dense")
        y = ln(y, n + "attention.LayerNorm")
        z = dense(np.vectorize(tanh_gelu)(dense(y, n + "ffn")), n + "ffn_output")
        layers.append(ln(y + z, n + "full_layer_layer_norm"))
    return np.array(layers)


def gpt2(c, w, ids):
    def ln(x, name):
        return rows(lambda r: norm(r, w[name + ".weight"], w[name + ".bias"], 1e-5), x)

    def conv(x, name):
        return np.einsum("ni,ij->nj", x, w[name + ".weight"]) + w[name + ".bias"]

    layers = [np.array([w["wte.weight"][i] + w["wpe.weight"][p] for p, i in enumerate(ids)])]
    for k in range(c["n_layer"]):
        n, x = f"h.{k}.", layers[-1]
        joint = conv(ln(x, n + "ln_1"), n + "attn.c_attn")
        mixed = attention(joint[:, :8], joint[:, 8:16], joint[:, 16:], 2, 2, True)
        x = x + conv(mixed, n + "attn.c_proj")
        inner = np.vectorize(tanh_gelu)(conv(ln(x, n + "ln_2"), n + "mlp.c_fc"))
        layers.append(x + conv(inner, n + "mlp.c_proj"))
    layers[-1] = ln(layers[-1], "ln_f")
    return np.array(layers)


def llama(c, w, ids):
    def rms(x, name):
        return rows(lambda r: norm(r, w[name + ".weight"], eps=1e-6), x)

    def turned(x):  # pairs (k, k + size/2) as complex numbers, head by head
        size, out = 4, x.copy()
        for p in range(len(x)):
            for start in range(0, x.shape[1], size):
                for k in range(size // 2):
                    a, b = start + k, start + k + size // 2
                    phase = p / 50.0 ** (2 * k / size)
                    z = complex(x[p, a], x[p, b]) * complex(math.cos(phase), math.sin(phase))
                    out[p, a], out[p, b] = z.real, z.imag
        return out

    layers = [np.array([w["embed_tokens.weight"][i] for i in ids])]
    for k in range(c["num_hidden_layers"]):
        n, x = f"layers.{k}.", layers[-1]
        y = rms(x, n + "input_layernorm")
        q, key, v = (y @ w[f"{n}self_attn.{r}_proj.weight"].T for r in "qkv")
        if c["model_type"] == "qwen2":
            q, key, v = (
                states + w[f"{n}self_attn.{r}_proj.bias"]
                for r, states in zip("qkv", (q, key, v), strict=True)
            )
        mixed = attention(turned(q), turned(key), v, 4, 2, True)
        x = x + mixed @ w[n + "self_attn.o_proj.weight"].T
        y = rms(x, n + "post_attention_layernorm")
        gate = np.vectorize(lambda t: t / (1 + math.exp(-t)))(y @ w[n + "mlp.gate_proj.weight"].T)
        up = y @ w[n + "mlp.up_proj.weight"].T
        layers.append(x + (gate * up) @ w[n + "mlp.down_proj.weight"].T)
    layers[-1] = rms(layers[-1], "norm")
    return np.array(layers)


def write(path, entries, data):
    header = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


@pytest.mark.parametrize(
    "config, reference",
    [
        *((BERT, bert), (ROBERTA, bert), (ALBERT, bert), (DISTILBERT, distilbert)),
        *((GPT2, gpt2), (LLAMA, llama), (MISTRAL, llama), (QWEN2, llama)),
    ],
)
def test_replay_is_an_independent_forward_pass(config, reference, tmp_path):
    spread(config).save(tmp_path)
    net = mf.networks.load(tmp_path)
    trace = net.trace([IDS, IDS[:3]], attention=True)
    for ids, hidden in zip([IDS, IDS[:3]], trace.hidden, strict=True):
        np.testing.assert_allclose(hidden, reference(config, net.weights, ids), 1e-12, 1e-12)
    whole = trace.streams[0][0] + trace.contributions(0).sum(axis=0)
    np.testing.assert_allclose(whole, trace.hidden[0][-1], 1e-12, 1e-12)
    np.testing.assert_allclose(trace.attention[1].sum(axis=-1), 1, atol=1e-14)
    trace.save(tmp_path / "trace.npz")
    again = mf.networks.read_trace(tmp_path / "trace.npz")
    assert np.array_equal(again.streams[1], trace.streams[1]) and again.steps == trace.steps
    assert again.tokens(1, 1).x.shape[0] == 3


@pytest.mark.parametrize("config", [BERT, ALBERT, DISTILBERT, GPT2])
def test_a_layer_is_attention_and_a_feed_forward_map_of_the_package(config):
    net = spread(config)
    layer = net.layer(1)
    if config is GPT2:  # sees unit vectors, without epsilon
        net.config = config | {"layer_norm_epsilon": 1e-30}
    steps = list(net.steps(np.array(IDS)))
    at = next(i for i, step in enumerate(steps) if step[:2] == ("attention", 2))
    mlp = next(i for i, step in enumerate(steps) if step[:2] == ("mlp", 2))
    added = [steps[i][2] - steps[i - 1][2] for i in (at, mlp)]
    x, middle, options = steps[at - 1][2], steps[mlp - 1][2], {}
    if config is GPT2:
        x, middle = (h - h.mean(axis=1, keepdims=True) for h in (x, middle))
        x, middle = (h / np.linalg.norm(h, axis=1, keepdims=True) for h in (x, middle))
        options = {"normalisation": mf.PreLN()}
    tokens = mf.Tokens(x, on_sphere=config is GPT2)
    model = mf.Transformer(layer.attention(), **options)
    after = mf.solve(model, tokens, (0, 1), scheme=mf.steppers.Layers, dt=1.0, progress=False).final
    found = after.x if after.radii is None else after.radii[:, None] * after.x
    np.testing.assert_allclose(found - x, added[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(layer.feed_forward()(middle), added[1], rtol=0, atol=1e-12)


def test_gates_are_carried():
    net = spread(LLAMA)
    x = np.eye(16)[:3]
    name = "layers.0.mlp"
    seen = 4 * net["layers.0.post_attention_layernorm.weight"] * x
    gate, up = (seen @ net[f"{name}.{own}_proj.weight"].T for own in ("gate", "up"))
    wanted = (gate / (1 + np.exp(-gate)) * up) @ net[f"{name}.down_proj.weight"].T
    np.testing.assert_allclose(net.layer(0).feed_forward()(x), wanted, rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="index"):
        net.layer(2)


def test_single_precision_is_double_to_its_rounding():
    net = spread(BERT)
    single = net.replaced(lambda w: w)
    single.weights = {name: w.astype(np.float32) for name, w in net.weights.items()}
    exact = net.trace([IDS]).hidden[0]
    np.testing.assert_allclose(single.trace([IDS]).hidden[0], exact, rtol=0, atol=1e-5)
    x = np.linspace(-8, 8, 10**5).astype(np.float32)
    erf = np.vectorize(math.erf)(x[::100])
    np.testing.assert_allclose(single_erf(x)[::100], erf, rtol=0, atol=2e-7)


def test_padding_of_roberta_has_a_place_of_its_own():
    rows = spread(ROBERTA).position_rows(np.array([0, 5, 1, 6, 1, 1]))
    assert rows.tolist() == [2, 3, 1, 4, 1, 1]


def test_old_names_and_heads_of_other_tasks_are_known(tmp_path):
    net = spread(BERT)
    old = {n.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): w
           for n, w in net.weights.items()}  # fmt: skip
    type(net)(BERT, old | {"classifier.weight": np.ones((2, 2))}).save(tmp_path)
    again = mf.networks.load(tmp_path)
    assert np.array_equal(again.trace([IDS]).hidden[0], net.trace([IDS]).hidden[0])


def test_null_models_keep_the_scale():
    net = spread(BERT)
    for other in (net.random(np.random.default_rng(2)), net.shuffled(np.random.default_rng(2))):
        name = "encoder.layer.0.intermediate.dense.weight"
        assert not np.array_equal(other[name], net[name])
        assert other[name].std() == pytest.approx(net[name].std(), rel=0.3)
    assert np.array_equal(np.sort(other[name], axis=None), np.sort(net[name], axis=None))


def test_bfloat16_is_exact(tmp_path):
    from meanfield.networks.safetensors import header_of, tensor_of

    values = np.array([1.0, -0.15625, 3e38], "<f4")
    bits = (values.view("<u4") >> 16).astype("<u2")
    path = tmp_path / "a.safetensors"
    write(path, {"x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}, bits.tobytes())
    entries, begin = header_of(path)
    exact = (bits.astype("<u4") << 16).view("<f4").astype(float)
    assert np.array_equal(tensor_of(path, "x", entries["x"], begin, float), exact)


def entry(dtype="F32", shape=(1,), start=0, end=4):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(
    "entries, data, says",
    [
        (b"{", b"", "no JSON"),
        (b"[]", b"", "must hold an object"),
        (b'{"x": 1, "x": 2}', b"", "the key x is there twice"),
        ({"x": entry(shape=(10**4000,))}, b"1234", r"tensor x: .* below 2\^63"),
        ({"x" * 10**5: entry()}, b"1234", "config.json has no such tensor"),
        ({"x": entry()}, b"12", "truncated"),
        ({"x": entry(dtype="F8")}, b"1234", "dtype must be one of"),
        ({"x": entry(dtype=[])}, b"1234", "dtype must be one of"),
        ({"x": entry(shape=(2,))}, b"1234", "needs 8 bytes"),
        ({"x": entry(shape=(-1,))}, b"1234", "whole numbers"),
        ({"x": entry(), "y": entry()}, b"1234", "overlaps"),
        ({"x": entry(start=4, end=8)}, b"12345678", "gap"),
        ({"x": entry()}, b"1234", "no such tensor"),
        ({"wte.weight": entry()}, b"1234", r"asks for shape \(11, 8\), found \(1,\)"),
        ({}, b"", "lacks 28 tensors"),
    ],
)
def test_bad_files_are_refused_by_name(entries, data, says, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    write(tmp_path / "model.safetensors", entries, data)
    with pytest.raises(ValueError, match=says) as error:
        mf.networks.load(tmp_path)
    assert "model.safetensors" in str(error.value)


@pytest.mark.parametrize(
    "config, says",
    [
        ({"model_type": "t5"}, "bert, roberta, albert, distilbert, gpt2, llama, mistral, qwen2"),
        *(
            (
                {"model_type": kind},
                r"output_hidden_states=True.*\.npy.*networks\.record.*docs/howto",
            )
            for kind in ("qwen3", "gemma", "gemma2", "t5", "vit", "gpt_neox", "mixtral", ["bert"])
        ),
        ({"model_type": "gpt2"}, "vocab_size is missing"),
        (BERT | {"hidden_act": ["gelu"]}, "hidden_act must be one of"),
        (BERT | {"num_hidden_layers": 10**7}, "num_hidden_layers"),
        (ALBERT | {"num_hidden_layers": 10**7}, "num_hidden_layers"),
        (GPT2 | {"n_layer": 10**7}, "n_layer"),
        (LLAMA | {"hidden_size": 10**4000}, "hidden_size"),
        (LLAMA | {"rope_parameters": {"rope_theta": [1]}}, "rope_theta in rope_parameters"),
        (MISTRAL | {"sliding_window": 0}, "sliding_window"),
        (MISTRAL | {"attention_bias": True}, "attention_bias"),
        (QWEN2 | {"layer_types": ["full_attention"]}, "layer_types"),
        (QWEN2 | {"dual_chunk_attention_config": {}}, "dual_chunk_attention_config"),
        (DISTILBERT | {"layer_norm_eps": 1e-5}, "layer_norm_eps = 1e-05 is not known"),
        (BERT | {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        (BERT | {"hidden_act": "mish"}, "hidden_act"),
        (BERT | {"hidden_size": 0}, "hidden_size"),
        (BERT | {"num_attention_heads": 3}, "multiple of num_attention_heads"),
        (GPT2 | {"add_cross_attention": True}, "add_cross_attention"),
        (LLAMA | {"rope_scaling": {"type": "linear"}}, "rope_scaling"),
        (LLAMA | {"sliding_window": 4}, "sliding_window"),
        (LLAMA | {"num_key_value_heads": 3}, "num_key_value_heads"),
        (LLAMA | {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping = 50.0 is not known"),
        (LLAMA | {"quantization_config": {"bits": 4}}, "quantization_config"),
        (LLAMA | {"rope_interleaved": True}, "rope_interleaved"),
        (BERT | {"rope_theta": 1e4}, "rope_theta = 10000.0 is not known for bert"),
        (GPT2 | {"pruned_heads": {"0": [1]}}, "pruned_heads"),
        (ALBERT | {"inner_group_num": 2}, "inner_group_num"),
    ],
)
def test_unsupported_options_are_refused_by_name(config, says):
    with pytest.raises(ValueError, match=says):
        mf.networks.untrained(config, np.random.default_rng(0))


def test_pickles_are_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(mf.StorageError, match=r"pytorch_model\.bin.* pickle"):
        mf.networks.load(tmp_path)


@pytest.mark.parametrize("ids, says", [([11], "0 to 10"), ([1] * 10, "9 positions"), ([1.5], "id")])
def test_bad_ids(ids, says):
    with pytest.raises(ValueError, match=says):
        spread(GPT2).trace([ids])


@pytest.mark.parametrize(
    ("config", "most"),
    [
        (MISTRAL, 6),
        (MISTRAL | {"sliding_window": None}, 9),
        (QWEN2, 9),
        (QWEN2 | {"use_sliding_window": True}, 9),  # no layer has the window
        (QWEN2 | {"use_sliding_window": True, "layer_types": None}, 9),  # from layer 28 on
        (QWEN2 | {"use_sliding_window": True, "layer_types": None, "max_window_layers": 1}, 4),
        (QWEN2 | {"use_sliding_window": True, "layer_types": ["sliding_attention"] * 2}, 4),
    ],
)
def test_texts_are_as_long_as_a_window_that_changes_nothing(config, most):
    net = mf.networks.untrained(config, rng=0)
    assert net.positions == most
    assert net.trace([[1] * most]).hidden[0].shape[1] == most
    with pytest.raises(ValueError, match=rf"give ids\[:{most}\]"):
        net.trace([[1] * (most + 1)])


def test_heads_of_keys_that_a_file_does_not_count_are_those_of_transformers():
    wide = LLAMA | {"num_attention_heads": 32, "hidden_size": 64}
    del wide["num_key_value_heads"]
    for kind, heads in (("llama", 32), ("mistral", 8), ("qwen2", 32)):
        assert mf.networks.untrained(wide | {"model_type": kind}, 0).layer(0).shared == heads


def test_seeds_are_generators():
    first, second = (mf.networks.untrained(BERT, rng) for rng in (3, np.random.default_rng(3)))
    assert all(np.array_equal(first[name], second[name]) for name in first.weights)
    assert all(
        np.array_equal(first.shuffled(4)[name], second.shuffled(4)[name]) for name in first.weights
    )
    with pytest.raises(TypeError, match="rng"):
        first.random("seed")


@pytest.mark.parametrize("content", ["pickled", "text"])
def test_files_that_are_no_traces_are_named(content, tmp_path):
    path = tmp_path / "states.npz"
    if content == "pickled":
        np.savez(path, hidden=np.array([{}, None], dtype=object))
    else:
        path.write_text("hidden")
    with pytest.raises(mf.StorageError, match=r"states\.npz.* could not be read") as error:
        mf.networks.read_trace(path)
    assert "allow_pickle" not in str(error.value) and "np.save" in str(error.value)


def test_an_array_is_hidden_states_of_one_text(tmp_path):
    np.save(tmp_path / "states.npy", np.ones((2, 3, 4), np.float16))
    trace = mf.networks.read_trace(tmp_path / "states.npy")
    assert trace.hidden[0].shape == (2, 3, 4) and trace.words == [["0", "1", "2"]]
    np.savez(tmp_path / "states.npz", np.ones((2, 3, 4)))
    assert mf.networks.read_trace(tmp_path / "states.npz").hidden[0].shape == (2, 3, 4)
    np.save(tmp_path / "states.npy", np.ones(4))
    with pytest.raises(ValueError, match=r"\(layers, n, d\).*\(4,\)"):
        mf.networks.read_trace(tmp_path / "states.npy")
