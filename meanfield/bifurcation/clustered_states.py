"""Nonuniform states reached by fixed-point iteration from clustered densities.

The normal form of an onset does not determine the order of a transition: another state may have a
lower free energy at the onset kappa_c, or be stable there. For a fixed density, kappa (F -
F(uniform)) decreases in kappa, so that its sign at kappa_c decides for all kappa <= kappa_c whether
the uniform state is the ground state.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .branch_switching import NEAR_UNIFORM
from .continuation import StationaryCurve
from .stability import is_stable
from .stationary import settled

CLUSTERED_DEGREES = 4  # number of most attracted degrees whose harmonics give initial densities
SHARPNESS, LARGEST_SHARPNESS = 4.0, 200.0  # exponents of densities: times dim H_l; upper bound
SAME_MOMENTS = 1e-6  # tolerance on moments for two equal states
LOWER_ENERGY = -1e-12  # free energies below this are lower than that of the uniform state


class Clustered(NamedTuple):
    """A nonuniform stationary state.

    Attributes
    ----------
    curve : StationaryCurve
        Curve with a basis that resolves the state.
    z : ndarray
        (m, p).
    degree : int
        Degree of the harmonic of the initial density.
    free_energy : float
        F(mu) - F(uniform); nan if there is no free energy.
    """

    curve: StationaryCurve
    z: np.ndarray
    degree: int
    free_energy: float

    @property
    def lower(self) -> bool:
        """Whether its free energy is lower than that of the uniform state."""
        return self.free_energy < LOWER_ENERGY

    @property
    def stable(self) -> bool:
        """Whether every perturbation decays."""
        equation, kappa = self.curve.at(float(self.z[-1]))
        return is_stable(equation, self.z[:-1], kappa)


def clustered_states(curve: StationaryCurve, value: float) -> Iterator[Clustered]:
    """Nonuniform states from clustered densities, at one value of the parameter.

    By fixed-point steps mu <- exp(kappa g[mu])/const, where there are such, then Newton's method;
    each state once.
    """
    basis, p = curve.basis, curve.coordinate(value)
    equation, kappa = curve.at(p)
    w = equation.multipliers(basis)
    known: list[np.ndarray] = []
    strongest = np.argsort(-w, kind="stable")[:CLUSTERED_DEGREES]
    for i in strongest[w[strongest] > 0]:
        mirrored = basis.mirrored(np.eye(len(w))[i])
        for sign in (1.0,) if mirrored else (1.0, -1.0):
            height = min(SHARPNESS * basis.sizes[i] ** 2, LARGEST_SHARPNESS)
            exponent = sign * height * basis.legendre[i]
            law = basis.weights * np.exp(exponent - exponent.max())
            m, finer = basis.analysed(law) / law.sum(), equation
            if equation.settles:
                m, finer = settled(equation, m, kappa)
            if not np.linalg.norm(finer.basis.sizes * m) > NEAR_UNIFORM:
                continue
            here = curve.among(finer.basis)
            z = here.at_value(np.append(m, p), value)
            if z is None or not np.linalg.norm(finer.basis.sizes * z[:-1]) > NEAR_UNIFORM:
                continue
            first = z[: len(basis.degrees)]
            if any(np.abs(first - other).max() < SAME_MOMENTS for other in known):
                continue
            known.append(first)
            energy = finer.free_energy(finer.mean(z[:-1], kappa))
            yield Clustered(here, z, int(basis.degrees[i]), energy)
