"""What a model does to a state: one file per representation."""

from .attend import attend
from .characteristics import CharacteristicsMotion
from .density import DensityEvolution
from .equiangular import EquiangularMotion
from .gram import GramMotion
from .tokens import TokenMotion

__all__ = [
    "CharacteristicsMotion",
    "DensityEvolution",
    "EquiangularMotion",
    "GramMotion",
    "TokenMotion",
    "attend",
]
