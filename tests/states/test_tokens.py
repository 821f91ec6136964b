"""Tokens: weighted points of the sphere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield import Tokens

reproducible = settings(deadline=None, derandomize=True, max_examples=40)


def points(n, d, seed=0):
    """Uniform points of the sphere."""
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@reproducible
@given(st.integers(1, 30), st.integers(2, 9))
def test_an_expectation_is_the_weighted_sum(n, d):
    x, masses = points(n, d), np.random.default_rng(1).dirichlet(np.ones(n))
    tokens = Tokens(x, masses)
    assert len(tokens) == n
    assert repr(tokens) == f"Tokens(n={n}, d={d})"
    # At most 30 terms of size at most 1.
    expected = sum(mass * point for mass, point in zip(masses, x, strict=True))
    np.testing.assert_allclose(tokens.expect(lambda y: y), expected, rtol=0, atol=1e-14)
    assert tokens.expect(lambda y: y[:, 0] ** 2) == pytest.approx(masses @ x[:, 0] ** 2, rel=1e-13)
    assert tokens.expect(lambda y: np.ones(len(y))) == pytest.approx(1, abs=1e-14)


def test_a_function_may_be_matrix_valued():
    x = points(5, 3)
    second = Tokens(x).expect(lambda y: y[:, :, None] * y[:, None, :])
    np.testing.assert_allclose(second, x.T @ x / 5, rtol=0, atol=1e-15)  # 5 terms below 1


def test_masses_are_equal_unless_given():
    np.testing.assert_array_equal(Tokens(points(8, 2)).masses, 1 / 8)


def test_tokens_are_a_copy_that_cannot_be_changed():
    x, masses = points(3, 2), np.array([0.5, 0.25, 0.25])
    tokens = Tokens(x, masses)
    x[0], masses[0] = 7, 7
    assert tokens.x.max() <= 1
    assert tokens.masses[0] == 0.5
    for array in (tokens.x, tokens.masses):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (3, 1), (3, 0), (2, 0, 2)], ids=str)
def test_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"x of shape \(n, d\) with d >= 2, or .*; got \("):
        Tokens(np.ones(shape))


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (1.25, r"off by 0.25, that of x\[2\].*Divide by the norms first"),
        (np.nan, "3 entries of x are not finite"),
        (0, r"x\[2\] is the zero vector"),
    ],
)
def test_vectors_must_be_unit_vectors(length, message):
    x = points(4, 3)
    x[2] *= length
    with pytest.raises(ValueError, match=message):
        Tokens(x)


@pytest.mark.parametrize(
    "masses",
    [[0.5, 0.5], [0.5, 0.6, -0.1], [0.3, 0.3, 0.3], [np.nan, 0.5, 0.5], [[1, 0, 0]], 1.0],
    ids=["count", "negative", "sum", "nan", "shape", "number"],
)
def test_masses_must_be_a_probability(masses):
    with pytest.raises(ValueError, match="expects 3 masses >= 0 of sum 1; got shape"):
        Tokens(points(3, 2), masses)
