"""Onsets of two degrees close together: what hides next to the uniform state is found, or said."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import gegenbauer

import meanfield as mf
from meanfield.bifurcation.bases import AxialHarmonics
from meanfield.bifurcation.branch_switching import BranchSearch
from meanfield.bifurcation.equation import MomentEquation
from meanfield.bifurcation.normal_forms import normal_form, order_of, rays, weak_transition


def cosines(m, low=1):
    """W = cos(low theta) + m cos(2 low theta)."""
    return mf.CosineSeries([0.0, *np.eye(2 * low)[low - 1] + m * np.eye(2 * low)[-1]])


@cache
def diagram(m, **options):
    return mf.branches(cosines(m), mf.Circle(16), (1.2, 2.4), **options)


def exponent(m, kappa, r):
    """mu ~ exp(kappa (r_1 cos + m r_2 cos 2)) by quadrature: its moments, and kappa F."""
    angles = np.pi * (np.arange(400) + 0.5) / 400
    first, second = np.cos(angles), np.cos(2 * angles)
    law = np.exp(kappa * (r[0] * first + m * r[1] * second))
    mass = law.mean()
    moments = np.array([(law * first).mean(), (law * second).mean()]) / mass
    return moments, kappa * (r[0] ** 2 + m * r[1] ** 2) / 2 - np.log(mass)


# m, first-order transition and fold, by quadrature and scipy: see validation/close_onsets.py
FIRST_ORDER = [
    (0.999, 1.7570831329, 1.7291180938),
    (1.0, 1.7564236881, 1.7284602188),
    (1.001, 1.7557641284, 1.7278025729),
    (1.01, 1.7498231162, 1.7218942757),
    (1.05, 1.7233285902, 1.6958826924),
]


@pytest.mark.repeats
@pytest.mark.parametrize(("m", "kappa", "fold"), FIRST_ORDER)
def test_first_order_transitions_next_to_a_resonance(m, kappa, fold):
    """Wrong before: continuous for 1 < m < 1.02, where a step passed the secondary bifurcation."""
    found = diagram(m)
    transition = found.transition()
    assert transition.order == "discontinuous" and not found.warnings
    assert transition.kappa == pytest.approx(kappa, abs=2e-10)
    assert transition.hysteresis == pytest.approx((fold, min(2, 2 / m)), abs=2e-10)
    state = min(found.special("transition"), key=lambda s: s.value).state
    r = state.legendre_moments[:2]
    moments, energy = exponent(m, transition.kappa, r)
    assert moments == pytest.approx(r, abs=1e-12) and abs(energy) < 1e-12


def test_the_secondary_bifurcation_is_as_near_as_the_onsets():
    """On the branch of degree 2, b^2 = -16 (1/(kappa m) - 1/2), degree 1 has b = 4/kappa - 2."""
    for m in (1.001, 1.01):
        (place,) = diagram(m).special("bifurcation", 1)
        r = place.state.legendre_moments[1]
        assert r == pytest.approx(m - 1, rel=5 * (m - 1))
        assert place.kappa * m / 2 - 1 == pytest.approx((m - 1) ** 2 / 2, rel=0.1)
        moments, _ = exponent(m, place.kappa, [0.0, r])
        assert moments[1] == pytest.approx(r, abs=1e-12)
        assert place.kappa * (1 + r) / 2 == pytest.approx(1, abs=1e-10)  # kappa E cos^2 = 1


@pytest.mark.repeats
@pytest.mark.parametrize("m", [1.3, 1.5, 2.0])
def test_far_from_the_resonance_the_transition_is_continuous(m):
    transition = diagram(m).transition()
    assert transition[:2] == ("continuous", 2 / m) and transition.hysteresis is None


def test_rays_of_two_amplitudes():
    """At m = 1: r ~ (2 sqrt 2, 2), kappa = 2 (1 -+ t/sqrt 6), by the terms a^2 b."""
    equation = MomentEquation(cosines(1.0), AxialHarmonics(2, 0, 8))
    for one, other in ((1, 2), (2, 1)):
        form = normal_form(equation, one)
        assert [*form.close] == [other]
        *mixed, pure = sorted(rays(equation, form).rays, key=lambda ray: -abs(ray.linear))
        assert [abs(ray.linear) for ray in mixed] == pytest.approx([6**-0.5] * 2)
        for ray in mixed:
            assert np.abs(ray.direction[:2]) == pytest.approx([(2 / 3) ** 0.5, 3**-0.5])
        assert np.flatnonzero(pure.direction).tolist() == [1] and pure.linear == 0
        assert pure.quadratic == pytest.approx(form_of_two_angles())


def form_of_two_angles():
    """c_2 of a branch of degree 2 alone: that of degree 1 of the doubled angle, 1/4."""
    return normal_form(MomentEquation(mf.Kuramoto(), AxialHarmonics(2, 0, 8)), 1).quadratic


def test_rays_of_three_amplitudes():
    """On the circle Q is the gradient of (3 a^2 b + 6 a b c)/sqrt 2 /6 at equal onsets.

    Its extrema on the sphere are those of the cubic form, by an independent maximisation.
    """
    equation = MomentEquation(mf.CosineSeries([0.0, 1.0, 1.0, 1.0]), AxialHarmonics(2, 0, 12))
    form = normal_form(equation, 1)
    assert [*form.close] == [2, 3]
    found = rays(equation, form)
    assert found.complete and found.order == "discontinuous"
    angles = 2 * np.pi * np.arange(64) / 64
    waves = np.sqrt(2) * np.cos(np.outer([1, 2, 3], angles))

    def cubic(a):
        return -((a / np.linalg.norm(a) @ waves) ** 3).mean() / 2  # R_2 = -(kappa w)^2 E s^2 p/2

    ends = [minimize(cubic, a, tol=1e-12) for a in np.random.default_rng(0).normal(size=(30, 3))]
    least = min(end.fun for end in ends)
    assert max(abs(ray.linear) for ray in found.rays) == pytest.approx(-least, rel=1e-8)
    for ray in found.rays:
        a = ray.direction[:3]
        assert cubic(a) == pytest.approx(ray.linear, abs=1e-12) or ray.linear == 0
        assert approx_fprime(a, cubic) == pytest.approx(np.zeros(3), abs=1e-6)


@pytest.mark.parametrize("d", [3, 4, 8])
def test_three_onsets_on_spheres_are_discontinuous(d):
    """P_2 alone has c_1 = -(E p_2^3)/2 (circles have none), and mixed rays bend more."""
    basis = AxialHarmonics(d, 0, 12)
    legendre = [gegenbauer(l, (d - 2) / 2) for l in (1, 2, 3)]
    polynomials = [np.polynomial.Polynomial((c / c(1.0)).coeffs[::-1]) for c in legendre]
    drift = mf.Interaction(basis.sizes[:3] ** 2 @ polynomials, name="three")
    equation = MomentEquation(drift, basis)
    form = normal_form(equation, 1)
    assert [*form.close] == [2, 3]
    found = rays(equation, form)
    (alone,) = (ray for ray in found.rays if np.flatnonzero(ray.direction).tolist() == [1])
    assert abs(alone.linear) == pytest.approx((basis.values[1] ** 3 @ basis.weights) / 2)
    assert max(abs(ray.linear) for ray in found.rays) > abs(alone.linear)
    assert found.order == "discontinuous"


# degrees of equal multipliers, transition: of second order by each pair, of first order by all
THREE = [((3, 4, 5), 1.9533300321265827), ((1, 3, 5), 1.8378694171289034)]


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize(("degrees", "kappa"), THREE)
def test_three_onsets_are_discontinuous_where_each_two_are_continuous(degrees, kappa):
    """Degrees 3, 4, 5 were said to be continuous."""
    coefficients = np.isin(np.arange(6), degrees).astype(float)
    for left_out in degrees:
        pair = mf.CosineSeries(coefficients * (np.arange(6) != left_out))
        equation = MomentEquation(pair, AxialHarmonics(2, 0, 16))
        form = normal_form(equation, min(set(degrees) - {left_out}))
        assert form.close and rays(equation, form).order == "continuous"
    found = mf.branches(mf.CosineSeries(coefficients), mf.Circle(16), (1.7, 2.2), stability=False)
    assert found.transition().order == "discontinuous"
    assert found.transition().kappa == pytest.approx(kappa, abs=1e-10)
    state = min(found.special("transition"), key=lambda s: s.value).state
    r = state.legendre_moments[np.array(degrees) - 1]
    angles = np.pi * (np.arange(400) + 0.5) / 400
    waves = np.cos(np.outer(degrees, angles))
    law = np.exp(kappa * r @ waves)
    assert (waves @ law) / law.sum() == pytest.approx(r, abs=1e-12)
    assert kappa * r @ r / 2 - np.log(law.mean()) == pytest.approx(0, abs=1e-9)


def test_onsets_that_the_normal_form_does_not_decide_are_named():
    """Six amplitudes: no rays are computed."""
    drift = mf.CosineSeries([0.0, *np.ones(6)])
    found = mf.branches(drift, mf.Circle(16), (1.5, 2.2), degrees=(1,), secondary=False)
    assert any("onsets of degrees 1, 2, 3, 4, 5, 6 coincide" in text for text in found.warnings)
    equation = MomentEquation(drift, AxialHarmonics(2, 0, 16))
    assert order_of(equation, normal_form(equation, 1)) == "degenerate"
    assert found.transition().order == "discontinuous"  # by clustered states


@pytest.mark.long
def test_three_onsets_at_one_place():
    """The states of lowest free energy are found, whatever the rays of two amplitudes say."""
    drift = mf.CosineSeries([0.0, 1.0, 1.0, 1.0])
    found = mf.branches(drift, mf.Circle(16), (0.8, 2.4), stability=False)
    kappa = found.transition().kappa
    states = mf.stationary_states(mf.Transformer(drift, kappa), mf.Circle(16))
    assert min(state.free_energy for state in states) > -1e-11
    ordered = max(states, key=lambda state: state.order_parameter)
    assert ordered.order_parameter > 0.5 and ordered.free_energy < 1e-11


def test_what_is_closer_than_can_be_told_is_said():
    found = mf.branches(cosines(1 + 1e-7), mf.Circle(16), (1.2, 2.4), stability=False)
    assert found.transition().kappa == pytest.approx(1.7564236222, abs=1e-9)
    assert any("degrees 1 and 2 differ by 1.0e-07" in warning for warning in found.warnings)


@pytest.mark.parametrize("options", [{"degrees": (2,)}, {}], ids=str)
def test_a_state_on_no_branch_forbids_a_continuous_transition(options):
    """Of lower free energy at the onset, where it was not to be followed."""
    found = diagram(1.05, stability=False, secondary=False, **options)
    assert found.transition().order == "discontinuous" and np.isnan(found.transition().kappa)
    assert any("lies on no branch" in warning for warning in found.warnings)


def test_states_apart_from_the_others_are_followed(monkeypatch):
    """Should the branch of mixed states be missed, clustered densities lead to it."""
    monkeypatch.setattr(BranchSearch, "_crossed", lambda *_: [])
    found = mf.branches(cosines(1.05), mf.Circle(16), (1.2, 2.4), stability=False)
    order, kappa, *_ = found.transition()
    assert (order, kappa) == ("discontinuous", pytest.approx(1.7233285902, abs=2e-10))


def test_a_tricritical_onset_is_decided_by_the_next_order():
    """At m = 1/2 c_2 = 0; c_4 by r_1^2 and r_2 on the branch."""
    found = diagram(0.5)
    assert found.special("bifurcation", 0)[0].character == "degenerate"
    assert found.transition() == ("continuous", 2.0, 2.0, 0.0, None)
    form = normal_form(MomentEquation(cosines(0.5), AxialHarmonics(2, 0, 16)), 1)
    state = next(s for _, s in found.states_at(2.01)[1:])
    t = np.sqrt(2) * state.order_parameter
    assert 2 * (1 + form.quartic * t**4) == pytest.approx(2.01, abs=0.01 * t**2)


@pytest.mark.parametrize("m", [0.5005, 0.501])
def test_weak_first_order_transitions_are_those_of_the_normal_form(m):
    form = normal_form(MomentEquation(cosines(m), AxialHarmonics(2, 0, 16)), 1)
    transition, (kappa, t) = diagram(m).transition(), weak_transition(form)
    square = -3 * form.quadratic / (4 * form.quartic)
    predicted = 2 - 3 * form.quadratic**2 / (8 * form.quartic)
    assert (2 - transition.kappa) / (2 - predicted) == pytest.approx(1, abs=10 * square)
    assert transition.jump == pytest.approx(np.sqrt(square / 2), rel=10 * square)
    assert np.isnan(kappa) == np.isnan(t) == (square > 1e-4)


def test_a_transition_that_rounding_hides():
    """At m = 0.50001 the free energies differ by 1e-15."""
    transition = diagram(0.50001).transition()
    assert transition.order == "discontinuous" and transition.kappa < 2
    assert 2 - transition.kappa == pytest.approx(0.75 * (2 - transition.hysteresis[0]), rel=1e-3)


@pytest.mark.long
def test_other_pairs_of_degrees():
    """Degrees 2 and 4 are degrees 1 and 2 of half the angle; 1 and 3 do not meet at second order;
    on S^2 even degrees are discontinuous anyway."""
    half = mf.branches(cosines(1.001, 2), mf.Circle(16), (1.5, 2.4), stability=False)
    assert half.transition().kappa == pytest.approx(1.7557641284, abs=2e-10)
    for m in (1.0, 1.0001, 1.01):
        odd = mf.branches(
            mf.CosineSeries([0.0, 1.0, 0.0, m]), mf.Circle(16), (1.8, 2.1), stability=False
        )
        assert odd.transition()[:2] == ("continuous", pytest.approx(2 / m, rel=1e-14))
        assert not odd.warnings


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("d", [3, 5])
def test_resonances_on_spheres(d):
    """P_1 and P_2 with almost one multiplier: transition and both folds have a limit."""
    space, values = mf.Sphere(16) if d == 3 else mf.Zonal(d, 16), []
    for ratio in (1.0, 1.0001, 1.001, 0.999):
        # W = d t + ratio dim H_2 P_2
        slope = ratio * (d + 2) * (d - 1) / 2 * d / (d - 1)
        drift = mf.Interaction(np.polynomial.Polynomial([0, d, slope]), name=f"{ratio}")
        found = mf.branches(drift, space, (0.4, 1.3), stability=False)
        onsets = [s.value for s in found.special("bifurcation", 0)]
        assert sorted(onsets) == pytest.approx(sorted([1, 1 / ratio]), rel=1e-12)
        values.append(found.transition().kappa)
        assert all("count as one" in warning for warning in found.warnings)
    assert values == pytest.approx([values[0]] * 4, rel=1e-3)
    assert 2 * values[0] == pytest.approx(values[2] + values[3], abs=1e-6)


class Cosines(mf.ZonalDrift):
    """W = cos + m cos 2."""

    m: float

    def slope(self, t):
        return 1 + 4 * self.m * t


END = 1.267292504258  # m at which the first-order line meets the onset of degree 2


@cache
def plane(low):
    return mf.phase_diagram(Cosines(1.0), mf.Circle(16), vary={"m": (low, 2.5)})


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("low", [0.4, 1.1])
def test_a_phase_diagram_across_the_resonance(low):
    """No line before, and no warning: degree 2 is attracted most beyond m = 1, continuously."""
    found = plane(low)
    assert not found.warnings
    for m, kappa, fold in FIRST_ORDER:
        if m > low:
            assert found.kappa("transition", m) == pytest.approx(kappa, abs=2e-10)
            assert found.transition(m).hysteresis == pytest.approx((fold, min(2, 2 / m)), abs=2e-10)
    (end,) = found.end_points
    assert end[:2] == pytest.approx((END, 2 / END), abs=1e-10)


@pytest.mark.long
def test_the_order_of_the_transition_across_the_resonance():
    found = plane(0.4)
    for m, order in [(0.45, "continuous"), (0.5, "continuous"), (0.5001, "discontinuous"),
                     (0.6, "discontinuous"), (1.0, "discontinuous"), (1.25, "discontinuous"),
                     (END - 1e-6, "discontinuous"), (END + 1e-6, "continuous"),
                     (1.3, "continuous"), (2.0, "continuous")]:  # fmt: skip
        transition = found.transition(m)
        assert transition.order == order
        assert transition.onset == pytest.approx(min(2, 2 / m), rel=1e-12)
    here = diagram(1.05).transition()
    assert found.transition(1.05)[:4] == (here.order, *map(pytest.approx, here[1:4]))


def test_the_end_point_has_the_free_energy_of_the_uniform_state():
    """By quadrature: a state with the onset of degree 2, and F = 0."""
    states = mf.stationary_states(mf.Transformer(cosines(END), 2 / END), mf.Circle(32))
    state = max(states, key=lambda state: state.order_parameter)
    r = state.legendre_moments[:2]
    moments, energy = exponent(END, 2 / END, r)
    assert r[0] > 0.4 and moments == pytest.approx(r, abs=1e-12) and abs(energy) < 1e-11


@pytest.mark.long
def test_a_phase_diagram_across_the_resonance_is_kept(tmp_path):
    found = plane(1.1)
    again = mf.load(found.save(tmp_path / "plane.nc"))
    assert again.transition(1.2) == found.transition(1.2) and again.end_points == found.end_points
    assert "EndPoint" in repr(again)


def test_no_transition_is_listed_where_the_uniform_state_is_unstable():
    """Branches of cos + 1.3 cos 2 cross its free energy, while others lie below both."""
    found = mf.branches(mf.CosineSeries([0, 1.0, 1.3]), mf.Circle(32), (1.4, 2.1))
    assert found.special("bifurcation", 0)[0].value == pytest.approx(2 / 1.3, rel=1e-9)
    assert found.special("transition") == []
    with pytest.raises(ValueError, match="kind must be one of bifurcation, fold"):
        found.special("folds")


@pytest.mark.long
def test_no_transition_is_listed_in_a_field():
    """The uniform density is not stationary there, and its free energy compares with nothing."""
    field = mf.Potential(lambda x: 1e-3 * x[..., 0])
    model = mf.Transformer(mf.CosineSeries([0, 1.0, 1.0]) + field, kappa=2.0)
    found = mf.branches(model, mf.Circle(12), (1.2, 2.6))
    assert found.special("fold") and not found.special("transition")


class Paced(mf.ZonalDrift):
    """W = b cos + m (1 + pace (b - 1)) cos 2: the onsets of the two move with b at two paces."""

    b: float
    pace: float
    m: float

    def slope(self, t):
        return self.b + 4 * self.m * (1 + self.pace * (self.b - 1)) * t


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize(("pace", "m"), [(3.0, 1.0), (0.3, 1.01), (-1.0, 1.01)])
def test_onsets_that_move_at_two_paces_along_a_parameter(pace, m):
    """All states at kappa = 2 are those of diagrams in kappa."""
    found = mf.branches(Paced(1.0, pace, m), mf.Circle(16), 2.0, vary={"b": (0.8, 1.2)})
    assert not found.warnings
    for b in (0.95, 1.02, 1.15):
        drift = mf.CosineSeries([0.0, b, m * (1 + pace * (b - 1))])
        known = mf.branches(drift, mf.Circle(16), (1.5, 2.1))
        states = [
            {tuple(np.round(np.abs(s.legendre_moments[:2]), 8)) for _, s in one.states_at(value)}
            for one, value in ((found, b), (known, 2.0))
        ]
        assert states[0] == states[1]


@pytest.mark.parametrize("pace", [3.0, -2.0])
def test_rays_at_two_paces(pace):
    """Of (1/kappa - 1/2) a - a b/4 and pace (...) b - a^2/8: a^2 = 2 pace b^2, if that is > 0."""
    equation = MomentEquation(cosines(1.0), AxialHarmonics(2, 0, 8))
    form, paces = normal_form(equation, 1), np.ones(8)
    paces[1] = pace
    *mixed, pure = sorted(rays(equation, form, paces).rays, key=lambda ray: -abs(ray.linear))
    assert pure.linear == 0 and len(mixed) == (2 if pace > 0 else 0)
    for ray in mixed:
        a, b = ray.direction[:2]
        assert a**2 == pytest.approx(2 * pace * b**2)


@pytest.mark.long
def test_an_onset_that_hardly_moves_with_the_parameter_is_named():
    """Degree 1 has nearly its onset for all strengths of degree 2: no ray tells its states."""
    drift = 1.0 * mf.Kuramoto() + 1.0 * mf.CosineSeries([0.0, 0.0, 1.0])
    found = mf.branches(drift, mf.Circle(16), 2.0002, vary={"factors[1]": (0.8, 1.3)})
    assert any("of degrees 1 and 2 differ by 1.0e-04 of kappa" in text for text in found.warnings)
    assert any("of degrees 1 and 2 coincide" in text for text in found.warnings)


@pytest.mark.long
def test_a_special_point_of_a_finer_branch_is_that_of_a_coarser_one():
    """Raised an error: the branch of degree 2 is resolved by fewer moments than the other."""
    drift = 1.0 * mf.Kuramoto() + 1.0 * mf.CosineSeries([0.0, 0.0, 1.0])
    found = mf.branches(drift, mf.Circle(16), 2.02, vary={"factors[0]": (0.7, 1.4)})
    place = min(found.special("bifurcation", 2), key=lambda s: s.value)
    r = place.state.legendre_moments[1]
    assert place.value * 2.02 * (1 + r) / 2 == pytest.approx(1, abs=1e-10)
    assert place.state.residual < 1e-10
