"""Models: drifts, attention weights, normalisations, noises, and what holds them together."""

from . import ensembles, noise, normalisation, scalings
from .activations import gelu, relu, softplus
from .attention import Attention, Hardmax, rescaled
from .common_noise import CommonNoise
from .drift import Drift
from .higher_order import HigherOrder
from .influence import Causal, Lorentzian, OfIndex
from .mean_field import MeanField
from .noise import Noise
from .normalisation import Normalisation
from .norms import Norm
from .pair_kernel import PairKernel
from .parameters import FromFile, PerLayer
from .periodic import PeriodicKernel
from .pointwise import FeedForward, Field, Pointwise, Potential
from .positional import PositionalEncoding
from .potentials import SA, USA, CosineSeries, Interaction, Kuramoto
from .sums import Sum
from .transformer import Transformer
from .weights import L2, Linear, Sigmoid, Sinkhorn, Softmax, Unnormalised, Weights
from .zonal import ZonalDrift

__all__ = [
    "L2",
    "SA",
    "USA",
    "Attention",
    "Causal",
    "CommonNoise",
    "CosineSeries",
    "Drift",
    "FeedForward",
    "Field",
    "FromFile",
    "Hardmax",
    "HigherOrder",
    "Interaction",
    "Kuramoto",
    "Linear",
    "Lorentzian",
    "MeanField",
    "Noise",
    "Norm",
    "Normalisation",
    "OfIndex",
    "PairKernel",
    "PerLayer",
    "PeriodicKernel",
    "Pointwise",
    "PositionalEncoding",
    "Potential",
    "Sigmoid",
    "Sinkhorn",
    "Softmax",
    "Sum",
    "Transformer",
    "Unnormalised",
    "Weights",
    "ZonalDrift",
    "ensembles",
    "gelu",
    "noise",
    "normalisation",
    "relu",
    "rescaled",
    "scalings",
    "softplus",
]
