"""Equiangular tokens: the table [equiangular], and what goes with it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from .models import Attention, Hardmax
from .token_agreement import is_noisy
from .values import Betas, PositiveNumbers, Table

if TYPE_CHECKING:
    from .schema import Config

__all__ = ["Equiangular", "equiangular_disagreements"]

FOR_OTHERS = ("min_degree", "max_degree", "engine", "tolerance", "threads", "merge", "seed")


class Equiangular(Table):
    """Tokens whose inner products are all the same."""

    n: PositiveNumbers = Field(description="number of tokens, >= 2, not necessarily whole")
    rho: Betas | None = Field(default=None, description="the inner product, in (-1/(n - 1), 1)")
    gap: PositiveNumbers | None = Field(default=None, description="1 - rho, instead of rho")
    radius: PositiveNumbers = Field(default=1.0, description="length of the hidden states")

    @model_validator(mode="after")
    def _has_one_inner_product(self) -> Self:
        if (self.rho is None) == (self.gap is None):
            raise ValueError("expected rho, or gap = 1 - rho instead: one of them")
        return self


def equiangular_disagreements(config: "Config") -> Iterator[str]:
    """What does not fit together, in words that begin with a dotted key."""
    model, solve = config.model, config.solve
    if isinstance(model, Attention | Hardmax):
        yield f'model.drift: "{model.drift}" does not keep tokens equiangular; add [tokens] instead'
    if is_noisy(model):
        yield "model.kappa: noise does not keep tokens equiangular; add [tokens] instead"
    if model.feedforward is not None:
        yield "model.feedforward does not keep tokens equiangular; add [tokens] instead"
    for name in FOR_OTHERS:
        if getattr(solve, name) is not None:
            yield f"solve.{name}: equiangular tokens have no use for it; leave it out"
    if solve.scheme not in (None, "DormandPrince", "Layers"):
        yield f'solve.scheme: expected "DormandPrince" or "Layers"; got "{solve.scheme}"'
    if solve.scheme == "Layers" and solve.dt is None:
        yield 'solve.dt: this key is required by scheme "Layers" and is missing'
