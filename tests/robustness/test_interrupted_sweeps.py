"""Sweeps whose function has no end: one Ctrl-C is heard, a second one ends them.

As a program, ``python test_interrupted_sweeps.py EXECUTOR``, it is such a sweep.
"""

import signal
import subprocess
import sys
import time

import pytest

import meanfield as mf

WITHIN = 10.0  # seconds from the second Ctrl-C to the end, on a machine that does other things too


def endless(i):
    if i:
        print("endless", flush=True)
    while i:
        time.sleep(0.01)
    return i


@pytest.mark.long
def test_two_ctrl_c_end_a_sweep_whose_function_has_no_end(attack):
    executors = ["None", "processes"] if attack.long else ["processes"]
    for executor in executors * attack.rounds(1, 5):
        process = subprocess.Popen(
            [sys.executable, __file__, executor], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            assert process.stdout.readline() == b"endless\n"
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            assert process.poll() is None  # the first one waits for what runs
            process.send_signal(signal.SIGINT)
            process.wait(WITHIN)
            attack.saw("ended by the second Ctrl-C")
        except subprocess.TimeoutExpired:
            attack.failed("went on", executor)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


if __name__ == "__main__":
    executor = None if sys.argv[1] == "None" else sys.argv[1]
    mf.sweep(endless, {"i": [0, 1]}, executor=executor)
