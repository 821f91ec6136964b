"""A range shows every state in it, wherever the branches begin and whatever they meet."""

import numpy as np
import pytest
from scipy.special import ive

import meanfield as mf
from meanfield.bifurcation.bases import basis_on
from meanfield.bifurcation.branches import Following
from meanfield.bifurcation.continuation import curve_of
from meanfield.bifurcation.detection import located

CIRCLE = mf.Circle(24)
TURNS = mf.Interaction.chebyshev([0, -0.63, 0.23, 0.7, 0.66])  # a fourfold state bends twice
MEETS = mf.Interaction.chebyshev([0, -0.61, 1.59, -1.19, 0.35])  # a polar one meets a nematic one
SIDEWAYS = mf.Interaction.chebyshev([0, -0.2, 1.5, 0.8])  # two clusters move towards each other


def shapes(states) -> set:
    """Legendre moments but for what turns and reflections change."""
    return {tuple(np.abs(s.legendre_moments[:6]).round(7) + 0.0) for s in states}


def states_of(drift, space, span, value, range_of_beta=None):
    found = mf.branches(drift, space, span, beta=range_of_beta)
    assert not found.warnings
    return [state for _, state in found.states_at(value)]


@pytest.mark.repeats
@pytest.mark.parametrize("span", [(0.393, 0.405), (0.3995, 0.4005), (0.2, 0.8), (0.4, 0.42)])
def test_a_subcritical_branch_comes_down_into_the_range(span):
    found = mf.branches(mf.USA(4.0), CIRCLE, span, stability=False)
    assert not found.warnings and len(found.states_at(0.4)) == 3
    assert found.ground_state(0.4).free_energy == pytest.approx(-0.0377935680936, abs=1e-12)
    assert found.special("fold")[0].value == pytest.approx(0.387068995952, abs=1e-11)


@pytest.mark.long
def test_a_branch_that_is_lost_on_its_way_down_is_missed():
    """Its onset is at 1172, its fold at 434; above the range few moments are taken."""
    drift = mf.Interaction(
        lambda t: np.exp(60 * (t - 1)) / 60,
        derivative=lambda t: np.exp(60 * (t - 1)),
        name="narrow",
    )
    found = mf.branches(drift, CIRCLE, (430.0, 440.0), stability=False)
    assert len(found.states_at(435.0)) == 1
    (warning,) = [d for d in found.warnings if "degree 1 that comes down from above" in d]
    assert warning.endswith("take a range up to there.")


@pytest.mark.long
def test_a_branch_comes_in_after_it_has_turned_twice():
    """It falls to its fold at 4.42, rises to that at 5.22, and only then comes down to 4.14."""
    found = mf.branches(MEETS, mf.Zonal(5, 24), (4.1, 4.3), stability=False)
    wide = mf.branches(MEETS, mf.Zonal(5, 24), (0.5, 8.0), stability=False)
    states, others = ([s for _, s in d.states_at(4.2)] for d in (found, wide))
    assert not found.warnings and len(states) == 4 and shapes(states) == shapes(others)


def test_a_branch_comes_up_into_the_range():
    found = mf.branches(mf.Kuramoto(), CIRCLE, (3.0, 8.0))
    r = found.ground_state(5.0).order_parameter
    assert r == pytest.approx(ive(1, 5 * r) / ive(0, 5 * r), abs=1e-12) and r > 0.8
    assert found.transition().kappa == 2.0


@pytest.mark.long
def test_a_transition_below_the_range_is_that_of_a_wide_range():
    options = {"stability": False}
    above = mf.branches(mf.USA(4.0), CIRCLE, (0.5, 0.7), **options).transition()
    wide = mf.branches(mf.USA(4.0), CIRCLE, (0.3, 0.7), **options).transition()
    assert above.order == wide.order == "discontinuous"
    assert above.kappa == pytest.approx(wide.kappa, abs=1e-11)
    assert above.hysteresis == pytest.approx(wide.hysteresis, abs=1e-11)


@pytest.mark.long
@pytest.mark.parametrize("span, beta", [((1.0, 1.9), 1.5), ((1.9, 4.0), 3.0)])
def test_branches_enter_a_range_of_beta(span, beta):
    """kappa = 3 is beyond every onset of degree 1 for beta > 0."""
    states = states_of(mf.USA, CIRCLE, 3.0, beta, range_of_beta=span)
    searched = mf.stationary_states(mf.Transformer(mf.USA(beta), 3.0), CIRCLE)
    assert len(states) == len(shapes(states)) and shapes(searched) <= shapes(states)
    assert max(s.order_parameter for s in states) > 0.8


