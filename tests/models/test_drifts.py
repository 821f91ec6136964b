"""The drifts: their multipliers by dimension, their limits, and the rates they predict."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield import SA, USA, Interaction, Kuramoto
from meanfield.core.descriptions import build, describe
from meanfield.core.forms import Reading
from meanfield.spaces.kernels import exponential_multipliers

DIMENSIONS = [2, 3, 4, 8]
reproducible = settings(deadline=None, derandomize=True, max_examples=40)


def growth(drift, degree, d):
    """Rate l (l + d - 2) W_l of a harmonic on top of the uniform state, l = 1, ..., degree."""
    l = np.arange(1, degree + 1)
    return l * (l + d - 2) * drift.attraction(degree, d)[1:]


# Attention ---------------------------------------------------------------------------------


@reproducible
@given(st.floats(0.01, 600), st.sampled_from(DIMENSIONS), st.sampled_from([1, -1]))
def test_the_weights_are_the_kernel_over_beta(size, d, sign):
    beta = sign * size
    scaled = exponential_multipliers(beta, 9, d)
    usa, sa = USA(beta), SA(beta)
    # Products and quotients of the same numbers in another order.
    np.testing.assert_allclose(
        usa.attraction(9, d)[1:] * beta / np.exp(size), scaled[1:], rtol=1e-14
    )
    np.testing.assert_allclose(sa.attraction(9, d)[1:] * beta * scaled[0], scaled[1:], rtol=1e-14)
    np.testing.assert_allclose(sa.normaliser(9, d), scaled / scaled[0], rtol=1e-14)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_at_beta_zero_both_are_kuramoto(d):
    expected = [0, 1 / d, 0, 0, 0]
    for drift in (Kuramoto(), USA(0.0), SA(0)):
        np.testing.assert_array_equal(drift.attraction(4, d), expected)
    np.testing.assert_array_equal(SA(0.0).normaliser(4, d), [1, 0, 0, 0, 0])


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("drift", [USA, SA])
@pytest.mark.parametrize("beta", [1e-4, -1e-4, 1e-9])
def test_the_limit_of_small_beta_is_kuramoto(drift, beta, d):
    difference = drift(beta).attraction(4, d) - Kuramoto().attraction(4, d)
    # The next terms are beta / (d (d + 2)) in degree 2 and of order beta^2 in the others.
    assert np.abs(difference[2]) == pytest.approx(abs(beta) / (d * (d + 2)), rel=1e-3)
    # The logarithm of 2/beta in the Bessel formula costs about 60 roundings.
    assert np.abs(np.delete(difference, 2)).max() <= beta**2 + 1e-14


@pytest.mark.parametrize("drift", [USA, SA])
def test_an_array_of_betas_is_its_entries(drift):
    table = np.array([[0.0, 2.0, -1.0], [50.0, 0.3, 400.0]])
    ensemble = drift(table)
    assert ensemble.shape == (2, 3)
    for d in DIMENSIONS:
        weights = ensemble.attraction(6, d)
        constants = ensemble.interaction(6, d)
        for index, beta in np.ndenumerate(table):
            np.testing.assert_array_equal(weights[index], drift(beta).attraction(6, d))
            np.testing.assert_array_equal(constants[index], drift(beta).interaction(6, d))


def test_degree_zero_has_no_effect_on_the_drift_but_carries_the_energy():
    """E of the uniform state is lambda_0 / 2 beta: I_0(beta) / 2 beta on the circle."""
    for drift in (USA(1.0), SA(1.0)):
        assert drift.attraction(3, 2)[0] == 0
        # I_0(1) = 1.2660658777520084 (DLMF 10.25.2), 13 digits.
        assert drift.interaction(3, 2)[0] == pytest.approx(1.2660658777520084, rel=1e-13)
    assert USA(0.0).interaction(3, 2)[0] == 0


@pytest.mark.parametrize("degree", [0, 1])
def test_the_lowest_degrees_are_no_exception(degree):
    for drift in (USA(2.0), SA(2.0), Kuramoto(), Interaction(np.exp)):
        assert drift.attraction(degree, 2).shape == (degree + 1,)
        assert drift.interaction(degree, 2).shape == (degree + 1,)


# Rates and thresholds of the literature ----------------------------------------------------


@pytest.mark.parametrize(
    ("drift", "d", "rates"),
    [
        (USA(1.0), 2, [0.5651591, 0.54299068, 0.19951582]),
        (USA(5.0), 2, [4.8671284, 14.004492, 18.59607, 16.346351, 10.789873]),
        (USA(7.0), 2, [22.291299, 70.863606, 109.51134, 116.58, 96.019594]),
        (USA(1.0), 3, [0.73575888, 0.42937722, 0.12078109]),
        (USA(5.0), 3, [4.7495445, 9.2595904, 9.9780862]),
    ],
    ids=["d2-beta1", "d2-beta5", "d2-beta7", "d3-beta1", "d3-beta5"],
)
def test_growth_rates_of_the_uniform_state(drift, d, rates):
    """Bruno, Pasqualotto and Agazzi, ICLR 2025, rates k^2 I_k / beta; values to 7 digits."""
    np.testing.assert_allclose(growth(drift, len(rates), d), rates, rtol=1e-7)


@pytest.mark.parametrize(
    ("beta", "d", "fastest", "rate"),
    [
        (1.0, 2, 1, 0.4463899659),
        (5.0, 2, 3, 0.6826783336),
        (9.0, 2, 4, 0.7044970293),
        (20.0, 2, 6, 0.7201054252),
        (1.0, 3, 1, 0.626070571),
        (9.0, 3, 4, 0.7031447608),
    ],
)
def test_the_fastest_degree_of_softmax_attention(beta, d, fastest, rate):
    rates = growth(SA(beta), 12, d)
    assert rates.argmax() + 1 == fastest
    assert rates.max() == pytest.approx(rate, rel=2e-9)  # given to 9 or 10 digits


def test_the_fastest_rate_of_softmax_attention_tends_to_two_over_e():
    errors = [2 / np.e - growth(SA(beta), 400, 2).max() for beta in (1e2, 1e3, 1e4)]
    # The maximum over l behaves like 2/e (1 - c/beta), and l is a whole number: order 1.
    assert np.all(np.array(errors) > 0)
    assert errors[2] < 1e-3


def test_one_switch_of_the_fastest_degree_is_exact():
    """The rates of degrees 1 and 2 on the circle cross at beta = 1.0444568621078."""
    first, second = growth(USA(1.0444568621078), 2, 2)
    assert first == pytest.approx(second, rel=1e-13)  # 14 digits, rate of change of order 1


@pytest.mark.parametrize(
    ("beta", "critical"),
    [
        (1.0, [1.769413238, 7.366608957, 45.1092039, 365.3474891]),
        (5.0, [0.2054599575, 0.2856226422, 0.4839732187, 0.9788117092]),
        (10.0, [3.743932531e-3, 4.383044867e-3, 5.687050538e-3, 8.153344598e-3]),
    ],
)
def test_critical_noise_is_one_over_the_weight(beta, critical):
    np.testing.assert_allclose(1 / USA(beta).attraction(4, 2)[1:], critical, rtol=1e-9)  # 10 digits


# Interaction -------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
def test_an_interaction_with_the_exponential_is_attention(d):
    beta = 3.0
    general = Interaction(lambda t: np.exp(beta * t) / beta)
    # Converged quadrature; off the circle its nodes are good to 1e-12.
    np.testing.assert_allclose(
        general.attraction(8, d)[1:], USA(beta).attraction(8, d)[1:], rtol=0, atol=1e-11
    )
    np.testing.assert_allclose(
        general.interaction(8, d), USA(beta).interaction(8, d), rtol=0, atol=1e-11
    )


@reproducible
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=10))
def test_a_chebyshev_series_gives_half_its_coefficients_on_the_circle(series):
    expected = np.zeros(13)
    expected[: len(series)] = np.array(series) / 2
    expected[0] = series[0]
    # A mean of 256 sums of at most 10 terms of size 5.
    computed = Interaction.chebyshev(series).interaction(12, 2)
    np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-13)


def test_high_terms_of_a_chebyshev_series_do_not_alias_into_low_ones():
    """cos(1025 theta) looks like cos(theta) on 128 and on 256 nodes alike."""
    series = np.zeros(1026)
    series[1025] = 1
    weights = Interaction.chebyshev(series).attraction(4, 2)
    np.testing.assert_allclose(weights, 0, rtol=0, atol=1e-12)  # 1025 roundings


@pytest.mark.parametrize(
    "drift",
    [
        Interaction(np.exp),
        Interaction(lambda t: 1 / (1.2 - t), name="pole"),
        Interaction.chebyshev([0.0, 1.0, 0.0, -0.5]),
    ],
    ids=["exp", "pole", "series"],
)
def test_the_description_of_an_interaction_rebuilds_it(drift):
    again = build(mf.Drift, json.loads(json.dumps(describe(drift))))
    # Rounding of quadrature, on a scale given by the largest value 5 of the pole.
    np.testing.assert_allclose(again.attraction(20, 2), drift.attraction(20, 2), rtol=0, atol=1e-13)


def test_the_description_of_a_smooth_interaction_is_short():
    """Coefficients of rounding errors are left out: exp has 14 that count."""
    series = build(mf.Drift, describe(Interaction(np.exp)))
    assert series.polynomial_degree < 20


def test_a_series_whose_derivative_is_lost_can_be_compared():
    given = Interaction(np.exp, derivative=np.exp)
    lost = build(mf.Drift, describe(given), Reading(result=True))
    assert lost == lost.replace() and lost != given and hash(lost) == hash(lost.replace())


def test_the_description_names_the_potential():
    def hat(t):
        return t

    assert describe(Interaction(hat))["name"].endswith("hat")
    assert describe(Interaction(hat, name="Hat"))["name"] == "Hat"
    expected = {"kind": "CosineSeries", "coefficients": [0.0, 1.0]}
    assert describe(Interaction.chebyshev([0, 1])) == expected


# Objects -----------------------------------------------------------------------------------


def test_descriptions_are_plain_data():
    assert json.loads(json.dumps(describe(USA(4.0)))) == {"kind": "USA", "beta": 4.0}
    assert json.loads(json.dumps(describe(SA([1, 2])))) == {"kind": "SA", "beta": [1.0, 2.0]}
    assert describe(Kuramoto()) == {"kind": "Kuramoto"}
    assert repr(USA(4)) == "USA(beta=4.0)"
    assert repr(SA([1, 2])) == "SA(beta=[1.0, 2.0])"


def test_only_softmax_is_not_a_gradient_flow():
    assert not SA(1.0).gradient_flow
    for drift in (USA(1.0), Kuramoto(), Interaction(np.exp)):
        assert drift.gradient_flow
        assert drift.normaliser(4, 2) is None


def test_beta_is_a_copy_that_cannot_be_changed():
    beta = np.array([1.0, 2.0])
    drift = USA(beta)
    beta[0] = 9
    np.testing.assert_array_equal(drift.beta, [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        drift.beta[0] = 3


@pytest.mark.parametrize("drift", [USA, SA])
@pytest.mark.parametrize("beta", [np.nan, np.inf, [1.0, -np.inf]], ids=str)
def test_beta_must_be_finite(drift, beta):
    with pytest.raises(ValueError, match="beta must be finite"):
        drift(beta)


def test_usa_refuses_what_overflows_and_recommends_sa():
    for beta in (701.0, [1.0, -701.0]):
        with pytest.raises(ValueError, match=r"\|beta\| <= 700.*SA takes any beta"):
            USA(beta)
    assert np.isfinite(USA(700.0).attraction(9, 2)).all()


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("beta", [701.0, 1e6, -1e6, 1e10])
def test_softmax_takes_any_beta(beta, d):
    """W_l tends to 1/beta: the kernel forgets everything but the direction."""
    weights = SA(beta).attraction(4, d)[1:] * abs(beta)
    signs = [1, -1, 1, -1] if beta < 0 else [1, 1, 1, 1]
    # lambda_l / lambda_0 = 1 - l (l + d - 2) / 2 beta + O(beta^-2), with l (l + d - 2) <= 40.
    np.testing.assert_allclose(weights, signs, rtol=41 / 2 / abs(beta) + 1e-12)


def test_the_energy_of_softmax_at_large_beta_may_be_asked_for():
    """exp(beta) overflows beyond 709: the energy may be infinite, the question is allowed."""
    weights = SA(1000.0).interaction(3, 2)
    assert weights.shape == (4,)
    assert (weights > 0).all()


def test_slope_and_weight_are_evaluated_once_where_they_are_one_function():
    class Alike(mf.models.ZonalDrift):
        def slope(self, t):
            return 1 + t**2

        weight = slope

    class Other(Alike):
        def slope(self, t):
            return 2 + t**2

    t = np.linspace(-1, 1, 7)
    for drift in (
        mf.SA(2.0),
        mf.USA(2.0),
        Alike(),
        Other(),
        (mf.USA(1.0) - mf.Kuramoto()).as_zonal(),
    ):
        slope, weight = drift.slope_and_weight(t)
        np.testing.assert_array_equal(slope, drift.slope(t))
        np.testing.assert_array_equal(weight, drift.weight(t))
        assert (weight is slope) == (type(drift) in (mf.SA, Alike))
