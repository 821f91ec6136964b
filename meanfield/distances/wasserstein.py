"""Wasserstein distances between two states on one sphere or between Gaussians.

Sliced distances average over great circles, conditional ones over positions in a sequence.
"""

from collections.abc import Callable
from functools import cache
from math import pi
from typing import Any

import numpy as np

from ..core.calls import checked_call, with_hints
from ..core.checks import check_memory, generator, real, require, whole_number
from ..core.forms import Natural
from ..spaces.index import Positions
from ..spaces.indexed import Indexed
from ..states import Gaussian, Tokens
from .distance import Distance
from .linear_programs import Cells, optimal_plan, semidiscrete_bounds
from .measures import Measure, checked_pair
from .metrics import Metric
from .quantiles import (
    NEGLIGIBLE_MASS,
    curves_of_points,
    levels_of,
    transport_around_circle,
    transport_costs_around_circle,
    transport_on_interval,
)

MAX_POWER = 20  # beyond, rounding errors of masses dominate
DEFAULT_CELLS, MAX_CELLS = 2000, 20_000
INTEGRAL_ROUNDING = 1e-14  # relative to the largest value of the integral
FIRST_ROTATIONS, MAX_ROTATIONS = 16, 1000
ROTATION_TOLERANCE = {True: 1e-6, False: 1e-3}  # relative gap to the bound; True is p = 2
ROTATION_MARGIN = 0.05  # relative distance of a new rotation from the ends of its interval
CIRCLES_PER_BATCH = 16
EXTRA_NODES = 4  # on each piece of a second quadrature rule in s
SEQUENCE_ROUNDING = 1e-15  # of levels

Distances = tuple[Any, Any]  # distances and their errors
Divided = Callable[[Any, int], Cells]  # the cells of a member of a density


@checked_call("p", "cells")
def wasserstein(
    a: Any, b: Any, p: float = 2, *, cells: int = DEFAULT_CELLS, up_to_rotation: bool = False
) -> Distance:
    """Wasserstein distance of order p between two states, in radians.

        W_p(a, b) = (min over plans of int d(x, y)^p dplan)^(1/p)

    d is the geodesic distance on the sphere, from 0 to pi, or on the torus, the root of the sum of
    squared angles; for tokens in R^d it is the Euclidean distance.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics, Dirac or TorusTokens; or two Gaussians
        States on the same sphere or torus. Ensembles and replicas are broadcast against each other.
        Any other state may be passed if its method ``as_measure()`` returns one of these.
    p : float
        From 1 to 20.
    cells : int
        Number of cells into which a density on S^2 or a torus is divided where there is no closed
        form. More cells are more accurate and take longer.
    up_to_rotation : bool
        On the circle: the least distance over all rotations of one of the two. Its relative error
        is 1e-6 for p = 2, at the cost of about 40 distances, and 1e-3 for other p, at the cost of
        hundreds. The search ends after 1000 distances; `error` bounds the remaining gap.

    Returns
    -------
    Distance
        A number, or an array of the shape of the ensemble; its `error` is a bound.

    Raises
    ------
    TypeError, ValueError
        For states of different spheres, other states, and p outside its range.
    MeanfieldError
        For more than 2^28 pairs of points where all are needed.

    Warns
    -----
    UnresolvedWarning
        If the linear program stopped before its optimum.

    Notes
    -----
    ============================================  ==================  ==========================
    between                                       how                 error
    ============================================  ==================  ==========================
    anything on the circle                        quantiles and the   rounding
                                                  best shift
    anything and a Dirac                          an integral         rounding
    axisymmetric densities, any d                 along meridians     rounding
    tokens, characteristics, on a torus too       network simplex     rounding
    Gaussians, p = 2                              Bures' formula      rounding
    a density on S^2 or a torus and tokens        `cells`, semi-      half the distance of two
                                                  discrete            bounds
    two densities on S^2 or a torus               `cells`             distance of densities from
                                                                      their cells
    ============================================  ==================  ==========================

    Characteristics are the measure of their nodes. On the circle n points take O(n log n) time; a
    density takes about 0.3 microseconds for each point and each shift that is tried. The linear
    program takes time of about n^2.5 and stores n^2 numbers.

    The distance between two samples of n points of the same law is not 0 but near the sampling
    floor: n^(-1/2) on the circle, (log n / n)^(1/2) on S^2, n^(-1/(d-1)) for d > 3. The distance
    between a density and its rotation by an angle can be less than the angle, since mass may move
    in the other direction.

    References
    ----------
    Delon, Salomon and Sobolevski, Fast transport optimization for Monge costs on the circle, SIAM
    J. Appl. Math. 70 (2010).

    Examples
    --------
    >>> a, b = mf.Tokens.on_circle([0.0, 1.0]), mf.Tokens.on_circle([0.5, 1.5])
    >>> round(float(mf.wasserstein(a, b)), 6)
    0.5
    """
    p = checked_power(p)
    cells = whole_number("cells", cells, most=MAX_CELLS)
    if isinstance(a, Gaussian) or isinstance(b, Gaussian):
        return _bures(a, b, p, up_to_rotation)
    a, b, shape, pairs = checked_pair("wasserstein", a, b)
    (values, errors), method = _of_members(a, b, p, pairs, cells, up_to_rotation)
    return Distance(np.reshape(values, shape), np.reshape(errors, shape), method)


