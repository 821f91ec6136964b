"""States whose harmonics are multiples of n: `stationary`, `branches` and `cycle` resolve them.

Under W = cos(n theta)/n and V(n theta)/n the density nu(n theta) moves as nu does under W = cos
theta and V, n times as fast, if kappa is n times as large.
"""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf

KAPPA = 2.4
ORDERED = 0.5448889866116082  # r = I_1(2.4 r)/I_0(2.4 r)
FOLDS = pytest.mark.parametrize("n", [3, 5, 6, 12])


def cosine(n):
    """The drift of W = cos(n theta)."""
    return mf.CosineSeries(np.eye(n + 1)[n])


def angle(x):
    """The angle of points of the circle."""
    return np.arctan2(x[..., 1], x[..., 0])


def along(x, speeds):
    """The vectors of speeds along the circle."""
    return speeds[..., None] * np.stack([-x[..., 1], x[..., 0]], axis=-1)


@FOLDS
@pytest.mark.parametrize("degree", [16, 24])
def test_states_of_n_clusters_have_the_moments_of_bessel_functions(n, degree):
    guess = mf.Circle(degree).density(lambda theta: 1 + 0.95 * np.cos(n * theta))
    found = mf.stationary(mf.Transformer(cosine(n), KAPPA), guess)
    assert found.converged and found.stable
    moments = [abs(found.density.moment(k * n)) for k in (1, 2)]
    expected = iv(np.array([1, 2]), KAPPA * ORDERED) / iv(0, KAPPA * ORDERED)
    assert moments == pytest.approx(expected.tolist(), abs=1e-11)
    energy = ORDERED**2 / 2 - np.log(iv(0, KAPPA * ORDERED)) / KAPPA
    assert found.free_energy == pytest.approx(energy, abs=1e-12)


@FOLDS
@pytest.mark.parametrize("degree", [12, 24, 32])
def test_the_law_of_a_potential_of_one_harmonic_has_the_free_energy_of_its_integral(n, degree):
    """F = -log I_0(kappa)/kappa for V = cos(n theta)."""
    V = mf.Potential(lambda x: np.cos(n * angle(x)))
    found = mf.stationary(mf.Transformer(V, 1.5), mf.Circle(degree).von_mises(0.0, 0.3))
    assert found.converged
    assert found.free_energy == pytest.approx(-np.log(iv(0, 1.5)) / 1.5, abs=1e-12)


@pytest.mark.parametrize("n", [5, 6])
def test_the_branch_of_n_clusters_has_the_moments_of_bessel_functions(n):
    found = mf.branches(
        cosine(n), mf.Circle(24), (1.9, 2.5), degrees=[n], save_at=[KAPPA], secondary=False,
        stability=False,
    )  # fmt: skip
    moments = [abs(state.density.moment(n)) for branch, state in found.saved if branch > 0]
    assert moments == pytest.approx([ORDERED], abs=1e-10)


@pytest.mark.parametrize("n", [3])
def test_a_wave_of_n_clusters_has_the_period_of_one(n):
    """Active rotators and their n-fold covering."""

    def rotators(n):
        field = mf.Field(lambda x: along(x, 0.8 / n - 0.5 * np.sin(n * angle(x)) / n))
        return mf.Transformer(2.0 / n**2 * cosine(n) + field, 1.4 * n**2)

    one, many = (
        mf.cycle(
            rotators(k), mf.Circle(8).density(lambda t, k=k: 1 + 0.3 * np.cos(k * t)),
            tolerance=1e-7,
        ) for k in (1, n)
    )  # fmt: skip
    assert one.converged and many.converged
    assert many.period == pytest.approx(one.period, abs=1e-6)
    size = one.extremes(lambda state: abs(state.moment(1)))
    assert many.extremes(lambda state: abs(state.moment(n))) == pytest.approx(size, abs=1e-6)


def test_an_indexed_density_of_n_clusters_has_the_moment_of_bessel_functions():
    n, index = 6, mf.Positions(order=3)
    guess = mf.Circle(24).indexed(lambda s, theta: 1 + 0.95 * np.cos(n * theta) + 0 * s, index)
    found = mf.stationary(mf.Transformer(cosine(n), KAPPA), guess)
    assert abs(found.density.moment(n)) == pytest.approx(ORDERED, abs=1e-10)


@pytest.mark.parametrize("space", [mf.Circle(24), mf.Zonal(4, 24)], ids=repr)
def test_a_kernel_above_the_degree_makes_the_uniform_state_unstable(space):
    """Above the onset of its degree, kappa W_40 = 1; below it is stable."""
    drift = cosine(40)
    onset = 1 / drift.attraction(40, space.dimension)[40]
    for kappa, stable in ((0.9 * onset, True), (1.1 * onset, False)):
        state = mf.stationary(mf.Transformer(drift, kappa), space.uniform())
        assert state.stable == stable


def test_onsets_above_the_degree_are_named():
    found = mf.branches(cosine(40), mf.Circle(24), (1.9, 2.1), stability=False)
    assert any("40" in warning for warning in found.warnings)


def test_a_search_finds_the_clusters_of_a_kernel_above_the_degree():
    states = mf.stationary_states(mf.Transformer(cosine(40), KAPPA), mf.Circle(24))
    assert sorted(state.stable for state in states) == [False, True]


