"""A normal law on R^d: the table [gaussian], and what goes with it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from .layer_tables import Sinkhorn
from .models import Attention
from .scalings import LogarithmicScaling, PowerScaling
from .solve_table import FOR_TOKENS
from .token_agreement import is_noisy
from .values import Rows, Series, Table

if TYPE_CHECKING:
    from .schema import Config

__all__ = ["Gaussian", "gaussian_disagreements"]

AFFINE = ("softmax", "l2", "sinkhorn", "linear")


class Gaussian(Table):
    """A normal law on R^d, which attention with matrices keeps."""

    mean: Series = Field(min_length=1, description="d numbers")
    cov: Rows = Field(description="covariance (d, d), symmetric and positive semidefinite")


def gaussian_disagreements(config: "Config") -> Iterator[str]:
    """What does not fit together, in words that begin with a dotted key."""
    for name in ("min_degree", "max_degree", *FOR_TOKENS):
        if getattr(config.solve, name) is not None:
            yield f"solve.{name} has no effect on a Gaussian; leave it out"
    yield from _model(config)


def _model(config: "Config") -> Iterator[str]:
    model = config.model
    if not isinstance(model, Attention):
        yield f'model.drift: a Gaussian moves under "Attention"; got "{model.drift}"'
        return
    if model.weights is not None and model.weights.kind not in AFFINE:
        yield (
            f'model.weights: "{model.weights.kind}" does not keep a Gaussian, since velocities are '
            f"not affine; expected one of {', '.join(AFFINE)}"
        )
    if isinstance(model.weights, Sinkhorn):
        for name in ("tolerance", "most_iterations"):
            if getattr(model.weights, name) != Sinkhorn.model_fields[name].default:
                yield (
                    f"model.weights.{name} has no effect on a Gaussian, whose Sinkhorn weights "
                    "have a closed form; leave it out"
                )
    if model.causal:
        yield "model.causal: causal attention does not keep a Gaussian; leave it out"
    if isinstance(model.beta, LogarithmicScaling | PowerScaling):
        yield "model.beta: a scaling needs a number of tokens; a Gaussian has none"
    if isinstance(model.beta, tuple):
        yield "model.beta: a Gaussian is solved for a single model; expected a number"
    if is_noisy(model):
        yield "model.kappa: a Gaussian is followed without noise; leave it out"
    for name in ("normalisation", "noise", "feedforward"):
        if getattr(model, name) is not None:
            yield f"model.{name}: a Gaussian is followed without it; leave it out"
