"""The Eyring-Kramers law of n tokens against exact partition functions and times of tokens."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from scipy.special import ive

import meanfield as mf
from meanfield.core.errors import MeanfieldError
from meanfield.metastability.escape_times import Weight

CIRCLE = mf.Circle(32)
DISCONTINUOUS = mf.Transformer(mf.CosineSeries([0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), kappa=1.15)


@cache
def both_stable(model, space):
    """The uniform stable state of a model and the ordered one; or one of them."""
    states = mf.stationary_states(model, space)
    return sorted((s for s in states if s.stable), key=lambda s: s.order_parameter)


def stable(model, space=CIRCLE, ordered=False):
    """The stable state of a model, uniform or ordered."""
    return both_stable(model, space)[-1 if ordered else 0]


@pytest.fixture(scope="module")
def there():
    """From the uniform state to the ordered one, 100 tokens."""
    return mf.escape_time(stable(DISCONTINUOUS), 100)


@pytest.fixture(scope="module")
def back():
    return mf.escape_time(stable(DISCONTINUOUS, ordered=True), 100)


def log_partition(n, kappa):
    """log Z_n of Kuramoto, Z_n = n kappa int h e^(-n kappa h^2/2) I_0(kappa h)^n dh."""
    h = np.linspace(1e-6, 1.5, 100001)
    log_values = np.log(h) + n * (kappa * h - kappa * h**2 / 2 + np.log(ive(0, kappa * h)))
    top = log_values.max()
    return np.log(n * kappa) + top + np.log(np.trapezoid(np.exp(log_values - top), h))


@pytest.mark.parametrize("kappa", [1.0, 1.5, 3.0, 6.0])
def test_weights_of_kuramoto_are_those_of_the_exact_partition_function(kappa):
    """Uniform for kappa < 2, a ring of ordered states above; the error is c/n."""
    weight = Weight.of(stable(mf.Transformer(mf.Kuramoto(), kappa)))
    errors = [n * (log_partition(n, kappa) - weight.log_z(n)) for n in (1000, 4000)]
    assert weight.dimension == (kappa > 2)
    assert abs(errors[0]) < 5
    assert abs(errors[1] - errors[0]) < 0.02 * abs(errors[0])


def test_weights_of_kuramoto_on_the_sphere():
    """Z_n = (n kappa/2 pi)^(3/2) 4 pi int h^2 e^(-n kappa h^2/2) (sinh(kappa h)/(kappa h))^n dh."""
    for kappa, dimension in ((2.0, 0), (5.0, 2)):
        weight = Weight.of(stable(mf.Transformer(mf.Kuramoto(), kappa), mf.Zonal(3, 32)))
        n, h = 4000, np.linspace(1e-6, 1.5, 100001)
        x = kappa * h
        log_mean = x + np.log(-np.expm1(-2 * x) / (2 * x))
        log_values = 2 * np.log(h) + n * (log_mean - kappa * h**2 / 2)
        top = log_values.max()
        mass = 4 * np.pi * (n * kappa / (2 * np.pi)) ** 1.5
        exact = np.log(mass) + top + np.log(np.trapezoid(np.exp(log_values - top), h))
        assert weight.dimension == dimension
        assert abs(weight.log_z(n) - exact) < 5 / n


def test_the_parts_of_the_law_add_up(there):
    found = there
    power = found.power * np.log(100)
    assert found.power == -0.5
    assert found.log_time == pytest.approx(100 * found.exponent + found.log_prefactor + power)
    assert found.time == pytest.approx(np.exp(found.log_time))
    assert found.exponent == pytest.approx(1.15 * found.saddles[0].barrier)
    assert found.asymptotic and found.least_n == np.ceil(3 / found.exponent) < 100
    few = mf.escape_time(found.state, 10, around=found.saddles)
    assert not few.asymptotic and found.warnings == []
    assert f"n >= {found.least_n}" in few.warnings[0] and few.warnings[0] in repr(few)


@pytest.mark.long
def test_times_to_and_fro_have_the_ratio_of_the_weights(there, back):
    """Detailed balance: both directions cross one saddle."""
    weights = [Weight.of(one.state).log_z(100) for one in (there, back)]
    assert there.log_time - back.log_time == pytest.approx(weights[0] - weights[1], abs=1e-6)
    assert back.power == 0 and there.curvature > 0.05


@pytest.mark.long
def test_the_circle_is_the_sphere_of_two_dimensions():
    model = mf.Transformer(mf.USA(4.0), 0.402)
    times = [mf.escape_time(stable(model, space), 5000).log_time
             for space in (CIRCLE, mf.Zonal(2, 32))]  # fmt: skip
    assert times[0] == pytest.approx(times[1], abs=1e-7)


def test_states_without_a_saddle_or_a_free_energy_are_refused():
    with pytest.raises(MeanfieldError, match="No saddle"):
        mf.escape_time(stable(mf.Transformer(mf.Kuramoto(), 1.5)), 100)
    with pytest.raises(MeanfieldError, match="free energy"):
        mf.escape_time(stable(mf.Transformer(mf.SA(1.0), 1.5)), 100)


def wells_of_kuramoto(tilt):
    """The states of Kuramoto in the two wells of a potential."""
    wells = mf.Potential(lambda x: 0.1 * x[..., 0] ** 2 + tilt * x[..., 0])
    model = mf.Transformer(mf.Kuramoto() + wells, 4.0)
    return [mf.stationary(model, mf.Circle(24).von_mises(at, 4.0)) for at in (0.0, np.pi)]


@pytest.mark.long
def test_a_mirror_image_of_the_state_is_another_state():
    """Two equal wells on the circle: the time is the limit of that in wells made unequal by 1e-7.

    There are two ways to the other well, one saddle and its mirror image. The path to the image has
    the exponent of the time.
    """
    here, image = wells_of_kuramoto(0.0)
    times = [mf.escape_time(state, 200) for state in (here, wells_of_kuramoto(1e-7)[0])]
    assert times[0].log_time == pytest.approx(times[1].log_time, abs=1e-3)
    assert times[0].log_prefactor == pytest.approx(times[1].log_prefactor, abs=1e-4)
    path = mf.transition_path(here, image, images=9)
    assert path.converged
    assert times[0].exponent == pytest.approx(path.exponent, rel=1e-9)


def test_arguments_out_of_range_are_refused(there):
    with pytest.raises(ValueError, match="n must"):
        mf.escape_time(there.state, 0)
    with pytest.raises(ValueError, match="saddles of this state, StationaryState"):
        mf.escape_time(stable(DISCONTINUOUS, ordered=True), 100, around=there.saddles)
    with pytest.raises(TypeError, match="around"):
        mf.escape_time(there.state, 100, around=3)


@pytest.mark.parametrize(
    ("other", "space"),
    [
        (DISCONTINUOUS.replace(kappa=1.1), CIRCLE),
        (mf.Transformer(mf.CosineSeries([0.0, 1.0, 1.0, 1.0, 1.0, 0.9]), kappa=1.15), CIRCLE),
        (DISCONTINUOUS, mf.Zonal(2, 32)),
    ],
)
def test_saddles_of_another_model_or_space_are_refused(there, other, space):
    """All uniform states are equal, so that states alone do not tell."""
    state = mf.stationary(other, space.uniform())
    with pytest.raises(ValueError, match="of one model on one space") as refusal:
        mf.escape_time(state, 100, around=there.saddles)
    assert all(repr(one) in str(refusal.value) for one in (other, space, DISCONTINUOUS, CIRCLE))


# Kuramoto in a potential of three wells: the interaction energy is |u|^2/2 with u = int x dmu.
WELLS, ANGLES = (0.1, 0.02), 2 * np.pi * np.arange(1024) / 1024
POINTS = np.array([np.cos(ANGLES), np.sin(ANGLES)])
HEIGHTS = WELLS[0] * np.cos(3 * ANGLES) + WELLS[1] * np.cos(ANGLES)


def in_wells(kappa):
    a, b = WELLS
    wells = mf.Potential(lambda x: a * (4 * x[..., 0] ** 3 - 3 * x[..., 0]) + b * x[..., 0])
    return mf.Transformer(mf.Kuramoto() + wells, kappa=kappa)


def stationary_in_wells(kappa, u):
    """u and F(mu) - F(uniform) of the state near u, by Newton's method in u and sums over angles.

    F = (1/kappa) int mu log mu - |u|^2/2 - int V dmu, with mu = exp(kappa (u.x + V))/const.
    """
    for _ in range(30):
        exponent = kappa * (u @ POINTS + HEIGHTS)
        masses = np.exp(exponent - exponent.max())
        total = masses.sum()
        masses /= total
        mean = POINTS @ masses
        slope = np.eye(2) - kappa * ((POINTS * masses) @ POINTS.T - np.outer(mean, mean))
        u = u - np.linalg.solve(slope, u - mean)
    log_density = exponent - exponent.max() - np.log(total / len(ANGLES))
    return u, masses @ log_density / kappa - u @ u / 2 - masses @ HEIGHTS


@pytest.mark.parametrize("kappa", [15.0, 20.0, 25.0, 60.0])
@pytest.mark.parametrize("angle", [0.0, -2.06])
def test_free_energies_are_known_where_densities_are_below_rounding(kappa, angle):
    """Least values of densities are rounding errors of either sign from kappa = 20 on."""
    state = mf.stationary(in_wells(kappa), mf.Circle(64).von_mises(angle, 8.0))
    u, energy = stationary_in_wells(kappa, 0.98 * np.array([np.cos(angle), np.sin(angle)]))
    assert state.converged and (kappa < 20 or state.density.values.min() < 1e-12)
    assert state.order_parameter == pytest.approx(np.hypot(*u), abs=1e-13)
    assert state.free_energy == pytest.approx(energy, abs=1e-14)
    if angle == 0 and kappa == 20:
        assert energy == pytest.approx(-0.48376141387192, abs=1e-14)


def test_a_solution_that_is_no_probability_density_has_no_free_energy():
    state = mf.stationary(in_wells(5.0), mf.Circle(64).von_mises(0.0, 8.0))
    equation = state.equation
    assert np.isnan(equation.free_energy(equation.mean(1.5 * state.legendre_moments, 5.0)))


@pytest.mark.long
def test_barriers_are_known_where_densities_are_below_rounding():
    state = mf.stationary(in_wells(20.0), mf.Circle(64).von_mises(0.0, 8.0))
    law = mf.escape_time(state, 50)
    (saddle,) = law.saddles
    means = (one.density.coefficients[1] for one in (state, saddle.state))
    low, high = (stationary_in_wells(20.0, np.array([u.real, u.imag]))[1] for u in means)
    assert saddle.barrier == pytest.approx(high - low, abs=1e-12)
    assert law.exponent == pytest.approx(20 * saddle.barrier)


def test_weights_of_states_in_a_field_are_those_of_the_exact_partition_function():
    """Z_n = (n kappa/2 pi) int exp(-n kappa u^2/2) I_0(kappa |u + h e|)^n du for Kuramoto."""
    h, kappa = 0.3, 3.0
    model = mf.Transformer(mf.Kuramoto() + mf.Potential(lambda x: h * x[..., 0]), kappa)
    weight = Weight.of(stable(model, ordered=True))
    assert weight.dimension == 0
    grid = np.linspace(-2.5, 2.5, 1001)
    u, v = np.meshgrid(grid, grid)
    size = kappa * np.hypot(u + h, v)
    errors = []
    for n in (200, 800):
        log_values = n * (np.log(ive(0, size)) + size - kappa * (u**2 + v**2) / 2)
        top = log_values.max()
        mass = np.exp(log_values - top).sum() * (grid[1] - grid[0]) ** 2
        errors.append(n * (np.log(n * kappa / (2 * np.pi)) + top + np.log(mass) - weight.log_z(n)))
    assert abs(errors[0]) < 1
    assert abs(errors[1] - errors[0]) < 0.02 * abs(errors[0])


@pytest.mark.long
def test_times_in_a_potential_have_the_ratio_of_the_weights():
    ends = wells_of_kuramoto(0.02)
    there, back = (mf.escape_time(end, 100) for end in ends)
    weights = [Weight.of(end).log_z(100) for end in ends]
    assert there.log_time - back.log_time == pytest.approx(weights[0] - weights[1], abs=1e-6)
    assert there.power == back.power == 0


def passage_time(velocity, kappa, low, start, high):
    """Mean time of one token from `start` to leave (low, high), by quadrature."""
    theta = np.linspace(low, high, 200_001)
    energy = -cumulative_simpson(velocity(theta), x=theta, initial=0.0)
    stay = cumulative_simpson(np.exp(-kappa * energy), x=theta, initial=0.0)
    pass_by = cumulative_simpson(np.exp(kappa * energy), x=theta, initial=0.0)
    both = cumulative_simpson(np.exp(kappa * energy) * stay, x=theta, initial=0.0)
    time = kappa * (both[-1] / pass_by[-1] * pass_by - both)
    return float(np.interp(start, theta, time))


@pytest.mark.repeats
@pytest.mark.parametrize("kappa", [17.0, 30.0])
def test_one_token_leaves_a_double_well_in_the_time_of_the_quadrature(kappa):
    """V = -cos(theta)^2/2: the exponent is kappa/2; time within 1 %, asked where kappa dV > 8."""
    model = mf.Transformer(mf.Potential(lambda x: 0.5 * x[..., 0] ** 2), kappa)
    (state,) = mf.stationary_states(model, CIRCLE)
    for point, at in (([1.0, 0.0], 0.0), ([-2.0, 0.1], np.pi)):
        found = mf.escape_time(state, 1, start=point)
        exact = passage_time(lambda t: -np.sin(2 * t) / 2, kappa, at - np.pi, at, at + np.pi)
        assert found.exponent == pytest.approx(kappa / 2, rel=1e-8)
        assert found.time == pytest.approx(exact, rel=0.01)
        assert found.log_prefactor + found.exponent == pytest.approx(np.log(2 * exact), abs=0.01)
        assert len(found.saddles) == 0
        again = mf.escape_time(state, 1, start=point, around=found.saddles)
        assert again.log_time == found.log_time


def test_one_token_in_a_field_that_is_no_gradient_leaves_by_the_lower_side():
    """v = 0.3 - sin 2 theta, whose integral around the circle is not 0."""
    kappa, rest = 20.0, np.arcsin(0.3) / 2

    def velocity(theta):
        return 0.3 - np.sin(2 * theta)

    def field(x):
        turned = np.stack([-x[..., 1], x[..., 0]], axis=-1)
        return (0.3 - 2 * x[..., :1] * x[..., 1:]) * turned

    state = mf.stationary(mf.Transformer(mf.Field(field), kappa), CIRCLE.uniform())
    found = mf.escape_time(state, 1, start=[1.0, 0.0])
    exact = passage_time(velocity, kappa, rest - np.pi, rest, rest + np.pi)
    rise = np.sqrt(1 - 0.09) - 0.3 * (np.pi / 2 - 2 * rest)
    assert found.exponent == pytest.approx(kappa * rise, rel=1e-7)
    assert found.time == pytest.approx(exact, rel=0.01)


def test_tokens_alone_that_have_no_time_are_refused():
    model = mf.Transformer(mf.Potential(lambda x: x[..., 0]), 5.0)
    (state,) = mf.stationary_states(model, CIRCLE)
    with pytest.raises(MeanfieldError, match="1 wells"):
        mf.escape_time(state, 1)
    with pytest.raises(MeanfieldError, match="n = 1"):
        mf.escape_time(state, 2)
    with pytest.raises(ValueError, match="start"):
        mf.escape_time(state, 1, start=[0.0, 0.0])
    with pytest.raises(ValueError, match="start"):
        mf.escape_time(stable(DISCONTINUOUS), 100, start=[1.0, 0.0])
    two = mf.Transformer(mf.Potential(lambda x: x[..., 0] ** 2 / 2), 20.0)
    with pytest.raises(ValueError, match="start must be in a well; this is the top"):
        mf.escape_time(mf.stationary_states(two, CIRCLE)[0], 1, start=[0.0, 1.0])


UNEVEN = mf.noise.Anisotropic(np.diag([1.2, 0.8]))


@pytest.mark.parametrize(("noise", "advised"), [(mf.Isotropic(), True), (UNEVEN, False)])
def test_a_path_of_least_action_is_advised_where_there_is_one(noise, advised):
    model = mf.Transformer(mf.SA(2.0), 3.0, noise=noise)
    state = mf.stationary(model, mf.Circle(16).von_mises(np.pi / 2, 2.0))
    with pytest.raises(mf.MeanfieldError, match="has no free energy that is known") as raised:
        mf.escape_time(state, 100)
    assert ("mf.transition_path" in str(raised.value)) is advised


def test_one_token_is_advised_to_have_less_noise():
    """Tokens without interaction leave one by one: more of them do not help."""
    wells = mf.Potential(lambda x: 0.3 * x[..., 0] ** 2 + 0.02 * x[..., 0])
    model = mf.Transformer(wells, 4.0)
    law = mf.escape_time(mf.stationary(model, mf.Circle(24).von_mises(0.0, 2.0)), 1)
    (warning,) = law.warnings
    assert "Raise kappa" in warning and "Take n" not in warning
