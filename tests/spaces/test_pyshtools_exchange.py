"""pyshtools both ways: normalisation, phase, grids, and what is refused."""

import numpy as np
import pytest

import meanfield as mf

pyshtools = pytest.importorskip("pyshtools")


def lopsided(degree=12):
    """A density without symmetry."""
    return mf.Sphere(degree).density(
        lambda x, y, z: 1 + 0.3 * z + 0.2 * x * y + 0.1 * (x**2 - z**2) + 0.15 * np.sin(y + z)
    )


POINTS = np.random.default_rng(0).standard_normal((40, 3))
POINTS /= np.linalg.norm(POINTS, axis=1, keepdims=True)
LATITUDES = np.degrees(np.arcsin(POINTS[:, 2]))
LONGITUDES = np.degrees(np.arctan2(POINTS[:, 1], POINTS[:, 0]))


def test_pyshtools_sees_the_same_values():
    density = lopsided()
    values = mf.to_pyshtools(density).expand(lat=LATITUDES, lon=LONGITUDES)
    np.testing.assert_allclose(values, density.at(POINTS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("normalization", ["4pi", "ortho", "schmidt", "unnorm"])
@pytest.mark.parametrize("csphase", [1, -1])
def test_every_normalisation_comes_back(normalization, csphase):
    density = lopsided()
    other = mf.to_pyshtools(density).convert(normalization=normalization, csphase=csphase)
    again = mf.from_pyshtools(other)
    np.testing.assert_allclose(again.coefficients, density.coefficients, rtol=0, atol=1e-14)


@pytest.mark.parametrize("grid", ["DH2", "GLQ"])
def test_a_grid_becomes_a_density(grid):
    density = lopsided()
    again = mf.from_pyshtools(mf.to_pyshtools(density).expand(grid=grid))
    np.testing.assert_allclose(again.at(POINTS), density.at(POINTS), rtol=0, atol=1e-12)


def test_what_is_no_density_on_the_sphere_is_refused():
    with pytest.raises(TypeError, match="a single one on a Sphere"):
        mf.to_pyshtools(mf.Circle(4).uniform())
    with pytest.raises(TypeError, match="a single one on a Sphere"):
        mf.to_pyshtools(mf.Density.stack([lopsided(), lopsided()]))
    with pytest.raises(TypeError, match="of pyshtools; got field"):
        mf.from_pyshtools(np.zeros((2, 4, 4)))
    with pytest.raises(ValueError, match="real"):
        mf.from_pyshtools(mf.to_pyshtools(lopsided()).convert(kind="complex"))
    twice = mf.to_pyshtools(lopsided()) * 2
    with pytest.raises(ValueError, match="mass"):
        mf.from_pyshtools(twice)
