"""Reader of networks from folders; it runs no code from them."""

import os
import re
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from meanfield import ConfigError, StorageError
from meanfield.extending import (
    Json,
    JsonTable,
    RandomSource,
    UserValue,
    check_memory,
    generator,
    path_of,
    require,
    shown,
)

from .families import Family, Weights, family_of
from .network import Network
from .safetensors import header_of, json_of, tensor_of
from .tokenizer import Tokenizer

LARGEST_CONFIG, LARGEST_INDEX = 4_000_000, 32_000_000  # bytes
# Names of the first BERT
FIRST_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
WEB_NAME = re.compile(r"[\w.-]+/[\w.-]+")  # organisation/model


def load(path: str | os.PathLike[str], dtype: DTypeLike = float) -> Network:
    """Read a Transformer: BERT, RoBERTa, ALBERT, DistilBERT, GPT-2, Llama, Mistral, Qwen2.

    Files are not trusted: before tensors are read, their sizes are compared with config.json and
    with the available memory; a tokenizer.json runs in a separate process.

    Parameters
    ----------
    path : path
        A folder with config.json, model.safetensors (or parts of it and
        model.safetensors.index.json) and, for texts in words, tokenizer.json.
    dtype : float64 (default) or float32
        Precision of replays; bfloat16 and float16 in the file are converted exactly.

    Raises
    ------
    StorageError
        For files that are missing, damaged or too large, or do not fit the configuration.
    ConfigError
        For an architecture, or an option of it, that is not supported.
    ImportError
        For a tokenizer.json without the package tokenizers.
    """
    folder, dtype = checked_folder(path), _precision(dtype)
    config = json_of(folder / "config.json", LARGEST_CONFIG)
    family = family_of(config)
    weights, path = weights_of(folder, family, config, dtype), folder / "tokenizer.json"
    return Network(config, weights, Tokenizer(path) if os.path.lexists(path) else None)


def untrained(config: JsonTable, rng: RandomSource, dtype: DTypeLike = float) -> Network:
    """A network before training: normal weights, of mean 1 for gains of norms and 0 otherwise.

    Parameters
    ----------
    config : dict
        Contents of a config.json, with "model_type"; "initializer_range" is the standard deviation
        of the weights, by default 0.02.
    rng : numpy.random.Generator or seed
    dtype : float64 (default) or float32
        Precision of replays.

    Raises
    ------
    TypeError, ValueError, MeanfieldError
        For a `config` that is no dict, other `rng` and `dtype`, and weights larger than the memory.
    ConfigError
        For sizes and architectures that cannot be replayed.
    """
    dtype, family, rng = _precision(dtype), family_of(config), generator(rng)
    deviation = config.get("initializer_range", 0.02)
    fits = type(deviation) in (int, float) and 0 <= deviation < 1e300
    require("config.json: initializer_range", deviation, "a number >= 0", fits, ConfigError)
    shapes, weights = family.shapes(config), {}
    check_memory("config.json: its weights", (sum(map(prod, shapes.values())),), "the sizes in it")
    for name, shape in shapes.items():
        gain = len(shape) == 1 and name.endswith("weight")
        weights[name] = (gain + rng.normal(0, deviation, shape)).astype(dtype)
    return Network(config, weights)


def _precision(dtype: DTypeLike) -> np.dtype:
    """The dtype, if it is float32 or float64."""
    dtype = np.dtype(dtype)
    return require("dtype", dtype, "float32 or float64", dtype in (np.float32, np.float64))


def checked_folder(path: UserValue) -> Path:
    """The path as a folder; raise StorageError unless it contains a config.json."""
    folder = path_of("path", path)
    if os.path.exists(folder / "config.json"):  # os.path.exists never raises
        return folder
    state, how = "does not exist", ""
    if os.path.exists(folder):
        state = "is a folder without config.json" if folder.is_dir() else "is a file"
    elif WEB_NAME.fullmatch(str(path)):
        how = f", as by hf download {path} --local-dir {folder.name}"
    raise StorageError(
        "path must be a folder with config.json, model.safetensors and tokenizer.json, on this "
        f"machine; {folder} {state}. Names of models on the web are not looked up: download "
        f"the files first{how}."
    )


def files_of(folder: Path) -> list[Path]:
    """Paths of the files of weights: model.safetensors, or the parts that its index names."""
    file, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if os.path.lexists(file):
        return [file]
    if not os.path.lexists(index):
        pickled = sorted(p.name for p in folder.iterdir() if p.suffix in {".bin", ".pt", ".pth"})
        pickles = ", ".join(map(shown, pickled[:5]))
        reason = (
            f" {pickles} is not read: it is a pickle, which can run any code. Save the model again "
            "as safetensors."
        )
        raise StorageError(f"{folder} has no model.safetensors.{reason if pickled else ''}")
    parts = json_of(index, LARGEST_INDEX).get("weight_map")
    names: list[Json] = list(parts.values()) if isinstance(parts, dict) and parts else [None]
    for name in names:
        is_name = isinstance(name, str) and name == shown(name) and Path(name).name == name
        require(f"{index.name}: weight_map must name files; each", name, "*.safetensors",
                is_name and name.endswith("safetensors"), StorageError)  # fmt: skip
    files = [folder / name for name in sorted(set(names))]
    for part in files:
        if not part.exists():
            raise StorageError(f"{index.name}: weight_map names {part.name}, which {folder} lacks.")
    return files


def weights_of(folder: Path, family: Family, config: JsonTable, dtype: np.dtype) -> Weights:
    """Read exactly the tensors that the configuration asks for, by name without prefix."""
    expected, tensors, origin = family.shapes(config), {}, ""
    for path in files_of(folder):
        entries, begin = header_of(path)
        origin = path.name
        for key, entry in entries.items():
            name = key.removeprefix(family.prefix)
            for old, new in FIRST_NAMES.items():
                name = name.removesuffix(old) + new if name.endswith(old) else name
            label = f"{origin}, tensor {shown(key)}"
            if name.startswith(family.unused) or name.endswith(family.unused):
                continue
            if name in tensors:
                raise StorageError(f"{label} is there twice.")
            if name not in expected:
                raise StorageError(f"{label}: config.json has no such tensor.")
            asked, shape = expected[name], tuple(entry["shape"])
            if shape != asked:
                raise StorageError(f"{label}: config.json asks for shape {asked}, found {shape}.")
            tensors[name] = (path, key, entry, begin)
    lacking = [name for name in expected if name not in tensors]
    if lacking:
        raise StorageError(f"{origin} lacks {len(lacking)} tensors, the first is {lacking[0]}.")
    numbers = sum(map(prod, expected.values()))
    try:
        halved = "dtype to float32, half of it"
        reduce = halved if dtype == np.float64 else "it to a smaller network"
        total = f"{folder.name}: {numbers} weights"
        check_memory(total, (numbers * dtype.itemsize // 8,), reduce)
    except ValueError as error:
        hint = "Hidden states need no weights: mf.networks.probe(outputs.hidden_states)."
        raise StorageError(f"{error} {hint}") from None
    return {name: tensor_of(*tensors[name], dtype) for name in expected}
