"""Verdicts on a fit: is it a flow, and does it predict layers and texts that it has not seen?

A test of fit needs statistics that a true flow leaves at their mean, whatever the statistics are:
their law is that of the model's own replicas. Two of those used here are learned: what a regression
on the residuals of one half of the tokens predicts for the other half.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..states import Tokens
from .families import Family
from .scores import Equations, Estimate, moved
from .transitions import Transition, angles, carried, chord, mean_velocity, replicas_of
from .wide import mean_after

STATISTICS = (
    "a linear map learned from half of the tokens",
    "a ReLU network learned from half of the tokens",
    "tails of the noise",
    "the mean of the tokens",
    "their second moments",
    "a pull to the mean",
)
UNITS = 128  # of the ReLU network, at most
LINEAR = 10.0 ** np.arange(-4, 5)  # strengths of the penalty of linear maps
DRAWS = 1000
LEVEL = 0.95
OF_TEXTS = 5  # from which number on texts are drawn, not tokens


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


@dataclass(frozen=True)
class Prediction:
    """Errors of predictions of layers that were held out.

    Attributes
    ----------
    held : str
        "layers" or "texts".
    flow, nothing, linear : float
        Root mean square angles in radians between predicted and real tokens.
    over_nothing, over_linear : (float, float)
        Intervals, at the level 0.95, of the mean squared angle of the flow divided by that of the
        other, by bootstrap over tokens, or texts where there are 5 or more.
    distances : dict
        W2 in radians between the tokens of the last layer held out and those predicted by each.
    """

    held: str
    flow: float
    nothing: float
    linear: float
    over_nothing: tuple[float, float]
    over_linear: tuple[float, float]
    distances: dict[str, float]


# Is it a flow? -----------------------------------------------------------------------------------


def variance_and_goodness(
    equations: Equations, found: Estimate, rng: np.random.Generator, replicas: int
) -> tuple[Estimate, np.ndarray, Goodness]:
    """With new replicas: a better estimate, the variance of the equations, and the test of fit.

    The estimate, a root for its own `replicas`, takes the step of Newton's method to that for all.
    """
    from scipy.stats import chi2, f

    point, family = found.point, equations.family
    count, p = equations.replicas, len(point)
    weights = rng.standard_normal((equations.dimension, min(2 * equations.dimension, UNITS)))
    again = [one.seed.spawn(1)[0] for one in equations.transitions]
    fresh = [
        Transition(one.x, one.y, one.text, one.layer, seed)
        for one, seed in zip(equations.transitions, again, strict=True)
    ]
    rows, scores, observed, layers, variance = [], [], [], [], np.zeros((p, p))
    value_of_new = np.zeros(p)
    drawn = replicas_of(family.at(point), fresh, count, equations.steps, pairs=False)
    for terms, (one, y) in zip(found.terms, drawn, strict=True):
        x = np.ascontiguousarray(np.broadcast_to(one.x, y.shape))
        h = equations.scores(point, x, y).sum(axis=1)
        covariance = np.atleast_2d(np.cov(h.T))
        variance += covariance
        seen_score = equations.scores(point, one.x[None], one.y[None]).sum(axis=(0, 1))
        value_of_new += seen_score - h.mean(axis=0)
        scores.append(h - h.mean(axis=0))
        value = terms.sum(axis=0)
        layers.append(value @ np.linalg.pinv(covariance * (1 + 1 / count)) @ value)
        left = residuals(family, point, x, y)
        mean = left.mean(axis=0)
        own = residuals(family, point, one.x[None], one.y[None]) - mean
        table = _statistics(one.x, (left - mean) * count / (count - 1), y, weights)
        seen = _statistics(one.x, own, one.y[None], weights)[0]
        center, spread = table.mean(axis=0), table.std(axis=0, ddof=1) + 1e-300
        rows.append((table - center) / spread)
        observed.append((seen - center) / spread)
    table, own_scores = np.concatenate(rows), np.concatenate(scores)
    slopes = np.linalg.lstsq(own_scores, table, rcond=None)[0]
    free = len(table) - len(rows) - p
    left_over = table - own_scores @ slopes
    covariance = left_over.T @ left_over / free * len(rows) * (1 + 1 / count)
    total = np.sum(observed, axis=0) - _total(found) @ slopes
    k = len(total)
    square = float(total @ np.linalg.pinv(covariance) @ total)
    by_statistics = float(f.sf(square * (free - k + 1) / (free * k), k, free - k + 1))
    by_layers = 1.0
    if len(layers) > 1:
        fits = f.sf(np.array(layers) * (count - p) / ((count - 1) * p), p, count - p)
        logs = -2 * np.log(np.maximum(fits, 1e-300)).sum()
        by_layers = float(chi2.sf(logs, 2 * len(layers)))
    off = dict(zip(STATISTICS, (total / np.sqrt(np.diag(covariance))).tolist(), strict=True))
    both = min(1.0, 2 * min(by_statistics, by_layers))
    goodness = Goodness(both, by_statistics, by_layers, off)
    if not found.converged:
        return found, variance, goodness
    part = count / (count + replicas)
    step = np.linalg.pinv(found.sensitivity) @ value_of_new * part
    simulation = part**2 * variance / count + (1 - part) ** 2 * found.simulation
    better = replace(found, point=found.point + step, simulation=simulation)
    return better, variance, goodness


def residuals(family: Family, point: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What is left of the way of each token without the flow's part, as tangent vectors at x."""
    at = family.at(point)
    middle, way = chord(x, y)
    return carried(way - at.time * mean_velocity(at, x, y), middle, x)


