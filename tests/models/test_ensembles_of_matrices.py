"""Matrices that differ between replicas: the ensemble shape, its members, its tables."""

import json

import numpy as np
import pytest

import meanfield as mf
from meanfield.core.descriptions import build, describe
from meanfield.core.forms import Reading
from meanfield.dynamics import TokenMotion
from meanfield.engines.attention import AttentionSums
from meanfield.models import Attention, Hardmax, PerLayer, ensembles
from meanfield.models.parameters import StateSizes

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape)


def test_axes_before_those_of_heads_make_an_ensemble():
    assert Attention(normal(4, 2, 2, 3), normal(4, 2, 2, 3)).shape == (4,)
    assert Attention(K=normal(5, 4, 1, 3, 3), beta=np.ones(4)).shape == (5, 4)
    assert Attention(K=PerLayer(normal(6, 4, 1, 3, 3))).shape == (4,)
    assert Attention(normal(2, 3, 3)).shape == Attention(PerLayer(normal(6, 2, 3, 3))).shape == ()
    assert Hardmax(V=normal(4, 1, 3, 3)).shape == (4,)
    assert mf.Transformer(Attention(K=normal(4, 1, 3, 3)), kappa=np.ones((5, 1))).shape == (5, 4)
    assert Attention(K=normal(4, 1, 3, 3)).dimension == 3


def test_parts_of_an_ensemble_broadcast():
    K, V = normal(5, 1, 1, 3, 3), normal(4, 1, 3, 3)
    model = mf.Transformer(Attention(K=K, V=V, beta=np.arange(4.0)), kappa=np.ones((5, 1)))
    for place in np.ndindex(model.shape):
        one = model.member(place)
        i, j = place
        assert one.shape == ()
        assert one == mf.Transformer(Attention(K=K[i, 0], V=V[j], beta=float(j)), kappa=1.0)
    some = model.member((slice(None), 2))
    assert some.shape == (5,)
    assert some.member(3) == model.member((3, 2))


@pytest.mark.parametrize(
    "drift",
    [
        Attention(normal(4, 2, 2, 3), normal(4, 2, 2, 3), beta=np.arange(4.0)),
        Attention(K=normal(3, 3), V=normal(4, 2, 2, 3), output=normal(2, 3, 2)),
        Attention(K=PerLayer(normal(5, 4, 1, 3, 3), 0.5)),
        Attention(K=normal(4, 1, 3, 3), beta=lambda t: 1.0 + t),
        Hardmax(K=normal(4, 1, 3, 3)),
        mf.SA(np.arange(1.0, 5.0)),
        2.0 * Attention(K=normal(4, 1, 3, 3)) + np.arange(4.0) * mf.Kuramoto(),
        mf.USA(np.arange(1.0, 5.0)) - mf.Kuramoto(),
        mf.Attention(K=normal(4, 1, 3, 3)) + mf.FeedForward(normal(5, 3), normal(3, 5)),
    ],
    ids=lambda drift: type(drift).__name__,
)
def test_members_move_tokens_as_the_ensemble_does(drift):
    """The flattened ensemble, member by member, to the last bit; numbers of members make one."""
    tokens = mf.Tokens.uniform(6, 3, rng=1, shape=(4,))

    def velocity(part, state):
        motion = TokenMotion(mf.Transformer(part), state)
        return motion.velocity(motion.coordinates(state), 0.7)

    together = velocity(drift, tokens)
    for r in range(4):
        np.testing.assert_array_equal(velocity(drift.member(r), tokens[r])[0], together[r])
    some = np.array([3, 1])
    np.testing.assert_array_equal(velocity(drift.member(some), tokens[some]), together[some])
    assert drift.broadcast((4,)).member(2) == drift.member(2)
    assert np.shape(drift.rate(0.7)) in ((), (4,))


def test_single_models_are_their_own_members():
    model = mf.Transformer(Attention(normal(2, 3, 3), normal(2, 3, 3)), kappa=2.0)
    assert model.member(0) is model
    assert model.drift.member(0) is model.drift


def test_rates_and_sizes_are_those_of_each_member():
    drift = Attention(normal(4, 2, 2, 3), normal(4, 2, 2, 3), V=normal(4, 2, 3, 3), beta=2.0)
    for measured in (drift.rate, drift.output_size):
        alone = [getattr(drift.member(r), measured.__name__)(0.0) for r in range(4)]
        np.testing.assert_allclose(measured(0.0), alone, rtol=1e-14)


