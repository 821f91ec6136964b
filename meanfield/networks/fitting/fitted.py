"""The result of a fit: parameters with intervals, profiles, and a verdict in words."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield import MeanfieldError, Transformer
from meanfield.extending import RandomSource, fitting, generator, positive, real, whole_number

from .equations import Equations, Estimate
from .families import ParameterFamily
from .goodness import Goodness
from .predictions import Prediction
from .transitions import LayerTransition

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

# Relative standard error from which on a direction counts as not identified
UNIDENTIFIED_ERROR = 0.5
VARIANCE_SOURCES = ("model", "tokens", "texts")


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A flow that was fitted to the layers of a network.

    Attributes
    ----------
    estimate : Estimate
        The root of the estimating equations and its accuracy.
    equations : Equations
        The estimating equations with their data.
    goodness : Goodness or None
        The test of fit; None without noise, or if it was not requested.
    predictions : tuple of Prediction
        Errors on layers and texts that were held out.
    unrelated : bool
        Whether the mean cosine of consecutive layers is no larger than by chance.
    """

    estimate: Estimate
    equations: Equations
    goodness: Goodness | None
    predictions: tuple[Prediction, ...]
    unrelated: bool
    _ends: dict[float, np.ndarray] = field(default_factory=dict, init=False)

    @property
    def family(self) -> ParameterFamily:
        """The family of models that was fitted."""
        return self.equations.family

    # Numbers -------------------------------------------------------------------------------

    @property
    def parameters(self) -> "xr.Dataset":
        """Estimates by parameter: `value`, standard `error`, 95 % interval `low` to `high`."""
        import xarray as xr

        low, high = self.interval().T
        values = self.family.values(self.estimate.point)
        factor = np.where(self.family.logarithmic, values, 1)
        columns = {
            "value": values,
            "error": self._errors("model") * factor,
            "low": low,
            "high": high,
        }
        return xr.Dataset(
            {name: ("parameter", v) for name, v in columns.items()},
            {"parameter": self.family.labels},
        )

    def __getitem__(self, name: str) -> float:
        """The value of a parameter."""
        return float(self.family.values(self.estimate.point)[self._index(name)])

    def interval(self, level: float = 0.95, by: str = "model") -> np.ndarray:
        """Confidence intervals (p, 2) of all parameters.

        With noise and by "model", these are Rao's score intervals: an end is the value at which a
        test just rejects the parameter, with the variance and the sensitivity of G under the model
        at that value. An end that is not reached within 8 standard errors is infinite; a lower end
        of time or kappa is then 0. An interval of so many standard errors around the estimate would
        cover the true value too rarely: for few tokens the variance and the sensitivity vary by
        30 % with the estimate. All other intervals, and those of `fit(wide=True)`, assume normal
        estimates; for time and kappa, normal logarithms.

        Parameters
        ----------
        level : float
            Probability of covering the true value, between 0 and 1.
        by : str
            Source of the variance of the equations: "model", replicas of the fitted model;
            "tokens", the contributions of tokens, treated as independent given the layer before,
            which neglects that they move each other; "texts", the contributions of texts, of which
            at least 5 are needed.

        Notes
        -----
        Ends by "model" take about 60 evaluations of replicas, more than the fit, and are
        cached for each level.

        References
        ----------
        Rao, Proc. Cambridge Philos. Soc. 44 (1948); Boos, American Statistician 46 (1992): score
        tests of estimating equations.
        """
        from scipy.special import ndtri

        level = real("level", level, "between 0 and 1", lambda number: 0 < number < 1)
        quantile = float(ndtri((1 + level) / 2))
        if by == "model" and self.status == "fitted":
            if quantile not in self._ends:
                self._ends[quantile] = self.equations.ends(self.estimate, quantile)
            ends = self._ends[quantile]
        else:
            point, away = self.estimate.point, quantile * self._errors(by)
            ends = np.stack([point - away, point + away], 1)
        return np.stack([self.family.values(end) for end in ends.T], 1)

    def bootstrap(
        self, over: str = "tokens", draws: int = 1000, *, rng: RandomSource = 0
    ) -> np.ndarray:
        """Estimates (draws, p) by the multiplier bootstrap over "tokens" or "texts".

        Each draw gives every token, or text, a weight of mean 1 and variance 1 in the equations,
        and takes the step of Newton's method from the estimate. Numbers that the data do not
        identify are nan.
        """
        parts, random = self._parts(over), generator(rng)
        weights = random.standard_normal((whole_number("draws", draws, least=1), len(parts)))
        steps = weights @ parts @ self.estimate.inverse.T
        steps[:, self.estimate.unidentified] = np.nan
        return np.stack([self.family.values(self.estimate.point + step) for step in steps])

    def profile(self, name: str, values: Any) -> np.ndarray:
        """The objective G' V^-1 G at values of a parameter, minimised over all others.

        It is 0 at the estimate, and above 3.84 outside a 95 % interval. With noise G is computed at
        each point by replicas with the same random numbers; without noise the objective is the
        increase of the sum of squares, divided by its mean. It is inf where the model cannot be
        solved.
        """
        index = self._index(name)
        fitting("values", values, "numbers", np.ndim(values) == 1)
        for value in values if self.family.logarithmic[index] else ():
            positive(f"a value of {name}", value)
        objectives, point = [], self.estimate.point
        for value in values:
            target = self.family.values(point).copy()
            target[index] = value
            number = self.family.point(target)[index]
            try:
                objectives.append(self.equations.objective(self.estimate, index, float(number)))
            except MeanfieldError:  # the model cannot be solved there
                objectives.append(np.inf)
        return np.array(objectives)

    @property
    def transitions(self) -> list[LayerTransition]:
        """Pairs of consecutive layers."""
        return self.equations.transitions

    @property
    def model(self) -> Transformer:
        """The fitted model, with its noise."""
        return self.family.at(self.estimate.point).noisy

    @property
    def time(self) -> float:
        """Time per layer."""
        return self.family.at(self.estimate.point).time

    # Words ---------------------------------------------------------------------------------

    @property
    def rejected(self) -> bool | None:
        """True if the layers are no flow of the family, at the size 5 %; None if not tested.

        If `status` is "not converged", the test is of the flow at which the search ended; another
        start may find a flow that is not rejected. Without noise: True if residuals exceed 1e-4 of
        the angles that tokens move.
        """
        if self.unrelated:
            return True
        return self.equations.rejects(self.estimate, self.goodness)

    @property
    def unidentified(self) -> str | None:
        """The combination of parameters that the data do not identify, in words, or None."""
        relative, direction = self.estimate.directions[0]
        if relative <= UNIDENTIFIED_ERROR:
            return None
        parts = [
            f"{weight:+.2f} {'log ' if log else ''}{label}"
            for label, weight, log in zip(
                self.family.labels, direction, self.family.logarithmic, strict=True
            )
            if abs(weight) > 0.1
        ]
        return " ".join(parts)

    @property
    def status(self) -> str:
        """ "fitted", "not converged", "not identified" or "unrelated"."""
        if self.unrelated:
            return "unrelated"
        if not self.estimate.converged:
            return "not converged"
        return "not identified" if self.unidentified else "fitted"

    @property
    def warning(self) -> str | None:
        """The reason why the numbers are no estimates, and a remedy; None for "fitted"."""
        if self.unrelated:
            return (
                "Layers are unrelated: tokens do not point where they did a layer before. "
                "Give the layers of one residual stream, in their order."
            )
        if not self.estimate.converged:
            return (
                "No root of the estimating equations was found: the numbers say nothing. "
                "Search from elsewhere with start=, hold a parameter with fixed=, or give another "
                "family."
            )
        if self.unidentified:
            return (
                f"The data do not identify {self.unidentified}: moved together along this "
                "combination, the parameters fit about as well, so that their values are open. "
                "Hold a parameter with fixed=, or give more texts or another family."
            )
        return None

    @property
    def verdict(self) -> str:
        """The result in sentences: warning, test of fit and predictions."""
        words = [self.warning] if self.warning else []
        if not self.unrelated and not self.estimate.converged:
            return " ".join(words)
        words += self.equations.words(self.estimate, self.goodness)
        for one in self.predictions:
            words.append(
                f"On {one.kind} held out the flow misses the true directions by {one.flow:.3f} "
                f"radians; to predict no change misses them by {one.nothing:.3f}, a linear map "
                f"learned from the others by {one.linear:.3f}: the flow is "
                f"{_compared(one.over_nothing)} no change and {_compared(one.over_linear)} the map."
            )
        return " ".join(words)

    def __repr__(self) -> str:
        rows = [f"Fit of {self.family.name} to {len(self.transitions)} layers: {self.status}"]
        labels, values = self.family.labels, self.family.values(self.estimate.point)
        if self.status == "not converged":
            ended = [f"{name} {value:.4g}" for name, value in zip(labels, values, strict=True)]
            return "\n".join([*rows, f"  The search ended at {', '.join(ended)}. {self.verdict}"])
        table = zip(labels, values, self.interval(), strict=True)
        rows += [f"  {name:8} {value:.4g} [{a:.4g}, {b:.4g}]" for name, value, (a, b) in table]
        return "\n".join([*rows, f"  {self.verdict}"])

    def plot(self) -> "Figure":
        """Parameters with intervals, standard errors of the statistics, and errors held out."""
        from ..pictures import of_fit

        return of_fit(self)

    # Accuracy ------------------------------------------------------------------------------

    def covariance(self, by: str = "model") -> np.ndarray:
        """Covariance of the free numbers (logarithms of time and kappa): see `interval`."""
        fitting("by", by, f"one of {', '.join(VARIANCE_SOURCES)}", by in VARIANCE_SOURCES)
        if by == "model":
            return self.estimate.covariance()
        parts = self._parts(by)
        return self.estimate.covariance(parts.T @ parts)

    def _errors(self, by: str) -> np.ndarray:
        """Standard errors (p,) of the free numbers: see `covariance`."""
        return np.sqrt(np.maximum(np.diag(self.covariance(by)), 0))

    def _parts(self, over: str) -> np.ndarray:
        """The terms of the equations, one row (p,) for each token or each text."""
        fitting("over", over, "tokens or texts", over in ("tokens", "texts"))
        if over == "tokens":
            return np.concatenate(self.estimate.terms)
        texts = sorted({one.text for one in self.transitions})
        if len(texts) < 5:
            raise ValueError(f"Variances over texts need 5 texts or more; got {len(texts)}.")
        pairs = list(zip(self.transitions, self.estimate.terms, strict=True))
        return np.stack([
            np.sum([part.sum(axis=0) for one, part in pairs if one.text == text], axis=0)
            for text in texts
        ])  # fmt: skip

    def _index(self, name: str) -> int:
        labels = self.family.labels
        fitting("name", name, f"one of {', '.join(labels)}", name in labels)
        return labels.index(name)


def _compared(ratio: tuple[float, float]) -> str:
    """A comparison in words, from an interval of the ratio of squared errors."""
    if ratio[1] < 1:
        return "better than"
    return "worse than" if ratio[0] > 1 else "neither better nor worse than"
