"""Information that layers have about a flow with noise: less than an observer of all times has.

Tokens follow dx = T v ds + sqrt(s2) dB on the sphere for s in [0, 1], one layer, in M steps along
great circles, v that of SA. S = sum over steps and tokens of <d(T v)/d theta, dx - T v ds>/s2,
theta = (beta, log T), is the score of the paths. That of the layers is E[S | layers], so that

    information of layers = information of paths - E Var(S | layers).

The variance is that over paths between the layers that are observed. They are drawn by a Markov
chain. One token after the other is offered a new path, of the guided steps of Delyon and Hu with
the drift of the leading term of the heat kernel on the sphere; it is accepted by the ratio of
densities under the model, in which all tokens feel the new path, and under the guided steps. The
path that led to the layers is itself a draw: the chain begins there, and is stationary.

References
----------
Louis, J. R. Stat. Soc. B 44 (1982): missing information. Delyon and Hu, Stochastic Process. Appl.
116 (2006): guided bridges.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

APART = 0.25  # of a chain: draws that are further apart are taken as independent


@dataclass(frozen=True)
class Layer:
    """A layer of SA with noise.

    Attributes
    ----------
    beta, time : float
        Inverse temperature and T.
    s2 : float
        2 T/kappa, the variance of the noise in a layer in each direction.
    steps : int
        M.
    """

    beta: float
    time: float
    s2: float
    steps: int

    def walk(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A path (M + 1, n, d) from tokens x (n, d)."""
        path = [x]
        for _ in range(self.steps):
            drift = self.field(path[-1])[0] / self.steps
            kick = _tangent(path[-1], rng.standard_normal(x.shape))
            path.append(_exponential(path[-1], drift + np.sqrt(self.s2 / self.steps) * kick))
        return np.array(path)

    def field(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """T v at tokens (..., n, d), and its derivatives by beta and log T, (2, ..., n, d)."""
        cosines = x @ x.swapaxes(-1, -2)
        weights = np.exp(self.beta * (cosines - 1))
        weights /= weights.sum(axis=-1, keepdims=True)
        mean = weights @ x
        weights *= cosines
        by_beta = weights @ x - weights.sum(axis=-1, keepdims=True) * mean
        way = self.time * _tangent(x, mean)
        return way, np.stack([self.time * _tangent(x, by_beta), way])

    def score(self, path: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """S (2,), and the information (2, 2) whose mean is that of paths."""
        drift, slopes = self.field(path[:-1])
        left = _logarithm(path[:-1], path[1:]) - drift / self.steps
        flat = slopes.reshape(2, -1)
        return flat @ left.ravel() / self.s2, flat @ flat.T / (self.steps * self.s2)

    def draws(self, path: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """Scores (count, 2) of paths between the ends of a path, which is the first of them."""
        path, found = path.copy(), [self.score(path)[0]]
        _, n, d = path.shape
        for _ in range(count - 1):
            normals = rng.standard_normal((n, self.steps - 1, d))
            levels = np.log(rng.uniform(size=n))
            _sweep(path, self.beta, self.time, self.s2, normals, levels)
            found.append(self.score(path)[0])
        return np.array(found)


def missing(scores: np.ndarray) -> np.ndarray:
    """Var(S | layers), (2, 2), from draws (N, 2): half the mean square of those far apart."""
    count = len(scores)
    total, pairs = np.zeros((scores.shape[1],) * 2), 0
    for lag in range(int(APART * count), count):
        apart = scores[lag:] - scores[: count - lag]
        total, pairs = total + apart.T @ apart / 2, pairs + len(apart)
    return total / pairs


def _tangent(x: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return vector - (vector * x).sum(axis=-1, keepdims=True) * x


def _exponential(x: np.ndarray, way: np.ndarray) -> np.ndarray:
    angle = np.linalg.norm(way, axis=-1, keepdims=True)
    y = np.cos(angle) * x + np.sinc(angle / np.pi) * way
    return y / np.linalg.norm(y, axis=-1, keepdims=True)


def _logarithm(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    cosine = (x * y).sum(axis=-1, keepdims=True)
    across = y - cosine * x
    sine = np.linalg.norm(across, axis=-1, keepdims=True)
    return across * (np.arctan2(sine, cosine) / np.maximum(sine, 1e-300))


# The chain ---------------------------------------------------------------------------------------


@njit(cache=True, fastmath=True)
def _dot(x, y):
    found = 0.0
    for c in range(x.size):
        found += x[c] * y[c]
    return found


@njit(cache=True)
def _way(x, y, into):
    """The tangent vector at x that leads to y; its length."""
    cosine = _dot(x, y)
    for c in range(x.size):
        into[c] = y[c] - cosine * x[c]
    sine = np.sqrt(_dot(into, into))
    angle = np.arctan2(sine, cosine)
    for c in range(x.size):
        into[c] *= angle / max(sine, 1e-300)
    return angle


@njit(cache=True)
def _guide(x, end, k, steps, s2, into):
    """The mean of the guided step number k from x; its standard deviation in each direction."""
    left = 1 - k / steps
    angle = max(_way(x, end, into), 1e-3)
    pull = 1 / left - s2 * (x.size - 2) / 2 * (1 / angle - 1 / np.tan(angle)) / angle
    for c in range(x.size):
        into[c] *= pull / steps
    return np.sqrt(s2 / steps * (left - 1 / steps) / left)


@njit(cache=True)
def _guided(own, normals, s2):
    """Fill the inner points of a token's path (M + 1, d)."""
    steps, way = len(own) - 1, np.empty(own.shape[1])
    for k in range(steps - 1):
        x = own[k]
        width = _guide(x, own[-1], k, steps, s2, way)
        along = _dot(normals[k], x)
        for c in range(x.size):
            way[c] += width * (normals[k, c] - along * x[c])
        angle = np.sqrt(_dot(way, way))
        ratio = np.sin(angle) / angle if angle > 0 else 1.0
        for c in range(x.size):
            own[k + 1, c] = np.cos(angle) * x[c] + ratio * way[c]
        own[k + 1] /= np.sqrt(_dot(own[k + 1], own[k + 1]))


@njit(cache=True)
def _of_guide(own, ways, s2):
    """Logarithm of the density of guided steps, but for volumes that the model's steps share."""
    steps, mean, found = len(own) - 1, np.empty(own.shape[1]), 0.0
    for k in range(steps - 1):
        width = _guide(own[k], own[-1], k, steps, s2, mean)
        for c in range(mean.size):
            found -= (ways[k, c] - mean[c]) ** 2 / (2 * width**2)
    angle = np.sqrt(_dot(ways[-1], ways[-1]))  # the last step has a volume of its own
    return found + (mean.size - 2) * np.log(np.sin(angle) / angle if angle > 0 else 1.0)


@njit(cache=True, fastmath=True)
def _square(x, way, total, level, time, steps):
    """|way - T v/M|^2, T v that of the sums `total` and `level` of a token x."""
    along, found = _dot(total, x), 0.0
    ratio = time / (steps * level)
    for c in range(x.size):
        found += (way[c] - ratio * (total[c] - along * x[c])) ** 2
    return found


@njit(cache=True, fastmath=True)
def _sums(path, beta, totals, levels):
    """The sums of attention: totals (M, n, d) and levels (M, n)."""
    steps, n, d = totals.shape
    for k in range(steps):
        for i in range(n):
            for j in range(n):
                weight = np.exp(beta * (_dot(path[k, i], path[k, j]) - 1))
                levels[k, i] += weight
                for c in range(d):
                    totals[k, i, c] += weight * path[k, j, c]


@njit(cache=True, fastmath=True)
def _replaced(x, i, new, beta, totals, levels, new_totals, new_levels):
    """The sums of all tokens x (n, d) of a step where token i is at `new`."""
    n, d = x.shape
    new_levels[i], new_totals[i] = 1.0, new
    for j in range(n):
        if j == i:
            continue
        less = np.exp(beta * (_dot(x[j], x[i]) - 1))
        more = np.exp(beta * (_dot(x[j], new) - 1))
        new_levels[j] = levels[j] + more - less
        new_levels[i] += more
        for c in range(d):
            new_totals[j, c] = totals[j, c] + more * new[c] - less * x[i, c]
            new_totals[i, c] += more * x[j, c]


@njit(cache=True)
def _sweep(path, beta, time, s2, normals, thresholds):
    """Offer each token a new path; paths (M + 1, n, d) are changed in place."""
    steps, n, d = len(path) - 1, path.shape[1], path.shape[2]
    totals, levels = np.zeros((steps, n, d)), np.zeros((steps, n))
    _sums(path, beta, totals, levels)
    new_totals, new_levels = totals.copy(), levels.copy()
    ways, squares = np.empty((steps, n, d)), np.empty((steps, n))
    for k in range(steps):
        for i in range(n):
            _way(path[k, i], path[k + 1, i], ways[k, i])
            squares[k, i] = _square(path[k, i], ways[k, i], totals[k, i], levels[k, i], time, steps)
    own, own_ways, new_squares = np.empty((steps + 1, d)), np.empty((steps, d)), squares.copy()
    for i in range(n):
        own[0], own[-1] = path[0, i], path[-1, i]
        _guided(own, normals[i], s2)
        for k in range(steps):
            _way(own[k], own[k + 1], own_ways[k])
        gain = _of_guide(path[:, i], ways[:, i], s2) - _of_guide(own, own_ways, s2)
        for k in range(steps):
            if k > 0:
                _replaced(path[k], i, own[k], beta, totals[k], levels[k],
                          new_totals[k], new_levels[k])  # fmt: skip
            for j in range(n):
                x, way = (own[k], own_ways[k]) if j == i else (path[k, j], ways[k, j])
                if k > 0 or j == i:
                    new_squares[k, j] = _square(
                        x, way, new_totals[k, j], new_levels[k, j], time, steps
                    )
                gain -= (new_squares[k, j] - squares[k, j]) * steps / (2 * s2)
        if thresholds[i] < gain:
            path[:, i], ways[:, i] = own, own_ways
            totals[:], levels[:], squares[:] = new_totals, new_levels, new_squares
