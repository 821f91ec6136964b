"""Unstable manifolds of stationary states: the flow from a state along one of its unstable modes.

The mean-field equation of the coefficients c_i = sizes_i m_i of a density is

    dm_i/dt = -(eigenvalues_i/kappa) R_i(m),

with the residual R of `TransportEquation`. It is stiff, and slow near a saddle: it is solved by
backward differentiation formulas with the Jacobian of R, whose steps grow with the time scales.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import MeanfieldError
from ..lowlevel.blas import one_blas_thread
from ..models import Transformer
from ..spaces import Density
from ..spaces.contract import dimension_of_harmonics
from .bases import AxialHarmonics, Basis, OnCircle
from .families import symmetries_of, transport_equation
from .reflections import Reflected, reflected_on
from .stability import GROWING_RATE
from .stationary import GUESS_TAIL, StationaryState

DEPARTURE = 1e-3  # L^2 distance from the state at which the flow along a mode begins
FLOW_PART = 15.0  # duration of a part of the flow over the growth time
MOST_FLOW_PARTS = 40
MOST_FLOW_STEPS = 4000  # of all parts
RTOL, ATOL = 1e-6, 1e-9  # of the flow


class UnstableMode(NamedTuple):
    """A growing mode of a stationary state.

    Attributes
    ----------
    rate : float
    order : int
        See `Stability`.
    vector : ndarray
        Coefficients of its real part in the basis of its order.
    """

    rate: float
    order: int
    vector: np.ndarray

    @property
    def opposite(self) -> "UnstableMode":
        """The mode with the other sign."""
        return self._replace(vector=-self.vector)


def unstable_modes(state: StationaryState) -> list[UnstableMode]:
    """The growing modes of a state, rotations excepted."""
    spectrum = state.leading
    kept = (spectrum.eigenvalues.real > GROWING_RATE) & ~spectrum.neutral
    rates, orders, vectors = spectrum.eigenvalues.real, spectrum.orders, spectrum.modes
    return [
        UnstableMode(float(rates[i]), int(orders[i]), np.real(vectors[i]))
        for i in np.flatnonzero(kept)
    ]


def multiplicity(basis: Basis, order: int) -> int:
    """Number of equal modes for each mode of one order."""
    axial = isinstance(basis, AxialHarmonics) and basis.dimension > 2
    return int(dimension_of_harmonics(order, basis.dimension - 1)) if axial else 1


def searched(basis: Basis, order: int) -> bool:
    """Whether densities with a perturbation of one order have the symmetry of a search."""
    return order == 0 or not basis.symmetric


def displaced(state: StationaryState, mode: UnstableMode, size: float) -> Density:
    """The density of a state plus a mode that is scaled to a norm in L^2.

    Raises
    ------
    MeanfieldError
        If the mode lacks the symmetry of the search, and the basis is for that alone.
    """
    basis, axis, (_, order, vector) = state.equation.basis, state.axis, mode
    change = size / np.linalg.norm(vector) * vector
    if order == 0 or isinstance(basis, Reflected):
        moments = state.legendre_moments.copy()
        members = basis.of_order(order).members[: len(change)]  # modes may be of lower degree
        moments[members] += change / basis.sizes[members]
        return basis.density(moments, axis)
    if isinstance(basis, OnCircle):
        here = state.density
        k = np.arange(1, len(change) + 1)
        odd = -1j * change / basis.sizes[: len(change)] * np.exp(-1j * k * axis)
        return Density(here.space, here.coefficients + np.concatenate([[0.0], odd]))
    raise MeanfieldError(
        f"The unstable perturbation of {state!r} lacks the symmetry of the search: look for the "
        'saddle with symmetry="none".'
    )


def basis_without(state: StationaryState, order: int) -> Basis:
    """The basis for a state with a perturbation of one order."""
    basis = state.equation.basis
    if order == 0:
        return basis
    if isinstance(basis, Reflected):
        return basis.without(order)
    space = state.density.space
    return reflected_on(space)(
        space, state.model.noise, symmetries_of(state.model, space), kept=(0,)
    )


def flow_from(state: StationaryState, mode: UnstableMode) -> Iterator[Density]:
    """Densities on the way from a state along a mode, each 15 growth times after the last one.

    The degree of truncation is low at first, and raised while the last moments exceed 1e-4.
    """
    wide, steps = basis_without(state, mode.order), 0
    m, axis = wide.moments(displaced(state, mode, DEPARTURE))
    basis = wide.coarsened(m, GUESS_TAIL)
    m = m[: len(basis.degrees)]
    for _ in range(MOST_FLOW_PARTS):
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            run = flow_solver(state.model, basis, m, FLOW_PART / mode.rate, RTOL, ATOL)
            while run.status == "running" and steps < MOST_FLOW_STEPS:
                run.step()
                steps += 1
        m = run.y
        if run.status != "finished" or not np.isfinite(m).all():
            return
        yield basis.density(m, axis)
        if basis.tail(m, GUESS_TAIL) > GUESS_TAIL and basis.next_degree <= basis.most:
            basis = basis.finer(basis.next_degree)
            m = basis.padded(m)


def flow_solver(
    model: Transformer, basis: Basis, m: np.ndarray, end: float, rtol: float, atol: float
) -> Any:
    """Solver of dm/dt from t = 0 to `end`, a `scipy.integrate.BDF` whose steps the caller takes."""
    from scipy.integrate import BDF

    equation, kappa = transport_equation(model, basis), float(model.kappa)
    rates = basis.eigenvalues / kappa

    def change(t: float, m: np.ndarray) -> np.ndarray:
        return np.asarray(rates * (equation.mean(m, kappa).moments - m))

    def jacobian(t: float, m: np.ndarray) -> np.ndarray:
        return np.asarray(-rates[:, None] * equation.jacobian(equation.mean(m, kappa)))

    return BDF(change, 0.0, m, end, rtol=rtol, atol=atol, jac=jacobian)
