"""Velocities by harmonics, against sums over all pairs."""

import numpy as np
import pytest
from token_systems import CONFIGURATIONS, error, tokens, unit

import meanfield as mf
from meanfield.engines import CircleModes, DirectSums, SphereModes, circle
from meanfield.engines.harmonics import PART_SIZE

ENGINES = {2: CircleModes, 3: SphereModes}
BETAS = (0.1, 1.0, 5.0, 20.0, 50.0, 100.0)


def strongest(drift, angle):
    """The largest velocity that a unit mass exerts."""
    if isinstance(drift, mf.SA):
        return 1.0
    if isinstance(drift, mf.Interaction | mf.CosineSeries):
        return np.abs(drift.slope(np.cos(angle)) * np.sin(angle)).max()
    return np.exp(drift.beta * np.cos(angle) + np.log(np.sin(angle))).max()


def largest_error(engine, x, masses):
    """Of the velocities, relative to the largest that a unit mass exerts."""
    expected = DirectSums(engine.drift).velocity(x, masses)
    found = engine.velocity(x, masses)
    scale = strongest(engine.drift, np.linspace(0, np.pi, 4001)[1:-1])
    return np.linalg.norm(found - expected, axis=2).max() / scale


@pytest.mark.repeats
@pytest.mark.parametrize("kind", CONFIGURATIONS)
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("drift", [mf.USA, mf.SA])
@pytest.mark.parametrize("d", ENGINES)
def test_velocities_are_as_accurate_as_asked(d, drift, beta, kind):
    x, masses = tokens(kind, 400, d)
    coarse, fine = (
        largest_error(ENGINES[d](drift(beta), tolerance), x, masses) for tolerance in (1e-6, 1e-10)
    )
    assert coarse < 1e-6 and fine < 1e-10
    if drift is mf.USA:
        assert fine < coarse  # what is asked for costs something


SERIES = mf.Interaction.chebyshev([0.3, 1.0, -0.5, 0.2])
OTHERS = [mf.USA(-5.0), mf.SA(-1.0), mf.SA(-30.0), mf.Kuramoto(), SERIES]


@pytest.mark.repeats
@pytest.mark.parametrize("d", ENGINES)
@pytest.mark.parametrize("drift", OTHERS, ids=repr)
def test_other_drifts(d, drift):
    for kind in CONFIGURATIONS:
        x, masses = tokens(kind, 300, d)
        if isinstance(drift, mf.Kuramoto):
            expected = DirectSums(drift).velocity(x, masses)
            assert error(ENGINES[d](drift).velocity(x, masses), expected) < 1e-10
        else:
            assert largest_error(ENGINES[d](drift), x, masses) < 1e-10


@pytest.mark.parametrize("d", ENGINES)
def test_light_tokens_far_from_all_others(d):
    """Their level is their own mass, 1e-9, too low to divide the rounding of the sums by."""
    x, masses = tokens("isolated", 3000, d)
    masses[0, 0] = 1e-9
    masses /= masses.sum()
    engine = ENGINES[d](mf.SA(100.0))
    expected = DirectSums(engine.drift).velocity(x, masses)
    coordinates = engine.scattered.coordinates(x)
    levels = engine.fields(x, coordinates, engine.scattered.moments(coordinates, masses))[1]
    assert np.flatnonzero(levels[0] < engine._lowest).tolist() == [0]
    assert np.linalg.norm(engine.velocity(x, masses) - expected, axis=2).max() < 1e-12


@pytest.mark.parametrize("d, beta", [(2, 1e4), (3, 1e3)])
def test_sharp_kernels(d, beta):
    """On the circle K = 940: by the transforms of ducc0."""
    for kind in CONFIGURATIONS:
        x, masses = tokens(kind, 500, d)
        assert largest_error(ENGINES[d](mf.SA(beta)), x, masses) < 1e-10


@pytest.mark.parametrize("drift", [mf.USA(20.0), mf.SA(20.0), mf.SA([3.0, 20.0])], ids=repr)
def test_powers_and_transforms_agree(monkeypatch, drift):
    x, masses = tokens("clustered", 1000, 2, replicas=2)
    engine = CircleModes(drift)
    velocity, energy = engine.velocity(x, masses), engine.energy(x, masses)
    monkeypatch.setattr(circle, "HIGHEST_POWER", 0)
    assert error(engine.velocity(x, masses), velocity) < 1e-11
    np.testing.assert_allclose(engine.energy(x, masses), energy, rtol=1e-11)


@pytest.mark.bits
@pytest.mark.parametrize("d", ENGINES)
@pytest.mark.parametrize("drift", [mf.USA(5.0), mf.SA(5.0)], ids=repr)
def test_many_tokens_in_parts_and_threads(d, drift):
    """Parts are summed in one order, so that threads change no bit."""
    n = 2 * PART_SIZE + 77
    x, masses = tokens("clustered", n, d)
    velocity = ENGINES[d](drift).velocity(x, masses)
    np.testing.assert_array_equal(ENGINES[d](drift, threads=3).velocity(x, masses), velocity)
    some = np.array([0, 1, PART_SIZE - 1, PART_SIZE, 2 * PART_SIZE, n - 1])
    if isinstance(drift, mf.SA):
        expected = DirectSums(drift).single_velocities(x[0], masses[0], 0, some)
        assert error(velocity[0, some], expected) < 1e-12


