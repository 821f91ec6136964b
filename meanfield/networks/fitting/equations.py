"""Estimates, and what every kind of equations for them answers: least squares, replicas, wide."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from .families import LONG, SHORTEST, Family
from .goodness import Compared, Comparison, Goodness
from .transitions import Transition, logarithm

LONGEST = 1.0  # change of a logarithm, or of theta/(1 + |theta|), in one round
CLOSE = 0.02  # standard errors from the root at which a search ends
SIZE = 0.05  # of tests of fit
SINGULAR = 1e10  # condition number from which on a direction is not told
SAME = 1e-10  # eigenvalue of correlations below which equations are the same
PART = 1e-4  # of a free number in a direction that is not told


@dataclass(frozen=True, eq=False)
class Estimate:
    """A root of estimating equations, and what its accuracy follows from.

    Attributes
    ----------
    point : ndarray, (p,)
        The free numbers of the family.
    scale : ndarray, (p,)
        Of their changes: 1 for logarithms, 1 + |value| for others.
    sensitivity : ndarray, (p, p)
        The derivative of the mean of the equations, with the sign that makes it positive.
    variance : ndarray, (p, p)
        Of the equations under the model; without noise that of tokens' residuals.
    simulation : ndarray, (p, p)
        The part that replicas add to it.
    terms : list of ndarray, (n, p)
        Each token's part of the equations, for each transition.
    converged : bool
    residual : float
        Root mean square of the ways that are left, in radians; nan with noise.
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
        """The sandwich, where the variance of the equations on the data is `variance`.

        Of numbers that the equations do not tell the variance is inf.
        """
        middle = (self.variance if variance is None else variance) + self.simulation
        found = self.inverse @ middle @ self.inverse.T
        found[self.untold, self.untold] = np.inf
        return found

    @property
    def errors(self) -> np.ndarray:
        """Standard errors (p,) of the free numbers under the model."""
        return np.sqrt(np.maximum(np.diag(self.covariance()), 0))

    @property
    def directions(self) -> list[tuple[float, np.ndarray]]:
        """Standard errors along principal directions of the covariance, the largest first.

        Of free numbers over their scales; inf along directions that the equations do not tell.
        """
        inverse, untold = self._solved
        inverse = inverse / self.scale[:, None]
        values, vectors = np.linalg.eigh(inverse @ (self.variance + self.simulation) @ inverse.T)
        order = np.argsort(-values)[: len(values) - untold.shape[1]]
        told = [(float(np.sqrt(max(values[j], 0))), vectors[:, j]) for j in order]
        return [(np.inf, vector) for vector in untold.T] + told

    @property
    def inverse(self) -> np.ndarray:
        """Changes of the free numbers for those of the equations; 0 along what they do not tell."""
        return self._solved[0]

    @property
    def untold(self) -> np.ndarray:
        """Which of the free numbers (p,) the equations do not tell."""
        return (self._solved[1] ** 2).sum(axis=1) > PART**2

    @cached_property
    def _solved(self) -> tuple[np.ndarray, np.ndarray]:
        return solved(self.sensitivity, self.variance + self.simulation, self.scale)


