"""Steps of an exponential or explicit scheme, differentiated exactly, and transposed: compiled.

A step of the scheme from u, with slopes K_j = N(U_j) and U_0 = u,

    U_i = e^(c_i z) u + dt sum_j a_ij(z) K_j,    u' = e^z u + dt sum_j b_j(z) K_j,    z = dt L,

is differentiated in u, in parameters of N, and in L, by phi_j' = phi_j - j phi_(j+1). Its
transpose, with respect to the inner product of L^2, takes l' to l:

    k_j = b_j l' + sum_(i > j) a_ij l_i,    l_i = DN(U_i)* k_i,    l = e^z l' + sum_i e^(c_i z) l_i

L is M/kappa, with kappa at the beginning of a step, and what natural frequencies add to it; where
kappa changes within the step, N has the rest of M/kappa. Where M is diagonal in an eigenbasis
alone, sums of exponential schemes are taken in it, and their transposes in its `dual`.

All numbers are floats, real and imaginary parts of complex coefficients in turn, so that everything
is compiled once. Complex factors of coefficients, which frequencies make, are two rows of floats:
the real part x, and y with y_k = -Im, y_(k+1) = Im. The product with f is x_k f_k + y_k f_(k^1),
that with the conjugate x_k f_k - y_k f_(k^1). The second row is left out where all are real.
"""

from typing import Any, NamedTuple

import numpy as np

from ..lowlevel.callbacks import evaluate
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.simd import address_of
from ..steppers import Scheme
from ..steppers.attempt import HIGHEST_PHI, phi_functions
from ..steppers.dense_output import Interpolant, ParabolicInterpolant, row_of
from ..steppers.eigenbasis import COLUMN_BLOCK, NO_BASIS, Eigenbasis, change, scratch
from ..steppers.schemes import ParabolicOutput, Table

