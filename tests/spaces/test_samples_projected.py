"""Tokens of any dimension on their principal circle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.spaces import principal_circle

reproducible = settings(deadline=None, derandomize=True, max_examples=40)
ROUNDING = 1e-12  # of a singular value decomposition; plane coordinates below are > 1e-2


def cloud(n, d, seed=0):
    """Tokens stretched along two axes of a random frame, so that the plane is well defined."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.standard_normal((d, d)))[0]
    widths = np.concatenate([[4, 2], np.full(d - 2, 0.3)])
    return (rng.standard_normal((n, d)) * widths) @ frame.T


@reproducible
@given(st.integers(2, 30), st.integers(3, 12), st.integers(0, 2**32 - 1))
def test_the_plane_keeps_the_most_of_the_normalised_tokens(n, d, seed):
    tokens = cloud(n, d, seed)
    unit = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    result = principal_circle(tokens)
    assert result.shape == (n, 2)
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), 1, rtol=0, atol=1e-14)
    eigenvectors = np.linalg.eigh(unit.T @ unit)[1][:, ::-1][:, :2]
    plane = unit @ eigenvectors
    expected = plane / np.linalg.norm(plane, axis=1, keepdims=True)
    # Each axis is known up to its sign; two roads to the same eigenvectors differ by the
    # rounding over their gap and over the distance of a token from the plane's normal.
    for axis in range(2):
        sign = np.sign(expected[:, axis] @ result[:, axis])
        np.testing.assert_allclose(result[:, axis], sign * expected[:, axis], rtol=0, atol=1e-6)


@reproducible
@given(st.integers(2, 40), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_tokens_in_a_plane_keep_their_angles(n, d, seed):
    rng = np.random.default_rng(seed)
    theta = rng.uniform(-np.pi, np.pi, n)
    frame = np.linalg.qr(rng.standard_normal((d, 2)))[0]
    circle = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    result = principal_circle(circle @ frame.T)
    np.testing.assert_allclose(result @ result.T, circle @ circle.T, rtol=0, atol=ROUNDING)


def test_lengths_of_the_tokens_do_not_matter():
    tokens = cloud(20, 5)
    scaled = tokens * np.geomspace(1e-3, 1e3, 20)[:, None]
    np.testing.assert_allclose(
        principal_circle(scaled), principal_circle(tokens), rtol=0, atol=ROUNDING
    )


def test_a_rotation_of_all_tokens_changes_signs_of_axes_at_most():
    tokens = cloud(20, 5)
    rotation = np.linalg.qr(np.random.default_rng(9).standard_normal((5, 5)))[0]
    before, after = principal_circle(tokens), principal_circle(tokens @ rotation.T)
    np.testing.assert_allclose(np.abs(before), np.abs(after), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(
        np.abs(before @ before.T), np.abs(after @ after.T), rtol=0, atol=ROUNDING
    )


def test_directions_are_of_the_second_moment_not_of_the_covariance():
    """A tight cluster off the origin: the covariance would drop its mean direction."""
    rng = np.random.default_rng(3)
    tokens = np.array([0.0, 0.0, 1.0]) + rng.standard_normal((50, 3)) * [0.2, 0.02, 0.01]
    result = principal_circle(tokens)
    assert np.abs(result[:, 0]).min() > 0.8  # all near the first axis: they stay one cluster


def test_the_largest_entry_of_each_direction_is_positive():
    theta = np.linspace(-1, 1, 8)  # symmetric about the second axis of R^3
    tokens = np.stack([0 * theta, -np.cos(theta), 0.3 * np.sin(theta)], axis=1)
    result = principal_circle(tokens)
    assert (result[:, 0] < 0).all()  # first direction is +e_2, not the tokens' side
    assert (np.sign(result[:, 1]) == np.sign(theta)).all()  # second direction is +e_3


@pytest.mark.parametrize("n", [3, 200], ids=["fewer than dimensions", "many"])
def test_a_tight_cluster_is_seen_along_its_longest_direction(n):
    """Tokens 1e-9 apart, as late in a run: their second moment alone has lost that to rounding."""
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    deviations = rng.standard_normal((n, 4)) * [1e-9, 1e-11, 1e-11, 1e-11]
    deviations -= deviations.mean(axis=0)
    tokens = np.hstack([np.ones((n, 1)), deviations]) @ frame.T
    result = principal_circle(tokens)
    spread = np.std(result @ [-result[0, 1], result[0, 0]])
    # The other directions turn the axis by 1e-2 at most; unit vectors are rounded to 1e-16.
    assert spread == pytest.approx(deviations[:, 0].std(), rel=1e-2)


@pytest.mark.parametrize("shape", [(5,), (1, 3), (4, 1), (0, 3), (2, 3, 4), ()], ids=str)
def test_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"tokens.shape .* d >= 2"):
        principal_circle(np.ones(shape))


def test_tokens_without_a_direction_are_counted():
    tokens = cloud(6, 3)
    tokens[1], tokens[2], tokens[4, 0] = 0, 0, np.nan
    with pytest.raises(ValueError, match="got 1 not finite and 2 zero among 6"):
        principal_circle(tokens)


def test_a_token_orthogonal_to_the_plane_is_refused():
    tokens = np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="1 tokens are orthogonal to the 2 leading"):
        principal_circle(tokens)
