"""What tables and keys are made of: the table itself, numbers in a range, arrays of them."""

import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, Strict

from ...core.checks import shape_of

__all__ = [
    "Betas",
    "Finite",
    "Index",
    "Kappas",
    "Matrices",
    "Natural",
    "NonNegative",
    "Points",
    "Positive",
    "PositiveNumbers",
    "Rows",
    "Series",
    "Table",
]

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Natural = Annotated[int, Field(ge=1)]
Index = Annotated[int, Field(ge=0)]
Series = Annotated[tuple[Finite, ...], Strict(False)]


class Table(BaseModel):
    """A table of the file: unknown keys and converted types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _numbers(
    expected: str,
    accepts: Callable[[float], bool],
    *,
    layouts: str = "a number, an array or a table",
    axes: tuple[int, ...] = (0, 1, 2),
) -> Callable[[Any], float | tuple]:
    """Validator of numbers in nested arrays, of as many `axes`: 0 is a number by itself."""

    def read(value: Any) -> float | tuple:
        if isinstance(value, list | tuple):
            return tuple(read(entry) for entry in value)
        if value == "inf":  # how plain JSON writes what TOML writes as inf
            value = math.inf
        if isinstance(value, bool) or not isinstance(value, int | float) or not accepts(value):
            raise ValueError(f"expected {expected}, or an array of them; got {value!r}")
        return float(value)

    def validate(value: Any) -> float | tuple:
        numbers = read(value)
        shape = shape_of(numbers)
        if 0 in shape:
            raise ValueError("expected an array with at least one entry")
        if len(shape) not in axes:
            deeper = "a deeper array" if len(shape) > max(axes) else f"an array of shape {shape}"
            raise ValueError(f"expected {layouts}; got {deeper if shape else numbers}")
        return numbers

    return validate


Betas = Annotated[
    float | tuple,
    PlainValidator(
        _numbers("a finite number", math.isfinite),
        json_schema_input_type=float | list[float] | list[list[float]],
    ),
]
Kappas = Annotated[
    float | tuple,
    PlainValidator(
        _numbers("a number > 0 (inf means no noise)", lambda kappa: kappa > 0),
        json_schema_input_type=float | list[float] | list[list[float]],
    ),
]
PositiveNumbers = Annotated[
    float | tuple,
    PlainValidator(
        _numbers(
            "a finite number > 0",
            lambda number: 0 < number < math.inf,
            layouts="a number or an array",
            axes=(0, 1),
        ),
        json_schema_input_type=float | list[float],
    ),
]
Matrices = Annotated[
    float | tuple,
    PlainValidator(
        _numbers(
            "a finite number",
            math.isfinite,
            layouts="a number, a matrix [[...], ...] or one for each head [[[...], ...], ...]",
            axes=(0, 2, 3),
        ),
        json_schema_input_type=float | list[list[float]] | list[list[list[float]]],
    ),
]
Points = Annotated[
    tuple,
    PlainValidator(
        _numbers(
            "a finite number",
            math.isfinite,
            layouts="points [[...], ...], or replicas of them [[[...], ...], ...]",
            axes=(2, 3),
        ),
        json_schema_input_type=list[list[float]] | list[list[list[float]]],
    ),
]
Rows = Annotated[
    tuple,
    PlainValidator(
        _numbers("a finite number", math.isfinite, layouts="a matrix [[...], ...]", axes=(2,)),
        json_schema_input_type=list[list[float]],
    ),
]
