"""The command `meanfield`.

Everything heavy is imported inside the commands, so that `meanfield --help` answers at once.
"""

from .about import doctor, schema
from .bifurcation import bifurcation
from .chaos import chaos
from .group import main
from .phase_diagram import phase_diagram
from .plot import plot
from .solve import solve

__all__ = [
    "bifurcation",
    "chaos",
    "doctor",
    "main",
    "phase_diagram",
    "plot",
    "schema",
    "solve",
]
