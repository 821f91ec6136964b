"""The sum of the fixed-point indices of stationary states, which is one if none is missing.

A stationary density is a fixed point of the map from mu to the stationary density of the linear
Fokker-Planck equation with the velocity v[mu] (for gradients, exp(kappa g[mu])/const). The map
takes the densities, a convex compact set, into itself, so that its degree is 1: isolated fixed
points have indices of sum 1. Where the linearised equation has no eigenvalue 0, the index is

    (-1)^k,    k = number of growing perturbations, with multiplicity.

For densities with a symmetry, which the map keeps, only perturbations with this symmetry count.
Every image of a state counts by itself. An orbit under rotations of the model counts by its Euler
characteristic, which is 0 for circles and tori.
"""

from collections.abc import Sequence

import numpy as np

from .stationary import StationaryState

MANY_RATES = 64  # eigenvalues among which growing ones are counted if all leading ones grow
DEGENERATE_RATE = 1e-7  # smaller eigenvalues in absolute value may be 0


def index_sum(states: Sequence[StationaryState]) -> int | None:
    """Sum of the indices of all images of states of one search.

    Returns
    -------
    int or None
        None if it is not known: without states, at a bifurcation, or with a group on S^2, whose
        states can lie in several ways.

    References
    ----------
    Granas and Dugundji, Fixed Point Theory (2003), section 12, for the index and its sum.
    """
    total = 0
    for state in states:
        if state.images is None:
            return None
        for image in state.images:
            if (index := _index(image)) is None:
                return None
            total += index
    return total if states else None


def _index(state: StationaryState) -> int | None:
    """(-1)^k of one state; None if an eigenvalue may be 0, or if more grow than are computed."""
    spectrum = state.leading
    if spectrum.eigenvalues[-1].real > 0:
        spectrum = state.stability(MANY_RATES)
    counted = (spectrum.orders == 0) | (not state.equation.basis.symmetric)
    values = spectrum.eigenvalues[counted & ~spectrum.neutral]
    if spectrum.eigenvalues[-1].real > 0 or np.abs(values).min(initial=1.0) < DEGENERATE_RATE:
        return None
    return int((-1) ** np.count_nonzero(values.real > 0))
