"""Are the layers a flow? The variance of the equations under the model, and a test of fit.

A test of fit needs statistics that a true flow leaves at their mean, whatever the statistics are:
their law is that of the model's own replicas. Two of those used here are learned: what a regression
on the residuals of one half of the tokens predicts for the other half.
"""

from dataclasses import dataclass

import numpy as np

from .transitions import Transition

STATISTICS = (
    "a linear map learned from half of the tokens",
    "a ReLU network learned from half of the tokens",
    "tails of the noise",
    "the mean of the tokens",
    "their second moments",
    "a pull to the mean",
)
LEAST = 1e-300  # of p-values
UNITS = 128  # of the ReLU network, at most


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
        return f"= {self.p_value:.2g}" if self.p_value > LEAST else f"< {LEAST:g}"


@dataclass(frozen=True, eq=False)
class Compared:
    """A layer beside replicas of it.

    Attributes
    ----------
    transition : Transition
    y : ndarray, (R, n, d)
        Replicas of the next layer.
    scores : ndarray, (R, p)
        Of the replicas, summed over tokens.
    score : ndarray, (p,)
        That of the layer.
    left : ndarray, (R, n, d)
        Residuals of the replicas, up to a constant.
    own_left : ndarray, (n, d)
        Those of the layer, with the same constant.
    """

    transition: Transition
    y: np.ndarray
    scores: np.ndarray
    score: np.ndarray
    left: np.ndarray
    own_left: np.ndarray


class Comparison:
    """Layers beside new replicas of them at the estimate, transition by transition.

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
        self._weights = rng.standard_normal((dimension, min(2 * dimension, UNITS)))
        self._tables: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._layers: list[float] = []
        self._off: list[np.ndarray] = []
        self.value: np.ndarray = np.zeros(())
        self.variance: np.ndarray = np.zeros(())

    def add(self, one: Compared) -> None:
        """The next transition."""
        h, count = one.scores, len(one.y)
        p = h.shape[1]
        covariance = np.atleast_2d(np.cov(h.T))
        value = one.score - h.mean(axis=0)
        self.variance = self.variance + covariance
        self.value = self.value + value
        self._scores.append(h - h.mean(axis=0))
        size = value @ np.linalg.pinv(covariance * (1 + 1 / count)) @ value
        self._layers.append(float(f_tail(size * (count - p) / ((count - 1) * p), p, count - p)))
        mean = one.left.mean(axis=0)
        others = (one.left - mean) * count / (count - 1)
        table = _statistics(one.transition.x, others, one.y, self._weights)
        own = (one.own_left - mean)[None]
        seen = _statistics(one.transition.x, own, one.transition.y[None], self._weights)[0]
        center, spread = table.mean(axis=0), table.std(axis=0, ddof=1) + 1e-300
        self._tables.append((table - center) / spread)
        self._off.append((seen - center) / spread)

    @property
    def goodness(self) -> Goodness:
        """The test of fit."""
        from scipy.stats import chi2

        transitions, count, p = len(self._tables), len(self._tables[0]), len(self.value)
        table, others = np.concatenate(self._tables), np.concatenate(self._scores)
        slopes = np.linalg.lstsq(others, table, rcond=None)[0]
        free = len(table) - transitions - p
        left_over = table - others @ slopes
        covariance = left_over.T @ left_over / free * transitions * (1 + 1 / count)
        off = np.sum(self._off, axis=0) - self.value @ slopes
        k = len(off)
        square = float(off @ np.linalg.pinv(covariance) @ off)
        by_statistics = float(f_tail(square * (free - k + 1) / (free * k), k, free - k + 1))
        by_layers = 1.0
        if transitions > 1:
            logs = -2 * np.log(np.maximum(self._layers, LEAST)).sum()
            by_layers = float(chi2.sf(logs, 2 * transitions))
        deviations = (off / np.sqrt(np.diag(covariance))).tolist()
        both = min(1.0, 2 * min(by_statistics, by_layers))
        named = dict(zip(STATISTICS, deviations, strict=True))
        return Goodness(both, by_statistics, by_layers, named)


def f_tail(value: float, of: int, over: int) -> float:
    """The probability that a variable with Fisher's F law is larger."""
    from scipy.special import fdtrc

    return float(fdtrc(of, over, value))


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
    """How well a ridge regression on one half of the tokens predicts the other, both ways, (R,)."""
    found = np.zeros(len(noise))
    halves = (np.arange(len(x)) % 2 == 0, np.arange(len(x)) % 2 == 1)
    for learn, test in (halves, halves[::-1]):
        F = features[learn]
        gram = F.T @ F
        gram += (np.trace(gram) / len(gram) or 1.0) * np.eye(len(gram))
        predicted = features[test] @ np.linalg.solve(gram, F.T) @ noise[:, learn]
        predicted -= (predicted * x[test]).sum(axis=-1, keepdims=True) * x[test]
        size = np.sqrt((predicted**2).sum(axis=(1, 2))) + 1e-300
        found += (predicted * noise[:, test]).sum(axis=(1, 2)) / size
    return found
