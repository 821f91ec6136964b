"""Derivatives of stationary states and of special points."""

from functools import cache

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf

CIRCLE = mf.Circle(32)
FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
STEP = 2e-3


def difference(f):
    """The derivative of f at 0 by a central difference of order 4."""
    return sum(weight * f(node * STEP) for node, weight in FOURTH.items()) / STEP


def ordered(drift, beta, kappa):
    return mf.stationary(
        mf.Transformer(drift(beta=beta), kappa=kappa), CIRCLE.von_mises(0, 2.0), tolerance=1e-14
    )


@cache
def diagram():
    return mf.branches(mf.USA(beta=5.0), CIRCLE, kappa=(0.18, 0.21))


def test_the_order_parameter_under_kuramoto():
    kappa = 3.0
    state = mf.stationary(mf.Transformer(mf.Kuramoto(), kappa=kappa), CIRCLE.von_mises(0, 1.0))
    r = state.order_parameter
    expected = r * (1 - 1 / kappa - r**2) / (2 - kappa + kappa * r**2)
    assert state.derivative("kappa").order_parameter == pytest.approx(expected, abs=1e-12)


@pytest.mark.repeats
@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=["USA", "SA"])
@pytest.mark.parametrize("name", ["beta", "kappa"])
def test_derivatives_are_those_of_states(drift, name):
    def at(e):
        by = {"beta": 2.0, "kappa": 4.0}
        by[name] += e
        return ordered(drift, by["beta"], by["kappa"])

    found = at(0.0).derivative(name)
    moments = difference(lambda e: at(e).legendre_moments[:16])
    assert np.abs(found.legendre_moments[:16] - moments).max() < 1e-9
    assert found.density.moment(1) == pytest.approx(found.order_parameter, abs=1e-14)
    assert found.density.mass == pytest.approx(0, abs=1e-15)
    rates = difference(lambda e: at(e).stability(4).eigenvalues)
    assert np.abs(found.eigenvalues(4) - rates).max() < 1e-8
    energy = difference(lambda e: at(e).free_energy)
    assert found.free_energy == pytest.approx(energy, abs=1e-9, nan_ok=True)


def test_growth_rates_of_the_uniform_state():
    beta, kappa, l = 2.0, 1.2, np.arange(1, 4)
    state = mf.stationary(mf.Transformer(mf.USA(beta=beta), kappa=kappa), CIRCLE.uniform())
    expected = l**2 * ((iv(l - 1, beta) + iv(l + 1, beta)) / (2 * beta) - iv(l, beta) / beta**2)
    found = state.derivative("beta").eigenvalues(6)
    assert np.abs(found - np.repeat(expected, 2)).max() < 1e-11
    assert np.isnan(state.derivative("beta").order_parameter)
    by_kappa = state.derivative("kappa").eigenvalues(6)
    assert np.abs(by_kappa - np.repeat(l**2 / kappa**2, 2)).max() < 1e-11


def test_special_points_move():
    """That of the onset beta/I_1(beta); others by differences of diagrams, as in `validation`."""
    slope = (iv(0, 5.0) + iv(2, 5.0)) / 2
    onset = 1 / iv(1, 5.0) - 5.0 * slope / iv(1, 5.0) ** 2
    known = {"bifurcation": onset, "fold": -0.14192719338, "transition": -0.14328361406}
    for kind, expected in known.items():
        point = diagram().special(kind)[0]
        assert point.derivative("beta") == pytest.approx(expected, abs=1e-10)
    with pytest.raises(ValueError, match="kappa"):
        point.derivative("kappa")


def test_a_fold_has_no_derivative_of_its_state():
    with pytest.raises(mf.MeanfieldError, match="psi"):
        diagram().special("fold")[0].state.derivative("beta")
    with pytest.raises(ValueError, match="gamma"):
        ordered(mf.USA, 2.0, 4.0).derivative("gamma")


# Without an axis ------------------------------------------------------------------------------


class Biaxial(mf.ZonalDrift):
    """W = 0.26 P_2 + b P_4.

    Parameters
    ----------
    b : float
        Of P_4.
    """

    b: float

    def slope(self, t):
        return 0.78 * t + self.b * (35 * t**3 - 15 * t) / 2


class Quartic(mf.ZonalDrift):
    """W = b P_4.

    Parameters
    ----------
    b : float
        Of P_4.
    """

    b: float

    def slope(self, t):
        return self.b * (35 * t**3 - 15 * t) / 2


