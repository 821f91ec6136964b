"""Velocities of characteristics: harmonics against the double sums that define them."""

import direct_sums
import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.dynamics import CharacteristicsMotion
from meanfield.models.zonal import kernel_degree

SERIES = [0.3, 1.0, -0.5, 0.2, 0.0, 0.1]
MODELS = {
    "USA(1)": (mf.USA(1.0), direct_sums.usa(1.0)),
    "USA(9)": (mf.USA(9.0), direct_sums.usa(9.0)),
    "USA(-2)": (mf.USA(-2.0), direct_sums.usa(-2.0)),
    "SA(1)": (mf.SA(1.0), direct_sums.sa(1.0)),
    "SA(5)": (mf.SA(5.0), direct_sums.sa(5.0)),
    "SA(-1)": (mf.SA(-1.0), direct_sums.sa(-1.0)),
    "Kuramoto": (mf.Kuramoto(), direct_sums.kuramoto()),
    "USA(0)": (mf.USA(0.0), direct_sums.kuramoto()),
    "SA(0)": (mf.SA(0.0), direct_sums.kuramoto()),
    "a series": (mf.Interaction.chebyshev(SERIES), direct_sums.chebyshev(SERIES)),
}
every_model = pytest.mark.parametrize("name", MODELS)
CIRCLE = mf.Circle(8).density(lambda x: 1 + 0.5 * np.cos(x - 1) + 0.2 * np.cos(2 * x))
SPHERE = mf.Sphere(4).density(lambda x, y, z: 1 + 0.5 * z + 0.3 * x * y - 0.2 * y)


def velocities(name, state):
    """Those of the package, and the kernel for the direct sum."""
    drift, kernel = MODELS[name]
    motion = CharacteristicsMotion(mf.Transformer(drift), state)
    return motion.velocity(state.coordinates), kernel


def assert_close(found, expected, tolerance):
    """Relative to the largest."""
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def clustered(state, rng):
    """The same masses after some of the points have gathered: anything but a smooth density."""
    shift = rng.normal(0, 0.3, state.coordinates.shape)
    moved = state.coordinates * 0.7 + shift
    return state.moved(state.chart.projected(moved))


# Direct sums -------------------------------------------------------------------------------


@pytest.mark.repeats
@every_model
@pytest.mark.parametrize("gathered", [False, True], ids=["smooth", "gathered"])
def test_on_the_circle(name, gathered):
    """Measured: 4e-15."""
    state = mf.Characteristics(CIRCLE, nodes=512)
    state = clustered(state, np.random.default_rng(0)) if gathered else state
    found, kernel = velocities(name, state)
    expected = direct_sums.at_angles(kernel, state.coordinates, state.masses)
    assert_close(found, expected, 1e-13)


@every_model
def test_on_s2(name):
    """Any points and masses. Scattered transforms err by 1e-12 of the norm. Measured: 2e-12."""
    rng, state = np.random.default_rng(1), mf.Characteristics(SPHERE, nodes=4096)
    points = state.chart.projected(rng.normal([0, 1, 1], 1, (500, 3)))
    masses = rng.dirichlet(np.ones(500))
    state = mf.Characteristics.of_arrays(state.space, points, masses, [], state.limit)
    found, kernel = velocities(name, state)
    assert_close(found, direct_sums.at_points(kernel, points, masses), 3e-11)


@pytest.mark.repeats
@every_model
@pytest.mark.parametrize("d", [2, 3, 4, 8, 64])
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["north", "south"])
def test_of_axisymmetric_densities(name, d, sign):
    """x' = -s' (1 - x^2) for x = -tanh s. Measured: 5e-14."""
    density = mf.Zonal(d, 4).zonal([1, 0.3, 0.1])
    state = mf.Characteristics(density, nodes=150, limit=sign * np.eye(d)[-1])
    state = clustered(state, np.random.default_rng(2))
    found, kernel = velocities(name, state)
    x = -np.tanh(state.coordinates)
    expected = direct_sums.at_latitudes(kernel, x, state.masses, d)
    assert_close(-found / np.cosh(state.coordinates) ** 2, expected, 1e-12)


