"""Positions in attention, pair by pair, and tokens without mass, which no token attends to."""

import cmath
import math

import numpy as np
import pytest

import meanfield as mf
from meanfield.core.descriptions import build, describe
from meanfield.core.differences import derivative_at_zero
from meanfield.core.dual import Dual, constant
from meanfield.engines import attention as engine
from meanfield.engines.attention import AttentionSums

N, D, H, K = 7, 5, 2, 4
RNG = np.random.default_rng(0)
Q, KEYS, V = RNG.standard_normal((3, H, K, D))
OUTPUT, X = RNG.standard_normal((H, D, K)), 0.7 * RNG.standard_normal((N, D))
MASSES = RNG.dirichlet(np.ones(N))
TABLE = RNG.standard_normal((H, 5))
KINDS = [
    mf.Rotary(30.0),
    mf.Rotary(30.0, interleaved=True),
    mf.Rotary(30.0, size=2),
    mf.ALiBi([0.5, 0.25]),
    mf.ALiBi(0.3),
    mf.RelativeBias(TABLE),
]


def drift(positions, **options):
    return mf.Attention(Q, KEYS, V, 0.6, output=OUTPUT, positions=positions, **options)


def turned(q, i, positions):
    """Pairs as complex numbers."""
    size, out = positions.size or K, list(q)
    for m in range(size // 2):
        pair = (2 * m, 2 * m + 1) if positions.interleaved else (m, m + size // 2)
        z = complex(q[pair[0]], q[pair[1]]) * cmath.exp(1j * i * 30.0 ** (-2 * m / size))
        out[pair[0]], out[pair[1]] = z.real, z.imag
    return np.array(out)


def logit(h, i, j, positions):
    q, k = Q[h] @ X[i], KEYS[h] @ X[j]
    if isinstance(positions, mf.Rotary):
        return 0.6 * turned(q, i, positions) @ turned(k, j, positions), 0.0
    if isinstance(positions, mf.ALiBi):
        slope = positions.slopes[h] if positions.slopes.ndim else positions.slopes
        return 0.6 * q @ k, -slope * abs(i - j)
    return 0.6 * q @ k, TABLE[h][2 + max(-2, min(2, j - i))]


@pytest.mark.parametrize("positions", KINDS, ids=repr)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_each_pair(positions, causal):
    found = AttentionSums(drift(positions, causal=causal)).attention(0.0, X[None], MASSES[None])
    wanted = np.zeros((N, D))
    for h in range(H):
        for i in range(N):
            seen = range(i + 1 if causal else N)
            w = [MASSES[j] * math.exp(sum(logit(h, i, j, positions))) for j in seen]
            mean = sum(w[j] * V[h] @ X[j] for j in seen) / sum(w)
            wanted[i] += OUTPUT[h] @ mean
    np.testing.assert_allclose(found[0], wanted, rtol=0, atol=1e-13)


def test_terms_are_added_to_the_logits_of_other_weights():
    positions = mf.ALiBi([0.5, 0.25])
    for weights in (mf.Sigmoid(-1.0), mf.Unnormalised(), mf.L2()):
        sums = AttentionSums(drift(positions, weights=weights))
        found = sums.attention(0.0, X[None], MASSES[None])[0]
        wanted = np.zeros((N, D))
        for h in range(H):
            q, k = X @ Q[h].T, X @ KEYS[h].T
            apart = np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
            term = -positions.slopes[h] * apart
            if isinstance(weights, mf.L2):
                gaps = ((q[:, None] - k[None]) ** 2).sum(axis=-1)
                w = MASSES * np.exp(-0.6 * gaps + term)
                w /= w.sum(axis=1, keepdims=True)
            elif isinstance(weights, mf.Unnormalised):
                w = MASSES * np.exp(0.6 * q @ k.T + term)
            else:
                w = MASSES / (1 + np.exp(1.0 - 0.6 * q @ k.T - term))
            wanted += w @ X @ V[h].T @ OUTPUT[h].T
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("positions", KINDS, ids=repr)
def test_only_differences_of_positions_count(positions):
    """Tokens without mass before the others shift all positions by as many."""
    before = np.concatenate([RNG.standard_normal((3, D)), X])
    masses = np.concatenate([np.zeros(3), MASSES])
    sums = AttentionSums(drift(positions, causal=True))
    shifted = sums.attention(0.0, before[None], masses[None])[0, 3:]
    alone = sums.attention(0.0, X[None], MASSES[None])[0]
    np.testing.assert_allclose(shifted, alone, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "weights",
    [mf.Softmax(), mf.L2(), mf.Sigmoid(), mf.Unnormalised(), mf.Sinkhorn(), mf.Linear()],
    ids=repr,
)
@pytest.mark.parametrize("causal", [False, True])
def test_tokens_without_mass_are_a_padding_mask(weights, causal):
    """Even one that outweighs all others by far, whose logits would overflow."""
    if causal and weights.not_causal:
        pytest.skip("weights that cannot be causal")
    padded = np.concatenate([X, 40 * RNG.standard_normal((4, D))])
    masses = np.concatenate([MASSES, np.zeros(4)])
    own = mf.Attention(Q, KEYS, V, 0.2, output=OUTPUT, weights=weights, causal=causal)
    found = AttentionSums(own).attention(0.0, padded[None], masses[None])[0, :N]
    alone = AttentionSums(own).attention(0.0, X[None], MASSES[None])[0]
    np.testing.assert_allclose(found, alone, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("positions", [mf.Rotary(30.0), mf.ALiBi([0.5, 0.25])], ids=repr)
@pytest.mark.parametrize("weights", [mf.Softmax(), mf.L2(), mf.Sigmoid()], ids=repr)
def test_tangents(positions, weights):
    sums = AttentionSums(drift(positions, weights=weights, causal=True))
    dx, m = RNG.standard_normal((1, 1, N, D)), MASSES[None]
    result = sums.with_tangents([None]).attention(0.0, Dual(X[None], dx), constant(m, 1))
    np.testing.assert_allclose(result.value, sums.attention(0.0, X[None], m), rtol=0, atol=1e-13)
    by = derivative_at_zero(lambda e: sums.attention(0.0, X[None] + e * dx[0], m), "A")
    np.testing.assert_allclose(result.changes[0], by, rtol=0, atol=1e-9)


def test_terms_are_made_block_by_block(monkeypatch):
    sizes, n = [], 1500

    class Counted(mf.PositionalEncoding):
        adds = True

        def terms(self, i, j, head):
            sizes.append(i.size * j.size)
            return 0.0 * (i - j)

    monkeypatch.setattr(engine, "LOGIT_ENTRIES", 1 << 14)
    x = RNG.standard_normal((1, n, 2))
    own, plain = (mf.Attention(positions=positions) for positions in (Counted(), None))
    m = np.full((1, n), 1 / n)
    found = AttentionSums(own).attention(0.0, x, m)
    assert sum(sizes) == n**2 and max(sizes) <= 1 << 14
    np.testing.assert_array_equal(found, AttentionSums(plain).attention(0.0, x, m))


@pytest.mark.parametrize("positions", KINDS, ids=repr)
def test_files_hold_them(positions):
    own = drift(positions)
    assert build(mf.Drift, {"kind": "Attention", **describe(own)}) == own


@pytest.mark.parametrize(
    ("positions", "options", "message"),
    [
        (mf.ALiBi([1.0] * 3), {}, "ALiBi is for 3 heads; got matrices of 2"),
        (mf.ALiBi(1.0), {"weights": mf.Sinkhorn()}, "Sinkhorn weights have no ALiBi"),
        (mf.RelativeBias([1.0]), {"weights": mf.Linear()}, "Linear weights have no RelativeBias"),
        (mf.Rotary(size=6), {}, "needs heads of 6 or more coordinates k; got k = 4"),
    ],
)
def test_positions_that_do_not_fit(positions, options, message):
    with pytest.raises(ValueError, match=message):
        drift(positions, **options)


def test_odd_sizes_and_even_tables_are_refused():
    with pytest.raises(ValueError, match="size"):
        mf.Rotary(size=3)
    with pytest.raises(ValueError, match=r"\(2m \+ 1,\)"):
        mf.RelativeBias([1.0, 2.0])
    with pytest.raises(ValueError, match="even number of coordinates k; got k = 3"):
        AttentionSums(mf.Attention(positions=mf.Rotary())).attention(
            0.0, np.ones((1, 2, 3)), np.ones((1, 2)) / 2
        )


def test_what_has_no_order_refuses_positions():
    own = mf.Attention(weights=mf.Unnormalised(), positions=mf.Rotary())
    assert own.parts_tokens and not own.is_gradient(2)
    for state in (mf.Circle(8).uniform(), mf.Gaussian(np.zeros(2), np.eye(2))):
        with pytest.raises(mf.MeanfieldError, match="positions goes by the order of the tokens"):
            mf.solve(mf.Transformer(own.replace(weights=mf.Softmax())), state, (0, 1))
    tokens = mf.Tokens.uniform(40, 2, rng=0)
    with pytest.raises(mf.MeanfieldError, match="heads with positions have none"):
        mf.solve(mf.Transformer(own), tokens, (0, 1), engine=mf.engines.Modes())
    with pytest.raises(mf.MeanfieldError, match="points have none"):
        AttentionSums(own).attention(0.0, tokens.x[None], tokens.masses[None], at=tokens.x[None])
