"""Predictions of held-out layers and texts, compared with no change and a linear map."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield import Tokens, wasserstein

from ..bootstrap import RESAMPLED_TEXTS, interval
from .equations import Equations
from .transitions import LayerTransition, angles, unit

LINEAR_PENALTIES = 10.0 ** np.arange(-4, 5)  # strengths of the penalty of linear maps
PREDICTION_DRAWS = 1000


@dataclass(frozen=True)
class Prediction:
    """Errors of predictions of held-out layers or texts.

    Attributes
    ----------
    kind : str
        "layers" or "texts".
    flow, nothing, linear : float
        Root mean square angles in radians between predicted and real tokens.
    over_nothing, over_linear : (float, float)
        95 % intervals of the mean squared angle of the flow divided by that of "nothing" and of
        "linear", by bootstrap over tokens, or over texts if there are 5 or more.
    distances : dict
        W2 in radians between the tokens of the last layer held out and each prediction of them.
    """

    kind: str
    flow: float
    nothing: float
    linear: float
    over_nothing: tuple[float, float]
    over_linear: tuple[float, float]
    distances: dict[str, float]


def hold_out(
    transitions: Sequence[LayerTransition],
) -> tuple[list[LayerTransition], dict[str, list[LayerTransition]]]:
    """Split transitions into training and held-out ones: the last third of layers, and of texts.

    Layers are held out only if texts have at least two transitions, texts only if there are at
    least two.
    """
    texts = sorted({pair.text for pair in transitions})
    last = max(pair.layer for pair in transitions)
    first_held_out = last + 1 - ((last + 1) // 3 or 1) if last else 1
    held_out_texts = set(texts[len(texts) - (len(texts) // 3 or 1) :]) if len(texts) > 1 else set()
    train: list[LayerTransition] = []
    held_out: dict[str, list[LayerTransition]] = {"layers": [], "texts": []}
    for pair in transitions:
        if pair.text in held_out_texts:
            held_out["texts"].append(pair)
        elif pair.layer >= first_held_out:
            held_out["layers"].append(pair)
        else:
            train.append(pair)
    return train, {name: part for name, part in held_out.items() if part}


def predictions(
    equations: Equations,
    point: np.ndarray,
    held_out: dict[str, list[LayerTransition]],
    rng: np.random.Generator,
) -> list[Prediction]:
    """Errors of predictions of held-out transitions.

    `equations` contain the training transitions, and `point` is their root.
    """
    linear, results = _linear_map(equations.transitions), []
    for kind, part in held_out.items():
        flow, sample = equations.predicted(point, part)
        predicted = {
            "flow": flow,
            "nothing": [pair.x for pair in part],
            "linear": [unit(pair.x @ linear) for pair in part],
        }
        squares = {
            key: [angles(y, pair.y) ** 2 for y, pair in zip(layers, part, strict=True)]
            for key, layers in predicted.items()
        }
        laws = {key: layers[-1] for key, layers in predicted.items()} | {"flow": sample}
        last = Tokens(part[-1].y)
        w2 = {key: float(wasserstein(Tokens(unit(law)), last)) for key, law in laws.items()}
        errors = {key: float(np.sqrt(np.concatenate(s).mean())) for key, s in squares.items()}
        draws = _draws(part, squares, rng)
        first, second = (
            tuple(interval(draws["flow"] / draws[key]).tolist()) for key in ("nothing", "linear")
        )
        results.append(Prediction(kind, **errors, over_nothing=first, over_linear=second,
                                  distances=w2))  # fmt: skip
    return results


def _linear_map(train: Sequence[LayerTransition]) -> np.ndarray:
    """Matrix B (d, d) of the prediction x B/|x B| of y, by least squares with a penalty |B - 1|^2.

    The strength of the penalty is chosen by cross-validation on two halves of the tokens.
    """
    halves = [slice(0, None, 2), slice(1, None, 2)]
    parts = [[np.concatenate([getattr(p, k)[h] for p in train]) for k in "xy"] for h in halves]

    def learned(x: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
        gram, unit = x.T @ x, np.eye(x.shape[1])
        size = penalty * np.trace(gram) / len(gram)
        return unit + np.linalg.solve(gram + size * unit, x.T @ (y - x))

    errors = [
        sum((angles(unit(b[0] @ learned(a[0], a[1], penalty)), b[1]) ** 2).sum()
            for a, b in (parts, parts[::-1]))
        for penalty in LINEAR_PENALTIES
    ]  # fmt: skip
    x, y = (np.concatenate([parts[0][k], parts[1][k]]) for k in (0, 1))
    return learned(x, y, float(LINEAR_PENALTIES[int(np.argmin(errors))]))


def _draws(
    part: list[LayerTransition], squares: dict[str, list[np.ndarray]], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Bootstrap means (draws,) of squared angles by kind of prediction.

    Tokens, with all their layers, or texts are drawn with replacement.
    """
    texts = sorted({pair.text for pair in part})
    counts: list[np.ndarray] = []
    totals: dict[str, list[np.ndarray]] = {key: [] for key in squares}
    for text in texts:
        indices = [i for i, pair in enumerate(part) if pair.text == text]
        counts.append(np.full(len(part[indices[0]].x), len(indices)))
        for key, table in squares.items():
            totals[key].append(np.sum([table[i] for i in indices], axis=0))
    if len(texts) >= RESAMPLED_TEXTS:
        counts = [np.array([count.sum() for count in counts])]
        totals = {key: [np.array([t.sum() for t in table])] for key, table in totals.items()}
    sizes = np.concatenate(counts)
    drawn = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=PREDICTION_DRAWS)
    means = drawn @ sizes
    return {key: (drawn @ np.concatenate(table)) / means for key, table in totals.items()}
