"""States of one's own: what is measured on them, and what is told where a class is wrong."""

import numpy as np

import meanfield as mf

TOKENS = mf.Transformer(mf.SA(1.0))
SHORT = {"t_span": (0, 0.2), "t_eval": [0.1, 0.2]}


class Angles(mf.State):
    """Tokens of the circle, held as angles."""

    def __init__(self, theta: np.ndarray):
        self.theta = np.array(theta, dtype=float)

    def arrays(self):
        return {"theta": (("token",), self.theta)}


class AnglesMotion(mf.Motion, moves=Angles):
    def coordinates(self, state):
        return state.theta

    def state_of(self, y):
        return Angles(y)

    def velocity(self, y, t):
        return np.sin(y.mean() - y)

    def measure(self, state, t=0.0):
        return {"mean": state.theta.mean(), "squares": state.theta**2, "all": np.eye(2)}


def test_a_motion_of_ones_own_may_measure_arrays(tmp_path):
    run = mf.solve(TOKENS, Angles([0.0, 1.0, 3.0]), **SHORT)
    again = mf.load(run.save(tmp_path / "run.nc"))
    for found in (run.observables, again.observables):
        assert found["mean"].dims == ("t",) and found["all"].dims == ("t", "all_0", "all_1")
        assert found["squares"].dims == ("t", "squares_0")
        np.testing.assert_array_equal(found["squares"][1], run.final.theta**2)
    assert run.plot().axes
