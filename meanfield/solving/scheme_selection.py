"""Selection of the scheme for a density: exponential or explicit, compared as the run goes."""

from ..steppers import DormandPrince, Krogstad, Scheme, Stepper

__all__ = ["SCHEMES", "SchemeSelection"]

SCHEMES = (Krogstad, DormandPrince)  # for what is stiff, and for what is not
SOON, OFTEN, RARELY = 16, 64, 4096  # attempts until the schemes are compared again
WORTHWHILE = 1.2  # a change of the scheme has to gain this much


class SchemeSelection:
    """The reviews of the scheme in a run: they come at the same steps wherever it pauses.

    Schemes are compared by the time that they advance per evaluation of the right-hand side, where
    no step is longer than equal steps between two outputs allow.
    """

    def __init__(self, duration: float):
        self.evaluations = 0  # of steps that were tried for comparison
        self._at, self._interval = SOON, OFTEN
        self._target, self._gap = 0.0, duration

    def attempts_left(self, attempts: int, target: float, t: float) -> int:
        """How many steps may be tried until the next review, on the way from t to an output."""
        if target != self._target:
            self._target, self._gap = target, target - t
        return self._at - attempts

    def reviewed(self, attempts: int, *, changed: bool) -> None:
        """After a review: the next one, later and later while nothing changes."""
        self._interval = OFTEN if changed else min(2 * self._interval, RARELY)
        self._at = attempts + self._interval

    def review_soon(self, attempts: int) -> None:
        """After a change of the degree."""
        self._at, self._interval = min(self._at, attempts + SOON), OFTEN

    def may_be_better(self, other: Scheme, longest: float, present: Scheme, step: float) -> bool:
        """Whether another scheme would be better with the longest step that is stable."""
        return self._reach(other, longest) >= WORTHWHILE * self._reach(present, step)

    def better_step(
        self, other: Stepper, state, present: Scheme, step: float, rtol: float
    ) -> float | None:
        """The step of another scheme from this state if it is better, otherwise None."""
        self.evaluations += other.scheme.evaluations + 1
        expected = other.expected_step(state, step, rtol)
        return expected if self.may_be_better(other.scheme, expected, present, step) else None

    def _reach(self, scheme: Scheme, step: float) -> float:
        if not step > 0:
            return 0.0
        return self._gap / max(1.0, -(-self._gap // step)) / scheme.evaluations

    def snapshot(self) -> tuple[float, ...]:
        """All of it, as numbers."""
        return self.evaluations, self._at, self._interval, self._target, self._gap

    def restore(self, snapshot) -> None:
        """Go back to a snapshot."""
        self.evaluations, self._at, self._interval = (int(n) for n in snapshot[:3])
        self._target, self._gap = (float(t) for t in snapshot[3:])
