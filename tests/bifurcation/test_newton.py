"""Matrices with few coupled columns, with another row and column."""

import numpy as np
import pytest

from meanfield.bifurcation.newton import Bordered, Coupled, determinant, solved


def test_bordered_matrices_are_solved_as_dense_ones():
    rng = np.random.default_rng(4)
    columns, along = rng.standard_normal((12, 3)), rng.standard_normal(12)
    row, right = rng.standard_normal(13), rng.standard_normal(13)
    matrix = Bordered(Coupled(columns, np.array([2, 7, 11])), along, row)
    dense = np.eye(13)
    dense[:12, [2, 7, 11]] -= columns
    dense[:12, 12], dense[12] = along, row
    assert solved(matrix, right) == pytest.approx(np.linalg.solve(dense, right), abs=1e-12)
    assert determinant(matrix) == pytest.approx(np.linalg.det(dense), rel=1e-12)
    singular = matrix._replace(along=0 * along, row=0 * row)
    with pytest.raises(np.linalg.LinAlgError):
        solved(singular, right)
