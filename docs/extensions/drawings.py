"""Draws the figures of pages that follow from code, tables and scripts, before pages are read."""

import subprocess
import sys
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
VALIDATION = PICTURES.parents[1] / "validation"
OF_SCRIPTS = ("causal_metastability",)  # drawn once, then kept as long as the script is


def draw(_app):
    """The house from its imports, the page Performance from its tables, figures of scripts."""
    house, performance = PICTURES / "house.py", PICTURES / "performance.py"
    subprocess.run([sys.executable, house, PICTURES / "house.svg"], check=True)
    subprocess.run([sys.executable, performance, PICTURES], check=True)
    for name in OF_SCRIPTS:
        figure, script = PICTURES / f"{name}.png", VALIDATION / f"{name}.py"
        if not figure.exists() or figure.stat().st_mtime < script.stat().st_mtime:
            drawing = [sys.executable, script, "--figure", figure]
            subprocess.run(drawing, check=True, stdout=subprocess.DEVNULL)


def setup(app):
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True}
