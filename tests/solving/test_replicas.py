"""Replicas of tokens have their own steps and ends: each is what it is alone, to the last bit."""

import numpy as np
import pytest

import meanfield as mf
from meanfield import engines
from meanfield.models import L2, PerLayer, Sinkhorn
from meanfield.steppers import flow

R = 4
BETAS = np.array([0.0, 1.0, 4.0, 9.0])
TIMES = np.array([0.4, 0.5, 1.5])


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def tokens(n=8, d=3, shape=(R,), seed=1):
    return mf.Tokens.uniform(n, d, rng=seed, shape=shape)


def solve(model, state, end=1.5, **options):
    options = {"t_eval": TIMES} | options
    return mf.solve(
        mf.Transformer(model) if isinstance(model, mf.Drift) else model, state, (0, end), **options
    )


HEADS = mf.Attention(
    normal(R, 2, 2, 3), normal(R, 2, 2, 3, seed=1), normal(R, 2, 2, 3), BETAS,
    output=normal(2, 3, 2), causal=True,
)  # fmt: skip
MODELS = {
    "single": mf.SA(4.0),
    "betas": mf.SA(BETAS),
    "sum": mf.USA(1.0) - BETAS * mf.Kuramoto(),
    "heads": HEADS,
    "L2": mf.Attention(K=normal(R, 1, 3, 3), weights=L2()),
    "Sinkhorn": mf.Attention(K=normal(R, 1, 3, 3), weights=Sinkhorn()),
    "layers": mf.Attention(K=PerLayer(normal(6, R, 1, 3, 3), 0.35)),
    "function": mf.Attention(K=normal(R, 1, 3, 3), V=lambda t: np.cos(t) * np.eye(3)),
    "radii": mf.Transformer(mf.SA(BETAS), normalisation=mf.MixLN(0.7)),
    "directions": mf.Transformer(mf.SA(BETAS), normalisation=mf.PeriLN()),
    "times": mf.Transformer(mf.SA(BETAS), normalisation=mf.SqrtScaling()),
    "reaction": mf.Transformer(mf.USA(BETAS), reaction=0.7),
}
ENGINES = {
    "Direct": (engines.Direct(), 2, mf.SA(BETAS)),
    "circle": (engines.Modes(), 2, mf.SA(BETAS)),
    "sphere": (engines.Modes(), 3, mf.SA(4.0)),
    "attention modes": (engines.Modes(), 2, mf.Attention(K=normal(R, 1, 2, 2), beta=0.5)),
    "many dimensions": (engines.Direct(), 70, mf.SA(BETAS)),
}


def assert_members_are_alone(model, state, **options):
    """The run of all replicas, of some, and of each alone have the same bits."""
    whole = solve(model, state, **options)
    model = whole.model
    some = np.array([2, 0])
    part = solve(model.member(some), state[some], **options)
    for one, other in zip(part, whole, strict=True):
        np.testing.assert_array_equal(one.x, other.x[some])
    for r in range(R):
        alone = solve(model.member(r), state[r], **options)
        for one, other in zip(alone, whole, strict=True):
            for name, (_, array) in one.arrays().items():
                np.testing.assert_array_equal(array, other.arrays()[name][1][r])
        for name in ("steps", "rejected", "evaluations"):
            assert alone.stats[name] == whole.stats[name][r]
    return whole


LONG = ("heads", "Sinkhorn", "function", "reaction")


@pytest.mark.bits
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n in LONG)) for n in MODELS]
)
def test_a_replica_is_what_it_is_alone(name):
    run = assert_members_are_alone(MODELS[name], tokens())
    assert len(set(run.stats["steps"].tolist())) > 1 or name == "directions"


@pytest.mark.bits
@pytest.mark.parametrize("name", ENGINES)
def test_a_replica_is_what_it_is_alone_in_every_engine(name):
    engine, d, drift = ENGINES[name]
    assert_members_are_alone(drift, tokens(70 if d > 3 else 8, d), engine=engine)


