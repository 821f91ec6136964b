"""Estimates, estimating equations whose roots they are, and least squares without noise."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from meanfield import MeanfieldError, Tokens, solve

from .families import LONGEST_LOG_TIME, ParameterFamily, central_differences
from .goodness import Compared, Comparison, Goodness
from .scores import first_guess
from .transitions import Arrays, LayerTransition, logarithm

LONGEST_STEP = 1.0  # largest change of a free number, over its scale, in one iteration
ROOT_TOLERANCE = 0.02  # standard errors from the root at which a search ends
TEST_SIZE = 0.05  # of tests of fit
LARGEST_CONDITION = 1e10  # condition number from which on a direction is not identified
LEAST_CORRELATION = 1e-10  # eigenvalue of correlations below which equations are dependent
UNIDENTIFIED_PART = 1e-4  # component of a free number in the directions that are not identified
LEAST_SQUARES_CHANGE = 1e-3  # of free numbers in differences, relative to 1 + |theta|
FLOW_TOLERANCE = 1e-10  # relative tolerance of flows
REJECTED_RESIDUAL = 1e-4  # residual, relative to the angles that tokens move, that rejects a flow

Transitions = Sequence[LayerTransition]


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
    terms: Arrays
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
        inverse, undetermined = self._inverse
        inverse = inverse / self.scale[:, None]
        values, vectors = np.linalg.eigh(inverse @ (self.variance + self.simulation) @ inverse.T)
        order = np.argsort(-values)[: len(values) - undetermined.shape[1]]
        determined = [(float(np.sqrt(max(values[j], 0))), vectors[:, j]) for j in order]
        return [(np.inf, vector) for vector in undetermined.T] + determined

    @property
    def inverse(self) -> np.ndarray:
        """Pseudo-inverse (p, p) of the sensitivity; 0 along directions that are not identified."""
        return self._inverse[0]

    @property
    def unidentified(self) -> np.ndarray:
        """Mask (p,) of the free numbers that the equations do not identify."""
        return (self._inverse[1] ** 2).sum(axis=1) > UNIDENTIFIED_PART**2

    @cached_property
    def _inverse(self) -> tuple[np.ndarray, np.ndarray]:
        """The `pseudo_inverse` of the sensitivity, and the directions not identified."""
        return pseudo_inverse(self.sensitivity, self.variance + self.simulation, self.scale)


def pseudo_inverse(
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


def no_callback() -> None:
    """Do nothing: the default callback after an evaluation, which can be pickled."""


@dataclass(eq=False)
class Equations(ABC):
    """Base class of estimating equations: their root is the estimate, with tests and intervals.

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

    family: ParameterFamily
    transitions: Transitions
    evaluated: Callable[[], None] = no_callback
    replicas: int = 0
    test_replicas: int = 0
    steps: int = 1

    @property
    def dimension(self) -> int:
        """The dimension d of the tokens."""
        return self.transitions[0].x.shape[1]

    @property
    def distance(self) -> float:
        """Root mean square of the angles that tokens move in a layer."""
        squares = [(logarithm(pair.x, pair.y) ** 2).sum(axis=-1) for pair in self.transitions]
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
    def predicted(self, point: np.ndarray, part: Transitions) -> tuple[Arrays, np.ndarray]:
        """Predicted next layers (n, d) of the transitions in `part`, and one draw of the last."""

    # Intervals, tests and sentences --------------------------------------------------------

    def ends(self, estimate: Estimate, quantile: float) -> np.ndarray:
        """Confidence intervals (p, 2): the free numbers -+ `quantile` standard errors."""
        distance = quantile * estimate.errors
        return np.stack([estimate.point - distance, estimate.point + distance], 1)

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
    """Equations for models with noise: sums G of terms of tokens, of mean 0 at the true numbers."""

    @abstractmethod
    def compared(self, point: np.ndarray) -> Iterator[Compared]:
        """Yield each layer, and `test_replicas` new replicas of the layer."""

    def judged(
        self, estimate: Estimate, rng: np.random.Generator
    ) -> tuple[Estimate, Goodness | None]:
        """Refine the estimate with new replicas, and test the fit.

        One step of Newton's method moves the estimate to the root with all replicas, old and new.
        """
        comparison = Comparison(self.dimension, rng)
        for compared in self.compared(estimate.point):
            comparison.add(compared)
        variance, count = comparison.variance, self.test_replicas
        judged = replace(estimate, variance=variance)
        if estimate.converged:
            part = count / (count + self.replicas)
            step = estimate.inverse @ comparison.value * part
            simulation = part**2 * variance / count + (1 - part) ** 2 * estimate.simulation
            is_near = np.abs(step / estimate.scale).max() <= LONGEST_STEP
            point = self.within(estimate.point + step) if is_near else estimate.point
            judged = replace(judged, point=point, simulation=simulation, converged=bool(is_near))
        return judged, comparison.goodness

    @abstractmethod
    def terms(self, point: np.ndarray, anchor: np.ndarray) -> tuple[Arrays, np.ndarray]:
        """The terms of G at `point` by token, and the variance of their sum due to replicas.

        The weights of residuals in G are those at `anchor`.
        """

    def objective(self, estimate: Estimate, index: int, value: float) -> float:
        """The minimum of G' V^-1 G, by two Gauss-Newton steps in the other numbers.

        G at the estimate is subtracted, as it is 0 there only if the test replicas are included.
        """
        point, sensitivity = estimate.point, estimate.sensitivity
        at_estimate = total(self.terms(point, point)[0])
        rest = [j for j in range(len(point)) if j != index]
        precision = np.linalg.pinv(estimate.variance + estimate.simulation)
        center, part = point.copy(), sensitivity[:, rest]
        C = np.linalg.pinv(sensitivity.T @ precision @ sensitivity)
        if C[index, index] > 0:
            center[rest] += C[rest, index] / C[index, index] * (value - point[index])
        for iteration in range(3):
            center = self.within(center)
            center[index] = value
            excess = total(self.terms(center, point)[0]) - at_estimate
            if iteration < 2:
                step = np.linalg.pinv(part.T @ precision @ part) @ (part.T @ precision @ excess)
                center[rest] += step
        return float(excess @ precision @ excess)

    def rejects(self, estimate: Estimate, goodness: Goodness | None) -> bool | None:
        """True if the test of fit rejects at the size 5 %."""
        return None if goodness is None else goodness.p_value < TEST_SIZE

    def words(self, estimate: Estimate, goodness: Goodness | None) -> list[str]:
        """The result of the test of fit, and the statistic with the largest deviation."""
        if goodness is None:
            return []
        name, deviation = max(goodness.deviations.items(), key=lambda item: abs(item[1]))
        is_rejected = self.rejects(estimate, goodness)
        claim = "The layers are no flow of this family" if is_rejected else "Nothing rejects it"
        return [
            f"{claim} (p {goodness.p_in_words}; the largest deviation from replicas of the flow is "
            f"{deviation:+.1f} standard errors, in {name})."
        ]

    def within(self, point: np.ndarray) -> np.ndarray:
        """The point with time and noise clipped to the range that layers can determine."""
        point, labels = np.clip(point, *self.family.bounds), self.family.labels
        if "kappa" in labels:  # stronger noise erases all memory of the directions of tokens
            j = labels.index("kappa")
            smallest = (self.dimension - 1) * self.family.at(point).time / LONGEST_LOG_TIME
            point[j] = max(point[j], np.log(smallest))
        return point


