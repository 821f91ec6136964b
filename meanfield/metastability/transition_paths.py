"""Transition paths: minimum free-energy paths between two stable stationary states.

Under noise with a free energy F the mean-field equation is the gradient flow of F in the
Wasserstein geometry. The minimum free-energy path between two stable states consists of both
halves of the unstable manifolds of the saddles between them, along which the flow d_t mu is
tangent to the path. Without a free energy the path up to each saddle is that of least action, see
`least_actions`; from the saddle down it follows the flow.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.sparse.linalg import expm_multiply

from ..bifurcation import StationaryState
from ..bifurcation.bases import AXISYMMETRIC, UNIFORM_MOMENT, VISIBLE_MOMENT, OnSphere
from ..bifurcation.multistability import (
    model_in,
    same_state,
    state_of,
)
from ..bifurcation.reflections import Reflected, Symmetries, reflected_on
from ..bifurcation.stationary import SAME_STATE, check_stationary, l2_distance, state_near
from ..core.cached import cached_property
from ..core.calls import checked_call
from ..core.checks import require, whole_number
from ..core.errors import MeanfieldError
from ..core.forms import Natural
from ..core.provided import FIGURES
from ..dynamics.motion import motion_for
from ..dynamics.observables import measure
from ..models.transformer import Transformer
from ..results.files import Contents, Result, dataset_of
from ..solving import solve
from ..spaces import Circle, Density, Sphere, Zonal
from ..spaces.validity import NEGATIVE_SHARE
from .least_actions import DensityFlow, LeastAction, least_action
from .saddles import (
    Saddle,
    Saddles,
    check_stable,
    check_together,
    saddle_at,
    saddle_of,
    saddles,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

FEWEST_IMAGES, MOST_IMAGES = 9, 10_000
NEAR_SADDLE, NEAR_END = 1e-5, 1e-6  # L^2 distances at which runs down from a saddle begin and end
TIME_STEP = 0.05  # between outputs of these runs, over the shorter time of growth and decay
STRETCH_OUTPUTS, MOST_OUTPUTS = 400, 4000  # outputs of one run, and of all from one saddle
DESCENT_RTOL = 1e-10  # of these runs
STRING_RTOL = 1e-9
ALIGNED = 1e-3  # largest residual of a converged path
ROUGH, SETTLED = 0.03, 1e-7  # moves of images in one step of the string, over its spacing
MOST_STRING_STEPS = 400
LENGTH_NODES = 3  # of Gauss quadrature in each interval of a spline
FEWEST_DEGREES, ROUNDING = 16, 1e-14  # least degree; smaller coefficients of states are rounding
KNOWN_ACTION = 1e-6  # largest relative error of the action of a converged path
AT_REST = 1e-9  # largest angular velocity of a state at rest
UNIT_CHANGE = 0.01  # size of perturbations in a linear map of coefficients
ASIDE = 1e-7  # part of a state, in L^2, that may lack the symmetry of the path
SHARE_OF_LENGTH = 0.1  # longest move of an image by the flow in one step, over the whole length
TURNS_PER_DEGREE, TURN_STEPS = 4, 5  # angles tried to turn a state, and Newton steps from the best
EQUAL = 1e-9  # in L^2: images of a state at smaller distances are equally near
FEWEST_PARTS = 2  # of a leg between a stable state and a saddle


@dataclass(frozen=True, eq=False, repr=False)
class TransitionPath(Result):
    """The path of least action between two stable stationary states.

    With a free energy it is the minimum free-energy path.

    Attributes
    ----------
    data : xarray.Dataset
        On `image`: length (of the path up to the image, in H^-1), free_energy
        (F - F(uniform); nan where there is none) and order_parameter.
    densities : Density, (images,)
        The ensemble of densities along the path.
    ends : (StationaryState, StationaryState)
        The states a and b between which the path was sought.
    passes : tuple of Saddle
        Saddles in the order in which the path crosses them; empty if none was found. Their states
        differ from those on the path by a rotation or reflection.
    method : str
        "manifold", "string" or "least action".
    residual : float
        Largest component of d_t mu across the path, over the largest d_t mu on it; norms in H^-1.
        Of a path of least action, on its parts from saddles down.
    symmetry : str or array
    action : float
        A = 1/2 int |d_t mu - b(mu)|^2 dt, the action of Dawson and Gaertner, in the norm of
        `least_actions`: n tokens follow the path with the probability exp(-n kappa A/2). Where
        there is a free energy, twice its rises up to the saddles; nan without a saddle.
    action_error : float
        Difference of the actions of two resolutions; 0 where A comes from free energies.
    """

    made_by = "transition_path"
    takes_model = True
    derived = ("model",)

    data: "xr.Dataset"
    densities: Density
    ends: tuple[StationaryState, StationaryState]
    passes: tuple[Saddle, ...]
    method: str
    residual: float
    symmetry: Any
    action: float
    action_error: float

    @property
    def model(self) -> Transformer:
        return self.ends[0].model

    @property
    def saddle(self) -> Saddle | None:
        """The highest saddle on the path; None if none was found.

        Without a free energy, None too if there are several, whose heights are not known.
        """
        if len(self.passes) > 1 and np.isnan(self.ends[0].free_energy):
            return None
        return max(self.passes, key=lambda one: one.state.free_energy, default=None)

    @property
    def barrier(self) -> float:
        """F(highest saddle) - F(a); nan without a saddle or a free energy."""
        top = self.saddle
        return np.nan if top is None else top.state.free_energy - self.ends[0].free_energy

    @property
    def quasi_potential(self) -> float:
        """A/2: n tokens follow the path with the probability exp(-n kappa A/2).

        Where there is a free energy, the sum of its rises up to the saddles.
        """
        return self.action / 2

    @property
    def exponent(self) -> float:
        """Limit of log T/n for large n, of the mean time T in which n tokens come from a to b.

            kappa max over i <= j of F(saddle_j) - F(c_i)

        The c_i are the stable states before each saddle, c_0 = a, as if there were no others. Of
        one saddle it is kappa A/2; nan if there are several without a free energy.
        """
        if len(self.passes) == 1:
            return float(self.model.kappa) * self.quasi_potential
        stable, highest, lowest = self.ends[0], np.nan, np.inf
        for one in self.passes:
            lowest = min(lowest, stable.free_energy)
            highest = np.fmax(highest, one.state.free_energy - lowest)
            stable = _beyond(one)
        return float(self.model.kappa * highest)

    @property
    def converged(self) -> bool:
        """Whether its saddles have converged, d_t mu is tangent to the path and A is known.

        A must be known to a relative error of 1e-6.
        """
        resolved = self.residual < ALIGNED and self.action_error <= KNOWN_ACTION * self.action
        return bool(resolved and self.passes) and all(one.converged for one in self.passes)

    @classmethod
    def made_of(cls, contents: Contents) -> Self:
        """The path from the contents of a file."""
        data, header = dataset_of(contents)
        model, symmetry = model_in(contents, "this path"), header["symmetry"]
        header["ends"] = tuple(state_of(model, one, symmetry) for one in header["ends"])
        check_stationary(contents, *header["ends"])
        header["passes"] = tuple(saddle_of(model, one, symmetry) for one in header["passes"])
        del header["model"]
        return cls(data, **header)

    def plot(self, **options: Any) -> "Figure":
        """Draw free energy, or order, and densities on the path: `plotting.transition_path`."""
        return FIGURES["transition_path"](self, **options)

    @property
    def _height(self) -> str:
        """The barrier or, without a free energy, the quasi-potential and its error, in words."""
        if not np.isnan(self.ends[0].free_energy):
            return f"barrier {self.barrier:.8g}"
        return f"quasi-potential {self.quasi_potential:.8g} (+- {self.action_error / 2:.1e})"

    def __repr__(self) -> str:
        done = "converged" if self.converged else "not converged"
        r = " -> ".join(f"{end.order_parameter:.4g}" for end in self.ends)
        return (
            f"TransitionPath(r = {r}, {len(self.densities)} images, {len(self.passes)} saddles, "
            f"{self._height}, {done}, residual {self.residual:.1e})"
        )


@checked_call("a", "b")
def transition_path(
    a: StationaryState,
    b: StationaryState,
    *,
    images: Natural = 65,
    method: Literal["manifold", "string"] = "manifold",
    symmetry: str | np.ndarray = AXISYMMETRIC,
) -> TransitionPath:
    """The path of least action, or of least free energy, from one stable state to another.

    If the model has a free energy, the path consists of both halves of the unstable manifold of the
    saddle between the states, down which `solve` follows the equation. Else the part up to the
    saddle is that of least action of Dawson and Gaertner. Saddles are found by `saddles`, around a
    and the stable states beyond; of several ways from a to b, the one with the lowest highest
    saddle is taken, without a free energy that of least action. If there is none, saddles are
    sought on the path of the string method, for models with a free energy.

    Parameters
    ----------
    a, b : StationaryState
        Stable states of one model under isotropic noise, as for `saddles`, on one space.
    images : int
        Number of densities along the path, from 9 to 10 000; raised where it is smaller than one
        and four for each saddle.
    method : str
        "manifold", or least action without a free energy; or "string", for the densities of the
        string method themselves, with a free energy.
    symmetry : str or array, (k, 3, 3)
        Symmetry of the states among which saddles are sought, as for `stationary`.

    Returns
    -------
    TransitionPath
        The path ends in b and begins in a, or in an image of a under a rotation of the model that b
        is not invariant under. Models that are invariant under all rotations of S^2 are an
        exception for groups and without symmetry: the path keeps the frame of the saddle. Without a
        saddle, or where its manifold leads elsewhere, the result is the string: see `converged`.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range, states of two models or spaces, states that are unstable
        or have not converged, and states that are equal up to a rotation of the model.
    MeanfieldError
        Without a free energy: if no saddle between the states was found, for rotating states, and
        under noise that is not isotropic.

    Notes
    -----
    The string begins with the mixtures of a and b. In each step all images follow the equation for
    a short time, as one ensemble of `solve`, and are then spaced equally in H^-1 by cubic splines.
    As soon as it moves slowly, its local maxima of F are moved to saddles by Newton's method, and
    the parts between these converge. The error of the string is of fourth order in the spacing,
    that of the manifold about 1e-8 in L^2. Both cost about 2 s on the circle; a string that does
    not converge ends after 400 steps.

    The path of least action is a polynomial of degree 12 to 40 in a multiple of its length, with
    the symmetry that state and saddle share; it is found from the unstable manifold, reversed, by
    L-BFGS preconditioned by the second derivatives of the action. The degree is raised until the
    action changes by less than 1e-8. Where the slowest perturbations of a state decay in
    oscillations the path is a spiral near it, which polynomials do not resolve: see `action_error`.
    About 10 s on the circle; O(N^3) for N coefficients.

    References
    ----------
    Heymann and Vanden-Eijnden, Comm. Pure Appl. Math. 61 (2008) 1052, for the geometric action;
    Dawson and Gaertner, Stochastics 20 (1987) 247, for n tokens;
    E, Ren and Vanden-Eijnden, J. Chem. Phys. 126 (2007) 164103, for the simplified string method;
    Jordan, Kinderlehrer and Otto, SIAM J. Math. Anal. 29 (1998), for the geometry.
    """
    _check_ends(a, b)
    images = whole_number("images", images, least=FEWEST_IMAGES, most=MOST_IMAGES)
    wanted = '"manifold" or "string"'
    require("method", method, wanted, method in ("manifold", "string"))
    if np.isnan(a.free_energy):
        course, action, error = _of_least_action(a, b, method, symmetry)
    else:
        course = _of_least_energy(a, b, images, method, symmetry)
        action, error = _action_by_energies(course.passes), 0.0
    rows, lengths, residual = _images_of(course, images)
    table, densities = _table(course.frame, rows, lengths), course.frame.lifted(rows)
    return TransitionPath(
        table, densities, (a, b), tuple(course.passes), course.method, residual, symmetry, action,
        error,
    )  # fmt: skip


def _of_least_energy(
    a: StationaryState, b: StationaryState, images: int, method: str, symmetry: Any
) -> "_Course":
    """The minimum free-energy path."""
    if method == "manifold":
        course = _manifold(a, b, _lowest_passes(a, b, _around(symmetry)))
        if course is not None:
            return course
    string = _string(a, b, images, symmetry)
    if method == "string":
        return string

    def on_string(here: StationaryState) -> list[Saddle]:
        return [one for one in string.passes if one.ends[0] and same_state(one.ends[0], here)]

    return _manifold(a, b, _lowest_passes(a, b, on_string)) or string


def _action_by_energies(passes: Sequence[Saddle]) -> float:
    """Twice the rises of F up to the saddles; nan without saddles."""
    return 2 * sum(one.barrier for one in passes) if passes else np.nan


def _check_ends(a: Any, b: Any) -> None:
    """Raise unless a and b are two stable states of one model on one space."""
    check_stable("a", a)
    check_stable("b", b)
    check_together("a and b", a, b)
    if _maps(0, a, b):
        raise ValueError(
            f"a and b must be two states; both are {a!r}, up to a rotation of the model. "
            "mf.stationary_states finds others."
        )


_Map = Callable[[np.ndarray], np.ndarray]  # of rows of coefficients (..., modes)


# Frames ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """Space of the densities on a path while it is computed, and the way to and from it.

    Densities on S^2 that are symmetric about an axis are computed as functions of one variable.

    Attributes
    ----------
    model : Transformer
    basis : Basis
        Basis of the states.
    space : Space
        Space of the rows of coefficients, (images, modes), of a path.
    axis : Any
        Axis of the densities on the path.
    """

    model: Transformer
    basis: Any
    space: Any
    axis: Any

    @classmethod
    def of(cls, a: StationaryState, b: StationaryState, *others: StationaryState) -> Self:
        """The frame of a path from a to b, of the degree that all these states need."""
        states = (a, b, *others)
        basis = max((one.equation.basis for one in states), key=lambda one: one.degree)
        needed = [_visible_degree(one) for one in states]
        basis = basis.finer(max(FEWEST_DEGREES, *needed))
        space = basis.density(0.0 * basis.degrees, basis.axis).space
        if cls.is_flat(basis):
            space = Zonal(basis.dimension, basis.degree)
        axis = b.axis if np.abs(b.legendre_moments).max() > UNIFORM_MOMENT else a.axis
        return cls(a.model, basis, space, axis)

    @staticmethod
    def is_flat(basis: Any) -> bool:
        """Whether densities of one variable stand for those on S^2."""
        return isinstance(basis, OnSphere)

    @cached_property
    def weights(self) -> np.ndarray:
        """Factors (modes,) of squared coefficients in the square of the norm in H^-1."""
        varies = self.space.degrees > 0
        rates = np.where(varies, np.abs(self.space.laplacian), 1.0)
        return np.where(varies, self.space.parseval / rates, 0.0)

    def norms(self, changes: np.ndarray) -> np.ndarray:
        """Norms (...,) in H^-1 of changes of coefficients (..., modes)."""
        return np.sqrt(np.abs(changes) ** 2 @ self.weights)

    def row(self, space: Any, coefficients: np.ndarray, axis: Any) -> np.ndarray:
        """Coefficients (modes,) on the space of the path, of a density or a perturbation."""
        if self.is_flat(self.basis):
            masses = space.weights * space.to_values(coefficients)
            legendre = np.polynomial.legendre.legvander(space.points @ axis, space.degree)
            flat = Zonal(3, space.degree)
            coefficients, space = masses @ legendre * np.sqrt(2 * flat.degrees + 1), flat
        return np.asarray(space.resample(coefficients, self.space.degree))

    def row_of(self, state: StationaryState, axis: Any = None) -> np.ndarray:
        """Coefficients of a state, about an axis; by default its own."""
        density = state.density
        axis = state.axis if axis is None else axis
        return self.row(density.space, density.coefficients, axis)

    def density(self, rows: np.ndarray) -> Density:
        """Densities with rows of coefficients (..., modes)."""
        return Density.computed(rows, self.space)

    def lifted(self, rows: np.ndarray, axis: Any = None) -> Density:
        """Densities with rows of coefficients, on the space of the states."""
        if not self.is_flat(self.basis):
            return self.density(rows)
        sizes, axis = self.basis.sizes, self.axis if axis is None else axis
        m = np.atleast_2d(rows)[:, 1:] / sizes
        each = Density.stack([self.basis.density(one, axis) for one in m])
        return each if rows.ndim > 1 else each[0]

    def run(self, start: Density, times: Any, rtol: float) -> Sequence[Density]:
        """Densities at times, under the model from a start, at the degree of the frame."""
        degree, span = self.space.degree, (0, times[-1])
        result: Any = solve(
            self.model, start, span, t_eval=times, rtol=rtol, min_degree=degree, max_degree=degree,
            progress=False,
        )  # fmt: skip
        return list(result.states)

    def velocities(self, rows: np.ndarray) -> np.ndarray:
        """d_t of rows of coefficients (images, modes)."""
        density = self.density(rows)
        return np.asarray(motion_for(density)(self.model, density).velocity(rows, 0.0))

    @property
    def keeps_saddle(self) -> bool:
        """Whether paths keep the frame of the saddle: no rotation to the ends is computed."""
        if not isinstance(self.space, Sphere):
            return False
        return not isinstance(self.basis, Reflected) or len(self.basis.turnings) > 1

    def apart(self, row: np.ndarray, other: np.ndarray) -> float:
        """Distance of two states in L^2, from their rows of coefficients."""
        return float(np.sqrt(np.abs(row - other) ** 2 @ self.space.parseval))

    def symmetry(self, row: np.ndarray, wanted: np.ndarray) -> "_Map | None":
        """The first symmetry of the model that maps one state nearest to another; None if far."""

        def away(one: _Map) -> float:
            return max(self.apart(one(row), wanted), EQUAL)

        nearest = min(self._symmetries(row, wanted), key=away)
        return nearest if away(nearest) < SAME_STATE else None

    def _symmetries(self, row: np.ndarray, wanted: np.ndarray) -> "Iterator[_Map]":
        """Symmetries of the model that may map one state to another, the identity first."""
        yield lambda rows: rows
        if isinstance(self.basis, Reflected):
            for reflection in self.basis.symmetries.reflections:
                yield partial(self.reflected, reflection)
                if len(self.basis.turnings) == 1:
                    angle = self._angle(self.reflected(reflection, row), wanted)
                    yield partial(self._turned, reflection, angle)
        elif isinstance(self.space, Zonal):
            yield lambda rows: rows * (-1.0) ** self.space.degrees
        elif isinstance(self.space, Circle):
            for turn in _turns(row, wanted):
                yield partial(self.space.rotate, rotation=turn)

    def reflected(self, reflection: int, rows: np.ndarray) -> np.ndarray:
        """Rows of coefficients of mirror images, for the number of a reflection."""
        if reflection == 0:
            return rows
        harmonics = self.basis.all
        signs = np.where(harmonics.odd(reflection), -1.0, 1.0)
        return np.asarray(harmonics.series(signs * harmonics.moments(rows)))

    def _turned(self, reflection: int, angle: float, rows: np.ndarray) -> np.ndarray:
        """Rows of coefficients, reflected and turned in the plane that preserves the model."""
        harmonics, (turning,) = self.basis.all, self.basis.turnings
        moments = harmonics.moments(self.reflected(reflection, rows))
        return np.asarray(harmonics.series(expm_multiply(angle * turning, moments.T).T))

    def _angle(self, row: np.ndarray, wanted: np.ndarray) -> float:
        """Angle by which a state is turned to be nearest to another, in L^2."""
        (turning,), many = self.basis.turnings, TURNS_PER_DEGREE * self.basis.degree
        m, k = (self.basis.all.moments(one) for one in (row, wanted))
        angles = 2 * np.pi * np.arange(many) / many
        images = expm_multiply(turning, m, start=0.0, stop=angles[-1], num=many)
        angle = angles[int(np.argmax(images @ k))]
        for _ in range(TURN_STEPS):
            image = expm_multiply(angle * turning, m)
            slope, bend = k @ (turning @ image), k @ (turning @ (turning @ image))
            angle -= slope / bend if bend < 0 else 0.0
        return float(angle)

    def spline(self, rows: np.ndarray) -> tuple[np.ndarray, CubicSpline]:
        """Lengths (images,) in H^-1 along the cubic spline through rows, and it by its length."""
        chords = np.concatenate([[0.0], np.cumsum(self.norms(np.diff(rows, axis=0)))])
        slope = CubicSpline(chords, rows).derivative()
        x, w = np.polynomial.legendre.leggauss(LENGTH_NODES)
        steps = np.diff(chords)
        places = chords[:-1, None] + (x + 1) / 2 * steps[:, None]
        lengths = np.cumsum(self.norms(slope(places)) @ w / 2 * steps)
        lengths = np.concatenate([[0.0], lengths])
        return lengths, CubicSpline(lengths, rows)


def _visible_degree(state: StationaryState) -> int:
    """Highest degree of the coefficients of a state that are not rounding."""
    basis = state.equation.basis
    seen = np.abs(basis.sizes * state.legendre_moments) > ROUNDING
    return int(basis.degrees[seen].max(initial=0))


class _Course(NamedTuple):
    """A path while it is computed.

    Attributes
    ----------
    frame : _Frame
    legs : list of ndarray, (n, modes)
        Rows of coefficients, for each part of the path between stable states and saddles.
    passes : sequence of Saddle
    method : str
    climbs : int
        1 if every other leg, from the first, does not follow the flow; else 0.
    """

    frame: _Frame
    legs: list[np.ndarray]
    passes: Sequence[Saddle]
    method: str
    climbs: int = 0


def _placed(
    frame: _Frame, legs: list[np.ndarray], a: StationaryState, b: StationaryState
) -> list[np.ndarray] | None:
    """Legs mapped by a symmetry of the model so that they end in b, and begin in a if b stays.

    None if no symmetry maps their ends to a and b.
    """
    last = frame.row_of(b)
    for end, wanted in ((-1, last), (0, frame.row_of(a))):
        map_to = frame.symmetry(legs[end][end], wanted)
        if map_to is None:
            return legs if frame.keeps_saddle else None
        mapped = [map_to(leg) for leg in legs]
        if frame.apart(mapped[-1][-1], last) < SAME_STATE:
            legs = mapped
    return legs


def _turns(row: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Angles (k,) that may turn the coefficients of a state on the circle to those wanted."""
    sizes = np.abs(wanted[1:])
    k = int(np.argmax(sizes > VISIBLE_MOMENT * sizes.max())) + 1
    first = np.angle(wanted[k] / row[k]) if row[k] else 0.0
    return np.asarray((-first + 2 * np.pi * np.arange(k)) / k)


