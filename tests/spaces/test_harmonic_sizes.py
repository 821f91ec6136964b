"""Whether a truncated series is resolved: tails, gaps, the degree that suffices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.spaces.validity import HarmonicSizes, SampledHarmonics
from meanfield.steppers import Krogstad, Rules, Stepper
from meanfield.steppers.advance import COARSER, FINER
from meanfield.steppers.clock import Clock


def series(*terms, degree):
    """Sizes of a series of given (degree, size), truncated at a degree."""
    sizes = np.zeros(degree + 1)
    for l, size in ((0, 1.0), *terms):
        sizes[l] = size
    return HarmonicSizes(np.arange(degree + 1), sizes)


def test_the_tail_of_a_dense_series_is_the_last_eighth():
    sizes = HarmonicSizes(np.arange(33), 0.5 ** np.arange(33))
    assert sizes.tail(32, 1e-20) == 0.5**29
    assert sizes.beyond(30) == 0.5**31


@given(st.integers(2, 30), st.integers(1, 6), st.integers(0, 29))
def test_the_tail_of_multiples_of_n_holds_the_last_of_them(n, count, more):
    degree = n * count + more % n
    sizes = series(*((n * k, 2.0**-k) for k in range(1, count + 1)), degree=degree)
    assert sizes.gap(1e-3) == n
    assert sizes.tail(degree, 1e-3) >= 2.0**-count
    assert sizes.sufficient(1e-3) == n * (count + 1)


def test_multipliers_may_be_shared_and_members_are_compared():
    degrees = np.array([0, 1, 1, 2, 2])
    sizes = HarmonicSizes(degrees, np.array([[1, 0.2j, -0.5, 0, 0.1], [1, 0, 0, 0.3, 0]]))
    np.testing.assert_array_equal(sizes.sizes, [1, 0.5, 0.3])


def test_harmonics_above_a_gap_are_hidden_and_decaying_ones_are_not():
    assert series((1, 1.0), (50, 1e-3), degree=60).seen_from(24, 1e-9) == 50
    assert series((1, 1.0), (50, 1e-3), degree=60).seen_from(24, 1e-2) == 24
    assert series((1, 1.0), (50, 1e-3), (90, 1e-2), degree=99).seen_from(8, 1e-9) == 90
    dense = HarmonicSizes(np.arange(100), np.arange(1.0, 101) ** -2)
    assert dense.seen_from(8, 1e-9) == 8
    sparse = series(*((12 * k, 0.1**k) for k in range(1, 6)), degree=99)
    assert [sparse.seen_from(k, 1e-9) for k in (8, 12, 23, 30)] == [12, 12, 23, 30]


@pytest.mark.parametrize("n", [3, 130, 4096, 6000])
def test_a_function_of_points_is_sampled_whatever_the_degree_of_the_space(n):
    missed = []
    sampled = SampledHarmonics(
        lambda space: np.cos(n * np.arctan2(space.points[:, 1], space.points[:, 0])),
        lambda _, rest: missed.append(rest),
    )
    sizes = sampled.on(mf.Circle(8)).sizes
    if n <= 4096:
        assert sizes[n] == pytest.approx(0.5, abs=1e-12) and missed[0] < 1e-11
    else:
        assert missed == pytest.approx([np.sqrt(0.5)], rel=1e-3)


# The compiled time loop judges as these do ---------------------------------------------------


class Rest:
    """A right-hand side that is 0."""

    def __new__(cls, modes):
        from meanfield.lowlevel import callbacks

        def work(_member, _source, target):
            target[:] = 0

        function = callbacks.PythonFunction(work, modes, np.complex128)
        function.context, function.speed, function.time = 0, np.zeros(1), np.zeros(1)
        return function


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 24), st.floats(-9, 0)), max_size=4),
    st.floats(-8, -1),
)
def test_the_time_loop_refines_and_coarsens_where_these_sizes_say(terms, exponent):
    u, limit, degree, fewer = np.zeros((1, 25), dtype=complex), 10**exponent, 24, 16
    u[0, 0] = 1
    for l, size in terms:
        u[0, l] = 1j * 10**size
    rules = Rules(
        rtol=0.0, error_order=4.0, tail=limit, tail_degree=21.0, coarse_tail=limit / 100,
        coarse_degree=14.0, steady=0.0, degree=degree, fewer=fewer,
    )  # fmt: skip
    stepper = Stepper(Krogstad, np.zeros((1, 25)), Rest(25), u)
    code, _ = stepper.advance(Clock(0.0, 0.0, 0.0, 0, 0, 0.1, 1.0), rules, 1.0, 1, 1.0)
    sizes = HarmonicSizes(np.arange(25), u)
    assert (code == FINER) == (sizes.tail(degree, limit) > limit)
    if code != FINER:
        assert (code == COARSER) == (sizes.tail(fewer, limit / 100) < limit / 100)
