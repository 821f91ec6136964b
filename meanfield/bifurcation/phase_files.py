"""Phase diagrams as NetCDF files: the curves, and a group for each that was followed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.atomic import write_result
from ..core.errors import StorageError
from ..models import SA, USA
from .family import Family
from .harmonics import Harmonics
from .loci import Folds, Locus, Transitions
from .tricritical import Tricritical

if TYPE_CHECKING:
    import xarray as xr

    from .phase_diagram import PhaseDiagram

__all__ = ["HEADER", "read", "write"]

HEADER = "meanfield_phase_diagram"
DRIFTS = {drift.__name__: drift for drift in (USA, SA)}


def write(diagram: "PhaseDiagram", path: Path) -> Path:
    """Write a phase diagram to `path`, atomically.

    Raises
    ------
    StorageError
        If there is no such folder, or it is not writable.
    """
    basis = diagram.family.basis
    header = {
        "drift": diagram.family.drift.__name__,
        "dimension": int(basis.dimension),
        "degree": int(basis.degree),
        "tricritical": diagram.tricritical,
        "ends": diagram.ends,
        "followed": list(diagram.loci),
    }
    tables = {name: _table(*curve) for name, curve in diagram.loci.items()}

    def fill(temporary: Path) -> None:
        data = diagram.data.assign_attrs({HEADER: json.dumps(header)})
        data.to_netcdf(temporary, engine="h5netcdf")
        for group, table in tables.items():
            table.to_netcdf(temporary, mode="a", group=group, engine="h5netcdf")

    return write_result(path, fill)


def read(path: Path) -> tuple:
    """The fields of a `PhaseDiagram`, in their order; raises StorageError for other files."""
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="h5netcdf") as file:
            data = file.load()
        header = json.loads(data.attrs.pop(HEADER))
        tables = {}
        for group in header["followed"]:
            with xr.open_dataset(path, group=group, engine="h5netcdf") as file:
                tables[group] = file.load()
    except (OSError, KeyError, ValueError) as error:
        raise StorageError(f"{path} holds no phase diagram: {error}") from error
    data["curve"] = data.curve.astype("U")
    data.attrs["beta"] = [float(b) for b in data.attrs["beta"]]
    family = Family(DRIFTS[header["drift"]], Harmonics(header["dimension"], 0, header["degree"]))
    corners = [Tricritical(*row) for row in header["tricritical"]]
    ends = {name: (low, high) for name, (low, high) in header["ends"].items()}
    loci = {name: _locus(name, family, table) for name, table in tables.items()}
    return data, corners, ends, family, loci


def _table(locus: Locus, points: np.ndarray) -> "xr.Dataset":
    """Moments, log kappa and beta of every point; of folds also the vector they were found by."""
    import xarray as xr

    table = xr.Dataset({"z": (("point", "unknown"), points)}, attrs={"max_step": locus.max_step})
    if isinstance(locus, Folds):
        table["null"] = ("l", locus.null)
    return table


def _locus(name: str, family: Family, table: "xr.Dataset") -> tuple[Locus, np.ndarray]:
    step = float(table.attrs["max_step"])
    if name == "fold":
        return Folds(family, table["null"].values, step), table["z"].values
    return Transitions(family, step), table["z"].values
