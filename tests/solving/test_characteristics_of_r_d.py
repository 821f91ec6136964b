"""Characteristics in R^d: quadratures of a law as weighted tokens, against Gaussian flows."""

import numpy as np
import pytest

import meanfield as mf

LAW = mf.Gaussian([0.3, -0.2], [[0.5, 0.1], [0.1, 0.3]])
Q, K, V = np.random.default_rng(0).standard_normal((3, 2, 2)) * 0.6


def moments(tokens):
    """The mean and the covariance."""
    mean = tokens.masses @ tokens.x
    gaps = tokens.x - mean
    return mean, (gaps.T * tokens.masses) @ gaps


CASES = {  # weights, nodes, and the error of the quadrature; measured: 3e-15, 2e-10, 3e-15, 4e-16
    "softmax": (mf.Softmax(), 16, 1e-13),
    "L2": (mf.L2(), 16, 1e-9),
    "L2, more": (mf.L2(), 24, 1e-13),
    "Sinkhorn": (mf.Sinkhorn(), 10, 1e-12),
    "linear": (mf.Linear(), 8, 1e-13),
}


@pytest.mark.repeats
@pytest.mark.parametrize(("weights", "nodes", "error"), CASES.values(), ids=CASES)
def test_moments_are_those_of_the_gaussian_flow(weights, nodes, error):
    model = mf.Transformer(mf.Attention(Q, K, V, 0.7, weights=weights))
    exact, tokens = (
        mf.solve(model, start, (0, 1), t_eval=[1.0], rtol=1e-12).final
        for start in (LAW, LAW.quadrature(nodes))
    )
    mean, cov = moments(tokens)
    np.testing.assert_allclose(mean, exact.mean, rtol=0, atol=error)
    np.testing.assert_allclose(cov, exact.cov, rtol=0, atol=error)


def test_w2_to_the_dirac_at_the_mean_is_the_spread():
    """V = -1, centred: x' = -S A x, S' = -2 S A S, S = (S_0^-1 + 2 A t)^-1, W2 = tr(S)^(1/2)."""
    law, times = mf.Gaussian([0, 0], [[0.5, 0.0], [0.0, 0.2]]), [0.0, 1.0, 10.0]
    model = mf.Transformer(mf.Attention(V=-1.0))
    run = mf.solve(model, law.quadrature(14), (0, 10), t_eval=times, rtol=1e-11)
    exact = [np.sqrt((1 / (1 / np.array([0.5, 0.2]) + 2 * t)).sum()) for t in times]
    np.testing.assert_allclose(run.observables["spread"], exact, rtol=1e-9)
    dirac = mf.Tokens(np.zeros((1, 2)), on_sphere=False)
    assert mf.wasserstein(run.final, dirac) == pytest.approx(exact[-1], rel=1e-9)


def test_another_law_by_its_nodes_and_masses():
    """A mixture of two, which does not stay one: what more nodes change is the error."""

    def mixture(nodes):
        parts = [mf.Gaussian([c, 0.0], 0.1 * np.eye(2)).quadrature(nodes) for c in (-1.0, 1.0)]
        x = np.concatenate([part.x for part in parts])
        masses = np.concatenate([0.7 * parts[0].masses, 0.3 * parts[1].masses])
        return mf.Tokens(x, masses, on_sphere=False)

    model = mf.Transformer(mf.Attention(Q, K, V))
    found = [
        moments(mf.solve(model, mixture(nodes), (0, 1), t_eval=[1.0], rtol=1e-11).final)
        for nodes in (12, 16)
    ]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_a_sample_of_a_law_has_its_own_error():
    """4.5 standard errors of the mean of 1000 tokens."""
    model = mf.Transformer(mf.Attention(Q, K, V, 0.7))
    exact, tokens = (
        mf.solve(model, start, (0, 0.5), t_eval=[0.5], rtol=1e-8).final
        for start in (LAW, LAW.sample(1000, rng=1))
    )
    error = np.sqrt(np.diag(exact.cov) / 1000)
    assert (np.abs(tokens.x.mean(axis=0) - exact.mean) < 4.5 * error).all()


def test_attention_in_r_d_may_have_a_reaction():
    """Phi = c W * mu with V = c K^T Q symmetric: mass exact, and the energy grows."""
    model = mf.Transformer(mf.Attention(weights=mf.Unnormalised(), V=-1.0), reaction=-0.5)
    run = mf.solve(model, LAW.quadrature(10), (0, 1), t_eval=np.linspace(0, 1, 5))
    for state in run:
        assert abs(state.masses.sum() - 1) < 1e-13
    assert np.ptp(run.final.masses / LAW.quadrature(10).masses) > 0.1
