"""Functions of points as drifts: their values, checked, and the activations that files name."""

import inspect
import re

import numpy as np
import pytest
from scipy import stats

import meanfield as mf
from meanfield.core.descriptions import build, describe
from meanfield.core.differences import derivative_at_zero
from meanfield.core.dual import Dual
from meanfield.models import gelu, relu, softplus
from meanfield.models.activations import ACTIVATIONS, gelu_tanh, quick_gelu, silu

X = np.linspace(-5, 5, 101)


def test_activations_are_those_of_the_literature():
    np.testing.assert_allclose(gelu(X), X * stats.norm.cdf(X), rtol=1e-14)
    np.testing.assert_allclose(softplus(X), np.log1p(np.exp(X)), rtol=1e-14)
    assert softplus(np.array([800.0, -800.0])).tolist() == [800.0, 0.0]
    np.testing.assert_array_equal(relu(X), np.where(X > 0, X, 0))
    u = np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)
    np.testing.assert_allclose(gelu_tanh(X), X * (1 + np.tanh(u)) / 2, rtol=0, atol=2e-15)
    np.testing.assert_allclose(silu(X), X / (1 + np.exp(-X)), rtol=1e-14)
    np.testing.assert_allclose(quick_gelu(X), X / (1 + np.exp(-1.702 * X)), rtol=1e-14)


@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name != "relu"])
def test_slopes_of_activations(name):
    f = ACTIVATIONS[name]
    found = derivative_at_zero(lambda h: f(X + h), name)
    np.testing.assert_allclose(slope(f, X), found, rtol=0, atol=1e-10)
    far = [0.0, 0.0 if name == "tanh" else 1.0]
    np.testing.assert_allclose(slope(f, np.array([-1e4, 1e4])), far, rtol=0, atol=1e-15)


def slope(f, x):
    return f(Dual(x, np.ones((1, *x.shape)))).changes[0]


def perceptron(k=5, d=3):
    chance = np.random.default_rng(0)
    inner, gate = chance.standard_normal((2, k, d))
    outer = chance.standard_normal((d, k))
    return inner, outer, gate, chance.standard_normal(k), chance.standard_normal(d)


def test_a_gate_and_biases_against_numpy():
    inner, outer, gate, b, c = perceptron()
    x, dx = np.random.default_rng(1).standard_normal((2, 7, 3))
    swiglu = mf.FeedForward(inner, outer, activation="silu", gate=gate)
    g = x @ gate.T
    wanted = (g / (1 + np.exp(-g)) * (x @ inner.T)) @ outer.T
    np.testing.assert_allclose(swiglu(x), wanted, rtol=0, atol=1e-13)
    assert swiglu.dimension == 3
    plain = mf.FeedForward(inner, outer, b, "gelu_tanh")
    np.testing.assert_array_equal(plain.replace(outer_bias=c)(x), plain(x) + c)
    for f in (swiglu, swiglu.replace(bias=b, outer_bias=c), plain.replace(outer_bias=c)):
        by = derivative_at_zero(lambda h, f=f: f(x + h * dx), "f")
        np.testing.assert_allclose(f(Dual(x, dx[None])).changes[0], by, rtol=0, atol=1e-10)
        assert build(mf.Drift, {"kind": "FeedForward", **describe(f)}) == f
    assert mf.FeedForward(1.0, 2.0, outer_bias=c).dimension == 3
    assert mf.FeedForward(1.0, 2.0, gate=np.eye(3)).dimension == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"outer_bias": np.zeros(5)}, r"outer_bias \(d\) must have one d; got .*outer_bias \(5,\)"),
        ({"outer_bias": np.zeros((1, 3))}, r"outer_bias.shape must be \(d\); got.* \(1, 3\)"),
        ({"gate": np.zeros((4, 3))}, r"gate \(k, d\).* one k; got .*gate \(4, 3\)"),
        ({"gate": 2.0}, r"inner \(d, d\).* one d; got inner \(5, 3\)"),
    ],
)
def test_gates_and_biases_that_do_not_fit(given, message):
    inner, outer, *_ = perceptron()
    with pytest.raises(ValueError, match=message):
        mf.FeedForward(inner, outer, **given)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_files_name_activations(name):
    table = {"kind": "FeedForward", "inner": 1.0, "outer": 2.0, "bias": 0.0, "activation": name}
    drift = build(mf.Drift, table)
    assert drift.activation is ACTIVATIONS[name]
    assert {"activation": "relu", **describe(drift)} == table  # relu is left out
    model = build(mf.Transformer, {"drift": table, "feedforward": table})
    assert model.feedforward == drift == model.drift


