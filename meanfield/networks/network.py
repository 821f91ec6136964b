"""A Transformer with its weights: what all architectures share."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from ..core.checks import generator, whole_number
from .layer import Affine, Layer
from .safetensors import write
from .sublayers import ACTIVATIONS
from .trace import Trace


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
    sizes: tuple[str, ...]  # keys of the configuration: numbers of things, >= 1
    refused: ClassVar[dict[str, tuple]]  # options, values that are supported

    def __init__(self, config: dict, weights: dict[str, np.ndarray], tokenizer=None):
        self.config, self.weights, self.tokenizer = config, weights, tokenizer

    @classmethod
    def check(cls, config: dict) -> None:
        """ValueError, by the option's name, unless this architecture is the configured one."""
        for key in cls.sizes:
            if type(config.get(key)) is not int or config[key] < 1:
                raise ValueError(
                    f"config.json: {key} must be a whole number >= 1, found {config.get(key)!r}."
                )
        for key in ("layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps", "rope_theta"):
            value = config.get(key, 1.0)
            if type(value) not in (int, float) or not 0 < value < float("inf"):
                raise ValueError(f"config.json: {key} must be a number > 0, found {value!r}.")
        for key, allowed in cls.refused.items():
            if key in config and config[key] not in allowed:
                raise ValueError(
                    f"config.json: {key} = {config[key]!r} changes the mathematics and is not "
                    f"supported; supported: {', '.join(map(repr, allowed))}."
                )

    @classmethod
    def check_activation(cls, key: str, config: dict, default: str) -> None:
        """ValueError unless the activation is known."""
        if config.get(key, default) not in ACTIVATIONS:
            raise ValueError(
                f"config.json: {key} must be one of {', '.join(ACTIVATIONS)}, "
                f"found {config[key]!r}."
            )

    @classmethod
    def check_heads(cls, width: str, heads: str, config: dict) -> None:
        """ValueError unless the heads share the width."""
        if config[width] % config[heads]:
            raise ValueError(
                f"config.json: {width} must be a multiple of {heads}, "
                f"found {config[width]} and {config[heads]}."
            )

    @classmethod
    @abstractmethod
    def shapes(cls, config: dict) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the tensors of a configuration."""

    @abstractmethod
    def steps(self, ids: np.ndarray) -> Iterator[tuple[str, int, np.ndarray, np.ndarray | None]]:
        """The residual stream of a text after each sublayer.

        Yields its kind, the layer (from 1; 0: the embedding), the stream and attention's weights.
        """

    @property
    @abstractmethod
    def depth(self) -> int:
        """The number of layers."""

    @abstractmethod
    def seen(self, x: np.ndarray, index: int) -> np.ndarray:
        """What the attention of a layer sees of the stream x (n, d) that enters it."""

    def placed(self, x: np.ndarray) -> np.ndarray:
        """Queries or keys (heads, n, k) turned by their positions, where these are rotary."""
        return x

    @abstractmethod
    def layer_at(self, index: int) -> Layer:
        """The layer with this index, which is from 0 to depth - 1."""

    def layer(self, index: int) -> Layer:
        """A layer, from 0 to depth - 1, to make models of this package from."""
        return self.layer_at(whole_number("index", index, least=0, most=self.depth - 1))

    def map_at(self, name: str) -> Affine:
        """A matrix (out, in) and its bias where there is one."""
        return Affine(self[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def __getitem__(self, name: str) -> np.ndarray:
        """One tensor."""
        return self.weights[name]

    def affine(self, x, name):
        """Multiply by a matrix (out, in), and add its bias where there is one."""
        y = x @ self[f"{name}.weight"].T
        return y + self[f"{name}.bias"] if f"{name}.bias" in self.weights else y

    @property
    @abstractmethod
    def positions(self) -> int:
        """The longest text."""

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """The number of ids."""

    def trace(self, texts, attention: bool = False) -> Trace:
        """Replay texts, each alone and without padding.

        Parameters
        ----------
        texts : str, sequence of int, or a list of these
            Words need a tokenizer; ids do not.
        attention : bool, default False
            Keep the attention weights, (layers, heads, n, n) a text.

        Raises
        ------
        ValueError, TypeError
            For a text without tokens, with ids that the network lacks, or longer than its
            positions.
        """
        if isinstance(texts, str) or (len(texts) and isinstance(texts[0], int | np.integer)):
            texts = [texts]
        if not len(texts):
            raise ValueError("texts must have at least one text, got none.")
        read = [self.encoded(text) for text in texts]  # all are checked before any is run
        streams, weights = [], []
        steps: list[tuple[str, int]] = []
        for ids, _ in read:
            steps, stream, kept = [], [], []
            for kind, layer, x, looks in self.steps(ids):
                steps.append((kind, layer))
                stream.append(x)
                if attention and looks is not None:
                    kept.append(looks)
            streams.append(np.stack(stream))
            if attention:
                weights.append(np.stack(kept))
        return Trace.of_streams(streams, steps, weights, read)

    def encoded(self, text) -> tuple[np.ndarray, list[str]]:
        """Ids and words of a text."""
        if isinstance(text, str):
            if self.tokenizer is None:
                raise ValueError("The network has no tokenizer.json: give ids in place of words.")
            code = self.tokenizer.encode(text)
            ids, words = np.array(code.ids, dtype=int), list(code.tokens)
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
                f"The text has {len(ids)} tokens and the network {self.positions} positions; "
                "use a shorter text."
            )
        return ids, words

    def random(self, rng) -> "Network":
        """The same architecture, each tensor normal with its own mean and standard deviation.

        `rng` is a seed or a numpy.random.Generator.
        """
        rng = generator(rng)
        return self.replaced(lambda w: rng.normal(w.mean(), w.std(), w.shape))

    def shuffled(self, rng) -> "Network":
        """The same architecture, entries of each tensor in random order; `rng` as in `random`."""
        rng = generator(rng)
        return self.replaced(lambda w: rng.permutation(w.ravel()).reshape(w.shape))

    def replaced(self, new) -> "Network":
        """The same architecture with new(w) in place of every tensor w."""
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
