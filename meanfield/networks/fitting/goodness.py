"""Test of fit: layers compared with replicas of the fitted flow.

Any statistics can be tested, as replicas of the fitted flow give their law. Two of the statistics
used here are learned: they measure how well a regression on the residuals of one half of the tokens
predicts the residuals of the other half.

A layer is compared with the mean and the spread of few replicas, which are random themselves, and
with few tokens neither statistics nor scores are normal. To account for both, each replica is
compared with the other replicas as the layer is with all, and the test uses the spread of these
comparisons.
"""

from dataclasses import dataclass

import numpy as np

from meanfield.extending import Values

from .transitions import LayerTransition

FIT_STATISTICS = (
    "a linear map learned from half of the tokens",
    "a ReLU network learned from half of the tokens",
    "the tails of the noise",
    "the mean of the tokens",
    "the second moments of the tokens",
    "the pull towards the mean",
)
LEAST_P_VALUE = 1e-300  # lower bound of p-values
LEAST_SPREAD = 1e-300  # added to denominators that may be 0
# Lower bound of the fraction of the spread of replicas that remains if one of them is left out
LEAST_REMAINING_SPREAD = 1e-12
RELU_UNITS = 128  # largest number of hidden units of the ReLU network


@dataclass(frozen=True)
class Goodness:
    """A test of the hypothesis that the layers are those of the fitted flow.

    Attributes
    ----------
    p_value : float
        p-value of both parts together: twice the smaller one, at most 1.
    of_statistics, of_layers : float
        p-values of the statistics, and of equal parameters in all layers.
    deviations : dict
        Deviation of each statistic from its mean under the model, in standard errors.
    """

    p_value: float
    of_statistics: float
    of_layers: float
    deviations: dict[str, float]

    @property
    def p_in_words(self) -> str:
        """The p-value as "= 0.03", or as "< 1e-300" at or below that bound."""
        return f"= {self.p_value:.2g}" if self.p_value > LEAST_P_VALUE else f"< {LEAST_P_VALUE:g}"


