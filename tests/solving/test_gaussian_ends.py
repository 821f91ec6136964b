"""Where runs of Gaussians end, large and small numbers, and steady laws."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics.gaussian_attention import energy

LINE = mf.Gaussian([0.0], [[1.0]])
T = 0.5  # of softmax weights on the line, A = 1, from the variance 1: s' = 2 s^2
ROTATION = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])


def model(*matrices, **options):
    return mf.Transformer(mf.Attention(*matrices, **options))


@pytest.mark.long
@pytest.mark.parametrize("kind", [mf.L2(), mf.Sinkhorn()], ids=repr)
def test_growth_goes_on_until_numbers_end(kind):
    """s' = 4 s^2 / (1 + 2 s) under L2, and alike under Sinkhorn: s ~ e^(2 t) to 1.8e308."""
    times = [0, 340, 350, 800]
    with pytest.warns(mf.UnresolvedWarning, match="numbers exceed 1e308"):
        run = mf.solve(model(weights=kind), LINE, (0, 800), t_eval=times)
    assert run.status == "step_too_small" and 354 < run.t[-1] < 356
    assert run[2].cov[0, 0] / run[1].cov[0, 0] == pytest.approx(np.exp(20), rel=1e-6)
    assert 1e308 > run.final.cov[0, 0] / 2 > 1e307
    assert np.isfinite(run.observables.spread).all()


def test_l2_moves_what_is_too_large_to_be_squared():
    """K L = 3e155: points go to x Q / K, so that the variance grows by e^2."""
    law = mf.Gaussian([0.0], [[1e305]])
    run = mf.solve(model(1e3, 1e3, weights=mf.L2()), law, (0, 1), t_eval=[1.0])
    assert run.final.cov[0, 0] == pytest.approx(1e305 * np.exp(2), rel=1e-7)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("kind", "expected"), [(mf.L2(), [0.01380555, 0.00896293]), (mf.Sinkhorn(), None)], ids=repr
)
def test_a_small_variance_keeps_its_digits_beside_a_large_one(kind, expected):
    """V = R diag(1, -1) R^T: the run along the axes, turned; variances of 1e26 and 1e-2."""
    law, signs, times = mf.Gaussian([0, 0], np.eye(2)), np.diag([1.0, -1.0]), [20, 30]

    def variances(V):
        options = {"t_eval": times, "rtol": 1e-11}
        run = mf.solve(model(V=V, weights=kind), law, (0, 30), **options)
        assert [state.rank() for state in run] == [1, 1]
        np.testing.assert_array_equal(run.observables.least_variance, [s.variances[1] for s in run])
        return run.observables.least_variance.to_numpy(), run.observables.largest_variance

    turned, largest = variances(ROTATION @ signs @ ROTATION.T)
    along, _ = variances(signs)
    assert largest[-1] > 1e25
    np.testing.assert_allclose(turned, along, rtol=1e-7)
    if expected:
        np.testing.assert_allclose(turned, expected, atol=6e-9)


@pytest.mark.bits
def test_variances_survive_files_and_checkpoints(tmp_path):
    """The covariance alone has forgotten them."""
    law, V = mf.Gaussian([0, 0], np.eye(2)), ROTATION @ np.diag([1.0, -1.0]) @ ROTATION.T
    growing, path = model(V=V, weights=mf.L2()), tmp_path / "run.checkpoint"
    whole = mf.solve(growing, law, (0, 30))
    mf.solve(growing, law, (0, 30), checkpoint=path, max_steps=150)
    resumed = mf.solve(growing, law, (0, 30), checkpoint=path, resume=True)
    loaded = mf.load(whole.save(tmp_path / "run.nc"))
    for one, other, third in zip(whole, resumed, loaded, strict=True):
        assert one.root.tobytes() == other.root.tobytes() == third.root.tobytes()
        assert one.cov.tobytes() == other.cov.tobytes() == third.cov.tobytes()
    assert whole.final.variances[1] > 1e-3


