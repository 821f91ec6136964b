"""Traces of texts in a network: hidden states by layer and the residual stream by sublayer."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from meanfield import StorageError, Tokens
from meanfield.extending import (
    ArrayFile,
    OfLibrary,
    PassedOn,
    UserValue,
    counted,
    names_shown,
    path_of,
)

from .hidden_states import STATES_OF_ONE_TEXT, array_of, shape_in_words, without_padding

ARRAYS_OF_TEXTS = ("hidden", "words", "ids", "streams", "attention")  # name_k is that of text k
OTHER_ARRAYS = ("kinds", "layers", "notes", "tokens", "attention_mask")


def last_steps(steps: list[tuple[str, int]]) -> list[int]:
    """Indices of the last step of each layer, from layer 0 on."""
    return list({layer: index for index, (_, layer) in enumerate(steps)}.values())


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
        """Numbers of texts, layers, dimensions and tokens, and the optional data that are kept."""
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
        texts = {name: getattr(self, name) for name in ARRAYS_OF_TEXTS}
        arrays = {f"{n}_{k}": np.asarray(v) for n, vs in texts.items() for k, v in enumerate(vs)}
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
    file = _TraceFile(path_of("path", path))
    kinds = _words(file.checked("kinds", "words (steps,)", "US", None))
    layers = file.checked("layers", "whole numbers, one for each of kinds",
                          "iu" if kinds else "fiuU", len(kinds))  # fmt: skip
    texts = [file.text(k, len(kinds)) for k in range(file.count)]
    columns = {name: [text[name] for text in texts if name in text] for name in ARRAYS_OF_TEXTS}
    for name, values in columns.items():
        if len(values) not in (0, len(texts)):
            raise StorageError(
                f"{file.path} must have {name} of all its {len(texts)} texts, or of none."
            )
    notes = _words(file.checked("notes", "words (k,)", "US", None))
    return Trace(**columns, steps=list(zip(kinds, map(int, layers), strict=True)), notes=notes)


class _TraceFile:
    """The arrays of a file by name, those of text k as hidden_k, words_k and so on.

    Raises
    ------
    StorageError
        For a file without hidden states.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            self.arrays = _arrays(path)
        except StorageError as error:
            raise StorageError(
                f"{error} Hidden states are written by np.save(path, {STATES_OF_ONE_TEXT})."
            ) from None
        if "hidden" in self.arrays:
            self.arrays |= _texts_of(path, self.arrays)
        if "hidden_0" not in self.arrays:
            raise StorageError(
                f"{path} must have hidden states of one text as one array, hidden (layers, n, d), "
                f"or nothing else; found {names_shown(sorted(self.arrays))}. "
                "Write np.savez(path, hidden=np.stack(layers))."
            )
        self.count = next(k for k in itertools.count() if f"hidden_{k}" not in self.arrays)

    def checked(self, name: str, wanted: str, kinds: str, *shape: int | None) -> np.ndarray:
        """An array of one of the kinds of dtypes and of this shape, None for any length."""
        array = self.arrays.get(name, np.empty(0, "U1"))
        fits = array.ndim == len(shape) and array.dtype.kind in kinds
        if not fits or any(b not in (None, a) for a, b in zip(array.shape, shape, strict=True)):
            found = shape_in_words(array)
            raise StorageError(f"{self.path}: {name} must be {wanted}; found {found}.")
        return array

    def text(self, k: int, count: int) -> dict[str, PassedOn]:
        """The checked arrays of text k by name, of a trace of `count` steps."""
        h = self.arrays[f"hidden_{k}"]
        if h.ndim != 3 or h.dtype.kind not in "fiu":
            batch = " Of a batch of texts give attention_mask (batch, n) too, or one text without "
            raise StorageError(
                f"{self.path}: hidden states of text {k} must be numbers of shape (layers, n, d); "
                f"found {shape_in_words(h)}.{f'{batch}its padding.' if h.ndim == 4 else ''}"
            )
        depth, n, d = len(h) - 1, *h.shape[1:]
        steps = (count, n, d)
        expected: dict[str, tuple[PassedOn, ...]] = {
            "hidden": ("numbers", "fiu", *h.shape),
            "words": (f"words ({n},)", "USiuf", n),
            "ids": (f"whole numbers ({n},)", "iu", n),
            "streams": (f"numbers {steps}, one for each of kinds", "f", *steps),
            "attention": (f"numbers ({depth}, heads, {n}, {n})", "f", depth, None, n, n),
        }
        text: dict[str, PassedOn] = {}
        for name, wanted in expected.items():
            key = f"{name}_{k}"
            if key in self.arrays and (name != "attention" or self.arrays[key].size):
                array = self.checked(key, *wanted)
                text[name] = _words(array) if name == "words" else array
        return text


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


def _words(array: np.ndarray) -> list[str]:
    """Words of an array of strings, bytes or numbers; unpaired surrogates are escaped."""
    words = []
    for word in array.tolist():
        text = word if isinstance(word, bytes) else str(word).encode("utf-8", "backslashreplace")
        words.append(text.decode("utf-8", "backslashreplace"))
    return words


