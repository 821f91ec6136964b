"""The spaces that densities live on: harmonics, quadrature, and the transport of a density."""

from .circle import Circle
from .contract import Geometry
from .projection import principal_circle, principal_sphere
from .sphere import Sphere
from .zonal import Zonal

__all__ = ["Circle", "Geometry", "Sphere", "Zonal", "principal_circle", "principal_sphere"]
