"""Estimating equations of a flow with noise, with means over replicas of the model.

The likelihood of a layer given the layer before is not known, but layers can be simulated. With h
the score of a simpler model, described in `scores`,

    G(theta) = sum over layers of h(X_l, X_{l+1}) - E_theta h(X_l, X)

has mean 0 at the true theta, whatever h is. Its root is the estimate. It is nearly efficient
because h is nearly the score of the layers.

References
----------
Gourieroux, Monfort and Renault, J. Appl. Econometrics 8 (1993): indirect inference. Godambe, Ann.
Math. Statist. 31 (1960): estimating equations and the sandwich of their variance. Rao, Proc.
Cambridge Philos. Soc. 44 (1948); Boos, American Statistician 46 (1992): score tests of estimating
equations.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from meanfield import MeanfieldError

from .equations import (
    LONGEST_STEP,
    ROOT_TOLERANCE,
    Estimate,
    NoisyEquations,
    Transitions,
    pseudo_inverse,
    squared,
    total,
)
from .families import ParameterFamily, central_differences
from .goodness import Compared
from .scores import first_guess, information, scores
from .transitions import Arrays, chord, mean_velocity, replicas_of, transported, unit

BROYDEN_ROUNDS = 12
MOST_ANCHORS = 4  # largest number of points at which the score is evaluated
PREDICTION_REPLICAS = 16  # replicas of predictions
SECANT_ROUNDS, FARTHEST_END = 5, 8.0  # iterations; bound of an end in standard errors
SECANT_TOLERANCE = 0.15  # relative step at which a search ends; its error is of order 0.15^2


class ReplicaEquations(NoisyEquations):
    """Estimating equations with means over replicas; for the parameters see `Equations`."""

    def simulated(self, point: np.ndarray, score_at: np.ndarray) -> Arrays:
        """The score h at `score_at` of replicas drawn at `point`, (R, n, p) for each transition."""
        replicas = replicas_of(self.family.at(point), self.transitions, self.replicas, self.steps)
        values = [scores(self.family, score_at, _repeated(pair.x, y), y) for pair, y in replicas]
        self.evaluated()
        return values

    def terms(self, point: np.ndarray, anchor: np.ndarray) -> tuple[Arrays, np.ndarray]:
        """The terms of G by token, and the variance of their sum due to replicas.

        h is the score at `anchor`; replicas are drawn at `point`.
        """
        terms, variance = [], np.zeros((len(point), len(point)))
        for pair, model in zip(self.transitions, self.simulated(point, anchor), strict=True):
            (data,) = scores(self.family, anchor, pair.x[None], pair.y[None])
            terms.append(data - model.mean(axis=0))
            pairs = model.sum(axis=1).reshape(2, -1, len(point)).mean(axis=0)
            variance += np.atleast_2d(np.cov(pairs.T)) / len(pairs)
        return terms, variance

    def sensitivity(self, point: np.ndarray, anchor: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """The derivative of E h by `point`, by central differences on the same random numbers.

        The differences are over half of `errors`, limited to 1e-3 to 0.1 times the scales.
        """

        def mean(point: np.ndarray) -> np.ndarray:
            return total([h.mean(axis=0) for h in self.simulated(point, anchor)])

        scale = self.family.scale(point)
        lengths = np.clip(0.5 * errors, 1e-3 * scale, 0.1 * scale)
        return central_differences(mean, point, lengths).T

    def root(self, point: np.ndarray, anchor: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """The root of G for h at `anchor` by Broyden's method, the sensitivity, and a success flag.

        Derivatives are computed at the start, and again where a step does not halve the norm of G.
        """
        fisher = information(self.family, anchor, self.transitions)
        errors = np.sqrt(np.abs(np.diag(np.linalg.pinv(fisher))))
        terms, _ = self.terms(point, anchor)
        value, slope = total(terms), self.sensitivity(point, anchor, errors)
        variance, scale = squared(terms), self.family.scale(point)
        precision = np.linalg.pinv(variance)
        for _ in range(BROYDEN_ROUNDS):
            if value @ precision @ value < ROOT_TOLERANCE**2 * len(point):
                return point, slope, True
            step = pseudo_inverse(slope, variance, scale)[0] @ value
            step /= max(1.0, np.abs(step / scale).max() / LONGEST_STEP)
            trial = self.within(point + step)
            step = trial - point
            if not step.any():
                break
            try:
                new = total(self.terms(trial, anchor)[0])
                if new @ precision @ new > 0.25 * (value @ precision @ value):
                    slope = self.sensitivity(trial, anchor, errors)
                else:
                    slope = slope + np.outer(value - new - slope @ step, step) / (step @ step)
            except MeanfieldError:  # the model cannot be solved there: the search has failed
                break
            point, value = trial, new
        return point, slope, False

    def estimate(self, start: np.ndarray | None = None) -> Estimate:
        """The root and its accuracy; `variance` is that for independent tokens.

        The score is evaluated at a first guess, then at the root that this gives, until the root
        moves by less than half of its standard error.
        """
        guess = first_guess(self.family, self.transitions) if start is None else start
        point = anchor = self.within(guess)
        for _ in range(MOST_ANCHORS):
            point, slope, converged = self.root(point, anchor)
            terms, simulation = self.terms(point, anchor)
            scale = self.family.scale(point)
            estimate = Estimate(point, scale, slope, squared(terms), simulation, terms, converged)
            if not converged or np.all(np.abs(point - anchor) < 0.5 * estimate.errors):
                break
            anchor = point
        return estimate

    def compared(self, point: np.ndarray) -> Iterator[Compared]:
        """Yield each layer with new replicas, as `NoisyEquations.compared`."""
        transitions = [replace(pair, seed=pair.seed.spawn(1)[0]) for pair in self.transitions]
        flow, family = self.family.at(point), self.family
        for pair, y in replicas_of(flow, transitions, self.test_replicas, self.steps, pairs=False):
            drawn, layer = (_repeated(pair.x, y), y), (pair.x[None], pair.y[None])
            scores_drawn = scores(family, point, *drawn).sum(axis=1)
            (score,) = scores(family, point, *layer).sum(axis=1)
            (residual,) = residuals(family, point, *layer)
            yield pair, y, scores_drawn, score, residuals(family, point, *drawn), residual

    def predicted(self, point: np.ndarray, part: Transitions) -> tuple[Arrays, np.ndarray]:
        """Predict by means over replicas, as `Equations.predicted`."""
        replicas = replicas_of(self.family.at(point), part, PREDICTION_REPLICAS, self.steps)
        layers = [y for _, y in replicas]
        return [unit(y.mean(axis=0)) for y in layers], layers[-1][0]

    def ends(self, estimate: Estimate, quantile: float) -> np.ndarray:
        """Confidence intervals by score tests, (p, 2)."""
        test = ScoreTest(self, estimate)
        indices = range(len(estimate.point))
        return np.array([[test.end(j, sign * quantile) for sign in (-1, 1)] for j in indices])


def _repeated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Tokens x (n, d) for each replica in y (R, n, d)."""
    return np.ascontiguousarray(np.broadcast_to(x, y.shape))


