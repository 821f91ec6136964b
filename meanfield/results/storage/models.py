"""Models from their descriptions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import MeanfieldError
from ...models import (
    SA,
    USA,
    Attention,
    Drift,
    FeedForward,
    Hardmax,
    Interaction,
    Kuramoto,
    MeanField,
)
from ...models.noise import (
    Anisotropic,
    CommonNoise,
    Isotropic,
    MultiplicativeIto,
    MultiplicativeStratonovich,
)
from ...models.normalisation import NORMALISATIONS
from ...models.transformer import Transformer

__all__ = ["model_of"]


def model_of(described: dict[str, Any]) -> Transformer:
    """The model that `Transformer.describe` described.

    A function that a file cannot hold comes back as one that says so when it is called.
    """
    kappa = np.array(described["kappa"], dtype=float)
    extras: dict[str, Any] = {"reaction": described.get("reaction", 0.0)}
    if "normalisation" in described:
        extras["normalisation"] = _normalisation(described)
    if "noise" in described:
        extras["noise"] = _noise(described["noise"])
    if "feedforward" in described:
        extras["feedforward"] = _feedforward(described["feedforward"])
    return Transformer(_drift(described), np.where(np.isnan(kappa), np.inf, kappa), **extras)


def _drift(described: dict[str, Any]) -> Drift:
    match described["drift"]:
        case "USA":
            return USA(described["beta"])
        case "SA":
            return SA(described["beta"])
        case "Kuramoto":
            return Kuramoto()
        case "Attention":
            return Attention.from_description(described)
        case "Hardmax":
            return Hardmax.from_description(described)
        case "MeanField":
            return MeanField.absent(_drift(described["of"]), described["field"]["callable"])
    series = np.polynomial.Chebyshev(described["chebyshev"])
    derivative = described.get("derivative")
    slope = _lost(derivative["callable"]) if derivative else None
    return Interaction(series, described["potential"], derivative=slope)


def _normalisation(described: dict[str, Any]):
    kind = {kind.__name__: kind for kind in NORMALISATIONS}[described["normalisation"]]
    names = [name for name in ("tau", "alpha") if name in described]
    return kind(**{name: _number_or_function(described[name]) for name in names})


def _noise(described: dict[str, Any]):
    match described["noise"]:
        case "CommonNoise":
            return CommonNoise()
        case "Anisotropic":
            return Anisotropic(described["sigma"])
        case "MultiplicativeIto":
            return MultiplicativeIto(_lost(described["scale"]))
        case "MultiplicativeStratonovich":
            return MultiplicativeStratonovich(_lost(described["scale"]))
    return Isotropic()


def _feedforward(described: dict[str, Any]):
    if "callable" in described:
        return _lost(described["callable"])
    activation = _number_or_function(described["activation"])
    own = activation if callable(activation) else None
    return FeedForward.from_description(described, own)


def _number_or_function(value: Any):
    return _lost(value["callable"]) if isinstance(value, dict) else value


def _lost(name: str) -> Callable:
    def function(*_arguments):
        raise MeanfieldError(
            f"{name} is a function, which result files do not hold: build the model again to go "
            "on with it."
        )

    function.__qualname__ = name
    return function
