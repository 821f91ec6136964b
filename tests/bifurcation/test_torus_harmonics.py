"""Stationary states on the torus under potentials, fields and noise with a scale."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.bifurcation.reflections import Symmetries
from meanfield.bifurcation.torus_harmonics import TorusReflected

TORUS = mf.Torus(6)


def first(x):
    return x[..., 0]


def both(x):
    return x[..., 0] + 0.5 * x[..., 2]


def test_a_potential_alone_has_its_gibbs_density():
    state = mf.stationary(mf.Transformer(mf.Potential(both), kappa=1.0), TORUS.uniform())
    space = state.density.space
    exact = space.density(lambda a, b: np.exp(np.cos(a) + 0.5 * np.cos(b)))
    found = state.density.coefficients
    np.testing.assert_allclose(found, exact.coefficients, rtol=0, atol=1e-13)


def test_states_under_a_sum_of_kernels_and_potentials_are_products():
    """Free energies add, and growth rates are those of one factor; first moments agree."""
    models = [
        mf.Transformer(3.0 * mf.Kuramoto() + h * mf.Potential(first), kappa=1.0) for h in (0.2, 0.1)
    ]
    factors = [mf.stationary(model, mf.Circle(32).von_mises(0, 2.0)) for model in models]
    pulled = mf.Transformer(3.0 * mf.Kuramoto() + 0.2 * mf.Potential(both), kappa=1.0)
    state = mf.stationary(pulled, mf.Torus(12).von_mises([0, 0], 1.0))
    assert state.free_energy == pytest.approx(sum(f.free_energy for f in factors), abs=1e-10)
    found = state.density.moment(1)
    np.testing.assert_allclose(found, [f.density.moment(1) for f in factors], rtol=0, atol=1e-10)
    pairs = zip(models, factors, strict=True)
    slowest = min(mf.stability(model, f.density).gap for model, f in pairs)
    assert mf.stability(pulled, state.density).gap == pytest.approx(slowest, abs=1e-8)


@pytest.mark.parametrize("power, kind", [(1, mf.noise.MultiplicativeStratonovich),
                                         (2, mf.noise.MultiplicativeIto)])  # fmt: skip
def test_noise_with_a_scale_alone_has_the_density_of_its_power(power, kind):
    def scale(x):
        return 1 + 0.02 * x[..., 0] * x[..., 2]

    model = mf.Transformer(0.0 * mf.Kuramoto(), kappa=1.0, noise=kind(scale))
    state = mf.stationary(model, TORUS.uniform())
    space = state.density.space
    exact = space.density(lambda a, b: (1 + 0.02 * np.cos(a) * np.cos(b)) ** -power)
    found = state.density.coefficients
    np.testing.assert_allclose(found, exact.coefficients, rtol=0, atol=1e-12)


def test_functions_are_orthonormal_and_reflected():
    """Values, gradients and parities, against products of trigonometric functions."""
    basis = TorusReflected(mf.Torus(2), mf.noise.Isotropic(), Symmetries((0,)))
    values, gradients = basis.even.values, basis.even.gradients
    np.testing.assert_allclose((values * basis.weights) @ values.T, np.eye(24), atol=1e-13)
    inner = np.einsum("cin,cjn,n->ij", gradients, gradients, basis.weights)
    np.testing.assert_allclose(inner, np.diag(basis.eigenvalues), atol=1e-12)
    x, space = basis.space.points[basis.nodes], basis.space
    series = basis.all.series(np.eye(24), 0.0)
    for reflection in range(8):
        there = space.at(series, x * basis.all.signs(reflection))
        sign = np.where(basis.all.odd(reflection), -1, 1)[:, None]
        np.testing.assert_allclose(there, sign * values, rtol=0, atol=1e-12)
    finer = TorusReflected(mf.Torus(3), mf.noise.Isotropic(), Symmetries((0,)))
    np.testing.assert_array_equal(finer.all.waves[:24], basis.all.waves)


@pytest.mark.long
def test_a_branch_under_a_field_of_one_angle_follows_its_circle():
    """The imperfect pitchfork: the other factor is uniform."""
    drift = mf.Kuramoto() + 0.3 * mf.Potential(first)
    diagram = mf.branches(drift, TORUS, kappa=(0.8, 1.2), secondary=False)
    on_circle = mf.branches(drift, mf.Circle(32), kappa=(0.8, 1.2), secondary=False)
    (_, state), *_ = diagram.states_at(1.0)
    (_, factor), *_ = on_circle.states_at(1.0)
    assert state.order_parameter == pytest.approx(factor.order_parameter / 2**0.5, abs=1e-10)
