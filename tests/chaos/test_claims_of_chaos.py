"""The claims about propagation of chaos on the circle, with few tokens and replicas."""

from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "validation"


@pytest.mark.long
@pytest.mark.parametrize("part", ["rates", "weak_errors", "uniform_phase"])
def test_a_part_of_the_validation_script_holds_quickly(part, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    import propagation_of_chaos as script

    report = script.Sampled(0.12)
    getattr(script, part)(report, True)
    assert report.verdict() == 0
