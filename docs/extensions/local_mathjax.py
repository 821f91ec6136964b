"""MathJax from the package sphinx-mathjax-offline, in the one file that needs no fonts.

Glyphs are SVG paths in it. Fonts in files of their own are refused by browsers for pages that are
opened from a disk, and the whole package has 15 MB.
"""

from importlib.util import find_spec
from pathlib import Path

from sphinx.util.fileutil import copy_asset

NAME = "tex-svg.js"


def copy(app, exception) -> None:
    """Copy it into the site."""
    if exception is None and app.builder.format == "html":
        package = Path(find_spec("sphinx-mathjax-offline").origin).parent
        copy_asset(package / "static" / "mathjax" / NAME, Path(app.outdir, "_static"))


def setup(app):
    app.setup_extension("sphinx.ext.mathjax")
    app.config.mathjax_path = NAME
    app.connect("build-finished", copy, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
