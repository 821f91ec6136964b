"""Multipliers of drifts on the torus, and kernels of differences of angles."""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf

TORUS = mf.Torus(10)
BESSEL = iv(np.abs(TORUS.waves), 1.5).prod(axis=1)


class SlopeAlone(mf.ZonalDrift):
    """W' = exp(b t), without a closed form."""

    b: float

    def slope(self, t):
        return np.exp(self.b * t)


def kernel(z, w):
    return np.exp(1.5 * (np.cos(z) + np.cos(w))) / 1.5


@pytest.mark.parametrize(
    "drift",
    [
        mf.USA(1.5),
        mf.Interaction(lambda t: np.exp(1.5 * t) / 1.5),
        mf.PeriodicKernel(kernel),
        SlopeAlone(1.5),
    ],
    ids=["closed form", "Interaction", "PeriodicKernel", "slope"],
)
def test_multipliers_of_exponentials_are_products_of_bessel_functions(drift):
    found = TORUS.attraction(drift)
    scale = kernel(0, 0)  # by quadrature they are accurate relative to the largest value
    np.testing.assert_allclose(found[1:], BESSEL[1:] / 1.5, rtol=0, atol=4e-15 * scale)


def test_softmax_is_normalised_by_the_first_multiplier():
    drift = mf.SA(np.array([1.5, -1.5]))
    z = TORUS.normaliser(drift)
    sign = (-1.0) ** TORUS.waves.sum(axis=1)
    expected = BESSEL / BESSEL[0] * np.stack([np.ones_like(sign), sign])
    np.testing.assert_allclose(z, expected, rtol=1e-13, atol=0)
    np.testing.assert_allclose(
        TORUS.attraction(drift)[:, 1:], (z / [[1.5], [-1.5]])[:, 1:], rtol=1e-13
    )


def test_kuramoto_is_the_limit_and_sums_are_linear():
    linear = np.where(-TORUS.laplacian == 1, 0.5, 0.0)
    for drift in (mf.Kuramoto(), mf.USA(0.0), mf.USA(1e-305)):
        np.testing.assert_array_equal(TORUS.attraction(drift), linear)
    total = (mf.USA(1.5) - 0.3 * mf.Kuramoto()).as_zonal()
    expected = TORUS.attraction(mf.USA(1.5)) - 0.3 * linear
    np.testing.assert_allclose(TORUS.attraction(total), expected, rtol=1e-15)
    energy = TORUS.interaction(mf.USA(1.5))
    np.testing.assert_allclose(energy[0], BESSEL[0] / 1.5, rtol=1e-14)


def test_a_kernel_that_is_not_even_has_complex_multipliers_and_no_free_energy():
    drift = mf.PeriodicKernel(lambda z, w: np.cos(z + 0.4) + 0.3 * np.sin(w - z))
    table = dict(zip(map(tuple, TORUS.waves), TORUS.attraction(drift), strict=True))
    assert table[1, 0] == pytest.approx(0.5 * np.exp(0.4j), abs=1e-15)
    assert table[-1, 1] == pytest.approx(-0.15j, abs=1e-15)
    assert not drift.gradient_flow and mf.PeriodicKernel(kernel).gradient_flow


def test_the_rate_of_a_kernel_is_its_largest_slope():
    assert mf.PeriodicKernel(lambda z, w: 2 * np.cos(z) + 0 * w).rate() == pytest.approx(2, 1e-12)


@pytest.mark.parametrize(
    ("drift", "message"),
    [
        (mf.CosineSeries([0.0, 1.0]), "a series in the angle between two points of a sphere"),
        (mf.USA(500.0), r"needs 2 \|beta\| <= 700"),
        (mf.Interaction(np.abs), "did not converge: with 2048 points in each direction"),
        (mf.PeriodicKernel(np.cos, 1), r"is for 1 angles; got Torus\(degree=10\)"),
    ],
    ids=["series", "overflow", "kink", "angles"],
)
def test_drifts_without_multipliers_are_refused(drift, message):
    with pytest.raises(mf.MeanfieldError, match=message):
        TORUS.attraction(drift)


def test_kernels_of_differences_are_refused_on_spheres():
    drift = mf.PeriodicKernel(kernel)
    with pytest.raises(ValueError, match="is for dimension 4; got points of dimension 3"):
        mf.solve(mf.Transformer(drift, kappa=2.0), mf.Sphere(4).uniform(), (0, 1))
    with pytest.raises(mf.MeanfieldError, match=r"a Density on Torus\(degree, 2\)"):
        mf.solve(mf.Transformer(drift), mf.Tokens.uniform(5, 4, rng=0), (0, 1))
    with pytest.raises(ValueError, match="finite, but 64 are not"):
        with np.errstate(divide="ignore"):
            TORUS.attraction(mf.PeriodicKernel(lambda z, w: np.log(np.abs(z) + 0 * w)))
