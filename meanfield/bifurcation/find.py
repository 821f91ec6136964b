"""Stationary states by Newton's method on the equation that they fulfil."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.checks import positive, whole_number
from ..lowlevel.blas import one_blas_thread
from ..models import ZonalDrift
from ..models.transformer import Transformer
from ..spaces import Geometry
from ..spaces.density import Density
from .basis import Basis
from .deflation import Deflated
from .equation import Equation
from .newton import Iteration
from .placement import AXISYMMETRIC, basis_of, density_of, moments_of
from .stability import Stability, stability_of
from .state import StationaryState

__all__ = ["stability", "stationary"]

TAIL = 1e-13  # of the last moments
FINEST, COARSEST = 1e-15, 1e-3  # tolerances
STATIONARY = 1e-8  # residual of a density whose stability is asked for


def stationary(
    model: Transformer,
    guess: Density,
    *,
    symmetry: str = AXISYMMETRIC,
    apart_from: Sequence[StationaryState] = (),
    tolerance: float = 1e-12,
    max_degree: int | None = None,
) -> StationaryState:
    """The stationary state near a guess: mu = exp(kappa g[mu]) / Z, by Newton's method.

    Parameters
    ----------
    model : Transformer
        A single one, with USA, SA, Kuramoto or Interaction and isotropic noise.
    guess : Density
        On the circle, S^2 or Zonal. Its part with the symmetry is taken.
    symmetry : str
        "axisymmetric": about the axis of the first moment of the guess that does not vanish. On
        S^2 also "tetrahedral" (vertices at (1, 1, 1), (1, -1, -1), ... or their opposites),
        "octahedral" (on the axes) and "icosahedral" ((0, 1, (1 + sqrt 5)/2), ...).
    apart_from : sequence of StationaryState
        Known ones that are not to be found again. Newton's method is applied to the residual times
        1 + 1/|a - a_k|^2 for each of them (deflation).
    tolerance : float
        Of the largest residual of a Legendre moment, from 1e-15 to 1e-3.
    max_degree : int
        The degree is doubled up to this until the state is resolved to 1e-13. By default 1024, and
        162 for polyhedra.

    Returns
    -------
    StationaryState
        With a status: it need not have converged, nor to the state nearest to the guess.

    Raises
    ------
    TypeError, ValueError
        For other arguments, ensembles, models without noise, and symmetries that the space lacks.
    MeanfieldError
        For drifts that are no gradient of a potential.

    Notes
    -----
    Convergence is quadratic: `residuals` shows it. A step costs O(N^3 + N^2 M) for N moments and
    M = 2 N nodes, about 0.1 ms for 32.

    References
    ----------
    Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020), for the
    equation; Geshkovski et al., arXiv:2312.10794, for the drifts; Farrell, Birkisson and Funke,
    SIAM J. Sci. Comput. 37 (2015), for deflation.
    """
    drift, kappa = _checked(model, guess), float(model.kappa)
    basis = basis_of(symmetry, guess.geometry)
    most = _checked_accuracy(tolerance, max_degree, basis)
    a, axis = moments_of(guess, basis)
    equation, known = Equation(drift, basis), _states(apart_from, guess.geometry)
    with one_blas_thread():
        found = Deflated(equation, kappa, _moments(known, basis)).solved(a, tolerance)
        while found.converged and not equation.resolves(found.x, kappa, TAIL):
            if 2 * equation.degree > most:
                break
            equation = equation.finer(2 * equation.degree)
            start = np.pad(found.x, (0, len(equation.degrees) - len(found.x)))
            found = Deflated(equation, kappa).solved(start, tolerance)
    status = _status(found, equation, kappa, known)
    return StationaryState(
        model,
        density_of(found.x, equation.basis, guess.geometry, axis),
        status,
        _message(status, found, equation.degree),
        found.residuals,
        equation,
        found.x,
        axis,
    )


def stability(
    model: Transformer, density: Density, *, symmetry: str = AXISYMMETRIC, count: int = 6
) -> Stability:
    """The leading eigenvalues of the Fokker-Planck equation linearised about a stationary state.

    Parameters
    ----------
    model : Transformer
    density : Density
        Stationary, and of the symmetry: of `stationary`, or the last of a run.
    symmetry : str
        As for `stationary`.
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
    basis = basis_of(symmetry, density.geometry)
    if density.geometry.degree > basis.degree:
        basis = basis.finer(min(density.geometry.degree, basis.most))
    a, _ = moments_of(density, basis)
    equation, kappa = Equation(drift, basis), float(model.kappa)
    residual = equation.residual(a, kappa)
    if not residual <= STATIONARY:
        raise ValueError(
            f"stability expects a stationary density, here {symmetry}; its residual is "
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


def _checked_accuracy(tolerance: Any, max_degree: Any, basis: Basis) -> int:
    """The highest degree."""
    positive(tolerance=tolerance)
    if not FINEST <= tolerance <= COARSEST:
        raise ValueError(
            f"tolerance is from {FINEST:g} to {COARSEST:g}; got tolerance = {tolerance!r}."
        )
    if max_degree is None:
        return 2 * basis.most
    most = whole_number("stationary needs a max_degree", "max_degree", max_degree)
    if most < basis.degree:
        raise ValueError(
            f"stationary begins at degree {basis.degree} here; got max_degree = {most}."
        )
    return most


def _states(apart_from: Any, geometry: Geometry) -> list[StationaryState]:
    states = list(apart_from) if isinstance(apart_from, Iterable) else [apart_from]
    if not all(isinstance(state, StationaryState) for state in states):
        raise TypeError(f"apart_from is a sequence of StationaryState; got {apart_from!r}.")
    for space in (state.density.geometry for state in states):
        if space.with_degree(geometry.degree) != geometry:
            raise ValueError(
                f"apart_from has states on {space!r}, and the guess is on {geometry!r}."
            )
    return states


def _moments(states: list[StationaryState], basis: Basis) -> list[np.ndarray]:
    return [moments_of(state.density, basis)[0] for state in states]


def _status(found: Iteration, equation: Equation, kappa: float, known: list) -> str:
    if Deflated(equation, kappa, _moments(known, equation.basis)).found_again(found.x):
        return "known"
    if found.converged and not equation.resolves(found.x, kappa, TAIL):
        return "unresolved"
    return found.status


def _message(status: str, found: Iteration, degree: int) -> str:
    if status == "converged":
        return f"Newton's method converged in {len(found.residuals) - 1} steps."
    if status == "known":
        return "Newton's method came back to a state of apart_from: start elsewhere."
    if status == "unresolved":
        return f"Degree {degree} does not resolve the state; raise max_degree."
    return (
        f"Newton's method ended at the residual {found.residuals[-1]:.1e} ({status}): start "
        "nearer to the state, for instance from the end of a run, or follow a branch."
    )