@pytest.mark.bits
@pytest.mark.parametrize("drift", [mf.USA(600.0), mf.SA(2000.0)], ids=repr)
def test_threads_change_no_bit_of_transforms_on_the_circle_either(drift):
    x, masses = tokens("clustered", 2 * PART_SIZE + 77, 2)
    one, two = (CircleModes(drift, threads=threads) for threads in (1, 2))
    assert one.degree > circle.HIGHEST_POWER
    for method in ("velocity", "energy"):
        found, expected = (getattr(engine, method)(x, masses) for engine in (two, one))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.bits
@pytest.mark.parametrize("d", ENGINES)
@pytest.mark.parametrize("threads", [1, 2])
def test_replicas_are_independent_systems(d, threads):
    """And an ensemble of beta is a loop over its members, but for the common degree."""
    x, masses = tokens("isolated", 300, d, replicas=3)
    for drift in (mf.USA(5.0), mf.SA(50.0)):
        engine = ENGINES[d](drift, threads=threads)
        for method in ("velocity", "energy"):
            found = getattr(engine, method)(x, masses)
            for r in range(3):
                expected = getattr(engine, method)(x[r : r + 1], masses[r : r + 1])[0]
                np.testing.assert_array_equal(found[r], expected)
    betas = np.array([-0.5, 0.0, 100.0])
    masses[:, 0] *= 1e-9  # a lone token
    masses /= masses.sum(axis=1, keepdims=True)
    for kind in (mf.USA, mf.SA):
        together = ENGINES[d](kind(betas), threads=threads)
        expected = DirectSums(kind(betas))
        for found, velocity in zip(
            together.velocity(x, masses), expected.velocity(x, masses), strict=True
        ):
            assert error(found, velocity) < 1e-10
        energies = together.energy(x, masses)
        np.testing.assert_allclose(energies, expected.energy(x, masses), rtol=1e-10)


@pytest.mark.parametrize("d", ENGINES)
@pytest.mark.parametrize("beta", [-3.0, 0.0, 1.0, 30.0])
def test_energy(d, beta):
    for drift in (mf.USA(beta), mf.SA(beta), mf.Interaction.chebyshev([0.3, 1.0, -0.5])):
        for kind in CONFIGURATIONS:
            x, masses = tokens(kind, 300, d)
            energy = ENGINES[d](drift).energy(x, masses)
            expected = DirectSums(drift).energy(x, masses)
            np.testing.assert_allclose(energy, expected, rtol=1e-9)
    assert ENGINES[d](mf.SA(800.0)).energy(x, masses) == np.inf


@pytest.mark.parametrize("d", ENGINES)
def test_rotations_and_permutations_go_through(d):
    rng = np.random.default_rng(1)
    x, masses = tokens("clustered", 500, d)
    rotation, order = np.linalg.qr(rng.standard_normal((d, d)))[0], rng.permutation(500)
    engine = ENGINES[d](mf.SA(4.0))
    velocity = engine.velocity(x, masses)
    turned = engine.velocity(np.ascontiguousarray(x @ rotation), masses)
    assert error(turned, velocity @ rotation) < 1e-12
    permuted = engine.velocity(np.ascontiguousarray(x[:, order]), masses[:, order])
    assert error(permuted, velocity[:, order]) < 1e-12


@pytest.mark.parametrize("d", ENGINES)
def test_only_directions_count(d):
    x, masses = tokens("clustered", 300, d)
    longer = x * np.random.default_rng(2).uniform(0.9, 1.1, (1, 300, 1))
    engine = ENGINES[d](mf.USA(3.0))
    velocity = engine.velocity(longer, masses)
    assert error(velocity, engine.velocity(x, masses)) < 1e-12
    assert np.abs((velocity * x).sum(axis=2)).max() < 1e-13 * np.abs(velocity).max()


def test_tokens_at_the_poles_and_next_to_them():
    x = np.array([[[0, 0, 1.0], [0, 0, -1], [1e-9, 0, 1], [0, -3e-162, 1], [0.6, 0, 0.8]]])
    x = np.concatenate([x, unit(np.random.default_rng(0).standard_normal((1, 20, 3)))], axis=1)
    assert largest_error(SphereModes(mf.USA(5.0)), x, np.full((1, 25), 0.04)) < 1e-10


@pytest.mark.repeats
@pytest.mark.parametrize("d", ENGINES)
def test_kernels_without_decaying_harmonics_are_refused(d):
    root = mf.Interaction(lambda t: -np.sqrt(1 - t**2))
    with pytest.raises(mf.MeanfieldError, match="degree 4096"):
        ENGINES[d](root)
