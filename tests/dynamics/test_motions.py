"""States of a user's own: a class and a motion of it are all that `solve` needs."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics.motion import motion_for
from meanfield.dynamics.observables import measure
from meanfield.dynamics.tokens import TokenMotion
from meanfield.steppers import Krogstad, Layers

THETA = np.array([0.0, 0.7, 1.9, 2.4, 4.0])
MODEL = mf.Transformer(mf.USA(2.0))


class HeldAngles(mf.State):
    """Tokens of the circle by their angles."""

    def __init__(self, theta: np.ndarray):
        self.theta = np.array(theta, dtype=float)

    def arrays(self):
        return {"theta": (("token",), self.theta)}


class AngleMotion(mf.Motion, moves=HeldAngles):
    """theta_i' = -(1/n) sum_j W'(cos(theta_i - theta_j)) sin(theta_i - theta_j)."""

    def coordinates(self, state):
        return state.theta

    def state_of(self, y):
        return HeldAngles(y)

    def velocity(self, y, t):
        gaps = y[:, None] - y
        return -(self.model.drift.slope(np.cos(gaps)) * np.sin(gaps)).mean(axis=1)

    def measure(self, state, t=0.0):
        return {"order_parameter": np.abs(np.exp(1j * state.theta).mean())}


def order(_t, state):
    """The event: the order parameter passes 0.7."""
    points = state.theta if isinstance(state, HeldAngles) else np.arctan2(*state.x.T[::-1])
    return np.abs(np.exp(1j * points).mean()) - 0.7


def test_angles_move_as_tokens_do():
    run = mf.solve(MODEL, HeldAngles(THETA), (0, 2), rtol=1e-10, events=order)
    tokens = mf.solve(MODEL, mf.Tokens.on_circle(THETA), (0, 2), rtol=1e-10, events=order)
    assert run.status == "finished" and len(run) == 101 and run.stats["steps"] < 60
    for one, other in zip(run, tokens, strict=True):
        found = np.stack([np.cos(one.theta), np.sin(one.theta)], axis=1)
        np.testing.assert_allclose(found, other.x, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.t_events[0], tokens.t_events[0], rtol=1e-9)
    np.testing.assert_allclose(
        run.observables["order_parameter"], tokens.observables["order_parameter"], atol=1e-9
    )


@pytest.mark.bits
def test_their_runs_are_resumed_to_the_last_bit(tmp_path):
    whole = mf.solve(MODEL, HeldAngles(THETA), (0, 2), events=order)
    options = {"events": order, "checkpoint": tmp_path / "run"}
    for most in (3, 4, 9):
        part = mf.solve(
            MODEL, HeldAngles(THETA), (0, 2), max_steps=most, resume=most > 3, **options
        )
        assert part.status == "max_steps"
    parts = mf.solve(MODEL, HeldAngles(THETA), (0, 2), resume=True, **options)
    for one, other in zip(whole, parts, strict=True):
        assert one.theta.tobytes() == other.theta.tobytes()
    assert parts.stats["steps"] == whole.stats["steps"]
    np.testing.assert_array_equal(parts.t_events[0], whole.t_events[0])
    with pytest.raises(mf.CheckpointError, match="another run"):
        mf.solve(MODEL, HeldAngles(THETA + 0.1), (0, 2), resume=True, **options)


@pytest.mark.parametrize(
    ("model", "options", "error", "match"),
    [
        (mf.Transformer(mf.USA(2.0), 3.0), {}, mf.MeanfieldError, "noise.*Tokens"),
        (mf.Transformer(mf.USA([1.0, 2.0])), {}, ValueError, r"ensemble \(2,\)"),
        (MODEL, {"merge": 1e-3}, ValueError, "merge is for Tokens; HeldAngles"),
        (MODEL, {"engine": mf.engines.Direct()}, ValueError, "engine is for Tokens; HeldAngles"),
        (MODEL, {"rng": 0}, ValueError, "rng is for Tokens and TorusTokens; HeldAngles"),
        (MODEL, {"max_degree": 8}, ValueError, "max_degree is for Density and Indexed; HeldAngles"),
        (MODEL, {"scheme": Krogstad}, ValueError, "HeldAngles .*DormandPrince; got Krogstad"),
        (MODEL, {"scheme": Layers, "dt": 0.5}, ValueError, "got Layers"),
    ],
)
def test_what_does_not_apply_is_refused(model, options, error, match):
    with pytest.raises(error, match=match):
        mf.solve(model, HeldAngles(THETA), (0, 2), **options)


def test_states_derived_from_a_known_one_move_as_it_does():
    class MoreAngles(HeldAngles):
        pass

    assert motion_for(MoreAngles(THETA)) is AngleMotion
    assert measure(MODEL, MoreAngles(THETA))["order_parameter"].shape == ()


def test_a_state_that_nobody_moves_is_told_which_are():
    with pytest.raises(TypeError, match=r"Tokens\(x\), .*got dict"):
        mf.solve(MODEL, {"theta": THETA}, (0, 1))
    for angles in ([0.1, 0.2], np.array([0.1, 0.2])):
        with pytest.raises(TypeError, match=r"mf[.]Tokens[.]on_circle\(angles\)"):
            mf.solve(MODEL, angles, (0, 1))
    with pytest.raises(TypeError, match=r"mf[.]Tokens\(x\) makes one"):
        mf.solve(MODEL, [[1, 0], [0, 1]], (0, 1))
    with pytest.raises(TypeError, match=r"mf.measure\(model, state\).*got model = HeldAngles"):
        measure(HeldAngles(THETA), MODEL)


def test_one_state_has_one_motion():
    with pytest.raises(TypeError, match=r"HeldAngles is moved by .*AngleMotion already"):

        class Other(mf.Motion, moves=HeldAngles):
            pass


def test_velocities_that_are_not_finite_are_told_at_the_start():
    with pytest.raises(mf.MeanfieldError, match="not finite at the start"):
        mf.solve(MODEL, HeldAngles([0.0, np.nan]), (0, 1))


class Spring(mf.Field):
    """v(x) = -2 x, whose rate is known off the sphere too."""

    def known_rate(self, on_sphere):
        return True

    def rate(self, t=0.0):
        return np.array(2.0)


@pytest.mark.parametrize(("on_sphere", "directions"), [(True, 2), (False, 3)])
def test_default_steps_count_the_directions_of_the_noise(on_sphere, directions):
    """Noise moves a token in d - 1 directions on the sphere, in d of R^d."""
    model = mf.Transformer(Spring(lambda x: -2 * x), kappa=4.0)
    motion = TokenMotion(model, mf.Tokens(np.eye(3), on_sphere=on_sphere))
    assert motion.noisy_step(0.0) == pytest.approx(0.05 / (2 + directions / 4), rel=1e-15)
