"""Orthonormal polynomials on latitudes, by their recurrence: sums over degrees and back.

For a fixed order m the functions p_l, l = m, m + 1, ..., of x = cos(polar angle) satisfy

    x p_l = e_{l+1} p_{l+1} + e_l p_{l-1},
    sin(theta) d/dtheta p_l = l e_{l+1} p_{l+1} - (l + d - 2) e_l p_{l-1}.

Nothing is tabulated in l and x at once: the recurrence runs beside the sums, in registers,
which is faster than to read a table from memory. Latitudes come in pairs x and -x, so that
only those with x > 0, from the pole to the equator, are visited. Every function is
E(x) + x O(x) with E and O even, and both are sums over the same q_k = p_{m+2k} / c_k, where

    q_{k+1} = (a_k x^2 + b_k) q_k - q_{k-1},

which takes two degrees in two operations (Ishioka, J. Meteor. Soc. Japan 96 (2018)). `fold`
and `unfold` turn coefficients of the p_l into those of E and O, and sums back.
"""

import numpy as np
from numba import njit

__all__ = ["BLOCK", "analyse", "fold", "gauss", "ladder", "recurrence", "synthesise", "unfold"]

BLOCK = 4  # pairs of degrees that `synthesise` takes in one pass over the latitudes


def recurrence(degree: int, order: int, dimension: int) -> np.ndarray:
    """e_l for l = 0, ..., `degree`; 0 up to the order, for orders > 0 in dimension 3 only.

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


def gauss(size: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes and weights, of sum 1, of <x, e> for x uniform on S^(d-1), from 1 to -1.

    Eigenvalues of the Jacobi matrix, improved by a Newton step; weights by Christoffel's
    formula 1 / sum_l p_l^2, which keeps their relative accuracy however small they are.
    """
    if dimension == 2:
        angles = np.pi * (np.arange(size) + 0.5) / size
        return np.cos(angles), np.full(size, 1 / size)
    from scipy.linalg import eigvalsh_tridiagonal

    e = recurrence(size, 0, dimension)
    nodes = eigvalsh_tridiagonal(np.zeros(size), e[1:size])[::-1]
    nodes = (nodes - nodes[::-1]) / 2
    weights = np.empty(size)
    _polish(nodes, weights, e, dimension)
    return nodes, weights / weights.sum()


