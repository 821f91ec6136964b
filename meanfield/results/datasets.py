"""Labelled datasets with a header of plain data, as NetCDF files: diagrams of all kinds."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import StorageError
from ..core.files import write_result
from ..core.kinds import describe

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["read_dataset", "write_dataset"]


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
        plain = data.attrs.pop(name)
        with xr.open_dataset(path, group=name, engine="h5netcdf") as file:
            arrays = file.load()
    except (OSError, KeyError, ValueError) as error:
        raise StorageError(f"{path} holds no {what}: {error}") from error
    return data, json.loads(
        plain, object_hook=lambda d: arrays[d["array"]].values if set(d) == {"array"} else d
    )
