"""Networks beside the theory: fits of flows to the layers of a network, and their verdicts."""

from .fit import fit
from .fitted import Fit

__all__ = ["Fit", "fit"]
