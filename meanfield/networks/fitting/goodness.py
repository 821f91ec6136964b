"""Test of fit: layers compared with replicas of the fitted flow.

A test of fit needs statistics that a true flow leaves at their mean, whatever the statistics are:
their law is that of the model's own replicas. Two of those used here are learned: what a regression
on the residuals of one half of the tokens predicts for the other half.

A layer is compared with the mean and the spread of few replicas, which vary themselves, and with
few tokens neither statistics nor scores are normal. Replicas show the effect: each
is compared with the others as the layer is with all, and the test goes by the spread of *these*.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .transitions import LayerTransition

FIT_STATISTICS = (
    "a linear map learned from half of the tokens",
    "a ReLU network learned from half of the tokens",
    "the tails of the noise",
    "the mean of the tokens",
    "the second moments of the tokens",
    "the pull towards the mean",
)
LEAST_P_VALUE = 1e-300  # of p-values
LEAST_SPREAD = 1e-300  # is added to what may be 0
# Part of the spread of replicas that is left without one of them, at least
LEAST_REMAINING_SPREAD = 1e-12
RELU_UNITS = 128  # of the ReLU network, at most


@dataclass(frozen=True)
class Goodness:
    """A test of the hypothesis that the layers are those of the fitted flow.

    Attributes
    ----------
    p_value : float
        Of both parts together: twice the smaller one.
    of_statistics, of_layers : float
        Of the statistics, and of parameters that are the same in all layers.
    deviations : dict
        Standard errors by which each statistic is off.
    """

    p_value: float
    of_statistics: float
    of_layers: float
    deviations: dict[str, float]

    @property
    def p_in_words(self) -> str:
        """ "= 0.03", or "< 1e-300" where it is less than numbers can be."""
        return f"= {self.p_value:.2g}" if self.p_value > LEAST_P_VALUE else f"< {LEAST_P_VALUE:g}"


@dataclass(frozen=True, eq=False)
class Compared:
    """A layer and replicas of it.

    Attributes
    ----------
    transition : LayerTransition
    y : ndarray, (R, n, d)
        Replicas of the next layer.
    scores : ndarray, (R, p)
        Of the replicas, summed over tokens.
    score : ndarray, (p,)
        That of the layer.
    left : ndarray, (R, n, d)
        Residuals of the replicas, up to a constant.
    residual : ndarray, (n, d)
        Those of the layer, with the same constant.
    """

    transition: LayerTransition
    y: np.ndarray
    scores: np.ndarray
    score: np.ndarray
    left: np.ndarray
    residual: np.ndarray


class Comparison:
    """Comparison of layers with new replicas at the estimate, transition by transition.

    Parameters
    ----------
    dimension : int
        Of the space of the tokens.
    rng : numpy.random.Generator
        Of the first layer of the ReLU network.

    Attributes
    ----------
    value : ndarray, (p,)
        The sum of scores of the layers, less its mean over replicas.
    variance : ndarray, (p, p)
        Of that sum under the model.
    """

    def __init__(self, dimension: int, rng: np.random.Generator):
        self._weights = rng.standard_normal((dimension, min(2 * dimension, RELU_UNITS)))
        self._tables: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._layers: list[float] = []
        self._others: list[np.ndarray] = []
        self._off: list[np.ndarray] = []
        self.value: np.ndarray = np.zeros(())
        self.variance: np.ndarray = np.zeros(())

    def add(self, one: Compared) -> None:
        """Add the next transition."""
        h, count = one.scores, len(one.y)
        p = h.shape[1]
        covariance = np.atleast_2d(np.cov(h.T))
        center = h.mean(axis=0)
        value, away = one.score - center, h - center
        self.variance = self.variance + covariance
        self.value = self.value + value
        self._scores.append(away * count / (count - 1))
        precision = np.linalg.pinv(covariance)
        size = value @ precision @ value * count / (count + 1)
        self._layers.append(float(_surprise(size, p, count)))
        sizes = leave_one_out(((away @ precision) * away).sum(axis=1), count)
        self._others.append(_surprise(sizes * (count - 1) / count, p, count - 1))
        mean = one.left.mean(axis=0)
        others = (one.left - mean) * count / (count - 1)
        table = _statistics(one.transition.x, others, one.y, self._weights)
        residual = (one.residual - mean)[None]
        observed = _statistics(one.transition.x, residual, one.transition.y[None], self._weights)[0]
        off, spread = table - table.mean(axis=0), table.std(axis=0, ddof=1) + LEAST_SPREAD
        self._tables.append(np.sign(off) * np.sqrt(leave_one_out((off / spread) ** 2, count)))
        self._off.append((observed - table.mean(axis=0)) / spread)

    @property
    def goodness(self) -> Goodness:
        """The test of fit.

        Layers are combined by Fisher's method: twice the sum of the -log p of all of them has a
        gamma law, whose mean and variance are those of replicas, and not less than if scores were
        normal.
        """
        from scipy.stats import gamma

        transitions, p = len(self._tables), len(self.value)
        table, others = np.concatenate(self._tables), np.concatenate(self._scores)
        slopes = np.linalg.lstsq(others, table, rcond=None)[0]
        free = len(table) - transitions - p
        left_over = table - others @ slopes
        covariance = left_over.T @ left_over / (len(table) - p) * transitions
        off = np.sum(self._off, axis=0) - self.value @ slopes
        k = len(off)
        square = float(off @ np.linalg.pinv(covariance) @ off)
        by_statistics = float(_f_tail(square * (free - k + 1) / (free * k), k, free - k + 1))
        by_layers = 1.0
        if transitions > 1:
            mean = max(2.0 * transitions, sum(one.mean() for one in self._others))
            variance = max(4.0 * transitions, sum(one.var(ddof=1) for one in self._others))
            total = sum(self._layers) * mean / variance
            by_layers = float(gamma.sf(total, mean**2 / variance))
        deviations = (off / np.sqrt(np.diag(covariance))).tolist()
        both = min(1.0, 2 * min(by_statistics, by_layers))
        named = dict(zip(FIT_STATISTICS, deviations, strict=True))
        return Goodness(both, by_statistics, by_layers, named)


def _f_tail(value: Any, of: int, over: int) -> Any:
    """The probability that a variable with Fisher's F law is larger."""
    from scipy.special import fdtrc

    return fdtrc(of, over, value)


