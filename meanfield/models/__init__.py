"""Models: drifts, attention weights, normalisations, noises, and what holds them together."""

from . import ensembles, noise, normalisation, scalings
from .attention import Attention, Hardmax, rescaled
from .drift import Drift, ZonalDrift
from .feedforward import FeedForward, relu
from .interaction import CosineSeries, Interaction
from .mean_field import MeanField
from .noise import Noise
from .normalisation import Normalisation
from .parameters import FromFile, PerLayer
from .weights import L2, Linear, Sigmoid, Sinkhorn, Softmax, Unnormalised, Weights
from .zonal import SA, USA, Kuramoto

__all__ = [
    "L2",
    "SA",
    "USA",
    "Attention",
    "CosineSeries",
    "Drift",
    "FeedForward",
    "FromFile",
    "Hardmax",
    "Interaction",
    "Kuramoto",
    "Linear",
    "MeanField",
    "Noise",
    "Normalisation",
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
