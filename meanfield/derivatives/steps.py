"""Steps of an exponential or explicit scheme, differentiated exactly, and transposed: compiled.

A step of the scheme from u, with slopes K_j = N(U_j) and U_0 = u,

    U_i = e^(c_i z) u + dt sum_j a_ij(z) K_j,    u' = e^z u + dt sum_j b_j(z) K_j,    z = dt L,

is differentiated in u, in parameters of N, and in a factor of L, by z phi_j' = phi_(j-1) - j phi_j
and z phi_0' = z phi_0. Its transpose, with respect to the inner product of L^2, takes l' to l:

    k_j = b_j l' + sum_(i > j) a_ij l_i,    l_i = DN(U_i)* k_i,    l = e^z l' + sum_i e^(c_i z) l_i

L is M/kappa, with kappa at the beginning of a step; where kappa changes within it, N has the rest
of M/kappa. Where M is diagonal in an eigenbasis alone, sums of exponential schemes are taken in it,
and their transposes in its `dual`.

All numbers are floats, real and imaginary parts of complex coefficients in turn, so that everything
is compiled once.
"""

from typing import Any, NamedTuple

import numpy as np

from ..lowlevel.callbacks import evaluate
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.simd import address_of
from ..steppers import Scheme
from ..steppers.attempt import HIGHEST, phi_functions
from ..steppers.dense_output import Interpolant, ParabolicInterpolant, row_of
from ..steppers.eigenbasis import COLUMNS, NO_BASIS, Eigenbasis, change, scratch
from ..steppers.schemes import ParabolicOutput, Table

STEP = {**INNER, "error_model": "numpy"}


class Diffusion(NamedTuple):
    """M on the modes of a space.

    Attributes
    ----------
    rates : ndarray, (modes,)
        Its eigenvalues, real; in a basis one for every float of the coefficients.
    basis, dual : Eigenbasis
        In which M is diagonal, and its transpose in the inner product of L^2: without entries
        where M is diagonal in the coefficients.
    parseval : ndarray, (floats,)
        Weights of that inner product.
    """

    rates: np.ndarray
    basis: Eigenbasis
    dual: Eigenbasis
    parseval: np.ndarray

    @classmethod
    def of(cls, rates: np.ndarray, basis: Eigenbasis | None, parseval: np.ndarray) -> "Diffusion":
        if basis is None:
            return cls(rates, NO_BASIS, NO_BASIS, parseval)
        return cls(rates, basis, dual_of(basis, parseval), parseval)


