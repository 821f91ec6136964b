"""Densities on different spaces have no common ensemble and no mixture."""

import pytest

import meanfield as mf

CIRCLE, EVEN = mf.Circle(8).fourier([1, 0.25]), mf.Zonal(2, 8).zonal([1, 0.5])
PAIRS = [
    (CIRCLE, EVEN),
    (mf.Zonal(4, 8).uniform(), mf.Zonal(5, 8).uniform()),
    (mf.Sphere(8).uniform(), mf.Zonal(3, 8).uniform()),
    (mf.Sphere(8).uniform(), CIRCLE),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " and ".join(map(str, pair)))
def test_different_spaces_are_refused(pair):
    for one, other in (pair, pair[::-1]):
        with pytest.raises(ValueError, match="live on different spaces"):
            mf.Density.stack([one, other])
        with pytest.raises(ValueError, match="live on different spaces"):
            0.5 * one + 0.5 * other


def test_different_degrees_are_not():
    fine = mf.Circle(32).fourier([1, 0.25])
    assert mf.Density.stack([CIRCLE, fine]).space.degree == 32
    assert (0.5 * CIRCLE + 0.5 * fine).moment(1) == pytest.approx(0.25)


@pytest.mark.parametrize("space", [mf.Circle(8), mf.Zonal(3, 8)], ids=str)
def test_an_odd_density_that_is_not_resolved_is_noticed(space):
    """Its coefficient of degree 8 is 0: both parities count."""
    with pytest.warns(mf.UnresolvedWarning, match="highest coefficients are"):
        space.density(lambda x: 1.0 * (x > 0) * (x < 3.14159))
