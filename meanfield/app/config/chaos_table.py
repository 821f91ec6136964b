"""What a study of propagation of chaos compares: the table [chaos]."""

from itertools import pairwise
from typing import Annotated

from pydantic import Field, Strict, field_validator

from .values import Index, Natural, NonNegative, Positive, Table

__all__ = ["Chaos"]


class Chaos(Table):
    """Sizes, times and replicas."""

    sizes: Annotated[tuple[Natural, ...], Strict(False)] = Field(
        min_length=1, description="numbers of tokens, increasing, >= 2"
    )
    times: Annotated[tuple[NonNegative, ...], Strict(False)] = Field(
        min_length=1, description="increasing times, the last > 0; the runs start at 0"
    )
    replicas: int = Field(default=64, ge=2, description="independent runs of every size")
    seed: Index = Field(description="seed of all random numbers")
    dt: Positive | None = Field(
        default=None, description="steps of tokens with noise; by default those of a run"
    )
    distances: Annotated[tuple[str, ...], Strict(False)] | None = Field(
        default=None, description="names of distances; by default those that cost little"
    )
    coupling: bool = Field(default=True, description="whether the nonlinear process is run too")
    floor: bool = Field(default=True, description="whether independent samples are compared too")
    rtol: float = Field(default=1e-8, ge=1e-13, le=1e-3, description="accuracy of the density")
    threads: Natural = Field(default=1, description="batches that are run at the same time")

    @field_validator("sizes")
    @classmethod
    def _are_sizes(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if sizes[0] < 2 or any(not a < b for a, b in pairwise(sizes)):
            raise ValueError(f"expected increasing numbers of tokens >= 2; got {list(sizes)}")
        return sizes

    @field_validator("times")
    @classmethod
    def _increase(cls, times: tuple[float, ...]) -> tuple[float, ...]:
        if times[-1] <= 0 or any(not a < b for a, b in pairwise(times)):
            raise ValueError(f"expected increasing times, the last > 0; got {list(times)}")
        return times
