"""Times that no step passes: `breaks`, which a function of t needs where `PerLayer` does not.

A function that jumps at a time that is told makes the run that `PerLayer` makes.
"""

import numpy as np
import pytest

import meanfield as mf
from meanfield import steppers
from meanfield.core.errors import CheckpointError

RNG = np.random.default_rng(5)
JUMP = 0.37
OPTIONS = {"t_eval": [0.2, 1.0], "progress": False}
CIRCLE = mf.Circle(16).density(lambda t: 1 + 0.5 * np.cos(t - 0.3) + 0.2 * np.cos(2 * t + 1))
SPHERE = mf.Sphere(4).density(lambda x, y, z: 1 + 0.4 * x + 0.2 * y * z)
POSITIONS = mf.Circle(8).indexed(
    lambda s, theta: 1 + 0.3 * np.cos(theta - s / 2), mf.Positions(order=4)
)


def points(*shape):
    x = RNG.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


GRAM = mf.Gram((lambda x: x @ x.T)(points(6, 3)))


def matrix(d):
    return 0.7 * RNG.standard_normal((d, d))


def values(d, before=None, after=None):
    """Attention whose values jump, as a function of t and by layers."""
    pair = np.array([matrix(d), matrix(d)]) if before is None else np.array([before, after])

    def function(t):
        return pair[int(t >= JUMP)]

    return [mf.Attention(1, 1, v, 1.5) for v in (function, mf.PerLayer(pair, JUMP))]


def kappas(before, after):
    """SA under noise that jumps."""
    given = (lambda t: (before, after)[int(t >= JUMP)]), mf.PerLayer([before, after], JUMP)
    return [mf.Transformer(mf.SA(1.5), kappa) for kappa in given]


def models(drifts, *given, **named):
    return [mf.Transformer(drift, *given, **named) for drift in drifts]


FLOWS = {
    "tokens": (models(values(3)), mf.Tokens(points(9, 3)), {}),
    "tokens, noise": (models(values(3), 9.0), mf.Tokens(points(9, 3)), {"dt": 0.03, "rng": 3}),
    "tokens, kappa": (kappas(3.0, 30.0), mf.Tokens(points(9, 3)), {"dt": 0.03, "rng": 3}),
    "tokens, R^d": (
        models(values(3, -np.eye(3), -0.3 * np.eye(3))),
        mf.Tokens(RNG.standard_normal((9, 3)), on_sphere=False),
        {},
    ),
    "replicas": (models(values(3)), mf.Tokens(points(3, 9, 3)), {}),
    "gaussian": (
        models(values(3, -np.eye(3), -0.3 * np.eye(3))),
        mf.Gaussian(np.zeros(3), np.diag([1.0, 2, 3])),
        {},
    ),
    "characteristics": (models(values(2)), mf.Characteristics(CIRCLE), {}),
}
DENSITIES = {
    "circle": (models(values(2), 4.0), CIRCLE, {}),
    "circle, no noise": (models(values(2)), CIRCLE, {}),
    "circle, kappa": (kappas(2.0, 40.0), CIRCLE, {}),
    "circle, explicit": (kappas(2.0, 40.0), CIRCLE, {"scheme": steppers.DormandPrince}),
    "circle, fixed": (kappas(2.0, 40.0), CIRCLE, {"dt": 0.02}),
    "circle, common": (
        models(values(2), 4.0, common=mf.CommonRotations(3.0)),
        CIRCLE,
        {"dt": 0.02, "rng": 1},
    ),
    "sphere": (models(values(3), 4.0), SPHERE, {}),
    "indexed": (models(values(2), 5.0, causal="mean"), POSITIONS, {}),
}


def difference(one, other):
    """The largest difference of coefficients."""
    degree = max(state.space.degree for state in (one, other))
    a, b = (state.resample(degree).coefficients for state in (one, other))
    return np.abs(a - b).max()


def arrays(run):
    """Those of all states of a run."""
    return [array for state in run for _, array in state.arrays().values()]


