"""Characteristics as a state: what it holds, what it measures, what it refuses."""

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(16).density(lambda x: 1 + 0.5 * np.cos(x - 1) + 0.2 * np.cos(2 * x))
SPHERE = mf.Sphere(8).density(lambda x, y, z: 1 + 0.5 * z + 0.3 * x * y - 0.2 * y)
DENSITIES = {
    "circle": CIRCLE,
    "sphere": SPHERE,
    "d = 2": mf.Zonal(2, 8).zonal([1, 0.5, 0.2]),
    "d = 3": mf.Zonal(3, 8).zonal([1, -0.5, 0.2]),
    "d = 64": mf.Zonal(64, 8).zonal([1, 0.5]),
    "narrow on the circle": mf.Circle(512).von_mises(2.0, 2e3),
    "narrow in d = 8": mf.Zonal(8, 128).von_mises_fisher(-60.0),
    "uniform": mf.Sphere(4).uniform(),
    "data": mf.Circle(64).estimate(np.random.default_rng(0).vonmises(1, 3, 40), bandwidth=0.2),
}
every_density = pytest.mark.parametrize("density", DENSITIES.values(), ids=DENSITIES)
NAN = float("nan")


# What it holds -----------------------------------------------------------------------------


@every_density
def test_it_has_the_coefficients_of_the_density(density):
    """In units of a Dirac's. Measured: 1e-14 of it; scattered transforms on S^2: 1e-12."""
    state = mf.Characteristics(density)
    fine = density.resample(density.space.degree)
    scale = np.abs(fine.coefficients).max()
    found = state.coefficients(density.space.degree)
    assert np.abs(found - fine.coefficients).max() <= 2e-13 * scale
    for k in range(1, 9):
        difference = np.abs(state.moment(k) - density.moment(k)).max()
        assert difference <= 2e-13 * max(1, np.abs(density.moment(1)).max())


@every_density
def test_its_mass_is_one_and_its_nodes_are_on_the_sphere(density):
    state = mf.Characteristics(density)
    assert state.mass == pytest.approx(1, abs=1e-13) and state.shape == ()
    assert len(state) == len(state.masses) == len(state.points) == len(state.coordinates)
    assert state.points.shape[1] == density.space.dimension
    np.testing.assert_allclose(np.linalg.norm(state.points, axis=1), 1, rtol=0, atol=3e-16)
    assert state.masses.min() >= -2e-15  # a density of high degree is rounded to 1e-15 or so
    assert state.resolved and state.quadrature_error <= 1e-12
    assert f"{len(state)} nodes on S^{density.space.dimension - 1}" in repr(state)


@pytest.mark.parametrize(("name", "count"), [("circle", 4096), ("sphere", 16384), ("d = 64", 1024)])
def test_by_default_it_has_so_many_nodes(name, count):
    """On S^2 whole latitudes, of 36 nodes for a density of degree 8."""
    assert count - 36 < len(mf.Characteristics(DENSITIES[name])) <= count
    assert 4096 - 36 < len(mf.Characteristics(DENSITIES[name], nodes=4096)) <= 4096


@every_density
def test_fewer_nodes_are_either_enough_or_refused(density):
    """Never wrong: those that pass have the density's moments to 1e-10."""
    for nodes in (64, 256, 1000, 3000):
        try:
            state = mf.Characteristics(density, nodes=nodes)
        except ValueError as error:
            assert "do not integrate this density" in str(error)
            continue
        assert len(state) <= max(nodes, 64)
        exact = density.coefficients
        error = np.abs(state.coefficients(density.space.degree) - exact).max()
        assert error <= 1e-10 * np.abs(exact).max()


def test_nothing_can_be_written_into_it():
    state = mf.Characteristics(CIRCLE)
    for array in (state.coordinates, state.masses, state.points):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


# The limit ---------------------------------------------------------------------------------


def test_the_limit_is_the_mean_direction():
    state = mf.Characteristics(CIRCLE)
    mean = CIRCLE.moment(1) / abs(CIRCLE.moment(1))
    np.testing.assert_allclose(state.limit, [mean.real, mean.imag], rtol=0, atol=1e-15)
    np.testing.assert_allclose(state.mean_direction, state.limit, rtol=0, atol=1e-14)
    south = mf.Characteristics(DENSITIES["d = 3"])
    np.testing.assert_array_equal(south.limit, [0, 0, -1])


