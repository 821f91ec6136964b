"""Bifurcation diagrams as NetCDF files: points, and groups of special points and saved states."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.atomic import write_result
from ..core.errors import StorageError
from ..core.forms import Reading
from ..core.kinds import build, describe
from ..models import Drift
from ..spaces import Geometry

if TYPE_CHECKING:
    import xarray as xr

    from .diagram import Diagram

__all__ = ["read", "write"]

SPECIALS, SAVED = "special_points", "saved"
HEADER = "meanfield_diagram"


def write(diagram: "Diagram", path: Path) -> Path:
    """Write a diagram to `path`, atomically.

    Raises
    ------
    StorageError
        If there is no such folder, or it is not writable.
    """
    header = {
        "drift": _described(diagram.drift),
        "space": describe(diagram.geometry),
        "symmetry": diagram.symmetry,
        "kappa": diagram.kappa,
        "ends": diagram.ends,
    }
    tables = {
        SPECIALS: _specials(diagram),
        SAVED: _states(diagram, diagram.saved),
    }

    def fill(temporary: Path) -> None:
        data = diagram.data.assign_attrs({HEADER: json.dumps(header)})
        data.to_netcdf(temporary, engine="h5netcdf")
        for group, table in tables.items():
            table.to_netcdf(temporary, mode="a", group=group, engine="h5netcdf")

    return write_result(path, fill)


def read(path: Path) -> tuple["xr.Dataset", dict[str, Any], list[dict], list[dict]]:
    """The data, the header with drift and geometry, and rows of special points and saved states."""
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="h5netcdf") as file:
            data = file.load()
        header = json.loads(data.attrs.pop(HEADER))
        groups = []
        for group in (SPECIALS, SAVED):
            with xr.open_dataset(path, group=group, engine="h5netcdf") as file:
                groups.append(file.load())
    except (OSError, KeyError, ValueError) as error:
        raise StorageError(f"{path} holds no bifurcation diagram: {error}") from error
    found = header | {
        "drift": _drift(header["drift"]),
        "geometry": build(Geometry, header["space"]),
    }
    del found["space"]
    specials, saved = ([_row(g, i) for i in range(g.sizes["row"])] for g in groups)
    return data, found, specials, saved


def _specials(diagram: "Diagram") -> "xr.Dataset":
    specials = diagram.special_points
    table = _states(diagram, [(s.branch, s.state) for s in specials])
    table["value"] = ("row", np.array([s.value for s in specials], dtype=float))
    for name in ("kind", "status", "character"):
        table[name] = ("row", np.array([getattr(s, name) for s in specials], dtype="U32"))
    for name in ("degree", "order"):
        table[name] = ("row", np.array([getattr(s, name) for s in specials], dtype=int))
    ends = np.array([s.interval for s in specials], dtype=float).reshape(-1, 2)
    coefficients = np.array([s.coefficients for s in specials], dtype=float).reshape(-1, 2)
    for name, column in zip(("linear", "quadratic"), coefficients.T, strict=True):
        table[name] = ("row", column)
    table["low"], table["high"] = ("row", ends[:, 0]), ("row", ends[:, 1])
    return table


def _states(diagram: "Diagram", found: list) -> "xr.Dataset":
    import xarray as xr

    branches, states = [branch for branch, _ in found], [state for _, state in found]
    beta = diagram.parameter == "beta"
    values = [float(s.model.drift.beta) if beta else s.kappa for s in states]
    degrees = [state.equation.degree for state in states]
    size = max((len(state.moments) for state in states), default=1)
    moments = np.zeros((len(states), size))
    for row, state in zip(moments, states, strict=True):
        row[: len(state.moments)] = state.moments
    return xr.Dataset(
        {
            "branch": ("row", np.array(branches, dtype=int)),
            "value": ("row", np.array(values, dtype=float)),
            "resolution": ("row", np.array(degrees, dtype=int)),
            "size": ("row", np.array([len(state.moments) for state in states], dtype=int)),
            "a": (("row", "l"), moments),
        }
    )


def _row(table: "xr.Dataset", i: int) -> dict[str, Any]:
    row = {str(name): values.values[i] for name, values in table.items()}
    return row | {"a": row["a"][: int(row["size"])]}


def _described(drift: Any) -> Any:
    """A drift as plain data, or the name of a kind of drift."""
    return drift.__name__ if isinstance(drift, type) else describe(drift)


def _drift(described: Any) -> Any:
    if isinstance(described, str):
        return Drift.kinds[described]
    return build(Drift, described, Reading(result=True))
