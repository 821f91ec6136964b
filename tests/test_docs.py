"""What the pages say is true: their examples run, and every claim has its script."""

import ast
import doctest
import operator
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import meanfield as mf

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CLAIMS = ROOT / "docs" / "reference" / "claims.md"
SCRIPTS = sorted(path.name for path in (ROOT / "validation").glob("[!_]*.py"))
PERFORMANCE = ROOT / "docs" / "pictures" / "performance.py"
BUILT = {"house.svg", "causal_metastability.png"}
BUILT |= {f"performance_{n}.png" for n in ("circle", "sphere", "tokens", "floors")}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, *languages):
    """Language and code of the blocks of a page, padded so that a traceback has its lines."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if found[1] in languages:
            yield found[1], "\n" * text.count("\n", 0, found.start(2)) + found[2]


def ids(page):
    return page.name


FIRST = ROOT / "docs" / "tutorials" / "first_run.md"
SHOWN = [FIRST, *(p for p in PAGES if p != FIRST and any(blocks(p, "python", "toml")))]


@pytest.mark.repeats
@pytest.mark.parametrize("page", SHOWN, ids=ids)
def test_the_examples_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    """A configuration shown on the page is run as run.toml, into run.nc."""
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    names = {"np": np, "mf": mf}
    try:
        for language, block in blocks(page, "python", "toml"):
            if language == "python":
                exec(compile(block, str(page), "exec"), names)
            else:
                Path("run.toml").write_text(block.lstrip("\n"), encoding="utf-8")
                mf.run_config(mf.read_config("run.toml"), out="run.nc", progress=False)
    finally:
        plt.close("all")


@pytest.mark.parametrize("function", [mf.solve, mf.extend, mf.wasserstein])
def test_the_examples_of_a_docstring_run(function):
    (example,) = doctest.DocTestFinder().find(function, function.__name__, globs={"mf": mf})
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0


def test_the_finder_of_blocks_sees_them_all():
    """A pattern that misses blocks would pass silently: count the fences by hand."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for language in ("python", "toml"):
            fences = re.findall(rf"^```{language}$", text, re.M)
            assert len(list(blocks(page, language))) == len(fences)


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_has_a_line_in_the_table_of_claims(script):
    assert f"`{script}`" in CLAIMS.read_text(encoding="utf-8")


def test_every_script_in_the_table_of_claims_exists():
    named = set(re.findall(r"`(\w+\.py)`", CLAIMS.read_text(encoding="utf-8")))
    assert named <= set(SCRIPTS), f"no such script: {named - set(SCRIPTS)}"


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_states_its_claim_and_how_to_run_it(script):
    text = (ROOT / "validation" / script).read_text(encoding="utf-8")
    assert text.startswith('"""Claim: ') and f"    python validation/{script}" in text


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_to_files_of_the_project_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([\w-]*[./][\w./-]*)", text):
        known = (page.parent / target).exists() or Path(target).name in BUILT
        assert known, f"{page.name} links to {target}"


def test_quoted_names_in_docstrings_end_with_their_quotes():
    """`Field`s is an error of the markup, which stops the build of the pages."""
    for path in sorted((ROOT / "meanfield").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                parts = (ast.get_docstring(node) or "").replace("``", "").split("`")
                after = [text[:1] for text in parts[2::2]]
                assert not any(map(str.isalnum, after)), f"{path.name}: {ast.get_docstring(node)}"


def test_every_public_name_is_on_the_api_page():
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    missing = [name for name in mf.__all__ if not re.search(rf"\b{name}\b", page)]
    assert missing == ["__version__"]


REACHED = "import meanfield as mf\nfor name in {}:\n    eval('mf.' + name)"


@pytest.mark.parametrize("part", ["whole", pytest.param("rooms", marks=pytest.mark.long)])
def test_every_name_of_the_api_page_is_reached_as_it_says(part):
    """In fresh interpreters, forwards and backwards; and one for each room.

    Whatever was imported before must not matter.
    """
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    names = re.findall(r"auto(?:class|function|exception):: meanfield\.([\w.]+)", page)
    names += re.findall(r"^`(?:mf|meanfield)\.([\w.]+)`", page, re.MULTILINE)
    assert len(names) > 60
    rooms = sorted({name.split(".")[0] for name in names if "." in name})
    within = [[name for name in names if name.startswith(f"{room}.")] for room in rooms]
    for some in (names, names[::-1]) if part == "whole" else within:
        command = [sys.executable, "-c", REACHED.format(some)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{some}: {done.stderr[-300:]}"


def test_every_member_that_the_api_page_lists_exists():
    """Members with defaults of their own, such as fields, may be absent from the class."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    entries = re.findall(r"autoclass:: meanfield\.([\w.]+)\n((?: {3}.*\n)*)", page)
    listed = 0
    for name, options in entries:
        kind = operator.attrgetter(name)(mf)
        members = re.search(r":members:((?:.*\n {4,})*.*)", options)
        for member in re.findall(r"\w+", members[1]) if members else ():
            listed += 1
            assert hasattr(kind, member) or member in kind.__annotations__, f"{name}.{member}"
    assert listed > 60


@pytest.mark.long
def test_the_drawing_of_the_house_has_every_room_and_arrows_that_point_down(tmp_path):
    script, target = ROOT / "docs" / "pictures" / "house.py", tmp_path / "house.svg"
    subprocess.run([sys.executable, script, target], check=True)
    drawn = target.read_text(encoding="utf-8")
    names = set(re.findall(r'">(\w+)</text>', drawn))
    rooms = {path.parent.name for path in (ROOT / "meanfield").glob("*/__init__.py")}
    assert rooms <= names
    ends = re.findall(r'd="M[\d.]+ ([\d.]+)C.* ([\d.]+)"', drawn)
    assert len(ends) >= len(rooms) - 1 and all(float(y) < float(to) for y, to in ends)


@pytest.mark.long
def test_the_figures_of_the_page_performance_are_drawn_from_the_tables(tmp_path):
    subprocess.run([sys.executable, PERFORMANCE, tmp_path], check=True)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {name for name in BUILT if name.startswith("performance")}


def documented_parameters(docstring):
    """The names in the section of parameters of a docstring."""
    lines, names = docstring.split("Parameters\n---", 1)[-1].splitlines()[1:], set()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below.startswith("---"):
            break
        if entry := re.fullmatch(r"(\w+(?:, \w+)*)(?: : .*)?", line):
            names |= {*entry[1].split(", ")}
    return names


def test_parameters_in_docstrings_exist():
    """Of all functions, and classes with an `__init__`, unless something passes further ones on."""
    wrong = []
    for path in sorted((ROOT / "meanfield").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            members = getattr(node, "body", ()) if isinstance(node, ast.ClassDef) else ()
            init = next((f for f in members if getattr(f, "name", "") == "__init__"), None)
            function = node if isinstance(node, ast.FunctionDef) else init
            text = function and ast.get_docstring(node)
            if text and "Parameters\n---" in text and not function.decorator_list:
                given = function.args
                names = {argument.arg for argument in (*given.args, *given.kwonlyargs)}
                if given.kwarg is None and (unknown := documented_parameters(text) - names):
                    wrong.append(f"{path.name}, {node.name}: {unknown}")
    assert not wrong
