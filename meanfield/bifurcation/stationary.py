"""Stationary states by Newton's method and deflation, and their stability."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from ..core.cached import cached_property
from ..core.calls import checked_call
from ..core.checks import real, require
from ..core.errors import MeanfieldError, UnresolvedWarning
from ..core.provided import Rows, Shown
from ..derivatives.densities import check_differentiable
from ..derivatives.variation import comparable
from ..dynamics.motion import MOTIONS
from ..engines.fields import fields_of
from ..lowlevel.blas import one_blas_thread
from ..models.higher_order import HigherOrder
from ..models.transformer import Transformer
from ..results.files import Contents, check_functions
from ..spaces import Space
from ..spaces.density import Density
from ..spaces.validity import NEGATIVE_SHARE, degree_above
from .bases import AXISYMMETRIC, UNIFORM_MOMENT, Basis, basis_on
from .continuation import StationaryCurve
from .derivatives import StationaryDerivative, state_derivative
from .families import basis_of, equation_of, naming_value, probed_values, with_parameter
from .newton import Iteration, deflated, newton
from .point_groups import NO_SYMMETRY
from .stability import Stability, is_stable, stability_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESOLVED_TAIL = 1e-13  # largest last moment of a resolved state
STATE_TOLERANCE = 1e-12  # default, on the largest residual
FINEST, COARSEST = 1e-15, 1e-3  # range of the tolerance
STATIONARY = 1e-8  # largest residual of a density for `stability`
ASYMMETRIC = 1e-5  # relative part of a density, in L^2, that may lack the symmetry
CLEARLY_NEGATIVE = 0.1  # relative to the largest value: not for want of resolution if, twice,
JUDGED_TAIL = 0.01  # the last moments are at most of this size
GUESS_TAIL = 1e-4  # largest last moment of a resolved guess
AT_STATE = 0.03  # largest distance in L^2 between the end of a run and its state
SAME_STATE = 1e-5  # in L^2: states at a smaller distance are equal
SETTLING_STEPS = 30  # fixed-point steps from a guess
LEADING = 8  # eigenvalues among which unstable ones are looked for
PROBED_BY_DRIFT = 4  # degree at which the parts of a drift are asked for derivatives
DIFFERENCE_TURN = 1e-2  # radians by which a state is turned to see whether residuals change
LEAST_RESIDUAL = 1e-15  # of a state, by rounding
UNDIRECTED = (
    " Its direction is not determined: residuals stay at rounding errors as it is turned by 0.01 "
    "radians. Make the fields that direct it stronger, or leave them out."
)
FAILED = (
    "Newton's method ended at the residual {residual:.1e} ({status}): start nearer to the state, "
    "for instance from the end of a run, or follow a branch."
)
MESSAGES = {
    "converged": "Newton's method converged in {steps} steps.",
    "known": "Newton's method came back to a state of apart_from: start elsewhere.",
    "unresolved": "Degree {degree} does not resolve the state: its last moments are {tail:.1e}, "
    "expected <= {limit:.0e}. For all digits raise max_degree: use {advice}.",
    "negative": "The solution is no probability density: its least value is -{negativity:.2g} "
    "times the largest.",
}


@dataclass(frozen=True, eq=False, repr=False)
class StationaryState(Shown):
    """A stationary density mu = exp(kappa g[mu]) / int exp(kappa g[mu]).

    Attributes
    ----------
    model : Transformer
    density : Density
    status : str
        "converged", or why Newton's method ended: "stalled", "singular", "max_iterations",
        "unresolved", "negative" (no probability density), "known" (equal to a state of
        `apart_from`).
    message : str
    residual : float
        max_l |m_l - E P_l| of the Legendre moments, E the mean with respect to exp(kappa g).
    residuals : list of float
        Residuals before every step of Newton's method, and the last one.
    legendre_moments : ndarray, (N,)
        int P_l(<x, axis>) dmu for l = 1, 2, ...; int cos(l theta) dmu on the circle. For groups on
        S^2, moments of the invariants over sqrt(2 l + 1).
    free_energy : float
        F(mu) - F(uniform); nan where there is none, as for SA. The observable of runs is F(mu).
    value : float
        On a branch, the value of the parameter; else nan.
    """

    model: Transformer
    status: str
    message: str
    residuals: list[float]
    legendre_moments: np.ndarray
    equation: Any
    axis: Any
    value: float = float("nan")

    @cached_property
    def density(self) -> Density:
        return self.equation.basis.density(self.legendre_moments, self.axis)

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    @property
    def residual(self) -> float:
        return self.residuals[-1]

    @property
    def kappa(self) -> float:
        return float(self.model.kappa)

    @property
    def free_energy(self) -> float:
        return self.equation.free_energy(self.equation.mean(self.legendre_moments, self.kappa))

    @property
    def speed(self) -> float:
        """Angular velocity of a rotating wave; 0 for a state at rest.

        Signed on the circle, positive on S^2. `stability` is that in the co-rotating frame.
        """
        return self.equation.speed(self.legendre_moments, self.kappa)

    @property
    def order_parameter(self) -> float:
        """|int x dmu|/|x|: 0 for the uniform measure and 1 for a point; |x|^2 = m on the torus."""
        return float(self.equation.basis.order_parameter(self.legendre_moments))

    @property
    def stable(self) -> bool:
        """Whether every perturbation decays, rotations excepted: see `is_stable`.

        For a state that has not converged, from the spectrum that `stability` computes.
        """
        if not self.converged:
            return self.stability(1).stable
        return is_stable(self.equation, self.legendre_moments, self.kappa)

    def stability(self, count: int = 6) -> Stability:
        """The `count` leading eigenvalues of the linearised equation: `meanfield.stability`."""
        return stability_of(self.equation, self.legendre_moments, self.kappa, count)

    @cached_property
    def leading(self) -> Stability:
        """The eight leading eigenvalues of the linearised equation."""
        return self.stability(LEADING)

    @cached_property
    def images(self) -> "list[StationaryState] | None":
        """This state and its images in the basis of a search, on each of its axes of symmetry.

        The perturbations with the symmetry of the search differ from one to another: a state of
        period pi on the circle is even about two kinds of axes. In a basis without symmetry, where
        they do not, the state once for each image. As `Basis.placements`, empty or None.
        """
        images = self.equation.basis.placements(self.legendre_moments)
        if not images:
            return None if images is None else []
        if not self.equation.basis.symmetric:
            return len(images) * [self]
        there = [m for m in images[1:] if self.equation.residual(m, self.kappa) <= STATIONARY]
        return [self, *(replace(self, legendre_moments=m) for m in there)]

    def derivative(self, parameter: str) -> StationaryDerivative:
        """Derivative of the state, and of quantities computed from it, by a parameter.

        By the implicit function theorem, among states of the same symmetry and axis.

        Parameters
        ----------
        parameter : str
            "kappa", or a field of the drift such as "beta".

        Returns
        -------
        StationaryDerivative
            Derivatives of moments, density, order parameter, free energy and eigenvalues.

        Raises
        ------
        ValueError
            If there is no such parameter, or the state has not converged.
        MeanfieldError
            At a fold or where branches cross: see `SpecialPoint.derivative`.
        """
        return state_derivative(self, parameter)

    @cached_property
    def _truncations(self) -> dict[int, Density]:
        """Results of `truncated` for each degree."""
        return {}

    def truncated(self, degree: int) -> Density:
        """The solution near the state of the equation truncated at a degree, or at its own if less.

        The coefficients of the state up to the degree if Newton's method from them leads away.
        """
        equation = self.equation.finer(degree) if degree < self.equation.degree else self.equation
        if equation is self.equation:
            return self.density
        if degree not in self._truncations:
            basis, m = equation.basis, self.legendre_moments[: len(equation.degrees)]
            iteration = _solved(equation, self.kappa, m, STATE_TOLERANCE, [])
            away = np.linalg.norm(basis.norms * (iteration.x - m))
            kept = iteration.x if iteration.converged and away < AT_STATE else m
            self._truncations[degree] = basis.density(kept, self.axis)
        return self._truncations[degree]

    def for_file(self) -> Density:
        """The density, from which `multistability.state_of` computes the state."""
        return self.density

    def plot(self, kind: str = "overview", **options: Any) -> "Figure":
        """A matplotlib figure of the density, as `density.plot` draws it.

        Raises
        ------
        ValueError, TypeError
            If there is no such kind on this space, or for an option that it does not have.
        """
        return self.density.plot(kind, **options)

    def card(self) -> tuple[str, Rows, Callable[[], Any]]:
        names = "kappa", "order_parameter", "status", "residual"
        rows = [(name.replace("_", " "), f"{getattr(self, name)}") for name in names]
        return repr(self), rows, self.plot

    def __repr__(self) -> str:
        return (
            f"StationaryState({self.model!r}, r = {self.order_parameter:.6g}, {self.status}, "
            f"residual {self.residual:.1e})"
        )


def state_at(
    curve: StationaryCurve, z: np.ndarray, axis: Any = None, value: float | None = None
) -> StationaryState:
    """The state of a point (m, p) of a curve; missing moments of high degree are 0.

    `value` is that of the parameter where it was asked for: exp(p) of p = log kappa has its own
    rounding.
    """
    value = curve.value(z[-1]) if value is None else value
    return state_on_branch(*curve.of_value(value), z[:-1], value, axis)


def state_on_branch(
    equation: Any, kappa: float, m: np.ndarray, value: float, axis: Any = None
) -> StationaryState:
    """The state with these moments, those of high degree left out if 0, at a parameter value."""
    m = equation.basis.padded(m)
    axis = equation.basis.axis if axis is None else axis
    residual = np.nan if equation.absent else equation.residual(m, kappa)
    text, model = "A point of a branch.", equation.model_at(kappa)
    return StationaryState(model, "converged", text, [residual], m, equation, axis, value)


@checked_call()
def stationary(
    model: Transformer,
    guess: Density,
    *,
    symmetry: str | np.ndarray = AXISYMMETRIC,
    apart_from: Sequence[StationaryState] = (),
    tolerance: float = STATE_TOLERANCE,
    max_degree: int | None = None,
) -> StationaryState:
    """The stationary state near a guess, by Newton's method on mu = exp(kappa g[mu]) / const.

    Parameters
    ----------
    model : Transformer
        A single model with a finite kappa that moves a `Density` and does not change with time. If
        it consists of isotropic noise and a zonal drift grad(W * mu)/(Z * mu) with constant Z or
        Z' = c W', the equation of moments is solved; else the general one of `transport`.
    guess : Density or Indexed
        Density on the circle, S^2, Torus or Zonal that has the symmetry: see `symmetrised`; or
        indexed densities on the circle or S^2.
    symmetry : str or array, (k, 3, 3)
        "axisymmetric": about the axis of the first nonzero moment of the guess; on the torus, even
        in each angle about the centre of its lowest waves. On the torus also "square", invariant
        under exchanges of angles too, and "even", under x -> -x alone. On S^2 also
        "none", for all harmonics, and any finite group: by its name in Schoenflies'
        notation with the main axis z, "C3v" or "D2h", or by matrices that generate it. Td, Oh
        and Ih are also called "tetrahedral" (vertices at (1, 1, 1), (1, -1, -1), ... or their
        opposites), "octahedral" (on the axes) and "icosahedral" ((0, 1, (1 + sqrt 5)/2), ...).
    apart_from : sequence of StationaryState
        Solutions to exclude. Newton's method is applied to the residual times
        1 + 1/|mu - mu_k|^2 for each of them, with norms in L^2 (deflation). Mirror images are
        excluded too.
    tolerance : float
        Tolerance on the largest residual of a Legendre moment, from 1e-15 to 1e-3.
    max_degree : int
        Highest degree of truncation. The degree is doubled up to it until the state is resolved to
        1e-13. By default 1024; with groups on S^2 the degree is raised by a half each time, up to
        162 for polyhedra and 80 for others.

    Returns
    -------
    StationaryState
        See its status: it need not have converged, nor be the state nearest to the guess.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments, ensembles, models without noise, symmetries that are not available on
        the space, and guesses without the symmetry.
    MeanfieldError
        For models that change with time or move no densities.

    Notes
    -----
    Convergence is quadratic: `residuals` shows it. A step costs O(N^3 + N^2 M) for N moments and
    M = 2 N nodes, about 0.1 ms for 32. Without symmetry on S^2 N is (degree + 1)^2 - 1 and M 4.5
    times as much: 0.1 s a step for degree 16, 1 s for 24. Above 640 unknowns a step is solved by
    GMRES with spherical harmonic transforms: some 30 iterations of O(degree^3). Rotations of the
    state, which would make the Jacobian singular, are excluded by phase conditions.

    References
    ----------
    Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020), for the
    equation; Geshkovski et al., arXiv:2312.10794, for the drifts; Farrell, Birkisson and Funke,
    SIAM J. Sci. Comput. 37 (2015), for deflation.
    """
    state = state_near(
        model, guess, symmetry, apart_from, tolerance=tolerance, max_degree=max_degree
    )
    if state.status == "unresolved" or UNDIRECTED in state.message:
        warn(state.message, UnresolvedWarning, stacklevel=3)
    return state


def state_near(
    model: Transformer, guess: Density, symmetry: Any, apart_from: Sequence[StationaryState] = (),
    tolerance: float = STATE_TOLERANCE, max_degree: int | None = None,
) -> StationaryState:  # fmt: skip
    """The state near a guess, as `stationary`, without warnings."""
    check_model(model, guess.space, guess.shape)
    basis, kappa = basis_of([model], guess.space, symmetry), float(model.kappa)
    wanted = f"from {FINEST:g} to {COARSEST:g}"
    real("tolerance", tolerance, wanted, lambda number: FINEST <= number <= COARSEST)
    most = basis.most_for(max_degree, basis.finest)
    m, axis = basis.moments(guess)
    _check_symmetry("guess", basis, symmetry, guess, m, axis)
    basis, m = basis.fitted(m)
    equation, excluded = equation_of(model, basis), _checked_states(apart_from, guess.space)
    with one_blas_thread():
        there = _excluded_moments(excluded, basis)
        iteration = _solved(equation, kappa, m, tolerance, there, basis.moved)
        undirected = _turned_by_rounding(equation, kappa, iteration)
        known = iteration.converged and any(
            turned_alike(basis, other, iteration.x) for other in there
        )
        if known:
            iteration = iteration._replace(status="known")
        equation, iteration = _refined(equation, kappa, iteration, tolerance, most)
    m, status, residuals, basis = iteration.x, iteration.status, iteration.residuals, equation.basis
    if not known and any(turned_alike(basis, one, m) for one in _excluded_moments(excluded, basis)):
        status = "known"
    negativity = equation.negativity(equation.mean(m, kappa)) if status == "converged" else 0.0
    if negativity > NEGATIVE_SHARE:
        status = "negative"
    text = MESSAGES.get(status, FAILED).format(
        steps=len(residuals) - 1, degree=basis.degree, residual=residuals[-1], status=status,
        negativity=negativity, tail=basis.tail(m, RESOLVED_TAIL, equation.moving),
        limit=RESOLVED_TAIL, advice=degree_above(basis.degree, basis.highest, m, RESOLVED_TAIL),
    )  # fmt: skip
    text += UNDIRECTED if undirected and status == "converged" else ""
    return StationaryState(model, status, text, residuals, m, equation, axis)


@checked_call()
def symmetrised(density: Density, symmetry: str | np.ndarray = AXISYMMETRIC) -> Density:
    """Project a density on those with a symmetry: the mean of its images under the group.

    Parameters
    ----------
    density : Density
        A single density on the circle, S^2 or Zonal.
    symmetry : str or array, (k, 3, 3)
        As for `stationary`. "axisymmetric": about the axis of the first nonzero moment of the
        density.

    Returns
    -------
    Density
        Symmetric density, of the degree at which the search for states begins, or of the degree of
        the given density if that is higher.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments, ensembles, and symmetries that are not available on the space.
    """
    require("density.shape", density.shape, "(), one density", density.shape == ())
    basis = basis_on(density.space, symmetry)
    if density.space.degree > basis.degree:
        basis = basis.finer(density.space.degree)
    return basis.density(*basis.moments(density))


@checked_call()
def stability(
    model: Transformer,
    density: Density,
    *,
    symmetry: str | np.ndarray = AXISYMMETRIC,
    count: int = 6,
) -> Stability:
    """The leading eigenvalues of the Fokker-Planck equation linearised about a stationary state.

    Parameters
    ----------
    model : Transformer
    density : Density
        Stationary density with the symmetry, from `stationary` or the end of a simulation.
    symmetry : str
        As for `stationary`.
    count : int
        Number of eigenvalues.

    Returns
    -------
    Stability

    Raises
    ------
    TypeError, ValueError
        For wrong arguments, and for densities that are not stationary.
    """
    check_model(model, density.space, density.shape)
    basis = basis_of([model], density.space, symmetry)
    if density.space.degree > basis.degree:
        basis = basis.finer(min(density.space.degree, basis.most))
    m, axis = basis.moments(density)
    _check_symmetry("density", basis, symmetry, density, m, axis)
    basis, m = basis.fitted(m)
    equation, kappa = equation_of(model, basis), float(model.kappa)
    residual = equation.residual(m, kappa)
    if not residual <= STATIONARY:
        raise ValueError(
            f"stability expects a stationary density, here {symmetry}; its residual is "
            f"{residual:.1e}, more than {STATIONARY:g}. Use stationary(model, density) first."
        )
    return stability_of(equation, m, kappa, count)


def check_stationary(contents: Contents, *states: StationaryState) -> None:
    """Raise OtherModel unless states of a file are stationary under the model given to `load`."""
    for state in states if contents.model is not None else ():
        residual = state.equation.residual(state.legendre_moments, state.kappa)
        check_functions("the residual of a state, to rounding,", residual, 0.0, STATIONARY)


def check_model(model: Transformer, space: Space, shape: tuple[int, ...] = ()) -> None:
    """Raise ValueError or MeanfieldError if stationary densities of a model cannot be computed.

    Parameters
    ----------
    model : Transformer
    space : Space
    shape : tuple of int
        Ensemble shape of the densities.
    """
    if model.shape or shape:
        raise ValueError(
            "Stationary states are found one at a time; got ensembles of shape "
            f"{model.shape} and {shape}."
        )
    if model.common is not None:
        raise ValueError(
            f"A density under common noise, here {model.common!r}, does not rest: it has no "
            "stationary states, and so no saddles or paths between them. Leave common out, or look "
            "at observables of a long run."
        )
    if not model.noisy:
        raise ValueError(
            "Stationary densities and cycles need noise: give the Transformer a finite kappa. "
            "Without noise densities need not stay smooth: see where mf.solve takes "
            "mf.Characteristics(density), or tokens."
        )
    if not model.steady_noise or not model.drift.constant:
        raise MeanfieldError(
            "Stationary densities and cycles need a model that does not change with time, and a "
            f"kappa that does not change; got {model!r}."
        )
    if not model.is_zonal:
        like = space.uniform()
        MOTIONS[type(like)](model, like, rtol=COARSEST)  # raises if it moves no such densities
        alone = getattr(space, "slice_space", space)
        coarse = alone.with_degree(min(alone.degree, PROBED_BY_DRIFT))
        fields = [
            part for part in fields_of(model.drift, coarse)
            if not isinstance(part[1].drift, HigherOrder)  # see `moment_products`
        ]  # fmt: skip
        check_differentiable(model.at_each_place.replace(reaction=0.0), fields)


def check_along(
    source: Any, name: str, span: tuple[float, float], space: Space, kappa: float | None = None
) -> None:
    """`check_model` at three values of a parameter, with another kappa if it is given.

    Errors name the value at which the model of a function does not fit.
    """
    for value in probed_values(span):
        model = with_parameter(source, name, value)
        with naming_value(source, name, value):
            check_model(model if kappa is None else model.replace(kappa=kappa), space)


def _check_symmetry(
    what: str, basis: Basis, symmetry: Any, density: Density, m: np.ndarray, axis: Any
) -> None:
    """Raise ValueError if a density lacks the symmetry; `m` and `axis` are its moments with it."""
    lost = _asymmetry(basis, density, m, axis)
    if lost > ASYMMETRIC:
        name, argument = "the given symmetry", ", symmetry"
        if isinstance(symmetry, str):
            name, argument = f"the symmetry {symmetry}", f', "{symmetry}"'
            if symmetry == AXISYMMETRIC:
                name, argument = "symmetry about an axis", ""
        other = f', or symmetry="{NO_SYMMETRY}"' if basis.dimension == 3 else ""
        percent = float(f"{100 * lost:.2g}")
        raise ValueError(
            f"{what} lacks {name}: {percent:g} % of its distance from the uniform density, in L^2, "
            f"lies outside. Use symmetrised({what}{argument}){other}."
        )


def _asymmetry(basis: Basis, density: Density, m: np.ndarray, axis: Any) -> float:
    """Relative L^2 norm of the part of a density that is not represented by the moments (m, axis).

    Relative to its difference from the uniform density; 0 for a uniform one.
    """
    space = density.space
    degree = min(space.degree, basis.degree)
    kept = basis.density(m, axis)
    here = space.resample(density.coefficients, degree)
    lost = here - kept.space.resample(kept.coefficients, degree)
    square = space.with_degree(degree).parseval
    varies = space.with_degree(degree).degrees > 0
    order = float((square * np.abs(here) ** 2)[varies].sum())
    missing = float((square * np.abs(lost) ** 2)[varies].sum())
    return float(np.sqrt(missing / order)) if order > UNIFORM_MOMENT**2 else 0.0


def turned_alike(basis: Basis, m: np.ndarray, k: np.ndarray) -> bool:
    """Whether states with moments m and k are equal up to a rotation that keeps the symmetry."""
    return bool(np.linalg.norm(basis.fingerprint(m) - basis.fingerprint(k)) < SAME_STATE)


def l2_distance(one: Any, other: Any) -> float:
    """Distance of two densities in L^2."""
    degree = max(one.space.degree, other.space.degree)
    space = one.space.with_degree(degree)
    change = one.resample(degree).coefficients - other.resample(degree).coefficients
    return float(np.sqrt(space.parseval @ np.abs(change) ** 2))


def _checked_states(apart_from: Any, space: Space) -> list[StationaryState]:
    """`apart_from` as a list; raises unless it has states on the same space up to the degree."""
    states = list(apart_from) if isinstance(apart_from, Iterable) else [apart_from]
    fits = all(isinstance(state, StationaryState) for state in states)
    require("apart_from", apart_from, "a sequence of StationaryState", fits, TypeError)
    for other in (state.density.space for state in states):
        if not comparable(other, space):
            raise ValueError(f"apart_from has states on {other!r}; the guess is on {space!r}.")
    return states


def recognised(
    guess: Density, states: Sequence[StationaryState], symmetry: Any, within: float = np.inf
) -> StationaryState | None:
    """The first of `states` to which, or to an image of it, Newton's method leads from a guess.

    At the degree of the guess, where states are compared without refinement. None if there is no
    such state, or if the solution is not `within` a distance in L^2 of the guess.
    """
    if not states:
        return None
    model = states[0].model
    basis, kappa = basis_of([model], guess.space, symmetry), float(model.kappa)
    basis, m = basis.fitted(basis.moments(guess)[0])
    with one_blas_thread():
        iteration = _solved(equation_of(model, basis), kappa, m, STATE_TOLERANCE, [])
        if not iteration.converged or np.linalg.norm(basis.norms * (iteration.x - m)) > within:
            return None
        for state in states:
            if any(
                turned_alike(basis, one, iteration.x) for one in _excluded_moments([state], basis)
            ):
                return state
    return None


def _excluded_moments(excluded: list[StationaryState], basis: Basis) -> list[np.ndarray]:
    """Moments, in a basis, of the states to exclude and of their mirror images."""
    here = [basis.moments(state.truncated(basis.degree))[0] for state in excluded]
    images = [image for m in here for image in basis.equivalents(m)]
    return here + [m for m in images if not any(np.array_equal(m, other) for other in here)]


def _solved(
    equation: Any, kappa: float, m: np.ndarray, tolerance: float, excluded: list[np.ndarray],
    moved: Callable[..., np.ndarray] = add,
) -> Iteration:  # fmt: skip
    """Newton's method from m, deflated if there are `excluded` states.

    With deflation, steps are not shortened, so that residuals may grow.
    """
    system = partial(equation.system, kappa=kappa, whole=bool(excluded))
    if not excluded:
        return newton(system, m, tolerance, moved=moved)
    further = deflated(system, excluded, equation.basis.norms)
    iteration = newton(further, m, tolerance, shortened=False)
    if not iteration.converged:
        return iteration
    last = newton(system, iteration.x, tolerance)
    return last._replace(residuals=[*iteration.residuals, *last.residuals[1:]])


def _refined(
    equation: Any, kappa: float, iteration: Iteration, tolerance: float, most: int
) -> tuple[Any, Iteration]:
    """Newton's method at higher degrees, up to `most`, until one resolves the state.

    It ends too at a state that is clearly negative at two degrees with small last moments.
    """
    times_negative = 0
    while iteration.converged and not equation.resolves(iteration.x, kappa, RESOLVED_TAIL):
        basis = equation.basis
        negativity = equation.negativity(equation.mean(iteration.x, kappa))
        tail = basis.tail(iteration.x, JUDGED_TAIL, equation.moving)
        times_negative += negativity > CLEARLY_NEGATIVE and tail <= JUDGED_TAIL
        if times_negative == 2:
            break
        if basis.degree >= most:
            return equation, iteration._replace(status="unresolved")
        equation = equation.finer(min(basis.next_degree, most))
        iteration = _solved(equation, kappa, equation.basis.padded(iteration.x), tolerance, [])
    return equation, iteration


def _turned_by_rounding(equation: Any, kappa: float, iteration: Iteration) -> bool:
    """Whether a state in a direction that differs visibly has no larger residual."""
    error = max(iteration.residuals[-1], LEAST_RESIDUAL)
    turned = equation.basis.rotated(iteration.x, DIFFERENCE_TURN) if iteration.converged else ()
    return any(equation.residual(m, kappa) < error for m in turned)


def settled(equation: Any, m: np.ndarray, kappa: float) -> tuple[np.ndarray, Any]:
    """Moments after fixed-point steps mu <- exp(kappa g[mu])/const, and the resolving equation.

    30 steps are repeated at twice the degree while the last moments exceed 1e-4.
    """
    while True:
        for _ in range(SETTLING_STEPS):
            m = equation.mean(m, kappa).moments
        degree = 2 * equation.degree
        if equation.basis.tail(m, GUESS_TAIL) <= GUESS_TAIL or degree > equation.basis.most:
            return m, equation
        equation = equation.finer(degree)
        m = equation.basis.padded(m)