def test_a_table_of_a_perceptron_names_its_kind_as_a_drift_only():
    table = {"inner": 1.0, "outer": 2.0}
    with pytest.raises(mf.ConfigError, match=r"drift.kind: expected one of Attention, .*missing"):
        build(mf.Transformer, {"drift": table})
    model = build(mf.Transformer, {"drift": "Kuramoto", "feedforward": table})
    assert model.feedforward == mf.FeedForward(1.0, 2.0)


def test_a_field_is_asked_for_all_points_at_once_and_cannot_write_into_them():
    shapes = []

    def f(x):
        shapes.append(x.shape)
        x *= 2
        return x

    with pytest.raises(ValueError, match="read-only"):
        mf.Field(f).values(np.ones((2, 5, 3)))
    assert shapes == [(2, 5, 3)]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (
            lambda x: x[..., 0],
            ValueError,
            r"Field.function takes points .* got shape \(.*4,?\) for",
        ),
        (lambda x: 1j * x, TypeError, "What Field.function returns must be real numbers"),
        (lambda x: None, TypeError, "What Field.function returns must be real numbers; got None"),
        (lambda x: [[0.0], [0.0, 1.0]], ValueError, "rows of equal length"),
    ],
)
def test_what_a_field_returns_is_checked(function, error, message):
    tokens = mf.Tokens.uniform(4, 3, rng=0)
    with pytest.raises(error, match=message):
        mf.Field(function).values(tokens.x)
    with pytest.raises(error, match=message):
        mf.solve(mf.Transformer(mf.SA(1.0) + mf.Field(function)), tokens, (0, 1))


PLANE = np.array([1.0, 0.0])  # a vector of another dimension
UNFIT = [
    (mf.Field(lambda x: x * PLANE), r"Field.function raised .* return vectors of shape \(.*, 3\)"),
    (mf.Field(lambda x: x[..., 3:4] + x[..., 3]), r"Field.function raised .* return vectors"),
    (
        mf.Potential(lambda x: x @ PLANE),
        r"^Potential.function raised .* return numbers of shape \(",
    ),
    (mf.PairKernel(lambda x, y: x * PLANE), "PairKernel.kernel raised .* return numbers of shape"),
    (mf.PairKernel(lambda x, y: y, weight=lambda x, y: x @ PLANE), "PairKernel.weight raised"),
]


@pytest.mark.parametrize(("drift", "message"), UNFIT)
def test_a_function_whose_arrays_do_not_fit_is_named(drift, message):
    for state in (mf.Tokens.uniform(4, 3, rng=0), mf.Sphere(2).uniform()):
        with pytest.raises(ValueError, match=rf"{message}.*"):
            mf.solve(mf.Transformer(drift), state, (0, 1))


def test_a_feedforward_map_whose_arrays_do_not_fit_is_named():
    model = mf.Transformer(mf.SA(1.0), feedforward=lambda x: x * PLANE)
    with pytest.raises(
        ValueError, match=r"^feedforward raised .* return vectors of shape \(.*, 3\)"
    ):
        mf.solve(model, mf.Tokens.uniform(4, 3, rng=0), (0, 1))


def north(x):
    """nan where z > 0.9."""
    return x * np.where(x[..., 2:] > 0.9, np.nan, 1.0)


@pytest.mark.parametrize(
    "model",
    [
        mf.Transformer(mf.Field(north)),
        mf.Transformer(mf.SA(1.0) + mf.Field(north)),
        mf.Transformer(mf.Potential(lambda x: north(x)[..., 2])),
        mf.Transformer(mf.PairKernel(lambda x, y: x + north(y))),
        mf.Transformer(mf.SA(1.0), feedforward=north),
    ],
    ids=["field", "sum", "potential", "pairs", "feedforward"],
)
def test_values_that_are_not_finite_are_told_with_the_first_point(model):
    point = r"nan at x = \(.*, 0\.9\d+\)"
    if isinstance(model.drift, mf.PairKernel):
        point = rf"{point} and y = \(.*\)|nan at x = .* and y = \(.*, 0\.9\d+\)"
    tokens = mf.Tokens([[1.0, 0.0, 0.0], [0.28, 0.0, 0.96]])
    for state in (tokens, mf.Sphere(2).uniform()):
        with pytest.raises(mf.MeanfieldError, match=point):
            mf.solve(model, state, (0, 1))


@pytest.mark.parametrize(
    "function",
    [lambda a: np.sin(a[..., 0]), lambda a: np.stack([-np.sin(a), np.cos(a)], axis=-1)],
    ids=["speed", "vectors"],
)
def test_a_field_of_an_angle_is_told_how_to_have_it(function):
    circle = mf.Circle(16).von_mises(0.3, 1.0)
    words = r"x is no angle\. On the circle theta = np\.arctan2\(x\[\.\.\., 1\], x"
    for state in (mf.Tokens.on_circle([0.1, 2.0]), circle, mf.Characteristics(circle)):
        with pytest.raises(ValueError, match=words):
            mf.solve(mf.Transformer(mf.Field(function)), state, (0, 1))
    with pytest.raises(ValueError, match=r"as many vectors; got shape \S+.* for \(.*3\)\.$"):
        mf.Field(function).values(np.eye(3))


