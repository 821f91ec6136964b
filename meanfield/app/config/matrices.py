"""How a file gives matrices: as numbers, at random, in another file, or one for each layer."""

from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Strict, Tag

from .files import ArrayName, DataFile
from .scalings import LogarithmicScaling, PowerScaling
from .values import Betas, Finite, Index, Matrices, Natural, Positive, Series, Table

__all__ = [
    "LayeredNumbers",
    "Layers",
    "Matrix",
    "MatrixFile",
    "Number",
    "NumberOrLayers",
    "RandomMatrix",
]

NUMBERS = "numbers"
SCALINGS = {"logarithmic": "LogarithmicScaling", "power": "PowerScaling"}
TABLES = {"ensemble": "RandomMatrix", "file": "MatrixFile", "per_layer": "Layers"}
EXPECTED = (
    "expected a number, a matrix [[...], ...], or a table: { ensemble = ..., seed = ... }, "
    "{ file = ... } or { per_layer = [...] }"
)


class RandomMatrix(Table):
    """A random matrix, or one for each head."""

    ensemble: Literal["ginibre", "ginibre_product", "goe", "wishart"] = Field(
        description="the law, as in meanfield.ensembles"
    )
    seed: Index = Field(description="seed of the random numbers; equal seeds give equal matrices")
    scale: Finite = Field(default=1.0, description="the factor by which it is multiplied")
    rows: Natural | None = Field(
        default=None, description="number of rows, of ginibre only; by default that of columns"
    )
    columns: Natural | None = Field(
        default=None, description="number of columns; by default the dimension d of the state"
    )


class MatrixFile(Table):
    """A matrix, or one for each head, that is read from a file."""

    file: DataFile = Field(description="*.npy, *.npz or *.csv, relative to the configuration file")
    key: ArrayName = Field(default=None, description="name of the array in an .npz file")


def _kind_of(value: Any) -> str | None:
    """Which of the forms a value has, by a key that tells or is misspelt; None if none does."""
    if isinstance(value, Table):
        return type(value).__name__
    if not isinstance(value, dict):
        return NUMBERS
    near = [match for key in value for match in get_close_matches(str(key), TABLES, n=1)]
    return next((name for key, name in TABLES.items() if key in (*value, *near)), None)


CHOICE = Discriminator(_kind_of, custom_error_type="no_such_form", custom_error_message=EXPECTED)
Entry = Annotated[
    Annotated[Matrices, Tag(NUMBERS)]
    | Annotated[RandomMatrix, Tag("RandomMatrix")]
    | Annotated[MatrixFile, Tag("MatrixFile")],
    CHOICE,
]


class Layers(Table):
    """A matrix for each layer of a Transformer, the last one for ever after."""

    per_layer: Annotated[tuple[Entry, ...], Strict(False)] = Field(
        min_length=1, description="the value in each layer, all of one shape"
    )
    duration: Positive = Field(default=1.0, description="time that a layer lasts")


Matrix = Annotated[
    Annotated[Matrices, Tag(NUMBERS)]
    | Annotated[RandomMatrix, Tag("RandomMatrix")]
    | Annotated[MatrixFile, Tag("MatrixFile")]
    | Annotated[Layers, Tag("Layers")],
    CHOICE,
]


class LayeredNumbers(Table):
    """A number for each layer of a Transformer, the last one for ever after."""

    per_layer: Series = Field(min_length=1, description="the value in each layer")
    duration: Positive = Field(default=1.0, description="time that a layer lasts")


def _kind_of_number(value: Any) -> str | None:
    if isinstance(value, Table):
        return type(value).__name__
    if not isinstance(value, dict):
        return NUMBERS
    return SCALINGS.get(str(value["scaling"])) if "scaling" in value else "LayeredNumbers"


SCALED = Discriminator(
    _kind_of_number,
    custom_error_type="no_such_scaling",
    custom_error_message=(
        'expected a number, an array, { scaling = "logarithmic", gamma = ... } or '
        '{ scaling = "power", dimension = ..., factor = ... }'
    ),
)
Number = Annotated[
    Annotated[Betas, Tag(NUMBERS)]
    | Annotated[LogarithmicScaling, Tag("LogarithmicScaling")]
    | Annotated[PowerScaling, Tag("PowerScaling")],
    SCALED,
]
NumberOrLayers = Annotated[
    Annotated[Betas, Tag(NUMBERS)]
    | Annotated[LogarithmicScaling, Tag("LogarithmicScaling")]
    | Annotated[PowerScaling, Tag("PowerScaling")]
    | Annotated[LayeredNumbers, Tag("LayeredNumbers")],
    SCALED,
]
