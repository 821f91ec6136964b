"""Batches of densities: rows of common arrays, whose steps are one call of compiled code."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..spaces import Space
from ..steppers import Scheme, Stepper
from ..steppers.clock import first_steps, started
from ..steppers.flow import NO_FLOAT_WARNINGS
from ..steppers.rows import Rows
from ..steppers.stepper import advance_rows
from .arguments import Arguments

LARGEST_BATCH = 32  # members of a batch; more save nothing, and leave less to other threads
FIRST_CHANGE = 0.05  # change of the state in the first step, divided by rtol^(1/4)


class DensityBatch:
    """Batch of runs of densities that share equations, transforms and memory.

    The steps of each run are the same as without the others. Only one thread at a time may advance
    the batch, as the memory is shared.

    Parameters
    ----------
    arguments : Arguments
        Arguments of the ensemble, or of a single run.
    numbers : ndarray of int, optional
        Indices, in C order, of the members of the ensemble; by default there is a single run.
    """

    def __init__(self, arguments: Arguments, numbers: np.ndarray | None = None):
        """Batch of the runs `numbers`, with equations for each degree made on demand."""
        self._arguments, self._size = arguments, 1 if numbers is None else len(numbers)
        self._motion: Any = None  # motion of all runs, if they can share one
        if numbers is not None and arguments.motion.alike:
            self._motion = arguments.motion.of_members(numbers)
        self._evolutions: dict[tuple[int | None, int], Any] = {}
        self._rows: dict[tuple[int, str], Rows] = {}
        self._speeds: dict[int, np.ndarray] = {}

    def stepper(self, run: Any, space: Space, scheme: Scheme) -> Stepper:
        """New stepper of one of the runs, on the modes of a space and without a state."""
        evolution, member = self.evolution(run, space), 0 if self._motion is None else run.row
        linear, nonlinear, number = evolution.of_member(member)
        key = space.degree, scheme.name
        if key not in self._rows:
            self._rows[key] = Rows(
                scheme,
                linear,
                (run.members, space.degrees.size),
                space.dtype,
                count=self._size,
                metric=evolution.metric,
                parseval=space.parseval,
                degrees=space.degrees,
                start=self._arguments.start,
                basis=evolution.basis,
                speeds=self._speeds.setdefault(space.degree, np.zeros(self._size)),
            )
        return Stepper.of_row(self._rows[key], run.row, linear, nonlinear, number)

    def evolution(self, run: Any, space: Space) -> Any:
        """Equation of a run on the modes of a space; one for all runs if they share a motion."""
        one_model = self._motion is not None
        key = None if one_model else run.row, space.degree
        if key not in self._evolutions:
            motion = self._motion if one_model else run.motion
            self._evolutions[key] = motion.evolution(space, separate_members=one_model)
        return self._evolutions[key]

    @np.errstate(**NO_FLOAT_WARNINGS)
    def begin(self, runs: Sequence[Any]) -> None:
        """Set the initial states of runs that have steppers, and the lengths of their first steps.

        The first step changes the state by rtol^(1/4) / 20 in the norm of errors, at most: see
        `first_steps`.
        """
        share = FIRST_CHANGE * self._arguments.rtol**0.25
        for rows, batch in _by_rows(runs):
            indices = np.array([run.row for run in batch])
            states = [run.first.coefficients.reshape(run.members, -1) for run in batch]
            rows.begin(indices, np.array(states), 0.0)
            rates = rows.rates_of_change(indices, rows.metric)
            moving, growths = (0 < rates) & (rates < np.inf), np.zeros(len(indices))
            if moving.any() and not self._arguments.dt:
                growths[moving] = rows.growths(indices[moving], share, 0.0)
            rates[~moving] = 0.0
            first = first_steps(share, rates, growths, runs[0].duration)
            for run, step in zip(batch, first.tolist(), strict=True):
                run.stepper.check()
                run.clock = started(run.dt or step)

    def advance(self, limits: Mapping[Any, int], output: float) -> list[int]:
        """Advance each run towards an output, by at most its limit of attempts; return the codes.

        The codes are those of `Integration.advance`.
        """
        self.step({run: limit for run, limit in limits.items() if not run.within}, output)
        return [run.arrive(output) for run in limits]

    def step(self, limits: Mapping[Any, int], output: float) -> None:
        """Advance the clock of each run to the output, by at most its limit of attempts."""
        tasks = {run: run.task(output, limit) for run, limit in limits.items()}
        counts = {run: run.stepper.counts.tolist() for run in limits}
        for _, batch in _by_rows(limits):
            ends = advance_rows([run.stepper for run in batch], [tasks[run] for run in batch])
            for run, (code, clock) in zip(batch, ends, strict=True):
                run.stepped(code, clock, counts[run])
        for run in limits:
            run.stepper.check()


def _by_rows(runs: Iterable[Any]) -> list[tuple[Rows, list[Any]]]:
    """Runs grouped by the `Rows` of their steppers."""
    by_rows: defaultdict[Rows, list[Any]] = defaultdict(list)
    for run in runs:
        by_rows[run.stepper.rows].append(run)
    return list(by_rows.items())
