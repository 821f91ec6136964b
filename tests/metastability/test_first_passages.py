"""First passages of plain ensembles: exact mean times, censoring, files."""

import sys

import numpy as np
import pytest
import xarray as xr
from scipy.stats import kstest

import meanfield as mf
from meanfield.metastability.first_passages import PlainEnsembles
from meanfield.metastability.rare_events import FirstPassages, MeanEstimate

STANDARD_ERRORS = 4
FREE = mf.Transformer(mf.Field(lambda x: 0 * x), kappa=1.0)
ONE = mf.Tokens([[1.0, 0.0]])


def angle(tokens):
    return np.abs(np.arctan2(tokens.x[..., 0, 1], tokens.x[..., 0, 0]))


def passages(**changes):
    options = {"target": 1.0, "t_max": 50.0, "replicas": 320, "rng": 1, "dt": 0.002,
               "progress": False}  # fmt: skip
    return mf.first_passages(FREE, ONE, angle, **(options | changes))


def exponential_law(count, seed, power=1.0, delay=0.0):
    """Passages whose times are powers of exponential numbers, after a delay."""
    times = delay + np.random.default_rng(seed).exponential(size=count) ** power
    about = {"source": np.nan, "model": "", "tokens": "", "status": "finished"}
    ends = np.ones(count, int)
    tables = {"time": ("trajectory", times), "end": ("trajectory", ends)}
    return FirstPassages(xr.Dataset(tables, {}, about))


def test_the_mean_time_of_free_diffusion_is_that_of_the_shifted_threshold():
    """T = b^2 kappa/2 with b = target + 0.5826 sqrt(2 dt/kappa), the correction for steps."""
    found = passages().mean_time
    exact = (1 + 0.5826 * 0.004**0.5) ** 2 / 2
    assert abs(found.value - exact) < STANDARD_ERRORS * found.error
    assert found.error < 0.07 * exact


def test_trajectories_are_the_same_for_any_number_and_batch():
    few, many = passages(replicas=33), passages(batch=1, replicas=96)
    assert few.data.sizes["trajectory"] == 64
    np.testing.assert_array_equal(few.data["time"], many.data["time"][:64])


def test_an_engine_sums_over_the_tokens():
    """Harmonics give the times of sums over pairs; of both, by splitting, the probability."""
    model = mf.Transformer(mf.USA(2.0), kappa=1.5)
    tokens = mf.Circle(16).uniform().sample(40, rng=0)

    def level(tokens):
        return np.linalg.norm(tokens.x.mean(axis=-2), axis=-1)

    start = float(level(tokens))
    options = {"target": start + 0.1, "source": start - 0.1, "rng": 0, "dt": 0.01,
               "progress": False}  # fmt: skip
    engines = mf.engines.Modes(), mf.engines.Direct()
    plain = [mf.first_passages(model, tokens, level, t_max=5.0, replicas=32, engine=engine,
                               **options).times for engine in engines]  # fmt: skip
    split = [mf.splitting(model, tokens, level, replicas=10, repetitions=2, engine=engine,
                          **options).probability.value for engine in engines]  # fmt: skip
    np.testing.assert_allclose(*plain, rtol=1e-12)
    assert split[0] == pytest.approx(split[1], rel=1e-12)
    with pytest.raises(TypeError, match="engine"):
        mf.first_passages(model, tokens, level, t_max=5.0, engine=3, **options)


def test_censored_times_have_the_likelihood_of_an_exponential_law():
    found = passages(t_max=0.5)
    times, count = found.data["time"].values, len(found.times)
    assert found.censored == 320 - count > 50
    assert found.mean_time.value == pytest.approx(times.sum() / count)
    assert found.mean_time.error == pytest.approx(times.sum() / count**1.5)
    assert passages(t_max=0.002).mean_time.value == np.inf
    with pytest.raises(ValueError, match="t_max"):
        found.exponential_test(0)


@pytest.mark.parametrize(("t_max", "last"), [(0.26, 0.2), (0.3, 0.3), (1.1, 1.1)])
def test_no_passage_is_later_than_the_largest_time(t_max, last):
    """0.3/0.1 is rounded to a number below 3, 1.1/0.1 to one above 11."""
    found = passages(t_max=t_max, dt=0.1, replicas=640)
    times = found.data["time"].values
    assert times[found.data["end"] == 0].tolist() == pytest.approx([last] * found.censored)
    assert found.censored and times.max() == found.times.max() == pytest.approx(last)
    with pytest.raises(ValueError, match=r"t_max must be at least one step of dt = 0.1; got"):
        passages(t_max=0.09, dt=0.1)


def test_trajectories_that_need_too_many_steps_are_censored_with_a_warning(monkeypatch):
    monkeypatch.setattr(sys.modules["meanfield.metastability.first_passages"], "LONGEST", 50)
    with pytest.warns(mf.UnresolvedWarning, match=r"32 of 32 .* 50 steps of dt = 1e-30, .* t_max"):
        found = passages(dt=1e-30, replicas=32)
    assert found.censored == 32 and found.data["time"].max() == pytest.approx(5e-29)
    assert passages(target=0.3, dt=0.05, t_max=1e9, replicas=32).censored == 0


def test_levels_and_steps_that_are_not_finite_are_named():
    with pytest.raises(mf.MeanfieldError, match=r"level must return finite .* 1 of 1 .* -inf"):
        mf.first_passages(FREE, ONE, lambda t: np.full(t.shape, -np.inf), target=1.0, t_max=1.0,
                          rng=0, dt=0.1)  # fmt: skip
    pull = mf.Transformer(mf.Potential(lambda x: 0.3 * x[..., 0]), kappa=2.0)
    start = mf.Tokens.on_circle([0.3])
    with pytest.raises(mf.MeanfieldError, match="dt = 10 are too long"):
        mf.first_passages(pull, start, angle, target=3.2, t_max=1e3, rng=1, dt=10.0)


