"""Runs that end where a function of the time and the state becomes True."""

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(16)
MU0 = CIRCLE.density(lambda theta: 1 + 0.3 * np.cos(theta))
MODEL = mf.Transformer(mf.USA(1.0), kappa=3.0)
SA = mf.Transformer(mf.SA(2.0))
LINE = {"t_eval": [10.0]}


def ordered(t, state):
    return abs(state.moment(1)) > 0.5


def ordered_event(t, state):
    return abs(state.moment(1)) - 0.5


ordered_event.terminal = True


@pytest.mark.parametrize(
    ("model", "state"), [(MODEL, MU0), (SA, mf.Characteristics(MU0)), (SA, MU0.sample(20, rng=1))]
)
def test_it_ends_where_the_event_of_the_same_threshold_ends(model, state):
    one = mf.solve(model, state, (0, 10), until=ordered, **LINE)
    other = mf.solve(model, state, (0, 10), events=ordered_event, **LINE)
    assert one.status == other.status == "event"
    np.testing.assert_allclose(one.t[-1], other.t[-1], rtol=1e-12)
    assert one.t_events[-1].tolist() == [one.t[-1]]
    assert one.options["events"] == ["ordered"]
    when = f"at t = {one.t[-1]:g}"
    assert one.message.startswith(f"The condition ordered of until became True {when}.")
    assert other.message.startswith(
        f"The terminal event ordered_event crossed zero {when}, see t_events[0]."
    )


def test_a_message_names_the_event_that_ended_the_run():
    """By its place in t_events where it has no name, as a lambda."""
    last = type("Wave", (), {"terminal": True, "__call__": lambda self, t, state: t - 0.3})()
    run = mf.solve(SA, MU0.sample(5, rng=1), (0, 1), events=[lambda t, _state: t - 0.1, last])
    assert run.message.startswith("The terminal event crossed zero at t = 0.3, see t_events[1].")
    held = mf.solve(SA, MU0.sample(5, rng=1), (2, 3), until=lambda t, _state: t > 1)
    assert held.message.startswith("The condition of until holds at the start, t = 2.")


def test_members_of_an_ensemble_of_densities_end_alone():
    model = mf.Transformer(mf.USA(1.0), kappa=np.array([3.0, 4.0, 0.5]))
    run = mf.solve(model, MU0, (0, 10), until=ordered, **LINE)
    assert run.stats["status"].tolist() == ["event", "event", "finished"]
    for i in range(3):
        alone = mf.solve(
            mf.Transformer(mf.USA(1.0), kappa=[3.0, 4.0, 0.5][i]),
            MU0,
            (0, 10),
            until=ordered,
            **LINE,
        )
        assert run.stats["t_end"][i] == alone.t[-1]
    assert np.isnan(run.t_events[0][2]).all()


def test_replicas_end_together():
    starts = mf.Tokens.uniform(8, 2, rng=2, shape=(3,))
    seen = []

    def all_ordered(t, tokens):
        seen.append(tokens.shape)
        return (np.abs(tokens.moment(1)) > 0.9).all()

    run = mf.solve(SA, starts, (0, 30), until=all_ordered, t_eval=[30.0])
    assert set(seen) == {(3,)}
    np.testing.assert_allclose(np.abs(run.final.moment(1)).min(), 0.9, rtol=1e-9)


def test_what_holds_at_the_start_ends_there():
    run = mf.solve(MODEL, MU0, (0, 10), until=lambda t, state: True, **LINE)
    assert (run.status, run.t.tolist(), run.stats["steps"]) == ("event", [0.0], 0)
    model = mf.Transformer(mf.USA(np.array([1.0, 2.0])), kappa=3.0)
    both = mf.solve(model, MU0, (0, 10), until=lambda t, state: True, **LINE)
    assert both.stats["t_end"].tolist() == [0.0, 0.0]
    assert both.t.tolist() == [0.0]


def test_it_goes_on_with_an_extension(tmp_path):
    short = mf.solve(MODEL, MU0, (0, 0.125), until=ordered, t_eval=[0.125], dt=1 / 64)
    whole = mf.solve(MODEL, MU0, (0, 10), until=ordered, t_eval=[0.125, 10.0], dt=1 / 64)
    loaded = mf.load(short.save(tmp_path / "short.nc"))
    with pytest.raises(mf.MeanfieldError, match="file holds no functions"):
        loaded.extend(10.0)
    for run in (short.extend(10.0, **LINE), loaded.extend(10.0, until=ordered, **LINE)):
        assert run.t.tolist() == whole.t.tolist()
        np.testing.assert_array_equal(run.final.coefficients, whole.final.coefficients)


def test_other_answers_are_refused():
    with pytest.raises(TypeError, match="given as until returns True to end the run, else False"):
        mf.solve(MODEL, MU0, (0, 1), until=lambda t, state: abs(state.moment(1)))