def checked_power(p: Any) -> float:
    """p as a float; raises ValueError outside [1, 20]."""
    return real("p", p, f"a number, 1 <= p <= {MAX_POWER}", lambda p: 1 <= p <= MAX_POWER)


def _bures(a: Any, b: Any, p: float, rotated: bool) -> Distance:
    """W_2 of normal laws: (|m - n|^2 + tr(A + B - 2 (A^(1/2) B A^(1/2))^(1/2)))^(1/2).

    The trace of the root is the sum of the singular values of L^T M, A = L L^T, B = M M^T.

    References
    ----------
    Dowson and Landau, J. Multivariate Anal. 12 (1982).
    """
    names = " and ".join(type(state).__name__ for state in (a, b))
    both, advice = names == "Gaussian and Gaussian", "Compare a sample: gaussian.sample(n, rng=0)."
    if not both:
        raise TypeError(f"Gaussian has a distance from Gaussian only; got {names}. {advice}")
    dimensions = a.dimension, b.dimension
    require("dimensions", dimensions, "equal, of two Gaussians", a.dimension == b.dimension)
    options = f"p = {p:g}, up_to_rotation = {rotated}"
    expected = "those of a closed distance for p = 2"
    require("Options for Gaussians", options, expected, p == 2 and not rotated)
    u, _, v = np.linalg.svd(a.root.T @ b.root)
    difference = a.root @ u - b.root @ v.T  # |L U - M V|^2 for the best rotation: no cancellation
    value = float(np.sqrt(((a.mean - b.mean) ** 2).sum() + (difference**2).sum()))
    size = np.trace(a.cov) + np.trace(b.cov)  # roots of rounding errors, where both are singular
    return Distance(value, (np.finfo(float).eps * size) ** 0.5, "Bures")


# Members ------------------------------------------------------------------------------------


def _of_members(
    a: Any, b: Any, p: float, pairs: np.ndarray, cells: int, rotated: bool
) -> tuple[Distances, str]:
    """Distances and errors of all pairs of members, and the name of the method."""
    on_circle = a.metric == Metric(2, 2)
    symmetric = a.axisymmetric and b.axisymmetric
    for measure, other, side in ((a, b, 0), (b, a, 1)):
        # Quantiles are more accurate.
        has_quantiles = measure.is_density and (on_circle or symmetric)
        if other.single_point is not None and not (rotated or has_quantiles):
            return _to_point(measure, other.single_point, p, pairs[:, side]), "integral"
    if rotated and not on_circle:
        raise ValueError(f"Distances up to rotation are known on the circle; got {a} and {b}.")
    if rotated:
        return _up_to_rotation(a, b, p, pairs), "quantiles, rotated"
    if on_circle:
        X, Y = a.curves_on_circle(), b.curves_on_circle()
        return transport_around_circle(X, Y, p, pairs), "quantiles"
    if symmetric:  # the optimal plan keeps every point on its meridian
        return transport_on_interval(a.polar_curves(), b.polar_curves(), p, pairs, pi), "quantiles"
    if a.dimension == 1:
        return _on_line(a, b, p, pairs), "quantiles"
    for measure in (a, b):
        measure.check_divisible()
    densities = a.is_density + b.is_density
    of_pair = (_between_points, _density_and_points, _between_densities)[densities]
    divided = cache(lambda measure, member: measure.cells(member, cells))
    results = np.array([of_pair(a, b, i, j, p, divided) for i, j in pairs])
    return (results[:, 0], results[:, 1]), ("network simplex", "semi-discrete", "cells")[densities]


def _to_point(measure: Measure, point: np.ndarray, p: float, members: np.ndarray) -> Distances:
    """Distances of members to a Dirac measure, as integrals."""
    value = measure.distance_to(point, p).ravel()[members]
    rounding = INTEGRAL_ROUNDING * np.pi**p if measure.is_density else 0.0
    return value, (value**p + rounding) ** (1 / p) - value + INTEGRAL_ROUNDING * value


