"""Branches from the uniform state, and from others: begun, resolved, followed to their ends."""

from collections.abc import Callable, Iterator

import numpy as np

from .curve import Curve, Point
from .meeting import across
from .mirror import fold_of, image
from .path import Onset, Path
from .rates import Rates
from .tracing import Branch, Special, trace

__all__ = ["Growth", "resized"]

AMPLITUDE = 0.02
BEYOND = 1.5  # times an onset above the range: how far its branch may rise
GONE = ("range", "uniform", "closed", "bifurcation")  # ends of branches that do not come in
LOST = ("unresolved", "not continued", "max_points")  # ends of branches that may come in
FINE, COARSER = 1.1, 4  # above 1.1 times the range no more than a fourth of the moments are taken
SINGULAR = 1e-6
UNRESOLVED = 1e-12


class Growth:
    """All branches along a path.

    Parameters
    ----------
    path : Path
    span : (float, float)
        Of the parameter: where branches are followed.
    most : int
        Points of one branch.
    orders : int
        Of perturbations that are looked at.
    max_step : float
    top : float
        Growth rates are not computed above it.
    stopped : callable
        () -> bool: whether to give up.

    Attributes
    ----------
    found : list of Branch
        Those that were begun, in order.
    missing : list of str
        What was not found, in words.
    """

    def __init__(self, path: Path, span: tuple[float, float], most: int, orders: int,
                 max_step: float, top: float = np.inf,
                 stopped: Callable[[], bool] = lambda: False):  # fmt: skip
        self.top, self.stopped = top, stopped
        self.path, self.span, self.most = path, span, most
        self.orders, self.max_step = orders, max_step
        self.found: list[Branch] = []
        self.missing: list[str] = []

    def from_uniform(self, onset: Onset) -> Iterator[Branch]:
        """The branches of one onset, each yielded after every new point.

        On both sides of the uniform state, unless one is the mirror image of the other.
        """
        form, basis = onset.form, self.path.basis
        index = int(np.flatnonzero(basis.degrees == form.degree)[0])
        row = np.zeros(len(basis.degrees) + 1)
        row[index] = 1.0
        mirrored = basis.dimension == 2 or form.degree % 2 == 1
        for sign in (1.0,) if mirrored else (1.0, -1.0):
            curve, size = Curve(self.path, self.max_step), sign * AMPLITUDE
            z = np.append(size * row[:-1] + size**2 * form.second, onset.ahead(size))
            if not np.isfinite(z).all():  # another degree has the same onset
                z = np.append(size * row[:-1], onset.ahead(0.0))
            begun = curve.solved(z, row, size)
            if not begun.converged:
                self._miss(f"the onset of degree {form.degree}", onset.value)
            elif not self._known(curve, begun.x):
                branch = Branch(curve, -1, form.degree)
                yield from self._followed(branch, curve.point(begun.x, sign * row))

    def from_above(self, onset: Onset) -> Iterator[Branch]:
        """The branches of an onset above the range, from where they come down into it."""
        high = self.span[1]
        outside = Growth(self.path, (self.span[0], BEYOND * onset.value), self.most, 0,
                         self.max_step)  # fmt: skip
        for branch in outside.from_uniform(onset):
            if self.stopped():
                return
            if min(_reached(branch)) <= high:
                branch.end = "inside"
        self.missing += outside.missing
        for branch in outside.found:
            inside = branch.end == "inside"
            z = _at(branch, high) if inside and len(branch.points) > 1 else None
            if z is not None:
                yield from self.from_edge(branch.curve, z, high, branch.degree)
            elif inside and len(branch.points) == 1:  # it begins just below the onset
                begun = Branch(branch.curve, -1, branch.degree)
                yield from self._followed(begun, branch.points[0])
            elif branch.end not in GONE and branch.points[-1].tangent[-1] < 0:  # on its way down
                self._miss(f"the onset of degree {branch.degree}", onset.value)

    def from_edge(self, curve: Curve, z: np.ndarray, edge: float, degree: int) -> Iterator[Branch]:
        """The branch through a state at an end of the range, inwards, unless it is known."""
        if not self._known(curve, z):
            inwards = np.append(np.zeros(len(z) - 1), 1.0 if edge == self.span[0] else -1.0)
            start = curve.point(z, inwards)._replace(value=edge)
            yield from self._followed(Branch(curve, -1, degree), start)

    def from_branches(self) -> Iterator[Branch]:
        """The branches that leave those found at bifurcations, and those that leave them."""
        done = 0
        while done < len(self.found):
            for special in list(self.found[done].specials):
                for point in self._crossed(self.found[done].curve, special):
                    yield from self._leaving(done, point)
            done += 1

    def cut(self, high: float) -> None:
        """Keep what is in a range up to `high`, and what connects it."""
        for branch in self.found:
            last = branch.points[-1]
            if branch.end in LOST and last.value > high and last.tangent[-1] < 0:
                self.missing.append(
                    f"a branch of degree {branch.degree} that comes down from above the range was "
                    f"followed to {self.path.parameter} = {last.value:.6g}, and may come into it: "
                    "take a range up to there."
                )
        self.found = [branch for branch in self.found if branch.cut(high)]

    def onward(self, curve: Curve, z: np.ndarray, direction: np.ndarray) -> Iterator[Branch]:
        """The branch through a state, in one direction."""
        yield from self._followed(Branch(curve, -1, 0), curve.point(z, direction))

    def _followed(self, branch: Branch, start: Point) -> Iterator[Branch]:
        """To its end, with more moments where they are needed."""
        self.found.append(branch)
        while True:
            path = branch.curve.path
            watch = Rates(path, self.orders) if self.orders else None
            for _ in trace(branch, start, self.span, self.most, watch, self.top):
                equation, kappa = path.at(branch.points[-1].p)
                if not equation.resolves(branch.points[-1].a, kappa, UNRESOLVED):
                    break
                yield branch
            else:
                return
            degree = 3 * path.basis.degree // 2
            outside = branch.points[-1].value > FINE * self.top
            if degree > path.basis.most // (COARSER if outside else 1):
                branch.end = "unresolved"
                if len(branch.points) > 1:
                    branch.drop()
                return
            curve = Curve(path.finer(degree), branch.curve.max_step)
            last = branch.drop()
            z, row = resized(last.z, curve), resized(last.tangent, curve)
            found = curve.solved(z, row, row @ z)
            if not found.converged:
                branch.end = "not continued"
                return
            branch.end = ""
            branch.curve, start = curve, curve.point(found.x, row)

    def _crossed(self, curve: Curve, special: Special) -> Iterator[Point]:
        """The states of a special point that other even functions lead away from.

        On the circle there are two axes about which a k-fold state with even k is even: perturbed
        states may be even about one of them or the other.
        """
        point, basis = special.found.point, curve.path.basis
        z, tangent = resized(point.z, curve), resized(point.tangent, curve)
        if special.kind == "bifurcation":
            yield point._replace(z=z, tangent=tangent)
        if special.order > 1 or fold_of(basis, z[:-1]) % 2:
            return
        signs = np.append(image(basis, z[:-1]), 1.0)
        if curve.kernel(signs * z)[1] < SINGULAR:
            yield point._replace(z=signs * z, tangent=signs * tangent)

    def _leaving(self, parent: int, point: Point) -> Iterator[Branch]:
        """The branches that cross another one at a bifurcation, if they are new."""
        curve = self.found[parent].curve
        direction = across(curve.kernel(point.z)[0], point.tangent)
        for sign in (1.0, -1.0):
            z = point.z + sign * AMPLITUDE * direction
            begun = curve.solved(z, direction, float(direction @ z))
            if not begun.converged:
                self._miss(f"the bifurcation on branch {parent + 1}", point.value)
            elif not self._known(curve, begun.x):
                branch = Branch(curve, parent, self.found[parent].degree)
                yield from self._followed(branch, curve.point(begun.x, sign * direction))

    def _miss(self, where: str, value: float) -> None:
        sentence = (
            f"a branch that leaves {where}, {self.path.parameter} = {value:.6g}, was not found: "
            "look for states beyond it with stationary_states."
        )
        if sentence not in self.missing:
            self.missing.append(sentence)

    def _known(self, curve: Curve, z: np.ndarray) -> bool:
        """Whether a state, or its mirror image, lies on a branch that was followed."""
        curves = [curve, *(branch.curve for branch in self.found)]
        finest = max(curves, key=lambda curve: len(curve.path.basis.degrees))
        state = resized(z, finest)
        mirrored = np.append(image(finest.path.basis, state[:-1]), 1.0) * state
        for branch in self.found:
            points = np.array([resized(point.z, finest) for point in branch.points])
            if any(_distance(points, other) < AMPLITUDE / 2 for other in (state, mirrored)):
                return True
        return False


