"""One step of an exponential Runge-Kutta scheme, compiled, from its table of weights."""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..lowlevel.bits import as_bits, from_bits
from ..lowlevel.native import evaluate
from .phi import HIGHEST, phi_functions

__all__ = ["Problem", "Work", "attempt", "fastest_rate", "norm", "slope_of", "weigh"]

TRANSPORT = 0.75  # velocities that are gradients have zeros: no mode is carried at full speed


class Problem(NamedTuple):
    """du/dt = L u + N(u): the address of N, L, and how to measure u.

    N is transport with at most the speed that its evaluation leaves in `speed`: it moves modes
    of degree l at rates up to l * speed.

    `linear` is (1, modes), or (members, modes) where the members differ. For an explicit scheme
    it is (1, 1), 0, and L is `added` to N, (rows, modes); else `added` is empty. `metric` weighs
    the squared coefficients of an error, `parseval` those of a function (L2).
    """

    nonlinear: int
    context: int
    linear: np.ndarray
    added: np.ndarray
    metric: np.ndarray
    parseval: np.ndarray
    degrees: np.ndarray
    speed: np.ndarray


class Work(NamedTuple):
    """Arrays of the loop: states, slopes N, the weights and the step they hold for.

    u, slope : (2, members, modes) the state and N of it, before and after a step; front : (1,)
        says which of the two is the present one
    slopes : (s + 2, modes) N of every stage, of one member; rows below are s + 2, or s + 3 with
        a second estimate; modes below are 1 for an explicit scheme
    stage : (modes,) argument of a stage, of one member
    decay : (s + 2, rows, modes) factor of u in every stage, the solution and the estimates (0)
    weights : (s + 2, rows, slots, modes) factors of N, with `columns` : (s + 2, slots) saying of
        which stages; an even number of slots, those to spare with weight 0
    weighed_step : (1,); counts : (3,) steps accepted, rejected, weights computed
    """

    u: np.ndarray
    slope: np.ndarray
    front: np.ndarray
    slopes: np.ndarray
    stage: np.ndarray
    decay: np.ndarray
    weights: np.ndarray
    columns: np.ndarray
    weighed_step: np.ndarray
    counts: np.ndarray


@njit(cache=True, error_model="numpy")
def weigh(linear, table, step, work):
    """Compute the weights of the scheme for steps of this size."""
    nodes, decay_node, entries = table.nodes, table.decay, table.entries
    phi = np.empty((nodes.size, HIGHEST + 1), dtype=linear.dtype)
    work.weights[:] = 0
    for row in range(linear.shape[0]):
        for k in range(linear.shape[1]):
            for node in range(nodes.size):
                phi_functions(nodes[node] * step * linear[row, k], phi[node])
            for i in range(decay_node.size):
                work.decay[i, row, k] = phi[decay_node[i], 0]
            for e in range(len(entries)):
                i, slot, node, order = entries[e, 0], entries[e, 1], entries[e, 2], entries[e, 3]
                value = step * entries[e, 4] * phi[int(node), int(order)]
                work.weights[int(i), row, int(slot), k] += value
    work.weighed_step[0] = step
    work.counts[2] += 1


