"""Every benchmark has a small mode, in which `make bench-small` runs it.

What they call is checked by running them: `.ci/run` does.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "benchmarks").glob("[!_]*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_takes_the_option_of_the_small_mode_and_says_so(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    usage = (ast.get_docstring(tree) or "").split("\n\n")[1]
    assert f"python benchmarks/{path.name}" in usage and "[--small]" in usage
    imported = {
        name.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "_small"
        for name in node.names
    }
    assert "parser" in imported and imported & {"sized", "SMALL"}


def test_ci_runs_all_of_them_in_the_small_mode():
    assert "make bench-small" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