@pytest.mark.parametrize("space", [mf.Circle(4), mf.Sphere(4), mf.Zonal(5, 4)], ids=repr)
def test_without_a_mean_the_limit_is_the_last_axis(space):
    state = mf.Characteristics(space.uniform())
    np.testing.assert_array_equal(state.limit, np.eye(space.dimension)[-1])


@pytest.mark.parametrize("limit", [[0.6, -0.8], (1, 0), np.array([0.0, 1.0 + 1e-10])], ids=str)
def test_another_limit_changes_no_moment(limit):
    state, usual = mf.Characteristics(CIRCLE, limit=limit), mf.Characteristics(CIRCLE)
    np.testing.assert_allclose(state.coefficients(8), usual.coefficients(8), rtol=0, atol=1e-14)
    assert np.linalg.norm(state.limit) == pytest.approx(1, abs=1e-16)


# Measuring ---------------------------------------------------------------------------------


def test_w2_to_a_dirac_is_the_second_moment_of_the_angle():
    """On the circle int theta^2 (1 + a cos theta) = pi^2 / 3 - 2 a about the mean."""
    a, about = 0.5, mf.Circle(4).density(lambda x: 1 + 0.5 * np.cos(x - 1))
    state = mf.Characteristics(about)
    assert state.w2_to_dirac() ** 2 == pytest.approx(np.pi**2 / 3 - 2 * a, rel=1e-13)
    opposite = -mf.Circle.embed(1.0)
    assert state.w2_to_dirac(opposite) ** 2 == pytest.approx(np.pi**2 / 3 + 2 * a, rel=1e-13)


def test_of_the_uniform_density_on_s2():
    """(1/2) int theta^2 sin theta dtheta = pi^2 / 2 - 2, in every frame."""
    exact = np.sqrt(np.pi**2 / 2 - 2)
    for space in (mf.Sphere(4), mf.Zonal(3, 4)):
        assert mf.Characteristics(space.uniform()).w2_to_dirac() == pytest.approx(exact, 1e-13)
    state = mf.Characteristics(mf.Sphere(4).uniform(), limit=[0.6, 0, 0.8])
    assert state.w2_to_dirac([0.6, 0, 0.8]) == pytest.approx(exact, rel=1e-13)


@every_density
def test_expectations_are_those_of_the_density(density):
    state = mf.Characteristics(density)
    for f in (lambda x: x[:, -1] ** 2, lambda x: np.exp(1j * x[:, -1])):
        assert state.expect(f) == pytest.approx(density.expect(f), abs=1e-12)
    assert state.expect(lambda x: x[:, -1:] ** np.arange(5)).shape == (5,)


@pytest.mark.parametrize(
    "make", [lambda density: density, mf.Characteristics], ids=["density", "nodes"]
)
@pytest.mark.parametrize("d", [2, 3, 6])
def test_what_is_not_symmetric_about_the_axis_has_no_expectation(d, make):
    """The nodes lie on one meridian: its values would be taken for those of the sphere."""
    state = make(mf.Zonal(d, 8).zonal([1, 0.5]))
    for f in (lambda x: x[:, 0], lambda x: np.exp(x[:, 0] + x[:, -1])):
        with pytest.raises(ValueError, match="f must be symmetric about the axis e_d"):
            state.expect(f)
    if d > 2:
        with pytest.raises(ValueError, match=r"changes f by \d"):
            state.expect(lambda x: x[:, 1] ** 2)


def test_moments_follow_the_conventions_of_the_space():
    state = mf.Characteristics(CIRCLE)
    assert state.moment(-2) == np.conj(state.moment(2))
    assert state.moment(0) == pytest.approx(1, abs=1e-14)
    assert state.moment(np.int64(40)) == pytest.approx(0, abs=1e-13)
    assert mf.Characteristics(SPHERE).moment(3).shape == (4,)


def test_the_quadrature_error_is_large_where_nodes_part():
    """Two nodes of mass 1/2 and 1/4, 1/4: either half is off by 1/2 and more."""
    state = mf.Characteristics(mf.Circle(4).uniform(), nodes=256)
    torn = state.moved(np.where(np.arange(256) % 4 < 2, 0.0, 3.0) * (np.arange(256) % 2))
    assert torn.quadrature_error > 0.1 and not torn.resolved
    assert state.resolved


def test_moved_keeps_the_masses():
    state = mf.Characteristics(SPHERE)
    turned = state.moved(-state.points)
    assert turned.masses is state.masses and turned.space == state.space
    np.testing.assert_allclose(turned.moment(1), -state.moment(1), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(turned.limit, state.limit)
