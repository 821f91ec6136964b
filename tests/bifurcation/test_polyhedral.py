"""States on S^2 with the symmetry of a polyhedron: invariants, branches, stability, files."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.bifurcation.bases import basis_on
from meanfield.bifurcation.point_groups import POLYHEDRA, Invariants, point_group

SPHERE = mf.Sphere(16)
SERIES = {"tetrahedral": (3, 4), "octahedral": (4, 6), "icosahedral": (6, 10)}
P4 = mf.Interaction(lambda t: np.polynomial.legendre.Legendre.basis(4)(t), name="P_4")


@cache
def octahedral_branch():
    return mf.branches(
        P4, SPHERE, (8.0, 9.05), symmetry="octahedral", save_at=[8.15], max_points=80
    )


@pytest.mark.parametrize(("group", "powers"), SERIES.items())
def test_invariants_are_as_many_as_molien_says(group, powers):
    expected = np.zeros(25, dtype=int)
    for i in range(0, 25, powers[0]):
        for j in range(0, 25 - i, powers[1]):
            expected[i + j] += 1
    found = np.bincount(Invariants(group, 24).degrees, minlength=25)
    np.testing.assert_array_equal(found[1:], expected[1:])


@pytest.mark.parametrize("group", POLYHEDRA)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_bases_are_orthonormal_eigenfunctions(group, order):
    whole = Invariants(group, 24)
    assert whole.orders == (3 if group == "tetrahedral" else 5)
    if order >= whole.orders:
        return
    basis = whole.of_order(order)
    gram = (basis.values * basis.weights) @ basis.values.T
    np.testing.assert_allclose(gram, np.eye(len(gram)), rtol=0, atol=1e-13)
    stiffness = sum((g * basis.weights) @ g.T for g in basis.gradients)
    np.testing.assert_allclose(stiffness, np.diag(basis.eigenvalues), rtol=0, atol=1e-10)


@pytest.mark.parametrize("group", POLYHEDRA)
def test_invariants_are_invariant_and_finer_bases_begin_with_coarser_ones(group):
    x = np.random.default_rng(1).standard_normal((40, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    coarse, fine = Invariants(group, 16), Invariants(group, 27)
    values = fine.at(x)
    np.testing.assert_allclose(coarse.at(x), values[: len(coarse.degrees)], rtol=0, atol=1e-12)
    for g in point_group(group).generators:
        np.testing.assert_allclose(fine.at(x @ g.T), values, rtol=0, atol=1e-11)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(list(POLYHEDRA)), st.integers(0, 2**32 - 1))
def test_moments_and_densities_are_inverse(group, seed):
    basis = basis_on(SPHERE, group)
    a = 0.02 * np.random.default_rng(seed).standard_normal(len(basis.degrees))
    density = basis.density(a / basis.sizes, None)
    moments = basis.moments(density)[0]
    np.testing.assert_allclose(moments, a / basis.sizes, rtol=0, atol=1e-14)
    direct = 1 + a @ basis.at(density.space.points)
    np.testing.assert_allclose(density.values, direct, rtol=0, atol=1e-13)


@pytest.mark.long
def test_the_octahedral_branch_is_transcritical_with_a_fold():
    """kappa = 9 s/E p on mu = exp(s p)/Z: one function of degree 4, all others follow it."""
    (onset,) = octahedral_branch().special("bifurcation", 0)
    assert onset.character == "transcritical" and onset.value == pytest.approx(9, abs=1e-12)
    (fold,) = octahedral_branch().special("fold")
    grid = mf.Sphere(48)
    p = Invariants("octahedral", 16).at(grid.points)[0]
    s = np.linspace(0.2, 3.0, 300)
    law = grid.weights[:, None] * np.exp(p[:, None] * s)
    kappa = 9 * s / (p @ law / law.sum(axis=0))
    assert fold.kappa == pytest.approx(kappa.min(), abs=1e-5) and fold.kappa <= kappa.min()
    assert octahedral_branch().transition().order == "discontinuous"
    low, high = octahedral_branch().transition().hysteresis
    assert low == fold.kappa and high == pytest.approx(9)


@pytest.mark.long
def test_stability_of_the_octahedral_branch():
    """Stable between the fold and the loss of symmetry; rotations are neutral."""
    (fold,), (broken,) = map(octahedral_branch().special, ("fold", "symmetry breaking"))
    assert fold.kappa < broken.kappa and broken.order == 1
    states = [s for number, s in octahedral_branch().saved if number == fold.branch]
    gaps = sorted(s.stability().gap for s in states)
    assert len(gaps) == 2 and gaps[0] < 0 < gaps[1]
    for state in states:
        found = state.stability(8)
        assert found.neutral.sum() == 1 and found.orders[found.neutral] == [2]
        assert abs(found.eigenvalues[found.neutral][0]) < 1e-10


@pytest.mark.long
def test_a_polyhedral_state_is_found_again_and_stays():
    state = max((s for _, s in octahedral_branch().saved), key=lambda s: abs(s.legendre_moments[0]))
    again = mf.stationary(state.model, state.density, symmetry="octahedral")
    assert again.converged
    np.testing.assert_allclose(again.legendre_moments[:6], state.legendre_moments[:6], atol=1e-11)
    same = mf.stability(state.model, again.density, symmetry="octahedral").gap
    assert same == pytest.approx(state.stability().gap, abs=1e-9)
    with pytest.raises(ValueError, match="lacks symmetry about an axis"):
        mf.stability(state.model, state.density)
    run = mf.solve(state.model, state.density, (0, 1), rtol=1e-10, t_eval=[1.0])
    moved = run.final.moment(4) - state.density.moment(4)
    assert np.abs(moved).max() < 1e-11 and state.order_parameter == 0


@pytest.mark.long
def test_a_polyhedral_diagram_is_kept_in_a_file_and_drawn(tmp_path):
    path = octahedral_branch().save(tmp_path / "diagram.nc")
    again = mf.load(path)
    assert repr(again) == repr(octahedral_branch()) and again.symmetry == "octahedral"
    assert again.data.identical(octahedral_branch().data)
    for one, other in zip(again.special_points, octahedral_branch().special_points, strict=True):
        np.testing.assert_array_equal(one.state.legendre_moments, other.state.legendre_moments)
    figure = again.plot()
    assert figure.axes[0].get_ylabel().startswith("moment 4")
    again.plot(y=["moment 6", "free_energy"]).savefig(tmp_path / "figure.png")


def test_symmetries_that_a_space_has_not_got():
    with pytest.raises(ValueError, match="symmetry must be 'axisymmetric'"):
        mf.branches(P4, mf.Circle(16), (8.0, 9.5), symmetry="octahedral")
    with pytest.raises(ValueError, match="symmetry must be 'axisymmetric'"):
        mf.branches(P4, SPHERE, (8.0, 9.5), symmetry="cubic")
    with pytest.raises(ValueError, match="no bifurcation of degree 5"):
        mf.branches(P4, SPHERE, (8.0, 9.5), symmetry="octahedral", degrees=[5])
