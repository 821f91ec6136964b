"""Runs evaluated at times within their span, against runs with outputs at these times."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.results import kept_steps

SA = mf.Transformer(mf.SA(2.0))
NOISY = mf.Transformer(mf.SA(2.0), kappa=5.0)
JUMPING = mf.Transformer(mf.SA(2.0), kappa=mf.PerLayer([1.0, 3.0, 2.0, 4.0], 0.5))
USA = mf.Transformer(mf.USA(np.array([1.0, 2.0])), kappa=5.0)
BUMP = mf.Circle(16).von_mises(0.3, 1.0)
X = mf.Tokens.uniform(6, 3, rng=0)
CLOSE = mf.Tokens([[1.0, 0.0], [np.cos(0.4), np.sin(0.4)], [-1.0, 0.0], [0.0, 1.0]])
STARTS = mf.Tokens.uniform(6, 3, rng=0, shape=(2,))
LAW = mf.Gaussian([0.5, -0.2], [[1, 0.3], [0.3, 0.5]])
RUNS = {
    "density": (NOISY, BUMP, {}),
    "density, DormandPrince": (NOISY, BUMP, {"scheme": mf.steppers.DormandPrince}),
    "density on S^2": (NOISY, mf.Sphere(8).density(lambda x, y, z: 1 + 0.3 * x + 0.2 * y), {}),
    "axisymmetric": (NOISY, mf.Zonal(4, 16).density(lambda x: 1 + 0.3 * x), {}),
    "jumps": (JUMPING, BUMP, {}),
    "fixed steps": (NOISY, BUMP, {"dt": 1 / 64}),
    "ensemble": (USA, BUMP, {}),
    "ensemble that ends as steady": (
        mf.Transformer(mf.USA(np.array([1.0, 2.0])), kappa=1.0),
        BUMP,
        {"until": "steady", "steady_tolerance": 0.1},
    ),
    "indexed": (
        mf.Transformer(mf.USA(1.0), 2.0, causal="mean"),
        mf.Circle(16).indexed(lambda s, x: 1 + 0.3 * s * np.cos(x), mf.Positions(order=12)),
        {},
    ),
    "attention with matrices": (
        mf.Transformer(mf.Attention(Q=[[2.0, 0.5], [0.0, 1.0]]), kappa=5.0),
        BUMP,
        {},
    ),
    "characteristics": (SA, mf.Characteristics(BUMP), {}),
    "tokens": (SA, X, {}),
    "merging": (SA, CLOSE, {"merge": 0.05}),
    "layers": (SA, X, {"dt": 1 / 64, "scheme": mf.steppers.Layers}),
    "replicas": (SA, STARTS, {}),
    "replicas with a callback": (SA, STARTS, {"callback": lambda t, state: None}),
    "Gram matrix": (SA, mf.Gram(X.x @ X.x.T), {}),
    "equiangular": (SA, mf.Equiangular(n=8, rho=0.1), {}),
    "Gaussian": (mf.Transformer(mf.Attention(V=-1.0)), LAW, {}),
}
SPAN, EVERY = (0.5, 2.5), [1.0, 2.5]


def times(name, count=50):
    if name == "layers":
        return np.sort(0.5 + np.random.default_rng(0).choice(128, 20, replace=False) / 64)
    return np.sort(np.random.default_rng(0).uniform(*SPAN, count))


def solved(name, outputs=EVERY, **more):
    model, state, options = RUNS[name]
    return mf.solve(model, state, SPAN, t_eval=outputs, **{**options, **more})


def numbers(state):
    if isinstance(state, mf.Density):
        return state.coefficients
    return np.concatenate([np.ravel(values) for _, values in state.arrays().values()])


VARIANTS = (
    "density, DormandPrince", "jumps", "ensemble that ends as steady", "attention with matrices",
    "replicas with a callback",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n in VARIANTS)) for n in RUNS]
)
def test_a_run_is_evaluated_at_any_time(name, tmp_path):
    """At 50 random times it is the run with outputs there, bit for bit, also from a file."""
    at = times(name)
    run = solved(name, dense=True)
    expected = solved(name, [*at, 2.5])
    assert run.t[-1] == expected.t[-1]
    at = at[at <= run.t[-1]]
    found = run(at)
    assert found.t.tolist() == at.tolist()
    for one, other in zip(found, expected, strict=False):
        assert type(one) is type(other)
        assert np.array_equal(numbers(one), numbers(other))
    run.save(tmp_path / "run.nc", dense=True)
    loaded = mf.load(tmp_path / "run.nc")
    for i in (0, 7, len(at) - 1):
        assert np.array_equal(numbers(loaded(at[i])), numbers(expected[i]))


@pytest.mark.parametrize("name", RUNS)
def test_steps_are_those_of_a_run_that_keeps_none(name):
    run, plain = solved(name, dense=True), solved(name)
    assert run.options == {**plain.options, "dense": True}
    assert np.array_equal(numbers(run.final), numbers(plain.final))
    counts = {n: np.array(v).tolist() for n, v in run.stats.items() if n != "seconds"}
    assert counts == {n: np.array(v).tolist() for n, v in plain.stats.items() if n != "seconds"}


@pytest.mark.parametrize("name", ["density", "ensemble", "tokens", "replicas", "merging"])
def test_snapshots_are_of_a_bounded_size(name, monkeypatch):
    at = times(name, 20)
    whole = solved(name, dense=True)
    size = whole.stored["dense"].nbytes
    monkeypatch.setattr(kept_steps, "KEPT_BYTES", size // 3)
    thinned = solved(name, dense=True)
    assert thinned.stored["dense"].every > 1
    assert thinned.stored["dense"].nbytes <= max(
        size // 3, 2 * size // len(whole.stored["dense"].snapshots)
    )
    for one, other in zip(whole(at), thinned(at), strict=True):
        assert np.array_equal(numbers(one), numbers(other))


def test_observables_follow():
    at = np.array([0.7, 1.3, 2.2])

    def first(state):
        return abs(state.moment(1))

    run = solved("density", dense=True, observe={"first": first})(at)
    expected = solved("density", [*at, 2.5], observe={"first": first})
    for name in ("first", "entropy", "mass", "order_parameter"):
        assert np.array_equal(run.observables[name].values, expected.observables[name].values[:3])
    assert run.observables.t.values.tolist() == at.tolist()
    assert run(1.3) is run[1]


def test_saved_times_need_no_steps(tmp_path):
    run = solved("tokens")
    assert run(1.0) is run[0]
    assert run([1.0, 2.5]).states == run.states
    loaded = mf.load(run.save(tmp_path / "run.nc"))
    assert loaded(2.5) is loaded[1]
    for one in (run, loaded):
        with pytest.raises(mf.MeanfieldError, match=r"no state at t = 1\.5\. Give dense=True"):
            one(1.5)
    with pytest.raises(mf.MeanfieldError, match="the run kept no steps"):
        run.save(tmp_path / "dense.nc", dense=True)


@pytest.mark.parametrize(
    ("t", "words"),
    [
        (0.4, "t must be within the span of the run, from 0.5 to 2.5; got t = 0.4"),
        (2.6, r"from 0\.5 to 2\.5; got t = 2\.6\. .* last output, t_eval\[-1\] = 2\.5\."),
        ([1.0, 1.0], "t must increase strictly"),
        ([], "a time, or increasing times"),
        ([[1.0]], "a time, or increasing times"),
        ("now", "t must be"),
        (np.nan, "t must be"),
    ],
    ids=repr,
)
def test_other_times_are_refused(t, words):
    run = solved("equiangular", dense=True)
    with pytest.raises((ValueError, TypeError), match=words):
        run(t)


@pytest.mark.parametrize(
    ("t", "nearest"), [(0.6, "1"), (1.6, "1"), (1.8, "2.5"), (2.4, "2.5"), (3.0, "3.25")]
)
def test_the_nearest_saved_time_is_named(t, nearest):
    run = mf.solve(SA, mf.Equiangular(n=8, rho=0.1), (0.5, 4.0), t_eval=[1.0, 2.5, 3.25, 4.0])
    with pytest.raises(mf.MeanfieldError) as caught:
        run(t)
    assert str(caught.value).endswith(f"The nearest saved time is {nearest}.")


def test_runs_with_noise_keep_no_steps():
    with pytest.raises(ValueError, match="dense=True is for runs without random numbers"):
        mf.solve(NOISY, X, (0, 1), dense=True, rng=0)


@pytest.mark.parametrize("name", ["density", "ensemble", "tokens", "replicas", "fixed steps"])
def test_extended_and_resumed_runs_are_evaluated(name, tmp_path):
    """Before the old end as the old run, after it as the run that went on."""
    old = solved(name, dense=True)
    longer = old.extend(4.0, t_eval=[4.0])
    for t in (0.8, 2.2, 2.49):
        assert np.array_equal(numbers(longer(t)), numbers(old(t)))
    for t in (2.51, 3.9):
        assert np.array_equal(numbers(longer(t)), numbers(old.extend(4.0, t_eval=[t, 4.0])(t)))
    model, state, options = RUNS[name]
    kept = {"checkpoint": tmp_path / "run.checkpoint", "dense": True, **options}
    mf.solve(model, state, SPAN, t_eval=EVERY, **kept)
    again = mf.solve(model, state, SPAN, t_eval=EVERY, resume=True, **kept)
    for t in (0.8, 2.2):
        assert np.array_equal(numbers(again(t)), numbers(old(t)))


def test_a_checkpoint_without_steps_is_another_run(tmp_path):
    path = tmp_path / "run.checkpoint"
    solved("tokens", checkpoint=path)
    with pytest.raises(mf.CheckpointError, match="dense"):
        solved("tokens", checkpoint=path, resume=True, dense=True)


def test_an_extension_of_a_file_without_steps_has_those_after_the_old_end(tmp_path):
    loaded = mf.load(solved("tokens", dense=True).save(tmp_path / "run.nc"))
    longer = loaded.extend(4.0)
    assert np.array_equal(numbers(longer(3.3)), numbers(loaded.extend(4.0, t_eval=[3.3, 4])(3.3)))
    with pytest.raises(mf.MeanfieldError, match=r"kept steps from t = 2\.5 on"):
        longer(2.0)


def test_members_that_ended_at_events_have_their_last_states(tmp_path):
    def narrow(t, state):
        return abs(state.moment(1)) - 0.7

    narrow.terminal = True
    model = mf.Transformer(mf.USA(np.array([1.0, 4.0])), kappa=8.0)
    options = {"events": narrow, "dense": True}
    run = mf.solve(model, BUMP, (0, 4), t_eval=[4.0], **options)
    assert set(run.stats["status"].tolist()) == {"event", "finished"} or run.t[-1] < 4
    at = np.sort(np.random.default_rng(0).uniform(0, run.t[-1], 30))
    expected = mf.solve(model, BUMP, (0, 4), t_eval=[*at, 4.0], **options)
    for one, other in zip(run(at), expected, strict=False):
        assert np.array_equal(numbers(one), numbers(other))
    loaded = mf.load(run.save(tmp_path / "run.nc", dense=True))
    with pytest.raises(mf.MeanfieldError, match="a file holds no functions"):
        loaded(at[3])


def test_a_run_is_evaluated_up_to_its_early_end():
    def later(t, state):
        return t - 1.7

    later.terminal = True
    for name in ("density", "tokens"):
        run = solved(name, dense=True, events=later)
        assert run.t[-1] == pytest.approx(1.7)
        assert np.array_equal(numbers(run(1.69)), numbers(solved(name, [1.69, 2.5])[0]))
        with pytest.raises(ValueError, match=r"got t = 1\.8\.$"):  # it did not end by t_eval
            run(1.8)


def test_runs_that_go_on_with_implicit_steps_are_evaluated():
    """Steps of Radau end at outputs, and so at the time asked for: equal to their error."""
    M = np.diag([-1.0, -1e4])
    model = mf.Transformer(mf.Field(lambda x: x @ M.T), kappa=2.0)
    law, span = mf.Gaussian([1.0, 1.0], np.eye(2)), (0, 20)
    run = mf.solve(model, law, span, t_eval=[20.0], dense=True)
    assert run.stats["schemes"]["Radau"] > 0
    for t in (0.03, 0.3, 1.0, 7.7):
        known = mf.solve(model, law, span, t_eval=[t, 20.0])[0]
        np.testing.assert_allclose(run(t).cov, known.cov, rtol=1e-12, atol=0)
        assert run(t).cov[0, 0] == pytest.approx(0.5 + 0.5 * np.exp(-2 * t), abs=1e-12)


def test_a_time_before_the_first_output_is_within_the_span():
    run = mf.solve(NOISY, BUMP, (0, 2), t_eval=[1.0, 2.0])
    with pytest.raises(mf.MeanfieldError, match=r"no state at t = 0\.5\. Give dense=True"):
        run(0.5)


def test_a_random_run_has_no_other_times_and_is_not_told_to_keep_its_steps():
    run = mf.solve(mf.Transformer(mf.USA(1.0), kappa=2.0), X, (0, 0.1), rng=1)
    with pytest.raises(mf.MeanfieldError, match="solve again with this time in t_eval") as refused:
        run(np.pi / 100)
    assert "dense" not in str(refused.value)


def test_times_in_messages_are_as_short_as_they_can_be():
    mu = mf.Circle(16).von_mises(0.3, 1.0)
    run = mf.solve(mf.Transformer(mf.USA(1.0)), mu, (0, 1), t_eval=[0.3, 0.333], progress=False)
    with pytest.raises(mf.MeanfieldError, match=r"t = 0\.32\. .* time is 0\.333\.$"):
        run(0.32)
    with pytest.raises(ValueError, match=r"from 0 to 0\.333; got t = 0\.8\. "):
        run(0.8)
