"""Steps of an exponential or explicit scheme, differentiated exactly, and transposed: compiled.

A step of the scheme from u, with slopes K_j = N(U_j) and U_0 = u,

    U_i = e^(c_i z) u + dt sum_j a_ij(z) K_j,    u' = e^z u + dt sum_j b_j(z) K_j,    z = dt L,

is differentiated in u, in parameters of N, and in a factor of L, by z phi_j' = phi_(j-1) - j phi_j
and z phi_0' = z phi_0. Its transpose, with respect to the inner product of L^2, takes l' to l:

    k_j = b_j l' + sum_(i > j) a_ij l_i,    l_i = DN(U_i)* k_i,    l = e^z l' + sum_i e^(c_i z) l_i
"""

from typing import Any, NamedTuple

import numpy as np

from ..lowlevel.callbacks import evaluate
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.simd import address_of
from ..steppers import Scheme
from ..steppers.attempt import HIGHEST, phi_functions
from ..steppers.dense_output import Interpolant, ParabolicInterpolant, row_of
from ..steppers.schemes import ParabolicOutput, Table

STEP = {**INNER, "error_model": "numpy"}


class Weights(NamedTuple):
    """The weights of a scheme for one step size, and what L d/dL makes of them.

    decay : (2, s + 1, modes); weights : (2, s + 1, slots, modes), with modes 1 for an explicit
    scheme; phi, change : (nodes, 4) work; step : (1,) the size they are for.
    """

    decay: np.ndarray
    weights: np.ndarray
    phi: np.ndarray
    step: np.ndarray


class Equation(NamedTuple):
    """N, its derivatives and L, for compiled code.

    nonlinear, context : of the compiled function; time, start : of its clock
    linear : (modes,), or (1,) 0 for an explicit scheme, which has L in `added`, (modes,) or (0,)
    factors : (p,) d log L of each tangent
    parseval : (modes,)
    """

    nonlinear: int
    context: int
    linear: np.ndarray
    added: np.ndarray
    factors: np.ndarray
    parseval: np.ndarray


