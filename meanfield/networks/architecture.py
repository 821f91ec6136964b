"""Architectures as tables: keys of config.json, names and shapes of tensors, and the layers."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from meanfield import ConfigError, PositionalEncoding
from meanfield.extending import as_given, shown

from .layer import ACTIVATIONS, Affine, Gain, Layer
from .options import FIXED_OPTIONS, HARMLESS_OPTIONS

Config = dict[str, Any]
Shapes = dict[str, tuple[int, ...]]
Weights = dict[str, np.ndarray]
Keys = tuple[str, ...]
Options = dict[str, tuple[Any, ...]]
MOST_LAYERS, LARGEST_SIZE = 10_000, 2**31  # of a configuration; sizes are below LARGEST_SIZE
OTHER_MODELS = (
    "Hidden states of any model are read from a file: call it in transformers with "
    "output_hidden_states=True and write np.save('states.npy', np.stack([h[0].float().numpy() for "
    "h in outputs.hidden_states])); or record layers of torch by meanfield.networks.record. See "
    "the page docs/howto/networks.md."
)


class Architecture(ABC):
    """Base class of architectures: names and shapes of tensors, and layers made from them.

    Parameters
    ----------
    config : dict
        A config.json that `check` accepts.
    weights : dict of arrays
        Tensors by name, without the prefix of the architecture.
    """

    prefix: ClassVar[str]
    unused: ClassVar[Keys]  # prefixes or suffixes of the names of tensors that are not read
    # Keys of config.json
    layers: ClassVar[str] = "num_hidden_layers"
    width: ClassVar[str] = "hidden_size"
    head_count: ClassVar[str] = "num_attention_heads"
    longest: ClassVar[str] = "max_position_embeddings"
    inner: ClassVar[str] = "intermediate_size"
    activation: ClassVar[str] = "hidden_act"
    norm_epsilon: ClassVar[str]  # "" if there is no such key
    other_sizes: ClassVar[Keys] = ()  # whole numbers >= 1
    other_numbers: ClassVar[Keys] = ()  # optional numbers > 0
    read: ClassVar[Keys] = ()  # options that subclasses read and check
    refused: ClassVar[Options] = {}  # options by name, with their supported values
    # Defaults
    usual_activation: ClassVar[str]
    usual_epsilon: ClassVar[float]
    # Tensors of a layer
    maps: ClassVar[dict[str, str]]  # names by role, in the order of the tensors
    norms: ClassVar[tuple[str, str]]  # names of the norms of attention and the feed-forward map
    norm_bias: ClassVar[bool] = True
    norms_after: ClassVar[bool] = False
    transposed: ClassVar[bool] = False  # whether matrices are (in, out)
    causal: ClassVar[bool] = True

    def __init__(self, config: Config, weights: Weights):
        self.config, self.weights = config, weights

    # Configurations ------------------------------------------------------------------------

    @classmethod
    def sizes(cls) -> Keys:
        """Keys of all sizes, which a configuration must have."""
        keys = cls.width, cls.layers, cls.head_count, cls.longest, cls.inner
        return ("vocab_size", *keys, *cls.other_sizes)

    @classmethod
    def check(cls, config: Config) -> None:
        """Raise ConfigError, with the option's name, unless the configuration is supported."""
        sizes = cls.sizes()
        numbers = {cls.norm_epsilon, *cls.other_numbers} - {""}
        for key in sizes:
            bound = MOST_LAYERS + 1 if key == cls.layers else LARGEST_SIZE
            cls.check_size(key, config.get(key), bound)
        for key in numbers:
            cls.check_number(key, config.get(key, 1.0))
        supported = FIXED_OPTIONS | cls.refused
        for key, allowed in supported.items():
            if key in config and config[key] not in allowed:
                raise ConfigError(
                    f"config.json: {key} = {as_given(config[key])} changes the mathematics and is "
                    f"not supported; supported: {', '.join(map(repr, allowed))}. {OTHER_MODELS}"
                )
        allowed_keys = {*HARMLESS_OPTIONS, *sizes, *numbers, *cls.read, *supported, cls.activation}
        for key in config:
            if key not in allowed_keys:
                raise ConfigError(
                    f"config.json: {shown(key)} = {as_given(config[key], 60)} is not known for "
                    f"{config.get('model_type')}, and may change the mathematics. If it does not, "
                    f"remove it from the file. {OTHER_MODELS}"
                )
        activation = config.get(cls.activation, cls.usual_activation)
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            raise ConfigError(
                f"config.json: {cls.activation} must be one of {', '.join(ACTIVATIONS)}, found "
                f"{as_given(activation)}."
            )
        cls.heads(config)

    @staticmethod
    def check_size(key: str, value: Any, bound: int = LARGEST_SIZE, least: int = 1) -> None:
        """Raise ConfigError unless a value is a whole number from `least` and below `bound`."""
        wanted = f"a whole number >= {least} and below {bound}"
        if value is None:
            raise ConfigError(f"config.json: {key} is missing; expected {wanted}.")
        if type(value) is not int or not least <= value < bound:
            raise ConfigError(f"config.json: {key} must be {wanted}, found {as_given(value)}.")

    @staticmethod
    def check_number(key: str, value: Any) -> None:
        """Raise ConfigError unless a value is a finite number > 0."""
        if type(value) not in (int, float) or not 0 < value < 1e300:
            raise ConfigError(f"config.json: {key} must be a number > 0, found {as_given(value)}.")

    @classmethod
    def heads(cls, config: Config) -> tuple[int, int, int]:
        """Number of heads of queries, number of heads of keys and values, and their dimension."""
        width, count = config[cls.width], config[cls.head_count]
        if width % count:
            raise ConfigError(
                f"config.json: {cls.width} must be a multiple of {cls.head_count}, "
                f"found {width} and {count}."
            )
        return count, count, width // count

    # Tensors -------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def embeddings(cls, config: Config) -> Shapes:
        """Shapes of the tensors outside the layers, by name."""

    @classmethod
    @abstractmethod
    def start(cls, config: Config, layer: int) -> str:
        """The prefix of the names of a layer's tensors."""

    @classmethod
    def has_bias(cls, config: Config, role: str) -> bool:
        """Return True if the map of this role has a bias."""
        return True

    @classmethod
    def map_shapes(cls, config: Config) -> Shapes:
        """Shapes of the matrices of a layer by role, as in the file."""
        d, inner, (heads, shared, size) = config[cls.width], config[cls.inner], cls.heads(config)
        shapes = {
            "query": (heads * size, d),
            **dict.fromkeys(("key", "value"), (shared * size, d)),
            "output": (d, heads * size),
            **dict.fromkeys(("inner", "gate"), (inner, d)),
            "outer": (d, inner),
        }
        return {role: shapes[role] for role in cls.maps}

    @classmethod
    def shapes(cls, config: Config) -> Shapes:
        """Names and shapes of all tensors of a configuration."""
        shapes, d = cls.embeddings(config), config[cls.width]
        for layer in range(config[cls.layers]):
            start = cls.start(config, layer)
            for role, shape in cls.map_shapes(config).items():
                shapes[f"{start}{cls.maps[role]}.weight"] = shape
                if cls.has_bias(config, role):
                    shapes[f"{start}{cls.maps[role]}.bias"] = (shape[cls.transposed],)
            for name in cls.norms:
                shapes[f"{start}{name}.weight"] = (d,)
                if cls.norm_bias:
                    shapes[f"{start}{name}.bias"] = (d,)
        return shapes

    def __getitem__(self, name: str) -> np.ndarray:
        """One tensor."""
        return self.weights[name]

    def map_at(self, name: str) -> Affine:
        """The affine map with a matrix (out, in), and a bias if the file has one."""
        matrix = self[f"{name}.weight"]
        return Affine(matrix.T if self.transposed else matrix, self.weights.get(f"{name}.bias"))

    def maps_at(self, start: str) -> dict[str, Affine]:
        """The maps of a layer by role."""
        return {role: self.map_at(start + name) for role, name in self.maps.items()}

    def norm_at(self, name: str) -> Gain:
        """The norm with this name: LayerNorm if it has a bias, otherwise RMSNorm."""
        epsilon = self.config.get(self.norm_epsilon, self.usual_epsilon)
        return Gain(self[f"{name}.weight"], self.weights.get(f"{name}.bias"), epsilon)

    # Layers --------------------------------------------------------------------------------

    @property
    def depth(self) -> int:
        """The number of layers."""
        return int(self.config[self.layers])

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
        return int(self.config[self.longest])

    @property
    def longest_in_words(self) -> str:
        """The reason for the bound `positions` on the length of a text, in words."""
        return f"the network has {self.positions} positions"

    @property
    def turned(self) -> PositionalEncoding | None:
        """The positional encoding of queries and keys, or None."""
        return None

    @abstractmethod
    def embedded(self, ids: np.ndarray) -> np.ndarray:
        """Embeddings (n, d) of ids (n,), the input of the first layer."""

    def layer_at(self, index: int) -> Layer:
        """The layer with an index from 0 to depth - 1."""
        start, (heads, shared, _) = self.start(self.config, index), self.heads(self.config)
        first, second = (self.norm_at(start + name) for name in self.norms)
        activation = self.config.get(self.activation, self.usual_activation)
        return Layer(index, self.maps_at(start), (first, second), self.norms_after, heads, shared,
                     self.causal, activation, self.turned)  # fmt: skip

    @property
    def last(self) -> Gain | None:
        """The norm after the last layer, or None."""
        return None
