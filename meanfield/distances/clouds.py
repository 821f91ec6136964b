"""Measures as atoms, for transport by linear programming; densities on S^2 as cells.

A density is replaced by atoms in two steps: a fine quadrature, and coarse cells of it around
centres that Lloyd's iteration places. The first is what integrals are taken over; the second is
what the linear program sees.
"""

from typing import Any, NamedTuple

import numpy as np

from ..spaces import Circle, Sphere
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Dirac
from .ground import between

__all__ = ["Cells", "Cloud", "cells_of", "cloud_of"]

FINE = 40  # points of the quadrature in a cell, about
LLOYD = 8


class Cloud(NamedTuple):
    """Atoms: points (n, d), masses (n,)."""

    x: np.ndarray
    masses: np.ndarray


class Cells(NamedTuple):
    """A density by cells: its fine quadrature, and atoms that stand for its cells.

    Attributes
    ----------
    fine : Cloud
    owner : ndarray of int, (fine n,)
        The cell of each point of the fine quadrature.
    coarse : Cloud
        Centres of the cells, with their masses.
    check : Cloud
        Another quadrature, of about half as many points, that shows the error of the fine one.
    """

    fine: Cloud
    owner: np.ndarray
    coarse: Cloud
    check: Cloud

    def radius(self, p: float) -> float:
        """W_p of the density from its atoms, at most: every point goes to its centre."""
        angles = between(self.fine.x, self.coarse.x[self.owner])
        return float((self.fine.masses @ angles**p) ** (1 / p))


def cloud_of(state: Any, member: int) -> Cloud:
    """The atoms of a member of what is made of atoms."""
    match state:
        case Dirac():
            return Cloud(state.point[None], np.ones(1))
        case Characteristics():
            masses = np.maximum(state.masses, 0.0)  # some are -1e-19
            return Cloud(state.points, masses / masses.sum())
    n, d = state.x.shape[-2:]
    return Cloud(state.x.reshape(-1, n, d)[member], state.masses.reshape(-1, n)[member])


def cells_of(density: Density, member: int, count: int) -> Cells:
    """About `count` cells of a density on S^2, by Lloyd's iteration from a seeded sample.

    On the circle points at equal distances, each a cell.
    """
    from scipy.spatial import cKDTree

    if density.geometry.dimension == 2:
        fine = _fine(density, member, max(count // 3, density.geometry.degree))
        return Cells(fine, np.arange(len(fine.x)), fine, fine)
    degree = max(int((FINE * count / 4.5) ** 0.5), density.geometry.degree)
    x, masses = fine = _fine(density, member, degree)
    centres = x[np.random.default_rng(0).choice(len(x), count, replace=False, p=masses)]
    for step in range(LLOYD + 1):
        owner = cKDTree(centres).query(x)[1]
        if step == LLOYD:
            break
        sums = np.stack([np.bincount(owner, masses * c, len(centres)) for c in x.T], axis=1)
        kept = np.bincount(owner, minlength=len(centres)) > 0
        centres = sums[kept] / np.linalg.norm(sums[kept], axis=1, keepdims=True)
    coarse = Cloud(centres, np.bincount(owner, masses, len(centres)))
    return Cells(fine, owner, coarse, _fine(density, member, int(0.7 * degree)))


def _fine(density: Density, member: int, degree: int) -> Cloud:
    """The density on the grid of a degree, where its mass is positive."""
    grid = Circle(degree) if density.geometry.dimension == 2 else Sphere(max(degree, 2))
    coefficients = density.coefficients.reshape(-1, density.coefficients.shape[-1])[member]
    masses = grid.weights * density.geometry.at(coefficients, grid.points)
    some = masses > 0
    return Cloud(grid.points[some], masses[some] / masses[some].sum())
