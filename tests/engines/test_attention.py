"""Attention on tokens: against sums written out, its symmetries, its limits, its refusals."""

import numpy as np
import pytest
from dense_attention import dense_attention
from hypothesis import given, settings
from hypothesis import strategies as st
from replicas import attention, random_masses, unit_vectors

from meanfield import Tokens, Transformer
from meanfield.dynamics import TokenMotion
from meanfield.engines.attention import AttentionSums
from meanfield.models import (
    L2,
    Attention,
    Hardmax,
    Linear,
    PerLayer,
    Sigmoid,
    Sinkhorn,
    Softmax,
    Unnormalised,
)

KINDS = [Softmax(), Unnormalised(), L2(), Sigmoid(-0.7), Sinkhorn(), Linear()]
CAUSAL = [kind for kind in KINDS if not isinstance(kind, Sinkhorn)]
reproducible = settings(deadline=None, derandomize=True, max_examples=60)


def multi_head(rng, d, count=3, k=2, **options):
    """Heads with an output projection."""
    Q, K, V = rng.standard_normal((3, count, k, d)) / np.sqrt(d)
    return Attention(Q, K, V, 1.7, output=rng.standard_normal((count, d, k)), **options)


# Against the sums written out ----------------------------------------------------------------


@reproducible
@given(
    kind=st.sampled_from(KINDS),
    causal=st.booleans(),
    sizes=st.tuples(st.integers(1, 9), st.integers(2, 5), st.integers(1, 3), st.integers(1, 4)),
    beta=st.floats(-6, 6),
    projected=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_every_kind_is_the_sum_written_out(kind, causal, sizes, beta, projected, seed):
    n, d, count, k = sizes
    rng = np.random.default_rng(seed)
    Q, K = rng.standard_normal((2, count, k, d)) / np.sqrt(d)
    V = rng.standard_normal((count, k, d) if projected else (count, d, d))
    output = rng.standard_normal((count, d, k)) if projected else None
    causal = causal and not isinstance(kind, Sinkhorn)
    drift = Attention(Q, K, V, beta, weights=kind, output=output, causal=causal)
    x, masses = unit_vectors(rng, n, d), random_masses(rng, n)
    expected = dense_attention(drift, x, masses)
    # Sinkhorn's columns are right to its tolerance of 1e-12; others to rounding of the logits.
    allowed = 1e-11 if isinstance(kind, Sinkhorn) else 1e-13
    scale = max(1.0, np.abs(expected).max()) * np.abs(V).sum()
    np.testing.assert_allclose(attention(drift, x, masses), expected, rtol=0, atol=allowed * scale)


@pytest.mark.repeats
@pytest.mark.parametrize("n", [1, 2, 5, 13])
@pytest.mark.parametrize(
    ("kind", "causal"), [*((k, False) for k in KINDS), *((k, True) for k in CAUSAL)], ids=repr
)
def test_blocks_however_small_add_up(kind, causal, n, small_blocks):
    rng = np.random.default_rng(n)
    drift = multi_head(rng, 4, weights=kind, causal=causal)
    size = 1 if isinstance(kind, Sinkhorn) else 3  # narrow kernels are slow to balance
    x, masses = size * rng.standard_normal((n, 4)), random_masses(rng, n)
    expected = dense_attention(drift, x, masses)
    error = np.abs(attention(drift, x, masses) - expected).max()
    assert error <= (1e-10 if isinstance(kind, Sinkhorn) else 1e-12) * np.abs(expected).max()


@pytest.mark.parametrize("kind", [Softmax(), L2()], ids=repr)
@pytest.mark.parametrize("beta", [1e4, -1e4, 1e6, 0.0])
def test_no_beta_overflows_normalised_weights(kind, beta, small_blocks):
    """With blocks of three columns the running maximum changes on the way."""
    x = unit_vectors(np.random.default_rng(3), 17, 3)
    drift = Attention(beta=beta, weights=kind)
    expected = dense_attention(drift, x, np.full(17, 1 / 17))
    # The logits carry rounding of the size of beta, in the oracle as well.
    error = np.abs(attention(drift, x) - expected).max()
    assert error <= 1e-15 * (100 + 8 * abs(beta))


def test_matrices_without_heads_serve_all_heads():
    rng = np.random.default_rng(1)
    x, V = unit_vectors(rng, 6, 3), rng.standard_normal((4, 3, 3))
    together = attention(Attention(2.0, None, V, 3.0), x)
    np.testing.assert_allclose(together, attention(Attention(2.0, V=V.sum(0), beta=3.0), x), 1e-13)
    np.testing.assert_array_equal(
        attention(Attention(None, 0.5), x), attention(Attention(np.eye(3), 0.5 * np.eye(3)), x)
    )


def test_the_mean_of_everything_at_beta_zero():
    rng = np.random.default_rng(2)
    x, masses = rng.standard_normal((700, 3)), random_masses(rng, 700)
    for kind in (Softmax(), Unnormalised(), L2(), Sinkhorn()):
        expected = np.broadcast_to(masses @ x, x.shape)
        result = attention(Attention(beta=0.0, weights=kind), x, masses)
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-13)


