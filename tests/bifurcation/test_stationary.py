"""Stationary states: reference values, quadratic convergence, agreement with runs, bad input."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

import meanfield as mf

CIRCLE = mf.Circle(32)
ORDERED = CIRCLE.von_mises(0.0, 3.0)

MOMENTS = [  # beta, kappa, m_1, m_2, m_3, free energy less that of the uniform state
    (1, 2, 0.543821203160, 0.205285340932, 0.061687841131, -1.070871312839e-2),
    (1, 3, 0.863961101266, 0.601702334173, 0.355358317638, -1.267350879807e-1),
    (1, 5, 0.947430064422, 0.808897477395, 0.627385709840, -2.985914802946e-1),
    (2, 2, 0.914665945171, 0.741190700828, 0.541106139231, -2.292009972298e-1),
    (2, 4, 0.977549558827, 0.913628180443, 0.817382167920, -6.411807017969e-1),
    (5, 0.19, 0.775321066363, 0.631131123999, 0.468040162296, -5.002095247791e-2),
    (5, 0.25, 0.954629361242, 0.878598862255, 0.770712094042, -1.847173041868),
]
GAPS = [
    *((0, 2.1, 0.048015791), (0, 2.5, 0.208287180), (0, 3, 0.360444151), (0, 4, 0.574124210)),
    *((0, 6, 0.788108769), (0, 10, 0.890288440), (1, 2, 0.136269814), (1, 3, 0.465714943)),
    *((1, 5, 0.511181577), (2, 2, 0.511227263), (2, 4, 0.397478010)),
    *((5, 0.2, 1.680919376), (5, 0.25, 2.168851969)),
]


def model(beta, kappa):
    return mf.Transformer(mf.USA(beta) if beta else mf.Kuramoto(), kappa)


@pytest.mark.parametrize(("beta", "kappa", "m1", "m2", "m3", "energy"), MOMENTS)
def test_moments_are_the_reference_values(beta, kappa, m1, m2, m3, energy):
    found = mf.stationary(model(beta, kappa), CIRCLE.von_mises(0.0, 4.0))
    moments = [found.density.moment(k).real for k in (1, 2, 3)]
    np.testing.assert_allclose(moments, [m1, m2, m3], rtol=0, atol=1e-11)
    assert found.free_energy == pytest.approx(energy, abs=2e-12)
    assert found.converged and found.residual < 1e-14


@pytest.mark.parametrize(("beta", "kappa", "gap"), GAPS)
def test_spectral_gaps_are_the_reference_values(beta, kappa, gap):
    found = mf.stationary(model(beta, kappa), CIRCLE.von_mises(0.0, 4.0)).stability()
    assert found.gap == pytest.approx(gap, abs=1e-8)
    assert found.stable and np.isrealobj(found.eigenvalues)
    assert found.neutral.sum() == 1 and found.orders[found.neutral] == [1]
    assert abs(found.eigenvalues[found.neutral][0]) < 1e-9


@pytest.mark.parametrize("d", [2, 3, 5, 20])
def test_kuramoto_has_von_mises_fisher_states(d):
    """r = I_(d/2)(kappa r) / I_(d/2-1)(kappa r), for kappa > d."""
    kappa = 1.5 * d
    found = mf.stationary(
        mf.Transformer(mf.Kuramoto(), kappa), mf.Zonal(d, 48).von_mises_fisher(float(d))
    )
    r = found.order_parameter
    assert r == pytest.approx(ive(d / 2, kappa * r) / ive(d / 2 - 1, kappa * r), abs=1e-13)
    exact = mf.Zonal(d, found.density.space.degree).von_mises_fisher(kappa * r)
    np.testing.assert_allclose(found.density.coefficients, exact.coefficients, atol=1e-12)


def test_convergence_is_quadratic():
    residuals = mf.stationary(model(5, 0.25), CIRCLE.von_mises(0.0, 1.0)).residuals
    late = [(a, b) for a, b in pairwise(residuals) if 1e-6 < a < 1e-2]
    assert late and all(b < 29 * a**2 for a, b in late)


@settings(max_examples=10, deadline=None)
@given(angle=st.floats(-3, 3), beta=st.floats(0.1, 3))
def test_states_turn_with_the_guess(angle, beta):
    there = mf.stationary(model(beta, 3.0), ORDERED.rotate(angle))
    here = mf.stationary(model(beta, 3.0), ORDERED)
    rotated = here.density.rotate(angle).coefficients
    np.testing.assert_allclose(there.density.coefficients, rotated, atol=1e-11)


@pytest.mark.repeats
@pytest.mark.parametrize("drift", [mf.USA(1.0), mf.SA(2.0), mf.Kuramoto()], ids=repr)
@pytest.mark.parametrize("start", [
    CIRCLE.von_mises(0.7, 3.0), mf.Zonal(4, 24).von_mises_fisher(3.0),
    mf.Sphere(16).von_mises_fisher([0.6, 0, 0.8], 3.0),
], ids=lambda mu: type(mu.space).__name__)  # fmt: skip
def test_runs_end_in_them(drift, start):
    """solve and Newton's method, which have nothing in common."""
    alive = mf.Transformer(drift, 8.0)
    run = mf.solve(alive, start, (0, 100), until="steady", rtol=1e-10, t_eval=[100.0])
    found = mf.stationary(alive, run.final)
    degree = max(run.final.space.degree, found.density.space.degree)
    difference = found.density.resample(degree).coefficients
    difference = difference - run.final.resample(degree).coefficients
    assert np.abs(difference).max() < 1e-8
    assert found.stability().stable


