"""The normal law N(a, Sigma) on R^d."""

import numpy as np

from ..checks import generator, real_array, whole_number
from .tokens import Tokens

__all__ = ["Gaussian"]

ROUNDING = 1e-12


class Gaussian:
    """The normal law of R^d with a mean and a covariance, which may be singular.

    Parameters
    ----------
    mean : array, shape (d,)
    cov : array, shape (d, d)
        Symmetric and positive semidefinite, to 1e-12 of its norm.

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

    def sample(self, n: int, *, rng) -> Tokens:
        """n independent tokens of R^d.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator or seed
        """
        n = whole_number("sample needs a whole number n", "n", n)
        normal = generator(rng).standard_normal((n, self.dimension))
        values, vectors = np.linalg.eigh(self.cov)
        roots = np.sqrt(np.maximum(values, 0.0))  # negative ones are rounding, as was checked
        return Tokens(self.mean + normal * roots @ vectors.T, on_sphere=False)
