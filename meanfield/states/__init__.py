"""What moves: measures in one representation or another."""

from .density import Density
from .gram import Gram
from .tokens import Tokens

__all__ = ["Density", "Gram", "Tokens"]
