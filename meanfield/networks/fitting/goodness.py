"""Are the layers a flow? The variance of the equations under the model, and a test of fit.

A test of fit needs statistics that a true flow leaves at their mean, whatever the statistics are:
their law is that of the model's own replicas. Two of those used here are learned: what a regression
on the residuals of one half of the tokens predicts for the other half.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .equations import Estimate
from .families import Family
from .scores import scores
from .transitions import Transition, carried, chord, mean_velocity, replicas_of

STATISTICS = (
    "a linear map learned from half of the tokens",
    "a ReLU network learned from half of the tokens",
    "tails of the noise",
    "the mean of the tokens",
    "their second moments",
    "a pull to the mean",
)
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


def variance_and_goodness(
    family: Family,
    found: Estimate,
    transitions: Sequence[Transition],
    replicas: int,
    count: int,
    steps: int,
    rng: np.random.Generator,
) -> tuple[Estimate, Goodness]:
    """With `count` new replicas: a better estimate, with its variance, and the test of fit.

    The estimate, a root for its own `replicas`, takes the step of Newton's method to that for all.
    """
    from scipy.stats import chi2, f

    point, d = found.point, transitions[0].x.shape[1]
    p = len(point)
    weights = rng.standard_normal((d, min(2 * d, UNITS)))
    again = [one.seed.spawn(1)[0] for one in transitions]
    fresh = [
        Transition(one.x, one.y, one.text, one.layer, seed)
        for one, seed in zip(transitions, again, strict=True)
    ]
    rows, own_scores, observed, layers, variance = [], [], [], [], np.zeros((p, p))
    value_of_new = np.zeros(p)
    drawn = replicas_of(family.at(point), fresh, count, steps, pairs=False)
    for one, y in drawn:
        x = np.ascontiguousarray(np.broadcast_to(one.x, y.shape))
        h = scores(family, point, x, y).sum(axis=1)
        covariance = np.atleast_2d(np.cov(h.T))
        variance += covariance
        value = scores(family, point, one.x[None], one.y[None]).sum(axis=(0, 1)) - h.mean(axis=0)
        value_of_new += value
        own_scores.append(h - h.mean(axis=0))
        layers.append(value @ np.linalg.pinv(covariance * (1 + 1 / count)) @ value)
        left = residuals(family, point, x, y)
        mean = left.mean(axis=0)
        own = residuals(family, point, one.x[None], one.y[None]) - mean
        table = _statistics(one.x, (left - mean) * count / (count - 1), y, weights)
        seen = _statistics(one.x, own, one.y[None], weights)[0]
        center, spread = table.mean(axis=0), table.std(axis=0, ddof=1) + 1e-300
        rows.append((table - center) / spread)
        observed.append((seen - center) / spread)
    table, others = np.concatenate(rows), np.concatenate(own_scores)
    slopes = np.linalg.lstsq(others, table, rcond=None)[0]
    free = len(table) - len(rows) - p
    left_over = table - others @ slopes
    covariance = left_over.T @ left_over / free * len(rows) * (1 + 1 / count)
    off = np.sum(observed, axis=0) - value_of_new @ slopes
    k = len(off)
    square = float(off @ np.linalg.pinv(covariance) @ off)
    by_statistics = float(f.sf(square * (free - k + 1) / (free * k), k, free - k + 1))
    by_layers = 1.0
    if len(layers) > 1:
        fits = f.sf(np.array(layers) * (count - p) / ((count - 1) * p), p, count - p)
        logs = -2 * np.log(np.maximum(fits, 1e-300)).sum()
        by_layers = float(chi2.sf(logs, 2 * len(layers)))
    deviations = (off / np.sqrt(np.diag(covariance))).tolist()
    both = min(1.0, 2 * min(by_statistics, by_layers))
    named = dict(zip(STATISTICS, deviations, strict=True))
    goodness = Goodness(both, by_statistics, by_layers, named)
    if not found.converged:
        return replace(found, variance=variance), goodness
    part = count / (count + replicas)
    step = found.inverse @ value_of_new * part
    simulation = part**2 * variance / count + (1 - part) ** 2 * found.simulation
    better = replace(found, point=found.point + step, variance=variance, simulation=simulation)
    return better, goodness


def residuals(family: Family, point: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What is left of the way of each token without the flow's part, as tangent vectors at x."""
    at = family.at(point)
    middle, way = chord(x, y)
    return carried(way - at.time * mean_velocity(at, x, y), middle, x)


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
    second = np.einsum("rni,rnj->rij", y, y) / n
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
        maps = np.linalg.solve(gram, F.T)
        predicted = features[test] @ np.einsum("kn,rnd->rkd", maps, noise[:, learn])
        predicted -= (predicted * x[test]).sum(axis=-1, keepdims=True) * x[test]
        size = np.sqrt((predicted**2).sum(axis=(1, 2))) + 1e-300
        found += (predicted * noise[:, test]).sum(axis=(1, 2)) / size
    return found