def test_energies_are_those_of_each_member():
    A = ensembles.goe(3, 1, (4, 1))
    drift = Attention(K=A, V=A, beta=np.arange(1.0, 5.0), weights=mf.models.Unnormalised())
    tokens = mf.Tokens.uniform(6, 3, rng=2, shape=(4,))
    energies = drift.interaction_energy(tokens.x, tokens.masses)
    for r in range(4):
        one = drift.member(r).interaction_energy(tokens.x[r], tokens.masses[r])
        assert energies[r] == one and np.isfinite(one)
    mixed = drift.replace(V=np.concatenate([A[:3], normal(1, 1, 3, 3)]))
    np.testing.assert_array_equal(
        np.isnan(mixed.interaction_energy(tokens.x, tokens.masses)), [False] * 3 + [True]
    )
    assert drift.is_gradient(3) and not mixed.is_gradient(3)


def test_functions_of_time_make_no_ensemble():
    drift = Attention(K=lambda t: np.ones((4, 1, 3, 3)))
    with pytest.raises(ValueError, match=r"K as a function of t.*\(4, 1, 3, 3\).*PerLayer"):
        drift.at(0.0)


def test_matrices_of_another_number_of_replicas_are_refused():
    model = mf.Transformer(Attention(K=normal(4, 1, 3, 3)))
    with pytest.raises(ValueError, match=r"model of shape \(4,\), state of shape \(3,\)"):
        mf.solve(model, mf.Tokens.uniform(6, 3, rng=1, shape=(3,)), (0, 1))
    engine = AttentionSums(model.drift)
    x = mf.Tokens.uniform(6, 3, rng=1, shape=(3,)).x
    with pytest.raises(ValueError, match=r"K of ensemble shape \(4,\) is not one for each of 3"):
        engine.attention(0.0, x, np.full((3, 6), 1 / 6))


# Random matrices -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ensembles.GOE, ensembles.GinibreProduct, ensembles.Wishart])
@pytest.mark.parametrize("heads", [None, 2])
def test_random_matrices_are_independent_in_each_replica(kind, heads):
    """The first do not depend on how many there are; the first of all is that of one system."""
    table = kind(rng=3, heads=heads, per_replica=True)
    many, few = (table.resolve(StateSizes(5, 8, shape)) for shape in ((6,), (2,)))
    assert many.shape == (6, heads or 1, 5, 5)
    np.testing.assert_array_equal(many[:2], few)
    alone = table.resolve(StateSizes(5, 8))
    assert alone.shape == ((5, 5) if heads is None else (2, 5, 5))
    np.testing.assert_array_equal(many[0], alone.reshape(many[0].shape))
    assert len(np.unique(many[:, 0, 0, 1])) == 6
    same = kind(rng=3, heads=heads).resolve(StateSizes(5, 8, (6,)))
    np.testing.assert_array_equal(same, alone)


def test_entries_of_different_replicas_are_uncorrelated():
    """The mean product of 2000 pairs of entries N(0, 1), within five standard errors."""
    drawn = ensembles.GOE(rng=5, per_replica=True).resolve(StateSizes(4, 8, (4000,)))[:, 0, 0, 1]
    products = drawn[::2] * drawn[1::2]
    assert abs(products.mean()) < 5 * products.std() / np.sqrt(2000)


def test_a_run_draws_a_matrix_for_each_replica():
    model = mf.Transformer(Attention(K=ensembles.GOE(rng=3, per_replica=True), beta=[[1.0], [2.0]]))
    tokens = mf.Tokens.uniform(6, 3, rng=1, shape=(4,))
    run = mf.solve(model, tokens, (0, 0.5), t_eval=[0.5])
    assert run.shape == (2, 4) and run.model.drift.K.shape == (4, 1, 3, 3)
    assert run.model.member((1, 2)).drift.beta == 2.0


def test_ensembles_of_matrices_come_back_from_plain_data():
    drift = Attention(K=normal(4, 1, 3, 3), V=PerLayer(normal(5, 4, 1, 3, 3), 0.5))
    arrays = {}
    data = json.loads(json.dumps(describe(drift, arrays)))
    assert build(mf.Drift, data, Reading(arrays=arrays, result=True)) == drift
    written = json.loads(json.dumps(describe(ensembles.GOE(rng=1, per_replica=True), {})))
    assert written["per_replica"] is True
