"""What a model does to a state: one file per representation."""

from .density import DensityEvolution

__all__ = ["DensityEvolution"]
