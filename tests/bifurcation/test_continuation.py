"""Continuation in beta, from single states, by deflation; ground states and transitions."""

from functools import cache

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(16)


@cache
def in_beta():
    return mf.branches(mf.USA, CIRCLE, 0.42, beta=(2.0, 5.0), save_at=[4.0])


@cache
def in_kappa():
    return mf.branches(mf.USA(4.0), CIRCLE, (0.3, 0.6), degrees=[1], save_at=[0.42])


@pytest.mark.long
def test_special_points_in_beta_lie_on_the_curves_of_the_phase_diagram():
    plane = mf.phase_diagram(mf.USA, CIRCLE, (2.0, 5.0), degrees=(1,))
    for kind, curve in (("bifurcation", "critical"), ("fold", "fold"), ("transition",) * 2):
        special = in_beta().special(kind)[0]
        assert special.parameter == "beta" and special.kappa == 0.42
        assert plane.kappa(curve, special.beta) == pytest.approx(0.42, abs=1e-12)
        assert special.interval[0] <= special.value <= special.interval[1]


@pytest.mark.long
def test_both_ways_lead_to_the_same_state():
    (one,) = (s for number, s in in_beta().saved if number == 1)
    (other,) = (s for number, s in in_kappa().saved if number == 1)
    assert one.kappa == other.kappa and float(one.model.drift.beta) == 4.0
    np.testing.assert_allclose(
        one.legendre_moments[:32], other.legendre_moments[:32], rtol=0, atol=1e-13
    )


def test_branches_of_softmax_in_beta():
    found = mf.branches(mf.SA, mf.Zonal(3, 16), 4.0, beta=(0.05, 3.0), stability=False)
    (onset,) = found.special_points
    assert onset.character == "supercritical" and found.ends == ["range"]
    weight = mf.SA(onset.beta).attraction(1, 3)[1]
    assert 4.0 * weight == pytest.approx(1, abs=1e-12)


@pytest.mark.long
def test_a_diagram_in_beta_is_kept_in_a_file_and_drawn(tmp_path):
    again = mf.Diagram.load(in_beta().save(tmp_path / "diagram.nc"))
    assert repr(again) == repr(in_beta()) and again.drift is mf.USA and again.kappa == 0.42
    assert again.data.identical(in_beta().data)
    assert again.plot().axes[0].get_xlabel() == r"$\beta$"
    with pytest.raises(ValueError, match="is about a diagram in kappa"):
        again.transition()


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        ((mf.USA, CIRCLE, (1.0, 2.0)), {}, "itself is followed in beta"),
        ((mf.USA, CIRCLE, -1.0), {"beta": (1.0, 2.0)}, "kappa"),
        ((mf.USA, CIRCLE, 1.0), {"beta": (2.0, 1.0)}, "beta must be a range"),
        ((mf.USA(1.0), CIRCLE, (1.0, 2.0)), {"beta": (1.0, 2.0)}, "give the class mf.USA or mf.SA"),
    ],
)
def test_bad_ranges(arguments, options, match):
    with pytest.raises(ValueError, match=match):
        mf.branches(*arguments, **options)


def test_ground_state_and_transition():
    found = in_kappa().transition()
    assert found.order == "discontinuous" and found.kappa == pytest.approx(0.3914751008, abs=1e-10)
    assert found.jump == pytest.approx(0.66881, abs=5.1e-6)
    assert found.hysteresis == pytest.approx((0.3870689960, 0.4098585257), abs=1e-10)
    assert in_kappa().ground_state(found.kappa - 1e-3).order_parameter < 1e-12
    ordered = in_kappa().ground_state(found.kappa + 1e-3)
    assert ordered.order_parameter > 0.66 and ordered.free_energy < 0
    continuous = mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 3.0), stability=False).transition()
    assert continuous.order == "continuous" and continuous.kappa == pytest.approx(2)
    assert continuous.hysteresis is None and continuous.jump == 0
    softmax = mf.branches(mf.SA(2.0), CIRCLE, (1.0, 4.0), stability=False)
    with pytest.raises(mf.MeanfieldError, match="has no free energy"):
        softmax.ground_state(2.0)
    with pytest.raises(ValueError, match="value must be from 0"):
        in_kappa().states_at(1.0)


