"""Collapses that take less time than the clock can show: passed at any rtol, or explained."""

import numpy as np
import pytest
from scipy.integrate import quad

import meanfield as mf
from meanfield.dynamics.motion import Failure, motion_for


@pytest.mark.long
@pytest.mark.parametrize("rtol", [1e-8])
def test_equiangular_tokens_collapse_within_one_ulp_of_the_clock(rtol):
    """z' = 2 n / (e^(beta (1 - rho)) + n - 1), so that t - z/2 becomes int (1/z' - 1/2) dz."""
    beta, n, end = 300.0, 32, 1e130

    def wait(z):
        gap = n / (np.exp(z) + n - 1)
        return (np.expm1(beta * gap)) / (2 * n)

    expected = quad(wait, 0, 9, epsrel=1e-12, limit=200, points=[1e-3, 1e-2, 0.1, 1])[0]
    model, state = mf.Transformer(mf.SA(beta)), mf.Equiangular(n, 0.0)
    run = mf.solve(model, state, (0, end), t_eval=[end], rtol=rtol)
    assert run.status == "finished"
    assert end - run.final.logit / 2 == pytest.approx(expected, rel=max(10 * rtol, 1e-11))


@pytest.mark.long
@pytest.mark.parametrize(
    ("drift", "rtol"), [(mf.USA(600.0), 1e-8), (mf.SA(600.0), 1e-10)], ids=["USA", "SA"]
)
def test_two_tokens_merge_within_one_ulp_of_the_clock(drift, rtol):
    """phi' = -sin(phi) w(phi): e^(beta cos phi), under SA over (e^beta + e^(beta cos phi))/2."""
    b, phi = 600.0, 1.5

    def wait(a):
        if isinstance(drift, mf.USA):
            return np.exp(-b * np.cos(a)) / np.sin(a)
        return (np.exp(b * (1 - np.cos(a))) + 1) / 2 / np.sin(a)

    expected = quad(wait, 1e-8, phi, epsrel=1e-10, limit=500, points=[1e-4, 0.1, 1.4, 1.49])[0]
    options = {"t_eval": [1e300], "merge": 1e-8, "rtol": rtol}
    run = mf.solve(mf.Transformer(drift), mf.Tokens.on_circle([0, phi]), (0, 1e300), **options)
    ((t, left),) = run.stats["merges"]
    assert run.status == "finished" and left == 1
    assert t == pytest.approx(expected, rel=100 * rtol)


def failed(model, tokens, end, **options):
    """The message of a run whose steps become too small."""
    with pytest.warns(mf.UnresolvedWarning):
        run = mf.solve(model, tokens, (0, end), t_eval=[end], **options)
    assert run.status == "step_too_small"
    return run, run.message


def test_where_the_clock_is_to_blame_it_is_named_and_the_advice_works():
    """Without merge= tokens that collapsed attract each other at the rate e^beta."""
    model, tokens = mf.Transformer(mf.USA(200.0)), mf.Tokens.on_circle([0, 1.0])
    _, message = failed(model, tokens, 1.0)
    assert "the clock stands still there, where numbers are" in message
    assert message.endswith("use merge=, of replicas one by one.") and "dt=" not in message
    assert mf.solve(model, tokens, (0, 1), t_eval=[1.0], merge=1e-8).success


@pytest.mark.long
def test_where_tokens_cannot_merge_a_run_from_the_last_state_is_advised():
    """Turning at the rate 1e30, for ever."""
    turn = 1e30 * np.array([[0.0, -1.0], [1.0, 0.0]])
    model = mf.Transformer(mf.Attention(V=mf.PerLayer([np.eye(2), turn], duration=1.0)))
    run, message = failed(model, mf.Tokens.on_circle([0, 1.0]), 2.0, merge=1e-8)
    assert run.t[-1] == 1 and "merge=" not in message and "dt=" not in message
    step = float(message.split("in steps of ")[1].split(".")[0])
    now = mf.Transformer(mf.Attention(V=turn))
    assert mf.solve(now, run.final, (0, 10 * step), merge=1e-8).success


TWO = mf.Tokens.on_circle([0, 1.0])
CAUSAL = mf.Attention(causal=True)


@pytest.mark.parametrize(
    ("drift", "state", "merging", "advised"),
    [
        (mf.SA(4.0), TWO, False, True),
        (mf.SA(4.0), TWO, True, False),
        (mf.SA(4.0), TWO.gram(), False, False),
        (mf.Hardmax(), TWO, False, False),
        (CAUSAL, TWO, False, False),
    ],
)
def test_merging_is_advised_where_tokens_can_merge(drift, state, merging, advised):
    motion = motion_for(state)(mf.Transformer(drift), state)
    at = Failure(1.0, 1.0, motion.coordinates(state), 1e-20, True, None, 1e-8, {}, merging)
    why = motion.failure("step_too_small", at)
    assert "the clock stands still" in why and ("merge=" in why) == advised


@pytest.mark.long
def test_where_velocities_have_no_limit_the_clock_is_not_to_blame():
    model = mf.Transformer(mf.Attention(V=-1.0), normalisation=mf.PreLN())
    _, message = failed(model, mf.Tokens.uniform(6, 3, rng=0), 10.0)
    assert "where a radius falls to 0" in message


@pytest.mark.long
def test_tokens_that_go_to_infinity_are_not_advised_to_merge():
    """x' = e^(x^2) x: at 1/(2 e^(x^2) x^2) from the blow-up, which is below one ulp of t."""
    x = mf.Tokens([[1.0], [1.0]], on_sphere=False)
    model = mf.Transformer(mf.Attention(weights=mf.Linear()))
    _, message = failed(model, x, 1.0)
    assert "infinity" in message and "merge" not in message


def test_a_slope_that_is_infinite_where_tokens_meet_is_named():
    class Pole(mf.ZonalDrift):
        def slope(self, t):
            with np.errstate(divide="ignore"):
                return 1 / (1 - t)

    _, message = failed(mf.Transformer(Pole()), mf.Tokens.on_circle([0, 0.3, 1.0]), 1.0)
    assert "the slope of Pole() is not finite at t = 1" in message
