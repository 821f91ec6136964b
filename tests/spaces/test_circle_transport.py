"""The transport on the circle, on rough data: coefficients up to the degree that do not decay.

Smooth data hide aliasing, so the densities here are random up to the last mode.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from meanfield import SA, USA, Circle, Interaction, Kuramoto
from meanfield.lowlevel.callbacks import evaluate

EPS = np.finfo(float).eps
reproducible = settings(deadline=None, derandomize=True, max_examples=60)
degrees, seeds = st.integers(1, 70), st.integers(0, 2**32 - 1)
Z_IS_ONE = [
    USA(0.7),
    USA(4.0),
    USA(-3.0),
    USA(600.0),
    Kuramoto(),
    Interaction(lambda t: np.exp(t) * np.sin(3 * t)),
    Interaction.chebyshev([0.0, -1.0, 0.5, 2.0]),
]


def rough(degree, seed=0, *, positive=False):
    """Random coefficients that do not decay; scaled to a density between 0.1 and 1.9 or not."""
    c = np.random.default_rng(seed).standard_normal((degree + 1, 2)) @ [1, 1j]
    c[0] = 1
    if positive:
        c[1:] *= 0.45 / np.abs(c[1:]).sum()
    return c


def transport(drift, degree, members=1):
    """The transport of one drift for `members` densities."""
    attraction, normaliser = drift.attraction(degree, 2), drift.normaliser(degree, 2)
    tables = [None if t is None else np.atleast_2d(t) for t in (attraction, normaliser)]
    return Circle(degree).transport(*tables, members)


def full(half):
    """Coefficients -K, ..., K of a real function from 0, ..., K."""
    return np.concatenate([np.conj(half[:0:-1]), half])


def galerkin(drift, c):
    """-(mu v)' by convolution of the series: the definition when Z = 1. And a scale."""
    degree = c.size - 1
    k = np.arange(-degree, degree + 1)
    weights = drift.attraction(degree, 2)
    weights = np.concatenate([weights[:0:-1], weights])
    u, v = full(c), 1j * k * weights * full(c)
    product = np.convolve(u, v)[2 * degree : 3 * degree + 1]
    return -1j * np.arange(degree + 1) * product, np.linalg.norm(u) * np.abs(v).sum()


def velocity(c, beta, size, *, softmax):
    """v(x) = P_x int e^(beta <x, y>) y dmu(y) / Z on `size` angles, by direct quadrature."""
    theta = 2 * np.pi * np.arange(size) / size
    density = (full(c) @ np.exp(1j * np.outer(np.arange(1 - c.size, c.size), theta))).real
    difference = theta[None, :] - theta[:, None]  # y minus x
    kernel = np.exp(beta * np.cos(difference) - (abs(beta) if softmax else 0)) / size
    v = (kernel * np.sin(difference)) @ density
    return density, v / (kernel @ density) if softmax else v


def by_quadrature(c, beta, size, *, softmax):
    """-(mu v)' by direct quadrature of the velocity and an oversampled product."""
    density, v = velocity(c, beta, size, softmax=softmax)
    spectrum = np.fft.rfft(density * v, norm="forward")[: c.size]
    return -1j * np.arange(c.size) * spectrum


# Z = 1: no aliasing at all -----------------------------------------------------------------