class Scaled(mf.ZonalDrift):
    """W = b e^(3t)/3.

    Parameters
    ----------
    b : float
        A factor.
    """

    b: float

    def slope(self, t):
        return self.b * np.exp(3 * t)


SPHERE = mf.Sphere(12)


def biaxial_guess():
    c = np.zeros(SPHERE.degrees.size, dtype=complex)
    known = {(0, 0): 1, (2, 0): -0.131, (4, 0): 0.058, (2, 2): 0.028, (4, 2): -0.012}
    for (l, m), value in {**known, (4, 4): -0.077}.items():
        c[(SPHERE.degrees == l) & (SPHERE.orders == m)] = value
    return mf.Density(SPHERE, c)


def second_moments(function):
    masses, x = function.space.weights * function.values, function.space.points
    return (x * masses[:, None]).T @ x


@pytest.mark.parametrize("name", ["b", "kappa"])
def test_states_without_an_axis_or_any_symmetry(name):
    """What rotations do not change: free energy, second moments, and eigenvalues with D2h."""
    step = {"b": 2e-4, "kappa": 2e-3}[name]

    def at(e, guess, symmetry):
        by = {"b": 0.432, "kappa": 18.7}
        by[name] += e
        model = mf.Transformer(Biaxial(b=by["b"]), kappa=by["kappa"])
        return mf.stationary(model, guess, symmetry=symmetry, tolerance=1e-14)

    here = at(0.0, biaxial_guess(), "D2h")
    many = {node: at(node * step, here.density, "D2h") for node in FOURTH}
    free = at(0.0, here.density, "none")
    assert not free.equation.basis.dense
    _, axes = np.linalg.eigh(second_moments(here.density))

    def differences(f):
        return sum(weight * f(many[node]) for node, weight in FOURTH.items()) / step

    energy = differences(lambda state: state.free_energy)
    moments = differences(lambda state: np.linalg.eigvalsh(second_moments(state.density)))
    for state in (here, free):
        found = state.derivative(name)
        assert found.free_energy == pytest.approx(energy, abs=1e-9)
        assert np.abs(np.diag(axes.T @ second_moments(found.density) @ axes) - moments).max() < 1e-8


@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=["USA", "SA"])
def test_a_state_with_an_axis_among_all_states(drift):
    """Rotations are factored out; equal eigenvalues have one derivative, those of rotations 0."""
    axis = np.array([1.0, 2.0, 2.0]) / 3
    guess = SPHERE.density(lambda *x: np.exp(1.5 * np.moveaxis(np.array(x), 0, -1) @ axis))
    model = mf.Transformer(drift(beta=2.0), kappa={mf.USA: 3.0, mf.SA: 4.0}[drift])
    about = mf.stationary(model, guess).derivative("beta")
    among = mf.stationary(model, guess, symmetry="none").derivative("beta")
    kept = among.density.space.degree
    difference = about.density.resample(kept).coefficients - among.density.coefficients
    assert np.abs(difference).max() < 1e-12
    copies = 1 + (about.state.stability(3).orders > 0)  # of orders m > 0 about the axis
    rates = np.repeat(about.eigenvalues(3), copies) - among.eigenvalues(int(copies.sum()))
    assert np.abs(rates).max() < 1e-10


def assert_homogeneous(diagram):
    """States of a drift b v depend on b kappa alone: d kappa/d b = -kappa/b at every point."""
    for point in diagram.special_points:
        found = point.derivative("b")
        assert found == pytest.approx(-point.value / diagram.drift.b, abs=1e-9), point


@pytest.mark.long
def test_points_of_branches_with_a_finite_group():
    diagram = mf.branches(Quartic(b=2.0), SPHERE, (4.0, 4.6), symmetry="Oh", stability=False)
    assert {point.kind for point in diagram.special_points} == {"bifurcation", "fold", "transition"}
    assert_homogeneous(diagram)


@pytest.mark.long
def test_points_of_branches_under_another_noise():
    """Among them the onsets of the state without order, and where branches of a symmetry meet."""
    noise = mf.Anisotropic(np.diag([1.0, 2.0]))
    diagram = mf.branches(Scaled(b=1.0), CIRCLE, (1.0, 1.07), noise=noise)
    kinds = {(point.kind, point.branch > 0) for point in diagram.special_points}
    assert kinds > {("bifurcation", False), ("bifurcation", True), ("fold", True), ("Hopf", True)}
    assert_homogeneous(diagram)
