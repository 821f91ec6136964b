"""A Riccati equation with a linear part, and observed orders of convergence."""

import numpy as np
from python_function import PythonFunction

from meanfield.steppers import Stepper

PROBLEMS = {-3.0: (2.0, 1.0, 1.0), -40.0: (8.0, 6.0, 0.25), 2j: (2.0, 1.0, 1.0)}
PROBLEMS[-1 + 5j] = PROBLEMS[2j]  # linear part: b, c and end time of the Riccati equation below


class Riccati:
    """u' = L u + b + c u^2 for u, coupled to w = u^2, w' = 2 L w + 2 b u + 2 c u w.

    L is the linear part of the scheme, also where it is complex. u = p/q with a linear system
    of size two for (p, q), whose exponential is known: no reference integration is needed.
    """

    start = 0.1

    def __init__(self, linear):
        self.linear, (self.b, self.c, self.end) = linear, PROBLEMS[linear]

    def stepper(self, scheme):
        """A stepper at the initial state."""
        state = np.array([[self.start, self.start**2]], dtype=complex)
        diagonal = np.array([[self.linear, 2 * self.linear]], dtype=complex)
        return Stepper(scheme, diagonal, PythonFunction(self._nonlinear, 2), state)

    def _nonlinear(self, state):
        u, w = state[0]
        return np.array([[self.b + self.c * w, 2 * u * (self.b + self.c * w)]])

    def exact(self, t):
        """(u, u^2) at time t."""
        omega = np.sqrt(complex(self.linear**2 / 4 - self.b * self.c))
        cosh, sinh = np.cosh(omega * t), np.sinh(omega * t) / omega
        p = cosh * self.start + sinh * (self.linear / 2 * self.start + self.b)
        q = cosh - sinh * (self.c * self.start + self.linear / 2)
        return np.array([p / q, (p / q) ** 2])

    def error(self, scheme, steps):
        """Largest error at the end after equal steps."""
        stepper = self.stepper(scheme)
        state = stepper.state
        for _ in range(steps):
            state, _ = stepper.step(state, self.end / steps)
        return np.abs(state[0] - self.exact(self.end)).max()


def orders(errors):
    """Observed orders from errors at halved steps."""
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
