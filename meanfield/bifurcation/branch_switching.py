"""Starts of branches at the uniform state and at other branches, followed to their ends."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import mul, truediv
from typing import Any

import numpy as np

from ..spaces.validity import NEGATIVE_SHARE, degree_above
from .bases import fold_of
from .branch_matching import AMPLITUDE, CROSSINGS, LEAST_AMPLITUDE, Branch, FollowedBranches, sized
from .continuation import SHORT_STEPS, CurvePoint, StationaryCurve
from .detection import Special, TestFunctions, across, at_one_place, meeting
from .normal_forms import (
    CLOSEST,
    LARGE_SHARE,
    VANISHES,
    Neutral,
    Onset,
    Ray,
    Rays,
    neutral_at,
    rays,
)
from .reflections import ROTATION_ROUNDING
from .stability import neutral_among

PAIR = 2  # perturbations of a Hopf point; of fewer, no two become neutral at once
ALONG = 1e-3  # of log kappa: difference for derivatives along a branch
AMPLITUDE_PART = 3  # a branch starts at a third of the amplitude of its first fold or bifurcation
CLEARANCE_PART = 5  # a branch starts at a fifth of the distance to the next special point
FIRST_STEP_PART = 0.6  # first step, in units of the amplitude of the first point
NEAR_UNIFORM = 0.05  # largest L^2 norm of the first point of a branch from the uniform state
FEWEST_POINTS = 5  # with fewer points, a curve is not tested for closure
RANGE_EDGE = 1e-6  # of a range: a curve that stops so near an end has reached it
SHORTEST_STEP_PART = 1e-3  # of the longest step: shorter ones that may have jumped are kept
SMALL_MOMENT = 0.02  # largest moment of a state near the uniform one
REACH_ABOVE_ONSET = 1.5  # times an onset above the range: where its branch is given up
# Ends of branches that stay above the range, and of branches that may enter it:
ENDS_OUTSIDE, ENDS_CUT_SHORT = (
    ("range", "uniform", "closed", "bifurcation"),
    ("unresolved", "not continued", "short steps", "max_points"),
)  # fmt: skip
ABOVE_RANGE, COARSER_BEYOND = 1.1, 4  # beyond 1.1 times the range, a fourth of the highest degree
CROSSING_SINGULAR_VALUE = 1e-6
NEUTRAL = 1e-6  # largest neutral eigenvalue, relative to the largest eigenvalue
SYMMETRIC_DIRECTION = 1e-6  # largest odd component of a symmetric direction
INTERRUPTED = "{what} was interrupted; what would have come after it is missing."


def _jumps(special: Special) -> bool:
    """Whether a step may have jumped to another curve: a sign change without a zero."""
    return special.kind == "bifurcation" and special.status == "not located"


@dataclass(eq=False)
class BranchSearch:
    """Search for all branches in a range of the parameter.

    Parameters
    ----------
    curve : StationaryCurve
        Curve with the basis in which branches begin.
    span : (float, float)
        Range of the parameter in which branches are followed.
    most : int
        Largest number of points of one branch.
    orders : int
        Number of orders of perturbations for which growth rates are computed.
    top : float
        Growth rates are not computed above this value of the parameter.
    stopped : callable
        () -> bool: whether to stop.
    until : callable
        Branch -> bool, after every new point: whether to stop the branch there.

    Attributes
    ----------
    branches : FollowedBranches
    missing : list of str
        Sentences that say what is missing.
    lower : list of float
        Free energies of states at the first onset that lie on no branch.
    """

    curve: StationaryCurve
    span: tuple[float, float]
    most: int
    orders: int = 0
    top: float = np.inf
    stopped: Callable[[], bool] = lambda: False
    until: Callable[["Branch"], bool] = lambda branch: False
    branches: FollowedBranches = field(default_factory=FollowedBranches)
    missing: list[str] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)

    def from_uniform(self, onset: Onset) -> Iterator[Branch]:
        """Follow the branches of one onset; yields the current one after every new point.

        Both signs of the amplitude, unless one branch is the mirror image of the other.
        """
        form, curve, basis = onset.form, self.curve, self.curve.basis
        for degree, distance in form.close.items():
            if distance > VANISHES:
                self._report_close(onsets_of([form.degree, degree]), distance)
        slow, equation = onset.slow(basis.degrees), curve.at(onset.coordinate)[0]
        found = rays(equation, form, onset.paces) if form.close and not slow else None
        if slow or (found is not None and found.order == "degenerate"):
            self._report_undecided(onsets_of([form.degree, *form.close]))
        amplitude = float(np.clip(form.scale / AMPLITUDE_PART, LEAST_AMPLITUDE, AMPLITUDE))
        for ray in _rays_of(curve, onset, found):
            row, way = (np.append(f(ray.direction, basis.sizes), 0.0) for f in (mul, truediv))
            for sign in (1.0,) if basis.mirrored(ray.direction) else (1.0, -1.0):
                t = sign * amplitude
                m = t * way[:-1] + t**2 * ray.second
                z = np.append(m, onset.ahead(ray.linear, ray.quadratic, t))
                begun = curve.solved(z, row, t)
                if begun is None:
                    self._report_missing(f"the onset of degree {form.degree}", onset.value)
                elif not self.branches.knows(curve, begun, amplitude):
                    start = curve.point(begun, sign * way)
                    yield from self.followed(start, curve, -1, form.degree, amplitude)

    def from_above(self, onset: Onset) -> Iterator[Branch]:
        """Follow branches of an onset above the range, from where they enter the range.

        Yields branches above the range too, which are left out in the end.
        """
        high, span = self.span[1], (self.span[0], REACH_ABOVE_ONSET * onset.value)
        outside = BranchSearch(self.curve, span, self.most)
        for branch in outside.from_uniform(onset):
            yield branch
            values = [branch.points[-1].value, *(s.point.value for s in branch.specials[-1:])]
            if min(values) <= high:  # the branch entered the range in its last step
                branch.end = "inside"
        self.missing += outside.missing
        for branch in outside.branches:
            inside = branch.end == "inside"
            z = _at(branch, high) if inside and len(branch.points) > 1 else None
            if z is not None:
                yield from self.from_edge(branch.curve, z, high, branch.degree)
            elif inside and len(branch.points) == 1:  # it begins just below the onset
                yield from self.followed(branch.points[0], branch.curve, -1, branch.degree)
            elif (
                branch.end not in ENDS_OUTSIDE and branch.points[-1].tangent[-1] < 0
            ):  # on its way down
                self._report_missing(f"the onset of degree {branch.degree}", onset.value)

    def from_edge(
        self, curve: StationaryCurve, z: np.ndarray, edge: float, degree: int
    ) -> Iterator[Branch]:
        """Follow the branch of a state at an end of the range inwards, unless it was followed."""
        if not self.branches.knows(curve, z):
            inwards = np.append(np.zeros(len(z) - 1), 1.0 if edge == self.span[0] else -1.0)
            start = curve.point(z, inwards)._replace(value=edge)
            yield from self.followed(start, curve, -1, degree)

    def through(self, curve: StationaryCurve, z: np.ndarray, degree: int) -> Iterator[Branch]:
        """Follow the branch through a state in both directions: upwards, then back from there."""
        upwards = np.append(np.zeros(len(z) - 1), 1.0)
        half = BranchSearch(
            self.curve, self.span, self.most, stopped=self.stopped, until=self.until
        )
        for branch in half.followed(curve.point(z, upwards), curve, -1, degree):
            if self.stopped():
                branch.end = "interrupted"
        way = half.branches[0]
        inside = [point for point in way.points if self.span[0] <= point.value <= self.span[1]]
        last = inside[-1]
        back = last._replace(tangent=-last.tangent)
        yield from self.followed(back, way.curve, -1, degree, retraced=z)

    def from_branches(self, done: int = 0, most: float = np.inf) -> Iterator[Branch]:
        """Follow branches that bifurcate from branches number `done`, ..., `most` - 1.

        New branches are appended, so that those that bifurcate from them follow if `most` permits.
        """
        while done < min(len(self.branches), most):
            parent, counted = self.branches[done], set[int]()
            for special in list(parent.specials):
                if id(special) in counted:
                    continue
                starts, together = self._several(parent, special)
                counted |= set(map(id, together))
                fresh = len(self.branches)
                for curve, z, direction in starts or self._crossed(parent, special):
                    for branch in self._leaving(done, curve, z, direction, together, fresh):
                        own = _origin(parent.curve_at(special), direction, together)
                        branch.origin = own or special
                        yield branch
            done += 1

    def cut(self, high: float) -> None:
        """Drop branches, or their ends, above `high`; adds warnings."""
        for branch in self.branches:
            last = branch.points[-1]
            if branch.end in ENDS_CUT_SHORT and last.value > high and last.tangent[-1] < 0:
                self.missing.append(
                    f"a branch of degree {branch.degree} that comes down from above the range was "
                    f"followed to {self.curve.parameter} = {last.value:.6g}, and may come into it: "
                    "take a range up to there."
                )
        self.branches[:] = [branch for branch in self.branches if branch.cut(high)]

    def followed(
        self, start: CurvePoint, curve: StationaryCurve, parent: int = -1, degree: int = 0,
        near: float = AMPLITUDE, retraced: np.ndarray | None = None,
    ) -> Iterator[Branch]:  # fmt: skip
        """Follow a branch to its end; yields it after every new point.

        The degree of truncation is raised by a half where a point is not resolved. The first step
        is shorter if the amplitude `near` of the first point is small. The branch is not stopped by
        `until` before it has passed the point `retraced`.
        """
        branch = Branch(curve, parent, degree, retraced=retraced)
        self.branches.append(branch)
        step = curve.max_step / 4
        if near < AMPLITUDE:
            change = np.linalg.norm(curve.basis.sizes * start.tangent[:-1])
            step = min(step, FIRST_STEP_PART * near / float(change))
        while True:
            for _ in self._traced(branch, start, step):
                last = branch.points[-1]
                if not branch.curve.resolves(last, curve.basis.unresolved):
                    break
                yield branch
            else:
                return
            finer, basis = 3 * branch.curve.basis.degree // 2, branch.curve.basis
            left = last.value > ABOVE_RANGE * self.top and branch.points[-2:][0].value > self.top
            if finer > basis.most // (COARSER_BEYOND if left else 1):
                branch.end = "unresolved"
                if last.value <= self.top:
                    needed = degree_above(basis.degree, basis.highest, last.m, basis.unresolved)
                    self.missing.append(
                        f"the branch that ends before {self.curve.parameter} = {last.value:.6g} "
                        f"needs {needed}; branches have at most {basis.most}. For single states "
                        "take stationary with a larger max_degree."
                    )
                if len(branch.points) > 1:
                    branch.points.pop()
                return
            curve = branch.curve.finer(finer)
            branch.points.pop()
            z, row = curve.padded(last.z), curve.padded(last.tangent)
            begun = curve.solved(z, row, row @ z)
            if begun is None:
                branch.end = "not continued"
                return
            branch.coarser.append(branch.curve)
            branch.curve, start, step = curve, curve.point(begun, row), curve.max_step / 4

    def _traced(self, branch: Branch, start: CurvePoint, step: float) -> Iterator[None]:
        """Add points to a branch from `start` until it ends; yields after every new one.

        Growth rates are computed up to the parameter value `top`, and at one point beyond it.
        """
        curve, tests = branch.curve, TestFunctions(branch.curve, self.orders)
        (low, high), short = self.span, 0
        branch.points.append(tests.at(start, True))
        branch.end = "max_points" if self.most == 1 else ""
        yield
        while not branch.end:
            last = branch.points[-1]
            stepped = curve.stepped(last, step)
            if stepped is None:
                edge = min(abs(end - last.value) for end in self.span)
                branch.end = "range" if edge < RANGE_EDGE * (high - low) else "not continued"
                return
            new, step, proposal = stepped
            branch.end = self._end(branch, new)
            met = None if branch.end == "uniform" else meeting(curve, last, new)
            if met is not None:
                new, step = met.point, curve.distance(last, met.point)
                branch.end = "bifurcation" if low <= new.value <= high else "range"
            new = tests.at(new, last.value <= self.top)
            specials = tests.between(last, step, new, met, len(branch.points) - 1)
            if step > SHORTEST_STEP_PART * curve.max_step and any(map(_jumps, specials)):
                step, branch.end = step / 4, ""
                continue
            branch.specials += [s for s in specials if low <= s.point.value <= high]
            branch.points.append(new)
            if not branch.retraces() and not branch.end and self.until(branch):
                branch.end = "stopped"
            short = curve.shrinking(short, step)
            if short > SHORT_STEPS and not branch.end:
                branch.end = "short steps"
                for sentence in curve.sentences_of_kinks(new.z):
                    self._report(sentence)
            step = proposal
            yield

    def _end(self, branch: Branch, new: CurvePoint) -> str:
        """Reason why a branch ends with a new point; empty if it continues."""
        start, number = branch.points[0], len(branch.points) + 1
        if not self.span[0] <= new.value <= self.span[1]:
            return "range"
        if number >= self.most:
            return "max_points"
        if not branch.curve.basis.symmetric:
            equation, kappa = branch.curve.at(new.p)
            if equation.negativity(equation.mean(new.m, kappa)) > NEGATIVE_SHARE:
                return "negative"
        if number <= FEWEST_POINTS:
            return ""
        last, first = branch.points[-1], np.abs(start.m).max()
        small = np.abs(new.m).max() < min(first, SMALL_MOMENT) / 2
        if self.curve.basis.symmetric and (small or new.m @ last.m < 0):
            return "uniform"
        if len(start.z) != len(new.z):
            return ""
        near = np.linalg.norm(new.z - start.z) < np.linalg.norm(new.z - last.z)
        return "closed" if near else ""

    def _crossed(
        self, parent: Branch, special: Special
    ) -> Iterator[tuple[StationaryCurve, np.ndarray, np.ndarray]]:
        """Curves that cross a branch at a special point, as (curve, z, direction)."""
        curve = parent.curve_at(special)
        basis: Any = curve.basis
        z, tangent = curve.padded(special.point.z), curve.padded(special.point.tangent)
        if special.kind == "bifurcation":
            direction = across(curve.kernel(z)[0], tangent)
            symmetric, _ = basis.fitted(z[:-1])  # more symmetric at the end of a branch
            odd = symmetric.orders_of_functions > 0
            if np.abs(direction[:-1][odd]).max(initial=0.0) < SYMMETRIC_DIRECTION:
                direction[:-1][odd] = 0.0
                curve = curve.among(symmetric)
            yield curve, z, direction
        yield from (self._second_axis if basis.symmetric else self._breaking)(curve, special, z)

    def _several(
        self, parent: Branch, special: Special
    ) -> tuple[list[tuple[StationaryCurve, np.ndarray, np.ndarray]], list[Special]]:
        """Curves that begin where several perturbations become neutral at once, or almost so.

        As (curve, z, (dm, dp)), along the rays of their normal form, and the special points of
        these perturbations. Empty where they do not meet at small amplitudes, or without rays.
        """
        curve: Any = parent.curve_at(special)
        basis = curve.basis
        z, tangent = (curve.padded(one) for one in (special.point.z, special.point.tangent))
        begun = parent.origin  # next to which the perturbations of that are almost neutral too
        begins = begun is not None and np.linalg.norm(sized(begun.point.z, z) - z) < NEAR_UNIFORM
        if basis.symmetric or begins or special.kind not in (*CROSSINGS, "Hopf"):
            return [], []
        degrees, number = _almost_neutral(curve, z), self.branches.index(parent)
        if special.kind == "Hopf" and len(degrees) > PAIR:
            self._report_undecided(onsets_of(degrees, number))
        if special.kind == "Hopf" or len(degrees) < PAIR:
            return [], []
        starts, spans = [], []
        for inner, neutral, found, slope in _neutral_groups(curve, z, tangent):
            what = onsets_of(neutral.degrees, number)
            if found.order == "degenerate":
                self._report_undecided(what)
            elif neutral.distance > VANISHES:
                self._report_close(what, neutral.distance)
            for ray in found.rays:
                direction = np.append(ray.direction / basis.sizes, 0.0)
                starts.append((inner, z, direction + ray.linear * slope))
                spans.append(basis.sizes[:, None] * neutral.right)
        return starts, _coinciding(curve, parent, special, z, spans) if starts else []

    def _second_axis(
        self, curve: StationaryCurve, special: Special, z: np.ndarray
    ) -> Iterator[tuple[StationaryCurve, np.ndarray, np.ndarray]]:
        """The curve of states even about the other axis of a k-fold state on the circle, even k.

        These are inequivalent axes; for the second one the mirror image of the state is used.
        """
        if special.order > 1 or fold_of(curve.basis, z[:-1]) % 2:
            return
        signs = np.append(curve.basis.images(z[:-1])[0], 1.0)
        kernel, size = curve.kernel(signs * z)
        if size < CROSSING_SINGULAR_VALUE:
            tangent = curve.padded(special.point.tangent)
            yield curve, signs * z, across(kernel, signs * tangent)

    def _breaking(
        self, curve: StationaryCurve, special: Special, z: np.ndarray
    ) -> Iterator[tuple[StationaryCurve, np.ndarray, np.ndarray]]:
        """The curve of less symmetric states, or of waves that turn, by a neutral perturbation."""
        basis: Any = curve.basis
        turns = special.kind == "Hopf" and bool(basis.rotations)  # a rotating wave begins
        if special.kind != "symmetry breaking" and not turns:
            return
        size, way = _neutral(curve, special)
        if size > NEUTRAL:
            self._report_missing("another one where it loses a reflection", special.point.value)
            return
        yield curve.among(basis.without(special.order)), z, np.append(way / basis.sizes, 0.0)

    def _leaving(
        self,
        parent: int,
        curve: StationaryCurve,
        place: np.ndarray,
        direction: np.ndarray,
        together: list[Special],
        fresh: int,
    ) -> Iterator[Branch]:
        """Follow the branches that cross a parent at the bifurcation z = `place`, if new."""
        scale = np.append(curve.basis.norms, 1 / curve.rate(place))
        near = self._clearance(parent, curve, place, together)
        change = near / np.linalg.norm(scale * direction) * direction
        for sign in (1.0, -1.0):
            z = place + sign * change
            begun = curve.solved(z, direction, float(direction @ z))
            if begun is None:
                where = f"the bifurcation on branch {parent + curve.basis.symmetric}"
                self._report_missing(where, curve.value(place[-1]))
            elif not self.branches.knows(curve, begun, near, fresh):
                start = curve.point(begun, sign * direction)
                degree = self.branches[parent].degree
                if not curve.basis.symmetric:  # that of the largest component of the direction
                    largest = np.abs(curve.basis.sizes * direction[:-1]).argmax()
                    degree = int(curve.basis.degrees[largest])
                yield from self.followed(start, curve, parent, degree, near)

    def _clearance(
        self, parent: int, curve: StationaryCurve, place: np.ndarray, together: list[Special]
    ) -> float:
        """Amplitude of the first point of a branch, at most a fifth of the distance to others.

        Near another bifurcation of the parent, of the square root of their distance, at which cubic
        terms let branches meet; those that count as one with this are left out.
        """
        scale = np.append(curve.basis.norms, 1 / curve.rate(place))
        own = set(map(id, together))
        others = (s for s in self.branches[parent].specials if id(s) not in own)
        points = [s.point.z for s in others if s.kind in CROSSINGS]
        ways = [scale * (place - sized(z, place)) for z in points]
        begun = self.branches[parent].origin
        if curve.basis.symmetric:
            ways.append((scale * place)[:-1])  # from the uniform state
        elif begun is not None:
            ways.append(scale * (place - sized(begun.point.z, place)))
        sizes = np.array([np.linalg.norm(way) for way in ways])
        sizes = sizes[sizes > CLOSEST**2]
        sizes = np.where(sizes > LEAST_AMPLITUDE, sizes, np.sqrt(sizes))
        return min(AMPLITUDE, float(sizes.min(initial=np.inf)) / CLEARANCE_PART)

    def _report_missing(self, where: str, value: float) -> None:
        """Add a sentence about a bifurcating branch that was not found."""
        self._report(
            f"a branch that leaves {where}, {self.curve.parameter} = {value:.6g}, was not found: "
            "look for states beyond it with stationary_states."
        )

    def _report_close(self, what: str, distance: float) -> None:
        """Add a sentence about onsets so close that they are treated as one.

        `distance` is that of the values of log kappa, whatever the parameter.
        """
        self._report(
            f"{what} differ by {distance:.1e} of kappa, and count as one: "
            "branches that cross at amplitudes as small as that are not told from those that begin "
            "there."
        )

    def _report_undecided(self, what: str) -> None:
        """Add a sentence about coinciding onsets whose branches are not determined."""
        self._report(
            f"{what} coincide, and their normal form up to third order does not decide which "
            "branches begin there: look for states near the onset with stationary_states."
        )

    def _report(self, sentence: str) -> None:
        """Add a sentence about what is missing, once."""
        if sentence not in self.missing:
            self.missing.append(sentence)


def onsets_of(degrees: Iterable[int], number: int = 0) -> str:
    """Begin a sentence about the onsets of some degrees on a branch, in order and each once."""
    *others, last = map(str, sorted(set(degrees)))
    join = " and " if len(others) == 1 else ", "
    where = f" on branch {number}" if number else ""
    return f"the onsets of degree{'s' * bool(others)} {join.join([*others, last])}{where}"


def _almost_neutral(curve: StationaryCurve, z: np.ndarray) -> list[int]:
    """Degree of each perturbation of a state, rotations excepted, that almost neither grows nor
    decays."""
    equation, kappa = curve.at(z[-1])
    found: list[int] = []
    for order in range(curve.basis.orders):
        part = curve.basis.of_order(order)
        values, vectors = np.linalg.eig(equation.linearised(z[:-1], kappa, part))
        largest = np.abs(vectors).argmax(axis=0)
        close = kappa * np.abs(values.real) <= CLOSEST * part.eigenvalues[largest]
        close[neutral_among(values, part, z[:-1])] = False
        found += map(int, part.degrees[largest[close]])
    return found


def _neutral_groups(
    curve: Any, z: np.ndarray, tangent: np.ndarray
) -> Iterator[tuple[StationaryCurve, Neutral, Rays, np.ndarray]]:
    """Curves of less symmetry on which several perturbations of a state are neutral, and these.

    Also their rays, none if the branch does not go on to both sides, and dz/dp of the branch by
    central differences.
    """
    p, small = z[-1], ALONG * curve.rate(z)
    starts = [(step, z + step * tangent / (tangent[-1] or np.inf)) for step in (small, -small)]
    ends = [curve.at_value(start, curve.value(p + step)) for step, start in starts]
    known = all(end is not None for end in ends)
    slope = np.subtract(*ends) / (2 * small) if known else 0.0 * z
    for group in curve.basis.steady:
        inner, change = curve.among(curve.basis.keeping(group)), -np.eye(len(z) - 1)
        if known:
            change = np.subtract(*map(inner.jacobian, ends))[:, :-1] / (2 * small)
        equation, kappa = inner.at(p)
        if (neutral := neutral_at(equation, kappa, z[:-1], change)) is not None:
            yield inner, neutral, neutral.rays() if known else Rays([], False), slope


def _coinciding(
    curve: StationaryCurve, parent: Branch, special: Special, z: np.ndarray,
    spans: list[np.ndarray],
) -> list[Special]:  # fmt: skip
    """Special points of a branch whose perturbations are among those neutral at one of them.

    `spans` (N, k) have in columns, of norm 1 in L^2, the perturbations that are neutral together.
    """
    near = 2 * CLOSEST * curve.rate(z)
    others = (one for one in parent.specials if one.kind in CROSSINGS)
    close = [one for one in others if abs(one.point.p - special.point.p) <= near]
    modes = [(one, _neutral(curve, one)[1]) for one in close]
    spanned = [
        one for one, mode in modes
        if max(float(((mode @ span) ** 2).sum()) for span in spans) > LARGE_SHARE
    ]  # fmt: skip
    same = [special, *spanned]
    return [one for one in close if any(at_one_place(one, other) for other in same)]


def _neutral(curve: StationaryCurve, special: Special) -> tuple[float, np.ndarray]:
    """The eigenvalue of the neutral perturbation of a special point, and its vector in L^2, (N,).

    The size of the eigenvalue is relative to the largest one; of oscillations that of its real
    part. Rotations of the state, which are neutral too, are projected out.
    """
    basis, z = curve.basis, curve.padded(special.point.z)
    equation, kappa = curve.at(z[-1])
    part: Any = basis.of_order(special.order)
    values, vectors = np.linalg.eig(equation.linearised(z[:-1], kappa, part))
    sizes = np.abs(values.real if special.kind == "Hopf" else values)
    _, strengths, turned = np.linalg.svd(
        part.sizes * part.rotation_tangents(z[:-1]), full_matrices=False
    )
    turned = turned[strengths > ROTATION_ROUNDING]
    least = np.argsort(sizes)[: len(turned) + 1]
    plane = vectors[:, least].real
    way = np.zeros(len(basis.degrees))
    way[part.members] = np.linalg.svd(plane - turned.T @ (turned @ plane))[0][:, 0]
    return float(sizes[least[-1]] / np.abs(values).max()), way


def _origin(curve: StationaryCurve, way: np.ndarray, points: list[Special]) -> Special | None:
    """The one of several special points whose perturbation has the lowest degree in `way`."""
    if not points:
        return None
    basis = curve.basis
    present = np.flatnonzero(np.abs(basis.sizes * way[:-1]) > SYMMETRIC_DIRECTION)
    order = basis.orders_of_functions[present[0]]
    return next((one for one in points if one.order == order), None)


def _rays_of(curve: StationaryCurve, onset: Onset, found: Rays | None) -> list[Ray]:
    """Directions in which branches leave an onset, without those counted for a lower degree.

    `found` are the rays of several onsets, None for one alone.
    """
    form, degrees = onset.form, curve.basis.degrees
    if found is None:
        alone = (degrees == form.degree).astype(float)
        return [Ray(alone, form.linear, form.quadratic, form.second)]
    present = [degrees[ray.direction != 0] for ray in found.rays]
    pairs = zip(found.rays, present, strict=True)
    own = [ray for ray, there in pairs if min(there, default=0) == form.degree]
    if own:
        return own
    return [ray for ray, there in zip(found.rays, present, strict=True) if form.degree in there]


def _at(branch: Branch, value: float) -> np.ndarray | None:
    """The point z at a value within the last step of a branch; None if Newton's method fails."""
    last, new = branch.points[-2:]
    part = (last.value - value) / (last.value - new.value) if new.value < value else 0.0
    first, second = (branch.curve.padded(point.z) for point in (last, new))
    return branch.curve.at_value(first + part * (second - first), value)
