"""The phase diagram in beta and kappa, by continuation of the special points themselves."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.checks import boolean, finite, path_of, positive, range_of
from ..core.errors import MeanfieldError
from ..lowlevel.blas import one_blas_thread
from ..models import SA, USA
from ..spaces import Circle, Geometry, Sphere, Zonal
from .family import Family
from .first_order import Curves, Ends, between, first_order_curves
from .following import Following
from .harmonics import Harmonics
from .onsets import asked_degrees
from .tricritical import GRID, Tricritical, critical, tricritical_points

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["PhaseDiagram", "phase_diagram"]

DEGREE = 64
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
    ends : dict of str to (str, str)
        Why the fold and the transition end at their lowest and at their highest beta:
        "tricritical", "range", "not continued", "max_points", "interrupted"; "not located" where
        a curve was expected and none was found.
    """

    data: "xr.Dataset"
    tricritical: list[Tricritical]
    ends: Ends
    family: Family
    loci: Curves

    def kappa(self, curve: str, beta: float, degree: int = 1) -> float:
        """The kappa of a curve at a beta, to rounding; nan where it has no point.

        Raises
        ------
        ValueError
            For other curves, and for beta outside the range.
        """
        finite(beta=beta)
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
        if beta > points[-1, -1]:
            return float("nan")
        start = between(points, beta)
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
        lines += [f"  {point!r}" for point in self.tricritical]
        return "\n".join([*lines, *(f"  <-- {doubt}" for doubt in self.doubts)])

    @property
    def doubts(self) -> list[str]:
        """What is missing, in words: curves cut short or not found."""
        from .doubts import of_curves

        return of_curves(self)

    def save(self, path: str | Path) -> Path:
        """Write everything to a NetCDF file, atomically; `kappa` works after `load`."""
        from .phase_files import write

        return write(self, path_of("path", path))

    @classmethod
    def load(cls, path: str | Path) -> "PhaseDiagram":
        """A phase diagram from its file, to the last bit."""
        from .phase_files import read

        return cls(*read(path_of("path", path)))

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
    progress: bool | None = None,
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
        Longest step in sqrt(2) times the Legendre moments, log kappa and beta.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    PhaseDiagram
        After Ctrl-C with what was found; `doubts` says what is missing.

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
    chosen = asked_degrees(degrees, DEGREE // 2)
    progress = None if progress is None else boolean("progress", progress)
    corners: list[Tricritical] = []
    loci: Curves = {}
    ends: Ends = {}
    with one_blas_thread(), Following("beta", span, progress) as following:
        for degree in max(DEGREE, geometry.degree) * 2 ** np.arange(DOUBLINGS):
            family = Family(drift, Harmonics(geometry.dimension, 0, int(degree)))
            corners = [point for l in chosen for point in tricritical_points(family, span, l)]
            if 1 in chosen:
                loci, ends = first_order_curves(
                    family, geometry, span, corners, max_step, following
                )
            resolved = {name: c for name, c in loci.items() if _resolved(family, c[1])}
            if following.stopped or len(resolved) == len(loci):
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
    for name, (_, points) in resolved.items():
        root = family.basis.dimension**0.5
        rows += [(name, 1, z[-1], np.exp(z[-2]), abs(z[0]) / root) for z in points]
    return PhaseDiagram(_table(rows, drift, geometry, span), corners, ends, family, resolved)


def _resolved(family: Family, points: np.ndarray) -> bool:
    return max(family.basis.tail(z[:-2]) for z in points) <= UNRESOLVED


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
