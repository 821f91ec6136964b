"""Events: located to rounding, counted in their direction, and what they may not be."""

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(32)
KURAMOTO = mf.Transformer(mf.Kuramoto(), 3.0)


def bumps():
    """A density without any symmetry."""
    return CIRCLE.density(
        lambda x: 1 + 0.3 * np.cos(x) + 0.1 * np.cos(2 * x) + 0.05 * np.sin(3 * x)
    )


def order_parameter(level, *, terminal=False, direction=0):
    """The event: the order parameter passes a level."""

    def passes(_t, density):
        return abs(density.moment(1)) - level

    passes.terminal, passes.direction = terminal, direction
    return passes


def ott_antonsen_time(r0, r):
    """When the order parameter passes from r0 to r: r^2/(1 - r^2) grows like e^t."""
    return np.log(r**2 / (1 - r**2)) - np.log(r0**2 / (1 - r0**2))


def wrapped_cauchy(r0):
    """The density with moments r0^k."""
    return mf.Circle(64).fourier(r0 ** np.arange(65))


@pytest.mark.parametrize("level", [0.3, 0.5, 0.65])
def test_an_event_is_located_to_rounding(level):
    """No interpolation: the step to the event is a step like any other."""
    model, event = mf.Transformer(mf.Kuramoto()), order_parameter(level)
    run = mf.solve(model, wrapped_cauchy(0.2), (0, 3), events=event, rtol=1e-13)
    (times,) = run.t_events
    assert times == pytest.approx([ott_antonsen_time(0.2, level)], abs=1e-12)
    assert run.status == "finished" and len(run) == 101


def test_a_terminal_event_ends_the_run_there():
    model, event = mf.Transformer(mf.Kuramoto()), order_parameter(0.5, terminal=True)
    run = mf.solve(model, wrapped_cauchy(0.2), (0, 3), events=event, rtol=1e-12)
    assert run.status == "event" and run.success
    assert run.t[-1] == run.t_events[0][0] == pytest.approx(ott_antonsen_time(0.2, 0.5), abs=1e-11)
    assert abs(run.final.moment(1)) == pytest.approx(0.5, abs=1e-14)
    assert (np.diff(run.t) > 0).all() and len(run) == np.sum(run.t[:-1] < run.t[-1]) + 1


def test_of_several_events_each_has_its_own_times():
    model = mf.Transformer(mf.Kuramoto())
    late, early = order_parameter(0.6, terminal=True), order_parameter(0.4)
    never, clock = order_parameter(0.99), lambda t, _density: t - 1.25
    events = [late, early, never, clock]
    run = mf.solve(model, wrapped_cauchy(0.2), (0, 5), events=events, rtol=1e-12)
    expected = [ott_antonsen_time(0.2, 0.6)], [ott_antonsen_time(0.2, 0.4)], [], [1.25]
    for found, times in zip(run.t_events, expected, strict=True):
        assert found.tolist() == pytest.approx(times, abs=1e-11)


def test_an_event_counts_in_its_direction_only():
    """cos t falls at pi/2 and rises at 3 pi/2."""

    def cosine(direction):
        def event(t, _density):
            return np.cos(t)

        event.direction = direction
        return event

    run = mf.solve(KURAMOTO, bumps(), (0, 7), events=[cosine(d) for d in (0, 1, -1)])
    down, up = np.pi / 2, 3 * np.pi / 2
    for found, expected in zip(run.t_events, ([down, up], [up], [down]), strict=True):
        assert found.tolist() == pytest.approx(expected, abs=1e-13)


def test_an_event_is_found_while_the_degree_changes():
    """From 16 to 256 modes: the state at the event is on as many as the step has."""
    model = mf.Transformer(mf.USA(4.0), 20.0)
    levels = [0.2, 0.25, 0.3, 0.32]
    events = [order_parameter(level) for level in levels]
    run = mf.solve(model, bumps(), (0, 1), events=events, rtol=1e-10)
    for level, times in zip(levels, run.t_events, strict=True):
        again = mf.solve(model, bumps(), (0, 1), t_eval=times[:1], rtol=1e-10).final
        assert abs(again.moment(1)) == pytest.approx(level, abs=1e-8)
    assert run.stats["degree_changes"] > 2


def test_watching_does_not_change_the_run():
    """Steps are the same to the bit, whoever looks on."""
    watched = mf.solve(KURAMOTO, bumps(), (0, 2), events=order_parameter(0.5))
    called = mf.solve(KURAMOTO, bumps(), (0, 2), callback=lambda _t, _density: None)
    plain = mf.solve(KURAMOTO, bumps(), (0, 2))
    for one, other, third in zip(watched, called, plain, strict=True):
        np.testing.assert_array_equal(one.coefficients, third.coefficients)
        np.testing.assert_array_equal(other.coefficients, third.coefficients)


def test_each_replica_of_tokens_has_an_event_of_its_own():
    starts, model = mf.Tokens.uniform(8, 2, rng=2, shape=(3,)), mf.Transformer(mf.SA(2.0))

    def ordered(_t, tokens):
        return abs(tokens.moment(1)) - 0.5

    with pytest.raises(ValueError, match=r"of shape \(3,\).*np\.ndindex"):
        mf.solve(model, starts, (0, 8), events=ordered)
    each = [lambda t, state, i=i: ordered(t, state[i]) for i in np.ndindex(starts.shape)]
    together = mf.solve(model, starts, (0, 8), events=each).t_events
    assert sum(map(len, together)) >= 2
    for one, times in zip(starts, together, strict=True):
        alone = mf.solve(model, one, (0, 8), events=ordered).t_events[0]
        np.testing.assert_allclose(times, alone, atol=1e-7)


@pytest.mark.parametrize("wrong", [np.nan, np.ones(2), None], ids=["nan", "array", "None"])
def test_an_event_must_be_a_number(wrong):
    with pytest.raises((ValueError, TypeError), match=r"one finite number|be real numbers"):
        mf.solve(KURAMOTO, bumps(), (0, 1), events=lambda _t, _density: wrong)


@pytest.mark.parametrize("answer", [True, np.True_, None, np.ones(2), np.nan, 1j], ids=repr)
def test_an_event_must_be_a_number_with_a_sign(answer):
    """A condition, for instance, is never negative: it would never be seen to happen."""
    with pytest.raises((ValueError, TypeError), match="event function must"):
        mf.solve(KURAMOTO, bumps(), (0, 1), events=lambda _t, _density: answer)
