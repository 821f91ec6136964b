"""The plane of two parameters: its derivatives are those of differences."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.bifurcation.families import basis_of
from meanfield.bifurcation.planes import KappaPlane, ParameterPlane

PULL = mf.Potential(lambda x: x[..., 0] + 0.3 * x[..., 0] ** 2)


def family(p, q):
    """Both parameters change the drift, and kappa = 2 + p q + q^2."""
    return mf.Transformer(mf.SA(1.0 + p) + q * PULL, kappa=2 + p * q + q**2)


def change(f, h=1e-3):
    return (45 * (f(h) - f(-h)) - 9 * (f(2 * h) - f(-2 * h)) + f(3 * h) - f(-3 * h)) / (60 * h)


def test_derivatives_by_both_parameters_are_those_of_differences():
    p, q, space = 0.7, 0.4, mf.Circle(8)
    basis = basis_of([family(p, q)], space)
    plane = ParameterPlane(family, "p", (0.0, 2.0), basis, "q", (0.1, 1.0))
    equation, kappa = plane.equation(p, q)
    assert kappa == pytest.approx(2 + p * q + q**2, rel=1e-15)
    rng, part = np.random.default_rng(0), basis.even
    m = np.zeros(len(basis.degrees))
    m[part.members] = 0.05 * rng.standard_normal(part.members.size)
    left, right = rng.standard_normal((2, part.members.size))
    mean = equation.mean(m, kappa)

    def at(p, q):
        equation, kappa = plane.equation(p, q)
        mean = equation.mean(m, kappa)
        block = left @ equation.block(mean, part) @ right
        return np.concatenate([m - mean.moments, [np.log(kappa), block]])

    expected = np.stack([change(lambda h: at(p, q + h)), change(lambda h: at(p + h, q))], axis=1)
    slopes = plane.slopes(p, q, equation, m, mean)
    np.testing.assert_allclose(slopes, expected[:-2], rtol=0, atol=1e-8)
    np.testing.assert_allclose(plane.kappa_slopes(p, q), expected[-2], rtol=1e-8)
    found = plane.block_change(p, q, equation, mean, m, part, left, right)
    np.testing.assert_allclose(found[-2:], expected[-1], rtol=1e-6)


def test_lines_of_states_are_followed_in_a_range_around_a_point():
    """Half of kappa to twice of it; of another second parameter the range that was asked for."""
    basis = basis_of([family(0.7, 0.4)], mf.Circle(8))
    kappas = KappaPlane(lambda p: family(p, 0.4), "p", (0.0, 2.0), basis)
    np.testing.assert_allclose(kappas.near(kappas.coordinate(3.0)), [1.5, 6.0], rtol=1e-14)
    others = ParameterPlane(family, "p", (0.0, 2.0), basis, "q", (-0.1, 1.0))
    assert others.near(others.coordinate(0.5)) == (-0.1, 1.0)
