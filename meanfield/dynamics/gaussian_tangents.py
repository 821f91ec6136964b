"""Normal laws and tangents of them: what `gaussian_attention` computes, differentiated.

A root L and L O with a rotation O are the same law, and attention moves both alike: changes of a
root are followed up to L W with W antisymmetric, which changes no law.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.checks import as_given, finite_array, fitting
from ..core.errors import MeanfieldError
from ..models.attention import HeadMatrices
from ..models.weights import L2, Linear, Sinkhorn, Softmax, Weights
from ..states import Gaussian
from .linearised import LinearisedMotion
from .observables import rank_change

SINGULAR_COVARIANCE = (
    1e-12  # of the largest variance; below it a change of the covariance needs a root
)


class LinearisedGaussian(LinearisedMotion):
    """The velocities of `GaussianMotion`, and their derivatives."""

    arrays = "mean", "cov"

    def setup(self) -> None:
        """The derivative of E[y | x], and by how much beta changes."""
        weights = self.motion.model.drift.weights
        self._along: Any = next(ALONG[kind] for kind in type(weights).__mro__ if kind in ALONG)
        self._by_beta = np.array([float(name == "beta") for name in self.names])[:, None, None]

    def first(self, state: Any) -> np.ndarray:
        root = self.motion.packed(state)
        Y = np.zeros((1 + len(self.names), *root.shape))
        Y[0] = root
        for a, direction in enumerate(self.directions):
            if direction is not None:
                Y[1 + a, :, :-1] = direction.get("root", 0.0)
                Y[1 + a, :, -1] = direction.get("mean", 0.0)
        return self.projected(Y)

    def changes(self, Y: np.ndarray) -> list[dict[str, np.ndarray]]:
        half = Y[1:, :, :-1] @ Y[0, :, :-1].T
        covs = half + half.mT
        return [{"mean": a[:, -1].copy(), "cov": c} for a, c in zip(Y[1:], covs, strict=True)]

    def velocity(self, Y: np.ndarray, t: float) -> np.ndarray:
        rates, y, dy = np.zeros_like(Y), Y[0], Y[1:]
        with np.errstate(over="ignore", invalid="ignore"):
            for head in self.motion._heads(t):
                rates[0] += head.V @ self.motion._weights.expected(y, head)
                rates[1:] += head.V @ self._along(y, dy, head, self._by_beta)
        return rates

    def projected(self, Y: np.ndarray) -> np.ndarray:
        """L O with its columns in order, see `GaussianMotion.projected`, and dL O."""
        from scipy.linalg import qr

        if not np.isfinite(Y[0]).all():
            return Y
        turn, R, order = qr(Y[0, :, :-1].T, pivoting=True, check_finite=False)
        new = Y.copy()
        new[0, order, :-1] = R.T
        new[1:, :, :-1] = Y[1:, :, :-1] @ turn
        return new

    def tangent_space(self, state: Any) -> tuple[int, Callable]:
        """Of mean and covariance; the latter is regular."""
        d = state.dimension

        def draw(rng: np.random.Generator) -> dict[str, np.ndarray]:
            change = rng.standard_normal((d, d))
            given = {"mean": rng.standard_normal(d), "cov": change + change.T}
            return gaussian_direction(given, state)

        return d + d * (d + 1) // 2, draw

    def vectors(self, Y: np.ndarray) -> np.ndarray:
        found = [np.append(h["mean"], h["cov"]) for h in self.changes(Y)]
        return np.array(found)[None]

    def measured(
        self, state: Gaussian, change: Mapping[str, np.ndarray], name: str | None, t: float
    ) -> dict[str, Any]:
        """Derivatives of order_parameter, spread, the extreme variances and effective_rank.

        nan where there is none: of |a| at 0, and of a variance that is not simple.
        """
        a, da, cov, dcov = state.mean, change["mean"], state.cov, change["cov"]
        axes, sizes, _ = np.linalg.svd(state.root)
        by = np.einsum("ik,ij,jk->k", axes, dcov, axes)
        simple = np.diff(sizes) < -SINGULAR_COVARIANCE * sizes[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                "order_parameter": (a @ da) / np.linalg.norm(a),
                "effective_rank": rank_change(
                    cov + np.outer(a, a), dcov + np.outer(a, da) + np.outer(da, a)
                ),
                "largest_variance": by[0] if simple[:1].all() else np.nan,
                "least_variance": by[-1] if simple[-1:].all() else np.nan,
                "spread": np.trace(dcov) / (2 * np.linalg.norm(state.root)),
            }


def gaussian_direction(given: Any, state: Gaussian) -> dict[str, np.ndarray]:
    """A change of a law: a mapping with "mean" (d,), "cov" (d, d), or both; or another law.

    Towards another one its mean and covariance change at the rates of their differences.

    Raises
    ------
    TypeError, ValueError
        For other things, shapes, and changes of the covariance that are not symmetric.
    MeanfieldError
        For a change of a covariance that is singular, to 1e-12.
    """
    if isinstance(given, Gaussian):
        fits = given.dimension == state.dimension
        fitting("tangents", given, f"Gaussians in R^{state.dimension}", fits)
        given = {"mean": given.mean - state.mean, "cov": given.cov - state.cov}
    if not isinstance(given, Mapping) or not set(given) <= {"mean", "cov"}:
        raise TypeError(
            'tangents must have names of parameters, another Gaussian to move towards, or {"mean": '
            f'..., "cov": ...}}; got {as_given(given)}.'
        )
    found = {}
    for name, shape in (("mean", state.mean.shape), ("cov", state.cov.shape)):
        if name in given:
            found[name] = finite_array(f"The change of the {name}", given[name])
            fitting(f"The change of the {name}", found[name].shape, f"of shape {shape}",
                    found[name].shape == shape)  # fmt: skip
    if "cov" in found:
        change = found.pop("cov")
        off = np.abs(change - change.T).max()
        symmetric = off <= SINGULAR_COVARIANCE * np.abs(change).max()
        fitting("The change of the cov", off, "symmetric", bool(symmetric))
        variances = state.variances
        if change.any() and not variances[-1] > SINGULAR_COVARIANCE * variances[0]:
            raise MeanfieldError(
                "Changes of a singular covariance have no root that changes smoothly. Change the "
                "mean alone, or start with a covariance of full rank."
            )
        if change.any():  # L L^T changes by it for dL = (1/2) dSigma L^-T
            found["root"] = np.linalg.solve(state.root, change / 2).T
        else:
            found["root"] = np.zeros_like(change)
    return found


# E[y | x] of each kind of weights, with the changes dy (p, d, d + 1) and of beta (p, 1, 1) --------


def _softmax(y: np.ndarray, dy: np.ndarray, head: HeadMatrices, by: np.ndarray) -> np.ndarray:
    L, dL, (_, Q, K, beta) = y[:, :-1], dy[..., :-1], head
    M = (K @ L).T @ Q  # S A y = beta L M y
    dM = beta * (K @ dL).mT @ Q + by * M
    seen = dL @ (beta * M @ y) + L @ (dM @ y + beta * M @ dy)
    seen[..., -1] += dy[..., -1]
    return seen


def _l2(y: np.ndarray, dy: np.ndarray, head: HeadMatrices, by: np.ndarray) -> np.ndarray:
    """L G (Q y - K a), G = 2 beta P B^T with B = K L: dG = 2 P (beta dB + dbeta B)^T C - G dB G.

    C = 1 - B G = (1 + 2 beta B B^T)^-1.
    """
    L, dL, (_, Q, K, beta) = y[:, :-1], dy[..., :-1], head
    B, dB = K @ L, K @ dL
    U, s, Wt = np.linalg.svd(B)
    rows, columns = np.zeros(len(B)), np.zeros(len(L))
    rows[: s.size] = columns[: s.size] = s
    P = Wt.T / (1 + 2 * beta * columns**2) @ Wt
    C = U / (1 + 2 * beta * rows**2) @ U.T
    G = 2 * beta * B.T @ C
    moved, change = Q @ y, Q @ dy
    moved[:, -1] -= K @ y[:, -1]
    change[..., -1] -= dy[..., -1] @ K.T
    dG = 2 * P @ (beta * dB + by * B).mT @ C - G @ dB @ G
    seen = dL @ (G @ moved) + L @ (dG @ moved + G @ change)
    seen[..., -1] += dy[..., -1]
    return seen


def _sinkhorn(y: np.ndarray, dy: np.ndarray, head: HeadMatrices, by: np.ndarray) -> np.ndarray:
    """L W D U^T for beta (Q L)^T K L = U s W^T, s = D / (1 - D^2).

    A change E = U^T dN W of the product N has a symmetric part, which changes U D W^T by divided
    differences of D, and an antisymmetric one, which changes it by those of D and -D:

        (1 - D_i^2) (1 - D_j^2) / (1 + D_i D_j),    (1 - D_i^2) (1 - D_j^2) / (1 - D_i D_j)
    """
    L, dL, (_, Q, K, beta) = y[:, :-1], dy[..., :-1], head
    keys, queries = K @ L, Q @ L
    product = queries.T @ keys
    change = beta * ((Q @ dL).mT @ keys + queries.T @ (K @ dL)) + by * product
    U, s, Wt = np.linalg.svd(beta * product)
    rest = 2 / (1 + np.hypot(1.0, 2 * s))  # 1 - D^2
    D = s * rest
    left = rest / (1 + D)  # 1 - D
    E = U.T @ change @ Wt.T
    both = np.multiply.outer(rest, rest)
    even, odd = (E + E.mT) / 2, (E - E.mT) / 2
    unequal = left[:, None] + D[:, None] * left  # 1 - D_i D_j
    moved = even * (both / (1 + np.multiply.outer(D, D))) + odd * (both / unequal)
    plan, dplan = (Wt.T * D) @ U.T, (U @ moved @ Wt).mT
    seen = dy.copy()
    seen[..., :-1] = dL @ plan + L @ dplan
    return seen


def _linear(y: np.ndarray, dy: np.ndarray, head: HeadMatrices, by: np.ndarray) -> np.ndarray:
    _, Q, K, beta = head
    keys, queries = (K @ y).T, Q @ y
    pairs = keys @ queries
    return beta * (dy @ pairs + y @ ((K @ dy).mT @ queries + keys @ (Q @ dy))) + by * (y @ pairs)


ALONG: dict[type[Weights], Any] = {
    Softmax: _softmax,
    L2: _l2,
    Sinkhorn: _sinkhorn,
    Linear: _linear,
}
