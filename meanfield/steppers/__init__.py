"""Integrators for du/dt = L u + N(u) with L diagonal. They know no physics."""

from .dormand_prince import DormandPrince
from .hochbruck_ostermann import HochbruckOstermann
from .krogstad import Krogstad
from .scheme import Scheme, Term
from .stepper import Rules, Stepper

EXPONENTIAL = (Krogstad, HochbruckOstermann)
SCHEMES = (*EXPONENTIAL, DormandPrince)

__all__ = [
    "SCHEMES",
    "DormandPrince",
    "HochbruckOstermann",
    "Krogstad",
    "Rules",
    "Scheme",
    "Stepper",
    "Term",
]
