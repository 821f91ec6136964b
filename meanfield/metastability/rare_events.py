"""Results of measured passages: estimates with errors, by splitting and by plain ensembles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ..core.checks import finite, generator, require
from ..results.files import Interruptible

CONFIDENCE = 0.95
KS_RESAMPLES = 2000
CENSORED, AT_TARGET, AT_SOURCE = 0, 1, -1  # where a trajectory was at its end


class MeanEstimate(NamedTuple):
    """A mean with its standard error and a confidence interval at the level 0.95.

    Attributes
    ----------
    value, error : float
    interval : (float, float)
        By Student's quantile, >= 0.
    samples : int
        Number of independent samples.
    """

    value: float
    error: float
    interval: tuple[float, float]
    samples: int

    @classmethod
    def of(cls, value: float, error: float, samples: int) -> "MeanEstimate":
        """The estimate with the interval of so many samples."""
        from scipy.special import stdtrit

        value, error = float(value), float(error)
        wide = float(stdtrit(samples - 1, (1 + CONFIDENCE) / 2)) * error if samples > 1 else np.inf
        return cls(value, error, (max(value - wide, 0.0), value + wide), samples)

    @classmethod
    def of_mean(cls, samples: np.ndarray) -> "MeanEstimate":
        """The mean of independent samples."""
        count = len(samples)
        error = samples.std(ddof=1) / count**0.5 if count > 1 else np.inf
        return cls.of(samples.mean(), error, count)

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.value:.4g} +- {self.error:.2g}, [{low:.4g}, {high:.4g}]"


@dataclass(frozen=True, eq=False, repr=False)
class _MeasuredPassages(Interruptible):
    """Passages of tokens, measured in independent ensembles."""

    method: ClassVar[str]

    def _title(self) -> str:
        about = self.data.attrs
        left = "" if self.success else ", INTERRUPTED"
        return f"{type(self).__name__} of {about['model']}, {about['tokens']}{left}"


class SplittingStudy(_MeasuredPassages):
    """Probability and mean time of a passage, by adaptive multilevel splitting.

    Attributes
    ----------
    data : xarray.Dataset
        On "repetition": the estimate "probability"; means of the "reactive_time" from the start of
        a replica to the target, of the "loop_time", and of the "first_time" to the entrance, or to
        the target before the source by a share "direct" of trajectories; the numbers of
        "iterations", of "branches" (trajectories) and of "steps"; "change", the root mean square of
        the change of the level in a step. On ("repetition", "iteration"): the "level" below which
        replicas were stopped, and the number "killed". Attributes: the model, the tokens, dt, the
        seed, source, target, entrance, N, k and the status.
    """

    made_by, figure = "splitting", "levels"
    method = "adaptive multilevel splitting"

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, np.ndarray]], about: dict[str, Any]) -> Self:
        """The study of repetitions with these numbers, and "level" and "killed" by iteration."""
        import xarray as xr

        longest = max(len(row["level"]) for row in rows)
        tables: dict[str, Any] = {
            name: ("repetition", np.array([row[name] for row in rows]))
            for name in rows[0]
            if name not in ("level", "killed")
        }
        for name, empty in (("level", np.nan), ("killed", 0.0)):
            table = np.full((len(rows), longest), empty)
            for line, row in zip(table, rows, strict=True):
                line[: len(row[name])] = row[name]
            tables[name] = (("repetition", "iteration"), table)
        return cls(xr.Dataset(tables, {}, about))

    def __repr__(self) -> str:
        """Summary of what was estimated, with errors."""
        lines = [self._title(), f"  p    {self.probability!r}"]
        if self.has_times:
            lines.append(f"  T    {self.mean_time!r}")
        branches, steps = (int(self.data[name].sum()) for name in ("branches", "steps"))
        lines.append(f"  by   {self.method}: {branches} trajectories, {steps:.3g} steps")
        if (lost := int((self.data["probability"] == 0).sum())) > 0:
            size = self.data.sizes["repetition"]
            lines.append(
                f"  0    in {lost} of {size} repetitions: more replicas, or a lower target"
            )
        return "\n".join(lines)

    @property
    def has_times(self) -> bool:
        """Whether there was an entrance, so that mean times are known."""
        return bool(np.isfinite(self.data.attrs["entrance"]))

    @property
    def probability(self) -> MeanEstimate:
        """P(target before source), from the start of the replicas."""
        return MeanEstimate.of_mean(self.data["probability"].values)

    @property
    def mean_time(self) -> MeanEstimate:
        """Mean first-passage time from the tokens to the target, with a jackknife error.

            T = E(first time) + (1 - q) ((1/p - 1) E(loop) + E(reactive time))

        inf if no repetition reached the target.

        Raises
        ------
        ValueError
            Without an entrance.
        """
        if not self.has_times:
            raise ValueError(
                "A mean time needs mf.splitting with entrance=, from which loops are known; this "
                "study has none."
            )
        names = "probability", "loop_time", "reactive_time", "first_time", "direct"
        columns = {name: self.data[name].values for name in names}
        time, count = _mean_time(columns), len(columns["probability"])
        without = [
            _mean_time({name: np.delete(column, i) for name, column in columns.items()})
            for i in range(count)
        ]
        spread = float(np.var(without)) if np.isfinite(without).all() else np.inf
        return MeanEstimate.of(time, ((count - 1) * spread) ** 0.5, count)

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Levels z, and P(level > z before source), (repetitions, levels), without bias.

        Of 201 levels from the lowest of the iterations to the target.
        """
        about, levels = self.data.attrs, self.data["level"].values
        finite = levels[np.isfinite(levels)]
        z = np.linspace(finite.min() if finite.size else about["target"], about["target"], 201)
        kept = 1 - self.data["killed"].values / about["replicas"]
        below = levels[:, :, None] <= z
        return z, np.prod(np.where(below, kept[:, :, None], 1.0), axis=1)