def _on_line(a: Any, b: Any, p: float, pairs: np.ndarray) -> Distances:
    """Distances between points of R, scaled to the interval [0, 1]."""
    lowest = min(a.x.min(), b.x.min())
    longest = float(max(a.x.max(), b.x.max()) - lowest) or 1.0
    X, Y = (curves_of_points((m.x[..., 0] - lowest) / longest, m.masses) for m in (a, b))
    distances, errors = transport_on_interval(X, Y, p, pairs, 1.0)
    return longest * distances, longest * errors


def _between_points(a: Measure, b: Measure, i: int, j: int, p: float, _: Divided) -> Distances:
    """The distance of the members i and j of two sets of points by an optimal plan."""
    plan = optimal_plan(a.metric, *a.points(i, 0), *b.points(j, 0), p)
    distance = plan.cost ** (1 / p)
    error = distance - max(plan.bound, 0.0) ** (1 / p) + INTEGRAL_ROUNDING * distance
    return plan.scale * distance, plan.scale * error


def _density_and_points(
    a: Measure, b: Measure, i: int, j: int, p: float, divided: Divided
) -> Distances:
    """The middle of two bounds of the distance between a density and points."""
    if b.is_density:
        a, b, i, j = b, a, j, i
    bounds = semidiscrete_bounds(divided(a, i), b.points(j, 0), p)
    low, high = (x ** (1 / p) for x in bounds)
    return (low + high) / 2, abs(high - low) / 2 + INTEGRAL_ROUNDING * high


def _between_densities(
    a: Measure, b: Measure, i: int, j: int, p: float, divided: Divided
) -> Distances:
    """The distance of the cells of two densities; its error is that of the cells."""
    first, second = divided(a, i), divided(b, j)
    plan = optimal_plan(a.metric, *first.coarse, *second.coarse, p)
    return plan.scale * plan.cost ** (1 / p), first.radius(p) + second.radius(p)


# Up to rotation -----------------------------------------------------------------------------


