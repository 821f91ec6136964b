"""Stationary states on the torus under potentials, fields and noise with a scale."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ive

import meanfield as mf
from meanfield.bifurcation.reflections import AllHarmonics, Symmetries
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


@pytest.mark.long
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


@pytest.mark.parametrize("circles, degree", [(2, 3), (3, 2)])
def test_derivatives_by_fourier_coefficients_are_sums_over_nodes(circles, degree):
    """Tables by products of exponentials, too, against transforms of the space."""
    symmetries = Symmetries((0, 1))
    basis = TorusReflected(mf.Torus(degree, circles), mf.noise.Isotropic(), symmetries)
    flow = np.random.default_rng(0).standard_normal((circles, len(basis.nodes)))
    for order in (0, 1):
        part = basis.of_order(order)
        values, gradients = AllHarmonics.table(basis.all, part.members, basis.nodes)
        np.testing.assert_allclose(part.values, values, rtol=0, atol=1e-13)
        np.testing.assert_allclose(part.gradients, gradients, rtol=0, atol=1e-12)
        sums = np.einsum("cin,cn,jn->ij", gradients, flow, values)
        np.testing.assert_allclose(
            part.advected(flow), sums, rtol=0, atol=1e-11 * np.abs(sums).max()
        )


@pytest.mark.long
def test_iterated_growth_rates_are_those_of_the_circles():
    """Of one factor, and sums of those in the fields of both states, which move with neither."""
    circle, kappa, heights = mf.Circle(32), 1.2, (0.4, 0.2)
    rates, frozen = [], []
    for h in heights:
        drift = 3.0 * mf.Kuramoto() + h * mf.Potential(first)
        factor = mf.stationary(mf.Transformer(drift, kappa), circle.von_mises(0, 3.0))
        field = (3.0 * factor.order_parameter + h) * mf.Potential(first)
        alone = mf.stationary(mf.Transformer(field, kappa), factor.density)
        assert alone.order_parameter == pytest.approx(factor.order_parameter, abs=1e-12)
        rates += [*factor.stability(6).eigenvalues]
        frozen.append(alone.stability(6).eigenvalues)
    expected = np.sort([*rates, *np.add.outer(*frozen).ravel()])[::-1]
    model = mf.Transformer(3.0 * mf.Kuramoto() + 0.4 * mf.Potential(both), kappa=kappa)
    state = mf.stationary(model, mf.Torus(16).von_mises([0, 0], 2.0))
    assert state.converged and len(state.equation.basis.even.members) > 256
    assert state.equation.real_spectrum
    np.testing.assert_allclose(state.stability(6).eigenvalues, expected[:6], rtol=0, atol=1e-8)


@pytest.mark.long
def test_all_products_of_the_states_on_two_circles_are_found():
    """Among them the lowest saddle, in which one angle alone is turned; their indices sum to 1.

    The mean of one factor solves r = E cos under exp(kappa (3 r + h) cos), by Bessel functions and
    SciPy's root finding.
    """
    factors = [
        mf.stationary_states(
            mf.Transformer(3.0 * mf.Kuramoto() + h * mf.Potential(first), kappa=1.5), mf.Circle(32)
        )
        for h in (0.2, 0.1)
    ]
    pulled = mf.Transformer(3.0 * mf.Kuramoto() + 0.2 * mf.Potential(both), kappa=1.5)
    products = mf.stationary_states(pulled, TORUS)
    assert [len(one) for one in factors] == [3, 3] and products.index_sum == 1

    def mean_of(h):
        def excess(r):
            z = 1.5 * (3.0 * r + h)
            return ive(1, z) / ive(0, z) - r

        r = np.linspace(-1, 1, 2001)
        changes = np.flatnonzero(np.diff(np.sign(excess(r))))
        return [brentq(excess, r[i], r[i + 1], xtol=1e-15) for i in changes]

    means = np.array([state.density.moment(1) for state in products])
    means = means[np.lexsort(means.real.round(8).T[::-1])]
    exact = list(product(mean_of(0.2), mean_of(0.1)))
    np.testing.assert_allclose(means, exact, rtol=0, atol=1e-10)
    energies = ([state.free_energy for state in one] for one in factors)
    found = np.sort([state.free_energy for state in products])
    np.testing.assert_allclose(found, np.sort(np.add.outer(*energies).ravel()), rtol=0, atol=1e-10)
    rates = (one.data.growth.values for one in factors)
    least = np.sort(np.maximum.outer(*rates).ravel())
    np.testing.assert_allclose(np.sort(products.data.growth), least, rtol=0, atol=1e-8)


@pytest.mark.long
def test_a_branch_under_a_field_of_one_angle_follows_its_circle():
    """The imperfect pitchfork: the other factor is uniform."""
    drift = mf.Kuramoto() + 0.3 * mf.Potential(first)
    diagram = mf.branches(drift, TORUS, kappa=(0.8, 1.2), secondary=False)
    on_circle = mf.branches(drift, mf.Circle(32), kappa=(0.8, 1.2), secondary=False)
    (_, state), *_ = diagram.states_at(1.0)
    (_, factor), *_ = on_circle.states_at(1.0)
    assert state.order_parameter == pytest.approx(factor.order_parameter / 2**0.5, abs=1e-10)
