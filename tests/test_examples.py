"""Examples say what they show; each has a place in the gallery, `make examples` and the README.

What they compute is checked by running them: `make examples`, `make docs`.
"""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
FIELDS = ("Source", "Run time", "Look at")


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def docstring(name: str) -> str:
    return ast.get_docstring(tree(EXAMPLES / f"{name}.py")) or ""


def is_example(path: Path) -> bool:
    """Whether the script has a function run(out), which writes figures and returns rows."""
    functions = [node for node in tree(path).body if isinstance(node, ast.FunctionDef)]
    return any(f.name == "run" and [a.arg for a in f.args.args] == ["out"] for f in functions)


def chapters() -> tuple:
    """CHAPTERS of examples/chapters.py, a folder that is not on the path."""
    spec = importlib.util.spec_from_file_location("_chapters", EXAMPLES / "chapters.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["_chapters"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module.CHAPTERS


CHAPTERS = chapters()
PLACED = [name for chapter in CHAPTERS for name in chapter.examples]


def test_every_example_is_in_one_chapter():
    assert sorted(PLACED) == [path.stem for path in SCRIPTS if is_example(path)]


def test_all_chapters_are_run_from_one_list():
    source = " ".join((EXAMPLES / "run_all.py").read_text(encoding="utf-8").split())
    every = "import_module(name) for chapter in CHAPTERS for name in chapter.examples"
    assert f"EXPERIMENTS = tuple({every})" in source


def test_chapters_have_a_paragraph_and_titles_of_their_own():
    assert len({chapter.folder for chapter in CHAPTERS}) == len(CHAPTERS)
    assert all(chapter.about.endswith(".") and chapter.examples for chapter in CHAPTERS)


def test_the_gallery_has_at_least_thirty_examples():
    assert len(PLACED) >= 30


def test_help_prints_the_docstring_with_its_formulas_as_text():
    command = [sys.executable, "-X", "utf8", EXAMPLES / "collapse.py", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    for part in ("is e^(−1/2): the last mass", ":Run time:", ":Look at:", "--out"):
        assert part in done.stdout
    assert "min (e^β, ((d − 1)/2) e^(−β))" in done.stdout.replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_no_docstring_shows_latex_on_a_terminal(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    in_words = importlib.import_module("report").in_words
    for name in PLACED:
        shown = in_words(docstring(name))
        assert not re.search(r"[\\$]|:math:|\bq?quad\b|\bfrac\b", shown), shown


def test_titles_differ():
    assert len({docstring(name).splitlines()[0] for name in PLACED}) == len(PLACED)


@pytest.mark.parametrize("name", PLACED)
def test_an_example_has_a_title_a_paragraph_and_all_fields(name):
    title, line, blank, *rest = docstring(name).splitlines()
    assert line == "=" * len(title) and not blank and len(title) <= 100
    body, *fields = re.split(r"^:([\w ]+): ", "\n".join(rest), flags=re.MULTILINE)
    assert len(body.split()) >= 20, "no paragraph that says what is shown"
    assert tuple(fields[::2]) == FIELDS
    assert all(len(text.split()) >= 2 for text in fields[1::2])


@pytest.mark.parametrize("name", PLACED)
def test_an_example_says_how_long_it_runs_and_how_to_run_it(name):
    pattern = r"^:Run time: (\d+) s, ``python examples/(\w+)\.py``$"
    found = re.search(pattern, docstring(name), re.MULTILINE)
    assert found and found[2] == name and 1 <= int(found[1]) <= 30


@pytest.mark.parametrize("name", PLACED)
def test_an_example_has_a_line_in_the_table_of_the_readme(name):
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(rf"^\| `{name}\.py` \| .+ \| .+ \|$", text, re.MULTILINE)) == 1
