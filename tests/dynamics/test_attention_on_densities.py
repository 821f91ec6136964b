"""N of densities under attention with matrices, against sums over the points of a finer grid."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import meanfield as mf
from meanfield.dynamics import DensityEvolution
from meanfield.dynamics.field_transport import EnsembleFields, FieldTransport
from meanfield.engines.attention import AttentionSums
from meanfield.engines.density_heads import GridDensity
from meanfield.engines.fields import fields_of
from meanfield.engines.kernels import CircleKernels, SphereKernels
from meanfield.models.weights import (
    L2,
    Linear,
    Sigmoid,
    Sinkhorn,
    Softmax,
    Unnormalised,
    Weights,
)
from meanfield.spaces.velocity_tables import TableTransport

reproducible = settings(deadline=None, derandomize=True, max_examples=12)
SPACES = [mf.Circle(24), mf.Sphere(8)]
everywhere = pytest.mark.parametrize("space", SPACES, ids=repr)


class HeavyTailed(Weights):
    """1 / (9 + |sqrt(beta) (Qx - Ky)|^2), a smooth function of both squares."""

    def of_logits(self, logits, squares):
        return 1 / (9 + squares[0] + squares[1] - 2 * logits)


class RectifiedPower(Weights):
    """relu(1 + logits)^2: not smooth."""

    normalised: ClassVar[bool] = False

    def of_logits(self, logits, squares):
        return np.maximum(1 + logits, 0) ** 2


KINDS = [Softmax(), Unnormalised(), L2(), Sigmoid(0.3), Linear(), Sinkhorn(), HeavyTailed()]


def smooth(space):
    """A positive density without symmetry, resolved by a few degrees."""
    if space.dimension == 2:
        return space.density(lambda t: 1 + 0.5 * np.cos(t - 0.3) + 0.2 * np.cos(2 * t + 1))
    return space.density(lambda x, y, z: 1 + 0.5 * x - 0.3 * y * z + 0.3 * z + 0.2 * x * y)


def random_attention(d, seed, size=1.5, rows=None, heads=None, **options):
    """Attention with beta |K^T Q| = size in each head."""
    rng = np.random.default_rng(seed)
    shape = (rows or d, d) if heads is None else (heads, rows or d, d)
    Q, K = rng.standard_normal((2, *shape)) / np.sqrt(d)
    norms = np.linalg.norm(np.swapaxes(K, -1, -2) @ Q, 2, axis=(-2, -1))
    K = K / norms[..., None, None]
    V = rng.standard_normal((*shape[:-2], d, d))
    return mf.Attention(Q, K, V, size, **options)


def change(model, mu):
    """Coefficients of N."""
    return DensityEvolution(model, mu.space).nonlinear(mu.coefficients[None])[0]


def expected(model, mu, degree):
    """The same by sums over all pairs of points of a grid, and the weak form there."""
    fine = mu.space.with_degree(degree)
    values = mu.resample(degree).values
    masses = fine.weights * values
    A = AttentionSums(model.drift).attention(0.0, fine.points[None], masses[None])[0]
    if model.feedforward is not None:
        A = A + model.feedforward(fine.points)
    found = fine.minus_divergence(np.einsum("fnd,nd->fn", fine.frame, A) * values)
    return fine.resample(found, mu.space.degree)


def close(found, wanted, tolerance=1e-12):
    scale = max(1.0, np.abs(wanted).max())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * scale)


# Laws --------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("beta", [-3.0, 0.0, 1.0, 3.0])
@pytest.mark.parametrize(("zonal", "weights"), [(mf.SA, Softmax()), (mf.USA, Unnormalised())])
def test_identity_matrices_give_the_zonal_drift(space, beta, zonal, weights):
    mu = smooth(space)
    general = change(mf.Transformer(mf.Attention(1, 1, 1, beta, weights=weights)), mu)
    close(general, change(mf.Transformer(zonal(beta)), mu))


@pytest.mark.repeats
@everywhere
@pytest.mark.parametrize("weights", KINDS[:-1], ids=lambda w: type(w).__name__)
def test_mass_is_conserved_exactly(space, weights):
    drift = random_attention(space.dimension, 1, weights=weights)
    assert change(mf.Transformer(drift), smooth(space))[0] == 0


@everywhere
def test_a_reaction_keeps_the_mass(space):
    A = np.diag([1.0, 0.4, -0.3][: space.dimension])
    drift = mf.Attention(1, A, 0.7 * A, 2.0, weights=Unnormalised())
    changed = change(mf.Transformer(drift, reaction=1.5), smooth(space))
    assert abs(changed[0]) < 1e-13 and np.abs(changed[1:]).max() > 0.01


@reproducible
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS))
def test_rotating_data_and_matrices_rotates_the_change(seed, kind):
    space = mf.Circle(48)
    angle = np.random.default_rng(seed).uniform(-np.pi, np.pi)
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    drift = random_attention(2, seed, weights=kind)
    turned = drift.replace(Q=drift.Q @ R.T, K=drift.K @ R.T, V=R @ drift.V @ R.T)
    mu = smooth(space)
    rotated = change(mf.Transformer(turned), mu.rotate(angle))
    wanted = change(mf.Transformer(drift), mu) * np.exp(-1j * angle * space.degrees)
    close(rotated, wanted, 1e-11)


@pytest.mark.repeats
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", [Softmax(), Unnormalised(), L2(), Linear()])
def test_rotations_and_reflections_of_the_sphere(seed, kind):
    space, sign = mf.Sphere(12), 1 - 2 * seed
    R = sign * Rotation.random(rng=seed).as_matrix()
    drift = random_attention(3, seed, weights=kind)
    turned = drift.replace(Q=drift.Q @ R.T, K=drift.K @ R.T, V=R @ drift.V @ R.T)
    mu = smooth(space)
    rotated = change(mf.Transformer(turned), mu.rotate(R))
    wanted = space.rotate(change(mf.Transformer(drift), mu), R)
    close(rotated, wanted, 1e-11)


# Against dense sums ------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("weights", KINDS, ids=lambda w: type(w).__name__)
@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("heads", [1, 2])
def test_every_kind_of_weights_on_the_circle(weights, rows, heads):
    mu = smooth(mf.Circle(64))
    drift = random_attention(2, rows + 10 * heads, 4.0, rows, heads, weights=weights)
    model = mf.Transformer(drift)
    close(change(model, mu), expected(model, mu, 80), 1e-11)


@pytest.mark.repeats
@pytest.mark.parametrize("weights", KINDS, ids=lambda w: type(w).__name__)
@pytest.mark.parametrize("rows", [1, 3, 5])
def test_every_kind_of_weights_on_the_sphere(weights, rows):
    mu = smooth(mf.Sphere(11))
    drift = random_attention(3, rows, 0.7, rows, weights=weights)
    model = mf.Transformer(drift)
    # Sums over 1152 points, exact to degree 45 of mu times the kernel.
    tolerance = 1e-10 if isinstance(weights, HeavyTailed) else 1e-11
    close(change(model, mu), expected(model, mu, 15), tolerance)


@everywhere
def test_heads_with_values_of_fewer_components(space):
    d, rng = space.dimension, np.random.default_rng(3)
    Q, K, V = rng.standard_normal((3, 2, 1, d))
    drift = mf.Attention(Q, K, V, 0.1, output=rng.standard_normal((2, d, 1)))
    model = mf.Transformer(drift)
    close(change(model, smooth(space)), expected(model, smooth(space), 20), 1e-11)


@everywhere
def test_a_feed_forward_map_acts_beside_attention(space):
    d, rng = space.dimension, np.random.default_rng(4)
    inner, outer = rng.standard_normal((2, d, d)) / 2
    forward = mf.FeedForward(inner, outer, activation=np.tanh)
    drift = random_attention(d, 4)
    model = mf.Transformer(drift, feedforward=forward)
    mu = smooth(space)
    beside = change(mf.Transformer(drift + forward), mu)
    close(change(model, mu), beside)
    close(beside, expected(model, mu, 24), 1e-8 if d == 3 else 1e-10)


@everywhere
def test_sums_of_drifts_add_their_changes(space):
    mu, attention = smooth(space), random_attention(space.dimension, 5)
    total = change(mf.Transformer(mf.SA(2.0) - 0.5 * attention), mu)
    parts = [change(mf.Transformer(drift), mu) for drift in (mf.SA(2.0), attention)]
    close(total, parts[0] - 0.5 * parts[1])


@everywhere
def test_weights_that_are_not_smooth_take_sums_over_the_grid(space):
    """The velocities are those of the grid's points as tokens."""
    drift = random_attention(space.dimension, 6, 2.0, weights=RectifiedPower())
    mu, ((_, field),) = smooth(space), fields_of(drift, space)
    grid = GridDensity(space, mu.coefficients, mu.values)
    points = AttentionSums(drift).attention(0.0, space.points[None], grid.masses[None])[0]
    close(field.attention(0.0, grid), points, 1e-12 if space.dimension == 3 else 1e-4)


