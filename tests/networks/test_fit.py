"""Fits of flows to layers: what made them is found again, and what no flow made is rejected."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.networks import fit
from meanfield.networks.fitting.families import ParameterFamily
from meanfield.networks.fitting.fit import estimate_in_words
from meanfield.networks.fitting.replicas import ScoreTest
from meanfield.networks.fitting.scores import scores
from meanfield.networks.fitting.transitions import chord, mean_velocity, transitions_of

TRUE = {"beta": 2.0, "time": 0.5, "kappa": 100.0}


def layers(kappa=np.inf, seed=0, n=24, d=3, count=2):
    """Tokens that SA moves from layer to layer."""
    rng, found = np.random.default_rng([1, seed]), [mf.Tokens.uniform(n, d, rng=seed).x]
    model = mf.Transformer(mf.SA(TRUE["beta"]), kappa=kappa)
    options = {"rtol": 1e-10} if np.isinf(kappa) else {"dt": 0.05, "rng": rng}
    for _ in range(count):
        run = mf.solve(model, mf.Tokens(found[-1]), (0, TRUE["time"]), progress=False, **options)
        found.append(run.final.x)
    return np.array(found)


def test_layers_without_noise_give_beta_and_time_to_1e_minus_8():
    found = fit(3.0 * layers(), noise=False)  # lengths do not count
    assert found["beta"] == pytest.approx(2.0, rel=1e-8)
    assert found["time"] == pytest.approx(0.5, rel=1e-8)
    assert found.status == "fitted"
    assert not found.rejected
    assert found.predictions[0].over_nothing[1] < 0.01


@pytest.fixture(scope="module")
def noisy():
    return fit(layers(TRUE["kappa"], seed=1, n=60, count=3), rng=0)


@pytest.mark.long
def test_with_noise_the_truth_is_within_three_standard_errors(noisy):
    low, high = noisy.interval(0.9973).T
    true = [TRUE[name] for name in noisy.family.labels]
    assert (low < true).all() and (true < high).all()
    inner = noisy.interval().T
    assert (low < inner[0]).all() and (inner[1] < high).all()
    assert not noisy.rejected
    least, far = noisy.profile("beta", [noisy["beta"], 5.0])
    assert least < 1e-12 and far > 0.5
    assert "beta" in repr(noisy)
    assert noisy.model.kappa == pytest.approx(noisy["kappa"])


@pytest.mark.long
def test_the_ends_of_an_interval_are_where_a_score_test_rejects(noisy):
    """Two-sided at the level 0.95: 1.96 standard deviations of the model there, to 3 %."""
    ends = np.where(
        noisy.family.logarithmic, np.log(noisy.interval()[:, 1]), noisy.interval()[:, 1]
    )
    covariance, point = noisy.covariance(), noisy.estimate.point
    test = ScoreTest(noisy.equations, noisy.estimate)
    path = covariance[:, 0] / covariance[0, 0]
    there = point + (ends[0] - point[0]) * path
    assert test.deviation(there, 0) == pytest.approx(1.96, rel=0.03)
    assert abs(test.deviation(point, 0)) < 1e-12
    plain = point + 1.96 * np.sqrt(np.diag(covariance))
    assert abs(ends - plain).max() > 1e-3  # the variance is not the same there


@pytest.mark.long
def test_a_turned_system_has_the_same_fit_to_rounding():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    first, second = (fit(x, noise=False, verdict=False) for x in (layers(), layers() @ turn))
    np.testing.assert_allclose(first.estimate.point, second.estimate.point, atol=1e-8)


@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
def test_turns_between_layers_are_rejected():
    angle = 0.5
    turn = np.eye(3)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    x = layers(TRUE["kappa"], seed=1)
    turned = np.array([one @ np.linalg.matrix_power(turn, k) for k, one in enumerate(x)])
    assert fit(turned, fixed={"time": 0.5}, hold=False).rejected


@pytest.mark.long
def test_time_and_a_factor_of_the_drift_are_told_only_as_a_product():
    def family(beta, factor):
        return factor * mf.SA(beta)

    with pytest.warns(mf.UnresolvedWarning, match=r"factor.*time"):
        found = fit(layers(), family, noise=False, verdict=False)
    assert found.status == "not identified"
    assert found["factor"] * found["time"] == pytest.approx(0.5, rel=1e-6)
    assert fit(layers(), family, fixed={"time": 0.5}, noise=False)["factor"] == pytest.approx(1.0)


@pytest.mark.long
def test_few_tokens_that_move_little_are_not_unrelated():
    found = fit(layers(n=3, count=1), noise=False)
    assert found.status == "fitted" and found.rejected is False
    assert found["beta"] == pytest.approx(2.0, rel=1e-6)


def two(a, b):
    return mf.SA(a * b)


def spare(beta, spare):
    return mf.SA(beta)


@pytest.mark.repeats
@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
@pytest.mark.parametrize(
    ("family", "options", "word"),
    [
        (two, {"fixed": {"time": 0.5, "kappa": 100.0}, "start": {"a": 1.4, "b": 1.4}}, "a"),
        (spare, {"fixed": {"time": 0.5, "kappa": 100.0}}, "spare"),
        (spare, {"noise": False, "fixed": {"time": 0.5}}, "spare"),
        (lambda a: a * mf.SA(2.0), {}, "log time"),
        (mf.SA, {"start": {"beta": 1e8}}, "beta"),
    ],
)
def test_what_the_equations_do_not_tell_has_no_interval(family, options, word):
    x = layers(seed=1) if options.get("noise", True) is False else layers(100.0, seed=1)
    found = fit(x, family, hold=False, replicas=4, test_replicas=16, **options)
    assert word in found.unidentified and found.status == "not identified"
    name = word.split()[-1]
    assert float(found.parameters.error.sel(parameter=name)) == np.inf
    low, high = found.interval()[found.family.labels.index(name)]
    assert high == np.inf and low in (-np.inf, 0)


@pytest.mark.parametrize(
    ("family", "word"),
    [
        (lambda beta: mf.Transformer(mf.SA(beta), reaction=1e-12), "masses"),
        (lambda beta: mf.Transformer(mf.SA(beta), normalisation=mf.PreLN()), "radii"),
        (lambda beta: mf.Transformer(mf.SA(beta), normalisation=mf.SqrtScaling()), "time"),
        (lambda beta: mf.Attention(beta=mf.PerLayer([1.0, beta])), "time"),
    ],
)
def test_families_whose_layers_are_more_than_directions_are_refused(family, word):
    with pytest.raises(mf.MeanfieldError, match=word):
        fit(layers(), family)


def test_variances_of_tokens_are_those_of_the_model(noisy):
    ratio = np.diag(noisy.covariance("tokens")) / np.diag(noisy.covariance())
    assert (0.5 < ratio).all() and (ratio < 2).all()  # tokens hardly move each other


def test_a_fit_is_pickled_and_profiles_refuse_what_no_time_is(noisy):
    again = pickle.loads(pickle.dumps(noisy))
    assert again["beta"] == noisy["beta"]
    with pytest.raises(ValueError, match="time"):
        noisy.profile("time", [-1.0])


def test_statistics_do_not_see_that_a_parameter_is_a_few_errors_off(noisy):
    """What scores tell is taken off them; with the wrong sign p is 1e-32 here."""
    found, equations = noisy.estimate, noisy.equations
    for errors in (-3, 3):
        off = replace(found, point=found.point + errors * found.errors * np.eye(3)[1])
        _, goodness = equations.judged(off, np.random.default_rng(0))
        assert goodness.of_statistics > 1e-3


def test_where_no_root_was_found_nothing_else_is_said(noisy):
    lost = replace(noisy, estimate=replace(noisy.estimate, converged=False))
    assert lost.status == "not converged"
    assert lost.verdict.startswith("No root") and "p =" not in lost.verdict


@pytest.mark.long
def test_layers_without_noise_are_told_to_be_fitted_without(noisy):
    with pytest.warns(UserWarning, match="kappa has run off.*noise=False"):
        lost = fit(layers(), verdict=False)
    assert lost.status == "not converged" and lost.verdict == lost.warning
    assert "noise=False" in repr(lost) and "say nothing" not in repr(lost)
    assert not noisy._without_noise


def test_tokens_that_rest_or_move_to_antipodes_are_refused():
    x = layers(100.0, seed=1)
    with pytest.raises(ValueError, match="do not move"):
        fit(x[[0, 0, 0]])
    x[1, 0] = -x[0, 0]
    with pytest.raises(mf.MeanfieldError, match="antipode"):
        fit(x)


@pytest.mark.parametrize(
    ("given", "options", "word"),
    [
        ([], {}, "one text or more"),
        (np.ones((2, 5, 3)), {"start": {"time": 1e5}}, "time"),
        (np.ones((2, 5)), {}, "layers"),
        (np.zeros((2, 5, 3)), {}, "direction"),
        (np.ones((2, 5, 3)), {"start": {"gamma": 1.0}}, "beta"),
        (np.ones((2, 5, 3)), {"replicas": 5}, "replicas"),
        (
            np.ones((2, 5, 3)),
            {"family": lambda v: mf.SA(v.sum()), "start": {"v": np.ones(17)}},
            "twice",
        ),
        (np.ones((2, 5, 3)), {"fixed": {"time": -1.0}}, "time"),
        ([np.ones((2, 5, 3)), np.ones((2, 5, 4))], {}, "dimension"),
    ],
)
def test_what_is_no_problem_is_refused(given, options, word):
    with pytest.raises(ValueError, match=word):
        fit(given, **options)


def test_scores_are_derivatives_of_the_likelihood_of_straight_ways():
    """log p = -|a - T v|^2/(2 s) - (d - 1)/2 log s, s = 2 T/kappa, by beta, log T, log kappa."""
    family = ParameterFamily(mf.SA, {}, {}, True)
    one = transitions_of(layers(TRUE["kappa"], count=1), np.random.default_rng(0))[0]
    x, y, point = one.x[None], one.y[None], np.array([2.3, np.log(0.6), np.log(40.0)])

    def likelihood(beta, time, kappa):
        time, s = np.exp(time), 2 * np.exp(time - kappa)
        way, v = chord(x, y)[1], mean_velocity(family.at(np.array([beta, 0.0, 0.0])), x, y)
        return -((way - time * v) ** 2).sum(axis=-1) / (2 * s) - np.log(s)

    assert list(family.labels) == ["beta", "time", "kappa"]
    found = scores(family, point, x, y)
    for j, change in enumerate(1e-4 * np.eye(3)):
        expected = (likelihood(*(point + change)) - likelihood(*(point - change))) / 2e-4
        np.testing.assert_allclose(found[..., j], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((0.9, 1.5), "1.2 [0.9, 1.5]"),
        ((0.9, np.inf), "1.2 [0.9, inf]"),
        ((0.0, np.inf), "not determined (any value from 0 to inf fits)"),
        ((-np.inf, np.inf), "not determined (any value from -inf to inf fits)"),
    ],
)
def test_an_interval_that_is_open_at_both_ends_determines_nothing(ends, words):
    assert estimate_in_words(1.2, np.array(ends)) == words
