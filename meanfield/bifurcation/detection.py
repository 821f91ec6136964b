"""Special points on a branch: test functions that vanish there, and location of their zeros.

Folds, bifurcations, losses of symmetry and equal free energies are zeros of functions along the
branch, bracketed by the step in which a function changes its sign.

A branch that meets one of more symmetry continues as its own mirror image. Its odd part passes
through zero there, and its curve is not regular. The curve of the more symmetric states is regular,
so the point is located on it.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from .bases import SYMMETRY_ROUNDING
from .continuation import CurvePoint, DenseCurve, StationaryCurve
from .stability import growth_rates

MOST_BISECTIONS = 60
BRACKET_PART = 1e-13  # least length of a bracket, relative to the step
BRACKET_VALUE = 1e-10  # largest relative bracket if no further point can be computed
BRACKET_ROUNDING = 1e-14  # relative margin of an interval
ZERO_SIZE = 1e-6  # largest value at a zero, relative to the ends; at a pole it is larger
SHORTEST_SEARCH, LONGEST_SEARCH = 1e-4, 0.2  # lengths of the more symmetric curve that are searched
SAME_VALUE = 1e-9  # relative tolerance on the parameter for equal zeros
ONE_PLACE = 1e-7  # relative tolerance on the parameter for zeros of two functions at one place
OSCILLATING = 1e-8  # imaginary parts of eigenvalues, relative to the largest
VERTICAL = 1e-9  # smaller tangents in the parameter are rounding: states differ by rotations
UNIFORM_AT_REST = 1e-10  # largest residual of the uniform density where it is stationary
RATE_NOISE = 1e-12  # relative to the largest rate: smaller rates are rounding


class Special(NamedTuple):
    """A special point on a curve, at which a test function vanishes.

    Attributes
    ----------
    point : CurvePoint
        Its tangent is the secant of the step, as the tangent is not defined where curves cross.
    interval : (float, float)
        Values of the parameter at the ends of the last bracket.
    status : str
        "converged", or "not located" if no zero was found, or if points in the bracket could not be
        computed while it was wider than 1e-10, relative to the parameter.
    kind : str
        "fold", "bifurcation" (order 0), "symmetry breaking" (higher orders), "transition", "Hopf".
    order : int
        Order of the perturbation that becomes neutral.
    place : int
        Index of the last point of the branch before it.
    """

    point: CurvePoint
    interval: tuple[float, float]
    status: str
    kind: str = "bifurcation"
    order: int = 0
    place: int = 0


def located(
    curve: DenseCurve,
    first: CurvePoint,
    step: float,
    f: Callable[[CurvePoint], float],
    f_first: float,
    last: float,
) -> Special:
    """The zero of f between the point `first` and the point a step ahead.

    `f_first` and `last` are the values of f at both. False position with halved weights (Illinois),
    with a bisection every fourth time.
    """
    low, high, f_low, f_high, side = 0.0, 1.0, f_first, last, 0
    end = curve.ahead(first, step)
    if end is None:
        return Special(first, (first.value, first.value), "not located")
    at_low, at_high, best, size = first, end, first, np.inf
    for count in range(MOST_BISECTIONS):
        middle = (low + high) / 2
        part = (low * f_high - high * f_low) / (f_high - f_low)
        if count % 4 == 3 or not low < part < high:
            part = middle
        new = _ahead(curve, first, part * step)
        if new is None:  # too near a crossing curve
            part = middle
            new = _ahead(curve, first, part * step)
        if new is None:
            largest = max(abs(at_low.value), abs(at_high.value))
            if abs(at_high.value - at_low.value) > BRACKET_VALUE * largest:
                return Special(best, _interval(at_low, at_high, best), "not located")
            break
        value = f(new)
        if abs(value) < size:
            best, size = new, abs(value)
        if value == 0:
            return Special(_on(new, first, end), _interval(new), "converged")
        if value * f_low > 0:
            low, f_low, at_low = part, value, new
            f_high, side = f_high / 2 if side < 0 else f_high, -1
        else:
            high, f_high, at_high = part, value, new
            f_low, side = f_low / 2 if side > 0 else f_low, 1
        if high - low <= BRACKET_PART:
            break
    vanishes = size <= ZERO_SIZE * max(abs(f_first), abs(last))
    status = "converged" if vanishes else "not located"
    return Special(_on(best, first, end), _interval(at_low, at_high, best), status)


def _ahead(curve: DenseCurve, first: CurvePoint, step: float) -> CurvePoint | None:
    """The point a step ahead, with the symmetries of `first`; None if Newton's method fails."""
    point = curve.ahead(first, step)
    if point is None:
        return None
    size = len(curve.basis.degrees)
    m = curve.basis.symmetric_part(first.z[:size], point.z[:size])
    return point._replace(z=np.concatenate([m, point.z[size:]]))


