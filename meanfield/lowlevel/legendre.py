"""Orthonormal polynomials on latitudes, by their recurrence: sums over degrees and back.

For a fixed order m the functions p_l, l = m, m + 1, ..., of x = cos(polar angle) satisfy

    x p_l = e_{l+1} p_{l+1} + e_l p_{l-1},
    sin(theta) d/dtheta p_l = l e_{l+1} p_{l+1} - (l + d - 2) e_l p_{l-1}.

There is no table of p_l(x): the recurrence is evaluated in registers during the sums, which is
faster than reading a table from memory. Latitudes come in pairs x and -x; loops run over those
with x > 0, from the pole to the equator. Every function is E(x) + x O(x) with E and O even, and
both are sums over the same q_k = p_{m+2k} / c_k, where

    q_{k+1} = (a_k x^2 + b_k) q_k - q_{k-1},

which advances by two degrees in two operations (Ishioka, J. Meteor. Soc. Japan 96 (2018)). `fold`
turns coefficients of the p_l into those of E and O; `unfold` turns sums with the q_k into sums with
the p_l.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from ..core.read_only import read_only
from .compilation import INNER, SUBROUTINE, njit
from .records import Layout, numbers_at
from .simd import LANES, address_of, load, spread, store, sums_of

BLOCK = 4  # pairs of degrees that `synthesise` takes in one pass over the latitudes

RULES = Layout(
    "LegendreRules",
    {
        "width": int,  # latitudes with x > 0, a multiple of LANES
        "squares": int,  # address of x^2, (width,)
        "start": int,  # address of p_m, (orders, width): 0 where there is no latitude
        "two_steps": int,  # address of the recurrence of all orders, (5, steps): see there
        "steps": int,
        "first": int,  # address of the index of the first latitude that is used, (orders,)
        "first_steps": int,  # address of the position of each order in `two_steps`, (orders,)
        "work": int,  # address of a workspace, (2, width)
    },
)
rules_at = RULES.at


@njit(**INNER)
def steps_of(rules: Any, row: int, m: int) -> Any:
    """Pointer to the coefficients of order m in a row of `two_steps`: a, b, c, u or v."""
    begin = numbers_at(rules.first_steps, m, 0)[0]
    return numbers_at(rules.two_steps, row * rules.steps + begin, 0.0)


def recurrence(degree: int, order: int, dimension: int) -> np.ndarray:
    """Coefficients e_l of the recurrence, l = 0, ..., `degree`; 0 for l <= order.

    Orders m > 0 are for dimension d = 3 only.

    e_l^2 = (l - m)(l + m + d - 3) / ((2l + d - 2)(2l + d - 4)),   m > 0 if d = 3
    """
    l = np.arange(degree + 1.0)
    squares = (l - order) * (l + order + dimension - 3)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares /= (2 * l + dimension - 2) * (2 * l + dimension - 4)
    squares[: order + 1] = 0
    if order == 0 and degree > 0:
        squares[1] = 1 / dimension
    return np.sqrt(squares)


def values_at_the_pole(degree: int, dimension: int) -> np.ndarray:
    """Values p_l(1) = sqrt(dim H_l) of order 0, l = 0, ..., `degree`, cut off at 1e300."""
    l, d = np.arange(2.0, degree + 1), dimension
    ratios = (2 * l + d - 2) / (2 * l + d - 4) * ((l + d - 3) / l)
    with np.errstate(over="ignore"):
        sizes = np.cumprod(np.append([1.0, np.sqrt(d)], np.sqrt(ratios)))
    return np.minimum(sizes[: degree + 1], 1e300)


def racah(k: int, x: np.ndarray) -> np.ndarray:
    """Racah's harmonics C_km = Y_km / sqrt(2k + 1) at unit vectors (..., 3): complex (..., k + 1).

    By the stable recurrence

        sqrt(l^2 - m^2) C_lm = (2l - 1) z C_(l-1)m - sqrt((l - 1)^2 - m^2) C_(l-2)m

    from C_mm = (1 3 ... (2m-1) / (2 4 ... 2m))^(1/2) (x + iy)^m, without the phase (-1)^m of Condon
    and Shortley. C_k0 is Legendre's polynomial of z.
    """
    m, z = np.arange(k + 1), x[..., 2, None]
    steps = np.sqrt((2 * m[1:] - 1) / (2 * m[1:])) * (x[..., 0] + 1j * x[..., 1])[..., None]
    begin = np.concatenate([np.ones((*x.shape[:-1], 1)), np.cumprod(steps, axis=-1)], axis=-1)
    current, previous = np.where(m == 0, begin, 0), np.zeros_like(begin)
    for l in range(1, k + 1):
        lower, inner = m < l, np.maximum((l - 1) ** 2 - m**2, 0)
        root = np.sqrt(np.where(lower, l**2 - m**2, 1))
        following = ((2 * l - 1) * z * current - np.sqrt(inner) * previous) / root
        current, previous = np.where(lower, following, np.where(m == l, begin, 0)), current
    return current


@lru_cache(maxsize=32)
def gauss(size: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes and weights, of sum 1, of <x, e> for x uniform on S^(d-1), from 1 to -1.

    Eigenvalues of the Jacobi matrix, improved by a Newton step; weights by Christoffel's
    formula 1 / sum_l p_l^2, which is accurate relative to each weight, however small. Results are
    cached, and read-only.
    """
    if dimension == 2:
        angles = np.pi * (np.arange(size) + 0.5) / size
        return read_only(np.cos(angles)), read_only(np.full(size, 1 / size))
    from scipy.linalg import eigvalsh_tridiagonal

    e = recurrence(size, 0, dimension)
    nodes = eigvalsh_tridiagonal(np.zeros(size), e[1:size])[::-1]
    nodes = (nodes - nodes[::-1]) / 2
    with np.errstate(all="ignore"):  # p_l overflows where weights are 0
        nodes, weights = _newton_step(nodes, e, dimension)
    return read_only(nodes), read_only(weights / weights.sum())


