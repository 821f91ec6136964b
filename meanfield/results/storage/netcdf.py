"""Solutions as NetCDF files: the labelled arrays, and what `load` needs to give them back.

Written with h5netcdf and read as HDF5, so that neither waits for xarray to be imported. Padding
with zeros to a common degree loses nothing: `load` cuts each state back to its own degree.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from ...core.atomic import write_result
from ...core.checks import path_of
from ...core.errors import StorageError
from ...spaces import Circle, Geometry, Sphere, Zonal
from ...spaces.characteristics import Characteristics
from ...spaces.density import Density
from ...states import Equiangular, Gaussian, Gram, Tokens
from ..labelled import ATTRIBUTES, labelled_arrays
from ..solution import Solution
from .models import model_of

__all__ = ["load", "save"]

FORMAT = 1
STATES_WITH_FUNCTIONS = "x masses radii inner_product logit n mean covariance root".split()
SEALED = (
    "t degree coefficient_re coefficient_im coordinates masses half limit x radii inner_product "
    "logit radius n mean covariance root"
).split()


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

    arrays = labelled_arrays(solution)
    header = {**_header(solution), "sha256": _digest({k: v for k, (_, v) in arrays.items()})}
    with h5netcdf.File(path, "w") as file:
        file.attrs["Conventions"] = "CF-1.11"
        file.attrs["title"] = f"{type(solution.final).__name__} under {solution.model!r}"
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
            for attribute, text in ATTRIBUTES.get(name, {}).items():
                variable.attrs[attribute] = text


def _header(solution: Solution) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "state": type(solution.final).__name__,
        **_space(solution.final),
        "status": solution.status,
        "message": solution.message,
        "stats": solution.stats,
        "rtol": solution.rtol,
        "options": solution.options,
        "t_events": [times.tolist() for times in solution.t_events],
        "provenance": solution.provenance,
    }


def _space(state) -> dict[str, Any]:
    if isinstance(state, Density | Characteristics):
        return {"geometry": state.geometry.describe(), "degree": state.geometry.degree}
    return {"tokens": state.describe()}


def _digest(arrays) -> str:
    """Of what `load` reads: the library's own checksums do not cover where a chunk lies."""
    digest = hashlib.sha256()
    for name in SEALED:
        if name in arrays:
            values = np.ascontiguousarray(arrays[name][...])
            digest.update(f"{name}{values.shape}{values.dtype.str}".encode())
            digest.update(values.tobytes())
    return digest.hexdigest()


def load(path: str | Path) -> Solution:
    """Read a solution that `Solution.save` wrote; states come back bit for bit.

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
            header = json.loads(file.attrs["meanfield"])
            if header["format"] > FORMAT:
                raise StorageError(
                    f"{path} was written by a later version of meanfield "
                    f"({header['provenance']['versions']['meanfield']}); update to read it."
                )
            if header.get("sha256", digest := _digest(file)) != digest:
                raise ValueError("its numbers were altered")
            return _solution(header, file)
    except StorageError:
        raise
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        raise StorageError(
            f"{path} is not an intact result of meanfield ({error!r}). Expected a NetCDF file "
            "that `save` wrote."
        ) from error


def _solution(header: dict[str, Any], file) -> Solution:
    """The solution in an open file."""
    states: list[Any]
    match header.get("state", "Density"):
        case "Density":
            states = _densities(header, file)
        case "Characteristics":
            states = _characteristics(header, file)
        case "Tokens":
            states = _tokens(header, file)
        case "Gram":
            products, masses = file["inner_product"][...], file["masses"][...]
            states = [Gram.computed(G, masses) for G in products]
        case "Equiangular":
            n, pairs = file["n"][...], zip(file["logit"][...], file["radius"][...], strict=True)
            states = [Equiangular.computed(n, *pair) for pair in pairs]
        case "Gaussian":
            laws = zip(*(file[name][...] for name in ("mean", "root", "covariance")), strict=True)
            states = [Gaussian.computed(*law) for law in laws]
        case unknown:
            raise StorageError(f"its states are unknown to this version: {unknown}")
    return Solution(
        t=file["t"][...],
        states=tuple(states),
        model=model_of(header["provenance"]["model"]),
        t_events=[np.array(times) for times in header["t_events"]],
        stored={"provenance": header["provenance"], **_kept_observables(header, file)},
        **{name: header[name] for name in ("status", "message", "stats", "rtol", "options")},
    )


def _densities(header: dict[str, Any], file) -> list[Density]:
    degrees = file["degree"][...].astype(int)
    common = _geometry(header["geometry"], int(degrees.max()))
    coefficients = np.empty(file["coefficient_re"].shape, dtype=common.dtype)
    coefficients.real = file["coefficient_re"][...]
    if common.dtype.kind == "c":
        coefficients.imag = file["coefficient_im"][...]
    return [
        Density(common.with_degree(degree), common.resample(row, degree))
        for degree, row in zip(degrees, coefficients, strict=True)
    ]


def _characteristics(header: dict[str, Any], file) -> list[Characteristics]:
    fixed = _geometry(header["geometry"], header["degree"]), file["limit"][...]
    masses, halves = file["masses"][...], list(file["half"][...] == 1)
    return [
        Characteristics.of_nodes(*fixed, row, masses, halves) for row in file["coordinates"][...]
    ]


def _tokens(header: dict[str, Any], file) -> list[Tokens]:
    points, on_sphere = file["x"][...], header["tokens"]["on_sphere"]
    masses = file["masses"][...]
    if masses.ndim < points.ndim - 1:
        masses = [masses] * len(points)
    radii = file["radii"][...] if "radii" in file else [None] * len(points)
    return [
        Tokens(*state, on_sphere=on_sphere) for state in zip(points, masses, radii, strict=True)
    ]


def _geometry(described: str | dict[str, Any], degree: int) -> Geometry:
    """The space a file describes; the first files had its name alone."""
    if isinstance(described, str):
        described = {"kind": described}
    match described:
        case {"kind": "Circle"}:
            return Circle(degree)
        case {"kind": "Sphere"}:
            return Sphere(degree)
        case {"kind": "Zonal", "dimension": dimension}:
            return Zonal(dimension, degree)
    raise StorageError(f"its geometry is unknown to this version: {described}")


def _kept_observables(header: dict[str, Any], file) -> dict[str, Any]:
    """Observables as they were saved, where the model has a function that files do not hold."""
    if '"callable"' not in json.dumps(header["provenance"]["model"]):
        return {}
    arrays = {}
    for name, variable in file.items():
        phantom = b"but not a netCDF variable" in variable.attrs.get("NAME", b"")
        if name not in STATES_WITH_FUNCTIONS and not phantom:
            scales = [] if variable.is_scale else variable.dims
            dims = tuple(scale[0].name.lstrip("/") for scale in scales)
            arrays[name] = (name,) if variable.is_scale else dims, variable[...]
    return {"observables": arrays}