def _texts_of(path: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Split `hidden` into texts without padding and their words: hidden_0, words_0 and so on."""
    hidden, words = arrays["hidden"], arrays.get("tokens")
    if hidden.ndim == 4 and hidden.shape[1] == 1:  # a batch of one text
        hidden = hidden[:, 0]
        words = words[0] if words is not None and words.ndim == 2 and len(words) else words
    mask = arrays.get("attention_mask")
    if hidden.ndim not in (3, 4) or (mask is None and hidden.ndim == 4):
        return {"hidden_0": hidden}  # its shape is refused
    n, numbers = hidden.shape[-2], np.arange(hidden.shape[-2]).astype(str)
    if mask is None:
        if words is not None and (words.dtype.kind not in "USiu" or words.shape != (n,)):
            expected = f"words, one for each of {n} tokens"
            raise StorageError(f"{path}: tokens must be {expected}; found {shape_in_words(words)}.")
        return {"hidden_0": hidden, "words_0": numbers if words is None else words}
    batch, mask = (hidden[:, None] if hidden.ndim == 3 else hidden), np.atleast_2d(mask)
    try:
        texts = without_padding(f"{path}: attention_mask", batch, mask)
    except ValueError as error:
        raise StorageError(str(error)) from None
    entries: dict[str, np.ndarray] = {}
    rows = None if words is None else np.atleast_2d(words)
    for k, (h, row) in enumerate(zip(texts, mask, strict=True)):
        labels = numbers[: h.shape[1]]
        if rows is not None and rows.shape == mask.shape:
            labels = rows[k][row == 1]
        elif rows is not None and hidden.ndim == 3:  # words without those of padding
            labels = rows[0] if len(rows) else rows
        entries |= {f"hidden_{k}": h, f"words_{k}": labels}
    return entries


# Recorded from torch -----------------------------------------------------------------------------


class Recording:
    """Hidden states before the first recorded layer and after each, for each call of the model.

    Parameters
    ----------
    count : int
        The number of layers.
    mask : array (batch, n), optional
        0 for padding, which is left out.
    """

    def __init__(self, count: int, mask: UserValue = None):
        self.count, self.mask = count, mask
        self.calls: list[list[np.ndarray]] = []

    def __repr__(self) -> str:
        return f"Recording of {len(self.calls)} call(s) of {self.count} layers"

    def keep(self, value: OfLibrary, *, first: bool = False) -> None:
        """Append hidden states (batch, n, d) of a layer; `first` starts a new call."""
        states = array_of(value[0] if isinstance(value, tuple) else value)
        if states.ndim != 3:
            raise ValueError(
                f"Layers must take and give hidden states (batch, n, d); got {states.shape}."
            )
        if first:
            self.calls.append([])
        if not self.calls:
            raise ValueError("layers must be in the order in which the model runs through them.")
        self.calls[-1].append(states)

    @property
    def trace(self) -> Trace:
        """The trace, a text for each row of a batch; without a mask padding counts as tokens."""
        texts = []
        for call in self.calls:
            if len(call) != self.count + 1:
                raise ValueError(
                    f"Expected {self.count + 1} states of a call, recorded {len(call)}: the model "
                    "did not run through its layers once."
                )
            batch = np.stack(call)
            if self.mask is None:
                texts += list(batch.swapaxes(0, 1))
            else:
                texts += without_padding("attention_mask", batch, self.mask)
        return Trace(texts, [[str(k) for k in range(text.shape[1])] for text in texts])


@contextmanager
def record(layers: Iterable[OfLibrary], *, attention_mask: UserValue = None) -> Iterator[Recording]:
    """Record a torch model while it runs: `with record(model.encoder.layer) as kept: model(...)`.

    Afterwards `kept.trace` is the Trace. In a padded batch, as tokenizers return it, padding counts
    as tokens unless `attention_mask` is given.

    Parameters
    ----------
    layers : sequence of torch.nn.Module
        The layers, in their order; the first argument of each is hidden states (batch, n, d).
    attention_mask : array or tensor (batch, n), optional
        Mask of the batch, 1 for tokens and 0 for padding.

    Raises
    ------
    ImportError
        Without torch.
    ValueError
        While the model runs, for layers in another order and states of another shape; by
        `kept.trace` for a mask of another shape.
    """
    try:
        import torch
    except ImportError:
        raise ImportError("record needs torch: pip install torch.") from None
    layers = list(layers)
    if not layers or not all(isinstance(layer, torch.nn.Module) for layer in layers):
        raise TypeError(f"layers must be modules of torch, at least one, got {layers!r:.60}.")
    kept = Recording(len(layers), attention_mask)

    def enters(
        module: OfLibrary, arguments: tuple[PassedOn, ...], keywords: dict[str, PassedOn]
    ) -> None:
        kept.keep(arguments[0] if arguments else keywords["hidden_states"], first=True)

    hooks = [layers[0].register_forward_pre_hook(enters, with_kwargs=True)]
    hooks += [layer.register_forward_hook(lambda m, a, out: kept.keep(out)) for layer in layers]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()
