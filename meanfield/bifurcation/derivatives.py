"""Derivatives of stationary states, and of special points, by the implicit function theorem.

A state R(m, p) = 0 has the derivative dm/dp = -(dR/dm)^-1 dR/dp by a parameter p of the model,
unless dR/dm is singular. At a fold in the parameter q, its value has the derivative

    dq/dp = -<psi, R_p> / <psi, R_q>,    psi dR/dm = 0

A growth rate s of the linearised operator, L y = s y, x L = s x, has the derivative
<x, L_p y>/<x, y>; a bifurcation or a transition, the zero of a function f on a branch, has
dq/dp = -f_p/f_q.

If rotations map a state to others of the same symmetry, dm/dp is orthogonal to their tangents:
dR/dm is the Jacobian of Newton's method, which excludes them (see `point_groups`). Equal
eigenvalues with the right and left eigenvectors Y and X, X Y = 1, have a common derivative if X L_p
Y is a multiple of the identity, as when they are equal by symmetry. The eigenvalues 0 of rotations
stay 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.checks import require, whole_number
from ..core.differences import NODES, WEIGHTS
from ..core.errors import MeanfieldError
from ..derivatives.indexed import differentiated
from ..derivatives.variation import Variation
from .bases import NO_MOMENT
from .families import EquationFamily, parameters_of, value_of
from .newton import solved
from .normal_forms import TINY_NUMBER

LEAST_SINGULAR_VALUE = 1e-5  # of dR/dm, of size 1, at which derivatives are accurate
PARTING = 1e-6  # tolerance for derivatives of equal eigenvalues to be equal
OPERATOR_DIFFERENCE = 0.02  # step of differences of the operator along the branch
CROSSING_PART = 1e-6  # largest component of dR/dp along psi, relative, at a crossing
INVERSIONS = 8  # steps of inverse iteration
HALF_WIDTH = 0.1  # of the parameter range of an `EquationFamily`


@dataclass(frozen=True, eq=False, repr=False)
class StationaryDerivative:
    """Derivative by a parameter of a stationary state and of quantities computed from it.

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
        """Derivative of the density, a function of mean 0."""
        basis, axis = self.state.equation.basis, self.state.axis
        moved = basis.density(self.legendre_moments, axis)  # linear up to the constant 1
        coefficients = moved.coefficients - moved.space.uniform().coefficients
        return differentiated(moved).variation(moved.space, coefficients)

    @property
    def order_parameter(self) -> float:
        """Derivative of the order parameter; nan where that is 0."""
        first_moments = self.state.equation.basis.first_moments
        m, change = first_moments(self.state.legendre_moments), first_moments(self.legendre_moments)
        size = np.linalg.norm(m)
        return float(m @ change / size) if size > NO_MOMENT else float("nan")

    @property
    def free_energy(self) -> float:
        """Derivative of F(mu) - F(uniform), where mu is a critical point; nan without F."""
        state, equation = self.state, self.state.equation
        if not equation.gradient_flow:
            return float("nan")
        mean = equation.mean(state.legendre_moments, state.kappa)
        if self.parameter == "kappa":
            return equation.free_energy_by_log_kappa(mean) / state.kappa
        return equation_along(state, self.parameter).free_energy_by_parameter(mean)

    def eigenvalues(self, count: int = 6) -> np.ndarray:
        """Derivatives of the eigenvalues of `state.stability(count)`, (count,).

        nan for equal eigenvalues of one order whose derivatives differ.
        """
        spectrum_of_state = self.state.stability(whole_number("count", count))
        result = np.full(len(spectrum_of_state.eigenvalues), np.nan, complex)
        for order in map(int, set(spectrum_of_state.orders)):
            of_order = np.flatnonzero(spectrum_of_state.orders == order)
            known = spectrum_of_state.eigenvalues[of_order, None]
            basis, values, vectors = _spectrum(self.state, order)
            equal = np.abs(values - known) <= LEAST_SINGULAR_VALUE * np.maximum(1.0, np.abs(known))
            chosen = equal.any(axis=0)
            changes = self._changes(basis, vectors, chosen)
            for i, same in zip(of_order, equal[:, chosen], strict=True):
                block = changes[np.ix_(same, same)]
                one = np.trace(block) / len(block)
                if np.abs(block - one * np.eye(len(block))).max() <= PARTING * max(1.0, abs(one)):
                    result[i] = one
        return result.real if np.isrealobj(spectrum_of_state.eigenvalues) else result

    def _vanishing_rate(self, order: int) -> float:
        """Derivative of the eigenvalue of one order with real part 0, times its multiplicity.

        Eigenvalues of rotations contribute 0.
        """
        state, (basis, values, vectors) = self.state, _spectrum(self.state, order)
        turned = basis.rotation_count(state.legendre_moments)
        sizes = np.abs(values.real)
        least = LEAST_SINGULAR_VALUE * (state.equation.basis.dimension - 1) / state.kappa
        here = sizes <= max(least, np.sort(sizes)[turned])
        return float(np.trace(self._changes(basis, vectors, here)).real)

    def _changes(self, basis: Any, vectors: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """X L_p Y, (k, k), for the k eigenvectors in the mask `chosen`."""
        left = np.linalg.solve(vectors.T, np.eye(len(vectors))[:, chosen]).T
        right = vectors[:, chosen]
        moved = self._operator_change(basis, np.hstack([right.real, right.imag]))
        return left @ (moved[:, : len(left)] + 1j * moved[:, len(left) :])

    def _operator_change(self, basis: Any, directions: np.ndarray) -> np.ndarray:
        """Derivative of L by the parameter along the branch, times directions (n, k)."""
        state, name = self.state, self.parameter
        value, m = _value(state, name), state.legendre_moments
        unit = min(1.0, abs(value)) if value else 1.0
        step = OPERATOR_DIFFERENCE * min(
            unit, 1 / max(TINY_NUMBER, np.abs(self.legendre_moments).max())
        )
        family = None if name == "kappa" else family_of(state, name)

        def at(node: int) -> np.ndarray:
            moved, to = m + node * step * self.legendre_moments, value + node * step
            if family is None:
                return state.equation.linearised(moved, to, basis) @ directions
            return family.at(to).linearised(moved, state.kappa, basis) @ directions

        total = [w / step * at(int(j)) for j, w in zip(NODES, WEIGHTS, strict=True)]
        return np.sum(total, axis=0)

    def __repr__(self) -> str:
        return f"StationaryDerivative(by {self.parameter}, {self.density!r})"


def _spectrum(state: Any, order: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Basis of one order, and eigenvalues and eigenvectors of the linearised operator in it."""
    basis = state.equation.basis.of_order(order)
    operator = state.equation.linearised(state.legendre_moments, state.kappa, basis)
    return basis, *np.linalg.eig(operator)


def state_derivative(state: Any, parameter: str) -> StationaryDerivative:
    """Derivative of a state by a parameter: see `StationaryState.derivative`."""
    name = checked(state, parameter)
    jacobian, by_name = jacobian_of(state), residual_change(state, name)
    least = least_of(jacobian)
    if least <= LEAST_SINGULAR_VALUE:
        raise MeanfieldError(
            f"This state has no derivative by {name}: it meets another one there, at a fold or a "
            f"bifurcation: dR/dm has the singular value {least:.1e}, expected > "
            f"{LEAST_SINGULAR_VALUE:g}. Ask "
            f'the special point of a diagram for derivative("{name}"), which is how a fold moves: '
            f"d kappa_fold/d {name} = -<psi, F_{name}> / <psi, F_kappa>."
        )
    return StationaryDerivative(state, name, -solved(jacobian, by_name))


def point_derivative(point: Any, parameter: str) -> float:
    """Derivative of the value of a special point by a parameter: see `SpecialPoint.derivative`."""
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
    along = [_along_branch(point, one) for one in (name, q)]
    if point.kind == "transition":
        p_change, q_change = (one.free_energy for one in along)
    else:
        p_change, q_change = (one._vanishing_rate(point.order) for one in along)
    return -p_change / q_change


def _along_branch(point: Any, name: str) -> StationaryDerivative:
    """Derivative of the state of a special point, along the branch on which it lies.

    At a bifurcation of order 0, psi dR/dm = 0; if psi dR/dp = 0 too, dm/dp is the least-squares
    solution, orthogonal to the new branch.
    """
    state, uniform = point.state, point.branch == 0 and point.state.equation.basis.symmetric
    if uniform:  # moments stay 0
        return StationaryDerivative(state, name, np.zeros_like(state.legendre_moments))
    if point.kind != "bifurcation" or point.order:
        return state_derivative(state, name)
    by_name = residual_change(state, name)
    left, sizes, right = np.linalg.svd(jacobian_of(state))
    missed = abs(float(left[:, -1] @ by_name)) / max(float(np.linalg.norm(by_name)), TINY_NUMBER)
    if missed > CROSSING_PART:
        raise MeanfieldError(
            f"This crossing of two branches does not move with {name}, it comes apart: "
            f"<psi, F_{name}> is {missed:.1e} of |F_{name}|, expected <= {CROSSING_PART:g}, "
            "as where a branch of less symmetry begins. See the folds of diagrams on both sides."
        )
    return StationaryDerivative(
        state, name, -right[:-1].T @ ((left[:, :-1].T @ by_name) / sizes[:-1])
    )


def checked(state: Any, name: Any) -> str:
    """`name`; raises unless it is a parameter of the model and the state has converged."""
    names = list(dict.fromkeys(["kappa", *parameters_of(state.equation.source)]))
    require("parameter", name, f"one of {names}", isinstance(name, str) and name in names)
    if not state.converged:
        raise ValueError(
            f"derivative expects a converged state; got one that is {state.status}: {state.message}"
        )
    return name


def family_of(state: Any, name: str) -> EquationFamily:
    """The family of equations around a state, with one parameter of its drift or model varied."""
    value = _value(state, name)
    span = value - HALF_WIDTH, value + HALF_WIDTH
    return EquationFamily(state.equation.source, name, span, state.equation.basis)


def equation_along(state: Any, name: str) -> Any:
    """The equation of a state, with derivatives by a parameter other than kappa."""
    return family_of(state, name).at(_value(state, name))


def jacobian_of(state: Any) -> Any:
    """dR/dm of a state, (N, N), or a `LinearOperator` if the basis is not dense."""
    equation = state.equation
    return equation.jacobian(equation.mean(state.legendre_moments, state.kappa))


def least_of(jacobian: Any) -> float:
    """Least singular value of a matrix; least eigenvalue in size of a `LinearOperator`.

    The latter by inverse iteration; 0 if GMRES does not converge.
    """
    if isinstance(jacobian, np.ndarray):
        return float(np.linalg.svd(jacobian, compute_uv=False)[-1])
    direction = np.random.default_rng(0).standard_normal(jacobian.shape[0])
    size = 1.0
    try:
        for _ in range(INVERSIONS):
            direction = solved(jacobian, direction / np.linalg.norm(direction))
            size = float(np.linalg.norm(direction))
    except np.linalg.LinAlgError:
        return 0.0
    return 1 / size


def residual_change(state: Any, name: str) -> np.ndarray:
    """dR/dp at a state, (N,), by kappa or another parameter `name`."""
    m, kappa = state.legendre_moments, state.kappa
    mean = state.equation.mean(m, kappa)
    if name == "kappa":
        return state.equation.by_log_kappa(mean) / kappa
    return equation_along(state, name).by_parameter(m, mean)


def _value(state: Any, name: str) -> float:
    return state.kappa if name == "kappa" else value_of(state.equation.source, name)
