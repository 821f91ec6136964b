"""Code of libraries, which digests identify by name, as results record the versions."""

import functools
import importlib.util
import sys
import types
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np

from .annotations import AnyObject
from .version import LIBRARIES

PACKAGE = __name__.split(".")[0]
MAIN = {"__main__", "__mp_main__"}  # the script that was started
RECORDED = {PACKAGE, *LIBRARIES, *sys.stdlib_module_names} - MAIN
INSTALLED = {"site-packages", "dist-packages"}  # folders, the second that of Debian
WRITTEN = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that is not built in


def of_library(module: str | None) -> bool:
    """Whether a module is of this package, the standard library or another installed one.

    An installed module lies in site-packages or dist-packages, or beside the RECORD file of pip,
    as after ``pip install --target``.
    """
    name = module or ""
    root = name.split(".")[0]
    if root in RECORDED:
        return True
    return root not in MAIN and any(_is_installed(place, root) for place in _places(name, root))


def _places(module: str, root: str) -> list[str]:
    """Paths of the file and the folders of a module, imported or not."""
    entry = sys.modules.get(module) or sys.modules.get(root)
    try:
        spec = entry.__spec__ if entry else importlib.util.find_spec(root) if root else None
    except (AttributeError, ImportError, ValueError):
        spec = None
    file = getattr(entry, "__file__", None) or (spec and spec.origin)
    folders = (spec and spec.submodule_search_locations) or ()
    return [str(place) for place in (file, *folders) if place]


@functools.cache
def _is_installed(place: str, root: str) -> bool:
    """Whether a file or folder of a module was installed."""
    path = Path(place)
    if not INSTALLED.isdisjoint(path.parts):
        return True
    root_folders = [folder for folder in (path, *path.parents) if folder.name == root]
    folder = root_folders[-1].parent if root_folders else path.parent
    begins = (f"{root}/", f"{root}.")
    records = (record.read_text(errors="replace") for record in folder.glob("*.dist-info/RECORD"))
    return any(line.startswith(begins) for text in records for line in text.splitlines())


def name_in_library(value: AnyObject) -> tuple[str, str, str] | None:
    """Module, name and version of a function, class or module of a library; None for others.

    The version is "" for libraries whose versions results record.
    """
    module, name = _name_in_module(value)
    if not of_library(module):
        return None
    root = module.split(".")[0]
    package = None if root in RECORDED else sys.modules.get(root)
    return module, name, "" if root in RECORDED else str(getattr(package, "__version__", ""))


def file_of_extension(value: AnyObject) -> tuple[str, Path] | None:
    """The name and the file of an object of a user's extension module; "" names the module."""
    module, name = _name_in_module(value)
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return (name, Path(file)) if file.endswith(tuple(EXTENSION_SUFFIXES)) else None


def _name_in_module(value: AnyObject) -> tuple[str, str]:
    """The module of a function or class, and its name there; ("", "") if it is not there.

    The name of a module itself is "".
    """
    if isinstance(value, types.ModuleType):
        return value.__name__, ""
    if isinstance(value, np.ufunc):
        modules = [m for m in ("numpy", "scipy.special") if m in sys.modules]
        homes = [m for m in modules if getattr(sys.modules[m], value.__name__, None) is value]
        return (homes[0], value.__name__) if homes else ("", "")
    built_in = isinstance(value, type) and not value.__flags__ & WRITTEN
    try:
        module = value.__module__
        for name in (value.__qualname__, value.__name__):  # pybind11 needs the second
            entry: AnyObject = sys.modules[module]
            for part in name.split("."):
                entry = getattr(entry, part, None)
            if entry is value or built_in:
                return module, name
    except Exception:  # these attributes may have other meanings
        pass
    return "", ""
