"""The claims about propagation of chaos, with few tokens and replicas."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_validation_script_holds_quickly(tmp_path):
    script, figure = ROOT / "validation" / "propagation_of_chaos.py", tmp_path / "figure.png"
    done = subprocess.run(
        [sys.executable, script, "--quick", "--figure", figure],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all hold" in done.stdout and figure.stat().st_size > 50_000