@pytest.mark.parametrize("name", FLOWS)
def test_a_function_that_jumps_at_a_break_is_a_parameter_by_layers(name):
    """To the last bit: the breakpoints are the same ones."""
    (function, layers), state, given = FLOWS[name]
    run = mf.solve(function, state, (0, 1), breaks=[JUMP], **OPTIONS, **given)
    other = mf.solve(layers, state, (0, 1), **OPTIONS, **given)
    np.testing.assert_array_equal(run.stats["steps"], other.stats["steps"])
    for one, same in zip(arrays(run), arrays(other), strict=True):
        np.testing.assert_array_equal(one, same)


@pytest.mark.repeats
@pytest.mark.parametrize("name", DENSITIES)
def test_densities_see_the_same_jump(name):
    """To `rtol`: a function of t costs another estimate of errors."""
    (function, layers), state, given = DENSITIES[name]
    run = mf.solve(function, state, (0, 1), breaks=[JUMP], **OPTIONS, **given)
    other = mf.solve(layers, state, (0, 1), **OPTIONS, **given)
    for one, same in zip(run, other, strict=True):
        assert difference(one, same) < 5e-8
    if "dt" not in given:
        blind = mf.solve(function, state, (0, 1), **OPTIONS, **given)
        assert run.stats["rejected"] < blind.stats["rejected"]


@pytest.mark.parametrize(
    ("state", "given"),
    [
        (CIRCLE, {}),
        (CIRCLE, {"scheme": steppers.DormandPrince}),
        (CIRCLE, {"dt": 0.3}),
        (POSITIONS, {}),
        (mf.Tokens(points(5, 3)), {}),
        (mf.Tokens(points(3, 5, 3)), {}),
        (GRAM, {}),
        (mf.Equiangular(n=5, rho=0.2), {}),
        (mf.Characteristics(CIRCLE), {}),
    ],
    ids=lambda given: type(given).__name__ if hasattr(given, "arrays") else "".join(given),
)
def test_steps_end_exactly_at_a_break(state, given):
    """Also where nothing jumps, as a user may know of a kink."""
    breaks, times = [0.123, JUMP, 0.9], []
    callback = lambda t, _state: times.append(t)  # noqa: E731
    options = {"breaks": breaks, "callback": callback, **OPTIONS, **given}
    mf.solve(mf.Transformer(mf.SA(2.0)), state, (0, 1), **options)
    assert set(breaks) < set(times)


def test_a_schedule_of_equiangular_tokens_jumps_at_a_break():
    """Of nGPT, whose rate is the only parameter in time that these tokens follow."""
    state, rates = mf.Equiangular(n=5, rho=0.2), (1.0, 0.2)
    model, first, then = (
        mf.Transformer(mf.SA(2.0), normalisation=mf.NGPT(alpha))
        for alpha in (lambda t: rates[int(t >= JUMP)], *rates)
    )
    run = mf.solve(model, state, (0, 1), breaks=[JUMP], **OPTIONS)
    middle = mf.solve(first, state, (0, JUMP), t_eval=[JUMP], rtol=1e-11).final
    exact = mf.solve(then, middle, (0, 1 - JUMP), t_eval=[1 - JUMP], rtol=1e-11).final
    assert abs(run.final.rho - exact.rho) < 1e-7
    blind = mf.solve(model, state, (0, 1), **OPTIONS)
    assert run.stats["rejected"] < blind.stats["rejected"]


def test_members_of_an_ensemble_are_told():
    """Each has the bits that it has alone, which are those of `breaks` too."""
    kappa = lambda t: 2.0 if t < JUMP else 40.0  # noqa: E731
    both = mf.Transformer(mf.SA(np.array([1.0, 3.0])), kappa)
    run = mf.solve(both, CIRCLE, (0, 1), breaks=[JUMP], **OPTIONS)
    for i, beta in enumerate([1.0, 3.0]):
        one = mf.solve(mf.Transformer(mf.SA(beta), kappa), CIRCLE, (0, 1), breaks=[JUMP], **OPTIONS)
        np.testing.assert_array_equal(
            run.final[i].resample(one.final.space.degree).coefficients, one.final.coefficients
        )


