"""Velocities of tokens that see what comes before: by pairs, by means and by modes."""

import numpy as np
import pytest
from token_systems import CONFIGURATIONS, dense_causal, error, tokens, unit

import meanfield as mf
from meanfield.engines import (
    AttentionSums,
    Automatic,
    CausalAttention,
    CausalMean,
    CausalSums,
    Direct,
    Modes,
)

MEAN, SUM = mf.Causal("mean"), mf.Causal("sum")


class Tilted(mf.ZonalDrift):
    b: float

    def slope(self, t):
        return np.exp(self.b * t) * (1 + 0.3 * t)


class Weighted(Tilted):
    """Z is 0 at both ends, where it is usually largest."""

    def weight(self, t):
        return 1.1 - t**2


DRIFTS = [
    mf.USA(4.0),
    mf.SA(4.0),
    mf.SA(60.0),
    mf.SA(-2.0),
    mf.Kuramoto(),
    mf.Interaction(lambda t: t + t**3, derivative=lambda t: 1 + 3 * t**2),
    Tilted(2.0),
    Weighted(2.0),
]
BY_PLACE = [
    mf.Causal("mean", window=0.2),
    mf.Causal("sum", window=0.2),
    mf.Causal("mean", decay=lambda u: np.exp(-3 * u)),
    mf.Causal("sum", decay=lambda u: 1 / (1 + u)),
]


def strongest(drift):
    """The largest velocity that a unit mass exerts."""
    t = np.linspace(-1, 1, 4001)[:, None]  # rows of one: slope and weight have one factor
    return (np.abs(drift.slope(t) / drift.weight(t)) * np.sqrt(1 - t**2)).max()


def largest_error(found, expected, drift, causal, masses):
    """Of velocities (n, d), relative to the largest that the mass seen by each token can exert."""
    seen = 1.0 if causal.is_mean(drift) else masses.cumsum()
    return (np.linalg.norm(found - expected, axis=1) / seen).max() / strongest(drift)


@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("causal", [MEAN, SUM], ids=["mean", "sum"])
@pytest.mark.parametrize("drift", DRIFTS, ids=repr)
def test_pairs_are_the_definition(drift, causal, d):
    x, masses = tokens("clustered", 300, d, replicas=2)
    found = CausalSums(drift, causal).velocity(x, masses)
    for r in range(2):
        assert error(found[r], dense_causal(drift, causal, x[r], masses[r])) < 2e-14


@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 4])
@pytest.mark.parametrize("causal", BY_PLACE, ids=repr)
@pytest.mark.parametrize("drift", [mf.USA(2.0), mf.SA(3.0), mf.Kuramoto(), Weighted(1.0)], ids=repr)
def test_windows_and_decay_are_the_definition(drift, causal, d):
    x, masses = tokens("uniform", 300, d)
    found = CausalSums(drift, causal).velocity(x, masses)
    assert error(found[0], dense_causal(drift, causal, x[0], masses[0])) < 2e-14
    assert error(found[0], dense_causal(drift, SUM, x[0], masses[0])) > 1e-3


@pytest.mark.parametrize("window", [0.1, 0.8])
def test_windows_of_many_rows_and_a_sink(window):
    """A first token of mass 0.3 is in one window after another, and leaves; weights are uneven."""
    x, _ = tokens("uniform", 300, 2)
    masses = np.full((1, 300), 0.7 / 299)
    masses[0, 0] = 0.3
    for drift, causal in ((mf.SA(80.0), True), (mf.USA(2.0), "mean")):
        causal = mf.Causal(None if causal is True else causal, window)
        found = CausalSums(drift, causal).velocity(x, masses)[0]
        assert error(found, dense_causal(drift, causal, x[0], masses[0])) < 1e-13


def test_a_short_window_forms_no_whole_rows():
    seen = []
    causal = mf.Causal(window=0.01, decay=lambda u: seen.append(u.size) or np.exp(-u))
    x, masses = tokens("uniform", 4000, 2)
    CausalSums(mf.SA(2.0), causal).velocity(x, masses)
    assert sum(seen) < 4000 * 200  # windows hold 41 tokens


@pytest.mark.parametrize("drift", [mf.USA(2.0), mf.SA(3.0)], ids=repr)
def test_inverse_temperatures_by_place(drift):
    causal = mf.Causal("mean", window=0.5, beta=lambda s: 1 + 200 * s * drift.normalised + s)
    x, masses = tokens("clustered", 300, 3)
    found = CausalSums(drift, causal).velocity(x, masses)
    assert error(found[0], dense_causal(drift, causal, x[0], masses[0])) < 2e-14