def dual_of(basis: Eigenbasis, parseval: np.ndarray) -> Eigenbasis:
    """The basis in which E diag E^-1 is transposed, (a, b) = sum parseval a b: E^T P, P^-1 E^-T."""
    blocks = []
    for start, end, at in zip(basis.starts[:-1], basis.starts[1:], basis.places, strict=True):
        mine, size = basis.order[start:end], int(end - start)
        length = -(-size // COLUMNS) * COLUMNS * size
        forth, back = (
            columns[at : at + length].reshape(-1, size)[:size].T
            for columns in (basis.forth, basis.back)
        )
        weights = parseval[mine]
        blocks.append((mine, back.T * weights, forth.T / weights[:, None]))
    return Eigenbasis.of(blocks)


class Noise(NamedTuple):
    """1/kappa along some steps.

    Attributes
    ----------
    strengths : ndarray, (n,)
        At the beginning of each step.
    excess : ndarray, (n, s + 2)
        How much larger it is at the stages u, u_1, ..., u_s and u'.
    """

    strengths: np.ndarray
    excess: np.ndarray

    @classmethod
    def constant(cls, strength: float, steps: int, scheme: Scheme) -> "Noise":
        return cls(np.full(steps, strength), np.zeros((steps, len(scheme.nodes) + 2)))


class Weights(NamedTuple):
    """The weights of a scheme for one step size, and what L d/dL makes of them.

    decay : (2, s + 1, n); weights : (2, s + 1, slots, n), with n = 1 for an explicit scheme, else
    the number of floats; phi : (nodes, 4) work; step : (2,) the size, and 1/kappa, that they are
    for.
    """

    decay: np.ndarray
    weights: np.ndarray
    phi: np.ndarray
    step: np.ndarray


class Equation(NamedTuple):
    """N, its derivatives and L, for compiled code.

    nonlinear, context : of the compiled function; time, start : of its clock
    linear : (modes,) rates of M, or (1,) 0 for an explicit scheme, which has L in N
    rates : (n,) those of all floats
    explicit : whether L is in N
    factors : (p,) d log L of each tangent
    basis, dual : of M; modal : whether sums are taken in it
    pairing : (n,) weights of the inner product, 1 in a basis
    part : scratch memory of `change`; held : (2, n) two vectors in a basis
    """

    nonlinear: int
    context: int
    time: np.ndarray
    start: float
    linear: np.ndarray
    rates: np.ndarray
    explicit: bool
    factors: np.ndarray
    basis: Eigenbasis
    dual: Eigenbasis
    modal: bool
    pairing: np.ndarray
    part: np.ndarray
    held: np.ndarray


class DifferentiatedScheme:
    """A scheme for du/dt = L u + N(u, t), with tangents or transposed.

    Parameters
    ----------
    scheme : Scheme
    diffusion : Diffusion
        M, L being M/kappa.
    transport : Transport
        N with its derivatives along, or with its transpose.
    factors : ndarray, (p,)
        The derivative of log L in the direction of each tangent, or of each parameter.
    start : float
        The time at which steps are counted from 0.
    """

    def __init__(
        self, scheme: Scheme, diffusion: Diffusion, transport: Any, factors, start: float = 0.0
    ):
        self.scheme, self._transport = scheme, transport  # lives as long as its address is used
        table: Table = scheme.table
        rows, size = len(scheme.nodes) + 1, diffusion.parseval.size
        basis, rates = diffusion.basis, np.array(diffusion.rates, float)
        self._linear, self._based = rates, basis.order.size > 0
        modal, parts = self._based and not scheme.explicit, size // rates.size
        self._equation = Equation(
            transport.address,
            transport.context,
            transport.time,
            float(start),
            np.zeros(1) if scheme.explicit else rates,
            np.repeat(rates, parts),
            scheme.explicit,
            np.array(factors, float),
            basis,
            diffusion.dual,
            modal,
            np.ones(size) if self._based else np.array(diffusion.parseval, float),
            scratch(size, np.dtype(float)),
            np.empty((2, size)),
        )
        columns = np.ascontiguousarray(table.columns[:rows])
        entries = np.ascontiguousarray(table.entries[table.entries[:, 0] < rows])
        self._table = table.nodes, table.decay, entries, columns
        width = 1 if scheme.explicit else size
        self._weights = Weights(
            np.zeros((2, rows, width)),
            np.zeros((2, rows, columns.shape[1], width)),
            np.zeros((table.nodes.size, HIGHEST + 1)),
            np.full(2, np.nan),
        )

    # Forwards ------------------------------------------------------------------------------

    def advance(self, state: np.ndarray, steps: np.ndarray, noise: Noise) -> np.ndarray:
        """The state and tangents (1 + p, modes) after steps (n, 2), of which the last is kept."""
        u = _floats(state)
        before = np.empty_like(u)
        slopes = np.empty((len(self.scheme.nodes) + 2, *u.shape))
        _advance(self._equation, self._table, self._weights, steps, *noise, u, before, slopes)
        self._transport.check()
        self._last = before, u, slopes, steps[-1], noise.strengths[-1]
        return u.copy().view(state.dtype)

    def within(self, part: float, excess_at: Any, dtype: Any) -> np.ndarray:
        """State and tangents (1 + p, modes) after this part of the last step.

        `excess_at` gives the excess of 1/kappa at other times of the step than those of stages.
        """
        u, new, slopes, (t, dt), strength = self._last
        dense: Any = self.scheme.dense
        equation = self._equation
        if isinstance(dense, ParabolicOutput):
            basis, kind = equation.basis, float if self._based else dtype
            first, last = (basis.into(end).view(kind) for end in (u, new))
            by_row = np.ascontiguousarray(np.moveaxis(slopes, 0, 1)).view(kind)
            linear = strength * self._linear
            found = ParabolicInterpolant(dense, linear[None], first, last, by_row, dt)(part)
            if equation.factors.any():
                moved = _parabolic_change(dense, linear, first[0], by_row[0], dt, part)
                found[1:] += equation.factors[:, None] * moved
            return basis.out_of(found.view(float)).view(dtype)

        def velocity(place: np.ndarray, time: float) -> np.ndarray:
            slope = np.empty_like(u)
            _slope(equation, strength, excess_at(time), time, place.reshape(u.shape), slope)
            self._transport.check()
            return slope

        flat = slopes.reshape(len(slopes), -1)
        return Interpolant(dense, velocity, u, new, flat, t, dt)(part).view(dtype)

    # Backwards -----------------------------------------------------------------------------

    def recorded(self, u: np.ndarray, steps: np.ndarray, noise: Noise) -> "Record":
        """All stages of steps (n, 2) from u (modes,), where there are no tangents."""
        end = _floats(u)
        held = [np.empty((len(steps), len(self.scheme.nodes) + 1, end.size)) for _ in range(2)]
        record = Record(held[0], held[1], end)
        _record(self._equation, self._table, self._weights, steps, *noise, *record)
        self._transport.check()
        return record

    def pulled_back(
        self,
        adjoint: np.ndarray,
        steps: np.ndarray,
        noise: Noise,
        record: "Record",
        gradient: np.ndarray,
    ) -> np.ndarray:
        """l at the beginning of the steps from l' at their end.

        The derivatives by each parameter are added to `gradient`, (p,).
        """
        l, along = _floats(adjoint), (*noise, *record[:2])
        _pull_back(self._equation, self._table, self._weights, steps, *along, l, gradient)
        self._transport.check()
        return l.view(adjoint.dtype)


class Record(NamedTuple):
    """Stages and slopes of many steps, (n, s + 1, floats), and the state after the last one."""

    stages: np.ndarray
    slopes: np.ndarray
    end: np.ndarray


def _floats(numbers: np.ndarray) -> np.ndarray:
    """A copy as floats."""
    return np.array(numbers, order="C").view(float)


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
def _weigh(linear, nodes, decay_node, entries, dt, strength, work):
    """The weights, and L d/dL of them."""
    if work.step[0] == dt and work.step[1] == strength:
        return
    phi, decay, weights = work.phi, work.decay, work.weights
    parts = decay.shape[2] // linear.size
    for mode in range(linear.size):
        z, k = dt * (strength * linear[mode]), mode * parts
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
            change_of_phi = phi[node, order - 1] - order * phi[node, order]
            weights[1, i, slot, k] += factor * change_of_phi
        if parts == 2:
            for kind in range(2):
                for i in range(decay.shape[1]):
                    decay[kind, i, k + 1] = decay[kind, i, k]
                    for slot in range(weights.shape[2]):
                        weights[kind, i, slot, k + 1] = weights[kind, i, slot, k]
    work.step[0], work.step[1] = dt, strength


@njit(**STEP)
def _add_diffused(equation, scale, u, target):
    """target += scale M u."""
    rates, held, basis, part = equation.rates, equation.held, equation.basis, equation.part
    if basis.order.size == 0:
        for k in range(u.size):
            target[k] += scale * rates[k] * u[k]
        return
    change(basis, basis.forth, u, held[0], part)
    for k in range(u.size):
        held[0, k] *= scale * rates[k]
    change(basis, basis.back, held[0], held[1], part)
    for k in range(u.size):
        target[k] += held[1, k]


@njit(cache=True, error_model="numpy")
def _slope(equation, strength, excess, t, u, slope):
    """N of the state and its tangents, and L u for an explicit scheme."""
    equation.time[0] = equation.start + t
    evaluate(equation.nonlinear, equation.context, 0, address_of(u), address_of(slope))
    total = strength + excess if equation.explicit else excess
    if total == 0.0:
        return
    for row in range(len(u)):
        _add_diffused(equation, total, u[row], slope[row])
        if equation.explicit and row > 0 and equation.factors[row - 1] != 0:
            _add_diffused(equation, equation.factors[row - 1] * strength, u[0], slope[row])


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


@njit(**STEP)
def _turn(equation, basis, columns, rows, result):
    """Rows in the basis of sums, or back; as they are without one."""
    for row in range(len(rows)):
        if equation.modal:
            change(basis, columns, rows[row], result[row], equation.part)
        else:
            for k in range(rows.shape[1]):
                result[row, k] = rows[row, k]


@njit(cache=True, error_model="numpy")
def _advance(equation, table, work, steps, strengths, excess, u, before, slopes):
    nodes, decay_node, entries, columns = table
    stages, stage, changed = len(columns), np.empty_like(u), np.empty_like(u[0])
    first, sums, slope = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    factors, decay, weights = equation.factors, work.decay, work.weights
    scaled = not equation.explicit and factors.any()
    basis, modal = equation.basis, equation.modal
    for n in range(len(steps)):
        t, dt, strength = steps[n, 0], steps[n, 1], strengths[n]
        _weigh(equation.linear, nodes, decay_node, entries, dt, strength, work)
        if n == 0 or excess[n - 1, stages] != 0:  # N has changed with L
            _slope(equation, strength, excess[n, 0], t, u, slope)
            _turn(equation, basis, basis.forth, slope, slopes[0])
        else:
            slopes[0] = slopes[stages]
        before[:] = u
        start = before
        if modal:
            _turn(equation, basis, basis.forth, u, first)
            start = first
        for i in range(stages):
            for row in range(len(u)):
                target = sums[row] if modal else stage[row]
                _combine(i, decay[0], weights[0], columns, start[row], slopes[:, row], target)
            if scaled:
                _combine(i, decay[1], weights[1], columns, start[0], slopes[:, 0], changed)
                for row in range(1, len(u)):
                    factor, target = factors[row - 1], sums[row] if modal else stage[row]
                    for k in range(changed.size):
                        target[k] += factor * changed[k]
            if modal:
                _turn(equation, basis, basis.back, sums, stage)
            at = t + nodes[decay_node[i]] * dt
            if modal:
                _slope(equation, strength, excess[n, i + 1], at, stage, slope)
                _turn(equation, basis, basis.forth, slope, slopes[i + 1])
            else:
                _slope(equation, strength, excess[n, i + 1], at, stage, slopes[i + 1])
        u[:] = stage


@njit(cache=True, error_model="numpy")
def _record(equation, table, work, steps, strengths, excess, all_stages, all_slopes, u):
    nodes, decay_node, entries, columns = table
    stages, basis = len(columns), equation.basis
    slope, first, sums = np.empty((1, u.size)), np.empty((1, u.size)), np.empty((1, u.size))
    for n in range(len(steps)):
        t, dt, strength = steps[n, 0], steps[n, 1], strengths[n]
        _weigh(equation.linear, nodes, decay_node, entries, dt, strength, work)
        all_stages[n, 0] = u
        _turn(equation, basis, basis.forth, all_stages[n, :1], first)
        for i in range(stages):
            at = t if i == 0 else t + nodes[decay_node[i - 1]] * dt
            _slope(equation, strength, excess[n, i], at, all_stages[n, i : i + 1], slope)
            _turn(equation, basis, basis.forth, slope, all_slopes[n, i : i + 1])
            _combine(i, work.decay[0], work.weights[0], columns, first[0], all_slopes[n], sums[0])
            _turn(equation, basis, basis.back, sums, slope)
            if i == stages - 1:
                u[:] = slope[0]
            else:
                all_stages[n, i + 1] = slope[0]


@njit(**STEP)
def _add_scaled(weights, a, target):
    """target += weights a, with one weight or as many as there are floats."""
    if weights.size == 1:
        w = weights[0]
        for k in range(target.size):
            target[k] += w * a[k]
    else:
        for k in range(target.size):
            target[k] += weights[k] * a[k]


@njit(**STEP)
def _paired(equation, a, b):
    """int a b dsigma of real functions by their coefficients, and by those in a basis."""
    total = 0.0
    for k in range(a.size):
        total += equation.pairing[k] * a[k] * b[k]
    return total


@njit(cache=True, error_model="numpy")
def _pull_back(
    equation, table, work, steps, strengths, excess, all_stages, all_slopes, l, gradient
):
    nodes, decay_node, entries, columns = table
    stages, one, size = len(columns), equation.explicit, l.size
    basis, dual, factors = equation.basis, equation.dual, equation.factors
    pulled = np.empty((stages + 1, size))  # l_i, and l' last, in the basis
    given, first, sums = np.empty((2, size)), np.empty((1, size)), np.empty((1, size))
    found, changed = np.empty(size + gradient.size), np.empty(size)
    held, part = np.empty((3, size)), equation.part
    for n in range(len(steps) - 1, -1, -1):
        t, dt, strength = steps[n, 0], steps[n, 1], strengths[n]
        _weigh(equation.linear, nodes, decay_node, entries, dt, strength, work)
        sums[0] = l
        _turn(equation, dual, dual.forth, sums, pulled[stages:])
        for j in range(stages - 1, -1, -1):
            sums[:] = 0
            for i in range(j, stages):  # row i makes the stage i + 1, the last one u'
                for slot in range(columns.shape[1]):
                    if columns[i, slot] == j:
                        _add_scaled(work.weights[0, i, slot], pulled[i + 1], sums[0])
            _turn(equation, dual, dual.back, sums, given[1:])
            given[0] = all_stages[n, j]
            at = t if j == 0 else t + nodes[decay_node[j - 1]] * dt
            equation.time[0] = equation.start + at
            evaluate(equation.nonlinear, equation.context, 0, address_of(given), address_of(found))
            for p in range(gradient.size):
                gradient[p] += found[size + p]
            total = strength + excess[n, j] if one else excess[n, j]
            if total != 0.0 and basis.order.size == 0:
                for k in range(size):
                    found[k] += total * equation.rates[k] * given[1, k]
                    changed[k] = equation.rates[k] * given[0, k]
                of_l = _paired(equation, given[1], changed)
            elif total != 0.0:
                change(dual, dual.forth, given[1], held[0], part)
                change(basis, basis.forth, given[0], held[1], part)
                for k in range(size):
                    held[0, k] *= equation.rates[k]
                of_l = _paired(equation, held[0], held[1])
                change(dual, dual.back, held[0], held[2], part)
                for k in range(size):
                    found[k] += total * held[2, k]
            else:
                of_l = 0.0
            if one:
                for p in range(gradient.size):
                    gradient[p] += factors[p] * strength * of_l
            sums[0] = found[:size]
            _turn(equation, dual, dual.forth, sums, pulled[j : j + 1])
        given[0] = all_stages[n, 0]
        _turn(equation, basis, basis.forth, given[:1], first)
        sums[0] = pulled[0]
        for i in range(stages):
            _add_scaled(work.decay[0, i], pulled[i + 1], sums[0])
            if not one and factors.any():
                _combine(
                    i, work.decay[1], work.weights[1], columns, first[0], all_slopes[n], changed
                )
                of_l = _paired(equation, pulled[i + 1], changed)
                for p in range(gradient.size):
                    gradient[p] += factors[p] * of_l
        _turn(equation, dual, dual.back, sums, given[1:])
        l[:] = given[1]
