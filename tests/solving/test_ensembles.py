"""Ensembles: many parameters and many initial densities in one call."""

import numpy as np
import pytest

import meanfield as mf

RTOL = 1e-9
TIMES = [0.0, 0.2, 0.5]
CIRCLE = mf.Circle(24)

INITIAL = [CIRCLE.von_mises(0.5, 1.0), CIRCLE.von_mises(-1.0, 2.0), CIRCLE.fourier([1, 0.1, 0.3j])]


def solve(drift, kappa, density):
    """A short run with a tight tolerance."""
    return mf.solve(mf.Transformer(drift, kappa), density, (0, 0.5), t_eval=TIMES, rtol=RTOL)


def assert_same(one, other, tolerance):
    """Two densities agree in every coefficient that either of them keeps."""
    degree = max(one.geometry.degree, other.geometry.degree)
    difference = one.resample(degree).coefficients - other.resample(degree).coefficients
    assert np.abs(difference).max() <= tolerance


def assert_like_alone(run, members, tolerance=3 * RTOL):
    """Each member agrees with its own run; both err by less than rtol."""
    for index, alone in members.items():
        for together, single in zip(run, alone, strict=True):
            assert_same(together[index], single, tolerance)


# Members -----------------------------------------------------------------------------------


@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=lambda drift: drift.__name__)
def test_many_beta(drift):
    betas = [-1.0, 0.0, 1.0, 4.0]
    run = solve(drift(betas), 6.0, INITIAL[0])
    assert run.shape == (4,)
    assert_like_alone(run, {i: solve(drift(b), 6.0, INITIAL[0]) for i, b in enumerate(betas)})


def test_many_kappa_with_and_without_noise():
    kappas = [0.5, 3.0, np.inf]
    run = solve(mf.SA(2.0), kappas, INITIAL[0])
    assert_like_alone(run, {i: solve(mf.SA(2.0), k, INITIAL[0]) for i, k in enumerate(kappas)})


def test_many_initial_densities():
    run = solve(mf.USA(2.0), 4.0, mf.Density.stack(INITIAL))
    assert run.shape == (3,)
    assert_like_alone(run, {i: solve(mf.USA(2.0), 4.0, d) for i, d in enumerate(INITIAL)})


def test_a_table_of_beta_kappa_and_initial_densities():
    """beta (2, 1, 1), kappa (2, 1) and densities (3,) make (2, 2, 3) by broadcasting."""
    betas, kappas = np.array([0.0, 3.0]), np.array([1.0, 8.0])
    drift = mf.USA(betas[:, None, None])
    run = solve(drift, kappas[:, None], mf.Density.stack(INITIAL))
    assert run.shape == run.final.shape == (2, 2, 3)
    corners = [(0, 0, 0), (0, 1, 2), (1, 0, 1), (1, 1, 2), (1, 1, 0)]
    alone = {(i, j, k): solve(mf.USA(betas[i]), kappas[j], INITIAL[k]) for i, j, k in corners}
    assert_like_alone(run, alone)


def test_a_model_without_parameters_takes_densities_of_any_shape():
    density = mf.Density(CIRCLE, np.stack([d.coefficients for d in INITIAL])[:, None])
    run = solve(mf.Kuramoto(), 3.0, density)
    assert run.shape == (3, 1)
    alone = {(i, 0): solve(mf.Kuramoto(), 3.0, d) for i, d in enumerate(INITIAL)}
    assert_like_alone(run, alone)


def test_axes_of_length_one_are_kept():
    assert solve(mf.USA([2.0]), 3.0, INITIAL[0]).shape == (1,)
    assert solve(mf.USA(2.0), [[3.0]], INITIAL[0]).shape == (1, 1)


# Bits --------------------------------------------------------------------------------------


def test_identical_members_are_identical_in_every_bit():
    """And equal to the run alone: steps follow the worst member, and all are the worst."""
    alone = solve(mf.SA(3.0), 5.0, INITIAL[1])
    copies = solve(mf.SA(3.0), 5.0, mf.Density.stack([INITIAL[1]] * 5))
    tabled = solve(mf.SA([3.0] * 5), [5.0] * 5, INITIAL[1])
    for run in (copies, tabled):
        for together, single in zip(run, alone, strict=True):
            for member in range(5):
                np.testing.assert_array_equal(together[member].coefficients, single.coefficients)


