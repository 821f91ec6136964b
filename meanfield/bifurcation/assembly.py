"""From followed branches to labelled arrays and special points."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..spaces import Geometry
from .curve import Point
from .path import Onset, Path
from .placement import density_of, usual_axis
from .special_point import SpecialPoint
from .stability import most_attracted
from .state import StationaryState, state_at
from .tracing import Branch

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["RESERVED", "special_of", "special_points", "table"]

UNIFORM_POINTS = 60
GROWING = 1e-9
RESERVED = ("branch", "kappa", "beta", "order_parameter", "moments", "resolution", "free_energy",
            "growth", "unstable", "degree", "order", "point")  # fmt: skip
UNKNOWN = (float("nan"), float("nan"))


def special_points(
    path: Path, onsets: list[Onset], found: list[Branch], geometry: Geometry
) -> list[SpecialPoint]:
    """Those of the uniform state, and those of every branch."""
    axis, size = usual_axis(geometry), len(path.basis.degrees)
    specials = []
    for onset in onsets:
        z = np.append(np.zeros(size), path.coordinate(onset.value))
        state, place = state_at(path, z, geometry, axis), (onset.value, onset.value)
        coefficients = float(onset.form.linear), float(onset.form.quadratic)
        specials.append(SpecialPoint("bifurcation", path.parameter, onset.value, place,
                                     _status(onset, found), 0, onset.form.degree, 0,
                                     onset.form.kind, coefficients, state))  # fmt: skip
    for number, branch in enumerate(found, start=1):
        for special in branch.specials:
            where = special.found
            state = state_at(branch.curve.path, where.point.z, geometry, axis)
            specials.append(SpecialPoint(special.kind, path.parameter, where.point.value,
                                         where.interval, where.status, number, branch.degree,
                                         special.order, "", UNKNOWN, state))  # fmt: skip
    return specials


def _status(onset: Onset, found: list[Branch]) -> str:
    begun = any(b.parent < 0 and b.degree == onset.form.degree for b in found)
    return "exact" if begun else "not followed"


def special_of(row: dict[str, Any], parameter: str, state: StationaryState) -> SpecialPoint:
    """From a row of a file."""
    branch, degree, order = (int(row[name]) for name in ("branch", "degree", "order"))
    kind, status, character = (str(row[name]) for name in ("kind", "status", "character"))
    interval = float(row["low"]), float(row["high"])
    coefficients = float(row["linear"]), float(row["quadratic"])
    return SpecialPoint(
        kind, parameter, float(row["value"]), interval, status, branch, degree, order, character,
        coefficients, state,
    )  # fmt: skip


def table(
    path: Path, span: tuple[float, float], found: list[Branch], geometry: Geometry,
    observables: dict[str, Callable],
) -> "xr.Dataset":  # fmt: skip
    """The points of all branches, the uniform one first."""
    import xarray as xr

    uniform = _uniform(path, span)
    energy = path.at(uniform[0].p)[0].free_energy(uniform[0].a, 1.0)
    points = [(0, path, point) for point in uniform]
    energies = [energy] * len(uniform)
    rates = _rates_of_uniform(path, uniform)
    for number, branch in enumerate(found, start=1):
        points += [(number, branch.curve.path, point) for point in branch.points]
        energies += branch.energies
        rates += branch.rates
    finest = max((path for _, path, _ in points), key=lambda path: path.basis.degree).basis
    moments = np.zeros((len(points), len(finest.degrees)))
    for row, (_, _, point) in zip(moments, points, strict=True):
        row[: len(point.a)] = point.a
    moments /= finest.sizes
    counts, growth = _growing(rates)
    first = moments[:, 0] if finest.degrees[0] == 1 else np.zeros(len(points))
    arrays: dict[str, Any] = {
        "branch": ("point", [number for number, _, _ in points]),
        path.parameter: ("point", [point.value for _, _, point in points]),
        "order_parameter": ("point", np.abs(first)),
        "moments": (("point", "degree"), moments),
        "resolution": ("point", [path.basis.degree for _, path, _ in points]),
        "free_energy": ("point", energies),
        "growth": ("point", growth),
        "unstable": (("point", "order"), counts),
    }
    for name, f in observables.items():
        arrays[name] = ("point", [float(f(_density(path, p, geometry))) for _, path, p in points])
    coordinates = {"degree": finest.degrees, "order": np.arange(counts.shape[1])}
    return xr.Dataset(arrays, coordinates, attrs={path.parameter: list(span)})


def _uniform(path: Path, span: tuple[float, float]) -> list[Point]:
    low, high = map(path.coordinate, span)
    direction = np.append(np.zeros(len(path.basis.degrees)), 1.0)
    return [
        Point(p * direction, direction, path.value(p))
        for p in np.linspace(low, high, UNIFORM_POINTS)
    ]


def _rates_of_uniform(path: Path, uniform: list[Point]) -> list[list[np.ndarray]]:
    orders = max(4, most_attracted(path.at(uniform[0].p)[0]) + 1)
    bases = [path.basis.of_order(m) for m in range(min(path.basis.orders, orders))]
    found = []
    for point in uniform:
        equation, kappa = path.at(point.p)
        rates = [b.eigenvalues * (equation.multipliers(b) - 1 / kappa) for b in bases]
        found.append([np.sort(values)[::-1] for values in rates])
    return found


def _growing(rates: list[list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """How many grow, by order (-1 where that is not known), and the largest rate."""
    counts = np.full((len(rates), max(map(len, rates))), -1)
    growth = np.full(len(rates), np.nan)
    for i, found in enumerate(rates):
        for m, values in enumerate(found):
            counts[i, m] = (values > GROWING).sum()
        growth[i] = max((values[0] for values in found if values.size), default=np.nan)
    return counts, growth


def _density(path: Path, point: Point, geometry: Geometry):
    a = np.pad(point.a, (0, len(path.basis.degrees) - len(point.a)))
    return density_of(a, path.basis, geometry, usual_axis(geometry))
