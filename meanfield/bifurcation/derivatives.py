"""Derivatives of stationary states, and of special points, by the implicit function theorem.

A state R(m, p) = 0 moves with a parameter p of the model as dm/dp = -(dR/dm)^-1 dR/dp, until it
meets another one, where dR/dm is singular. There the parameter q of a fold moves instead:

    dq/dp = -<psi, R_p> / <psi, R_q>,    psi dR/dm = 0

A growth rate s of the linearised operator L y = s y, x L = s x, moves as <x, L_p y>/<x, y>, and a
bifurcation or a transition, the zero of a function f on a branch, as dq/dp = -f_p/f_q.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.checks import fitting, whole_number
from ..core.errors import MeanfieldError
from ..derivatives.parameters import NODES, WEIGHTS
from ..derivatives.variation import Variation
from .equation import Family

SINGULAR = 1e-5  # the least singular value of dR/dm, of about 1, with which digits are left
DIFFERENCE = 0.02  # of the whole operator along the branch
HALF_WIDTH = 0.1  # of a range of a parameter, as `Family` has it


@dataclass(frozen=True, eq=False, repr=False)
class StationaryDerivative:
    """The derivative of a stationary state by a parameter, and of what is computed from it.

    Attributes
    ----------
    state : StationaryState
    parameter : str
    legendre_moments : ndarray, (N,)
        Derivatives of `state.legendre_moments`.
    """

    state: Any
    parameter: str
    legendre_moments: np.ndarray

    @cached_property
    def density(self) -> Variation:
        """The derivative of the density, a function of mass 0."""
        basis, axis = self.state.equation.basis, self.state.axis
        moved = basis.density(self.legendre_moments, axis)  # which is linear but for the mass
        coefficients = np.array(moved.coefficients)
        coefficients[..., 0] -= 1
        return Variation(moved.geometry, coefficients)

    @property
    def order_parameter(self) -> float:
        """That of |int x dmu|; nan where it is 0."""
        first = self.state.equation.degrees == 1
        m, change = self.state.legendre_moments[first], self.legendre_moments[first]
        size = np.linalg.norm(m)
        return float(m @ change / size) if size else float("nan")

    @property
    def free_energy(self) -> float:
        """That of F(mu) - F(uniform), of which mu is a critical point; nan where there is none."""
        state, equation = self.state, self.state.equation
        if not equation.gradient_flow:
            return float("nan")
        mean = equation.mean(state.legendre_moments, state.kappa)
        if self.parameter == "kappa":
            entropy = mean.weights @ (mean.kappa * mean.potential) - mean.log_mass
            return float(-entropy / mean.kappa**2)
        changes = family_of(state, self.parameter).at(_value(state, self.parameter))
        return float(-0.5 * changes.strength_changes @ mean.moments**2)

    def eigenvalues(self, count: int = 6) -> np.ndarray:
        """Those of the eigenvalues of `state.stability(count)`, (count,).

        Where eigenvalues of one order are equal they have no derivatives of their own; nan.
        """
        found = self.state.stability(whole_number("count", count))
        rows = [self._rates(order) for order in range(int(found.orders.max()) + 1)]
        result = np.full(len(found.eigenvalues), np.nan, complex)
        for i, (value, order) in enumerate(zip(found.eigenvalues, found.orders, strict=True)):
            values, changes = rows[order]
            apart = np.abs(values - value)
            if np.sort(apart)[1:2].min(initial=np.inf) > SINGULAR * max(1.0, abs(value)):
                result[i] = changes[apart.argmin()]
        return result.real if np.isrealobj(found.eigenvalues) else result

    def _rates(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of one order, and their derivatives."""
        state = self.state
        basis = state.equation.basis.of_order(order)
        operator = state.equation.linearised(state.legendre_moments, state.kappa, basis)
        values, vectors = np.linalg.eig(operator)
        changes = np.linalg.solve(vectors, self._operator_change(basis) @ vectors)
        return values, np.diag(changes)

    def _operator_change(self, basis: Any) -> np.ndarray:
        state, name = self.state, self.parameter
        value, m = _value(state, name), state.legendre_moments
        unit = min(1.0, abs(value)) if value else 1.0
        step = DIFFERENCE * min(unit, 1 / max(1e-300, np.abs(self.legendre_moments).max()))
        family = None if name == "kappa" else family_of(state, name)

        def at(node: int) -> np.ndarray:
            moved = m + node * step * self.legendre_moments
            if family is None:
                return state.equation.linearised(moved, value + node * step, basis)
            return family.at(value + node * step).linearised(moved, state.kappa, basis)

        total = [w / step * at(int(j)) for j, w in zip(NODES, WEIGHTS, strict=True)]
        return np.sum(total, axis=0)

    def __repr__(self) -> str:
        return f"StationaryDerivative(by {self.parameter}, {self.density!r})"


