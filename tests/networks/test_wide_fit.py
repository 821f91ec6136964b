"""Fits in the limit of many dimensions: its means and estimates are those of replicas there."""

import numpy as np
import pytest
from scipy.optimize import minimize

import meanfield as mf
from meanfield.networks import fit
from meanfield.networks.findings import fit_of
from meanfield.networks.fitting.families import LayerFlow, ParameterFamily
from meanfield.networks.fitting.transitions import (
    LayerTransition,
    replicas_of,
    transitions_of,
    unit,
)
from meanfield.networks.fitting.wide import WideEquations, mean_after
from meanfield.networks.probe import as_trace

TRUE = {"beta": 4.0, "time": 0.5}
FLOW = mf.SA(TRUE["beta"])


def start(n, d, rng):
    """Tokens about six centres, whose cosines are between 0 and 0.8."""
    centres, spread = rng.standard_normal((6, d)), rng.uniform(0, 2, (n, 1))
    x = rng.standard_normal((n, d)) + spread * centres[np.arange(n) % 6]
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def layers(n, d, kappa, count, seed, drift=FLOW, dt=0.1):
    rng = np.random.default_rng([1, seed])
    found, model = [start(n, d, rng)], mf.Transformer(drift, kappa=kappa)
    for _ in range(count):
        run = mf.solve(model, mf.Tokens(found[-1]), (0, TRUE["time"]), dt=dt, rng=rng,
                       progress=False)  # fmt: skip
        found.append(run.final.x)
    return np.array(found)


@pytest.mark.repeats
@pytest.mark.parametrize("d", [32, 128])
def test_means_and_variances_are_those_of_replicas_up_to_one_part_in_d(d):
    x, kappa = start(20, d, np.random.default_rng(0)), 2.0 * d
    at, count = LayerFlow(mf.Transformer(mf.SA(4.0)), 0.5, kappa), 400
    one = LayerTransition(x, x, 0, 0, np.random.SeedSequence(1))
    ((_, y),) = replicas_of(at, [one], count, 5, pairs=False)
    M = mean_after(at, x, 2)
    faded = np.exp(-(d - 1) * at.time / kappa) * x
    drift, found = M - faded, y.mean(axis=0) - faded
    noise = np.sqrt((y.var(axis=0) * drift**2).sum() / count) / (drift**2).sum()
    assert (drift * found).sum() / (drift**2).sum() == pytest.approx(1, abs=1 / d + 4 * noise)
    rho = np.linalg.norm(M, axis=1)
    along = (y * M).sum(axis=-1) / rho
    assert along.mean() == pytest.approx(rho.mean(), abs=0.2 / d + 4 * along.std() / np.sqrt(8000))
    across = (y**2).sum(axis=-1) - along**2
    gap = 1 - rho**2
    assert across.mean() / (d - 1) == pytest.approx((gap / (d - rho**2)).mean(), rel=1 / d)
    assert along.var(axis=0).mean() == pytest.approx(
        (gap**2 / (d * (1 + rho**2))).mean(), rel=2 / d + 0.1
    )


@pytest.mark.long
def test_in_384_dimensions_the_truth_is_within_three_standard_errors_and_predicts():
    found = fit(layers(80, 384, 800.0, 2, 1), wide=True)
    low, high = found.interval(0.9973).T
    true = [4.0, 0.5, 800.0]
    assert (low < true).all() and (true < high).all()
    assert found.status == "fitted" and not found.rejected
    assert found.predictions[0].over_nothing[1] < 1
    least, most, far = found.profile("beta", [found["beta"], high[0], -1e9])
    assert least < 1e-12 and most == pytest.approx(9, abs=1.5) and far > 100
    assert found.profile("time", [1e5]) == [np.inf]  # where the model cannot be followed