def _on(point: CurvePoint, first: CurvePoint, last: CurvePoint) -> CurvePoint:
    """The point with the normalised secant from `first` to `last` as tangent."""
    secant = last.z - first.z
    return point._replace(tangent=secant / np.linalg.norm(secant))


def _interval(*points: CurvePoint) -> tuple[float, float]:
    """Range of the parameter over points, widened by a margin for rounding."""
    values = [point.value for point in points]
    more = BRACKET_ROUNDING * max(map(abs, values))
    return min(values) - more, max(values) + more


def meeting(curve: StationaryCurve, first: CurvePoint, last: CurvePoint) -> Special | None:
    """The point between two at which a curve meets one of more symmetry; None if it does not.

    The tangent of the result is that of the curve, along which only the odd part changes.
    """
    for signs in curve.basis.images(first.m):
        before, after = ((point.m - signs * point.m) / 2 for point in (first, last))
        least = min(np.abs(before).max(), np.abs(after).max())
        if least >= SYMMETRY_ROUNDING and before @ after < 0:
            break
    else:
        return None
    path = curve.among(curve.basis.joined(signs))
    nearer = first if np.abs(before).max() < np.abs(after).max() else last
    way = np.append(before / np.linalg.norm(before), 0.0)
    symmetric = np.append((nearer.m + signs * nearer.m) / 2, nearer.p)
    direction = across(curve.kernel(symmetric)[0], way)
    z = path.solved(symmetric, direction, float(direction @ symmetric))
    if z is None:
        return Special(nearer, _interval(first, last), "not located")

    def singular(point: CurvePoint) -> float:
        return curve.singular(point.z, direction)

    place = zero_near(path, path.point(z, direction), singular)
    if place is None:
        return Special(nearer, _interval(first, last), "not located")
    return place._replace(point=place.point._replace(tangent=way))


def zero_near(
    curve: DenseCurve, start: CurvePoint, f: Callable[[CurvePoint], float]
) -> Special | None:
    """The zero of f nearest to a point of a curve; None within a length of 0.2 on both sides."""
    first, length = f(start), SHORTEST_SEARCH
    while length < LONGEST_SEARCH:
        for step in (length, -length):
            end = curve.ahead(start, step)
            if end is not None and first * (last := f(end)) <= 0:
                return located(curve, start, step, f, first, last)
        length *= 2
    return None


