"""What a model does to a state: one file per representation."""

from .characteristics import CharacteristicsMotion
from .density import DensityEvolution

__all__ = ["CharacteristicsMotion", "DensityEvolution"]
