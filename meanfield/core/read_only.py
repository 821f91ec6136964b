"""Read-only arrays, which stay so when the objects that hold them are copied or pickled."""

import numpy as np

from .annotations import Parameters, Values


def read_only(value: Values) -> Values:
    """Make an array that is shared read-only, and return it; other values as they are."""
    if isinstance(value, np.ndarray):  # arrays with tangents are not shared
        value.setflags(write=False)
    return value


class ReadOnlyArrays:
    """Base of objects whose arrays stay read-only in copies and pickles, unlike NumPy's."""

    def __setstate__(self, state: Parameters) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, read_only(value))