@pytest.mark.repeats
@pytest.mark.parametrize("drift", [mf.USA(1.0), mf.SA(2.0)], ids=repr)
@pytest.mark.parametrize("d", [2, 3])
def test_perturbations_decay_at_the_leading_rate(drift, d):
    """That of order 0 along its eigenfunction; the mean of both signs has no second order."""
    kappa, size = 1.7 * d, 1e-4
    alive = mf.Transformer(drift, kappa)
    found = mf.stationary(alive, mf.Zonal(d, 48).von_mises_fisher(3.0))
    spectrum, space = found.stability(20), found.density.space
    first = int(np.flatnonzero(spectrum.orders == 0)[0])
    rate, mode = spectrum.eigenvalues[first].real, spectrum.modes[first].real
    end, final = 3 / -rate, []
    for sign in (1, -1):
        c = found.density.coefficients + sign * size * np.concatenate([[0], mode])
        run = mf.solve(alive, mf.Density(space, c), (0, end), t_eval=[end], rtol=1e-12)
        final.append(run.final.resample(space.degree).coefficients[1:])
    measured = (final[0] - final[1]) @ mode / (2 * size * mode @ mode)
    assert np.log(measured) / end == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("d", [2, 3, 7])
@pytest.mark.parametrize("drift", [mf.USA(2.0), mf.SA(2.0)], ids=repr)
def test_the_uniform_state_has_the_known_rates(d, drift):
    """l (l + d - 2) (w_l - 1/kappa), in every order up to l; two of them on the circle."""
    kappa = 1.2
    found = mf.stability(mf.Transformer(drift, kappa), mf.Zonal(d, 16).uniform(), count=5)
    l = np.arange(1, 17)
    rates = l * (l + d - 2) * (drift.attraction(16, d)[1:] - 1 / kappa)
    each = np.repeat(rates, 2 if d == 2 else l + 1)
    np.testing.assert_allclose(found.eigenvalues, np.sort(each)[::-1][:5], atol=1e-10)
    assert not found.neutral.any()


def test_stability_of_a_density_is_that_of_the_state():
    found = mf.stationary(model(2, 2.0), ORDERED)
    np.testing.assert_allclose(
        mf.stability(found.model, found.density).eigenvalues,
        found.stability().eigenvalues,
        atol=1e-9,
    )


def test_two_clusters_are_a_saddle():
    """States of two equal peaks exist beyond kappa_2, and are not stable."""
    two = CIRCLE.density(lambda t: np.exp(2 * np.cos(2 * t)))
    found = mf.stationary(model(5, 0.35), two)
    assert found.converged and abs(found.density.moment(1)) < 1e-12
    assert abs(found.density.moment(2)) > 0.3 and not found.stability().stable


