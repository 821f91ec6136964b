"""Fit of a flow to the layers of a network: estimates, intervals, tests and a verdict."""

import warnings
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from meanfield import SA, MeanfieldError, Transformer, UnresolvedWarning
from meanfield.extending import (
    Parameters,
    Progress,
    RandomSource,
    UserValue,
    boolean,
    generator,
    positive,
    real,
    require,
    whole_number,
)

from ..bootstrap import RESAMPLED_TEXTS
from .equations import REJECTED_RESIDUAL, Equations, Estimate, LeastSquares, no_callback
from .families import ParameterFamily
from .goodness import Goodness
from .predictions import Prediction, hold_out, predictions
from .replicas import ReplicaEquations
from .transitions import transitions_of
from .wide import WideEquations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

USUAL_EVALUATIONS = 40  # approximate number of evaluations of a fit, for the progress bar
# Range to which the mean cosine of consecutive layers is clipped before kappa is guessed from it
GUESSED_COSINES = 0.05, 1 - 1e-6
# Layers are unrelated if their mean cosine is below both: so many standard errors, and this cosine
CHANCE_ERRORS, RELATED_COSINE = 4.0, 0.5
UNIDENTIFIED_ERROR = 0.5  # relative standard error from which on a direction is not identified
VARIANCE_SOURCES = ("model", "tokens", "texts")
WARNINGS = {  # by status or cause; {} is the combination of parameters that is not identified
    "unrelated": "Layers are unrelated: tokens do not point where they did a layer before. "
    "Give the layers of one residual stream, in their order.",
    "not converged": "No root of the estimating equations was found: the numbers say nothing. "
    "Search from elsewhere with start=, hold a parameter with fixed=, or give another family.",
    "without noise": "kappa has run off to where noise moves no token: fit layers without noise "
    "with noise=False.",
    "not identified": "The data do not identify {}: moved together along this combination, the "
    "parameters fit about as well, so that their values are open. Hold a parameter with fixed=, "
    "or give more texts or another family.",
}