def total(terms: Arrays) -> np.ndarray:
    """The sum of terms over all tokens of all transitions."""
    return np.sum([part.sum(axis=0) for part in terms], axis=0)


def squared(terms: Arrays) -> np.ndarray:
    """The sum of outer products of terms: the variance of their sum for independent tokens."""
    return np.sum([part.T @ part for part in terms], axis=0)


class LeastSquares(Equations):
    """Minimisation of the sum of |log_p(y)|^2, p the model's tokens and y the next layer's.

    Tokens have no noise; the minimum is found by the Gauss-Newton method.
    """

    def residuals(self, point: np.ndarray) -> Arrays:
        """log_p(y) (n, d) for each transition; transitions of one shape are solved together."""
        self.evaluated()
        groups: dict[tuple[int, ...], list[int]] = {}
        for k, pair in enumerate(self.transitions):
            groups.setdefault(pair.x.shape, []).append(k)
        residuals: dict[int, np.ndarray] = {}
        for group in groups.values():
            x, y = (np.stack([getattr(self.transitions[k], n) for k in group]) for n in "xy")
            residuals |= zip(group, logarithm(next_layer(self.family, point, x), y), strict=True)
        return [residuals[k] for k in range(len(self.transitions))]

    def _flat(self, point: np.ndarray) -> np.ndarray:
        """All residuals as one vector."""
        return np.concatenate([part.ravel() for part in self.residuals(point)])

    def estimate(self, start: np.ndarray | None = None) -> Estimate:
        """The minimum; its `variance` is estimated from the residuals of tokens."""
        from scipy.optimize import least_squares

        family = self.family
        point = first_guess(family, self.transitions) if start is None else start

        def derivatives(point: np.ndarray) -> np.ndarray:
            lengths = LEAST_SQUARES_CHANGE * family.scale(point)
            return central_differences(self._flat, point, lengths).T

        minimum = least_squares(self._flat, point, jac=derivatives, bounds=family.bounds,
                                x_scale="jac", ftol=1e-14, xtol=1e-13, gtol=1e-14,
                                max_nfev=100)  # fmt: skip
        J, r, d, p = derivatives(minimum.x), minimum.fun, self.dimension, len(point)
        each = -np.einsum("ndp,nd->np", J.reshape(-1, d, p), r.reshape(-1, d))
        terms = np.split(each, np.cumsum([len(pair.x) for pair in self.transitions])[:-1])
        size = float(np.sqrt((r**2).sum() * d / r.size))
        return Estimate(minimum.x, family.scale(minimum.x), J.T @ J, each.T @ each,
                        np.zeros((p, p)), terms, bool(minimum.success), size)  # fmt: skip

    def predicted(self, point: np.ndarray, part: Transitions) -> tuple[Arrays, np.ndarray]:
        """Predict by the flow without noise, whose tokens are also the draw of the last layer."""
        tokens = [next_layer(self.family, point, pair.x[None])[0] for pair in part]
        return tokens, tokens[-1]

    def objective(self, estimate: Estimate, index: int, value: float) -> float:
        """The increase of the sum of squares, divided by its mean over tangent coordinates."""
        from scipy.optimize import least_squares

        start = np.delete(estimate.point, index)

        def others(free: np.ndarray) -> np.ndarray:
            return self._flat(np.insert(free, index, value))

        minimum = least_squares(others, start, xtol=1e-8).fun if start.size else others(start)
        base = estimate.residual**2 * sum(len(pair.x) for pair in self.transitions)
        mean = max(estimate.residual, 1e-14) ** 2 / (self.dimension - 1)
        return float(((minimum**2).sum() - base) / mean)

    def rejects(self, estimate: Estimate, goodness: Goodness | None) -> bool:
        """True if residuals exceed 1e-4 of the angles that tokens move."""
        return estimate.residual > REJECTED_RESIDUAL * self.distance

    def words(self, estimate: Estimate, goodness: Goodness | None) -> list[str]:
        """The residual angle of the flow in a sentence."""
        claim, distance = "The flow leaves", self.distance
        if self.rejects(estimate, None):
            claim = "The layers are no flow of this family: it leaves"
        part = estimate.residual / distance if distance else 0.0
        return [
            f"{claim} {estimate.residual:.3g} of the {distance:.3g} radians (root mean square) "
            f"that tokens move in a layer, {part:.2g} of it."
        ]


def next_layer(family: ParameterFamily, point: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Tokens (R, n, d) a layer later, without noise."""
    flow = family.at(point)
    run = solve(flow.model, Tokens(x), (0, flow.time), rtol=FLOW_TOLERANCE, progress=False)
    if not run.success:
        raise MeanfieldError(
            f"A layer of {flow.model} for the time {flow.time:g} failed: {run.status}"
        )
    assert isinstance(run.final, Tokens)
    return run.final.x
