"""Tokens: weighted points, the empirical measure sum_i masses_i delta_{x_i}."""

from collections.abc import Callable

import numpy as np

from ..checks import real_array

__all__ = ["Tokens"]


class Tokens:
    """n points of the unit sphere of R^d with masses.

    Parameters
    ----------
    x : array, shape (n, d)
        Unit vectors.
    masses : array, shape (n,), optional
        Masses >= 0 of sum 1; by default 1/n each.

    Raises
    ------
    ValueError
        For another shape, values that are not finite, vectors that are not of unit length
        (to 1e-9), or masses that are negative or do not sum to 1 (to 1e-9).
    """

    def __init__(self, x, masses=None):
        x = real_array("x", x)
        if x.ndim != 2 or min(x.shape) < 1 or x.shape[1] < 2:
            raise ValueError(f"Tokens expects x of shape (n, d) with d >= 2; got {x.shape}.")
        lengths = np.linalg.norm(x, axis=1)
        if not (np.abs(lengths - 1) <= 1e-9).all():
            worst = np.abs(lengths - 1).max()
            raise ValueError(
                f"Tokens expects unit vectors; the worst length is off by {worst:.2g}. "
                "Divide by the norms first: x / np.linalg.norm(x, axis=1, keepdims=True)."
            )
        n = len(x)
        masses = np.full(n, 1 / n) if masses is None else real_array("masses", masses)
        valid = masses.shape == (n,) and (masses >= 0).all() and abs(masses.sum() - 1) <= 1e-9
        if not valid:
            raise ValueError(
                f"Tokens expects {n} masses >= 0 of sum 1; got shape {masses.shape}, minimum "
                f"{masses.min(initial=np.inf)}, sum {masses.sum()}."
            )
        x.setflags(write=False)
        masses.setflags(write=False)
        self.x, self.masses = x, masses

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"Tokens(n={len(self)}, d={self.x.shape[1]})"

    def expect(self, f: Callable[[np.ndarray], np.ndarray]):
        """sum_i masses_i f(x_i); f takes unit vectors (n, d) and may return (n, ...)."""
        return np.tensordot(self.masses, np.asarray(f(self.x)), axes=1)
