"""SIGKILL at random times: diagrams that are resumed until they are done are the unbroken ones."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf

ROOT = Path(__file__).resolve().parents[2]
SPACE = """
[space]
kind = "Circle"
degree = 16
"""
FILES = {
    "bifurcation": f"""
drift = {{ kind = "USA", beta = 4.0 }}
{SPACE}
[bifurcation]
kappa = [0.37, 0.7]
save_at = [0.4]
checkpoint_every = 0.02
""",
    "phase-diagram": f"""
drifts = ["USA", "SA"]
{SPACE}
[phase_diagram]
beta = [2.0, 3.0]
checkpoint_every = 0.02
""",
}


def start(command, out):
    """Begin, or go on with, a diagram in the folder of a file, where its configuration is."""
    asked = [sys.executable, "-m", "meanfield", command, "asked.toml", "--out", out.name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*asked, "--resume", "--quiet"],
        cwd=out.parent, env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def numbers(folder):
    """All numbers of the diagrams in the files of a folder, bit for bit."""
    found = []
    for file in sorted(folder.glob("*.nc")):
        diagram = mf.load(file)
        data = {name: values.values.tobytes() for name, values in diagram.data.variables.items()}
        found.append((file.name, data, repr(diagram), diagram.ends))
        for special in getattr(diagram, "special_points", []):
            found.append((special.value, special.state.legendre_moments.tobytes()))
        for _, state in getattr(diagram, "saved", []):
            found.append((state.kappa, state.legendre_moments.tobytes()))
    return found


@pytest.mark.bits
@pytest.mark.long
@pytest.mark.parametrize("command", FILES)
def test_killed_diagrams(command, attack, tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "asked.toml").write_text(FILES[command])
    began = time.monotonic()
    whole = start(command, tmp_path / "whole" / "plane.nc")
    _, err = whole.communicate()
    assert whole.returncode == 0, err
    unbroken, lasts = numbers(tmp_path / "whole"), time.monotonic() - began
    rng, kills = np.random.default_rng(20), attack.rounds(1, 3)  # then it is left alone
    for number in range(attack.rounds(1, 15)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        (folder / "asked.toml").write_text(FILES[command])
        for _ in range(kills):
            run = start(command, folder / "plane.nc")
            try:
                _, err = run.communicate(timeout=rng.uniform(0.3, 1.1) * lasts)
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                run.communicate()
                attack.saw("killed")
            else:
                break
        else:
            run = start(command, folder / "plane.nc")
            _, err = run.communicate()
        done = run.returncode == 0 or "nothing to resume" in err  # killed when all was written
        if not done:
            attack.failed("not resumed", err)
        elif numbers(folder) != unbroken:
            attack.failed("other numbers", f"round {number}")
        else:
            attack.saw("the unbroken diagram")
