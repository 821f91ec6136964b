"""The base class of Transformers with weights: replays, traces, models, null models."""

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from meanfield import Norm, PerLayer, Rotary, ShortenedWarning, StorageError, Transformer
from meanfield.extending import (
    Json,
    JsonTable,
    Kind,
    OfLibrary,
    RandomSource,
    UserValue,
    check_memory,
    generator,
    require,
    whole_number,
)

from .families import Weights, family_of
from .layer import Affine, Gain, Layer
from .safetensors import text_of, write
from .tokenizer import Tokenizer
from .tokenizing import encoded as encoded_by
from .trace import Trace, last_steps

LARGEST_TEXT = 2**26  # bytes


class Text(NamedTuple):
    """A tokenised text: ids (n,), words, and the number `whole` of ids before truncation.

    Errors call it by its `name`, the path of its file or "text 0", "text 1" and so on.
    """

    ids: np.ndarray
    words: list[str]
    whole: int
    name: str


class Network:
    """A Transformer that is replayed in NumPy; `load` and `untrained` make one.

    Parameters
    ----------
    config : dict
        Contents of config.json.
    weights : dict of arrays
        Tensors by name, without the prefix of the family.
    tokenizer : optional
        A `tokenizers.Tokenizer`; without one, texts must be given as ids.
    """

    def __init__(self, config: JsonTable, weights: Weights, tokenizer: OfLibrary = None):
        self.config, self.weights, self.tokenizer = config, weights, tokenizer
        self.family = family_of(config)

    def __repr__(self) -> str:
        words = "with" if self.tokenizer is not None else "without"
        width = self.config[self.family.keys["width"]]
        return (
            f"{self.family.name}: {self.depth} layers, d = {width}, {self.layer(0).heads} "
            f"heads; {self.vocabulary} ids, {words} tokenizer; texts of up to {self.positions} "
            "tokens"
        )

    def __getitem__(self, name: str) -> np.ndarray:
        """One tensor."""
        return self.weights[name]

    @property
    def depth(self) -> int:
        """The number of layers."""
        return int(self.config[self.family.keys["depth"]])

    @property
    def dtype(self) -> np.dtype:
        """The precision of the weights."""
        return next(iter(self.weights.values())).dtype

    @property
    def vocabulary(self) -> int:
        """The number of ids in the vocabulary."""
        return int(self.config["vocab_size"])

    @property
    def positions(self) -> int:
        """The largest number of tokens in a text."""
        longest = int(self.config[self.family.keys["longest"]])
        if self.family.padded:
            return longest - self.config.get("pad_token_id", 1) - 1
        return min(longest, self.family.window(self.config) or longest)

    @property
    def _limit_text(self) -> str:
        """The reason for the bound `positions` on the length of a text, in words."""
        if self.positions == self.family.window(self.config):
            return f"a token sees {self.positions}, itself included, and no longer text is replayed"
        return f"the network has {self.positions} positions"

    def embedded(self, ids: np.ndarray) -> np.ndarray:
        """Embeddings (n, d) of ids (n,), the input of the first layer."""
        family = self.family
        x = self[f"{family.words}.weight"][ids]
        if family.types:
            x = x + self[f"{family.types}.weight"][0]
        if family.positions:
            x = x + self[f"{family.positions}.weight"][self.position_rows(ids)]
        if family.embedding_norm:
            x = self._norm(family.embedding_norm)(x)
        return self._map(family.mapping)(x) if family.mapping else x

    def position_rows(self, ids: np.ndarray) -> np.ndarray:
        """Row (n,) of each token in the table of positional embeddings."""
        if not self.family.padded:
            return np.arange(len(ids))
        padding = self.config.get("pad_token_id", 1)
        words = ids != padding  # padding has its own row and is not counted
        return np.cumsum(words) * words + padding

    # As models of this package ---------------------------------------------------------------

    def layer(self, index: int) -> Layer:
        """A layer, from 0 to depth - 1, to make models of this package from."""
        index = whole_number("index", index, least=0, most=self.depth - 1)
        config, family = self.config, self.family
        start, (heads, shared, _) = family.prefix_of(config, index), family.heads_of(config)
        maps = {role: self._map(start + name) for role, name in family.maps.items()}
        if "key" not in maps:  # queries, keys and values are in one tensor
            thirds = [np.split(part, 3) for part in maps["query"] if part is not None]
            roles = "query", "key", "value"
            maps |= zip(roles, starmap(Affine, zip(*thirds, strict=True)), strict=True)
        first, second = (self._norm(start + name) for name in family.norms)
        rope = config.get("rope_parameters") or {}
        base: Json = rope.get("rope_theta", config.get("rope_theta", 10000.0))
        positions = Rotary(base) if family.rotary else None
        activation = config.get(family.keys["activation"], family.usual_activation)
        return Layer(index, maps, (first, second), family.norms_after, heads, shared,
                     family.causal, activation, positions)  # fmt: skip

    def _map(self, name: str) -> Affine:
        """The affine map with a matrix (out, in), and a bias if the file has one."""
        matrix = self[f"{name}.weight"]
        matrix = matrix.T if self.family.transposed else matrix
        return Affine(matrix, self.weights.get(f"{name}.bias"))

    def _norm(self, name: str) -> Gain:
        """The norm with this name: LayerNorm if it has a bias, otherwise RMSNorm."""
        epsilon = self.config.get(self.family.keys["epsilon"], self.family.usual_epsilon)
        return Gain(self[f"{name}.weight"], self.weights.get(f"{name}.bias"), epsilon)

    def model(self) -> Transformer:
        """All layers as one model, with the parameters of layer l for l <= t < l + 1.

        ``solve(net.model(), tokens, (0, net.depth), scheme=steppers.Layers, dt=1.0)`` moves hidden
        states ``tokens = Tokens(h, on_sphere=False)`` as the network does, up to `last_norm`. Its
        matrices are copies, in double precision.
        """
        return layered([self.layer(index).model() for index in range(self.depth)])

    @property
    def last_norm(self) -> Norm | None:
        """The norm after the last layer, in double precision; None without one, as in BERT."""
        return self._norm(self.family.last).model if self.family.last else None

    # Replayed ------------------------------------------------------------------------------

    def steps(
        self, ids: np.ndarray, attention: bool = True
    ) -> Iterator[tuple[str, int, np.ndarray, np.ndarray | None]]:
        """Yield the residual stream of a text after each sublayer.

        Yields (kind, layer, stream (n, d), weights): layers count from 1, the embedding has layer
        0. Weights (heads, n, n) follow the attention sublayers if `attention`; otherwise None.
        """
        x = self.embedded(ids)
        yield "embedding", 0, x, None
        for index in range(self.depth):
            for kind, x, weights in self.layer(index).steps(x, attention):  # noqa: B020
                yield kind, index + 1, x, weights
        if self.family.last:
            yield "normalisation", self.depth, self._norm(self.family.last)(x), None

    def trace(self, texts: UserValue, attention: bool = False) -> Trace:
        """Replay texts, each alone and without padding.

        Parameters
        ----------
        texts : str, pathlib.Path, sequence of int, or a list of these
            Words need a tokenizer; ids do not. A path is a file with a text in UTF-8.
        attention : bool, default False
            Store the attention weights, (layers, heads, n, n) for each text.

        Raises
        ------
        ValueError, TypeError
            For a text without tokens, with ids outside the vocabulary, or with more ids than
            positions; for a string that is the name of a file. The message has the number of the
            text, from 0 on, or its path.
        StorageError
            For a file that is not UTF-8, and a tokenizer.json that fails.

        Warns
        -----
        ShortenedWarning
            If a text in words has more tokens than the network has positions: it is truncated, as
            `Trace.notes` records.
        """
        return self.replay(self.encoded(texts), attention)  # all are checked before any is run

    def replay(self, read: list[Text], attention: bool = False) -> Trace:
        """Trace of texts that `encoded` returned; see `trace`."""
        notes = []
        for number, text in enumerate(read):
            if text.whole > len(text.ids):
                notes.append(
                    f"Of the {text.whole} tokens of text {number} the first {len(text.ids)} are "
                    f"taken: {self._limit_text}."
                )
                warnings.warn(notes[-1], ShortenedWarning, stacklevel=3)
        if attention:
            pairs = sum(len(text.ids) ** 2 for text in read)
            shape = pairs, self.depth, self.layer(0).heads
            check_memory("attention of the texts", shape, "texts")
        streams, kept = [], []
        for text in read:
            stream, weights, steps = [], [], []
            for kind, layer, x, attended in self.steps(text.ids, attention):
                steps.append((kind, layer))
                stream.append(x)
                weights += [] if attended is None else [attended]
            streams.append(np.stack(stream))
            kept += [np.stack(weights)] if attention else []
        last = last_steps(steps)
        hidden, ids = [stream[last] for stream in streams], [text.ids for text in read]
        return Trace(hidden, [text.words for text in read], ids, streams, steps, kept, notes)

    def traces(self, texts: Iterable[UserValue], attention: bool = False) -> Iterator[Trace]:
        """Replay texts one after the other, and yield the trace of each.

        Parameters and errors are those of `trace`. Texts of a list are tokenised together, and
        checked before any is run. A text of an iterator is read and checked when its turn comes; in
        words each takes a process of its own, which reads tokenizer.json again.
        """
        if isinstance(texts, Sequence) and texts:
            read: Iterable[Text] = self.encoded(texts)
        else:
            read = (self.encoded([text], number)[0] for number, text in enumerate(texts))
        for text in read:
            yield self.replay([text], attention)

    def encoded(self, texts: UserValue, first: int = 0) -> list[Text]:
        """Ids and words of texts; words are truncated to the number of positions, ids are not.

        Parameters and errors are those of `trace`; `first` is the number of the first text.
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
        require("texts", texts, "one text at least", len(texts) > 0)
        names = [str(t) if isinstance(t, Path) else f"text {k}" for k, t in enumerate(texts, first)]
        texts = [text_of(t, LARGEST_TEXT) if isinstance(t, Path) else _checked(t, name)
                 for t, name in zip(texts, names, strict=True)]  # fmt: skip
        each = list(zip(texts, names, strict=True))
        in_words = [one for one in each if isinstance(one[0], str)]
        encodings = iter(self._encodings(in_words) if in_words else ())
        read = []
        for text, name in each:
            if isinstance(text, str):
                numbers, words, count = next(encodings)
                ids = np.array(numbers, dtype=int)
            else:
                ids = np.asarray(text)
                words, count = [str(k) for k in ids.ravel()], len(ids) if ids.ndim else 0
            self._check_ids(ids, isinstance(text, str), name)
            read.append(Text(ids, words, count, name))
        return read

    def _encodings(self, named: list[tuple[str, str]]) -> list[tuple[list[int], list[str], int]]:
        """Ids, words and number of ids before truncation of each text in words, with its name."""
        texts = [text for text, _ in named]
        if self.tokenizer is None:
            raise ValueError(
                f"{named[0][1]} is in words, and the network has no tokenizer.json, which makes "
                "tokens of them: put its file into the folder, or give ids, in Python."
            )
        if isinstance(self.tokenizer, Tokenizer):
            return self.tokenizer.encode(texts, self.positions)
        return [encoded_by(self.tokenizer, text, self.positions) for text in texts]

    def _check_ids(self, ids: np.ndarray, from_words: bool, name: str) -> None:
        """Raise ValueError, or StorageError for those of a tokenizer, unless ids can be run."""
        if from_words and ids.size and ids.max() >= self.vocabulary:
            raise StorageError(
                f"tokenizer.json gives the id {ids.max()}, and config.json has the vocab_size "
                f"{self.vocabulary}: they are not of one network."
            )
        if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iu":
            raise ValueError(
                f"{name} must be words or whole ids, with one token at least; got ids of shape "
                f"{ids.shape} and type {ids.dtype}."
            )
        ends, largest = (int(ids.min()), int(ids.max())), self.vocabulary - 1
        is_valid = 0 <= ends[0] and ends[1] <= largest
        require(f"smallest and largest ids of {name}", ends, f"from 0 to {largest}", is_valid)
        if len(ids) > self.positions:
            raise ValueError(
                f"{name} has {len(ids)} ids, and {self._limit_text}; give ids[:{self.positions}]."
            )

    def random(self, rng: RandomSource) -> "Network":
        """A copy whose tensors are normal, with the mean and standard deviation of each.

        `rng` is a seed or a numpy.random.Generator.
        """
        rng = generator(rng)
        return self.replaced(lambda w: rng.normal(w.mean(), w.std(), w.shape))

    def shuffled(self, rng: RandomSource) -> "Network":
        """A copy with the entries of each tensor in random order; `rng` as in `random`."""
        rng = generator(rng)
        return self.replaced(lambda w: rng.permutation(w.ravel()).reshape(w.shape))

    def replaced(self, new: Callable[[np.ndarray], np.ndarray]) -> "Network":
        """A copy with new(w) in place of every tensor w."""
        weights = {name: new(w).astype(w.dtype) for name, w in self.weights.items()}
        return type(self)(self.config, weights, self.tokenizer)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write config.json, model.safetensors and, if there is one, tokenizer.json."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config, indent=1), encoding="utf-8")
        write(folder / "model.safetensors", self.weights)
        if self.tokenizer is not None:
            self.tokenizer.save(str(folder / "tokenizer.json"))


def _checked(text: UserValue, name: str) -> UserValue:
    """Return a text that is no file; ValueError for the name of one, and words not in Unicode."""
    if isinstance(text, str):
        if os.path.isfile(text):  # never raises
            raise ValueError(
                f"{name} is {text!r}, which is the name of a file and no text: give "
                f"pathlib.Path({text!r}), or what it holds."
            )
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"{name} must be Unicode; {error}.") from None
    return text


def layered(kinds: list[UserValue]) -> UserValue:
    """Merge kinds of the same class, one for each layer; arrays that differ become `PerLayer`."""
    first, changes = kinds[0], {}
    for name, value in first.described.items():
        values = [kind.described[name] for kind in kinds]
        if isinstance(value, Kind):
            changes[name] = layered(values)
        elif isinstance(value, np.ndarray) and not all(map(partial(np.array_equal, value), values)):
            changes[name] = PerLayer(np.stack(values))
    return first.replace(**changes) if changes else first
