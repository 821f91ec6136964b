"""Attention on tokens by harmonics: against sums over all pairs, and what is left to these."""

import numpy as np
import pytest
from replicas import random_masses, unit_vectors

import meanfield as mf
from meanfield.engines import AttentionModes, AttentionSums, Automatic, engine_for
from meanfield.models import L2, Linear, Sigmoid, Sinkhorn, Softmax, Unnormalised

SMOOTH = [Softmax(), Unnormalised(), L2(), Sigmoid(0.3), Linear()]


def random_drift(d, seed, size, count=2, **options):
    """Heads with random matrices and an output, beta |K^T Q| = size at most."""
    rng = np.random.default_rng(seed)
    Q, K, V = rng.standard_normal((3, count, 2, d))
    beta = size / max(np.linalg.norm(k.T @ q, 2) for q, k in zip(Q, K, strict=True))
    return mf.Attention(Q, K, V, beta, output=rng.standard_normal((count, d, 2)), **options)


def difference(drift, x, masses, engine=None):
    """Of modes from pairs, relative to the largest output."""
    pairs = AttentionSums(drift).attention(0.0, x, masses)
    modes = (engine or AttentionModes(drift, strict=True)).attention(0.0, x, masses)
    return np.abs(modes - pairs).max() / np.abs(pairs).max()


@pytest.mark.repeats
@pytest.mark.parametrize("weights", SMOOTH, ids=repr)
@pytest.mark.parametrize("d", [2, 3])
def test_modes_are_sums_over_all_pairs(weights, d):
    for seed, size in ((0, 1.0), (1, 5.0)):
        rng = np.random.default_rng(seed)
        x, masses = unit_vectors(rng, 2, 60, d), random_masses(rng, 2, 60)
        masses[0, :7] = 0.0
        assert difference(random_drift(d, seed, size, weights=weights), x, masses) <= 1e-12


@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("V", [1.0, -1.0])
def test_tokens_that_have_met_and_light_ones_far_away(d, V):
    """Where few pull the levels are low, and tokens are summed over all pairs."""
    rng = np.random.default_rng(3)
    x = unit_vectors(rng, 1, 50, d) * 1e-6
    x[..., 0] += np.where(np.arange(50) % 5 == 0, -1.0, 1.0)
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    masses = np.where(np.arange(50) % 5 == 0, 1e-9, 1.0)[None]
    K = np.diag([1.0, 0.7, 0.6][:d])
    for weights in (Softmax(), L2()):
        drift = mf.Attention(1.0, K, V, 12.0, weights=weights)
        assert difference(drift, x, masses / masses.sum()) <= 1e-10


def test_narrow_kernels_on_the_circle():
    x = unit_vectors(np.random.default_rng(4), 1, 200, 2)
    masses = np.full((1, 200), 1 / 200)
    K = np.array([[1.0, 0.05], [0.0, 0.95]])
    for weights in (Softmax(), L2()):
        assert difference(mf.Attention(K=K, beta=100.0, weights=weights), x, masses) <= 1e-10