@pytest.mark.long
def test_layers_that_are_moved_by_other_values_are_rejected():
    V = np.random.default_rng(5).standard_normal((96, 96)) / np.sqrt(96)
    x = layers(60, 96, 256.0, 2, 1, mf.Attention(beta=4.0, V=V))
    found = fit(x, lambda a: a * FLOW, fixed={"time": 1.0}, wide=True, hold=False)
    assert found.rejected and found.goodness.of_statistics < 1e-6
    assert "no flow of this family" in found.verdict
    true = fit(layers(60, 96, 256.0, 2, 1), lambda a: a * FLOW, fixed={"time": 1.0}, wide=True,
               hold=False)  # fmt: skip
    assert true.goodness.p_value > 0.01


def test_a_multiple_of_a_zonal_drift_is_one_and_its_factor_counts_with_the_time():
    x, fixed = layers(20, 64, 130.0, 2, 0), {"kappa": 130.0, "time": 0.5}
    plain = fit(x, lambda beta: 2 * mf.SA(beta), wide=True, fixed=fixed, verdict=False)
    time = fit(x, mf.SA, wide=True, fixed={"kappa": 260.0, "time": 1.0}, verdict=False)
    assert plain["beta"] == pytest.approx(time["beta"], rel=1e-6)


@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
def test_what_the_limit_does_not_tell_is_not_told():
    x, time = layers(20, 64, 130.0, 1, 0), {"time": 1.0}
    twice = fit(x, lambda a, b: (a + b) * mf.SA(4.0), wide=True, fixed=time, verdict=False)
    assert (
        twice.status == "not identified"
        and twice.unidentified.replace("-", "+") == "+0.71 a +0.71 b"
    )
    far = fit(x, start={"beta": 500.0}, wide=True, verdict=False)
    assert far.status == "not identified" and "beta" in far.unidentified


@pytest.mark.long
def test_steps_of_a_long_layer_are_as_many_as_its_estimate_needs():
    """Replicas of many steps against the means of few: T = 2 moves tokens far."""
    rng = np.random.default_rng(3)
    x, model = start(30, 64, rng), mf.Transformer(mf.SA(2.0), kappa=2000.0)
    run = mf.solve(model, mf.Tokens(x), (0, 2.0), dt=0.02, rng=rng, progress=False)
    found = fit(np.stack([x, run.final.x]), wide=True, verdict=False)
    assert found.equations.rk_steps > 2
    low, high = found.interval(0.9999).T
    assert (low < [2.0, 2.0, 2000.0]).all() and (high > [2.0, 2.0, 2000.0]).all()
    given = {"test_replicas": 16, "steps": 5}
    steps = found.equations.rk_steps, 16
    root, finer = (
        WideEquations(found.family, found.equations.transitions, **given, rk_steps=k).estimate()
        for k in steps
    )
    assert (abs(finer.point - root.point) < 0.15 * finer.errors).all()
    before, after = abs(np.log(2000.0) - [root.point[2], found.estimate.point[2]])
    assert after < 0.6 * before  # replicas take off what the limit leaves, here 1.2 errors of 1.9


@pytest.mark.parametrize("given", [{}, {"beta": 4.0, "kappa": 130.0}])
def test_layers_that_two_steps_cannot_follow_have_more(given):
    """USA(4), in clusters, moves tokens so fast that two steps of 0.25 explode."""
    x = layers(20, 64, 130.0, 2, 2, mf.USA(4.0), dt=0.02)
    family = ParameterFamily(mf.USA, given, {}, True)
    transitions = transitions_of(x, np.random.default_rng(0))
    search = WideEquations(family, transitions, test_replicas=16, steps=5)
    found = search.estimate()
    assert found.converged and search.rk_steps > 8
    assert family.values(found.point) == pytest.approx([4.0, 0.5, 130.0], rel=0.3)


