"""Results as NetCDF files: solutions, and datasets with a header, such as diagrams.

A file of a solution holds its labelled arrays, and what `load` needs to give them back.

The attribute "meanfield" of a file is a header of plain data: the model as `describe` describes it,
what states are made of, options, status and provenance. Long arrays of the model are variables
of the file. The SHA-256 of all variables and of the header shows whether anything was altered.

It is written with h5netcdf and read as HDF5, so that neither waits for xarray to be imported.
"""

import json
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.checks import path_of
from ..core.errors import ConfigError, StorageError
from ..core.files import write_result
from ..core.forms import Reading
from ..core.identity import digest
from ..core.kinds import build, describe
from ..models.transformer import Transformer
from ..spaces import Geometry
from ..states import Start, State
from ..states.contract import Arrays
from .solution import Solution, observable_arrays, words

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 3
LIBRARIES = ("meanfield", "numpy", "scipy", "numba", "pyfftw", "xarray", "h5netcdf")
OTHERS = {"meanfield_diagram": "Diagram", "meanfield_phase_diagram": "PhaseDiagram"}  # by header
AS_THEY_ARE = ("status", "message", "stats", "rtol", "options")  # attributes of a solution
MODEL = "model."  # what the names of the model's arrays begin with
UNREADABLE = (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError, ConfigError)


def save(solution: Solution, path: Path) -> Path:
    """Write a solution to `path`; an existing file is replaced atomically.

    Raises
    ------
    StorageError
        If there is no such folder, it is not writable, or the disk is full.
    """
    return write_result(path, lambda temporary: _write(solution, temporary))


def _write(solution: Solution, path: Path) -> None:
    import h5netcdf

    state: Any = type(solution.final)
    long: dict[str, np.ndarray] = {}
    held = state.stacked(solution.states)
    measured = observable_arrays(solution)
    arrays = measured | held
    model = describe(solution.model, long)
    for name, values in long.items():
        dims = tuple(f"{MODEL}{name}_{axis}" for axis in range(values.ndim))
        arrays[MODEL + name] = dims, values
    plain = {
        "format": FORMAT,
        "state": state.__name__,
        "of": describe(solution.final.header()),
        "model": model,
        "held": list(held),
        "measured": list(measured),
        "observed": list(solution.stored.get("observed", {})),
        "t_events": [times.tolist() for times in solution.t_events],
        "provenance": solution.provenance,
        **{name: getattr(solution, name) for name in AS_THEY_ARE},
    }
    header = json.loads(json.dumps(plain))  # as it is read
    header["sha256"] = digest([header, arrays])
    with h5netcdf.File(path, "w") as file:
        file.attrs["Conventions"] = "CF-1.11"
        file.attrs["title"] = f"{state.__name__} under {solution.model!r}"
        file.attrs["source"] = "meanfield"
        file.attrs["references"] = "Rigollet, arXiv:2512.01868"
        file.attrs["meanfield"] = json.dumps(header)
        file.attrs["coordinates"] = " ".join(solution.model.parameters)
        for name, (dims, values) in arrays.items():
            for dim, size in zip(dims, values.shape, strict=True):
                if dim not in file.dimensions:
                    file.dimensions[dim] = size
            checked = {"fletcher32": True} if values.size > 1 else {}  # refused if altered
            variable = file.create_variable(name, dims, data=values, **checked)
            for attribute, text in words(name, state).items():
                variable.attrs[attribute] = text


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
    import h5py

    path = path_of("path", path)
    if path.is_dir():
        raise StorageError(f"{path} is a folder; expected a file that `save` wrote.")
    if not path.exists():
        raise StorageError(f"{path} does not exist (looked in {Path.cwd()}).")
    try:
        with h5py.File(path, "r") as file:
            other = next((OTHERS[name] for name in file.attrs if name in OTHERS), None)
            if other is None:
                header = json.loads(file.attrs["meanfield"])
                arrays = _variables(file)
    except UNREADABLE as error:
        raise _damaged(path, error) from error
    if other is not None:
        from .. import bifurcation

        return getattr(bifurcation, other).load(path)
    if header.get("format") != FORMAT:
        theirs = header.get("provenance", {}).get("versions", {}).get("meanfield", "unknown")
        raise StorageError(
            f"{path} has the format {header.get('format')} of meanfield {theirs}; this version "
            f"reads the format {FORMAT}."
        )
    try:
        if header.pop("sha256") != digest([header, arrays]):
            raise ValueError("its numbers were altered")
        return _solution(header, arrays)
    except StorageError:
        raise
    except UNREADABLE as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> StorageError:
    return StorageError(
        f"{path} is not an intact result of meanfield ({error!r}). Expected a NetCDF file that "
        "`save` wrote."
    )


