"""Samples of densities on the sphere follow their laws."""

import numpy as np
import pytest
from scipy.special import sph_harm_y

from meanfield import Density, Sphere

EPS = np.finfo(float).eps


def lumpy():
    """A density without any symmetry."""
    return Sphere(24).density(lambda x, y, z: np.exp(0.8 * x - 0.5 * y * z + 0.4 * z**3 + x * y))


def assert_moments_agree(mu, x, degree):
    """The coefficients of the empirical measure, each within 5 of its standard errors."""
    theta, phi = np.arccos(np.clip(x[:, 2:], -1, 1)), np.arctan2(x[:, 1:2], x[:, :1])
    keep = mu.space.degrees <= degree
    l, m = mu.space.degrees[keep], mu.space.orders[keep]
    y = np.sqrt(4 * np.pi) * (-1.0) ** m * np.conj(sph_harm_y(l, m, theta, phi))
    for part, expected in [
        (y.real, mu.coefficients[keep].real),
        (y.imag, mu.coefficients[keep].imag),
    ]:
        error = part.std(axis=0) / np.sqrt(len(x))
        assert (np.abs(part.mean(axis=0) - expected) <= 5 * error + 1e-9).all()


SAMPLED = {
    "lumpy": lambda: lumpy(),
    "uniform": lambda: Sphere(1).uniform(),
    "narrow": lambda: Sphere(128).von_mises_fisher([2 / 3, -1 / 3, 2 / 3], 150.0),
    "at the pole": lambda: Sphere(128).von_mises_fisher([0, 0, 1], 150.0),
    "at the south pole": lambda: Sphere(128).von_mises_fisher([0, 0, -1], 150.0),
    "zero at the pole": lambda: Sphere(4).zonal([1, 1.0]),
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", SAMPLED)
def test_samples_have_the_moments_of_the_density(name):
    mu, n = SAMPLED[name](), 4000
    tokens = mu.sample(n, rng=12)
    assert len(tokens) == n and np.ptp(tokens.masses) == 0
    np.testing.assert_allclose(np.linalg.norm(tokens.x, axis=1), 1, rtol=0, atol=4 * EPS)
    assert_moments_agree(mu, tokens.x, 6)
    np.testing.assert_array_equal(mu.sample(n, rng=12).x, tokens.x)
    assert not (mu.sample(n, rng=13).x == tokens.x).any()


def test_the_height_and_the_longitude_follow_their_laws():
    """Kolmogorov's statistic of a uniform level is below 1.95 / sqrt(n) but once in 1000."""
    n, x = 4000, Sphere(3).zonal([1, 0.9]).sample(4000, rng=0).x
    height = np.sort((1 + x[:, 2]) / 2 + 0.9 * (x[:, 2] ** 2 - 1) / 4)
    turn = np.sort(np.arctan2(x[:, 1], x[:, 0]) / (2 * np.pi) % 1)
    for level in (height, turn):
        assert np.abs(level - (np.arange(n) + 0.5) / n).max() < 1.95 / np.sqrt(n)


def test_samples_are_refused_where_they_make_no_sense():
    with pytest.raises(ValueError, match="one by one"):
        Density.stack([lumpy(), lumpy()]).sample(3, rng=0)
    with pytest.raises(ValueError, match="n must be a whole number >= 1"):
        lumpy().sample(0, rng=0)
    c = np.zeros(6)
    c[:2] = 1, 2
    with pytest.raises(ValueError, match="must not be negative"):
        Density(Sphere(2), c).sample(3, rng=0)
