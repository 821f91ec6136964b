"""Tokens from hidden states of a network, of any precision, and their moments."""

import numpy as np
import pytest

import meanfield as mf

H = 7 * np.random.default_rng(0).standard_normal((3, 5, 64))


def test_hidden_states_are_their_directions_times_their_lengths():
    tokens = mf.Tokens.from_hidden(H)
    np.testing.assert_allclose(tokens.radii, np.linalg.norm(H, axis=-1), rtol=1e-15)
    np.testing.assert_allclose(tokens.radii[..., None] * tokens.x, H, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_lengths_neither_overflow_nor_vanish(scale):
    tokens = mf.Tokens.from_hidden(H * scale)
    np.testing.assert_allclose(tokens.radii / scale, np.linalg.norm(H, axis=-1), rtol=1e-14)


@pytest.mark.parametrize("precision", [np.float16, np.float32])
def test_hidden_states_of_a_network_are_taken_in_its_precision(precision):
    h = H.astype(precision)
    tokens, exact = mf.Tokens.from_hidden(h), mf.Tokens.from_hidden(h.astype(float))
    assert np.array_equal(tokens.x, exact.x) and np.array_equal(tokens.radii, exact.radii)


def test_a_hidden_state_of_zero_has_no_direction():
    with pytest.raises(ValueError, match="no direction at index 1, 2"):
        mf.Tokens.from_hidden(np.where(np.arange(15).reshape(3, 5, 1) == 7, 0, H))


@pytest.mark.parametrize("precision", [np.float16, np.float32])
def test_vectors_normalised_in_single_precision_are_unit_vectors_in_double(precision):
    rounded = (H / np.linalg.norm(H, axis=-1, keepdims=True)).astype(precision)
    x = mf.Tokens(rounded).x
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), 1, rtol=0, atol=1e-15)
    along = (x * rounded).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(x * along, rounded.astype(float), rtol=0, atol=1e-15)


def test_only_rounding_is_forgiven():
    unit = H / np.linalg.norm(H, axis=-1, keepdims=True)
    for wrong in (unit * (1 + 1e-8), (unit * (1 + 1e-5)).astype(np.float32)):
        with pytest.raises(ValueError, match=r"Tokens.from_hidden\(h\).* radii") as refused:
            mf.Tokens(wrong)
        assert ("single precision" in str(refused.value)) == (wrong.dtype == float)
    again = unit.astype(np.float32).astype(float)  # the advice works
    with pytest.raises(ValueError, match="single precision: cast to double first"):
        mf.Tokens(again)
    mf.Tokens(again / np.linalg.norm(again, axis=-1, keepdims=True))


def test_unit_vectors_of_double_precision_keep_every_bit():
    x = H / np.linalg.norm(H, axis=-1, keepdims=True)
    assert np.array_equal(mf.Tokens(x).x, x)


def test_pre_norm_reads_the_lengths():
    h = H[0, :, :3]
    model = mf.Transformer(mf.SA(1.0), normalisation=mf.PreLN())
    layer = mf.steppers.Layers
    run = mf.solve(model, mf.Tokens.from_hidden(h), (0, 1), dt=1.0, scheme=layer)
    theta = h / np.linalg.norm(h, axis=-1, keepdims=True)
    weights = np.exp(theta @ theta.T)
    expected = h + weights @ theta / weights.sum(axis=1, keepdims=True)
    found = run.final.radii[:, None] * run.final.x
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(h).max())


# Moments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [mf.Circle(12), mf.Sphere(12)], ids=repr)
@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_moments_of_nodes_are_those_of_the_density(space, k):
    density = space.perturbed(0.05, rng=0, degrees=range(1, 6))
    tokens = mf.Tokens(space.points, space.weights * density.values)
    assert tokens.moment(k).shape == density.moment(k).shape
    np.testing.assert_allclose(tokens.moment(k), density.moment(k), rtol=0, atol=1e-14)


@pytest.mark.parametrize("d", [2, 3])
def test_moments_of_replicas_are_those_of_each(d):
    tokens = mf.Tokens.uniform(20, d, rng=0, shape=(3, 2))
    found = tokens.moment(4)
    for index in np.ndindex(3, 2):
        single = mf.Tokens(tokens.x[index], tokens.masses[index])
        np.testing.assert_allclose(found[index], single.moment(4), rtol=0, atol=1e-15)


def test_harmonics_of_high_degree_have_the_sum_of_squares_one():
    tokens = mf.Tokens.uniform(1, 3, rng=0)
    squares = np.abs(tokens.moment(400)) ** 2
    np.testing.assert_allclose(squares[0] + 2 * squares[1:].sum(), 1, rtol=1e-12)


def test_moments_are_known_on_the_circle_and_on_the_sphere():
    with pytest.raises(ValueError, match="expect"):
        mf.Tokens.uniform(4, 5, rng=0).moment(1)
    with pytest.raises(ValueError, match="k must be"):
        mf.Tokens.uniform(4, 3, rng=0).moment(-1)
    circle = mf.Tokens.uniform(4, 2, rng=0)
    assert circle.moment(-3) == np.conj(circle.moment(3))


def test_raw_hidden_states_of_a_file_are_directions_and_radii(tmp_path):
    h = (5 * np.random.default_rng(0).standard_normal((2, 4, 3))).astype(np.float16)
    np.savez(tmp_path / "states.npz", hidden=h)
    tokens = mf.Tokens.from_file(tmp_path / "states.npz", key="hidden", normalise=True)
    assert tokens.shape == (2,)
    np.testing.assert_allclose(tokens.radii[..., None] * tokens.x, h.astype(float), rtol=1e-14)
    with pytest.raises(ValueError, match=r"normalise must be False for tokens of R\^d"):
        mf.Tokens.from_file(tmp_path / "states.npz", on_sphere=False, normalise=True)
    np.save(tmp_path / "zero.npy", np.zeros((2, 3)))
    with pytest.raises(mf.StorageError, match="no direction at index 0"):
        mf.Tokens.from_file(tmp_path / "zero.npy", normalise=True)
