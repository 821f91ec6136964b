"""What a configuration file may hold, table by table; its JSON schema.

Descriptions and docstrings appear in the schema and in error messages.
"""

import math
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from .initial import Ensemble, Initial
from .values import Betas, Finite, Kappas, Natural, Positive, Series, Table, shape_of

__all__ = ["Attention", "Config", "Interaction", "Kuramoto", "plain", "schema"]

FEWEST_MODES = 16  # as in solving.arguments, whose import would cost half a second
KAPPA = Field(default=math.inf, description="noise parameter; inf means no noise")


class Attention(Table):
    """Self-attention with noise, unnormalised (USA) or softmax (SA)."""

    drift: Literal["USA", "SA"]
    beta: Betas = Field(description="inverse temperature; an array makes an ensemble")
    kappa: Kappas = KAPPA


class Kuramoto(Table):
    """Kuramoto's drift with noise: attention at beta = 0."""

    drift: Literal["Kuramoto"]
    kappa: Kappas = KAPPA


class Interaction(Table):
    """The drift grad int W dmu with W = sum_k w_k cos(k theta), theta the angle between tokens."""

    drift: Literal["Interaction"]
    cosines: Series = Field(min_length=2, description="w_0, w_1, ...; positive w_1 attracts")
    kappa: Kappas = KAPPA


class Circle(Table):
    """The unit circle."""

    kind: Literal["circle"] = Field(default="circle", description="the space")
    degree: Natural = Field(description="highest Fourier mode of the initial density")


class Sphere(Table):
    """The unit sphere S^2."""

    kind: Literal["sphere"] = Field(description="the space")
    degree: Natural = Field(description="highest spherical harmonic of the initial density")


class Zonal(Table):
    """Densities on S^(d-1) that are symmetric about an axis."""

    kind: Literal["zonal"] = Field(description="the space")
    dimension: int = Field(ge=2, description="d: the dimension of the tokens")
    degree: Natural = Field(description="highest Gegenbauer polynomial of the initial density")


def _circle_by_default(table: Any) -> Any:
    return {"kind": "circle", **table} if isinstance(table, dict) else table


Geometry = Annotated[
    Annotated[Circle | Sphere | Zonal, Field(discriminator="kind")],
    BeforeValidator(_circle_by_default),
]


class Characteristics(Table):
    """Follow the density, without noise, by nodes that the flow carries, instead of by modes."""

    nodes: Natural | None = Field(
        default=None, description="how many; 4096 on the circle, 16384 on the sphere, 1024 zonal"
    )
    limit: Series | None = Field(
        default=None, description="unit vector at which the density is expected to gather"
    )


class Solve(Table):
    """Times, accuracy and limits."""

    t_start: Finite = Field(default=0.0, description="start time")
    t_end: Finite = Field(description="end time, after t_start")
    outputs: int = Field(
        default=101, ge=2, le=1_000_000, description="number of equally spaced output times"
    )
    t_eval: Series | None = Field(
        default=None, min_length=1, description="the output times themselves, instead of outputs"
    )
    rtol: float = Field(default=1e-8, ge=1e-13, le=1e-3, description="relative accuracy")
    dt: Positive | None = Field(default=None, description="fixed step; by default adaptive")
    until: Literal["steady"] | None = Field(default=None, description="stop at a steady state")
    steady_tolerance: Positive = Field(
        default=1e-10, description="largest rate of change of a steady state"
    )
    min_degree: Natural | None = Field(
        default=None, description="resolution never shrinks below this; 16"
    )
    max_degree: Natural | None = Field(
        default=None, description="resolution never grows beyond this; 4096, on the sphere 512"
    )
    max_steps: Natural = Field(default=10_000_000, description="most steps taken")

    @field_validator("t_end")
    @classmethod
    def _comes_after_the_start(cls, t_end: float, info: ValidationInfo) -> float:
        t_start = info.data.get("t_start", -math.inf)
        if not t_end > t_start:
            raise ValueError(f"expected a time after t_start = {t_start:g}; got {t_end:g}")
        return t_end

    @field_validator("t_eval")
    @classmethod
    def _increases_within_the_span(cls, times: tuple | None, info: ValidationInfo) -> tuple | None:
        span = (info.data.get("t_start"), info.data.get("t_end"))
        if times is None or None in span:
            return times
        if any(not a < b for a, b in pairwise(times)):
            raise ValueError(f"expected increasing times; got {list(times)}")
        if times[0] < span[0] or times[-1] > span[1]:
            raise ValueError(
                f"expected times within t_start = {span[0]:g} and t_end = {span[1]:g}; "
                f"got {times[0]:g} to {times[-1]:g}"
            )
        return times

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        given = self.model_fields_set
        if "outputs" in given and self.t_eval is not None:
            raise ValueError("outputs and t_eval exclude each other; keep one of them")
        if "steady_tolerance" in given and self.until is None:
            raise ValueError('steady_tolerance has an effect only with until = "steady"')
        least = FEWEST_MODES if self.min_degree is None else self.min_degree
        if self.max_degree is not None and least > self.max_degree:
            raise ValueError(f"expected min_degree <= max_degree; got {least} > {self.max_degree}")
        return self


