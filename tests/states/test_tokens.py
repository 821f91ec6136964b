"""Tokens: weighted points of the sphere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield import Circle, StorageError, Tokens, Zonal

reproducible = settings(deadline=None, derandomize=True, max_examples=40)


def points(n, d, seed=0):
    """Uniform points of the sphere."""
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@reproducible
@given(st.integers(1, 30), st.integers(2, 9))
def test_an_expectation_is_the_weighted_sum(n, d):
    x, masses = points(n, d), np.random.default_rng(1).dirichlet(np.ones(n))
    tokens = Tokens(x, masses)
    assert len(tokens) == n
    assert repr(tokens) == f"Tokens(n={n}, d={d})"
    # At most 30 terms of size at most 1.
    expected = sum(mass * point for mass, point in zip(masses, x, strict=True))
    np.testing.assert_allclose(tokens.expect(lambda y: y), expected, rtol=0, atol=1e-14)
    assert tokens.expect(lambda y: y[:, 0] ** 2) == pytest.approx(masses @ x[:, 0] ** 2, rel=1e-13)
    assert tokens.expect(lambda y: np.ones(len(y))) == pytest.approx(1, abs=1e-14)


def test_a_function_may_be_matrix_valued():
    x = points(5, 3)
    second = Tokens(x).expect(lambda y: y[:, :, None] * y[:, None, :])
    np.testing.assert_allclose(second, x.T @ x / 5, rtol=0, atol=1e-15)  # 5 terms below 1


def test_masses_are_equal_unless_given():
    np.testing.assert_array_equal(Tokens(points(8, 2)).masses, 1 / 8)


def test_tokens_are_a_copy_that_cannot_be_changed():
    x, masses = points(3, 2), np.array([0.5, 0.25, 0.25])
    tokens = Tokens(x, masses)
    x[0], masses[0] = 7, 7
    assert tokens.x.max() <= 1
    assert tokens.masses[0] == 0.5
    for array in (tokens.x, tokens.masses):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (3, 1), (3, 0), (2, 0, 2)], ids=str)
def test_another_shape_is_refused(shape):
    with pytest.raises(
        ValueError, match=r"x.shape must be \(n, d\) with d >= 2, or .*; got x.shape = \("
    ):
        Tokens(np.ones(shape))


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (1.25, r"off by 0.25 at index 2\. .*from_hidden.*np.linalg.norm"),
        (np.nan, "3 entries are not finite"),
        (0, r"off by 1 at index 2"),
    ],
)
def test_vectors_must_be_unit_vectors(length, message):
    x = points(4, 3)
    x[2] *= length
    with pytest.raises(ValueError, match=message):
        Tokens(x)


@pytest.mark.parametrize(
    "masses",
    [[0.5, 0.5], [0.5, 0.6, -0.1], [0.3, 0.3, 0.3], [np.nan, 0.5, 0.5], [[1, 0, 0]], 1.0],
    ids=["count", "negative", "sum", "nan", "shape", "number"],
)
def test_masses_must_be_a_probability(masses):
    with pytest.raises(ValueError, match="3 masses >= 0 of sum 1; got masses of shape"):
        Tokens(points(3, 2), masses)


# Replicas, radii, R^d -----------------------------------------------------------------------


def test_replicas_are_independent_sets():
    tokens = Tokens.uniform(5, 3, rng=1, shape=(4, 2))
    assert tokens.shape == (4, 2) and len(tokens) == 5 and tokens.dimension == 3
    assert repr(tokens) == "Tokens(n=5, d=3, replicas=(4, 2))"
    one = tokens[2, 1]
    np.testing.assert_array_equal(one.x, tokens.x[2, 1])
    means = tokens.expect(lambda x: x)
    assert means.shape == (4, 2, 3)
    np.testing.assert_allclose(means[2, 1], one.expect(lambda x: x), rtol=0, atol=1e-15)
    assert tokens.expect(lambda x: x[..., 0]).shape == (4, 2)


def test_masses_of_replicas_may_be_shared_or_their_own():
    x, shared = Tokens.uniform(3, 2, rng=0, shape=(2,)).x, [0.5, 0.25, 0.25]
    np.testing.assert_array_equal(Tokens(x, shared).masses, [shared, shared])
    own = [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]
    np.testing.assert_array_equal(Tokens(x, own).masses, own)
    with pytest.raises(ValueError, match="expects 3 masses"):
        Tokens(x, [[0.5, 0.25, 0.25]])


def test_a_function_must_return_one_value_for_each_token():
    with pytest.raises(ValueError, match=r"shape \(5,\).*got shape \(3,\)"):
        Tokens(points(5, 3)).expect(lambda x: x[0])


def test_broadcasting_repeats_the_tokens():
    tokens = Tokens(points(4, 3), radii=[1.0, 2.0, 3.0, 4.0]).broadcast((2,))
    assert tokens.shape == (2,)
    np.testing.assert_array_equal(tokens.x[0], tokens.x[1])
    np.testing.assert_array_equal(tokens.radii[1], [1, 2, 3, 4])


def test_a_single_set_has_no_replicas_to_choose_from():
    with pytest.raises(TypeError, match=r"single state.*masses, x"):
        Tokens(points(3, 2))[0]


def test_tokens_may_live_in_space():
    x = np.array([[0.0], [3.0], [-2.0]])
    tokens = Tokens(x, on_sphere=False)
    assert repr(tokens) == "Tokens(n=3, d=1, in R^d)" and not tokens.on_sphere
    with pytest.raises(ValueError, match="x must be finite; got 1 nan"):
        Tokens([[0.0], [np.inf]], on_sphere=False)
    with pytest.raises(ValueError, match="Only tokens on the sphere have radii"):
        Tokens(x, radii=1.0, on_sphere=False)


@pytest.mark.parametrize("radii", [0.0, [1, -1, 1], [1, np.nan, 1], [1, 1]], ids=str)
def test_radii_are_positive(radii):
    with pytest.raises(ValueError, match=r"finite radii > 0 of shape \(3,\)"):
        Tokens(points(3, 2), radii=radii)


# Making them --------------------------------------------------------------------------------


def test_uniform_tokens_are_uniform():
    """Moments of 10^5 tokens, within five standard errors."""
    x = Tokens.uniform(100_000, 5, rng=3).x
    assert np.abs(x.mean(axis=0)).max() < 5 / np.sqrt(5 * len(x))
    second = x.T @ x / len(x)
    assert np.abs(second - np.eye(5) / 5).max() < 5 * np.sqrt(2 / 35 / len(x))


@pytest.mark.bits
def test_the_same_seed_gives_the_same_tokens():
    np.testing.assert_array_equal(Tokens.uniform(9, 3, rng=7).x, Tokens.uniform(9, 3, rng=7).x)


def test_angles_and_bases():
    np.testing.assert_allclose(
        Tokens.on_circle([0, np.pi / 2]).x, [[1, 0], [0, 1]], rtol=0, atol=1e-16
    )
    np.testing.assert_array_equal(Tokens.orthonormal(2, 3).x, [[1, 0, 0], [0, 1, 0]])
    with pytest.raises(ValueError, match="n must be from 2 to d = 3; got n = 4"):
        Tokens.orthonormal(4, 3)


def test_tokens_are_read_from_files(tmp_path):
    x = points(6, 3)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", a=x, b=3 * x)
    np.savetxt(tmp_path / "x.csv", x, delimiter=",", header="x,y,z")
    np.save(tmp_path / "angles.npy", np.array([0.0, 1.0]))
    np.testing.assert_array_equal(Tokens.from_file(tmp_path / "x.npy").x, x)
    np.testing.assert_array_equal(Tokens.from_file(tmp_path / "x.npz", key="a").x, x)
    np.testing.assert_allclose(Tokens.from_file(tmp_path / "x.csv").x, x, rtol=0, atol=1e-15)
    assert Tokens.from_file(tmp_path / "angles.npy").dimension == 2
    space = Tokens.from_file(tmp_path / "x.npz", key="b", on_sphere=False)
    np.testing.assert_array_equal(space.x, 3 * x)
    with pytest.raises(StorageError, match=r"x\.npz: Tokens .*expects unit vectors"):
        Tokens.from_file(tmp_path / "x.npz", key="b")


def test_a_density_is_estimated_from_tokens():
    circle = Circle(degree=256)
    tokens = circle.von_mises(0.3, 4.0).sample(20_000, rng=1)
    density = tokens.to_density(circle)
    exact = circle.von_mises(0.3, 4.0).coefficients
    assert np.abs(density.coefficients - exact).max() < 0.02
    with pytest.raises(ValueError, match="one by one"):
        Tokens.uniform(5, 2, rng=0, shape=(2,)).to_density(circle)
    with pytest.raises(ValueError, match="a Circle or a Sphere"):
        tokens.to_density(Zonal(3, 8))


@pytest.mark.parametrize("on_sphere", ["no", None, 1], ids=repr)
def test_on_sphere_is_true_or_false(tmp_path, on_sphere):
    np.save(tmp_path / "x.npy", points(6, 3))
    with pytest.raises(TypeError, match="got on_sphere ="):
        Tokens(points(3, 2), on_sphere=on_sphere)
    with pytest.raises(TypeError, match="on_sphere must be True or False"):
        Tokens.from_file(tmp_path / "x.npy", on_sphere=on_sphere)
    assert Tokens(points(3, 2), on_sphere=np.bool_(False)).on_sphere is False


def test_replicas_alone_are_indexed():
    tokens = Tokens(points(6, 3), radii=np.arange(1.0, 7)).broadcast((4, 2))
    for index in ((slice(None), 0, slice(1, None)), (7, 0), "first"):
        with pytest.raises(IndexError, match=r"Replicas alone .*of shape \(4, 2\): .*masses, x"):
            tokens[index]
    assert tokens[..., 0].shape == (4,) and tokens[..., 0].radii.shape == (4, 6)
    assert tokens[1:, 1].shape == (3,) and tokens[[0, 3]].shape == (2, 2)
    assert [part.shape for part in tokens] == [(2,)] * 4


def test_counts_are_whole_numbers():
    assert Tokens.uniform(4, 3, rng=0, shape=5).shape == (5,)
    assert Tokens.orthonormal(3.0).dimension == 3
    for n, d in [(3, 4.5), ("3", None), (3, np.inf), (None, 3)]:
        with pytest.raises(ValueError, match="must be a whole number"):
            Tokens.orthonormal(n, d)
    for shape in (2.5, None, (2, 0), "ab"):
        with pytest.raises(ValueError, match="whole number >= 1; got shape ="):
            Tokens.uniform(4, 3, rng=0, shape=shape)


def test_a_class_is_no_space():
    with pytest.raises(TypeError, match=r"space must be a space itself"):
        Tokens(points(5, 2)).to_density(Circle)


class Tensor:
    """An array of another library, which numpy reads, or not."""

    def __init__(self, values, dtype):
        self.values, self.dtype = values, dtype

    def __array__(self, dtype=None, copy=None):
        if self.dtype == "torch.bfloat16":
            raise TypeError("unsupported ScalarType BFloat16")
        return self.values


def test_unit_vectors_of_a_tensor_in_single_precision_are_accepted():
    x = mf.Tokens.uniform(50, 64, rng=0).x.astype(np.float32)
    np.testing.assert_array_equal(mf.Tokens(Tensor(x, "torch.float32")).x, mf.Tokens(x).x)


def test_a_tensor_that_numpy_cannot_read_is_told_apart_from_unequal_rows():
    with pytest.raises(TypeError, match=r"torch\.bfloat16.*\.float\(\)"):
        mf.Tokens.from_hidden(Tensor(None, "torch.bfloat16"))


def test_the_count_of_clusters_says_its_angle():
    tokens = mf.Tokens.uniform(4, 3, rng=0)
    run = mf.solve(mf.Transformer(mf.SA(1.0)), tokens, (0, 0.1), t_eval=[0.1])
    assert "0.81 degrees" in run.observables["cluster_count"].attrs["long_name"]


def test_angles_are_told_where_they_belong():
    with pytest.raises(ValueError, match=r"mf[.]Tokens[.]on_circle\(angles\)"):
        mf.Tokens([0.1, 0.2])


def test_observables_are_no_attributes_of_states():
    tokens = mf.Tokens.on_circle([0.1, 0.2])
    with pytest.raises(AttributeError, match=r"mf[.]measure\(model, state\)"):
        tokens.order_parameter  # noqa: B018
    with pytest.raises(AttributeError, match="'Tokens' object has no attribute 'colour'"):
        tokens.colour  # noqa: B018