# The manifold ------------------------------------------------------------------------------------


class _Crossing(NamedTuple):
    """A saddle on a path, and the number of the reflection of the model that maps it there."""

    saddle: Saddle
    reflection: int = 0


def _highest(height: float, saddle: Saddle) -> float:
    """The greater of a free energy and that of a saddle."""
    return max(height, saddle.state.free_energy)


def _around(symmetry: Any) -> Callable[[StationaryState], Sequence[Saddle]]:
    """Function that gives the saddles around a stable state, sought once for all its images."""
    known: list[Saddles] = []

    def around(here: StationaryState) -> Saddles:
        found = next((one for one in known if same_state(one.state, here)), None)
        if found is None:
            found = saddles(here, symmetry=symmetry)
            known.append(found)
        return found

    return around


def _maps(reflection: int, one: StationaryState, other: StationaryState) -> bool:
    """Whether a reflection of the model, followed by a rotation of it, maps a state to another."""
    basis = max(one.equation.basis, other.equation.basis, key=lambda basis: basis.degree)
    if not isinstance(basis, Reflected):
        return same_state(one, other)
    m, k = (basis.padded(state.legendre_moments) for state in (one, other))
    signs = np.where(basis.all.odd(reflection), -1.0, 1.0)
    away = basis.fingerprint(signs * m) - basis.fingerprint(k)
    return bool(np.linalg.norm(away) < SAME_STATE)


