"""Adaptive multilevel splitting against exact laws of walks, quadrature and plain ensembles."""

import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import meanfield as mf
from meanfield.core.errors import MeanfieldError
from meanfield.metastability.rare_events import SplittingStudy
from meanfield.metastability.splitting import MultilevelSplitting, Repetition

STANDARD_ERRORS = 4
MODULE = sys.modules["meanfield.metastability.splitting"]
KURAMOTO = mf.Transformer(mf.Kuramoto(), kappa=1.0)
TOKENS = mf.Tokens([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
WELLS = mf.Transformer(mf.Field(lambda x: x * np.array([2.0, 0.0])), kappa=4.0)
ONE = mf.Tokens([[1.0, 0.0]])


def order(tokens):
    return np.linalg.norm(tokens.x.mean(axis=-2), axis=-1)


def angle(tokens):
    return np.abs(np.arctan2(tokens.x[..., 0, 1], tokens.x[..., 0, 0]))


def study(**changes):
    options = {"source": 0.1, "target": 0.95, "replicas": 20, "repetitions": 6, "rng": 1,
               "dt": 0.05, "progress": False}  # fmt: skip
    return mf.splitting(KURAMOTO, TOKENS, order, **(options | changes))


def walk(seed, *, height, killed, replicas=8, entrance=None, loops=2, start=None):
    """The result of a repetition for the symmetric walk on 0, 1, ..., reflected at 0.

    Its exact laws are P(height before 0) = 1/height from 1, and a mean time of height^2 - start^2.
    """
    rng = np.random.default_rng(seed)
    if start is None:
        start = 1 if entrance is None else 0
    work = SimpleNamespace(
        starts=lambda count, rng: np.full((count, 1, 1), float(start)), levels=lambda y: y[:, 0, 0],
        source=0, target=height, entrance=entrance, replicas=replicas, killed=killed, loops=loops,
        dt=1.0,
    )  # fmt: skip
    ensemble = Repetition(work, rng)
    while len(ensemble.y):
        y = np.abs(ensemble.y + rng.choice([-1.0, 1.0], ensemble.y.shape))
        ensemble.take(y, y[:, 0, 0])
    return ensemble.result()


@pytest.mark.repeats
@pytest.mark.parametrize("killed", [3, 1, 7])
def test_the_probability_of_a_walk_has_no_bias(killed):
    """Levels of a walk are whole numbers: ties, and repetitions that die out, are frequent."""
    each = np.array([walk(seed, height=8, killed=killed)["probability"] for seed in range(600)])
    assert (each == 0).any()
    error = each.std() / len(each) ** 0.5
    assert abs(each.mean() - 1 / 8) < STANDARD_ERRORS * error
    assert error < 0.2 / 8


@pytest.mark.long
def test_the_mean_time_of_a_walk_is_its_height_squared():
    rows = [walk(seed, height=8, killed=1, replicas=30, entrance=1) for seed in range(200)]
    time = SplittingStudy.of(rows, {"entrance": 1.0}).mean_time
    assert abs(time.value - 64) < STANDARD_ERRORS * time.error
    assert time.error < 3


@pytest.mark.long
def test_one_token_in_a_double_well_has_the_time_of_quadrature():
    """Kramers' problem: drift -V' with V = -cos(theta)^2, from 0 to 2.2, beyond the top."""
    found = mf.splitting(
        WELLS, ONE, angle, source=0.2, entrance=0.5, target=2.2, replicas=50, repetitions=8,
        rng=2, dt=0.01, progress=False,
    ).mean_time  # fmt: skip
    theta, kappa = np.linspace(0, 2.2, 4001), 4.0
    well = np.exp(kappa * np.cos(theta) ** 2)
    middle = (well[1:] + well[:-1]) / 2 * theta[1]
    inner = np.concatenate([[0], np.cumsum(middle)])
    exact = kappa * np.trapezoid(inner / well, theta)
    assert abs(found.value - exact) < STANDARD_ERRORS * found.error
    assert found.error < 0.2 * exact


def test_splitting_and_a_plain_ensemble_agree():
    """At one length of steps both estimate the probability of one chain."""
    split = study(target=0.97, repetitions=20).probability
    plain = mf.first_passages(
        KURAMOTO, TOKENS, order, source=0.1, target=0.97, t_max=1e3, replicas=3200, rng=5,
        dt=0.05, progress=False,
    )  # fmt: skip
    assert plain.censored == 0
    error = np.hypot(split.error, plain.probability.error)
    assert abs(split.value - plain.probability.value) < STANDARD_ERRORS * error
    assert error < 0.3 * split.value


def test_numbers_depend_on_the_seed_alone(tmp_path):
    """Neither batches, workers, a store nor the number of repetitions changes a bit."""
    whole = study()
    for options in ({"batch": 1}, {"batch": 4, "executor": ThreadPoolExecutor(2)},
                    {"store": tmp_path / "few", "repetitions": 3}, {"repetitions": 3}):  # fmt: skip
        other = study(**options)
        count = options.get("repetitions", 6)
        for name in ("probability", "reactive_time", "steps"):
            np.testing.assert_array_equal(other.data[name], whole.data[name][:count])
    resumed = study(store=tmp_path / "few")
    np.testing.assert_array_equal(resumed.data["probability"], whole.data["probability"])
    assert not np.array_equal(study(rng=2).data["probability"], whole.data["probability"])
    with pytest.raises(mf.CheckpointError, match="arguments differ: f"):
        study(store=tmp_path / "few", rng=2)


def test_ctrl_c_ends_within_a_batch_and_the_store_has_the_others(tmp_path, monkeypatch):
    """The 400th levels of a study press Ctrl-C."""
    calls, levels = [], MultilevelSplitting.levels

    def pressing(work, y):
        calls.append(None)
        if len(calls) == 400:
            signal.raise_signal(signal.SIGINT)
        return levels(work, y)

    monkeypatch.setattr(MultilevelSplitting, "levels", pressing)
    broken = study(batch=1, store=tmp_path / "study")
    assert len(calls) == 400
    assert broken.status == "interrupted" and not broken.success and "INTERRUPTED" in repr(broken)
    assert 0 < broken.data.sizes["repetition"] < 6
    rest = study(batch=1, store=tmp_path / "study")
    assert rest.success
    np.testing.assert_array_equal(rest.data["probability"], study().data["probability"])
    calls[:] = [None] * 395
    with pytest.raises(MeanfieldError, match="before the interruption"):
        study()


def test_common_noise_moves_trajectories_independently():
    """Ensembles draw the common noise, too, from their own generators."""
    model = mf.Transformer(mf.Kuramoto(), kappa=1.0, common=mf.CommonRotations(2.0))
    options = {"source": 0.1, "target": 0.9, "replicas": 10, "repetitions": 2, "rng": 0, "dt": 0.05,
               "progress": False}  # fmt: skip
    one, other = (mf.splitting(model, TOKENS, order, batch=b, **options) for b in (1, 2))
    np.testing.assert_array_equal(one.data["probability"], other.data["probability"])
    assert 0 < one.probability.value < 1


@pytest.mark.long
def test_the_start_may_be_drawn_from_replicas():
    """Of two starts, one near the target and one near the source."""
    near, far = (mf.Tokens([[np.cos(a), np.sin(a)]]) for a in (2.0, 0.3))
    both = mf.Tokens(np.stack([near.x, far.x]))
    options = {"source": 0.2, "target": 2.2, "replicas": 50, "repetitions": 10, "rng": 0,
               "dt": 0.02, "progress": False}  # fmt: skip
    p, q, mean = (mf.splitting(WELLS, one, angle, **options).probability
                  for one in (near, far, both))  # fmt: skip
    error = np.linalg.norm([p.error / 2, q.error / 2, mean.error])
    assert p.value > 0.5 > 10 * q.value
    assert abs(mean.value - (p.value + q.value) / 2) < STANDARD_ERRORS * error


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"target": 0.05}, "target"),
        ({"target": np.inf}, "target"),
        ({"source": -np.inf}, "source"),
        ({"source": 0.5}, "entrance"),
        ({"entrance": 0.97}, "entrance"),
        ({"entrance": 0.1}, "entrance"),
        ({"replicas": 1}, "replicas"),
        ({"repetitions": 1}, "repetitions"),
        ({"loops": 1}, "loops"),
        ({"killed": 20}, "killed"),
        ({"killed": 1.5}, "killed"),
        ({"killed": True}, "killed"),
        ({"rng": -1}, "rng"),
        ({"dt": 0.0}, "dt"),
        ({"replicas": 10**9, "dt": 1e-4}, "replicas or batch"),
    ],
)
def test_arguments_out_of_range_are_refused(changes, match):
    with pytest.raises(ValueError, match=match):
        study(**changes)


