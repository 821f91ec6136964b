"""Stationary states by Newton's method on the equation that they fulfil."""

from typing import Any

import numpy as np

from ..checks import positive, whole_number
from ..drifts import ZonalDrift
from ..model import Transformer
from ..states import Density
from .equation import Equation
from .newton import Iteration, newton
from .placement import density_about, moments_about
from .stability import Stability, stability_of
from .state import StationaryState

__all__ = ["stability", "stationary"]

FEWEST, MOST = 32, 1024  # degrees
TAIL = 1e-13  # of the last moments
ROUNDING = 1e-15  # of the exponent kappa g
STATIONARY = 1e-8  # residual of a density whose stability is asked for


def stationary(
    model: Transformer, guess: Density, *, tolerance: float = 1e-12, max_degree: int = MOST
) -> StationaryState:
    """The stationary state near a guess: mu = exp(kappa g[mu]) / Z, by Newton's method.

    Parameters
    ----------
    model : Transformer
        A single one, with USA, SA, Kuramoto or Interaction and isotropic noise.
    guess : Density
        On the circle, S^2 or Zonal. Its part symmetric about its axis is taken: the axis of its
        first moment that does not vanish, about which the state found is symmetric.
    tolerance : float
        Of the largest residual of a moment.
    max_degree : int
        The degree is doubled up to this until the state is resolved to 1e-13.

    Returns
    -------
    StationaryState
        With a status: it need not have converged, nor to the state nearest to the guess.

    Raises
    ------
    TypeError, ValueError
        For other arguments, ensembles, and models without noise.
    MeanfieldError
        For drifts that are no gradient of a potential.

    Notes
    -----
    Convergence is quadratic: `residuals` shows it. A step costs O(N^3 + N^2 M) for N moments and
    M = 2 N nodes, about 0.1 ms for 32.

    References
    ----------
    Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020), for the
    equation; Geshkovski et al., arXiv:2312.10794, for the drifts.
    """
    drift = _checked(model, guess)
    positive(tolerance=tolerance)
    most = whole_number("stationary needs a max_degree", "max_degree", max_degree)
    a, axis = moments_about(guess)
    degree = max(FEWEST, len(a))
    while True:
        equation = Equation(drift, guess.geometry.dimension, degree)
        found = _solved(equation, np.pad(a, (0, degree - len(a))), float(model.kappa), tolerance)
        a = found.x
        potential = np.abs(equation.mean(a, float(model.kappa)).potential).max()
        small = (TAIL + ROUNDING * float(model.kappa) * potential) * (1 + np.abs(a).max())
        resolved = np.abs(a[-max(degree // 8, 2) :]).max() <= small
        if resolved or 2 * degree > most or not found.converged:
            break
        degree *= 2
    status = found.status if resolved or not found.converged else "unresolved"
    return StationaryState(
        model,
        density_about(a, guess.geometry, axis),
        status,
        _message(status, found, degree),
        found.residuals,
        equation,
        a,
        axis,
    )


def stability(model: Transformer, density: Density, *, count: int = 6) -> Stability:
    """The leading eigenvalues of the Fokker-Planck equation linearised about a stationary state.

    Parameters
    ----------
    model : Transformer
    density : Density
        Stationary, and symmetric about an axis: of `stationary`, or the last of a run.
    count : int
        How many eigenvalues.

    Returns
    -------
    Stability

    Raises
    ------
    TypeError, ValueError
        For other arguments, and for densities that are not stationary.
    """
    drift = _checked(model, density)
    count = whole_number("stability needs a count", "count", count)
    a, _ = moments_about(density)
    degree = max(FEWEST, len(a))
    equation, kappa = Equation(drift, density.geometry.dimension, degree), float(model.kappa)
    a = np.pad(a, (0, degree - len(a)))
    residual = float(np.abs(a - equation.mean(a, kappa).moments).max())
    if not residual <= STATIONARY:
        raise ValueError(
            f"stability expects a stationary density, symmetric about an axis; its residual is "
            f"{residual:.1e}, more than {STATIONARY:g}. Use stationary(model, density) first."
        )
    return stability_of(equation, a, kappa, count)


def _checked(model: Any, density: Any) -> ZonalDrift:
    if not isinstance(model, Transformer) or not isinstance(density, Density):
        raise TypeError(
            "Stationary states need a Transformer and a Density; got "
            f"{type(model).__name__} and {type(density).__name__}."
        )
    if model.shape or density.shape:
        raise ValueError(
            "Stationary states are found one at a time; got ensembles of shape "
            f"{model.shape} and {density.shape}."
        )
    if not model.noisy:
        raise ValueError("Stationary densities need noise: give the Transformer a finite kappa.")
    return model.zonal


def _solved(equation: Equation, a: np.ndarray, kappa: float, tolerance: float) -> Iteration:
    def system(a: np.ndarray):
        mean = equation.mean(a, kappa)
        return a - mean.moments, lambda: equation.jacobian(mean, kappa)

    return newton(system, a, tolerance)


def _message(status: str, found: Iteration, degree: int) -> str:
    if status == "converged":
        return f"Newton's method converged in {len(found.residuals) - 1} steps."
    if status == "unresolved":
        return f"Degree {degree} does not resolve the state; raise max_degree."
    return (
        f"Newton's method ended at the residual {found.residuals[-1]:.1e} ({status}): start "
        "nearer to the state, for instance from the end of a run, or follow a branch."
    )