def _lowest_passes(
    a: StationaryState, b: StationaryState,
    around: Callable[[StationaryState], Iterable[Saddle]],
    beyond: Callable[[float, Saddle], float] = _highest, start: float = -np.inf,
) -> list[_Crossing]:  # fmt: skip
    """Saddles on the way from a to b whose highest one is lowest; empty if none is known.

    `around` gives saddles around a state, up to reflections of the model. `beyond` gives the height
    of a way that has a height, `start` in a, continued over a saddle.
    """
    basis = a.equation.basis
    reflections = basis.symmetries.reflections if isinstance(basis, Reflected) else (0,)
    reached: list[tuple[StationaryState, int]] = []
    waiting: list[tuple[float, bool, StationaryState, int, list[_Crossing]]]
    waiting = [(start, True, a, 0, [])]
    while waiting:
        height, ahead, here, image, way = waiting.pop(_first(waiting))
        if not ahead:
            return way
        if any(_maps(image ^ other, here, known) for known, other in reached):
            continue
        reached.append((here, image))
        for one in around(here):
            before, after = one.ends
            if before is None or after is None:
                continue
            top = beyond(height, one)
            for r in (r for r in reflections if _maps(r ^ image, before, here)):
                there = [*way, _Crossing(one, r)]
                waiting.append((top, not _maps(r, after, b), after, r, there))
    return []


