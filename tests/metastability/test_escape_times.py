"""The Eyring-Kramers law of n tokens against exact partition functions and times of tokens."""

import numpy as np
import pytest
from scipy.special import ive

import meanfield as mf
from meanfield.core.errors import MeanfieldError
from meanfield.metastability.escape_times import Weight

CIRCLE = mf.Circle(32)
DISCONTINUOUS = mf.Transformer(mf.CosineSeries([0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), kappa=1.15)


def stable(model, space=CIRCLE, ordered=False):
    """The stable state of a model, uniform or ordered."""
    states = mf.stationary_states(model, space)
    return max((s for s in states if s.stable), key=lambda s: s.order_parameter * (2 * ordered - 1))


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
    assert not few.asymptotic and "NOT ASYMPTOTIC" in repr(few)


def test_times_to_and_fro_have_the_ratio_of_the_weights(there, back):
    """Detailed balance: both directions cross one saddle."""
    weights = [Weight.of(one.state).log_z(100) for one in (there, back)]
    assert there.log_time - back.log_time == pytest.approx(weights[0] - weights[1], abs=1e-6)
    assert back.power == 0 and there.curvature > 0.05


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


def test_arguments_out_of_range_are_refused(there, back):
    with pytest.raises(ValueError, match="n must"):
        mf.escape_time(there.state, 0)
    with pytest.raises(ValueError, match="saddles of this state"):
        mf.escape_time(back.state, 100, around=there.saddles)
    with pytest.raises(TypeError, match="around"):
        mf.escape_time(there.state, 100, around=3)
