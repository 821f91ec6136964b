"""From the matrices of a configuration to arrays."""

from typing import Any

import numpy as np

from ...core.number_files import read_numbers
from ...models import PerLayer, ensembles
from .blame import blaming
from .build_tokens import build_tokens
from .described import Modelled
from .files import folder_of
from .matrices import Layers, MatrixFile, RandomMatrix
from .schema import Config

__all__ = ["Builder"]

SQUARE = {
    "ginibre_product": ensembles.ginibre_product,
    "goe": ensembles.goe,
    "wishart": ensembles.wishart,
}


class Builder:
    """Builds matrices: numbers as they are, those of files read, random ones drawn.

    Parameters
    ----------
    config : Modelled
    heads : int, optional
        For which random matrices of attention are drawn; those of a perceptron have none.
    """

    def __init__(self, config: Modelled, heads: int | None):
        self._config, self._heads = config, heads

    def __call__(self, key: str, value: Any) -> Any:
        """An array, or a PerLayer of arrays; `key` names the value in messages."""
        if not isinstance(value, Layers):
            return self._array(key, value)
        layers = [self._array(f"{key}.per_layer[{i}]", v) for i, v in enumerate(value.per_layer)]
        shapes = {layer.shape for layer in layers}
        with blaming(self._config, key):
            if len(shapes) > 1:
                raise ValueError(
                    f"expected one shape in all layers; got {', '.join(map(str, sorted(shapes)))}. "
                    "A multiple of the identity is written as a matrix beside matrices."
                )
            return PerLayer(layers, value.duration)

    def _array(self, key: str, value: Any) -> np.ndarray:
        with blaming(self._config, key):
            match value:
                case RandomMatrix():
                    return self._drawn(key, value)
                case MatrixFile(file=file, key=name):
                    return read_numbers(folder_of(self._config.source) / file, name)
            return np.array(value)

    def _drawn(self, key: str, table: RandomMatrix) -> np.ndarray:
        d = self._dimension() if table.columns is None else table.columns
        one = self._heads is None or key.startswith("model.feedforward")
        shape = () if one else (int(self._heads or 1),)
        if table.ensemble == "ginibre":
            drawn = ensembles.ginibre(d, table.seed, shape, rows=table.rows)
        else:
            drawn = SQUARE[table.ensemble](d, table.seed, shape)
        return table.scale * drawn

    def _dimension(self) -> int:
        """The dimension of the state."""
        assert isinstance(self._config, Config)  # densities have no matrices
        if self._config.gaussian is not None:
            return len(self._config.gaussian.mean)
        return build_tokens(self._config).dimension