def _first(waiting: Sequence[tuple[Any, ...]]) -> int:
    """Index of the lowest way, of those that have arrived if there are several."""
    return min(range(len(waiting)), key=lambda i: waiting[i][:2])


def _manifold(
    a: StationaryState, b: StationaryState, crossings: Sequence[_Crossing],
    ascents: Sequence[np.ndarray] = (),
) -> _Course | None:  # fmt: skip
    """The path over saddles, along their unstable manifolds, or `ascents` up to each of them.

    None without saddles, and if a manifold leads to another end than the flow from farther away,
    as it does at a saddle whose symmetry a stable state lacks, or its ends are not known to be
    images of a, of b or of the end of the next one.
    """
    passes = [one.saddle for one in crossings]
    frame, legs = _Frame.of(a, b, *(one.state for one in passes)), list[np.ndarray]()
    for i, (saddle, reflection) in reversed(list(enumerate(crossings))):
        up, down = ascents[i] if ascents else _descent(frame, saddle, 0), _descent(frame, saddle, 1)
        if up is None or down is None:
            return None
        pair = [frame.reflected(reflection, leg) for leg in (up if ascents else up[::-1], down)]
        if legs:  # the path is continuous at the stable state between two saddles
            map_to = frame.symmetry(pair[1][-1], legs[0][0])
            if map_to is None:
                return None
            pair = [map_to(leg) for leg in pair]
        legs = [*pair, *legs]
    placed = _placed(frame, legs, a, b) if legs else None
    if placed is None:
        return None
    method = "least action" if ascents else "manifold"
    return _Course(frame, placed, passes, method, climbs=bool(ascents))


