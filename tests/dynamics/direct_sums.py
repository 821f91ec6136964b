"""Velocities of weighted points by the double sum that defines them, with the kernel itself.

No harmonics, no multipliers. A kernel is a pair (a, z) of functions of t = <x, y>:

    v(x) = P_x sum_j m_j a(<x, y_j>) y_j / sum_j m_j z(<x, y_j>),   a = W'

with z = None where nothing is divided by.
"""

import numpy as np
from scipy.special import i0e, i1e, roots_gegenbauer


def usa(beta):
    """a = e^{beta t}."""
    return lambda t: np.exp(beta * t), None


def sa(beta):
    """a = z = e^{beta t}, both divided by e^{|beta|}."""
    return (lambda t: np.exp(beta * t - abs(beta)),) * 2


def kuramoto():
    """a = 1."""
    return np.ones_like, None


def chebyshev(coefficients):
    """a = W' of a Chebyshev series W."""
    return np.polynomial.Chebyshev(coefficients).deriv(), None


def at_points(kernel, points, masses):
    """Velocities (n, d) of unit vectors (n, d)."""
    a, z = kernel
    t = points @ points.T
    pull = (a(t) * masses) @ points
    if z:
        pull /= (z(t) @ masses)[:, None]
    return pull - np.sum(pull * points, axis=1)[:, None] * points


def at_angles(kernel, angles, masses):
    """theta_i' = sum_j m_j a(cos(theta_j - theta_i)) sin(theta_j - theta_i) / ..."""
    a, z = kernel
    gap = angles[None, :] - angles[:, None]
    pull = (a(np.cos(gap)) * np.sin(gap)) @ masses
    return pull / (z(np.cos(gap)) @ masses) if z else pull


def at_latitudes(kernel, x, masses, d, nodes=60):
    """x_i', x = <point, axis>, of rings at the latitudes x_j on S^(d-1).

    Two rings see each other under t = x y + r_x r_y u, r = sqrt(1 - x^2), u of the law of a
    coordinate on S^(d-2). The pull along the axis is a(t) (y - x t).
    """
    a, z = kernel
    u, weights = azimuths(d, nodes)
    r = np.sqrt((1 - x) * (1 + x))
    t = np.multiply.outer(np.outer(x, x), np.ones(u.size)) + np.multiply.outer(np.outer(r, r), u)
    pull = (a(t) * (x[None, :, None] - x[:, None, None] * t)) @ weights @ masses
    return pull / (z(t) @ weights @ masses) if z else pull


def azimuths(d, nodes):
    """Nodes and weights for the first coordinate of a uniform point on S^(d-2)."""
    if d == 2:
        return np.array([1.0, -1.0]), np.array([0.5, 0.5])
    if d == 3:
        u = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
        return u, np.full(nodes, 1 / nodes)
    u, weights = roots_gegenbauer(nodes, (d - 3) / 2)
    return u, weights / weights.sum()


def usa_on_s2(beta, x, masses):
    """As `at_latitudes` for d = 3, averaged over the azimuth by Bessel functions."""
    r = np.sqrt((1 - x) * (1 + x))
    argument, product = beta * np.outer(r, r), np.outer(x, x)
    along = (x[None, :] - x[:, None] ** 2 * x[None, :]) * i0e(argument)
    across = np.outer(x * r, r) * i1e(argument)
    return (np.exp(beta * product + np.abs(argument)) * (along - across)) @ masses
