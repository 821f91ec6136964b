"""Transport of axisymmetric densities in many dimensions, where clusters have large coefficients.

A von Mises-Fisher law of concentration 274 in d = 50 has coefficients up to 4e10, and a last one,
of degree 256, below 1e-30.
"""

import mpmath
import numpy as np
import pytest
from scipy.special import ive

import meanfield as mf
from meanfield.lowlevel.legendre import gauss, recurrence, values_at_the_pole


class OwnExponential(mf.ZonalDrift):
    """v(x) = P_x int e^(b <x, y>) y dmu(y), with multipliers by quadrature.

    Parameters
    ----------
    b : float
        Inverse temperature.
    """

    b: float

    def slope(self, t):
        return np.exp(self.b * t)


def change(drift, density):
    """The coefficients of -div(mu v)."""
    space = density.space
    degrees = space.degree, space.dimension
    below = drift.normaliser(*degrees)
    tables = drift.attraction(*degrees)[None], None if below is None else below[None]
    return space.transport(*tables, 1)(density.coefficients[None])[0]


def exact_change(drift, density):
    """The same with 60 digits, from the rounded coefficients and multipliers."""
    space, W = density.space, drift.attraction(density.space.degree, density.dimension)
    d, modes = space.dimension, space.degree + 1
    with mpmath.workdps(60):
        size = 3 * modes
        e = [mpmath.mpf(0), mpmath.sqrt(mpmath.mpf(1) / d)]
        e += [
            mpmath.sqrt(mpmath.mpf(l * (l + d - 3)) / ((2 * l + d - 2) * (2 * l + d - 4)))
            for l in range(2, size + 1)
        ]
        c = [mpmath.mpf(float(a)) for a in density.coefficients] + [mpmath.mpf(0)] * (2 * modes)
        p = [mpmath.mpf(1), mpmath.sqrt(d)]
        for l in range(1, modes):
            p.append((p[l] - e[l] * p[l - 1]) / e[l + 1])
        f, power, before = [mpmath.mpf(0)] * size, c, [mpmath.mpf(0)] * size
        for k in range(modes - 1):  # P_k(X) c of R^(d + 2), one degree after the other
            b = mpmath.mpf(float(W[k + 1])) * c[k + 1] * p[k + 1] * (k + 1) * (k + d - 1) / (d - 1)
            f = [total + b * term for total, term in zip(f, power, strict=True)]
            after = [
                ((2 * k + d) * (e[l + 1] * power[l + 1] + e[l] * power[l - 1]) - k * before[l])
                / (k + d)
                for l in range(size - 1)
            ]
            power, before = [*after, mpmath.mpf(0)], power
        found = [(l + d - 2) * e[l] * f[l - 1] - l * e[l + 1] * f[l + 1] for l in range(1, modes)]
        return np.array([0.0, *map(float, found)])


def test_every_coefficient_has_its_own_relative_accuracy():
    """Rounding relative to the largest coefficient would be 1e30 times the last one."""
    density = mf.Zonal(30, 128).von_mises_fisher(60.0)
    exact = exact_change(mf.USA(16.0), density)[1:]
    assert np.abs(exact).max() > 1e30 * np.abs(exact).min()
    np.testing.assert_allclose(change(mf.USA(16.0), density)[1:], exact, rtol=1e-12)


def test_a_drift_of_degree_one_couples_neighbours_alone():
    """c_l' = m_1 ((l + d - 2) e_l c_(l-1) - l e_(l+1) c_(l+1)), each to its own rounding."""
    d, density = 50, mf.Zonal(50, 256).von_mises_fisher(274.0)
    c, l, e = np.append(density.coefficients, 0), np.arange(1, 257), recurrence(257, 0, d)
    exact = density.moment(1) * ((l + d - 2) * e[l] * c[l - 1] - l * e[l + 1] * c[l + 1])
    parts = density.moment(1) * ((l + d - 2) * e[l] * c[l - 1] + l * e[l + 1] * c[l + 1])
    error = np.abs(change(mf.Kuramoto(), density)[1:] - exact)
    assert c.max() > 3e10 > 1e-20 > c[256] and (error <= 1e-14 * parts).all()


@pytest.mark.parametrize("normalised", [False, True], ids=["USA", "SA"])
@pytest.mark.parametrize("d", [5, 50, 300])
def test_the_velocity_of_a_cluster_is_that_of_its_closed_form(d, normalised):
    """E e^(beta <x, y>) = Z(r)/Z(c), r = |c e + beta x|, for a von Mises-Fisher law of y.

    In d = 300 the multipliers of degree 14 are 2^-60 of the first, and most of the velocity comes
    from higher degrees.
    """
    beta, c = 16.0, d / 2
    density = mf.Zonal(d, 256).von_mises_fisher(c)
    drift = mf.SA(beta) if normalised else mf.USA(beta)
    x, weights = gauss(400, d)
    law = weights * np.exp(c * (x - x.max()) + 300)
    law /= law.sum()
    r = np.sqrt(c**2 + beta**2 + 2 * c * beta * x)

    def log_size(s):
        return np.log(ive(d / 2 - 1, s)) + s - (d / 2 - 1) * np.log(s)

    slope = c / r * ive(d / 2, r) / ive(d / 2 - 1, r)
    if not normalised:
        slope *= np.exp(log_size(r) - log_size(c))
    mean = (law * slope * (1 - x**2)).sum()  # the change of the mean of x
    found = change(drift, density)[1] / np.sqrt(d)
    rounding = 1e-15 * np.linalg.norm(density.coefficients) if normalised else 0  # of values
    assert rounding < 1e-5 and found == pytest.approx(mean, rel=1e-12 + rounding)


@pytest.mark.parametrize("d", [8, 30, 50])
def test_multipliers_by_quadrature_serve_clusters_in_many_dimensions(d):
    """Rounding errors of the last ones, times dim H_l, would hide the drift: 1e10 in d = 50."""
    degree, sizes = 256, values_at_the_pole(256, d)
    l = np.arange(degree + 1)
    rates = OwnExponential(4.0).attraction(degree, d) * sizes**2 * l * (l + d - 2) / (d - 1)
    assert rates.sum() == pytest.approx(np.exp(4), rel=1e-7)
    density = mf.Zonal(d, degree).von_mises_fisher(5.0 * d)
    own, closed = change(OwnExponential(4.0), density), change(mf.USA(4.0), density)
    assert np.abs(own - closed)[:64].max() <= 1e-7 * np.abs(closed[:64]).max()


def test_values_at_the_pole_are_roots_of_dimensions_as_far_as_these_are_numbers():
    sizes = values_at_the_pole(980, 1024)
    assert sizes[0] == 1 and sizes[1] == 32 and np.isfinite(sizes).all()
    assert sizes[2] ** 2 == pytest.approx(1026 * 1023 / 2, rel=1e-14)