@pytest.mark.parametrize("drift", Z_IS_ONE, ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("degree", [1, 2, 7, 21, 64, 101])
def test_rough_data_give_the_exact_galerkin_convolution(drift, degree):
    c = rough(degree)
    expected, scale = galerkin(drift, c)
    # Rounding of three transforms; the derivative gives k.
    np.testing.assert_allclose(
        transport(drift, degree)(c[None])[0], expected, rtol=0, atol=5 * EPS * degree * scale
    )


@reproducible
@given(degrees, seeds, st.floats(-20, 20, allow_subnormal=False))
def test_rough_data_at_any_degree_and_beta(degree, seed, beta):
    c = rough(degree, seed)
    expected, scale = galerkin(USA(beta), c)
    np.testing.assert_allclose(
        transport(USA(beta), degree)(c[None])[0], expected, rtol=0, atol=5 * EPS * degree * scale
    )  # rounding, as above


@pytest.mark.parametrize("beta", [0.5, 4.0, -4.0])
def test_the_drift_of_usa_is_its_integral(beta):
    c = rough(24)
    expected = by_quadrature(c, beta, 256, softmax=False)
    # The kernel has I_100(4) < 1e-120 beyond the aliases of 256 points: rounding only.
    scale = np.abs(c).sum() ** 2 * np.exp(abs(beta))
    np.testing.assert_allclose(
        transport(USA(beta), 24)(c[None])[0], expected, rtol=0, atol=20 * EPS * 24 * scale
    )


@pytest.mark.parametrize("degree", [5, 40])
def test_the_grid_is_long_enough_for_the_product(degree):
    """2 degree + band + 1 points, the band being the number of modes in the velocity."""
    kuramoto, wide = transport(Kuramoto(), degree), transport(USA(600.0), degree)
    assert kuramoto.length >= 2 * degree + 2
    assert wide.length >= 3 * degree + 1
    assert kuramoto.transforms == wide.transforms == 3
    softmax = transport(SA(0.1), degree)
    assert softmax.length >= 3 * degree + 1  # whatever the band: 1/Z has all modes
    assert softmax.transforms == 4


def test_a_constant_interaction_moves_nothing():
    c = rough(9)
    result = transport(Interaction(lambda t: 3 + 0 * t), 9)(c[None])
    # Its multipliers beyond the constant are zero up to rounding of quadrature.
    np.testing.assert_allclose(result, 0, rtol=0, atol=1e-12)


# SA: the aliases of a quotient -------------------------------------------------------------


@pytest.mark.parametrize(("degree", "beta"), [(6, 60.0), (8, 30.0), (12, 20.0), (24, 4.0)])
def test_softmax_aliases_are_bounded_by_the_tail_of_the_velocity(degree, beta):
    """Mode j of the product sees v_m for |m| >= length - 2 degree only, times some u."""
    c = rough(degree, positive=True)
    computed = transport(SA(beta), degree)
    size = 8 * computed.length
    fine = by_quadrature(c, beta, size, softmax=True)
    _, v = velocity(c, beta, size, softmax=True)
    tail = 2 * np.abs(np.fft.rfft(v, norm="forward")[computed.length - 2 * degree :]).sum()
    error = np.abs(computed(c[None])[0] - fine)
    # The bound is derived in the docstring; rounding as in the tests above.
    k = np.arange(degree + 1)
    assert (error <= k * (tail + 50 * EPS)).all()
    if tail > 1e-9:  # where there are aliases the bound is not a mere triviality
        assert error.max() > 1e-3 * degree * tail * np.abs(c[1:]).max()


@pytest.mark.repeats
@pytest.mark.parametrize("beta", [0.0, 0.3, 4.0, -4.0, 200.0, 1000.0])
def test_softmax_attention_is_its_integral_for_a_smooth_density(beta):
    size = 1024
    theta = 2 * np.pi * np.arange(size) / size
    values = np.exp(np.cos(theta - 0.4) + 0.5 * np.sin(2 * theta))
    c = np.fft.rfft(values / values.mean(), norm="forward")[:65]
    expected = by_quadrature(c, beta, size, softmax=True)
    result = transport(SA(beta), 64)(c[None])[0]
    assert np.isfinite(result).all()
    # Smooth: modes beyond 64 are below rounding; mu v is of size 5 and k reaches 64.
    np.testing.assert_allclose(result, expected, rtol=0, atol=5 * 64 * 20 * EPS)


@reproducible
@given(st.integers(2, 40), seeds)
def test_both_attentions_are_kuramoto_at_beta_zero(degree, seed):
    c = rough(degree, seed, positive=True)[None]
    expected = transport(Kuramoto(), degree)(c)
    for drift in (USA(0.0), SA(0.0)):
        # The same product on another grid: rounding, times the largest k.
        np.testing.assert_allclose(
            transport(drift, degree)(c), expected, rtol=0, atol=20 * EPS * degree
        )


# The largest speed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drift", "beta", "softmax"), [(USA(3.0), 3.0, False), (SA(3.0), 3.0, True)], ids=["USA", "SA"]
)
def test_the_speed_is_the_largest_velocity_met_so_far(drift, beta, softmax):
    fast, slow = rough(20, 3, positive=True), (np.arange(21) == 0) + 1e-3 * (np.arange(21) == 2)
    move = transport(drift, 20)
    assert move.speed.shape == (1,)
    largest = np.abs(velocity(fast, beta, move.length, softmax=softmax)[1]).max()
    move(slow[None])
    small = move.speed[0]
    assert 0 < small < 0.1 * largest
    move(fast[None])
    # The kernel's modes beyond the grid, I_60(3) < 1e-70, do not count: rounding.
    assert move.speed[0] == pytest.approx(largest, rel=1e-12)
    move(slow[None])
    assert move.speed[0] == pytest.approx(largest, rel=1e-12)
    move.speed[0] = 0
    move(slow[None])
    assert move.speed[0] == small


