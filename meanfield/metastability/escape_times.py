"""Mean time until n tokens leave the basin of a stable state: the Eyring-Kramers law."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Any

import numpy as np

from ..bifurcation import StationaryState
from ..bifurcation.bases import AXISYMMETRIC, AxialHarmonics, fold_of
from ..bifurcation.multistability import same_state
from ..bifurcation.stability import covariances
from ..core.calls import checked_call
from ..core.checks import fitting, whole_number
from ..core.errors import MeanfieldError
from .saddles import Saddle, Saddles, check_stable, multiplicity, saddles

LEAST_EXPONENT = 3.0  # of n kappa dF, from which the law is asymptotic
NO_ODD_MOMENT = 1e-9


@dataclass(frozen=True, eq=False)
class EscapeTime:
    """Mean time T(n) until n tokens leave the basin of a stable state, to leading order in 1/n.

        log T = n kappa dF + log_prefactor + power log n

    Attributes
    ----------
    state : StationaryState
        The stable state.
    saddles : Saddles
        Saddles on the boundary of its basin; those that lead back to it are not counted.
    n : int
        Number of tokens.
    exponent : float
        kappa dF, of the lowest barrier.
    log_prefactor, power : float
        Of the lowest saddle. The power is half the difference of the dimensions of the orbits of
        state and saddle under rotations: -1/2 from the uniform state on the circle.
    log_time : float
        log T(n), over all saddles.
    curvature : float
        Least size of an eigenvalue of 1 - kappa C W at state and saddle, rotations excluded: 0 at a
        fold or a bifurcation, where the law does not hold.
    """

    state: StationaryState
    saddles: Saddles
    n: int
    exponent: float
    log_prefactor: float
    power: float
    log_time: float
    curvature: float

    @property
    def time(self) -> float:
        """T(n); inf where it is beyond double precision, see `log_time`."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_time))

    @property
    def asymptotic(self) -> bool:
        """Whether n kappa dF >= 3; below, fluctuations of the state reach the saddle."""
        return self.n * self.exponent >= LEAST_EXPONENT

    @property
    def least_n(self) -> int:
        """Number of tokens from which the law is asymptotic."""
        return int(np.ceil(LEAST_EXPONENT / self.exponent))

    def __repr__(self) -> str:
        short = "" if self.asymptotic else f", NOT ASYMPTOTIC: n >= {self.least_n} is"
        return (
            f"EscapeTime(n = {self.n}, log T = {self.log_time:.6g}, kappa dF = "
            f"{self.exponent:.6g}, prefactor {np.exp(self.log_prefactor):.6g} n^{self.power:g}"
            f"{short})"
        )


@dataclass(frozen=True)
class Weight:
    """Weight of the orbit of a stationary state in the Gibbs measure of n tokens.

        log Z = -n kappa F + log_size + dimension/2 log n

    Attributes
    ----------
    state : StationaryState
    log_size : float
    dimension : int
        Of the orbit under rotations.
    curvature : float
        Least size of an eigenvalue of 1 - kappa C W, rotations excluded.
    """

    state: StationaryState
    log_size: float
    dimension: int
    curvature: float

    @classmethod
    def of(cls, state: StationaryState) -> "Weight":
        """The weight of a state.

            Z = e^(-n kappa F) |det'(1 - kappa C W)|^(-1/2) vol (n I/2 pi)^(k/2)

        C is the covariance operator of the law of the state, W the interaction, k the dimension of
        the orbit, vol its volume and I = kappa^2 int |grad g|^2 dmu/(d - 1). det' leaves out the
        zeros of rotations.
        """
        equation, m, kappa = state.equation, state.legendre_moments, state.kappa
        basis, dimension, log_size, least = equation.basis, 0, 0.0, np.inf
        for order, (functions, w, covariance) in enumerate(covariances(equation, m, kappa)):
            values = np.linalg.eigvals(np.eye(len(w)) - kappa * covariance * w).real
            turned = np.argsort(np.abs(values))[: functions.rotations(m)]
            sizes, count = np.abs(np.delete(values, turned)), multiplicity(basis, order)
            log_size -= 0.5 * count * float(np.log(sizes).sum())
            dimension += count * len(turned)
            least = min(least, sizes.min(initial=np.inf))
        if dimension:
            moments = basis.values @ equation.mean(m, kappa).weights
            attraction = equation.multipliers(basis) * moments**2
            inertia = kappa * float(basis.eigenvalues @ attraction) / (basis.dimension - 1)
            log_size += _log_volume(basis, m) + 0.5 * dimension * log(inertia / (2 * pi))
        return cls(state, log_size, dimension, float(least))

    def log_z(self, n: int) -> float:
        """log Z for n tokens."""
        energy = n * self.state.kappa * self.state.free_energy
        return self.log_size + 0.5 * self.dimension * log(n) - energy


