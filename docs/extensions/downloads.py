"""Downloads of the gallery: scripts and notebooks that run in an empty folder.

A script of examples/ imports from other files of that folder, and may read a configuration beside
it. Its download has all of that in one file: configurations as text, the example, and the
definitions that it needs from other files. Data that are no text are in the archive alone.
"""

import ast
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from symtable import symtable
from zipfile import ZIP_DEFLATED, ZipFile

FUTURE = "from __future__ import annotations  # names of types may be defined further below"
AS_SCRIPT = 'if __name__ == "__main__":\n    run_alone(__doc__, run)'
AS_NOTEBOOK = """\
from IPython.display import Image, Video, display

out = Path("out", {name!r})
out.mkdir(parents=True, exist_ok=True)
rows = run(out)
if rows:
    print_table({{{title!r}: rows}})
for path in sorted(out.iterdir(), key=lambda path: path.stat().st_mtime_ns):
    if path.suffix in (".png", ".gif"):
        display(Image(filename=str(path)))
    elif path.suffix == ".mp4":
        display(Video(str(path), embed=True))"""
CONFIGURATION = """\
if not Path("{name}").exists():  # a changed one is kept
    Path("{name}").write_text(r'''{text}''', encoding="utf-8")"""
DATA = """\
if not Path("{file}").exists():
    raise FileNotFoundError("{name}.py reads {file}: unpack {name}.zip here")"""
IN_FOLDER = re.compile(r"\bexamples/(?=\w+\.(?:py|toml)\b)")


@dataclass(frozen=True)
class Statement:
    """A statement at the top of a file, with the comments before it.

    Attributes
    ----------
    code : str
    defines : set of str
    names : set of str
        Names that it uses and that are not its own: of the file, of imports, of Python.
    """

    code: str
    defines: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True)
class Source:
    """A file of examples/.

    Attributes
    ----------
    text : str
        Its docstring.
    statements : tuple of Statement
        Without those that mean nothing elsewhere: docstring, imports, `__all__`, the call of `run`.
    local : dict
        Names that it imports from other files of the folder, and the file of each.
    packages : dict
        Names that it imports from packages: (package, name there), or (package, "") for all of it.
    """

    text: str
    statements: tuple[Statement, ...]
    local: dict[str, Path]
    packages: dict[str, tuple[str, str]]

    def depth(self) -> int:
        """The number of files of the longest chain of imports that ends here."""
        return 1 + max((read(path).depth() for path in self.local.values()), default=0)

    def that_defines(self, name: str) -> Statement | None:
        return next((s for s in self.statements if name in s.defines), None)


