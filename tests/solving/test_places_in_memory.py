"""Where arrays lie in memory, and in which order, changes no bit: of runs, of products by BLAS."""

import numpy as np
import pytest
import scipy.linalg
from memory_places import random_places

import meanfield as mf
from meanfield.lowlevel.blas import one_blas_thread

pytestmark = pytest.mark.bits
RNG = np.random.default_rng(11)
MATRICES = {d: 1.4 / np.sqrt(d) * RNG.standard_normal((3, d, d)) for d in (2, 3, 5, 64)}
POINTS = {}
for shape in ((23, 2), (23, 3), (70, 64), (3, 23, 3), (30, 5), (1000, 2), (40, 50), (33, 17)):
    x = RNG.standard_normal(shape)
    POINTS[shape] = x / np.linalg.norm(x, axis=-1, keepdims=True)


def attention(d, weights=None, beta=1.2, **options):
    Q, K, V = MATRICES[d]
    return mf.Attention(Q, K, V, beta, weights=weights or mf.Softmax(), **options)


def in_time(d, weights=None):
    Q, K, V = MATRICES[d]
    values = mf.PerLayer([V, -V], duration=0.17)
    return mf.Attention(lambda t: (1 + t) * Q, K, values, 1.2, weights=weights or mf.Softmax())


def circle():
    return mf.Circle(16).density(lambda t: 1 + 0.5 * np.cos(t - 0.3) + 0.2 * np.cos(2 * t + 1))


def sphere():
    return mf.Sphere(6).density(lambda x, y, z: 1 + 0.4 * x + 0.2 * y * z)


def zonal():
    return mf.Zonal(5, 12).density(lambda t: 1 + 0.3 * t)


def tokens(*shape):
    return lambda: mf.Tokens(POINTS[shape])


def gram():
    x = POINTS[40, 50]
    return mf.Gram(x @ x.T)


def gaussian():
    return mf.Gaussian(np.arange(5.0) / 5, np.diag(np.arange(1.0, 6)))


def indexed():
    law = lambda s, theta: 1 + 0.3 * np.cos(theta - s / 2)  # noqa: E731
    return mf.Circle(8).indexed(law, mf.Positions(order=8))


def negative():
    Q, K, _ = MATRICES[5] / 4
    return mf.Attention(Q, K, -0.4, 1.0)


RUNS = {}
SIMILAR = ("Unnormalised", "L2", "Sigmoid", "Linear")  # kinds of weights: one kernel as Softmax
for weights in (
    mf.Softmax(), mf.Unnormalised(), mf.L2(), mf.Sigmoid(0.3), mf.Linear(), mf.Sinkhorn(1e-12)
):  # fmt: skip
    kind = type(weights).__name__
    RUNS |= {
        f"circle, {kind}": (attention(2, weights), 4.0, circle, {}),
        f"circle in time, {kind}": (in_time(2, weights), 4.0, circle, {"rtol": 1e-3}),
        f"tokens, {kind}": (attention(3, weights), np.inf, tokens(23, 3), {}),
        f"tokens in 64 dimensions, {kind}": (attention(64, weights), np.inf, tokens(70, 64), {}),
        f"replicas in time, {kind}": (in_time(3, weights), np.inf, tokens(3, 23, 3), {}),
    }
for drift in (mf.SA(2.0), mf.USA(2.0)):
    kind = type(drift).__name__
    RUNS |= {
        f"circle, {kind}": (drift, 4.0, circle, {}),
        f"sphere, {kind}": (drift, 4.0, sphere, {}),
        f"zonal, {kind}": (drift, 4.0, zonal, {}),
        f"tokens on the circle, {kind}": (drift, np.inf, tokens(1000, 2), {}),
        f"gram, {kind}": (drift, np.inf, gram, {}),
        f"characteristics, {kind}": (drift, np.inf, lambda: mf.Characteristics(circle()), {}),
    }
RUNS |= {
    "sphere": (attention(3), 4.0, sphere, {"rtol": 1e-3}),
    "sphere in time": (mf.Attention(1, 1, lambda t: (1 + t) * MATRICES[3][0]), 4.0, sphere, {}),
    "circle, kappa in time": (mf.SA(2.0), lambda t: 4 + t, circle, {}),
    "circle, members": (mf.SA(np.array([1.0, 2])), np.array([3.0, 4]), circle, {}),
    "circle, tangents": (attention(2), 4.0, circle, {"tangents": ["beta"], "rtol": 1e-4}),
    "indexed": (attention(2), 5.0, indexed, {}),
    "gaussian": (negative(), np.inf, gaussian, {"tangents": ["beta"]}),
    "equiangular": (mf.SA(2.0), np.inf, lambda: mf.Equiangular(32, 0.1), {}),
    "characteristics": (attention(2), np.inf, lambda: mf.Characteristics(circle()), {}),
    "tokens, tangents": (attention(3), np.inf, tokens(23, 3), {"tangents": ["beta"]}),
    "tokens, noise": (attention(3), 5.0, tokens(23, 3), {"dt": 0.1, "rng": 3}),
    "tokens, threads": (mf.SA(2.0), np.inf, tokens(1000, 2), {"engine": mf.engines.Direct(2)}),
    "tokens, modes": (mf.SA(2.0), np.inf, tokens(23, 3), {"engine": mf.engines.Modes()}),
    "tokens, R^d": (
        negative(), np.inf, lambda: mf.Tokens(2 * POINTS[30, 5], on_sphere=False), {}
    ),
}  # fmt: skip


