"""Models: drifts, attention weights, normalisations, noises, and what holds them together."""

from . import ensembles, noise, normalisation, scalings
from .attention import Attention, Hardmax, rescaled
from .common_noise import CommonNoise
from .drift import Drift
from .mean_field import MeanField
from .noise import Noise
from .normalisation import Normalisation
from .parameters import FromFile, PerLayer
from .potentials import SA, USA, CosineSeries, Interaction, Kuramoto
from .transformer import FeedForward, Transformer, relu
from .weights import L2, Linear, Sigmoid, Sinkhorn, Softmax, Unnormalised, Weights
from .zonal import ZonalDrift

__all__ = [
    "L2",
    "SA",
    "USA",
    "Attention",
    "CommonNoise",
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
    "Transformer",
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