@njit(cache=True, error_model="numpy")
def attempt(problem, work, tail_degree, coarse_degree):
    """One step with the weights at hand, from the front of u and slope to their back.

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
    problem.speed[0] = 0
    for member in range(work.u.shape[1]):
        found, found_in_tail = _attempt_member(problem, work, member, tail_degree)
        if np.isfinite(error) and not found <= error:
            error = found
        tail_error = max(tail_error, found_in_tail)
        new = work.u[1 - work.front[0], member]
        for k in range(new.size):
            size = as_bits(new[k].real * new[k].real + new[k].imag * new[k].imag)
            tail = max(tail, size if problem.degrees[k] > tail_degree else 0)
            coarse_tail = max(coarse_tail, size if problem.degrees[k] > coarse_degree else 0)
    tails = np.sqrt(from_bits(tail)), np.sqrt(from_bits(coarse_tail))
    return error, fastest_rate(problem), *tails, tail_error


@njit(cache=True, error_model="numpy")
def fastest_rate(problem):
    """The rate that bounds a step, at the speed met last: see `attempt`."""
    return _total_rate(problem) if problem.added.size > 0 else _undamped_rate(problem)


@njit(cache=True, error_model="numpy")
def _undamped_rate(problem):
    speed, rate = problem.speed[0], 0
    for row in range(problem.linear.shape[0]):
        linear = problem.linear[row]
        for k in range(linear.size):
            rate = max(rate, as_bits(problem.degrees[k] * speed + linear[k].real))
    return from_bits(rate)


@njit(cache=True, error_model="numpy")
def _total_rate(problem):
    speed, rate = TRANSPORT * problem.speed[0], 0
    for row in range(problem.added.shape[0]):
        linear = problem.added[row]
        for k in range(linear.size):
            transport, damping = problem.degrees[k] * speed, np.abs(linear[k])
            rate = max(rate, as_bits(np.sqrt(transport * transport + damping * damping)))
    return from_bits(rate)


@njit(cache=True, error_model="numpy")
def _attempt_member(problem, work, member, tail_degree):
    """The step of one member: all its stages while its arrays are in the cache.

    Returns its relative error, and the largest one of a coefficient beyond `tail_degree`.
    """
    front, back = work.front[0], 1 - work.front[0]
    u, new, new_slope = work.u[front, member], work.u[back, member], work.slope[back, member]
    slopes, last = work.slopes, work.slopes.shape[0] - 1
    row = member if work.decay.shape[1] > 1 else 0
    slopes[0] = work.slope[front, member]
    for i in range(last - 1):
        _combine(work.stage, u, work.decay[i, row], work.weights[i, row], work.columns[i], slopes)
        slope_of(problem, member, work.stage, slopes[i + 1])
    i = last - 1
    _combine(new, u, work.decay[i, row], work.weights[i, row], work.columns[i], slopes)
    slope_of(problem, member, new, slopes[last])
    new_slope[:] = slopes[last]
    i = last
    _combine(work.stage, u, work.decay[i, row], work.weights[i, row], work.columns[i], slopes)
    size = max(norm(u, problem.metric), norm(new, problem.metric))
    error, tail = _norm_and_tail(work.stage, problem.metric, problem.degrees, tail_degree)
    share = 1.0
    if work.columns.shape[0] > last + 1:
        i = last + 1
        _combine(work.stage, u, work.decay[i, row], work.weights[i, row], work.columns[i], slopes)
        second = norm(work.stage, problem.metric)
        if error > 0:
            share = error / np.sqrt(error * error + 0.01 * second * second)
    return share * error / size, tail


@njit(cache=True)
def slope_of(problem, member, u, slope):
    """slope = N(u) for one member."""
    evaluate(problem.nonlinear, problem.context, member, u.ctypes.data, slope.ctypes.data)
    rows = problem.added.shape[0]
    if rows > 0:
        added = problem.added[member if rows > 1 else 0]
        for k in range(u.size):
            slope[k] += added[k] * u[k]


@njit(cache=True, error_model="numpy")
def _combine(target, u, decay, weights, columns, slopes):
    """target = decay u + sum_slot weights_slot slopes_{columns_slot}, two slots at a time."""
    if weights.shape[1] < target.size:
        _combine_plainly(target, u, decay[0], weights, columns, slopes)
        return
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


@njit(cache=True, error_model="numpy")
def _combine_plainly(target, u, decay, weights, columns, slopes):
    """The same with weights that all modes share."""
    for k in range(target.size):
        target[k] = decay * u[k]
    for slot in range(0, columns.size, 2):
        if columns[slot] < 0:
            return
        a, b = weights[slot, 0], weights[slot + 1, 0]
        f, g = slopes[columns[slot]], slopes[columns[slot + 1]]
        for k in range(target.size):
            target[k] += a * f[k] + b * g[k]


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _norm_and_tail(f, weights, degrees, tail_degree):
    """`norm`, and the largest |coefficient| beyond a degree."""
    total, tail = 0.0, 0
    for k in range(f.size):
        square = f[k].real * f[k].real + f[k].imag * f[k].imag
        total += weights[k] * square
        tail = max(tail, as_bits(square) if degrees[k] > tail_degree else 0)
    return np.sqrt(total), np.sqrt(from_bits(tail))


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def norm(f, weights):
    """sqrt(sum weights |f|^2), nan and inf included."""
    total = 0.0
    for k in range(f.size):
        total += weights[k] * (f[k].real * f[k].real + f[k].imag * f[k].imag)
    return np.sqrt(total)