@pytest.mark.long
def test_a_branch_that_turns_within_a_range_of_beta_enters_at_its_upper_end():
    """At kappa = 0.402 the fold is at beta = 3.946, the onset at 4.029."""
    states = states_of(mf.USA, CIRCLE, 0.402, 4.0, range_of_beta=(3.9, 4.01))
    wide = states_of(mf.USA, CIRCLE, 0.402, 4.0, range_of_beta=(3.9, 4.1))
    assert shapes(states) == shapes(wide) and len(states) == 3
    assert not mf.branches(mf.USA, CIRCLE, 0.402, beta=(3.9, 3.94), stability=False).warnings


@pytest.mark.long
def test_a_branch_between_two_onsets_is_followed_once():
    """SA attracts degree 2 most at a medium beta: its branch begins and ends there."""
    found = mf.branches(mf.SA, CIRCLE, 12.0, beta=(0.5, 12.0), degrees=[2], stability=False)
    assert [s.degree for s in found.special("bifurcation", 0)] == [2, 2]
    assert found.ends == ["uniform"] and not found.warnings
    states = found.states_at(4.0)
    assert len(states) == 2 and states[1][1].legendre_moments[1] > 0.1


@pytest.mark.long
@pytest.mark.parametrize("drift, kappa", [(TURNS, 6.204), (SIDEWAYS, 7.0)])
def test_narrow_ranges_have_the_states_of_wide_ones(drift, kappa):
    narrow = states_of(drift, CIRCLE, (0.97 * kappa, 1.03 * kappa), kappa)
    wide = states_of(drift, CIRCLE, (0.1 * kappa, 1.1 * kappa), kappa)
    searched = mf.stationary_states(mf.Transformer(drift, kappa), CIRCLE)
    assert len(narrow) == len(shapes(narrow)) and len(narrow) > 4
    assert shapes(narrow) == shapes(wide) and shapes(searched) <= shapes(wide)
    assert all(s.residual < 1e-12 for s in wide)


def test_a_branch_ends_where_it_meets_one_of_more_symmetry():
    found = mf.branches(MEETS, mf.Zonal(5, 24), (0.5, 8.0), stability=False)
    assert not found.warnings and found.ends == ["bifurcation", "range", "range"]
    (polar,), (nematic,) = (found.special("bifurcation", branch) for branch in (1, 2))
    assert polar.value == pytest.approx(nematic.value, abs=1e-10)
    one, other = (s.state.legendre_moments[:24] for s in (polar, nematic))
    np.testing.assert_allclose(one, other, atol=1e-9)
    assert np.abs(polar.state.stability(4).eigenvalues).min() < 1e-8
    for kappa in (polar.value * 1.0005, 4.3, 4.8):
        states = [state for _, state in found.states_at(kappa)]
        assert len(states) == len(shapes(states))
    assert found.data.moments.values[found.data.branch.values == 1][:-1, 0].min() > 0


def test_images_of_states():
    circle, sphere = (basis_on(space) for space in (CIRCLE, mf.Sphere(24)))
    a = np.zeros(len(circle.degrees))
    a[[3, 7]] = 0.5, 0.1
    assert circle.images(a)[0][[3, 7]].tolist() == [-1, 1]
    assert sphere.images(a)[0][:4].tolist() == [-1, 1, -1, 1]
    noise = a + 1e-9
    kept = [basis.symmetric_part(a, noise) > 0 for basis in (circle, sphere)]
    np.testing.assert_array_equal(kept[0], circle.degrees % 4 == 0)
    np.testing.assert_array_equal(kept[1], sphere.degrees % 2 == 0)


def test_zeros_are_found_in_few_steps():
    """A smooth function of the parameter, at superlinear speed and from both sides."""
    curve = curve_of(mf.Kuramoto(), basis_on(CIRCLE), "kappa", (2.0, 3.0), None, 0.1)
    calls = []
    state = mf.stationary(mf.Transformer(mf.Kuramoto(), 2.6), CIRCLE.von_mises(0.0, 2.0))
    z = np.append(state.legendre_moments, np.log(2.6))
    start = curve.point(z, np.append(np.zeros(len(z) - 1), 1.0))
    end = curve.ahead(start, 0.1)

    def f(point):
        calls.append(point.value)
        return np.expm1(3 * (point.value - 2.65))

    found = located(curve, start, 0.1, f, f(start), f(end))
    assert found.status == "converged" and found.point.value == pytest.approx(2.65, abs=1e-12)
    assert len(calls) < 16 and found.interval[0] <= found.point.value <= found.interval[1]


