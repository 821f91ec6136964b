"""Draws the figures of pages that follow from the code and from tables, before pages are read."""

import subprocess
import sys
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[1] / "pictures"


def draw(_app):
    """The house from its imports; the page Performance from the tables of Benchmarks."""
    house, performance = PICTURES / "house.py", PICTURES / "performance.py"
    subprocess.run([sys.executable, house, PICTURES / "house.svg"], check=True)
    subprocess.run([sys.executable, performance, PICTURES], check=True)


def setup(app):
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True}
