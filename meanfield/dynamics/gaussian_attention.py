"""Attention of a point to a normal law: E[y | x] = m + R z for x = a + L z, z standard normal.

Before weighing, x and y are independent with the law N(a, L L^T). With A = beta K^T Q:

    Softmax    m = a + S A a                                R = S A L,        S = L L^T
    L2         m = a + 2 beta L P L^T K^T (Q - K) a         R = 2 beta L P L^T K^T Q L,
                                                            P = (1 + 2 beta L^T K^T K L)^-1
    Sinkhorn   m = a                                        R = L W D U^T,    L^T A^T L = U s W^T,
                                                            D = 2 s / (1 + (1 + 4 s^2)^(1/2))
    Linear     m = (S + a a^T) A a                          R = (S + a a^T) A L

None of them divides by L, so that the covariance may be singular. The entropic plan of Sinkhorn's
weights couples the coordinates of L^T A^T L in pairs of correlation D, where s = D / (1 - D^2).

With A symmetric, and V = c A, one head moves the law with v = grad dE/dmu for the energy

    Linear      E = (c/4) int int <Ax, y>^2 dmu dmu = (c/4) tr((A (S + a a^T))^2)
    Softmax     E = (c/4) tr((A S)^2), if a = 0
    Sinkhorn    E = (c/2) (<Aa, a> + sum_i s_i D_i + log(1 - D_i^2) / 2), s_i the singular values
                of L^T A L: -c/2 times the entropic cost of mu to itself for the cost -<Ax, y>
    L2          E = (c/2) (<Aa, a> + tr(A S) - log det(1 + A S)), if Q = K, A = 2 beta K^T K

so that dE/dt = int |v|^2 dmu. For Gaussians W2 is the distance of Bures and Wasserstein.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..core.annotations import Function
from ..core.dual import Array, Dual, value_of
from ..core.errors import MeanfieldError
from ..models import Attention, Drift
from ..models.attention import HeadMatrices, gradient_factor, nearly_equal
from ..models.weights import L2, Linear, Sinkhorn, Softmax, Weights
from ..states import Gaussian
from ..steppers.flow import NO_FLOAT_WARNINGS

AFFINE_PROBES = 8  # points on each scale
AFFINE_SCALES = (0.1, 1.0, 30.0, 1e3)  # lengths of the probes of an affine map
AFFINE_ROUNDING = 1e-12  # times d: error of an affine map, relative to the sum of its terms


def length(array: np.ndarray) -> float:
    """(sum of squares)^(1/2) of numbers whose squares may overflow or vanish."""
    largest = float(np.abs(array).max(initial=0.0))
    is_regular = 0 < largest < np.inf
    if not is_regular:
        return largest
    shares = (array / largest).ravel()
    return float(largest * np.sqrt(shares @ shares))


def lengths(array: np.ndarray) -> np.ndarray:
    """The `length` of every column."""
    largest = np.abs(array).max(axis=0, initial=0.0)
    scale = np.where((largest > 0) & (largest < np.inf), largest, 1.0)
    shares = array / scale
    with np.errstate(over="ignore"):
        return scale * np.sqrt((shares * shares).sum(axis=0))


class AffineAttention(NamedTuple):
    """Formulas for one kind of weights under which E[y | x] is affine on a normal law.

    Attributes
    ----------
    expected : callable
        (y, head) -> R and m in one array (..., d, d + 1), like y, which has the root and the mean.
    energy : callable
        (A, Q, K, state) -> E/c; nan where the conditions of its formula do not hold.
    fastest : callable
        head -> a bound of d/dt log of variances, or of |a|^2, without a blow-up; 0 without a bound.
    scale : float
        The factor in A = scale * beta K^T Q of the energy.
    integrable : callable
        (y, head) -> a number from 1 to 0; at 0 the weights cease to have an integral over the law.
    closed : bool
        Whether under constant parameters the covariance has a closed form, `ClosedCovariance`.
    iterates : bool
        Whether the weights have parameters of an iteration, which the formulas do not use.
    """

    expected: Callable[[np.ndarray, HeadMatrices], np.ndarray]
    energy: Callable[[np.ndarray, np.ndarray, np.ndarray, Gaussian], float]
    fastest: Callable[[HeadMatrices], float] = lambda head: 0.0
    scale: float = 1.0
    integrable: Callable[[np.ndarray, HeadMatrices], float] = lambda y, head: 1.0
    closed: bool = False
    iterates: bool = False


def affine(weights: Weights) -> AffineAttention | None:
    """The entry in AFFINE for the class of the weights, or its nearest base class; or None."""
    return next((AFFINE[kind] for kind in type(weights).__mro__ if kind in AFFINE), None)


class AffineMap(NamedTuple):
    """The map x -> M x + c of R^d, M (d, d) and c (d,)."""

    M: np.ndarray
    c: np.ndarray


def affine_map(function: Function, dimension: int) -> AffineMap:
    """M and c of a function of points (..., d), from its values at 0 and at the unit vectors.

    Values at `AFFINE_PROBES` random points, on each of the scales `AFFINE_SCALES`, decide whether
    the function is affine.

    Raises
    ------
    MeanfieldError
        If it is not affine, to rounding.
    """
    with np.errstate(**NO_FLOAT_WARNINGS):
        M, c, worst = _affine_part(function, dimension)
    if np.isnan(worst):
        raise MeanfieldError("Values of a field or of a feed-forward map must be finite numbers.")
    if not worst <= AFFINE_ROUNDING * dimension:
        raise MeanfieldError(
            "A Gaussian keeps its form under affine fields and feed-forward maps, x -> M x + c; "
            f"values of this one are off by {worst:.2g} of their size. Solve for Tokens: "
            "gaussian.sample(n, rng=...)."
        )
    return AffineMap(M, c)


def _affine_part(function: Function, dimension: int) -> tuple[Array, Array, float]:
    """M, c, and the largest deviation of a function from M x + c, relative to its size."""
    identity = np.eye(dimension)
    c = function(np.zeros((1, dimension)))[0]
    M = ((function(identity) - function(-identity)) / 2).T
    draws = np.random.default_rng(0).standard_normal((AFFINE_PROBES, dimension))
    x = np.concatenate([scale * draws for scale in AFFINE_SCALES])
    off = np.abs(function(x) - (x @ M.T + c)).max(axis=-1)
    size = np.abs(x) @ np.abs(M).sum(axis=0) + np.abs(c).max()
    return M, c, float((off / np.where(size > 0, size, 1.0)).max())


def _softmax(y: np.ndarray, head: HeadMatrices) -> np.ndarray:
    """Output of softmax attention on y = (L, a): A S y, plus a in the last column."""
    L = y[..., :-1]
    output = L @ (head.beta * (head.K @ L).mT @ head.Q) @ y  # S A y
    output[..., -1] += y[..., -1]
    return output


def _l2(y: np.ndarray, head: HeadMatrices) -> np.ndarray:
    """Outputs of L2 attention, y = (L | mean), by singular values of K L; nan if these overflow."""
    L, keys, beta = y[..., :-1], head.K @ y, head.beta
    if not np.isfinite(keys).all():
        return np.full_like(y, np.nan)
    displacement = head.Q @ y
    displacement[..., -1] -= keys[..., -1]
    if isinstance(y, Dual):
        pull = L @ _transposed_function(keys[:, :-1], partial(_l2_function, value_of(beta)), beta)
    else:  # large S: P is not inverted
        U, s, Wt = np.linalg.svd(keys[..., :-1], full_matrices=False)
        shares = np.zeros_like(s)
        used = (s > 0) & (beta != 0)
        inverse = 0.5 / s[used] / beta + s[used]  # (1 + 2 beta s^2) / (2 beta s); s^2 may overflow
        shares[used] = 1 / np.where(inverse * beta > 0, inverse, np.nan)
        pull = L @ (Wt.mT * shares[..., None, :]) @ U.mT
    output = pull @ displacement
    output[..., -1] += y[..., -1]
    return output


def _sinkhorn(y: np.ndarray, head: HeadMatrices) -> np.ndarray:
    """Outputs of doubly stochastic attention, y = (L | mean), by singular values of logits."""
    L = y[..., :-1]
    products = head.beta * (head.Q @ L).mT @ (head.K @ L)
    if not np.isfinite(products).all():
        return np.full_like(y, np.nan)
    output = y.copy()
    if isinstance(y, Dual):
        output[:, :-1] = L @ _transposed_function(products, _sinkhorn_function)
        return output
    U, s, Wt = np.linalg.svd(products)
    correlations = 2 * s / (1 + np.hypot(1.0, 2 * s))
    output[..., :-1] = L @ (Wt.mT * correlations[..., None, :]) @ U.mT
    return output


class SingularFunction(NamedTuple):
    """An odd function f of singular values s, with the coefficients of its matrix derivative.

    Attributes
    ----------
    values : ndarray, (k,)
    differences, sums : ndarray, (k, k)
        (f(s_i) - f(s_j)) / (s_i - s_j) and (f(s_i) + f(s_j)) / (s_i + s_j).
    by_beta : ndarray, (k,)
        df/dbeta at fixed s.
    """

    values: Array
    differences: Array
    sums: Array
    by_beta: Array


def _transposed_function(
    N: Dual, function: Callable[[Array], SingularFunction], beta: Array | Dual | None = None
) -> Dual:
    """W f(s) U^T, with tangents, for a matrix N = U s W^T with tangents.

    The derivative of U f(s) W^T multiplies the symmetric part of E = U^T dN W by divided
    differences of f, and the antisymmetric part by those of f between s and -s.
    """
    (rows, columns), size = N.shape, max(N.shape)
    U, singular_values, Wt = np.linalg.svd(N.value)
    s, E = np.zeros(size), np.zeros((len(N.changes), size, size))
    s[: singular_values.size], E[:, :rows, :columns] = singular_values, U.T @ N.changes @ Wt.T
    f = function(s)
    changes = (E + E.mT) / 2 * f.differences + (E - E.mT) / 2 * f.sums
    if isinstance(beta, Dual):
        changes += beta.changes[:, None, None] * np.diag(f.by_beta)
    stack = np.concatenate([np.diag(f.values)[None], changes])[:, :rows, :columns]
    return Dual.of_stack(Wt.T @ stack.mT @ U.T)


def _l2_function(beta: Array, s: Array) -> SingularFunction:
    """The function f = 2 beta s / (1 + 2 beta s^2)."""
    shares, products = 1 / (1 + 2 * beta * s**2), 2 * beta * np.multiply.outer(s, s)
    both = 2 * beta * np.multiply.outer(shares, shares)
    by_beta = 2 * s * shares**2
    return SingularFunction(
        2 * beta * s * shares, both * (1 - products), both * (1 + products), by_beta
    )


def _sinkhorn_function(s: Array) -> SingularFunction:
    """The function f = D with s = D / (1 - D^2)."""
    complement = 2 / (1 + np.hypot(1.0, 2 * s))  # 1 - D^2
    D, products = s * complement, np.multiply.outer(complement, complement)
    one_minus_D = complement / (1 + D)  # 1 - D
    unequal = one_minus_D[:, None] + D[:, None] * one_minus_D  # 1 - D_i D_j
    return SingularFunction(
        D, products / (1 + np.multiply.outer(D, D)), products / unequal, np.zeros_like(s)
    )


def _linear(y: np.ndarray, head: HeadMatrices) -> np.ndarray:
    return head.beta * y @ (head.K @ y).mT @ head.Q @ y


def _fastest_sinkhorn(head: HeadMatrices) -> float:
    """The bound 2 |V|, since D <= 1."""
    return 2 * float(np.linalg.norm(head.V, 2))


def _fastest_l2(head: HeadMatrices) -> float:
    """The bound 2 |V| (1 + |K^+| (|Q| + |K|)), which does not cover the kernel of K.

    It follows from s L W = K^+ U s^2, for K without a kernel.
    """
    V, Q, K, _ = head
    s = np.linalg.svd(K, compute_uv=False)
    smallest = s[s > len(K.T) * np.finfo(float).eps * s[0]].min(initial=np.inf)
    return 2 * float(np.linalg.norm(V, 2) * (1 + (np.linalg.norm(Q, 2) + s[0]) / smallest))


def _integrable_l2(y: np.ndarray, head: HeadMatrices) -> float:
    """The least of 1 + 2 beta s^2 over the singular values s of K L."""
    if not head.beta < 0:
        return 1.0
    largest = np.linalg.norm(head.K @ y[:, :-1], 2)
    return float(max(1 + 2 * head.beta * largest**2, 0.0))


# Energies ------------------------------------------------------------------------------------


def energy(drift: Drift, state: Gaussian, t: float = 0.0) -> float:
    """E of a law at time t.

    It is nan if the motion is not the gradient flow of one of these energies, if numbers overflow,
    or if L2 weights have no integral.

    Raises
    ------
    ValueError, TypeError, MeanfieldError
        For an invalid value of a callable parameter, as `Attention.at`.
    """
    if not isinstance(drift, Attention):
        return np.nan
    heads, weights = drift.on(t, state.dimension), affine(drift.weights)
    assert weights is not None
    if len(heads) > 1 or not drift.constant:
        return np.nan
    V, Q, K, beta = heads[0]
    A = weights.scale * beta * K.T @ Q
    c = gradient_factor(V, A)
    if c is None:
        return np.nan
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(c * weights.energy(A, Q, K, state))
    return value if np.isfinite(value) else np.nan


def _energy_linear(A: np.ndarray, _Q: np.ndarray, _K: np.ndarray, state: Gaussian) -> float:
    moment = A @ (state.cov + np.outer(state.mean, state.mean))
    return np.trace(moment @ moment) / 4


def _energy_softmax(A: np.ndarray, Q: np.ndarray, K: np.ndarray, state: Gaussian) -> float:
    return np.nan if state.mean.any() else _energy_linear(A, Q, K, state)


def _energy_sinkhorn(A: np.ndarray, _Q: np.ndarray, _K: np.ndarray, state: Gaussian) -> float:
    """Energy of doubly stochastic attention; nan beyond 1e308."""
    products = state.root.T @ A @ state.root
    if not np.isfinite(products).all():
        return np.nan
    s = np.linalg.svd(products, compute_uv=False)
    D = 2 * s / (1 + np.hypot(1.0, 2 * s))
    logs = -np.log1p(s * D)  # of 1 - D^2 = D / s = 1 / (1 + s D)
    return (state.mean @ A @ state.mean + (s * D + logs / 2).sum()) / 2


def _energy_l2(A: np.ndarray, Q: np.ndarray, K: np.ndarray, state: Gaussian) -> float:
    """Energy of L2 attention; nan unless Q = K and the integral exists."""
    products = state.root.T @ A @ state.root
    if not (nearly_equal(Q, K) and np.isfinite(products).all()):
        return np.nan
    values = np.linalg.eigvalsh(products)
    if not (values > -1).all():
        return np.nan
    return (state.mean @ A @ state.mean + (values - np.log1p(values)).sum()) / 2


AFFINE: dict[type[Weights], AffineAttention] = {
    Softmax: AffineAttention(_softmax, _energy_softmax, closed=True),
    L2: AffineAttention(_l2, _energy_l2, _fastest_l2, 2.0, _integrable_l2),
    Sinkhorn: AffineAttention(_sinkhorn, _energy_sinkhorn, _fastest_sinkhorn, iterates=True),
    Linear: AffineAttention(_linear, _energy_linear),
}
