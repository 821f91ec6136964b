"""Layers of a Transformer and splittings: their limit, their depth, steps that have no default."""

import numpy as np
import pytest

import meanfield as mf
from meanfield import steppers

FOUR = mf.Tokens.on_circle([0.0, 0.3, 2.0, 3.4])


def solved(model, tokens, t, **options):
    """The run until t."""
    return mf.solve(model, tokens, (0, t), t_eval=[t], **options)


MLP = mf.FeedForward(0.5 * np.ones((4, 3)), 0.2 * np.ones((3, 4)), activation=np.tanh)


@pytest.mark.repeats
@pytest.mark.parametrize("scheme", [steppers.Layers, steppers.LieTrotter], ids=lambda s: s.name)
@pytest.mark.parametrize("normalisation", [mf.PostLN(), mf.PreLN(), mf.PeriLN()], ids=repr)
def test_a_deep_transformer_tends_to_the_flow(scheme, normalisation):
    """Error of order one in the step: halved with it, two-sided."""
    drift = mf.Attention(V=np.diag([1.0, 0.5, 0.2]), beta=2.0)
    model = mf.Transformer(drift, normalisation=normalisation, feedforward=MLP)
    x = mf.Tokens.uniform(6, 3, rng=3)
    limit = solved(model, x, 1.0, rtol=1e-11).final.x
    steps = [
        np.abs(solved(model, x, 1.0, scheme=scheme, dt=1 / n).final.x - limit).max()
        for n in (64, 128)
    ]
    assert np.log2(steps[0] / steps[1]) == pytest.approx(1, abs=0.1)


def test_a_splitting_of_a_single_part_has_the_order_of_its_steps():
    """Without a feed-forward map `LieTrotter` splits nothing: Kutta's scheme has order 4."""
    model, x = mf.Transformer(mf.USA(1.0)), mf.Tokens.uniform(6, 3, rng=3)
    limit = solved(model, x, 1.0, rtol=1e-13).final.x
    errors = [
        np.abs(solved(model, x, 1.0, scheme=steppers.LieTrotter, dt=dt).final.x - limit).max()
        for dt in (0.125, 0.0625, 0.03125)
    ]
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 4, atol=0.2)


@pytest.mark.parametrize("drift", [mf.Kuramoto(), mf.USA(0.0), mf.SA(4.0)], ids=repr)
def test_layers_take_the_whole_output_of_attention(drift):
    """Engines for the flow may know its tangential part only; Kuramoto's and modes do."""
    x = mf.Tokens.uniform(700, 2, rng=0)
    run = mf.solve(mf.Transformer(drift), x, (0, 0.5), scheme=steppers.Layers, dt=0.5)
    answered = mf.attend(drift, x)
    hidden = x.x + 0.5 * answered.radii[:, None] * answered.x
    expected = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    np.testing.assert_allclose(run.final.x, expected, atol=1e-14)
    with pytest.raises(ValueError, match=r"steppers.Layers needs"):
        mf.solve(
            mf.Transformer(drift),
            x,
            (0, 1),
            scheme=steppers.Layers,
            dt=0.5,
            engine=mf.engines.Modes(),
        )


def test_a_layer_is_what_the_literature_writes():
    """x <- x + step A(N(x)) for Pre-LN; theta <- N(theta + step A) for Post-LN, and so on."""
    x, beta, step = mf.Tokens.uniform(4, 3, rng=0), 3.0, 0.3
    weights = np.exp(beta * x.x @ x.x.T)
    A = weights / weights.sum(axis=1, keepdims=True) @ x.x
    unit = A / np.linalg.norm(A, axis=1, keepdims=True)
    expected = {
        mf.PostLN(): x.x + step * A,
        mf.PreLN(): x.x + step * A,
        mf.PeriLN(): x.x + step * unit,
        mf.NGPT(0.5): x.x + step * 0.5 * unit,
    }
    for scheme, hidden in expected.items():
        model = mf.Transformer(mf.SA(beta), normalisation=scheme)
        end = solved(model, x, step, scheme=steppers.Layers, dt=step).final
        lengths = np.linalg.norm(hidden, axis=1)
        np.testing.assert_allclose(end.x, hidden / lengths[:, None], rtol=0, atol=1e-15)
        if scheme.has_radii:
            np.testing.assert_allclose(end.radii, lengths, rtol=1e-15)
        else:
            assert end.radii is None


