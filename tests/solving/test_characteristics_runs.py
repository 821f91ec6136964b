"""Services of runs of characteristics: how they end, events, and arguments that are refused."""

import warnings

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics.characteristics import CharacteristicsMotion
from meanfield.steppers import HochbruckOstermann, Krogstad

MODEL = mf.Transformer(mf.USA(1.0))
KURAMOTO = mf.Transformer(mf.Kuramoto())
START = mf.Characteristics(mf.Zonal(3, 4).zonal([1, 0.5, 0.2]), nodes=512)
CIRCLE = mf.Characteristics(mf.Circle(64).fourier(0.3 ** np.arange(65)))
SPHERE = mf.Characteristics(mf.Sphere(2).density(lambda x, y, z: 1 + 0.4 * z), nodes=4096)
every_start = pytest.mark.parametrize(
    "start", [START, CIRCLE, SPHERE], ids=["zonal", "circle", "sphere"]
)


def order_parameter(level, *, terminal=False, direction=0):
    """The event: the order parameter passes a level."""

    def passes(_t, state):
        return state.space.with_degree(1).amplitude(state.coefficients(1), 1) - level

    passes.terminal, passes.direction = terminal, direction
    return passes


def ott_antonsen_time(r0, r):
    """When the order parameter passes from r0 to r: r^2/(1 - r^2) grows like e^t."""
    return np.log(r**2 / (1 - r**2)) - np.log(r0**2 / (1 - r0**2))


# Ends --------------------------------------------------------------------------------------


def test_outputs_are_hit_exactly():
    times = [0.0, 0.1, 1 / 3, 0.7, np.pi / 2]
    run = mf.solve(MODEL, START, (0, 2), t_eval=times)
    assert run.t.tolist() == times and run.status == "finished" and len(run) == 5
    assert len(mf.solve(MODEL, START, (1.0, 2.0))) == 101


def test_the_time_at_the_start_does_not_matter():
    one, other = (mf.solve(MODEL, START, (s, s + 1.0), t_eval=[s + 1.0]) for s in (0.0, 2.0))
    np.testing.assert_array_equal(one.final.coordinates, other.final.coordinates)


@pytest.mark.parametrize("rtol", [1e-4, 1e-8, 1e-12])
def test_steady_is_where_nothing_moves(rtol):
    """The speed decays at the rate 1 of the bulk; W2 is as small there.

    The run ends with the step that gets there, which at a large rtol takes about ten units of time.
    """
    options = {"until": "steady", "steady_tolerance": 1e-6, "rtol": rtol}
    run = mf.solve(KURAMOTO, START, (0, 500), **options)
    assert run.status == "steady" and run.success and 5 < run.t[-1] < 40
    assert (1e-7 if rtol < 1e-4 else 1e-11) < run.stats["rate_of_change"] <= 1e-6
    assert run.final.w2_to_dirac() < 1e-5 and f"Steady at t = {run.t[-1]:g}" in run.message
    (cluster,) = run.final.clusters()
    assert cluster.mass == pytest.approx(1, abs=1e-9)


def test_what_is_steady_already_is_not_moved():
    start = mf.Characteristics(mf.Zonal(3, 4).uniform())
    run = mf.solve(MODEL, start, (0, 5), until="steady")
    assert run.status == "steady" and run.t.tolist() == [0.0] and run.stats["steps"] == 0


def test_the_callback_sees_every_step_and_can_end_the_run():
    seen, options = [], {"t_eval": [1.0]}

    def see(t, state):
        seen.append((t, state))

    run = mf.solve(MODEL, START, (0, 1), callback=see, **options)
    assert [t for t, _ in seen] == sorted({t for t, _ in seen}) and len(seen) == run.stats["steps"]
    np.testing.assert_array_equal(seen[-1][1].coordinates, run.final.coordinates)
    run = mf.solve(MODEL, START, (0, 1), callback=lambda t, _state: t > 0.5)
    assert run.status == "stopped" and 0.5 < run.t[-1] < 0.8


