"""Estimates, and base classes of the estimating equations of least squares, replicas and `wide`."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from .families import LONGEST_LOG_TIME, SHORTEST_LOG_TIME, ParameterFamily
from .goodness import Compared, Comparison, Goodness
from .transitions import LayerTransition, logarithm

LONGEST_STEP = 1.0  # largest change of a free number, over its scale, in one iteration
ROOT_TOLERANCE = 0.02  # standard errors from the root at which a search ends
TEST_SIZE = 0.05  # of tests of fit
LARGEST_CONDITION = 1e10  # condition number from which on a direction is not identified
LEAST_CORRELATION = 1e-10  # eigenvalue of correlations below which equations are dependent
UNIDENTIFIED_PART = 1e-4  # component of a free number in the directions that are not identified


@dataclass(frozen=True, eq=False)
class Estimate:
    """A root of estimating equations, and what its accuracy follows from.

    Attributes
    ----------
    point : ndarray, (p,)
        The free numbers of the family.
    scale : ndarray, (p,)
        Scales of changes of the free numbers: 1 for logarithms, 1 + |value| for others.
    sensitivity : ndarray, (p, p)
        The derivative of the mean of the equations, with the sign that makes it positive.
    variance : ndarray, (p, p)
        Variance of the equations under the model; without noise, from the residuals of tokens.
    simulation : ndarray, (p, p)
        Additional variance, due to the finite number of replicas.
    terms : list of ndarray, (n, p)
        Contribution of each token to the equations, for each transition.
    converged : bool
    residual : float
        Root mean square angle between the model's tokens and the real ones, in radians; nan with
        noise.
    """

    point: np.ndarray
    scale: np.ndarray
    sensitivity: np.ndarray
    variance: np.ndarray
    simulation: np.ndarray
    terms: list[np.ndarray]
    converged: bool
    residual: float = np.nan

    def covariance(self, variance: np.ndarray | None = None) -> np.ndarray:
        """The sandwich covariance (p, p) of the free numbers.

        `variance` is the variance of the equations, by default that under the model. Variances of
        free numbers that are not identified are inf.
        """
        middle = (self.variance if variance is None else variance) + self.simulation
        covariance = self.inverse @ middle @ self.inverse.T
        covariance[self.unidentified, self.unidentified] = np.inf
        return covariance

    @property
    def errors(self) -> np.ndarray:
        """Standard errors (p,) of the free numbers under the model."""
        return np.sqrt(np.maximum(np.diag(self.covariance()), 0))

    @property
    def directions(self) -> list[tuple[float, np.ndarray]]:
        """Standard errors along principal directions of the covariance, the largest first.

        Free numbers are divided by their scales; errors are inf along directions not identified.
        """
        inverse, undetermined = self._solved
        inverse = inverse / self.scale[:, None]
        values, vectors = np.linalg.eigh(inverse @ (self.variance + self.simulation) @ inverse.T)
        order = np.argsort(-values)[: len(values) - undetermined.shape[1]]
        determined = [(float(np.sqrt(max(values[j], 0))), vectors[:, j]) for j in order]
        return [(np.inf, vector) for vector in undetermined.T] + determined

    @property
    def inverse(self) -> np.ndarray:
        """Pseudo-inverse (p, p) of the sensitivity; 0 along directions that are not identified."""
        return self._solved[0]

    @property
    def unidentified(self) -> np.ndarray:
        """Mask (p,) of the free numbers that the equations do not identify."""
        return (self._solved[1] ** 2).sum(axis=1) > UNIDENTIFIED_PART**2

    @cached_property
    def _solved(self) -> tuple[np.ndarray, np.ndarray]:
        """Pseudo-inverse of the sensitivity, and the directions not identified, as `solved`."""
        return solved(self.sensitivity, self.variance + self.simulation, self.scale)


def solved(
    sensitivity: np.ndarray, variance: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pseudo-inverse (p, p) of a sensitivity, and the directions (p, k) not identified.

    Directions are in free numbers divided by `scale`. Equations that are linearly dependent,
    according to their correlations in `variance`, count once.
    """
    size = np.sqrt(np.diag(variance))
    weight = np.where(size > 0, 1 / np.where(size > 0, size, 1), 0)
    values, rows = np.linalg.eigh(variance * np.outer(weight, weight))
    rows = rows[:, values > LEAST_CORRELATION] * weight[:, None]
    left, singular, right = np.linalg.svd(rows.T @ sensitivity * scale)
    rank = int((singular > singular.max(initial=0) / LARGEST_CONDITION).sum())
    inverse = (right[:rank].T / singular[:rank]) @ (rows @ left[:, :rank]).T
    return scale[:, None] * inverse, right[rank:].T


