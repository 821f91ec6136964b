"""The base class of Transformers with weights: replays, traces, models, null models."""

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meanfield import Norm, PerLayer, ShortenedWarning, StorageError, Transformer
from meanfield.extending import (
    Kind,
    RandomSource,
    check_memory,
    generator,
    regular_file,
    whole_number,
)

from .architecture import Architecture, Config, Weights
from .layer import Layer
from .safetensors import write
from .tokenizer import Tokenizer
from .tokenizing import encoded as encoded_by
from .trace import Trace

LARGEST_TEXT = 2**26  # bytes


class Text(NamedTuple):
    """A tokenised text: ids (n,), words, and the number `whole` of ids before truncation."""

    ids: np.ndarray
    words: list[str]
    whole: int


class Network(Architecture):
    """A Transformer that is replayed in NumPy; `load` and `untrained` make one.

    Parameters
    ----------
    config : dict
        Contents of config.json.
    weights : dict of arrays
        Tensors by name, without the prefix of the architecture.
    tokenizer : optional
        A `tokenizers.Tokenizer`; without one, texts must be given as ids.
    """

    def __init__(self, config: Config, weights: Weights, tokenizer: Any = None):
        super().__init__(config, weights)
        self.tokenizer = tokenizer

    def __repr__(self) -> str:
        words = "with" if self.tokenizer is not None else "without"
        width = self.embedded(np.zeros(1, dtype=int)).shape[-1]
        return (
            f"{type(self).__name__}: {self.depth} layers, d = {width}, {self.layer(0).heads} "
            f"heads; {self.vocabulary} ids, {words} tokenizer; texts of up to {self.positions} "
            "tokens"
        )

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

        Yields (kind, layer, stream (n, d), weights): layers count from 1, the embedding has layer
        0. Weights (heads, n, n) follow the attention sublayers if `attention`; otherwise None.
        """
        x = self.embedded(ids)
        yield "embedding", 0, x, None
        for index in range(self.depth):
            for kind, x, weights in self.layer_at(index).steps(x, attention):  # noqa: B020
                yield kind, index + 1, x, weights
        if self.last is not None:
            yield "normalisation", self.depth, self.last(x), None

    def trace(self, texts: Any, attention: bool = False) -> Trace:
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
            positions; for a string that is the name of a file.
        StorageError
            For a file that is not UTF-8, and a tokenizer.json that fails.

        Warns
        -----
        ShortenedWarning
            If a text in words has more tokens than the network has positions: it is truncated, as
            `Trace.notes` records.
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
                    f"taken: {self.longest_in_words}."
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
        """Replay ids: (kind, layer) of each step, stream (steps, n, d), attention weights.

        Weights are (layers, heads, n, n); empty unless `attention`.
        """
        steps: list[tuple[str, int]] = []
        stream, kept = [], []
        for kind, layer, x, weights in self.steps(ids, attention):
            steps.append((kind, layer))
            stream.append(x)
            if weights is not None:
                kept.append(weights)
        return steps, np.stack(stream), np.stack(kept) if kept else np.empty(0)

    def encoded(self, text: Any) -> Text:
        """Ids and words of a text; words are truncated to the number of positions, ids are not."""
        if isinstance(text, Path):
            text = text_of(text)
        elif isinstance(text, str) and os.path.isfile(text):  # isfile never raises
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
                f"The text has {len(ids)} ids, and {self.longest_in_words}; give "
                f"ids[:{self.positions}]."
            )
        return Text(ids, words, len(ids) if whole is None else whole)

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
    """Merge kinds of the same class, one for each layer; arrays that differ become `PerLayer`."""
    first, changes = kinds[0], {}
    for name, value in first.described.items():
        values = [kind.described[name] for kind in kinds]
        if isinstance(value, Kind):
            changes[name] = layered(values)
        elif isinstance(value, np.ndarray) and not all(map(partial(np.array_equal, value), values)):
            changes[name] = PerLayer(np.stack(values))
    return first.replace(**changes) if changes else first