@njit(cache=True, error_model="numpy")
def _polish(nodes, weights, e, dimension):
    """One Newton step towards the zeros of p_n, and 1 / sum_{l < n} p_l^2 there."""
    n = nodes.size
    for i in range(n):
        for step in range(2):
            x, before, p, total = nodes[i], 0.0, 1.0, 0.0
            for l in range(n):
                total += p * p
                before, p = p, (x * p - e[l] * before) / e[l + 1]
            if step == 0:  # (1 - x^2) p_n' = (2 n + d - 2) e_n p_{n-1} - n x p_n
                slope = (2 * n + dimension - 2) * e[n] * before - n * x * p
                nodes[i] = x - p * (1 - x * x) / slope
            else:
                weights[i] = 1 / total
    for i in range(n // 2):
        nodes[i] = (nodes[i] - nodes[n - 1 - i]) / 2
        nodes[n - 1 - i] = -nodes[i]


def ladder(e: np.ndarray, pairs: int) -> np.ndarray:
    """a, b, c, u, v for k = 0, ..., pairs - 1, (5, pairs), from e_m, e_{m+1}, ...

    With e_0 for e_m, and c chosen so that q_{k-1} has the factor 1,

        a_k = c_k / (c_{k+1} e_{2k+1} e_{2k+2}),      b_k = -a_k (e_{2k}^2 + e_{2k+1}^2),
        u_k = c_k / e_{2k+1},                         v_k = u_k e_{2k+2} / c_{k+1}.
    """
    before, even, odd, after = (e[i : i + 2 * pairs : 2] for i in (1, 2, 3, 4))
    ratio = before * even / (odd * after)
    c = np.ones(pairs + 1)
    for k in (2, 3):
        c[k::2] = np.cumprod(ratio[k - 2 : pairs - 1 : 2])
    even, odd, after = (e[i : i + 2 * pairs : 2] for i in (0, 1, 2))
    a, u = c[:-1] / (c[1:] * odd * after), c[:-1] / odd
    return np.stack([a, -a * (even**2 + odd**2), c[:-1], u, u * after / c[1:]])


@njit(cache=True)
def fold(m, rules, coefficients, count, folded):
    """Coefficients of p_m, p_{m+1}, ... to those of q_k in E and in O; returns how many.

    Parameters
    ----------
    m, rules : the order; see `Latitudes.rules`
    coefficients : `count` real and imaginary parts in turn
    folded : (4, size) result: real and imaginary parts for E, then for O; zeros are added up to
        a multiple of BLOCK, which is the number returned
    """
    _, _, table, _, rungs, _ = rules
    c, u, v = table[2][rungs[m] :], table[3][rungs[m] :], table[4][rungs[m] :]
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


@njit(cache=True)
def unfold(m, rules, folded, pairs, coefficients):
    """The transpose of `fold` for the first of two functions whose sums `analyse` found.

    folded : (8, size); coefficients : result, 2 * pairs real and imaginary parts in turn
    """
    _, _, table, _, rungs, _ = rules
    c, u, v = table[2][rungs[m] :], table[3][rungs[m] :], table[4][rungs[m] :]
    even_re, even_im, odd_re, odd_im = folded[0], folded[1], folded[4], folded[5]
    re, im, factor = 0.0, 0.0, 0.0
    for k in range(pairs):
        coefficients[4 * k], coefficients[4 * k + 1] = c[k] * even_re[k], c[k] * even_im[k]
        re, im = odd_re[k] - factor * re, odd_im[k] - factor * im
        coefficients[4 * k + 2], coefficients[4 * k + 3] = u[k] * re, u[k] * im
        factor = v[k]


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
def synthesise(m, rules, folded, n, sums):
    """Sums over q_k on all latitudes: sums[0] + i sums[1] is E, sums[2] + i sums[3] is O.

    Parameters
    ----------
    m, rules : the order; see `Latitudes.rules`
    folded : (4, size) from `fold`
    n : number of q_k, a multiple of BLOCK
    sums : (4, latitudes) result; 0 is not written where latitudes are passed over
    """
    squares, start, table, first, rungs, work = rules
    j0, o = first[m], rungs[m]
    y, p, q, q0 = squares[j0:], work[0][j0:], work[1][j0:], start[m][j0:]
    even_re, even_im, odd_re, odd_im = sums[0][j0:], sums[1][j0:], sums[2][j0:], sums[3][j0:]
    for j in range(y.size):
        p[j], q[j] = 0.0, q0[j]
        even_re[j] = even_im[j] = odd_re[j] = odd_im[j] = 0.0
    a, b = table[0][o:], table[1][o:]
    r, s, t, w = folded[0], folded[1], folded[2], folded[3]
    for k in range(0, n, BLOCK):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
        r0, r1, r2, r3 = r[k], r[k + 1], r[k + 2], r[k + 3]
        s0, s1, s2, s3 = s[k], s[k + 1], s[k + 2], s[k + 3]
        t0, t1, t2, t3 = t[k], t[k + 1], t[k + 2], t[k + 3]
        w0, w1, w2, w3 = w[k], w[k + 1], w[k + 2], w[k + 3]
        for j in range(y.size):
            p0 = q[j]
            p1 = (a0 * y[j] + b0) * p0 - p[j]
            p2 = (a1 * y[j] + b1) * p1 - p0
            p3 = (a2 * y[j] + b2) * p2 - p1
            even_re[j] += r0 * p0 + r1 * p1 + r2 * p2 + r3 * p3
            even_im[j] += s0 * p0 + s1 * p1 + s2 * p2 + s3 * p3
            odd_re[j] += t0 * p0 + t1 * p1 + t2 * p2 + t3 * p3
            odd_im[j] += w0 * p0 + w1 * p1 + w2 * p2 + w3 * p3
            p[j], q[j] = p3, (a3 * y[j] + b3) * p3 - p2


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
def analyse(m, rules, values, folded, n):
    """Sums over latitudes with every q_k, of two complex functions at a time.

    Parameters
    ----------
    m, rules : the order; see `Latitudes.rules`
    values : (8, latitudes) with their weights: real and imaginary part of the first function and
        of the second, f(x) + f(-x); then the same four of x (f(x) - f(-x))
    folded : (8, size) result, in the same order
    n : number of q_k, an even number; more than that is not touched
    """
    squares, start, table, first, rungs, work = rules
    j0, o = first[m], rungs[m]
    y, p, q, q0 = squares[j0:], work[0][j0:], work[1][j0:], start[m][j0:]
    f0, f1, f2, f3 = values[0][j0:], values[1][j0:], values[2][j0:], values[3][j0:]
    g0, g1, g2, g3 = values[4][j0:], values[5][j0:], values[6][j0:], values[7][j0:]
    for j in range(y.size):
        p[j], q[j] = 0.0, q0[j]
    a, b = table[0][o:], table[1][o:]
    for k in range(0, n, 2):
        a0, b0, a1, b1 = a[k], b[k], a[k + 1], b[k + 1]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
        for j in range(y.size):
            p0 = q[j]
            p1 = (a0 * y[j] + b0) * p0 - p[j]
            s0 += f0[j] * p0
            s1 += f1[j] * p0
            s2 += f2[j] * p0
            s3 += f3[j] * p0
            s4 += g0[j] * p0
            s5 += g1[j] * p0
            s6 += g2[j] * p0
            s7 += g3[j] * p0
            t0 += f0[j] * p1
            t1 += f1[j] * p1
            t2 += f2[j] * p1
            t3 += f3[j] * p1
            t4 += g0[j] * p1
            t5 += g1[j] * p1
            t6 += g2[j] * p1
            t7 += g3[j] * p1
            p[j], q[j] = p1, (a1 * y[j] + b1) * p1 - p0
        folded[0, k], folded[1, k], folded[2, k], folded[3, k] = s0, s1, s2, s3
        folded[4, k], folded[5, k], folded[6, k], folded[7, k] = s4, s5, s6, s7
        folded[0, k + 1], folded[1, k + 1], folded[2, k + 1], folded[3, k + 1] = t0, t1, t2, t3
        folded[4, k + 1], folded[5, k + 1], folded[6, k + 1], folded[7, k + 1] = t4, t5, t6, t7
