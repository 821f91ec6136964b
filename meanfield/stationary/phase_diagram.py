"""The phase diagram in beta and kappa, by continuation of the special points themselves."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import positive, range_of, whole_number
from ..drifts import SA, USA
from ..errors import MeanfieldError
from ..geometry import Circle, Geometry, Sphere, Zonal
from .branches import branches
from .family import Family
from .harmonics import Harmonics
from .loci import Folds, Locus, Transitions
from .normal_form import normal_form
from .tricritical import GRID, Tricritical, critical, tricritical_points

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["PhaseDiagram", "phase_diagram"]

DEGREE = 64
SMALL = 0.03  # amplitude at which a curve has come to its tricritical point
MOST = 2000
UNRESOLVED = 1e-11
DOUBLINGS = 4


@dataclass(frozen=True, eq=False, repr=False)
class PhaseDiagram:
    """Curves of special points in the plane of beta and kappa.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: curve ("critical", "fold" or "transition"), degree, beta, kappa, and the order
        parameter there.
    tricritical : list of Tricritical
    """

    data: "xr.Dataset"
    tricritical: list[Tricritical]
    family: Family
    loci: dict[str, tuple[Locus, np.ndarray]]

    def kappa(self, curve: str, beta: float, degree: int = 1) -> float:
        """The kappa of a curve at a beta, to rounding; nan where it has no point.

        Raises
        ------
        ValueError
            For other curves, and for beta outside the range.
        """
        low, high = self.data.attrs["beta"]
        if curve not in ("critical", "fold", "transition") or not low <= beta <= high:
            raise ValueError(
                "Curves are critical, fold and transition, for "
                f"{low:g} <= beta <= {high:g}; got {curve!r} at beta = {beta!r}."
            )
        if curve == "critical":
            return critical(self.family, beta, degree)
        if curve not in self.loci or degree != 1:
            return float("nan")
        locus, points = self.loci[curve]
        start = _between(points, beta)
        if beta < points[0, -1]:
            corner = next((c for c in self.tricritical if c.degree == 1), None)
            if corner is None or beta <= corner.beta:
                return float("nan")
            start = _near_corner(points[0], corner, beta)
        found = locus.at_beta(start, beta)
        if found is None or abs(found[0]) < abs(start[0]) / 2:  # the uniform state
            return float("nan")
        return float(np.exp(found[-2]))

    def __repr__(self) -> str:
        names = [f"{name}" for name in ("critical", *self.loci)]
        ends = self.data.attrs["beta"]
        lines = [f"PhaseDiagram of {self.data.attrs['drift']}, {ends[0]:g} <= beta <= {ends[1]:g}: "
                 f"{', '.join(names)}"]  # fmt: skip
        return "\n".join([*lines, *(f"  {point!r}" for point in self.tricritical)])

    def plot(self, **options) -> "Figure":
        """The curves: `plotting.phases`."""
        from ..plotting import phases

        return phases(self, **options)


def phase_diagram(
    drift: type[USA] | type[SA],
    geometry: Geometry,
    beta: tuple[float, float],
    *,
    degrees: tuple[int, ...] = (1, 2, 3),
    max_step: float = 0.2,
) -> PhaseDiagram:
    """Where the uniform state loses its stability, and where it ceases to be the best.

    critical
        kappa_l = 1/w_l, at which the uniform state becomes unstable to harmonics of degree l.
    tricritical
        beta at which the onset of degree l becomes subcritical, from its normal form.
    fold
        Beyond it, where the ordered states begin: the curve of saddle-nodes of degree 1.
    transition
        Between the two, where both states have the same free energy: the first-order line. SA has
        none, as it has no free energy.

    The last two begin at the tricritical point and are followed as curves in the moments, kappa and
    beta, from points on one branch.

    Parameters
    ----------
    drift : type
        `USA` or `SA` itself.
    geometry : Circle, Sphere or Zonal
        Its dimension, and a degree at which to begin.
    beta : (float, float)
        0 < first < last.
    degrees : tuple of int
        Whose critical curves and tricritical points are wanted; with 1 among them, folds and
        transitions too.
    max_step : float
        Longest step in the moments, log kappa and beta.

    Returns
    -------
    PhaseDiagram

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    MeanfieldError
        If a curve cannot be followed, or needs too many moments.

    References
    ----------
    Mun and Rosenzweig, arXiv:2604.16288 and 2606.05140, with K = kappa/2, for tricritical points;
    Govaerts, Numerical Methods for Bifurcations of Dynamical Equilibria (2000), for the curves.
    """
    span = _checked(drift, geometry, beta)
    positive(max_step=max_step)
    chosen = [whole_number("degrees are whole numbers", "l", l) for l in degrees]
    corners: list[Tricritical] = []
    for degree in max(DEGREE, geometry.degree) * 2 ** np.arange(DOUBLINGS):
        family = Family(drift, Harmonics(geometry.dimension, 0, int(degree)))
        corners = [point for l in chosen for point in tricritical_points(family, span, l)]
        loci = _followed(family, geometry, span, corners, max_step) if 1 in chosen else {}
        if all(_tail(points) <= UNRESOLVED for _, points in loci.values()):
            break
    else:
        raise MeanfieldError(
            f"The curves need more than {degree} moments. Take a smaller range of beta."
        )
    rows: list[tuple[Any, ...]] = [
        ("critical", l, b, critical(family, b, l), 0.0)
        for l in chosen
        for b in np.linspace(*span, GRID)
    ]
    for name, (_, points) in loci.items():
        root = family.basis.dimension**0.5
        rows += [(name, 1, z[-1], np.exp(z[-2]), abs(z[0]) / root) for z in points]
    return PhaseDiagram(_table(rows, drift, geometry, span), corners, family, loci)


def _followed(
    family: Family, geometry: Geometry, span, corners: list[Tricritical], max_step: float
):
    """The fold curve and the first-order line, from points on a branch beyond the corner."""
    lowest = min((corner.beta for corner in corners if corner.degree == 1), default=span[0])
    beta = min(lowest + 1.0, (lowest + span[1]) / 2)
    form = normal_form(family.at(beta), 1)
    if form.kind != "subcritical":
        return {}
    diagram = branches(
        family.drift(beta), geometry, (form.kappa / 20, 1.2 * form.kappa), degrees=[1],
        stability=False, secondary=False,
    )  # fmt: skip
    loci: dict[str, tuple[Locus, np.ndarray]] = {}
    for name in ("fold", "transition"):
        for special in diagram.special(name)[:1]:
            locus, z = _locus(name, family, special.state, beta, max_step)
            loci[name] = locus, _both_ways(locus, z, span)
    return loci


def _locus(name: str, family: Family, state, beta: float, max_step: float):
    size = len(family.basis.degrees)
    a = np.pad(state.moments, (0, max(size - len(state.moments), 0)))[:size]
    z = np.concatenate([a, [np.log(state.kappa), beta]])
    if name == "transition":
        return Transitions(family, max_step), z
    member = family.at(beta)
    null = np.linalg.svd(member.jacobian(member.mean(a, state.kappa), state.kappa))[2][-1]
    return Folds(family, null, max_step), z


def _both_ways(locus: Locus, z: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """The curve from its tricritical point, or the lowest beta, to the highest."""
    start = locus.at_beta(z, float(z[-1]))
    if start is None:
        raise MeanfieldError(f"The special point at beta = {z[-1]:g} was not found again.")
    row, sides = np.append(np.zeros(len(z) - 1), 1.0), []
    for sign in (-1.0, 1.0):
        points = [start]
        for number, point in enumerate(locus.follow(start, sign * row, locus.max_step / 4)):
            if abs(point[0]) < SMALL or point[0] * start[0] < 0 or number > MOST:
                break
            if not span[0] <= point[-1] <= span[1]:
                end = locus.at_beta(_between(np.array([points[-1], point]), span[sign > 0]),
                                    span[sign > 0])  # fmt: skip
                points += [] if end is None else [end]
                break
            points.append(point)
        sides.append(points)
    found = np.array([*sides[0][:0:-1], *sides[1]])
    return found


def _tail(points: np.ndarray) -> float:
    """The largest of the last moments."""
    size = points.shape[1] - 2
    return float(np.abs(points[:, size - size // 8 : size]).max())


def _between(points: np.ndarray, beta: float) -> np.ndarray:
    """A point of the polygon through these at a beta."""
    order = np.argsort(points[:, -1])
    betas = points[order, -1]
    return np.array([np.interp(beta, betas, column) for column in points[order].T])


def _near_corner(first: np.ndarray, corner: Tricritical, beta: float) -> np.ndarray:
    """A point between the tricritical one and the first: a_l grows like amplitude^l there."""
    part = (beta - corner.beta) / (first[-1] - corner.beta)
    l = np.arange(1, len(first) - 1)
    log = (1 - part) * np.log(corner.kappa) + part * first[-2]
    return np.concatenate([first[:-2] * part ** (l / 2), [log, beta]])


def _checked(drift: Any, geometry: Any, beta: Any) -> tuple[float, float]:
    if drift not in (USA, SA) or not isinstance(geometry, Circle | Sphere | Zonal):
        raise TypeError(
            "phase_diagram needs USA or SA itself, and Circle, Sphere or Zonal; got "
            f"{drift!r} and {geometry!r}."
        )
    return range_of("beta", beta)


def _table(rows: list[tuple], drift, geometry: Geometry, span: tuple[float, float]) -> "xr.Dataset":
    import xarray as xr

    names = ("curve", "degree", "beta", "kappa", "order_parameter")
    arrays = {
        name: ("point", np.array(list(column)))
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    attributes = {"drift": drift.__name__, "geometry": repr(geometry), "beta": list(span)}
    return xr.Dataset(arrays, attrs=attributes)