def _total(found: Estimate) -> np.ndarray:
    return np.sum([terms.sum(axis=0) for terms in found.terms], axis=0)


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
        gram += np.trace(gram) / len(gram) * np.eye(len(gram))
        maps = np.linalg.solve(gram, F.T)
        predicted = features[test] @ np.einsum("kn,rnd->rkd", maps, noise[:, learn])
        predicted -= (predicted * x[test]).sum(axis=-1, keepdims=True) * x[test]
        size = np.sqrt((predicted**2).sum(axis=(1, 2))) + 1e-300
        found += (predicted * noise[:, test]).sum(axis=(1, 2)) / size
    return found


# Does it predict? --------------------------------------------------------------------------------


def split(transitions: Sequence[Transition]) -> tuple[list[Transition], dict[str, list]]:
    """What a fit is trained on, and what is held out: the last third of layers, and of texts.

    Layers are held out of training texts where a text has two transitions at least, texts where
    there are two.
    """
    texts = sorted({one.text for one in transitions})
    last = max(one.layer for one in transitions)
    first_held = last + 1 - ((last + 1) // 3 or 1) if last else 1
    held_texts = set(texts[len(texts) - (len(texts) // 3 or 1) :]) if len(texts) > 1 else set()
    train, held = [], {"layers": [], "texts": []}  # type: ignore[var-annotated]
    for one in transitions:
        if one.text in held_texts:
            held["texts"].append(one)
        elif one.layer >= first_held:
            held["layers"].append(one)
        else:
            train.append(one)
    return train, {name: part for name, part in held.items() if part}


def predictions(
    family: Family,
    point: np.ndarray,
    train: Sequence[Transition],
    held: dict[str, list[Transition]],
    replicas: int,
    steps: int,
    rng: np.random.Generator,
    *,
    wide: bool = False,
) -> list[Prediction]:
    """Errors of a fit to `train` on what was held out.

    Means are those of the limit of many dimensions where `wide`, otherwise of replicas.
    """
    from ..distances import wasserstein

    linear = _linear_map(train)
    found = []
    for name, part in held.items():
        flow, drawn = _flow(family, point, part, replicas, steps)
        if wide:
            flow = [_unit(mean_after(family.at(point), one.x)) for one in part]
        ahead = {
            "flow": flow,
            "nothing": [one.x for one in part],
            "linear": [_unit(one.x @ linear) for one in part],
        }
        squares = {
            key: [angles(y, one.y) ** 2 for y, one in zip(ys, part, strict=True)]
            for key, ys in ahead.items()
        }
        draws = _draws(part, squares, rng)
        last = part[-1]
        laws = {"flow": drawn, **{key: ahead[key][-1] for key in ("nothing", "linear")}}
        distances = {
            key: float(wasserstein(Tokens(_unit(law)), Tokens(last.y))) for key, law in laws.items()
        }
        rms = {key: float(np.sqrt(np.concatenate(s).mean())) for key, s in squares.items()}
        low = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
        intervals = [np.quantile(draws["flow"] / draws[key], low) for key in ("nothing", "linear")]
        first, second = ((float(a), float(b)) for a, b in intervals)
        errors = rms["flow"], rms["nothing"], rms["linear"]
        found.append(Prediction(name, *errors, first, second, distances))
    return found


def _flow(
    family: Family, point: np.ndarray, part: list[Transition], replicas: int, steps: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """The mean directions of the flow's next layers, and one draw of the last."""
    at = family.at(point)
    if not np.isfinite(at.kappa):
        ahead = [moved(family, point, one.x[None])[0] for one in part]
        return ahead, ahead[-1]
    drawn = [y for _, y in replicas_of(at, part, replicas, steps)]
    return [_unit(y.mean(axis=0)) for y in drawn], drawn[-1][0]


def _linear_map(train: Sequence[Transition]) -> np.ndarray:
    """B of y ~ x B/|x B|, by least squares with a penalty |B - 1|^2 that two halves choose."""
    halves = [slice(0, None, 2), slice(1, None, 2)]
    parts = [[np.concatenate([getattr(one, k)[h] for one in train]) for k in "xy"] for h in halves]

    def learned(x: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
        gram, unit = x.T @ x, np.eye(x.shape[1])
        size = penalty * np.trace(gram) / len(gram)
        return unit + np.linalg.solve(gram + size * unit, x.T @ (y - x))

    errors = [
        sum((angles(_unit(b[0] @ learned(a[0], a[1], penalty)), b[1]) ** 2).sum()
            for a, b in (parts, parts[::-1]))
        for penalty in LINEAR
    ]  # fmt: skip
    both = [np.concatenate([parts[0][k], parts[1][k]]) for k in (0, 1)]
    return learned(both[0], both[1], float(LINEAR[int(np.argmin(errors))]))


def _draws(
    part: list[Transition], squares: dict[str, list[np.ndarray]], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Bootstrap means of squares: of tokens, through all layers, or of texts."""
    texts = sorted({one.text for one in part})
    totals, counts = {key: [] for key in squares}, []  # type: ignore[var-annotated]
    for text in texts:
        own = [i for i, one in enumerate(part) if one.text == text]
        counts.append(np.full(len(part[own[0]].x), len(own)))
        for key, table in squares.items():
            totals[key].append(np.sum([table[i] for i in own], axis=0))
    if len(texts) >= OF_TEXTS:
        sizes = np.array([c.sum() for c in counts])
        sums = {key: np.array([t.sum() for t in table]) for key, table in totals.items()}
    else:
        sizes = np.concatenate(counts)
        sums = {key: np.concatenate(table) for key, table in totals.items()}
    chosen = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=DRAWS)
    return {key: (chosen @ total) / (chosen @ sizes) for key, total in sums.items()}


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
