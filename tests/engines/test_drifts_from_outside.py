"""Drifts and weights that a user writes: sums over tokens against brute force, for every engine."""

import numpy as np
import pytest
from replicas import attention, random_masses, unit_vectors
from token_systems import CONFIGURATIONS, error, tokens

import meanfield as mf
from meanfield.engines import Automatic, CircleModes, DirectSums, SphereModes

MODES = {2: CircleModes, 3: SphereModes}


class LinearSlope(mf.ZonalDrift):
    """W' = 1 + b t, Z = 1: all else follows."""

    b: float = 2.0

    def slope(self, t):
        return 1 + self.b * t


class Tempered(mf.ZonalDrift):
    """W' = exp(b t), Z = 1 + t^2."""

    b: float = 2.0

    def slope(self, t):
        return np.exp(self.b * t)

    def weight(self, t):
        return 1 + t**2

    def potential(self, t):
        return np.exp(self.b * t) / self.b


class Shifted(Tempered):
    """The same, both divided by the largest exp(b t) of a row; multipliers are given."""

    potential = Tempered.potential

    def slope(self, t):
        exponent = self.b * t
        return np.exp(exponent - exponent.max(axis=-1, keepdims=True))

    def weight(self, t):
        return (1 + t**2) * np.exp(-(self.b * t).max(axis=-1, keepdims=True))

    def attraction(self, degree, dimension):
        return Tempered(self.b).attraction(degree, dimension)

    def normaliser(self, degree, dimension):
        return Tempered(self.b).normaliser(degree, dimension)


class Peaked(mf.ZonalDrift):
    """W' = 1, Z = exp(b t): the denominator has more harmonics than the numerator."""

    b: float = 2.0

    def slope(self, t):
        return np.ones_like(t)

    def weight(self, t):
        return np.exp(self.b * t)


DEFINITIONS = {  # W, W' and Z at inner products t
    LinearSlope: (lambda b, t: t + b * t**2 / 2, lambda b, t: 1 + b * t, lambda b, t: 1 + 0 * t),
    Tempered: (lambda b, t: np.exp(b * t) / b, lambda b, t: np.exp(b * t), lambda b, t: 1 + t**2),
    Peaked: (lambda b, t: t, lambda b, t: 1 + 0 * t, lambda b, t: np.exp(b * t)),
}
DEFINITIONS[Shifted] = DEFINITIONS[Tempered]


def brute_force(kind, b, x, masses):
    """Velocities and attention (n, d), and energy, of one system."""
    potential, slope, weight = DEFINITIONS[kind]
    t = np.clip(x @ x.T, -1, 1)
    levels = (weight(b, t) @ masses)[:, None]
    whole = (slope(b, t) * masses) @ x / levels
    velocity = whole - (whole * x).sum(axis=1, keepdims=True) * x
    return velocity, whole, masses @ potential(b, t) @ masses / 2


@pytest.mark.repeats
@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize("b, n, d", [(-1.5, 20, 2), (2.0, 20, 5), (2.0, 700, 2), (-1.5, 700, 3)])
def test_all_pairs(kind, b, n, d):
    x, masses = tokens("clustered", n, d)
    engine, (velocity, whole, energy) = DirectSums(kind(b)), brute_force(kind, b, x[0], masses[0])
    assert error(engine.velocity(x, masses)[0], velocity) < 1e-12
    assert error(engine.attention(0.0, x, masses)[0], whole) < 1e-12
    assert engine.energy(x, masses)[0] == pytest.approx(energy, rel=1e-12)