class Checkpoint(Table):
    """How often an unfinished run is written to disk."""

    every: Positive = Field(default=60.0, description="seconds between checkpoints")


class Config(Table):
    """One run: a model, a space, an initial density and how to solve.

    Read one with `meanfield.read_config`, run it with `meanfield.run_config`.
    """

    title: str = Field(default="", description="one line for people")
    description: str = Field(default="", description="more for people")
    model: Annotated[Attention | Kuramoto | Interaction, Field(discriminator="drift")] = Field(
        description="the drift and the noise"
    )
    geometry: Geometry = Field(description="the space and its resolution")
    initial: Initial = Field(description="the density at t_start")
    characteristics: Characteristics | None = Field(
        default=None, description="nodes that the flow carries, instead of modes; may be empty"
    )
    solve: Solve = Field(description="times, accuracy and limits")
    checkpoint: Checkpoint = Field(default=Checkpoint(), description="checkpoints")

    _source: Path | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        self._source = (context or {}).get("source")

    @property
    def source(self) -> Path | None:
        """The file this was read from; None if it was not read from a file."""
        return self._source

    @model_validator(mode="after")
    def _tables_agree(self) -> Self:
        largest = self.solve.max_degree
        if largest is not None and self.geometry.degree > largest:
            raise ValueError(
                f"expected geometry.degree <= solve.max_degree; "
                f"got {self.geometry.degree} > {largest}"
            )
        if self.characteristics is not None:
            given = sorted({"min_degree", "max_degree"} & self.solve.model_fields_set)
            if given:
                raise ValueError(
                    f"solve.{given[0]} bounds the modes of a density; with [characteristics], "
                    "which have none, leave it out"
                )
        shapes = {
            "model.beta": shape_of(getattr(self.model, "beta", 0.0)),
            "model.kappa": shape_of(self.model.kappa),
        }
        if isinstance(self.initial, Ensemble):
            shapes["initial.members"] = (len(self.initial.members),)
        _require_broadcast(shapes)
        return self


def _require_broadcast(shapes: dict[str, tuple[int, ...]]) -> None:
    import numpy as np

    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        found = ", ".join(f"{key} has shape {shape}" for key, shape in shapes.items() if shape)
        raise ValueError(
            f"the arrays of an ensemble do not fit together: {found}; expected equal lengths, "
            "or for a table of two parameters one as a row [a, b] and one as a column [[a], [b]]"
        ) from None


def plain(config: Config) -> dict[str, Any]:
    """The configuration as JSON data, defaults filled in; inf becomes the string "inf".

    `parse_config` reads it back.
    """
    data = _json(config.model_dump(exclude_none=True))
    if config.solve.t_eval is not None:
        del data["solve"]["outputs"]  # t_eval stands in its place
    if config.solve.until is None:
        del data["solve"]["steady_tolerance"]
    return data


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_json(entry) for entry in value]
    return "inf" if value == math.inf else value


def schema() -> dict[str, Any]:
    """The JSON schema of a configuration file.

    JSON cannot write inf; where it means no noise, TOML's `inf` is accepted too.
    """
    return Config.model_json_schema()
