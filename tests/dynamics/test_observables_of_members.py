"""Observables of members of an ensemble are those that each has alone, to the last bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield import engines, models
from meanfield.dynamics.observables import measure
from meanfield.dynamics.tokens import TokenMotion

NORMALISATIONS = mf.PreLN(), mf.MixLN(0.5), mf.PeriLN(), mf.NGPT(), mf.SqrtScaling()
DRIFTS = {
    "SA": mf.SA,
    "USA": mf.USA,
    "a sum": lambda beta: mf.USA(1.0) - beta * mf.Kuramoto(),
    "attention": lambda beta: mf.Attention(beta=beta),
    "unnormalised": lambda beta: mf.Attention(beta=beta, weights=models.Unnormalised()),
}


def assert_alone(model, state):
    together = measure(model, state)
    for r in range(len(state.masses) if hasattr(state, "masses") else len(state.n)):
        alone = measure(model.member(r), state[r])
        assert alone.keys() == together.keys()
        for name, value in alone.items():
            np.testing.assert_array_equal(value, together[name][r], err_msg=name)


@given(
    seed=st.integers(0, 2**32),
    members=st.integers(2, 6),
    n=st.integers(2, 70) | st.sampled_from([128, 129, 257]),
    d=st.sampled_from([2, 3, 4, 8, 17, 33]),
    drift=st.sampled_from([*DRIFTS]),
    where=st.sampled_from(["sphere", "radii", "R^d", "reaction"]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_those_of_tokens(seed, members, n, d, drift, where):
    rng = np.random.default_rng(seed)
    beta, x = rng.uniform(0, 9, members), rng.standard_normal((members, n, d))
    beta[rng.random(members) < 0.1] = 0.0
    x[0, 0] = x[0, 1]
    masses, options, flat = rng.random((members, n)) ** 3, {}, where == "R^d"
    drift = "attention" if flat else "USA" if where == "reaction" else drift
    if where == "radii":
        options = {"normalisation": NORMALISATIONS[rng.integers(len(NORMALISATIONS))]}
    elif where == "reaction":
        options = {"reaction": 0.5}
    x = x if flat else x / np.linalg.norm(x, axis=-1, keepdims=True)
    masses /= masses.sum(axis=1, keepdims=True)
    state = mf.Tokens(x, masses, on_sphere=not flat)
    assert_alone(mf.Transformer(DRIFTS[drift](beta), **options), state)


@given(seed=st.integers(0, 2**32), members=st.integers(2, 6), n=st.integers(2, 40))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_those_of_gram_matrices_and_of_equiangular_tokens(seed, members, n):
    rng = np.random.default_rng(seed)
    model = mf.Transformer(mf.SA(rng.uniform(0, 9, members)))
    assert_alone(model, mf.Tokens.uniform(n, 5, rng=rng, shape=(members,)).gram())
    many, gap = rng.integers(2, 10**6, members), rng.uniform(0, 1, members) ** 8 + 1e-12
    assert_alone(model, mf.Equiangular(many.astype(float), gap=gap))


def test_energies_of_attention_by_modes():
    """Members of which some have a potential, and one has none."""
    K = np.stack([np.eye(2), np.eye(2) + np.triu(np.ones((2, 2)), 1), 2 * np.eye(2)])[:, None]
    drift = mf.Attention(K=K, V=K, beta=0.5, weights=models.Unnormalised())
    model, state = mf.Transformer(drift), mf.Tokens.uniform(300, 2, rng=1, shape=(3,))
    energies = []
    for one, those in ((model, state), *((model.member(r), state[r]) for r in range(3))):
        motion = TokenMotion(one, those, engines.Modes())
        energies.append(np.ravel(motion.energy(motion.coordinates(those))))
    np.testing.assert_array_equal(energies[0], np.concatenate(energies[1:]))
    assert np.isnan(energies[0]).tolist() == [False, True, False]
