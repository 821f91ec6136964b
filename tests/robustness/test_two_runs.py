"""Two runs on one checkpoint, and many that write or read one result.

As a program, ``python test_two_runs.py NAME PATH``, it is one of them.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from specimens import BY_THE_CLOCK, CIRCLE, RESULTS, bump, contents, run

import meanfield as mf

CONFIGURATION = """
[model]
drift = { kind = "USA", beta = 1.0 }
kappa = 3.0
[space]
kind = "Circle"
degree = 16
[initial]
kind = "Fourier"
cos = [0.2]
[solve]
t_span = [0, 0.5]
checkpoint_every = 0
"""


def program(*arguments):
    """Start this file as a program, which says in its first line that it is ready."""
    command = [sys.executable, __file__, *map(str, arguments)]
    pipes = dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.PIPE)
    process = subprocess.Popen(command, text=True, **pipes)
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process):
    """Let a program go on, and wait for it: what it said."""
    said = process.communicate("go on\n", timeout=60)[0]
    assert process.returncode == 0, said
    return said.splitlines()


def solved(path, **options):
    return run(CIRCLE.density(bump), kappa=3.0, checkpoint=path, **options)


def plain():
    return contents(run(CIRCLE.density(bump), kappa=3.0), BY_THE_CLOCK)


# What the programs do ----------------------------------------------------------------------------


def hold(path):
    """A run that writes checkpoints and waits in its middle."""

    def waits(t, _state):
        if t > 0.1 and not told:
            told.append(t)
            print("ready", flush=True)
            sys.stdin.readline()

    told = []
    result = solved(path, checkpoint_every=0, callback=waits)
    print(result.status)


def write(path, count):
    """Writes two results in turn."""
    both = [RESULTS["circle"](), RESULTS["tokens"]()]
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(int(count)):
        both[i % 2].save(path)
    print("written")


def read(path, count):
    """Reads while others write: the digests of what was read."""
    print("ready", flush=True)
    sys.stdin.readline()
    found = [contents(mf.load(path))["states"] for _ in range(int(count))]
    print(json.dumps(sorted(set(found))))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])


# Two runs on one checkpoint ----------------------------------------------------------------------


def refusal(attack, what, second, holder):
    """Count how a second run on a checkpoint that `holder` writes was refused."""
    try:
        second()
    except mf.CheckpointError as error:
        said = str(error)
        if "\n" in said or str(holder) not in said or socket.gethostname() not in said:
            attack.failed("the message does not say who holds it", f"{what}: {said}")
        else:
            attack.saw("the second run is refused")
    except Exception as error:
        attack.failed(type(error).__name__, f"{what}: {error}")
    else:
        attack.failed("two runs on one checkpoint", what)


def test_a_second_process_is_refused_until_the_first_ends(attack, tmp_path):
    path = tmp_path / "run.checkpoint"
    first = program("hold", path)
    try:
        refusal(attack, "resume", lambda: solved(path, resume=True), first.pid)
        refusal(attack, "anew", lambda: solved(path), first.pid)
        (tmp_path / "run.toml").write_text(CONFIGURATION)
        path.rename(tmp_path / "moved")  # which another tool may do
        refusal(attack, "moved", lambda: solved(path), first.pid)
        assert ended(first) == ["finished"]
    finally:
        first.kill()
    if contents(solved(path, resume=True), BY_THE_CLOCK) == plain():
        attack.saw("the next run may begin")
    else:
        attack.failed("another result", "after the first has ended")


def test_what_a_killed_run_held_is_free_at_once(attack, tmp_path):
    """Its lock dies with it; what is left of it hinders nobody and is taken over."""
    path = tmp_path / "run.checkpoint"
    for _ in range(attack.rounds(1, 10)):
        first = program("hold", path)
        first.kill()
        first.communicate()
        began = time.monotonic()
        same = contents(solved(path, resume=True), BY_THE_CLOCK) == plain()
        if same and time.monotonic() - began < 5:
            attack.saw("taken over at once")
        else:
            attack.failed("not taken over", f"{time.monotonic() - began:.1f} s, same: {same}")
        path.unlink()
    others = [p.name for p in tmp_path.iterdir()]
    if others:
        attack.failed("something is left", f"{others}")


def test_a_second_thread_is_refused_until_the_first_ends(attack, tmp_path):
    path, inside, leave = tmp_path / "run.checkpoint", threading.Event(), threading.Event()

    def waits(_t, _state):
        inside.set()
        leave.wait(30)

    first = threading.Thread(target=solved, args=(path,), kwargs={"callback": waits})
    first.start()
    assert inside.wait(30)
    refusal(attack, "thread", lambda: solved(path), os.getpid())
    leave.set()
    first.join()
    if contents(solved(path, resume=True), BY_THE_CLOCK) == plain():
        attack.saw("the next run may begin")
    else:
        attack.failed("another result", "after the first has ended")


def test_a_run_that_fails_lets_go_of_its_checkpoint(attack, tmp_path):
    """By an error of the callback, and by one of the arguments."""
    path = tmp_path / "run.checkpoint"

    def fails(_t, _state):
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            solved(path, callback=fails)
        attack.saw("failed, and let go")
    assert contents(solved(path), BY_THE_CLOCK) == plain()


def test_long_names_that_begin_alike_are_different_checkpoints(attack, tmp_path):
    names = ["x" * 200 + end for end in ("1.checkpoint", "2.checkpoint")]
    outer, inner = (tmp_path / name for name in names)

    def runs(_t, _state):
        if not inner.exists():
            solved(inner)

    try:
        solved(outer, callback=runs)
        attack.saw("both ran")
    except mf.CheckpointError as error:
        attack.failed("refused", f"{error}")


def test_a_run_inside_a_run_has_its_own_checkpoint(tmp_path):
    """A callback may run something else, with another checkpoint."""
    done = []

    def runs(_t, _state):
        if not done:
            done.append(solved(tmp_path / "inner.checkpoint"))

    assert solved(tmp_path / "outer.checkpoint", callback=runs).success and done[0].success


@pytest.mark.long
def test_a_second_command_is_refused(attack, tmp_path):
    """Exit code 2 and one message; the first goes on and leaves nothing but its result."""
    (tmp_path / "run.toml").write_text(CONFIGURATION)
    first = program("hold", tmp_path / "run.nc.checkpoint")
    command = [sys.executable, "-m", "meanfield", "solve", "run.toml", "-q", "--resume"]
    try:
        second = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        first.kill()
        first.communicate()
    one_line = len(second.stderr.strip().splitlines()) == 1
    if second.returncode == 2 and one_line and str(first.pid) in second.stderr:
        attack.saw("refused with exit code 2")
    else:
        attack.failed("not refused", f"{second.returncode} {second.stderr}")
    forced = [*command[:-1], "--force"]
    third = subprocess.run(forced, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    left = sorted(p.name for p in tmp_path.iterdir())
    if third.returncode == 0 and left == ["run.nc", "run.toml"]:
        attack.saw("the next command works")
    else:
        attack.failed("something is left", f"{third.returncode} {left} {third.stderr}")


# Many that write and read one result -------------------------------------------------------------


def test_threads_that_save_to_one_path(attack, tmp_path):
    """All succeed; the file is that of one of them, whole."""
    path, failures = tmp_path / "run.nc", []
    results = [RESULTS[kind]() for kind in ("circle", "tokens", "gram")]
    digests = [contents(result)["states"] for result in results]

    def save(result):
        try:
            result.save(path)
        except BaseException as error:
            failures.append(repr(error))

    for _ in range(attack.rounds(3, 50)):
        threads = [threading.Thread(target=save, args=(results[i % 3],)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures or contents(mf.load(path))["states"] not in digests:
            attack.failed("not written", f"{failures}")
        else:
            attack.saw("six threads wrote one file")
        failures.clear()
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


@pytest.mark.long
def test_processes_that_save_to_one_path_while_others_load_it(attack, tmp_path):
    """Who loads gets one of the results that were written, never a mixture."""
    path = tmp_path / "run.nc"
    both = [RESULTS["circle"](), RESULTS["tokens"]()]
    both[0].save(path)
    count = attack.rounds(20, 500)
    work = ["write", "read"] * attack.rounds(1, 2)
    everybody = [program(name, path, count) for name in work]
    for process in everybody:
        process.stdin.write("go on\n")
        process.stdin.flush()
    known = {contents(result)["states"] for result in both}
    for process in everybody:
        try:
            printed, problem = process.communicate(timeout=attack.rounds(120, 3000))
        except subprocess.TimeoutExpired:
            for one in everybody:
                one.kill()
            raise
        said = printed.splitlines()
        if process.returncode:
            attack.failed("a reader or a writer failed", problem.strip().splitlines()[-1])
        elif said != ["written"] and not set(json.loads(said[-1])) <= known:
            attack.failed("a mixture was read", f"{said}")
        else:
            attack.saw(f"{'wrote' if said == ['written'] else 'read'} {count} times")
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


@pytest.mark.long
def test_two_processes_killed_while_they_save_to_one_path(attack, tmp_path):
    """The file stays whole, and the next save removes what they left."""
    path, chance = tmp_path / "run.nc", random.Random(0)
    result = RESULTS["circle"]()
    result.save(path)
    for _ in range(attack.rounds(1, 10)):
        both = [program("write", path, 10**6) for _ in range(2)]
        for process in both:
            process.stdin.write("go on\n")
            process.stdin.flush()
        time.sleep(chance.uniform(0.1, 0.3))
        for process in both:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        mf.load(path)
        left = [p.name for p in tmp_path.iterdir() if p != path]
        result.save(path)
        if [p.name for p in tmp_path.iterdir()] == ["run.nc"]:
            attack.saw(f"{'files of dead processes' if left else 'nothing'} cleaned up")
        else:
            attack.failed("left over", f"{[p.name for p in tmp_path.iterdir()]}")
