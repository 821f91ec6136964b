"""Exponential integrators for du/dt = L u + N(u) with L diagonal. They know no physics."""

from .hochbruck_ostermann import HochbruckOstermann
from .krogstad import Krogstad
from .scheme import Scheme, Term
from .stepper import Rules, Stepper

SCHEMES = (Krogstad, HochbruckOstermann)

__all__ = ["SCHEMES", "HochbruckOstermann", "Krogstad", "Rules", "Scheme", "Stepper", "Term"]
