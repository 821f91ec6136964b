"""Tangents of runs of Gaussians: differences of the same steps, the closed form, implicit steps."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.derivatives.flows import DifferentiatedFlow
from meanfield.dynamics.gaussian import GaussianMotion

FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
STEP = 1e-3
RNG = np.random.default_rng(0)
Q, K, V = 0.5 * RNG.standard_normal((3, 2, 3, 3))
ROOT = np.linalg.qr(RNG.standard_normal((3, 3)))[0] * np.array([1.0, 0.6, 0.3])
COV, MEAN = ROOT @ ROOT.T, np.array([0.3, -0.2, 0.1])
CHANGE = RNG.standard_normal((3, 3))
TOWARDS = {"mean": np.array([0.1, 0.2, -0.3]), "cov": 0.05 * (CHANGE + CHANGE.T)}
WEIGHTS = [mf.Softmax(), mf.L2(), mf.Sinkhorn(), mf.Linear()]


def difference(of):
    """The derivative at 0 by a central difference of order 4."""
    return sum(weight * of(node * STEP) for node, weight in FOURTH.items()) / STEP


def law(s):
    return mf.Gaussian(MEAN + s * TOWARDS["mean"], COV + s * TOWARDS["cov"])


@pytest.mark.repeats
@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda weights: type(weights).__name__)
def test_equal_steps(weights):
    def solved(by_beta, moved, tangents=()):
        model = mf.Transformer(mf.Attention(Q, K, V, 1.2 + by_beta, weights=weights))
        times = {"dt": 0.05, "t_eval": [0.12, 0.3]}
        return mf.solve(model, law(moved), (0, 0.3), tangents=tangents, **times)

    run = solved(0, 0, ["beta", TOWARDS])
    for key, (b, m) in {"beta": (1, 0), "direction_0": (0, 1)}.items():
        runs = {node * STEP: solved(b * node * STEP, m * node * STEP) for node in FOURTH}
        for i, change in enumerate(run.tangents[key]):
            for name, values in change.items():
                states = {s: getattr(one.states[i], name) for s, one in runs.items()}
                assert np.abs(difference(states.get) - values).max() < 1e-9
        for name, values in run.tangents.observables.sel(tangent=key).items():
            measured = {s: one.observables[name].values for s, one in runs.items()}
            assert np.abs(difference(measured.get) - values.values).max() < 1e-9


def test_the_covariance_in_closed_form():
    """Sigma(t) = (Sigma_0^-1 - t M)^-1 with M = 2 beta V A, and its derivatives."""
    beta, t = 0.7, 0.4
    A = np.diag([1.0, 0.5, -0.8])
    cov = np.diag([0.9, 0.5, 0.3])
    model = mf.Transformer(mf.Attention(A, np.eye(3), np.eye(3), beta))
    change = np.diag([0.1, -0.2, 0.3])
    tangents = ["beta", {"cov": change}]
    start = mf.Gaussian(np.zeros(3), cov)
    run = mf.solve(model, start, (0, t), t_eval=[t], rtol=1e-11, tangents=tangents)
    M = A + A.T
    now = np.linalg.inv(np.linalg.inv(cov) - t * beta * M)
    inner = np.linalg.inv(cov) @ change @ np.linalg.inv(cov)
    assert np.abs(run.tangents["beta"][-1].cov - now @ (t * M) @ now).max() < 1e-9
    assert np.abs(run.tangents["direction_0"][-1].cov - now @ inner @ now).max() < 1e-9


@pytest.mark.long
def test_implicit_steps():
    """A run that goes over to implicit steps, against differences along its own steps."""
    own_q = np.array([[0.38, -0.88, -1.51], [1.75, -0.11, -0.69], [0.14, -0.19, 0.85]])
    own_v = np.array([[0.03, 0.01, -0.71], [0.47, -1.03, 0.67], [1.52, -1.52, -2.47]])
    start = mf.Gaussian([0.1, 0.0, 0.0], np.eye(3))
    change = {"mean": np.array([0.0, 0.01, 0.02]), "cov": 0.1 * TOWARDS["cov"]}

    def model(by_beta=0.0):
        return mf.Transformer(mf.Attention(Q=own_q, V=own_v, beta=1.0 + by_beta))

    options = {"t_eval": [3.0, 4.5], "rtol": 1e-10}
    run = mf.solve(model(), start, (0, 4.5), tangents=["beta", change], **options)
    assert run.stats["schemes"].get("Radau", 0) > 3
    journal = run.stored["journal"]

    def along(key, s):
        by, m = (s, 0) if key == "beta" else (0, s)
        moved = mf.Gaussian(start.mean + m * change["mean"], start.cov + m * change["cov"])
        motion = GaussianMotion(model(by), moved, rtol=options["rtol"])
        flow = DifferentiatedFlow(motion, journal, moved, [], [])
        return [motion.state_of(Y[0]) for _, Y in flow.stacks(run.t)]

    for key, found in run.tangents.items():
        runs = {node * STEP: along(key, node * STEP) for node in FOURTH}
        for i, h in enumerate(found):
            for name in ("mean", "cov"):
                expected = difference(lambda s, i=i, n=name, runs=runs: getattr(runs[s][i], n))
                scale = max(1.0, np.abs(expected).max())
                assert np.abs(expected - h[name]).max() < 1e-7 * scale


def test_a_turned_law_has_turned_tangents():
    turn = np.linalg.qr(RNG.standard_normal((3, 3)))[0]
    one = mf.Transformer(mf.Attention(Q, K, V))
    other = mf.Transformer(mf.Attention(Q @ turn.T, K @ turn.T, turn @ V @ turn.T))
    turned = {"mean": turn @ TOWARDS["mean"], "cov": turn @ TOWARDS["cov"] @ turn.T}
    moved = mf.Gaussian(turn @ MEAN, turn @ COV @ turn.T)
    here = mf.solve(one, law(0), (0, 0.5), dt=0.1, tangents=[TOWARDS]).tangents["direction_0"][-1]
    there = mf.solve(other, moved, (0, 0.5), dt=0.1, tangents=[turned]).tangents["direction_0"][-1]
    assert np.abs(turn @ here.cov @ turn.T - there.cov).max() < 1e-12
    assert np.abs(turn @ here.mean - there.mean).max() < 1e-12


def test_another_law_is_a_direction_towards_it():
    model = mf.Transformer(mf.Attention(Q, K, V))
    other = mf.Gaussian(MEAN + TOWARDS["mean"], COV + TOWARDS["cov"])
    run = mf.solve(model, law(0), (0, 0.2), dt=0.1, tangents=[other, TOWARDS])
    one, two = (run.tangents[f"direction_{i}"][-1].cov for i in range(2))
    assert np.abs(one - two).max() < 1e-13


def test_refusals():
    model = mf.Transformer(mf.Attention(Q, K, V))

    def solved(tangent, start=None):
        return mf.solve(model, start or law(0), (0, 0.1), tangents=[tangent])

    with pytest.raises(TypeError, match="another Gaussian"):
        solved(np.eye(3))
    with pytest.raises(ValueError, match="symmetric"):
        solved({"cov": CHANGE})
    with pytest.raises(mf.MeanfieldError, match="singular"):
        solved({"cov": np.eye(3)}, mf.Gaussian(MEAN, np.diag([1.0, 1.0, 0.0])))