@pytest.mark.repeats
@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("n, d", [(20, 2), (700, 2), (700, 3)])
def test_modes(kind, configuration, n, d):
    x, masses = tokens(configuration, n, d)
    for b in (-1.5, 2.0):
        engine, (velocity, _, energy) = MODES[d](kind(b)), brute_force(kind, b, x[0], masses[0])
        assert np.abs(engine.velocity(x, masses)[0] - velocity).max() < 1e-9
        assert engine.energy(x, masses)[0] == pytest.approx(energy, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("d", MODES)
def test_faint_tokens_are_summed_over_all_pairs(d):
    """A light token far from all others: its level is e^-60 times the largest."""
    x, masses = tokens("isolated", 500, d)
    masses[0, 0] = 1e-9
    masses /= masses.sum()
    engine = MODES[d](Peaked(30.0))
    velocity = brute_force(Peaked, 30.0, x[0], masses[0])[0]
    coordinates = engine.scattered.coordinates(x)
    levels = engine.fields(x, coordinates, engine.scattered.moments(coordinates, masses))[1]
    assert levels[0, 0] < engine._lowest
    scale = np.abs(velocity).max(axis=1)
    assert (
        np.abs(engine.velocity(x, masses)[0] - velocity).max(axis=1) <= 1e-9 * scale.max()
    ).all()
    assert error(engine.velocity(x, masses)[0, :1], velocity[:1]) < 1e-9


@pytest.mark.repeats
@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize("d", [2, 3, 5])
def test_an_ensemble_is_a_loop_over_its_members(kind, d):
    betas = np.array([-1.0, 0.5, 3.0])
    x, masses = tokens("clustered", 300, d, replicas=3)
    engines = [DirectSums] if d == 5 else [DirectSums, MODES[d]]
    for make in engines:
        together = make(kind(betas))
        for method in ("velocity", "energy"):
            found = getattr(together, method)(x, masses)
            for r, b in enumerate(betas):
                alone = getattr(make(kind(b)), method)(x[r : r + 1], masses[r : r + 1])[0]
                np.testing.assert_allclose(found[r], alone, rtol=0, atol=1e-9 * np.abs(alone).max())
                if make is DirectSums:
                    np.testing.assert_array_equal(found[r], alone)


@pytest.mark.bits
@pytest.mark.parametrize("kind", DEFINITIONS)
def test_tokens_without_mass_and_threads(kind):
    x, masses = tokens("clustered", 1500, 3)
    masses[0, ::5] = 0
    masses /= masses.sum()
    velocity = brute_force(kind, 2.0, x[0], masses[0])[0]
    one, three = (DirectSums(kind(2.0), threads).velocity(x, masses) for threads in (1, 3))
    np.testing.assert_array_equal(one, three)
    assert error(one[0], velocity) < 1e-12


def test_two_tokens_that_have_met_do_not_pull_each_other():
    x = np.zeros((1, 2, 3))
    x[..., 0] = 1
    for kind in DEFINITIONS:
        np.testing.assert_array_equal(DirectSums(kind(2.0)).velocity(x, np.full((1, 2), 0.5)), 0)


def test_the_engine_is_chosen_for_any_drift():
    for kind in DEFINITIONS:
        assert Automatic().build(kind(2.0), 20, 2).name == "circle"
        assert Automatic().build(kind(2.0), 20, 3).name == "direct"
        assert Automatic().build(kind(2.0), 3000, 2).name == "circle"
        assert Automatic().build(kind(2.0), 3000, 3).name == "sphere"
        assert Automatic().build(kind(2.0), 3000, 5).name == "direct"
    assert (
        Automatic().build(Peaked(-30.0), 3000, 2).name == "direct"
    )  # levels are e^-60 where tokens gather


def test_a_drift_may_ask_for_the_compiled_exponential_kernels():
    class Renamed(Tempered):
        weight, potential = Tempered.slope, Tempered.potential
        exponent = property(lambda self: self.b)

    x, masses = tokens("clustered", 400, 3)
    found = DirectSums(Renamed(np.array(2.0))).velocity(x, masses)
    np.testing.assert_array_equal(found, DirectSums(mf.SA(2.0)).velocity(x, masses))


# Attention weights ---------------------------------------------------------------------------


class RectifiedLogits(mf.Weights):
    """max(l + bias, 0)^2, normalised."""

    bias: float = 0.0

    def of_logits(self, logits, squares):
        return np.maximum(logits + self.bias, 0) ** 2


class Cauchy(mf.Weights):
    """1 / (1 + beta |Qx - Ky|^2)^power, not normalised."""

    power: float = 1.0
    normalised = False

    def of_logits(self, logits, squares):
        return (1 + squares[0] + squares[1] - 2 * logits) ** -self.power


BY_HAND = {
    RectifiedLogits(0.3): lambda beta, q, k: max(beta * q @ k + 0.3, 0) ** 2,
    Cauchy(1.5): lambda beta, q, k: (1 + beta * (q - k) @ (q - k)) ** -1.5,
}


@pytest.mark.repeats
@pytest.mark.parametrize("weights", BY_HAND, ids=repr)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, d", [(1, 2), (20, 2), (60, 3), (30, 5)])
def test_weights_by_their_logits(weights, causal, n, d, small_blocks):
    rng = np.random.default_rng(n + d)
    Q, K = rng.standard_normal((2, d, d)) / np.sqrt(d)
    V, beta = rng.standard_normal((d, d)), 1.7
    x, masses = unit_vectors(rng, n, d), random_masses(rng, n)
    masses[n // 2] = 0.0 if n > 1 else 1.0
    expected = np.zeros((n, d))
    for i in range(n):
        seen = range(i + 1 if causal else n)
        row = np.array([masses[j] * BY_HAND[weights](beta, Q @ x[i], K @ x[j]) for j in seen])
        total = 1.0
        if weights.normalised:  # where all weights of a token are 0, there is no mean
            total = row.sum() if row.any() else np.nan
        expected[i] = row @ (x[: len(row)] @ V.T) / total
    drift = mf.Attention(Q, K, V, beta, weights=weights, causal=causal)
    np.testing.assert_allclose(attention(drift, x, masses), expected, rtol=0, atol=1e-12)


@pytest.mark.bits
@pytest.mark.parametrize("weights", BY_HAND, ids=repr)
def test_weights_of_ensembles_and_threads(weights):
    rng = np.random.default_rng(4)
    x, masses, betas = unit_vectors(rng, 3, 300, 4), random_masses(rng, 3, 300), [0.5, 1.0, 2.0]
    together = attention(mf.Attention(beta=betas, weights=weights), x, masses)
    for r, beta in enumerate(betas):
        alone = attention(mf.Attention(beta=beta, weights=weights), x[r], masses[r], threads=2)
        np.testing.assert_array_equal(together[r], alone)


@pytest.mark.parametrize(
    "weights", [mf.Softmax(), mf.Unnormalised(), mf.L2(), mf.Sigmoid(-0.7), mf.Linear()], ids=repr
)
@pytest.mark.parametrize("causal", [False, True])
def test_the_faster_sums_are_those_of_the_logits(weights, causal):
    rng = np.random.default_rng(6)
    x, masses = unit_vectors(rng, 50, 3), random_masses(rng, 50)

    class Plain(mf.Weights):
        normalised = weights.normalised

        def of_logits(self, logits, squares):
            return weights.of_logits(logits, squares)

    plain, fast = (
        attention(mf.Attention(K=0.7, beta=2.0, weights=w, causal=causal), x, masses)
        for w in (Plain(), weights)
    )
    np.testing.assert_allclose(plain, fast, rtol=0, atol=1e-13 * np.abs(fast).max())


def test_weights_that_cannot_be_causal_say_why():
    class Symmetric(RectifiedLogits):
        not_causal = "they are symmetric in x and y."

    with pytest.raises(ValueError, match=r"Symmetric .* symmetric in x and y"):
        mf.Attention(weights=Symmetric(), causal=True)
