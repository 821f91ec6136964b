"""Gaussians that grow in one direction and follow it in the others: implicit steps."""

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.solving import policies

Q = np.array([[0.38, -0.88, -1.51], [1.75, -0.11, -0.69], [0.14, -0.19, 0.85]])
V = np.array([[0.03, 0.01, -0.71], [0.47, -1.03, 0.67], [1.52, -1.52, -2.47]])
LAW = mf.Gaussian([0.1, 0.0, 0.0], np.eye(3))
MODEL = mf.Transformer(mf.Attention(Q=Q, V=V))


def rates(_t, y):
    """a' = V (1 + S A) a, S' = V S A S + (V S A S)^T."""
    a, S = y[:3], y[3:].reshape(3, 3)
    change = V @ S @ Q @ S
    return np.concatenate([V @ (a + S @ Q @ a), (change + change.T).ravel()])


def test_it_is_the_solution_of_another_integrator():
    run = mf.solve(MODEL, LAW, (0, 7), t_eval=[7])
    assert run.success and set(run.stats["schemes"]) == {"DormandPrince", "Radau"}
    assert run.stats["schemes"]["Radau"] > 0
    assert sum(run.stats["schemes"].values()) == run.stats["steps"]
    start = np.concatenate([LAW.mean, LAW.cov.ravel()])
    other = solve_ivp(rates, (0, 7), start, method="Radau", rtol=1e-8, atol=1e-8).y[:, -1]
    np.testing.assert_allclose(run.final.cov.ravel(), other[3:], rtol=1e-6)
    np.testing.assert_allclose(run.final.mean, other[:3], rtol=1e-6)
    assert run.stats["steps"] < 200


@pytest.mark.long
def test_it_is_the_solution_of_explicit_steps(monkeypatch):
    implicit = mf.solve(MODEL, LAW, (0, 6), t_eval=[6])
    monkeypatch.setattr(policies, "STIFF_STEP", np.inf)
    explicit = mf.solve(MODEL, LAW, (0, 6), t_eval=[6])
    np.testing.assert_allclose(implicit.final.cov, explicit.final.cov, rtol=1e-7)
    assert explicit.stats["steps"] > 10 * implicit.stats["steps"]


def test_events_and_outputs_within_implicit_steps():
    def wide(_t, state):
        return state.cov.trace() - 1e5

    wide.terminal = True
    times = np.linspace(0, 12, 7)
    run = mf.solve(MODEL, LAW, (0, 12), t_eval=times, events=[wide])
    assert run.status == "event" and run.final.cov.trace() == pytest.approx(1e5, rel=1e-7)
    alone = mf.solve(MODEL, LAW, (0, float(times[2])), t_eval=[times[2]])
    np.testing.assert_allclose(run[2].cov, alone.final.cov, rtol=1e-6)


@pytest.mark.long
def test_a_run_in_which_rounding_shortens_steps_ends_soon(tmp_path):
    """Not after 28000 steps."""
    rng = np.random.default_rng(5)
    d, heads = int(rng.integers(2, 6)), int(rng.integers(1, 3))
    matrices = rng.standard_normal((3, heads, d, d))
    G = rng.standard_normal((d, d))
    law = mf.Gaussian(rng.standard_normal(d), G @ G.T / d + 0.1 * np.eye(d))
    model = mf.Transformer(mf.Attention(*matrices, weights=mf.Linear()))
    with pytest.warns(mf.UnresolvedWarning, match="velocities cancel"):
        run = mf.solve(model, law, (0, 5))
    assert run.status == "step_too_small" and run.stats["steps"] < 2000
    options = {"checkpoint": tmp_path / "run"}
    mf.solve(model, law, (0, 5), max_steps=700, **options)
    with pytest.warns(mf.UnresolvedWarning, match="velocities cancel"):
        resumed = mf.solve(model, law, (0, 5), resume=True, **options)
    assert resumed.stats["steps"] == run.stats["steps"] and resumed.t[-1] == run.t[-1]
    assert run.final.variances.max() > 1e8


@pytest.mark.parametrize(("decay", "status"), [(1e4, "finished"), (1e8, "step_too_small")])
def test_short_steps_are_a_crawl_only_where_rounding_counts(decay, status, monkeypatch):
    """Noise is eps decay / growth, relative to rtol = 1e-8: 1e-4 and 1."""
    monkeypatch.setattr(policies, "CRAWLING_STEPS", 1)
    monkeypatch.setattr(policies, "OLD_GROWTH", 0.0)
    monkeypatch.setattr(policies.Stiffness, "_rates", lambda *_: (decay, 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.UnresolvedWarning)
        run = mf.solve(MODEL, LAW, (0, 3), t_eval=[3], rtol=1e-8)
    assert run.status == status and "Radau" in run.stats["schemes"]


@pytest.mark.bits
def test_a_run_goes_on_bit_for_bit(tmp_path):
    whole = mf.solve(MODEL, LAW, (0, 9), t_eval=[9])
    options = {"t_eval": [9], "checkpoint": tmp_path / "run"}
    for most in (50, 54, 60):
        part = mf.solve(MODEL, LAW, (0, 9), max_steps=most, resume=most > 50, **options)
        assert part.status == "max_steps"
    parts = mf.solve(MODEL, LAW, (0, 9), resume=True, **options)
    np.testing.assert_array_equal(parts.final.root, whole.final.root)
    assert parts.stats["schemes"] == whole.stats["schemes"]
    assert parts.stats["evaluations"] == whole.stats["evaluations"]


def test_it_says_where_velocities_cancel():
    """|S| = 10^10, beside which what decays leaves no digits of what grows."""
    matrices = np.random.default_rng(0).standard_normal((5, 2, 3, 3))[-1]
    fast = mf.Transformer(mf.Attention(Q=matrices[0], V=matrices[1]))
    with pytest.warns(mf.UnresolvedWarning, match="cancel to rounding"):
        run = mf.solve(fast, mf.Gaussian(np.zeros(3), np.eye(3)), (0, 60), t_eval=[60])
    assert run.status == "step_too_small" and 0.8 < run.t[-1] < 1.0
    assert run.final.cov.trace() > 1e9 and run.stats["steps"] < 500


def test_what_is_not_stiff_stays_explicit():
    law, attention = mf.Gaussian([0.0, 0.0], [[1.0, 0.3], [0.3, 0.5]]), mf.Attention(Q=-1.0)
    run = mf.solve(mf.Transformer(attention), law, (0, 1e3), rtol=1e-13)
    assert run.stats["steps"] > policies.JACOBIAN_INTERVAL  # so that it was looked at
    assert set(run.stats["schemes"]) == {"DormandPrince"}


@pytest.mark.long
def test_outputs_may_be_closer_than_the_first_implicit_step():
    """The plan of explicit steps, which pass outputs, ends with them."""
    few, many = (mf.solve(MODEL, LAW, (0, 4.5), t_eval=np.linspace(0, 4.5, n)) for n in (2, 400))
    assert many.stats["schemes"]["Radau"] > few.stats["schemes"]["Radau"] > 0
    assert many.success and len(many.t) == 400
    np.testing.assert_allclose(many.final.mean, few.final.mean, rtol=1e-6)
