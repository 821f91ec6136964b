"""What is said where a diagram or a state is not what one might think it is."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ive

import meanfield as mf
from meanfield.bifurcation import branch_switching
from meanfield.bifurcation.branches import Following
from meanfield.bifurcation.continuation import DenseCurve
from meanfield.bifurcation.stability import stability_of

CIRCLE = mf.Circle(16)
EAST = mf.Field(lambda x: np.eye(2)[0] * np.ones_like(x))


@pytest.mark.long
def test_high_orders_are_looked_at_where_high_degrees_are_attracted():
    """P_6 attracts only degree 6: perturbations of order 5 grow fastest."""
    drift = mf.Interaction(np.polynomial.legendre.Legendre.basis(6), name="P_6")
    found = mf.branches(
        drift,
        mf.Sphere(16),
        (11.5, 13.5),
        degrees=[6],
        max_points=30,
        secondary=False,
        save_at=[12],
    )
    assert found.data.sizes["order"] == 7
    state = next(s for number, s in found.saved if number == 1)
    every = stability_of(state.equation, state.legendre_moments, state.kappa, 200)
    assert state.stability(1).gap == pytest.approx(every.gap, abs=1e-9)
    assert every.gap < -0.1 and every.orders[0] >= 4


@pytest.mark.long
def test_the_axis_of_a_state_is_not_that_of_its_noise():
    model = mf.Transformer(mf.USA(6.0), kappa=1.0)
    states = mf.stationary_states(model, CIRCLE)
    state = next(s for s in states if s.order_parameter < 1e-6 and s.legendre_moments[1] > 0.35)
    k = np.arange(len(state.density.coefficients))
    series = state.density.coefficients * np.exp(-0.7j * k)
    series[1] += 1e-10
    turned = mf.Density(state.density.space, series)
    assert mf.stationary(model, turned).free_energy == pytest.approx(state.free_energy, abs=1e-9)
    assert mf.stability(model, turned).gap == pytest.approx(state.stability().gap, abs=1e-6)


def test_a_transition_needs_the_first_onset():
    for span in ((0.3, 0.7), (0.63, 0.7)):
        found = mf.branches(mf.USA(4.0), CIRCLE, span, degrees=[2], stability=False)
        with pytest.raises(ValueError, match="unstable before"):
            found.transition()


@pytest.mark.long
def test_a_branch_ends_at_a_kink_of_its_family_and_names_it(monkeypatch):
    """The amplitude of the field is |h|: before, 500 points, and advice to raise max_points."""
    monkeypatch.setattr(branch_switching, "SHORT_STEPS", 10)
    found = mf.branches(lambda h: mf.Transformer(abs(h) * EAST, 3.0), CIRCLE, (-0.1, 0.02))
    kink, *others = found.warnings
    assert "no derivative by s at s = 0, where curves end" in kink
    assert others and all("its steps become shorter without end" in other for other in others)
    last = found.data.s.values[found.data.branch.values == 0][-1]
    assert -0.01 < last < 0 and found.data.sizes["point"] < 100


@pytest.mark.long
@pytest.mark.parametrize("beside", [0.06, -0.002])
def test_a_weak_kink_of_a_family_changes_no_state_and_no_fold(beside):
    """Slopes 1 and 1.2: points solve R = 0, folds make dR/dm singular, as without a kink.

    With mu ~ exp(x cos), x = 3 (r + h): r = I_1/I_0 (x), and 3 dr/dx = 1 at the fold.
    """
    order = lambda x: ive(1, x) / ive(0, x)  # noqa: E731
    x = brentq(lambda x: 3 * (1 - order(x) / x - order(x) ** 2) - 1, 0.5, 5, xtol=1e-14)
    fold = order(x) - x / 3
    place = fold - beside
    kinked = lambda s: s + 0.2 * max(s - place, 0.0)  # noqa: E731
    model = lambda s: mf.Transformer(mf.Kuramoto() + kinked(s) * EAST, 3.0)  # noqa: E731
    found = mf.branches(model, CIRCLE, (-0.02, fold + 0.03))
    (here,) = found.special("fold")
    assert not found.warnings and kinked(here.value) == pytest.approx(fold, abs=1e-10)
    r = found.data.moments.values[:, 0]
    h = np.vectorize(kinked)(found.data.s.values)
    turned = np.abs(h) < 1e-9  # without a field all states of a ring are stationary
    assert np.abs(r - order(3 * (r + h)))[~turned].max() < 1e-11 and (~turned).sum() > 30
    assert len(found.states_at(place)) == (3 if place < fold else 1)


def test_two_onsets_at_one_place():
    """W = x + 2 x^2 attracts degrees 1 and 2 alike: followed, or said."""
    drift = mf.Interaction(np.polynomial.Polynomial([0, 1, 2]), name="resonant")
    found = mf.branches(drift, CIRCLE, (1.0, 4.0), stability=False)
    followed = {s.degree for s in found.special("bifurcation", 0) if s.status == "exact"}
    lost = [warning for warning in found.warnings if "no branch was found" in warning]
    assert len(followed) + len(lost) == 2


def test_onsets_that_were_not_reached_before_ctrl_c_are_no_failures(monkeypatch):
    monkeypatch.setattr(Following, "at", lambda *_: True)
    found = mf.branches(mf.USA(4.0), CIRCLE, (0.3, 0.7), stability=False)
    assert [s.status for s in found.special("bifurcation", 0)] == ["exact", "not followed"]
    assert len(found.warnings) == 1 and "was interrupted" in found.warnings[0]


@pytest.mark.parametrize("name", ["kappa", "branch", "a/b", 1])
def test_names_of_observables_are_their_own(name):
    with pytest.raises(ValueError, match="a name of observables must be printable"):
        mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 3.0), observables={name: lambda mu: 1.0})


def test_known_states_in_any_collection():
    model, guess = mf.Transformer(mf.USA(4.0), 0.395), CIRCLE.von_mises(0.0, 1.5)
    first = mf.stationary(model, guess)
    second = mf.stationary(model, guess, apart_from=(s for s in [first]))
    assert abs(second.order_parameter - first.order_parameter) > 0.1
    assert mf.stationary(model, first.density, apart_from=[first]).status == "known"
    with pytest.raises(ValueError, match="apart_from has states on"):
        mf.stationary(model, mf.Sphere(16).uniform(), apart_from=[first])
    with pytest.raises(TypeError, match="apart_from"):
        mf.stationary(model, guess, apart_from=1.0)


@pytest.mark.long
def test_slow_decay_of_clusters_is_not_a_loss_of_symmetry():
    found = mf.branches(mf.USA(8.0), CIRCLE, (0.02, 0.6), degrees=[2, 3], max_points=60)
    assert all(s.status != "not located" for s in found.special_points)


def test_counts_are_whole_numbers():
    state = mf.stationary(mf.Transformer(mf.Kuramoto(), 3.0), CIRCLE.von_mises(0.0, 2.0))
    for count in (0, -3, 2.5):
        with pytest.raises(ValueError, match="count"):
            state.stability(count)
    assert len(list(mf.follow(state, kappa=(2.0, 4.0), max_points=1))) == 1
    found = mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 3.0), degrees=[1], max_points=1)
    assert len(found.ends) == 1 and (found.data.branch == 1).sum() == 1


def test_high_onsets_are_followed_when_they_are_asked_for():
    drift = mf.Interaction(lambda t: np.cos(14 * np.arccos(np.clip(t, -1, 1))), name="T_14")
    found = mf.branches(drift, CIRCLE, (1.0, 4.0), stability=False)
    assert not found.ends and "degrees above 12" in found.warnings[0]
    asked = mf.branches(drift, CIRCLE, (1.0, 4.0), degrees=[14], stability=False)
    plain = mf.branches(mf.Kuramoto(), CIRCLE, (1.0, 4.0), stability=False)
    assert not asked.warnings and asked.special_points[0].value == pytest.approx(2.0, abs=1e-12)
    high, low = (d.states_at(3.0)[1][1] for d in (asked, plain))
    assert high.legendre_moments[13] == pytest.approx(low.order_parameter, abs=1e-12)


def test_a_branch_that_is_not_begun_is_missing(monkeypatch, tmp_path):
    solved = DenseCurve.solved
    monkeypatch.setattr(
        DenseCurve, "solved",
        lambda self, start, row, value, most=None: (
            None if value < 0 else solved(self, start, row, value, most)
        ),
    )  # fmt: skip
    legendre = mf.Interaction(np.polynomial.legendre.Legendre.basis(2), name="P_2")
    found = mf.branches(legendre, mf.Sphere(16), (4.0, 6.0), stability=False, max_points=3)
    assert "a branch that leaves the onset of degree 2" in found.warnings[0]
    assert mf.Diagram.load(found.save(tmp_path / "found.nc")).warnings == found.warnings


@pytest.mark.parametrize(
    ("degrees", "error", "match"),
    [
        ((), ValueError, "one at least"),
        (1, TypeError, "degrees must be an array"),
        ([1.5], ValueError, "whole number"),
        ([1, 1], ValueError, "different"),
        ([400], ValueError, "from 1 to (256|32)"),
    ],
)
def test_degrees(degrees, error, match):
    with pytest.raises(error, match=match):
        mf.branches(mf.USA(1.0), CIRCLE, (1.0, 2.0), degrees=degrees)
    with pytest.raises(error, match=match):
        mf.phase_diagram(mf.USA, CIRCLE, (1.0, 2.0), degrees=degrees)


@pytest.mark.long
def test_questions_that_a_diagram_cannot_answer():
    found = mf.branches(mf.USA, CIRCLE, 1.0, beta=(0.5, 2.0), stability=False)
    with pytest.raises(ValueError, match="has beta as its parameter"):
        found.transition()
    with pytest.raises(
        ValueError, match=r"value must be from 0.5 to 2, where this diagram has beta"
    ):
        found.states_at("a")
    empty = mf.branches(mf.Kuramoto(), CIRCLE, (0.5, 1.5), stability=False)
    with pytest.raises(ValueError, match=r"no onset for 0\.5 < kappa < 1\.5"):
        empty.transition()
    phases = mf.phase_diagram(mf.SA, CIRCLE, (0.5, 2.0))
    with pytest.raises(ValueError, match="beta must be a finite number"):
        phases.kappa("fold", "x")


@pytest.mark.parametrize("value", [[1.0, 2.0], 1j, "a"])
def test_observables_are_numbers_before_the_run(value):
    with pytest.raises(TypeError, match="one real number"):
        mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 3.0), observables={"top": lambda mu: value})


def test_branches_stop_where_they_are_told_and_say_so():
    """The subcritical branch of USA(4): one fold, or the first state of order 0.5."""
    folded = mf.branches(mf.USA(4.0), CIRCLE, (0.3, 0.6), degrees=[1], until=1)
    assert folded.ends == ["stopped"] and len(folded.special("fold")) == 1
    where = f"kappa = {folded.data.kappa.values[-1]:.6g}"
    assert any("until" in text and where in text for text in folded.warnings)
    ordered = mf.branches(
        mf.USA(4.0),
        CIRCLE,
        (0.3, 0.6),
        degrees=[1],
        until=lambda state: state.order_parameter > 0.5,
    )
    r = ordered.data.order_parameter.values[ordered.data.branch.values == 1]
    assert r[-1] > 0.5 >= r[-2] and ordered.ends == ["stopped"]


@pytest.mark.long
def test_a_branch_through_a_state_stops_on_both_sides():
    model = mf.Transformer(mf.Kuramoto() + 0.05 * EAST, 3.0)
    start = mf.Circle(32).von_mises(np.pi, 3.0)
    found = mf.branches(model, start, vary={"factors[1]": (-0.5, 0.5)}, secondary=False,
                        until=lambda state: abs(state.value) > 0.3)  # fmt: skip
    values = found.data["factors[1]"].values[found.data.branch.values == 1]
    assert 0.3 < values[0] < 0.5 and -0.5 < values[-1] < -0.3
    assert all("until" in text for text in found.warnings)


def test_a_family_that_changes_its_kind_of_models_says_where():
    def family(s):
        return mf.Transformer(mf.Kuramoto() + s * EAST, 3.0 if s < 0.5 else lambda t: 3.0 + t)

    with pytest.raises(mf.MeanfieldError, match=r"s = 0.9"):
        mf.branches(family, CIRCLE, (0.1, 0.9))

    def between(s):
        return (
            mf.Transformer(mf.Kuramoto() + s * EAST, lambda t: 3.0 + t)
            if 0.4 < s < 0.6
            else family(0.1)
        )

    with pytest.raises(mf.MeanfieldError, match=r"s = 0.4"):
        mf.branches(between, CIRCLE, (0.1, 0.9))
