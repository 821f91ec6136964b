"""The command `meanfield`.

Everything heavy is imported inside the commands, so that `meanfield --help` answers at once.
"""

from .about import doctor, schema
from .chaos import chaos
from .group import main
from .plot import plot
from .solve import solve

__all__ = ["chaos", "doctor", "main", "plot", "schema", "solve"]
