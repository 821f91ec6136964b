"""From [model] to a model."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...models import SA, USA, Drift, PerLayer, scalings
from ...models import Attention as AttentionDrift
from ...models import FeedForward as Perceptron
from ...models import Hardmax as HardmaxDrift
from ...models import Interaction as InteractionDrift
from ...models import Kuramoto as KuramotoDrift
from ...models import weights as kinds
from ...models.feedforward import ACTIVATIONS
from ...models.noise import Anisotropic, CommonNoise, Isotropic, Noise
from ...models.normalisation import NGPT, MixLN, Normalisation, PeriLN, PostLN, PreLN, SqrtScaling
from ...models.transformer import Transformer
from . import layer_tables as tables
from .blame import blaming
from .build_matrix import Builder
from .build_tokens import build_tokens
from .described import Modelled
from .matrices import LayeredNumbers
from .models import Attention, Hardmax, Interaction, SelfAttention
from .scalings import LogarithmicScaling, PowerScaling
from .schema import Config

__all__ = ["build_drift", "build_model"]

WEIGHTS: dict[str, Callable[..., kinds.Weights]] = {
    "softmax": kinds.Softmax,
    "unnormalised": kinds.Unnormalised,
    "l2": kinds.L2,
    "sigmoid": kinds.Sigmoid,
    "sinkhorn": kinds.Sinkhorn,
    "linear": kinds.Linear,
}
NORMALISATIONS = {
    "post_ln": PostLN,
    "pre_ln": PreLN,
    "mix_ln": MixLN,
    "peri_ln": PeriLN,
    "ngpt": NGPT,
    "sqrt_scaling": SqrtScaling,
}


def build_model(config: Modelled) -> Transformer:
    """The model that [model] describes."""
    table = config.model
    build = Builder(config, getattr(table, "heads", None))
    drift = _drift(config, build)
    feedforward = _feedforward(config, build)
    noise, normalisation = _noise(config), _normalisation(config)
    with blaming(config, "model"):
        return Transformer(
            drift,
            kappa=np.array(table.kappa),
            normalisation=normalisation,
            noise=noise,
            reaction=getattr(table, "reaction", 0.0),
            feedforward=feedforward,
        )


def build_drift(config: Modelled) -> Drift:
    """The drift that [model] describes, without its noise."""
    return _drift(config, Builder(config, getattr(config.model, "heads", None)))


def _drift(config: Modelled, build: Builder) -> Drift:
    model = config.model
    with blaming(config, "model"):
        match model:
            case SelfAttention():
                return {"USA": USA, "SA": SA}[model.drift](_beta(config, model.beta))
            case Interaction():
                # cos(k theta) is the Chebyshev polynomial T_k of the inner product cos(theta)
                potential = np.polynomial.Chebyshev(model.cosines)
                return InteractionDrift(potential, name=f"cosines {list(model.cosines)}")
            case Attention():
                output = None if model.output is None else build("model.output", model.output)
                return AttentionDrift(
                    **_matrices(model, build),
                    beta=_beta(config, model.beta),
                    weights=_weights(model),
                    output=output,
                    causal=model.causal,
                )
            case Hardmax():
                return HardmaxDrift(**_matrices(model, build), ties=model.ties)
        return KuramotoDrift()


def _matrices(model: Attention | Hardmax, build: Builder) -> dict[str, Any]:
    return {name: build(f"model.{name}", getattr(model, name)) for name in "QKV"}


def _beta(config: Modelled, beta: Any) -> Any:
    match beta:
        case LayeredNumbers():
            return PerLayer(beta.per_layer, beta.duration)
        case LogarithmicScaling(gamma=gamma, offset=offset):
            return scalings.logarithmic(_number_of_tokens(config), gamma, offset)
        case PowerScaling(dimension=d, factor=factor):
            return scalings.power(_number_of_tokens(config), d, factor)
    return beta


def _number_of_tokens(config: Modelled) -> Any:
    assert isinstance(config, Config)  # others have no scaling
    if config.equiangular is not None:
        return config.equiangular.n
    return len(build_tokens(config))


def _weights(model: Attention) -> kinds.Weights | None:
    return None if model.weights is None else WEIGHTS[model.weights.kind](**_numbers(model.weights))


def _normalisation(config: Modelled) -> Normalisation | None:
    table = config.model.normalisation
    if table is None:
        return None
    with blaming(config, "model.normalisation"):
        return NORMALISATIONS[table.kind](**_numbers(table))


def _noise(config: Modelled) -> Noise | None:
    table = config.model.noise
    with blaming(config, "model.noise"):
        match table:
            case tables.Anisotropic(sigma=sigma):
                return Anisotropic(sigma)
            case tables.Common():
                return CommonNoise()
            case tables.Isotropic():
                return Isotropic()
    return None


def _feedforward(config: Modelled, build: Builder) -> Perceptron | None:
    table = config.model.feedforward
    if table is None:
        return None
    key = "model.feedforward"
    inner, outer = (build(f"{key}.{name}", getattr(table, name)) for name in ("inner", "outer"))
    with blaming(config, key):
        return Perceptron(inner, outer, table.bias, ACTIVATIONS[table.activation])


def _numbers(table: Any) -> dict[str, float]:
    return table.model_dump(exclude={"kind"})
