"""What a user could have written: nothing but `numpy` and `meanfield` is imported.

The classes of docs/howto/own_drift.md. Each is all there is to its kind.
"""

import numpy as np

import meanfield as mf
from meanfield.plotting import figure
from meanfield.steppers import Scheme, Term


class LinearAttention(mf.ZonalDrift):
    """v(x) = P_x int (1 + b <x, y>) y dmu(y).

    Parameters
    ----------
    b : float or array
        Slope of the weight.
    """

    b: float

    def slope(self, t):
        return 1 + self.b * t


class SinkAttention(mf.ZonalDrift):
    """Softmax with a sink: W' = exp(beta t), Z = sink + exp(beta t).

    Parameters
    ----------
    beta : float or array
        Inverse temperature.
    sink : float or array
        Weight of what is attended to instead of tokens.
    """

    beta: float
    sink: float = 1.0

    def slope(self, t):
        return np.exp(self.beta * t)

    def weight(self, t):
        return self.sink + np.exp(self.beta * t)


class Rectified(mf.Weights):
    """k(x, y) = max(beta <Qx, Ky> + bias, 0)^2, normalised.

    Parameters
    ----------
    bias : float
        Added to the logits.
    """

    bias: float = 1.0

    def of_logits(self, logits, squares):
        return np.maximum(logits + self.bias, 0) ** 2


class Warmup(mf.Normalisation):
    """theta' = (1 - exp(-t / time)) P A: attention is switched on slowly.

    Parameters
    ----------
    time : float
        Of the switch.
    """

    time: float

    def update(self, t, A, size=0.0):
        return -np.expm1(-t / self.time) * A


class Kicks(mf.Noise):
    """A turn by a normal angle of variance 2 s in the plane of the first two coordinates."""

    def increments_shape(self, replicas, n, d):
        return (replicas, n, 1)

    def move(self, x, s, increments):
        angle = np.sqrt(2 * s)[:, None] * increments[..., 0]
        moved = x.copy()
        moved[..., 0] = np.cos(angle) * x[..., 0] - np.sin(angle) * x[..., 1]
        moved[..., 1] = np.sin(angle) * x[..., 0] + np.cos(angle) * x[..., 1]
        return moved / np.linalg.norm(moved, axis=-1, keepdims=True)


class AngleTokens(mf.State):
    """Tokens of the circle, held as angles in radians.

    Parameters
    ----------
    theta : array, (n,)
        The angles.
    """

    def __init__(self, theta: np.ndarray):
        self.theta = np.array(theta, dtype=float)

    def arrays(self):
        return {"theta": (("token",), self.theta)}


class AngleTokensMotion(mf.Motion, moves=AngleTokens):
    """theta_i' = -sum_j W'(cos g_ij) sin g_ij / sum_j Z(cos g_ij), g_ij = theta_i - theta_j."""

    def coordinates(self, state):
        return state.theta

    def state_of(self, y):
        return AngleTokens(y)

    def velocity(self, y, t):
        drift, gaps = self.model.drift.as_zonal(), y[:, None] - y
        pull = (drift.slope(np.cos(gaps)) * np.sin(gaps)).mean(axis=1)
        return -pull / drift.weight(np.cos(gaps)).mean(axis=1)

    def measure(self, state, t=0.0):
        return {"order_parameter": np.abs(np.exp(1j * state.theta).mean())}


@figure("rose", AngleTokens, panels=(3.0, 3.0))
def rose(panels, *, petals=8):
    """Angles at the last time, in as many petals."""
    panels.axes[0].hist(np.mod(panels.solution.final.theta, 2 * np.pi), bins=petals)


ETD2 = Scheme(
    name="ETD2",
    order=2,
    estimate_order=1,
    nodes=(1.0,),
    stages=({0: [Term(1, 1, 1)]},),
    solution={0: [Term(1, 1, 1), Term(-1, 2, 1)], 1: [Term(1, 2, 1)]},
    estimate={0: [Term(1, 2, 1)], 1: [Term(-1, 2, 1)]},
    reference="Cox and Matthews, J. Comput. Phys. 176 (2002), equation (22)",
)
