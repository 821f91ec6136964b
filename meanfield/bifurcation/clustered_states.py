"""States other than the uniform one to which densities that cluster lead.

The order of a transition is not decided next to the onset: where another state has a lower free
energy at the onset kappa_c, or is stable there, the uniform state gives way to it. For a fixed
density kappa F falls as kappa grows, so that at kappa_c it is seen whether the uniform state is the
ground state for all kappa <= kappa_c.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .branch_switching import NEAR_UNIFORM
from .continuation import StationaryCurve
from .stability import is_stable
from .stationary import settled

CLUSTERED_DEGREES = 4  # degrees, the most attracted ones, with whose harmonics densities cluster
SHARPNESS, LARGEST_SHARPNESS = (
    4.0,
    200.0,
)  # exponents of clustered densities: times dim H_l, and at most
SAME_MOMENTS = 1e-6  # differences of moments of a state that is met twice
LOWER_ENERGY = -1e-12  # of a free energy


class Clustered(NamedTuple):
    """A state that is not uniform.

    Attributes
    ----------
    curve : StationaryCurve
        In as many functions as it needs.
    z : ndarray
        (m, p).
    degree : int
        Of the harmonic that led to it.
    free_energy : float
        Relative to that of the uniform state; nan where there is none.
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
    """The states that mu <- exp(kappa g[mu])/const tends to from clustered densities.

    At one value of the parameter.
    """
    basis, p = curve.basis, curve.coordinate(value)
    equation, kappa = curve.at(p)
    w = equation.multipliers(basis)
    known: list[np.ndarray] = []
    strongest = np.argsort(-w, kind="stable")[:CLUSTERED_DEGREES]
    for i in strongest[w[strongest] > 0]:
        mirrored = basis.dimension == 2 or basis.degrees[i] % 2 == 1
        for sign in (1.0,) if mirrored else (1.0, -1.0):
            height = min(SHARPNESS * basis.sizes[i] ** 2, LARGEST_SHARPNESS)
            exponent = sign * height * basis.legendre[i]
            law = basis.weights * np.exp(exponent - exponent.max())
            m, finer = settled(equation, basis.analysed(law) / law.sum(), kappa)
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
