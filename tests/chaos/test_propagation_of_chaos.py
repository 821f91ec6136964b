"""Studies of n tokens against the mean field: seeds, tables, known constants, files."""

import signal
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import meanfield as mf
from meanfield.chaos.experiment import _apart_up_to_rotation, _coupling_distance, batches_of
from meanfield.chaos.measurements import MEASUREMENTS, measurements_on
from meanfield.sweeps.executors import processes

CIRCLE = mf.Circle(24)


def first(x):
    """The first coordinate."""
    return x[..., 0]


START = CIRCLE.density(lambda t: 1 + 0.5 * np.cos(t))
MODEL = mf.Transformer(mf.Kuramoto(), 1.0)


def study(**changes):
    """A small one."""
    arguments = {"sizes": [16, 64], "times": [0.0, 0.5], "replicas": 70, "rng": 0, "dt": 0.1}
    arguments |= changes
    return mf.propagation_of_chaos(arguments.pop("model", MODEL), START, **arguments)


@cache
def small_study():
    return study()


SMALL_BATCHES = batches_of([16, 64], 70)


@pytest.mark.long
def test_tables_are_labelled():
    assert dict(small_study().data.sizes) == {"n": 2, "t": 2, "replica": 70}
    assert set(small_study().data) >= {"W1", "W2", "H^-1", "floor of W2", "coupling", "|m_1|^2"}
    assert not any(np.isnan(table).any() for table in small_study().data.values())
    assert (small_study().data["coupling"].sel(t=0) == 0).all()
    assert "W2" in repr(small_study()) and "coupling" in repr(small_study())


def test_the_nonlinear_process_has_the_noise_of_the_model():
    """Coupled tokens come closer like n^(-1/2): a factor 4 here, and none if they are not."""
    noise = mf.noise.Anisotropic(np.diag([1.6, 0.4]))
    model = mf.Transformer(mf.Kuramoto(), 1.0, noise=noise)
    options = {"replicas": 8, "times": [0.5], "distances": ["H^-1"], "floor": False}
    found = study(model=model, sizes=[16, 256], **options)
    coupling = found.data["coupling"].mean("replica").values
    assert coupling[1] < 0.35 * coupling[0]


@pytest.mark.bits
def test_a_part_of_a_study_has_the_same_numbers():
    part = study(sizes=[64], replicas=5)
    for name in ("W2", "coupling", "floor of W1", "|m_1|^2"):
        np.testing.assert_array_equal(
            part.data[name], small_study().data[name].isel(n=[1], replica=slice(5))
        )
    assert not (study(sizes=[64], replicas=5, rng=1).data["W2"] == part.data["W2"]).any()


def test_numbers_are_those_of_runs_by_hand():
    """The first replica of n = 16, from the seeds that batches have."""
    first, noise, _ = batches_of([16], 70)[0].seeds(0, 3)
    tokens = mf.Tokens(START.sample(64 * 16, rng=first).x.reshape(64, 16, 2))
    run = mf.solve(MODEL, tokens, (0, 0.5), t_eval=[0, 0.5], dt=0.1, rng=noise)
    exact = mf.wasserstein(run.final, small_study().law.final)
    np.testing.assert_array_equal(small_study().data["W2"].isel(n=0, t=1)[:64], exact.value)


def test_coupled_tokens_have_the_same_noise():
    """With noise of their own they would be about 1 apart at t = 0.5, for every n."""
    apart = small_study().data["coupling"].sel(t=0.5).mean("replica").values
    assert apart[1] < 0.15 and 1.4 < apart[0] / apart[1] < 2.8  # 2 for n^(-1/2)


@pytest.mark.long
def test_at_the_start_tokens_are_independent():
    """|m_1|^2 has the mean |m|^2 + (1 - |m|^2)/n, and distances are those of the floor."""
    table = study(sizes=[32], times=[0.0, 0.1], replicas=640, coupling=False)
    table = table.data.isel(t=0)
    squares, limit = table["|m_1|^2"].values.ravel(), float(table["limit of |m_1|^2"])
    error = squares.std() / 640**0.5
    assert limit == pytest.approx(1 / 16)
    assert abs(squares.mean() - (limit + (1 - limit) / 32)) < 4 * error
    W2, floor = table["W2"].values.ravel(), table["floor of W2"].values.ravel()
    assert abs(W2.mean() - floor.mean()) < 4 * np.hypot(W2.std(), floor.std()) / 640**0.5


