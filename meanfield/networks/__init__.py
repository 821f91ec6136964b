"""Networks beside the theory: Transformers replayed in NumPy, and fits of flows to layers."""

from .fit import fit
from .fitted import Fit
from .layer import Layer
from .load import load, untrained
from .network import Network
from .record import Recording, record
from .trace import Trace, read_trace

__all__ = [
    "Fit",
    "Layer",
    "Network",
    "Recording",
    "Trace",
    "fit",
    "load",
    "read_trace",
    "record",
    "untrained",
]
