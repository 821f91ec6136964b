"""Least action of paths of densities, up against the drift: the geometric minimum action method.

n tokens follow a path of densities mu with the probability exp(-n kappa A/2), to leading order,

    A = 1/2 int |d_t mu - b(mu)|^2 dt,    |s|^2 = int |grad phi|^2 dmu,  s = -div(mu grad phi),

where b is the right-hand side of the mean-field equation (Dawson and Gaertner). The least A over
all speeds along one curve is

    A = int |mu'| |b(mu)| - <mu', b(mu)> ds,

in the inner product of this norm. With L the matrix of phi -> -div(mu grad phi), the momentum
p = L^-1 (r mu' - b), r = |b|/|mu'|, gives the derivatives of the integrand f,

    df/dmu' = p,    df/dmu = -(Db^T p + 1/2 |grad p|^2)/r.

Densities are exp(psi)/const, and the coordinates of a path are the coefficients y of psi. So all
densities are positive, and fluxes where there is little mass have a small relative error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.interpolate import PchipInterpolator
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from ..bifurcation.bases import Array, directional
from ..bifurcation.families import transport_equation
from ..core.checks import check_memory
from ..core.errors import MeanfieldError
from ..lowlevel.blas import one_blas_thread
from ..models.transformer import Transformer

DEGREES = (12, 18, 27, 40)  # of the polynomials in which a path is computed, in turn
MORE_NODES = 8  # of Gauss quadrature than the degree
SAME_ACTION = 1e-8  # relative change of the action from one degree to the next at which it ends
ROUNDS, ITERATIONS = 12, 60  # of the minimisation: new preconditioners, and steps with one
SETTLED_ACTION = 1e-8  # relative change of the action in the last round
SINGULAR_ACTION = 1e3  # value, relative to the first action, where a mobility is singular
SPACED = 1000  # intervals in which the length of a path is measured


class Local(NamedTuple):
    """A flow with noise at one point of a path, in coordinates y (N,).

    Attributes
    ----------
    velocity : ndarray, (N,)
        b.
    mobility : ndarray, (N, N)
        L: covariance of the noise per unit of time, but for a factor.
    tangent : ndarray, (N, N)
        Matrix of the changes mu' of a point by y'.
    slope : ndarray, (N, N)
        Derivative of b by y.
    spread : callable
        Derivative (N,) of 1/2 p . L p by y, of a momentum p.
    bend : callable
        Derivative (N,) of p . mu' by y, of p and y'.
    """

    velocity: Array
    mobility: Array
    tangent: Array
    slope: Array
    spread: Callable[[Array], Array]
    bend: Callable[[Array, Array], Array]

    def covectors(self, change: Array) -> tuple[Array, Array, float]:
        """L^-1 mu', L^-1 b and r = |b|/|mu'| for a change y'."""
        factor, moved = cho_factor(self.mobility), self.tangent @ change
        along, against = cho_solve(factor, moved), cho_solve(factor, self.velocity)
        return along, against, float(np.sqrt((self.velocity @ against) / (moved @ along)))


def check_action(model: Transformer) -> None:
    """Raise MeanfieldError for models whose action is not known."""
    foreign = [name for name in model.extras if name != "feedforward"]
    if not model.noise.laplacian or foreign:
        raise MeanfieldError(
            "The least action is known for drifts under isotropic noise, without "
            f"{', '.join(foreign) or 'others'}; got {model!r}."
        )