def test_schemes_of_fixed_steps_need_a_step():
    for scheme in (steppers.Layers, steppers.LieTrotter):
        with pytest.raises(ValueError, match=f"{scheme.name} needs dt"):
            solved(mf.Transformer(mf.SA(1.0)), FOUR, 1.0, scheme=scheme)
    with pytest.raises(ValueError, match=r"Tokens needs .*Dorm.*Layers.*Lie"):
        solved(mf.Transformer(mf.SA(1.0)), FOUR, 1.0, scheme=steppers.Krogstad)
    with pytest.raises(ValueError, match=r"Layers moves tokens; got a Density"):
        solved(mf.Transformer(mf.SA(1.0)), mf.Circle(8).uniform(), 1.0, scheme=steppers.Layers)


def test_layers_are_as_deep_as_they_are_asked_to_be():
    model, x = mf.Transformer(mf.SA(2.0)), mf.Tokens.uniform(5, 3, rng=0)
    run = mf.solve(model, x, (0, 1), scheme=steppers.Layers, dt=0.1)
    assert len(run) == 11 and run.stats["steps"] == 10
    with pytest.raises(ValueError, match=r"dt = 0\.3, and an output .* 3\.33"):
        mf.solve(model, x, (0, 1), t_eval=[1.0], scheme=steppers.Layers, dt=0.3)
    jumping = mf.Transformer(mf.Attention(V=mf.PerLayer([1.0, 2.0], 0.35)))
    with pytest.raises(ValueError, match=r"a jump of the model.* is 3\.5 layers"):
        mf.solve(jumping, x, (0, 1), scheme=steppers.Layers, dt=0.1)


@pytest.mark.parametrize("dt", [None, 0.05])
def test_a_run_that_ends_at_a_jump_keeps_to_the_parameters_before_it(dt):
    values = np.random.default_rng(0).standard_normal((2, 3, 3))
    x = mf.Tokens.uniform(5, 3, rng=0)
    ends = []
    for V in (mf.PerLayer(values, 0.5), values[0]):
        model = mf.Transformer(mf.Attention(V=V), feedforward=MLP)
        scheme = steppers.LieTrotter if dt else None
        ends.append(solved(model, x, 0.5, dt=dt, scheme=scheme).final.x)
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-13)


def test_a_feedforward_map_cannot_write_into_the_state():
    model = mf.Transformer(mf.SA(1.0), feedforward=lambda x: np.maximum(x, 0, out=x))
    with pytest.raises(ValueError, match="read-only"):
        solved(model, FOUR, 1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"feedforward": MLP},
        {"normalisation": mf.NGPT(2.0)},
        {"reaction": 5.0},
        {"noise": mf.Anisotropic(np.eye(3))},
        {"drift": mf.Attention(V=lambda t: 1 + t)},
        {"drift": mf.Attention(weights=mf.Unnormalised())},
    ],
    ids=lambda options: next(iter(options)),
)
def test_no_step_is_guessed_where_the_rates_are_not_known(options):
    drift = options.get("drift", mf.SA(1.0))
    rest = {name: value for name, value in options.items() if name != "drift"}
    model = mf.Transformer(drift, kappa=3.0, **rest)
    with pytest.raises(ValueError, match="This model needs dt"):
        solved(model, mf.Tokens.uniform(4, 3, rng=0), 1.0, rng=1)


@pytest.mark.parametrize(
    ("dt", "match"),
    [(10.0, "t_span is 0.1 of them"), (0.3, "3.33333 of them"), (1e-12, "1e.12 layers.*by t_eval")],
)
def test_a_span_is_a_whole_number_of_layers(dt, match):
    with pytest.raises(ValueError, match=match):
        mf.solve(mf.Transformer(mf.SA(1.0)), FOUR, (0, 1), scheme=steppers.Layers, dt=dt)


@pytest.mark.parametrize(
    ("start", "durations"), [(0.0, (0.1, 0.3)), (0.7, (0.1, 0.1)), (1000.0, (0.1, 0.7))]
)
def test_jumps_that_agree_but_for_rounding_are_one(start, durations):
    layers = [mf.PerLayer(np.linspace(1, 2, 11000), duration=d) for d in durations]
    model = mf.Transformer(mf.Attention(Q=layers[0], V=layers[1]))
    span = (start, start + 6.0)
    run = mf.solve(model, FOUR, span, scheme=steppers.Layers, dt=0.1)
    assert run.stats["steps"] == 60