def _descent(frame: _Frame, saddle: Saddle, which: int) -> np.ndarray | None:
    """Rows of coefficients from a saddle down to one of its ends, along the unstable manifold.

    None if the end is not reached.
    """
    state, end = saddle.state, saddle.ends[which]
    assert end is not None
    top, bottom = frame.row_of(state), frame.row_of(end, state.axis)
    direction = frame.row(state.density.space, saddle.direction, state.axis)
    rows = [top, top + (NEAR_SADDLE if which == 0 else -NEAR_SADDLE) * direction]
    step = TIME_STEP / max(saddle.rate, end.stability(1).gap)
    times = step * np.arange(STRETCH_OUTPUTS + 1)
    last = frame.density(bottom)
    while len(rows) < MOST_OUTPUTS:
        start = frame.density(rows[-1])
        states = frame.run(start, times, DESCENT_RTOL)
        far = np.array([l2_distance(one, last) for one in states[1:]]) > NEAR_END
        count = len(far) if far.all() else int(np.argmin(far))
        rows += [one.coefficients for one in states[1 : count + 1]]
        if count < len(far):
            return np.array([*rows, bottom])
    return None


# Least action ------------------------------------------------------------------------------------


def _of_least_action(
    a: StationaryState, b: StationaryState, method: str, symmetry: Any
) -> tuple[_Course, float, float]:
    """The path of least action, its action and the error of it; MeanfieldError without one."""
    if method == "string":
        raise MeanfieldError(
            f"The string method needs a free energy, which {a.model!r} has not: leave method out."
        )
    if max(abs(a.speed), abs(b.speed)) > AT_REST:
        raise MeanfieldError(
            f"Paths of least action begin and end at rest; {a!r} or {b!r} rotates."
        )
    climbed: dict[int, tuple[Saddle, _Frame, LeastAction]] = {}

    def beyond(action: float, saddle: Saddle) -> float:
        if id(saddle) not in climbed:
            frame = _Frame.of(a, b, saddle.state)
            climbed[id(saddle)] = saddle, frame, _ascent(frame, saddle)
        return action + climbed[id(saddle)][-1].action

    crossings = _lowest_passes(a, b, _around(symmetry), beyond, 0.0)
    frame = _Frame.of(a, b, *(one.saddle.state for one in crossings))
    ascents = [
        found if other.space == frame.space else _ascent(frame, saddle)
        for saddle, other, found in (climbed[id(one.saddle)] for one in crossings)
    ]
    course = _manifold(a, b, crossings, [one.rows for one in ascents])
    if course is None:
        raise MeanfieldError(
            f"No saddle between {a!r} and {b!r} was found, and {a.model!r} has no free energy for "
            "the string method: take as b the state beyond one of mf.saddles(a), its ends[1]."
        )
    return course, sum(one.action for one in ascents), sum(one.error for one in ascents)


