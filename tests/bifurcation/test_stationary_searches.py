"""Searches for all states of a model: none of those on branches is missed, and no order matters."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import iv, spherical_in

import meanfield as mf
from meanfield.bifurcation.index_sums import index_sum
from meanfield.bifurcation.multistability import states_beside

SHARES = (0.005, 0.03, 0.2, 0.7, 0.99)
TWO_MODES = mf.CosineSeries([0.0, 1.0, 0.8])


def on_circle(beta):
    return mf.USA(beta), mf.Circle(32), beta / iv(1, beta)


CASES = {
    "beta 3.5": on_circle(3.5),
    "beta 4": on_circle(4.0),
    "beta 5": on_circle(5.0),
    "beta 6": on_circle(6.0),
    "beta 8": on_circle(8.0),
    "cos + 0.8 cos 2": (TWO_MODES, mf.Circle(32), 2.0),
    "S^3, beta 5": (mf.USA(5.0), mf.Zonal(4, 24), 25.0 / (2 * iv(2, 5.0))),
}
MISSED = [("beta 5", 0.01), ("beta 5", 0.02), ("beta 6", 0.002), ("beta 6", 0.01),
          ("beta 8", 0.002), ("beta 8", 0.01)]  # fmt: skip


@cache
def followed(case):
    """The diagram from below the fold to the onset, the least fold and the onset."""
    drift, space, onset = CASES[case]
    diagram = mf.branches(drift, space, (0.5 * onset, 1.02 * onset), secondary=False)
    return diagram, min(fold.value for fold in diagram.special("fold")), onset


def check(case, share):
    """The search has every state of the branches, each converged."""
    drift, space, _ = CASES[case]
    diagram, fold, onset = followed(case)
    kappa = fold + share * (onset - fold)
    wanted = sorted(state.order_parameter for _, state in diagram.states_at(kappa))
    states = mf.stationary_states(mf.Transformer(drift, kappa), space)
    assert len(wanted) == 3 and all(state.converged for state in states)
    found = sorted(state.order_parameter for state in states)
    assert found == pytest.approx(wanted, abs=1e-8)


@pytest.mark.repeats
@pytest.mark.parametrize("case, share", MISSED)
def test_the_ordered_state_near_a_fold_is_found_from_its_saddle(case, share):
    """Missed before at these shares of the way from the fold to the onset."""
    check(case, share)


@pytest.mark.repeats
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("case", CASES)
def test_every_state_between_fold_and_onset_is_found(case, share):
    check(case, share)


@pytest.mark.long
def test_the_sphere_has_the_states_of_its_zonal_densities():
    """At a hundredth of the way from the fold, near 0.618 for beta 4, to the onset."""
    onset = 4.0 / spherical_in(1, 4.0)
    kappa = 0.6182725550 + 0.01 * (onset - 0.6182725550)
    each = [
        mf.stationary_states(mf.Transformer(mf.USA(4.0), kappa), space)
        for space in (mf.Sphere(16), mf.Zonal(3, 32))
    ]
    one, other = ([state.order_parameter for state in states] for states in each)
    assert len(one) == 3
    assert one == pytest.approx(other, abs=1e-9)


@pytest.mark.long
def test_without_a_free_energy_the_flow_of_the_density_finds_states():
    """Anisotropic noise: waves along x are saddles, and along y stable; none was found before.

    The uniform state has index two, but index one among states with the symmetry of either.
    """
    model = mf.Transformer(mf.USA(5.0), 0.3, noise=mf.Anisotropic(np.diag([1.1, 0.9])))
    states = mf.stationary_states(model, mf.Circle(32))
    moments = {state.stable: state.density.moment(1) for state in states if state.order_parameter}
    assert abs(moments[True].real) < 1e-9 < 0.9 < abs(moments[True].imag)
    run = mf.solve(model, mf.Circle(32).von_mises(0.3, 2.0), (0, 60), rtol=1e-8)
    assert run.final.moment(1) == pytest.approx(abs(moments[True]) * 1j, abs=1e-6)


@pytest.mark.long
def test_searches_repeat_themselves():
    """With random starts too: the same table from the same seed."""
    model = mf.Transformer(mf.USA(5.0), 0.1847)
    one, other = (mf.stationary_states(model, mf.Circle(32), starts=3, rng=7) for _ in range(2))
    assert one.data.equals(other.data) and one.tried == other.tried
    assert len(one) == len(mf.stationary_states(model, mf.Circle(32)))


@pytest.mark.long
def test_states_that_no_degree_resolves_are_counted_and_no_stable_one_is_said():
    """USA(1) at kappa = 12 on the torus: the ordered state needs a degree above 64."""
    torus = mf.Torus(12, 2)
    starts = [torus.von_mises([0, 0], 1.5)]
    found = mf.stationary_states(mf.Transformer(mf.USA(1.0), 12.0), torus, starts=starts)
    assert len(found) == 0 and found.unresolved == found.tried == 1
    assert "At 1 of 1 calls" in found.warnings[0] and found.warnings[0] in repr(found)
    model = mf.Transformer(mf.USA(1.0), 5.0)
    uniform = mf.stationary_states(model, mf.Circle(16), starts=[mf.Circle(16).uniform()])
    assert uniform.unresolved == 0 and len(uniform) == 1
    assert "None of these states is stable" in uniform.warnings[0]
    assert mf.stationary_states(model, mf.Circle(16)).warnings == []
    first = mf.stationary_states(model, mf.Circle(16), count=1)
    assert first.cut_off and "as many as count allows" in "".join(first.warnings)


def test_starts_are_densities_or_a_number():
    model = mf.Transformer(mf.USA(1.0), 5.0)
    with pytest.raises(ValueError, match="one density or more"):
        mf.stationary_states(model, mf.Circle(16), starts=[])
    for starts in (-1, 10**400):
        with pytest.raises(ValueError, match="starts must be a whole number >= 0"):
            mf.stationary_states(model, mf.Circle(16), starts=starts)
    for starts in (True, 1.5, np.timedelta64(3)):
        with pytest.raises(TypeError, match="starts must be densities, or a number of random ones"):
            mf.stationary_states(model, mf.Circle(16), starts=starts)


@pytest.mark.long  # 70 s
def test_the_ordered_state_of_the_torus_is_found():
    """USA(1) at kappa = 5: it is the end of `solve`, of degree 60, and the only stable state."""
    model, torus = mf.Transformer(mf.USA(1.0), 5.0), mf.Torus(8, 2)
    found = mf.stationary_states(model, torus)
    assert [state.stable for state in found] == [True] + (len(found) - 1) * [False]
    start = mf.Torus(60, 2).von_mises([0, 0], 8.0)
    run = mf.solve(model, start, (0.0, 60.0), until="steady", rtol=1e-9)
    order = run.observables["order_parameter"].values[-1]
    assert found[0].order_parameter == pytest.approx(order, abs=1e-7)


def test_the_number_of_unresolved_states_is_saved(tmp_path):
    model, circle = mf.Transformer(mf.USA(1.0), 5.0), mf.Circle(16)
    found = mf.stationary_states(model, circle, starts=[circle.uniform()])
    found.save(tmp_path / "states.nc")
    assert mf.load(tmp_path / "states.nc").warnings == found.warnings


def test_both_sides_of_a_saddle_are_followed():
    states = mf.stationary_states(mf.Transformer(mf.USA(4.0), 0.402), mf.Circle(32))
    (saddle,) = (state for state in states if not state.stable)
    ends = sorted(end.order_parameter for end in states_beside(saddle, "axisymmetric"))
    assert ends == pytest.approx([0.0, 0.751354], abs=1e-6)


def moments_at_rest(law, m):
    """All solutions of m = E x, with respect to exp(law(m)) on points x of a circle, by SciPy."""
    found = []
    for start in m:
        end = root(lambda z: law(z) - z, start, tol=1e-14)
        near = any(np.abs(end.x - other).max() < 1e-6 for other in found)
        if np.abs(law(end.x) - end.x).max() < 1e-11 and not near:
            found.append(end.x)
    return np.array(found)


@pytest.mark.repeats
@pytest.mark.parametrize("share, kappa", [(0.8, 2.6), (1.0, 2.2), (0.8, 4.0), (-0.5, 3.0)])
def test_above_the_second_onset_too_all_even_states_are_found(share, kappa):
    """At 2.6 and 2.2 a state with two unstable modes was missed: the sum of indices says so."""
    angles = 2 * np.pi * np.arange(128) / 128
    waves = np.array([np.cos(angles), np.cos(2 * angles)])

    def law(m):
        masses = np.exp(kappa * (m * [1.0, share]) @ waves)
        return waves @ masses / masses.sum()

    grid = np.stack(np.meshgrid(np.linspace(0, 1, 12), np.linspace(-1, 1, 24)), -1).reshape(-1, 2)
    wanted = {tuple(np.abs(m) if abs(m[0]) < 1e-6 else [abs(m[0]), m[1]])
              for m in moments_at_rest(law, grid).round(7)}  # fmt: skip
    states = mf.stationary_states(
        mf.Transformer(mf.CosineSeries([0.0, 1.0, share]), kappa), mf.Circle(32)
    )
    found = [state.legendre_moments[:2].round(7) for state in states]
    found = [np.abs(m) if abs(m[0]) < 1e-6 else np.array([abs(m[0]), m[1]]) for m in found]
    np.testing.assert_allclose(sorted(map(tuple, found)), sorted(wanted), rtol=0, atol=1e-6)
    assert states.index_sum == 1 and states.warnings == []
    assert index_sum(states[1:]) == -1  # without both images of the stable state


def test_a_missing_state_is_a_warning():
    """On Zonal the branch of degree 3 above its onset was missed; without it the sum is -1."""
    states = mf.stationary_states(mf.Transformer(mf.USA(4.0), 3.0), mf.Zonal(3, 24))
    branches = mf.branches(mf.USA(4.0), mf.Zonal(3, 24), (2.0, 3.2), progress=False)
    wanted = sorted(state.order_parameter for _, state in branches.states_at(3.0))
    assert sorted(s.order_parameter for s in states) == pytest.approx(wanted, abs=1e-8)
    assert states.index_sum == 1 and states.warnings == []
    others = [s for s in states if not 1e-3 < s.order_parameter < 0.1]
    assert len(others) == len(states) - 1 and index_sum(others) == -1
    assert "sum to -1, not 1" in "".join(replace(states, index_sum=-1).warnings)


def test_the_sum_of_indices_without_symmetry_and_where_it_is_not_known(tmp_path):
    """With a potential every image counts; with a group on S^2 their number is not known."""
    wells = mf.Potential(lambda x: 0.3 * x[..., 0] ** 2 + 0.05 * x[..., 0])
    states = mf.stationary_states(
        mf.Transformer(2.0 * mf.Kuramoto() + wells, 2.5), mf.Circle(16), progress=False
    )
    assert len(states) == 4 and states.index_sum == 1
    saddle = next(s for s in states if s.leading.eigenvalues[0] > 0 > s.leading.eigenvalues[1])
    assert index_sum([s for s in states if s is not saddle]) == 3  # it has two images
    states.save(tmp_path / "states.nc")
    assert mf.load(tmp_path / "states.nc", model=states.model).index_sum == 1
    group = mf.stationary_states(
        mf.Transformer(mf.USA(4.0), 0.7), mf.Sphere(12), symmetry="D2h", count=2
    )
    assert group.index_sum is None


def test_searches_show_what_they_do(capfd):
    model = mf.Transformer(mf.Kuramoto(), 3.0)
    mf.stationary_states(model, mf.Circle(16), progress=True)
    assert "stationary states from" in capfd.readouterr().err
    mf.stationary_states(model, mf.Circle(16), progress=False)
    assert capfd.readouterr().err == ""


def test_a_search_does_not_warn_of_guesses_without_a_density():
    """Where Z * mu of a guess vanishes, g is infinite; warnings are errors in tests."""
    states = mf.stationary_states(mf.Transformer(mf.SA(-3.0), kappa=1.0), mf.Circle(24))
    assert [state.order_parameter < 1e-12 for state in states] == [True]