ABOVE = [
    # The onset is in the range, the fold beyond is not.
    ([0, 0.81, -0.55, 1.91, -0.02, 1.12], mf.Zonal(4, 24), (1.5, 10.129), 8.0, -0.38169951816),
    # The onset is above the range; the branch first rises by 17 %.
    ([0, -1.49, -0.39, -1.25, 0.51, 0.7], mf.Zonal(5, 24), (16.6, 17.5), 17.0, -0.00196723031),
]


@pytest.mark.repeats
@pytest.mark.parametrize("c, space, span, kappa, energy", ABOVE)
def test_a_branch_that_was_above_the_range_comes_back(c, space, span, kappa, energy):
    found = mf.branches(mf.Interaction.chebyshev(c), space, span, stability=False)
    assert not found.warnings
    assert found.ground_state(kappa).free_energy == pytest.approx(energy, abs=1e-11)


def test_a_transition_by_a_fold_beyond_the_range():
    c, space, span, *_ = ABOVE[0]
    found = mf.branches(mf.Interaction.chebyshev(c), space, span, stability=False).transition()
    assert found.order == "discontinuous" and found.kappa == pytest.approx(5.452078286950, abs=1e-9)
    assert found.hysteresis == pytest.approx((4.9689360588, 10.1265822785), abs=1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize("below", [1e-5, 1e-3])
def test_a_range_may_end_just_below_an_onset(below):
    onset = 0.409858525749
    found = mf.branches(mf.USA(4.0), CIRCLE, (0.3, onset * (1 - below)), stability=False)
    assert not found.warnings and len(found.states_at(onset * (1 - below))) == 3
    values = found.data.kappa.values[found.data.branch.values > 0]
    assert values[1:-1].max() <= onset


@pytest.mark.long
def test_a_step_that_leads_to_another_curve_is_taken_again():
    drift = mf.Interaction.chebyshev([0, 1.38, -1, -0.01, -0.3, 0.74])
    found = mf.branches(drift, CIRCLE, (1.45, 6.1))
    finer = mf.branches(drift, CIRCLE, (1.45, 6.1), max_step=0.02, stability=False)
    one, other = (d.states_at(4.0)[1][1].legendre_moments[:12] for d in (found, finer))
    np.testing.assert_allclose(one, other, atol=1e-10)
    (breaking,) = found.special("symmetry breaking")
    assert not found.warnings and breaking.value == pytest.approx(3.28097413953, abs=1e-9)
    assert not found.special("bifurcation", 1)


@pytest.mark.long
@pytest.mark.parametrize(
    "c, span, exact",  # by quadrature, and brentq on the determinant of what breaks the symmetry
    [
        ([0, 0.46, 0.59, -0.51, 0.72, -1.27, 0.81], (3.3, 3.6), 2.515324164727),
        ([0, 1.25, -0.63, 0.95, 1.44, 0.77, -1.45], (3.0, 3.2), 3.08055108153553),
    ],
)
def test_where_a_threefold_state_loses_its_symmetry_in_two_ways(c, span, exact):
    found = mf.branches(mf.Interaction.chebyshev(c), CIRCLE, span)
    here = [
        s for s in found.special_points
        if abs(s.value - exact) < 1e-4 and s.kind in ("bifurcation", "symmetry breaking")
    ]  # fmt: skip
    assert {s.kind for s in here} == {"bifurcation", "symmetry breaking"}
    for special in here:
        assert special.value == pytest.approx(exact, abs=2e-12) and special.status == "converged"


@pytest.mark.parametrize("after", [3, 40])
def test_ctrl_c_in_a_diagram_in_beta(monkeypatch, after):
    """The request comes while a diagram in kappa is followed for the end of the range."""
    calls = []

    def at(self, *_):
        calls.append(1)
        return len(calls) > after

    monkeypatch.setattr(Following, "at", at)
    monkeypatch.setattr(Following, "stopped", property(lambda self: len(calls) > after))
    found = mf.branches(mf.USA, CIRCLE, 1.0, beta=(5.0, 6.5), progress=False)
    assert len(calls) < after + 20
    assert any("interrupted" in warning for warning in found.warnings)


@pytest.mark.parametrize("value", [3.0, 5.7])
def test_states_have_exactly_the_kappa_that_was_asked_for(tmp_path, value):
    """exp(log(kappa)) is kappa to rounding only."""
    assert np.exp(np.log(value)) != value
    found = mf.branches(mf.Kuramoto(), CIRCLE, (1.0, 6.0), save_at=[value], progress=False)
    again = mf.load(found.save(tmp_path / "diagram.nc"))
    for diagram in (found, again):
        states = [state for _, state in [*diagram.saved, *diagram.states_at(value)]]
        assert len(states) == 4 and {(s.kappa, s.value) for s in states} == {(value, value)}
    assert all(s.state.kappa == s.kappa for s in found.special_points if s.branch == 0)