def test_rows_are_those_of_runs_by_hand():
    """Of each time: functionals, tokens in the mean field with breaks, and samples of the floor."""
    breaks, dt = (0.13,), 0.1
    found = study(sizes=[16], replicas=3, distances=["W2"], breaks=breaks).data.isel(n=0)
    batch = batches_of([16], 3)[0]
    first_rng, noise, samples = batch.seeds(0, 3)
    size, options = batch.size, {"t_eval": [0, 0.5], "dt": dt, "breaks": breaks}
    tokens = mf.Tokens(START.sample(size * 16, rng=first_rng).x.reshape(size, 16, 2))
    path = mf.solve(MODEL, tokens, (0, 0.5), rng=noise, **options)
    means = np.stack([first(state.x).mean(axis=-1)[:3] for state in path])
    np.testing.assert_allclose(found["x_1"], means, rtol=0, atol=1e-15)
    law = small_study().law
    field = MODEL.replace(drift=mf.MeanField(law))
    limit = mf.solve(field, tokens, (0, 0.5), rng=batch.seeds(0, 3)[1], **options)
    apart = np.linalg.norm(path.final.x - limit.final.x, axis=-1)
    exact = np.sqrt((apart**2).mean(axis=-1))[:3]
    np.testing.assert_allclose(found["coupling"].isel(t=1), exact, rtol=1e-6)
    x = START.sample(size * 16, rng=samples).x.reshape(size, 16, 2)
    floor = mf.wasserstein(mf.Tokens(x[:3]), START)
    np.testing.assert_allclose(found["floor of W2"].isel(t=0), floor.value, rtol=1e-12)


def test_a_store_belongs_to_one_accuracy_of_the_density(tmp_path):
    options = {"sizes": [8], "replicas": 2, "store": tmp_path / "study.store", "distances": ["W2"]}
    study(**options)
    with pytest.raises(mf.CheckpointError, match="belongs to another sweep"):
        study(**options, rtol=1e-6)


@pytest.mark.long
def test_fluctuations_of_the_uniform_phase():
    """n E|m_k|^2 = 1/(1 - kappa/kappa_k): 2 for k = 1 and kappa = 1, 1 for k = 2."""
    uniform = CIRCLE.uniform()
    found = mf.propagation_of_chaos(
        MODEL, uniform, [128], [8.0], 640, rng=3, dt=0.1, coupling=False, floor=False, distances={}
    ).data
    for name, exact in (("|m_1|^2", 2.0), ("|m_2|^2", 1.0)):
        scaled = 128 * found[name].values.ravel()
        assert abs(scaled.mean() - exact) < 4 * scaled.std() / 640**0.5 + 0.03  # of 1/n, dt^2


def test_without_noise_too():
    found = study(model=mf.Transformer(mf.SA(2.0)), dt=None, replicas=4)
    assert (found.data["coupling"].sel(t=0.5) > 0).all()


def test_on_the_sphere():
    start = mf.Sphere(12).von_mises_fisher([0, 0, 1], 1.0)
    model = mf.Transformer(mf.USA(1.0), 4.0)
    found = mf.propagation_of_chaos(model, start, [16, 64], [0.2], 64, rng=0, dt=0.1)
    assert {"mmd", "H^-2", "coupling", "x_1"} <= set(found.data)
    assert found.rate("mmd").exponent == pytest.approx(-0.5, abs=0.12)


