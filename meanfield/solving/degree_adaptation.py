"""Degree adaptation: a density on its way through time, on as many modes as it needs."""

from typing import Any

import numpy as np

from ..spaces.density import Density, tail_start
from ..steppers import Rules, Scheme, Stepper
from ..steppers.advance import COARSER, FINER
from ..steppers.clock import replanned, restored, started
from .arguments import Arguments
from .integration import Count, Integration
from .scheme_selection import SCHEMES, SchemeSelection

__all__ = ["UNRESOLVED", "SpectralIntegration", "coarser", "finer"]

UNRESOLVED = 100
TAIL, COARSE_TAIL = 0.1, 0.01
SMALLEST_TAIL = 1e-13
COEFFICIENTS_PER_PAUSE = 200_000


class SpectralIntegration(Integration):
    """Steps of exponential or explicit schemes on modes whose number is adapted.

    When a coefficient in the last eighth of the degrees exceeds rtol / 10 the degree grows to the
    next 2^k, on S^2 also 3 * 2^k, and the step is taken again. It shrinks once all coefficients
    that would go, and the last eighth of those that stay, are below rtol / 1000. dt fixes steps.

    Where no scheme is asked for, the present one of SCHEMES is compared with the others now and
    then, first with the longest step that is stable, then by trying one.
    """

    def __init__(self, arguments: Arguments):
        super().__init__(arguments)
        scheme: Any = arguments.accuracy.scheme
        density = arguments.problem.state
        self._schemes: tuple[Any, ...] = SCHEMES if scheme is None else (scheme,)
        self._degrees = arguments.options.degrees
        self._scheme: Any = self._schemes[0]
        self._selection = SchemeSelection(self.duration)
        self._shape, self._members = density.shape, int(np.prod(density.shape))
        self._evolutions: dict[int, Any] = {}
        self._steppers: dict[tuple[int, str], Stepper] = {}
        self._steps = np.zeros((len(self._schemes), 3), dtype=np.int64)
        self.degree_changes = 0
        self.highest_degree = 0
        self._geometry = density.geometry
        self._enter(self._first_density(density), self._scheme)
        self.clock = started(self.dt or self._first_step())

    # The present ---------------------------------------------------------------------------

    @property
    def elapsed(self) -> float:
        return self.clock.t

    @property
    def state(self) -> Density:
        state = self._stepper.state
        return Density(self._geometry, state.reshape(*self._shape, -1))

    @property
    def rate(self) -> float:
        """The largest L2 norm of d mu/dt over the members."""
        return self._stepper.rate

    # Moving --------------------------------------------------------------------------------

    def advance(self, target: float, limit: int) -> int:
        left = self._selection.attempts_left(self.attempts, target, self.clock.t)
        before = self._stepper.counts.copy()
        code, self.clock = self._stepper.advance(self.clock, self._rules, target, min(limit, left))
        self._steps[self._schemes.index(self._scheme)] += self._stepper.counts - before
        if code == FINER:
            if self._geometry.degree >= self._degrees[1]:
                return UNRESOLVED
            self._change_degree(
                min(finer(self._geometry.degree, self._geometry.halfway), self._degrees[1])
            )
        elif code == COARSER:
            self._change_degree(self._coarser(self._geometry.degree))
        if self._selection.attempts_left(self.attempts, target, self.clock.t) <= 0:
            self._selection.reviewed(self.attempts, changed=self._review())
        return code

    def _review(self) -> bool:
        """Take another scheme if it is better from here; whether it is."""
        density, state = self.state, self._stepper.state
        for scheme in self._schemes:
            if scheme is not self._scheme:
                step, longest = self.clock.proposal, self._stepper.longest_step(scheme)
                if not self._selection.may_be_better(scheme, longest, self._scheme, step):
                    continue
                other = self._stepper_for(density, scheme)
                better = self._selection.better_step(other, state, self._scheme, step, self.rtol)
                if better is not None:
                    self._enter(density, scheme)
                    self.clock = replanned(self.clock, better)
                    return True
        return False

    def step_from(self, state: Density, elapsed: float, dt: float) -> Density:
        fine = state.resample(self._geometry.degree)
        new, _ = self._stepper.step(fine.coefficients.reshape(self._stepper.state.shape), dt)
        return Density(self._geometry, new.reshape(*self._shape, -1))

    # Reported ------------------------------------------------------------------------------

    @property
    def pause(self) -> int:  # type: ignore[override]
        return max(1, min(1024, COEFFICIENTS_PER_PAUSE // self._stepper.state.size))

    @property
    def size(self) -> str:
        return f"degree {self.highest_degree}"

    def _counts(self) -> list[Count]:
        counts = zip(self._schemes, self._steps, strict=True)
        return [
            Count(s.name, int(n), int(rejected), s.evaluations * int(n + rejected))
            for s, (n, rejected, _) in counts
        ]

    def stats(self) -> dict[str, Any]:
        found = super().stats()
        return found | {
            "evaluations": found["evaluations"] + self._selection.evaluations,
            "weights": int(self._steps[:, 2].sum()),
            "degree_changes": self.degree_changes,
            "highest_degree": self.highest_degree,
        }

    # Kept in a checkpoint --------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        return {
            "clock": tuple(self.clock),
            "coefficients": self.state.coefficients,
            "counts": self._steps,
            "scheme": self._schemes.index(self._scheme),
            "choice": self._selection.snapshot(),
            "degree_changes": self.degree_changes,
            "highest_degree": self.highest_degree,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        coefficients = snapshot["coefficients"]
        geometry = self._geometry.with_modes(coefficients.shape[-1])
        self._enter(Density(geometry, coefficients), self._schemes[int(snapshot["scheme"])])
        self.clock = restored(snapshot["clock"])
        self._steps = np.array(snapshot["counts"])
        self._selection.restore(snapshot["choice"])
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
            self._evolutions[degree] = self.motion.evolution(geometry)
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
        self._selection.review_soon(self.attempts)

    def _rules_for(self, degree: int) -> Rules:
        tail = self._tail(degree)
        fewer = self._coarser(degree)
        return Rules(
            rtol=0.0 if self.dt else self.rtol,
            error_order=self._scheme.estimate_order + 1.0,
            smallest_step=1e-15 * self.duration,
            tail=tail,
            tail_degree=tail_start(degree),
            coarse_tail=COARSE_TAIL * tail if fewer < degree else 0.0,
            coarse_degree=tail_start(fewer),
            steady=self.steady,
        )

    def _tail(self, degree: int) -> float:
        """How large the last coefficients may be: relative to those of a Dirac."""
        return max(TAIL * self.rtol, SMALLEST_TAIL) * self._geometry.dirac(degree)

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
        changes = max(1.0, self._stepper.rate_in_metric * self.duration)
        return self.duration * min(1.0, 0.05 * self.rtol**0.25 / changes)


def finer(degree: int, halfway: bool) -> int:
    """The smallest 2^k, or 3 * 2^k if `halfway`, above this degree."""
    power = 1 << degree.bit_length()
    return power * 3 // 4 if halfway and degree < power * 3 // 4 else power


def coarser(degree: int, halfway: bool) -> int:
    """The largest 2^k, or 3 * 2^k if `halfway`, below this degree; 1 if there is none."""
    power = 1 << max(degree - 1, 1).bit_length() - 1
    return max(1, power * 3 // 2 if halfway and degree > power * 3 // 2 else power)
