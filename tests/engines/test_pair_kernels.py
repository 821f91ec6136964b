"""Kernels of two points: equal to zonal drifts, low rank against sums, refusals, tangents."""

import numpy as np
import pytest
from scipy.special import ive

import meanfield as mf
from meanfield.engines import PairSums, pair_kernels
from meanfield.engines.density_heads import GridDensity
from meanfield.engines.fields import fields_of
from meanfield.engines.pair_kernels import LowRank, pulls

CIRCLE = mf.Circle(16)
TURN = np.array([[0.8, -0.6], [0.6, 0.8]])


def exponential(x, y):
    return np.exp((x * y).sum(axis=-1))


USA = mf.PairKernel(lambda x, y: exponential(x, y)[..., None] * y)
SA = mf.PairKernel(lambda x, y: exponential(x, y)[..., None] * y, weight=exponential)


def unequal(x, y):
    pull = np.exp(0.7 * (x * y[..., ::-1]).sum(axis=-1, keepdims=True))
    return (1 + 0.5 * y[..., :1]) * pull * x[..., ::-1]


UNEQUAL = mf.PairKernel(unequal, weight=lambda x, y: 1.5 + x[..., 0] * y[..., 1])


def tilted(space):
    x = space.points
    return mf.Density(space, space.to_coefficients(1 + 0.4 * x[:, 1] + 0.3 * x[:, 0] * x[:, 1]))


def tokens(d, n=30):
    x = np.random.default_rng(d).standard_normal((n, d))
    return mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))


@pytest.mark.repeats
@pytest.mark.parametrize("pair", [(USA, mf.USA(1.0)), (SA, mf.SA(1.0))], ids=["USA", "SA"])
def test_zonal_kernels_are_equal_to_theirs(pair):
    for state in (tokens(2), tokens(3)):
        one, two = (mf.solve(mf.Transformer(drift), state, (0, 1), dt=0.1).final for drift in pair)
        assert np.abs(one.x - two.x).max() < 1e-13
    one, two = (
        mf.solve(mf.Transformer(drift, 3.0), tilted(CIRCLE), (0, 0.5), rtol=1e-9).final
        for drift in pair
    )
    assert np.abs(one.coefficients[:8] - two.coefficients[:8]).max() < 1e-10
    states = [mf.stationary_states(mf.Transformer(drift, 6.0), CIRCLE) for drift in pair]
    orders = [[one.order_parameter for one in found] for found in states]
    assert orders[0] == pytest.approx(orders[1], abs=1e-10)


@pytest.mark.parametrize("drift", [USA, UNEQUAL], ids=["zonal", "unequal"])
def test_low_rank_on_the_sphere_against_sums(monkeypatch, drift):
    """A large matrix by crosses, its transpose and its error, against sums over a finer grid."""
    monkeypatch.setattr(pair_kernels, "DENSE_ENTRIES", 1000)
    space = mf.Sphere(8)
    ((_, field),) = fields_of(drift, space)
    density = tilted(space)
    one = GridDensity(space, density.coefficients, density.values)
    fine = space.with_degree(24)
    masses = fine.weights * fine.to_values(space.resample(density.coefficients, 24))
    exact = pulls(drift, space.points, fine.points, masses)
    assert np.abs(field.attention(0.0, one) - exact).max() < 1e-9
    assert field.kernel.error <= drift.tolerance
    assert field.kernel.rank < min(field.kernel.shape)
    vectors = np.random.default_rng(0).standard_normal((field.kernel.shape[1], 2))
    others = np.random.default_rng(1).standard_normal((field.kernel.shape[0], 2))
    both = others.T @ (field.kernel @ vectors), field.kernel.transposed(others).T @ vectors
    np.testing.assert_allclose(*both, rtol=1e-10)


def test_a_matrix_without_low_rank_is_refused_with_rank_and_error(monkeypatch):
    monkeypatch.setattr(pair_kernels, "DENSE_ENTRIES", 10)
    monkeypatch.setattr(pair_kernels, "MOST_RANK", 20)
    x = tokens(2, 100).x
    narrow = lambda x, y: np.exp(200 * ((x[:, None] * y[None]).sum(-1) - 1))[..., None]  # noqa: E731
    with pytest.raises(mf.MeanfieldError, match=r"no low rank: at rank 20 its error is \d"):
        LowRank(narrow, x, x, 1, 1e-10)
    zero = LowRank(lambda x, y: np.zeros((len(x), len(y), 1)), x, x, 1, 1e-10)
    assert (zero.rank, zero.error) == (0, 0.0)


def test_kernels_that_harmonics_do_not_resolve_are_refused():
    jump = mf.PairKernel(lambda x, y: np.sign(y[..., :1]) * y)
    with pytest.raises(mf.MeanfieldError, match="not resolved as a function of its second point"):
        mf.solve(mf.Transformer(jump, 3.0), tilted(CIRCLE), (0, 0.1))


def test_tangents_of_tokens_are_differences():
    start = tokens(3, 8)
    change = np.random.default_rng(5).standard_normal(start.x.shape)
    change -= (change * start.x).sum(-1, keepdims=True) * start.x
    model = mf.Transformer(SA)

    def moved(h):
        x = start.x + h * change
        x = mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
        return mf.solve(model, x, (0, 0.2), dt=0.1).final.x

    run = mf.solve(model, start, (0, 0.2), dt=0.1, tangents=[{"x": change}])
    expected = (moved(1e-4) - moved(-1e-4)) / 2e-4
    assert np.abs(run.tangents["direction_0"][-1].x - expected).max() < 1e-7


