"""Run times to be compared with each other, on a machine whose load changes."""

import time
from collections.abc import Callable, Sequence

__all__ = ["fastest"]


def fastest(runs: Sequence[Callable], repeats: int, budget: float = 4.0) -> list[float]:
    """The shortest seconds of every run over `repeats` rounds, in each of which all take a turn.

    Taking turns spreads a change of load over all of them. A run that has had `budget` seconds
    takes no further turn. Nothing is run beforehand.
    """
    best, spent = [float("inf")] * len(runs), [0.0] * len(runs)
    for _ in range(repeats):
        for i, run in enumerate(runs):
            if spent[i] < budget:
                began = time.perf_counter()
                run()
                seconds = time.perf_counter() - began
                best[i], spent[i] = min(best[i], seconds), spent[i] + seconds
    return best
