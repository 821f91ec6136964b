"""Compiled transforms on the torus against those of numpy."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.lowlevel.fourier import good_length
from meanfield.lowlevel.simd import aligned

TORI = [mf.Torus(9, 1), mf.Torus(6), mf.Torus(3, 3)]


@pytest.fixture(params=TORI, ids=repr)
def case(request):
    """A torus, its transforms, random coefficients, and the points of the grid."""
    torus = request.param
    transforms = torus.transforms(3 * torus.degree + 1)
    c = torus.perturbed(0.5 / torus.degrees.size, rng=1).coefficients
    length = good_length(3 * torus.degree + 1)
    axis = 2 * np.pi * np.arange(length) / length
    grid = np.meshgrid(*[axis] * torus.circles, indexing="ij")
    return torus, transforms, c, torus.embed(np.stack([x.ravel() for x in grid], axis=1))


def call(transforms, index, number, source, target):
    transforms.compiled[index](
        transforms._record.address, number, source.ctypes.data, target.ctypes.data
    )
    return target


def test_values_and_their_analysis(case):
    torus, transforms, c, points = case
    assert transforms.size == len(points) and transforms.components == torus.circles
    values = call(transforms, 0, torus.degree, c, aligned(2, transforms.size))
    np.testing.assert_allclose(values[0], torus.at(c, points), rtol=0, atol=1e-14)
    values[1] = 2 * values[0]
    back = call(transforms, 2, 2, values, np.empty((2, c.size), dtype=complex))
    np.testing.assert_allclose(back, [c, 2 * c], rtol=0, atol=1e-15)


def test_coefficients_above_the_number_are_left_out(case):
    torus, transforms, c, points = case
    values = call(transforms, 0, 1, c, aligned(1, transforms.size))[0]
    expected = torus.at(np.where(torus.degrees <= 1, c, 0), points)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-14)


def test_gradient_and_divergence(case):
    torus, transforms, c, points = case
    field = call(transforms, 1, torus.degree, c, aligned(torus.circles, transforms.size))
    for component, k in zip(field, torus.waves.T, strict=True):
        np.testing.assert_allclose(component, torus.at(1j * k * c, points), rtol=0, atol=1e-13)
    back = call(transforms, 3, 0, field, np.empty(c.size, dtype=complex))
    np.testing.assert_allclose(back, -torus.laplacian * c, rtol=0, atol=1e-14)
