"""Examples say what they show; each has a place in the gallery, `make examples` and the README.

What they compute is checked by running them: `make examples`, `make docs`.
"""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
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


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    """A folder with the downloads of all examples, and no other file."""
    folder = tmp_path_factory.mktemp("downloads")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs" / "extensions")
        write = importlib.import_module("downloads").write
    for name in PLACED:
        write(EXAMPLES / f"{name}.py", folder / name)
    return folder


def test_every_name_in_a_download_is_defined_in_it(downloads):
    """Of scripts and of notebooks: no name is undefined, no import is unused."""
    rules = ["--isolated", "--no-cache", "--select", "E9,F"]
    command = [sys.executable, "-m", "ruff", "check", *rules, downloads]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", PLACED)
def test_a_download_needs_no_file_of_the_folder_of_examples(downloads, name):
    others = {path.stem for path in SCRIPTS}
    text = (downloads / f"{name}.py").read_text(encoding="utf-8")
    compile(text, name, "exec")
    for node in ast.walk(ast.parse(text)):
        imported = [node.module] if isinstance(node, ast.ImportFrom) else []
        imported += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert not others & set(imported)
    assert "__file__" not in text and "examples/" not in text
    for found in re.findall(r'"(\w+\.toml)"', text):
        assert f'Path("{found}").write_text(' in text


@pytest.mark.long
def test_a_downloaded_script_runs_in_an_empty_folder(downloads, tmp_path):
    """One that reads a configuration, under the name that a browser gives to a second copy."""
    alone = tmp_path / "collapse (1).py"
    alone.write_bytes((downloads / "collapse.py").read_bytes())
    done = subprocess.run([sys.executable, alone], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "holds" in done.stdout
    assert {"collapse.nc", "collapse.png"} <= {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.long
def test_the_cells_of_a_downloaded_notebook_run_in_order(downloads, tmp_path):
    """Compiled as IPython does, where a future statement holds for later cells.

    In place of IPython, which tests do not have, there is a module that prints what is shown.
    """
    shows = "Image = Video = lambda filename, **_: filename\ndisplay = print\n"
    (tmp_path / "IPython").mkdir()
    (tmp_path / "IPython" / "__init__.py").write_text("version_info = (9, 0)", encoding="utf-8")
    (tmp_path / "IPython" / "display.py").write_text(shows, encoding="utf-8")
    cells = json.loads((downloads / "long_context.ipynb").read_text(encoding="utf-8"))["cells"]
    assert [cell["cell_type"] for cell in cells][:2] == ["markdown", "code"]
    assert ":math:" not in cells[0]["source"] and "$" in cells[0]["source"]
    code = [cell["source"] for cell in cells[1:]]
    run = "import codeop, json, sys\nmake = codeop.Compile()\n"
    run += "for cell in json.load(sys.stdin): exec(make(cell, 'cell', 'exec'), globals())"
    done = subprocess.run(
        [sys.executable, "-c", run],
        cwd=tmp_path, input=json.dumps(code), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "holds" in done.stdout and "long_context.png" in done.stdout


def test_a_name_with_two_meanings_has_no_download(downloads, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "extensions")
    for name, text in {"report": "HEAD = 1\ndef run_alone(): HEAD", "own": "HEAD = 2"}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "data").mkdir()
    with pytest.raises(ValueError, match="HEAD"):
        importlib.import_module("downloads").script(tmp_path / "own.py")
