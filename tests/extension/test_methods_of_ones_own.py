"""What is told of drifts, weights and normalisations whose methods return something else."""

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(16)
X = mf.Tokens.uniform(12, 3, rng=0)
SHORT = {"t_span": (0, 0.1), "t_eval": [0.1]}


class Slope(mf.ZonalDrift):
    """Its slope is what a function makes of the inner products."""

    f: object

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
        (lambda t: 1j * t, TypeError, "got array.*j"),
        (lambda t: None, TypeError, "got None"),
    ],
    ids=["number", "shape", "complex", "None"],
)
def test_a_slope_is_an_array_of_real_numbers_on_every_state(state, f, error, found):
    with pytest.raises(error, match=rf"Slope\.slope must return an array .* of shape .*; {found}"):
        mf.solve(mf.Transformer(Slope(f)), state, **SHORT)


class Update(mf.Normalisation):
    """Its update is what a function makes of A."""

    f: object

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

    f: object

    def of_logits(self, logits, squares):
        return self.f(logits)


@pytest.mark.parametrize(
    "f", [lambda l: None, lambda l: 1.0, lambda l: np.exp(l[..., :1]), lambda l: np.exp(1j * l)]
)
def test_weights_have_the_shape_of_the_logits(f):
    with pytest.raises((TypeError, ValueError), match=r"OfLogits\.of_logits must return an array"):
        mf.solve(mf.Transformer(mf.Attention(weights=OfLogits(f))), X, **SHORT)
