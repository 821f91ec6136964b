"""Studies as NetCDF files: the run of densities, and the study as a group of the same file."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import StorageError
from ..core.files import write_result
from ..results.files import load
from ..results.solution import Solution

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["holds_study", "load_study", "save_study"]

GROUP = "study"
LISTS = ("distances", "functionals")


def save_study(data: "xr.Dataset", law: Solution, path: Path) -> Path:
    """Write both to `path`; an existing file is replaced atomically.

    Raises
    ------
    StorageError
        If there is no such folder, or it is not writable.
    """

    def write(temporary: Path) -> None:
        law.save(temporary)
        data.to_netcdf(temporary, mode="a", group=GROUP, engine="h5netcdf")

    return write_result(path, write)


def holds_study(path: Path) -> bool:
    """Whether a NetCDF file holds a study."""
    import h5netcdf

    try:
        with h5netcdf.File(path, "r") as file:
            return GROUP in file.groups
    except OSError:
        return False


def load_study(path: Path) -> tuple["xr.Dataset", Solution]:
    """What `save_study` wrote; raises StorageError for other files."""
    import xarray as xr

    law = load(path)
    if not holds_study(path):
        raise StorageError(f"{path} holds no study, but a run: use meanfield.load.")
    try:
        with xr.open_dataset(path, group=GROUP, engine="h5netcdf") as file:
            data = file.load()
    except (OSError, KeyError, ValueError) as error:
        raise StorageError(f"{path} holds no study that can be read: {error}") from error
    for key in LISTS:  # a file holds one name as a string, and none as an array of numbers
        data.attrs[key] = [str(name) for name in np.atleast_1d(data.attrs[key])]
    return data, law