class DensityFlow:
    """The mean-field equation under isotropic noise, of densities exp(sum_i y_i p_i)/const.

    Parameters
    ----------
    model : Transformer
    basis : Basis
        Its functions p_i of order 0 are those of psi.
    """

    def __init__(self, model: Transformer, basis: Any):
        check_action(model)
        self.kappa, self.equation = float(model.kappa), transport_equation(model, basis)
        self.functions, self.weights = basis.even, basis.weights

    def coordinates(self, coefficients: Array) -> Array:
        """y of densities with coefficients (..., N) of the functions."""
        values = 1 + coefficients @ self.functions.values
        if values.min() <= 0:
            raise MeanfieldError(
                f"The least action needs logarithms of densities, and one is {values.min():.1e} "
                f"at a maximum of {values.max():.3g}. Lower kappa; or, if that is more than a "
                "rounding error, raise the degree of its space."
            )
        return np.asarray((np.log(values) * self.weights) @ self.functions.values.T)

    def masses(self, y: Array) -> Array:
        """Masses (..., M) of densities at the nodes."""
        psi = y @ self.functions.values
        masses = self.weights * np.exp(psi - psi.max(axis=-1, keepdims=True))
        return np.asarray(masses / masses.sum(axis=-1, keepdims=True))

    def coefficients(self, y: Array) -> Array:
        """Coefficients (..., N) of densities."""
        return np.asarray(self.masses(y) @ self.functions.values.T)

    def at(self, y: Array) -> Local:
        """The equation at coordinates y (N,)."""
        p, gradients, masses = self.functions.values, self.functions.gradients, self.masses(y)
        c, density, equation = p @ masses, masses / self.weights, self.equation
        flow = equation.moved(c, c)[0]._replace(density=density)
        speed = flow.velocity - np.tensordot(y, gradients, (0, 1)) / self.kappa
        centred = p - c[:, None]
        tangent = (p * masses) @ centred.T
        mobility = np.tensordot(masses * gradients, gradients, ((0, 2), (0, 2)))
        _, by_measure = equation.divergences(flow, self.functions)
        slope = directional(speed, self.functions) @ (masses * centred).T
        slope += by_measure @ tangent - mobility / self.kappa

        def spread(momentum: Array) -> Array:
            size = (np.tensordot(momentum, gradients, (0, 1)) ** 2).sum(axis=0)
            return np.asarray(centred @ (masses * size)) / 2

        def bend(momentum: Array, change: Array) -> Array:
            return np.asarray(centred @ (masses * (momentum @ centred) * (change @ centred)))

        velocity = np.tensordot(gradients, masses * speed, ((0, 2), (0, 1)))
        return Local(velocity, mobility, tangent, slope, spread, bend)


NoisyFlow = Callable[[Array], Local]  # of coordinates (N,)


@dataclass(frozen=True)
class LeastAction:
    """The path of least action between two points.

    Attributes
    ----------
    rows : ndarray, (k, N)
        Coordinates of points on it.
    action : float
        A.
    error : float
        Difference from the action in polynomials of a lower degree.
    """

    rows: Array
    action: float
    error: float


def least_action(flow: NoisyFlow, start: Array, watch: Callable[[str], Any] = str) -> LeastAction:
    """The path of least action between the ends of a curve, from that curve.

    The curve is given by coordinates (k, N) of points on it. Between its ends the flow has no point
    of rest. The degree of the path is raised until the action changes by less than 1e-8, at most to
    40. `watch` is called with a text before each minimisation.

    Raises
    ------
    MeanfieldError
        If the path is too large for the memory.

    References
    ----------
    Heymann and Vanden-Eijnden, Comm. Pure Appl. Math. 61 (2008) 1052, for the geometric action;
    Dawson and Gaertner, Stochastics 20 (1987) 247, for n tokens.
    """
    rows, action, error = start, np.inf, np.inf
    with one_blas_thread():
        for degree in DEGREES:
            size = degree * start.shape[1]
            check_memory("second derivatives of the action", (2, size, size), "degree")
            path = _Polynomials(degree)
            points, finer = _minimised(flow, path, path.spaced(rows), watch)
            rows, action, error = path.dense @ points, finer, abs(finer - action)
            if error <= SAME_ACTION * action:
                break
    return LeastAction(rows, action, float(error))