def leave_one_out(squares: np.ndarray, count: int) -> np.ndarray:
    """Squared distances of replicas from the mean of the others, in units of the others' spread.

    `squares` are those from the mean of all `count`, in units of the spread of all: Sherman and
    Morrison's formula.
    """
    left = np.maximum(1 - count * squares / (count - 1) ** 2, LEAST_REMAINING_SPREAD)
    return squares * count**2 * (count - 2) / ((count - 1) ** 3 * left)


def _surprise(square: Any, p: int, count: int) -> Any:
    """-2 log of the p-value of a squared distance, of p numbers from those of `count` replicas."""
    tail = _f_tail(square * (count - p) / ((count - 1) * p), p, count - p)
    return -2 * np.log(np.maximum(tail, LEAST_P_VALUE))


def _statistics(x: np.ndarray, left: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The statistics (R, 6) of residuals `left` at x (n, d) and of next layers y (R, n, d).

    Positive ones by their logarithms, whose laws are closer to normal.
    """
    n, d = x.shape
    squares = (left**2).sum(axis=-1)
    scale = np.sqrt(squares.mean(axis=1) / (d - 1))[:, None, None]
    noise = left / scale
    features = np.maximum(x @ weights, 0)
    mean = y.mean(axis=1)
    second = y.transpose(0, 2, 1) @ y / n
    pull = x.mean(axis=0) - (x @ x.mean(axis=0))[:, None] * x
    columns = [
        _learned(x, noise, x),
        _learned(features - features.mean(axis=0), noise, x),
        np.log((squares**2).sum(axis=1) / squares.sum(axis=1) ** 2),
        np.log((mean**2).sum(axis=-1)),
        np.log((second**2).sum(axis=(-1, -2)) - 1 / d),
        np.einsum("rnd,nd->r", noise, pull),
    ]
    return np.stack(columns, axis=1)


def _learned(features: np.ndarray, noise: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Agreement (R,) of one half of the tokens with a regression on the other, both ways."""
    agreement = np.zeros(len(noise))
    halves = (np.arange(len(x)) % 2 == 0, np.arange(len(x)) % 2 == 1)
    for learn, test in (halves, halves[::-1]):
        F = features[learn]
        gram = F.T @ F
        gram += (np.trace(gram) / len(gram) or 1.0) * np.eye(len(gram))
        predicted = features[test] @ np.linalg.solve(gram, F.T) @ noise[:, learn]
        predicted -= (predicted * x[test]).sum(axis=-1, keepdims=True) * x[test]
        size = np.sqrt((predicted**2).sum(axis=(1, 2))) + LEAST_SPREAD
        agreement += (predicted * noise[:, test]).sum(axis=(1, 2)) / size
    return agreement
