"""Velocities of characteristics under drifts that are not zonal, and growth of masses."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import meanfield as mf
from meanfield.dynamics import CharacteristicsMotion, TokenMotion
from meanfield.engines import engine_for

RNG = np.random.default_rng(1)
SPACES = {
    2: mf.Circle(8).density(lambda x: 1 + 0.5 * np.cos(x - 1) + 0.2 * np.cos(2 * x)),
    3: mf.Sphere(4).density(lambda x, y, z: 1 + 0.5 * z + 0.3 * x * y - 0.2 * y),
}
NODES = {2: 384, 3: 3000}
STARTS = {d: mf.Characteristics(density, nodes=NODES[d]) for d, density in SPACES.items()}
both = pytest.mark.parametrize("d", [2, 3])


def matrices(d, heads=()):
    """Q, K and V."""
    return RNG.standard_normal((3, *heads, d, d)) * 0.7


def drifts(d):
    """Attention of all kinds."""
    Q, K, V = matrices(d)
    heads = matrices(d, (2,))
    narrow = RNG.standard_normal((1, d)), RNG.standard_normal((1, d))
    return {
        "softmax": mf.Attention(Q, K, V, 1.5),
        "unnormalised": mf.Attention(Q, K, V, 0.7, weights=mf.Unnormalised()),
        "l2": mf.Attention(Q, K, V, 0.8, weights=mf.L2()),
        "sigmoid": mf.Attention(Q, K, V, 1.5, weights=mf.Sigmoid(-1.0)),
        "linear": mf.Attention(Q, K, V, 1.5, weights=mf.Linear()),
        "two heads": mf.Attention(*heads, 1.0),
        "k < d": mf.Attention(*narrow, V, 2.0),
        "layers": mf.Attention(mf.PerLayer([Q, K], 0.5), K, V),
        "in time": mf.Attention(Q, K, V, lambda t: 1.0 + np.sin(t)),
        "sum": mf.SA(1.0) - 0.5 * mf.Attention(Q, K, V) + mf.Field(np.sin),
        "sum of zonal ones": 0.5 * mf.USA(1.0) + mf.SA(2.0),
        "field": mf.Field(np.sin),
    }


CASES = {(d, name): drift for d in (2, 3) for name, drift in drifts(d).items()}
every_drift = pytest.mark.parametrize(
    ("d", "drift"), [(d, drift) for (d, _), drift in CASES.items()], ids=map(str, CASES)
)


def tangents(state, rates):
    """Rates of change of the points."""
    if rates.ndim == 2:
        return rates
    x = state.points
    return rates[:, None] * np.stack([-x[:, 1], x[:, 0]], axis=1)


def tokens_of(state):
    return mf.Tokens(state.points, state.masses / state.masses.sum())


# Velocities --------------------------------------------------------------------------------


@pytest.mark.repeats
@every_drift
def test_nodes_move_as_tokens_do(d, drift, t=0.2):
    """Measured: 1e-15."""
    state, model = STARTS[d], mf.Transformer(drift)
    found = CharacteristicsMotion(model, state).velocity(state.coordinates, t)
    expected = TokenMotion(model, tokens_of(state)).velocity(tokens_of(state).x[None], t)[0]
    np.testing.assert_allclose(tangents(state, found), expected, rtol=0, atol=1e-10)


@both
def test_sinkhorn_weights_too(d):
    """On few nodes, as a moment of the uniform density: each attends to what is next to it."""
    state = mf.Characteristics(SPACES[2], nodes=256)
    model = mf.Transformer(mf.Attention(beta=2.0, weights=mf.Sinkhorn()))
    found = CharacteristicsMotion(model, state).velocity(state.coordinates)
    expected = TokenMotion(model, tokens_of(state)).velocity(tokens_of(state).x[None], 0.0)[0]
    np.testing.assert_allclose(tangents(state, found), expected, rtol=0, atol=1e-10)


@both
@pytest.mark.parametrize("beta", [1.0, 4.0])
@pytest.mark.parametrize("zonal", [mf.SA, mf.USA])
def test_multiples_of_the_identity_are_the_zonal_drift(d, beta, zonal):
    """By harmonics and by pairs. Measured, relative: 2e-14, on S^2 1e-12 (scattered transforms)."""
    state = STARTS[d]
    weights = mf.Softmax() if zonal is mf.SA else mf.Unnormalised()
    pairs, harmonics = (
        CharacteristicsMotion(mf.Transformer(drift), state).velocity(state.coordinates)
        for drift in (mf.Attention(beta=beta, weights=weights), zonal(beta))
    )
    scale = np.abs(harmonics).max()
    np.testing.assert_allclose(
        pairs / scale, harmonics / scale, rtol=0, atol={2: 1e-13, 3: 5e-12}[d]
    )


@pytest.mark.repeats
@both
@pytest.mark.parametrize("normalisation", [mf.NGPT(0.7), mf.SqrtScaling()], ids=repr)
@pytest.mark.parametrize("drift", [mf.SA(1.0), mf.Attention(Q=2.0)], ids=["zonal", "attention"])
def test_normalisations_without_radii(d, drift, normalisation):
    state = STARTS[d]
    model = mf.Transformer(drift, normalisation=normalisation)
    found = CharacteristicsMotion(model, state).velocity(state.coordinates, 0.5)
    expected = TokenMotion(model, tokens_of(state)).velocity(tokens_of(state).x[None], 0.5)[0]
    np.testing.assert_allclose(tangents(state, found), expected, rtol=0, atol=1e-10)


@both
@pytest.mark.parametrize("drift", [mf.SA(1.0), mf.Attention(Q=2.0)], ids=["zonal", "attention"])
def test_a_feedforward_map_is_added(d, drift):
    state, f = STARTS[d], mf.FeedForward(RNG.standard_normal((4, d)), RNG.standard_normal((d, 4)))
    with_map, without = (
        CharacteristicsMotion(model, state).velocity(state.coordinates)
        for model in (mf.Transformer(drift, feedforward=f), mf.Transformer(drift))
    )
    x, added = state.points, f(state.points)
    expected = added - (added * x).sum(axis=1)[:, None] * x
    np.testing.assert_allclose(tangents(state, with_map - without), expected, rtol=0, atol=1e-13)


@both
def test_velocities_turn_with_data_and_matrices(d):
    """x -> Rx, Q -> QR^T, K -> KR^T, V -> RVR^T. Measured: 1e-15."""
    Q, K, V = matrices(d)
    turn = Rotation.random(random_state=2).as_matrix()
    turn = turn if d == 3 else np.array([[0.6, -0.8], [0.8, 0.6]])
    state = STARTS[d]
    model = mf.Transformer(mf.Attention(Q, K, V))
    turned = mf.Transformer(mf.Attention(Q @ turn.T, K @ turn.T, turn @ V @ turn.T))
    places = state.points @ turn.T if d == 3 else state.coordinates
    other = mf.Characteristics.of_arrays(
        state.space, places, state.masses, state.halves, turn @ state.limit
    )
    v = CharacteristicsMotion(model, state).velocity(state.coordinates)
    w = CharacteristicsMotion(turned, other).velocity(other.coordinates)
    np.testing.assert_allclose(tangents(other, w), tangents(state, v) @ turn.T, rtol=0, atol=1e-13)


# Growth of masses --------------------------------------------------------------------------


def gradient(d):
    """Attention that is a gradient: V = c K^T Q symmetric."""
    M = np.random.default_rng(3).standard_normal((d, d))
    return mf.Attention(1.0, M + M.T, 0.5 * (M + M.T), 0.4, weights=mf.Unnormalised())


GRADIENTS = {"zonal": lambda _: mf.USA(1.5), "softmax": lambda _: mf.SA(1.5), "attention": gradient}


@pytest.mark.repeats
@both
@pytest.mark.parametrize("drift", GRADIENTS.values(), ids=GRADIENTS)
def test_masses_grow_as_those_of_tokens(d, drift):
    """Measured: 1e-14; on S^2 3e-12, by harmonics at scattered points."""
    state, model = STARTS[d], mf.Transformer(drift(d), reaction=0.7)
    motion = CharacteristicsMotion(model, state)
    found = motion.velocity(motion.coordinates(state))[:, -1]
    tokens = TokenMotion(model, tokens_of(state))
    expected = tokens.velocity(tokens.coordinates(tokens_of(state)), 0.0)[0, :, -1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert abs(state.masses @ found) < 1e-14


@both
def test_phi_is_the_potential_of_the_velocity(d):
    """V = c K^T Q symmetric: the gradient of Phi by differences, of order 4."""
    drift, h = gradient(d), 1e-3
    y = tokens_of(STARTS[d])
    probe = RNG.standard_normal(d)
    probe /= np.linalg.norm(probe)
    direction = RNG.standard_normal(d)

    def potential(s):
        x = np.concatenate([y.x, (probe + s * direction)[None]])
        return drift.interaction_potential(x[None], np.append(y.masses, 0.0)[None])[0, -1]

    slope = 2 / 3 * (potential(h) - potential(-h)) - (potential(2 * h) - potential(-2 * h)) / 12
    x = np.concatenate([y.x, probe[None]])[None]
    sums = engine_for(drift, None, len(y) + 1, d)
    A = sums.attention(0.0, x, np.append(y.masses, 0.0)[None])[0, -1]
    assert slope / h == pytest.approx(A @ direction, rel=1e-8)


# Judging -----------------------------------------------------------------------------------


@both
def test_the_quadrature_is_judged_by_half_of_the_nodes(d):
    """Narrow weights need more nodes: the first error is that of the velocities."""
    few = mf.Characteristics(SPACES[d], nodes=NODES[d])
    many = mf.Characteristics(SPACES[d], nodes=2 * NODES[d])
    model = mf.Transformer(mf.Attention(Q=8.0, V=np.diag(np.arange(1.0, d + 1))))
    motions = [CharacteristicsMotion(model, state) for state in (few, many)]
    errors = [m.halved_error(m.like.coordinates, m.like.halves) for m in motions]
    assert errors[1] < errors[0] / 10
    sharp = mf.Transformer(mf.Attention(Q=1000.0))
    with pytest.raises(ValueError, match=r"nodes do not resolve this interaction.*nodes="):
        mf.solve(sharp, few, (0, 1))


# Refused -----------------------------------------------------------------------------------


REFUSED = {
    "hardmax": (
        mf.Transformer(mf.Hardmax()),
        "Hardmax.* moves no Characteristics: hardmax has no mean field",
    ),
    "causal": (mf.Transformer(mf.Attention(causal=True)), "causal attention goes by the order"),
    "radii": (mf.Transformer(mf.SA(1.0), normalisation=mf.PreLN()), "PreLN.* gives tokens radii"),
    "noise": (mf.Transformer(mf.Attention(), 2.0), r"without noise; got .*kappa=2\.0"),
    "ensemble": (mf.Transformer(mf.Attention(beta=[1.0, 2.0])), r"got an ensemble \(2,\)"),
    "dimension": (mf.Transformer(mf.Attention(np.eye(4), np.eye(4))), "is for dimension 4"),
    "softmax": (mf.Transformer(mf.Attention(), reaction=1.0), "reaction needs a potential"),
    "not symmetric": (
        mf.Transformer(
            mf.Attention(np.eye(2), [[0, 1], [0, 0]], weights=mf.Unnormalised()), reaction=1.0
        ),
        "K.T Q symmetric",
    ),
}


@pytest.mark.parametrize(("model", "match"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(model, match):
    with pytest.raises((mf.MeanfieldError, ValueError), match=match):
        CharacteristicsMotion(model, STARTS[2])


OFF_AXIS = {
    "attention": mf.Transformer(mf.Attention()),
    "feed-forward": mf.Transformer(mf.SA(1.0), feedforward=np.tanh),
    "normalisation": mf.Transformer(mf.SA(1.0), normalisation=mf.NGPT()),
}


@pytest.mark.parametrize("model", OFF_AXIS.values(), ids=OFF_AXIS)
def test_axisymmetric_densities_take_zonal_drifts_alone(model):
    state = mf.Characteristics(mf.Zonal(3, 4).zonal([1, 0.5]))
    with pytest.raises(mf.MeanfieldError, match="Axisymmetric densities stay so under zonal"):
        CharacteristicsMotion(model, state)


def test_velocities_that_overflow_are_explained():
    model = mf.Transformer(mf.Attention(beta=800.0, weights=mf.Unnormalised()))
    with pytest.raises(mf.MeanfieldError, match="overflow on these tokens"):
        mf.solve(model, STARTS[2], (0, 1))
