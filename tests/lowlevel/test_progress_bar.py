"""The progress bar: what it says, when it is silent, and that it changes nothing."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

import meanfield as mf
from meanfield.lowlevel.progress import Progress, RemainingTime, stopped_when

KURAMOTO = mf.Transformer(mf.Kuramoto(), 5.0)
START = mf.Circle(16).von_mises(0.3, 1.0)


def test_a_progress_bar_shows_time_and_degree_and_changes_nothing(capfd):
    plain = mf.solve(KURAMOTO, START, (0, 2), progress=False).final
    assert capfd.readouterr().err == ""
    shown = mf.solve(KURAMOTO, START, (0, 2), progress=True).final
    written = capfd.readouterr().err
    assert "100%" in written and "degree 16" in written
    np.testing.assert_array_equal(shown.coefficients, plain.coefficients)


def compiled_on_the_way():
    """A callback that is compiled when it is first called."""
    compiled = njit(lambda t: t)

    def callback(t, _state):
        compiled(t)

    return callback


def test_it_says_that_something_is_being_compiled(capfd):
    run = mf.solve(KURAMOTO, START, (0, 2), progress=True, callback=compiled_on_the_way())
    lines = capfd.readouterr().err.replace("\n", "\r").split("\r")
    told = [i for i, line in enumerate(lines) if "compiling <lambda> ..." in line]
    assert run.success and told and "100%" in lines[-2] + lines[-1]
    assert not any("compiling" in line for line in lines[told[-1] + 1 :])


def test_the_time_left_does_not_count_compilation(capfd):
    """A second of compilation before a run of milliseconds would seem to be left a hundredfold."""

    with Progress("solve", True) as bar:
        bar._show_compilation("something")
        time.sleep(1.0)
        bar._show_compilation(None)
        compiled = time.perf_counter()
        for part in np.linspace(0.001, 1, 40):
            time.sleep(0.003)
            bar.show(part, "going on")
            elapsed = bar._bar.format_dict["elapsed"]
            assert elapsed < time.perf_counter() - compiled + 0.5, part
    lines = capfd.readouterr().err.split("\r")
    assert not any("<" in line for line in lines if " 0%" in line or " 1%" in line)


def told(durations, fractions=None):
    """The end of each step, the estimates of what is left then, and the truth."""
    end = np.cumsum(durations)
    fractions = np.arange(1, end.size + 1) / end.size if fractions is None else fractions
    left = RemainingTime(0.0, 100.0)
    found = [left.after(f, 100.0 + time) for f, time in zip(fractions, end, strict=True)]
    return end, np.array([np.nan if one is None else one for one in found]), end[-1] - end


def test_the_time_left_of_equal_steps_is_exact_after_two_per_cent():
    _, found, true = told(np.full(1000, 0.3))
    assert np.isnan(found[:19]).all()
    np.testing.assert_allclose(found[19:], true[19:], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("slow", [0.02, 0.05, 0.1])
def test_a_task_whose_first_steps_are_short_does_not_seem_long(slow):
    """Its first 0.5% take a part of the time; the mean speed then foretells 2 to 6 times too much.

    At 2% of the task, that is. Nothing is said before the speed is known.
    """
    fractions = np.append(np.linspace(0.005 / 200, 0.005, 200), np.linspace(0.0055, 1, 1990))
    durations = np.append(np.full(200, 30 * slow / 200), np.full(1990, 30 * (1 - slow) / 1990))
    end, found, true = told(durations, fractions)
    by_mean = (1 - fractions) / fractions * end / np.maximum(true, 1e-9)
    assert 1.6 < by_mean[fractions >= 0.02][0] < 7
    shown = ~np.isnan(found)
    assert shown[fractions >= 0.25].all() and not shown[fractions < 0.02].any()
    np.testing.assert_allclose(found[shown], true[shown], rtol=0.02, atol=1e-9)
    assert (np.diff(found[shown]) < 0).all()


def test_the_time_left_of_steps_of_random_durations_counts_down():
    _, found, true = told(np.random.default_rng(3).uniform(0.1, 0.3, 2000))
    late = slice(200, None)
    assert np.abs(found[late] - true[late]).max() < 0.1 * true[0]
    rises = found[late] - np.minimum.accumulate(found[late])
    assert rises.max() < 0.05 * true[0]


def test_a_task_that_gets_slower_is_soon_judged_by_its_new_speed():
    end, found, true = told(np.repeat([0.1, 0.4], [500, 500]))
    for begin, error in ((75, 0.3), (100, 0.1), (150, 0.02)):  # it is slower from 50 on
        soon = end > begin
        np.testing.assert_allclose(found[soon], true[soon], rtol=error, atol=1e-9)


def test_a_task_that_begins_anywhere_and_pauses_has_the_time_of_its_steps():
    left = RemainingTime(0.5, 10.0)
    assert left.after(0.505, 11.0) is None
    left.pause(1000.0)
    assert left.after(0.51, 1012.0) == pytest.approx(98.0)
    assert left.after(0.51, 1012.0) == pytest.approx(98.0)  # at once again
    assert left.after(1.0, 1110.0) == 0.0


def test_without_a_bar_nothing_is_said_of_compilation(capfd):
    mf.solve(KURAMOTO, START, (0, 2), progress=False, callback=compiled_on_the_way())
    assert capfd.readouterr().err == ""


def test_a_run_that_is_over_before_the_bar_is_due_leaves_nothing_behind(capfd, monkeypatch):
    """On a terminal the bar comes after a second; what was said of compilation is wiped away."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    mf.solve(KURAMOTO, START, (0, 0.1), callback=compiled_on_the_way())
    written = capfd.readouterr().err
    assert "compiling <lambda> ..." in written and written.rsplit("\r", 1)[-1].strip() == ""


def test_what_runs_in_a_thread_is_stopped_by_whoever_it_works_for():
    """As by Ctrl-C, of which threads do not hear; and only within the block."""
    model, circle = mf.Transformer(mf.Kuramoto(), kappa=1.0), mf.Circle(16)

    def work():
        asked = []
        with stopped_when(lambda: bool(asked.append(0)) or len(asked) > 3):
            run = mf.solve(model, circle.von_mises(0, 1), (0, 50), progress=False)
        return run, mf.solve(model, circle.von_mises(0, 1), (0, 0.1), progress=False)

    with ThreadPoolExecutor(1) as pool:
        stopped, other = pool.submit(work).result()
    assert stopped.status == "interrupted" and stopped.t[-1] < 50
    assert other.status == "finished"
    with stopped_when(lambda: True):
        found = mf.branches(mf.USA(4.0), circle, kappa=(0.3, 0.6), progress=False)
    assert "interrupted" in " ".join(found.warnings).lower()


def test_stages_are_named_when_they_begin_and_the_time_goes_on(capfd):
    with Progress("probing", True, stages=True) as bar:
        bar.show(0.1, "first")
        bar.show(0.8, "second")  # at once, as after a short stage
        time.sleep(1.2)
        assert "second  80%" in capfd.readouterr().err
        bar.show(0.9, "third")
    assert "<" not in capfd.readouterr().err


def test_a_terminal_without_a_size_gets_a_bar(capfd, monkeypatch):
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((0, 0)))
    with Progress("solve", True) as bar:
        bar.show(1.0, "t = 1")
    assert "t = 1 100%|" in capfd.readouterr().err