# Masses and order ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CAUSAL, ids=repr)
def test_causal_attention_is_that_of_the_tokens_so_far(kind, small_blocks):
    rng = np.random.default_rng(5)
    x, masses = unit_vectors(rng, 11, 3), random_masses(rng, 11)
    V = rng.standard_normal((3, 3))
    result = attention(Attention(V=V, beta=2.5, weights=kind, causal=True), x, masses)
    for i in range(11):
        so_far = attention(Attention(V=V, beta=2.5, weights=kind), x[: i + 1], masses[: i + 1])
        np.testing.assert_allclose(result[i], so_far[-1], rtol=1e-13, atol=1e-14)


def test_the_first_causal_token_sees_itself():
    rng = np.random.default_rng(6)
    x, V = unit_vectors(rng, 5, 4), rng.standard_normal((4, 4))
    result = attention(Attention(V=V, beta=1e4, causal=True), x)
    np.testing.assert_allclose(result[0], V @ x[0], rtol=1e-14)


@pytest.mark.parametrize("drift", [*(Attention(beta=4.0, weights=k) for k in KINDS), Hardmax()])
def test_tokens_without_mass_follow_but_do_not_pull(drift, small_blocks):
    """Even where their logits are the largest by far."""
    rng = np.random.default_rng(7)
    x, masses = unit_vectors(rng, 8, 3), random_masses(rng, 8)
    ghosts = np.concatenate([20 * unit_vectors(rng, 4, 3), x])
    with_ghosts = attention(drift, ghosts, np.concatenate([np.zeros(4), masses]))
    assert np.isfinite(with_ghosts).all()
    np.testing.assert_allclose(with_ghosts[4:], attention(drift, x, masses), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", [Softmax(), L2()], ids=repr)
def test_a_token_without_mass_is_pulled_from_however_far(kind):
    """Its own logit is the largest by far, and does not count."""
    x = np.array([[1.0, 0], [-1, 0], [20, 0]])
    result = attention(Attention(beta=30.0, weights=kind), x, np.array([0.5, 0.5, 0.0]))
    np.testing.assert_array_equal(result[2], x[0])


def test_a_token_that_sees_no_mass_is_not_pulled():
    x = unit_vectors(np.random.default_rng(8), 3, 2)
    result = attention(Attention(causal=True), x, np.array([0.0, 0.0, 1.0]))
    np.testing.assert_array_equal(result[:2], 0)
    np.testing.assert_allclose(result[2], x[2], rtol=1e-15)


# Symmetries ----------------------------------------------------------------------------------


@reproducible
@given(st.sampled_from([*KINDS, None]), st.integers(2, 12), st.integers(0, 2**32))
def test_the_order_of_tokens_does_not_matter(kind, n, seed):
    rng = np.random.default_rng(seed)
    drift = (
        Hardmax(rng.standard_normal((3, 3))) if kind is None else multi_head(rng, 3, weights=kind)
    )
    x, masses, order = unit_vectors(rng, n, 3), random_masses(rng, n), rng.permutation(n)
    moved = attention(drift, x[order], masses[order])
    np.testing.assert_allclose(moved, attention(drift, x, masses)[order], rtol=0, atol=1e-12)


@reproducible
@given(st.sampled_from([*KINDS, None]), st.integers(2, 6), st.integers(0, 2**32))
def test_rotating_tokens_and_matrices_rotates_attention(kind, d, seed):
    rng = np.random.default_rng(seed)
    R, _ = np.linalg.qr(rng.standard_normal((d, d)))
    Q, K, V = rng.standard_normal((3, d, d)) / np.sqrt(d)
    make = Hardmax if kind is None else lambda *m: Attention(*m, beta=2.0, weights=kind)
    x, masses = unit_vectors(rng, 7, d), random_masses(rng, 7)
    still = attention(make(Q, K, V), x, masses)
    turned = attention(make(Q @ R.T, K @ R.T, R @ V @ R.T), x @ R.T, masses)
    allowed = 1e-10 if isinstance(kind, Sinkhorn) else 1e-12
    np.testing.assert_allclose(turned, still @ R.T, rtol=0, atol=allowed * d)


# Replicas and threads ------------------------------------------------------------------------


@pytest.mark.bits
@pytest.mark.parametrize("n", [1, 7, 32, 130, 520])
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_replicas_are_one_by_one_bit_for_bit(kind, n):
    rng = np.random.default_rng(n)
    count = {130: 9, 520: 2}.get(n, 20)  # 130: more than one chunk of seven
    x, masses = unit_vectors(rng, count, n, 5), random_masses(rng, count, n)
    masses[1, n // 2] = 0.0 if n > 1 else 1.0
    V, betas = rng.standard_normal((5, 5)), rng.uniform(-2, 2, count)
    together = attention(Attention(V=V, beta=betas, weights=kind), x, masses)
    for r in range(count):
        alone = attention(Attention(V=V, beta=betas[r], weights=kind), x[r], masses[r])
        np.testing.assert_array_equal(together[r], alone)


@pytest.mark.parametrize("kind", [Softmax(), Unnormalised()], ids=repr)
def test_betas_broadcast_with_the_shape_of_the_ensemble(kind):
    x, betas = unit_vectors(np.random.default_rng(9), 2, 3, 4, 3), np.array([0.5, 3.0, -1.0])
    for beta in (betas, np.stack([betas, 2 * betas])):
        drift, tokens = Attention(beta=beta, weights=kind), Tokens(x)
        motion = TokenMotion(Transformer(drift), tokens)
        full = np.broadcast_to(beta, (2, 3)).ravel()
        expected = attention(Attention(beta=full, weights=kind), x.reshape(6, 4, 3))
        found = motion.attention_update(x.reshape(6, 4, 3), np.full((6, 4), 0.25), 0.0)
        np.testing.assert_array_equal(found, expected)
        energy = motion.energy(motion.coordinates(tokens))
        one = Transformer(Attention(beta=float(full[4]), weights=kind))
        alone = TokenMotion(one, tokens[1, 1])
        np.testing.assert_array_equal(energy[1, 1], alone.energy(alone.coordinates(tokens[1, 1])))


@pytest.mark.bits
@pytest.mark.parametrize("drift", [*(Attention(weights=k) for k in KINDS), Hardmax()], ids=repr)
def test_threads_change_no_bit(drift):
    rng = np.random.default_rng(10)
    x, masses = unit_vectors(rng, 1, 600, 8), random_masses(rng, 1, 600)
    one, three = (attention(drift, x, masses, threads=threads) for threads in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_tokens_are_read_only_to_the_sums():
    x = unit_vectors(np.random.default_rng(11), 1, 9, 3)
    masses = np.full((1, 9), 1 / 9)
    before = x.copy()
    for drift in (Attention(), Attention(weights=L2()), Hardmax(), Attention(weights=Sinkhorn())):
        result = AttentionSums(drift).attention(0.0, x, masses)
        assert not np.shares_memory(result, x)
        np.testing.assert_array_equal(x, before)


# Time and refusals ---------------------------------------------------------------------------


def test_parameters_are_taken_at_the_time_asked_for():
    x = unit_vectors(np.random.default_rng(14), 5, 2)
    drift = Attention(V=PerLayer([1.0, -1.0]), beta=lambda t: 2 + t)
    for t, sign in ((0.5, 1), (1.0, -1), (7.0, -1)):
        expected = sign * attention(Attention(beta=2 + t), x)
        np.testing.assert_array_equal(attention(drift, x, t=t), expected)


def test_refusals_of_the_sums():
    x = unit_vectors(np.random.default_rng(15), 4, 3)
    with pytest.raises(ValueError, match="dimension 5; got points of dimension 3"):
        attention(Attention(V=np.eye(5)), x)
    with pytest.raises(ValueError, match="dimension 2; got points of dimension 3"):
        attention(Attention(output=np.eye(2)), x)
    with pytest.raises(ValueError, match=r"beta of ensemble shape \(3,\)"):
        attention(Attention(beta=np.ones(3)), x)
    with pytest.raises(ValueError, match="n >= 2 tokens"):
        attention(Hardmax(), x[:1])
    with np.errstate(over="ignore"):
        assert not np.isfinite(attention(Attention(beta=1e4, weights=Unnormalised()), x)).all()
    with pytest.raises(ValueError, match="threads = 0"):
        AttentionSums(Attention(), threads=0)