def _ascent(frame: _Frame, saddle: Saddle) -> LeastAction:
    """The path of least action up to a saddle, in rows of coefficients of a frame."""
    basis = _common_basis(frame, saddle)
    axis = None if isinstance(basis, Reflected) else saddle.state.axis
    functions = basis.even
    moments = np.zeros((len(functions.members), len(basis.degrees)))
    moments[np.arange(len(moments)), functions.members] = UNIT_CHANGE / functions.sizes
    each = [basis.density(m, axis) for m in (np.zeros(len(basis.degrees)), *moments)]
    uniform, *others = (frame.row(one.space, one.coefficients, saddle.state.axis) for one in each)
    to_rows = (np.array(others) - uniform) / UNIT_CHANGE
    descent = _descent(frame, saddle, 0)
    if descent is None:
        raise MeanfieldError(f"The flow from {saddle!r} did not come down: it has no path up.")
    start = descent[::-1]
    weights = np.sqrt(frame.space.parseval)
    table = (to_rows * weights).T
    real = np.concatenate([table.real, table.imag])
    changes = weights * (start - uniform)
    wanted = np.concatenate([changes.real, changes.imag], axis=1).T
    coordinates = np.linalg.lstsq(real, wanted)[0]
    if np.linalg.norm(real @ coordinates - wanted) > ASIDE:
        raise MeanfieldError(
            f"The state below {saddle!r} lacks its symmetry: pass the symmetry that both have."
        )
    flow = DensityFlow(frame.model, basis)
    found = least_action(flow.at, flow.coordinates(coordinates.T))
    rows = uniform + flow.coefficients(found.rows) @ to_rows
    rows[0], rows[-1] = start[0], start[-1]
    return LeastAction(rows, found.action, found.error)


