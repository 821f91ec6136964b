"""A run that is over gives the same result whenever it is resumed, whatever its end."""

import warnings

import numpy as np
import pytest

import meanfield as mf

X = mf.Tokens.uniform(6, 3, rng=0)
SHRINKING = mf.Transformer(mf.Attention(V=-1.0), normalisation=mf.PreLN())
COLLAPSE = mf.Transformer(mf.USA(2.0))
BUMP = mf.Circle(16).von_mises(0.3, 1.0)
GROWING = mf.Transformer(mf.Attention(Q=[[1, 0.2], [0.2, -0.3]]))
LAW = mf.Gaussian([0.5, -0.2], [[1, 0.3], [0.3, 0.5]])
SMALL = mf.Tokens(np.eye(3), radii=[1.0, 1.0, 0.001])
PRE_LN = mf.Transformer(mf.SA(1.0), normalisation=mf.PreLN())


def half_way(t, _state):
    return t - 0.503


half_way.terminal = True


def past_half_way(t, _state):
    return t > 0.503


RUNS = {
    "finished": (mf.Transformer(mf.SA(2.0)), X, 1.0, {}),
    "steady": (mf.Transformer(mf.SA(2.0)), X, 200.0, {"until": "steady"}),
    "event": (mf.Transformer(mf.SA(2.0)), X, 1.0, {"events": half_way}),
    "stopped": (mf.Transformer(mf.SA(2.0)), X, 1.0, {"callback": past_half_way}),
    "max_steps": (mf.Transformer(mf.SA(2.0)), X, 100.0, {"max_steps": 15}),
    "blow-up": (GROWING, LAW, 1.0, {}),
    "unresolved": (COLLAPSE, BUMP, 5.0, {"max_degree": 64}),
    "step_too_small": (SHRINKING, X, 10.0, {}),
    "not_finite": (PRE_LN, SMALL, 1.0, {"dt": 0.1}),
}


def bits(run):
    """All that a run returns, but for the seconds it took."""
    states = [
        {name: repr(value) if name == "space" else value for name, value in vars(state).items()}
        for state in run
    ]  # numpy takes a space, which has a dtype, for an array
    stats = {name: value for name, value in run.stats.items() if name != "seconds"}
    return (
        run.status,
        run.message,
        run.t.tolist(),
        [t.tolist() for t in run.t_events],
        stats,
        states,
    )


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("status", "every"), [*((status, 60) for status in RUNS), ("finished", 0), ("event", 0)]
)
@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
def test_a_run_that_is_over_is_given_back(tmp_path, status, every):
    model, state, end, options = RUNS[status]
    times, path = np.linspace(0, end, 7), tmp_path / "run.checkpoint"
    whole = mf.solve(model, state, (0, end), t_eval=times, **options)
    assert whole.status == status
    for _ in range(2):
        keeping = {"checkpoint": path, "checkpoint_every": every, "resume": True}
        again = mf.solve(model, state, (0, end), t_eval=times, **keeping, **options)
        np.testing.assert_equal(bits(again), bits(whole))


@pytest.mark.repeats
@pytest.mark.parametrize("status", ["blow-up", "unresolved", "step_too_small"])
def test_what_it_warned_of_it_warns_of_again(tmp_path, status):
    model, state, end, options = RUNS[status]
    texts = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            keeping = {"checkpoint": tmp_path / "run.checkpoint", "resume": True}
            mf.solve(model, state, (0, end), **keeping, **options)
        texts.append([str(warning.message) for warning in caught])
    assert texts[0] == texts[1] and len(texts[0]) == (status != "blow-up")


@pytest.mark.bits
@pytest.mark.parametrize("status", ["stopped", "max_steps"])
def test_what_may_go_on_does_when_it_is_let(tmp_path, status):
    model, state, end, options = RUNS[status]
    times, path = np.linspace(0, end, 7), tmp_path / "run.checkpoint"
    whole = mf.solve(model, state, (0, end), t_eval=times)
    mf.solve(model, state, (0, end), t_eval=times, checkpoint=path, **options)
    seen = []
    options = {"callback": lambda t, _: seen.append(t)}  # another one
    run = mf.solve(model, state, (0, end), t_eval=times, checkpoint=path, resume=True, **options)
    np.testing.assert_equal(bits(run), bits(whole))
    assert seen[0] < seen[-1] == end


def test_a_finished_run_has_the_outputs_asked_for_and_no_more():
    """start + (end - start) is not always the end, to the last bit."""
    rng = np.random.default_rng(0)
    for start, end in zip(rng.uniform(0, 3, 20), rng.uniform(4, 9, 20), strict=True):
        model, state = mf.Transformer(mf.SA(1.0)), mf.Equiangular(4, 0.3)
        run = mf.solve(model, state, (start, end), t_eval=[start, end])
        assert run.t.tolist() == [start, end]
