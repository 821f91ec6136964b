"""Run times to be compared with each other, on a machine whose load changes."""

import time
from collections.abc import Callable, Sequence

import numpy as np
from _small import SMALL

__all__ = ["fastest", "median", "rounds"]


def fastest(
    runs: Sequence[Callable],
    repeats: int,
    budget: float = 4.0,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """The shortest seconds of every run over `repeats` rounds, in each of which all take a turn.

    Taking turns spreads a change of load over all of them. A run that has had `budget` seconds
    takes no further turn. Nothing is run beforehand. With `time.process_time` for a clock, of
    runs on one thread, seconds that other processes had the core do not count.
    """
    repeats = 1 if SMALL else repeats
    best, spent = [float("inf")] * len(runs), [0.0] * len(runs)
    for _ in range(repeats):
        for i, run in enumerate(runs):
            if spent[i] < budget:
                began = clock()
                run()
                seconds = clock() - began
                best[i], spent[i] = min(best[i], seconds), spent[i] + seconds
    return best


def rounds(
    runs: Sequence[Callable], least: int, budget: float, clock: Callable[[], float]
) -> np.ndarray:
    """Seconds of every run in rounds in each of which all take a turn, (rounds, runs).

    At least so many rounds, and more for as long as all together have had less than `budget`
    seconds. Ratios within a round, of which the median is taken, suffer least from a machine that
    is faster at one time than at another. Nothing is run beforehand.
    """
    least, budget = (1, 0.0) if SMALL else (least, budget)
    found: list[list[float]] = []
    while len(found) < least or np.sum(found) < budget:
        times = [clock()]
        for run in runs:
            run()
            times.append(clock())
        found.append(np.diff(times).tolist())
    return np.array(found)


def median(values: np.ndarray) -> tuple[float, float]:
    """The median, and its standard error from the quartiles, as for normal errors."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return middle, 1.253 * (high - low) / 1.349 / np.sqrt(values.size)
