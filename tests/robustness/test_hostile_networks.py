"""Hostile folders of networks and traces: read, or refused in one line that names file and key."""

import io
import json
import os
import pickle
import random
import struct
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from damages import BYTES
from hostile import judged, of_message

import meanfield as mf
from meanfield.app.cli import main
from meanfield.core import checks
from meanfield.networks import tokenizer

SMALL = {"vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL |= {"intermediate_size": 12, "max_position_embeddings": 9}
CONFIGS = [
    SMALL | {"model_type": "bert", "type_vocab_size": 2, "hidden_act": "gelu"},
    SMALL | {"model_type": "roberta", "type_vocab_size": 2, "pad_token_id": 1},
    SMALL
    | {"model_type": "albert", "type_vocab_size": 2, "embedding_size": 5, "num_hidden_groups": 1},
    SMALL | {"model_type": "llama", "num_key_value_heads": 1, "rope_parameters": {"rope_theta": 9}},
    SMALL | {"model_type": "mistral", "num_key_value_heads": 1, "sliding_window": 5},
    SMALL | {"model_type": "qwen2", "num_key_value_heads": 1, "layer_types": None, "head_dim": 4},
    {"model_type": "gpt2", "vocab_size": 11, "n_positions": 9, "n_embd": 8, "n_layer": 2}
    | {"n_head": 2, "n_inner": 12, "layer_norm_epsilon": 1e-5, "activation_function": "relu"},
    {"model_type": "distilbert", "vocab_size": 11, "dim": 8, "n_layers": 2, "n_heads": 2}
    | {"hidden_dim": 12, "max_position_embeddings": 9, "activation": "gelu"},
]
HUGE = "1" + "0" * 4000
VALUES = [  # as they stand in JSON
    *("0", "-1", "1", "3", "10000000", "1000000000000000000", HUGE, "1" + "0" * 5000, "1e400"),
    *("-1e400", "NaN", "1e-320", "0.5", "-0.0", "true", "false", "null", '""', '"gelu"', '"x/y"'),
    *(f'"{"x" * 10**6}"', r'"\ud800"', r'"\u0000"', "[]", "{}", '["gelu"]', '{"gelu": 1}', "[[1]]"),
    *("[" * 10**5, "[" * 500 + "]" * 500, f"[{'1,' * 10**5}1]", '{"rope_theta": [1]}'),
    *('{"rope_theta": -1, "rope_type": {}}', f'{{"rope_theta": {HUGE}}}', '{"rope_type": []}'),
]
KEYS = ["", "é", r"\ud800", r"\u0000", "x" * 10**6, "rope_scaling", "is_decoder", "model_type"]
FILES = ("config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json")


def chosen(attack, trials, short, seed):
    """Some of the trials in the suite, and all by `make attack`."""
    trials = list(trials)
    random.Random(seed).shuffle(trials)
    return trials[: attack.rounds(short, len(trials))]


def count(attack, what, outcome):
    """Count what came of a trial; a failure is told with what was tried."""
    kind = outcome.partition(":")[0]
    attack.report([(kind, f"{what}: {outcome}")])


def replayed(folder):
    """Read a network and replay a text, as a program would."""
    net = mf.networks.load(folder)
    with np.errstate(all="ignore"):  # numbers of a hostile file may be of any size
        net.trace([[1, 2, 3][: net.positions]], attention=True)
        repr(net)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "model"


def saved(config, folder):
    mf.networks.untrained(config, rng=0).save(folder)


# Configurations ----------------------------------------------------------------------------------


def configurations():
    for config in CONFIGS:
        for key in [*config, "initializer_range", "hidden_act", "max_window_layers"]:
            for value in VALUES:
                text = json.dumps(config | {key: 0.123456}).replace("0.123456", value)
                yield f"{config['model_type']}: {key} = {value[:40]}", config, text
        for key in KEYS:
            for value in ("1", "[]", f'"{"x" * 10**6}"'):
                text = json.dumps(config)[:-1] + f', "{key}": {value}}}'
                yield f"{config['model_type']}: {key[:40]} : {value[:40]}", config, text
        for text in ("", "{", "[]", "3", "null", "\ufeff{}", "[" * 10**6, '{"a": 1, "a": 2}'):
            yield f"{config['model_type']}: {text[:40]}", config, text


def test_hostile_configurations(attack, folder):
    for what, config, text in chosen(attack, configurations(), 60, seed=1):
        saved(config, folder)
        (folder / "config.json").write_text(text, encoding="utf-8")
        names = ("config.json", "safetensors")  # sizes that the weights have not
        count(attack, what, judged(lambda: replayed(folder), *names))


# Weights -----------------------------------------------------------------------------------------


def packed(header, data=b"", length=None):
    """A file of this header; its length is another one if it says so."""
    header = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def headers(content):
    """Files whose headers lie, made of a right one."""
    size = struct.unpack("<Q", content[:8])[0]
    header, data = content[8 : 8 + size], content[8 + size :]
    entries = json.loads(header)
    for name in list(entries)[:3]:
        for key in ("dtype", "shape", "data_offsets"):
            for value in [*VALUES, "[1e3]", f"[{HUGE}]", "[-1, 8]", f"[{'1,' * 10**4}1]", "[0, 0]"]:
                text = json.dumps(entries | {name: entries[name] | {key: 0.123456}})
                yield f"{name}.{key} = {value[:40]}", packed(text.replace("0.123456", value), data)
        for value in VALUES:
            text = json.dumps(entries | {name: 0.123456}).replace("0.123456", value)
            yield f"{name} = {value[:40]}", packed(text, data)
    for key in KEYS:
        text = header.decode().strip()[:-1] + f', "{key}": {{"dtype": "F32"}}}}'
        yield f"a tensor {key[:40]}", packed(text, data)
    many = {f"x{k}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in range(10**5)}
    yield "100000 tensors", packed(json.dumps(many))
    yield "a header of 90 MB", packed(b" " * 90_000_000)
    for length in (0, 1, size - 1, size + 1, 2**32, 2**63, 2**64 - 1):
        yield f"a header of {length} bytes", packed(header, data, length)
    for text in (b"", b"{}", b"[]", b"[" * 10**6, b"\xff", b'{"x": 1, "x": 2}'):
        yield f"{text[:40]!r}", packed(text, data)


def test_hostile_headers_of_weights(attack, folder):
    saved(CONFIGS[0], folder)
    path = folder / "model.safetensors"
    for what, content in chosen(attack, headers(path.read_bytes()), 40, seed=2):
        path.write_bytes(content)
        count(attack, what, judged(lambda: replayed(folder), path.name))


def test_damaged_weights(attack, folder):
    """Weights have no checksum, so that others than they were may be read."""
    for i in range(attack.rounds(16, 600)):
        saved(CONFIGS[i % len(CONFIGS)], folder)
        path = folder / "model.safetensors"
        did = BYTES[i % len(BYTES)](path, random.Random(i), None)
        found = judged(lambda: replayed(folder), path.name)
        count(attack, f"{BYTES[i % len(BYTES)].__name__} {did}", found)


def indices():
    names = [
        *("nowhere.safetensors", "a\0b.safetensors", "\ud800.safetensors", "x" * 5000),
        *("x" * 5000 + ".safetensors", "../a.safetensors", "/dev/zero", "", ".safetensors", "."),
        *(3, None, [], {}, ["a.safetensors"], True, 1e400, "folder.safetensors"),
    ]
    for name in names:
        yield f"{name!r:.60}", json.dumps({"weight_map": {"x": name}})
    for value in (*VALUES, '{"x": "a.safetensors", "x": "b.safetensors"}'):
        yield value[:60], f'{{"weight_map": {value}}}'
    yield "100000 names", json.dumps({"weight_map": {str(k): "a" for k in range(10**6)}})


def test_hostile_indices(attack, folder):
    saved(CONFIGS[0], folder)
    (folder / "model.safetensors").unlink()
    (folder / "folder.safetensors").mkdir()
    for what, text in chosen(attack, indices(), 20, seed=3):
        (folder / FILES[2]).write_text(text, encoding="utf-8")
        count(attack, what, judged(lambda: replayed(folder), "index.json", "folder.safetensors"))


SPECIAL = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "loop": lambda path: path.symlink_to(path),
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "null": lambda path: path.symlink_to("/dev/null"),
    "tty": lambda path: path.symlink_to("/dev/tty"),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_is_not_opened(attack, name, folder, tmp_path, monkeypatch):
    """Of a pipe nobody writes to, or of /dev/zero, no end would come."""
    monkeypatch.syspath_prepend(fake_package(tmp_path))
    saved(CONFIGS[0], folder)
    if name == FILES[2]:
        (folder / FILES[1]).unlink()
    for what, make in SPECIAL.items():
        path = folder / name
        path.unlink(missing_ok=True)
        make(path)
        count(attack, what, judged(lambda: replayed(folder), name, "path must be a folder"))
        path.rmdir() if what == "folder" else path.unlink()


def test_memory_is_asked_for_before_weights_are_read(folder, monkeypatch):
    """A file of 30 GB, of which nothing is on the disk."""
    config = CONFIGS[0] | {"vocab_size": 2**30}
    shapes = mf.networks.families.BERT.shapes(config)
    entries, end = {}, 0
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape))
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with (folder / "model.safetensors").open("wb") as file:
        file.write(packed(json.dumps(entries)))
        file.truncate(file.tell() + end)
    monkeypatch.setattr(checks, "available_memory", lambda: 2**30)
    with pytest.raises(mf.StorageError, match=r"weights.* bytes .* float32, half of it.*probe"):
        mf.networks.load(folder)
    with pytest.raises(ValueError, match="are needed"):
        mf.networks.untrained(config, rng=0)


