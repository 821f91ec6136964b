"""Integrals of functions that the grid of a density does not show are warned of, with an error."""

import re
import warnings

import numpy as np
import pytest

import meanfield as mf
from meanfield import UnresolvedWarning

DENSITIES = {
    "circle": mf.Circle(16).von_mises(0.3, 2.0),
    "sphere": mf.Sphere(16).von_mises_fisher([0.0, 0.6, 0.8], 2.0),
    "d = 3": mf.Zonal(3, 16).von_mises_fisher(2.0),
    "d = 20": mf.Zonal(20, 16).von_mises_fisher(2.0),
    "stack": mf.Density.stack([mf.Circle(16).von_mises(0.3, k) for k in (0.5, 2.0)]),
    "slices": mf.Circle(16).indexed(lambda s, theta: 1 + s * np.cos(theta) / 2),
}
every_density = pytest.mark.parametrize("mu", DENSITIES.values(), ids=DENSITIES)
ROUGH = {
    "jump": lambda x: x[..., -1] > 0.123,
    "kink": lambda x: np.abs(x[..., -1] - 0.123),
    "narrow": lambda x: np.exp(300 * (x[..., -1] - 1)),
}


@every_density
@pytest.mark.parametrize("f", ROUGH.values(), ids=ROUGH)
def test_what_the_grid_does_not_show_is_warned_of_with_the_size_of_the_error(mu, f):
    with pytest.warns(UnresolvedWarning, match="resample") as caught:
        found = mu.expect(f)
    told = float(re.search(r"changes by (\S+) on", str(caught[0].message))[1])
    fine = (mu.marginal() if hasattr(mu, "marginal") else mu).resample(400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = fine.expect(f)
    error = np.abs(found - exact).max()
    assert told / 50 <= error <= 50 * told


@every_density
def test_what_it_shows_is_not(mu):
    """Harmonics up to twice the degree, complex and several at once, and functions that are 0."""
    for k in (1, 2, 17, 32):
        t = np.polynomial.Chebyshev.basis(k)
        found = mu.expect(lambda x, t=t: np.stack([t(x[..., -1]), 1j * x[..., -1]], axis=-1))
        assert found.shape == (*mu.shape, 2)
    assert (mu.expect(lambda x: 0 * x[..., 0]) == 0).all()
    assert mu.expect(lambda x: x[..., :0]).shape == (*mu.shape, 0)


def test_a_finer_grid_is_the_remedy():
    mu = DENSITIES["circle"]
    with pytest.warns(UnresolvedWarning):
        mu.expect(ROUGH["narrow"])
    mu.resample(512).expect(ROUGH["narrow"])
