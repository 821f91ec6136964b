"""Advice on random networks: laws of the recursion and of weights, and a network that is drawn."""

import numpy as np
import pytest
from scipy.special import expit

import meanfield as mf
from meanfield.networks import Advice
from meanfield.networks.advice import crossing
from meanfield.networks.contexts import (
    critical_equiangular,
    critical_gaussian,
    critical_uniform_keys,
    of_gaussian,
    of_uniform_keys,
)
from meanfield.networks.initialisation import Overlaps, decorrelation

SCHEMES = [
    mf.PostLN(), mf.PreLN(), mf.PeriLN(), mf.MixLN(0.5), mf.NGPT(0.7), mf.SqrtScaling()
]  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_equal_weights_and_values_of_the_identity_are_layers_of_equiangular_tokens(scheme):
    n, step = 32, 0.125
    advice = Advice(n, 64, 8, 1, scheme, logits=0, values=0, identity=1, step=step, rho=0.2,
                    radius=2.0)  # fmt: skip
    model = mf.Transformer(mf.SA(0.0), normalisation=scheme)
    start = mf.Equiangular(n, rho=0.2, radius=2.0)
    if not scheme.has_radii:
        start = mf.Equiangular(n, rho=0.2)
    run = mf.solve(model, start, (0, 8 * step), t_eval=step * np.arange(9), dt=step,
                   scheme=mf.steppers.Layers, progress=False)  # fmt: skip
    law = advice.layers.sel(normalisation=advice.name)
    np.testing.assert_allclose(law.gap, [float(one.gap) for one in run], rtol=1e-13)
    if scheme.has_radii:
        np.testing.assert_allclose(law.radius, [float(one.radius) for one in run], rtol=1e-13)


def test_weights_of_two_tokens_are_their_integral():
    x, mass = np.polynomial.hermite_e.hermegauss(120)
    for spread in (0.3, 1.0, 2.0):
        w = expit(np.sqrt(2) * spread * x)
        exact = (mass * (w**2 + (1 - w) ** 2)).sum() / mass.sum()
        assert of_gaussian(2, spread) == pytest.approx(exact, rel=1e-7)
    t, mass = np.polynomial.legendre.leggauss(80)  # on S^2 products are uniform
    for beta in (0.5, 6.0):
        w = expit(beta * (t[:, None] - t))
        exact = (np.outer(mass, mass) * (w**2 + (1 - w) ** 2)).sum() / 4
        assert of_uniform_keys(2, beta, 3) == pytest.approx(exact, rel=1e-9)


def test_critical_weights_have_the_sum_of_squares_of_four_tokens():
    assert of_gaussian(500, critical_gaussian(500, 0.0)) == pytest.approx(0.25, rel=1e-4)
    assert critical_gaussian(500, 0.75) == pytest.approx(2 * critical_gaussian(500, 0.0))
    for d in (3, 8, 64):
        beta = critical_uniform_keys(500, d)
        assert of_uniform_keys(500, beta, d) == pytest.approx(0.25, rel=1e-4)
    beta = critical_equiangular(500, 0.3)
    w = 1 / (1 + 499 * np.exp(-0.7 * beta))  # the weight of a token itself
    assert w**2 + (1 - w) ** 2 / 499 == pytest.approx(0.25, rel=1e-12)
    assert critical_equiangular(1e30, 0.3) == pytest.approx(np.log(1e30) / 0.7, rel=1e-12)
    ratio = critical_uniform_keys(16e6, 5) / critical_uniform_keys(1e6, 5)
    assert ratio == pytest.approx(16 ** (2 / 4), rel=2e-3)


