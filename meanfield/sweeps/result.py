"""The result of a sweep of a configuration, as a file keeps it."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.provided import FIGURES
from ..results.files import Interruptible

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

TIME_AXIS = "t"


@dataclass(frozen=True, eq=False)
class Sweep(Interruptible):
    """The result of `meanfield sweep`, for files and figures.

    Attributes
    ----------
    data : xarray.Dataset
        The dataset that `mf.sweep` returns.
    """

    made_by = "sweep"

    def is_scalar(self, name: Hashable) -> bool:
        """Whether a variable has one value per run, or per run and time."""
        return set(self.data[name].dims) - {TIME_AXIS} == set(self.data.attrs["axes"])

    def at_the_end(self, name: str) -> "xr.DataArray":
        """The last available values in time; runs may end at different times."""
        variable = self.data[name]
        if TIME_AXIS not in variable.dims:
            return variable
        backwards = variable.isel({TIME_AXIS: slice(None, None, -1)})
        last = backwards.isel({TIME_AXIS: backwards.notnull().argmax(TIME_AXIS)})
        return last.drop_vars(TIME_AXIS, errors="ignore")

    def plot(self, kind: str = "order_parameter", **options: Any) -> "Figure":
        """A variable at the end of each run, over one parameter or two; means of replicas.

        Options are `ax`, and `width` and `height` in inches.
        """
        return FIGURES["sweep"](self, kind, **options)
