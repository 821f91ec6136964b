"""What moves: measures in one representation or another."""

from .density import Density
from .tokens import Tokens

__all__ = ["Density", "Tokens"]
