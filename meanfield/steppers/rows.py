"""Equations of the same size side by side, each with a clock and steps of its own, in one call.

Every array of the loop has an axis of rows in front: the memory of a row lies together, and
`advance` sees it as if it were alone.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..lowlevel.callbacks import float_array
from ..lowlevel.compilation import njit
from .advance import Rules, advance, rate_of_change
from .attempt import HIGHEST, JOURNAL, LEVEL, Problem, Work, slope_of
from .clock import Clock
from .eigenbasis import NO_BASIS, Eigenbasis, scratch
from .schemes import Scheme, Table


class Nonlinear(Protocol):
    """N, as the loop calls it: see `spaces.contract.Transport`."""

    address: int
    context: int
    speed: np.ndarray
    time: np.ndarray

    def check(self) -> None: ...


class Rows:
    """Memory for equations du/dt = L u + N(u, t) of (members, modes), and for their steps.

    Parameters
    ----------
    scheme : Scheme
    linear : ndarray, (1 or members, modes)
        L of any of the rows, for its shape and its dtype.
    shape : (int, int)
        Of the states: members, which share their steps, and modes.
    dtype : numpy dtype
        Of the states.
    count : int
        How many rows.
    metric, parseval, degrees, start, basis
        As for `Stepper`, the same in all rows.
    speeds : ndarray, (count,), optional
        Where the largest speeds are kept that N has met in each row; rows for other schemes may
        have them in common.

    Attributes
    ----------
    linear : ndarray, (count, 1 or members, numbers)
        L of each row, in the numbers of the loop.
    problem : Problem
        What the rows have in common; L and N are those of the first.
    work : Work
        With an axis of rows in front; only `columns` has none.
    rates : ndarray, (count,)
        The largest L2 norm of du/dt in each row, where it is known; else nan.
    """

    def __init__(
        self,
        scheme: Scheme,
        linear: np.ndarray,
        shape: tuple[int, int],
        dtype: Any,
        *,
        count: int = 1,
        metric: np.ndarray | None = None,
        parseval: np.ndarray | None = None,
        degrees: np.ndarray | None = None,
        start: float = 0.0,
        basis: Eigenbasis | None = None,
        speeds: np.ndarray | None = None,
    ):
        self.scheme, self.table, self.dtype = scheme, scheme.table, np.dtype(dtype)
        # Complex states are pairs of floats to the loop where L is real: it is compiled once.
        modes, inner = shape[1], self.dtype if np.iscomplexobj(linear) else np.dtype(float)
        parts = self.dtype.itemsize // inner.itemsize  # numbers that the loop has for one
        self._repeats = parts if basis is None else 1  # of an eigenvalue of L
        self.linear = np.zeros((count, *self.inside(linear).shape), linear.dtype)
        self._split = as_taken(scheme, self.linear)
        self.problem = Problem(
            *(0, 0, 0, self._split[0][0], self._split[1][0]),
            np.repeat(np.ones(modes) if metric is None else metric, parts).astype(float),
            np.repeat(np.ones(modes) if parseval is None else parseval, parts).astype(float),
            np.repeat(np.arange(modes) if degrees is None else degrees, parts).astype(np.int64),
            parts,
            *(np.zeros(1), np.zeros(1), float(start)),
            NO_BASIS if basis is None else basis,
        )
        inside = (shape[0], parts * modes)
        self.work = _work(self.table, self.problem.linear, inside, inner, count)
        self.speeds = np.zeros(count) if speeds is None else speeds
        self.rates = np.full(count, np.nan)
        self._places = np.zeros((count, 5), dtype=np.int64)
        self._equations = self._places, *self._split, self.speeds
        self._errands, self._found = np.zeros((count, 17)), np.zeros((count, 15))

    def inside(self, linear: np.ndarray) -> np.ndarray:
        """The diagonal of L, (..., modes), for the numbers of the loop."""
        return np.repeat(linear, self._repeats, axis=-1)

    def enter(self, row: int, linear: np.ndarray, nonlinear: Nonlinear, number: int) -> None:
        """Let a row have these L and N, which knows its first member by a number."""
        self.linear[row] = self.inside(linear)
        at = nonlinear.speed.ctypes.data, nonlinear.time.ctypes.data
        self._places[row] = nonlinear.address, nonlinear.context, number, *at

    def again(self, row: int) -> "Rows":
        """One row like that one, in memory of its own, with zeros for states."""
        other, own = object.__new__(type(self)), slice(row, row + 1)
        vars(other).update(vars(self))
        other.linear, other._places = self.linear[own], self._places[own]
        other._split = self._split[0][own], self._split[1][own]
        u = self.work.u
        other.work = _work(self.table, self.problem.linear, u.shape[2:], u.dtype, 1)
        other.speeds, other.rates = self.speeds[own].copy(), np.full(1, np.nan)
        other._equations = other._places, *other._split, other.speeds
        other._errands, other._found = np.zeros((1, 17)), np.zeros((1, 15))
        return other

    def problem_of(self, row: int) -> Problem:
        """The equation of a row, where N is not asked for."""
        return self.problem._replace(linear=self._split[0][row], added=self._split[1][row])

    def work_of(self, row: int) -> Work:
        """The arrays of a row."""
        own = [array[row] for array in self.work if array is not self.work.columns]
        own.insert(Work._fields.index("columns"), self.work.columns)
        return Work(*own)

    def slopes(self, which: np.ndarray, u: np.ndarray, elapsed: float) -> np.ndarray:
        """N of states (n, members, modes) in the numbers of the loop, one for each row of `which`.

        With L u in it, for an explicit scheme.
        """
        slopes = np.empty_like(u)
        _slopes(self.problem, self.work, *self._equations, which, u, elapsed, slopes)
        return slopes

    def begin(self, which: np.ndarray, states: np.ndarray, elapsed: float) -> None:
        """Put rows at these states (n, members, modes), when their clocks show `elapsed`."""
        inner = self.work.u
        given = np.array(states, dtype=self.dtype, order="C").view(inner.dtype)
        u, fronts = given.reshape(which.size, *inner.shape[2:]), self.work.front[which, 0]
        self.work.u[which, fronts] = u
        self.work.slope[which, fronts] = self.slopes(which, u, elapsed)
        self.rates[which] = np.nan

    def growths(self, which: np.ndarray, way: float, elapsed: float) -> np.ndarray:
        """How fast N changes along du/dt, relative: from the present state so far along, by norms.

        In the norm of errors; in each row the largest over the members, moved by `way` at most.
        """
        basis, metric, fronts = self.problem.basis, self.problem.metric, self.work.front[which, 0]
        u, slope = self.work.u[which, fronts], self.work.slope[which, fronts]
        modal = self._split[0][which] * basis.into(u.reshape(-1, u.shape[-1])).reshape(u.shape)
        rates = basis.out_of(modal.reshape(-1, u.shape[-1])).reshape(u.shape) + slope
        moved = u + (way / self.rates_of_change(which, metric))[:, None, None] * rates
        change = self.slopes(which, moved, elapsed) - slope
        return np.sqrt((metric * np.abs(change) ** 2).sum(axis=2).max(axis=1)) / way

    def rates_of_change(self, which: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The largest norm of du/dt over the members, in each row, at its present state."""
        rates = np.empty(which.size)
        _rates(self.problem, self.work, *self._equations, which, weights, rates)
        return rates

    def advance(
        self, which: Sequence[int], errands: Sequence[tuple], start: float | None = None
    ) -> list[np.ndarray]:
        """Move rows, one after another; of each: its clock, that a step before, why it came back.

        What a row is to do is told by its clock, its rules, and `target`, `output` and `limit` of
        `advance.advance`. Where there is a `start`, the clocks show 0 there.
        """
        for row, errand in zip(which, errands, strict=True):
            self._errands[row] = errand
        problem = self.problem if start is None else self.problem._replace(start=start)
        told = self._errands, np.array(which), self.rates, self._found
        _advance(problem, self.table, self.work, *self._equations, *told)
        return [self._found[row] for row in which]


