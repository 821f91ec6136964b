"""Branches that leave other branches, and branches in high dimensions."""

import numpy as np
import pytest
from scipy.special import ive

import meanfield as mf
from meanfield.bifurcation.detection import across

CIRCLE = mf.Circle(16)


def test_a_polar_branch_leaves_the_nematic_one():
    """W = cos + 1.5 cos 2: the uniform state turns nematic at 4/3, and that polar, with a jump."""
    drift = mf.Interaction.chebyshev([0, 1, 1.5])
    found = mf.branches(drift, CIRCLE, (1.0, 3.0))
    (leaves,) = found.special("bifurcation", 1)
    assert not found.warnings and len(found.ends) == 3
    assert np.abs(leaves.state.stability(3).eigenvalues).min() < 1e-9
    assert len(found.special("fold", 3)) == 1
    polar = dict(found.states_at(1.6))[3]
    others = mf.stationary_states(mf.Transformer(drift, 1.6), CIRCLE)
    assert polar.stability().stable
    assert min(abs(polar.order_parameter - s.order_parameter) for s in others) < 1e-10
    assert found.ground_state(1.6).order_parameter == pytest.approx(polar.order_parameter)


def test_a_branch_leaves_across_its_parent():
    rng = np.random.default_rng(3)
    kernel = np.linalg.qr(rng.standard_normal((7, 2)))[0].T
    along = kernel.T @ [0.6, 0.8] + 1e-3 * rng.standard_normal(7)
    found = across(kernel, along)
    assert np.linalg.norm(found) == pytest.approx(1) and abs(found @ along) < 1e-15
    np.testing.assert_allclose(kernel.T @ (kernel @ found), found, atol=1e-15)


def test_secondary_bifurcations_are_located_to_rounding():
    """W = cos + m cos 2: kappa = 2/(1 + q) with q = I_1(kappa m q)/I_0(kappa m q)."""
    m = 1.7
    found = mf.branches(mf.Interaction.chebyshev([0, 1, m]), CIRCLE, (1.0, 1.5), stability=False)
    (leaves,) = found.special("bifurcation", 1)
    q = 2 / leaves.kappa - 1
    x = leaves.kappa * m * q
    assert ive(1, x) / ive(0, x) == pytest.approx(q, abs=1e-12)
    assert leaves.state.legendre_moments[1] == pytest.approx(q, abs=1e-9)


@pytest.mark.long
def test_steps_do_not_shrink_with_the_dimension():
    space, options = mf.Zonal(10, 32), {"stability": False, "secondary": False, "degrees": [1]}
    found = mf.branches(mf.USA(6.0), space, (0.25, 3.0), **options)
    (fold,) = found.special("fold")
    assert not found.warnings and (found.data.branch == 1).sum() < 150
    assert fold.status == "converged" and fold.state.residual < 1e-12
    assert np.abs(fold.state.stability(3).eigenvalues).min() < 1e-6