def test_starts_beyond_the_target_are_refused():
    with pytest.raises(ValueError, match="below target"):
        study(target=0.2)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (mf.Transformer(mf.Kuramoto()), "noise"),
        (mf.Transformer(mf.Kuramoto(), kappa=lambda t: 1 + t), "depend on t"),
    ],
)
def test_models_without_steady_noise_are_refused(model, match):
    with pytest.raises(MeanfieldError, match=match):
        mf.splitting(model, TOKENS, order, source=0.1, target=0.9, rng=0, dt=0.1)


@pytest.mark.parametrize(
    "level", [lambda tokens: 1.0, lambda tokens: tokens.x, lambda tokens: order(tokens) + 1j]
)
def test_levels_that_are_not_a_number_for_each_replica_are_refused(level):
    with pytest.raises(ValueError, match="level must return a real number for each replica"):
        mf.splitting(KURAMOTO, TOKENS, level, source=0.1, target=0.9, rng=0, dt=0.1)


def test_a_level_that_is_nan_is_an_error():
    with pytest.raises(MeanfieldError, match="nan"):
        mf.splitting(KURAMOTO, TOKENS, lambda t: np.nan * order(t), source=0.1, target=0.9, rng=0,
                     dt=0.1)  # fmt: skip


@pytest.mark.parametrize("number", [np.inf, -np.inf])
@pytest.mark.parametrize("options", [{}, {"source": 0.4, "entrance": 0.5}])
def test_levels_on_the_way_and_at_the_start_are_finite(number, options):
    """Levels of 1/3 and less, that of the start among them, or of 0.9 and more."""

    def level(tokens):
        r = order(tokens)
        return np.where(r > 0.9 if number > 0 else r < 0.34, number, r)

    with pytest.raises(MeanfieldError, match=rf"level must return finite .* is {number}\."):
        mf.splitting(KURAMOTO, TOKENS, level, target=0.95, replicas=20, repetitions=2, rng=1,
                     dt=0.05, progress=False, **({"source": 0.1} | options))  # fmt: skip


