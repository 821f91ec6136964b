"""Lyapunov exponents where they are known."""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf
from meanfield.models.pointwise import Pointwise

RNG = np.random.default_rng(0)


def near(n, d, spread=0.2):
    x = np.eye(d)[-1] + spread * np.random.default_rng(1).standard_normal((n, d))
    return mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_consensus():
    """All at one place: dx_i' = mean of dx - dx_i under SA, with rotations of all at rest."""
    run = mf.solve(mf.Transformer(mf.SA(beta=2.0)), near(4, 3), (0, 40), t_eval=[40], dt=0.2)
    found = mf.lyapunov_exponents(run, 8)
    expected = np.repeat([0.0, -1.0], [2, 6])
    assert np.abs(found.late - expected).max() < 1e-6
    assert np.abs(found.exponents - expected).max() < 0.1
    assert found.t.shape == (100,)
    assert np.array_equal(found.exponents, -np.sort(-found.history[-1]))


def test_consensus_of_replicas_with_their_own_beta():
    x = np.stack([near(3, 2).x] * 2)
    model = mf.Transformer(mf.USA(beta=np.array([0.5, 1.0])))
    run = mf.solve(model, mf.Tokens(x), (0, 12), t_eval=[12], dt=0.05)
    found = mf.lyapunov_exponents(run, 3)
    expected = [[0, -np.exp(beta), -np.exp(beta)] for beta in (0.5, 1.0)]
    assert np.abs(found.late - expected).max() < 1e-6


def test_repelling_oscillators():
    """They end with mean 0, where rates are 0 and -(1 +- |m_2|)/2 with their second moment m_2."""
    angles = 2 * np.pi * np.arange(5) / 5 + 0.3 * RNG.standard_normal(5)
    tokens = mf.Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    run = mf.solve(mf.Transformer(-1.0 * mf.Kuramoto()), tokens, (0, 80), t_eval=[80], dt=0.2)
    x = run.final.x
    second = np.abs(((x[:, 0] + 1j * x[:, 1]) ** 2).mean())
    found = mf.lyapunov_exponents(run, 5, renewals=40).late
    expected = [0, 0, 0, -(1 - second) / 2, -(1 + second) / 2]
    assert np.abs(found - expected).max() < 1e-5


def test_linear_fields():
    """x' = A x: the real parts of the eigenvalues of A, for each of the tokens."""
    A = np.array([[0.3, 1.0, 0.0], [-1.0, 0.3, 0.0], [0.0, 0.0, -0.7]])
    turn = np.linalg.qr(RNG.standard_normal((3, 3)))[0]
    A = turn @ A @ turn.T
    drift = mf.Field(lambda x: x @ A.T)
    tokens = mf.Tokens(RNG.standard_normal((2, 3)), on_sphere=False)
    run = mf.solve(mf.Transformer(drift), tokens, (0, 20), t_eval=[20], dt=0.1)
    found = mf.lyapunov_exponents(run, 6, renewals=20)
    assert np.abs(found.late - np.repeat([0.3, -0.7], [4, 2])).max() < 1e-5


class Lorenz(Pointwise):
    """x' = 10 (y - x), y' = x (28 - z) - y, z' = x y - 8 z/3."""

    def __call__(self, x):
        a, b, c = np.moveaxis(x, -1, 0)
        return np.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], axis=-1)


@pytest.mark.long
def test_lorenz():
    """The sum of the exponents is -41/3 at all times, and the largest is near 0.9."""
    tokens = mf.Tokens([[1.0, 2.0, 20.0], [-3.0, 1.0, 25.0]], on_sphere=False)
    run = mf.solve(mf.Transformer(Lorenz()), tokens, (0, 8), t_eval=[8], dt=0.02)
    found = mf.lyapunov_exponents(run, 6, renewals=80)
    assert found.rates.sum(axis=-1) == pytest.approx(-82 / 3, rel=1e-6)
    assert found.exponents[0] == pytest.approx(0.9056, abs=0.5)


def test_the_uniform_state():
    """Harmonics of degree l grow at the rates l^2 (W_l - 1/kappa), degree 1 most."""
    space = mf.Circle(12)
    model = mf.Transformer(mf.USA(beta=1.0), kappa=2.0)
    options = {"dt": 0.1, "min_degree": space.degree, "max_degree": space.degree}
    run = mf.solve(model, space.uniform(), (0, 20), t_eval=[20], **options)
    found = mf.lyapunov_exponents(run, 2, renewals=10)
    assert np.abs(found.late - (iv(1, 1.0) - 0.5)).max() < 1e-6


@pytest.mark.long
def test_gaussians():
    """At beta = 0 the mean follows a' = V a, and the covariance rests."""
    model = mf.Transformer(mf.Attention(V=-1.0, beta=0.0))
    start = mf.Gaussian([1.0, 0.5], np.diag([1.0, 2.0]))
    run = mf.solve(model, start, (0, 30), t_eval=[30], dt=0.1)
    found = mf.lyapunov_exponents(run, 5, renewals=20)
    expected = [0, 0, 0, -1, -1]
    assert np.abs(found.late - expected).max() < 1e-6


def test_refusals():
    run = mf.solve(mf.Transformer(mf.SA(beta=2.0)), near(3, 3), (0, 1), t_eval=[1])
    with pytest.raises(ValueError, match="at most 6"):
        mf.lyapunov_exponents(run, 7)
    with pytest.raises(TypeError, match="Solution"):
        mf.lyapunov_exponents(near(3, 3))
    reacting = mf.Transformer(mf.SA(beta=2.0), reaction=1.0)
    run = mf.solve(reacting, near(3, 3), (0, 1), t_eval=[1])
    with pytest.raises(mf.MeanfieldError, match="without a reaction"):
        mf.lyapunov_exponents(run)