def residuals(
    family: ParameterFamily, point: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """The displacement of each token minus that by the flow, as tangent vectors at x."""
    flow = family.at(point)
    middle, displacement = chord(x, y)
    return transported(displacement - flow.time * mean_velocity(flow, x, y), middle, x)


class ScoreTest:
    """Rao's score test of one free number near an estimate, with the random numbers of the fit.

    Parameters
    ----------
    equations : ReplicaEquations
    estimate : Estimate
        Their root, with the variance under the model.
    """

    def __init__(self, equations: ReplicaEquations, estimate: Estimate):
        self._equations, self._estimate = equations, estimate
        self._mean, self._spread = self._simulated(estimate.point)

    def end(self, index: int, quantile: float) -> float:
        """End of the interval of free number `index`: the value where `deviation` is `quantile`.

        `quantile` has the sign of the end; an end that is not reached within 8 standard errors is
        infinite. The other numbers move along, by the covariance of the estimates.
        """
        point, covariance = self._estimate.point, self._estimate.covariance()
        error = np.sqrt(covariance[index, index])
        path = covariance[:, index] / error
        distance, last, value = quantile, 0.0, 0.0  # the secant method
        for _ in range(SECANT_ROUNDS):
            try:
                excess = self.deviation(point + distance * path, index)
            except MeanfieldError:  # the model cannot be solved there
                excess = 0.0
            if excess * quantile <= 0 or abs(distance) > FARTHEST_END:
                return float(np.sign(quantile) * np.inf)
            slope = (excess - value) / (distance - last)
            factor = 1 + (quantile - excess) / (slope * distance) if slope > 0 else 2.0
            last, value = distance, excess
            distance *= float(np.clip(factor, 0.5, 2.0))
            if abs(factor - 1) < SECANT_TOLERANCE:
                break
        return float(point[index] + distance * error)

    def deviation(self, point: np.ndarray, index: int) -> float:
        """Distance of free number `index` at a point from its estimate, in standard deviations.

        Mean and standard deviation are those under the model at the point. Scores of the data
        cancel, as h is fixed at the estimate.
        """
        estimate = self._estimate
        mean, variances = self._simulated(point)
        slope = self._equations.sensitivity(point, estimate.point, estimate.errors)
        scale = np.sqrt(variances / self._spread)
        variance = estimate.variance * np.outer(scale, scale) + estimate.simulation
        inverse = np.linalg.pinv(slope)
        error = np.sqrt((inverse @ variance @ inverse.T)[index, index])
        return float((inverse @ (mean - self._mean))[index] / error)

    def _simulated(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variances of the sum of h under the model at a point."""
        sums = [h.sum(axis=1) for h in self._equations.simulated(point, self._estimate.point)]
        mean = np.sum([h.mean(axis=0) for h in sums], axis=0)
        return mean, np.sum([h.var(axis=0, ddof=1) for h in sums], axis=0)