@pytest.mark.bits
@pytest.mark.parametrize("scheme", mf.steppers.SCHEMES, ids=lambda scheme: scheme.name)
def test_a_replica_is_what_it_is_alone_under_every_scheme(scheme):
    adaptive = getattr(scheme, "explicit", False)
    if adaptive:
        assert_members_are_alone(mf.SA(BETAS), tokens(), scheme=scheme)
    if scheme.name not in ("DormandPrince", "LieTrotter"):
        return
    whole = solve(mf.SA(BETAS), tokens(), scheme=scheme, dt=0.06)
    for r in range(R):
        alone = solve(mf.SA(BETAS[r]), tokens()[r], scheme=scheme, dt=0.06)
        np.testing.assert_array_equal(alone.final.x, whole.final.x[r])


@pytest.mark.bits
def test_a_replica_is_what_it_is_alone_in_r_d():
    state = mf.Tokens(normal(R, 8, 3), on_sphere=False)
    assert_members_are_alone(mf.Attention(K=normal(R, 1, 3, 3)), state)


def test_permuted_replicas_have_permuted_paths():
    order, state = np.array([2, 3, 1, 0]), tokens()
    model = mf.Transformer(mf.Attention(K=normal(R, 1, 3, 3), beta=BETAS))
    one, other = solve(model, state), solve(model.member(order), state[order])
    np.testing.assert_array_equal(other.final.x, one.final.x[order])
    np.testing.assert_array_equal(other.stats["steps"], one.stats["steps"][order])


def test_rotated_replicas_have_rotated_paths():
    """Each by a rotation of its own, and its matrices with it."""
    K, state = normal(R, 1, 3, 3), tokens()
    turn = np.linalg.qr(normal(R, 3, 3, seed=3))[0]
    inverse = turn.swapaxes(1, 2)
    turned = mf.Attention(K=turn[:, None] @ K @ inverse[:, None])
    run = solve(mf.Attention(K=K), state)
    other = solve(turned, mf.Tokens(state.x @ inverse))
    np.testing.assert_allclose(other.final.x, run.final.x @ inverse, rtol=0, atol=1e-7)


def test_several_axes_of_replicas_and_of_parameters():
    state, model = tokens(shape=(3, 1)), mf.Transformer(mf.SA([1.0, 5.0]))
    run = solve(model, state)
    assert run.stats["steps"].shape == run.stats["t_end"].shape == run.shape == (3, 2)
    alone = solve(model.member(1), state[2, 0])
    np.testing.assert_array_equal(run.final.x[2, 1], alone.final.x)
    assert run.stats["steps"][2, 1] == alone.stats["steps"]


def test_the_parts_that_are_moved_together_do_not_matter(monkeypatch):
    run = solve(MODELS["heads"], tokens())
    monkeypatch.setattr(flow, "NUMBERS_AT_ONCE", 50)
    parts = solve(MODELS["heads"], tokens())
    for one, other in zip(run, parts, strict=True):
        np.testing.assert_array_equal(one.x, other.x)


def test_an_ensemble_of_densities_has_matrices_too():
    model = mf.Transformer(mf.Attention(K=normal(R, 1, 2, 2), beta=BETAS / 4), kappa=4.0)
    mu0 = mf.Circle(32).von_mises(0.0, 1.0)
    run = mf.solve(model, mu0, (0, 0.5), t_eval=[0.5])
    for r in range(R):
        alone = mf.solve(model.member(r), mu0, (0, 0.5), t_eval=[0.5])
        for k in (1, 2):
            assert abs(run.final[r].moment(k) - alone.final.moment(k)) < 1e-8


def test_outputs_do_not_change_the_steps():
    few, many = (solve(mf.SA(BETAS), tokens(), t_eval=t) for t in ([1.5], np.linspace(0, 1.5, 31)))
    np.testing.assert_array_equal(few.final.x, many.final.x)
    np.testing.assert_array_equal(few.stats["steps"], many.stats["steps"])