def test_the_order_of_the_members_does_not_matter():
    forwards = solve(mf.USA([1.0, 2.0, 4.0]), 5.0, mf.Density.stack(INITIAL))
    backwards = solve(mf.USA([4.0, 2.0, 1.0]), 5.0, mf.Density.stack(INITIAL[::-1]))
    for one, other in zip(forwards, backwards, strict=True):
        np.testing.assert_array_equal(one.coefficients, other.coefficients[::-1])


# Shared steps and modes --------------------------------------------------------------------


def test_the_worst_member_sets_the_step():
    """A slow member beside a fast one is solved with the steps of the fast one."""
    fast, slow = (solve(mf.USA(beta), 5.0, INITIAL[0]).stats["steps"] for beta in (5.0, 0.0))
    both = solve(mf.USA([0.0, 5.0]), 5.0, INITIAL[0]).stats["steps"]
    assert both == pytest.approx(fast, abs=2) and fast > 2 * slow


def test_the_member_with_most_modes_sets_the_degree():
    run = mf.solve(mf.Transformer(mf.USA([0.0, 4.0]), 20.0), INITIAL[0], (0, 1), rtol=1e-8)
    alone = mf.solve(mf.Transformer(mf.USA(4.0), 20.0), INITIAL[0], (0, 1), rtol=1e-8)
    found = [[d.geometry.degree for d in states] for states in (run, alone)]
    assert found[0] == found[1]


def test_a_member_that_collapses_ends_the_run_for_all():
    with pytest.warns(mf.UnresolvedWarning):
        run = mf.solve(
            mf.Transformer(mf.USA(2.0), [1.0, np.inf]), INITIAL[0], (0, 5), max_degree=64
        )
    assert run.status == "unresolved" and run.shape == (2,) and run.t[-1] < 5


@pytest.mark.parametrize("dt", [None, 0.5], ids=["adaptive", "fixed"])
@pytest.mark.parametrize("betas", [[0.0, 600.0], [600.0, 0.0]], ids=["last", "first"])
def test_a_member_that_overflows_is_not_overlooked_beside_one_that_does_not(betas, dt):
    """Whatever the order: the run fails and the state it returns is finite."""
    model = mf.Transformer(mf.USA(betas), 2.0)
    with pytest.warns(mf.UnresolvedWarning, match="not finite|No step size meets rtol"):
        run = mf.solve(model, INITIAL[0], (0, 5), dt=dt, rtol=1e-3)
    assert run.status == ("not_finite" if dt else "step_too_small")
    assert np.isfinite(run.final.coefficients).all()


def test_steady_means_that_every_member_is():
    model = mf.Transformer(mf.Kuramoto(), [1.0, 2.5])
    run = mf.solve(model, INITIAL[0], (0, 1000), until="steady", rtol=1e-12)
    slower = mf.Transformer(mf.Kuramoto(), 2.5)
    alone = mf.solve(slower, INITIAL[0], (0, 1000), until="steady", rtol=1e-12)
    assert run.status == alone.status == "steady"
    assert run.t[-1] == pytest.approx(alone.t[-1], rel=0.05)
    assert np.abs(run.final[0].coefficients[1:]).max() < 1e-10


# Measured ----------------------------------------------------------------------------------


def test_observables_have_one_value_for_each_member():
    run = solve(mf.USA([[1.0], [3.0]]), [2.0, 4.0, 8.0], INITIAL[0])
    data = run.observables
    assert data.order_parameter.dims == ("t", "member_0", "member_1")
    assert data.order_parameter.shape == (3, 2, 3)
    np.testing.assert_array_equal(data.beta, [1.0, 3.0])
    np.testing.assert_array_equal(data.kappa, [2.0, 4.0, 8.0])
    alone = solve(mf.USA(3.0), 8.0, INITIAL[0]).observables
    for name in ("mass", "entropy", "interaction_energy", "free_energy", "moment_re"):
        together = data[name].isel(member_0=1, member_1=2).values
        np.testing.assert_allclose(together, alone[name].values, atol=1e-7, err_msg=name)