class _Polynomials:
    """Paths of one degree: values at Chebyshev points, and quadrature along them."""

    def __init__(self, degree: int):
        self.points = -np.cos(np.pi * np.arange(degree + 1) / degree)
        nodes, self.weights = np.polynomial.legendre.leggauss(degree + MORE_NODES)
        inverse = np.linalg.inv(chebyshev.chebvander(self.points, degree))
        slopes = [chebyshev.chebval(nodes, chebyshev.chebder(unit)) for unit in np.eye(degree + 1)]
        self.values = chebyshev.chebvander(nodes, degree) @ inverse
        self.slopes = np.array(slopes).T @ inverse
        self.dense = chebyshev.chebvander(np.linspace(-1, 1, SPACED + 1), degree) @ inverse

    def spaced(self, rows: Array) -> Array:
        """Points on a curve that divide its length as the Chebyshev points."""
        steps = np.linalg.norm(np.diff(rows, axis=0), axis=1)
        lengths = np.concatenate([[0.0], np.cumsum(steps)])
        curve = PchipInterpolator(lengths, rows)
        return np.asarray(curve((self.points + 1) / 2 * lengths[-1]))


def _action(flow: NoisyFlow, path: _Polynomials, rows: Array) -> tuple[float, Array]:
    """The action of a path and its gradient, (n + 1, N)."""
    action, gradient = 0.0, np.zeros_like(rows)
    for weight, values, slopes in zip(path.weights, path.values, path.slopes, strict=True):
        local, change = flow(values @ rows), slopes @ rows
        along, against, r = local.covectors(change)
        p = r * along - against
        by_change = local.tangent.T @ p
        by_point = local.bend(p, change) - (local.slope.T @ p + local.spread(p)) / r
        action += weight * (change @ by_change)
        gradient += weight * (np.outer(slopes, by_change) + np.outer(values, by_point))
    return float(action), gradient


def _curvature(flow: NoisyFlow, path: _Polynomials, rows: Array) -> Array:
    """Positive part of the second derivative of the action by inner points, in both as one index.

    That of the integrand |r mu' - b|^2/(2 r) with r, L and the tangent held fixed, without D^2 b.
    """
    inner, size = len(rows) - 2, rows.shape[1]
    total = np.zeros((inner, inner, size, size))
    for weight, values, slopes in zip(path.weights, path.values, path.slopes, strict=True):
        local = flow(values @ rows)
        r, tangent, slope = local.covectors(slopes @ rows)[2], local.tangent, local.slope
        factor = cho_factor(local.mobility)
        along, against = cho_solve(factor, tangent), cho_solve(factor, slope)
        by_value, by_slope = values[1:-1], slopes[1:-1]
        parts = [
            (r, by_slope, by_slope, tangent.T @ along),
            (-1.0, by_slope, by_value, tangent.T @ against),
            (-1.0, by_value, by_slope, slope.T @ along),
            (1 / r, by_value, by_value, slope.T @ against),
        ]
        for share, one, other, matrix in parts:
            total += np.multiply.outer(weight * share * np.outer(one, other), matrix)
    matrix = total.transpose(0, 2, 1, 3).reshape(inner * size, inner * size)
    return (matrix + matrix.T) / 2


def _minimised(
    flow: NoisyFlow, path: _Polynomials, rows: Array, watch: Callable[[str], Any]
) -> tuple[Array, float]:
    """The path of least action near a path of one degree, and its action."""
    inner = rows[1:-1].shape
    first = action = _action(flow, path, rows)[0]
    for number in range(ROUNDS):
        watch(f"least action, degree {len(rows) - 1}, round {number + 1}, A = {action:.8g}")
        root = cholesky(_curvature(flow, path, rows))

        def moved(y: Array, rows: Array = rows, root: Array = root) -> Array:
            change = solve_triangular(root, y).reshape(inner)
            return np.concatenate([rows[:1], rows[1:-1] + change, rows[-1:]])

        def value(
            y: Array, root: Array = root, moved: Callable[[Array], Array] = moved
        ) -> tuple[float, Array]:
            try:
                action, gradient = _action(flow, path, moved(y))
            except LinAlgError:
                return SINGULAR_ACTION, 0.0 * y
            slope = solve_triangular(root, gradient[1:-1].ravel(), trans=1)
            return action / first, slope / first

        options = {"maxiter": ITERATIONS, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 30}
        start = np.zeros(root.shape[0])
        found = minimize(value, start, jac=True, method="L-BFGS-B", options=options)
        before, action = action, float(found.fun * first)
        rows = path.spaced(path.dense @ moved(found.x))
        if before - action <= SETTLED_ACTION * action:
            break
    return rows, action
