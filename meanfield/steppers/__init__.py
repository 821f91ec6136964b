"""Integrators for du/dt = L u + N(u) with L diagonal. They know no physics."""

from .dormand_prince import DormandPrince
from .hochbruck_ostermann import HochbruckOstermann
from .krogstad import Krogstad
from .scheme import DenseOutput, Scheme, Term
from .splitting import Layers, LieTrotter, Splitting, Strang
from .stepper import Rules, Stepper

EXPONENTIAL = (Krogstad, HochbruckOstermann)
SCHEMES = (*EXPONENTIAL, DormandPrince)
SPLITTINGS = (Strang, LieTrotter, Layers)  # for tokens

__all__ = [
    "SCHEMES",
    "SPLITTINGS",
    "DenseOutput",
    "DormandPrince",
    "HochbruckOstermann",
    "Krogstad",
    "Layers",
    "LieTrotter",
    "Rules",
    "Scheme",
    "Splitting",
    "Stepper",
    "Strang",
    "Term",
]
