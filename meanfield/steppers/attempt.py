"""One step of an exponential Runge-Kutta scheme, in compiled code, from its table of weights."""

import math
from typing import Any

import numpy as np

from ..lowlevel.callbacks import evaluate
from ..lowlevel.compilation import INNER, jitable, njit
from ..lowlevel.records import numbers_at
from ..lowlevel.simd import LANES, as_bits, from_bits, load, spread, sum_of
from .clock import NO_STEP
from .eigenbasis import BACK, FORTH

Row = Any  # the record of an equation, in compiled code: see `advance.EQUATION_ROW`
Number = Any  # float or complex: the type of the numbers of the states
Numbers = Any  # an array, or a pointer of `numbers_at`

# Explicit loops instead of slice assignments, which would compile NumPy's error messages too.

TRANSPORT_SPEED = 0.75  # share of the largest speed that moves modes: gradient fields have zeros

HUGE_SPEED = 1e100  # rates are scaled by larger speeds, as their squares would overflow

JOURNAL = 1024  # accepted steps that the journal of a row can store until they are read
HIGHEST_PHI = 3  # highest order of the phi functions
_RADIUS = 4.0  # for smaller |z| the recurrence of the phi functions suffers from cancellation
_TERMS = 32  # terms of their Taylor series
_RECIPROCAL = 1.0 / np.arange(1, _TERMS + HIGHEST_PHI + 2)

EQUATION_FIELDS = {
    "nonlinear": int,  # address of the function N: void N(context, member, source, target)
    "context": int,  # the first argument of N
    "first": int,  # the number of the first member as an argument of N; the others follow
    "speed": int,  # address of the largest speed in evaluations of N, which rows may share
    "kept_speed": int,  # address of the copy of this speed that belongs to the row
    "time": int,  # address of the time at which N is evaluated
    "origin": float,  # the time at which the clock shows 0
    "linear": int,  # L in the exponentials, (linear_rows, linear_modes)
    "linear_rows": int,
    "linear_modes": int,  # 1 for an explicit scheme, which has L = 0 in the exponentials
    "added": int,  # L that an explicit scheme adds to N, (added_rows, modes)
    "added_rows": int,  # 0 for exponential schemes
    "change": int,  # address of the function that changes to the eigenbasis of L; 0: L is diagonal
    "basis": int,  # the first argument of this function
    "members": int,
    "modes": int,  # numbers of a state
    "floats": int,  # floats of a state: modes, or twice as many if the numbers are complex
    "size": int,  # bytes of a state
    "width": int,  # floats of a coefficient: 1 if real, 2 if complex
    "metric": int,  # weights of squared coefficients in the norm of errors, one for each float
    "parseval": int,  # weights of squared coefficients in the L2 norm, one for each float
    "degrees": int,  # degrees of the coefficients, one for each float
}
SCHEME_FIELDS = {
    "last": int,  # index of the row of the error estimate, the first one after the solution
    "rows": int,  # rows of the table: stages, the solution, one or two estimates
    "slots": int,  # most weights of a row
    "columns": int,  # (rows, slots) the stages that weights refer to
    "nodes": int,  # (node_count,)
    "node_count": int,
    "decay_nodes": int,  # (last,) index of the node in the factor e^(node z) of u, for each row
    "entries": int,  # (entry_count, 5) summands of the weights
    "entry_count": int,
    "stability": float,
    "joined": int,  # whether the error is the root of the sum of both squares, see `Scheme`
}
MEMORY_FIELDS = {
    "u": int,  # (2, members, modes) the state before and after a step
    "slope": int,  # (2, members, modes) N of these states
    "front": int,  # index, 0 or 1, of the present state and slope
    "slopes": int,  # (members, last + 1, modes) N of every stage; modal for an exponential scheme
    "stage": int,  # (modes,) the argument of a stage
    "modal": int,  # (2, modes) two vectors in the eigenbasis
    "phi": int,  # (node_count, 4) phi functions at the nodes
    "derived": int,  # whether decay and weights are derivatives by L
    "decay": int,  # (rows, linear_rows, linear_modes) factors of u
    "weights": int,  # (rows, linear_rows, slots, linear_modes) factors of N
    "weighed_step": float,  # the step size for which the weights were computed
    "journal": int,  # (JOURNAL, 2) beginning and length of accepted steps
    "clock": int,  # (7,) the present clock
    "before": int,  # (7,) the clock at the beginning of the last step
    "accepted": int,  # number of accepted steps
    "rejected": int,  # number of rejected steps
    "weighed": int,  # number of times that weights were computed
    "error": float,  # relative error of the last step attempted
}


