"""The transport on the sphere, against its definition and the symmetries it must have."""

from functools import lru_cache

import numpy as np
import pytest
from numba import njit
from scipy.spatial.transform import Rotation
from weak_form import WeakForm

from meanfield import SA, USA, Density, Interaction, Kuramoto, Sphere
from meanfield.lowlevel.callbacks import evaluate

EPS = np.finfo(float).eps
POTENTIAL = Interaction(lambda t: t + 0.7 * t**2 - 0.4 * t**3)

# W' and, for softmax, Z; with their kernels scaled by e^-beta or not, as they cancel.
Z_IS_ONE = {
    "Kuramoto": (Kuramoto(), lambda t: np.ones_like(t)),
    "USA 0": (USA(0.0), lambda t: np.ones_like(t)),
    "USA 0.7": (USA(0.7), lambda t: np.exp(0.7 * t)),
    "USA 6": (USA(6.0), lambda t: np.exp(6 * t)),
    "USA -4": (USA(-4.0), lambda t: np.exp(-4 * t)),
    "polynomial": (POTENTIAL, lambda t: 1 + 1.4 * t - 1.2 * t**2),
}
SOFTMAX = {
    "SA 0": (SA(0.0), lambda t: np.ones_like(t)),
    "SA 1": (SA(1.0), lambda t: np.exp(t - 1)),
    "SA 5": (SA(5.0), lambda t: np.exp(5 * (t - 1))),
    "SA -3": (SA(-3.0), lambda t: np.exp(-3 * (t + 1))),
}
DRIFTS = [Kuramoto(), USA(5.0), SA(5.0), SA(-2.0), POTENTIAL]
every_drift = pytest.mark.parametrize("drift", DRIFTS, ids=repr)


weak_form = lru_cache(WeakForm)  # building one takes a second


def transport(drift, degree, members=1):
    """The transport of one drift for `members` densities."""
    attraction, normaliser = drift.attraction(degree, 3), drift.normaliser(degree, 3)
    tables = [None if t is None else np.atleast_2d(t) for t in (attraction, normaliser)]
    return Sphere(degree).transport(*tables, members)


def rough(degree, seed=0):
    """Random coefficients that do not decay, of a function of mass 1."""
    sphere = Sphere(degree)
    c = np.random.default_rng(seed).standard_normal((sphere.degrees.size, 2)) @ [1, 1j]
    c[sphere.orders == 0] = c[sphere.orders == 0].real
    c[0] = 1
    return c


def smooth(degree):
    """A positive density without symmetry, resolved to rounding by degree 20."""
    sphere = Sphere(degree)
    x, y, z = sphere.points.T
    c = sphere.to_coefficients(np.exp(0.5 * x - 0.3 * y * z + 0.3 * z + 0.2 * x * y))
    c[0] = c[0].real
    return c / c[0].real


def change(drift, c):
    """The transport of one density."""
    return transport(drift, Sphere(int(np.sqrt(2 * c.size)) - 1).degree)(c[None])[0]


# Against the definition --------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("degree", [1, 2, 5, 12])
@pytest.mark.parametrize("name", Z_IS_ONE)
def test_rough_data_give_the_exact_galerkin_projection(name, degree):
    """Without a quotient there is no aliasing: rounding only, whatever the density."""
    drift, slope = Z_IS_ONE[name]
    c = rough(degree)
    # The kernel e^(6 t) has multipliers below 1e-16 from degree 36 on.
    expected, _ = weak_form(degree, 2 * degree + 40)(c, slope)
    scale = degree**2 * np.abs(c).sum() * max(1, np.abs(slope(np.linspace(-1, 1))).max())
    np.testing.assert_allclose(change(drift, c), expected, rtol=0, atol=20 * EPS * scale)


@pytest.mark.repeats
@pytest.mark.parametrize("name", SOFTMAX)
def test_softmax_of_a_smooth_density_is_exact_to_rounding(name):
    drift, kernel = SOFTMAX[name]
    c = smooth(20)
    expected, speed = weak_form(20, 72)(c, kernel, kernel)
    computed = transport(drift, 20)
    # The largest coefficients are of size 1; |v| <= 1, and 20 derivatives of rounding.
    np.testing.assert_allclose(computed(c[None])[0], expected, rtol=0, atol=2e-13)
    assert computed.speed[0] == pytest.approx(speed, rel=1e-2)


