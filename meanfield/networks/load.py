"""Read a network from a folder, and nothing of it that could run."""

import json
from pathlib import Path

import numpy as np

from ..core.checks import generator
from .bert import Albert, Bert, Roberta
from .gpt2 import GPT2
from .llama import Llama
from .network import Network
from .safetensors import header_of, tensor_of

KNOWN: dict[str, type[Network]] = {
    "bert": Bert,
    "roberta": Roberta,
    "albert": Albert,
    "gpt2": GPT2,
    "llama": Llama,
}


def load(path, dtype=float) -> Network:
    """Read a Transformer of the BERT, RoBERTa, ALBERT, GPT-2 or Llama family.

    Parameters
    ----------
    path : path
        A folder with config.json, model.safetensors (or parts of it and
        model.safetensors.index.json) and, for texts in words, tokenizer.json.
    dtype : float64 (default) or float32
        In which it is replayed; bfloat16 and float16 in the file are converted exactly.

    Raises
    ------
    ValueError, FileNotFoundError, ImportError
        For files that are missing, damaged or do not fit the configuration, options that are
        not supported, and a tokenizer.json without the package tokenizers.
    """
    folder, dtype = Path(path), checked_dtype(dtype)
    if not folder.is_dir() or not (folder / "config.json").exists():
        found = "a file" if folder.is_file() else "it has none" if folder.exists() else "no folder"
        raise FileNotFoundError(
            "path must be a folder with config.json, model.safetensors and tokenizer.json, on this "
            f"machine; {folder} is {found}. Names of models on the web are not looked up: download "
            "the files first."
        )
    config = json_of(folder / "config.json")
    family = family_of(config)
    return family(config, weights_of(folder, family, config, dtype), tokenizer_of(folder))


def untrained(config: dict, rng, dtype=float) -> Network:
    """A network as before training: normal weights, of mean 1 in gains of norms and else 0.

    Parameters
    ----------
    config : dict
        As config.json has it, with "model_type". Its "initializer_range" is the standard deviation,
        0.02 without one.
    rng : numpy.random.Generator or seed
    dtype : float64 (default) or float32
        In which it is replayed.
    """
    dtype, family, rng = checked_dtype(dtype), family_of(config), generator(rng)
    spread = config.get("initializer_range", 0.02)
    if type(spread) not in (int, float) or not 0 <= spread < float("inf"):
        raise ValueError(f"config.json: initializer_range must be a number >= 0, found {spread!r}.")
    weights = {}
    for name, shape in family.shapes(config).items():
        gain = len(shape) == 1 and name.endswith("weight")
        weights[name] = (gain + rng.normal(0, spread, shape)).astype(dtype)
    return family(config, weights)


def checked_dtype(dtype) -> np.dtype:
    """The dtype, if it is float32 or float64."""
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
    return np.dtype(dtype)


def json_of(path: Path) -> dict:
    """An object of a JSON file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} must hold an object, found {found!r:.60}.")
    return found


def family_of(config: dict) -> type[Network]:
    """The class of a configuration, which is checked."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in KNOWN:
        raise ValueError(f"model_type must be one of {', '.join(KNOWN)}, found {kind!r}.")
    KNOWN[kind].check(config)
    return KNOWN[kind]


def files_of(folder: Path) -> list[Path]:
    """The files of weights."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.exists():
        return [whole]
    if not index.exists():
        pickled = sorted(p.name for p in folder.iterdir() if p.suffix in {".bin", ".pt", ".pth"})
        why = (
            f" {', '.join(pickled)} is not read: it is a pickle, which can run any code. "
            "Save the model again as safetensors."
            if pickled
            else ""
        )
        raise FileNotFoundError(f"{folder} has no model.safetensors.{why}")
    parts = json_of(index).get("weight_map")
    names: list = list(parts.values()) if isinstance(parts, dict) and parts else [None]
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not name.endswith("safetensors"):
            raise ValueError(
                f"{index.name}: weight_map must name files *.safetensors, got {name!r}."
            )
    return [folder / name for name in sorted(set(names))]


def weights_of(folder: Path, family: type[Network], config: dict, dtype) -> dict:
    """The tensors of a folder, all that the configuration asks for and no other."""
    expected, weights, origin = family.shapes(config), {}, ""
    for path in files_of(folder):
        entries, begin = header_of(path)
        origin = path.name
        for full, entry in entries.items():
            name = current(full.removeprefix(family.prefix))
            if name.startswith(family.unused) or name.endswith(family.unused):
                continue
            if name in weights:
                raise ValueError(f"{path.name}, tensor {full} is there twice.")
            if name not in expected:
                raise ValueError(f"{path.name}, tensor {full}: config.json has no such tensor.")
            if tuple(entry["shape"]) != expected[name]:
                raise ValueError(
                    f"{path.name}, tensor {full}: config.json asks for shape {expected[name]}, "
                    f"found {tuple(entry['shape'])}."
                )
            weights[name] = tensor_of(path, full, entry, begin, dtype)
    missing = [name for name in expected if name not in weights]
    if missing:
        raise ValueError(f"{origin} lacks {len(missing)} tensors, the first is {missing[0]}.")
    return weights


def current(name: str) -> str:
    """The name of a tensor today; files of the first BERT have gamma and beta."""
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def tokenizer_of(folder: Path):
    """The tokenizer of a folder, without padding and truncation; None without its file."""
    path = folder / "tokenizer.json"
    if not path.exists():
        return None
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ImportError(
            "tokenizer.json needs the package tokenizers: pip install tokenizers, or the extra "
            "meanfield[networks]."
        ) from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise ValueError(f"tokenizer.json cannot be read: {error}.") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
