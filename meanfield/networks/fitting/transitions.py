"""Transitions between layers: the tokens of one layer and of the next, and the model's replicas."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from meanfield import MeanfieldError, TokenMotion, Tokens
from meanfield.extending import UserValue, require
from meanfield.steppers import Strang

from ..hidden_states import check_states, texts_of
from .families import LayerFlow

SIMPSON_WEIGHTS = (1 / 6, 4 / 6, 1 / 6)
EARLY_WEIGHTS = (1 / 3, 2 / 3, 0.0)
Arrays = list[np.ndarray]  # one for each transition
REPLICAS_AT_ONCE = 2**22  # coordinates of the replicas in a batch, at most


@dataclass(frozen=True, eq=False)
class LayerTransition:
    """The tokens of a layer and of the next.

    Attributes
    ----------
    x, y : ndarray, (n, d)
        Unit vectors before and after.
    text, layer : int
        Index of the text, and index of the layer of x.
    seed : numpy.random.SeedSequence
        Seed of the replicas of this transition.
    """

    x: np.ndarray
    y: np.ndarray
    text: int
    layer: int
    seed: np.random.SeedSequence


def transitions_of(layers: UserValue, rng: np.random.Generator) -> list[LayerTransition]:
    """Transitions of all texts (L + 1, n, d), in order of text and layer, normalised to length 1.

    Raises
    ------
    TypeError, ValueError
        For layers of another type or shape, and zero vectors.
    """
    hidden: UserValue = getattr(layers, "hidden", layers)
    is_list = isinstance(hidden, Sequence) and not isinstance(hidden, str | bytes)
    require("layers", hidden, "an array, or a list of one text or more", not is_list or len(hidden))
    seed, texts = int(rng.integers(2**63)), texts_of("layers", hidden)
    transitions: list[LayerTransition] = []
    for k, text in enumerate(texts):
        check_states("layers", text)
        h = np.asarray(text, dtype=float)
        h = unit(h / np.abs(h).max(axis=-1, keepdims=True))
        for l, (x, y) in enumerate(pairwise(h)):
            transitions.append(LayerTransition(x, y, k, l, np.random.SeedSequence([seed, k, l])))
    dimensions = sorted({pair.x.shape[1] for pair in transitions})
    require("dimensions of layers", dimensions, "one d of all texts", len(dimensions) == 1)
    return transitions


# Vectors on the sphere ---------------------------------------------------------------------------


def logarithm(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The tangent vector at x that leads to y, of length the angle between them."""
    middle, tangent = chord(x, y)
    return transported(tangent, middle, x)


def chord(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The midpoint of the great circle from x to y, and the displacement as a tangent vector there.

    The displacement has the length of the angle between x and y.
    """
    both, gap = x + y, y - x
    double = np.linalg.norm(both, axis=-1, keepdims=True)
    size = np.linalg.norm(gap, axis=-1, keepdims=True)
    angle = 2 * np.arctan2(size, double)
    if not double.all():
        raise MeanfieldError(
            "A token moves to its antipode in a layer, to which there is no shortest way. Leave it "
            "out, or give noise and wide=True, which needs no ways."
        )
    return both / double, gap * np.where(size > 0, angle / np.where(size > 0, size, 1), 1.0)


def transported(vector: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Parallel transport of tangent vectors along the great circles from start to end."""
    component = (vector * end).sum(axis=-1, keepdims=True)
    return vector - component / (1 + (start * end).sum(axis=-1, keepdims=True)) * (start + end)


def angles(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Angles between unit vectors."""
    difference, total = np.linalg.norm(x - y, axis=-1), np.linalg.norm(x + y, axis=-1)
    return 2 * np.arctan2(difference, total)


def unit(x: np.ndarray) -> np.ndarray:
    """Directions of vectors."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


# Motion under a model ----------------------------------------------------------------------------


def mean_velocity(
    flow: LayerFlow, x: np.ndarray, y: np.ndarray, weights: tuple[float, ...] = SIMPSON_WEIGHTS
) -> np.ndarray:
    """The mean velocity (R, n, d) on the great circles from x to y, transported to their midpoints.

    `weights` are those of the velocities at x, at the midpoint and at y.
    """

    def velocity(tokens: np.ndarray) -> np.ndarray:
        return TokenMotion(flow.model, Tokens(tokens)).velocity(tokens, 0.0)

    middle, _ = chord(x, y)
    mean = weights[1] * velocity(middle)
    for weight, end in ((weights[0], x), (weights[2], y)):
        if weight:
            mean = mean + weight * transported(velocity(end), end, middle)
    return mean


class Draws:
    """Normal random numbers for replicas of many transitions, in pairs of opposite sign.

    Each transition has a generator of its own, so that its numbers do not depend on its batch.
    Without `pairs` all replicas are independent.
    """

    def __init__(self, seeds: Sequence[np.random.SeedSequence], replicas: int, pairs: bool):
        self._sources = [np.random.default_rng(seed) for seed in seeds]
        self._drawn, self._pairs = replicas // 2 if pairs else replicas, pairs

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers for all replicas of all transitions, each of the shape `shape[1:]`."""
        parts = []
        for source in self._sources:
            normals = source.standard_normal((self._drawn, *shape[1:]))
            parts += [normals, -normals] if self._pairs else [normals]
        return np.concatenate(parts)


def replicas_of(
    flow: LayerFlow,
    transitions: Sequence[LayerTransition],
    replicas: int,
    steps: int,
    *,
    pairs: bool = True,
) -> Iterator[tuple[LayerTransition, np.ndarray]]:
    """Yield each transition with next layers (replicas, n, d) drawn from a model with noise.

    The random numbers of a transition are the same at all points. Each layer takes `steps` steps of
    `steppers.Strang`, of weak order 2.
    """
    for shape, group in groupby(transitions, lambda pair: pair.x.shape):
        limit = max(1, REPLICAS_AT_ONCE // (replicas * math.prod(shape)))
        equal = list(group)
        for batch in (equal[k : k + limit] for k in range(0, len(equal), limit)):
            y = np.repeat(np.stack([pair.x for pair in batch]), replicas, axis=0)
            motion = TokenMotion(flow.noisy, Tokens(y), scheme=Strang)
            draws = Draws([pair.seed for pair in batch], replicas, pairs)
            for _ in range(steps):
                y = motion.step(Strang, y, 0.0, flow.time / steps, draws)  # type: ignore[arg-type]
            if not np.isfinite(y).all():
                raise MeanfieldError(
                    f"Replicas of {flow.noisy} are not finite after the time {flow.time:g} in "
                    f"{steps} steps: begin elsewhere, with start=, or take more steps."
                )
            yield from zip(batch, y.reshape(len(batch), replicas, *shape), strict=True)
