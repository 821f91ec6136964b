"""What a network did to texts: hidden states by layer and the residual stream by sublayer."""

from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..states import Tokens
from .hidden_states import OF_ONE, shape_in_words, without_padding


@dataclass(eq=False, repr=False)
class Trace:
    """Hidden states of texts, layer by layer.

    Parameters
    ----------
    hidden : list of arrays, (layers + 1, n, d)
        One for each text: what enters the first layer, and what each layer gives. The last is
        after the last normalisation, where the architecture has one.
    words : list of lists of str
        Tokens of each text.
    ids : list of arrays of int, optional
        Their numbers.
    streams : list of arrays, (steps, n, d), optional
        The residual stream after the embedding and after each sublayer.
    steps : list of (str, int), optional
        Kind ("embedding", "attention", "mlp" or "normalisation") and layer of each entry of a
        stream; the embedding is of layer 0.
    attention : list of arrays, (layers, heads, n, n), optional
        Weights, a row for each token that looks.
    """

    hidden: list[np.ndarray]
    words: list[list[str]]
    ids: list[np.ndarray] = field(default_factory=list)
    streams: list[np.ndarray] = field(default_factory=list)
    steps: list[tuple[str, int]] = field(default_factory=list)
    attention: list[np.ndarray] = field(default_factory=list)

    def __repr__(self) -> str:
        sizes = [h.shape for h in self.hidden]
        if not sizes:
            return "Trace of no text"
        counts = ", ".join(str(n) for _, n, _ in sizes[:8]) + (", ..." if len(sizes) > 8 else "")
        also = [name for name in ("streams", "attention") if getattr(self, name)]
        return (
            f"Trace of {len(sizes)} text(s): {sizes[0][0] - 1} layers, d = {sizes[0][2]}; {counts} "
            f"tokens{'; with ' + ' and '.join(also) if also else ''}"
        )

    @classmethod
    def of_streams(cls, streams, steps, attention, read) -> "Trace":
        """A trace whose hidden states are the last entries of each layer."""
        last = list({layer: at for at, (_, layer) in enumerate(steps)}.values())
        ids, words = ([pair[k] for pair in read] for k in range(2))
        return cls([stream[last] for stream in streams], words, ids, streams, steps, attention)

    def contributions(self, text: int = 0) -> np.ndarray:
        """What each sublayer adds to the stream of a text, (len(steps) - 1, n, d).

        Entry k belongs to steps[k + 1]; with streams[text][0] they sum to the last hidden state.
        """
        if not self.streams:
            raise ValueError("The trace has hidden states only: trace a Network for its sublayers.")
        return np.diff(self.streams[text], axis=0)

    def tokens(self, layer: int, text: int = 0) -> Tokens:
        """Tokens in the directions of the hidden states of a layer, lengths as radii."""
        return Tokens.from_hidden(self.hidden[text][layer])

    def save(self, path) -> None:
        """Write a .npz file without pickled objects; `read_trace` reads it."""
        arrays = {}
        for name in ("hidden", "words", "ids", "streams", "attention"):
            for k, value in enumerate(getattr(self, name)):
                arrays[f"{name}_{k}"] = np.asarray(value)
        arrays["kinds"] = np.array([kind for kind, _ in self.steps], dtype=np.str_)
        arrays["layers"] = np.array([layer for _, layer in self.steps], dtype=int)
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def read_trace(path) -> Trace:
    """Read a trace of `Trace.save`, or plain hidden states (layers, n, d) of one text.

    Parameters
    ----------
    path : path
        A .npz file; plain states are under "hidden", their words, if any, under "tokens". With an
        "attention_mask" (n,) or (batch, n), 0 for padding, `hidden` may be a batch of texts,
        (layers, batch, n, d). Or a file of plain states alone, .npy or .npz, under any name.

    Raises
    ------
    ValueError
        For a file without hidden states, of another shape, or with pickled objects.
    """
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            arrays = {"hidden": found}
        else:
            if any(name.endswith("data.pkl") for name in found.files):
                raise ValueError(f"it is of torch: write np.save(path, {OF_ONE})")
            with found:
                arrays = dict(found)
        if len(arrays) == 1 and "hidden_0" not in arrays:
            arrays = {"hidden": next(iter(arrays.values()))}
    except (ValueError, EOFError, BadZipFile) as error:
        raise ValueError(
            f"{path} must be a file of plain arrays, .npz or .npy, without pickled objects; "
            f"{error}."
        ) from None
    if "hidden" in arrays:
        arrays |= _plain(path, arrays)
    if "hidden_0" not in arrays:
        raise ValueError(
            f"{path} must have hidden states of one text as one array, hidden (layers, n, d), or "
            f"nothing else; found {sorted(arrays)}. Write np.savez(path, hidden=np.stack(layers))."
        )

    def texts(name):
        found: list[np.ndarray] = []
        while f"{name}_{len(found)}" in arrays:
            found.append(arrays[f"{name}_{len(found)}"])
        return found

    for k, h in enumerate(texts("hidden")):
        if h.ndim != 3 or h.dtype.kind not in "fiu":
            batch = " Of a batch of texts give attention_mask (batch, n) too, or one text without "
            batch = f"{batch}its padding." if h.ndim == 4 else ""
            raise ValueError(
                f"{path}: hidden states of text {k} must be numbers of shape (layers, n, d); found "
                f"{shape_in_words(h)}.{batch}"
            )
    kinds, layers = (arrays.get(name, np.empty(0)) for name in ("kinds", "layers"))
    steps = list(zip(map(str, kinds), map(int, layers), strict=True))
    words = [[str(word) for word in text] for text in texts("words")]
    return Trace(texts("hidden"), words, texts("ids"), texts("streams"), steps, texts("attention"))


def _plain(path, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Texts of `hidden`, without padding, and their words: hidden_0, words_0 and so on."""
    hidden, tokens = arrays["hidden"], arrays.get("tokens")
    if hidden.ndim == 4 and hidden.shape[1] == 1:  # one text, as a batch
        hidden = hidden[:, 0]
        tokens = tokens[0] if tokens is not None and tokens.ndim == 2 else tokens
    mask = arrays.get("attention_mask")
    if mask is None:
        numbers = [str(k) for n in hidden.shape[-2:-1] for k in range(n)]
        return {"hidden_0": hidden, "words_0": np.array(numbers) if tokens is None else tokens}
    one = hidden.ndim == 3
    batch, mask = (hidden[:, None] if one else hidden), np.atleast_2d(mask)
    if batch.ndim != 4:
        return {"hidden_0": hidden}  # refused by its shape
    texts = without_padding(f"{path}: attention_mask", batch, mask)
    found = {f"hidden_{k}": h for k, h in enumerate(texts)}
    words = None if tokens is None else np.atleast_2d(tokens)
    for k, (h, row) in enumerate(zip(texts, mask, strict=True)):
        own = np.arange(h.shape[1]).astype(str)
        if words is not None and words.shape == mask.shape:
            own = words[k][row == 1]
        elif words is not None and one:  # of the tokens alone
            own = words[0]
        found[f"words_{k}"] = own
    return found