def fit(
    layers: UserValue,
    family: UserValue = SA,
    *,
    start: Parameters | None = None,
    fixed: Parameters | None = None,
    noise: bool = True,
    replicas: int = 8,
    steps: int = 5,
    test_replicas: int = 32,
    verdict: bool = True,
    hold: bool = True,
    wide: bool = False,
    rng: RandomSource = 0,
    progress: bool | None = None,
) -> "Fit":
    """Infer the parameters of a flow from the tokens of consecutive layers.

    Layer l + 1 is modelled as the state at time T of the flow that starts from layer l. With noise
    the estimate solves estimating equations: the score of a simpler model equals its mean over
    replicas of the flow. Without noise it minimises the sum of the squared angles between the
    model's tokens and the real ones.

    Parameters
    ----------
    layers : array (L + 1, n, d), list of such arrays, or trace
        Hidden states of the tokens before the first layer and after each, of one text or several.
        For a trace these are its `hidden`. Only their directions are used.
    family : class of drifts or function
        `mf.SA`, `mf.USA`, any class of drifts with parameters, or a function of numbers that gives
        a drift or a model without noise, as ``lambda beta, a: mf.SA(beta) + a * field``. Parameters
        of a function that have a default are not fitted. A factor of the whole drift, such as a
        scalar value matrix, and the time enter only as their product: fix the time.
    start : dict, optional
        Where the search begins; 1 for parameters of the family, 0.5 for "time", 100 for "kappa",
        but with `wide` the kappa that the mean cosine of layers would have without a drift.
        Arrays are fitted entry by entry.
    fixed : dict, optional
        Parameters with fixed values: of the family, "time" or "kappa".
    noise : bool
        Whether tokens have noise, with a kappa that is fitted.
    replicas : int
        Number of replicas of each layer, even, >= 4. They increase variances by a relative amount
        of at most about 1/replicas.
    steps : int
        Number of time steps of replicas in each layer; the bias falls as 1/steps^2.
    test_replicas : int
        Number of replicas of each layer for variances and the test of fit, >= 16 and at least twice
        the number of parameters.
    verdict : bool
        Whether to test the fit.
    hold : bool
        Whether to fit again without the last third of the layers, and of the texts, and to predict
        them. Not done if `verdict` is False.
    wide : bool
        Whether to find the root in the limit of many dimensions, for zonal drifts with noise. Means
        follow from ordinary differential equations, and replicas are drawn at the root only, to
        correct it and for its variance. 250 tokens of 6 layers in d = 384 take half a minute
        instead of some minutes.
    rng : numpy.random.Generator or seed
        Random numbers of replicas and bootstrap.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    Fit
        `parameters`, `interval`, `profile`, `rejected`, `verdict`, `model`.

    Raises
    ------
    TypeError, ValueError
        For layers of another type or shape, and unknown parameters.
    MeanfieldError
        For models that tokens on the sphere cannot follow.

    Warns
    -----
    UnresolvedWarning
        If the layers do not identify some combination of parameters, which it names, or if the
        search for a root of the estimating equations fails.
    """
    random = generator(rng)
    start, fixed = start or {}, fixed or {}
    model_family = ParameterFamily(family, start, fixed, boolean("noise", noise))
    replicas = whole_number("replicas", replicas, least=4)
    require("replicas", replicas, "even: they come in pairs", replicas % 2 == 0)
    steps = whole_number("steps", steps)
    test_replicas = whole_number("test_replicas", test_replicas, least=16)
    hold = boolean("verdict", verdict) and boolean("hold", hold)
    size = len(model_family.start)
    bound = f"at least twice the {size} parameters"
    require("test_replicas", test_replicas, bound, not noise or test_replicas >= 2 * size)
    require("wide", wide, "False for a fit without noise", not boolean("wide", wide) or noise)
    transitions = transitions_of(layers, random)
    if all(np.array_equal(pair.x, pair.y) for pair in transitions):
        raise ValueError("layers has tokens that do not move: there is nothing to fit.")
    cosines = np.concatenate([(pair.x * pair.y).sum(axis=-1) for pair in transitions])
    chance = CHANCE_ERRORS / np.sqrt(cosines.size * transitions[0].x.shape[1])
    unrelated = abs(cosines.mean()) < min(chance, RELATED_COSINE)
    if wide and not {"kappa"} & {*start, *fixed} and not unrelated:
        # a search that starts from much too strong noise ends before the root
        decay = -np.log(np.clip(cosines.mean(), *GUESSED_COSINES))  # (d - 1) time/kappa
        kappa = (transitions[0].x.shape[1] - 1) * model_family.at(model_family.start).time / decay
        model_family = ParameterFamily(family, {**start, "kappa": kappa}, fixed, noise)
    counter = count(1)
    with Progress("fitting", progress) as bar:

        def evaluated() -> None:
            number = next(counter)
            bar.show(min(0.99, number / USUAL_EVALUATIONS), f"fitting, {number} evaluations")

        kind = (WideEquations if wide else ReplicaEquations) if noise else LeastSquares
        numbers = (0 if wide else replicas), test_replicas, steps
        equations: Equations = kind(model_family, transitions, evaluated, *numbers)
        estimate, goodness = equations.judged(equations.estimate(), random)
        held_out_errors: list[Prediction] = []
        train, held_out = hold_out(transitions)
        if hold and train and held_out and not unrelated:
            training = replace(equations, transitions=train)
            root = training.estimate(estimate.point).point
            held_out_errors = predictions(training, root, held_out, random)
    equations = replace(equations, evaluated=no_callback)
    result = Fit(estimate, equations, goodness if verdict else None, tuple(held_out_errors),
                 bool(unrelated))  # fmt: skip
    if result.warning:
        warnings.warn(result.warning, UnresolvedWarning, stacklevel=2)
    return result


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
    def parameters(self) -> xr.Dataset:
        """Estimates by parameter: `value`, standard `error`, 95 % interval `low` to `high`."""
        values, (low, high) = self.family.values(self.estimate.point), self.interval().T
        error = self._errors("model") * np.where(self.family.logarithmic, values, 1)
        columns = {"value": values, "error": error, "low": low, "high": high}
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
            point, distance = self.estimate.point, quantile * self._errors(by)
            ends = np.stack([point - distance, point + distance], 1)
        return np.stack([self.family.values(end) for end in ends.T], 1)

    def profile(self, name: str, values: UserValue) -> np.ndarray:
        """The objective G' V^-1 G at values of a parameter, minimised over all others.

        It is 0 at the estimate, and above 3.84 outside a 95 % interval. With noise G is computed at
        each point by replicas with the same random numbers; without noise the objective is the
        increase of the sum of squares, divided by its mean. It is inf where the model cannot be
        solved.
        """
        index = self._index(name)
        require("values", values, "numbers", np.ndim(values) == 1)
        for value in values if self.family.logarithmic[index] else ():
            positive(f"a value of {name}", value)
        objectives = []
        for value in values:
            number = float(np.log(value) if self.family.logarithmic[index] else value)
            try:
                objectives.append(self.equations.objective(self.estimate, index, number))
            except MeanfieldError:  # the model cannot be solved there
                objectives.append(np.inf)
        return np.array(objectives)

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
        logs = ["log " if log else "" for log in self.family.logarithmic]
        terms = zip(direction, logs, self.family.labels, strict=True)
        return " ".join(f"{weight:+.2f} {log}{label}" for weight, log, label in terms
                        if abs(weight) > 0.1)  # fmt: skip

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
        lost = self.status == "not converged" and self._without_noise
        text = WARNINGS.get("without noise" if lost else self.status)
        return text and text.format(self.unidentified)

    @property
    def _without_noise(self) -> bool:
        """Whether the noise of a layer is a negligible part of the angles that tokens move."""
        flow = self.family.at(self.estimate.point)
        noise = np.sqrt(2 * flow.time / flow.kappa)
        return bool(noise < REJECTED_RESIDUAL * self.equations.distance)

    @property
    def verdict(self) -> str:
        """The result in sentences: warning, test of fit and predictions."""
        words = [self.warning] if self.warning else []
        if self.unrelated or self.status == "not converged":  # where numbers mean nothing
            return " ".join(words)
        words += self.equations.words(self.estimate, self.goodness)
        for p in self.predictions:
            words.append(
                f"On {p.kind} held out the flow misses the true directions by {p.flow:.3f} "
                f"radians; to predict no change misses them by {p.nothing:.3f}, a linear map "
                f"learned from the others by {p.linear:.3f}: the flow is "
                f"{_compared(p.over_nothing)} no change and {_compared(p.over_linear)} the map."
            )
        return " ".join(words)

    def __repr__(self) -> str:
        """The status, a line for each free number with its interval, and the verdict."""
        count = len(self.equations.transitions)
        rows = [f"Fit of {self.family.name} to {count} layers: {self.status}"]
        labels, values = self.family.labels, self.family.values(self.estimate.point)
        if self.status == "not converged":
            end = [f"{name} {value:.4g}" for name, value in zip(labels, values, strict=True)]
            return "\n".join([*rows, f"  The search ended at {', '.join(end)}. {self.verdict}"])
        table = zip(labels, values, self.interval(), strict=True)
        rows += [f"  {name:8} {estimate_in_words(value, ends)}" for name, value, ends in table]
        return "\n".join([*rows, f"  {self.verdict}"])

    def plot(self) -> "Figure":
        """Parameters with intervals, standard errors of the statistics, and errors held out."""
        from ..pictures import of_fit

        return of_fit(self)

    # Accuracy ------------------------------------------------------------------------------

    def covariance(self, by: str = "model") -> np.ndarray:
        """Covariance of the free numbers (logarithms of time and kappa): see `interval`."""
        require("by", by, f"one of {', '.join(VARIANCE_SOURCES)}", by in VARIANCE_SOURCES)
        if by == "model":
            return self.estimate.covariance()
        parts = self._parts(by)
        return self.estimate.covariance(parts.T @ parts)

    def _errors(self, by: str) -> np.ndarray:
        """Standard errors (p,) of the free numbers: see `covariance`."""
        return np.sqrt(np.maximum(np.diag(self.covariance(by)), 0))

    def _parts(self, over: str) -> np.ndarray:
        """The terms of the equations, one row (p,) for each token or each text."""
        if over == "tokens":
            return np.concatenate(self.estimate.terms)
        texts = sorted({pair.text for pair in self.equations.transitions})
        if len(texts) < RESAMPLED_TEXTS:
            raise ValueError(
                f"Variances over texts need {RESAMPLED_TEXTS} texts or more; got {len(texts)}."
            )
        parts = np.zeros((len(texts), len(self.estimate.point)))
        for pair, part in zip(self.equations.transitions, self.estimate.terms, strict=True):
            parts[texts.index(pair.text)] += part.sum(axis=0)
        return parts

    def _index(self, name: str) -> int:
        labels = self.family.labels
        require("name", name, f"one of {', '.join(labels)}", name in labels)
        return labels.index(name)


def is_undetermined(ends: np.ndarray) -> bool:
    """True for an interval that is open at both ends: all numbers, or all positive ones."""
    return bool(ends[0] in (0.0, -np.inf) and ends[1] == np.inf)


def estimate_in_words(value: float, ends: np.ndarray, form: str = ".4g") -> str:
    """A value with its interval, as 1.2 [0.9, 1.5]; "not determined" if both ends are open."""
    if is_undetermined(ends):
        return f"not determined (any value from {ends[0]:g} to {ends[1]:g} fits)"
    return f"{value:{form}} [{ends[0]:{form}}, {ends[1]:{form}}]"


def _compared(ratio: tuple[float, float]) -> str:
    """A comparison in words, from an interval of the ratio of squared errors."""
    if ratio[1] < 1:
        return "better than"
    return "worse than" if ratio[0] > 1 else "neither better nor worse than"
