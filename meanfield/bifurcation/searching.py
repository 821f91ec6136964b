"""Many stationary states of one model, by deflation."""

from collections.abc import Iterator

import numpy as np

from ..core.checks import whole_number
from ..lowlevel.blas import one_blas_thread
from ..models.transformer import Transformer
from ..spaces import Geometry
from ..spaces.density import Density
from .basis import Basis
from .equation import Equation
from .find import stationary
from .placement import AXISYMMETRIC, basis_of, density_of, usual_axis
from .state import StationaryState

__all__ = ["stationary_states"]

GUESSES = 6  # functions along which states are looked for
STEPS = 30
ROUGH = 1e-4  # last moments of a guess


def stationary_states(
    model: Transformer, geometry: Geometry, *, symmetry: str = AXISYMMETRIC, most: int = 20
) -> list[StationaryState]:
    """Many stationary states of a model: those that deflation finds from a few guesses.

    The guesses are exp(p_l) and exp(-p_l), normalised, for the first six functions p_l of the
    symmetry, and what they become by 30 steps mu <- exp(kappa g[mu])/Z, which lower the free energy
    where W is positive. From each of them further states are looked for until none is found.

    Parameters
    ----------
    model : Transformer
        As for `stationary`.
    geometry : Circle, Sphere or Zonal
    symmetry : str
        As for `stationary`.
    most : int
        How many are enough.

    Returns
    -------
    list of StationaryState
        Converged ones, the uniform one among them; in the order of their free energy, or for SA
        of their order parameter, the largest first. Nothing says that there are no others.

    Raises
    ------
    TypeError, ValueError, MeanfieldError
        As `stationary`.
    """
    uniform = geometry.uniform()
    most = whole_number("stationary_states needs most", "most", most)
    found = [stationary(model, uniform, symmetry=symmetry)]
    with one_blas_thread():
        for guess in _guesses(model, basis_of(symmetry, geometry), geometry):
            while len(found) < most:
                new = stationary(model, guess, symmetry=symmetry, apart_from=found)
                if not new.converged:
                    break
                found.append(new)
    energies = [-s.order_parameter if np.isnan(s.free_energy) else s.free_energy for s in found]
    return [found[i] for i in np.argsort(energies, kind="stable")]


def _guesses(model: Transformer, basis: Basis, geometry: Geometry) -> Iterator[Density]:
    axis = usual_axis(geometry)
    for i in range(min(GUESSES, len(basis.degrees))):
        for exponent in (basis.values[i], -basis.values[i]):
            law = basis.weights * np.exp(exponent - exponent.max())
            a = basis.values @ law / law.sum()
            yield density_of(a, basis, geometry, axis)
            settled, finer = _settled(Equation(model.zonal, basis), a, float(model.kappa))
            if np.isfinite(settled).all():
                yield density_of(settled, finer.basis, geometry, axis)


def _settled(equation: Equation, a: np.ndarray, kappa: float) -> tuple[np.ndarray, Equation]:
    """After some steps, in as many functions as they need."""
    while True:
        for _ in range(STEPS):
            a = equation.mean(a, kappa).moments
        degree = 2 * equation.degree
        if np.abs(a[-2:]).max() <= ROUGH or degree > equation.basis.most:
            return a, equation
        equation = equation.finer(degree)
        a = np.pad(a, (0, len(equation.degrees) - len(a)))