def as_taken(scheme: Scheme, linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L of all rows as a scheme takes it: in the exponentials, and added to N."""
    count, modes = len(linear), linear.shape[2]
    if scheme.explicit:
        return np.zeros((count, 1, 1), linear.dtype), linear
    return linear, np.zeros((count, 0, modes), linear.dtype)


def _work(table: Table, linear: np.ndarray, shape: tuple, dtype: Any, count: int) -> Work:
    """That of all rows, whose L has the shape of `linear`."""
    rows, slots = table.columns.shape
    members, modes = shape

    def zeros(*axes: int, kind: Any = dtype) -> np.ndarray:
        return np.zeros((count, *axes), dtype=kind)

    return Work(
        u=zeros(2, *shape),
        slope=zeros(2, *shape),
        front=zeros(1, kind=np.int64),
        slopes=zeros(members, table.decay.size + 1, modes),
        stage=zeros(modes),
        modal=zeros(2, modes),
        part=zeros(*scratch(modes, dtype).shape),
        phi=zeros(table.nodes.size, HIGHEST + 1, kind=linear.dtype),
        decay=zeros(rows, *linear.shape, kind=linear.dtype),
        weights=zeros(rows, len(linear), slots, linear.shape[1], kind=linear.dtype),
        columns=table.columns,
        weighed_step=np.full((count, 1), np.nan),
        counts=zeros(3, kind=np.int64),
        error=zeros(1, kind=float),
        journal=zeros(JOURNAL, 2, kind=float),
    )


# Compiled --------------------------------------------------------------------------------------


@njit(**LEVEL)
def _row_of(work, row):
    return Work(
        work.u[row],
        work.slope[row],
        work.front[row],
        work.slopes[row],
        work.stage[row],
        work.modal[row],
        work.part[row],
        work.phi[row],
        work.decay[row],
        work.weights[row],
        work.columns,
        work.weighed_step[row],
        work.counts[row],
        work.error[row],
        work.journal[row],
    )


@njit(**LEVEL)
def _problem_of(problem, places, linear, added, speeds, row):
    speed = float_array(places[row, 3], (1,))
    speed[0] = speeds[row]
    return Problem(
        places[row, 0],
        places[row, 1],
        places[row, 2],
        linear[row],
        added[row],
        problem.metric,
        problem.parseval,
        problem.degrees,
        problem.parts,
        speed,
        float_array(places[row, 4], (1,)),
        problem.start,
        problem.basis,
    )


@njit(cache=True, error_model="numpy", nogil=True)
def _advance(problem, table, work, places, linear, added, speeds, errands, which, rates, found):
    for row in which:
        own = _problem_of(problem, places, linear, added, speeds, row)
        mine, errand, result = _row_of(work, row), errands[row], found[row]
        clock, rules = _clock(errand[:7]), _rules(errand[7:14])
        target, output, limit = errand[14], errand[15], min(int(errand[16]), JOURNAL)
        code, clock, before = advance(own, table, mine, clock, rules, target, output, limit)
        front = mine.front[0]
        rates[row] = np.nan
        if mine.u.shape[1] == 1:
            rates[row] = rate_of_change(own, mine.u[front], mine.slope[front], mine, own.parseval)
        speeds[row] = own.speed[0]
        _write(clock, result[:7])
        _write(before, result[7:14])
        result[14] = code


@njit(**LEVEL)
def _clock(v):
    return Clock(v[0], v[1], v[2], int(v[3]), int(v[4]), v[5], v[6])


@njit(**LEVEL)
def _rules(v):
    return Rules(v[0], v[1], v[2], v[3], v[4], v[5], v[6])


@njit(**LEVEL)
def _write(clock, values):
    values[0], values[1], values[2] = clock.t, clock.start, clock.step
    values[3], values[4] = clock.planned, clock.taken
    values[5], values[6] = clock.proposal, clock.previous_error


@njit(cache=True, error_model="numpy")
def _slopes(problem, work, places, linear, added, speeds, which, u, elapsed, slopes):
    for i in range(which.size):
        row = which[i]
        own = _problem_of(problem, places, linear, added, speeds, row)
        own.time[0] = own.start + elapsed
        for member in range(u.shape[1]):
            modal, part = work.modal[row], work.part[row]
            slope_of(own, member, u[i, member], slopes[i, member], modal, part)
        speeds[row] = own.speed[0]


@njit(cache=True, error_model="numpy")
def _rates(problem, work, places, linear, added, speeds, which, weights, rates):
    for i in range(which.size):
        row = which[i]
        own = _problem_of(problem, places, linear, added, speeds, row)
        front = work.front[row, 0]
        u, slope, mine = work.u[row, front], work.slope[row, front], _row_of(work, row)
        rates[i] = rate_of_change(own, u, slope, mine, weights)