STEP = {**INNER, "error_model": "numpy"}
PHI = HIGHEST_PHI + 1  # phi functions, from phi_0 on
FAR = 4.0  # |z| within which phi_4 is a Taylor series
TERMS = 32


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
    turning : ndarray, (modes,), or 0
        What is added to M/kappa; without a basis only.
    """

    rates: np.ndarray
    basis: Eigenbasis
    dual: Eigenbasis
    parseval: np.ndarray
    turning: np.ndarray | float = 0.0

    @classmethod
    def of(
        cls,
        rates: np.ndarray,
        basis: Eigenbasis | None,
        parseval: np.ndarray,
        turning: np.ndarray | None = None,
    ) -> "Diffusion":
        if basis is None:
            added = 0.0 if turning is None else turning
            return cls(rates, NO_BASIS, NO_BASIS, parseval, added)
        return cls(rates, basis, dual_of(basis, parseval), parseval)


def dual_of(basis: Eigenbasis, parseval: np.ndarray) -> Eigenbasis:
    """The basis in which E diag E^-1 is transposed, (a, b) = sum parseval a b: E^T P, P^-1 E^-T."""
    blocks = []
    for start, end, at in zip(basis.starts[:-1], basis.starts[1:], basis.offsets, strict=True):
        mine, size = basis.order[start:end], int(end - start)
        length = -(-size // COLUMN_BLOCK) * COLUMN_BLOCK * size
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
    """The weights of a scheme for one step size, and their derivatives by L.

    decay : (2, rows, s + 1, n); weights : (2, rows, s + 1, slots, n), with n = 1 for an explicit
    scheme, else the number of floats, and two rows where they are complex; phi, turned : (nodes, 8)
    work; step : (2,) the size, and 1/kappa, that they are for.
    """

    decay: np.ndarray
    weights: np.ndarray
    phi: np.ndarray
    turned: np.ndarray
    step: np.ndarray


class Equation(NamedTuple):
    """N, its derivatives and L, for compiled code.

    nonlinear, context : of the compiled function; time, start : of its clock
    linear : (modes,) rates of M, or (1,) 0 for an explicit scheme, which has L in N
    added : the same of what is added to M/kappa
    rates : (rows, n) M on all floats; turning : (rows, n) what is added to M/kappa, or (0, n)
    explicit : whether L is in N
    moved : (p, rows, n) dL of each tangent; moves : (p,) whether it is not 0
    basis, dual : of M; modal : whether sums are taken in it
    pairing : (n,) weights of the inner product, 1 in a basis
    part : scratch memory of `change`; held : (2, n) two vectors in a basis
    """

    nonlinear: int
    context: int
    time: np.ndarray
    start: float
    linear: np.ndarray
    added: np.ndarray
    rates: np.ndarray
    turning: np.ndarray
    explicit: bool
    moved: np.ndarray
    moves: np.ndarray
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
    moved : ndarray, (p, modes)
        The derivative of L in the direction of each tangent, or by each parameter.
    start : float
        The time at which steps are counted from 0.
    """

    def __init__(
        self, scheme: Scheme, diffusion: Diffusion, transport: Any, moved, start: float = 0.0
    ):
        self.scheme, self._transport = scheme, transport  # lives as long as its address is used
        table: Table = scheme.table
        stages, size = len(scheme.nodes) + 1, diffusion.parseval.size
        basis, rates = diffusion.basis, np.array(diffusion.rates, float)
        turning, self._moved = np.zeros(rates.size) + diffusion.turning, np.asarray(moved)
        turned = np.iscomplexobj(turning) or np.iscomplexobj(self._moved)
        self._rates, self._turning, self._based = rates, turning, basis.order.size > 0
        modal, parts = self._based and not scheme.explicit, size // rates.size

        def rows_of(factors: np.ndarray) -> np.ndarray:
            """(..., modes) as (..., rows, n)."""
            real = np.repeat(factors.real, parts, axis=-1)
            if not turned:
                return real[..., None, :]
            imaginary = np.stack([-factors.imag, factors.imag], axis=-1)
            return np.stack([real, imaginary.reshape(real.shape)], axis=-2)

        self._equation = Equation(
            transport.address,
            transport.context,
            transport.time,
            float(start),
            np.zeros(1) if scheme.explicit else rates,
            np.zeros(1, complex) if scheme.explicit else turning.astype(complex),
            rows_of(rates),
            rows_of(turning)[: 2 if turning.any() else 0],
            scheme.explicit,
            np.ascontiguousarray(rows_of(self._moved)),
            np.array(self._moved.any(axis=-1)),
            basis,
            diffusion.dual,
            modal,
            np.ones(size) if self._based else np.array(diffusion.parseval, float),
            scratch(size, np.dtype(float)),
            np.empty((2, size)),
        )
        columns = np.ascontiguousarray(table.columns[:stages])
        entries = np.ascontiguousarray(table.entries[table.entries[:, 0] < stages])
        self._table = table.nodes, table.decay, entries, columns
        width = 1 if scheme.explicit else size
        rows = 2 if turned and not scheme.explicit else 1
        phi = np.zeros((table.nodes.size, 2 * PHI))
        self._weights = Weights(
            np.zeros((2, rows, stages, width)),
            np.zeros((2, rows, stages, columns.shape[1], width)),
            *(phi, phi.astype(complex)),
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
            linear = strength * self._rates + self._turning
            found = ParabolicInterpolant(dense, linear[None], first, last, by_row, dt)(part)
            if self._moved.any():
                change = _parabolic_change(dense, linear, first[0], by_row[0], dt, part)
                found[1:] += self._moved * change
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
    """The derivative by L of the state within a step, (modes,): see `ParabolicOutput`."""
    weights = row_of(dense.middle)
    first, middle, last = slopes[0], weights @ slopes[: weights.size], slopes[-1]
    derivatives = first, 4 * middle - 3 * first - last, 4 * (first + last - 2 * middle)

    def change(part: float) -> np.ndarray:
        """That of e(part)."""
        phi = np.empty((linear.size, 2 * PHI), linear.dtype)
        _phi_of_all(part * dt * linear, phi)
        total = part * dt * phi[:, 0] * u
        for j, derivative in enumerate(derivatives, start=1):
            total = total + part ** (j + 1) * dt**2 * phi[:, PHI + j] * derivative
        return total

    return change(s) - s * s * (3 - 2 * s) * change(1.0)


@njit(cache=True, error_model="numpy")
def _phi_of_all(z, phi):
    for k in range(z.size):
        _phi_and_slopes(z[k], phi[k])


@njit(**STEP)
def _phi_and_slopes(z, values):
    """phi_0, ..., phi_3, and their derivatives phi_j' = phi_j - j phi_(j+1).

    Where phi_4 is divided by a large z, by z phi_j' = phi_(j-1) - j phi_j, which is the same.
    """
    phi_functions(z, values)
    values[PHI] = values[0]
    if abs(z) >= FAR:
        for j in range(1, PHI):
            values[PHI + j] = (values[j - 1] - j * values[j]) / z
        return
    series = 1 + 0 * z  # phi_4 by its Taylor series, 4! phi_4 = 1 + z/5 (1 + z/6 (...))
    for m in range(TERMS + PHI, PHI, -1):
        series = 1 + z / m * series
    for j in range(1, PHI - 1):
        values[PHI + j] = values[j] - j * values[j + 1]
    values[2 * PHI - 1] = values[PHI - 1] - (PHI - 1) * (series / 24)


@njit(**STEP)
def _weigh(equation, nodes, decay_node, entries, dt, strength, work):
    """The weights, and their derivatives by L."""
    if work.step[0] == dt and work.step[1] == strength:
        return
    linear, added, decay = equation.linear, equation.added, work.decay
    parts = decay.shape[3] // linear.size
    for mode in range(linear.size):
        z, k = dt * (strength * linear[mode] + added[mode]), mode * parts
        if decay.shape[1] == 2:
            _weigh_mode(z, k, dt, nodes, decay_node, entries, work.turned, decay, work.weights)
        else:
            _weigh_mode(z.real, k, dt, nodes, decay_node, entries, work.phi, decay, work.weights)
            if parts == 2:
                for kind in range(2):
                    for i in range(decay.shape[2]):
                        decay[kind, 0, i, k + 1] = decay[kind, 0, i, k]
                        for slot in range(work.weights.shape[3]):
                            again = work.weights[kind, 0, i, slot, k]
                            work.weights[kind, 0, i, slot, k + 1] = again
    work.step[0], work.step[1] = dt, strength


@njit(**STEP)
def _weigh_mode(z, k, dt, nodes, decay_node, entries, phi, decay, weights):
    """Those of one mode, at the float k, or at k and k + 1 where they are complex."""
    for node in range(nodes.size):
        _phi_and_slopes(nodes[node] * z, phi[node])
    for i in range(decay.shape[2]):
        e = phi[decay_node[i], 0]
        _put(decay[0, :, i], k, e)
        _put(decay[1, :, i], k, nodes[decay_node[i]] * dt * e)
    for e in range(len(entries)):
        for kind in range(2):
            _put(weights[kind, :, int(entries[e, 0]), int(entries[e, 1])], k, 0 * z)
    for e in range(len(entries)):
        i, slot, node = int(entries[e, 0]), int(entries[e, 1]), int(entries[e, 2])
        order, factor = int(entries[e, 3]), dt * entries[e, 4]
        value, slope = weights[0, :, i, slot], weights[1, :, i, slot]
        _add(value, k, factor * phi[node, order])
        _add(slope, k, factor * nodes[node] * dt * phi[node, PHI + order])


@njit(**STEP)
def _put(rows, k, value):
    """A factor of one coefficient, in rows of floats."""
    for row in range(len(rows)):
        rows[row, k] = 0.0
        if len(rows) == 2:
            rows[row, k + 1] = 0.0
    _add(rows, k, value)


@njit(**STEP)
def _add(rows, k, value):
    rows[0, k] += value.real
    if len(rows) == 2:
        rows[0, k + 1] += value.real
        rows[1, k] -= value.imag
        rows[1, k + 1] += value.imag


@njit(**STEP)
def _add_diffused(equation, scale, u, target):
    """target += scale M u."""
    rates, held, basis, part = equation.rates, equation.held, equation.basis, equation.part
    if basis.order.size == 0:
        _add_product(scale, rates, 1.0, u, target)
        return
    change(basis, basis.forth, u, held[0], part)
    for k in range(u.size):
        held[0, k] *= scale * rates[0, k]
    change(basis, basis.back, held[0], held[1], part)
    for k in range(u.size):
        target[k] += held[1, k]


@njit(**STEP)
def _add_product(scale, rows, sign, u, target):
    """target += scale (rows) u, or by the conjugate if sign = -1."""
    for k in range(u.size):
        target[k] += scale * rows[0, k] * u[k]
    if len(rows) == 2:
        for k in range(u.size):
            target[k] += scale * sign * rows[1, k] * u[k ^ 1]


@njit(**STEP)
def _add_moved(equation, p, u, target):
    """target += dL u of a parameter or tangent."""
    held, basis, part = equation.held, equation.basis, equation.part
    if basis.order.size == 0:
        _add_product(1.0, equation.moved[p], 1.0, u, target)
        return
    change(basis, basis.forth, u, held[0], part)
    for k in range(u.size):
        held[0, k] *= equation.moved[p, 0, k]
    change(basis, basis.back, held[0], held[1], part)
    for k in range(u.size):
        target[k] += held[1, k]


@njit(cache=True, error_model="numpy")
def _slope(equation, strength, excess, t, u, slope):
    """N of the state and its tangents, and L u for an explicit scheme."""
    equation.time[0] = equation.start + t
    evaluate(equation.nonlinear, equation.context, 0, address_of(u), address_of(slope))
    total = strength + excess if equation.explicit else excess
    for row in range(len(u)):
        if total != 0.0:
            _add_diffused(equation, total, u[row], slope[row])
        if not equation.explicit:
            continue
        if len(equation.turning):
            _add_product(1.0, equation.turning, 1.0, u[row], slope[row])
        if row > 0 and equation.moves[row - 1]:
            _add_moved(equation, row - 1, u[0], slope[row])


@njit(**STEP)
def _combine(i, decay, weights, columns, u, slopes, target):
    """target = decay_i u + sum_slot weights_i,slot slopes_(columns_i,slot), two slots at once.

    decay (rows, s + 1, n) and weights (rows, s + 1, slots, n).
    """
    one = decay.shape[2] == 1
    for k in range(target.size):
        target[k] = decay[0, i, 0 if one else k] * u[k]
    for slot in range(0, columns.shape[1], 2):
        if columns[i, slot] < 0:
            break
        v, w = weights[0, i, slot], weights[0, i, slot + 1]
        f, g = slopes[columns[i, slot]], slopes[columns[i, slot + 1]]
        if one:
            a, b = v[0], w[0]
            for k in range(target.size):
                target[k] += a * f[k] + b * g[k]
        else:
            for k in range(target.size):
                target[k] += v[k] * f[k] + w[k] * g[k]
    if len(decay) == 2:
        for k in range(target.size):
            target[k] += decay[1, i, k] * u[k ^ 1]
        for slot in range(columns.shape[1]):
            if columns[i, slot] < 0:
                return
            v, f = weights[1, i, slot], slopes[columns[i, slot]]
            for k in range(target.size):
                target[k] += v[k] * f[k ^ 1]


@njit(**STEP)
def _copy(source, target):
    for row in range(source.shape[0]):
        for k in range(source.shape[1]):
            target[row, k] = source[row, k]


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
    decay, weights, moves = work.decay, work.weights, equation.moves
    scaled = not equation.explicit and moves.any()
    basis, modal = equation.basis, equation.modal
    for n in range(len(steps)):
        t, dt, strength = steps[n, 0], steps[n, 1], strengths[n]
        _weigh(equation, nodes, decay_node, entries, dt, strength, work)
        if n == 0 or excess[n - 1, stages] != 0:  # N has changed with L
            _slope(equation, strength, excess[n, 0], t, u, slope)
            _turn(equation, basis, basis.forth, slope, slopes[0])
        else:
            _copy(slopes[stages], slopes[0])
        _copy(u, before)
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
                    if moves[row - 1]:
                        target = sums[row] if modal else stage[row]
                        _add_product(1.0, equation.moved[row - 1], 1.0, changed, target)
            if modal:
                _turn(equation, basis, basis.back, sums, stage)
            at = t + nodes[decay_node[i]] * dt
            if modal:
                _slope(equation, strength, excess[n, i + 1], at, stage, slope)
                _turn(equation, basis, basis.forth, slope, slopes[i + 1])
            else:
                _slope(equation, strength, excess[n, i + 1], at, stage, slopes[i + 1])
        _copy(stage, u)


@njit(cache=True, error_model="numpy")
def _record(equation, table, work, steps, strengths, excess, all_stages, all_slopes, u):
    nodes, decay_node, entries, columns = table
    stages, basis = len(columns), equation.basis
    slope, first, sums = np.empty((1, u.size)), np.empty((1, u.size)), np.empty((1, u.size))
    for n in range(len(steps)):
        t, dt, strength = steps[n, 0], steps[n, 1], strengths[n]
        _weigh(equation, nodes, decay_node, entries, dt, strength, work)
        all_stages[n, 0] = u
        _turn(equation, basis, basis.forth, all_stages[n, :1], first)
        for i in range(stages):
            at = t if i == 0 else t + nodes[decay_node[i - 1]] * dt
            _slope(equation, strength, excess[n, i], at, all_stages[n, i : i + 1], slope)
            _turn(equation, basis, basis.forth, slope, all_slopes[n, i : i + 1])
            _combine(i, work.decay[0], work.weights[0], columns, first[0], all_slopes[n], sums[0])
            _turn(equation, basis, basis.back, sums, slope)
            if i == stages - 1:
                for k in range(u.size):
                    u[k] = slope[0, k]
            else:
                all_stages[n, i + 1] = slope[0]


@njit(**STEP)
def _add_transposed(weights, a, target):
    """target += weights* a, of rows (rows, n), with one weight or as many as there are floats."""
    if weights.shape[1] == 1:
        w = weights[0, 0]
        for k in range(target.size):
            target[k] += w * a[k]
    else:
        _add_product(1.0, weights, -1.0, a, target)


@njit(**STEP)
def _paired(equation, p, a, b):
    """<a, dL b> of real functions by their coefficients, or by those in a basis."""
    moved, total = equation.moved[p], 0.0
    for k in range(a.size):
        total += equation.pairing[k] * a[k] * moved[0, k] * b[k]
    if len(moved) == 2:
        for k in range(a.size):
            total += equation.pairing[k] * a[k] * moved[1, k] * b[k ^ 1]
    return total


@njit(cache=True, error_model="numpy")
def _pull_back(
    equation, table, work, steps, strengths, excess, all_stages, all_slopes, l, gradient
):
    nodes, decay_node, entries, columns = table
    stages, one, size = len(columns), equation.explicit, l.size
    basis, dual, moves = equation.basis, equation.dual, equation.moves
    moving = moves.any()
    pulled = np.empty((stages + 1, size))  # l_i, and l' last, in the basis
    given, first, sums = np.empty((2, size)), np.empty((1, size)), np.empty((1, size))
    found, changed = np.empty(size + gradient.size), np.empty(size)
    held, part = np.empty((3, size)), equation.part
    for n in range(len(steps) - 1, -1, -1):
        t, dt, strength = steps[n, 0], steps[n, 1], strengths[n]
        _weigh(equation, nodes, decay_node, entries, dt, strength, work)
        sums[0] = l
        _turn(equation, dual, dual.forth, sums, pulled[stages:])
        for j in range(stages - 1, -1, -1):
            sums[:] = 0
            for i in range(j, stages):  # row i makes the stage i + 1, the last one u'
                for slot in range(columns.shape[1]):
                    if columns[i, slot] == j:
                        _add_transposed(work.weights[0, :, i, slot], pulled[i + 1], sums[0])
            _turn(equation, dual, dual.back, sums, given[1:])
            given[0] = all_stages[n, j]
            at = t if j == 0 else t + nodes[decay_node[j - 1]] * dt
            equation.time[0] = equation.start + at
            evaluate(equation.nonlinear, equation.context, 0, address_of(given), address_of(found))
            for p in range(gradient.size):
                gradient[p] += found[size + p]
            total = strength + excess[n, j] if one else excess[n, j]
            if basis.order.size == 0:
                held[0], held[1] = given[1], given[0]
                if total != 0.0:
                    _add_product(total, equation.rates, -1.0, given[1], found)
                if one and len(equation.turning):
                    _add_product(1.0, equation.turning, -1.0, given[1], found)
            elif total != 0.0:
                change(dual, dual.forth, given[1], held[0], part)
                change(basis, basis.forth, given[0], held[1], part)
                for k in range(size):
                    held[2, k] = held[0, k] * equation.rates[0, k]
                change(dual, dual.back, held[2], changed, part)
                for k in range(size):
                    found[k] += total * changed[k]
            if one:
                for p in range(gradient.size):
                    if moves[p]:
                        gradient[p] += _paired(equation, p, held[0], held[1])
            sums[0] = found[:size]
            _turn(equation, dual, dual.forth, sums, pulled[j : j + 1])
        given[0] = all_stages[n, 0]
        _turn(equation, basis, basis.forth, given[:1], first)
        sums[0] = pulled[0]
        for i in range(stages):
            _add_transposed(work.decay[0, :, i], pulled[i + 1], sums[0])
            if not one and moving:
                _combine(
                    i, work.decay[1], work.weights[1], columns, first[0], all_slopes[n], changed
                )
                for p in range(gradient.size):
                    if moves[p]:
                        gradient[p] += _paired(equation, p, pulled[i + 1], changed)
        _turn(equation, dual, dual.back, sums, given[1:])
        for k in range(size):
            l[k] = given[1, k]