def test_no_blow_up_is_certified_in_fixed_steps():
    """They pass it: the time that the detector would tell is off by a third."""
    with pytest.warns(mf.UnresolvedWarning, match="blow-up is passed .*leave dt out"):
        run = mf.solve(model(), LINE, (0, 30), t_eval=[30.0], dt=0.3)
    assert run.status == "not_finite" and run.stats["blow_up_time"] is None
    assert mf.solve(model(), LINE, (0, 30)).stats["blow_up_time"] == pytest.approx(T, abs=1e-8)


@pytest.mark.long
def test_the_loss_of_an_integral_is_named():
    """L2, beta < 0, V = -1: s' = 1.2 s^2 / (1 - 0.6 s) until s = 5/3."""
    with pytest.warns(mf.UnresolvedWarning, match="integral over the law"):
        run = mf.solve(model(1.0, V=-1.0, beta=-0.3, weights=mf.L2()), LINE, (0, 5))
    end = (1 - 0.6) / 1.2 - 0.5 * np.log(5 / 3)  # int (1 - 0.6 s) / (1.2 s^2) ds from 1 to 5/3
    assert run.status == "step_too_small" and run.t[-1] == pytest.approx(end, abs=1e-6)
    assert run.final.cov[0, 0] == pytest.approx(5 / 3, abs=1e-3)
    energies = run.observables.interaction_energy
    assert np.isfinite(energies[:-1]).all()  # the last law is next to the edge, on either side


def test_energies_where_numbers_end_are_nan_without_a_murmur():
    """A s = 1e310; and where it is large, (s D + log(1 - D^2) / 2) / 2 with D next to 1."""
    for kind in (mf.L2(), mf.Linear(), mf.Softmax(), mf.Sinkhorn()):
        key = 1e5 if kind == mf.L2() else np.array(1e10)
        law = mf.Gaussian([0.0], [[1e300]])
        assert np.isnan(energy(model(key, key, key**2, weights=kind).drift, law))
    large = energy(model(weights=mf.Sinkhorn()).drift, mf.Gaussian([0.0], [[1e20]]))
    assert large == pytest.approx(0.5e20, rel=1e-14)


@pytest.mark.parametrize("variance", [1e-200, 1e155, 1e180])
def test_the_unit_of_length_does_not_matter(variance):
    """s' = +-2 s^2 in any unit: blow-up at 1 / (2 s), or s / (1 + 2 s t)."""
    law, time = mf.Gaussian([0.0], [[variance]]), 1 / variance
    run = mf.solve(model(), law, (0, time))
    assert run.status == "blow-up"
    assert run.stats["blow_up_time"] == pytest.approx(T * time, rel=1e-8)
    run = mf.solve(model(-1.0), law, (0, time), t_eval=[time])
    assert run.final.cov[0, 0] == pytest.approx(variance / 3, rel=1e-7)
    far = mf.Gaussian([variance], [[1.0]])
    run = mf.solve(model(-1.0), far, (0, 1), t_eval=[1.0])
    assert run.observables.order_parameter[0] == pytest.approx(
        variance * np.e / np.sqrt(3), rel=1e-7
    )


def test_a_law_that_turns_into_itself_is_steady():
    """Points circle, N(0, 1) does not move."""
    turning, law = model(V=[[0.0, -1.0], [1.0, 0.0]]), mf.Gaussian([0, 0], np.eye(2))
    run = mf.solve(turning, law, (0, 100), until="steady")
    assert run.status == "steady" and run.t[-1] == 0
    assert run.observables.speed[0] == 0
    stretched = mf.solve(turning, mf.Gaussian([0, 0], np.diag([1.0, 2.0])), (0, 1))
    assert (stretched.observables.speed > 0.1).all()


def test_a_function_for_another_dimension_is_refused():
    with pytest.raises(ValueError, match=r"dimension 3; got .* dimension 2"):
        mf.solve(model(lambda t: np.eye(3)), mf.Gaussian([0, 0], np.eye(2)), (0, 1))
