"""Tangents of runs of Gram matrices are those of the tokens that they belong to."""

import numpy as np
import pytest

import meanfield as mf


class Slope(mf.ZonalDrift):
    """W' = 1 + b t + sin(t)/3, Z = 2 + cos(b t)."""

    b: float

    def slope(self, t):
        return 1 + self.b * t + np.sin(t) / 3

    def weight(self, t):
        return 2 + np.cos(self.b * t)


@pytest.mark.parametrize(
    ("drift", "name"),
    [(mf.SA(beta=2.0), "beta"), (mf.USA(beta=-1.5), "beta"), (Slope(b=0.7), "b")],
    ids=["SA", "USA", "Slope"],
)
def test_they_are_those_of_tokens(drift, name):
    """The derivative of x x^T, from runs of small equal steps of order 8."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    e = rng.standard_normal(x.shape)
    e -= (e * x).sum(axis=1, keepdims=True) * x
    masses = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    model, options = mf.Transformer(drift), {"dt": 0.05, "t_eval": [0.5]}
    tokens = mf.solve(model, mf.Tokens(x, masses), (0, 0.5), tangents=[name, e], **options)
    change = e @ x.T + x @ e.T
    np.fill_diagonal(change, 0.0)
    gram = mf.solve(model, mf.Gram(x @ x.T, masses), (0, 0.5), tangents=[name, change], **options)
    y = tokens.final.x
    for key in tokens.tangents:
        h = tokens.tangents[key][-1].x
        assert np.abs(gram.tangents[key][-1].G - (h @ y.T + y @ h.T)).max() < 1e-10


def test_refusals():
    gram, model = mf.Gram(np.eye(3)), mf.Transformer(mf.SA(beta=1.0))
    with pytest.raises(ValueError, match="zeros on the diagonal"):
        mf.solve(model, gram, (0, 0.1), tangents=[np.eye(3)])
    with pytest.raises(ValueError, match=r"change of G must be of shape \(3, 3\); got \(2, 2\)"):
        mf.solve(model, gram, (0, 0.1), tangents=[np.eye(2)])
