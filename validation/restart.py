"""Claim: a run killed with SIGKILL and resumed is the unbroken run, bit for bit.

Each run is done twice in processes of its own: once undisturbed and without checkpoints, once
with a checkpoint every 20 milliseconds, killed by SIGKILL as soon as the checkpoint has been
rewritten, three times over, and resumed. Compared are the bytes of all saved coefficients, the
times, the times of events and the number of steps, accepted and rejected: no byte may differ.
The steps are adaptive; the second run changes its number of modes on the way, the third has
events, the fourth is an ensemble. Then come tokens: without noise, with it, and merging.

Refused, each with a CheckpointError: a checkpoint cut short anywhere, one with a single bit
altered, and one of another run (20 damaged copies in all).

    python validation/restart.py [--quick]    # 55 s, 9 s quick

--quick has two of the seven runs, each killed once. Exit code 1 on failure.
"""

import hashlib
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import Report

import meanfield as mf
from meanfield.steppers import Krogstad

EVERY, KILLS = 0.02, 3
TOKENS = ("tokens", "noise", "merging")
RUNS = ("adaptive", "modes", "events", "ensemble", *TOKENS)
QUICK_RUNS = ("adaptive", "noise")


def crosses_half(_t, density):
    """An event of the third run."""
    return float(density.moment(2).real) - 0.5


def problem(name: str) -> tuple[mf.Transformer, mf.Density | mf.Tokens, dict]:
    """Model, initial state and options of a run that takes a second, or as ensemble five.

    Ensembles may be half a second in compiled code between two checkpoints.
    """
    if name in TOKENS:
        return token_problem(name)
    circle = mf.Circle(32)
    start = circle.fourier([1, 0.15, 0.05, -0.025j])
    if name == "adaptive":
        model = mf.Transformer(mf.USA(4.0), 6.0)
        return model, start, {"t_span": (0, 10), "t_eval": [1, 5, 10], "rtol": 1e-12}
    if name == "modes":
        model = mf.Transformer(mf.USA(4.0), 100.0)
        return model, start, {"t_span": (0, 10), "t_eval": [0.1, 1, 10], "rtol": 1e-11}
    if name == "events":
        model = mf.Transformer(mf.Kuramoto(), 6.0)
        options = {"t_span": (0, 60), "rtol": 1e-12, "events": [crosses_half], "scheme": Krogstad}
        return model, start, options
    model = mf.Transformer(mf.USA(np.linspace(1, 5, 40)), np.linspace(2, 0.3, 40))
    return model, start, {"t_span": (0, 8), "t_eval": [5, 8], "rtol": 1e-12}


def token_problem(name: str) -> tuple[mf.Transformer, mf.Tokens, dict]:
    """The same, of tokens."""
    start, times = mf.Tokens.uniform(400, 3, rng=0), np.linspace(0, 4, 9)
    options = {"t_span": (0, 4), "t_eval": times}
    if name == "tokens":
        start, direct = mf.Tokens.uniform(2500, 3, rng=0), mf.engines.Direct()
        return mf.Transformer(mf.SA(9.0)), start, {**options, "rtol": 1e-12, "engine": direct}
    if name == "noise":
        return mf.Transformer(mf.SA(9.0), 20.0), start, {**options, "dt": 0.01, "rng": 1}
    few = mf.Tokens.on_circle(np.linspace(0, 5, 40) ** 1.1)
    return mf.Transformer(mf.SA(60.0)), few, {"t_span": (0, 1e6), "merge": 1e-6, "rtol": 1e-11}


def coefficients(state: mf.Density | mf.Tokens) -> np.ndarray:
    """The numbers of a state."""
    return state.x if isinstance(state, mf.Tokens) else state.coefficients


def fingerprint(run: mf.Solution) -> str:
    """Everything that must agree, as one line."""
    digest = hashlib.sha256(run.t.tobytes())
    for array in (*map(coefficients, run), *run.t_events):
        digest.update(np.ascontiguousarray(array).tobytes())
    stats = run.stats
    return f"{run.status} {stats['steps']} {stats['rejected']} {len(run)} {digest.hexdigest()}"


def child(name: str, checkpoint: str) -> None:
    """The process that is killed: solve, and print the fingerprint."""
    model, start, options = problem(name)
    options |= {"checkpoint": checkpoint, "checkpoint_every": EVERY, "resume": True}
    print(fingerprint(mf.solve(model, start, progress=False, **options)))


def launch(name: str, checkpoint) -> subprocess.Popen:
    command = [sys.executable, __file__, name, str(checkpoint)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed(name: str, checkpoint: Path) -> bool:
    """Start or resume the run and kill it after two new checkpoints; False if it was faster."""
    process, seen, changes = launch(name, checkpoint), None, 0
    while changes < 3 and process.poll() is None:
        stamp = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        changes += stamp != seen
        seen = stamp
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def refusals(intact: bytes, folder: Path) -> tuple[int, int]:
    """Numbers of damaged checkpoints and of those refused."""
    positions = np.linspace(0, len(intact) - 1, 10).astype(int)
    altered = [intact[:i] + bytes([intact[i] ^ 1]) + intact[i + 1 :] for i in positions[:9]]
    damaged = [intact[:i] for i in positions] + altered
    refused = sum(_refused("adaptive", content, folder) for content in damaged)
    return len(damaged) + 1, refused + _refused("events", intact, folder)


def _refused(name: str, content: bytes, folder: Path) -> bool:
    path = folder / "damaged"
    path.write_bytes(content)
    model, start, options = problem(name)
    try:
        mf.solve(model, start, checkpoint=path, resume=True, **options)
    except mf.CheckpointError:
        return True
    return False


def main(quick: bool) -> int:
    report, kills = Report(["run", "what"]), 1 if quick else KILLS
    with tempfile.TemporaryDirectory() as folder:
        for name in QUICK_RUNS if quick else RUNS:
            checkpoint = Path(folder) / name
            model, start, options = problem(name)
            unbroken = fingerprint(mf.solve(model, start, progress=False, **options))
            done = sum(killed(name, checkpoint) for _ in range(kills))
            if name == "adaptive":
                broken_off = checkpoint.read_bytes()
            report.compare(name, "kills", predicted=kills, measured=done, tolerance=0)
            resumed = launch(name, checkpoint).communicate()[0].strip()
            differing = resumed != unbroken or not unbroken.startswith("finished")
            print(f"{name}: {unbroken}")
            report.compare(name, "differs", predicted=0, measured=differing, tolerance=0)
        damaged, refused = refusals(broken_off, Path(folder))
    report.compare("checkpoints", "refused", predicted=damaged, measured=refused, tolerance=0)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(child(*sys.argv[1:]) if len(sys.argv) == 3 else main("--quick" in sys.argv))
