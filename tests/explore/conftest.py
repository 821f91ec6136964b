"""Scenes of few frames, so that the tests are quick; those of the browser have all of them."""

import shutil

import pytest

from meanfield.explore import scene

FEW = {"Circle": 13, "Sphere": 7, "Torus": 7}
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(autouse=True)
def few_frames(monkeypatch):
    """For the tests of this process; the browser is served by another one."""
    for space, count in FEW.items():
        monkeypatch.setitem(scene.FRAME_COUNTS, space, count)


@pytest.fixture(scope="module")
def browser():
    """Chromium, for `make test-explore` and `make test-site`; without it the tests end here."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        pytest.exit("These tests need playwright: pip install playwright.", returncode=2)
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    with sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        except Error as error:
            pytest.exit(
                "These tests need Chromium: apt install chromium, or playwright install chromium "
                f"({str(error).splitlines()[0]})",
                returncode=2,
            )
        yield launched
        launched.close()