@pytest.mark.parametrize(
    ("name", "given", "as_python"),
    [
        ("killed", np.int64(3), 3),
        ("killed", np.array(3), 3),
        ("killed", np.float32(0.2), 0.2),
        ("entrance", np.float32(0.5), 0.5),
        ("entrance", np.array(0.5), 0.5),
        ("entrance", np.int64(0), 0.0),
    ],
)
def test_numbers_of_numpy_are_numbers(name, given, as_python):
    """Levels are shifted, so that an entrance at 0 is between source and target."""
    found, same = (
        mf.splitting(KURAMOTO, TOKENS, lambda tokens: order(tokens) - 0.4, source=-0.1, target=0.55,
                     replicas=10, repetitions=2, rng=1, dt=0.05, progress=False,
                     **({"entrance": 0.1} | {name: value}))
        for value in (given, as_python)
    )  # fmt: skip
    assert found.data.identical(same.data)


@pytest.mark.long
def test_a_target_out_of_reach_has_probability_0():
    """No order parameter is above 1; the result says so."""
    found = study(target=1.5, repetitions=2, replicas=8)
    assert found.probability.value == 0
    assert "0    in 2 of 2 repetitions" in repr(found)
    timed = study(source=0.4, entrance=0.5, target=1.5, repetitions=2, replicas=8)
    assert timed.mean_time.value == np.inf