def test_follow_passes_the_fold_and_ends_at_the_uniform_state():
    start = mf.stationary_states(mf.Transformer(mf.USA(4.0), 0.395), CIRCLE)[0]
    states = list(mf.follow(start, kappa=(0.3, 0.5), decreasing=True))
    kappas = [s.kappa for s in states]
    assert states[0].kappa == 0.395 and min(kappas) == pytest.approx(0.38706899, abs=1e-3)
    assert states[-1].order_parameter < 0.05 and kappas[-1] > 0.4
    assert all(s.residual < 1e-11 for s in states)
    up = mf.follow(start, beta=(1.0, 6.0))
    first, second = next(up), next(up)  # lazily
    assert float(second.model.drift.beta) > 4.0 == float(first.model.drift.beta)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({}, TypeError, "range of either"),
        ({"kappa": (1.0, 2.0), "beta": (1.0, 2.0)}, TypeError, "range of either"),
        ({"kappa": (1.0, 2.0)}, ValueError, "outside the range"),
        ({"beta": (1.0, 2.0)}, ValueError, "no parameter 'beta'"),
        ({"vary": 3}, TypeError, "vary must be one parameter"),
    ],
)
def test_bad_input_of_follow(options, error, match):
    state = mf.stationary(mf.Transformer(mf.Kuramoto(), 3.0), CIRCLE.von_mises(0.0, 2.0))
    with pytest.raises(error, match=match):
        mf.follow(state, **options)


def test_what_is_followed_is_a_state():
    with pytest.raises(TypeError, match="state must be a StationaryState; got"):
        mf.follow(CIRCLE.uniform(), kappa=(1.0, 2.0))


def test_deflation_finds_further_states():
    model, guess = mf.Transformer(mf.USA(4.0), 0.395), CIRCLE.von_mises(0.0, 1.5)
    first = mf.stationary(model, guess)
    second = mf.stationary(model, guess, apart_from=[first])
    assert first.converged and second.converged
    sizes = sorted([first.order_parameter, second.order_parameter])
    assert sizes == pytest.approx([0.3320786805, 0.7044351731], abs=1e-9)
    with pytest.raises(TypeError, match="apart_from"):
        mf.stationary(model, guess, apart_from=[guess])


@pytest.mark.long
def test_states_with_one_to_five_clusters():
    states = mf.stationary_states(mf.Transformer(mf.USA(6.0), 1.0), CIRCLE)
    energies = [s.free_energy for s in states]
    assert len(states) == 6 and energies == sorted(energies)
    periods = [int(np.flatnonzero(np.abs(s.legendre_moments) > 1e-6)[0]) + 1 for s in states[:-1]]
    assert periods == [1, 2, 3, 4, 5] and np.abs(states[-1].legendre_moments).max() < 1e-9
    assert len(mf.stationary_states(mf.Transformer(mf.USA(6.0), 1.0), CIRCLE, count=2)) == 2


def test_states_are_found_next_to_onsets_and_folds():
    """r^2 ~ kappa - 2 next to the pitchfork; two states on one side of a fold, none beyond."""
    found = mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 3.0), stability=False)
    for excess in (1e-6, 1e-4, 1e-3):
        (_, (number, state)) = found.states_at(2 + excess)
        assert number == 1
        assert state.order_parameter**2 == pytest.approx(excess, rel=2 * excess + 1e-5)
    assert len(found.states_at(2 - 1e-6)) == 1
    (fold,) = in_kappa().special("fold")
    for part in (1e-8, 1e-5, 1e-3):
        _, (_, one), (_, other) = in_kappa().states_at(fold.value * (1 + part))
        gap = abs(one.order_parameter - other.order_parameter)
        assert gap == pytest.approx(2.536 * part**0.5, rel=0.05)
        assert len(in_kappa().states_at(fold.value * (1 - part))) == 1
    assert len(in_kappa().states_at(fold.value)) == 2