def test_a_source_ends_trajectories():
    """From 0.6 between 0.2 and 1.0 half of the free trajectories come to the target."""
    start = mf.Tokens([[np.cos(0.6), np.sin(0.6)]])
    found = mf.first_passages(FREE, start, angle, source=0.2, target=1.0, t_max=50.0,
                              replicas=640, rng=2, dt=0.002, progress=False)  # fmt: skip
    assert found.censored == 0 and "at the source" in repr(found)
    assert abs(found.probability.value - 0.5) < STANDARD_ERRORS * found.probability.error
    for asked in (lambda: found.mean_time, found.plot):
        with pytest.raises(ValueError, match=r"without source; .* source = 0.2, too"):
            asked()


def test_a_level_at_the_source_or_at_the_target_is_there():
    """Levels rounded to 0.2: from 0.6 the thresholds 0.2 and 1.0 are at the angles 0.3 and 0.9."""
    start = mf.Tokens([[np.cos(0.6), np.sin(0.6)]])
    found = mf.first_passages(FREE, start, lambda tokens: np.round(angle(tokens) * 5) / 5,
                              source=0.2, target=1.0, t_max=50.0, replicas=640, rng=2, dt=0.002,
                              progress=False)  # fmt: skip
    assert abs(found.probability.value - 0.5) < STANDARD_ERRORS * found.probability.error


def test_starts_are_drawn_at_random_from_all_replicas():
    """More replicas than one ensemble has trajectories."""
    tokens = mf.Tokens(np.stack([mf.Tokens.on_circle([a]).x for a in np.linspace(0, 1, 128)]))
    work = PlainEnsembles(FREE, tokens, angle, 2.0, 0.002, 0, -np.inf, None, 1)
    one, other = (work.levels(work.starts(32, np.random.default_rng(i))) for i in range(2))
    assert np.ptp(one) > 0.7 and np.ptp(other) > 0.7
    assert not np.array_equal(one, other)


def test_the_test_of_an_exponential_law_accepts_it_and_refuses_another():
    values = [exponential_law(200, seed).exponential_test(0)[1] for seed in range(20)]
    assert sum(value < 0.05 for value in values) <= 4
    assert exponential_law(200, 1, power=2.0).exponential_test(0)[1] < 0.001
    with pytest.raises(ValueError, match="at least 5"):
        exponential_law(4, 0).exponential_test(0)


def test_the_statistic_is_that_of_scipy():
    """Of the law of the mean of the times, with differences of either sign the largest."""
    for power in (0.7, 1.5):
        found = exponential_law(50, 3, power=power)
        known = kstest(found.times / found.times.mean(), "expon")
        assert found.exponential_test(0)[0] == pytest.approx(known.statistic, rel=1e-12)
    signs = [kstest(one / one.mean(), "expon").statistic_sign for one in
             (exponential_law(50, 3, power=power).times for power in (0.7, 1.5))]  # fmt: skip
    assert set(signs) == {-1, 1}


def test_times_with_a_delay_are_exponential_after_it():
    found = exponential_law(300, 0, delay=0.3)
    assert found.exponential_test(0)[1] < 0.001
    assert found.exponential_test(0, after=0.4)[1] > 0.05
    with pytest.raises(ValueError, match="after must be a time >= 0"):
        found.exponential_test(0, after=-1.0)
    with pytest.raises(ValueError, match="at least 5"):
        found.exponential_test(0, after=100.0)


def test_student_intervals_of_few_samples():
    """The 97.5 % quantile of Student's law with two degrees of freedom is 4.302652730."""
    found = MeanEstimate.of_mean(np.array([1.0, 2.0, 3.0]))
    assert found.interval[1] == pytest.approx(2 + 4.302652730 / 3**0.5, rel=1e-9)
    assert found.interval[0] == 0.0
    assert MeanEstimate.of_mean(np.array([1.0])).error == np.inf


def test_passages_survive_a_file_and_are_drawn(tmp_path):
    found = passages(replicas=32)
    found.save(tmp_path / "passages.nc")
    again = mf.load(tmp_path / "passages.nc")
    assert repr(again) == repr(found)
    assert len(found.plot().axes) == 1


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"t_max": 0.0}, "t_max"),
        ({"source": 2.0}, "target"),
        ({"source": 0.5}, "above source = 0.5"),
        ({"rng": 1.5}, "rng"),
    ],
)
def test_arguments_out_of_range_are_refused(changes, match):
    with pytest.raises(ValueError, match=match):
        passages(**changes)


def test_steps_longer_than_the_time_scale_of_the_drift_are_told():
    """Five modes attract at rates up to 55: with dt = 0.05 clusters do not hold together."""
    model = mf.Transformer(mf.CosineSeries([0, 1, 1, 1, 1, 1]), kappa=1.15)
    start = mf.Circle(8).uniform().sample(4, rng=0)
    move = {"target": 0.5, "t_max": 0.2, "replicas": 2, "rng": 0}
    with pytest.warns(mf.UnresolvedWarning, match=r"dt = 0.05 .* time scale .* 0.018"):
        mf.first_passages(model, start, lambda tokens: tokens.x[..., 0].mean(-1), dt=0.05, **move)
    mf.first_passages(model, start, lambda tokens: tokens.x[..., 0].mean(-1), dt=0.01, **move)
    with pytest.warns(mf.UnresolvedWarning, match=r"dt = 0.05 .* time scale .* 0.018"):
        mf.solve(model, start, (0, 0.1), rng=0, dt=0.05, progress=False)
