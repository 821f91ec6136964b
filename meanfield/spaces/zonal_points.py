"""Axisymmetric series on S^(d-1): values at latitudes and anywhere, coefficients, samples."""

from math import lgamma

import numpy as np
from numba import njit

from ..lowlevel.legendre import BLOCK, analyse, fold, recurrence, synthesise, unfold
from .latitudes import Latitudes

__all__ = ["evaluate", "sample_points", "to_coefficients", "to_values"]


def to_values(rules: Latitudes, coefficients: np.ndarray) -> np.ndarray:
    """(members, modes) -> (members, latitudes), from x = 1 to -1."""
    values = np.empty((len(coefficients), 2 * rules.x.size))
    _values(rules.x, rules.rules(), coefficients, values)
    return values


def to_coefficients(rules: Latitudes, values: np.ndarray) -> np.ndarray:
    """The sums over latitudes of values, (members, latitudes), that carry their weights."""
    coefficients = np.empty((len(values), rules.degree + 1))
    _coefficients(rules.x, rules.rules(), values, coefficients)
    return coefficients


def evaluate(rules: Latitudes, coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Values (members, n) at inner products x (n,), by Clenshaw's algorithm."""
    values = np.empty((len(coefficients), x.size))
    _clenshaw(np.ascontiguousarray(x), rules.a, rules.b, coefficients, values)
    return values


def sample_points(
    coefficients: np.ndarray, dimension: int, n: int, rng: np.random.Generator
) -> np.ndarray:
    """n independent points (n, d): x by bisection of its law, then a uniform direction."""
    from scipy.special import betainc

    half = (dimension - 1) / 2
    low, high, level = np.full(n, -1.0), np.ones(n), rng.random(n)
    scale = np.exp(lgamma(half + 0.5) - lgamma(half)) / np.sqrt(np.pi)
    e = recurrence(coefficients.size + 1, 0, dimension)
    for _ in range(54):
        x = (low + high) / 2
        below = betainc(half, half, (1 + x) / 2)
        rho = scale * ((1 - x) * (1 + x)) ** (half - 1)
        _add_below(x, rho, e, dimension, coefficients, below)
        low, high = np.where(below < level, x, low), np.where(below < level, high, x)
    across = rng.standard_normal((n, dimension - 1))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    radius = np.sqrt((1 - x) * (1 + x))[:, None]
    return np.concatenate([radius * across, x[:, None]], axis=1)


@njit(cache=True)
def _values(x, rules, coefficients, values):
    count = coefficients.shape[1]
    series, folded = np.zeros(2 * count), np.zeros((4, count // 2 + 1 + BLOCK))
    sums = np.zeros((4, rules[0].size))
    for member in range(len(coefficients)):
        for l in range(count):
            series[2 * l] = coefficients[member, l]
        synthesise(0, rules, folded, fold(0, rules, series, count, folded), sums)
        for j in range(x.size):
            values[member, j] = sums[0, j] + x[j] * sums[2, j]
            values[member, values.shape[1] - 1 - j] = sums[0, j] - x[j] * sums[2, j]


@njit(cache=True)
def _coefficients(x, rules, rows, coefficients):
    count = coefficients.shape[1]
    pairs = (count + 1) // 2
    values, folded = np.zeros((8, rules[0].size)), np.zeros((pairs + BLOCK, 8))
    series = np.empty(4 * pairs)
    for member in range(len(rows)):
        for j in range(x.size):
            north, south = rows[member, j], rows[member, rows.shape[1] - 1 - j]
            values[0, j], values[4, j] = north + south, x[j] * (north - south)
        analyse(0, rules, values, folded, (pairs + 1) // 2 * 2)
        unfold(0, rules, folded, pairs, series)
        for l in range(count):
            coefficients[member, l] = series[2 * l]


@njit(cache=True)
def _clenshaw(x, a, b, coefficients, values):
    for member in range(len(coefficients)):
        for j in range(x.size):
            ahead, total = 0.0, 0.0
            for l in range(coefficients.shape[1] - 1, -1, -1):
                ahead, total = (
                    total,
                    coefficients[member, l] + a[l] * x[j] * total - b[l + 1] * ahead,
                )
            values[member, j] = total


@njit(cache=True, error_model="numpy")
def _add_below(x, rho, e, dimension, coefficients, below):
    """Add int_{-1}^x sum_{l > 0} c_l p_l rho dx = -sum c_l (1 - x^2) p_l' rho / (l (l + d - 2)).

    rho is the density of <token, e_d> when the token is uniform.
    """
    for j in range(x.size):
        before, p, total = 1.0, x[j] / e[1], 0.0
        for l in range(1, coefficients.size):
            after = (x[j] * p - e[l] * before) / e[l + 1]
            slope = (l + dimension - 2) * e[l] * before - l * e[l + 1] * after
            total += coefficients[l] * slope / (l * (l + dimension - 2))
            before, p = p, after
        below[j] -= total * rho[j]
