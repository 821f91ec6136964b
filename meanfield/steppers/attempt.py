"""One step of an exponential Runge-Kutta scheme, compiled, from its table of weights."""

from typing import NamedTuple

import numpy as np

from ..lowlevel.callbacks import evaluate
from ..lowlevel.compilation import INLINED, INNER, WITHIN, njit
from ..lowlevel.simd import address_of, as_bits, from_bits
from .eigenbasis import Eigenbasis, change

# Explicit loops instead of slice assignments, which would compile NumPy's error messages too.
STEP = {**INNER, "error_model": "numpy"}
LEVEL = {**INLINED, "error_model": "numpy"}

TRANSPORT = 0.75  # velocities that are gradients have zeros: no mode is carried at full speed

JOURNAL = 1024  # accepted steps that are remembered until they are read
HIGHEST = 3  # order of the phi functions
_RADIUS = 4.0  # within which their recurrence cancels
_TERMS = 32
_RECIPROCAL = 1.0 / np.arange(1, _TERMS + HIGHEST + 1)


class Problem(NamedTuple):
    """du/dt = L u + N(u, t): the address of N, L, and how to measure u.

    N knows the first member by the number `first`, and those after it by the following ones. It
    is transport with at most the speed that its evaluation leaves in `speed`: it moves modes of
    degree l at rates up to l * speed.

    `linear` is (1, modes), or (members, modes) where the members differ. For an explicit scheme
    it is (1, 1), 0, and L is `added` to N, (rows, modes); else `added` is empty. `metric` weighs
    the squared coefficients of an error, `parseval` those of a function (L2). A coefficient has
    one number, or two `parts` where complex ones are pairs of floats; it is numbers that `modes`
    counts. N is asked for at the time in `time`, (1,); the clock of a run shows 0 at `start`.

    Where there is a `basis`, L is diagonal in it, with the eigenvalues `linear` or `added`, and
    the states are real.
    """

    nonlinear: int
    context: int
    first: int
    linear: np.ndarray
    added: np.ndarray
    metric: np.ndarray
    parseval: np.ndarray
    degrees: np.ndarray
    parts: int
    speed: np.ndarray
    time: np.ndarray
    start: float
    basis: Eigenbasis


class Work(NamedTuple):
    """Arrays of the loop: states, slopes N, the weights and the step they hold for.

    u, slope : (2, members, modes) the state and N of it, before and after a step; front : (1,)
        says which of the two is the present one
    slopes : (members, s + 2, modes) N of every stage, of each member where a step is kept for
        dense output; else one member after another has the place of the first. Rows below are
        s + 2, or s + 3 with a second estimate; modes below are 1 for an explicit scheme, which
        has L u in them. For others they are in the eigenbasis of L, if there is one
    stage : (modes,) argument of a stage, of one member
    modal : (2, modes) two vectors in the eigenbasis; part : scratch memory of `change`
    phi : (nodes, 4) the phi functions of one mode at the nodes of the scheme
    decay : (s + 2, rows, modes) factor of u in every stage, the solution and the estimates (0)
    weights : (s + 2, rows, slots, modes) factors of N, with `columns` : (s + 2, slots) saying of
        which stages; an even number of slots, those to spare with weight 0
    weighed_step : (1,); counts : (3,) steps accepted, rejected, weights computed
    error : (1,) relative error of the last step attempted
    journal : (JOURNAL, 2) beginning and length of every accepted step, that of count i in row
        i % JOURNAL
    """

    u: np.ndarray
    slope: np.ndarray
    front: np.ndarray
    slopes: np.ndarray
    stage: np.ndarray
    modal: np.ndarray
    part: np.ndarray
    phi: np.ndarray
    decay: np.ndarray
    weights: np.ndarray
    columns: np.ndarray
    weighed_step: np.ndarray
    counts: np.ndarray
    error: np.ndarray
    journal: np.ndarray


@njit(cache=True, error_model="numpy")
def phi_functions(z, values):
    """Write phi_0(z), ..., phi_3(z) into `values`.

        phi_0(z) = e^z,    phi_{j+1}(z) = (phi_j(z) - 1/j!) / z,    phi_j(0) = 1/j!

    For |z| >= 4 by this recurrence; below, where it cancels, phi_3 by its Taylor series and
    the others by the recurrence backwards, which does not. Relative error below 1e-14 for z
    real or complex with Re z <= 0.

    References
    ----------
    Hochbruck and Ostermann, Acta Numerica 19 (2010), equations (2.5)-(2.8).
    """
    values[0] = np.exp(z)
    if abs(z) >= _RADIUS:
        values[1] = (values[0] - 1) / z
        values[2] = (values[1] - 1) / z
        values[3] = (values[2] - 0.5) / z
        return
    series = 1 + 0 * z
    for m in range(_TERMS + HIGHEST - 1, HIGHEST - 1, -1):
        series = 1 + z * _RECIPROCAL[m] * series
    values[3] = series / 6
    values[2] = z * values[3] + 0.5
    values[1] = z * values[2] + 1