def test_matrices_in_time_and_betas_of_an_ensemble():
    x, masses = unit_vectors(np.random.default_rng(5), 3, 40, 2), np.full((3, 40), 1 / 40)
    engine = AttentionModes(mf.Attention(lambda t: np.diag([1 + t, 2.0]), beta=[0.5, -1.0, 3.0]))
    for t in (0.0, 1.0, 0.0):
        found = engine.attention(t, x, masses)
        np.testing.assert_allclose(
            found, AttentionSums(engine.drift).attention(t, x, masses), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("d", [2, 3])
def test_energies_and_potentials(d):
    rng = np.random.default_rng(6)
    x, masses = unit_vectors(rng, 2, 50, d), random_masses(rng, 2, 50)
    A = np.diag([1.0, -0.5, 0.3][:d])
    drift = mf.Attention(Q=A, V=2 * A, beta=2.0, weights=Unnormalised())
    modes, pairs = AttentionModes(drift), AttentionSums(drift)
    potential = pairs.potential(x, masses)
    np.testing.assert_allclose(modes.potential(x, masses), potential, rtol=1e-12)
    np.testing.assert_allclose(modes.energy(x, masses), pairs.energy(x, masses), rtol=1e-12)


@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("weights", [*SMOOTH, Sinkhorn()], ids=repr)
def test_points_that_do_not_pull(d, weights):
    """At other points than the tokens, several systems of them for each: as tokens of no mass."""
    rng = np.random.default_rng(7)
    x, at, masses = unit_vectors(rng, 1, 30, d), unit_vectors(rng, 2, 9, d), random_masses(rng, 30)
    drift = random_drift(d, 7, 1.0, weights=weights)
    for engine in (AttentionSums(drift), AttentionModes(drift)):
        found = engine.attention(0.0, x, masses[None], at=at)
        for one, points in zip(found, at, strict=True):
            every = np.concatenate([points, x[0]])[None], np.append(np.zeros(9), masses)[None]
            wanted = AttentionSums(drift).attention(0.0, *every)[0, :9]
            np.testing.assert_allclose(one, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.bits
@pytest.mark.parametrize("d", [2, 3])
def test_threads_and_other_replicas_change_no_bit(d):
    rng = np.random.default_rng(8)
    drift = mf.Attention(K=np.diag([1.0, 0.8, 0.7][:d]), beta=2.0)
    x, masses = unit_vectors(rng, 1, 140_000, d), random_masses(rng, 1, 140_000)  # two parts
    one, three = (AttentionModes(drift, threads=n).attention(0.0, x, masses) for n in (1, 3))
    np.testing.assert_array_equal(one, three)
    x, masses = x[:, :900].reshape(3, 300, d), np.full((3, 300), 1 / 300)
    together = AttentionModes(drift).attention(0.0, x, masses)
    alone = AttentionModes(drift).attention(0.0, x[1:2], masses[1:2])
    np.testing.assert_array_equal(together[1], alone[0])


class RectifiedLogits(mf.Weights):
    """max(l, 0), not smooth."""

    def of_logits(self, logits, squares):
        return np.maximum(logits, 0)


@pytest.mark.parametrize("weights", [Sinkhorn(), RectifiedLogits()], ids=repr)
def test_weights_without_modes_are_summed_over_pairs_or_refused(weights):
    rng = np.random.default_rng(9)
    x, masses = unit_vectors(rng, 1, 60, 2), random_masses(rng, 1, 60)
    drift = mf.Attention(K=np.diag([1.0, 0.8]), weights=weights)
    assert difference(drift, x, masses, AttentionModes(drift)) == 0
    with pytest.raises(mf.MeanfieldError, match="Modes expect attention weights with few"):
        AttentionModes(drift, strict=True).attention(0.0, x, masses)


@pytest.mark.parametrize(
    "drift, n, d, options, name",
    [
        (mf.Attention(), 2000, 2, {}, "attention modes"),
        (mf.Attention(), 2000, 3, {}, "attention modes"),
        (mf.Attention(), 200, 3, {}, "attention"),
        (mf.Attention(beta=lambda t: 1 + t), 2000, 3, {}, "attention"),
        (mf.Attention(beta=lambda t: 1 + t), 20_000, 3, {}, "attention modes"),
        (mf.Attention(), 2000, 4, {}, "attention"),
        (mf.Attention(causal=True), 2000, 2, {}, "attention"),
        (mf.Attention(), 2000, 2, {"on_sphere": False}, "attention"),
    ],
)
def test_the_engine_that_is_expected_to_be_fastest(drift, n, d, options, name):
    assert engine_for(drift, None, n, d, **options).name == name
    assert engine_for(drift, Automatic(tolerance=1e-13), n, d, **options).name == "attention"
