"""The motion of a normal law under attention in R^d: a' = sum_h V_h m_h, L' = sum_h V_h R_h.

Attention moves a point x = a + L z with the velocity sum_h V_h E_h[y | x], which is affine in z,
see `gaussian_attention`. So the law stays normal, with the mean a and the covariance L L^T. Of this
root L no step can make a covariance that is not positive semidefinite.
"""

import numpy as np
from scipy.linalg import qr, solve_triangular

from ..core.errors import MeanfieldError
from ..models import L2, Attention, Sinkhorn
from ..models.heads import dimension, heads
from ..models.transformer import Transformer
from ..models.weights import Weights
from ..states import Gaussian
from .gaussian_attention import AFFINE, Head, expected, length, lengths, most_exponential
from .metric_speed import metric_speed
from .pieces import Piece, distinct

__all__ = ["GaussianMotion", "checked_attention"]

LARGEST_ROOT = np.sqrt(np.finfo(float).max)  # of a covariance that is finite
ADVICE = "Solve for Tokens: gaussian.sample(n, rng=...)."


class GaussianMotion:
    """Velocities of mean and root of a normal law; the `Motion` of `steppers.Flow`.

    Coordinates are an array (d, d + 1): the columns of L, which fall in size, and then a.

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
        self._piece, self._constant = Piece(), None
        if self._drift.constant:
            self._constant = self._heads(0.0)
        sizes = lengths(self.coordinates(state))
        least = sizes[:-1].min(initial=np.inf, where=sizes[:-1] > 0)
        self._first = np.append(np.full(self._dimension, least), sizes[-1])

    def coordinates(self, state: Gaussian) -> np.ndarray:
        """The array that moves: the root of the covariance, and the mean."""
        return self.projected(np.column_stack([state.root, state.mean]))

    def state_of(self, y: np.ndarray) -> Gaussian:
        """The law with these coordinates."""
        return Gaussian.computed(y[:, -1], y[:, :-1])

    def _shortest(self, sizes: np.ndarray) -> np.ndarray:
        """Lengths (d + 1,) below which digits of columns and mean, now `sizes`, are of no use."""
        return np.maximum(np.minimum(self._first, length(sizes)), np.finfo(float).tiny)

    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates, or of a stack of them, (..., d, d + 1)."""
        rates = np.zeros_like(y)
        with np.errstate(over="ignore", invalid="ignore"):  # of which a run is told by its result
            for head in self._constant or self._heads(t):
                rates += head.V @ expected(self._drift.weights, y, head)
        return rates

    def _heads(self, t: float) -> list[Head]:
        """The heads at t; raises ValueError if they are for another dimension."""
        matrices = self._drift.at(self._piece.inside(t))
        beta = matrices.pop("beta")
        wanted = dimension({name: matrix.shape for name, matrix in matrices.items()})
        if wanted not in (None, self._dimension):
            raise ValueError(_other_dimension(self._drift, wanted, self._dimension))
        return [Head.of(head, self._dimension, beta) for head in heads(matrices)]

    def integrable(self, y: np.ndarray, t: float) -> float:
        """How far L2 weights with beta < 0 are from having no integral, 1 to 0; else 1.

        It is the least of 1 + 2 beta s^2 over the singular values s of K L.
        """
        found = self._heads(t)
        if not isinstance(self._drift.weights, L2) or not found[0].beta < 0:
            return 1.0
        largest = max(np.linalg.norm(head.K @ y[:, :-1], 2) for head in found)
        return float(max(1 + 2 * found[0].beta * largest**2, 0.0))

    def breakpoints(self, start: float, end: float) -> list[float]:
        """Times between start and end at which a parameter jumps."""
        return distinct(float(t) for t in self._drift.breakpoints(start, end))

    def enter(self, start: float, end: float) -> None:
        """Between two breakpoints; at either the parameters are taken as they are in between."""
        self._piece.enter(start, end)

    def relative_error(self, error: np.ndarray, y: np.ndarray) -> float:
        """The largest of a column of the root, or of the mean, relative to its length.

        L' = B L with one matrix B for all columns: the error of a small one is small too. Those
        that fall below the least at the start are compared with that.
        """
        sizes = lengths(y)
        if not (length(sizes[:-1]) < LARGEST_ROOT and np.isfinite(sizes).all()):
            return np.inf
        return float((lengths(error) / np.maximum(sizes, self._shortest(sizes))).max())

    def projected(self, y: np.ndarray) -> np.ndarray:
        """The same law, with a root whose columns fall in size.

        L O for the rotation O of a QR decomposition of L^T with pivoting, which has an error
        relative to each column: a small variance keeps its digits beside a large one.
        """
        if not np.isfinite(y).all():
            return y
        R, order = qr(y[:, :-1].T, mode="r", pivoting=True, check_finite=False)
        new = y.copy()
        new[order, :-1] = R.T
        return new

    def rate(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """The speed of the law in W2."""
        return metric_speed(y[:, :-1], velocity[:, :-1], velocity[:, -1])

    def growth(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """The largest rate d/dt log of |a|^2 and of the variances along the axes of the root.

        They are the squares of the diagonal of T in L = P T, T lower triangular: the variance of a
        coordinate where those of the axes before it are known. A large mean, or a large variance
        that does not grow, hides none of them. Their rates are 2 (T^-1 P^T L')_ii.
        """
        L, slopes, columns = y[:, :-1], velocity[:, :-1], np.arange(self._dimension)
        last = np.where(L != 0, columns, -1).max(axis=1)
        rows = np.where(last[:, None] == columns, np.abs(L), 0.0).argmax(axis=0)
        T = L[rows]
        T[columns, columns] += np.diag(T) == 0  # of columns that vanish and stay so
        rates = np.diag(solve_triangular(T, slopes[rows], lower=True, check_finite=False))
        sizes = lengths(y)
        rates = np.where((sizes > self._shortest(sizes))[:-1], rates, -np.inf)
        a, size = y[:, -1], sizes[-1]
        of_mean = (a / size) @ (velocity[:, -1] / size) if size > 0 else 0.0
        return 2 * float(max(rates.max(), of_mean))

    def most_exponential(self, t: float) -> float:
        """A rate beyond which growth, of these weights at t, may be a blow-up."""
        weights = self._drift.weights
        return sum(most_exponential(weights, head) for head in self._constant or self._heads(t))


def checked_attention(model: Transformer, state: Gaussian) -> Attention:
    """The drift; raises MeanfieldError or ValueError, with the reason, if no law stays normal."""
    if not isinstance(model, Transformer) or not isinstance(state, Gaussian):
        raise TypeError(
            "Expected a Transformer and a Gaussian, such as Transformer(Attention()) and "
            f"Gaussian(mean, cov); got {type(model).__name__} and {type(state).__name__}."
        )
    drift = model.drift
    if not isinstance(drift, Attention):
        raise MeanfieldError(
            f"A Gaussian lives in R^d and moves under Attention(Q, K, V, beta); "
            f"{type(drift).__name__} is not affine on it, or lives on the sphere. {ADVICE}"
        )
    _check_weights(drift.weights)
    if drift.causal:
        raise MeanfieldError(
            "Under causal attention tokens of different places have different laws, and what a "
            f"later one sees is a mixture of them, which is not Gaussian. {ADVICE}"
        )
    if model.noisy or model.extras:
        raise MeanfieldError(
            "A Gaussian follows attention without noise, normalisation, reaction or feed-forward "
            f"map; got {model!r}. {ADVICE}"
        )
    if model.shape:
        raise ValueError(
            f"A Gaussian expects a single model; got an ensemble {model.shape}. Solve its members "
            "one by one."
        )
    if drift.dimension not in (None, state.dimension):
        raise ValueError(_other_dimension(drift, drift.dimension, state.dimension))
    return drift


def _check_weights(weights: Weights) -> None:
    """Raise MeanfieldError for those that are not affine, or iterate where a closed form is."""
    if type(weights) not in AFFINE:
        raise MeanfieldError(
            f"{weights!r} weights give velocities that are not affine in x, so that a "
            "Gaussian does not stay one. Softmax(), L2(), Sinkhorn() and Linear() keep it; or "
            f"{ADVICE[0].lower()}{ADVICE[1:]}"
        )
    if isinstance(weights, Sinkhorn) and weights != Sinkhorn():
        raise MeanfieldError(
            "A Gaussian takes Sinkhorn weights in closed form, without iterations: tolerance and "
            f"most_iterations have no effect. Use Sinkhorn(); got {weights!r}."
        )


def _other_dimension(drift: Attention, wanted: int | None, got: int) -> str:
    return f"{drift!r} is for dimension {wanted}; got a Gaussian of dimension {got}."
