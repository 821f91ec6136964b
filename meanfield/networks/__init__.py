"""Networks beside the theory: Transformers of files, replayed in NumPy, and their traces."""

from .load import load, untrained
from .network import Network
from .record import Recording, record
from .trace import Trace, read_trace

__all__ = ["Network", "Recording", "Trace", "load", "read_trace", "record", "untrained"]
