"""Blow-up beside large means and variances, its power, and growth that is none."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.solving.policies import BlowUp

ONE = np.diag([0.0, 1.0])  # as Q: S22' = 2 S22^2, T = 1/2 from S22 = 1, whatever the rest is
PLANE = np.eye(2)


def model(*matrices, **options):
    return mf.Transformer(mf.Attention(*matrices, **options))


def more(*values):
    """Values for `make test-long`."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


@pytest.mark.repeats
@pytest.mark.parametrize("rtol", [1e-8, 1e-11])
@pytest.mark.parametrize("m", [0.0, 1e4, 1e100, *more(1e2, 1e5, 1e6, 1e7, 1e10, 1e30)])
def test_a_large_mean_hides_no_blow_up(m, rtol):
    run = mf.solve(model(ONE), mf.Gaussian([m, 0], PLANE), (0, 1), rtol=rtol)
    assert run.status == "blow-up"
    assert run.stats["blow_up_time"] == pytest.approx(0.5, rel=rtol)
    assert run.stats["blow_up_power"] == pytest.approx(1, abs=1e-3)


@pytest.mark.repeats
@pytest.mark.parametrize("rtol", [1e-8, 1e-11])
@pytest.mark.parametrize("M", [1e4, 1e14, 1e100, *more(1e2, 1e8, 1e10, 1e30)])
def test_a_large_variance_hides_no_blow_up(M, rtol):
    """Nor does it take the digits of the small one."""
    law, options = mf.Gaussian([0, 0], np.diag([M, 1.0])), {"rtol": rtol}
    run = mf.solve(model(ONE), law, (0, 0.5001), **options)
    assert run.status == "blow-up"
    assert run.stats["blow_up_time"] == pytest.approx(0.5, rel=rtol)
    assert run.stats["blow_up_power"] == pytest.approx(1, abs=1e-3)
    before = mf.solve(model(ONE), law, (0, 0.49), t_eval=[0.49], **options).final
    np.testing.assert_allclose(np.diag(before.cov), [M, 50.0], rtol=50 * rtol)


@pytest.mark.long
def test_a_mean_that_grows_exponentially_hides_no_blow_up():
    """|a| = e^500 at T = 500."""
    run = mf.solve(model(1e-3 * ONE), mf.Gaussian([1, 0], PLANE), (0, 1000))
    assert run.status == "blow-up"
    assert run.stats["blow_up_time"] == pytest.approx(500, rel=1e-8)


@pytest.mark.parametrize("M", [1e2, 1e6])
def test_the_power_across_axes_is_that_of_the_law(M):
    """A large variance along w, a blow-up across it, neither along a coordinate."""
    w, u = np.array([0.6, 0.8]), np.array([-0.8, 0.6])
    law = mf.Gaussian([0, 0], M * np.outer(w, w) + np.outer(u, u))
    run = mf.solve(model(np.outer(u, u)), law, (0, 1))
    assert run.stats["blow_up_time"] == pytest.approx(0.5, rel=max(1e-8, 1e-15 * M))
    assert run.stats["blow_up_power"] == pytest.approx(1, abs=1e-3)


