"""What is told of drifts, weights and normalisations whose methods return something else."""

import math
from collections.abc import Callable

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(16)
X = mf.Tokens.uniform(12, 3, rng=0)
SHORT = {"t_span": (0, 0.1), "t_eval": [0.1]}


class Slope(mf.ZonalDrift):
    """Its slope is what a function makes of the inner products."""

    f: Callable

    def slope(self, t):
        return self.f(t)


@pytest.mark.parametrize(
    "state",
    [
        X,
        X.gram(),
        mf.Equiangular(5, 0.1),
        CIRCLE.von_mises(0, 1),
        mf.Characteristics(CIRCLE.von_mises(0, 1)),
    ],
    ids=lambda state: type(state).__name__,
)
@pytest.mark.parametrize(
    ("f", "error", "found"),
    [
        (lambda t: 2.0, ValueError, r"got shape \(\)"),
        (lambda t: t[..., :1], ValueError, "got shape .*1"),
        (lambda t: 1j * t, TypeError, "got an array of complex128"),
        (lambda t: None, TypeError, "got None"),
    ],
    ids=["number", "shape", "complex", "None"],
)
def test_a_slope_is_an_array_of_real_numbers_on_every_state(state, f, error, found):
    with pytest.raises(error, match=rf"Slope\.slope must return an array .* of shape .*; {found}"):
        mf.solve(mf.Transformer(Slope(f)), state, **SHORT)


@pytest.mark.parametrize("state", [X, CIRCLE.von_mises(0, 1)], ids=["Tokens", "Density"])
@pytest.mark.parametrize("f", [math.exp, lambda t: t if t > 0 else -t], ids=["math", "if"])
def test_a_slope_of_one_number_is_told_that_it_gets_arrays(state, f):
    with pytest.raises(TypeError, match=r"Slope\.slope gets an array .*np\.exp, not math\.exp"):
        mf.solve(mf.Transformer(Slope(f)), state, **SHORT)


class Update(mf.Normalisation):
    """Its update is what a function makes of A."""

    f: Callable

    def update(self, t, A, size=0.0):
        return self.f(A)


@pytest.mark.parametrize("state", [X, mf.Equiangular(5, 0.1)], ids=["Tokens", "Equiangular"])
@pytest.mark.parametrize(
    "f", [lambda A: None, lambda A: 1.0, lambda A: A[..., :1], lambda A: 1j * A]
)
def test_an_update_is_an_array_as_the_output_of_attention_is(state, f):
    model = mf.Transformer(mf.SA(2.0), normalisation=Update(f))
    with pytest.raises((TypeError, ValueError), match=r"Update\.update must return an array"):
        mf.solve(model, state, **SHORT)


class OfLogits(mf.Weights):
    """What a function makes of the logits."""

    f: Callable

    def of_logits(self, logits, squares):
        return self.f(logits)


@pytest.mark.parametrize(
    "f", [lambda l: None, lambda l: 1.0, lambda l: np.exp(l[..., :1]), lambda l: np.exp(1j * l)]
)
def test_weights_have_the_shape_of_the_logits(f):
    with pytest.raises((TypeError, ValueError), match=r"OfLogits\.of_logits must return an array"):
        mf.solve(mf.Transformer(mf.Attention(weights=OfLogits(f))), X, **SHORT)


# What is not finite is named ---------------------------------------------------------------------


class Far(mf.Weights):
    """max(<Qx, Ky> - level, 0), which may be 0 for all y."""

    level: float

    def of_logits(self, logits, squares):
        return np.maximum(logits - self.level, 0)


class Below(mf.Weights):
    """exp(beta <Qx, Ky> - 800), which is 0."""

    def of_logits(self, logits, squares):
        return np.exp(logits - 800)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("weights", [Far(1.1), Below()], ids=repr)
def test_a_token_whose_weights_are_all_zero_does_not_stand_still(weights, causal):
    name = type(weights).__name__
    model = mf.Transformer(mf.Attention(weights=weights, causal=causal))
    with pytest.raises(mf.MeanfieldError, match=f"all {name} weights of a token are 0, or not"):
        mf.solve(model, X, **SHORT)


@pytest.mark.long
def test_weights_that_become_zero_on_the_way_are_told():
    """Tokens turn until x_1 y_1 is the level."""
    turning = mf.Attention(K=np.diag([1.0, 0.0]), V=[[0.0, -1.0], [1.0, 0.0]], weights=Far(0.05))
    tokens = mf.Tokens.on_circle([0.2, 0.3])
    with pytest.warns(mf.UnresolvedWarning, match="all Far weights of a token are 0"):
        run = mf.solve(mf.Transformer(turning), tokens, (0, 20), t_eval=[0.1, 20])
    assert not run.success and len(run) > 1


def test_tokens_that_see_no_mass_rest():
    """The first of causal tokens sees itself alone, which has no mass."""
    first = mf.Tokens(X.x[:3], [0.0, 0.5, 0.5])
    model = mf.Transformer(mf.Attention(weights=Far(-2.0), causal=True))
    run = mf.solve(model, first, **SHORT)
    np.testing.assert_allclose(run.final.x[0], first.x[0], rtol=1e-15)
    assert np.abs(run.final.x[2] - first.x[2]).max() > 1e-3


NAN = mf.Transformer(Slope(lambda t: t * np.nan))


@pytest.mark.parametrize(
    ("model", "state", "match"),
    [
        (NAN, X, r"Slope\.slope is not finite"),
        (NAN, X.gram(), r"Slope\.slope is not finite"),
        (NAN, mf.Equiangular(5, 0.1), r"Slope\.slope is not finite"),
        (
            mf.Transformer(mf.Attention(weights=OfLogits(lambda l: l * np.nan))),
            X,
            r"Look at what OfLogits\.of_logits returns",
        ),
        (
            mf.Transformer(mf.SA(2.0), normalisation=Update(lambda A: A * np.nan)),
            X,
            r"Update\.update returned numbers that are not finite",
        ),
    ],
    ids=["tokens", "gram", "equiangular", "weights", "normalisation"],
)
def test_what_is_not_finite_is_named(model, state, match):
    with pytest.raises(mf.MeanfieldError, match=f"not finite at the start: .*{match}"):
        mf.solve(model, state, **SHORT)