# Symmetries --------------------------------------------------------------------------------


@reproducible
@given(degrees, seeds, st.floats(-7, 7), st.sampled_from([USA(5.0), SA(5.0), Kuramoto()]))
def test_turning_and_reflecting_commute_with_the_transport(degree, seed, angle, drift):
    c, circle = rough(degree, seed, positive=True), Circle(degree)
    move = transport(drift, degree)
    rotated = circle.rotate(c, angle)
    reached = move(c[None])[0]
    # The grid is not turned, so twice the aliases of softmax; and rounding of a product of
    # norm 1 with a velocity of at most `speed` in each of `degree` modes, times k.
    aliases = 0.0 if drift.normaliser(1, 2) is None else softmax_tail(c, move.length)
    speed = degree * np.abs(drift.attraction(degree, 2)).max()
    atol = 40 * EPS * degree * speed + 2 * degree * aliases
    np.testing.assert_allclose(
        move(rotated[None])[0], circle.rotate(reached, angle), rtol=0, atol=atol
    )
    np.testing.assert_allclose(move(np.conj(c)[None])[0], np.conj(reached), rtol=0, atol=atol)


def softmax_tail(c, length):
    """The bound on aliases for beta = 5, see the test above."""
    _, v = velocity(c, 5.0, 8 * length, softmax=True)
    return 2 * np.abs(np.fft.rfft(v, norm="forward")[length - 2 * (c.size - 1) :]).sum()


@pytest.mark.parametrize("drift", [USA(5.0), SA(50.0), Kuramoto()], ids=repr)
def test_mass_is_conserved_exactly_and_the_uniform_state_rests(drift):
    move = transport(drift, 30)
    assert move(rough(30, positive=True)[None])[0, 0] == 0
    uniform = (np.arange(31) == 0).astype(complex)
    assert np.abs(move(uniform[None])).max() <= 10 * EPS  # one rounding of the transform


# Ensembles and addresses -------------------------------------------------------------------


@pytest.mark.bits
@pytest.mark.parametrize("drift", [USA(5.0), SA(5.0), Kuramoto()], ids=repr)
def test_an_ensemble_under_one_drift_is_its_members_bit_for_bit(drift):
    densities = np.stack([rough(20, seed, positive=True) for seed in range(5)])
    together = transport(drift, 20, members=5)(densities)
    for density, result in zip(densities, together, strict=True):
        np.testing.assert_array_equal(transport(drift, 20)(density[None])[0], result)


@pytest.mark.parametrize(
    ("family", "exact"), [(SA, True), (USA, False)], ids=["SA bit for bit", "USA to rounding"]
)
def test_an_ensemble_of_betas_is_its_members(family, exact):
    """USA of small beta has fewer modes in its velocity, hence a shorter grid when alone."""
    betas = np.array([0.1, 3.0, 40.0])
    densities = np.stack([rough(20, seed, positive=True) for seed in range(3)])
    together = transport(family(betas), 20, members=3)(densities)
    for beta, density, result in zip(betas, densities, together, strict=True):
        alone = transport(family(beta), 20)(density[None])[0]
        # Rounding is relative to the velocity, at most e^beta, and to k.
        atol = 0 if exact else 20 * EPS * 20 * np.exp(beta)
        np.testing.assert_allclose(alone, result, rtol=0, atol=atol)


def test_transports_do_not_disturb_each_other_or_their_source():
    c = rough(20, positive=True)[None]
    before, first, second = c.copy(), transport(USA(5.0), 20), transport(SA(2.0), 20)
    alone = first(c)
    second(c)
    np.testing.assert_array_equal(first(c), alone)
    np.testing.assert_array_equal(c, before)
    assert first(c) is not first(c)


@njit
def _evaluate(address, context, member, source, target):
    evaluate(address, context, member, source, target)


@pytest.mark.bits
@pytest.mark.parametrize("family", [USA, SA])
def test_compiled_code_gets_the_same_bits(family):
    move = transport(family(np.array([1.0, 30.0])), 20, members=2)
    densities = np.stack([rough(20, 1, positive=True), rough(20, 2, positive=True)])
    expected = move(densities)
    for member in (1, 0):
        target = np.full(21, np.nan, complex)
        source = densities[member].ctypes.data
        _evaluate(move.address, move.context, member, source, target.ctypes.data)
        np.testing.assert_array_equal(target, expected[member])


def test_a_source_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="reshape"):
        transport(USA(1.0), 20)(np.ones((1, 20), complex))
