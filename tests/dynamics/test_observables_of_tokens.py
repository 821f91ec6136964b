"""Observables of tokens and of inner products: pairs, clusters, rank, energies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield import (
    SA,
    USA,
    Attention,
    Gram,
    Kuramoto,
    PreLN,
    Tokens,
    Transformer,
    Unnormalised,
    Weights,
    solve,
)
from meanfield.dynamics.observables import (
    cluster_labels,
    effective_rank,
    inner_product_histogram,
    mean_cosine,
    measure,
)

reproducible = settings(deadline=None, derandomize=True, max_examples=30)


def weighted(n, d, seed=0):
    """Uniform tokens with random masses."""
    rng = np.random.default_rng(seed)
    return Tokens(Tokens.uniform(n, d, rng=rng).x, rng.dirichlet(np.ones(n)))


# Pairs --------------------------------------------------------------------------------------


@reproducible
@given(st.integers(2, 9), st.integers(2, 6))
def test_the_mean_cosine_is_that_of_pairs(n, d):
    tokens = weighted(n, d)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    weights = np.array([tokens.masses[i] * tokens.masses[j] for i, j in pairs])
    cosines = np.array([tokens.x[i] @ tokens.x[j] for i, j in pairs])
    expected = weights @ cosines / weights.sum()
    # The sum over pairs is the square of a sum less its diagonal: 1e-16 over 1 - sum m^2.
    tolerance = 1e-15 / weights.sum()
    assert mean_cosine(tokens) == pytest.approx(expected, abs=tolerance)
    assert mean_cosine(tokens.gram()) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("mass", [1e-2, 1e-8, 1e-12, 1e-14, 1e-300])
def test_a_pair_of_which_one_has_nearly_all_mass_has_its_cosine(mass):
    tokens = Tokens(Tokens.on_circle([0, 2.0]).x, [1 - mass, mass])
    assert mean_cosine(tokens) == pytest.approx(np.cos(2), rel=1e-14)
    assert mean_cosine(tokens.gram()) == pytest.approx(np.cos(2), rel=1e-14)


def test_without_pairs_there_is_no_cosine():
    alone = Tokens(np.eye(2), [1.0, 0.0])
    assert np.isnan(mean_cosine(alone)) and np.isnan(inner_product_histogram(alone, 3)[0]).all()
    at_origin = Tokens([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], on_sphere=False)
    assert mean_cosine(at_origin) == pytest.approx(np.sqrt(2) / 3)
    shares, _ = inner_product_histogram(at_origin, 4)
    np.testing.assert_allclose(shares, [0, 0, 1 / 3, 2 / 3], atol=1e-15)


def test_the_histogram_counts_every_pair_by_its_mass(monkeypatch):
    tokens = weighted(50, 4)
    shares, edges = inner_product_histogram(tokens, bins=7)
    G, weights = tokens.x @ tokens.x.T, np.outer(tokens.masses, tokens.masses)
    off = ~np.eye(50, dtype=bool)
    expected = np.histogram(G[off], edges, weights=weights[off])[0] / weights[off].sum()
    np.testing.assert_allclose(shares, expected, rtol=1e-12)
    np.testing.assert_allclose(inner_product_histogram(tokens.gram(), 7)[0], shares, rtol=1e-12)
    monkeypatch.setattr("meanfield.dynamics.observables.HISTOGRAM_ROWS", 7)
    np.testing.assert_allclose(inner_product_histogram(tokens, 7)[0], shares, rtol=1e-12)


def test_inner_products_beyond_one_by_rounding_are_counted():
    x = np.array([[0.6, 0.8], [0.6, 0.8 + 1e-16], [-0.6, -0.8]])
    shares, _ = inner_product_histogram(Tokens(x), 4)
    np.testing.assert_allclose(shares, [2 / 3, 0, 0, 1 / 3], rtol=1e-12)


@pytest.mark.parametrize("bins", [0, 2.5, True, "3"], ids=str)
def test_bins_are_a_whole_number(bins):
    with pytest.raises(ValueError, match="bins must be a whole number >= 1"):
        inner_product_histogram(weighted(3, 2), bins)


# Clusters -----------------------------------------------------------------------------------


def flood(x, distance):
    """Single linkage by flooding, the slow way."""
    free, groups = set(range(len(x))), []
    while free:
        group, edge = set(), {free.pop()}
        while edge:
            group |= edge
            near = {j for j in free for i in edge if np.linalg.norm(x[i] - x[j]) <= distance}
            free, edge = free - near, near
        groups.append(frozenset(group))
    return set(groups)


def groups_of(labels):
    """The partition that labels describe."""
    return {frozenset(np.flatnonzero(labels == k)) for k in np.unique(labels)}


@reproducible
@given(st.integers(2, 40), st.integers(2, 4), st.floats(0.02, 0.5), st.integers(0, 99))
def test_clusters_are_single_linkage(n, d, angle, seed):
    tokens = Tokens.uniform(n, d, rng=seed)
    expected = flood(tokens.x, 2 * np.sin(angle / 2))
    assert groups_of(cluster_labels(tokens, angle)) == expected
    assert groups_of(cluster_labels(tokens.gram(), angle)) == expected


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("angle", [0.01, 0.02, 0.1])
def test_cells_find_the_same_clusters(monkeypatch, d, angle):
    """In R^d, where the circle's own way does not apply."""
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.standard_normal((40, d)), 0.05 * rng.standard_normal((200, d))])
    tokens = Tokens(x, on_sphere=False)
    expected = groups_of(cluster_labels(tokens, angle))
    assert 2 < len(expected) < 240
    monkeypatch.setattr("meanfield.states.clusters.MOST_PAIRED_TOKENS", 10)
    assert groups_of(cluster_labels(tokens, angle)) == expected


