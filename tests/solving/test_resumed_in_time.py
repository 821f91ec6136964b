"""Runs under functions of time that are resumed: velocities belong to the time on the clock.

The functions have another value at every double, so that a time that is off by its last bit shows,
on every processor.
"""

import numpy as np
import pytest

import meanfield as mf
from meanfield import steppers

RNG = np.random.default_rng(11)
SPAN = 0.3, 0.9
CIRCLE = mf.Circle(16).density(lambda t: 1 + 0.5 * np.cos(t - 0.3) + 0.2 * np.cos(2 * t + 1))
SPHERE = mf.Sphere(4).density(lambda x, y, z: 1 + 0.4 * x + 0.2 * y * z)
POSITIONS = mf.Circle(8).indexed(
    lambda s, theta: 1 + 0.3 * np.cos(theta - s / 2), mf.Positions(order=8)
)


def of_all_bits(value):
    """A parameter that is constant but for the bits of t, by which it changes by 1e-9."""

    def at(t):
        mixed = int(np.float64(t).view(np.int64)) * 0x9E3779B97F4A7C15 % 2**64
        return np.asarray(value) * (1 + 1e-9 * mixed / 2**64)

    return at


def matrix(d):
    return 0.7 * RNG.standard_normal((d, d))


def points(*shape):
    x = RNG.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def turning(d, beta=1.5):
    """Queries that see all bits of t; values that jump."""
    values = mf.PerLayer([matrix(d), matrix(d), -matrix(d)], duration=0.17)
    return mf.Attention(of_all_bits(matrix(d)), matrix(d), values, beta)


def moving(d, values=None, beta=1.5):
    """Values that see all bits of t."""
    return mf.Attention(1, 1, of_all_bits(matrix(d) if values is None else values), beta)


EXPLICIT = {"scheme": steppers.DormandPrince}
OTHER = {"scheme": steppers.HochbruckOstermann}
R_D = {"on_sphere": False}
CASES = {
    "circle": (mf.Transformer(turning(2), 4.0), CIRCLE, {}),
    "circle, no noise": (mf.Transformer(moving(2)), CIRCLE, {}),
    "circle, kappa": (mf.Transformer(mf.SA(2.0), of_all_bits(4.0)), CIRCLE, {}),
    "circle, explicit": (mf.Transformer(moving(2), 50.0), CIRCLE, EXPLICIT),
    "circle, other": (mf.Transformer(moving(2), 4.0), CIRCLE, OTHER),
    "circle, members": (mf.Transformer(moving(2, beta=np.array([1, 2])), 4.0), CIRCLE, {}),
    "sphere": (mf.Transformer(moving(3), 4.0), SPHERE, {}),
    "indexed": (mf.Transformer(moving(2), 5.0, causal="mean"), POSITIONS, {}),
    "tokens": (mf.Transformer(turning(3)), mf.Tokens(points(9, 3)), {}),
    "tokens, noise": (
        mf.Transformer(turning(3), of_all_bits(9.0)),
        mf.Tokens(points(9, 3)),
        {"dt": 0.03, "rng": 3},
    ),
    "tokens, R^d": (
        mf.Transformer(moving(3, -0.4 * np.eye(3))),
        mf.Tokens(RNG.standard_normal((9, 3)), **R_D),
        {},
    ),
    "replicas": (mf.Transformer(turning(3)), mf.Tokens(points(3, 9, 3)), {}),
    "replicas, betas": (
        mf.Transformer(moving(3, beta=np.array([1.0, 2, 4]))),
        mf.Tokens(points(3, 9, 3)),
        {},
    ),
    "replicas, R^d": (
        mf.Transformer(moving(3, -0.4 * np.eye(3))),
        mf.Tokens(RNG.standard_normal((3, 9, 3)), **R_D),
        {},
    ),
    "gaussian": (
        mf.Transformer(moving(3, -0.4 * np.eye(3))),
        mf.Gaussian(np.zeros(3), np.diag([1.0, 2, 3])),
        {},
    ),
    "characteristics": (mf.Transformer(moving(2)), mf.Characteristics(CIRCLE), {}),
}


@pytest.mark.repeats
@pytest.mark.bits
@pytest.mark.parametrize("name", CASES)
def test_a_run_is_resumed_after_any_step(name, tmp_path):
    model, state, given = CASES[name]
    options = {"t_eval": np.linspace(*SPAN, 6), "progress": False, **given}
    whole = mf.solve(model, state, SPAN, **options)
    steps = int(np.max(whole.stats["steps"]) + np.max(whole.stats["rejected"]))
    for cut in range(1, steps, 1 + steps // 6):
        options["checkpoint"] = tmp_path / f"checkpoint {cut}"
        mf.solve(model, state, SPAN, max_steps=cut, **options)
        rest = mf.solve(model, state, SPAN, resume=True, **options)
        assert rest.t.tolist() == whole.t.tolist()
        for one, other in zip(rest, whole, strict=True):
            for (_, a), (_, b) in zip(one.arrays().values(), other.arrays().values(), strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"cut after {cut} of {steps}")


@pytest.mark.bits
@pytest.mark.parametrize(
    "name", ["replicas", "replicas, betas", "replicas, R^d", "circle, members"]
)
def test_a_member_sees_the_times_that_it_sees_alone(name):
    model, state, _ = CASES[name]
    options = {"t_eval": np.linspace(*SPAN, 6), "progress": False}
    together = mf.solve(model, state, SPAN, **options)
    for i in range(together.final.shape[0]):
        mine = model.members(together.final.shape, i)
        alone = mf.solve(mine, state[i] if state.shape else state, SPAN, **options)
        for one, other in zip(together, alone, strict=True):
            arrays = (s.arrays().values() for s in (one[i], other))
            for (_, a), (_, b) in zip(*arrays, strict=True):
                np.testing.assert_array_equal(a, b)
