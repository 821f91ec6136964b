"""The result of a study: labelled arrays, and powers of n fitted to their means over replicas.

Powers are fitted by least squares of logarithms, with bootstrap intervals.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.checks import real, require
from ..core.forms import nearest
from ..core.provided import FIGURES
from ..results.files import Contents, Interruptible, contents_of, dataset_of
from ..results.solution import Solution
from .experiment import Experiment
from .measurements import measurements_on

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

LAW_GROUP = "law"  # the group of a file in which the densities are
SIGNIFICANT = 3.0  # standard errors
RATE_RESAMPLES = 1000
RATE_CONFIDENCE = 0.95
RATE_ROUNDING = 1e-12


class Rate(NamedTuple):
    """D ~ constant * n^exponent.

    Attributes
    ----------
    exponent, constant : float
        nan where no rate could be fitted.
    interval : (float, float)
        A confidence interval of the exponent, at the level 0.95.
    """

    exponent: float
    constant: float
    interval: tuple[float, float]

    def __repr__(self) -> str:
        if np.isnan(self.exponent):
            return "Rate(none: needs two sizes whose means are significant and of one sign)"
        low, high = self.interval
        return f"Rate({self.constant:.3g} n^{self.exponent:.3f}, [{low:.3f}, {high:.3f}])"


@dataclass(frozen=True, eq=False, repr=False)
class Study(Interruptible):
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

    made_by = "propagation_of_chaos"
    takes_model = True

    law: Solution

    @classmethod
    def of(
        cls, experiment: Experiment, sizes: list[int], tables: dict[str, np.ndarray], status: str
    ) -> "Study":
        """The study with these tables (sizes, times, replicas) by name."""
        import xarray as xr

        arrays: dict[str, Any] = {
            name: (("n", "t", "replica"), table) for name, table in tables.items()
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
        names = self.data.attrs["functionals"]
        fits = isinstance(name, str) and name in names
        require("name", name, f"a functional of this study, {', '.join(names) or 'none'}", fits)
        errors = self._at(name, t) - float(self._selected(f"limit of {name}", t))
        return rate_of(self.data.n.values, errors, least_errors=SIGNIFICANT)

    def plot(self, kind: str = "rates", **options: Any) -> "Figure":
        """Distances against n, with rates and floor, and against time: `plotting.rates`.

        Of other kinds a figure of the densities, `law`.
        """
        rated = isinstance(kind, str) and kind == "rates"
        return FIGURES["rates"](self, **options) if rated else self.law.plot(kind, **options)

    def contents(self) -> Contents:
        """The data of a file: the tables, and the densities in a group."""
        study, law = contents_of(self.data, {}), self.law.contents().inside(LAW_GROUP)
        return Contents(study.header | law.header, study.arrays | law.arrays, law.long,
                        study.words | law.words)  # fmt: skip

    @classmethod
    def made_of(cls, contents: Contents) -> "Study":
        """The study from the data of a file."""
        return cls(dataset_of(contents)[0], Solution.made_of(contents.below(LAW_GROUP)))

    def _at(self, name: str, t: float | None) -> np.ndarray:
        """A table with replicas, (sizes, replicas), at the time nearest to t.

        Raises ValueError for other names, with the distance to ask for if the space has it.
        """
        names = [str(key) for key, table in self.data.items() if "replica" in table.dims]
        is_known = isinstance(name, str) and name in names
        final: Any = self.law.final
        measurements = measurements_on(final.space)
        distances = measurements.distances if measurements is not None else {}
        advice = nearest(name, names, "'{}'").replace("; did", "Did")
        if isinstance(name, str) and name in distances:
            advice = f'Pass distances=["{name}"] to measure it.'
        require("name", name, f"one of {', '.join(names)}", is_known, advice=advice)
        return self._selected(name, t).transpose("n", "replica").values

    def _selected(self, name: str, t: float | None) -> "xr.DataArray":
        """A table at the time nearest to t, by default the last."""
        table, times = self.data[name], self.data.t.values
        if t is None:
            return table.isel(t=-1)
        margin = 1e-9 * times[-1]
        expected = f"from {times[0]:g} to {times[-1]:g}, the times of this study"
        t = real("t", t, expected, lambda t: times[0] - margin <= t <= times[-1] + margin)
        return table.sel(t=t, method="nearest")


def rate_of(
    sizes: np.ndarray, values: np.ndarray, *, rng: int = 0, least_errors: float = 0.0
) -> Rate:
    """The power of n fitted to the means of values (sizes, replicas), without those that are nan.

    The weight of each size is the precision of the logarithm of its mean. The interval is that of
    1000 bootstrap samples of the replicas, widened by Student's quantile for few replicas. Sizes
    without replicas, or whose mean is below `least_errors` standard errors, are left out. The
    result is nan for fewer than two sizes, if a mean is 0, and if means have different signs.
    """
    generator = np.random.default_rng(rng)
    rows = {n: row[np.isfinite(row)] for n, row in zip(sizes, values, strict=True)}
    rows = {
        n: row
        for n, row in rows.items()
        if row.size and abs(row.mean()) >= (least_errors and least_errors * _error(row))
    }
    means = np.array([row.mean() for row in rows.values()])
    if len(rows) < 2 or not (np.all(means > 0) or np.all(means < 0)):
        return Rate(np.nan, np.nan, (np.nan, np.nan))
    x = np.log(list(rows))
    weights = np.array([np.abs(row.mean()) / _error(row) for row in rows.values()])
    sizes_of = [(RATE_RESAMPLES, len(row)) for row in rows.values()]
    indices = [generator.integers(size[1], size=size) for size in sizes_of]
    draws = np.stack([row[i].mean(axis=1) for row, i in zip(rows.values(), indices, strict=True)])
    exponent, logarithm = np.polyfit(x, np.log(np.abs(means)), 1, w=weights)
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(draws))
    logs = logs[:, np.isfinite(logs).all(axis=0)]
    powers = np.polyfit(x, logs, 1, w=weights)[0] if logs.size else np.array([np.nan])
    low, high = np.quantile(powers, [(1 - RATE_CONFIDENCE) / 2, (1 + RATE_CONFIDENCE) / 2])
    factor, power = _widening(min(map(len, rows.values()))), float(exponent)
    interval = (power - factor * (power - float(low)), power + factor * (float(high) - power))
    return Rate(power, float(np.exp(logarithm)), interval)


def _widening(replicas: int) -> float:
    """The factor for bootstrap intervals of few replicas: Student's quantile, unbiased variance."""
    from scipy.special import stdtrit

    if replicas < 2:
        return float("inf")
    student = stdtrit(replicas - 1, (1 + RATE_CONFIDENCE) / 2) / 1.959964
    return float(student * (replicas / (replicas - 1)) ** 0.5)


def _error(row: np.ndarray) -> float:
    """The standard error of a mean: its size for one replica, and at least rounding."""
    size = float(np.abs(row.mean()))
    error = float(row.std(ddof=1) / len(row) ** 0.5) if len(row) > 1 else size
    return max(error, RATE_ROUNDING * size)