@pytest.mark.repeats
@pytest.mark.parametrize("name", Z_IS_ONE)
def test_smooth_data_agree_to_rounding(name):
    drift, slope = Z_IS_ONE[name]
    expected, _ = weak_form(20, 72)(smooth(20), slope)
    scale = max(1, np.abs(slope(np.linspace(-1, 1))).max())
    np.testing.assert_allclose(change(drift, smooth(20)), expected, rtol=0, atol=1e-13 * scale)


def test_softmax_of_a_rough_density_errs_by_aliases_only():
    """The quotient has all degrees; its aliases shrink as those of the velocity do."""
    errors = []
    for beta in (0.5, 2.0, 8.0):
        c = rough(8, 3)
        c[1:] *= 0.3 / np.abs(c[1:]).sum()
        kernel = lambda t, beta=beta: np.exp(beta * (t - 1))  # noqa: E731
        expected, _ = weak_form(8, 72)(c, kernel, kernel)
        errors.append(np.abs(change(SA(beta), c) - expected).max())
    assert errors[0] <= 1e-14 and errors[1] <= 1e-12 and errors[2] <= 1e-6


def test_a_constant_interaction_moves_nothing():
    """Its multipliers beyond the constant are 0 up to the quadrature's 5e-14."""
    c = rough(9)
    changed = change(Interaction(lambda t: 3 + 0 * t), c)
    np.testing.assert_allclose(changed, 0, rtol=0, atol=5e-14 * 9 * 10 * np.abs(c).sum())


# Laws --------------------------------------------------------------------------------------


@every_drift
@pytest.mark.parametrize("degree", [1, 4, 33])
def test_mass_is_conserved_exactly(drift, degree):
    """The constant coefficient of a divergence is 0, not rounding."""
    assert change(drift, rough(degree))[0] == 0


@every_drift
def test_coefficients_of_order_zero_stay_real_exactly(drift):
    c = smooth(20)
    assert not change(drift, c)[Sphere(20).orders == 0].imag.any()


@every_drift
def test_the_uniform_density_does_not_move(drift):
    computed = transport(drift, 12)
    uniform = Sphere(12).uniform().coefficients
    assert np.abs(computed(uniform[None])).max() == 0 and computed.speed[0] == 0


@pytest.mark.repeats
@every_drift
@pytest.mark.parametrize("degree", [5, 24])
@pytest.mark.parametrize(
    "matrix",
    [
        Rotation.random(rng=0).as_matrix(),
        Rotation.from_euler("x", np.pi / 2).as_matrix(),
        -Rotation.random(rng=1).as_matrix(),
        np.diag([1.0, 1, -1]),
        np.diag([-1.0, 1, 1]),
        np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]]),
    ],
    ids=["random", "quarter", "improper", "mirror z", "mirror x", "half turn"],
)
def test_it_commutes_with_rotations_and_reflections(drift, degree, matrix):
    sphere, c = Sphere(degree), smooth(24)[: Sphere(24).degrees.size]
    if degree < 24 and not isinstance(drift, SA):
        c = rough(degree, 2)
    elif degree < 24:
        c = Sphere(24).resample(0.005 * c, degree)  # so close to uniform that nothing aliases
        c[0] = 1
    turned = Density(sphere, c).rotate(matrix).coefficients
    expected = sphere.rotate(change(drift, c), matrix)
    scale = 1e-13 * np.abs(c).sum() * degree**2 * (30 if isinstance(drift, USA) else 1)
    np.testing.assert_allclose(change(drift, turned), expected, rtol=0, atol=scale)


@every_drift
@pytest.mark.parametrize("axis", [[0, 0, 1.0], [0, 0, -1.0], [1.0, 0, 0], [2 / 3, -1 / 3, 2 / 3]])
def test_an_axisymmetric_density_stays_so(drift, axis):
    """The change is again a zonal series about the axis; about e_z it is so exactly."""
    sphere = Sphere(20)
    c = sphere.von_mises_fisher(axis, 1.5).coefficients
    changed = change(drift, c)
    if abs(axis[2]) == 1:
        assert not changed[sphere.orders > 0].any()
    for angle in (0.3, 2.0):
        turn = Rotation.from_rotvec(angle * np.array(axis)).as_matrix()
        np.testing.assert_allclose(sphere.rotate(changed, turn), changed, rtol=0, atol=1e-11)