@pytest.mark.parametrize("beta", [0.5, 4.0, 15.0])
def test_of_axisymmetric_densities_on_s2_by_bessel_functions(beta):
    state = mf.Characteristics(mf.Zonal(3, 4).zonal([1, 0.5, 0.2]), nodes=300)
    motion = CharacteristicsMotion(mf.Transformer(mf.USA(beta)), state)
    x = -np.tanh(state.coordinates)
    expected = direct_sums.usa_on_s2(beta, x, state.masses)
    found = -motion.velocity(state.coordinates) / np.cosh(state.coordinates) ** 2
    assert_close(found, expected, 3e-13)  # measured: 1e-14


@seed(0)
@settings(max_examples=25, deadline=None)
@given(st.floats(-6, 12, allow_subnormal=False), st.booleans(), st.integers(0, 2**32 - 1))
def test_whatever_beta_and_the_places_are(beta, softmax, number):
    """SA divides by Z * mu >= e^{-2 |beta|} of its maximum, where points may be alone."""
    state = mf.Characteristics(CIRCLE, nodes=400)
    rng = np.random.default_rng(number)
    state = state.moved(rng.uniform(-np.pi, np.pi, 400) * rng.uniform(0.01, 1))
    drift, kernel = (mf.SA, direct_sums.sa) if softmax else (mf.USA, direct_sums.usa)
    motion = CharacteristicsMotion(mf.Transformer(drift(beta)), state)
    expected = direct_sums.at_angles(kernel(beta), state.coordinates, state.masses)
    z = np.exp(2 * abs(beta)) if softmax else 1
    assert_close(motion.velocity(state.coordinates), expected, 3e-13 + 3e-15 * z)


# Laws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [mf.USA(2.0), mf.SA(2.0), mf.Kuramoto()], ids=repr)
def test_near_a_dirac_points_move_in_its_field(model):
    """theta' = -W'(cos theta) sin theta / Z: all mass within e^-30 of the limit."""
    state = mf.Characteristics(mf.Zonal(3, 4).uniform(), nodes=256)
    s = np.where(np.arange(256) % 32, -30.0, np.linspace(-2, 2, 256))
    masses = np.where(np.arange(256) % 32, 1 / 248, 0.0)
    state = mf.Characteristics.of_arrays(state.space, s, masses, state.halves, state.limit)
    motion = CharacteristicsMotion(mf.Transformer(model), state)
    x = -np.tanh(s)
    weight = {"USA": np.exp(2.0 * x)}.get(type(model).__name__, 1.0)
    expected = np.broadcast_to(weight, s.shape)
    np.testing.assert_allclose(motion.velocity(s), -expected, rtol=1e-12)


@pytest.mark.repeats
@every_model
@pytest.mark.parametrize(
    "density", [CIRCLE, SPHERE, mf.Zonal(5, 4).zonal([1, 0.3, 0.1])], ids=["circle", "s2", "d5"]
)
def test_the_uniform_density_stays(name, density):
    """Rounding, of the largest velocity there could be, and on S^2 1e-12 of it."""
    state = mf.Characteristics(density.space.uniform())
    found, kernel = velocities(name, state)
    scale = np.abs(kernel[0](np.linspace(-1, 1, 9))).max()
    rate = CharacteristicsMotion(mf.Transformer(MODELS[name][0]), state).rate(
        state.coordinates, found
    )
    assert rate <= 1e-11 * scale


