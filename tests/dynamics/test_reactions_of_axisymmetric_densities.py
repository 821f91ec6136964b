"""Reactions of densities that are symmetric about an axis, on any sphere."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.dynamics import DensityEvolution

DRIFTS = [mf.USA(1.5), mf.SA(2.0), mf.Kuramoto() - 0.5 * mf.USA(1.0)]


def rates(drift, mu):
    """N under the reaction 0.7."""
    model = mf.Transformer(drift, reaction=0.7)
    return DensityEvolution(model, mu.space).nonlinear(mu.coefficients[None])[0]


@pytest.mark.parametrize("drift", DRIFTS, ids=repr)
def test_rates_are_those_on_the_sphere(drift):
    mu = mf.Zonal(3, 16).von_mises_fisher(1.5)
    sphere = mf.Sphere(16)
    same = sphere.von_mises_fisher([0, 0, 1], 1.5)
    found, wanted = rates(drift, mu), rates(drift, same)
    np.testing.assert_allclose(found, wanted[:17].real, rtol=0, atol=1e-13)
    assert found[0] == pytest.approx(0, abs=1e-15) and np.abs(found).max() > 0.05


@pytest.mark.parametrize("drift", DRIFTS, ids=repr)
@pytest.mark.parametrize("d", [2, 5, 30])
def test_rates_are_the_zonal_ones_and_a_growth(drift, d):
    """The divergence on the grid is that of the compiled transport."""
    mu = mf.Zonal(d, 12).von_mises_fisher(1.0)
    plain = DensityEvolution(mf.Transformer(drift), mu.space).nonlinear
    fine = mu.space.with_degree(48)
    phi = fine.to_values(drift.as_zonal().interaction(48, d) * mu.resample(48).coefficients)
    values = mu.resample(48).values
    growth = 0.7 * values * (phi - fine.weights @ (phi * values))
    wanted = plain(mu.coefficients[None])[0] + fine.to_coefficients(growth)[:13]
    tolerance = 1e-12 * np.abs(wanted).max()
    np.testing.assert_allclose(rates(drift, mu), wanted, rtol=0, atol=tolerance)


def test_runs_are_those_on_the_sphere_and_keep_the_mass():
    model = mf.Transformer(mf.SA(2.0), 6.0, reaction=1.5)
    starts = mf.Zonal(3, 24).von_mises_fisher(1.0), mf.Sphere(24).von_mises_fisher([0, 0, 1], 1.0)
    options = {"rtol": 1e-9, "dt": 0.01, "min_degree": 24, "max_degree": 24}
    axis, sphere = (mf.solve(model, mu, (0, 0.2), **options)[-1] for mu in starts)
    wanted = sphere.coefficients[:25].real
    np.testing.assert_allclose(axis.coefficients, wanted, rtol=0, atol=1e-12)
    assert abs(axis.mass - 1) < 1e-13


def test_moments_are_those_of_a_dense_equation():
    """Gauss nodes in d = 4 that carry masses: x' = (1 - x^2) U'(x), m' = a m (U - int U dmu)."""
    d, alpha, mu = 4, 0.8, mf.Zonal(4, 24).von_mises_fisher(0.7)
    x, masses = mu.space.x, mu.space.weights * mu.values
    drift = mf.Interaction(lambda t: t + t**2, name="t + t^2")

    def rate(t, y):
        x, m = y.reshape(2, -1)
        first, second = m @ x, m @ x**2  # int <p, y> = x m_1; int <p, y>^2, y about the axis
        across = (1 - second) / (d - 1)
        slope = first + 2 * x * (second - across)
        U = x * first + x**2 * second + (1 - x**2) * across
        return np.concatenate([(1 - x**2) * slope, alpha * m * (U - m @ U / m.sum())])

    y = np.concatenate([x, masses])
    end = solve_ivp(rate, (0, 0.5), y, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    x, m = end.reshape(2, -1)
    run = mf.solve(mf.Transformer(drift, reaction=alpha), mu, (0, 0.5), rtol=1e-11)
    assert run[-1].moment(1) == pytest.approx(m @ x, abs=1e-9)
    assert abs(run[-1].mass - 1) < 1e-13


def test_what_leaves_the_axis_is_refused_under_a_reaction():
    mu = mf.Zonal(3, 8).uniform()
    for model in (
        mf.Transformer(mf.USA(1.0), reaction=1.0, normalisation=mf.NGPT(0.5)),
        mf.Transformer(mf.USA(1.0) + mf.Field(lambda x: x), reaction=1.0),
    ):
        with pytest.raises(mf.MeanfieldError, match=r"axis|potential"):
            mf.solve(model, mu, (0, 0.1))
