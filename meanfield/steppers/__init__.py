"""Integrators for du/dt = L u + N(u) with L diagonal. They know no physics."""

from ..core.public_names import with_hint
from .advance import Rules
from .schemes import (
    DenseOutput,
    DormandPrince,
    HochbruckOstermann,
    Krogstad,
    ParabolicOutput,
    Scheme,
    Term,
)
from .splitting import Layers, LieTrotter, Splitting, Strang, kutta_step
from .stepper import Stepper

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
    "ParabolicOutput",
    "Rules",
    "Scheme",
    "Splitting",
    "Stepper",
    "Strang",
    "Term",
    "kutta_step",
]

__getattr__ = with_hint(__name__, __all__)