def test_a_window_of_equal_masses_has_the_token_at_its_edge():
    """Places are sums of 1/n, which differ from i/n by rounding."""
    n = 200
    tokens = mf.Tokens.uniform(n, 2, rng=0, shape=(1,))
    causal = mf.Causal("mean", window=30 / n)
    found = CausalSums(mf.Kuramoto(), causal).velocity(tokens.x.copy(), tokens.masses.copy())[0]
    x = tokens.x[0]
    means = np.stack([x[max(i - 30, 0) : i + 1].mean(axis=0) for i in range(n)])
    expected = means - (means * x).sum(axis=1)[:, None] * x
    assert np.abs(found - expected).max() < 1e-15 * 10


@pytest.mark.repeats
@pytest.mark.parametrize("kind", CONFIGURATIONS)
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("causal", [MEAN, SUM], ids=["mean", "sum"])
@pytest.mark.parametrize("drift", DRIFTS, ids=repr)
def test_modes_are_as_accurate_as_asked(drift, causal, d, kind):
    n = 1500 if drift.exponent is not None else 500
    x, masses = tokens(kind, n, d, replicas=2)
    engine, pairs = (kind.build(drift, n, d, causal) for kind in (Modes(), Direct()))
    engine.block = 128
    found, expected = engine.velocity(x, masses), pairs.velocity(x, masses)
    for r in range(2):
        assert largest_error(found[r], expected[r], drift, causal, masses[r]) < 1e-10
        assert np.array_equal(engine.velocity(x[r : r + 1], masses[r : r + 1])[0], found[r])
    assert not np.array_equal(found, expected)  # modes were used


@pytest.mark.parametrize("d, beta", [(2, 1e4), (3, 1e3)])
def test_sharp_kernels(d, beta):
    """On the circle K = 940: by the transforms of ducc0."""
    x, masses = tokens("uniform", 900, d)
    engine = Modes().build(mf.SA(beta), 900, d, MEAN)
    engine.block = 256
    expected = CausalSums(mf.SA(beta), MEAN).velocity(x, masses)
    found = engine.velocity(x, masses)
    assert largest_error(found[0], expected[0], mf.SA(beta), MEAN, masses[0]) < 1e-10


@pytest.mark.parametrize("d", [2, 3])
def test_light_tokens_far_from_all_others(d):
    """Their level is their own mass, 1e-9, too low to divide the rounding of harmonics by."""
    x, masses = (values[:, ::-1].copy() for values in tokens("isolated", 1000, d))
    masses[0, -1] = 1e-9
    masses /= masses.sum()
    engine, pairs = (kind.build(mf.SA(100.0), 1000, d, MEAN) for kind in (Modes(), Direct()))
    engine.block = 128
    expected = pairs.velocity(x, masses)
    assert np.linalg.norm(engine.velocity(x, masses) - expected, axis=2).max() < 1e-12


@pytest.mark.parametrize("causal", [MEAN, mf.Causal(window=1.0)], ids=["pairs", "rows"])
@pytest.mark.parametrize("beta", [400.0, -400.0])
def test_weights_that_underflow(beta, causal):
    """Tokens without mass see one at e^-800 of the largest weight, which one not seen may have."""
    x = unit(np.array([[[1.0, 0.0], [1.0, 0.1], [-1.0, 0.1], [0.6, 0.8], [-1.0, 0.2]]]))
    masses = np.array([[0.5, 0.0, 0.0, 0.25, 0.25]])
    found = CausalSums(mf.SA(beta), causal).velocity(x, masses)[0]
    assert np.abs(found - dense_causal(mf.SA(beta), causal, x[0], masses[0])).max() < 1e-13
    assert np.abs(found[1:3]).max(axis=1).min() > 0.05


@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("drift", [*DRIFTS[:2], mf.Kuramoto(), Weighted(2.0)], ids=repr)
def test_tokens_without_mass(drift, d):
    """Those that see no mass stay; others without mass change nothing, and move."""
    x, masses = tokens("uniform", 700, d)
    masses[0, :3] = masses[0, 100:300] = masses[0, -1] = 0
    masses /= masses.sum()
    for kind in (Direct(), Modes(), Automatic()):
        engine = kind.build(drift, 700, d, MEAN)
        found = engine.velocity(x, masses)[0]
        expected = dense_causal(drift, MEAN, x[0], masses[0])
        assert largest_error(found, expected, drift, MEAN, masses[0]) < 1e-10
        assert not found[:4].any() and np.abs(found[4:]).max(axis=1).min() > 0


@pytest.mark.bits
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("drift", [mf.USA(3.0), mf.SA(5.0), Tilted(1.0)], ids=repr)
def test_later_tokens_change_no_bit_of_earlier_ones(drift, d):
    x, masses = tokens("uniform", 900, d)
    order = np.concatenate([np.arange(350), 350 + np.random.default_rng(1).permutation(550)])
    for kind in (Direct(), Modes()):
        engine = kind.build(drift, 900, d, MEAN)
        found = engine.velocity(x, masses)
        other = engine.velocity(x[:, order], masses[:, order])
        assert np.array_equal(other[:, :350], found[:, :350])
        assert not np.array_equal(other[:, 350:], found[:, 350:][:, order[350:] - 350])


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("drift", DRIFTS, ids=repr)
def test_the_first_token_stays_and_the_second_is_pulled_by_it(drift, d):
    x, masses = tokens("uniform", 300, d)
    for kind in (Direct(), Modes()):
        found = kind.build(drift, 300, d, SUM).velocity(x, masses)[0]
        two = kind.build(drift, 2, d, SUM).velocity(x[:, :2], masses[:, :2])[0]
        assert not found[0].any() and not two[0].any()
        assert error(two[1], found[1]) < 1e-13