def _reached(branch: Branch) -> list[float]:
    """Values of the parameter to which the last step led."""
    return [branch.points[-1].value, *(s.found.point.value for s in branch.specials[-1:])]


def _at(branch: Branch, value: float) -> np.ndarray | None:
    """The state at a value in the last step of a branch, None if that is not found."""
    last, new = branch.points[-2:]
    part = (last.value - value) / (last.value - new.value) if new.value < value else 0.0
    first, second = (resized(point.z, branch.curve) for point in (last, new))
    return branch.curve.at_value(first + part * (second - first), value)


def _distance(points: np.ndarray, z: np.ndarray) -> float:
    """From z to the polygon through points."""
    sides, ways = np.diff(points, axis=0), z - points
    lengths = np.maximum((sides**2).sum(axis=1), np.finfo(float).tiny)
    parts = np.clip((sides * ways[:-1]).sum(axis=1) / lengths, 0, 1)
    feet = np.vstack([points[:-1] + parts[:, None] * sides, points[-1:]])
    return float(np.linalg.norm(feet - z, axis=1).min())


def resized(z: np.ndarray, curve: Curve) -> np.ndarray:
    """With moments 0 of the degrees that a curve has more."""
    more = len(curve.path.basis.degrees) + 1 - len(z)
    return np.concatenate([z[:-1], np.zeros(more), z[-1:]])
