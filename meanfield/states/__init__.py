"""States: measures in one representation or another, which models move."""

from .contract import Start, State
from .dirac import Dirac
from .equiangular import Equiangular
from .gaussian import Gaussian
from .gram import Gram
from .tokens import Tokens
from .torus_tokens import TorusTokens

__all__ = ["Dirac", "Equiangular", "Gaussian", "Gram", "Start", "State", "Tokens", "TorusTokens"]