def test_a_source_out_of_reach_ends_with_an_error(monkeypatch):
    """No order parameter is 0 or less."""
    monkeypatch.setattr(MODULE, "LONGEST", 500)
    with pytest.raises(MeanfieldError, match="thresholds"):
        study(source=0.0, target=1.5, repetitions=2)


@pytest.mark.long
def test_the_mean_time_counts_trajectories_that_come_to_the_target_before_the_source():
    """Half of the trajectories from 4 to 8 do, for a walk that is not stopped at 0."""
    rows = [walk(seed, height=8, killed=1, replicas=30, entrance=1, start=4) for seed in range(200)]
    study = SplittingStudy.of(rows, {"entrance": 1.0})
    direct = study.data["direct"].values
    assert abs(direct.mean() - 0.5) < STANDARD_ERRORS * direct.std() / len(direct) ** 0.5
    time = study.mean_time
    assert abs(time.value - (64 - 16)) < STANDARD_ERRORS * time.error
    assert time.error < 3


def test_the_mean_time_and_its_error_from_three_repetitions():
    """Reactive times count by the probability; the error is that of the jackknife, by its sums."""
    p, reactive, loop = np.array([0.2, 0.6, 0.1]), np.array([1.0, 3.0, 7.0]), np.array([2.0, 4, 3])
    first, direct = np.array([1.0, 1.5, 0.5]), np.array([0.0, 0.5, 0.25])
    rows = [
        {"probability": p[i], "reactive_time": reactive[i], "loop_time": loop[i],
         "first_time": first[i], "direct": direct[i], "level": [], "killed": []}
        for i in range(3)
    ]  # fmt: skip

    def time(kept):
        climbing = (p[kept] @ reactive[kept]) / p[kept].sum()
        later = (1 / p[kept].mean() - 1) * loop[kept].mean() + climbing
        return first[kept].mean() + (1 - direct[kept].mean()) * later

    without = np.array([time([1, 2]), time([0, 2]), time([0, 1])])
    found = SplittingStudy.of(rows, {"entrance": 1.0}).mean_time
    assert found.value == pytest.approx(time([0, 1, 2]), rel=1e-14)
    error = (2 / 3 * ((without - without.mean()) ** 2).sum()) ** 0.5
    assert found.error == pytest.approx(error, rel=1e-12)


def test_the_curve_is_the_probability_to_be_above_a_level():
    """Replicas that are stopped at a level, as of a walk, are not above it."""
    rows = [walk(seed, height=8, killed=3) for seed in range(4)]
    study = SplittingStudy.of(rows, {"target": 8.0, "replicas": 8})
    z, each = study.curve()
    lowest = np.where(study.data["level"].values == z[0], study.data["killed"].values, 0.0)
    assert z[0] == 1 and lowest.any(axis=1).all()
    np.testing.assert_allclose(each[:, 0], np.prod(1 - lowest / 8, axis=1), rtol=1e-14)


def test_the_curve_of_probabilities_ends_in_the_estimate():
    found = study()
    z, each = found.curve()
    assert (np.diff(each, axis=1) <= 0).all()
    reached = found.data["probability"].values > 0
    shares = found.data["probability"].values / each[:, -1]
    assert z[-1] == 0.95
    assert (shares[reached] > 0.5).all() and (shares <= 1 + 1e-12).all()


def test_a_study_survives_a_file(tmp_path):
    found = study(source=0.4, entrance=0.5)
    found.save(tmp_path / "study.nc")
    again = mf.load(tmp_path / "study.nc")
    assert repr(again) == repr(found) and "T " in repr(found)
    assert again.probability == found.probability and again.mean_time == found.mean_time
    with pytest.raises(ValueError, match="entrance"):
        _ = study(repetitions=2).mean_time
