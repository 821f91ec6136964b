"""Stationary states and branches under a `PairKernel`, on every space."""

import numpy as np
import pytest
from scipy.optimize import root

import meanfield as mf

TURN = np.array([[0.8, -0.6], [0.6, 0.8]])


def exponential(x, y):
    return np.exp((x * y).sum(axis=-1))


SA = mf.PairKernel(lambda x, y: exponential(x, y)[..., None] * y, weight=exponential)
STARTS = {
    "circle": (mf.Circle(16).von_mises(0.3, 1.0), 2.6),
    "sphere": (mf.Sphere(12).density(lambda x, y, z: np.exp(0.8 * z + 0.6 * x)), 3.3),
    "torus": (mf.Torus(9).von_mises([0.3, 1.0], 0.7), 2.28),
}


@pytest.mark.parametrize(
    "name", ["circle", "sphere", pytest.param("torus", marks=pytest.mark.long)]
)
def test_states_of_a_zonal_kernel_are_those_of_the_zonal_drift(name):
    start, kappa = STARTS[name]
    state = mf.stationary(mf.Transformer(SA, kappa), start)
    zonal = mf.stationary(mf.Transformer(mf.SA(1.0), kappa), start)
    assert state.order_parameter > 0.1
    assert state.order_parameter == pytest.approx(zonal.order_parameter, abs=1e-10)
    assert state.stability().gap == pytest.approx(zonal.stability().gap, abs=1e-8)
    uniform = [
        mf.stability(mf.Transformer(drift, kappa), start.space.uniform()).eigenvalues[0]
        for drift in (SA, mf.SA(1.0))
    ]
    assert uniform[0] == pytest.approx(uniform[1], abs=1e-8)


@pytest.mark.parametrize(
    "space, span",
    [
        (mf.Circle(16), (2.0, 2.6)),
        pytest.param(mf.Sphere(8), (2.8, 3.4), marks=pytest.mark.long),
        pytest.param(mf.Torus(6), (2.1, 2.32), marks=pytest.mark.long),
    ],
    ids=["circle", "sphere", "torus"],
)
def test_branches_of_a_zonal_kernel_are_those_of_the_zonal_drift(space, span):
    """On the torus stripes along each angle count, as nothing says that angles are exchanged."""
    pair, zonal = (mf.branches(drift, space, kappa=span) for drift in (SA, mf.SA(1.0)))
    (onset, *_), (exact, *_) = (one.special("bifurcation") for one in (pair, zonal))
    assert onset.value == pytest.approx(exact.value, abs=1e-8)
    value = 0.2 * span[0] + 0.8 * span[1]
    found, expected = (
        sorted({round(state.order_parameter, 8) for _, state in one.states_at(value)})
        for one in (pair, zonal)
    )
    assert len(found) > 1
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-8)


def turned(x, y):
    """Attraction to points turned by a rotation of each pair, on unequal footing."""
    pairs = y.reshape(*y.shape[:-1], -1, 2) @ TURN.T
    return (0.8 + 0.3 * x[..., :1] * y[..., -1:]) * pairs.reshape(y.shape)


def positive(x, y):
    return 1.5 + 0.4 * x[..., 0] * y[..., 1]


@pytest.mark.repeats
@pytest.mark.parametrize("space, n, kappa", [(mf.Circle(24), 48, 2.0), (mf.Torus(6), 16, 0.7)],
                         ids=["circle", "torus"])  # fmt: skip
