"""Arrays that stay read-only when the objects that hold them are copied or pickled."""

import numpy as np

from .annotations import Parameters


class ReadOnlyArrays:
    """Base of objects whose arrays stay read-only in copies and pickles, unlike NumPy's."""

    def __setstate__(self, state: Parameters) -> None:
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)
