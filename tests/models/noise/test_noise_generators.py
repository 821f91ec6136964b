"""L* of a noise on densities: its matrix, stationary density, eigenvalues, symmetries, refusals."""

import numpy as np
import pytest
from diffusions import along, constants, plus, tangential, times, value, variable

import meanfield as mf
from meanfield.core.errors import MeanfieldError, UnresolvedWarning
from meanfield.models.noise import (
    Anisotropic,
    Isotropic,
    MultiplicativeIto,
    MultiplicativeStratonovich,
)

CIRCLE, SPHERE = mf.Circle(40), mf.Sphere(15)
SIGMA = np.array([[1.3, 0.15, -0.1], [0.15, 0.9, 0.05], [-0.1, 0.05, 0.8]])


def scale(x):
    return 1 + 0.1 * x[..., 0] - 0.05 * x[..., -1] * x[..., 0]


def scale_as_polynomial(d):
    x = [variable(k, d) for k in range(d)]
    minus = {(0,) * d: -0.05}
    terms = {(0,) * d: 1.0}, times({(0,) * d: 0.1}, x[0]), times(minus, times(x[0], x[-1]))
    return plus(*terms)


def kinds(d):
    return [
        Anisotropic(SIGMA[:d, :d]),
        MultiplicativeStratonovich(scale),
        MultiplicativeIto(scale),
    ]


def generated(noise, p, d):
    """L p by the fields whose flows move tokens, as a polynomial."""
    axes = np.eye(d)
    if isinstance(noise, Anisotropic):
        roots = np.linalg.cholesky(noise.sigma).T
        fields = [tangential(constants(root)) for root in roots]
    elif isinstance(noise, MultiplicativeStratonovich):
        fields = [tangential(constants(axis), scale_as_polynomial(d)) for axis in axes]
    else:
        fields = [tangential(constants(axis)) for axis in axes]
    squares = plus(*(along(field, along(field, p)) for field in fields))
    if isinstance(noise, MultiplicativeIto):
        s = scale_as_polynomial(d)
        squares = times(times(s, s), squares)
    return squares


def stationary(noise, points):
    if isinstance(noise, Anisotropic):
        q = np.einsum("ni,ij,nj->n", points, np.linalg.inv(noise.sigma), points)
        return q ** (-(points.shape[1] - 1) / 2)
    return scale(points) ** -(1.0 if isinstance(noise, MultiplicativeStratonovich) else 2.0)


def coefficients(space, values):
    values = values / (space.weights @ values)
    return space.to_coefficients(values).view(float)


everywhere = pytest.mark.parametrize("space", [CIRCLE, SPHERE], ids=["circle", "sphere"])
each_kind = pytest.mark.parametrize("which", range(3), ids=["anisotropic", "stratonovich", "ito"])


# What it is ----------------------------------------------------------------------------------


@pytest.mark.repeats
@everywhere
@each_kind
def test_it_is_dual_to_the_generator_of_tokens(space, which):
    """d/dt int p dmu = int L p dmu with L p by the vector fields, for polynomials p."""
    d = space.dimension
    noise, rng = kinds(d)[which], np.random.default_rng(which)
    rough = rng.standard_normal(space.degrees.size) / 2.0**space.degrees
    mu = space.to_values(np.where(space.degrees > 0, rough, 1.0).astype(complex))
    change = noise.generator(space) @ space.to_coefficients(mu).view(float)
    change = space.to_values(change.view(complex))
    x = [variable(k, d) for k in range(d)]
    for p in (x[0], times(x[0], x[1]), times(x[-1], times(x[0], x[0]))):
        expected = (space.weights * mu) @ value(generated(noise, p, d), space.points)
        measured = (space.weights * change) @ value(p, space.points)
        assert abs(measured - expected) < 2e-12


def test_anisotropic_noise_couples_degrees_that_differ_by_two_at_most():
    for space in (CIRCLE, SPHERE):
        d, degrees = space.dimension, np.repeat(space.degrees, 2)
        matrix = Anisotropic(SIGMA[:d, :d]).generator(space)
        rows, columns = np.nonzero(np.abs(matrix) > 1e-12 * np.abs(matrix).max())
        assert set(np.abs(degrees[rows] - degrees[columns])) == {0, 2}


