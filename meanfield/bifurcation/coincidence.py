"""One event on two branches: where they cross it is located best on that of more symmetry."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .mirror import fold_of
from .tracing import Branch, Special

__all__ = ["unify"]

CLOSE = 1e-5  # of the parameter, relative
SAME = 1e-2  # of moments, which differ more than the parameter where branches cross
CROSSINGS = ("bifurcation", "symmetry breaking")


def unify(found: list[Branch]) -> None:
    """Special points of branches take the place of those of more symmetric ones that they are.

    On the circle a k-fold state may lose its symmetry in two ways at once; Newton's method
    determines a less symmetric state there badly, whatever the residual.
    """
    folds = [fold_of(branch.curve.path.basis, branch.points[0].a) for branch in found]
    for branch, fold in zip(found, folds, strict=True):
        known = [
            special for other, k in zip(found, folds, strict=True) if k > fold
            for special in other.specials if special.found.status == "converged"
        ]  # fmt: skip
        for i, special in enumerate(branch.specials):
            same = next(_same(special, known), None) if special.kind in CROSSINGS else None
            if same is not None:
                branch.specials[i] = replace(special, found=same.found)


def _same(special: Special, known: list[Special]) -> Iterator[Special]:
    point = special.found.point
    for other in known:
        there = other.found.point
        size = min(len(point.a), len(there.a))
        apart = np.abs(np.abs(point.a[:size]) - np.abs(there.a[:size])).max()
        if other.kind in CROSSINGS and apart < SAME and abs(there.value / point.value - 1) < CLOSE:
            yield other