def nothing() -> None:
    """Do nothing: the default callback after an evaluation."""


class Equations(ABC):
    """Base class of estimating equations: their root is the estimate, with tests and intervals.

    Parameters
    ----------
    family : ParameterFamily
    transitions : sequence of LayerTransition
    evaluated : callable
        Called after each evaluation.
    """

    def __init__(
        self,
        family: ParameterFamily,
        transitions: Sequence[LayerTransition],
        evaluated: Callable[[], None] = nothing,
    ):
        self.family, self.transitions, self._evaluated = family, list(transitions), evaluated

    def quiet(self) -> Self:
        """A copy without callback, which can be pickled."""
        others = copy.copy(self)
        others._evaluated = nothing
        return others

    def of(self, transitions: Sequence[LayerTransition]) -> Self:
        """A copy for other transitions."""
        others = copy.copy(self)
        others.transitions = list(transitions)
        return others

    @property
    def tokens(self) -> int:
        """The number of tokens in all transitions."""
        return sum(len(one.x) for one in self.transitions)

    @property
    def dimension(self) -> int:
        """The dimension d of the tokens."""
        return self.transitions[0].x.shape[1]

    @property
    def way(self) -> float:
        """Root mean square of the angles that tokens move in a layer."""
        squares = [(logarithm(one.x, one.y) ** 2).sum(axis=-1) for one in self.transitions]
        return float(np.sqrt(np.concatenate(squares).mean()))

    # The estimate --------------------------------------------------------------------------

    @abstractmethod
    def estimate(self, start: np.ndarray | None = None) -> Estimate:
        """The root, searched from `start` or a first guess."""

    def judged(
        self, estimate: Estimate, rng: np.random.Generator
    ) -> tuple[Estimate, Goodness | None]:
        """The estimate with its variance under the model, and the test of fit if there is one."""
        return estimate, None

    @abstractmethod
    def ahead(
        self, point: np.ndarray, part: Sequence[LayerTransition]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Predicted next layers (n, d) of the transitions in `part`, and one draw of the last."""

    # Intervals, tests and sentences --------------------------------------------------------

    def ends(self, estimate: Estimate, quantile: float) -> np.ndarray:
        """Confidence intervals (p, 2): the free numbers -+ `quantile` standard errors."""
        away = quantile * estimate.errors
        return np.stack([estimate.point - away, estimate.point + away], 1)

    @abstractmethod
    def objective(self, estimate: Estimate, index: int, value: float) -> float:
        """The minimum of G' V^-1 G over all free numbers but number `index`, fixed at `value`."""

    @abstractmethod
    def rejects(self, estimate: Estimate, goodness: Goodness | None) -> bool | None:
        """True if the layers are no flow of the family; None if that was not tested."""

    @abstractmethod
    def words(self, estimate: Estimate, goodness: Goodness | None) -> list[str]:
        """The result of the test in sentences."""


class NoisyEquations(Equations):
    """Equations for models with noise: sums G of terms of tokens, of mean 0 at the true numbers.

    Parameters
    ----------
    family : ParameterFamily
    transitions : sequence of LayerTransition
    evaluated : callable
        Called after each evaluation.
    replicas : int
        Number of replicas of each layer in the equations; 0 if these need none.
    test_replicas : int
        Number of replicas of each layer at the root, for variances and the test of fit.
    steps : int
        Time steps of replicas in each layer.
    """

    def __init__(
        self,
        family: ParameterFamily,
        transitions: Sequence[LayerTransition],
        evaluated: Callable[[], None] = nothing,
        *,
        replicas: int,
        test_replicas: int,
        steps: int,
    ):
        super().__init__(family, transitions, evaluated)
        self.replicas, self.test_replicas, self.steps = replicas, test_replicas, steps

    @abstractmethod
    def compared(self, point: np.ndarray) -> Iterator[Compared]:
        """Yield each layer with `test_replicas` new replicas of it."""

    def judged(
        self, estimate: Estimate, rng: np.random.Generator
    ) -> tuple[Estimate, Goodness | None]:
        """Refine the estimate with new replicas, and test the fit.

        One step of Newton's method moves the estimate to the root with all replicas, old and new.
        """
        comparison = Comparison(self.dimension, rng)
        for one in self.compared(estimate.point):
            comparison.add(one)
        variance, count = comparison.variance, self.test_replicas
        judged = replace(estimate, variance=variance)
        if estimate.converged:
            part = count / (count + self.replicas)
            step = estimate.inverse @ comparison.value * part
            simulation = part**2 * variance / count + (1 - part) ** 2 * estimate.simulation
            if np.abs(step / estimate.scale).max() > LONGEST_STEP:
                judged = replace(judged, simulation=simulation, converged=False)
            else:
                point = self._within(estimate.point + step)
                judged = replace(judged, point=point, simulation=simulation)
        return judged, comparison.goodness

    @abstractmethod
    def terms(self, point: np.ndarray, anchor: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The terms of G at `point` by token, and the variance of their sum due to replicas.

        The weights of residuals in G are those at `anchor`.
        """

    def objective(self, estimate: Estimate, index: int, value: float) -> float:
        """The minimum of G' V^-1 G, by two Gauss-Newton steps in the other numbers.

        G at the estimate is subtracted, as it is 0 there only if the test replicas are included.
        """
        point, slope = estimate.point, estimate.sensitivity
        rest = total(self.terms(point, point)[0])
        others = [j for j in range(len(point)) if j != index]
        precision = np.linalg.pinv(estimate.variance + estimate.simulation)

        def holding(point: np.ndarray) -> np.ndarray:
            point = self._within(point)
            point[index] = value
            return point

        center = point.copy()
        C = np.linalg.pinv(slope.T @ precision @ slope)
        if C[index, index] > 0:
            center[others] += C[others, index] / C[index, index] * (value - point[index])
        center = holding(center)
        for _ in range(2):
            excess = total(self.terms(center, point)[0]) - rest
            part = slope[:, others]
            step = np.linalg.pinv(part.T @ precision @ part) @ (part.T @ precision @ excess)
            center[others] += step
            center = holding(center)
        excess = total(self.terms(center, point)[0]) - rest
        return float(excess @ precision @ excess)

    def rejects(self, estimate: Estimate, goodness: Goodness | None) -> bool | None:
        """True if the test of fit rejects at the size 5 %."""
        return None if goodness is None else goodness.p_value < TEST_SIZE

    def words(self, estimate: Estimate, goodness: Goodness | None) -> list[str]:
        """The result of the test of fit, and the statistic with the largest deviation."""
        if goodness is None:
            return []
        worst = max(goodness.deviations.items(), key=lambda item: abs(item[1]))
        rejected = self.rejects(estimate, goodness)
        said = "The layers are no flow of this family" if rejected else "Nothing rejects it"
        detail = (
            f"p {goodness.p_in_words}; the largest deviation from replicas of the flow is "
            f"{worst[1]:+.1f} standard errors, in {worst[0]}"
        )
        return [f"{said} ({detail})."]

    def _within(self, point: np.ndarray) -> np.ndarray:
        """The point with time and noise clipped to the range that layers can determine."""
        point = point.copy()
        labels = self.family.labels
        if "time" in labels:
            point[labels.index("time")] = np.clip(
                point[labels.index("time")], SHORTEST_LOG_TIME, LONGEST_LOG_TIME
            )
        if "kappa" in labels:  # stronger noise erases all memory of the directions of tokens
            least = (self.dimension - 1) * self.family.at(point).time / LONGEST_LOG_TIME
            j = labels.index("kappa")
            point[j] = max(point[j], np.log(least))
        return point


def total(terms: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of terms over all tokens of all transitions."""
    return np.sum([part.sum(axis=0) for part in terms], axis=0)


def squared(terms: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of outer products of terms: the variance of their sum for independent tokens."""
    return np.sum([part.T @ part for part in terms], axis=0)
