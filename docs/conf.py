"""Sphinx configuration: `make docs`, or sphinx-build -W -b html docs docs/_build/html."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import gallery

import meanfield

project = "meanfield"
author = "The meanfield developers"
copyright = "the meanfield developers"
release = meanfield.__version__
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "gallery",
    "drawings",
    "tutorials",
    "local_mathjax",
    "links",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
templates_path = ["templates"]
exclude_patterns = ["_build", "extensions", "paper", "pictures", "templates", "tutorials/built"]

sphinx_gallery_conf = gallery.CONF
copybutton_exclude = ".linenos, .gp, .go"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
nitpicky = False

html_theme = "furo"
html_title = f"meanfield {version}"
html_static_path = ["static", "gallery/movies"]
html_css_files = ["cards.css"]
html_show_sourcelink = False
html_copy_source = False

LISTS = {"Parameters", "Returns", "Yields", "Raises", "Warns", "Attributes", "Other Parameters"}


def plain_mathematics(_app, _what, _name, _object, _options, lines):
    """Formulas in docstrings as they are read in the source.

    Indented formulas become literal blocks; elsewhere | and * are characters, not markup.
    """
    section, formula, result = "", False, []
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1]):
            section = line.strip()
        if line and not line.startswith(" "):
            formula = False
        elif line and section not in LISTS and not formula and not (i and lines[i - 1]):
            formula = True
            result += ["::", ""]
        result.append(line if formula else _escaped(line))
    lines[:] = result


def _escaped(line):
    """The line with |, * and the _ of z_|k| escaped outside of quoted code."""
    parts = re.split(r"(``.*?``|`[^`]*`)", line)
    signs = r"([|*]|(?<=\w)_(?=\W))"
    return "".join(p if p.startswith("`") else re.sub(signs, r"\\\1", p) for p in parts)


def setup(app):
    """Run before numpydoc, which has priority 500."""
    app.connect("autodoc-process-docstring", plain_mathematics, priority=400)
