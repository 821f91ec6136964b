"""Estimating equations of a flow with noise, with means over replicas of the model.

The likelihood of a layer given the layer before is not known, but layers can be simulated. With h
the score of a simpler model, described in `scores`,

    G(theta) = sum over layers of h(X_l, X_{l+1}) - E_theta h(X_l, X)

has mean 0 at the true theta, whatever h is. Its root is the estimate. It is nearly efficient
because h is nearly the score of the layers.

References
----------
Gourieroux, Monfort and Renault, J. Appl. Econometrics 8 (1993): indirect inference. Godambe, Ann.
Math. Statist. 31 (1960): estimating equations and the sandwich of their variance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from meanfield import MeanfieldError

from .equations import (
    LONGEST_STEP,
    ROOT_TOLERANCE,
    Estimate,
    NoisyEquations,
    solved,
    squared,
    total,
)
from .families import ParameterFamily, central_differences
from .goodness import Compared
from .score_tests import ScoreTest
from .scores import first_guess, information, scores
from .transitions import LayerTransition, carried, chord, mean_velocity, replicas_of, unit

BROYDEN_ROUNDS = 12
MOST_ANCHORS = 4  # largest number of points at which the score is evaluated
PREDICTION_REPLICAS = 16  # replicas of predictions


class ReplicaEquations(NoisyEquations):
    """Estimating equations with means over replicas; for the parameters see `NoisyEquations`."""

    def simulated(self, point: np.ndarray, score_at: np.ndarray) -> list[np.ndarray]:
        """The score h at `score_at` of replicas drawn at `point`, (R, n, p) for each transition."""
        values = []
        for one, y in replicas_of(self.family.at(point), self.transitions, self.replicas,
                                  self.steps):  # fmt: skip
            x = np.broadcast_to(one.x, y.shape)
            values.append(scores(self.family, score_at, np.ascontiguousarray(x), y))
        self._evaluated()
        return values

    def observed(self, point: np.ndarray) -> list[np.ndarray]:
        """The score h of the data at a point, (n, p) for each transition."""
        return [scores(self.family, point, one.x[None], one.y[None])[0] for one in self.transitions]

    def terms(self, point: np.ndarray, anchor: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The terms of G by token, and the variance of their sum due to replicas.

        h is the score at `anchor`; replicas are drawn at `point`.
        """
        terms, variance = [], np.zeros((len(point), len(point)))
        drawn = self.simulated(point, anchor)
        for data, model in zip(self.observed(anchor), drawn, strict=True):
            terms.append(data - model.mean(axis=0))
            pairs = model.sum(axis=1).reshape(2, -1, len(point)).mean(axis=0)
            variance += np.atleast_2d(np.cov(pairs.T)) / len(pairs)
        return terms, variance

    def sensitivity(self, point: np.ndarray, anchor: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """The derivative of E h by `point`, by central differences on the same random numbers.

        The differences are over half of `errors`, limited to 1e-3 to 0.1 times the scales.
        """

        def mean(point: np.ndarray) -> np.ndarray:
            drawn = self.simulated(point, anchor)
            return np.sum([h.mean(axis=0).sum(axis=0) for h in drawn], axis=0)

        scale = self.family.scale(point)
        lengths = np.clip(0.5 * errors, 1e-3 * scale, 0.1 * scale)
        return np.stack([*central_differences(mean, point, lengths)], axis=1)

    def root(self, point: np.ndarray, anchor: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """The root of G for h at `anchor` by Broyden's method, the sensitivity, and a success flag.

        Derivatives are computed at the start, and again where a step does not halve the norm of G.
        """
        fisher = information(self.family, anchor, self.transitions)
        errors = np.sqrt(np.abs(np.diag(np.linalg.pinv(fisher))))
        terms, _ = self.terms(point, anchor)
        value, slope = total(terms), self.sensitivity(point, anchor, errors)
        spread = squared(terms)
        precision = np.linalg.pinv(spread)
        scale = self.family.scale(point)
        for _ in range(BROYDEN_ROUNDS):
            if value @ precision @ value < ROOT_TOLERANCE**2 * len(point):
                return point, slope, True
            step = solved(slope, spread, scale)[0] @ value
            step /= max(1.0, np.abs(step / scale).max() / LONGEST_STEP)
            after = self._within(point + step)
            step = after - point
            if not step.any():
                break
            try:
                new = total(self.terms(after, anchor)[0])
                if new @ precision @ new > 0.25 * (value @ precision @ value):
                    slope = self.sensitivity(after, anchor, errors)
                else:
                    slope = slope + np.outer(value - new - slope @ step, step) / (step @ step)
            except MeanfieldError:  # the model cannot be solved there: the search has failed
                break
            point, value = after, new
        return point, slope, False

    def estimate(self, start: np.ndarray | None = None) -> Estimate:
        """The root and its accuracy; `variance` is that for independent tokens.

        The score is evaluated at a first guess, then at the root that this gives, until the root
        moves by less than half of its standard error.
        """
        guess = first_guess(self.family, self.transitions) if start is None else start
        anchor = self._within(guess)
        point = anchor
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
        fresh = [replace(one, seed=one.seed.spawn(1)[0]) for one in self.transitions]
        at, family = self.family.at(point), self.family
        for one, y in replicas_of(at, fresh, self.test_replicas, self.steps, pairs=False):
            x = np.ascontiguousarray(np.broadcast_to(one.x, y.shape))
            drawn, (score,) = scores(family, point, x, y), scores(family, point, one.x[None],
                                                                one.y[None])  # fmt: skip
            left = residuals(family, point, x, y)
            (residual,) = residuals(family, point, one.x[None], one.y[None])
            yield Compared(one, y, drawn.sum(axis=1), score.sum(axis=0), left, residual)

    def ahead(
        self, point: np.ndarray, part: Sequence[LayerTransition]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Predict by means over replicas, as `Equations.ahead`."""
        drawn = [
            y for _, y in replicas_of(self.family.at(point), part, PREDICTION_REPLICAS, self.steps)
        ]
        return [unit(y.mean(axis=0)) for y in drawn], drawn[-1][0]

    def ends(self, estimate: Estimate, quantile: float) -> np.ndarray:
        """Confidence intervals by score tests, (p, 2)."""
        test = ScoreTest(self, estimate)
        every = range(len(estimate.point))
        return np.array([[test.end(j, sign * quantile) for sign in (-1, 1)] for j in every])


def residuals(
    family: ParameterFamily, point: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """The displacement of each token minus that by the flow, as tangent vectors at x."""
    at = family.at(point)
    middle, way = chord(x, y)
    return carried(way - at.time * mean_velocity(at, x, y), middle, x)
