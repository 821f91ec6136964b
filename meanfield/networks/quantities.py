"""Quantities of the tokens of one layer, with their gradients: `attribute` splits their changes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from meanfield.extending import UserValue, real

LEAST_EIGENVALUE = 1e-14  # smaller eigenvalues are rounding errors
LARGEST_BETA = 500.0  # exp(beta) does not overflow


class Quantity(ABC):
    """A smooth function f of the hidden states h (n, d) of a layer, to be subclassed."""

    name: ClassVar[str]  # in words

    @abstractmethod
    def value(self, h: np.ndarray) -> float:
        """f(h)."""

    @abstractmethod
    def gradient(self, h: np.ndarray) -> np.ndarray:
        """df/dh, (n, d)."""


@dataclass(frozen=True)
class MeanCosine(Quantity):
    """The mean of <x_i, x_j> over pairs i != j of the directions x_i = h_i/|h_i|."""

    name: ClassVar[str] = "mean cosine"

    def value(self, h: np.ndarray) -> float:
        x, _ = directions(h)
        n = len(x)
        return float(((x.sum(axis=0) ** 2).sum() - n) / (n * (n - 1)))

    def gradient(self, h: np.ndarray) -> np.ndarray:
        x, lengths = directions(h)
        mean = x.sum(axis=0) / (len(x) * (len(x) - 1))
        return in_hidden(x, lengths, np.broadcast_to(2 * mean, x.shape))


@dataclass(frozen=True)
class Energy(Quantity):
    """E_beta = 1/(2 beta n^2) sum_ij exp(beta <x_i, x_j>) of the directions, pairs i = j included.

    Parameters
    ----------
    beta : float
        0 < beta <= 500.
    """

    beta: float
    name: ClassVar[str] = "interaction energy"

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", checked_beta("beta", self.beta))

    def value(self, h: np.ndarray) -> float:
        x, _ = directions(h)
        return float(np.exp(self.beta * (x @ x.T)).mean() / (2 * self.beta))

    def gradient(self, h: np.ndarray) -> np.ndarray:
        x, lengths = directions(h)
        return in_hidden(x, lengths, np.exp(self.beta * (x @ x.T)) @ x / len(x) ** 2)


@dataclass(frozen=True)
class MeanNorm(Quantity):
    """The mean of the lengths |h_i|."""

    name: ClassVar[str] = "mean norm"

    def value(self, h: np.ndarray) -> float:
        return float(np.linalg.norm(h, axis=-1).mean())

    def gradient(self, h: np.ndarray) -> np.ndarray:
        return directions(h)[0] / len(h)


@dataclass(frozen=True)
class EffectiveRank(Quantity):
    """exp(-sum_k p_k log p_k), p_k the eigenvalues of (1/n) sum_i x_i x_i^T of the directions.

    Eigenvalues below 1e-14 count as 0.
    """

    name: ClassVar[str] = "effective rank"

    def value(self, h: np.ndarray) -> float:
        x, _ = directions(h)
        shares = np.linalg.eigvalsh(smaller_gram(x) / len(x))
        return float(np.exp(-(shares * log_shares(shares)).sum()))

    def gradient(self, h: np.ndarray) -> np.ndarray:
        x, lengths = directions(h)
        n, d = x.shape
        shares, vectors = np.linalg.eigh(smaller_gram(x) / n)
        logs = log_shares(shares)
        rank = np.exp(-(shares * logs).sum())
        derivatives = np.where(shares > LEAST_EIGENVALUE, -rank * (logs + 1), 0.0)
        matrix = (vectors * derivatives) @ vectors.T
        return in_hidden(x, lengths, 2 / n * (x @ matrix if d < n else matrix @ x))


def checked_beta(name: str, beta: UserValue) -> float:
    """Return beta after checking 0 < beta <= 500, so that exp(beta) does not overflow."""
    return real(name, beta, f"0 < {name} <= {LARGEST_BETA:g}", lambda b: 0 < b <= LARGEST_BETA)


def directions(h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x = h/|h| and |h|, (n, 1), in double precision; ValueError for hidden states that are 0."""
    h = np.asarray(h, dtype=float)
    lengths = np.linalg.norm(h, axis=-1, keepdims=True)
    if not lengths.all():
        raise ValueError(f"{np.sum(lengths == 0)} hidden states are 0 and have no direction.")
    return h / lengths, lengths


def in_hidden(x: np.ndarray, lengths: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient in h of a function of x = h/|h| from its gradient in x."""
    return (gradient - (gradient * x).sum(axis=-1, keepdims=True) * x) / lengths


def log_shares(shares: np.ndarray) -> np.ndarray:
    """Logarithms of normalised eigenvalues; 0 for eigenvalues that count as 0."""
    return np.log(np.where(shares > LEAST_EIGENVALUE, shares, 1.0))


def smaller_gram(x: np.ndarray) -> np.ndarray:
    """x x^T or x^T x, whichever is smaller: their eigenvalues are the same but for zeros."""
    return x @ x.T if len(x) <= x.shape[1] else x.T @ x