@njit(**INNER)
def phi_functions(z: Number, values: Numbers) -> None:
    """Write phi_0(z), ..., phi_3(z) into `values`.

        phi_0(z) = e^z,    phi_{j+1}(z) = (phi_j(z) - 1/j!) / z,    phi_j(0) = 1/j!

    For |z| >= 4 by this recurrence. For smaller |z| it suffers from cancellation: there phi_3 by
    its Taylor series, phi_2 and phi_1 by the backward recurrence. Relative error below 1e-14 for
    real or complex z with Re z <= 0.

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
    for m in range(_TERMS + HIGHEST_PHI - 1, HIGHEST_PHI - 1, -1):
        series = 1 + z * _RECIPROCAL[m] * series
    values[3] = series / 6
    values[2] = z * values[3] + 0.5
    values[1] = z * values[2] + 1


@njit(**INNER)
def phi_slopes(z: Number, values: Numbers, factor: float) -> None:
    """Replace phi_0(z), ..., phi_3(z) by factor * phi_j'(z), phi_j' = phi_j - j phi_(j+1).

    For |z| >= 4 by the equivalent formula z phi_j' = phi_(j-1) - j phi_j, j >= 1.
    """
    if abs(z) >= _RADIUS:
        for j in range(HIGHEST_PHI, 0, -1):
            values[j] = factor * ((values[j - 1] - j * values[j]) / z)
    else:
        series = 1 + 0 * z  # phi_4 by its Taylor series, 4! phi_4 = 1 + z/5 (1 + z/6 (...))
        for m in range(_TERMS + HIGHEST_PHI, HIGHEST_PHI, -1):
            series = 1 + z * _RECIPROCAL[m] * series
        for j in range(1, HIGHEST_PHI):
            values[j] = factor * (values[j] - j * values[j + 1])
        values[HIGHEST_PHI] = factor * (values[HIGHEST_PHI] - HIGHEST_PHI * (series / 24))
    values[0] = factor * values[0]


@njit(**INNER)
def weigh(row: Row, step: float, zero: Number) -> None:
    """Compute decay factors and weights of the scheme for a step size, or derivatives by L."""
    modes, rows, slots = row.linear_modes, row.rows, row.slots
    linear, phi = numbers_at(row.linear, 0, zero), numbers_at(row.phi, 0, zero)
    decay, weights = numbers_at(row.decay, 0, zero), numbers_at(row.weights, 0, zero)
    nodes, decay_nodes = numbers_at(row.nodes, 0, 0.0), numbers_at(row.decay_nodes, 0, 0)
    entries, of_row, of_stage = numbers_at(row.entries, 0, 0.0), slots * modes, row.linear_rows
    for member in range(row.linear_rows):
        for k in range(modes):
            entry = member * modes + k
            z = linear[entry]
            if k == 0 or z != linear[entry - 1]:  # real and imaginary parts have the same z
                for node in range(row.node_count):
                    values = numbers_at(row.phi, node * (HIGHEST_PHI + 1), zero)
                    phi_functions(nodes[node] * step * z, values)
                    if row.derived:
                        phi_slopes(nodes[node] * step * z, values, nodes[node] * step)
            for i in range(row.last):
                decay[i * of_stage * modes + entry] = phi[decay_nodes[i] * (HIGHEST_PHI + 1)]
            for i in range(rows):
                for slot in range(slots):
                    weights[(i * of_stage + member) * of_row + slot * modes + k] = 0.0
            for e in range(row.entry_count):
                i, slot = int(entries[5 * e]), int(entries[5 * e + 1])
                index = int(entries[5 * e + 2]) * (HIGHEST_PHI + 1) + int(entries[5 * e + 3])
                target = (i * of_stage + member) * of_row + slot * modes + k
                weights[target] += step * entries[5 * e + 4] * phi[index]
    row.weighed_step = step
    row.weighed += 1


@njit(**INNER)
def attempt(
    row: Row,
    elapsed: float,
    end: float,
    keeps_slopes: bool,
    zero: Number,
) -> tuple[float, float, float, float, float]:
    """Try one step with the present weights, from index `front` of u and slope to the other one.

    The clock shows `elapsed` at the beginning of the step and `end` at its end. N(u') is evaluated
    at the time of `end`, as for a run that is resumed there. With `keeps_slopes` those of all
    members are stored, for the state within the step. `zero` has the type of the numbers of states.

    Returns
    -------
    error : relative error in the norm of `metric`, nan or inf if the step failed
    rate : the rate that bounds the step size: max (l speed + Re L) over modes of degree l; for an
        explicit scheme max |i l TRANSPORT_SPEED speed + L|
    tail, coarse_tail : largest |coefficient| in the tails of the two degrees, after the step
    tail_error : largest error of a coefficient beyond `tail_degree`

    Each is the largest over the members.
    """
    error, tail_error, tail, coarse_tail = 0.0, 0.0, 0, 0
    speed, spare = numbers_at(row.speed, 0, 0.0), (1 - row.front) * row.members
    speed[0] = 0.0
    for member in range(row.members):
        slopes = row.slopes + (member * (row.last + 1) * row.size if keeps_slopes else 0)
        of_member, in_tail = _attempt_member(row, member, slopes, elapsed, end, zero)
        if math.isfinite(error) and not of_member <= error:
            error = of_member
        tail_error = in_tail if in_tail > tail_error else tail_error
        new = row.u + (spare + member) * row.size
        size = _tail_of(row, row.tail, row.tail_degree, row.degree, new)
        tail = size if size > tail else tail
        size = _tail_of(row, row.coarse_tail, row.coarse_degree, row.fewer, new)
        coarse_tail = size if size > coarse_tail else coarse_tail
    row.error = error
    rate = fastest_rate(row, speed[0], zero)
    return error, rate, math.sqrt(from_bits(tail)), math.sqrt(from_bits(coarse_tail)), tail_error


@njit(**INNER)
def _attempt_member(
    row: Row, member: int, slopes: int, elapsed: float, end: float, zero: Number
) -> tuple[float, float]:
    """Try the step of one member: all its stages while its arrays are in the cache.

    `slopes` is the address of the memory for N of its stages. Returns the relative error, and the
    largest error of a coefficient beyond `tail_degree`.
    """
    modes, size, last, slots = row.modes, row.size, row.last, row.slots
    front = (row.front * row.members + member) * size
    back = ((1 - row.front) * row.members + member) * size
    u, new, old_slope, new_slope = row.u + front, row.u + back, row.slope + front, row.slope + back
    of_member = member if row.linear_rows > 1 else 0
    is_modal, start = row.change != 0 and row.added_rows == 0, u
    nodes, decay_nodes = numbers_at(row.nodes, 0, 0.0), numbers_at(row.decay_nodes, 0, 0)
    time, of_row = numbers_at(row.time, 0, 0.0), slots * row.linear_modes
    error = tail = second_error = 0.0
    t, end = row.origin + elapsed, row.origin + end
    if is_modal:
        start = row.modal
        evaluate(row.change, row.basis, FORTH, u, start)
        evaluate(row.change, row.basis, FORTH, old_slope, slopes)
    else:
        copy(modes, old_slope, slopes, zero)
    for i in range(row.rows):  # the stages, the solution and one or two estimates
        target = new if i == last - 1 else row.stage
        sums = row.modal + size if is_modal else target
        of_step = i * row.linear_rows + of_member
        decay, weights = of_step * row.linear_modes, of_step * of_row
        combine(row, sums, start, decay, weights, i * slots, slopes, zero)
        if is_modal:
            evaluate(row.change, row.basis, BACK, sums, target)
        if i < last:
            time[0] = t + nodes[decay_nodes[i]] * row.weighed_step if i < last - 1 else end
            slope = new_slope if is_modal else slopes + (i + 1) * size
            slope_of(row, member, target, slope, zero)
            if is_modal:
                evaluate(row.change, row.basis, FORTH, slope, slopes + (i + 1) * size)
        elif i == last:
            error = norm(row, row.stage, row.metric)
            tail = math.sqrt(from_bits(_largest_beyond(row, row.tail_degree, row.stage)))
        else:
            second_error = norm(row, row.stage, row.metric)
    if not is_modal:
        copy(modes, slopes + last * size, new_slope, zero)
    if row.joined:
        error = math.sqrt(error * error + second_error * second_error)
    elif row.rows > last + 1:
        error = embedded_error(error, second_error)
    old_size, new_size = norm(row, u, row.metric), norm(row, new, row.metric)
    return error / (new_size if new_size > old_size else old_size), tail


@jitable
def embedded_error(first: Any, second: Any) -> Any:
    """Error of DOP853, E5^2 / sqrt(E5^2 + E3^2 / 100), from E5 and E3: numbers or arrays."""
    return first * (first / np.maximum(np.hypot(first, 0.1 * second), NO_STEP))


@njit(**INNER)
def copy(count: int, source: int, target: int, zero: Number) -> None:
    """Copy `count` numbers from one address to another."""
    f, g = numbers_at(source, 0, zero), numbers_at(target, 0, zero)
    for k in range(count):
        g[k] = f[k]


@njit(**INNER)
def combine(
    row: Row, target: int, u: int, decay: int, weights: int, columns: int, slopes: int, zero: Number
) -> None:
    """Compute target = decay u + sum_slot weights_slot slopes_{columns_slot}, two slots at a time.

    `target`, `u` and `slopes` are addresses; `decay`, `weights` and `columns` are the indices of
    the first factor, the first weight and the first column.
    """
    modes, slots, step = row.modes, row.slots, row.linear_modes
    f, g = numbers_at(target, 0, zero), numbers_at(u, 0, zero)
    factors, stages = numbers_at(row.decay, decay, zero), numbers_at(row.columns, columns, 0)
    uniform = step < modes  # all modes have the same weights
    if uniform:
        for k in range(modes):
            f[k] = factors[0] * g[k]
    for slot in range(0, slots, 2):
        if stages[slot] < 0:
            return
        a = numbers_at(row.weights, weights + slot * step, zero)
        b = numbers_at(row.weights, weights + (slot + 1) * step, zero)
        p = numbers_at(slopes, stages[slot] * modes, zero)
        q = numbers_at(slopes, stages[slot + 1] * modes, zero)
        if uniform:
            first, second = a[0], b[0]
            for k in range(modes):
                f[k] += first * p[k] + second * q[k]
        elif slot == 0:
            for k in range(modes):
                f[k] = factors[k] * g[k] + a[k] * p[k] + b[k] * q[k]
        else:
            for k in range(modes):
                f[k] += a[k] * p[k] + b[k] * q[k]


@njit(**INNER)
def slope_of(row: Row, member: int, u: int, slope: int, zero: Number) -> None:
    """Compute slope = N(u) for one member, plus L u for an explicit scheme.

    `u` and `slope` are addresses.
    """
    evaluate(row.nonlinear, row.context, row.first + member, u, slope)
    if row.added_rows > 0:
        add_product(row, row.added, member if row.added_rows > 1 else 0, u, slope, zero)


@njit(**INNER)
def add_product(row: Row, linear: int, of_member: int, u: int, total: int, zero: Number) -> None:
    """Add L u to the numbers at the address `total`; L is diagonal, in the eigenbasis if any.

    `linear` is the address of the diagonals (rows, modes), `of_member` the index of the row.
    """
    modes, product = row.modes, row.modal + row.size
    rates, f = numbers_at(linear, of_member * modes, zero), numbers_at(total, 0, zero)
    if row.change == 0:
        g = numbers_at(u, 0, zero)
        for k in range(modes):
            f[k] += rates[k] * g[k]
        return
    evaluate(row.change, row.basis, FORTH, u, row.modal)
    g, h = numbers_at(row.modal, 0, zero), numbers_at(product, 0, zero)
    for k in range(modes):
        g[k] *= rates[k]
    evaluate(row.change, row.basis, BACK, row.modal, product)
    for k in range(modes):
        f[k] += h[k]


@njit(**INNER)
def fastest_rate(row: Row, speed: float, zero: Number) -> float:
    """The rate that bounds the step size, at the given speed: see `attempt`."""
    largest, modes, per_number = 0, row.modes, row.floats // row.modes
    degrees = numbers_at(row.degrees, 0, 0)
    if row.added_rows > 0:
        added = numbers_at(row.added, 0, zero)
        unit = speed if speed > HUGE_SPEED else 1.0  # squares of larger rates would overflow
        for member in range(row.added_rows):
            for k in range(modes):
                transport = degrees[k * per_number] * (TRANSPORT_SPEED * speed / unit)
                damping = abs(added[member * modes + k]) / unit
                rate = as_bits(math.sqrt(transport * transport + damping * damping))
                largest = rate if rate > largest else largest
        return unit * from_bits(largest)
    linear = numbers_at(row.linear, 0, zero)
    for member in range(row.linear_rows):
        for k in range(modes):
            rate = as_bits(degrees[k * per_number] * speed + linear[member * modes + k].real)
            largest = rate if rate > largest else largest
    return from_bits(largest)


@njit(**INNER)
def _largest_beyond(row: Row, degree: float, f: int) -> int:
    """The bits of the largest |coefficient|^2 of a degree above `degree`; nan and inf count."""
    largest, values, degrees = 0, numbers_at(f, 0, 0.0), numbers_at(row.degrees, 0, 0)
    if row.width == 2:
        for k in range(row.floats // 2):
            x, y = values[2 * k], values[2 * k + 1]
            square = as_bits(x * x + y * y) if degrees[2 * k] > degree else 0
            largest = square if square > largest else largest
    else:
        for k in range(row.floats):
            square = as_bits(values[k] * values[k]) if degrees[k] > degree else 0
            largest = square if square > largest else largest
    return largest


@njit(**INNER)
def _tail_of(row: Row, limit: float, start: float, degree: float, f: int) -> int:
    """The bits of the largest |coefficient|^2 in the tail of the degrees up to `degree`.

    The tail begins beyond `start`. It is at least as long as the largest distance of neighbouring
    degrees with coefficients above `limit`: a density whose harmonics are multiples of n has small
    coefficients between them, resolved or not. `stage` is overwritten.
    """
    largest = _largest_beyond(row, start, f)
    if math.isinf(degree) or not math.sqrt(from_bits(largest)) <= limit:
        return largest
    values, degrees = numbers_at(f, 0, 0.0), numbers_at(row.degrees, 0, 0)
    is_large, width, top, square = numbers_at(row.stage, 0, 0.0), row.width, 0, limit * limit
    for k in range(row.floats):
        is_large[k] = 0.0
    for k in range(0, row.floats, width):
        x, y = values[k], values[k + width - 1] if width == 2 else 0.0
        if x * x + y * y > square:
            is_large[degrees[k]] = 1.0
            top = degrees[k] if degrees[k] > top else top
    last = distance = 0
    for l in range(top + 1):
        if is_large[l] > 0:
            distance = l - last if l - last > distance else distance
            last = l
    return largest if top <= degree - distance else _largest_beyond(row, degree - distance, f)


@njit(**INNER)
def norm(row: Row, f: int, weights: int) -> float:
    """Norm sqrt(sum weights |f|^2) of a state at the address f, in eight partial sums.

    `weights` is the address of the weights, one for each float. The norm is nan or inf if f has
    such numbers.
    """
    values, factors, count = numbers_at(f, 0, 0.0), numbers_at(weights, 0, 0.0), row.floats
    blocks, sums = count // LANES * LANES, spread(0.0)
    for k in range(0, blocks, LANES):
        x = load(f + 8 * k)
        sums = sums + load(weights + 8 * k) * (x * x)
    total = sum_of(sums)
    for k in range(blocks, count):
        total += factors[k] * (values[k] * values[k])
    return math.sqrt(total)