def test_a_potential_beyond_the_finest_degree_of_a_search_is_refused():
    V = mf.Potential(lambda x: np.cos(900 * angle(x)))
    with pytest.raises(mf.MeanfieldError, match=r"at most 512, .* got 900"):
        mf.stationary(mf.Transformer(V, 1.0), mf.Circle(24).uniform())


@pytest.mark.parametrize(("n", "a", "b"), [(19, 0.05, 1.0), (27, 0.55, 0.5), (30, 1.3, 0.1)])
def test_low_harmonics_do_not_hide_the_gaps_between_multiples_of_high_ones(n, a, b):
    """V = a cos(theta) + b cos(n theta): F = -log(mean of exp(V)), by the trapezoidal rule."""
    terms = lambda theta: a * np.cos(theta) + b * np.cos(n * theta)  # noqa: E731
    V = mf.Potential(lambda x: terms(angle(x)))
    found = mf.stationary(mf.Transformer(V, 1.0), mf.Circle(16).von_mises(0.1, 0.1))
    expected = -np.log(np.exp(terms(2 * np.pi * np.arange(4096) / 4096)).mean())
    assert found.converged
    assert found.free_energy == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("n", [pytest.param(5, marks=pytest.mark.long), 8])
def test_the_other_angle_of_a_torus_does_not_hide_such_gaps(n):
    """They need more than the highest degree of a search: it says so."""
    V = mf.Potential(lambda x: np.cos(n * angle(x[..., :2])) + 0.5 * x[..., 3])
    with pytest.warns(mf.UnresolvedWarning, match="Degree 30 does not resolve"):
        found = mf.stationary(mf.Transformer(V, 1.0), mf.Torus(8).uniform())
    assert found.status == "unresolved"
    assert found.free_energy == pytest.approx(-np.log(iv(0, 1.0) * iv(0, 0.5)), abs=1e-4)


@pytest.mark.parametrize("size", [1e-4, 1e-10, 1e-14])
def test_weak_potentials_under_weak_noise_break_the_rotations(size):
    V = mf.Potential(lambda x: size * x[..., 0])
    found = mf.stationary(mf.Transformer(V, 1 / size), mf.Circle(16).von_mises(0.3, 0.5))
    moment = found.density.moment(1)
    assert abs(moment - iv(1, 1) / iv(0, 1)) < 1e-13


def test_a_potential_of_absolute_values_is_differenced_at_nodes_where_they_are_0():
    V = mf.Potential(lambda x: np.abs(x[..., 1]) ** 5)
    found = mf.stationary(mf.Transformer(V, 2.0), mf.Circle(16).uniform())
    density = found.density
    law = np.exp(2 * np.abs(density.space.points[:, 1]) ** 5)
    np.testing.assert_allclose(density.values, law / law.mean(), atol=1e-9)


def test_the_uniform_state_of_a_branch_has_the_growth_rate_of_a_kernel_above_the_degree():
    """n^2 (1/2 - 1/kappa) under W = cos(n theta)."""
    n, kappa = 64, 2.116
    found = mf.branches(cosine(n), mf.Circle(24), (1.9, 2.3), degrees=[n], secondary=False)
    state = found.states_at(kappa)[0][1]
    assert not state.stable
    assert -state.stability().gap == pytest.approx(n**2 * (1 / 2 - 1 / kappa), rel=1e-10)


def test_branches_in_another_parameter_see_kernels_above_the_degree_at_their_edges():
    family = lambda s: mf.Transformer(cosine(40) + s * mf.Kuramoto(), KAPPA)  # noqa: E731
    found = mf.branches(family, mf.Circle(24), (0.0, 0.3), stability=False)
    assert [warning for warning in found.warnings if "at s = 0," in warning and "40" in warning]


def test_a_branch_names_the_degree_that_it_lacks():
    """exp(kappa V) with V = cos(40 theta)/3 has the moments I_k(kappa/3)/I_0 of degrees 40 k."""
    V = mf.Potential(lambda x: np.cos(40 * angle(x)) / 3)
    found = mf.branches(mf.Transformer(V, 1.0), mf.Circle(24), kappa=(1.8, 2.4))
    (warning,) = [warning for warning in found.warnings if "max_degree" in warning]
    needed = int(warning.split("about ")[1].split(",")[0])
    k = np.arange(1, 20)
    resolved = 40 * k[iv(k, 0.6) < 1e-12 * iv(0, 0.6)][0]
    assert needed == pytest.approx(resolved, rel=0.2)


def test_a_cycle_feels_a_wave_above_the_degree_of_its_guess():
    """Active rotators, faster and slower 16 times a turn; the period is that from degree 48 on."""
    speeds = lambda t: 0.8 - 0.5 * np.sin(t) + 0.3 * np.cos(16 * t)  # noqa: E731
    field = mf.Field(lambda x: along(x, speeds(angle(x))))
    model = mf.Transformer(2.0 * mf.Kuramoto() + field, 1.4)
    guess = mf.Circle(8).density(lambda t: 1 + 0.3 * np.cos(t))
    found = mf.cycle(model, guess, tolerance=1e-6)
    assert found.converged and found.period == pytest.approx(9.1059521872, abs=1e-6)
