"""One step of an exponential Runge-Kutta scheme, compiled, from its table of weights."""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..native import call
from .phi import HIGHEST, phi_functions

__all__ = ["Problem", "Work", "attempt", "evaluate", "norm", "weigh"]


class Problem(NamedTuple):
    """du/dt = L u + N(u): the address of N, L, and how to measure u.

    `linear` is (1, modes), or (members, modes) where the members differ; `metric` weighs the
    squared coefficients of an error, `parseval` those of a function (L2).
    """

    nonlinear: int
    context: int
    linear: np.ndarray
    metric: np.ndarray
    parseval: np.ndarray
    degrees: np.ndarray


class Work(NamedTuple):
    """Arrays of the loop: the state, N of every stage, the weights and the step they hold for.

    u, new, stage : (members, modes); slopes : (s + 2, members, modes)
    decay : (s + 1, rows, modes); weights : (s + 2, s + 2, rows, modes); used : (s + 2, s + 2)
    weighed_step : (1,); counts : (3,) steps accepted, rejected, weights computed
    """

    u: np.ndarray
    new: np.ndarray
    stage: np.ndarray
    slopes: np.ndarray
    decay: np.ndarray
    weights: np.ndarray
    used: np.ndarray
    weighed_step: np.ndarray
    counts: np.ndarray


@njit(cache=True, error_model="numpy")
def weigh(linear, table, step, work):
    """Compute the weights of the scheme for steps of this size."""
    nodes, decay_node, entries = table
    phi = np.empty((nodes.size, HIGHEST + 1), dtype=linear.dtype)
    work.weights[:] = 0
    for row in range(linear.shape[0]):
        for k in range(linear.shape[1]):
            for node in range(nodes.size):
                phi_functions(nodes[node] * step * linear[row, k], phi[node])
            for i in range(decay_node.size):
                work.decay[i, row, k] = phi[decay_node[i], 0]
            for e in range(len(entries)):
                i, j, node, order = entries[e, 0], entries[e, 1], entries[e, 2], entries[e, 3]
                value = step * entries[e, 4] * phi[int(node), int(order)]
                work.weights[int(i), int(j), row, k] += value
    work.weighed_step[0] = step
    work.counts[2] += 1


@njit(cache=True, error_model="numpy")
def attempt(problem, work):
    """Step from work.u to work.new with the weights at hand; returns the relative error.

    slopes[0] holds N(u) on entry; on return the last row of slopes holds N(new). The error is
    the largest over the members, in the norm of `metric`; nan or inf if the step failed.
    """
    last = work.slopes.shape[0] - 1
    for i in range(last - 1):
        _combine(work.stage, i, work, True)
        evaluate(problem, work.stage, work.slopes[i + 1])
    _combine(work.new, last - 1, work, True)
    evaluate(problem, work.new, work.slopes[last])
    _combine(work.stage, last, work, False)
    worst = 0.0
    for member in range(work.u.shape[0]):
        size = max(norm(work.u[member], problem.metric), norm(work.new[member], problem.metric))
        relative = norm(work.stage[member], problem.metric) / size
        if not relative <= worst:
            worst = relative
    return worst


@njit(cache=True)
def evaluate(problem, u, slope):
    call(problem.nonlinear, problem.context, u.ctypes.data, slope.ctypes.data)


@njit(cache=True, error_model="numpy")
def _combine(result, i, work, from_state):
    """result = decay_i u + sum_j weights_ij slopes_j, without the first term for the error."""
    rows = work.weights.shape[2]
    for member in range(result.shape[0]):
        row = member if rows > 1 else 0
        target, u = result[member], work.u[member]
        if from_state:
            decay = work.decay[i, row]
            for k in range(target.size):
                target[k] = decay[k] * u[k]
        else:
            target[:] = 0
        for j in range(work.used.shape[1]):
            if work.used[i, j]:
                weight, slope = work.weights[i, j, row], work.slopes[j, member]
                for k in range(target.size):
                    target[k] += weight[k] * slope[k]


@njit(cache=True, error_model="numpy")
def norm(f, weights):
    """sqrt(sum weights |f|^2)."""
    total = 0.0
    for k in range(f.size):
        total += weights[k] * (f[k] * np.conj(f[k])).real
    return np.sqrt(total)