# Tokenizers --------------------------------------------------------------------------------------

FAKE = """
import json, os, signal, sys, time
class PanicException(BaseException): pass
def do(what):
    if what == "panic": raise PanicException("at the disco\\nand more\\n" + "x" * 10**6)
    if what == "fail": raise Exception("bare")
    if what == "eat": bytes(10**12)
    if what == "hang":
        while True: pass
    if what == "abort": os.abort()
    if what == "crash": os.kill(os.getpid(), signal.SIGSEGV)
    if what == "exit": sys.exit(3)
    if what == "print": print("noise"); sys.stdout.flush()
class Code:
    def __init__(self, ids): self.ids, self.tokens = ids, [str(k) for k in ids]
    def truncate(self, most): self.ids, self.tokens = self.ids[:most], self.tokens[:most]
class Tokenizer:
    @staticmethod
    def from_str(text):
        self = Tokenizer(); self.does = json.loads(text); do(self.does.get("load"))
        return self
    def no_padding(self): pass
    def no_truncation(self): pass
    def num_special_tokens_to_add(self, pair): return 2
    def post_process(self, code): return Code([1, *code.ids, 2])
    def encode(self, text, add_special_tokens=True):
        do(self.does.get(text, self.does.get("encode")))
        ids = self.does.get("ids", [3 + len(word) % 5 for word in text.split()])
        return self.post_process(Code(ids)) if add_special_tokens else Code(ids)
"""


