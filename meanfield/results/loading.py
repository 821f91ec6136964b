"""`load`: whatever a file of this package holds."""

from pathlib import Path
from typing import Any

from ..core.checks import path_of
from .files import load as load_solution

__all__ = ["load"]


def load(path: str | Path) -> Any:
    """Read what `save` wrote: every number comes back bit for bit.

    Returns
    -------
    Solution, Diagram or PhaseDiagram
        Of a study the run of its densities; `Study.load` gives the study itself.

    Raises
    ------
    StorageError
        If the file does not exist, is damaged, or was not written by this package.
    TypeError
        If `path` is not a path.
    """
    path = path_of("path", path)
    headers = _headers(path)
    if "meanfield_diagram" in headers:
        from ..bifurcation import Diagram

        return Diagram.load(path)
    if "meanfield_phase_diagram" in headers:
        from ..bifurcation import PhaseDiagram

        return PhaseDiagram.load(path)
    return load_solution(path)


def _headers(path: Path) -> set[str]:
    """The names of the attributes of a file, by which it is known; none if it cannot be read."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return set(file.attrs)
    except (OSError, KeyError, RuntimeError):  # damaged: `load_solution` says how
        return set()
