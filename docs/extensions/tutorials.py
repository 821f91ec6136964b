"""Runs the tutorials as notebooks: what cells print and draw stands beneath them in the page.

The notebooks are written beside the pages, for download. A tutorial whose text has not changed, and
the package neither, is not run again. A cell that fails ends the build.
"""

import base64
import hashlib
import logging
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import nbclient
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

DOCS = Path(__file__).resolve().parents[1]
BUILT = DOCS / "tutorials" / "built"  # notebooks and figures
PACKAGE = DOCS.parent / "meanfield"
PYTHON = re.compile(r"^```python\n(.*?)^```\n", re.M | re.S)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
logging.getLogger("traitlets").setLevel(logging.WARNING)  # not that a notebook is run
ERRORS_ONLY = [f"--log-level={logging.ERROR}"]  # of kernels: they need no encryption here
EXPECTED = re.compile(r"(```python\n.*?^```\n)\n```text\n.*?^```\n", re.M | re.S)


def read(_app, name, source):
    """Put the outputs of its cells into a tutorial."""
    folder, _, page = name.rpartition("/")
    if folder == "tutorials" and page != "index":
        notebook = executed(page, EXPECTED.sub(r"\1", source[0]))
        text = "".join(_cell(page, i, cell) for i, cell in enumerate(notebook.cells))
        source[0] = text + f"\n[This page as a notebook](built/{page}.ipynb)\n"


def executed(page, text):
    """The notebook of a page, run, or as it was run before."""
    BUILT.mkdir(exist_ok=True)
    path, state = BUILT / f"{page}.ipynb", _digest(text)
    if path.exists():
        kept = nbformat.read(path, as_version=4)
        if kept.metadata.get("meanfield") == state:
            return kept
    notebook = new_notebook()
    for i, part in enumerate(PYTHON.split(text)):  # text and code in turn
        make = new_code_cell if i % 2 else new_markdown_cell
        notebook.cells += [make(part.strip("\n"))] if part.strip() else []
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    with TemporaryDirectory() as folder:  # for what cells save
        where = {"metadata": {"path": folder}}
        options = {"timeout": 600, "resources": where, "extra_arguments": ERRORS_ONLY}
        nbclient.NotebookClient(notebook, **options).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":  # without the hundreds of states of progress bars
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    notebook.metadata["meanfield"] = state
    nbformat.write(notebook, path)
    return notebook


def _digest(text):
    """What the outputs depend on: the page and the package."""
    found = hashlib.sha256(text.encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def _cell(page, number, cell):
    if cell.cell_type != "code":
        return f"{cell.source}\n\n"
    shown = [f"```python\n{cell.source}\n```\n"]
    for k, output in enumerate(cell.outputs):
        data = output.get("data", {})
        if "image/png" in data and "text/html" not in data:
            target = BUILT / f"{page}_{number}_{k}.png"
            target.write_bytes(base64.b64decode(data["image/png"]))
            shown.append(f"![What the lines above draw](built/{target.name})\n")
            continue
        text = output.get("text") or data.get("text/plain", "")
        if text.strip():
            shown.append(f"```text\n{ANSI.sub('', text).rstrip()}\n```\n")
    return "\n".join(shown) + "\n"


def setup(app):
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