def test_many_tokens_are_linked_in_cells():
    centres = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, -1]])
    x = np.repeat(centres, 10_000, axis=0)
    x += 1e-3 * np.random.default_rng(0).standard_normal(x.shape)
    labels = cluster_labels(Tokens(x / np.linalg.norm(x, axis=1, keepdims=True)), 0.01)
    assert np.array_equal(np.bincount(labels), [10_000] * 3)


def test_too_many_tokens_in_too_many_dimensions_are_refused():
    with pytest.raises(ValueError, match="more than 20000 tokens are found in d <= 3"):
        cluster_labels(Tokens.uniform(20_001, 4, rng=0))


def test_the_seam_of_the_circle_parts_nothing():
    labels = cluster_labels(Tokens.on_circle([np.pi - 0.001, 1.0, -np.pi + 0.001]), 0.01)
    assert labels[0] == labels[2] != labels[1]


@pytest.mark.parametrize("angle", [0.0, -1.0, np.nan])
def test_the_gap_is_positive(angle):
    with pytest.raises(ValueError, match="angle must be a finite number > 0"):
        cluster_labels(weighted(3, 2), angle)


# Rank, energies -----------------------------------------------------------------------------


def test_the_effective_rank_counts_directions():
    assert effective_rank(Tokens.orthonormal(5)) == pytest.approx(5, rel=1e-14)
    assert effective_rank(Tokens.on_circle([0.0, 0.0, np.pi])) == pytest.approx(1, rel=1e-14)
    halves = Tokens(np.eye(3), [0.5, 0.5, 0.0])
    assert effective_rank(halves) == pytest.approx(2, rel=1e-14)


@pytest.mark.parametrize("drift", [USA(2.0), SA(2.0), USA(0.0), Kuramoto()], ids=repr)
def test_energies_are_double_sums(drift):
    tokens = weighted(7, 3)
    beta, t = float(getattr(drift, "beta", 0.0)), tokens.x @ tokens.x.T
    potential = np.exp(beta * t) / beta if beta else t
    expected = tokens.masses @ potential @ tokens.masses / 2
    found = measure(Transformer(drift), tokens)["interaction_energy"]
    assert found == pytest.approx(expected, rel=1e-14)
    assert measure(Transformer(drift), tokens.gram())["interaction_energy"] == pytest.approx(
        expected, rel=1e-14
    )


def test_the_speed_is_the_gain_of_energy_of_a_gradient_flow():
    """dE/dt = sum m |v|^2, by a central difference whose error is of the order 1e-9."""
    from meanfield import solve

    model, tokens, dt = Transformer(USA(2.0)), weighted(6, 3), 1e-4
    run = solve(model, tokens, (0, 2 * dt), t_eval=[0, dt, 2 * dt], rtol=1e-13)
    table = [measure(model, state) for state in run]
    gain = (table[2]["interaction_energy"] - table[0]["interaction_energy"]) / (2 * dt)
    assert table[1]["speed"] ** 2 == pytest.approx(gain, rel=1e-7)


def test_replicas_are_measured_one_by_one():
    tokens = Tokens.uniform(6, 3, rng=0, shape=(2, 2))
    model = Transformer(SA([1.0, 4.0]))
    table = measure(model, tokens)
    for i in np.ndindex(2, 2):
        alone = measure(Transformer(SA([1.0, 4.0][i[1]])), tokens[i])
        assert all(value[i] == pytest.approx(alone[name]) for name, value in table.items())


