"""Estimates, and what every kind of equations for them answers: least squares, replicas, wide."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from .families import Family
from .transitions import Transition, logarithm

if TYPE_CHECKING:
    from .goodness import Goodness

LONGEST = 1.0  # change of a logarithm, or of theta/(1 + |theta|), in one round
SHORTEST, LONG = np.log(1e-6), np.log(1e3)  # of the logarithms of times
CLOSE = 0.02  # standard errors from the root at which a search ends
SIZE = 0.05  # of tests of fit


@dataclass(frozen=True, eq=False)
class Estimate:
    """A root of estimating equations, and what its accuracy follows from.

    Attributes
    ----------
    point : ndarray, (p,)
        The free numbers of the family.
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
    sensitivity: np.ndarray
    variance: np.ndarray
    simulation: np.ndarray
    terms: list[np.ndarray]
    converged: bool
    residual: float = np.nan

    def covariance(self, variance: np.ndarray | None = None) -> np.ndarray:
        """The sandwich, where the variance of the equations on the data is `variance`."""
        inverse = np.linalg.pinv(self.sensitivity)
        middle = (self.variance if variance is None else variance) + self.simulation
        return inverse @ middle @ inverse.T

    @property
    def errors(self) -> np.ndarray:
        """Standard errors (p,) of the free numbers under the model."""
        return np.sqrt(np.maximum(np.diag(self.covariance()), 0))


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
        told: Callable[[], None] = lambda: None,
    ):
        self.family, self.transitions, self._told = family, list(transitions), told

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

    def judged(
        self, found: Estimate, rng: np.random.Generator
    ) -> tuple[Estimate, "Goodness | None"]:
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
    def directions(self, found: Estimate) -> list[tuple[float, np.ndarray]]:
        """Standard errors along principal directions of the covariance, the largest first.

        Of logarithms of time and kappa, and of other parameters over 1 + |value|.
        """

    @abstractmethod
    def rejects(self, found: Estimate, goodness: "Goodness | None") -> bool | None:
        """Whether the layers are no such flow; None if that was not tested."""

    @abstractmethod
    def words(self, found: Estimate, goodness: "Goodness | None") -> list[str]:
        """What they say about that, in sentences."""

    def _scale(self, point: np.ndarray) -> np.ndarray:
        """Of changes of the free numbers: 1 for logarithms, 1 + |value| for others."""
        return np.where(self.family.logarithmic, 1, 1 + np.abs(point))


class NoisyEquations(Equations):
    """Equations for models with noise: sums G of terms of tokens, of mean 0 at the true numbers."""

    @abstractmethod
    def terms(self, point: np.ndarray, anchor: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Each token's part of G at `point`, and the variance that replicas give its sum.

        Weights of G are those at `anchor`.
        """

    def objective(self, found: Estimate, index: int, held: float) -> float:
        """By two steps of Gauss and Newton's method in the other numbers."""
        point, slope = found.point, found.sensitivity
        others = [j for j in range(len(point)) if j != index]
        precision = np.linalg.pinv(found.variance + found.simulation)
        center = point.copy()
        C = np.linalg.pinv(slope.T @ precision @ slope)
        center[others] += C[others, index] / C[index, index] * (held - point[index])
        center[index] = held
        for _ in range(2):
            value = total(self.terms(center, point)[0])
            part = slope[:, others]
            step = np.linalg.pinv(part.T @ precision @ part) @ (part.T @ precision @ value)
            center[others] += step
        value = total(self.terms(center, point)[0])
        return float(value @ precision @ value)

    def directions(self, found: Estimate) -> list[tuple[float, np.ndarray]]:
        """See `Equations.directions`."""
        scale = self._scale(found.point)
        values, vectors = np.linalg.eigh(found.covariance() / np.outer(scale, scale))
        order = np.argsort(-values)
        return [(float(np.sqrt(max(values[j], 0))), vectors[:, j]) for j in order]

    def rejects(self, found: Estimate, goodness: "Goodness | None") -> bool | None:
        """At the size 5 %."""
        return None if goodness is None else goodness.p_value < SIZE

    def words(self, found: Estimate, goodness: "Goodness | None") -> list[str]:
        """The test of fit and the statistic that is furthest off."""
        if goodness is None:
            return []
        worst = max(goodness.deviations.items(), key=lambda item: abs(item[1]))
        rejected = self.rejects(found, goodness)
        said = "The layers are no flow of this family" if rejected else "Nothing rejects it"
        detail = f"p = {goodness.p_value:.2g}; {worst[0]}: {worst[1]:+.1f} standard errors"
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
