"""Arrays that stay read-only when the objects that hold them are copied or pickled."""

from typing import Any

import numpy as np


class ReadOnlyArrays:
    """An object all of whose arrays are read-only in copies too, which NumPy does not keep."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)
