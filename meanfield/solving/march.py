"""A density on its way through time, on as many modes as it needs."""

from typing import Any

import numpy as np

from ..evolution import DensityEvolution
from ..model import Transformer
from ..states import Density
from ..steppers import Rules, Scheme, Stepper
from ..steppers.advance import COARSER, FINER, Clock

__all__ = ["UNRESOLVED", "March"]

UNRESOLVED = 100
TAIL, COARSE_TAIL = 0.1, 0.01
SMALLEST_TAIL = 1e-13


class March:
    """The state of a run: time, density, step size. All of it, so that a run can be resumed.

    The clock counts from the start: times far from zero lose no digits.

    The number of modes doubles when a coefficient in the last eighth of the degrees exceeds
    rtol / 10; the step is then taken again. It is halved once all coefficients that would go,
    and the last eighth of those that stay, are below rtol / 1000.

    Parameters
    ----------
    model : Transformer
    density : Density
        Its ensemble shape is that of the run.
    scheme : Scheme
    rtol : float
        Relative error of a step in H^-1, where it is adapted; and the accuracy of the modes.
    dt : float or None
        A fixed step.
    steady : float
        Rate of change, in L2, at which to stop; 0 never.
    degrees : (int, int)
        Fewest and most modes.
    start, duration : float
        The first time, and how far the run goes from there, at most.
    """

    def __init__(
        self,
        model: Transformer,
        density: Density,
        *,
        scheme: Scheme,
        rtol: float,
        dt: float | None,
        steady: float,
        degrees: tuple[int, int],
        start: float,
        duration: float,
    ):
        self._model, self._scheme, self._degrees = model, scheme, degrees
        self._rtol, self._dt, self._steady = rtol, dt, steady
        self._start, self._duration = start, duration
        self._shape = density.shape
        self._steppers: dict[int, tuple[DensityEvolution, Stepper]] = {}
        self._counts = np.zeros(3, dtype=np.int64)
        self.degree_changes = 0
        self.highest_degree = 0
        self._geometry = density.geometry
        self._enter(self._first_density(density))
        proposal = self._first_step() if dt is None else dt
        self.clock = Clock(0.0, 0.0, 0.0, 0, 0, proposal, 1.0)

    # The present ---------------------------------------------------------------------------

    @property
    def t(self) -> float:
        return self._start + self.clock.t

    @property
    def elapsed(self) -> float:
        """Time since the start."""
        return self.clock.t

    @property
    def density(self) -> Density:
        state = self._stepper.state
        return Density(self._geometry, state.reshape(*self._shape, -1))

    @property
    def counts(self) -> np.ndarray:
        """Steps accepted, steps rejected, weights computed."""
        return self._counts + self._stepper.counts

    @property
    def attempts(self) -> int:
        """Steps tried so far, accepted or rejected."""
        return int(self.counts[:2].sum())

    @property
    def rate(self) -> float:
        """Largest L2 norm of d mu/dt over the members."""
        return self._stepper.rate

    # Moving --------------------------------------------------------------------------------

    def advance(self, target: float, limit: int) -> int:
        """Towards `target` after the start, at most `limit` attempts; why it came back."""
        code, self.clock = self._stepper.advance(self.clock, self._rules, target, limit)
        if code == FINER:
            if self._geometry.degree >= self._degrees[1]:
                return UNRESOLVED
            self._change_degree(min(2 * self._geometry.degree, self._degrees[1]))
        elif code == COARSER:
            self._change_degree(self._coarser(self._geometry.degree))
        return code

    def step_from(self, density: Density, dt: float) -> Density:
        """The density one single step after another one, on the present modes."""
        fine = density.resample(self._geometry.degree)
        state, _ = self._stepper.step(fine.coefficients.reshape(self._stepper.state.shape), dt)
        return Density(self._geometry, state.reshape(*self._shape, -1))

    # Kept in a checkpoint --------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts."""
        return {
            "clock": tuple(self.clock),
            "coefficients": self.density.coefficients,
            "counts": self.counts,
            "degree_changes": self.degree_changes,
            "highest_degree": self.highest_degree,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        coefficients = snapshot["coefficients"]
        geometry = self._geometry.with_modes(coefficients.shape[-1])
        self._enter(Density(geometry, coefficients))
        self.clock = Clock(*snapshot["clock"])
        self._counts = np.array(snapshot["counts"]) - self._stepper.counts
        self.degree_changes = int(snapshot["degree_changes"])
        self.highest_degree = int(snapshot["highest_degree"])

    # Degrees -------------------------------------------------------------------------------

    def _enter(self, density: Density) -> None:
        degree = density.geometry.degree
        state = density.coefficients.reshape(int(np.prod(self._shape)), -1)
        if degree in self._steppers:
            evolution, self._stepper = self._steppers[degree]
            self._stepper.state = state
        else:
            evolution = DensityEvolution(self._model, density.geometry, self._shape)
            self._stepper = Stepper(
                self._scheme,
                evolution.linear,
                evolution.nonlinear,
                state,
                metric=evolution.metric,
                parseval=density.geometry.parseval,
                degrees=density.geometry.degrees,
            )
            self._steppers[degree] = evolution, self._stepper
        self._geometry = density.geometry
        self._rules = self._rules_for(degree)
        self.highest_degree = max(self.highest_degree, degree)

    def _change_degree(self, degree: int) -> None:
        density, counts = self.density, self.counts
        self._enter(density.resample(degree))
        self._counts = counts - self._stepper.counts
        self.degree_changes += 1

    def _rules_for(self, degree: int) -> Rules:
        tail = self._tail(degree)
        coarser = self._coarser(degree)
        return Rules(
            rtol=0.0 if self._dt else self._rtol,
            error_order=self._scheme.estimate_order + 1.0,
            smallest_step=1e-15 * self._duration,
            tail=tail,
            tail_degree=0.875 * degree,
            coarse_tail=COARSE_TAIL * tail if coarser < degree else 0.0,
            coarse_degree=0.875 * coarser,
            steady=self._steady,
        )

    def _tail(self, degree: int) -> float:
        """How large the last coefficients may be: relative to those of a Dirac."""
        return max(TAIL * self._rtol, SMALLEST_TAIL) * self._geometry.dirac(degree)

    def _coarser(self, degree: int) -> int:
        return max((degree + 1) // 2, min(self._degrees[0], degree))

    def _first_density(self, density: Density) -> Density:
        """The initial density on the fewest modes that the rules allow."""
        degree = max(density.geometry.degree, self._degrees[0])
        sizes = np.abs(density.coefficients).reshape(-1, density.geometry.degrees.size).max(axis=0)
        limit = COARSE_TAIL * self._tail(density.geometry.degree)
        while (coarser := self._coarser(degree)) < degree:
            if sizes[density.geometry.degrees > 0.875 * coarser].max(initial=0) > limit:
                break
            degree = coarser
        return density.resample(degree)

    def _first_step(self) -> float:
        """A step that changes the state by rtol^(1/4) / 20 in the norm of errors."""
        changes = max(1.0, self._stepper.rate_in_metric * self._duration)
        return self._duration * min(1.0, 0.05 * self._rtol**0.25 / changes)