def _variables(file) -> Arrays:
    """All variables of a file: the names of their axes, and their values."""
    found: Arrays = {}
    variables = {name: entry for name, entry in file.items() if hasattr(entry, "dims")}
    for name, variable in variables.items():  # not groups, as of a study
        if b"but not a netCDF variable" not in variable.attrs.get("NAME", b""):
            scales = [] if variable.is_scale else variable.dims
            dims = tuple(scale[0].name.lstrip("/") for scale in scales)
            found[name] = (name,) if variable.is_scale else dims, variable[...]
    return found


def _solution(header: dict[str, Any], arrays: Arrays) -> Solution:
    """The solution with this header and these arrays."""
    state: Any = Start.kinds.get(header["state"])
    if state is None or not issubclass(state, State):
        raise StorageError(
            f"Its states are {header['state']}, which is not known here: import the module "
            "that defines them."
        )
    long = {n.removeprefix(MODEL): v for n, (_, v) in arrays.items() if n.startswith(MODEL)}
    reading = Reading(arrays=long, result=True)
    model = build(Transformer, header["model"], reading)
    rest = {name: entry for name, entry in arrays.items() if not name.startswith(MODEL)}
    held = {name: rest[name] for name in header["held"]}
    kept = {}
    if reading.lost:  # which cannot be measured again
        kept["observables"] = {name: rest[name] for name in header["measured"]}
    kept["observed"] = {name: rest[name] for name in header["observed"]}
    return Solution(
        t=rest["t"][1],
        states=tuple(state.unstacked(held, _made_of(header["of"]))),
        model=model,
        t_events=[np.array(times) for times in header["t_events"]],
        stored={"provenance": header["provenance"], **kept},
        **{name: header[name] for name in AS_THEY_ARE},
    )


def _made_of(of: dict[str, Any]) -> dict[str, Any]:
    """The header of a state: plain data, and its space."""
    spaces = {name for name, value in of.items() if isinstance(value, dict) and "kind" in value}
    return {n: build(Geometry, value) if n in spaces else value for n, value in of.items()}


# Where a result comes from -----------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Versions of Python, of this package and of the libraries that results depend on."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    from ..lowlevel.fourier import fftw_version

    return {**found, "fftw": fftw_version()}


def provenance(solution: Solution) -> dict[str, Any]:
    """Model, options, versions, machine and command line of a run, as plain data."""
    return {
        "model": describe(solution.model),
        "options": solution.options,
        "versions": versions(),
        "machine": platform.machine(),
        "command_line": sys.argv,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **solution.stored.get("extra", {}),
    }


# Diagrams of all kinds ---------------------------------------------------------------------------


def write_dataset(path: Path, name: str, data: "xr.Dataset", header: Mapping[str, Any]) -> Path:
    """Write a dataset, atomically, and a header as its attribute `name`.

    Parameters
    ----------
    header : mapping
        Plain data and arrays; long arrays are variables of the group `name`.

    Raises
    ------
    StorageError
        If there is no such folder, or it is not writable.
    """
    import xarray as xr

    arrays: dict[str, Any] = {}
    plain = {name: json.dumps(describe(header, arrays))}
    long = {key: ([f"{key}_{i}" for i in range(v.ndim)], v) for key, v in arrays.items()}

    def fill(temporary: Path) -> None:
        data.assign_attrs(plain).to_netcdf(temporary, engine="h5netcdf")
        xr.Dataset(long).to_netcdf(temporary, mode="a", group=name, engine="h5netcdf")

    return write_result(path, fill)


def read_dataset(path: Path, name: str, what: str) -> tuple["xr.Dataset", dict[str, Any]]:
    """The dataset of a file and its header, with arrays; raises StorageError for other files."""
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="h5netcdf") as file:
            data = file.load()
        with xr.open_dataset(path, group=name, engine="h5netcdf") as file:
            arrays = file.load()
        header = json.loads(
            data.attrs.pop(name),
            object_hook=lambda d: arrays[d["array"]].values if set(d) == {"array"} else d,
        )
    except (OSError, KeyError, ValueError) as error:
        raise StorageError(f"{path} holds no {what}: {error}") from error
    return data, header