def fake_package(folder):
    """A package tokenizers that does what its file says, for machines without it."""
    place = folder / "packages"
    place.mkdir()
    (place / "tokenizers.py").write_text(FAKE, encoding="utf-8")
    return place


@pytest.fixture
def tokenizers(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(fake_package(tmp_path))
    monkeypatch.setattr(tokenizer, "TOKENIZER_SECONDS", 0.5)


def with_tokenizer(folder, **does):
    saved(CONFIGS[0], folder)
    (folder / "tokenizer.json").write_text(json.dumps(does), encoding="utf-8")


DEEDS = ("panic", "fail", "eat", "hang", "abort", "crash", "exit")


@pytest.mark.long
@pytest.mark.usefixtures("tokenizers")
def test_tokenizers_that_fail_are_refused(attack, folder):
    """In a process of their own they cannot take this one with them."""
    for when in ("load", "encode"):
        for deed in DEEDS:
            with_tokenizer(folder, **{when: deed})
            found = judged(lambda: mf.networks.load(folder).trace("a b c"), "tokenizer.json")
            count(attack, f"{deed} at {when}", found)
            assert found == "refused", (when, deed, found)
    for ids in ([10**6], [-1], [], [1] * 10**6):
        with_tokenizer(folder, ids=ids)
        found = judged(lambda: mf.networks.load(folder).trace("a b"), also=(ValueError, Warning))
        count(attack, f"ids {ids[:1]} of {len(ids)}", found)


@pytest.mark.usefixtures("tokenizers")
def test_a_tokenizer_goes_on_after_a_failure_and_in_copies(folder):
    with_tokenizer(folder, encode="print", end="abort")
    net = mf.networks.load(folder)
    assert net.trace("a bb").words == [["1", "4", "5", "2"]]
    with pytest.raises(mf.StorageError, match=r"tokenizer\.json cannot be used"):
        net.trace(["a bb", "end"])
    assert net.trace("a bb").words == [["1", "4", "5", "2"]]
    with pytest.raises(ValueError, match="text 1 must be Unicode"):
        net.trace(["a bb", "a \ud800"])
    assert pickle.loads(pickle.dumps(net)).trace("a bb").words == [["1", "4", "5", "2"]]
    net.save(folder / "again")
    assert (folder / "again" / "tokenizer.json").read_bytes() == net.tokenizer.content


@pytest.mark.usefixtures("tokenizers")
def test_a_list_of_texts_takes_one_process_and_an_iterator_one_for_each(folder, monkeypatch):
    with_tokenizer(folder)
    net, calls, run = mf.networks.load(folder), [], tokenizer.subprocess.run
    monkeypatch.setattr(
        tokenizer.subprocess, "run", lambda *a, **options: calls.append(a) or run(*a, **options)
    )
    texts = ["a bb", "ccc", [3, 1]]
    words = [trace.words for trace in net.traces(texts)]
    assert words == [[["1", "4", "5", "2"]], [["1", "6", "2"]], [["3", "1"]]] and len(calls) == 1
    assert [trace.words for trace in net.traces(iter(texts))] == words and len(calls) == 3
    for given in (["a", [11]], iter(["a", [11]])):
        with pytest.raises(ValueError, match="ids of text 1 must be from 0 to 10"):
            list(net.traces(given))
    assert list(net.traces([])) == []


@pytest.mark.usefixtures("tokenizers")
def test_the_command_names_a_text_that_is_too_short_before_the_network_runs(
    folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with_tokenizer(folder)
    Path("long.txt").write_text("a b c d", encoding="utf-8")
    Path("short.txt").write_text("a b", encoding="utf-8")
    monkeypatch.setattr(mf.networks.Network, "steps", None)
    done = CliRunner().invoke(main, ["probe", "model", "--text", "long.txt", "--text", "short.txt"])
    told = " ".join(done.output.split())
    assert done.exit_code == 2 and "short.txt has 4 tokens" in told and "long.txt" not in told


ELSEWHERE = """
import runpy, signal, sys
del signal.setitimer
sys.platform, sys.modules["resource"], sys.modules["meanfield"] = "win32", None, None
runpy.run_path({program!r}, run_name="__main__")
"""


@pytest.mark.long
@pytest.mark.usefixtures("tokenizers")
def test_tokenizers_work_and_end_without_limits_of_processes_as_on_windows(
    folder, tmp_path, monkeypatch
):
    """The clock of the caller ends them; their program needs nothing of meanfield."""
    program = tmp_path / "elsewhere.py"
    text = ELSEWHERE.format(program=str(tokenizer.TOKENIZER_PROGRAM))
    program.write_text(text, encoding="utf-8")
    monkeypatch.setattr(tokenizer, "TOKENIZER_PROGRAM", program)
    monkeypatch.setattr(tokenizer, "CLOCK_FACTOR", 4)
    with_tokenizer(folder, encode="print")
    assert mf.networks.load(folder).trace("a bb").words == [["1", "4", "5", "2"]]
    with_tokenizer(folder, encode="hang")
    with pytest.raises(mf.StorageError, match="no answer in 2 s"):
        mf.networks.load(folder).trace("a bb")


@pytest.mark.usefixtures("tokenizers")
def test_long_texts_are_cut_with_a_note_and_keep_what_stands_around_them(folder, tmp_path):
    with_tokenizer(folder)
    net = mf.networks.load(folder)
    with pytest.warns(mf.ShortenedWarning, match="Of the 22 tokens of text 1 the first 9") as seen:
        trace = net.trace(["a bb", "a " * 20])
    assert len(seen) == 1 and trace.notes == [str(seen[0].message)]
    assert trace.words[1] == ["1", *["4"] * 7, "2"]
    trace.save(tmp_path / "trace.npz")
    assert mf.networks.read_trace(tmp_path / "trace.npz").notes == trace.notes
    with pytest.raises(ValueError, match="Unicode"):
        net.trace("a \ud800")


def tokenizer_files():
    """A tokenizer.json of words with one thing changed."""
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    ends = {name: {"id": name, "ids": [k], "tokens": [name]} for k, name in enumerate("CS", 1)}
    parts = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": 0, "content": "U", "special": True} | special],
        "normalizer": {"type": "Replace", "pattern": {"String": "x"}, "content": "y"},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": " "}, "behavior": "Removed"}
        | {"invert": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "C", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": ends,
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"U": 0, "C": 1, "S": 2, "a": 3}, "unk_token": "U"},
    }
    bomb = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}
    bombs = {"type": "Sequence", "normalizers": [bomb] * 8}
    yield "right", json.dumps(parts)
    yield "a bomb", json.dumps(parts | {"normalizer": bombs})
    yield "length 0", json.dumps(parts | {"pre_tokenizer": {"type": "FixedLength", "length": 0}})
    charsmap = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    yield "a map of characters", json.dumps(parts | {"normalizer": charsmap})

    def places(data, at=()):
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in pairs:
            yield (*at, key)
            if isinstance(value, dict | list):
                yield from places(value, (*at, key))

    for place in places(parts):
        for value in VALUES:
            changed = json.loads(json.dumps(parts))
            table = changed
            for key in place[:-1]:
                table = table[key]
            table[place[-1]] = 0.123456
            yield f"{place} = {value[:40]}", json.dumps(changed).replace("0.123456", value)