@njit(**STEP)
def weigh(linear, table, step, work):
    """Compute the weights of the scheme for steps of this size."""
    nodes, decay_node, entries = table.nodes, table.decay, table.entries
    phi, decay, weights = work.phi, work.decay, work.weights
    for row in range(linear.shape[0]):
        for k in range(linear.shape[1]):
            if k > 0 and linear[row, k] == linear[row, k - 1]:  # as in all of a degree on a sphere
                for i in range(weights.shape[0]):
                    decay[i, row, k] = decay[i, row, k - 1]
                    for slot in range(weights.shape[2]):
                        weights[i, row, slot, k] = weights[i, row, slot, k - 1]
                continue
            for node in range(nodes.size):
                phi_functions(nodes[node] * step * linear[row, k], phi[node])
            for i in range(decay_node.size):
                decay[i, row, k] = phi[decay_node[i], 0]
            for e in range(len(entries)):
                weights[int(entries[e, 0]), row, int(entries[e, 1]), k] = 0.0
            for e in range(len(entries)):
                i, slot, node, order = entries[e, 0], entries[e, 1], entries[e, 2], entries[e, 3]
                value = step * entries[e, 4] * phi[int(node), int(order)]
                weights[int(i), row, int(slot), k] += value
    work.weighed_step[0] = step
    work.counts[2] += 1


@njit(**LEVEL)
def attempt(problem, table, work, times, tail_degree, coarse_degree, keep):
    """One step with the weights at hand, from the front of u and slope to their back.

    `times` are those that the clock shows at its beginning and at its end, where N is that of
    the next step: a run that is resumed there asks for it at this time. `keep` the slopes of
    every member where the state within the step is asked for.

    Returns
    -------
    error : relative error in the norm of `metric`, nan or inf if the step failed
    rate : largest rate at which a mode is moved in excess of its damping, max (l speed + L); or
        for an explicit scheme max |i l speed / 2 + L|
    tail, coarse_tail : largest |coefficient| beyond the two degrees, after the step
    tail_error : largest error of a coefficient beyond `tail_degree`

    each the largest over the members.
    """
    error, tail_error, tail, coarse_tail = 0.0, 0.0, 0, 0
    degrees, parts = problem.degrees, problem.parts
    problem.speed[0] = 0
    for member in range(work.u.shape[1]):
        slopes = work.slopes[member if keep else 0]
        found, found_in_tail = _attempt_member(
            problem, table, work, member, slopes, times, tail_degree
        )
        if np.isfinite(error) and not found <= error:
            error = found
        tail_error = max(tail_error, found_in_tail)
        new = work.u[1 - work.front[0], member]
        tail = max(tail, _largest_beyond(tail_degree, new, degrees, parts))
        coarse_tail = max(coarse_tail, _largest_beyond(coarse_degree, new, degrees, parts))
    work.error[0] = error
    rate = fastest_rate(problem.linear, problem.added, degrees, problem.speed[0])
    return error, rate, np.sqrt(from_bits(tail)), np.sqrt(from_bits(coarse_tail)), tail_error


@njit(**LEVEL)
def _attempt_member(problem, table, work, member, slopes, times, tail_degree):
    """The step of one member: all its stages while its arrays are in the cache.

    Returns its relative error, and the largest one of a coefficient beyond `tail_degree`.
    """
    front, back = work.front[0], 1 - work.front[0]
    u, new, stage = work.u[front, member], work.u[back, member], work.stage
    old_slope, new_slope = work.slope[front, member], work.slope[back, member]
    columns, last = work.columns, slopes.shape[0] - 1
    row = member if work.decay.shape[1] > 1 else 0
    shared = work.weights.shape[3] < u.size
    basis, part, modal = problem.basis, work.part, problem.added.shape[0] == 0
    modal = modal and basis.order.size > 0
    start = work.modal[0] if modal else u
    error = tail = second = 0.0
    t, end = problem.start + times[0], problem.start + times[1]
    if modal:
        change(basis, basis.forth, u, start, part)
        change(basis, basis.forth, old_slope, slopes[0], part)
    else:
        for k in range(u.size):
            slopes[0, k] = old_slope[k]
    for i in range(columns.shape[0]):  # the stages, the solution and one or two estimates
        target = new if i == last - 1 else stage
        sums = work.modal[1] if modal else target
        if shared:
            _combine_shared(sums, u, work.decay[i, row], work.weights[i, row], columns[i], slopes)
        else:
            _combine(sums, start, work.decay[i, row], work.weights[i, row], columns[i], slopes)
        if modal:
            change(basis, basis.back, sums, target, part)
        if i < last:
            node = table.nodes[table.decay[i]]
            problem.time[0] = t + node * work.weighed_step[0] if i < last - 1 else end
            slope = new_slope if modal else slopes[i + 1]
            evaluate(
                problem.nonlinear,
                problem.context,
                problem.first + member,
                address_of(target),
                address_of(slope),
            )
            if modal:
                change(basis, basis.forth, slope, slopes[i + 1], part)
            add_linear(problem, member, target, slope, work.modal, part)
        elif i == last:
            error = norm(stage, problem.metric)
            largest = _largest_beyond(tail_degree, stage, problem.degrees, problem.parts)
            tail = np.sqrt(from_bits(largest))
        else:
            second = norm(stage, problem.metric)
    if not modal:
        for k in range(u.size):
            new_slope[k] = slopes[last, k]
    share = 1.0
    if table.joined:
        error = np.sqrt(error * error + second * second)
    elif columns.shape[0] > last + 1 and error > 0:
        share = error / np.sqrt(error * error + 0.01 * second * second)
    return share * error / max(norm(u, problem.metric), norm(new, problem.metric)), tail


