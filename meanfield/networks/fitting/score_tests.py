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

SECANT_ROUNDS, FARTHEST_END = 5, 8.0  # iterations; bound of an end in standard errors
SECANT_TOLERANCE = 0.15  # relative step at which a search ends; its error is of order 0.15^2


class ScoreTest:
    """Rao's test at points near an estimate, with the random numbers of the fit.

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
        """End of the interval of free number `index`: the value where `deviation` is `quantile`.

        `quantile` has the sign of the end; an end that is not reached within 8 standard errors is
        infinite. The other numbers move along, by the covariance of the estimates.
        """
        point, covariance = self._estimate.point, self._estimate.covariance()
        error = np.sqrt(covariance[index, index])
        path = covariance[:, index] / error
        way, before, value = quantile, 0.0, 0.0  # the secant method
        for _ in range(SECANT_ROUNDS):
            try:
                reached = self.deviation(point + way * path, index)
            except MeanfieldError:  # the model cannot be solved there
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
        """Distance of free number `index` at `there` from its estimate, in standard deviations.

        Mean and standard deviation are those under the model at `there`. Scores of the data cancel,
        as h is fixed at the estimate.
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
