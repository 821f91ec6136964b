"""The normal law N(a, Sigma) on R^d."""

from typing import Any

import numpy as np

from ..checks import generator, real_array, whole_number
from .tokens import Tokens

__all__ = ["Gaussian"]

ROUNDING = 1e-12
NEGLIGIBLE = 1e-6  # of the largest eigenvalue: another one is taken for 0


class Gaussian:
    """The normal law of R^d with a mean and a covariance, which may be singular.

    `solve` moves it under `Attention` with softmax, L2, Sinkhorn or linear weights.

    Parameters
    ----------
    mean : array, shape (d,)
    cov : array, shape (d, d)
        Symmetric and positive semidefinite, to 1e-12 of its norm.

    Attributes
    ----------
    mean, cov : ndarray

    Raises
    ------
    TypeError, ValueError
        For other shapes, numbers that are not finite, and what is no covariance.
    """

    def __init__(self, mean, cov):
        mean, cov = real_array("The mean", mean), real_array("The covariance", cov)
        if mean.ndim != 1 or mean.size < 1 or cov.shape != (mean.size, mean.size):
            raise ValueError(
                f"Gaussian expects a mean (d,) and a covariance (d, d); got {mean.shape} and "
                f"{cov.shape}."
            )
        if not (np.isfinite(mean).all() and np.isfinite(cov).all()):
            raise ValueError("Gaussian expects a finite mean and covariance; got nan or inf.")
        size, off = np.linalg.norm(cov), np.abs(cov - cov.T).max()
        least = np.linalg.eigvalsh(cov).min()
        if off > ROUNDING * size or least < -ROUNDING * size:
            raise ValueError(
                "A covariance is symmetric and positive semidefinite; got one that is off by "
                f"{off:.2g} from its transpose, with the eigenvalue {least:.3g}."
            )
        for array in (mean, cov):
            array.setflags(write=False)
        self.mean, self.cov = mean, cov

    @classmethod
    def computed(cls, mean: np.ndarray, cov: np.ndarray) -> "Gaussian":
        """A law from a run: its covariance is one to rounding, and is not checked."""
        state = cls.__new__(cls)
        state.mean, state.cov = np.array(mean, dtype=float), np.array(cov, dtype=float)
        state.mean.setflags(write=False)
        state.cov.setflags(write=False)
        return state

    def __repr__(self) -> str:
        return f"Gaussian(d={self.dimension}, trace of the covariance {np.trace(self.cov):.6g})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape: always ()."""
        return ()

    @property
    def dimension(self) -> int:
        """The dimension d of the space."""
        return self.mean.size

    def describe(self) -> dict[str, Any]:
        """The space, as plain data."""
        return {"kind": "Gaussian", "dimension": self.dimension}

    @property
    def root(self) -> np.ndarray:
        """The symmetric root of the covariance, (d, d)."""
        values, vectors = np.linalg.eigh(self.cov)
        roots = np.sqrt(np.maximum(values, 0.0))  # negative ones are rounding, as was checked
        return vectors * roots @ vectors.T

    @property
    def trace_one(self) -> np.ndarray:
        """The covariance over its trace, which shows directions alone; nan where it is 0."""
        trace = np.trace(self.cov)
        return self.cov / (trace if trace > 0 else np.nan)

    def rank(self, negligible: float = NEGLIGIBLE) -> int:
        """How many eigenvalues of the covariance exceed `negligible` times the largest."""
        if not 0 <= negligible < 1:
            raise ValueError(f"negligible is a share >= 0 and < 1; got {negligible!r}.")
        values = np.linalg.eigvalsh(self.cov)
        return int((values > negligible * values[-1]).sum())

    def sample(self, n: int, *, rng) -> Tokens:
        """n independent tokens of R^d.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator or seed
        """
        n = whole_number("sample needs a whole number n", "n", n)
        normal = generator(rng).standard_normal((n, self.dimension))
        return Tokens(self.mean + normal @ self.root, on_sphere=False)
