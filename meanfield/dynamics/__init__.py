"""Motions of states under models, and observables of states: one file per state."""

from .characteristics import CharacteristicsMotion
from .density import DensityEvolution, DensityMotion
from .equiangular import EquiangularMotion
from .gaussian import ClosedCovariance, GaussianMotion
from .gaussian_noise import CovarianceMotion
from .gram import GramMotion
from .indexed import IndexedMotion
from .motion import Motion, attend, motion_for
from .tokens import TokenMotion
from .torus_tokens import TorusTokenMotion

__all__ = [
    "CharacteristicsMotion",
    "ClosedCovariance",
    "CovarianceMotion",
    "DensityEvolution",
    "DensityMotion",
    "EquiangularMotion",
    "GaussianMotion",
    "GramMotion",
    "IndexedMotion",
    "Motion",
    "TokenMotion",
    "TorusTokenMotion",
    "attend",
    "motion_for",
]