def solved(
    sensitivity: np.ndarray, variance: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pseudo-inverse of a sensitivity, and the directions (p, k) that it leaves out.

    They are those of free numbers over their `scale`. Equations that are the same, by the
    correlations that their variance has, count once.
    """
    size = np.sqrt(np.diag(variance))
    weight = np.where(size > 0, 1 / np.where(size > 0, size, 1), 0)
    values, rows = np.linalg.eigh(variance * np.outer(weight, weight))
    rows = rows[:, values > SAME] * weight[:, None]
    left, told, right = np.linalg.svd(rows.T @ sensitivity * scale)
    rank = int((told > told.max(initial=0) / SINGULAR).sum())
    inverse = (right[:rank].T / told[:rank]) @ (rows @ left[:, :rank]).T
    return scale[:, None] * inverse, right[rank:].T


def nothing() -> None:
    """What is told where nobody asks."""


class Equations(ABC):
    """Equations whose root is the estimate, with what they say about it.

    Parameters
    ----------
    family : Family
    transitions : sequence of Transition
    told : callable
        Is called after each evaluation.
    """

    def __init__(
        self,
        family: Family,
        transitions: Sequence[Transition],
        told: Callable[[], None] = nothing,
    ):
        self.family, self.transitions, self._told = family, list(transitions), told

    def quiet(self) -> Self:
        """The same equations, of which nobody is told: they can be pickled."""
        others = copy.copy(self)
        others._told = nothing
        return others

    def of(self, transitions: Sequence[Transition]) -> Self:
        """The same equations for other transitions."""
        others = copy.copy(self)
        others.transitions = list(transitions)
        return others

    @property
    def tokens(self) -> int:
        """How many tokens move, in all transitions."""
        return sum(len(one.x) for one in self.transitions)

    @property
    def dimension(self) -> int:
        """That of the space of the tokens, d."""
        return self.transitions[0].x.shape[1]

    @property
    def way(self) -> float:
        """Root mean square of the angles that tokens move in a layer."""
        squares = [(logarithm(one.x, one.y) ** 2).sum(axis=-1) for one in self.transitions]
        return float(np.sqrt(np.concatenate(squares).mean()))

    # The estimate --------------------------------------------------------------------------

    @abstractmethod
    def estimate(self, start: np.ndarray | None = None) -> Estimate:
        """The root, from a point that is given or a first guess."""

    def judged(self, found: Estimate, rng: np.random.Generator) -> tuple[Estimate, Goodness | None]:
        """The estimate with its variance under the model, and a test of fit where there is one."""
        return found, None

    @abstractmethod
    def ahead(
        self, point: np.ndarray, part: Sequence[Transition]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Mean directions (n, d) of the next layers of `part`, and one draw of the last."""

    # What is said about it -----------------------------------------------------------------

    def ends(self, found: Estimate, quantile: float) -> np.ndarray:
        """Confidence intervals (p, 2) of the free numbers, to a quantile of the normal law."""
        away = quantile * found.errors
        return np.stack([found.point - away, found.point + away], 1)

    @abstractmethod
    def objective(self, found: Estimate, index: int, held: float) -> float:
        """G' V^-1 G with the free number `index` held, least in the others."""

    @abstractmethod
    def rejects(self, found: Estimate, goodness: Goodness | None) -> bool | None:
        """Whether the layers are no such flow; None if that was not tested."""

    @abstractmethod
    def words(self, found: Estimate, goodness: Goodness | None) -> list[str]:
        """What they say about that, in sentences."""

    def _scale(self, point: np.ndarray) -> np.ndarray:
        """Of changes of the free numbers: 1 for logarithms, 1 + |value| for others."""
        return np.where(self.family.logarithmic, 1, 1 + np.abs(point))


class NoisyEquations(Equations):
    """Equations for models with noise: sums G of terms of tokens, of mean 0 at the true numbers.

    Parameters
    ----------
    family : Family
    transitions : sequence of Transition
    told : callable
        Is called after each evaluation.
    replicas : int
        Of each layer, by which the root is found; 0 if it is found without.
    test_replicas : int
        Of each layer, at the root: for variances and the test of fit.
    steps : int
        Of replicas in each layer.
    """

    def __init__(
        self,
        family: Family,
        transitions: Sequence[Transition],
        told: Callable[[], None] = nothing,
        *,
        replicas: int,
        test_replicas: int,
        steps: int,
    ):
        super().__init__(family, transitions, told)
        self.replicas, self.test_replicas, self.steps = replicas, test_replicas, steps

    @abstractmethod
    def compared(self, point: np.ndarray) -> Iterator[Compared]:
        """Each layer beside `test_replicas` new replicas of it."""

    def judged(self, found: Estimate, rng: np.random.Generator) -> tuple[Estimate, Goodness | None]:
        """With new replicas: a better estimate, the variance of the equations, the test of fit.

        The estimate takes the step of Newton's method to the root for all replicas.
        """
        comparison = Comparison(self.dimension, rng)
        for one in self.compared(found.point):
            comparison.add(one)
        variance, count = comparison.variance, self.test_replicas
        judged = replace(found, variance=variance)
        if found.converged:
            part = count / (count + self.replicas)
            step = found.inverse @ comparison.value * part
            simulation = part**2 * variance / count + (1 - part) ** 2 * found.simulation
            if np.abs(step / found.scale).max() > LONGEST:
                judged = replace(judged, simulation=simulation, converged=False)
            else:
                point = self._within(found.point + step)
                judged = replace(judged, point=point, simulation=simulation)
        return judged, comparison.goodness

    @abstractmethod
    def terms(self, point: np.ndarray, anchor: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Each token's part of G at `point`, and the variance that replicas give its sum.

        Weights of G are those at `anchor`.
        """

    def objective(self, found: Estimate, index: int, held: float) -> float:
        """By two steps of Gauss and Newton's method in the other numbers.

        G at the estimate is subtracted: it is 0 there with further replicas, not with these alone.
        """
        point, slope = found.point, found.sensitivity
        rest = total(self.terms(point, point)[0])
        others = [j for j in range(len(point)) if j != index]
        precision = np.linalg.pinv(found.variance + found.simulation)

        def holding(point: np.ndarray) -> np.ndarray:
            point = self._within(point)
            point[index] = held
            return point

        center = point.copy()
        C = np.linalg.pinv(slope.T @ precision @ slope)
        if C[index, index] > 0:
            center[others] += C[others, index] / C[index, index] * (held - point[index])
        center = holding(center)
        for _ in range(2):
            value = total(self.terms(center, point)[0]) - rest
            part = slope[:, others]
            step = np.linalg.pinv(part.T @ precision @ part) @ (part.T @ precision @ value)
            center[others] += step
            center = holding(center)
        value = total(self.terms(center, point)[0]) - rest
        return float(value @ precision @ value)

    def rejects(self, found: Estimate, goodness: Goodness | None) -> bool | None:
        """At the size 5 %."""
        return None if goodness is None else goodness.p_value < SIZE

    def words(self, found: Estimate, goodness: Goodness | None) -> list[str]:
        """The test of fit and the statistic that is furthest off."""
        if goodness is None:
            return []
        worst = max(goodness.deviations.items(), key=lambda item: abs(item[1]))
        rejected = self.rejects(found, goodness)
        said = "The layers are no flow of this family" if rejected else "Nothing rejects it"
        detail = (
            f"p {goodness.p_in_words}; of what was compared with replicas of the flow, "
            f"{worst[0]} differ most, by {worst[1]:+.1f} standard errors"
        )
        return [f"{said} ({detail})."]

    def _within(self, point: np.ndarray) -> np.ndarray:
        """The point with its time, and its noise, in the range in which they can be told."""
        point = point.copy()
        labels = self.family.labels
        if "time" in labels:
            point[labels.index("time")] = np.clip(point[labels.index("time")], SHORTEST, LONG)
        if "kappa" in labels:  # up to noise that leaves no trace of where tokens were
            least = (self.dimension - 1) * self.family.at(point).time / LONG
            j = labels.index("kappa")
            point[j] = max(point[j], np.log(least))
        return point


def total(terms: Sequence[np.ndarray]) -> np.ndarray:
    """The sum over all tokens of all transitions."""
    return np.sum([part.sum(axis=0) for part in terms], axis=0)


def squared(terms: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of their outer products: the variance of their sum where tokens are independent."""
    return np.sum([part.T @ part for part in terms], axis=0)
