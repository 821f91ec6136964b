"""Branches of stationary states where the uniform density is not stationary.

Under anisotropic and multiplicative noise, the disordered state is followed from strong noise on,
where it is the only state. It is invariant under the reflections of the model. A perturbation that
is odd under one of them leads to a pitchfork: two branches with less symmetry, mirror images of
each other, of which one is followed. States not connected with these branches are sought at the
upper end of the range, from guesses and from images of states under reflections that the model
lacks.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..spaces.validity import NEGATIVE_SHARE
from .branch_switching import Branch, BranchSearch
from .continuation import StationaryCurve, curve_of
from .detection import Special, across
from .diagram import NO_COEFFICIENTS, SpecialPoint
from .stationary import state_at

STRONGEST = 1e-3  # relative to kappa: where the disordered state is computed first
LONGEST_LOG_STEP = 0.5  # longest step in log kappa from there
NEUTRAL = 1e-6  # largest neutral eigenvalue, relative to the largest eigenvalue
SYMMETRIC_DIRECTION = 1e-6  # largest odd component of a symmetric direction


class NoiseBranchSearch(BranchSearch):
    """Search for all branches in a range; branch 0 is that of the disordered state."""

    first = 0

    def all(self, secondary: bool, started: Iterable[Any]) -> Iterator[Branch]:
        """Follow all branches; yields the current one after every new point.

        `started` has pairs (curve, z) of states through which branches are followed too;
        `secondary`: also branches that bifurcate from branches other than branch 0.
        """
        low, high = self.curve.span
        start = np.append(self._without_order(low), self.curve.coordinate(low))
        upwards = np.append(np.zeros(len(start) - 1), 1.0)
        yield from self.followed(self.curve.point(start, upwards), self.curve)
        yield from self.from_branches(0, np.inf if secondary else 1)
        done = len(self.branches)
        for curve, z in started:
            if not self.passes(curve, z):
                yield from self.through(curve, z, int(curve.basis.degrees[np.abs(z[:-1]).argmax()]))
        for curve, z in self._apart(high):
            yield from self.from_edge(curve, z, high, 1)
        if secondary:
            yield from self.from_branches(done)

    @property
    def _basis(self) -> Any:
        return self.curve.basis

    def _without_order(self, value: float) -> np.ndarray:
        """Moments (N,) of the disordered state at a value of the parameter.

        It is followed in kappa from strong noise, where the drift is negligible.
        """
        equation, kappa = self.curve.at(self.curve.coordinate(value))
        first, basis = STRONGEST * kappa, self._basis
        curve = curve_of(equation.source, basis, "kappa", (first, kappa), None, LONGEST_LOG_STEP)
        alone = basis.without_drift
        z = curve.at_value(np.append(alone, 0.0), first)
        last = curve.coordinate(kappa)
        if z is not None:
            point, step = curve.point(z, np.append(np.zeros(len(alone)), 1.0)), LONGEST_LOG_STEP
            while (found := curve.stepped(point, step)) is not None:
                old, (point, _, step) = point, found
                if point.p >= last:
                    part = (last - old.p) / (point.p - old.p)
                    z = curve.at_value(old.z + part * (point.z - old.z), kappa)
                    if z is not None:
                        return z[:-1]
                    break
        raise MeanfieldError(
            f"The state without order was not found at {self.curve.parameter} = {value:g}: its "
            "branch could not be followed from strong noise. Take a range that begins lower."
        )

    def _apart(self, value: float) -> Iterator[tuple[StationaryCurve, np.ndarray]]:
        """States that Newton's method reaches from guesses at a value, as (curve, (m, p))."""
        basis, p = self._basis, self.curve.coordinate(value)
        missing = set(range(2**basis.dimension)) - set(basis.symmetries.reflections)
        guesses = [*basis.guesses(2 * basis.dimension)]
        for branch in self.branches:
            m = basis.padded(branch.points[-1].m)
            guesses += [np.where(basis.all.odd(r), -m, m) for r in sorted(missing)]
        for guess in guesses:
            fitted, m = basis.fitted(guess)
            curve = self.curve.among(fitted)
            z = curve.at_value(np.append(m, p), value)
            if z is None:
                continue
            equation, kappa = curve.at(p)
            density = equation.mean(z[:-1], kappa).density
            if density.min() >= -NEGATIVE_SHARE * density.max():  # others are no densities
                yield curve, z

    def _crossed(
        self, curve: StationaryCurve, special: Special
    ) -> Iterator[tuple[StationaryCurve, np.ndarray, np.ndarray]]:
        basis: Any = curve.basis
        z = curve.padded(special.point.z)
        if special.kind == "bifurcation":
            tangent = curve.padded(special.point.tangent)
            direction = across(curve.kernel(z)[0], tangent)
            symmetric, _ = basis.fitted(z[:-1])  # more symmetric at the end of a branch
            odd = symmetric.orders_of_functions > 0
            if np.abs(direction[:-1][odd]).max(initial=0.0) < SYMMETRIC_DIRECTION:
                direction[:-1][odd] = 0.0
                curve = curve.among(symmetric)
            yield curve, z, direction
        turns = special.kind == "Hopf" and bool(basis.turnings)  # a rotating wave begins
        if special.kind != "symmetry breaking" and not turns:
            return
        equation, kappa = curve.at(z[-1])
        part = basis.of_order(special.order)
        values, vectors = np.linalg.eig(equation.linearised(z[:-1], kappa, part))
        i = int(np.abs(values.real if turns else values).argmin())
        if abs(values[i].real if turns else values[i]) > NEUTRAL * np.abs(values).max():
            self._miss("another one where it loses a reflection", special.point.value)
            return
        direction = np.zeros(len(z))
        direction[part.members] = vectors[:, i].real / basis.sizes[part.members]
        yield curve.among(basis.without(special.order)), z, direction

    def _degree(self, parent: int, curve: StationaryCurve, direction: np.ndarray) -> int:
        """Degree of the largest component of the direction of a new branch."""
        basis = curve.basis
        return int(basis.degrees[np.abs(basis.sizes * direction[:-1]).argmax()])

    def special_points(self) -> Iterator[SpecialPoint]:
        """Special points of every branch; losses of symmetry of branch 0 are bifurcations."""
        for number, branch in enumerate(self.branches):
            for special in sorted(branch.specials, key=lambda s: (s.place, s.point.value)):
                point, interval, status, kind, order, _ = special
                degree, character = branch.degree, ""
                if number == 0 and kind == "symmetry breaking":
                    kind = "bifurcation"
                    child = next((b for b in self.branches if b.origin is special), None)
                    if child is None:
                        status = "not followed"
                    else:
                        later = child.points[0].value > point.value
                        degree, character = (
                            child.degree,
                            "supercritical" if later else "subcritical",
                        )
                state = state_at(branch.curve, point.z)
                name = branch.curve.parameter
                yield SpecialPoint(kind, name, point.value, interval, status, number, degree, order,
                                   character, NO_COEFFICIENTS, state)  # fmt: skip
