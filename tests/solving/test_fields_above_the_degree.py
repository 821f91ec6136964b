"""Fields and potentials have their harmonics, whatever the degree of a density is."""

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from scipy.special import iv

import meanfield as mf

NODES = 2 * np.pi * np.arange(8192) / 8192


def angle(x):
    """The angle of points of the circle."""
    return np.arctan2(x[..., 1], x[..., 0])


def harmonics(terms, theta):
    """sum a cos(k theta + phase) of (k, a, phase)."""
    return sum(a * np.cos(k * theta + phase) for k, a, phase in terms)


PHASE = st.floats(0, 6)
HIGH = st.tuples(st.integers(33, 40), st.sampled_from([-0.3, 0.1]), PHASE)
LOW = st.tuples(st.integers(1, 4), st.sampled_from([0.0, 0.5]), PHASE)


@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.tuples(HIGH, LOW), st.integers(4, 40), st.sampled_from([0.5, 1.0]))
@example([(4, 1.0, 1.9), (25, -1.0, 0.2)], 11, 1.2)
def test_the_stationary_law_of_any_sum_of_waves_is_that_of_quadrature(terms, degree, kappa):
    """exp(kappa V)/Z and F = -log(Z)/kappa, of the trapezoidal rule."""
    V = mf.Potential(lambda x: harmonics(terms, angle(x)))
    found = mf.stationary(mf.Transformer(V, kappa), mf.Circle(degree).uniform())
    law = np.exp(kappa * harmonics(terms, NODES))
    assert found.converged
    assert found.free_energy == pytest.approx(-np.log(law.mean()) / kappa, abs=1e-11)
    for k in (1, *(k for k, _, _ in terms)):
        moment = found.density.moment(k) if k <= found.density.space.degree else 0.0
        exact = (law * np.exp(1j * k * NODES)).mean() / law.mean()
        assert abs(moment) == pytest.approx(abs(exact), abs=1e-11)


@pytest.mark.parametrize("degree", [8, 24])
@pytest.mark.parametrize("n", [33, 50, 300])
def test_a_run_takes_the_degrees_of_a_potential(n, degree):
    V = mf.Potential(lambda x: np.cos(n * angle(x)))
    run = mf.solve(mf.Transformer(V, 1.5), mf.Circle(degree).uniform(), (0, 60 / n**2))
    assert run.status == "finished" and run.stats["highest_degree"] >= 2 * n
    assert run.final.moment(n).real == pytest.approx(iv(1, 1.5) / iv(0, 1.5), abs=1e-9)


KINDS = {
    "Potential": lambda f: {"drift": mf.Potential(lambda x: f(angle(x)))},
    "Field": lambda f: {"drift": mf.Field(lambda x: -f(angle(x))[..., None] * turned(x))},
    "feedforward": lambda f: {
        "drift": 0.0 * mf.Kuramoto(),
        "feedforward": lambda x: f(angle(x))[..., None] * turned(x),
    },
    "PairKernel": lambda f: {
        "drift": mf.PairKernel(lambda x, y: f(angle(x))[..., None] * turned(x) + 0 * y)
    },
    "weight": lambda f: {
        "drift": mf.PairKernel(
            lambda x, y: turned(x) + 0 * y,
            weight=lambda x, y: 1 + 0.5 * f(angle(x)) + 0 * y[..., 0],
        )
    },
    "Sum": lambda f: {"drift": mf.SA(2.0) + 0.5 * mf.Potential(lambda x: f(angle(x)))},
}