@pytest.mark.repeats
@pytest.mark.parametrize("m", [1.0, 1e6, 1e30])
def test_the_mean_takes_part_under_linear_weights(m):
    """P = S + a a^T has P22' = 2 P22^2, from 2; a Dirac has a2' = a2^3."""
    linear = model(ONE, weights=mf.Linear())
    run = mf.solve(linear, mf.Gaussian([m, 1], PLANE), (0, 1))
    assert run.stats["blow_up_time"] == pytest.approx(0.25, rel=1e-8)
    run = mf.solve(linear, mf.Gaussian([m, 1], 0 * PLANE), (0, 1))
    assert run.stats["blow_up_time"] == pytest.approx(0.5, rel=1e-8)
    assert run.stats["blow_up_power"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("kind", [mf.L2(), mf.Sinkhorn()], ids=repr)
def test_a_slow_start_of_exponential_growth_is_no_blow_up(kind):
    """s' = 4 s^2 / (1 + 2 s) under L2: like a blow-up at 1 / (4 s) until s is of the size 1."""

    def wide(_t, state):
        return state.cov[0, 0] - 1e20

    wide.terminal = True
    run = mf.solve(model(weights=kind), mf.Gaussian([0.0], [[1e-13]]), (0, 1e13), events=[wide])
    assert run.status == "event" and run.stats["blow_up_time"] is None


def test_l2_weights_blow_up_where_the_key_is_singular():
    """K = e1, Q = e2, V = e2 e2^T: S12' = S12^2 / 2 with beta = 1/2, and S22 like its square."""
    attention = model([[0.0, 1.0]], [[1.0, 0.0]], np.diag([0.0, 1.0]), beta=0.5, weights=mf.L2())
    run = mf.solve(attention, mf.Gaussian([0, 0], [[1, 0.5], [0.5, 1]]), (0, 8))
    assert run.stats["blow_up_time"] == pytest.approx(4, rel=1e-8)
    assert run.stats["blow_up_power"] == pytest.approx(2, abs=1e-3)


@pytest.mark.long
def test_a_law_that_shrinks_keeps_its_digits():
    """s = 1 / (1 / s0 + 2 t) at t = 1e30, and then it grows: no length at the start counts."""
    run = mf.solve(model(-1.0), mf.Gaussian([0, 0], PLANE), (0, 1e30), t_eval=[1e30])
    np.testing.assert_allclose(run.final.variances, 0.5e-30, rtol=1e-7)


@pytest.mark.bits
@pytest.mark.repeats
@pytest.mark.parametrize("before", [2, 1, 5])
def test_a_run_goes_on_to_its_blow_up_bit_for_bit(before, tmp_path):
    law = mf.Gaussian([0.3, 0], PLANE)
    whole = mf.solve(model(), law, (0, 1))
    attempts = whole.stats["steps"] + whole.stats["rejected"]
    most, options = attempts - before, {"checkpoint": tmp_path / "run"}
    assert mf.solve(model(), law, (0, 1), max_steps=most, **options).status == "max_steps"
    parts = mf.solve(model(), law, (0, 1), resume=True, **options)
    assert parts.status == "blow-up"
    for name in ("blow_up_time", "blow_up_power", "steps"):
        assert parts.stats[name] == whole.stats[name]


def looks(rates, steps):
    """The first time at which a blow-up is seen in these rates, and what is seen."""
    seen, t = BlowUp(), 0.0
    for rate, step in zip(rates, steps, strict=True):
        t += step
        if seen.look(t, step, rate):
            return seen
        copy = BlowUp()
        copy.restore(seen.snapshot())
        seen = copy
    return None


@pytest.mark.parametrize("p", [0.1, 1.0, 7.3])
def test_the_rates_of_a_power_show_it(p):
    left = np.geomspace(1, 1e-13, 150)
    seen = looks(p / left[1:], -np.diff(left))
    assert seen.elapsed == pytest.approx(1, abs=1e-13) and seen.power == pytest.approx(p, rel=1e-9)


def test_a_power_near_zero_is_a_fast_exponential():
    left = np.geomspace(1, 1e-13, 150)
    assert looks(0.005 / left[1:], -np.diff(left)) is None


@pytest.mark.parametrize("swing", [0.1, 1.5])
def test_rates_that_swing_have_a_time_but_no_power(swing):
    left = np.geomspace(1, 1e-18, 400)
    seen = looks((1 + swing * np.sin(2 * np.log(left[1:]))) / left[1:], -np.diff(left))
    assert seen.elapsed == pytest.approx(1, abs=1e-12) and seen.power is None


def test_a_rate_that_jumps_or_is_constant_is_none():
    steps = np.full(400, 1e-13)
    steps[0] = 1.0
    for rates in (np.full(400, 1e12), np.where(np.arange(400) < 200, 1.0, 1e13)):
        assert looks(rates, steps) is None