def test_narrow_states_are_resolved_or_say_so():
    found = mf.stationary(model(0, 1000.0), ORDERED)
    assert found.converged and found.density.space.degree >= 128
    with pytest.warns(mf.UnresolvedWarning, match="max_degree"):
        found = mf.stationary(model(0, 1000.0), ORDERED, max_degree=64)
    assert found.status == "unresolved" and "max_degree" in found.message
    advised = int(re.search(r"about (\d+)", found.message)[1])
    assert mf.stationary(model(0, 1000.0), ORDERED, max_degree=advised).converged
    with pytest.warns(mf.UnresolvedWarning):
        assert not mf.stationary(model(0, 1000.0), ORDERED, max_degree=5 * advised // 6).converged


def test_failures_say_so():
    found = mf.stationary(model(5, 0.25), CIRCLE.von_mises(0.0, 4.0), tolerance=1e-15)
    assert found.converged == (found.residual <= 1e-15)
    assert "StationaryState" in repr(found)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((mf.USA(1.0), ORDERED), TypeError, r"model must be Transformer.*got model = USA"),
        (
            (model(1, 2.0), mf.Tokens.uniform(3, 2, rng=0)),
            TypeError,
            "guess must be a Density",
        ),
        ((mf.Transformer(mf.USA(1.0)), ORDERED), ValueError, "finite kappa"),
        ((model(1, [2.0, 3.0]), ORDERED), ValueError, "one at a time"),
        ((mf.Transformer(mf.Hardmax(), 2.0), ORDERED), mf.MeanfieldError, "Hardmax"),
        (
            (mf.Transformer(mf.USA(1.0), 2.0, normalisation=mf.PreLN()), ORDERED),
            mf.MeanfieldError,
            "PreLN",
        ),
    ],
)
def test_bad_input(arguments, error, match):
    with pytest.raises(error, match=match):
        mf.stationary(*arguments)


def test_stability_of_what_is_not_stationary():
    with pytest.raises(ValueError, match="its residual is"):
        mf.stability(model(1, 2.0), ORDERED)


def test_one_eigenvalue_has_a_gap_too():
    """The leading one is that of rotations; the gap is that of the next."""
    state = mf.stationary(model(1, 3.0), ORDERED)
    one = state.stability(1)
    assert one.neutral.tolist() == [True] and one.gap == state.stability(6).gap


@pytest.mark.parametrize("options", [{"tolerance": 10.0}, {"tolerance": 1e-16}, {"max_degree": 8}])
def test_accuracy_that_cannot_be_had(options):
    with pytest.raises(ValueError, match=r"tolerance must be from|max_degree must be at least 32"):
        mf.stationary(model(5, 0.25), CIRCLE.uniform(), **options)


@pytest.mark.repeats
@pytest.mark.parametrize("options", [{}, {"starts": 20, "rng": 0}], ids=["default", "random"])
def test_the_saddle_between_two_stable_states_is_found(options):
    """Missed before by all starts: deflation leads away from it."""
    states = mf.stationary_states(model(4, 0.402), CIRCLE, **options)
    assert sorted(state.order_parameter for state in states) == pytest.approx(
        [0.0, 0.2201262640, 0.7513539163], abs=1e-9
    )
    assert [state.stable for state in states] == [True, True, False]
    followed = mf.branches(mf.USA(4.0), CIRCLE, (0.35, 0.45)).states_at(0.402)
    orders = sorted(state.order_parameter for _, state in followed)
    assert orders == pytest.approx(sorted(state.order_parameter for state in states), abs=1e-9)
    assert len(mf.stationary_states(model(4, 0.402), CIRCLE, count=2)) == 2


def test_the_share_without_the_symmetry_is_told_in_percent():
    guess = mf.Sphere(8).density(lambda x, y, z: 1 + 0.3 * x * y + 0.2 * z)
    model = mf.Transformer(mf.USA(1.0), kappa=12.0)
    words = r"guess lacks symmetry about an axis: 56 % of .* Use symmetrised\(guess\), or"
    with pytest.raises(ValueError, match=words):
        mf.stationary(model, guess)
    with pytest.raises(ValueError, match=r'lacks the symmetry D3h: .*symmetrised\(guess, "D3h"\)'):
        mf.stationary(model, guess, symmetry="D3h")
