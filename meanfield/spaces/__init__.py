"""The spaces that densities live on: harmonics, quadrature, and the transport of a density."""

from .circle import Circle
from .contract import Space
from .density import Density
from .samples import principal_circle, principal_sphere
from .sphere import Sphere, from_pyshtools, to_pyshtools
from .torus import Torus
from .zonal import Zonal

__all__ = [
    "Circle",
    "Density",
    "Space",
    "Sphere",
    "Torus",
    "Zonal",
    "from_pyshtools",
    "principal_circle",
    "principal_sphere",
    "to_pyshtools",
]
