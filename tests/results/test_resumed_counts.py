"""A run that is interrupted anywhere, again and again, is the unbroken one: states and counts."""

import copy
import warnings

import numpy as np
import pytest

import meanfield as mf


def tokens(n, d, **options):
    """Tokens that are not symmetric."""
    return mf.Tokens.uniform(n, d, rng=3, **options)


def crosses(level):
    """An event of any state: its first observable number crosses a level."""

    def event(t, _state):
        return np.sin(3 * t) - level

    return event


CIRCLE = mf.Circle(64).density(lambda a: 1 + 0.3 * np.cos(a) + 0.1 * np.sin(2 * a))
BUMPS = mf.Density.mixture(
    [0.34, 0.33, 0.33], [mf.Circle(256).von_mises(2 * np.pi * i / 3, 200.0) for i in range(3)]
)
SPHERE = mf.Sphere(16).density(lambda x, y, z: 1 + 0.3 * x + 0.2 * y * z)
ZONAL = mf.Zonal(5, 32).density(lambda x: 1 + 0.3 * x)
LAYERED = mf.Attention(V=mf.PerLayer([1.0, -0.5, 0.7], 0.4))

RUNS = {
    "circle": (mf.Transformer(mf.SA(4.0), 200.0), CIRCLE, (0, 4), {}),
    "events": (mf.Transformer(mf.SA(4.0), 200.0), CIRCLE, (0, 3), {"events": crosses(0.5)}),
    "degrees": (mf.Transformer(mf.USA([0.0, 0.5]), [8.0, 20.0]), BUMPS, (0, 2), {}),
    "outputs": (
        mf.Transformer(mf.USA(4.0), 20.0),
        CIRCLE,
        (0, 1),
        {"t_eval": np.linspace(0, 0.3, 60)},
    ),
    "steady": (mf.Transformer(mf.USA(1.0), 1.0), CIRCLE, (0, 1e16), {"until": "steady"}),
    "dt": (mf.Transformer(mf.USA(4.0), 20.0), CIRCLE, (0, 1), {"dt": 0.013}),
    "no dense output": (
        mf.Transformer(mf.USA(4.0), 20.0),
        CIRCLE,
        (0, 1),
        {"scheme": mf.steppers.HochbruckOstermann},
    ),
    "unresolved": (mf.Transformer(mf.USA(4.0)), CIRCLE, (0, 9), {"max_degree": 128}),
    "sphere": (mf.Transformer(mf.USA(4.0), 20.0), SPHERE, (0, 0.5), {"min_degree": 8}),
    "zonal": (mf.Transformer(mf.USA(4.0), 20.0), ZONAL, (0, 0.2), {}),
    "characteristics": (
        mf.Transformer(mf.USA(4.0)),
        mf.Characteristics(CIRCLE, nodes=512),
        (0, 1),
        {},
    ),
    "tokens": (mf.Transformer(mf.SA(4.0)), tokens(9, 3), (0, 9), {"until": "steady"}),
    "merging": (mf.Transformer(mf.SA(4.0)), tokens(9, 2), (0, 30), {"merge": 1e-4}),
    "reaction": (
        mf.Transformer(mf.USA(1.0), reaction=2.0),
        tokens(6, 3),
        (0, 3),
        {"merge": 1e-3, "events": crosses(0.1)},
    ),
    "noise": (mf.Transformer(mf.USA(1.0), 9.0), tokens(5, 3), (0, 1), {"rng": 3}),
    "layers": (
        mf.Transformer(mf.SA(2.0), normalisation=mf.PreLN()),
        tokens(5, 3),
        (0, 8),
        {"scheme": mf.steppers.Layers, "dt": 0.5},
    ),
    "jumps": (mf.Transformer(LAYERED), tokens(5, 3), (0, 2), {"events": crosses(-0.5)}),
    "gram": (mf.Transformer(mf.SA(4.0)), tokens(6, 3).gram(), (0, 5), {}),
    "equiangular": (mf.Transformer(mf.SA(4.0)), mf.Equiangular([8, 32], 0.0), (0, 50), {}),
    "gaussian": (
        mf.Transformer(mf.Attention(V=-np.diag([1.0, 30.0]))),
        mf.Gaussian([1.0, 0.0], [[1.0, 0.3], [0.3, 2.0]]),
        (0, 50.0),
        {},
    ),
    "blow-up": (mf.Transformer(mf.Attention()), mf.Gaussian([0.3, 0.0], np.eye(2)), (0, 9), {}),
}


def solved(name, **options):
    """The run of this name, whatever it warns of."""
    model, state, span, own = RUNS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.UnresolvedWarning)
        return mf.solve(copy.deepcopy(model), state, span, **own, **options)


def assert_same(run, other):
    """Two runs agree to the last bit: in all but wall time."""
    assert run.status == other.status and run.message == other.message
    assert run.stats.keys() == other.stats.keys()
    for name in run.stats.keys() - {"seconds"}:
        assert np.array_equal(run.stats[name], other.stats[name]), name
    assert run.t.tolist() == other.t.tolist()
    for times, same in zip(run.t_events, other.t_events, strict=True):
        np.testing.assert_array_equal(times, same)
    for one, two in zip(run, other, strict=True):
        for array, same in zip(arrays(one), arrays(two), strict=True):
            np.testing.assert_array_equal(array, same)


def arrays(state):
    """All numbers of a state."""
    return [v for v in vars(state).values() if isinstance(v, np.ndarray)] + (
        [state.coefficients] if isinstance(state, mf.Density) else []
    )


OWN_STEPS = {"equiangular"}  # of members, unless a callback looks at all of them at one time


class Killed(Exception):
    """Raised by a callback, as a process may die anywhere."""


def interrupted(name, path, attempts, chance):
    """The run, broken off by `max_steps`, by callbacks and by death, and resumed each time."""
    options = {"checkpoint": path, "checkpoint_every": 0, "resume": True}
    done = 0
    while True:
        more = int(chance.integers(1, attempts // 2 + 2))
        done, calls = done + more, iter(range(more))

        def asked(_t, _state, calls=calls):
            return next(calls, None) is None

        def dies(_t, _state, calls=calls):
            if next(calls, None) is None:
                raise Killed

        try:
            how = [{"max_steps": done}, {"callback": asked}, {"callback": dies}]
            run = solved(name, **options, **how[0 if name in OWN_STEPS else chance.integers(3)])
        except Killed:
            continue
        if run.status not in ("max_steps", "stopped"):
            return run


@pytest.mark.repeats
@pytest.mark.bits
@pytest.mark.parametrize("name", RUNS)
def test_counts_and_states_of_a_run_do_not_tell_where_it_was_interrupted(tmp_path, name):
    whole = solved(name)
    attempts = int(np.max(np.add(whole.stats["steps"], whole.stats["rejected"])))
    again = interrupted(name, tmp_path / "run.checkpoint", attempts, np.random.default_rng(0))
    assert_same(again, whole)
