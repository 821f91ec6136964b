"""A normal law on its way through time."""

from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..dynamics import GaussianMotion
from ..states import Gaussian
from ..steppers.advance import PAUSED, REACHED, TOO_SMALL
from ..steppers.radau import Radau, StiffFlow, jacobian
from .arguments import Accuracy, Problem
from .blow_up import BlowUp
from .flow_march import FlowMarch
from .pieces import Pieces

__all__ = ["BLOWN_UP", "GaussianMarch"]

BLOWN_UP = 102  # the next step would pass a blow-up
LOOK = (
    100  # explicit steps, after which it is seen whether they are short for the sake of stability
)
STIFF = 3.0  # a step times the rate of what decays fastest: explicit steps bear about 6
NOISE = 100.0  # times rtol: rounding of velocities that cancel, relative to the growth of the law
MOST_COORDINATES = 600  # for implicit steps
CRAWL = 500  # implicit steps in which a law that grows is to grow e-fold, if rounding counts:
FELT = 0.01  # times rtol: noise that does, for it counts in errors of steps long before it is NOISE
OLD = 5.0  # growth times the time since the start, of a law that grows
AT_THE_EDGE = 1e-3  # of integrals under L2 weights, where no step is small enough


class GaussianMarch(FlowMarch):
    """See `March`. Steps keep the error of mean and root of the covariance below rtol, relative."""

    def __init__(self, problem: Problem, accuracy: Accuracy, steady: float):
        motion, start = GaussianMotion(problem.model, problem.state), problem.start
        self._pieces = Pieces(motion, start, problem.times - start)
        self._pieces.enter(motion, 0.0)
        y = motion.coordinates(problem.state)
        super().__init__(problem, accuracy, motion, y, steady=steady, start=start)
        if not np.isfinite(self._flow.velocity).all():
            raise MeanfieldError(
                f"The velocities under {problem.model!r} are not finite at the start: numbers "
                "overflow, or L2 weights with beta < 0 have no integral over this Gaussian."
            )
        self._blow_up = BlowUp()
        self._explicit: np.ndarray | None = None  # counts of explicit steps, once they are over
        self._hidden, self._mark = False, np.zeros(2)  # steps and time of the last look at progress
        self._options = {"rtol": accuracy.rtol, "steady": steady, "start": start}

    @property
    def state(self) -> Gaussian:
        return self._motion.state_of(self._flow.x)

    @property
    def size(self) -> str:
        return f"d = {self._first.dimension}"

    def advance(self, target: float, limit: int) -> int:
        """Towards `target` after the start, at most `limit` attempts; why it came back."""
        if self._pieces.enter(self._motion, self.elapsed):
            self._flow.restart(self._flow.x, self.elapsed)
        goal, before = self._pieces.goal(self.elapsed, target), self._flow.counts[0]
        code, self.clock = self._flow.advance(self.clock, goal, min(limit, 1))
        if not self._dt and self._flow.counts[0] > before:
            if self._blows_up():
                return BLOWN_UP
            if self._stiff():
                self._go_implicit(self._flow.counts.copy())
            self._hidden = self._cancelled()
            if self._hidden:
                return TOO_SMALL
        return PAUSED if code == REACHED and goal < target else code

    def _blows_up(self) -> bool:
        """Whether the next step would, as the last one shows."""
        assert self._flow.before is not None
        growth = self._motion.growth(self._flow.x, self._flow.velocity)
        if growth > 0 and growth <= self._motion.most_exponential(self.t):
            growth = 0.0
        return self._blow_up.look(self.elapsed, self._flow.before[2], growth)

    def step_from(self, state: Gaussian, elapsed: float, dt: float) -> Gaussian:
        """The state one single step after another one."""
        y = self._motion.coordinates(state)
        velocity = self._motion.velocity(y, self._start + elapsed)
        new, _, _ = self._flow.step(y, velocity, elapsed, dt)
        return self._motion.state_of(new)

    def _rates(self, every: int) -> tuple[float, float]:
        """Those of the fastest decay and growth near the state, each so many steps, else nan."""
        y, steps = self._flow.x, int(self._flow.counts[0])
        if steps % every or y.size > MOST_COORDINATES:
            return np.nan, np.nan
        J = jacobian(self._motion, y, self.t)
        if not np.isfinite(J).all():
            return np.nan, np.nan
        values = np.linalg.eigvals(J).real
        return float(-values.min()), float(values.max())

    def _stiff(self) -> bool:
        """Whether explicit steps are much shorter than accuracy asks for."""
        return self._explicit is None and self.clock.step * self._rates(LOOK)[0] > STIFF

    def _cancelled(self) -> bool:
        """Whether rounding of what decays hides what grows, or makes steps so short that it does.

        Where it is a few times rtol, errors of steps are rounding, and steps become ever shorter.
        """
        if self._explicit is None:
            return False
        decay, growth = self._rates(LOOK // 5)
        noise = np.finfo(float).eps * decay / max(growth, 1 / self.elapsed) / self._options["rtol"]
        return bool(noise > NOISE or (noise > FELT and self._crawls(growth)))

    def _crawls(self, growth: float) -> bool:
        """Whether many implicit steps together are short for a law that grows at this rate."""
        steps, before = self._mark
        if not growth >= 0 or self._flow.counts[0] < steps + CRAWL:
            return False
        self._mark = np.array([self._flow.counts[0], self.elapsed])
        return bool(growth * self.elapsed > OLD and growth * (self.elapsed - before) < 1)

    def _go_implicit(self, counts: np.ndarray, evaluations: int = 0) -> None:
        """From now on: steps of `Radau`."""
        self._explicit, y = counts, self._flow.x
        self._mark = np.array([counts[0], self.elapsed])
        self._flow = StiffFlow(self._motion, y, **self._options)
        self._flow.evaluations = evaluations
        self._flow.restart(y, self.elapsed)
        self._flow.counts[:] = counts

    def stats(self) -> dict[str, Any]:
        """Counts; the time of a blow-up, and its power of 1 / (T - t)."""
        found, counts = self._blow_up.elapsed, super().stats()
        if isinstance(self._flow, StiffFlow) and self._explicit is not None:
            before = int(self._explicit[0])
            schemes = {self._scheme.name: before, Radau.name: counts["steps"] - before}
            evaluations = self._scheme.evaluations * int(self._explicit.sum())
            counts |= {"schemes": schemes, "evaluations": evaluations + self._flow.evaluations}
        return counts | {
            "blow_up_time": None if found is None else self._start + found,
            "blow_up_power": self._blow_up.power,
        }

    def failure(self, status: str) -> str:
        """Why the run could not go on, and what to do."""
        if status == "blow-up":
            T, p = self.stats()["blow_up_time"], self._blow_up.power
            how = f"grows like (T - t)^-{p:.3g}" if p else "becomes infinite, like no power"
            return (
                f"The law blows up at T = {T:.10g}: int |x|^2 dmu {how}, and the solution ends. "
                "The states before it are as accurate as asked."
            )
        if self._motion.integrable(self._flow.x, self.t) < AT_THE_EDGE:
            return (
                f"L2 weights with beta < 0 cease to have an integral over the law at t = {self.t:g}"
                ": 1 + 2 beta |K L|^2 falls to 0, and velocities grow without bound. The solution "
                "ends there."
            )
        if self._hidden:
            return (
                f"At t = {self.t:g} the covariance has grown so large that what decays does so "
                "faster than the law grows by about as many digits as there are: velocities cancel "
                "to rounding, and steps become ever shorter. End the run earlier; a larger rtol "
                "gets a little further."
            )
        return {
            "step_too_small": (
                f"No step size meets rtol at t = {self.t:g}: the velocity is not smooth there, or "
                "numbers exceed 1e308, as where the law grows exponentially. End the run earlier."
            ),
            "not_finite": (
                f"Numbers exceed 1e308 after t = {self.t:g}. With dt errors are not controlled, "
                "and a blow-up is passed unseen, so that states before may be wrong: leave dt out "
                "to have it located, or use a smaller dt."
            ),
        }[status]

    def doubt(self, _state: Gaussian, _t: float) -> str | None:
        """None: steps are controlled."""
        return None

    def array(self, state: Gaussian) -> np.ndarray:
        """Root of the covariance, and mean, (d, d + 1)."""
        return np.column_stack([state.root, state.mean])

    def fixed(self) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def state_of(self, array: np.ndarray) -> Gaussian:
        """The state with these numbers."""
        return Gaussian.computed(array[:, -1], array[:, :-1])

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts."""
        return super().snapshot() | {
            "growth": self._blow_up.snapshot(),
            "mark": self._mark,
            "explicit": np.array([] if self._explicit is None else self._explicit),
            "evaluations": getattr(self._flow, "evaluations", 0),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._pieces.enter(self._motion, float(snapshot["clock"][0]))
        if len(snapshot["explicit"]):
            evaluations = int(snapshot["evaluations"])
            self._go_implicit(np.array(snapshot["explicit"], dtype=np.int64), evaluations)
        super().restore(snapshot)
        self._blow_up.restore(snapshot["growth"])
        self._mark = np.array(snapshot["mark"])
