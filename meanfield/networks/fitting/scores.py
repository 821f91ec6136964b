"""The score of tokens that move straight from layer to layer, with normal noise.

Let a be the displacement of a token from layer to layer along the great circle, v the mean of the
model's velocity along that circle, and s = 2 T/kappa. If tokens moved by T v with normal noise of
variance s in each tangent direction, the logarithm of the likelihood of a token would be

    log p = -|a - T v|^2/(2 s) - (d - 1)/2 log s

and h = d log p/d theta its score. What the model does within a layer makes h a little wrong.

The score of the layers themselves is the mean of int <d(T v)/d theta, dx - T v ds>/s over paths
between them. If noise is strong, the velocity at the next layer depends mostly on the noise, and
adds to the variance of h but little information. v is then the velocity at x with the weight 1/3
plus that at the midpoint with the weight 2/3: by Simpson's rule standard errors of beta were larger
by 13 to 17 % for SA with beta = 4, T = 0.5, kappa = 20 in d = 16.
"""

from collections.abc import Sequence

import numpy as np

from .families import ParameterFamily, central_differences
from .transitions import EARLY_WEIGHTS, SIMPSON_WEIGHTS, LayerTransition, chord, mean_velocity

DRIFT_CHANGE = 1e-3  # of parameters of a drift in differences, relative to 1 + |theta|
# Mean square displacement by noise in a layer, in radians^2, above which EARLY_WEIGHTS are used
STRONG_NOISE = 0.1


def parts(
    family: ParameterFamily,
    point: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    weights: tuple[float, ...] = SIMPSON_WEIGHTS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Residuals a - T v (..., d), derivatives of T v (p, ..., d) and of log s (p,), and s."""

    def velocity(point: np.ndarray) -> np.ndarray:
        return mean_velocity(family.at(point), x, y, weights)

    flow, v, (_, displacement) = family.at(point), velocity(point), chord(x, y)
    derivatives, of_log_s = np.zeros((len(point), *v.shape)), np.zeros(len(point))
    lengths = DRIFT_CHANGE * family.scale(point)[: family.drifts]
    if family.drifts:
        derivatives[: family.drifts] = flow.time * central_differences(velocity, point, lengths)
    for j, label in enumerate(family.labels):
        if label == "time":
            derivatives[j], of_log_s[j] = flow.time * v, 1
        if label == "kappa":
            of_log_s[j] = -1
    return displacement - flow.time * v, derivatives, of_log_s, 2 * flow.time / flow.kappa


def scores(family: ParameterFamily, point: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The score h of each token, (R, n, p), for layers x and y (R, n, d)."""
    flow, d = family.at(point), x.shape[-1]
    strong = 2 * flow.time / flow.kappa * (d - 1) > STRONG_NOISE
    weights = EARLY_WEIGHTS if strong else SIMPSON_WEIGHTS
    residuals, derivatives, of_log_s, s = parts(family, point, x, y, weights)
    of_drift = np.einsum("prnd,rnd->rnp", derivatives, residuals) / s
    size = (residuals**2).sum(axis=-1) / (2 * s) - (d - 1) / 2
    return of_drift + size[..., None] * of_log_s


def information(
    family: ParameterFamily, point: np.ndarray, transitions: Sequence[LayerTransition]
) -> np.ndarray:
    """Fisher information (p, p) of theta if h were the score of the layers."""
    matrix = np.zeros((len(point), len(point)))
    for pair in transitions:
        _, derivatives, of_log_s, s = parts(family, point, pair.x[None], pair.y[None])
        matrix += np.einsum("prnd,qrnd->pq", derivatives, derivatives) / s
        matrix += np.outer(of_log_s, of_log_s) * pair.x.shape[0] * (pair.x.shape[1] - 1) / 2
    return matrix


def first_guess(family: ParameterFamily, transitions: Sequence[LayerTransition]) -> np.ndarray:
    """The maximum (p,) of the approximate likelihood whose score is h."""
    from scipy.optimize import least_squares

    point = family.start.copy()
    moving = [j for j, label in enumerate(family.labels) if label != "kappa"]

    def at(numbers: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """Residuals and derivatives of each transition; kappa is that of the start."""
        shifted = point.copy()
        shifted[moving] = numbers
        return [parts(family, shifted, pair.x[None], pair.y[None])[:2] for pair in transitions]

    def residuals(numbers: np.ndarray) -> np.ndarray:
        return np.concatenate([r.ravel() for r, _ in at(numbers)])

    def jacobian(numbers: np.ndarray) -> np.ndarray:
        columns = [d[moving].reshape(len(moving), -1) for _, d in at(numbers)]
        return -np.concatenate(columns, axis=1).T

    if moving:
        bounds = tuple(end[moving] for end in family.bounds)
        minimum = least_squares(residuals, point[moving], jac=jacobian, bounds=bounds,
                                x_scale="jac", ftol=1e-6, xtol=1e-6, max_nfev=60)  # fmt: skip
        point[moving] = minimum.x
    if "kappa" in family.labels:
        dof = sum(len(pair.x) * (pair.x.shape[1] - 1) for pair in transitions)
        size, time = (residuals(point[moving]) ** 2).sum() / dof, family.at(point).time
        point[family.labels.index("kappa")] = np.log(2 * time / max(size, 1e-14))
    return point
