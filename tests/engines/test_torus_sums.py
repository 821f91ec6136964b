"""Sums over tokens on the torus: over pairs, over waves, and the choice between them."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics import TorusTokenMotion
from meanfield.engines import FieldSums, engine_for
from meanfield.spaces.torus import Torus, WavesAt
from meanfield.states.points import on_circles

ANGLES = np.random.default_rng(0).uniform(-np.pi, np.pi, (2, 20, 2))
MASSES = np.tile(np.arange(1, 21) / 210, (2, 1))


def sums(drift, n=20, d=4):
    return engine_for(drift, None, n, d, on_sphere=False)


@pytest.mark.parametrize("cost", [0.0, 1.0], ids=["waves", "pairs"])
@pytest.mark.parametrize("drift", [mf.USA(1.3), mf.SA(1.3), mf.USA(0.0)], ids=repr)
def test_energies_are_sums_over_pairs(drift, cost, monkeypatch):
    monkeypatch.setattr("meanfield.engines.torus.FEWEST_FOR_WAVES", 0)
    monkeypatch.setattr("meanfield.engines.torus.WAVE_COST", cost)
    x, beta = on_circles(ANGLES), float(drift.beta)
    inner = x @ x.swapaxes(1, 2)
    W = np.exp(beta * inner) / beta if beta else inner
    expected = 0.5 * np.einsum("ri,rij,rj->r", MASSES, W, MASSES)
    np.testing.assert_allclose(sums(drift).energy(x, MASSES), expected, rtol=1e-13)


def test_waves_are_chosen_for_many_tokens_and_smooth_weights():
    by_waves = {n: sums(mf.USA(1.0), n)._summed is None for n in (64, 600, 4096)}
    assert by_waves == {64: False, 600: False, 4096: True}
    assert sums(mf.USA(3.0), 10**6)._summed is not None  # 2 beta > 4
    assert sums(mf.USA(1.5), 10**6, 2)._summed is not None  # the modes of the circle
    assert sums(mf.USA(1.0), 10**5, 6)._summed is not None  # its waves in 3 angles are too many
    assert sums(mf.Kuramoto(), 10**6)._summed.name == "mean"


@pytest.mark.parametrize("circles", [1, 2, 3])
def test_waves_at_points_by_blocks(circles, monkeypatch):
    """e^{i<k, x>} of every row and of the last numbers, in one block that is kept, or in many."""
    space, angles = Torus(5, circles), np.random.default_rng(1).uniform(-9, 9, (13, circles))
    for most in (2**22, 50):
        monkeypatch.setattr("meanfield.spaces.torus.PRODUCTS_AT_ONCE", most)
        at = WavesAt(space.rows, on_circles(angles))
        for _ in range(2):
            blocks = list(at)
            assert (len(blocks) == 1) == (most > 50)
            for block, rows, last in blocks:
                expected = np.exp(1j * angles[block, :-1] @ space.rows.waves.T)
                np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-13)
                expected = np.exp(1j * np.outer(angles[block, -1], np.arange(6)))
                np.testing.assert_allclose(last, expected, rtol=0, atol=1e-13)


def test_members_with_parameters_of_their_own_have_the_bits_of_single_ones():
    drift = mf.USA(np.array([0.5, 1.0]))
    x = on_circles(ANGLES)
    together = sums(drift).attention(0.0, x, MASSES)
    for i in range(2):
        alone = sums(drift.member(i)).attention(0.0, x[i : i + 1], MASSES[i : i + 1])
        np.testing.assert_array_equal(together[i], alone[0])


def test_weights_that_overflow_are_refused():
    with pytest.raises(mf.MeanfieldError, match=r"needs 2 \|beta\| <= 700"):
        sums(mf.USA(400.0))
    assert np.isfinite(sums(mf.SA(400.0)).attention(0.0, on_circles(ANGLES), MASSES)).all()


def test_the_field_of_a_pair_kernel_is_that_of_tokens_at_quadrature_nodes():
    torus = mf.Torus(12)
    mu = torus.von_mises([0.3, 1.0], 0.5)
    drift = mf.PairKernel(lambda x, y: np.exp(0.5 * x[..., :1] * y[..., 3:]) * y[..., ::-1])
    run = mf.solve(mf.Transformer(drift, 3.0), mu, (0, 0.1), t_eval=np.linspace(0, 0.1, 4))
    points = on_circles(ANGLES[:1, :5])
    found = FieldSums(mf.MeanField(run)).attention(0.0, points, MASSES[:1, :5])[0]
    masses = mu.values * torus.weights
    kernel = drift.values(points[0][:, None], torus.points)
    np.testing.assert_allclose(found, np.einsum("j,ijd->id", masses, kernel), rtol=0, atol=1e-11)


def test_a_sum_with_a_field_has_waves_and_values():
    """Velocities of USA + Field are the sum of those of both."""
    tokens = mf.Tokens.on_torus(ANGLES, MASSES)
    field = mf.Field(lambda x: x[..., ::-1])
    parts = [
        TorusTokenMotion(mf.Transformer(drift), tokens).velocity(ANGLES, 0.0)
        for drift in (mf.USA(1.0), field, mf.USA(1.0) + field)
    ]
    np.testing.assert_allclose(parts[2], parts[0] + parts[1], rtol=0, atol=1e-14)
