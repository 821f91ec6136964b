"""Checks of densities: positive, of mass 1, real, and resolved by their harmonics."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.checks import real
from ..core.errors import UnresolvedWarning

if TYPE_CHECKING:
    from .contract import Space
    from .density import Density

UNRESOLVED_TAIL = 1e-8  # last coefficients above it are warned of
UNIT_MASS = 1e-12  # how far a mass may be from 1
REAL_ENOUGH = 1e-12  # imaginary parts of coefficients of order 0
NEGATIVE_SHARE = 1e-4  # a solved density may be this negative, relative to its maximum


def tail_start(degree: int) -> float:
    """The degree above which the tail begins: the last eighth, and never one parity alone."""
    return min(0.875 * degree, degree - 2) if degree >= 4 else 0.875 * degree


def tail_of(space: "Space") -> np.ndarray:
    """Mask of the modes in the tail."""
    return space.degrees > tail_start(space.degree)


def check_coefficients(space: "Space", coefficients: np.ndarray) -> None:
    """Raise ValueError for coefficients that no real function of mass 1 has."""
    if not np.isfinite(coefficients).all():
        bad = np.count_nonzero(~np.isfinite(coefficients))
        raise ValueError(f"A density needs finite coefficients; {bad} are not.")
    error = np.abs(coefficients[..., space.degrees == 0] - 1).max(initial=0)
    if error > UNIT_MASS:
        raise ValueError(
            f"A density has mass 1, its first coefficient; got a mass off by {error:.3g}. "
            "Divide by the mass, or let the weights of a mixture sum to 1."
        )
    imaginary = np.abs(coefficients[..., space.real_modes].imag).max(initial=0)
    if imaginary > REAL_ENOUGH:
        raise ValueError(
            "A density has real coefficients of order 0; got one with the imaginary part "
            f"{imaginary:.3g}."
        )


def normalised(space: "Space", values: np.ndarray, what: str) -> np.ndarray:
    """Coefficients (..., modes) of the densities proportional to values (..., N) of `what`.

    Raises ValueError for values that are negative or not finite, or all 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mass = values @ space.weights
    if not (values >= 0).all() or not ((mass > 0) & (mass < np.inf)).all():
        raise ValueError(
            f"A density needs finite values >= 0, not all zero; {what} has minimum "
            f"{np.min(values)} and {np.count_nonzero(~np.isfinite(values))} values that are not "
            "finite."
        )
    coefficients = space.to_coefficients(values / mass[..., None])
    coefficients[..., 0] = 1
    return coefficients


def check_positive(density: "Density", tolerance: Any) -> None:
    """Raise ValueError where a density is below -`tolerance` times its maximum."""
    real("tolerance", tolerance, "a number >= 0", lambda number: 0 <= number < np.inf)
    allowed = tolerance * float(density.values[..., density.space.judged].max())
    worst = float(density.minimum.min())
    if worst < -allowed:
        raise ValueError(
            f"A density must not be negative; its minimum is {worst:.3g}, of which errors of "
            f"computation explain {allowed:.1g}. Use smaller coefficients or, where the "
            "series is cut off, a higher degree."
        )


def warn_if_unresolved(density: "Density", tolerance: Any) -> None:
    """Warn, where a user made the density, if its spectral tail exceeds `tolerance`."""
    real("tolerance", tolerance, "a number >= 0", lambda number: number >= 0)
    tail = float(density.spectral_tail.max())
    if tail > tolerance:
        warnings.warn(
            f"The density is not resolved: its highest coefficients are {tail:.1e}, expected "
            f"<= {tolerance:.0e}. Use a degree above {density.space.degree}.",
            UnresolvedWarning,
            stacklevel=4,
        )