@pytest.mark.skipif(find_spec("tokenizers") is None, reason="needs pip install tokenizers")
def test_hostile_tokenizers(attack, folder):
    saved(CONFIGS[0], folder)
    for what, text in chosen(attack, tokenizer_files(), 30, seed=4):
        (folder / "tokenizer.json").write_text(text, encoding="utf-8")
        also = (ValueError, Warning)  # a text without tokens, or too many
        found = judged(lambda: mf.networks.load(folder).trace("a b a x"), also=also)
        count(attack, what, found)


# Traces ------------------------------------------------------------------------------------------


def trace_arrays():
    """Arrays of a trace of two texts, as `save` writes them."""
    file = Path(tempfile.mkstemp(".npz")[1])
    net = mf.networks.untrained(CONFIGS[0], rng=0)
    net.trace([[1, 2, 3, 4], [5, 6, 7]], attention=True).save(file)
    with np.load(file) as arrays:
        found = dict(arrays)
    file.unlink()
    return found


WRONG = [
    np.zeros(0), np.zeros((0, 3)), np.zeros((2, 3)), np.zeros((3, 4, 8), "c16"), np.array("x"),
    np.zeros((1,) * 20), np.array(["\ud800", "\0", "x" * 10**5]), np.array([b"\xff"]),
    np.zeros(3, "?"), np.full((3, 4, 8), np.nan), np.array([2**63], "u8"), np.zeros(4, "M8[s]"),
    np.zeros((3, 4), "i1"), np.zeros(2, [("a", "f8")]), np.array(1.0), np.zeros((3, 4, 8, 1)),
    np.array([1e300]),
]  # fmt: skip


