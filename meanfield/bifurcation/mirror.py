"""What a state has in common with its images among the states that are looked for."""

import numpy as np

from .basis import Basis

__all__ = ["fold_of", "image", "symmetric_part"]

ROUNDING = 1e-8  # a moment that is smaller is not there


def fold_of(basis: Basis, a: np.ndarray) -> int:
    """k of a k-fold state on the circle, 1 elsewhere and for the uniform one."""
    present = basis.degrees[: len(a)][np.abs(a) > ROUNDING]
    return int(np.gcd.reduce(present)) if basis.dimension == 2 and present.size else 1


def image(basis: Basis, a: np.ndarray) -> np.ndarray:
    """The signs (N,) by which the mirror image of a state differs from it.

    The reflection x -> -x of S^(d-1); on the circle, turning a k-fold state by pi/k.
    """
    return np.where(basis.degrees // fold_of(basis, a) % 2, -1.0, 1.0)


def symmetric_part(basis: Basis, like: np.ndarray, a: np.ndarray) -> np.ndarray:
    """A state without the moments that the symmetries of another one exclude.

    Where branches cross, Newton's method determines those moments badly, although they vanish.
    """
    kept = basis.degrees % fold_of(basis, like) == 0
    if np.abs(like[basis.degrees % 2 == 1]).max(initial=0.0) < ROUNDING:
        kept &= basis.degrees % 2 == 0
    return np.where(kept, a, 0.0)
