"""The result of a study: labelled arrays, and the rates that they have."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import path_of
from ..solution import Solution
from .experiment import Experiment
from .rates import Rate, rate_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["Study"]


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """How far n tokens were from the mean field.

    Attributes
    ----------
    data : xarray.Dataset
        On (n, t, replica): each distance, its "floor of ...", "coupling" and "coupling up to
        rotation", each functional; on t: the "limit of ..." each functional. Attributes: the model,
        dt, the seed and the status.
    law : Solution
        The densities.
    """

    data: "xr.Dataset"
    law: Solution

    @classmethod
    def of(
        cls, experiment: Experiment, sizes: list[int], found: dict[str, np.ndarray], status: str
    ) -> "Study":
        """From tables (sizes, times, replicas) by name."""
        import xarray as xr

        arrays: dict[str, Any] = {
            name: (("n", "t", "replica"), table) for name, table in found.items()
        }
        for name, value in experiment.functionals.items():
            limits = [float(np.asarray(value(law))) for law in experiment.laws]
            arrays[f"limit of {name}"] = ("t", np.array(limits))
        attributes = {
            "model": repr(experiment.model),
            "seed": experiment.seed,
            "dt": np.nan if experiment.dt is None else experiment.dt,
            "distances": list(experiment.distances),
            "functionals": list(experiment.functionals),
            "status": status,
        }
        coordinates = {"n": sizes, "t": experiment.times}
        return cls(xr.Dataset(arrays, coordinates, attributes), experiment.law)

    def __repr__(self) -> str:
        left = "" if self.success else ", INTERRUPTED: some replicas are missing"
        lines = [f"Study of {self.data.attrs['model']}{left}"]
        last = float(self.data.t[-1])
        for name in (
            *self.data.attrs["distances"],
            *(["coupling"] if "coupling" in self.data else []),
        ):
            lines.append(f"  {name:10} at t = {last:g}: {self.rate(name)!r}")
        return "\n".join(lines)

    @property
    def status(self) -> str:
        """ "finished", or "interrupted"."""
        return self.data.attrs["status"]

    @property
    def success(self) -> bool:
        """Whether all replicas were run."""
        return self.status == "finished"

    def rate(self, name: str, t: float | None = None) -> Rate:
        """The rate in n of the mean of a distance, or of "coupling", at the last time or at t."""
        return rate_of(self.data.n.values, self._at(name, t))

    def weak_rate(self, name: str, t: float | None = None) -> Rate:
        """The rate in n of E F(mu^n) - F(mu) for a functional F."""
        limit = self.data[f"limit of {name}"]
        limit = limit.isel(t=-1) if t is None else limit.sel(t=t, method="nearest")
        return rate_of(self.data.n.values, self._at(name, t) - float(limit))

    def plot(self, **options) -> "Figure":
        """Distances against n, with rates and floor, and against time: `plotting.rates`."""
        from ..plotting import rates

        return rates(self, **options)

    def save(self, path: str | Path) -> Path:
        """Write the study and its densities to a NetCDF file, atomically."""
        from .files import save_study

        return save_study(self.data, self.law, path_of("path", path))

    @classmethod
    def load(cls, path: str | Path) -> "Study":
        """A study from its file; `load` of the same file gives the densities alone."""
        from .files import load_study

        return cls(*load_study(path_of("path", path)))

    @staticmethod
    def is_in(path: str | Path) -> bool:
        """Whether a file of the package holds a study."""
        from .files import holds_study

        return holds_study(path_of("path", path))

    def _at(self, name: str, t: float | None) -> np.ndarray:
        table = self.data[name]
        table = table.isel(t=-1) if t is None else table.sel(t=t, method="nearest")
        return table.transpose("n", "replica").values