def edited_traces():
    arrays = trace_arrays()
    for name in arrays:
        without = {key: value for key, value in arrays.items() if key != name}
        yield f"without {name}", without
        for k, wrong in enumerate(WRONG):
            yield f"{name}: wrong {k}", without | {name: wrong}
        yield f"{name} turned", without | {name: arrays[name].T}
        yield f"{name} twice as long", without | {name: np.concatenate([arrays[name]] * 2)}
    hidden = np.ones((3, 4, 5))
    batch = {"hidden": hidden[:, None], "tokens": np.ones(4)}
    for key in ("tokens", "attention_mask", "hidden", "notes"):
        for k, wrong in enumerate(WRONG):
            yield f"plain {key}: {k}", {"hidden": hidden} | {key: wrong}
            yield (
                f"batch {key}: {k}",
                batch | {key: wrong},
            )


def test_traces_that_do_not_fit_together(attack, tmp_path):
    path = tmp_path / "trace.npz"
    for what, arrays in chosen(attack, edited_traces(), 60, seed=5):
        np.savez(path, **arrays)
        found = judged(lambda: repr(mf.networks.read_trace(path)), "trace.npz")
        count(attack, what, found)


@pytest.mark.parametrize("kind", ["npz", "compressed", "npy"])
def test_damaged_traces(attack, kind, tmp_path):
    path = tmp_path / f"trace.{kind[:3]}"
    for i in range(attack.rounds(20, 1400)):
        with path.open("wb") as file:
            if kind == "npy":
                np.save(file, np.random.default_rng(0).standard_normal((3, 4, 5)))
            else:
                {"npz": np.savez, "compressed": np.savez_compressed}[kind](file, **ARRAYS)
        damage = BYTES[i % len(BYTES)]
        did = damage(path, random.Random(f"{kind} {i}"), None)
        found = judged(lambda: repr(mf.networks.read_trace(path)), path.name)
        count(attack, f"{damage.__name__} {did}", found)