# Ways to compute the same ------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize(
    "space, maker", [(mf.Circle(24), CircleKernels), (mf.Sphere(10), SphereKernels)]
)
@pytest.mark.parametrize("weights", [Softmax(), Unnormalised(), L2(), Sigmoid(), Sinkhorn()])
def test_sums_over_the_grid_are_the_same(space, maker, weights, monkeypatch):
    drift = random_attention(space.dimension, 7, 0.8, weights=weights)
    mu = smooth(space)
    fast = change(mf.Transformer(drift), mu)
    for name in ("exponential", "gaussian", "smooth"):
        monkeypatch.setattr(maker, name, lambda *_: None)
    close(fast, change(mf.Transformer(drift), mu), 1e-9)


@pytest.mark.parametrize("weights", [Softmax(), Unnormalised(), L2(), Sigmoid(), Linear()])
def test_compiled_tables_are_the_transport_in_python(weights):
    space, drift = mf.Circle(24), random_attention(2, 8, 3.0, heads=2, weights=weights)
    model = mf.Transformer(mf.SA(1.5) + drift)
    compiled = DensityEvolution(model, space).nonlinear
    plain = FieldTransport(model, EnsembleFields(model.drift, space, ()), 1)
    assert isinstance(compiled, TableTransport)
    c = smooth(space).coefficients[None]
    close(compiled(c), plain(c), 1e-13)
    assert compiled.speed[0] == pytest.approx(plain.speed[0], rel=1e-12)