@njit(**LEVEL)
def slope_of(problem, member, u, slope, modal, part):
    """slope = N(u) for one member, and L u for an explicit scheme."""
    number = problem.first + member
    evaluate(problem.nonlinear, problem.context, number, address_of(u), address_of(slope))
    add_linear(problem, member, u, slope, modal, part)


@njit(**LEVEL)
def add_linear(problem, member, u, slope, modal, part):
    """Add L u to the slope for an explicit scheme; `modal` and `part` are overwritten."""
    rows, basis = problem.added.shape[0], problem.basis
    if rows == 0:
        return
    added = problem.added[member if rows > 1 else 0]
    if basis.order.size == 0:
        for k in range(u.size):
            slope[k] += added[k] * u[k]
        return
    change(basis, basis.forth, u, modal[0], part)
    for k in range(u.size):
        modal[0, k] *= added[k]
    change(basis, basis.back, modal[0], modal[1], part)
    for k in range(u.size):
        slope[k] += modal[1, k]


@njit(cache=True, error_model="numpy")
def fastest_rate(linear, added, degrees, speed):
    """The rate that bounds a step, at the speed met last: see `attempt`."""
    rate = 0
    for row in range(added.shape[0]):
        for k in range(added.shape[1]):
            transport, damping = degrees[k] * (TRANSPORT * speed), np.abs(added[row, k])
            rate = max(rate, as_bits(np.sqrt(transport * transport + damping * damping)))
    if added.size == 0:
        for row in range(linear.shape[0]):
            for k in range(linear.shape[1]):
                rate = max(rate, as_bits(degrees[k] * speed + linear[row, k].real))
    return from_bits(rate)


@njit(**STEP)
def _combine(target, u, decay, weights, columns, slopes):
    """target = decay u + sum_slot weights_slot slopes_{columns_slot}, two slots at a time."""
    a, b = weights[0], weights[1]
    f, g = slopes[columns[0]], slopes[columns[1]]
    for k in range(target.size):
        target[k] = decay[k] * u[k] + a[k] * f[k] + b[k] * g[k]
    for slot in range(2, columns.size, 2):
        if columns[slot] < 0:
            return
        a, b = weights[slot], weights[slot + 1]
        f, g = slopes[columns[slot]], slopes[columns[slot + 1]]
        for k in range(target.size):
            target[k] += a[k] * f[k] + b[k] * g[k]


@njit(**STEP)
def _combine_shared(target, u, decay, weights, columns, slopes):
    """The same with weights that all modes share."""
    for k in range(target.size):
        target[k] = decay[0] * u[k]
    for slot in range(0, columns.size, 2):
        if columns[slot] < 0:
            return
        a, b = weights[slot, 0], weights[slot + 1, 0]
        f, g = slopes[columns[slot]], slopes[columns[slot + 1]]
        for k in range(target.size):
            target[k] += a * f[k] + b * g[k]


@njit(**STEP)
def _largest_beyond(degree, f, degrees, parts):
    """The bits of the largest |coefficient|^2 of a higher degree, nan or inf included."""
    largest = 0
    if parts == 2:
        for k in range(f.size // 2):
            x, y = f[2 * k].real, f[2 * k + 1].real
            largest = max(largest, as_bits(x * x + y * y) if degrees[2 * k] > degree else 0)
    else:
        for k in range(f.size):
            size = as_bits(f[k].real * f[k].real + f[k].imag * f[k].imag)
            largest = max(largest, size if degrees[k] > degree else 0)
    return largest


@njit(**WITHIN, error_model="numpy", fastmath={"reassoc", "contract"})
def norm(f, weights):
    """sqrt(sum weights |f|^2), nan and inf included."""
    total = 0.0
    for k in range(f.size):
        total += weights[k] * (f[k].real * f[k].real + f[k].imag * f[k].imag)
    return np.sqrt(total)
