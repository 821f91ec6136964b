"""Spans of time: steps depend on the rates of a run, never on how far the run is to go."""

import warnings

import numpy as np
import pytest

import meanfield as mf

HUGE = 1e300
DENSITY = mf.Circle(32).density(lambda a: 1 + 0.3 * np.cos(a) + 0.1 * np.sin(2 * a))
THREE = mf.Tokens([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
BETA = mf.PerLayer([[[1.0, 0.0], [0.0, 1.0]], [[0.0, -1.0], [1.0, 0.5]]], 0.3)

RUNS = {
    "circle": (mf.Transformer(mf.USA(4.0), 6.0), DENSITY),
    "circle, without noise": (mf.Transformer(mf.SA(2.0)), DENSITY),
    "almost uniform": (mf.Transformer(mf.USA(4.0), 6.0), mf.Circle(32).perturbed(1e-12, rng=0)),
    "sphere": (
        mf.Transformer(mf.USA(1.0), 5.0),
        mf.Sphere(16).density(lambda x, y, z: 1 + 0.3 * x + 0.2 * y * z),
    ),
    "zonal": (mf.Transformer(mf.SA(1.0), 5.0), mf.Zonal(5, 16).density(lambda x: 1 + 0.3 * x)),
    "characteristics": (mf.Transformer(mf.USA(2.0)), mf.Characteristics(DENSITY)),
    "tokens": (mf.Transformer(mf.SA(4.0)), THREE),
    "tokens almost at rest": (
        mf.Transformer(mf.SA(4.0)),
        mf.Tokens([[1.0, 0.0], [-1.0, 1e-13]]),
    ),
    "jumps": (mf.Transformer(mf.Attention(V=BETA)), THREE),
    "gram": (mf.Transformer(mf.SA(4.0)), THREE.gram()),
    "equiangular": (mf.Transformer(mf.SA(4.0)), mf.Equiangular(8, 0.0)),
    "gaussian": (
        mf.Transformer(mf.Attention(V=-np.diag([1.0, 30.0]))),
        mf.Gaussian([1.0, 0.0], [[1.0, 0.3], [0.3, 2.0]]),
    ),
}


def solved(name, span, **options):
    """The run of this name, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.UnresolvedWarning)
        return mf.solve(*RUNS[name], span, **options)


def steps(name, end, count=25):
    """The times after the first steps of a run, as a callback sees them, and the last state."""
    times = []
    run = solved(
        name,
        (0, end),
        t_eval=[end],
        callback=lambda t, _state: times.append(t) or len(times) == count,
    )
    return times, run


@pytest.mark.bits
@pytest.mark.parametrize("name", RUNS)
def test_steps_are_the_same_to_the_last_bit_however_far_the_run_is_to_go(name):
    times, run = steps(name, 1e6)
    assert len(times) == 25
    for end in (1e16, 1e100, HUGE):
        others, other = steps(name, end)
        assert others == times
        for one, two in zip(vars(run.final).values(), vars(other.final).values(), strict=True):
            if isinstance(one, np.ndarray):
                np.testing.assert_array_equal(one, two)


@pytest.mark.repeats
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("end", [5e-324, 1e-300, 1e-20])
def test_the_shortest_spans_are_one_step(name, end):
    run = solved(name, (0, end), t_eval=[end])
    assert run.status == "finished" and run.stats["steps"] == 1 and not run.stats["rejected"]


@pytest.mark.parametrize("end", [1e12, 1e16, HUGE])
def test_a_steady_state_is_found_whatever_the_end(end):
    """du/dt = -(1/kappa - ...) u decays: from 0.3 to the rate 1e-10."""
    model = mf.Transformer(mf.USA(1.0), 1.0)
    near, far = (mf.solve(model, DENSITY, (0, e), until="steady") for e in (1e3, end))
    assert near.status == far.status == "steady" and 10 < near.t[-1] < 100
    assert near.t[-1] == far.t[-1]
    np.testing.assert_array_equal(near.final.coefficients, far.final.coefficients)


@pytest.mark.repeats
@pytest.mark.parametrize("start", [-1e12, -1.0, 1e12])
def test_runs_far_from_zero_are_those_that_start_there(start):
    """Times since the start count; those of a span that starts far from 0 are rounded."""
    for name in ("circle", "tokens", "gaussian"):
        near = solved(name, (0, 0.5), t_eval=[0.5])
        far = solved(name, (start, start + 0.5), t_eval=[start + 0.5])
        assert far.status == "finished" and far.stats["steps"] == near.stats["steps"]


def test_a_jump_is_where_it_is_however_far_the_run_goes():
    """V jumps at t = 0.3, which is not near 0 even beside 1e16."""
    near = solved("jumps", (0, 0.6), t_eval=[0.3, 0.31])
    far = solved("jumps", (0, 1e16), t_eval=[0.3, 0.31, 1e16], max_steps=100)
    for one, two in zip(near[:2], far[:2], strict=True):
        np.testing.assert_allclose(one.x, two.x, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["circle", "tokens"])
def test_neighbouring_times_have_neighbouring_states(name):
    t = 0.7
    run = solved(name, (0, 1), t_eval=[t, np.nextafter(t, 1)])
    assert run.status == "finished" and len(run) == 2


def test_a_span_that_is_longer_than_numbers_is_refused():
    with pytest.raises(ValueError, match="t_span"):
        solved("tokens", (-1e308, 1e308), t_eval=[0.0])


def test_layers_are_counted_one_by_one_however_many_there_are():
    model = mf.Transformer(mf.SA(4.0))
    with pytest.raises(ValueError, match=r"0\.5 layers"):
        mf.solve(model, THREE, (0, 1e12), t_eval=[0.5, 1e12], scheme=mf.steppers.Layers, dt=1.0)