def turned(x):
    """The unit tangent of the circle."""
    return np.stack([-x[..., 1], x[..., 0]], axis=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fixed_degree_below_a_harmonic_is_refused(kind):
    model = mf.Transformer(**KINDS[kind](lambda theta: np.cos(40 * theta)), kappa=2.0)
    start = mf.Circle(24).uniform()
    with pytest.raises(mf.MeanfieldError, match=r"degree 24 hides harmonics of degree"):
        mf.solve(model, start, (0, 0.1), min_degree=24, max_degree=24)


@pytest.mark.parametrize("space", [mf.Sphere(8), mf.Torus(8)], ids=repr)
def test_a_potential_above_the_degree_moves_densities_on_surfaces(space):
    """From the uniform density mu = 1 - t Lap V + O(t^2), with V of degree 40."""

    def V(x):
        return ((x[..., 0] + 1j * x[..., 1]) ** 40).real

    model, t = mf.Transformer(mf.Potential(V), 1e6), 1e-7
    with pytest.raises(mf.MeanfieldError, match=r"degree 16 hides harmonics of degree 40"):
        mf.solve(model, space.uniform(), (0, t), max_degree=16)
    run = mf.solve(model, space.uniform(), (0, t), t_eval=[t], rtol=1e-5)
    fine = run.final.space
    expected = -t * fine.laplacian * fine.to_coefficients(V(fine.points))
    assert np.abs(expected).max() > 1e-6
    difference = run.final.coefficients[1:] - expected[1:]
    assert np.abs(difference).max() < 1e-3 * np.abs(expected).max()


JUMPS = {
    "angle": angle,
    "sign": lambda x: np.sign(x[..., 0]),
    "mod": lambda x: np.mod(angle(x) + 3, 2 * np.pi),
    "floor": lambda x: np.floor(5 * x[..., 0]),
    "round": lambda x: np.round(x[..., 0], 3),
    "half": lambda x: np.sin(angle(x) / 2),
    "kink": lambda x: np.maximum(x[..., 0], x[..., 1]),
    "fine": lambda x: np.cos(6000 * angle(x)),
}


@pytest.mark.parametrize("V", JUMPS.values(), ids=JUMPS)
@pytest.mark.parametrize("solver", ["solve", "stationary"])
def test_a_potential_that_is_not_smooth_is_refused(solver, V):
    model = mf.Transformer(mf.Kuramoto() + mf.Potential(V), 1.5)
    start = mf.Circle(24).von_mises(0.1, 0.5)
    with pytest.raises(mf.MeanfieldError, match=r"not smooth.* expected <= 1e-07"):
        mf.solve(model, start, (0, 0.1)) if solver == "solve" else mf.stationary(model, start)


@pytest.mark.parametrize("space", [mf.Sphere(8), mf.Torus(8)], ids=repr)
def test_a_potential_that_jumps_on_a_surface_is_refused(space):
    model = mf.Transformer(mf.Potential(lambda x: np.sign(x[..., 0])), 1.5)
    with pytest.raises(mf.MeanfieldError, match="not smooth"):
        mf.solve(model, space.uniform(), (0, 0.1))


@given(st.integers(25, 6000), st.integers(1, 24))
@settings(max_examples=40, deadline=None)
def test_waves_of_a_periodic_kernel_above_the_degree_are_no_lower_ones(n, k):
    """cos(n z) + cos(k z)/2 on a torus of one angle has the multiplier 1/4 at k alone."""
    kernel = mf.PeriodicKernel(lambda z: np.cos(n * z) + 0.5 * np.cos(k * z), circles=1)
    table = kernel.on_torus("attraction", mf.Torus(24, 1))
    expected = np.where(np.arange(25) == k, 0.25, 0.0)
    np.testing.assert_allclose(table, expected, rtol=0, atol=1e-12)


def test_a_kernel_that_divides_by_a_weight_above_the_degree():
    """d theta/dt = 1/(1 + cos(n theta)/2) for all tokens alike: d mu_n/dt at 0 by quadrature."""
    n, t = 100, 1e-4
    weight = lambda x, y: 1 + 0.5 * np.cos(n * angle(x)) + 0 * y[..., 0]  # noqa: E731
    drift = mf.PairKernel(lambda x, y: turned(x) + 0 * y, weight=weight)
    run = mf.solve(mf.Transformer(drift, 1e6), mf.Circle(24).uniform(), (0, t), max_degree=4096)
    speed = 1 / (1 + 0.5 * np.cos(n * NODES))
    rate = 1j * n * (speed * np.exp(1j * n * NODES)).mean()
    assert abs(run.final.moment(n) - t * rate) < 0.05 * abs(t * rate)


@pytest.mark.parametrize("factor", [np.sin, np.cos])
def test_a_kernel_is_looked_at_from_points_in_all_directions(factor):
    drift = mf.PairKernel(
        lambda x, y: (
            (np.sin(40 * angle(x)) * factor(np.arctan2(y[..., 3], y[..., 2])))[..., None]
            * np.concatenate([turned(x[..., :2]), 0 * x[..., 2:]], axis=-1)
        )
    )
    with pytest.raises(mf.MeanfieldError, match="degree 39"):
        mf.solve(mf.Transformer(drift), mf.Torus(8).uniform(), (0, 0.1), max_degree=16)


def test_a_kernel_with_fine_harmonics_in_its_second_point():
    """int cos(84 y) dmu(y) = 0 up to degree 24, but cos(84 y) is cos(12 y) at 72 nodes."""
    drift = mf.PairKernel(lambda x, y: np.cos(84 * angle(y))[..., None] * turned(x))
    start = mf.Circle(24).density(lambda theta: 1 + 0.2 * np.cos(12 * theta) + 0.3 * np.cos(theta))
    run = mf.solve(mf.Transformer(drift), start, (0, 0.1))
    assert np.abs(run.final.resample(24).coefficients - start.coefficients).max() < 1e-14
    with pytest.raises(mf.MeanfieldError, match="degree 24 hides harmonics of degree 42"):
        mf.solve(mf.Transformer(drift), start, (0, 0.1), min_degree=24, max_degree=24)


@pytest.mark.long
def test_a_steep_potential_is_smooth_on_a_fine_sphere():
    """exp(400 (x - 1)) has harmonics above rounding up to degree 150; 96 are sampled first."""
    V = mf.Potential(lambda x: np.exp(400 * (x[..., 0] - 1)))
    found = V.harmonics.on(mf.Sphere(24))
    assert found.beyond(96) > 1e-8 and found.beyond(200) < 1e-13


@pytest.mark.parametrize("V", [lambda x: (x**2).sum(axis=-1) - 1, lambda x: 0 * x[..., 0] + 3])
def test_a_potential_that_is_constant_to_rounding_moves_nothing(V):
    model = mf.Transformer(mf.Potential(V) + 0.0 * mf.Potential(JUMPS["sign"]), 2.0)
    run = mf.solve(model, mf.Circle(8).uniform(), (0, 1.0))
    assert np.abs(run.final.coefficients[1:]).max() < 1e-14


def test_a_jump_on_a_high_level_is_refused():
    model = mf.Transformer(mf.Potential(lambda x: 1e8 + np.sign(x[..., 0])), 1.5)
    with pytest.raises(mf.MeanfieldError, match="not smooth"):
        mf.solve(model, mf.Circle(8).uniform(), (0, 0.1))


def test_members_share_the_harmonics_of_their_feed_forward_map():
    calls = []

    def activation(x):
        calls.append(x)
        return np.tanh(x)

    maps = mf.FeedForward(1.0, 1.0, activation=activation)
    model = mf.Transformer(mf.SA(1.0), np.array([1.0, 2.0, 3.0]), feedforward=maps)
    for member in map(model.member, range(3)):
        assert member.feedforward_harmonics is model.feedforward_harmonics


@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_a_run_does_not_begin_below_weak_harmonics_of_its_field(rtol):
    """Also where rtol does not ask for them, and for members with the factor 0."""
    weak = mf.Potential(lambda x: np.cos(angle(x)) + 1e-6 * np.cos(100 * angle(x)))
    drift = mf.USA([0.5, 1.0]) + np.array([0.0, 0.3]) * weak
    run = mf.solve(mf.Transformer(drift, 2.0), mf.Circle(16).von_mises(0.3, 0.5), (0, 1), rtol=rtol)
    assert set(np.ravel(run.status)) == {"finished"}
    assert run.stats["highest_degree"][1] >= 100 > run.stats["highest_degree"][0]


def test_a_scale_of_noise_that_its_grid_takes_for_a_constant():
    """s = 1 + cos(100 theta)/2 is 3/2 on 50 points. For fine s decay is homogenised: <1/s>^-2."""
    noise = mf.noise.MultiplicativeIto(lambda x: 1 + 0.5 * np.cos(100 * angle(x)))
    model = mf.Transformer(0.0 * mf.Kuramoto(), 1.0, noise=noise)
    start = mf.Circle(16).density(lambda theta: 1 + 0.5 * np.cos(theta))
    run = mf.solve(model, start, (0, 0.5), t_eval=[0.5])
    s = 1 + 0.5 * np.cos(NODES)
    rate = 1 / (1 / s**2).mean()
    assert run.final.moment(1).real == pytest.approx(0.25 * np.exp(-0.5 * rate), rel=1e-3)


@pytest.mark.parametrize("degree", [16, 64])
def test_no_degree_of_a_search_hides_a_wave_between_others(degree):
    """At degree 48 the harmonics 20 and 40 would tell nothing of 60."""
    waves = lambda theta: 0.3 * np.cos(20 * theta) + 0.1 * np.cos(60 * theta)  # noqa: E731
    V = mf.Potential(lambda x: waves(angle(x)))
    found = mf.stationary(mf.Transformer(V, 1.0), mf.Circle(degree).von_mises(0.3, 0.5))
    expected = -np.log(np.exp(waves(NODES)).mean())
    assert found.converged and found.free_energy == pytest.approx(expected, abs=1e-12)
