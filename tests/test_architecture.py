"""The rules that keep the code readable, as tests: which file may import which, and names.

A room is a folder of the package. Imports point to
rooms further down, that is earlier in ROOMS, or stay inside the room: imports inside functions and
those that serve type hints only count too. A room asks for functions of rooms above through the
registries of `core.provided`.
"""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import meanfield

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "meanfield"

ROOMS = [
    {"core"},
    {"lowlevel"},
    {"states"},
    {"spaces"},
    {"steppers"},
    {"models"},
    {"engines"},
    {"dynamics"},
    {"results"},
    {"derivatives"},
    {"solving"},
    {"distances"},
    {"sweeps"},
    {"chaos", "bifurcation"},
    {"metastability"},
    {"plotting"},
    {"app", "testing", "extending"},
    {"__init__"},
    {"networks", "explore"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}

ONLY = {"steppers": {"core", "lowlevel"}}  # a scheme knows no physics
UPWARD = {  # inside functions, or for type hints
    ("results", "derivatives"),
    ("app", "networks"),
    ("app", "explore"),
}

NAMES_WITHOUT_A_PURPOSE = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
HEAVY = {"scipy", "numba", "matplotlib", "xarray", "pandas", "pyshtools", "ot", "h5py", "pydantic"}

NOT_OURS = {"out", "build", "dist", "_build", "__pycache__"}
TEXT = {".py", ".pyi", ".md", ".toml", ".cff", ".txt", ".cfg", ".ini", ".yml", ".yaml", ".json"}
TEXT |= {".csv", ".rst", ".svg", ".ipynb", ".bib", ""}
# Names that not every system has, and tests of the system; mypy knows more of the first kind.
ONE_SYSTEM = re.compile(
    r"\bsys\.platform|\bos\.name|\bplatform\.system|\bfcntl|\bmsvcrt|\bimport resource|\bwindll"
    r"|\bos\.(?:fork|gete?uid|[gs]etpgid|setsid|sysconf|pread|pwrite|re(?:name|place)|register_at_fork)"
    r"|\bsched_\w+|\bsetitimer|\bSIG(?!INT|TERM|ABRT)[A-Z]{2,5}\b|\bO_(?:CLOEXEC|BINARY)|\bcgroup"
    r"|[\"'/]proc/|[\"']/dev/|\.dll\b|\.dylib\b|\.so\b"
)
SYSTEM_FILES = {"core/system.py", "networks/tokenizing.py"}  # the second is a program of its own
MACHINE_PATH = re.compile(r"(?<![\w.~}/-])/(?:work|opt|tmp|home|root|mnt|Users)/\w|\b[A-Z]:\\Users")


def project_files():
    """Every text file of the project, in order; not what builds, runs and tools write."""
    for folder, inside, files in os.walk(ROOT):
        inside[:] = sorted({one for one in inside if one == ".ci" or one[0] != "."} - NOT_OURS)
        for path in (Path(folder, one) for one in sorted(files) if one[0] != "."):
            if path.is_file() and path.suffix in TEXT:
                yield path


def name(path):
    """The name of a file in test ids and messages."""
    return str(path.relative_to(ROOT))


FILES = list(project_files())
PYTHON = [path for path in FILES if path.suffix == ".py"]
MODULES = [path for path in PYTHON if path.is_relative_to(PACKAGE)]


@cache
def parse(path):
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def room_of(path):
    """The room a module of the package belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def absolute_names(statement, package):
    """Dotted names that an import statement asks for; `package` is that of the file."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    above = package[: len(package) - statement.level + 1] if statement.level else []
    base = ".".join([*above, *filter(None, [statement.module])])
    return [f"{base}.{alias.name}" for alias in statement.names]


def rooms_imported_by(path):
    """Yield the rooms of this package that a module imports, wherever the statement stands."""
    package = ["meanfield", *path.relative_to(PACKAGE).parts[:-1]]
    for statement in ast.walk(parse(path)):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for dotted in absolute_names(statement, package):
                top, *rest = dotted.split(".")
                if top == "meanfield":  # a name of the public face counts as the face itself
                    yield rest[0] if rest and rest[0] in LEVEL else "__init__"


def takes_less(seconds, measure):
    """Whether one of five measurements is less: what the machine can do when it is not busy."""
    return any(measure() < seconds for _ in range(5))


def run_python(*arguments):
    """The output of a fresh interpreter, started in the root of the project."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_belongs_to_a_room():
    lost = [name(path) for path in MODULES if room_of(path) not in LEVEL]
    assert not lost, f"{lost} belong to no room: give each its place in ROOMS."


def upward_imports():
    """Yield (module, room it imports) for the imports that ROOMS forbids."""
    for path in MODULES:
        room = room_of(path)
        for imported in rooms_imported_by(path):
            allowed = imported == room or LEVEL[imported] < LEVEL[room]
            if room in ONLY:
                allowed = imported == room or imported in ONLY[room]
            if not (allowed or (room, imported) in UPWARD):
                yield name(path), imported


def test_imports_point_downwards():
    assert list(upward_imports()) == [], "modules and what they import that is not below: see ROOMS"


def private_names(path, room):
    """Names of the package that a module uses and that no `__all__` lists, but for its own room."""
    package = ["meanfield", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(parse(path)):
        dotted = []
        if isinstance(node, ast.Import | ast.ImportFrom):
            dotted = absolute_names(node, package)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("mf", "meanfield"):
            dotted = [f"meanfield.{node.attr}"]
        for name in dotted:
            top, *rest = name.split(".")
            owner = meanfield if top == "meanfield" and rest[:1] != [room] else None
            for part in rest if owner else ():
                if part not in owner.__all__:
                    yield name
                    break
                owner = getattr(owner, part)


@pytest.mark.parametrize("room", ["networks", "explore"])
def test_rooms_that_could_be_packages_of_their_own_use_public_names_only(room):
    used = {name for path in MODULES if room_of(path) == room for name in private_names(path, room)}
    assert not used, "make these public, or solve it in the room"


def test_the_reader_of_imports_sees_every_form(tmp_path, monkeypatch):
    """A guard that cannot fail guards nothing: each line below must be seen as what it is."""
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    path = tmp_path / "steppers" / "scheme.py"
    path.parent.mkdir()
    path.write_text(
        "from ..core.errors import MeanfieldError\n"
        "from .. import models\n"
        "from . import phi\n"
        "import meanfield.results.netcdf\n"
        "import numpy\n"
        "from meanfield import Circle\n"
        "if TYPE_CHECKING:\n    from ..app import main\n"
        "class A:\n    def save(self):\n        from ..plotting.maps import heat_map\n"
    )
    below = {"core", "models", "steppers", "results"}
    assert set(rooms_imported_by(path)) == below | {"__init__", "app", "plotting"}


FIRST_WORDS = re.compile(r"(What|Those|That|The same|Which|Of|As|Its)\b")
TWO_MEANINGS = {"Uniform"}  # a law of densities and one of tokens: the name in users' tables


def definitions(path):
    """Yield every class and function of a module, and the module itself."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_first_sentences_begin_with_a_noun_or_a_verb():
    """Private ones too: a docstring whose subject stands elsewhere is a riddle."""
    for path in MODULES:
        for node in definitions(path):
            text = ast.get_docstring(node) or ""
            where = f"{name(path)}:{getattr(node, 'lineno', 1)}"
            assert not FIRST_WORDS.match(text), f"{where}: {text.splitlines()[0]!r}"


def test_names_of_classes_and_constants_have_one_meaning():
    """Also private classes; a constant of several files is defined in one and imported."""
    homes = {}
    for path in MODULES:
        classes = [node.name for node in definitions(path) if isinstance(node, ast.ClassDef)]
        bound = [node for node in parse(path).body if isinstance(node, ast.Assign | ast.AnnAssign)]
        targets = [
            t for node in bound for t in getattr(node, "targets", [getattr(node, "target", 0)])
        ]
        parts = [part for t in targets for part in getattr(t, "elts", [t])]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        for one in {*classes, *filter(str.isupper, names)} - TWO_MEANINGS:
            assert one not in homes, f"{one} is defined in {name(path)} and in {homes[one]}."
            homes[one] = name(path)


def test_file_names_say_what_is_inside():
    for path in PYTHON:
        parts = {part.removesuffix(".py").strip("_") for part in path.relative_to(ROOT).parts}
        assert not parts & NAMES_WITHOUT_A_PURPOSE, f"{name(path)}: name it after its purpose."


def test_no_path_of_one_machine():
    for path in FILES:
        found = MACHINE_PATH.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{name(path)} names a path of one machine: {found.group()!r}."


def test_machine_paths_are_told_from_relative_ones_and_addresses():
    assert MACHINE_PATH.search("see '/" + "tmp/run.nc'")
    for harmless in ["out/tmp/run.nc", "../tmp/x", "~/work/x", "https://example.org/home/x"]:
        assert not MACHINE_PATH.search(harmless)


def test_what_systems_differ_in_stands_in_one_module():
    for path in MODULES:
        found = ONE_SYSTEM.search(path.read_text(encoding="utf-8"))
        home = path.relative_to(PACKAGE).as_posix() in SYSTEM_FILES
        assert home or found is None, f"{name(path)} assumes a system: {found.group()!r}."


def test_names_of_files_differ_by_more_than_case():
    """On macOS and Windows they would be one file."""
    assert len({name(path).casefold() for path in FILES}) == len(FILES)


def test_import_takes_less_than_three_tenths_of_a_second():
    code = "import time; t = time.process_time(); import meanfield; print(time.process_time() - t)"
    assert takes_less(0.3, lambda: float(run_python("-c", code)))


def test_import_leaves_the_heavy_packages_alone():
    loaded = run_python("-c", "import sys, meanfield; print(*sys.modules)").split()
    assert not HEAVY.intersection(loaded)


def test_help_takes_less_than_half_a_second():
    def measure():
        start = os.times()
        assert "Usage" in run_python("-m", "meanfield", "--help")
        end = os.times()  # of the processor, as other tests run at the same time
        return sum(end[2:4]) - sum(start[2:4])

    assert takes_less(0.5, measure)