def _up_to_rotation(a: Measure, b: Measure, p: float, pairs: np.ndarray) -> Distances:
    """The least W_p(R a, b) over rotations R, and its error, (pairs,) each."""
    if a.is_density and not b.is_density:  # points are turned with less work
        a, b, pairs = b, a, pairs[:, ::-1]
    Y = b.curves_on_circle()
    if a.uniform or b.uniform:  # no rotation changes it
        return transport_around_circle(a.curves_on_circle(), Y, p, pairs)

    def evaluate(angles: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = a.curves_on_circle(pairs[members, 0], angles)
        rows = np.stack([np.arange(len(members)), pairs[members, 1]], axis=1)
        return transport_around_circle(X, Y, p, rows)

    return best_rotations(evaluate, len(pairs), p)


def best_rotations(
    evaluate: Callable[[np.ndarray, np.ndarray], Distances], members: int, p: float
) -> Distances:
    """The least values of evaluate(angles, members) -> (W_p, error), and errors, (members,) each.

    Branch and bound: the interval with the smallest lower bound is divided. There are two bounds.
    W_p changes by at most the angle. W_2^2 - angle^2 is concave, being the infimum over shifts of

        int (X(s) + angle - Y(s - shift))^2 ds - angle^2,

    which is linear in the angle; so on an interval W_2^2 lies above its chord minus a parabola.
    """
    rows, close = np.arange(members), ROTATION_TOLERANCE[p == 2]
    angles = np.tile(np.linspace(-pi, pi, FIRST_ROTATIONS + 1), (members, 1))
    columns = [evaluate(angles[:, k], rows) for k in range(FIRST_ROTATIONS)]
    values = np.stack([value for value, _ in columns] + [columns[0][0]], axis=1)
    errors = np.max([error for _, error in columns], axis=0)
    while True:
        candidates, bounds = _lowest(angles, values, p == 2)
        widest = bounds.argmin(axis=1)
        least = values.min(axis=1)
        gaps = np.maximum(least - bounds[rows, widest], 0.0)
        (open_members,) = np.nonzero(gaps > close * least + errors)
        if not open_members.size or angles.shape[1] > MAX_ROTATIONS:
            return least, gaps + errors
        new, new_values = angles[:, 0].copy(), values[:, 0].copy()  # of closed members: unused
        new[open_members] = candidates[open_members, widest[open_members]]
        new_values[open_members], error = evaluate(new[open_members], open_members)
        errors[open_members] = np.maximum(errors[open_members], error)
        angles, values = np.column_stack([angles, new]), np.column_stack([values, new_values])
        order = angles.argsort(axis=1, kind="stable")
        angles, values = (np.take_along_axis(x, order, axis=1) for x in (angles, values))


def _lowest(angles: np.ndarray, values: np.ndarray, square: bool) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest minimiser in each interval, and a lower bound of the minimum."""
    width = np.diff(angles, axis=1)
    left, right = values[:, :-1], values[:, 1:]
    bounds = np.where(width > 0, (left + right - width) / 2, np.minimum(left, right))
    fraction = (left - right + width) / 2
    if square:
        rise = right**2 - left**2
        with np.errstate(divide="ignore", invalid="ignore"):
            fraction = np.where(width > 0, np.clip((width - rise / width) / 2, 0, width), 0.0)
            chord = left**2 + np.where(width > 0, rise * fraction / width, 0.0)
        bounds = np.maximum(bounds, np.maximum(chord - fraction * (width - fraction), 0.0) ** 0.5)
    fraction = np.clip(fraction, ROTATION_MARGIN * width, (1 - ROTATION_MARGIN) * width)
    return angles[:, :-1] + fraction, bounds


# Averages -----------------------------------------------------------------------------------


@with_hints
def sliced_wasserstein(
    a: Any, b: Any, p: float = 2, *, projections: int = 256, rng: Any = 0
) -> Distance:
    """(mean over projections of W_p(a', b')^p)^(1/p), a' the projection of a on a circle.

    On a sphere a point x goes to U^T x / |U^T x|, the nearest point of the great circle that the
    orthonormal pair U (d, 2) spans. On a torus it goes to the angle <k, x>, and distances are
    divided by |k|; the wave k is a rounded normal vector of standard deviation 2, divided by the
    common divisor of its components. All waves have a positive probability, so only equal
    measures have the distance 0.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics, Dirac or TorusTokens
        Single states on one sphere or torus. On the circle this is `wasserstein` itself.
    p : float
        From 1 to 20.
    projections : int
        Number of random projections, >= 2.
    rng : numpy.random.Generator or seed
        Determines the projections. Use the same seed for all distances that you compare.

    Returns
    -------
    Distance
        Its error is the standard error of the mean over projections.

    Raises
    ------
    TypeError, ValueError
        For other states, ensembles, and axisymmetric densities in d > 3.

    Notes
    -----
    The cost is O(n log n) for each projection, for every d. The result is at most W_p and does not
    approximate it.

    References
    ----------
    Bonet, Berg, Courty, Septier, Drumetz and Pham, Spherical sliced-Wasserstein, ICLR 2023.
    """
    p = checked_power(p)
    count = whole_number("projections", projections, least=2)
    first, second, shape, _ = checked_pair("sliced_wasserstein", a, b)
    metric = first.metric
    fits = not shape and metric.factor > 0
    states = f"{first} {first.shape} and {second} {second.shape}"
    require("Slices", states, "between single states on a sphere or a torus", fits)
    rng = generator(rng)
    if metric.dimension == 2:
        return wasserstein(a, b, p)
    for measure in (first, second):
        measure.check_divisible()
    sizes = (4, count, metric.dimension)
    check_memory(f"projections = {count} in R^{metric.dimension}", sizes, "projections")
    directions, lengths = metric.directions(count, rng)
    parts = []
    for begin in range(0, count, CIRCLES_PER_BATCH):
        batch = directions[begin : begin + CIRCLES_PER_BATCH]
        X, Y = first.projected(batch), second.projected(batch)
        pairs = np.stack([np.arange(len(batch))] * 2, axis=1)
        parts.append(transport_costs_around_circle(X, Y, p, pairs)[0])
    costs = np.concatenate(parts) / lengths**p
    mean, deviation = float(costs.mean()), float(costs.std(ddof=1) / count**0.5)
    value = mean ** (1 / p)
    return Distance(value, deviation * value / (p * mean) if mean else 0.0, f"{count} circles")


@checked_call("a", "b", "p")
def conditional_wasserstein(
    a: Tokens | Indexed, b: Tokens | Indexed, p: float = 2, *, blocks: Natural | None = None
) -> Distance:
    """(int_0^1 W_p(a_s, b_s)^p ds)^(1/p), where s is the position of a token in its sequence.

    a_s is the law of tokens preceded by a mass s. For n equal masses, a_s is the Dirac measure at
    token i for s between (i - 1)/n and i/n, or the law of a block of neighbours.

    Parameters
    ----------
    a, b : Tokens or Indexed
        Single sets of tokens in one space, in the order of their sequences, of equal or different
        lengths; or `Indexed` densities with the same law of the index, compared at each index.
        Tokens are compared with densities in blocks: a single token is a Dirac measure, whose
        distance from a density does not vanish as n grows.
    p : float
        From 1 to 20.
    blocks : int, optional
        Number of blocks of equal mass. It must divide the number of tokens of both states, whose
        masses must be equal. By default every token is a block. A block of `Indexed` densities is
        the mean over its positions.

    Raises
    ------
    TypeError, ValueError
        For other states, and blocks that do not divide both sequences.

    Notes
    -----
    The plans preserve s, so the distance is at least `wasserstein(a, b, p)`.

    References
    ----------
    Castin, Ablin and Peyre, arXiv:2312.14820 (masked attention).
    """
    p = checked_power(p)
    for name, state in (("a", a), ("b", b)):
        is_single = isinstance(state, Tokens | Indexed) and not state.shape
        require(name, state, "a single set of Tokens, or Indexed densities", is_single, TypeError)
    if blocks is not None:
        laws = [_blocks_of(state, blocks) for state in (a, b)]
        return _mean_of(wasserstein(laws[0], laws[1], p), p, np.full(blocks, 1 / blocks))
    if isinstance(a, Indexed) or isinstance(b, Indexed):
        return _of_slices(a, b, p)
    fits = a.dimension == b.dimension and a.on_sphere == b.on_sphere
    require("a and b", (a, b), "tokens of one space", fits)
    ends = [levels_of(tokens.masses[None])[0, 1:] for tokens in (a, b)]
    edges = np.union1d(*ends)
    middles = (edges + np.concatenate([[0.0], edges[:-1]])) / 2
    first, second = (
        tokens.x[np.minimum(np.searchsorted(end, middles), len(tokens) - 1)]
        for tokens, end in zip((a, b), ends, strict=True)
    )
    lengths = np.diff(edges, prepend=0.0)
    lengths[lengths <= NEGLIGIBLE_MASS] = 0.0  # rounding errors of the levels
    gaps = Metric(a.dimension, a.dimension if a.on_sphere else 0).between(first, second)
    scale = float(gaps.max())
    value = scale * (lengths @ (gaps / (scale or 1.0)) ** p) ** (1 / p)
    upper = (value**p + SEQUENCE_ROUNDING * scale**p) ** (1 / p) if scale < 1e3 else value
    return Distance(value, upper - value, "along the sequence")


def _of_slices(a: Any, b: Any, p: float) -> Distance:
    """The conditional distance of densities with the same law of the index.

    Positions are integrated over the pieces of both. The error is that of the slices plus the
    difference between quadrature rules of two orders in s.
    """
    for name, state in (("a", a), ("b", b)):
        expected = "Indexed densities, as the other state is, where there are no blocks"
        require(name, state, expected, isinstance(state, Indexed), TypeError)
    first, second = a.index, b.index
    positions = isinstance(first, Positions) and isinstance(second, Positions)
    fits = first.sink == second.sink if positions else first == second
    require("b", second, f"densities of an index like {first!r}, with the same law", fits)
    if not positions:
        return _mean_of(wasserstein(a.slices, b.slices, p), p, a.weights)
    breaks, order = np.union1d(first.breaks, second.breaks), max(first.order, second.order)
    results = []
    for extra in (0, EXTRA_NODES):
        rule = Positions(breaks, order + extra, first.sink)
        slices = [state.at_position(rule.nodes) for state in (a, b)]
        results.append(_mean_of(wasserstein(slices[0], slices[1], p), p, rule.weights))
    coarse, fine = results
    gap = abs(float(fine.value) - float(coarse.value))
    return Distance(fine.value, float(fine.error) + gap, "along the sequence")


def _mean_of(gaps: Distance, p: float, weights: np.ndarray) -> Distance:
    """(sum of weights and gaps^p)^(1/p)."""
    values, bounds = np.asarray(gaps.value), np.asarray(gaps.value) + gaps.error
    mean, upper = (float((weights @ x**p) ** (1 / p)) for x in (values, bounds))
    return Distance(mean, upper - mean, "along the sequence")


def _blocks_of(state: Any, blocks: int) -> Any:
    """The laws of the blocks of a sequence, as an ensemble."""
    if isinstance(state, Indexed):
        return state.blocks(blocks)
    divides = not len(state) % blocks and np.ptp(state.masses) == 0
    expected = f"of equal masses, and in a number that is a multiple of blocks = {blocks}"
    require("tokens", state, expected, divides)
    return Tokens(state.x.reshape(blocks, -1, state.dimension), on_sphere=state.on_sphere)
