"""Solutions as labelled arrays: times, ensemble members, coordinates, modes, nodes.

First plain dictionaries name -> (dimensions, values), which is what goes into files; then the
same as xarray datasets.
"""

from .arrays import ATTRIBUTES, labelled_arrays, observable_arrays, state_arrays
from .datasets import observables_dataset, solution_dataset

__all__ = [
    "ATTRIBUTES",
    "labelled_arrays",
    "observable_arrays",
    "observables_dataset",
    "solution_dataset",
    "state_arrays",
]
