"""An inverse temperature that grows with the number of tokens, as in meanfield.scalings."""

from typing import Annotated, Any, Literal

from pydantic import Field

from ...core.checks import shape_of
from .values import Betas, Natural, Table

__all__ = ["LogarithmicScaling", "PowerScaling", "shapes_of_beta"]


class LogarithmicScaling(Table):
    """gamma log n + offset, n the number of tokens."""

    scaling: Literal["logarithmic"]
    gamma: Betas = Field(default=1.0, description="the factor of log n")
    offset: Betas = Field(default=0.0, description="what is added to it")


class PowerScaling(Table):
    """factor n^(2/(d - 1)), n the number of tokens."""

    scaling: Literal["power"]
    dimension: Annotated[Natural, Field(ge=2)] = Field(description="d: that of the keys")
    factor: Betas = Field(default=1.0, description="the factor of the power")


def shapes_of_beta(beta: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of the numbers that beta is made of, by their keys; a number has the shape ()."""
    match beta:
        case LogarithmicScaling():
            given = {"model.beta.gamma": beta.gamma, "model.beta.offset": beta.offset}
        case PowerScaling():
            given = {"model.beta.factor": beta.factor}
        case _:
            given = {"model.beta": beta}
    return {key: shape_of(value) for key, value in given.items()}
