"""Runs of Gaussians: printed values, blow-up, layers, stopping, checkpoints, files."""

import numpy as np
import pytest

import meanfield as mf

COV = np.array([[1.0, 0.3], [0.3, 0.5]])
LAW = mf.Gaussian([1.0, -0.5], COV)
V = np.array([[0.8, 0.3], [-0.2, 0.6]])
Q, K = np.array([[0.7, 0.2], [0.1, 0.9]]), np.array([[0.5, -0.3], [0.4, 0.8]])
NEGATIVE = mf.Transformer(mf.Attention(-np.array([[1.0, 0.2], [0.2, 0.5]])))
POSITIVE = mf.Transformer(mf.Attention(np.array([[1.0, 0.2], [0.2, -0.3]])))
T = 0.4557610218547162  # of POSITIVE from COV: 1 / the largest eigenvalue of S^(1/2) 2 A S^(1/2)


@pytest.mark.parametrize(
    ("drift", "cov", "mean"),
    [
        (
            NEGATIVE.drift,
            [[0.313723745105, 0.030259878960], [0.030259878960, 0.293698825205]],
            [1.750023016638, -1.463344429561],
        ),
        (
            mf.Attention(Q, K, V, weights=mf.L2()),
            [[3.026792577521, 0.664676151609], [0.664676151609, 0.497299256409]],
            [1.334975559658, -1.281727381924],
        ),
        (
            mf.Attention(Q, K, V, weights=mf.Sinkhorn()),
            [[2.595522398360, 0.774916918303], [0.774916918303, 0.587394279760]],
            [1.863767639484, -1.281361153923],
        ),
    ],
    ids=["softmax", "L2", "Sinkhorn"],
)
def test_values_of_an_independent_program(drift, cov, mean):
    run = mf.solve(mf.Transformer(drift), LAW, (0, 1), t_eval=[1.0], rtol=1e-11)
    np.testing.assert_allclose(run.final.cov, cov, atol=2e-12)
    np.testing.assert_allclose(run.final.mean, mean, atol=2e-12)


@pytest.mark.parametrize("start", [0.0, -3.0])
def test_a_blow_up_is_located(start):
    run = mf.solve(POSITIVE, LAW, (start, start + 2), t_eval=start + np.array([0.1, 0.4, 2.0]))
    assert run.status == "blow-up" and not run.success and run.resolved
    assert run.stats["blow_up_time"] - start == pytest.approx(T, abs=1e-8)
    assert run.stats["blow_up_power"] == pytest.approx(1, abs=1e-3)
    assert len(run) == 3 and 0.4 < run.t[-1] - start < T + 1e-8
    assert "blows up at T" in run.message
    closed = mf.ClosedCovariance(POSITIVE, LAW)
    np.testing.assert_allclose(run[1].cov, closed.at(0.4), rtol=1e-7)


def test_the_power_of_a_blow_up_is_seen():
    """Linear weights on the line, a = 0: s' = 2 s^2; a' = s a makes |a| ~ (T - t)^(-1/2)."""
    model = mf.Transformer(mf.Attention(weights=mf.Linear()))
    run = mf.solve(model, mf.Gaussian([0.0], [[1.0]]), (0, 1))
    assert run.stats["blow_up_time"] == pytest.approx(0.5, abs=1e-8)
    squeezed = mf.Transformer(mf.Attention(np.diag([1.0, 0.0]), V=np.diag([1.0, 3.0])))
    run = mf.solve(squeezed, mf.Gaussian([1.0, 0.0], np.diag([1.0, 0.0])), (0, 1))
    assert run.stats["blow_up_power"] == pytest.approx(1, abs=1e-2)


@pytest.mark.parametrize("kind", [mf.L2(), mf.Sinkhorn()], ids=repr)
def test_l2_and_sinkhorn_grow_without_blow_up(kind):
    model = mf.Transformer(mf.Attention(POSITIVE.drift.Q, beta=1.0, weights=kind))
    run = mf.solve(model, LAW, (0, 20))
    assert run.status == "finished" and np.trace(run.final.cov) > 1e3


@pytest.mark.long
def test_exponential_growth_until_numbers_end_is_no_blow_up():
    model = mf.Transformer(mf.Attention(0.0))
    with pytest.warns(mf.UnresolvedWarning, match="law grows exponentially"):
        run = mf.solve(model, LAW, (0, 1000))
    assert run.status == "step_too_small" and run.t[-1] > 709
    assert run.stats["blow_up_time"] is None