class DifferentiatedScheme:
    """A scheme for du/dt = L u + N(u), with tangents or transposed.

    Parameters
    ----------
    scheme : Scheme
    linear : ndarray, (modes,)
        The diagonal of L, real.
    transport : Transport
        N with its derivatives along, or with its transpose.
    factors : ndarray, (p,)
        The derivative of log L in the direction of each tangent, or of each parameter.
    parseval : ndarray, (modes,)
    """

    def __init__(self, scheme: Scheme, linear: np.ndarray, transport: Any, factors, parseval):
        self.scheme, self._transport, self._linear = scheme, transport, np.array(linear, float)
        table: Table = scheme.table
        none, rows = np.zeros(0), len(scheme.nodes) + 1
        inside, added = (np.zeros(1), self._linear) if scheme.explicit else (self._linear, none)
        address = transport.address, transport.context
        self._equation = Equation(*address, inside, added, np.array(factors, float), parseval)
        columns = np.ascontiguousarray(table.columns[:rows])
        entries = np.ascontiguousarray(table.entries[table.entries[:, 0] < rows])
        self._table = table.nodes, table.decay, entries, columns
        self._weights = Weights(
            np.zeros((2, rows, inside.size)),
            np.zeros((2, rows, columns.shape[1], inside.size)),
            np.zeros((table.nodes.size, HIGHEST + 1)),
            np.full(1, np.nan),
        )

    # Forwards ------------------------------------------------------------------------------

    def advance(self, state: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """The state and tangents (1 + p, modes) after steps (n, 2), of which the last is kept."""
        slopes = np.empty((len(self.scheme.nodes) + 2, *state.shape), state.dtype)
        u, before = state.copy(), np.empty_like(state)
        _advance(self._equation, self._table, self._weights, steps, u, before, slopes)
        self._last = before, u, slopes, steps[-1]
        return u.copy()

    def within(self, part: float) -> np.ndarray:
        """State and tangents (1 + p, modes) after this part of the last step."""
        u, new, slopes, (t, dt) = self._last
        dense: Any = self.scheme.dense
        factors = self._equation.factors
        if isinstance(dense, ParabolicOutput):
            by_row = np.ascontiguousarray(np.moveaxis(slopes, 0, 1))
            linear = self._equation.linear
            found = ParabolicInterpolant(dense, linear[None], u, new, by_row, dt)(part)
            if factors.any():
                change = _parabolic_change(dense, linear, u[0], slopes[:, 0], dt, part)
                found[1:] += factors[:, None] * change
            return found
        real, dtype = np.float64, u.dtype

        def velocity(place: np.ndarray, _t: float) -> np.ndarray:
            return self._slope(place.view(dtype)).view(real)

        flat = slopes.reshape(len(slopes), -1).view(real)
        inside = Interpolant(dense, velocity, u.view(real), new.view(real), flat, t, dt)
        return inside(part).view(dtype)

    def _slope(self, u: np.ndarray) -> np.ndarray:
        slope = np.empty_like(u)
        _slope(self._equation, u, slope)
        return slope

    # Backwards -----------------------------------------------------------------------------

    def recorded(self, u: np.ndarray, steps: np.ndarray) -> "Record":
        """All stages of steps (n, 2) from u (modes,), where there are no tangents."""
        stages, n = len(self.scheme.nodes) + 1, len(steps)
        held = [np.empty((n, stages, u.size), u.dtype) for _ in range(2)]
        record = Record(held[0], held[1], u.copy())
        _record(self._equation, self._table, self._weights, steps, *record)
        return record

    def pulled_back(
        self, adjoint: np.ndarray, steps: np.ndarray, record: "Record", gradient: np.ndarray
    ) -> np.ndarray:
        """l at the beginning of the steps from l' at their end.

        The derivatives by each parameter are added to `gradient`, (p,).
        """
        l = adjoint.copy()
        _pull_back(self._equation, self._table, self._weights, steps, *record[:2], l, gradient)
        return l


class Record(NamedTuple):
    """Stages and slopes of many steps, (n, s + 1, modes), and the state after the last one."""

    stages: np.ndarray
    slopes: np.ndarray
    end: np.ndarray


def _parabolic_change(dense: ParabolicOutput, linear, u, slopes, dt: float, s: float):
    """L d/dL of the state within a step, (modes,): see `ParabolicOutput`."""
    weights = row_of(dense.middle)
    first, middle, last = slopes[0], weights @ slopes[: weights.size], slopes[-1]
    derivatives = first, 4 * middle - 3 * first - last, 4 * (first + last - 2 * middle)

    def change(part: float) -> np.ndarray:
        """That of e(part)."""
        phi = np.empty((linear.size, HIGHEST + 1))
        _phi_of_all(part * dt * linear, phi)
        total = part * dt * linear * phi[:, 0] * u
        for j, derivative in enumerate(derivatives, start=1):
            total = total + part**j * dt * (phi[:, j - 1] - j * phi[:, j]) * derivative
        return total

    return change(s) - s * s * (3 - 2 * s) * change(1.0)


@njit(cache=True, error_model="numpy")
def _phi_of_all(z, phi):
    for k in range(z.size):
        phi_functions(z[k], phi[k])


@njit(**STEP)
def _weigh(linear, nodes, decay_node, entries, dt, work):
    """The weights, and L d/dL of them."""
    if work.step[0] == dt:
        return
    phi, decay, weights = work.phi, work.decay, work.weights
    for k in range(linear.size):
        z = dt * linear[k]
        for node in range(nodes.size):
            phi_functions(nodes[node] * z, phi[node])
        for i in range(decay_node.size):
            if i < decay.shape[1]:
                e = phi[decay_node[i], 0]
                decay[0, i, k], decay[1, i, k] = e, nodes[decay_node[i]] * z * e
        for e in range(len(entries)):
            for kind in range(2):
                weights[kind, int(entries[e, 0]), int(entries[e, 1]), k] = 0.0
        for e in range(len(entries)):
            i, slot, node = int(entries[e, 0]), int(entries[e, 1]), int(entries[e, 2])
            order, factor = int(entries[e, 3]), dt * entries[e, 4]
            weights[0, i, slot, k] += factor * phi[node, order]
            change = phi[node, order - 1] - order * phi[node, order]
            weights[1, i, slot, k] += factor * change
    work.step[0] = dt


@njit(cache=True, error_model="numpy")
def _slope(equation, u, slope):
    """N of the state and its tangents, and L u for an explicit scheme."""
    evaluate(equation.nonlinear, equation.context, 0, address_of(u), address_of(slope))
    added = equation.added
    if added.size == 0:
        return
    for row in range(len(u)):
        for k in range(added.size):
            slope[row, k] += added[k] * u[row, k]
        if row > 0 and equation.factors[row - 1] != 0:
            for k in range(added.size):
                slope[row, k] += equation.factors[row - 1] * (added[k] * u[0, k])


@njit(**STEP)
def _combine(i, decay, weights, columns, u, slopes, target):
    """target = decay_i u + sum_slot weights_i,slot slopes_(columns_i,slot), two slots at once."""
    one = decay.shape[1] == 1
    for k in range(target.size):
        target[k] = decay[i, 0 if one else k] * u[k]
    for slot in range(0, columns.shape[1], 2):
        if columns[i, slot] < 0:
            return
        v, w = weights[i, slot], weights[i, slot + 1]
        f, g = slopes[columns[i, slot]], slopes[columns[i, slot + 1]]
        if one:
            a, b = v[0], w[0]
            for k in range(target.size):
                target[k] += a * f[k] + b * g[k]
        else:
            for k in range(target.size):
                target[k] += v[k] * f[k] + w[k] * g[k]


@njit(cache=True, error_model="numpy")
def _advance(equation, table, work, steps, u, before, slopes):
    nodes, decay_node, entries, columns = table
    stages, stage, change = len(columns), np.empty_like(u), np.empty_like(u[0])
    factors, decay, weights = equation.factors, work.decay, work.weights
    scaled = equation.added.size == 0 and factors.any()
    _slope(equation, u, slopes[stages])
    for n in range(len(steps)):
        _weigh(equation.linear, nodes, decay_node, entries, steps[n, 1], work)
        slopes[0] = slopes[stages]
        before[:] = u
        for i in range(stages):
            for row in range(len(u)):
                _combine(i, decay[0], weights[0], columns, before[row], slopes[:, row], stage[row])
            if scaled:
                _combine(i, decay[1], weights[1], columns, before[0], slopes[:, 0], change)
                for row in range(1, len(u)):
                    factor = factors[row - 1]
                    for k in range(change.size):
                        stage[row, k] += factor * change[k]
            _slope(equation, stage, slopes[i + 1])
        u[:] = stage


@njit(cache=True, error_model="numpy")
def _record(equation, table, work, steps, all_stages, all_slopes, u):
    nodes, decay_node, entries, columns = table
    stages = len(columns)
    for n in range(len(steps)):
        _weigh(equation.linear, nodes, decay_node, entries, steps[n, 1], work)
        all_stages[n, 0] = u
        for i in range(stages):
            _slope(equation, all_stages[n, i : i + 1], all_slopes[n, i : i + 1])
            target = u if i == stages - 1 else all_stages[n, i + 1]
            _combine(
                i, work.decay[0], work.weights[0], columns, all_stages[n, 0], all_slopes[n], target
            )


@njit(**STEP)
def _paired(equation, a, b):
    """int a b dsigma of real functions by their coefficients."""
    total = 0.0
    for k in range(a.size):
        total += equation.parseval[k] * (a[k].real * b[k].real + a[k].imag * b[k].imag)
    return total


@njit(cache=True, error_model="numpy")
def _pull_back(equation, table, work, steps, all_stages, all_slopes, l, gradient):
    nodes, decay_node, entries, columns = table
    stages, one = len(columns), equation.added.size > 0
    pulled = np.empty((stages + 1, l.size), l.dtype)  # l_i, and l' last
    given, numbers = np.empty((2, l.size), l.dtype), l.size * (l.itemsize // 8)
    found = np.empty(numbers + gradient.size)
    weighed, change = np.empty_like(l), np.empty_like(l)
    for n in range(len(steps) - 1, -1, -1):
        _weigh(equation.linear, nodes, decay_node, entries, steps[n, 1], work)
        pulled[stages] = l
        for j in range(stages - 1, -1, -1):
            weighed[:] = 0
            for i in range(j, stages):  # row i makes the stage i + 1, the last one u'
                for slot in range(columns.shape[1]):
                    if columns[i, slot] == j:
                        w = work.weights[0, i, slot]
                        for k in range(l.size):
                            weighed[k] += w[0 if one else k] * pulled[i + 1, k]
            given[0], given[1] = all_stages[n, j], weighed
            evaluate(equation.nonlinear, equation.context, 0, address_of(given), address_of(found))
            pulled[j] = found[:numbers].view(l.dtype)
            for p in range(gradient.size):
                gradient[p] += found[numbers + p]
            if one:
                for k in range(l.size):
                    pulled[j, k] += equation.added[k] * weighed[k]
                    change[k] = equation.added[k] * all_stages[n, j, k]
                of_l = _paired(equation, weighed, change)
                for p in range(gradient.size):
                    gradient[p] += equation.factors[p] * of_l
        l[:] = pulled[0]
        for i in range(stages):
            for k in range(l.size):
                l[k] += work.decay[0, i, 0 if one else k] * pulled[i + 1, k]
            if not one and equation.factors.any():
                _combine(
                    i,
                    work.decay[1],
                    work.weights[1],
                    columns,
                    all_stages[n, 0],
                    all_slopes[n],
                    change,
                )
                of_l = _paired(equation, pulled[i + 1], change)
                for p in range(gradient.size):
                    gradient[p] += equation.factors[p] * of_l