@pytest.mark.repeats
@pytest.mark.parametrize("name", ["Kuramoto", "USA 6", "SA 5"])
def test_the_speed_is_the_largest_velocity(name):
    """Kuramoto: v = m - <m, x> x, at most |m|. Others to the distance of grid points."""
    computed = transport((Z_IS_ONE | SOFTMAX)[name][0], 20)
    slope, c = (Z_IS_ONE | SOFTMAX)[name][1], smooth(20)
    computed(c[None])
    weak = weak_form(20, 72)
    velocity = weak.velocity(c, slope, slope if name.startswith("SA") else None)
    largest = np.linalg.norm(velocity, axis=1).max()
    assert computed.speed[0] == pytest.approx(largest, rel=0.01)
    if name == "Kuramoto":
        mean = [Density(Sphere(20), c).expect(lambda x, i=i: x[:, i]) for i in range(3)]
        assert computed.speed[0] <= np.linalg.norm(mean) * (1 + 1e-14)
    before = computed.speed[0]
    computed(Sphere(20).uniform().coefficients[None])
    assert computed.speed[0] == before  # it is a maximum over calls, until set to 0


def test_the_speed_of_softmax_is_at_most_one():
    computed = transport(SA(3.0), 8)
    computed(rough(8)[None])  # negative somewhere: the quotient may be anything
    assert 0 < computed.speed[0] <= 1


# Members -----------------------------------------------------------------------------------


@pytest.mark.bits
@pytest.mark.parametrize("drifts", [[USA(0.0), USA(1.0), USA(8.0)], [SA(0.5), SA(-1.0), SA(9.0)]])
@pytest.mark.parametrize("degree", [3, 16])
def test_a_batch_gives_the_bits_of_its_members_with_the_same_drift(drifts, degree):
    for drift in drifts:
        c = np.stack([rough(degree, seed) for seed in range(3)])
        together = transport(drift, degree, 3)(c)
        alone = transport(drift, degree)
        for member in range(3):
            np.testing.assert_array_equal(together[member], alone(c[member : member + 1])[0])


def test_members_with_their_own_beta():
    """The widest band sets the grid, so those of smaller beta agree up to rounding only."""
    betas, c = np.array([0.0, 1.0, 8.0]), np.stack([smooth(20)] * 3)
    for drift in (USA, SA):
        together = transport(drift(betas), 20, 3)(c)
        for member, beta in enumerate(betas):
            alone = change(drift(beta), c[member])
            np.testing.assert_allclose(together[member], alone, rtol=0, atol=1e-13 * np.exp(beta))


@njit
def _evaluate(address, context, member, source, target):
    evaluate(address, context, member, source, target)


@pytest.mark.bits
@pytest.mark.parametrize("family", [USA, SA])
def test_compiled_code_gets_the_same_bits(family):
    computed, c = transport(family(np.array([1.0, 30.0])), 12, 2), np.stack([smooth(12), rough(12)])
    expected = computed(c)
    for member in (1, 0):
        target = np.full(c.shape[1], np.nan, complex)
        source = c[member].ctypes.data
        _evaluate(computed.address, computed.context, member, source, target.ctypes.data)
        np.testing.assert_array_equal(target, expected[member])


@pytest.mark.parametrize("drift", [SA(2.0), USA(2.0)], ids=str)
@pytest.mark.parametrize("degree", [12, 150])
def test_nothing_is_left_over_from_the_call_before(drift, degree):
    """At degree 150 high orders pass over the latitudes near the poles."""
    computed, c = transport(drift, degree), smooth(degree)
    assert (computed.latitudes.first.max() > 0) == (degree == 150)
    first = computed(c[None])
    computed(rough(degree)[None])
    np.testing.assert_array_equal(computed(c[None]), first)


def test_what_is_not_finite_stays_visible():
    c = rough(6)
    c[3] = np.nan
    for drift in DRIFTS:
        computed = transport(drift, 6)
        assert not np.isfinite(computed(c[None])).all()
