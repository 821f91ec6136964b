"""Transition paths: minimum free-energy paths between two stable stationary states.

Under noise with a free energy F the mean-field equation is the gradient flow of F in the
Wasserstein geometry. The minimum free-energy path between two stable states consists of both
halves of the unstable manifolds of the saddles between them, along which the flow d_t mu is
tangent to the path. Without a free energy the path up to each saddle is that of least action, see
`least_actions`; from the saddle down it follows the flow.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from ..bifurcation import StationaryState
from ..bifurcation.bases import AXISYMMETRIC
from ..bifurcation.multistability import model_in, same_state, state_of
from ..bifurcation.stationary import check_stationary
from ..core.calls import checked_call
from ..core.checks import require, whole_number
from ..core.forms import Natural
from ..dynamics.observables import measure
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.progress import SEARCH_FORMAT, Progress
from ..models.transformer import Transformer
from ..results.files import Contents, Result, dataset_of
from ..spaces import Density
from .least_action_paths import course_of_least_action
from .manifold_paths import lowest_passes, manifold_course
from .path_frames import Course, PathFrame, maps, parts_of, spaced
from .saddles import (
    Saddle,
    SaddleSearch,
    check_stable,
    check_together,
    saddle_of,
    state_beyond,
)
from .string_method import string_course

if TYPE_CHECKING:
    import xarray as xr

FEWEST_IMAGES, MOST_IMAGES = 9, 10_000
ALIGNED = 1e-3  # largest residual of a converged path
KNOWN_ACTION = 1e-6  # largest relative error of the action of a converged path


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

    made_by = figure = "transition_path"
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
            stable = state_beyond(one)
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
    progress: bool | None = None,
) -> TransitionPath:
    """The path of least action, or of least free energy, from one stable state to another.

    With a free energy the path consists of both halves of the unstable manifold of the saddle
    between the states. Without one, the part up to the saddle minimises the Dawson-Gaertner action.
    `saddles` finds the saddles around a and around the stable states beyond. Among several ways
    from a to b, the one whose highest saddle is lowest is chosen, or the one of least action. If no
    way is found and there is a free energy, saddles are sought on the path of the string method.

    Parameters
    ----------
    a, b : StationaryState
        Stable states of one model under isotropic noise, as for `saddles`, on one space.
    images : int
        Number of densities along the path, from 9 to 10 000, and at least 1 + 4 for each saddle.
    method : str
        "manifold", which is the path of least action without a free energy; or "string", for the
        densities of the string method, only with a free energy.
    symmetry : str or array, (k, 3, 3)
        Symmetry of the states among which saddles are sought, as for `stationary`.
    progress : bool, optional
        Show what is computed; by default on a terminal and in a notebook.

    Returns
    -------
    TransitionPath
        The path ends in b, and begins in a or a rotated image of a, if the model is invariant under
        the rotation and b is not. For models invariant under all rotations of S^2, with a group or
        without symmetry, the path keeps the frame of the saddle. Without a saddle, or if its
        manifold leads elsewhere, the result is the string: see `converged`.

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
    The equation is solved down from the saddle by backward differentiation formulas with its
    Jacobian. The string begins with the mixtures of a and b. In each step all images follow the
    equation for a short time, as one ensemble of `solve`, and are then spaced equally in H^-1 by
    cubic splines. Once the string moves slowly, Newton's method moves its local maxima of F to
    saddles, and the parts between these converge. The error of the string is of fourth order in the
    spacing, that of the manifold about 1e-8 in L^2. Both cost about 2 s on the circle, and the
    manifold a minute or two on S^2 in a field. A string that does not converge ends after 400
    steps.

    The path of least action is a polynomial of degree 12 to 40 in a multiple of its length, with
    the common symmetry of state and saddle. L-BFGS, preconditioned by the second derivatives of the
    action, starts from the reversed unstable manifold. The degree is raised until the action
    changes by less than 1e-8. If the slowest perturbations of a state oscillate, the path is a
    spiral near it, which polynomials do not resolve: see `action_error`. The cost is about 10 s on
    the circle, and O(N^3) for N coefficients.

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
    with one_blas_thread(), Progress("transition path", progress, form=SEARCH_FORMAT) as bar:
        search = SaddleSearch(
            a, symmetry, lambda text: bar.show(0.0, f"transition path: {text}"), progress
        )
        if np.isnan(a.free_energy):
            course, action, error = course_of_least_action(a, b, method, search)
        else:
            course = _of_least_energy(a, b, images, method, search)
            rises = [one.barrier for one in course.passes]
            action, error = 2 * sum(rises) if rises else np.nan, 0.0
        rows, lengths, residual = _images_of(course, images)
        table, densities = _table(course.frame, rows, lengths), course.frame.lifted(rows)
    return TransitionPath(
        table, densities, (a, b), tuple(course.passes), course.method, residual, symmetry, action,
        error,
    )  # fmt: skip


def _of_least_energy(
    a: StationaryState, b: StationaryState, images: int, method: str, search: SaddleSearch
) -> Course:
    """The minimum free-energy path."""
    if method == "manifold":
        course = manifold_course(a, b, lowest_passes(a, b, search.around), search.watch)
        if course is not None:
            return course
    string = string_course(a, b, images, search)
    if method == "string":
        return string

    def on_string(here: StationaryState) -> list[Saddle]:
        return [one for one in string.passes if one.ends[0] and same_state(one.ends[0], here)]

    return manifold_course(a, b, lowest_passes(a, b, on_string), search.watch) or string


def _check_ends(a: Any, b: Any) -> None:
    """Raise unless a and b are two stable states of one model on one space."""
    check_stable("a", a)
    check_stable("b", b)
    check_together("a and b", a, b)
    if maps(0, a, b):
        raise ValueError(
            f"a and b must be two states; both are {a!r}, up to a rotation of the model. "
            "mf.stationary_states finds others."
        )


def _images_of(course: Course, images: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows and lengths of the images on a path, and its residual: see `TransitionPath`."""
    frame, legs = course.frame, course.legs
    rows, lengths, across, fastest = [legs[0][:1]], [np.zeros(1)], 0.0, 0.0
    for i, (leg, count) in enumerate(zip(legs, parts_of(frame, legs, images), strict=True)):
        places, here, tangents = spaced(frame, leg, count)
        rows.append(here[1:])
        lengths.append(lengths[-1][-1] + places[1:])
        if course.climbs and i % 2 == 0:
            continue
        speeds = frame.velocities(here)
        along = (speeds * tangents.conj()).real @ frame.weights
        across = max(across, float(frame.norms(speeds - along[:, None] * tangents).max()))
        fastest = max(fastest, float(frame.norms(speeds).max()))
    return np.concatenate(rows), np.concatenate(lengths), across / fastest


def _table(frame: PathFrame, rows: np.ndarray, lengths: np.ndarray) -> "xr.Dataset":
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