def _newton_step(nodes: np.ndarray, e: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes after a Newton step towards the zeros of p_n, and weights 1 / sum_{l < n} p_l^2."""
    n = nodes.size
    for step in range(2):
        x, previous, p, total = nodes, np.zeros(n), np.ones(n), np.zeros(n)
        for l in range(n):
            total += p * p
            previous, p = p, (x * p - e[l] * previous) / e[l + 1]
        if step == 0:  # (1 - x^2) p_n' = (2 n + d - 2) e_n p_{n-1} - n x p_n
            slope = (2 * n + dimension - 2) * e[n] * previous - n * x * p
            nodes = x - p * (1 - x * x) / slope
    return (nodes - nodes[::-1]) / 2, 1 / total


def two_steps(e: np.ndarray, pairs: int) -> np.ndarray:
    """Coefficients a, b, c, u, v for k = 0, ..., pairs - 1, (5, pairs), from e_m, e_{m+1}, ...

    Here e_0 stands for e_m. c is such that q_{k-1} has the factor 1 in the recurrence of q:

        a_k = c_k / (c_{k+1} e_{2k+1} e_{2k+2}),      b_k = -a_k (e_{2k}^2 + e_{2k+1}^2),
        u_k = c_k / e_{2k+1},                         v_k = u_k e_{2k+2} / c_{k+1}.
    """
    e1, even, odd, e4 = (e[i : i + 2 * pairs : 2] for i in (1, 2, 3, 4))
    ratio = e1 * even / (odd * e4)
    c = np.ones(pairs + 1)
    for k in (2, 3):
        c[k::2] = np.cumprod(ratio[k - 2 : pairs - 1 : 2])
    even, odd, e4 = (e[i : i + 2 * pairs : 2] for i in (0, 1, 2))
    a, u = c[:-1] / (c[1:] * odd * e4), c[:-1] / odd
    return np.stack([a, -a * (even**2 + odd**2), c[:-1], u, u * e4 / c[1:]])


@njit(**SUBROUTINE)
def fold(m: int, rules: Any, coefficients: np.ndarray, count: int, folded: np.ndarray) -> int:
    """Turn coefficients of p_m, p_{m+1}, ... into those of q_k in E and in O; return their number.

    Parameters
    ----------
    m, rules : the order; a record, see `RULES`
    coefficients : `count` real and imaginary parts in turn
    folded : (4, size) result: real and imaginary parts for E, then for O; zeros are added up to
        a multiple of BLOCK, which is the number returned
    """
    c, u, v = steps_of(rules, 2, m), steps_of(rules, 3, m), steps_of(rules, 4, m)
    even_re, even_im, odd_re, odd_im = folded[0], folded[1], folded[2], folded[3]
    half = count // 2
    n = (half + count % 2 + BLOCK - 1) // BLOCK * BLOCK
    for k in range(half, n):
        even_re[k] = even_im[k] = odd_re[k] = odd_im[k] = 0.0
    if count > 2 * half:
        even_re[half] = c[half] * coefficients[4 * half]
        even_im[half] = c[half] * coefficients[4 * half + 1]
    re, im = 0.0, 0.0
    for k in range(half - 1, -1, -1):
        even_re[k], even_im[k] = c[k] * coefficients[4 * k], c[k] * coefficients[4 * k + 1]
        re = u[k] * coefficients[4 * k + 2] - v[k] * re
        im = u[k] * coefficients[4 * k + 3] - v[k] * im
        odd_re[k], odd_im[k] = re, im
    return n


@njit(**INNER)
def unfold(m: int, rules: Any, folded: np.ndarray, pairs: int, coefficients: np.ndarray) -> None:
    """Turn sums for q_k in E and O into coefficients of p_m, p_{m+1}, ...: the transpose of `fold`.

    Only the first of the two functions in `folded` is taken.

    folded : (size, 8); coefficients : result, 2 * pairs real and imaginary parts in turn
    """
    c, u, v = steps_of(rules, 2, m), steps_of(rules, 3, m), steps_of(rules, 4, m)
    re, im, factor = 0.0, 0.0, 0.0
    for k in range(pairs):
        row = folded[k]
        coefficients[4 * k], coefficients[4 * k + 1] = c[k] * row[0], c[k] * row[1]
        re, im = row[4] - factor * re, row[5] - factor * im
        coefficients[4 * k + 2], coefficients[4 * k + 3] = u[k] * re, u[k] * im
        factor = v[k]


@njit(**SUBROUTINE)
def synthesise(m: int, rules: Any, folded: np.ndarray, n: int, sums: np.ndarray) -> None:
    """Fill `sums` with the sums over q_k at all latitudes.

    E = sums[0] + i sums[1] and O = sums[2] + i sums[3].

    Parameters
    ----------
    m, rules : the order; a record, see `RULES`
    folded : (4, size) from `fold`
    n : number of q_k, a multiple of BLOCK
    sums : (4, latitudes) result; latitudes before the first one of the order are not written
    """
    begin, end = _begin(m, rules)
    y, p, s0 = rules.squares, rules.work, address_of(sums)
    q, s1, s2, s3 = p + end, s0 + end, s0 + 2 * end, s0 + 3 * end
    for j in range(begin, end, 8 * LANES):
        for s in (s0, s1, s2, s3):
            store(s + j, spread(0.0))
    a, b = steps_of(rules, 0, m), steps_of(rules, 1, m)
    even_re, even_im, odd_re, odd_im = folded[0], folded[1], folded[2], folded[3]
    for k in range(0, n, BLOCK):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        b0, b1, b2, b3 = spread(b[k]), spread(b[k + 1]), spread(b[k + 2]), spread(b[k + 3])
        r0, r1, r2, r3 = even_re[k], even_re[k + 1], even_re[k + 2], even_re[k + 3]
        i0, i1, i2, i3 = even_im[k], even_im[k + 1], even_im[k + 2], even_im[k + 3]
        t0, t1, t2, t3 = odd_re[k], odd_re[k + 1], odd_re[k + 2], odd_re[k + 3]
        w0, w1, w2, w3 = odd_im[k], odd_im[k + 1], odd_im[k + 2], odd_im[k + 3]
        for j in range(begin, end, 8 * LANES):
            x, p0 = load(y + j), load(q + j)
            p1 = (a0 * x + b0) * p0 - load(p + j)
            p2 = (a1 * x + b1) * p1 - p0
            p3 = (a2 * x + b2) * p2 - p1
            store(s0 + j, load(s0 + j) + r0 * p0 + r1 * p1 + r2 * p2 + r3 * p3)
            store(s1 + j, load(s1 + j) + i0 * p0 + i1 * p1 + i2 * p2 + i3 * p3)
            store(s2 + j, load(s2 + j) + t0 * p0 + t1 * p1 + t2 * p2 + t3 * p3)
            store(s3 + j, load(s3 + j) + w0 * p0 + w1 * p1 + w2 * p2 + w3 * p3)
            store(p + j, p3)
            store(q + j, (a3 * x + b3) * p3 - p2)


@njit(**INNER)
def _begin(m: int, rules: Any) -> tuple[int, int]:
    """Write q_{-1} = 0 and q_0 to the workspace; return begin and end of latitudes, in bytes."""
    begin, end = 8 * numbers_at(rules.first, m, 0)[0], 8 * rules.width
    p, start = rules.work, rules.start + m * end
    for j in range(begin, end, 8 * LANES):
        store(p + j, spread(0.0))
        store(p + end + j, load(start + j))
    return begin, end


@njit(**SUBROUTINE)
def analyse(m: int, rules: Any, values: np.ndarray, folded: np.ndarray, n: int) -> None:
    """Fill `folded` with sums over latitudes of values times q_k, for two complex functions.

    Parameters
    ----------
    m, rules : the order; a record, see `RULES`
    values : (8, latitudes) with their weights: real and imaginary part of the first function and
        of the second, f(x) + f(-x); then the same four of x (f(x) - f(-x))
    folded : (size, 8) result, in the same order
    n : number of q_k, even; further rows of `folded` are not written
    """
    begin, end = _begin(m, rules)
    a, b, y, p, row = steps_of(rules, 0, m), steps_of(rules, 1, m), rules.squares, rules.work, end
    q, target, zero = p + end, address_of(folded), spread(0.0)
    v0 = address_of(values)
    v1, v2, v3, v4 = v0 + row, v0 + 2 * row, v0 + 3 * row, v0 + 4 * row
    v5, v6, v7 = v4 + row, v4 + 2 * row, v4 + 3 * row
    for k in range(0, n, 2):
        a0, b0, a1, b1 = a[k], spread(b[k]), a[k + 1], spread(b[k + 1])
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = zero
        for j in range(begin, end, 8 * LANES):
            x, p0 = load(y + j), load(q + j)
            p1 = (a0 * x + b0) * p0 - load(p + j)
            f0, f1, f2, f3 = load(v0 + j), load(v1 + j), load(v2 + j), load(v3 + j)
            f4, f5, f6, f7 = load(v4 + j), load(v5 + j), load(v6 + j), load(v7 + j)
            s0, s1, s2, s3 = s0 + f0 * p0, s1 + f1 * p0, s2 + f2 * p0, s3 + f3 * p0
            s4, s5, s6, s7 = s4 + f4 * p0, s5 + f5 * p0, s6 + f6 * p0, s7 + f7 * p0
            t0, t1, t2, t3 = t0 + f0 * p1, t1 + f1 * p1, t2 + f2 * p1, t3 + f3 * p1
            t4, t5, t6, t7 = t4 + f4 * p1, t5 + f5 * p1, t6 + f6 * p1, t7 + f7 * p1
            store(p + j, p1)
            store(q + j, (a1 * x + b1) * p1 - p0)
        store(target + 8 * LANES * k, sums_of(s0, s1, s2, s3, s4, s5, s6, s7))
        store(target + 8 * LANES * (k + 1), sums_of(t0, t1, t2, t3, t4, t5, t6, t7))