def test_a_kernel_that_turns_against_dense_sums(space, n, kappa):
    """Rates of values on a grid, their root by SciPy, and the spectrum of their differences."""
    m = space.dimension // 2
    angles = 2 * np.pi * np.arange(n) / n
    theta = np.stack(np.meshgrid(*m * (angles,), indexing="ij"), axis=-1)
    x = np.stack([np.cos(theta), np.sin(theta)], axis=-1).reshape(-1, 2 * m)
    frame = np.stack([-np.sin(theta), np.cos(theta)], axis=-1).reshape(-1, m, 2)
    k, z = turned(x[:, None], x[None]), positive(x[:, None], x[None])
    waves = np.meshgrid(*m * (np.fft.fftfreq(n, 1 / n),), indexing="ij")
    axes = tuple(range(m))

    def rates(mu):
        masses = mu / len(mu)
        pulled = np.einsum("j,ijd->id", masses, k) / (z @ masses)[:, None]
        speed = (pulled.reshape(-1, m, 2) * frame).sum(axis=2)
        total = -sum(w**2 for w in waves) / kappa * np.fft.fftn(mu.reshape(m * (n,)))
        for w, each in zip(waves, speed.T, strict=True):
            total = total - 1j * w * np.fft.fftn((mu * each).reshape(m * (n,)))
        return np.fft.ifftn(total, axes=axes).real.ravel()

    def equation(mu):
        return rates(mu) + mu.mean() - 1

    state = mf.stationary(
        mf.Transformer(mf.PairKernel(turned, weight=positive), kappa), space.uniform()
    )
    exact = root(equation, np.ones(len(x)), tol=1e-13)
    assert np.abs(equation(exact.x)).max() < 1e-10
    here = state.density.space.at(state.density.coefficients, x)
    assert np.ptp(here) > 0.05
    np.testing.assert_allclose(here, exact.x, rtol=0, atol=1e-8)
    steps = 1e-5 * np.eye(len(x))
    matrix = np.array([(rates(exact.x + h) - rates(exact.x - h)) / 2e-5 for h in steps]).T
    values = np.linalg.eigvals(matrix)
    values = values[np.abs(values).argsort()][1:]  # without the 0 of the mass
    found = state.stability(4).eigenvalues
    first = values[np.argsort(-values.real)[:4]]
    np.testing.assert_allclose(np.sort(found.real), np.sort(first.real), rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        np.sort(np.abs(found.imag)), np.sort(np.abs(first.imag)), rtol=0, atol=1e-6
    )


def polynomials(x, degree):
    """Polynomials up to a degree on S^2, (n, M), and their tangential gradients, (3, n, M)."""
    powers = [(a, b, c) for c in (0, 1) for a in range(degree + 1 - c)
              for b in range(degree + 1 - c - a)]  # fmt: skip
    values = np.array([np.prod(x**p, axis=1) for p in powers])
    slopes = np.array([
        [p[i] * np.prod(x ** np.maximum(0, np.subtract(p, np.eye(3, dtype=int)[i])), axis=1)
         for p in powers] for i in range(3)
    ])  # fmt: skip
    return values, slopes - x.T[:, None] * np.einsum("ni,inp->pn", x, slopes.transpose(0, 2, 1))


@pytest.mark.repeats
@pytest.mark.parametrize("weight", [None, positive], ids=["Z = 1", "Z"])
def test_a_kernel_on_unequal_footing_on_the_sphere_against_dense_quadrature(weight):
    """Galerkin's equation in orthonormal polynomials: no harmonics, no eigenvalues of Laplacians.

    The kernel is that of no symmetry: x counts by its first coordinate, y by its third, turned.
    """
    kappa, degree = 2.0, 12
    z, heights = np.polynomial.legendre.leggauss(24)
    phi = 2 * np.pi * np.arange(48) / 48
    sines = np.sqrt(1 - z**2)[:, None]
    x = np.stack([sines * np.cos(phi), sines * np.sin(phi), z[:, None] + 0 * phi], -1)
    x, masses = x.reshape(-1, 3), np.repeat(heights / 2, 48) / 48

    def one_sided(x, y):
        turned = y @ np.array([[0.8, 0.6, 0], [-0.6, 0.8, 0], [0, 0, 1.0]])
        return (0.8 + 0.5 * x[..., :1] * y[..., 2:]) * turned + 0.3 * x[..., 1:2] * y

    values, slopes = polynomials(x, degree)
    for _ in range(2):  # orthonormal to rounding, the constant first
        triangle = np.linalg.cholesky((values * masses) @ values.T)
        values = np.linalg.solve(triangle, values)
        slopes = np.array([np.linalg.solve(triangle, one) for one in slopes])
    stiffness = np.einsum("inp,imp,p->nm", slopes, slopes, masses, optimize=True)
    k = one_sided(x[:, None], x[None])
    below = np.ones((len(x), len(x))) if weight is None else weight(x[:, None], x[None])

    def equation(c):
        mu = 1 + c @ values[1:]
        velocity = np.einsum("pqi,q->ip", k, masses * mu) / (below @ (masses * mu))
        force = np.einsum("inp,ip,p->n", slopes, velocity, masses * mu, optimize=True)
        return (force - stiffness[:, 1:] @ c / kappa)[1:]

    exact = root(equation, np.zeros(len(values) - 1), tol=1e-13)
    assert np.abs(equation(exact.x)).max() < 1e-11
    model = mf.Transformer(mf.PairKernel(one_sided, weight=weight), kappa)
    state = mf.stationary(model, mf.Sphere(12).uniform())
    here = state.density.space.at(state.density.coefficients, x)
    assert state.converged and np.ptp(here) > 0.05
    np.testing.assert_allclose(here, 1 + exact.x @ values[1:], rtol=0, atol=1e-9)
