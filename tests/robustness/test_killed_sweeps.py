"""Sweeps whose driver, workers or scheduler are killed, and which are resumed, lose nothing."""

import importlib
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "validation"


@pytest.mark.long
def test_a_sweep_that_is_killed_and_resumed_has_all_points_once(attack, tmp_path, monkeypatch):
    """In the suite one process and its driver; `tests/sweeps` kills dask workers and schedulers."""
    pytest.importorskip("distributed")
    monkeypatch.syspath_prepend(SCRIPTS)
    script = importlib.import_module("sweeps")
    ways = script.WAYS if attack.long else ("a process", "driver of processes")
    found = script.killed(attack.rounds(2, 60), tmp_path, ways)
    for way, count in found.kills.items():
        attack.outcomes[f"killed, {way}"] += count
    attack.outcomes["resumed to the same bits"] += found.complete
    if found.complete < found.sweeps:
        attack.failed("other numbers", f"{found.sweeps - found.complete} sweeps")
    for what in ("lost", "twice", "again"):
        if count := getattr(found, what):
            attack.failed(what, f"{count} points")
