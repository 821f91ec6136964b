"""Rao's score test of one free number of a fit, and the ends of intervals at which it rejects.

References
----------
Rao, Proc. Cambridge Philos. Soc. 44 (1948); Boos, American Statistician 46 (1992): score tests of
estimating equations.
"""

from typing import TYPE_CHECKING

import numpy as np

from meanfield import MeanfieldError

from .equations import Estimate

if TYPE_CHECKING:
    from .replicas import ReplicaEquations

SECANT_ROUNDS, FARTHEST_END = 5, 8.0  # of the search for an end, in rounds and standard errors
SECANT_TOLERANCE = 0.15  # relative step with which it ends; errors are of the order of its square


class ScoreTest:
    """The test at any point near an estimate, on the random numbers of the fit.

    Parameters
    ----------
    equations : ReplicaEquations
    estimate : Estimate
        Their root, with the variance under the model.
    """

    def __init__(self, equations: "ReplicaEquations", estimate: Estimate):
        self._equations, self._estimate = equations, estimate
        self._mean, self._spread = self._simulated(estimate.point)

    def end(self, index: int, quantile: float) -> float:
        """The free number `index` at which the test gives this quantile, of either sign.

        Other numbers move along by the covariance of the estimates.
        """
        point, covariance = self._estimate.point, self._estimate.covariance()
        error = np.sqrt(covariance[index, index])
        path = covariance[:, index] / error
        way, before, value = quantile, 0.0, 0.0  # the secant method
        for _ in range(SECANT_ROUNDS):
            try:
                reached = self.deviation(point + way * path, index)
            except MeanfieldError:  # the model cannot be followed there
                return float(np.sign(quantile) * np.inf)
            if reached * quantile <= 0 or abs(way) > FARTHEST_END:
                return float(np.sign(quantile) * np.inf)
            slope = (reached - value) / (way - before)
            longer = 1 + (quantile - reached) / (slope * way) if slope > 0 else 2.0
            before, value = way, reached
            way *= float(np.clip(longer, 0.5, 2.0))
            if abs(longer - 1) < SECANT_TOLERANCE:
                break
        return float(point[index] + way * error)

    def deviation(self, there: np.ndarray, index: int) -> float:
        """Standard deviations between the estimate of a free number and `there`, if that is true.

        Scores of the data cancel, as h is fixed at the estimate.
        """
        estimate = self._estimate
        mean, spread = self._simulated(there)
        slope = self._equations.sensitivity(there, estimate.point, estimate.errors)
        scale = np.sqrt(spread / self._spread)
        variance = estimate.variance * np.outer(scale, scale) + estimate.simulation
        inverse = np.linalg.pinv(slope)
        error = np.sqrt((inverse @ variance @ inverse.T)[index, index])
        return float((inverse @ (mean - self._mean))[index] / error)

    def _simulated(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variances of the sum of h under the model at a point."""
        drawn = [h.sum(axis=1) for h in self._equations.simulated(point, self._estimate.point)]
        mean = np.sum([h.mean(axis=0) for h in drawn], axis=0)
        return mean, np.sum([h.var(axis=0, ddof=1) for h in drawn], axis=0)