def test_members_have_the_change_of_single_densities():
    betas, space = np.array([0.0, 1.0, 4.0]), mf.Circle(16)
    drift = random_attention(2, 9).replace(beta=betas)
    mu = mf.Density.stack([smooth(space), space.uniform(), space.von_mises(1.0, 0.5)])
    evolution = DensityEvolution(mf.Transformer(drift), space, (3,))
    together = evolution.nonlinear(mu.coefficients)
    for i, beta in enumerate(betas):
        close(together[i], change(mf.Transformer(drift.replace(beta=beta)), mu[i]))


# Extremes ----------------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("zero", ["Q", "V", "beta"])
@everywhere
def test_no_queries_or_values(space, zero):
    drift = random_attention(space.dimension, 10)
    drift = drift.replace(**{zero: 0.0 * getattr(drift, zero)})
    model, mu = mf.Transformer(drift), smooth(space)
    close(change(model, mu), expected(model, mu, 15))


@pytest.mark.repeats
@pytest.mark.parametrize("beta", [20.0, 50.0])
@pytest.mark.parametrize("values", [(1.0, 1.0), (1.0, 0.2), (1.0, 0.0), (1.0, -1.0)])
def test_sharp_softmax_on_the_circle(beta, values):
    mu = smooth(mf.Circle(256))
    drift = mf.Attention(np.diag(values), 1, [[0.3, 1.0], [-0.5, 0.2]], beta)
    model = mf.Transformer(drift)
    close(change(model, mu), expected(model, mu, 300), 1e-9)