def test_layers_are_one_after_the_other():
    betas, law = [1.0, -0.4, 0.2, 0.7], LAW
    for beta in betas:
        model = mf.Transformer(mf.Attention(Q, K, V, beta))
        law = mf.solve(model, law, (0, 0.25), t_eval=[0.25], rtol=1e-12).final
    layers = mf.PerLayer(betas, duration=0.25)
    model = mf.Transformer(mf.Attention(Q, K, V, layers))
    run = mf.solve(model, LAW, (0, 1), t_eval=[0.3, 1.0], rtol=1e-12)
    np.testing.assert_allclose(run.final.cov, law.cov, atol=1e-11)
    np.testing.assert_allclose(run.final.mean, law.mean, atol=1e-11)
    with pytest.raises(ValueError, match="models that do not change with time"):
        mf.solve(model, LAW, (0, 1), until="steady")


def test_it_rests_on_the_limit_of_the_closed_form():
    A, law = -np.diag([1.0, 0.0]), mf.Gaussian([0, 0], COV)
    model = mf.Transformer(mf.Attention(A))
    run = mf.solve(model, law, (0, 1e9), t_eval=[1e9], until="steady", steady_tolerance=1e-8)
    assert run.status == "steady"
    limit = mf.ClosedCovariance(model, law).limit
    np.testing.assert_allclose(run.final.cov, limit, atol=1e-4)  # like 1/t, the rate like t^-3/2
    assert run.final.rank(1e-4) == 1


def test_events_and_fixed_steps():
    def halved(_t, state):
        return np.trace(state.cov) - 0.75

    halved.terminal = True
    run = mf.solve(NEGATIVE, LAW, (0, 5), events=halved)
    assert run.status == "event" and np.trace(run.final.cov) == pytest.approx(0.75, abs=1e-12)
    closed = mf.ClosedCovariance(NEGATIVE, LAW)
    assert np.trace(closed.at(run.t[-1])) == pytest.approx(0.75, abs=1e-7)
    steps = mf.solve(NEGATIVE, LAW, (0, 1), t_eval=[1.0], dt=0.02).final
    np.testing.assert_allclose(steps.cov, closed.at(1.0), atol=1e-11)
    with pytest.raises(ValueError, match="Gaussian needs an explicit scheme"):
        mf.solve(NEGATIVE, LAW, (0, 1), scheme=mf.steppers.Krogstad)
    for options in ({"rng": 1}, {"merge": 0.01}, {"min_degree": 8}):
        with pytest.raises(ValueError, match="Gaussian"):
            mf.solve(NEGATIVE, LAW, (0, 1), **options)


@pytest.mark.bits
def test_a_resumed_run_is_the_unbroken_one(tmp_path):
    path = tmp_path / "run.checkpoint"
    whole = mf.solve(POSITIVE, LAW, (0, 1))
    options = {"checkpoint": path, "checkpoint_every": 0.0}
    mf.solve(POSITIVE, LAW, (0, 1), max_steps=40, **options)
    with pytest.raises(mf.CheckpointError, match="another run"):
        mf.solve(NEGATIVE, LAW, (0, 1), resume=True, **options)
    mf.solve(POSITIVE, LAW, (0, 1), max_steps=10**7 - 1, checkpoint=tmp_path / "other")
    resumed = mf.solve(POSITIVE, LAW, (0, 1), resume=True, **options)
    assert resumed.stats["blow_up_time"] == whole.stats["blow_up_time"]
    for one, other in zip(whole, resumed, strict=True):
        assert one.cov.tobytes() == other.cov.tobytes()


@pytest.mark.bits
def test_states_come_back_from_files_bit_for_bit(tmp_path):
    run = mf.solve(POSITIVE, LAW, (0, 1))
    loaded = mf.load(run.save(tmp_path / "run.nc"))
    assert loaded.status == "blow-up" and loaded.stats == run.stats
    for one, other in zip(run, loaded, strict=True):
        assert one.cov.tobytes() == other.cov.tobytes()
        assert one.mean.tobytes() == other.mean.tobytes()
    np.testing.assert_array_equal(loaded.observables.spread, run.observables.spread)
    data = run.to_xarray()
    assert data["covariance"].dims == ("t", "component", "other")


def test_a_run_with_a_function_keeps_its_observables(tmp_path):
    model = mf.Transformer(mf.Attention(beta=lambda t: -1 - t))
    run = mf.solve(model, LAW, (0, 1), t_eval=[0.5, 1.0])
    loaded = mf.load(run.save(tmp_path / "run.nc"))
    np.testing.assert_array_equal(loaded.observables.speed, run.observables.speed)
    assert "covariance" not in loaded.observables