ARRAYS = {"hidden_0": np.ones((3, 4, 5)), "words_0": np.array(list("abcd"))}
ARRAYS |= {"hidden_1": np.full((3, 2, 5), 0.5), "words_1": np.array(list("ab"))}


def header(descr="'<f8'", shape="(3, 4, 5)", version=b"\1\0", length=None):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    size = len(text) if length is None else length
    return b"\x93NUMPY" + version + size.to_bytes(2 if version == b"\1\0" else 4, "little") + text


LYING = {
    "a shape of 10^12": header(shape="(1000000000000,)"),
    "a shape of 10^4000": header(shape=f"({HUGE},)"),
    "a shape of 10^5000": header(shape=f"({HUGE}00000000000,)"),
    "a negative shape": header(shape="(-1, 4, 5)"),
    "a shape of nothing": header(shape="(0, 1000000000000, 0)"),
    "a hundred axes": header(shape="(1,) * 100"),
    "words of no length": header("'<U0'", "(1000000000000,)"),
    "words of any length": header("'<U1000000000'", "(1,)"),
    "objects": header("'|O'"),
    "fields": header("[('a', '<f8')]"),
    "code": header("__import__('os').abort()"),
    "brackets": b"\x93NUMPY\2\0" + (9000).to_bytes(4, "little") + b"(" * 9000,
    "a header of 4 GB": header(version=b"\2\0", length=2**32 - 1),
    "version 3": header(version=b"\3\0"),
    "version 9": header(version=b"\x09\0"),
    "a pickle": b"\x80\x04K\x01.",
    "nothing": b"",
}


