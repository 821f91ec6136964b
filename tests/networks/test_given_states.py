"""Hidden states as users have them: transformers' tuples, batches with padding, files of others."""

import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from small_networks import BERT, spread

import meanfield as mf
from meanfield.app.cli import main

IDS = [3, 7, 1, 10, 3, 2]


@pytest.fixture
def states():
    return np.random.default_rng(0).standard_normal((4, 6, 5))


@pytest.fixture
def batch():
    """Two texts of 6 and 4 tokens; the padding of the second is on the left."""
    mask = np.ones((2, 6), dtype=int)
    mask[1, :2] = 0
    return np.random.default_rng(1).standard_normal((4, 2, 6, 5)), mask


def cosines(given):
    return mf.networks.probe(given, distances=False, modes=False).mean_cosine.values


class Tensor:
    """What a tensor of torch has, of a precision that NumPy lacks."""

    def __init__(self, values):
        self.values = values
        self.shape, self.ndim = values.shape, values.ndim

    def detach(self):
        return self

    cpu = double = detach

    def numpy(self):
        return self.values

    def __array__(self, *_):
        raise TypeError("Got unsupported ScalarType BFloat16")


def test_layers_of_one_text_are_read_as_transformers_gives_them(states):
    wanted = cosines(states)
    layers = [state[None] for state in states]
    for given in (tuple(layers), layers, states[:, None], tuple(map(Tensor, layers))):
        np.testing.assert_array_equal(cosines(given), wanted)
    assert cosines([states, states]).shape == (2, 4)
    moved = states[:1] + 0.1 * np.arange(4)[:, None, None]  # layers that have to do with each other
    fits = [mf.networks.fit(given, mf.SA, replicas=4, test_replicas=16, verdict=False, rng=0,
                            fixed={"time": 1.0, "kappa": 50.0}, progress=False)["beta"]
            for given in (moved, tuple(h[None] for h in moved))]  # fmt: skip
    assert fits[0] == fits[1]


def test_a_batch_of_several_texts_is_refused_with_what_to_do(batch):
    for given in (batch[0], tuple(batch[0])):
        with pytest.raises(ValueError, match=r"batch of 2 texts.*attention mask"):
            cosines(given)


def test_padding_that_a_file_marks_is_left_out(batch, tmp_path):
    hidden, mask = batch
    path = tmp_path / "states.npz"
    tokens = np.arange(12).reshape(2, 6).astype(str)
    np.savez(path, hidden=hidden, attention_mask=mask, tokens=tokens)
    found = mf.networks.read_trace(path)
    np.testing.assert_array_equal(found.hidden[0], hidden[:, 0])
    np.testing.assert_array_equal(found.hidden[1], hidden[:, 1, 2:])
    assert found.words == [list("012345"), ["8", "9", "10", "11"]]
    np.savez(path, hidden=hidden[:, 1], attention_mask=mask[1])
    np.testing.assert_array_equal(mf.networks.read_trace(path).hidden[0], hidden[:, 1, 2:])
    np.savez(path, hidden=hidden[:, :1])
    assert mf.networks.read_trace(path).hidden[0].shape == (4, 6, 5)
    for wrong, word in ((mask[:, :3], r"shape \(2, 6\)"), (2 * mask, "1 for"), (0 * mask, "each")):
        np.savez(path, hidden=hidden, attention_mask=wrong)
        with pytest.raises(ValueError, match=word):
            mf.networks.read_trace(path)


def test_padding_of_a_recorded_batch_is_left_out(batch):
    hidden, mask = batch
    kept = mf.networks.Recording(3, mask)
    for k, states in enumerate(hidden):
        kept.keep(Tensor(states), first=k == 0)
    assert [h.shape[1] for h in kept.trace.hidden] == [6, 4]
    assert "1 call(s) of 3 layers" in repr(kept)


def test_the_place_of_states_without_a_direction_is_named(states):
    states[2:, 4] = 0
    with pytest.raises(ValueError, match=r"1 of 6 .*token 4 in layer 2"):
        cosines(states)
    states[1, 3, 0] = np.nan
    with pytest.raises(ValueError, match="token 3 in layer 1"):
        cosines(states)


def test_a_file_of_torch_is_refused_by_its_kind(tmp_path):
    path = tmp_path / "states.pt"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"")
    with pytest.raises(ValueError, match=r"torch.*np\.stack"):
        mf.networks.read_trace(path)


@pytest.mark.parametrize("there", [None, "file", "folder"])
def test_what_is_no_folder_of_a_network_is_refused_in_words(there, tmp_path):
    path = tmp_path / "bert"
    if there == "file":
        path.write_text("")
    if there == "folder":
        path.mkdir()
    with pytest.raises(mf.StorageError, match=r"a folder with config\.json"):
        mf.networks.load(path)


def test_names_of_models_on_the_web_are_told_from_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = r"hf download mistralai/Mistral-7B-v0\.1 --local-dir Mistral-7B-v0\.1"
    with pytest.raises(mf.StorageError, match=said):
        mf.networks.load("mistralai/Mistral-7B-v0.1")
    done = CliRunner().invoke(main, ["probe", "mistralai/Mistral-7B-v0.1", "--text", "words.txt"])
    assert done.exit_code == 2 and "hf download mistralai/Mistral-7B-v0.1" in done.output


def test_texts_are_words_of_a_file_only_by_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net, path = spread(BERT), tmp_path / "letter.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="UTF-8"):
        net.trace(path)
    with pytest.raises(ValueError, match=r"pathlib\.Path\('letter\.txt'\)"):
        net.trace("letter.txt")
    path.write_text("some words", encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json"):  # it is read, and has words
        net.trace(path)
    with pytest.raises(TypeError, match="input_ids"):
        net.trace({"input_ids": [IDS]})
    assert net.trace(np.array(IDS)).hidden[0].shape == net.trace([IDS]).hidden[0].shape


def test_networks_and_traces_are_printed_in_one_line():
    net = spread(BERT)
    assert repr(net) == (
        "Bert: 2 layers, d = 8, 2 heads; 11 ids, without tokenizer; texts of up to 9 tokens"
    )
    found = repr(net.trace([IDS, IDS[:4]], attention=True))
    assert found == "Trace of 2 texts: 2 layers, d = 8; 6, 4 tokens; with streams and attention"


@pytest.mark.parametrize("text", [None, b"a b", b"\xff\xfe"])
def test_the_command_names_the_file_of_a_text_that_it_refuses(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spread(BERT).save("model")
    if text is not None:
        (tmp_path / "words.txt").write_bytes(text)
    done = CliRunner().invoke(main, ["probe", "model", "--text", "words.txt"])
    assert done.exit_code == 2 and "words.txt" in done.output and "model:" not in done.output


def test_what_a_network_is_before_training_has_the_spread_of_its_configuration():
    wide = mf.networks.untrained(BERT | {"initializer_range": 0.5}, rng=0)
    assert wide["encoder.layer.0.output.dense.weight"].std() == pytest.approx(0.5, rel=0.2)
    with pytest.raises(ValueError, match="initializer_range"):
        mf.networks.untrained(BERT | {"initializer_range": "0.02"}, rng=0)
