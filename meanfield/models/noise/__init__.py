"""What noise does to tokens during a time step, exactly on the sphere and of weak order 2."""

from .anisotropic import Anisotropic
from .common_noise import CommonNoise
from .contract import Noise
from .isotropic import Isotropic
from .multiplicative import MultiplicativeIto, MultiplicativeStratonovich

__all__ = [
    "Anisotropic",
    "CommonNoise",
    "Isotropic",
    "MultiplicativeIto",
    "MultiplicativeStratonovich",
    "Noise",
]