def state_derivative(state: Any, parameter: str) -> StationaryDerivative:
    """See `StationaryState.derivative`."""
    name = checked(state, parameter)
    jacobian, by_name = jacobian_of(state), residual_change(state, name)
    least = float(np.linalg.svd(jacobian, compute_uv=False)[-1])
    if least <= SINGULAR:
        raise MeanfieldError(
            f"This state has no derivative by {name}: it meets another one there, at a fold or a "
            f"bifurcation: dR/dm has the singular value {least:.1e}, expected > {SINGULAR:g}. Ask "
            f'the special point of a diagram for derivative("{name}"), which is how a fold moves: '
            f"d kappa_fold/d {name} = -<psi, F_{name}> / <psi, F_kappa>."
        )
    return StationaryDerivative(state, name, -np.linalg.solve(jacobian, by_name))


def point_derivative(point: Any, parameter: str) -> float:
    """See `SpecialPoint.derivative`."""
    state, q = point.state, point.parameter
    name = checked(state, parameter)
    if name == q:
        raise ValueError(
            f"A special point in {q} moves with other parameters of the model; got {name!r}."
        )
    if point.kind == "fold":
        left, _, _ = np.linalg.svd(jacobian_of(state))
        psi = left[:, -1]
        return float(-(psi @ residual_change(state, name)) / (psi @ residual_change(state, q)))
    if point.branch == 0:  # moments stay 0
        zero = np.zeros_like(state.legendre_moments)
        along = [StationaryDerivative(state, p, zero) for p in (name, q)]
    else:
        along = [state_derivative(state, p) for p in (name, q)]
    if point.kind == "transition":
        p_change, q_change = (one.free_energy for one in along)
        return float(-p_change / q_change)
    p_rates, q_rates = (one._rates(point.order) for one in along)
    nearest = np.abs(p_rates[0].real).argmin()
    return float(-p_rates[1][nearest].real / q_rates[1][nearest].real)


def checked(state: Any, name: Any) -> str:
    """The name of a parameter of a state's model, "kappa" or one of the drift."""
    known = ["kappa", *state.equation.drift.parameters]
    fitting("parameter", name, f"one of {known}", isinstance(name, str) and name in known)
    if not state.converged:
        raise ValueError(
            f"derivative expects a converged state; got one that is {state.status}: {state.message}"
        )
    return name


def family_of(state: Any, name: str) -> Family:
    """The equations of the model of a state for other values of one parameter of its drift."""
    value = _value(state, name)
    span = value - HALF_WIDTH, value + HALF_WIDTH
    return Family(state.equation.drift, name, span, state.equation.basis)


def jacobian_of(state: Any) -> np.ndarray:
    """dR/dm, (N, N)."""
    equation = state.equation
    found = equation.jacobian(equation.mean(state.legendre_moments, state.kappa))
    return found if isinstance(found, np.ndarray) else found @ np.eye(found.shape[1])


def residual_change(state: Any, name: str) -> np.ndarray:
    """dR/dp, (N,)."""
    m, kappa = state.legendre_moments, state.kappa
    equation = state.equation if name == "kappa" else family_of(state, name).at(_value(state, name))
    mean = equation.mean(m, kappa)
    if name == "kappa":
        return equation.by_log_kappa(mean) / kappa
    return equation.by_parameter(m, mean)


def _value(state: Any, name: str) -> float:
    return state.kappa if name == "kappa" else float(state.equation.drift.parameters[name])