# Ends ----------------------------------------------------------------------------------------


def test_steady_replicas_stop():
    """At the time and in the state in which they end alone; until then, and after, all are seen."""
    state, model = tokens(12), mf.Transformer(mf.SA([0.5, 1.0, 1.5, 2.0]))
    options = {"until": "steady", "steady_tolerance": 1e-6, "t_eval": np.linspace(0, 100, 101)}
    run = solve(model, state, 100, **options)
    assert run.status == "steady" and (run.stats["status"] == "steady").all()
    assert run.t[-1] == run.stats["t_end"].max() and len(set(run.stats["t_end"])) == R
    for r in range(R):
        alone = solve(model.member(r), state[r], 100, **options)
        assert alone.status == "steady" and alone.t[-1] == run.stats["t_end"][r]
        np.testing.assert_array_equal(alone.final.x, run.final.x[r])
        for t, one, other in zip(run.t, alone, run, strict=False):
            if t < alone.t[-1]:
                np.testing.assert_array_equal(one.x, other.x[r])
        after = [other.x[r] for t, other in zip(run.t, run, strict=True) if t >= alone.t[-1]]
        assert all(np.array_equal(x, alone.final.x) for x in after)


def test_some_are_steady_and_some_are_not():
    one = np.tile([1.0, 0.0], (8, 1))
    state = mf.Tokens(np.stack([one, tokens(8, 2).x[0]]))
    run = solve(mf.SA(1.0), state, until="steady")
    assert run.status == "finished" and run.stats["status"].tolist() == ["steady", "finished"]
    assert run.stats["t_end"].tolist() == [0.0, 1.5] and run.stats["steps"][0] == 0
    assert "not steady yet" in run.message


def ends(x):
    """x_1' = 1 as long as x_1 <= 0, where the field ends."""
    return np.where(x[..., :1] <= 0, 1.0, np.nan) * np.array([1.0, 0.0])


@pytest.mark.bits
def test_a_replica_that_cannot_go_on_ends_alone():
    x = 0.1 * normal(8, 2)
    there = np.where(x == x[:, 0].max(), 0.0, x - 1)
    state = mf.Tokens(np.stack([x - 3, there, x - 5]), on_sphere=False)
    drift = mf.Attention(V=0.0) + mf.Field(ends)
    with pytest.warns(mf.UnresolvedWarning, match="of replica 1 meets rtol"):
        run = solve(drift, state)
    assert run.status == "step_too_small" and not run.success and run.t[-1] == 1.5
    assert run.stats["status"].tolist() == ["finished", "step_too_small", "finished"]
    assert run.stats["t_end"].tolist() == [1.5, 0.0, 1.5]
    for r in (0, 2):
        np.testing.assert_array_equal(run.final.x[r], solve(drift, state[r]).final.x)
    with pytest.warns(mf.UnresolvedWarning):
        alone = solve(drift, state[1])
    assert alone.t[-1] == 0.0
    np.testing.assert_array_equal(alone.final.x, run.final.x[1])


def test_a_run_ends_where_no_replica_can_go_on():
    x = 0.1 * normal(2, 8, 2) - 1
    x[:, 0, 0] = 0.0
    state = mf.Tokens(x, on_sphere=False)
    with pytest.warns(mf.UnresolvedWarning, match="of replica 0"):
        run = solve(mf.Attention(V=0.0) + mf.Field(ends), state)
    assert run.status == "step_too_small" and run.t[-1] == run.stats["t_end"].max() == 0.0