def _common_basis(frame: _Frame, saddle: Saddle) -> Any:
    """The basis of the symmetry that a saddle and the state below it share, of a frame's degree."""
    end = saddle.ends[0]
    assert end is not None
    basis, degree = saddle.state.equation.basis, frame.basis.degree
    if isinstance(basis, Reflected):
        kept = set(basis.kept) & set(end.equation.basis.kept)
        return basis.keeping(tuple(sorted(kept))).finer(degree)
    if saddle.order == 0:
        return basis.finer(degree)
    space = saddle.state.density.space.with_degree(degree)
    return reflected_on(space)(space, frame.model.noise, Symmetries((0,)))


# The string --------------------------------------------------------------------------------------


def _string(a: StationaryState, b: StationaryState, images: int, symmetry: Any) -> _Course:
    """The string between two states, leg by leg between stable states and saddles.

    Without saddles where they were not found.
    """
    frame = _Frame.of(a, b)
    ends = [frame.row_of(one) for one in (a, b)]
    if isinstance(frame.space, Circle) and not isinstance(frame.basis, Reflected):
        ends = [frame.space.rotate(row, -one.axis) for row, one in zip(ends, (a, b), strict=True)]
    share = np.linspace(0, 1, images)[:, None]
    rough = _evolved(frame, [(1 - share) * ends[0] + share * ends[1]], ROUGH)
    found = _passes_on(frame, rough[0], a, b, symmetry)
    if found is None:
        return _string_course(frame, rough, [], a, b)
    nodes, places, passes = found
    cut = [rough[0][i : j + 1].copy() for i, j in pairwise([0, *places, images - 1])]
    for leg, (first, last) in zip(cut, pairwise([ends[0], *nodes, ends[1]]), strict=True):
        leg[0], leg[-1] = first, last
    counts = _parts(frame, cut, images)
    cut = [_spaced(frame, leg, count)[1] for leg, count in zip(cut, counts, strict=True)]
    return _string_course(frame, cut, passes, a, b)


def _string_course(
    frame: _Frame, legs: list[np.ndarray], passes: Sequence[Saddle], a: StationaryState,
    b: StationaryState,
) -> _Course:  # fmt: skip
    """The string after its last steps, in the frame of b or a."""
    legs = _evolved(frame, legs, SETTLED)
    return _Course(frame, _placed(frame, legs, a, b) or legs, passes, "string")