@cache
def read(path: Path) -> Source:
    """Take a file of examples/ apart."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    tree, end, statements = ast.parse("".join(lines)), 0, []
    local, packages = {}, {}
    for node in tree.body:
        code, end = "".join(lines[end : node.end_lineno]), node.end_lineno
        names = frozenset(names_in(code))
        if isinstance(node, ast.Import):
            packages |= {a.asname or a.name: (a.name, "") for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            other = path.with_name(f"{node.module}.py")
            if other.exists():
                local |= {a.name: other for a in node.names}
            else:
                packages |= {a.asname or a.name: (node.module, a.name) for a in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            statements.append(Statement(code, frozenset({node.name}), names))
        elif isinstance(node, ast.Assign):
            targets = [n for target in node.targets for n in ast.walk(target)]
            stored = frozenset(n.id for n in targets if isinstance(n, ast.Name))
            if "__all__" not in stored:
                statements.append(Statement(code, stored, names))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) and (
            "__name__" not in names
        ):
            raise ValueError(f"{path.name}: a download cannot have {code.strip()!r}.")
    return Source(ast.get_docstring(tree) or "", tuple(statements), local, packages)


def needed(path: Path, last: str) -> dict[Path, list[Statement]]:
    """The statements that an example needs, file by file, each after those that it imports."""
    example, found = read(path), {path: set(read(path).statements)}
    report = path.with_name("report.py")
    waiting = [(path, name) for statement in example.statements for name in statement.names]
    waiting += [(report, name) for name in names_in(last) if read(report).that_defines(name)]
    while waiting:
        file, name = waiting.pop()
        file = read(file).local.get(name, file)
        statement = read(file).that_defines(name)
        if statement and statement not in found.setdefault(file, set()):
            found[file].add(statement)
            waiting += [(file, used) for used in statement.names]
    deepest_last = sorted((file for file in found if found[file]), key=lambda f: read(f).depth())
    return {file: [s for s in read(file).statements if s in found[file]] for file in deepest_last}


def names_in(code: str) -> set[str]:
    """Names that a piece of code uses, without those that are local in its functions."""
    found, scopes = set(), [symtable(code, "example", "exec")]
    for scope in scopes:
        top = scope.get_type() == "module"
        symbols = (s for s in scope.get_symbols() if s.is_referenced() and (top or s.is_global()))
        found.update(symbol.get_name() for symbol in symbols)
        scopes += scope.get_children()
    return found


def cells(path: Path, last: str) -> list[str]:
    """The code of an example in one file: imports and files, itself, what it needs, its end.

    Raises
    ------
    ValueError
        If a name has different meanings in two files.
    """
    parts = needed(path, last)
    own, name = parts.pop(path), path.stem
    code = {file.name: "".join(s.code for s in found).strip() for file, found in parts.items()}
    code = {path.name: "".join(s.code for s in own).strip(), **code}
    packages, used = {"Path": ("pathlib", "Path")}, names_in("\n".join([*code.values(), last]))
    for file in (path, *parts):
        for here, origin in read(file).packages.items():
            if here in used and packages.setdefault(here, origin) != origin:
                raise ValueError(f"{here} is imported from {origin} and {packages[here]}.")
    defined = Counter(list(packages))
    for statements in (own, *parts.values()):
        defined.update(set().union(*(s.defines for s in statements)))
    if twice := [name for name, count in defined.items() if count > 1]:
        raise ValueError(f"{twice} mean different things in {list(code)}: rename them in one.")
    first = [FUTURE, imports(packages), *files(path)]
    shown = [f"# From {file} of the examples\n\n{text}" for file, text in list(code.items())[1:]]
    found = ["\n\n".join(first), code[path.name], *shown, last]
    return [IN_FOLDER.sub("", part).replace("__file__", f'"{name}.py"') for part in found]


def imports(packages: dict[str, tuple[str, str]]) -> str:
    """Statements that import: the standard library, then packages, then this one."""

    def place(package: str) -> tuple[int, str]:
        first = package.partition(".")[0]
        return 0 if first in sys.stdlib_module_names else 2 if first == "meanfield" else 1, package

    groups: dict[int, list[str]] = {}
    for package in sorted({package for package, _ in packages.values()}, key=place):
        lines = groups.setdefault(place(package)[0], [])
        given = sorted(
            (name, here) for here, (whence, name) in packages.items() if whence == package
        )
        for here in [here for name, here in given if not name]:
            lines.append(f"import {package}" + (f" as {here}" if here != package else ""))
        some = [name + (f" as {here}" if here != name else "") for name, here in given if name]
        lines += [f"from {package} import {', '.join(some)}"] if some else []
    return "\n\n".join("\n".join(lines) for lines in groups.values())


def read_by(path: Path) -> tuple[list[Path], list[Path]]:
    """Configurations that a script reads, and what of data/ it or one of them names."""
    code = path.read_text(encoding="utf-8")
    found = {path.with_suffix(ending) for ending in re.findall(r'with_suffix\("(\.toml)"\)', code)}
    found |= {path.with_name(name) for name in re.findall(r'"(\w+\.toml)"', code)}
    text = code + "".join(file.read_text(encoding="utf-8") for file in found)
    data = [file for file in (path.parent / "data").iterdir() if file.is_file()]
    return sorted(found), sorted(file for file in data if file.name in text)


def files(path: Path) -> list[str]:
    """Code that writes the configurations of an example, and asks for its data."""
    configurations, data = read_by(path)
    code = []
    for file in configurations:
        text = file.read_text(encoding="utf-8")
        if "'''" in text:
            raise ValueError(f"{file.name} has three quotes in a row, which end a text of Python.")
        code.append(CONFIGURATION.format(name=file.name, text=text))
    for file in [file for file in data if file.suffix != ".md"]:
        code.append(DATA.format(name=path.stem, file=file.relative_to(path.parent).as_posix()))
    return code


def script(path: Path) -> str:
    """An example as a script that needs no other file."""
    first, *others = cells(path, AS_SCRIPT)
    text = IN_FOLDER.sub("", read(path).text)
    return "\n\n\n".join([f'r"""\n{text}\n"""\n\n{first}', *others]) + "\n"


def notebook(path: Path) -> dict:
    """An example as a notebook: its text, its code, and a last cell that runs and shows it."""
    text = read(path).text
    last = AS_NOTEBOOK.format(name=path.stem, title=text.splitlines()[0])
    made = [{"cell_type": "markdown", "metadata": {}, "source": markdown(IN_FOLDER.sub("", text))}]
    for code in cells(path, last):
        made.append({"cell_type": "code", "metadata": {}, "source": code})
        made[-1] |= {"execution_count": None, "outputs": []}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": kernel, "cells": made}


def markdown(text: str) -> str:
    """The docstring of an example, which is reStructuredText, as Markdown with formulas."""
    text = re.sub(r"^\.\. math::\s+(.*?)(?=\n\n|\Z)", r"$$\1$$", text, flags=re.M | re.S)
    text = re.sub(r":math:`([^`]+)`", r"$\1$", text)
    return re.sub(r"^:([\w ]+): ", r"\n**\1:** ", text, flags=re.M).replace("``", "`")


def write(path: Path, target: Path) -> None:
    """Write the downloads of an example: `target`.py, .ipynb, and .zip with both and its data."""
    written = target.with_suffix(".py"), target.with_suffix(".ipynb")
    written[0].write_text(script(path), encoding="utf-8")
    made = json.dumps(notebook(path), indent=1, ensure_ascii=False)
    written[1].write_text(made + "\n", encoding="utf-8")
    with ZipFile(target.with_suffix(".zip"), "w", ZIP_DEFLATED) as archive:
        for file in written:
            archive.write(file, file.name)
        for file in read_by(path)[1]:
            archive.write(file, file.relative_to(path.parent))
