"""States of one's own: what is measured on them, and what is told where a class is wrong."""

import numpy as np
import pytest

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


class Wrong(Angles):
    """Its velocity is what a function makes of the angles."""


class WrongMotion(AnglesMotion, moves=Wrong):
    f = staticmethod(lambda y: y)

    def velocity(self, y, t):
        return self.f(y)


@pytest.mark.parametrize(
    "f", [lambda y: y[:1], lambda y: 1.0, lambda y: None, lambda y: 1j * y, lambda y: "a"]
)
def test_a_velocity_has_the_shape_of_the_coordinates(monkeypatch, f):
    monkeypatch.setattr(WrongMotion, "f", staticmethod(f))
    with pytest.raises((TypeError, ValueError), match=r"WrongMotion\.velocity must .*shape \(3,\)"):
        mf.solve(TOKENS, Wrong([0.0, 1.0, 3.0]), **SHORT)


@pytest.mark.parametrize(
    ("f", "start", "match"),
    [
        (lambda y: y * np.nan, [0.0, 1.0], r"look at what WrongMotion\.velocity returns"),
        (lambda y: -y, [0.0, np.nan], "nor are the coordinates of the Wrong"),
    ],
)
def test_velocities_that_are_not_finite_are_told_by_what_made_them(monkeypatch, f, start, match):
    monkeypatch.setattr(WrongMotion, "f", staticmethod(f))
    with pytest.raises(mf.MeanfieldError, match=match):
        mf.solve(TOKENS, Wrong(start), **SHORT)


@pytest.mark.parametrize(
    "arrays",
    [
        lambda self: {"angles": (("token",), self.theta)},
        lambda self: {"theta": self.theta},
        lambda self: {"theta": ((), self.theta)},
        lambda self: {"theta": (("token",), self.theta + 1)},
        lambda self: {},
        lambda self: None,
    ],
)
def test_arrays_that_do_not_give_the_state_back_are_refused_before_the_run(monkeypatch, arrays):
    monkeypatch.setattr(Wrong, "arrays", arrays, raising=False)
    match = r"Wrong\.arrays\(\) must return .* \(axes, values\).*theta"
    with pytest.raises(TypeError, match=match):
        mf.solve(TOKENS, Wrong([0.0, 1.0, 3.0]), **SHORT)


def test_a_movie_without_observables_is_refused(monkeypatch, tmp_path):
    run = mf.solve(TOKENS, Angles([0.0, 1.0, 3.0]), **SHORT)
    assert run.animate(tmp_path / "run.gif").exists()
    monkeypatch.setattr(AnglesMotion, "measure", mf.Motion.measure)
    run = mf.solve(TOKENS, Angles([0.0, 1.0, 3.0]), **SHORT)
    with pytest.raises(ValueError, match="observe="):
        run.animate(tmp_path / "none.gif")
