"""Branches, and the recognition of states and special points that lie on them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from .bases import fold_of
from .continuation import CurvePoint, StationaryCurve
from .detection import Special

AMPLITUDE, LEAST_AMPLITUDE = 0.02, 2e-4  # largest and least amplitude in L^2 of first points
# Parts of an amplitude by which states of one branch differ at most: of one followed before, and of
# one that begins at the same place; in fingerprints, without phases of degrees, by truncation
KNOWN_PART, DIRECTION_PART, FINGERPRINT_PART = 0.5, 0.1, 1e-5
NEARBY_MOMENTS, EQUAL_MOMENTS = 0.1, 1e-6  # of states: before Newton's method, and if equal
COINCIDENT_VALUE, COINCIDENT_MOMENTS = 1e-5, 1e-2  # parameter (relative), moments of equal points
CROSSINGS = ("bifurcation", "symmetry breaking")


@dataclass(eq=False)
class Branch:
    """Points of one branch in order, and the special points on it.

    Attributes
    ----------
    curve : StationaryCurve
    parent, degree : int
        Index of the branch from which it bifurcates (-1: the uniform state), and the degree of the
        harmonic with which it begins.
    points : list of CurvePoint
        With growth rates, if these are computed.
    specials : list of Special
    end : str
        Why it ends: "range", "uniform", "bifurcation" (on a branch of more symmetry, beyond which
        it continues as its own mirror image), "closed", "stopped" (by `until`), "negative" (no
        probability densities), "max_points", "unresolved", "short steps" or "not continued".
    origin : Special or None
        Special point of the parent branch from which it bifurcates.
    retraced : ndarray or None
        Point (m, p) up to which it only retraces another branch.
    coarser : list of StationaryCurve
        Curves of the lower degrees of truncation with which it begins.
    """

    curve: StationaryCurve
    parent: int
    degree: int
    points: list[CurvePoint] = field(default_factory=list)
    specials: list[Special] = field(default_factory=list)
    end: str = ""
    origin: Special | None = None
    retraced: np.ndarray | None = None
    coarser: list[StationaryCurve] = field(default_factory=list)

    def curve_at(self, special: Special) -> StationaryCurve:
        """The curve of the branch with the degree at which a special point was located."""
        curves, size = [*self.coarser, self.curve], len(special.point.m)
        return next(curve for curve in curves if len(curve.basis.degrees) >= size)

    def retraces(self) -> bool:
        """Whether the branch has still to pass the point `retraced`."""
        if self.retraced is not None and len(self.points) > 1:
            last = self.points[-1].z
            first, z = (sized(one, last) for one in (self.points[-2].z, self.retraced))
            step, way = last - first, z - first
            part = float(way @ step / (step @ step))
            apart = np.linalg.norm(way - part * step)
            if 0 <= part <= 1 and apart < np.linalg.norm(step) / 2:
                self.retraced = None
                return True
        return self.retraced is not None

    def across(self, p: float) -> Iterator[np.ndarray]:
        """Points (m, p) at a coordinate p, interpolated where the branch passes it."""
        for one, other in pairwise(self.points):
            if min(one.p, other.p) <= p <= max(one.p, other.p) and one.p != other.p:
                part = (p - one.p) / (other.p - one.p)
                yield one.z + part * (sized(other.z, one.z) - one.z)

    def cut(self, high: float) -> bool:
        """Drop the ends of the branch above a value.

        One point above `high` remains on each side. Returns whether anything is left.
        """
        inside = [i for i, point in enumerate(self.points) if point.value <= high]
        if not inside:
            return False
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 2, len(self.points))
        if inside[-1] + 1 < len(self.points):
            self.end = "range"
        self.points = self.points[first:last]
        self.specials = [s for s in self.specials if first <= s.place < last - 1]
        return True


class FollowedBranches(list[Branch]):
    """Branches in the order in which they were begun, and the recognition of their states."""

    def unify(self) -> None:
        """Replace special points by the equal ones of branches with more symmetry.

        Where two branches cross, the special point is taken from the branch with more symmetry, on
        which Newton's method is well conditioned. On the circle a k-fold state may lose its
        symmetry in two ways at once.
        """
        folds = [fold_of(branch.curve.basis, branch.points[0].m) for branch in self]
        for branch, fold in zip(self, folds, strict=True):
            known = [
                special for other, k in zip(self, folds, strict=True) if k > fold
                for special in other.specials
                if special.kind in CROSSINGS and special.status == "converged"
            ]  # fmt: skip
            for i, special in enumerate(branch.specials):
                same = [s for s in known if special.kind in CROSSINGS and _coincide(special, s)]
                if same:
                    point, like = same[0].point, branch.curve.uniform(special.point.value)
                    m, way = (sized(one, like) for one in (point.z, point.tangent))
                    point = point._replace(z=m, tangent=way)
                    _, interval, status, *_ = same[0]
                    branch.specials[i] = special._replace(
                        point=point, interval=interval, status=status
                    )

    def knows(
        self,
        curve: StationaryCurve,
        z: np.ndarray,
        near: float = AMPLITUDE,
        fresh: int | None = None,
    ) -> bool:
        """Whether a state, or a mirror image, lies on a branch followed so far.

        The distance from the polygon through the points, in moments and the change of log kappa
        equivalent to that of p, must be less than `near` / 2; from those of branches number
        `fresh`, ..., that begin at one place with this one, much less.
        """
        curves = [curve, *(branch.curve for branch in self)]
        finest = max(curves, key=lambda curve: len(curve.basis.degrees))
        basis, state = finest.basis, finest.padded(z)
        mirrored = [np.append(m, state[-1]) for m in basis.equivalents(state[:-1])]
        rate = curve.rate(z)

        def seen(z: np.ndarray) -> np.ndarray:
            """L^2 coefficients, or the rotation-invariant fingerprint, and p, for distances."""
            m = basis.sizes * z[:-1] if basis.symmetric else basis.fingerprint(z[:-1])
            return np.append(m, z[-1] / rate)

        parts = KNOWN_PART, FINGERPRINT_PART if basis.rotations else DIRECTION_PART
        for number, branch in enumerate(self):
            points = np.array([seen(finest.padded(point.z)) for point in branch.points])
            most = near * parts[fresh is not None and number >= fresh]
            if any(_distance(points, seen(z)) < most for z in (state, *mirrored)):
                return True
        return False

    def passes(self, curve: StationaryCurve, z: np.ndarray) -> bool:
        """Whether a branch followed so far passes through a state or one of its mirror images.

        Newton's method is started by interpolation between two points, as steps can be long.
        """
        for branch in self:
            finest = max(curve, branch.curve, key=lambda curve: len(curve.basis.degrees))
            state = finest.padded(z)
            same = [state[:-1], *finest.basis.equivalents(state[:-1])]
            for near in map(finest.padded, branch.across(z[-1])):
                if min(np.abs(near[:-1] - m).max() for m in same) > NEARBY_MOMENTS:
                    continue
                there = finest.at_value(near, curve.value(z[-1]))
                if (
                    there is not None
                    and min(np.abs(there[:-1] - m).max() for m in same) < EQUAL_MOMENTS
                ):
                    return True
        return False


def sized(z: np.ndarray, other: np.ndarray) -> np.ndarray:
    """A point (m, p) padded with zeros, or cut, to the number of moments of another one."""
    m = np.pad(z[:-1], (0, max(len(other) - len(z), 0)))
    return np.append(m[: len(other) - 1], z[-1])


def _distance(points: np.ndarray, z: np.ndarray) -> float:
    """The distance from z to the polygon through points."""
    sides, ways = np.diff(points, axis=0), z - points
    lengths = np.maximum((sides**2).sum(axis=1), np.finfo(float).tiny)
    parts = np.clip((sides * ways[:-1]).sum(axis=1) / lengths, 0, 1)
    feet = np.vstack([points[:-1] + parts[:, None] * sides, points[-1:]])
    return float(np.linalg.norm(feet - z, axis=1).min())


def _coincide(one: Special, other: Special) -> bool:
    """Whether two special points are equal up to signs of their moments."""
    here, there = one.point, other.point
    size = min(len(here.m), len(there.m))
    apart = np.abs(np.abs(here.m[:size]) - np.abs(there.m[:size])).max()
    return bool(
        apart < COINCIDENT_MOMENTS
        and np.isclose(there.value, here.value, rtol=COINCIDENT_VALUE, atol=0.0)
    )
