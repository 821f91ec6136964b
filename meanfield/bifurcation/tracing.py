"""One branch of stationary states, point by point, with its special points."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from .curve import Curve, Point
from .locating import Located, located
from .meeting import meeting
from .rates import Rates

__all__ = ["Branch", "Special", "trace"]

BRIEF = 5  # points after which a curve may have come back
CLOSE = 1e-9
ROUNDING = 1e-12  # of the largest rate
SHORTEST = 1e-3  # of the longest step: where a step that may have jumped is not tried again
SMALL = 0.02  # moments near the uniform state


@dataclass(frozen=True, eq=False)
class Special:
    """A special point on a branch.

    Attributes
    ----------
    kind : str
        "fold", "bifurcation" (order 0), "symmetry breaking" (higher orders), "transition".
    order : int
        Of the perturbation that becomes neutral.
    found : Located
    place : int
        The point of the branch after which it lies.
    """

    kind: str
    order: int
    found: Located
    place: int


@dataclass(eq=False)
class Branch:
    """Points of one curve, and what was found on it.

    Attributes
    ----------
    curve : Curve
    parent, degree : int
        The branch that it left (-1 for the uniform one), and the degree of the harmonic.
    points : list of Point
    rates : list of list of ndarray
        Of every point, by order; empty if they were not asked for.
    energies : list of float
        F - F(uniform) of every point.
    specials : list of Special
    end : str
        Why it ends: "range", "uniform", "bifurcation" (on a branch of more symmetry, beyond which
        it is its own mirror image), "closed", "max_points" or "not continued".
    """

    curve: Curve
    parent: int
    degree: int
    points: list[Point] = field(default_factory=list)
    rates: list[list[np.ndarray]] = field(default_factory=list)
    energies: list[float] = field(default_factory=list)
    specials: list[Special] = field(default_factory=list)
    end: str = ""

    def add(self, point: Point, rates: list[np.ndarray], energy: float) -> None:
        """A point at the end."""
        self.points.append(point)
        self.rates.append(rates)
        self.energies.append(energy)

    def cut(self, high: float) -> bool:
        """Keep what is between points below a value, and one beyond; whether anything is left."""
        inside = [i for i, point in enumerate(self.points) if point.value <= high]
        if not inside:
            return False
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 2, len(self.points))
        if last < len(self.points):
            self.end = "range"
        kept = slice(first, last)
        self.points, self.rates, self.energies = (
            self.points[kept], self.rates[kept], self.energies[kept]
        )  # fmt: skip
        self.specials = [s for s in self.specials if first <= s.place < last - 1]
        return True

    def drop(self) -> Point:
        """Take the last point away."""
        self.rates.pop()
        self.energies.pop()
        return self.points.pop()


def trace(
    branch: Branch, start: Point, span: tuple[float, float], most: int, watch: Rates | None,
    top: float = np.inf,
) -> Iterator[Branch]:  # fmt: skip
    """Follow a branch from a point, yielding it after every new one, until it ends.

    Growth rates are computed up to the value `top`, and once beyond it.
    """
    curve, tests = branch.curve, _Tests(branch.curve, watch)
    before = tests.at(start, True)
    branch.add(start, before.rates, before.energy)
    branch.end = "max_points" if most == 1 else ""
    yield branch
    if branch.end:
        return
    step = curve.max_step / 4
    while (found := curve.stepped(branch.points[-1], step)) is not None:
        new, step, proposal = found
        last, branch.end = branch.points[-1], _end(branch, new, span, most)
        met = None if branch.end == "uniform" else meeting(curve, last, new)
        if met is not None:
            new, step = met.point, curve.distance(last, met.point)
            branch.end = "bifurcation" if span[0] <= new.value <= span[1] else "range"
        after = tests.at(new, last.value <= top)
        specials = tests.between(last, step, before, after, met, len(branch.points) - 1)
        if step > SHORTEST * curve.max_step and any(map(_jumps, specials)):
            step, branch.end = step / 4, ""
            continue
        branch.specials += [s for s in specials if span[0] <= s.found.point.value <= span[1]]
        branch.add(new, after.rates, after.energy)
        before, step = after, proposal
        yield branch
        if branch.end:
            return
    branch.end = "not continued"


def _jumps(special: Special) -> bool:
    """Whether the step led to another curve: a determinant changes its sign without a zero."""
    return special.kind == "bifurcation" and special.found.status == "not located"


def _end(branch: Branch, new: Point, span: tuple[float, float], most: int) -> str:
    start, number = branch.points[0], len(branch.points) + 1
    if not span[0] <= new.value <= span[1]:
        return "range"
    if number >= most:
        return "max_points"
    if number <= BRIEF:
        return ""
    last, first = branch.points[-1], np.abs(start.a).max()
    if np.abs(new.a).max() < min(first, SMALL) / 2 or new.a @ last.a < 0:
        return "uniform"
    if len(start.z) != len(new.z):
        return ""
    near = np.linalg.norm(new.z - start.z) < np.linalg.norm(new.z - last.z)
    return "closed" if near else ""


@dataclass(frozen=True)
class _Values:
    turning: float
    singular: float
    energy: float
    rates: list[np.ndarray]


class _Tests:
    """Functions that vanish at special points."""

    def __init__(self, curve: Curve, watch: Rates | None):
        self._curve, self._watch = curve, watch

    def at(self, point: Point, watched: bool) -> _Values:
        rates = self._watch.at(point) if self._watch is not None and watched else []
        energy = self._energy(point)
        return _Values(point.tangent[-1], self._singular(point, point), energy, rates)

    def between(self, first: Point, step: float, before: _Values, after: _Values,
                met: Located | None, number: int):  # fmt: skip
        """The special points in a step, and that at its end if it meets a branch there."""
        found: list[Special] = [] if met is None else [Special("bifurcation", 0, met, number)]

        def add(kind: str, order: int, f: Callable[[Point], float], low: float, high: float):
            place = located(self._curve, first, step, f, low, high)
            found.append(Special(kind, order, place, number))

        if before.turning * after.turning < 0:
            add("fold", 0, lambda p: p.tangent[-1], before.turning, after.turning)
        if met is None and before.singular * after.singular < 0:
            add("bifurcation", 0, partial(self._singular, first), before.singular, after.singular)
        if before.energy * after.energy < 0:
            add("transition", 0, self._energy, before.energy, after.energy)
        for order in range(1, min(len(before.rates), len(after.rates))):
            low, high = before.rates[order], after.rates[order]
            for i in _crossing(low, high):
                add("symmetry breaking", order, partial(self._rate, order, i), low[i], high[i])
                if len(found) > 1 and _same(*found[-2:]):  # of two equal rates
                    found.pop()
        return found

    def _rate(self, order: int, i: int, point: Point) -> float:
        assert self._watch is not None
        return float(self._watch.of_order(point, order)[i])

    def _energy(self, point: Point) -> float:
        equation, kappa = self._curve.path.at(point.p)
        return equation.free_energy(point.a, kappa)

    def _singular(self, near: Point, point: Point) -> float:
        """By the tangent of a point near by, as none is known where two curves cross."""
        return self._curve.singular(point.z, near.tangent)


def _same(one: Special, other: Special) -> bool:
    close = abs(one.found.point.value / other.found.point.value - 1) < CLOSE
    return one.kind == other.kind and one.order == other.order and close


def _crossing(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which of the sorted rates change their sign, by more than rounding."""
    size = min(len(low), len(high))
    low, high = low[:size], high[:size]
    seen = np.maximum(np.abs(low), np.abs(high)) > ROUNDING * np.abs(low).max(initial=0.0)
    return np.flatnonzero((low * high < 0) & seen)