def across(kernel: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Unit vector in the span of orthonormal rows `kernel` (2, N), orthogonal to `along` (N,)."""
    first, second = kernel @ along
    return (first * kernel[1] - second * kernel[0]) / np.hypot(first, second)


class TestFunctions:
    """Test functions, which vanish at special points of a curve, and growth rates.

    Parameters
    ----------
    curve : StationaryCurve
    orders : int
        Growth rates are computed for perturbations of orders 0, ..., `orders` - 1.
    """

    __test__ = False  # pytest would collect it by its name

    def __init__(self, curve: StationaryCurve, orders: int):
        self._curve, self._count = curve, min(orders, curve.basis.orders)
        self._of_order = cache(curve.basis.of_order)

    def at(self, point: CurvePoint, watched: bool) -> CurvePoint:
        """The point with the values of the test functions, and with growth rates if `watched`."""
        tests = {kind: f(point) for kind, f in self._functions(point).items()}
        orders = range(self._count) if watched else ()
        return point._replace(tests=tests, rates=[self._rates(order, point) for order in orders])

    def between(
        self, first: CurvePoint, step: float, last: CurvePoint, met: Special | None, number: int
    ) -> list[Special]:
        """Special points between `first` and the point `last` a step ahead.

        `met` is the result of `meeting`, included if it is not None; `number` is the index of
        `first` on the branch.
        """
        specials = [] if met is None else [met._replace(place=number)]
        for kind, f in self._functions(first).items():
            low, high = first.tests[kind], last.tests[kind]
            turns = kind != "fold" or max(abs(low), abs(high)) > VERTICAL
            if low * high < 0 and kind == "transition":
                turns = self._compares(first)
            if low * high < 0 and turns and not (met is not None and kind == "bifurcation"):
                place = located(self._curve, first, step, f, low, high)
                specials.append(place._replace(kind=kind, place=number))
        for order, (lows, highs) in enumerate(zip(first.rates, last.rates, strict=False)):
            for i in _crossing(lows, highs) if order or not self._real(first) else []:
                f = partial(self._rate, order, i)
                special = located(self._curve, first, step, f, lows[i], highs[i])
                kind = "Hopf" if self._oscillates(order, special.point) else "symmetry breaking"
                special = special._replace(kind=kind, order=order, place=number)
                if not order and kind != "Hopf":  # two at once: the determinant keeps its sign
                    located_here = any(
                        s.kind in ("fold", "bifurcation") and at_one_place(s, special)
                        for s in specials
                    )
                    if located_here or special.status != "converged":
                        continue
                    special = special._replace(kind="bifurcation")
                if not (specials and _same(specials[-1], special)):  # second of two equal rates
                    specials.append(special)
        return specials

    def _real(self, point: CurvePoint) -> bool:
        """Whether the linearised operator has real eigenvalues only."""
        return self._curve.at(point.p)[0].real_spectrum

    def _compares(self, point: CurvePoint) -> bool:
        """Whether free energies are compared with that of the uniform state: it is stationary."""
        equation, kappa = self._curve.at(point.p)
        uniform = np.zeros(len(self._curve.basis.degrees))
        return equation.basis.symmetric or equation.residual(uniform, kappa) <= UNIFORM_AT_REST

    def _oscillates(self, order: int, point: CurvePoint) -> bool:
        """Whether the eigenvalue nearest to the imaginary axis is not real."""
        if self._real(point):
            return False

        def find() -> float:
            equation, kappa = self._curve.at(point.p)
            values = np.linalg.eigvals(equation.linearised(point.m, kappa, self._of_order(order)))
            neutral = values[np.abs(values.real).argmin()]
            return abs(neutral.imag) > OSCILLATING * np.abs(values).max()

        return bool(self._curve.recalled("oscillates", (point.z, order), find).item())

    def _functions(self, near: CurvePoint) -> dict[str, Callable[[CurvePoint], float]]:
        """Test functions by the kind of special point at which they vanish.

        That of bifurcations uses the tangent of the point `near`, as tangents are not defined at
        crossings.
        """
        return {
            "fold": lambda point: float(point.tangent[-1]),
            "bifurcation": lambda point: self._curve.singular(point.z, near.tangent),
            "transition": self._energy,
        }

    def _energy(self, point: CurvePoint) -> float:
        """Free energy of a point, relative to the uniform state; nan if there is none."""

        def find() -> float:
            equation, kappa = self._curve.at(point.p)
            return equation.free_energy(equation.mean(point.m, kappa))

        return self._curve.recalled("free energy", (point.z,), find).item()

    def _rates(self, order: int, point: CurvePoint) -> np.ndarray:
        """Growth rates of one order at a point, in decreasing order."""

        def find() -> np.ndarray:
            equation, kappa = self._curve.at(point.p)
            return growth_rates(equation, point.m, kappa, self._of_order(order))

        return self._curve.recalled("rates", (point.z, order), find)

    def _rate(self, order: int, i: int, point: CurvePoint) -> float:
        return float(self._rates(order, point)[i])


def _same(one: Special, other: Special) -> bool:
    """Whether two special points have equal kind and order, and almost equal parameter."""
    close = np.isclose(one.point.value, other.point.value, rtol=SAME_VALUE, atol=0.0)
    return one.kind == other.kind and one.order == other.order and bool(close)


def at_one_place(one: Special, other: Special) -> bool:
    """Whether two special points may be zeros of two functions at one place."""
    return bool(np.isclose(one.point.value, other.point.value, rtol=ONE_PLACE, atol=0.0))


def _crossing(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Indices of the sorted rates that change sign between two points, rounding excluded."""
    size = min(len(low), len(high))
    low, high = low[:size], high[:size]
    seen = np.maximum(np.abs(low), np.abs(high)) > RATE_NOISE * np.abs(low).max(initial=0.0)
    return np.flatnonzero((low * high < 0) & seen)