def test_max_steps_are_those_of_a_replica():
    options = {"t_eval": np.linspace(0, 1.5, 31), "rtol": 1e-12}
    whole = solve(mf.SA(BETAS), tokens(), **options)
    most = int((whole.stats["steps"] + whole.stats["rejected"]).max()) - 1
    run = solve(mf.SA(BETAS), tokens(), max_steps=most, **options)
    assert run.status == "max_steps" and 1 < len(run) < 31
    assert (run.stats["steps"] + run.stats["rejected"]).max() == most
    for one, other in zip(run, whole, strict=False):
        np.testing.assert_array_equal(one.x, other.x)


# Where steps are common ----------------------------------------------------------------------


def test_events_and_callbacks_see_all_replicas_at_one_time():
    seen = []
    run = solve(mf.SA(BETAS), tokens(), callback=lambda t, state: seen.append((t, state.shape)))
    assert len(seen) >= run.stats["steps"] > 0 and {shape for _, shape in seen} == {(R,)}
    found = solve(mf.SA(BETAS), tokens(), events=lambda t, state: t - 0.7)
    assert found.t_events[0] == pytest.approx([0.7], abs=1e-12)
    own = solve(mf.SA(BETAS), tokens())
    np.testing.assert_allclose(found.final.x, own.final.x, rtol=0, atol=1e-6)


# Kept ----------------------------------------------------------------------------------------


@pytest.mark.bits
@pytest.mark.parametrize("name", ["betas", "layers", "radii"])
def test_runs_are_resumed_to_the_last_bit_wherever_they_were_cut(tmp_path, name):
    model, state, kept = MODELS[name], tokens(), {"checkpoint": tmp_path / "run", "resume": True}
    whole = solve(model, state)
    for cut in range(1, whole.stats["steps"].max() + 1):
        solve(model, state, max_steps=cut, **kept)
    resumed = solve(model, state, **kept)
    for one, other in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
    for found in ("steps", "rejected", "evaluations", "t_end", "status"):
        np.testing.assert_array_equal(whole.stats[found], resumed.stats[found])


@pytest.mark.bits
def test_steady_replicas_stay_so_when_a_run_is_resumed(tmp_path):
    state, model = tokens(12), mf.Transformer(mf.SA([0.5, 1.0, 1.5, 2.0]))
    options = {"until": "steady", "steady_tolerance": 1e-6, "t_eval": np.linspace(0, 100, 21)}
    whole, path = solve(model, state, 100, **options), tmp_path / "run"
    kept = {"checkpoint": path, "resume": True, **options}
    steps = np.sort(whole.stats["steps"])
    for cut in (steps[0] + 1, steps[1] + 1):
        solve(model, state, 100, max_steps=int(cut), **kept)
    resumed = solve(model, state, 100, **kept)
    assert resumed.t.tolist() == whole.t.tolist()
    np.testing.assert_array_equal(resumed.final.x, whole.final.x)
    np.testing.assert_array_equal(resumed.stats["t_end"], whole.stats["t_end"])


def test_files_keep_the_counts_of_every_replica(tmp_path):
    run = solve(mf.Attention(K=normal(R, 1, 3, 3)), tokens())
    loaded = mf.load(run.save(tmp_path / "run.nc"))
    for name in ("steps", "rejected", "evaluations", "t_end", "status"):
        np.testing.assert_array_equal(loaded.stats[name], run.stats[name])
    assert loaded.model == run.model and loaded.model.member(2) == run.model.member(2)
    np.testing.assert_array_equal(loaded.observables["speed"], run.observables["speed"])


@pytest.mark.bits
@pytest.mark.parametrize("most", [1, 3, 6])
def test_a_run_that_is_cut_short_has_the_states_of_the_last_output(most):
    """Replicas are at different times then: at the first output none has come to it."""
    state, model = tokens(9), mf.Transformer(mf.SA([1.0, 9.0, 30.0, 60.0]))
    run = solve(model, state, 3, t_eval=[3.0], max_steps=most)
    assert run.status == "max_steps" and run.t.tolist() == [0.0]
    np.testing.assert_array_equal(run.final.x, state.x)
    assert set(run.stats["status"]) == {"max_steps"}
