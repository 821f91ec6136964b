"""Trained networks compared with the theory: replays, probes, attributions, fits of flows."""

from meanfield.extending import with_hint

from .advice import Advice
from .attribution import attribute
from .fitting import Fit, fit
from .layer import Layer
from .load import load, untrained
from .network import Network
from .nulls import nulls
from .probe import probe
from .quantities import EffectiveRank, Energy, MeanCosine, MeanNorm, Quantity
from .report import Report, report
from .trace import Recording, Trace, read_trace, record

__all__ = [
    "Advice", "EffectiveRank", "Energy", "Fit", "Layer", "MeanCosine", "MeanNorm", "Network",
    "Quantity", "Recording", "Report", "Trace", "attribute", "fit", "load", "nulls",
    "probe", "read_trace", "record", "report", "untrained",
]  # fmt: skip

__getattr__ = with_hint(__name__, __all__)
