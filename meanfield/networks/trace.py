"""Traces of texts in a network: hidden states by layer and the residual stream by sublayer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from meanfield import StorageError, Tokens
from meanfield.extending import ArrayFile, counted, names_shown, path_of

from .hidden_states import STATES_OF_ONE_TEXT, shape_in_words, without_padding

ARRAYS_OF_TEXTS = ("hidden", "words", "ids", "streams", "attention")  # name_k is that of text k
OTHER_ARRAYS = ("kinds", "layers", "notes", "tokens", "attention_mask")


@dataclass(eq=False, repr=False)
class Trace:
    """Hidden states of texts, layer by layer.

    Parameters
    ----------
    hidden : list of arrays, (layers + 1, n, d)
        One array for each text: the input of the first layer and the output of each layer. The
        last output is after the final normalisation, if the architecture has one.
    words : list of lists of str
        Tokens of each text.
    ids : list of arrays of int, (n,), optional
        Ids of the tokens of each text.
    streams : list of arrays, (steps, n, d), optional
        The residual stream after the embedding and after each sublayer.
    steps : list of (str, int), optional
        Kind ("embedding", "attention", "mlp" or "normalisation") and layer of each entry of a
        stream; the embedding is of layer 0.
    attention : list of arrays, (layers, heads, n, n), optional
        Attention weights; row i contains the weights of token i.
    notes : list of str, optional
        Sentences on truncated texts.
    """

    hidden: list[np.ndarray]
    words: list[list[str]]
    ids: list[np.ndarray] = field(default_factory=list)
    streams: list[np.ndarray] = field(default_factory=list)
    steps: list[tuple[str, int]] = field(default_factory=list)
    attention: list[np.ndarray] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        sizes = [h.shape for h in self.hidden]
        if not sizes:
            return "Trace of no text"
        counts = ", ".join(str(n) for _, n, _ in sizes[:8]) + (", ..." if len(sizes) > 8 else "")
        noun = "token" if [n for _, n, _ in sizes] == [1] else "tokens"
        also = [name for name in ("streams", "attention") if getattr(self, name)]
        return (
            f"Trace of {counted(len(sizes), 'text')}: {counted(sizes[0][0] - 1, 'layer')}, "
            f"d = {sizes[0][2]}; {counts} {noun}{'; with ' + ' and '.join(also) if also else ''}"
        )

    @classmethod
    def of_streams(
        cls,
        streams: list[np.ndarray],
        steps: list[tuple[str, int]],
        attention: list[np.ndarray],
        ids: list[np.ndarray],
        words: list[list[str]],
        notes: list[str],
    ) -> "Trace":
        """A trace whose hidden states are the last stream entry of each layer."""
        last = list({layer: at for at, (_, layer) in enumerate(steps)}.values())
        hidden = [stream[last] for stream in streams]
        return cls(hidden, words, ids, streams, steps, attention, notes)

    @property
    def named_by(self) -> str:
        """The meaning of `words`: "words", "ids", or "numbers" (positions in the text)."""
        if any(not word.isdecimal() for words in self.words for word in words):
            return "words"
        return "ids" if self.ids else "numbers"

    def contributions(self, text: int = 0) -> np.ndarray:
        """Increments of the stream of a text by sublayer, (len(steps) - 1, n, d).

        Entry k is the increment of steps[k + 1]; streams[text][0] plus all increments is the last
        hidden state.
        """
        if not self.streams:
            raise ValueError("The trace has hidden states only: trace a Network for its sublayers.")
        return np.diff(self.streams[text], axis=0)

    def tokens(self, layer: int, text: int = 0) -> Tokens:
        """Tokens whose directions and radii are those of the hidden states of a layer."""
        return Tokens.from_hidden(self.hidden[text][layer])

    def save(self, path: str | PathLike[str]) -> None:
        """Write a .npz file without pickled objects; `read_trace` reads it."""
        arrays = {}
        for name in ARRAYS_OF_TEXTS:
            for k, value in enumerate(getattr(self, name)):
                arrays[f"{name}_{k}"] = np.asarray(value)
        if self.notes:
            arrays["notes"] = np.array(self.notes, dtype=np.str_)
        arrays["kinds"] = np.array([kind for kind, _ in self.steps], dtype=np.str_)
        arrays["layers"] = np.array([layer for _, layer in self.steps], dtype=int)
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def read_trace(path: str | PathLike[str]) -> Trace:
    """Read a trace written by `Trace.save`, or plain hidden states (layers, n, d) of one text.

    Parameters
    ----------
    path : path
        A .npz file. Plain states are its array "hidden", their words, if any, "tokens". With an
        "attention_mask" (n,) or (batch, n), 0 for padding, "hidden" may be a batch of texts,
        (layers, batch, n, d). A .npy or .npz file with a single array may have any name for it.

    Raises
    ------
    StorageError
        For a file without hidden states, of another shape, damaged, with pickled objects, or with
        arrays that are too large for the memory; it names file and array.
    """
    path = path_of("path", path)
    try:
        arrays = _arrays(path)
    except StorageError as error:
        raise StorageError(
            f"{error} Hidden states are written by np.save(path, {STATES_OF_ONE_TEXT})."
        ) from None
    if "hidden" in arrays:
        arrays |= _plain(path, arrays)
    if "hidden_0" not in arrays:
        raise StorageError(
            f"{path} must have hidden states of one text as one array, hidden (layers, n, d), or "
            f"nothing else; found {names_shown(sorted(arrays))}. "
            "Write np.savez(path, hidden=np.stack(layers))."
        )
    count = 0
    while f"hidden_{count}" in arrays:
        count += 1
    steps = _steps(path, arrays)
    columns: dict[str, list[Any]] = {name: [] for name in ARRAYS_OF_TEXTS}
    for k in range(count):
        for name, value in _text(path, arrays, k, len(steps)).items():
            columns[name].append(value)
    for name, values in columns.items():
        if len(values) not in (0, count):
            raise StorageError(f"{path} must have {name} of all its {count} texts, or of none.")
    notes = _checked(path, "notes", arrays.get("notes", np.empty(0, "U1")), "words (k,)", "US", 1)
    return Trace(**columns, steps=steps, notes=_words(notes))


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of a trace by name; a single array of any name is "hidden"."""
    with ArrayFile(path) as file:
        if len(file.names) == 1 and file.names[0] != "hidden_0":
            return {"hidden": file[file.names[0]]}
        names = [name for name in file.names if name.rpartition("_")[0] in ARRAYS_OF_TEXTS]
        names += [name for name in file.names if name in ("hidden", *OTHER_ARRAYS)]
        if not names:
            return dict.fromkeys(file.names, np.empty(0))
        return {name: file[name] for name in names}