def test_a_field_of_an_angle_is_that_of_its_docstring():
    """d theta/dt = sin 2 theta: tan theta grows like exp(2 t)."""
    text = inspect.getdoc(mf.Field).split(">>> drift")[0]
    lines = re.findall(r"^(?:>>>|\.\.\.) (.*)$", text, re.M)
    names = {"np": np}
    exec("\n".join(lines), names)
    theta = np.array([0.3, 1.0, -2.0])
    model, tokens = mf.Transformer(mf.Field(names["along"])), mf.Tokens.on_circle(theta)
    final = mf.solve(model, tokens, (0, 1), rtol=1e-10).final
    np.testing.assert_allclose(final.x[:, 1] / final.x[:, 0], np.tan(theta) * np.exp(2), rtol=1e-8)


def test_a_field_is_a_function():
    with pytest.raises(TypeError, match="function must be a function; got"):
        mf.Field(np.ones(3))
    with pytest.raises(mf.ConfigError, match="function: must be a function"):
        build(mf.Drift, {"kind": "Field", "function": "np.sin"})


class Saddle(mf.Pointwise):
    """f(x) = a x_0 e_0: a function of points of one's own, with a parameter."""

    a: float = 1.0

    def __call__(self, x):
        return np.where(np.arange(x.shape[-1]) == 0, self.a * x, 0.0)


def test_a_function_of_points_of_ones_own_passes_the_checks():
    assert len(mf.testing.check(Saddle(2.0))) == 2
    assert len(mf.testing.check(mf.SA(1.0) - 0.5 * Saddle(2.0))) == 2
    assert len(mf.testing.check(mf.FeedForward(0.5 * np.eye(3), np.eye(3), activation=gelu))) == 2


def test_parameters_of_a_function_of_points_make_ensembles():
    """Each member gets its own number, and the points of its replica."""
    tokens, steps = mf.Tokens.uniform(5, 3, rng=0), {"t_eval": [1.0], "dt": 1 / 8}
    drift = 0.5 * Saddle([1.0, -2.0, 3.0]) + mf.SA(1.0)
    many = mf.solve(mf.Transformer(drift), tokens, (0, 1), **steps)
    assert many.parameters["drifts[0].a"].tolist() == [1.0, -2.0, 3.0]
    for i in range(3):
        one = mf.solve(mf.Transformer(drift.member(i)), tokens, (0, 1), **steps)
        np.testing.assert_array_equal(many.final[i].x, one.final.x)


class Switched(mf.Pointwise):
    """From the time 1 on the opposite of what it was."""

    size: float
    late: bool = False

    def at(self, t):
        return self.replace(late=t >= 1)

    def breakpoints(self, start, end):
        return np.array([1.0]) if start < 1 < end else np.empty(0)

    def __call__(self, x):
        return (-self.size if self.late else self.size) * np.roll(x, 1, axis=-1)


def test_a_feed_forward_map_of_ones_own_may_change_with_time():
    model = mf.Transformer(mf.Kuramoto(), feedforward=Switched(0.5))
    assert model.breakpoints(0, 2) == [1.0]
    assert model.breakpoints(0, 1) == []
    x = np.eye(2)
    np.testing.assert_array_equal(model.feedforward_at(x, 0.5), 0.5 * np.roll(x, 1, axis=-1))
    np.testing.assert_array_equal(model.feedforward_at(x, 1.5), -0.5 * np.roll(x, 1, axis=-1))


class Layer:
    """A layer of a network, as of torch: callable, but no function of arrays."""

    def __call__(self, *given):
        raise TypeError("linear(): argument 'input' must be Tensor, not numpy.ndarray")

    def state_dict(self):
        return {}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mf.Attention(Q=Layer()), r"Q must be an array or a function of time.*detach"),
        (lambda: mf.Attention(beta=lambda: 1.0), "beta must be an array or a function of time"),
        (lambda: mf.Field(Layer()), r"function must be a function of points"),
        (lambda: mf.Field(lambda x, y: x), r"function must be a function of points"),
        (lambda: mf.FeedForward(1.0, 1.0, 0.0, Layer()), r"activation must be.*must be Tensor"),
    ],
)
def test_layers_of_networks_are_refused_at_construction(make, message):
    with pytest.raises(TypeError, match=message):
        make()
    with pytest.raises(ValueError, match=r"activation must return .* \(2,\); got shape \(\)"):
        mf.FeedForward(1.0, 1.0, 0.0, np.max)
