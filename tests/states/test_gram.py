"""Gram matrices: inner products of unit vectors, and what is not one."""

import numpy as np
import pytest

from meanfield import Gram, Tokens


def test_they_are_those_of_tokens_and_back():
    tokens = Tokens.uniform(6, 4, rng=0, shape=(3,))
    gram = tokens.gram()
    assert gram.shape == (3,) and len(gram) == 6 and repr(gram) == "Gram(n=6, replicas=(3,))"
    back = gram.to_tokens()
    assert back.dimension == 6
    # Eigenvalues of size up to 6; those that are 0 have square roots of rounding, 1e-8, which do
    # not matter for the products.
    np.testing.assert_allclose(back.gram().G, gram.G, rtol=0, atol=2e-14)
    np.testing.assert_array_equal(gram[1].G, gram.G[1])


@pytest.mark.parametrize(
    ("G", "message"),
    [
        (np.ones((2, 3)), r"G.shape must be \(n, n\)"),
        ([[1, 0.5], [0.4, 1]], "the asymmetry is 0.1"),
        ([[1, 0.5], [0.5, 1.2]], "off by 0.2"),
        ([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], "the lowest is -0.8"),
        ([[1, np.nan], [np.nan, 1]], "inner products of Gram must be finite; got 2 nan"),
    ],
    ids=["shape", "asymmetric", "diagonal", "indefinite", "nan"],
)
def test_what_is_no_gram_matrix_is_refused(G, message):
    with pytest.raises(ValueError, match=message):
        Gram(G)


def test_it_is_a_copy_that_cannot_be_changed():
    G = np.eye(3)
    gram = Gram(G)
    G[0, 1] = 5
    assert gram.G[0, 1] == 0
    with pytest.raises(ValueError, match="read-only"):
        gram.G[0, 1] = 1


def test_tokens_in_space_have_none():
    with pytest.raises(ValueError, match="unit vectors; these are in R"):
        Tokens([[1.0], [2.0]], on_sphere=False).gram()


def test_replicas_alone_are_indexed():
    gram = Tokens.uniform(6, 4, rng=0, shape=(3,)).gram()
    with pytest.raises(IndexError, match=r"Replicas alone .*\(3,\).*masses, inner_product"):
        gram[:, 1:]
    np.testing.assert_array_equal(gram[1:].G, gram.G[1:])
    assert gram[..., 2].shape == ()