def archives(folder):
    """Files .npz that no numpy writes."""
    plain = io.BytesIO()
    np.save(plain, np.ones((3, 4, 5)))
    right = plain.getvalue()

    def archive(members, compression=zipfile.ZIP_STORED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", compression, compresslevel=1) as target:
            for name, content in members:
                target.writestr(name, content)
        return file.getvalue()

    for what, content in LYING.items():
        yield what, content + bytes(480)
        yield f"{what}, in an archive", archive([("hidden.npy", content + bytes(480))])
    for name in ("LZMA", "BZIP2"):
        yield name, archive([("hidden.npy", right)], getattr(zipfile, f"ZIP_{name}"))
    yield "a raw member", archive([("hidden", right)])
    yield "another raw member", archive([("hidden.npy", right), ("readme.txt", b"words")])
    yield "a name", archive([("\ud800.npy".encode("utf-8", "replace").decode(), right)])
    yield "a long name", archive([("x" * 60000 + ".npy", right), ("y.npy", right)])
    yield "many members", archive([(f"{k}.npy", b"") for k in range(3000)])
    whole = archive([("hidden.npy", right)])
    yield "a checksum", whole.replace(right[-8:], b"\0" * 7 + b"\1", 1)
    begin = whole.index(b"PK\1\2")
    for at, size, value, what in (
        *((8, 2, 1, "encrypted"), (10, 2, 99, "a method"), (24, 4, 2**32 - 2, "a size")),
        *((20, 4, 2**32 - 2, "a compressed size"), (42, 4, 2**31, "an offset"), (6, 2, 999, "new")),
    ):
        changed = bytearray(whole)
        changed[begin + at : begin + at + size] = value.to_bytes(size, "little")
        yield what, bytes(changed)
    zeros = bytes(100 * 2**20)
    yield "a bomb", archive([("hidden.npy", header("'|i1'", "(1, 1, 1)") + zeros)], 8)
    members = [(f"{name}.npy", zeros) for name in ("hidden", "tokens")]
    yield "two bombs", archive(members, zipfile.ZIP_DEFLATED)


def test_files_that_numpy_would_not_write(attack, tmp_path):
    path = tmp_path / "trace.npz"
    for what, content in archives(tmp_path):
        path.write_bytes(content)
        for read in (mf.networks.read_trace, mf.Tokens.from_file):
            found = judged(lambda read=read: repr(read(path)), "trace.npz", also=(ValueError,))
            count(attack, f"{what}, {read.__name__}", found)


def test_the_command_refuses_them_with_exit_code_2(attack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for what, content in chosen(attack, archives(tmp_path), 12, seed=6):
        Path("trace.npz").write_bytes(content)
        if judged(lambda: mf.networks.read_trace("trace.npz")) == "refused":
            done = CliRunner().invoke(main, ["probe", "trace.npz", "--no-fit", "--quiet"])
            plain = of_message(done.output.strip(), ["trace.npz"])
            count(attack, what, plain if done.exit_code == 2 else f"FAILED code {done.exit_code}")


@pytest.mark.parametrize("what", SPECIAL)
def test_a_trace_that_is_no_file_is_not_opened(what, tmp_path):
    SPECIAL[what](tmp_path / "trace.npz")
    assert judged(lambda: mf.networks.read_trace(tmp_path / "trace.npz"), "trace.npz") == "refused"
