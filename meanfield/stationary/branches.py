"""All branches of stationary states that leave the uniform one, and those that leave them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..checks import boolean, positive, real_array, whole_number
from ..drifts import ZonalDrift
from ..geometry import Circle, Geometry, Sphere, Zonal
from .curve import Curve, Point
from .diagram import Diagram
from .equation import Equation
from .following import Following
from .normal_form import NormalForm, normal_form
from .rates import Rates
from .tracing import Branch, Special, trace

__all__ = ["branches"]

LEAST_DEGREE, MOST_DEGREE = 32, 512
ORDERS = 4  # about the axis, in which stability is looked at; on the circle there are two
AMPLITUDE = 0.02
UNRESOLVED = 1e-12
LARGEST = 12  # degrees that are looked at for bifurcations


def branches(
    drift: ZonalDrift,
    geometry: Geometry,
    kappa: tuple[float, float],
    *,
    degrees: Sequence[int] | None = None,
    secondary: bool = True,
    stability: bool = True,
    save_at: Sequence[float] = (),
    observables: Mapping[str, Callable[[Any], Any]] | None = None,
    max_step: float = 0.1,
    max_points: int = 500,
    progress: bool | None = None,
) -> Diagram:
    """Follow stationary states as kappa changes: the bifurcation diagram of a drift.

    The uniform state loses stability to harmonics of degree l at kappa_l = 1/w_l, the inverse of
    the multiplier of its potential. From every such point in the range, a branch is followed
    through its folds by pseudo-arclength continuation; so are branches that leave it.

    Parameters
    ----------
    drift : USA, SA, Kuramoto or Interaction
        A single one.
    geometry : Circle, Sphere or Zonal
        States are symmetric about an axis.
    kappa : (float, float)
        0 < first < last: the range.
    degrees : sequence of int, optional
        Which l are followed; by default all up to 12 with kappa_l in the range.
    secondary : bool
        Whether branches that leave a branch without loss of its symmetry about the axis are
        followed too.
    stability : bool
        Whether growth rates are computed at every point, and losses of symmetry located.
    save_at : sequence of float
        Values of kappa at which the states of every branch are kept, in `saved`.
    observables : mapping of str to callable, optional
        density -> number, at every point.
    max_step : float
        Longest step in the moments and log kappa.
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
    A point costs about 0.5 ms for 32 moments, its growth rates as much for each order.

    References
    ----------
    Keller, in Applications of Bifurcation Theory (1977); Carrillo, Gvalani, Pavliotis and
    Schlichting, Arch. Ration. Mech. Anal. 235 (2020).
    """
    span = _checked(drift, geometry, kappa)
    positive(max_step=max_step)
    most = whole_number("branches needs max_points", "max_points", max_points)
    boolean("secondary", secondary)
    orders = ORDERS if boolean("stability", stability) else 0
    progress = None if progress is None else boolean("progress", progress)
    at, own = _checked_places(save_at, span), _checked_observables(observables)
    equation = Equation(drift, geometry.dimension, max(LEAST_DEGREE, geometry.degree))
    forms = [normal_form(equation, l) for l in _degrees(equation, span, degrees)]
    found: list[Branch] = []
    with Following("kappa", span, progress) as following:
        for form in forms:
            for start in _starts(equation, form, max_step):
                if _stopped(found):
                    break
                found.append(Branch(start[0], -1, form.degree))
                _followed(found[-1], start[1], span, most, orders, following)
        done = 0
        while secondary and done < len(found):
            for special in list(found[done].specials):
                if special.kind == "bifurcation" and not _stopped(found):
                    found += _leaving(found, done, special, span, most, orders, following)
            done += 1
    return Diagram.of(drift, geometry, span, equation, forms, found, at, own)


def _checked(drift: Any, geometry: Any, kappa: Any) -> tuple[float, float]:
    if not isinstance(drift, ZonalDrift) or not isinstance(geometry, Circle | Sphere | Zonal):
        raise TypeError(
            "branches needs USA, SA, Kuramoto or Interaction, and Circle, Sphere or Zonal; got "
            f"{drift!r} and {geometry!r}."
        )
    if drift.shape:
        raise ValueError(f"branches follows a single drift; got an ensemble {drift!r}.")
    array = real_array("kappa", kappa)
    if array.shape != (2,) or not np.isfinite(array).all() or not 0 < array[0] < array[1]:
        raise ValueError(f"kappa is a range (first, last), 0 < first < last; got {kappa!r}.")
    return float(array[0]), float(array[1])


def _checked_places(save_at: Any, span: tuple[float, float]) -> np.ndarray:
    array = real_array("save_at", save_at)
    if array.ndim != 1 or not ((span[0] <= array) & (array <= span[1])).all():
        raise ValueError(
            f"save_at is a sequence of kappa from {span[0]:g} to {span[1]:g}; got {save_at!r}."
        )
    return array


def _checked_observables(observables: Any) -> dict[str, Callable]:
    own = {} if observables is None else observables
    if not isinstance(own, Mapping) or not all(map(callable, own.values())):
        raise TypeError(f"observables maps names to functions of a density; got {observables!r}.")
    return dict(own)


def _degrees(equation: Equation, span: tuple[float, float], asked) -> list[int]:
    """Degrees l with kappa_l in the range, in the order of kappa_l."""
    w = equation.weights[:LARGEST]
    with np.errstate(divide="ignore"):
        critical = np.where(w > 0, 1 / np.where(w > 0, w, 1.0), np.inf)
    inside = (critical > span[0]) & (critical < span[1])
    found = [int(l) for l in equation.degrees[:LARGEST][inside]]
    if asked is not None:
        wanted = [whole_number("degrees are whole numbers", "l", l) for l in asked]
        for l in wanted:
            if l not in found:
                raise ValueError(
                    f"The uniform state has no bifurcation of degree {l} for {span[0]:g} < kappa < "
                    f"{span[1]:g}; those of degree {found} are there."
                )
        found = wanted
    return sorted(found, key=lambda l: critical[l - 1])


def _starts(equation: Equation, form: NormalForm, max_step: float):
    """Curves with their first points: on both sides of the uniform state unless they are equal."""
    index = int(np.flatnonzero(equation.degrees == form.degree)[0])
    row = np.zeros(len(equation.degrees) + 1)
    row[index] = 1.0
    mirrored = equation.dimension == 2 or form.degree % 2 == 1
    for sign in (1.0,) if mirrored else (1.0, -1.0):
        curve, size = Curve(equation, max_step), sign * AMPLITUDE
        z = np.append(size * row[:-1] + size**2 * form.second, 0.0)
        z[-1] = np.log(form.kappa * (1 + form.linear * size + form.quadratic * size**2))
        found = curve.solved(z, row, size)
        if found.converged:
            yield curve, curve.point(found.x, sign * row)


def _followed(branch: Branch, start: Point, span, most: int, orders: int, following) -> None:
    """To its end, with more moments where they are needed."""
    name = f"degree {branch.degree}"
    while True:
        watch = Rates(branch.curve.equation, orders) if orders else None
        for _ in trace(branch, start, span, most, watch):
            if _unresolved(branch.points[-1]):
                break
            if following.at(branch, name, branch.points[-1].kappa) and not branch.end:
                branch.end = "interrupted"
                return
        else:
            return
        equation = branch.curve.equation
        if 2 * equation.degree > MOST_DEGREE:
            branch.end = "unresolved"
            return
        curve = Curve(Equation(equation.drift, equation.dimension, 2 * equation.degree),
                      branch.curve.max_step)  # fmt: skip
        last = branch.drop()
        padded = _padded(last.z, curve), _padded(last.tangent, curve)
        found = curve.solved(padded[0], padded[1], padded[1] @ padded[0])
        if not found.converged:
            branch.end = "not continued"
            return
        branch.curve, start = curve, curve.point(found.x, padded[1])


def _stopped(found: list[Branch]) -> bool:
    return bool(found) and found[-1].end == "interrupted"


def _unresolved(point: Point) -> bool:
    tail = np.abs(point.a[-max(len(point.a) // 8, 2) :]).max()
    return tail > UNRESOLVED * (1 + np.abs(point.a).max())


def _padded(z: np.ndarray, curve: Curve) -> np.ndarray:
    return np.concatenate([z[:-1], np.zeros(len(curve.equation.degrees) + 1 - len(z)), z[-1:]])


def _leaving(found: list[Branch], parent: int, special: Special, span, most, orders, following):
    """The branches that cross another one at a bifurcation, if they are new."""
    curve, point = found[parent].curve, special.found.point
    matrix = curve.jacobian(_padded(point.z, curve))
    null = np.linalg.svd(matrix)[2][-2:]
    along = _padded(point.tangent, curve)
    direction = null[0] - (null[0] @ along) * along
    if np.linalg.norm(direction) < np.linalg.norm(null[1] - (null[1] @ along) * along):
        direction = null[1] - (null[1] @ along) * along
    direction /= np.linalg.norm(direction)
    new: list[Branch] = []
    for sign in (1.0, -1.0):
        z = _padded(point.z, curve) + sign * AMPLITUDE * direction
        begun = curve.solved(z, direction, direction @ z)
        if not begun.converged or _stopped(new) or _known(begun.x, [*found, *new]):
            continue
        branch = Branch(curve, parent, found[parent].degree)
        start = curve.point(begun.x, sign * direction)
        _followed(branch, start, span, most, orders, following)
        new.append(branch)
    return new


def _known(z: np.ndarray, found: list[Branch]) -> bool:
    """Whether a state, or its mirror image, lies on a branch that was followed."""
    flips = np.append((-1.0) ** np.arange(1, len(z)), 1.0)
    for image in (z, flips * z):
        for branch in found:
            size = max(len(image), max(len(p.z) for p in branch.points))
            near = min(
                float(np.linalg.norm(_resized(p.z, size) - _resized(image, size)))
                for p in branch.points
            )
            if near < AMPLITUDE / 2:
                return True
    return False


def _resized(z: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([z[:-1], np.zeros(size - len(z)), z[-1:]])
