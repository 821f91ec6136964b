"""All branches of stationary states that leave the uniform one, and those that leave them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.checks import boolean, positive, range_of, real_array, whole_number
from ..lowlevel.blas import one_blas_thread
from ..models import SA, USA, ZonalDrift
from ..spaces import Circle, Geometry, Sphere, Zonal
from .assembly import RESERVED
from .diagram import Diagram
from .following import Following
from .path import path_of
from .placement import AXISYMMETRIC, basis_of
from .ranges import Asked, Range

__all__ = ["branches"]


def branches(
    drift: ZonalDrift | type[USA] | type[SA],
    geometry: Geometry,
    kappa: float | tuple[float, float],
    *,
    beta: tuple[float, float] | None = None,
    symmetry: str = AXISYMMETRIC,
    degrees: Sequence[int] | None = None,
    secondary: bool = True,
    stability: bool = True,
    save_at: Sequence[float] = (),
    observables: Mapping[str, Callable[[Any], Any]] | None = None,
    max_step: float = 0.1,
    max_points: int = 500,
    progress: bool | None = None,
) -> Diagram:
    """Follow stationary states as kappa, or beta, changes: the bifurcation diagram of a drift.

    The uniform state loses stability to harmonics of degree l at kappa_l = 1/w_l, the inverse of
    the multiplier of its potential. From every such point in the range, a branch is followed
    through its folds by pseudo-arclength continuation; so are branches that leave it.

    Parameters
    ----------
    drift : USA, SA, Kuramoto or Interaction
        A single one; or `USA` or `SA` itself, to follow beta.
    geometry : Circle, Sphere or Zonal
    kappa : (float, float), or float
        0 < first < last: the range, below which branches are followed until they turn back, and
        above it up to twice its end, if they come back; or one value, to follow beta.
    beta : (float, float), optional
        0 < first < last: the range of beta, for one kappa.
    symmetry : str
        Of the states: "axisymmetric", about an axis, or on S^2 "tetrahedral", "octahedral" or
        "icosahedral".
    degrees : sequence of int, optional
        Which l are followed, of those whose onset is in the range or, in kappa, below; by default
        all up to 12, those above the range too if their branches come down into it. They need a
        single function of the symmetry.
    secondary : bool
        Whether branches that leave a branch, at bifurcations and with states even about an axis,
        are followed too. On the circle some leave a k-fold branch across its other axis: these need
        `stability`.
    stability : bool
        Whether growth rates are computed at every point, and losses of symmetry located: for
        perturbations of orders 0 to 3, and up to the degree that the drift attracts most.
    save_at : sequence of float
        Values of the parameter at which the states of every branch are kept, in `saved`.
    observables : mapping of str to callable, optional
        density -> number, at every point.
    max_step : float
        Longest step in sqrt(2) times the Legendre moments, and log kappa or beta.
    max_points : int
        Of one branch.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Diagram
        Where Newton's method finds no further point a branch ends, with that as its `end`; after
        Ctrl-C the last one ends as "interrupted". `doubts` says what is missing.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    MeanfieldError
        For drifts that are no gradient of a potential.

    Notes
    -----
    A point costs about 0.5 ms for 32 moments, its growth rates as much for each order; those of
    polyhedra, which have two dimensions, 20 ms and more.

    References
    ----------
    Keller, in Applications of Bifurcation Theory (1977); Carrillo, Gvalani, Pavliotis and
    Schlichting, Arch. Ration. Mech. Anal. 235 (2020).
    """
    span, at_kappa = _range(drift, geometry, kappa, beta)
    positive(max_step=max_step)
    most = whole_number("branches needs max_points", "max_points", max_points)
    boolean("secondary", secondary)
    progress = None if progress is None else boolean("progress", progress)
    boolean("stability", stability)
    at, own = _checked_places(save_at, span), _checked_observables(observables, geometry)
    path = path_of(drift, basis_of(symmetry, geometry), at_kappa)
    asked = Asked(degrees, secondary, stability, max_step, most)
    with one_blas_thread(), Following(path.parameter, span, progress) as following:
        whole = Range(drift, geometry, symmetry, path, span, asked, following)
        whole.follow()
    return whole.diagram(at, own)


def _range(drift: Any, geometry: Any, kappa: Any, beta: Any):
    """The range of the parameter, and kappa if that is not the parameter."""
    if not isinstance(geometry, Circle | Sphere | Zonal):
        raise TypeError(f"branches needs Circle, Sphere or Zonal; got {geometry!r}.")
    if drift in (USA, SA):
        if beta is None:
            raise ValueError(
                f"{drift.__name__} itself is followed in beta: give its range, and one kappa; or "
                f"give {drift.__name__}(beta=...)."
            )
        positive(kappa=kappa)
        return range_of("beta", beta), float(kappa)
    if not isinstance(drift, ZonalDrift):
        raise TypeError(f"branches needs USA, SA, Kuramoto or Interaction; got {drift!r}.")
    if drift.shape:
        raise ValueError(f"branches follows a single drift; got an ensemble {drift!r}.")
    if beta is not None:
        raise ValueError(f"To follow beta, give USA or SA itself as the drift; got {drift!r}.")
    return range_of("kappa", kappa), None


def _checked_places(save_at: Any, span: tuple[float, float]) -> np.ndarray:
    array = real_array("save_at", save_at)
    if array.ndim != 1 or not ((span[0] <= array) & (array <= span[1])).all():
        raise ValueError(
            f"save_at is a sequence of numbers from {span[0]:g} to {span[1]:g}; got {save_at!r}."
        )
    return array


def _checked_observables(observables: Any, geometry: Geometry) -> dict[str, Callable]:
    own = {} if observables is None else observables
    if not isinstance(own, Mapping) or not all(map(callable, own.values())):
        raise TypeError(f"observables maps names to functions of a density; got {observables!r}.")
    for name in own:
        if not isinstance(name, str) or "/" in name or name in RESERVED:
            raise ValueError(
                f"A name of an observable is a string without / and none of {', '.join(RESERVED)}; "
                f"got {name!r}."
            )
        value = own[name](geometry.uniform())
        if np.shape(value) or np.asarray(value).dtype.kind not in "fiub":
            raise TypeError(
                f"An observable gives one real number for a density; {name!r} gave {value!r}."
            )
    return dict(own)
