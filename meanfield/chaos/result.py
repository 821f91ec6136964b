"""The result of a study: labelled arrays, and the powers of n fitted to them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.checks import path_of
from ..results.solution import Solution
from .experiment import Experiment
from .rates import Rate, rate_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["Study"]

SEEN = 3.0  # standard errors


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Distances of n tokens from the mean field, for several n, times and replicas.

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
        for name in experiment.functionals:
            arrays[f"limit of {name}"] = ("t", experiment.limits(name))
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
        for name in filter(self.data.__contains__, [*self.data.attrs["distances"], "coupling"]):
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
        """The power of n fitted to the mean of a distance, or of "coupling", at the last time or t.

        Raises
        ------
        ValueError
            For other names, and for times outside those of the study.
        """
        return rate_of(self.data.n.values, self._at(name, t))

    def weak_rate(self, name: str, t: float | None = None) -> Rate:
        """The power of n fitted to the weak error E F(mu^n) - F(mu) of a functional F.

        Sizes whose weak error is below 3 standard errors are left out. The rate is nan if fewer
        than two sizes are left or their signs differ; more replicas help.

        Raises
        ------
        ValueError
            For other names, and for times outside those of the study.
        """
        if name not in self.data.attrs["functionals"]:
            known = ", ".join(self.data.attrs["functionals"]) or "none"
            raise ValueError(f"Functionals of this study are {known}; got {name!r}.")
        errors = self._at(name, t) - float(self._selected(f"limit of {name}", t))
        return rate_of(self.data.n.values, errors, seen=SEEN)

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
        """A study from its file; `meanfield.load` of the same file returns the densities alone."""
        from .files import load_study

        return cls(*load_study(path_of("path", path)))

    @staticmethod
    def is_in(path: str | Path) -> bool:
        """Whether a file of the package holds a study."""
        from .files import holds_study

        return holds_study(path_of("path", path))

    def _at(self, name: str, t: float | None) -> np.ndarray:
        names = [str(key) for key, table in self.data.items() if "replica" in table.dims]
        if name not in names:
            raise ValueError(f"This study has {', '.join(names)}; got {name!r}.")
        return self._selected(name, t).transpose("n", "replica").values

    def _selected(self, name: str, t: float | None) -> "xr.DataArray":
        """A table at the time nearest to t, by default the last."""
        table, times = self.data[name], self.data.t.values
        if t is None:
            return table.isel(t=-1)
        margin = 1e-9 * times[-1]
        if not times[0] - margin <= t <= times[-1] + margin:
            raise ValueError(f"Times of this study are {times[0]:g} to {times[-1]:g}; got t = {t}.")
        return table.sel(t=t, method="nearest")
