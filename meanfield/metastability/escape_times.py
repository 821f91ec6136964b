"""Mean time until n tokens leave the basin of a stable state: the Eyring-Kramers law."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Any

import numpy as np
from scipy.integrate import cumulative_simpson, trapezoid

from ..bifurcation import StationaryState
from ..bifurcation.bases import AXISYMMETRIC, AxialHarmonics, fold_of
from ..bifurcation.multistability import same_state
from ..bifurcation.reflections import Reflected
from ..bifurcation.stability import covariances
from ..bifurcation.unstable_manifolds import multiplicity
from ..core.calls import checked_call
from ..core.checks import finite_array, require, whole_number
from ..core.errors import MeanfieldError
from ..spaces import Circle
from .least_actions import check_action
from .path_frames import maps
from .saddles import Saddle, Saddles, check_stable, check_together, saddles, saddles_of

LEAST_EXPONENT = 3.0  # of n kappa dF, from which the law is asymptotic
NO_ODD_MOMENT = 1e-9
TURN = 1 << 15  # intervals of the circle in which a field is integrated


@dataclass(frozen=True, eq=False)
class EscapeTime:
    """Mean time T(n) until n tokens leave the basin of a stable state, to leading order in 1/n.

        log T = n kappa dF + log_prefactor + power log n

    Rotations of the model do not leave the basin; mirror images of the state have their own basins,
    as for `transition_path`.

    Attributes
    ----------
    state : StationaryState
        The stable state.
    saddles : Saddles
        Saddles on the boundary of its basin; those that lead back to it, up to a rotation, are
        not counted. None for one token without interaction.
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
        fold or a bifurcation, where the law does not hold. nan for one token without interaction.
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

    @property
    def _remedy(self) -> str:
        """Advice for an n below the least one; tokens without interaction leave one by one."""
        if any(part.interacts for _, part in self.state.model.drift.terms):
            return f"Take n >= {self.least_n}"
        return "Raise kappa"

    @property
    def warnings(self) -> list[str]:
        """Sentences that say why the law may not hold for this n."""
        if self.asymptotic:
            return []
        return [
            f"The law is not asymptotic for n = {self.n}: n kappa dF is "
            f"{self.n * self.exponent:.3g}, below {LEAST_EXPONENT:g}. "
            f"{self._remedy}, or measure times of tokens by mf.first_passages."
        ]

    def __repr__(self) -> str:
        head = (
            f"EscapeTime(n = {self.n}, log T = {self.log_time:.6g}, kappa dF = "
            f"{self.exponent:.6g}, prefactor {np.exp(self.log_prefactor):.6g} n^{self.power:g})"
        )
        return "\n".join([head, *(f"  <-- {warning}" for warning in self.warnings)])


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
        zeros of rotations. With a Potential C is that of its law too, and the orbit of a state is
        finite: its images under the reflections of the model, vol of them.
        """
        equation, m, kappa = state.equation, state.legendre_moments, state.kappa
        basis, dimension, log_size, least = equation.basis, 0, 0.0, np.inf
        for count, functions, w, covariance in _fluctuations(state):
            values = np.linalg.eigvals(np.eye(len(w)) - kappa * covariance * w).real
            turned = np.argsort(np.abs(values))[: functions.rotation_count(m)]
            sizes = np.abs(np.delete(values, turned))
            log_size -= 0.5 * count * float(np.log(sizes).sum())
            dimension += count * len(turned)
            least = min(least, sizes.min(initial=np.inf))
        if isinstance(basis, Reflected):
            if dimension:
                raise MeanfieldError(f"The volume of the orbit of {state!r} is not known.")
            return cls(state, log_size + log(1 + len(basis.images(m))), 0, float(least))
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


def _fluctuations(state: StationaryState) -> Iterator[tuple[int, Any, np.ndarray, np.ndarray]]:
    """For each order: how often it occurs, its functions, the w_i, and Cov(p_i, p_j)."""
    equation, m, kappa = state.equation, state.legendre_moments, state.kappa
    basis, drift = equation.basis, state.model.drift
    if isinstance(basis, AxialHarmonics):
        for order, rest in enumerate(covariances(equation, m, kappa)):
            yield multiplicity(basis, order), *rest
        return
    if not isinstance(basis, Reflected):
        raise MeanfieldError(
            f"Volumes of orbits are known for axisymmetric states, not for {state!r}. Give "
            "escape_time states of mf.stationary and saddles of mf.saddles with their default "
            f"symmetry={AXISYMMETRIC!r}."
        )
    if any(part.interacts and not part.is_zonal for _, part in drift.terms):
        raise MeanfieldError(f"Weights of states need W * mu and a Potential; got {drift!r}.")
    masses = basis.weights * equation.mean(m, kappa).flows[0].density
    for order in range(basis.orders):
        functions = basis.of_order(order)
        if functions.members.size:
            means = (order == 0) * (functions.values @ masses)
            covariance = (functions.values * masses) @ functions.values.T - np.outer(means, means)
            yield 1, functions, equation.multipliers(functions), covariance


def _log_volume(basis: Any, m: np.ndarray) -> float:
    """Logarithm of the volume of the orbit of an axisymmetric state, a part of S^(d-1)."""
    d = basis.dimension
    odd = basis.degrees % 2 == 1
    parts = fold_of(basis, m) if d == 2 else 1 + (np.abs(m[odd]).max(initial=0.0) < NO_ODD_MOMENT)
    return log(2) + d / 2 * log(pi) - lgamma(d / 2) - log(parts)


@checked_call("state")
def escape_time(
    state: StationaryState, n: int, *, around: Saddles | None = None, start: Any = None,
    progress: bool | None = None,
) -> EscapeTime:  # fmt: skip
    """Mean time until n tokens leave the basin of a stable state, by the Eyring-Kramers law.

        1/T = sum_i s_i (rate_i/2 pi) Z_i/Z_state

    Z_state and Z_i are the weights of the state and of the i-th saddle in the Gibbs measure of n
    tokens, including their orbits under symmetries of the model. rate_i is the growth rate of the
    unstable perturbation of the saddle. s_i is 2 for a saddle between the state and its mirror
    image, else 1.

    Parameters
    ----------
    state : StationaryState
        A stable state, as for `saddles`; axisymmetric, or of a model with a `Potential`. For one
        token without interaction on the circle the stationary state of its `Field`.
    n : int
        Number of tokens. 1 without interaction.
    start : array, (2,), optional
        For one token without interaction, a point of the well that it leaves; by default the well
        with the largest density.
    around : Saddles, optional
        Known saddles of the state; by default `saddles(state)`.
    progress : bool, optional
        As for `saddles`.

    Returns
    -------
    EscapeTime
        The mean time until the tokens are beyond the saddle and do not return. The mean time to
        the saddle itself is half of it, to leading order.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range, saddles of another state, model or space, and states that
        have not converged or are unstable.
    MeanfieldError
        For models without a free energy, except one token without interaction; if no saddle was
        found; for states without an axis, except those in a `Potential`. Without interaction: for
        more than one token, for other spaces than the circle, and for fewer than two wells.

    Notes
    -----
    The law is asymptotic for large n. Its relative error is expected to be of order
    1/(n kappa dF), with an unknown constant: `asymptotic` says whether n kappa dF >= 3. Towards a
    fold or a bifurcation the barrier and the `curvature` vanish, and `least_n` grows. Saddles of
    lower symmetry than `saddles` searches for, and paths that do not cross a saddle of index one,
    are not included.

    The density of tokens without interaction has one stationary state, but a single token may have
    several wells, the minima of V = -int v dtheta. Then

        1/T = sum_i exp(-kappa dV_i)/(kappa Q Q_i),

    with Q the integral of exp(kappa (V(well) - V)) between both saddles, and Q_i that of
    exp(kappa (V - V(saddle))) up to the next well, by quadrature. The relative error is of order
    exp(-kappa dV). The Gaussian approximation of these integrals would have an error of order
    1/(kappa dV).

    References
    ----------
    Bovier, Eckhoff, Gayrard and Klein, J. Eur. Math. Soc. 6 (2004), 399, in finitely many
    dimensions; derived here for n tokens by the Hubbard-Stratonovich transform, not proved.
    """
    n = whole_number("n", n)
    check_stable("state", state)
    if around is not None:
        check_together("state and around", state, around.state)
        own = around.state is state or same_state(around.state, state)
        require("around", around, f"the saddles of this state, {state!r}", own)
    if not any(part.interacts for _, part in state.model.drift.terms):
        return _of_one_token(state, n, start)
    require("start", start, "left out for tokens that interact", start is None)
    if np.isnan(state.free_energy):
        raise MeanfieldError(
            f"{state.model!r} has no free energy that is known here, so no law for times: the "
            "drift must be the gradient of W * mu, as of USA and Kuramoto, or of a Potential, "
            f"under isotropic noise.{_advice_by_action(state)}"
        )
    found = saddles(state, progress=progress) if around is None else around
    ways = [one for one in found if _sides(one)]
    if not ways:
        raise MeanfieldError(
            f"No saddle to another stable state was found around {state!r}, so no time to leave it."
            + "".join(f" {warning}" for warning in found.warnings)
        )
    here, across = Weight.of(state), [Weight.of(one.state) for one in ways]
    shares = [
        log(_sides(one) * one.rate / (2 * pi)) + weight.log_z(n)
        for one, weight in zip(ways, across, strict=True)
    ]
    lowest = ways[0], across[0]
    return EscapeTime(
        state=state,
        saddles=found,
        n=n,
        exponent=state.kappa * lowest[0].barrier,
        log_prefactor=log(2 * pi / (_sides(lowest[0]) * lowest[0].rate))
        + here.log_size
        - lowest[1].log_size,
        power=(here.dimension - lowest[1].dimension) / 2,
        log_time=here.log_z(n) - float(np.logaddexp.reduce(shares)),
        curvature=min(one.curvature for one in (here, lowest[1])),
    )


def _sides(saddle: Saddle) -> int:
    """Sides on which a saddle has a mirror image of its state: 1, or 2 if both are different.

    0 if a rotation of the model maps the state before the saddle to that beyond.
    """
    before, beyond = saddle.ends
    if before is None or beyond is None or not same_state(before, beyond):
        return 1
    return 0 if maps(0, before, beyond) else 2


def _advice_by_action(state: StationaryState) -> str:
    """The sentence about the path of least action, if that is known for the model."""
    try:
        check_action(state.model)
    except MeanfieldError:
        return ""
    if state.speed:
        return ""
    return (
        " To leading order log T = n exponent, of the path that mf.transition_path finds over one "
        "saddle."
    )


def _of_one_token(state: StationaryState, n: int, start: Any) -> EscapeTime:
    """The time until one token on the circle leaves a well of its field."""
    model, density = state.model, state.density
    if n != 1 or not isinstance(density.space, Circle) or model.extras or not model.noise.laplacian:
        raise MeanfieldError(
            "Tokens without interaction leave a well one by one: n = 1, in a Field on the circle "
            f"under isotropic noise; got n = {n}, {model!r} on {density.space!r}."
        )
    if start is None:
        start = density.space.points[int(np.argmax(density.values))]
    start = finite_array("start", start)
    require("start", start, "a point (2,) of the circle", start.shape == (2,) and start.any())
    theta, velocity, energy = _two_turns(model.drift, start)
    wells, tops = (np.flatnonzero(found) + 1 for found in _turns(energy))
    inside = wells[(wells >= TURN // 2) & (wells < 3 * TURN // 2)]
    if len(inside) < 2:
        raise MeanfieldError(f"{model.drift!r} has {len(inside)} wells, and a token needs two.")
    away = np.abs(tops - TURN).min() > 1
    require("start", start, "in a well; this is the top between two of them", away)
    uphill = np.flatnonzero(np.diff(np.sign(velocity)))
    rest = int(wells[np.argmin(np.abs(wells - _downhill(velocity, uphill)))])
    last, first = tops[tops < rest].max(), tops[tops > rest].min()
    beyond = {int(last): wells[wells < last].max(), int(first): wells[wells > first].min()}
    spacing, kappa = theta[1] - theta[0], state.kappa

    def log_integral(one: int, other: int, level: int, sign: int) -> float:
        part = energy[min(one, other) : max(one, other) + 1]
        return log(trapezoid(np.exp(sign * kappa * (part - _extreme(energy, level))), dx=spacing))

    well = log_integral(last, first, rest, -1)
    rises = np.array([_extreme(energy, top) - _extreme(energy, rest) for top in beyond])
    sizes = [log_integral(rest, to, top, 1) for top, to in beyond.items()]
    logs = log(kappa) + well + np.array(sizes)
    lowest = int(np.argmin(rises))
    return EscapeTime(
        state=state,
        saddles=saddles_of(state, [], 0, AXISYMMETRIC),
        n=1,
        exponent=kappa * float(rises[lowest]),
        log_prefactor=float(logs[lowest]),
        power=0.0,
        log_time=-float(np.logaddexp.reduce(-kappa * rises - logs)),
        curvature=np.nan,
    )


def _two_turns(drift: Any, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angles from one turn before a point to one after it, and v and V = -int v dtheta there."""
    theta = np.arctan2(middle[1], middle[0]) + np.linspace(-2 * pi, 2 * pi, 2 * TURN + 1)
    x = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    along = np.stack([-x[:, 1], x[:, 0]], axis=-1)
    velocity = sum((c * part(x) * along).sum(axis=-1) for c, part in drift.terms)
    return theta, velocity, -cumulative_simpson(velocity, x=theta, initial=0.0)


def _turns(energy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masks of the inner points that are minima, and of those that are maxima."""
    rises = np.diff(energy) > 0
    return ~rises[:-1] & rises[1:], rises[:-1] & ~rises[1:]


def _extreme(energy: np.ndarray, i: int) -> float:
    """The extreme value near the index i of one, of the parabola through three points."""
    before, here, after = energy[i - 1 : i + 2]
    return float(here - (after - before) ** 2 / (8 * (after - 2 * here + before)))


def _downhill(velocity: np.ndarray, zeros: np.ndarray) -> int:
    """Index of the point of rest to which the flow leads from the middle."""
    middle = len(velocity) // 2
    ahead = velocity[middle] > 0
    return int(zeros[zeros >= middle].min() if ahead else zeros[zeros < middle].max())
