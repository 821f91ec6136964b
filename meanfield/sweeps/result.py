"""The result of a sweep of a configuration, as a file keeps it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.provided import FIGURES
from ..results.files import Contents, Result, contents_of, dataset_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

TIME = "t"


@dataclass(frozen=True, eq=False)
class Sweep(Result):
    """What `meanfield sweep` writes: `data` is the dataset that `mf.sweep` returns."""

    made_by = "sweep"

    data: "xr.Dataset"

    def contents(self) -> Contents:
        """What is kept."""
        return contents_of(self.data, {})

    @classmethod
    def made_of(cls, contents: Contents) -> "Sweep":
        """The sweep from what was kept."""
        return cls(dataset_of(contents)[0])

    @property
    def success(self) -> bool:
        """Whether all points were run."""
        return self.data.attrs["status"] == "finished"

    def is_scalar(self, name: Any) -> bool:
        """Whether a variable has one value for each run, or for each of its times."""
        return set(self.data[name].dims) - {TIME} == set(self.data.attrs["axes"])

    def at_the_end(self, name: str) -> "xr.DataArray":
        """The last values in time that are there: runs may end at different times."""
        variable = self.data[name]
        if TIME not in variable.dims:
            return variable
        there = variable.notnull()
        last = there.sizes[TIME] - 1 - there.isel({TIME: slice(None, None, -1)}).argmax(TIME)
        return variable.isel({TIME: last}).drop_vars(TIME, errors="ignore")

    def plot(self, kind: str = "order_parameter", **options) -> "Figure":
        """A variable at the end of each run, over one parameter or two; means of replicas.

        Options are `ax`, and `width` and `height` in inches.
        """
        return FIGURES["sweep"](self, kind, **options)