@pytest.mark.repeats
@everywhere
@each_kind
def test_the_stationary_density_is_in_its_kernel(space, which):
    noise = kinds(space.dimension)[which]
    density = coefficients(space, stationary(noise, space.points))
    matrix, fine = noise.generator(space), np.abs(density[-6:]).max()
    tolerance = 1e-13 if which else 1e-13 + 10 * fine
    assert np.abs(matrix @ density).max() < tolerance * np.abs(matrix).max()
    _, basis = noise.on_densities(space).eigenbasis
    uniform = np.zeros((1, density.size))
    uniform[0, 0] = 1
    tolerance = 1e-14 if which else 1e-14 + fine
    np.testing.assert_allclose(basis.out_of(uniform)[0], density, rtol=0, atol=tolerance)


@everywhere
@each_kind
def test_its_eigenbasis_is_that_of_the_matrix(space, which):
    found = kinds(space.dimension)[which].on_densities(space)
    rates, basis = found.eigenbasis
    matrix, unit = found.matrix, np.eye(rates.size)
    assert (rates <= 0).all() and np.count_nonzero(rates == 0) == 1 + _idle(space)
    assert (matrix[0] == 0).all()
    largest = np.abs(matrix).max()
    np.testing.assert_allclose(basis.out_of(basis.into(unit)), unit, rtol=0, atol=2e-14)
    np.testing.assert_allclose(
        basis.out_of(rates * basis.into(unit)).T, matrix, rtol=0, atol=2e-14 * largest
    )


def _idle(space):
    """The number of imaginary parts that are always 0."""
    return np.count_nonzero(space.parseval == 1)


def test_what_is_not_coupled_is_a_block():
    """Reflections at the axes make four classes of functions on the circle and eight on S^2."""
    for space, noise, count in [
        (CIRCLE, Anisotropic(np.diag([1.3, 0.7])), 4),
        (SPHERE, Anisotropic(np.diag([1.3, 1.0, 0.7])), 8),
        (CIRCLE, Anisotropic(SIGMA[:2, :2]), 2),
        (CIRCLE, MultiplicativeStratonovich(lambda x: 1 + 0.2 * x[..., 0]), 2),
        (SPHERE, MultiplicativeIto(lambda x: 1 + 0.1 * x[..., 2]), 2 * SPHERE.degree + 1),
    ]:
        sizes = np.diff(noise.on_densities(space).eigenbasis[1].starts)
        assert len(sizes) == count + _idle(space)


def test_three_kinds_of_noise_of_strength_one_are_isotropic():
    for space in (CIRCLE, SPHERE):
        laplacian = np.repeat(space.laplacian, 2)
        laplacian[1::2][space.parseval == 1] = 0
        one = lambda x: np.ones(x.shape[:-1])  # noqa: E731
        for noise in (
            Anisotropic(np.eye(space.dimension)),
            MultiplicativeStratonovich(one),
            MultiplicativeIto(one),
        ):
            error = np.abs(noise.generator(space) - np.diag(laplacian)).max()
            assert error < 2e-14 * np.abs(laplacian).max()
        assert Isotropic().generator(space) is None


# Eigenvalues, by other means -----------------------------------------------------------------


def slowest(noise, space, count):
    rates = noise.on_densities(space).eigenbasis[0]
    live = np.delete(rates, 1 + 2 * np.flatnonzero(space.parseval == 1))
    return np.sort(live)[::-1][:count]


@pytest.mark.parametrize(
    "noise, speed",
    [
        (MultiplicativeStratonovich(scale), lambda t: scale(mf.Circle.embed(t))),
        (
            Anisotropic(SIGMA[:2, :2]),
            lambda t: np.sqrt(0.9 * np.cos(t) ** 2 + 1.3 * np.sin(t) ** 2 - 0.15 * np.sin(2 * t)),
        ),
    ],
    ids=["stratonovich", "anisotropic"],
)
def test_on_the_circle_it_is_a_brownian_motion_at_another_speed(noise, speed):
    """In phi with d phi = d theta / s it is that of a circle: eigenvalues -k^2/<1/s>^2, double."""
    theta = 2 * np.pi * np.arange(400) / 400
    length = np.mean(1 / speed(theta))
    expected = -(np.repeat(np.arange(9), 2)[1:] ** 2) / length**2
    np.testing.assert_allclose(slowest(noise, mf.Circle(64), 17), expected, rtol=0, atol=1e-10)