def test_keys_of_very_different_lengths():
    """exp(-|Qx - Ky|^2) where |Ky|^2 lies between 0 and 25."""
    mu = smooth(mf.Circle(64))
    drift = mf.Attention(0.3, np.diag([5.0, 0.1]), 1, 1.0, weights=L2())
    model = mf.Transformer(drift)
    close(change(model, mu), expected(model, mu, 200), 1e-11)


@pytest.mark.repeats
@pytest.mark.parametrize("values", [(4.0, 2.0, 0.1), (4.0, 0.0, 0.0), (2.0, 2.0, -2.0)])
def test_uneven_logits_on_the_sphere(values):
    mu, degree = smooth(mf.Sphere(20)), 24
    R = Rotation.random(rng=5).as_matrix()
    drift = mf.Attention(np.diag(values) @ R, 1, R, weights=Unnormalised())
    model = mf.Transformer(drift)
    close(change(model, mu), expected(model, mu, degree), 1e-12)


def test_ensembles_in_beta_and_in_kappa():
    """Of shape (2, 1) and (3,): each member moves as it does alone."""
    mu, beta, kappa = smooth(mf.Circle(16)), np.array([[0.5], [-1.0]]), np.array([3.0, 8.0, 20.0])
    common = mf.CommonTranslations(np.array([2.0, 5.0, 9.0]))

    def after(beta, kappa, common=None):
        drift = random_attention(2, 3).replace(beta=beta) + mf.SA(beta)
        model = mf.Transformer(drift, kappa, common=common)
        options = {"rng": 1} if common else {"rtol": 1e-9}
        return mf.solve(model, mu, (0, 0.3), dt=0.05 if common else None, **options).states[-1]

    together = after(beta, kappa).coefficients
    assert together.shape[:2] == after(beta, 5.0, common).shape == (2, 3)
    for i, j in ((0, 2), (1, 1)):
        alone = after(beta[i, 0], kappa[j]).coefficients
        assert np.abs(together[i, j, :9] - alone[:9]).max() < 1e-9


@everywhere
def test_functions_that_are_not_finite_are_named(space):
    def nowhere(x):
        return np.nan * x

    mu = smooth(space)
    with pytest.raises(mf.MeanfieldError, match=r"Field.*not finite"):
        mf.solve(mf.Transformer(mf.SA(1.0) + mf.Field(nowhere)), mu, (0, 0.1))
    with pytest.raises(mf.MeanfieldError, match="feedforward must return finite"):
        mf.solve(mf.Transformer(mf.SA(1.0), feedforward=nowhere), mu, (0, 0.1))


@pytest.mark.parametrize(
    "model",
    [
        mf.Transformer(mf.Attention(np.eye(3), np.eye(3))),
        mf.Transformer(mf.SA(1.0) + mf.FeedForward(np.eye(3), np.eye(3))),
        mf.Transformer(mf.SA(1.0), feedforward=mf.FeedForward(np.eye(3), np.eye(3))),
        mf.Transformer(mf.SA(1.0), 2.0, noise=mf.noise.Anisotropic(np.eye(3))),
    ],
)
def test_parts_of_another_dimension_are_refused(model):
    with pytest.raises(ValueError, match="is for dimension 3; got points of dimension 2"):
        mf.solve(model, smooth(mf.Circle(8)), (0, 0.1), progress=False)


def test_causal_attention_is_sent_to_indexed_densities():
    model = mf.Transformer(mf.Attention(causal=True))
    with pytest.raises(mf.MeanfieldError, match="or use indexed densities"):
        mf.solve(model, mf.Circle(8).uniform(), (0, 0.1), progress=False)


@pytest.mark.parametrize("drift", [mf.Hardmax(), mf.SA(1.0) + mf.Attention(causal=True)], ids=repr)
def test_the_reason_comes_before_the_axis_of_a_zonal_space(drift):
    with pytest.raises(mf.MeanfieldError, match="moves no densities"):
        mf.solve(mf.Transformer(drift), mf.Zonal(3, 8).uniform(), (0, 0.1), progress=False)