def _log_volume(basis: Any, m: np.ndarray) -> float:
    """Logarithm of the volume of the orbit of an axisymmetric state, a part of S^(d-1)."""
    d = basis.dimension
    odd = basis.degrees % 2 == 1
    parts = fold_of(basis, m) if d == 2 else 1 + (np.abs(m[odd]).max(initial=0.0) < NO_ODD_MOMENT)
    return log(2) + d / 2 * log(pi) - lgamma(d / 2) - log(parts)


@checked_call("state")
def escape_time(state: StationaryState, n: int, *, around: Saddles | None = None) -> EscapeTime:
    """Mean time until n tokens leave the basin of a stable state, by the Eyring-Kramers law.

        1/T = sum_i (rate_i/2 pi) Z_i/Z_state

    Z_state and Z_i are the weights of the state and of the i-th saddle in the Gibbs measure of n
    tokens, each with its whole orbit under rotations; rate_i is the growth rate of the unstable
    perturbation of the saddle.

    Parameters
    ----------
    state : StationaryState
        A stable state, as for `saddles`; axisymmetric.
    n : int
        Number of tokens.
    around : Saddles, optional
        The saddles of the state, if they are known; by default `saddles(state)`.

    Returns
    -------
    EscapeTime
        The time until the tokens are beyond the saddle and do not return. To the
        saddle itself it is half of it, to leading order.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range, and states that have not converged or are unstable.
    MeanfieldError
        For models without a free energy; if no saddle was found; for states without an axis.

    Notes
    -----
    The law is the limit of large n. Its relative error is expected to be of order 1/(n kappa dF),
    with a constant that is not known: `asymptotic` says whether n kappa dF >= 3. Towards a fold or
    a bifurcation the barrier and the `curvature` vanish, and `least_n` grows. Saddles of lower
    symmetry than those sought, and paths that do not cross a saddle of index one, are not seen. One
    token without interaction in a potential has one stationary state, and so no such time.

    References
    ----------
    Bovier, Eckhoff, Gayrard and Klein, J. Eur. Math. Soc. 6 (2004), 399, in finitely many
    dimensions; derived here for n tokens by the Hubbard-Stratonovich transform, not proved.
    """
    n = whole_number("n", n)
    check_stable(state)
    if np.isnan(state.free_energy):
        raise MeanfieldError(
            f"{state.model!r} has no free energy that is known here, so no law for times: the "
            "drift must be the gradient of W * mu, as of USA and Kuramoto, or of a Potential, "
            "under isotropic noise. mf.transition_path gives the exponent, n kappa "
            "quasi_potential."
        )
    found = saddles(state) if around is None else around
    fitting("around", found, "the Saddles of the state", isinstance(found, Saddles), TypeError)
    same = found.state is state or same_state(found.state, state)
    fitting("around", found, "the saddles of this state", same)
    ways = [one for one in found if not _leads_back(one)]
    if not ways:
        raise MeanfieldError(
            f"No saddle to another stable state was found around {state!r}, so no time to leave it."
        )
    here, across = Weight.of(_axial(state)), [Weight.of(_axial(one.state)) for one in ways]
    shares = _log_rates(ways, across, n)
    lowest = ways[0], across[0]
    return EscapeTime(
        state=state,
        saddles=found,
        n=n,
        exponent=state.kappa * lowest[0].barrier,
        log_prefactor=log(2 * pi / lowest[0].rate) + here.log_size - lowest[1].log_size,
        power=(here.dimension - lowest[1].dimension) / 2,
        log_time=here.log_z(n) - float(np.logaddexp.reduce(shares)),
        curvature=min(one.curvature for one in (here, lowest[1])),
    )


def _log_rates(ways: Sequence[Saddle], across: Sequence[Weight], n: int) -> list[float]:
    """log(rate Z/2 pi) of each saddle."""
    return [
        log(one.rate / (2 * pi)) + weight.log_z(n) for one, weight in zip(ways, across, strict=True)
    ]


def _leads_back(saddle: Saddle) -> bool:
    """Whether the state beyond a saddle is on the orbit of the state before it."""
    before, beyond = saddle.ends
    return before is not None and beyond is not None and same_state(before, beyond)


def _axial(state: StationaryState) -> StationaryState:
    """The state, if its basis is axisymmetric; else MeanfieldError."""
    if not isinstance(state.equation.basis, AxialHarmonics):
        raise MeanfieldError(
            f"Volumes of orbits are known for axisymmetric states, not for {state!r}: search them "
            f"with symmetry={AXISYMMETRIC!r}."
        )
    return state
