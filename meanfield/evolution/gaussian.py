"""The motion of a normal law under attention in R^d: a' = sum_h V_h m_h, L' = sum_h V_h R_h.

Attention moves a point x = a + L z with the velocity sum_h V_h E_h[y | x], which is affine in z,
see `gaussian_attention`. So the law stays normal, with the mean a and the covariance L L^T. Of this
root L no step can make a covariance that is not positive semidefinite.
"""

import numpy as np

from ..drifts import Attention
from ..drifts.heads import heads
from ..errors import MeanfieldError
from ..model import Transformer
from ..states import Gaussian
from .gaussian_attention import AFFINE, expected, full
from .pieces import Piece, distinct

__all__ = ["GaussianMotion", "checked_attention"]


class GaussianMotion:
    """Velocities of mean and root of a normal law; the `Motion` of `steppers.Flow`.

    Coordinates are an array (d, d + 1): the columns of L, and then a.

    Parameters
    ----------
    model : Transformer
        `Attention` with softmax, L2, Sinkhorn or linear weights, without noise.
    state : Gaussian

    Raises
    ------
    MeanfieldError
        For a model under which the law does not stay normal, with the reason.
    ValueError
        For matrices of another dimension, and an ensemble.

    References
    ----------
    Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322, section 4.
    """

    def __init__(self, model: Transformer, state: Gaussian):
        self._drift, self._dimension = checked_attention(model, state), state.dimension
        self._piece = Piece()

    def coordinates(self, state: Gaussian) -> np.ndarray:
        """The array that moves, with the symmetric root of the covariance."""
        return np.column_stack([state.root, state.mean])

    def state_of(self, y: np.ndarray) -> Gaussian:
        """The law with these coordinates."""
        root = y[:, :-1]
        return Gaussian.computed(y[:, -1], root @ root.T)

    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates."""
        L, a, d = np.ascontiguousarray(y[:, :-1]), y[:, -1], self._dimension
        matrices = self._drift.at(self._piece.inside(t))
        beta = matrices.pop("beta")
        rates = np.zeros_like(y)
        with np.errstate(over="ignore", invalid="ignore"):  # of which a run is told by its result
            for head in heads(matrices):
                Q, K = full(head["Q"], d), full(head["K"], d)
                m, R = expected(self._drift.weights, a, L, Q, K, beta)
                pulled = full(head["V"], d) @ np.column_stack([R, m])
                rates += full(head["output"], d) @ pulled if "output" in head else pulled
        return rates

    def breakpoints(self, start: float, end: float) -> list[float]:
        """Times between start and end at which a parameter jumps."""
        return distinct(float(t) for t in self._drift.breakpoints(start, end))

    def enter(self, start: float, end: float) -> None:
        """Between two breakpoints; at either the parameters are taken as they are in between."""
        self._piece.enter(start, end)

    def relative_error(self, error: np.ndarray, y: np.ndarray) -> float:
        """That of the root relative to it, or of the mean relative to (int |x|^2 dmu)^(1/2)."""
        root, size = np.linalg.norm(y[:, :-1]), np.linalg.norm(y)
        if not np.isfinite(size):
            return np.inf
        of_root = np.linalg.norm(error[:, :-1]) / (root if root > 0 else 1.0)
        return float(max(of_root, np.linalg.norm(error[:, -1]) / (size if size > 0 else 1.0)))

    def projected(self, y: np.ndarray) -> np.ndarray:
        """The same: every root is one of a covariance."""
        return y

    def rate(self, _y: np.ndarray, velocity: np.ndarray) -> float:
        """(int |v|^2 dmu)^(1/2)."""
        return float(np.linalg.norm(velocity))

    def growth(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """The rate d/dt log int |x|^2 dmu; 0 for the Dirac at 0."""
        square = float((y**2).sum())
        return 2 * float((y * velocity).sum()) / square if square > 0 else 0.0


def checked_attention(model: Transformer, state: Gaussian) -> Attention:
    """The drift; raises MeanfieldError or ValueError, with the reason, if no law stays normal."""
    drift = model.drift
    advice = "Solve for Tokens: gaussian.sample(n, rng=...)."
    if not isinstance(drift, Attention):
        raise MeanfieldError(
            f"A Gaussian lives in R^d and moves under Attention(Q, K, V, beta); "
            f"{type(drift).__name__} is not affine on it, or lives on the sphere. {advice}"
        )
    if type(drift.weights) not in AFFINE:
        raise MeanfieldError(
            f"{drift.weights!r} weights give velocities that are not affine in x, so that a "
            "Gaussian does not stay one. Softmax(), L2(), Sinkhorn() and Linear() keep it; or "
            f"{advice[0].lower()}{advice[1:]}"
        )
    if drift.causal:
        raise MeanfieldError(
            "Under causal attention tokens of different places have different laws, and what a "
            f"later one sees is a mixture of them, which is not Gaussian. {advice}"
        )
    if model.noisy or model.extras:
        raise MeanfieldError(
            "A Gaussian follows attention without noise, normalisation, reaction or feed-forward "
            f"map; got {model!r}. {advice}"
        )
    if model.shape:
        raise ValueError(
            f"A Gaussian expects a single model; got an ensemble {model.shape}. Solve its members "
            "one by one."
        )
    if drift.dimension not in (None, state.dimension):
        raise ValueError(
            f"{drift!r} is for dimension {drift.dimension}; got a Gaussian of dimension "
            f"{state.dimension}."
        )
    return drift
