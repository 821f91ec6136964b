"""What a model does to a state: one file per representation."""

from .attend import attend
from .characteristics import CharacteristicsMotion
from .closed_covariance import ClosedCovariance
from .density import DensityEvolution
from .equiangular import EquiangularMotion
from .gaussian import GaussianMotion
from .gram import GramMotion
from .tokens import TokenMotion

__all__ = [
    "CharacteristicsMotion",
    "ClosedCovariance",
    "DensityEvolution",
    "EquiangularMotion",
    "GaussianMotion",
    "GramMotion",
    "TokenMotion",
    "attend",
]
