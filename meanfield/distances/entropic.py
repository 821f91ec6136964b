"""The debiased Sinkhorn divergence: optimal transport with entropic regularisation.

Its dual problem has one unknown for each point of b and is concave and smooth,

    D(g) = sum a f + sum b g,   f_i = -strength log sum_j b_j exp((g_j - d(x_i, y_j)^p) / strength).

It is solved by Newton's method, with one step of Sinkhorn's iteration before each Newton step,
while the strength of the regularisation is halved until it has its value. A Newton step solves a
linear system in all unknowns, so between many points only Sinkhorn's iteration is used where it
finishes sooner.

Between a measure and itself f = g is a fixed point, f = T f, of Sinkhorn's step T. Its slope is
minus a stochastic matrix that is similar to a symmetric one, with eigenvalues in [0, 1] if the
kernel exp(-d^p / strength) is positive. Then f -> f + 2/3 (T f - f) divides errors by three.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..core.calls import checked_call
from ..core.checks import check_memory, require, whole_number
from ..core.errors import UnresolvedWarning
from ..core.forms import Positive
from ..lowlevel.progress import Progress
from .distance import Distance
from .linear_programs import WeightedPoints
from .measures import checked_pair
from .metrics import Metric
from .wasserstein import MAX_CELLS, checked_power

MARGINAL_TOLERANCE = 1e-10  # total error of a marginal
MAX_NEWTON_STEPS = 100  # at the last strength
NEWTON_HALVINGS, HESSIAN_RIDGE = 30, 1e-10
SINKHORN_CELLS = 500  # of a density
UNKNOWNS_PER_SWEEP = 20  # a Newton step in m unknowns costs m / 20 Sinkhorn steps
MAX_EXPONENT = 300.0  # of cost / strength: its exponential and the inverse are normal numbers
COARSE_TOLERANCE = 1e-3  # of a marginal before the strength is halved
RELAXATION, MAX_RELAXATIONS = 2 / 3, 1000  # of the iteration between a measure and itself


@checked_call("p", "cells")
def sinkhorn_divergence(
    a: Any, b: Any, p: float = 2, *, blur: Positive = 0.1, cells: int = SINKHORN_CELLS,
    progress: bool | None = None,
) -> Distance:  # fmt: skip
    """(S(a, b) - S(a, a)/2 - S(b, b)/2)^(1/p), where S is the entropic transport cost.

        S(a, b) = min over plans of int d(x, y)^p dplan + blur^p KL(plan | a x b)

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac
        On one sphere, or tokens in R^d; ensembles are broadcast. Densities, on the circle or S^2,
        are divided into cells.
    p : float
        From 1 to 20.
    blur : float
        Length > 0, in radians, below which differences are smoothed out. The divergence tends to
        W_p as blur tends to 0, where the iteration needs more and more steps.
    cells : int
        Number of cells into which a density is divided.
    progress : bool, optional
        Show a progress bar; by default on a terminal only, after one second.

    Returns
    -------
    Distance
        The error accounts for the marginals, not for the cells. For p > 1 on a sphere the
        divergence may be negative: the value is then 0, and the error contains its size.

    Raises
    ------
    TypeError, ValueError
        As for `wasserstein`, and for blur <= 0.

    Warns
    -----
    UnresolvedWarning
        If the marginals are not accurate to 1e-10; a larger blur converges faster.

    Notes
    -----
    Between a and b each halving of the strength takes a few Newton steps, of m^2 (n + m/3)
    operations for n and m <= n points. S(a, a) takes some 20 sums over its n^2 pairs.

    References
    ----------
    Feydy, Sejourne, Vialard, Amari, Trouve and Peyre, AISTATS 2019.
    """
    p = checked_power(p)
    cells = whole_number("cells", cells, most=MAX_CELLS)
    a, b, shape, pairs = checked_pair("sinkhorn_divergence", a, b)
    for measure in (a, b):
        measure.check_divisible()
    expected = f"between 1e-100 and 1e100 to the power p = {p:g}"
    require("blur", blur, expected, -100 < p * np.log10(blur) < 100)
    strength = blur**p
    points = cache(lambda measure, member: _with_mass(measure.points(member, cells)))
    triples = [(((a, i), (b, j)), ((a, i), (a, i)), ((b, j), (b, j))) for i, j in pairs.tolist()]
    parts = dict.fromkeys(part for triple in triples for part in triple)  # each pair once
    with Progress("Sinkhorn", progress) as bar:
        sizes = [len(points(*left).x) * len(points(*right).x) for left, right in parts]
        ends = np.cumsum([0, *sizes]) / sum(sizes)
        for n, (left, right) in enumerate(parts):

            def show(part: float, n: int = n) -> None:
                bar.show(ends[n] + part * (ends[n + 1] - ends[n]), "Sinkhorn")

            measures = points(*left), points(*right)
            parts[left, right] = _cost(a.metric, *measures, p, strength, show)
    table = np.array([[parts[part] for part in triple] for triple in triples])
    costs, errors = (
        (table[..., k] @ weights).reshape(shape)
        for k, weights in enumerate(([1, -0.5, -0.5], [1, 0.5, 0.5]))
    )
    powers = np.maximum(costs, 0.0)
    value = powers ** (1 / p)
    error = (powers + errors + np.maximum(-costs, 0.0)) ** (1 / p) - value
    return Distance(value, error, f"Sinkhorn, blur {blur:g}")


def _with_mass(points: WeightedPoints) -> WeightedPoints:
    """The points of positive mass."""
    x, masses = points
    return WeightedPoints(np.ascontiguousarray(x[masses > 0]), masses[masses > 0] / masses.sum())


def _cost(
    metric: Metric, a: WeightedPoints, b: WeightedPoints, p: float, strength: float,
    show: Callable[[float], None],
) -> tuple[float, float]:  # fmt: skip
    """A lower bound of S(a, b), and a bound of its error.

    `show` is called with the fraction of the work that is done.
    """
    if len(a.x) < len(b.x):
        a, b = b, a
    sizes = (2 if a is b else 6, len(a.x), len(b.x))
    check_memory(f"costs between {len(a.x)} and {len(b.x)} points", sizes, "cells, or the tokens")
    costs = metric.pairwise(a.x, b.x, p)
    if a is b:
        f, g, marginal = _fixed_point(costs, a.masses, strength, show)
    else:
        f, g, marginal = _annealed(costs, a.masses, b.masses, strength, show)
    if not marginal <= MARGINAL_TOLERANCE:
        warnings.warn(
            f"Sinkhorn's iteration has a marginal error of {marginal:.1e} after "
            f"{MAX_RELAXATIONS if a is b else MAX_NEWTON_STEPS} rounds, expected "
            f"{MARGINAL_TOLERANCE:.0e}. Use a larger blur.",
            UnresolvedWarning,
            stacklevel=5,
        )
    return float(a.masses @ f + b.masses @ g), float(marginal * (np.ptp(g) + strength))


def _fixed_point(
    costs: np.ndarray, a: np.ndarray, strength: float, show: Callable[[float], None]
) -> tuple[np.ndarray, np.ndarray, float]:
    """The potentials T g and g of a measure and itself, and the error of the marginal.

    The kernel replaces the costs. Its diagonal is 1: where other entries underflow, their terms are
    negligible, unless masses differ by more than exp(MAX_EXPONENT).
    """
    log_a, kernel = np.log(a), None
    if log_a.min() > -MAX_EXPONENT:
        costs /= -strength
        kernel = np.exp(costs, out=costs)

    def response(g: np.ndarray) -> np.ndarray:
        return _soft_minimum(costs, kernel, g / strength + log_a, strength)

    def error(g: np.ndarray, f: np.ndarray) -> float:
        return float(a @ np.abs(np.expm1((g - f) / strength)))

    g, tolerance = np.zeros_like(a), MARGINAL_TOLERANCE / 2
    for _ in range(MAX_RELAXATIONS):
        f = response(g)
        marginal = error(g, f)
        if marginal <= tolerance:
            break
        show(max(float(np.log(marginal) / np.log(tolerance)), 0.0))
        g = g + RELAXATION * (f - g)
    return f, g, error(g, response(f))


def _annealed(
    costs: np.ndarray, a: np.ndarray, b: np.ndarray, strength: float, show: Callable[[float], None]
) -> tuple[np.ndarray, np.ndarray, float]:
    """The potentials of two measures, and the error of the marginal b, by halved strengths."""
    transposed, g = np.ascontiguousarray(costs.T), np.zeros(len(b))
    factor = 2 ** np.ceil(np.log2(max(costs.max() / strength, 1.0)))
    levels = np.log2(factor) + 1
    while factor > 1:
        g = _maximum(costs, transposed, a, b, g, factor * strength, 2)[1]
        factor /= 2
        show(1 - (np.log2(factor) + 1) / levels)
    return _maximum(costs, transposed, a, b, g, strength, MAX_NEWTON_STEPS)


def _maximum(
    costs: np.ndarray, transposed: np.ndarray, a: np.ndarray, b: np.ndarray, g: np.ndarray,
    strength: float, rounds: int,
) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
    """The potentials f, g after at most `rounds` Newton steps, and the error of the marginal b."""
    log_a, log_b = np.log(a), np.log(b)
    goal = MARGINAL_TOLERANCE if rounds == MAX_NEWTON_STEPS else COARSE_TOLERANCE
    kernel = np.exp(costs / -strength) if costs.max() < MAX_EXPONENT * strength else None

    def response(g: np.ndarray) -> np.ndarray:
        return _soft_minimum(costs, kernel, g / strength + log_b, strength)

    def sinkhorn_step(f: np.ndarray) -> np.ndarray:
        back_kernel = None if kernel is None else kernel.T
        return _soft_minimum(transposed, back_kernel, f / strength + log_a, strength)

    def after_sweeps(f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The potentials after one step of Sinkhorn, and more while they finish sooner."""
        last_error, sweeps = np.inf, 0 if kernel is None else len(b) // UNKNOWNS_PER_SWEEP
        for sweeps_left in range(sweeps, -1, -1):
            g_old, g = g, sinkhorn_step(f)
            f = response(g)
            error = float(np.abs(b * np.expm1((g_old - g) / strength)).sum())  # before this step
            ratio = error / last_error
            converges = ratio == 0 or (
                ratio < 1 and np.log(error / goal) <= -sweeps_left * np.log(ratio)
            )
            if not error > goal or not converges:
                break
            last_error = error
        return f, g

    f = response(g)
    for _ in range(rounds):
        f, g = after_sweeps(f, g)
        plan = a[:, None] * np.exp((f[:, None] + g - costs) / strength + log_b)
        gradient = b - plan.sum(axis=0)
        error = float(np.abs(gradient).sum())
        if error <= goal:
            break
        step = strength * _newton(plan, a, gradient)
        value, slope, length = float(a @ f + b @ g), float(gradient @ step), 1.0
        for _ in range(NEWTON_HALVINGS):
            trial = response(g + length * step)
            if a @ trial + b @ (g + length * step) >= value + 1e-4 * length * slope:
                f, g = trial, g + length * step
                break
            length /= 2
    return f, g, error


def _newton(plan: np.ndarray, a: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The Newton step of the dual problem, whose solution is unique up to a constant."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    column = plan.sum(axis=0)
    hessian = np.diag(column) - plan.T @ (plan / a[:, None])
    hessian[np.diag_indices_from(hessian)] += HESSIAN_RIDGE * column
    hessian += column.mean() / len(column)  # removes the constant
    try:
        return cho_solve(cho_factor(hessian, lower=True), gradient)
    except LinAlgError:  # the plan is nearly a permutation: only Sinkhorn's steps continue
        return np.zeros_like(gradient)


def _soft_minimum(
    costs: np.ndarray, kernel: np.ndarray | None, h: np.ndarray, strength: float
) -> np.ndarray:
    """-strength log sum_j exp(h_j - costs_ij / strength), by exp(-costs / strength) if given."""
    if kernel is not None:
        largest = h.max()
        return -strength * (largest + np.log(kernel @ np.exp(h - largest)))
    exponents = costs / -strength
    exponents += h
    highest = exponents.max(axis=1)
    exponents -= highest[:, None]
    return -strength * (highest + np.log(np.exp(exponents, out=exponents).sum(axis=1)))