def test_what_only_some_tokens_have():
    space = Tokens(np.array([[0.0, 0.0], [2.0, 0.0]]), on_sphere=False)
    table = measure(Transformer(Attention(V=np.eye(2))), space)
    assert table["spread"] == 1.0 and np.isnan(table["interaction_energy"])
    radii = Tokens(np.eye(2), [0.25, 0.75], radii=[1.0, 3.0])
    assert measure(Transformer(SA(1.0), normalisation=PreLN()), radii)["mean_radius"] == 2.5


def test_inner_products_are_measured_like_their_tokens():
    tokens = weighted(5, 3)
    model = Transformer(SA(3.0))
    found, expected = measure(model, tokens.gram()), measure(model, tokens)
    for name in set(found) & set(expected):
        assert found[name] == pytest.approx(expected[name], rel=1e-12, abs=1e-14), name
    assert found["least_cosine"] == pytest.approx((tokens.x @ tokens.x.T).min(), abs=1e-15)


def test_other_things_are_not_measured():
    with pytest.raises(TypeError, match=r"Clusters are those of a state of .*Gram; got \[1, 2\]"):
        cluster_labels([1, 2])
    with pytest.raises(TypeError, match="got list"):
        measure(Transformer(SA(1.0)), [Gram(np.eye(2))])


@pytest.mark.parametrize("measured", [inner_product_histogram, mean_cosine])
def test_arrays_are_no_states(measured):
    with pytest.raises(TypeError, match="Pairs are those of a state of Tokens or a Gram; got"):
        measured(weighted(4, 3).x)


class Squares(Weights):
    """k(x, y) = (beta <Qx, Ky>)^2, Z = 1, of a user's own: W = beta^2 t^3/3."""

    normalised, has_potential = False, True

    def of_logits(self, logits, squares):
        return logits**2

    def potential(self, products, beta):
        return beta**2 * products**3 / 3


@pytest.mark.parametrize("on_sphere", [True, False])
@pytest.mark.parametrize("beta", [1.5, 0.0, -2.0])
@pytest.mark.parametrize("weights", [Unnormalised(), Squares()], ids=repr)
def test_attention_with_symmetric_values_increases_its_energy(on_sphere, beta, weights):
    """dE/dt = int |v|^2 dmu for V = Q^T K under weights without normalisation."""
    Q = np.array([[1.0, 0.3, 0.0], [0.2, -0.8, 0.1], [0.0, 0.4, 0.6]])
    x = weighted(7, 3).x * (1 if on_sphere else 0.8)
    tokens = Tokens(x, weighted(7, 3).masses, on_sphere=on_sphere)
    model = Transformer(Attention(Q, Q, Q.T @ Q, beta, weights=weights))
    h = 1e-3
    run = solve(model, tokens, (0, 2 * h), t_eval=[0, h, 2 * h], rtol=1e-13)
    energy, speed = (run.observables[n].values for n in ("interaction_energy", "speed"))
    assert (energy[2] - energy[0]) / (2 * h) == pytest.approx(speed[1] ** 2, rel=1e-4)


def test_attention_with_identities_has_the_energy_of_usa():
    tokens = weighted(9, 3)
    found = [
        measure(Transformer(drift), tokens)["interaction_energy"]
        for drift in (Attention(beta=2.0, weights=Unnormalised()), USA(2.0))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-13)


@pytest.mark.parametrize(
    "drift",
    [
        Attention(weights=Unnormalised(), V=np.diag([1.0, 2.0, 3.0])),
        Attention(weights=Unnormalised(), causal=True),
        Attention(np.ones((2, 3, 3)), np.ones((2, 3, 3)), weights=Unnormalised()),
        Attention(V=lambda t: np.eye(3), weights=Unnormalised()),
        Attention(),
    ],
)
def test_attention_that_is_no_gradient_flow_has_no_energy(drift):
    assert np.isnan(measure(Transformer(drift), weighted(4, 3))["interaction_energy"])


def test_speeds_that_overflow_are_infinite():
    """Velocities are divided by radii: inf / inf was nan."""
    model = mf.Transformer(mf.SA(1.0), normalisation=mf.PreLN())
    tokens = mf.Tokens([[1.0, 0.0], [0.0, 1.0]], radii=np.full(2, 1e-310))
    assert measure(model, tokens)["speed"] == np.inf
