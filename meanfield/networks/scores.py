"""Estimating equations of a flow with noise, and least squares of a flow without.

With noise the likelihood of a layer given the one before is not known, but it can be simulated.
Let a be the way of a token from layer to layer, along the great circle, v the mean of the model's
velocity along that circle, and s = 2 T/kappa. If tokens moved by T v with normal noise of variance
s in each tangent direction, the logarithm of the likelihood of a token would be

    log p = -|a - T v|^2/(2 s) - (d - 1)/2 log s

and h = d log p/d theta its score. What the model does within a layer makes h a little wrong, so
that its mean is not 0; but the mean under the model is known from replicas, and

    G(theta) = sum over layers of h(X_l, X_{l+1}) - E_theta h(X_l, X)

has mean 0 at the true theta, whatever h is. Its root is the estimate. It is nearly efficient
because h is nearly the score of the layers.

That score is the mean of int <d(T v)/d theta, dx - T v ds>/s over paths between the layers. Where
noise is strong, v at the next layer is mostly due to the noise that led there, which makes h vary
and tells little. v is then a third of that at x and two thirds of that in the middle: by Simpson's
rule standard errors of beta were larger by 13 to 17 % for SA with beta = 4, T = 0.5, kappa = 20 in
d = 16.

References
----------
Gourieroux, Monfort and Renault, J. Appl. Econometrics 8 (1993): indirect inference. Godambe, Ann.
Math. Statist. 31 (1960): estimating equations and the sandwich of their variance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..solving import solve
from ..states import Tokens
from .families import Family
from .transitions import (
    EARLY,
    SIMPSON,
    Transition,
    chord,
    logarithm,
    mean_velocity,
    replicas_of,
)

CHANGE = 1e-3  # of parameters of a drift in differences, relative to 1 + |theta|
CLOSE = 0.02  # standard errors from the root at which the search ends
ROUNDS = 12
ANCHORS = 4  # points at which the score is taken, at most
LONGEST = 1.0  # change of a logarithm, or of theta/(1 + |theta|), in one round
SHORTEST, LONG = np.log(1e-6), np.log(1e3)  # of the logarithms of times
STRONG = 0.1  # mean squared way, in radians, of noise in a layer; from there on v counts early
EXACT = 1e-10  # tolerance of flows without noise


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

    def covariance(self, middle: np.ndarray) -> np.ndarray:
        """The sandwich: that of the estimate where that of the equations is `middle`."""
        inverse = np.linalg.pinv(self.sensitivity)
        return inverse @ middle @ inverse.T


class Equations:
    """The estimating equations of transitions, for models with noise.

    Parameters
    ----------
    family : Family
    transitions : sequence of Transition
    replicas : int
        Even: of each layer, in antithetic pairs.
    steps : int
        Of each layer.
    told : callable
        Is called after each evaluation.
    """

    drawn = True  # whether means are those of replicas

    def __init__(
        self,
        family: Family,
        transitions: Sequence[Transition],
        replicas: int,
        steps: int,
        told: Callable[[], None] = lambda: None,
    ):
        self.family, self.transitions = family, list(transitions)
        self.replicas, self.steps, self._told = replicas, steps, told
        self.tokens = sum(len(one.x) for one in self.transitions)
        self.dimension = self.transitions[0].x.shape[1]

    # The score of one way ------------------------------------------------------------------

    def parts(
        self, point: np.ndarray, x: np.ndarray, y: np.ndarray, weights: tuple[float, ...]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """a - T v, its negative derivatives (p, ..., d), those of log s (p,), and s."""
        family, at = self.family, self.family.at(point)
        _, way = chord(x, y)
        v = mean_velocity(at, x, y, weights)
        slopes = np.zeros((len(point), *v.shape))
        for j in range(family.drifts):
            change = np.zeros(len(point))
            change[j] = CHANGE * (1 + abs(point[j]))
            up, down = (family.at(point + sign * change) for sign in (1, -1))
            there = mean_velocity(up, x, y, weights) - mean_velocity(down, x, y, weights)
            slopes[j] = at.time * there / (2 * change[j])
        widths = np.zeros(len(point))
        for j, label in enumerate(family.labels):
            if label == "time":
                slopes[j], widths[j] = at.time * v, 1
            if label == "kappa":
                widths[j] = -1
        return way - at.time * v, slopes, widths, 2 * at.time / at.kappa

    def scores(self, point: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """h of each token, (R, n, p), of layers x and y (R, n, d)."""
        left, slopes, widths, s = self.parts(point, x, y, self._weights(point))
        pull = np.einsum("prnd,rnd->rnp", slopes, left) / s
        size = (left**2).sum(axis=-1) / (2 * s) - (x.shape[-1] - 1) / 2
        return pull + size[..., None] * widths

    def _weights(self, point: np.ndarray) -> tuple[float, ...]:
        """Those of v at x, in the middle and at y."""
        at = self.family.at(point)
        return EARLY if 2 * at.time / at.kappa * (self.dimension - 1) > STRONG else SIMPSON

    def information(self, point: np.ndarray) -> np.ndarray:
        """The information about theta if h were the score: where the search for the root begins."""
        found = np.zeros((len(point), len(point)))
        for one in self.transitions:
            _, slopes, widths, s = self.parts(point, one.x[None], one.y[None], SIMPSON)
            found += np.einsum("prnd,qrnd->pq", slopes, slopes) / s
            found += np.outer(widths, widths) * one.x.shape[0] * (one.x.shape[1] - 1) / 2
        return found

    def first_guess(self) -> np.ndarray:
        """The maximum of the likelihood of which h is the score, on the data alone."""
        from scipy.optimize import least_squares

        point = self.family.start.copy()
        moving = [j for j, label in enumerate(self.family.labels) if label != "kappa"]
        batches = [(one.x[None], one.y[None]) for one in self.transitions]

        def at(numbers: np.ndarray) -> np.ndarray:
            full = point.copy()
            full[moving] = numbers
            return full

        def left(numbers: np.ndarray) -> np.ndarray:
            parts = [self.parts(at(numbers), x, y, SIMPSON)[0].ravel() for x, y in batches]
            return np.concatenate(parts)

        def slopes(numbers: np.ndarray) -> np.ndarray:
            parts = [self.parts(at(numbers), x, y, SIMPSON)[1][moving] for x, y in batches]
            return -np.concatenate([part.reshape(len(moving), -1) for part in parts], axis=1).T

        if moving:
            of_time = np.array([self.family.labels[j] == "time" for j in moving])
            low, high = np.where(of_time, SHORTEST, -np.inf), np.where(of_time, LONG, np.inf)
            found = least_squares(left, point[moving], jac=slopes, bounds=(low, high),
                                  x_scale="jac", ftol=1e-6, xtol=1e-6, max_nfev=60)  # fmt: skip
            point[moving] = found.x
        if "kappa" in self.family.labels:
            size = (left(point[moving]) ** 2).sum() / (self.tokens * (self.dimension - 1))
            time = self.family.at(point).time
            point[self.family.labels.index("kappa")] = np.log(2 * time / max(size, 1e-14))
        return point

    # Against the model ---------------------------------------------------------------------

    def simulated(self, point: np.ndarray, score_at: np.ndarray) -> list[np.ndarray]:
        """h at one point of replicas at another: (R, n, p) for each transition."""
        found = []
        for one, y in replicas_of(self.family.at(point), self.transitions, self.replicas,
                                  self.steps):  # fmt: skip
            x = np.broadcast_to(one.x, y.shape)
            found.append(self.scores(score_at, np.ascontiguousarray(x), y))
        self._told()
        return found

    def observed(self, point: np.ndarray) -> list[np.ndarray]:
        """h of the data: (n, p) for each transition."""
        return [self.scores(point, one.x[None], one.y[None])[0] for one in self.transitions]

    def terms(self, point: np.ndarray, anchor: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Each token's part of G, and the variance that the replicas give its sum.

        h is the score at `anchor`, replicas are those at `point`.
        """
        terms, variance = [], np.zeros((len(point), len(point)))
        drawn = self.simulated(point, anchor)
        for seen, model in zip(self.observed(anchor), drawn, strict=True):
            terms.append(seen - model.mean(axis=0))
            pairs = model.sum(axis=1).reshape(2, -1, len(point)).mean(axis=0)
            variance += np.atleast_2d(np.cov(pairs.T)) / len(pairs)
        return terms, variance

    def sensitivity(self, point: np.ndarray, anchor: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """The derivative of E h by `point`, by central differences on the same random numbers.

        They go over half of the errors that are given, within a tenth of the numbers themselves.
        """
        scale = np.where(self.family.logarithmic, 1, 1 + np.abs(point))
        columns = []
        for j, length in enumerate(np.clip(0.5 * errors, 1e-3 * scale, 0.1 * scale)):
            change = np.zeros(len(point))
            change[j] = length
            up, down = (
                sum(h.mean(axis=0).sum(axis=0) for h in self.simulated(there, anchor))
                for there in (point + change, point - change)
            )
            columns.append((np.asarray(up) - np.asarray(down)) / (2 * length))
        return np.stack(columns, axis=1)

    def root(self, point: np.ndarray, anchor: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """The root of G, h held, by Broyden's method: the point, the sensitivity, whether found.

        Derivatives are taken at the start, and again where a step did not bring G closer to 0.
        """
        errors = np.sqrt(np.abs(np.diag(np.linalg.pinv(self.information(anchor)))))
        terms, _ = self.terms(point, anchor)
        value, slope = _sum(terms), self.sensitivity(point, anchor, errors)
        precision = np.linalg.pinv(_squares(terms))
        scale = np.where(self.family.logarithmic, 1, 1 + np.abs(point))
        for _ in range(ROUNDS):
            if value @ precision @ value < CLOSE**2 * len(point):
                return point, slope, True
            step = np.linalg.pinv(slope) @ value
            step /= max(1.0, np.abs(step / scale).max() / LONGEST)
            after = self._within(point + step)
            step = after - point
            if not step.any():
                break
            try:
                new = _sum(self.terms(after, anchor)[0])
                if new @ precision @ new > 0.25 * (value @ precision @ value):
                    slope = self.sensitivity(after, anchor, errors)
                else:
                    slope = slope + np.outer(value - new - slope @ step, step) / (step @ step)
            except MeanfieldError:  # the model cannot be followed there: as good as no root
                break
            point, value = after, new
        return point, slope, False

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

    def estimate(self, start: np.ndarray | None = None) -> Estimate:
        """The root, and what its accuracy follows from; its `variance` is that of tokens apart.

        The score is taken at a first guess, then at the root that was found with it, until the
        root stays where it is, to half of its standard error.
        """
        anchor = self._within(self.first_guess() if start is None else start)
        point = anchor
        for _ in range(ANCHORS):
            point, slope, converged = self.root(point, anchor)
            terms, simulation = self.terms(point, anchor)
            middle = _squares(terms)
            found = Estimate(point, slope, middle, simulation, terms, converged)
            errors = np.sqrt(np.abs(np.diag(found.covariance(middle))))
            if not converged or np.all(np.abs(point - anchor) < 0.5 * errors):
                break
            anchor = point
        return found


def least_squares_flow(
    family: Family, transitions: Sequence[Transition], start: np.ndarray
) -> Estimate:
    """The flow without noise whose layers are nearest, by Gauss and Newton's method.

    Minimises the sum of |log_p(y)|^2, p the model's tokens and y those of the next layer.
    """
    from scipy.optimize import least_squares

    groups: dict[tuple, list[Transition]] = {}
    for one in transitions:
        groups.setdefault(one.x.shape, []).append(one)
    batches = [(np.stack([t.x for t in g]), np.stack([t.y for t in g])) for g in groups.values()]
    order = [one for group in groups.values() for one in group]

    def left(point: np.ndarray) -> np.ndarray:
        found = [logarithm(moved(family, point, x), y).ravel() for x, y in batches]
        return np.concatenate(found)

    def slopes(point: np.ndarray) -> np.ndarray:
        columns = []
        for j in range(len(point)):
            change = np.zeros(len(point))
            change[j] = CHANGE * (1 if family.logarithmic[j] else 1 + abs(point[j]))
            columns.append((left(point + change) - left(point - change)) / (2 * change[j]))
        return np.stack(columns, axis=1)

    of_time = np.array([label == "time" for label in family.labels])
    low, high = np.where(of_time, SHORTEST, -np.inf), np.where(of_time, LONG, np.inf)
    found = least_squares(left, start, jac=slopes, bounds=(low, high), x_scale="jac",
                          ftol=1e-14, xtol=1e-13, gtol=1e-14, max_nfev=100)  # fmt: skip
    J, r = slopes(found.x), found.fun
    d = transitions[0].x.shape[1]
    each = -np.einsum("ndp,nd->np", J.reshape(-1, d, len(start)), r.reshape(-1, d))
    ends = np.cumsum([len(one.x) for one in order])[:-1]
    by_transition = dict(zip(map(id, order), np.split(each, ends), strict=True))
    terms = [by_transition[id(one)] for one in transitions]
    size = float(np.sqrt((r**2).sum() * d / r.size))
    return Estimate(found.x, J.T @ J, each.T @ each, np.zeros((len(start),) * 2), terms,
                    bool(found.success), size)  # fmt: skip


def moved(family: Family, point: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Tokens (R, n, d) a layer later, without noise."""
    at = family.at(point)
    run: Any = solve(at.model, Tokens(x), (0, at.time), rtol=EXACT, progress=False)
    if not run.success:
        raise MeanfieldError(f"A layer of {at.model} for the time {at.time:g} failed: {run.status}")
    return run.final.x


def _sum(terms: Sequence[np.ndarray]) -> np.ndarray:
    """Of all tokens of all transitions."""
    return np.sum([part.sum(axis=0) for part in terms], axis=0)


def _squares(terms: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of their outer products: the variance of their sum where tokens are independent."""
    return np.sum([part.T @ part for part in terms], axis=0)
