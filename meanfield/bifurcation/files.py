"""Bifurcation and phase diagrams as NetCDF files: a dataset with a header, and further groups."""

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import StorageError
from ..core.files import write_result
from ..core.forms import Reading
from ..core.kinds import build, describe
from ..models import Drift
from ..spaces import Geometry
from .bases import Harmonics
from .diagram import Diagram, SpecialPoint
from .equation import Family
from .phase_diagram import LOCI, Locus, PhaseDiagram, Tricritical
from .stationary import StationaryState

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["read_diagram", "read_phase_diagram", "write_diagram", "write_phase_diagram"]

FIELDS = [field.name for field in fields(SpecialPoint) if field.name != "state"]
SPECIALS, SAVED = "special_points", "saved"
DIAGRAM, PHASES = "meanfield_diagram", "meanfield_phase_diagram"  # names of headers


def write_diagram(diagram: Diagram, path: Path) -> Path:
    """Write a bifurcation diagram to `path`, atomically.

    Raises
    ------
    StorageError
        If there is no such folder, or it is not writable.
    """
    header = {
        "drift": _described(diagram.drift),
        "space": describe(diagram.geometry),
        "symmetry": diagram.symmetry,
        "parameter": diagram.parameter,
        "kappa": diagram.kappa,
        "ends": diagram.ends,
        "groups": [SPECIALS, SAVED],
    }
    tables = {SPECIALS: _specials(diagram), SAVED: _states(diagram, diagram.saved)}
    return _write(path, diagram.data, DIAGRAM, header, tables)


def read_diagram(path: Path) -> Diagram:
    """The bifurcation diagram of a file; raises StorageError for other files."""
    data, header, tables = _read(path, DIAGRAM, "bifurcation diagram")
    diagram = Diagram(
        data,
        [],
        header["ends"],
        [],
        _drift(header["drift"]),
        build(Geometry, header["space"]),
        header["symmetry"],
        header["parameter"],
        header["kappa"],
    )
    for row in _rows(tables[SPECIALS]):
        diagram.special_points.append(_special(row, _state(diagram, row)))
    diagram.saved.extend((int(row["branch"]), _state(diagram, row)) for row in _rows(tables[SAVED]))
    return diagram


def write_phase_diagram(diagram: PhaseDiagram, path: Path) -> Path:
    """Write a phase diagram to `path`, atomically; raises StorageError as `write_diagram`."""
    family = diagram.family
    header = {
        "drift": _described(family.drift),
        "parameter": family.name,
        "span": family.span,
        "dimension": int(family.basis.dimension),
        "degree": int(family.basis.degree),
        "tricritical": diagram.tricritical,
        "ends": diagram.ends,
        "groups": list(diagram.loci),
    }
    tables = {name: _curve(*curve) for name, curve in diagram.loci.items()}
    return _write(path, diagram.data, PHASES, header, tables)


def read_phase_diagram(path: Path) -> PhaseDiagram:
    """The phase diagram of a file; raises StorageError for other files."""
    data, header, tables = _read(path, PHASES, "phase diagram")
    data["curve"] = data.curve.astype("U")
    data.attrs["beta"] = [float(beta) for beta in data.attrs["beta"]]
    low, high = header["span"]
    basis = Harmonics(header["dimension"], 0, header["degree"])
    family = Family(_drift(header["drift"]), header["parameter"], (low, high), basis)
    corners = [Tricritical(*row) for row in header["tricritical"]]
    ends = {name: (low, high) for name, (low, high) in header["ends"].items()}
    loci = {
        name: (LOCI[name](family, float(table.max_step), **_fields(table)), table["z"].values)
        for name, table in tables.items()
    }
    return PhaseDiagram(data, corners, ends, family, loci)


def _write(
    path: Path,
    data: "xr.Dataset",
    name: str,
    header: dict[str, Any],
    tables: dict[str, "xr.Dataset"],
) -> Path:
    def fill(temporary: Path) -> None:
        data.assign_attrs({name: json.dumps(header)}).to_netcdf(temporary, engine="h5netcdf")
        for group, table in tables.items():
            table.to_netcdf(temporary, mode="a", group=group, engine="h5netcdf")

    return write_result(path, fill)


def _read(
    path: Path, name: str, what: str
) -> tuple["xr.Dataset", dict[str, Any], dict[str, "xr.Dataset"]]:
    """The data, the header, and the groups that it names."""
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="h5netcdf") as file:
            data = file.load()
        header = json.loads(data.attrs.pop(name))
        tables = {}
        for group in header["groups"]:
            with xr.open_dataset(path, group=group, engine="h5netcdf") as file:
                tables[group] = file.load()
    except (OSError, KeyError, ValueError) as error:
        raise StorageError(f"{path} holds no {what}: {error}") from error
    return data, header, tables


def _specials(diagram: Diagram) -> "xr.Dataset":
    """A row for each special point: its state, and its fields."""
    specials = diagram.special_points
    table = _states(diagram, [(special.branch, special.state) for special in specials])
    for name in FIELDS:
        column = np.array([getattr(special, name) for special in specials])
        table[name] = (("row", f"of_{name}")[: column.ndim], column)
    return table


def _special(row: dict[str, Any], state: StationaryState) -> SpecialPoint:
    found = {name: np.asarray(row[name]).tolist() for name in FIELDS}
    pairs = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
    return SpecialPoint(**(found | pairs), state=state)


def _states(diagram: Diagram, found: list[tuple[int, StationaryState]]) -> "xr.Dataset":
    """A row for each: its branch, the parameter, and its moments."""
    import xarray as xr

    states = [state for _, state in found]
    values = [
        s.kappa if diagram.kappa is None else float(s.model.drift.parameters[diagram.parameter])
        for s in states
    ]
    sizes = [len(state.legendre_moments) for state in states]
    moments = np.zeros((len(states), max(sizes, default=1)))
    for row, state in zip(moments, states, strict=True):
        row[: len(state.legendre_moments)] = state.legendre_moments
    return xr.Dataset(
        {
            "branch": ("row", np.array([branch for branch, _ in found], dtype=int)),
            "value": ("row", np.array(values, dtype=float)),
            "resolution": ("row", np.array([s.equation.degree for s in states], dtype=int)),
            "size": ("row", np.array(sizes, dtype=int)),
            "moments": (("row", "l"), moments),
        }
    )


def _state(diagram: Diagram, row: dict[str, Any]) -> StationaryState:
    path = diagram.path(int(row["resolution"]))
    moments = row["moments"][: int(row["size"])]
    return diagram.state(path, np.append(moments, path.coordinate(float(row["value"]))))


def _rows(table: "xr.Dataset") -> list[dict[str, Any]]:
    return [
        {str(name): values.values[i] for name, values in table.items()}
        for i in range(table.sizes["row"])
    ]


def _curve(locus: Locus, points: np.ndarray) -> "xr.Dataset":
    """Moments, log kappa and beta of every point, and the vectors that its curve is defined by."""
    import xarray as xr

    arrays = {name: ("l", values) for name, values in locus.vectors.items()}
    return xr.Dataset(
        {"z": (("point", "unknown"), points), **arrays}, attrs={"max_step": locus.max_step}
    )


def _fields(table: "xr.Dataset") -> dict[str, np.ndarray]:
    return {str(name): values.values for name, values in table.items() if name != "z"}


def _described(drift: Any) -> Any:
    """A drift as plain data, or the name of a kind of drift."""
    return drift.__name__ if isinstance(drift, type) else describe(drift)


def _drift(described: Any) -> Any:
    if isinstance(described, str):
        return Drift.kinds[described]
    return build(Drift, described, Reading(result=True))
