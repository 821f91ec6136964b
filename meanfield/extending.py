"""Support for packages that build on meanfield, as its own `networks` and `explore` do.

    from meanfield.extending import generator, require, whole_number

Checks of arguments raise the messages of the package; files are read with bounds and written whole;
runs and curves show a progress bar and can be stopped; kinds list their parameters.
"""

from .core.annotations import (
    Function,
    Json,
    JsonTable,
    OfLibrary,
    Parameters,
    PassedOn,
    RandomSource,
    UserValue,
    Values,
)
from .core.arrays import ArrayFile, names_shown, shown
from .core.checks import (
    as_given,
    boolean,
    check_memory,
    counted,
    finite_array,
    generator,
    path_of,
    positive,
    real,
    real_array,
    require,
    whole_number,
)
from .core.files import regular_file, write_whole
from .core.forms import REFUSED, Index, Leaf
from .core.kinds import Kind
from .core.parameters import parameters_of
from .core.public_names import with_hint
from .core.system import give_back_memory, share_heaps
from .core.system import limit as process_limit
from .lowlevel.blas import one_blas_thread
from .lowlevel.progress import Progress, stopped_when

__all__ = [
    "REFUSED",
    "ArrayFile",
    "Function",
    "Index",
    "Json",
    "JsonTable",
    "Kind",
    "Leaf",
    "OfLibrary",
    "Parameters",
    "PassedOn",
    "Progress",
    "RandomSource",
    "UserValue",
    "Values",
    "as_given",
    "boolean",
    "check_memory",
    "counted",
    "finite_array",
    "generator",
    "give_back_memory",
    "names_shown",
    "one_blas_thread",
    "parameters_of",
    "path_of",
    "positive",
    "process_limit",
    "real",
    "real_array",
    "regular_file",
    "require",
    "share_heaps",
    "shown",
    "stopped_when",
    "whole_number",
    "with_hint",
    "write_whole",
]

__getattr__ = with_hint(__name__, __all__)
