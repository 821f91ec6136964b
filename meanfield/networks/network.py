"""The base class of Transformers with weights: checks, replays, traces, null models."""

import json
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from meanfield import ConfigError, Norm, PerLayer, ShortenedWarning, StorageError, Transformer
from meanfield.extending import (
    Kind,
    as_given,
    check_memory,
    generator,
    regular_file,
    shown,
    whole_number,
)

from .layer import ACTIVATIONS, Affine, Gain, Layer
from .options import FIXED_OPTIONS, HARMLESS_OPTIONS
from .safetensors import write
from .tokenizer import Tokenizer
from .tokenizing import encoded as encoded_by
from .trace import Trace

MOST_LAYERS, LARGEST_SIZE = 10_000, 2**31  # of a configuration; sizes in it are below the latter
LARGEST_TEXT = 2**26  # bytes
OTHER_MODELS = (
    "Hidden states of any model are read from a file: call it in transformers with "
    "output_hidden_states=True and write np.save('states.npy', np.stack([h[0].float().numpy() for "
    "h in outputs.hidden_states])); or record layers of torch by meanfield.networks.record. See "
    "the page docs/howto/networks.md."
)


class Text(NamedTuple):
    """A text as a network takes it: ids, words, and the number of ids before it was shortened."""

    ids: np.ndarray
    words: list[str]
    whole: int


