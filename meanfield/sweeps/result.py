"""The result of a sweep of a configuration, as a file keeps it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..results.files import Contents, Result, contents_of, dataset_of

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Sweep(Result):
    """What `meanfield sweep` writes: `data` is the dataset that `mf.sweep` returns."""

    data: "xr.Dataset"

    def contents(self) -> Contents:
        return contents_of(self.data, {})

    @classmethod
    def made_of(cls, contents: Contents) -> "Sweep":
        return cls(dataset_of(contents)[0])

    @property
    def success(self) -> bool:
        """Whether all points were run."""
        return self.data.attrs["status"] == "finished"
