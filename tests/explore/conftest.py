"""Scenes of few frames, so that the tests are quick; those of the browser have all of them."""

import pytest

from meanfield.explore import scene

FEW = {"Circle": 13, "Sphere": 7}


@pytest.fixture(autouse=True)
def few_frames(monkeypatch):
    """For the tests of this process; the browser is served by another one."""
    for space, count in FEW.items():
        monkeypatch.setitem(scene.FRAMES, space, count)