def test_the_rate_is_the_speed_in_w2():
    state = mf.Characteristics(SPHERE)
    motion = CharacteristicsMotion(mf.Transformer(mf.USA(1.0)), state)
    v = motion.velocity(state.coordinates)
    expected = np.sqrt(state.masses @ (v**2).sum(axis=1))
    assert motion.rate(state.coordinates, v) == pytest.approx(expected, rel=1e-14)
    assert np.abs(np.sum(v * state.points, axis=1)).max() <= 1e-12  # tangent


def test_on_s2_longitudes_suffice_for_sharp_kernels():
    """Against the velocities by the density's own coefficients. With 32 longitudes: 1e-3."""
    from meanfield.spaces.sphere_points import gradient

    state, model = mf.Characteristics(SPHERE), mf.Transformer(mf.USA(50.0))
    motion = CharacteristicsMotion(model, state)
    (term,) = motion.harmonics
    fine = SPHERE.resample(term.degree)
    series = term.attraction[fine.space.degrees] * fine.coefficients
    expected = gradient(series, term.degree, state.points)
    assert_close(motion.velocity(state.coordinates), expected, 1e-11)  # measured: 5e-13


# The degree of a kernel --------------------------------------------------------------------


def test_the_degree_follows_the_kernel():
    assert kernel_degree(mf.Kuramoto(), 3) == kernel_degree(mf.USA(0.0), 8) == 1
    assert kernel_degree(mf.Interaction.chebyshev(SERIES), 2) == 5
    degrees = [kernel_degree(mf.USA(beta), 3) for beta in (0.1, 1, 10, 100, 700)]
    assert degrees == sorted(set(degrees)) and degrees[-1] < 400
    assert kernel_degree(mf.Interaction.chebyshev([1.0]), 3) == 1  # no force at all


REFUSED = {
    "sharp": (mf.SA(1e7), r"of SA\(beta=10000000.0\) do not decay to rounding up to degree 4096"),
    "kink": (mf.Interaction(np.abs), "do not decay to rounding .*needs a smooth potential"),
    "root": (mf.Interaction(lambda t: -np.sqrt(1 - t**2)), "do not decay"),
    "jump": (mf.Interaction(np.sign), "it jumps by 2"),
}


@pytest.mark.repeats
@pytest.mark.parametrize(("drift", "match"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_smooth_is_refused(drift, match):
    state = mf.Characteristics(CIRCLE)
    with pytest.raises(mf.MeanfieldError, match=match):
        CharacteristicsMotion(mf.Transformer(drift), state)


@pytest.mark.parametrize("d", [2, 3, 8, 64])
def test_a_function_is_as_good_as_its_formula(d):
    """Multipliers by quadrature are cut at their rounding.

    Measured: 1e-14, and 5e-12 in d = 8, 4e-8 in d = 64. There harmonics are so many that what
    is below rounding counts where mass gathers.
    """
    state = mf.Characteristics(mf.Zonal(d, 4).zonal([1, 0.3, 0.1]))
    state = state.moved(state.coordinates - 2)
    one, other = (
        CharacteristicsMotion(mf.Transformer(drift), state).velocity(state.coordinates)
        for drift in (mf.USA(2.0), mf.Interaction(lambda t: np.exp(2 * t) / 2))
    )
    assert_close(one, other, {2: 2e-13, 3: 2e-13, 8: 1e-10, 64: 1e-6}[d])


def test_noise_and_ensembles_are_refused():
    state = mf.Characteristics(CIRCLE)
    with pytest.raises(mf.MeanfieldError, match=r"without noise; .*kappa=3\.0"):
        CharacteristicsMotion(mf.Transformer(mf.USA(1.0), 3.0), state)
    with pytest.raises(mf.MeanfieldError, match=r"kappa=\[inf, 2\.0\]"):
        CharacteristicsMotion(mf.Transformer(mf.USA(1.0), [np.inf, 2.0]), state)
    with pytest.raises(ValueError, match=r"a single model; got an ensemble \(2,\).*one by one"):
        CharacteristicsMotion(mf.Transformer(mf.USA([1.0, 2.0])), state)
