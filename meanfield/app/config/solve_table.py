"""How a run is done: the tables [solve] and [checkpoint]."""

import math
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from .values import Finite, Index, Natural, Positive, Series, Table

__all__ = ["FEWEST_MODES", "FOR_TOKENS", "Checkpoint", "Solve"]

FEWEST_MODES = 16  # as in solving.arguments, whose import would cost half a second
FOR_TOKENS = ("scheme", "engine", "tolerance", "threads", "merge", "seed")


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
    scheme: Literal["DormandPrince", "Layers", "LieTrotter", "Strang"] | None = Field(
        default=None, description="how tokens are stepped"
    )
    engine: Literal["automatic", "direct", "modes"] | None = Field(
        default=None, description="how sums over tokens are done"
    )
    tolerance: Positive | None = Field(
        default=None, description="relative accuracy of sums over tokens by modes"
    )
    threads: Natural | None = Field(default=None, description="threads that share the sums")
    merge: Positive | None = Field(
        default=None, le=0.1, description="distance below which tokens are taken for one"
    )
    seed: Index | None = Field(default=None, description="seed of the noise on tokens")

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
        if self.engine == "direct" and self.tolerance is not None:
            raise ValueError(
                'engine = "direct" sums to rounding and has no tolerance; leave it out'
            )
        return self


class Checkpoint(Table):
    """How often an unfinished run is written to disk."""

    every: Positive = Field(default=60.0, description="seconds between checkpoints")
