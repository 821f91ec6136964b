"""How a run can end: steady, by the callback, by Ctrl-C, after max_steps."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(32)
KURAMOTO = mf.Transformer(mf.Kuramoto(), 3.0)


def bumps():
    """A density without any symmetry."""
    return CIRCLE.density(
        lambda x: 1 + 0.3 * np.cos(x) + 0.1 * np.cos(2 * x) + 0.05 * np.sin(3 * x)
    )


# Steady ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-10])
def test_steady_is_reached_at_any_rtol(rtol):
    """A steady state solves the scheme exactly, so nothing but rounding may keep it moving."""
    run = mf.solve(mf.Transformer(mf.USA(1.0), 5.0), bumps(), (0, 500), rtol=rtol, until="steady")
    assert run.status == "steady"


def test_a_steady_run_ends_where_nothing_moves_any_more():
    run = mf.solve(KURAMOTO, bumps(), (0, 500), rtol=1e-12, until="steady", steady_tolerance=1e-6)
    assert run.status == "steady" and run.success and run.t[-1] < 100
    assert 1e-7 < run.stats["rate_of_change"] <= 1e-6
    assert f"Steady at t = {run.t[-1]:g}" in run.message
    assert (np.diff(run.t) > 0).all()


def test_a_smaller_tolerance_waits_longer():
    """The gap at kappa = 3 is 0.3604, so four digits more take log(1e4)/0.3604 = 25.6."""
    ends = []
    for tolerance in (1e-4, 1e-8):
        options = {"rtol": 1e-12, "until": "steady", "steady_tolerance": tolerance}
        ends.append(mf.solve(KURAMOTO, bumps(), (0, 500), **options).t[-1])
    assert ends[1] - ends[0] == pytest.approx(np.log(1e4) / 0.360444151, rel=0.01)


def test_a_run_that_is_not_steady_in_time_is_finished():
    run = mf.solve(KURAMOTO, bumps(), (0, 1), until="steady")
    assert run.status == "finished" and run.t[-1] == 1


# Callback ----------------------------------------------------------------------------------


def test_the_callback_sees_every_step_and_every_output():
    seen = []
    run = mf.solve(KURAMOTO, bumps(), (0, 1), callback=lambda t, d: seen.append((t, d)))
    times = [t for t, _ in seen]
    within = 99  # outputs that are at the end of no step
    assert len(seen) == run.stats["steps"] + within and times == sorted(set(times))
    assert times[-1] == 1
    assert set(run.t[1:]) <= set(times)
    np.testing.assert_array_equal(seen[-1][1].coefficients, run.final.coefficients)


def test_the_callback_can_end_the_run():
    run = mf.solve(KURAMOTO, bumps(), (0, 10), callback=lambda t, _density: t > 0.35)
    assert run.status == "stopped" and run.success
    assert 0.35 < run.t[-1] < 0.5 and run.t[-2] == pytest.approx(0.3)
    assert "callback" in run.message


@pytest.mark.parametrize("answer", [None, False, np.False_], ids=repr)
def test_none_and_false_let_it_go_on(answer):
    run = mf.solve(KURAMOTO, bumps(), (0, 0.1), callback=lambda _t, _density: answer)
    assert run.status == "finished"


def test_a_comparison_of_numpy_ends_it_too():
    run = mf.solve(KURAMOTO, bumps(), (0, 10), callback=lambda t, _density: np.float64(t) > 0.35)
    assert run.status == "stopped" and run.t[-1] < 0.5


@pytest.mark.parametrize("answer", [1, "yes", np.array([True, False])], ids=repr)
def test_another_answer_of_the_callback_is_refused(answer):
    with pytest.raises(TypeError, match=r"callback returns True .* None"):
        mf.solve(KURAMOTO, bumps(), (0, 0.1), callback=lambda _t, _density: answer)


def test_an_error_in_the_callback_comes_out_as_it_is():
    def broken(t, _density):
        raise ZeroDivisionError(f"at {t}")

    with pytest.raises(ZeroDivisionError):
        mf.solve(KURAMOTO, bumps(), (0, 1), callback=broken)


# Ctrl-C ------------------------------------------------------------------------------------


def press_ctrl_c():
    """What the terminal does."""
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_returns_the_states_so_far():
    before = signal.getsignal(signal.SIGINT)

    def interrupt(t, _density):
        if t > 0.55:
            press_ctrl_c()

    run = mf.solve(KURAMOTO, bumps(), (0, 10), callback=interrupt)
    assert run.status == "interrupted" and not run.success and run.resolved
    assert "Interrupted at t = " in run.message and "NOT A COMPLETE RESULT" in repr(run)
    np.testing.assert_allclose(run.t[:-1], np.arange(6) / 10)
    assert 0.55 < run.t[-1] < 0.7
    whole = mf.solve(KURAMOTO, bumps(), (0, 10))
    np.testing.assert_array_equal(run[5].coefficients, whole[5].coefficients)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_is_noticed_by_the_compiled_loop():
    """Nobody looks on, so the loop returns to Python only now and then: within a second."""
    timer = threading.Timer(0.3, press_ctrl_c)
    timer.start()
    start = time.perf_counter()
    run = mf.solve(mf.Transformer(mf.USA(2.0), 3.0), bumps(), (0, 1e6), t_eval=[0, 1e6])
    assert run.status == "interrupted" and run.t.size == 2
    assert time.perf_counter() - start < 1.3


def test_a_second_ctrl_c_does_not_wait():
    before = signal.getsignal(signal.SIGINT)

    def interrupt(_t, _density):
        press_ctrl_c()
        press_ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        mf.solve(KURAMOTO, bumps(), (0, 10), callback=interrupt)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.bits
def test_other_threads_can_solve_as_well():
    """Signals belong to the main thread: elsewhere a run neither catches nor loses them."""
    found = []
    thread = threading.Thread(
        target=lambda: found.append(mf.solve(KURAMOTO, bumps(), (0, 1), t_eval=[1]).final)
    )
    thread.start()
    thread.join()
    expected = mf.solve(KURAMOTO, bumps(), (0, 1), t_eval=[1]).final
    np.testing.assert_array_equal(found[0].coefficients, expected.coefficients)


# Limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 10, 60])
def test_no_more_than_max_steps_are_attempted(most):
    run = mf.solve(KURAMOTO, bumps(), (0, 50), t_eval=[0, 50], max_steps=most)
    assert run.status == "max_steps" and not run.success
    assert run.stats["steps"] + run.stats["rejected"] == most
    assert "max_steps" in run.message and 0 < run.t[-1] < 50


def test_exactly_enough_steps_are_enough():
    needed = mf.solve(KURAMOTO, bumps(), (0, 1)).stats["steps"]
    assert mf.solve(KURAMOTO, bumps(), (0, 1), max_steps=needed).status == "finished"


def test_a_fixed_step_that_is_too_long_says_so():
    """An explosion is reported with a state that is still finite."""
    with pytest.warns(mf.UnresolvedWarning):
        run = mf.solve(mf.Transformer(mf.USA(20.0), 1.0), bumps(), (0, 100), dt=1.0, rtol=1e-3)
    assert run.status in ("not_finite", "unresolved") and not run.success
    assert np.isfinite(run.final.coefficients).all()


def test_a_step_that_leads_inner_products_beyond_1_says_so():
    """One step of 30 enlarges a distance that decays."""
    gram = mf.Gram([[1, 1 - 1e-12], [1 - 1e-12, 1]])
    with pytest.warns(mf.UnresolvedWarning):
        run = mf.solve(mf.Transformer(mf.USA(0.5)), gram, (0, 30), dt=30.0)
    assert run.status == "not_finite" and np.isfinite(run.final.G).all()


def test_a_drift_however_strong_is_followed_until_the_density_is_not_resolved():
    with pytest.warns(mf.UnresolvedWarning, match="max_degree = 256"):
        run = mf.solve(mf.Transformer(mf.USA(690.0)), bumps(), (0, 1), max_degree=256)
    assert run.status == "unresolved" and 0 < run.t[-1] < 1e-290
