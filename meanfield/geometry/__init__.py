"""The spaces that densities live on: harmonics, quadrature, and the transport of a density."""

from .circle import Circle
from .contract import Geometry
from .projection import principal_circle

__all__ = ["Circle", "Geometry", "principal_circle"]