@pytest.mark.parametrize("drift", [mf.USA(3.0), mf.Kuramoto(), Tilted(1.0)], ids=repr)
def test_a_mean_is_a_sum_over_the_mass_seen(drift):
    x, masses = tokens("uniform", 500, 3)
    for kind in (Direct(), Modes(), Automatic()):
        mean, total = (kind.build(drift, 500, 3, c).velocity(x, masses) for c in (MEAN, SUM))
        assert error(mean * masses.cumsum(axis=1)[..., None], total) < 1e-14


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("drift", [mf.USA(3.0), mf.SA(5.0), mf.Kuramoto()], ids=repr)
def test_rotations(drift, d):
    x, masses = tokens("uniform", 600, d)
    rotation = np.linalg.qr(np.random.default_rng(2).standard_normal((d, d)))[0]
    for kind in (Direct(), Modes(), Automatic()):
        engine = kind.build(drift, 600, d, MEAN)
        turned = engine.velocity(x @ rotation.T, masses)
        assert error(turned, engine.velocity(x, masses) @ rotation.T) < 2e-11


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("drift", [mf.SA(3.0), mf.USA(2.0)], ids=repr)
def test_attention_is_the_same(drift, d):
    weights = mf.Softmax() if drift.normalised else mf.Unnormalised()
    attention = mf.Attention(beta=float(drift.beta), weights=weights, causal=True)
    x, masses = tokens("clustered", 700, d)
    expected = AttentionSums(attention).attention(0.0, x, masses)
    whole = CausalSums(drift, SUM).attention(0.0, x, masses)
    assert error(whole, expected) < 1e-13
    tangential = expected - (expected * x).sum(axis=2)[..., None] * x
    assert error(CausalSums(drift, SUM).velocity(x, masses), tangential) < 1e-12
    plain = attention.replace(causal=False)
    assert np.array_equal(CausalAttention(plain, SUM).attention(0.0, x, masses), expected)
    mean = CausalAttention(plain, MEAN).attention(0.0, x, masses)
    seen = 1.0 if drift.normalised else masses.cumsum(axis=1)[..., None]
    assert error(mean * seen, expected) < 1e-14


@pytest.mark.bits
@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize("drift", [mf.USA(3.0), mf.SA(40.0), Weighted(1.0)], ids=repr)
def test_threads_change_no_bit(drift, d):
    n = 2500 if drift.exponent is not None else 700
    x, masses = tokens("uniform", n, d, replicas=2)
    for kind in (Direct, Modes)[: 2 if d < 4 else 1]:
        one, more = (kind(threads=k).build(drift, n, d, MEAN) for k in (1, 3))
        assert np.array_equal(one.velocity(x, masses), more.velocity(x, masses))


def test_automatic_takes_what_is_fastest():
    names = {
        (2, 100): "causal direct",
        (2, 5000): "causal circle",
        (3, 5000): "causal sphere",
        (4, 5000): "causal direct",
    }
    for (d, n), name in names.items():
        assert Automatic().build(mf.SA(4.0), n, d, MEAN).name == name
        assert isinstance(Automatic().build(mf.USA(0.0), n, d, SUM), CausalMean)
    for causal in BY_PLACE:
        assert Automatic().build(mf.Kuramoto(), 5000, 2, causal).name == "causal direct"
    assert Automatic(tolerance=1e-14).build(mf.SA(4.0), 5000, 2, MEAN).name == "causal direct"


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="d = 2 or 3"):
        Modes().build(mf.SA(1.0), 100, 4, MEAN)
    with pytest.raises(ValueError, match="use Direct"):
        Modes().build(mf.SA(1.0), 100, 2, BY_PLACE[0])
    with pytest.raises(ValueError, match="none to be replaced"):
        CausalSums(mf.Kuramoto(), mf.Causal("sum", beta=lambda s: s))
    with pytest.raises(mf.MeanfieldError, match="window, decay and beta"):
        CausalAttention(mf.Attention(), BY_PLACE[0])
    with pytest.raises(mf.MeanfieldError, match="are not known"):
        Direct().build(mf.SA(1.0), 100, 2, MEAN).with_tangents([None])
    with pytest.raises(ValueError, match="decay must return finite numbers >= 0"):
        x, masses = tokens("uniform", 5, 2)
        CausalSums(mf.SA(1.0), mf.Causal(decay=lambda u: -u)).velocity(x, masses)
