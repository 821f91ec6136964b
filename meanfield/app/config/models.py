"""The models that a file may describe: the table [model]."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from .layer_tables import FeedForward, Noise, Normalisation, Weights
from .matrices import Layers, Matrix, MatrixFile, Number, NumberOrLayers, RandomMatrix
from .values import Betas, Finite, Kappas, Natural, NonNegative, Series, Table

__all__ = [
    "Attention",
    "FollowedModel",
    "Hardmax",
    "Interaction",
    "Kuramoto",
    "Model",
    "SelfAttention",
    "SelfAttentionOfAnyBeta",
    "matrix_tables",
]

KAPPA = Field(default=math.inf, description="noise parameter; inf means no noise")
IDENTITY = "; by default the identity"


class _Layer(Table):
    drift: str
    kappa: Kappas = KAPPA
    normalisation: Normalisation | None = Field(
        default=None, description="where hidden states are put back on the sphere; post_ln"
    )
    noise: Noise | None = Field(default=None, description="the kind of noise; isotropic")
    feedforward: FeedForward | None = Field(
        default=None, description="a perceptron beside attention"
    )


class _Zonal(_Layer):
    reaction: Finite = Field(
        default=0.0, description="rate at which tokens of high potential gain mass"
    )


class SelfAttention(_Zonal):
    """Self-attention with noise, unnormalised (USA) or softmax (SA)."""

    drift: Literal["USA", "SA"]
    beta: Number = Field(description="inverse temperature; an array makes an ensemble")


class SelfAttentionOfAnyBeta(SelfAttention):
    """USA or SA; without beta where that is the parameter."""

    beta: Betas | None = Field(default=None, description="inverse temperature")  # type: ignore


class Kuramoto(_Zonal):
    """Kuramoto's drift with noise: attention at beta = 0."""

    drift: Literal["Kuramoto"]


class Interaction(_Zonal):
    """The drift grad int W dmu with W = sum_k w_k cos(k theta), theta the angle between tokens."""

    drift: Literal["Interaction"]
    cosines: Series = Field(min_length=2, description="w_0, w_1, ...; positive w_1 attracts")


class _Matrices(_Layer):
    Q: Matrix = Field(default=1.0, description="queries (k, d)" + IDENTITY)
    K: Matrix = Field(default=1.0, description="keys (k, d)" + IDENTITY)
    V: Matrix = Field(default=1.0, description="values (d, d)" + IDENTITY)
    heads: Natural | None = Field(
        default=None, description="number of heads for which random matrices are drawn"
    )


class Attention(_Matrices):
    """Attention with matrices Q, K and V, for tokens."""

    drift: Literal["Attention"]
    beta: NumberOrLayers = Field(
        default=1.0, description="inverse temperature; an array makes an ensemble"
    )
    output: Matrix | None = Field(default=None, description="output projection (d, k)")
    weights: Weights | None = Field(default=None, description="kind of attention weights; softmax")
    causal: bool = Field(default=False, description="whether token i attends to j <= i only")


class Hardmax(_Matrices):
    """Attention at infinite inverse temperature, with matrices Q, K and V, for tokens."""

    drift: Literal["Hardmax"]
    ties: NonNegative = Field(
        default=1e-12, description="how far below the maximum of <Qx, Ky> a tie may lie"
    )


Model = Annotated[
    SelfAttention | Kuramoto | Interaction | Attention | Hardmax, Field(discriminator="drift")
]


FollowedModel = Annotated[
    SelfAttentionOfAnyBeta | Kuramoto | Interaction | Attention | Hardmax,
    Field(discriminator="drift"),
]


def matrix_tables(model: Model) -> Iterator[tuple[str, RandomMatrix | MatrixFile]]:
    """Dotted keys of the matrices of a model that are drawn or read from a file, and their tables.

    Those of layers have an index.
    """
    places = {f"model.{name}": getattr(model, name, None) for name in ("Q", "K", "V", "output")}
    if model.feedforward is not None:
        places["model.feedforward.inner"] = model.feedforward.inner
        places["model.feedforward.outer"] = model.feedforward.outer
    entries: dict[str, Any]
    for key, value in places.items():
        if isinstance(value, Layers):
            layers = enumerate(value.per_layer)
            entries = {f"{key}.per_layer[{i}]": entry for i, entry in layers}
        else:
            entries = {key: value}
        for place, entry in entries.items():
            if isinstance(entry, RandomMatrix | MatrixFile):
                yield place, entry