def test_looking_on_changes_nothing():
    plain = mf.solve(MODEL, CIRCLE, (0, 2))
    watched = mf.solve(
        MODEL, CIRCLE, (0, 2), callback=lambda _t, _s: None, events=order_parameter(0.4)
    )
    for one, other in zip(plain, watched, strict=True):
        assert one.coordinates.tobytes() == other.coordinates.tobytes()


def test_after_max_steps_it_says_so():
    run = mf.solve(MODEL, START, (0, 10), max_steps=5)
    assert run.status == "max_steps" and not run.success and run.t[-1] < 10
    assert run.stats["steps"] + run.stats["rejected"] == 5 and "max_steps" in run.message


def test_outputs_cost_no_steps():
    """101 of them, each as accurate as the steps."""
    alone = mf.solve(MODEL, START, (0, 0.1), t_eval=[0.1])
    run = mf.solve(MODEL, START, (0, 0.1))
    assert len(run) == 101 and run.stats["steps"] == alone.stats["steps"] <= 6
    exact = mf.solve(MODEL, START, (0, 0.1), rtol=1e-13, t_eval=run.t[[10, 37, 50, 99]])
    for i, state in zip((10, 37, 50, 99), exact, strict=True):
        assert run[i].w2_to_dirac() == pytest.approx(state.w2_to_dirac(), rel=1e-8)
        np.testing.assert_allclose(run[i].points, state.points, rtol=0, atol=2e-8)


def test_the_statistics_say_what_was_done():
    stats = mf.solve(MODEL, START, (0, 1), t_eval=[1.0]).stats
    assert stats["schemes"] == {"DormandPrince": stats["steps"]} and stats["nodes"] == 512
    assert stats["evaluations"] == 12 * (stats["steps"] + stats["rejected"])
    assert stats["kernel_degree"] == 17 and stats["quadrature_error"] <= 1e-12


def test_too_few_nodes_are_warned_of():
    """Two clusters of USA(5) in d = 2: the nodes between them part."""
    density = mf.Zonal(2, 4).zonal([1, 0.2, 0.6])
    start = mf.Characteristics(density, nodes=128)
    with pytest.warns(mf.UnresolvedWarning, match="128 nodes no longer resolve") as caught:
        run = mf.solve(mf.Transformer(mf.USA(5.0)), start, (0, 4), t_eval=[4.0])
    assert caught[0].filename == __file__ and not run.resolved and run.success
    assert "Characteristics(density, nodes=...)" in run.message


# Events ------------------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("level", [0.5, 0.9, 0.9999])
def test_an_event_is_located_to_rounding(level):
    """Later, 1 - r^2 has fewer digits: 1e-15 / (1 - r^2) of the time."""
    run = mf.solve(KURAMOTO, CIRCLE, (0, 12), events=order_parameter(level), rtol=1e-12)
    (times,) = run.t_events
    exact = ott_antonsen_time(0.3, level)
    assert times == pytest.approx([exact], abs=1e-12 + 1e-14 / (1 - level**2))


@pytest.mark.repeats
@every_start
def test_a_terminal_event_ends_the_run_there(start):
    event = order_parameter(0.5, terminal=True)
    run = mf.solve(KURAMOTO, start, (0, 10), events=event)
    assert run.status == "event" and run.t[-1] == run.t_events[0][0]
    space = start.space.with_degree(1)
    mean = space.amplitude(run.final.coefficients(1), 1)
    assert mean == pytest.approx(0.5, abs=1e-12)


def test_falling_and_rising_are_told_apart():
    events = [order_parameter(0.5, direction=d) for d in (1, -1, 0)]
    run = mf.solve(KURAMOTO, CIRCLE, (0, 5), events=events)
    assert [len(times) for times in run.t_events] == [1, 0, 1]


# Refused -----------------------------------------------------------------------------------

