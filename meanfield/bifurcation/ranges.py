"""All branches of a range, wherever they begin.

In kappa branches are followed down to where they turn back, and up to twice the range; what lies
above it without coming back is cut off. A range of beta is entered at both ends, by the states that
diagrams in kappa have there.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..spaces import Geometry
from .coincidence import unify
from .curve import Curve
from .diagram import Diagram
from .doubts import cut_short
from .following import Following
from .growing import Growth
from .onsets import chosen_onsets, onsets_above
from .path import Coupling, Onset, Path, path_of
from .placement import basis_of
from .stability import most_attracted
from .tracing import Branch

__all__ = ["Asked", "Range"]

ASIDE = 1.5  # how far diagrams in kappa reach beyond the kappa that is asked for
ORDERS = 4  # in which stability is looked at, at least; on the circle there are two
SMALL = 0.05  # moments of a branch that begins at the uniform state


class Asked(NamedTuple):
    """How branches are followed: see `branches`."""

    degrees: Any
    secondary: bool
    stability: bool
    max_step: float
    most: int


class Range:
    """A drift on a space, and the range of its parameter.

    Parameters
    ----------
    drift, geometry, symmetry
        As for `branches`.
    path : Path
    span : (float, float)
    asked : Asked

    Attributes
    ----------
    path : Path
        In as many functions as the onsets need.
    onsets : list of Onset
        Those in the range or below, and those whose branches come into it.
    growth : Growth
    """

    def __init__(self, drift: Any, geometry: Geometry, symmetry: str, path: Path,
                 span: tuple[float, float], asked: Asked, following: Following):  # fmt: skip
        self.drift, self.geometry, self.symmetry = drift, geometry, symmetry
        self.span, self._asked, self._following = span, asked, following
        self.path, self.onsets, left_out = chosen_onsets(path, span, asked.degrees)
        least = self.path.at(self.path.coordinate(span[0]))[0]
        orders = max(ORDERS, most_attracted(least) + 1) if asked.stability else 0
        self.growth = Growth(
            self.path, self.path.reach(span), asked.most, orders, asked.max_step, span[1],
            lambda: following.stopped,
        )  # fmt: skip
        self.growth.missing += left_out

    def follow(self) -> None:
        """All branches, until the user stops."""
        for branch in self._all():
            value = branch.points[-1].value
            stopped = self._following.at(branch, f"degree {branch.degree}", value)
            if stopped and not branch.end:
                branch.end = "interrupted"
                break
        unify(self.growth.found)
        high = self.span[1]
        if not isinstance(self.path, Coupling):
            self.growth.cut(high)
        self.onsets = [
            onset for onset in self.onsets
            if onset.value < high or any(_begins(b, onset) for b in self.growth.found)
        ]  # fmt: skip

    def diagram(self, at: np.ndarray, observables: dict) -> Diagram:
        """What was found."""
        return Diagram.of(
            self.drift, self.geometry, self.symmetry, self.path, self.span, self.onsets,
            self.growth, at, observables,
        )  # fmt: skip

    def _all(self) -> Iterator[Branch]:
        """Every branch, yielded after each new point."""
        growth, everything = self.growth, self._asked.degrees is None
        for onset in self.onsets:
            yield from growth.from_uniform(onset)
        if everything and isinstance(self.path, Coupling):
            for beta in self.span:
                yield from self._from_edge(beta, self.path.kappa)
        elif everything:
            for onset in onsets_above(self.path, growth.span[1]):
                yield from growth.from_above(onset)
        if self._asked.secondary:
            yield from growth.from_branches()

    def _from_edge(self, beta: float, kappa: float) -> Iterator[Branch]:
        """The branches that come into a range of beta at one of its ends."""
        drift, span = self.drift(beta), (kappa / ASIDE, ASIDE * kappa)
        path = path_of(drift, basis_of(self.symmetry, self.geometry), None)
        across = Range(
            drift, self.geometry, self.symmetry, path, span, self._asked, self._following
        )
        across.follow()
        diagram = across.diagram(np.array([]), {})
        doubts = diagram.data.attrs.get("missing", []) + cut_short(diagram, kappa)
        self.growth.missing += [f"at beta = {beta:.6g}, {doubt}" for doubt in doubts]
        for _, state in diagram.states_at(kappa)[1:]:
            curve = Curve(self.path.finer(state.equation.degree), self._asked.max_step)
            degree = int(state.equation.degrees[np.abs(state.legendre_moments).argmax()])
            z = np.append(state.moments, beta)
            yield from self.growth.from_edge(curve, z, beta, degree)


def _begins(branch: Branch, onset: Onset) -> bool:
    """Whether a branch begins at an onset."""
    near = np.abs(branch.points[0].a).max() < SMALL
    return branch.parent < 0 and branch.degree == onset.form.degree and near