def test_eigenvalues_of_ito_noise_on_the_circle():
    """s^2 f'' = lambda f, by collocation at 101 points."""
    n = 101
    k = np.arange(n)
    with np.errstate(divide="ignore"):
        second = -0.5 * (-1.0) ** k / np.sin(np.pi * k / n) / np.tan(np.pi * k / n)
    second[0] = -(n**2 - 1) / 12
    second = second[(k[:, None] - k) % n]
    s = scale(mf.Circle.embed(2 * np.pi * k / n))
    expected = np.sort(np.linalg.eigvals(s[:, None] ** 2 * second).real)[::-1][:15]
    found = slowest(MultiplicativeIto(scale), CIRCLE, 15)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "noise, factor",
    [
        (Anisotropic(np.diag([0.9, 0.9, 1.2])), lambda z: 0.9 * z**2 + 1.2 * (1 - z**2)),
        (MultiplicativeIto(lambda x: 1 + 0.1 * x[..., 2]), lambda z: (1 + 0.1 * z) ** 2),
    ],
    ids=["anisotropic", "ito"],
)
def test_eigenvalues_of_axisymmetric_functions_on_the_sphere(noise, factor):
    """L f = c(z) ((1 - z^2) f')', by collocation of Legendre polynomials at Gauss points."""
    z, _ = np.polynomial.legendre.leggauss(40)
    values = np.polynomial.legendre.legvander(z, 39)
    l = np.arange(40)
    operator = factor(z)[:, None] * values * (-l * (l + 1.0))
    expected = np.sort(np.linalg.eigvals(np.linalg.solve(values, operator)).real)[::-1][:7]
    found = slowest(noise, mf.Sphere(20), 150)
    for rate in expected:
        assert np.abs(found - rate).min() < 1e-8


# Symmetries ----------------------------------------------------------------------------------


@pytest.mark.repeats
@each_kind
def test_a_rotated_noise_moves_rotated_densities(which):
    rotation = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))[0]
    rotation[:, 0] *= np.linalg.det(rotation)
    turned = [
        Anisotropic(rotation @ SIGMA @ rotation.T),
        MultiplicativeStratonovich(lambda x: scale(x @ rotation)),
        MultiplicativeIto(lambda x: scale(x @ rotation)),
    ][which]
    density = SPHERE.density(lambda x, y, z: np.exp(0.5 * z + 0.3 * x * y))
    there = turned.generator(SPHERE) @ density.rotate(rotation).coefficients.view(float)
    here = kinds(3)[which].generator(SPHERE) @ density.coefficients.view(float)
    rotated = SPHERE.rotate(here.view(complex), rotation).view(float)
    np.testing.assert_allclose(there, rotated, rtol=0, atol=1e-11)


# Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise, space, error, match",
    [
        (Anisotropic(np.diag([1.0, 0.0])), CIRCLE, MeanfieldError, "positive sigma.*from 0 to 1"),
        (Anisotropic(np.zeros((3, 3))), SPHERE, MeanfieldError, "positive sigma"),
        (Anisotropic(np.eye(3)), CIRCLE, ValueError, "is for dimension 3"),
        (Anisotropic(np.eye(3)), mf.Zonal(3, 8), MeanfieldError, "about an axis"),
        (MultiplicativeIto(lambda x: x[..., 0] ** 2), CIRCLE, MeanfieldError, "scale > 0"),
        (
            MultiplicativeIto(lambda x: x[..., 0]),
            CIRCLE,
            ValueError,
            "scale.* must return finite numbers >= 0",
        ),
    ],
)
def test_noise_that_densities_cannot_have(noise, space, error, match):
    with pytest.raises(error, match=match):
        noise.generator(space)
    with pytest.raises(error, match=match):
        mf.solve(mf.Transformer(mf.Kuramoto(), 2.0, noise=noise), space.uniform(), (0, 1))


def test_a_scale_that_is_not_resolved():
    def steep(x):
        return 1.1 + x[..., 0]

    coarse = mf.Circle(16)
    with pytest.warns(UnresolvedWarning, match="higher degree"):
        MultiplicativeStratonovich(steep).generator(coarse)
    model = mf.Transformer(mf.Kuramoto(), 2.0, noise=MultiplicativeIto(steep))
    run = mf.solve(model, coarse.uniform(), (0, 0.1), t_eval=[0.1], rtol=1e-8)
    assert run.final.space.degree == 64  # where 1/s^2 has coefficients below 1e-9
    ripples = MultiplicativeIto(lambda x: 1.1 + mf.Circle(40).fourier([1] + 39 * [0] + [0.4]).at(x))
    assert not ripples.resolved(coarse, 1e-3) and ripples.resolved(mf.Circle(1024), 1e-10)
    with pytest.raises(MeanfieldError, match="max_degree = 32"):
        mf.solve(model, coarse.uniform(), (0, 0.1), max_degree=32)


def test_the_generator_is_built_once():
    noise = Anisotropic(SIGMA[:2, :2])
    assert noise.on_densities(mf.Circle(8)) is noise.on_densities(mf.Circle(8))
    assert noise.on_densities(mf.Circle(9)) is not noise.on_densities(mf.Circle(8))