NOISY = mf.Transformer(mf.USA(1.0), 3.0)
MANY = mf.Transformer(mf.USA([1.0, 2.0]))
SERIES = mf.Interaction(np.abs)
REFUSED = {
    "noise": (NOISY, {}, mf.MeanfieldError, r"without noise; .*kappa=3\.0.*Tokens"),
    "an ensemble": (MANY, {}, ValueError, r"single model; got an ensemble \(2,\)"),
    "least degree": (MODEL, {"min_degree": 8}, ValueError, "Characteristics has none"),
    "most degree": (MODEL, {"max_degree": 64}, ValueError, r"nodes=\.\.\."),
    "exponential": (MODEL, {"scheme": Krogstad}, ValueError, "explicit scheme.*got Krogstad"),
    "another": (MODEL, {"scheme": HochbruckOstermann}, ValueError, "got HochbruckOstermann"),
    "a name": (MODEL, {"scheme": "DormandPrince"}, TypeError, "scheme must be one of"),
    "rtol": (MODEL, {"rtol": 1e-15}, ValueError, "rtol must be between 1e-13 and 1e-3"),
    "dt": (MODEL, {"dt": -0.1}, ValueError, "dt must be a finite number > 0"),
    "a drift": (mf.USA(1.0), {}, TypeError, "model must be .*Transformer"),
    "a kink": (mf.Transformer(SERIES), {}, mf.MeanfieldError, "needs a smooth potential"),
}


@pytest.mark.repeats
@pytest.mark.parametrize(("model", "options", "error", "match"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_before_the_first_step(model, options, error, match):
    steps = []
    with pytest.raises(error, match=match):
        mf.solve(model, CIRCLE, (0, 1), callback=lambda t, _s: steps.append(t), **options)
    assert steps == []


@pytest.mark.parametrize("state", [None, np.ones(3), [START]], ids=["None", "array", "list"])
def test_other_states_are_refused(state):
    with pytest.raises(TypeError, match=type(state).__name__) as refused:
        mf.solve(MODEL, state, (0, 1))
    for known in ("a Density", "Characteristics(density)", "Tokens(x)", "Gram(G)"):
        assert known in str(refused.value)


def test_steps_that_are_much_too_long_end_honestly():
    """No warning of numpy's, and finite numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.UnresolvedWarning)
        run = mf.solve(mf.Transformer(mf.USA(5.0)), START, (0, 50), dt=5.0, t_eval=[50.0])
    assert run.status in ("finished", "not_finite")
    assert np.isfinite(run.final.coordinates).all()


def test_a_run_may_go_on_as_long_as_it_likes():
    """All nodes at e^-1000 of the limit: nothing overflows, W2 is 0."""
    with pytest.warns(mf.UnresolvedWarning, match="W2 to a Dirac is below 4e-11"):
        run = mf.solve(KURAMOTO, START, (0, 1000), t_eval=[0.0, 1000.0])
    assert run.status == "finished" and run.final.w2_to_dirac() == 0
    assert run.final.w2_to_dirac([0, 0, -1]) == pytest.approx(np.pi)
    assert run.observables.cluster_mass[-1] == pytest.approx(1) and run.observables.speed[-1] == 0


def test_what_comes_after_a_terminal_event_is_no_reason_for_doubt():
    """The nodes part in the step that the event cuts short: the run ends before they do."""
    mu0 = mf.Circle(16).density(lambda a: 1 + 0.5 * np.cos(a) + 0.2 * np.cos(2 * a))
    model, start = mf.Transformer(mf.USA(3.0)), mf.Characteristics(mu0, nodes=512)
    with pytest.warns(mf.UnresolvedWarning):
        since = mf.solve(model, start, (0, 2), t_eval=[2.0]).stats["unresolved_since"]

    def passed(t, _state):
        return t - (since - 1e-6)

    passed.terminal = True
    run = mf.solve(model, start, (0, 2), t_eval=[2.0], events=passed)
    assert run.status == "event" and run.resolved and run.stats["unresolved_since"] is None


def test_to_ask_for_doubts_changes_nothing():
    start = mf.Characteristics(mf.Circle(16).von_mises(0, 1.0))
    motion = CharacteristicsMotion(KURAMOTO, start)
    motion.restore({"unresolved_since": 2.0, "reason": "Why.", "last_to_arrive": None})
    answers = [motion.warning(start, t, None) for t in (1.0, 3.0, 1.0, 3.0)]
    assert answers == [None, "Why.", None, "Why."]
    assert motion.stats(start, 1.0)["unresolved_since"] is None
    assert motion.stats(start, 3.0)["unresolved_since"] == 2.0