def test_a_start_that_needs_many_steps_has_the_root_and_the_steps_of_others():
    transitions = transitions_of(layers(30, 64, 130.0, 2, 3), np.random.default_rng(0))
    found = []
    for kappa in (1e-3, 100.0):
        family = ParameterFamily(mf.SA, {"kappa": kappa}, {}, True)
        search = WideEquations(family, transitions, test_replicas=16, steps=5)
        found.append((search.estimate(), search.rk_steps))
    (far, steps), (near, same) = found
    assert far.converged and steps == same == 2
    assert (abs(far.point - near.point) < 0.1 * near.errors).all()


def test_what_has_no_such_limit_is_refused():
    x = layers(10, 12, 60.0, 1, 0)
    with pytest.raises(ValueError, match="wide"):
        fit(x, wide=True, noise=False)
    with pytest.raises(mf.MeanfieldError, match="inner products alone"):
        fit(x, lambda a: mf.Attention(V=np.full((12, 12), a)), wide=True)
    with pytest.raises(mf.MeanfieldError, match="feedforward"):
        fit(x, lambda beta: mf.Transformer(mf.SA(beta), feedforward=np.tanh), wide=True)


def test_a_start_that_moves_tokens_too_far_is_told_from_one_without_noise():
    x = layers(10, 64, 130.0, 1, 0)
    with pytest.raises(mf.MeanfieldError, match="shorter time"):
        fit(x, start={"time": 900.0}, wide=True)
    with pytest.raises(mf.MeanfieldError, match="so little noise"):
        fit(x, start={"kappa": 1e14, "time": 0.1}, wide=True)


@pytest.mark.long
def test_the_page_of_a_probe_has_a_multiple_of_sa_in_all_dimensions():
    for sign, verdict in ((1, "undecided"), (-1, "fails")):
        x = layers(40, 64, 200.0, 3, 4, sign * FLOW)
        found, finding = fit_of(as_trace(x), np.random.default_rng(0))
        low, high = found.interval(0.9973, by="tokens")[0]
        assert low < sign * TRUE["time"] < high  # a layer lasts the time 1
        assert finding.verdict == verdict and f"a {found['a']:.3g} [" in finding.text


def test_the_search_begins_near_the_noise_that_layers_have():
    """A weak drift moves tokens by 0.1 radians, noise by 0.2."""
    x, model = start(20, 64, np.random.default_rng(0)), mf.Transformer(0.1 * mf.SA(2.0), kappa=3e3)
    given = [x, mf.solve(model, mf.Tokens(x), (0, 1), dt=0.1, rng=1, progress=False).final.x]

    def begun(**options):
        held = {"fixed": {"time": 1.0}, "wide": True, "verdict": False, "hold": False}
        found = fit(np.array(given), lambda a: a * mf.SA(2.0), **held, **options)
        return found, found.family.values(found.family.start)[found.family.labels.index("kappa")]

    found, kappa = begun()
    assert found.status == "fitted" and 0.5 < kappa / found["kappa"] < 2
    assert begun(start={"kappa": 77.0})[1] == pytest.approx(77)


@pytest.mark.long
def test_the_root_is_found_from_the_least_misfit_where_the_model_is_wrong():
    """A turn of all tokens is no flow: the misfit of the density is not least at the root of G."""
    rng = np.random.default_rng(0)
    x = start(300, 16, rng)
    y = unit(x + 0.5 * x @ rng.standard_normal((16, 16)) / 4)
    family = ParameterFamily(
        lambda a: a * mf.SA(4.0), {"a": 0.5, "kappa": 80.0}, {"time": 1.0}, True
    )
    pairs = transitions_of(np.array([x, y]), rng)
    equations = WideEquations(family, pairs, test_replicas=16, steps=5)
    least = minimize(
        lambda point: equations.deviance(equations.means(point)), family.start,
        method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9},
    ).x  # fmt: skip
    found = equations.estimate(least)
    away = (found.point - least) / found.errors
    assert found.converged and np.abs(away).max() > 0.02 and equations.rk_steps < 64
