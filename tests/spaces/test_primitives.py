"""Integrals of functions of inner products against their closed forms."""

import numpy as np
import pytest

from meanfield.core.errors import MeanfieldError
from meanfield.spaces.kernels import Primitive

NEAR = 2.0 ** -np.arange(1, 53)
T = np.concatenate([np.linspace(-1, 1, 1001), 1 - NEAR, NEAR - 1])


def chord(t):
    return np.sqrt(2 - 2 * t)


SMOOTH = {
    **{
        f"exp(-{a:g}(1 - t))": (
            lambda t, a=a: np.exp(-a * (1 - t)),
            lambda t, a=a: np.exp(-a * (1 - t)) / a,
        )
        for a in (1.0, 50.0, 500.0, 2000.0, 1e6, 1e8)
    },
    "exp(600t)": (lambda t: np.exp(600 * t), lambda t: np.exp(600 * t) / 600),
    "cos(100t)": (lambda t: np.cos(100 * t), lambda t: np.sin(100 * t) / 100),
    "1/(1 + 1e6(t - 0.3)^2)": (
        lambda t: 1 / (1 + 1e6 * (t - 0.3) ** 2),
        lambda t: np.arctan(1e3 * (t - 0.3)) / 1e3,
    ),
    "t^30": (lambda t: t**30, lambda t: t**31 / 31),
}
ROUGH = {
    "exp(-20|x - y|)": (
        lambda t: np.exp(-20 * chord(t)),
        lambda t: np.exp(-20 * chord(t)) * (20 * chord(t) + 1) / 400,
    ),
    "angle": (np.arccos, lambda t: t * np.arccos(t) - np.sqrt(1 - t * t)),
    "|t - 0.3|": (lambda t: np.abs(t - 0.3), lambda t: (t - 0.3) * np.abs(t - 0.3) / 2),
    "1{t > 1/2}": (lambda t: (t > 0.5) * 1.0, lambda t: np.maximum(t - 0.5, 0)),
    "1{t > 0.999}": (lambda t: (t > 0.999) * 1.0, lambda t: np.maximum(t - 0.999, 0)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_steep_functions_are_integrated_to_rounding(name):
    f, integral = SMOOTH[name]
    expected = integral(T) - integral(np.zeros(1))
    np.testing.assert_allclose(Primitive(f)(T), expected, rtol=0, atol=1e-13 * abs(expected).max())


@pytest.mark.parametrize("name", ROUGH)
def test_kinks_jumps_and_roots_at_the_ends_cost_no_digits(name):
    f, integral = ROUGH[name]
    expected = integral(T) - integral(np.zeros(1))
    np.testing.assert_allclose(Primitive(f)(T), expected, rtol=0, atol=1e-12 * abs(expected).max())


def test_fast_oscillations_are_known_relative_to_the_integral_of_the_absolute_value():
    found = Primitive(lambda t: np.cos(9000 * t))(T)
    np.testing.assert_allclose(found, np.sin(9000 * T) / 9000, rtol=0, atol=1e-13 * 4 / np.pi)


@pytest.mark.repeats
@pytest.mark.parametrize("place", np.cos(np.random.default_rng(0).uniform(0.03, np.pi, 60)))
def test_a_jump_is_seen_wherever_it_is(place):
    """Beside an end of an interval too, where no node between the ends sees it."""
    found = Primitive(lambda t: (t > place) * 1.0)(T)
    expected = np.maximum(T - place, 0) - max(-place, 0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * abs(expected).max())


def test_the_integral_from_zero_to_zero_is_zero():
    np.testing.assert_allclose(Primitive(np.exp)(np.zeros(1)), 0, atol=1e-15)


def test_values_do_not_depend_on_how_many_are_asked_for():
    integral, t = Primitive(np.exp), np.linspace(-1, 1, 60)
    many = integral(t.reshape(3, 4, 5)).ravel()
    assert np.array_equal(many, np.concatenate([integral(t[i : i + 1]) for i in range(60)]))


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda t: (1 - t) ** -0.5, "not finite at 1"),
        (lambda t: np.abs(t - 0.3) ** -0.5, "singular near 0.3"),
        (lambda t: 1 / t, "singular near"),
        (lambda t: np.sin(1e6 * t), "varies too fast"),
        (lambda t: np.random.default_rng(0).random(t.size), "varies too fast"),
    ],
)
def test_what_cannot_be_integrated_is_refused(f, why):
    with pytest.raises(MeanfieldError, match=why):
        Primitive(f)