def _passes_on(
    frame: _Frame, rows: np.ndarray, a: StationaryState, b: StationaryState, symmetry: Any
) -> tuple[list[np.ndarray], list[int], list[Saddle]] | None:
    """Saddles and the stable states between them near the extremes of F on a string.

    Rows of coefficients of these, indices of their images, and the saddles; None unless the string
    leads over saddles from a to b.
    """
    energies = measure(frame.model, frame.density(rows))["free_energy"]
    turns = np.diff(np.sign(np.diff(energies)))
    places = [int(i) + 1 for i in np.flatnonzero(turns)]
    nodes: list[np.ndarray] = []
    passes: list[Saddle] = []
    here = a
    for i in places:
        guess = frame.lifted(rows[i], frame.basis.axis)
        state = state_near(frame.model, guess, symmetry)
        if not state.converged:
            return None
        nodes.append(frame.row_of(state, frame.basis.axis))
        if turns[i - 1] < 0:
            saddle = saddle_at(state, here, symmetry)
            if saddle is None:
                return None
            passes.append(saddle)
        here = state
    beyond = [*(place for place in places if turns[place - 1] > 0), None]
    reached = passes and all(one.converged for one in passes) and len(beyond) == len(passes)
    if not reached or not same_state(_beyond(passes[-1]), b):
        return None
    return nodes, places, passes


def _beyond(saddle: Saddle) -> StationaryState:
    """The stable state beyond a saddle whose ends are known."""
    end = saddle.ends[1]
    assert end is not None
    return end


def _evolved(frame: _Frame, legs: list[np.ndarray], tolerance: float) -> list[np.ndarray]:
    """Legs of a string after steps until no image moves by more than `tolerance` spacings.

    Also after the last step allowed, and before a step after which densities would be negative.
    """
    for _ in range(MOST_STRING_STEPS):
        rows = np.concatenate(legs)
        length = sum(float(frame.spline(leg)[0][-1]) for leg in legs)
        fastest = float(frame.norms(frame.velocities(rows)).max())
        duration = SHARE_OF_LENGTH * length / fastest
        final = frame.run(frame.density(rows), [0, duration], STRING_RTOL)[-1]
        places = np.cumsum([len(leg) for leg in legs])[:-1]
        moved = np.split(np.array(final.coefficients), places)
        for new, old in zip(moved, legs, strict=True):
            new[0], new[-1] = old[0], old[-1]
        moved = [_spaced(frame, leg, len(leg) - 1)[1] for leg in moved]
        values = frame.density(np.concatenate(moved)).values
        if values.min() < -NEGATIVE_SHARE * values.max():
            break  # a spline oscillates at a kink of a string that does not converge
        change = float(frame.norms(np.concatenate(moved) - rows).max())
        legs = moved
        if change < tolerance * length / len(rows):
            break
    return legs


# Images ------------------------------------------------------------------------------------------


def _spaced(
    frame: _Frame, leg: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lengths, rows and unit tangents at the ends of `count` equal parts of a leg."""
    lengths, curve = frame.spline(leg)
    places = np.linspace(0.0, lengths[-1], count + 1)
    rows, tangents = curve(places), curve.derivative()(places)
    rows[0], rows[-1] = leg[0], leg[-1]
    return places, rows, tangents / frame.norms(tangents)[:, None]


def _parts(frame: _Frame, legs: Sequence[np.ndarray], images: int) -> list[int]:
    """Number of parts of each leg, at least 2, so that the longest part is shortest."""
    lengths = np.array([frame.spline(leg)[0][-1] for leg in legs])
    parts = np.full(len(legs), FEWEST_PARTS)
    for _ in range(images - 1 - FEWEST_PARTS * len(legs)):
        parts[np.argmax(lengths / parts)] += 1
    return [int(part) for part in parts]


def _images_of(course: _Course, images: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows and lengths of the images on a path, and its residual: see `TransitionPath`."""
    frame, legs = course.frame, course.legs
    rows, lengths, across, fastest = [legs[0][:1]], [np.zeros(1)], 0.0, 0.0
    for i, (leg, count) in enumerate(zip(legs, _parts(frame, legs, images), strict=True)):
        places, here, tangents = _spaced(frame, leg, count)
        rows.append(here[1:])
        lengths.append(lengths[-1][-1] + places[1:])
        if course.climbs and i % 2 == 0:
            continue
        speeds = frame.velocities(here)
        along = (speeds * tangents.conj()).real @ frame.weights
        across = max(across, float(frame.norms(speeds - along[:, None] * tangents).max()))
        fastest = max(fastest, float(frame.norms(speeds).max()))
    return np.concatenate(rows), np.concatenate(lengths), across / fastest


def _table(frame: _Frame, rows: np.ndarray, lengths: np.ndarray) -> "xr.Dataset":
    """Lengths, free energies above the uniform state and order parameters of the images."""
    import xarray as xr

    measured = measure(frame.model, frame.density(rows))
    uniform = measure(frame.model, frame.space.uniform())["free_energy"]
    columns = {
        "length": lengths,
        "free_energy": measured["free_energy"] - uniform,
        "order_parameter": measured["order_parameter"],
    }
    return xr.Dataset({name: ("image", column) for name, column in columns.items()})
