"""Orthonormal polynomials on latitudes, by their recurrence: sums over degrees and back.

For a fixed order m the functions p_l, l = m, m + 1, ..., of x = cos(polar angle) satisfy

    x p_l = e_{l+1} p_{l+1} + e_l p_{l-1},
    sin(theta) d/dtheta p_l = l e_{l+1} p_{l+1} - (l + d - 2) e_l p_{l-1}.

Nothing is tabulated in l and x at once: the recurrence runs beside the sums, in registers,
which is faster than to read a table from memory. Latitudes come in pairs x and -x, on which
p_l is even or odd as l - m is, so that only those with x > 0, from the pole to the equator,
are visited.
"""

import numpy as np
from numba import njit

__all__ = ["BLOCK", "analyse", "gauss", "recurrence", "synthesise"]

BLOCK = 4  # degrees taken in one pass over the latitudes


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


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
def synthesise(first, x, start, a, b, series, n, sums, work):
    """Sums over degrees on all latitudes: sums[0] + i sums[1] the part even in x, then the odd.

    Parameters
    ----------
    first : the latitudes before this one are passed over
    x, start : (latitudes,) with x > 0, and p_m there
    a, b : (n + BLOCK,) p_{l+1} = a x p_l - b p_{l-1} for l = m, m + 1, ...; 0 beyond the last
    series : (2, size) real and imaginary parts of the coefficients of l = m, m + 1, ...
    n : number of degrees, a multiple of BLOCK
    sums : (4, latitudes) result; 0 is not written where latitudes are passed over
    work : (2, latitudes)
    """
    x, start, p, q = x[first:], start[first:], work[0][first:], work[1][first:]
    even_re, even_im = sums[0][first:], sums[1][first:]
    odd_re, odd_im = sums[2][first:], sums[3][first:]
    for j in range(x.size):
        p[j], q[j] = start[j], a[0] * x[j] * start[j]
        even_re[j] = even_im[j] = odd_re[j] = odd_im[j] = 0.0
    re, im = series[0], series[1]
    for k in range(0, n, BLOCK):
        a1, a2, a3, a4 = a[k + 1], a[k + 2], a[k + 3], a[k + 4]
        b1, b2, b3, b4 = b[k + 1], b[k + 2], b[k + 3], b[k + 4]
        r0, r1, r2, r3 = re[k], re[k + 1], re[k + 2], re[k + 3]
        i0, i1, i2, i3 = im[k], im[k + 1], im[k + 2], im[k + 3]
        for j in range(x.size):
            t, p0, p1 = x[j], p[j], q[j]
            p2 = a1 * t * p1 - b1 * p0
            p3 = a2 * t * p2 - b2 * p1
            p4 = a3 * t * p3 - b3 * p2
            even_re[j] += r0 * p0 + r2 * p2
            even_im[j] += i0 * p0 + i2 * p2
            odd_re[j] += r1 * p1 + r3 * p3
            odd_im[j] += i1 * p1 + i3 * p3
            p[j], q[j] = p4, a4 * t * p4 - b4 * p3


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
def analyse(first, x, start, a, b, values, series, n, work):
    """Sums over latitudes for all degrees, of two complex functions at a time.

    Parameters
    ----------
    first, x, start, a, b, work : as for `synthesise`
    values : (8, latitudes) with their weights: real and imaginary part of the first function and
        of the second, f(x) + f(-x); then the same four of f(x) - f(-x)
    series : (4, size) result: the coefficients, in the same order
    n : number of degrees, a multiple of BLOCK; more than that is not touched
    """
    x, start, p, q = x[first:], start[first:], work[0][first:], work[1][first:]
    f0, f1, f2, f3 = values[0][first:], values[1][first:], values[2][first:], values[3][first:]
    g0, g1, g2, g3 = values[4][first:], values[5][first:], values[6][first:], values[7][first:]
    for j in range(x.size):
        p[j], q[j] = start[j], a[0] * x[j] * start[j]
    for k in range(0, n, BLOCK):
        a1, a2, a3, a4 = a[k + 1], a[k + 2], a[k + 3], a[k + 4]
        b1, b2, b3, b4 = b[k + 1], b[k + 2], b[k + 3], b[k + 4]
        s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
        s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
        for j in range(x.size):
            t, p0, p1 = x[j], p[j], q[j]
            p2 = a1 * t * p1 - b1 * p0
            p3 = a2 * t * p2 - b2 * p1
            p4 = a3 * t * p3 - b3 * p2
            s00 += f0[j] * p0
            s01 += f1[j] * p0
            s02 += f2[j] * p0
            s03 += f3[j] * p0
            s10 += g0[j] * p1
            s11 += g1[j] * p1
            s12 += g2[j] * p1
            s13 += g3[j] * p1
            s20 += f0[j] * p2
            s21 += f1[j] * p2
            s22 += f2[j] * p2
            s23 += f3[j] * p2
            s30 += g0[j] * p3
            s31 += g1[j] * p3
            s32 += g2[j] * p3
            s33 += g3[j] * p3
            p[j], q[j] = p4, a4 * t * p4 - b4 * p3
        series[0, k], series[1, k], series[2, k], series[3, k] = s00, s01, s02, s03
        series[0, k + 1], series[1, k + 1], series[2, k + 1], series[3, k + 1] = s10, s11, s12, s13
        series[0, k + 2], series[1, k + 2], series[2, k + 2], series[3, k + 2] = s20, s21, s22, s23
        series[0, k + 3], series[1, k + 3], series[2, k + 3], series[3, k + 3] = s30, s31, s32, s33
