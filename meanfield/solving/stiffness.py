"""Stiffness: implicit steps, once explicit ones are short for the sake of stability alone."""

from typing import Any

import numpy as np

from ..steppers.radau import Radau, StiffFlow, jacobian

__all__ = ["CANCELLED", "Stiffness"]

CANCELLED = 103  # rounding of what decays hides what grows
LOOK = 100  # explicit steps, after which it is seen whether they are short for stability
STIFF = 3.0  # a step times the rate of what decays fastest: explicit steps bear about 6
NOISE = 100.0  # times rtol: rounding of velocities that cancel, relative to the growth of the law
MOST_COORDINATES = 600  # for implicit steps
CRAWL = 500  # implicit steps in which a law that grows is to grow e-fold, if rounding counts:
FELT = 0.01  # times rtol: noise that does, for it counts in errors of steps long before it is NOISE
OLD = 5.0  # growth times the time since the start, of a law that grows


class Stiffness:
    """Goes over to `Radau` where that is worthwhile, and ends a run that rounding holds up.

    Attributes
    ----------
    explicit : ndarray or None
        Counts of explicit steps, once they are over.
    """

    flow, scheme = StiffFlow, Radau

    def __init__(self):
        self.explicit: np.ndarray | None = None
        self._mark = np.zeros(2)  # steps and time of the last look at progress

    def after_step(self, run: Any) -> int | None:
        """Look at the Jacobian now and then."""
        if self.explicit is None and run.clock.step * self._rates(run, LOOK)[0] > STIFF:
            self._go_implicit(run, run.flow.counts.copy())
        return CANCELLED if self._cancelled(run) else None

    def _rates(self, run: Any, every: int) -> tuple[float, float]:
        """Those of the fastest decay and growth near the state, each so many steps, else nan."""
        y, steps = run.flow.x, int(run.flow.counts[0])
        if steps % every or y.size > MOST_COORDINATES:
            return np.nan, np.nan
        J = jacobian(run.motion, y, run.t)
        if not np.isfinite(J).all():
            return np.nan, np.nan
        values = np.linalg.eigvals(J).real
        return float(-values.min()), float(values.max())

    def _cancelled(self, run: Any) -> bool:
        """Whether rounding of what decays hides what grows, or makes steps so short that it does.

        Where it is a few times rtol, errors of steps are rounding, and steps become ever shorter.
        """
        if self.explicit is None:
            return False
        decay, growth = self._rates(run, LOOK // 5)
        noise = np.finfo(float).eps * decay / max(growth, 1 / run.elapsed) / run.rtol
        return bool(noise > NOISE or (noise > FELT and self._crawls(run, growth)))

    def _crawls(self, run: Any, growth: float) -> bool:
        """Whether many implicit steps together are short for a law that grows at this rate."""
        steps, before = self._mark
        if not growth >= 0 or run.flow.counts[0] < steps + CRAWL:
            return False
        self._mark = np.array([run.flow.counts[0], run.elapsed])
        return bool(growth * run.elapsed > OLD and growth * (run.elapsed - before) < 1)

    def _go_implicit(self, run: Any, counts: np.ndarray) -> None:
        """From now on: steps of `Radau`."""
        self.explicit, y = counts, run.flow.x
        self._mark = np.array([counts[0], run.elapsed])
        run.flow = StiffFlow(run.rows, y, **run.flow_options)
        run.flow.restart(y, run.start + run.clock.t)
        run.flow.counts[:] = counts

    def stats(self, start: float) -> dict[str, Any]:
        """Nothing: steps of each scheme are counted by the run."""
        return {}

    def snapshot(self) -> dict[str, Any]:
        """Counts of explicit steps, evaluations of implicit ones, the last look at progress."""
        return {
            "explicit": np.array([] if self.explicit is None else self.explicit),
            "mark": self._mark,
        }

    def restore(self, snapshot: dict[str, Any], run: Any) -> None:
        """Go back to a snapshot."""
        if len(snapshot["explicit"]):
            self._go_implicit(run, np.array(snapshot["explicit"], dtype=np.int64))
        self._mark = np.array(snapshot["mark"])
