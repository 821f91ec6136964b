"""All modes of a kernel density estimate: against fine grids, known cases, laws, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.dynamics.kernel_modes import KernelEstimate, sums_at

reproducible = settings(deadline=None, derandomize=True, max_examples=40)


def line(x, masses=None):
    """Tokens on the line."""
    return mf.Tokens(np.reshape(x, (-1, 1)), masses, on_sphere=False)


def estimate(tokens, beta, at):
    """The density estimate by its definition."""
    if tokens.on_sphere:
        gaps = at[:, None] - np.arctan2(tokens.x[:, 1], tokens.x[:, 0])
        return np.exp(beta * (np.cos(gaps) - 1)) @ tokens.masses
    return np.exp(-beta / 2 * (at[:, None] - tokens.x[:, 0]) ** 2) @ tokens.masses


def peaks(tokens, beta, n=20001):
    """Places higher than their neighbours on a fine grid."""
    low, high = (-np.pi, np.pi) if tokens.on_sphere else (tokens.x.min(), tokens.x.max())
    at = np.linspace(low, high, n)[: n - 1] if tokens.on_sphere else np.linspace(low, high, n)
    values = estimate(tokens, beta, at)
    around = np.concatenate([values[-1:], values, values[:1]])
    if not tokens.on_sphere:
        around[[0, -1]] = -1
    return at[(values > around[:-2]) & (values >= around[2:])]


@pytest.mark.long
@reproducible
@given(st.integers(1, 30), st.integers(0, 10**6), st.floats(-1, 2.3), st.booleans())
def test_they_are_the_peaks_of_a_fine_grid(n, seed, exponent, circle):
    rng, beta = np.random.default_rng(seed), 10**exponent
    masses = rng.dirichlet(np.ones(n))
    if circle:
        tokens = mf.Tokens.on_circle(rng.uniform(-np.pi, np.pi, n), masses)
    else:
        tokens = line(rng.standard_normal(n), masses)
    modes, expected = mf.kernel_modes(tokens, beta), peaks(tokens, beta)
    assert modes.undecided == 0 and len(modes) == len(expected)
    np.testing.assert_allclose(modes.places, expected, atol=5e-4)
    np.testing.assert_allclose(modes.heights, estimate(tokens, beta, modes.places), rtol=1e-12)


@pytest.mark.long
def test_they_are_where_softmax_attention_stands_still():
    tokens, beta = mf.Tokens.uniform(500, 2, rng=0), 60.0
    places = mf.kernel_modes(tokens, beta).places
    x = np.stack([np.cos(places), np.sin(places)], axis=1)
    weights = tokens.masses * np.exp(beta * (x @ tokens.x.T - 1))
    across = np.stack([-x[:, 1], x[:, 0]], axis=1)
    velocity = ((weights @ tokens.x) * across).sum(axis=1) / weights.sum(axis=1)
    np.testing.assert_allclose(velocity, 0, atol=1e-14)


@reproducible
@given(st.integers(0, 1000), st.floats(-3, 3))
def test_they_turn_with_the_tokens_and_do_not_depend_on_their_order(seed, angle):
    rng = np.random.default_rng(seed)
    theta, order = rng.uniform(-np.pi, np.pi, 60), rng.permutation(60)
    first = mf.kernel_modes(mf.Tokens.on_circle(theta), 30.0)
    other = mf.kernel_modes(mf.Tokens.on_circle(theta[order] + angle), 30.0)
    turned = np.sort(np.angle(np.exp(1j * (first.places + angle))))
    np.testing.assert_allclose(other.places, turned, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("angle", [0.0, 0.4, np.pi])
def test_regular_polygons_have_a_mode_at_every_vertex(k, angle):
    """Cells of a symmetric set end at its critical points."""
    theta = angle + 2 * np.pi * np.arange(k) / k
    modes = mf.kernel_modes(mf.Tokens.on_circle(theta), 200.0)
    gaps = np.angle(np.exp(1j * (modes.places - theta[:, None])))
    assert modes.undecided == 0 and len(modes) == k
    np.testing.assert_allclose(np.abs(gaps).min(axis=1), 0, atol=1e-14)


@pytest.mark.parametrize("excess", [1e-1, 1e-3, 1e-5, 1e-7])
def test_two_equal_kernels_have_two_modes_beyond_two_bandwidths(excess):
    for sign, count in ((1, 2), (-1, 1)):
        half = (1 + sign * excess) / np.sqrt(20)
        modes = mf.kernel_modes(line([5 - half, 5 + half]), 20.0)
        assert (len(modes), modes.undecided) == (count, 0)


def test_what_rounding_hides_is_said():
    exact = mf.kernel_modes(line([-1 / np.sqrt(20), 1 / np.sqrt(20)]), 20.0)
    assert exact.undecided == 1 and len(exact) == 1  # a maximum of order four
    flat = mf.kernel_modes(mf.Tokens.on_circle(2 * np.pi * np.arange(64) / 64), 1.0)
    assert flat.undecided >= 1  # constant but for e^-700


def test_isolated_tokens_are_modes_however_unequal():
    x, masses = np.arange(5.0), np.array([1e-280, 1 - 1e-8, 1e-100, 0.0, 1e-8])
    modes = mf.kernel_modes(line(x, masses), 5000.0)
    np.testing.assert_allclose(modes.places, x[masses > 0], atol=1e-15)
    np.testing.assert_allclose(modes.heights, masses[masses > 0], rtol=1e-12)
    tail = mf.kernel_modes(line([0.0, 1.0], [1 - 1e-60, 1e-60]), 200.0)
    assert len(tail) == 1  # the light token is below the tail of the heavy one


@pytest.mark.parametrize("beta", [1e8, 1e12, 1e17, 1e20, 1e23])
def test_tokens_many_bandwidths_apart_are_modes(beta):
    """No token is left out of the count and none is looked at for long, up to the last digits."""
    x = np.random.default_rng(7).permutation(3000) + 0.25
    modes = mf.kernel_modes(mf.Tokens.on_circle(x / 500), beta)
    assert (len(modes), modes.undecided) == (3000, 0)
    np.testing.assert_allclose(modes.heights, 1 / 3000, rtol=1e-6)
    modes = mf.kernel_modes(line(x / 3000), beta)
    assert (len(modes), modes.undecided) == (3000, 0)


@pytest.mark.parametrize("beta", [1e-300, 1e-30, 1e-6])
def test_wide_kernels_have_one_mode_at_the_mean(beta):
    x = np.random.default_rng(8).standard_normal(50)
    modes = mf.kernel_modes(line(x), beta)
    np.testing.assert_allclose(modes.places, [x.mean()], atol=1e-5)


def test_scales_of_the_line_do_not_matter():
    x = np.random.default_rng(9).standard_normal(200)
    modes = mf.kernel_modes(line(x), 100.0)
    for power in (-400, -40, 40, 400):  # of 2: multiplied without rounding
        other = mf.kernel_modes(line(x * 2.0**power), 100.0 * 4.0**-power)
        np.testing.assert_allclose(other.places, modes.places * 2.0**power, rtol=1e-9)


@pytest.mark.parametrize(
    ("tokens", "beta"),
    [
        (mf.Tokens.uniform(10, 2, rng=0), 1e24),
        (mf.Tokens.uniform(10, 2, rng=0), 1e300),
        (line([-1e300, 1e300]), 1.0),
        (line([1e16, 1e16 + 2]), 1.0),
        (line([0.0, 1.0]), 1e300),
    ],
)
def test_a_bandwidth_below_the_spacing_of_numbers_is_refused(tokens, beta):
    with pytest.raises(ValueError, match=r"expects a bandwidth .* Rounding decides"):
        mf.kernel_modes(tokens, beta)


def test_bounds_of_the_second_derivative_hold():
    rng = np.random.default_rng(3)
    half = 0.1
    estimate = KernelEstimate(np.sort(rng.standard_normal(40)), np.full(40, 1 / 40), 30.0, False)
    bound = sums_at(0.2, half, estimate)[3]
    inside = np.linspace(0.2 - half, 0.2 + half, 2001)
    slopes = [sums_at(place, 0.0, estimate)[2] for place in inside]
    assert np.abs(np.gradient(slopes, inside)).max() < bound


@pytest.mark.long
def test_a_hundred_thousand_tokens():
    tokens = mf.Tokens.uniform(100_000, 2, rng=4)
    modes = mf.kernel_modes(tokens, 2e4)
    assert modes.undecided == 0
    assert abs(len(modes) - np.sqrt(3e4)) < 40  # its standard deviation is about 7


def test_other_states_are_refused():
    with pytest.raises(TypeError, match="takes Tokens; got Density"):
        mf.kernel_modes(mf.Circle(8).uniform(), 1.0)
    for tokens in (mf.Tokens.uniform(4, 3, rng=0), mf.Tokens.uniform(4, 2, rng=0, shape=2)):
        with pytest.raises(ValueError, match="single set of tokens on the circle"):
            mf.kernel_modes(tokens, 1.0)
    with pytest.raises(ValueError, match="circle"):
        mf.kernel_modes(mf.Tokens(np.eye(2), on_sphere=False), 1.0)
    for beta in (0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="beta must be a finite number > 0"):
            mf.kernel_modes(line([0.0, 1.0]), beta)