def test_tangents_of_densities_are_differences():
    model, direction = mf.Transformer(UNEQUAL, 4.0), np.zeros(33, complex)
    direction[1:3] = 0.1, 0.05j
    options = {"dt": 0.05, "max_degree": 32, "min_degree": 32}
    start = tilted(mf.Circle(32))

    def moved(h):
        one = mf.Density(start.space, start.coefficients + h * direction)
        return mf.solve(model, one, (0, 0.2), **options).final.coefficients

    run = mf.solve(model, start, (0, 0.2), tangents=[direction], **options)
    expected = (moved(1e-3) - moved(-1e-3)) / 2e-3
    assert np.abs(run.tangents["direction_0"][-1].coefficients - expected).max() < 1e-7


def test_gradients_under_a_weight_are_the_transpose():
    """<gradient, direction> is the change of the value along the direction, to rounding."""
    space, direction = mf.Circle(32), np.zeros(33, complex)
    direction[1:4] = 0.1, 0.05j, -0.03
    options = {"t_eval": [0.2], "dt": 0.05, "max_degree": 32, "min_degree": 32}
    run = mf.solve(
        mf.Transformer(UNEQUAL, 4.0), tilted(space), (0, 0.2), tangents=[direction], **options
    )

    def value(x):
        return x[..., 0] + 0.5 * x[..., 0] * x[..., 1]

    forwards = run.tangents["direction_0"][-1].expect(value)
    backwards = mf.gradient(value, run).initial.paired(mf.Variation(space, direction))
    assert abs(forwards) > 1e-3
    assert backwards == pytest.approx(forwards, rel=1e-11)


@pytest.mark.parametrize("part", ["kernel", "weight"])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-10])
def test_sources_resolve_the_kernel_and_the_weight_to_the_tolerance(part, tolerance):
    """The coefficients of exp(30 <x, y>) are Bessel functions, as of a law of von Mises."""
    space = mf.Circle(8)

    def narrow(x, y):
        return np.exp(30 * ((x * y).sum(axis=-1) - 1))

    functions = {
        "kernel": {"kernel": lambda x, y: narrow(x, y)[..., None] * np.ones(2)},
        "weight": {"kernel": lambda x, y: x + 0 * y, "weight": narrow},
    }
    drift = mf.PairKernel(**functions[part], tolerance=tolerance)
    density = tilted(space)
    ((_, field),) = fields_of(drift, space)
    found = field.attention(0.0, GridDensity(space, density.coefficients, density.values))
    fine = space.with_degree(256)
    masses = fine.weights * fine.to_values(space.resample(density.coefficients, 256))
    exact = pulls(drift, space.points, fine.points, masses)
    assert np.abs(found - exact).max() < tolerance * np.abs(exact).max()
    sizes = ive(np.arange(1000), 30.0)
    degree = field._sources.degree
    assert sizes[degree + 1] < tolerance * sizes[0] < sizes[degree // 4]


@pytest.mark.long
def test_blocks_of_tokens_and_characteristics(monkeypatch):
    """Sums by blocks of one row, and nodes that are moved as tokens are."""
    x = tokens(2, 20).x[None]
    masses = np.full((1, 20), 0.05)
    whole = PairSums(UNEQUAL).attention(0.0, x, masses)
    monkeypatch.setattr(pair_kernels, "BLOCK_VALUES", 10)
    np.testing.assert_allclose(PairSums(UNEQUAL).attention(0.0, x, masses), whole, rtol=1e-13)
    monkeypatch.undo()
    turned = mf.PairKernel(lambda x, y: y @ TURN.T)
    state = mf.Characteristics(tilted(CIRCLE))
    one = mf.solve(mf.Transformer(turned), state, (0, 0.5), rtol=1e-8).final
    two = mf.solve(mf.Transformer(mf.Attention(V=TURN, beta=0.0)), state, (0, 0.5), rtol=1e-8).final
    assert np.abs(one.expect(lambda x: x) - two.expect(lambda x: x)).max() < 1e-8


def test_tokens_in_the_field_of_a_run_of_densities():
    """`MeanField`: nodes of a quadrature move as the density that they represent."""
    times = np.linspace(0, 0.3, 31)
    model = mf.Transformer(UNEQUAL)
    run = mf.solve(model, tilted(CIRCLE), (0, 0.3), t_eval=times, rtol=1e-9)
    theta = 2 * np.pi * np.arange(128) / 128
    x = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    masses = (1 + 0.4 * x[:, 1] + 0.3 * x[:, 0] * x[:, 1]) / 128
    alone = mf.Transformer(mf.MeanField(run))
    final = mf.solve(alone, mf.Tokens(x, masses), (0, 0.3), rtol=1e-9).final
    assert abs(masses @ (final.x[:, 0] - 1j * final.x[:, 1]) - run.final.coefficients[1]) < 1e-6


def test_refusals():
    with pytest.raises(TypeError, match="function of points x and y"):
        mf.PairKernel(lambda x: x)
    flat = mf.PairKernel(lambda x, y: (x * y).sum(-1)[..., None, None])
    with pytest.raises(ValueError, match=r"PairKernel.kernel, of pairs of points"):
        mf.solve(mf.Transformer(flat), tokens(2), (0, 1))


def test_a_number_in_place_of_a_vector_is_refused():
    """It would be a velocity along (1, 1)."""
    drift = mf.PairKernel(lambda x, y: (x * y).sum(-1, keepdims=True))
    for state in (mf.Tokens.uniform(5, 2, rng=0), mf.Circle(16).uniform()):
        with pytest.raises(ValueError, match=r"PairKernel\.kernel"):
            mf.solve(mf.Transformer(drift), state, (0, 0.1))
