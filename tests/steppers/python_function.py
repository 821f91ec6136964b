"""Functions of Python in the place of a transport, for tests of the time loop."""

import numpy as np

from meanfield.lowlevel import callbacks


class PythonFunction(callbacks.PythonFunction):
    """N(u) that `function` returns for the coefficients of one member, (1, modes)."""

    context = 0

    def __init__(self, function, modes, dtype=np.complex128):
        def work(_member, source, target):
            target[:] = function(source[None])

        super().__init__(work, modes, dtype)
        self.speed, self.time = np.zeros(1), np.zeros(1)