def numbers(drift, kappa, start, options):
    """All numbers of a run, as bytes."""
    model = mf.Transformer(drift, kappa, causal="mean" if start is indexed else None)
    options = {"t_eval": [0.0, 0.1, 0.2], "progress": False, **options}
    run = mf.solve(model, start(), (0, 0.2), **options)
    found = [array for state in run.states for _, array in state.arrays().values()]
    found += [run.observables[name].values for name in run.observables]
    for name in options.get("tangents", ()):
        for change in run.tangents[name]:
            found += [change.coefficients] if hasattr(change, "coefficients") else change.values()
    return [np.asarray(array).tobytes() for array in found]


@pytest.fixture(autouse=True)
def quickly():
    """Products by one thread: several would wait for each other beside other tests."""
    with one_blas_thread():
        yield


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.long] * n.endswith(SIMILAR)) for n in RUNS],
)
def test_a_run_has_the_same_bits_wherever_its_arrays_lie(name):
    usual = numbers(*RUNS[name])
    with random_places(1):
        assert numbers(*RUNS[name]) == usual


LAYOUTS = {
    "columns first": np.asfortranarray,
    "first axis last": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0),
    "every second": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
}
HEADS = RNG.standard_normal((3, 2, 17, 17))
MASSES = RNG.dirichlet(np.ones(23), 3)
GIVEN = {
    "heads": lambda as_given: (mf.Attention(*map(as_given, HEADS)), mf.Tokens(POINTS[33, 17])),
    "values": lambda as_given: (mf.Attention(V=as_given(HEADS[0, 0])), mf.Tokens(POINTS[33, 17])),
    "layers": lambda as_given: (
        mf.Attention(V=mf.PerLayer([as_given(V) for V in HEADS[0]], duration=0.17)),
        mf.Tokens(POINTS[33, 17]),
    ),
    "feed-forward": lambda as_given: (
        mf.SA(1.0) + mf.FeedForward(as_given(HEADS[0, 0]), as_given(HEADS[0, 1])),
        mf.Tokens(POINTS[33, 17]),
    ),
    "tokens": lambda as_given: (
        mf.SA(2.0), mf.Tokens(as_given(POINTS[3, 23, 3]), masses=as_given(MASSES))
    ),
    "tokens of R^d": lambda as_given: (
        mf.Attention(causal=True), mf.Tokens(as_given(2 * POINTS[3, 23, 3]), on_sphere=False)
    ),
    "covariance": lambda as_given: (
        negative(), mf.Gaussian(np.zeros(5), as_given(MATRICES[5][0] @ MATRICES[5][0].T))
    ),
    "inner products": lambda as_given: (mf.SA(2.0), mf.Gram(as_given(gram().G))),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", GIVEN)
def test_a_run_has_the_same_bits_however_the_arrays_of_its_user_are_laid_out(name, layout):
    """As those of a file are, so that a run that was saved goes on as if it had not been."""

    def of(as_given):
        drift, state = GIVEN[name](as_given)
        return numbers(drift, np.inf, lambda: state, {})

    assert of(LAYOUTS[layout]) == of(np.ascontiguousarray)


SIZES = ((1, 1, 1), (2, 2, 300), (3, 64, 2), (33, 5, 17), (64, 64, 64), (130, 90, 70))
PRODUCTS = {
    "A B": lambda A, B, x: A @ B,
    "A^T B^T": lambda A, B, x: B.T @ A.T,
    "A A^T": lambda A, B, x: A @ A.T,
    "A x": lambda A, B, x: A @ x,
    "x B": lambda A, B, x: x @ B,
    "x x": lambda A, B, x: x @ x,
    "sum": lambda A, B, x: A.sum(axis=1),
    "einsum": lambda A, B, x: np.einsum("mk,k,kn->mn", A, x, B),
    "exp": lambda A, B, x: np.exp(A),
    "inverse": lambda A, B, x: np.linalg.inv(A.T @ A + np.eye(len(x))),
    "eigenvalues": lambda A, B, x: np.linalg.eigvalsh(A @ A.T),
    "singular values": lambda A, B, x: np.linalg.svd(A, compute_uv=False),
    "scipy": lambda A, B, x: scipy.linalg.solve(A.T @ A + np.eye(len(x)), x),
    "Fourier": lambda A, B, x: np.fft.rfft(A),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_have_the_same_bits_wherever_their_factors_lie(name):
    for m, k, n in SIZES:
        factors = [RNG.standard_normal(shape) for shape in ((m, k), (k, n), (k,))]
        usual = PRODUCTS[name](*factors)
        with random_places(3):
            for _ in range(10):
                found = PRODUCTS[name](*(factor.copy() for factor in factors))
                np.testing.assert_array_equal(found, usual)


def test_a_sum_that_begins_at_a_whole_register_is_found():
    def by_registers(x):
        first = (-x.ctypes.data % 64) // 8
        return x[first:].sum() + x[:first].sum()

    x = RNG.standard_normal(1000)
    with random_places(4):
        assert len({by_registers(x.copy()) for _ in range(20)}) > 1
    with random_places(5):
        found = {np.empty(100).ctypes.data % 64 for _ in range(200)}
    assert found == set(range(0, 64, 8))
