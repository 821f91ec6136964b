"""A density on its way through time, on as many modes as it needs."""

from typing import Any

import numpy as np

from ..dynamics import DensityEvolution
from ..spaces.density import COMPUTED, Density, tail_start
from ..steppers import Rules, Scheme, Stepper
from ..steppers.advance import COARSER, FINER
from ..steppers.clock import replanned, restored, started
from .arguments import Accuracy, Problem
from .choice import SCHEMES, Choice
from .degrees import coarser, finer

__all__ = ["UNRESOLVED", "DensityMarch"]

UNRESOLVED = 100
TAIL, COARSE_TAIL = 0.1, 0.01
SMALLEST_TAIL = 1e-13
COEFFICIENTS_PER_PAUSE = 200_000


class DensityMarch:
    """See `March`. The clock counts from the start: times far from zero lose no digits.

    When a coefficient in the last eighth of the degrees exceeds rtol / 10 the degree grows to the
    next 2^k, on S^2 also 3 * 2^k, and the step is taken again. It shrinks once all coefficients
    that would go, and the last eighth of those that stay, are below rtol / 1000.

    Where no scheme is asked for, the present one of SCHEMES is compared with the others now and
    then, first with the longest step that is stable, then by trying one. The one that goes
    furthest for its evaluations is taken.

    Parameters
    ----------
    problem : Problem
        The ensemble shape of its density is that of the run.
    accuracy : Accuracy
        `rtol` bounds the relative error of a step in H^-1, where steps are adapted, and the
        modes; `dt` fixes them.
    steady : float
        Rate of change, in L2, at which to stop; 0 never.
    """

    continuous: bool = True

    def __init__(self, problem: Problem, accuracy: Accuracy, steady: float):
        self._model, self._steady, self._start = problem.model, steady, problem.start
        self._rtol, self._dt = accuracy.rtol, accuracy.dt
        self._schemes = SCHEMES if accuracy.scheme is None else (accuracy.scheme,)
        self._degrees, density = accuracy.degrees, problem.state
        self._duration = float(problem.times[-1] - problem.start)
        self._scheme, self._choice = self._schemes[0], Choice(self._duration)
        self._shape, self._members = density.shape, int(np.prod(density.shape))
        self._evolutions: dict[int, DensityEvolution] = {}
        self._steppers: dict[tuple[int, str], Stepper] = {}
        self._counts = np.zeros((len(self._schemes), 3), dtype=np.int64)
        self.degree_changes = 0
        self.highest_degree = 0
        self._geometry = density.geometry
        self._enter(self._first_density(density), self._scheme)
        self.clock = started(self._dt or self._first_step())

    # The present ---------------------------------------------------------------------------

    @property
    def t(self) -> float:
        return self._start + self.clock.t

    @property
    def elapsed(self) -> float:
        """Time since the start."""
        return self.clock.t

    @property
    def state(self) -> Density:
        state = self._stepper.state
        return Density(self._geometry, state.reshape(*self._shape, -1))

    @property
    def attempts(self) -> int:
        """Steps tried so far, accepted or rejected."""
        return int(self._counts[:, :2].sum())

    @property
    def rate(self) -> float:
        """Largest L2 norm of d mu/dt over the members."""
        return self._stepper.rate

    # Moving --------------------------------------------------------------------------------

    def advance(self, target: float, limit: int) -> int:
        """Towards `target` after the start, at most `limit` attempts; why it came back."""
        left = self._choice.attempts_left(self.attempts, target, self.clock.t)
        before = self._stepper.counts.copy()
        code, self.clock = self._stepper.advance(self.clock, self._rules, target, min(limit, left))
        self._counts[self._schemes.index(self._scheme)] += self._stepper.counts - before
        if code == FINER:
            if self._geometry.degree >= self._degrees[1]:
                return UNRESOLVED
            self._change_degree(
                min(finer(self._geometry.degree, self._geometry.halfway), self._degrees[1])
            )
        elif code == COARSER:
            self._change_degree(self._coarser(self._geometry.degree))
        if self._choice.attempts_left(self.attempts, target, self.clock.t) <= 0:
            self._choice.reviewed(self.attempts, changed=self._review())
        return code

    def _review(self) -> bool:
        """Take another scheme if it is better from here; whether it is."""
        density, state = self.state, self._stepper.state
        for scheme in self._schemes:
            if scheme is not self._scheme:
                step, longest = self.clock.proposal, self._stepper.longest_step(scheme)
                if not self._choice.may_be_better(scheme, longest, self._scheme, step):
                    continue
                other = self._stepper_for(density, scheme)
                better = self._choice.better_step(other, state, self._scheme, step, self._rtol)
                if better is not None:
                    self._enter(density, scheme)
                    self.clock = replanned(self.clock, better)
                    return True
        return False

    def step_from(self, density: Density, _elapsed: float, dt: float) -> Density:
        """The density one single step after another one, on the present modes."""
        fine = density.resample(self._geometry.degree)
        state, _ = self._stepper.step(fine.coefficients.reshape(self._stepper.state.shape), dt)
        return Density(self._geometry, state.reshape(*self._shape, -1))

    # Reported ------------------------------------------------------------------------------

    @property
    def pause(self) -> int:
        """Steps between two looks."""
        return max(1, min(1024, COEFFICIENTS_PER_PAUSE // self._stepper.state.size))

    @property
    def size(self) -> str:
        return f"degree {self.highest_degree}"

    def stats(self) -> dict[str, Any]:
        """Counts for the result."""
        accepted, rejected, weighed = (int(n) for n in self._counts.sum(axis=0))
        each = [int(n) for n in self._counts[:, :2].sum(axis=1)]
        steps = {s.name: int(n) for s, n in zip(self._schemes, self._counts[:, 0], strict=True)}
        spent = sum(s.evaluations * n for s, n in zip(self._schemes, each, strict=True))
        return {
            "steps": accepted,
            "rejected": rejected,
            "evaluations": spent + self._choice.evaluations,
            "weights": weighed,
            "schemes": steps,
            "degree_changes": self.degree_changes,
            "highest_degree": self.highest_degree,
        }

    def failure(self, status: str) -> str:
        """Why the run could not go on, and what to do."""
        return {
            "unresolved": (
                f"The density is not resolved by max_degree = {self.highest_degree} modes after "
                f"t = {self.t:g}. "
                + (
                    "Use a smaller dt, if the steps were too long; else raise"
                    if self._dt
                    else "Raise"
                )
                + " max_degree or, where a density without noise concentrates to Diracs, follow "
                "mf.Characteristics(density), which needs no modes."
            ),
            "step_too_small": (
                f"No step size meets rtol at t = {self.t:g}. Without noise the density may be "
                "collapsing; else the drift is too strong for this time scale: try a larger rtol."
            ),
            "not_finite": f"The state was not finite after t = {self.t:g}: use a smaller dt.",
        }[status]

    def doubt(self, density: Density, _t: float) -> str | None:
        """Whether a density came out clearly negative somewhere."""
        lowest, highest = float(density.minimum.min()), float(density.values.max())
        if lowest >= -COMPUTED * highest:
            return None
        remedy = f"a dt below {self._dt:g}" if self._dt else f"an rtol below {self._rtol:g}"
        return (
            f"The final density is negative: minimum {lowest:.2g} at a maximum of {highest:.3g}. "
            f"Its moments may be accurate to the tolerance, its values are not: use {remedy}."
        )

    # Kept in a checkpoint --------------------------------------------------------------------

    def array(self, state: Density) -> np.ndarray:
        """The coefficients."""
        return state.coefficients

    def fixed(self) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def state_of(self, array: np.ndarray) -> Density:
        """The density with these coefficients."""
        return Density(self._geometry.with_modes(array.shape[-1]), array)

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts."""
        return {
            "clock": tuple(self.clock),
            "coefficients": self.state.coefficients,
            "counts": self._counts,
            "scheme": self._schemes.index(self._scheme),
            "choice": self._choice.snapshot(),
            "degree_changes": self.degree_changes,
            "highest_degree": self.highest_degree,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        coefficients = snapshot["coefficients"]
        geometry = self._geometry.with_modes(coefficients.shape[-1])
        self._enter(Density(geometry, coefficients), self._schemes[int(snapshot["scheme"])])
        self.clock = restored(snapshot["clock"])
        self._counts = np.array(snapshot["counts"])
        self._choice.restore(snapshot["choice"])
        self.degree_changes = int(snapshot["degree_changes"])
        self.highest_degree = int(snapshot["highest_degree"])

    # Degrees -------------------------------------------------------------------------------

    def _enter(self, density: Density, scheme: Scheme) -> None:
        """Go on from this density, on its modes and with this scheme."""
        self._stepper = self._stepper_for(density, scheme)
        self._stepper.state = density.coefficients.reshape(self._members, -1)
        self._geometry, self._scheme = density.geometry, scheme
        self._rules = self._rules_for(density.geometry.degree)
        self.highest_degree = max(self.highest_degree, density.geometry.degree)

    def _stepper_for(self, density: Density, scheme: Scheme) -> Stepper:
        """The stepper of a scheme on the modes of a density, where it starts if it is new."""
        geometry, degree = density.geometry, density.geometry.degree
        if degree not in self._evolutions:
            self._evolutions[degree] = DensityEvolution(self._model, geometry, self._shape)
        if (degree, scheme.name) not in self._steppers:
            evolution = self._evolutions[degree]
            self._steppers[degree, scheme.name] = Stepper(
                scheme,
                evolution.linear,
                evolution.nonlinear,
                density.coefficients.reshape(self._members, -1),
                metric=evolution.metric,
                parseval=geometry.parseval,
                degrees=geometry.degrees,
            )
        return self._steppers[degree, scheme.name]

    def _change_degree(self, degree: int) -> None:
        self._enter(self.state.resample(degree), self._scheme)
        self.degree_changes += 1
        self._choice.review_soon(self.attempts)

    def _rules_for(self, degree: int) -> Rules:
        tail = self._tail(degree)
        fewer = self._coarser(degree)
        return Rules(
            rtol=0.0 if self._dt else self._rtol,
            error_order=self._scheme.estimate_order + 1.0,
            smallest_step=1e-15 * self._duration,
            tail=tail,
            tail_degree=tail_start(degree),
            coarse_tail=COARSE_TAIL * tail if fewer < degree else 0.0,
            coarse_degree=tail_start(fewer),
            steady=self._steady,
        )

    def _tail(self, degree: int) -> float:
        """How large the last coefficients may be: relative to those of a Dirac."""
        return max(TAIL * self._rtol, SMALLEST_TAIL) * self._geometry.dirac(degree)

    def _coarser(self, degree: int) -> int:
        """The degree to shrink to from this one: the same if there is no lower one."""
        return max(coarser(degree, self._geometry.halfway), min(self._degrees[0], degree))

    def _first_density(self, density: Density) -> Density:
        """The initial density on the fewest modes that the rules allow."""
        degree = max(density.geometry.degree, self._degrees[0])
        sizes = np.abs(density.coefficients).reshape(-1, density.geometry.degrees.size).max(axis=0)
        limit = COARSE_TAIL * self._tail(density.geometry.degree)
        while (fewer := self._coarser(degree)) < degree:
            if sizes[density.geometry.degrees > tail_start(fewer)].max(initial=0) > limit:
                break
            degree = fewer
        return density.resample(degree)

    def _first_step(self) -> float:
        """A step that changes the state by rtol^(1/4) / 20 in the norm of errors."""
        changes = max(1.0, self._stepper.rate_in_metric * self._duration)
        return self._duration * min(1.0, 0.05 * self._rtol**0.25 / changes)
