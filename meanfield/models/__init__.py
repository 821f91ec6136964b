"""The drifts: how the measure of tokens moves each of them."""

from . import ensembles, noise, normalisation, scalings
from .attention import Attention
from .contract import Drift, ZonalDrift
from .feedforward import FeedForward, relu
from .hardmax import Hardmax
from .interaction import Interaction
from .mean_field import MeanField
from .parameters import PerLayer
from .rescaling import rescaled
from .weights import L2, Linear, Sigmoid, Sinkhorn, Softmax, Unnormalised, Weights
from .zonal import SA, USA, Kuramoto

__all__ = [
    "L2",
    "SA",
    "USA",
    "Attention",
    "Drift",
    "FeedForward",
    "Hardmax",
    "Interaction",
    "Kuramoto",
    "Linear",
    "MeanField",
    "PerLayer",
    "Sigmoid",
    "Sinkhorn",
    "Softmax",
    "Unnormalised",
    "Weights",
    "ZonalDrift",
    "ensembles",
    "noise",
    "normalisation",
    "relu",
    "rescaled",
    "scalings",
]