class Network(ABC):
    """A Transformer that is replayed in NumPy; `load` and `untrained` make one.

    Parameters
    ----------
    config : dict
        Its config.json.
    weights : dict of arrays
        By the name of the tensor, without the prefix of the family.
    tokenizer : optional
        A `tokenizers.Tokenizer`; without one texts are given as ids.
    """

    prefix: str
    unused: ClassVar[tuple[str, ...]]  # starts or ends of names not read
    layers: ClassVar[str] = "num_hidden_layers"  # the key of the number of layers
    sizes: tuple[str, ...]  # keys of the configuration: numbers of things, >= 1
    numbers: ClassVar[tuple[str, ...]] = ()  # keys of numbers > 0 that may be left out
    read: ClassVar[tuple[str, ...]]  # other options that are read
    refused: ClassVar[dict[str, tuple]]  # options, values that are supported

    def __init__(self, config: dict, weights: dict[str, np.ndarray], tokenizer=None):
        self.config, self.weights, self.tokenizer = config, weights, tokenizer

    def __repr__(self) -> str:
        words = "with" if self.tokenizer is not None else "without"
        width = self.embedded(np.zeros(1, dtype=int)).shape[-1]
        return (
            f"{type(self).__name__}: {self.depth} layers, d = {width}, {self.layer(0).heads} "
            f"heads; {self.vocabulary} ids, {words} tokenizer; texts of up to {self.positions} "
            "tokens"
        )

    @classmethod
    def check(cls, config: dict) -> None:
        """Raise ConfigError, with the option's name, unless the configuration is supported."""
        for key in cls.sizes:
            cls.check_size(
                key, config.get(key), MOST_LAYERS + 1 if key == cls.layers else LARGEST_SIZE
            )
        for key in cls.numbers:
            cls.check_number(key, config.get(key, 1.0))
        supported = FIXED_OPTIONS | cls.refused
        for key, allowed in supported.items():
            if key in config and config[key] not in allowed:
                raise ConfigError(
                    f"config.json: {key} = {as_given(config[key])} changes the mathematics and is "
                    f"not supported; supported: {', '.join(map(repr, allowed))}. {OTHER_MODELS}"
                )
        for key in config:
            if key not in HARMLESS_OPTIONS.union(cls.sizes, cls.numbers, cls.read, supported):
                raise ConfigError(
                    f"config.json: {shown(key)} = {as_given(config[key], 60)} is not known for "
                    f"{config.get('model_type')}, and may change the mathematics. If it does not, "
                    f"remove it from the file. {OTHER_MODELS}"
                )

    @classmethod
    def check_size(cls, key: str, value: Any, bound: int = LARGEST_SIZE, least: int = 1) -> None:
        """Raise ConfigError unless a value is a whole number from `least` and below `bound`."""
        wanted = f"a whole number >= {least} and below {bound}"
        if value is None:
            raise ConfigError(f"config.json: {key} is missing; expected {wanted}.")
        if type(value) is not int or not least <= value < bound:
            raise ConfigError(f"config.json: {key} must be {wanted}, found {as_given(value)}.")

    @classmethod
    def check_number(cls, key: str, value: Any) -> None:
        """Raise ConfigError unless a value is a finite number > 0."""
        if type(value) not in (int, float) or not 0 < value < 1e300:
            raise ConfigError(f"config.json: {key} must be a number > 0, found {as_given(value)}.")

    @classmethod
    def check_activation(cls, key: str, config: dict, default: str) -> None:
        """Raise ConfigError unless the activation is supported."""
        activation = config.get(key, default)
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            raise ConfigError(
                f"config.json: {key} must be one of {', '.join(ACTIVATIONS)}, found "
                f"{as_given(activation)}."
            )

    @classmethod
    def check_heads(cls, width: str, heads: str, config: dict) -> None:
        """Raise ConfigError unless the number of heads divides the width."""
        if config[width] % config[heads]:
            raise ConfigError(
                f"config.json: {width} must be a multiple of {heads}, "
                f"found {config[width]} and {config[heads]}."
            )

    @classmethod
    @abstractmethod
    def shapes(cls, config: dict) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the tensors of a configuration."""

    # Described by an architecture ------------------------------------------------------------

    @property
    def depth(self) -> int:
        """The number of layers."""
        return self.config[self.layers]

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The epsilon of the norms."""

    @abstractmethod
    def embedded(self, ids: np.ndarray) -> np.ndarray:
        """Embeddings (n, d) of ids (n,), the input of the first layer."""

    @abstractmethod
    def layer_at(self, index: int) -> Layer:
        """The layer with this index, which is from 0 to depth - 1."""

    @property
    def last(self) -> Gain | None:
        """The norm after the last layer, where there is one."""
        return None

    @property
    @abstractmethod
    def positions(self) -> int:
        """The longest text."""

    @property
    def sees(self) -> str:
        """The reason for the longest text, in words."""
        return f"the network has {self.positions} positions"

    @property
    def vocabulary(self) -> int:
        """The number of ids."""
        return self.config["vocab_size"]

    # Its tensors ----------------------------------------------------------------------------

    def __getitem__(self, name: str) -> np.ndarray:
        """One tensor."""
        return self.weights[name]

    def map_at(self, name: str) -> Affine:
        """A matrix (out, in) and its bias where there is one."""
        return Affine(self[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def norm_at(self, name: str) -> Gain:
        """A norm: LayerNorm where it has a bias, else RMSNorm."""
        return Gain(self[f"{name}.weight"], self.weights.get(f"{name}.bias"), self.epsilon)

    # As models of this package ---------------------------------------------------------------

    def layer(self, index: int) -> Layer:
        """A layer, from 0 to depth - 1, to make models of this package from."""
        return self.layer_at(whole_number("index", index, least=0, most=self.depth - 1))

    def model(self) -> Transformer:
        """All layers as one model, with the parameters of layer l for l <= t < l + 1.

        ``solve(net.model(), tokens, (0, net.depth), scheme=steppers.Layers, dt=1.0)`` moves hidden
        states ``tokens = Tokens(h, on_sphere=False)`` as the network does, up to `last_norm`. Its
        matrices are copies, in double precision.
        """
        return layered([self.layer_at(index).model() for index in range(self.depth)])

    @property
    def last_norm(self) -> Norm | None:
        """The norm after the last layer, in double precision; None without one, as in BERT."""
        return None if self.last is None else self.last.model

    # Replayed ------------------------------------------------------------------------------

    def steps(
        self, ids: np.ndarray, attention: bool = True
    ) -> Iterator[tuple[str, int, np.ndarray, np.ndarray | None]]:
        """Yield the residual stream of a text after each sublayer.

        As (kind, layer, stream, weights of attention): layers count from 1, with 0 the embedding;
        weights are None unless `attention`.
        """
        x = self.embedded(ids)
        yield "embedding", 0, x, None
        for index in range(self.depth):
            for kind, x, weights in self.layer_at(index).steps(x, attention):  # noqa: B020
                yield kind, index + 1, x, weights
        if self.last is not None:
            yield "normalisation", self.depth, self.last(x), None

    def trace(self, texts, attention: bool = False) -> Trace:
        """Replay texts, each alone and without padding.

        Parameters
        ----------
        texts : str, pathlib.Path, sequence of int, or a list of these
            Words need a tokenizer; ids do not. A path is a file with a text in UTF-8.
        attention : bool, default False
            Keep the attention weights, (layers, heads, n, n) a text.

        Raises
        ------
        ValueError, TypeError
            For a text without tokens, with ids that the network lacks, or ids that are more than
            its positions; for a string that is the name of a file, which is no text.
        StorageError
            For a file that is no text in UTF-8, and a tokenizer.json that fails.

        Warns
        -----
        ShortenedWarning
            For words that are more tokens than its positions: the first ones are taken, as
            `Trace.notes` say, too.
        """
        if isinstance(texts, Mapping):
            raise TypeError(
                "texts must be words, ids or a list of these; got a mapping with "
                f"{', '.join(map(str, texts))}. Give its ids, without padding, as "
                "texts['input_ids'][0]."
            )
        if hasattr(texts, "detach") or isinstance(texts, np.ndarray):
            texts = [np.asarray(texts)] if texts.ndim == 1 else list(np.asarray(texts))
        if isinstance(texts, str | Path) or (len(texts) and isinstance(texts[0], int | np.integer)):
            texts = [texts]
        if not len(texts):
            raise ValueError("texts must have at least one text, got none.")
        read = [self.encoded(text) for text in texts]  # all are checked before any is run
        notes = []
        for number, text in enumerate(read):
            if text.whole > len(text.ids):
                notes.append(
                    f"Of the {text.whole} tokens of text {number} the first {len(text.ids)} are "
                    f"taken: {self.sees}."
                )
                warnings.warn(notes[-1], ShortenedWarning, stacklevel=2)
        if attention:
            pairs = [len(text.ids) ** 2 for text in read]
            check_memory(
                "attention of the texts", (sum(pairs), self.depth, self.layer(0).heads), "texts"
            )
        replays = [self._replayed(text.ids, attention) for text in read]
        weights = [kept for _, _, kept in replays] if attention else []
        streams = [stream for _, stream, _ in replays]
        ids, words = [text.ids for text in read], [text.words for text in read]
        return Trace.of_streams(streams, replays[0][0], weights, ids, words, notes)

    def traces(self, texts: Iterable[Any], attention: bool = False) -> Iterator[Trace]:
        """Replay texts one after the other, and yield the trace of each.

        Parameters and errors are those of `trace`; a text is checked when its turn comes.
        """
        for text in texts:
            yield self.trace([text], attention)

    def _replayed(
        self, ids: np.ndarray, attention: bool
    ) -> tuple[list[tuple[str, int]], np.ndarray, np.ndarray]:
        """Steps of a text, its stream after each, and the weights of attention."""
        steps: list[tuple[str, int]] = []
        stream, kept = [], []
        for kind, layer, x, weights in self.steps(ids, attention):
            steps.append((kind, layer))
            stream.append(x)
            if weights is not None:
                kept.append(weights)
        return steps, np.stack(stream), np.stack(kept) if kept else np.empty(0)

    def encoded(self, text) -> Text:
        """Ids and words of a text; of words that are too many tokens, the first."""
        if isinstance(text, Path):
            text = text_of(text)
        elif isinstance(text, str) and os.path.isfile(text):  # which never raises
            raise ValueError(
                f"texts has {text!r}, which is the name of a file and no text: give "
                f"pathlib.Path({text!r}), or what it holds."
            )
        whole = None
        if isinstance(text, str):
            try:
                text.encode("utf-8")
            except UnicodeEncodeError as error:
                raise ValueError(f"A text must be Unicode; {error}.") from None
            if self.tokenizer is None:
                raise ValueError(
                    "The network has no tokenizer.json, which makes tokens of words: put its file "
                    "into the folder, or give ids in place of words, in Python."
                )
            if isinstance(self.tokenizer, Tokenizer):
                answer = self.tokenizer.encode(text, self.positions)
            else:
                answer = encoded_by(self.tokenizer, text, self.positions)
            ids, words, whole = np.array(answer[0], dtype=int), answer[1], answer[2]
            if ids.size and ids.max() >= self.vocabulary:
                raise StorageError(
                    f"tokenizer.json gives the id {ids.max()}, and config.json has the vocab_size "
                    f"{self.vocabulary}: they are not of one network."
                )
        else:
            ids = np.asarray(text)
            words = [str(k) for k in ids.ravel()]
        if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iu":
            raise ValueError(
                f"A text must be words or at least one whole id, got shape {ids.shape} "
                f"of {ids.dtype}."
            )
        if ids.min() < 0 or ids.max() >= self.vocabulary:
            raise ValueError(
                f"ids must be from 0 to {self.vocabulary - 1}, got {ids.min()} to {ids.max()}."
            )
        if len(ids) > self.positions:
            raise ValueError(
                f"The text has {len(ids)} ids, and {self.sees}; give ids[:{self.positions}]."
            )
        return Text(ids, words, len(ids) if whole is None else whole)

    def random(self, rng) -> "Network":
        """A copy whose tensors are normal, with the mean and standard deviation of each.

        `rng` is a seed or a numpy.random.Generator.
        """
        rng = generator(rng)
        return self.replaced(lambda w: rng.normal(w.mean(), w.std(), w.shape))

    def shuffled(self, rng) -> "Network":
        """A copy with the entries of each tensor in random order; `rng` as in `random`."""
        rng = generator(rng)
        return self.replaced(lambda w: rng.permutation(w.ravel()).reshape(w.shape))

    def replaced(self, new) -> "Network":
        """A copy with new(w) in place of every tensor w."""
        weights = {name: new(w).astype(w.dtype) for name, w in self.weights.items()}
        return type(self)(self.config, weights, self.tokenizer)

    def save(self, folder) -> None:
        """Write config.json, model.safetensors and, if there is one, tokenizer.json."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config, indent=1), encoding="utf-8")
        write(folder / "model.safetensors", self.weights)
        if self.tokenizer is not None:
            self.tokenizer.save(str(folder / "tokenizer.json"))


def text_of(path: Path) -> str:
    """The text of a file; raise StorageError unless it is one in UTF-8."""
    regular_file(path, LARGEST_TEXT)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise StorageError(f"{path} must be a text in UTF-8; {error}.") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from None


def layered(kinds: list[Any]) -> Any:
    """One kind in place of one for each layer, with a `PerLayer` for each array that differs."""
    first, changes = kinds[0], {}
    for name, value in first.described.items():
        values = [kind.described[name] for kind in kinds]
        if isinstance(value, Kind):
            changes[name] = layered(values)
        elif isinstance(value, np.ndarray) and not all(map(partial(np.array_equal, value), values)):
            changes[name] = PerLayer(np.stack(values))
    return first.replace(**changes) if changes else first