@pytest.mark.long
def test_on_the_torus():
    torus = mf.Torus(12)
    model, start = mf.Transformer(mf.USA(0.5), 1.0), torus.von_mises([0.3, 1.0], 0.7)
    found = mf.propagation_of_chaos(model, start, [16, 64], [0.4], 64, rng=0, dt=0.2)
    assert {"mmd", "H^-2", "coupling", "x_1", "|m_1|^2"} <= set(found.data)
    for name in ("mmd", "H^-2", "coupling"):
        assert found.rate(name).exponent == pytest.approx(-0.5, abs=0.12)
    coupled = found.data["coupling"] - found.data["coupling up to rotation"]
    assert (coupled >= 0).all() and (coupled > 0).any()


@pytest.mark.long
def test_coupled_tokens_on_the_torus_move_in_the_field_of_the_density():
    """Without noise, tokens at quadrature nodes have the moments of the density they follow."""
    torus, times = mf.Torus(16), np.linspace(0, 0.5, 41)
    mu = torus.von_mises([0.3, 1.0], 0.5)
    axis = 2 * np.pi * np.arange(24) / 24
    angles = np.stack([x.ravel() for x in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    masses = mu.at(torus.embed(angles))
    tokens = mf.Tokens.on_torus(angles, masses / masses.sum())
    uneven = mf.PeriodicKernel(lambda z, w: 0.6 * np.cos(z + 0.4) + 0.3 * np.sin(w - z))
    for drift in (mf.SA(1.2), uneven, mf.USA(0.5) + mf.Potential(lambda x: x[..., 0] * x[..., 3])):
        run = mf.solve(mf.Transformer(drift), mu, (0, 0.5), t_eval=times, rtol=1e-10)
        field = mf.Transformer(mf.MeanField(run))
        final = mf.solve(field, tokens, (0, 0.5), t_eval=[0.5], rtol=1e-10).final
        np.testing.assert_allclose(final.moment(1), run.final.moment(1), rtol=0, atol=1e-8)


def test_distances_up_to_translation_of_tokens_on_the_torus():
    rng = np.random.default_rng(0)
    angles, by = rng.uniform(0, 6, (3, 20, 2)), np.array([0.7, -1.2])
    noise = 0.1 * rng.standard_normal((3, 20, 2))
    a = mf.Tokens.on_torus(angles)
    turned = mf.Tokens.on_torus(angles + by)
    np.testing.assert_allclose(_apart_up_to_rotation(a, turned), 0, atol=1e-7)
    b = mf.Tokens.on_torus(angles + by + noise)
    found = _apart_up_to_rotation(a, b)
    assert (found < _coupling_distance(a, mf.Tokens.on_torus(angles + noise)) + 1e-12).all()
    for i, one in enumerate(found):  # the least over a grid of translations
        shifts = np.linspace(-0.1, 0.1, 41)
        gaps = [2 - 2 * np.cos(noise[i, None, :, k] - shifts[:, None]) for k in (0, 1)]
        least = sum(gap.mean(axis=1).min() for gap in gaps) ** 0.5
        assert one == pytest.approx(least, rel=1e-2) and one <= least + 1e-12


def test_points_of_a_sphere_do_not_move_in_the_field_of_a_torus():
    run = mf.solve(
        mf.Transformer(mf.USA(0.5), 1.0),
        mf.Torus(12).von_mises([0.3, 1.0], 0.5),
        (0, 1),
        t_eval=np.linspace(0, 1, 9),
    )
    model = mf.Transformer(mf.MeanField(run), 1.0)
    with pytest.raises(mf.MeanfieldError, match=r"unit vectors of R\^4.*on_torus\(angles\)"):
        mf.solve(model, mf.Tokens(np.eye(4)), (0, 1), rng=0, dt=0.1)
    with pytest.raises(ValueError, match="dimension 4"):
        mf.solve(model, mf.Tokens.on_torus(np.zeros((4, 3))), (0, 1), rng=0, dt=0.1)


@pytest.mark.long
def test_coupling_does_not_depend_on_the_last_time():
    """The field is resolved where it changes fast, however long the study is."""
    start = mf.Circle(32).von_mises(0.0, 2.0)
    options = {"rng": 1, "dt": 0.025, "distances": [], "functionals": {}, "floor": False}
    fast = mf.Transformer(mf.USA(4.0), 1.5)
    short, long = (
        mf.propagation_of_chaos(fast, start, [64], times, 2, **options).data["coupling"].sel(t=0.2)
        for times in ([0.2, 1.0], [0.2, 1.0, 40.0])
    )
    np.testing.assert_allclose(short, long, rtol=1e-4)


@pytest.mark.long
def test_a_study_of_one_distance_or_none_survives_its_file(tmp_path):
    for names in (["W2"], []):
        path = study(distances=names, sizes=[16], replicas=2).save(tmp_path / f"{len(names)}.nc")
        again = mf.Study.load(path)
        assert again.data.attrs["distances"] == names and "coupling" in repr(again)
        again.plot()


@pytest.mark.long
def test_the_executor_changes_nothing():
    with processes(1) as pool, ThreadPoolExecutor(3) as threads:
        for executor in (pool, threads):
            assert study(executor=executor).data.identical(small_study().data)
        with pytest.raises(mf.MeanfieldError, match=r"Distances and functionals, .* picklable"):
            study(distances={"W": lambda a, b: mf.wasserstein(a, b)}, executor=pool)


def test_known_distances_are_chosen_by_name():
    names = ["W2 up to rotation", "H^-1 up to rotation", "W2"]
    found = study(distances=names, sizes=[16], replicas=3, floor=False).data
    assert found.attrs["distances"] == names and "W1" not in found
    assert (found["W2 up to rotation"] <= found["W2"] * (1 + 1e-6)).all()
    assert (found["coupling up to rotation"] <= found["coupling"] * (1 + 1e-9) + 1e-7).all()


def test_a_rotation_of_all_tokens_is_no_distance():
    """Coupled tokens in 3 dimensions, of which one set is rotated; a mirror image is not."""
    from meanfield.chaos.experiment import _apart_up_to_rotation

    x = mf.Tokens.uniform(9, 3, rng=0, shape=(2,)).x
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    rotation *= np.sign(np.linalg.det(rotation))
    first = mf.Tokens(x)
    assert _apart_up_to_rotation(first, mf.Tokens(x @ rotation)).max() < 1e-7
    assert _apart_up_to_rotation(first, mf.Tokens(-x)).min() > 0.1


class Broken(Exception):
    """Raised in the middle of a study."""


@pytest.mark.bits
def test_a_broken_study_is_resumed_and_extended(tmp_path):
    calls, path = tmp_path / "calls", tmp_path / "study.store"  # a list would be part of `measure`

    def measure(tokens, law):
        with calls.open("a") as file:
            file.write(".")
        if len(calls.read_text()) == 6:
            raise Broken
        return mf.wasserstein(tokens, law)

    options = {"distances": {"W2": measure}, "store": path, "floor": False}
    with pytest.raises(mf.MeanfieldError, match=r"n = 64, number = 0, .* failed: Broken"):
        study(**options)
    again = study(**options)
    np.testing.assert_array_equal(again.data["W2"], small_study().data["W2"])
    count = 3 + 2 * len(SMALL_BATCHES)  # two tried, one in vain; two times
    assert len(calls.read_text()) == count
    larger = study(**options, sizes=[16, 32, 64], replicas=80)
    np.testing.assert_array_equal(larger.data["W2"].sel(n=[16, 64])[..., :70], again.data["W2"])
    new = [batch for batch in batches_of([16, 32, 64], 80) if batch not in SMALL_BATCHES]
    assert len(calls.read_text()) == count + 1 + 2 * len(new)
    for name, changes in {
        "seed": {"rng": 1},
        "distances": {"distances": {"W2": mf.wasserstein}},
    }.items():
        with pytest.raises(mf.CheckpointError, match=rf"belongs to another sweep.*\.{name}"):
            study(**options | changes)


def test_ctrl_c_ends_a_study_with_what_it_has(tmp_path):
    raised = tmp_path / "raised"

    def measure(tokens, law):
        with raised.open("a") as file:
            file.write(f"{len(tokens)} ")
        if raised.read_text().split().count("64") == 3:  # at the second batch of 64
            signal.raise_signal(signal.SIGINT)
        return mf.wasserstein(tokens, law)

    options = {"distances": {"W2": measure}, "store": tmp_path / "study.store", "floor": False}
    options["replicas"] = 400
    half = study(**options)
    assert half.status == "interrupted" and not half.success and "INTERRUPTED" in repr(half)
    assert np.isnan(half.data["W2"].sel(n=64)).any() and half.rate("W2").exponent < 0
    assert study(**options).success


def test_failing_runs_say_which(monkeypatch):
    failed = SimpleNamespace(success=False, status="stopped", message="no luck")
    monkeypatch.setattr("meanfield.chaos.experiment.solve", lambda *_, **__: failed)
    with pytest.raises(mf.MeanfieldError, match="16 interacting tokens ended early: no luck"):
        study()
    monkeypatch.setattr("meanfield.chaos.study.solve", lambda *_, **__: failed)
    with pytest.raises(mf.MeanfieldError, match=r"no luck"):
        study()


def test_breaks_are_those_of_solve():
    """Noise in a short time, which steps without breaks miss."""
    breaks = (0.5, 0.52)
    model = mf.Transformer(
        mf.Kuramoto(), lambda t: np.where((t >= breaks[0]) & (t < breaks[1]), 0.05, 1e3)
    )
    seen = study(model=model, times=[1.0], replicas=2, coupling=False, breaks=breaks)
    missed = study(model=model, times=[1.0], replicas=2, coupling=False)
    run = mf.solve(model, START, (0, 1), t_eval=[1.0], rtol=1e-8, breaks=breaks)
    assert float(seen.data["limit of x_1"][0]) == pytest.approx(run.final.expect(first), abs=1e-7)
    assert np.abs(missed.data["x_1"] - seen.data["x_1"]).min() > 1e-3  # other steps of tokens
    with pytest.raises(ValueError, match=r"breaks.*1\.5"):
        study(breaks=[1.5])


def test_a_study_is_kept_in_a_file(tmp_path):
    path = small_study().save(tmp_path / "study.nc")
    again = mf.Study.load(path)
    assert again.data.identical(small_study().data)
    np.testing.assert_array_equal(
        again.law.final.coefficients, small_study().law.final.coefficients
    )
    assert mf.load(path).data.attrs == small_study().data.attrs and again.law.t[-1] == 0.5
    with pytest.raises(mf.StorageError, match="holds no Study, but a Solution"):
        mf.Study.load(small_study().law.save(tmp_path / "law.nc"))
    with pytest.raises(mf.StorageError, match=r"folder .* does not exist"):
        small_study().save(tmp_path / "nowhere" / "study.nc")


def test_a_figure_has_rates_and_times():
    figure = small_study().plot()
    left, right = figure.axes
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert any("W_2" in label and "n^{-0." in label for label in labels)
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["$n = 16$", "$n = 64$"]
    assert "W_1" in small_study().plot(t=0.0, name="W1").axes[1].get_ylabel()
    with pytest.raises(ValueError, match="one of W1, W2"):
        small_study().plot(name="W3")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"sizes": [1, 4]}, "increasing numbers of tokens >= 2"),
        ({"sizes": [8, 4]}, "increasing numbers"),
        ({"sizes": []}, "increasing numbers"),
        ({"sizes": [4.5]}, "whole number"),
        ({"times": [1.0, 0.5]}, "times must be"),
        ({"times": []}, "times must be"),
        ({"times": [0.0]}, "got times"),
        ({"times": [-1.0]}, "times must be"),
        ({"replicas": 0}, "replicas must be a whole number >= 2"),
        ({"replicas": 1}, "replicas must be a whole number >= 2"),
        ({"rng": -1}, "seed"),
        ({"distances": ["W2", "W3"]}, "distances must be some of W1, W2"),
        ({"times": [float("nan")]}, "times must be"),
        ({"times": [0.5, 0.5 + 1e-15, 1.0]}, "times must be"),
        ({"rng": 2**70}, "rng < 2"),
        ({"replicas": -1}, "replicas must be a whole number >= 2"),
        ({"distances": ["W2", "W2"]}, "differ from each other"),
        ({"distances": [["W2"]]}, "distances must be some of"),
        ({"distances": {"coupling": mf.wasserstein}}, "different from each other"),
        ({"distances": {"x_1": mf.wasserstein}}, "different from each other"),
        ({"distances": {"a/b": mf.wasserstein}}, "without '/'"),
        (
            {"functionals": {"floor of W2": lambda mu: mu.expect(first)}},
            "different from each other",
        ),
        ({"functionals": {"s": lambda mu: "1.5"}}, "a real number"),
        (
            {"model": mf.Transformer(mf.Kuramoto()), "dt": 0.1},
            "dt must be left out",
        ),
        ({"dt": -1.0}, "dt must be a finite number > 0"),
        ({"rng": np.random.default_rng(0)}, "a whole number 0 <= rng"),
        ({"distances": {"W": lambda a, b: 1.0}}, r"for each replica, \(2,\); got shape \(\)"),
        ({"functionals": {"m": lambda a: a.expect(lambda x: x)}}, r"got shape \(2, 2\)"),
    ],
)
def test_arguments_out_of_range(changes, match):
    with pytest.raises(ValueError, match=match):
        study(**changes)


