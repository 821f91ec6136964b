"""Checkpoints: a run that is killed and resumed is the unbroken run, to the last bit."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import meanfield as mf

TIMES = [0.0, 0.3, 2.0, 6.0, 10.0, 20.0]
MODEL = mf.Transformer(mf.USA(0.5), 20.0)

# Three narrow bumps spread out, and what is left of them gathers: from 256 modes to 32 to 64.
SCRIPT = """
import sys, time
import numpy as np
import meanfield as mf

def passes(_t, density):
    time.sleep(0.001)
    return abs(density.moment(1)) - 0.6

bumps = [mf.Circle(512).von_mises(2 * np.pi * i / 3, 500.0) for i in range(3)]
mu0 = mf.Density.mixture([0.34, 0.33, 0.33], bumps)
run = mf.solve(
    mf.Transformer(mf.USA(0.5), 20.0), mu0, (0, 20),
    t_eval=[0.0, 0.3, 2.0, 6.0, 10.0, 20.0], events=passes, progress=False,
    checkpoint=sys.argv[1], checkpoint_every=0, resume=True,
)
states = {f"state{i}": density.coefficients for i, density in enumerate(run)}
np.savez(sys.argv[2], t=run.t, events=run.t_events[0], steps=run.stats["steps"], **states)
"""


def passes(_t, density):
    """The event of the script, without the rest."""
    return abs(density.moment(1)) - 0.6


def initial():
    """The initial density of the script."""
    bumps = [mf.Circle(512).von_mises(2 * np.pi * i / 3, 500.0) for i in range(3)]
    return mf.Density.mixture([0.34, 0.33, 0.33], bumps)


def solve(**options):
    """The run of the script, with other options."""
    options = {"t_eval": TIMES, "events": passes, **options}
    return mf.solve(MODEL, initial(), (0, 20), **options)


@pytest.fixture(scope="module")
def unbroken():
    return solve()


def assert_same_bits(run, other):
    """Two solutions agree in times, events, coefficients, and counts: in all but wall time."""
    assert run.t.tolist() == other.t.tolist() and run.status == other.status
    assert [t.tolist() for t in run.t_events] == [t.tolist() for t in other.t_events]
    for one, two in zip(run, other, strict=True):
        assert one.space == two.space
        np.testing.assert_array_equal(one.coefficients, two.coefficients)
    assert {**run.stats, "seconds": 0} == {**other.stats, "seconds": 0}


@pytest.mark.bits
@pytest.mark.parametrize("cut", [5, 17, 100, 150])
def test_a_run_that_changes_its_scheme_resumes(tmp_path, cut):
    """Reviews of the scheme come at the same steps, wherever the run was cut."""
    model, path = mf.Transformer(mf.SA(4.0), 200.0), tmp_path / "run.checkpoint"
    mu0 = mf.Circle(64).density(lambda a: 1 + 0.3 * np.cos(a) + 0.1 * np.sin(2 * a))
    options = {"t_eval": [5.0, 10.0], "checkpoint": path, "checkpoint_every": 0}
    whole = mf.solve(model, mu0, (0, 10), t_eval=[5.0, 10.0])
    assert min(whole.stats["schemes"].values()) > 10 and whole.stats["degree_changes"] >= 3
    assert mf.solve(model, mu0, (0, 10), max_steps=cut, **options).status == "max_steps"
    assert_same_bits(mf.solve(model, mu0, (0, 10), resume=True, **options), whole)


def test_the_run_of_these_tests_is_not_an_easy_one(unbroken):
    degrees = [density.space.degree for density in unbroken]
    assert degrees[0] == 256 and min(degrees) <= 32 and degrees[-1] > min(degrees)
    assert unbroken.stats["degree_changes"] >= 4 and unbroken.t_events[0].size > 0
    assert unbroken.status == "finished" and unbroken.stats["steps"] > 200


# SIGKILL -----------------------------------------------------------------------------------


def killed_after_its_first_checkpoints(command, checkpoint, delay):
    """Start the script, let it write checkpoints for a while, and kill it with SIGKILL."""
    before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if checkpoint.exists() and checkpoint.stat().st_mtime_ns != before:
            time.sleep(delay)
            process.kill()
            break
        time.sleep(0.001)
    return process.wait(60) == -signal.SIGKILL


@pytest.mark.bits
@pytest.mark.long
def test_a_run_killed_again_and_again_is_the_unbroken_run(tmp_path, unbroken):
    """Steps, modes and events are adaptive; the moments of death are random."""
    checkpoint, result = tmp_path / "run.ckpt", tmp_path / "run.npz"
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(checkpoint), str(result)]
    chance = random.Random()
    kills = sum(
        killed_after_its_first_checkpoints(command, checkpoint, chance.uniform(0, 0.3))
        for _ in range(2)
    )
    assert kills == 2 and not result.exists()
    subprocess.run(command, check=True, timeout=120)
    found = np.load(result)
    assert found["t"].tolist() == unbroken.t.tolist()
    assert found["events"].tolist() == unbroken.t_events[0].tolist()
    assert found["steps"] == unbroken.stats["steps"]
    for i, density in enumerate(unbroken):
        np.testing.assert_array_equal(found[f"state{i}"], density.coefficients)


# Any checkpoint ----------------------------------------------------------------------------


@pytest.mark.bits
def test_every_checkpoint_leads_to_the_same_end(tmp_path, unbroken):
    """One after every step; seven of them, early and late, are resumed from."""
    path, copies = tmp_path / "run.ckpt", []

    def keep(_t, _density):
        if path.exists() and len(copies) < unbroken.stats["steps"]:
            copies.append(shutil.copy(path, tmp_path / f"{len(copies)}.ckpt"))

    solve(checkpoint=path, checkpoint_every=0, callback=keep)
    assert len(copies) > 200
    for copy in [*copies[:2], *copies[2 :: len(copies) // 4], copies[-1]][:7]:
        assert_same_bits(solve(checkpoint=copy, resume=True), unbroken)


@pytest.mark.bits
@pytest.mark.parametrize("step", [1, 57, 150])
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(tmp_path, unbroken, step):
    """The state where it was interrupted is in its result, but not in that of the whole."""
    path, seen = tmp_path / "run.ckpt", []

    def interrupt(t, _density):
        seen.append(t)
        if len(seen) == step:
            os.kill(os.getpid(), signal.SIGINT)

    run = solve(checkpoint=path, callback=interrupt)
    assert run.status == "interrupted" and run.t[-1] == seen[-1]
    assert_same_bits(solve(checkpoint=path, resume=True), unbroken)


@pytest.mark.bits
def test_a_run_that_fails_in_the_callback_can_go_on(tmp_path, unbroken):
    path, seen = tmp_path / "run.ckpt", []

    def fail(t, _density):
        seen.append(t)
        if len(seen) == 60:
            raise RuntimeError("the disk of the callback is full")

    with pytest.raises(RuntimeError, match="callback is full"):
        solve(checkpoint=path, checkpoint_every=0, callback=fail)
    assert_same_bits(solve(checkpoint=path, resume=True), unbroken)


@pytest.mark.bits
def test_a_run_that_was_stopped_or_ran_out_of_steps_can_go_on(tmp_path, unbroken):
    path = tmp_path / "run.ckpt"
    assert solve(checkpoint=path, callback=lambda t, _d: t > 0.5).status == "stopped"
    assert solve(checkpoint=path, resume=True, max_steps=150).status == "max_steps"
    assert_same_bits(solve(checkpoint=path, resume=True), unbroken)


@pytest.mark.bits
def test_fixed_steps_can_go_on_as_well(tmp_path):
    path, options = tmp_path / "run.ckpt", {"dt": 0.02, "rtol": 1e-5}
    solve(checkpoint=path, callback=lambda t, _d: t > 5, **options)
    assert_same_bits(solve(checkpoint=path, resume=True, **options), solve(**options))


# The end -----------------------------------------------------------------------------------


@pytest.mark.bits
def test_resuming_a_finished_run_gives_it_back(tmp_path, unbroken):
    """It may have been killed after its last step and before its result was used."""
    path = tmp_path / "run.ckpt"
    solve(checkpoint=path)
    assert_same_bits(solve(checkpoint=path, resume=True), unbroken)


@pytest.mark.bits
def test_resuming_a_run_that_ended_steady_gives_it_back(tmp_path):
    def steady(**options):
        model = mf.Transformer(mf.Kuramoto(), 2.5)
        mu0, options = mf.Circle(16).von_mises(0.3, 1.0), {"rtol": 1e-12, **options}
        return mf.solve(model, mu0, (0, 300), until="steady", **options)

    path = tmp_path / "run.ckpt"
    run = steady(checkpoint=path)
    assert run.status == "steady"
    assert_same_bits(steady(checkpoint=path, resume=True), run)


@pytest.mark.bits
def test_resuming_a_run_that_ended_at_an_event_gives_it_back(tmp_path):
    def ends(_t, density):
        return abs(density.moment(1)) - 0.6

    ends.terminal = True
    path = tmp_path / "run.ckpt"
    run = solve(events=ends, checkpoint=path, checkpoint_every=0)
    assert run.status == "event"
    assert_same_bits(solve(events=ends, checkpoint=path, resume=True), run)


@pytest.mark.bits
def test_resuming_an_unresolved_run_says_so_again(tmp_path):
    def collapse(**options):
        mu0 = mf.Circle(16).von_mises(0.3, 1.0)
        with pytest.warns(mf.UnresolvedWarning):
            return mf.solve(mf.Transformer(mf.USA(2.0)), mu0, (0, 5), max_degree=64, **options)

    path = tmp_path / "run.ckpt"
    run = collapse(checkpoint=path)
    assert_same_bits(collapse(checkpoint=path, resume=True), run)


@pytest.mark.bits
def test_without_a_checkpoint_resuming_is_starting(tmp_path, unbroken):
    path = tmp_path / "run.ckpt"
    assert_same_bits(solve(checkpoint=path, resume=True), unbroken)
    assert path.exists()


@pytest.mark.bits
def test_without_resume_a_checkpoint_is_not_overwritten(tmp_path, unbroken):
    """Whoever forgets resume=True loses nothing."""
    path = tmp_path / "run.ckpt"
    solve(checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(mf.CheckpointError, match=r"run\.ckpt .*earlier run.*resume=True"):
        solve(checkpoint=path)
    assert path.read_bytes() == before
    assert_same_bits(solve(checkpoint=path, resume=True), unbroken)


def test_a_file_that_is_no_checkpoint_is_not_overwritten(tmp_path):
    path = tmp_path / "thesis.tex"
    path.write_bytes(b"ten years of work")
    with pytest.raises(mf.CheckpointError, match=r"thesis.tex .* not a checkpoint"):
        solve(checkpoint=path)
    assert path.read_bytes() == b"ten years of work"


def test_a_run_outlives_a_checkpoint_that_cannot_be_written(tmp_path, unbroken, monkeypatch):
    """The disk may fill up during the night; the result must not be lost for that."""

    def full(*_arguments):
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.warns(
        mf.StorageWarning, match=r"run.ckpt could not be written: no space.* goes on; "
    ):
        assert_same_bits(solve(checkpoint=tmp_path / "run.ckpt"), unbroken)
    assert list(tmp_path.iterdir()) == []


def test_the_time_spent_is_that_of_all_sessions(tmp_path):
    path = tmp_path / "run.ckpt"

    def slow(t, _density):
        time.sleep(0.002)
        return t > 2

    first = solve(checkpoint=path, callback=slow).stats["seconds"]
    assert first > 0.08  # at least 40 steps lie between 0 and 2
    assert solve(checkpoint=path, resume=True).stats["seconds"] > first


def test_what_a_killed_process_left_half_written_does_no_harm(tmp_path, unbroken):
    """Temporary files are never read, and those that nobody holds are removed."""
    path, litter = tmp_path / "run.ckpt", tmp_path / ".run.ckpt.0123456789abcdef.part"
    litter.write_bytes(b"half of a checkpoint")
    os.utime(litter, (0, 0))
    (tmp_path / ".run.ckpt.lock").write_text("process 1 on a machine that is no more")
    solve(checkpoint=path, max_steps=100)
    assert_same_bits(solve(checkpoint=path, resume=True), unbroken)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_checkpoint_belongs_to_one_run_at_a_time(tmp_path):
    """The second is told by whom it is used, and leaves the first alone."""
    path, refused = tmp_path / "run.ckpt", []

    def try_again(_t, _density):
        with pytest.raises(
            mf.CheckpointError, match=rf"in use by .* process {os.getpid()} on "
        ) as e:
            solve(checkpoint=path, resume=True)
        refused.append(e)
        return True

    solve(checkpoint=path, callback=try_again)
    assert len(refused) == 1
    solve(checkpoint=path, resume=True, callback=None, max_steps=120)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_other_versions_are_said(tmp_path, unbroken, monkeypatch):
    """The same code of this package is not the same bits with another numpy."""
    path = tmp_path / "run.ckpt"
    with monkeypatch.context() as patched:
        patched.setattr("meanfield.results.provenance.versions", lambda: {"numpy": "1.0"})
        solve(checkpoint=path, max_steps=100)
    with pytest.warns(mf.StorageWarning, match=rf"numpy 1.0 -> {np.__version__}"):
        assert_same_bits(solve(checkpoint=path, resume=True), unbroken)


def test_a_checkpoint_stays_where_it_was_although_the_folder_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    options = {"checkpoint": "run.ckpt", "checkpoint_every": 0.0, "max_steps": 50}
    solve(**options, callback=lambda *_: os.chdir(tmp_path / "other"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "run.ckpt"]
    assert not any((tmp_path / "other").iterdir())