# A layer and replicas of it: the transition; replicas (R, n, d) of the next layer; their scores
# (R, p) and the score (p,) of the layer, summed over tokens; residuals (R, n, d) of the replicas
# and (n, d) of the layer, up to the same constant
Compared = tuple[LayerTransition, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Comparison:
    """Comparison of layers with new replicas at the estimate, transition by transition.

    Parameters
    ----------
    dimension : int
        Dimension d of the tokens.
    rng : numpy.random.Generator
        Random numbers of the first layer of the ReLU network.

    Attributes
    ----------
    value : ndarray, (p,)
        The sum of scores of the layers, minus its mean over replicas.
    variance : ndarray, (p, p)
        Variance of that sum under the model.
    """

    def __init__(self, dimension: int, rng: np.random.Generator):
        self._weights = rng.standard_normal((dimension, min(2 * dimension, RELU_UNITS)))
        self._statistics_of_replicas: list[np.ndarray] = []
        self._scores_of_replicas: list[np.ndarray] = []
        self._layer_terms: list[float] = []
        self._replica_terms: list[np.ndarray] = []
        self._observed_excess: list[np.ndarray] = []
        self.value: np.ndarray = np.zeros(())
        self.variance: np.ndarray = np.zeros(())

    def add(self, compared: Compared) -> None:
        """Add the next transition."""
        transition, y, scores, score, left, residual = compared
        count, p = scores.shape
        covariance, center = np.atleast_2d(np.cov(scores.T)), scores.mean(axis=0)
        value, deviations = score - center, scores - center
        self.variance = self.variance + covariance
        self.value = self.value + value
        self._scores_of_replicas.append(deviations * count / (count - 1))
        precision = np.linalg.pinv(covariance)
        size = value @ precision @ value * count / (count + 1)
        self._layer_terms.append(float(_fisher_term(size, p, count)))
        sizes = leave_one_out(((deviations @ precision) * deviations).sum(axis=1), count)
        self._replica_terms.append(_fisher_term(sizes * (count - 1) / count, p, count - 1))
        x, mean = transition.x, left.mean(axis=0)
        table = _statistics(x, (left - mean) * count / (count - 1), y, self._weights)
        (observed,) = _statistics(x, (residual - mean)[None], transition.y[None], self._weights)
        excess, scale = table - table.mean(axis=0), table.std(axis=0, ddof=1) + LEAST_SPREAD
        self._statistics_of_replicas.append(
            np.sign(excess) * np.sqrt(leave_one_out((excess / scale) ** 2, count))
        )
        self._observed_excess.append((observed - table.mean(axis=0)) / scale)

    @property
    def goodness(self) -> Goodness:
        """The test of fit.

        Layers are combined by Fisher's method: the sum of -2 log p over all layers is compared with
        a gamma law. Its mean and variance are estimated from replicas, and are at least those for
        normal scores.
        """
        from scipy.special import fdtrc
        from scipy.stats import gamma

        transitions, p = len(self._statistics_of_replicas), len(self.value)
        table, scores = (
            np.concatenate(self._statistics_of_replicas),
            np.concatenate(self._scores_of_replicas),
        )
        slopes = np.linalg.lstsq(scores, table, rcond=None)[0]
        dof = len(table) - transitions - p
        left_over = table - scores @ slopes
        covariance = left_over.T @ left_over / (len(table) - p) * transitions
        excess = np.sum(self._observed_excess, axis=0) - self.value @ slopes
        k = len(excess)
        square = float(excess @ np.linalg.pinv(covariance) @ excess)
        by_statistics = float(fdtrc(k, dof - k + 1, square * (dof - k + 1) / (dof * k)))
        by_layers = 1.0
        if transitions > 1:
            mean = max(2.0 * transitions, sum(values.mean() for values in self._replica_terms))
            variance = max(
                4.0 * transitions, sum(values.var(ddof=1) for values in self._replica_terms)
            )
            total = sum(self._layer_terms) * mean / variance
            by_layers = float(gamma.sf(total, mean**2 / variance))
        deviations = (excess / np.sqrt(np.diag(covariance))).tolist()
        both = min(1.0, 2 * min(by_statistics, by_layers))
        by_name = dict(zip(FIT_STATISTICS, deviations, strict=True))
        return Goodness(both, by_statistics, by_layers, by_name)


def leave_one_out(squares: np.ndarray, count: int) -> np.ndarray:
    """Squared distances of replicas from the mean of the others, in units of the others' spread.

    `squares` are their squared distances from the mean of all `count` replicas, in units of the
    spread of all; Sherman and Morrison's formula converts them.
    """
    left = np.maximum(1 - count * squares / (count - 1) ** 2, LEAST_REMAINING_SPREAD)
    return squares * count**2 * (count - 2) / ((count - 1) ** 3 * left)


def _fisher_term(square: Values, p: int, count: int) -> Values:
    """-2 log of the p-value of the squared distance of p numbers from the mean of `count` replicas.

    Distances are in units of the covariance of the replicas, whose law is Hotelling's.
    """
    from scipy.special import fdtrc

    tail = fdtrc(p, count - p, square * (count - p) / ((count - 1) * p))
    return -2 * np.log(np.maximum(tail, LEAST_P_VALUE))


def _statistics(x: np.ndarray, left: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The statistics (R, 6) of residuals `left` at x (n, d) and of next layers y (R, n, d).

    Positive statistics are replaced by their logarithms, whose laws are closer to normal.
    """
    n, d = x.shape
    squares = (left**2).sum(axis=-1)
    noise = left / np.sqrt(squares.mean(axis=1) / (d - 1))[:, None, None]
    features = np.maximum(x @ weights, 0)
    mean, second = y.mean(axis=1), y.transpose(0, 2, 1) @ y / n
    pull = x.mean(axis=0) - (x @ x.mean(axis=0))[:, None] * x
    return np.stack([
        _regression_agreement(x, noise, x),
        _regression_agreement(features - features.mean(axis=0), noise, x),
        np.log((squares**2).sum(axis=1) / squares.sum(axis=1) ** 2),
        np.log((mean**2).sum(axis=-1)),
        np.log((second**2).sum(axis=(-1, -2)) - 1 / d),
        np.einsum("rnd,nd->r", noise, pull),
    ], axis=1)  # fmt: skip


def _regression_agreement(features: np.ndarray, noise: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Agreement (R,) of residuals `noise` (R, n, d) with regressions learned on half of the tokens.

    A ridge regression on `features` (n, k) is learned on each half of the tokens x (n, d) and
    evaluated on the other; the result is the sum of both.
    """
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
