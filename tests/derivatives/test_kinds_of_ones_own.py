"""Kinds and motions of one's own have derivatives without a method for them."""

import numpy as np
import pytest
from scipy import special

import meanfield as mf
from meanfield import steppers

STEP = 1e-3
FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
X = np.random.default_rng(1).standard_normal((6, 3))
X /= np.linalg.norm(X, axis=1, keepdims=True)
E = np.random.default_rng(2).standard_normal((6, 3))
E -= (E * X).sum(axis=1, keepdims=True) * X


class Rational(mf.ZonalDrift):
    """W' = 1 / (1 + b - t), Z = 2 + b t^2, in functions of NumPy."""

    b: float

    def slope(self, t):
        return 1 / (1 + self.b - t)

    def weight(self, t):
        return 2 + self.b * t**2


class Bessel(mf.ZonalDrift):
    """W' = J_0(b t), which NumPy does not have."""

    b: float

    def slope(self, t):
        return special.j0(self.b * t)


class Rectified(mf.Weights):
    """softplus(l)^power."""

    power: float = 2.0

    def of_logits(self, logits, squares):
        return np.logaddexp(0, logits) ** self.power


class Distances(mf.Weights):
    """Weights by SciPy that read the squares."""

    def of_logits(self, logits, squares):
        return special.i0e(squares[0] - 2 * logits + squares[1])


class Bounded(mf.Normalisation):
    """u = A / (1 + |A|)."""

    def update(self, t, A, size=0.0):
        return A / (1 + np.linalg.norm(A, axis=-1, keepdims=True))


class Squashed(mf.Normalisation):
    """u = erfcx(A), which NumPy does not have."""

    def update(self, t, A, size=0.0):
        return special.erfcx(A)


class Angles(mf.State):
    """Angles of n points."""

    def __init__(self, theta):
        self.theta = np.asarray(theta, dtype=float)

    @property
    def shape(self):
        return ()

    def arrays(self):
        return {"theta": (("point",), self.theta)}


class AngleMotion(mf.Motion, moves=Angles):
    """theta_i' = sum_j b sin(theta_j - theta_i) / n, b the parameter of `Rational`."""

    def coordinates(self, state):
        return state.theta

    def state_of(self, y):
        return Angles(y)

    def velocity(self, y, t):
        return self.model.drift.b * np.sin(y - y[:, None]).mean(axis=1)


def worst(model, state, changed, direction, **options):
    """The largest error of tangents by a parameter and in a direction, against differences."""
    options = {"t_span": (0, 0.3), "t_eval": [0.2, 0.3], "dt": 0.1} | options
    run, error = mf.solve(model(0.0), state(0.0), tangents=[changed, direction], **options), 0.0
    for key, found in run.tangents.items():
        runs = {}
        for k in FOURTH:
            one = (k * STEP, 0.0) if key == changed else (0.0, k * STEP)
            runs[k] = mf.solve(model(one[0]), state(one[1]), **options)
        for i, change in enumerate(found):
            for name, values in change.items():
                by = sum(w * getattr(runs[k].states[i], name) for k, w in FOURTH.items()) / STEP
                error = max(error, np.abs(by - values).max())
    return error


def tokens(amount):
    moved = X + amount * E
    return mf.Tokens(moved / np.linalg.norm(moved, axis=1, keepdims=True))


@pytest.mark.parametrize("kind", [Rational, Bessel])
def test_drifts(kind):
    def model(amount):
        return mf.Transformer(kind(3.0 + amount))

    assert worst(model, tokens, "b", E) < 1e-9
    assert worst(model, lambda s: tokens(s).gram(), "b", {"G": X @ E.T + E @ X.T}) < 1e-9


@pytest.mark.parametrize("weights", [Rectified(1.5), Distances()], ids=repr)
def test_weights(weights):
    def model(amount):
        return mf.Transformer(mf.Attention(beta=0.8 + amount, weights=weights))

    assert worst(model, tokens, "beta", E) < 1e-9


@pytest.mark.parametrize("normalisation", [Bounded(), Squashed()], ids=repr)
@pytest.mark.parametrize("scheme", [None, steppers.Layers])
def test_normalisations(normalisation, scheme):
    def model(amount):
        return mf.Transformer(mf.SA(2.0 + amount), normalisation=normalisation)

    assert worst(model, tokens, "beta", E, scheme=scheme) < 1e-9


def test_motions():
    theta, e = np.linspace(0, 2, 5), np.arange(5.0)

    def model(amount):
        return mf.Transformer(Rational(0.7 + amount))

    assert worst(model, lambda s: Angles(theta + s * e), "b", {"theta": e}) < 1e-9


def test_what_cannot_be_differentiated_is_refused_before_the_run():
    class Compiled(AngleMotion, moves=type("OtherAngles", (Angles,), {})):
        def velocity(self, y, t):
            return np.fft.fft(y).real

    state = Compiled.moves(np.linspace(0, 2, 5))
    with pytest.raises(mf.MeanfieldError, match=r"np\.fft"):
        mf.solve(mf.Transformer(mf.SA(2.0)), state, (0, 1), tangents=[{"theta": np.ones(5)}])