def test_named_distances_are_those_of_the_space():
    class Mine(mf.Circle):
        """A space of a user's own."""

    assert measurements_on(Mine(8)) is MEASUREMENTS[mf.Circle]
    assert measurements_on(mf.Zonal(3, 8)) is None


def test_functionals_are_tried_before_anything_is_run():
    with pytest.raises(AttributeError, match="x"):
        study(functionals={"of tokens only": lambda state: state.x[..., 0].mean(axis=-1)})
    with pytest.raises(TypeError, match="sizes must be an array"):
        study(sizes=4)


def test_what_a_study_does_not_have():
    with pytest.raises(ValueError, match="name must be one of W1"):
        small_study().rate("W3")
    with pytest.raises(ValueError, match=r"got name = 'w2'\. Did you mean 'W2'\?$"):
        small_study().rate("w2")
    with pytest.raises(ValueError, match=r"distances=.*to measure it"):
        small_study().rate("W2 up to rotation")
    with pytest.raises(ValueError, match="name must be a functional of this study, x_1"):
        small_study().weak_rate("W2")
    with pytest.raises(ValueError, match=r"t must be from 0 to 0\.5, the times of this study"):
        small_study().rate("W2", t=100)


def test_other_states_and_models_are_refused():
    with pytest.raises(TypeError, match=r"must be (a Density|Transformer)"):
        mf.propagation_of_chaos(MODEL, mf.Tokens.uniform(3, 2, rng=0), [4], [1.0], rng=0)
    with pytest.raises(ValueError, match=r"Circle or Sphere.*Zonal"):
        mf.propagation_of_chaos(MODEL, mf.Zonal(3, 8).uniform(), [4], [1.0], rng=0)
    with pytest.raises(mf.MeanfieldError, match="no mean field"):
        mf.propagation_of_chaos(mf.Transformer(mf.Hardmax()), START, [4], [1.0], rng=0)
    with pytest.raises(mf.MeanfieldError, match="reaction"):
        reacting = mf.Transformer(mf.USA(1.0), reaction=1.0)
        mf.propagation_of_chaos(reacting, START, [4], [1.0], rng=0)


@pytest.mark.long
def test_attention_with_matrices_has_a_coupling_that_falls_with_n():
    Q, K, V = np.random.default_rng(0).standard_normal((3, 2, 2)) / 2
    model = mf.Transformer(mf.Attention(Q, K, V) + 0.5 * mf.SA(1.0), 4.0)
    study = mf.propagation_of_chaos(model, START, [8, 128], [0.2], replicas=8, rng=1, dt=0.1)
    few, many = study.data["coupling"].mean(("t", "replica")).values
    assert 0.1 < many / few < 0.6  # about (8 / 128)^(1/2) = 0.25