def _checked(
    path: Path, name: str, array: np.ndarray, wanted: str, kinds: str, axes: int, *shapes: Any
) -> np.ndarray:
    """The array; raise StorageError unless its kind, number of axes and shape are as expected."""
    plain = array.dtype.kind in kinds and array.ndim == axes
    if not plain or (shapes and array.shape not in shapes):
        raise StorageError(f"{path}: {name} must be {wanted}; found {shape_in_words(array)}.")
    return array


def _steps(path: Path, arrays: Mapping[str, np.ndarray]) -> list[tuple[str, int]]:
    """Kind and layer of each entry of a stream."""
    kinds, layers = (arrays.get(name, np.empty(0, "U1")) for name in ("kinds", "layers"))
    _checked(path, "kinds", kinds, "words (steps,)", "US", 1)
    _checked(path, "layers", layers, "whole numbers, one for each of kinds",
             "iu" if kinds.size else "fiuU", 1, kinds.shape)  # fmt: skip
    return list(zip(_words(kinds), map(int, layers), strict=True))


def _text(path: Path, arrays: Mapping[str, np.ndarray], k: int, steps: int) -> dict[str, Any]:
    """The arrays of text k by name; their kinds and shapes are checked, `steps` is the stream's."""
    h = arrays[f"hidden_{k}"]
    if h.ndim != 3 or h.dtype.kind not in "fiu":
        batch = " Of a batch of texts give attention_mask (batch, n) too, or one text without "
        batch = f"{batch}its padding." if h.ndim == 4 else ""
        raise StorageError(
            f"{path}: hidden states of text {k} must be numbers of shape (layers, n, d); found "
            f"{shape_in_words(h)}.{batch}"
        )
    layers, n, d = h.shape
    checked: dict[str, Any] = {"hidden": h}
    expected: dict[str, tuple[Any, ...]] = {
        "words": (f"words ({n},)", "USiuf", 1, (n,)),
        "ids": (f"whole numbers ({n},)", "iu", 1, (n,)),
        "streams": (f"numbers ({steps}, {n}, {d}), one for each of kinds", "f", 3, (steps, n, d)),
        "attention": (f"numbers ({layers - 1}, heads, {n}, {n})", "f", 4),
    }
    for name, wanted in expected.items():
        key = f"{name}_{k}"
        if key not in arrays or (name == "attention" and not arrays[key].size):
            continue
        array = _checked(path, key, arrays[key], *wanted)
        if name == "attention" and array.shape != (layers - 1, array.shape[1], n, n):
            _checked(path, key, array, *wanted, None)
        checked[name] = _words(array) if name == "words" else array
    return checked


def _words(array: np.ndarray) -> list[str]:
    """Words of an array of strings, bytes or numbers; unpaired surrogates are escaped."""
    words = []
    for word in array.tolist():
        text = word if isinstance(word, bytes) else str(word).encode("utf-8", "backslashreplace")
        words.append(text.decode("utf-8", "backslashreplace"))
    return words


def _plain(path: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Split `hidden` into texts without padding and their words: hidden_0, words_0 and so on."""
    hidden, tokens = arrays["hidden"], arrays.get("tokens")
    if hidden.ndim == 4 and hidden.shape[1] == 1:  # a batch of one text
        hidden = hidden[:, 0]
        tokens = tokens[0] if tokens is not None and tokens.ndim == 2 and len(tokens) else tokens
    mask = arrays.get("attention_mask")
    if hidden.ndim not in (3, 4) or (mask is None and hidden.ndim == 4):
        return {"hidden_0": hidden}  # `_text` refuses its shape
    n = hidden.shape[-2]
    if mask is None:
        numbers = np.array([str(k) for k in range(n)])
        if tokens is not None:
            _checked(path, "tokens", tokens, f"words, one for each of {n} tokens", "USiu", 1, (n,))
        return {"hidden_0": hidden, "words_0": numbers if tokens is None else tokens}
    one = hidden.ndim == 3
    batch, mask = (hidden[:, None] if one else hidden), np.atleast_2d(mask)
    try:
        texts = without_padding(f"{path}: attention_mask", batch, mask)
    except ValueError as error:
        raise StorageError(str(error)) from None
    named = {f"hidden_{k}": h for k, h in enumerate(texts)}
    words = None if tokens is None else np.atleast_2d(tokens)
    for k, (h, row) in enumerate(zip(texts, mask, strict=True)):
        labels = np.arange(h.shape[1]).astype(str)
        if words is not None and words.shape == mask.shape:
            labels = words[k][row == 1]
        elif words is not None and one:  # words without those of padding
            labels = words[0] if len(words) else words
        named[f"words_{k}"] = labels
    return named
