"""Random Q, K, V: their symmetries and second moments, within five standard errors."""

import numpy as np
import pytest

from meanfield.models import Attention, ensembles

EVERY = [ensembles.ginibre, ensembles.ginibre_product, ensembles.goe, ensembles.wishart]


@pytest.mark.parametrize("draw", EVERY)
def test_a_seed_and_its_generator_give_the_same_matrices(draw):
    np.testing.assert_array_equal(draw(5, 3, (2,)), draw(5, np.random.default_rng(3), (2,)))
    assert draw(5, 3).shape == (5, 5)
    assert draw(5, 3, (4, 2)).shape == (4, 2, 5, 5)
    assert not np.allclose(*draw(5, 3, (2,)))
    with pytest.raises(ValueError, match="dimension must be a whole number >= 1; got"):
        draw(0, 3)


def test_heads_have_fewer_rows():
    Q, K = ensembles.ginibre(8, 1, (2, 4), rows=2)
    assert Attention(Q, K).dimension == 8
    with pytest.raises(ValueError, match="rows must be a whole number >= 1; got rows = 0"):
        ensembles.ginibre(8, 1, rows=0)


@pytest.mark.parametrize("draw", [ensembles.ginibre, ensembles.ginibre_product, ensembles.goe])
def test_entries_have_mean_zero_and_variance_one(draw):
    """Off the diagonal; a pair (i, j) of each of 2000 matrices, which are independent."""
    entries = draw(6, 7, (2000,))[:, 1, 4]
    assert abs(entries.mean()) < 5 / np.sqrt(2000)
    squares = entries**2
    assert abs(squares.mean() - 1) < 5 * squares.std() / np.sqrt(2000)


def test_goe_is_symmetric_with_twice_the_variance_on_the_diagonal():
    matrices = ensembles.goe(4, 11, (2000,))
    np.testing.assert_array_equal(matrices, matrices.swapaxes(1, 2))
    squares = matrices[:, 2, 2] ** 2
    assert abs(squares.mean() - 2) < 5 * squares.std() / np.sqrt(2000)


def test_wishart_is_positive_with_trace_d_sqrt_d():
    matrices = ensembles.wishart(9, 13, (500,))
    np.testing.assert_allclose(matrices, matrices.swapaxes(1, 2), rtol=0, atol=1e-13)
    assert np.linalg.eigvalsh(matrices).min() > -1e-12
    traces = np.trace(matrices, axis1=1, axis2=2)
    assert abs(traces.mean() - 27) < 5 * traces.std() / np.sqrt(500)


def test_eigenvalues_fill_the_interval_that_is_named():
    """Edges at d = 150; fluctuations there are of the relative order d^(-2/3) = 4 %."""
    d = 150
    semicircle = np.linalg.eigvalsh(ensembles.goe(d, 17)) / np.sqrt(d)
    assert abs(semicircle[0] + 2) < 0.15 and abs(semicircle[-1] - 2) < 0.15
    assert abs(np.linalg.eigvalsh(ensembles.wishart(d, 17))[-1] / np.sqrt(d) - 4) < 0.4
    disc = np.abs(np.linalg.eigvals(ensembles.ginibre(d, 17))).max() / np.sqrt(d)
    assert abs(disc - 1) < 0.15