def _mean_time(columns: Mapping[str, np.ndarray]) -> float:
    p = columns["probability"]
    if not p.any():
        return np.inf
    reached = p > 0
    reactive = np.average(columns["reactive_time"][reached], weights=p[reached])
    loop = np.nanmean(columns["loop_time"])
    later = (1 / p.mean() - 1) * loop + reactive
    return float(columns["first_time"].mean() + (1 - columns["direct"].mean()) * later)


class FirstPassages(_MeasuredPassages):
    """Times of the first passage of independent trajectories.

    Attributes
    ----------
    data : xarray.Dataset
        On "trajectory": the "time" of its end, and "end": 1 at the target, -1 at the source, 0 if
        it was at neither at the largest time. Attributes: the model, the tokens, dt, the seed,
        source, target, largest time and the status.
    """

    made_by, figure = "first_passages", "passages"
    method = "plain ensemble"

    def __repr__(self) -> str:
        """Summary of what was estimated, with errors."""
        lines = [self._title()]
        counts = [int((self.data["end"].values == end).sum()) for end in (1, -1, 0)]
        if self.has_source:
            lines.append(f"  p    {self.probability!r}")
        else:
            lines.append(f"  T    {self.mean_time!r}")
        said = "{} at the target, {} at the source, {} at neither".format(*counts)
        lines.append(f"  by   {self.method}: {said}")
        return "\n".join(lines)

    @property
    def has_source(self) -> bool:
        """Whether trajectories end at a source, too."""
        return bool(np.isfinite(self.data.attrs["source"]))

    @property
    def times(self) -> np.ndarray:
        """Times of the trajectories that came to the target."""
        return self.data["time"].values[self.data["end"].values == AT_TARGET]

    @property
    def censored(self) -> int:
        """Number of trajectories that were neither at the target nor at the source at the end."""
        return int((self.data["end"].values == CENSORED).sum())

    @property
    def probability(self) -> MeanEstimate:
        """P(target before source, and before the largest time)."""
        return MeanEstimate.of_mean((self.data["end"].values == AT_TARGET).astype(float))

    @property
    def mean_time(self) -> MeanEstimate:
        """Mean time to the target.

        Where trajectories are censored, the maximum likelihood of an exponential law: the total
        time divided by the number of passages, which is inf without one.

        Raises
        ------
        ValueError
            If trajectories end at a source.
        """
        if self.has_source:
            raise ValueError(
                "A mean time, and its figure, need mf.first_passages without source; these "
                f"trajectories end at source = {self.data.attrs['source']:g}, too: see probability."
            )
        times = self.data["time"].values
        if not self.censored:
            return MeanEstimate.of_mean(times)
        count = len(self.times)
        mean = times.sum() / count if count else np.inf
        return MeanEstimate.of(mean, mean / count**0.5 if count else np.inf, max(count, 1))

    def exponential_test(self, rng: Any, *, after: float = 0.0) -> tuple[float, float]:
        """Kolmogorov-Smirnov statistic of an exponential law of unknown mean, and its p-value.

        The p-value is from 2000 samples of an exponential law, with fitted means (Lilliefors).
        Tokens need some time to forget their start and to come down from a saddle, in which there
        are no passages. It is a part of the mean time that vanishes only as n grows.

        Parameters
        ----------
        rng : numpy Generator or seed
        after : float
            Passages up to this time are left out, and the others counted from it: for tokens that
            have forgotten their start, some times 1/rate of the state and of the saddle.

        Raises
        ------
        ValueError
            With censored trajectories, or fewer than 5 passages.
        """
        times, random = self.times, generator(rng)
        require("after", finite("after", after), "a time >= 0", after >= 0)
        times = times[times > after] - after
        wanted = "at least 5 passages, none of them censored: give a larger t_max"
        require("passages", len(times), wanted, len(times) >= 5 and not self.censored)
        statistic = _distance_to_exponential(times[None])[0]
        others = _distance_to_exponential(random.exponential(size=(KS_RESAMPLES, len(times))))
        return float(statistic), float((1 + (others >= statistic).sum()) / (1 + KS_RESAMPLES))


def _distance_to_exponential(times: np.ndarray) -> np.ndarray:
    """Largest differences of the distribution functions of rows to those of equal means."""
    count = times.shape[1]
    law = -np.expm1(-np.sort(times, axis=1) / times.mean(axis=1, keepdims=True))
    steps = np.arange(count + 1) / count
    return np.maximum(steps[1:] - law, law - steps[:-1]).max(axis=1)