def test_a_pulse_that_no_step_sees_is_told():
    """Of width .0002 and strength 1000, in which the identity acts for a time of .2."""
    pulse = 0.4, 0.4002
    values = lambda t: 1000.0 * (pulse[0] <= t < pulse[1]) * np.eye(2)  # noqa: E731
    model = mf.Transformer(mf.Attention(V=values))
    told = mf.solve(model, CIRCLE, (0, 1), breaks=pulse, **OPTIONS)
    exact = mf.solve(mf.Transformer(mf.Attention()), CIRCLE, (0, 0.2), t_eval=[0.2], rtol=1e-10)
    assert abs(told.final.moment(1) - exact.final.moment(1)) < 1e-7
    assert abs(exact.final.moment(1) - CIRCLE.moment(1)) > 0.01


def test_a_run_that_is_resumed_keeps_its_breaks(tmp_path):
    """To the last bit; other breaks make another run."""
    (function, _), state, _ = DENSITIES["circle, kappa"]
    options = {"breaks": [JUMP, 0.5], **OPTIONS}
    whole = mf.solve(function, state, (0, 1), **options)
    for cut in range(3, int(whole.stats["steps"]), 9):
        options["checkpoint"] = tmp_path / f"checkpoint {cut}"
        mf.solve(function, state, (0, 1), max_steps=cut, **options)
        rest = mf.solve(function, state, (0, 1), resume=True, **options)
        for one, same in zip(arrays(rest), arrays(whole), strict=True):
            np.testing.assert_array_equal(one, same)
    with pytest.raises(CheckpointError):
        mf.solve(function, state, (0, 1), resume=True, **options | {"breaks": [JUMP]})


def test_breaks_are_kept_with_the_result(tmp_path):
    """In `options`, and in its file; a run without them has none."""
    model = mf.Transformer(mf.SA(2.0), 4.0)
    run = mf.solve(model, CIRCLE, (0, 1), breaks=np.array([0.25, 0.5]), **OPTIONS)
    run.save(tmp_path / "run.nc")
    assert mf.load(tmp_path / "run.nc").options["breaks"] == run.options["breaks"] == [0.25, 0.5]
    assert "breaks" not in mf.solve(model, CIRCLE, (0, 1), **OPTIONS).options


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        ([0.5, 0.5], "increase"),
        ([0.5, 0.2], "increase"),
        ([-0.1], "within"),
        ([0.5, 1.1], "within"),
        ([np.nan], "breaks"),
        ([np.inf], "breaks"),
        (["a"], "breaks"),
        (0.5, "breaks"),
        ([[0.1], [0.2]], "breaks"),
    ],
)
def test_breaks_that_make_no_sense_are_refused(breaks, message):
    with pytest.raises((ValueError, TypeError), match=message):
        mf.solve(mf.Transformer(mf.SA(2.0)), CIRCLE, (0, 1), breaks=breaks)


def test_layers_have_breaks_between_them():
    model = mf.Transformer(mf.SA(2.0))
    tokens, options = mf.Tokens(points(5, 3)), {"scheme": steppers.Layers, "dt": 0.25}
    assert mf.solve(model, tokens, (0, 1), breaks=[0.5], **options).success
    with pytest.raises(ValueError, match="layers"):
        mf.solve(model, tokens, (0, 1), breaks=[0.3], **options)


# Derivatives ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [steppers.Krogstad, steppers.DormandPrince], ids=str)
def test_tangents_see_the_jump_where_the_run_sees_it(scheme):
    """Of densities under noise that jumps, as by layers."""
    function, layers = kappas(2.0, 40.0)
    options = {"tangents": [lambda x: x[:, 0]], "scheme": scheme, **OPTIONS}
    run = mf.solve(function, CIRCLE, (0, 1), breaks=[JUMP], **options)
    other = mf.solve(layers, CIRCLE, (0, 1), **options)
    for found in zip(run.tangents["direction_0"], other.tangents["direction_0"], strict=True):
        modes = min(change.coefficients.size for change in found)
        one, same = (change.coefficients[:modes] for change in found)
        assert np.abs(one - same).max() < 1e-7


def test_lyapunov_exponents_of_a_run_that_starts_later():
    """kappa belongs to the time, not to the time since the start."""
    found = []
    for start in (0.0, 2.0):
        model = mf.Transformer(mf.SA(2.0), lambda t, start=start: 3 + np.cos(3 * (t - start)))
        run = mf.solve(model, CIRCLE, (start, start + 1), t_eval=[start + 1], progress=False)
        found.append(mf.lyapunov_exponents(run, 2, rng=1).exponents)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
