"""The phi functions against sixty digits, on the axis, in the left half plane, at the switch."""

import math

import mpmath
import numpy as np
import pytest
from phi import write_phi

from meanfield.steppers.attempt import HIGHEST_PHI

ROUNDING = 5e-15  # of the recurrence backwards from |z| < 4: 4^3 roundings of 1e-16, at worst

SIZES = np.concatenate([np.logspace(-12, 3, 46), np.linspace(0.5, 8, 31)])
AROUND_THE_SWITCH = [4 * (1 + step) for step in (-1e-3, -1e-9, -2.3e-16, 0, 2.3e-16, 1e-9, 1e-3)]
DIRECTIONS = {
    "real": -1 + 0j,
    "imaginary": 1j,
    "conjugate": -1j,
    "nearly imaginary": np.exp(1j * (np.pi / 2 + 1e-3)),
    "diagonal": np.exp(0.75j * np.pi),
    "nearly real": np.exp(1j * (np.pi - 1e-3)),
}


def exact(z):
    """phi_0, ..., phi_3 by the recurrence in 60 digits, of which 36 cancel at |z| = 1e-12."""
    with mpmath.workdps(60):
        point = mpmath.mpc(z.real, z.imag)
        values = [mpmath.exp(point)]
        for j in range(HIGHEST_PHI):
            values.append((values[-1] - 1 / mpmath.factorial(j)) / point)
        return np.array([complex(value) for value in values])


def computed(z):
    """What the package says, in the arithmetic of z."""
    values = np.empty(HIGHEST_PHI + 1, dtype=type(z))
    write_phi(z, values)
    return values


def assert_close(z):
    """To rounding, relative to |phi_j| or, phi_1 having zeros at 2 pi i n, to 1/(1 + |z|)."""
    truth = exact(complex(z))
    size = np.maximum(np.abs(truth), 1 / (1 + abs(z)))
    size[0] = abs(truth[0])
    assert (np.abs(computed(z) - truth) <= ROUNDING * size).all(), f"z = {z!r}"


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=DIRECTIONS)
def test_phi_functions_are_exact_to_rounding(direction):
    for size in SIZES:
        assert_close(complex(size * direction))


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=DIRECTIONS)
def test_series_and_recurrence_meet_without_a_step(direction):
    """Below |z| = 4 the Taylor series, from there on the recurrence: both still have all digits."""
    for size in AROUND_THE_SWITCH:
        assert_close(complex(size * direction))


def test_real_arithmetic_is_as_good():
    for size in [*SIZES, *AROUND_THE_SWITCH]:
        assert_close(-float(size))


def test_values_at_zero_are_reciprocal_factorials():
    """L = 0 is what a deterministic model has in every mode: no division by z may happen."""
    expected = [1 / math.factorial(j) for j in range(HIGHEST_PHI + 1)]
    for zero in (0.0, -0.0, 0j):
        np.testing.assert_allclose(computed(zero), expected, rtol=2e-16)


def test_conjugate_points_have_conjugate_values():
    """Then a real function stays real, whatever complex L acts on its coefficients."""
    for z in (-1e-9 + 2e-9j, -1 + 5j, -3 - 2j, -20 + 300j):
        np.testing.assert_array_equal(computed(z.conjugate()), computed(z).conj())


def test_stiff_modes_underflow_quietly():
    """e^z is 0 beyond |z| = 745; phi_1 = -1/z, phi_2 = -1/z - 1/z^2, ... need not mind."""
    z = -1e6
    expected = [0, -1 / z, -1 / z - 1 / z**2, -1 / (2 * z) - 1 / z**2 - 1 / z**3]
    np.testing.assert_allclose(computed(z), expected, rtol=1e-15)