def test_critical_logits_of_advice_are_those_of_its_tokens_and_near_their_laws():
    n, d, heads, rho = 10**6, 64, 4, 0.3
    critical = Advice(n, d, 2, heads, rho=rho).critical
    predicted = critical.predicted
    assert float(predicted[0]) == pytest.approx(critical_gaussian(n, rho))
    assert float(predicted[1]) == pytest.approx(critical_equiangular(n, rho))
    assert float(predicted[2]) == pytest.approx(critical_uniform_keys(n, d // heads))
    law = critical.law.values
    assert law[0] == pytest.approx(4 / 3 * np.sqrt(2 * np.log(n) / (1 - rho)), rel=1e-12)
    assert law[1] == pytest.approx(np.log(n) / (1 - rho), rel=1e-12)
    np.testing.assert_allclose(law[1:], predicted[1:], rtol=2e-2)
    edge = critical_gaussian(64, rho)
    for logits, word in ((0.9 * edge, "below"), (1.1 * edge, "above")):
        assert (
            f"are {word} the critical" in Advice(64, d, 1, heads, rho=rho, logits=logits).words[2]
        )


def test_without_logits_a_token_looks_at_all_tokens():
    for one in (Advice(64, 64, 3, logits=0), Advice(64, 64, 3, logits=0, normalisation=mf.NGPT())):
        np.testing.assert_allclose(one.layers.attended, 64, rtol=1e-12)
        np.testing.assert_allclose(one.layers.gap, 1 - one.layers.mean_cosine, rtol=1e-12)


def test_a_network_that_is_drawn_has_outputs_of_the_lengths_that_were_asked():
    n, d = 64, 256
    advice = Advice(n, d, 2, 4, values=1.5, feed_forward=0.7, inner=1.3, logits=2.0)
    model, x = advice.model(0), mf.Tokens.uniform(n, d, rng=1).x
    lengths = np.linalg.norm(model.feedforward_at(x), axis=-1)
    assert np.sqrt((lengths**2).mean()) == pytest.approx(0.7, rel=0.05)
    point = mf.Tokens(np.repeat(x[:1], n, axis=0))
    output = mf.attend(model.drift, point).radii
    np.testing.assert_allclose(output, 1.5, rtol=4 * (1 / d) ** 0.5)  # four standard deviations


def test_tokens_at_one_point_have_the_same_weights_and_far_ones_almost_none_in_common():
    overlaps = Overlaps(1000, 16, 1.5)
    own, shared = overlaps(1e-9)
    assert own == pytest.approx(1e-3, rel=1e-6) and shared == pytest.approx(own, rel=1e-6)
    own, shared = overlaps(1.0)
    assert own > 5 * shared > 5e-3
    t = 1.0 / 64  # weak logits: closed forms
    own, shared = Overlaps(10**7, 64, 1.0)(1.0)
    assert own * 1e7 == pytest.approx((1 - 2 * t) ** -32, rel=1e-3)
    assert shared * 1e7 == pytest.approx((1 - t**2) ** -32, rel=1e-3)


def test_activations_spread_tokens_as_arc_cosine_kernels_say():
    for gap in (0.5, 1.0):  # Cho and Saul (2009), of relu
        angle = np.arccos(1 - gap)
        cosine = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi
        assert decorrelation("relu", 2.0, gap) == pytest.approx(1 - cosine, rel=1e-3)
    assert decorrelation("gelu", 1.0, 1e-12) == pytest.approx(
        1e-4 * decorrelation("gelu", 1.0, 1e-8), rel=1e-6
    )


@pytest.mark.long
def test_a_random_network_has_the_mean_cosines_of_the_advice():
    advice = Advice(48, 256, 6, 4, mf.PeriLN(), rho=0.3, logits=1.5, feed_forward=0.5,
                    identity=0.2)  # fmt: skip
    law = advice.layers.mean_cosine.sel(normalisation="Peri-LN").values
    found = advice.measure(2, rng=3)
    # single networks differ by (2/d)^(1/2) = 0.09 of what outputs have in common
    np.testing.assert_allclose(found.mean_cosine.mean("network"), law, atol=0.05)
    assert np.ptp(law) > 0.4


@pytest.mark.long
def test_heads_that_look_at_different_tokens_average_out_what_differs():
    """With O V = 1/H in each of H heads, what differs has the part 1/H of that of one head."""
    for heads in (4, 16):
        advice = Advice(48, 256, 2, heads, mf.PeriLN(), logits=3.0, values=0, identity=1.0)
        law = advice.layers.mean_cosine.sel(normalisation="Peri-LN").values
        found = advice.measure(2, rng=3).mean_cosine.mean("network")
        np.testing.assert_allclose(found, law, atol=0.05)
        assert law[-1] > 0.5  # 0.22 and 0.24 if heads did not average


def test_the_crossing_is_that_of_an_exponential():
    gaps = np.exp(-0.7 * np.arange(9))
    assert crossing(gaps, 0.9) == pytest.approx(np.log(10) / 0.7)
    assert crossing(gaps, 0.9999) == np.inf
    assert crossing([0.05, 0.01], 0.9) == 0


def test_the_advice_tells_its_numbers_and_draws_them():
    advice = Advice(64, 64, 4, 4)
    at = advice.collapses
    assert at["Post-LN"] < at["Peri-LN"] < at["Pre-LN"] == advice.collapse
    for number in (f"{advice.collapse:.3g}", f"{float(advice.critical.predicted[1]):.4g}"):
        assert number in repr(advice)
    assert advice.name == "Pre-LN" and len(advice.plot().axes) == 2
    assert "<table>" in advice._repr_html_()
    other = Advice(64, 64, 4, normalisation=mf.SqrtScaling())
    assert list(other.placements) == ["SqrtScaling()", "Post-LN", "Pre-LN", "Peri-LN"]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"n": 4}, "n"),
        ({"heads": 3}, "heads"),
        ({"heads": 32}, "heads"),
        ({"normalisation": mf.PreLN(mf.RMSNorm())}, "normalisation"),
        ({"logits": -1.0}, "logits"),
        ({"logits": 1000.0}, "logits must be between 0 and 30"),
        ({"radius": 1e200}, "radius must be between 1e-50"),
        ({"values": 0.0}, "values"),
        ({"rho": 1.0}, "rho"),
        ({"threshold": 0.1, "rho": 0.2}, "threshold"),
        ({"activation": "sin"}, "activation"),
        ({"step": 0.0}, "step"),
    ],
)
def test_what_is_no_network_is_refused(given, word):
    with pytest.raises(ValueError, match=word):
        Advice(**{"n": 64, "d": 64, "depth": 4} | given)


def test_random_tokens_have_no_negative_mean_cosine():
    with pytest.raises(ValueError, match="rho"):
        Advice(64, 64, 4, rho=-0.01).tokens(0)
    with pytest.raises(TypeError, match="normalisation"):
        Advice(64, 64, 4, normalisation="pre")
